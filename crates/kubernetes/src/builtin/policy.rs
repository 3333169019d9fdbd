//! PodDisruptionBudgets.

use super::{field::Field, gostruct, meta, workload};
use crate::{names, value::Value};

/// A budget, new or changed.
pub(super) fn validate(budget: &Field, old: Option<&Value>) {
    let spec = budget.child("spec");
    if old.and_then(|old| old.get("spec")).is_some_and(|old| old.is(spec.value)) {
        return;
    }
    let (least, most) = (spec.child("minAvailable"), spec.child("maxUnavailable"));
    if least.is_set() && most.is_set() {
        let printed = gostruct::print("PodDisruptionBudgetSpec", spec.value);
        spec.refuse_printed(printed, "minAvailable and maxUnavailable cannot be both set");
    }
    for bound in [least, most] {
        if bound.is_set() {
            workload::int_or_percent(&bound);
            workload::at_most_all(&bound);
        }
    }
    meta::selector(&spec.child("selector"));
    spec.child("unhealthyPodEvictionPolicy").one_of_given(&["AlwaysAllow", "IfHealthyBudget"]);
}

/// A write to `/status`.
pub(super) fn validate_status(budget: &Field) {
    let status = budget.child("status");
    conditions(&status.child("conditions"));
    for count in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
        status.child(count).non_negative();
    }
}

/// `[]metav1.Condition`
fn conditions(at: &Field) {
    let mut seen: Vec<&str> = Vec::new();
    for condition in at.items() {
        let kind = condition.child("type");
        if seen.contains(&kind.text()) {
            kind.duplicate();
        } else {
            seen.push(kind.text());
        }
        kind.check(names::label_key);
        condition.child("status").one_of(&["False", "True", "Unknown"]);
        let generation = condition.child("observedGeneration");
        if generation.int() < 0 {
            generation.invalid("must be greater than or equal to zero");
        }
        if !condition.child("lastTransitionTime").is_set() {
            condition.child("lastTransitionTime").required("");
        }
        let reason = condition.child("reason");
        if reason.text().is_empty() {
            reason.required("");
        } else if !is_reason(reason.text()) {
            reason.invalid(
                "a condition reason must start with alphabetic character, optionally followed by a string of \
                 alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  \
                 or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is \
                 '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')",
            );
        }
        if condition.child("message").text().len() > 32 << 10 {
            condition.child("message").too_long(32 << 10);
        }
    }
}

fn is_reason(text: &str) -> bool {
    let bytes = text.as_bytes();
    let last = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(last)
        && bytes.iter().all(|b| last(b) || b",:".contains(b))
}
