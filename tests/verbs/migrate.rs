//! Migrations: Deployments that become Rollouts and back without a pod made or lost, the swap of controllers, and GitSources for
//! what Argo CD and Flux keep.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, thread,
    time::{Duration, Instant},
};

use super::scene::Scene;
use tidegate::{
    engine::{
        key::{Place, Resource},
        observe::resource,
    },
    io::watch,
    kubernetes::value::Value,
    value,
};

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(60);

fn list(scene: &Scene, resource: &Resource) -> Vec<Value> {
    scene.asks(async |api| watch::list(&api, &watch::Scope::of(resource)).await.unwrap().0)
}

/// The pods of an app that are ready and stay, by uid.
fn pods(scene: &Scene, app: &str) -> BTreeSet<String> {
    let all = list(scene, &resource::pods()).into_iter().filter(|pod| {
        let is_ready = pod.list_at(&["status", "conditions"]).iter().any(|condition| {
            condition.str_at(&["type"]) == Some("Ready") && condition.str_at(&["status"]) == Some("True")
        });
        let is_of = pod.str_at(&["metadata", "labels", "app"]) == Some(app);
        is_of && is_ready && pod.at(&["metadata", "deletionTimestamp"]).is_none()
    });
    all.map(|pod| pod.str_at(&["metadata", "uid"]).unwrap().to_owned()).collect()
}

#[track_caller]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < end, "it never came to that: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[track_caller]
fn succeeds(scene: &Scene, line: &str) -> String {
    let (text, code) = scene.output("tidegate", line);
    assert_eq!(code, Some(0), "{line}\n{text}");
    text
}

const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, labels: {team: a}}\nspec:\n  replicas: 4\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: registry.example/web:1.0}]}\n";
const AUTOSCALER: &str = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec: {minReplicas: 4, maxReplicas: 4, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}\n";

#[test]
fn a_rollout_takes_the_pods_of_a_deployment_and_gives_them_back() {
    let scene = Scene::open("");
    scene.creates("web.yaml", &format!("{DEPLOYMENT}---\n{AUTOSCALER}"));
    until("four pods", || pods(&scene, "web").len() == 4);
    let before = pods(&scene, "web");

    let plan = succeeds(&scene, "migrate deployment web");
    assert!(plan.contains("nothing was written; --yes does it"), "{plan}");
    assert!(list(&scene, &resource::rollouts()).is_empty());
    succeeds(&scene, "migrate deployment web --yes");
    scene.settles("web", "Healthy");
    assert_eq!(pods(&scene, "web"), before);
    assert!(list(&scene, &resource::deployments()).is_empty());
    let target = || {
        let scalers = list(&scene, &Resource::new("autoscaling", "v2", "horizontalpodautoscalers"));
        scalers[0].str_at(&["spec", "scaleTargetRef", "kind"]).unwrap().to_owned()
    };
    assert_eq!(target(), "Rollout");
    let rollout = &list(&scene, &resource::rollouts())[0];
    assert_eq!(rollout.at(&["metadata", "labels"]), Some(&value!({"team": "a"})));
    assert_eq!(rollout.at(&["metadata", "annotations", "tidegate.dev/migration"]), None);

    // It is a Rollout like any other.
    succeeds(&scene, "set image web web=registry.example/web:2.0");
    until("other pods", || pods(&scene, "web").is_disjoint(&before) && pods(&scene, "web").len() == 4);
    scene.settles("web", "Healthy");
    let before = pods(&scene, "web");

    succeeds(&scene, "migrate rollout web --yes");
    assert_eq!(pods(&scene, "web"), before);
    assert!(list(&scene, &resource::rollouts()).is_empty());
    assert_eq!(target(), "Deployment");
    let sets = list(&scene, &resource::sets());
    assert_eq!(sets.len(), 1);
    assert_eq!(sets[0].list_at(&["metadata", "ownerReferences"])[0].str_at(&["kind"]), Some("Deployment"));
    // And a Deployment like any other, which its autoscaler scales again.
    scene.asks(async |api| {
        let patch = value!({"spec": {"minReplicas": 5, "maxReplicas": 5}});
        let scalers = Resource::new("autoscaling", "v2", "horizontalpodautoscalers");
        api.patch(&scalers, &Place::new("default", "web"), "", &patch).await.unwrap();
    });
    until("a fifth pod", || pods(&scene, "web").len() == 5);
    assert!(pods(&scene, "web").is_superset(&before));
}

