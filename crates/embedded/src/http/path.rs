//! Method and path to what is asked for, exactly as the real server routes them.
//!
//! Two routers stand behind each other there, and clients see the seam: built-in groups are served from a table of
//! paths (an unknown path is a Status, a wrong method 405, `HEAD` never allowed), custom resources by taking the path
//! apart (an unknown path is a plain page, `HEAD` reads, a missing name is 400). Both are kept here.

use std::{borrow::Cow, sync::Arc};

use http::Method;

use crate::discovery::Catalog;
use crate::kubernetes::{
    kind::{Kind, Origin},
    status::{Details, Reason, Status},
    value::Text,
};

/// What a request asks for.
#[derive(Debug, Clone)]
pub enum Route {
    /// Something done to a resource.
    Resource(Target),
    /// A document about the server.
    Document(Document),
}

/// A resource, and what to do to it.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its kind.
    pub kind: Arc<Kind>,
    /// The namespace; empty for none or all.
    pub namespace: Text,
    /// The object's name; empty for a collection.
    pub name: Text,
    /// The subresource; empty for the object itself.
    pub subresource: Text,
    /// What to do.
    pub action: Action,
}

/// What to do to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Action {
    Get,
    /// Or watch, if the query says so.
    List,
    /// By the old `/watch/` prefix.
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
    /// A stream to a container or a proxied request.
    Connect,
}

