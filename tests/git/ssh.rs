//! Fetching and pushing through a secure shell.

use std::{fs, path::Path};

use tidegate::{
    io::git::{Error, FetchLimits, Fetched, Pushed, Reached, Retry, Revert, push},
    model::git_source::Reference,
};

use super::{
    fetching::{CANARY, Reader},
    openssh,
    repository::Made,
    shell::{Shell, Version},
};

async fn fetch(shell: &Shell, path: &Path, keys: &[(&str, &str)]) -> Result<Fetched, Error> {
    Reader::new(&shell.url(path), keys).follow(&Reference::Default, None).await
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

/// In both versions of the protocol.
#[tokio::test]
async fn a_repository_is_fetched_through_a_shell() {
    for version in [Version::Passed, Version::Dropped] {
        let (made, one) = made();
        let shell = Shell::start(version).await;
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
    for version in [Version::Passed, Version::Dropped] {
        let (made, one) = made();
        let two = made.push("main", &[("a.yaml", "2")], "two").to_string();
        let shell = Shell::start(version).await;
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
async fn every_kind_of_key_of_ssh_keygen_works() {
    for (name, password) in [("ed25519", ""), ("ecdsa", ""), ("rsa", ""), ("locked", CANARY)] {
        let (made, one) = made();
        let shell = Shell::start(Version::Dropped).await;
        openssh::key(name, &shell.folder.path().join("mine"));
        fs::copy(shell.folder.path().join("mine.pub"), shell.folder.path().join("authorized")).unwrap();
        let (identity, known) = (shell.read("mine"), shell.known("host.pub"));
        let keys = [("identity", identity.as_str()), ("known_hosts", &known), ("password", password)];
        assert_eq!(fetch(&shell, &made.path(), &keys).await.unwrap().commit, one.to_string(), "{name}");
    }
}

/// SR5: a host that shows another key than the one that is known is not talked to.
#[tokio::test]
async fn a_host_with_another_key_is_refused() {
    let (made, _) = made();
    let shell = Shell::start(Version::Dropped).await;
    let identity = shell.read("user");
    let check = async |known: String, words: &[&str]| {
        let keys = [("identity", identity.as_str()), ("known_hosts", &known)];
        refused(fetch(&shell, &made.path(), &keys).await, Retry::Later, words);
    };
    check(shell.known("other-host.pub"), &["is not trusted", "SHA256:", "not the one in known_hosts"]).await;
    let elsewhere = format!("other.example {}", shell.read("host.pub"));
    check(elsewhere, &["is not trusted", "known_hosts names no key of [127.0.0.1]"]).await;
    let revoked = format!("@revoked {}{}", shell.known("host.pub"), shell.known("other-host.pub"));
    check(revoked, &["is revoked in known_hosts"]).await;
    openssh::key("rsa", &shell.folder.path().join("rsa-host"));
    check(shell.known("rsa-host.pub"), &["is not trusted", "no key of a kind that the host offers"]).await;
}

#[tokio::test]
async fn a_key_that_the_host_does_not_know_is_refused() {
    let (made, _) = made();
    let shell = Shell::start(Version::Dropped).await;
    let known = shell.known("host.pub");
    let other = shell.read("other-user");
    let keys = [("identity", other.as_str()), ("known_hosts", &known)];
    refused(fetch(&shell, &made.path(), &keys).await, Retry::Later, &["refuses access", "does not accept the key"]);
    let nonsense = [("identity", CANARY), ("known_hosts", known.as_str())];
    refused(fetch(&shell, &made.path(), &nonsense).await, Retry::WhenChanged, &["no private ssh key"]);
    openssh::key("locked", &shell.folder.path().join("locked"));
    let locked = shell.read("locked");
    let without = [("identity", locked.as_str()), ("known_hosts", &known)];
    refused(fetch(&shell, &made.path(), &without).await, Retry::WhenChanged, &["needs a password"]);
    let user = shell.read("user");
    let good = [("identity", user.as_str()), ("known_hosts", &known)];
    let missing = fetch(&shell, Path::new("/no/such/repository.git"), &good).await;
    refused(missing, Retry::Later, &["refuses access", "not appear to be a git repository"]);
}
