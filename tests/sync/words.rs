//! What people read: why something is not done, what was done and what was left, on the commit and on its source.

use tidegate::{
    kubernetes::value::Value,
    model::{
        git_source::{Drift, Prune},
        weight::Limit,
    },
    sync::State,
    tree::{self, RolloutTree, Seen, table},
    value,
};

use crate::scene::{Scene, map, spec, web};

/// What a commit was told, state by state.
fn told(scene: &mut Scene, commit: &str) -> Vec<String> {
    scene.last(commit);
    let about = scene.told.iter().filter(|report| report.commit == commit && report.rollout.is_none());
    about.map(|report| format!("{}: {}", report.state.name(), report.words)).collect()
}

fn workload(kind: &str, image: &str) -> String {
    let group = if kind == "Job" { "batch" } else { "apps" };
    let selector = if kind == "Job" { "" } else { "selector: {matchLabels: {app: x}}" };
    let more = match kind {
        "Job" => "restartPolicy: Never, ",
        _ => "",
    };
    format!(
        "apiVersion: {group}/v1\nkind: {kind}\nmetadata: {{name: x}}\nspec:\n  {selector}\n  template:\n    metadata: {{labels: {{app: x}}}}\n    \
         spec: {{{more}containers: [{{name: main, image: '{image}'}}]}}\n"
    )
}

