//! The OpenAPI documents of what is served: kubectl reads them to validate, explain, merge and diff.
//!
//! One document per group and version, made from the types of the kinds in it. Built-in types come without prose (their
//! documentation is upstream's); those of custom resources are shown as their CRD writes them. Pure data, no I/O.

use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::discovery::{Catalog, Version};
use crate::kubernetes::{
    facts,
    kind::{Kind, Subresource},
    schema::{Field, Merge, Schema, Shape, Struct, Topology},
    value::Value,
};

/// Looks up the `openAPIV3Schema` that a CRD gives for a kind.
pub type Declared<'a> = &'a dyn Fn(&Kind) -> Option<Value>;

/// The paths for which there is a document: `api/v1`, `apis/apps/v1`, …
pub fn paths(catalog: &Catalog) -> Vec<String> {
    let mut paths: Vec<String> = catalog
        .groups()
        .iter()
        .flat_map(|group| group.versions.iter().map(|version| base(&group.name, &version.name)))
        .collect();
    paths.sort();
    paths
}

fn base(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// The OpenAPI v3 document at one of [`paths`].
pub fn document(catalog: &Catalog, path: &str, declared: Declared<'_>) -> Option<Json> {
    let (group, version) = match path.split('/').collect::<Vec<_>>().as_slice() {
        ["api", version] => ("", *version),
        ["apis", group, version] => (*group, *version),
        _ => return None,
    };
    let version = catalog.version(group, version)?;
    let mut components = Components { prefix: "#/components/schemas/", schemas: Map::new() };
    components.add_all(catalog, version, declared);
    components.add_fixed();
    let mut paths = Map::new();
    for kind in &version.kinds {
        add_paths(&mut paths, &format!("/{path}"), kind);
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.35.4"},
        "paths": paths,
        "components": {
            "schemas": components.schemas,
            "securitySchemes": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}},
        },
    }))
}

/// The OpenAPI v2 document of everything, for old clients. It has types only.
pub fn swagger(catalog: &Catalog, declared: Declared<'_>) -> Json {
    let mut components = Components { prefix: "#/definitions/", schemas: Map::new() };
    for version in catalog.groups().iter().flat_map(|group| &group.versions) {
        components.add_all(catalog, version, declared);
    }
    components.add_fixed();
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "v1.35.4"},
        "paths": {},
        "definitions": components.schemas,
    })
}

const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";

/// The name of a kind's type. Custom kinds are named by their group, read backwards.
fn type_name(kind: &Kind) -> String {
    match &kind.schema.name {
        Some(name) => name.to_string(),
        None => {
            let backwards: Vec<&str> = kind.group.split('.').rev().collect();
            format!("{}.{}.{}", backwards.join("."), kind.version, kind.kind)
        }
    }
}

/// The type a subresource takes and gives; `None` if it is the kind's own, or no data at all (`exec`, `proxy`).
fn subresource_type(kind: &Kind, sub: &Subresource) -> Option<&'static Arc<Schema>> {
    let own = kind.group == sub.group && kind.version == sub.version && kind.kind == sub.kind;
    facts::schema(&sub.group, &sub.version, &sub.kind).filter(|schema| !own && schema.name.is_some())
}

/// The types a document refers to.
struct Components {
    prefix: &'static str,
    schemas: Map<String, Json>,
}

impl Components {
    fn reference(&self, name: &str) -> Json {
        json!({"$ref": format!("{}{name}", self.prefix)})
    }

    fn add_all(&mut self, catalog: &Catalog, version: &Version, declared: Declared<'_>) {
        let metadata = catalog.groups().iter().find_map(|group| {
            group.versions.iter().find_map(|version| {
                version
                    .kinds
                    .iter()
                    .filter(|kind| kind.custom().is_none())
                    .find_map(|kind| kind.schema.child("metadata"))
            })
        });
        for kind in &version.kinds {
            let name = type_name(kind);
            let own =
                json!({"group": kind.group.as_str(), "kind": kind.kind.as_str(), "version": kind.version.as_str()});
            let mut schema = match kind.custom() {
                Some(_) => self.custom(declared(kind), metadata),
                None => self.body(&kind.schema),
            };
            schema["x-kubernetes-group-version-kind"] = json!([own]);
            self.schemas.insert(name.clone(), schema);
            if kind.verbs.iter().any(|verb| verb == "list") {
                self.schemas.insert(format!("{name}List"), self.list(kind, &name));
            }
            for sub in &kind.subresources {
                if let Some(schema) = subresource_type(kind, sub) {
                    self.usage(schema);
                }
            }
        }
    }

