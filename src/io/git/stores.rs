//! The stores of a cache folder that are open: one for each repository, however many follow it.
//!
//! A store holds a descriptor and disk, and whoever writes a GitSource names the repository: what nobody needs any more is
//! closed and removed.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use tokio::sync::Mutex;

use super::{Error, Store, fetch::blocking};
use crate::model::remote::Remote;

/// How long a store that no process has open is kept.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// Stores by repository. Clones are the same.
#[derive(Clone)]
pub struct Stores {
    cache: PathBuf,
    open: Arc<Mutex<HashMap<String, Entry>>>,
}

struct Entry {
    store: Store,
    use_: Use,
}

/// How a store was used.
#[derive(Debug, Clone, Copy)]
pub struct Use {
    /// When it was last asked for.
    pub last: Instant,
    /// How often it was asked for.
    pub times: usize,
    /// How many were asked for after it.
    pub later: usize,
}

impl Stores {
    /// Those of a folder.
    pub fn new(cache: PathBuf) -> Stores {
        Stores { cache, open: Arc::default() }
    }

    /// The store of a repository; opened, or made, if nobody has it open.
    pub async fn open(&self, remote: &Remote) -> Result<Store, Error> {
        let mut open = self.open.lock().await;
        let now = Instant::now();
        if let Some(entry) = open.get_mut(&remote.to_string()) {
            entry.use_ = Use { last: now, times: entry.use_.times + 1, later: 0 };
            return Ok(entry.store.clone());
        }
        let (cache, wanted, is_first) = (self.cache.clone(), remote.clone(), open.is_empty());
        let store = blocking(move || {
            if is_first {
                sweep(&cache);
            }
            Store::open(&cache, &wanted)
        })
        .await?;
        open.insert(remote.to_string(), Entry { store: store.clone(), use_: Use { last: now, times: 1, later: 0 } });
        Ok(store)
    }

    /// Closes and removes every store that is not to stay, unless somebody works with it at the moment.
    pub async fn remove_all_but(&self, stays: impl Fn(&str, &Use) -> bool) {
        let mut open = self.open.lock().await;
        let mut used: Vec<(Instant, &String)> = open.iter().map(|(url, entry)| (entry.use_.last, url)).collect();
        used.sort_by(|one, other| other.cmp(one));
        let gone = used.iter().enumerate().filter(|(later, (_, url))| {
            let entry = open.get(*url);
            entry.is_some_and(|entry| entry.store.is_unshared() && !stays(url, &Use { later: *later, ..entry.use_ }))
        });
        let gone: Vec<String> = gone.map(|(_, (_, url))| String::clone(url)).collect();
        let gone: Vec<Store> = gone.iter().filter_map(|url| open.remove(url)).map(|entry| entry.store).collect();
        if gone.is_empty() {
            return;
        }
        let removed = blocking(move || {
            gone.into_iter().for_each(Store::remove);
            Ok(())
        });
        // Nobody opens one of them anew until they are gone.
        drop(removed.await);
        drop(open);
    }

    /// The repositories whose stores are open.
    pub async fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.open.lock().await.keys().cloned().collect();
        names.sort();
        names
    }
}

/// Removes what nobody opened for a long time: its sources were deleted while no daemon ran.
fn sweep(cache: &Path) {
    let locks = fs::read_dir(cache).into_iter().flatten().flatten();
    for lock in locks.filter(|entry| entry.path().extension().is_some_and(|ending| ending == "lock")) {
        let opened = lock.metadata().and_then(|about| about.modified()).ok();
        let age = opened.and_then(|opened| SystemTime::now().duration_since(opened).ok()).unwrap_or_default();
        if age > KEPT
            && let Ok(store) = Store::reopen(&lock.path())
        {
            store.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn remote(name: &str) -> Remote {
        Remote::parse(&format!("https://git.example/team/{name}.git")).unwrap()
    }

    /// SR24: disk and descriptors of what is deleted are given back.
    #[tokio::test]
    async fn sr24_the_store_of_a_deleted_source_is_closed_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let stores = Stores::new(folder.path().to_owned());
        let (shop, web) = (stores.open(&remote("shop")).await.unwrap(), stores.open(&remote("web")).await.unwrap());
        drop(web);
        assert_eq!(names(folder.path()).len(), 4);
        // The one that is worked with stays, whoever wants it gone.
        stores.remove_all_but(|_, _| false).await;
        assert_eq!(stores.names().await, ["https://git.example/team/shop.git"]);
        assert_eq!(names(folder.path()).len(), 2);
        drop(shop);
        stores.remove_all_but(|url, used| url.ends_with("shop.git") && used.times == 1).await;
        assert_eq!(names(folder.path()).len(), 2);
        stores.remove_all_but(|_, _| false).await;
        assert_eq!(names(folder.path()), [""; 0]);
        drop(stores.open(&remote("web")).await.unwrap());
    }

    #[tokio::test]
    async fn a_store_that_nobody_opened_for_long_is_removed_at_the_start() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["old", "new", "open"] {
            drop(Store::open(folder.path(), &remote(name)).unwrap());
        }
        let open = Store::open(folder.path(), &remote("open")).unwrap();
        let then = SystemTime::now() - KEPT - Duration::from_secs(60);
        for name in names(folder.path()).iter().filter(|name| name.ends_with(".lock") && !name.starts_with("new")) {
            fs::File::options().write(true).open(folder.path().join(name)).unwrap().set_modified(then).unwrap();
        }
        drop(Stores::new(folder.path().to_owned()).open(&remote("new")).await.unwrap());
        let left: Vec<String> =
            names(folder.path()).iter().map(|name| name.split('-').next().unwrap().to_owned()).collect();
        assert_eq!(left, ["new", "new", "open", "open"]);
        drop(open);
    }

    /// SR16: what a private repository holds is no other user's.
    #[tokio::test]
    async fn sr16_the_cache_is_readable_by_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("a/cache");
        let store = Stores::new(cache.clone()).open(&remote("shop")).await.unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&cache), mode(store.folder())), (0o700, 0o700));
        // One that an earlier version made is closed to others when it is opened.
        drop(store);
        let made = fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap();
        fs::set_permissions(&made, fs::Permissions::from_mode(0o755)).unwrap();
        let store = Store::open(&cache, &remote("shop")).unwrap();
        assert_eq!(mode(store.folder()), 0o700);
    }
}
