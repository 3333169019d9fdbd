//! What is wrong with a CRD, in the words and order of the real server.

use super::{
    fields, openapi,
    printed::{self, Hoisted},
    props::Props,
};
use crate::{
    names,
    status::FieldError,
    value::{Text, Value},
};

/// What is wrong with a CRD that is created, or updated from `old`. The rules on metadata that hold for all objects are
/// the store's.
pub fn validate(crd: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let empty = Value::object();
    let spec = Props(crd.get("spec").unwrap_or(&empty));
    let mut problems = Vec::new();
    if old.is_none() {
        let wanted = format!("{}.{}", names_of(spec).text("plural"), spec.text("group"));
        let name = crd.str_at(&["metadata", "name"]).unwrap_or_default();
        if name != wanted {
            problems.push(FieldError::invalid("metadata.name", name, "must be spec.names.plural+\".\"+spec.group"));
        }
    }
    validate_spec(spec, &mut problems);
    if let Some(old) = old {
        immutable(crd, old, &mut problems);
    }
    stored_versions(crd, spec, &mut problems);
    approval(crd, old, &mut problems);
    let kept = old.is_some_and(|old| old.at(&["spec", "preserveUnknownFields"]) == Some(&Value::Bool(true)));
    if spec.is("preserveUnknownFields") && !kept {
        let words = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema \
                     instead";
        problems.push(FieldError::invalid("spec.preserveUnknownFields", true, words));
    }
    problems
}

/// The unknown formats a CRD names and its old self did not: upstream warns of them.
pub fn warnings(crd: &Value, old: Option<&Value>) -> Vec<String> {
    let before = old.map(unknown_formats).unwrap_or_default();
    let new = unknown_formats(crd).into_iter().filter(|format| !before.contains(format));
    new.map(|format| format!("unrecognized format {}", Value::from(format))).collect()
}

fn unknown_formats(crd: &Value) -> Vec<Text> {
    let found = std::cell::RefCell::new(Vec::new());
    for version in crd.list_at(&["spec", "versions"]) {
        let Some(schema) = version.at(&["schema", "openAPIV3Schema"]) else { continue };
        Props(schema).any(&|schema| {
            if let Some(format) = schema.get("format").and_then(Value::as_text).filter(|_| schema.kind() == "string")
                && super::super::formats::Format::named(format).is_none()
                && !format.is_empty()
            {
                found.borrow_mut().push(format.clone());
            }
            false
        });
        // The same schema in several versions is one to upstream.
        if hoisted(Props(crd.get("spec").unwrap_or(&Value::Null))).schema {
            break;
        }
    }
    found.into_inner()
}

