//! What people ask of a Rollout, as the writes that say so: promote, pause, abort, retry, restart, undo, set image.
//!
//! The writes are those of `kubectl argo rollouts`, so that either program steers either controller. Never writes, never
//! asks the time, and never guesses: an intent that would change nothing, or that cannot be met, is refused with the reason.

use std::fmt;

use super::step;
use crate::{
    api::{
        self, Rollout,
        constants::{analysis_phase, annotation, label},
    },
    kubernetes::{object, value::Value},
    model::{affinity, codec, ephemeral, health, revision, strategy::AntiAffinity, template::Prepared},
    value,
};

/// Merge patches, in this order, which is that of `kubectl argo rollouts`: a pass between the two still sees `spec.paused`,
/// and comes to the same decision as one that sees both (see [`codec::overrule`]).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Writes {
    /// For the status subresource.
    pub status: Option<Value>,
    /// For the object itself.
    pub object: Option<Value>,
}

impl Writes {
    fn status(patch: Value) -> Writes {
        Writes { status: Some(patch), object: None }
    }

    fn object(patch: Value) -> Writes {
        Writes { status: None, object: Some(patch) }
    }
}

/// How far to promote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promotion {
    /// Past what it waits for now.
    Next,
    /// Past the current step, whatever it is.
    SkipStep,
    /// Past all steps, but not past what comes after them.
    SkipAllSteps,
    /// To the end: no steps, no pauses, no analysis.
    Full,
}

/// What a promotion comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promoted {
    /// It goes on.
    Onward,
    /// It skips everything up to its end.
    Fully,
    /// It is no longer paused by hand, and begins the pause anew in which it was.
    OnlyResumed,
}

impl Promoted {
    /// What this promotion of a Rollout comes to.
    pub fn of(rollout: &Rollout, how: Promotion) -> Promoted {
        match how {
            Promotion::Full => Promoted::Fully,
            Promotion::Next if is_held_twice(rollout) => Promoted::OnlyResumed,
            Promotion::Next | Promotion::SkipStep | Promotion::SkipAllSteps => Promoted::Onward,
        }
    }
}

/// Whether a Rollout is paused by hand during a pause of its own.
pub fn is_held_twice(rollout: &Rollout) -> bool {
    let status = &rollout.status;
    rollout.spec.paused && codec::hold(status).first().is_some() && !codec::is_inconclusive(status)
}

/// Why an intent is not written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Blue-green has no steps.
    StepsOfBlueGreen,
    /// Nor has this canary.
    NoSteps,
    /// The version that the specification asks for is the stable one already.
    NothingToPromote {
        /// The Rollout.
        rollout: String,
    },
    /// The update was aborted: there is nothing under way.
    Aborted {
        /// The Rollout.
        rollout: String,
    },
    /// The controller has not taken up the newest specification: what is asked for would be about the version before.
    NotTakenUp {
        /// The Rollout.
        rollout: String,
    },
    /// There is no such revision.
    NoSuchRevision {
        /// The one that was asked for.
        revision: i64,
        /// Those that there are, newest first.
        known: Vec<i64>,
    },
    /// There is no revision before the newest.
    NoRevision {
        /// The Rollout.
        rollout: String,
    },
    /// The template has no such container.
    NoSuchContainer {
        /// The one that was asked for.
        container: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// Pods cannot come from a workload of this kind.
    UnknownWorkload {
        /// The kind.
        kind: String,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::StepsOfBlueGreen => f.write_str("cannot skip steps of a blue-green rollout: it has none"),
            Refusal::NoSteps => f.write_str("cannot skip steps of a rollout without steps"),
            Refusal::NothingToPromote { rollout } => {
                write!(f, "rollout '{rollout}' has nothing to promote: its newest version is the stable one")
            }
            Refusal::Aborted { rollout } => write!(f, "the update of rollout '{rollout}' was aborted"),
            Refusal::NotTakenUp { rollout } => {
                write!(f, "rollout '{rollout}' was changed and no controller has taken that up yet")
            }
            Refusal::NoSuchRevision { revision, .. } => {
                write!(f, "unable to find specified revision {revision} in history")
            }
            Refusal::NoRevision { rollout } => write!(f, "no revision found for rollout \"{rollout}\""),
            Refusal::NoSuchContainer { container, .. } => {
                write!(f, "unable to find container named \"{container}\"")
            }
            Refusal::UnknownWorkload { kind } => write!(f, "workload of type {kind} is not supported"),
        }
    }
}

