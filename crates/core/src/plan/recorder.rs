//! Watches one Rollout while it moves, and makes a [`Forecast`] of what it saw.
//!
//! Whoever looks, looks whenever nothing more is due at a moment; steps that pass within one moment are filled in. The same
//! recorder watches the engine in a forecast and the daemon in the test that compares both. Never acts.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::forecast::{Analysis, Approval, Forecast, Outcome, Peak, Point, Return, Step, WaitsFor};
use crate::{
    api::{
        self, Rollout,
        constants::{kind, label, phase},
    },
    kubernetes::{schema::quantity::Quantity, value::Value},
    model::{health, limits, names::StepText, replica_set::ReplicaSet},
    rollout::{step, wait::Wait},
};

/// What is to be seen of a Rollout at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'s> {
    /// When.
    pub now: Timestamp,
    /// The Rollout.
    pub rollout: &'s Value,
    /// The ReplicaSets that it controls.
    pub sets: &'s [Value],
    /// The ReplicaSets that its Experiments control.
    pub compared: &'s [Value],
    /// The AnalysisRuns that it controls, and those of its Experiments.
    pub runs: &'s [Value],
}

/// What the change is to bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expects {
    /// Another version.
    Version,
    /// The same version in another size, the first one, or new pods of the same.
    Size,
    /// The stable version again, in the middle of an update.
    Return,
}

/// Records how a Rollout goes.
#[derive(Debug, Clone)]
pub struct Recorder {
    start: Timestamp,
    expects: Expects,
    /// The stable version when it began; empty if there was none.
    old: String,
    /// The version it goes to, once that is known.
    new: String,
    forecast: Forecast,
    /// Which row each step is, by what it is a row of.
    keys: Vec<Row>,
    /// The AnalysisRuns that were met: the row they began in, and when they were seen first and last.
    runs: BTreeMap<String, (usize, Timestamp, Option<Timestamp>)>,
    /// AnalysisRuns that were there before.
    others: Vec<String>,
    /// Whether the Rollout is where it was to go.
    over: Option<Timestamp>,
}

/// What a row of the table is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Row {
    Step(usize),
    AfterSteps,
    Update,
    Size,
    Return,
    Preview,
    BeforeSwitch,
    Switch,
    AfterSwitch,
    Promoted,
}

impl Recorder {
    /// Begins to record. `before` is what is to be seen before the change, if the Rollout is there.
    pub fn new(start: Timestamp, expects: Expects, before: Option<Scene<'_>>) -> Recorder {
        let stable = before.and_then(|before| before.rollout.str_at(&["status", "stableRS"])).unwrap_or_default();
        let others = before.into_iter().flat_map(|before| before.runs).map(name).collect();
        let mut recorder = Recorder {
            start,
            expects,
            old: stable.to_owned(),
            new: String::new(),
            forecast: Forecast { lowest: (i64::MAX, 0), ..Forecast::default() },
            keys: Vec::new(),
            runs: BTreeMap::new(),
            others,
            over: None,
        };
        if let Some(before) = before {
            let rollout: Rollout = api::read(before.rollout).object;
            recorder.count(&before, &rollout);
        }
        recorder
    }

    /// Looks. Answers the AnalysisRuns that are new and not over.
    pub fn look(&mut self, scene: Scene<'_>) -> Vec<String> {
        let rollout: Rollout = api::read(scene.rollout).object;
        let status = &rollout.status;
        let is_taken_up = health::is_generation_observed(&rollout);
        let is_begun = match self.expects {
            Expects::Version => status.current_pod_hash != self.old && !status.current_pod_hash.is_empty(),
            Expects::Size => true,
            Expects::Return => status.current_pod_hash == self.old,
        };
        self.count(&scene, &rollout);
        if !is_taken_up || !(is_begun || self.is_back(&rollout)) {
            return Vec::new();
        }
        self.new.clone_from(&status.current_pod_hash);
        let sets: Vec<ReplicaSet> = scene.sets.iter().map(ReplicaSet::of).collect();
        if self.over.is_none() && is_over(&rollout, &sets) {
            self.over = Some(scene.now);
            self.forecast.outcome = if status.phase == phase::HEALTHY { Outcome::Healthy } else { Outcome::Degraded };
        }
        let row = self.row(&rollout, &sets);
        if self.keys.last().is_some_and(|last| *last != row) {
            self.close(row, &rollout, &sets);
        }
        self.enter(row, scene.now, &rollout);
        self.update(&rollout, &sets);
        self.analyses(scene, &rollout)
    }

