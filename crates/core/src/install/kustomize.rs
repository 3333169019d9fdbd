//! The kustomize bases: the same objects as files, and what a choice changes as components.

use super::{Install, NAME, Part, Scope};
use crate::{api::crd, kubernetes::value::Value, value};

type Choice = fn(&mut Install);

/// Each choice under its name.
const COMPONENTS: [(&str, Choice); 6] = [
    ("network-policy", |install| install.parts.push(Part::NetworkPolicy)),
    ("webhooks", |install| install.webhooks = true),
    ("pages", |install| install.pages = Some(String::new())),
    ("service-monitor", |install| install.parts.push(Part::ServiceMonitor)),
    ("alerts", |install| install.parts.push(Part::Alerts)),
    ("dashboard", |install| install.parts.push(Part::Dashboard)),
];

/// How objects are written.
pub type Writer = fn(&Value) -> String;

/// The files, by their paths. `definition` writes a CustomResourceDefinition, `object` anything else.
pub fn files(image: &str, definition: Writer, object: Writer) -> Vec<(String, String)> {
    let file = |resources: &[String]| kustomization(value!({"kind": "Kustomization"}), resources, Vec::new(), object);
    let mut names = Vec::new();
    let mut files: Vec<(String, String)> = Vec::new();
    for each in crd::all() {
        let name = format!("{}.yaml", each.str_at(&["spec", "names", "singular"]).unwrap_or_default());
        files.push((format!("definitions/{name}"), definition(&each)));
        names.push(name);
    }
    files.push(("definitions/kustomization.yaml".to_owned(), file(&names)));
    let whole = Install { parts: vec![Part::Namespace], ..Install::new(NAME, image) };
    let own = Install { scope: Scope::Namespace(NAME.to_owned()), ..whole.clone() };
    for (folder, base) in [("cluster", &whole), ("namespace", &own)] {
        let objects: Vec<String> = base.objects().iter().map(object).collect();
        files.push((format!("{folder}/tidegate.yaml"), format!("{EDIT}{}", objects.join("---\n"))));
        let resources = ["../definitions".to_owned(), "tidegate.yaml".to_owned()];
        files.push((format!("{folder}/kustomization.yaml"), file(&resources)));
    }
    for (number, (name, choose)) in COMPONENTS.iter().enumerate() {
        // Those before it are chosen, too: it changes what they added. Where one is not chosen, its patch has no target.
        let mut before = whole.clone();
        COMPONENTS[..number].iter().for_each(|(_, choose)| choose(&mut before));
        let mut after = before.clone();
        choose(&mut after);
        files.extend(component(name, &before.objects(), &after.objects(), object));
    }
    files
}

const EDIT: &str = "# Made by `tidegate manifests --kustomize`; not to be edited.\n";

fn kustomization(mut root: Value, resources: &[String], patches: Vec<Value>, object: Writer) -> String {
    let is_component = root.str_at(&["kind"]) == Some("Component");
    root.set_at(
        &["apiVersion"],
        format!("kustomize.config.k8s.io/v1{}", if is_component { "alpha1" } else { "beta1" }),
    );
    if !resources.is_empty() {
        root.set_at(&["resources"], Value::list(resources.iter().map(|name| name.as_str().into())));
    }
    if !patches.is_empty() {
        root.set_at(&["patches"], Value::list(patches));
    }
    format!("{EDIT}{}", object(&root))
}

fn component(name: &str, before: &[Value], after: &[Value], object: Writer) -> Vec<(String, String)> {
    let text = |value: &Value, path: &[&str]| value.str_at(path).unwrap_or_default().to_owned();
    let named = |value: &Value| (text(value, &["kind"]), text(value, &["metadata", "name"]));
    let (mut added, mut patches) = (Vec::new(), Vec::new());
    for new in after {
        match before.iter().find(|old| named(old) == named(new)) {
            None => added.push(object(new)),
            Some(old) if old == new => {}
            Some(old) => {
                let mut operations = Vec::new();
                changes("", old, new, &mut operations);
                let (kind, name) = named(new);
                let patch = operations.iter().map(|operation| format!("- {}\n", operation.to_json()));
                patches.push(value!({"target": {"kind": kind, "name": name}, "patch": patch.collect::<String>()}));
            }
        }
    }
    let mut files = Vec::new();
    let mut resources = Vec::new();
    if !added.is_empty() {
        files.push((format!("components/{name}/objects.yaml"), format!("{EDIT}{}", added.join("---\n"))));
        resources.push("objects.yaml".to_owned());
    }
    let text = kustomization(value!({"kind": "Component"}), &resources, patches, object);
    files.push((format!("components/{name}/kustomization.yaml"), text));
    files
}

/// The operations of a JSON patch from one value to another; what a list has more of is added at its end.
fn changes(path: &str, old: &Value, new: &Value, out: &mut Vec<Value>) {
    match (old, new) {
        (old, new) if old == new => {}
        (Value::Map(before), Value::Map(after)) => {
            for (key, value) in after.iter() {
                let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                match before.get(key) {
                    Some(old) => changes(&path, old, value, out),
                    None => out.push(value!({"op": "add", "path": path, "value": value.clone()})),
                }
            }
            for (key, _) in before.iter().filter(|(key, _)| after.get(key).is_none()) {
                out.push(value!({"op": "remove", "path": format!("{path}/{key}")}));
            }
        }
        (Value::List(before), Value::List(after)) if before.len() == after.len() => {
            for (number, (old, new)) in before.iter().zip(after.iter()).enumerate() {
                changes(&format!("{path}/{number}"), old, new, out);
            }
        }
        (Value::List(before), Value::List(after)) if after.starts_with(before) => {
            let added = after[before.len()..].iter();
            out.extend(added.map(|value| value!({"op": "add", "path": format!("{path}/-"), "value": value.clone()})));
        }
        (_, new) => out.push(value!({"op": "replace", "path": path, "value": new.clone()})),
    }
}