#[test]
fn a_migration_that_was_interrupted_goes_on() {
    let scene = Scene::open("");
    scene.creates("web.yaml", DEPLOYMENT);
    until("four pods", || pods(&scene, "web").len() == 4);
    let before = pods(&scene, "web");
    // Cut off at whatever it is doing, again and again, until it is through.
    for milliseconds in [40_u64, 80, 160, 240, 320, 480, 640, 1280] {
        let mut command = scene.command("tidegate", "migrate deployment web --yes");
        let mut process =
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(milliseconds));
        let _ = process.kill();
        process.wait().unwrap();
        let rollouts = list(&scene, &resource::rollouts());
        let is_through = rollouts
            .first()
            .is_some_and(|rollout| rollout.at(&["metadata", "annotations", "tidegate.dev/migration"]).is_none());
        if is_through {
            break;
        }
    }
    let (said, code) = scene.output("tidegate", "migrate deployment web --yes");
    assert!(code == Some(0) || said.contains("there is a Rollout web already"), "{said}");
    scene.settles("web", "Healthy");
    assert_eq!(pods(&scene, "web"), before);
}

#[test]
fn a_rollout_that_refers_to_a_deployment_has_its_pods_first() {
    let scene = Scene::open("");
    scene.creates("web.yaml", DEPLOYMENT);
    until("four pods", || pods(&scene, "web").len() == 4);
    let before = pods(&scene, "web");
    succeeds(&scene, "migrate deployment web --workload-ref --yes");
    until("pods of the Rollout alone", || pods(&scene, "web").len() == 4 && pods(&scene, "web").is_disjoint(&before));
    let replicas = || list(&scene, &resource::deployments())[0].int_at(&["spec", "replicas"]);
    assert_eq!(replicas(), Some(0));
    succeeds(&scene, "migrate rollout web --yes");
    assert_eq!(replicas(), Some(4));
    until("pods of the Deployment alone", || pods(&scene, "web").len() == 4);
    assert!(list(&scene, &resource::rollouts()).is_empty());
}

#[test]
fn what_moves_or_is_kept_in_git_is_not_migrated() {
    let scene = Scene::open("");
    scene.creates("web.yaml", &DEPLOYMENT.replace("web:1.0", "web:bad"));
    let (said, code) = scene.output("tidegate", "migrate deployment web --yes");
    assert!(said.contains("cannot be migrated now: it is being rolled out"), "{said}");
    assert_eq!(code, Some(2));
    scene
        .creates("api.yaml", &DEPLOYMENT.replace("web", "api").replace("team: a", "tidegate.dev/source: default.shop"));
    until("four pods", || pods(&scene, "api").len() == 4);
    let (said, _) = scene.output("tidegate", "migrate deployment api --yes");
    assert!(
        said.contains("the GitSource default.shop keeps it") && said.contains("tidegate -n default suspend shop"),
        "{said}"
    );
    let (said, _) = scene.output("tidegate", "migrate deployment wev");
    assert!(said.contains("did you mean web?"), "{said}");
    assert!(list(&scene, &resource::rollouts()).is_empty());
}

