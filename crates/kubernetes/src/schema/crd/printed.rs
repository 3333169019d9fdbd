//! Parts of a CRD as upstream prints them in refusals: its internal Go structs, with their field names and order.

use super::props::Props;
use crate::value::Value;

/// What may be the same in all versions and is then printed as absent.
#[derive(Default, Clone, Copy)]
pub(super) struct Hoisted {
    pub schema: bool,
    pub subresources: bool,
    pub columns: bool,
    pub selectable: bool,
}

/// `[]CustomResourceDefinitionVersion`
pub(super) fn versions(versions: Option<&Value>, hoisted: Hoisted) -> String {
    let Some(versions) = versions.and_then(Value::as_list) else { return "null".to_owned() };
    list(versions, |version| {
        let v = Props(version);
        let part = |key: &str, hidden: bool| v.get(key).filter(|_| !hidden);
        object(&[
            ("Name", text(v, "name")),
            ("Served", flag(v, "served")),
            ("Storage", flag(v, "storage")),
            ("Deprecated", flag(v, "deprecated")),
            ("DeprecationWarning", json(v.get("deprecationWarning"))),
            (
                "Schema",
                or_null(part("schema", hoisted.schema), |schema| {
                    object(&[("OpenAPIV3Schema", or_null(Props(schema).get("openAPIV3Schema"), |s| props(Props(s))))])
                }),
            ),
            ("Subresources", or_null(part("subresources", hoisted.subresources), subresources)),
            ("AdditionalPrinterColumns", or_null(part("additionalPrinterColumns", hoisted.columns), columns)),
            (
                "SelectableFields",
                or_null(part("selectableFields", hoisted.selectable), |fields| {
                    list(fields.as_list().unwrap_or_default(), |f| object(&[("JSONPath", text(Props(f), "jsonPath"))]))
                }),
            ),
        ])
    })
}

fn subresources(json: &Value) -> String {
    let all = Props(json);
    let scale = |scale: &Value| {
        let scale = Props(scale);
        object(&[
            ("SpecReplicasPath", text(scale, "specReplicasPath")),
            ("StatusReplicasPath", text(scale, "statusReplicasPath")),
            ("LabelSelectorPath", self::json(scale.get("labelSelectorPath"))),
        ])
    };
    object(&[("Status", or_null(all.get("status"), |_| "{}".to_owned())), ("Scale", or_null(all.get("scale"), scale))])
}

fn columns(json: &Value) -> String {
    list(json.as_list().unwrap_or_default(), |column| {
        let c = Props(column);
        object(&[
            ("Name", text(c, "name")),
            ("Type", text(c, "type")),
            ("Format", text(c, "format")),
            ("Description", text(c, "description")),
            ("Priority", c.get("priority").map_or("0".to_owned(), Value::to_json)),
            ("JSONPath", text(c, "jsonPath")),
        ])
    })
}

