//! The files of a commit, as bytes.
//!
//! Only manifests are read (`*.yaml`, `*.yml`, `*.json`); hidden files and folders are passed by, as `lint` does. A link
//! or a submodule is data: named, never followed. A folder that is a kustomization or a Helm chart is named, and none of its
//! files are read as manifests. Never writes anything anywhere.

use std::{collections::HashMap, fmt};

use git2::{Odb, Oid, Repository, Tree};

use super::{Error, limits::ReadLimits, render::KustomizationFolder};
use crate::{kubernetes::foreign, kustomize::FILE_NAMES, model::glob};

/// What a folder of a commit holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// The manifests, sorted by path.
    pub files: Vec<File>,
    /// The folders that are kustomizations, sorted by path; those within one another each by itself.
    pub kustomizations: Vec<KustomizationFolder>,
    /// What was not read, sorted by path.
    pub refused: Vec<Refused>,
}

/// A file.
#[derive(Clone, PartialEq, Eq)]
pub struct File {
    /// Its path in the repository.
    pub path: String,
    /// What it holds; nothing if that was known.
    pub bytes: Option<Vec<u8>>,
    /// How many bytes that is.
    pub size: usize,
    /// The hash of what it holds: equal hashes, equal bytes.
    pub blob: String,
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} bytes, {})", self.path, self.size, self.blob)
    }
}

/// An entry that was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its path, with odd characters made visible.
    pub path: String,
    /// Why.
    pub why: Refusal,
}

/// Why an entry was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It is a symbolic link.
    Link,
    /// It is a submodule.
    Submodule,
    /// Its name has characters that cannot be seen, or means something to a file system.
    Name,
    /// Another name differs from it only in case.
    Twin(String),
    /// It is larger than this.
    Size(usize),
    /// It is a Helm chart.
    Chart,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Link => {
                f.write_str("is a symbolic link, which is not followed; commit the file itself, or exclude it")
            }
            Refusal::Submodule => {
                f.write_str("is a submodule, which is not read; make it a source of its own, and exclude it")
            }
            Refusal::Name => f.write_str("has a name that could be taken for another; rename it"),
            Refusal::Twin(other) => write!(f, "differs from {other} only in case; rename or exclude one of them"),
            Refusal::Chart => f.write_str(
                "is a Helm chart, which is not rendered here; commit what `helm template` makes of it, or exclude it",
            ),
            Refusal::Size(allowed) => {
                write!(f, "is larger than the {} KiB allowed; split it, or exclude it", allowed / 1024)
            }
        }
    }
}

/// Reads the manifests below a folder of a commit's tree.
pub fn read(
    repository: &Repository,
    root: &Tree<'_>,
    path: &str,
    exclude: &[String],
    limits: &ReadLimits,
    known: &HashMap<String, (String, usize)>,
) -> Result<Option<Files>, Error> {
    let path = path.trim_matches('/');
    let odb = repository.odb().map_err(|error| broken(path, &error))?;
    let mut reading =
        Reading { repository, odb, exclude, limits, known, top: path, entries: 0, bytes: 0, found: Files::default() };
    let Some(tree) = folder(repository, root, path)? else { return Ok(None) };
    reading.tree(&tree, path, 0)?;
    let mut found = reading.found;
    found.files.sort_by(|one, other| one.path.cmp(&other.path));
    found.kustomizations.sort_by(|one, other| one.path.cmp(&other.path));
    found.refused.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(Some(found))
}

/// The folder at a path; each step must be a real folder, never a link.
pub fn folder<'r>(repository: &'r Repository, root: &Tree<'r>, path: &str) -> Result<Option<Tree<'r>>, Error> {
    let mut tree = root.clone();
    for name in path.split('/').filter(|name| !name.is_empty()) {
        let Some(entry) = tree.get_name(name).filter(|entry| entry.filemode() == 0o040_000) else { return Ok(None) };
        let id = entry.id();
        drop(entry);
        tree = repository.find_tree(id).map_err(|error| broken(path, &error))?;
    }
    Ok(Some(tree))
}

struct Reading<'a> {
    repository: &'a Repository,
    odb: Odb<'a>,
    exclude: &'a [String],
    limits: &'a ReadLimits,
    /// The hashes and sizes of files whose content is known, by path.
    known: &'a HashMap<String, (String, usize)>,
    /// The folder that patterns are relative to.
    top: &'a str,
    entries: usize,
    bytes: usize,
    found: Files,
}