    /// A custom kind as its CRD writes it, with the fields every object has.
    fn custom(&mut self, declared: Option<Value>, metadata: Option<&Arc<Schema>>) -> Json {
        let mut schema = declared.map_or_else(|| json!({"type": "object"}), |declared| Json::from(&declared));
        let metadata =
            metadata.map_or_else(|| json!({"type": "object"}), |metadata| json!({"allOf": [self.usage(metadata)]}));
        let text = json!({"type": "string"});
        for (field, shape) in [("apiVersion", &text), ("kind", &text), ("metadata", &metadata)] {
            schema["properties"][field] = shape.clone();
        }
        schema
    }

    fn list(&self, kind: &Kind, name: &str) -> Json {
        json!({
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": {"allOf": [self.reference(LIST_META)]},
                "items": {"type": "array", "items": {"allOf": [self.reference(name)]}},
            },
            "x-kubernetes-group-version-kind": [{
                "group": kind.group.as_str(), "kind": kind.list_kind.as_str(), "version": kind.version.as_str(),
            }],
        })
    }

    /// The types that operations speak of and no kind contains.
    fn add_fixed(&mut self) {
        let text = json!({"type": "string"});
        let fixed = [
            (PATCH, json!({"type": "object"})),
            (LIST_META, {
                json!({"type": "object", "properties": {
                    "continue": text, "remainingItemCount": {"type": "integer", "format": "int64"},
                    "resourceVersion": text, "selfLink": text,
                }})
            }),
            (DELETE_OPTIONS, {
                json!({"type": "object", "properties": {
                    "apiVersion": text, "kind": text, "propagationPolicy": text,
                    "dryRun": {"type": "array", "items": text},
                    "gracePeriodSeconds": {"type": "integer", "format": "int64"},
                    "orphanDependents": {"type": "boolean"},
                    "preconditions": {"type": "object", "properties": {"resourceVersion": text, "uid": text}},
                }})
            }),
        ];
        for (name, schema) in fixed {
            self.schemas.entry(name).or_insert(schema);
        }
    }

    /// How another type refers to this one: by name if it has one.
    fn usage(&mut self, schema: &Schema) -> Json {
        let Some(name) = schema.name.as_deref() else { return self.body(schema) };
        if !self.schemas.contains_key(name) {
            // Types contain themselves (JSON schemas do): the name is taken before its body is written.
            self.schemas.insert(name.to_owned(), Json::Null);
            let schema = facts::named(name).map_or(schema, |whole| whole);
            let body = self.body(schema);
            self.schemas.insert(name.to_owned(), body);
        }
        self.reference(name)
    }

    /// As [`Components::usage`], in the form that leaves room for extensions beside a reference.
    fn extensible(&mut self, schema: &Schema) -> Json {
        let usage = self.usage(schema);
        if usage.get("$ref").is_some() { json!({"allOf": [usage]}) } else { usage }
    }

    fn body(&mut self, schema: &Schema) -> Json {
        let mut body = match &schema.shape {
            Shape::Any => json!({"x-kubernetes-preserve-unknown-fields": true}),
            Shape::Bool => json!({"type": "boolean"}),
            Shape::Int32 => json!({"type": "integer", "format": "int32"}),
            Shape::Int64 => json!({"type": "integer", "format": "int64"}),
            Shape::Number => json!({"type": "number", "format": "double"}),
            Shape::Str | Shape::Duration => json!({"type": "string"}),
            Shape::Bytes => json!({"type": "string", "format": "byte"}),
            Shape::Time | Shape::MicroTime => json!({"type": "string", "format": "date-time"}),
            Shape::IntOrString => {
                json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
            }
            Shape::Quantity => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
            Shape::Struct(fields) => self.fields(fields),
            Shape::Map { values, atomic } => {
                let mut map = json!({"type": "object", "additionalProperties": self.usage(values)});
                if *atomic {
                    map["x-kubernetes-map-type"] = "atomic".into();
                }
                map
            }
            Shape::List { items, topology, merge } => self.items(items, topology, merge),
        };
        // A shape of no particular type is an object to clients that must show one.
        if matches!(schema.shape, Shape::Any) && schema.name.is_some() {
            body = json!({"type": "object"});
        }
        if !schema.allowed.is_empty() {
            body["enum"] = schema.allowed.iter().map(Json::from).collect();
        }
        body
    }

    fn fields(&mut self, fields: &Struct) -> Json {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (name, field) in &fields.fields {
            properties.insert(name.to_string(), self.field(field));
            if field.required {
                required.push(name.as_str());
            }
        }
        let mut body = json!({"type": "object"});
        if !properties.is_empty() {
            body["properties"] = properties.into();
        }
        if !required.is_empty() {
            body["required"] = required.into();
        }
        if fields.atomic {
            body["x-kubernetes-map-type"] = "atomic".into();
        }
        if fields.open {
            body["x-kubernetes-preserve-unknown-fields"] = true.into();
        }
        body
    }

    fn field(&mut self, field: &Field) -> Json {
        let mut body = self.extensible(&field.schema);
        let merges = body.get("x-kubernetes-patch-strategy").is_some();
        let strategy = match (field.retain_keys, field.replace) {
            (true, _) if merges => Some("merge,retainKeys"),
            (true, _) => Some("retainKeys"),
            (false, true) => Some("replace"),
            (false, false) => None,
        };
        if let Some(strategy) = strategy {
            body["x-kubernetes-patch-strategy"] = strategy.into();
        }
        if let Some(default) = &field.schema.default {
            body["default"] = Json::from(default);
        }
        body
    }

    fn items(&mut self, items: &Schema, topology: &Topology, merge: &Merge) -> Json {
        let mut body = json!({"type": "array", "items": self.extensible(items)});
        match topology {
            Topology::Atomic => body["x-kubernetes-list-type"] = "atomic".into(),
            Topology::Set => body["x-kubernetes-list-type"] = "set".into(),
            Topology::Map(keys) => {
                body["x-kubernetes-list-type"] = "map".into();
                body["x-kubernetes-list-map-keys"] = keys.iter().map(|key| key.as_str()).collect();
            }
        }
        match merge {
            Merge::Replace => {}
            Merge::Union => body["x-kubernetes-patch-strategy"] = "merge".into(),
            Merge::Key(key) => {
                body["x-kubernetes-patch-merge-key"] = key.as_str().into();
                body["x-kubernetes-patch-strategy"] = "merge".into();
            }
        }
        body
    }
}

