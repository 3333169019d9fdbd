//! From a remote reference to a commit that is here.
//!
//! Asks what the reference points at first, which costs two small requests; gets a pack only for what is not here yet. One
//! fetch at a time for each store, so that sources of the same repository share it. A pack is kept in a file of ours
//! until its budget is checked, and becomes part of the store as a whole or not at all.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufReader, Read, Write},
    path::PathBuf,
    time::Instant,
};

use git2::Oid;
use tokio::{io::AsyncWriteExt, time::timeout};

use super::{
    Access, Error, FetchLimits, Fetched, Network, Reached, Store,
    host::Host,
    pack::{self, Objection},
    store::highest,
    wire::{self, Answer, Greeting, Listed, Packet, Part, Service, Wish},
};
use crate::model::{git_source::Reference, remote::Remote};

/// Follows a reference of a remote repository; afterwards its commit is in the store.
///
/// `known` is the commit that it led to before, if that is known, and only says how the new one follows it.
pub async fn fetch(
    store: &Store,
    remote: &Remote,
    reference: &Reference,
    known: Option<&str>,
    access: &Access,
    network: &Network,
    limits: &FetchLimits,
) -> Result<Fetched, Error> {
    let _alone = store.fetching().lock().await;
    let all = bring(store, remote, reference, access, network, limits);
    let late = |_| Error::Slow { remote: remote.to_string(), allowed: limits.time };
    let (target, reached) = timeout(limits.time, all).await.map_err(late)??;
    let (store, known) = (store.clone(), known.map(str::to_owned));
    let packs = limits.packs;
    blocking(move || {
        store.compact(packs)?;
        store.arrive(target, reached, known.as_deref())
    })
    .await
}

async fn bring(
    store: &Store,
    remote: &Remote,
    reference: &Reference,
    access: &Access,
    network: &Network,
    limits: &FetchLimits,
) -> Result<(Oid, Reached), Error> {
    let mut host = Host::open(remote, Service::Fetch, access, network, limits).await?;
    let (target, reached) = match reference {
        Reference::Commit(hash) => {
            // A store is shared by all sources of its repository. That a commit is in it does not mean that this source
            // may read it: the host decides that, and an answer with these credentials is how it says so.
            if store.has(hash) {
                list(&mut host, &prefixes(reference), limits).await?;
            }
            (hash.clone(), Reached::Hash)
        }
        Reference::Default | Reference::Branch(_) | Reference::Tag(_) | Reference::Semver(_) => {
            let listed = list(&mut host, &prefixes(reference), limits).await?;
            pick(remote, reference, &listed)?
        }
    };
    let id = oid(remote, &target)?;
    if !store.holds(id) {
        download(store, &mut host, &target, remote, network, limits).await?;
        if !store.holds(id) {
            // What nobody asked for does not stay.
            let store = store.clone();
            blocking(move || store.compact(0)).await?;
            return Err(host.odd("a pack without the commit that was asked for".to_owned()));
        }
    }
    store.keep(&reached, id)?;
    Ok((id, reached))
}

fn oid(remote: &Remote, hash: &str) -> Result<Oid, Error> {
    let missing = |_| Error::Missing { remote: remote.to_string(), what: format!("commit {hash}") };
    Oid::from_str(hash).map_err(missing)
}

/// The names that matter to a reference.
fn prefixes(reference: &Reference) -> Vec<String> {
    match reference {
        Reference::Default | Reference::Commit(_) => vec!["HEAD".to_owned()],
        Reference::Branch(name) => vec![format!("refs/heads/{name}")],
        Reference::Tag(name) => vec![format!("refs/tags/{name}")],
        Reference::Semver(_) => vec!["refs/tags/".to_owned()],
    }
}

