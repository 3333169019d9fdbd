//! Fetching through a real sshd on this machine: one process for each connection, on a socket of ours.

use std::{
    fs,
    net::TcpListener,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tidegate::{
    io::git::{Error, FetchLimits, Fetched, Pushed, Reached, Retry, Revert, push},
    model::git_source::Reference,
};

use crate::{
    fetching::{CANARY, Reader},
    repository::Made,
};

/// A shell server that lets one key in.
struct Shell {
    folder: tempfile::TempDir,
    port: u16,
}

const SSHD: &str = "/usr/sbin/sshd";

impl Shell {
    /// Starts to listen; `more` are further lines of its configuration.
    fn start(more: &str) -> Shell {
        assert!(Path::new(SSHD).exists(), "please install openssh-server");
        // Privileges are given up into this folder.
        fs::create_dir_all("/run/sshd").unwrap();
        let folder = tempfile::tempdir().unwrap();
        for name in ["host", "other-host", "user", "other-user"] {
            key(&folder.path().join(name), "ed25519", "");
        }
        let at = |name: &str| folder.path().join(name);
        fs::copy(at("user.pub"), at("authorized")).unwrap();
        let config = format!(
            "HostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n\
             KbdInteractiveAuthentication no\nPermitRootLogin yes\nPrintMotd no\nLogLevel QUIET\n{more}\n",
            at("host").display(),
            at("authorized").display(),
        );
        fs::write(at("config"), config).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let config = at("config");
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = OwnedFd::from(stream.unwrap());
                let (input, output) = (Stdio::from(stream.try_clone().unwrap()), Stdio::from(stream));
                let mut command = Command::new(SSHD);
                command.arg("-i").arg("-f").arg(&config).stdin(input).stdout(output).stderr(Stdio::null());
                let mut child = command.spawn().unwrap();
                std::thread::spawn(move || child.wait());
            }
        });
        Shell { folder, port }
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    /// The line of a host's key, as `ssh-keyscan` prints it.
    fn known(&self, name: &str) -> String {
        format!("[127.0.0.1]:{} {}", self.port, self.read(name))
    }

    fn url(&self, path: &Path) -> String {
        let user = String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
        format!("ssh://{}@127.0.0.1:{}{}", user.trim(), self.port, path.display())
    }

    async fn fetch(&self, path: &Path, keys: &[(&str, &str)]) -> Result<Fetched, Error> {
        Reader::new(&self.url(path), keys).follow(&Reference::Default, None).await
    }
}

fn key(path: &PathBuf, kind: &str, password: &str) {
    let mut command = Command::new("ssh-keygen");
    // The comment is where a secret of ours is seeded.
    command.args(["-q", "-t", kind, "-C", CANARY, "-N", password, "-f"]).arg(path);
    assert!(command.status().expect("please install openssh-client").success());
}

fn made() -> (Made, git2::Oid) {
    let made = Made::new();
    let one = made.push("main", &[("a.yaml", "1")], "one");
    (made, one)
}

#[track_caller]
fn refused(result: Result<Fetched, Error>, retry: Retry, words: &[&str]) {
    let error = result.unwrap_err();
    let text = error.to_string();
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
    assert!(!text.contains("PRIVATE KEY"), "{text}");
    assert_eq!(error.retry(), retry, "{text}");
}

/// Both versions of the protocol: sshd passes the wish for the newer one on only if it is told to.
#[tokio::test]
async fn a_repository_is_fetched_through_a_shell() {
    for more in ["AcceptEnv GIT_PROTOCOL", ""] {
        let (made, one) = made();
        let shell = Shell::start(more);
        let keys = [("identity", shell.read("user")), ("known_hosts", shell.known("host.pub"))];
        let keys = keys.each_ref().map(|(name, value)| (*name, value.as_str()));
        let reader = Reader::new(&shell.url(&made.path()), &keys);
        let first = reader.follow(&Reference::Default, None).await.unwrap();
        assert_eq!((first.commit, first.reached), (one.to_string(), Reached::Branch("main".into())));
        let two = made.push("main", &[("a.yaml", "2")], "two");
        let second = reader.follow(&Reference::Branch("main".into()), Some(&one.to_string())).await.unwrap();
        assert_eq!((second.commit.as_str(), second.rewritten()), (two.to_string().as_str(), false));
        let same = reader.follow(&Reference::Branch("main".into()), Some(&two.to_string())).await.unwrap();
        assert_eq!(same.commit, second.commit);
    }
}

