//! The names of things: a resource, an object, and a machine's subject.

use std::fmt;

use thiserror::Error;

use crate::kubernetes::{names, value::Text};

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
    pub fn path(&self, namespace: Option<&str>) -> Result<String, BadSegment> {
        let mut segments: Vec<&str> =
            if self.group.is_empty() { vec!["api", &self.version] } else { vec!["apis", &self.group, &self.version] };
        if let Some(namespace) = namespace {
            // Stricter than a segment: this is what separates tenants.
            if !names::dns_label(namespace).is_empty() {
                return Err(BadSegment(shown(namespace)));
            }
            segments.extend(["namespaces", namespace]);
        }
        segments.push(&self.plural);
        path(&segments)
    }

    /// The path of one of its objects.
    pub fn object_path(&self, place: &Place) -> Result<String, BadSegment> {
        let namespace = (!place.namespace.is_empty()).then_some(place.namespace.as_str());
        Ok(self.path(namespace)? + &path(&[&place.name])?)
    }
}

/// A name that cannot be part of a path of the API.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} cannot be the name of an object or a namespace: nothing was asked; correct the name")]
pub struct BadSegment(String);

fn shown(segment: &str) -> String {
    segment.chars().take(253).collect()
}

/// A path of the API from its segments. Every path is made here: a segment stays one segment, whoever wrote it.
pub fn path(segments: &[&str]) -> Result<String, BadSegment> {
    let mut path = String::new();
    for segment in segments {
        let is_bad = |c: char| c.is_control() || matches!(c, '/' | '\\' | '%' | '?' | '#');
        if segment.is_empty() || *segment == "." || *segment == ".." || segment.contains(is_bad) {
            return Err(BadSegment(shown(segment)));
        }
        path.push('/');
        for byte in segment.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' | b'@' | b'=' | b'+' => {
                    path.push(char::from(byte));
                }
                byte => path.push_str(&format!("%{byte:02X}")),
            }
        }
    }
    Ok(path)
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
    /// DestinationRules whose subsets are nobody's versions any more to what their owners wrote.
    Subsets,
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
            Machine::Subsets => "subsets",
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
        assert_eq!(sets.path(Some("shop")).as_deref(), Ok("/apis/apps/v1/namespaces/shop/replicasets"));
        assert_eq!(pods.path(None).as_deref(), Ok("/api/v1/pods"));
        assert_eq!(
            ObjectKey { resource: sets, place: Place::new("shop", "web") }.to_string(),
            "replicasets.apps shop/web"
        );
    }

    #[test]
    fn sr13_a_name_is_one_segment_of_a_path_or_no_request_is_made() {
        let secrets = Resource::new("", "v1", "secrets");
        let path = |namespace: &str, name: &str| secrets.object_path(&Place::new(namespace, name));
        assert_eq!(path("shop", "app").as_deref(), Ok("/api/v1/namespaces/shop/secrets/app"));
        let roles = Resource::new("rbac.authorization.k8s.io", "v1", "clusterroles");
        let role = roles.object_path(&Place::new("", "system:node é"));
        assert_eq!(role.as_deref(), Ok("/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node%20%C3%A9"));
        for name in
            ["", ".", "..", "../../kube-system/secrets/admin", "app?x=1", "app#x", "a%2fb", "a\\b", "a\nb", "a/b"]
        {
            assert!(path("shop", name).is_err(), "{name:?}");
        }
        for namespace in ["kube-system/secrets/admin?x=", "victim/jobs?a=", "..", "a.b", "A", "a b", "shop/", "a%2f"] {
            assert!(path(namespace, "app").is_err(), "{namespace:?}");
        }
        for group in ["apps/v1/namespaces/x", "..", "a?b"] {
            assert!(Resource::new(group, "v1", "pods").path(None).is_err(), "{group:?}");
        }
    }
}
