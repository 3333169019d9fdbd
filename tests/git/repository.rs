//! Repositories made by a test: good ones by commits, hostile ones by raw objects.

use std::path::{Path, PathBuf};

use git2::{ObjectType, Oid, Repository, Signature, Time};

/// A bare repository in a folder of its own.
pub struct Made {
    pub folder: tempfile::TempDir,
    pub repository: Repository,
}

/// An entry of a raw tree: mode, name, object.
pub type Entry<'a> = (u32, &'a [u8], Oid);

pub const FILE: u32 = 0o100_644;
pub const FOLDER: u32 = 0o040_000;
pub const LINK: u32 = 0o120_000;
pub const SUBMODULE: u32 = 0o160_000;

impl Made {
    pub fn new() -> Made {
        let folder = tempfile::tempdir().unwrap();
        let mut options = git2::RepositoryInitOptions::new();
        options.bare(true).initial_head("main");
        let repository = Repository::init_opts(folder.path().join("made.git"), &options).unwrap();
        Made { folder, repository }
    }

    pub fn path(&self) -> PathBuf {
        self.repository.path().to_owned()
    }

    pub fn blob(&self, text: impl AsRef<[u8]>) -> Oid {
        self.repository.blob(text.as_ref()).unwrap()
    }

    /// A tree as it is given, in git's format, however odd.
    pub fn tree(&self, entries: &[Entry<'_>]) -> Oid {
        let mut bytes = Vec::new();
        for (mode, name, id) in entries {
            bytes.extend(format!("{mode:o} ").as_bytes());
            bytes.extend(*name);
            bytes.push(0);
            bytes.extend(id.as_bytes());
        }
        self.repository.odb().unwrap().write(ObjectType::Tree, &bytes).unwrap()
    }

    /// A tree of files, with the folders that their paths name.
    pub fn files(&self, files: &[(&str, &str)]) -> Oid {
        let mut tree = git2::build::TreeUpdateBuilder::new();
        for (path, text) in files {
            tree.upsert(*path, self.blob(text), git2::FileMode::Blob);
        }
        let empty = self.repository.find_tree(self.tree(&[])).unwrap();
        tree.create_updated(&self.repository, &empty).unwrap()
    }

    /// A commit of a tree.
    pub fn commit(&self, tree: Oid, parents: &[Oid], message: &str) -> Oid {
        let tree = self.repository.find_tree(tree).unwrap();
        let parents: Vec<git2::Commit<'_>> =
            parents.iter().map(|id| self.repository.find_commit(*id).unwrap()).collect();
        let parents: Vec<&git2::Commit<'_>> = parents.iter().collect();
        let who = Signature::new("Ada", "ada@example.org", &Time::new(1_700_000_000, 0)).unwrap();
        self.repository.commit(None, &who, &who, message, &tree, &parents).unwrap()
    }

    /// Points a reference at an object.
    pub fn point(&self, name: &str, id: Oid) {
        self.repository.reference(name, id, true, "").unwrap();
    }

    /// A commit of files on top of a branch, which is moved.
    pub fn push(&self, branch: &str, files: &[(&str, &str)], message: &str) -> Oid {
        let name = format!("refs/heads/{branch}");
        let parent = self.repository.find_reference(&name).ok().and_then(|found| found.target());
        let id = self.commit(self.files(files), parent.as_slice(), message);
        self.point(&name, id);
        id
    }
}

/// Every file below a folder, with its length.
pub fn listing(folder: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap().is_dir() {
                true => open.push(entry.path()),
                false => found.push((entry.path(), entry.metadata().unwrap().len())),
            }
        }
    }
    found.sort();
    found
}
