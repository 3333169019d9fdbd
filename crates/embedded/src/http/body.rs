//! Request bodies: JSON or YAML to a value, refused in the real server's words when they are not what the path says.

use super::{gojson::syntax_error, protobuf, yaml};
use crate::kubernetes::{
    kind::{Kind, Subresource},
    status::{Reason, Status},
    value::{Value, parse},
};
use crate::{discovery::Catalog, store::request::PatchType};

/// The largest body accepted.
pub const LIMIT: usize = 3 * 1024 * 1024;

/// 413: the body is larger than [`LIMIT`].
pub fn too_large() -> Status {
    Status::new(413, Reason::RequestEntityTooLarge, format!("Request entity too large: limit is {LIMIT}"))
}

/// A body that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Body {
    /// What it says.
    pub value: Value,
    /// Keys given twice, as paths.
    pub duplicates: Vec<String>,
    /// Keys given twice in YAML, which is refused or warned of by line.
    pub repeated: Vec<String>,
}

impl Body {
    fn of(value: Value) -> Body {
        Body { value, duplicates: Vec::new(), repeated: Vec::new() }
    }
}

/// How a body is written, by its `Content-Type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Encoding {
    Json,
    Yaml,
    Protobuf,
}

impl Encoding {
    /// The encoding a `Content-Type` names; JSON if there is none. Custom resources have no protobuf, though the real
    /// server lists it for them, too.
    pub fn of(content_type: &str, custom: bool) -> Result<Encoding, Status> {
        let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match media_type.as_str() {
            "" | "application/json" => Ok(Encoding::Json),
            "application/yaml" => Ok(Encoding::Yaml),
            protobuf::MEDIA_TYPE if !custom => Ok(Encoding::Protobuf),
            _ => Err(unsupported(&["application/json", "application/yaml", protobuf::MEDIA_TYPE])),
        }
    }
}

/// 415, with what would be accepted.
fn unsupported(accepted: &[&str]) -> Status {
    let message = format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        accepted.join(", ")
    );
    Status::new(415, Reason::UnsupportedMediaType, message)
}

/// The kind of patch a `Content-Type` names. Custom resources know no strategic merge, and say so themselves.
pub fn patch_type(content_type: &str, custom: bool) -> Result<PatchType, Status> {
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    match media_type {
        "application/json-patch+json" => Ok(PatchType::Json),
        "application/merge-patch+json" => Ok(PatchType::Merge),
        "application/apply-patch+yaml" => Ok(PatchType::Apply),
        "application/strategic-merge-patch+json" if !custom => Ok(PatchType::Strategic),
        _ if custom => {
            let accepted =
                ["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];
            Err(unsupported(&accepted))
        }
        _ => {
            let status = Status::new(415, Reason::UnsupportedMediaType, "415: Unsupported Media Type");
            Err(Status { details: Some(Box::default()), ..status })
        }
    }
}

/// Reads JSON, or says what Go would say.
fn json(bytes: &[u8]) -> Result<Body, String> {
    match parse(bytes) {
        Ok(parsed) => Ok(Body { duplicates: parsed.duplicates, ..Body::of(parsed.value) }),
        Err(error) => match syntax_error(bytes) {
            Some(words) => Err(words),
            // Go lets bytes pass that are no UTF-8 and shows them as U+FFFD.
            None => match parse(String::from_utf8_lossy(bytes).as_bytes()) {
                Ok(parsed) => Ok(Body { duplicates: parsed.duplicates, ..Body::of(parsed.value) }),
                Err(_) if error.to_string().contains("recursion limit") => Err("exceeded max depth".into()),
                Err(error) => Err(error.to_string()),
            },
        },
    }
}

fn from_yaml(bytes: &[u8]) -> Result<Body, String> {
    let yaml::Document { value, repeated } = yaml::read(bytes)?;
    Ok(Body { repeated, ..Body::of(value) })
}

fn read(encoding: Encoding, bytes: &[u8]) -> Result<Body, String> {
    match encoding {
        Encoding::Json => json(bytes).map_err(|why| format!("couldn't get version/kind; json parse error: {why}")),
        Encoding::Yaml => from_yaml(bytes),
        Encoding::Protobuf => Ok(Body::of(protobuf::decode(bytes)?)),
    }
}

/// The start of a body, for a message.
fn summary(bytes: &[u8]) -> String {
    const LIMIT: usize = 30;
    let (start, more) = if bytes.len() > LIMIT { (&bytes[..LIMIT], " ...") } else { (bytes, "") };
    match bytes.first() {
        None => "<empty>".into(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(start)),
        Some(_) => format!("{}{more}", start.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}

/// What an object in a body says it is.
struct Named<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

impl<'a> Named<'a> {
    /// Reads `apiVersion` and `kind`.
    fn of(value: &'a Value) -> Result<Named<'a>, String> {
        let target = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
                      \"json:\\\"kind,omitempty\\\"\" }";
        if !matches!(value, Value::Map(_) | Value::Null) {
            let given = go_type(value);
            return Err(format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {given} into Go value of type {target}"
            ));
        }
        let text = |key: &str| match value.get(key) {
            None | Some(Value::Null) => Ok(""),
            Some(Value::Str(text)) => Ok(text.as_str()),
            Some(other) => Err(format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go struct field .{key} of type string",
                go_type(other)
            )),
        };
        let (api_version, kind) = (text("apiVersion")?, text("kind")?);
        let (group, version) = match api_version.matches('/').count() {
            0 => ("", api_version),
            1 if api_version == "/" => ("", ""),
            1 => api_version.split_once('/').unwrap_or(("", api_version)),
            _ => return Err(format!("unexpected GroupVersion string: {api_version}")),
        };
        Ok(Named { group, version, kind })
    }

    fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.into() } else { format!("{}/{}", self.group, self.version) }
    }
}

