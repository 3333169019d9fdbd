//! The names of things: a resource, an object, and a machine's subject.

use std::fmt;

use crate::kubernetes::value::Text;

/// A resource as it is served: group, version and plural.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: Text,
    /// `v1`
    pub version: Text,
    /// `replicasets`
    pub plural: Text,
}

impl Resource {
    /// The resource of these names.
    pub fn new(group: &str, version: &str, plural: &str) -> Resource {
        Resource { group: group.into(), version: version.into(), plural: plural.into() }
    }

    /// The path of all its objects, or of those in one namespace.
    pub fn path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        };
        match namespace {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{}", self.plural),
            None => format!("{root}/{}", self.plural),
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plural)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

/// Where an object is within its resource.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Empty for cluster-wide objects.
    pub namespace: Text,
    /// Its name.
    pub name: Text,
}

impl Place {
    /// The place of these names.
    pub fn new(namespace: &str, name: &str) -> Place {
        Place { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() { f.write_str(&self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}

/// One object of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Its resource.
    pub resource: Resource,
    /// Where it is.
    pub place: Place,
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.resource, self.place)
    }
}

/// The machine that decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Machine {
    /// Templates to ReplicaSets and traffic.
    Rollout,
    /// Samples to a phase.
    Analysis,
    /// Versions beside each other.
    Experiment,
    /// Commits to objects.
    Sync,
    /// Services that nobody leads any more to what their owners wrote.
    Service,
}

impl Machine {
    /// A word for logs.
    pub fn name(self) -> &'static str {
        match self {
            Machine::Rollout => "rollout",
            Machine::Analysis => "analysis",
            Machine::Experiment => "experiment",
            Machine::Sync => "sync",
            Machine::Service => "service",
        }
    }
}

/// What a machine decides about: one object of its kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The machine.
    pub machine: Machine,
    /// The object.
    pub place: Place,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.machine.name(), self.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_api_server() {
        let sets = Resource::new("apps", "v1", "replicasets");
        let pods = Resource::new("", "v1", "pods");
        assert_eq!(sets.path(Some("shop")), "/apis/apps/v1/namespaces/shop/replicasets");
        assert_eq!(pods.path(None), "/api/v1/pods");
        assert_eq!(
            ObjectKey { resource: sets, place: Place::new("shop", "web") }.to_string(),
            "replicasets.apps shop/web"
        );
    }
}
