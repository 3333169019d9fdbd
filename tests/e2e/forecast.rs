//! What `tidegate plan` forecasts is what then happens, on a cluster whose clock nobody can turn: the same steps, pods and waits
//! in the same order. `tests/plan/truth.rs` compares the times as well, in virtual time.

use std::collections::BTreeMap;

use jiff::Timestamp;
use tidegate::{
    api::{self, Rollout},
    engine::{
        cache::{News, version_of},
        key::Resource,
        resource,
    },
    kubernetes::{object, value::Value},
    manifest,
    model::replica_set::ReplicaSet,
    plan::{
        RolloutPlan, Side,
        forecast::Forecast,
        recorder::{Expects, Recorder, Scene as Moment},
    },
    rollout::intent,
    sim::{
        forecast::approval,
        plan::{Reading, Rules, Sides, make},
    },
    sync::{allow::Allowance, set::Scope},
};

use crate::scene::{PATIENCE, Scene};

const CANARY: &str = "{canary: {maxSurge: 1, maxUnavailable: 0, steps: [{setWeight: 25}, {pause: {duration: 2}}, \
                      {setWeight: 50}, {pause: {}}, {setWeight: 75}, {pause: {duration: 1}}]}}";
const BLUE_GREEN: &str = "{blueGreen: {activeService: web, previewService: web-preview, previewReplicaCount: 1, \
                          autoPromotionEnabled: false, scaleDownDelaySeconds: 2}}";
const ANALYSIS: &str =
    "{canary: {steps: [{setWeight: 50}, {analysis: {templates: [{templateName: check}]}}, {setWeight: 75}]}}";

/// The manifests of a Rollout `web` under a strategy, and what it refers to.
fn manifests(version: &str, replicas: i64, strategy: &str) -> String {
    let service = |name: &str| {
        format!(
            "---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{selector: {{app: web}}, ports: [{{port: 80}}]}}\n"
        )
    };
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {{name: web}}\nspec:\n  replicas: {replicas}\n  \
         selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    \
         spec: {{containers: [{{name: app, image: 'registry.example/web:{version}'}}]}}\n  strategy: {strategy}\n{}{}\
         ---\napiVersion: argoproj.io/v1alpha1\nkind: AnalysisTemplate\nmetadata: {{name: check}}\nspec:\n  metrics:\n  - name: check\n    \
         count: 2\n    interval: 2s\n    provider:\n      job:\n        spec:\n          backoffLimit: 0\n          template: {{spec: \
         {{restartPolicy: Never, containers: [{{name: c, image: busybox, command: [sh, -c, sleep 1]}}]}}}}\n",
        service("web"),
        service("web-preview"),
    )
}

/// What a change from one to the other is forecast to do to the Rollout.
fn forecast(namespace: &str, old: &str, new: &str) -> RolloutPlan {
    let side = |text: &str| Reading::of(Side::default(), vec![manifest::read("web.yaml", text.as_bytes())]);
    let allowance = Allowance { kinds: vec!["*".into()], namespaces: vec!["*".into()] };
    let scope = Scope { namespace: namespace.into(), allowance };
    let rules = Rules { scope, path: String::new(), source: String::new(), spec: None, deadline: None };
    make(&Sides { old: side(old), new: side(new) }, &rules).rollouts.remove(0)
}

/// What is seen of a namespace, one change after the other in the order in which the server made them.
#[derive(Default)]
struct History {
    rollout: Value,
    sets: BTreeMap<String, Value>,
    runs: BTreeMap<String, Value>,
}

impl History {
    fn see(&mut self, resource: &Resource, object: &Value, is_gone: bool) {
        let name = object.str_at(&["metadata", "name"]).unwrap_or_default().to_owned();
        let object = without_leaving_pods(object);
        let objects = if *resource == resource::rollouts() {
            self.rollout = object;
            return;
        } else if *resource == resource::sets() {
            &mut self.sets
        } else {
            &mut self.runs
        };
        if is_gone {
            objects.remove(&name)
        } else {
            objects.insert(name, object)
        };
    }

