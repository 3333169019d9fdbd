//! Signed commits and tags: made in this process, and made by git and ssh-keygen themselves.

use std::{path::Path, process::Command};

use git2::{ObjectType, Oid, Repository};
use tidegate::{
    io::git::{Policy, Reached, Store},
    model::git_source::{Reference, Signed},
};

use super::{keys, openssh};

/// A repository in which Ada and Eve sign.
struct Signing {
    folder: tempfile::TempDir,
    repository: Repository,
}

impl Signing {
    fn new() -> Signing {
        let folder = tempfile::tempdir().unwrap();
        let mut options = git2::RepositoryInitOptions::new();
        let repository = Repository::init_opts(folder.path(), options.initial_head("main")).unwrap();
        Signing { folder, repository }
    }

    /// An empty commit, signed by somebody or by nobody.
    fn commit(&self, by: Option<&str>, message: &str) -> Oid {
        let tree = self.repository.odb().unwrap().write(ObjectType::Tree, b"").unwrap();
        let key = by.map(|name| keys::key(name, name));
        keys::commit(&self.repository, "main", tree, message, key.as_ref())
    }

    fn point(&self, name: &str, id: Oid) {
        self.repository.reference(name, id, true, "").unwrap();
    }

    fn verify(&self, reference: Reference, signed: Signed, list: &str) -> Result<Vec<String>, String> {
        let store = Store::local(self.folder.path()).unwrap();
        let fetched = store.resolve(&reference, None).unwrap();
        let policy = Policy::new(signed, list).unwrap();
        store.verify(&fetched, &policy).map_err(|error| error.to_string().split_once(": ").unwrap().1.to_owned())
    }
}

/// The line of somebody in a list of signers.
fn list(name: &str, options: &str) -> String {
    format!("{name}@example.org {options} {}", keys::public(&keys::key(name, name)))
}

const MAIN: fn() -> Reference = || Reference::Branch("main".into());

/// SR7: only who is listed, and only for as long.
#[test]
fn a_commit_must_be_signed_by_somebody_who_is_listed() {
    let signing = Signing::new();
    let id = signing.commit(Some("ada"), "one");
    let ada = list("ada", "");
    let check = |list: &str| signing.verify(MAIN(), Signed::Commit, list);
    assert_eq!(check(&ada), Ok(vec!["ada@example.org".to_owned()]));
    assert_eq!(check(&list("ada", "namespaces=\"git\",valid-after=\"20200101\"")).unwrap().len(), 1);
    assert!(check(&list("eve", "")).unwrap_err().contains("not among the allowed signers"));
    assert!(check(&list("ada", "valid-before=\"20200101\"")).unwrap_err().contains("does not count at the time"));
    let both = format!("{}\n{}", list("ada", "valid-before=\"20200101\""), list("eve", ""));
    assert!(check(&both).is_err());
    // What was signed is what counts: another message under the same signature.
    let odb = signing.repository.odb().unwrap();
    let text = String::from_utf8(odb.read(id).unwrap().data().to_vec()).unwrap();
    let forged = odb.write(ObjectType::Commit, text.replace("\n\none", "\n\ntwo").as_bytes()).unwrap();
    signing.point("refs/heads/main", forged);
    assert_eq!(check(&ada).unwrap_err(), "its signature does not fit its content");
    signing.commit(None, "three");
    assert_eq!(check(&ada).unwrap_err(), "it is not signed");
}

