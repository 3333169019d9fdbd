//! Answers on the wire: JSON or YAML, whole objects, tables or metadata only.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Serialize, Serializer, ser::SerializeMap};

use super::accept::{Encoding, Form, MetaVersion, View};
use crate::{
    kubernetes::{
        kind::{Column, Kind},
        object::Object,
        shown,
        status::{FieldError, Reason, Status},
        value::{Text, Value},
    },
    store::request::{Answer, List},
    table, value,
};

/// Writes anything in the form asked for.
pub fn write(form: Form, body: &impl Serialize) -> Vec<u8> {
    // Everything written here has string keys and no I/O behind it: it cannot fail.
    let mut bytes = match (form.encoding, form.pretty) {
        (Encoding::Json, false) => serde_json::to_vec(body).unwrap_or_default(),
        (Encoding::Json, true) => serde_json::to_vec_pretty(body).unwrap_or_default(),
        (Encoding::Yaml, _) => return serde_saphyr::to_string(body).unwrap_or_default().into_bytes(),
    };
    bytes.push(b'\n');
    bytes
}

/// Which part of each object a table carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum Include {
    #[default]
    Metadata,
    Object,
    None,
}

impl Include {
    /// Reads `includeObject`.
    pub fn parse(text: Option<&str>) -> Result<Include, Status> {
        match text.unwrap_or_default() {
            "" | "Metadata" => Ok(Include::Metadata),
            "Object" => Ok(Include::Object),
            "None" => Ok(Include::None),
            other => {
                let why = "must be 'Metadata', 'Object', 'None', or empty";
                let problem = FieldError::invalid("includeObject", other, why);
                Err(Status::bad_request(format!("Unable to convert to Table as requested: {problem}")))
            }
        }
    }
}

/// Writes the store's answer. `include` is the query's `includeObject`.
pub fn answer(form: Form, answer: &Answer, include: Option<&str>, now: Timestamp) -> Result<Vec<u8>, Status> {
    match form.view {
        View::Whole => Ok(whole(form, answer)),
        View::Table(version) => {
            let include = Include::parse(include)?;
            Ok(write(form, &tabular(answer, version, include, now)))
        }
        View::Metadata(version) => match answer {
            Answer::Object(_, object) => Ok(write(form, &metadata_only(object, version))),
            Answer::Value(value) => Ok(write(form, &metadata_of_value(value, version))),
            Answer::List(kind, _) => {
                let given = go_type(kind, true);
                let why = format!("you requested PartialObjectMetadata, but the requested object is a list ({given})");
                Err(Status::new(406, Reason::NotAcceptable, why))
            }
        },
        View::MetadataList(version) => match answer {
            Answer::List(_, list) => Ok(write(form, &metadata_list(list, version))),
            Answer::Value(value) if is_status(value) => Ok(write(form, value)),
            Answer::Object(kind, _) if kind.custom().is_some() => {
                Err(Status::new(500, Reason::Unknown, "content is not a list"))
            }
            Answer::Object(kind, _) => Err(not_a_list(&go_type(kind, false))),
            Answer::Value(value) => Err(not_a_list(value.str_at(&["kind"]).unwrap_or_default())),
        },
    }
}

fn not_a_list(given: &str) -> Status {
    let why = format!("you requested PartialObjectMetadataList, but the requested object is not a list ({given})");
    Status::new(406, Reason::NotAcceptable, why)
}

/// The Go type behind a kind, as such refusals name it.
fn go_type(kind: &Kind, list: bool) -> String {
    if kind.custom().is_some() {
        return format!("*unstructured.Unstructured{}", if list { "List" } else { "" });
    }
    let package = match kind.group.split('.').next().unwrap_or_default() {
        "" | "events" => "core",
        first => first,
    };
    let name = if list { &kind.list_kind } else { &kind.kind };
    format!("*{package}.{name}")
}

fn whole(form: Form, answer: &Answer) -> Vec<u8> {
    match answer {
        Answer::Object(_, object) => write(form, &**object),
        Answer::List(kind, list) => write(form, &Listed { kind, list }),
        Answer::Value(value) => write(form, value),
    }
}

fn is_status(value: &Value) -> bool {
    value.str_at(&["kind"]) == Some("Status") && value.str_at(&["apiVersion"]) == Some("v1")
}

/// A list as on the wire.
struct Listed<'a> {
    kind: &'a Kind,
    list: &'a List,
}

impl Serialize for Listed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let custom = self.kind.custom().is_some();
        let mut out = serializer.serialize_map(Some(4))?;
        out.serialize_entry("kind", self.kind.list_kind.as_str())?;
        out.serialize_entry("apiVersion", &self.kind.api_version())?;
        out.serialize_entry("metadata", &list_metadata(self.list, custom))?;
        // Items of a built-in list go without kind and apiVersion: Go's types know what they are.
        if custom {
            out.serialize_entry("items", &self.list.items)?;
        } else {
            out.serialize_entry("items", &Items(&self.list.items))?;
        }
        out.end()
    }
}

fn list_metadata(list: &List, custom: bool) -> Value {
    let mut metadata = value!({"resourceVersion": list.version.to_string()});
    if let Some(token) = &list.continue_token {
        metadata.set_at(&["continue"], token.as_str());
    } else if custom {
        metadata.set_at(&["continue"], "");
    }
    if let Some(remaining) = list.remaining {
        metadata.set_at(&["remainingItemCount"], remaining);
    }
    metadata
}

struct Items<'a>(&'a [Arc<Object>]);

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|object| {
            let mut bare = (**object).clone();
            if let Some(map) = bare.value.as_map_mut() {
                map.retain(|key, _| *key != "kind" && *key != "apiVersion");
            }
            bare
        }))
    }
}

