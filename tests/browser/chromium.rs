//! Headless Chromium, driven over a pipe by its DevTools protocol: one page, what it logs, keys, sizes, pictures.

use std::{
    fs::{self, File, OpenOptions},
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Without a window, without traffic of its own, without anything that asks questions.
const FLAGS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

/// How long anything on a page may take.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Chromium {
    process: Child,
    commands: File,
    answers: BufReader<File>,
    session: String,
    count: u64,
    /// What the page complained about: errors of scripts, of the network, of its policy.
    pub complaints: Vec<String>,
    _profile: TempDir,
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Chromium {
    /// Starts it with an empty page.
    pub fn start(program: &str) -> Chromium {
        let profile = tempfile::tempdir().unwrap();
        let (commands, answers) = (profile.path().join("commands"), profile.path().join("answers"));
        assert!(Command::new("mkfifo").arg(&commands).arg(&answers).status().unwrap().success());
        let mut command = Command::new("sh");
        command.args(["-c", r#"exec 3<"$0" 4>"$1"; shift; exec "$@""#]).arg(&commands).arg(&answers).arg(program);
        command.args(FLAGS).args(["--remote-debugging-pipe", "--window-size=1280,1000"]);
        command.arg(format!("--user-data-dir={}", profile.path().join("profile").display()));
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let commands = OpenOptions::new().write(true).open(commands).unwrap();
        let answers = BufReader::new(File::open(answers).unwrap());
        let mut browser = Chromium {
            process,
            commands,
            answers,
            session: String::new(),
            count: 0,
            complaints: Vec::new(),
            _profile: profile,
        };
        let made = browser.ask("Target.createTarget", json!({"url": "about:blank"}));
        let attached = browser.ask("Target.attachToTarget", json!({"targetId": made["targetId"], "flatten": true}));
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.ask(&format!("{domain}.enable"), json!({}));
        }
        // A violation of the policy is no error of a script: the page itself must say so.
        let watch = "addEventListener('securitypolicyviolation', event => \
                     console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI))";
        browser.ask("Page.addScriptToEvaluateOnNewDocument", json!({ "source": watch }));
        browser
    }

    /// Sends a command and waits for its answer; what the page complains about meanwhile is kept.
    pub fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.count += 1;
        let mut message = json!({"id": self.count, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.commands.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut bytes = Vec::new();
            assert!(self.answers.read_until(0, &mut bytes).unwrap() > 0, "{method}: the browser is gone");
            bytes.pop();
            let message: Value = serde_json::from_slice(&bytes).unwrap();
            if message["id"] == self.count {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.hear(&message);
        }
    }

    fn hear(&mut self, message: &Value) {
        let what = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => self.complaints.push(what["exceptionDetails"].to_string()),
            "Runtime.consoleAPICalled" if what["type"] == "error" || what["type"] == "warning" => {
                self.complaints.push(what["args"].to_string());
            }
            "Log.entryAdded" if what["entry"]["level"] == "error" => self.complaints.push(what["entry"].to_string()),
            _ => {}
        }
    }

    /// Opens a page and waits until it is there.
    pub fn open(&mut self, url: &str) {
        self.ask("Page.navigate", json!({ "url": url }));
        self.until(
            "the page to load",
            &format!("location.href == {} && document.readyState == 'complete'", json!(url)),
        );
    }

    /// What an expression comes to.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.ask("Runtime.evaluate", parameters);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub fn until(&mut self, what: &str, expression: &str) {
        let began = Instant::now();
        // While a page goes away, there is nowhere to ask.
        let safe = format!("(() => {{ try {{ return !!({expression}) }} catch {{ return false }} }})()");
        while self.evaluate(&safe) != true {
            assert!(began.elapsed() < PATIENCE, "{what} never came: {}", self.text());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The text of the page, as a person reads it.
    pub fn text(&mut self) -> String {
        self.evaluate("document.body.innerText").as_str().unwrap_or_default().to_owned()
    }

    /// As wide as this, as a telephone if it is narrow.
    pub fn width(&mut self, width: u32) {
        let parameters = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600});
        self.ask("Emulation.setDeviceMetricsOverride", parameters);
    }

    /// A picture of the whole page.
    pub fn picture(&mut self, file: &Path) {
        let shot = self.ask("Page.captureScreenshot", json!({"format": "png", "captureBeyondViewport": true}));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, STANDARD.decode(shot["data"].as_str().unwrap()).unwrap()).unwrap();
    }
}
