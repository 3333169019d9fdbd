//! Kubeconfig files: our context goes in, everything else stays as it was.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::{kubernetes::value::Value, value};

/// How to reach a cluster.
#[derive(Debug, Clone)]
pub struct Access {
    /// The name of the cluster, user and context.
    pub name: String,
    /// `https://127.0.0.1:16443`
    pub server: String,
    /// The certificate authority, in PEM.
    pub authority: String,
    /// The bearer token.
    pub token: String,
}

/// Why a kubeconfig cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read or written.
    #[error("cannot {what} {path}", path = .0.display(), what = .1)]
    File(PathBuf, &'static str, #[source] io::Error),
    /// It is no kubeconfig.
    #[error("{path} is not a kubeconfig: {why}", path = .0.display(), why = .1)]
    Content(PathBuf, String),
    /// Another program is writing it.
    #[error("{path} is locked: {lock} exists", path = .0.display(), lock = .1.display())]
    Locked(PathBuf, PathBuf),
}

impl Error {
    /// What the user can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Error::File(..) => "name a file in a folder you can write to",
            Error::Content(..) => "repair it, or name another file; it was left as it is",
            Error::Locked(..) => "wait for the other program, or remove the lock file if none is running",
        }
    }
}

/// What became of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The context that kubectl uses if told nothing else.
    pub current: String,
    /// Whether the file existed.
    pub existed: bool,
}

/// Writes our context into a kubeconfig, atomically and readable by its owner only. An existing file keeps its other
/// contexts, unknown fields, and its current context if it has one.
pub fn write(path: &Path, access: &Access) -> Result<Merged, Error> {
    // A link is followed, so that it still is one afterwards.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let wrap = |what| move |error| Error::File(path.clone(), what, error);
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(wrap("create the folder of"))?;
    }
    let _lock = Lock::take(path)?;
    let text = match fs::read_to_string(path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(wrap("read")(error)),
    };
    let content = |why: String| Error::Content(path.clone(), why);
    let old = text.as_deref().map(parse).transpose().map_err(content)?.unwrap_or_default();
    let new = merge(old, access).map_err(content)?;
    let current = new.str_at(&["current-context"]).unwrap_or_default().to_owned();
    let yaml = serde_saphyr::to_string(&new).map_err(|error| content(error.to_string()))?;
    replace(path, yaml.as_bytes()).map_err(wrap("write"))?;
    Ok(Merged { current, existed: text.is_some() })
}

/// A YAML text of one document.
pub fn parse(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    let options = serde_saphyr::options! { legacy_octal_numbers: true, with_snippet: false };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())
}

/// A kubeconfig with our context in it.
fn merge(mut config: Value, access: &Access) -> Result<Value, String> {
    match &config {
        Value::Map(_) => {}
        Value::Null => config = value!({"apiVersion": "v1", "kind": "Config", "preferences": {}}),
        other => return Err(format!("it holds a single {}", other.type_name())),
    }
    let kind = config.get("kind").filter(|kind| !kind.is_null());
    if kind.is_some_and(|kind| kind.as_str() != Some("Config")) {
        return Err("its kind is not Config".into());
    }
    let name = access.name.as_str();
    let authority = STANDARD.encode(&access.authority);
    let cluster = value!({"server": access.server, "certificate-authority-data": authority});
    let context = value!({"cluster": name, "user": name});
    set(&mut config, "clusters", name, "cluster", cluster)?;
    set(&mut config, "users", name, "user", value!({"token": access.token}))?;
    set(&mut config, "contexts", name, "context", context)?;
    if config.str_at(&["current-context"]).is_none_or(str::is_empty) {
        config.set_at(&["current-context"], name);
    }
    Ok(config)
}