/// Adds the paths of one kind.
fn add_paths(paths: &mut Map<String, Json>, base: &str, kind: &Kind) {
    let inside = if kind.namespaced { format!("{base}/namespaces/{{namespace}}") } else { base.to_owned() };
    let (collection, item) = (format!("{inside}/{}", kind.plural), format!("{inside}/{}/{{name}}", kind.plural));
    let own = Operation {
        kind,
        group: &kind.group,
        version: &kind.version,
        name: &kind.kind,
        schema: Some(type_name(kind)),
        scoped: kind.namespaced,
    };
    let has = |verb: &str| kind.verbs.iter().any(|known| known == verb);
    let mut add = |path: &str, method: &str, operation: Json| {
        let entry = paths.entry(path).or_insert_with(|| own.entry(path));
        entry[method] = operation;
    };
    for (verb, method, path) in [
        ("list", "get", &collection),
        ("create", "post", &collection),
        ("deletecollection", "delete", &collection),
        ("get", "get", &item),
        ("update", "put", &item),
        ("patch", "patch", &item),
        ("delete", "delete", &item),
    ] {
        if has(verb) {
            add(path, method, own.operation(verb));
        }
    }
    if kind.namespaced && has("list") {
        add(&format!("{base}/{}", kind.plural), "get", own.operation("list"));
    }
    for sub in &kind.subresources {
        let of_sub = Operation {
            group: &sub.group,
            version: &sub.version,
            name: &sub.kind,
            schema: match subresource_type(kind, sub) {
                Some(schema) => schema.name.as_deref().map(str::to_owned),
                None if sub.kind == kind.kind => own.schema.clone(),
                None => None,
            },
            ..own.clone()
        };
        for (verb, method) in
            [("get", "get"), ("create", "post"), ("update", "put"), ("patch", "patch"), ("delete", "delete")]
        {
            if sub.verbs.iter().any(|known| known == verb) {
                add(&format!("{item}/{}", sub.name), method, of_sub.operation(verb));
            }
        }
    }
}