/// A document about the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Document {
    /// `/`: the paths.
    Paths,
    /// `/version`
    Version,
    /// `/healthz`, `/livez`, `/readyz`: the word `ok`.
    Health,
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/<group>`
    Group(Text),
    /// `/api/<version>` and `/apis/<group>/<version>`
    Resources {
        /// The group; empty for the core group.
        group: Text,
        /// The version.
        version: Text,
    },
    /// `/openapi/v2`
    OpenApiV2,
    /// `/openapi/v3`: which documents there are.
    OpenApiIndex,
    /// `/openapi/v3/<path>`: the document of one path, such as `apis/apps/v1`.
    OpenApi(String),
}

/// Why there is no route.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// `404 page not found`, as Go's router writes it.
    Page,
    /// Plain text with this code.
    Text(u16, String),
    /// A Status.
    Status(Status),
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Refusal {
        Refusal::Status(status)
    }
}

/// Finds what a method and a path (as in the request line, still percent-encoded) ask for.
pub fn route(catalog: &Catalog, method: &Method, path: &str) -> Result<Route, Refusal> {
    let path = decode(path).ok_or_else(|| Refusal::Text(400, "400 Bad Request".into()))?;
    let mut parts: Vec<&str> = path.strip_prefix('/').unwrap_or(&path).split('/').collect();
    if parts.last() == Some(&"") {
        parts.pop();
    }
    let group = match parts.as_slice() {
        ["api"] | ["api", _, ..] => catalog.group(""),
        ["apis", group, ..] => catalog.group(group),
        _ => None,
    };
    match parts.as_slice() {
        ["api"] => {
            only_get(method)?;
            Ok(Route::Document(Document::CoreVersions))
        }
        ["apis"] => Ok(Route::Document(Document::Groups)),
        ["apis", _] => {
            let group = group.ok_or(Refusal::Page)?;
            Ok(Route::Document(Document::Group(group.name.clone())))
        }
        ["api", version, rest @ ..] => resource_path(catalog, method, "", version, rest, &path),
        ["apis", name, version, rest @ ..] => match group {
            Some(group) if group.built_in => resource_path(catalog, method, name, version, rest, &path),
            Some(_) => custom(catalog, method, name, version, rest),
            None => Err(Refusal::Page),
        },
        other => document(method, other),
    }
}

/// Paths below a built-in group's version.
fn resource_path(
    catalog: &Catalog,
    method: &Method,
    group: &str,
    version: &str,
    rest: &[&str],
    path: &str,
) -> Result<Route, Refusal> {
    let Some(served) = catalog.version(group, version) else { return Err(no_resource().into()) };
    if rest.is_empty() {
        only_get(method)?;
        return Ok(Route::Document(Document::Resources { group: group.into(), version: served.name.clone() }));
    }
    if matches!(rest, ["watch" | "proxy"]) {
        let why = "failed to create RequestInfo: unable to determine kind and namespace from url";
        return Err(Refusal::Text(500, format!("Internal Server Error: \"{path}\": {why}, {path}")));
    }
    let lookup = |plural: &str| catalog.resource(group, version, plural).filter(|kind| kind.custom().is_none());
    built_in(&lookup, method, rest).map(Route::Resource).or_else(|refusal| {
        // A CRD may add a kind to a group that Kubernetes serves itself.
        match rest.iter().find_map(|part| catalog.resource(group, version, part)) {
            Some(kind) if kind.custom().is_some() => custom(catalog, method, group, version, rest),
            _ => Err(refusal.into()),
        }
    })
}

/// The table of paths of the built-in kinds.
fn built_in<'a>(
    lookup: &dyn Fn(&str) -> Option<&'a Arc<Kind>>,
    method: &Method,
    rest: &[&str],
) -> Result<Target, Status> {
    if let ["watch", rest @ ..] = rest {
        let mut target = built_in(lookup, &Method::GET, rest)?;
        let watched = target.subresource.is_empty() && can(&target.kind.verbs, "watch");
        if !watched {
            return Err(no_resource());
        }
        if method != Method::GET {
            return Err(not_allowed());
        }
        target.action = Action::Watch;
        return Ok(target);
    }
    // "namespaces" is both a resource and the way into a namespace; its own subresources win.
    let (namespace, rest) = match rest {
        ["namespaces", _, sub, ..] if lookup("namespaces").is_some_and(|kind| kind.subresource(sub).is_some()) => {
            ("", rest)
        }
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        rest => ("", rest),
    };
    if rest.contains(&"") {
        return Err(no_resource());
    }
    let (plural, rest) = rest.split_first().ok_or_else(no_resource)?;
    let kind = lookup(plural).ok_or_else(no_resource)?;
    if !namespace.is_empty() && !kind.namespaced {
        return Err(no_resource());
    }
    let everywhere = kind.namespaced && namespace.is_empty();
    let target = |name: &str, subresource: &str, action| Target {
        kind: kind.clone(),
        namespace: namespace.into(),
        name: name.into(),
        subresource: subresource.into(),
        action,
    };
    match rest {
        [] if everywhere => {
            pick(method, &kind.verbs, &[(Method::GET, "list", Action::List)]).map(|action| target("", "", action))
        }
        [] => pick(method, &kind.verbs, &COLLECTION).map(|action| target("", "", action)),
        _ if everywhere => Err(no_resource()),
        [name] => pick(method, &kind.verbs, &ITEM).map(|action| target(name, "", action)),
        [name, sub, deeper @ ..] => {
            let found = kind.subresource(sub).filter(|sub| deeper.is_empty() || sub.name == "proxy");
            let found = found.ok_or_else(no_resource)?;
            if is_connection(sub) {
                return pick(method, &found.verbs, &CONNECTION).map(|action| target(name, sub, action));
            }
            pick(method, &found.verbs, &SUBRESOURCE).map(|action| target(name, sub, action))
        }
    }
}

const COLLECTION: [(Method, &str, Action); 3] = [
    (Method::GET, "list", Action::List),
    (Method::POST, "create", Action::Create),
    (Method::DELETE, "deletecollection", Action::DeleteCollection),
];
const ITEM: [(Method, &str, Action); 4] = [
    (Method::GET, "get", Action::Get),
    (Method::PUT, "update", Action::Update),
    (Method::PATCH, "patch", Action::Patch),
    (Method::DELETE, "delete", Action::Delete),
];
const SUBRESOURCE: [(Method, &str, Action); 5] = [
    (Method::GET, "get", Action::Get),
    (Method::POST, "create", Action::Create),
    (Method::PUT, "update", Action::Update),
    (Method::PATCH, "patch", Action::Patch),
    (Method::DELETE, "delete", Action::Delete),
];
const CONNECTION: [(Method, &str, Action); 5] = [
    (Method::GET, "get", Action::Connect),
    (Method::POST, "create", Action::Connect),
    (Method::PUT, "update", Action::Connect),
    (Method::PATCH, "patch", Action::Connect),
    (Method::DELETE, "delete", Action::Connect),
];

/// Whether a subresource is a way to a running container rather than data.
pub fn is_connection(subresource: &str) -> bool {
    matches!(subresource, "log" | "exec" | "attach" | "portforward" | "proxy")
}

/// The row of the table that the method names. No row the kind has verbs for: no such path.
fn pick(method: &Method, verbs: &[Text], rows: &[(Method, &str, Action)]) -> Result<Action, Status> {
    let mut served = rows.iter().filter(|(_, verb, _)| can(verbs, verb)).peekable();
    if served.peek().is_none() {
        return Err(no_resource());
    }
    served.find(|(wanted, ..)| wanted == method).map(|(.., action)| *action).ok_or_else(not_allowed)
}

fn can(verbs: &[Text], verb: &str) -> bool {
    verbs.iter().any(|known| known == verb)
}

/// Paths below a group of custom resources.
fn custom(catalog: &Catalog, method: &Method, group: &str, version: &str, rest: &[&str]) -> Result<Route, Refusal> {
    let Some(served) = catalog.version(group, version) else { return Err(Refusal::Page) };
    if rest.is_empty() {
        return Ok(Route::Document(Document::Resources { group: group.into(), version: served.name.clone() }));
    }
    let (watch, rest) = match rest {
        ["watch", rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let (namespace, rest) = match rest {
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        rest => ("", rest),
    };
    let part = |at: usize| rest.get(at).copied().unwrap_or_default();
    let (plural, name, subresource) = (part(0), part(1), if watch { "" } else { part(2) });
    let kind = catalog.resource(group, version, plural).ok_or(Refusal::Page)?;
    let Origin::Custom(_) = &kind.origin else { return Err(Refusal::Page) };
    let read = matches!(*method, Method::GET | Method::HEAD);
    let everywhere = namespace.is_empty() && (watch || (read && name.is_empty()));
    if kind.namespaced == namespace.is_empty() && !(kind.namespaced && everywhere) {
        return Err(Refusal::Page);
    }
    let verb = match *method {
        _ if watch => Some((Action::Watch, "watch")),
        Method::GET | Method::HEAD if name.is_empty() => Some((Action::List, "list")),
        Method::GET | Method::HEAD => Some((Action::Get, "get")),
        Method::POST => Some((Action::Create, "create")),
        Method::PUT => Some((Action::Update, "update")),
        Method::PATCH => Some((Action::Patch, "patch")),
        Method::DELETE if name.is_empty() => Some((Action::DeleteCollection, "deletecollection")),
        Method::DELETE => Some((Action::Delete, "delete")),
        _ => None,
    };
    let unsupported = |verb: &str| {
        let message = format!("{verb} is not supported on resources of kind \"{plural}.{group}\"");
        let details = Details { group: group.into(), kind: plural.into(), ..Details::default() };
        Status { details: Some(Box::new(details)), ..Status::new(405, Reason::MethodNotAllowed, message) }
    };
    let (action, verb) = verb.ok_or_else(|| unsupported(""))?;
    if !subresource.is_empty() {
        let known = kind.subresource(subresource).ok_or_else(|| Status::not_found(group, plural, name))?;
        if !can(&known.verbs, verb) {
            return Err(unsupported(verb).into());
        }
    }
    if name.is_empty() && matches!(action, Action::Update | Action::Patch) {
        return Err(Status::bad_request("name must be provided").into());
    }
    Ok(Route::Resource(Target {
        kind: kind.clone(),
        namespace: namespace.into(),
        name: name.into(),
        subresource: subresource.into(),
        action,
    }))
}

/// Paths about the server itself.
fn document(method: &Method, parts: &[&str]) -> Result<Route, Refusal> {
    let document = match parts {
        [] => Document::Paths,
        ["version"] => {
            only_get(method)?;
            Document::Version
        }
        ["healthz" | "livez" | "readyz"] | ["healthz" | "livez" | "readyz", "ping" | "log" | "etcd"] => {
            Document::Health
        }
        ["openapi", "v2"] => Document::OpenApiV2,
        ["openapi", "v3"] => Document::OpenApiIndex,
        ["openapi", "v3", rest @ ..] => Document::OpenApi(rest.join("/")),
        _ => return Err(Refusal::Page),
    };
    Ok(Route::Document(document))
}

fn only_get(method: &Method) -> Result<(), Status> {
    if *method == Method::GET { Ok(()) } else { Err(not_allowed()) }
}

fn generic(code: u16, reason: Reason, message: &str) -> Status {
    Status { details: Some(Box::default()), ..Status::new(code, reason, message) }
}

/// 404 about no object: the path leads nowhere.
pub fn no_resource() -> Status {
    generic(404, Reason::NotFound, "the server could not find the requested resource")
}

fn not_allowed() -> Status {
    generic(405, Reason::MethodNotAllowed, "the server does not allow this method on the requested resource")
}

/// Decodes `%41`. `None` if an escape is cut short or not hexadecimal; bytes that are no UTF-8 become U+FFFD.
pub fn decode(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push((high * 16 + low) as u8);
    }
    Some(Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::samples::catalog;

    /// One line per route: `Action group/version resource namespace/name/subresource`, or the refusal.
    fn ask(line: &str) -> String {
        let (method, path) = line.split_once(' ').unwrap();
        match route(&catalog(), &method.parse().unwrap(), path) {
            Ok(Route::Document(document)) => format!("{document:?}"),
            Ok(Route::Resource(to)) => format!(
                "{:?} {} {} {}/{}/{}",
                to.action,
                to.kind.api_version(),
                to.kind.plural,
                to.namespace,
                to.name,
                to.subresource
            ),
            Err(Refusal::Page) => "page".into(),
            Err(Refusal::Text(code, text)) => format!("{code} {text}"),
            Err(Refusal::Status(status)) => format!("{} {}", status.code, status.message),
        }
    }

    #[track_caller]
    fn check(rows: &[(&str, &str)]) {
        for (line, answer) in rows {
            assert_eq!(ask(line), *answer, "{line}");
        }
    }

    const NOWHERE: &str = "404 the server could not find the requested resource";
    const METHOD: &str = "405 the server does not allow this method on the requested resource";

    #[test]
    fn built_in_kinds_are_found_by_a_table_of_paths() {
        check(&[
            ("GET /api/v1/configmaps", "List v1 configmaps //"),
            ("POST /api/v1/configmaps", METHOD),
            ("GET /api/v1/configmaps/x", NOWHERE),
            ("GET /api/v1/namespaces/a/configmaps", "List v1 configmaps a//"),
            ("GET /api/v1/namespaces/a/configmaps/", "List v1 configmaps a//"),
            ("POST /api/v1/namespaces/a/configmaps", "Create v1 configmaps a//"),
            ("DELETE /api/v1/namespaces/a/configmaps", "DeleteCollection v1 configmaps a//"),
            ("PUT /api/v1/namespaces/a/configmaps", METHOD),
            ("HEAD /api/v1/namespaces/a/configmaps", METHOD),
            ("FOO /api/v1/namespaces/a/configmaps", METHOD),
            ("GET /api/v1/namespaces/a/configmaps/x", "Get v1 configmaps a/x/"),
            ("PATCH /api/v1/namespaces/a/configmaps/x", "Patch v1 configmaps a/x/"),
            ("POST /api/v1/namespaces/a/configmaps/x", METHOD),
            ("GET /api/v1/namespaces/a/configmaps/x%2Fy", NOWHERE),
            ("GET /api/v1/namespaces/a/configmaps/x/status", NOWHERE),
            ("GET /api/v1/namespaces/a/configmaps/x%20y", "Get v1 configmaps a/x y/"),
            ("GET /api/v1/namespaces/a/pods/x/status", "Get v1 pods a/x/status"),
            ("GET /api/v1/namespaces/a/pods/x/status/y", NOWHERE),
            ("POST /api/v1/namespaces/a/pods/x/eviction", "Create v1 pods a/x/eviction"),
            ("GET /api/v1/namespaces/a/pods/x/eviction", METHOD),
            ("GET /api/v1/namespaces/a/pods/x/log", "Connect v1 pods a/x/log"),
            ("PUT /api/v1/namespaces/a/pods/x/proxy/a/b", "Connect v1 pods a/x/proxy"),
            ("GET /api/v1/namespaces/a/nodes", NOWHERE),
            ("GET /api/v1/nodes/n", "Get v1 nodes /n/"),
            ("GET /api/v1/foo", NOWHERE),
            ("GET /api/v1//nodes", NOWHERE),
            ("GET /apis/apps/v1/foo", NOWHERE),
            ("GET /apis/apps/v2/deployments", NOWHERE),
            ("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
                "Create authorization.k8s.io/v1 selfsubjectaccessreviews //"
            }),
            ("GET /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", METHOD),
            ("GET /apis/authorization.k8s.io/v1/selfsubjectaccessreviews/x", NOWHERE),
        ]);
    }

    #[test]
    fn namespaces_are_a_resource_and_a_way_in() {
        check(&[
            ("GET /api/v1/namespaces", "List v1 namespaces //"),
            ("DELETE /api/v1/namespaces", METHOD),
            ("GET /api/v1/namespaces/a", "Get v1 namespaces /a/"),
            ("GET /api/v1/namespaces/a/status", "Get v1 namespaces /a/status"),
            ("PUT /api/v1/namespaces/a/finalize", "Update v1 namespaces /a/finalize"),
            ("GET /api/v1/namespaces/a/finalize", METHOD),
            ("GET /api/v1/namespaces/a/namespaces", NOWHERE),
        ]);
    }

    #[test]
    fn the_old_watch_prefix_still_works() {
        check(&[
            ("GET /api/v1/watch/configmaps", "Watch v1 configmaps //"),
            ("GET /api/v1/watch/namespaces/a/configmaps", "Watch v1 configmaps a//"),
            ("GET /api/v1/watch/namespaces/a/configmaps/x", "Watch v1 configmaps a/x/"),
            ("GET /api/v1/watch/namespaces/a", "Watch v1 namespaces /a/"),
            ("POST /api/v1/watch/configmaps", METHOD),
            ("GET /apis/front.test/v1/watch/gadgets", "Watch front.test/v1 gadgets //"),
            ("GET /apis/front.test/v1/watch/namespaces/a/gadgets/x", "Watch front.test/v1 gadgets a/x/"),
            ("GET /api/v1/watch", {
                "500 Internal Server Error: \"/api/v1/watch\": failed to create RequestInfo: unable to determine kind \
                 and namespace from url, /api/v1/watch"
            }),
        ]);
    }

    #[test]
    fn custom_resources_are_found_by_taking_the_path_apart() {
        check(&[
            ("GET /apis/front.test/v1/gadgets", "List front.test/v1 gadgets //"),
            ("HEAD /apis/front.test/v1/namespaces/a/gadgets", "List front.test/v1 gadgets a//"),
            ("HEAD /apis/front.test/v1/namespaces/a/gadgets/x", "Get front.test/v1 gadgets a/x/"),
            ("GET /apis/front.test/v1beta1/namespaces/a/gadgets/x", "Get front.test/v1beta1 gadgets a/x/"),
            ("POST /apis/front.test/v1/namespaces/a/gadgets", "Create front.test/v1 gadgets a//"),
            ("POST /apis/front.test/v1/namespaces/a/gadgets/x", "Create front.test/v1 gadgets a/x/"),
            ("POST /apis/front.test/v1/gadgets", "page"),
            ("GET /apis/front.test/v1/gadgets/x", "page"),
            ("GET /apis/front.test/v1/foo", "page"),
            ("GET /apis/front.test/v2/gadgets", "page"),
            ("PUT /apis/front.test/v1/namespaces/a/gadgets", "400 name must be provided"),
            ("PATCH /apis/front.test/v1/namespaces/a/gadgets", "400 name must be provided"),
            ("FOO /apis/front.test/v1/namespaces/a/gadgets/x", {
                "405  is not supported on resources of kind \"gadgets.front.test\""
            }),
            ("PATCH /apis/front.test/v1/namespaces/a/gadgets/x/status", "Patch front.test/v1 gadgets a/x/status"),
            ("GET /apis/front.test/v1/namespaces/a/gadgets/x/foo", "404 gadgets.front.test \"x\" not found"),
            ("DELETE /apis/front.test/v1/namespaces/a/gadgets/x/status", {
                "405 delete is not supported on resources of kind \"gadgets.front.test\""
            }),
        ]);
    }

    #[test]
    fn documents_have_their_own_paths() {
        check(&[
            ("GET /", "Paths"),
            ("GET /version", "Version"),
            ("POST /version", METHOD),
            ("GET /readyz", "Health"),
            ("GET /healthz/ping", "Health"),
            ("GET /healthz/foo", "page"),
            ("GET /api", "CoreVersions"),
            ("GET /api/", "CoreVersions"),
            ("POST /api", METHOD),
            ("GET /api/v1", "Resources { group: \"\", version: \"v1\" }"),
            ("GET /api/v2", NOWHERE),
            ("GET /apis", "Groups"),
            ("GET /apis/apps", "Group(\"apps\")"),
            ("POST /apis/apps", "Group(\"apps\")"),
            ("GET /apis/foo", "page"),
            ("GET /apis/foo/v1", "page"),
            ("GET /apis/apps/v1/", "Resources { group: \"apps\", version: \"v1\" }"),
            ("GET /apis/apps/v2", NOWHERE),
            ("GET /apis/front.test/v1", "Resources { group: \"front.test\", version: \"v1\" }"),
            ("GET /apis/front.test/v3", "page"),
            ("GET //api/v1", "page"),
            ("GET /foo", "page"),
            ("GET /openapi", "page"),
            ("GET /openapi/v2", "OpenApiV2"),
            ("GET /openapi/v3", "OpenApiIndex"),
            ("GET /openapi/v3/apis/apps/v1", "OpenApi(\"apis/apps/v1\")"),
            ("GET /%zz", "400 400 Bad Request"),
        ]);
    }
}
