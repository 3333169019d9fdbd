//! YAML bodies, read as the real server reads them: version 1.1, the first document only, refused in its library's words.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::{DuplicateKeyPolicy, Error, Spanned};

use crate::kubernetes::{
    status::go_quoted,
    value::{Value, parse},
};

/// A document that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// What it says; of a key given twice, the last.
    pub value: Value,
    /// A line for every key given twice: `line 6: key "k" already set in map`.
    pub repeated: Vec<String>,
}

/// Reads the first document. What comes after `---` is ignored.
pub fn read(bytes: &[u8]) -> Result<Document, String> {
    // JSON is YAML, and what kubectl and kube send under this name.
    if bytes.first() == Some(&b'{')
        && let Ok(parsed) = parse(bytes)
        && parsed.duplicates.is_empty()
    {
        return Ok(Document { value: parsed.value, repeated: Vec::new() });
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "yaml: invalid leading UTF-8 octet".to_owned())?;
    let (value, repeated) = match first::<Value>(text, DuplicateKeyPolicy::Error) {
        Ok(value) => (value, Vec::new()),
        Err(Error::DuplicateMappingKey { .. }) => {
            let value = first::<Value>(text, DuplicateKeyPolicy::LastWins).map_err(|error| words(&error, text))?;
            let keys = first::<Keys>(text, DuplicateKeyPolicy::LastWins).map_err(|error| words(&error, text))?;
            (value, keys.unwrap_or_default().0)
        }
        Err(error) => return Err(words(&error, text)),
    };
    Ok(Document { value: integral(value.unwrap_or_default()), repeated })
}

fn first<'de, T: Deserialize<'de>>(text: &'de str, duplicate_keys: DuplicateKeyPolicy) -> Result<Option<T>, Error> {
    let options = serde_saphyr::options! {
        legacy_octal_numbers: true,
        strict_booleans: false,
        with_snippet: false,
        duplicate_keys: duplicate_keys,
        budget: serde_saphyr::budget! { max_nodes: 1_000_000, max_events: 4_000_000 },
    };
    serde_saphyr::from_multiple_with_options(text, options).map(|documents: Vec<T>| documents.into_iter().next())
}

/// Turns integral floats into integers, as Go's YAML does on its way through JSON (`1e3`, `08`).
fn integral(value: Value) -> Value {
    match value {
        Value::Float(_) => value.as_int().map_or(value, Value::Int),
        Value::List(items) => Value::list(items.iter().cloned().map(integral)),
        Value::Map(map) => Value::Map(map.iter().map(|(key, value)| (key.clone(), integral(value.clone()))).collect()),
        other => other,
    }
}

/// What is wrong with a text, as Go's library says it, for the mistakes people make.
fn words(error: &Error, text: &str) -> String {
    let line = error.location().map_or(0, |at| at.line());
    let full = error.to_string();
    let said = full.lines().next().unwrap_or_default().split(" at line ").next().unwrap_or_default();
    // Go's scanner counts lines from zero and leaves out the first; its parser names the line before.
    let scanner = |what: &str| if line > 1 { format!("yaml: line {line}: {what}") } else { format!("yaml: {what}") };
    let parser = |what: &str| match line {
        0 | 1 => format!("yaml: {what}"),
        line => format!("yaml: line {}: {what}", line - 1),
    };
    if let Some((_, what)) = said.split_once("did not find expected ") {
        return parser(&format!("did not find expected {what}"));
    }
    match said {
        "unclosed bracket '{'" | "unclosed bracket '['" => {
            let (open, close) = if said.contains('{') { ('{', '}') } else { ('[', ']') };
            let empty = text.rsplit(open).next().is_some_and(|rest| rest.trim().is_empty());
            let what = if empty { "node content".to_owned() } else { format!("',' or '{close}'") };
            format!("yaml: line {line}: did not find expected {what}")
        }
        "illegal placement of ':' indicator" => parser("did not find expected ',' or ']'"),
        "misplaced bracket" => parser("did not find expected node content"),
        "unclosed quote" => scanner("found unexpected end of stream"),
        "alias references unknown anchor" => {
            let name = text.lines().nth((line as usize).saturating_sub(1)).and_then(|line| line.split('*').nth(1));
            let name: String =
                name.unwrap_or_default().chars().take_while(|c| c.is_alphanumeric() || "-_".contains(*c)).collect();
            format!("yaml: unknown anchor '{name}' referenced")
        }
        said if said.starts_with("unexpected character") || said.starts_with("tabs disallowed") => {
            scanner("found character that cannot start any token")
        }
        said => scanner(said),
    }
}

