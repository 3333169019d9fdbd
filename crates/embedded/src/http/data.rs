//! The file behind `--data`: a [`journal`] that is appended to before a write is answered.
//!
//! Every change is handed to the operating system before its client hears of it, so a killed process loses nothing; it
//! is forced to the disk once a second and at the end, so a lost machine loses a second. One process at a time: the file
//! is locked.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use crate::kubernetes::object::Object;
use crate::store::journal::{self, HEADER, Journal, Place, Problem};

/// Why a data file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be opened, read or written.
    #[error("cannot {what} {path}", path = .0.display(), what = .1)]
    File(PathBuf, &'static str, #[source] io::Error),
    /// Another process has it open.
    #[error("{} is in use by another process", .0.display())]
    Locked(PathBuf),
    /// It is not ours, or damaged.
    #[error("cannot use {path}: {problem}", path = .0.display(), problem = .1)]
    Content(PathBuf, Problem),
}

impl Error {
    /// What the user can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Error::File(..) => "name a file in a folder you can write to",
            Error::Locked(_) => "stop the other `tidegate cluster`, or name another file",
            Error::Content(_, Problem::Foreign) => "name a new file; this one was left as it is",
            Error::Content(_, Problem::Damaged { .. }) => {
                "restore it from a copy, or cut it off at that line to keep what comes before; it was left as it is"
            }
        }
    }
}

/// An open data file.
#[derive(Debug)]
pub struct Data {
    path: PathBuf,
    file: File,
    /// Where the next record goes.
    end: u64,
    /// How large it was when it held nothing but what exists.
    compact: u64,
    dirty: bool,
    buffer: Vec<u8>,
}

/// Files smaller than this are never rewritten.
const SMALL: u64 = 8 << 20;

impl Data {
    /// Opens or creates a data file and reads it. What a crash cut off is removed; what is not ours stays untouched.
    pub fn open(path: &Path) -> Result<(Data, Journal), Error> {
        let wrap = |what| move |error| Error::File(path.to_owned(), what, error);
        // A link is followed once, here, so that rewriting replaces the file and not the link to it.
        let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        private(&mut options);
        let mut file = options.open(path).map_err(wrap("open"))?;
        lock(&file, path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(wrap("read"))?;
        let journal = journal::decode(&bytes).map_err(|problem| Error::Content(path.clone(), problem))?;
        let mut data =
            Data { path: path.clone(), file, end: journal.end as u64, compact: 0, dirty: false, buffer: Vec::new() };
        if journal.torn > 0 || journal.end == 0 {
            data.file.set_len(journal.end as u64).map_err(wrap("repair"))?;
        }
        if journal.end == 0 {
            data.append_bytes(HEADER.as_bytes()).map_err(wrap("write"))?;
        }
        data.compact = data.end;
        Ok((data, journal))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends changes: place, version, and the object unless it was deleted. If that fails the file ends where it did
    /// before.
    pub fn append<'a>(
        &mut self,
        changes: impl IntoIterator<Item = (Place, u64, Option<&'a Object>)>,
    ) -> Result<(), Error> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        for (place, version, object) in changes {
            journal::encode(&place, version, object, &mut buffer);
        }
        let outcome = self.append_bytes(&buffer);
        self.buffer = buffer;
        outcome.map_err(|error| Error::File(self.path.clone(), "write", error))
    }

    fn append_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.end))?;
        if let Err(error) = self.file.write_all(bytes) {
            // Half a record would hide every later one.
            self.file.set_len(self.end)?;
            return Err(error);
        }
        self.end += bytes.len() as u64;
        self.dirty = true;
        Ok(())
    }

    /// Whether most of the file is history.
    pub fn is_bloated(&self) -> bool {
        self.end > SMALL && self.end > 4 * self.compact
    }

    /// Replaces the file by one that holds only what exists. The old one stays until the new one is safe.
    pub fn rewrite<'a>(
        &mut self,
        version: u64,
        everything: impl IntoIterator<Item = (Place, &'a Object)>,
    ) -> Result<(), Error> {
        let mut bytes = HEADER.as_bytes().to_vec();
        // The newest version may belong to an object that is gone: an empty record remembers it.
        let nowhere = Place::default();
        journal::encode(&nowhere, version, None, &mut bytes);
        for (place, object) in everything {
            journal::encode(&place, object.version(), Some(object), &mut bytes);
        }
        let mut beside = self.path.clone().into_os_string();
        beside.push(".new");
        let beside = PathBuf::from(beside);
        let file = self.replace(&beside, &bytes).map_err(|error| Error::File(beside, "write", error))?;
        self.file = file;
        self.end = bytes.len() as u64;
        self.compact = self.end;
        self.dirty = false;
        Ok(())
    }

    fn replace(&self, beside: &Path, bytes: &[u8]) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        private(&mut options);
        let mut file = options.open(beside)?;
        // Locked before it takes the old one's name: there is no moment at which another process could take it.
        file.try_lock().map_err(io::Error::from)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(beside, &self.path)?;
        if let Some(folder) = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            File::open(folder)?.sync_all()?;
        }
        Ok(file)
    }

    /// The file, if it holds anything that is not on the disk yet: for whoever forces it there without holding it up.
    pub fn unsynced(&mut self) -> Option<File> {
        std::mem::take(&mut self.dirty).then(|| self.file.try_clone().ok()).flatten()
    }

    /// Forces to the disk what is not there yet.
    pub fn sync(&mut self) -> Result<(), Error> {
        if std::mem::take(&mut self.dirty) {
            self.file.sync_data().map_err(|error| Error::File(self.path.clone(), "write", error))?;
        }
        Ok(())
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        if let Err(error) = self.sync() {
            tracing::error!(%error, "the data file may be incomplete");
        }
    }
}

