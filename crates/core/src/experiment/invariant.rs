//! What must never happen to what belongs to an Experiment, whatever was decided: an independent judge.
//!
//! Runs on every verdict, in production too. Shares no function with the decision; reads only what was seen and what would
//! be written. Never repairs: a verdict that breaks a rule is refused.

use super::{Action, Kind, Verdict, View};
use crate::kubernetes::value::Value;

/// The phases that end an Experiment, and those of them that say that it went wrong.
const ENDS: [&str; 4] = ["Successful", "Failed", "Error", "Inconclusive"];
const BAD: [&str; 2] = ["Failed", "Error"];

/// The rules that a verdict would break, each in a sentence.
pub fn check(view: &View, verdict: &Verdict, actions: &[Action]) -> Vec<String> {
    let mut broken: Vec<String> = actions.iter().filter_map(|action| check_action(view, action)).collect();
    let before = view.experiment.status.phase.as_str();
    let Some(next) = &verdict.status else { return broken };
    if ENDS.contains(&before) && next.phase != before {
        broken.push(format!("S44: the experiment is {before} and would become {:?}", next.phase));
    }
    if next.phase == "Successful" {
        let analyses = next.analysis_runs.iter().map(|analysis| (&analysis.name, &analysis.phase));
        let versions = next.template_statuses.iter().map(|version| (&version.name, &version.status));
        let bad = analyses.chain(versions).filter(|(_, phase)| BAD.contains(&phase.as_str()));
        broken.extend(bad.map(|(name, phase)| format!("S44: Successful, although {name} is {phase}")));
    }
    broken
}

fn check_action(view: &View, action: &Action) -> Option<String> {
    match action {
        Action::Create { kind, object } => {
            let name = name(object);
            let wrong = (!is_its(view, object)).then(|| format!("S15: {name} would belong to somebody else"));
            wrong.or_else(|| check_size(view, *kind, name, object))
        }
        Action::Patch { kind, name, patch } => {
            let wrong = (!is_own(view, *kind, name)).then(|| format!("S15: {name} belongs to somebody else"));
            wrong.or_else(|| check_size(view, *kind, name, patch))
        }
        Action::Delete { kind, name, .. } => match kind {
            Kind::Service if is_own(view, *kind, name) => None,
            Kind::Service => Some(format!("S15: {name} belongs to somebody else")),
            Kind::Set | Kind::Run => Some(format!("S42: {name} would be deleted, and only its owner's end does that")),
        },
    }
}

/// A ReplicaSet never has more pods than the largest version asks for.
fn check_size(view: &View, kind: Kind, name: &str, object: &Value) -> Option<String> {
    let size = object.int_at(&["spec", "replicas"]).filter(|_| matches!(kind, Kind::Set))?;
    let versions = view.object.list_at(&["spec", "templates"]).iter();
    let most = versions.map(|version| version.int_at(&["replicas"]).unwrap_or(1)).max().unwrap_or_default();
    (!(0..=most).contains(&size)).then(|| format!("S20: {name} would have {size} pods where {most} are the most"))
}

/// Whether an object of this name was seen and is the Experiment's.
fn is_own(view: &View, kind: Kind, wanted: &str) -> bool {
    let its = |object: &Value| name(object) == wanted && is_its(view, object);
    match kind {
        Kind::Set => view.sets.values().any(its),
        Kind::Service => view.services.values().any(its),
        Kind::Run => view.runs.iter().any(|run| its(&run.object)),
    }
}

/// Whether the Experiment controls an object, by its identity.
fn is_its(view: &View, object: &Value) -> bool {
    let uid = view.object.at(&["metadata", "uid"]);
    let mut owners = object.list_at(&["metadata", "ownerReferences"]).iter();
    owners.any(|owner| owner.get("uid") == uid && owner.get("controller").and_then(Value::as_bool) == Some(true))
}

fn name(object: &Value) -> &str {
    object.str_at(&["metadata", "name"]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        api,
        experiment::{Seen, decide, diff},
        value,
    };

    fn view() -> View {
        let container = value!({"containers": [{"name": "c", "image": "i"}]});
        let template = value!({"metadata": {"labels": {"app": "a"}}, "spec": container});
        let spec = value!({"templates": [{"name": "a", "replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": template}]});
        let metadata = value!({"name": "e", "namespace": "shop", "uid": "u", "resourceVersion": "1"});
        View::of(&Seen { experiment: value!({"metadata": metadata, "spec": spec}), ..Seen::default() })
    }

    fn set(uid: &str, replicas: i64) -> Value {
        value!({"metadata": {"name": "e-a", "ownerReferences": [{"kind": "Experiment", "uid": uid, "controller": true}]},
            "spec": {"replicas": replicas}})
    }

    #[test]
    fn what_is_decided_breaks_no_rule() {
        let view = view();
        let verdict = decide(&view);
        let actions = diff(&view, &verdict);
        assert!(!actions.is_empty());
        assert_eq!(check(&view, &verdict, &actions), Vec::<String>::new());
    }

    #[test]
    fn s15_s20_only_its_own_is_written_and_no_more_than_is_asked_for() {
        let mut view = view();
        view.sets.insert("b".into(), set("other", 1));
        let verdict = decide(&view);
        let create = |object| Action::Create { kind: Kind::Set, object };
        let patch = Action::Patch { kind: Kind::Set, name: "e-a".into(), patch: value!({"spec": {"replicas": 1}}) };
        let delete = Action::Delete { kind: Kind::Set, name: "e-a".into(), uid: "s".into() };
        let actions = [create(set("u", 2)), create(set("v", 2)), create(set("u", 3)), patch, delete];
        let expected = [
            "S15: e-a would belong to somebody else",
            "S20: e-a would have 3 pods where 2 are the most",
            "S15: e-a belongs to somebody else",
            "S42: e-a would be deleted, and only its owner's end does that",
        ];
        assert_eq!(check(&view, &verdict, &actions), expected);
    }

    #[test]
    fn s44_only_success_is_success() {
        let mut view = view();
        let mut verdict = decide(&view);
        let status = value!({"phase": "Successful", "analysisRuns": [{"name": "x", "phase": "Failed"}]});
        verdict.status = Some(api::read(&status).object);
        assert_eq!(check(&view, &verdict, &[]), ["S44: Successful, although x is Failed"]);
        view.experiment.status.phase = "Error".into();
        verdict.status = Some(api::read(&value!({"phase": "Running"})).object);
        assert_eq!(check(&view, &verdict, &[]), ["S44: the experiment is Error and would become \"Running\""]);
    }
}
