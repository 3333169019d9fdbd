//! HorizontalPodAutoscalers. autoscaling/v1 knows one metric, the CPU; it keeps everything else that v2 has in
//! annotations, as JSON in the order of Go's structs.

use std::fmt;

use crate::{
    value,
    value::{Map, Value, intern},
};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// The annotations that carry something from one version to the other, two of them no longer.
const CARRIERS: [&str; 6] = [
    METRICS,
    CURRENT_METRICS,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

/// Whether an autoscaling/v1 object changes when it passes through v2.
pub(super) fn is_settled(v1: &Map) -> bool {
    let annotations = v1.get("metadata").and_then(|metadata| metadata.get("annotations"));
    v1.get("spec").is_some_and(|spec| spec.get("targetCPUUtilizationPercentage").is_some())
        && !annotations.is_some_and(|annotations| CARRIERS.iter().any(|key| annotations.get(key).is_some()))
        && v1.get("status").is_none_or(|status| status.get("currentCPUUtilizationPercentage").is_none())
}

pub(super) fn to_v2(v1: &Value) -> Value {
    let carried = |key: &str| {
        let text = v1.str_at(&["metadata", "annotations", key])?;
        Value::from_json(text.as_bytes()).ok().filter(|json| !json.is_null())
    };
    let mut v2 = without_carriers(v1);

    let mut metrics: Vec<Value> = carried(METRICS).map(|json| from_metrics(&json, Side::Target)).unwrap_or_default();
    match v2.remove_at(&["spec", "targetCPUUtilizationPercentage"]) {
        Some(percent) => metrics.push(cpu("target", percent)),
        None if metrics.is_empty() => metrics.push(cpu("target", 80.into())),
        None => {}
    }
    v2.set_at(&["spec", "metrics"], metrics);
    if let Some(behavior) = carried(BEHAVIOR).map(|json| relabel(&json, lower)).filter(|json| *json != value!({})) {
        v2.set_at(&["spec", "behavior"], behavior);
    }

    let percent = v2.remove_at(&["status", "currentCPUUtilizationPercentage"]);
    let current = carried(CURRENT_METRICS).map(|json| from_metrics(&json, Side::Current));
    if let Some(metrics) = current.or_else(|| percent.map(|percent| vec![cpu("current", percent)])) {
        v2.set_at(&["status", "currentMetrics"], metrics);
    }
    if let Some(conditions) = carried(CONDITIONS) {
        v2.set_at(&["status", "conditions"], conditions);
    }
    v2
}

pub(super) fn to_v1(v2: &Value) -> Value {
    let mut v1 = without_carriers(v2);
    let mut carry = |key: &str, json: Json| v1.set_at(&["metadata", "annotations", key], json.to_string());

    let metrics = v2.list_at(&["spec", "metrics"]);
    let others = metrics.iter().filter(|metric| cpu_percent(metric, "target").is_none());
    let others: Vec<Json> = others.map(|metric| to_metric(metric, Side::Target)).collect();
    if !others.is_empty() {
        carry(METRICS, Json::List(others));
    }
    let current = v2.list_at(&["status", "currentMetrics"]);
    if !current.is_empty() {
        carry(CURRENT_METRICS, Json::List(current.iter().map(|metric| to_metric(metric, Side::Current)).collect()));
    }
    if let Some(behavior) = v2.at(&["spec", "behavior"]) {
        carry(BEHAVIOR, to_behavior(behavior));
    }
    let conditions = v2.list_at(&["status", "conditions"]);
    if !conditions.is_empty() {
        let order = ["type", "status", "lastTransitionTime", "reason", "message"];
        carry(CONDITIONS, Json::List(conditions.iter().map(|condition| ordered(condition, &order)).collect()));
    }

    v1.remove_at(&["spec", "metrics"]);
    v1.remove_at(&["spec", "behavior"]);
    v1.remove_at(&["status", "currentMetrics"]);
    v1.remove_at(&["status", "conditions"]);
    if let Some(percent) = metrics.iter().find_map(|metric| cpu_percent(metric, "target")) {
        v1.set_at(&["spec", "targetCPUUtilizationPercentage"], percent);
    }
    if let Some(percent) = current.iter().rev().find_map(|metric| cpu_percent(metric, "current")) {
        v1.set_at(&["status", "currentCPUUtilizationPercentage"], percent);
    }
    v1
}

fn without_carriers(object: &Value) -> Value {
    let mut object = object.clone();
    let path = ["metadata", "annotations"];
    if let Some(Value::Map(old)) = object.at(&path).cloned() {
        let mut annotations = old.clone();
        annotations.retain(|key, _| !CARRIERS.contains(&key.as_str()));
        match annotations.is_empty() {
            true => drop(object.remove_at(&path)),
            false if !annotations.is(&old) => object.set_at(&path, annotations),
            false => {}
        }
    }
    object
}

/// The metric that v1 has a field for.
fn cpu(side: &str, percent: Value) -> Value {
    let mut metric = value!({"type": "Resource", "resource": {"name": "cpu"}});
    metric.set_at(&["resource", side, "averageUtilization"], percent);
    if side == "target" {
        metric.set_at(&["resource", side, "type"], "Utilization");
    }
    metric
}

fn cpu_percent<'a>(metric: &'a Value, side: &str) -> Option<&'a Value> {
    let resource = metric.get("resource").filter(|_| metric.str_at(&["type"]) == Some("Resource"))?;
    resource.at(&[side, "averageUtilization"]).filter(|_| resource.str_at(&["name"]) == Some("cpu"))
}

