//! Kustomizations of a commit, rendered from the object database; what is as it was is not rendered again.
//!
//! Results are kept with the store, so that all sources of one repository share them. A result holds as long as everything
//! that was asked about its paths is answered alike. Never follows anything out of the repository, never writes.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use git2::{ObjectType, Oid, Repository};
use ring::digest::{SHA256, digest};

use super::{
    Error, Files, ReadLimits, Store,
    tree::{self, honest},
};
use crate::{
    kustomize::{self, Dependency, Entry, FILE_NAMES, Rendered, Tree},
    model::git_source::Rendering,
};

/// How many results a store keeps.
const KEPT: usize = 2_000;
/// How many kustomizations the folder of a source may hold.
const FOLDERS: usize = 2_000;
/// How long rendering one commit may take.
const TIME: Duration = Duration::from_secs(60);
/// The longest path that is looked at, in bytes.
const PATH_BYTES: usize = 1024;
/// The longest link that is followed, in bytes.
const LINK_BYTES: usize = 1024;

/// What a folder of a commit holds, with its kustomizations rendered.
#[derive(Debug, Clone, Default)]
pub struct Content {
    /// Its manifests, and what was not read.
    pub files: Files,
    /// What its kustomizations rendered, but for those that others are made of.
    pub kustomized: Vec<Kustomized>,
}

/// What a kustomization rendered.
#[derive(Debug, Clone)]
pub struct Kustomized {
    /// The objects, or what is wrong.
    pub rendered: Arc<Rendered>,
    /// Tells the outcome from others: equal digests, equal outcomes.
    pub digest: String,
    /// Manifests in its folder that nothing reads.
    pub unused: Vec<String>,
}

/// A folder of a commit that is a kustomization, as it was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KustomizationFolder {
    /// Its path.
    pub path: String,
    /// The manifests in and below it.
    pub manifests: Vec<String>,
}

/// The results of a store.
#[derive(Default)]
pub struct Results {
    known: HashMap<(String, Rendering), Known>,
    /// Counts what was asked for, so that what was not for long goes first.
    asked: u64,
}

struct Known {
    answers: Vec<(String, Dependency, String)>,
    rendered: Arc<Rendered>,
    digest: String,
    /// The tree that it was last found to hold for.
    root: Oid,
    asked: u64,
}

impl Store {
    /// What a folder of a commit holds, without the bytes of files that are known: their hashes and sizes, by path.
    pub fn content(
        &self,
        commit: &str,
        path: &str,
        exclude: &[String],
        known: &HashMap<String, (String, usize)>,
        how: Rendering,
    ) -> Result<Content, Error> {
        let files = self.files_but(commit, path, exclude, &ReadLimits::default(), known)?;
        let kustomized = self.kustomized(commit, path, &files.kustomizations, how)?;
        Ok(Content { files, kustomized })
    }

    /// Renders the kustomizations that were found below a path of a commit, but for those that others are made of.
    pub fn kustomized(
        &self,
        commit: &str,
        path: &str,
        found: &[KustomizationFolder],
        how: Rendering,
    ) -> Result<Vec<Kustomized>, Error> {
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let limit = |what: &str, allowed: String| Err(Error::Limit { what: what.to_owned(), allowed });
        if found.len() > FOLDERS {
            return limit("the number of kustomizations", FOLDERS.to_string());
        }
        let (tree, began) = (self.commit_tree(commit)?, Instant::now());
        let mut all = Vec::with_capacity(found.len());
        for folder in found {
            let (rendered, digest) = render(self, &tree, &folder.path, how);
            all.push((folder, Kustomized { rendered, digest, unused: Vec::new() }));
            if began.elapsed() > TIME {
                return limit("the time that rendering takes", format!("{} s", TIME.as_secs()));
            }
        }
        let mut roots = kustomize::roots(all, path.trim_matches('/'), |(_, one)| &one.rendered);
        let rendered: Vec<Arc<Rendered>> = roots.iter().map(|(_, one)| one.rendered.clone()).collect();
        for (folder, one) in roots.iter_mut().filter(|(_, one)| one.rendered.fault.is_none()) {
            let names = folder.manifests.iter().map(String::as_str);
            one.unused =
                kustomize::unused(names, rendered.iter().map(|one| &**one)).into_iter().map(str::to_owned).collect();
        }
        Ok(roots.into_iter().map(|(_, one)| one).collect())
    }

