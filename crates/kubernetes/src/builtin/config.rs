//! ConfigMaps, Secrets and ServiceAccounts.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{field::Field, keep};
use crate::{
    names,
    value::{Map, Text, Value},
};

/// All values of a ConfigMap or Secret together may not be larger than this.
const SIZE_LIMIT: usize = 1 << 20;

/// `stringData` is written, never stored: it becomes `data`.
pub(super) fn prepare_secret(secret: &mut Value, old: Option<&Value>) {
    if let Some(Value::Map(given)) = secret.remove_at(&["stringData"]) {
        for (key, text) in given.iter() {
            let encoded = STANDARD.encode(text.as_str().unwrap_or_default());
            secret.set_at(&["data", key], encoded);
        }
    }
    if let Some(old) = old.filter(|_| secret.str_at(&["type"]).unwrap_or_default().is_empty()) {
        keep(secret, old, &["type"]);
    }
}

/// A ServiceAccount names its secrets by name only.
pub(super) fn prepare_service_account(account: &mut Value) {
    let secrets = account.list_at(&["secrets"]);
    if secrets.iter().all(|secret| secret.as_map().is_some_and(|map| map.len() == 1 && map.contains_key("name"))) {
        return;
    }
    let names = secrets.iter().map(|secret| match secret.get("name") {
        Some(name) => Value::Map(Map::from_iter([(Text::from("name"), name.clone())])),
        None => Value::object(),
    });
    let names = Value::list(names.collect::<Vec<_>>());
    account.set_at(&["secrets"], names);
}

/// A ConfigMap, new or changed.
pub(super) fn validate_config_map(map: &Field, old: Option<&Value>) {
    if let Some(old) = old {
        immutable(map, old, &["data", "binaryData"]);
    }
    let (data, binary) = (map.child("data"), map.child("binaryData"));
    let mut size = 0;
    for (key, value) in data.entries() {
        names::config_map_key(key).into_iter().for_each(|message| value.refuse(key, message));
        if binary.value.get(key).is_some() {
            value.refuse(key, "duplicate of key present in binaryData");
        }
        size += value.text().len();
    }
    for (key, value) in binary.entries() {
        names::config_map_key(key).into_iter().for_each(|message| value.refuse(key, message));
        size += decoded_length(value.text());
    }
    if size > SIZE_LIMIT {
        map.too_long(SIZE_LIMIT);
    }
}

fn immutable(at: &Field, old: &Value, fields: &[&str]) {
    if old.get("immutable") != Some(&Value::Bool(true)) {
        return;
    }
    let why = "field is immutable when `immutable` is set";
    if !at.child("immutable").is_true() {
        at.child("immutable").forbidden(why);
    }
    for field in fields.iter().map(|name| (at.child(name), old.get(name))) {
        let (field, old) = (field.0, field.1.unwrap_or(&Value::Null));
        if !field.value.is(old) && field.value != old {
            field.forbidden(why);
        }
    }
}

fn decoded_length(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

/// A Secret, new or changed.
pub(super) fn validate_secret(secret: &Field, old: Option<&Value>) {
    if let Some(old) = old {
        secret.child("type").immutable(old.get("type"));
        immutable(secret, old, &["data"]);
    }
    let data = secret.child("data");
    let mut size = 0;
    for (key, value) in data.entries() {
        names::config_map_key(key).into_iter().for_each(|message| value.refuse(key, message));
        size += decoded_length(value.text());
    }
    if size > SIZE_LIMIT {
        data.too_long(SIZE_LIMIT);
    }
    let needs = |key: &str| {
        if data.value.get(key).is_none() {
            data.key(key).required("");
        }
    };
    match secret.child("type").text() {
        "kubernetes.io/service-account-token" => {
            let metadata = secret.child("metadata");
            let annotations = metadata.child("annotations");
            let name = annotations.key("kubernetes.io/service-account.name");
            if name.text().is_empty() {
                name.required("");
            }
        }
        "kubernetes.io/dockercfg" => docker_config(&data, ".dockercfg"),
        "kubernetes.io/dockerconfigjson" => docker_config(&data, ".dockerconfigjson"),
        "kubernetes.io/basic-auth" if data.key("username").is_set() || data.key("password").is_set() => {}
        "kubernetes.io/basic-auth" => ["username", "password"].into_iter().for_each(needs),
        "kubernetes.io/ssh-auth" if data.key("ssh-privatekey").text().is_empty() => {
            data.key("ssh-privatekey").required("");
        }
        "kubernetes.io/tls" => ["tls.crt", "tls.key"].into_iter().for_each(needs),
        _ => {}
    }
}

fn docker_config(data: &Field, key: &str) {
    let at = data.key(key);
    if !at.is_set() {
        return at.required("");
    }
    let bytes = STANDARD.decode(at.text()).unwrap_or_default();
    if let Some(why) = not_an_object(&bytes) {
        at.refuse("<secret contents redacted>", why);
    }
}

/// Where Go's scanner stops in a text that begins with this character and is no JSON.
fn misread(text: &[u8], first: u8) -> String {
    let literals = ["null", "true", "false"];
    let Some(literal) = literals.into_iter().find(|literal| literal.as_bytes()[0] == first) else {
        return format!("invalid character {:?} looking for beginning of value", char::from(first));
    };
    // At the end of the text the scanner reads a space.
    let found = text.iter().copied().chain(std::iter::repeat(b' '));
    match found.zip(literal.bytes()).find(|(found, expected)| found != expected) {
        Some((found, expected)) => {
            let (found, expected) = (char::from(found), char::from(expected));
            format!("invalid character {found:?} in literal {literal} (expecting {expected:?})")
        }
        None => {
            let next = text.get(literal.len()).copied().map_or(' ', char::from);
            format!("invalid character {next:?} after top-level value")
        }
    }
}

/// What Go says of a text that is no JSON object.
fn not_an_object(bytes: &[u8]) -> Option<String> {
    let first = bytes.iter().find(|b| !b.is_ascii_whitespace());
    match (first, serde_json::from_slice::<serde_json::Value>(bytes)) {
        (_, Ok(serde_json::Value::Object(_) | serde_json::Value::Null)) => None,
        (_, Ok(other)) => {
            let kind = match other {
                serde_json::Value::Array(_) => "array",
                serde_json::Value::String(_) => "string",
                serde_json::Value::Bool(_) => "bool",
                _ => "number",
            };
            Some(format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"))
        }
        (None, Err(_)) => Some("unexpected end of JSON input".into()),
        (Some(b'{' | b'[' | b'"'), Err(error)) if error.is_eof() => Some("unexpected end of JSON input".into()),
        (Some(first), Err(_)) => Some(misread(bytes.trim_ascii_start(), *first)),
    }
}
