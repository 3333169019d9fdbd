//! What a server says when it refuses an object, for people: the field, the reason and what to do, instead of a page of JSON.
//!
//! Of a Secret only words that cannot hold its values are repeated.

use super::{
    id::{Id, cut},
    prune,
};
use crate::{api::constants::annotation::REPLACE, manifest::place::Step};

/// What a server said.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// Its code.
    pub code: u16,
    /// Its sentence.
    pub message: &'a str,
    /// What is wrong, each with its field; empty if it does not say so.
    pub causes: &'a [(String, String)],
}

/// What that means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// For people.
    pub message: String,
    /// The field that it is about, as the server names it: `spec.template.spec.containers[0].image`.
    pub field: Option<String>,
    /// Whether it refused because a field cannot change.
    pub immutable: bool,
}

/// The longest words of a server that are repeated.
const LONGEST: usize = 400;

/// Explains why an object was refused.
pub fn explain(id: &Id, answer: Answer<'_>) -> Explained {
    let Answer { code, message, causes } = answer;
    if let Some(field) = immutable(&answer) {
        let remedy = if prune::holds(id) {
            "; undo that, or give the object another name".to_owned()
        } else {
            format!(
                "; annotate it with `{REPLACE}: \"true\"` (or set `onImmutable: Replace` in the source) to have it deleted \
                 and created again, or give it another name"
            )
        };
        let what = if field.is_empty() { "a field" } else { field.as_str() };
        return Explained {
            message: format!("{what} cannot change once the object is there{remedy}"),
            field: Some(field).filter(|field| !field.is_empty()),
            immutable: true,
        };
    }
    let typed = message.strip_prefix("failed to create typed patch object").and_then(|rest| rest.split_once("): "));
    let named = causes.iter().map(|(_, field)| field.as_str()).find(|field| !field.is_empty());
    let named = named.or_else(|| typed.and_then(|(_, rest)| rest.split(": ").next()));
    let field = named.map(str::to_owned);
    let told = if id.is("", "Secret") {
        let harmless = harmless(&answer);
        harmless.unwrap_or_else(|| "the server refused it, in words that may hold its values".to_owned())
    } else {
        cut(message, LONGEST)
    };
    let advice = if code == 403 && message.contains(" cannot ") {
        "; give the source's ServiceAccount the right to do that"
    } else if code == 404 && message.contains("namespaces") {
        "; create the namespace, or put it into git"
    } else {
        ""
    };
    Explained { message: format!("{told} ({code}){advice}"), field, immutable: false }
}

/// The steps from an object to a field, as a server writes it: `.spec.ports[0].nodePort`, `metadata.annotations[a/b]`.
pub fn steps(field: &str) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    let mut rest = field;
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let (inside, after) = inside.split_once(']').unwrap_or((inside, ""));
            steps.push(match inside.parse() {
                Ok(index) => Step::Index(index),
                Err(_) => Step::Key(inside.trim_matches('"')),
            });
            rest = after;
        } else {
            let (key, after) = rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len()));
            if !key.is_empty() {
                steps.push(Step::Key(key));
            }
            rest = after.strip_prefix('.').unwrap_or(after);
        }
    }
    steps
}

/// What servers say of fields that cannot change: API validation, and rules in CEL of kinds of one's own.
const IMMUTABLE: [&str; 6] = [
    "is immutable",
    "may not change once set",
    "cannot change roleRef",
    "updates to statefulset spec for fields other than",
    "pod updates may not change fields other than",
    "pod updates may not add or remove containers",
];

/// The field that cannot change, if that is why; empty if it is not named.
fn immutable(answer: &Answer<'_>) -> Option<String> {
    let is_it = |words: &str| {
        IMMUTABLE.iter().any(|it| words.contains(it))
            // Of a StorageClass: `updates to provisioner are forbidden.`
            || words.contains("updates to ") && words.contains(" are forbidden")
    };
    if answer.code != 422 || !is_it(answer.message) {
        return None;
    }
    let cause = answer.causes.iter().find(|(words, _)| is_it(words)).map(|(_, field)| field.clone());
    let named = || {
        let (_, rest) = answer.message.split_once(" is invalid: ")?;
        Some(rest.split(": ").next()?.trim_start_matches('[').to_owned())
    };
    cause.filter(|field| !field.is_empty()).or_else(named).or_else(|| Some(String::new()))
}

