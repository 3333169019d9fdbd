//! What the API server says when it says no: `Status` objects with the codes, reasons, causes and words of the real one.
//!
//! One constructor per kind of refusal; the text is made here and nowhere else.

use std::{fmt, sync::LazyLock};

use regex::Regex;
use serde::Serialize;

use super::value::Value;

/// A failed request, as `v1.Status`.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// The HTTP code.
    pub code: u16,
    /// The machine-readable reason, such as `NotFound`.
    pub reason: Reason,
    /// The sentence for people.
    pub message: String,
    /// What it was about, if it was about an object.
    pub details: Option<Box<Details>>,
    /// Where an expired list may go on (`metadata.continue`).
    pub continue_token: Option<String>,
}

/// The object a [`Status`] is about, and why it was refused.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    /// The object's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The object's API group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// A kind for validation failures, a resource otherwise, as upstream mixes them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The object's uid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// One entry per problem.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// When the client may try again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u32>,
}

/// One problem of several.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cause {
    /// Such as `FieldValueInvalid`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The sentence without the field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The field's path.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

/// `metav1.StatusReason`. [`Reason::Unknown`] is absent on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub enum Reason {
    Unknown,
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    AlreadyExists,
    Conflict,
    Gone,
    Expired,
    Invalid,
    MethodNotAllowed,
    NotAcceptable,
    UnsupportedMediaType,
    RequestEntityTooLarge,
    TooManyRequests,
    InternalError,
    ServiceUnavailable,
    Timeout,
}

impl Status {
    /// A refusal with this code, reason and message, about no object in particular.
    pub fn new(code: u16, reason: Reason, message: impl Into<String>) -> Status {
        Status { code, reason, message: message.into(), details: None, continue_token: None }
    }

    fn about(mut self, group: &str, kind: &str, name: &str) -> Status {
        let (name, group, kind) = (name.into(), group.into(), kind.into());
        self.details = Some(Box::new(Details { name, group, kind, ..Details::default() }));
        self
    }

    /// Adds one cause to the details.
    pub fn because(mut self, cause: Cause) -> Status {
        self.details.get_or_insert_default().causes.push(cause);
        self
    }

