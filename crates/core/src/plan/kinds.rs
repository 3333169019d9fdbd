//! What is known of kinds without a cluster: built-in ones, our own, those that the commits define; the rest is guessed.
//!
//! Never asks anybody. A guess concerns only whether objects live in a namespace, and what the resource is called.

use std::sync::{Arc, OnceLock};

use crate::{
    api,
    kubernetes::{kind::Kind, schema::crd, value::Text},
    manifest::File,
    sync::{
        id::{Sort, Sorts},
        set,
    },
};

/// The kinds that these files need.
pub fn known<'f>(files: impl Iterator<Item = &'f File> + Clone) -> Sorts {
    let objects = || files.clone().flat_map(|file| &file.objects);
    let mut names: Vec<(Text, Text)> =
        objects().map(|object| (object.api_version().into(), object.kind().into())).collect();
    names.sort();
    names.dedup();
    let mut sorts = set::built_in(&names);
    names.retain(|name| !sorts.contains_key(name));
    if names.is_empty() {
        return sorts;
    }
    for kind in own() {
        sorts.insert((Text::from(kind.api_version()), kind.kind.clone()), Some(Arc::new(Sort::of(kind))));
    }
    names.retain(|name| !sorts.contains_key(name));
    // A commit's own definitions are found when its set is read.
    let definitions = objects().filter(|object| set::is_definition(object));
    let defined: Vec<Kind> = definitions
        .flat_map(|definition| {
            let mut value = definition.value.clone();
            crd::default(&mut value);
            crd::kinds(&value)
        })
        .collect();
    names.retain(|name| !defined.iter().any(|kind| kind.api_version() == name.0.as_str() && kind.kind == name.1));
    for name in names {
        let mut named = objects().filter(|object| object.api_version() == name.0 && object.kind() == name.1);
        let namespaced = named.any(|object| !object.namespace().is_empty()) || !is_likely_cluster_wide(&name.1);
        let (group, version) = name.0.split_once('/').unwrap_or(("", &name.0));
        let sort = Sort {
            group: group.into(),
            version: version.into(),
            plural: plural(&name.1).into(),
            namespaced,
            served: true,
            kind: None,
            defined: Text::new(),
        };
        sorts.insert(name, Some(Arc::new(sort)));
    }
    sorts
}

/// Our own kinds: Rollouts and what belongs to them, GitSources.
pub fn own() -> &'static [Arc<Kind>] {
    static KINDS: OnceLock<Vec<Arc<Kind>>> = OnceLock::new();
    KINDS.get_or_init(|| api::crd::all().iter().flat_map(crd::kinds).map(Arc::new).collect())
}

fn is_likely_cluster_wide(kind: &str) -> bool {
    kind.starts_with("Cluster") || kind.ends_with("Class")
}

/// The resource of a kind, as most definitions name it.
pub fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match kind.as_bytes() {
        [.., b's' | b'x'] | [.., b'c' | b's', b'h'] => format!("{kind}es"),
        [.., before, b'y'] if !b"aeiou".contains(before) => format!("{}ies", &kind[..kind.len() - 1]),
        _ => format!("{kind}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest;

    #[test]
    fn kinds_are_known_or_guessed() {
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: a}\n---\n\
            apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a}\n---\napiVersion: cert-manager.io/v1\nkind: ClusterIssuer\nmetadata: {name: a}\n";
        let files = [manifest::read("a.yaml", text.as_bytes())];
        let sorts = known(files.iter());
        let sort = |version: &str, kind: &str| sorts[&(version.into(), kind.into())].clone().unwrap();
        assert!(sort("v1", "ConfigMap").kind.is_some());
        assert!(sort("argoproj.io/v1alpha1", "Rollout").kind.is_some());
        let guessed = sort("networking.istio.io/v1", "VirtualService");
        assert_eq!(
            (guessed.plural.as_str(), guessed.namespaced, guessed.kind.is_none()),
            ("virtualservices", true, true)
        );
        assert!(!sort("cert-manager.io/v1", "ClusterIssuer").namespaced);
    }

    #[test]
    fn kinds_have_the_usual_plurals() {
        for (kind, expected) in [
            ("Ingress", "ingresses"),
            ("NetworkPolicy", "networkpolicies"),
            ("Gateway", "gateways"),
            ("Mesh", "meshes"),
        ] {
            assert_eq!(plural(kind), expected);
        }
    }
}