/// `PartialObjectMetadata` of an object.
pub fn metadata_only(object: &Object, version: MetaVersion) -> Object {
    let metadata = object.value.get("metadata").cloned().unwrap_or_else(Value::object);
    Object { value: partial(metadata, version), managers: object.managers.clone() }
}

fn partial(metadata: Value, version: MetaVersion) -> Value {
    let mut value = value!({"kind": "PartialObjectMetadata", "apiVersion": version.api_version()});
    value.set_at(&["metadata"], metadata);
    value
}

fn metadata_of_value(value: &Value, version: MetaVersion) -> Value {
    if is_status(value) {
        return value.clone();
    }
    partial(value.get("metadata").cloned().unwrap_or_else(Value::object), version)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MetadataList {
    kind: &'static str,
    api_version: &'static str,
    metadata: Value,
    items: Option<Vec<Object>>,
}

fn metadata_list(list: &List, version: MetaVersion) -> MetadataList {
    let items: Vec<Object> = list.items.iter().map(|object| metadata_only(object, version)).collect();
    MetadataList {
        kind: "PartialObjectMetadataList",
        api_version: version.api_version(),
        metadata: list_metadata(list, false),
        // Go's nil slice, as the real server sends it.
        items: (!items.is_empty()).then_some(items),
    }
}

/// A `meta.k8s.io` Table, or what cannot be one.
#[derive(Serialize)]
#[serde(untagged)]
enum Tabular {
    Table(Table),
    Value(Value),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Table {
    kind: &'static str,
    api_version: &'static str,
    metadata: Value,
    column_definitions: Option<Vec<Definition>>,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Definition {
    name: Text,
    #[serde(rename = "type")]
    kind: Text,
    format: Text,
    description: Text,
    priority: i64,
}

#[derive(Serialize)]
struct Row {
    cells: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<Value>,
    object: Option<Object>,
}

fn tabular(answer: &Answer, version: MetaVersion, include: Include, now: Timestamp) -> Tabular {
    match answer {
        Answer::Object(kind, object) => {
            let metadata = value!({"resourceVersion": object.version().to_string()});
            Tabular::Table(tabulate(kind, std::slice::from_ref(object), metadata, version, include, now))
        }
        Answer::List(kind, list) => {
            Tabular::Table(tabulate(kind, &list.items, list_metadata(list, false), version, include, now))
        }
        Answer::Value(value) if value.str_at(&["kind"]) == Some("Scale") => {
            Tabular::Table(scale(value, version, include, now))
        }
        Answer::Value(value) => Tabular::Value(value.clone()),
    }
}

fn tabulate(
    kind: &Kind,
    objects: &[Arc<Object>],
    metadata: Value,
    version: MetaVersion,
    include: Include,
    now: Timestamp,
) -> Table {
    let table = table::table(kind, objects, now);
    let rows = table.rows.into_iter().zip(objects).map(|(row, object)| Row {
        cells: row.cells,
        conditions: row.conditions,
        object: included(object, version, include),
    });
    Table {
        kind: "Table",
        api_version: version.api_version(),
        metadata,
        column_definitions: Some(table.columns.iter().map(definition).collect()),
        rows: rows.collect(),
    }
}

fn included(object: &Object, version: MetaVersion, include: Include) -> Option<Object> {
    match include {
        Include::Metadata => Some(metadata_only(object, version)),
        Include::Object => Some(object.clone()),
        Include::None => None,
    }
}

fn definition(column: &Column) -> Definition {
    Definition {
        name: column.name.clone(),
        kind: column.kind.clone(),
        format: column.format.clone(),
        description: column.description.clone(),
        priority: column.priority,
    }
}

/// A Scale is stored nowhere, and has columns of its own.
fn scale(value: &Value, version: MetaVersion, include: Include, now: Timestamp) -> Table {
    let column = |name: &str, kind: &str| Definition {
        name: name.into(),
        kind: kind.into(),
        format: Text::new(),
        description: Text::new(),
        priority: 0,
    };
    let metadata = value.get("metadata").cloned().unwrap_or_else(Value::object);
    let replicas = |part: &str| value.int_at(&[part, "replicas"]).unwrap_or_default();
    let cells = vec![
        metadata.get("name").cloned().unwrap_or_default(),
        replicas("spec").into(),
        replicas("status").into(),
        shown::age(metadata.str_at(&["creationTimestamp"]), now).into(),
    ];
    let object = Object { value: value.clone(), managers: Arc::default() };
    Table {
        kind: "Table",
        api_version: version.api_version(),
        metadata: value!({"resourceVersion": metadata.str_at(&["resourceVersion"]).unwrap_or_default()}),
        column_definitions: Some(vec![
            column("Name", "string"),
            column("Desired", "integer"),
            column("Available", "integer"),
            column("Age", "string"),
        ]),
        rows: vec![Row { cells, conditions: Vec::new(), object: included(&object, version, include) }],
    }
}

/// The object of a watch event in a view that is not the whole object. Only the first table of a watch has headings.
pub fn event_object(
    kind: &Kind,
    object: &Arc<Object>,
    view: View,
    include: Include,
    headings: bool,
    now: Timestamp,
) -> Vec<u8> {
    let written = match view {
        View::Whole | View::MetadataList(_) => serde_json::to_vec(&**object),
        View::Metadata(version) => serde_json::to_vec(&metadata_only(object, version)),
        View::Table(version) => {
            let metadata = value!({"resourceVersion": object.version().to_string()});
            let mut table = tabulate(kind, std::slice::from_ref(object), metadata, version, include, now);
            table.column_definitions = table.column_definitions.filter(|_| headings);
            serde_json::to_vec(&table)
        }
    };
    written.unwrap_or_default()
}
