//! Label and field selectors: the grammar, the words of a refusal, and matching without allocation.
//!
//! A label selector is parsed from a query ([`Labels::parse`]) or read from a `LabelSelector` in an object
//! ([`Labels::of`]). A field selector is parsed without knowing the kind ([`Fields::parse`]); [`Fields::check`] then says
//! whether the kind has such fields.

use std::fmt::{self, Write};

use super::{
    kind::{Kind, Origin},
    names,
    object::Object,
    status::{FieldError, Status, go_quoted},
    value::{Map, Text, Value},
};

/// A label selector: every requirement must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels {
    requirements: Vec<Requirement>,
    /// An absent `LabelSelector` selects nothing, an empty one everything.
    nothing: bool,
}

/// One condition on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The label's key.
    pub key: Text,
    /// How its value relates to [`values`](Self::values).
    pub operator: Operator,
    /// What it is compared with.
    pub values: Vec<Text>,
}

/// How a label's value relates to those of a [`Requirement`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Operator {
    Equals,
    DoubleEquals,
    NotEquals,
    In,
    NotIn,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

impl Labels {
    /// Selects every object.
    pub fn everything() -> Labels {
        Labels::default()
    }

    /// Selects no object.
    pub fn nothing() -> Labels {
        Labels { requirements: Vec::new(), nothing: true }
    }

    /// Reads a `labelSelector` parameter; 400 if it makes no sense.
    pub fn parse(text: &str) -> Result<Labels, Status> {
        Parser::new(text).selector().map_err(Status::bad_request)
    }

    /// Reads a `metav1.LabelSelector`. `null` selects nothing, `{}` everything.
    pub fn of(selector: &Value) -> Result<Labels, String> {
        let Some(selector) = selector.as_map() else { return Ok(Labels::nothing()) };
        let mut requirements = Vec::new();
        for (key, value) in selector.get("matchLabels").and_then(Value::as_map).into_iter().flat_map(Map::iter) {
            let value = value.as_text().cloned().unwrap_or_default();
            requirements.push(Requirement::new(key.clone(), Operator::Equals, vec![value])?);
        }
        for expression in selector.get("matchExpressions").and_then(Value::as_list).unwrap_or_default() {
            let operator = match expression.str_at(&["operator"]).unwrap_or_default() {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => return Err(format!("{} is not a valid label selector operator", go_quoted(other))),
            };
            let key = expression.get("key").and_then(Value::as_text).cloned().unwrap_or_default();
            let values = expression.list_at(&["values"]).iter().filter_map(Value::as_text).cloned().collect();
            requirements.push(Requirement::new(key, operator, values)?);
        }
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Labels { requirements, nothing: false })
    }

    /// Selects objects that carry all of these labels, as a Service does. No map or an empty one selects everything.
    pub fn of_map(labels: Option<&Map>) -> Labels {
        let equals = |(key, value): (&Text, &Value)| Requirement {
            key: key.clone(),
            operator: Operator::Equals,
            values: vec![value.as_text().cloned().unwrap_or_default()],
        };
        let requirements = labels.into_iter().flat_map(Map::iter).map(equals).collect();
        Labels { requirements, nothing: false }
    }

    /// Whether these labels satisfy every requirement.
    pub fn matches(&self, labels: Option<&Map>) -> bool {
        !self.nothing && self.requirements.iter().all(|requirement| requirement.matches(labels))
    }

    /// Whether every object is selected.
    pub fn is_empty(&self) -> bool {
        !self.nothing && self.requirements.is_empty()
    }

    /// The requirements, sorted by key.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }
}

impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.requirements.iter().enumerate() {
            if i > 0 {
                f.write_char(',')?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl Requirement {
    /// A requirement whose key and values obey the rules, or all that is wrong with it.
    pub fn new(key: Text, operator: Operator, values: Vec<Text>) -> Result<Requirement, String> {
        let mut problems = Vec::new();
        let why = names::label_key(&key);
        if !why.is_empty() {
            problems.push(FieldError::invalid("key", key.clone(), why.join("; ")));
        }
        let complaint = match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                Some("for 'in', 'notin' operators, values set can't be empty")
            }
            Operator::Equals | Operator::DoubleEquals | Operator::NotEquals if values.len() != 1 => {
                Some("exact-match compatibility requires one single value")
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                Some("values set must be empty for exists and does not exist")
            }
            Operator::GreaterThan | Operator::LessThan if values.len() != 1 => {
                Some("for 'Gt', 'Lt' operators, exactly one value is required")
            }
            _ => None,
        };
        if let Some(complaint) = complaint {
            // Go prints a nil slice as null.
            let shown = if values.is_empty() { Value::Null } else { Value::list(values.iter().map(Value::from)) };
            problems.push(FieldError::invalid("values", shown, complaint));
        }
        if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
            for (i, value) in values.iter().enumerate().filter(|(_, value)| value.parse::<i64>().is_err()) {
                let why = "for 'Gt', 'Lt' operators, the value must be an integer";
                problems.push(FieldError::invalid(format!("values[{i}]"), value, why));
            }
        }
        for (i, value) in values.iter().enumerate() {
            let why = names::label_value(value);
            if !why.is_empty() {
                problems.push(FieldError::invalid(format!("values[{i}][{key}]"), value, why.join("; ")));
            }
        }
        let texts: Vec<String> = problems.iter().map(FieldError::to_string).collect();
        match texts.as_slice() {
            [] => Ok(Requirement { key, operator, values }),
            [one] => Err(one.clone()),
            many => Err(format!("[{}]", many.join(", "))),
        }
    }

    /// Whether these labels satisfy it. A label that is absent satisfies `!=` and `notin`.
    pub fn matches(&self, labels: Option<&Map>) -> bool {
        let label = labels.and_then(|labels| labels.get(&self.key));
        let text = label.and_then(Value::as_str).unwrap_or_default();
        let listed = || self.values.iter().any(|value| value == text);
        let compared = || Some((text.parse::<i64>().ok()?, self.values.first()?.parse::<i64>().ok()?));
        match self.operator {
            Operator::Equals | Operator::DoubleEquals | Operator::In => label.is_some() && listed(),
            Operator::NotEquals | Operator::NotIn => label.is_none() || !listed(),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => label.is_some() && compared().is_some_and(|(a, b)| a > b),
            Operator::LessThan => label.is_some() && compared().is_some_and(|(a, b)| a < b),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let first = self.values.first().map(Text::as_str).unwrap_or_default();
        let joined = || {
            let mut values: Vec<&str> = self.values.iter().map(Text::as_str).collect();
            values.sort_unstable();
            values.join(",")
        };
        match self.operator {
            Operator::Equals => write!(f, "{key}={first}"),
            Operator::DoubleEquals => write!(f, "{key}=={first}"),
            Operator::NotEquals => write!(f, "{key}!={first}"),
            Operator::In => write!(f, "{key} in ({})", joined()),
            Operator::NotIn => write!(f, "{key} notin ({})", joined()),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{first}"),
            Operator::LessThan => write!(f, "{key}<{first}"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Word,
    In,
    NotIn,
    Open,
    Close,
    Comma,
    Not,
    Equals,
    DoubleEquals,
    NotEquals,
    Greater,
    Less,
    End,
}

/// Upstream's recursive descent, with its words.
struct Parser<'a> {
    tokens: Vec<(Token, &'a str)>,
    at: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parser<'a> {
        let mut tokens = Vec::new();
        let mut rest = text;
        loop {
            let (token, literal, after) = lex(rest);
            tokens.push((token, literal));
            if token == Token::End {
                return Parser { tokens, at: 0 };
            }
            rest = after;
        }
    }

    /// The next token; `in` and `notin` are words wherever an operator cannot stand.
    fn peek(&self) -> (Token, &'a str) {
        match self.peek_operator() {
            (Token::In | Token::NotIn, literal) => (Token::Word, literal),
            other => other,
        }
    }

    fn peek_operator(&self) -> (Token, &'a str) {
        self.tokens.get(self.at).copied().unwrap_or((Token::End, ""))
    }

    fn next(&mut self) -> (Token, &'a str) {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn selector(mut self) -> Result<Labels, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                (Token::Word | Token::Not, _) => {}
                (Token::End, _) => break,
                (_, found) => return Err(format!("found '{found}', expected: !, identifier, or 'end of string'")),
            }
            let requirement = self.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?;
            requirements.push(requirement);
            match self.next() {
                (Token::End, _) => break,
                (Token::Comma, _) => match self.peek() {
                    (Token::Word | Token::Not, _) => {}
                    (_, found) => return Err(format!("found '{found}', expected: identifier after ','")),
                },
                (_, found) => return Err(format!("found '{found}', expected: ',' or 'end of string'")),
            }
        }
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Labels { requirements, nothing: false })
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let negated = self.peek().0 == Token::Not;
        if negated {
            self.next();
        }
        let key: Text = match self.next() {
            (Token::Word, key) => key.into(),
            (_, found) => return Err(format!("found '{found}', expected: identifier")),
        };
        let why = names::label_key(&key);
        if !why.is_empty() {
            return Err(FieldError::invalid("<nil>", key, why.join("; ")).to_string());
        }
        if negated {
            return Requirement::new(key, Operator::DoesNotExist, Vec::new());
        }
        if matches!(self.peek().0, Token::End | Token::Comma) {
            return Requirement::new(key, Operator::Exists, Vec::new());
        }
        let operator = self.operator()?;
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => vec![self.value()?],
        };
        Requirement::new(key, operator, values.into_iter().map(Text::from).collect())
    }

    fn operator(&mut self) -> Result<Operator, String> {
        let (token, found) = self.peek_operator();
        self.at += 1;
        match token {
            Token::In => Ok(Operator::In),
            Token::NotIn => Ok(Operator::NotIn),
            Token::Equals => Ok(Operator::Equals),
            Token::DoubleEquals => Ok(Operator::DoubleEquals),
            Token::NotEquals => Ok(Operator::NotEquals),
            Token::Greater => Ok(Operator::GreaterThan),
            Token::Less => Ok(Operator::LessThan),
            Token::Word | Token::Open | Token::Close | Token::Comma | Token::Not | Token::End => {
                Err(format!("found '{found}', expected: in, notin, =, ==, !=, gt, lt"))
            }
        }
    }

    fn value(&mut self) -> Result<&'a str, String> {
        if matches!(self.peek().0, Token::End | Token::Comma) {
            return Ok("");
        }
        match self.next() {
            (Token::Word, value) => Ok(value),
            (_, found) => Err(format!("found '{found}', expected: identifier")),
        }
    }

    /// The values of `in` and `notin`, sorted, each once. An empty place counts as the empty value.
    fn values(&mut self) -> Result<Vec<&'a str>, String> {
        match self.next() {
            (Token::Open, _) => {}
            (_, found) => return Err(format!("found '{found}' expected: '('")),
        }
        match self.peek() {
            (Token::Word | Token::Comma, _) => {}
            (Token::Close, _) => {
                self.next();
                return Ok(vec![""]);
            }
            (_, found) => return Err(format!("found '{found}', expected: ',', ')' or identifier")),
        }
        let mut values = Vec::new();
        loop {
            match self.next() {
                (Token::Word, value) => {
                    values.push(value);
                    match self.peek() {
                        (Token::Comma, _) => {}
                        (Token::Close, _) => break,
                        (_, found) => return Err(format!("found '{found}', expected: ',' or ')'")),
                    }
                }
                (Token::Comma, _) => {
                    if values.is_empty() || matches!(self.peek().0, Token::Close | Token::Comma) {
                        values.push("");
                    }
                    if self.peek().0 == Token::Close {
                        break;
                    }
                }
                (_, found) => return Err(format!("found '{found}', expected: ',', or identifier")),
            }
        }
        self.next();
        values.sort_unstable();
        values.dedup();
        Ok(values)
    }
}