impl Refusal {
    /// What the person can do about it.
    pub fn remedy(&self) -> String {
        let listed = |texts: Vec<String>| texts.join(", ");
        match self {
            Refusal::StepsOfBlueGreen | Refusal::NoSteps => {
                "leave the flag out to end a pause, or give `--full` to promote to the end".to_owned()
            }
            Refusal::NothingToPromote { .. } => "change its pod template to begin an update".to_owned(),
            Refusal::Aborted { rollout } => format!("`retry rollout {rollout}` starts it again"),
            Refusal::NotTakenUp { .. } => {
                "see that a controller is at work (`tidegate run`), and ask again when it has taken the change up"
                    .to_owned()
            }
            Refusal::NoSuchRevision { known, .. } if known.is_empty() => "there is no revision at all".to_owned(),
            Refusal::NoSuchRevision { known, .. } => {
                format!("there are {}", listed(known.iter().map(ToString::to_string).collect()))
            }
            Refusal::NoRevision { .. } => "there is no version before the current one to go back to".to_owned(),
            Refusal::NoSuchContainer { known, .. } => {
                format!("there are {}; `*` stands for all of them", listed(known.clone()))
            }
            Refusal::UnknownWorkload { .. } => "refer to a Deployment, a ReplicaSet or a PodTemplate".to_owned(),
        }
    }
}

/// Stops where it is.
pub fn pause() -> Writes {
    Writes::object(value!({"spec": {"paused": true}}))
}

/// Goes back to the stable version.
pub fn abort() -> Writes {
    Writes::status(value!({"status": {"abort": true}}))
}

/// Tries an aborted update again.
pub fn retry() -> Writes {
    Writes::status(value!({"status": {"abort": false}}))
}

/// Replaces all pods that are older than this moment.
pub fn restart(at: api::Time) -> Writes {
    Writes::object(value!({"spec": {"restartAt": at.to_string()}}))
}

/// Ends an AnalysisRun or an Experiment early.
pub fn terminate() -> Writes {
    Writes::object(value!({"spec": {"terminate": true}}))
}

/// Begins an Experiment anew. Its definition has no status subresource.
pub fn retry_experiment() -> Writes {
    Writes::object(value!({"status": null}))
}

/// Goes on.
pub fn promote(rollout: &Rollout, how: Promotion) -> Result<Writes, Refusal> {
    let name = || rollout.metadata.name.clone();
    if matches!(how, Promotion::SkipStep | Promotion::SkipAllSteps) {
        if rollout.spec.strategy.blue_green.is_some() {
            return Err(Refusal::StepsOfBlueGreen);
        }
        if step::position(rollout).is_none() {
            return Err(Refusal::NoSteps);
        }
    }
    let (status, memory) = (&rollout.status, codec::decode(&rollout.status));
    let waits = rollout.spec.paused || memory.hold.first().is_some();
    if health::is_fully_promoted(status) && !waits {
        let is_new = health::is_generation_observed(rollout);
        return Err(if is_new {
            Refusal::NothingToPromote { rollout: name() }
        } else {
            Refusal::NotTakenUp { rollout: name() }
        });
    }
    if memory.abort.is_on() && !waits && how != Promotion::Full {
        return Err(Refusal::Aborted { rollout: name() });
    }
    let resumed = rollout.spec.paused.then(|| value!({"spec": {"paused": false}}));
    Ok(match how {
        Promotion::SkipStep => Writes { status: next_step(rollout).map(at_step), object: None },
        Promotion::SkipAllSteps => Writes { status: step_count(rollout).map(at_step), object: None },
        Promotion::Full => {
            let full = || value!({"status": {"promoteFull": true}});
            Writes { status: (!health::is_fully_promoted(status)).then(full), object: resumed }
        }
        Promotion::Next => Writes { status: past_the_wait(rollout), object: resumed },
    })
}

