//! Reads manifests: of files, of folders, of standard input, and of a revision of a repository. Never judges them.

use std::{
    ffi::OsString,
    fs,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, anyhow};

use crate::{
    cmd::{
        kustomize::{self as rendering, DiskTree},
        print::note,
        remedied,
    },
    io::git,
    kustomize::{self, Dependency, FILE_NAMES, Located, Rendered, Tree, joined},
    manifest::{self, File, MistakeKind, place::Source},
    model::git_source::{Rendering, Rollouts},
};

/// The manifests of these paths, on disk or in a revision, with what their kustomizations render.
pub fn read(revision: Option<&str>, paths: &[PathBuf], how: Rendering) -> anyhow::Result<Vec<File>> {
    let reading = match revision {
        Some(revision) => in_git(revision, paths, format!("{revision}:"), how)?,
        None => on_disk(paths, how)?,
    };
    for one in &reading.kustomized {
        rendering::checked(&one.rendered)?;
    }
    rendering::note_unused(reading.kustomized.iter().flat_map(|one| &one.unused).map(|unused| unused.name.as_str()));
    some(reading.manifests().files)
}

/// What was read.
#[derive(Default)]
pub struct Reading {
    /// The files.
    pub given: Vec<Given>,
    /// What the kustomizations among them rendered, but for those that others are made of.
    pub kustomized: Vec<Kustomized>,
}

/// What a kustomization rendered.
pub struct Kustomized {
    /// Its objects, or what is wrong with it.
    pub rendered: Rendered,
    /// The same as kustomize without configuration renders it.
    pub plain: Rendered,
    /// The manifests in and below its folder that no kustomization uses.
    pub unused: Vec<Arc<Source>>,
}

/// Manifests, and why some kustomizations gave none.
#[derive(Default)]
pub struct Manifests {
    /// The files, and what kustomizations rendered.
    pub files: Vec<File>,
    /// What is wrong with kustomizations.
    pub faults: Vec<Located>,
}

impl Reading {
    /// What is to be applied.
    pub fn manifests(self) -> Manifests {
        let of_itself = |given: &Given| matches!(given.role, Role::Named | Role::Found | Role::Rendered);
        let files = self.given.into_iter().filter(of_itself).map(|given| given.file).collect();
        Manifests { files, faults: self.kustomized.into_iter().filter_map(|one| one.rendered.fault).collect() }
    }
}

/// A file that was read, and why.
pub struct Given {
    /// What it holds.
    pub file: File,
    /// Where it is, without the revision.
    pub path: PathBuf,
    /// Why it was read.
    pub role: Role,
}

/// Why a file was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It was named.
    Named,
    /// It was found in a folder.
    Found,
    /// A kustomization is made of it.
    Part,
    /// It is a kustomization: the objects are those that it renders.
    Rendered,
    /// It says how a file that was named belongs together with others.
    Aside,
}

/// Whether a file of this name makes its folder a kustomization.
pub fn is_kustomization(path: &Path) -> bool {
    path.file_name().is_some_and(|name| FILE_NAMES.iter().any(|known| name == *known))
}

/// What was found below a folder.
#[derive(Default)]
struct Found {
    /// The manifests, with their paths in the tree, and whether a kustomization holds them.
    files: Vec<(Given, String, bool)>,
    /// The folders that are kustomizations, by their paths in the tree.
    kustomizations: Vec<String>,
}

