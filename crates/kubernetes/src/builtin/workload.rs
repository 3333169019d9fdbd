//! ReplicaSets, Deployments, StatefulSets, DaemonSets and ReplicationControllers.

use super::{field::Field, gostruct, keep, meta, pod, storage};
use crate::{names, value::Value};

/// A new DaemonSet counts the versions of its template.
pub(super) fn prepare_daemon_set(value: &mut Value) {
    if value.int_at(&["spec", "templateGeneration"]).is_some_and(|generation| generation >= 1) {
        return;
    }
    // The field shows in apps/v1 as this annotation only.
    let counted = value.str_at(&TEMPLATE_GENERATION).and_then(|count| count.parse::<i64>().ok());
    if counted.is_none_or(|count| count < 1) {
        value.set_at(&TEMPLATE_GENERATION, "1");
    }
}

const TEMPLATE_GENERATION: [&str; 3] = ["metadata", "annotations", "deprecated.daemonset.template.generation"];

/// A changed DaemonSet counts on when its template changed.
pub(super) fn prepare_daemon_set_update(value: &mut Value, old: &Value) {
    let count = old.str_at(&TEMPLATE_GENERATION).and_then(|count| count.parse::<i64>().ok()).unwrap_or(0);
    let changed = value.at(&["spec", "template"]) != old.at(&["spec", "template"]);
    let count = (count + i64::from(changed)).to_string();
    if value.str_at(&TEMPLATE_GENERATION) != Some(&count) {
        value.set_at(&TEMPLATE_GENERATION, count);
    }
}

/// What is the same in a write and in the object before it.
struct Before<'o> {
    spec: &'o Value,
}