/// What a server says of a Secret without repeating a value: nothing where that is not certain.
fn harmless(answer: &Answer<'_>) -> Option<String> {
    let Answer { code, message, causes } = *answer;
    // Rights, quotas and namespaces are said in names only; what a webhook says may be anything.
    if matches!(code, 403 | 404) && !message.contains("webhook") {
        return Some(cut(message, LONGEST));
    }
    if let Some(webhook) = message.strip_prefix("admission webhook \"").and_then(|rest| rest.split('"').next()) {
        return Some(format!("the admission webhook {webhook:?} denied it"));
    }
    // Whatever follows a known sentence is repeated only as far as it is a number or a name.
    for known in [
        "illegal base64 data at input byte ",
        "unknown field \"",
        "field not declared in schema",
        "Too long: may not be more than ",
    ] {
        if let Some((_, rest)) = message.split_once(known) {
            let is_name = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '"');
            let more: String = rest.chars().take_while(is_name).take(64).collect();
            return Some(format!(
                "{known}{}",
                if known.ends_with(' ') || known.ends_with('"') { more } else { String::new() }
            ));
        }
    }
    let tail = |(words, field): &(String, String)| {
        let detail = match words.split_once(": ") {
            // The kind of mistake, then the value, quoted as Go does it, then what is expected.
            Some(("Invalid value" | "Unsupported value" | "Duplicate value" | "Not found", rest)) => after_quote(rest)?,
            Some(("Required value" | "Forbidden" | "Too many", rest)) => rest,
            Some(_) | None => return None,
        };
        let detail = if detail.trim().is_empty() { "required value" } else { detail };
        (!field.is_empty()).then(|| format!("{field}: {detail}"))
    };
    causes.iter().find_map(tail).map(|words| cut(&words, LONGEST))
}

