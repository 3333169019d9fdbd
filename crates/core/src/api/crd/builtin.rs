//! The schemas of Kubernetes' own types, as a definition spells them out: without words.

use crate::{
    kubernetes::{
        facts,
        schema::{Field, Schema, Shape, Struct, Topology},
        value::{Map, Value},
    },
    value,
};

/// The key under which a schema names a type of Kubernetes that stands in its place.
pub const MARK: &str = "x-tidegate-type";

/// What a quantity looks like.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// The structural schema of a type of Kubernetes.
pub fn schema(name: &str) -> Value {
    facts::named(name).map(|schema| of(schema)).unwrap_or_default()
}

fn of(schema: &Schema) -> Value {
    let mut out = match &schema.shape {
        Shape::Any => value!({"x-kubernetes-preserve-unknown-fields": true}),
        Shape::Bool => value!({"type": "boolean"}),
        Shape::Int32 => value!({"type": "integer", "format": "int32"}),
        Shape::Int64 => value!({"type": "integer", "format": "int64"}),
        Shape::Number => value!({"type": "number"}),
        Shape::Str | Shape::Duration => value!({"type": "string"}),
        Shape::IntOrString => int_or_string(),
        Shape::Quantity => {
            let mut quantity = int_or_string();
            quantity.set_at(&["pattern"], QUANTITY);
            quantity
        }
        Shape::Time | Shape::MicroTime => value!({"type": "string", "format": "date-time"}),
        Shape::Bytes => value!({"type": "string", "format": "byte"}),
        Shape::Struct(fields) => structure(schema.go_type(), fields),
        Shape::Map { values, atomic } => {
            let mut map = value!({"type": "object"});
            map.set_at(&["additionalProperties"], of(values));
            if *atomic {
                map.set_at(&["x-kubernetes-map-type"], "atomic");
            }
            map
        }
        Shape::List { items, topology, .. } => list(items, topology),
    };
    if let Some(default) = &schema.default {
        out.set_at(&["default"], default);
    }
    out
}

fn int_or_string() -> Value {
    value!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]})
}

/// A list is owned as one unless it says otherwise.
fn list(items: &Schema, topology: &Topology) -> Value {
    let mut list = value!({"type": "array"});
    list.set_at(&["items"], of(items));
    match topology {
        Topology::Atomic => {}
        Topology::Set => list.set_at(&["x-kubernetes-list-type"], "set"),
        Topology::Map(keys) => {
            list.set_at(&["x-kubernetes-list-type"], "map");
            list.set_at(&["x-kubernetes-list-map-keys"], Value::list(keys.iter().map(Value::from)));
        }
    }
    list
}

fn structure(name: &str, fields: &Struct) -> Value {
    let kept: Vec<_> = fields.fields.iter().filter(|(field, _)| is_kept(name, field)).collect();
    let properties: Map = kept.iter().map(|(field, what)| (field.clone(), property(name, field, what))).collect();
    let required: Vec<Value> = kept.iter().filter(|(_, what)| what.required).map(|(field, _)| field.into()).collect();
    let mut out = value!({"type": "object"});
    if !properties.is_empty() {
        out.set_at(&["properties"], properties);
    }
    if !required.is_empty() {
        out.set_at(&["required"], required);
    }
    if fields.atomic {
        out.set_at(&["x-kubernetes-map-type"], "atomic");
    }
    out
}

/// Of the metadata of an object yet to be made, only what can be set.
fn is_kept(name: &str, field: &str) -> bool {
    name != "ObjectMeta" || matches!(field, "labels" | "annotations")
}

/// A field, as Argo's definitions have it: where they check nothing, the controller is to see what was written and to
/// say what is wrong with it; and a default that only we filled in would change the hash of every pod template.
fn property(owner: &str, name: &str, field: &Field) -> Value {
    let anything = || value!({"x-kubernetes-preserve-unknown-fields": true});
    let mut schema = match (owner, name) {
        ("PodSpec", "volumes") => return anything(),
        _ => of(&field.schema),
    };
    match (owner, name) {
        ("Container" | "EphemeralContainer", "resources") => {
            schema.set_at(&["properties", "limits"], anything());
            schema.set_at(&["properties", "requests"], anything());
        }
        ("EnvFromSource", "configMapRef" | "secretRef") => schema.set_at(&["x-kubernetes-map-type"], "atomic"),
        ("PodFailurePolicyOnPodConditionsPattern", "status") => drop(schema.remove_at(&["default"])),
        // What must be given needs no default.
        _ if field.required => drop(schema.remove_at(&["default"])),
        _ => {}
    }
    schema
}