/// A JSON value's type in the words of Go's decoder.
pub fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::Float(_) => "number",
        Value::Str(_) => "string",
        Value::List(_) => "array",
        Value::Map(_) => "object",
    }
}

/// Reads the object of a create or update and checks that it is what the path expects.
pub fn object(
    catalog: &Catalog,
    kind: &Kind,
    subresource: Option<&Subresource>,
    encoding: Encoding,
    bytes: &[u8],
) -> Result<Body, Status> {
    let (group, version, name) = match subresource {
        Some(sub) => (sub.group.as_str(), sub.version.as_str(), sub.kind.as_str()),
        None => (kind.group.as_str(), kind.version.as_str(), kind.kind.as_str()),
    };
    let unrecognized = |why: String| {
        let summary = summary(bytes);
        Status::bad_request(format!("the object provided is unrecognized (must be of type {name}): {why} ({summary})"))
    };
    let mut body = read(encoding, bytes).map_err(unrecognized)?;
    let named = Named::of(&body.value).map_err(unrecognized)?;
    let custom = kind.custom().is_some() && group == kind.group;
    if custom && named.kind.is_empty() {
        let text = String::from_utf8_lossy(bytes);
        return Err(unrecognized(format!("Object 'Kind' is missing in '{text}'")));
    }
    if custom {
        if (named.group, named.version) != (group, version) {
            return Err(version_mismatch(&named.api_version(), &kind.api_version()));
        }
        return Ok(body);
    }
    built_in(catalog, named, (group, version, name))?;
    if body.value.is_null() {
        body.value = Value::object();
    }
    Ok(body)
}

/// Versions of built-in groups that Go's scheme still knows and the server no longer serves: their objects convert, and
/// are then refused for their version.
const UNSERVED: [(&str, &str); 12] = [
    ("apps", "v1beta1"),
    ("apps", "v1beta2"),
    ("extensions", "v1beta1"),
    ("batch", "v1beta1"),
    ("policy", "v1beta1"),
    ("networking.k8s.io", "v1beta1"),
    ("discovery.k8s.io", "v1beta1"),
    ("events.k8s.io", "v1beta1"),
    ("coordination.k8s.io", "v1beta1"),
    ("rbac.authorization.k8s.io", "v1beta1"),
    ("rbac.authorization.k8s.io", "v1alpha1"),
    ("apiextensions.k8s.io", "v1beta1"),
];