/// Ends the pause, or moves past a step that is no pause; never both, or two steps would be skipped at once.
fn past_the_wait(rollout: &Rollout) -> Option<Value> {
    let status = &rollout.status;
    let hold = codec::hold(status);
    let is_paused = hold.first().is_some();
    let run = status.canary.current_step_analysis_run_status.as_ref();
    let is_inconclusive =
        rollout.spec.strategy.canary.is_some() && run.is_some_and(|run| run.status == analysis_phase::INCONCLUSIVE);
    if is_inconclusive && is_paused && hold.is_begun_here() {
        // Without the step it would wait again if the next one is a pause: the pause would be taken for resumed.
        let index = next_step(rollout)?;
        let patch = value!({"pauseConditions": null, "controllerPause": false, "currentStepIndex": index});
        return Some(value!({"status": patch}));
    }
    if is_paused {
        return Some(value!({"status": {"pauseConditions": null}}));
    }
    let index = next_step(rollout)?;
    Some(value!({"status": {"pauseConditions": null, "currentStepIndex": index}}))
}

fn at_step(index: i32) -> Value {
    value!({"status": {"currentStepIndex": index}})
}

/// The step after the current one; past the last there is none.
fn next_step(rollout: &Rollout) -> Option<i32> {
    let (position, count) = (step::position(rollout)?, step_count(rollout)?);
    Some(if position.index < count { position.index + 1 } else { position.index })
}

fn step_count(rollout: &Rollout) -> Option<i32> {
    i32::try_from(rollout.spec.strategy.canary.as_ref()?.steps.len()).ok()
}

/// Where the pod template of a Rollout is: its own, or that of the workload it refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// In itself.
    Own,
    /// In a Deployment or ReplicaSet of this name.
    Workload {
        /// `Deployment`, `ReplicaSet` or `PodTemplate`
        kind: String,
        /// Its name.
        name: String,
    },
}

impl Source {
    /// Where the template of this Rollout is.
    pub fn of(rollout: &Value) -> Result<Source, Refusal> {
        let Some(reference) = rollout.at(&["spec", "workloadRef"]).filter(|reference| !reference.is_null()) else {
            return Ok(Source::Own);
        };
        let text = |key: &str| reference.str_at(&[key]).unwrap_or_default().to_owned();
        match text("kind").as_str() {
            kind @ ("Deployment" | "ReplicaSet" | "PodTemplate") => {
                Ok(Source::Workload { kind: kind.to_owned(), name: text("name") })
            }
            kind => Err(Refusal::UnknownWorkload { kind: kind.to_owned() }),
        }
    }

    /// The path of the template in the object that has it.
    fn path(&self) -> &'static [&'static str] {
        match self {
            Source::Workload { kind, .. } if kind == "PodTemplate" => &["template"],
            Source::Own | Source::Workload { .. } => &["spec", "template"],
        }
    }

    fn pointer(&self) -> String {
        self.path().iter().map(|part| format!("/{part}")).collect()
    }
}

/// How to go back.
#[derive(Debug, Clone, PartialEq)]
pub enum Undo {
    /// By this JSON patch of the object that has the template.
    Patch(Value),
    /// It is there already.
    Skipped,
}

/// Goes back to the template of a revision; of the one before the newest if `revision` is 0.
///
/// What the controller put into the ReplicaSet's template (the hash, metadata of a role, an anti-affinity) does not go
/// back into the Rollout, or the ReplicaSet would not be found again.
pub fn undo(rollout: &Value, source: &Source, sets: &[Value], revision: i64) -> Result<Undo, Refusal> {
    let text = |key: &str| rollout.str_at(&["metadata", key]).unwrap_or_default();
    let uid = text("uid");
    let mut owned: Vec<(i64, &Value)> = sets
        .iter()
        .filter(|set| object::controller(set).as_deref() == Some(uid))
        .filter_map(|set| {
            let note = set.str_at(&["metadata", "annotations", annotation::REVISION]);
            note.map_or(Some(0), |note| revision::parse(note).ok()).map(|revision| (revision, set))
        })
        .collect();
    owned.sort_by_key(|(revision, _)| std::cmp::Reverse(*revision));
    let found = if revision == 0 {
        owned.get(1).ok_or_else(|| Refusal::NoRevision { rollout: text("name").to_owned() })?
    } else {
        owned.iter().find(|(known, _)| *known == revision).ok_or_else(|| Refusal::NoSuchRevision {
            revision,
            known: owned.iter().map(|(revision, _)| *revision).collect(),
        })?
    };
    let strategy = api::read::<Rollout>(rollout).object.spec.strategy;
    let mut template = affinity::without_injected(&ephemeral::without(found.1), AntiAffinity::of(&strategy));
    template.remove_at(&["metadata", "labels", label::POD_TEMPLATE_HASH]);
    if let (Source::Own, Some(own)) = (source, rollout.at(&["spec", "template"]))
        && Prepared::of(own).equals(&template)
    {
        return Ok(Undo::Skipped);
    }
    Ok(Undo::Patch(Value::list([value!({"op": "replace", "path": source.pointer(), "value": template})])))
}

