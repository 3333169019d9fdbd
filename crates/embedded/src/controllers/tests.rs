//! Stories on the whole world under a virtual clock: each tells what a user would see.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::{Settings, World, ask};
use crate::{
    kubernetes::{object::Object, value::Value},
    store::{
        Config, Store,
        request::{Options, Outcome, PatchType, Request, Verb},
    },
    value,
};

/// A cluster and the world around it.
struct Scene {
    store: Store,
    world: World,
}

fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

impl Scene {
    fn new() -> Scene {
        Scene::seeded(0)
    }

    fn seeded(seed: u64) -> Scene {
        let settings = Settings { seed, jitter: SignedDuration::ZERO, ..Settings::default() };
        Scene { store: Store::new(Config::new(start(), seed)), world: World::new(settings) }
    }

    fn request(&mut self, verb: Verb, resource: &str, name: &str, body: Option<Value>) -> Outcome {
        let (path, subresource) = resource.split_once(':').unwrap_or((resource, ""));
        let (group, plural) = path.split_once('/').unwrap_or(("", path));
        let cluster = matches!(plural, "nodes" | "namespaces" | "customresourcedefinitions");
        let request = Request {
            verb,
            group: group.into(),
            version: if group == "autoscaling" { "v2".into() } else { "v1".into() },
            resource: plural.into(),
            subresource: subresource.into(),
            namespace: if cluster { "".into() } else { "default".into() },
            name: name.into(),
            body,
            agent: "test".into(),
            ..Request::default()
        };
        self.store.apply(request)
    }

    #[track_caller]
    fn create(&mut self, resource: &str, body: Value) -> Arc<Object> {
        self.request(Verb::Create, resource, "", Some(body)).unwrap().object().unwrap().clone()
    }

    #[track_caller]
    fn merge(&mut self, resource: &str, name: &str, patch: Value) {
        self.request(Verb::Patch(PatchType::Merge), resource, name, Some(patch)).unwrap();
    }

    #[track_caller]
    fn delete(&mut self, resource: &str, name: &str, propagation: &str) {
        let (group, plural) = resource.split_once('/').unwrap_or(("", resource));
        let options = Options { propagation_policy: Some(propagation.into()), ..Options::default() };
        let cluster = matches!(plural, "nodes" | "namespaces");
        let request = Request {
            verb: Verb::Delete,
            group: group.into(),
            version: "v1".into(),
            resource: plural.into(),
            namespace: if cluster { "".into() } else { "default".into() },
            name: name.into(),
            options,
            ..Request::default()
        };
        self.store.apply(request).unwrap();
    }

    fn settle(&mut self) {
        self.world.settle(&mut self.store);
    }

    fn pass(&mut self, millis: i64) {
        self.world.advance(&mut self.store, SignedDuration::from_millis(millis));
    }

    fn get(&self, resource: &str, name: &str) -> Option<Value> {
        let (group, plural) = resource.split_once('/').unwrap_or(("", resource));
        let cluster = matches!(plural, "nodes" | "namespaces");
        let namespace = if cluster { "" } else { "default" };
        self.store.get(group, plural, namespace, name).map(|object| object.value.clone())
    }

    fn list(&self, resource: &str) -> Vec<Arc<Object>> {
        let (group, plural) = resource.split_once('/').unwrap_or(("", resource));
        self.store.list(group, plural, "default").cloned().collect()
    }

    /// Pods by `phase ready`, counted and sorted: `2 Running ready`.
    fn pods(&self) -> Vec<String> {
        let mut counts = std::collections::BTreeMap::new();
        for pod in self.list("pods") {
            let ready = if ask::is_ready(&pod.value) { " ready" } else { "" };
            let leaving = if pod.is_terminating() { " leaving" } else { "" };
            *counts.entry(format!("{}{ready}{leaving}", ask::phase(&pod.value))).or_insert(0) += 1;
        }
        counts.into_iter().map(|(what, count)| format!("{count} {what}")).collect()
    }

    #[track_caller]
    fn status(&self, resource: &str, name: &str) -> Value {
        self.get(resource, name).unwrap().get("status").cloned().unwrap_or_default()
    }

    /// Events of an object in order: `reason: message`, with random name endings hidden.
    fn events(&self, name: &str) -> Vec<String> {
        let mut events: Vec<_> = self.list("events");
        events.sort_by_key(|event| event.name());
        let about = |event: &&Arc<Object>| event.value.str_at(&["involvedObject", "name"]) == Some(name);
        events
            .iter()
            .filter(about)
            .map(|event| {
                let text = |field| event.value.str_at(&[field]).unwrap_or_default();
                format!("{}: {}", text("reason"), text("message"))
            })
            .collect()
    }
}

fn containers(image: &str, command: &[&str]) -> serde_json::Value {
    serde_json::json!([{"name": "c", "image": image, "command": command, "imagePullPolicy": "IfNotPresent",
        "terminationMessagePolicy": "File"}])
}

