//! Every link of the documentation leads somewhere: to a file or folder of the tree, and to a heading in it. Paths in code spans
//! exist, too, and the book lists every page. Other hosts are not asked.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Folders whose names begin the paths that people write in code spans.
const FOLDERS: [&str; 9] = [".ci/", "action/", "benches/", "crates/", "crds/", "docs/", "examples/", "src/", "tests/"];

/// A link or a path in a code span: the file that holds it, its line, and what it says.
struct Reference {
    file: PathBuf,
    line: usize,
    target: String,
}

#[derive(Default)]
struct Page {
    links: Vec<Reference>,
    paths: Vec<Reference>,
    anchors: BTreeSet<String>,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The Markdown files that people read, relative to the root.
fn files() -> Vec<PathBuf> {
    fn below(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.file_name().unwrap().to_string_lossy().into_owned();
            // Manifests of tests are not documentation, nor is a built book.
            let is_apart = ["target", "cases", "trees", "book", ".git"].contains(&name.as_str());
            if entry.is_dir() && !is_apart {
                below(&entry, found);
            } else if name.ends_with(".md") {
                found.push(entry);
            }
        }
    }
    let mut found = Vec::new();
    below(&root(), &mut found);
    found.sort();
    found.into_iter().map(|path| path.strip_prefix(root()).unwrap().to_owned()).collect()
}

fn read(file: &Path) -> Page {
    let text = fs::read_to_string(root().join(file)).unwrap();
    let mut page = Page::default();
    let mut heading: Option<String> = None;
    for (event, range) in Parser::new_ext(&text, Options::ENABLE_TABLES).into_offset_iter() {
        let reference = |target: &str| Reference {
            file: file.to_owned(),
            line: text[..range.start].lines().count().max(1),
            target: target.to_owned(),
        };
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                page.links.push(reference(&dest_url));
            }
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let slug = slug(&heading.take().unwrap_or_default());
                let same = (1..).map(|number| format!("{slug}-{number}"));
                let free = std::iter::once(slug.clone()).chain(same).find(|slug| !page.anchors.contains(slug));
                page.anchors.extend(free);
            }
            Event::Text(text) | Event::Code(text) if heading.is_some() => {
                heading.as_mut().unwrap().push_str(&text);
            }
            Event::Code(code) if FOLDERS.iter().any(|folder| code.starts_with(folder)) => {
                page.paths.push(reference(&code));
            }
            _ => {}
        }
    }
    page
}

/// The anchor of a heading, as git hosts and mdBook make it.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter));
    kept.collect::<String>().trim().to_lowercase().replace(' ', "-")
}

/// A path with `..` resolved, as a browser does.
fn resolved(from: &Path, target: &str) -> PathBuf {
    let mut path = from.parent().unwrap_or(Path::new("")).to_owned();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(path.pop()),
            name => path.push(name),
        }
    }
    path
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let pages: BTreeMap<PathBuf, Page> = files().into_iter().map(|file| (file.clone(), read(&file))).collect();
    assert!(pages.len() > 20, "the documentation is here");
    let mut broken = Vec::new();
    for Reference { file, line, target } in pages.values().flat_map(|page| &page.links) {
        if target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        let path = if path.is_empty() { file.clone() } else { resolved(file, path) };
        let at = format!("{}:{line}: {target}", file.display());
        if !root().join(&path).exists() {
            broken.push(format!("{at}: no such file"));
        } else if !anchor.is_empty() && !pages.get(&path).is_some_and(|page| page.anchors.contains(anchor)) {
            broken.push(format!("{at}: no such heading"));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_path_in_the_documentation_exists() {
    let mut missing = Vec::new();
    // What a changelog says was so.
    for file in files().into_iter().filter(|file| file != Path::new("CHANGELOG.md")) {
        for Reference { file, line, target } in read(&file).paths {
            // A pattern, a place to fill in, or a command with its arguments.
            let path = target.split_whitespace().next().unwrap_or_default();
            let is_pattern = path.contains(['*', '<', '{', '…'])
                || path.chars().any(|letter| letter.is_uppercase()) && !path.contains('.');
            let path = path.split(':').next().unwrap_or_default();
            // In a crate's own pages a path may begin at its root.
            let exists = file.ancestors().any(|folder| root().join(folder).join(path).exists());
            if !is_pattern && !exists {
                missing.push(format!("{}:{line}: {target}", file.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn the_book_lists_every_page() {
    let docs = Path::new("docs");
    let listed: BTreeSet<PathBuf> =
        read(&docs.join("SUMMARY.md")).links.iter().map(|link| docs.join(&link.target)).collect();
    let written: BTreeSet<PathBuf> =
        files().into_iter().filter(|file| file.starts_with(docs) && !file.ends_with("SUMMARY.md")).collect();
    assert_eq!(written.difference(&listed).collect::<Vec<_>>(), Vec::<&PathBuf>::new(), "not in docs/SUMMARY.md");
}
