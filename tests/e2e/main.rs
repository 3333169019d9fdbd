//! The engine on a whole cluster, through its API alone: what people do to Rollouts, and what comes of it.
//!
//! `tests/e2e/run` starts a real control plane, the kubelet beside this file and the binary, and names them by
//! `TIDEGATE_E2E_KUBECONFIG`. Without it the same stories run on the embedded cluster, with the daemon in this process.
//! Every wait is for a change; none is for a time.
#![allow(missing_docs, clippy::unwrap_used)]

mod forecast;
mod lease;
mod scene;
mod sync;

use scene::Scene;
use tidegate::{engine::resource, kubernetes::value::Value, value};

/// A canary of four with half of them first, until a person goes on.
fn canary(name: &str) -> Value {
    rollout(name, value!({"canary": {"steps": [{"setWeight": 50}, {"pause": {}}]}}))
}

fn rollout(name: &str, strategy: Value) -> Value {
    value!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": name},
        "spec": {
            "replicas": 4, "selector": {"matchLabels": {"app": name}}, "template": template(name, "1.0"),
            "strategy": strategy,
        },
    })
}

fn template(name: &str, version: &str) -> Value {
    let image = format!("registry.example/{name}:{version}");
    value!({
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": image}]},
    })
}

fn service(name: &str, app: &str) -> Value {
    value!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": {"app": app}, "ports": [{"port": 80}]},
    })
}

