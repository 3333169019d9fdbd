//! Every example can be applied: each object, strictly, by server-side apply, in the order of its file. Kinds of routers, whose
//! definitions are not ours, are any object here.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use tidegate::{
    cmd::kustomize::{DiskTree, is_kustomization},
    embedded::store::{
        Config, Store,
        request::{FieldValidation, Options, PatchType, Request, Verb},
    },
    kubernetes::value::{Value, intern},
    kustomize, manifest,
    model::git_source::Rendering,
    value,
};

/// The YAML files below `examples/`, but for workflows, which are of a git host and not of a cluster. Of a kustomization that is
/// the file that says what it is made of.
fn examples() -> Vec<PathBuf> {
    fn below(folder: &Path, found: &mut Vec<PathBuf>) {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() && is_kustomization(&path) {
                found.push(path.join("kustomization.yaml"));
            } else if path.is_dir() && !path.ends_with("workflows") {
                below(&path, found);
            } else if path.extension().is_some_and(|ending| ending == "yaml") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples"), &mut found);
    found.sort();
    found
}

/// The objects of a file, or those that a kustomization renders.
fn objects(path: &Path) -> Vec<Value> {
    if path.ends_with("kustomization.yaml") {
        let (tree, inner) = DiskTree::around(path.parent().unwrap()).unwrap();
        let rendered = kustomize::render(&tree, &inner, Rendering::default(), &str::to_owned);
        assert!(rendered.fault.is_none() && rendered.warnings.is_empty(), "{rendered:?}");
        return rendered.file.objects.iter().map(|object| object.value.clone()).collect();
    }
    let read = manifest::read(path.display().to_string(), &fs::read(path).unwrap());
    read.objects.iter().map(|document| document.value.clone()).collect()
}

fn store() -> Store {
    let mut store = Store::new(Config::new(Timestamp::UNIX_EPOCH, 1));
    tidegate::sim::install::definitions(&mut store).unwrap();
    store
}

fn apply(store: &mut Store, object: &Value) -> Result<u16, String> {
    let (api_version, kind) = (object.str_at(&["apiVersion"]).unwrap(), object.str_at(&["kind"]).unwrap());
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group).to_owned();
    if store.registry().find_kind(api_version, kind).is_none() {
        if self::store().registry().kinds().any(|known| known.group == group.as_str()) {
            return Err(format!("there is no {kind} in {api_version}"));
        }
        define(store, &group, api_version.rsplit('/').next().unwrap(), kind);
    }
    let (_, kind) = store.registry().find_kind(api_version, kind).unwrap();
    let kind = kind.clone();
    let namespace = object.str_at(&["metadata", "namespace"]).unwrap_or("default");
    let request = Request {
        verb: Verb::Patch(PatchType::Apply),
        group: kind.group.clone(),
        version: kind.version.clone(),
        resource: kind.plural.clone(),
        namespace: if kind.namespaced { intern(namespace) } else { intern("") },
        name: intern(object.str_at(&["metadata", "name"]).unwrap()),
        body: Some(object.clone()),
        options: Options {
            field_manager: Some("kubectl".into()),
            field_validation: FieldValidation::Strict,
            ..Options::default()
        },
        agent: "kubectl".into(),
        ..Request::default()
    };
    store.apply(request).map(|response| response.code).map_err(|status| status.message)
}

/// A definition that takes any object of a kind of others.
fn define(store: &mut Store, group: &str, version: &str, kind: &str) {
    let plural = format!("{}s", kind.to_lowercase());
    let definition = value!({
        "metadata": {
            "name": format!("{plural}.{group}"),
            "annotations": {"api-approved.kubernetes.io": "unapproved, of a test"},
        },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural.clone(), "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
            "versions": [{
                "name": version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    let request = Request {
        verb: Verb::Create,
        group: "apiextensions.k8s.io".into(),
        version: "v1".into(),
        resource: "customresourcedefinitions".into(),
        body: Some(definition),
        ..Request::default()
    };
    store.apply(request).unwrap();
}

#[test]
fn every_example_can_be_applied() {
    let examples = examples();
    assert!(examples.len() >= 9, "{examples:?}");
    let mut refused = Vec::new();
    for example in examples {
        let objects = objects(&example);
        assert!(!objects.is_empty(), "{} has no objects", example.display());
        let mut store = store();
        for object in &objects {
            if let Err(message) = apply(&mut store, object) {
                refused.push(format!("{}: {message}", example.display()));
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

/// Without this the test above would pass for anything.
#[test]
fn an_example_with_a_misspelt_field_cannot() {
    let mut web = objects(&examples().into_iter().find(|path| path.ends_with("canary.yaml")).unwrap());
    web[0].set_at(&["spec", "replica"], 3);
    let refusal = apply(&mut store(), &web[0]).unwrap_err();
    assert!(refusal.contains("spec.replica"), "{refusal}");
}

/// The example of a GitSource is whole: its account, its Secrets and its webhook are in the file.
#[test]
fn what_the_example_of_a_gitsource_refers_to_is_in_it() {
    let objects = objects(&examples().into_iter().find(|path| path.ends_with("gitsource.yaml")).unwrap());
    let there: BTreeSet<(&str, &str)> = objects
        .iter()
        .map(|object| (object.str_at(&["kind"]).unwrap(), object.str_at(&["metadata", "name"]).unwrap()))
        .collect();
    let source = objects.iter().find(|object| object.str_at(&["kind"]) == Some("GitSource")).unwrap();
    let named = |kind, path: &[&str]| (kind, source.str_at(path).unwrap_or_default().to_owned());
    for (kind, name) in [
        named("ServiceAccount", &["spec", "serviceAccountName"]),
        named("Secret", &["spec", "secretRef", "name"]),
        named("Secret", &["spec", "webhook", "secretRef", "name"]),
    ] {
        assert!(there.contains(&(kind, name.as_str())), "no {kind} {name:?} in {there:?}");
    }
    assert!(source.at(&["spec", "report"]).is_some());
}
