//! From an action to the request that carries it out, and from its answer to what must be seen before the next decision.
//!
//! Shared by the daemon on a cluster and by the simulator. Never sends anything.

use std::fmt;

use super::{
    cache::version_of,
    key::{ObjectKey, Place},
    resource,
};
use crate::{
    kubernetes::{
        patch,
        value::{Text, Value},
    },
    rollout::{
        Action, Verdict, View, diff,
        diff::{RouteChange, Subject},
    },
    value,
};

/// A request that changes the cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// What it changes; of a creation, only the namespace is known.
    pub object: ObjectKey,
    /// `status`, `eviction`, or none.
    pub subresource: &'static str,
    /// What is done.
    pub verb: Verb,
    /// What is sent along.
    pub body: Value,
}

/// What a request does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verb {
    /// Creates an object.
    Create,
    /// Changes one by a merge patch.
    Patch,
    /// Deletes the one of this uid, which had this version.
    Delete(Text, u64),
    /// Evicts the pod of this uid, which had this version.
    Evict(Text, u64),
}

/// What a pass wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// This object has this version now.
    Version(ObjectKey, u64),
    /// This object, of this uid, which had this version, is on its way out.
    Deleted(ObjectKey, Text, u64),
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.verb {
            Verb::Create => "create",
            Verb::Patch => "patch",
            Verb::Delete(..) => "delete",
            Verb::Evict(..) => "evict",
        };
        let slash = if self.subresource.is_empty() { "" } else { "/" };
        write!(f, "{verb} {}{slash}{} {}", self.object, self.subresource, self.body.to_json())
    }
}

