//! Gitea on loopback, with TLS of a private authority, driven by its own commands and API.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{Method, Request, Response};
use tidegate::{
    io::http::{Http, Limits},
    kubernetes::value::Value,
};

use crate::authority::{self, Issued};

/// A git host of our own.
pub struct Gitea {
    program: PathBuf,
    folder: tempfile::TempDir,
    child: Child,
    pub port: u16,
    pub issued: Issued,
    pub http: Http,
}

impl Drop for Gitea {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Gitea {
    /// Starts it and waits until it answers.
    pub async fn start() -> Gitea {
        let home = std::env::var_os("TIDEGATE_GITEA").expect("run tests/forge/run, which builds Gitea first");
        let program = Path::new(&home).join("gitea");
        let folder = tempfile::tempdir().unwrap();
        let issued = authority::issue();
        fs::write(folder.path().join("cert.pem"), &issued.certificate).unwrap();
        fs::write(folder.path().join("key.pem"), &issued.key).unwrap();
        fs::write(folder.path().join("ca.pem"), &issued.authority).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let at = folder.path().display();
        let config = format!(
            "RUN_MODE = prod\nWORK_PATH = {at}\n[server]\nPROTOCOL = https\nCERT_FILE = {at}/cert.pem\nKEY_FILE = {at}/key.pem\n\
             HTTP_ADDR = 127.0.0.1\nHTTP_PORT = {port}\nROOT_URL = https://127.0.0.1:{port}/\nDISABLE_SSH = true\n\
             STATIC_ROOT_PATH = {}\nOFFLINE_MODE = true\n[database]\nDB_TYPE = sqlite3\nPATH = {at}/gitea.db\n\
             SQLITE_TIMEOUT = 60000\nSQLITE_JOURNAL_MODE = WAL\n\
             [repository]\nROOT = {at}/repositories\n[security]\nINSTALL_LOCK = true\nSECRET_KEY = {}\n\
             INTERNAL_TOKEN = {}\n[webhook]\nALLOWED_HOST_LIST = loopback\n[log]\nMODE = file\nROOT_PATH = {at}/log\n",
            Path::new(&home).display(),
            "s".repeat(32),
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJuYmYiOjE1MDAwMDAwMDB9.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        );
        fs::write(folder.path().join("app.ini"), config).unwrap();
        let mut command = Gitea::command(&program, folder.path());
        let child = command.arg("web").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let http = Http::new(None, Limits::default()).unwrap().trusting(issued.authority.as_bytes()).unwrap();
        let mut gitea = Gitea { program, folder, child, port, issued, http };
        gitea.ready().await;
        gitea
    }

    fn command(program: &Path, folder: &Path) -> Command {
        let mut command = Command::new(program);
        command.arg("--config").arg(folder.join("app.ini")).arg("--work-path").arg(folder);
        command.env("GITEA_I_AM_BEING_UNSAFE_RUNNING_AS_ROOT", "true").env("HOME", folder).current_dir(folder);
        command
    }

    /// Waits until it answers, as long as it lives.
    async fn ready(&mut self) {
        let began = Instant::now();
        loop {
            let request = Request::get(format!("{}/api/healthz", self.web())).body(Bytes::new()).unwrap();
            if self.http.send(request).await.is_ok_and(|answer| answer.status() == 200) {
                return;
            }
            assert!(self.child.try_wait().unwrap().is_none(), "gitea ended: {}", self.log());
            assert!(began.elapsed() < Duration::from_secs(120), "gitea is not ready: {}", self.log());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log/gitea.log")).unwrap_or_default()
    }

    pub fn web(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Runs one of its commands.
    pub fn admin(&self, arguments: &[&str]) -> String {
        let output = Gitea::command(&self.program, self.folder.path()).arg("admin").args(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        assert!(output.status.success(), "{} {}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout).lines().last().unwrap_or_default().to_owned()
    }

    /// Creates a user, and a token for each of these names and scopes.
    pub fn user(&self, name: &str, tokens: &[(&str, &str)]) -> Vec<String> {
        let email = format!("{name}@example.org");
        let user = ["user", "create", "--username", name, "--password", "only-a-test-1", "--email", &email];
        self.admin(&[user.as_slice(), &["--must-change-password=false"]].concat());
        let token = |(token, scopes): &(&str, &str)| {
            let new = ["user", "generate-access-token", "--username", name, "--token-name", token];
            self.admin(&[new.as_slice(), &["--scopes", scopes, "--raw"]].concat())
        };
        tokens.iter().map(token).collect()
    }

    /// Asks its API.
    pub async fn api(&self, method: Method, path: &str, token: &str, body: Option<&Value>) -> Value {
        let body = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(format!("{}/api/v1{path}", self.web()))
            .header("authorization", format!("token {token}"))
            .header("content-type", "application/json")
            .body(body)
            .unwrap();
        let answer: Response<Bytes> = self.http.send(request).await.unwrap();
        let text = String::from_utf8_lossy(answer.body()).into_owned();
        assert!(answer.status().is_success(), "{path}: {} {text}", answer.status());
        Value::from_json(answer.body()).unwrap_or(Value::Null)
    }

    /// Runs the real git client in a folder, trusting this host alone.
    pub fn git(&self, folder: &Path, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .arg("-C")
            .arg(folder)
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
            .args(arguments)
            .env("GIT_SSL_CAINFO", self.folder.path().join("ca.pem"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("HOME", self.folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}
