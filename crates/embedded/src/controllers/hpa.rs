//! HorizontalPodAutoscalers, on values that an annotation gives instead of a metrics server.
//!
//! | annotation `embedded.tidegate.dev/…` of the autoscaler | effect |
//! |---|---|
//! | `value: "80"` | what every metric reads: a percentage for a `Utilization` target, else an amount (`500m`, `2k`) |
//! | `value.cpu: "80"` | what the metric of this name reads |
//!
//! The desired size is the largest that any metric asks for: `ceil(current × value / target)`, or the current one within
//! a tenth of the target; then within `minReplicas` and `maxReplicas`, no more than doubled (or four more) at once, and
//! no smaller than any size asked for within the stabilisation window (five minutes unless `behavior` says otherwise).
//! Policies of `behavior` limit one move each, not a period. An autoscaler acts on changes, 15 s after its last move, and
//! when a window ends. A metric without a value is unknown, as without a metrics server.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

use super::{
    Next,
    ask::{self, Condition},
    hands::{AUTOSCALERS, Hands, Key},
    kubelet::story::PREFIX,
    replicaset::after,
};
use crate::kubernetes::{
    clock::rfc3339,
    object::Object,
    value::{Text, Value},
};

const COMPONENT: &str = "horizontal-pod-autoscaler";
const TOLERANCE: f64 = 0.1;
const DOWN_WINDOW: i64 = 300;
/// How soon an autoscaler moves again.
const PERIOD: SignedDuration = SignedDuration::from_secs(15);

/// The sizes asked for within the windows, by the autoscaler's uid. Forgotten on a restart, as upstream forgets them.
#[derive(Debug, Default, Clone)]
pub struct Memory(HashMap<Text, Vec<(Timestamp, i64)>>);

impl Memory {
    /// Forgets an autoscaler that is gone.
    pub fn forget(&mut self, uid: &str) {
        self.0.remove(uid);
    }
}

/// Looks at one autoscaler and scales its target if it must.
pub fn sync(hands: &mut Hands, memory: &mut Memory, key: &Key) -> Next {
    let Some(autoscaler) = hands.get(&AUTOSCALERS, key) else { return Next::Idle };
    let now = hands.now();
    // One move per period; whatever changes in between is seen then.
    let last = ask::time(autoscaler.value.at(&["status", "lastScaleTime"]));
    let next = last.and_then(|last| last.checked_add(PERIOD).ok()).filter(|next| *next > now);
    if let Some(next) = next {
        return Next::At(next);
    }
    let reference = |field| autoscaler.value.str_at(&["spec", "scaleTargetRef", field]).unwrap_or_default().to_owned();
    let (api_version, kind) = (reference("apiVersion"), reference("kind"));
    let target = Key { namespace: key.namespace.clone(), name: reference("name").into() };
    let mut show = Show::new(&autoscaler.value, now);
    let scale = match hands.scale(&api_version, &kind, &target) {
        Ok(Some(scale)) => scale,
        missing => {
            let why = match missing {
                Err(why) => why,
                Ok(_) => missing_target(hands, &api_version, &kind, &target.name),
            };
            hands.event(COMPONENT, &autoscaler, "Warning", "FailedGetScale", why.as_str());
            let message = format!("the HPA controller was unable to get the target's current scale: {why}");
            show.condition("AbleToScale", "False", "FailedGetScale", message);
            return show.write(hands, &autoscaler, None);
        }
    };
    let message = "the HPA controller was able to get the target's current scale";
    show.condition("AbleToScale", "True", "SucceededGetScale", message);
    let current = scale.int_at(&["spec", "replicas"]).unwrap_or(0);
    let verdict = decide(&autoscaler.value, current, memory.0.entry(autoscaler.uid()).or_default(), now);
    show.status.set_at(&["currentReplicas"], current);
    for (kind, status, reason, message) in verdict.conditions {
        show.condition(kind, status, reason, message);
    }
    match verdict.metrics.is_empty() {
        true => drop(show.status.remove_at(&["currentMetrics"])),
        false => show.status.set_at(&["currentMetrics"], verdict.metrics),
    }
    for (reason, message) in &verdict.warnings {
        hands.event(COMPONENT, &autoscaler, "Warning", reason, message.as_str());
    }
    let Some(desired) = verdict.desired else { return show.write(hands, &autoscaler, verdict.wake) };
    show.status.set_at(&["desiredReplicas"], desired);
    if desired != current {
        let mut scaled = scale;
        scaled.set_at(&["spec", "replicas"], desired);
        let resource = hands.resource_of(&api_version, &kind);
        let refused = resource.and_then(|resource| hands.put(&resource, &target, "scale", scaled).err());
        if let Some(refused) = refused {
            let message = format!("New size: {desired}; reason: {}; error: {refused}", verdict.reason);
            hands.event(COMPONENT, &autoscaler, "Warning", "FailedRescale", message);
            let message = format!("the HPA controller was unable to update the target scale: {refused}");
            show.condition("AbleToScale", "False", "FailedUpdateScale", message);
            show.write(hands, &autoscaler, None);
            return Next::Retry;
        }
        let message = format!("the HPA controller was able to update the target scale to {desired}");
        show.condition("AbleToScale", "True", "SucceededRescale", message);
        let message = format!("New size: {desired}; reason: {}", verdict.reason);
        hands.event(COMPONENT, &autoscaler, "Normal", "SuccessfulRescale", message);
        show.status.set_at(&["lastScaleTime"], rfc3339(now));
    }
    show.write(hands, &autoscaler, verdict.wake)
}

