//! What is in the cluster of what a source wants and has: from the watches where they reach, read one by one elsewhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::{StreamExt, TryStreamExt, stream};

use super::{Shared, pass::State};
use crate::{
    api::{GitSourceStatus, constants::label},
    engine::{
        cache::version_of,
        key::{ObjectKey, Place, Resource},
    },
    io::{
        api::{Api, Error, Force, Run},
        kinds,
    },
    kubernetes::{
        apply::Managers,
        facts,
        object::Object,
        value::{Text, Value},
    },
    sync::{id::Id, set::Set, view},
};

/// Where an object says who owns what.
const MANAGED_FIELDS: [&str; 2] = ["metadata", "managedFields"];

/// How many objects are read at once.
const AT_ONCE: usize = 32;

/// What is in the cluster, or that not everything is known yet.
pub enum Observed {
    /// A watch has only begun; its list brings the source back.
    Later,
    /// All there is to know.
    Live(BTreeMap<Id, Arc<Object>>),
}

/// Where an object is served.
pub fn resource_of(state: &State, sets: &[&Set], id: &Id, version: &str) -> Option<Resource> {
    let mut wanted = sets.iter().flat_map(|set| &set.objects);
    let desired = wanted.find(|desired| desired.id == *id).map(|desired| desired.sort.clone());
    let known = || state.sorts.get(&named(id, version)).cloned().flatten();
    if let Some(sort) = desired.or_else(known) {
        return Some(Resource::new(&sort.group, &sort.version, &sort.plural));
    }
    let kind = facts::kind(&id.group, version, &id.kind)?;
    Some(Resource::new(&kind.group, &kind.version, &kind.plural))
}

/// A kind, as those that are known are named.
fn named(id: &Id, version: &str) -> (Text, Text) {
    let api_version = if id.group.is_empty() { version.to_owned() } else { format!("{}/{version}", id.group) };
    (api_version.into(), id.kind.clone())
}

/// Whether an object is followed: Secrets never are, and of a daemon for one namespace only what is in it.
fn is_followed(shared: &Shared, resource: &Resource, id: &Id) -> bool {
    *resource != Resource::new("", "v1", "secrets") && shared.reaches(&id.namespace)
}

