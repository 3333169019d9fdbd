//! Pods, and what makes, scales and protects them.

use super::{Printed, Row, quantity};
use crate::{
    kubernetes::{
        kind::Kind,
        selector::Labels,
        shown::{PodState, Restarts, holds, human},
        value::Value,
    },
    value,
};

/// The cells of the kinds in this file; none for any other.
pub(super) fn cells(kind: &Kind, of: Printed<'_>) -> Option<Vec<Value>> {
    Some(match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "PodTemplate") => pod_template(of),
        ("", "ReplicationController") => replication_controller(of),
        ("apps", "ReplicaSet") => replica_set(of),
        ("apps", "Deployment") => deployment(of),
        ("apps", "StatefulSet") => stateful_set(of),
        ("apps", "DaemonSet") => daemon_set(of),
        ("apps", "ControllerRevision") => controller_revision(of),
        ("batch", "Job") => job(of),
        ("batch", "CronJob") => cron_job(of),
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaler(of),
        ("policy", "PodDisruptionBudget") => disruption_budget(of),
        _ => return None,
    })
}

pub(super) fn pod(of: Printed<'_>) -> Row {
    let ended = |reason: &str, message: &str| {
        vec![value!({"type": "Completed", "status": "True", "reason": reason, "message": message})]
    };
    let conditions = match of.text(&["status", "phase"]) {
        "Succeeded" => ended("Succeeded", "The pod has completed successfully."),
        "Failed" => ended("Failed", "The pod failed."),
        _ => Vec::new(),
    };
    let state = PodState::of(of.object);
    let restarts = match state.restarts {
        Restarts { count, last: Some(last) } if count != 0 => {
            format!("{count} ({} ago)", human(of.now.duration_since(last)))
        }
        Restarts { count, .. } => count.to_string(),
    };
    let address = of.list(&["status", "podIPs"]).first().and_then(|ip| ip.str_at(&["ip"])).unwrap_or_default();
    let gates = of.list(&["spec", "readinessGates"]);
    let open = gates
        .iter()
        .filter(|gate| holds(of.list(&["status", "conditions"]), gate.str_at(&["conditionType"]).unwrap_or_default()));
    let cells = vec![
        of.name(),
        format!("{}/{}", state.ready, state.total).into(),
        state.reason.into(),
        restarts.into(),
        of.age(),
        if address.is_empty() { "<none>".into() } else { address.into() },
        of.filled_or(&["spec", "nodeName"], "<none>"),
        of.filled_or(&["status", "nominatedNodeName"], "<none>"),
        if gates.is_empty() { "<none>".into() } else { format!("{}/{}", open.count(), gates.len()).into() },
    ];
    Row { cells, conditions }
}

/// The names and images of a pod template's containers.
fn containers(of: Printed<'_>, template: &[&str]) -> [Value; 2] {
    let containers = of.object.at(template).map_or(&[][..], |template| template.list_at(&["spec", "containers"]));
    ["name", "image"].map(|key| {
        let texts: Vec<&str> = containers.iter().map(|c| c.str_at(&[key]).unwrap_or_default()).collect();
        texts.join(",").into()
    })
}

const TEMPLATE: &[&str] = &["spec", "template"];

/// A label selector in one line.
fn selector(of: Printed<'_>, path: &[&str]) -> Value {
    match Labels::of(of.object.at(path).unwrap_or(&Value::Null)) {
        Err(_) => "<error>".into(),
        Ok(labels) => match labels.to_string() {
            text if text.is_empty() => "<none>".into(),
            text => text.into(),
        },
    }
}

fn pod_template(of: Printed<'_>) -> Vec<Value> {
    let [names, images] = containers(of, &["template"]);
    vec![of.name(), names, images, of.labels(&["template", "metadata", "labels"])]
}

fn replicas(of: Printed<'_>, selector: Value) -> Vec<Value> {
    let [names, images] = containers(of, TEMPLATE);
    vec![
        of.name(),
        of.int(&["spec", "replicas"]).into(),
        of.int(&["status", "replicas"]).into(),
        of.int(&["status", "readyReplicas"]).into(),
        of.age(),
        names,
        images,
        selector,
    ]
}

fn replication_controller(of: Printed<'_>) -> Vec<Value> {
    replicas(of, of.labels(&["spec", "selector"]))
}