/// A branch of its own is pushed through a shell, too, and only once.
#[tokio::test]
async fn a_branch_is_pushed_through_a_shell() {
    for more in ["AcceptEnv GIT_PROTOCOL", ""] {
        let (made, one) = made();
        let two = made.push("main", &[("a.yaml", "2")], "two").to_string();
        let shell = Shell::start(more);
        let keys = [("identity", shell.read("user")), ("known_hosts", shell.known("host.pub"))];
        let keys = keys.each_ref().map(|(name, value)| (*name, value.as_str()));
        let reader = Reader::new(&shell.url(&made.path()), &keys);
        reader.follow(&Reference::Default, None).await.unwrap();
        let at = jiff::Timestamp::UNIX_EPOCH;
        let revert = Revert { from: &two, to: &one.to_string(), path: "", why: "", at };
        let commit = reader.store().revert(&revert).unwrap().unwrap();
        let limits = FetchLimits::default();
        for pushed in [Pushed::Made, Pushed::There] {
            let name = "refs/heads/tidegate/x";
            let done = push(reader.store(), &reader.remote, name, &commit, reader.access(), reader.network(), &limits);
            assert_eq!(done.await.unwrap(), pushed);
        }
        let arrived = made.repository.find_reference("refs/heads/tidegate/x").unwrap().target().unwrap();
        assert_eq!(arrived.to_string(), commit);
    }
}

#[tokio::test]
async fn other_kinds_of_keys_work_too() {
    for (kind, password) in [("ecdsa", ""), ("rsa", ""), ("ed25519", CANARY)] {
        let (made, one) = made();
        let shell = Shell::start("");
        key(&shell.folder.path().join("mine"), kind, password);
        fs::copy(shell.folder.path().join("mine.pub"), shell.folder.path().join("authorized")).unwrap();
        let (identity, known) = (shell.read("mine"), shell.known("host.pub"));
        let keys = [("identity", identity.as_str()), ("known_hosts", &known), ("password", password)];
        assert_eq!(shell.fetch(&made.path(), &keys).await.unwrap().commit, one.to_string(), "{kind}");
    }
}

/// SR5: a host that shows another key than the one that is known is not talked to.
#[tokio::test]
async fn a_host_with_another_key_is_refused() {
    let (made, _) = made();
    let shell = Shell::start("");
    let identity = shell.read("user");
    let check = async |known: String, words: &[&str]| {
        let keys = [("identity", identity.as_str()), ("known_hosts", &known)];
        refused(shell.fetch(&made.path(), &keys).await, Retry::Later, words);
    };
    check(shell.known("other-host.pub"), &["is not trusted", "SHA256:", "not the one in known_hosts"]).await;
    let elsewhere = format!("other.example {}", shell.read("host.pub"));
    check(elsewhere, &["is not trusted", "known_hosts names no key of [127.0.0.1]"]).await;
    let revoked = format!("@revoked {}{}", shell.known("host.pub"), shell.known("other-host.pub"));
    check(revoked, &["is revoked in known_hosts"]).await;
    key(&shell.folder.path().join("rsa-host"), "rsa", "");
    check(shell.known("rsa-host.pub"), &["is not trusted", "no key of a kind that the host offers"]).await;
}

#[tokio::test]
async fn a_key_that_the_host_does_not_know_is_refused() {
    let (made, _) = made();
    let shell = Shell::start("");
    let known = shell.known("host.pub");
    let other = shell.read("other-user");
    let keys = [("identity", other.as_str()), ("known_hosts", &known)];
    refused(shell.fetch(&made.path(), &keys).await, Retry::Later, &["refuses access", "does not accept the key"]);
    let nonsense = [("identity", CANARY), ("known_hosts", known.as_str())];
    refused(shell.fetch(&made.path(), &nonsense).await, Retry::WhenChanged, &["no private ssh key"]);
    key(&shell.folder.path().join("locked"), "ed25519", CANARY);
    let locked = shell.read("locked");
    let without = [("identity", locked.as_str()), ("known_hosts", &known)];
    refused(shell.fetch(&made.path(), &without).await, Retry::WhenChanged, &["needs a password"]);
    let user = shell.read("user");
    let good = [("identity", user.as_str()), ("known_hosts", &known)];
    let missing = shell.fetch(Path::new("/no/such/repository.git"), &good).await;
    refused(missing, Retry::Later, &["refuses access", "not appear to be a git repository"]);
}
