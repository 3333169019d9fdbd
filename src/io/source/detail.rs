//! Reads what stands behind objects that are not done. Whatever cannot be read is left out, and a right that is missing
//! is named: it never holds anything up.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use jiff::Timestamp;

use super::{account, pass::State};
use crate::{
    api::constants::{GROUP, condition},
    engine::key::{Place, Resource},
    io::{
        api::{Api, Error},
        watch::{self, Scope},
    },
    kubernetes::value::Value,
    model::health::Standing,
    sync::{
        View,
        detail::{self, Ask, Detail, Found},
        health::Doing,
        id::Id,
        rights::MissingRights,
        set::Set,
    },
};

/// What stands behind the objects of a commit that are not done; what was read lately is not read again.
pub async fn read(api: &Api, state: &mut State, view: &View, set: &Set) -> BTreeMap<Id, Detail> {
    let rests = view.status.conditions.iter().any(|told| told.r#type == condition::READY && told.status == "True");
    let (mut details, mut kept) = (BTreeMap::new(), BTreeMap::new());
    let Some(revision) = view.status.seen.as_ref().filter(|_| !rests) else {
        state.details.clear();
        return details;
    };
    let lasts = detail::lasts(detail::age(&view.status, view.now));
    for pair in view.pairs(set, revision) {
        let (id, Some(live), Some(doing)) = (&pair.desired.id, pair.live, &pair.doing) else { continue };
        if details.len() == detail::MOST {
            break;
        }
        if doing.standing == Standing::Current || !detail::is_known(id) || pair.ours.is_none() {
            continue;
        }
        if detail::version(&live.value).is_empty() {
            continue;
        }
        // What a newer version of the object brought is to be seen with it.
        let is_fresh =
            |(at, of, _): &&(Timestamp, u64, Detail)| *of == live.version() && view.now.duration_since(*at) < lasts;
        let fresh = state.details.get(id).filter(is_fresh);
        let fresh = match fresh {
            Some(fresh) => fresh.clone(),
            None => (view.now, live.version(), behind(api, id, &live.value).await.unwrap_or_default()),
        };
        details.insert(id.clone(), fresh.2.clone());
        kept.insert(id.clone(), fresh);
    }
    for hook in &set.hooks {
        let Some(live) = view.live.get(&hook.id).filter(|live| view.is_ours(&live.value)) else { continue };
        let is_open = Doing::of(&live.value).standing != Standing::Current;
        if details.len() < detail::MOST && is_open && detail::is_known(&hook.id) {
            let is_fresh =
                |(at, of, _): &&(Timestamp, u64, Detail)| *of == live.version() && view.now.duration_since(*at) < lasts;
            let fresh = match state.details.get(&hook.id).filter(is_fresh) {
                Some(fresh) => fresh.clone(),
                None => (view.now, live.version(), behind(api, &hook.id, &live.value).await.unwrap_or_default()),
            };
            details.insert(hook.id.clone(), fresh.2.clone());
            kept.insert(hook.id.clone(), fresh);
        }
    }
    state.details = kept;
    details
}

/// What stands behind one object.
async fn behind(api: &Api, id: &Id, object: &Value) -> Option<Detail> {
    let ask = Ask::of(object)?;
    let missing = Mutex::new(BTreeSet::new());
    let unread = |verb: &'static str, resource: &Resource, error: Error| {
        tracing::debug!(%id, %resource, %error, "not everything is known about an object that is not done");
        if error.code() == Some(403) {
            missing.lock().unwrap_or_else(PoisonError::into_inner).insert(account::right(
                verb,
                resource,
                &id.namespace,
                None,
            ));
        }
    };
    let list = async |group: &str, plural: &str, selector: &str, fields: &str| {
        let scope = Scope {
            namespace: Some(id.namespace.to_string()),
            selector: selector.to_owned(),
            fields: fields.to_owned(),
            ..Scope::of(&Resource::new(group, "v1", plural))
        };
        let listed = watch::list(api, &scope).await.map(|(objects, _)| objects);
        listed.map_err(|error| unread("list", &scope.resource, error)).unwrap_or_default()
    };
    let get = async |plural: &str, name: &str| {
        let resource = Resource::new(GROUP, "v1alpha1", plural);
        let got = api.object(&resource, &Place::new(&id.namespace, name)).await;
        got.map_err(|error| unread("get", &resource, error)).ok()
    };
    let mut found = Found::default();
    if !ask.selector.is_empty() {
        found.pods = list("", "pods", &ask.selector, "").await;
    }
    if ask.sets {
        found.sets = list("apps", "replicasets", &ask.selector, "").await;
    }
    if ask.events && found.pods.is_empty() {
        let uid = object.str_at(&["metadata", "uid"]).unwrap_or_default();
        found.events = list("", "events", "", &format!("involvedObject.uid={uid}")).await;
        found.events.retain(|event| event.str_at(&["involvedObject", "uid"]) == Some(uid));
    }
    let mut names = ask.runs.clone();
    if let Some(name) = &ask.experiment {
        found.experiment = get("experiments", name).await;
        names.extend(found.experiment.iter().flat_map(detail::runs_of).map(str::to_owned));
    }
    for name in &names {
        found.runs.extend(get("analysisruns", name).await);
    }
    let rights = missing.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.missing = (!rights.is_empty()).then(|| MissingRights { who: account::named(api), rights });
    Some(Detail::of(object, &found))
}
