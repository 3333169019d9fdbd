//! Rules for where a pod may run: affinity, tolerations, spreading.

use crate::{
    builtin::{field::Field, gostruct, meta},
    names,
    value::Value,
};

/// `spec.affinity`
pub(super) fn affinity(at: &Field) {
    let node = at.child("nodeAffinity");
    let required = node.child("requiredDuringSchedulingIgnoredDuringExecution");
    if required.is_set() {
        node_selector(&required);
    }
    for term in node.child("preferredDuringSchedulingIgnoredDuringExecution").items() {
        weight(&term.child("weight"));
        node_term(&term.child("preference"), Values::Any);
    }
    for near in [at.child("podAffinity"), at.child("podAntiAffinity")] {
        let required = near.child("requiredDuringSchedulingIgnoredDuringExecution");
        required.items().for_each(|term| pod_term(&term));
        for term in near.child("preferredDuringSchedulingIgnoredDuringExecution").items() {
            weight(&term.child("weight"));
            pod_term(&term.child("podAffinityTerm"));
        }
    }
}

fn weight(at: &Field) {
    if !(1..=100).contains(&at.int()) {
        at.refuse(at.int(), "must be in the range 1-100");
    }
}

/// A node selector with at least one term.
pub fn node_selector(at: &Field) {
    let terms = at.child("nodeSelectorTerms");
    if terms.len() == 0 {
        terms.required("must have at least one node selector term");
    }
    terms.items().for_each(|term| node_term(&term, Values::Labels));
}

/// What the values of a node selector may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    Labels,
    Any,
}

fn node_term(at: &Field, checked: Values) {
    for requirement in at.child("matchExpressions").items() {
        let (operator, values) = (requirement.child("operator"), requirement.child("values"));
        match operator.text() {
            "In" | "NotIn" => {
                if values.len() == 0 {
                    values.required("must be specified when `operator` is 'In' or 'NotIn'");
                }
            }
            "Exists" | "DoesNotExist" => {
                if values.len() > 0 {
                    values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
                }
            }
            "Gt" | "Lt" => {
                if values.len() != 1 {
                    values.required("must be specified single value when `operator` is 'Lt' or 'Gt'");
                }
            }
            other => operator.refuse(other, "not a valid selector operator"),
        }
        requirement.child("key").check(names::label_key);
        if checked == Values::Labels {
            values.items().for_each(|value| value.check(names::label_value));
        }
    }
    for requirement in at.child("matchFields").items() {
        let (operator, values) = (requirement.child("operator"), requirement.child("values"));
        match operator.text() {
            "In" | "NotIn" => {
                if values.len() != 1 {
                    let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                    values.required(why);
                }
            }
            other => operator.refuse(other, "not a valid selector operator"),
        }
        let key = requirement.child("key");
        if key.text() == "metadata.name" {
            values.items().for_each(|value| value.check(names::dns_subdomain));
        } else {
            key.refuse(key.text(), "not a valid field selector key");
        }
    }
}

fn pod_term(at: &Field) {
    meta::selector(&at.child("labelSelector"));
    meta::selector(&at.child("namespaceSelector"));
    for name in at.child("namespaces").list() {
        let name = name.as_str().unwrap_or_default();
        names::dns_label(name).into_iter().for_each(|message| at.child("namespace").refuse(name, message));
    }
    label_keys(at, &["matchLabelKeys", "mismatchLabelKeys"]);
    let key = at.child("topologyKey");
    if key.text().is_empty() {
        key.required("can not be empty");
    }
    key.check(names::label_key);
}

