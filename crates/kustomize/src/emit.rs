//! YAML as Go writes it: the output of `kustomize build`, and the texts that kustomize writes to itself while it works.
//!
//! The rules are those of libyaml's emitter with what go-yaml v2 (output, lines folded at 80 columns) and v3 (texts
//! within texts) changed in it. Never decides what is written.

use serde_json::Value;

use crate::{
    fault::{Fault, Res},
    node::{Arena, Id, Kind, Style, Tag},
    scalar::{self, Scalar},
};

/// An object as `kustomize build` prints it.
pub fn object(value: &Value) -> String {
    let mut emitter = Emitter::new(Version::V2);
    emitter.value(value, false);
    emitter.finish()
}

/// A node as kustomize prints it to itself.
pub fn node(arena: &Arena, id: Id) -> Res<String> {
    let mut emitter = Emitter::new(Version::V3);
    emitter.node(arena, id, Context::Root)?;
    Ok(emitter.finish())
}

/// What a text may be written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Analysis {
    multiline: bool,
    flow_plain: bool,
    pub block_plain: bool,
    pub single_quoted: bool,
    pub block: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    V2,
    V3,
}

fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}') && c != '\u{feff}'
}

fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

impl Analysis {
    pub fn of(text: &str, version: Version) -> Analysis {
        if text.is_empty() {
            return Analysis {
                multiline: false,
                flow_plain: false,
                block_plain: true,
                single_quoted: true,
                block: false,
            };
        }
        let (mut block_indicators, mut flow_indicators, mut line_breaks, mut special, mut tabs) =
            (false, false, false, false, false);
        let (mut leading, mut trailing_space, mut trailing_break) = (false, false, false);
        let (mut break_space, mut space_break) = (false, false);
        let (mut previous_space, mut previous_break, mut preceded) = (false, false, true);
        if text.starts_with("---") || text.starts_with("...") {
            (block_indicators, flow_indicators) = (true, true);
        }
        let mut characters = text.chars().peekable();
        let mut first = true;
        while let Some(c) = characters.next() {
            let last = characters.peek().is_none();
            let followed = characters.peek().is_none_or(|next| is_blank(*next));
            match (first, c) {
                (
                    true,
                    '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`',
                ) => {
                    (block_indicators, flow_indicators) = (true, true);
                }
                (true, '?' | ':') | (false, ':') => {
                    flow_indicators = true;
                    block_indicators |= followed;
                }
                (true, '-') if followed => (block_indicators, flow_indicators) = (true, true),
                (false, ',' | '?' | '[' | ']' | '{' | '}') => flow_indicators = true,
                (false, '#') if preceded => (block_indicators, flow_indicators) = (true, true),
                _ => {}
            }
            if c == '\t' && version == Version::V3 {
                tabs = true;
            } else if !is_printable(c) {
                special = true;
            }
            if c == ' ' {
                leading |= first;
                trailing_space |= last;
                break_space |= previous_break;
                (previous_space, previous_break) = (true, false);
            } else if is_break(c) {
                line_breaks = true;
                leading |= first;
                trailing_break |= last;
                space_break |= previous_space;
                (previous_space, previous_break) = (false, true);
            } else {
                (previous_space, previous_break) = (false, false);
            }
            preceded = is_blank(c) || is_break(c) || c == '\0';
            first = false;
        }
        let outside = leading || trailing_space || trailing_break;
        let unquotable = break_space || space_break || tabs || special || line_breaks || outside;
        Analysis {
            multiline: line_breaks,
            flow_plain: !unquotable && !flow_indicators,
            block_plain: !unquotable && !block_indicators,
            single_quoted: !(break_space || space_break || tabs || special),
            block: !(trailing_space || space_break || special),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Write {
    Plain,
    Single,
    Double,
    Literal,
    Folded,
}

/// Where a node stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    Root,
    Element,
    Value,
    Key,
}

struct Emitter {
    version: Version,
    out: String,
    column: usize,
    indent: i32,
    whitespace: bool,
    indention: bool,
    flow: usize,
    width: usize,
}

impl Emitter {
    fn new(version: Version) -> Emitter {
        let width = match version {
            Version::V2 => 80,
            Version::V3 => usize::MAX,
        };
        Emitter {
            version,
            out: String::new(),
            column: 0,
            indent: -1,
            whitespace: true,
            indention: true,
            flow: 0,
            width,
        }
    }

    fn finish(mut self) -> String {
        if !self.out.ends_with('\n') {
            self.out.push('\n');
        }
        self.out
    }

    fn value(&mut self, value: &Value, in_map: bool) {
        match value {
            Value::Null => self.text("null", Write::Plain, false),
            Value::Bool(true) => self.text("true", Write::Plain, false),
            Value::Bool(false) => self.text("false", Write::Plain, false),
            Value::Number(number) => {
                let text = match number.as_f64() {
                    Some(float) if number.is_f64() => scalar::go_shortest(float),
                    _ => number.to_string(),
                };
                self.text(&text, Write::Plain, false);
            }
            Value::String(text) => self.string(text, false),
            Value::Array(list) if list.is_empty() => self.empty("[", "]"),
            Value::Object(map) if map.is_empty() => self.empty("{", "}"),
            Value::Array(list) => {
                let indent = self.indent;
                self.increase(false, in_map && !self.indention, false, false);
                for element in list {
                    self.write_indent();
                    self.indicator("-", true, false, true);
                    self.value(element, false);
                }
                self.indent = indent;
            }
            Value::Object(map) => {
                let indent = self.indent;
                self.increase(false, false, false, false);
                let mut keys: Vec<&String> = map.keys().collect();
                keys.sort_by(|a, b| compare_keys(a, b, Version::V2));
                for key in keys {
                    self.write_indent();
                    if key.len() <= 128 && !key.contains(is_break) {
                        self.string(key, true);
                        self.indicator(":", false, false, false);
                    } else {
                        self.indicator("?", true, false, true);
                        self.string(key, false);
                        self.write_indent();
                        self.indicator(":", true, false, true);
                    }
                    self.value(&map[key], true);
                }
                self.indent = indent;
            }
        }
    }

    fn empty(&mut self, open: &str, close: &str) {
        self.indicator(open, true, true, false);
        self.indicator(close, false, false, false);
    }

    fn string(&mut self, text: &str, key: bool) {
        self.text(text, string_style(text, self.version), key);
    }

    fn node(&mut self, arena: &Arena, id: Id, context: Context) -> Res<()> {
        let node = arena.get(id);
        let flow = self.flow > 0 || node.style.has(Style::FLOW) || node.content.is_empty();
        match node.kind {
            Kind::Scalar => {
                let (write, tag) = node_style(node.style, &node.tag, &node.text);
                if let Some(tag) = tag {
                    self.indicator(&tag, true, false, false);
                }
                self.text(&node.text, write, context == Context::Key);
            }
            Kind::List if flow => {
                self.indicator("[", true, true, false);
                self.flow += 1;
                for (index, element) in node.content.iter().enumerate() {
                    if index > 0 {
                        self.indicator(",", false, false, false);
                    }
                    self.node(arena, *element, Context::Element)?;
                }
                self.flow -= 1;
                self.indicator("]", false, false, false);
            }
            Kind::Map if flow => {
                self.indicator("{", true, true, false);
                self.flow += 1;
                for (index, (key, value)) in arena.pairs(id).enumerate() {
                    if index > 0 {
                        self.indicator(",", false, false, false);
                    }
                    self.node(arena, key, Context::Key)?;
                    self.indicator(":", false, false, false);
                    self.node(arena, value, Context::Value)?;
                }
                self.flow -= 1;
                self.indicator("}", false, false, false);
            }
            Kind::List => {
                let indent = self.indent;
                let compact = context == Context::Value && (self.column == 0 || !self.indention);
                self.increase(false, false, context == Context::Element, compact);
                for element in &node.content {
                    self.write_indent();
                    self.indicator("-", true, false, true);
                    self.node(arena, *element, Context::Element)?;
                }
                self.indent = indent;
            }
            Kind::Map => {
                let indent = self.indent;
                self.increase(false, false, context == Context::Element, false);
                for (key, value) in arena.pairs(id) {
                    self.write_indent();
                    if arena.get(key).kind != Kind::Scalar {
                        return Err(Fault::new("a list or a map cannot be a key").at(arena.at(key)));
                    }
                    self.node(arena, key, Context::Key)?;
                    self.indicator(":", false, false, false);
                    self.node(arena, value, Context::Value)?;
                }
                self.indent = indent;
            }
        }
        Ok(())
    }

    fn increase(&mut self, flow: bool, indentless: bool, in_element: bool, compact: bool) {
        if self.indent < 0 {
            self.indent = if flow { 2 } else { 0 };
        } else if !indentless {
            match self.version {
                Version::V2 => self.indent += 2,
                Version::V3 if in_element => self.indent += 2,
                Version::V3 => self.indent = 2 * ((self.indent + 2) / 2) - if compact { 2 } else { 0 },
            }
        }
    }

    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    fn put_break(&mut self) {
        self.out.push('\n');
        self.column = 0;
        if self.version == Version::V3 {
            self.indention = true;
        }
    }

    fn write_indent(&mut self) {
        let indent = self.indent.max(0) as usize;
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.put_break();
        }
        while self.column < indent {
            self.put(' ');
        }
        self.whitespace = true;
        if self.version == Version::V2 {
            self.indention = true;
        }
    }

    fn indicator(&mut self, text: &str, need_whitespace: bool, is_whitespace: bool, is_indention: bool) {
        if need_whitespace && !self.whitespace {
            self.put(' ');
        }
        for c in text.chars() {
            self.put(c);
        }
        self.whitespace = is_whitespace;
        self.indention = self.indention && is_indention;
    }

    fn text(&mut self, text: &str, wanted: Write, key: bool) {
        let analysis = Analysis::of(text, self.version);
        let mut write = if key && analysis.multiline { Write::Double } else { wanted };
        if write == Write::Plain {
            let allowed = if self.flow > 0 { analysis.flow_plain } else { analysis.block_plain };
            if !allowed || (text.is_empty() && (self.flow > 0 || key)) {
                write = Write::Single;
            }
        }
        if write == Write::Single && !analysis.single_quoted {
            write = Write::Double;
        }
        if matches!(write, Write::Literal | Write::Folded) && (!analysis.block || self.flow > 0 || key) {
            write = Write::Double;
        }
        let indent = self.indent;
        self.increase(true, false, false, false);
        match write {
            Write::Plain => self.plain(text, !key),
            Write::Single => self.single(text, !key),
            Write::Double => self.double(text, !key),
            Write::Literal => self.block(text, false),
            Write::Folded => self.block(text, true),
        }
        self.indent = indent;
    }

    fn plain(&mut self, text: &str, breaks_allowed: bool) {
        if !self.whitespace && (self.version == Version::V2 || !text.is_empty()) {
            self.put(' ');
        }
        self.words(text, breaks_allowed, false);
        if self.version == Version::V2 || !text.is_empty() {
            self.whitespace = false;
        }
        self.indention = false;
    }

    fn single(&mut self, text: &str, breaks_allowed: bool) {
        self.indicator("'", true, false, false);
        self.words(text, breaks_allowed, true);
        self.indicator("'", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    /// The inside of a plain or single quoted text.
    fn words(&mut self, text: &str, breaks_allowed: bool, quoted: bool) {
        let (mut spaces, mut breaks) = (false, false);
        let characters: Vec<char> = text.chars().collect();
        for (index, c) in characters.iter().copied().enumerate() {
            if c == ' ' {
                let next_is_space = characters.get(index + 1) == Some(&' ');
                let inside = !quoted || (index > 0 && index < characters.len() - 1);
                if breaks_allowed && !spaces && self.column > self.width && inside && !next_is_space {
                    self.write_indent();
                } else {
                    self.put(c);
                }
                spaces = true;
            } else if is_break(c) {
                if !breaks && c == '\n' {
                    self.put_break();
                }
                self.write_break(c);
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                if quoted && c == '\'' {
                    self.put('\'');
                }
                self.put(c);
                self.indention = false;
                (spaces, breaks) = (false, false);
            }
        }
    }

    fn write_break(&mut self, c: char) {
        if c == '\n' {
            self.put_break();
        } else {
            self.out.push(c);
            self.column = 0;
        }
        self.indention = true;
    }

    fn double(&mut self, text: &str, breaks_allowed: bool) {
        self.indicator("\"", true, false, false);
        let mut spaces = false;
        let characters: Vec<char> = text.chars().collect();
        let bom = text.starts_with('\u{feff}');
        for (index, c) in characters.iter().copied().enumerate() {
            if !is_printable(c) || bom || is_break(c) || c == '"' || c == '\\' {
                self.escape(c);
                spaces = false;
            } else if c == ' ' {
                let inside = index > 0 && index < characters.len() - 1;
                if breaks_allowed && !spaces && self.column > self.width && inside {
                    self.write_indent();
                    if characters.get(index + 1) == Some(&' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(c);
                }
                spaces = true;
            } else {
                self.put(c);
                spaces = false;
            }
        }
        self.indicator("\"", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn escape(&mut self, c: char) {
        let code = u32::from(c);
        let escaped = match c {
            '\0' => "\\0".to_owned(),
            '\u{7}' => "\\a".to_owned(),
            '\u{8}' => "\\b".to_owned(),
            '\t' => "\\t".to_owned(),
            '\n' => "\\n".to_owned(),
            '\u{b}' => "\\v".to_owned(),
            '\u{c}' => "\\f".to_owned(),
            '\r' => "\\r".to_owned(),
            '\u{1b}' => "\\e".to_owned(),
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            '\u{85}' => "\\N".to_owned(),
            '\u{a0}' => "\\_".to_owned(),
            '\u{2028}' => "\\L".to_owned(),
            '\u{2029}' => "\\P".to_owned(),
            _ if code <= 0xff => format!("\\x{code:02X}"),
            _ if code <= 0xffff => format!("\\u{code:04X}"),
            _ => format!("\\U{code:08X}"),
        };
        for c in escaped.chars() {
            self.put(c);
        }
    }

    fn block(&mut self, text: &str, folded: bool) {
        self.indicator(if folded { ">" } else { "|" }, true, false, false);
        if text.starts_with(|c| c == ' ' || is_break(c)) {
            self.indicator("2", false, false, false);
        }
        let mut ends = text.chars().rev();
        match (ends.next().is_some_and(is_break), ends.next()) {
            (false, _) => self.indicator("-", false, false, false),
            (true, None) => self.indicator("+", false, false, false),
            (true, Some(c)) if is_break(c) => self.indicator("+", false, false, false),
            (true, Some(_)) => {}
        }
        self.put_break();
        self.indention = true;
        self.whitespace = true;
        let characters: Vec<char> = text.chars().collect();
        let (mut breaks, mut leading_spaces) = (true, true);
        for (index, c) in characters.iter().copied().enumerate() {
            if is_break(c) {
                if folded && !breaks && !leading_spaces && c == '\n' {
                    let next = characters[index..].iter().find(|c| !is_break(**c));
                    if next.is_some_and(|c| !is_blank(*c)) {
                        self.put_break();
                    }
                }
                self.write_break(c);
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                    leading_spaces = is_blank(c);
                }
                self.put(c);
                self.indention = false;
                breaks = false;
            }
        }
    }
}

/// How Go's encoders write a string.
fn string_style(text: &str, version: Version) -> Write {
    if text.contains('\n') {
        return Write::Literal;
    }
    let plain = match version {
        // The timestamps of v2 are strings to its decoder and times to its encoder.
        Version::V2 => scalar::resolve_v1(text) == Scalar::Text && !matches!(scalar::resolve(text), Scalar::Time(_)),
        Version::V3 => scalar::resolve(text) == Scalar::Text && !is_old_bool(text),
    };
    if plain && !is_base_60(text) { Write::Plain } else { Write::Double }
}

fn is_old_bool(text: &str) -> bool {
    matches!(scalar::resolve_v1(text), Scalar::Bool(_))
}

/// `^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$`
fn is_base_60(text: &str) -> bool {
    let rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mut parts = rest.split(':');
    let head = parts.next().unwrap_or_default();
    if !head.starts_with(|c: char| c.is_ascii_digit()) || !head.chars().all(|c| c.is_ascii_digit() || c == '_') {
        return false;
    }
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return false };
    let sixty = |part: &str| match part.as_bytes() {
        [a] => a.is_ascii_digit(),
        [a, b] => (b'0'..=b'5').contains(a) && b.is_ascii_digit(),
        _ => false,
    };
    let (last, fraction) = last.split_once('.').unwrap_or((last, ""));
    middle.iter().all(|part| sixty(part)) && sixty(last) && fraction.chars().all(|c| c.is_ascii_digit() || c == '_')
}

/// The style that a string gets when it is written by Go and read again.
pub fn style_after_writing(text: &str) -> Style {
    let analysis = Analysis::of(text, Version::V3);
    match string_style(text, Version::V3) {
        Write::Literal | Write::Folded if analysis.block => Style::LITERAL,
        Write::Literal | Write::Folded | Write::Double => Style::DOUBLE,
        Write::Plain if analysis.block_plain && !text.is_empty() => Style::PLAIN,
        Write::Plain | Write::Single if analysis.single_quoted => Style::SINGLE,
        Write::Plain | Write::Single => Style::DOUBLE,
    }
}

/// How a node is written: the style, and a tag if leaving it out would change what is read.
fn node_style(style: Style, tag: &Tag, text: &str) -> (Write, Option<String>) {
    let mut force = false;
    let explicit = if *tag == Tag::None || (*tag == Tag::Str && style.is_text() && !style.has(Style::TAGGED)) {
        None
    } else if style.has(Style::TAGGED) {
        Some(tag)
    } else if scalar::resolve(text).tag() == *tag {
        None
    } else if *tag == Tag::Str {
        force = true;
        None
    } else {
        Some(tag)
    };
    let write = if style.has(Style::DOUBLE) {
        Write::Double
    } else if style.has(Style::SINGLE) {
        Write::Single
    } else if style.has(Style::LITERAL) {
        Write::Literal
    } else if style.has(Style::FOLDED) {
        Write::Folded
    } else if text.contains('\n') {
        Write::Literal
    } else if force {
        Write::Double
    } else {
        Write::Plain
    };
    let name = explicit.map(|tag| match tag {
        Tag::None => String::new(),
        Tag::Str => "!!str".to_owned(),
        Tag::Null => "!!null".to_owned(),
        Tag::Bool => "!!bool".to_owned(),
        Tag::Int => "!!int".to_owned(),
        Tag::Float => "!!float".to_owned(),
        Tag::Time => "!!timestamp".to_owned(),
        Tag::Map => "!!map".to_owned(),
        Tag::List => "!!seq".to_owned(),
        Tag::Binary => "!!binary".to_owned(),
        Tag::Merge => "!!merge".to_owned(),
        Tag::Other(name) => name.to_string(),
    });
    (write, name)
}

/// What a scalar says after it was written and read again, which kustomize does whenever it wants a value.
pub fn read_back(style: Style, tag: &Tag, text: &str, flow: bool) -> Option<Scalar> {
    if *tag == Tag::Str {
        return Some(Scalar::Text);
    }
    let (write, explicit) = node_style(style, tag, text);
    if explicit.is_none() && scalar::resolve(text) == Scalar::Text {
        return Some(Scalar::Text);
    }
    let quoted = match write {
        Write::Plain => {
            let analysis = Analysis::of(text, Version::V3);
            let allowed = if flow { analysis.flow_plain } else { analysis.block_plain };
            !allowed || (text.is_empty() && flow)
        }
        Write::Single | Write::Double | Write::Literal | Write::Folded => true,
    };
    match (explicit, tag) {
        (None, _) if quoted => Some(Scalar::Text),
        (None, _) => Some(scalar::resolve(text)),
        (Some(_), Tag::Other(_) | Tag::Binary | Tag::Map | Tag::List | Tag::Merge) => Some(Scalar::Text),
        (Some(_), tag) => scalar::resolve_tagged(tag, text),
    }
}

/// The order of keys: letters by letter, stretches of digits by number.
pub fn compare_keys(a: &str, b: &str, version: Version) -> std::cmp::Ordering {
    use std::cmp::Ordering;
    let (left, right): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut digits = false;
    for i in 0..left.len().min(right.len()) {
        let (x, y) = (left[i], right[i]);
        if x == y {
            digits = x.is_ascii_digit();
            continue;
        }
        let (al, bl) = (x.is_alphabetic(), y.is_alphabetic());
        if al && bl {
            return x.cmp(&y);
        }
        if al || bl {
            let less = if version == Version::V3 && digits { al } else { bl };
            return if less { Ordering::Less } else { Ordering::Greater };
        }
        let (mut an, mut bn) = (0_i64, 0_i64);
        if x == '0' || y == '0' {
            let stretch = left[..i].iter().rev().take_while(|c| c.is_ascii_digit());
            if stretch.into_iter().any(|c| *c != '0') {
                (an, bn) = (1, 1);
            }
        }
        let number = |characters: &[char], start: i64| {
            let digits = characters.iter().take_while(|c| c.is_ascii_digit());
            digits.fold((start, 0), |(n, count), c| {
                (n.wrapping_mul(10).wrapping_add(i64::from(u32::from(*c) - u32::from('0'))), count + 1)
            })
        };
        let (an, ai) = number(&left[i..], an);
        let (bn, bi) = number(&right[i..], bn);
        return an.cmp(&bn).then(ai.cmp(&bi)).then(x.cmp(&y));
    }
    left.len().cmp(&right.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_as_go_orders_them() {
        let mut keys = vec!["b10", "b2", "a-b", "ab", "a", "A", "x1y", "x01y", "_", "1"];
        keys.sort_by(|a, b| compare_keys(a, b, Version::V2));
        assert_eq!(keys, ["_", "1", "A", "a", "a-b", "ab", "b2", "b10", "x1y", "x01y"]);
    }

    #[test]
    fn objects_are_written_as_go_writes_them() {
        #[track_caller]
        fn check(json: &str, expected: &str) {
            let value: Value = serde_json::from_str(json).unwrap();
            assert_eq!(object(&value), expected);
        }
        check(
            r#"{"a":[{"b":1,"c":["y","1:30","a: b"]}],"d":{}}"#,
            "a:\n- b: 1\n  c:\n  - \"y\"\n  - \"1:30\"\n  - 'a: b'\nd: {}\n",
        );
        check(r#"{"a":"x\ny\n","b":"x\n\n","c":" x\ny"}"#, "a: |\n  x\n  y\nb: |+\n  x\n\nc: |2-\n   x\n  y\n");
        check(
            r#"{"a":["",null,true,1e21,"tab\t"],"b":[[1],[]]}"#,
            "a:\n- \"\"\n- null\n- true\n- 1e+21\n- \"tab\\t\"\nb:\n- - 1\n- []\n",
        );
    }
}
