//! Puts a plugin's executable in place: copied or downloaded into a folder of its own, compared with its checksum, and only
//! then made executable under its name.
//!
//! The folder is ours alone. A file that is not what it should be never gets a name under which it could be run.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use crate::{
    call::Kind,
    config::{Checksum, Configured, Location},
};

/// Bytes that an executable may have.
pub const EXECUTABLE_LIMIT: u64 = 1 << 30;

/// Fetches a URL. Redirects, time limits and certificates are its affair; sizes and checksums are not.
pub trait Download {
    /// Writes the body of a successful answer. The error says what failed, without the headers.
    fn download(
        &self,
        url: &str,
        headers: &[(String, String)],
        into: &mut (dyn Write + Send),
    ) -> impl Future<Output = Result<(), String>> + Send;
}

/// Why an executable is not in place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstallError {
    /// The download failed.
    #[error("cannot download plugin {name}: {reason}")]
    Download {
        /// The plugin.
        name: String,
        /// Why.
        reason: String,
    },
    /// Not the file that is wanted.
    #[error("the file of plugin {name} has sha256 {found}, not {wanted} as configured; it was not installed")]
    Checksum {
        /// The plugin.
        name: String,
        /// What the file is.
        found: Checksum,
        /// What it should be.
        wanted: Checksum,
    },
    /// The file system.
    #[error("cannot put plugin {name} in place: {path}: {reason}")]
    File {
        /// The plugin.
        name: String,
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
}

/// Where the executable of a plugin stands. Each kind has a folder, so that one name in two lists can have two files.
pub fn path(plugin: &Configured, folder: &Path) -> PathBuf {
    let kind = match plugin.kind {
        Kind::TrafficRouter => "traffic-router",
        Kind::Metric => "metric-provider",
        Kind::Step => "step",
    };
    folder.join(kind).join(&plugin.name)
}

/// Puts the executable in place and returns its path.
pub async fn install(
    plugin: &Configured,
    folder: &Path,
    headers: &[(String, String)],
    download: &impl Download,
) -> Result<PathBuf, InstallError> {
    let target = path(plugin, folder);
    let file_error = |path: &Path, error: io::Error| InstallError::File {
        name: plugin.name.clone(),
        path: path.display().to_string(),
        reason: error.to_string(),
    };
    let parent = target.parent().unwrap_or(folder);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(|error| file_error(parent, error))?;
    let mut part = target.clone().into_os_string();
    part.push(".part");
    let part = Part(PathBuf::from(part));
    // Left behind by a process that was killed.
    let _ = fs::remove_file(&part.0);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part.0);
    let mut sink =
        Sink { file: file.map_err(|error| file_error(&part.0, error))?, hash: Sha256::new(), left: EXECUTABLE_LIMIT };
    match &plugin.location {
        Location::Url(url) => {
            let outcome = download.download(url, headers, &mut sink).await;
            outcome.map_err(|reason| InstallError::Download { name: plugin.name.clone(), reason })?;
        }
        Location::File(path) => {
            let from = path.clone();
            let copied = tokio::task::spawn_blocking(move || copy(&from, sink)).await;
            let copied = copied.unwrap_or_else(|error| Err(io::Error::other(error)));
            sink = copied.map_err(|error| file_error(path, error))?;
        }
    }
    sink.file.sync_all().map_err(|error| file_error(&part.0, error))?;
    let found = Checksum(sink.hash.finalize().into());
    if let Some(wanted) = plugin.sha256.filter(|wanted| *wanted != found) {
        return Err(InstallError::Checksum { name: plugin.name.clone(), found, wanted });
    }
    // Closed before it is run, or the kernel would say that it is busy.
    drop(sink.file);
    fs::set_permissions(&part.0, Permissions::from_mode(0o700)).map_err(|error| file_error(&part.0, error))?;
    fs::rename(&part.0, &target).map_err(|error| file_error(&target, error))?;
    Ok(target)
}

