//! Starts a plugin's executable and ends it, with all it started.
//!
//! A process runs in a group of its own, which is killed when the [`Process`] goes. Its environment is what it is given,
//! plus what go-plugin and Argo Rollouts set; it gets no stdin.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    net::{TcpStream, UnixStream},
    process::{Child, Command},
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use crate::{
    call::Kind,
    handshake::{self, Address, HandshakeError},
    output::{Line, Lines, Log, Pace},
};

/// What to start.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The plugin's name.
    pub name: Arc<str>,
    /// What it is.
    pub kind: Kind,
    /// The file.
    pub executable: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// All of its environment: plugins find their credentials there. Leave out what is ours alone.
    pub environment: Vec<(OsString, OsString)>,
    /// What is put before the executable, to confine it: `setpriv`, `unshare`, `bwrap` and their arguments.
    pub launcher: Vec<OsString>,
    /// A folder for its socket that only we and the plugin may enter; its path must be short. Plugins built with an old
    /// go-plugin use the machine's folder for temporary files all the same.
    pub socket_folder: Option<PathBuf>,
}

/// Why a plugin did not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The executable cannot be run.
    #[error("cannot run {path}: {error}")]
    Exec {
        /// The file.
        path: String,
        /// Why.
        error: String,
    },
    /// No line within the time.
    #[error("timeout while waiting for plugin to start")]
    Timeout,
    /// It ended, or closed its stdout, before it said where it listens.
    #[error("plugin exited before we could connect")]
    Exited,
    /// The line is no handshake.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// Nothing listens there.
    #[error("cannot connect to the plugin: {0}")]
    Connect(String),
}

/// A connection to a plugin.
pub trait Socket: AsyncRead + tokio::io::AsyncWrite + Send + Unpin {}
impl Socket for UnixStream {}
impl Socket for TcpStream {}

/// A running plugin.
#[derive(Debug)]
pub struct Process {
    child: Child,
    group: Option<Pid>,
    forwarders: Vec<JoinHandle<()>>,
    socket: Option<PathBuf>,
}

/// How long a process that was told to quit may take, and what it printed may take to arrive.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Bytes per second that are read of what a plugin prints, and at once. One that prints more waits.
const PRINTED: (f64, f64) = (1024.0 * 1024.0, 4.0 * 1024.0 * 1024.0);

/// Starts a plugin and connects to it.
pub async fn start(launch: &Launch, limit: Duration, log: &Log) -> Result<(Process, Box<dyn Socket>), StartError> {
    let until = Instant::now() + limit;
    let mut command = command(launch);
    let mut child = command.spawn().map_err(|error| StartError::Exec {
        path: launch.executable.display().to_string(),
        error: error.to_string(),
    })?;
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let mut process = Process { child, group, forwarders: Vec::new(), socket: None };
    if let Some(stderr) = stderr {
        process.forwarders.push(tokio::spawn(forward(stderr, Vec::new(), Arc::clone(&launch.name), Arc::clone(log))));
    }
    let Some(mut stdout) = stdout else { return Err(StartError::Exited) };
    let outcome = connect(&mut stdout, until).await;
    match outcome {
        Ok((address, socket, rest)) => {
            process.forwarders.push(tokio::spawn(forward(stdout, rest, Arc::clone(&launch.name), Arc::clone(log))));
            process.socket = match (address, &launch.socket_folder) {
                (Address::Unix(path), Some(folder)) => (path.parent() == Some(folder)).then_some(path),
                (Address::Unix(_), None) | (Address::Tcp(_), _) => None,
            };
            Ok((process, socket))
        }
        Err(error) => {
            process.end().await;
            Err(error)
        }
    }
}

