//! The world that a decision wants, what is to be remembered, and why.
//!
//! Objects are wanted as a whole, each a changed copy of the one that was seen; [`super::diff()`] makes the writes. Never
//! says in which order: that is `diff`'s.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::{
    diff::{diff, status_patch},
    view::View,
};
use crate::{
    api::RolloutStatus,
    kubernetes::value::{Text, Value},
    route::Routes,
};

pub use crate::model::event::Event;

/// What a decision came to.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// The objects as they should be after this pass; `None` leaves them as they are.
    pub target: Option<Target>,
    /// What status will say; `None` leaves it as it is.
    pub status: Option<RolloutStatus>,
    /// The earliest moment at which time alone would change the answer.
    pub wake: Option<Timestamp>,
    /// What to announce once it is done, in this order.
    pub events: Vec<Event>,
    /// What was decided, for people who want to know why.
    pub reasons: Vec<String>,
}

impl Verdict {
    /// Nothing is to be done, and nothing will be until something happens.
    pub fn nothing() -> Verdict {
        Verdict { target: None, status: None, wake: None, events: Vec::new(), reasons: Vec::new() }
    }

    /// Whether it does nothing, says nothing and waits for nothing.
    pub fn is_quiet(&self, view: &View) -> bool {
        diff(view, self).is_empty()
            && self.status.as_ref().and_then(|status| status_patch(view, status)).is_none()
            && self.events.is_empty()
            && self.wake.is_none()
    }
}

/// Objects as they should be.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// The Rollout itself: its revision, its size if it has none.
    pub rollout: Value,
    /// Its ReplicaSets by name; one that is missing here goes.
    pub sets: BTreeMap<Text, Value>,
    /// Its Services by name.
    pub services: BTreeMap<Text, Value>,
    /// Its pods by name, where they matter.
    pub pods: BTreeMap<Text, Value>,
    /// The workload it refers to.
    pub workload: Option<Value>,
    /// The objects of its routers.
    pub routes: Routes,
    /// Its AnalysisRuns by name; one that is missing here goes.
    pub runs: BTreeMap<Text, Value>,
    /// Its Experiments by name; one that is missing here goes.
    pub experiments: BTreeMap<Text, Value>,
    /// Pods to be evicted, in this order.
    pub evictions: Vec<Text>,
}

impl Target {
    /// The world as it was seen.
    pub fn of(view: &View) -> Target {
        let named = |object: &Value| {
            let name = object.at(&["metadata", "name"]).and_then(Value::as_text).cloned().unwrap_or_default();
            (name, object.clone())
        };
        let sets = view.sets.iter().map(|set| (set.info.name.clone(), set.object.clone()));
        Target {
            rollout: view.object.clone(),
            sets: sets.chain(view.strangers.iter().map(named)).collect(),
            services: view.services.iter().map(|(name, service)| (name.clone(), service.object.clone())).collect(),
            pods: view.pods.iter().map(named).collect(),
            workload: view.workload.as_ref().map(|workload| workload.object.clone()),
            routes: view.routes.clone(),
            runs: view.runs.iter().map(|run| (run.name.clone(), run.object.clone())).collect(),
            experiments: view.experiments.iter().map(|one| (one.name.clone(), one.object.clone())).collect(),
            evictions: Vec::new(),
        }
    }
}
