//! Hooks: what runs once for each commit, and what becomes of the commit when it does not work.

use tidegate::{kubernetes::value::Value, model::git_source::OnAbort, sync::State, value};

use crate::scene::{Scene, map, spec, web};

/// A Job of one pod; `tool:slow-9` works for nine seconds.
fn job(name: &str, image: &str, notes: &str) -> String {
    let works = image.split_once("slow-").map(|(_, seconds)| format!(", command: [sh, -c, sleep {seconds}]"));
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {name}\n  annotations: {{{notes}}}\nspec:\n  backoffLimit: 0\n  \
         template:\n    spec: {{restartPolicy: Never, containers: [{{name: main, image: '{}'{}}}]}}\n---\n",
        if works.is_some() { "tool:1" } else { image },
        works.unwrap_or_default()
    )
}

fn uid(scene: &Scene, name: &str) -> Option<String> {
    scene.get("batch", "jobs", name).map(|job| job.uid().to_string())
}

fn told(scene: &mut Scene, commit: &str) -> Vec<String> {
    scene.last(commit);
    let about = scene.told.iter().filter(|told| told.commit == commit);
    about.map(|told| format!("{}: {}", told.state.name(), told.words)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_hook_runs_once_for_each_commit_before_anything_of_it_is_written() {
    let before = |image: &str| job("migrate", image, "tidegate.dev/hook: before-sync");
    let mut scene = Scene::new();
    let files = [("deploy/job.yaml", before("tool:slow-9")), ("deploy/a.yaml", map("a", "x"))];
    let first = scene.push(&files.each_ref().map(|(path, text)| (*path, text.as_str()))).await;
    scene.pass(5).await;
    assert!(scene.get("", "configmaps", "a").is_none(), "nothing is written before the hook has succeeded");
    let words = scene.last(&first).unwrap().words;
    assert!(words.starts_with("before-sync hook Job default/migrate is running"), "{words}");
    assert_eq!(scene.until(&first, State::Success).await, "rolled out: 1 object");
    let one = uid(&scene, "migrate").unwrap();
    // Neither drift nor a commit that changes no object nor a restart runs it again.
    scene.patch("", "v1", "configmaps", "", "a", value!({"data": {"k": "theirs"}})).unwrap();
    scene.pass(5).await;
    let text = scene.push(&[("README.md", "hello")]).await;
    scene.until(&text, State::Success).await;
    scene.kill().await;
    scene.start();
    scene.pass(120).await;
    assert_eq!(uid(&scene, "migrate").as_ref(), Some(&one));
    // Another commit does.
    let second = scene.push(&[("deploy/a.yaml", &map("a", "y"))]).await;
    scene.until(&second, State::Success).await;
    assert_ne!(uid(&scene, "migrate"), Some(one));
    // One that leaves the repository is pruned.
    let third = scene.push(&[("deploy/job.yaml", "")]).await;
    scene.until(&third, State::Success).await;
    scene.pass(10).await;
    assert_eq!(uid(&scene, "migrate"), None);
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_fails_stops_the_commit_with_its_reason() {
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/a.yaml", &map("a", "x"))]).await;
    scene.until(&first, State::Success).await;
    let hook = job("migrate", "tool:crash", "argocd.argoproj.io/hook: PreSync");
    let cleaner = job("alarm", "tool:1", "tidegate.dev/hook: on-failure");
    let files = [("deploy/a.yaml", map("a", "y")), ("deploy/job.yaml", hook), ("deploy/alarm.yaml", cleaner)];
    let bad = scene.push(&files.each_ref().map(|(path, text)| (*path, text.as_str()))).await;
    let words = scene.until(&bad, State::Failure).await;
    assert!(words.starts_with("deploy/job.yaml:2: before-sync hook Job default/migrate failed: "), "{words}");
    assert!(words.contains("exit code 1") && words.ends_with("; nothing of the commit was applied"), "{words}");
    scene.pass(60).await;
    assert_eq!(scene.get("", "configmaps", "a").unwrap().value.str_at(&["data", "k"]), Some("x"));
    let alarm = scene.get("batch", "jobs", "alarm").unwrap();
    assert_eq!(alarm.value.int_at(&["status", "succeeded"]), Some(1), "the hook for failures ran");
    let count = scene.told.len();
    scene.pass(600).await;
    assert_eq!(scene.told.len(), count, "it is not tried again and again");
    let fix = scene.push(&[("deploy/job.yaml", &job("migrate", "tool:2", "argocd.argoproj.io/hook: PreSync"))]).await;
    assert_eq!(scene.until(&fix, State::Success).await, "rolled out: 1 object");
    assert_eq!(scene.get("", "configmaps", "a").unwrap().value.str_at(&["data", "k"]), Some("y"));
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn hooks_of_helm_run_by_weight_and_those_after_the_sync_wait_until_all_is_healthy() {
    let notes = |weight: i32| format!("helm.sh/hook: 'pre-install,pre-upgrade', helm.sh/hook-weight: '{weight}'");
    let after = "argocd.argoproj.io/hook: PostSync, argocd.argoproj.io/hook-delete-policy: HookSucceeded";
    let files = [
        ("deploy/1.yaml", job("second", "tool:slow-3", &notes(2))),
        ("deploy/2.yaml", job("first", "tool:slow-3", &notes(-1))),
        ("deploy/3.yaml", job("check", "tool:slow-3", after)),
        ("deploy/web.yaml", web("web:slow-5")),
    ];
    let mut scene = Scene::new();
    let commit = scene.push(&files.each_ref().map(|(path, text)| (*path, text.as_str()))).await;
    let is_there = |scene: &Scene, name: &str| scene.get("batch", "jobs", name).is_some();
    let mut order = Vec::new();
    for _ in 0..120 {
        for name in ["first", "second", "check"] {
            if is_there(&scene, name) && !order.contains(&name) {
                order.push(name);
                if name == "check" {
                    assert_eq!(scene.rollout("web").int_at(&["status", "availableReplicas"]), Some(4));
                    assert_eq!(scene.last(&commit).unwrap().state, State::Pending);
                }
            }
        }
        scene.pass(1).await;
    }
    assert_eq!(order, ["first", "second", "check"]);
    assert_eq!(scene.until(&commit, State::Success).await, "rolled out: 3 objects");
    let told = told(&mut scene, &commit);
    assert!(
        told.iter().any(|told| told.starts_with("pending: after-sync hook Job default/check is running")),
        "{told:#?}"
    );
    scene.pass(10).await;
    assert!(!is_there(&scene, "check") && is_there(&scene, "first"), "the one is deleted after its success");
    let state = |run: &tidegate::api::HookRun| (run.name.clone(), run.state.clone());
    let mut runs: Vec<_> = scene.status().hooks.iter().map(state).collect();
    runs.sort();
    let succeeded = ["check", "first", "second"].map(|name| (name.to_owned(), "Succeeded".to_owned()));
    assert_eq!(runs, succeeded);
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_hook_for_failures_runs_when_a_version_is_given_up_and_restored() {
    for on_abort in [OnAbort::Hold, OnAbort::Restore] {
        let mut source = spec();
        source.on_abort = on_abort;
        let mut scene = Scene::with(source);
        let alarm = job("alarm", "tool:1", "argocd.argoproj.io/hook: SyncFail");
        let first = scene.push(&[("deploy/web.yaml", &web("web:1")), ("deploy/alarm.yaml", &alarm)]).await;
        scene.until(&first, State::Success).await;
        assert_eq!(uid(&scene, "alarm"), None, "nothing failed yet");
        let bad = scene.push(&[("deploy/web.yaml", &web("web:crash"))]).await;
        scene.until(&bad, State::Failure).await;
        scene.pass(60).await;
        let alarm = scene.get("batch", "jobs", "alarm").unwrap();
        assert_eq!(alarm.value.int_at(&["status", "succeeded"]), Some(1), "{on_abort:?}");
        assert_eq!(scene.last(&bad).unwrap().state, State::Failure);
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_of_an_earlier_commit_is_not_cut_off_while_it_works() {
    let hook = |image: &str| job("migrate", image, "tidegate.dev/hook: before-sync");
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/job.yaml", &hook("tool:slow-30")), ("deploy/a.yaml", &map("a", "x"))]).await;
    scene.pass(5).await;
    let one = uid(&scene, "migrate").unwrap();
    assert_eq!(scene.get("batch", "jobs", "migrate").unwrap().value.int_at(&["status", "ready"]), Some(1));
    let second = scene.push(&[("deploy/a.yaml", &map("a", "y"))]).await;
    scene.pass(5).await;
    assert_eq!(uid(&scene, "migrate").as_ref(), Some(&one));
    let words = format!("before-sync hook Job default/migrate waits for the one of commit {} to end", &first[..8]);
    assert_eq!(scene.last(&second).unwrap().words, words);
    scene.until(&second, State::Success).await;
    assert_ne!(uid(&scene, "migrate"), Some(one));
    // One that never begins to work stands in nobody's way.
    let stuck = scene.push(&[("deploy/job.yaml", &hook("tool:bad"))]).await;
    scene.pass(20).await;
    let words = scene.last(&stuck).unwrap().words;
    assert!(words.ends_with("is running: ImagePullBackOff: tool:bad not found"), "{words}");
    let fix = scene.push(&[("deploy/job.yaml", &hook("tool:3"))]).await;
    scene.until(&fix, State::Success).await;
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_argo_cds_annotations_ask_for_and_is_not_done_is_an_event() {
    let mut scene = Scene::objects();
    let text = map("a", "x").replace(
        "{name: a}",
        "{name: a, annotations: {argocd.argoproj.io/sync-options: 'Delete=confirm,PruneLast=true'}}",
    );
    let commit = scene.repository.commit(&[("deploy/a.yaml", &text)]);
    scene.source(value!({"apiVersion": "tidegate.dev/v1alpha1", "kind": "GitSource", "metadata": {"name": "shop"},
        "spec": {"url": "https://git.example/shop.git", "path": "deploy", "interval": "1m", "serviceAccountName": "deployer"}}));
    scene.until(&commit, State::Success).await;
    scene.pass(5).await;
    let events = scene.list("", "events");
    let of = |event: &&Value| event.str_at(&["reason"]) == Some("AnnotationIgnored");
    let words: Vec<&str> = events.iter().filter(of).filter_map(|event| event.str_at(&["message"])).collect();
    assert_eq!(
        words,
        ["ConfigMap default/a asks for what is not done: argocd.argoproj.io/sync-options: Delete=confirm"]
    );
    scene.end().await;
}
