//! A repository on this machine: a bare one that is ours and filled by fetches, or one of the user's that is read in
//! place.
//!
//! Never has a work tree, never runs anything.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File as Handle, TryLockError},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use git2::{ObjectType, Oid, Repository, RepositoryInitOptions};

use super::{
    Error,
    history::{self, About, Relation},
    limits::ReadLimits,
    render::Results,
    tree::{self, Files},
};
use crate::model::{git_source::Reference, remote::Remote, version_range::VersionRange};

/// Folders that only their owner enters.
const OWN: u32 = 0o700;

/// A repository on this machine. Clones are the same store.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    /// Where the repository is.
    folder: PathBuf,
    repository: Mutex<Repository>,
    /// What kustomizations of its commits rendered.
    results: Mutex<Results>,
    /// One fetch at a time; those who wait find what it brought.
    fetching: tokio::sync::Mutex<()>,
    /// Held as long as the store is open, so that two processes do not share it.
    lock: Option<Handle>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that was forked a moment ago shares it until its exec.
        if let Some(lock) = &self.lock {
            let _ = lock.unlock();
        }
    }
}

/// What following a reference led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The commit.
    pub commit: String,
    /// What led to it.
    pub reached: Reached,
    /// How it follows the commit that was known before; `None` if there was none.
    pub relation: Option<Relation>,
    /// The tag that led to it.
    pub tag: Option<Tag>,
}

impl Fetched {
    /// Whether the reference was moved to a history that does not contain what it was at before.
    pub fn rewritten(&self) -> bool {
        matches!(self.relation, Some(Relation::Diverged | Relation::Behind))
    }
}

/// What led to a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reached {
    /// A branch.
    Branch(String),
    /// A tag, by its name or by its version.
    Tag(String),
    /// Its own hash.
    Hash,
}

impl std::fmt::Display for Reached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reached::Branch(name) => write!(f, "refs/heads/{name}"),
            Reached::Tag(name) => write!(f, "refs/tags/{name}"),
            Reached::Hash => Ok(()),
        }
    }
}

/// A tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// Its name.
    pub name: String,
    /// The tag object, if it is more than a name: that is what can be signed.
    pub object: Option<String>,
}