fn pod_spec(image: &str, command: &[&str], restart_policy: &str) -> serde_json::Value {
    serde_json::json!({"containers": containers(image, command), "restartPolicy": restart_policy,
        "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst", "tolerations": [
            {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]})
}

fn replica_set(name: &str, replicas: i64) -> Value {
    value!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}}, "spec": pod_spec("app:v1", &[], "Always")}},
    })
}

fn image(image: &str) -> Value {
    value!({"spec": {"template": {"spec": {"containers": containers(image, &[])}}}})
}

fn with(mut object: Value, path: &[&str], value: Value) -> Value {
    object.set_at(path, value);
    object
}

#[test]
fn a_replica_set_makes_pods_that_become_ready() {
    let mut scene = Scene::new();
    scene.create("apps/replicasets", replica_set("web", 3));
    scene.settle();
    assert_eq!(scene.pods(), ["3 Running"]);
    assert_eq!(
        scene.status("apps/replicasets", "web"),
        value!({"fullyLabeledReplicas": 3, "observedGeneration": 1, "replicas": 3, "terminatingReplicas": 0})
    );
    scene.pass(300);
    assert_eq!(scene.pods(), ["3 Running ready"]);
    assert_eq!(
        scene.status("apps/replicasets", "web"),
        value!({"availableReplicas": 3, "fullyLabeledReplicas": 3, "observedGeneration": 1, "readyReplicas": 3,
            "replicas": 3, "terminatingReplicas": 0})
    );
    let events = scene.events("web");
    assert_eq!(events.len(), 3, "{events:?}");
    assert!(events.iter().all(|event| event.starts_with("SuccessfulCreate: Created pod: web-")), "{events:?}");
}

#[test]
fn scaling_down_deletes_what_is_not_ready_first() {
    let mut scene = Scene::new();
    scene.create("apps/replicasets", replica_set("web", 2));
    scene.pass(1000);
    let old: Vec<_> = scene.list("pods").iter().map(|pod| pod.name()).collect();
    scene.merge("apps/replicasets", "web", value!({"spec": {"replicas": 4}}));
    scene.settle();
    assert_eq!(scene.pods(), ["2 Running", "2 Running ready"]);
    scene.merge("apps/replicasets", "web", value!({"spec": {"replicas": 2}}));
    scene.settle();
    assert_eq!(scene.pods(), ["2 Running leaving", "2 Running ready"]);
    assert_eq!(scene.status("apps/replicasets", "web").int_at(&["terminatingReplicas"]), Some(2));
    scene.pass(50);
    assert_eq!(scene.list("pods").iter().map(|pod| pod.name()).collect::<Vec<_>>(), old);
    assert_eq!(scene.status("apps/replicasets", "web").int_at(&["terminatingReplicas"]), Some(0));
}

#[test]
fn a_quota_refuses_what_is_too_much_and_counts_what_is_there() {
    let mut scene = Scene::new();
    let hard = value!({"pods": "2", "count/replicasets.apps": 1, "requests.cpu": "4"});
    scene.create("resourcequotas", value!({"metadata": {"name": "small"}, "spec": {"hard": hard}}));
    scene.create("apps/replicasets", replica_set("web", 3));
    scene.pass(1_000);
    assert_eq!(scene.pods(), ["2 Running ready"]);
    let failure = scene.status("apps/replicasets", "web").list_at(&["conditions"])[0].clone();
    let words = failure.str_at(&["message"]).unwrap().to_owned();
    assert!(
        words.ends_with(" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2"),
        "{words}"
    );
    let counts = |pods: &str, sets: &str| value!({"count/replicasets.apps": sets, "pods": pods});
    let status = value!({"hard": counts("2", "1"), "used": counts("2", "1")});
    assert_eq!(scene.status("resourcequotas", "small"), status);
    let refused = scene.request(Verb::Create, "apps/replicasets", "", Some(replica_set("other", 0))).unwrap_err();
    let words = "replicasets.apps \"other\" is forbidden: exceeded quota: small, requested: count/replicasets.apps=1, \
                 used: count/replicasets.apps=1, limited: count/replicasets.apps=1";
    assert_eq!((refused.code, refused.message.as_str()), (403, words));
    // More is allowed, and what is missing comes when it is tried again.
    scene.merge("resourcequotas", "small", value!({"spec": {"hard": {"pods": "5"}}}));
    scene.pass(60_000);
    assert_eq!(scene.pods(), ["3 Running ready"]);
    assert_eq!(scene.status("resourcequotas", "small").str_at(&["used", "pods"]), Some("3"));
    scene.delete("apps/replicasets", "web", "Background");
    scene.pass(60_000);
    assert_eq!(scene.status("resourcequotas", "small").at(&["used"]), Some(&counts("0", "0")));
    // Only the ones that a scope selects would count, which nobody does here.
    scene.create(
        "resourcequotas",
        value!({"metadata": {"name": "scoped"}, "spec": {"hard": {"pods": "0"}, "scopes": ["Terminating"]}}),
    );
    scene.create("apps/replicasets", replica_set("web", 1));
    scene.pass(1_000);
    assert_eq!(scene.pods(), ["1 Running ready"]);
}