    /// Whether it returned to the version it came from.
    fn is_back(&self, rollout: &Rollout) -> bool {
        !self.new.is_empty() && rollout.status.current_pod_hash == self.old
    }

    /// Whether the Rollout is where it was to go, or was given up.
    pub fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// Whether it was given up.
    pub fn is_degraded(&self) -> bool {
        self.forecast.outcome == Outcome::Degraded
    }

    /// Whether versions other than the stable one have no pods any more.
    pub fn is_tidy(rollout: &Value, sets: &[Value]) -> bool {
        let stable = rollout.str_at(&["status", "stableRS"]).unwrap_or_default();
        sets.iter().map(ReplicaSet::of).all(|set| set.hash.as_str() == stable || set.current == 0 && set.desired == 0)
    }

    /// Changes whenever something that is recorded does.
    pub fn progress(&self) -> (usize, usize, usize) {
        (self.forecast.steps.len(), self.forecast.curve.len(), self.runs.len())
    }

    /// Something was allowed.
    pub fn approve(&mut self, now: Timestamp, what: &str) {
        let at = self.since(now);
        let step = self.forecast.steps.last().map_or(0, |step| step.number);
        self.forecast.approvals.push(Approval { step, at, what: what.to_owned() });
    }

    /// What happens if the analysis that began in the row of this run fails.
    pub fn fails(&mut self, run: &str, back: Return) {
        let row = self.runs.get(run).map(|(row, ..)| *row);
        if let Some(step) = row.and_then(|row| self.forecast.steps.get_mut(row)) {
            step.if_analysis_fails.get_or_insert(back);
        }
    }

    /// What was seen, from the beginning to now.
    pub fn finish(mut self, now: Timestamp, message: &str) -> Forecast {
        let end = self.since(now);
        let ends = self.over.map_or(end, |over| self.since(over));
        let mut next = end;
        for step in self.forecast.steps.iter_mut().rev() {
            step.lasts = next.saturating_sub(step.at);
            next = step.at;
        }
        let count = self.forecast.steps.iter().zip(&self.keys).filter(|(_, row)| !matches!(row, Row::Step(_))).count();
        if let (Some(Row::Promoted), Some(last)) = (self.keys.last(), self.forecast.steps.last_mut())
            && last.lasts > SignedDuration::from_secs(1)
        {
            // Pods of the version before are still there.
            last.waits_for = last.waits_for.max(WaitsFor::Pods);
        }
        let is_canary = self.keys.iter().any(|row| matches!(row, Row::Step(_)));
        if !is_canary {
            for (index, step) in self.forecast.steps.iter_mut().enumerate() {
                (step.number, step.of) = (index + 1, count);
            }
        }
        for (name, (row, began, ended)) in &self.runs {
            let analyses = self.forecast.steps.get_mut(*row).map(|step| &mut step.analyses);
            if let Some(analysis) = analyses.and_then(|all| all.iter_mut().find(|analysis| analysis.name == *name)) {
                analysis.lasts = ended.map(|ended| ended.duration_since(*began));
            }
        }
        if self.forecast.lowest.0 == i64::MAX {
            self.forecast.lowest.0 = 0;
        }
        self.forecast.ends = ends;
        self.forecast.message =
            if self.forecast.outcome == Outcome::Healthy { String::new() } else { message.to_owned() };
        self.forecast
    }

    fn since(&self, now: Timestamp) -> SignedDuration {
        now.duration_since(self.start).max(SignedDuration::ZERO)
    }