fn missing_target(hands: &Hands, api_version: &str, kind: &str, name: &str) -> String {
    let plural =
        hands.resource_of(api_version, kind).map(|r| crate::kubernetes::status::qualified(&r.group, &r.plural));
    format!("{} \"{name}\" not found", plural.unwrap_or_default())
}

/// The status as it grows.
struct Show {
    status: Value,
    now: Timestamp,
}

impl Show {
    fn new(autoscaler: &Value, now: Timestamp) -> Show {
        let mut status = autoscaler.get("status").cloned().unwrap_or_else(Value::object);
        if status.get("desiredReplicas").is_none() {
            status.set_at(&["desiredReplicas"], 0);
        }
        Show { status, now }
    }

    fn condition(&mut self, kind: &str, status: &str, reason: &str, message: impl Into<String>) {
        let condition = Condition { kind, status, reason, message: message.into(), observed_generation: None };
        let mut conditions = self.status.list_at(&["conditions"]).to_vec();
        ask::set_condition(&mut conditions, condition, self.now);
        self.status.set_at(&["conditions"], conditions);
    }

    fn write(self, hands: &mut Hands, autoscaler: &Object, wake: Option<Timestamp>) -> Next {
        if Some(&self.status) != autoscaler.value.get("status")
            && hands.update_status(&AUTOSCALERS, autoscaler, self.status).is_err()
        {
            return Next::Retry;
        }
        wake.map_or(Next::Idle, Next::At)
    }
}