#[test]
fn an_image_that_cannot_be_pulled_keeps_a_pod_pending() {
    let mut scene = Scene::new();
    scene.create(
        "apps/replicasets",
        with(replica_set("web", 1), &["spec", "template", "spec", "containers"], containers("app:bad", &[]).into()),
    );
    scene.pass(60_000);
    assert_eq!(scene.pods(), ["1 Pending"]);
    let pod = scene.list("pods").remove(0);
    let container = &pod.value.list_at(&["status", "containerStatuses"])[0];
    assert_eq!(
        container.get("state"),
        Some(
            &value!({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"app:bad\": ErrImagePull: app:bad: not found"}})
        )
    );
}

#[test]
fn a_container_that_crashes_restarts_ever_later() {
    let mut scene = Scene::new();
    scene.create(
        "apps/replicasets",
        with(
            replica_set("web", 1),
            &["spec", "template", "spec", "containers"],
            containers("app:v1", &["/bad-command"]).into(),
        ),
    );
    let restarts = |scene: &Scene| ask::restarts(&scene.list("pods")[0].value).0;
    let mut seen = Vec::new();
    for _ in 0..4 {
        scene.pass(10_000);
        seen.push(restarts(&scene));
    }
    assert_eq!(seen, [1, 1, 2, 2]);
    assert_eq!(scene.pods(), ["1 Running"]);
}

#[test]
fn a_pod_made_unready_by_hand_stays_so() {
    let mut scene = Scene::new();
    scene.create("apps/replicasets", replica_set("web", 1));
    scene.pass(1000);
    let name = scene.list("pods")[0].name();
    let patch = value!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    scene.request(Verb::Patch(PatchType::Strategic), "pods:status", &name, Some(patch)).unwrap();
    scene.pass(10_000);
    assert_eq!(scene.pods(), ["1 Running"]);
    assert_eq!(scene.status("apps/replicasets", "web").int_at(&["readyReplicas"]), None);
}

#[test]
fn an_annotation_set_on_a_running_pod_takes_effect_at_once() {
    let mut scene = Scene::new();
    scene.create("apps/replicasets", replica_set("web", 1));
    scene.pass(1000);
    let name = scene.list("pods")[0].name();
    let annotate = |value: Value| value!({"metadata": {"annotations": {"embedded.tidegate.dev/never-ready": (serde_json::Value::from(&value))}}});
    scene.merge("pods", &name, annotate("true".into()));
    scene.settle();
    assert_eq!(scene.pods(), ["1 Running"]);
    scene.merge("pods", &name, annotate(Value::Null));
    scene.settle();
    assert_eq!(scene.pods(), ["1 Running ready"]);
}

#[test]
fn orphans_are_adopted_and_strangers_released() {
    let mut scene = Scene::new();
    scene.create("apps/replicasets", replica_set("web", 2));
    scene.pass(1000);
    let name = scene.list("pods")[0].name();
    scene.merge("pods", &name, value!({"metadata": {"labels": {"app": "other"}}}));
    scene.pass(1000);
    let released = scene.get("pods", &name).unwrap();
    assert!(released.list_at(&["metadata", "ownerReferences"]).is_empty());
    assert_eq!(scene.list("pods").len(), 3);
    scene.merge("pods", &name, value!({"metadata": {"labels": {"app": "web"}}}));
    scene.settle();
    let controlled = scene.list("pods").iter().filter(|pod| ask::controller_of(&pod.value).is_some()).count();
    assert_eq!((controlled, scene.list("pods").iter().filter(|pod| pod.is_terminating()).count()), (3, 1));
}

#[test]
fn min_ready_seconds_delay_availability() {
    let mut scene = Scene::new();
    scene.create("apps/replicasets", with(replica_set("web", 1), &["spec", "minReadySeconds"], value!(5)));
    let available = |scene: &Scene| scene.status("apps/replicasets", "web").int_at(&["availableReplicas"]);
    scene.pass(1000);
    assert_eq!(scene.status("apps/replicasets", "web").int_at(&["readyReplicas"]), Some(1));
    scene.pass(3900);
    assert_eq!(available(&scene), None);
    scene.pass(200);
    assert_eq!(available(&scene), Some(1));
}

fn deployment(image: &str) -> Value {
    value!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 4, "selector": {"matchLabels": {"app": "web"}}, "progressDeadlineSeconds": 600,
            "revisionHistoryLimit": 10,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod_spec(image, &[], "Always")}},
    })
}

/// A Deployment's ReplicaSets by revision: `1: 0/4` wants none of four that were.
fn sets(scene: &Scene) -> Vec<String> {
    let mut sets: Vec<_> = scene
        .list("apps/replicasets")
        .iter()
        .map(|set| {
            let revision = ask::annotation(&set.value, "deployment.kubernetes.io/revision").unwrap_or("-").to_owned();
            let image = set.value.list_at(&["spec", "template", "spec", "containers"])[0]
                .str_at(&["image"])
                .unwrap()
                .to_owned();
            let count = |path: &[&str]| set.value.int_at(path).unwrap_or(0);
            format!("{revision} {image}: {} of {}", count(&["status", "readyReplicas"]), count(&["spec", "replicas"]))
        })
        .collect();
    sets.sort();
    sets
}