/// `matchLabelKeys` and `mismatchLabelKeys`, which go with a label selector.
fn label_keys(at: &Field, lists: &[&str]) {
    let selector = at.child("labelSelector");
    for keys in lists.iter().map(|name| at.child(name)).filter(|keys| keys.len() > 0) {
        if selector.is_set() {
            keys.items().for_each(|key| key.check(names::label_key));
        } else {
            keys.forbidden("must not be specified when labelSelector is not set");
        }
    }
    let matched = at.child("matchLabelKeys").list();
    let mut selected: Vec<&str> = selector.child("matchLabels").entries().map(|(key, _)| key.as_str()).collect();
    for requirement in selector.child("matchExpressions").items() {
        let key = requirement.child("key").text();
        let place = matched.iter().rposition(|matched| matched.as_str() == Some(key));
        if let Some(i) = place.filter(|_| selected.contains(&key)) {
            at.index(i).refuse(key, "exists in both matchLabelKeys and labelSelector");
        }
        selected.push(key);
    }
    let mismatched = at.child("mismatchLabelKeys").list();
    for key in at.child("matchLabelKeys").items().filter(|key| mismatched.contains(key.value)) {
        key.invalid("exists in both matchLabelKeys and mismatchLabelKeys");
    }
}

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// `spec.tolerations`
pub(super) fn tolerations(at: &Field) {
    for toleration in at.items() {
        let [key, operator, value, effect] =
            ["key", "operator", "value", "effect"].map(|name| toleration.value.str_at(&[name]).unwrap_or_default());
        toleration.child("key").check_given(names::label_key);
        let at = toleration.child("operator");
        if key.is_empty() && operator != "Exists" {
            let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            at.refuse(operator, why);
        }
        if toleration.child("tolerationSeconds").is_set() && effect != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            toleration.child("effect").refuse(effect, why);
        }
        match operator {
            "Equal" | "" => {
                let problems = names::label_value(value);
                if !problems.is_empty() {
                    at.refuse(value, problems.join(";"));
                }
            }
            "Exists" => {
                if !value.is_empty() {
                    at.refuse(value, "value must be empty when `operator` is 'Exists'");
                }
            }
            "Lt" | "Gt" => at.not_supported(&["Equal", "Exists", "Lt", "Gt"]),
            _ => at.not_supported(&["Equal", "Exists"]),
        }
        if !effect.is_empty() {
            toleration.child("effect").one_of(&EFFECTS);
        }
    }
}

/// `spec.taints` of a node; upstream blames them on its metadata.
pub fn taints(at: &Field) {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for taint in at.items() {
        let (key, value, effect) = (taint.child("key"), taint.child("value"), taint.child("effect"));
        key.check(names::label_key);
        let problems = names::label_value(value.text());
        if !problems.is_empty() {
            value.refuse(value.text(), problems.join(";"));
        }
        effect.one_of_required(&EFFECTS);
        let pair = (key.text(), effect.text());
        if seen.contains(&pair) {
            let mut problem = crate::status::FieldError::duplicate(taint.to_string(), Value::Null);
            problem.detail = "taints must be unique by key and effect pair".into();
            taint.note(problem.printed(gostruct::print("Taint", taint.value)));
        } else {
            seen.push(pair);
        }
    }
}

/// `spec.topologySpreadConstraints`
pub(super) fn spread(at: &Field) {
    for (i, constraint) in at.items().enumerate() {
        let (key, action) = (constraint.child("topologyKey"), constraint.child("whenUnsatisfiable"));
        constraint.child("maxSkew").positive();
        if key.text().is_empty() {
            key.required("can not be empty");
        }
        action.one_of(&["DoNotSchedule", "ScheduleAnyway"]);
        let repeats = |other: &Value| {
            other.str_at(&["topologyKey"]).unwrap_or_default() == key.text()
                && other.str_at(&["whenUnsatisfiable"]).unwrap_or_default() == action.text()
        };
        if at.list()[i + 1..].iter().any(repeats) {
            let pair = format!("{{{}, {}}}", key.text(), action.text());
            constraint.child("{topologyKey, whenUnsatisfiable}").duplicate_of(pair);
        }
        let domains = constraint.child("minDomains");
        if domains.is_set() {
            domains.positive();
            if action.text() != "DoNotSchedule" {
                let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}", action.text());
                domains.invalid(why);
            }
        }
        constraint.child("nodeAffinityPolicy").one_of_given(&["Honor", "Ignore"]);
        constraint.child("nodeTaintsPolicy").one_of_given(&["Honor", "Ignore"]);
        label_keys(&constraint, &["matchLabelKeys"]);
        meta::selector(&constraint.child("labelSelector"));
    }
}
