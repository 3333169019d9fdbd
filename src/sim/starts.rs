//! What a change starts: each Rollout that it concerns, put into the state it is in, given the change, and asked.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Instant,
};

use jiff::{SignedDuration, Timestamp};

use super::{
    forecast::{Model, START},
    plan::Sets,
};
use crate::{
    api::{
        self, AnalysisTemplateRef, Rollout,
        constants::{self, label},
    },
    engine::{key::Place, observe},
    kubernetes::{
        clock::rfc3339,
        facts,
        selector::Labels,
        value::{Text, Value},
    },
    plan::{Change, RolloutPlan, Starts, What, forecast::Outcome, kinds, recorder::Expects},
    rollout::{
        Seen, View,
        start::{Start, start, under_way},
        templates::{self, Scope},
    },
    route::{self, Apis},
    sync::{
        expressions::Expressions,
        id::{Id, Sort, cut},
        policy::Policy,
        set::Desired,
    },
    value,
};

/// So many Rollouts are run; a commit that moves more is looked at Rollout by Rollout by nobody.
const FORECASTS: usize = 100;
/// So many pods of a Rollout are played; each costs time and memory in every step.
const PODS: i64 = 5000;

/// Where a Rollout starts from.
#[derive(Debug, Clone, Default)]
pub enum Origin {
    /// What the old side says, settled.
    #[default]
    Git,
    /// What was observed then: the Rollout, and what belongs to it.
    Observed(Timestamp, Vec<Value>),
}

impl Origin {
    /// What a recorded decision saw.
    pub fn recorded(seen: Seen) -> Origin {
        let one = [Some(seen.rollout), seen.workload].into_iter().flatten();
        let routes = seen.routes.into_iter().map(|routed| routed.object);
        let all = one.chain(seen.sets).chain(seen.services).chain(seen.templates).chain(routes);
        let all = all.chain(seen.runs).chain(seen.experiments);
        Origin::Observed(seen.now, all.collect())
    }
}

/// The objects of a set, by name.
type Index<'s> = HashMap<&'s Id, &'s Desired>;

/// What a change starts, Rollout by Rollout, those that move first.
pub fn all(
    changes: &[Change],
    sets: &Sets,
    origin: &dyn Fn(&Id) -> Origin,
    deadline: Option<Instant>,
) -> Vec<RolloutPlan> {
    let (old, new): (Index<'_>, Index<'_>) = (index(&sets.old.objects), index(&sets.new.objects));
    let changed: HashMap<&Id, &Change> = changes.iter().map(|change| (&change.id, change)).collect();
    let mut plans = Vec::new();
    for change in changes.iter().filter(|change| is_rollout(&change.id) && matches!(change.what, What::Delete)) {
        plans.push(RolloutPlan {
            id: change.id.clone(),
            file: change.file.clone(),
            line: change.line,
            starts: Starts::Removed,
            reason: "it is no longer in git; its ReplicaSets and pods go with it".to_owned(),
            supersedes: None,
            strategy: "none",
            forecast: None,
        });
    }
    let mut runs = 0;
    for desired in sets.new.objects.iter().filter(|desired| is_rollout(&desired.id)) {
        let concerns = concerns(desired, &new, &changed);
        if concerns.is_empty() {
            continue;
        }
        runs += 1;
        let case = Case { desired, old: &old, new: &new, concerns, origin: origin(&desired.id), deadline };
        plans.push(case.plan(runs <= FORECASTS));
    }
    plans.sort_by_key(|plan| (!plan.starts.moves(), plan.id.clone()));
    plans
}

fn index(objects: &[Desired]) -> Index<'_> {
    objects.iter().map(|desired| (&desired.id, desired)).collect()
}

fn is_rollout(id: &Id) -> bool {
    id.is(constants::GROUP, constants::kind::ROLLOUT)
}