    /// What the Rollout is at.
    fn row(&self, rollout: &Rollout, sets: &[ReplicaSet]) -> Row {
        let status = &rollout.status;
        if self.expects == Expects::Size || self.old.is_empty() {
            return Row::Size;
        }
        if self.expects == Expects::Return {
            return Row::Return;
        }
        if status.stable_rs == status.current_pod_hash {
            return Row::Promoted;
        }
        if rollout.spec.strategy.blue_green.is_some() {
            return blue_green(rollout, sets);
        }
        let steps = rollout.spec.strategy.canary.as_ref().map_or(0, |canary| canary.steps.len());
        let index = status.current_step_index.and_then(|index| usize::try_from(index).ok()).unwrap_or_default();
        match (steps, index < steps) {
            (0, _) => Row::Update,
            (_, true) => Row::Step(index),
            (_, false) => Row::AfterSteps,
        }
    }

    /// A row that waited for pods shows what it came to. What the next row begins with in the same moment is not part of
    /// it: if that one scales, too, the old pods are those that were there before.
    fn close(&mut self, next: Row, rollout: &Rollout, sets: &[ReplicaSet]) {
        let point = self.forecast.curve.last().copied().unwrap_or_default();
        let is_version = self.expects != Expects::Size && !self.old.is_empty();
        let is_old = |set: &&ReplicaSet| set.hash.as_str() == self.old || !is_version;
        let available: i64 = sets.iter().filter(is_old).map(|set| i64::from(set.available)).sum();
        let canary = sets.iter().map(|set| i64::from(set.available)).sum::<i64>() - available;
        let steps = rollout.spec.strategy.canary.as_ref().map(|canary| canary.steps.as_slice()).unwrap_or_default();
        let scales = match next {
            Row::Step(index) => {
                steps.get(index).is_some_and(|step| step.set_weight.is_some() || step.set_canary_scale.is_some())
            }
            Row::AfterSteps => true,
            Row::Update
            | Row::Size
            | Row::Return
            | Row::Preview
            | Row::BeforeSwitch
            | Row::Switch
            | Row::AfterSwitch
            | Row::Promoted => false,
        };
        let Some(step) = self.forecast.steps.last_mut() else { return };
        if !matches!(step.waits_for, WaitsFor::Nothing | WaitsFor::Pods) {
            return;
        }
        let stable = if scales { step.stable } else { available };
        let total = stable + canary;
        let is_shared = rollout.spec.strategy.blue_green.is_none() && !is_routed(rollout);
        step.traffic = if scales && is_shared && total > 0 { (canary * 100 + total / 2) / total } else { point.weight };
        (step.stable, step.canary, step.total) = (stable, canary, total);
    }

    /// Begins a row, and fills in the steps that passed since the last look.
    fn enter(&mut self, row: Row, now: Timestamp, rollout: &Rollout) {
        if self.keys.last() == Some(&row) {
            return;
        }
        let steps = rollout.spec.strategy.canary.as_ref().map(|canary| canary.steps.as_slice()).unwrap_or_default();
        let done = match self.keys.last() {
            Some(Row::Step(last)) => last + 1,
            Some(Row::AfterSteps | Row::Promoted) => steps.len(),
            _ => 0,
        };
        let until = match row {
            Row::Step(index) => index,
            Row::AfterSteps | Row::Promoted => steps.len(),
            Row::Update
            | Row::Size
            | Row::Return
            | Row::Preview
            | Row::BeforeSwitch
            | Row::Switch
            | Row::AfterSwitch => done,
        };
        // A rollback leaves steps out; they did not happen.
        let is_skipped = self.keys.is_empty() && until == steps.len() && matches!(row, Row::AfterSteps | Row::Promoted);
        if !is_skipped {
            (done..until).for_each(|index| self.begin(Row::Step(index), now, steps));
        }
        self.begin(row, now, steps);
        if let (Row::Size, Some(last)) = (row, self.forecast.steps.last_mut()) {
            last.what = format!("{} pods", limits::replicas(rollout));
        }
    }