fn names_of(spec: Props<'_>) -> Props<'_> {
    Props(spec.get("names").unwrap_or(&Value::Null))
}

/// Which parts are the same in all versions. Upstream moves those to the top of the spec, and names them there.
fn hoisted(spec: Props<'_>) -> Hoisted {
    let versions = spec.list("versions");
    let same = |key: &str| {
        let part = |version: &Value| Props(version).get(key).cloned();
        versions.first().is_some_and(|first| versions.iter().all(|version| part(version) == part(first)))
    };
    Hoisted {
        schema: same("schema"),
        subresources: same("subresources"),
        columns: same("additionalPrinterColumns"),
        selectable: same("selectableFields"),
    }
}

fn validate_spec(spec: Props<'_>, problems: &mut Vec<FieldError>) {
    let group = spec.text("group");
    match group {
        "" => problems.push(FieldError::required("spec.group", "")),
        group => {
            let found = names::dns_subdomain(group);
            if !found.is_empty() {
                problems.push(FieldError::invalid("spec.group", group, found.join(",")));
            } else if !group.contains('.') {
                problems.push(FieldError::invalid("spec.group", group, "should be a domain with at least one dot"));
            }
        }
    }
    one_of(spec.text("scope"), "spec.scope", &["Cluster", "Namespaced"], problems);
    let versions = spec.list("versions");
    let hoisted = hoisted(spec);
    for (i, version) in versions.iter().enumerate() {
        if version.at(&["schema", "openAPIV3Schema"]).is_none_or(Value::is_null) {
            problems.push(FieldError::required(format!("spec.versions[{i}].schema.openAPIV3Schema"), ""));
        }
    }
    let has_default = |schema: Props<'_>| schema.get("default").is_some();
    let schemas = || versions.iter().filter_map(|version| version.at(&["schema", "openAPIV3Schema"]));
    if spec.is("preserveUnknownFields") && schemas().any(|schema| Props(schema).any(&has_default)) {
        let words = "must be false in order to use defaults in the schema";
        problems.push(FieldError::invalid("spec.preserveUnknownFields", true, words));
    }
    for (i, version) in versions.iter().enumerate() {
        validate_version(Props(version), &format!("spec.versions[{i}]"), hoisted, problems);
    }
    version_names(spec, hoisted, problems);
    for key in ["plural", "singular", "kind", "listKind"] {
        if names_of(spec).text(key).is_empty() {
            problems.push(FieldError::required(format!("spec.names.{key}"), ""));
        }
    }
    validate_names(names_of(spec), problems);
    shared(spec, hoisted, problems);
    conversion(spec, problems);
}

/// The parts that are the same in all versions, at the place where upstream puts them.
fn shared(spec: Props<'_>, hoisted: Hoisted, problems: &mut Vec<FieldError>) {
    let Some(first) = spec.list("versions").first().map(Props) else { return };
    if let Some(schema) = first.get("schema").filter(|_| hoisted.schema) {
        let status = spec.list("versions").iter().any(|version| has_status(Props(version)));
        openapi::validate(schema, "spec.validation", status, problems);
    }
    if hoisted.subresources {
        subresources(first, "spec.subresources", problems);
    }
    if hoisted.columns {
        columns(first, "spec.additionalPrinterColumns", problems);
    }
    if hoisted.selectable && !first.list("selectableFields").is_empty() {
        match first.get("schema").filter(|_| hoisted.schema) {
            None => {
                let words = "may only be set when validations.schema is included";
                problems.push(FieldError::invalid("spec.selectableFields", "", words));
            }
            Some(schema) => selectable(first, Props(schema), "spec.selectableFields", problems),
        }
    }
}

fn has_status(version: Props<'_>) -> bool {
    version.get("subresources").is_some_and(|all| Props(all).get("status").is_some())
}

fn validate_version(version: Props<'_>, path: &str, hoisted: Hoisted, problems: &mut Vec<FieldError>) {
    let name = version.text("name");
    let found = names::dns1035_label(name);
    if !found.is_empty() {
        problems.push(FieldError::invalid(format!("{path}.name"), name, found.join(",")));
    }
    if let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) {
        for words in deprecation(warning, version.is("deprecated")) {
            problems.push(FieldError::invalid(format!("{path}.deprecationWarning"), warning, words));
        }
    }
    if let Some(schema) = version.get("schema").filter(|_| !hoisted.schema) {
        openapi::validate(schema, &format!("{path}.schema"), has_status(version), problems);
    }
    if !hoisted.subresources {
        subresources(version, &format!("{path}.subresources"), problems);
    }
    if !hoisted.columns {
        columns(version, &format!("{path}.additionalPrinterColumns"), problems);
    }
    if !hoisted.selectable && !version.list("selectableFields").is_empty() {
        let at = format!("{path}.selectableFields");
        match version.get("schema").filter(|schema| !hoisted.schema && Props(schema).get("openAPIV3Schema").is_some()) {
            None => {
                let words = "may only be set when `version.schema.openAPIV3Schema` is not included";
                problems.push(FieldError::invalid(at, "", words));
            }
            Some(schema) => selectable(version, Props(schema), &at, problems),
        }
    }
}

fn deprecation(warning: &str, deprecated: bool) -> Vec<String> {
    if !deprecated {
        return vec!["can only be set for deprecated versions".to_owned()];
    }
    let mut found = Vec::new();
    if warning.len() > 256 {
        found.push("must be <= 256 characters long".to_owned());
    }
    if warning.is_empty() {
        found.push("must not be an empty string".to_owned());
    }
    if let Some((i, _)) = warning.char_indices().find(|(_, c)| c.is_control()) {
        found.push(format!("must only contain printable UTF-8 characters; non-printable character found at index {i}"));
    }
    found
}

