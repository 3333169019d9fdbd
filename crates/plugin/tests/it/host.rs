//! The host and a plugin that misbehaves in a way of its own in each test: what it costs are its own calls.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use tidegate_plugin::{
    call::Kind,
    client::{Bounds, Plugin},
    output::{Level, Line, Log},
    process::{self, Launch},
};

/// The example is built with the tests, beside them.
fn executable() -> PathBuf {
    let own = std::env::current_exe().expect("a path");
    let folder = own.parent().and_then(|folder| folder.parent()).expect("a folder");
    let path = folder.join("examples/unruly");
    assert!(path.exists(), "{} is missing: cargo build -p tidegate-plugin --example unruly", path.display());
    path
}

struct Host {
    plugin: Plugin,
    lines: Arc<Mutex<Vec<Line>>>,
    folder: tempfile::TempDir,
}

fn bounds() -> Bounds {
    Bounds {
        start: Duration::from_secs(20),
        init: Duration::from_secs(20),
        ping: Duration::from_secs(20),
        call: Duration::from_secs(20),
        ..Bounds::default()
    }
}

fn host(mode: &str, bounds: Bounds) -> Host {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let log: Log = {
        let lines = Arc::clone(&lines);
        Arc::new(move |line| lines.lock().expect("lines").push(line))
    };
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch {
        name: "test/unruly".into(),
        kind: Kind::Step,
        executable: executable(),
        args: vec![mode.to_owned(), "--second".to_owned()],
        environment: process::environment(
            [("ONE".into(), "1".into()), ("OURS_TOKEN".into(), "secret".into())],
            |key| key.starts_with("OURS_"),
        ),
        launcher: vec![],
        socket_folder: Some(folder.path().to_owned()),
    };
    Host { plugin: Plugin::new(launch, bounds, log), lines, folder }
}

impl Host {
    async fn plugin_type(&self) -> Result<String, String> {
        self.plugin.plugin_type().await.map_err(|error| error.to_string())
    }

    fn printed(&self) -> Vec<(Level, String)> {
        self.lines.lock().expect("lines").iter().map(|line| (line.level, line.text.clone())).collect()
    }
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

/// Waits for something that another process does.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..2000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not within 20 s: {what}");
}

/// What a first call to a plugin in this mode comes to.
#[track_caller]
fn check(mode: &str, bounds: Bounds, wanted: Result<&str, &str>) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let outcome = runtime.block_on(async {
        let host = host(mode, bounds);
        let outcome = host.plugin_type().await;
        host.plugin.stop().await;
        outcome
    });
    assert_eq!(outcome, wanted.map(str::to_owned).map_err(str::to_owned), "{mode}");
}

const UNABLE: &str = "unable to start plugin system: unable to get plugin client (test/unruly): ";

#[track_caller]
fn check_start(mode: &str, bounds: Bounds, wanted: &str) {
    check(mode, bounds, Err(&format!("{UNABLE}{wanted}")));
}

#[test]
fn a_bad_handshake_is_an_error_that_says_what_is_wrong() {
    let brief = Bounds { start: Duration::from_millis(300), ..bounds() };
    check_start("silent", brief, "timeout while waiting for plugin to start");
    check_start("exit", bounds(), "plugin exited before we could connect");
    check_start("garbage", bounds(), "Unrecognized remote plugin message: hello, I am no plugin");
    check_start("version", bounds(), "incompatible API version with plugin. Plugin version: 2, Client versions: [1]");
    check_start("grpc", bounds(), "unsupported plugin protocol \"grpc\". Supported: [netrpc]");
    check_start(
        "elsewhere",
        bounds(),
        "the plugin listens on 192.0.2.1:80, where it must not: an absolute path or a port of the loopback address is needed",
    );
    check_start("nobody", bounds(), "cannot connect to the plugin: No such file or directory (os error 2)");
    check_start("other-interface", bounds(), "unknown plugin type: RpcStepPlugin");
    check_start("odd-number", bounds(), "the plugin answers Dispense with something else than a number");
}

