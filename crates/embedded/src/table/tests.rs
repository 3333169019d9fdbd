//! Tables compared with those of the real server.

use std::sync::Arc;

use jiff::Timestamp;

use super::*;
use crate::{kubernetes::facts, kubernetes::schema::crd};

/// Every row in the file is what the real server showed of the object beside it; `record_tables.py` asked it.
#[test]
fn rows_are_those_of_the_real_server() {
    let mut custom: Vec<Arc<Kind>> = Vec::new();
    let (mut compared, mut misses) = (0, Vec::new());
    for line in include_str!("testdata/tables.jsonl").lines() {
        let recorded = Value::from_json(line.as_bytes()).unwrap();
        if let Some(definition) = recorded.get("crd") {
            custom.extend(crd::kinds(definition).into_iter().map(Arc::new));
            continue;
        }
        let text = |key: &str| recorded.str_at(&[key]).unwrap();
        let is_it = |kind: &&Arc<Kind>| {
            kind.group == text("group") && kind.version == text("version") && kind.kind == text("kind")
        };
        let kind = facts::kinds().iter().chain(&custom).find(is_it).unwrap_or_else(|| panic!("{line}"));
        let object = Object { value: recorded.get("object").unwrap().clone(), managers: Arc::default() };
        let table = table(kind, &[Arc::new(object)], text("now").parse().unwrap());
        let theirs = Row {
            cells: recorded.list_at(&["cells"]).to_vec(),
            conditions: recorded.list_at(&["conditions"]).to_vec(),
        };
        if table.rows != [theirs.clone()] {
            let of = recorded.get("object").unwrap();
            misses.push(format!("{} {of}\n  we   {:?}\n  they {theirs:?}", text("kind"), table.rows));
        }
        compared += 1;
    }
    assert!(misses.is_empty(), "{} of {compared} differ:\n{}", misses.len(), misses.join("\n"));
    assert!(compared > 140, "only {compared} rows were compared");
}

#[test]
fn a_column_that_makes_no_sense_ends_the_table() {
    let mut kinds = crd::kinds(&crate::value!({
        "metadata": {"name": "as.b.c"},
        "spec": {
            "group": "b.c", "scope": "Cluster", "names": {"plural": "as", "kind": "A"},
            "versions": [{"name": "v1", "served": true, "storage": true, "additionalPrinterColumns": [
                {"name": "One", "type": "integer", "jsonPath": ".spec.n"},
                {"name": "Two", "type": "integer", "jsonPath": ".spec.n["},
                {"name": "Three", "type": "integer", "jsonPath": ".spec.n"},
            ]}],
        },
    }));
    let object = crate::value!({"metadata": {"name": "x"}, "spec": {"n": 3}});
    let object = Arc::new(Object { value: object, managers: Arc::default() });
    let kind = kinds.remove(0);
    let table = table(&kind, &[object], Timestamp::UNIX_EPOCH);
    assert_eq!(table.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>(), ["Name", "One"]);
    assert_eq!(table.rows, [Row { cells: vec!["x".into(), 3.into()], conditions: Vec::new() }]);
}