/// What an autoscaler decides.
#[derive(Debug, Default, PartialEq)]
pub struct Verdict {
    /// The size to set; `None` if it cannot tell.
    pub desired: Option<i64>,
    /// Why, for the event.
    pub reason: String,
    /// Conditions to show: type, status, reason, message.
    pub conditions: Vec<(&'static str, &'static str, &'static str, String)>,
    /// Warnings to record: reason, message.
    pub warnings: Vec<(&'static str, String)>,
    /// `status.currentMetrics`
    pub metrics: Vec<Value>,
    /// When to look again.
    pub wake: Option<Timestamp>,
}

/// Decides the size of the target. `past` are the sizes asked for before.
pub fn decide(autoscaler: &Value, current: i64, past: &mut Vec<(Timestamp, i64)>, now: Timestamp) -> Verdict {
    let least = autoscaler.int_at(&["spec", "minReplicas"]).unwrap_or(1);
    let most = autoscaler.int_at(&["spec", "maxReplicas"]).unwrap_or(least);
    let mut verdict = Verdict::default();
    if past.is_empty() {
        past.push((now, current));
    }
    if current == 0 && least != 0 {
        let message = "scaling is disabled since the replica count of the target is zero".to_owned();
        verdict.conditions.push(("ScalingActive", "False", "ScalingDisabled", message));
        verdict.desired = Some(0);
        return verdict;
    }
    if current > most || current < least {
        let (bound, way, field) = if current > most { (most, "above", "Max") } else { (least, "below", "Min") };
        verdict.reason = format!("Current number of replicas {way} Spec.{field}Replicas");
        verdict.desired = Some(bound);
        return verdict;
    }
    let Some((asked, metric)) = ask_metrics(autoscaler, current, &mut verdict) else { return verdict };
    verdict.reason = match asked > current {
        true => format!("{metric} above target"),
        false => "All metrics below target".to_owned(),
    };
    let steady = stabilise(autoscaler, asked, current, past, now, &mut verdict);
    let (desired, reason, message) = limit(autoscaler, steady, current, least, most);
    let limited = if desired == steady { "False" } else { "True" };
    verdict.conditions.push(("ScalingLimited", limited, reason, message.to_owned()));
    if matches!(reason, "ScaleUpLimit" | "ScaleDownLimit") {
        let soon = now.saturating_add(PERIOD).unwrap_or(Timestamp::MAX);
        verdict.wake = Some(verdict.wake.map_or(soon, |first| first.min(soon)));
    }
    verdict.desired = Some(desired);
    verdict
}

/// The largest size any metric asks for, and that metric's name; `None` if no metric has a value.
fn ask_metrics(autoscaler: &Value, current: i64, verdict: &mut Verdict) -> Option<(i64, String)> {
    let mut best: Option<(i64, String)> = None;
    let mut unknown: Option<Metric> = None;
    let mut unknowns = 0;
    let metrics = autoscaler.list_at(&["spec", "metrics"]);
    for metric in metrics.iter().filter_map(Metric::of) {
        let named = ask::annotation(autoscaler, &format!("{PREFIX}value.{}", metric.name));
        let given = named.or_else(|| ask::annotation(autoscaler, &format!("{PREFIX}value")));
        let Some(value) = given.and_then(quantity) else {
            verdict.warnings.push((metric.failure_reason, metric.failure.clone()));
            // What upstream shows of a metric it could not read.
            verdict.metrics.push(map! {"type": ""});
            unknowns += 1;
            unknown.get_or_insert(metric);
            continue;
        };
        verdict.metrics.push(metric.status(value));
        let ratio = value / metric.target;
        let size = match (ratio - 1.0).abs() <= TOLERANCE {
            true => current,
            false => (ratio * current as f64).ceil().min(i32::MAX.into()) as i64,
        };
        if best.as_ref().is_none_or(|(most, _)| size > *most) {
            best = Some((size, metric.words));
        }
    }
    match (&best, unknown) {
        // With a metric unknown, nothing may shrink.
        (Some((size, _)), Some(_)) if *size < current => best = Some((current, String::new())),
        (None, Some(metric)) => {
            let message = format!("the HPA was unable to compute the replica count: {}", metric.failure);
            verdict.conditions.push(("ScalingActive", "False", metric.failure_reason, message));
            let message = format!(
                "invalid metrics ({unknowns} invalid out of {}), first error is: failed to get {} metric value: {}",
                metrics.len(),
                metric.subject,
                metric.failure
            );
            verdict.warnings.push(("FailedComputeMetricsReplicas", message));
            return None;
        }
        _ => {}
    }
    let (size, words) = best?;
    let message = format!("the HPA was able to successfully calculate a replica count from {words}");
    verdict.conditions.push(("ScalingActive", "True", "ValidMetricFound", message));
    Some((size, words))
}

/// A metric of an autoscaler.
struct Metric {
    name: String,
    words: String,
    subject: String,
    failure: String,
    failure_reason: &'static str,
    target: f64,
    shape: (&'static str, &'static str, &'static str, Value),
}

impl Metric {
    fn of(metric: &Value) -> Option<Metric> {
        let kind = metric.str_at(&["type"])?;
        let (field, failure_reason) = match kind {
            "Resource" => ("resource", "FailedGetResourceMetric"),
            "ContainerResource" => ("containerResource", "FailedGetContainerResourceMetric"),
            "Pods" => ("pods", "FailedGetPodsMetric"),
            "Object" => ("object", "FailedGetObjectMetric"),
            "External" => ("external", "FailedGetExternalMetric"),
            _ => return None,
        };
        let body = metric.get(field)?;
        let name = body.str_at(&["name"]).or_else(|| body.str_at(&["metric", "name"]))?.to_owned();
        let target = body.get("target")?;
        let (of, target) = match target.str_at(&["type"])? {
            "Utilization" => ("averageUtilization", target.int_at(&["averageUtilization"])? as f64),
            "AverageValue" => ("averageValue", read_quantity(target.get("averageValue")?)?),
            _ => ("value", read_quantity(target.get("value")?)?),
        };
        let words = match (kind, of) {
            ("Resource", "averageUtilization") => format!("{name} resource utilization (percentage of request)"),
            ("ContainerResource", "averageUtilization") => {
                format!("{name} container resource utilization (percentage of request)")
            }
            ("Resource", _) => format!("{name} resource"),
            ("ContainerResource", _) => format!("{name} container resource"),
            ("Pods", _) => format!("pods metric {name}"),
            ("Object", _) => format!("{} metric {name}", body.str_at(&["describedObject", "kind"]).unwrap_or_default()),
            _ => format!("external metric {name}(nil)"),
        };
        let identity = match kind {
            "Resource" | "ContainerResource" => "name",
            _ => "metric",
        };
        let shown = match identity {
            "name" => Value::from(name.as_str()),
            _ => body.get("metric").cloned().unwrap_or_default(),
        };
        let missing = "the server could not find the requested resource";
        let (subject, failure) = match kind {
            "Resource" | "ContainerResource" => {
                let what = if of == "averageUtilization" { "utilization" } else { "usage" };
                let api = "unable to fetch metrics from resource metrics API";
                let why =
                    format!("unable to get metrics for resource {name}: {api}: {missing} (get pods.metrics.k8s.io)");
                (format!("{name} resource"), format!("failed to get {name} {what}: {why}"))
            }
            "External" => {
                let why = format!(
                    "no metrics returned from external metrics API: {missing} (get {name}.external.metrics.k8s.io)"
                );
                (format!("{name} external metric"), format!("unable to get external metric {name}: {why}"))
            }
            _ => {
                let why = format!(
                    "no metrics returned from custom metrics API: {missing} (get {name}.custom.metrics.k8s.io)"
                );
                (format!("{} metric", kind.to_lowercase()), format!("unable to get metric {name}: {why}"))
            }
        };
        (target > 0.0).then_some(())?;
        let shape = (static_kind(kind), field, of, shown);
        Some(Metric { name, words, subject, failure, failure_reason, target, shape })
    }

    /// The entry of `status.currentMetrics`.
    fn status(&self, value: f64) -> Value {
        let (kind, field, of, identity) = &self.shape;
        let shown = match *of {
            "averageUtilization" => Value::Int(value as i64),
            _ => Value::from(print_quantity(value)),
        };
        let mut body = Value::object();
        let key = if matches!(*kind, "Resource" | "ContainerResource") { "name" } else { "metric" };
        body.set_at(&[key], identity);
        body.set_at(&["current", of], shown);
        let mut metric = map! {"type": *kind};
        metric.set_at(&[field], body);
        metric
    }
}

fn static_kind(kind: &str) -> &'static str {
    match kind {
        "Resource" => "Resource",
        "ContainerResource" => "ContainerResource",
        "Pods" => "Pods",
        "Object" => "Object",
        _ => "External",
    }
}

fn read_quantity(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| quantity(value.as_str()?))
}

/// `75`, `500m`, `2k`, `1Gi`
fn quantity(text: &str) -> Option<f64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..digits].parse().ok()?;
    let unit = match &text[digits..] {
        "" | "%" => 1.0,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "Ki" => 1024.0,
        "Mi" => 1024.0 * 1024.0,
        "Gi" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some(number * unit)
}