#[test]
fn a_tag_must_be_signed_under_its_own_name() {
    let signing = Signing::new();
    let commit = signing.commit(None, "one");
    let tag = keys::tag(&signing.repository, "v1.0.0", commit, &keys::key("ada", "ada"));
    signing.point("refs/tags/v1.1.0", commit);
    signing.point("refs/tags/v2.0.0", tag);
    let ada = list("ada", "");
    let check = |tag: &str, signed: Signed| signing.verify(Reference::Tag(tag.into()), signed, &ada);
    assert_eq!(check("v1.0.0", Signed::Tag), Ok(vec!["ada@example.org".to_owned()]));
    assert_eq!(check("v1.0.0", Signed::TagAndCommit).unwrap_err(), "it is not signed");
    assert_eq!(check("v1.1.0", Signed::Tag).unwrap_err(), "it is only a name; make it with `git tag -s`");
    assert!(check("v2.0.0", Signed::Tag).unwrap_err().contains("another tag"));
    let main = signing.verify(MAIN(), Signed::Tag, &ada);
    assert_eq!(main.unwrap_err(), "no tag led to it, and tags must be signed");
    let store = Store::local(signing.folder.path()).unwrap();
    assert_eq!(store.resolve(&Reference::Default, None).unwrap().reached, Reached::Branch("main".into()));
}

/// A commit and a tag that git had signed by ssh-keygen, and the public half of the key.
struct Peer {
    commit: Vec<u8>,
    tag: Vec<u8>,
    public: String,
}

impl Peer {
    /// With a key of this kind: just now if the programs are named, else when it was recorded.
    fn of(kind: &str) -> Peer {
        let Some(program) = openssh::keygen() else {
            let [commit, tag, public] = ["commit", "tag", "pub"].map(|end| openssh::recorded(&format!("{kind}.{end}")));
            return Peer { commit, tag, public: String::from_utf8(public).unwrap() };
        };
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key");
        openssh::key(kind, &key);
        let git = |arguments: &[&str]| {
            let mut command = Command::new("git");
            command.current_dir(folder.path()).env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", folder.path());
            command.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "gpg.format=ssh"]);
            command.arg("-c").arg(format!("gpg.ssh.program={}", Path::new(&program).display()));
            command.arg("-c").arg(format!("user.signingkey={}", key.display()));
            let output = command.args(arguments).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            output.stdout
        };
        git(&["init", "-q", "-b", "main", "."]);
        git(&["commit", "-q", "-S", "--allow-empty", "-m", "one"]);
        git(&["tag", "-s", "v1.0.0", "-m", "release"]);
        let (commit, tag) = (git(&["cat-file", "commit", "HEAD"]), git(&["cat-file", "tag", "v1.0.0"]));
        Peer { commit, tag, public: std::fs::read_to_string(key.with_extension("pub")).unwrap() }
    }
}

#[test]
fn what_git_and_ssh_keygen_sign_counts_and_nothing_else() {
    for kind in ["ed25519", "ecdsa", "rsa"] {
        let (peer, signing) = (Peer::of(kind), Signing::new());
        let odb = signing.repository.odb().unwrap();
        odb.write(ObjectType::Tree, b"").unwrap();
        let put = |commit: &[u8], tag: &[u8]| {
            signing.point("refs/heads/main", odb.write(ObjectType::Commit, commit).unwrap());
            signing.point("refs/tags/v1.0.0", odb.write(ObjectType::Tag, tag).unwrap());
        };
        let listed = format!("ada@example.org {}", peer.public);
        let verify = |signed: Signed, list: &str| signing.verify(Reference::Tag("v1.0.0".into()), signed, list);
        put(&peer.commit, &peer.tag);
        assert_eq!(verify(Signed::TagAndCommit, &listed), Ok(vec!["ada@example.org".to_owned()]), "{kind}");
        assert!(verify(Signed::Commit, &list("eve", "")).unwrap_err().contains("not among the allowed signers"));
        let spoilt = |bytes: &[u8], from: &str, to: &str| {
            let text = std::str::from_utf8(bytes).unwrap();
            assert!(text.contains(from), "{text}");
            text.replacen(from, to, 1).into_bytes()
        };
        put(&peer.commit, &spoilt(&peer.tag, "\n\nrelease\n", "\n\nrelease!\n"));
        assert_eq!(verify(Signed::Tag, &listed).unwrap_err(), "its signature does not fit its content", "{kind}");
        put(&spoilt(&peer.commit, "\n\none\n", "\n\ntwo\n"), &peer.tag);
        let main = signing.verify(MAIN(), Signed::Commit, &listed);
        assert_eq!(main.unwrap_err(), "its signature does not fit its content", "{kind}");
    }
}
