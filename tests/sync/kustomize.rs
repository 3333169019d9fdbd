//! Sources whose folder is a kustomization: what it renders is rolled out, and what is wrong with it refuses the commit.

use tidegate::{
    model::git_source::{LoadRestrictor, Rendering, Rollouts},
    sync::State,
};

use crate::scene::{Scene, map, spec, web};

const BASE: (&str, &str) = ("base/kustomization.yaml", "resources: [web.yaml]\n");

/// An overlay of the base that sets the image's tag; without `kind`, as most are written.
fn overlay(tag: &str) -> String {
    format!("resources: [../base]\nimages:\n- name: web\n  newTag: '{tag}'\n")
}

fn image(scene: &Scene) -> String {
    let rollout = scene.rollout("web");
    let containers = rollout.list_at(&["spec", "template", "spec", "containers"]);
    containers[0].str_at(&["image"]).unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn an_overlay_rolls_out_and_so_does_a_change_of_its_base() {
    let mut scene = Scene::new();
    let first =
        scene.push(&[BASE, ("base/web.yaml", &web("web:0")), ("deploy/kustomization.yaml", &overlay("1"))]).await;
    assert_eq!(scene.until(&first, State::Success).await, "rolled out: 3 objects");
    assert_eq!(image(&scene), "web:1");
    let second = scene.push(&[("deploy/kustomization.yaml", &overlay("2"))]).await;
    scene.until(&second, State::Success).await;
    assert_eq!(image(&scene), "web:2");
    // It is known by the file of the base.
    let path = scene.rollout("web").str_at(&["metadata", "annotations", "tidegate.dev/path"]).unwrap().to_owned();
    assert_eq!(path, "base/web.yaml");
    assert_eq!(scene.rollout("web").str_at(&["metadata", "annotations", "tidegate.dev/commit"]), Some(second.as_str()));
    // Nothing under `deploy` differs, and yet it is a change.
    let begun = scene.elapsed();
    let third = scene.push(&[("base/web.yaml", &web("web:0").replace("containerPort: 80", "containerPort: 81"))]).await;
    assert_eq!(scene.until(&third, State::Success).await, "rolled out: 3 objects");
    assert!(scene.elapsed() - begun >= 20, "two pauses of ten seconds");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_changes_nothing_that_is_rendered_has_the_outcome_of_the_one_that_did() {
    let mut scene = Scene::new();
    let first =
        scene.push(&[BASE, ("base/web.yaml", &web("web:0")), ("deploy/kustomization.yaml", &overlay("1"))]).await;
    scene.until(&first, State::Success).await;
    let second = scene.push(&[("deploy/kustomization.yaml", &overlay("2"))]).await;
    scene.pass(2).await;
    // In the base's file, in the overlay's folder, and elsewhere: no object differs.
    let comment = scene.push(&[("base/web.yaml", &format!("# a comment\n{}", web("web:0")))]).await;
    scene.pass(2).await;
    let aside = scene.repository.commit(&[("other/x.yaml", "a: 1\n")]);
    let stray = scene.push(&[("deploy/notes.yaml", "a: 1\n")]).await;
    let words = scene.until(&second, State::Success).await;
    assert_eq!(words, "rolled out: 3 objects");
    let same = format!("no change under deploy; same as {}: {words}", &second[..8]);
    for commit in [&comment, &aside, &stray] {
        assert_eq!(scene.until(commit, State::Success).await, same);
    }
    assert!(!scene.told.iter().any(|report| report.state == State::Superseded), "{:#?}", scene.told);
    // A change of the base in the middle of a rollout takes its place.
    let third = scene.push(&[("deploy/kustomization.yaml", &overlay("3"))]).await;
    scene.pass(2).await;
    let base = scene.push(&[("base/web.yaml", &web("web:0").replace("containerPort: 80", "containerPort: 81"))]).await;
    scene.until(&base, State::Success).await;
    assert_eq!(scene.last(&third).unwrap().state, State::Superseded);
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_broken_kustomization_refuses_the_commit_with_its_file_and_line() {
    let mut scene = Scene::new();
    let base = [BASE, ("base/web.yaml", &web("web:0"))];
    let first = scene.push(&[base[0], base[1], ("deploy/kustomization.yaml", &overlay("1"))]).await;
    scene.until(&first, State::Success).await;
    let version = scene.cluster.with(|store| store.version());
    for (changes, said) in [
        (
            vec![("deploy/kustomization.yaml", "resources: [../base]\nnamesPrefix: a-\n")],
            "deploy/kustomization.yaml:2: unknown field \"namesPrefix\"; did you mean namePrefix?",
        ),
        (
            vec![("deploy/kustomization.yaml", "resources:\n- ../base\n- https://git.example/shop//base?ref=1\n")],
            "deploy/kustomization.yaml:3: \"https://git.example/shop//base?ref=1\" is an address on the network: nothing is fetched \
             while rendering; copy it into the repository (`kustomize localize` does), and name it by a relative path",
        ),
        (
            vec![("deploy/kustomization.yaml", "resources:\n- ../base\n- ../../secrets.yaml\n")],
            "deploy/kustomization.yaml:3: \"../../secrets.yaml\" leads out of the repository; move what it names into the repository",
        ),
        // What stands in a literal may be a secret.
        (
            vec![("deploy/kustomization.yaml", "secretGenerator:\n- name: login\n  literals: [hunter2]\n")],
            "deploy/kustomization.yaml:3: the literal is not key=value; write key=value",
        ),
        (
            vec![("deploy/kustomization.yaml", "resources:\n- ../base\npatches:\n- path: gone.yaml\n")],
            "deploy/kustomization.yaml:4: there is no file deploy/gone.yaml; correct the path, or add the file",
        ),
    ] {
        let commit = scene.push(&changes).await;
        assert_eq!(scene.until(&commit, State::Error).await, said);
    }
    scene.pass(130).await;
    let written: Vec<String> =
        scene.written_since(version).into_iter().filter(|name| !name.contains("tidegate.shop")).collect();
    assert_eq!(written, [] as [&str; 0]);
    let fixed = scene.push(&[("deploy/kustomization.yaml", &overlay("2"))]).await;
    scene.until(&fixed, State::Success).await;
    assert_eq!(image(&scene), "web:2");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn folders_of_kustomizations_and_of_manifests_lie_side_by_side() {
    let mut scene = Scene::new();
    let first = scene
        .push(&[
            ("deploy/plain/a.yaml", &map("a", "x")),
            ("deploy/one/base/kustomization.yaml", "resources: [b.yaml]\n"),
            ("deploy/one/base/b.yaml", &map("b", "x")),
            ("deploy/one/prod/kustomization.yaml", "resources: [../base]\nnamePrefix: prod-\n"),
            ("deploy/two/Kustomization", "configMapGenerator:\n- name: c\n  literals: [k=x]\n"),
        ])
        .await;
    assert_eq!(scene.until(&first, State::Success).await, "rolled out: 3 objects");
    let maps = |scene: &Scene| -> Vec<String> {
        let all = scene.list("", "configmaps").into_iter();
        let names = all.filter_map(|map| map.str_at(&["metadata", "name"]).map(str::to_owned));
        names.filter(|name| !name.contains("tidegate") && !name.contains("kube")).collect()
    };
    let names = maps(&scene);
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names.contains(&"a".to_owned()) && names.contains(&"prod-b".to_owned()), "{names:?}");
    // A generated name changes with its content, and the former one is pruned.
    let second =
        scene.push(&[("deploy/two/Kustomization", "configMapGenerator:\n- name: c\n  literals: [k=y]\n")]).await;
    scene.until(&second, State::Success).await;
    scene.pass(5).await;
    let after = maps(&scene);
    assert_eq!(after.len(), 3, "{after:?}");
    assert_ne!(after, names);
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_rollout_follows_generated_names_unless_the_source_is_plain() {
    let template = "containers: [{name: main, image: 'web:0', ports: [{containerPort: 80}], envFrom: [{configMapRef: {name: conf}}]}]";
    let text =
        web("web:0").replace("containers: [{name: main, image: 'web:0', ports: [{containerPort: 80}]}]", template);
    assert!(text.contains("envFrom"));
    let overlay = "resources: [web.yaml]\nconfigMapGenerator:\n- name: conf\n  literals: [k=x]\n";
    for rollouts in [Rollouts::Known, Rollouts::Plain] {
        let mut source = spec();
        source.kustomize = Rendering { rollouts, load_restrictor: LoadRestrictor::RootOnly };
        let mut scene = Scene::with(source);
        let first = scene.push(&[("deploy/web.yaml", &text), ("deploy/kustomization.yaml", overlay)]).await;
        scene.until(&first, State::Success).await;
        let rollout = scene.rollout("web");
        let containers = rollout.list_at(&["spec", "template", "spec", "containers"]);
        let name = containers[0].list_at(&["envFrom"])[0].str_at(&["configMapRef", "name"]).unwrap().to_owned();
        assert_eq!(name.starts_with("conf-"), rollouts == Rollouts::Known, "{name}");
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_chart_is_refused_with_one_sentence() {
    let mut scene = Scene::new();
    let commit = scene
        .push(&[
            ("deploy/a.yaml", &map("a", "x")),
            ("deploy/shop/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
            ("deploy/shop/templates/web.yaml", "{{ .Values.x }}: [\n"),
        ])
        .await;
    assert_eq!(
        scene.until(&commit, State::Error).await,
        "deploy/shop: the entry is a Helm chart, which is not rendered here; commit what `helm template` makes of it, or exclude it"
    );
    scene.end().await;
}
