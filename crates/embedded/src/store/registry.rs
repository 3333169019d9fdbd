//! Which resources are served, and where their objects are kept.

use std::{collections::BTreeMap, sync::Arc};

use crate::kubernetes::{
    facts,
    kind::{Custom, Kind, Origin},
    schema::crd,
    value::{Text, Value},
};

/// Every served resource, built in and custom.
#[derive(Debug, Clone)]
pub struct Registry {
    /// By group, then plural.
    resources: BTreeMap<Text, BTreeMap<Text, Arc<Resource>>>,
    generation: u64,
}

/// One resource with all its served versions.
#[derive(Debug, Clone)]
pub struct Resource {
    /// Where its objects are kept. Several resources share one table where upstream stores them as one: core Events and
    /// events.k8s.io Events, the versions of a HorizontalPodAutoscaler.
    pub table: TableId,
    /// The version its objects are stored at.
    pub storage: Arc<Kind>,
    /// The served versions, preferred first.
    pub versions: Vec<Arc<Kind>>,
}

/// The name of a table: the group and plural of its storage kind.
pub type TableId = (Text, Text);

impl Default for Registry {
    fn default() -> Registry {
        let mut registry = Registry { resources: BTreeMap::new(), generation: 0 };
        for kind in facts::kinds() {
            registry.add(kind.clone());
        }
        registry
    }
}

impl Registry {
    /// The kind served at this group, version and plural.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<(&Arc<Resource>, &Arc<Kind>)> {
        let resource = self.resource(group, plural)?;
        let kind = resource.versions.iter().find(|kind| kind.version == version)?;
        Some((resource, kind))
    }

    /// The resource of this group and plural, whatever its versions.
    pub fn resource(&self, group: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.resources.get(group)?.get(plural)
    }

    /// The kind of this apiVersion and kind, as an owner reference names it.
    pub fn find_kind(&self, api_version: &str, kind: &str) -> Option<(&Arc<Resource>, &Arc<Kind>)> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        self.resources.get(group)?.values().find_map(|resource| {
            let found = resource.versions.iter().find(|k| k.version == version && k.kind == kind)?;
            Some((resource, found))
        })
    }

    /// Every served kind, by group, plural and preference.
    pub fn kinds(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.resources().flat_map(|resource| resource.versions.iter())
    }

    /// Every resource.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values().flat_map(BTreeMap::values)
    }

    /// Whether anything is served in this group (at this version, if one is given).
    pub fn serves(&self, group: &str, version: Option<&str>) -> bool {
        self.kinds().any(|kind| kind.group == group && version.is_none_or(|version| kind.version == version))
    }

    /// A number that changes when what is served does.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    fn add(&mut self, kind: Arc<Kind>) {
        self.generation += 1;
        let table = table_of(&kind);
        let group = self.resources.entry(kind.group.clone()).or_default();
        let entry = group
            .entry(kind.plural.clone())
            .or_insert_with(|| Arc::new(Resource { table, storage: kind.clone(), versions: Vec::new() }));
        let entry = Arc::make_mut(entry);
        let storage = match kind.custom() {
            Some(custom) => custom.storage,
            None => is_storage_version(&kind),
        };
        if storage {
            entry.storage = kind.clone();
        }
        entry.versions.push(kind);
        entry.versions.sort_by_key(|kind| std::cmp::Reverse(priority(&kind.version)));
    }

    /// Serves what this CRD defines, in place of what it defined before.
    pub fn define(&mut self, definition: &Value) {
        let kinds = crd::kinds(definition);
        self.forget(definition);
        for kind in kinds {
            self.add(Arc::new(kind));
        }
    }

    /// Serves what this CRD defined no longer.
    pub fn forget(&mut self, definition: &Value) {
        self.generation += 1;
        let name = definition.str_at(&["metadata", "name"]).unwrap_or_default();
        for resources in self.resources.values_mut() {
            resources.retain(|_, resource| resource.storage.custom().is_none_or(|custom: &Custom| custom.crd != name));
        }
        self.resources.retain(|_, resources| !resources.is_empty());
    }
}

impl Resource {
    /// Whether it is defined by a CRD.
    pub fn is_custom(&self) -> bool {
        matches!(self.storage.origin, Origin::Custom(_))
    }
}

/// Where objects of this kind are kept.
fn table_of(kind: &Kind) -> TableId {
    if kind.group == "events.k8s.io" && kind.plural == "events" {
        return (Text::new(), kind.plural.clone());
    }
    (kind.group.clone(), kind.plural.clone())
}

fn is_storage_version(kind: &Kind) -> bool {
    !(kind.group == "autoscaling" && kind.version == "v1")
}

/// The order of Kubernetes versions: `v2 > v1 > v1beta2 > v1beta1 > v1alpha1 > anything else`.
pub fn priority(version: &str) -> (u8, u64, u64) {
    let parsed = version.strip_prefix('v').and_then(|rest| {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let major: u64 = rest[..digits].parse().ok()?;
        let stage = &rest[digits..];
        if stage.is_empty() {
            return Some((3, major, 0));
        }
        let (rank, minor) = match (stage.strip_prefix("beta"), stage.strip_prefix("alpha")) {
            (Some(minor), _) => (2, minor),
            (None, Some(minor)) => (1, minor),
            (None, None) => return None,
        };
        Some((rank, major, minor.parse().ok()?))
    });
    parsed.unwrap_or((0, 0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_preferred_as_upstream_orders_them() {
        let mut versions = ["v1alpha1", "v1", "foo", "v2", "v1beta1", "v11", "v1beta2"];
        versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
        assert_eq!(versions, ["v11", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "foo"]);
    }
}