#[test]
fn a_line_without_an_end_is_cut() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let error = runtime.block_on(async { host("endless-line", bounds()).plugin_type().await }).expect_err("an error");
    assert!(error.starts_with(&format!("{UNABLE}Unrecognized remote plugin message: xxxx")), "{error}");
    assert!(error.len() < 8000, "{}", error.len());
}

#[test]
fn a_plugin_that_cannot_initialise_is_an_error() {
    check(
        "init-error",
        bounds(),
        Err("unable to start plugin system: unable to initialize plugin via rpc (test/unruly): no\\u{a}kubeconfig"),
    );
    let brief = Bounds { init: Duration::from_millis(300), ..bounds() };
    check(
        "init-hang",
        brief,
        Err(concat!(
            "unable to start plugin system: unable to initialize plugin via rpc (test/unruly): ",
            "InitPlugin rpc call error: no answer within 0.3 s"
        )),
    );
}

#[test]
fn an_answer_that_is_none_is_an_error_of_its_call() {
    let failed = |text: &str| format!("Type rpc call error: {text}");
    for (mode, text) in [
        ("type-error", "rpc: can't find method\\u{1b}[2J"),
        ("type-exit", "unexpected EOF"),
        ("type-number", "the plugin's answer has Type, which is not a string"),
        ("type-stray", "the plugin answers a call that was not made"),
        ("type-unknown", "cannot read the plugin's answer: type 99 was not announced"),
        ("type-endless", "cannot read the plugin's answer: a message exceeds the limit of 4194304"),
        ("type-huge", "cannot read the plugin's answer: a message exceeds the limit of 4194304"),
        ("frame-giant", "stream 7 exceeds its window"),
        ("frame-streams", "the plugin keeps opening streams"),
        ("frame-pings", "the plugin floods the connection and does not read"),
        ("frame-flood", "cannot read the plugin's answer: a message ends in the middle of a value"),
        ("stdout-window", "stream 3 exceeds its window"),
    ] {
        check(mode, bounds(), Err(&failed(text)));
    }
    check("type-large", bounds(), Ok(&"x".repeat(1 << 20)));
}

