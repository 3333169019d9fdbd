//! CustomResourceDefinitions: their defaults, what is wrong with them, and the kinds they define.

mod defaults;
mod fields;
mod names;
mod openapi;
mod printed;
mod props;
mod structural;
mod structure;
mod validate;

use std::sync::Arc;

use crate::value;
use crate::{
    kind::{Column, Custom, Kind, Origin, Scale, Subresource},
    schema::{Schema, Shape, Struct},
    value::{Text, Value, intern},
};

pub use names::{is_established, set_terminating, settle};
pub(super) use printed::rule as printed_rule;
#[cfg(test)]
pub(super) use structural::read_rule;
pub use structural::resource;
pub(super) use structural::schema as schema_at;
pub use validate::{validate, warnings};

/// Fills in what the server fills in on every write: names derived from the kind, the conversion strategy, the stored
/// version.
pub fn default(crd: &mut Value) {
    let kind = crd.str_at(&["spec", "names", "kind"]).unwrap_or_default().to_owned();
    let absent = |crd: &Value, path: &[&str]| crd.str_at(path).is_none_or(str::is_empty);
    if absent(crd, &["spec", "names", "singular"]) && !kind.is_empty() {
        crd.set_at(&["spec", "names", "singular"], kind.to_lowercase());
    }
    if absent(crd, &["spec", "names", "listKind"]) && !kind.is_empty() {
        crd.set_at(&["spec", "names", "listKind"], format!("{kind}List"));
    }
    if crd.at(&["spec", "conversion"]).is_none_or(Value::is_null) {
        crd.set_at(&["spec", "conversion", "strategy"], "None");
    }
    if crd.at(&["spec", "conversion", "webhook", "clientConfig", "service"]).is_some_and(|s| s.get("port").is_none()) {
        crd.set_at(&["spec", "conversion", "webhook", "clientConfig", "service", "port"], 443);
    }
}

/// Resets what a client may not set on a CRD it creates.
pub fn prepare_create(crd: &mut Value) {
    crd.set_at(&["status"], value!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}}));
    store_version(crd);
}

/// Resets what a client may not set on a CRD it updates.
pub fn prepare_update(crd: &mut Value, old: &Value) {
    crd.set_at(&["status"], old.get("status").cloned().unwrap_or_default());
    store_version(crd);
}

/// Notes the storage version as one in which objects may be stored.
pub fn store_version(crd: &mut Value) {
    let storage = |version: &&Value| version.get("storage") == Some(&Value::Bool(true));
    let versions = crd.list_at(&["spec", "versions"]);
    let Some(name) = versions.iter().find(storage).and_then(|version| version.get("name")).cloned() else { return };
    let mut stored = crd.list_at(&["status", "storedVersions"]).to_vec();
    if !stored.contains(&name) {
        stored.push(name);
        crd.set_at(&["status", "storedVersions"], stored);
    }
}

/// The kinds a CRD defines: one for each version that is served.
pub fn kinds(crd: &Value) -> Vec<Kind> {
    let spec = crd.get("spec").cloned().unwrap_or_default();
    let served = |version: &&Value| version.get("served") == Some(&Value::Bool(true));
    spec.list_at(&["versions"]).iter().filter(served).map(|version| kind(crd, &spec, version)).collect()
}

