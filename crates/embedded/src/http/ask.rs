//! A request taken apart: target, query, headers and body to what the store is asked.
//!
//! The order of the checks is the real server's, because a request that is wrong twice is refused for the first.

use bytes::Bytes;
use http::HeaderMap;

use super::{
    accept::{self, Encoding, Form, Offer},
    body,
    path::{Action, Target, no_resource},
    query::{self, Query, Write},
};
use crate::kubernetes::{selector::Fields, status::Status, value::Value};
use crate::{
    discovery::Catalog,
    store::request::{FieldValidation, Options, PatchType, Request, Verb},
};

/// What the store is asked, and how the answer is wanted.
#[derive(Debug, Clone)]
pub struct Ask {
    /// The request.
    pub request: Request,
    /// The form of the answer.
    pub form: Form,
    /// Whether to follow what the request would list.
    pub watch: bool,
    /// What to warn of before the store does.
    pub warnings: Vec<String>,
}

/// Why the store is not asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Objection {
    /// The request is wrong.
    Now(Status),
    /// The request is wrong, but if its object does not exist, that comes first.
    IfFound(Status),
}

impl From<Status> for Objection {
    fn from(status: Status) -> Objection {
        Objection::Now(status)
    }
}

/// The headers that matter.
#[derive(Debug, Clone, Default)]
pub struct Headers {
    /// `Accept`; empty if absent.
    pub accept: String,
    /// `Content-Type`; empty if absent.
    pub content_type: String,
    /// `User-Agent`; empty if absent.
    pub user_agent: String,
    /// Whether gzip is welcome.
    pub gzip: bool,
}

impl Headers {
    /// Reads them.
    pub fn of(headers: &HeaderMap) -> Headers {
        let text = |name: http::HeaderName| {
            headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).unwrap_or_default()
        };
        Headers {
            accept: text(http::header::ACCEPT),
            content_type: text(http::header::CONTENT_TYPE),
            user_agent: text(http::header::USER_AGENT),
            gzip: accept::accepts_gzip(&text(http::header::ACCEPT_ENCODING)),
        }
    }

    /// Whether a person will read the answer.
    pub fn pretty(&self, query: &Query) -> bool {
        accept::is_for_people(query.first("pretty"), &self.user_agent)
    }
}

/// A body that was read as far as it may be.
pub type Received = Result<Bytes, Status>;

/// Makes the store's request of an HTTP request.
pub fn ask(
    catalog: &Catalog,
    target: &Target,
    query: &Query,
    headers: &Headers,
    received: Received,
) -> Result<Ask, Objection> {
    let custom = target.kind.custom().is_some();
    if !custom {
        router_checks(target, headers)?;
    }
    let form = || accept::negotiate(&headers.accept, Offer::Resource, headers.pretty(query));
    let mut request = Request {
        group: target.kind.group.clone(),
        version: target.kind.version.clone(),
        resource: target.kind.plural.clone(),
        namespace: target.namespace.clone(),
        name: target.name.clone(),
        subresource: target.subresource.clone(),
        agent: query::agent(&headers.user_agent).into(),
        ..Request::default()
    };
    let (mut watch, mut warnings) = (false, Vec::new());
    let form = match target.action {
        Action::Get => {
            let form = form()?;
            request.options = query::get(query)?;
            form
        }
        Action::List | Action::Watch => {
            let (options, asked) = query::list(query)?;
            watch = asked || target.action == Action::Watch;
            request.verb = Verb::List;
            request.options = options;
            let form = form()?;
            single_object(&mut request)?;
            if watch && form.encoding != Encoding::Json {
                return Err(accept::not_streamable().into());
            }
            form
        }
        Action::Create => {
            let form = form()?;
            let encoding = body::Encoding::of(&headers.content_type, custom)?;
            let bytes = received?;
            request.verb = Verb::Create;
            request.options = query::write(query, Write::Create)?;
            warnings = take_object(&mut request, catalog, target, encoding, &bytes)?;
            if target.subresource.is_empty() {
                request.name = Default::default();
            }
            form
        }
        Action::Update => {
            let form = form()?;
            let bytes = received?;
            request.verb = Verb::Update;
            request.options = query::write(query, Write::Update)?;
            let encoding = body::Encoding::of(&headers.content_type, custom)?;
            warnings = take_object(&mut request, catalog, target, encoding, &bytes)?;
            form
        }
        Action::Patch => {
            let patch = body::patch_type(&headers.content_type, custom)?;
            let form = form()?;
            let bytes = received?;
            request.verb = Verb::Patch(patch);
            request.options = query::write(query, Write::Patch(patch))?;
            let body = body::patch(patch, &bytes).map_err(|status| match patch {
                PatchType::Apply => Objection::Now(status),
                PatchType::Json | PatchType::Merge | PatchType::Strategic => Objection::IfFound(status),
            })?;
            warnings = repeated(&request, body.repeated, "error strict decoding YAML: error converting YAML to JSON")?;
            request.body = Some(body.value);
            request.duplicates = body.duplicates;
            form
        }
        Action::Delete | Action::DeleteCollection => {
            let form = form()?;
            let mut options = Options::default();
            request.verb = Verb::Delete;
            if target.action == Action::DeleteCollection {
                request.verb = Verb::DeleteCollection;
                options = query::list(query)?.0;
            }
            let (wanted, body) = delete_options(query, headers, &received?)?;
            request.options = Options {
                dry_run: wanted.dry_run,
                grace_period_seconds: wanted.grace_period_seconds,
                propagation_policy: wanted.propagation_policy,
                orphan_dependents: wanted.orphan_dependents,
                ..options
            };
            request.body = body;
            form
        }
        // The caller answers these itself.
        Action::Connect => return Err(no_resource().into()),
    };
    Ok(Ask { request, form, watch, warnings })
}