/// What the host has under these names.
async fn list(host: &mut Host<'_>, prefixes: &[String], limits: &FetchLimits) -> Result<Vec<Listed>, Error> {
    let (abilities, named) = match &mut host.greeting {
        // What nobody asked for is let go of.
        Greeting::Zero(abilities, listed) => (abilities.clone(), Some(std::mem::take(listed))),
        Greeting::Two(abilities) => (abilities.clone(), None),
    };
    wire::check_format(&abilities).map_err(|cause| host.odd(cause))?;
    // A host may list more than it was asked for.
    let is_asked = |listed: &Listed| prefixes.iter().any(|prefix| listed.name.starts_with(prefix.as_str()));
    if let Some(mut named) = named {
        named.retain(is_asked);
        return Ok(named);
    }
    host.ask(wire::list(&abilities, prefixes)).await?;
    let (mut found, mut lines, mut bytes) = (Vec::new(), 0, 0);
    loop {
        match host.packet().await? {
            Packet::Data(data) => {
                (lines, bytes) = (lines + 1, bytes + data.len());
                let text = wire::text(&data).map_err(|cause| host.odd(cause))?;
                let listed = wire::listed(text).map_err(|cause| host.odd(cause))?;
                if is_asked(&listed) {
                    found.push(listed);
                }
            }
            Packet::Flush | Packet::End => return Ok(found),
            Packet::Delimiter => {}
        }
        if lines > limits.references {
            let what = "the number of references".to_owned();
            return Err(Error::Limit { what, allowed: limits.references.to_string() });
        }
        if bytes > limits.listing_bytes {
            let what = "the size of the list of references".to_owned();
            return Err(Error::Limit { what, allowed: format!("{} MiB", limits.listing_bytes >> 20) });
        }
    }
}

/// The object that a reference leads to, and how.
fn pick(remote: &Remote, reference: &Reference, listed: &[Listed]) -> Result<(String, Reached), Error> {
    let missing = |what: String| Error::Missing { remote: remote.to_string(), what };
    let named = |name: &str| listed.iter().find(|listed| listed.name == name).map(|listed| listed.id.clone());
    match reference {
        Reference::Default => {
            let head = listed.iter().find(|listed| listed.name == "HEAD");
            let head = head.ok_or_else(|| missing("commit on its default branch yet".to_owned()))?;
            let branch = head.target.as_deref().and_then(|target| target.strip_prefix("refs/heads/"));
            let reached = branch.map_or(Reached::Hash, |branch| Reached::Branch(branch.to_owned()));
            Ok((head.id.clone(), reached))
        }
        Reference::Branch(name) => {
            let id = named(&format!("refs/heads/{name}")).ok_or_else(|| missing(format!("branch {name}")))?;
            Ok((id, Reached::Branch(name.clone())))
        }
        Reference::Tag(name) => {
            let id = named(&format!("refs/tags/{name}")).ok_or_else(|| missing(format!("tag {name}")))?;
            Ok((id, Reached::Tag(name.clone())))
        }
        Reference::Semver(range) => {
            let tags = listed.iter().filter_map(|listed| listed.name.strip_prefix("refs/tags/"));
            let name = highest(range, tags)?.ok_or_else(|| missing(format!("tag in the range {range}")))?;
            let id = named(&format!("refs/tags/{name}")).ok_or_else(|| missing(format!("tag {name}")))?;
            Ok((id, Reached::Tag(name)))
        }
        Reference::Commit(hash) => Ok((hash.clone(), Reached::Hash)),
    }
}

