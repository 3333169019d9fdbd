//! What a commit and the one that was reviewed before it say: their messages, and what they came from.

use git2::Oid;

use super::{Error, Store};

/// The longest message that is looked at.
const LONGEST: usize = 64 << 10;

impl Store {
    /// The message of a commit, and that of the commit it merged, if it is a merge.
    pub fn messages(&self, commit: &str) -> Result<Vec<String>, Error> {
        let repository = self.repository();
        let commit = self.commit_of(&repository, commit)?;
        let merged = commit.parent(1).ok();
        let text = |commit: &git2::Commit<'_>| {
            let bytes = commit.message_bytes();
            String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(LONGEST)..]).into_owned()
        };
        Ok([Some(text(&commit)), merged.as_ref().map(text)].into_iter().flatten().collect())
    }

    /// The commit that a commit was made on: for a merge, the one it was merged into. `None` for the first one, and at the end
    /// of a shallow history.
    pub fn first_parent(&self, commit: &str) -> Result<Option<String>, Error> {
        let repository = self.repository();
        let parent = self.commit_of(&repository, commit)?.parent(0).ok();
        Ok(parent.map(|parent| parent.id().to_string()))
    }

    fn commit_of<'r>(&self, repository: &'r git2::Repository, commit: &str) -> Result<git2::Commit<'r>, Error> {
        let id = Oid::from_str(commit).map_err(|error| self.failed(&error))?;
        repository.find_commit(id).map_err(|error| self.failed(&error))
    }
}