/// The first token of `text`, how it was written, and what follows. A NUL ends the text, as upstream reads it.
fn lex<'a>(text: &'a str) -> (Token, &'a str, &'a str) {
    let text = text.trim_start_matches([' ', '\t', '\r', '\n']);
    // A NUL right after a symbol or word is swallowed with it.
    let without_nul = |rest: &'a str| rest.strip_prefix('\0').unwrap_or(rest);
    let symbol = |token, length: usize| (token, &text[..length], without_nul(&text[length..]));
    let followed_by_equals = text.as_bytes().get(1) == Some(&b'=');
    match text.as_bytes().first() {
        None | Some(0) => (Token::End, "", ""),
        Some(b'(') => symbol(Token::Open, 1),
        Some(b')') => symbol(Token::Close, 1),
        Some(b',') => symbol(Token::Comma, 1),
        Some(b'>') => symbol(Token::Greater, 1),
        Some(b'<') => symbol(Token::Less, 1),
        Some(b'=') if followed_by_equals => symbol(Token::DoubleEquals, 2),
        Some(b'=') => symbol(Token::Equals, 1),
        Some(b'!') if followed_by_equals => symbol(Token::NotEquals, 2),
        Some(b'!') => symbol(Token::Not, 1),
        Some(_) => {
            let end =
                |b: u8| matches!(b, 0 | b' ' | b'\t' | b'\r' | b'\n' | b'=' | b'!' | b'(' | b')' | b',' | b'>' | b'<');
            let length = text.bytes().position(end).unwrap_or(text.len());
            let word = &text[..length];
            let rest = without_nul(&text[length..]);
            match word {
                "in" => (Token::In, word, rest),
                "notin" => (Token::NotIn, word, rest),
                _ => (Token::Word, word, rest),
            }
        }
    }
}