fn lock(file: &File, path: &Path) -> Result<(), Error> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => Error::Locked(path.to_owned()),
        TryLockError::Error(error) => Error::File(path.to_owned(), "lock", error),
    })
}

/// Secrets are in there: nobody else may read it.
fn private(options: &mut OpenOptions) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    #[cfg(not(unix))]
    let _ = options;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    fn place(name: &str) -> Place {
        ("".into(), "configmaps".into(), "default".into(), name.into())
    }

    fn object(name: &str, version: u64) -> Object {
        let metadata = serde_json::json!({"name": name, "resourceVersion": version.to_string()});
        Object { value: value!({"kind": "ConfigMap", "metadata": metadata}), managers: Default::default() }
    }

    fn names(journal: &Journal) -> Vec<&str> {
        journal.objects.keys().map(|place| place.3.as_str()).collect()
    }

    #[test]
    fn what_was_written_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let (mut data, journal) = Data::open(&path).unwrap();
        assert_eq!((journal.records, journal.torn), (0, 0));
        data.append([(place("a"), 1, Some(&object("a", 1))), (place("b"), 2, Some(&object("b", 2)))]).unwrap();
        data.append([(place("a"), 3, None)]).unwrap();
        drop(data);
        let (_data, journal) = Data::open(&path).unwrap();
        assert_eq!((names(&journal), journal.version), (vec!["b"], 3));
    }

    #[test]
    fn a_torn_tail_is_cut_off_and_writing_goes_on_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let (mut data, _) = Data::open(&path).unwrap();
        data.append([(place("a"), 1, Some(&object("a", 1)))]).unwrap();
        drop(data);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend_from_slice(b"00000000 {\"at\":");
        std::fs::write(&path, bytes).unwrap();
        let (mut data, journal) = Data::open(&path).unwrap();
        assert_eq!((names(&journal), journal.torn), (vec!["a"], 15));
        data.append([(place("b"), 2, Some(&object("b", 2)))]).unwrap();
        drop(data);
        let (_data, journal) = Data::open(&path).unwrap();
        assert_eq!((names(&journal), journal.torn), (vec!["a", "b"], 0));
    }

    #[test]
    fn a_rewritten_file_holds_what_exists_and_the_newest_version() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let (mut data, _) = Data::open(&path).unwrap();
        for version in 1..100 {
            data.append([(place("a"), version, Some(&object("a", version)))]).unwrap();
        }
        let before = std::fs::metadata(&path).unwrap().len();
        data.rewrite(250, [(place("a"), &object("a", 99))]).unwrap();
        assert!(std::fs::metadata(&path).unwrap().len() < before / 20);
        assert!(matches!(Data::open(&path), Err(Error::Locked(_))), "the new file is locked, too");
        data.append([(place("b"), 251, Some(&object("b", 251)))]).unwrap();
        drop(data);
        let (_data, journal) = Data::open(&path).unwrap();
        assert_eq!((names(&journal), journal.version), (vec!["a", "b"], 251));
    }

    #[test]
    fn a_strangers_file_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        std::fs::write(&path, "dear diary\n").unwrap();
        assert!(matches!(Data::open(&path), Err(Error::Content(_, Problem::Foreign))));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "dear diary\n");
        assert!(matches!(Data::open(folder.path()), Err(Error::File(_, "open", _))));
    }

    #[test]
    fn two_processes_cannot_share_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let first = Data::open(&path).unwrap();
        assert!(matches!(Data::open(&path), Err(Error::Locked(_))));
        drop(first);
        assert!(Data::open(&path).is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_may_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let (mut data, _) = Data::open(&path).unwrap();
        data.rewrite(1, []).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