/// What is aimed at, or what was measured: the same metrics with other names.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Target,
    Current,
}

impl Side {
    fn v2(self) -> &'static str {
        match self {
            Side::Target => "target",
            Side::Current => "current",
        }
    }

    /// Its names of a value, an average value and an average utilization in v1.
    fn v1(self) -> [&'static str; 3] {
        match self {
            Side::Target => ["targetValue", "targetAverageValue", "targetAverageUtilization"],
            Side::Current => ["currentValue", "currentAverageValue", "currentAverageUtilization"],
        }
    }
}

/// A metric of v2 as v1 writes it.
fn to_metric(metric: &Value, side: Side) -> Json {
    let [value_name, average_name, utilization_name] = side.v1();
    let of = |source: &str| metric.get(source).filter(|source| !source.is_null());
    let amount = |source: &Value, name: &str| source.at(&[side.v2(), name]).cloned().map(Json::Leaf);
    let or_zero = |amount: Option<Json>| Some(amount.unwrap_or(Json::Leaf("0".into())));
    let text = |source: &Value, path: &[&str]| Some(Json::Leaf(source.str_at(path).unwrap_or_default().into()));
    let selector = |source: &Value| source.at(&["metric", "selector"]).map(to_selector);
    // What a target may leave out, a measurement has.
    let average = |source: &Value| match side {
        Side::Target => amount(source, "averageValue"),
        Side::Current => or_zero(amount(source, "averageValue")),
    };

    let object = of("object").map(|source| {
        let described = source.get("describedObject").cloned().unwrap_or_default();
        object([
            ("target", Some(to_reference(&described))),
            ("metricName", text(source, &["metric", "name"])),
            (value_name, or_zero(amount(source, "value"))),
            ("selector", selector(source)),
            ("averageValue", amount(source, "averageValue")),
        ])
    });
    let pods = of("pods").map(|source| {
        self::object([
            ("metricName", text(source, &["metric", "name"])),
            (average_name, or_zero(amount(source, "averageValue"))),
            ("selector", selector(source)),
        ])
    });
    let resource = of("resource").map(|source| {
        self::object([
            ("name", text(source, &["name"])),
            (utilization_name, amount(source, "averageUtilization")),
            (average_name, average(source)),
        ])
    });
    let container = of("containerResource").map(|source| {
        self::object([
            ("name", text(source, &["name"])),
            (utilization_name, amount(source, "averageUtilization")),
            (average_name, average(source)),
            ("container", text(source, &["container"])),
        ])
    });
    let external = of("external").map(|source| {
        let value = amount(source, "value");
        self::object([
            ("metricName", text(source, &["metric", "name"])),
            ("metricSelector", selector(source)),
            (value_name, if side == Side::Target { value } else { or_zero(value) }),
            (average_name, amount(source, "averageValue")),
        ])
    });
    self::object([
        ("type", text(metric, &["type"])),
        ("object", object),
        ("pods", pods),
        ("resource", resource),
        ("containerResource", container),
        ("external", external),
    ])
}

/// Metrics that v1 wrote, as v2 has them.
fn from_metrics(json: &Value, side: Side) -> Vec<Value> {
    json.as_list().unwrap_or_default().iter().map(|metric| from_metric(metric, side)).collect()
}

fn from_metric(metric: &Value, side: Side) -> Value {
    let [value_name, average_name, utilization_name] = side.v1();
    let mut out = value!({"type": metric.str_at(&["type"]).unwrap_or_default()});
    for name in ["object", "pods", "resource", "containerResource", "external"] {
        let Some(source) = metric.get(name).filter(|source| !source.is_null()) else { continue };
        let amount = |name: &str| source.get(name).filter(|amount| !amount.is_null()).cloned();
        let or_zero = |amount: Option<Value>| Some(amount.unwrap_or("0".into()));
        let average = match side {
            Side::Target => amount(average_name),
            Side::Current => or_zero(amount(average_name)),
        };
        let (value, average, utilization) = match name {
            "object" => (or_zero(amount(value_name)), amount("averageValue"), None),
            "pods" => (None, or_zero(amount(average_name)), None),
            "external" if side == Side::Current => (or_zero(amount(value_name)), amount(average_name), None),
            "external" => (amount(value_name), amount(average_name), None),
            _ => (None, average, amount(utilization_name)),
        };
        let target_type = match name {
            "object" if average.is_none() => "Value",
            "external" if value.is_some() => "Value",
            "resource" | "containerResource" if utilization.is_some() => "Utilization",
            _ => "AverageValue",
        };
        let mut made = Map::default();
        match name {
            "resource" | "containerResource" => {
                for key in ["name", "container"] {
                    made.extend_with(key, source.get(key).cloned());
                }
            }
            _ => {
                let selector = if name == "external" { "metricSelector" } else { "selector" };
                let mut identifier = Map::default();
                identifier.extend_with("name", source.get("metricName").cloned());
                identifier.extend_with("selector", amount(selector));
                made.insert(intern("metric"), identifier);
            }
        }
        if name == "object" {
            made.extend_with("describedObject", source.get("target").cloned());
        }
        let mut target = Map::default();
        if side == Side::Target {
            target.insert(intern("type"), target_type);
        }
        target.extend_with("value", value);
        target.extend_with("averageValue", average);
        target.extend_with("averageUtilization", utilization);
        made.insert(intern(side.v2()), target);
        out.set_at(&[name], made);
    }
    out
}