/// Looks at every object that git wants or the inventory has.
pub async fn observe(
    shared: &Shared,
    source: &Place,
    api: &Api,
    state: &mut State,
    status: &GitSourceStatus,
    sets: &[&Set],
) -> Result<Observed, Error> {
    let mut wanted: BTreeMap<Id, Resource> = BTreeMap::new();
    for set in sets {
        for desired in set.objects.iter().filter(|desired| desired.sort.served) {
            let sort = &desired.sort;
            wanted.insert(desired.id.clone(), Resource::new(&sort.group, &sort.version, &sort.plural));
        }
    }
    let left = status.inventory.iter().map(|entry| (Id::of_entry(entry), entry));
    let left: Vec<_> = left.filter(|(id, _)| !wanted.contains_key(id)).collect();
    // What git no longer names is still to be found, whoever forgot its kind meanwhile.
    let kinds: BTreeSet<(Text, Text)> = left.iter().map(|(id, entry)| named(id, &entry.version)).collect();
    kinds::learn(api, &kinds.into_iter().collect::<Vec<_>>(), &mut state.sorts, &state.former).await?;
    for (id, entry) in left {
        if let Some(resource) = resource_of(state, sets, &id, &entry.version) {
            wanted.insert(id, resource);
        }
    }
    let followed = wanted.iter().filter(|(id, resource)| is_followed(shared, resource, id));
    let resources: BTreeSet<Resource> = followed.map(|(_, resource)| resource.clone()).collect();
    // Noted before it is followed, or another pass that ends here would let go of it.
    shared.needs(source, resources.clone());
    let known: Vec<bool> = resources.iter().map(|resource| shared.follow(resource, label::SOURCE)).collect();
    if known.contains(&false) {
        return Ok(Observed::Later);
    }
    let (mut live, mut unknown) = (BTreeMap::new(), Vec::new());
    {
        let mut seen = shared.seen();
        for (id, resource) in &wanted {
            let place = Place { namespace: id.namespace.clone(), name: id.name.clone() };
            // Without its owners it is read anew, by who does not know them.
            let is_usable = |object: &&Value| {
                let has_owners = object.at(&MANAGED_FIELDS).is_some();
                is_followed(shared, resource, id) && (has_owners || state.knows(id, object))
            };
            match seen.cache.get(resource, &place).filter(is_usable).cloned() {
                Some(object) => {
                    live.insert(id.clone(), state.object(id, resource, &object));
                    seen.cache.drop_owners(resource, &place);
                }
                None => unknown.push((id.clone(), ObjectKey { resource: resource.clone(), place })),
            }
        }
    }
    let reads = unknown.into_iter().map(|(id, key)| async move {
        match api.object(&key.resource, &key.place).await {
            Ok(object) => Ok(Some((id, key.resource, object))),
            Err(error) if error.code() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    });
    let read: Vec<Option<(Id, Resource, Value)>> = stream::iter(reads).buffer_unordered(AT_ONCE).try_collect().await?;
    for (id, resource, object) in read.into_iter().flatten() {
        let object = state.object(&id, &resource, &object);
        live.insert(id, object);
    }
    Ok(Observed::Live(live))
}

impl State {
    /// Whether this very version of an object was decoded before.
    fn knows(&self, id: &Id, value: &Value) -> bool {
        self.objects.get(id).is_some_and(|(known, object)| {
            *known == version_of(value)
                && object.value.str_at(&["metadata", "uid"]) == value.str_at(&["metadata", "uid"])
        })
    }

    /// An object with its owners apart; decoded once for each version.
    pub(super) fn object(&mut self, id: &Id, resource: &Resource, value: &Value) -> Arc<Object> {
        let version = version_of(value);
        if self.knows(id, value)
            && let Some((_, object)) = self.objects.get(id)
        {
            return object.clone();
        }
        let mut value = value.clone();
        // The items of a list do not say what they are.
        if value.get("kind").is_none() {
            let root = if resource.group.is_empty() { String::new() } else { format!("{}/", resource.group) };
            value.set_at(&["apiVersion"], format!("{root}{}", resource.version));
            value.set_at(&["kind"], &id.kind);
        }
        let owners = value.remove_at(&MANAGED_FIELDS).unwrap_or_default();
        let object = Arc::new(Object { value, managers: Arc::new(Managers::parse(&owners).unwrap_or_default()) });
        self.objects.insert(id.clone(), (version, object.clone()));
        object
    }
}

/// The ReplicaSets of these namespaces.
pub async fn sets(api: &Api, namespaces: &BTreeSet<Text>) -> Result<Vec<Value>, Error> {
    let mut found = Vec::new();
    for namespace in namespaces {
        let list = api.get(&Resource::new("apps", "v1", "replicasets").path(Some(namespace))).await?;
        found.extend(list.list_at(&["items"]).iter().map(|item| {
            let mut item = item.clone();
            item.remove_at(&["metadata", "managedFields"]);
            item
        }));
    }
    Ok(found)
}

/// Asks the server what applying would change, for objects whose schema is not known here.
pub async fn ask(
    api: &Api,
    state: &mut State,
    view: &view::View,
    set: &Set,
    commit: &crate::api::GitRevision,
) -> Result<bool, Error> {
    use crate::sync::compare::{Conflict, Difference};
    if set.objects.iter().all(|desired| desired.sort.kind.is_some()) {
        return Ok(false);
    }
    let mut asked = false;
    for pair in view.pairs(set, commit) {
        let (Some(live), Some(Difference::Unknown)) = (pair.live, &pair.difference) else { continue };
        let sort = &pair.desired.sort;
        let resource = Resource::new(&sort.group, &sort.version, &sort.plural);
        let place = Place { namespace: pair.desired.id.namespace.clone(), name: pair.desired.id.name.clone() };
        let difference = match api.apply(&resource, &place, &pair.patch, Force::Left, Run::Dry).await {
            Ok(mut after) => {
                after.remove_at(&["metadata", "managedFields"]);
                // A dry run has a version of its own, and owners are of no concern where values are alike.
                let mut before = live.value.clone();
                for value in [&mut after, &mut before] {
                    value.remove_at(&["metadata", "resourceVersion"]);
                    value.remove_at(&["metadata", "generation"]);
                }
                if after == before { Difference::Same } else { Difference::Fields(vec![".".to_owned()]) }
            }
            Err(Error::Refused { code: 409, causes, .. }) if !causes.is_empty() => {
                let conflict = |(message, field): (String, String)| {
                    let manager = message.split('"').nth(1).unwrap_or_default().to_owned();
                    Conflict { manager, applies: !message.contains(" using "), field }
                };
                Difference::Conflict(causes.into_iter().map(conflict).collect())
            }
            Err(error) if error.is_refusal() => Difference::Malformed(error.words().to_owned()),
            Err(error) => return Err(error),
        };
        let answer = view::Answer { digest: view::digest_of(&pair.patch), version: live.version(), difference };
        state.answers.insert(pair.desired.id.clone(), answer);
        asked = true;
    }
    Ok(asked)
}