/// A field selector: every term must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fields {
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    field: Text,
    equal: bool,
    value: Text,
}

impl Fields {
    /// Reads a `fieldSelector` parameter; 400 if it makes no sense. Ask [`check`](Self::check) whether the kind has it.
    pub fn parse(text: &str) -> Result<Fields, Status> {
        let mut parts = split_terms(text);
        parts.sort_unstable();
        let terms = parts.into_iter().filter(|part| !part.is_empty()).map(|part| {
            let unclear = || Status::bad_request(format!("invalid selector: '{text}'; can't understand '{part}'"));
            let (field, equal, value) = split_term(part).ok_or_else(unclear)?;
            Ok(Term { field: field.into(), equal, value: unescape(value).map_err(Status::bad_request)?.into() })
        });
        let mut terms = terms.collect::<Result<Vec<Term>, Status>>()?;
        // Upstream takes a term of nothing at all (`=`, `!=`) for no term.
        terms.retain(|term| !term.field.is_empty() || !term.value.is_empty());
        Ok(Fields { terms })
    }

    /// Whether objects of this kind can be selected by these fields; 400 in the words of that kind if not.
    pub fn check(&self, kind: &Kind) -> Result<(), Status> {
        match self.terms.iter().find(|term| !selectable(kind, &term.field)) {
            None => Ok(()),
            Some(term) => Err(Status::bad_request(refusal(kind, &term.field))),
        }
    }

    /// Whether this object of this kind satisfies every term.
    pub fn matches(&self, kind: &Kind, object: &Object) -> bool {
        self.terms.iter().all(|term| term.equal == field_is(kind, &object.value, &term.field, &term.value))
    }

