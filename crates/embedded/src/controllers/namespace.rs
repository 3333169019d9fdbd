//! Empties a namespace that is being deleted, and lets it go once nothing is left.
//!
//! As upstream, it begins five seconds after the deletion: until then creations in the namespace are refused, and what is
//! in it stays.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{
    Next,
    ask::{self, Condition},
    hands::{Hands, Key, NAMESPACES, Resource},
};
use crate::kubernetes::{object::Object, value::Value};

const DELAY: SignedDuration = SignedDuration::from_secs(5);
const FINALIZER: &str = "kubernetes";

/// Moves the deletion of one namespace on.
pub fn sync(hands: &mut Hands, key: &Key) -> Next {
    let Some(namespace) = hands.get(&NAMESPACES, key).filter(|namespace| namespace.is_terminating()) else {
        return Next::Idle;
    };
    let begin =
        ask::time(namespace.value.at(&["metadata", "deletionTimestamp"])).and_then(|time| time.checked_add(DELAY).ok());
    if let Some(begin) = begin.filter(|begin| *begin > hands.now()) {
        return Next::At(begin);
    }
    if !namespace.value.list_at(&["spec", "finalizers"]).iter().any(|finalizer| *finalizer == FINALIZER) {
        return Next::Idle;
    }
    let failures = delete_content(hands, &key.name);
    let left = remaining(hands, &key.name);
    let Some(namespace) = hands.get(&NAMESPACES, key) else { return Next::Idle };
    let status = status(&namespace.value, &left, &failures, hands.now());
    let namespace = if Some(&status) == namespace.value.get("status") {
        namespace
    } else {
        match hands.update_status(&NAMESPACES, &namespace, status) {
            Ok(updated) => updated,
            Err(_) => return Next::Retry,
        }
    };
    if !failures.is_empty() {
        return Next::Retry;
    }
    if !left.resources.is_empty() {
        return Next::Idle; // whatever goes next brings the namespace back here
    }
    finalize(hands, key, &namespace)
}

fn finalize(hands: &mut Hands, key: &Key, namespace: &Object) -> Next {
    let mut wanted = namespace.value.clone();
    let others = namespace.value.list_at(&["spec", "finalizers"]).iter().filter(|finalizer| **finalizer != FINALIZER);
    wanted.set_at(&["spec", "finalizers"], Value::list(others.cloned()));
    match hands.put(&NAMESPACES, key, "finalize", wanted) {
        Ok(()) => Next::Idle,
        Err(refused) if refused.code == 404 => Next::Idle,
        Err(_) => Next::Retry,
    }
}

/// The resources that have objects in a namespace.
fn resources_in(hands: &Hands, namespace: &str) -> Vec<Resource> {
    let registry = hands.store.registry();
    let stored = registry.resources().filter(|resource| resource.storage.namespaced).filter(|resource| {
        let (group, plural) = &resource.table;
        // Events are served by two groups and kept once.
        resource.storage.group == *group && hands.store.list(group, plural, namespace).next().is_some()
    });
    stored
        .map(|resource| Resource {
            group: resource.storage.group.clone(),
            version: resource.storage.version.clone(),
            plural: resource.storage.plural.clone(),
            kind: resource.storage.kind.clone(),
        })
        .collect()
}

/// Deletes everything in a namespace; says what could not be.
fn delete_content(hands: &mut Hands, namespace: &str) -> Vec<String> {
    let mut failures = Vec::new();
    for resource in resources_in(hands, namespace) {
        let doomed: Vec<_> =
            hands.list(&resource, namespace).filter(|object| !object.is_terminating()).cloned().collect();
        for object in doomed {
            let options =
                crate::store::request::Options { propagation_policy: Some("Background".into()), ..Default::default() };
            match hands.delete_with(&resource, &object, options) {
                Ok(()) => {}
                Err(refused) if matches!(refused.code, 404 | 409) => {}
                Err(refused) => failures.push(refused.message),
            }
        }
    }
    failures.sort();
    failures
}

/// What is left in a namespace.
#[derive(Debug, Default, PartialEq)]
pub struct Remaining {
    /// How many objects of each resource, as messages name it.
    pub resources: BTreeMap<String, usize>,
    /// How many objects carry each finalizer.
    pub finalizers: BTreeMap<String, usize>,
}

