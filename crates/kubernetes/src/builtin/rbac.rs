//! Roles and their bindings.

use super::{field::Field, meta};
use crate::{names, status::FieldError, value::Value};

const GROUP: &str = "rbac.authorization.k8s.io";

/// A Role or ClusterRole, new or changed.
pub(super) fn validate_role(kind: &str, role: &Field) {
    for rule in role.child("rules").items() {
        let (verbs, urls) = (rule.child("verbs"), rule.child("nonResourceURLs"));
        if verbs.len() == 0 {
            verbs.required("verbs must contain at least one value");
        }
        let (groups, resources) = (rule.child("apiGroups"), rule.child("resources"));
        if urls.len() > 0 {
            if kind == "Role" {
                urls.invalid("namespaced rules cannot apply to non-resource URLs");
            }
            if groups.len() + resources.len() + rule.child("resourceNames").len() > 0 {
                urls.invalid("rules cannot apply to both regular resources and non-resource URLs");
            }
            continue;
        }
        if groups.len() == 0 {
            groups.required("resource rules must supply at least one api group");
        }
        if resources.len() == 0 {
            resources.required("resource rules must supply at least one resource");
        }
    }
    let aggregation = role.child("aggregationRule");
    if kind == "ClusterRole" && aggregation.is_set() {
        let selectors = aggregation.child("clusterRoleSelectors");
        if selectors.len() == 0 {
            selectors.required("at least one clusterRoleSelector required if aggregationRule is non-nil");
        }
        for selector in selectors.items() {
            meta::selector(&selector);
            if meta::selects(selector.value, &Value::Null).is_none() {
                selector.refuse(Value::Null, "invalid label selector.");
            }
        }
    }
}

/// A RoleBinding or ClusterRoleBinding, new or changed.
pub(super) fn validate_binding(kind: &str, binding: &Field, old: Option<&Value>) {
    let role = binding.child("roleRef");
    role.child("apiGroup").one_of(&[GROUP]);
    let kinds: &[&str] = if kind == "RoleBinding" { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    role.child("kind").one_of(kinds);
    role.child("name").check_required(names::path_segment);
    for subject in binding.child("subjects").items() {
        validate_subject(kind, &subject);
    }
    if old.is_some_and(|old| old.get("roleRef").unwrap_or(&Value::Null) != role.value) {
        let [group, kind, name] = ["apiGroup", "kind", "name"].map(|field| role.child(field).text());
        let quoted = |text: &str| Value::from(text).to_json();
        let printed = format!("{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}", quoted(group), quoted(kind), quoted(name));
        role.note(FieldError::invalid(role.to_string(), Value::Null, "cannot change roleRef").printed(printed));
    }
}

fn validate_subject(kind: &str, subject: &Field) {
    let (name, group) = (subject.child("name"), subject.child("apiGroup"));
    if name.text().is_empty() {
        name.required("");
    }
    match subject.child("kind").text() {
        "ServiceAccount" => {
            name.check_given(names::dns_subdomain);
            if !group.text().is_empty() {
                group.not_supported(&[""]);
            }
            let namespace = subject.child("namespace");
            if kind == "ClusterRoleBinding" && namespace.text().is_empty() {
                namespace.required("");
            }
        }
        "User" | "Group" => group.one_of(&[GROUP]),
        _ => subject.child("kind").not_supported(&["ServiceAccount", "User", "Group"]),
    }
}