#[test]
fn a_deployment_rolls_to_a_new_image_within_its_fences() {
    let mut scene = Scene::new();
    scene.create("apps/deployments", deployment("app:v1"));
    scene.pass(2000);
    assert_eq!(sets(&scene), ["1 app:v1: 4 of 4"]);
    scene.merge("apps/deployments", "web", image("app:v2"));
    let (mut fewest, mut most) = (4, 4);
    for _ in 0..30 {
        scene.pass(100);
        let ready = scene.list("pods").iter().filter(|pod| ask::is_ready(&pod.value) && !pod.is_terminating()).count();
        let alive = scene.list("pods").iter().filter(|pod| ask::is_active(&pod.value)).count();
        (fewest, most) = (fewest.min(ready), most.max(alive));
    }
    assert_eq!(sets(&scene), ["1 app:v1: 0 of 0", "2 app:v2: 4 of 4"]);
    assert_eq!((fewest, most), (3, 5));
    let status = scene.status("apps/deployments", "web");
    let conditions: Vec<_> = status
        .list_at(&["conditions"])
        .iter()
        .map(|c| ["type", "status", "reason"].map(|field| c.str_at(&[field]).unwrap_or_default()).join(" "))
        .collect();
    assert_eq!(conditions, ["Available True MinimumReplicasAvailable", "Progressing True NewReplicaSetAvailable"]);
    // Back to the old template: its set is reused under a new revision.
    scene.merge("apps/deployments", "web", image("app:v1"));
    scene.pass(3000);
    assert_eq!(sets(&scene), ["2 app:v2: 0 of 0", "3 app:v1: 4 of 4"]);
    assert_eq!(
        ask::annotation(&scene.get("apps/deployments", "web").unwrap(), "deployment.kubernetes.io/revision"),
        Some("3")
    );
}

#[test]
fn a_deployment_that_does_not_progress_says_so() {
    let mut scene = Scene::new();
    scene.create(
        "apps/deployments",
        with(deployment("app:never-ready"), &["spec", "progressDeadlineSeconds"], value!(30)),
    );
    let reason = |scene: &Scene| {
        let deployment = scene.get("apps/deployments", "web").unwrap();
        ask::condition(&deployment, "Progressing").and_then(|c| c.str_at(&["reason"])).map(str::to_owned)
    };
    scene.pass(29_000);
    assert_eq!(reason(&scene).as_deref(), Some("ReplicaSetUpdated"));
    scene.pass(4000);
    assert_eq!(reason(&scene).as_deref(), Some("ProgressDeadlineExceeded"));
}

#[test]
fn recreate_waits_until_the_old_pods_are_gone() {
    let mut scene = Scene::new();
    let recreate = with(deployment("app:v1"), &["spec", "strategy"], value!({"type": "Recreate"}));
    let stop_slowly = value!({"embedded.tidegate.dev/stop-after": "5s"});
    scene.create("apps/deployments", with(recreate, &["spec", "template", "metadata", "annotations"], stop_slowly));
    scene.pass(2000);
    scene.merge("apps/deployments", "web", image("app:v2"));
    scene.pass(4000);
    assert_eq!(scene.pods(), ["4 Running ready leaving"]);
    scene.pass(3000);
    assert_eq!(scene.pods(), ["4 Running ready"]);
    assert_eq!(sets(&scene), ["1 app:v1: 0 of 0", "2 app:v2: 4 of 4"]);
}

#[test]
fn deleting_a_deployment_takes_everything_below_it() {
    for (policy, left) in [("Background", (0, 0)), ("Foreground", (0, 0)), ("Orphan", (1, 4))] {
        let mut scene = Scene::new();
        scene.create("apps/deployments", deployment("app:v1"));
        scene.pass(2000);
        scene.delete("apps/deployments", "web", policy);
        scene.pass(2000);
        assert_eq!(scene.get("apps/deployments", "web"), None, "{policy}");
        assert_eq!((scene.list("apps/replicasets").len(), scene.list("pods").len()), left, "{policy}");
    }
}

fn job(spec: Value, command: &str) -> Value {
    let mut job = value!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {
        "parallelism": 1, "completions": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": false,
        "podReplacementPolicy": "TerminatingOrFailed",
        "template": {"spec": pod_spec("busybox", &["sh", "-c", command], "Never")}}});
    for (field, value) in spec.as_map().unwrap().iter() {
        job.set_at(&["spec", field], value);
    }
    job
}