/// A change that concerns a Rollout.
#[derive(Debug, Clone, Copy)]
enum Concern<'c> {
    /// It itself.
    Itself(&'c Change),
    /// What its pods are made from.
    Workload(&'c Change),
    /// What its pods read.
    Read(&'c Change),
    /// What it names: Services, routes, templates.
    Named(&'c Change),
    /// What scales it.
    Scaler(&'c Change),
}

fn concerns<'c>(desired: &Desired, new: &Index<'_>, changed: &HashMap<&Id, &'c Change>) -> Vec<Concern<'c>> {
    let mut found: Vec<Concern<'c>> = changed.get(&desired.id).copied().map(Concern::Itself).into_iter().collect();
    // Nearly every Rollout of a large set is concerned by nothing: the cheap questions come first.
    let others: Vec<&&Id> =
        changed.keys().filter(|id| id.namespace == desired.id.namespace || id.namespace.is_empty()).collect();
    if others.iter().all(|id| **id == &desired.id) {
        return found;
    }
    let rollout: Rollout = api::read(&desired.object).object;
    for id in named(&rollout, desired, new, &HashMap::new()) {
        let Some(change) = changed.get(&id).copied() else { continue };
        let is_workload = rollout
            .spec
            .workload_ref
            .as_ref()
            .is_some_and(|workload| workload.kind == id.kind.as_str() && workload.name == id.name.as_str());
        found.push(if is_workload { Concern::Workload(change) } else { Concern::Named(change) });
    }
    let spec = pod_spec(&rollout, desired, new);
    for id in spec.map(|spec| read_by(spec, &desired.id.namespace)).unwrap_or_default() {
        found.extend(changed.get(&id).copied().map(Concern::Read));
    }
    for (id, change) in
        changed.iter().filter(|(id, _)| id.group == "autoscaling" && id.namespace == desired.id.namespace)
    {
        if new.get(id).is_some_and(|scaler| scales(scaler, &desired.id)) {
            found.push(Concern::Scaler(change));
        }
    }
    found
}

fn scales(scaler: &Desired, rollout: &Id) -> bool {
    let target = |key: &str| scaler.object.str_at(&["spec", "scaleTargetRef", key]);
    target("kind") == Some(constants::kind::ROLLOUT) && target("name") == Some(rollout.name.as_str())
}

/// The pods of a Rollout, wherever they are described.
fn pod_spec<'s>(rollout: &Rollout, desired: &'s Desired, set: &Index<'s>) -> Option<&'s Value> {
    pod_template(rollout, desired, set)?.at(&["spec"])
}

/// The same with their metadata.
pub(super) fn pod_template<'s>(rollout: &Rollout, desired: &'s Desired, set: &Index<'s>) -> Option<&'s Value> {
    match &rollout.spec.workload_ref {
        None => desired.object.at(&["spec", "template"]),
        Some(workload) => {
            let group = workload.api_version.split_once('/').map_or("", |(group, _)| group);
            let id = Id::new(group, &workload.kind, &desired.id.namespace, &workload.name);
            let found = set.get(&id)?;
            found.object.at(&["spec", "template"]).or_else(|| found.object.at(&["template"]))
        }
    }
}

/// The ConfigMaps and Secrets that pods read.
fn read_by(spec: &Value, namespace: &str) -> BTreeSet<Id> {
    let mut found = BTreeSet::new();
    below(spec, namespace, &mut found);
    found
}

fn below(value: &Value, namespace: &str, found: &mut BTreeSet<Id>) {
    match value {
        Value::Map(map) => {
            for (key, value) in map.iter() {
                let (kind, name) = match key.as_str() {
                    "configMap" | "configMapRef" | "configMapKeyRef" => ("ConfigMap", value.str_at(&["name"])),
                    "secret" => ("Secret", value.str_at(&["secretName"]).or_else(|| value.str_at(&["name"]))),
                    "secretRef" | "secretKeyRef" => ("Secret", value.str_at(&["name"])),
                    _ => ("", None),
                };
                found.extend(name.map(|name| Id::new("", kind, namespace, name)));
                below(value, namespace, found);
            }
        }
        Value::List(items) => items.iter().for_each(|item| below(item, namespace, found)),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => {}
    }
}

/// The objects that a Rollout names: Services, its workload, routes, and templates of analyses.
fn named(rollout: &Rollout, desired: &Desired, set: &Index<'_>, live: &HashMap<Id, &Value>) -> Vec<Id> {
    let mut rollout = rollout.clone();
    rollout.metadata.namespace = desired.id.namespace.to_string();
    let mut ids: Vec<Id> = observe::referred(&rollout, &Apis::default())
        .into_iter()
        .map(|key| {
            let kind = kind_of(&key.resource.plural);
            Id { group: key.resource.group, kind: kind.into(), namespace: key.place.namespace, name: key.place.name }
        })
        .collect();
    ids.extend(templates_of(&rollout, desired, set, live));
    ids
}

/// The templates that a Rollout names, directly or through others, whether they are there or not.
fn templates_of(rollout: &Rollout, desired: &Desired, set: &Index<'_>, live: &HashMap<Id, &Value>) -> Vec<Id> {
    let met = std::cell::RefCell::new(Vec::new());
    let look_up = |scope: Scope, name: &str| {
        let namespace = match scope {
            Scope::Namespace => desired.id.namespace.as_str(),
            Scope::Cluster => "",
        };
        let id = Id::new(constants::GROUP, scope.kind(), namespace, name);
        let found = set.get(&id).map(|found| &found.object).or_else(|| live.get(&id).copied()).cloned();
        met.borrow_mut().push(id);
        found
    };
    templates::reach(rollout, look_up);
    templates::reach_from(compared(rollout), look_up);
    met.into_inner()
}

/// The templates that the Experiments of a Rollout's steps name.
fn compared(rollout: &Rollout) -> Vec<AnalysisTemplateRef> {
    let steps = rollout.spec.strategy.canary.iter().flat_map(|canary| &canary.steps);
    let analyses = steps.filter_map(|step| step.experiment.as_ref()).flat_map(|experiment| &experiment.analyses);
    let named = analyses.map(|analysis| AnalysisTemplateRef {
        template_name: analysis.template_name.clone(),
        cluster_scope: analysis.cluster_scope,
    });
    named.collect()
}

fn kind_of(plural: &str) -> &'static str {
    match plural {
        "services" => "Service",
        "deployments" => "Deployment",
        "replicasets" => "ReplicaSet",
        "podtemplates" => "PodTemplate",
        plural => {
            let mut kinds = route::kinds().into_iter();
            let found = kinds.find(|kind| kind.plural(&Apis::default()) == plural);
            found.map_or("", |kind| kind.word())
        }
    }
}

/// One Rollout, and all that it takes to run it.
struct Case<'c> {
    desired: &'c Desired,
    old: &'c Index<'c>,
    new: &'c Index<'c>,
    concerns: Vec<Concern<'c>>,
    origin: Origin,
    deadline: Option<Instant>,
}

impl Case<'_> {
    fn plan(&self, run: bool) -> RolloutPlan {
        let Desired { id, file, line, .. } = self.desired;
        let rollout: Rollout = api::read(&self.desired.object).object;
        let strategy = match (&rollout.spec.strategy.blue_green, &rollout.spec.strategy.canary) {
            (Some(_), _) => "blue-green",
            (None, Some(_)) => "canary",
            (None, None) => "none",
        };
        let mut plan = RolloutPlan {
            id: id.clone(),
            file: file.clone(),
            line: *line,
            starts: Starts::Unknown,
            reason: String::new(),
            supersedes: None,
            strategy,
            forecast: None,
        };
        if !run {
            plan.reason = format!("only the first {FORECASTS} Rollouts of a plan are run");
            return plan;
        }
        let pods = self.pods();
        if pods > PODS {
            plan.reason = format!("it is too large to forecast: {pods} pods, and forecasts are made of up to {PODS}");
            return plan;
        }
        let late = |plan: &mut RolloutPlan| {
            let comma = if plan.reason.is_empty() { "" } else { "; " };
            plan.reason += &format!("{comma}how it would go is not known: the time for forecasts is over");
        };
        let place = Place { namespace: id.namespace.clone(), name: id.name.clone() };
        let before = self.before(&place);
        if before.is_late() {
            late(&mut plan);
            return plan;
        }
        let mut model = before.clone();
        self.change(&mut model);
        if let Some((_, why)) = model.refused.iter().find(|(refused, _)| refused == id) {
            plan.starts = Starts::Invalid;
            plan.reason = format!("the server would refuse it: {why}");
            return plan;
        }
        let Some(view) = model.view(&place) else {
            plan.reason = "it cannot be put into a cluster".to_owned();
            return plan;
        };
        let started = start(&view);
        plan.supersedes = under_way(&view).filter(|_| matches!(started, Start::New | Start::Rollback { .. }));
        (plan.starts, plan.reason) = self.told(&started, &view);
        if let Some((step, steps)) = plan.supersedes {
            plan.reason += &format!("; the canary that is at step {step}/{steps} is given up for it");
        }
        if plan.starts.moves() || matches!(started, Start::Steps { restarts: true }) {
            let expects = match started {
                Start::Rollback { .. } if view.new == view.stable => Expects::Return,
                Start::First | Start::Scale { .. } | Start::Restart => Expects::Size,
                Start::New | Start::Rollback { .. } | Start::Steps { .. } => Expects::Version,
                Start::Nothing | Start::Held | Start::Invalid(_) | Start::Unsupported(_) | Start::Leaving => {
                    Expects::Size
                }
            };
            let mut forecast = model.run(&place, before.recorder(&place, expects));
            if before.is_late() {
                late(&mut plan);
                return plan;
            }
            if forecast.outcome == Outcome::Unfinished && forecast.message.is_empty() {
                forecast.message = match plan.starts {
                    Starts::Restart => "pods that are to be replaced are not allowed to go".to_owned(),
                    _ => "it does not get on".to_owned(),
                };
            }
            plan.forecast = Some(forecast);
        } else if self.concerns.iter().any(|concern| matches!(concern, Concern::Scaler(_))) && started == Start::Nothing
        {
            let forecast = model.run_for(&place, before.recorder(&place, Expects::Size), SignedDuration::from_mins(5));
            if forecast.curve.len() > 1 {
                plan.starts = Starts::Scale;
                plan.forecast = Some(forecast);
            }
        }
        plan
    }

    /// Stand-ins for what the Rollout names and neither the new side nor the cluster has.
    fn stubs(&self) -> Vec<Desired> {
        let objects: &[Value] = match &self.origin {
            Origin::Git => &[],
            Origin::Observed(_, objects) => objects,
        };
        stubs(self.desired, self.new, &objects.iter().map(|object| (Id::of(object), object)).collect())
    }

    /// The most pods of a version that either side wants or the cluster has.
    fn pods(&self) -> i64 {
        let wanted = |desired: &Desired| desired.object.int_at(&["spec", "replicas"]).unwrap_or(1);
        let old = self.old.get(&self.desired.id).map(|old| wanted(old));
        let there = match &self.origin {
            Origin::Git => 0,
            Origin::Observed(_, objects) => objects.iter().map(replicas).fold(0, i64::saturating_add),
        };
        wanted(self.desired).max(old.unwrap_or_default()).max(there)
    }

    /// The cluster as it is before the change.
    fn before(&self, place: &Place) -> Model {
        let relevant = relevant(self.desired, self.new);
        match &self.origin {
            Origin::Observed(now, objects) => {
                let mut model = Model::new(*now).until(self.deadline);
                model.define(relevant.iter().copied());
                for object in objects {
                    model.restore(placed(object));
                    pods_of(object, *now).into_iter().for_each(|pod| model.restore(pod));
                }
                model.begin();
                model.apply(self.stubs().iter());
                model
            }
            Origin::Git => {
                let mut model = Model::new(START).until(self.deadline);
                model.define(relevant.iter().copied());
                if let Some(old) = self.old.get(&self.desired.id) {
                    let own = self::relevant(old, self.old);
                    model.define(own.iter().copied());
                    let stubs = stubs(old, self.old, &HashMap::new());
                    model.apply(stubs.iter().chain(own));
                    model.settle(place);
                }
                model
            }
        }
    }

    /// Gives the change to a cluster.
    fn change(&self, model: &mut Model) {
        let stubs = self.stubs();
        let relevant = relevant(self.desired, self.new);
        model.refused.clear();
        model.apply(stubs.iter().chain(relevant.iter().copied()));
        if let Some(old) = self.old.get(&self.desired.id) {
            let gone = self::relevant(old, self.old).into_iter().filter(|old| !self.new.contains_key(&old.id));
            gone.filter(|old| ["autoscaling", "policy"].contains(&&*old.id.group)).for_each(|old| model.delete(old));
        }
    }

    /// What starts, and why.
    fn told(&self, started: &Start, view: &View) -> (Starts, String) {
        match started {
            Start::First => (Starts::FirstDeployment, "there is no earlier version, so that no step is run".to_owned()),
            Start::New => (Starts::NewRollout, self.template()),
            Start::Rollback { revision, fast } => {
                let window = view.rollout.spec.rollback_window.as_ref().map_or(0, |window| window.revisions);
                let steps = match (fast, window) {
                    (Some(why), _) => format!("steps are left out: {why}"),
                    (None, 0) => "there is no rollbackWindow, so that all steps are run".to_owned(),
                    (None, window) => {
                        format!("it is outside of the rollbackWindow of {window}, so that all steps are run")
                    }
                };
                let reason = format!("the pod template is that of revision {revision}; {steps}");
                (Starts::Rollback { revision: *revision, skips_steps: fast.is_some() }, reason)
            }
            Start::Scale { from, to } => {
                (Starts::Scale, format!("from {from} to {to} replicas; the pod template stays"))
            }
            Start::Restart => (Starts::Restart, "spec.restartAt changes; the pod template stays".to_owned()),
            Start::Steps { restarts: true } => {
                (Starts::Configuration, "the steps change: the canary that is under way begins them anew".to_owned())
            }
            Start::Steps { restarts: false } => {
                (Starts::Configuration, "the steps change; they count from the next rollout on".to_owned())
            }
            Start::Nothing => self.configuration(),
            Start::Held => {
                (Starts::Held, "this pod template was aborted; `tidegate retry` or another template goes on".to_owned())
            }
            Start::Invalid(problem) => (Starts::Invalid, problem.clone()),
            Start::Unsupported(what) => (Starts::Unknown, what.clone()),
            Start::Leaving => (Starts::Removed, "it is being deleted".to_owned()),
        }
    }

    /// How the pod template changes.
    fn template(&self) -> String {
        let workload = self.concerns.iter().find_map(|concern| match concern {
            Concern::Workload(change) => Some(change),
            Concern::Itself(_) | Concern::Read(_) | Concern::Named(_) | Concern::Scaler(_) => None,
        });
        let id = workload.map_or(&self.desired.id, |change| &change.id);
        let of = workload.map(|change| format!(" of {}", change.id)).unwrap_or_default();
        let images = match (self.old.get(id), self.new.get(id)) {
            (Some(old), Some(new)) => images(&old.object, &new.object),
            _ => Vec::new(),
        };
        if !images.is_empty() {
            return format!("the pod template{of} changes: {}", images.join(", "));
        }
        let fields = self.concerns.iter().find_map(|concern| match concern {
            Concern::Itself(change) | Concern::Workload(change) if change.id == *id => Some(&change.fields),
            Concern::Itself(_) | Concern::Workload(_) | Concern::Read(_) | Concern::Named(_) | Concern::Scaler(_) => {
                None
            }
        });
        let fields: Vec<String> =
            fields.into_iter().flatten().filter(|field| field.contains(".template")).cloned().collect();
        match fields.as_slice() {
            [] => format!("the pod template{of} changes"),
            fields => format!("the pod template{of} changes: {}", cut(&fields.join(", "), 200)),
        }
    }

    /// Why nothing starts.
    fn configuration(&self) -> (Starts, String) {
        let mut reasons = Vec::new();
        for concern in &self.concerns {
            reasons.push(match concern {
                Concern::Itself(change) if change.fields.is_empty() => "nothing that pods are made of changes".to_owned(),
                Concern::Itself(change) => {
                    format!("nothing that pods are made of changes: {}", cut(&change.fields.join(", "), 200))
                }
                Concern::Workload(change) => format!("{} changes, but not its pod template", change.id),
                Concern::Read(change) => format!(
                    "{} changes, which its pods read: no rollout starts, and pods that run keep what they read at their start \
                     (a mounted file follows by itself)",
                    change.id
                ),
                Concern::Named(change) => format!("{} changes, which it names", change.id),
                Concern::Scaler(change) => format!("{} changes, which scales it", change.id),
            });
        }
        (Starts::Configuration, reasons.join("; "))
    }
}

/// The images that change, container by container.
fn images(old: &Value, new: &Value) -> Vec<String> {
    let containers = |object: &Value| -> Vec<(String, String)> {
        let template = object.at(&["spec", "template", "spec"]).or_else(|| object.at(&["template", "spec"]));
        let lists = ["initContainers", "containers"];
        let all = lists.iter().flat_map(|list| template.map(|spec| spec.list_at(&[list])).unwrap_or_default());
        let text = |container: &Value, key: &str| container.str_at(&[key]).unwrap_or_default().to_owned();
        all.map(|container| (text(container, "name"), text(container, "image"))).collect()
    };
    let before = containers(old);
    let image = |name: &str| before.iter().find(|(other, _)| other == name).map(|(_, image)| image.clone());
    let changed = containers(new).into_iter().filter_map(|(name, image_now)| {
        let image_then = image(&name)?;
        (image_then != image_now).then(|| format!("{name} {} → {}", cut(&image_then, 80), cut(&image_now, 80)))
    });
    changed.collect()
}

/// The objects of a set that a Rollout takes to run, with itself.
fn relevant<'s>(desired: &'s Desired, set: &Index<'s>) -> Vec<&'s Desired> {
    let rollout: Rollout = api::read(&desired.object).object;
    let mut ids: BTreeSet<Id> = named(&rollout, desired, set, &HashMap::new()).into_iter().collect();
    ids.insert(desired.id.clone());
    let template = pod_template(&rollout, desired, set);
    let labels = template.and_then(|template| template.at(&["metadata", "labels"])?.as_map());
    for (id, other) in set.iter().filter(|(id, _)| id.namespace == desired.id.namespace) {
        let guards = id.is("policy", "PodDisruptionBudget")
            && other
                .object
                .at(&["spec", "selector"])
                .and_then(|selector| Labels::of(selector).ok())
                .is_some_and(|selector| selector.matches(labels));
        if guards || id.group == "autoscaling" && scales(other, &desired.id) {
            ids.insert(Id::clone(id));
        }
    }
    let mut found: Vec<&Desired> = ids.iter().filter_map(|id| set.get(id).copied()).collect();
    found.sort_by_cached_key(|desired| crate::sync::stage::order(desired.policy.wave, &desired.id));
    found
}

/// Stand-ins for what a Rollout names and the set does not have: most likely it is in the cluster already.
fn stubs(desired: &Desired, set: &Index<'_>, live: &HashMap<Id, &Value>) -> Vec<Desired> {
    let rollout: Rollout = api::read(&desired.object).object;
    let named = named(&rollout, desired, set, live).into_iter();
    let missing = named.filter(|id| !set.contains_key(id) && !live.contains_key(id));
    let labels = rollout.spec.selector.as_ref().and_then(|selector| selector.get("matchLabels")).cloned();
    let stub = |id: Id| {
        let (metadata, selector) = (
            value!({"name": id.name.as_str(), "namespace": id.namespace.as_str()}),
            labels.clone().unwrap_or_else(|| value!({"app": id.name.as_str()})),
        );
        let object = match (id.group.as_str(), id.kind.as_str()) {
            ("", "Service") => value!({"apiVersion": "v1", "kind": "Service", "metadata": metadata,
                "spec": {"selector": selector, "ports": [{"port": 80, "targetPort": 8080, "name": "http"}]}}),
            ("networking.k8s.io", "Ingress") => ingress(&rollout, &id, metadata)?,
            (constants::GROUP, kind) => {
                value!({"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "metadata": metadata,
                "spec": {"metrics": [{"name": "unknown", "provider": {"web": {"url": "http://unknown.invalid"}},
                    "successCondition": "true"}]}})
            }
            _ => return None,
        };
        stand_in(object)
    };
    missing.filter_map(stub).collect()
}

/// An Ingress as its router expects it. The one that a router makes itself is left out.
fn ingress(rollout: &Rollout, id: &Id, metadata: Value) -> Option<Value> {
    let canary = rollout.spec.strategy.canary.as_ref()?;
    let routing = canary.traffic_routing.as_ref()?;
    let is_made = routing.nginx.as_ref().is_some_and(|nginx| {
        let stables = std::iter::once(&nginx.stable_ingress).chain(&nginx.stable_ingresses);
        stables
            .filter(|name| !name.is_empty())
            .any(|stable| crate::model::refers::canary_ingress(&rollout.metadata.name, stable) == id.name.as_str())
    });
    if is_made {
        return None;
    }
    let root = routing.alb.as_ref().map(|alb| alb.root_service.as_str()).filter(|name| !name.is_empty());
    let port = match &routing.alb {
        Some(_) => value!({"name": "use-annotation"}),
        None => value!({"number": 80}),
    };
    let service = root.unwrap_or(&canary.stable_service);
    let path = value!({"path": "/", "pathType": "Prefix", "backend": {"service": {"name": service, "port": port}}});
    Some(value!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata,
        "spec": {"rules": [{"host": "unknown.invalid", "http": {"paths": [path]}}]}}))
}