impl Found {
    /// Renders the kustomizations; what they are made of is no manifest by itself.
    fn rendered(self, tree: &dyn Tree, top: &str, how: Rendering, shown: &dyn Fn(&str) -> String) -> Reading {
        let all: Vec<Rendered> =
            self.kustomizations.iter().map(|folder| kustomize::render(tree, folder, how, shown)).collect();
        let is_used = |path: &str| all.iter().any(|one| one.dependencies.get(path) == Some(&Dependency::Content));
        let holds = |one: &Rendered, path: &str| {
            let below = path.strip_prefix(&one.folder);
            one.folder.is_empty() || below.is_some_and(|below| below.starts_with('/'))
        };
        let innermost = |path: &str| all.iter().filter(|one| holds(one, path)).max_by_key(|one| one.folder.len());
        // What a kustomization that cannot be rendered is made of is not known.
        let is_known = |path: &str| innermost(path).is_some_and(|one| one.fault.is_none());
        let (mut reading, mut unused) = (Reading::default(), Vec::new());
        for (mut given, path, is_inside) in self.files {
            if is_inside && is_known(&path) && !is_used(&path) {
                unused.push((path, given.file.source.clone()));
                continue;
            }
            if is_inside || is_used(&path) {
                given.role = Role::Part;
            }
            reading.given.push(given);
        }
        for rendered in kustomize::roots(all.clone(), top, |one| one) {
            let path = PathBuf::from(&rendered.folder);
            reading.given.push(Given { file: rendered.file.clone(), path, role: Role::Rendered });
            let plain = Rendering { rollouts: Rollouts::Plain, ..how };
            let plain = kustomize::render(tree, &rendered.folder, plain, shown);
            reading.kustomized.push(Kustomized { rendered, plain, unused: Vec::new() });
        }
        for (path, source) in unused {
            // A base is no kustomization of its own here; then whoever comes first says it.
            let of = |one: &Kustomized| holds(&one.rendered, &path).then_some(one.rendered.folder.len());
            if let Some(one) = reading.kustomized.iter_mut().max_by_key(|one| of(one)) {
                one.unused.push(source);
            }
        }
        reading
    }
}

/// A file that was come across: none of those that hold something else than manifests.
fn come_across(path: PathBuf, file: File) -> Option<Given> {
    if is_other(&file) {
        tracing::info!(file = %path.display(), "holds no Kubernetes object; passed by");
        return None;
    }
    Some(Given { file, path, role: Role::Found })
}

