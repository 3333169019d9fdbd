//! From git push to commit status: the whole daemon on the embedded cluster and a real bare repository, in virtual time.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../git/authority.rs"]
mod authority;
mod crash;
mod hooks;
mod host;
mod hosted;
mod hostile;
#[path = "../git/keys.rs"]
#[allow(dead_code)] // tags are not signed here
mod keys;
mod kustomize;
mod leaving;
mod line;
mod objects;
mod remote;
mod renames;
mod rights;
mod rules;
mod scene;
#[path = "../git/server.rs"]
#[allow(dead_code)] // half of it is about hosts that misbehave in ways of their own
mod server;
mod shares;
mod words;

use scene::{Scene, map, web};
use tidegate::sync::State;

#[tokio::test(start_paused = true)]
async fn a_commit_succeeds_only_when_it_is_fully_rolled_out() {
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/web.yaml", &web("web:1"))]).await;
    assert_eq!(scene.until(&first, State::Success).await, "rolled out: 3 objects");
    let second = scene.push(&[("deploy/web.yaml", &web("web:2"))]).await;
    let begun = scene.elapsed();
    assert_eq!(scene.until(&second, State::Success).await, "rolled out: 3 objects");
    assert!(scene.elapsed() - begun >= 20, "two pauses of ten seconds");
    let words: Vec<String> = scene
        .told
        .iter()
        .filter(|report| report.commit == second.as_str())
        .map(|report| report.words.clone())
        .collect();
    assert!(
        words.iter().any(|words| words.starts_with("web: step 2/4, 25 %, 1 of 4 pods, pauses until ")),
        "{words:#?}"
    );
    let rollout = scene.rollout("web");
    assert_eq!(rollout.at(&["status", "stableRS"]), rollout.at(&["status", "currentPodHash"]));
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn s58_a_file_that_is_gone_is_pruned_and_a_broken_one_prunes_nothing() {
    let mut scene = Scene::new();
    let both = [("deploy/a.yaml", map("a", "x")), ("deploy/b.yaml", map("b", "x"))];
    let both: Vec<(&str, &str)> = both.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let first = scene.push(&both).await;
    scene.until(&first, State::Success).await;
    let broken = scene.push(&[("deploy/a.yaml", "kind: [\n"), ("deploy/b.yaml", "")]).await;
    let words = scene.until(&broken, State::Error).await;
    assert!(words.starts_with("deploy/a.yaml:"), "{words}");
    assert!(scene.get("", "configmaps", "b").is_some());
    let fixed = scene.push(&[("deploy/a.yaml", &map("a", "z"))]).await;
    scene.until(&fixed, State::Success).await;
    scene.pass(5).await;
    assert!(scene.get("", "configmaps", "b").is_none());
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_repository_without_a_host_keeps_what_commits_are_told_as_notes() {
    let mut scene = Scene::new();
    let first = scene.push(&[("deploy/web.yaml", &web("web:1"))]).await;
    scene.until(&first, State::Success).await;
    let bad = scene.push(&[("deploy/web.yaml", &web("web:crash"))]).await;
    scene.until(&bad, State::Failure).await;
    let third = scene.push(&[("deploy/web.yaml", &web("web:3"))]).await;
    scene.pass(5).await;
    let fourth = scene.push(&[("deploy/web.yaml", &web("web:4"))]).await;
    scene.until(&fourth, State::Success).await;
    let note = |commit: &str| scene.repository.note(commit).unwrap();
    assert_eq!(note(&first), "tidegate/default/shop: success, rolled out: 3 objects\n");
    assert!(note(&bad).starts_with("tidegate/default/shop: failure, web: held since commit "), "{}", note(&bad));
    assert_eq!(note(&third), format!("tidegate/default/shop: superseded, by commit {}\n", &fourth[..8]));
    assert_eq!(note(&fourth), "tidegate/default/shop: success, rolled out: 3 objects\n");
    scene.end().await;
}
