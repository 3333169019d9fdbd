//! YAML bodies, read as the real server reads them: version 1.1, the first document only, refused in its library's words.

use crate::{
    kubernetes::{
        status::go_quoted,
        value::{Value, parse},
    },
    manifest::{Mistake, MistakeKind, place::Places, yaml},
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
    let mut mistakes = Vec::new();
    let document = yaml::read(text, 0, &mut Places::default(), &mut mistakes);
    let line = |mistake: &Mistake| text[..mistake.span.range().start].matches('\n').count() + 1;
    let mut repeated = Vec::new();
    for mistake in &mistakes {
        match (mistake.kind, &mistake.parser) {
            (MistakeKind::Repeated, _) => {
                let key = text.get(mistake.span.range()).unwrap_or_default().trim_matches(['"', '\'']);
                repeated
                    .push((mistake.span, format!("line {}: key {} already set in map", line(mistake), go_quoted(key))));
            }
            (kind, Some(parser)) if kind.is_fatal() => return Err(words(&parser.0, parser.1, text)),
            (kind, None) if kind.is_fatal() => return Err(unparsed(mistake, text)),
            _ => {}
        }
    }
    repeated.sort();
    let value = document.map(|document| document.value).unwrap_or_default();
    Ok(Document { value, repeated: repeated.into_iter().map(|(_, said)| said).collect() })
}

/// What is wrong with a value, as Go's library says it.
fn unparsed(mistake: &Mistake, text: &str) -> String {
    match text.get(mistake.span.range()).unwrap_or_default().strip_prefix('*') {
        Some(name) if mistake.kind == MistakeKind::Syntax => format!("yaml: unknown anchor '{name}' referenced"),
        _ => format!("yaml: {}", mistake.what),
    }
}

/// What is wrong with a text, as Go's library says it, for the mistakes people make.
fn words(said: &str, line: usize, text: &str) -> String {
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
        said if said.starts_with("unexpected character") || said.starts_with("tabs disallowed") => {
            scanner("found character that cannot start any token")
        }
        said => scanner(said),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn yaml_is_read_as_kubernetes_reads_it() {
        let text = "a: yes\nmode: 0644\nnum: 1e3\ns: 'yes'\nl: [1_000, ~]\n---\nb: 1\n";
        let document = read(text.as_bytes()).unwrap();
        assert_eq!(document.value, value!({"a": true, "mode": 420, "num": 1000, "s": "yes", "l": [1000, null]}));
        assert!(matches!(document.value.get("num"), Some(Value::Int(1000))));
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
