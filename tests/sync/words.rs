//! What people read: why something is not done, what was done and what was left, on the commit and on its source.

use tidegate::{
    kubernetes::value::Value,
    model::{
        git_source::{Drift, Prune},
        weight::Limit,
    },
    sync::State,
    tree::table,
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
