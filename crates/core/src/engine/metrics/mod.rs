//! What the engine counts, and the page that Prometheus reads: Argo Rollouts' names, labels and help, then our own.
//!
//! Counters are kept for kinds and for objects that live: those of a deleted object go a little later, so that a last
//! reading sees them. Gauges are not kept at all, but read off the objects when the page is made. Never asks the time.

mod analyses;
mod attempt;
mod rollouts;
mod sources;
pub mod table;
mod text;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::{SignedDuration, Timestamp};

pub use self::text::Kind;
use self::{
    sources::Source,
    text::{Family, Histogram, Page},
};
use super::key::{Key, Machine, Place};
use crate::{
    api::{GitSourceStatus, RolloutStatus},
    forge::Outcome,
    kubernetes::value::Value,
};

/// How long the counters of a deleted object are kept: a reading a minute sees them once more.
const FAREWELL: SignedDuration = SignedDuration::from_secs(65);

const RECONCILE: &[f64] = &[0.01, 0.15, 0.25, 0.5, 1.0];
const TOTAL: &[f64] = &[30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0, 14400.0, 28800.0];
const PROGRESSION: &[f64] = &[30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0];
const MANUAL: &[f64] = &[0.0, 60.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 14400.0, 28800.0];
const DECISION: &[f64] = &[0.000_01, 0.000_1, 0.001, 0.01, 0.1, 1.0];

/// How a pass ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// Well.
    Settled,
    /// Something could not be read or written.
    Failed,
}

impl Ending {
    fn as_str(self) -> &'static str {
        match self {
            Ending::Settled => "settled",
            Ending::Failed => "failed",
        }
    }
}

/// The kinds whose objects are counted by name, each until a while after its deletion.
const NAMED: [&str; 4] = ["rollouts", "analysisruns", "experiments", "gitsources"];

/// A request to the API server, as it is counted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    /// The plural of the resource.
    pub kind: String,
    /// The namespace; empty for all.
    pub namespace: String,
    /// The object; `N/A` where there are too many to count each.
    pub name: String,
    /// `Get`, `List`, `Watch`, `Create`, `Patch`, `Delete`
    pub verb: &'static str,
    /// What the server answered; 0 if it did not.
    pub code: u16,
}

impl Request {
    /// A request by its method and path.
    pub fn of(method: &str, path: &str, code: u16) -> Request {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        // /api/v1/… or /apis/GROUP/VERSION/…
        let rest = match parts.as_slice() {
            ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
            _ => &[],
        };
        let (namespace, kind, name) = match rest {
            ["namespaces", namespace, kind, name, ..] => (*namespace, *kind, *name),
            ["namespaces", namespace, kind] => (*namespace, *kind, ""),
            [kind, name, ..] => ("", *kind, *name),
            [kind] => ("", *kind, ""),
            [] => ("Unknown", "Unknown", "Unknown"),
        };
        let verb = match method {
            "GET" if query.split('&').any(|pair| pair == "watch=true") => "Watch",
            "GET" if name.is_empty() => "List",
            "GET" => "Get",
            "POST" => "Create",
            "PUT" => "Update",
            "PATCH" => "Patch",
            "DELETE" => "Delete",
            _ => "Unknown",
        };
        // Of all others there may be any number, and their names are for their owners: Secrets are among them.
        let is_named = !name.is_empty() && NAMED.contains(&kind);
        Request {
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: if is_named || rest.is_empty() { name.to_owned() } else { "N/A".to_owned() },
            verb,
            code,
        }
    }

    fn is_write(&self) -> bool {
        ["Create", "Update", "Patch", "Delete"].contains(&self.verb) && (200..300).contains(&self.code)
    }
}

/// What is so at the moment the page is made.
#[derive(Debug, Clone, Default)]
pub struct Gauges {
    /// How many keys are due.
    pub queued: usize,
    /// How many are being worked on.
    pub running: usize,
    /// How many wait until they see what they wrote.
    pub fenced: usize,
    /// How many objects are known, by the plural of their resource.
    pub objects: Vec<(String, usize)>,
    /// The version of the program.
    pub version: &'static str,
    /// The architecture it was built for.
    pub architecture: &'static str,
}

/// The objects that gauges are read off.
#[derive(Debug, Clone, Default)]
pub struct Objects<'a> {
    /// Rollouts.
    pub rollouts: Vec<&'a Value>,
    /// AnalysisRuns.
    pub runs: Vec<&'a Value>,
    /// Experiments.
    pub experiments: Vec<&'a Value>,
    /// Analysis templates, as far as they are known.
    pub templates: Vec<&'a Value>,
}