fn kind(crd: &Value, spec: &Value, version: &Value) -> Kind {
    let accepted = crd.at(&["status", "acceptedNames"]);
    let names = match accepted.filter(|names| names.str_at(&["plural"]).is_some_and(|plural| !plural.is_empty())) {
        Some(names) => names.clone(),
        None => spec.get("names").cloned().unwrap_or_default(),
    };
    let name = |key: &str| names.str_at(&[key]).map(intern).unwrap_or_default();
    let list = |key: &str| names.list_at(&[key]).iter().filter_map(|name| name.as_str().map(intern)).collect();
    let group = spec.str_at(&["group"]).map(intern).unwrap_or_default();
    let version_name = version.str_at(&["name"]).map(intern).unwrap_or_default();
    let custom = custom(crd, version);
    let verbs = |verbs: &[&str]| -> Vec<Text> { verbs.iter().map(|verb| intern(verb)).collect() };
    let mut subresources = Vec::new();
    if custom.status {
        subresources.push(Subresource {
            name: intern("status"),
            group: group.clone(),
            version: version_name.clone(),
            kind: name("kind"),
            verbs: verbs(&["get", "patch", "update"]),
        });
    }
    if custom.scale.is_some() {
        subresources.push(Subresource {
            name: intern("scale"),
            group: intern("autoscaling"),
            version: intern("v1"),
            kind: intern("Scale"),
            verbs: verbs(&["get", "patch", "update"]),
        });
    }
    Kind {
        group,
        version: version_name,
        kind: name("kind"),
        list_kind: name("listKind"),
        plural: name("plural"),
        singular: name("singular"),
        short_names: list("shortNames"),
        categories: list("categories"),
        namespaced: spec.str_at(&["scope"]) == Some("Namespaced"),
        verbs: verbs(&["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]),
        subresources,
        columns: columns(version),
        schema: Arc::new(schema(version)),
        origin: Origin::Custom(Arc::new(custom)),
    }
}

fn schema(version: &Value) -> Schema {
    match version.at(&["schema", "openAPIV3Schema"]) {
        Some(json) => resource(json),
        None => Schema::of(Shape::Struct(Struct { open: true, ..Struct::default() })),
    }
}

fn custom(crd: &Value, version: &Value) -> Custom {
    let subresources = version.get("subresources");
    let path = |text: &str| -> Vec<Text> { text.trim_start_matches('.').split('.').map(intern).collect() };
    let scale = subresources.and_then(|all| all.get("scale")).filter(|scale| !scale.is_null()).map(|scale| Scale {
        spec_replicas: path(scale.str_at(&["specReplicasPath"]).unwrap_or_default()),
        status_replicas: path(scale.str_at(&["statusReplicasPath"]).unwrap_or_default()),
        selector: scale.str_at(&["labelSelectorPath"]).filter(|text| !text.is_empty()).map(path),
    });
    Custom {
        crd: crd.str_at(&["metadata", "name"]).map(intern).unwrap_or_default(),
        status: subresources.and_then(|all| all.get("status")).is_some_and(|status| !status.is_null()),
        scale,
        selectable: version
            .list_at(&["selectableFields"])
            .iter()
            .filter_map(|field| field.str_at(&["jsonPath"]).map(|path| intern(path.trim_start_matches('.'))))
            .collect(),
        storage: version.get("storage") == Some(&Value::Bool(true)),
        storage_version: crd
            .list_at(&["spec", "versions"])
            .iter()
            .find(|version| version.get("storage") == Some(&Value::Bool(true)))
            .and_then(|version| version.str_at(&["name"]).map(intern))
            .unwrap_or_default(),
    }
}

fn columns(version: &Value) -> Vec<Column> {
    let mut columns = vec![Column {
        name: intern("Name"),
        kind: intern("string"),
        format: intern("name"),
        json_path: intern(".metadata.name"),
        ..Column::default()
    }];
    let given = version.list_at(&["additionalPrinterColumns"]);
    for column in given {
        let text = |key: &str| column.str_at(&[key]).map(intern).unwrap_or_default();
        let path = text("jsonPath");
        let description = match text("description") {
            text if text.is_empty() => format!("Custom resource definition column (in JSONPath format): {path}").into(),
            text => text,
        };
        columns.push(Column {
            name: text("name"),
            kind: text("type"),
            format: text("format"),
            description,
            priority: column.int_at(&["priority"]).unwrap_or(0),
            json_path: path,
        });
    }
    if given.is_empty() {
        columns.push(Column {
            name: intern("Age"),
            kind: intern("date"),
            json_path: intern(".metadata.creationTimestamp"),
            ..Column::default()
        });
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        schema::{default::fill, prune::prune, validate},
        value,
    };

    fn crd() -> Value {
        value!({
            "metadata": {"name": "widgets.schema.test"},
            "spec": {
                "group": "schema.test", "scope": "Namespaced",
                "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["w"]},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
                        "type": "object", "required": ["image"], "properties": {
                            "image": {"type": "string"},
                            "replicas": {"type": "integer", "minimum": 0, "default": 1},
                        },
                    }}}},
                }],
            },
        })
    }

    #[test]
    fn a_crd_becomes_a_kind_with_names_columns_and_subresources() {
        let mut crd = crd();
        default(&mut crd);
        prepare_create(&mut crd);
        let kinds = kinds(&crd);
        let kind = &kinds[0];
        let names = [&kind.plural, &kind.singular, &kind.kind, &kind.list_kind, &kind.short_names[0]];
        assert_eq!(names, ["widgets", "widget", "Widget", "WidgetList", "w"]);
        let columns: Vec<&str> = kind.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(columns, ["Name", "Age"]);
        let subresources: Vec<&str> = kind.subresources.iter().map(|sub| sub.name.as_str()).collect();
        assert_eq!(subresources, ["status", "scale"]);
        assert_eq!(crd.at(&["status", "storedVersions"]), Some(&value!(["v1"])));
    }

    #[test]
    fn an_object_is_pruned_filled_and_judged_by_its_kind() {
        let kind = kinds(&crd()).remove(0);
        let mut object = value!({"apiVersion": "schema.test/v1", "kind": "Widget", "metadata": {"name": "a"},
            "spec": {"image": 5, "nope": 1}, "more": {"a": 1}});
        assert_eq!(prune(&kind.schema, &mut object), ["more", "spec.nope"]);
        fill(&kind.schema, &mut object);
        assert_eq!(object.get("spec"), Some(&value!({"image": 5, "replicas": 1})));
        let problems: Vec<String> =
            validate::validate(&kind, &object, None).iter().map(|problem| problem.to_string()).collect();
        let text = "spec.image: Invalid value: \"integer\": spec.image in body must be of type string: \"integer\"";
        assert_eq!(problems, [text]);
    }
}
