//! Reads objects in the name of a source.
//!
//! Watches are shared by all sources and ask with the daemon's own rights, so what they brought is shown to a source only
//! where its account may read everything of that resource in that namespace. Everything else is read as that account: by
//! list where much of one namespace is needed, one by one elsewhere.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use futures::{StreamExt, stream};
use jiff::{SignedDuration, Timestamp};

use super::account;
use crate::{
    engine::key::{ObjectKey, Place, Resource},
    io::{
        api::{Api, Error},
        watch::{self, Scope},
    },
    kubernetes::value::{Text, Value},
    sync::{
        id::Id,
        rights::{MissingRights, ReadRight},
    },
};

/// How many objects are read at once.
const AT_ONCE: usize = 32;
/// From how many objects of a resource in a namespace on they are listed.
const LISTED_FROM: usize = 16;
/// How many objects of others a list may bring for each that is wanted; beyond it each is asked for by its name.
const OTHERS_FOR_EACH: usize = 20;
/// How long what an account may read is believed.
const RIGHTS_LAST: SignedDuration = SignedDuration::from_mins(5);

/// A resource in one namespace; in none if that is empty.
pub type Part = (Resource, Text);

/// What the account of a source may read.
#[derive(Default)]
pub struct Rights {
    user: Option<String>,
    known: HashMap<Part, (Timestamp, bool)>,
}

impl Rights {
    /// Finds out what may be read of these parts, where that is not known or was found out long ago.
    pub async fn learn(&mut self, api: &Api, parts: BTreeSet<Part>, now: Timestamp) -> Result<(), Error> {
        // Whoever asks in our own name may see what we see.
        let Some(user) = api.user() else { return Ok(()) };
        if self.user.as_deref() != Some(user) {
            *self = Rights { user: Some(user.to_owned()), known: HashMap::new() };
        }
        self.known.retain(|_, (at, _)| now.duration_since(*at) < RIGHTS_LAST);
        let unknown = parts.into_iter().filter(|part| !self.known.contains_key(part)).collect::<Vec<_>>();
        let asked = unknown.into_iter().map(|(resource, namespace)| async move {
            let may = api.may("get", &resource, &namespace).await;
            ((resource, namespace), may)
        });
        let mut answers = stream::iter(asked).buffer_unordered(AT_ONCE);
        while let Some((part, may)) = answers.next().await {
            let may = match may {
                Ok(may) => may,
                // Whoever may not even ask that reads each object by itself.
                Err(error) if matches!(error.code(), Some(403 | 404)) => false,
                Err(error) => return Err(error),
            };
            self.known.insert(part, (now, may));
        }
        Ok(())
    }

    /// Whether all of a resource in a namespace may be shown.
    pub fn shows(&self, api: &Api, part: &Part) -> bool {
        api.user().is_none() || self.known.get(part).is_some_and(|(_, may)| *may)
    }
}

/// What was read.
#[derive(Default)]
pub struct Read {
    /// What is there.
    pub found: Vec<(Id, Resource, Value)>,
    /// What may not be read.
    pub denied: BTreeSet<ReadRight>,
}

/// Reads objects.
pub async fn objects(api: &Api, wanted: Vec<(Id, ObjectKey)>) -> Result<Read, Error> {
    let mut parts: BTreeMap<Part, Vec<(Id, Text)>> = BTreeMap::new();
    for (id, ObjectKey { resource, place }) in wanted {
        parts.entry((resource, place.namespace)).or_default().push((id, place.name));
    }
    let (mut read, mut rest) = (Read::default(), Vec::new());
    for ((resource, namespace), mut wanted) in parts {
        // Secrets are read by their names alone.
        if wanted.len() >= LISTED_FROM && !is_secrets(&resource) {
            let done = listed(api, &resource, &namespace, &wanted, &mut read.found).await?;
            wanted.retain(|(_, name)| !done.contains(name));
        }
        let place = |name: Text| Place { namespace: namespace.clone(), name };
        rest.extend(
            wanted.into_iter().map(|(id, name)| (id, ObjectKey { resource: resource.clone(), place: place(name) })),
        );
    }
    let gets = rest.into_iter().map(|(id, key)| async move {
        let answer = api.object(&key.resource, &key.place).await;
        (id, key, answer)
    });
    let (mut gets, mut refusals) = (stream::iter(gets).buffer_unordered(AT_ONCE), 0);
    while let Some((id, ObjectKey { resource, place }, answer)) = gets.next().await {
        match answer {
            Ok(object) => read.found.push((id, resource, object)),
            Err(error) if error.code() == Some(404) => {}
            Err(error) if error.code() == Some(403) => {
                read.denied.insert(account::right("get", &resource, &place.namespace, None));
                refusals += 1;
                // The others would not help: nothing is decided without these.
                if refusals == AT_ONCE {
                    break;
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

/// Whether a resource is that of Secrets.
pub fn is_secrets(resource: &Resource) -> bool {
    resource.group.is_empty() && &*resource.plural == "secrets"
}

/// Finds objects in a list of all there are; answers for which of them that settled it. None if the account may not list, and
/// fewer than all where others have far more there.
async fn listed(
    api: &Api,
    resource: &Resource,
    namespace: &Text,
    wanted: &[(Id, Text)],
    found: &mut Vec<(Id, Resource, Value)>,
) -> Result<HashSet<Text>, Error> {
    let ids: HashMap<&str, &Id> = wanted.iter().map(|(id, name)| (&**name, id)).collect();
    let within = Some(namespace.to_string()).filter(|namespace| !namespace.is_empty());
    let scope = Scope { namespace: within, ..Scope::of(resource) };
    let (mut settled, mut looked, mut next) = (HashSet::new(), 0, String::new());
    loop {
        let (objects, more) = match watch::page(api, &scope, &next).await {
            Ok((objects, more, _)) => (objects, more),
            Err(error) if matches!(error.code(), Some(403 | 405)) => return Ok(HashSet::new()),
            // The list has become too old to be gone on with: what was found in it stays so.
            Err(error) if error.code() == Some(410) => return Ok(settled),
            Err(error) => return Err(error),
        };
        looked += objects.len();
        for object in objects {
            let name = object.str_at(&["metadata", "name"]).unwrap_or_default();
            if let Some(id) = ids.get(name)
                && settled.insert(Text::from(name))
            {
                found.push(((*id).clone(), resource.clone(), object.clone()));
            }
        }
        next = match more {
            None => return Ok(wanted.iter().map(|(_, name)| name.clone()).collect()),
            Some(_) if looked > wanted.len() * OTHERS_FOR_EACH => return Ok(settled),
            Some(more) => more,
        };
    }
}

/// The ReplicaSets of these namespaces, or that they may not be listed.
pub async fn sets(api: &Api, namespaces: &BTreeSet<Text>) -> Result<Result<Vec<Value>, MissingRights>, Error> {
    let resource = Resource::new("apps", "v1", "replicasets");
    let (mut found, mut denied) = (Vec::new(), BTreeSet::new());
    for namespace in namespaces {
        let scope = Scope { namespace: Some(namespace.to_string()), ..Scope::of(&resource) };
        match watch::list(api, &scope).await {
            Ok((sets, _)) => found.extend(sets.into_iter().map(|mut set| {
                set.remove_at(&["metadata", "managedFields"]);
                set
            })),
            Err(error) if error.code() == Some(403) => {
                denied.insert(account::right("list", &resource, namespace, None));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(if denied.is_empty() { Ok(found) } else { Err(MissingRights { who: account::named(api), rights: denied }) })
}