#[test]
fn a_plugin_that_hangs_costs_its_calls_their_time() {
    let brief = Bounds { call: Duration::from_millis(300), ..bounds() };
    check("type-hang", brief, Err("Type rpc call error: no answer within 0.3 s"));
    // Stopped altogether: no sign of life.
    let brief = Bounds { keepalive: Duration::from_millis(100), ping: Duration::from_millis(300), ..bounds() };
    check("type-stop", brief, Err("Type rpc call error: keepalive timeout"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_was_killed_is_started_again_at_its_next_use() {
    let host = host("good", bounds());
    let first = host.plugin_type().await.expect("a process id");
    assert_eq!(host.plugin_type().await.as_deref(), Ok(&*first), "one process for all calls");
    let pid = rustix::process::Pid::from_raw(first.parse().expect("a process id")).expect("a process id");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("a process");
    until("the process is gone", || !is_alive(&first)).await;
    let second = host.plugin_type().await.expect("a process id");
    assert_ne!(first, second);
    host.plugin.stop().await;
    assert!(!is_alive(&second));
    let stopped = host.plugin_type().await;
    assert_eq!(stopped, Err("unable to start plugin system: plugin test/unruly is stopped".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_keeps_ending_rests() {
    let host = host("type-exit", bounds());
    for _ in 0..2 {
        assert_eq!(host.plugin_type().await, Err("Type rpc call error: unexpected EOF".to_owned()));
    }
    let error = host.plugin_type().await.expect_err("an error");
    let wanted = concat!(
        "unable to start plugin system: plugin test/unruly ended and is started again in 1 s at the earliest: ",
        "unexpected EOF"
    );
    assert_eq!(error, wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_are_never_answered_end_the_process() {
    let host = host("type-hang", Bounds { call: Duration::from_millis(20), open_calls: 4, ..bounds() });
    for _ in 0..16 {
        assert_eq!(host.plugin_type().await, Err("Type rpc call error: no answer within 0.02 s".to_owned()));
    }
    // The sign of life before the next use finds the connection closed, and a new process is started.
    let outcome = host.plugin_type().await;
    assert_eq!(outcome, Err("Type rpc call error: no answer within 0.02 s".to_owned()));
    assert_eq!(host.printed().iter().filter(|(_, text)| text == "mode type-hang").count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_plugin_has_started_ends_with_it() {
    let host = host("type-child", bounds());
    let child = host.plugin_type().await.expect("a process id");
    assert!(is_alive(&child));
    drop(host.plugin);
    until("the child is gone", || !is_alive(&child)).await;
}

#[test]
fn a_process_ends_with_the_runtime_that_serves_it() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let host = host("good", bounds());
    let pid = runtime.block_on(host.plugin_type()).expect("a process id");
    assert!(is_alive(&pid));
    runtime.shutdown_timeout(Duration::from_secs(20));
    // The signal is out; the kernel needs a moment.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(until("the process is gone", || !is_alive(&pid)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_gets_its_arguments_and_an_environment_without_our_secrets() {
    let host = host("environment", bounds());
    host.plugin_type().await.expect("a process id");
    host.plugin.stop().await;
    let folder = host.folder.path().display();
    let text = host.printed().into_iter().map(|(_, text)| text).find(|text| text.contains("--second"));
    let mut words: Vec<_> = text.as_deref().unwrap_or_default().split(' ').collect();
    words.sort_unstable();
    let socket = format!("PLUGIN_UNIX_SOCKET_DIR={folder}");
    let mut wanted = [
        "\"--second\"]",
        "ARGO_ROLLOUTS_RPC_PLUGIN=step",
        "ONE=1",
        "PLUGIN_MAX_PORT=25000",
        "PLUGIN_MIN_PORT=10000",
        "PLUGIN_PROTOCOL_VERSIONS=1",
        &socket,
        "[\"environment\",",
    ];
    wanted.sort_unstable();
    assert_eq!(words, wanted);
    assert_eq!(std::fs::read_dir(host.folder.path()).expect("a folder").count(), 0, "the socket is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_plugin_prints_is_logged_and_cannot_act() {
    let host = host("stdout-stream", bounds());
    assert_eq!(host.plugin_type().await.as_deref(), Ok("printed"));
    host.plugin.stop().await;
    let mut printed = host.printed();
    printed.sort_by_key(|(_, text)| text.clone());
    assert_eq!(
        printed,
        [
            (Level::Debug, "\\u{1b}[31mred".to_owned()),
            (Level::Info, "mode stdout-stream".to_owned()),
            (Level::Debug, "printed once it serves".to_owned()),
        ]
    );
    assert!(host.lines.lock().expect("lines").iter().all(|line| &*line.plugin == "test/unruly"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_floods_its_output_still_serves_and_fills_no_disk() {
    let host = host("stderr-flood", bounds());
    let pid = host.plugin_type().await.expect("a process id");
    for _ in 0..20 {
        assert_eq!(host.plugin_type().await.as_deref(), Ok(&*pid));
    }
    host.plugin.stop().await;
    assert!(!is_alive(&pid));
    // A thousand at once, then a hundred each second.
    assert!(host.printed().len() < 6000, "{}", host.printed().len());
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_overlap() {
    let host = host("good", bounds());
    let calls = futures(&host, 40).await;
    assert_eq!(calls.len(), 40);
    assert!(calls.iter().all(|pid| Some(pid) == calls.first()), "{calls:?}");
}

async fn futures(host: &Host, count: usize) -> Vec<String> {
    let mut calls: Vec<_> = (0..count).map(|_| Box::pin(host.plugin_type())).collect();
    let mut out = Vec::new();
    // All are begun before the first is waited for.
    for call in &mut calls {
        let _ = tokio::time::timeout(Duration::ZERO, call.as_mut()).await;
    }
    for call in calls {
        out.push(call.await.expect("a process id"));
    }
    out
}
