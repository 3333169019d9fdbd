//! The wire types hold what the definitions allow: any object that fits the schema survives being read and written.

mod arbitrary;
mod served;

use std::{fs, sync::LazyLock};

use proptest::prelude::*;
use serde::{Serialize, de::DeserializeOwned};
use tidegate::{
    api::{
        self, AnalysisRun, AnalysisTemplate, ClusterAnalysisTemplate, Experiment, GitSource, Rollout, RolloutStrategy,
        crd,
    },
    kubernetes::value::Value,
};

static DEFINITIONS: LazyLock<Vec<Value>> = LazyLock::new(crd::all);

/// The schema of a kind, as its definition has it.
fn schema(kind: &str) -> Value {
    let definition = DEFINITIONS.iter().find(|crd| crd.str_at(&["spec", "names", "kind"]) == Some(kind)).unwrap();
    let version = definition.list_at(&["spec", "versions"])[0].clone();
    version.at(&["schema", "openAPIV3Schema"]).unwrap().clone()
}

/// Every known value that is not a zero is still there. Zeros are as good as absent in Go's types.
#[track_caller]
fn check<T: DeserializeOwned + Serialize + Default + PartialEq + std::fmt::Debug>(kind: &str, seed: u64) {
    let object = arbitrary::object(&schema(kind), seed);
    let read = api::read::<T>(&object);
    assert_eq!(read.malformed, [], "{object}");
    assert_eq!(read.unknown, Vec::<String>::new(), "{object}");
    let written = api::write(&read.object);
    let mut lost = Vec::new();
    missing(&object, &written, "", &mut lost);
    assert!(lost.is_empty(), "lost {lost:#?}\nof {object}");
    // What is written is read as the same, and written as the same.
    let again = api::read::<T>(&written).object;
    assert_eq!(again, read.object);
    assert_eq!(api::write(&again), written);
    // Plain serde agrees, where the object has nothing that only lenience can read.
    assert_eq!(serde_json::from_str::<T>(&written.to_json()).unwrap(), read.object);
}

/// The paths of values in `given` that `kept` does not have.
fn missing(given: &Value, kept: &Value, path: &str, lost: &mut Vec<String>) {
    match (given, kept) {
        (Value::Map(fields), _) => {
            for (key, value) in fields.iter() {
                let kept = kept.get(key).unwrap_or(&Value::Null);
                missing(value, kept, &format!("{path}.{key}"), lost);
            }
        }
        (Value::List(items), Value::List(others)) if items.len() == others.len() => {
            for (index, (item, other)) in items.iter().zip(others.iter()).enumerate() {
                missing(item, other, &format!("{path}[{index}]"), lost);
            }
        }
        (given, kept) if given == kept || is_zero(given) => {}
        (given, kept) => lost.push(format!("{path}: {given} became {kept}")),
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Int(n) => *n == 0,
        Value::Float(n) => *n == 0.0,
        Value::Str(text) => text.is_empty(),
        Value::List(items) => items.is_empty(),
        Value::Map(fields) => fields.is_empty(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rollouts_survive(seed: u64) { check::<Rollout>("Rollout", seed) }

    #[test]
    fn analysis_templates_survive(seed: u64) { check::<AnalysisTemplate>("AnalysisTemplate", seed) }

    #[test]
    fn cluster_analysis_templates_survive(seed: u64) { check::<ClusterAnalysisTemplate>("ClusterAnalysisTemplate", seed) }

    #[test]
    fn analysis_runs_survive(seed: u64) { check::<AnalysisRun>("AnalysisRun", seed) }

    #[test]
    fn experiments_survive(seed: u64) { check::<Experiment>("Experiment", seed) }

    #[test]
    fn git_sources_survive(seed: u64) { check::<GitSource>("GitSource", seed) }
}

fn read_as_every_kind(object: &Value) -> usize {
    let named = [
        api::read::<Rollout>(object).malformed,
        api::read::<AnalysisTemplate>(object).malformed,
        api::read::<AnalysisRun>(object).malformed,
        api::read::<Experiment>(object).malformed,
        api::read::<GitSource>(object).malformed,
    ];
    named.iter().map(Vec::len).sum()
}

proptest! {
    /// Nothing can make reading fail: not even an object of another kind, or with any of its values replaced.
    #[test]
    fn whatever_an_object_holds_it_is_read(seed: u64, other: u64, kind in 0..6_usize) {
        let definition = &DEFINITIONS[kind];
        let kind = definition.str_at(&["spec", "names", "kind"]).unwrap();
        let mut object = arbitrary::object(&schema(kind), seed);
        read_as_every_kind(&object);
        arbitrary::spoil(&mut object, other);
        read_as_every_kind(&object);
    }
}

/// Every field of every type is reached by the generator: a field that the schema lost would otherwise never be missed.
#[test]
fn the_generator_reaches_every_field() {
    for definition in DEFINITIONS.iter() {
        let kind = definition.str_at(&["spec", "names", "kind"]).unwrap();
        let (schema, mut fields) = (schema(kind), std::collections::BTreeSet::new());
        arbitrary::paths(&schema, "", &mut fields);
        let all = fields.len();
        for seed in 0..4000 {
            arbitrary::visit(&arbitrary::object(&schema, seed), "", &mut |path| {
                fields.remove(path);
            });
            if fields.is_empty() {
                break;
            }
        }
        assert!(fields.is_empty(), "{kind}: {} of {all} fields never made: {fields:#?}", fields.len());
    }
}

/// The order of fields, and which empty ones are shown, are Go's: hashes depend on it.
#[test]
fn steps_are_written_as_go_writes_them() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/step-hash.jsonl");
    let mut compared = 0;
    for line in fs::read_to_string(file).unwrap().lines() {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        let read = api::read::<RolloutStrategy>(&Value::from(case["input"]["strategy"].clone()));
        let canonical = case["expect"]["canonical"].as_str();
        // Values of the wrong type, free-form parts and characters that only Go escapes are the hasher's business.
        let odd = [r"\u", r#""config""#, r#""selector""#];
        let Some(canonical) = canonical.filter(|text| !odd.iter().any(|odd| text.contains(odd))) else { continue };
        let (true, Some(strategy)) = (read.malformed.is_empty(), read.object.canary) else { continue };
        let written = match strategy.steps.as_slice() {
            [] => "null".to_owned(),
            steps => serde_json::to_string(steps).unwrap(),
        };
        assert_eq!(written, canonical, "{}", case["id"]);
        compared += 1;
    }
    println!("{compared} lists of steps compared");
    assert!(compared > 50, "only {compared} cases could be compared");
}
