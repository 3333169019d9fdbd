//! The objects of a Rollout's routers, and what becomes of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Apis, Id, Kind, Problem, Routed};
use crate::kubernetes::value::Value;

/// The objects of a Rollout's routers, and in which order they were changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Routes {
    #[serde(serialize_with = "listed")]
    objects: BTreeMap<Id, Value>,
    #[serde(skip)]
    order: Vec<Id>,
    #[serde(skip)]
    pub(super) apis: Apis,
    #[serde(skip)]
    pub(super) unserved: Vec<Kind>,
    #[serde(skip)]
    pub(super) scope: RouteScope,
}

/// Where the objects may be that a Rollout routes with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RouteScope {
    /// In the namespace of the Rollout: whoever writes it need not be allowed to change the routes of others.
    #[default]
    Namespace,
    /// In any namespace, as with Argo Rollouts.
    Cluster,
}

impl RouteScope {
    /// Whether it is what it is if the operator says nothing.
    pub fn is_usual(&self) -> bool {
        *self == RouteScope::default()
    }
}

/// Keys of an object are texts; ours are not.
fn listed<S: serde::Serializer>(objects: &BTreeMap<Id, Value>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(objects)
}

impl Routes {
    /// Whether all objects are as in the other one, however they came to be so.
    pub fn has_same_objects(&self, other: &Routes) -> bool {
        self.objects == other.objects
    }

    /// These objects, none of them changed.
    pub fn of(objects: impl IntoIterator<Item = (Id, Value)>) -> Routes {
        Routes { objects: objects.into_iter().collect(), ..Routes::default() }
    }

    /// The same, of these versions.
    pub fn speaking(self, apis: Apis) -> Routes {
        Routes { apis, ..self }
    }

    /// The same, where the server does not know these kinds.
    pub fn without(self, unserved: &[Kind]) -> Routes {
        Routes { unserved: unserved.to_vec(), ..self }
    }

    /// The same without what a Rollout of this namespace may not reach: it can neither be read nor written.
    pub fn within(mut self, namespace: &str, scope: RouteScope) -> Routes {
        if scope == RouteScope::Namespace {
            self.objects.retain(|id, _| id.namespace == *namespace);
        }
        Routes { scope, ..self }
    }

    /// Those that were seen.
    pub fn seen(objects: &[Routed]) -> Routes {
        Routes::of(objects.iter().map(|routed| (routed.id(), routed.object.clone())))
    }

    /// The versions in which they are spoken.
    pub fn apis(&self) -> &Apis {
        &self.apis
    }

    /// One object.
    pub fn get(&self, id: &Id) -> Option<&Value> {
        self.objects.get(id)
    }

    /// One object, which must be there.
    pub(super) fn must(&self, id: &Id) -> Result<&Value, Problem> {
        self.get(id).ok_or_else(|| Problem::Missing(id.kind.not_found(&self.apis, &id.name)))
    }

    /// All objects.
    pub fn iter(&self) -> impl Iterator<Item = (&Id, &Value)> {
        self.objects.iter()
    }

    /// What was changed or removed, in the order in which it is to be written.
    pub fn changed(&self) -> &[Id] {
        &self.order
    }

    /// An object as it should be.
    pub fn put(&mut self, id: Id, object: Value) {
        self.note(&id);
        self.objects.insert(id, object);
    }

    /// An object that should not be.
    pub fn remove(&mut self, id: &Id) {
        if self.objects.remove(id).is_some() {
            self.note(id);
        }
    }

    fn note(&mut self, id: &Id) {
        if !self.order.contains(id) {
            self.order.push(id.clone());
        }
    }
}
