//! What is in the cluster of what a source wants and has: from the watches where they reach and its account may read,
//! read in the name of that account elsewhere.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use jiff::Timestamp;

use super::{
    Shared, account,
    pass::State,
    read::{self, Part},
};
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
    sync::{
        id::{Id, Sort},
        rights::MissingRights,
        set::Set,
        view,
    },
};

/// Where an object says who owns what.
const MANAGED_FIELDS: [&str; 2] = ["metadata", "managedFields"];

/// What is in the cluster, or that not everything is known yet.
pub enum Observed {
    /// A watch has only begun; its list brings the source back.
    Later,
    /// All there is to know.
    Live(HashMap<Id, Arc<Object>>),
    /// The source's account may not read all of it.
    Denied(MissingRights),
}

/// Where an object is served.
pub fn resource_of(state: &State, sets: &[&Set], id: &Id, version: &str) -> Option<Resource> {
    let mut wanted = sets.iter().flat_map(|set| set.objects.iter().chain(&set.hooks));
    let desired = wanted.find(|desired| desired.id == *id).map(|desired| desired.sort.clone());
    let known = || state.sorts.get(&named(id, version)).cloned().flatten();
    if let Some(sort) = desired.or_else(known) {
        return Some(resource(&sort));
    }
    let kind = facts::kind(&id.group, version, &id.kind)?;
    Some(Resource::new(&kind.group, &kind.version, &kind.plural))
}

/// Where objects of a kind are served.
fn resource(sort: &Sort) -> Resource {
    Resource { group: sort.group.clone(), version: sort.version.clone(), plural: sort.plural.clone() }
}

/// A kind, as those that are known are named.
fn named(id: &Id, version: &str) -> (Text, Text) {
    let api_version = if id.group.is_empty() { version.to_owned() } else { format!("{}/{version}", id.group) };
    (api_version.into(), id.kind.clone())
}

/// Whether an object is followed: Secrets never are, and of a daemon for one namespace only what is in it.
fn is_followed(shared: &Shared, resource: &Resource, id: &Id) -> bool {
    !read::is_secrets(resource) && shared.reaches(&id.namespace)
}

/// Who looks, and when.
#[derive(Clone, Copy)]
pub struct Observing<'p> {
    /// The source.
    pub source: &'p Place,
    /// Asks in its name.
    pub reader: &'p Api,
    /// What time it is.
    pub now: Timestamp,
}

/// Looks at every object that git wants or the inventory has.
pub async fn observe(
    shared: &Shared,
    of: Observing<'_>,
    state: &mut State,
    status: &GitSourceStatus,
    sets: &[&Set],
) -> Result<Observed, Error> {
    let Observing { source, reader, now } = of;
    let mut wanted: HashMap<Id, Resource> = HashMap::with_capacity(status.inventory.len());
    for set in sets {
        for desired in set.objects.iter().chain(&set.hooks).filter(|desired| desired.sort.served) {
            wanted.insert(desired.id.clone(), resource(&desired.sort));
        }
    }
    let left = status.inventory.iter().map(|entry| (Id::of_entry(entry), entry));
    let left: Vec<_> = left.filter(|(id, _)| !wanted.contains_key(id)).collect();
    // What git no longer names is still to be found, whoever forgot its kind meanwhile.
    let kinds: BTreeSet<(Text, Text)> = left.iter().map(|(id, entry)| named(id, &entry.version)).collect();
    kinds::learn(&shared.api, &kinds.into_iter().collect::<Vec<_>>(), &mut state.sorts, &state.former).await?;
    for (id, entry) in left {
        if let Some(resource) = resource_of(state, sets, &id, &entry.version) {
            wanted.insert(id, resource);
        }
    }
    let followed = wanted.iter().filter(|(id, resource)| is_followed(shared, resource, id));
    let resources: HashSet<&Resource> = followed.map(|(_, resource)| resource).collect();
    let resources: BTreeSet<Resource> = resources.into_iter().cloned().collect();
    // Noted before it is followed, or another pass that ends here would let go of it.
    shared.needs(source, resources.clone());
    let known: Vec<bool> = resources.iter().map(|resource| shared.follow(resource, label::SOURCE)).collect();
    if known.contains(&false) {
        return Ok(Observed::Later);
    }
    let place = |id: &Id| Place { namespace: id.namespace.clone(), name: id.name.clone() };
    let part = |id: &Id, resource: &Resource| -> Part { (resource.clone(), id.namespace.clone()) };
    let seen: BTreeSet<Part> = {
        let seen = shared.seen();
        let cached = wanted.iter().filter(|(id, resource)| seen.cache.get(resource, &place(id)).is_some());
        cached.map(|(id, resource)| part(id, resource)).collect()
    };
    state.rights.learn(reader, seen, now).await?;
    let (mut live, mut unknown) = (HashMap::with_capacity(wanted.len()), Vec::new());
    {
        let mut seen = shared.seen();
        for (id, resource) in &wanted {
            let place = place(id);
            let is_shown = is_followed(shared, resource, id) && state.rights.shows(reader, &part(id, resource));
            let cached = seen.cache.get(resource, &place).filter(|_| is_shown);
            if let Some(known) = cached.and_then(|object| state.known(id, object)) {
                live.insert(id.clone(), known);
                continue;
            }
            // Without its owners it is read anew, by who does not know them.
            match cached.filter(|object| object.at(&MANAGED_FIELDS).is_some()).cloned() {
                Some(object) => {
                    live.insert(id.clone(), state.object(id, resource, &object));
                    seen.cache.drop_owners(resource, &place);
                }
                None => unknown.push((id.clone(), ObjectKey { resource: resource.clone(), place })),
            }
        }
    }
    let read = read::objects(reader, unknown).await?;
    if !read.denied.is_empty() {
        return Ok(Observed::Denied(MissingRights { who: account::named(reader), rights: read.denied }));
    }
    for (id, resource, object) in read.found {
        let object = state.object(&id, &resource, &object);
        live.insert(id, object);
    }
    Ok(Observed::Live(live))
}

impl State {
    /// An object as it was decoded before, if that was this very version of it.
    fn known(&mut self, id: &Id, value: &Value) -> Option<Arc<Object>> {
        let (version, of, object) = self.objects.get_mut(id)?;
        if !of.is(value) {
            let uid = |value: &Value| value.at(&["metadata", "uid"]).cloned();
            if *version != version_of(value) || uid(&object.value) != uid(value) {
                return None;
            }
            // Known at a glance from now on.
            *of = value.clone();
        }
        Some(object.clone())
    }

    /// An object with its owners apart; decoded once for each version.
    pub(super) fn object(&mut self, id: &Id, resource: &Resource, value: &Value) -> Arc<Object> {
        if let Some(known) = self.known(id, value) {
            return known;
        }
        let mut value = value.clone();
        let (version, of) = (version_of(&value), Value::Null);
        // The items of a list do not say what they are.
        if value.get("kind").is_none() {
            let root = if resource.group.is_empty() { String::new() } else { format!("{}/", resource.group) };
            value.set_at(&["apiVersion"], format!("{root}{}", resource.version));
            value.set_at(&["kind"], &id.kind);
        }
        let owners = value.remove_at(&MANAGED_FIELDS).unwrap_or_default();
        let object = Arc::new(Object { value, managers: Arc::new(Managers::parse(&owners).unwrap_or_default()) });
        self.objects.insert(id.clone(), (version, of, object.clone()));
        object
    }
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
        let resource = resource(&pair.desired.sort);
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
