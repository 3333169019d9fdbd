//! What a repository may bring: kinds and namespaces, whatever the rights of the account it is written with.
//!
//! Never trusts a manifest: the namespace that is judged is the one that is written to.

use super::id::{Id, Sort};
use crate::api::constants::{TIDEGATE_GROUP, kind};

/// What a source may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowance {
    /// `Deployment.apps`, `ConfigMap`, `*.argoproj.io`, `*`; if there is none, kinds of a namespace that grant no rights.
    pub kinds: Vec<String>,
    /// `shop`, `*`.
    pub namespaces: Vec<String>,
}

/// Kinds of a namespace that give rights to whoever may write them, and so must be named.
const GRANTING: [(&str, &str); 4] = [
    ("", "ServiceAccount"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
    (TIDEGATE_GROUP, kind::GIT_SOURCE),
];

impl Allowance {
    /// Why an object may not be written; `None` if it may.
    pub fn refuses(&self, id: &Id, sort: &Sort) -> Option<String> {
        let full = if id.group.is_empty() { id.kind.to_string() } else { format!("{}.{}", id.kind, id.group) };
        if self.kinds.is_empty() {
            if !sort.namespaced {
                return Some(format!(
                    "{full} does not live in a namespace, and the source does not name it; add {full} to spec.allow.kinds"
                ));
            }
            if grants(&id.group, &id.kind) {
                return Some(format!(
                    "{full} grants rights, and the source does not name it; add {full} to spec.allow.kinds"
                ));
            }
        } else if !self.kinds.iter().any(|pattern| matches(pattern, &id.group, &id.kind)) {
            return Some(format!("the source does not allow {full}; add it to spec.allow.kinds"));
        }
        let free = !sort.namespaced || self.namespaces.iter().any(|name| name == "*" || *name == id.namespace);
        (!free).then(|| {
            format!("the source does not allow the namespace {}; add it to spec.allow.namespaces", id.namespace)
        })
    }
}

/// Whether a kind gives rights to whoever may write it.
pub fn grants(group: &str, kind: &str) -> bool {
    GRANTING.contains(&(group, kind))
}

/// Whether a pattern names a kind: `Kind.group`, `Kind` of the core group, `*.group`, or `*` for every one.
fn matches(pattern: &str, group: &str, kind: &str) -> bool {
    if pattern == "*" {
        return true;
    }
    let (named, of) = pattern.split_once('.').unwrap_or((pattern, ""));
    of == group && (named == "*" || named == kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes::facts;

    #[track_caller]
    fn check(
        kinds: &[&str],
        namespaces: &[&str],
        api_version: &str,
        kind: &str,
        namespace: &str,
        refused: Option<&str>,
    ) {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let sort = Sort::of(facts::kind(group, version, kind).unwrap());
        let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        let allowance = Allowance { kinds: owned(kinds), namespaces: owned(namespaces) };
        let told = allowance.refuses(&Id::new(group, kind, namespace, "x"), &sort);
        assert_eq!(told.as_deref().map(|told| told.split(';').next().unwrap()), refused, "{kind}");
    }

    #[test]
    fn sr11_kinds_and_namespaces_that_are_not_named_are_refused() {
        let shop = &["shop"][..];
        check(&[], shop, "apps/v1", "Deployment", "shop", None);
        check(&[], shop, "v1", "Secret", "shop", None);
        check(&[], shop, "v1", "Secret", "bank", Some("the source does not allow the namespace bank"));
        check(&[], &["*"], "v1", "Secret", "bank", None);
        let grants = |kind: &str| Some(format!("{kind} grants rights, and the source does not name it"));
        check(&[], shop, "v1", "ServiceAccount", "shop", grants("ServiceAccount").as_deref());
        let role = "Role.rbac.authorization.k8s.io";
        check(&[], shop, "rbac.authorization.k8s.io/v1", "Role", "shop", grants(role).as_deref());
        check(&[role], shop, "rbac.authorization.k8s.io/v1", "Role", "shop", None);
        let wide = "Namespace does not live in a namespace, and the source does not name it";
        check(&[], &["*"], "v1", "Namespace", "", Some(wide));
        check(&["Namespace"], shop, "v1", "Namespace", "", None);
        check(&["*.apps"], shop, "apps/v1", "Deployment", "shop", None);
        check(&["*.apps"], shop, "v1", "ConfigMap", "shop", Some("the source does not allow ConfigMap"));
        check(&["ConfigMap"], shop, "apps/v1", "Deployment", "shop", Some("the source does not allow Deployment.apps"));
        check(&["*"], shop, "v1", "Namespace", "", None);
    }
}
