//! Commits and how they follow each other.
//!
//! Walks only what the store holds, at most so many commits; where that is not enough the answer says so.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    path::Path,
};

use git2::{Commit, Oid, Repository};
use jiff::Timestamp;

use crate::kubernetes::foreign;

/// The most commits that one question looks at.
const FURTHEST: usize = 20_000;

/// What a commit says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Its hash.
    pub commit: String,
    /// Who wrote it.
    pub author: String,
    /// The first line of its message, with odd characters made visible.
    pub subject: String,
    /// When it was committed, as it says itself.
    pub time: Timestamp,
}

impl About {
    pub(super) fn of(commit: &Commit<'_>) -> About {
        let seconds = commit.time().seconds();
        let subject = commit.summary_bytes().map(String::from_utf8_lossy).unwrap_or_default();
        About {
            commit: commit.id().to_string(),
            author: short(&String::from_utf8_lossy(commit.author().name_bytes())),
            subject: short(&subject),
            time: Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH),
        }
    }
}

/// The longest text that is taken from a commit.
const LONGEST: usize = 200;

fn short(text: &str) -> String {
    let text = foreign::line(text);
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// How a commit follows another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// They are the same.
    Same,
    /// It came later: it contains the other.
    Ahead,
    /// It came before: the other contains it.
    Behind,
    /// Neither contains the other: history was rewritten.
    Diverged,
    /// The store does not reach far enough to tell.
    Unknown,
}

/// How `commit` follows `other`.
pub fn relation(repository: &Repository, commit: Oid, other: Oid) -> Relation {
    if commit == other {
        return Relation::Same;
    }
    match (contains(repository, commit, other), contains(repository, other, commit)) {
        (Answer::Yes, _) => Relation::Ahead,
        (_, Answer::Yes) => Relation::Behind,
        (Answer::No, Answer::No) => Relation::Diverged,
        (Answer::No | Answer::Unknown, Answer::No | Answer::Unknown) => Relation::Unknown,
    }
}

enum Answer {
    Yes,
    No,
    Unknown,
}

/// Whether a commit is another or comes after it.
fn contains(repository: &Repository, commit: Oid, wanted: Oid) -> Answer {
    let ends: HashSet<Oid> = ends(repository).into_iter().collect();
    let mut seen = HashSet::from([commit]);
    let mut next = VecDeque::from([commit]);
    let mut complete = true;
    while let Some(id) = next.pop_front() {
        if id == wanted {
            return Answer::Yes;
        }
        // At the end of a shallow store, or more than we want to look at.
        let found = repository.find_commit(id).ok().filter(|_| seen.len() < FURTHEST && !ends.contains(&id));
        let Some(commit) = found else {
            complete = false;
            continue;
        };
        next.extend(commit.parent_ids().filter(|parent| seen.insert(*parent)));
    }
    if complete { Answer::No } else { Answer::Unknown }
}

/// The commits at which a shallow history ends: their parents are not here.
pub fn ends(repository: &Repository) -> Vec<Oid> {
    let text = std::fs::read_to_string(repository.commondir().join(SHALLOW)).unwrap_or_default();
    text.lines().filter_map(|line| Oid::from_str(line).ok()).collect()
}

/// The file that names them, as git calls it.
pub const SHALLOW: &str = "shallow";

/// For each path, the newest commit at or before `commit` that gave it the content it has there.
///
/// Of a merge, the parent with the same content is followed, so that the commit that made the change is named and not
/// the merge that brought it.
pub fn changed_by(repository: &Repository, commit: Oid, paths: &[String]) -> HashMap<String, Oid> {
    let mut found = HashMap::new();
    // Paths whose search stands at the same commit are answered together.
    let mut open: Vec<(Oid, Vec<&String>)> = vec![(commit, paths.iter().collect())];
    let mut looked = 0;
    while let Some((at, paths)) = open.pop() {
        looked += 1;
        let parents: Vec<Commit<'_>> = match repository.find_commit(at) {
            Ok(commit) if looked < FURTHEST => {
                commit.parent_ids().filter_map(|parent| repository.find_commit(parent).ok()).collect()
            }
            _ => Vec::new(),
        };
        let mut follow: Vec<(Oid, Vec<&String>)> = Vec::new();
        for path in paths {
            let here = blob(repository, at, path);
            let same = parents.iter().find(|parent| here.is_some() && blob(repository, parent.id(), path) == here);
            match same {
                Some(parent) => match follow.iter_mut().find(|(id, _)| *id == parent.id()) {
                    Some((_, paths)) => paths.push(path),
                    None => follow.push((parent.id(), vec![path])),
                },
                None => {
                    found.insert(path.clone(), at);
                }
            }
        }
        open.extend(follow);
    }
    found
}

/// How many commits come before each of these when all that lead to `commit` are listed newest first, children before their
/// parents.
pub fn ages(repository: &Repository, commit: Oid, of: &HashSet<String>) -> Result<HashMap<String, usize>, git2::Error> {
    let ends: HashSet<Oid> = ends(repository).into_iter().collect();
    let mut children: HashMap<Oid, usize> = HashMap::from([(commit, 0)]);
    let mut parents: HashMap<Oid, Vec<Oid>> = HashMap::new();
    let mut open = VecDeque::from([commit]);
    while let Some(id) = open.pop_front() {
        if ends.contains(&id) || parents.len() >= FURTHEST {
            continue;
        }
        let of: Vec<Oid> = repository.find_commit(id)?.parent_ids().collect();
        for parent in &of {
            let known = children.entry(*parent).or_default();
            *known += 1;
            if *known == 1 {
                open.push_back(*parent);
            }
        }
        parents.insert(id, of);
    }
    let mut ages = HashMap::new();
    let (mut ready, mut age) = (VecDeque::from([commit]), 0);
    while let Some(id) = ready.pop_front() {
        let name = id.to_string();
        if of.contains(&name) {
            ages.insert(name, age);
        }
        age += 1;
        for parent in parents.remove(&id).unwrap_or_default() {
            let left = children.entry(parent).or_insert(1);
            *left = left.saturating_sub(1);
            if *left == 0 {
                ready.push_back(parent);
            }
        }
    }
    Ok(ages)
}

fn blob(repository: &Repository, commit: Oid, path: &str) -> Option<Oid> {
    let tree = repository.find_commit(commit).ok()?.tree().ok()?;
    Some(tree.get_path(Path::new(path)).ok()?.id())
}
