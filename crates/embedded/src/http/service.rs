//! The cluster as a `tower::Service`: what kube's client calls in process and the listener calls for everybody else.

use std::{
    collections::HashMap,
    convert::Infallible,
    future::Future,
    hash::{DefaultHasher, Hash, Hasher},
    io::Write,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use flate2::{Compression, write::GzEncoder};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use jiff::Timestamp;

use super::{
    accept::{self, Form, Offer},
    ask::{Ask, Headers, Objection, Received, ask},
    body,
    cluster::Cluster,
    path::{self, Action, Document, Refusal, Route, Target},
    query::Query,
    render::{self, Include},
    review,
    watch::{Shown, Stream},
};
use crate::{
    discovery::Catalog,
    kubernetes::{
        kind::Kind,
        status::{Reason, Status},
        value::{Text, Value},
    },
    openapi,
    store::request::{Request as StoreRequest, Response as StoreResponse, Verb},
    value,
};

/// The front of one cluster. Clones share it.
#[derive(Clone)]
pub struct Front(Arc<Shared>);

struct Shared {
    cluster: Cluster,
    settings: Settings,
    documents: Mutex<HashMap<String, (String, Bytes)>>,
}

/// What a front knows besides its cluster.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The bearer token every request must carry; `None` lets everybody in.
    pub token: Option<String>,
    /// Where clients find the server, as `/api` tells them.
    pub address: String,
}

impl Front {
    /// A front for this cluster.
    pub fn new(cluster: Cluster, settings: Settings) -> Front {
        Front(Arc::new(Shared { cluster, settings, documents: Mutex::default() }))
    }

    /// The cluster behind it.
    pub fn cluster(&self) -> &Cluster {
        &self.0.cluster
    }
}

/// The body of an answer.
pub enum Body {
    /// All of it.
    Whole(Option<Bytes>),
    /// Events as they happen.
    Events(Stream),
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Body::Whole(bytes) => {
                let bytes = bytes.take().filter(|bytes| !bytes.is_empty());
                Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
            }
            Body::Events(stream) => Pin::new(stream).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Body::Whole(bytes) if bytes.as_ref().is_none_or(Bytes::is_empty))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Body::Events(_) => SizeHint::default(),
        }
    }
}

impl<B> tower::Service<Request<B>> for Front
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let front = self.clone();
        Box::pin(async move { Ok(front.answer(request).await) })
    }
}

/// What is known about a request while it is answered.
struct Call {
    headers: Headers,
    query: Query,
    catalog: Arc<Catalog>,
}

impl Call {
    fn plain_form(&self) -> Result<Form, Status> {
        accept::negotiate(&self.headers.accept, Offer::Plain, self.headers.pretty(&self.query))
    }

