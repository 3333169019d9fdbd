//! ssh keys and what is signed with them, made in this process: nothing of OpenSSH has to be installed.

use git2::{ObjectType, Oid, Repository};
use russh::keys::{
    HashAlg, PrivateKey,
    ssh_key::{
        LineEnding,
        private::{Ed25519Keypair, KeypairData},
    },
};

/// A key of this name, the same each time; the comment stands in both halves of it.
pub fn key(name: &str, comment: &str) -> PrivateKey {
    let seed = ring::digest::digest(&ring::digest::SHA256, name.as_bytes());
    let pair = Ed25519Keypair::from_seed(seed.as_ref().try_into().unwrap());
    PrivateKey::new(KeypairData::from(pair), comment).unwrap()
}

/// The line of its public half.
pub fn public(key: &PrivateKey) -> String {
    key.public_key().to_openssh().unwrap() + "\n"
}

/// A commit on top of a branch, which is moved; signed as git has it signed, if a key is given.
pub fn commit(repository: &Repository, branch: &str, tree: Oid, message: &str, key: Option<&PrivateKey>) -> Oid {
    let name = format!("refs/heads/{branch}");
    let parent = repository.refname_to_id(&name).ok().map(|id| repository.find_commit(id).unwrap());
    let (tree, who) = (repository.find_tree(tree).unwrap(), git2::Signature::now("Ada", "ada@example.org").unwrap());
    let content =
        repository.commit_create_buffer(&who, &who, message, &tree, &parent.iter().collect::<Vec<_>>()).unwrap();
    let id = match key {
        Some(key) => {
            let text = std::str::from_utf8(&content).unwrap();
            repository.commit_signed(text, &signature(key, &content), None).unwrap()
        }
        None => repository.odb().unwrap().write(ObjectType::Commit, &content).unwrap(),
    };
    repository.reference(&name, id, true, "").unwrap();
    id
}

/// A signed tag of a commit.
pub fn tag(repository: &Repository, name: &str, commit: Oid, key: &PrivateKey) -> Oid {
    let now = git2::Signature::now("Ada", "ada@example.org").unwrap().when().seconds();
    let mut text =
        format!("object {commit}\ntype commit\ntag {name}\ntagger Ada <ada@example.org> {now} +0000\n\nrelease\n");
    text += &signature(key, text.as_bytes());
    let id = repository.odb().unwrap().write(ObjectType::Tag, text.as_bytes()).unwrap();
    repository.reference(&format!("refs/tags/{name}"), id, true, "").unwrap();
    id
}

fn signature(key: &PrivateKey, content: &[u8]) -> String {
    key.sign("git", HashAlg::Sha512, content).unwrap().to_pem(LineEnding::LF).unwrap()
}
