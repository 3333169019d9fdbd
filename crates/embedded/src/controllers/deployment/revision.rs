//! Which ReplicaSet is a Deployment's newest, what it is called, and which revision it is.

use std::sync::Arc;

use super::maths::Goal;
use crate::controllers::{ask, replicaset::controller_reference};
use crate::kubernetes::{
    object::Object,
    value::{Map, Text, Value},
};

/// The label and part of the name that tell a template's ReplicaSet and pods.
pub const HASH: &str = "pod-template-hash";
/// The annotation with the revision.
pub const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// The annotation with the replicas the Deployment asked for when the set was last scaled.
pub const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
/// The annotation with the replicas the Deployment could have at most then.
pub const MAX: &str = "deployment.kubernetes.io/max-replicas";
/// How long the annotation with past revisions may grow.
const HISTORY_LIMIT: usize = 2000;

/// The oldest ReplicaSet whose template is the Deployment's, but for the hash label. `sets` come oldest first.
pub fn newest<'a>(deployment: &Value, sets: &'a [Arc<Object>]) -> Option<&'a Arc<Object>> {
    let template = without_hash(deployment.at(&["spec", "template"]));
    sets.iter().find(|set| without_hash(set.value.at(&["spec", "template"])) == template)
}

fn without_hash(template: Option<&Value>) -> Value {
    let mut template = template.cloned().unwrap_or_default();
    if template.remove_at(&["metadata", "labels", HASH]).is_some()
        && template.at(&["metadata", "labels"]).and_then(Value::as_map).is_some_and(Map::is_empty)
    {
        template.remove_at(&["metadata", "labels"]);
    }
    template
}