    /// Whether a folder of a commit, or one below it, is a kustomization.
    pub fn is_kustomized(&self, commit: &str, path: &str) -> Result<bool, Error> {
        let repository = self.repository();
        let root = self.commit(&repository, commit)?.tree().map_err(|error| self.failed(&error))?;
        let Some(folder) = tree::folder(&repository, &root, path)? else { return Ok(false) };
        holds_kustomization(&repository, folder).map_err(|error| self.failed(&error))
    }

    /// The files of a commit, as kustomizations read them.
    pub fn commit_tree(&self, commit: &str) -> Result<CommitTree, Error> {
        let repository = self.repository();
        let root = self.commit(&repository, commit)?.tree_id();
        drop(repository);
        Ok(CommitTree { store: self.clone(), root, folders: RefCell::default() })
    }
}

/// Renders, or takes the result that is known and still holds.
fn render(store: &Store, tree: &CommitTree, folder: &str, how: Rendering) -> (Arc<Rendered>, String) {
    let key = (folder.to_owned(), how);
    let mut results = store.results();
    results.asked += 1;
    let asked = results.asked;
    if let Some(known) = results.known.get_mut(&key) {
        let answers = known.answers.iter();
        let holds = known.root == tree.root
            || answers.map(|(path, asked, answer)| (tree.answer(path, *asked), answer)).all(|(now, then)| now == *then);
        if holds {
            (known.root, known.asked) = (tree.root, asked);
            return (known.rendered.clone(), known.digest.clone());
        }
    }
    // Others may render meanwhile.
    drop(results);
    // Of what is kept the text is left out: whoever prints it renders it.
    let rendered = Arc::new(Rendered { yaml: String::new(), ..kustomize::render(tree, folder, how, &str::to_owned) });
    let answer = |(path, asked): (&String, &Dependency)| (path.clone(), *asked, tree.answer(path, *asked));
    let answers: Vec<_> = rendered.dependencies.iter().map(answer).collect();
    let digest = digest_of(folder, how, &answers);
    let known = Known { answers, rendered: rendered.clone(), digest: digest.clone(), root: tree.root, asked };
    let mut results = store.results();
    results.known.insert(key, known);
    if results.known.len() > KEPT {
        let oldest = results.known.iter().min_by_key(|(_, known)| known.asked).map(|(key, _)| key.clone());
        oldest.and_then(|key| results.known.remove(&key));
    }
    (rendered, digest)
}

