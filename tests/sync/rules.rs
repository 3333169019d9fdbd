//! Each rule of syncing, as a story.

use tidegate::{
    api,
    kubernetes::value::Value,
    model::{
        git_source::{Drift, OnAbort, OnImmutable, OnNewCommit, Prune},
        parse,
        weight::Limit,
    },
    sync::State,
    value,
};

use crate::{
    objects::source,
    scene::{Scene, map, spec, web},
};

#[tokio::test(start_paused = true)]
async fn s57_every_object_carries_the_commit_that_changed_it_and_its_path() {
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/web.yaml", &web("web:1")), ("deploy/a.yaml", &map("a", "x"))]).await;
    scene.until(&first, State::Success).await;
    let second = scene.push(&[("deploy/a.yaml", &map("a", "z"))]).await;
    scene.until(&second, State::Success).await;
    let a = scene.get("", "configmaps", "a").unwrap();
    assert_eq!(a.annotation("tidegate.dev/commit"), Some(second.as_str()));
    assert_eq!(a.annotation("tidegate.dev/path"), Some("deploy/a.yaml"));
    let rollout = scene.rollout("web");
    assert_eq!(rollout.str_at(&["metadata", "annotations", "tidegate.dev/commit"]), Some(first.as_str()));
    assert!(!rollout.at(&["spec", "template"]).unwrap().to_json().contains("tidegate.dev"));
    // The Rollout's history shows the commit.
    let sets = scene.list("apps", "replicasets");
    assert_eq!(sets[0].str_at(&["metadata", "annotations", "tidegate.dev/commit"]), Some(first.as_str()));
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn s57_commits_that_come_together_are_told_apart() {
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/a.yaml", &map("a", "x")), ("deploy/b.yaml", &map("b", "x"))]).await;
    scene.until(&first, State::Success).await;
    let second = scene.repository.commit(&[("deploy/a.yaml", &map("a", "z"))]);
    let third = scene.push(&[("deploy/b.yaml", &map("b", "z"))]).await;
    scene.until(&third, State::Success).await;
    let commit =
        |name: &str| scene.get("", "configmaps", name).unwrap().annotation("tidegate.dev/commit").unwrap().to_owned();
    assert_eq!((commit("a"), commit("b")), (second, third));
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn s58_a_missing_path_and_an_empty_one_delete_nothing() {
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/a.yaml", &map("a", "x")), ("deploy/b.yaml", &map("b", "x"))]).await;
    scene.until(&first, State::Success).await;
    let moved = scene.push(&[("deploy/a.yaml", ""), ("deploy/b.yaml", ""), ("other/a.yaml", &map("a", "x"))]).await;
    let words = scene.until(&moved, State::Error).await;
    assert!(words.contains("deploy"), "{words}");
    let empty = scene.push(&[("deploy/readme.md", "nothing")]).await;
    let words = scene.until(&empty, State::Failure).await;
    assert!(words.starts_with("nothing is deleted: there is no object in the path"), "{words}");
    scene.pass(60).await;
    assert!(scene.get("", "configmaps", "a").is_some() && scene.get("", "configmaps", "b").is_some());
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn s58_a_commit_that_would_delete_too_much_deletes_nothing() {
    let mut scene = Scene::new();
    let all: Vec<(String, String)> = (0..5).map(|n| (format!("deploy/{n}.yaml"), map(&format!("m{n}"), "x"))).collect();
    let all: Vec<(&str, &str)> = all.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let first = scene.push(&all).await;
    scene.until(&first, State::Success).await;
    let gone: Vec<(&str, &str)> = all.iter().skip(1).map(|(path, _)| (*path, "")).collect();
    let second = scene.push(&gone).await;
    let words = scene.until(&second, State::Failure).await;
    assert!(words.contains("raise spec.pruneLimit"), "{words}");
    scene.pass(30).await;
    let left = scene.list("", "configmaps");
    let left = left.iter().filter(|map| map.str_at(&["metadata", "name"]).unwrap().starts_with('m')).count();
    assert_eq!(left, 5);
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn s58_a_namesake_is_never_pruned() {
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/a.yaml", &map("a", "x")), ("deploy/b.yaml", &map("b", "x"))]).await;
    scene.until(&first, State::Success).await;
    scene.kill().await;
    scene.delete("", "v1", "configmaps", "b");
    scene.create("", "v1", "configmaps", value!({"metadata": {"name": "b"}, "data": {"mine": "x"}})).unwrap();
    let second = scene.repository.commit(&[("deploy/b.yaml", "")]);
    scene.start();
    scene.until(&second, State::Success).await;
    scene.pass(30).await;
    assert_eq!(scene.get("", "configmaps", "b").unwrap().value.str_at(&["data", "mine"]), Some("x"));
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn s59_a_branch_that_moves_back_takes_the_cluster_back() {
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/a.yaml", &map("a", "old"))]).await;
    scene.until(&first, State::Success).await;
    let second = scene.push(&[("deploy/a.yaml", &map("a", "new"))]).await;
    scene.until(&second, State::Success).await;
    scene.repository.reset(&first);
    scene.hint().await;
    scene.pass(5).await;
    let a = scene.get("", "configmaps", "a").unwrap();
    assert_eq!(a.value.str_at(&["data", "k"]), Some("old"));
    assert_eq!(scene.status().rolled_out.unwrap().commit, first);
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn s60_a_superseded_commit_never_succeeds() {
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/web.yaml", &web("web:1"))]).await;
    scene.until(&first, State::Success).await;
    let second = scene.push(&[("deploy/web.yaml", &web("web:2"))]).await;
    scene.pass(5).await;
    assert_eq!(scene.last(&second).unwrap().state, State::Pending);
    let third = scene.push(&[("deploy/web.yaml", &web("web:3"))]).await;
    let words = scene.until(&second, State::Superseded).await;
    assert_eq!(words, format!("by commit {}", &third[..8]));
    scene.until(&third, State::Success).await;
    scene.pass(60).await;
    assert_eq!(scene.last(&second).unwrap().state, State::Superseded);
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn s60_a_commit_that_changes_no_object_has_the_outcome_of_the_one_that_did() {
    // What is recorded is a ConfigMap of ours, or a status that is patched.
    for is_object in [false, true] {
        the_outcome_of_the_one_that_did(if is_object { Scene::objects() } else { Scene::new() }, is_object).await;
    }
}

async fn the_outcome_of_the_one_that_did(mut scene: Scene, is_object: bool) {
    let first = scene.repository.commit(&[("deploy/web.yaml", &web("web:1"))]);
    if is_object {
        scene.source(source("shop", "deploy"));
    }
    scene.hint().await;
    scene.until(&first, State::Success).await;
    // A crashing image, and two seconds later a commit that changes only a text.
    let guilty = scene.push(&[("deploy/web.yaml", &web("web:crash"))]).await;
    scene.pass(2).await;
    let innocent = scene.push(&[("README.md", "hello")]).await;
    let failed = scene.until(&guilty, State::Failure).await;
    let same = |words: &str| format!("no change under deploy; same as {}: {words}", &guilty[..8]);
    assert_eq!(scene.until(&innocent, State::Failure).await, same(&failed));
    assert!(!scene.told.iter().any(|report| report.state == State::Superseded), "{:#?}", scene.told);
    // A later one says the same, also after a restart.
    scene.kill().await;
    scene.start();
    let later = scene.push(&[("README.md", "hello again")]).await;
    assert_eq!(scene.until(&later, State::Failure).await, same(&failed));
    // With a good image all three turn green.
    let fix = scene.push(&[("deploy/web.yaml", &web("web:2"))]).await;
    scene.pass(2).await;
    let text = scene.push(&[("README.md", "bye")]).await;
    assert_eq!(scene.until(&fix, State::Success).await, "rolled out: 3 objects");
    let words = format!("no change under deploy; same as {}: rolled out: 3 objects", &fix[..8]);
    assert_eq!(scene.until(&text, State::Success).await, words);
    assert_eq!(scene.last(&fix).unwrap().state, State::Success);
    // Those before it had their last word.
    assert_eq!(scene.last(&guilty).unwrap().words, failed);
    for before in [&innocent, &later] {
        assert_eq!(scene.last(before).unwrap().words, same(&failed));
    }
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn s60_commits_that_come_in_one_fetch_are_told_apart_by_who_changed_an_object() {
    for per_rollout in [false, true] {
        let mut source = spec();
        source.on_abort = OnAbort::Restore;
        let wire = value!({"spec": {"url": "https://git.example/shop.git", "serviceAccountName": "deployer",
            "report": {"host": "notes", "perRollout": true}}});
        let each = parse::git_source(&api::read(&wire).object).into_result().unwrap();
        source.report = each.report.filter(|_| per_rollout);
        let mut scene = Scene::with(source);
        let first = scene.push(&[("deploy/web.yaml", &web("web:1"))]).await;
        scene.until(&first, State::Success).await;
        let guilty = scene.repository.commit(&[("deploy/web.yaml", &web("web:crash"))]);
        let text = scene.repository.commit(&[("README.md", "hello")]);
        // In the folder, and no object differs.
        let layout = scene.push(&[("deploy/web.yaml", &format!("# a comment\n{}", web("web:crash")))]).await;
        let words = scene.until(&guilty, State::Failure).await;
        assert!(words.starts_with("held since commit ") && words.contains(": web: aborted"), "{words}");
        let same = format!("no change under deploy; same as {}: {words}", &guilty[..8]);
        for innocent in [&text, &layout] {
            assert_eq!(scene.until(innocent, State::Failure).await, same);
        }
        scene.pass(1).await;
        let about_web = |commit: &str| {
            let mut told = scene.told.iter().rev().filter(|told| told.commit == commit && told.rollout.is_some());
            told.next().map(|told| told.state)
        };
        for commit in [&guilty, &text, &layout] {
            assert_eq!(about_web(commit), per_rollout.then_some(State::Failure));
        }
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_crashes_is_given_up_held_and_followed_by_a_fix() {
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/web.yaml", &web("web:1"))]).await;
    scene.until(&first, State::Success).await;
    let bad = scene.push(&[("deploy/web.yaml", &web("web:crash"))]).await;
    let words = scene.until(&bad, State::Failure).await;
    assert!(words.starts_with(&format!("web: held since commit {}: aborted: ", &bad[..8])), "{words}");
    let told = scene.told.len();
    scene.pass(600).await;
    assert_eq!(scene.told.len(), told, "no loop, no further word");
    let rollout = scene.rollout("web");
    assert_eq!(rollout.int_at(&["status", "availableReplicas"]), Some(4), "the stable version serves");
    let fix = scene.push(&[("deploy/web.yaml", &web("web:2"))]).await;
    scene.until(&fix, State::Success).await;
    assert_eq!(scene.last(&bad).unwrap().state, State::Failure);
    assert!(scene.status().held.is_empty());
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_held_version_is_not_pushed_in_again_after_an_undo() {
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/web.yaml", &web("web:1"))]).await;
    scene.until(&first, State::Success).await;
    let bad = scene.push(&[("deploy/web.yaml", &web("web:crash"))]).await;
    scene.until(&bad, State::Failure).await;
    let undo = value!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "web:1"}]}}}});
    scene.patch("argoproj.io", "v1alpha1", "rollouts", "", "web", undo).unwrap();
    scene.pass(120).await;
    let image = scene.rollout("web").list_at(&["spec", "template", "spec", "containers"])[0]
        .str_at(&["image"])
        .map(str::to_owned);
    assert_eq!(image.as_deref(), Some("web:1"));
    assert_eq!(scene.last(&bad).unwrap().state, State::Failure);
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_restore_takes_the_configuration_back_with_the_pods() {
    let mut source = spec();
    source.on_abort = OnAbort::Restore;
    let mut scene = Scene::with(source);
    let first = scene.push(&[("deploy/web.yaml", &web("web:1")), ("deploy/a.yaml", &map("a", "old"))]).await;
    scene.until(&first, State::Success).await;
    let bad = scene.push(&[("deploy/web.yaml", &web("web:crash")), ("deploy/a.yaml", &map("a", "new"))]).await;
    let words = scene.until(&bad, State::Failure).await;
    let held = format!("held since commit {}, back at commit {}: web: aborted: ", &bad[..8], &first[..8]);
    assert!(words.starts_with(&held), "{words}");
    scene.pass(60).await;
    assert_eq!(scene.get("", "configmaps", "a").unwrap().value.str_at(&["data", "k"]), Some("old"));
    assert_eq!(scene.rollout("web").str_at(&["status", "phase"]), Some("Healthy"));
    assert_eq!(scene.last(&bad).unwrap().state, State::Failure);
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_restore_deletes_what_the_failed_commit_brought_and_lasts_until_a_new_one() {
    let mut source = spec();
    source.on_abort = OnAbort::Revert;
    let mut scene = Scene::with(source);
    let first = scene.push(&[("deploy/web.yaml", &web("web:1")), ("deploy/a.yaml", &map("a", "old"))]).await;
    scene.until(&first, State::Success).await;
    let bad = scene
        .push(&[
            ("deploy/web.yaml", &web("web:crash")),
            ("deploy/a.yaml", &map("a", "new")),
            ("deploy/b.yaml", &map("b", "new")),
            ("other.txt", "new"),
        ])
        .await;
    let words = scene.until(&bad, State::Failure).await;
    let branch = format!("tidegate/revert-{}", &bad[..8]);
    let end = format!("back at commit {}, a revert is on the branch {branch}: ", &first[..8]);
    assert!(words.starts_with("held since commit ") && words.contains(&end), "{words}");
    scene.pass(60).await;
    assert_eq!(scene.get("", "configmaps", "a").unwrap().value.str_at(&["data", "k"]), Some("old"));
    assert!(scene.get("", "configmaps", "b").is_none(), "the failed commit brought it");
    // The offer: the folder as it was, everything else as it is.
    let offered = scene.repository.git().find_reference(&format!("refs/heads/{branch}")).unwrap().target().unwrap();
    let tree = |id: git2::Oid| scene.repository.git().find_commit(id).unwrap().tree().unwrap();
    let deploy = |id: git2::Oid| tree(id).get_name("deploy").unwrap().id();
    assert_eq!(deploy(offered), deploy(git2::Oid::from_str(&first).unwrap()));
    assert!(tree(offered).get_name("other.txt").is_some());
    let told = scene.told.len();
    scene.kill().await;
    scene.start();
    scene.pass(600).await;
    let last: Vec<_> = scene.told[told..].iter().map(|report| (&report.commit, report.state)).collect();
    assert!(last.iter().all(|(commit, state)| **commit == bad && *state == State::Failure), "{last:?}");
    assert_eq!(scene.rollout("web").str_at(&["status", "phase"]), Some("Healthy"));
    let fix = scene.push(&[("deploy/web.yaml", &web("web:2"))]).await;
    scene.until(&fix, State::Success).await;
    assert_eq!(scene.get("", "configmaps", "a").unwrap().value.str_at(&["data", "k"]), Some("new"));
    assert!(scene.get("", "configmaps", "b").is_some());
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_of_a_restored_commit_tries_all_of_it_again() {
    let mut scene = Scene::objects();
    let first = scene.repository.commit(&[("deploy/web.yaml", &web("web:1")), ("deploy/a.yaml", &map("a", "old"))]);
    let mut shop = crate::objects::source("shop", "deploy");
    shop.set_at(&["spec", "onAbort"], "Restore");
    scene.source(shop);
    scene.until(&first, State::Success).await;
    let bad = scene.push(&[("deploy/web.yaml", &web("web:crash")), ("deploy/a.yaml", &map("a", "new"))]).await;
    scene.until(&bad, State::Failure).await;
    scene.pass(60).await;
    assert_eq!(scene.get("", "configmaps", "a").unwrap().value.str_at(&["data", "k"]), Some("old"));
    let request = value!({"metadata": {"annotations": {"tidegate.dev/sync-requested": "again"}}});
    scene.patch("tidegate.dev", "v1alpha1", "gitsources", "", "shop", request).unwrap();
    scene.until(&bad, State::Pending).await;
    scene.pass(3).await;
    assert_eq!(scene.get("", "configmaps", "a").unwrap().value.str_at(&["data", "k"]), Some("new"));
    scene.until(&bad, State::Failure).await;
    scene.pass(60).await;
    assert_eq!(scene.get("", "configmaps", "a").unwrap().value.str_at(&["data", "k"]), Some("old"));
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_new_commit_waits_for_the_one_before_if_it_is_told_to() {
    let mut source = spec();
    source.on_new_commit = OnNewCommit::Wait;
    let mut scene = Scene::with(source);
    let first = scene.push(&[("deploy/web.yaml", &web("web:1"))]).await;
    scene.until(&first, State::Success).await;
    let second = scene.push(&[("deploy/web.yaml", &web("web:2"))]).await;
    scene.pass(5).await;
    let third = scene.push(&[("deploy/web.yaml", &web("web:3"))]).await;
    scene.pass(2).await;
    assert_eq!(scene.last(&third).unwrap().words, format!("waits for commit {} to end", &second[..8]));
    scene.until(&second, State::Success).await;
    scene.until(&third, State::Success).await;
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_others_change_is_put_right() {
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/a.yaml", &map("a", "x"))]).await;
    scene.until(&first, State::Success).await;
    scene.patch("", "v1", "configmaps", "", "a", value!({"data": {"k": "hacked"}})).unwrap();
    scene.pass(2).await;
    assert_eq!(scene.get("", "configmaps", "a").unwrap().value.str_at(&["data", "k"]), Some("x"));
    scene.delete("", "v1", "configmaps", "a");
    scene.pass(2).await;
    assert!(scene.get("", "configmaps", "a").is_some());
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_others_change_is_left_if_the_source_says_so() {
    let mut source = spec();
    source.drift = Drift::Leave;
    let mut scene = Scene::with(source);
    let first = scene.push(&[("deploy/a.yaml", &map("a", "x"))]).await;
    scene.until(&first, State::Success).await;
    scene.patch("", "v1", "configmaps", "", "a", value!({"data": {"k": "mine"}})).unwrap();
    scene.pass(120).await;
    assert_eq!(scene.get("", "configmaps", "a").unwrap().value.str_at(&["data", "k"]), Some("mine"));
    let second = scene.push(&[("deploy/a.yaml", &map("a", "z"))]).await;
    scene.until(&second, State::Success).await;
    assert_eq!(scene.get("", "configmaps", "a").unwrap().value.str_at(&["data", "k"]), Some("z"));
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn s63_an_autoscaler_and_the_engine_are_left_in_peace() {
    let mut scene = Scene::new();
    let scaler = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec:\n  minReplicas: 1\n  maxReplicas: 9\n  \
                  scaleTargetRef: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: web}\n";
    let first = scene.push(&[("deploy/web.yaml", &web("web:1")), ("deploy/hpa.yaml", scaler)]).await;
    scene.until(&first, State::Success).await;
    scene.patch("argoproj.io", "v1alpha1", "rollouts", "scale", "web", value!({"spec": {"replicas": 6}})).unwrap();
    scene.pass(60).await;
    assert_eq!(scene.rollout("web").int_at(&["spec", "replicas"]), Some(6));
    let before = scene.cluster.with(|store| store.version());
    let second = scene.push(&[("deploy/web.yaml", &web("web:2"))]).await;
    scene.until(&second, State::Success).await;
    assert_eq!(scene.rollout("web").int_at(&["spec", "replicas"]), Some(6), "git still says four");
    let service = scene.get("", "services", "web").unwrap();
    let hash = service.value.str_at(&["spec", "selector", "rollouts-pod-template-hash"]).map(str::to_owned);
    assert_eq!(hash.as_deref(), scene.rollout("web").str_at(&["status", "stableRS"]));
    let written = scene.written_since(before).into_iter().filter(|name| name == "services web").count();
    assert!(written <= 1, "the engine leads it to another version, and nobody answers that: {written}");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn s6_nothing_is_written_at_rest() {
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/web.yaml", &web("web:1")), ("deploy/a.yaml", &map("a", "x"))]).await;
    scene.until(&first, State::Success).await;
    scene.pass(60).await;
    let version = scene.cluster.with(|store| store.version());
    let told = scene.told.len();
    scene.pass(3600).await;
    scene.hint().await;
    scene.pass(60).await;
    assert_eq!(scene.written_since(version), Vec::<String>::new());
    assert_eq!(scene.told.len(), told);
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn l13_a_commit_gets_its_last_word_across_a_restart() {
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/web.yaml", &web("web:1"))]).await;
    scene.until(&first, State::Success).await;
    let second = scene.push(&[("deploy/web.yaml", &web("web:2"))]).await;
    scene.pass(5).await;
    scene.kill().await;
    scene.pass(5).await;
    scene.start();
    scene.until(&second, State::Success).await;
    let third = scene.push(&[("deploy/web.yaml", &web("web:3"))]).await;
    scene.pass(3).await;
    scene.kill().await;
    let fourth = scene.repository.commit(&[("deploy/web.yaml", &web("web:4"))]);
    scene.start();
    scene.until(&fourth, State::Success).await;
    assert_eq!(scene.last(&third).unwrap().state, State::Superseded, "overtaken while nobody looked");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_canary_or_stable_template_refers_to_is_pruned_only_afterwards() {
    let mut source = spec();
    source.prune = Prune::UpTo(Limit::Percent(100));
    let mut scene = Scene::with(source);
    let with = |image: &str, config: &str| {
        web(image).replace("name: main,", &format!("name: main, envFrom: [{{configMapRef: {{name: {config}}}}}],"))
    };
    let first = scene.push(&[("deploy/web.yaml", &with("web:1", "c1")), ("deploy/c1.yaml", &map("c1", "x"))]).await;
    scene.until(&first, State::Success).await;
    let second = scene
        .push(&[("deploy/web.yaml", &with("web:2", "c2")), ("deploy/c1.yaml", ""), ("deploy/c2.yaml", &map("c2", "x"))])
        .await;
    scene.pass(10).await;
    assert!(scene.get("", "configmaps", "c1").is_some(), "stable pods still read it");
    scene.until(&second, State::Success).await;
    scene.pass(120).await;
    assert!(scene.get("", "configmaps", "c1").is_none());
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn definitions_and_namespaces_come_before_what_needs_them() {
    let mut scene = Scene::new();
    let widget = "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 3}\n";
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.org}\nspec:\n  \
                      group: example.org\n  scope: Namespaced\n  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}\n  versions:\n  - name: v1\n    \
                      served: true\n    storage: true\n    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}\n";
    let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: team}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n";
    let first = scene.push(&[("deploy/a.yaml", widget), ("deploy/z.yaml", definition), ("deploy/b.yaml", other)]).await;
    assert_eq!(scene.until(&first, State::Success).await, "rolled out: 4 objects");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_migration_runs_before_the_version_that_needs_it() {
    let mut scene = Scene::new();
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate, annotations: {tidegate.dev/wave: '-1'}}\nspec:\n  template:\n    spec:\n      \
               restartPolicy: Never\n      containers: [{name: main, image: 'x:1', command: [sh, -c, sleep 20]}]\n";
    let first = scene.push(&[("deploy/web.yaml", &web("web:1")), ("deploy/job.yaml", job)]).await;
    scene.pass(10).await;
    assert_eq!(scene.last(&first).unwrap().words, "wave 0 waits for Job default/migrate: is running");
    assert!(scene.get("argoproj.io", "rollouts", "web").is_none());
    scene.until(&first, State::Success).await;
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_immutable_field_is_explained_and_the_others_are_applied() {
    let mut scene = Scene::new();
    let deployment = |label: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: api}}\nspec:\n  selector: {{matchLabels: {{app: {label}}}}}\n  \
                      template:\n    metadata: {{labels: {{app: {label}}}}}\n    spec: {{containers: [{{name: main, image: 'x:1'}}]}}\n"
        )
    };
    let first = scene.push(&[("deploy/api.yaml", &deployment("api")), ("deploy/a.yaml", &map("a", "x"))]).await;
    scene.until(&first, State::Success).await;
    let second = scene.push(&[("deploy/api.yaml", &deployment("other")), ("deploy/a.yaml", &map("a", "z"))]).await;
    let words = scene.until(&second, State::Failure).await;
    assert!(words.starts_with("deploy/api.yaml:5: Deployment default/api: "), "{words}");
    let why = "spec.selector cannot change once the object is there; annotate it with `tidegate.dev/replace: \"true\"`";
    assert!(words.contains(why), "{words}");
    assert_eq!(scene.get("", "configmaps", "a").unwrap().value.str_at(&["data", "k"]), Some("z"));
    let noted = deployment("other").replace("{name: api}", "{name: api, annotations: {tidegate.dev/replace: 'true'}}");
    let third = scene.push(&[("deploy/api.yaml", &noted)]).await;
    scene.until(&third, State::Success).await;
    let labels = scene.get("apps", "deployments", "api").unwrap();
    assert_eq!(labels.value.str_at(&["spec", "selector", "matchLabels", "app"]), Some("other"));
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_engines_writes_carry_its_name() {
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/web.yaml", &web("web:1"))]).await;
    scene.until(&first, State::Success).await;
    let set = scene.cluster.with(|store| store.list("apps", "replicasets", "default").next().cloned()).unwrap();
    let names: Vec<&str> = set.managers.owners().iter().map(|owner| owner.manager.as_str()).collect();
    assert!(names.contains(&"tidegate") && !names.contains(&"unknown"), "{names:?}");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_poll_finds_what_no_hint_told() {
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/a.yaml", &map("a", "x"))]).await;
    scene.until(&first, State::Success).await;
    let second = scene.repository.commit(&[("deploy/a.yaml", &map("a", "z"))]);
    scene.until(&second, State::Success).await;
    assert!(scene.elapsed() <= 70, "an interval of a minute, and a tenth of it");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_secret_is_synced_and_its_values_are_told_to_nobody() {
    let mut scene = Scene::new();
    let secret =
        |text: &str| format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData: {{password: {text}}}\n");
    let first = scene.push(&[("deploy/s.yaml", &secret("hunter2"))]).await;
    scene.until(&first, State::Success).await;
    assert_eq!(scene.get("", "secrets", "s").unwrap().value.str_at(&["data", "password"]), Some("aHVudGVyMg=="));
    scene.pass(120).await;
    let version = scene.get("", "secrets", "s").unwrap().version();
    let second = scene.push(&[("deploy/s.yaml", &secret("hunter3"))]).await;
    scene.until(&second, State::Success).await;
    assert_ne!(scene.get("", "secrets", "s").unwrap().version(), version);
    assert!(!scene.told.iter().any(|report| report.words.contains("hunter")));
    let status = scene.get("", "configmaps", "tidegate.shop").unwrap().value.to_json();
    assert!(!status.contains("hunter") && !status.contains("aHVudGVy"));
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn s7_whoever_changes_it_back_each_time_is_named_and_not_fought() {
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/a.yaml", &map("a", "x"))]).await;
    scene.until(&first, State::Success).await;
    for round in 0..40 {
        scene.patch("", "v1", "configmaps", "", "a", value!({"data": {"k": format!("mine {round}")}})).unwrap();
        scene.pass(1).await;
    }
    let words = scene.last(&first).unwrap().words;
    assert!(words.contains("kubectl-edit changes it back each time"), "{words}");
    assert_eq!(scene.get("", "configmaps", "a").unwrap().value.str_at(&["data", "k"]), Some("mine 39"));
    scene.pass(180).await;
    assert_eq!(scene.get("", "configmaps", "a").unwrap().value.str_at(&["data", "k"]), Some("x"), "once they stop");
    scene.end().await;
}

/// The Rollout comes from elsewhere: whoever wrote it, its Service keeps leading to the version that it was led to.
#[tokio::test(start_paused = true)]
async fn s63_a_service_keeps_its_hash_though_its_rollout_is_not_in_the_repository() {
    let mut scene = Scene::new();
    let (rollout, services) = {
        let all = web("web:1");
        let (rollout, services) = all.split_once("---\n").unwrap();
        (rollout.to_owned(), services.to_owned())
    };
    let first = scene.push(&[("deploy/services.yaml", &services)]).await;
    scene.until(&first, State::Success).await;
    let files = tidegate::manifest::read("web.yaml", rollout.as_bytes());
    scene.create("argoproj.io", "v1alpha1", "rollouts", files.objects[0].value.clone()).unwrap();
    scene.pass(30).await;
    let selector = |scene: &Scene| scene.get("", "services", "web").unwrap().value.at(&["spec", "selector"]).cloned();
    let led = selector(&scene).unwrap();
    let hash = scene.rollout("web").str_at(&["status", "stableRS"]).unwrap().to_owned();
    assert_eq!(led.str_at(&["rollouts-pod-template-hash"]), Some(hash.as_str()));
    let second = scene.push(&[("deploy/a.yaml", &map("a", "x"))]).await;
    scene.until(&second, State::Success).await;
    scene.pass(130).await;
    assert_eq!(selector(&scene), Some(led));
    scene.end().await;
}

/// A Deployment whose pods name a commit, which no write may do: each commit would restart every pod.
fn stamped() -> Value {
    value!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"app": "d"}},
        "template": {
            "metadata": {"labels": {"app": "d"}, "annotations": {"tidegate.dev/commit": "mine"}},
            "spec": {"containers": [{"name": "main", "image": "d:1"}]},
        },
    }})
}

fn condition(scene: &Scene, name: &str) -> Option<(String, String, String)> {
    let shop = scene.git_source("shop");
    let found = shop.list_at(&["status", "conditions"]).iter().find(|told| told.str_at(&["type"]) == Some(name))?;
    let text = |key: &str| found.str_at(&[key]).unwrap_or_default().to_owned();
    Some((text("status"), text("reason"), text("message")))
}

/// Refuse, keep the world, degrade loudly.
#[tokio::test(start_paused = true)]
async fn what_would_break_a_rule_is_refused_in_status_to_the_commit_as_an_event_and_as_a_number() {
    let mut scene = Scene::objects();
    let first = scene.repository.commit(&[("deploy/a.yaml", &map("a", "x"))]);
    scene.source(source("shop", "deploy"));
    scene.until(&first, State::Success).await;
    assert_eq!(scene.metric("tidegate_refused_total{machine=\"sync\"}"), 0.0);
    let odd = [("deploy/a.yaml", map("a", "z")), ("deploy/d.yaml", stamped().to_json())];
    let second = scene.push(&odd.each_ref().map(|(path, text)| (*path, text.as_str()))).await;
    let words = scene.until(&second, State::Error).await;
    assert!(
        words.starts_with("refused, nothing is written: S57: deploy/d.yaml:1: Deployment default/d would name"),
        "{words}"
    );
    // Long enough for several polls: it is said once.
    scene.pass(200).await;
    let told = |status: &str| Some((status.to_owned(), "RefusedByRuleS57".to_owned(), words.clone()));
    assert_eq!((condition(&scene, "Ready"), condition(&scene, "Stalled")), (told("False"), told("True")));
    assert_eq!(
        scene.get("", "configmaps", "a").unwrap().value.str_at(&["data", "k"]),
        Some("x"),
        "nothing of it is applied"
    );
    assert!(scene.get("apps", "deployments", "d").is_none());
    let events = scene.list("", "events");
    let about = |event: &&Value| event.str_at(&["involvedObject", "kind"]) == Some("GitSource");
    let warns = |event: &&Value| event.str_at(&["type"]) == Some("Warning");
    let events: Vec<_> = events.iter().filter(about).filter(warns).collect();
    let [event] = events.as_slice() else { panic!("{events:#?}") };
    let text = |path: &[&str]| event.str_at(path).unwrap_or_default().to_owned();
    assert_eq!(
        (text(&["type"]), text(&["reason"]), text(&["message"])),
        ("Warning".into(), "ReconciliationError".into(), words)
    );
    let about = ["apiVersion", "name", "uid"].map(|key| text(&["involvedObject", key]));
    let uid = scene.git_source("shop").str_at(&["metadata", "uid"]).unwrap().to_owned();
    assert_eq!(about, ["tidegate.dev/v1alpha1".to_owned(), "shop".to_owned(), uid]);
    assert!(scene.metric("tidegate_refused_total{machine=\"sync\"}") >= 1.0);
    let third = scene.push(&[("deploy/d.yaml", "")]).await;
    scene.until(&third, State::Success).await;
    scene.pass(1).await;
    assert_eq!(condition(&scene, "Stalled"), None);
    assert_eq!(scene.get("", "configmaps", "a").unwrap().value.str_at(&["data", "k"]), Some("z"));
    scene.end().await;
}

/// A person suspends an object in the cluster whose manifest no write may bring, and resumes it while a commit fails: what
/// is decided about the failed commit would break a rule, and no revert is offered before it does not.
#[tokio::test(start_paused = true)]
async fn no_revert_is_pushed_for_what_would_break_a_rule() {
    let mut scene = Scene::objects();
    let mut suspended = stamped();
    suspended.set_at(&["metadata", "annotations"], value!({"tidegate.dev/suspend": "true"}));
    scene.create("apps", "v1", "deployments", suspended).unwrap();
    let files =
        [("deploy/web.yaml", web("web:1")), ("deploy/a.yaml", map("a", "old")), ("deploy/d.yaml", stamped().to_json())];
    let first = scene.repository.commit(&files.each_ref().map(|(path, text)| (*path, text.as_str())));
    let mut shop = source("shop", "deploy");
    shop.set_at(&["spec", "onAbort"], "Revert");
    scene.source(shop);
    scene.until(&first, State::Success).await;
    let bad = scene.push(&[("deploy/web.yaml", &web("web:crash")), ("deploy/a.yaml", &map("a", "new"))]).await;
    scene.until(&bad, State::Pending).await;
    scene.pass(5).await;
    let suspend = |scene: &Scene, value: Value| {
        let patch = value!({"metadata": {"annotations": {"tidegate.dev/suspend": value}}});
        scene.patch("apps", "v1", "deployments", "", "d", patch).unwrap();
    };
    suspend(&scene, Value::Null);
    scene.until(&bad, State::Error).await;
    scene.pass(120).await;
    assert_eq!(scene.rollout("web").at(&["status", "abort"]), Some(&Value::Bool(true)));
    assert_eq!(condition(&scene, "Stalled").unwrap().1, "RefusedByRuleS57");
    assert_eq!(
        scene.get("", "configmaps", "a").unwrap().value.str_at(&["data", "k"]),
        Some("new"),
        "the world is kept"
    );
    let branch = format!("refs/heads/tidegate/revert-{}", &bad[..8]);
    assert!(
        scene.repository.git().find_reference(&branch).is_err(),
        "nothing is pushed for a verdict that was refused"
    );
    suspend(&scene, "true".into());
    let words = scene.until(&bad, State::Failure).await;
    assert!(words.contains(&format!("a revert is on the branch tidegate/revert-{}: ", &bad[..8])), "{words}");
    assert!(scene.repository.git().find_reference(&branch).is_ok());
    scene.pass(1).await;
    assert_eq!(scene.get("", "configmaps", "a").unwrap().value.str_at(&["data", "k"]), Some("old"));
    scene.end().await;
}

/// A workload whose field cannot change, with this in its metadata.
fn fixed(kind: &str, value: &str, more: &str) -> String {
    match kind {
        "Job" => format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: x{more}}}\nspec:\n  template:\n    \
             spec: {{restartPolicy: Never, containers: [{{name: main, image: 'x:{value}'}}]}}\n"
        ),
        _ => format!(
            "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {{name: x{more}}}\nspec:\n  serviceName: s{value}\n  replicas: 0\n  \
             selector: {{matchLabels: {{app: x}}}}\n  template:\n    metadata: {{labels: {{app: x}}}}\n    \
             spec: {{containers: [{{name: main, image: 'x:1'}}]}}\n"
        ),
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_change_is_made_anew_where_the_object_or_the_source_says_so() {
    let replace = ", annotations: {tidegate.dev/replace: 'true'}";
    for (on_immutable, more, is_replaced) in
        [(OnImmutable::Fail, "", false), (OnImmutable::Fail, replace, true), (OnImmutable::Replace, "", true)]
    {
        let mut source = spec();
        source.on_immutable = on_immutable;
        let mut scene = Scene::with(source);
        let first = scene.push(&[("deploy/x.yaml", &fixed("Job", "1", more))]).await;
        scene.until(&first, State::Success).await;
        let uid = |scene: &Scene| scene.get("batch", "jobs", "x").map(|job| job.uid());
        let before = uid(&scene);
        let second = scene.push(&[("deploy/x.yaml", &fixed("Job", "2", more))]).await;
        if is_replaced {
            scene.until(&second, State::Success).await;
            assert_ne!(uid(&scene), before);
        } else {
            let words = scene.until(&second, State::Failure).await;
            let expected = "deploy/x.yaml:5: Job default/x: spec.template cannot change once the object is there; \
                            annotate it with `tidegate.dev/replace: \"true\"`";
            assert!(words.starts_with(expected), "{words}");
            assert_eq!(uid(&scene), before);
        }
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_pods_of_a_stateful_set_that_is_made_anew_stay() {
    let replace = ", annotations: {tidegate.dev/replace: 'true'}";
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/x.yaml", &fixed("StatefulSet", "1", replace))]).await;
    scene.pass(5).await;
    let set = scene.get("apps", "statefulsets", "x").unwrap();
    // The embedded cluster has no controller for this kind: the pod is made by hand, as that would.
    let mut pod = value!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x-0", "labels": {"app": "x"},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "x", "controller": true, "blockOwnerDeletion": true}]},
        "spec": {"containers": [{"name": "main", "image": "x:1"}]}});
    let mut owner = pod.list_at(&["metadata", "ownerReferences"])[0].clone();
    owner.set_at(&["uid"], set.uid());
    pod.set_at(&["metadata", "ownerReferences"], Value::list([owner]));
    scene.create("", "v1", "pods", pod).unwrap();
    let pod = scene.get("", "pods", "x-0").unwrap().uid();
    let second = scene.push(&[("deploy/x.yaml", &fixed("StatefulSet", "2", replace))]).await;
    scene.pass(30).await;
    let anew = scene.get("apps", "statefulsets", "x").unwrap();
    assert_ne!(anew.uid(), set.uid());
    assert_eq!(anew.value.str_at(&["spec", "serviceName"]), Some("s2"));
    assert_eq!(scene.get("", "pods", "x-0").map(|pod| pod.uid()), Some(pod), "its pods are adopted, not deleted");
    assert_ne!(scene.last(&second).unwrap().state, State::Failure, "{first}");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_without_conditions_is_healthy_when_its_expression_says_so() {
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.org}\nspec:\n  \
                      group: example.org\n  scope: Namespaced\n  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}\n  versions:\n  - name: v1\n    \
                      served: true\n    storage: true\n    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}, \
                      status: {type: object, properties: {phase: {type: string}}}}}}\n";
    let widget = |healthy: &str, wave: &str| {
        format!(
            "apiVersion: example.org/v1\nkind: Widget\nmetadata:\n  name: w{wave}\n  annotations:\n    tidegate.dev/health: \"{healthy}\"\n    \
             tidegate.dev/health-failed: \"has(self.status) && self.status.phase == 'Broken'\"\nspec: {{size: 3}}\n"
        )
    };
    let ready = "self.status.phase == 'Ready'";
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/z.yaml", definition)]).await;
    scene.until(&first, State::Success).await;
    let typo = scene.push(&[("deploy/w.yaml", &widget("self.status.phaze == 'Ready'", ""))]).await;
    let words = scene.until(&typo, State::Error).await;
    assert!(words.starts_with("deploy/w.yaml:6: tidegate.dev/health is no CEL expression about Widget: "), "{words}");
    let second = scene.push(&[("deploy/w.yaml", &widget(ready, ""))]).await;
    scene.pass(10).await;
    let words = scene.last(&second).unwrap().words;
    assert_eq!(words, "w: waits until self.status.phase == 'Ready' (no such key: status)");
    let phase = |scene: &Scene, phase: &str| {
        let patch = value!({"status": {"phase": phase}});
        scene.patch("example.org", "v1", "widgets", "", "w", patch).unwrap();
    };
    phase(&scene, "Waiting");
    scene.pass(5).await;
    assert_eq!(scene.last(&second).unwrap().words, "w: waits until self.status.phase == 'Ready'");
    phase(&scene, "Ready");
    scene.until(&second, State::Success).await;
    phase(&scene, "Broken");
    let words = scene.until(&second, State::Failure).await;
    assert_eq!(words, "w: failed: has(self.status) && self.status.phase == 'Broken'");
    scene.end().await;
}
