//! News of a repository on this machine: a commit made in another terminal is seen at once.
//!
//! Watches the places where references are; what changed is for the caller to look up. Never reads a file itself.

use std::{path::Path, sync::Arc};

use notify::{Event, RecursiveMode, Watcher};
use tokio::sync::Notify;

use super::{Error, Store};

/// Hears when a reference of a repository may have changed.
pub struct Watch {
    heard: Arc<Notify>,
    _watcher: notify::RecommendedWatcher,
}

impl Watch {
    /// Begins to watch.
    pub fn new(store: &Store) -> Result<Watch, Error> {
        let folder = store.folder().to_owned();
        let failed = |error: notify::Error| Error::Store { path: folder.clone(), cause: error.to_string() };
        let heard = Arc::new(Notify::new());
        let (bell, root) = (heard.clone(), folder.clone());
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            // An error may hide news, so it counts as some.
            let news = event.map_or(true, |event| {
                !event.kind.is_access()
                    && event.paths.iter().any(|path| is_reference(path.strip_prefix(&root).unwrap_or(path)))
            });
            if news {
                bell.notify_one();
            }
        })
        .map_err(failed)?;
        watcher.watch(&folder, RecursiveMode::NonRecursive).map_err(failed)?;
        let refs = folder.join("refs");
        watcher.watch(&refs, RecursiveMode::Recursive).map_err(failed)?;
        Ok(Watch { heard, _watcher: watcher })
    }

    /// Waits for news. News between two calls are not lost, and come once.
    pub async fn changed(&self) {
        self.heard.notified().await;
    }
}

/// Whether a path below the repository's folder is where a branch or a tag is kept.
fn is_reference(path: &Path) -> bool {
    if path.extension().is_some_and(|ending| ending == "lock") {
        return false;
    }
    path == Path::new("HEAD")
        || path == Path::new("packed-refs")
        || path.starts_with("refs/heads")
        || path.starts_with("refs/tags")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_references_are_news() {
        for path in ["HEAD", "packed-refs", "refs/heads/main", "refs/heads/a/b", "refs/tags/v1"] {
            assert!(is_reference(Path::new(path)), "{path}");
        }
        for path in
            ["HEAD.lock", "index", "refs/heads/main.lock", "refs/notes/tidegate", "refs/remotes/o/x", "objects/1"]
        {
            assert!(!is_reference(Path::new(path)), "{path}");
        }
    }
}