/// Sets the entry of this name in one of a kubeconfig's lists. A namespace chosen in our own context survives.
fn set(config: &mut Value, list: &str, name: &str, field: &str, value: Value) -> Result<(), String> {
    if config.get(list).is_none_or(Value::is_null) {
        config.set_at(&[list], Value::list([]));
    }
    let entries = config.as_map_mut().and_then(|map| map.get_mut(list)).and_then(Value::as_list_mut);
    let entries = entries.ok_or_else(|| format!("its {list} are not a list"))?;
    match entries.iter_mut().find(|entry| entry.str_at(&["name"]) == Some(name)) {
        Some(entry) => {
            let namespace = entry.at(&[field, "namespace"]).cloned();
            entry.set_at(&[field], value);
            if let Some(namespace) = namespace {
                entry.set_at(&[field, "namespace"], namespace);
            }
        }
        None => entries.push(value!({"name": name, field: serde_json::Value::from(&value)})),
    }
    Ok(())
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = suffixed(path, &format!(".{}.new", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let written = options.open(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    let renamed = written.and_then(|()| fs::rename(&beside, path));
    if renamed.is_err() {
        let _ = fs::remove_file(&beside);
    }
    renamed
}

fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The lock file that kubectl takes before it writes a kubeconfig.
struct Lock(PathBuf);

impl Lock {
    fn take(path: &Path) -> Result<Lock, Error> {
        let lock = suffixed(path, ".lock");
        for _ in 0..20 {
            match OpenOptions::new().write(true).create_new(true).open(&lock) {
                Ok(_) => return Ok(Lock(lock)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                Err(error) => return Err(Error::File(path.to_owned(), "write", error)),
            }
        }
        Err(Error::Locked(path.to_owned(), lock))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(server: &str) -> Access {
        let (name, server) = ("tidegate".into(), server.into());
        Access { name, server, authority: "PEM".into(), token: "secret".into() }
    }

    #[test]
    fn a_new_file_holds_one_context() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/config");
        let merged = write(&path, &access("https://127.0.0.1:1")).unwrap();
        assert_eq!(merged, Merged { current: "tidegate".into(), existed: false });
        assert_eq!(
            parse(&fs::read_to_string(&path).unwrap()).unwrap(),
            value!({
                "apiVersion": "v1", "kind": "Config", "preferences": {}, "current-context": "tidegate",
                "clusters": [{"name": "tidegate", "cluster": {"server": "https://127.0.0.1:1", "certificate-authority-data": "UEVN"}}],
                "users": [{"name": "tidegate", "user": {"token": "secret"}}],
                "contexts": [{"name": "tidegate", "context": {"cluster": "tidegate", "user": "tidegate"}}],
            })
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no lock or temporary file stays");
    }

    const OTHERS: &str = "\
apiVersion: v1
kind: Config
extra: [1, yes]
clusters:
- name: prod
  cluster: {server: https://prod, proxy-url: http://proxy}
- name: tidegate
  cluster: {server: https://old, insecure-skip-tls-verify: true}
users: null
contexts:
- name: prod
  context: {cluster: prod, user: me, namespace: web}
- name: tidegate
  context: {cluster: tidegate, user: tidegate, namespace: mine}
current-context: prod
";

    #[test]
    fn other_contexts_and_unknown_fields_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        fs::write(&path, OTHERS).unwrap();
        let before = parse(OTHERS).unwrap();
        for _ in 0..2 {
            let merged = write(&path, &access("https://127.0.0.1:2")).unwrap();
            assert_eq!(merged, Merged { current: "prod".into(), existed: true });
            let after = parse(&fs::read_to_string(&path).unwrap()).unwrap();
            assert_eq!(after.get("extra"), before.get("extra"));
            let expected = value!({"server": "https://127.0.0.1:2", "certificate-authority-data": "UEVN"});
            let clusters = after.list_at(&["clusters"]);
            assert_eq!(clusters[0], before.list_at(&["clusters"])[0]);
            assert_eq!((clusters.len(), clusters[1].get("cluster")), (2, Some(&expected)));
            let ours = value!({"cluster": "tidegate", "user": "tidegate", "namespace": "mine"});
            let contexts = after.list_at(&["contexts"]);
            assert_eq!(contexts[0], before.list_at(&["contexts"])[0]);
            assert_eq!((contexts.len(), contexts[1].get("context")), (2, Some(&ours)));
        }
    }

    #[test]
    fn what_is_no_kubeconfig_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        for text in ["a: [", "- x", "kind: Pod", "clusters: 5", "\"just text\""] {
            fs::write(&path, text).unwrap();
            assert!(matches!(write(&path, &access("x")), Err(Error::Content(..))), "{text}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert!(matches!(write(folder.path(), &access("x")), Err(Error::File(_, "read", _))));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("config"), folder.path().join("link"));
        fs::write(&path, OTHERS).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write(&link, &access("x")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), fs::read_to_string(&link).unwrap());
    }
}
