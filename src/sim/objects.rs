//! The objects of stories: their kinds, their short forms, and questions about them.
//!
//! Never looks at a cluster.

use crate::{
    engine::{key::Resource, observe::resource},
    kubernetes::value::{Map, Value},
    route, value,
};

/// The annotation that numbers versions.
pub const REVISION: &str = "rollout.argoproj.io/revision";

/// The resource of a kind that stories know.
pub fn kind_of(kind: &str) -> Option<Resource> {
    Some(match kind {
        "Rollout" => resource::rollouts(),
        "AnalysisTemplate" => resource::templates(),
        "AnalysisRun" => resource::runs(),
        "Experiment" => resource::experiments(),
        "Job" => resource::jobs(),
        "Secret" => Resource::new("", "v1", "secrets"),
        "ReplicaSet" => resource::sets(),
        "Deployment" => resource::deployments(),
        "Service" => resource::services(),
        "CustomResourceDefinition" => Resource::new("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
        "Pod" => resource::pods(),
        "PodTemplate" => resource::pod_templates(),
        "PodDisruptionBudget" => Resource::new("policy", "v1", "poddisruptionbudgets"),
        "HorizontalPodAutoscaler" => Resource::new("autoscaling", "v2", "horizontalpodautoscalers"),
        "ConfigMap" => Resource::new("", "v1", "configmaps"),
        "Node" => Resource::new("", "v1", "nodes"),
        kind => {
            // Of two of a name the first router's is meant.
            let routers = route::ROUTERS.iter().flat_map(|row| row.kinds);
            let found = routers.copied().find(|known| known.word() == kind)?;
            resource::route(found, &route::Apis::default())
        }
    })
}

/// The short forms of objects (`rollout`, `deployment`, `service`, `budget`, `analysis`, `analysisrun`, `experiment`,
/// `served: VirtualService` for the definition of a router's kind); a manifest is left as it is.
pub fn expand(entry: &Value) -> Value {
    if entry.get("kind").is_some() {
        return entry.clone();
    }
    let Some((what, given)) = entry.as_map().and_then(|map| map.iter().next()) else { return Value::Null };
    let given = if given.as_str().is_some() { value!({"name": given.clone()}) } else { given.clone() };
    let name = given.str_at(&["name"]).unwrap_or("web");
    let mut metadata = value!({"name": name});
    merge(&mut metadata, given.get("metadata"));
    let app = given.str_at(&["app"]).unwrap_or(name);
    match what.as_str() {
        "rollout" => rollout(&given, app, metadata),
        "deployment" => value!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {
            "replicas": or(&given, "replicas", 2),
            "selector": {"matchLabels": {"app": app}}, "template": template(&given, app)}}),
        "service" => value!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {
            "type": or(&given, "type", "ClusterIP"),
            "selector": or(&given, "selector", value!({"app": "web"})),
            "ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}]}}),
        "ingress" => ingress(&given, metadata),
        "served" => definition(name),
        "virtualservice" => value!({"apiVersion": "networking.istio.io/v1alpha3", "kind": "VirtualService",
            "metadata": metadata, "spec": or(&given, "spec", Value::object())}),
        "destinationrule" => value!({"apiVersion": "networking.istio.io/v1alpha3", "kind": "DestinationRule",
            "metadata": metadata, "spec": or(&given, "spec", Value::object())}),
        "budget" => value!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": {
            "minAvailable": or(&given, "minAvailable", 1), "selector": {"matchLabels": {"app": app}}}}),
        "analysis" => measured("AnalysisTemplate", &given, metadata),
        "analysisrun" => measured("AnalysisRun", &given, metadata),
        "experiment" => experiment(&given, metadata),
        _ => Value::Null,
    }
}

/// The definition of a router's kind, which takes anything.
fn definition(kind: &str) -> Value {
    let Some(Resource { group, version, plural }) = kind_of(kind) else { return Value::Null };
    let schema = value!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = value!({"name": version, "served": true, "storage": true, "schema": schema});
    let names = value!({"plural": plural.as_str(), "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")});
    value!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}})
}

fn ingress(given: &Value, mut metadata: Value) -> Value {
    let backend =
        value!({"service": {"name": or(given, "service", ""), "port": or(given, "port", value!({"number": 80}))}});
    let hosts = or(given, "hosts", value!(["web"]));
    let rule = |host: &Value| {
        let path = value!({"path": "/", "pathType": "Prefix", "backend": backend.clone()});
        value!({"host": format!("{}.local", host.as_str().unwrap_or_default()), "http": {"paths": [path]}})
    };
    let mut spec = value!({"rules": Value::list(hosts.as_list().unwrap_or_default().iter().map(rule))});
    if let Some(class) = given.get("className") {
        spec.set_at(&["ingressClassName"], class.clone());
    }
    if let Some(class) = given.get("class") {
        metadata.set_at(&["annotations", "kubernetes.io/ingress.class"], class.clone());
    }
    for (key, text) in given.get("annotations").and_then(Value::as_map).into_iter().flat_map(Map::iter) {
        metadata.set_at(&["annotations", key], text.clone());
    }
    value!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec})
}

