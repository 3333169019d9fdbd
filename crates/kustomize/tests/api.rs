//! What callers get beside the objects: places, warnings, dependencies.

#![allow(clippy::unwrap_used)]

mod common;

use common::Memory;
use tidegate_kustomize::{Dependency, Options, Step, is_kustomization, render};

fn tree() -> Memory {
    Memory::of(&[
        (
            "base/kustomization.yaml",
            "bases: []\nresources:\n- d.yaml\nconfigMapGenerator:\n- name: conf\n  literals: [a=1]\n",
        ),
        (
            "base/d.yaml",
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: 1\n  template:\n    spec:\n      containers:\n      - name: main\n        image: a:1\n",
        ),
        (
            "o/kustomization.yaml",
            "resources:\n- ../base\nnamePrefix: p-\nimages:\n- name: a\n  newTag: '2'\npatches:\n- patch: |\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata:\n      name: web\n    spec:\n      replicas: 3\n",
        ),
    ])
}

#[test]
fn every_value_knows_the_file_and_line_it_was_written_in() {
    let rendered = render(&tree(), "o", &Options::default()).unwrap();
    let deployment = rendered.objects.iter().find(|object| object.value["kind"] == "Deployment").unwrap();
    assert_eq!(deployment.place.to_string(), "base/d.yaml:1:1");
    assert_eq!(deployment.patched.iter().map(ToString::to_string).collect::<Vec<_>>(), ["o/kustomization.yaml:8:3"]);
    let place = |path: &[Step<'_>]| deployment.place_of(path).to_string();
    assert_eq!(place(&[Step::Key("spec"), Step::Key("replicas")]), "o/kustomization.yaml:14:17");
    let container =
        [Step::Key("spec"), Step::Key("template"), Step::Key("spec"), Step::Key("containers"), Step::Index(0)];
    assert_eq!(place(&[container.as_slice(), &[Step::Key("name")]].concat()), "base/d.yaml:10:15");
    assert_eq!(place(&[container.as_slice(), &[Step::Key("image")]].concat()), "o/kustomization.yaml:5:3");
    assert_eq!(place(&[container.as_slice(), &[Step::Key("missing")]].concat()), "base/d.yaml:10:9");
    let map = rendered.objects.iter().find(|object| object.value["kind"] == "ConfigMap").unwrap();
    assert_eq!(map.place.to_string(), "base/kustomization.yaml:5:3");
    assert_eq!(map.place_of(&[Step::Key("data"), Step::Key("a")]).to_string(), "base/kustomization.yaml:6:14");
}

#[test]
fn dependencies_name_every_path_that_was_asked_about() {
    let rendered = render(&tree(), "o", &Options::default()).unwrap();
    let content: Vec<&str> = rendered
        .dependencies
        .iter()
        .filter(|(_, asked)| **asked == Dependency::Content)
        .map(|(path, _)| path.as_str())
        .collect();
    assert_eq!(content, ["base/d.yaml", "base/kustomization.yaml", "o/kustomization.yaml"]);
    // A second kustomization file would be an error, so its absence counts.
    assert_eq!(rendered.dependencies.get("base/Kustomization"), Some(&Dependency::Entry));
    let failed =
        render(&Memory::of(&[("o/kustomization.yaml", "resources: [x.yaml]")]), "o", &Options::default()).unwrap_err();
    assert!(failed.dependencies.contains_key("o/x.yaml"));
}

#[test]
fn deprecated_fields_and_keys_given_twice_are_warnings() {
    let tree = Memory::of(&[
        ("o/kustomization.yaml", "namePrefix: a-\nresources: [a.yaml]\nnamePrefix: b-\ncommonLabels: {}\n"),
        ("o/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"),
    ]);
    let rendered = render(&tree, "o", &Options::default()).unwrap();
    let warnings: Vec<String> = rendered.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "o/kustomization.yaml:3:1: namePrefix is written twice: this one counts, not the one of line 1",
            "o/kustomization.yaml:4:1: commonLabels is deprecated: use labels with includeSelectors: true",
        ]
    );
    assert_eq!(rendered.objects[0].value["metadata"]["name"], "b-c");
}

#[test]
fn a_directory_is_a_kustomization_by_the_name_of_a_file() {
    let tree = tree();
    assert_eq!(is_kustomization(&tree, "o"), Ok(true));
    assert_eq!(is_kustomization(&tree, ""), Ok(false));
}

#[test]
fn rollouts_are_treated_as_deployments_are_if_asked_for() {
    let tree = Memory::of(&[
        (
            "o/kustomization.yaml",
            "resources: [r.yaml]\nnamePrefix: p-\nlabels: [{pairs: {l: m}, includeSelectors: true}]\nreplicas: [{name: web, count: 4}]\nconfigMapGenerator: [{name: conf, literals: [a=1]}]\npatches:\n- patch: |\n    apiVersion: argoproj.io/v1alpha1\n    kind: Rollout\n    metadata: {name: web}\n    spec: {template: {spec: {containers: [{name: main, tty: true}]}}}\n",
        ),
        (
            "o/r.yaml",
            "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web}\nspec:\n  strategy: {canary: {canaryService: next, steps: []}}\n  template:\n    spec:\n      containers:\n      - name: main\n        image: a:1\n        envFrom: [{configMapRef: {name: conf}}]\n---\napiVersion: v1\nkind: Service\nmetadata: {name: next}\n",
        ),
    ]);
    let failed = render(&tree, "o", &Options::default()).unwrap_err();
    assert!(failed.problem.message.starts_with("there is no Deployment"), "{}", failed.problem);
    let rendered = render(&tree, "o", &Options { rollouts: true, ..Options::default() }).unwrap();
    let spec = &rendered.objects.iter().find(|object| object.value["kind"] == "Rollout").unwrap().value["spec"];
    assert_eq!(spec["replicas"], 4);
    assert_eq!(spec["strategy"]["canary"]["canaryService"], "p-next");
    assert_eq!(spec["selector"]["matchLabels"]["l"], "m");
    let container = &spec["template"]["spec"]["containers"][0];
    assert_eq!((&container["image"], &container["tty"]), (&"a:1".into(), &true.into()));
    assert!(container["envFrom"][0]["configMapRef"]["name"].as_str().unwrap().starts_with("p-conf-"));
}
