//! The verbs as their user meets them: the real program on the embedded cluster, with `tidegate run` at work.
//!
//! Each story is a transcript in `stories/`: what was typed, what was printed, how it ended.
//! `TIDEGATE_BLESS=1 cargo test --test program verbs::` writes the transcripts anew; look at the difference before keeping it.

mod begins;
mod ends;
mod migrate;
mod pages;
mod scene;

use scene::Scene;

#[test]
fn a_canary_is_paused_promoted_and_undone() {
    let mut scene = Scene::open("canary");
    scene.types("create -f examples/canary.yaml");
    scene.types("status web");
    scene.shows("web", "Healthy", [4, 4]);
    scene.types("set image web web=registry.example/web:2.0");
    scene.shows("web", "Paused", [4, 4]);
    scene.types("list rollouts");
    scene.types("status web --watch=false");
    scene.types("status web --timeout 10ms");
    scene.types("pause web");
    scene.settles("web", "manually paused");
    scene.types("promote web");
    scene.settles("web", "CanaryPauseStep");
    scene.types("promote web");
    scene.types("status web");
    scene.settles("web", "Healthy");
    scene.types("history web");
    scene.types("undo web");
    scene.settles("web", "Paused");
    scene.types("promote web --full");
    scene.types("status web");
    scene.settles("web", "Healthy");
    scene.types("history web");
    scene.types("undo web --to-revision 3");
    scene.types("undo web --to-revision 7");
    scene.types("promote web");
    scene.types("restart web");
    scene.types("status web");
    scene.ends();
}

#[test]
fn whoever_changes_by_hand_what_git_keeps_is_told_what_becomes_of_it() {
    let mut scene = Scene::open("synced");
    scene.applies("tests/verbs/synced.yaml");
    scene.settles("web", "Healthy");
    scene.settles("api", "Healthy");
    scene.types("set image web web=registry.example/web:2.0");
    scene.settles("web", "Paused");
    // It writes status only, about which git says nothing, as about the moment of a restart.
    scene.types("promote web");
    scene.settles("web", "Healthy");
    scene.types("pause web");
    scene.types("restart web");
    scene.types("pause api");
    scene.types("set image api api=registry.example/api:2.0");
    scene.types("set image web web=registry.example/web:3.0 --hold");
    scene.types("undo web");
    scene.ends();
}

#[test]
fn an_abort_goes_back_and_a_retry_tries_again() {
    let mut scene = Scene::open("abort");
    scene.types("create -f examples/canary.yaml");
    scene.settles("web", "Healthy");
    scene.types("set image web *=registry.example/web:bad");
    // Both pods, and the line that says what it waits for.
    let is_stuck = |tree: &str| {
        let is_counted = tree.contains("Current:       5\n") && tree.contains("Available:     3\n");
        is_counted && tree.matches("ImagePullBackOff").count() == 3 && !tree.contains("Terminating")
    };
    let tree = scene.sees("web", is_stuck);
    scene.notes("web", &tree);
    scene.types("abort web");
    scene.shows("web", "Degraded", [4, 4]);
    scene.types("status web");
    scene.types("promote web");
    scene.types("retry rollout web");
    scene.sees("web", is_stuck);
    scene.types("undo web");
    scene.types("status web");
    scene.ends();
}

#[test]
fn blue_green_waits_for_a_promotion() {
    let mut scene = Scene::open("blue-green");
    scene.applies("examples/blue-green.yaml");
    scene.settles("shop", "Healthy");
    scene.types("set image shop shop=registry.example/shop:2.0");
    scene.shows("shop", "Paused", [6, 3]);
    scene.types("promote shop --skip-current-step");
    scene.types("promote shop -o name");
    scene.types("status shop");
    scene.ends();
}

#[test]
fn a_referenced_workload_is_what_changes() {
    let mut scene = Scene::open("workload");
    scene.applies("tests/verbs/workload.yaml");
    scene.settles("web", "Healthy");
    scene.types("set image web web=registry.example/web:2.0");
    // The Rollout itself has not changed: only what it comes to tells that the change was taken up.
    scene.settles("web", "web:2.0 (stable)");
    scene.types("undo web -o name");
    scene.settles("web", "revision:3");
    scene.settles("web", "web:1.0 (stable)");
    scene.types("history web");
    scene.types("set image web other=x");
    scene.ends();
}