#[test]
fn files_become_files() {
    let scene = Scene::open("");
    let file = scene.folder().join("web.yaml");
    fs::write(&file, DEPLOYMENT).unwrap();
    let rollout = succeeds(&scene, &format!("migrate deployment {}", file.display()));
    assert!(rollout.contains("kind: Rollout") && rollout.contains("image: registry.example/web:1.0"), "{rollout}");
    fs::write(&file, rollout).unwrap();
    let deployment = succeeds(&scene, &format!("migrate rollout {}", file.display()));
    let read = |text: &str| tidegate::manifest::read("x", text.as_bytes()).objects[0].value.clone();
    assert_eq!(read(&deployment), read(DEPLOYMENT));
}

const ARGO: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: argo-rollouts}\n---\n\
apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: argo-rollouts, namespace: argo-rollouts, labels: {app.kubernetes.io/name: argo-rollouts}}\nspec:\n  replicas: 1\n  selector: {matchLabels: {app.kubernetes.io/name: argo-rollouts}}\n  template:\n    metadata: {labels: {app.kubernetes.io/name: argo-rollouts}}\n    spec: {containers: [{name: argo-rollouts, image: 'quay.io/argoproj/argo-rollouts:v1.10.1'}]}\n---\n\
apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argo-rollouts-config, namespace: argo-rollouts}\ndata:\n  stepPlugins: |\n    - name: example/step\n      location: https://example/step\n";

#[test]
fn the_controllers_are_swapped_and_swapped_back() {
    let scene = Scene::open("");
    scene.creates("argo.yaml", ARGO);
    succeeds(&scene, "create -f examples/canary.yaml");
    scene.settles("web", "Healthy");
    let before = pods(&scene, "web");
    let replicas = |name: &str| {
        let found = list(&scene, &resource::deployments())
            .into_iter()
            .find(|one| one.str_at(&["metadata", "name"]) == Some(name));
        found.and_then(|one| one.int_at(&["spec", "replicas"]))
    };
    let review = succeeds(&scene, "migrate argo-rollouts");
    assert!(
        review.contains("the plugin example/step (stepPlugins) is not run; no Rollout or template names it"),
        "{review}"
    );
    assert_eq!((replicas("argo-rollouts"), replicas("tidegate")), (Some(1), None));
    let swap = succeeds(&scene, "migrate argo-rollouts --yes --watch 1s");
    assert!(swap.contains("0 made, 0 lost"), "{swap}");
    assert_eq!((replicas("argo-rollouts"), replicas("tidegate")), (Some(0), Some(2)));
    let back = succeeds(&scene, "migrate argo-rollouts --rollback --yes --watch 1s");
    assert!(back.contains("0 made, 0 lost"), "{back}");
    assert_eq!((replicas("argo-rollouts"), replicas("tidegate")), (Some(1), Some(0)));
    assert_eq!(pods(&scene, "web"), before);
}

const DEFINITION: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: applications.argoproj.io}\nspec:\n  group: argoproj.io\n  scope: Namespaced\n  names: {kind: Application, plural: applications, singular: application, listKind: ApplicationList}\n  versions:\n  - {name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n";
const APPLICATION: &str = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: shop, namespace: default}\nspec:\n  project: default\n  source: {repoURL: 'https://git.example/shop', path: deploy, targetRevision: main, directory: {recurse: true}}\n  destination: {server: 'https://kubernetes.default.svc', namespace: default}\n  syncPolicy: {automated: {prune: true, selfHeal: true}}\nstatus:\n  resources:\n  - {group: apps, kind: Deployment, name: web, namespace: default, version: v1}\n";

