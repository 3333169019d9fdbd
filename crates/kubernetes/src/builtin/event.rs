//! Events, of the core group and of events.k8s.io.

use super::{field::Field, gostruct};
use crate::{names, value::Value};

/// The names of one event's fields in both groups.
struct Names {
    object: &'static str,
    message: &'static str,
    controller: &'static str,
    first: &'static str,
    last: &'static str,
    count: &'static str,
    source: &'static str,
}

const CORE: Names = Names {
    object: "involvedObject",
    message: "message",
    controller: "reportingComponent",
    first: "firstTimestamp",
    last: "lastTimestamp",
    count: "count",
    source: "source",
};
const EVENTS: Names = Names {
    object: "regarding",
    message: "note",
    controller: "reportingController",
    first: "deprecatedFirstTimestamp",
    last: "deprecatedLastTimestamp",
    count: "deprecatedCount",
    source: "deprecatedSource",
};

/// An event, new or changed. Rules are stricter in the newer group.
pub(super) fn validate(group: &str, event: &Field, old: Option<&Value>) {
    let names = if group.is_empty() { &CORE } else { &EVENTS };
    legacy(event, names);
    if group.is_empty() {
        return;
    }
    match old {
        None => strict(event, names),
        Some(old) => unchanged(event, old, names),
    }
}

fn legacy(event: &Field, names: &Names) {
    let namespace = event.value.str_at(&["metadata", "namespace"]).unwrap_or_default();
    let object = event.child("involvedObject");
    let of_object = event.value.str_at(&[names.object, "namespace"]).unwrap_or_default();
    let mismatch = || object.child("namespace").refuse(of_object, "does not match event.namespace");
    if event.child("eventTime").text().is_empty() {
        let matches = match of_object {
            "" => ["", "default"].contains(&namespace),
            _ => of_object == namespace,
        };
        if !matches {
            mismatch();
        }
        return namespace_name(event, namespace);
    }
    if of_object.is_empty() && !["default", "kube-system"].contains(&namespace) {
        mismatch();
    }
    let controller = event.child(names.controller);
    if controller.text().is_empty() {
        controller.required("");
    }
    controller.check(names::label_key);
    for (name, limit) in [("reportingInstance", 128), ("action", 128), ("reason", 128)] {
        let field = event.child(name);
        if field.text().is_empty() {
            field.required("");
        }
        if field.text().len() > limit {
            field.refuse("", format!("can have at most {limit} characters"));
        }
    }
    let message = event.child("message").with(event.child(names.message).value);
    if message.text().len() > 1024 {
        message.refuse("", "can have at most 1024 characters");
    }
    namespace_name(event, namespace);
}

fn namespace_name(event: &Field, namespace: &str) {
    names::dns_subdomain(namespace).into_iter().for_each(|message| event.child("namespace").refuse(namespace, message));
}

fn series(event: &Field) {
    let series = event.child("series");
    if !series.is_set() {
        return;
    }
    if series.child("count").int() < 2 {
        series.child("count").refuse("", "should be at least 2");
    }
    if series.child("lastObservedTime").text().is_empty() {
        series.child("lastObservedTime").required("");
    }
}

fn strict(event: &Field, names: &Names) {
    series(event);
    if event.child("eventTime").text().is_empty() {
        event.child("eventTime").required("");
    }
    let kind = event.child("type");
    if !["Normal", "Warning"].contains(&kind.text()) {
        kind.refuse("", format!("has invalid value: {}", kind.text()));
    }
    let unset = |given: &str, blamed: &str| {
        let field = event.child(given);
        let zero = field.value.as_int() == Some(0) || (field.len() == 0 && field.value.as_map().is_some());
        if field.is_set() && !zero {
            event.child(blamed).refuse("", "needs to be unset");
        }
    };
    unset(names.first, "firstTimestamp");
    unset(names.last, "lastTimestamp");
    unset(names.count, "count");
    unset(names.source, "source");
}

fn unchanged(event: &Field, old: &Value, names: &Names) {
    if event.value.get("series") != old.get("series") {
        series(event);
    }
    let same = |field: &str| {
        let (new, old) = (event.value.get(field).unwrap_or(&Value::Null), old.get(field).unwrap_or(&Value::Null));
        new == old
    };
    let object = |field: &str, blamed: &str, go: &str| {
        if !same(field) {
            let printed = gostruct::print(go, event.child(field).value);
            event.child(blamed).refuse_printed(printed, "field is immutable");
        }
    };
    let text = |field: &str, blamed: &str| {
        if !same(field) {
            event.child(blamed).refuse(event.child(field).text(), "field is immutable");
        }
    };
    let raw = |field: &str, blamed: &str| {
        if !same(field) {
            event.child(blamed).refuse(event.child(field).value, "field is immutable");
        }
    };
    object(names.object, "involvedObject", "ObjectReference");
    text("reason", "reason");
    text(names.message, "message");
    object(names.source, "source", "EventSource");
    raw(names.first, "firstTimestamp");
    raw(names.last, "lastTimestamp");
    raw(names.count, "count");
    text("reason", "reason");
    text("type", "type");
    raw("eventTime", "eventTime");
    text("action", "action");
    if !same("related") {
        let related = event.child("related");
        let printed = if related.is_set() { gostruct::print("ObjectReference", related.value) } else { "null".into() };
        related.refuse_printed(printed, "field is immutable");
    }
    text(names.controller, "reportingController");
    text("reportingInstance", "reportingInstance");
}