fn digest_of(folder: &str, how: Rendering, answers: &[(String, Dependency, String)]) -> String {
    let lines: String = answers.iter().map(|(path, asked, answer)| format!("{path}\0{asked:?}\0{answer}\n")).collect();
    let digest = digest(&SHA256, format!("{folder}\0{how:?}\n{lines}").as_bytes());
    digest.as_ref().iter().take(20).map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a folder or one below it is a kustomization. Each tree is looked at once, however often it is in the folder.
fn holds_kustomization(repository: &Repository, folder: git2::Tree<'_>) -> Result<bool, git2::Error> {
    let mut seen = HashSet::from([folder.id()]);
    let mut open = vec![folder];
    while let Some(tree) = open.pop() {
        if FILE_NAMES.iter().any(|name| tree.get_name(name).is_some()) {
            return Ok(true);
        }
        for entry in tree.iter().filter(|entry| entry.filemode_raw() == 0o040_000) {
            if seen.insert(entry.id()) {
                open.push(repository.find_tree(entry.id())?);
            }
        }
    }
    Ok(false)
}

/// The tree of a commit. Folders are listed when they are first asked about.
pub struct CommitTree {
    store: Store,
    root: Oid,
    folders: RefCell<HashMap<String, Option<Rc<Listing>>>>,
}

/// The entries of a folder: mode and hash by name.
type Listing = HashMap<String, (i32, Oid)>;

impl CommitTree {
    fn listing(&self, folder: &str) -> Result<Option<Rc<Listing>>, String> {
        if let Some(known) = self.folders.borrow().get(folder) {
            return Ok(known.clone());
        }
        let id = match folder {
            "" => Some(self.root),
            _ => self.find(folder)?.filter(|(mode, _)| *mode == 0o040_000).map(|(_, id)| id),
        };
        let listing = match id {
            None => None,
            Some(id) => {
                let repository = self.store.repository();
                let tree = repository.find_tree(id).map_err(|error| error.message().to_owned())?;
                let named = tree.iter().filter_map(|entry| {
                    // A name that could be taken for another is none that a kustomization may mean.
                    let name = std::str::from_utf8(entry.name_bytes()).ok().filter(|name| honest(name))?;
                    Some((name.to_owned(), (entry.filemode_raw(), entry.id())))
                });
                Some(Rc::new(named.collect::<Listing>()))
            }
        };
        self.folders.borrow_mut().insert(folder.to_owned(), listing.clone());
        Ok(listing)
    }

    fn find(&self, path: &str) -> Result<Option<(i32, Oid)>, String> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok(self.listing(folder)?.and_then(|listing| listing.get(name).copied()))
    }

    /// What is answered about a path: equal answers, equal outcomes.
    fn answer(&self, path: &str, asked: Dependency) -> String {
        if path.is_empty() {
            return "folder".to_owned();
        }
        match self.find(path) {
            Err(error) => format!("error {error}"),
            Ok(None) => "nothing".to_owned(),
            Ok(Some((0o040_000, _))) => "folder".to_owned(),
            Ok(Some((0o120_000, id))) => format!("link {id}"),
            Ok(Some((0o160_000, _))) => "submodule".to_owned(),
            Ok(Some((_, id))) => match asked {
                Dependency::Entry => "file".to_owned(),
                Dependency::Content => format!("file {id}"),
            },
        }
    }

    fn blob(&self, id: Oid) -> Result<Vec<u8>, String> {
        let repository = self.store.repository();
        let blob = repository.find_blob(id).map_err(|error| error.message().to_owned())?;
        Ok(blob.content().to_vec())
    }

    fn size(&self, id: Oid) -> Result<usize, String> {
        let repository = self.store.repository();
        let read = repository.odb().and_then(|odb| odb.read_header(id));
        match read {
            Ok((size, ObjectType::Blob)) => Ok(size),
            Ok((_, other)) => Err(format!("it is a {other}")),
            Err(error) => Err(error.message().to_owned()),
        }
    }
}

impl Kustomized {
    /// What stands for its path where files are known by theirs: no file is called like this.
    pub fn path(&self) -> String {
        format!("{}/", self.rendered.folder)
    }
}

impl Tree for CommitTree {
    fn entry(&self, path: &str) -> Result<Option<Entry>, String> {
        if path.is_empty() {
            return Ok(Some(Entry::Directory));
        }
        // Every part of a path is remembered, and a folder may hold itself.
        if path.len() > PATH_BYTES {
            return Err(format!("its path is longer than {PATH_BYTES} bytes"));
        }
        let Some((mode, id)) = self.find(path)? else { return Ok(None) };
        Ok(Some(match mode {
            0o040_000 => Entry::Directory,
            0o120_000 if self.size(id)? > LINK_BYTES => Entry::Other { what: "a symbolic link that is too long" },
            0o120_000 => match String::from_utf8(self.blob(id)?) {
                Ok(target) => Entry::Link { target },
                Err(_) => Entry::Other { what: "a symbolic link that is not text" },
            },
            0o160_000 => Entry::Other { what: "a submodule" },
            _ => Entry::File { size: self.size(id)? as u64 },
        }))
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        match self.find(path)? {
            Some((_, id)) => self.blob(id),
            None => Err("there is no such file".to_owned()),
        }
    }
}