fn command(launch: &Launch) -> Command {
    let mut line = launch.launcher.iter().cloned().chain([launch.executable.clone().into_os_string()]);
    // The chain has at least the executable.
    let mut command = Command::new(line.next().unwrap_or_default());
    command.args(line).args(&launch.args).env_clear().envs(launch.environment.iter().map(|(key, value)| (key, value)));
    command.env("ARGO_ROLLOUTS_RPC_PLUGIN", launch.kind.cookie());
    command.env("PLUGIN_MIN_PORT", "10000").env("PLUGIN_MAX_PORT", "25000").env("PLUGIN_PROTOCOL_VERSIONS", "1");
    if let Some(folder) = &launch.socket_folder {
        command.env("PLUGIN_UNIX_SOCKET_DIR", folder);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    command
}

/// Waits for the line and connects; what stands after the line is handed back.
async fn connect(
    stdout: &mut (impl AsyncRead + Unpin),
    until: Instant,
) -> Result<(Address, Box<dyn Socket>, Vec<u8>), StartError> {
    let read = async {
        let mut bytes = Vec::new();
        loop {
            if let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
                let rest = bytes.split_off(end + 1);
                return Ok((bytes, rest));
            }
            if bytes.len() > handshake::LINE_LIMIT {
                return Ok((bytes, Vec::new()));
            }
            let mut piece = [0; 1024];
            match stdout.read(&mut piece).await {
                Ok(0) | Err(_) => return Err(StartError::Exited),
                Ok(length) => bytes.extend(piece.iter().take(length)),
            }
        }
    };
    let (line, rest) = tokio::time::timeout_at(until, read).await.map_err(|_| StartError::Timeout)??;
    let address = handshake::parse(&String::from_utf8_lossy(&line))?;
    let connect = async {
        let socket: io::Result<Box<dyn Socket>> = match &address {
            Address::Unix(path) => UnixStream::connect(path).await.map(|socket| Box::new(socket) as _),
            Address::Tcp(address) => TcpStream::connect(address).await.map(|socket| Box::new(socket) as _),
        };
        socket.map_err(|error| StartError::Connect(error.to_string()))
    };
    let socket = tokio::time::timeout_at(until, connect).await.map_err(|_| StartError::Timeout)??;
    Ok((address, socket, rest))
}

/// Reads what a plugin prints to its end, or it would stop in the middle of its work once the pipe is full.
async fn forward(mut from: impl AsyncRead + Unpin, first: Vec<u8>, plugin: Arc<str>, log: Log) {
    let start = Instant::now();
    let now = || start.elapsed().as_secs_f64();
    let mut lines = Lines::default();
    let mut pace = Pace::new(PRINTED.0, PRINTED.1);
    let send = |lines: Vec<_>| {
        for (level, text) in lines {
            log(Line { plugin: Arc::clone(&plugin), level, text });
        }
    };
    send(lines.push(&first, now()));
    let mut piece = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut piece).await {
        send(lines.push(piece.get(..length).unwrap_or_default(), now()));
        pace.charge(length as f64, now());
        let owed = -pace.left(now());
        if owed > 0.0 {
            sleep(Duration::from_secs_f64(owed / PRINTED.0)).await;
        }
    }
    send(lines.end(now()));
}

impl Process {
    /// Its process id, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until it ends by itself, so long at most.
    pub async fn wait(&mut self, limit: Duration) {
        // Exit is noticed without reaping: the id must stay taken until the group is killed.
        let until = Instant::now() + limit;
        while Instant::now() < until && !self.has_exited() {
            sleep(Duration::from_millis(20)).await;
        }
    }

    fn has_exited(&self) -> bool {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        self.group.is_none_or(|id| !matches!(waitid(WaitId::Pid(id), options), Ok(None)))
    }

    /// Kills the group, and waits until the process is gone and what it printed has arrived.
    pub async fn end(mut self) {
        self.kill();
        // A process that was killed is gone as soon as the kernel gets to it.
        let _ = timeout(LAST_WORDS, self.child.wait()).await;
        for forwarder in &mut self.forwarders {
            let _ = timeout(LAST_WORDS, forwarder).await;
        }
    }

    /// Kills whatever of the group is left. Only once: when the process was reaped, its id may be another's.
    fn kill(&mut self) {
        if let Some(group) = self.group.take() {
            // Fails if there is nothing left to kill.
            let _ = kill_process_group(group, Signal::KILL);
        }
        if let Some(path) = self.socket.take() {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        for forwarder in &self.forwarders {
            forwarder.abort();
        }
    }
}

/// The part of our environment that plugins get: all but the variables that are ours alone.
pub fn environment(
    ours: impl IntoIterator<Item = (OsString, OsString)>,
    is_private: impl Fn(&str) -> bool,
) -> Vec<(OsString, OsString)> {
    ours.into_iter().filter(|(key, _)| !key.to_str().is_some_and(&is_private)).collect()
}

/// Makes a folder for sockets that nobody else may enter.
pub fn socket_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))
}