fn stand_in(object: Value) -> Option<Desired> {
    let (api_version, kind) = (object.str_at(&["apiVersion"])?.to_owned(), object.str_at(&["kind"])?.to_owned());
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let own = || kinds::own().iter().find(|own| own.group == group && own.kind == kind.as_str());
    let kind = facts::kind(group, version, &kind).or_else(own)?;
    let mut object = object;
    if !kind.namespaced {
        object.remove_at(&["metadata", "namespace"]);
    }
    Some(Desired {
        id: Id::of(&object),
        object,
        digest: Text::new(),
        file: Text::new(),
        line: 0,
        patched: Arc::default(),
        blamed: None,
        sort: Arc::new(Sort::of(kind)),
        policy: Policy::default(),
        expressions: Expressions::default(),
    })
}

/// An observed object, without what binds it to its cluster.
fn placed(object: &Value) -> Value {
    let mut object = object.clone();
    // Versions of another cluster would be ahead of all that happens here.
    object.set_at(&["metadata", "resourceVersion"], "1");
    object
}

/// How many pods an observed object has or wants, if it is one that has pods.
fn replicas(object: &Value) -> i64 {
    let is_set = object.str_at(&["kind"]) == Some("ReplicaSet");
    let counts = [["status", "replicas"], ["spec", "replicas"]].map(|path| object.int_at(&path).unwrap_or_default());
    if is_set { counts[0].max(counts[1]) } else { 0 }
}

