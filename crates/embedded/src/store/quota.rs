//! ResourceQuotas that limit how many objects a namespace may have: `pods`, `count/deployments.apps`.
//!
//! Says what counts and refuses what is too much, in the words of the admission plugin. Counts objects only: what pods
//! request, storage, and quotas with a scope limit nothing here.

use super::Store;
use crate::kubernetes::{
    kind::Kind,
    object::Object,
    schema::quantity::Quantity,
    status::Status,
    value::{Map, Text, Value},
};

/// The resources of the core group that have a name of their own beside `count/…`.
const NAMED: [&str; 7] =
    ["pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims"];

/// The group and plural that a key of a quota counts, if it counts objects.
fn counted(key: &str) -> Option<(&str, &str)> {
    match key.strip_prefix("count/") {
        Some(resource) => Some(resource.split_once('.').map_or(("", resource), |(plural, group)| (group, plural))),
        None => NAMED.contains(&key).then_some(("", key)),
    }
}

/// What a quota limits by number: each key with its limit. Nothing if it has a scope.
fn limits(quota: &Value) -> Vec<(&Text, i64)> {
    if !quota.list_at(&["spec", "scopes"]).is_empty() || quota.at(&["spec", "scopeSelector"]).is_some() {
        return Vec::new();
    }
    let hard = quota.at(&["spec", "hard"]).and_then(Value::as_map);
    hard.into_iter().flat_map(Map::iter).filter_map(limit).collect()
}

fn limit<'q>((key, value): (&'q Text, &'q Value)) -> Option<(&'q Text, i64)> {
    counted(key)?;
    let parsed = || Quantity::parse(value.as_str()?).ok().map(|quantity| quantity.value());
    Some((key, value.as_int().or_else(parsed)?))
}

/// Whether an object counts: a pod that has ended does not.
pub fn counts(object: &Value) -> bool {
    let is_pod = object.str_at(&["kind"]) == Some("Pod");
    !is_pod || !matches!(object.str_at(&["status", "phase"]), Some("Succeeded" | "Failed"))
}

impl Store {
    fn used(&self, key: &str, namespace: &str) -> i64 {
        let Some((group, plural)) = counted(key) else { return 0 };
        let objects = self.list(group, plural, namespace).filter(|object| counts(&object.value));
        i64::try_from(objects.count()).unwrap_or(i64::MAX)
    }

    /// Whether the quotas of its namespace take a new object.
    pub(super) fn within_quotas(&self, kind: &Kind, name: &str, namespace: &str, object: &Value) -> Result<(), Status> {
        if namespace.is_empty() || !counts(object) {
            return Ok(());
        }
        for quota in self.list("", "resourcequotas", namespace) {
            let is_of = |key: &str| counted(key) == Some((kind.group.as_str(), kind.plural.as_str()));
            let exceeded: Vec<(&Text, i64, i64)> = limits(&quota.value)
                .into_iter()
                .filter(|(key, _)| is_of(key))
                .map(|(key, limit)| (key, limit, self.used(key, namespace)))
                .filter(|(_, limit, used)| used + 1 > *limit)
                .collect();
            if exceeded.is_empty() {
                continue;
            }
            let listed = |of: fn(&(&Text, i64, i64)) -> i64| {
                exceeded.iter().map(|row| format!("{}={}", row.0, of(row))).collect::<Vec<_>>().join(",")
            };
            let (requested, used, limited) = (listed(|_| 1), listed(|row| row.2), listed(|row| row.1));
            let why =
                format!("exceeded quota: {}, requested: {requested}, used: {used}, limited: {limited}", quota.name());
            return Err(Status::forbidden(&kind.group, &kind.plural, name, &why));
        }
        Ok(())
    }

    /// The status of a quota: what it limits by number, and how much of that there is.
    pub fn quota_status(&self, quota: &Object) -> Value {
        let (namespace, mut status) = (quota.namespace(), Value::object());
        for (key, limit) in limits(&quota.value) {
            status.set_at(&["hard", key], limit.to_string());
            status.set_at(&["used", key], self.used(key, &namespace).to_string());
        }
        status
    }
}