/// A Job's true conditions with reasons, and its counts.
fn outcome(scene: &Scene) -> (Vec<String>, i64, i64, i64) {
    let status = scene.status("batch/jobs", "j");
    let conditions = status.list_at(&["conditions"]).iter().filter(|c| c.str_at(&["status"]) == Some("True"));
    let conditions = conditions.map(|c| format!("{} {}", c.str_at(&["type"]).unwrap(), c.str_at(&["reason"]).unwrap()));
    let count = |field| status.int_at(&[field]).unwrap_or(0);
    (conditions.collect(), count("active"), count("succeeded"), count("failed"))
}

#[test]
fn a_job_completes_when_enough_pods_succeed() {
    let mut scene = Scene::new();
    scene.create("batch/jobs", job(value!({"parallelism": 2, "completions": 3}), "sleep 2; exit 0"));
    scene.settle();
    assert_eq!(outcome(&scene), (vec![], 2, 0, 0));
    scene.pass(4000);
    assert_eq!(outcome(&scene), (vec![], 1, 2, 0));
    scene.pass(6000);
    let done = vec!["SuccessCriteriaMet CompletionsReached".to_owned(), "Complete CompletionsReached".to_owned()];
    assert_eq!(outcome(&scene), (done, 0, 3, 0));
    assert!(scene.list("pods").iter().all(|pod| pod.value.list_at(&["metadata", "finalizers"]).is_empty()));
    assert_eq!(scene.events("j").last().map(String::as_str), Some("Completed: Job completed"));
}

#[test]
fn a_job_fails_at_its_backoff_limit_with_growing_waits() {
    let mut scene = Scene::new();
    scene.create("batch/jobs", job(value!({"backoffLimit": 2}), "exit 3"));
    let failed = |scene: &Scene| outcome(scene).3;
    scene.pass(5000);
    assert_eq!(failed(&scene), 1);
    scene.pass(5000);
    assert_eq!(failed(&scene), 1);
    scene.pass(5000);
    assert_eq!(failed(&scene), 2);
    scene.pass(25_000);
    let done = vec!["FailureTarget BackoffLimitExceeded".to_owned(), "Failed BackoffLimitExceeded".to_owned()];
    assert_eq!(outcome(&scene), (done, 0, 0, 3));
}

#[test]
fn a_job_ends_at_its_deadline_and_goes_after_its_time_to_live() {
    let mut scene = Scene::new();
    scene.create("batch/jobs", job(value!({"activeDeadlineSeconds": 5, "ttlSecondsAfterFinished": 30}), "sleep 600"));
    scene.pass(4900);
    assert_eq!(outcome(&scene), (vec![], 1, 0, 0));
    scene.pass(3000);
    let done = vec!["FailureTarget DeadlineExceeded".to_owned(), "Failed DeadlineExceeded".to_owned()];
    assert_eq!(outcome(&scene), (done, 0, 0, 1));
    scene.pass(40_000);
    assert_eq!(scene.get("batch/jobs", "j"), None);
    assert_eq!(scene.list("pods").len(), 0);
}

#[test]
fn a_suspended_job_starts_when_it_is_resumed() {
    let mut scene = Scene::new();
    scene.create("batch/jobs", job(value!({"suspend": true}), "sleep 1"));
    scene.pass(5000);
    assert_eq!((outcome(&scene).0, scene.list("pods").len()), (vec!["Suspended JobSuspended".to_owned()], 0));
    scene.merge("batch/jobs", "j", value!({"spec": {"suspend": false}}));
    scene.pass(6000);
    let done = vec!["SuccessCriteriaMet CompletionsReached".to_owned(), "Complete CompletionsReached".to_owned()];
    assert_eq!(outcome(&scene), (done, 0, 1, 0));
}

#[test]
fn an_indexed_job_runs_every_index_once() {
    let mut scene = Scene::new();
    let spec = value!({"completionMode": "Indexed", "completions": 4, "parallelism": 2});
    scene.create("batch/jobs", job(spec, "exit 0"));
    scene.pass(20_000);
    assert_eq!(scene.status("batch/jobs", "j").str_at(&["completedIndexes"]), Some("0-3"));
    let mut names: Vec<_> = scene.list("pods").iter().map(|pod| pod.name()[..4].to_owned()).collect();
    names.sort();
    assert_eq!(names, ["j-0-", "j-1-", "j-2-", "j-3-"]);
}

#[test]
fn a_service_lists_its_ready_pods() {
    let mut scene = Scene::new();
    scene.create(
        "services",
        value!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
            "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}]}}),
    );
    scene.settle();
    let ready = |scene: &Scene| {
        let slices = scene.list("discovery.k8s.io/endpointslices");
        let endpoints = slices.iter().flat_map(|slice| slice.value.list_at(&["endpoints"]).to_vec());
        (
            slices.len(),
            endpoints.map(|e| e.at(&["conditions", "ready"]).and_then(Value::as_bool).unwrap()).collect::<Vec<_>>(),
        )
    };
    assert_eq!(ready(&scene), (1, vec![]));
    scene.create("apps/replicasets", replica_set("web", 2));
    scene.settle();
    assert_eq!(ready(&scene), (1, vec![false, false]));
    scene.pass(1000);
    assert_eq!(ready(&scene), (1, vec![true, true]));
    scene.merge("apps/replicasets", "web", value!({"spec": {"replicas": 0}}));
    scene.pass(1000);
    assert_eq!(ready(&scene), (1, vec![]));
    scene.delete("services", "web", "Background");
    scene.settle();
    assert_eq!(ready(&scene), (0, vec![]));
}