fn version_names(spec: Props<'_>, hoisted: Hoisted, problems: &mut Vec<FieldError>) {
    let versions = spec.list("versions");
    let mut refuse = |words: &str| {
        let shown = printed::versions(spec.get("versions"), hoisted);
        problems.push(FieldError::invalid("spec.versions", Value::Null, words).printed(shown));
    };
    let name = |version: &Value| version.str_at(&["name"]).unwrap_or_default().to_owned();
    if (1..versions.len()).any(|i| versions[..i].iter().any(|version| name(version) == name(&versions[i]))) {
        refuse("must contain unique version names");
    }
    if versions.iter().filter(|version| Props(version).is("storage")).count() != 1 {
        refuse("must have exactly one version marked as storage version");
    }
    if let Some(first) = versions.first().map(name).filter(|name| !name.is_empty()) {
        let found = names::dns1035_label(&first);
        if !found.is_empty() {
            problems.push(FieldError::invalid("spec.version", first, found.join(",")));
        }
    }
}

fn validate_names(all: Props<'_>, problems: &mut Vec<FieldError>) {
    let mut check = |field: String, name: &str, mixed: bool| {
        let found = match mixed {
            true => names::dns1035_label(&name.to_lowercase()),
            false => names::dns1035_label(name),
        };
        if !found.is_empty() {
            let prefix = if mixed { "may have mixed case, but should otherwise match: " } else { "" };
            problems.push(FieldError::invalid(field, name, format!("{prefix}{}", found.join(","))));
        }
    };
    for (key, mixed) in [("plural", false), ("singular", false), ("kind", true), ("listKind", true)] {
        if !all.text(key).is_empty() {
            check(format!("spec.names.{key}"), all.text(key), mixed);
        }
    }
    for (i, name) in all.texts("shortNames").into_iter().enumerate() {
        check(format!("spec.names.shortNames[{i}]"), name, false);
    }
    let same = !all.text("kind").is_empty() && all.text("kind") == all.text("listKind");
    for (i, name) in all.texts("categories").into_iter().enumerate() {
        check(format!("spec.names.categories[{i}]"), name, false);
    }
    if same {
        let words = "kind and listKind may not be the same";
        problems.push(FieldError::invalid("spec.names.listKind", all.text("listKind"), words));
    }
}

fn subresources(version: Props<'_>, path: &str, problems: &mut Vec<FieldError>) {
    let Some(scale) = version.get("subresources").and_then(|all| Props(all).get("scale")).map(Props) else { return };
    let mut check = |key: &str, required: bool, below: &[&str], words: &str| {
        let (text, at) = (scale.text(key), format!("{path}.scale.{key}"));
        if text.is_empty() {
            if required {
                problems.push(FieldError::required(at, ""));
            }
        } else if let Err(words) = simple_path(text) {
            problems.push(FieldError::invalid(at, text, words));
        } else if !below.iter().any(|prefix| text.starts_with(prefix)) {
            problems.push(FieldError::invalid(at, text, words));
        }
    };
    check("specReplicasPath", true, &[".spec."], "should be a json path under .spec");
    check("statusReplicasPath", true, &[".status."], "should be a json path under .status");
    let words = "should be a json path under either .spec or .status";
    check("labelSelectorPath", false, &[".spec.", ".status."], words);
}

fn simple_path(text: &str) -> Result<(), &'static str> {
    if text.starts_with('.') { Ok(()) } else { Err("must be a simple json path starting with .") }
}

fn columns(version: Props<'_>, path: &str, problems: &mut Vec<FieldError>) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    for (i, column) in version.list("additionalPrinterColumns").iter().enumerate() {
        let (column, at) = (Props(column), |key: &str| format!("{path}[{i}].{key}"));
        if column.text("name").is_empty() {
            problems.push(FieldError::required(at("name"), ""));
        }
        let types = format!("must be one of {}", TYPES.join(","));
        match column.text("type") {
            "" => problems.push(FieldError::required(at("type"), types)),
            kind if !TYPES.contains(&kind) => problems.push(FieldError::invalid(at("type"), kind, types)),
            _ => {}
        }
        let format = column.text("format");
        if !format.is_empty() && !FORMATS.contains(&format) {
            let words = format!("must be one of {}", FORMATS.join(","));
            problems.push(FieldError::invalid(at("format"), format, words));
        }
        match column.text("jsonPath") {
            "" => problems.push(FieldError::required(at("JSONPath"), "")),
            text => {
                if let Err(words) = simple_path(text) {
                    problems.push(FieldError::invalid(at("JSONPath"), text, words));
                }
            }
        }
    }
}

