//! A branch of our own on a remote repository: made once, never moved.
//!
//! Pushes a single commit that is in the store to a reference that is not on the host yet. Never changes or deletes one
//! that is.

use git2::{ObjectType, Oid, PackBuilder, Repository, Tree};
use tokio::time::timeout;

use super::{
    Access, Error, FetchLimits, Network, Store,
    fetch::blocking,
    host::Host,
    wire::{self, Greeting, Packet, Service},
};
use crate::model::remote::Remote;

/// What became of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// The branch is new.
    Made,
    /// There is one of that name; it stays as it is.
    There,
}

/// Makes a reference at a commit of the store.
pub async fn push(
    store: &Store,
    remote: &Remote,
    reference: &str,
    commit: &str,
    access: &Access,
    network: &Network,
    limits: &FetchLimits,
) -> Result<Pushed, Error> {
    let late = |_| Error::Slow { remote: remote.to_string(), allowed: limits.time };
    timeout(limits.time, bring(store, remote, reference, commit, access, network, limits)).await.map_err(late)?
}

async fn bring(
    store: &Store,
    remote: &Remote,
    reference: &str,
    commit: &str,
    access: &Access,
    network: &Network,
    limits: &FetchLimits,
) -> Result<Pushed, Error> {
    let mut host = Host::open(remote, Service::Push, access, network, limits).await?;
    let listed = match &host.greeting {
        Greeting::Zero(abilities, listed) => {
            wire::check_format(abilities).map_err(|cause| host.odd(cause))?;
            listed
        }
        Greeting::Two(_) => return Err(host.odd("a version of the protocol in which nothing can be pushed".to_owned())),
    };
    if listed.iter().any(|there| there.name == reference) {
        return Ok(Pushed::There);
    }
    let (own, id) = (store.clone(), commit.to_owned());
    let pack = blocking(move || own.pack_of(&id)).await?;
    host.ask(wire::create(reference, commit, &pack)).await?;
    loop {
        match host.packet().await? {
            Packet::Data(line) => {
                let line = wire::text(&line).map_err(|cause| host.odd(cause))?;
                if let Some(why) = wire::refused(line) {
                    let cause = format!("the branch is not taken: {why}");
                    return Err(Error::Denied { remote: remote.to_string(), cause });
                }
            }
            Packet::Flush | Packet::Delimiter | Packet::End => return Ok(Pushed::Made),
        }
    }
}

impl Store {
    /// What a host needs to know a commit whose parent it has.
    fn pack_of(&self, commit: &str) -> Result<Vec<u8>, Error> {
        let repository = self.repository();
        packed(&repository, commit).map_err(|error| self.failed(&error))
    }
}

fn packed(repository: &Repository, commit: &str) -> Result<Vec<u8>, git2::Error> {
    let commit = repository.find_commit(Oid::from_str(commit)?)?;
    let parent = commit.parent(0)?.tree()?;
    let mut pack = repository.packbuilder()?;
    pack.insert_object(commit.id(), None)?;
    new_in(repository, &mut pack, &commit.tree()?, Some(&parent))?;
    let mut bytes = git2::Buf::new();
    pack.write_buf(&mut bytes)?;
    Ok(bytes.to_vec())
}

/// Puts in what a tree has that another has not under the same name.
fn new_in(
    repository: &Repository,
    pack: &mut PackBuilder<'_>,
    tree: &Tree<'_>,
    before: Option<&Tree<'_>>,
) -> Result<(), git2::Error> {
    pack.insert_object(tree.id(), None)?;
    for entry in tree {
        let other = before.and_then(|before| before.iter().find(|other| other.name_bytes() == entry.name_bytes()));
        if other.as_ref().is_some_and(|other| other.id() == entry.id()) {
            continue;
        }
        match entry.kind() {
            Some(ObjectType::Tree) => {
                let before = other.and_then(|other| repository.find_tree(other.id()).ok());
                new_in(repository, pack, &repository.find_tree(entry.id())?, before.as_ref())?;
            }
            Some(ObjectType::Blob) => pack.insert_object(entry.id(), None)?,
            // Commits of submodules are in repositories of their own.
            Some(_) | None => {}
        }
    }
    Ok(())
}