fn built_in(catalog: &Catalog, named: Named<'_>, expected: (&str, &str, &str)) -> Result<(), Status> {
    let (group, version, name) = expected;
    let given = Named {
        kind: if named.kind.is_empty() { name } else { named.kind },
        group: if named.group.is_empty() && named.version.is_empty() { group } else { named.group },
        version: if named.version.is_empty() && (named.group.is_empty() || named.group == group) {
            version
        } else {
            named.version
        },
    };
    if (given.group, given.version, given.kind) == expected {
        return Ok(());
    }
    let cannot = |why: String| {
        Status::bad_request(format!(
            "{} in version {:?} cannot be handled as a {name}: {why}",
            given.kind, given.version
        ))
    };
    // Events live in two groups, and older policies let an Eviction through in its beta version.
    let related = given.group == group
        || given.group == "extensions"
        || (name == "Event" && matches!(given.group, "" | "events.k8s.io"));
    if (name, given.kind, given.group, given.version) == ("Eviction", "Eviction", "policy", "v1beta1") {
        return Ok(());
    }
    let served = catalog.version(given.group, given.version).is_some_and(|served| {
        served.kinds.iter().any(|kind| {
            kind.custom().is_none()
                && (kind.kind == given.kind
                    || kind.list_kind == given.kind
                    || kind.subresources.iter().any(|sub| sub.kind == given.kind))
        })
    });
    let unserved = given.kind == name && related && UNSERVED.contains(&(given.group, given.version));
    if !served && !unserved {
        let known = format!("no kind {:?} is registered for version {:?}", given.kind, given.api_version());
        return Err(cannot(format!("{known} in scheme \"pkg/runtime/scheme.go:111\"")));
    }
    if related && given.kind == name {
        let expected = Named { group, version, kind: name }.api_version();
        return Err(version_mismatch(&given.api_version(), &expected));
    }
    let package = match group.split('.').next().unwrap_or_default() {
        "" | "events" => "core",
        first => first,
    };
    Err(cannot(format!("converting ({}.{}) to ({package}.{name}): unknown conversion", given.version, given.kind)))
}

fn version_mismatch(given: &str, expected: &str) -> Status {
    Status::bad_request(format!(
        "the API version in the data ({given}) does not match the expected API version ({expected})"
    ))
}

/// Reads a patch. The refusals come second to the object's absence, so the caller looks for the object first.
pub fn patch(kind: PatchType, bytes: &[u8]) -> Result<Body, Status> {
    let prefix = match kind {
        PatchType::Json | PatchType::Merge => "error decoding patch: ",
        PatchType::Strategic => "",
        PatchType::Apply => return apply(bytes),
    };
    let refuse = |why: String| Status::bad_request(format!("{prefix}{why}"));
    let body = json(bytes).map_err(refuse)?;
    let cannot = |value: &Value, target: &str| {
        refuse(format!("json: cannot unmarshal {} into Go value of type {target}", go_type(value)))
    };
    match (kind, &body.value) {
        (PatchType::Json, Value::List(operations)) => {
            if operations.len() > 10_000 {
                let message = format!(
                    "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got {}",
                    operations.len()
                );
                return Err(Status::new(413, Reason::RequestEntityTooLarge, message));
            }
            match operations.iter().find(|operation| !matches!(operation, Value::Map(_) | Value::Null)) {
                Some(wrong) => Err(cannot(wrong, "handlers.jsonPatchOp")),
                None => Ok(body),
            }
        }
        (PatchType::Json, Value::Null) => Ok(Body { value: Value::list([]), ..body }),
        (PatchType::Json, other) => Err(cannot(other, "[]handlers.jsonPatchOp")),
        (PatchType::Merge, Value::Null) => Err(Status::bad_request("Invalid JSON Patch")),
        (_, Value::Null) => Ok(Body { value: Value::object(), ..body }),
        (_, Value::Map(_)) => Ok(body),
        (_, other) => Err(cannot(other, "map[string]interface {}")),
    }
}

fn apply(bytes: &[u8]) -> Result<Body, Status> {
    let refuse = |why: String| Status::bad_request(format!("error decoding YAML: {why}"));
    let body = from_yaml(bytes).map_err(|why| refuse(format!("error converting YAML to JSON: {why}")))?;
    match &body.value {
        Value::Map(_) => Ok(body),
        Value::Null => Ok(Body { value: Value::object(), ..body }),
        other => {
            let given = go_type(other);
            let target = "map[string]interface {}";
            Err(refuse(format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {given} into Go value of type {target}"
            )))
        }
    }
}