fn selectable(version: Props<'_>, holder: Props<'_>, path: &str, problems: &mut Vec<FieldError>) {
    const MOST: usize = 8;
    let Some(schema) = holder.get("openAPIV3Schema").map(Props) else { return };
    let mut seen: Vec<String> = Vec::new();
    for (i, field) in version.list("selectableFields").iter().enumerate() {
        let (text, at) = (Props(field).text("jsonPath"), format!("{path}[{i}].jsonPath"));
        if text.is_empty() {
            problems.push(FieldError::required(at, ""));
            continue;
        }
        let (written, found) = match fields::find(text, schema, false) {
            Err(words) => {
                problems.push(FieldError::invalid(at, text, format!("is an invalid path: {words}")));
                continue;
            }
            Ok(found) => found,
        };
        if written.split(['.', '[']).next() == Some("metadata") {
            problems.push(FieldError::invalid(at.clone(), text, "must not point to fields in metadata"));
        }
        if !found.is_some_and(|schema| matches!(schema.kind(), "string" | "boolean" | "integer")) {
            let words = "must point to a field of type string, boolean or integer. Enum string fields and strings with \
                         formats are allowed.";
            problems.push(FieldError::invalid(at.clone(), text, words));
        }
        match seen.contains(&written) {
            true => problems.push(FieldError::duplicate(at, text)),
            false => seen.push(written),
        }
    }
    if seen.len() > MOST {
        problems.push(FieldError::too_many(path, seen.len(), MOST));
    }
}

fn one_of(value: &str, field: &str, allowed: &[&str], problems: &mut Vec<FieldError>) {
    match value {
        "" => problems.push(FieldError::required(field, "")),
        value if !allowed.contains(&value) => problems.push(FieldError::not_supported(field, value, allowed)),
        _ => {}
    }
}

fn conversion(spec: Props<'_>, problems: &mut Vec<FieldError>) {
    let Some(conversion) = spec.get("conversion").map(Props) else { return };
    let strategy = conversion.text("strategy");
    if strategy != "None" && spec.is("preserveUnknownFields") {
        let words = "must be None if spec.preserveUnknownFields is true";
        problems.push(FieldError::invalid("spec.conversion.strategy", strategy, words));
    }
    one_of(strategy, "spec.conversion.strategy", &["None", "Webhook"], problems);
    let webhook = conversion.get("webhook").map(Props);
    let config = webhook.and_then(|webhook| webhook.get("clientConfig")).map(Props);
    let versions = webhook.map(|webhook| webhook.texts("conversionReviewVersions")).unwrap_or_default();
    const CONFIG: &str = "spec.conversion.webhookClientConfig";
    const VERSIONS: &str = "spec.conversion.conversionReviewVersions";
    if strategy != "Webhook" {
        let words = "should not be set when strategy is not set to Webhook";
        if config.is_some() {
            problems.push(FieldError::forbidden(CONFIG, words));
        }
        if !versions.is_empty() {
            problems.push(FieldError::forbidden(VERSIONS, words));
        }
        return;
    }
    match config {
        None => problems.push(FieldError::required(CONFIG, "required when strategy is set to Webhook")),
        Some(config) => match (config.get("url"), config.get("service").map(Props)) {
            (Some(_), Some(_)) | (None, None) => {
                problems.push(FieldError::required(CONFIG, "exactly one of url or service is required"));
            }
            (Some(_), None) => webhook_url(config.text("url"), problems),
            (None, Some(service)) => {
                for key in ["name", "namespace"] {
                    if service.text(key).is_empty() {
                        problems.push(FieldError::required(format!("{CONFIG}.service.{key}"), ""));
                    }
                }
            }
        },
    }
    if versions.is_empty() {
        problems.push(FieldError::required(VERSIONS, ""));
        return;
    }
    for (i, version) in versions.iter().enumerate() {
        if versions[..i].contains(version) {
            problems.push(FieldError::invalid(format!("{VERSIONS}[{i}]"), *version, "duplicate version"));
            continue;
        }
        for words in names::dns1035_label(version) {
            problems.push(FieldError::invalid(format!("{VERSIONS}[{i}]"), *version, words));
        }
    }
    if !versions.iter().any(|version| ["v1", "v1beta1"].contains(version)) {
        let shown = Value::list(versions.iter().map(|version| Value::from(*version)));
        problems.push(FieldError::invalid(VERSIONS, shown, "must include at least one of v1, v1beta1"));
    }
}