fn print_quantity(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{:.0}m", (value * 1000.0).ceil()) }
}

/// Keeps the size within what was asked for lately; remembers what is asked for now.
fn stabilise(
    autoscaler: &Value,
    asked: i64,
    current: i64,
    past: &mut Vec<(Timestamp, i64)>,
    now: Timestamp,
    verdict: &mut Verdict,
) -> i64 {
    let window =
        |way, default| autoscaler.int_at(&["spec", "behavior", way, "stabilizationWindowSeconds"]).unwrap_or(default);
    let (up, down) = (window("scaleUp", 0), window("scaleDown", DOWN_WINDOW));
    past.retain(|(time, _)| after(*time, up.max(down)) > now);
    let within = |seconds| past.iter().filter(move |(time, _)| after(*time, seconds) > now);
    let lowest = within(up).map(|(_, size)| *size).fold(asked, i64::min);
    let highest = within(down).map(|(_, size)| *size).fold(asked, i64::max);
    let steady = current.max(lowest).min(highest);
    let (reason, message) = if steady == asked {
        ("ReadyForNewScale", "recommended size matches current size")
    } else if asked >= current {
        (
            "ScaleUpStabilized",
            "recent recommendations were lower than current one, applying the lowest recent recommendation",
        )
    } else {
        (
            "ScaleDownStabilized",
            "recent recommendations were higher than current one, applying the highest recent recommendation",
        )
    };
    verdict.conditions.push(("AbleToScale", "True", reason, message.to_owned()));
    if steady != asked {
        // The first of the sizes that hold it back leaves its window then.
        let (seconds, holds): (i64, fn(i64, i64) -> bool) =
            if asked < current { (down, |size, asked| size > asked) } else { (up, |size, asked| size < asked) };
        let ends = past.iter().filter(|(_, size)| holds(*size, asked)).map(|(time, _)| after(*time, seconds));
        verdict.wake = ends.filter(|end| *end > now).min();
    }
    if past.last().is_none_or(|(_, size)| *size != asked) {
        past.push((now, asked));
    } else if let Some(last) = past.last_mut() {
        last.0 = now;
    }
    steady
}