impl Reading<'_> {
    fn tree(&mut self, tree: &Tree<'_>, folder: &str, depth: usize) -> Result<(), Error> {
        if depth > self.limits.depth {
            return Err(limit(
                format!("the depth of {}", foreign::line(folder)),
                format!("{} folders", self.limits.depth),
            ));
        }
        self.entries += tree.len();
        if self.entries > self.limits.entries {
            return Err(limit("the number of files and folders", format!("{}", self.limits.entries)));
        }
        if self.is_kustomization(tree, folder) {
            return self.kustomization(tree, folder, depth);
        }
        if self.has_file(tree, folder, CHART) {
            self.refuse(shown_folder(folder), Refusal::Chart);
            return Ok(());
        }
        let mut folded: HashMap<String, String> = HashMap::new();
        for entry in tree {
            let raw = entry.name_bytes();
            if raw.starts_with(b".") && raw != b"." && raw != b".." {
                continue;
            }
            let shown = join(folder, &foreign::line(&String::from_utf8_lossy(raw)));
            if shown.len() > self.limits.path_bytes {
                return Err(limit("the length of a path", format!("{} bytes", self.limits.path_bytes)));
            }
            let Some(name) = std::str::from_utf8(raw).ok().filter(|name| honest(name)) else {
                self.refuse(shown, Refusal::Name);
                continue;
            };
            let path = join(folder, name);
            if self.excluded(&path) {
                continue;
            }
            // Only names that are read can be taken for each other.
            let read = entry.filemode_raw() == 0o040_000 || manifest(name);
            let before = if read { folded.insert(name.to_lowercase(), path.clone()) } else { None };
            match (entry.filemode_raw(), manifest(name)) {
                (0o040_000, _) => {
                    if let Some(twin) = before {
                        self.refuse(path, Refusal::Twin(twin));
                        continue;
                    }
                    let below = self.repository.find_tree(entry.id()).map_err(|error| broken(&path, &error))?;
                    self.tree(&below, &path, depth + 1)?;
                }
                (0o120_000, _) => self.refuse(path, Refusal::Link),
                (0o160_000, _) => self.refuse(path, Refusal::Submodule),
                (_, true) => match before {
                    Some(twin) => self.refuse(path, Refusal::Twin(twin)),
                    None => self.blob(path, entry.id())?,
                },
                (_, false) => {}
            }
        }
        Ok(())
    }

    /// Whether one of the files that make a folder a kustomization is there and not excluded.
    fn is_kustomization(&self, tree: &Tree<'_>, folder: &str) -> bool {
        FILE_NAMES.iter().any(|name| self.has_file(tree, folder, name))
    }

    fn has_file(&self, tree: &Tree<'_>, folder: &str, name: &str) -> bool {
        let is_file = tree.get_name(name).is_some_and(|entry| !matches!(entry.filemode(), 0o040_000 | 0o160_000));
        is_file && !self.excluded(&join(folder, name))
    }

    /// Names a kustomization, the manifests in it, and the kustomizations below it.
    fn kustomization(&mut self, tree: &Tree<'_>, folder: &str, depth: usize) -> Result<(), Error> {
        let mut found = KustomizationFolder { path: folder.to_owned(), manifests: Vec::new() };
        self.manifests(tree, folder, depth, &mut found.manifests)?;
        self.found.kustomizations.push(found);
        Ok(())
    }

    fn manifests(&mut self, tree: &Tree<'_>, folder: &str, depth: usize, names: &mut Vec<String>) -> Result<(), Error> {
        for entry in tree {
            let name =
                std::str::from_utf8(entry.name_bytes()).ok().filter(|name| honest(name) && !name.starts_with('.'));
            let Some(name) = name else { continue };
            let path = join(folder, name);
            if self.excluded(&path) {
                continue;
            }
            match (entry.filemode_raw(), manifest(name)) {
                (0o040_000, _) => {
                    let below = self.repository.find_tree(entry.id()).map_err(|error| broken(&path, &error))?;
                    if depth >= self.limits.depth {
                        continue;
                    }
                    self.entries += below.len();
                    if self.entries > self.limits.entries {
                        return Err(limit("the number of files and folders", format!("{}", self.limits.entries)));
                    }
                    match self.is_kustomization(&below, &path) {
                        true => self.kustomization(&below, &path, depth + 1)?,
                        false => self.manifests(&below, &path, depth + 1, names)?,
                    }
                }
                (0o100_644 | 0o100_755, true) if !FILE_NAMES.contains(&name) => names.push(path),
                _ => {}
            }
        }
        Ok(())
    }

    fn blob(&mut self, path: String, id: Oid) -> Result<(), Error> {
        if self.found.files.len() >= self.limits.files {
            return Err(limit("the number of manifests", format!("{}", self.limits.files)));
        }
        let hash = id.to_string();
        let known = self.known.get(&path).filter(|(known, _)| *known == hash);
        // The size is known before the bytes are unpacked.
        let size = match known {
            Some((_, size)) => *size,
            None => self.odb.read_header(id).map_err(|error| broken(&path, &error))?.0,
        };
        if size > self.limits.file_bytes {
            self.refuse(path, Refusal::Size(self.limits.file_bytes));
            return Ok(());
        }
        self.bytes += size;
        if self.bytes > self.limits.bytes {
            return Err(limit("the size of all manifests", format!("{} MiB", self.limits.bytes >> 20)));
        }
        let bytes = match known {
            Some(_) => None,
            None => Some(self.repository.find_blob(id).map_err(|error| broken(&path, &error))?.content().to_vec()),
        };
        self.found.files.push(File { path, bytes, size, blob: hash });
        Ok(())
    }

    fn excluded(&self, path: &str) -> bool {
        let below = path.strip_prefix(self.top).unwrap_or(path).trim_start_matches('/');
        self.exclude.iter().any(|pattern| glob::matches(pattern, below))
    }

    fn refuse(&mut self, path: String, why: Refusal) {
        self.found.refused.push(Refused { path, why });
    }
}

/// What makes a folder a Helm chart: what is in it are templates, not manifests.
const CHART: &str = "Chart.yaml";

/// A folder in a message.
fn shown_folder(folder: &str) -> String {
    if folder.is_empty() { ".".to_owned() } else { folder.to_owned() }
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

fn manifest(name: &str) -> bool {
    [".yaml", ".yml", ".json"].iter().any(|ending| name.ends_with(ending))
}

/// Whether people see the name as it is, and no file system takes it for something else.
pub(super) fn honest(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\\']) && !name.chars().any(foreign::is_treacherous)
}

fn limit(what: impl Into<String>, allowed: String) -> Error {
    Error::Limit { what: what.into(), allowed }
}

fn broken(path: &str, error: &git2::Error) -> Error {
    Error::Malformed {
        remote: format!("the repository at {:?}", foreign::line(path)),
        cause: error.message().to_owned(),
    }
}