fn replica_set(of: Printed<'_>) -> Vec<Value> {
    replicas(of, selector(of, &["spec", "selector"]))
}

fn ready_of_desired(of: Printed<'_>) -> Value {
    format!("{}/{}", of.int(&["status", "readyReplicas"]), of.int(&["spec", "replicas"])).into()
}

fn deployment(of: Printed<'_>) -> Vec<Value> {
    let [names, images] = containers(of, TEMPLATE);
    let selector = match Labels::of(of.at(&["spec", "selector"]).unwrap_or(&Value::Null)) {
        Ok(labels) => labels.to_string(),
        Err(_) => "<invalid>".to_owned(),
    };
    vec![
        of.name(),
        ready_of_desired(of),
        of.int(&["status", "updatedReplicas"]).into(),
        of.int(&["status", "availableReplicas"]).into(),
        of.age(),
        names,
        images,
        selector.into(),
    ]
}

fn stateful_set(of: Printed<'_>) -> Vec<Value> {
    let [names, images] = containers(of, TEMPLATE);
    vec![of.name(), ready_of_desired(of), of.age(), names, images]
}

fn daemon_set(of: Printed<'_>) -> Vec<Value> {
    let [names, images] = containers(of, TEMPLATE);
    let number = |key: &str| Value::Int(of.int(&["status", key]));
    vec![
        of.name(),
        number("desiredNumberScheduled"),
        number("currentNumberScheduled"),
        number("numberReady"),
        number("updatedNumberScheduled"),
        number("numberAvailable"),
        of.labels(&["spec", "template", "spec", "nodeSelector"]),
        of.age(),
        names,
        images,
        selector(of, &["spec", "selector"]),
    ]
}

fn controller_revision(of: Printed<'_>) -> Vec<Value> {
    let owners = of.list(&["metadata", "ownerReferences"]);
    let owner = owners.iter().find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true));
    let controller = owner.map_or_else(
        || "<none>".to_owned(),
        |owner| {
            let text = |key: &str| owner.str_at(&[key]).unwrap_or_default();
            let group = text("apiVersion").split_once('/').map_or(String::new(), |(group, _)| format!(".{group}"));
            format!("{}{}/{}", text("kind").to_lowercase(), group.to_lowercase(), text("name"))
        },
    );
    vec![of.name(), controller.into(), of.int(&["revision"]).into(), of.age()]
}