/// What the operations of one resource or subresource have in common.
#[derive(Clone)]
struct Operation<'a> {
    kind: &'a Kind,
    group: &'a str,
    version: &'a str,
    name: &'a str,
    schema: Option<String>,
    scoped: bool,
}

impl Operation<'_> {
    /// What every method of a path has in common.
    fn entry(&self, path: &str) -> Json {
        let mut parameters = Vec::new();
        for name in ["name", "namespace"] {
            if path.contains(&format!("{{{name}}}")) {
                parameters.push(json!({"name": name, "in": "path", "required": true, "schema": text("string")}));
            }
        }
        parameters.push(query("pretty", "string"));
        json!({"parameters": parameters})
    }

    fn operation(&self, verb: &str) -> Json {
        let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
        let content = |name: Option<&str>| match name {
            Some(name) => json!({"application/json": {"schema": reference(name)}}),
            None => json!({"*/*": {"schema": {"type": "string"}}}),
        };
        let schema = self.schema.as_deref();
        let list = schema.filter(|_| verb == "list").map(|name| format!("{name}List"));
        let mut operation = json!({
            "operationId": format!("{verb}{}{}{}", self.scope(), self.kind.kind, self.name),
            "parameters": parameters(verb),
            "responses": {"200": {"description": "OK", "content": content(list.as_deref().or(schema))}},
            "x-kubernetes-action": action(verb),
            "x-kubernetes-group-version-kind": {"group": self.group, "kind": self.name, "version": self.version},
        });
        match verb {
            "create" | "update" => {
                operation["requestBody"] = json!({"required": true, "content": content(schema)});
            }
            "delete" | "deletecollection" => {
                operation["requestBody"] = json!({"content": content(Some(DELETE_OPTIONS))});
            }
            "patch" => {
                let mut kinds =
                    vec!["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];
                if self.kind.custom().is_none() {
                    kinds.push("application/strategic-merge-patch+json");
                }
                let content: Map<String, Json> =
                    kinds.iter().map(|kind| (kind.to_string(), json!({"schema": reference(PATCH)}))).collect();
                operation["requestBody"] = json!({"required": true, "content": content});
            }
            _ => {}
        }
        operation
    }

    fn scope(&self) -> &'static str {
        if self.scoped { "Namespaced" } else { "" }
    }
}

fn action(verb: &str) -> &str {
    match verb {
        "create" => "post",
        "update" => "put",
        verb => verb,
    }
}

fn text(kind: &str) -> Json {
    json!({"type": kind, "uniqueItems": true})
}

fn query(name: &str, kind: &str) -> Json {
    json!({"name": name, "in": "query", "schema": text(kind)})
}