/// A template or a run; `job: ["exit 1"]` in a metric is a Job that runs this in a shell.
fn measured(kind: &str, given: &Value, metadata: Value) -> Value {
    let mut spec = given.clone();
    spec.remove_at(&["name"]);
    spec.remove_at(&["metadata"]);
    let mut metrics = spec.list_at(&["metrics"]).to_vec();
    for metric in &mut metrics {
        if let Some(script) = metric.remove_at(&["job"]) {
            let container = value!({"name": "c", "image": "busybox", "command": ["sh", "-c"], "args": script});
            let pod = value!({"restartPolicy": "Never", "containers": [container]});
            metric.set_at(&["provider", "job", "spec"], value!({"backoffLimit": 0, "template": {"spec": pod}}));
        }
    }
    if spec.get("metrics").is_some() {
        spec.set_at(&["metrics"], metrics);
    }
    value!({"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec})
}

/// An Experiment whose templates are pods in short form, each with labels of its own.
fn experiment(given: &Value, metadata: Value) -> Value {
    let name = metadata.str_at(&["name"]).unwrap_or_default().to_owned();
    let version = |short: &Value| {
        let app = format!("{name}-{}", short.str_at(&["name"]).unwrap_or_default());
        let mut version =
            value!({"selector": {"matchLabels": {"app": app.as_str()}}, "template": template(short, &app)});
        for key in ["name", "replicas", "minReadySeconds", "service", "selector"] {
            if let Some(value) = short.get(key) {
                version.set_at(&[key], value.clone());
            }
        }
        version
    };
    let mut spec = given.clone();
    spec.remove_at(&["name"]);
    spec.remove_at(&["metadata"]);
    spec.set_at(&["templates"], Value::list(given.list_at(&["templates"]).iter().map(version)));
    value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Experiment", "metadata": metadata, "spec": spec})
}

fn or(given: &Value, key: &str, otherwise: impl Into<Value>) -> Value {
    given.get(key).cloned().unwrap_or_else(|| otherwise.into())
}

fn rollout(given: &Value, app: &str, metadata: Value) -> Value {
    let mut spec = value!({"replicas": or(given, "replicas", 2), "selector": {"matchLabels": {"app": app}},
        "template": template(given, app), "strategy": or(given, "strategy", Value::Null)});
    merge(&mut spec, given.get("spec"));
    if let Some(spec) = spec.as_map_mut() {
        spec.retain(|_, value| !value.is_null());
    }
    value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": metadata, "spec": spec})
}

fn template(given: &Value, app: &str) -> Value {
    let mut container = value!({"name": "app", "image": or(given, "image", "app:v1")});
    for key in ["command", "args", "readinessProbe", "lifecycle", "ports", "env"] {
        if let Some(value) = given.get(key) {
            container.set_at(&[key], value.clone());
        }
    }
    let mut labels = value!({"app": app});
    merge(&mut labels, given.get("podLabels"));
    let mut spec = value!({"containers": [container]});
    merge(&mut spec, given.get("podSpec"));
    let mut template = value!({"metadata": {"labels": labels}, "spec": spec});
    if let Some(annotations) = given.get("podAnnotations") {
        template.set_at(&["metadata", "annotations"], annotations.clone());
    }
    template
}

fn merge(into: &mut Value, from: Option<&Value>) {
    for (key, value) in from.and_then(Value::as_map).into_iter().flat_map(Map::iter) {
        into.set_at(&[key.as_str()], value.clone());
    }
}

/// What is at a path such as `status.conditions[0].type`; `~` stands for a dot in a key.
pub fn dig(object: &Value, path: &str) -> Value {
    let path = path.replace('[', ".").replace(']', "");
    let mut found = object;
    for key in path.split('.') {
        let next = match (found.as_list(), key.parse::<usize>()) {
            (Some(items), Ok(index)) => items.get(index),
            _ => found.get(&key.replace('~', ".")),
        };
        let Some(next) = next else { return Value::Null };
        found = next;
    }
    found.clone()
}

/// Whether a value is as wanted: the same, or as `{in: […]}`, `{min: n}`, `{max: n}`, `{contains: text}` or
/// `{exists: …}` say. What is missing counts as 0, no, and nothing.
pub fn matches(want: &Value, got: &Value) -> bool {
    if let Some((key, argument)) = want.as_map().and_then(|map| map.iter().next()) {
        let number = got.as_int().unwrap_or_default();
        match key.as_str() {
            "in" => return argument.as_list().unwrap_or_default().contains(got),
            "min" => return number >= argument.as_int().unwrap_or(i64::MAX),
            "max" => return number <= argument.as_int().unwrap_or(i64::MIN),
            "contains" => return got.as_str().unwrap_or_default().contains(argument.as_str().unwrap_or_default()),
            "exists" => return got.is_null() != (argument.as_bool() == Some(true)),
            _ => {}
        }
    }
    match (want, got) {
        (Value::Int(want), Value::Null) => *want == 0,
        (Value::Bool(want), Value::Null) => !want,
        _ => want == got,
    }
}

/// A scalar as conditions and annotations write it.
pub fn text(value: &Value) -> String {
    match (value.as_bool(), value.as_str()) {
        (Some(true), _) => "True".into(),
        (Some(false), _) => "False".into(),
        (None, Some(text)) => text.to_owned(),
        (None, None) => value.to_json(),
    }
}

/// Whether a name is as a pattern with one `*` says.
pub fn glob(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, tail)) => text.starts_with(head) && text.ends_with(tail),
    }
}