/// What was counted.
#[derive(Debug, Default)]
pub struct Metrics {
    passes: BTreeMap<Place, Histogram>,
    errors: BTreeMap<Place, u64>,
    run_passes: BTreeMap<Place, Histogram>,
    run_errors: BTreeMap<Place, u64>,
    experiment_passes: BTreeMap<Place, Histogram>,
    experiment_errors: BTreeMap<Place, u64>,
    events: BTreeMap<(Place, &'static str, &'static str), u64>,
    attempts: BTreeMap<String, [Histogram; 3]>,
    requests: BTreeMap<Request, u64>,
    endings: BTreeMap<(Machine, Ending), u64>,
    refusals: BTreeMap<Machine, u64>,
    decisions: Histogram,
    fence_waits: BTreeMap<Machine, u64>,
    watch_restarts: BTreeMap<String, u64>,
    sources: BTreeMap<Place, Source>,
    panics: BTreeMap<Machine, u64>,
    set_aside: BTreeSet<Key>,
    /// The deleted ones, by the time at which they are forgotten.
    leaving: VecDeque<(Timestamp, &'static str, Place)>,
}

impl Metrics {
    /// A pass has ended after so long.
    pub fn passed(&mut self, key: &Key, seconds: f64, ending: Ending) {
        *self.endings.entry((key.machine, ending)).or_default() += 1;
        let (kind, passes, errors) = match key.machine {
            Machine::Rollout => ("rollouts", &mut self.passes, &mut self.errors),
            Machine::Analysis => ("analysisruns", &mut self.run_passes, &mut self.run_errors),
            Machine::Experiment => ("experiments", &mut self.experiment_passes, &mut self.experiment_errors),
            Machine::Sync | Machine::Service | Machine::Subsets => return,
        };
        self.leaving.retain(|(_, leaving, place)| *leaving != kind || *place != key.place);
        passes.entry(key.place.clone()).or_default().observe(RECONCILE, seconds);
        if ending == Ending::Failed {
            *errors.entry(key.place.clone()).or_default() += 1;
        }
    }

    /// A decision took so long.
    pub fn decided(&mut self, seconds: f64) {
        self.decisions.observe(DECISION, seconds);
    }

    /// A verdict would have broken a rule.
    pub fn refused(&mut self, machine: Machine) {
        *self.refusals.entry(machine).or_default() += 1;
    }

    /// A pass ended in a panic, and its object was set aside.
    pub fn panicked(&mut self, key: &Key) {
        *self.panics.entry(key.machine).or_default() += 1;
        self.set_aside.insert(key.clone());
    }

    /// An object that was set aside is not any more.
    pub fn released(&mut self, key: &Key) {
        self.set_aside.remove(key);
    }

    /// A pass was due before what the last one wrote was seen.
    pub fn fenced(&mut self, machine: Machine) {
        *self.fence_waits.entry(machine).or_default() += 1;
    }

    /// A watch had to begin anew.
    pub fn watched_anew(&mut self, plural: &str) {
        *self.watch_restarts.entry(plural.to_owned()).or_default() += 1;
    }

    /// A pass of a GitSource has ended with this status.
    pub fn synced(&mut self, place: &Place, old: &GitSourceStatus, new: &GitSourceStatus) {
        self.leaving.retain(|(_, kind, leaving)| *kind != "gitsources" || leaving != place);
        self.sources.entry(place.clone()).or_default().recorded(old, new);
    }

    /// The host of a GitSource answered to a commit status.
    pub fn reported(&mut self, place: &Place, outcome: &Outcome) {
        if let Some(source) = self.sources.get_mut(place) {
            source.reported(outcome);
        }
    }

