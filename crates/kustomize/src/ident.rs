//! Types and names of objects, now and at every earlier moment of a build.

use std::rc::Rc;

/// Group, version and kind; as a selector an empty part means any.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Gvk {
    pub group: Rc<str>,
    pub version: Rc<str>,
    pub kind: Rc<str>,
}

impl Gvk {
    pub fn parse(api_version: &str, kind: &str) -> Gvk {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Gvk { group: group.into(), version: version.into(), kind: kind.into() }
    }

    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_string() } else { format!("{}/{}", self.group, self.version) }
    }

    pub fn is_selected_by(&self, selector: &Gvk) -> bool {
        let fits = |wanted: &str, has: &str| wanted.is_empty() || wanted == has;
        fits(&selector.group, &self.group) && fits(&selector.version, &self.version) && fits(&selector.kind, &self.kind)
    }

    /// What the legacy order compares after the kind's rank.
    pub fn sort_text(&self) -> String {
        let or = |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
        format!("{}_{}_{}", or(&self.group, "~G"), or(&self.version, "~V"), or(&self.kind, "~K"))
    }

    pub fn show(&self) -> String {
        let or = |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
        format!("{}.{}.{}", or(&self.kind, "[noKind]"), or(&self.version, "[noVer]"), or(&self.group, "[noGrp]"))
    }
}

/// What a namespaced object without a namespace is in.
pub const DEFAULT: &str = "default";
/// The namespace of what has none.
pub const NO_NAMESPACE: &str = "_non_namespaceable_";

/// A type and a name.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Name {
    pub gvk: Gvk,
    pub name: Rc<str>,
    pub namespace: Rc<str>,
    /// Certainly cluster-scoped, as far as the schema knows.
    pub cluster: bool,
}

impl Name {
    pub fn effective_namespace(&self) -> &str {
        if self.cluster {
            NO_NAMESPACE
        } else if self.namespace.is_empty() {
            DEFAULT
        } else {
            &self.namespace
        }
    }

    pub fn is_same(&self, other: &Name) -> bool {
        self.name == other.name && self.gvk == other.gvk && self.effective_namespace() == other.effective_namespace()
    }

    pub fn is_selected_by(&self, selector: &Name) -> bool {
        (selector.name.is_empty() || selector.name == self.name)
            && (selector.namespace.is_empty() || selector.effective_namespace() == self.effective_namespace())
            && self.gvk.is_selected_by(&selector.gvk)
    }

    /// For messages.
    pub fn show(&self) -> String {
        let kind = if self.gvk.kind.is_empty() { "object" } else { &*self.gvk.kind };
        let name = if self.name.is_empty() { "of any name" } else { &*self.name };
        if self.cluster || self.namespace.is_empty() {
            format!("{kind} {name}")
        } else {
            format!("{kind} {name} in namespace {}", self.namespace)
        }
    }
}