/// The manifests of paths in a revision, by their paths; a path that is not there holds none.
pub fn in_revision(revision: &str, paths: &[PathBuf], how: Rendering) -> anyhow::Result<Reading> {
    let mut all = Reading::default();
    for path in paths {
        match in_git(revision, std::slice::from_ref(path), String::new(), how) {
            Ok(Reading { given, kustomized }) => {
                all.given.extend(given);
                all.kustomized.extend(kustomized);
            }
            Err(error) if error.is::<NotThere>() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

/// A path that a revision does not have.
#[derive(Debug, thiserror::Error)]
#[error("reading {revision}:{path}: {cause}")]
struct NotThere {
    revision: String,
    path: String,
    cause: String,
}

/// The files, if there are any.
pub fn some(files: Vec<File>) -> anyhow::Result<Vec<File>> {
    if files.is_empty() {
        return Err(remedied(
            anyhow!("there is no manifest in what was given"),
            "give files, or folders with *.yaml, *.yml or *.json",
        ));
    }
    Ok(files)
}

/// What makes a folder a Helm chart: what is in it are templates, not manifests.
const CHART: &str = "Chart.yaml";

fn chart(folder: &str) {
    note(format_args!("passing by {folder}: a Helm chart; lint what `helm template` makes of it"));
}

/// Whether a name is that of a manifest.
fn is_manifest(name: &Path) -> bool {
    name.extension().is_some_and(|ending| ending == "yaml" || ending == "yml" || ending == "json")
}

/// The files of paths on disk.
pub fn on_disk(paths: &[PathBuf], how: Rendering) -> anyhow::Result<Reading> {
    let here = [PathBuf::from(".")];
    let paths = if paths.is_empty() { &here[..] } else { paths };
    let mut all = Reading::default();
    for path in paths {
        if path.as_os_str() == "-" {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes).context("reading standard input")?;
            let file = manifest::read("stdin", &bytes);
            all.given.push(Given { file, path: path.clone(), role: Role::Named });
            continue;
        }
        let about = fs::metadata(path).with_context(|| format!("reading {}", path.display()))?;
        if about.is_dir() {
            let (tree, inner) = DiskTree::around(path)?;
            let mut found = Found::default();
            search(path, &inner, false, &mut found)?;
            // Files are called as they were asked for.
            let called = |file: &str| {
                let below = if inner.is_empty() { Some(file) } else { file.strip_prefix(&inner) };
                match below.map(|below| below.trim_start_matches('/')) {
                    Some(below) if inner.is_empty() || file[inner.len()..].starts_with('/') => shown(&path.join(below)),
                    Some(_) | None => tree.shown(file),
                }
            };
            let Reading { given, kustomized } = found.rendered(&tree, &inner, how, &called);
            all.given.extend(given);
            all.kustomized.extend(kustomized);
        } else {
            all.given.push(Given { file: file(path)?, path: path.clone(), role: Role::Named });
            all.given.extend(beside(path));
        }
    }
    Ok(all)
}

/// The file beside this one that says what it is a part of, if there is one.
fn beside(path: &Path) -> Option<Given> {
    let mut others = FILE_NAMES.iter().map(|name| path.with_file_name(name));
    let path = others.find(|other| other.is_file() && other != path)?;
    Some(Given { file: file(&path).ok()?, path, role: Role::Aside })
}

fn file(path: &Path) -> anyhow::Result<File> {
    let bytes = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    Ok(manifest::read(shown(path), &bytes))
}

/// Whether a file that was only come across holds something else than manifests: values of a chart, a workflow.
fn is_other(file: &File) -> bool {
    let mut fatal = file.mistakes.iter().filter(|mistake| mistake.kind.is_fatal());
    file.objects.is_empty() && fatal.all(|mistake| mistake.kind == MistakeKind::Shape)
}

/// A path without what every path of this run begins with.
fn shown(path: &Path) -> String {
    let path = path.strip_prefix(".").unwrap_or(path);
    path.display().to_string().chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// The manifests below a folder, sorted. Hidden folders and Helm charts are passed by, and links are not followed.
fn search(folder: &Path, inner: &str, is_inside: bool, found: &mut Found) -> anyhow::Result<()> {
    if folder.join(CHART).exists() {
        chart(&folder.display().to_string());
        return Ok(());
    }
    let is_kustomized = rendering::is_kustomization(folder);
    if is_kustomized {
        found.kustomizations.push(inner.to_owned());
    }
    let is_inside = is_inside || is_kustomized;
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut entries =
        entries.collect::<Result<Vec<_>, _>>().with_context(|| format!("reading {}", folder.display()))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let about = entry.file_type().with_context(|| format!("reading {}", path.display()))?;
        let below = joined(inner, &name);
        if about.is_dir() && !name.starts_with('.') {
            search(&path, &below, is_inside, found)?;
        } else if about.is_file() && is_manifest(&path) && !(is_kustomized && is_kustomization(&path)) {
            let file = file(&path)?;
            found.files.extend(come_across(path, file).map(|given| (given, below, is_inside)));
        }
    }
    Ok(())
}

/// The repository around the current folder, and the path of the folder in it.
fn around() -> anyhow::Result<(git2::Repository, PathBuf)> {
    let here = std::env::current_dir().context("finding the current folder")?;
    let repository = git2::Repository::discover(&here).map_err(|error| {
        remedied(
            anyhow!("{} is in no git repository: {}", here.display(), error.message()),
            "run it inside the repository, or leave out --git",
        )
    })?;
    // Paths are relative to the current folder, as everywhere.
    let prefix =
        repository.workdir().and_then(|root| here.strip_prefix(root.canonicalize().ok()?).ok().map(Path::to_owned));
    Ok((repository, prefix.unwrap_or_default()))
}

fn commit<'r>(repository: &'r git2::Repository, revision: &str) -> anyhow::Result<git2::Commit<'r>> {
    let found = repository.revparse_single(revision).and_then(|object| object.peel_to_commit());
    found.map_err(|error| unknown(revision, &error))
}

fn unknown(revision: &str, error: &git2::Error) -> anyhow::Error {
    remedied(
        anyhow!("{revision} is no revision of this repository: {}", error.message()),
        "give a branch, a tag or a commit",
    )
}

/// A revision of the repository around the current folder: the repository, the commit, and the path in it of a path from the
/// current folder.
pub fn in_repository(revision: &str, path: &Path) -> anyhow::Result<(git2::Repository, String, String)> {
    let (repository, prefix) = around()?;
    let commit = commit(&repository, revision)?.id().to_string();
    let path = plain(&prefix.join(path)).ok_or_else(|| anyhow!("{} leads out of the repository", path.display()))?;
    let path = path.to_str().ok_or_else(|| anyhow!("{} is not UTF-8", path.display()))?.to_owned();
    Ok((repository, commit, path))
}