/// What the router of built-in kinds checks before a handler is called.
fn router_checks(target: &Target, headers: &Headers) -> Result<(), Status> {
    if target.action == Action::Patch {
        body::patch_type(&headers.content_type, false)?;
    }
    let watchable =
        matches!(target.action, Action::List | Action::Watch) && target.kind.verbs.iter().any(|verb| verb == "watch");
    let produced = if watchable { &accept::WATCHABLE[..] } else { &accept::PRODUCED[..] };
    accept::router_accepts(&headers.accept, produced)
}

/// A list by name (the old watch prefix, or a field selector) asks for that object only.
fn single_object(request: &mut Request) -> Result<(), Status> {
    if request.name.is_empty() {
        return Ok(());
    }
    let name = std::mem::take(&mut request.name);
    let fields = Fields::parse(&request.options.field_selector)?;
    if fields.is_empty() {
        request.options.field_selector = format!("metadata.name={name}");
        return Ok(());
    }
    if fields.exact("metadata.name") != Some(&name) {
        return Err(Status::bad_request("fieldSelector metadata.name doesn't match requested name"));
    }
    Ok(())
}

fn take_object(
    request: &mut Request,
    catalog: &Catalog,
    target: &Target,
    encoding: body::Encoding,
    bytes: &[u8],
) -> Result<Vec<String>, Status> {
    let subresource = target.kind.subresource(&target.subresource);
    let body = body::object(catalog, &target.kind, subresource, encoding, bytes)?;
    let (version, kind) =
        subresource.map_or((&target.kind.version, &target.kind.kind), |sub| (&sub.version, &sub.kind));
    let why = format!("{kind} in version {version:?} cannot be handled as a {kind}: strict decoding error");
    let warnings = repeated(request, body.repeated, &why)?;
    request.body = Some(body.value);
    request.duplicates = body.duplicates;
    Ok(warnings)
}

/// What becomes of keys given twice in YAML: refused, warned of or passed over, as the request wants it.
fn repeated(request: &Request, keys: Vec<String>, why: &str) -> Result<Vec<String>, Status> {
    match request.options.field_validation {
        FieldValidation::Strict if !keys.is_empty() => {
            Err(Status::bad_request(format!("{why}: yaml: unmarshal errors:\n  {}", keys.join("\n  "))))
        }
        FieldValidation::Strict | FieldValidation::Warn => Ok(keys),
        FieldValidation::Ignore => Ok(Vec::new()),
    }
}

