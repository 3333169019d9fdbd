//! A Rollout that gets another name or another namespace: what it serves is served all the time.

use tidegate::{
    kubernetes::value::Value,
    model::{git_source::Prune, weight::Limit},
    sync::State,
    value,
};

use crate::scene::{Scene, spec, web};

fn scene() -> Scene {
    let mut source = spec();
    source.prune = Prune::UpTo(Limit::Percent(100));
    Scene::with(source)
}

/// How many ready pods a Service leads to.
fn ready(scene: &Scene, service: &str) -> usize {
    let slices = scene.list("discovery.k8s.io", "endpointslices");
    let of = slices
        .iter()
        .filter(|slice| slice.str_at(&["metadata", "labels", "kubernetes.io/service-name"]) == Some(service));
    let is_ready =
        |endpoint: &&Value| endpoint.at(&["conditions", "ready"]).and_then(Value::as_bool).unwrap_or_default();
    of.map(|slice| slice.list_at(&["endpoints"]).iter().filter(is_ready).count()).sum()
}

/// Waits until a commit is told this; a Service leads to at least so many ready pods all the while.
async fn serving(scene: &mut Scene, commit: &str, state: State, services: &[&str], pods: usize) -> String {
    for _ in 0..600 {
        for service in services {
            let ready = ready(scene, service);
            assert!(ready >= pods, "{service} leads to {ready} of {pods} pods; {:?}", scene.last(commit));
        }
        if let Some(report) = scene.last(commit).filter(|report| report.state == state) {
            return report.words;
        }
        scene.pass(1).await;
    }
    panic!("{} was not told to {commit}: {:?}", state.name(), scene.last(commit));
}

fn manager(scene: &Scene, service: &str) -> Option<String> {
    let service = scene.get("", "services", service)?;
    service.annotation("argo-rollouts.argoproj.io/managed-by-rollouts").map(|name| name.to_string())
}

fn renamed(image: &str) -> String {
    web(image).replace("kind: Rollout\nmetadata: {name: web}", "kind: Rollout\nmetadata: {name: shop}")
}

#[tokio::test(start_paused = true)]
async fn a_rollout_renamed_under_its_services_hands_them_over_and_serves_all_the_time() {
    for image in ["web:1", "web:2"] {
        let mut scene = scene();
        let first = scene.push(&[("deploy/web.yaml", &web("web:1"))]).await;
        scene.until(&first, State::Success).await;
        scene.pass(5).await;
        let second = scene.push(&[("deploy/web.yaml", &renamed(image))]).await;
        let words = serving(&mut scene, &second, State::Success, &["web", "web-canary"], 4).await;
        assert_eq!(words, "rolled out: 3 objects");
        let told: Vec<State> = scene.told.iter().filter(|told| told.commit == *second).map(|told| told.state).collect();
        assert!(!told.contains(&State::Failure), "{:#?}", scene.told);
        scene.pass(60).await;
        assert_eq!((ready(&scene, "web"), ready(&scene, "web-canary")), (4, 4), "{image}");
        assert!(scene.get("argoproj.io", "rollouts", "web").is_none());
        assert_eq!(scene.rollout("shop").int_at(&["status", "availableReplicas"]), Some(4));
        assert_eq!(manager(&scene, "web").as_deref(), Some("shop"));
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_renamed_rollout_that_fails_leaves_the_old_pods_serving_and_its_revert_takes_the_services_back() {
    let mut scene = scene();
    let first = scene.push(&[("deploy/web.yaml", &web("web:1"))]).await;
    scene.until(&first, State::Success).await;
    scene.pass(5).await;
    let bad = scene.push(&[("deploy/web.yaml", &renamed("web:bad"))]).await;
    let words = serving(&mut scene, &bad, State::Failure, &["web"], 4).await;
    assert!(words.contains("ImagePullBackOff"), "{words}");
    let back = scene.push(&[("deploy/web.yaml", &web("web:1"))]).await;
    serving(&mut scene, &back, State::Success, &["web"], 4).await;
    assert_eq!(manager(&scene, "web").as_deref(), Some("web"));
    assert!(scene.get("argoproj.io", "rollouts", "shop").is_none());
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_blue_green_rollout_renamed_under_its_services_serves_all_the_time() {
    let of = |name: &str, image: &str| {
        let text = renamed(image);
        let (head, rest) = text.split_once("  strategy:\n").unwrap();
        let (_, tail) = rest.split_once("  template:\n").unwrap();
        let strategy = "  strategy: {blueGreen: {activeService: web, previewService: web-canary}}\n  template:\n";
        format!("{head}{strategy}{tail}")
            .replace("kind: Rollout\nmetadata: {name: shop}", &format!("kind: Rollout\nmetadata: {{name: {name}}}"))
    };
    let mut scene = scene();
    let first = scene.push(&[("deploy/web.yaml", &of("web", "web:1"))]).await;
    scene.until(&first, State::Success).await;
    scene.pass(5).await;
    let second = scene.push(&[("deploy/web.yaml", &of("shop", "web:2"))]).await;
    serving(&mut scene, &second, State::Success, &["web"], 4).await;
    scene.pass(60).await;
    assert_eq!(ready(&scene, "web"), 4);
    assert_eq!(manager(&scene, "web").as_deref(), Some("shop"));
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_not_the_sources_is_handed_over_too() {
    let services = |text: &str| {
        text.split_once("---\n").map(|(rollout, services)| (rollout.to_owned(), services.to_owned())).unwrap()
    };
    let mut scene = scene();
    for name in ["web", "web-canary"] {
        let service = value!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
        scene.create("", "v1", "services", service).unwrap();
    }
    let first = scene.push(&[("deploy/web.yaml", &services(&web("web:1")).0)]).await;
    scene.until(&first, State::Success).await;
    scene.pass(5).await;
    let second = scene.push(&[("deploy/web.yaml", &services(&renamed("web:2")).0)]).await;
    serving(&mut scene, &second, State::Success, &["web"], 4).await;
    assert_eq!(manager(&scene, "web").as_deref(), Some("shop"));
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_moves_to_another_namespace_serves_in_the_old_one_until_the_new_one_is_healthy() {
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n---\n";
    let moved = |image: &str| {
        let text = web(image);
        ["web", "web-canary"].iter().fold(text, |text, name| {
            text.replace(
                &format!("metadata: {{name: {name}}}"),
                &format!("metadata: {{name: {name}, namespace: other}}"),
            )
        })
    };
    let mut scene = scene();
    let first = scene.push(&[("deploy/ns.yaml", namespace), ("deploy/web.yaml", &web("web:1"))]).await;
    scene.until(&first, State::Success).await;
    scene.pass(5).await;
    let bad = scene.push(&[("deploy/web.yaml", &moved("web:bad"))]).await;
    serving(&mut scene, &bad, State::Failure, &["web"], 4).await;
    scene.pass(60).await;
    assert_eq!(ready(&scene, "web"), 4, "the old one serves as long as the new one does not");
    let good = scene.push(&[("deploy/web.yaml", &moved("web:2"))]).await;
    scene.until(&good, State::Success).await;
    assert!(scene.get("argoproj.io", "rollouts", "web").is_none(), "success comes after the deletion");
    let there = scene.cluster.with(|store| store.get("argoproj.io", "rollouts", "other", "web").cloned()).unwrap();
    assert_eq!(there.value.int_at(&["status", "availableReplicas"]), Some(4));
    scene.end().await;
}