    /// 400: the request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Status {
        Status::new(400, Reason::BadRequest, message)
    }

    /// 404: there is no such object. `resource` is the plural.
    pub fn not_found(group: &str, resource: &str, name: &str) -> Status {
        let what = qualified(group, resource);
        Status::new(404, Reason::NotFound, format!("{what} \"{name}\" not found")).about(group, resource, name)
    }

    /// 409: there is one already.
    pub fn already_exists(group: &str, resource: &str, name: &str) -> Status {
        let what = qualified(group, resource);
        Status::new(409, Reason::AlreadyExists, format!("{what} \"{name}\" already exists"))
            .about(group, resource, name)
    }

    /// 409: somebody else was faster, or the state forbids it.
    pub fn conflict(group: &str, resource: &str, name: &str, why: &str) -> Status {
        let what = qualified(group, resource);
        let message = format!("Operation cannot be fulfilled on {what} \"{name}\": {why}");
        Status::new(409, Reason::Conflict, message).about(group, resource, name)
    }

    /// 409 in the words of optimistic concurrency.
    pub fn stale(group: &str, resource: &str, name: &str) -> Status {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Status::conflict(group, resource, name, why)
    }

    /// 403: not allowed, for this reason.
    pub fn forbidden(group: &str, resource: &str, name: &str, why: &str) -> Status {
        let what = qualified(group, resource);
        let message = match name {
            "" => format!("{what} is forbidden: {why}"),
            name => format!("{what} \"{name}\" is forbidden: {why}"),
        };
        Status::new(403, Reason::Forbidden, message).about(group, resource, name)
    }

    /// 422: the object breaks these rules. `kind` is the kind, not the resource.
    pub fn invalid(group: &str, kind: &str, name: &str, problems: &[FieldError]) -> Status {
        let what = qualified(group, kind);
        let texts: Vec<String> = problems.iter().map(FieldError::to_string).collect();
        // Go's aggregate prints one problem bare and several in brackets, each text once.
        let mut distinct: Vec<&String> = Vec::new();
        for text in &texts {
            if !distinct.contains(&text) {
                distinct.push(text);
            }
        }
        let list = match distinct.as_slice() {
            [one] => (*one).clone(),
            many => format!("[{}]", many.iter().map(|s| s.as_str()).collect::<Vec<_>>().join(", ")),
        };
        let mut status =
            Status::new(422, Reason::Invalid, format!("{what} \"{name}\" is invalid: {list}")).about(group, kind, name);
        for problem in problems {
            status = status.because(problem.cause());
        }
        status
    }

    /// 410: what was asked for is no longer kept.
    pub fn expired(message: impl Into<String>) -> Status {
        Status::new(410, Reason::Expired, message)
    }

    /// 500: upstream answers several client mistakes with this, so we do too.
    pub fn internal(message: impl fmt::Display) -> Status {
        let mut status = Status::new(500, Reason::InternalError, format!("Internal error occurred: {message}"));
        status.details = Some(Box::new(Details {
            causes: vec![Cause { message: message.to_string(), ..Cause::default() }],
            ..Details::default()
        }));
        status
    }

    /// 500 for an error that is no API error upstream: no reason, the text alone.
    pub fn internal_bare(message: impl Into<String>) -> Status {
        Status::new(500, Reason::Unknown, message)
    }

    /// The `v1.Status` object.
    pub fn to_value(&self) -> Value {
        let mut value = crate::value!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if self.reason != Reason::Unknown {
            value.set_at(&["reason"], format!("{:?}", self.reason));
        }
        if let Some(token) = &self.continue_token {
            value.set_at(&["metadata", "continue"], token.as_str());
        }
        if let Some(details) = &self.details {
            let details = serde_json::to_value(details).unwrap_or_default();
            value.set_at(&["details"], Value::from(details));
        }
        value
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

/// `deployments.apps`, or `pods` for the core group.
pub fn qualified(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

/// One rule an object breaks: `field.Error`.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// Where: `spec.template.spec.containers[0].image`.
    pub field: String,
    /// Which rule.
    pub rule: Rule,
    /// In words; may be empty.
    pub detail: String,
}

/// The kinds of `field.Error`, with the offending value where upstream prints it.
#[derive(Debug, Clone, PartialEq)]
pub enum Rule {
    /// `Required value`
    Required,
    /// `Invalid value`
    Invalid(Value),
    /// `Unsupported value`, with the values that are
    NotSupported(Value, Vec<String>),
    /// `Duplicate value`
    Duplicate(Value),
    /// `Forbidden`
    Forbidden,
    /// `Too long`; the limit in bytes
    TooLong(usize),
    /// `Too many`; the number given and the limit
    TooMany(usize, usize),
    /// `Not found`
    NotFound(Value),
    /// `Invalid value` of the wrong type (`FieldValueTypeInvalid`)
    TypeInvalid(Value),
    /// `Internal error`
    Internal,
    /// `Invalid value` of an object or list that is not printed
    InvalidWhole,
    /// `Duplicate value` of an object or list that is not printed
    DuplicateWhole,
    /// One of the others whose value upstream prints as a Go struct, with its own field names and order.
    Printed(Box<Rule>, String),
}

impl FieldError {
    /// The field must be given.
    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> FieldError {
        FieldError { field: field.into(), rule: Rule::Required, detail: detail.into() }
    }

    /// The value is wrong.
    pub fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> FieldError {
        FieldError { field: field.into(), rule: Rule::Invalid(value.into()), detail: detail.into() }
    }

    /// The value is none of those allowed.
    pub fn not_supported(field: impl Into<String>, value: impl Into<Value>, allowed: &[&str]) -> FieldError {
        let allowed = allowed.iter().map(|s| s.to_string()).collect();
        FieldError { field: field.into(), rule: Rule::NotSupported(value.into(), allowed), detail: String::new() }
    }

    /// The value is there twice.
    pub fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> FieldError {
        FieldError { field: field.into(), rule: Rule::Duplicate(value.into()), detail: String::new() }
    }

    /// The field may not be set, or not be changed.
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> FieldError {
        FieldError { field: field.into(), rule: Rule::Forbidden, detail: detail.into() }
    }

    /// The text is longer than `limit` bytes.
    pub fn too_long(field: impl Into<String>, limit: usize) -> FieldError {
        FieldError { field: field.into(), rule: Rule::TooLong(limit), detail: String::new() }
    }

    /// There are more than `limit` items.
    pub fn too_many(field: impl Into<String>, given: usize, limit: usize) -> FieldError {
        FieldError { field: field.into(), rule: Rule::TooMany(given, limit), detail: String::new() }
    }

    /// The same problem with its value printed as this text; see [`Rule::Printed`].
    pub fn printed(mut self, value: impl Into<String>) -> FieldError {
        self.rule = Rule::Printed(Box::new(self.rule), value.into());
        self
    }

    /// The words after the field's path.
    fn body(&self) -> String {
        let (rule, printed) = match &self.rule {
            Rule::Printed(rule, text) => (rule.as_ref(), Some(text.as_str())),
            rule => (rule, None),
        };
        let shown = |value: &Value| match printed {
            Some(text) => text.to_owned(),
            None => shown(value),
        };
        let what = match rule {
            Rule::Required => "Required value".to_owned(),
            Rule::Forbidden => "Forbidden".to_owned(),
            Rule::Internal | Rule::Printed(..) => "Internal error".to_owned(),
            Rule::InvalidWhole => "Invalid value".to_owned(),
            Rule::DuplicateWhole => "Duplicate value".to_owned(),
            Rule::Invalid(value) | Rule::TypeInvalid(value) => format!("Invalid value: {}", shown(value)),
            Rule::Duplicate(value) => format!("Duplicate value: {}", shown(value)),
            Rule::NotFound(value) => format!("Not found: {}", shown(value)),
            Rule::NotSupported(value, allowed) => {
                let quoted: Vec<String> = allowed.iter().map(|s| format!("{s:?}")).collect();
                let detail = match quoted.is_empty() {
                    true => String::new(),
                    false => format!(": supported values: {}", quoted.join(", ")),
                };
                return format!("Unsupported value: {}{detail}", shown(value));
            }
            Rule::TooLong(limit) => return format!("Too long: may not be more than {limit} bytes"),
            Rule::TooMany(given, limit) => {
                return format!(
                    "Too many: {given}: must have at most {limit} item{}",
                    if *limit == 1 { "" } else { "s" }
                );
            }
        };
        if self.detail.is_empty() { what } else { format!("{what}: {}", self.detail) }
    }

    fn cause(&self) -> Cause {
        Cause { reason: self.reason().into(), message: self.body(), field: self.field.clone() }
    }

    fn plain_rule(&self) -> &Rule {
        match &self.rule {
            Rule::Printed(rule, _) => rule,
            rule => rule,
        }
    }

    /// `field.ErrorType`, such as `FieldValueInvalid`.
    pub fn reason(&self) -> &'static str {
        match self.plain_rule() {
            Rule::Required => "FieldValueRequired",
            Rule::Invalid(_) | Rule::InvalidWhole => "FieldValueInvalid",
            Rule::NotSupported(..) => "FieldValueNotSupported",
            Rule::Duplicate(_) | Rule::DuplicateWhole => "FieldValueDuplicate",
            Rule::Forbidden => "FieldValueForbidden",
            Rule::TooLong(_) => "FieldValueTooLong",
            Rule::TooMany(..) => "FieldValueTooMany",
            Rule::NotFound(_) => "FieldValueNotFound",
            Rule::TypeInvalid(_) => "FieldValueTypeInvalid",
            Rule::Internal | Rule::Printed(..) => "InternalError",
        }
    }

    /// The kind of problem in words, such as `Invalid value`.
    pub fn kind(&self) -> &'static str {
        match self.plain_rule() {
            Rule::Required => "Required value",
            Rule::Invalid(_) | Rule::TypeInvalid(_) | Rule::InvalidWhole => "Invalid value",
            Rule::NotSupported(..) => "Unsupported value",
            Rule::Duplicate(_) | Rule::DuplicateWhole => "Duplicate value",
            Rule::Forbidden => "Forbidden",
            Rule::TooLong(_) => "Too long",
            Rule::TooMany(..) => "Too many",
            Rule::NotFound(_) => "Not found",
            Rule::Internal | Rule::Printed(..) => "Internal error",
        }
    }

    /// What is wrong with the value, without naming it: `supported values: "A", "B"`.
    pub fn explanation(&self) -> String {
        match self.plain_rule() {
            Rule::NotSupported(_, allowed) if !allowed.is_empty() => {
                let quoted: Vec<String> = allowed.iter().map(|s| go_quoted(s)).collect();
                format!("supported values: {}", quoted.join(", "))
            }
            Rule::TooLong(limit) => format!("may not be more than {limit} bytes"),
            Rule::TooMany(_, limit) => {
                format!("must have at most {limit} item{}", if *limit == 1 { "" } else { "s" })
            }
            _ => self.detail.clone(),
        }
    }

    /// The offending value, where there is one: as JSON, in upstream's order of fields where that is known.
    pub fn bad_value(&self) -> Option<String> {
        if let Rule::Printed(_, text) = &self.rule {
            return Some(text.clone());
        }
        match &self.rule {
            Rule::Invalid(value) | Rule::TypeInvalid(value) | Rule::Duplicate(value) | Rule::NotFound(value) => {
                Some(value.to_json())
            }
            Rule::NotSupported(value, _) => Some(value.to_json()),
            Rule::TooMany(given, _) => Some(given.to_string()),
            Rule::Required
            | Rule::Forbidden
            | Rule::TooLong(_)
            | Rule::Internal
            | Rule::InvalidWhole
            | Rule::DuplicateWhole
            | Rule::Printed(..) => None,
        }
    }

    /// Upstream itself stumbled.
    pub fn internal(field: impl Into<String>, detail: impl Into<String>) -> FieldError {
        FieldError { field: field.into(), rule: Rule::Internal, detail: detail.into() }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// A bad value as upstream prints it: strings quoted, everything else as JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::Str(s) => go_quoted(s),
        Value::Float(f) => go_float(*f),
        other => other.to_json(),
    }
}