/// The keys given twice anywhere in a document.
#[derive(Default)]
struct Keys(Vec<String>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Keys, D::Error> {
        deserializer.deserialize_any(Collector)
    }
}

struct Collector;

impl<'de> Visitor<'de> for Collector {
    type Value = Keys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
        let (mut seen, mut all) = (std::collections::HashSet::new(), Keys::default());
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            let line = key.referenced.line();
            let below: Keys = map.next_value()?;
            if !seen.insert(key.value.clone()) {
                all.0.push(format!("line {line}: key {} already set in map", go_quoted(&key.value)));
            }
            all.0.extend(below.0);
        }
        Ok(all)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Keys, A::Error> {
        let mut all = Keys::default();
        while let Some(below) = seq.next_element::<Keys>()? {
            all.0.extend(below.0);
        }
        Ok(all)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Keys, E> {
        Ok(Keys::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Keys, E> {
        Ok(Keys::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Keys, E> {
        Ok(Keys::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Keys, E> {
        Ok(Keys::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Keys, E> {
        Ok(Keys::default())
    }

    fn visit_unit<E>(self) -> Result<Keys, E> {
        Ok(Keys::default())
    }

    fn visit_none<E>(self) -> Result<Keys, E> {
        Ok(Keys::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Keys, D::Error> {
        Keys::deserialize(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Keys, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Keys::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn yaml_is_read_as_kubernetes_reads_it() {
        let text = "a: yes\nmode: 0644\nn: 1e3\ns: 'yes'\nl: [1_000, ~]\n---\nb: 1\n";
        let document = read(text.as_bytes()).unwrap();
        assert_eq!(document.value, value!({"a": true, "mode": 420, "n": 1000, "s": "yes", "l": [1000, null]}));
        assert!(matches!(document.value.get("n"), Some(Value::Int(1000))));
        assert!(document.repeated.is_empty());
    }

    #[test]
    fn keys_given_twice_are_named_by_line_and_the_last_wins() {
        let document = read(b"data:\n  k: a\n  k: b\n  j: a\nl:\n- {x: 1, x: 2}\n").unwrap();
        assert_eq!(document.value, value!({"data": {"k": "b", "j": "a"}, "l": [{"x": 2}]}));
        assert_eq!(document.repeated, ["line 3: key \"k\" already set in map", "line 6: key \"x\" already set in map"]);
        let json = read(br#"{"data":{"k":"a","k":"b"}}"#).unwrap();
        assert_eq!(json.repeated, ["line 1: key \"k\" already set in map"]);
    }

    #[test]
    fn mistakes_are_refused_in_gos_words() {
        let rows = [
            ("{", "yaml: line 1: did not find expected node content"),
            ("a: [", "yaml: line 1: did not find expected node content"),
            ("a: [1", "yaml: line 1: did not find expected ',' or ']'"),
            ("a: {b: 1", "yaml: line 1: did not find expected ',' or '}'"),
            ("a: {b: 1\nc: 2\n", "yaml: line 1: did not find expected ',' or '}'"),
            ("a: [1\nb: 2\n", "yaml: line 1: did not find expected ',' or ']'"),
            ("a: b: c", "yaml: mapping values are not allowed in this context"),
            ("a: b\n c: d", "yaml: line 2: mapping values are not allowed in this context"),
            ("a:\n\t- b", "yaml: line 2: found character that cannot start any token"),
            ("- a\nb: c", "yaml: line 1: did not find expected '-' indicator"),
            ("a:\n  b: 1\n c: 2", "yaml: line 2: did not find expected key"),
            ("a: \"x", "yaml: found unexpected end of stream"),
            ("a: *nope", "yaml: unknown anchor 'nope' referenced"),
            ("}", "yaml: did not find expected node content"),
            ("a: @x", "yaml: found character that cannot start any token"),
            ("b: 1\nmetadata: {name: x\n", "yaml: line 2: did not find expected ',' or '}'"),
        ];
        for (text, answer) in rows {
            assert_eq!(read(text.as_bytes()).unwrap_err(), answer, "{text}");
        }
    }
}