/// Gets a pack with an object and what belongs to it.
async fn download(
    store: &Store,
    host: &mut Host<'_>,
    target: &str,
    remote: &Remote,
    network: &Network,
    limits: &FetchLimits,
) -> Result<(), Error> {
    let began = Instant::now();
    let wish = Wish { want: target.to_owned(), have: store.tips(), shallow: store.ends(), depth: limits.depth.max(1) };
    let question = wire::fetch(&host.greeting, &wish).map_err(|cause| host.odd(cause))?;
    host.ask(question).await?;
    let incoming = Incoming(store.folder().join("incoming"));
    let broken = |error: std::io::Error| incoming.broken(&error);
    let mut file = tokio::fs::File::create(&incoming.0).await.map_err(broken)?;
    let (mut answer, mut received) = (Answer::default(), 0);
    let mut ends: BTreeSet<String> = wish.shallow.into_iter().collect();
    let allowed = ends.len() + limits.shallow;
    loop {
        let packet = host.packet().await?;
        match answer.take(packet).map_err(|cause| host.odd(cause))? {
            Part::Shallow(id) => {
                ends.insert(id);
            }
            Part::Unshallow(id) => {
                ends.remove(&id);
            }
            Part::Pack(bytes) => {
                received += bytes.len() as u64;
                if received > limits.pack_bytes {
                    let what = format!("the size of what {remote} sends");
                    return Err(Error::Limit { what, allowed: format!("{} MiB", limits.pack_bytes >> 20) });
                }
                file.write_all(&bytes).await.map_err(broken)?;
            }
            Part::End => break,
            Part::Nothing => {}
        }
        if ends.len() > allowed {
            let what = "the number of ends of a shallow history".to_owned();
            return Err(Error::Limit { what, allowed: limits.shallow.to_string() });
        }
    }
    let ends: Vec<String> = ends.into_iter().collect();
    file.flush().await.map_err(broken)?;
    drop(file);
    let (checked, name) = (limits.clone(), remote.to_string());
    let (incoming, largest) = blocking(move || {
        let largest = weigh(&incoming, &checked, &name)?;
        Ok((incoming, largest))
    })
    .await?;
    let _turn = network.unpacking_turn(largest).await;
    let (store, limits, name) = (store.clone(), limits.clone(), remote.to_string());
    blocking(move || take_in(&store, &incoming, &ends, &limits, &name, began)).await
}

/// A pack that is not checked yet; gone when we are done with it, whatever came of it.
struct Incoming(PathBuf);

impl Incoming {
    fn broken(&self, error: &std::io::Error) -> Error {
        Error::Store { path: self.0.clone(), cause: error.to_string() }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // What cannot be removed is overwritten by the next.
        drop(fs::remove_file(&self.0));
    }
}

/// Checks a pack against its budget. Answers with the size of its largest object.
fn weigh(incoming: &Incoming, limits: &FetchLimits, remote: &str) -> Result<u64, Error> {
    let file = fs::File::open(&incoming.0).map_err(|error| incoming.broken(&error))?;
    pack::check(BufReader::new(file), limits).map_err(|objection| match objection {
        Objection::Limit(what, allowed) => Error::Limit { what: format!("{what} from {remote}"), allowed },
        Objection::Malformed(cause) => Error::Malformed { remote: remote.to_owned(), cause },
    })
}

/// Makes a pack part of the store that was checked.
fn take_in(
    store: &Store,
    incoming: &Incoming,
    ends: &[String],
    limits: &FetchLimits,
    remote: &str,
    began: Instant,
) -> Result<(), Error> {
    let broken = |error: std::io::Error| incoming.broken(&error);
    let malformed = |cause: String| Error::Malformed { remote: remote.to_owned(), cause };
    let repository = store.repository();
    let odb = repository.odb().map_err(|error| store.failed(&error))?;
    let mut writer = odb.packwriter().map_err(|error| store.failed(&error))?;
    let time = limits.time;
    writer.progress(move |_| began.elapsed() < time);
    let mut reader = fs::File::open(&incoming.0).map_err(broken)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = reader.read(&mut buffer).map_err(broken)?;
        if read == 0 {
            break;
        }
        writer
            .write_all(&buffer[..read])
            .map_err(|error| malformed(format!("a pack that cannot be unpacked: {error}")))?;
    }
    writer.commit().map_err(|error| malformed(format!("a pack that cannot be unpacked: {}", error.message())))?;
    drop(writer);
    drop(odb);
    drop(repository);
    store.set_ends(ends)
}

/// Does something that waits for the disk.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(Error::Store { path: PathBuf::new(), cause: format!("the work was cut short: {error}") }),
    }
}