    fn refusal(&self, status: &Status) -> Response<Body> {
        let form = accept::for_error(&self.headers.accept, self.headers.pretty(&self.query));
        let mut response = page(status.code, form.encoding.media_type(), render::write(form, &status.to_value()));
        let retry = status.details.as_ref().and_then(|details| details.retry_after_seconds);
        if let Some(seconds) = retry {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

impl Front {
    async fn answer<B: http_body::Body>(&self, request: Request<B>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let call = Call {
            headers: Headers::of(&parts.headers),
            query: Query::parse(parts.uri.query().unwrap_or_default()),
            catalog: self.0.cluster.catalog(),
        };
        let route = path::route(&call.catalog, &parts.method, parts.uri.path());
        // Read even if the request is refused: on HTTP/1.1 an unread body would end the connection under the client's
        // next request.
        let received = receive(body).await;
        let public = matches!(route, Ok(Route::Document(Document::Health | Document::Version)));
        if !public && !self.is_welcome(&parts.headers) {
            return call.refusal(&Status::new(401, Reason::Unauthorized, "Unauthorized"));
        }
        let response = match route {
            Ok(Route::Document(document)) => self.document(&call, &document, &parts.headers),
            Ok(Route::Resource(target)) if target.action == Action::Connect => self.connection(&target),
            Ok(Route::Resource(target)) => self.resource(&call, &target, received),
            Err(Refusal::Page) => Ok(text(404, "404 page not found\n")),
            Err(Refusal::Text(code, words)) => Ok(text(code, &format!("{words}\n"))),
            Err(Refusal::Status(status)) => Err(status),
        };
        let response = response.unwrap_or_else(|status| call.refusal(&status));
        tracing::debug!(method = %parts.method, uri = %parts.uri, code = response.status().as_u16());
        if call.headers.gzip { zipped(response) } else { response }
    }

    fn is_welcome(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.0.settings.token else { return true };
        let given = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
        let given = given.strip_prefix(b"Bearer ").unwrap_or_default();
        // Every byte is looked at, however early they differ.
        given.len() == token.len() && given.iter().zip(token.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
    }

    fn resource(&self, call: &Call, target: &Target, received: Received) -> Result<Response<Body>, Status> {
        let Ask { mut request, form, watch, warnings } =
            match ask(&call.catalog, target, &call.query, &call.headers, received) {
                Ok(asked) => asked,
                Err(Objection::Now(status)) => return Err(status),
                Err(Objection::IfFound(status)) => return Err(self.missing(target).unwrap_or(status)),
            };
        let include = call.query.first("includeObject");
        if matches!(form.view, accept::View::Table(_)) {
            // Refused before anything is written.
            Include::parse(include)?;
        }
        if watch {
            return self.watch(&request, form, include);
        }
        if let Some(response) = self.special(target, &mut request)? {
            return Ok(page(response.0, form.encoding.media_type(), render::write(form, &response.1)));
        }
        let (outcome, now) = self.0.cluster.apply(request);
        let mut response = outcome?;
        response.warnings.splice(0..0, warnings);
        respond(&response, form, include, now)
    }

    /// The refusal of a read of the target, if it is refused.
    fn missing(&self, target: &Target) -> Option<Status> {
        let request = StoreRequest {
            verb: Verb::Get,
            group: target.kind.group.clone(),
            version: target.kind.version.clone(),
            resource: target.kind.plural.clone(),
            namespace: target.namespace.clone(),
            name: target.name.clone(),
            ..StoreRequest::default()
        };
        self.0.cluster.apply(request).0.err()
    }

    /// Answers what is asked and never stored.
    fn special(&self, target: &Target, request: &mut StoreRequest) -> Result<Option<(u16, Value)>, Status> {
        let kind = &target.kind;
        if kind.custom().is_some() {
            return Ok(None);
        }
        if review::is_review(kind) {
            let review = request.body.take().unwrap_or_default();
            return Ok(Some((201, review::answer(kind, review, self.0.settings.token.as_deref()))));
        }
        if kind.is("", "ServiceAccount") && target.subresource == "token" {
            if let Some(status) = self.missing(target) {
                return Err(status);
            }
            let (body, now) = (request.body.take().unwrap_or_default(), self.0.cluster.now());
            return Ok(Some((201, review::token_request(body, &target.namespace, &target.name, now))));
        }
        if kind.is("", "ComponentStatus") {
            return components(target).map(|value| Some((200, value)));
        }
        if kind.is("", "Binding") {
            let name = request.body.as_ref().and_then(|body| body.str_at(&["metadata", "name"])).unwrap_or_default();
            request.name = name.into();
            request.resource = "pods".into();
            request.subresource = "binding".into();
        }
        Ok(None)
    }

    fn watch(&self, request: &StoreRequest, form: Form, include: Option<&str>) -> Result<Response<Body>, Status> {
        let include = match form.view {
            accept::View::Table(_) => Include::parse(include)?,
            _ => Include::default(),
        };
        let cluster = &self.0.cluster;
        let watch = cluster.watch(request)?;
        let chance = cluster.with(|store| store.chance()) as f64 / u64::MAX as f64;
        let shown = Shown { view: form.view, include, headings: true };
        let stream = Stream::new(cluster.clone(), watch, shown, request.options.timeout_seconds, chance);
        let mut response = page(200, "application/json", Vec::new());
        *response.body_mut() = Body::Events(stream);
        Ok(response)
    }

    /// Logs, exec and the like: says why there are none, if the pod exists.
    fn connection(&self, target: &Target) -> Result<Response<Body>, Status> {
        let why = Status::new(501, Reason::Unknown, review::no_process(&target.subresource));
        Err(self.missing(target).unwrap_or(why))
    }
}

fn components(target: &Target) -> Result<Value, Status> {
    let all = review::components();
    if target.name.is_empty() {
        let mut list = value!({"kind": "ComponentStatusList", "apiVersion": "v1", "metadata": {}});
        list.set_at(&["items"], Value::list(all));
        return Ok(list);
    }
    let found = all.into_iter().find(|component| component.str_at(&["metadata", "name"]) == Some(&target.name));
    found.ok_or_else(|| Status::not_found("", "componentstatuses", &target.name))
}

async fn receive<B: http_body::Body>(body: B) -> Received {
    if body.size_hint().lower() > body::LIMIT as u64 {
        return Err(body::too_large());
    }
    let mut body = std::pin::pin!(body);
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Status::bad_request("the body could not be read"))?;
        let Ok(mut data) = frame.into_data() else { continue };
        while bytes::Buf::has_remaining(&data) {
            let chunk = bytes::Buf::chunk(&data);
            bytes.extend_from_slice(chunk);
            let length = chunk.len();
            bytes::Buf::advance(&mut data, length);
        }
        if bytes.len() > body::LIMIT {
            return Err(body::too_large());
        }
    }
    Ok(bytes.freeze())
}

fn respond(
    response: &StoreResponse,
    form: Form,
    include: Option<&str>,
    now: Timestamp,
) -> Result<Response<Body>, Status> {
    let bytes = render::answer(form, &response.answer, include, now)?;
    let mut page = page(response.code, form.encoding.media_type(), bytes);
    for warning in &response.warnings {
        if let Some(value) = warning_header(warning) {
            page.headers_mut().append(header::WARNING, value);
        }
    }
    Ok(page)
}

/// `299 - "text"`
fn warning_header(text: &str) -> Option<HeaderValue> {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
    HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes()).ok()
}

fn page(code: u16, media_type: &str, bytes: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::Whole(Some(bytes.into())));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(media_type) {
        headers.insert(header::CONTENT_TYPE, value);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

fn text(code: u16, words: &str) -> Response<Body> {
    let mut response = page(code, "text/plain; charset=utf-8", words.to_owned());
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Answers larger than this are compressed, as the real server's are.
const ZIP_FROM: usize = 128 * 1024;

fn zipped(response: Response<Body>) -> Response<Body> {
    let Body::Whole(Some(bytes)) = response.body() else { return response };
    if bytes.len() <= ZIP_FROM {
        return response;
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    let zipped = encoder.write_all(bytes).and_then(|()| encoder.finish());
    let Ok(zipped) = zipped else { return response };
    let mut response = response.map(|_| Body::Whole(Some(zipped.into())));
    response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response.headers_mut().append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    response
}

impl Front {
    fn document(&self, call: &Call, document: &Document, headers: &HeaderMap) -> Result<Response<Body>, Status> {
        let catalog = &call.catalog;
        let plain = |value: &Value| {
            let form = call.plain_form()?;
            Ok(page(200, form.encoding.media_type(), render::write(form, value)))
        };
        match document {
            Document::Paths => Ok(page(200, "application/json", indented(&catalog.paths()))),
            Document::Version => {
                accept::router_accepts(&call.headers.accept, &["application/json"])?;
                Ok(page(200, "application/json", indented(&version())))
            }
            Document::Health => Ok(text(200, "ok")),
            Document::CoreVersions | Document::Groups => {
                let core = *document == Document::CoreVersions;
                if let Some(version) = wants_aggregated(&call.headers.accept) {
                    return Ok(self.aggregated(catalog, core, version, headers));
                }
                if core {
                    accept::router_accepts(&call.headers.accept, &accept::PRODUCED)?;
                    return plain(&catalog.core_versions(&self.0.settings.address));
                }
                plain(&catalog.group_list())
            }
            Document::Group(name) => match catalog.group(name) {
                Some(group) => plain(&group.to_value()),
                None => Ok(text(404, "404 page not found\n")),
            },
            Document::Resources { group, version } => match (catalog.group(group), catalog.version(group, version)) {
                (Some(group), Some(version)) => {
                    if group.built_in {
                        accept::router_accepts(&call.headers.accept, &accept::PRODUCED)?;
                    }
                    plain(&group.resources(version))
                }
                _ => Ok(text(404, "404 page not found\n")),
            },
            Document::OpenApiV2 => Ok(self.openapi_v2(call)),
            Document::OpenApiIndex => Ok(page(200, "application/json", self.openapi_index(catalog))),
            Document::OpenApi(path) => Ok(self.openapi(catalog, path, headers)),
        }
    }

    fn aggregated(&self, catalog: &Catalog, core: bool, version: &str, headers: &HeaderMap) -> Response<Body> {
        let hash = self.definitions().fingerprint(catalog, "");
        let name = format!("{version} {core}");
        let render = || Some(render::write(Form::default(), &catalog.aggregated(core, version)));
        let bytes = self.rendered(&name, &hash, render).unwrap_or_default();
        let media_type = format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList");
        let mut response = page(200, &media_type, bytes);
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
        tagged(response, &hash, headers)
    }

    fn openapi_index(&self, catalog: &Catalog) -> Vec<u8> {
        let definitions = self.definitions();
        let paths: serde_json::Map<String, serde_json::Value> = openapi::paths(catalog)
            .into_iter()
            .map(|path| {
                let url = format!("/openapi/v3/{path}?hash={}", definitions.fingerprint(catalog, &path));
                (path, serde_json::json!({"serverRelativeURL": url}))
            })
            .collect();
        serde_json::json!({"paths": paths}).to_string().into_bytes()
    }

    fn openapi(&self, catalog: &Catalog, path: &str, headers: &HeaderMap) -> Response<Body> {
        let definitions = self.definitions();
        let hash = definitions.fingerprint(catalog, path);
        let bytes = self.rendered(path, &hash, || {
            let document = openapi::document(catalog, path, &|kind| definitions.declared(kind))?;
            serde_json::to_vec(&document).ok()
        });
        match bytes {
            Some(bytes) => tagged(page(200, "application/json", bytes), &hash, headers),
            None => page(404, "text/plain", Vec::new()),
        }
    }

    fn openapi_v2(&self, call: &Call) -> Response<Body> {
        let accept = &call.headers.accept;
        if !accept.is_empty() && call.plain_form().is_err() {
            // kubectl asks for this form when it meets a kind that the v3 documents do not have, and checks nothing
            // of such a kind: a document that describes nothing says all it needs.
            return match accept.contains("proto-openapi.spec.v2") {
                true => page(200, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", EMPTY_V2),
                false => page(406, "text/plain", Vec::new()),
            };
        }
        let definitions = self.definitions();
        let hash = definitions.fingerprint(&call.catalog, "");
        let bytes = self.rendered("v2", &hash, || {
            serde_json::to_vec(&openapi::swagger(&call.catalog, &|kind| definitions.declared(kind))).ok()
        });
        page(200, "application/json", bytes.unwrap_or_default())
    }

    /// A document, rendered once for each state of what it describes.
    fn rendered(&self, name: &str, hash: &str, render: impl FnOnce() -> Option<Vec<u8>>) -> Option<Bytes> {
        let lock = || self.0.documents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, bytes)) = lock().get(name)
            && known == hash
        {
            return Some(bytes.clone());
        }
        let bytes = Bytes::from(render()?);
        lock().insert(name.to_owned(), (hash.to_owned(), bytes.clone()));
        Some(bytes)
    }

    fn definitions(&self) -> Definitions {
        let all = self.0.cluster.with(|store| {
            let definitions = store.list("apiextensions.k8s.io", "customresourcedefinitions", "");
            definitions.map(|object| (object.name(), object.value.clone())).collect()
        });
        Definitions(all)
    }
}

/// An OpenAPI v2 document without types, in protobuf: `swagger` (1), `info` (2) with `title` and `version`, `paths` (8).
const EMPTY_V2: &[u8] = b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.35.4\x42\x00";

/// The CRDs, by name.
struct Definitions(HashMap<Text, Value>);

impl Definitions {
    fn of(&self, kind: &Kind) -> Option<&Value> {
        self.0.get(&kind.custom()?.crd)
    }

    /// The schema a CRD gives for a kind.
    fn declared(&self, kind: &Kind) -> Option<Value> {
        let versions = self.of(kind)?.list_at(&["spec", "versions"]);
        let version = versions.iter().find(|version| version.str_at(&["name"]) == Some(&kind.version))?;
        version.at(&["schema", "openAPIV3Schema"]).cloned()
    }

    /// Changes whenever the document at a path does; at the empty path, whenever any does.
    fn fingerprint(&self, catalog: &Catalog, path: &str) -> String {
        let mut hasher = DefaultHasher::new();
        env!("CARGO_PKG_VERSION").hash(&mut hasher);
        path.hash(&mut hasher);
        for group in catalog.groups() {
            for kind in group.versions.iter().flat_map(|version| &version.kinds) {
                let here = path.is_empty() || path == format!("apis/{}/{}", kind.group, kind.version);
                if let Some(definition) = self.of(kind).filter(|_| here) {
                    (&kind.plural, &kind.version, definition.str_at(&["metadata", "uid"])).hash(&mut hasher);
                    definition.int_at(&["metadata", "generation"]).hash(&mut hasher);
                }
            }
        }
        format!("{:016X}", hasher.finish())
    }
}

/// The version of aggregated discovery a client wants, if that is what it likes best.
fn wants_aggregated(accept: &str) -> Option<&'static str> {
    for clause in accept::clauses(accept).iter().filter(|clause| clause.admits_json()) {
        match (clause.parameter("g"), clause.parameter("as"), clause.parameter("v")) {
            ("apidiscovery.k8s.io", "APIGroupDiscoveryList", "v2") => return Some("v2"),
            ("apidiscovery.k8s.io", "APIGroupDiscoveryList", "v2beta1") => return Some("v2beta1"),
            ("", "", "") => return None,
            _ => {}
        }
    }
    None
}

/// Adds an entity tag, and leaves the body out if the client has it already.
fn tagged(mut response: Response<Body>, hash: &str, headers: &HeaderMap) -> Response<Body> {
    let tag = format!("\"{hash}\"");
    let known = headers.get(header::IF_NONE_MATCH).is_some_and(|given| given.as_bytes() == tag.as_bytes());
    if let Ok(value) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, value);
    }
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::Whole(None);
    }
    response
}

fn indented(value: &Value) -> Vec<u8> {
    serde_json::to_vec_pretty(value).unwrap_or_default()
}

/// The version this cluster behaves as.
fn version() -> Value {
    value!({
        "major": "1", "minor": "35", "emulationMajor": "1", "emulationMinor": "35",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "34",
        "gitVersion": "v1.35.4", "gitCommit": "", "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}