fn evict(scene: &mut Scene, pod: &str) -> Outcome {
    let body = value!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}});
    scene.request(Verb::Create, "pods:eviction", pod, Some(body))
}

#[test]
fn a_budget_lets_one_pod_go_at_a_time() {
    let mut scene = Scene::new();
    scene.create(
        "policy/poddisruptionbudgets",
        value!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "b"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}}),
    );
    scene.create("apps/replicasets", replica_set("web", 3));
    scene.pass(1000);
    let allowed = |scene: &Scene| scene.status("policy/poddisruptionbudgets", "b").int_at(&["disruptionsAllowed"]);
    assert_eq!(allowed(&scene), Some(1));
    let names: Vec<_> = scene.list("pods").iter().map(|pod| pod.name()).collect();
    evict(&mut scene, &names[0]).unwrap();
    let refused = evict(&mut scene, &names[1]).unwrap_err();
    assert_eq!(refused.code, 429);
    scene.settle();
    assert_eq!(evict(&mut scene, &names[1]).unwrap_err().code, 429);
    scene.pass(2000);
    assert_eq!(allowed(&scene), Some(1));
    evict(&mut scene, &names[1]).unwrap();
}

#[test]
fn pods_of_a_lost_node_are_replaced_and_stay_until_it_returns() {
    let mut scene = Scene::new();
    scene.settle();
    scene.create("nodes", value!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "fake-1"}}));
    scene.create("apps/replicasets", replica_set("web", 2));
    scene.pass(1000);
    assert_eq!(scene.pods(), ["2 Running ready"]);
    let lost = |value: Value| value!({"metadata": {"annotations": {"embedded.tidegate.dev/lost": (serde_json::Value::from(&value))}}});
    scene.merge("nodes", "fake-0", lost("true".into()));
    scene.pass(49_000);
    assert_eq!(scene.pods(), ["2 Running ready"]);
    scene.pass(2000);
    assert_eq!(scene.pods(), ["1 Running", "1 Running ready"]);
    assert_eq!(
        ask::condition(&scene.get("nodes", "fake-0").unwrap(), "Ready").unwrap().str_at(&["status"]),
        Some("Unknown")
    );
    scene.pass(301_000);
    assert_eq!(scene.pods(), ["1 Running leaving", "2 Running ready"]);
    scene.merge("nodes", "fake-0", lost(Value::Null));
    scene.pass(1000);
    assert_eq!(scene.pods(), ["2 Running ready"]);
    assert_eq!(scene.get("nodes", "fake-0").unwrap().at(&["spec", "taints"]), None);
}

#[test]
fn a_cordoned_node_takes_no_pods() {
    let mut scene = Scene::new();
    scene.settle();
    scene.merge("nodes", "fake-0", value!({"spec": {"unschedulable": true}}));
    scene.create("apps/replicasets", replica_set("web", 1));
    scene.pass(1000);
    assert_eq!(scene.pods(), ["1 Pending"]);
    assert!(
        ask::condition(&scene.list("pods")[0].value, "PodScheduled")
            .unwrap()
            .str_at(&["message"])
            .unwrap()
            .starts_with("0/1 nodes are available: 1 node(s) were unschedulable.")
    );
    scene.merge("nodes", "fake-0", value!({"spec": {"unschedulable": null}}));
    scene.pass(1000);
    assert_eq!(scene.pods(), ["1 Running ready"]);
}

#[test]
fn an_autoscaler_follows_its_annotation() {
    let mut scene = Scene::new();
    scene.create("apps/deployments", deployment("app:v1"));
    scene.create("autoscaling/horizontalpodautoscalers", value!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h", "annotations": {"embedded.tidegate.dev/value": "75"}},
        "spec": {"minReplicas": 1, "maxReplicas": 10, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]}}));
    let size = |scene: &Scene| scene.get("apps/deployments", "web").unwrap().int_at(&["spec", "replicas"]).unwrap();
    let mut sizes = Vec::new();
    for _ in 0..4 {
        scene.pass(15_000);
        sizes.push(size(&scene));
    }
    assert_eq!(sizes, [9, 10, 10, 10]);
    scene.merge(
        "autoscaling/horizontalpodautoscalers",
        "h",
        value!({"metadata": {"annotations": {"embedded.tidegate.dev/value": "10"}}}),
    );
    scene.pass(60_000);
    assert_eq!(size(&scene), 10);
    scene.pass(300_000);
    assert_eq!(size(&scene), 2);
}

