//! Which pods nobody controls, which wait for a node, and which are on which node: kept in step with the store's changes.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use super::{ask, hands::Key};
use crate::kubernetes::{object::Object, value::Text};

/// What controllers look up about pods, beyond the store's index of owners.
#[derive(Debug, Default, Clone)]
pub struct Index {
    orphans: HashMap<Text, BTreeSet<Text>>,
    nodes: HashMap<Text, BTreeSet<Key>>,
    waiting: BTreeSet<Key>,
}

impl Index {
    /// Learns that a pod changed.
    pub fn pod_changed(&mut self, old: Option<&Arc<Object>>, new: Option<&Arc<Object>>) {
        let (before, after) = (old.map(Facts::of), new.map(Facts::of));
        if before == after {
            return;
        }
        let Some(key) = new.or(old).map(|pod| Key::of(pod)) else { return };
        if let Some(facts) = before {
            self.remove(&key, &facts);
        }
        if let Some(facts) = after {
            self.insert(key, facts);
        }
    }

    fn insert(&mut self, key: Key, facts: Facts) {
        if facts.orphan {
            self.orphans.entry(key.namespace.clone()).or_default().insert(key.name.clone());
        }
        match facts.node {
            Some(node) => drop(self.nodes.entry(node).or_default().insert(key)),
            None => drop(self.waiting.insert(key)),
        }
    }

    fn remove(&mut self, key: &Key, facts: &Facts) {
        if facts.orphan
            && let Some(names) = self.orphans.get_mut(&key.namespace)
        {
            names.remove(&key.name);
            if names.is_empty() {
                self.orphans.remove(&key.namespace);
            }
        }
        match &facts.node {
            Some(node) => {
                if let Some(pods) = self.nodes.get_mut(node) {
                    pods.remove(key);
                    if pods.is_empty() {
                        self.nodes.remove(node);
                    }
                }
            }
            None => drop(self.waiting.remove(key)),
        }
    }

    /// The names of the pods of a namespace that nobody controls.
    pub fn orphans(&self, namespace: &str) -> impl Iterator<Item = &Text> {
        self.orphans.get(namespace).into_iter().flatten()
    }

    /// The pods on a node.
    pub fn on_node(&self, node: &str) -> impl Iterator<Item = &Key> {
        self.nodes.get(node).into_iter().flatten()
    }

    /// How many pods are on a node.
    pub fn count_on_node(&self, node: &str) -> usize {
        self.nodes.get(node).map_or(0, BTreeSet::len)
    }

    /// The pods that have no node.
    pub fn waiting(&self) -> impl Iterator<Item = &Key> {
        self.waiting.iter()
    }
}

#[derive(Debug, PartialEq)]
struct Facts {
    orphan: bool,
    node: Option<Text>,
}

impl Facts {
    fn of(pod: &Arc<Object>) -> Facts {
        let node = pod.value.at(&["spec", "nodeName"]).and_then(|node| node.as_text());
        Facts { orphan: ask::controller_of(&pod.value).is_none(), node: node.filter(|node| !node.is_empty()).cloned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn pods_are_found_by_node_and_as_orphans() {
        let pod = |spec: serde_json::Value, owners: serde_json::Value| {
            let value = value!({"metadata": {"name": "p", "namespace": "n", "ownerReferences": owners}, "spec": spec});
            Arc::new(Object { value, managers: Default::default() })
        };
        let look = |index: &Index| {
            (index.orphans("n").count(), index.waiting().count(), index.count_on_node("a"), index.count_on_node("b"))
        };
        let json = serde_json::json!([]);
        let owned = serde_json::json!([{"uid": "u", "controller": true}]);
        let (waiting, bound) = (serde_json::json!({}), serde_json::json!({"nodeName": "a"}));
        let steps = [pod(waiting, json.clone()), pod(bound.clone(), json), pod(bound, owned)];
        let mut index = Index::default();
        let mut seen = Vec::new();
        let mut old = None;
        for new in &steps {
            index.pod_changed(old, Some(new));
            seen.push(look(&index));
            old = Some(new);
        }
        index.pod_changed(old, None);
        seen.push(look(&index));
        assert_eq!(seen, [(1, 1, 0, 0), (1, 0, 1, 0), (0, 0, 1, 0), (0, 0, 0, 0)]);
    }
}