fn webhook_url(url: &str, problems: &mut Vec<FieldError>) {
    const AT: &str = "spec.conversion.webhookClientConfig.url";
    const FORM: &str = "; desired format: https://host[/path]";
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    if scheme != "https" {
        let words = format!("'https' is the only allowed URL scheme{FORM}");
        problems.push(FieldError::invalid(AT, scheme, words));
    }
    if host.is_empty() {
        problems.push(FieldError::invalid(AT, "", format!("host must be specified{FORM}")));
    }
    if let Some(user) = user {
        problems.push(FieldError::invalid(AT, user, "user information is not permitted in the URL"));
    }
    if !fragment.is_empty() {
        problems.push(FieldError::invalid(AT, fragment, "fragments are not permitted in the URL"));
    }
    if !query.is_empty() {
        problems.push(FieldError::invalid(AT, query, "query parameters are not permitted in the URL"));
    }
}

fn immutable(crd: &Value, old: &Value, problems: &mut Vec<FieldError>) {
    let mut same = |path: &[&str]| {
        let text = |crd: &Value| crd.str_at(path).unwrap_or_default().to_owned();
        if text(crd) != text(old) {
            problems.push(FieldError::invalid(path.join("."), text(crd), "field is immutable"));
        }
    };
    if super::is_established(old) {
        same(&["spec", "scope"]);
        same(&["spec", "names", "kind"]);
    }
    same(&["spec", "group"]);
    same(&["spec", "names", "plural"]);
}

fn stored_versions(crd: &Value, spec: Props<'_>, problems: &mut Vec<FieldError>) {
    const AT: &str = "status.storedVersions";
    let stored = crd.list_at(&["status", "storedVersions"]);
    if stored.is_empty() {
        problems.push(FieldError::invalid(AT, Value::Null, "must have at least one stored version"));
        return;
    }
    let versions: Vec<Props<'_>> = spec.list("versions").iter().map(Props).collect();
    for version in versions.iter().filter(|version| version.is("storage")) {
        if !stored.contains(&version.text("name").into()) {
            let words = format!("must have the storage version {}", version.text("name"));
            problems.push(FieldError::invalid(AT, Value::list(stored.iter().cloned()), words));
        }
    }
    for (i, name) in stored.iter().enumerate() {
        let name = name.as_str().unwrap_or_default();
        if !versions.iter().any(|version| version.text("name") == name) {
            let words = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions \
                 until a storage migration ensures no data remains persisted in {name} and removes {name} from \
                 status.storedVersions"
            );
            problems.push(FieldError::invalid(format!("{AT}[{i}]"), name, words));
        }
    }
}

/// Groups of the Kubernetes project need a sign that somebody there agreed.
fn approval(crd: &Value, old: Option<&Value>, problems: &mut Vec<FieldError>) {
    const KEY: &str = "api-approved.kubernetes.io";
    const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";
    let group = crd.str_at(&["spec", "group"]).unwrap_or_default();
    let is_within = |domain: &str| group == domain || group.ends_with(&format!(".{domain}"));
    if !is_within("k8s.io") && !is_within("kubernetes.io") {
        return;
    }
    let text = |crd: &Value| crd.str_at(&["metadata", "annotations", KEY]).unwrap_or_default().to_owned();
    let state = |text: &str| {
        let url = text
            .split_once("://")
            .is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.starts_with('/') && !rest.is_empty());
        match text {
            "" => "missing",
            text if text.starts_with("unapproved") => "bypassed",
            _ if url => "approved",
            _ => "invalid",
        }
    };
    let new = text(crd);
    if old.is_some_and(|old| state(&text(old)) == state(&new)) {
        return;
    }
    let field = format!("metadata.annotations[{KEY}]");
    match state(&new) {
        "missing" => {
            let words = format!("protected groups must have approval annotation \"{KEY}\", {SEE}");
            problems.push(FieldError::required(field, words));
        }
        "invalid" => {
            let words = format!(
                "protected groups must have approval annotation \"{KEY}\" with either a URL or a reason starting with \
                 \"unapproved\", {SEE}"
            );
            problems.push(FieldError::invalid(field, new, words));
        }
        _ => {}
    }
}
