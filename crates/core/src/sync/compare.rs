//! What applying an object would change, found out without a server.
//!
//! The apply is carried out here, on the live object and with the knowledge that the embedded API server has: types,
//! defaults, quantities, list keys, owners. Only where that ends (a kind whose schema is not known) is the answer that a
//! server must be asked. Never shows a value: what differs are paths.

use jiff::Timestamp;

use crate::{
    api::constants::FIELD_MANAGER,
    kubernetes::{
        apply::{self, Operation, Who, typed, types::Type},
        decode,
        kind::Kind,
        object::Object,
        value::Value,
    },
};

/// What applying an object would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// Nothing.
    Same,
    /// These fields; none if only who owns what would change.
    Fields(Vec<String>),
    /// Fields that somebody else owns and would have to be taken.
    Conflict(Vec<Conflict>),
    /// It cannot be found out here.
    Unknown,
    /// The object is not what its kind is like; the text says why.
    Malformed(String),
}

/// A field that somebody else owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The owner.
    pub manager: String,
    /// Whether the owner applies, as another tool like us would.
    pub applies: bool,
    /// The field: `.spec.replicas`.
    pub field: String,
}

/// What applying `wanted` to `live` would make of it, before a server prepares it; or the difference if that is all there
/// is to know.
pub fn applied(kind: &Kind, live: &Object, wanted: &Value, force: bool) -> Result<Object, Difference> {
    let who = Who { manager: FIELD_MANAGER.into(), subresource: Default::default(), now: Timestamp::UNIX_EPOCH };
    let (merged, managers) = match apply::apply(kind, Some(live), wanted, &who, force) {
        Ok(applied) => applied,
        Err(status) if status.code == 409 => return Err(conflicts(live, &status)),
        Err(status) => return Err(Difference::Malformed(status.message)),
    };
    let decoded = decode::decode(kind, &merged, Some(&live.value), &[]).map_err(Difference::Malformed)?;
    let mut value = decoded.value;
    decode::default(kind, &mut value, Some(&live.value));
    // What a client cannot set is as it is.
    for key in ["resourceVersion", "uid", "creationTimestamp", "generation", "selfLink"] {
        if let Some(live) = live.value.at(&["metadata", key]) {
            value.set_at(&["metadata", key], live);
        }
    }
    if let Some(status) = live.value.get("status") {
        value.set_at(&["status"], status);
    }
    Ok(Object { value, managers: managers.into() })
}

/// What applying `wanted` to `live` would change.
pub fn compare(kind: &Kind, live: &Object, wanted: &Value) -> Difference {
    let after = match applied(kind, live, wanted, false) {
        Ok(after) => after,
        Err(difference) => return difference,
    };
    if after.value == live.value {
        let same = after.managers.same_but_for_times(&live.managers);
        return if same { Difference::Same } else { Difference::Fields(Vec::new()) };
    }
    Difference::Fields(fields(kind, &live.value, &after.value))
}

/// The paths at which two objects of a kind differ.
pub fn fields(kind: &Kind, old: &Value, new: &Value) -> Vec<String> {
    let ty = if kind.custom().is_some() { Type::custom(&kind.schema) } else { Type::built_in(&kind.schema) };
    let changes = typed::compare(ty, old, new);
    let mut paths = Vec::new();
    for set in [&changes.added, &changes.modified, &changes.removed] {
        set.each(&mut |path| paths.push(path.iter().map(ToString::to_string).collect::<String>()));
    }
    paths.sort();
    paths.dedup();
    // Of a path and what lies below it, the path is enough.
    let below = |path: &String| {
        paths.iter().any(|above| {
            path.len() > above.len() && path.starts_with(above.as_str()) && path[above.len()..].starts_with(['.', '['])
        })
    };
    paths.iter().filter(|path| !below(path)).cloned().collect()
}

fn conflicts(live: &Object, status: &crate::kubernetes::status::Status) -> Difference {
    let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
    let conflict = |cause: &crate::kubernetes::status::Cause| {
        // conflict with "kubectl-edit" with subresource "scale" using apps/v1
        let manager = cause.message.split('"').nth(1).unwrap_or_default().to_owned();
        let applies = !cause.message.contains(" using ")
            && live
                .managers
                .owners()
                .iter()
                .any(|owner| owner.manager == manager && owner.operation == Operation::Apply);
        Conflict { manager, applies, field: cause.field.to_string() }
    };
    Difference::Conflict(causes.iter().map(conflict).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        kubernetes::{apply::Managers, facts},
        value,
    };

    /// A live object as a server would have it after `tidegate` applied it.
    fn server(kind: &Kind, wanted: &Value) -> Object {
        let empty = Object {
            value: value!({"apiVersion": kind.api_version(), "kind": kind.kind.as_str(), "metadata": {"name": "a"}}),
            managers: Arc::default(),
        };
        applied(kind, &empty, wanted, true).unwrap()
    }

    fn deployment(cpu: &str, image: &str) -> Value {
        value!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [
                {"name": "main", "image": image, "resources": {"limits": {"cpu": cpu}}},
                {"name": "side", "image": "side:1"}]}}}})
    }

    #[test]
    fn defaults_and_other_spellings_are_no_difference() {
        let kind = facts::kind("apps", "v1", "Deployment").unwrap();
        let live = server(kind, &deployment("500m", "a:1"));
        assert_eq!(live.value.str_at(&["spec", "strategy", "type"]), Some("RollingUpdate"));
        assert_eq!(compare(kind, &live, &deployment("500m", "a:1")), Difference::Same);
        assert_eq!(compare(kind, &live, &deployment("0.5", "a:1")), Difference::Same);
        let image = r#".spec.template.spec.containers[name="main"].image"#;
        assert_eq!(compare(kind, &live, &deployment("0.5", "a:2")), Difference::Fields(vec![image.to_owned()]));
    }

    #[test]
    fn what_git_no_longer_says_is_taken_back() {
        let kind = facts::kind("apps", "v1", "Deployment").unwrap();
        let live = server(kind, &deployment("1", "a:1"));
        let mut wanted = deployment("1", "a:1");
        wanted.remove_at(&["spec", "replicas"]);
        assert_eq!(compare(kind, &live, &wanted), Difference::Fields(vec![".spec.replicas".to_owned()]));
    }

    #[test]
    fn who_owns_a_field_is_named() {
        let kind = facts::kind("", "v1", "ConfigMap").unwrap();
        let map = |text: &str| value!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": text}});
        let mut live = server(kind, &map("x"));
        let entry = |manager: &str, operation: &str| value!([{"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:k": {}}}}]);
        for (manager, operation, applies) in [("kubectl-edit", "Update", false), ("argocd-controller", "Apply", true)] {
            live.managers = Arc::new(Managers::parse(&entry(manager, operation)).unwrap());
            let conflict = Conflict { manager: manager.into(), applies, field: ".data.k".into() };
            assert_eq!(compare(kind, &live, &map("y")), Difference::Conflict(vec![conflict]));
        }
    }

    #[test]
    fn an_object_that_is_not_what_its_kind_is_like_says_so() {
        let kind = facts::kind("", "v1", "ConfigMap").unwrap();
        let live = server(kind, &value!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}));
        let wanted = value!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": 5}});
        assert!(matches!(compare(kind, &live, &wanted), Difference::Malformed(_)));
    }
}