/// Keeps the size within the bounds, and the move within the policies.
fn limit(autoscaler: &Value, wanted: i64, current: i64, least: i64, most: i64) -> (i64, &'static str, &'static str) {
    let up = policy_limit(autoscaler, "scaleUp", current).unwrap_or((current * 2).max(current + 4));
    let down = policy_limit(autoscaler, "scaleDown", current).unwrap_or(0);
    if wanted > most.min(up) && wanted > current {
        return match most > up {
            true => (up, "ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate"),
            false => (most, "TooManyReplicas", "the desired replica count is more than the maximum replica count"),
        };
    }
    if wanted < least.max(down) && wanted <= current {
        return match least < down {
            true => {
                (down, "ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")
            }
            false => (least, "TooFewReplicas", "the desired replica count is less than the minimum replica count"),
        };
    }
    (wanted, "DesiredWithinRange", "the desired count is within the acceptable range")
}

/// How far one move may go by the policies of `behavior`; `None` if there are none.
fn policy_limit(autoscaler: &Value, way: &str, current: i64) -> Option<i64> {
    let rules = autoscaler.at(&["spec", "behavior", way])?;
    let select = rules.str_at(&["selectPolicy"]).unwrap_or("Max");
    if select == "Disabled" {
        return Some(current);
    }
    let sign = if way == "scaleUp" { 1 } else { -1 };
    let moves = rules.list_at(&["policies"]).iter().filter_map(|policy| {
        let value = policy.int_at(&["value"])?;
        Some(match policy.str_at(&["type"])? {
            "Percent" if sign > 0 => (current * value + 99) / 100,
            "Percent" => current * value / 100,
            _ => value,
        })
    });
    let step = if select == "Min" { moves.min() } else { moves.max() }?;
    Some((current + sign * step).max(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    fn autoscaler(value: &str) -> Value {
        value!({
            "metadata": {"annotations": {"embedded.tidegate.dev/value": value}},
            "spec": {"minReplicas": 2, "maxReplicas": 20, "metrics": [{"type": "Resource", "resource":
                {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]},
        })
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    #[test]
    fn the_size_follows_the_value() {
        for (value, current, desired, reason) in [
            ("50", 4, 4, "DesiredWithinRange"),
            ("54", 4, 4, "DesiredWithinRange"),
            ("60", 4, 5, "DesiredWithinRange"),
            ("500", 4, 8, "ScaleUpLimit"),
            ("100", 15, 20, "TooManyReplicas"),
        ] {
            let verdict = decide(&autoscaler(value), current, &mut Vec::new(), at(0));
            let limited = verdict.conditions.iter().find(|condition| condition.0 == "ScalingLimited").map(|c| c.2);
            assert_eq!((verdict.desired, limited), (Some(desired), Some(reason)), "{value}");
        }
    }

    #[test]
    fn it_shrinks_only_after_the_window() {
        let mut past = Vec::new();
        let row = |past: &mut Vec<_>, second| {
            let verdict = decide(&autoscaler("10"), 10, past, at(second));
            (verdict.desired, verdict.wake.map(|wake| wake.as_second() - 1_800_000_000))
        };
        assert_eq!(row(&mut past, 0), (Some(10), Some(300)));
        assert_eq!(row(&mut past, 299), (Some(10), Some(300)));
        assert_eq!(row(&mut past, 300), (Some(2), None));
    }

    #[test]
    fn bounds_come_first_and_zero_switches_it_off() {
        let verdict = decide(&autoscaler("50"), 30, &mut Vec::new(), at(0));
        assert_eq!(
            (verdict.desired, verdict.reason.as_str()),
            (Some(20), "Current number of replicas above Spec.MaxReplicas")
        );
        let verdict = decide(&autoscaler("50"), 1, &mut Vec::new(), at(0));
        assert_eq!(
            (verdict.desired, verdict.reason.as_str()),
            (Some(2), "Current number of replicas below Spec.MinReplicas")
        );
        let verdict = decide(&autoscaler("500"), 0, &mut Vec::new(), at(0));
        assert_eq!((verdict.desired, verdict.conditions[0].2), (Some(0), "ScalingDisabled"));
    }

    #[test]
    fn without_a_value_nothing_moves() {
        let mut none = autoscaler("");
        none.remove_at(&["metadata", "annotations"]);
        let verdict = decide(&none, 4, &mut Vec::new(), at(0));
        assert_eq!((verdict.desired, verdict.conditions[0].2), (None, "FailedGetResourceMetric"));
    }

    #[test]
    fn an_unknown_metric_is_reported_in_the_real_words() {
        let mut none = autoscaler("");
        none.remove_at(&["metadata", "annotations"]);
        let verdict = decide(&none, 4, &mut Vec::new(), at(0));
        let why = "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from resource \
                   metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)";
        let all = "invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: ";
        assert_eq!(
            verdict.warnings,
            [("FailedGetResourceMetric", why.to_owned()), ("FailedComputeMetricsReplicas", format!("{all}{why}"))]
        );
        assert_eq!(Value::list(verdict.metrics), value!([{"type": ""}]));
    }

    #[test]
    fn a_metric_shows_what_it_reads() {
        let verdict = decide(&autoscaler("60"), 4, &mut Vec::new(), at(0));
        assert_eq!(
            Value::list(verdict.metrics),
            value!([{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 60}}}])
        );
        assert_eq!(verdict.reason, "cpu resource utilization (percentage of request) above target");
    }

    #[test]
    fn policies_limit_a_move() {
        let mut careful = autoscaler("500");
        careful.set_at(
            &["spec", "behavior", "scaleUp", "policies"],
            value!([{"type": "Pods", "value": 1, "periodSeconds": 60}]),
        );
        assert_eq!(decide(&careful, 4, &mut Vec::new(), at(0)).desired, Some(5));
        careful.set_at(&["spec", "behavior", "scaleUp", "selectPolicy"], "Disabled");
        assert_eq!(decide(&careful, 4, &mut Vec::new(), at(0)).desired, Some(4));
    }
}