/// What a Rollout says: stable hash, hash of its template, replicas of the new version.
fn versions(rollout: &Value) -> (String, String, i64) {
    let text = |field: &str| rollout.str_at(&["status", field]).unwrap_or_default().to_owned();
    let updated = rollout.int_at(&["status", "updatedReplicas"]).unwrap_or(0);
    (text("stableRS"), text("currentPodHash"), updated)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_canary_pauses_until_it_is_promoted() {
    let scene = Scene::open("promote").await;
    scene.create(&resource::rollouts(), canary("web")).await;
    let (first, ..) = versions(&scene.phase("web", "Healthy").await);
    scene.set_version("web", "2.0").await;
    let (stable, second, updated) = versions(&scene.phase("web", "Paused").await);
    assert_eq!((stable, updated), (first.clone(), 2));
    assert_eq!(scene.sizes("web").await, [(first.clone(), 2), (second.clone(), 2)]);

    scene.promote("web").await;
    let done = scene.phase("web", "Healthy").await;
    assert_eq!(versions(&done), (second.clone(), second.clone(), 4));
    assert_eq!(scene.sizes("web").await, [(first, 0), (second, 4)]);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_aborted_canary_returns_to_stable_and_can_be_tried_again() {
    let scene = Scene::open("abort").await;
    scene.create(&resource::rollouts(), canary("web")).await;
    let (first, ..) = versions(&scene.phase("web", "Healthy").await);
    scene.set_version("web", "2.0").await;
    let (_, second, _) = versions(&scene.phase("web", "Paused").await);

    scene.set_status("web", value!({"abort": true})).await;
    let aborted = scene.phase("web", "Degraded").await;
    assert_eq!(aborted.str_at(&["status", "message"]), Some("RolloutAborted: Rollout aborted update to revision 2"));
    scene.size("web", &first, 4).await;
    scene.size("web", &second, 0).await;

    scene.set_status("web", value!({"abort": false})).await;
    let again = scene.phase("web", "Paused").await;
    assert_eq!(versions(&again), (first, second.clone(), 2));
    scene.promote("web").await;
    assert_eq!(versions(&scene.phase("web", "Healthy").await), (second.clone(), second, 4));
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blue_green_switches_its_services_when_a_person_says_so() {
    let scene = Scene::open("switch").await;
    for name in ["shop", "shop-preview"] {
        scene.create(&resource::services(), service(name, "shop")).await;
    }
    let strategy = value!({"blueGreen": {
        "activeService": "shop", "previewService": "shop-preview", "autoPromotionEnabled": false,
    }});
    scene.create(&resource::rollouts(), rollout("shop", strategy)).await;
    let (first, ..) = versions(&scene.phase("shop", "Healthy").await);
    scene.set_version("shop", "2.0").await;
    let (stable, second, _) = versions(&scene.phase("shop", "Paused").await);
    assert_eq!(stable, first);
    assert_eq!((scene.selects("shop").await, scene.selects("shop-preview").await), (first, second.clone()));

    scene.promote("shop").await;
    let (stable, ..) = versions(&scene.phase("shop", "Healthy").await);
    assert_eq!((stable, scene.selects("shop").await), (second.clone(), second));
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_are_given_back_when_no_rollout_leads_them_any_more() {
    let scene = Scene::open("release").await;
    for name in ["active", "stable"] {
        scene.create(&resource::services(), service(name, "shop")).await;
    }
    let strategy = value!({"blueGreen": {"activeService": "active"}});
    scene.create(&resource::rollouts(), rollout("shop", strategy)).await;
    let (first, ..) = versions(&scene.phase("shop", "Healthy").await);
    assert_eq!(scene.selects("active").await, first);

    let is_free = |service: &Value| service.at(&["spec", "selector"]) == Some(&value!({"app": "shop"}));
    let leads = |service: &Value| !is_free(service);
    let strategy = value!({"blueGreen": null, "canary": {"stableService": "stable"}});
    scene.change(&resource::rollouts(), "shop", value!({"spec": {"strategy": strategy}})).await;
    let free = scene.until(&resource::services(), "active", "given back", is_free).await;
    assert_eq!(free.at(&["metadata", "annotations"]), None);
    scene.until(&resource::services(), "stable", "taken over", leads).await;

    scene.delete(&resource::rollouts(), "shop").await;
    scene.until(&resource::services(), "stable", "given back", is_free).await;
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollout_that_names_a_missing_template_waits_for_it() {
    let scene = Scene::open("templates").await;
    let strategy = value!({"canary": {"analysis": {"templates": [{"templateName": "later"}]}}});
    let mut rollout = rollout("web", strategy);
    rollout.set_at(&["spec", "replicas"], 0);
    scene.create(&resource::rollouts(), rollout).await;
    let waits = scene.phase("web", "Degraded").await;
    let said = waits.str_at(&["status", "message"]).unwrap_or_default();
    assert!(said.ends_with("\"later\": AnalysisTemplate 'later' not found"), "{said}");

    let template = value!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisTemplate", "metadata": {"name": "later"},
        "spec": {"metrics": [{"name": "up", "provider": {"web": {"url": "https://example.test"}}}]},
    });
    scene.create(&resource::templates(), template).await;
    scene.phase("web", "Healthy").await;
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn undo_brings_the_first_version_back_as_a_new_revision() {
    let scene = Scene::open("undo").await;
    scene.create(&resource::rollouts(), rollout("web", value!({"canary": {}}))).await;
    let (first, ..) = versions(&scene.phase("web", "Healthy").await);
    scene.set_version("web", "2.0").await;
    let (second, ..) = versions(&scene.phase("web", "Healthy").await);
    assert_ne!(first, second);

    scene.set_version("web", "1.0").await;
    let done = scene.phase("web", "Healthy").await;
    assert_eq!(versions(&done), (first.clone(), first.clone(), 4));
    let revision = ["metadata", "annotations", "rollout.argoproj.io/revision"];
    assert_eq!(done.str_at(&revision), Some("3"));
    assert_eq!(scene.sizes("web").await, [(second, 0), (first, 4)]);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workload_is_taken_over_and_followed() {
    let scene = Scene::open("workload").await;
    let deployment = value!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "app"},
        "spec": {"replicas": 4, "selector": {"matchLabels": {"app": "app"}}, "template": template("app", "1.0")},
    });
    scene.create(&resource::deployments(), deployment).await;
    let mut rollout = rollout("app", value!({"canary": {"steps": [{"setWeight": 50}, {"pause": {}}]}}));
    rollout.remove_at(&["spec", "template"]);
    let workload = value!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "app", "scaleDown": "onsuccess"});
    rollout.set_at(&["spec", "workloadRef"], workload);
    scene.create(&resource::rollouts(), rollout).await;
    let (first, ..) = versions(&scene.phase("app", "Healthy").await);
    let idle = |deployment: &Value| deployment.int_at(&["spec", "replicas"]) == Some(0);
    scene.until(&resource::deployments(), "app", "has no replicas", idle).await;

    scene.change(&resource::deployments(), "app", value!({"spec": {"template": template("app", "2.0")}})).await;
    let changed = |rollout: &Value| rollout.str_at(&["status", "phase"]) == Some("Paused");
    let paused = scene.until(&resource::rollouts(), "app", "is Paused", changed).await;
    let (stable, second, updated) = versions(&paused);
    assert_eq!((stable, updated), (first, 2));
    scene.promote("app").await;
    assert_eq!(versions(&scene.phase("app", "Healthy").await), (second.clone(), second, 4));
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_cannot_start_is_not_promoted_and_the_old_one_serves() {
    let scene = Scene::open("bad").await;
    let mut rollout = rollout("web", value!({"canary": {"maxUnavailable": 0, "maxSurge": 1}}));
    rollout.set_at(&["spec", "progressDeadlineSeconds"], 2);
    scene.create(&resource::rollouts(), rollout).await;
    let (first, ..) = versions(&scene.phase("web", "Healthy").await);
    scene.set_version("web", "bad").await;
    let stuck = scene.phase("web", "Degraded").await;
    assert_eq!(versions(&stuck).0, first);
    assert!(stuck.int_at(&["status", "availableReplicas"]) >= Some(4), "{}", stuck.get("status").unwrap().to_json());
    scene.close().await;
}