impl Store {
    /// Opens the store of a remote repository, or makes one. Stores live side by side in `cache`, one per repository.
    pub fn open(cache: &Path, remote: &Remote) -> Result<Store, Error> {
        let name = name_of(remote);
        let folder = cache.join(format!("{name}.git"));
        let failed = |cause: String| Error::Store { path: folder.clone(), cause };
        // Repositories may be private: nobody else on this machine reads them.
        fs::DirBuilder::new().recursive(true).mode(OWN).create(cache).map_err(|error| failed(error.to_string()))?;
        let lock = Handle::create(cache.join(format!("{name}.lock"))).map_err(|error| failed(error.to_string()))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => failed("is in use by another process".to_owned()),
            TryLockError::Error(error) => failed(error.to_string()),
        })?;
        recover(&folder).map_err(|error| failed(error.to_string()))?;
        let repository = match Repository::open_bare(&folder) {
            Ok(repository) => repository,
            // What cannot be opened can be fetched again.
            Err(_) => {
                if folder.exists() {
                    fs::remove_dir_all(&folder).map_err(|error| failed(error.to_string()))?;
                }
                create(&folder)?
            }
        };
        isolate(&repository, &folder).map_err(|error| failed(error.message().to_owned()))?;
        let own = fs::Permissions::from_mode(OWN);
        fs::set_permissions(&folder, own).map_err(|error| failed(error.to_string()))?;
        Ok(Store::of(folder, repository, Some(lock)))
    }

    /// Opens the store that a lock is for, unless a process has it open.
    pub(super) fn reopen(lock: &Path) -> Result<Store, Error> {
        let folder = lock.with_extension("git");
        let failed = |cause: String| Error::Store { path: folder.clone(), cause };
        let handle = Handle::options().write(true).open(lock).map_err(|error| failed(error.to_string()))?;
        handle.try_lock().map_err(|error| failed(error.to_string()))?;
        let repository = Repository::open_bare(&folder).map_err(|error| failed(error.message().to_owned()))?;
        Ok(Store::of(folder, repository, Some(handle)))
    }

    /// Whether nobody else holds this store.
    pub(super) fn is_unshared(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Closes a store of ours and removes it from the disk, if nobody else holds it.
    pub(super) fn remove(self) {
        let Some(inner) = Arc::into_inner(self.0) else { return };
        if inner.lock.is_none() {
            return;
        }
        // What cannot be removed is found again by the next daemon; the lock goes last.
        let removed = fs::remove_dir_all(&inner.folder);
        if removed.is_ok() || !inner.folder.exists() {
            drop(fs::remove_file(inner.folder.with_extension("lock")));
        }
    }

    /// Opens a repository of the user's, to be read in place.
    pub fn local(path: &Path) -> Result<Store, Error> {
        let failed = |error: git2::Error| Error::Store { path: path.to_owned(), cause: error.message().to_owned() };
        let repository = Repository::open(path).map_err(failed)?;
        // References of a linked work tree are kept with those of the repository.
        Ok(Store::of(repository.commondir().to_owned(), repository, None))
    }

    fn of(folder: PathBuf, repository: Repository, lock: Option<Handle>) -> Store {
        let fetching = tokio::sync::Mutex::new(());
        Store(Arc::new(Inner { folder, repository: Mutex::new(repository), results: Mutex::default(), fetching, lock }))
    }

    /// Where the repository is.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    pub(super) fn repository(&self) -> MutexGuard<'_, Repository> {
        // A panic elsewhere leaves no half-written state: objects are whole or absent.
        self.0.repository.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn results(&self) -> MutexGuard<'_, Results> {
        // A panic elsewhere leaves results that hold: one is kept whole or not at all.
        self.0.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn fetching(&self) -> &tokio::sync::Mutex<()> {
        &self.0.fetching
    }

    pub(super) fn failed(&self, error: &git2::Error) -> Error {
        Error::Store { path: self.0.folder.clone(), cause: error.message().to_owned() }
    }

    /// Follows a reference in the repository itself, as it is on this machine.
    pub fn resolve(&self, reference: &Reference, known: Option<&str>) -> Result<Fetched, Error> {
        let repository = self.repository();
        let missing = |what: String| Error::Missing { remote: self.0.folder.display().to_string(), what };
        let named = |name: String| repository.find_reference(&name).ok().and_then(|found| found.target());
        let (target, reached) = match reference {
            Reference::Default => {
                let head = repository.find_reference("HEAD").map_err(|error| self.failed(&error))?;
                // A branch without a commit yet, or a head that stands on a commit.
                let branch = head.symbolic_target().ok().flatten().and_then(|name| name.strip_prefix("refs/heads/"));
                match branch {
                    Some(branch) => {
                        let target = named(format!("refs/heads/{branch}"));
                        let target = target.ok_or_else(|| missing(format!("commit on its branch {branch} yet")))?;
                        (target, Reached::Branch(branch.to_owned()))
                    }
                    None => (head.target().ok_or_else(|| missing("head".to_owned()))?, Reached::Hash),
                }
            }
            Reference::Branch(name) => {
                let target = named(format!("refs/heads/{name}"));
                (target.ok_or_else(|| missing(format!("branch {name}")))?, Reached::Branch(name.clone()))
            }
            Reference::Tag(name) => {
                let target = named(format!("refs/tags/{name}"));
                (target.ok_or_else(|| missing(format!("tag {name}")))?, Reached::Tag(name.clone()))
            }
            Reference::Semver(range) => {
                let tags = repository.tag_names(None).map_err(|error| self.failed(&error))?;
                let tags: Vec<&str> = tags.iter().filter_map(|name| name.ok().flatten()).collect();
                let name = highest(range, tags.into_iter())?;
                let name = name.ok_or_else(|| missing(format!("tag in the range {range}")))?;
                (named(format!("refs/tags/{name}")).ok_or_else(|| missing(format!("tag {name}")))?, Reached::Tag(name))
            }
            Reference::Commit(hash) => {
                let id = Oid::from_str(hash).map_err(|_| missing(format!("commit {hash}")))?;
                (id, Reached::Hash)
            }
        };
        drop(repository);
        self.arrive(target, reached, known)
    }

    /// What an object of the store amounts to, once it is there.
    pub(super) fn arrive(&self, target: Oid, reached: Reached, known: Option<&str>) -> Result<Fetched, Error> {
        let repository = self.repository();
        let missing = |_| Error::Missing {
            remote: self.0.folder.display().to_string(),
            what: match &reached {
                Reached::Branch(_) | Reached::Tag(_) => format!("commit at {reached}"),
                Reached::Hash => format!("commit {target}"),
            },
        };
        let object = repository.find_object(target, None).map_err(missing)?;
        let annotated = object.kind() == Some(ObjectType::Tag);
        let commit = object.peel_to_commit().map_err(missing)?.id();
        let tag = match &reached {
            Reached::Tag(name) => Some(Tag { name: name.clone(), object: annotated.then(|| target.to_string()) }),
            Reached::Branch(_) | Reached::Hash => None,
        };
        let relation = known.map(|known| match Oid::from_str(known) {
            Ok(known) => history::relation(&repository, commit, known),
            Err(_) => Relation::Unknown,
        });
        Ok(Fetched { commit: commit.to_string(), reached, relation, tag })
    }

    /// Whether a commit is here.
    pub fn has(&self, commit: &str) -> bool {
        Oid::from_str(commit).is_ok_and(|id| self.repository().find_commit(id).is_ok())
    }

    /// The manifests below a folder of a commit.
    pub fn files(&self, commit: &str, path: &str, exclude: &[String], limits: &ReadLimits) -> Result<Files, Error> {
        self.files_but(commit, path, exclude, limits, &HashMap::new())
    }

    /// The same without the bytes of files that are known: their hashes and sizes, by path.
    pub fn files_but(
        &self,
        commit: &str,
        path: &str,
        exclude: &[String],
        limits: &ReadLimits,
        known: &HashMap<String, (String, usize)>,
    ) -> Result<Files, Error> {
        let repository = self.repository();
        let root = self.commit(&repository, commit)?.tree().map_err(|error| self.failed(&error))?;
        tree::read(&repository, &root, path, exclude, limits, known)?
            .ok_or_else(|| Error::Missing { remote: format!("commit {commit}"), what: format!("folder {path:?}") })
    }

    /// The hash of a folder of a commit: equal hashes, equal content. What is not there has none.
    pub fn folder_hash(&self, commit: &str, path: &str) -> Result<Option<String>, Error> {
        let repository = self.repository();
        let root = self.commit(&repository, commit)?.tree().map_err(|error| self.failed(&error))?;
        Ok(tree::folder(&repository, &root, path)?.map(|tree| tree.id().to_string()))
    }

    /// What a commit says about itself.
    pub fn about(&self, commit: &str) -> Result<About, Error> {
        let repository = self.repository();
        Ok(About::of(&self.commit(&repository, commit)?))
    }

    /// How a commit follows another, as far as the store reaches.
    pub fn relation(&self, commit: &str, other: &str) -> Relation {
        match (Oid::from_str(commit), Oid::from_str(other)) {
            (Ok(commit), Ok(other)) => history::relation(&self.repository(), commit, other),
            (Ok(_) | Err(_), Ok(_) | Err(_)) => Relation::Unknown,
        }
    }

    /// For each path, the newest commit at or before `commit` that gave it the content it has there. At the end of a
    /// shallow history that is the oldest commit known to have it.
    pub fn changed_by(&self, commit: &str, paths: &[String]) -> Result<HashMap<String, String>, Error> {
        let repository = self.repository();
        let id = self.commit(&repository, commit)?.id();
        let found = history::changed_by(&repository, id, paths);
        Ok(found.into_iter().map(|(path, commit)| (path, commit.to_string())).collect())
    }

    /// How many commits before a commit these come, counted from the newest, as far as the store reaches.
    pub fn ages(&self, commit: &str, of: &HashSet<String>) -> Result<HashMap<String, usize>, Error> {
        let repository = self.repository();
        let id = self.commit(&repository, commit)?.id();
        history::ages(&repository, id, of).map_err(|error| self.failed(&error))
    }

    pub(super) fn commit<'r>(&self, repository: &'r Repository, commit: &str) -> Result<git2::Commit<'r>, Error> {
        let missing =
            || Error::Missing { remote: self.0.folder.display().to_string(), what: format!("commit {commit}") };
        let id = Oid::from_str(commit).map_err(|_| missing())?;
        repository.find_commit(id).map_err(|_| missing())
    }
}