/// Reads blobs straight from the object database: nothing is checked out, nothing is written.
///
/// Files are called by their paths in the repository, after `label`.
pub fn in_git(revision: &str, paths: &[PathBuf], label: String, how: Rendering) -> anyhow::Result<Reading> {
    let (repository, prefix) = around()?;
    let commit = commit(&repository, revision)?;
    let tree = commit.tree().map_err(|error| unknown(revision, &error))?;
    let whole = git::Store::local(repository.path())?.commit_tree(&commit.id().to_string())?;
    let called = |path: &str| shown(Path::new(&format!("{label}{path}")));
    let here = [PathBuf::new()];
    let paths = if paths.is_empty() { &here[..] } else { paths };
    let mut all = Reading::default();
    for path in paths {
        let path =
            plain(&prefix.join(path)).ok_or_else(|| anyhow!("{} leads out of the repository", path.display()))?;
        let missing = |error: git2::Error| anyhow!("reading {revision}:{}: {}", path.display(), error.message());
        let name = path.to_string_lossy().into_owned();
        let below = if name.is_empty() {
            Ok(tree.clone())
        } else {
            let entry = tree.get_path(&path).map_err(|error| NotThere {
                revision: revision.to_owned(),
                path: path.display().to_string(),
                cause: error.message().to_owned(),
            })?;
            entry.to_object(&repository).map_err(missing)?.into_tree()
        };
        match below {
            Ok(below) => {
                let mut found = Found::default();
                blobs(&repository, &below, &label, (&name, false), &mut found)?;
                let Reading { given, kustomized } = found.rendered(&whole, &name, how, &called);
                all.given.extend(given);
                all.kustomized.extend(kustomized);
            }
            Err(object) => {
                let blob = object.peel_to_blob().map_err(missing)?;
                let file = manifest::read(called(&name), blob.content());
                all.given.push(Given { file, path: path.clone(), role: Role::Named });
            }
        }
    }
    Ok(all)
}

/// A path without `.` and `..`, if it stays inside.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut parts: Vec<OsString> = Vec::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => drop(parts.pop()?),
            std::path::Component::Normal(name) => parts.push(name.to_owned()),
            std::path::Component::RootDir | std::path::Component::Prefix(_) => return None,
        }
    }
    Some(parts.iter().collect())
}

/// The manifests of a tree, in its order; `inner` is its path, and whether a kustomization holds it.
fn blobs(
    repository: &git2::Repository,
    tree: &git2::Tree<'_>,
    label: &str,
    (inner, is_inside): (&str, bool),
    found: &mut Found,
) -> anyhow::Result<()> {
    if tree.get_name(CHART).is_some() {
        chart(&format!("{label}{inner}"));
        return Ok(());
    }
    let is_link = |entry: &git2::TreeEntry<'_>| entry.filemode() == 0o120_000;
    let is_kustomized = FILE_NAMES
        .iter()
        .any(|name| tree.get_name(name).is_some_and(|entry| entry.kind() == Some(git2::ObjectType::Blob)));
    if is_kustomized {
        found.kustomizations.push(inner.to_owned());
    }
    let is_inside = is_inside || is_kustomized;
    for entry in tree {
        let name = joined(inner, &String::from_utf8_lossy(entry.name_bytes()));
        let path = Path::new(&name);
        let broken = |error: git2::Error| anyhow!("reading {label}{name}: {}", error.message());
        let hidden = entry.name_bytes().starts_with(b".");
        match entry.kind() {
            Some(git2::ObjectType::Tree) if !hidden => {
                let below = repository.find_tree(entry.id()).map_err(broken)?;
                blobs(repository, &below, label, (&name, is_inside), found)?;
            }
            // A link's blob is a path, not a manifest.
            Some(git2::ObjectType::Blob)
                if !is_link(&entry) && is_manifest(path) && !(is_kustomized && is_kustomization(path)) =>
            {
                let blob = repository.find_blob(entry.id()).map_err(broken)?;
                let file = manifest::read(shown(Path::new(&format!("{label}{name}"))), blob.content());
                let given = come_across(PathBuf::from(&name), file);
                found.files.extend(given.map(|given| (given, name.clone(), is_inside)));
            }
            _ => {}
        }
    }
    Ok(())
}