fn copy(from: &Path, mut sink: Sink) -> io::Result<Sink> {
    let mut file = File::open(from)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    io::copy(&mut file, &mut sink)?;
    Ok(sink)
}

/// A file that is removed unless it was renamed.
struct Part(PathBuf);

impl Drop for Part {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

struct Sink {
    file: File,
    hash: Sha256,
    left: u64,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.left.checked_sub(bytes.len() as u64);
        self.left = left.ok_or_else(|| io::Error::other(format!("larger than {EXECUTABLE_LIMIT} bytes")))?;
        self.file.write_all(bytes)?;
        self.hash.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Server(Result<&'static [u8], &'static str>);

    impl Download for Server {
        async fn download(
            &self,
            url: &str,
            headers: &[(String, String)],
            into: &mut (dyn Write + Send),
        ) -> Result<(), String> {
            assert_eq!((url, headers), ("https://host/p", [("k".to_owned(), "v".to_owned())].as_slice()));
            let body = self.0.map_err(str::to_owned)?;
            body.chunks(2).try_for_each(|bytes| into.write_all(bytes)).map_err(|error| error.to_string())
        }
    }

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    /// What is in the folder afterwards, with its permissions.
    #[track_caller]
    fn check(location: Location, sha256: Option<&str>, server: Server, wanted: Result<(), &str>) {
        let folder = tempfile::tempdir().expect("a folder");
        let plugin = Configured {
            kind: Kind::Step,
            name: "a/b".into(),
            location,
            sha256: sha256.and_then(Checksum::parse),
            args: vec![],
            headers_from: vec![],
            is_disabled: false,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let headers = [("k".to_owned(), "v".to_owned())];
        let outcome = runtime.block_on(install(&plugin, folder.path(), &headers, &server));
        let parent = folder.path().join("step/a");
        let files: Vec<_> = fs::read_dir(&parent).expect("a folder").map(|file| file.expect("a file").path()).collect();
        match wanted {
            Ok(()) => {
                assert_eq!(outcome, Ok(parent.join("b")));
                assert_eq!(files, [parent.join("b")]);
                assert_eq!(fs::read(parent.join("b")).expect("a file"), b"abc");
                let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
                assert_eq!((mode(&parent.join("b")), mode(&parent)), (0o700, 0o700));
            }
            Err(text) => {
                assert_eq!(outcome.map_err(|error| error.to_string()), Err(text.to_owned()));
                assert_eq!(files, Vec::<PathBuf>::new());
            }
        }
    }

    #[test]
    fn a_file_that_is_what_it_should_be_is_put_in_place() {
        let url = || Location::Url("https://host/p".into());
        check(url(), Some(ABC), Server(Ok(b"abc")), Ok(()));
        check(url(), None, Server(Ok(b"abc")), Ok(()));
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), "abc").expect("a file");
        check(Location::File(file.path().into()), Some(ABC), Server(Err("not asked")), Ok(()));
    }

    #[test]
    fn a_file_that_is_not_what_it_should_be_gets_no_name() {
        let url = || Location::Url("https://host/p".into());
        let found = "cb8379ac2098aa165029e3938a51da0bcecfc008fd6795f401178647f96c5b34";
        let text = format!("the file of plugin a/b has sha256 {found}, not {ABC} as configured; it was not installed");
        check(url(), Some(ABC), Server(Ok(b"def")), Err(&text));
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), "def").expect("a file");
        check(Location::File(file.path().into()), Some(ABC), Server(Err("not asked")), Err(&text));
        check(url(), None, Server(Err("404 Not Found")), Err("cannot download plugin a/b: 404 Not Found"));
        let folder = std::env::temp_dir();
        let text = format!("cannot put plugin a/b in place: {}: not a regular file", folder.display());
        check(Location::File(folder), None, Server(Err("not asked")), Err(&text));
    }
}
