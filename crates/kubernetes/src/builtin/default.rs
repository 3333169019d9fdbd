//! What the real server fills into objects of built-in kinds before anything judges them.
//!
//! Most of it is data: a field's type says what an empty field becomes (`facts/kinds.txt`). What depends on a neighbour
//! is a [rule](rules) of the type. A kind's types are compiled once into a [`Plan`] that visits only what can change; an
//! object that has everything comes back as it was, shared subtrees included.

mod image;
mod pod;
mod rules;

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use crate::{
    facts,
    kind::Kind,
    schema::{Empty, Field, Schema, Shape, quantity::Quantity},
    value::{Map, Text, Value},
};

/// Fills the defaults of a built-in kind into a decoded object. What is there stays.
pub fn default(kind: &Kind, value: &mut Value) {
    default_since(kind, value, &Value::Null);
}

/// Fills the defaults of an object that shares subtrees with one that has them: these need no second look.
pub fn default_since(kind: &Kind, value: &mut Value, known: &Value) {
    let plan = kind.schema.name.as_ref().and_then(|name| PLANS.get(name));
    if let Some(filled) = plan.and_then(|plan| plan.fill(value, Some(known))) {
        *value = filled;
    }
}

/// A change to one struct that looks at more than one of its fields.
type Rule = fn(&mut Map);

/// How to fill values of one type.
enum Plan {
    /// First the rule, then field by field: rules see what the client sent.
    Struct { rule: Option<Rule>, fields: Vec<Step> },
    /// The items of a list or the values of a map.
    Each(Arc<Plan>),
    /// A `ResourceList`: amounts are rounded up to thousandths.
    Round,
}

/// What to do about one field.
struct Step {
    name: Text,
    default: Option<Value>,
    /// A pointer: an explicit zero is a value.
    pointer: bool,
    below: Option<Arc<Plan>>,
}

/// The plans by the OpenAPI name of the kind's type.
static PLANS: LazyLock<HashMap<Text, Arc<Plan>>> = LazyLock::new(|| {
    let mut maker = Maker::default();
    let plan = |kind: &Arc<Kind>| Some((kind.schema.name.clone()?, maker.plan(&kind.schema)?));
    facts::kinds().iter().filter_map(plan).collect()
});

#[derive(Default)]
struct Maker {
    /// By address: schemas are shared, and so are their plans.
    made: HashMap<*const Schema, Option<Arc<Plan>>>,
}

impl Maker {
    /// `None` if there is nothing to fill in values of this type.
    fn plan(&mut self, schema: &Schema) -> Option<Arc<Plan>> {
        let address: *const Schema = schema;
        if let Some(plan) = self.made.get(&address) {
            return plan.clone();
        }
        let plan = self.make(schema).map(Arc::new);
        self.made.insert(address, plan.clone());
        plan
    }

    fn make(&mut self, schema: &Schema) -> Option<Plan> {
        match &schema.shape {
            // Not rounded: the defaulters of its group do not look into it.
            Shape::Struct(_) if schema.name.as_deref() == Some("io.k8s.api.node.v1.Overhead") => None,
            Shape::Struct(fields) => {
                let rule = rules::of(schema);
                let fields: Vec<Step> =
                    fields.fields.iter().filter_map(|(name, field)| self.step(name, field)).collect();
                (rule.is_some() || !fields.is_empty()).then_some(Plan::Struct { rule, fields })
            }
            Shape::Map { .. } if schema.go.as_deref() == Some("v1.ResourceList") => Some(Plan::Round),
            Shape::List { items: inner, .. } | Shape::Map { values: inner, .. } => self.plan(inner).map(Plan::Each),
            _ => None,
        }
    }

    fn step(&mut self, name: &Text, field: &Field) -> Option<Step> {
        let below = self.plan(&field.schema);
        let default = field.default.clone();
        (default.is_some() || below.is_some()).then(|| {
            let container = matches!(field.schema.shape, Shape::List { .. } | Shape::Map { .. });
            let pointer = field.empty == Empty::Keep || field.empty == Empty::Null && !container;
            Step { name: name.clone(), default, pointer, below }
        })
    }
}