    fn begin(&mut self, row: Row, now: Timestamp, steps: &[api::CanaryStep]) {
        let number = match row {
            Row::Step(index) => index + 1,
            _ => steps.len() + 1,
        };
        let what = match row {
            Row::Step(index) => steps.get(index).map(|step| StepText(step).to_string()).unwrap_or_default(),
            Row::AfterSteps => "all steps are done".to_owned(),
            Row::Update => "rolling update".to_owned(),
            Row::Size => String::new(),
            Row::Return => "back to the stable version".to_owned(),
            Row::Preview => "new version beside the old one".to_owned(),
            Row::BeforeSwitch => "analysis before the switch".to_owned(),
            Row::Switch => "wait before the switch".to_owned(),
            Row::AfterSwitch => "switched".to_owned(),
            Row::Promoted => "promoted".to_owned(),
        };
        let last = self.forecast.curve.last().copied().unwrap_or_default();
        let at = self.since(now);
        let (stable, canary, total) = (last.stable, last.canary, last.stable + last.canary);
        let weight = match row {
            // The weight that is in force there.
            Row::Step(index) => {
                let so_far = steps.iter().take(index + 1).rev();
                so_far.filter_map(|step| step.set_weight).next().unwrap_or_default().into()
            }
            _ => last.weight,
        };
        self.keys.push(row);
        self.forecast.steps.push(Step {
            at,
            number,
            of: steps.len(),
            what,
            weight,
            traffic: last.weight,
            stable,
            canary,
            total,
            ..Step::default()
        });
    }

    /// Brings the current row up to date.
    fn update(&mut self, rollout: &Rollout, sets: &[ReplicaSet]) {
        let point = self.forecast.curve.last().copied().unwrap_or_default();
        let total = sets.iter().map(|set| i64::from(set.current)).sum();
        let waits_for = match Wait::of(rollout, sets) {
            Some(Wait::Pause { until: None, .. } | Wait::Switch { until: None, .. } | Wait::Judgement { .. }) => {
                WaitsFor::Approval
            }
            Some(Wait::Pause { .. } | Wait::Switch { .. }) => WaitsFor::Pause,
            Some(Wait::Analysis | Wait::Step { .. }) => WaitsFor::Analysis,
            Some(Wait::Pods { .. } | Wait::OldPods { .. } | Wait::Overdue) => WaitsFor::Pods,
            Some(Wait::Resume { .. }) => WaitsFor::Approval,
            Some(Wait::Controller | Wait::Specification | Wait::Retry | Wait::Restart { .. }) | None => {
                WaitsFor::Nothing
            }
        };
        let row = self.keys.last().copied();
        let asked = i64::from(step::set_weight(rollout));
        if let Some(step) = self.forecast.steps.last_mut() {
            (step.stable, step.canary, step.total) = (point.stable, point.canary, total);
            step.traffic = point.weight;
            step.weight = match row {
                Some(Row::Step(_)) => asked,
                Some(Row::AfterSteps | Row::Update | Row::Promoted) => 100,
                Some(Row::Size | Row::Return | Row::Preview | Row::BeforeSwitch | Row::Switch | Row::AfterSwitch)
                | None => point.weight,
            };
            let is_analysis = row == Some(Row::BeforeSwitch);
            step.waits_for = step.waits_for.max(if is_analysis { WaitsFor::Analysis } else { waits_for });
        }
    }