fn job(of: Printed<'_>) -> Vec<Value> {
    let succeeded = of.int(&["status", "succeeded"]);
    let completions = match (of.object.int_at(&["spec", "completions"]), of.int(&["spec", "parallelism"])) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    };
    let duration = match (of.time(&["status", "startTime"]), of.time(&["status", "completionTime"])) {
        (None, _) => String::new(),
        (Some(start), end) => human(end.unwrap_or(of.now).duration_since(start)),
    };
    let conditions = of.list(&["status", "conditions"]);
    let status = match () {
        () if holds(conditions, "Complete") => "Complete",
        () if holds(conditions, "Failed") => "Failed",
        () if of.is_terminating() => "Terminating",
        () if holds(conditions, "Suspended") => "Suspended",
        () if holds(conditions, "FailureTarget") => "FailureTarget",
        () if holds(conditions, "SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    };
    let [names, images] = containers(of, TEMPLATE);
    let selector = selector(of, &["spec", "selector"]);
    vec![of.name(), status.into(), completions.into(), duration.into(), of.age(), names, images, selector]
}

fn cron_job(of: Printed<'_>) -> Vec<Value> {
    let suspend = match of.at(&["spec", "suspend"]).and_then(Value::as_bool) {
        None => "<unset>",
        Some(true) => "True",
        Some(false) => "False",
    };
    let last = match of.at(&["status", "lastScheduleTime"]) {
        None => "<none>".into(),
        Some(_) => of.since(&["status", "lastScheduleTime"]),
    };
    let [names, images] = containers(of, &["spec", "jobTemplate", "spec", "template"]);
    vec![
        of.name(),
        of.cell(&["spec", "schedule"]),
        of.text_or(&["spec", "timeZone"], "<none>"),
        suspend.into(),
        of.count(&["status", "active"]).into(),
        last,
        of.age(),
        names,
        images,
        selector(of, &["spec", "jobTemplate", "spec", "selector"]),
    ]
}

fn disruption_budget(of: Printed<'_>) -> Vec<Value> {
    let limit = |key: &str| match of.at(&["spec", key]) {
        None => "N/A".into(),
        Some(limit) => Value::Str(quantity(Some(limit))),
    };
    let allowed = of.int(&["status", "disruptionsAllowed"]);
    vec![of.name(), limit("minAvailable"), limit("maxUnavailable"), allowed.into(), of.age()]
}

fn autoscaler(of: Printed<'_>) -> Vec<Value> {
    let target = |key: &str| of.text(&["spec", "scaleTargetRef", key]);
    let least = match of.at(&["spec", "minReplicas"]) {
        None => "<unset>".to_owned(),
        Some(least) => least.to_json(),
    };
    vec![
        of.name(),
        format!("{}/{}", target("kind"), target("name")).into(),
        targets(of).into(),
        least.into(),
        of.int(&["spec", "maxReplicas"]).into(),
        of.int(&["status", "currentReplicas"]).into(),
        of.age(),
    ]
}

/// What an autoscaler aims at and where it stands: `cpu: 20%/80%, 5/10 + 1 more...`.
fn targets(of: Printed<'_>) -> String {
    let (specs, statuses) = (of.list(&["spec", "metrics"]), of.list(&["status", "currentMetrics"]));
    let mut shown: Vec<String> = Vec::new();
    // autoscaling/v1 has a field for the one metric it knows.
    if let Some(wanted) = of.object.int_at(&["spec", "targetCPUUtilizationPercentage"]) {
        let current = of.object.int_at(&["status", "currentCPUUtilizationPercentage"]);
        shown.push(format!("cpu: {}/{wanted}%", current.map_or("<unknown>".to_owned(), |n| format!("{n}%"))));
    }
    shown.extend(specs.iter().enumerate().map(|(i, spec)| metric(spec, statuses.get(i))));
    match shown.len() {
        0 => "<none>".to_owned(),
        1 | 2 => shown.join(", "),
        more => format!("{} + {} more...", shown[..2].join(", "), more - 2),
    }
}

fn metric(spec: &Value, status: Option<&Value>) -> String {
    let (source, by_average) = match spec.str_at(&["type"]).unwrap_or_default() {
        "External" => ("external", " (avg)"),
        "Object" => ("object", " (avg)"),
        "Pods" => ("pods", ""),
        "Resource" => ("resource", ""),
        "ContainerResource" => ("containerResource", ""),
        _ => return "<unknown type>".to_owned(),
    };
    let target = |key: &str| spec.at(&[source, "target", key]).filter(|value| !value.is_null());
    let status = status.and_then(|status| status.get(source)).filter(|status| !status.is_null());
    let current = |key: &str| status.and_then(|status| status.at(&["current", key])).filter(|value| !value.is_null());
    // A status without the very number it should have prints as Go prints a missing quantity.
    let quantity_or_nil = |value: Option<&Value>| value.map_or("<nil>".to_owned(), |q| quantity(Some(q)).to_string());
    let unknown = || "<unknown>".to_owned();
    let named = match source {
        "resource" | "containerResource" => format!("{}: ", spec.str_at(&[source, "name"]).unwrap_or_default()),
        _ => String::new(),
    };
    match (target("averageValue"), source) {
        (Some(wanted), "external" | "object") => {
            let current = current("averageValue").map_or_else(unknown, |q| quantity(Some(q)).to_string());
            format!("{current}/{}{by_average}", quantity(Some(wanted)))
        }
        (Some(wanted), _) => {
            let current = status.map_or_else(unknown, |_| quantity_or_nil(current("averageValue")));
            format!("{named}{current}/{}", quantity(Some(wanted)))
        }
        (None, "resource" | "containerResource") => {
            let percent = |value: &Value| format!("{value}%");
            let current = current("averageUtilization").map_or_else(unknown, percent);
            let wanted = target("averageUtilization").map_or("<auto>".to_owned(), percent);
            format!("{named}{current}/{wanted}")
        }
        (None, _) => {
            let current = status.map_or_else(unknown, |_| quantity_or_nil(current("value")));
            format!("{current}/{}", quantity_or_nil(target("value")))
        }
    }
}
