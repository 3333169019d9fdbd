//! Writes over loopback HTTPS: the binary of this build beside a real kube-apiserver, the same client for both.
//!
//! `benches/run` starts the real one and names it in `TIDEGATE_REAL_URL` and `TIDEGATE_REAL_TOKEN`; without them only ours
//! is measured, and the table says so.

use std::{
    env,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use ureq::{Agent, tls::TlsConfig};

use super::{per_second, table::Row};

/// As many connections as a busy controller keeps open.
const CONNECTIONS: usize = 16;
const ROUND: Duration = Duration::from_secs(4);

/// One row: merge patches of ConfigMaps, each connection on an object of its own.
pub fn writes() -> Row {
    let ours = Ours::start();
    let measured = rate(&ours.url, &ours.token);
    drop(ours);
    let real = (env::var("TIDEGATE_REAL_URL"), env::var("TIDEGATE_REAL_TOKEN"));
    let peer = match real {
        (Ok(url), Ok(token)) => {
            let real = rate(&url, &token);
            format!("kube-apiserver: {} (ours {:.1} times)", per_second(real), measured / real)
        }
        _ => "not measured: benches/run starts a real kube-apiserver".into(),
    };
    let name = format!("merge patch over HTTPS, {CONNECTIONS} connections");
    Row { name, measured: per_second(measured), wanted: "≥ 10 times the real server", peer }
}

/// The binary of this build, serving until it is dropped.
struct Ours {
    process: Child,
    url: String,
    token: String,
    _folder: tempfile::TempDir,
}

impl Ours {
    fn start() -> Ours {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let mut process = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .args(["cluster", "--output", "json", "--kubeconfig"])
            .arg(folder.path().join("config"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("a pipe")).read_line(&mut line).expect("it says where it is");
        let ready: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let text = |key: &str| ready[key].as_str().unwrap_or_default().to_owned();
        Ours { url: text("server"), token: text("token"), process, _folder: folder }
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Writes in a second, all connections together.
fn rate(url: &str, token: &str) -> f64 {
    let writers: Vec<_> = (0..CONNECTIONS)
        .map(|number| {
            let (url, token) = (url.to_owned(), token.to_owned());
            thread::spawn(move || write(&url, &token, number))
        })
        .collect();
    writers.into_iter().map(|writer| writer.join().expect("a writer")).sum()
}

/// Writes in a second of one connection, on an object of its own.
fn write(url: &str, token: &str, number: usize) -> f64 {
    let config = Agent::config_builder()
        .tls_config(TlsConfig::builder().disable_verification(true).build())
        .http_status_as_error(false)
        .build();
    let agent = config.new_agent();
    let token = format!("Bearer {token}");
    let maps = format!("{url}/api/v1/namespaces/default/configmaps");
    let map = format!("{maps}/bench-{number}");
    let _ = agent.delete(&map).header("Authorization", &token).call();
    let body = format!("{{\"metadata\":{{\"name\":\"bench-{number}\"}},\"data\":{{\"count\":\"0\"}}}}");
    let made = agent.post(&maps).header("Authorization", &token).content_type("application/json").send(&body);
    assert_eq!(made.map(|answer| answer.status().as_u16()).ok(), Some(201), "a ConfigMap is created");
    let begin = Instant::now();
    let mut count = 0;
    while begin.elapsed() < ROUND {
        let body = format!("{{\"data\":{{\"count\":\"{count}\"}}}}");
        let patch = agent.patch(&map).header("Authorization", &token).content_type("application/merge-patch+json");
        let mut answer = patch.send(&body).expect("an answer");
        assert_eq!(answer.status().as_u16(), 200, "a patch is taken");
        answer.body_mut().read_to_vec().expect("a body");
        count += 1;
    }
    f64::from(count) / begin.elapsed().as_secs_f64()
}