#[test]
fn both_tools_writing_is_seen_and_the_one_that_ended_gives_up_its_fields() {
    let scene = Scene::open("");
    scene.creates("crd.yaml", DEFINITION);
    until("the kind is served", || {
        scene.asks(async |api| api.get("/apis/argoproj.io/v1alpha1/applications").await.is_ok())
    });
    scene.creates("app.yaml", APPLICATION);
    let out = succeeds(&scene, "migrate argocd --live");
    assert!(out.contains("url: https://git.example/shop") && out.contains("everything has an equivalent"), "{out}");

    // A GitSource has adopted what Argo CD applied.
    let place = Place::new("default", "web");
    let applied = |manager: &str| {
        let object = tidegate::manifest::read("web.yaml", DEPLOYMENT.as_bytes()).objects[0].value.to_json();
        let path = format!("/apis/apps/v1/namespaces/default/deployments/web?fieldManager={manager}&force=true");
        scene.asks(async |api| {
            let request = http::Request::patch(path).header("content-type", "application/apply-patch+yaml");
            api.client().request_text(request.body(object.into_bytes()).unwrap()).await.unwrap();
        });
    };
    applied("argocd-controller");
    applied("tidegate");
    let source = "apiVersion: tidegate.dev/v1alpha1\nkind: GitSource\nmetadata: {name: shop}\nspec: {url: 'https://git.example/shop', serviceAccountName: deployer, interval: 10h}\n";
    scene.creates("source.yaml", source);
    scene.asks(async |api| {
        let status = value!({"status": {"inventory": [{"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "default", "name": "web"}]}});
        let sources = Resource::new("tidegate.dev", "v1alpha1", "gitsources");
        api.patch(&sources, &Place::new("default", "shop"), "status", &status).await.unwrap();
    });
    let (out, code) = scene.output("tidegate", "migrate argocd --live");
    assert!(
        out.contains("conflict: GitSource default/shop: Application default/shop keeps Deployment web in sync, too"),
        "{out}"
    );
    assert_eq!(code, Some(1));
    let managers = || {
        let object = scene.asks(async |api| api.object(&resource::deployments(), &place).await.unwrap());
        let all = object.list_at(&["metadata", "managedFields"]).iter();
        all.map(|entry| (entry.str_at(&["manager"]).unwrap().to_owned(), ())).collect::<BTreeMap<_, _>>()
    };
    let (out, code) = scene.output("tidegate", "migrate argocd --finish --yes");
    assert!(out.contains("Application default/shop still keeps it; end that first"), "{out}");
    assert_eq!(code, Some(1));
    assert!(managers().contains_key("argocd-controller"));

    scene.asks(async |api| {
        let patch = value!({"spec": {"syncPolicy": {"automated": null}}});
        let apps = Resource::new("argoproj.io", "v1alpha1", "applications");
        api.patch(&apps, &Place::new("default", "shop"), "", &patch).await.unwrap();
    });
    let out = succeeds(&scene, "migrate argocd --finish");
    assert!(out.contains("deployments/web in default: would be released from Argo CD"), "{out}");
    assert!(managers().contains_key("argocd-controller"));
    succeeds(&scene, "migrate argocd --finish --yes");
    let left = managers();
    assert!(!left.contains_key("argocd-controller") && left.contains_key("tidegate"), "{left:?}");
}

#[test]
fn files_of_other_tools_become_git_sources_in_a_folder() {
    let scene = Scene::open("");
    let (file, out) = (scene.folder().join("app.yaml"), scene.folder().join("out"));
    fs::write(&file, APPLICATION).unwrap();
    succeeds(&scene, &format!("migrate argocd {} --out {}", file.display(), out.display()));
    let made = fs::read_to_string(out.join("default_shop.yaml")).unwrap();
    assert!(made.contains("kind: GitSource"), "{made}");
    // What is there is never written over.
    let (said, code) = scene.output("tidegate", &format!("migrate argocd {} --out {}", file.display(), out.display()));
    assert!(said.contains("is there already") && code == Some(2), "{said}");
    fs::write(&file, "apiVersion: argoproj.io/v1alpha1\nkind: Application\n  metadata: {}\n").unwrap();
    let (said, code) = scene.output("tidegate", &format!("migrate argocd {}", file.display()));
    assert!(said.contains("app.yaml:3:") && code == Some(2), "{said}");
    let (said, code) = scene.output("tidegate", "migrate flux examples/canary.yaml");
    assert!(said.contains("there is no object of Flux in what was given") && code == Some(2), "{said}");
}