/// `JSONSchemaProps`
pub(super) fn props(schema: Props<'_>) -> String {
    let schemas =
        |key: &str| or_null(schema.get(key), |all| list(all.as_list().unwrap_or_default(), |s| props(Props(s))));
    let map = |key: &str| {
        or_null(schema.get(key), |all| {
            let fields: Vec<String> = all
                .as_map()
                .into_iter()
                .flat_map(|map| map.iter().map(|(key, s)| format!("{}:{}", Value::from(key), props(Props(s)))))
                .collect();
            format!("{{{}}}", fields.join(","))
        })
    };
    let or_bool = |key: &str| {
        or_null(schema.get(key), |json| match json {
            Value::Bool(allowed) => object(&[("Allows", allowed.to_string()), ("Schema", "null".to_owned())]),
            json => object(&[("Allows", "true".to_owned()), ("Schema", props(Props(json)))]),
        })
    };
    let items = or_null(schema.get("items"), |json| match json {
        Value::List(all) => object(&[("Schema", "null".to_owned()), ("JSONSchemas", list(all, |s| props(Props(s))))]),
        json => object(&[("Schema", props(Props(json))), ("JSONSchemas", "null".to_owned())]),
    });
    let value = |key: &str| json(schema.get(key));
    let docs = or_null(schema.get("externalDocs"), |docs| {
        object(&[("Description", text(Props(docs), "description")), ("URL", text(Props(docs), "url"))])
    });
    object(&[
        ("ID", text(schema, "id")),
        ("Schema", text(schema, "$schema")),
        ("Ref", value("$ref")),
        ("Description", text(schema, "description")),
        ("Type", text(schema, "type")),
        ("Nullable", flag(schema, "nullable")),
        ("Format", text(schema, "format")),
        ("Title", text(schema, "title")),
        ("Default", value("default")),
        ("Maximum", value("maximum")),
        ("ExclusiveMaximum", flag(schema, "exclusiveMaximum")),
        ("Minimum", value("minimum")),
        ("ExclusiveMinimum", flag(schema, "exclusiveMinimum")),
        ("MaxLength", value("maxLength")),
        ("MinLength", value("minLength")),
        ("Pattern", text(schema, "pattern")),
        ("MaxItems", value("maxItems")),
        ("MinItems", value("minItems")),
        ("UniqueItems", flag(schema, "uniqueItems")),
        ("MultipleOf", value("multipleOf")),
        ("Enum", value("enum")),
        ("MaxProperties", value("maxProperties")),
        ("MinProperties", value("minProperties")),
        ("Required", value("required")),
        ("Items", items),
        ("AllOf", schemas("allOf")),
        ("OneOf", schemas("oneOf")),
        ("AnyOf", schemas("anyOf")),
        ("Not", or_null(schema.get("not"), |s| props(Props(s)))),
        ("Properties", map("properties")),
        ("AdditionalProperties", or_bool("additionalProperties")),
        ("PatternProperties", map("patternProperties")),
        ("Dependencies", value("dependencies")),
        ("AdditionalItems", or_bool("additionalItems")),
        ("Definitions", map("definitions")),
        ("ExternalDocs", docs),
        ("Example", value("example")),
        ("XPreserveUnknownFields", value("x-kubernetes-preserve-unknown-fields")),
        ("XEmbeddedResource", flag(schema, "x-kubernetes-embedded-resource")),
        ("XIntOrString", flag(schema, "x-kubernetes-int-or-string")),
        ("XListMapKeys", value("x-kubernetes-list-map-keys")),
        ("XListType", value("x-kubernetes-list-type")),
        ("XMapType", value("x-kubernetes-map-type")),
        (
            "XValidations",
            or_null(schema.get("x-kubernetes-validations"), |all| list(all.as_list().unwrap_or_default(), rule)),
        ),
    ])
}

/// `ValidationRule`
pub(in crate::schema) fn rule(json: &Value) -> String {
    let rule = Props(json);
    object(&[
        ("Rule", text(rule, "rule")),
        ("Message", text(rule, "message")),
        ("MessageExpression", text(rule, "messageExpression")),
        ("Reason", self::json(rule.get("reason"))),
        ("FieldPath", text(rule, "fieldPath")),
        ("OptionalOldSelf", self::json(rule.get("optionalOldSelf"))),
    ])
}

fn object(fields: &[(&str, String)]) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

fn list(items: &[Value], print: impl Fn(&Value) -> String) -> String {
    format!("[{}]", items.iter().map(print).collect::<Vec<_>>().join(","))
}

fn or_null(value: Option<&Value>, print: impl Fn(&Value) -> String) -> String {
    value.map_or("null".to_owned(), print)
}

fn json(value: Option<&Value>) -> String {
    value.map_or("null".to_owned(), go_json)
}

fn text(schema: Props<'_>, key: &str) -> String {
    go_json(&Value::from(schema.text(key)))
}

fn flag(schema: Props<'_>, key: &str) -> String {
    schema.is(key).to_string()
}

/// JSON as Go writes it: `<`, `>` and `&` escaped.
fn go_json(value: &Value) -> String {
    value.to_json().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}
