//! A commit that takes a folder back to what an earlier commit had, for a branch of its own.
//!
//! The same question makes the same commit: its time is the one that is given. Never moves a branch that is there.

use git2::{ErrorCode, FileMode, Oid, Signature, Time, build::TreeUpdateBuilder};
use jiff::Timestamp;

use super::{Error, Store};

/// What is to be taken back.
#[derive(Debug, Clone)]
pub struct Revert<'r> {
    /// The commit that failed, and that the new one follows.
    pub from: &'r str,
    /// The commit whose folder is put back.
    pub to: &'r str,
    /// The folder; the root if empty.
    pub path: &'r str,
    /// Why.
    pub why: &'r str,
    /// When.
    pub at: Timestamp,
}

/// The branch on which a commit's revert is offered.
pub fn branch(from: &str) -> String {
    format!("tidegate/revert-{}", from.get(..8).unwrap_or(from))
}

impl Store {
    /// Makes the commit; `None` if the folder is the same in both.
    pub fn revert(&self, revert: &Revert<'_>) -> Result<Option<String>, Error> {
        self.make_revert(revert).map_err(|error| self.failed(&error))
    }

    fn make_revert(&self, revert: &Revert<'_>) -> Result<Option<String>, git2::Error> {
        let repository = self.repository();
        let (from, to) = (Oid::from_str(revert.from)?, Oid::from_str(revert.to)?);
        let (from, to) = (repository.find_commit(from)?, repository.find_commit(to)?);
        let tree = if revert.path.is_empty() {
            to.tree_id()
        } else {
            let folder = to.tree()?.get_path(std::path::Path::new(revert.path))?.id();
            TreeUpdateBuilder::new()
                .upsert(revert.path, folder, FileMode::Tree)
                .create_updated(&repository, &from.tree()?)?
        };
        if tree == from.tree_id() {
            return Ok(None);
        }
        let who = Signature::new("tidegate", "tidegate@localhost", &Time::new(revert.at.as_second(), 0))?;
        let subject = String::from_utf8_lossy(from.summary_bytes().unwrap_or_default()).into_owned();
        let folder = if revert.path.is_empty() { "everything" } else { revert.path };
        let message =
            format!("Revert \"{subject}\"\n\nTakes {folder} back to commit {}.\n\n{}\n", revert.to, revert.why);
        let id = repository.commit(None, &who, &who, &message, &repository.find_tree(tree)?, &[&from])?;
        Ok(Some(id.to_string()))
    }

    /// Makes a branch of a repository on this machine, unless there is one of that name.
    pub fn make_branch(&self, name: &str, commit: &str) -> Result<(), Error> {
        let repository = self.repository();
        let made = Oid::from_str(commit)
            .and_then(|id| repository.reference(&format!("refs/heads/{name}"), id, false, "tidegate").map(drop));
        match made {
            Err(error) if error.code() == ErrorCode::Exists => Ok(()),
            other => other.map_err(|error| self.failed(&error)),
        }
    }
}
