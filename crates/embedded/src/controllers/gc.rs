//! The garbage collector: what lost its last owner goes, and deletions that wait for dependents end.
//!
//! An object whose owners are all gone is deleted in the background; one that has others left only loses the reference.
//! An owner with the finalizer `foregroundDeletion` waits until no dependent that blocks it is left; one with `orphan`
//! lets its dependents go first.

use std::sync::Arc;

use super::{
    Next, ask,
    hands::{Hands, Resource},
};
use crate::kubernetes::{
    object::Object,
    value::{Text, Value},
};
use crate::store::{
    ObjectRef, Store,
    request::{Options, PatchType},
};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// What an owner reference points to.
#[derive(Debug, Clone, PartialEq)]
pub enum Owner {
    /// This object.
    There(Arc<Object>),
    /// Nothing: it never was, is gone, or another object has its name.
    Gone,
    /// Something nobody can look up: a kind that is not served, or a namespaced owner of a cluster-scoped object.
    Unknown,
}

/// Finds the owner behind a reference of an object in this namespace.
pub fn owner(store: &Store, reference: &Value, namespace: &str) -> Owner {
    let text = |field: &str| reference.str_at(&[field]).unwrap_or_default();
    let Some((resource, kind)) = store.registry().find_kind(text("apiVersion"), text("kind")) else {
        return Owner::Unknown;
    };
    if kind.namespaced && namespace.is_empty() {
        return Owner::Unknown;
    }
    let (group, plural) = &resource.table;
    let namespace = if kind.namespaced { namespace } else { "" };
    match store.get(group, plural, namespace, text("name")) {
        Some(owner) if owner.uid() == text("uid") => Owner::There(owner.clone()),
        Some(_) | None => Owner::Gone,
    }
}

fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    object.list_at(&["metadata", "finalizers"]).iter().any(|given| *given == finalizer)
}

/// Whether an object waits for the collector: it is being deleted and carries one of its finalizers.
pub fn waits(object: &Value) -> bool {
    ask::is_terminating(object) && (has_finalizer(object, FOREGROUND) || has_finalizer(object, ORPHAN))
}

/// Whether an object waits for its dependents to go.
fn waits_for_dependents(object: &Value) -> bool {
    ask::is_terminating(object) && has_finalizer(object, FOREGROUND)
}

/// Whether an object's owners ask for a look at it: one is gone, or is waiting for it to go.
pub fn is_suspect(store: &Store, object: &Object) -> bool {
    let references = object.value.list_at(&["metadata", "ownerReferences"]);
    references.iter().any(|reference| match owner(store, reference, &object.namespace()) {
        Owner::There(owner) => waits_for_dependents(&owner.value),
        Owner::Gone => true,
        Owner::Unknown => false,
    })
}

/// Looks at one object: collects it, or moves its own deletion on.
pub fn sync(hands: &mut Hands, object: &ObjectRef) -> Next {
    let found = hands.store.get(&object.group, &object.plural, &object.namespace, &object.name).cloned();
    let Some(found) = found else { return Next::Idle };
    let (Some(api_version), Some(kind)) = (found.value.str_at(&["apiVersion"]), found.value.str_at(&["kind"])) else {
        return Next::Idle;
    };
    let Some(resource) = hands.resource_of(api_version, kind) else { return Next::Idle };
    let done = if found.is_terminating() && has_finalizer(&found.value, ORPHAN) {
        release_dependents(hands, &found).and_then(|()| drop_finalizer(hands, &resource, &found, ORPHAN))
    } else if waits_for_dependents(&found.value) {
        collect_dependents(hands, &resource, &found)
    } else if found.is_terminating() {
        Ok(())
    } else {
        collect(hands, &resource, &found)
    };
    if done.is_ok() { Next::Idle } else { Next::Retry }
}

/// A write that must be tried again.
struct Failed;

fn lenient<T>(outcome: Result<T, crate::kubernetes::status::Status>) -> Result<(), Failed> {
    match outcome {
        Ok(_) => Ok(()),
        Err(refused) if matches!(refused.code, 404 | 422) => Ok(()),
        Err(_) => Err(Failed),
    }
}

/// The objects that name this one as an owner.
fn dependents(hands: &Hands, uid: &str) -> Vec<(Resource, Arc<Object>)> {
    let refs: Vec<ObjectRef> = hands.store.owned_by(uid).cloned().collect();
    refs.iter()
        .filter_map(|object| {
            let found = hands.store.get(&object.group, &object.plural, &object.namespace, &object.name)?;
            let text = |field| found.value.str_at(&[field]).unwrap_or_default();
            Some((hands.resource_of(text("apiVersion"), text("kind"))?, found.clone()))
        })
        .collect()
}