/// What a verb takes in the query. kubectl looks for `fieldValidation` here before it sends any.
fn parameters(verb: &str) -> Vec<Json> {
    let write = [("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
    let list = [
        ("allowWatchBookmarks", "boolean"),
        ("continue", "string"),
        ("fieldSelector", "string"),
        ("labelSelector", "string"),
        ("limit", "integer"),
        ("resourceVersion", "string"),
        ("resourceVersionMatch", "string"),
        ("sendInitialEvents", "boolean"),
        ("timeoutSeconds", "integer"),
        ("watch", "boolean"),
    ];
    let delete = [
        ("dryRun", "string"),
        ("gracePeriodSeconds", "integer"),
        ("orphanDependents", "boolean"),
        ("propagationPolicy", "string"),
    ];
    let wanted: Vec<(&str, &str)> = match verb {
        "create" | "update" => write.to_vec(),
        "patch" => [&write[..], &[("force", "boolean")]].concat(),
        "list" => list.to_vec(),
        "delete" => delete.to_vec(),
        "deletecollection" => [&delete[..], &list[..]].concat(),
        _ => Vec::new(),
    };
    wanted.into_iter().map(|(name, kind)| query(name, kind)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{discovery::samples, value};

    fn named(name: &str, fields: Vec<(&str, Field)>) -> Schema {
        let fields = fields.into_iter().map(|(name, field)| (name.into(), field)).collect();
        let shape = Shape::Struct(Struct { fields, ..Struct::default() });
        Schema { name: Some(name.into()), ..Schema::of(shape) }
    }

    fn catalog() -> Catalog {
        let port = Arc::new(named("io.test.Port", vec![("name", Field::of(Schema::of(Shape::Str)))]));
        let ports =
            Shape::List { items: port, topology: Topology::Map(vec!["name".into()]), merge: Merge::Key("name".into()) };
        let strategy = named("io.test.Strategy", vec![("percent", Field::of(Schema::of(Shape::IntOrString)))]);
        let fields = vec![
            ("ports", Field { required: true, ..Field::of(Schema::of(ports)) }),
            ("strategy", Field { retain_keys: true, ..Field::of(strategy) }),
        ];
        let mut kind = samples::kind("apps", "v1", "Thing", "things", true);
        kind.schema = Arc::new(named("io.test.Thing", fields));
        let gadget = samples::catalog().resource("front.test", "v1", "gadgets").unwrap().clone();
        Catalog::of(&[Arc::new(kind), gadget])
    }

    #[test]
    fn types_show_how_their_lists_merge() {
        let document = document(&catalog(), "apis/apps/v1", &|_| None).unwrap();
        assert_eq!(
            document["components"]["schemas"]["io.test.Thing"],
            json!({
                "type": "object",
                "required": ["ports"],
                "properties": {
                    "ports": {
                        "type": "array",
                        "items": {"allOf": [{"$ref": "#/components/schemas/io.test.Port"}]},
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "x-kubernetes-patch-merge-key": "name",
                        "x-kubernetes-patch-strategy": "merge",
                    },
                    "strategy": {
                        "allOf": [{"$ref": "#/components/schemas/io.test.Strategy"}],
                        "x-kubernetes-patch-strategy": "retainKeys",
                    },
                },
                "x-kubernetes-group-version-kind": [{"group": "apps", "kind": "Thing", "version": "v1"}],
            })
        );
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let everything = Catalog::of(facts::kinds());
        let served = [&everything, &catalog()]
            .map(|catalog| paths(catalog).into_iter().map(|path| (catalog.clone(), path)).collect::<Vec<_>>());
        for (catalog, path) in served.into_iter().flatten() {
            let document = document(&catalog, &path, &|_| None).unwrap();
            let text = document.to_string();
            for reference in text.split("#/components/schemas/").skip(1) {
                let name = reference.split('"').next().unwrap();
                assert!(document["components"]["schemas"].get(name).is_some(), "{path}: {name}");
            }
        }
    }

    #[test]
    fn kubectl_finds_the_kind_and_the_parameter_it_looks_for() {
        let document = document(&catalog(), "apis/apps/v1", &|_| None).unwrap();
        let patch = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/things/{name}"]["patch"];
        let kind = json!({"group": "apps", "kind": "Thing", "version": "v1"});
        assert_eq!(patch["x-kubernetes-group-version-kind"], kind);
        assert!(patch["parameters"].as_array().unwrap().contains(&query("fieldValidation", "string")));
        assert!(patch["requestBody"]["content"].get("application/strategic-merge-patch+json").is_some());
        assert_eq!(document["paths"]["/apis/apps/v1/things"]["get"]["x-kubernetes-group-version-kind"], kind);
    }

    #[test]
    fn a_custom_kind_looks_as_its_definition_writes_it() {
        let declared = |_: &Kind| {
            Some(value!({"type": "object", "description": "A gadget.", "properties": {"spec": {"type": "object"}}}))
        };
        let document = document(&catalog(), "apis/front.test/v1", &declared).unwrap();
        let gadget = &document["components"]["schemas"]["test.front.v1.Gadget"];
        assert_eq!(gadget["description"], "A gadget.");
        let fields: Vec<&String> = gadget["properties"].as_object().unwrap().keys().collect();
        assert_eq!(fields, ["apiVersion", "kind", "metadata", "spec"]);
        let patch = &document["paths"]["/apis/front.test/v1/namespaces/{namespace}/gadgets/{name}"]["patch"];
        assert!(patch["requestBody"]["content"].get("application/strategic-merge-patch+json").is_none());
    }
}