/// Gives the containers of this name, or all if it is `*`, another image: a JSON patch of the object that has the
/// template, which fails if the containers are no longer where they were.
pub fn set_image(object: &Value, source: &Source, container: &str, image: &str) -> Result<Value, Refusal> {
    let (mut patch, mut known) = (Vec::new(), Vec::new());
    for field in ["initContainers", "containers", "ephemeralContainers"] {
        let spec = object.at(source.path()).and_then(|template| template.get("spec"));
        for (index, found) in spec.map(|spec| spec.list_at(&[field])).unwrap_or_default().iter().enumerate() {
            let name = found.str_at(&["name"]).unwrap_or_default();
            known.push(name.to_owned());
            if container != name && container != "*" {
                continue;
            }
            let pointer = format!("{}/spec/{field}/{index}", source.pointer());
            patch.push(value!({"op": "test", "path": format!("{pointer}/name"), "value": name}));
            patch.push(value!({"op": "add", "path": format!("{pointer}/image"), "value": image}));
        }
    }
    if patch.is_empty() {
        return Err(Refusal::NoSuchContainer { container: container.to_owned(), known });
    }
    Ok(Value::list(patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A canary with three steps whose newest version is not the stable one, with these changes.
    fn canary(changes: &Value) -> Rollout {
        let mut rollout = value!({
            "metadata": {"name": "web", "generation": 2},
            "spec": {"strategy": {"canary": {"steps": [{"setWeight": 10}, {"pause": {}}, {"setWeight": 50}]}}},
            "status": {"observedGeneration": "2", "currentPodHash": "new", "stableRS": "old", "currentStepIndex": 1},
        });
        for part in ["spec", "status"] {
            for (key, value) in changes.get(part).and_then(Value::as_map).into_iter().flat_map(|map| map.iter()) {
                rollout.set_at(&[part, key], value.clone());
            }
        }
        api::read(&rollout).object
    }

    fn paused() -> Value {
        value!({"status": {"controllerPause": true, "pauseConditions": [{"reason": "CanaryPauseStep", "startTime": null}]}})
    }

    #[track_caller]
    fn check(changes: &Value, how: Promotion, status: Option<Value>, object: Option<Value>) {
        assert_eq!(promote(&canary(changes), how), Ok(Writes { status, object }), "{changes}");
    }

    #[test]
    fn a_promotion_ends_the_pause_or_moves_past_the_step_never_both() {
        let next = Promotion::Next;
        check(&paused(), next, Some(value!({"status": {"pauseConditions": null}})), None);
        let moved = |index: i32| Some(value!({"status": {"pauseConditions": null, "currentStepIndex": index}}));
        check(&Value::Null, next, moved(2), None);
        check(&value!({"status": {"currentStepIndex": 3}}), next, moved(3), None);
        check(&value!({"status": {"currentStepIndex": null}}), next, moved(1), None);
        check(&value!({"spec": {"paused": true}}), next, moved(2), Some(value!({"spec": {"paused": false}})));
        let no_steps = value!({"spec": {"paused": true, "strategy": {"canary": {}}}});
        check(&no_steps, next, None, Some(value!({"spec": {"paused": false}})));
        let blue_green = value!({"spec": {"strategy": {"blueGreen": {"activeService": "a"}}}});
        check(&blue_green, next, None, None);
        let mut inconclusive = paused();
        inconclusive.set_at(&["status", "canary", "currentStepAnalysisRunStatus", "status"], "Inconclusive");
        let past = value!({"pauseConditions": null, "controllerPause": false, "currentStepIndex": 2});
        check(&inconclusive, next, Some(value!({"status": past})), None);
        inconclusive.set_at(&["status", "controllerPause"], false);
        check(&inconclusive, next, Some(value!({"status": {"pauseConditions": null}})), None);
    }

    #[test]
    fn a_promotion_during_a_pause_by_hand_only_resumes() {
        let by_hand = value!({"spec": {"paused": true}});
        let both = value!({"spec": {"paused": true}, "status": paused().get("status").cloned().unwrap()});
        let mut inconclusive = both.clone();
        inconclusive.set_at(&["status", "canary", "currentStepAnalysisRunStatus", "status"], "Inconclusive");
        for (changes, how, expected) in [
            (&paused(), Promotion::Next, Promoted::Onward),
            (&by_hand, Promotion::Next, Promoted::Onward),
            (&both, Promotion::Next, Promoted::OnlyResumed),
            (&both, Promotion::SkipStep, Promoted::Onward),
            (&both, Promotion::Full, Promoted::Fully),
            (&inconclusive, Promotion::Next, Promoted::Onward),
        ] {
            assert_eq!(Promoted::of(&canary(changes), how), expected, "{changes} {how:?}");
        }
    }

    #[test]
    fn steps_are_skipped_by_their_index() {
        let at = |index: i32| Some(value!({"status": {"currentStepIndex": index}}));
        check(&paused(), Promotion::SkipStep, at(2), None);
        check(&Value::Null, Promotion::SkipAllSteps, at(3), None);
        let blue_green = value!({"spec": {"strategy": {"blueGreen": {}}}});
        assert_eq!(promote(&canary(&blue_green), Promotion::SkipStep), Err(Refusal::StepsOfBlueGreen));
        let none = value!({"spec": {"strategy": {"canary": {}}}});
        assert_eq!(promote(&canary(&none), Promotion::SkipAllSteps), Err(Refusal::NoSteps));
    }

    #[test]
    fn a_full_promotion_is_asked_for_only_if_there_is_something_to_promote() {
        let full = Some(value!({"status": {"promoteFull": true}}));
        check(&Value::Null, Promotion::Full, full.clone(), None);
        check(&value!({"status": {"abort": true}}), Promotion::Full, full.clone(), None);
        let resumed = Some(value!({"spec": {"paused": false}}));
        check(&value!({"spec": {"paused": true}}), Promotion::Full, full, resumed.clone());
        let stable = value!({"spec": {"paused": true}, "status": {"stableRS": "new"}});
        check(&stable, Promotion::Full, None, resumed);
    }

    #[test]
    fn what_would_change_nothing_is_refused() {
        let rollout = || "web".to_owned();
        let stable = value!({"status": {"stableRS": "new", "currentStepIndex": 3}});
        let behind = value!({"status": {"stableRS": "new", "observedGeneration": "1"}});
        let aborted = value!({"status": {"abort": true, "currentStepIndex": 0}});
        for (changes, how, refusal) in [
            (&stable, Promotion::Next, Refusal::NothingToPromote { rollout: rollout() }),
            (&stable, Promotion::Full, Refusal::NothingToPromote { rollout: rollout() }),
            (&stable, Promotion::SkipAllSteps, Refusal::NothingToPromote { rollout: rollout() }),
            (&behind, Promotion::Full, Refusal::NotTakenUp { rollout: rollout() }),
            (&aborted, Promotion::Next, Refusal::Aborted { rollout: rollout() }),
            (&aborted, Promotion::SkipStep, Refusal::Aborted { rollout: rollout() }),
        ] {
            assert_eq!(promote(&canary(changes), how), Err(refusal), "{changes}");
        }
    }

    #[test]
    fn each_intent_is_one_patch() {
        let status = |patch: Value| Writes { status: Some(patch), object: None };
        let object = |patch: Value| Writes { status: None, object: Some(patch) };
        assert_eq!(abort(), status(value!({"status": {"abort": true}})));
        assert_eq!(retry(), status(value!({"status": {"abort": false}})));
        assert_eq!(pause(), object(value!({"spec": {"paused": true}})));
        assert_eq!(terminate(), object(value!({"spec": {"terminate": true}})));
        assert_eq!(retry_experiment(), object(value!({"status": null})));
        let at = api::Time::parse("2026-01-01T00:00:10Z").unwrap();
        assert_eq!(restart(at), object(value!({"spec": {"restartAt": "2026-01-01T00:00:10Z"}})));
    }

    fn rollout() -> Value {
        value!({
            "metadata": {"name": "web", "uid": "u"},
            "spec": {
                "template": template("web:3"),
                "strategy": {"canary": {"antiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}},
            },
        })
    }

    fn template(image: &str) -> Value {
        value!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": image}]}})
    }

    /// The template as the API server keeps it, with its defaults.
    fn live(image: &str) -> Value {
        Prepared::of(&template(image)).value().clone()
    }

    fn set(revision: &str, image: &str, owner: &str) -> Value {
        let mut template = live(image);
        template.set_at(&["metadata", "labels", label::POD_TEMPLATE_HASH], "h");
        value!({
            "metadata": {
                "annotations": {annotation::REVISION: revision},
                "ownerReferences": [{"uid": owner, "controller": true}],
            },
            "spec": {"template": template},
        })
    }

    #[track_caller]
    fn check_undo(sets: &[Value], revision: i64, expected: Result<Undo, Refusal>) {
        assert_eq!(undo(&rollout(), &Source::Own, sets, revision), expected);
    }

    fn back_to(image: &str) -> Result<Undo, Refusal> {
        Ok(Undo::Patch(value!([{"op": "replace", "path": "/spec/template", "value": live(image)}])))
    }

    #[test]
    fn an_undo_goes_to_the_revision_asked_for_or_the_one_before_the_newest() {
        let sets = [set("9", "web:9", "other"), set("1", "web:1", "u"), set("3", "web:3", "u"), set("2", "web:2", "u")];
        check_undo(&sets, 0, back_to("web:2"));
        check_undo(&sets, 1, back_to("web:1"));
        check_undo(&sets, 3, Ok(Undo::Skipped));
        check_undo(&sets, 9, Err(Refusal::NoSuchRevision { revision: 9, known: vec![3, 2, 1] }));
        check_undo(&sets[..3], 0, back_to("web:1"));
        check_undo(&sets[..2], 0, Err(Refusal::NoRevision { rollout: "web".into() }));
        check_undo(
            &[set("x", "web:1", "u"), set("2", "web:2", "u")],
            0,
            Err(Refusal::NoRevision { rollout: "web".into() }),
        );
    }

    #[test]
    fn what_the_controller_put_into_a_template_does_not_go_back() {
        let mut dressed = set("1", "web:1", "u");
        dressed.set_at(&["metadata", "annotations", annotation::EPHEMERAL_METADATA], r#"{"labels":{"role":"stable"}}"#);
        dressed.set_at(&["spec", "template", "metadata", "labels", "role"], "stable");
        let term = value!({
            "labelSelector": {"matchExpressions": [
                {"key": label::POD_TEMPLATE_HASH, "operator": "In", "values": ["other"]}]},
            "topologyKey": "kubernetes.io/hostname",
        });
        let path = ["spec", "template", "spec", "affinity", "podAntiAffinity"];
        dressed.set_at(&path, value!({"requiredDuringSchedulingIgnoredDuringExecution": [term]}));
        check_undo(&[dressed, set("2", "web:2", "u")], 0, back_to("web:1"));
    }

    #[test]
    fn an_image_is_set_where_its_container_is() {
        let mut object = rollout();
        object.set_at(&["spec", "template", "spec", "initContainers"], value!([{"name": "setup", "image": "s:1"}]));
        let op = |op: &str, path: &str, value: &str| value!({"op": op, "path": path, "value": value});
        let web = [
            op("test", "/spec/template/spec/containers/0/name", "web"),
            op("add", "/spec/template/spec/containers/0/image", "web:4"),
        ];
        let setup = [
            op("test", "/spec/template/spec/initContainers/0/name", "setup"),
            op("add", "/spec/template/spec/initContainers/0/image", "web:4"),
        ];
        assert_eq!(set_image(&object, &Source::Own, "web", "web:4"), Ok(Value::list(web.clone())));
        assert_eq!(set_image(&object, &Source::Own, "*", "web:4"), Ok(Value::list(setup.into_iter().chain(web))));
        let refused = set_image(&object, &Source::Own, "wbe", "web:4").unwrap_err();
        assert_eq!(refused.remedy(), "there are setup, web; `*` stands for all of them");
        let source = Source::Workload { kind: "PodTemplate".into(), name: "t".into() };
        let pods = value!({"template": template("a")});
        let patch = set_image(&pods, &source, "web", "b").unwrap();
        assert_eq!(patch.list_at(&[])[1].str_at(&["path"]), Some("/template/spec/containers/0/image"));
    }
}