/// Lets a store of ours be read by its own configuration alone, whatever the machine and its users say about git.
fn isolate(repository: &Repository, folder: &Path) -> Result<(), git2::Error> {
    repository.set_config(&git2::Config::open(&folder.join("config"))?)
}

/// The tag that is highest in a range.
pub fn highest<'a>(range: &str, tags: impl Iterator<Item = &'a str>) -> Result<Option<String>, Error> {
    let wrong = |reason| Error::Address { url: range.to_owned(), reason };
    let parsed = VersionRange::parse(range).map_err(wrong)?;
    Ok(parsed.highest(tags).map(|(tag, _)| tag.to_owned()))
}

/// A file name that stands for a repository.
fn name_of(remote: &Remote) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, remote.to_string().as_bytes());
    let digest: String = digest.as_ref()[..12].iter().map(|byte| format!("{byte:02x}")).collect();
    let last = remote.segments().last().copied().unwrap_or_default().to_owned();
    let last: String = last.chars().filter(char::is_ascii_alphanumeric).take(40).collect();
    format!("{last}-{digest}")
}

/// An empty bare repository, without templates.
pub fn create(folder: &Path) -> Result<Repository, Error> {
    let mut options = RepositoryInitOptions::new();
    options.bare(true).external_template(false).initial_head("main").mkpath(true);
    Repository::init_opts(folder, &options)
        .map_err(|error| Error::Store { path: folder.to_owned(), cause: error.message().to_owned() })
}

/// What a swap leaves behind if it is cut short: the old repository stays until the new one has its name.
fn recover(folder: &Path) -> std::io::Result<()> {
    let (old, new) = (folder.with_extension("old"), folder.with_extension("new"));
    if !folder.exists() && old.exists() {
        fs::rename(&old, folder)?;
    }
    for left in [old, new] {
        if left.exists() {
            fs::remove_dir_all(left)?;
        }
    }
    Ok(())
}