/// Go's `%q`: like a JSON string, but `<`, `>`, `&` and printable characters as they are.
pub fn go_quoted(s: &str) -> String {
    let mut out = String::with_capacity(s.len() + 2);
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => out.push_str(&format!("\\x{:02x}", c as u32)),
            c if !c.is_ascii() && !is_print(c) => match c as u32 {
                code @ ..=0xffff => out.push_str(&format!("\\u{code:04x}")),
                code => out.push_str(&format!("\\U{code:08x}")),
            },
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Go's `unicode.IsPrint`, of a character beyond ASCII.
fn is_print(c: char) -> bool {
    #[allow(clippy::unwrap_used)] // a constant, and a test uses it
    static UNPRINTABLE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"[\p{C}\p{Z}]").unwrap());
    !UNPRINTABLE.is_match(c.encode_utf8(&mut [0; 4]))
}

/// Go's `%v` of a float: the shortest digits, with an exponent below 0.0001 and from a million on.
pub fn go_float(f: f64) -> String {
    if f == 0.0 || !f.is_finite() {
        return match f {
            f if f.is_nan() => "NaN".to_owned(),
            f if f.is_infinite() => if f > 0.0 { "+Inf" } else { "-Inf" }.to_owned(),
            f if f.is_sign_negative() => "-0".to_owned(),
            _ => "0".to_owned(),
        };
    }
    let exponential = format!("{f:e}");
    let (digits, exponent) = exponential.split_once('e').unwrap_or((&exponential, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return format!("{f}");
    }
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_read_as_upstream_prints_them() {
        let rows = [
            (FieldError::required("spec.selector", ""), "spec.selector: Required value"),
            (
                FieldError::invalid("spec.replicas", -1, "must be greater than or equal to 0"),
                "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
            ),
            (
                FieldError::not_supported("spec.type", "Foo", &["ClusterIP", "NodePort"]),
                "spec.type: Unsupported value: \"Foo\": supported values: \"ClusterIP\", \"NodePort\"",
            ),
            (FieldError::duplicate("spec.ports[1].name", "a\"b"), "spec.ports[1].name: Duplicate value: \"a\\\"b\""),
            (
                FieldError::duplicate("spec.ports[1]", Value::Null).printed(r#"{"Name":""}"#),
                r#"spec.ports[1]: Duplicate value: {"Name":""}"#,
            ),
        ];
        for (problem, text) in rows {
            assert_eq!(problem.to_string(), text);
        }
    }

    #[test]
    fn several_problems_stand_in_brackets() {
        let problems = [FieldError::required("a", ""), FieldError::required("b", "say it")];
        let status = Status::invalid("apps", "Deployment", "web", &problems);
        assert_eq!(
            status.message,
            "Deployment.apps \"web\" is invalid: [a: Required value, b: Required value: say it]"
        );
        assert_eq!(status.to_value().list_at(&["details", "causes"]).len(), 2);
    }

    #[test]
    fn floats_and_odd_characters_print_as_go_prints_them() {
        let rows = [(1.0, "1"), (1.5, "1.5"), (100000.0, "100000"), (1e6, "1e+06"), (12345678.9, "1.23456789e+07")];
        for (float, text) in rows {
            assert_eq!(go_float(float), text);
        }
        assert_eq!((go_float(0.0001), go_float(0.00001)), ("0.0001".to_owned(), "1e-05".to_owned()));
        assert_eq!(go_quoted("é\u{200b}\u{a0}😀\u{f0000}"), "\"é\\u200b\\u00a0😀\\U000f0000\"");
    }
}