    /// Whether every object is selected.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The value this field must have, if the selector names one: lets a list go straight to one object or namespace.
    pub fn exact(&self, field: &str) -> Option<&Text> {
        self.terms.iter().find(|term| term.equal && term.field == field).map(|term| &term.value)
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, term) in self.terms.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let operator = if term.equal { "=" } else { "!=" };
            let value = term.value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
            write!(f, "{comma}{}{operator}{value}", term.field)?;
        }
        Ok(())
    }
}

/// The terms between commas that are not escaped.
fn split_terms(text: &str) -> Vec<&str> {
    let (mut terms, mut start, mut escaped) = (Vec::new(), 0, false);
    for (i, b) in text.bytes().enumerate() {
        match b {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b',' => {
                terms.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

/// Field, whether it must be equal, value: split at the first operator.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    term.char_indices().find_map(|(i, _)| {
        let (field, rest) = term.split_at(i);
        if let Some(value) = rest.strip_prefix("!=") {
            return Some((field, false, value));
        }
        let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
        Some((field, true, value))
    })
}

fn unescape(value: &str) -> Result<String, String> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                Some(c) => return Err(format!("invalid field selector: invalid escape sequence: \\{c}")),
                None => return Err("invalid field selector: invalid escape sequence: \\".to_owned()),
            },
            // Upstream prints the code point, not the character.
            ',' | '=' => {
                return Err(format!("invalid field selector: unescaped character in value: {}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

/// The fields of a built-in kind that can be selected, if that kind has a list of its own.
fn selectable_fields(kind: &Kind) -> Option<&'static [&'static str]> {
    Some(match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => &[
            "metadata.name",
            "metadata.namespace",
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
            "spec.host",
        ],
        ("", "Node") => &["metadata.name", "spec.unschedulable"],
        ("", "Namespace") => &["metadata.name", "status.phase"],
        ("", "Secret") => &["metadata.name", "metadata.namespace", "type"],
        ("", "Service") => &["metadata.name", "metadata.namespace", "spec.clusterIP", "spec.type"],
        ("", "ReplicationController") => &["metadata.name", "metadata.namespace", "status.replicas"],
        ("", "Event") => &[
            "metadata.name",
            "metadata.namespace",
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ("events.k8s.io", "Event") => &[
            "metadata.name",
            "metadata.namespace",
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type",
        ],
        ("batch", "Job") => &["metadata.name", "metadata.namespace", "status.successful"],
        ("certificates.k8s.io", "CertificateSigningRequest" | "ClusterTrustBundle") => {
            &["metadata.name", "spec.signerName"]
        }
        ("certificates.k8s.io", "PodCertificateRequest") => {
            &["metadata.name", "spec.signerName", "spec.podName", "spec.nodeName"]
        }
        ("resource.k8s.io", "ResourceSlice") => &["metadata.name", "spec.nodeName", "spec.driver"],
        _ => return None,
    })
}

fn selectable(kind: &Kind, field: &str) -> bool {
    match &kind.origin {
        Origin::Custom(custom) => match field {
            "metadata.name" => true,
            "metadata.namespace" => kind.namespaced,
            field => custom.selectable.iter().any(|path| path == field),
        },
        Origin::BuiltIn => match selectable_fields(kind) {
            Some(fields) => fields.contains(&field),
            None => matches!(field, "metadata.name" | "metadata.namespace"),
        },
    }
}

/// Each kind has its own way of saying that it has no such field.
fn refusal(kind: &Kind, field: &str) -> String {
    match &kind.origin {
        Origin::Custom(_) => format!("field label not supported: {field}"),
        Origin::BuiltIn if kind.is("batch", "Job") => {
            format!("field label {} not supported for Job", go_quoted(field))
        }
        Origin::BuiltIn if kind.is("resource.k8s.io", "ResourceSlice") => {
            format!("field label not supported for {}, Kind={}: {field}", kind.api_version(), kind.kind)
        }
        Origin::BuiltIn if selectable_fields(kind).is_some() => format!("field label not supported: {field}"),
        Origin::BuiltIn => {
            let known = r#"only "metadata.name", "metadata.namespace""#;
            format!("{} is not a known field selector: {known}", go_quoted(field))
        }
    }
}

/// Whether the selectable `field` of `object` reads `wanted`. An absent field reads as the zero of its type.
fn field_is(kind: &Kind, object: &Value, field: &str, wanted: &str) -> bool {
    let reads = |field: &str, zero: &str| match walk(object, field) {
        None | Some(Value::Null) => wanted == zero,
        Some(value) => prints_as(value, wanted),
    };
    if matches!(kind.origin, Origin::Custom(_)) || field.starts_with("metadata.") {
        return reads(field, "");
    }
    match (kind.kind.as_str(), field) {
        ("Pod", "spec.host") => reads("spec.nodeName", ""),
        ("Pod", "spec.hostNetwork") => reads(field, "false"),
        // Upstream accepts status.podIPs but never fills it in; status.podIP is the first of them.
        ("Pod", "status.podIPs") => wanted.is_empty(),
        ("Pod", "status.podIP") => {
            let first = object.list_at(&["status", "podIPs"]).first();
            first.and_then(|ip| ip.str_at(&["ip"])).unwrap_or_default() == wanted
        }
        ("Node", "spec.unschedulable") => reads(field, "false"),
        ("Job", "status.successful") => reads("status.succeeded", "0"),
        ("ReplicationController", "status.replicas") => reads(field, "0"),
        ("Event", field) => event_field(object, field) == wanted,
        (_, field) => reads(field, ""),
    }
}

/// A field of an Event under its core or its events.k8s.io name, whichever form the object is in.
fn event_field<'a>(event: &'a Value, field: &str) -> &'a str {
    let text = |path: &[&str]| event.str_at(path).filter(|text| !text.is_empty());
    let either = |a: &[&str], b: &[&str]| text(a).or_else(|| text(b)).unwrap_or_default();
    let controller = || either(&["reportingComponent"], &["reportingController"]);
    match field.split_once('.') {
        Some(("involvedObject" | "regarding", part)) => either(&["involvedObject", part], &["regarding", part]),
        Some(_) => "",
        None => match field {
            "reportingComponent" | "reportingController" => controller(),
            "source" => match either(&["source", "component"], &["deprecatedSource", "component"]) {
                "" => controller(),
                source => source,
            },
            field => either(&[field], &[]),
        },
    }
}