impl<'o> Before<'o> {
    fn of(old: Option<&'o Value>) -> Before<'o> {
        Before { spec: old.and_then(|old| old.get("spec")).unwrap_or(&Value::Null) }
    }

    /// Whether selector and template are the very ones that were judged together when they were written.
    fn selected(&self, spec: &Field) -> bool {
        let same = |field: &str| match (self.spec.get(field), spec.value.get(field)) {
            (Some(old), Some(new)) => old.is(new),
            _ => false,
        };
        same("selector") && same("template")
    }

    /// Whether the template is the very one that was judged when it was written.
    fn has_template(&self, template: &Field) -> bool {
        self.spec.get("template").is_some_and(|old| old.is(template.value)) && template.is_set()
    }
}

/// The spec of a kind of this family, new or changed.
pub(super) fn validate(kind: &str, object: &Field, old: Option<&Value>) {
    let (spec, before) = (object.child("spec"), Before::of(old));
    if old.is_some() && spec.value.is(before.spec) {
        return;
    }
    match kind {
        "ReplicaSet" => replica_set(&spec, &before),
        "Deployment" => deployment(&spec, &before),
        "StatefulSet" => stateful_set(&spec, old.map(|_| &before)),
        "DaemonSet" => daemon_set(&spec, old.map(|_| &before)),
        "ReplicationController" => replication_controller(&spec, &before),
        _ => {}
    }
    if old.is_some() && matches!(kind, "ReplicaSet" | "Deployment") {
        immutable_selector(&spec.child("selector"), &before);
    }
}

fn immutable_selector(at: &Field, before: &Before) {
    let old = before.spec.get("selector").unwrap_or(&Value::Null);
    if !at.value.is(old) && at.value != old {
        let printed = if at.is_set() { gostruct::print("LabelSelector", at.value) } else { "null".into() };
        at.refuse_printed(printed, "field is immutable");
    }
}

/// A selector that must be there and say something.
fn required_selector(at: &Field, owner: &str) {
    if !at.is_set() {
        return at.required("");
    }
    meta::selector(at);
    if meta::is_empty_selector(at.value) {
        at.refuse_printed("{}", format!("empty selector is invalid for {owner}"));
    }
}

/// The template must carry the labels that the selector asks for. `false` if the selector is none.
fn selects_template(spec: &Field) -> bool {
    let (selector, template) = (spec.child("selector"), spec.child("template"));
    let metadata = template.child("metadata");
    let labels = metadata.child("labels");
    match meta::selects(selector.value, labels.value) {
        None => return false,
        Some(true) => {}
        Some(false) => labels.invalid("`selector` does not match template `labels`"),
    }
    true
}

fn body(template: &Field, before: &Before) {
    if !before.has_template(template) {
        pod::template(template);
    }
}

fn runs_forever(template: &Field, owner: &str) {
    let spec = template.child("spec");
    if spec.child("restartPolicy").text() != "Always" {
        spec.child("restartPolicy").not_supported(&["Always"]);
    }
    if spec.child("activeDeadlineSeconds").is_set() {
        let why = format!("activeDeadlineSeconds in {owner} is not Supported");
        spec.child("activeDeadlineSeconds").forbidden(why);
    }
}

/// The template of a ReplicaSet that is new, and whether its selector chooses it.
pub(super) fn new_template(spec: &Field) {
    selected_template(spec, &Before::of(None));
}

fn selected_template(spec: &Field, before: &Before) {
    if selects_template(spec) {
        let template = spec.child("template");
        body(&template, before);
        runs_forever(&template, "ReplicaSet");
    } else {
        let selector = spec.child("selector");
        selector.refuse_printed(gostruct::print("LabelSelector", selector.value), "invalid label selector");
    }
}

fn replica_set(spec: &Field, before: &Before) {
    spec.child("replicas").non_negative();
    spec.child("minReadySeconds").non_negative();
    if !before.selected(spec) {
        required_selector(&spec.child("selector"), "deployment");
        selected_template(spec, before);
    }
}

fn deployment(spec: &Field, before: &Before) {
    spec.child("replicas").non_negative();
    if !before.selected(spec) {
        required_selector(&spec.child("selector"), "deployment");
        selected_template(spec, before);
    }
    deployment_strategy(&spec.child("strategy"));
    let ready = spec.child("minReadySeconds");
    ready.non_negative();
    spec.child("revisionHistoryLimit").non_negative();
    let deadline = spec.child("progressDeadlineSeconds");
    if deadline.is_set() {
        deadline.non_negative();
        if deadline.int() <= ready.int() {
            deadline.invalid("must be greater than minReadySeconds");
        }
    }
}

fn deployment_strategy(at: &Field) {
    let rolling = at.child("rollingUpdate");
    match at.child("type").text() {
        "Recreate" => {
            if rolling.is_set() {
                rolling.forbidden("may not be specified when strategy `type` is 'Recreate'");
            }
        }
        "RollingUpdate" => {
            if !rolling.is_set() {
                return rolling.required("this should be defaulted and never be nil");
            }
            let (unavailable, surge) = (rolling.child("maxUnavailable"), rolling.child("maxSurge"));
            int_or_percent(&unavailable);
            int_or_percent(&surge);
            if number(unavailable.value) == 0 && number(surge.value) == 0 {
                unavailable.refuse(zero_if_absent(unavailable.value), "may not be 0 when `maxSurge` is 0");
            }
            at_most_all(&unavailable);
        }
        _ => at.note(
            crate::status::FieldError::not_supported(at.to_string(), Value::Null, &["Recreate", "RollingUpdate"])
                .printed(gostruct::print("DeploymentStrategy", at.value)),
        ),
    }
}

fn zero_if_absent(value: &Value) -> Value {
    if value.is_null() { Value::Int(0) } else { value.clone() }
}

/// A number that is not negative, or a percentage.
pub(super) fn int_or_percent(at: &Field) {
    match at.value.as_str() {
        Some(_) => at.check(names::percent),
        None => at.non_negative(),
    }
}

/// No more than 100 %.
pub(super) fn at_most_all(at: &Field) {
    if percent(at.value).is_some_and(|percent| percent > 100) {
        at.invalid("must not be greater than 100%");
    }
}

fn percent(value: &Value) -> Option<i64> {
    let text = value.as_str().filter(|text| names::percent(text).is_empty())?;
    text.strip_suffix('%')?.parse().ok().or(Some(0))
}

/// The number before the percent sign, or the number.
fn number(value: &Value) -> i64 {
    percent(value).unwrap_or_else(|| value.as_int().or(value.as_str().and_then(|text| text.parse().ok())).unwrap_or(0))
}

fn stateful_set(spec: &Field, before: Option<&Before>) {
    let policy = spec.child("podManagementPolicy");
    match policy.text() {
        "" => policy.required(""),
        "OrderedReady" | "Parallel" => {}
        _ => policy.invalid("must be 'OrderedReady' or 'Parallel'"),
    }
    stateful_strategy(&spec.child("updateStrategy"));
    let retention = spec.child("persistentVolumeClaimRetentionPolicy");
    if retention.is_set() {
        for when in [retention.child("whenDeleted"), retention.child("whenScaled")] {
            when.one_of(&["Retain", "Delete"]);
        }
    }
    let claims = spec.child("volumeClaimTemplates");
    if before.is_none() {
        claims.items().for_each(|claim| storage::claim_spec(&claim.child("spec")));
    }
    spec.child("replicas").non_negative();
    spec.child("minReadySeconds").non_negative();
    let start = spec.child("ordinals");
    spec.child("ordinals.start").with(start.child("start").value).non_negative();
    if before.is_none() {
        spec.child("serviceName").check_given(names::dns_label);
    }
    required_selector(&spec.child("selector"), "statefulset");
    let template = spec.child("template");
    if selects_template(spec) {
        if !before.is_some_and(|before| before.has_template(&template)) {
            let judged = with_claims_as_volumes(template.value, claims.list());
            pod::template(&template.with(&judged));
            pod::labels_and_annotations(&template);
        }
    } else {
        spec.child("selector").refuse_printed(gostruct::print("LabelSelector", spec.child("selector").value), "");
    }
    runs_forever(&template, "StatefulSet");
    if let Some(before) = before {
        changed_stateful_set(spec, before);
    }
}

/// A pod of the set sees its claims as volumes; its hostname is not the template's.
fn with_claims_as_volumes(template: &Value, claims: &[Value]) -> Value {
    let mut template = template.clone();
    template.remove_at(&["spec", "hostname"]);
    template.remove_at(&["spec", "subdomain"]);
    if claims.is_empty() {
        return template;
    }
    let name = |value: &Value| value.str_at(&["metadata", "name"]).unwrap_or_default().to_owned();
    let mut volumes: Vec<Value> = Vec::new();
    for claim in claims.iter().map(name) {
        let volume = crate::value!({"name": claim, "persistentVolumeClaim": {"claimName": claim}});
        if !volumes.contains(&volume) {
            volumes.push(volume);
        }
    }
    let others = template.list_at(&["spec", "volumes"]).iter();
    let others = others.filter(|volume| !claims.iter().any(|claim| volume.str_at(&["name"]) == Some(&name(claim))));
    volumes.extend(others.cloned().collect::<Vec<_>>());
    template.set_at(&["spec", "volumes"], volumes);
    template
}

fn stateful_strategy(at: &Field) {
    let (kind, rolling) = (at.child("type"), at.child("rollingUpdate"));
    match kind.text() {
        "" => at.required(""),
        "OnDelete" => {
            if rolling.is_set() {
                let printed = gostruct::print("RollingUpdateStatefulSetStrategy", rolling.value);
                rolling.refuse_printed(printed, "only allowed for updateStrategy 'RollingUpdate'");
            }
        }
        "RollingUpdate" => {
            rolling.child("partition").non_negative();
            let unavailable = rolling.child("maxUnavailable");
            if unavailable.is_set() {
                int_or_percent(&unavailable);
                if number(unavailable.value) == 0 {
                    unavailable.invalid("cannot be 0");
                }
                at_most_all(&unavailable);
            }
        }
        _ => {
            let printed = gostruct::print("StatefulSetUpdateStrategy", at.value);
            at.refuse_printed(printed, "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}

fn changed_stateful_set(spec: &Field, before: &Before) {
    let mut set_back = spec.value.clone();
    let free = [
        "replicas",
        "template",
        "updateStrategy",
        "minReadySeconds",
        "ordinals",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
    ];
    free.iter().for_each(|field| keep(&mut set_back, before.spec, &[field]));
    if set_back != *before.spec {
        let free = "'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', \
                    'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds'";
        spec.forbidden(format!("updates to statefulset spec for fields other than {free} are forbidden"));
    }
}

fn daemon_set(spec: &Field, before: Option<&Before>) {
    let (selector, template) = (spec.child("selector"), spec.child("template"));
    if let Some(before) = before {
        immutable_selector(&selector, before);
    }
    meta::selector(&selector);
    selects_template(spec);
    if selector.is_set() && meta::is_empty_selector(selector.value) {
        selector.refuse_printed("{}", "empty selector is invalid for daemonset");
    }
    if !before.is_some_and(|before| before.has_template(&template)) {
        pod::template(&template);
    }
    runs_forever(&template, "DaemonSet");
    spec.child("minReadySeconds").non_negative();
    daemon_strategy(&spec.child("updateStrategy"));
    spec.child("revisionHistoryLimit").non_negative();
}

fn daemon_strategy(at: &Field) {
    let rolling = at.child("rollingUpdate");
    match at.child("type").text() {
        "OnDelete" => {}
        "RollingUpdate" => {
            if !rolling.is_set() {
                return rolling.required("");
            }
            let (unavailable, surge) = (rolling.child("maxUnavailable"), rolling.child("maxSurge"));
            int_or_percent(&unavailable);
            int_or_percent(&surge);
            at_most_all(&unavailable);
            at_most_all(&surge);
            match (number(unavailable.value), number(surge.value)) {
                (0, 0) => unavailable.required("cannot be 0 when maxSurge is 0"),
                (0, _) | (_, 0) => {}
                _ => surge.invalid("may not be set when maxUnavailable is non-zero"),
            }
        }
        _ => at.note(
            crate::status::FieldError::not_supported(at.to_string(), Value::Null, &["RollingUpdate", "OnDelete"])
                .printed(gostruct::print("DaemonSetUpdateStrategy", at.value)),
        ),
    }
}

fn replication_controller(spec: &Field, before: &Before) {
    spec.child("minReadySeconds").non_negative();
    let (selector, template) = (spec.child("selector"), spec.child("template"));
    if selector.len() == 0 {
        selector.required("");
    }
    let replicas = spec.child("replicas");
    if replicas.is_set() {
        replicas.non_negative()
    } else {
        replicas.required("")
    }
    if !template.is_set() {
        return template.required("");
    }
    let metadata = template.child("metadata");
    let labels = metadata.child("labels");
    if !selector.entries().all(|(key, wanted)| labels.value.get(key) == Some(wanted.value)) {
        labels.invalid("`selector` does not match template `labels`");
    }
    body(&template, before);
    runs_forever(&template, "ReplicationController");
}

/// A write to `/status`.
pub(super) fn validate_status(kind: &str, object: &Field, old: &Value) {
    let status = object.child("status");
    let counts: &[&str] = match kind {
        "ReplicaSet" | "ReplicationController" => &[
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
            "terminatingReplicas",
        ],
        "Deployment" => &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ],
        "StatefulSet" => &[
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ],
        _ => &[
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ],
    };
    counts.iter().for_each(|name| status.child(name).non_negative());
    let of_all: &[&str] = match kind {
        "ReplicaSet" | "ReplicationController" => &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
        "Deployment" => &["updatedReplicas", "readyReplicas", "availableReplicas"],
        "StatefulSet" => &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
        _ => &[],
    };
    for count in of_all.iter().map(|name| status.child(name)) {
        if count.int() > status.child("replicas").int() {
            count.refuse(count.int(), "cannot be greater than status.replicas");
        }
    }
    let available = status.child("availableReplicas");
    if !of_all.is_empty() && available.int() > status.child("readyReplicas").int() {
        let ready = if kind == "StatefulSet" { "status.readyReplicas" } else { "readyReplicas" };
        available.refuse(available.int(), format!("cannot be greater than {ready}"));
    }
    let collisions = status.child("collisionCount");
    if old.int_at(&["status", "collisionCount"]).is_some_and(|old| collisions.int() < old || !collisions.is_set()) {
        collisions.refuse(collisions.int(), "cannot be decremented");
    }
}
