//! A served resource: its names, scope, subresources, columns and type.

use std::sync::Arc;

use super::{schema::Schema, value::Text};

/// A resource at one version, built in or defined by a CRD.
#[derive(Debug, Clone)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: Text,
    /// The version: `v1`.
    pub version: Text,
    /// The kind: `ReplicaSet`.
    pub kind: Text,
    /// The kind of a list: `ReplicaSetList`.
    pub list_kind: Text,
    /// The resource: `replicasets`.
    pub plural: Text,
    /// In commands: `replicaset`.
    pub singular: Text,
    /// `rs`
    pub short_names: Vec<Text>,
    /// `all`
    pub categories: Vec<Text>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// What may be done to it: `create`, `delete`, `deletecollection`, `get`, `list`, `patch`, `update`, `watch`.
    pub verbs: Vec<Text>,
    /// Its subresources.
    pub subresources: Vec<Subresource>,
    /// What `kubectl get` shows.
    pub columns: Vec<Column>,
    /// Its type.
    pub schema: Arc<Schema>,
    /// Where it comes from.
    pub origin: Origin,
}

/// Where a [`Kind`] comes from, and what only that origin knows.
#[derive(Debug, Clone)]
pub enum Origin {
    /// Part of Kubernetes.
    BuiltIn,
    /// Defined by a CRD.
    Custom(Arc<Custom>),
}

/// What a CRD says beyond names and schema.
#[derive(Debug, Clone, Default)]
pub struct Custom {
    /// The CRD's name: `rollouts.argoproj.io`.
    pub crd: Text,
    /// Whether `status` is written apart from the rest.
    pub status: bool,
    /// The paths behind `/scale`, if it has one.
    pub scale: Option<Scale>,
    /// Fields that may be selected on, as paths without the leading dot: `spec.color`.
    pub selectable: Vec<Text>,
    /// Whether this is the version objects are stored at.
    pub storage: bool,
    /// The version objects are stored at.
    pub storage_version: Text,
}

/// Where a custom resource keeps what `/scale` shows. Each is a path of fields.
#[derive(Debug, Clone, Default)]
pub struct Scale {
    /// `spec.replicas`
    pub spec_replicas: Vec<Text>,
    /// `status.replicas`
    pub status_replicas: Vec<Text>,
    /// `status.selector`, a string
    pub selector: Option<Vec<Text>>,
}

/// A subresource.
#[derive(Debug, Clone)]
pub struct Subresource {
    /// `status`, `scale`, `eviction`, `binding`, …
    pub name: Text,
    /// What a client sends and gets: `apps/v1 Deployment`, `autoscaling/v1 Scale`, `policy/v1 Eviction`.
    pub group: Text,
    /// The version of that kind.
    pub version: Text,
    /// The kind.
    pub kind: Text,
    /// What may be done to it.
    pub verbs: Vec<Text>,
}

/// A printed column.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Column {
    /// Its heading.
    pub name: Text,
    /// Its JSON type: `string`, `integer`, `date`, …
    pub kind: Text,
    /// Its format: `name`, or empty.
    pub format: Text,
    /// What it means.
    pub description: Text,
    /// 0 is shown always, more only with `-o wide`.
    pub priority: i64,
    /// Where a custom resource keeps it (`.spec.replicas`); empty for built-in kinds, whose cells are computed.
    pub json_path: Text,
}

impl Kind {
    /// `apps/v1`, or `v1` for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_string() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Whether this text is its [`Kind::api_version`].
    pub fn has_api_version(&self, text: &str) -> bool {
        match text.rsplit_once('/') {
            Some((group, version)) => self.group == group && self.version == version,
            None => self.group.is_empty() && self.version == text,
        }
    }

    /// The subresource of this name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }

    /// What the CRD said, of a custom resource.
    pub fn custom(&self) -> Option<&Custom> {
        match &self.origin {
            Origin::BuiltIn => None,
            Origin::Custom(custom) => Some(custom),
        }
    }

    /// Whether this is the built-in kind of this group and name.
    pub fn is(&self, group: &str, kind: &str) -> bool {
        matches!(self.origin, Origin::BuiltIn) && self.group == group && self.kind == kind
    }
}
