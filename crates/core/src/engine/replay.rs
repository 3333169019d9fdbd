//! A recorded decision, made again.
//!
//! Of a Rollout, an Experiment, a Service and a DestinationRule the record is all that was seen. Of an AnalysisRun it leaves out what providers
//! said, which may be secret: the measurements that status came to stand for it. Never reads a file.

use jiff::Timestamp;
use serde::de::DeserializeOwned;

use super::{
    analysis::AnalysisMachine,
    cache::place_of,
    experiment::ExperimentMachine,
    key::Place,
    machine::{Done, Machine, Observation},
    release::{ServiceMachine, SubsetsMachine},
    rollout::RolloutMachine,
};

/// A decision that was made again.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// The machine.
    pub machine: &'static str,
    /// The object.
    pub place: Place,
    /// When it was decided.
    pub now: Timestamp,
    /// Why.
    pub reasons: Vec<String>,
    /// What is written, in its order.
    pub writes: Vec<String>,
    /// What is announced, in its order.
    pub events: Vec<String>,
    /// When it is looked at again.
    pub wake: Option<Timestamp>,
    /// The rules that the verdict breaks.
    pub broken: Vec<String>,
    /// Whether the recorded verdict is the same.
    pub is_same: bool,
}

/// Decides again; the error says what is wrong with the record.
pub fn replay(record: &serde_json::Value) -> Result<Replay, String> {
    // Records of Rollouts did not say so once.
    match record["machine"].as_str().unwrap_or("rollout") {
        "rollout" => again::<RolloutMachine>(record, case::<RolloutMachine>(record)?),
        "experiment" => again::<ExperimentMachine>(record, case::<ExperimentMachine>(record)?),
        "service" => again::<ServiceMachine>(record, case::<ServiceMachine>(record)?),
        "subsets" => again::<SubsetsMachine>(record, case::<SubsetsMachine>(record)?),
        "analysis" => again::<AnalysisMachine>(record, AnalysisMachine::recorded(record)?),
        other => Err(format!("no machine is called {other}")),
    }
}

fn case<M: Machine<Case: DeserializeOwned>>(record: &serde_json::Value) -> Result<M::View, String> {
    let mut case: M::Case = serde_json::from_value(record.clone()).map_err(|error| error.to_string())?;
    match M::look(&mut case) {
        Observation::Complete(view) => Ok(view),
        Observation::Missing(_) | Observation::Stale | Observation::Behind => {
            Err("not all that the decision needs was recorded".to_owned())
        }
    }
}

fn again<M: Machine>(record: &serde_json::Value, view: M::View) -> Result<Replay, String> {
    let verdict = M::decide(&view);
    let actions = M::diff(&view, &verdict);
    let done: Vec<&M::Action> = actions.iter().collect();
    let events = M::announce(&view, &verdict, &Done { actions: &done, is_recorded: true, is_new: false });
    let writes = actions.iter().map(|action| M::write(&view, action)).chain(M::record(&view, &verdict, None));
    Ok(Replay {
        machine: M::KEY.name(),
        place: place_of(M::object(&view)),
        now: M::now(&view),
        reasons: M::reasons(&verdict).to_vec(),
        writes: writes.map(|write| write.to_string()).collect(),
        events: events.into_iter().map(|one| format!("{}: {}", one.event.reason, one.event.message)).collect(),
        wake: M::wake(&view, &verdict),
        broken: M::check(&view, &verdict, &actions),
        is_same: serde_json::to_value(&verdict).map_err(|error| error.to_string())? == record["verdict"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{kubernetes::value::Value, value};

    #[track_caller]
    fn check(machine: &str, case: &Value, expected: (&str, usize, bool)) {
        let mut record: serde_json::Value = serde_json::from_str(&case.to_json()).expect("JSON");
        record["machine"] = machine.into();
        let first = replay(&record).expect("a record");
        assert!(!first.is_same, "no verdict was recorded");
        assert_eq!((first.machine, first.writes.len(), first.broken.is_empty()), expected, "{first:#?}");
    }

    #[test]
    fn every_machine_decides_again() {
        let metadata = |name: &str| value!({"namespace": "shop", "name": name, "uid": "u", "resourceVersion": "1"});
        let container = value!({"containers": [{"name": "c", "image": "i"}]});
        let template = value!({"metadata": {"labels": {"app": "a"}}, "spec": container});
        let selector = value!({"matchLabels": {"app": "a"}});
        let now = "2026-01-01T00:00:00Z";
        let spec = value!({"templates": [{"name": "a", "selector": selector.clone(), "template": template.clone()}]});
        let experiment = value!({"seen": {"now": now, "experiment": {"metadata": metadata("e"), "spec": spec}}});
        check("experiment", &experiment, ("experiment", 2, true));
        let spec = value!({"replicas": 1, "selector": selector, "template": template, "strategy": {"canary": {}}});
        let rollout = value!({"seen": {"now": now, "rollout": {"metadata": metadata("web"), "spec": spec}}});
        check("rollout", &rollout, ("rollout", 3, true));
        let spec = value!({"selector": {"rollouts-pod-template-hash": "h"}});
        let service = value!({"now": now, "object": {"metadata": metadata("s"), "spec": spec}, "rollouts": []});
        check("service", &service, ("service", 1, true));
        let subsets = value!([{"name": "v1", "labels": {"app": "a", "rollouts-pod-template-hash": "h"}}]);
        let mut led = metadata("d");
        led.set_at(&["annotations", "argo-rollouts.argoproj.io/managed-by-rollouts"], "web");
        let rule = value!({"now": now, "object": {"metadata": led, "spec": {"subsets": subsets}}, "rollouts": []});
        check("subsets", &rule, ("subsets", 1, true));
        let spec = value!({"metrics": [{"name": "m", "provider": {"web": {"url": "http://host"}}}]});
        let measurement = value!({"phase": "Successful", "value": "1", "startedAt": now, "finishedAt": now});
        let results = value!([{"name": "m", "phase": "Successful", "count": 1, "measurements": [measurement]}]);
        let run = value!({"metadata": metadata("r"), "spec": spec});
        let case = value!({"now": now, "run": run, "jobs": [], "verdict": {"status": {"metricResults": results}}});
        check("analysis", &case, ("analysis", 1, true));
        assert!(replay(&serde_json::json!({"machine": "sync"})).is_err());
    }
}