/// Deletes an object that has no owner left, or takes off the references to those that are gone.
fn collect(hands: &mut Hands, resource: &Resource, object: &Arc<Object>) -> Result<(), Failed> {
    let references = object.value.list_at(&["metadata", "ownerReferences"]);
    if references.is_empty() {
        return Ok(());
    }
    let (mut solid, mut waiting, mut gone): (usize, Vec<Text>, Vec<Text>) = (0, Vec::new(), Vec::new());
    for reference in references {
        let uid = reference.get("uid").and_then(Value::as_text).cloned().unwrap_or_default();
        match owner(hands.store, reference, &object.namespace()) {
            Owner::There(owner) if waits_for_dependents(&owner.value) => waiting.push(uid),
            Owner::There(_) | Owner::Unknown => solid += 1,
            Owner::Gone => gone.push(uid),
        }
    }
    if solid > 0 {
        gone.append(&mut waiting);
        return if gone.is_empty() { Ok(()) } else { drop_references(hands, resource, object, &gone) };
    }
    let has_dependents = hands.store.owned_by(&object.uid()).next().is_some();
    let policy = if !waiting.is_empty() && has_dependents || has_finalizer(&object.value, FOREGROUND) {
        "Foreground"
    } else if has_finalizer(&object.value, ORPHAN) {
        "Orphan"
    } else {
        "Background"
    };
    let options = Options { propagation_policy: Some(policy.into()), ..Options::default() };
    match hands.delete_with(resource, object, options) {
        Err(refused) if refused.code == 409 => Err(Failed),
        outcome => lenient(outcome),
    }
}

/// Deletes what an owner waits for; lets the owner go once nothing blocks it.
fn collect_dependents(hands: &mut Hands, resource: &Resource, owner: &Arc<Object>) -> Result<(), Failed> {
    let uid = owner.uid();
    for (kind, dependent) in dependents(hands, &uid) {
        if !dependent.is_terminating() {
            collect(hands, &kind, &dependent)?;
        }
    }
    let blocks = |object: &Arc<Object>| {
        object.value.list_at(&["metadata", "ownerReferences"]).iter().any(|reference| {
            reference.get("uid").and_then(Value::as_text) == Some(&uid)
                && reference.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true)
        })
    };
    if dependents(hands, &uid).iter().any(|(_, dependent)| blocks(dependent)) {
        return Ok(());
    }
    drop_finalizer(hands, resource, owner, FOREGROUND)
}

/// Takes an owner off all its dependents.
fn release_dependents(hands: &mut Hands, owner: &Object) -> Result<(), Failed> {
    for (kind, dependent) in dependents(hands, &owner.uid()) {
        drop_references(hands, &kind, &dependent, &[owner.uid()])?;
    }
    Ok(())
}

fn drop_references(hands: &mut Hands, resource: &Resource, object: &Object, uids: &[Text]) -> Result<(), Failed> {
    let key = super::hands::Key::of(object);
    let gone = uids.iter().map(|uid| map! {"$patch": "delete", "uid": uid});
    let patch = map! {"metadata": map! {"uid": object.uid(), "ownerReferences": Value::list(gone)}};
    match hands.patch(PatchType::Strategic, resource, &key, "", patch) {
        // Custom resources know no strategic merge.
        Err(refused) if refused.code == 415 => {
            let references = object.value.list_at(&["metadata", "ownerReferences"]).iter();
            let left = references.filter(|reference| {
                !reference.get("uid").and_then(Value::as_text).is_some_and(|uid| uids.contains(uid))
            });
            let patch = map! {"metadata": map! {
                "resourceVersion": object.version().to_string(), "ownerReferences": Value::list(left.cloned()),
            }};
            lenient(hands.patch(PatchType::Merge, resource, &key, "", patch))
        }
        outcome => lenient(outcome),
    }
}

fn drop_finalizer(hands: &mut Hands, resource: &Resource, object: &Object, finalizer: &str) -> Result<(), Failed> {
    let key = super::hands::Key::of(object);
    let Some(now) = hands.get(resource, &key).filter(|now| now.uid() == object.uid()) else { return Ok(()) };
    let left = now.value.list_at(&["metadata", "finalizers"]).iter().filter(|given| **given != finalizer);
    let patch = map! {"metadata": map! {
        "resourceVersion": now.version().to_string(), "finalizers": Value::list(left.cloned()),
    }};
    lenient(hands.patch(PatchType::Merge, resource, &key, "", patch))
}
