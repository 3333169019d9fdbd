//! The files of a build: what a tree of blobs must answer, and how paths of a kustomization are followed in it.
//!
//! Links are followed inside the tree, never out of it. Every path that was looked at is noted, so that a caller knows
//! when a build would come out differently.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
};

use crate::{
    Budgets, Restrict,
    fault::{At, Fault, Res},
    read::Text,
};

/// What stands at a path of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A file of so many bytes.
    File {
        /// Its size, known before it is read.
        size: u64,
    },
    /// A directory.
    Directory,
    /// A symbolic link.
    Link {
        /// What it says, unread.
        target: String,
    },
    /// Something that cannot be read here, such as a submodule.
    Other {
        /// What it is.
        what: &'static str,
    },
}

/// A tree of files, as a commit is one. Paths are relative to its top, separated by `/`, without `.`, `..` or links on
/// the way; the empty path is the top.
pub trait Tree {
    /// What stands at a path; `None` if nothing does.
    fn entry(&self, path: &str) -> Result<Option<Entry>, String>;
    /// The content of a file.
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;
}

/// What a build asked about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dependency {
    /// Whether there is something, or what a link says.
    Entry,
    /// The content.
    Content,
}

/// The files of one build, by number.
pub struct Files<'a> {
    tree: &'a dyn Tree,
    restrict: Restrict,
    budgets: &'a Budgets,
    names: RefCell<Vec<Rc<str>>>,
    numbers: RefCell<BTreeMap<Rc<str>, u32>>,
    dependencies: RefCell<BTreeMap<Rc<str>, Dependency>>,
    files: Cell<usize>,
    bytes: Cell<u64>,
}

/// What a path of a kustomization leads to.
pub enum Found {
    File(Rc<str>),
    Directory(Rc<str>),
    Nothing,
}

