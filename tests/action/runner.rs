//! act, a runner of workflows: runs those of a clone on this machine, and says what it was told.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value as Json;

/// Where the Action and what it uses come from; act asks nobody for them.
pub struct Runner {
    folder: tempfile::TempDir,
    /// The repository whose workflows run.
    pub clone: PathBuf,
}

/// What workflows run for.
pub struct Event {
    pub name: &'static str,
    pub payload: String,
    /// Where the host's API is.
    pub api: String,
    /// The workflow's token.
    pub token: String,
}

/// What a run said.
pub struct Run {
    pub passed: bool,
    pub text: String,
    entries: Vec<Json>,
}

impl Runner {
    /// A runner that trusts this authority.
    pub fn new(authority: &str) -> Runner {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let tree = Path::new(env!("CARGO_MANIFEST_DIR"));
        fs::create_dir_all(at.join("config/act")).unwrap();
        fs::write(at.join("config/act/actrc"), "").unwrap();
        fs::write(at.join("ca.pem"), authority).unwrap();
        // The Action as a tag of it is checked out, without the sources that a release does not need.
        fs::create_dir_all(at.join("tidegate/action")).unwrap();
        for file in ["action.yml", "Cargo.toml", "action/install", "action/plan"] {
            fs::copy(tree.join(file), at.join("tidegate").join(file)).unwrap();
        }
        // A cache that never has anything: it is for runners of the host, and only asked if something is built.
        fs::create_dir_all(at.join("cache")).unwrap();
        let nothing = "name: cache\nruns:\n  using: composite\n  steps:\n    - {run: exit 1, shell: bash}\n";
        fs::write(at.join("cache/action.yml"), nothing).unwrap();
        release(&at.join("releases"));
        let clone = at.join("clone");
        fs::create_dir_all(&clone).unwrap();
        Runner { folder, clone }
    }

    /// Writes a file of the clone.
    pub fn write(&self, name: &str, text: &str) {
        let file = self.clone.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// Replaces a part of a file of the clone.
    pub fn edit(&self, name: &str, part: &str, by: &str) {
        let text = fs::read_to_string(self.clone.join(name)).unwrap();
        assert!(text.contains(part), "{part} is not in {text}");
        self.write(name, &text.replace(part, by));
    }

    /// Makes the clone a repository of one commit.
    pub fn init(&self) {
        for arguments in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-q", "-m", "first"]] {
            let names = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
            let done = Command::new("git").arg("-C").arg(&self.clone).args(names).args(arguments).status().unwrap();
            assert!(done.success());
        }
    }

    /// Runs the workflows of the clone.
    pub fn run(&self, event: &Event) -> Run {
        let at = self.folder.path();
        fs::write(at.join("event.json"), &event.payload).unwrap();
        let program = std::env::var_os("TIDEGATE_ACT").expect("run tests/action/run, which builds act first");
        let action = fs::read_to_string(at.join("tidegate/action.yml")).unwrap();
        let cache = action.split("uses: ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
        let mut command = Command::new(program);
        command.current_dir(&self.clone).arg(event.name);
        command.args(["--json", "--action-offline-mode", "-P", "ubuntu-latest=-self-hosted", "--no-cache-server"]);
        command.arg("-e").arg(at.join("event.json"));
        command.arg("--local-repository").arg(format!("tidegate/tidegate@v0={}", at.join("tidegate").display()));
        command.arg("--local-repository").arg(format!("{cache}={}", at.join("cache").display()));
        command.arg("-s").arg(format!("GITHUB_TOKEN={}", event.token));
        command.arg("--env").arg(format!("GITHUB_API_URL={}", event.api));
        command.args(["--env", "GITHUB_REPOSITORY=ada/web"]);
        let path = std::env::var_os("PATH").unwrap();
        command.env_clear().env("PATH", path).env("HOME", at).env("TMPDIR", at);
        command.env("XDG_CONFIG_HOME", at.join("config")).env("XDG_CACHE_HOME", at.join("cached"));
        command.env("SSL_CERT_FILE", at.join("ca.pem"));
        command.env("TIDEGATE_RELEASES", format!("file://{}", at.join("releases").display()));
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let entries = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Run { passed: output.status.success(), text, entries }
    }
}

/// The files of a release, with the program under test.
fn release(folder: &Path) {
    let version = concat!("v", env!("CARGO_PKG_VERSION"));
    let folder = folder.join(version);
    fs::create_dir_all(&folder).unwrap();
    let name = format!("tidegate-{version}-{}-unknown-linux-musl.tar.gz", std::env::consts::ARCH);
    let program = Path::new(env!("CARGO_BIN_EXE_tidegate"));
    let packed = Command::new("tar")
        .args(["--use-compress-program", "gzip -1", "-cf"])
        .arg(folder.join(&name))
        .arg("-C")
        .arg(program.parent().unwrap())
        .arg("tidegate")
        .status();
    assert!(packed.unwrap().success());
    let sum = Command::new("sha256sum").arg(&name).current_dir(&folder).output().unwrap();
    fs::write(folder.join("SHA256SUMS"), sum.stdout).unwrap();
}

impl Run {
    /// The workflow commands that the runner took, as they were written.
    pub fn taken(&self) -> Vec<String> {
        let is_taken = |entry: &&Json| entry["command"].is_string() && entry["command"] != "ignored";
        let raw = |entry: &Json| entry["raw"].as_str().map(|raw| raw.trim_end().to_owned());
        self.entries.iter().filter(is_taken).filter_map(raw).collect()
    }

    /// Those of a kind.
    pub fn commands(&self, name: &str) -> Vec<String> {
        let begin = [format!("::{name} "), format!("::{name}::")];
        self.taken().into_iter().filter(|raw| begin.iter().any(|begin| raw.starts_with(begin))).collect()
    }

    /// The lines that steps printed while the runner took no commands, and those while it did.
    pub fn printed(&self) -> (Vec<String>, Vec<String>) {
        let (mut guarded, mut open) = (Vec::new(), Vec::new());
        let mut token: Option<&str> = None;
        for entry in &self.entries {
            match entry["command"].as_str() {
                Some("stop-commands") => token = entry["arg"].as_str(),
                Some(command) if token == Some(command) => token = None,
                _ => {}
            }
            let is_printed = entry["raw_output"] == true || entry["command"] == "ignored";
            if let (true, Some(line)) = (is_printed, entry["msg"].as_str()) {
                if token.is_some() { guarded.push(line.to_owned()) } else { open.push(line.to_owned()) }
            }
        }
        (guarded, open)
    }

    /// The job summary.
    pub fn summary(&self) -> &str {
        let entry = self.entries.iter().find(|entry| entry["command"] == "summary");
        entry.and_then(|entry| entry["content"].as_str()).unwrap_or_default()
    }

    /// The first line that a step printed which holds this.
    pub fn line_with(&self, part: &str) -> Option<String> {
        let printed = self.entries.iter().filter(|entry| entry["raw_output"] == true);
        let mut lines = printed.filter_map(|entry| entry["msg"].as_str());
        lines.find(|line| line.contains(part)).map(|line| line.trim_end().to_owned())
    }

    pub fn has_line(&self, line: &str) -> bool {
        self.line_with(line).is_some_and(|found| found == line)
    }
}