fn remaining(hands: &Hands, namespace: &str) -> Remaining {
    let mut left = Remaining::default();
    for resource in resources_in(hands, namespace) {
        let name = format!("{}.{}", resource.plural, resource.group);
        for object in hands.list(&resource, namespace) {
            *left.resources.entry(name.clone()).or_default() += 1;
            for finalizer in object.value.list_at(&["metadata", "finalizers"]).iter().filter_map(Value::as_str) {
                *left.finalizers.entry(finalizer.to_owned()).or_default() += 1;
            }
        }
    }
    left
}

/// The status of a namespace on its way out.
pub fn status(namespace: &Value, left: &Remaining, failures: &[String], now: Timestamp) -> Value {
    let mut status = namespace.get("status").cloned().unwrap_or_else(Value::object);
    let list = |counts: &BTreeMap<String, usize>, words: &str| {
        let texts: Vec<String> =
            counts.iter().map(|(name, count)| format!("{name} {words}").replace("{}", &count.to_string())).collect();
        texts.join(", ")
    };
    let failed = format!("Failed to delete all resource types, {} remaining: {}", failures.len(), failures.join(", "));
    let content = format!("Some resources are remaining: {}", list(&left.resources, "has {} resource instances"));
    let finalizers = format!(
        "Some content in the namespace has finalizers remaining: {}",
        list(&left.finalizers, "in {} resource instances")
    );
    let rows = [
        ("NamespaceDeletionDiscoveryFailure", None, ("ResourcesDiscovered", "All resources successfully discovered")),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            None,
            ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
        ),
        (
            "NamespaceDeletionContentFailure",
            (!failures.is_empty()).then_some(("ContentDeletionFailed", failed)),
            ("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
        ),
        (
            "NamespaceContentRemaining",
            (!left.resources.is_empty()).then_some(("SomeResourcesRemain", content)),
            ("ContentRemoved", "All content successfully removed"),
        ),
        (
            "NamespaceFinalizersRemaining",
            (!left.finalizers.is_empty()).then_some(("SomeFinalizersRemain", finalizers)),
            ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
        ),
    ];
    let mut conditions = status.list_at(&["conditions"]).to_vec();
    for (kind, trouble, (fine, message)) in rows {
        let condition = match trouble {
            Some((reason, message)) => Condition { kind, status: "True", reason, message, observed_generation: None },
            None => {
                let message = message.to_owned();
                Condition { kind, status: "False", reason: fine, message, observed_generation: None }
            }
        };
        ask::set_condition(&mut conditions, condition, now);
    }
    status.set_at(&["conditions"], conditions);
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn the_status_names_what_is_left() {
        let left = Remaining {
            resources: [("configmaps.".to_owned(), 1), ("pods.".to_owned(), 2)].into(),
            finalizers: [("x.test/f".to_owned(), 1)].into(),
        };
        let status = status(&value!({"status": {"phase": "Terminating"}}), &left, &[], Timestamp::UNIX_EPOCH);
        let row = |kind: &str, status: &str, reason: &str, message: &str| {
            value!({"type": kind, "status": status, "reason": reason, "message": message,
                "lastTransitionTime": "1970-01-01T00:00:00Z"})
        };
        let conditions = [
            row(
                "NamespaceDeletionDiscoveryFailure",
                "False",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            row(
                "NamespaceDeletionGroupVersionParsingFailure",
                "False",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            row(
                "NamespaceDeletionContentFailure",
                "False",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            row(
                "NamespaceContentRemaining",
                "True",
                "SomeResourcesRemain",
                "Some resources are remaining: configmaps. has 1 resource instances, pods. has 2 resource instances",
            ),
            row(
                "NamespaceFinalizersRemaining",
                "True",
                "SomeFinalizersRemain",
                "Some content in the namespace has finalizers remaining: x.test/f in 1 resource instances",
            ),
        ];
        assert_eq!(status.get("phase"), Some(&"Terminating".into()));
        assert_eq!(status.list_at(&["conditions"]), conditions);
    }
}