/// Pods as a ReplicaSet that was observed has them: so many are there, so many of them available.
fn pods_of(set: &Value, now: Timestamp) -> Vec<Value> {
    if set.str_at(&["kind"]) != Some("ReplicaSet") {
        return Vec::new();
    }
    let count = |key: &str| set.int_at(&["status", key]).unwrap_or_default();
    let (all, available) = (count("replicas"), count("availableReplicas"));
    let name = set.str_at(&["metadata", "name"]).unwrap_or_default();
    let created = set.str_at(&["metadata", "creationTimestamp"]).unwrap_or_default();
    let just_now = rfc3339(now.saturating_sub(SignedDuration::ZERO).unwrap_or(now));
    (0..all)
        .map(|number| {
            let since = if number < available { created.to_owned() } else { just_now.to_string() };
            let mut pod = set.at(&["spec", "template"]).cloned().unwrap_or_default();
            pod.set_at(&["apiVersion"], "v1");
            pod.set_at(&["kind"], "Pod");
            let pod_name = format!("{name}-{number}");
            for (key, text) in [
                ("name", pod_name.as_str()),
                ("namespace", set.str_at(&["metadata", "namespace"]).unwrap_or_default()),
                ("uid", &format!("{}-{number}", set.str_at(&["metadata", "uid"]).unwrap_or_default())),
                ("resourceVersion", "1"),
                ("creationTimestamp", &since),
            ] {
                pod.set_at(&["metadata", key], text);
            }
            let hash = set.str_at(&["metadata", "labels", label::POD_TEMPLATE_HASH]).unwrap_or_default();
            pod.set_at(&["metadata", "labels", label::POD_TEMPLATE_HASH], hash);
            let owner = value!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "controller": true,
                "blockOwnerDeletion": true, "uid": set.str_at(&["metadata", "uid"]).unwrap_or_default()});
            pod.set_at(&["metadata", "ownerReferences"], vec![owner]);
            pod.set_at(&["spec", "nodeName"], "fake-0");
            let condition = |kind: &str| value!({"type": kind, "status": "True", "lastTransitionTime": since.as_str()});
            let mut status = value!({"phase": "Running", "startTime": since.as_str()});
            if number < available {
                let kinds = ["PodScheduled", "Initialized", "ContainersReady", "Ready"];
                status.set_at(&["conditions"], Value::list(kinds.map(condition)));
            }
            pod.set_at(&["status"], status);
            pod
        })
        .collect()
}
