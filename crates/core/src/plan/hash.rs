//! The plan hash: the name of the content of a change, as `docs/plan.md` defines it.
//!
//! Knows nothing of files, commits, clusters and prune policy: who merges what was reviewed gets the same hash.

use std::fmt::Write;

use ring::digest::{SHA256, digest};

use crate::{
    kubernetes::value::Value,
    sync::{id::Id, set::Desired},
};

/// What the text begins with, so that a later definition has other hashes.
const HEADER: &str = "tidegate plan 1\n";

/// An object on both sides of a change; `None` where it does not exist.
pub type Pair<'s> = (Option<&'s Desired>, Option<&'s Desired>);

/// The hash of a change: the objects that differ, in any order. `namespace` is that of objects that name none.
pub fn of<'s>(pairs: impl Iterator<Item = Pair<'s>>, namespace: &str) -> String {
    let mut lines: Vec<String> = pairs.filter_map(|pair| line(pair, namespace)).collect();
    lines.sort_unstable();
    hex(digest(&SHA256, (HEADER.to_owned() + &lines.concat()).as_bytes()).as_ref())
}

fn line((old, new): Pair<'_>, namespace: &str) -> Option<String> {
    let Id { group, kind, namespace: own, name } = &new.or(old)?.id;
    let own = if own == namespace { "" } else { own };
    let side = |side: Option<&Desired>| side.map_or_else(|| "-".to_owned(), |side| content(&side.object, namespace));
    Some(format!("{group}\t{kind}\t{own}\t{name}\t{}\t{}\n", side(old), side(new)))
}

/// The hash of an object, without the namespace that it has by default.
fn content(object: &Value, namespace: &str) -> String {
    let mut object = object.clone();
    if object.str_at(&["metadata", "namespace"]) == Some(namespace) {
        object.remove_at(&["metadata", "namespace"]);
    }
    hex(digest(&SHA256, object.to_json().as_bytes()).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        manifest,
        plan::{changes, kinds},
        sync::{
            allow::Allowance,
            set::{self, Scope, Set},
        },
    };

    fn set(namespace: &str, files: &[(&str, &str)]) -> Set {
        let files: Vec<_> = files.iter().map(|(name, text)| manifest::read(*name, text.as_bytes())).collect();
        let everything = Allowance { kinds: vec!["*".into()], namespaces: vec!["*".into()] };
        let scope = Scope { namespace: namespace.into(), allowance: everything };
        let set = set::read(&files, &scope, &kinds::known(files.iter()));
        assert!(set.problems.is_empty(), "{:?}", set.problems);
        set
    }

    fn hash(namespace: &str, old: &[(&str, &str)], new: &[(&str, &str)]) -> String {
        let (old, new) = (set(namespace, old), set(namespace, new));
        changes(&old, &new, namespace).hash
    }

    const A: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: x}\n";
    const B: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {k: x}\n";
    const A2: &str = "# new\nkind: ConfigMap\napiVersion: v1\ndata: {k: z}\nmetadata:\n  name: a\n";

    #[test]
    fn the_hash_names_the_content_of_the_change_and_nothing_else() {
        let one = hash("default", &[("a.yaml", A)], &[("a.yaml", A2)]);
        assert_eq!(one.len(), 64);
        assert_eq!(one, hash("shop", &[("a.yaml", A)], &[("a.yaml", A2)]), "the default namespace has no say");
        assert_eq!(
            one,
            hash("default", &[("a.yaml", A), ("b.yaml", B)], &[("z.yaml", A2), ("b.yaml", B)]),
            "nor others"
        );
        let spelt = A2.replace("  name: a", "  name: a\n  namespace: default");
        assert_eq!(one, hash("default", &[("a.yaml", A)], &[("a.yaml", &spelt)]), "nor whether it is spelt out");
        assert_ne!(one, hash("shop", &[("a.yaml", A)], &[("a.yaml", &spelt)]));
        assert_ne!(one, hash("default", &[], &[("a.yaml", A2)]), "what it changes from counts");
        assert_ne!(one, hash("default", &[("a.yaml", A)], &[("a.yaml", A2), ("b.yaml", B)]));
        assert_ne!(one, hash("default", &[("a.yaml", A)], &[]));
        let none = hash("default", &[("a.yaml", A)], &[("a.yaml", A)]);
        assert_eq!(none, hash("default", &[], &[]), "no change has one name");
    }

    #[test]
    fn a_hook_is_content() {
        let hook = |image: &str| {
            format!(
                "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: migrate, annotations: {{tidegate.dev/hook: before-sync}}}}\nspec:\n  \
                 template: {{spec: {{restartPolicy: Never, containers: [{{name: c, image: '{image}'}}]}}}}\n"
            )
        };
        let (one, two, none) = (hook("app:1"), hook("app:2"), hash("default", &[], &[]));
        let changed = hash("default", &[("a.yaml", &one)], &[("a.yaml", &two)]);
        assert_ne!(changed, none);
        assert_ne!(changed, hash("default", &[], &[("a.yaml", &two)]));
        assert_ne!(none, hash("default", &[("a.yaml", &one)], &[]));
    }

    #[test]
    fn the_definition_does_not_change_by_accident() {
        assert_eq!(hash("default", &[], &[]), hex(digest(&SHA256, b"tidegate plan 1\n").as_ref()),);
        let object = r#"{"apiVersion":"v1","data":{"k":"x"},"kind":"ConfigMap","metadata":{"name":"a"}}"#;
        let text =
            format!("tidegate plan 1\n\tConfigMap\t\ta\t-\t{}\n", hex(digest(&SHA256, object.as_bytes()).as_ref()));
        assert_eq!(hash("shop", &[], &[("a.yaml", A)]), hex(digest(&SHA256, text.as_bytes()).as_ref()));
    }
}