trait ExtendWith {
    /// Sets a field if there is something to set.
    fn extend_with(&mut self, key: &str, value: Option<Value>);
}

impl ExtendWith for Map {
    fn extend_with(&mut self, key: &str, value: Option<Value>) {
        if let Some(value) = value {
            self.insert(intern(key), value);
        }
    }
}

/// A behaviour with the names of Go's fields: v1 writes the internal type, which has no others.
fn to_behavior(behavior: &Value) -> Json {
    let rules = |name: &str| match behavior.get(name) {
        None | Some(Value::Null) => Json::Leaf(Value::Null),
        Some(rules) => {
            let get = |name: &str| Some(Json::Leaf(rules.get(name).cloned().unwrap_or_default()));
            let policy = |policy: &Value| {
                let number = |name: &str| Some(Json::Leaf(policy.int_at(&[name]).unwrap_or(0).into()));
                let kind = Some(Json::Leaf(policy.str_at(&["type"]).unwrap_or_default().into()));
                object([("Type", kind), ("Value", number("value")), ("PeriodSeconds", number("periodSeconds"))])
            };
            let policies = match rules.get("policies").and_then(Value::as_list) {
                Some(policies) => Json::List(policies.iter().map(policy).collect()),
                None => Json::Leaf(Value::Null),
            };
            object([
                ("StabilizationWindowSeconds", get("stabilizationWindowSeconds")),
                ("SelectPolicy", get("selectPolicy")),
                ("Policies", Some(policies)),
                ("Tolerance", get("tolerance")),
            ])
        }
    };
    object([("ScaleUp", Some(rules("scaleUp"))), ("ScaleDown", Some(rules("scaleDown")))])
}

/// The object with other names for its fields, at every depth; fields that are `null` are left out.
fn relabel(json: &Value, name: fn(&str) -> String) -> Value {
    match json {
        Value::Map(map) => {
            let fields = map.iter().filter(|(_, value)| !value.is_null());
            Value::Map(fields.map(|(key, value)| (intern(&name(key)), relabel(value, name))).collect())
        }
        Value::List(items) => Value::list(items.iter().map(|item| relabel(item, name))),
        other => other.clone(),
    }
}

fn lower(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

fn to_reference(reference: &Value) -> Json {
    let text = |name: &str| Some(Json::Leaf(reference.str_at(&[name]).unwrap_or_default().into()));
    let version = text("apiVersion").filter(|_| reference.str_at(&["apiVersion"]).is_some_and(|v| !v.is_empty()));
    object([("kind", text("kind")), ("name", text("name")), ("apiVersion", version)])
}

fn to_selector(selector: &Value) -> Json {
    let labels = selector.get("matchLabels").cloned().map(Json::Leaf);
    let expressions = selector.get("matchExpressions").and_then(Value::as_list).map(|expressions| {
        Json::List(expressions.iter().map(|one| ordered(one, &["key", "operator", "values"])).collect())
    });
    object([("matchLabels", labels), ("matchExpressions", expressions)])
}

/// JSON whose fields have an order.
enum Json {
    Leaf(Value),
    Object(Vec<(&'static str, Json)>),
    List(Vec<Json>),
}

fn object<const N: usize>(fields: [(&'static str, Option<Json>); N]) -> Json {
    Json::Object(fields.into_iter().filter_map(|(name, json)| Some((name, json?))).collect())
}

fn ordered(value: &Value, order: &[&'static str]) -> Json {
    Json::Object(order.iter().filter_map(|name| Some((*name, Json::Leaf(value.get(name)?.clone())))).collect())
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // As Go writes text that may end up in HTML.
            Json::Leaf(value) => {
                let text = value.to_json();
                f.write_str(&text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"))
            }
            Json::Object(fields) => {
                f.write_str("{")?;
                for (i, (name, json)) in fields.iter().enumerate() {
                    write!(f, "{}\"{name}\":{json}", if i == 0 { "" } else { "," })?;
                }
                f.write_str("}")
            }
            Json::List(items) => {
                f.write_str("[")?;
                for (i, json) in items.iter().enumerate() {
                    write!(f, "{}{json}", if i == 0 { "" } else { "," })?;
                }
                f.write_str("]")
            }
        }
    }
}