#[test]
fn a_deleted_namespace_is_emptied_and_goes() {
    let mut scene = Scene::new();
    scene.create("namespaces", value!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
    let request = Request {
        verb: Verb::Create,
        group: "apps".into(),
        version: "v1".into(),
        resource: "replicasets".into(),
        namespace: "shop".into(),
        body: Some(replica_set("web", 2)),
        ..Request::default()
    };
    scene.store.apply(request).unwrap();
    scene.pass(1000);
    assert_eq!(scene.store.list("", "pods", "shop").count(), 2);
    scene.delete("namespaces", "shop", "Background");
    scene.pass(4000);
    assert_eq!(scene.store.list("", "pods", "shop").count(), 2);
    scene.pass(4000);
    assert_eq!(scene.get("namespaces", "shop"), None);
    assert_eq!(scene.store.everything().filter(|object| object.namespace() == "shop").count(), 0);
}

/// A busy afternoon; its end depends on nothing but the seed.
fn afternoon(scene: &mut Scene, restart: bool) {
    scene.create("apps/deployments", deployment("app:v1"));
    scene.create("batch/jobs", job(value!({"backoffLimit": 1}), "sleep 3; exit 1"));
    scene.pass(1500);
    scene.merge("apps/deployments", "web", image("app:v2"));
    scene.pass(350);
    if restart {
        let settings = Settings { jitter: SignedDuration::ZERO, ..Settings::default() };
        scene.world = World::new(settings);
    }
    scene.pass(60_000);
}

#[test]
fn the_same_seed_makes_the_same_history() {
    let history = |seed| {
        let mut scene = Scene::seeded(seed);
        afternoon(&mut scene, false);
        scene.store.everything().map(|object| serde_json::to_string(&**object).unwrap()).collect::<Vec<_>>()
    };
    for seed in [0, 1, 2] {
        assert_eq!(history(seed), history(seed));
    }
    assert_ne!(history(1), history(2));
}

#[test]
fn a_world_that_is_restarted_in_the_middle_comes_to_the_same_end() {
    let end = |restart| {
        let mut scene = Scene::new();
        afternoon(&mut scene, restart);
        (sets(&scene), scene.pods(), outcome(&scene))
    };
    assert_eq!(end(true), end(false));
}

#[test]
fn a_settled_world_has_nothing_to_do() {
    let mut scene = Scene::new();
    scene.create("apps/deployments", deployment("app:v1"));
    scene.pass(3_590_000);
    assert!(!scene.list("events").is_empty());
    // Only the events go, an hour after they were written.
    scene.pass(20_000);
    assert!(scene.list("events").is_empty());
    let version = scene.store.version();
    scene.pass(24 * 3600 * 1000);
    assert_eq!(scene.store.version(), version);
    assert!(!scene.world.has_work(&scene.store) && scene.world.next_wake().is_none());
}

/// Every status an object of this kind had, in order, without times and uids: what a watch would show.
fn statuses(scene: &Scene, kind: &str) -> Vec<String> {
    let changes = scene.store.changes_since(0).filter(|change| change.kind.kind == kind && !change.deleted);
    changes.map(|change| hide(change.object.value.get("status").unwrap_or(&Value::Null)).to_json()).collect()
}

/// Hides times and uids.
fn hide(value: &Value) -> Value {
    match value {
        Value::Str(text) if text.parse::<Timestamp>().is_ok() => "T".into(),
        Value::Str(text) if text.len() == 36 && text.matches('-').count() == 4 => "U".into(),
        Value::List(items) => Value::list(items.iter().map(hide)),
        Value::Map(map) => Value::Map(map.iter().map(|(key, value)| (key.clone(), hide(value))).collect()),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => value.clone(),
    }
}

/// The states a real controller manager was seen to write for the same manifests, in the same order.
#[test]
fn jobs_show_the_states_the_real_controller_writes() {
    let condition = |kind: &str, reason: &str, message: &str| {
        format!(
            r#"{{"lastProbeTime":"T","lastTransitionTime":"T","message":"{message}","reason":"{reason}","status":"True","type":"{kind}"}}"#
        )
    };
    let done = |kind| condition(kind, "CompletionsReached", "Reached expected number of succeeded pods");
    let over = |kind| condition(kind, "BackoffLimitExceeded", "Job has reached the specified backoff limit");
    let late = |kind| condition(kind, "DeadlineExceeded", "Job was active longer than specified deadline");
    let running = |counts: &str| {
        format!(r#"{{"active":1,{counts},"startTime":"T","terminating":0,"uncountedTerminatedPods":{{}}}}"#)
    };
    let rows = [
        (
            job(value!({"backoffLimit": 1}), "sleep 1; exit 0"),
            vec![
                "{}".to_owned(),
                running(r#""ready":0"#),
                running(r#""ready":1"#),
                format!(
                    r#"{{"conditions":[{}],"ready":0,"startTime":"T","terminating":0,"uncountedTerminatedPods":{{"succeeded":["U"]}}}}"#,
                    done("SuccessCriteriaMet")
                ),
                format!(
                    r#"{{"completionTime":"T","conditions":[{},{}],"ready":0,"startTime":"T","succeeded":1,"terminating":0,"uncountedTerminatedPods":{{}}}}"#,
                    done("SuccessCriteriaMet"),
                    done("Complete")
                ),
            ],
        ),
        (
            job(value!({"backoffLimit": 1}), "exit 3"),
            vec![
                "{}".to_owned(),
                running(r#""ready":0"#),
                r#"{"ready":0,"startTime":"T","terminating":0,"uncountedTerminatedPods":{"failed":["U"]}}"#.to_owned(),
                r#"{"failed":1,"ready":0,"startTime":"T","terminating":0,"uncountedTerminatedPods":{}}"#.to_owned(),
                running(r#""failed":1,"ready":0"#),
                format!(
                    r#"{{"conditions":[{}],"failed":1,"ready":0,"startTime":"T","terminating":0,"uncountedTerminatedPods":{{"failed":["U"]}}}}"#,
                    over("FailureTarget")
                ),
                format!(
                    r#"{{"conditions":[{},{}],"failed":2,"ready":0,"startTime":"T","terminating":0,"uncountedTerminatedPods":{{}}}}"#,
                    over("FailureTarget"),
                    over("Failed")
                ),
            ],
        ),
        (
            job(value!({"activeDeadlineSeconds": 2}), "sleep 60"),
            vec![
                "{}".to_owned(),
                running(r#""ready":0"#),
                running(r#""ready":1"#),
                format!(
                    r#"{{"conditions":[{}],"ready":0,"startTime":"T","terminating":1,"uncountedTerminatedPods":{{"failed":["U"]}}}}"#,
                    late("FailureTarget")
                ),
                format!(
                    r#"{{"conditions":[{}],"failed":1,"ready":0,"startTime":"T","terminating":1,"uncountedTerminatedPods":{{}}}}"#,
                    late("FailureTarget")
                ),
                format!(
                    r#"{{"conditions":[{}],"failed":1,"ready":0,"startTime":"T","terminating":0,"uncountedTerminatedPods":{{}}}}"#,
                    late("FailureTarget")
                ),
                format!(
                    r#"{{"conditions":[{},{}],"failed":1,"ready":0,"startTime":"T","terminating":0,"uncountedTerminatedPods":{{}}}}"#,
                    late("FailureTarget"),
                    late("Failed")
                ),
            ],
        ),
    ];
    for (job, expected) in rows {
        let mut scene = Scene::new();
        scene.create("batch/jobs", job);
        scene.pass(60_000);
        assert_eq!(statuses(&scene, "Job"), expected);
    }
}

#[test]
fn a_new_deployment_shows_the_states_the_real_controller_writes() {
    let mut scene = Scene::new();
    scene.create("apps/deployments", deployment("app:v1"));
    scene.pass(3000);
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        format!(
            r#"{{"lastTransitionTime":"T","lastUpdateTime":"T","message":"{message}","reason":"{reason}","status":"{status}","type":"{kind}"}}"#
        )
    };
    let name = scene.list("apps/replicasets")[0].name();
    let subject = format!(r#"ReplicaSet \"{name}\""#);
    let created = format!(r#"Created new replica set \"{name}\""#);
    let created = condition("Progressing", "True", "NewReplicaSetCreated", &created);
    let progress = condition("Progressing", "True", "ReplicaSetUpdated", &format!("{subject} is progressing."));
    let done =
        condition("Progressing", "True", "NewReplicaSetAvailable", &format!("{subject} has successfully progressed."));
    let scarce = "Deployment does not have minimum availability.";
    let scarce = condition("Available", "False", "MinimumReplicasUnavailable", scarce);
    let enough = condition("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.");
    assert_eq!(
        statuses(&scene, "Deployment"),
        [
            "{}".to_owned(),
            format!(r#"{{"conditions":[{created}]}}"#),
            format!(
                r#"{{"conditions":[{created},{scarce}],"observedGeneration":1,"terminatingReplicas":0,"unavailableReplicas":4}}"#
            ),
            format!(
                r#"{{"conditions":[{scarce},{progress}],"observedGeneration":1,"replicas":4,"terminatingReplicas":0,"unavailableReplicas":4,"updatedReplicas":4}}"#
            ),
            format!(
                r#"{{"availableReplicas":4,"conditions":[{enough},{done}],"observedGeneration":1,"readyReplicas":4,"replicas":4,"terminatingReplicas":0,"updatedReplicas":4}}"#
            ),
        ]
    );
    assert_eq!(
        statuses(&scene, "ReplicaSet"),
        [
            r#"{"replicas":0}"#,
            r#"{"observedGeneration":1,"replicas":0,"terminatingReplicas":0}"#,
            r#"{"fullyLabeledReplicas":4,"observedGeneration":1,"replicas":4,"terminatingReplicas":0}"#,
            r#"{"availableReplicas":4,"fullyLabeledReplicas":4,"observedGeneration":1,"readyReplicas":4,"replicas":4,"terminatingReplicas":0}"#,
        ]
    );
}