    /// Notes pods, traffic and requests at this moment.
    fn count(&mut self, scene: &Scene<'_>, rollout: &Rollout) {
        let (now, sets, status) = (scene.now, scene.sets, &rollout.status);
        let infos: Vec<ReplicaSet> = sets.iter().map(ReplicaSet::of).collect();
        let is_version = self.expects != Expects::Size && !self.old.is_empty();
        let of = |set: &ReplicaSet| set.hash.as_str() == self.old || !is_version;
        let pods = |old: bool| infos.iter().filter(|set| of(set) == old).map(|set| i64::from(set.current)).sum();
        let available: i64 = infos.iter().map(|set| i64::from(set.available)).sum();
        let new: i64 = infos.iter().filter(|set| !of(set)).map(|set| i64::from(set.available)).sum();
        let weight = if !is_version {
            0
        } else if rollout.spec.strategy.blue_green.is_some() {
            let active = status.blue_green.active_selector.as_str();
            if active != self.old && !active.is_empty() { 100 } else { 0 }
        } else {
            let routed = status.canary.weights.as_ref().filter(|_| is_routed(rollout));
            match routed {
                _ if status.stable_rs != self.old => 100,
                Some(weights) => weights.canary.weight.into(),
                None if available == 0 => 0,
                // Rounded to the nearest: one of three is 33.
                None => (new * 100 + available / 2) / available,
            }
        };
        let point = Point { at: self.since(now), stable: pods(true), canary: pods(false), weight };
        match self.forecast.curve.last_mut() {
            Some(last) if last.at == point.at => *last = point,
            Some(last) if (last.stable, last.canary, last.weight) == (point.stable, point.canary, point.weight) => {}
            Some(_) | None => self.forecast.curve.push(point),
        }
        // Pods of an Experiment need room, but are no part of what serves.
        let peak = sets.iter().chain(scene.compared).fold(Peak::default(), |peak, set| {
            let (cpu, memory) = requests(set);
            let count = i64::from(ReplicaSet::of(set).current);
            Peak {
                pods: peak.pods + count,
                cpu_millis: peak.cpu_millis.saturating_add(cpu.saturating_mul(count)),
                memory_bytes: peak.memory_bytes.saturating_add(memory.saturating_mul(count)),
            }
        });
        let most = &mut self.forecast.peak;
        most.pods = most.pods.max(peak.pods);
        most.cpu_millis = most.cpu_millis.max(peak.cpu_millis);
        most.memory_bytes = most.memory_bytes.max(peak.memory_bytes);
        let serving = match &rollout.spec.strategy.blue_green {
            Some(_) if is_version => {
                let active = status.blue_green.active_selector.as_str();
                infos.iter().filter(|set| set.hash == active).map(|set| i64::from(set.available)).sum()
            }
            Some(_) | None => available,
        };
        let lowest = &mut self.forecast.lowest;
        *lowest = (lowest.0.min(serving), limits::replicas(rollout).into());
    }

    /// Notes AnalysisRuns; answers the names of those that are new and not over.
    fn analyses(&mut self, scene: Scene<'_>, rollout: &Rollout) -> Vec<String> {
        let steps = rollout.spec.strategy.canary.as_ref().map(|canary| canary.steps.as_slice()).unwrap_or_default();
        let mut new = Vec::new();
        let Some(last) = self.forecast.steps.len().checked_sub(1) else { return new };
        for run in scene.runs {
            let name = name(run);
            let is_over = run.str_at(&["status", "completedAt"]).is_some();
            if let Some((_, _, ended)) = self.runs.get_mut(&name) {
                if is_over {
                    ended.get_or_insert(scene.now);
                }
                continue;
            }
            if self.others.contains(&name) {
                continue;
            }
            let is_compared = run
                .list_at(&["metadata", "ownerReferences"])
                .iter()
                .any(|owner| owner.str_at(&["kind"]) == Some(kind::EXPERIMENT));
            let given = run.str_at(&["metadata", "labels", label::ROLLOUT_TYPE]).unwrap_or_default();
            let role = if is_compared { kind::EXPERIMENT } else { given };
            // One that ended within the moment in which it began belongs to its step, not to the one after.
            let index = run.str_at(&["metadata", "labels", label::STEP_INDEX]).and_then(|text| text.parse().ok());
            let own = index.and_then(|index: usize| self.keys.iter().position(|key| *key == Row::Step(index)));
            let compares = |key: &Row| match key {
                Row::Step(index) => steps.get(*index).is_some_and(|step| step.experiment.is_some()),
                _ => false,
            };
            let own = own.or_else(|| self.keys.iter().rposition(compares).filter(|_| is_compared));
            let at = own.unwrap_or(last);
            if let Some(step) = self.forecast.steps.get_mut(at) {
                step.analyses.push(Analysis {
                    name: name.clone(),
                    role: match role {
                        "PrePromotion" => "pre-promotion".to_owned(),
                        "PostPromotion" => "post-promotion".to_owned(),
                        role => role.to_lowercase(),
                    },
                    arguments: arguments(run),
                    metrics: metrics(run),
                    lasts: None,
                    object: run.clone(),
                    queries: Vec::new(),
                });
                step.waits_for =
                    step.waits_for.max(if role == "Background" { WaitsFor::Nothing } else { WaitsFor::Analysis });
            }
            self.runs.insert(name.clone(), (at, scene.now, is_over.then_some(scene.now)));
            if !is_over {
                new.push(name);
            }
        }
        new
    }
}

