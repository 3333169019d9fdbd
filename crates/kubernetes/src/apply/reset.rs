//! Which fields a door does not let through: what the server resets on a write is nobody's by that write.

use std::sync::LazyLock;

use super::fieldpath::{Entry, PathElement, Set};
use crate::kind::Kind;

/// The fields that ownership by writes through one door is restricted to.
#[derive(Debug, Clone, Copy)]
pub enum Filter {
    /// Any.
    All,
    /// All but these and what lies below them.
    Without(&'static LazyLock<Set>),
    /// Only what lies on or below one of these paths; `*` is any step.
    Only(&'static [&'static [&'static str]]),
}

static STATUS: LazyLock<Set> = LazyLock::new(|| Set::of_fields(&["status"]));
static SPEC: LazyLock<Set> = LazyLock::new(|| Set::of_fields(&["spec"]));
static METADATA_SPEC: LazyLock<Set> = LazyLock::new(|| Set::of_fields(&["metadata", "spec"]));
static LABELS_SPEC: LazyLock<Set> = LazyLock::new(|| Set::of_fields(&["metadata.labels", "spec"]));
static POD_STATUS: LazyLock<Set> =
    LazyLock::new(|| Set::of_fields(&["metadata.deletionTimestamp", "metadata.ownerReferences", "spec"]));

/// What the server resets on writes to this subresource (empty for the object itself).
pub fn reset_fields(kind: &Kind, subresource: &str) -> Filter {
    match (subresource, kind.custom()) {
        ("", Some(custom)) if custom.status => Filter::Without(&STATUS),
        ("status", Some(_)) => Filter::Without(&SPEC),
        (_, Some(_)) => Filter::All,
        ("", None) if kind.subresource("status").is_some() => Filter::Without(&STATUS),
        ("status", None) => match (kind.group.as_str(), kind.kind.as_str()) {
            ("apps", "Deployment") => Filter::Without(&LABELS_SPEC),
            ("", "Pod") => Filter::Without(&POD_STATUS),
            (
                "apiextensions.k8s.io"
                | "storage.k8s.io"
                | "flowcontrol.apiserver.k8s.io"
                | "resource.k8s.io"
                | "admissionregistration.k8s.io",
                _,
            ) => Filter::Without(&METADATA_SPEC),
            _ => Filter::Without(&SPEC),
        },
        ("finalize", None) => Filter::Without(&STATUS),
        ("ephemeralcontainers", None) => Filter::Only(&[&["spec", "ephemeralContainers"]]),
        ("resize", None) => Filter::Only(&[
            &["spec", "containers", "*", "resources"],
            &["spec", "containers", "*", "resizePolicy"],
            &["spec", "initContainers", "*", "resources"],
            &["spec", "initContainers", "*", "resizePolicy"],
        ]),
        (_, None) => Filter::All,
    }
}

impl Filter {
    /// What the filter leaves of a set.
    pub fn keep(&self, set: &Set) -> Set {
        match self {
            Filter::All => set.clone(),
            Filter::Without(reset) => set.recursive_difference(reset),
            Filter::Only(patterns) => only(set, patterns),
        }
    }
}

fn only(set: &Set, patterns: &[&[&str]]) -> Set {
    if patterns.iter().any(|pattern| pattern.is_empty()) {
        return set.clone();
    }
    let entries = set.entries().iter().filter_map(|entry| {
        let fits = |step: &str| step == "*" || matches!(&entry.element, PathElement::Field(name) if name == step);
        let rest: Vec<&[&str]> = patterns.iter().filter(|p| fits(p[0])).map(|p| &p[1..]).collect();
        let children = if rest.is_empty() { Set::default() } else { only(&entry.children, &rest) };
        let member = entry.member && !rest.is_empty();
        (member || !children.is_empty()).then(|| Entry { element: entry.element.clone(), member, children })
    });
    Set::from_entries(entries.collect())
}