/// Reads `DeleteOptions`.
pub fn delete_options(encoding: Encoding, bytes: &[u8]) -> Result<Value, Status> {
    let body = read(encoding, bytes).map_err(Status::bad_request)?.value;
    let named = Named::of(&body).map_err(Status::bad_request)?;
    if !matches!(named.kind, "" | "DeleteOptions") {
        let known = format!("no kind {:?} is registered for version {:?}", named.kind, named.api_version());
        return Err(Status::bad_request(format!("{known} in scheme \"pkg/runtime/scheme.go:111\"")));
    }
    let mut typed = Value::object();
    for (field, go, fits) in DELETE_FIELDS {
        match body.get(field) {
            None | Some(Value::Null) => {}
            Some(value) if fits(value) => typed.set_at(&[field], value),
            Some(value) => {
                let given = go_type(value);
                let why =
                    format!("json: cannot unmarshal {given} into Go struct field DeleteOptions.{field} of type {go}");
                return Err(Status::bad_request(why));
            }
        }
    }
    Ok(typed)
}

type Fits = fn(&Value) -> bool;

const DELETE_FIELDS: [(&str, &str, Fits); 5] = [
    ("gracePeriodSeconds", "int64", |value| matches!(value, Value::Int(_))),
    ("preconditions", "v1.Preconditions", |value| {
        value.as_map().is_some_and(|map| map.values().all(|field| matches!(field, Value::Str(_) | Value::Null)))
    }),
    ("orphanDependents", "bool", |value| matches!(value, Value::Bool(_))),
    ("propagationPolicy", "v1.DeletionPropagation", |value| matches!(value, Value::Str(_))),
    ("dryRun", "[]string", |value| {
        value.as_list().is_some_and(|items| items.iter().all(|item| matches!(item, Value::Str(_))))
    }),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{discovery::samples, value};

    fn message<T>(outcome: Result<T, Status>) -> String {
        outcome.map_or_else(|status| format!("{} {}", status.code, status.message), |_| "fine".into())
    }

    fn post(group: &str, version: &str, plural: &str, sub: &str, body: &str) -> String {
        let catalog = samples::catalog();
        let kind = catalog.resource(group, version, plural).unwrap();
        message(object(&catalog, kind, kind.subresource(sub), Encoding::Json, body.as_bytes()))
    }

    #[test]
    fn an_object_must_be_of_the_paths_kind() {
        let unknown = "in scheme \"pkg/runtime/scheme.go:111\"";
        let parse = "400 the object provided is unrecognized (must be of type ConfigMap)";
        let version = "couldn't get version/kind; json parse error";
        let target = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
                      \"json:\\\"kind,omitempty\\\"\" }";
        let rows = [
            ("{}", "fine".into()),
            ("null", "fine".into()),
            (r#"{"kind":"ConfigMap"}"#, "fine".into()),
            (r#"{"kind":"ConfigMap","apiVersion":"v1"}"#, "fine".into()),
            ("{", format!("{parse}: {version}: unexpected end of JSON input ({{)")),
            ("", format!("{parse}: {version}: unexpected end of JSON input (<empty>)")),
            (
                "[1]",
                format!("{parse}: {version}: json: cannot unmarshal array into Go value of type {target} (5b315d)"),
            ),
            (r#"{"kind":5}"#, {
                format!(
                    "{parse}: {version}: json: cannot unmarshal number into Go struct field .kind of type string ({{\"kind\":5}})"
                )
            }),
            (r#"{"kind":"ConfigMap","apiVersion":"a/b/c"}"#, {
                format!("{parse}: unexpected GroupVersion string: a/b/c ({{\"kind\":\"ConfigMap\",\"apiVersio ...)")
            }),
            (r#"{"kind":"Pod","apiVersion":"v1"}"#, {
                "400 Pod in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Pod) to (core.ConfigMap): unknown \
                 conversion".into()
            }),
            (r#"{"kind":"ConfigMap","apiVersion":"v2"}"#, {
                format!(
                    "400 ConfigMap in version \"v2\" cannot be handled as a ConfigMap: no kind \"ConfigMap\" is registered for version \"v2\" {unknown}"
                )
            }),
            (r#"{"kind":"Deployment","apiVersion":"apps/v1"}"#, {
                "400 Deployment in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Deployment) to \
                 (core.ConfigMap): unknown conversion"
                    .into()
            }),
        ];
        for (body, answer) in rows {
            assert_eq!(post("", "v1", "configmaps", "", body), answer, "{body}");
        }
        let mismatch =
            "400 the API version in the data (autoscaling/v1) does not match the expected API version (autoscaling/v2)";
        let body = r#"{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v1"}"#;
        assert_eq!(post("autoscaling", "v2", "horizontalpodautoscalers", "", body), mismatch);
        let body = r#"{"kind":"Eviction","apiVersion":"policy/v1beta1"}"#;
        assert_eq!(post("", "v1", "pods", "eviction", body), "fine");
    }

    #[test]
    fn a_custom_object_must_say_what_it_is() {
        let rows = [
            (r#"{"kind":"Gadget","apiVersion":"front.test/v1"}"#, "fine"),
            ("{}", {
                "400 the object provided is unrecognized (must be of type Gadget): Object 'Kind' is missing in '{}' ({})"
            }),
            (r#"{"kind":"Gadget"}"#, {
                "400 the API version in the data () does not match the expected API version (front.test/v1)"
            }),
            (r#"{"kind":"Pod","apiVersion":"v1"}"#, {
                "400 the API version in the data (v1) does not match the expected API version (front.test/v1)"
            }),
        ];
        for (body, answer) in rows {
            assert_eq!(post("front.test", "v1", "gadgets", "", body), answer, "{body}");
        }
    }

    #[test]
    fn patches_are_refused_by_shape() {
        use PatchType::{Apply, Json, Merge, Strategic};
        let map = "map[string]interface {}";
        let rows = [
            (Merge, "{}", "fine".into()),
            (Merge, "", "400 error decoding patch: unexpected end of JSON input".into()),
            (Merge, "null", "400 Invalid JSON Patch".into()),
            (
                Merge,
                "[]",
                format!("400 error decoding patch: json: cannot unmarshal array into Go value of type {map}"),
            ),
            (Json, "[]", "fine".into()),
            (Json, "null", "fine".into()),
            (Json, "5", {
                "400 error decoding patch: json: cannot unmarshal number into Go value of type []handlers.jsonPatchOp"
                    .into()
            }),
            (Json, "[1]", {
                "400 error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"
                    .into()
            }),
            (Strategic, "{", "400 unexpected end of JSON input".into()),
            (Strategic, "\"x\"", format!("400 json: cannot unmarshal string into Go value of type {map}")),
            (Strategic, "null", "fine".into()),
            (Apply, "", "fine".into()),
            (Apply, "5", {
                format!(
                    "400 error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal number into Go value of type {map}"
                )
            }),
        ];
        for (kind, body, answer) in rows {
            assert_eq!(message(patch(kind, body.as_bytes())), answer, "{kind:?} {body}");
        }
    }

    #[test]
    fn delete_options_are_decoded_as_go_decodes_them() {
        let read = |body: &str| delete_options(Encoding::Json, body.as_bytes());
        assert_eq!(
            read(r#"{"kind":"DeleteOptions","apiVersion":"apps/v1","foo":1,"gracePeriodSeconds":5,"dryRun":null}"#),
            Ok(value!({"gracePeriodSeconds": 5}))
        );
        let rows = [
            (r#"{"gracePeriodSeconds":"a"}"#, {
                "400 json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64"
            }),
            (r#"{"kind":"Foo","apiVersion":"v1"}"#, {
                "400 no kind \"Foo\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\""
            }),
            ("{", "400 couldn't get version/kind; json parse error: unexpected end of JSON input"),
        ];
        for (body, answer) in rows {
            assert_eq!(message(read(body)), answer, "{body}");
        }
    }

    #[test]
    fn content_types_name_the_encoding() {
        assert_eq!(Encoding::of("", false), Ok(Encoding::Json));
        assert_eq!(Encoding::of("application/json; charset=utf-8", true), Ok(Encoding::Json));
        assert_eq!(Encoding::of("application/yaml", true), Ok(Encoding::Yaml));
        assert_eq!(
            message(Encoding::of(protobuf::MEDIA_TYPE, true)),
            "415 the body of the request was in an unknown format - accepted media types include: application/json, \
             application/yaml, application/vnd.kubernetes.protobuf"
        );
        assert_eq!(patch_type("application/merge-patch+json; charset=utf-8", true), Ok(PatchType::Merge));
        assert_eq!(message(patch_type("application/json", false)), "415 415: Unsupported Media Type");
    }
}