fn delete_options(query: &Query, headers: &Headers, bytes: &[u8]) -> Result<(Options, Option<Value>), Status> {
    if bytes.is_empty() {
        return query::delete(query);
    }
    let encoding = body::Encoding::of(&headers.content_type, false)?;
    query::delete_options(body::delete_options(encoding, bytes)?)
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::{
        discovery::samples,
        http::path::{Route, route},
    };

    fn send(line: &str, headers: &[(&str, &str)], body: &str) -> Result<Ask, Objection> {
        let catalog = samples::catalog();
        let (method, url) = line.split_once(' ').unwrap();
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let Ok(Route::Resource(target)) = route(&catalog, &method.parse::<Method>().unwrap(), path) else {
            panic!("{line} is no resource")
        };
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap());
        }
        let body = Bytes::copy_from_slice(body.as_bytes());
        ask(&catalog, &target, &Query::parse(query), &Headers::of(&map), Ok(body))
    }

    fn refused(line: &str, headers: &[(&str, &str)], body: &str) -> String {
        match send(line, headers, body) {
            Ok(_) => "fine".into(),
            Err(Objection::Now(status)) => format!("{} {}", status.code, status.message),
            Err(Objection::IfFound(status)) => format!("if found {} {}", status.code, status.message),
        }
    }

    const CONFIGS: &str = "/api/v1/namespaces/a/configmaps";

    #[test]
    fn a_request_that_is_wrong_twice_is_refused_for_the_first() {
        let text = [("content-type", "text/plain")];
        let long = "f".repeat(129);
        let manager = format!("POST {CONFIGS}?fieldManager={long}");
        assert!(refused(&manager, &text, "{").starts_with("415 "));
        assert!(refused(&manager, &[], "{").starts_with("422 CreateOptions"));
        assert!(refused(&format!("POST {CONFIGS}"), &[], "{").starts_with("400 the object provided"));
        assert!(refused(&format!("GET {CONFIGS}?limit=x"), &[("accept", "text/plain")], "").starts_with("406 406:"));
        let gadgets = "/apis/front.test/v1/gadgets?limit=x";
        assert!(refused(&format!("GET {gadgets}"), &[("accept", "text/plain")], "").starts_with("400 strconv"));
    }

    #[test]
    fn a_broken_patch_comes_second_to_a_missing_object() {
        let merge = [("content-type", "application/merge-patch+json")];
        let path = format!("PATCH {CONFIGS}/x");
        assert_eq!(refused(&path, &merge, "{"), "if found 400 error decoding patch: unexpected end of JSON input");
        let apply = [("content-type", "application/apply-patch+yaml")];
        let path = format!("PATCH {CONFIGS}/x?fieldManager=m");
        assert!(refused(&path, &apply, "5").starts_with("400 error decoding YAML"));
    }

    #[test]
    fn watching_one_object_is_watching_by_name() {
        let ask = send("GET /api/v1/watch/namespaces/a/configmaps/x", &[], "").unwrap();
        assert!(ask.watch);
        assert_eq!((ask.request.options.field_selector.as_str(), ask.request.name.as_str()), ("metadata.name=x", ""));
        let other = "GET /api/v1/watch/namespaces/a/configmaps/x?fieldSelector=metadata.name%3Dy";
        assert_eq!(refused(other, &[], ""), "400 fieldSelector metadata.name doesn't match requested name");
        let yaml = [("accept", "application/yaml")];
        assert_eq!(
            refused(&format!("GET {CONFIGS}?watch=1"), &yaml, ""),
            "406 only the following media types are accepted: application/json;stream=watch, \
             application/vnd.kubernetes.protobuf;stream=watch"
        );
    }

    #[test]
    fn a_body_beats_the_query_of_a_delete() {
        let line = format!("DELETE {CONFIGS}/x?gracePeriodSeconds=5");
        let from_query = send(&line, &[], "").unwrap().request.options.grace_period_seconds;
        let from_body = send(&line, &[], r#"{"propagationPolicy":"Orphan"}"#).unwrap().request.options;
        assert_eq!(from_query, Some(5));
        assert_eq!((from_body.grace_period_seconds, from_body.propagation_policy.as_deref()), (None, Some("Orphan")));
    }
}
