//! Signed commits and tags, made by git and ssh-keygen themselves.

use std::{path::Path, process::Command};

use tidegate::{
    io::git::{Policy, Reached, Store},
    model::git_source::{Reference, Signed},
};

/// A work tree in which git signs with a key.
struct Signing {
    folder: tempfile::TempDir,
}

impl Signing {
    fn new() -> Signing {
        let folder = tempfile::tempdir().unwrap();
        let signing = Signing { folder };
        for name in ["ada", "eve"] {
            let mut command = Command::new("ssh-keygen");
            command.args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(signing.path(name));
            assert!(command.status().expect("please install openssh-client").success());
        }
        signing.git(&["init", "-q", "-b", "main"], &[]);
        signing
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Runs git with these settings, and no others.
    fn git(&self, arguments: &[&str], settings: &[(&str, &str)]) -> String {
        let mut command = Command::new("git");
        command.current_dir(self.folder.path()).env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", self.folder.path());
        command.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "gpg.format=ssh"]);
        for (name, value) in settings {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        let output = command.args(arguments).output().expect("please install git");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn signed_by(&self, name: &str, arguments: &[&str]) {
        let key = self.path(name);
        self.git(arguments, &[("user.signingkey", key.to_str().unwrap())]);
    }

    fn list(&self, name: &str, options: &str) -> String {
        let key = std::fs::read_to_string(self.path(&format!("{name}.pub"))).unwrap();
        format!("{name}@example.org {options} {key}")
    }

    fn verify(&self, reference: Reference, signed: Signed, list: &str) -> Result<Vec<String>, String> {
        let store = Store::local(Path::new(self.folder.path())).unwrap();
        let fetched = store.resolve(&reference, None).unwrap();
        let policy = Policy::new(signed, list).unwrap();
        store.verify(&fetched, &policy).map_err(|error| error.to_string().split_once(": ").unwrap().1.to_owned())
    }
}

const MAIN: fn() -> Reference = || Reference::Branch("main".into());

/// SR7: only who is listed, and only for as long.
#[test]
fn a_commit_must_be_signed_by_somebody_who_is_listed() {
    let signing = Signing::new();
    signing.signed_by("ada", &["commit", "-q", "-S", "--allow-empty", "-m", "one"]);
    let ada = signing.list("ada", "");
    let check = |list: &str| signing.verify(MAIN(), Signed::Commit, list);
    assert_eq!(check(&ada), Ok(vec!["ada@example.org".to_owned()]));
    assert_eq!(check(&signing.list("ada", "namespaces=\"git\",valid-after=\"20200101\"")).unwrap().len(), 1);
    assert!(check(&signing.list("eve", "")).unwrap_err().contains("not among the allowed signers"));
    assert!(
        check(&signing.list("ada", "valid-before=\"20200101\"")).unwrap_err().contains("does not count at the time")
    );
    let both = format!("{}\n{}", signing.list("ada", "valid-before=\"20200101\""), signing.list("eve", ""));
    assert!(check(&both).is_err());
    // What was signed is what counts: another message under the same signature.
    let repository = git2::Repository::open(signing.folder.path()).unwrap();
    let id = repository.refname_to_id("refs/heads/main").unwrap();
    let raw = repository.odb().unwrap().read(id).unwrap().data().to_vec();
    let text = String::from_utf8(raw).unwrap().replace("\n\none", "\n\ntwo");
    let forged = repository.odb().unwrap().write(git2::ObjectType::Commit, text.as_bytes()).unwrap();
    repository.reference("refs/heads/main", forged, true, "").unwrap();
    assert_eq!(check(&ada).unwrap_err(), "its signature does not fit its content");
    signing.git(&["commit", "-q", "--allow-empty", "-m", "three"], &[]);
    assert_eq!(check(&ada).unwrap_err(), "it is not signed");
}

#[test]
fn a_tag_must_be_signed_under_its_own_name() {
    let signing = Signing::new();
    signing.git(&["commit", "-q", "--allow-empty", "-m", "one"], &[]);
    signing.signed_by("ada", &["tag", "-s", "v1.0.0", "-m", "release"]);
    signing.git(&["tag", "v1.1.0"], &[]);
    signing.git(&["update-ref", "refs/tags/v2.0.0", "refs/tags/v1.0.0"], &[]);
    let ada = signing.list("ada", "");
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