fn walk<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, key| value.get(key))
}

/// Whether a scalar prints as `wanted`, without printing it to memory.
fn prints_as(value: &Value, wanted: &str) -> bool {
    struct Rest<'a>(&'a str);
    impl Write for Rest<'_> {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 = self.0.strip_prefix(text).ok_or(fmt::Error)?;
            Ok(())
        }
    }
    let mut rest = Rest(wanted);
    let written = match value {
        Value::Str(text) => return text == wanted,
        Value::Bool(b) => write!(rest, "{b}"),
        Value::Int(n) => write!(rest, "{n}"),
        Value::Float(f) => write!(rest, "{f}"),
        Value::Null => Ok(()),
        Value::List(_) | Value::Map(_) => Err(fmt::Error),
    };
    written.is_ok() && rest.0.is_empty()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::{kind::Custom, schema::Schema, value};

    fn kind(group: &str, name: &str, origin: Origin) -> Kind {
        Kind {
            group: group.into(),
            version: "v1".into(),
            kind: name.into(),
            list_kind: format!("{name}List").into(),
            plural: format!("{}s", name.to_lowercase()).into(),
            singular: name.to_lowercase().into(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced: !matches!(name, "Node" | "Namespace" | "ClusterRole"),
            verbs: Vec::new(),
            subresources: Vec::new(),
            columns: Vec::new(),
            schema: Arc::new(Schema::default()),
            origin,
        }
    }

    fn widget() -> Kind {
        let selectable = ["spec.color", "spec.size", "spec.on"].map(Text::from).to_vec();
        kind("patch.test", "Widget", Origin::Custom(Arc::new(Custom { selectable, ..Custom::default() })))
    }

    /// One line per selector that was put to the real server: `[group, kind, parameter, selector, message or null]`.
    #[test]
    fn selectors_are_accepted_and_refused_in_the_words_of_the_real_server() {
        let mut misses = Vec::new();
        for line in include_str!("testdata/selectors.jsonl").lines() {
            let row = Value::from_json(line.as_bytes()).unwrap();
            let text = |i: usize| row.as_list().unwrap()[i].as_str().unwrap_or_default();
            let kind = match text(0) {
                "patch.test" => widget(),
                group => kind(group, text(1), Origin::BuiltIn),
            };
            let says = match text(2) {
                "labelSelector" => Labels::parse(text(3)).err(),
                _ => Fields::parse(text(3)).and_then(|fields| fields.check(&kind)).err(),
            };
            let expected = row.as_list().unwrap()[4].as_str();
            if says.as_ref().map(|status| status.message.as_str()) != expected {
                misses.push(format!("{line}\n  we say {says:?}"));
            }
            assert!(says.is_none_or(|status| status.code == 400));
        }
        assert!(misses.is_empty(), "{} differ:\n{}", misses.len(), misses.join("\n"));
    }

    #[test]
    fn labels_match_as_upstream_says() {
        let labels = value!({"app": "web", "tier": "", "rank": "7"});
        let rows = [
            ("", true),
            ("app", true),
            ("!app", false),
            ("nope", false),
            ("!nope", true),
            ("app=web", true),
            ("app==web", true),
            ("app!=web", false),
            ("nope!=web", true),
            ("nope=", false),
            ("tier=", true),
            ("app in (db,web)", true),
            ("app notin (db,web)", false),
            ("nope in (a)", false),
            ("nope notin (a)", true),
            ("rank>6", true),
            ("rank>7", false),
            ("rank<8", true),
            ("app<8", false),
            ("nope<8", false),
            ("app=web,rank>6,!nope", true),
            ("app=web,rank>9", false),
        ];
        for (text, expected) in rows {
            let selector = Labels::parse(text).unwrap();
            assert_eq!(selector.matches(labels.as_map()), expected, "{text}");
            assert_eq!(Labels::parse(&selector.to_string()).unwrap(), selector, "{text} survives printing");
        }
        assert!(Labels::parse("!a,b!=c").unwrap().matches(None));
    }

    #[test]
    fn printing_sorts_requirements_and_values() {
        let rows = [
            ("z in (b,a,b), a = x ,!m", "a=x,!m,z in (a,b)"),
            ("a notin (,x)", "a notin (,x)"),
            ("a in ()", "a in ()"),
            ("b>1,a==", "a==,b>1"),
        ];
        for (text, printed) in rows {
            assert_eq!(Labels::parse(text).unwrap().to_string(), printed);
        }
    }

    #[test]
    fn a_label_selector_of_an_object_is_read_whole() {
        let selector = value!({
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["b", "a"]},
                {"key": "old", "operator": "DoesNotExist"},
            ],
        });
        let selector = Labels::of(&selector).unwrap();
        assert_eq!(selector.to_string(), "app=web,!old,tier in (a,b)");
        assert!(selector.matches(value!({"app": "web", "tier": "a"}).as_map()));
        assert!(!selector.matches(value!({"app": "web", "tier": "a", "old": ""}).as_map()));
        assert!(Labels::of(&value!({})).unwrap().matches(None), "an empty selector selects everything");
        assert!(!Labels::of(&Value::Null).unwrap().matches(None), "an absent one nothing");
        let refused = [
            (
                value!({"matchExpressions": [{"key": "a", "operator": "Is"}]}),
                "\"Is\" is not a valid label selector operator",
            ),
            (
                value!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
                "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
            ),
            (
                value!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}),
                "values: Invalid value: [\"x\"]: values set must be empty for exists and does not exist",
            ),
        ];
        for (selector, says) in refused {
            assert_eq!(Labels::of(&selector).unwrap_err(), says);
        }
    }

    #[test]
    fn fields_read_as_upstream_prints_them() {
        let object = |value| Object { value, managers: Arc::default() };
        let pod = object(value!({
            "metadata": {"name": "a,b", "namespace": "x"},
            "spec": {"nodeName": "n1"},
            "status": {"phase": "Running", "podIP": "10.0.0.9", "podIPs": [{"ip": "10.0.0.1"}]},
        }));
        let event = object(value!({
            "metadata": {"name": "e"}, "reason": "R",
            "involvedObject": {"kind": "Pod"}, "reportingComponent": "kubelet",
        }));
        let node = object(value!({"metadata": {"name": "n"}, "spec": {}}));
        let job = object(value!({"metadata": {"name": "j"}, "status": {"succeeded": 2}}));
        let custom = object(value!({"metadata": {"name": "w"}, "spec": {"color": "red", "size": 3, "on": true}}));
        let built = |group, name| kind(group, name, Origin::BuiltIn);
        type Row<'a> = (Kind, &'a Object, &'a [(&'a str, bool)]);
        let rows: &[Row<'_>] = &[
            (
                built("", "Pod"),
                &pod,
                &[
                    ("metadata.name=a\\,b", true),
                    ("metadata.name=a", false),
                    ("spec.host=n1,status.phase!=Failed", true),
                    ("spec.hostNetwork=false", true),
                    ("status.podIP=10.0.0.1", true),
                    ("status.podIPs=", true),
                    ("spec.schedulerName=", true),
                ],
            ),
            (
                built("events.k8s.io", "Event"),
                &event,
                &[("regarding.kind=Pod,reason=R", true), ("reportingController=kubelet", true), ("type=", true)],
            ),
            (built("", "Event"), &event, &[("source=kubelet", true), ("involvedObject.name!=", false)]),
            (built("", "Node"), &node, &[("spec.unschedulable=false", true), ("spec.unschedulable=true", false)]),
            (built("batch", "Job"), &job, &[("status.successful=2", true), ("status.successful=02", false)]),
            (
                widget(),
                &custom,
                &[
                    ("spec.color=red,spec.size=3,spec.on=true", true),
                    ("spec.size=33", false),
                    ("spec.on=tru", false),
                    ("spec.color!=red", false),
                ],
            ),
        ];
        for (kind, object, selectors) in rows {
            for (text, expected) in *selectors {
                let fields = Fields::parse(text).unwrap();
                fields.check(kind).unwrap();
                assert_eq!(fields.matches(kind, object), *expected, "{text}");
                assert_eq!(Fields::parse(&fields.to_string()).unwrap(), fields, "{text} survives printing");
            }
        }
        let one = Fields::parse("metadata.name=a,metadata.namespace!=b").unwrap();
        assert_eq!(one.exact("metadata.name").map(Text::as_str), Some("a"));
        assert_eq!(one.exact("metadata.namespace"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_accepted_or_refused(text in "[a-z=!(),<> in\\\\\\.\0é]{0,24}") {
            if let Ok(selector) = Labels::parse(&text) {
                let again = Labels::parse(&selector.to_string());
                prop_assert_eq!(again.ok(), Some(selector));
            }
            // Upstream sorts terms as they are written: `==\\,` before `=>`, but `=>` before the `=\\,` that is printed.
            let sorted = |text: &str| Fields::parse(text).ok().map(|mut fields| {
                fields.terms.sort_by(|a, b| (&a.field, a.equal, &a.value).cmp(&(&b.field, b.equal, &b.value)));
                fields
            });
            if let Some(fields) = sorted(&text) {
                prop_assert_eq!(sorted(&fields.to_string()), Some(fields));
            }
        }
    }
}
