//! What the real server answered, compared with what this module makes of the same requests.
//!
//! `testdata/record.py` asks it; each file there is a CRD and requests with their answers.

use super::{crd, default::fill, embedded, prune::prune, typed, validate};
use crate::{
    facts,
    kind::Kind,
    status::{FieldError, Status},
    value::Value,
};

macro_rules! files {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("testdata/", $name, ".json")))),*] };
}

const OBJECTS: &[(&str, &str)] = files![
    "objects/alternatives",
    "objects/cel",
    "objects/defaults",
    "objects/embedded",
    "objects/formats",
    "objects/int-or-string",
    "objects/lists",
    "objects/metadata",
    "objects/numbers",
    "objects/objects",
    "objects/prune",
    "objects/ratchet",
    "objects/root-open",
    "objects/scale",
    "objects/status",
    "objects/strings",
    "objects/types",
];

const CRDS: &[(&str, &str)] = files!["crds/definitions", "crds/rules"];

/// What a write comes to: the object and warnings, or a refusal.
type Outcome = Result<(Value, Vec<String>), Status>;

/// The part of the store's pipeline that this module is.
fn write(kind: &Kind, sent: &Value, old: Option<&Value>, subresource: &str) -> Outcome {
    let mut object = sent.clone();
    let mut dropped = prune(&kind.schema, &mut object);
    dropped.extend(embedded::coerce(kind, &mut object).map_err(|words| {
        let Kind { kind, version, .. } = kind;
        Status::bad_request(format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {words}"))
    })?);
    fill(&kind.schema, &mut object);
    let status = kind.custom().is_some_and(|custom| custom.status);
    match (old, subresource) {
        (Some(old), "status") => {
            let status = object.remove_at(&["status"]);
            object = old.clone();
            match status {
                Some(status) => object.set_at(&["status"], status),
                None => drop(object.remove_at(&["status"])),
            }
        }
        (Some(old), _) if status => match old.get("status") {
            Some(status) => object.set_at(&["status"], status),
            None => drop(object.remove_at(&["status"])),
        },
        (None, _) if status => drop(object.remove_at(&["status"])),
        _ => {}
    }
    let judgement = match (old, subresource) {
        (Some(old), "status") => validate::judge_status(kind, &object, old, Vec::new()),
        _ => validate::judge(kind, &object, old, Vec::new()),
    };
    let unknown = dropped.iter().map(|path| format!("unknown field \"{path}\""));
    match judgement.problems.is_empty() {
        true => Ok((object, unknown.chain(judgement.warnings).collect())),
        false => Err(refused(kind, sent, &judgement.problems)),
    }
}

fn refused(kind: &Kind, object: &Value, problems: &[FieldError]) -> Status {
    Status::invalid(&kind.group, &kind.kind, object.str_at(&["metadata", "name"]).unwrap_or_default(), problems)
}

/// The object a case sends, whole.
fn whole(kind: &Kind, number: usize, part: &Value) -> Value {
    let mut object = part.clone();
    object.set_at(&["apiVersion"], kind.api_version());
    object.set_at(&["kind"], &kind.kind);
    if part.at(&["metadata", "name"]).is_none() {
        object.set_at(&["metadata", "name"], format!("c{number}"));
    }
    object
}

fn kind_of(crd: &Value) -> Kind {
    let mut crd = crd.clone();
    crd::default(&mut crd);
    crd::kinds(&crd).remove(0)
}

/// The differences between an answer and an outcome.
fn compare(case: &Value, outcome: &Outcome) -> Vec<String> {
    let mut misses = Vec::new();
    let mut same = |what: &str, theirs: Option<&Value>, ours: Value| {
        if theirs.unwrap_or(&Value::Null) != &ours {
            misses.push(format!("{what}\n   server {}\n     ours {ours}", theirs.unwrap_or(&Value::Null)));
        }
    };
    match outcome {
        Ok((object, warnings)) => {
            let accepted = case.int_at(&["code"]).is_some_and(|code| code < 300);
            if !accepted {
                same("refused", case.get("message"), Value::Null);
                return misses;
            }
            let mut object = object.clone();
            for key in ["metadata", "apiVersion", "kind"] {
                object.remove_at(&[key]);
            }
            same("object", case.get("object"), object);
            let mut warnings = warnings.clone();
            warnings.sort();
            let mut theirs: Vec<String> =
                case.list_at(&["warnings"]).iter().filter_map(|text| text.as_str().map(str::to_owned)).collect();
            theirs.sort();
            same(
                "warnings",
                Some(&Value::list(theirs.into_iter().map(Value::from))),
                Value::list(warnings.into_iter().map(Value::from)),
            );
        }
        Err(status) => {
            same("code", case.get("code"), Value::from(i64::from(status.code)));
            let sorted = |causes: &[Value]| {
                let mut texts: Vec<String> = causes.iter().map(Value::to_json).collect();
                texts.sort();
                Value::list(texts.into_iter().map(Value::from))
            };
            let answer = status.to_value();
            let (theirs, ours) = (case.list_at(&["causes"]), answer.list_at(&["details", "causes"]));
            same("causes", Some(&sorted(theirs)), sorted(ours));
            // Several causes come in any order; then only the causes tell.
            if theirs.len() < 2 {
                same("message", case.get("message"), Value::from(status.message.as_str()));
            }
        }
    }
    misses
}

#[test]
fn custom_resources_fare_as_on_the_real_server() {
    let (mut cases, mut misses) = (0, Vec::new());
    for (file, text) in OBJECTS {
        let data = Value::from_json(text.as_bytes()).expect("recorded by record.py");
        let kind = kind_of(data.get("crd").expect("a CRD"));
        let before = data.get("before").map(kind_of);
        for (number, case) in data.list_at(&["cases"]).iter().enumerate() {
            cases += 1;
            let created =
                write(before.as_ref().unwrap_or(&kind), &whole(&kind, number, case.get("create").unwrap()), None, "");
            let outcome = match case.get("update") {
                None => created,
                Some(update) => {
                    let (old, _) = created.expect("the real server took it");
                    write(
                        &kind,
                        &whole(&kind, number, update),
                        Some(&old),
                        case.str_at(&["subresource"]).unwrap_or_default(),
                    )
                }
            };
            let found = compare(case, &outcome);
            if !found.is_empty() {
                let request = case.get("update").or(case.get("create")).unwrap();
                misses.push(format!("{file}: {} {request}\n  {}", case.get("name").unwrap(), found.join("\n  ")));
            }
        }
    }
    assert!(misses.is_empty(), "{} of {cases} cases differ\n{}", misses.len(), misses.join("\n"));
}

/// What the store and this module make of a CRD.
fn define(sent: &Value, old: Option<&Value>) -> Outcome {
    let kind = facts::kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition").expect("a built-in kind");
    let decoded = typed::decode(kind, &kind.schema, sent).map_err(Status::bad_request)?;
    let mut crd = decoded.value;
    let unknown = decoded.unknown.into_iter().map(|path| format!("unknown field \"{path}\""));
    crd::default(&mut crd);
    match old {
        None => crd::prepare_create(&mut crd),
        Some(old) => crd::prepare_update(&mut crd, old),
    }
    let name = sent.str_at(&["metadata", "name"]).unwrap_or_default();
    let mut problems = Vec::new();
    if old.is_none() {
        let found = crate::names::dns_subdomain(name);
        problems.extend(found.into_iter().map(|words| FieldError::invalid("metadata.name", name, words)));
    }
    problems.extend(crd::validate(&crd, old));
    match problems.is_empty() {
        true => Ok((crd.clone(), unknown.chain(crd::warnings(&crd, old)).collect())),
        false => Err(Status::invalid("apiextensions.k8s.io", "CustomResourceDefinition", name, &problems)),
    }
}

#[test]
fn definitions_fare_as_on_the_real_server() {
    let (mut cases, mut misses) = (0, Vec::new());
    for (file, text) in CRDS {
        let data = Value::from_json(text.as_bytes()).expect("recorded by record.py");
        for case in data.list_at(&["cases"]) {
            cases += 1;
            let created = define(case.get("crd").unwrap(), None);
            let outcome = match case.get("update") {
                None => created,
                Some(update) => {
                    let (mut old, _) = created.expect("the real server took it");
                    let status = crd::settle(&old, [], &"2026-01-01T00:00:00Z".into()).unwrap();
                    old.set_at(&["status"], status);
                    define(update, Some(&old)).map(|(mut crd, warnings)| {
                        // The recorder leaves out what differs from run to run.
                        for i in 0..crd.list_at(&["status", "conditions"]).len() {
                            let conditions = crd.as_map_mut().unwrap().get_mut("status").unwrap();
                            let list = conditions.as_map_mut().unwrap().get_mut("conditions").unwrap();
                            list.as_list_mut().unwrap()[i].remove_at(&["lastTransitionTime"]);
                        }
                        (crd, warnings)
                    })
                }
            };
            let found = compare(case, &outcome);
            if !found.is_empty() {
                misses.push(format!("{file}: {}\n  {}", case.get("name").unwrap(), found.join("\n  ")));
            }
        }
    }
    assert!(misses.is_empty(), "{} of {cases} cases differ\n{}", misses.len(), misses.join("\n"));
}

mod hostile {
    //! Nothing a client can send makes this module panic.

    use proptest::prelude::*;

    use super::*;

    /// JSON that is a schema here and there.
    fn json() -> impl Strategy<Value = Value> {
        let words = prop::sample::select(vec![
            "object",
            "array",
            "string",
            "integer",
            "set",
            "map",
            "atomic",
            "(",
            "^a",
            "date",
            "self.x > 1",
            "self",
            "",
            "x",
            ".spec.x",
            "v1",
            "Namespaced",
            "schema.test",
            "things",
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int),
            any::<f64>().prop_filter("JSON knows no such number", |f| f.is_finite()).prop_map(Value::Float),
            words.prop_map(Value::from),
        ];
        let keys = prop::sample::select(vec![
            "type",
            "properties",
            "items",
            "additionalProperties",
            "default",
            "enum",
            "required",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
            "pattern",
            "format",
            "minimum",
            "maxLength",
            "multipleOf",
            "nullable",
            "x-kubernetes-list-type",
            "x-kubernetes-list-map-keys",
            "x-kubernetes-map-type",
            "x-kubernetes-int-or-string",
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-embedded-resource",
            "x-kubernetes-validations",
            "rule",
            "spec",
            "metadata",
            "x",
            "names",
            "plural",
            "versions",
            "schema",
            "openAPIV3Schema",
            "group",
            "scope",
            "served",
            "storage",
            "name",
            "subresources",
            "selectableFields",
            "jsonPath",
            "conversion",
            "status",
        ]);
        leaf.prop_recursive(5, 60, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::list),
                prop::collection::vec((keys.clone(), inner), 0..6)
                    .prop_map(|fields| Value::Map(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_definition_and_object_get_an_answer(schema in json(), object in json(), old in json()) {
            let mut crd = crate::value!({"metadata": {"name": "things.schema.test"}, "spec": {
                "group": "schema.test", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            }});
            let mut version = crate::value!({"name": "v1", "served": true, "storage": true});
            version.set_at(&["schema", "openAPIV3Schema"], schema);
            crd.set_at(&["spec", "versions"], Value::list([version]));
            let _ = define(&crd, None);
            let kind = kind_of(&crd);
            let _ = write(&kind, &object, None, "");
            let _ = write(&kind, &object, Some(&old), "");
            let _ = write(&kind, &object, Some(&old), "status");
        }

        #[test]
        fn any_json_may_be_sent_as_a_definition(crd in json(), old in json()) {
            let mut filled = crd.clone();
            crd::default(&mut filled);
            let _ = (crd::validate(&filled, None), crd::validate(&filled, Some(&old)), crd::kinds(&filled));
            let _ = crd::settle(&filled, [&old], &"now".into());
        }
    }
}