#[test]
fn bad_input_gets_one_clear_message() {
    let mut scene = Scene::open("bad-input");
    scene.types("get rollout web");
    scene.types("list rollouts");
    scene.types("create -f examples/canary.yaml");
    scene.settles("web", "Healthy");
    scene.types("get rollout wbe");
    scene.types("promote nothing-like-it");
    scene.types("pause web nope");
    scene.types("set image web nope=x");
    scene.types("set image web nope");
    scene.types("restart web --in soon");
    scene.types("promote web --full --skip-all-steps -c");
    scene.types("terminate analysisrun nope");
    scene.types("retry experiment nope");
    scene.types("create -f examples/blue-green.yaml");
    scene.types("create -f examples/nowhere.yaml");
    scene.types("create");
    scene.types("create -f examples/canary.yaml");
    scene.types("get rollout web -n elsewhere");
    scene.types("get rollout web --context nope");
    scene.types("get rollout web --kubeconfig nowhere");
    scene.types("get rollout web --server https://127.0.0.1:1");
    scene.types("completion nosuchshell");
    scene.types("retry web");
    scene.types("terminate web");
    scene.types("get web");
    scene.types("get web -w");
    scene.types("get rolout web");
    scene.types("retry deployment web");
    scene.types("history nope");
    scene.types("history web --revision 9");
    scene.types("undo nope");
    scene.types("status nope");
    scene.types("abort nope");
    scene.types("restart nope");
    scene.types("sync nope");
    scene.types("suspend nope");
    scene.types("status web --timeout soon");
    scene.types("get rollout web --request-timeout soon");
    scene.types("get rollout web --loglevel loud");
    scene.types("create analysisrun --from nope");
    scene.types("lint examples/nowhere.yaml");
    scene.types("diff examples/nowhere.yaml");
    scene.types("diff --source nope examples/canary.yaml");
    scene.types("replay Cargo.toml");
    scene.types("crds nope");
    scene.types("dev examples/nowhere");
    scene.ends();
}

#[test]
fn an_analysis_is_started_from_a_template_and_ended() {
    let mut scene = Scene::open("analysis");
    scene.types("create -f tests/verbs/template.yaml");
    scene.types("create analysisrun --from rate");
    scene.types("create analysisrun --from rate -a host=example --name now");
    scene.types("create analysisrun --from-file tests/verbs/template.yaml -a host=example --name later -o name");
    scene.types("create analysisrun --global --from rate --name never");
    scene.types("terminate analysisrun now later");
    scene.types("list experiments");
    scene.ends();
}

#[test]
fn the_program_is_a_plugin_under_either_name() {
    let mut scene = Scene::open("plugin");
    scene.applies("examples/canary.yaml");
    scene.settles("web", "Healthy");
    scene.types_as("kubectl-argo-rollouts", "-n default set image web web=registry.example/web:2.0");
    scene.shows("web", "Paused", [4, 4]);
    scene.types_as("kubectl-argo-rollouts", "-n default get rollout web");
    scene.types_as("kubectl-tidegate", "get ro web --no-color");
    scene.types_as("kubectl-argo-rollouts", "promote");
    scene.types("promote");
    scene.types_as("kubectl-argo-rollouts", "version --short");
    scene.types_as("kubectl-argo-rollouts", "-n default --loglevel debug -v 1 get rollout nope --request-timeout 5");
    scene.ends();
}

#[test]
fn a_rollout_that_needs_what_is_not_there_says_so() {
    let mut scene = Scene::open("unsupported");
    scene.applies("tests/verbs/unsupported.yaml");
    let tree = scene.sees("web", |tree| tree.contains("Degraded"));
    scene.notes("web", &tree);
    scene.types("status web");
    scene.ends();
}

#[test]
fn sources_are_listed_of_one_namespace_or_of_all() {
    let mut scene = Scene::open("sources");
    scene.types("sources");
    scene.applies("tests/verbs/sources.yaml");
    for namespace in ["default", "kube-system"] {
        let line = format!("sources -n {namespace}");
        while !scene.output("tidegate", &line).0.contains("suspended") {}
    }
    scene.types("sources");
    scene.types("sources -n kube-system");
    scene.types("sources -A");
    scene.types("sources --all-namespaces -o name");
    scene.ends();
}

#[test]
fn without_the_definitions_the_verbs_say_what_to_install() {
    let mut scene = Scene::with("bare", &["--controllers", "kubelet"], &[]);
    scene.types("sources");
    scene.types("sources -A");
    scene.types("sync shop");
    scene.types("list rollouts");
    scene.types("get rollout web");
    scene.types("abort web");
    scene.types("history web");
    scene.types("create -f examples/canary.yaml");
    scene.ends();
}

#[test]
fn a_watch_in_a_pipe_tells_what_changes() {
    let mut scene = Scene::open("watch");
    scene.applies("examples/canary.yaml");
    scene.settles("web", "Healthy");
    let mut watch = scene.watches("get rollout web -w");
    watch.until(&["⟳ web"]);
    scene.types("set image web web=registry.example/web:2.0");
    watch.until(&["Rollout web ॥ Paused", "ReplicaSet web-7cd488988d ✔ Healthy canary"]);
    scene.settles("web", "Paused");
    scene.types("abort web");
    watch.until(&["Rollout web ✖ Degraded RolloutAborted"]);
    let mut list = scene.watches("list rollouts -w");
    list.until(&["web"]);
    scene.types("promote web --full");
    list.until(&["Healthy"]);
    assert_eq!(watch.interrupted(), Some(0));
    scene.ends();
}

#[test]
fn completions_know_the_verbs() {
    let scene = Scene::open("");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let (script, code) = scene.output("tidegate", &format!("completion {shell}"));
        assert_eq!(code, Some(0), "{shell}");
        assert!(script.contains("promote") && script.contains("kubeconfig"), "{shell}");
    }
}