/// What follows a quoted text and a colon.
fn after_quote(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('"')?;
    let mut escaped = false;
    let end = inside.char_indices().find(|(_, c)| {
        let ends = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    inside.get(end?.0 + 1..)?.strip_prefix(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(
        kind: (&str, &str),
        code: u16,
        message: &str,
        causes: &[(&str, &str)],
        expected: &str,
        field: Option<&str>,
    ) {
        let causes: Vec<(String, String)> =
            causes.iter().map(|(words, field)| ((*words).to_owned(), (*field).to_owned())).collect();
        let id = Id::new(kind.0, kind.1, "shop", "x");
        let explained = explain(&id, Answer { code, message, causes: &causes });
        assert_eq!((explained.message.as_str(), explained.field.as_deref()), (expected, field));
    }

    const REPLACED: &str = "; annotate it with `tidegate.dev/replace: \"true\"` (or set `onImmutable: Replace` in the source) to \
                            have it deleted and created again, or give it another name";

    #[test]
    fn a_field_that_cannot_change_is_named_with_what_to_do() {
        for (group, kind, message, field) in [
            (
                "batch",
                "Job",
                "Job.batch \"x\" is invalid: spec.template: Invalid value: {…}: field is immutable",
                "spec.template",
            ),
            (
                "apps",
                "Deployment",
                "Deployment.apps \"x\" is invalid: spec.selector: Invalid value: {…}: field is immutable",
                "spec.selector",
            ),
            (
                "apps",
                "StatefulSet",
                "StatefulSet.apps \"x\" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden",
                "spec",
            ),
            (
                "",
                "Pod",
                "Pod \"x\" is invalid: spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`\n{…}",
                "spec",
            ),
            (
                "",
                "Service",
                "Service \"x\" is invalid: spec.clusterIPs[0]: Invalid value: [\"None\"]: may not change once set",
                "spec.clusterIPs[0]",
            ),
            (
                "rbac.authorization.k8s.io",
                "RoleBinding",
                "RoleBinding.rbac.authorization.k8s.io \"x\" is invalid: roleRef: Invalid value: {…}: cannot change roleRef",
                "roleRef",
            ),
            (
                "example.org",
                "Widget",
                "Widget.example.org \"x\" is invalid: spec.size: Invalid value: 3: Value is immutable",
                "spec.size",
            ),
            (
                "",
                "Secret",
                "Secret \"x\" is invalid: data: Forbidden: field is immutable when `immutable` is set",
                "data",
            ),
        ] {
            check(
                (group, kind),
                422,
                message,
                &[],
                &format!("{field} cannot change once the object is there{REPLACED}"),
                Some(field),
            );
        }
        let causes =
            [("Invalid value: 1: must be positive", "spec.a"), ("Invalid value: {}: field is immutable", "spec.b")];
        let expected = format!("spec.b cannot change once the object is there{REPLACED}");
        check(
            ("batch", "Job"),
            422,
            "Job.batch \"x\" is invalid: [spec.a: …, spec.b: … field is immutable]",
            &causes,
            &expected,
            Some("spec.b"),
        );
        // The remedy is not offered where it is never carried out: data and what others live in would go along.
        for (group, kind, message, field) in [
            (
                "",
                "PersistentVolumeClaim",
                "PersistentVolumeClaim \"x\" is invalid: spec: Forbidden: spec is immutable after creation except resources.requests",
                "spec",
            ),
            (
                "storage.k8s.io",
                "StorageClass",
                "StorageClass.storage.k8s.io \"x\" is invalid: provisioner: Forbidden: updates to provisioner are forbidden.",
                "provisioner",
            ),
        ] {
            let expected =
                format!("{field} cannot change once the object is there; undo that, or give the object another name");
            check((group, kind), 422, message, &[], &expected, Some(field));
        }
        check(("", "ConfigMap"), 400, "the tag is immutable", &[], "the tag is immutable (400)", None);
    }

    #[test]
    fn a_field_is_found_as_servers_write_it() {
        use Step::{Index, Key};
        assert_eq!(steps(".spec.ports[0].nodePort"), [Key("spec"), Key("ports"), Index(0), Key("nodePort")]);
        assert_eq!(steps("metadata.annotations[a.b/c]"), [Key("metadata"), Key("annotations"), Key("a.b/c")]);
        assert_eq!(steps("roleRef"), [Key("roleRef")]);
        assert_eq!(steps("data[.dockerconfigjson]"), [Key("data"), Key(".dockerconfigjson")]);
    }

    #[test]
    fn a_refused_secret_says_why_and_never_what_is_in_it() {
        let secret = ("", "Secret");
        let hidden = "the server refused it, in words that may hold its values";
        check(
            secret,
            400,
            "Secret in version \"v1\" cannot be handled as a Secret: illegal base64 data at input byte 3",
            &[],
            "illegal base64 data at input byte 3 (400)",
            None,
        );
        check(
            secret,
            500,
            "failed to create typed patch object (/x; /v1, Kind=Secret): .sops: field not declared in schema",
            &[],
            "field not declared in schema (500)",
            Some(".sops"),
        );
        check(
            secret,
            422,
            "Secret \"x\" is invalid: data[hunter2]: Required value",
            &[("Required value: ", "data[.dockerconfigjson]")],
            "data[.dockerconfigjson]: required value (422)",
            Some("data[.dockerconfigjson]"),
        );
        check(
            secret,
            422,
            "…",
            &[("Invalid value: \"hunter\\\"2: x\": unexpected end of JSON input", "data[.dockerconfigjson]")],
            "data[.dockerconfigjson]: unexpected end of JSON input (422)",
            Some("data[.dockerconfigjson]"),
        );
        check(
            secret,
            422,
            "Invalid value: hunter2",
            &[("Invalid value: hunter2: bad", "data")],
            &format!("{hidden} (422)"),
            Some("data"),
        );
        check(secret, 400, "the password hunter2 is weak", &[], &format!("{hidden} (400)"), None);
        check(
            secret,
            403,
            "admission webhook \"no.example\" denied the request: hunter2 is weak",
            &[],
            "the admission webhook \"no.example\" denied it (403)",
            None,
        );
        check(
            secret,
            403,
            "secrets \"x\" is forbidden: User \"u\" cannot patch resource \"secrets\"",
            &[],
            "secrets \"x\" is forbidden: User \"u\" cannot patch resource \"secrets\" (403); give the source's ServiceAccount the right to do that",
            None,
        );
        check(
            secret,
            403,
            "secrets \"x\" is forbidden: exceeded quota: q, requested: secrets=1, used: secrets=1, limited: secrets=1",
            &[],
            "secrets \"x\" is forbidden: exceeded quota: q, requested: secrets=1, used: secrets=1, limited: secrets=1 (403)",
            None,
        );
    }
}
