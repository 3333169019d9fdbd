//! Paths into a schema, as `fieldPath` of a CEL rule and `selectableFields` write them: `.spec.a`, `.labels['x']`.

use super::props::Props;

/// Follows a path through a schema: how `field.Path` writes it, and the schema at its end. `Err` says what is wrong.
pub(super) fn find<'a>(path: &str, schema: Props<'a>, brackets: bool) -> Result<(String, Option<Props<'a>>), String> {
    let mut written = String::new();
    let mut schema = Some(schema);
    let mut rest = path;
    while let Some(token) = next(&mut rest) {
        let name = match token {
            "[" if !brackets => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let quoted = next(&mut rest).ok_or("unexpected end of JSON path")?;
                if quoted.len() < 2 || !quoted.starts_with('\'') || !quoted.ends_with('\'') {
                    return Err(format!("expected single quoted string but got {quoted}"));
                }
                unescape(&quoted[1..quoted.len() - 1])?
            }
            "." => next(&mut rest).ok_or("unexpected end of JSON path")?.to_owned(),
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        let Some(here) = schema else { return Err("does not refer to a valid field".to_owned()) };
        if here.map("properties").is_some() {
            if !written.is_empty() {
                written.push('.');
            }
            written.push_str(&name);
            schema = Some(here.property(&name).ok_or("does not refer to a valid field")?);
        } else if here.get("additionalProperties").is_some() {
            written.push_str(&format!("[{name}]"));
            schema = here.values();
        } else {
            return Err("does not refer to a valid field".to_owned());
        }
        if token == "[" {
            match next(&mut rest) {
                None => return Err("unexpected end of JSON path".to_owned()),
                Some("]") => {}
                Some(other) => return Err(format!("expected ] but got {other}")),
            }
        }
    }
    Ok((written, schema))
}

/// The next token: a delimiter, a quoted text, or what stands before the next delimiter.
fn next<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let text = *rest;
    let first = text.chars().next()?;
    let end = match first {
        '.' | '[' | ']' => 1,
        '\'' => {
            let bytes = text.as_bytes();
            (1..bytes.len()).find(|i| bytes[*i] == b'\'' && bytes[i - 1] != b'\\').map_or(text.len(), |i| i + 1)
        }
        _ => text.find(['.', '[', ']']).unwrap_or(text.len()),
    };
    let (token, after) = text.split_at(end);
    *rest = after;
    Some(token)
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('a') => out.push('\u{7}'),
                Some('b') => out.push('\u{8}'),
                Some('f') => out.push('\u{c}'),
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some('t') => out.push('\t'),
                Some('v') => out.push('\u{b}'),
                Some(c @ ('\'' | '\\')) => out.push(c),
                Some(c) => return Err(format!("invalid string literal: invalid escape char \\{c}")),
                None => out.push('\\'),
            },
            c => out.push(c),
        }
    }
    Ok(out)
}
