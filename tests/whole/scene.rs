//! A cluster and the daemon as programs, and everything that they write.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tidegate::{
    engine::key::{Place, Resource},
    io::api::{Api, Error},
    kubernetes::value::Value,
};

pub struct Scene {
    pub folder: TempDir,
    cluster: Child,
    daemon: Option<Child>,
    pub api: Api,
    /// What commands printed, with what was typed.
    pub printed: Vec<(String, Vec<u8>)>,
}

impl Drop for Scene {
    fn drop(&mut self) {
        for process in self.daemon.iter_mut().chain([&mut self.cluster]) {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Scene {
    /// A cluster without a daemon.
    pub async fn open() -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let mut command = program(folder.path());
        command.args(["cluster", "--crds", "--seed", "1", "-o", "json", "--kubeconfig"]).arg(&kubeconfig);
        let mut cluster = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(cluster.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("kubeconfig"), "{line}");
        let config = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
        let config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await.unwrap();
        let api = Api::new(kube::Client::try_from(config).unwrap());
        Scene { folder, cluster, daemon: None, api, printed: Vec::new() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts the daemon, which says everything it has to say.
    pub fn run(&mut self, arguments: &[&str], environment: &[(&str, &str)]) {
        let mut command = program(self.folder.path());
        command.args(["run", "--healthz-port", "0"]).args(arguments);
        command.env("TIDEGATE_LOG", "trace").envs(environment.iter().copied());
        let log = |name: &str| Stdio::from(File::create(self.path(name)).unwrap());
        self.daemon = Some(command.stdout(log("daemon.out")).stderr(log("daemon.err")).spawn().unwrap());
    }

    /// Stops the daemon as a cluster does, and waits until it is gone.
    pub fn stop(&mut self) {
        let Some(mut daemon) = self.daemon.take() else { return };
        // The shell's own: a small machine has no program of that name.
        let ended = Command::new("sh").args(["-c", &format!("kill {}", daemon.id())]).status().unwrap();
        assert!(ended.success());
        daemon.wait().unwrap();
    }

    /// The most memory that the daemon had resident so far.
    pub fn peak_kib(&self) -> u64 {
        self.memory_kib("VmHWM:")
    }

    /// The memory that the daemon has resident.
    pub fn resident_kib(&self) -> u64 {
        self.memory_kib("VmRSS:")
    }

    /// Only Linux says.
    fn memory_kib(&self, field: &str) -> u64 {
        let daemon = self.daemon.as_ref().unwrap();
        let status = fs::read_to_string(format!("/proc/{}/status", daemon.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.path("daemon.err")).unwrap_or_default()).into_owned()
    }

    /// What a command prints on both streams, and its exit code.
    pub fn types(&mut self, arguments: &[&str]) -> (String, i32) {
        let output = program(self.folder.path()).env("TIDEGATE_LOG", "trace").args(arguments).output().unwrap();
        let both = [output.stdout.clone(), output.stderr].concat();
        self.printed.push((arguments.join(" "), both));
        (String::from_utf8(output.stdout).unwrap(), output.status.code().unwrap())
    }

    pub async fn create(&self, group: &str, version: &str, plural: &str, body: Value) {
        self.api.create(&Resource::new(group, version, plural), "default", &body).await.unwrap();
    }

    pub async fn get(&self, group: &str, version: &str, plural: &str, name: &str) -> Option<Value> {
        let found = self.api.object(&Resource::new(group, version, plural), &Place::new("default", name)).await;
        match found {
            Ok(object) => Some(object),
            Err(Error::Refused { code: 404, .. }) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Waits until something is as wanted; what is asked for comes soon, or the story has failed.
    pub async fn until<T>(&self, what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = look().await {
                return found;
            }
            assert!(begun.elapsed() < Duration::from_secs(120), "{what} never came\n{}", tail(&self.log()));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn tail(text: &str) -> String {
    text.lines().rev().filter(|line| !line.contains("TRACE")).take(30).collect::<Vec<_>>().join("\n")
}

fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.current_dir(folder).env("KUBECONFIG", folder.join("kubeconfig")).env_remove("TIDEGATE_LOG");
    command.env("XDG_RUNTIME_DIR", folder).env("XDG_CACHE_HOME", folder.join("cache"));
    command
}

/// A work tree and the bare repository that it pushes to.
pub struct Tree {
    folder: PathBuf,
}

impl Tree {
    pub fn new(folder: &Path) -> Tree {
        let tree = Tree { folder: folder.join("tree") };
        fs::create_dir_all(&tree.folder).unwrap();
        git(folder, &["init", "-q", "--bare", "-b", "main", "shop.git"]);
        tree.git(&["init", "-q", "-b", "main"]);
        tree
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        git(&self.folder, arguments)
    }

    /// Commits these files, an empty text removes one, and pushes them.
    pub fn push(&self, files: &[(&str, &str)], message: &str) -> String {
        for (path, text) in files {
            let file = self.folder.join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            if text.is_empty() { fs::remove_file(file).unwrap() } else { fs::write(file, text).unwrap() }
        }
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
        self.git(&["push", "-q", "../shop.git", "main"]);
        self.git(&["rev-parse", "HEAD"])
    }
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(folder).args([
        "-c",
        "user.name=Ada",
        "-c",
        "user.email=ada@example.org",
        "-c",
        "safe.directory=*",
    ]);
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", folder);
    let output = command.args(arguments).output().expect("please install git");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
