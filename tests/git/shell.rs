//! A host that is reached through a secure shell and runs git's own programs: a server inside this process, or the real
//! `sshd` if `TIDEGATE_SSHD` names it, one process for each connection on a socket of ours.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs,
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use russh::{
    Channel, ChannelId,
    keys::{PublicKey, decode_secret_key, ssh_key::LineEnding},
    server::{self, Auth, ChannelOpenHandle, Msg, Session, VerifiedPublicKey},
};
use tokio::{io::AsyncWriteExt, net::TcpListener};

use super::{fetching::CANARY, keys, openssh};

/// A host that lets one key in.
pub struct Shell {
    pub folder: tempfile::TempDir,
    port: u16,
    user: String,
}

/// Whether a host passes on which version of git's protocol a client asks for. sshd does so only if it is told to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    Passed,
    Dropped,
}

impl Shell {
    /// Starts to listen. Keys are files of a folder: `host`, `user` and one more of each; `authorized` is who is let in.
    pub async fn start(version: Version) -> Shell {
        let folder = tempfile::tempdir().unwrap();
        for name in ["host", "other-host", "user", "other-user"] {
            // The comment is where a secret of ours is seeded.
            let key = keys::key(name, CANARY);
            let path = folder.path().join(name);
            key.write_openssh_file(&path, LineEnding::LF).unwrap();
            fs::write(path.with_extension("pub"), keys::public(&key)).unwrap();
        }
        fs::copy(folder.path().join("user.pub"), folder.path().join("authorized")).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let user = match openssh::sshd() {
            Some(program) => {
                real(program, listener, folder.path(), version);
                String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap().trim().to_owned()
            }
            None => {
                tokio::spawn(serve(listener, folder.path().to_owned(), version));
                "git".to_owned()
            }
        };
        Shell { folder, port, user }
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    /// The line of a host's key, as `ssh-keyscan` prints it.
    pub fn known(&self, name: &str) -> String {
        format!("[127.0.0.1]:{} {}", self.port, self.read(name))
    }

    pub fn url(&self, path: &Path) -> String {
        format!("ssh://{}@127.0.0.1:{}{}", self.user, self.port, path.display())
    }
}

/// The real one.
fn real(program: OsString, listener: TcpListener, folder: &Path, version: Version) {
    // Privileges are given up into this folder.
    fs::create_dir_all("/run/sshd").unwrap();
    let at = |name: &str| folder.join(name).display().to_string();
    let environment = if version == Version::Passed { "AcceptEnv GIT_PROTOCOL" } else { "" };
    let text = format!(
        "HostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n\
         KbdInteractiveAuthentication no\nPermitRootLogin yes\nPrintMotd no\nLogLevel QUIET\n{environment}\n",
        at("host"),
        at("authorized"),
    );
    let config = folder.join("config");
    fs::write(&config, text).unwrap();
    let listener = listener.into_std().unwrap();
    listener.set_nonblocking(false).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = OwnedFd::from(stream.unwrap());
            let (input, output) = (Stdio::from(stream.try_clone().unwrap()), Stdio::from(stream));
            let mut command = Command::new(&program);
            command.arg("-i").arg("-f").arg(&config).stdin(input).stdout(output).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            std::thread::spawn(move || child.wait());
        }
    });
}

/// The one of this process.
async fn serve(listener: TcpListener, folder: PathBuf, version: Version) {
    let host = decode_secret_key(&fs::read_to_string(folder.join("host")).unwrap(), None).unwrap();
    let config = Arc::new(server::Config {
        keys: vec![host],
        // There is nobody here to guess keys.
        auth_rejection_time: Duration::ZERO,
        ..server::Config::default()
    });
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let client = Client { folder: folder.clone(), version, asked: None, channels: HashMap::new() };
        let config = config.clone();
        tokio::spawn(async move {
            // A client that does not trust us, or that is not let in, hangs up.
            if let Ok(session) = server::run_stream(config, stream, client).await {
                drop(session.await);
            }
        });
    }
}

/// Somebody who is connected.
struct Client {
    folder: PathBuf,
    version: Version,
    asked: Option<String>,
    channels: HashMap<ChannelId, Channel<Msg>>,
}

impl server::Handler for Client {
    type Error = russh::Error;

    async fn auth_publickey(&mut self, _: &str, key: VerifiedPublicKey<'_>) -> Result<Auth, russh::Error> {
        let authorized = fs::read_to_string(self.folder.join("authorized")).unwrap();
        let is_it = |line: &str| PublicKey::from_openssh(line).unwrap().key_data() == key.public_key.key_data();
        Ok(if authorized.lines().any(is_it) { Auth::Accept } else { Auth::reject() })
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), russh::Error> {
        self.channels.insert(channel.id(), channel);
        reply.accept().await;
        Ok(())
    }

    async fn env_request(
        &mut self,
        channel: ChannelId,
        name: &str,
        value: &str,
        session: &mut Session,
    ) -> Result<(), russh::Error> {
        if (name, self.version) == ("GIT_PROTOCOL", Version::Passed) {
            self.asked = Some(value.to_owned());
            session.channel_success(channel)
        } else {
            session.channel_failure(channel)
        }
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        command: &[u8],
        session: &mut Session,
    ) -> Result<(), russh::Error> {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(std::str::from_utf8(command).unwrap()).env_remove("GIT_PROTOCOL");
        shell.envs(self.asked.iter().map(|version| ("GIT_PROTOCOL", version)));
        session.channel_success(channel)?;
        tokio::spawn(run(self.channels.remove(&channel).unwrap(), shell));
        Ok(())
    }
}

/// Runs a program and connects it with a channel.
async fn run(channel: Channel<Msg>, mut program: Command) {
    let pair = || {
        let (near, far) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        (tokio::net::UnixStream::from_std(near).unwrap(), OwnedFd::from(far))
    };
    let ((data, far), (errors, far_errors)) = (pair(), pair());
    program.stdin(far.try_clone().unwrap()).stdout(far).stderr(far_errors);
    let mut child = program.spawn().unwrap();
    // It holds the other ends as well: without them the program's end is seen.
    drop(program);
    let (mut input, output) = channel.split();
    let (from_program, mut to_program) = data.into_split();
    let feed = tokio::spawn(async move {
        // A program that has ended takes nothing more.
        drop(tokio::io::copy(&mut input.make_reader(), &mut to_program).await);
        drop(to_program.shutdown().await);
    });
    let (sent, told) = tokio::join!(output.data(from_program), output.extended_data(1, errors));
    let status = tokio::task::spawn_blocking(move || child.wait()).await.unwrap().unwrap();
    // A client that has what it wants may be gone.
    if sent.and(told).is_ok() {
        drop(output.exit_status(status.code().unwrap_or(255).unsigned_abs()).await);
        drop(output.eof().await);
        drop(output.close().await);
    }
    feed.abort();
}