impl<'a> Files<'a> {
    pub fn new(tree: &'a dyn Tree, restrict: Restrict, budgets: &'a Budgets) -> Files<'a> {
        Files {
            tree,
            restrict,
            budgets,
            names: RefCell::default(),
            numbers: RefCell::default(),
            dependencies: RefCell::default(),
            files: Cell::new(0),
            bytes: Cell::new(0),
        }
    }

    pub fn name(&self, file: u32) -> Option<Rc<str>> {
        self.names.borrow().get(file as usize).cloned()
    }

    pub fn names(&self) -> Vec<Rc<str>> {
        self.names.borrow().clone()
    }

    pub fn dependencies(self) -> BTreeMap<Rc<str>, Dependency> {
        self.dependencies.into_inner()
    }

    pub fn number(&self, path: &str) -> u32 {
        if let Some(number) = self.numbers.borrow().get(path) {
            return *number;
        }
        let mut names = self.names.borrow_mut();
        let number = names.len() as u32;
        names.push(path.into());
        self.numbers.borrow_mut().insert(path.into(), number);
        number
    }

    fn note(&self, path: &str, dependency: Dependency) {
        let mut dependencies = self.dependencies.borrow_mut();
        let entry = dependencies.entry(path.into()).or_insert(dependency);
        *entry = (*entry).max(dependency);
    }

    fn entry(&self, path: &str) -> Res<Option<Entry>> {
        self.note(path, Dependency::Entry);
        self.tree.entry(path).map_err(|error| Fault::new(format!("{path} cannot be read: {error}")))
    }

    /// Follows a path from a directory; links are followed.
    pub fn find(&self, directory: &str, path: &str) -> Res<Found> {
        let Some(clean) = join(directory, path) else {
            return Err(Fault::new(format!("{path:?} leads out of the repository"))
                .remedy("move what it names into the repository"));
        };
        let mut parts: Vec<String> =
            clean.split('/').rev().filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let mut here = String::new();
        let mut links = 0;
        let mut file = false;
        while let Some(part) = parts.pop() {
            if part == ".." {
                // Only a link can say so.
                let Some(cut) = (if here.is_empty() { None } else { Some(here.rfind('/').unwrap_or(0)) }) else {
                    return Err(Fault::new(format!(
                        "a symbolic link on the way to {path:?} leads out of the repository"
                    ))
                    .remedy("replace the link by what it names"));
                };
                here.truncate(cut);
                continue;
            }
            if file {
                return Ok(Found::Nothing);
            }
            let next = if here.is_empty() { part } else { format!("{here}/{part}") };
            match self.entry(&next)? {
                None => return Ok(Found::Nothing),
                Some(Entry::Directory) => here = next,
                Some(Entry::File { .. }) => {
                    here = next;
                    file = true;
                }
                Some(Entry::Link { target }) => {
                    links += 1;
                    if links > 40 {
                        return Err(Fault::new(format!("the symbolic links on the way to {path:?} go in a circle")));
                    }
                    if target.starts_with('/') {
                        return Err(Fault::new(format!("{next} is a symbolic link to an absolute path"))
                            .remedy("replace the link by what it names"));
                    }
                    parts.extend(
                        target.split('/').rev().filter(|part| !part.is_empty() && *part != ".").map(str::to_owned),
                    );
                }
                Some(Entry::Other { what }) => {
                    return Err(Fault::new(format!("{next} is {what}, which is not part of the repository"))
                        .remedy("copy what is needed into the repository"));
                }
            }
        }
        Ok(if file { Found::File(here.into()) } else { Found::Directory(here.into()) })
    }

    /// Reads a file that a kustomization in `root` names.
    pub fn load(&self, root: &str, path: &str) -> Res<(Rc<str>, Vec<u8>)> {
        if path.is_empty() {
            return Err(Fault::new("the path is empty").remedy("name a file, or remove the entry"));
        }
        if let Some(what) = remote(path) {
            return Err(refuse_remote(path, what));
        }
        if path.starts_with('/') {
            return Err(Fault::new(format!("{path:?} is an absolute path"))
                .remedy("write a path relative to the kustomization"));
        }
        match self.find(root, path)? {
            Found::Nothing => Err(Fault::new(format!("there is no file {}", join(root, path).unwrap_or_default()))
                .remedy("correct the path, or add the file")),
            Found::Directory(directory) => Err(Fault::new(format!("{} is a directory, not a file", shown(&directory)))),
            Found::File(file) => {
                let inside = root.is_empty() || file.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'));
                if self.restrict == Restrict::Root && !inside {
                    return Err(Fault::new(format!(
                        "{file} is not in or below {}, the directory of the kustomization",
                        shown(root)
                    ))
                    .remedy(
                        "move the file there, make its directory a base, or lift the restriction for this source",
                    ));
                }
                let bytes = self.content(&file)?;
                Ok((file, bytes))
            }
        }
    }

    /// Reads a file of YAML or JSON.
    pub fn load_text(&self, root: &str, path: &str) -> Res<Text> {
        let (file, bytes) = self.load(root, path)?;
        self.text(&file, bytes)
    }

    pub fn text(&self, file: &str, bytes: Vec<u8>) -> Res<Text> {
        let number = self.number(file);
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() as u32 + 1;
            Fault::new("the file is not UTF-8").at(At { file: number, line, column: 1 }).remedy("save it as UTF-8")
        })?;
        Ok(Text::file(number, text.strip_prefix('\u{feff}').unwrap_or(&text)))
    }

    fn content(&self, file: &str) -> Res<Vec<u8>> {
        self.files.set(self.files.get() + 1);
        if self.files.get() > self.budgets.files {
            return Err(Fault::budget(format!("the build reads more than {} files", self.budgets.files)));
        }
        let size = match self.entry(file)? {
            Some(Entry::File { size }) => size,
            _ => 0,
        };
        self.bytes.set(self.bytes.get() + size);
        if size > self.budgets.file_bytes {
            return Err(Fault::budget(format!("{file} has {size} bytes; {} are allowed", self.budgets.file_bytes)));
        }
        if self.bytes.get() > self.budgets.bytes {
            return Err(Fault::budget(format!("the build reads more than {} bytes", self.budgets.bytes)));
        }
        self.note(file, Dependency::Content);
        self.tree.read(file).map_err(|error| Fault::new(format!("{file} cannot be read: {error}")))
    }

    /// The kustomization file of a directory.
    pub fn kustomization(&self, directory: &str) -> Res<Text> {
        let mut found = Vec::new();
        for name in crate::FILE_NAMES {
            // A file that cannot be loaded counts as not there.
            if let Ok(Found::File(file)) = self.find(directory, name) {
                let inside =
                    directory.is_empty() || file.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'));
                if inside || self.restrict == Restrict::Repository {
                    found.push(file);
                }
            }
        }
        match found.as_slice() {
            [] => Err(Fault::new(format!("{} has no kustomization.yaml", shown(directory)))
                .remedy("list its files one by one, or add a kustomization.yaml to it")),
            [file] => {
                let bytes = self.content(file)?;
                self.text(file, bytes)
            }
            [first, second, ..] => {
                Err(Fault::new(format!("{} has two kustomization files: {first} and {second}", shown(directory)))
                    .at(At { file: self.number(second), line: 1, column: 1 })
                    .remedy("remove one of them"))
            }
        }
    }
}

/// A directory in a message.
pub fn shown(directory: &str) -> &str {
    if directory.is_empty() { "the top of the repository" } else { directory }
}

/// A path below a directory, without `.` and `..`; `None` if it leads out of the tree.
pub fn join(directory: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop()?,
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// What kind of address this is, if it is one.
pub fn remote(path: &str) -> Option<&'static str> {
    let lower = path.to_ascii_lowercase();
    let lower = lower.strip_prefix("git::").unwrap_or(&lower);
    if path.len() != lower.len() {
        return Some("a git repository");
    }
    if lower.starts_with("http://") || lower.starts_with("https://") {
        return Some("an address on the network");
    }
    if ["ssh://", "file://", "github.com/", "github.com:"].iter().any(|prefix| lower.starts_with(prefix)) {
        return Some("a git repository");
    }
    let (user, rest) = path.split_once('@')?;
    let is_user = user.starts_with(|c: char| c.is_ascii_alphabetic())
        && user.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    (is_user && rest.contains([':', '/'])).then_some("a git repository")
}

pub fn refuse_remote(path: &str, what: &str) -> Box<Fault> {
    Fault::new(format!("{path:?} is {what}: nothing is fetched while rendering"))
        .remedy("copy it into the repository (`kustomize localize` does), and name it by a relative path")
}