impl Write {
    /// The request of an action of the pass about the Rollout at this place.
    pub fn of(view: &View, action: &Action) -> Write {
        let metadata = &view.rollout.metadata;
        let at = |resource, name: &str| ObjectKey { resource, place: Place::new(&metadata.namespace, name) };
        match action {
            Action::CreateSet { set } => {
                Write { object: at(resource::sets(), ""), subresource: "", verb: Verb::Create, body: set.clone() }
            }
            Action::Patch { object, name, patch } => {
                let object = match object {
                    Subject::Rollout => at(resource::rollouts(), &metadata.name),
                    Subject::Set => at(resource::sets(), name),
                    Subject::Service => at(resource::services(), name),
                    Subject::Pod => at(resource::pods(), name),
                    Subject::Run => at(resource::runs(), name),
                    Subject::Experiment => at(resource::experiments(), name),
                    Subject::Workload => {
                        let kind = view.rollout.spec.workload_ref.as_ref().map(|workload| workload.kind.as_str());
                        at(resource::workload(kind.unwrap_or_default()), name)
                    }
                };
                Write { object, subresource: "", verb: Verb::Patch, body: patch.clone() }
            }
            Action::Route { id, change } => {
                let (name, verb, body) = match change {
                    RouteChange::Create(object) => ("", Verb::Create, object.clone()),
                    RouteChange::Patch(patch) => (id.name.as_str(), Verb::Patch, patch.clone()),
                    RouteChange::Delete { uid, version } => {
                        let body = value!({"preconditions": {"uid": uid, "resourceVersion": version.to_string()}});
                        (id.name.as_str(), Verb::Delete(uid.clone(), *version), body)
                    }
                };
                let resource = resource::route(id.kind, view.routes.apis());
                let object = ObjectKey { resource, place: Place::new(&id.namespace, name) };
                Write { object, subresource: "", verb, body }
            }
            Action::DeleteSet { name, uid } => {
                let set = view.sets.iter().find(|set| set.info.name == *name);
                let version = set.map_or(0, |set| version_of(&set.object));
                let body = value!({"preconditions": {"uid": uid}, "propagationPolicy": "Background"});
                let verb = Verb::Delete(uid.clone(), version);
                Write { object: at(resource::sets(), name), subresource: "", verb, body }
            }
            Action::CreateRun { run } => {
                Write { object: at(resource::runs(), ""), subresource: "", verb: Verb::Create, body: run.clone() }
            }
            Action::DeleteRun { name, uid } => {
                let run = view.runs.iter().find(|run| run.name == *name);
                let version = run.map_or(0, |run| version_of(&run.object));
                let body = value!({"preconditions": {"uid": uid}, "propagationPolicy": "Background"});
                let verb = Verb::Delete(uid.clone(), version);
                Write { object: at(resource::runs(), name), subresource: "", verb, body }
            }
            Action::CreateExperiment { experiment } => Write {
                object: at(resource::experiments(), ""),
                subresource: "",
                verb: Verb::Create,
                body: experiment.clone(),
            },
            Action::DeleteExperiment { name, uid } => {
                let experiment = view.experiments.iter().find(|experiment| experiment.name == *name);
                let version = experiment.map_or(0, |experiment| version_of(&experiment.object));
                let body = value!({"preconditions": {"uid": uid}, "propagationPolicy": "Background"});
                let verb = Verb::Delete(uid.clone(), version);
                Write { object: at(resource::experiments(), name), subresource: "", verb, body }
            }
            Action::Evict { pod } => {
                let body = value!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}});
                let seen = view.pods.iter().find(|seen| seen.str_at(&["metadata", "name"]) == Some(pod.as_str()));
                let uid = seen.and_then(|seen| seen.at(&["metadata", "uid"])).and_then(Value::as_text).cloned();
                let verb = Verb::Evict(uid.unwrap_or_default(), seen.map_or(0, version_of));
                Write { object: at(resource::pods(), pod), subresource: "eviction", verb, body }
            }
        }
    }

    /// The request that makes status say what a verdict wants it to, if it does not: on the version that was seen, or on
    /// the one that this pass made itself. Nobody else has changed the Rollout since, or it is refused.
    pub fn status(view: &View, verdict: &Verdict, own: Option<u64>) -> Option<Write> {
        let mut body = verdict.status.as_ref().and_then(|status| diff::status_patch(view, status))?;
        if let Some(version) = own {
            body.set_at(&["metadata", "resourceVersion"], version.to_string());
        }
        let metadata = &view.rollout.metadata;
        let place = Place::new(&metadata.namespace, &metadata.name);
        let object = ObjectKey { resource: resource::rollouts(), place };
        Some(Write { object, subresource: "status", verb: Verb::Patch, body })
    }

    /// The request that makes the status of an object say what is wanted, if it does not: on the version that was seen.
    /// Fields of status that are not ours stay as they are.
    pub fn restated(object: ObjectKey, seen: &Value, before: &Value, after: &Value) -> Option<Write> {
        let status = seen.get("status").cloned().unwrap_or_else(Value::object);
        let change = diff::merge_patch(before, after).unwrap_or_else(Value::object);
        let wanted = patch::merge(&patch::merge(&status, &change), after);
        let change = diff::merge_patch(&status, &wanted)?;
        let mut body = value!({"status": change});
        for key in ["uid", "resourceVersion"] {
            if let Some(known) = seen.at(&["metadata", key]) {
                body.set_at(&["metadata", key], known.clone());
            }
        }
        Some(Write { object, subresource: "", verb: Verb::Patch, body })
    }

    /// Whether a refusal with this code is as good as done: what should go has gone, or a disruption budget says no and is
    /// asked again later.
    pub fn tolerates(&self, code: u16) -> bool {
        match self.verb {
            Verb::Create | Verb::Patch => false,
            Verb::Delete(..) => code == 404,
            Verb::Evict(..) => code == 404 || code == 429,
        }
    }

    /// Whether a refusal with this code means that an object cannot be made as it is wanted, however often it is tried.
    pub fn is_refused(&self, code: u16) -> bool {
        self.verb == Verb::Create && (400..500).contains(&code) && ![408, 409, 429].contains(&code)
    }

    /// What was written, by the object that the server answered with.
    pub fn done(&self, answer: &Value) -> Option<Written> {
        match &self.verb {
            Verb::Create => {
                let place = super::cache::place_of(answer);
                Some(Written::Version(ObjectKey { place, ..self.object.clone() }, version_of(answer)))
            }
            Verb::Patch => Some(Written::Version(self.object.clone(), version_of(answer))),
            Verb::Delete(uid, version) | Verb::Evict(uid, version) => {
                Some(Written::Deleted(self.object.clone(), uid.clone(), *version))
            }
        }
    }
}

impl Written {
    /// The version of the Rollout that this write made, if it was the Rollout.
    pub fn rollout_version(&self) -> Option<u64> {
        match self {
            Written::Version(object, version) if object.resource == resource::rollouts() => Some(*version),
            Written::Version(..) | Written::Deleted(..) => None,
        }
    }
}