fn blue_green(rollout: &Rollout, sets: &[ReplicaSet]) -> Row {
    let status = &rollout.status;
    if status.blue_green.active_selector == status.current_pod_hash {
        return Row::AfterSwitch;
    }
    let new = sets.iter().find(|set| set.hash.as_str() == status.current_pod_hash);
    let is_there = new.is_some_and(|new| new.desired > 0 && new.available >= new.desired);
    let before = status.blue_green.pre_promotion_analysis_run_status.as_ref();
    let is_measured = before.is_some_and(|run| !["Successful", "Inconclusive"].contains(&run.status.as_str()));
    let paused = matches!(Wait::of(rollout, sets), Some(Wait::Switch { .. }));
    match (is_there, is_measured, paused) {
        (true, true, _) => Row::BeforeSwitch,
        (_, false, true) => Row::Switch,
        (false, ..) | (true, false, false) => Row::Preview,
    }
}

fn is_routed(rollout: &Rollout) -> bool {
    rollout.spec.strategy.canary.as_ref().is_some_and(|canary| canary.traffic_routing.is_some())
}

/// Whether a Rollout is where it was to go, or was given up and is back.
fn is_over(rollout: &Rollout, sets: &[ReplicaSet]) -> bool {
    let status = &rollout.status;
    if status.phase == phase::DEGRADED {
        let stable = sets.iter().find(|set| set.hash.as_str() == status.stable_rs);
        let is_aborted = crate::model::codec::abort(status).is_on();
        return !is_aborted || stable.is_some_and(|stable| stable.available >= limits::replicas(rollout));
    }
    status.phase == phase::HEALTHY && health::is_fully_promoted(status)
}

fn name(object: &Value) -> String {
    object.str_at(&["metadata", "name"]).unwrap_or_default().to_owned()
}

fn arguments(run: &Value) -> BTreeMap<String, String> {
    let arguments = run.list_at(&["spec", "args"]).iter();
    let shown = |argument: &Value| {
        let value = match argument.str_at(&["value"]) {
            Some(value) => value.to_owned(),
            None if argument.at(&["valueFrom", "secretKeyRef"]).is_some() => "(from a Secret)".to_owned(),
            None => "(not given)".to_owned(),
        };
        (argument.str_at(&["name"]).unwrap_or_default().to_owned(), value)
    };
    arguments.map(shown).collect()
}

fn metrics(run: &Value) -> Vec<String> {
    run.list_at(&["spec", "metrics"])
        .iter()
        .map(|metric| metric.str_at(&["name"]).unwrap_or_default().to_owned())
        .collect()
}

/// What one pod of a ReplicaSet requests: thousandths of processors, bytes of memory. A container that runs first and ends
/// counts only where it wants more than all that run together.
fn requests(set: &Value) -> (i64, i64) {
    let of = |list: &str, resource: &str, sum: bool| {
        let containers = set.list_at(&["spec", "template", "spec", list]).iter();
        let amounts = containers.map(|container| amount(container, resource));
        if sum { amounts.sum::<i64>() } else { amounts.max().unwrap_or_default() }
    };
    let both = |resource: &str| of("containers", resource, true).max(of("initContainers", resource, false));
    (both("cpu"), both("memory"))
}

fn amount(container: &Value, resource: &str) -> i64 {
    let asked = container.at(&["resources", "requests", resource]);
    let asked = asked.or_else(|| container.at(&["resources", "limits", resource]));
    let text = asked.map(|asked| asked.as_str().map_or_else(|| asked.to_json(), str::to_owned)).unwrap_or_default();
    let Ok(quantity) = Quantity::parse(&text) else { return 0 };
    if resource == "cpu" { quantity.milli_value() } else { quantity.value() }
}