    /// What the Rollout owns, as lists.
    fn owned(&self) -> (Vec<Value>, Vec<Value>) {
        let uid = self.rollout.str_at(&["metadata", "uid"]).unwrap_or_default();
        let is_owned = |object: &&Value| object::controller(object).as_deref() == Some(uid);
        let list = |all: &BTreeMap<String, Value>| all.values().filter(is_owned).cloned().collect();
        (list(&self.sets), list(&self.runs))
    }
}

/// A ReplicaSet without the pods that it was asked to delete: how long its controller takes to report them gone is a matter of
/// time, not of sequence.
fn without_leaving_pods(object: &Value) -> Value {
    let mut object = object.clone();
    if object.str_at(&["kind"]) == Some("ReplicaSet") {
        let asked = object.int_at(&["spec", "replicas"]).unwrap_or(1);
        for field in ["replicas", "readyReplicas", "availableReplicas"] {
            if object.int_at(&["status", field]).is_some_and(|count| count > asked) {
                object.set_at(&["status", field], Value::from(asked));
            }
        }
    }
    object
}

/// Applies a change and records it until the Rollout is where it was to go, giving each approval that is waited for.
async fn really(scene: &Scene, plan: &RolloutPlan, new: &[Value]) -> Forecast {
    let resources = [resource::rollouts(), resource::sets(), resource::runs()];
    let mut follower = scene.follow(&resources);
    let mut history = History::default();
    let mut listed = 0;
    while listed < resources.len() {
        let (resource, News::List(objects, _)) = follower.next().await.unwrap() else { continue };
        objects.iter().for_each(|object| history.see(&resource, object, false));
        listed += 1;
    }
    let before = history.rollout.at(&["metadata", "generation"]).cloned();
    let (sets, runs) = history.owned();
    let start = Timestamp::now();
    let moment = Moment { now: start, rollout: &history.rollout, sets: &sets, compared: &[], runs: &runs };
    let expects = match plan.starts {
        tidegate::plan::Starts::NewRollout | tidegate::plan::Starts::Rollback { .. } => Expects::Version,
        _ => Expects::Size,
    };
    let mut recorder = Recorder::new(start, expects, Some(moment));
    for object in new {
        scene.apply(object).await;
    }
    // What happened, and the approval that was given in answer to it.
    let mut events: Vec<(u64, Timestamp, Resource, Value, bool, Option<String>)> = Vec::new();
    let mut now = History { rollout: history.rollout.clone(), sets: history.sets.clone(), runs: history.runs.clone() };
    let mut approved = String::new();
    let over = async {
        while let Some((resource, news)) = follower.next().await {
            let (object, is_gone) = match news {
                News::Object(object) => (object, false),
                News::Gone(object) => (object, true),
                News::List(..) | News::Unserved => continue,
            };
            now.see(&resource, &object, is_gone);
            let rollout: Rollout = api::read(&now.rollout).object;
            let (sets, _) = now.owned();
            let copies: Vec<ReplicaSet> = sets.iter().map(ReplicaSet::of).collect();
            let pause = now.rollout.at(&["status", "pauseConditions"]).map(Value::to_json).unwrap_or_default();
            let what = approval(&rollout, &copies).filter(|_| pause != approved);
            if what.is_some() {
                approved = pause;
                let promotion = intent::promote(&rollout, intent::Promotion::Next).unwrap();
                scene.set_status("web", promotion.status.unwrap().get("status").unwrap().clone()).await;
            }
            events.push((version_of(&object), Timestamp::now(), resource, object, is_gone, what));
            let phase = now.rollout.str_at(&["status", "phase"]);
            let is_new = now.rollout.at(&["metadata", "generation"]) != before.as_ref()
                && tidegate::model::health::is_generation_observed(&rollout);
            let is_promoted = rollout.status.stable_rs == rollout.status.current_pod_hash;
            let is_sized = rollout.status.available_replicas == rollout.spec.replicas.unwrap_or(1);
            if is_new && phase == Some("Healthy") && is_promoted && is_sized && Recorder::is_tidy(&now.rollout, &sets) {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, over).await.expect("it ends");
    events.sort_by_key(|(number, ..)| *number);
    let begun = |rollout: &Value| rollout.at(&["metadata", "generation"]) != before.as_ref();
    for (_, moment, resource, object, is_gone, what) in &events {
        history.see(resource, object, *is_gone);
        if !begun(&history.rollout) {
            continue;
        }
        let (sets, runs) = history.owned();
        recorder.look(Moment { now: *moment, rollout: &history.rollout, sets: &sets, compared: &[], runs: &runs });
        if let Some(what) = what {
            recorder.approve(*moment, what);
        }
    }
    recorder.finish(events.last().map_or(start, |(_, moment, ..)| *moment), "")
}

/// The sequence of a forecast: everything but times.
fn sequence(forecast: &Forecast) -> Vec<String> {
    let steps = forecast.steps.iter().map(|step| {
        let metrics: Vec<&String> = step.analyses.iter().flat_map(|analysis| &analysis.metrics).collect();
        format!(
            "{}/{} {} weight {} pods {}+{} waits for {} {metrics:?}",
            step.number,
            step.of,
            step.what,
            step.weight,
            step.stable,
            step.canary,
            step.waits_for.as_str()
        )
    });
    let approvals =
        forecast.approvals.iter().map(|approval| format!("approval at {} {}", approval.step, approval.what));
    let end = format!(
        "{} with at most {} pods and at least {:?} available",
        forecast.outcome.as_str(),
        forecast.peak.pods,
        forecast.lowest
    );
    steps.chain(approvals).chain([end]).collect()
}

#[track_caller]
fn same(forecast: &Forecast, real: &Forecast) {
    assert_eq!(sequence(forecast), sequence(real), "forecast on the left, what happened on the right");
}

/// Lets a change happen that was forecast.
async fn as_forecast(name: &str, old: &str, new: &str) {
    let scene = Scene::open(name).await;
    let plan = forecast(name, old, new);
    let objects =
        |text: &str| manifest::read("web.yaml", text.as_bytes()).objects.into_iter().map(|object| object.value);
    for object in objects(old) {
        scene.apply(&object).await;
    }
    let is_settled = |rollout: &Value| {
        let rollout: Rollout = api::read(rollout).object;
        rollout.status.phase == "Healthy" && rollout.status.available_replicas == rollout.spec.replicas.unwrap_or(1)
    };
    scene.until(&resource::rollouts(), "web", "healthy", is_settled).await;
    let new: Vec<Value> = objects(new).collect();
    let real = really(&scene, &plan, &new).await;
    same(plan.forecast.as_ref().expect("a forecast"), &real);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_canary_goes_as_it_was_forecast() {
    as_forecast("forecast-canary", &manifests("1", 4, CANARY), &manifests("2", 4, CANARY)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_of_blue_green_is_where_it_was_forecast() {
    as_forecast("forecast-gate", &manifests("1", 3, BLUE_GREEN), &manifests("2", 3, BLUE_GREEN)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_analysis_takes_the_step_that_was_forecast() {
    as_forecast("forecast-analysis", &manifests("1", 4, ANALYSIS), &manifests("2", 4, ANALYSIS)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_without_steps_is_as_large_as_it_was_forecast() {
    let strategy = "{canary: {maxSurge: 100%, maxUnavailable: 0}}";
    as_forecast("forecast-update", &manifests("1", 3, strategy), &manifests("2", 3, strategy)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_size_starts_no_version_as_it_was_forecast() {
    as_forecast("forecast-size", &manifests("1", 2, CANARY), &manifests("1", 5, CANARY)).await;
}