    /// Something was announced about a Rollout.
    pub fn announced(&mut self, rollout: Place, r#type: &'static str, reason: &'static str) {
        *self.events.entry((rollout, r#type, reason)).or_default() += 1;
    }

    /// The server was asked.
    pub fn asked(&mut self, request: Request) {
        *self.requests.entry(request).or_default() += 1;
    }

    /// Status was written: an attempt that ended with it is counted.
    pub fn recorded(&mut self, old: &RolloutStatus, new: &RolloutStatus, now: Timestamp) {
        let Some(attempt) = attempt::ended(old.duration.as_ref(), new.duration.as_ref(), now) else { return };
        let [total, progression, manual] = self.attempts.entry(attempt.status).or_default();
        total.observe(TOTAL, attempt.total);
        progression.observe(PROGRESSION, attempt.total - attempt.waited);
        manual.observe(MANUAL, attempt.waited);
    }

    /// An object is gone; its counters follow later.
    pub fn forget(&mut self, plural: &str, place: &Place, now: Timestamp) {
        self.sweep(now);
        let Some(kind) = NAMED.into_iter().find(|kind| *kind == plural) else { return };
        let machine = match kind {
            "rollouts" => Machine::Rollout,
            "analysisruns" => Machine::Analysis,
            "experiments" => Machine::Experiment,
            _ => Machine::Sync,
        };
        self.set_aside.remove(&Key { machine, place: place.clone() });
        let end = now.saturating_add(FAREWELL).unwrap_or(Timestamp::MAX);
        self.leaving.push_back((end, kind, place.clone()));
    }

    fn sweep(&mut self, now: Timestamp) {
        while let Some((end, kind, place)) = self.leaving.front().cloned()
            && end <= now
        {
            self.leaving.pop_front();
            if kind == "rollouts" {
                self.passes.remove(&place);
                self.errors.remove(&place);
                self.events.retain(|(of, _, _), _| *of != place);
            }
            if kind == "gitsources" {
                self.sources.remove(&place);
            }
            if kind == "analysisruns" {
                self.run_passes.remove(&place);
                self.run_errors.remove(&place);
            }
            if kind == "experiments" {
                self.experiment_passes.remove(&place);
                self.experiment_errors.remove(&place);
            }
            self.requests.retain(|request, _| {
                request.kind != kind
                    || request.namespace != place.namespace.as_str()
                    || request.name != place.name.as_str()
            });
        }
    }

    /// The page, as of now.
    pub fn page(&mut self, objects: &Objects<'_>, gauges: &Gauges, now: Timestamp) -> String {
        self.sweep(now);
        let mut page = Page::default();
        rollouts::gauges(objects.rollouts.iter().copied(), &mut page);
        analyses::runs(objects.runs.iter().copied(), &mut page);
        analyses::templates(objects.templates.iter().copied(), &mut page);
        analyses::experiments(objects.experiments.iter().copied(), &mut page);
        self.argo(gauges, &mut page);
        self.own(gauges, &mut page);
        sources::families(&self.sources, now, &mut page);
        page.text()
    }

    /// What Argo Rollouts counts, too.
    fn argo(&self, gauges: &Gauges, page: &mut Page) {
        let of = |place: &Place| vec![("namespace", place.namespace.to_string()), ("name", place.name.to_string())];
        let family = Family::new("rollout_reconcile", "Rollout reconciliation performance.", Kind::Histogram);
        page.histograms(family, RECONCILE, self.passes.iter().map(|(place, histogram)| (of(place), histogram)));
        let family = Family::new("rollout_reconcile_error", "Error occurring during the rollout", Kind::Counter);
        page.samples(family, self.errors.iter().map(|(place, count)| (of(place), *count as f64)));
        let family = Family::new("analysis_run_reconcile", "Analysis Run reconciliation performance.", Kind::Histogram);
        page.histograms(family, RECONCILE, self.run_passes.iter().map(|(place, histogram)| (of(place), histogram)));
        let family =
            Family::new("analysis_run_reconcile_error", "Error occurring during the analysis run", Kind::Counter);
        page.samples(family, self.run_errors.iter().map(|(place, count)| (of(place), *count as f64)));
        let family = Family::new("experiment_reconcile", "Experiments reconciliation performance.", Kind::Histogram);
        let passes = self.experiment_passes.iter().map(|(place, histogram)| (of(place), histogram));
        page.histograms(family, RECONCILE, passes);
        let family = Family::new("experiment_reconcile_error", "Error occurring during the experiment", Kind::Counter);
        page.samples(family, self.experiment_errors.iter().map(|(place, count)| (of(place), *count as f64)));
        let family = Family::new("rollout_events_total", "Count of rollout events", Kind::Counter);
        page.samples(
            family,
            self.events.iter().map(|((place, r#type, reason), count)| {
                let mut labels = of(place);
                labels.extend([("type", (*r#type).to_owned()), ("reason", (*reason).to_owned())]);
                (labels, *count as f64)
            }),
        );
        let durations = [
            (
                "rollout_duration_seconds",
                "Total wall-clock time for a rollout from start to completion/abort/supersede",
                TOTAL,
            ),
            (
                "rollout_progression_duration_seconds",
                "Active progression time for a rollout (excluding manual pause time)",
                PROGRESSION,
            ),
            (
                "rollout_manual_pause_duration_seconds",
                "Time spent in manual pause waiting for human intervention",
                MANUAL,
            ),
        ];
        for (number, (name, help, bounds)) in durations.into_iter().enumerate() {
            let labelled = self.attempts.iter().map(|(status, all)| (vec![("status", status.clone())], &all[number]));
            page.histograms(Family::new(name, help, Kind::Histogram), bounds, labelled);
        }
        let family = Family::new(
            "controller_clientset_k8s_request_total",
            "Number of kubernetes requests executed during application reconciliation.",
            Kind::Counter,
        );
        page.samples(
            family,
            self.requests.iter().map(|(request, count)| {
                let labels = vec![
                    ("kind", request.kind.clone()),
                    ("namespace", request.namespace.clone()),
                    ("name", request.name.clone()),
                    ("verb", request.verb.to_owned()),
                    ("status_code", request.code.to_string()),
                ];
                (labels, *count as f64)
            }),
        );
        let version = || ("version", format!("v{}", gauges.version));
        let family = Family::new("argo_rollouts_controller_info", "Running Argo-rollouts version", Kind::Gauge);
        page.samples(family, [(vec![version()], 1.0)]);
        let help = "A metric with a constant '1' value labeled by version from which Argo-Rollouts was built.";
        let built = vec![
            version(),
            ("goversion", String::new()),
            ("goarch", gauges.architecture.to_owned()),
            ("commit", String::new()),
        ];
        page.samples(Family::new("build_info", help, Kind::Gauge), [(built, 1.0)]);
        let family = Family::new("workqueue_depth", "Current depth of workqueue", Kind::Gauge);
        page.samples(family, [(vec![("name", "Rollouts".to_owned())], gauges.queued as f64)]);
    }

    /// What only we count.
    fn own(&self, gauges: &Gauges, page: &mut Page) {
        let of = |machine: Machine| vec![("machine", machine.name().to_owned())];
        let one = |count: usize| [(Vec::new(), count as f64)];
        let (gauge, counter) = (Kind::Gauge, Kind::Counter);
        let family = |name, help, kind| Family::new(name, help, kind);
        page.samples(family("tidegate_queue_depth", "Objects that are due for a pass.", gauge), one(gauges.queued));
        page.samples(family("tidegate_passes_running", "Passes that are under way.", gauge), one(gauges.running));
        page.samples(
            family("tidegate_fenced", "Objects that wait until they see what their last pass wrote.", gauge),
            one(gauges.fenced),
        );
        page.samples(
            family("tidegate_passes_total", "Passes that have ended, by how.", counter),
            self.endings.iter().map(|((machine, ending), count)| {
                let mut labels = of(*machine);
                labels.push(("outcome", ending.as_str().to_owned()));
                (labels, *count as f64)
            }),
        );
        let refused =
            family("tidegate_refused_total", "Verdicts that would have broken a rule and were refused.", counter);
        let refusals = |machine| self.refusals.get(&machine).copied().unwrap_or_default() as f64;
        page.samples(refused, [Machine::Rollout, Machine::Sync].map(|machine| (of(machine), refusals(machine))));
        let machines = [Machine::Rollout, Machine::Analysis, Machine::Experiment, Machine::Sync];
        let panics = family("tidegate_panics_total", "Passes that ended in a panic.", counter);
        let count = |machine| self.panics.get(&machine).copied().unwrap_or_default() as f64;
        page.samples(panics, machines.map(|machine| (of(machine), count(machine))));
        let help = "Objects that are set aside because a pass about them ended in a panic.";
        let held = |machine| self.set_aside.iter().filter(|key| key.machine == machine).count() as f64;
        page.samples(family("tidegate_quarantined", help, gauge), machines.map(|machine| (of(machine), held(machine))));
        let waits =
            family("tidegate_fence_waits_total", "Times a pass was due before its last writes were seen.", counter);
        page.samples(waits, self.fence_waits.iter().map(|(machine, count)| (of(*machine), *count as f64)));
        let decisions =
            family("tidegate_decision_seconds", "How long a decision takes, without any I/O.", Kind::Histogram);
        page.histograms(decisions, DECISION, [(of(Machine::Rollout), &self.decisions)]);
        let mut writes: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for (request, count) in self.requests.iter().filter(|(request, _)| request.is_write()) {
            *writes.entry((request.kind.as_str(), request.verb)).or_default() += count;
        }
        page.samples(
            family("tidegate_writes_total", "Writes that the API server took.", counter),
            writes.into_iter().map(|((kind, verb), count)| {
                (vec![("kind", kind.to_owned()), ("verb", verb.to_lowercase())], count as f64)
            }),
        );
        page.samples(
            family("tidegate_watch_restarts_total", "Watches that had to begin anew.", counter),
            self.watch_restarts.iter().map(|(kind, count)| (vec![("kind", kind.clone())], *count as f64)),
        );
        page.samples(
            family("tidegate_cache_objects", "Objects that are known.", gauge),
            gauges.objects.iter().map(|(kind, count)| (vec![("kind", kind.clone())], *count as f64)),
        );
    }
}

#[cfg(test)]
mod tests;
