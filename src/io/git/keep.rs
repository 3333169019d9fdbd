//! What a store of ours keeps: the tips it was led to, where its history ends, and few packs.
//!
//! Names of references are digests: no path on this machine is made of a name from a repository. Packs are never rewritten
//! in place; a smaller store is made beside the old one and takes its name.

use std::{
    collections::{HashSet, VecDeque},
    fs,
    path::Path,
};

use git2::{ObjectType, Oid, Repository};

use super::{Error, Reached, Store, history, store::create};

/// Where tips are kept.
const KEPT: &str = "refs/tidegate/";
/// How many tips a host is told of.
const TOLD: usize = 64;
/// How many commits of each tip survive when packs are made one.
const COMMITS: usize = 1000;

impl Store {
    /// Whether an object is here.
    pub(super) fn holds(&self, id: Oid) -> bool {
        self.repository().find_object(id, None).is_ok_and(|object| object.peel_to_commit().is_ok())
    }

    /// Remembers where a reference led, so that the next fetch brings only what is new.
    pub(super) fn keep(&self, reached: &Reached, id: Oid) -> Result<(), Error> {
        let name = match reached {
            Reached::Branch(_) | Reached::Tag(_) => reached.to_string(),
            Reached::Hash => id.to_string(),
        };
        let digest = ring::digest::digest(&ring::digest::SHA256, name.as_bytes());
        let digest: String = digest.as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        let repository = self.repository();
        let kept = repository.reference(&format!("{KEPT}{digest}"), id, true, "");
        kept.map(drop).map_err(|error| self.failed(&error))
    }

    /// The commits that a host may take for granted.
    pub(super) fn tips(&self) -> Vec<String> {
        let repository = self.repository();
        let commits = kept(&repository)
            .into_iter()
            .filter_map(|(_, id)| Some(repository.find_object(id, None).ok()?.peel_to_commit().ok()?.id().to_string()));
        let mut commits: Vec<String> = commits.collect();
        commits.sort();
        commits.dedup();
        commits.truncate(TOLD);
        commits
    }

    /// The commits at which history ends here.
    pub(super) fn ends(&self) -> Vec<String> {
        history::ends(&self.repository()).iter().map(Oid::to_string).collect()
    }

    /// Says at which commits history ends from now on.
    pub(super) fn set_ends(&self, ends: &[String]) -> Result<(), Error> {
        write_ends(self.folder(), ends)
    }

    /// Makes one pack of many, once there are more than allowed.
    pub(super) fn compact(&self, allowed: usize) -> Result<(), Error> {
        if packs(self.folder()) <= allowed {
            return Ok(());
        }
        let (old, new) = (self.folder().with_extension("old"), self.folder().with_extension("new"));
        let broken = |error: std::io::Error| Error::Store { path: self.folder().to_owned(), cause: error.to_string() };
        if new.exists() {
            fs::remove_dir_all(&new).map_err(broken)?;
        }
        let mut repository = self.repository();
        copy(&repository, &new).map_err(|error| self.failed(&error))?;
        fs::rename(self.folder(), &old).map_err(broken)?;
        fs::rename(&new, self.folder()).map_err(broken)?;
        *repository = Repository::open_bare(self.folder()).map_err(|error| self.failed(&error))?;
        fs::remove_dir_all(&old).map_err(broken)
    }
}

fn write_ends(folder: &Path, ends: &[String]) -> Result<(), Error> {
    let (path, draft) = (folder.join(history::SHALLOW), folder.join("shallow.new"));
    let broken = |error: std::io::Error| Error::Store { path: path.clone(), cause: error.to_string() };
    if ends.is_empty() {
        return if path.exists() { fs::remove_file(&path).map_err(broken) } else { Ok(()) };
    }
    fs::write(&draft, ends.join("\n") + "\n").map_err(broken)?;
    fs::rename(&draft, &path).map_err(broken)
}

fn kept(repository: &Repository) -> Vec<(String, Oid)> {
    let Ok(references) = repository.references_glob(&format!("{KEPT}*")) else { return Vec::new() };
    references.flatten().filter_map(|found| Some((found.name().ok()?.to_owned(), found.target()?))).collect()
}

fn packs(folder: &Path) -> usize {
    let Ok(entries) = fs::read_dir(folder.join("objects/pack")) else { return 0 };
    entries.flatten().filter(|entry| entry.path().extension().is_some_and(|ending| ending == "pack")).count()
}

/// A new repository with what the kept tips need.
fn copy(from: &Repository, to: &Path) -> Result<(), git2::Error> {
    let fresh = create(to).map_err(|error| git2::Error::from_str(&error.to_string()))?;
    let mut pack = from.packbuilder()?;
    let (mut commits, mut ends): (HashSet<Oid>, HashSet<Oid>) = (HashSet::new(), HashSet::new());
    let known_ends: HashSet<Oid> = history::ends(from).into_iter().collect();
    for (_, tip) in kept(from) {
        let object = from.find_object(tip, None)?;
        if object.kind() == Some(ObjectType::Tag) {
            pack.insert_object(tip, None)?;
        }
        let commit = object.peel_to_commit()?.id();
        let mut next = VecDeque::from([commit]);
        let mut own = HashSet::from([commit]);
        while let Some(id) = next.pop_front() {
            commits.insert(id);
            let commit = from.find_commit(id)?;
            if own.len() >= COMMITS || known_ends.contains(&id) {
                continue;
            }
            next.extend(commit.parent_ids().filter(|parent| own.insert(*parent)));
        }
    }
    for id in &commits {
        pack.insert_commit(*id)?;
        let commit = from.find_commit(*id)?;
        if known_ends.contains(id) || commit.parent_ids().any(|parent| !commits.contains(&parent)) {
            ends.insert(*id);
        }
    }
    if !commits.is_empty() {
        pack.write(&to.join("objects/pack"), 0)?;
    }
    let ends: Vec<String> = ends.iter().map(Oid::to_string).collect();
    write_ends(to, &ends).map_err(|error| git2::Error::from_str(&error.to_string()))?;
    for (name, tip) in kept(from) {
        fresh.reference(&name, tip, true, "")?;
    }
    Ok(())
}