/// The revision of a ReplicaSet; 0 if it has none.
pub fn revision(set: &Value) -> i64 {
    ask::annotation(set, REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// A non-negative count kept in an annotation.
pub fn count_annotation(set: &Value, key: &str) -> Option<i64> {
    ask::annotation(set, key)?.parse::<u32>().ok().filter(|count| *count <= i32::MAX as u32).map(i64::from)
}

/// Orders ReplicaSets from the oldest to the youngest, by name where they are of one age.
pub fn by_age(sets: &mut [Arc<Object>]) {
    sets.sort_by_cached_key(|set| (ask::created_at(&set.value), set.name()));
}

/// Sets the annotations of the newest ReplicaSet: those of the Deployment, and its revision.
pub fn annotate(deployment: &Value, set: &mut Value, revision: i64) {
    let given = deployment.at(&["metadata", "annotations"]).and_then(Value::as_map);
    for (key, value) in given.into_iter().flat_map(Map::iter).filter(|(key, _)| !is_own(key)) {
        if set.at(&["metadata", "annotations", key]) != Some(value) {
            set.set_at(&["metadata", "annotations", key], value);
        }
    }
    let old = ask::annotation(set, REVISION).map(str::to_owned);
    let old_number: i64 = match old.as_deref() {
        None | Some("") => 0,
        Some(text) => match text.parse() {
            Ok(number) => number,
            Err(_) => return,
        },
    };
    if old_number >= revision {
        return;
    }
    set.set_at(&["metadata", "annotations", REVISION], revision.to_string());
    if let Some(old) = old {
        let past = ask::annotation(set, HISTORY).unwrap_or_default();
        let mut all: Vec<&str> = past.split(',').filter(|text| !text.is_empty()).collect();
        all.push(&old);
        let mut text = all.join(",");
        while text.len() > HISTORY_LIMIT {
            text = text.split_once(',').map(|(_, rest)| rest.to_owned()).unwrap_or_default();
        }
        set.set_at(&["metadata", "annotations", HISTORY], text);
    }
}

/// The Deployment's own annotations, which are not copied.
fn is_own(key: &str) -> bool {
    let own = ["kubectl.kubernetes.io/last-applied-configuration", REVISION, HISTORY, DESIRED, MAX];
    own.contains(&key) || key == "deprecated.deployment.rollback.to"
}

/// Sets the annotations from which the next scaling tells whether the Deployment was scaled.
pub fn annotate_size(set: &mut Value, goal: &Goal) {
    for (key, count) in [(DESIRED, goal.replicas), (MAX, goal.most())] {
        if ask::annotation(set, key) != Some(&count.to_string()) {
            set.set_at(&["metadata", "annotations", key], count.to_string());
        }
    }
}

/// The ReplicaSet of a Deployment's template, with no replicas yet.
pub fn new_set(deployment: &Object, revision: i64) -> Value {
    let value = &deployment.value;
    let template = value.at(&["spec", "template"]).cloned().unwrap_or_default();
    let hash = template_hash(&template, value.int_at(&["status", "collisionCount"]));
    let mut template = template;
    template.set_at(&["metadata", "labels", HASH], &hash);
    let mut selector = value.at(&["spec", "selector"]).cloned().unwrap_or_default();
    selector.set_at(&["matchLabels", HASH], &hash);
    let mut set = map! {"apiVersion": "apps/v1", "kind": "ReplicaSet"};
    set.set_at(&["metadata", "name"], set_name(&deployment.name(), &hash));
    set.set_at(&["metadata", "namespace"], deployment.namespace());
    set.set_at(&["metadata", "ownerReferences"], Value::list([controller_reference(deployment)]));
    if let Some(labels) = template.at(&["metadata", "labels"]) {
        set.set_at(&["metadata", "labels"], labels);
    }
    if let Some(seconds) = value.int_at(&["spec", "minReadySeconds"]) {
        set.set_at(&["spec", "minReadySeconds"], seconds);
    }
    set.set_at(&["spec", "replicas"], 0);
    set.set_at(&["spec", "selector"], selector);
    set.set_at(&["spec", "template"], template);
    annotate(value, &mut set, revision);
    annotate_size(&mut set, &Goal::of(value));
    set
}

/// `web-7c5ddbdf54`, cut so that it stays a name.
fn set_name(deployment: &str, hash: &str) -> String {
    let room = 253 - 1 - hash.len();
    let cut = deployment.char_indices().map(|(at, _)| at).find(|at| *at >= room).unwrap_or(deployment.len());
    format!("{}-{hash}", &deployment[..cut])
}

/// A hash of a template in the alphabet of the real one. It is not the real one, which is taken over Go's debug print of
/// the template; nothing but names and labels depends on it.
pub fn template_hash(template: &Value, collisions: Option<i64>) -> Text {
    let mut hash: u32 = 0x811c_9dc5;
    let mut add = |byte: u8| hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    template.to_json().bytes().for_each(&mut add);
    if let Some(count) = collisions {
        count.to_le_bytes().into_iter().for_each(&mut add);
    }
    // Without vowels and look-alikes, so that no hash spells a word.
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let digits = hash.to_string();
    digits.bytes().map(|digit| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()])).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    fn object(value: Value) -> Arc<Object> {
        Arc::new(Object { value, managers: Default::default() })
    }

    #[test]
    fn the_hash_label_does_not_tell_templates_apart() {
        let deployment = value!({"spec": {"template": {"metadata": {"labels": {"app": "web"}}, "spec": {"x": 1}}}});
        let other = object(value!({"metadata": {"name": "a"}, "spec": {"template": {"spec": {"x": 1}}}}));
        let same = object(value!({"metadata": {"name": "b"}, "spec": {"template":
            {"metadata": {"labels": {"app": "web", "pod-template-hash": "h"}}, "spec": {"x": 1}}}}));
        let sets = [other, same];
        assert_eq!(newest(&deployment, &sets).map(|set| set.name().to_string()), Some("b".to_owned()));
    }

    #[test]
    fn a_new_set_is_named_labelled_and_annotated() {
        let deployment = object(value!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop", "uid": "u", "annotations": {
                "note": "kept", "kubectl.kubernetes.io/last-applied-configuration": "not", REVISION: "9"}},
            "spec": {"replicas": 4, "minReadySeconds": 5, "selector": {"matchLabels": {"app": "web"}},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"x": 1}}},
        }));
        let set = new_set(&deployment, 3);
        let hash = set.str_at(&["metadata", "labels", HASH]).unwrap().to_owned();
        assert_eq!(
            set,
            value!({
                "apiVersion": "apps/v1", "kind": "ReplicaSet",
                "metadata": {
                    "name": format!("web-{hash}"), "namespace": "shop", "labels": {"app": "web", HASH: hash},
                    "annotations": {"note": "kept", REVISION: "3", DESIRED: "4", MAX: "5"},
                    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u",
                        "controller": true, "blockOwnerDeletion": true}],
                },
                "spec": {"replicas": 0, "minReadySeconds": 5, "selector": {"matchLabels": {"app": "web", HASH: hash}},
                    "template": {"metadata": {"labels": {"app": "web", HASH: hash}}, "spec": {"x": 1}}},
            })
        );
    }

    #[test]
    fn an_old_set_that_comes_back_remembers_its_revisions() {
        let mut set = value!({"metadata": {"annotations": {REVISION: "1"}}});
        annotate(&value!({}), &mut set, 3);
        assert_eq!(set, value!({"metadata": {"annotations": {REVISION: "3", HISTORY: "1"}}}));
        annotate(&value!({}), &mut set, 5);
        assert_eq!(set, value!({"metadata": {"annotations": {REVISION: "5", HISTORY: "1,3"}}}));
        annotate(&value!({}), &mut set, 5);
        assert_eq!(set, value!({"metadata": {"annotations": {REVISION: "5", HISTORY: "1,3"}}}));
    }

    #[test]
    fn hashes_differ_by_template_and_collisions() {
        let template = value!({"spec": {"x": 1}});
        let all = [
            template_hash(&template, None),
            template_hash(&template, Some(1)),
            template_hash(&value!({"spec": {"x": 2}}), None),
        ];
        assert!(all[0] != all[1] && all[0] != all[2] && all[1] != all[2]);
        assert!(all.iter().all(|hash| hash.chars().all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c))));
    }

    #[test]
    fn long_names_are_cut() {
        let long = "d".repeat(253);
        assert_eq!(set_name(&long, "abcde").len(), 253);
        assert_eq!(set_name("web", "abcde"), "web-abcde");
    }
}