impl Plan {
    /// The value with its defaults, or `None` if it has them all.
    fn fill(&self, value: &Value, known: Option<&Value>) -> Option<Value> {
        if known.is_some_and(|known| value.is(known)) {
            return None;
        }
        match (self, value) {
            (Plan::Struct { rule, fields }, Value::Map(map)) => {
                let mut out = map.clone();
                if let Some(rule) = rule {
                    rule(&mut out);
                }
                for step in fields {
                    match (out.get(&step.name), &step.default, &step.below) {
                        (found, Some(default), _) if step.is_unset(found) => {
                            out.insert(step.name.clone(), default.clone());
                        }
                        (Some(found), _, Some(below)) => {
                            let known = known.and_then(|known| known.get(&step.name));
                            if let Some(filled) = below.fill(found, known) {
                                out.insert(step.name.clone(), filled);
                            }
                        }
                        _ => {}
                    }
                }
                (!out.is(map)).then_some(Value::Map(out))
            }
            (Plan::Each(plan), Value::List(items)) => {
                let known = known.and_then(Value::as_list).unwrap_or_default();
                let mut out: Option<Vec<Value>> = None;
                for (i, item) in items.iter().enumerate() {
                    if let Some(filled) = plan.fill(item, known.get(i)) {
                        out.get_or_insert_with(|| items.to_vec())[i] = filled;
                    }
                }
                out.map(Value::from)
            }
            (Plan::Each(plan), Value::Map(map)) => {
                let mut out = map.clone();
                for (key, item) in map.iter() {
                    let known = known.and_then(|known| known.get(key));
                    if let Some(filled) = plan.fill(item, known) {
                        out.insert(key.clone(), filled);
                    }
                }
                (!out.is(map)).then_some(Value::Map(out))
            }
            (Plan::Round, Value::Map(map)) => round(map),
            _ => None,
        }
    }
}

impl Step {
    fn is_unset(&self, found: Option<&Value>) -> bool {
        match found {
            None | Some(Value::Null) => true,
            Some(_) if self.pointer => false,
            Some(Value::Bool(b)) => !b,
            Some(Value::Int(n)) => *n == 0,
            Some(Value::Float(f)) => *f == 0.0,
            Some(Value::Str(text)) => text.is_empty(),
            Some(Value::List(items)) => items.is_empty(),
            Some(Value::Map(map)) => map.is_empty(),
        }
    }
}

/// Rounds quantities up to thousandths.
fn round(map: &Map) -> Option<Value> {
    let mut out = map.clone();
    for (key, amount) in map.iter() {
        let Some(text) = amount.as_str() else { continue };
        // Only these can be finer: `100n`, `5u`, `1e-6` and the few texts kept with a point.
        if !text.contains(['n', 'u', 'e', '.']) {
            continue;
        }
        let Ok(mut quantity) = Quantity::parse(text) else { continue };
        quantity.round_up(-3);
        let rounded = quantity.to_string();
        if rounded != text {
            out.insert(key.clone(), rounded);
        }
    }
    (!out.is(map)).then_some(Value::Map(out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{schema::typed, value};

    /// Compares with what the real server's code made of random objects (`schema/testdata/objects.py` tells how the rows
    /// were made); `TIDEGATE_OBJECTS` may name a folder with other rows.
    #[test]
    fn objects_are_filled_as_the_real_server_fills_them() {
        let rows = match std::env::var("TIDEGATE_OBJECTS") {
            Ok(folder) => std::fs::read_to_string(format!("{folder}/default.jsonl")).unwrap(),
            Err(_) => include_str!("testdata/default.jsonl").to_owned(),
        };
        for row in rows.lines() {
            let row = Value::from_json(row.as_bytes()).unwrap();
            let object = row.get("object").unwrap();
            let (version, name) = (object.str_at(&["apiVersion"]).unwrap(), object.str_at(&["kind"]).unwrap());
            let (group, version) = version.split_once('/').unwrap_or(("", version));
            let kind = facts::kind(group, version, name).unwrap();
            let mut filled = typed::decode(kind, &kind.schema, object).unwrap().value;
            default(kind, &mut filled);
            assert_eq!(Some(&filled), row.get("answer"), "\n{object}");
            let mut again = filled.clone();
            default(kind, &mut again);
            assert!(again.is(&filled), "nothing was left to fill\n{filled}");
        }
    }

    #[test]
    fn what_is_known_is_not_looked_at_again() {
        let kind = facts::kind("apps", "v1", "Deployment").unwrap();
        let known = value!({"metadata": {"name": "a"}, "spec": {"template": {"spec": {}}}});
        let mut sent = known.clone();
        sent.set_at(&["metadata", "name"], "b");
        let mut filled = sent.clone();
        default_since(kind, &mut filled, &known);
        assert!(filled.is(&sent));
        default(kind, &mut filled);
        assert_eq!(filled.int_at(&["spec", "replicas"]), Some(1));
    }
}