#[tokio::test(start_paused = true)]
async fn an_image_that_is_not_there_is_named_while_it_is_waited_for_and_when_it_is_given_up() {
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/web.yaml", &web("web:1"))]).await;
    scene.until(&first, State::Success).await;
    let bad = scene.push(&[("deploy/web.yaml", &web("web:bad"))]).await;
    let words = scene.until(&bad, State::Failure).await;
    let told = told(&mut scene, &bad);
    let waiting = "pending: web: step 1/4, 25 %, 0 of 1 new pods ready: ImagePullBackOff: web:bad not found".to_owned();
    assert!(told.contains(&waiting), "{told:#?}");
    assert!(words.contains("its new pods were not ready: ImagePullBackOff: web:bad not found"), "{words}");
    assert!(words.contains("a commit that changes its pod template"), "{words}");
    let condition = &scene.status().conditions[0];
    assert!(condition.message.contains("web:bad not found"), "{condition:?}");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_is_named_with_its_exit_code_and_restarts() {
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/web.yaml", &web("web:1"))]).await;
    scene.until(&first, State::Success).await;
    let bad = scene.push(&[("deploy/web.yaml", &web("web:crash"))]).await;
    scene.until(&bad, State::Failure).await;
    let told = told(&mut scene, &bad);
    let is_named = |words: &String| words.contains("0 of 1 new pods ready: CrashLoopBackOff: exit code 1, ");
    assert!(told.iter().any(is_named), "{told:#?}");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn every_workload_says_why_its_pods_are_not_ready() {
    // The embedded cluster has no controller for the other two kinds; what is said of those is tested in `sync::detail`.
    for kind in ["Deployment", "Job"] {
        let mut scene = Scene::new();
        let bad = scene.push(&[("deploy/x.yaml", &workload(kind, "web:bad"))]).await;
        scene.pass(30).await;
        let words = scene.last(&bad).unwrap().words;
        assert!(words.ends_with("ImagePullBackOff: web:bad not found"), "{kind}: {words}");
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_renamed_rollout_serves_until_the_new_one_is_healthy() {
    let mut source = spec();
    source.prune = Prune::UpTo(Limit::Percent(100));
    let mut scene = Scene::with(source);
    let first = scene.push(&[("deploy/web.yaml", &web("web:1"))]).await;
    scene.until(&first, State::Success).await;
    let renamed = web("web:bad").replace("name: web", "name: shop").replace("Service: web", "Service: shop");
    let second = scene.push(&[("deploy/web.yaml", &renamed)]).await;
    scene.until(&second, State::Failure).await;
    scene.pass(60).await;
    assert_eq!(scene.rollout("web").int_at(&["status", "availableReplicas"]), Some(4), "the old one serves");
    let third = scene.push(&[("deploy/web.yaml", &renamed.replace("web:bad", "web:2"))]).await;
    scene.until(&third, State::Success).await;
    assert_eq!(scene.rollout("shop").int_at(&["status", "availableReplicas"]), Some(4));
    assert!(scene.get("argoproj.io", "rollouts", "web").is_none(), "success comes after the deletion");
    assert!(scene.get("", "services", "web").is_none() && scene.get("", "services", "web-canary").is_none());
    let told = told(&mut scene, &third);
    assert!(told.contains(&"pending: deleting 1 object no longer in git".to_owned()), "{told:#?}");
    assert!(told.contains(&"pending: deleting 2 objects no longer in git".to_owned()), "{told:#?}");
    scene.end().await;
}

/// The events about the GitSource, oldest first.
fn events(scene: &Scene) -> Vec<(String, String)> {
    let about = |event: &&Value| event.str_at(&["involvedObject", "kind"]) == Some("GitSource");
    let mut events = scene.list("", "events");
    events.sort_by_key(|event| event.str_at(&["metadata", "resourceVersion"]).unwrap().parse::<u64>().unwrap());
    let text = |event: &Value, key: &str| event.str_at(&[key]).unwrap_or_default().to_owned();
    events.iter().filter(about).map(|event| (text(event, "reason"), text(event, "message"))).collect()
}

#[tokio::test(start_paused = true)]
async fn what_a_source_does_and_leaves_is_an_event_on_it() {
    let mut scene = Scene::objects();
    let there = value!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "x"}});
    scene.create("", "v1", "configmaps", there).unwrap();
    let first = scene.repository.commit(&[("deploy/a.yaml", &(map("a", "x") + &map("b", "x") + &map("c", "x")))]);
    scene.source(value!({"apiVersion": "tidegate.dev/v1alpha1", "kind": "GitSource", "metadata": {"name": "shop"},
        "spec": {"url": "https://git.example/shop.git", "path": "deploy", "interval": "1m", "serviceAccountName": "deployer"}}));
    scene.until(&first, State::Success).await;
    let condition = |scene: &Scene, name: &str| {
        let source = scene.git_source("shop");
        let told =
            source.list_at(&["status", "conditions"]).iter().find(|told| told.str_at(&["type"]) == Some(name)).cloned();
        told.and_then(|told| told.str_at(&["message"]).map(str::to_owned))
    };
    let taken = condition(&scene, "TakenOver");
    assert_eq!(taken.as_deref(), Some("ConfigMap default/a is there already and is taken over"));
    scene.patch("", "v1", "configmaps", "", "a", value!({"data": {"k": "theirs"}})).unwrap();
    scene.pass(5).await;
    let healed = condition(&scene, "DriftHealed");
    assert_eq!(healed.as_deref(), Some("ConfigMap default/a was changed by others at .data.k and is put right"));
    let second = scene.push(&[("deploy/a.yaml", &map("a", "x"))]).await;
    let words = scene.until(&second, State::Success).await;
    assert_eq!(words, "rolled out: 1 object");
    scene.pass(5).await;
    let source = scene.git_source("shop");
    let told = source.list_at(&["status", "conditions"]);
    assert!(
        !told.iter().any(|told| told.str_at(&["type"]) == Some("DriftHealed")),
        "a new commit begins anew: {told:?}"
    );
    let reasons: Vec<String> = events(&scene).into_iter().map(|(reason, _)| reason).collect();
    assert_eq!(reasons, ["Applied", "TakenOver", "RolledOut", "DriftHealed", "Pruned", "RolledOut"]);
    let third =
        scene.push(&[("deploy/a.yaml", &(map("a", "x") + &map("b", "x") + &map("c", "x") + &map("d", "x")))]).await;
    scene.until(&third, State::Success).await;
    let before = events(&scene).len();
    let fourth = scene.push(&[("deploy/a.yaml", &map("a", "x"))]).await;
    scene.until(&fourth, State::Failure).await;
    scene.pass(600).await;
    let new = events(&scene).split_off(before);
    assert!(
        new.iter().any(|(reason, words)| reason == "PruneRefused" && words.contains("raise spec.pruneLimit")),
        "{new:?}"
    );
    assert!(new.len() <= 3, "said once: {new:?}");
    // What was said before a restart is no news after it.
    scene.kill().await;
    scene.start();
    let before = events(&scene).len();
    scene.pass(120).await;
    assert_eq!(events(&scene).len(), before);
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_source_of_the_command_line_has_events_too() {
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/a.yaml", &map("a", "x"))]).await;
    scene.until(&first, State::Success).await;
    scene.patch("", "v1", "configmaps", "", "a", value!({"data": {"k": "theirs"}})).unwrap();
    scene.pass(5).await;
    let events = scene.list("", "events");
    let about = |event: &&Value| event.str_at(&["involvedObject", "name"]) == Some("tidegate.shop");
    let reasons: Vec<&str> = events.iter().filter(about).filter_map(|event| event.str_at(&["reason"])).collect();
    assert_eq!(reasons.len(), 3, "{reasons:?}");
    assert!(["Applied", "RolledOut", "DriftHealed"].iter().all(|reason| reasons.contains(reason)), "{reasons:?}");
    let healed = scene.status().conditions.into_iter().find(|told| told.r#type == "DriftHealed");
    assert!(healed.is_some_and(|told| told.message.contains(".data.k")));
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_says_what_was_done_and_not_what_was_refused() {
    let mut scene = Scene::objects();
    let job = |image: &str| {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: once}}\nspec:\n  template:\n    spec: {{restartPolicy: Never, containers: [{{name: main, image: '{image}'}}]}}\n---\n"
        )
    };
    let first = scene.repository.commit(&[("deploy/a.yaml", &(map("a", "x") + &job("x:1")))]);
    scene.source(value!({"apiVersion": "tidegate.dev/v1alpha1", "kind": "GitSource", "metadata": {"name": "shop"},
        "spec": {"url": "https://git.example/shop.git", "path": "deploy", "interval": "1m", "serviceAccountName": "deployer"}}));
    scene.until(&first, State::Success).await;
    let before = events(&scene).len();
    let second = scene.push(&[("deploy/a.yaml", &(map("a", "y") + &job("x:2")))]).await;
    let words = scene.until(&second, State::Failure).await;
    assert!(words.contains("spec.template cannot change"), "{words}");
    scene.pass(5).await;
    let new = events(&scene).split_off(before);
    let applied: Vec<&String> = new.iter().filter(|(reason, _)| reason == "Applied").map(|(_, words)| words).collect();
    assert_eq!(applied, [&format!("commit {}: ConfigMap default/a", &second[..8])], "{new:?}");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn of_several_broken_objects_the_first_is_named_and_the_others_are_counted() {
    let three = ["a", "b", "c"].map(|name| {
        workload("Deployment", "web:bad")
            .replace("name: x}", &format!("name: {name}}}"))
            .replace("app: x", &format!("app: {name}"))
    });
    let mut scene = Scene::new();
    let bad = scene.push(&[("deploy/x.yaml", &three.join("---\n"))]).await;
    scene.pass(30).await;
    let words = scene.last(&bad).unwrap().words;
    assert_eq!(words, "a: 0 of 1 new pods ready: ImagePullBackOff: web:bad not found (and 2 more)");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_bare_pod_and_a_bare_replica_set_say_why_they_are_not_ready() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: main, image: 'web:bad'}]}\n";
    for text in [workload("ReplicaSet", "web:bad"), pod.to_owned()] {
        let mut scene = Scene::new();
        let bad = scene.push(&[("deploy/x.yaml", &text)]).await;
        scene.pass(30).await;
        let words = scene.last(&bad).unwrap().words;
        assert!(words.ends_with("ImagePullBackOff: web:bad not found"), "{words}");
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_left_as_others_made_it_is_said() {
    let mut source = spec();
    source.drift = Drift::Leave;
    let mut scene = Scene::with(source);
    let first = scene.push(&[("deploy/a.yaml", &map("a", "x"))]).await;
    scene.until(&first, State::Success).await;
    scene.patch("", "v1", "configmaps", "", "a", value!({"data": {"k": "theirs"}})).unwrap();
    scene.pass(5).await;
    let words = scene.last(&first).unwrap().words;
    assert_eq!(words, "rolled out: 1 object; ConfigMap default/a was changed by others at .data.k, which is left");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_new_cluster_does_not_rewrite_how_a_commit_ended_in_another() {
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/web.yaml", &web("web:1"))]).await;
    scene.until(&first, State::Success).await;
    let bad = scene.push(&[("deploy/web.yaml", &web("web:crash"))]).await;
    scene.until(&bad, State::Failure).await;
    let note = scene.repository.note(&bad).unwrap();
    let mut again = scene.elsewhere().await;
    again.pass(120).await;
    let here = again.last(&bad).unwrap();
    assert!(!note.contains(&here.words), "whoever watches is told how it goes here: {here:?}");
    assert_eq!(again.repository.note(&bad).unwrap(), note);
    let fix = again.push(&[("deploy/web.yaml", &web("web:2"))]).await;
    again.until(&fix, State::Success).await;
    assert_eq!(again.repository.note(&fix).unwrap(), "tidegate/default/shop: success, rolled out: 3 objects\n");
    again.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_revision_names_the_commit_that_brought_its_template() {
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/web.yaml", &web("web:1"))]).await;
    scene.until(&first, State::Success).await;
    let second = scene.push(&[("deploy/web.yaml", &web("web:2"))]).await;
    scene.until(&second, State::Success).await;
    let scaled = scene.push(&[("deploy/web.yaml", &web("web:2").replace("replicas: 4", "replicas: 5"))]).await;
    scene.until(&scaled, State::Success).await;
    let history = |scene: &Scene| {
        let now = "2026-01-01T01:00:00Z".parse().unwrap();
        let text = table::history(&scene.rollout("web"), &scene.list("apps", "replicasets"), now);
        let row = |line: &str| {
            let cells: Vec<&str> = line.split_whitespace().collect();
            (cells[3].to_owned(), cells[4].to_owned())
        };
        text.lines().skip(1).map(row).collect::<Vec<_>>()
    };
    let of = |image: &str, commit: &str| (image.to_owned(), commit[..12].to_owned());
    assert_eq!(history(&scene), [of("web:1", &first), of("web:2", &second)]);
    // A person suspends the object for its source and sets an image.
    let by_hand = value!({"metadata": {"annotations": {"tidegate.dev/suspend": "true"}},
        "spec": {"template": {"spec": {"containers": [{"name": "main", "image": "web:hand"}]}}}});
    scene.patch("argoproj.io", "v1alpha1", "rollouts", "", "web", by_hand).unwrap();
    scene.pass(5).await;
    let rows = history(&scene);
    assert!(rows.contains(&("web:hand".to_owned(), "<none>".to_owned())), "{rows:?}");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_says_the_reason_of_the_first_and_counts_the_others_within_what_a_host_takes() {
    let three = |image: &str| -> String {
        let one = |name: &str| {
            let text = web(image);
            let (rollout, _) = text.split_once("---\n").unwrap();
            let rollout = rollout.replace("      stableService: web\n      canaryService: web-canary\n", "");
            rollout.replace("name: web}", &format!("name: {name}}}")).replace("app: web", &format!("app: {name}"))
        };
        ["svc-1", "svc-2", "svc-3"].map(one).join("---\n")
    };
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/x.yaml", &three("web:1"))]).await;
    scene.until(&first, State::Success).await;
    let bad = scene.push(&[("deploy/x.yaml", &three("web:crash"))]).await;
    scene.until(&bad, State::Failure).await;
    scene.pass(60).await;
    let words = scene.last(&bad).unwrap().words;
    assert!(words.ends_with(" goes on (and 2 more)"), "{words}");
    // The tightest host takes 140 characters.
    let short = tidegate::forge::text::cut(&words, 140);
    let reason =
        "svc-1: held since commit 00000000: aborted: its new pods were not ready: CrashLoopBackOff: exit code 1, ";
    assert!(short.starts_with(&reason.replace("00000000", &bad[..8])) && short.ends_with("… (and 2 more)"), "{short}");
    scene.end().await;
}

/// A canary whose pods cannot take the place of old ones, with this in their template.
fn template(image: &str, more: [&str; 2]) -> String {
    let [notes, container] = more;
    web(image)
        .replace("    canary:\n", "    canary:\n      maxSurge: 1\n      maxUnavailable: 0\n")
        .replace(
            "metadata: {labels: {app: web}}\n    spec",
            &format!("metadata: {{labels: {{app: web}}{notes}}}\n    spec"),
        )
        .replace("ports: [{containerPort: 80}]", &format!("ports: [{{containerPort: 80}}]{container}"))
}

const QUOTA: &str = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: small}\nspec: {hard: {pods: '4'}}\n";

#[tokio::test(start_paused = true)]
async fn pods_that_no_node_takes_that_never_get_ready_and_that_are_over_quota_say_so() {
    let probe = ", readinessProbe: {httpGet: {path: /, port: 80}}";
    let unschedulable = ", annotations: {embedded.tidegate.dev/unschedulable: 'true'}";
    for (image, more, quota, why) in [
        ("web:2", [unschedulable, ""], None, "unschedulable: "),
        ("web:never-ready", ["", probe], None, "container main: its readiness probe has not succeeded"),
        ("web:2", ["", ""], Some(QUOTA), "exceeded quota: small, requested: pods=1, used: pods=4, limited: pods=4"),
    ] {
        let mut scene = Scene::new();
        let first = template("web:1", ["", ""]);
        let first = scene.push(&[("deploy/web.yaml", &first), ("deploy/quota.yaml", quota.unwrap_or_default())]).await;
        scene.until(&first, State::Success).await;
        let bad = scene.push(&[("deploy/web.yaml", &template(image, more))]).await;
        scene.pass(15).await;
        let waiting = format!("web: step 1/4, 25 %, 0 of 1 new pods ready: {why}");
        let words = scene.last(&bad).unwrap().words;
        assert!(words.starts_with(&waiting), "{words}");
        assert!(scene.status().conditions[0].message.starts_with(&waiting), "{:?}", scene.status().conditions);
        let shown = waits(&scene, "web");
        assert!(shown.starts_with("for pods: 0 of 1 of web-") && shown.contains(&format!(": {why}")), "{shown}");
        let words = scene.until(&bad, State::Failure).await;
        assert!(words.contains(&format!(": aborted: its new pods were not ready: {why}")), "{words}");
        scene.end().await;
    }
}

/// What `get` says that a Rollout waits for.
fn waits(scene: &Scene, name: &str) -> String {
    let seen = Seen { sets: scene.list("apps", "replicasets"), pods: scene.list("", "pods"), ..Seen::default() };
    let now = "2026-01-01T01:00:00Z".parse().unwrap();
    let text = tree::rollout(&RolloutTree::of(&scene.rollout(name), &seen), "tidegate", now);
    let line = text.lines().find_map(|line| line.strip_prefix("Waits:")).unwrap_or_default();
    line.trim().to_owned()
}

/// What a controller that the embedded cluster does not have would make of a workload: pods that cannot pull their image.
fn pods(scene: &Scene, plural: &str, count: i64, label: (&str, &str), status: Value) {
    let owner = scene.get("apps", plural, "x").unwrap();
    let mut status = value!({"status": serde_json::Value::from(&status)});
    status.set_at(&["status", "observedGeneration"], owner.value.int_at(&["metadata", "generation"]).unwrap());
    scene.patch("apps", "v1", plural, "status", "x", status).unwrap();
    for at in 0..count {
        let name = format!("x-{at}");
        let mut pod = value!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name.as_str(), "labels": {"app": "x"}},
            "spec": {"containers": [{"name": "main", "image": "web:bad"}]}});
        pod.set_at(&["metadata", "labels", label.0], label.1);
        let mut reference = value!({"apiVersion": "apps/v1", "name": "x", "controller": true});
        reference.set_at(&["kind"], owner.value.str_at(&["kind"]).unwrap());
        reference.set_at(&["uid"], owner.uid());
        pod.set_at(&["metadata", "ownerReferences"], Value::list([reference]));
        scene.create("", "v1", "pods", pod).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_stateful_set_and_of_a_daemon_set_say_why_they_are_not_ready() {
    let stateful = workload("StatefulSet", "web:bad").replace("spec:\n", "spec:\n  serviceName: x\n  replicas: 3\n");
    let mut scene = Scene::new();
    let bad = scene.push(&[("deploy/x.yaml", &stateful)]).await;
    scene.pass(5).await;
    let status = value!({"replicas": 1, "updateRevision": "x-1"});
    pods(&scene, "statefulsets", 1, ("controller-revision-hash", "x-1"), status);
    scene.pass(30).await;
    assert_eq!(scene.last(&bad).unwrap().words, "x: 0 of 3 new pods ready: ImagePullBackOff: web:bad not found");
    scene.end().await;
    let mut scene = Scene::new();
    let bad = scene.push(&[("deploy/x.yaml", &workload("DaemonSet", "web:bad"))]).await;
    scene.pass(5).await;
    let status =
        value!({"desiredNumberScheduled": 2, "currentNumberScheduled": 2, "numberMisscheduled": 0, "numberReady": 0});
    pods(&scene, "daemonsets", 2, ("pod-template-generation", "1"), status);
    scene.pass(30).await;
    assert_eq!(scene.last(&bad).unwrap().words, "x: 0 of 2 new pods ready: ImagePullBackOff: web:bad not found");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_is_waited_for_only_where_its_address_matters() {
    let service = |notes: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: edge{notes}}}\nspec: {{type: LoadBalancer, selector: {{app: x}}, ports: [{{port: 80}}]}}\n"
        )
    };
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/s.yaml", &service(""))]).await;
    assert_eq!(scene.until(&first, State::Success).await, "rolled out: 1 object");
    let matters = ", annotations: {tidegate.dev/health: 'size(self.status.loadBalancer.ingress) > 0'}";
    let second = scene.push(&[("deploy/s.yaml", &service(matters)), ("deploy/a.yaml", &map("a", "x"))]).await;
    scene.pass(30).await;
    let words = scene.last(&second).unwrap().words;
    assert!(words.starts_with("edge: waits until size(self.status.loadBalancer.ingress) > 0"), "{words}");
    let address = value!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}});
    scene.patch("", "v1", "services", "status", "edge", address).unwrap();
    assert_eq!(scene.until(&second, State::Success).await, "rolled out: 2 objects");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_running_analysis_says_its_metric_and_last_value_against_what_it_wants() {
    let template = "apiVersion: argoproj.io/v1alpha1\nkind: AnalysisTemplate\nmetadata: {name: rate}\nspec:\n  metrics:\n  - name: rate\n    \
                    initialDelay: 1h\n    interval: 1h\n    count: 2\n    successCondition: result >= 0.95\n    \
                    provider: {web: {url: 'http://metrics.example', jsonPath: '{$.rate}'}}\n";
    let web = |image: &str| {
        let step = "{setWeight: 25}, {analysis: {templates: [{templateName: rate}]}}";
        web(image).replace("{setWeight: 25}, {pause: {duration: 10s}}", step)
    };
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/web.yaml", &web("web:1")), ("deploy/rate.yaml", template)]).await;
    scene.until(&first, State::Success).await;
    let second = scene.push(&[("deploy/web.yaml", &web("web:2"))]).await;
    scene.pass(20).await;
    let runs = scene.list("argoproj.io", "analysisruns");
    let [run] = runs.as_slice() else { panic!("{runs:#?}") };
    let name = run.str_at(&["metadata", "name"]).unwrap();
    let now = tidegate::kubernetes::clock::rfc3339(scene.cluster.now());
    let measured = value!({"status": {"phase": "Running", "metricResults": [{"name": "rate", "phase": "Running", "count": 1, "successful": 1,
        "measurements": [{"phase": "Successful", "value": "0.97", "startedAt": now.as_str(), "finishedAt": now.as_str()}]}]}});
    scene.patch("argoproj.io", "v1alpha1", "analysisruns", "", name, measured).unwrap();
    scene.pass(20).await;
    let words = scene.last(&second).unwrap().words;
    assert_eq!(words, "web: step 2/4, 25 %, 1 of 4 pods, analysis rate: 0.97, wants result >= 0.95");
    scene.end().await;
}
