//! One stored object at another served version: HorizontalPodAutoscalers of autoscaling/v1 and v2, Events of the core
//! group and of events.k8s.io.
//!
//! Pure functions of the object. Metadata passes unchanged, apart from the annotations in which autoscaling/v1 keeps what
//! it has no fields for.

mod autoscaler;

use super::{
    kind::Kind,
    schema::typed,
    value::{Map, Text, Value, intern},
};

/// Converts between two versions of one kind. Any other pair only changes its `apiVersion` and `kind`.
pub fn convert(from: &Kind, to: &Kind, value: &Value) -> Value {
    if from.group == to.group && from.version == to.version {
        return value.clone();
    }
    let mut converted = match (from.group.as_str(), from.version.as_str(), from.kind.as_str()) {
        ("autoscaling", "v1", "HorizontalPodAutoscaler") => autoscaler::to_v2(value),
        ("autoscaling", _, "HorizontalPodAutoscaler") => autoscaler::to_v1(value),
        ("", _, "Event") => renamed(value, |(core, events)| (core, events)),
        ("events.k8s.io", _, "Event") => renamed(value, |(core, events)| (events, core)),
        _ => value.clone(),
    };
    converted.set_at(&["apiVersion"], to.api_version());
    converted.set_at(&["kind"], &to.kind);
    // What was converted field by field gets the zeros its new type shows.
    typed::decode(to, &to.schema, &converted).map_or(converted, |decoded| decoded.value)
}

/// What storing an autoscaling/v1 object, which is stored as v2, makes of it: its metrics are told by annotations, and if
/// it has none it aims at 80 % of the CPU.
pub fn settle_autoscaler(v1: &mut Map) {
    if !autoscaler::is_settled(v1)
        && let Value::Map(settled) = autoscaler::to_v1(&autoscaler::to_v2(&Value::Map(v1.clone())))
        && settled != *v1
    {
        *v1 = settled;
    }
}

/// The fields of an Event that have other names in the core group and in events.k8s.io.
const EVENT: [(&str, &str); 7] = [
    ("count", "deprecatedCount"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("involvedObject", "regarding"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
];

fn renamed(event: &Value, way: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str)) -> Value {
    let Some(map) = event.as_map() else { return event.clone() };
    let new_name = |key: &Text| {
        let pair = EVENT.iter().map(|pair| way(*pair)).find(|(old, _)| key == old);
        pair.map_or_else(|| key.clone(), |(_, new)| intern(new))
    };
    let fields: Map = map.iter().map(|(key, value)| (new_name(key), value.clone())).collect();
    fields.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts;

    /// Compares with the real server's own conversions of random objects (`schema/testdata/objects.py` tells how the rows
    /// were made); `TIDEGATE_OBJECTS` may name a folder with other rows.
    #[test]
    fn objects_are_converted_as_the_real_server_converts_them() {
        let rows = match std::env::var("TIDEGATE_OBJECTS") {
            Ok(folder) => std::fs::read_to_string(format!("{folder}/convert.jsonl")).unwrap(),
            Err(_) => include_str!("testdata/convert.jsonl").to_owned(),
        };
        let kind = |object: &Value| {
            let (version, name) = (object.str_at(&["apiVersion"]).unwrap(), object.str_at(&["kind"]).unwrap());
            let (group, version) = version.split_once('/').unwrap_or(("", version));
            facts::kind(group, version, name).unwrap()
        };
        for row in rows.lines() {
            let row = Value::from_json(row.as_bytes()).unwrap();
            let (object, answer) = (row.get("object").unwrap(), row.get("answer").unwrap());
            let (from, to) = (kind(object), kind(answer));
            let decoded = typed::decode(from, &from.schema, object).unwrap().value;
            assert_eq!(&convert(from, to, &decoded), answer, "\n{object}");
        }
    }
}
