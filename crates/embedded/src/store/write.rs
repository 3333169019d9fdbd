//! Writing: create, update, patch, apply.
//!
//! All four end in [`Store::insert`] or [`Store::replace`], which do what upstream's generic registry does, in its order:
//! system metadata, preparation, validation, the question whether anything changed, and the commit.

use std::sync::Arc;

use super::{
    Store, meta,
    registry::Resource,
    request::{Answer, Outcome, PatchType, Request, Response, Verb},
    strategy,
};
use crate::kubernetes::{
    apply::{self, Managers, Who},
    builtin::Context,
    clock::rfc3339,
    decode,
    kind::Kind,
    names,
    object::Object,
    patch,
    status::{Cause, FieldError, Reason, Status},
    value::{Text, Value},
};

/// How often a generated name is tried before the server gives up.
const NAME_ATTEMPTS: usize = 8;

impl Store {
    pub(super) fn create(&mut self, resource: &Resource, kind: &Arc<Kind>, request: Request) -> Outcome {
        check_options("CreateOptions", &request)?;
        let body = request.body.as_ref().ok_or_else(|| empty_body(kind))?;
        let (mut value, warnings) = self.decode_body(kind, body, &request)?;
        patch::check_type(kind, body, meta::text(body, "name").map(Text::as_str).unwrap_or_default())?;
        place_in_namespace(kind, &mut value, &request.namespace)?;
        decode::default(kind, &mut value, None);
        meta::wipe(&mut value);
        if meta::text(&value, "resourceVersion").is_some() {
            return Err(Status::internal_bare("resourceVersion should not be set on objects to be created"));
        }
        let managers = apply::updated(kind, None, &value, &self.who(&request));
        meta::put_meta(&mut value, "managedFields", None);
        let object = self.insert(resource, kind, value, managers, &request)?;
        Ok(Response { code: 201, answer: Answer::Object(kind.clone(), object), warnings })
    }

    pub(super) fn update(&mut self, resource: &Resource, kind: &Arc<Kind>, request: Request) -> Outcome {
        check_options("UpdateOptions", &request)?;
        let body = request.body.as_ref().ok_or_else(|| empty_body(kind))?;
        let (mut value, warnings) = self.decode_body(kind, body, &request)?;
        check_name(&value, &request)?;
        place_in_namespace(kind, &mut value, &request.namespace)?;
        decode::default(kind, &mut value, None);
        let found = self.find(&resource.table, &request.namespace, &request.name).cloned();
        let Some(old) = found else {
            if !request.subresource.is_empty() || !strategy::creates_on_update(kind) {
                return Err(not_found(kind, &request.name));
            }
            let managers = apply::updated(kind, None, &value, &self.who(&request));
            meta::put_meta(&mut value, "managedFields", None);
            let object = self.insert(resource, kind, value, managers, &request)?;
            return Ok(Response { code: 201, answer: Answer::Object(kind.clone(), object), warnings });
        };
        let live = present(kind, &old);
        let managers = apply::updated(kind, Some(&live), &value, &self.who(&request));
        meta::put_meta(&mut value, "managedFields", None);
        let object = self.replace(resource, kind, old, &live, value, managers, &request)?;
        Ok(Response { code: 200, answer: Answer::Object(kind.clone(), object), warnings })
    }

    pub(super) fn patch(&mut self, resource: &Resource, kind: &Arc<Kind>, how: PatchType, request: Request) -> Outcome {
        check_options("PatchOptions", &request)?;
        let body = request.body.as_ref().ok_or_else(|| Status::bad_request("error decoding patch: EOF"))?;
        if how == PatchType::Strategic && kind.custom().is_some() {
            return Err(unsupported_patch());
        }
        let found = self.find(&resource.table, &request.namespace, &request.name).cloned();
        if how == PatchType::Apply {
            return self.apply_patch(resource, kind, found, body, &request);
        }
        let old = found.ok_or_else(|| not_found(kind, &request.name))?;
        patch::check(how, body)?;
        let live = present(kind, &old);
        let target = if touches_managers(how, body) { live.with_managed_fields() } else { live.value.clone() };
        let patched = apply_plain_patch(kind, how, &target, body)?;
        let decoded = decode::decode(kind, &patched, Some(&live.value), &[]).and_then(|decoded| {
            let mut strict = patch::strict(how, body, &request.duplicates);
            strict.extend(decoded.strict);
            Ok((decoded.value, strategy::judge(strict, request.options.field_validation)?))
        });
        let undecodable = |why: String| {
            // The refusal shows the whole object, managedFields and all.
            let shown = apply_plain_patch(kind, how, &live.with_managed_fields(), body);
            patch::undecodable(how, &kind.schema, body, shown.as_ref().unwrap_or(&patched), &why)
        };
        if how != PatchType::Strategic
            && let Some(why) = self.other_type(kind, &patched)
        {
            return Err(undecodable(why));
        }
        let (mut value, warnings) = decoded.map_err(undecodable)?;
        check_name(&value, &request)?;
        patch::check_type(kind, &patched, &request.name)?;
        place_in_namespace(kind, &mut value, &request.namespace)?;
        decode::default(kind, &mut value, Some(&live.value));
        let managers = apply::updated(kind, Some(&live), &value, &self.who(&request));
        meta::put_meta(&mut value, "managedFields", None);
        let object = self.replace(resource, kind, old, &live, value, managers, &request)?;
        Ok(Response { code: 200, answer: Answer::Object(kind.clone(), object), warnings })
    }

    fn apply_patch(
        &mut self,
        resource: &Resource,
        kind: &Arc<Kind>,
        found: Option<Arc<Object>>,
        body: &Value,
        request: &Request,
    ) -> Outcome {
        patch::check(PatchType::Apply, body)?;
        if found.is_none() && !request.subresource.is_empty() {
            return Err(not_found(kind, &request.name));
        }
        let live = found.as_ref().map(|old| present(kind, old));
        let who = self.who(request);
        let force = request.options.force.unwrap_or(false);
        let (merged, managers) = apply::apply(kind, live.as_deref(), body, &who, force)?;
        let decoded = decode::decode(kind, &merged, live.as_deref().map(|live| &live.value), &[])
            .map_err(|message| apply::undecodable(kind, body, &message))?;
        let mut strict = decoded.strict;
        strict.extend(request.duplicates.iter().map(|path| format!("duplicate field {path:?}")));
        let warnings = strategy::judge(strict, request.options.field_validation)
            .map_err(|message| cannot_handle(kind, &message))?;
        let mut value = decoded.value;
        place_in_namespace(kind, &mut value, &request.namespace)?;
        check_name(&value, request)?;
        decode::default(kind, &mut value, live.as_deref().map(|live| &live.value));
        let (code, object) = match (found, live) {
            (Some(old), Some(live)) => (200, self.replace(resource, kind, old, &live, value, managers, request)?),
            _ => (201, self.insert(resource, kind, value, managers, request)?),
        };
        Ok(Response { code, answer: Answer::Object(kind.clone(), object), warnings })
    }

    /// Decodes a whole object sent by a client.
    fn decode_body(&self, kind: &Kind, body: &Value, request: &Request) -> Result<(Value, Vec<String>), Status> {
        self.check_type(kind, body)?;
        let decoded =
            decode::decode(kind, body, None, &request.duplicates).map_err(|message| cannot_handle(kind, &message))?;
        let warnings = strategy::judge(decoded.strict, request.options.field_validation)
            .map_err(|message| cannot_handle(kind, &message))?;
        Ok((decoded.value, warnings))
    }

    /// Whether a body says it is what this endpoint serves. A built-in endpoint fills in what the body leaves out.
    fn check_type(&self, kind: &Kind, body: &Value) -> Result<(), Status> {
        let Some(map) = body.as_map() else {
            let message = format!("json: cannot unmarshal {} into Go value of type struct", body.type_name());
            return Err(Status::bad_request(format!(
                "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: {message}",
                kind.kind
            )));
        };
        let said = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default();
        let (api_version, name) = (said("apiVersion"), said("kind"));
        let expected = kind.api_version();
        if kind.custom().is_some() && name.is_empty() {
            return Err(Status::bad_request(format!("Object 'Kind' is missing in '{}'", body.to_json())));
        }
        if (name.is_empty() || name == kind.kind) && (api_version.is_empty() || api_version == expected) {
            return Ok(());
        }
        let version = api_version.rsplit('/').next().unwrap_or_default();
        if kind.custom().is_some() || name == kind.kind || name.is_empty() {
            if api_version == expected {
                return Ok(());
            }
            return Err(Status::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({expected})"
            )));
        }
        let why = self.other_type(kind, body).unwrap_or_default();
        Err(Status::bad_request(format!("{name} in version {version:?} cannot be handled as a {}: {why}", kind.kind)))
    }

    /// Why a body of a built-in kind cannot be read as what it says it is: another kind, or none that is known.
    fn other_type(&self, kind: &Kind, body: &Value) -> Option<String> {
        let said = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default();
        let (api_version, name) = (said("apiVersion"), said("kind"));
        if kind.custom().is_some() || (name == kind.kind && kind.has_api_version(api_version)) {
            return None;
        }
        let version = api_version.rsplit('/').next().unwrap_or_default();
        if self.registry.find_kind(api_version, name).is_some() {
            let into = if kind.group.is_empty() { "core" } else { kind.group.split('.').next().unwrap_or_default() };
            return Some(format!("converting ({version}.{name}) to ({into}.{}): unknown conversion", kind.kind));
        }
        Some(format!(
            "no kind {name:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\""
        ))
    }

    fn who(&self, request: &Request) -> Who {
        let manager = request.options.field_manager.clone().filter(|manager| !manager.is_empty());
        Who {
            manager: manager.unwrap_or_else(|| request.agent.clone()),
            subresource: request.subresource.clone(),
            now: self.now(),
        }
    }

    /// Stores a new object: decoded, defaulted, owned.
    pub(super) fn insert(
        &mut self,
        resource: &Resource,
        kind: &Arc<Kind>,
        mut value: Value,
        managers: Managers,
        request: &Request,
    ) -> Result<Arc<Object>, Status> {
        self.admit(kind, &value, request)?;
        let uid = self.uid();
        let now = rfc3339(self.now());
        meta::wipe(&mut value);
        meta::put_meta(&mut value, "resourceVersion", None);
        value.set_at(&["metadata", "uid"], &uid);
        value.set_at(&["metadata", "creationTimestamp"], now);
        if meta::has_generation(kind) {
            value.set_at(&["metadata", "generation"], 1);
        }
        let name = self.name_new(resource, &mut value)?;
        let seed = self.chance();
        let look =
            |group: &str, plural: &str| self.list(group, plural, "").map(|object| object.value.clone()).collect();
        let mut context =
            Context { now: self.now(), uid, subresource: "", seed, addresses: &self.addresses, look: &look };
        strategy::prepare_create(kind, &mut value, &mut context)?;
        let judged = strategy::judge_create(kind, &value);
        if !judged.problems.is_empty() {
            return Err(invalid(kind, &name, &judged.problems));
        }
        self.warnings.extend(judged.warnings);
        let namespace = meta::text(&value, "namespace").cloned().unwrap_or_default();
        self.within_quotas(kind, &name, &namespace, &value)?;
        if let Some(existing) = self.find(&resource.table, &namespace, &name) {
            let mut status = Status::already_exists(&kind.group, &kind.plural, &name);
            if existing.is_terminating() {
                status.message = format!("object is being deleted: {}", status.message);
            }
            return Err(status);
        }
        let object = Object { value, managers: Arc::new(managers) };
        if request.options.dry_run {
            return Ok(Arc::new(object));
        }
        let stored = self.commit(resource, None, Some(stored(resource, object)));
        if decode::is_crd(kind) {
            self.establish(resource, &stored);
        }
        Ok(present(kind, &stored))
    }

    /// The name of a new object, generated if it has none of its own.
    fn name_new(&mut self, resource: &Resource, value: &mut Value) -> Result<Text, Status> {
        if let Some(name) = meta::text(value, "name") {
            return Ok(name.clone());
        }
        let Some(base) = meta::text(value, "generateName").cloned() else { return Ok(Text::new()) };
        let namespace = meta::text(value, "namespace").cloned().unwrap_or_default();
        let mut name = Text::new();
        for _ in 0..NAME_ATTEMPTS {
            name = names::generate(&base, self.chance()).into();
            if self.find(&resource.table, &namespace, &name).is_none() {
                break;
            }
        }
        value.set_at(&["metadata", "name"], &name);
        Ok(name)
    }

    /// Whether the namespace takes new objects.
    fn admit(&self, kind: &Kind, value: &Value, request: &Request) -> Result<(), Status> {
        if let Some(custom) = kind.custom()
            && self
                .get("apiextensions.k8s.io", "customresourcedefinitions", "", &custom.crd)
                .is_some_and(|d| d.is_terminating())
        {
            let name = meta::text(value, "name").map(Text::as_str).unwrap_or_default();
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Status::forbidden(&kind.group, &kind.plural, name, why));
        }
        if !kind.namespaced || !request.subresource.is_empty() {
            return Ok(());
        }
        let Some(namespace) = meta::text(value, "namespace") else { return Ok(()) };
        let Some(found) = self.get("", "namespaces", "", namespace) else {
            return Err(Status::not_found("", "namespaces", namespace));
        };
        if !found.is_terminating() {
            return Ok(());
        }
        let name = meta::text(value, "name").map(Text::as_str).unwrap_or_default();
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let cause = Cause {
            reason: "NamespaceTerminating".into(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".into(),
        };
        Err(Status::forbidden(&kind.group, &kind.plural, name, &why).because(cause))
    }

    /// Stores a changed object: decoded, defaulted, owned. `old` is what is stored, `live` the same at the version of the
    /// request. What changes nothing is not written.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn replace(
        &mut self,
        resource: &Resource,
        kind: &Arc<Kind>,
        old: Arc<Object>,
        live: &Arc<Object>,
        mut value: Value,
        managers: Managers,
        request: &Request,
    ) -> Result<Arc<Object>, Status> {
        check_preconditions(resource, kind, &value, live, request)?;
        let version = live.value.at(&["metadata", "resourceVersion"]).cloned();
        meta::put_meta(&mut value, "resourceVersion", version);
        let generation = live.value.at(&["metadata", "generation"]).cloned();
        meta::put_meta(&mut value, "generation", generation);
        let seed = self.chance();
        let subresource = request.subresource.as_str();
        let look =
            |group: &str, plural: &str| self.list(group, plural, "").map(|object| object.value.clone()).collect();
        let mut context =
            Context { now: self.now(), uid: old.uid(), subresource, seed, addresses: &self.addresses, look: &look };
        strategy::prepare_update(kind, &mut value, &live.value, &mut context)?;
        meta::keep(&mut value, &live.value);
        if subresource.is_empty() && meta::has_generation(kind) && meta::is_new_generation(kind, &value, &live.value) {
            meta::raise_generation(&mut value);
        }
        let judged = strategy::judge_update(kind, subresource, &value, &live.value);
        if !judged.problems.is_empty() {
            return Err(invalid(kind, &request.name, &judged.problems));
        }
        self.warnings.extend(judged.warnings);
        let same_owners = managers.same_but_for_times(&live.managers);
        if same_owners && value == live.value {
            return Ok(live.clone());
        }
        let object = Object { value, managers: Arc::new(managers) };
        if request.options.dry_run {
            return Ok(Arc::new(object));
        }
        if is_released(&object.value, &live.value) {
            // What else this write changed is seen by the one who wrote it and by nobody else.
            self.commit(resource, Some(old), None);
            return Ok(Arc::new(object));
        }
        let stored = self.commit(resource, Some(old), Some(stored(resource, object)));
        if decode::is_crd(kind) && subresource.is_empty() {
            self.establish(resource, &stored);
        }
        Ok(present(kind, &stored))
    }
}

/// The object at the version of `kind`, which may differ from the one it is stored at.
pub(super) fn present(kind: &Kind, object: &Arc<Object>) -> Arc<Object> {
    if object.value.str_at(&["apiVersion"]).is_some_and(|said| kind.has_api_version(said)) {
        return object.clone();
    }
    Arc::new(Object { value: strategy::convert(kind, &object.value), managers: object.managers.clone() })
}

/// The object at the version it is stored at.
fn stored(resource: &Resource, object: Object) -> Object {
    if object.value.str_at(&["apiVersion"]).is_some_and(|said| resource.storage.has_api_version(said)) {
        return object;
    }
    let value = strategy::refresh(&resource.storage, &strategy::convert(&resource.storage, &object.value));
    Object { value, ..object }
}

/// Whether this write takes the last finalizer off an object that was waiting for it.
fn is_released(value: &Value, old: &Value) -> bool {
    let metadata = meta::of(old);
    metadata.is_some_and(|metadata| metadata.contains_key("deletionTimestamp"))
        && meta::finalizers_of(value).is_empty()
        && old.int_at(&["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0) == 0
        && value.list_at(&["spec", "finalizers"]).is_empty()
}

/// 422. Events of both groups are one kind to the rules.
fn invalid(kind: &Kind, name: &str, problems: &[FieldError]) -> Status {
    let group = if kind.is("events.k8s.io", "Event") { "" } else { kind.group.as_str() };
    Status::invalid(group, &kind.kind, name, problems)
}

pub(super) fn not_found(kind: &Kind, name: &str) -> Status {
    Status::not_found(&kind.group, &kind.plural, name)
}

fn empty_body(kind: &Kind) -> Status {
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)",
        kind.kind
    ))
}

fn cannot_handle(kind: &Kind, message: &str) -> Status {
    Status::bad_request(format!(
        "{0} in version {1:?} cannot be handled as a {0}: {message}",
        kind.kind,
        kind.version.as_str()
    ))
}

fn unsupported_patch() -> Status {
    Status::new(
        415,
        Reason::UnsupportedMediaType,
        "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, \
         application/merge-patch+json, application/apply-patch+yaml",
    )
}

/// The rules of the query of a write.
fn check_options(options: &str, request: &Request) -> Result<(), Status> {
    let mut problems = Vec::new();
    let manager = request.options.field_manager.as_deref().unwrap_or_default();
    if let Verb::Patch(how) = request.verb {
        match (how, request.options.force) {
            (PatchType::Apply, _) if manager.is_empty() => {
                problems.push(FieldError::required("fieldManager", "is required for apply patch"));
            }
            (PatchType::Json | PatchType::Merge | PatchType::Strategic, Some(_)) => {
                problems.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
            }
            _ => {}
        }
    }
    if manager.len() > 128 {
        problems.push(FieldError::too_long("fieldManager", 128));
    }
    if let Some((i, c)) = manager.chars().enumerate().find(|(_, c)| c.is_control()) {
        let detail = format!("invalid character {c:?} (at position {i})");
        problems.push(FieldError::invalid("fieldManager", manager, detail));
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Status::invalid("meta.k8s.io", options, "", &problems))
}

/// A body's name must be the URL's.
fn check_name(value: &Value, request: &Request) -> Result<(), Status> {
    match meta::text(value, "name") {
        Some(name) if *name == request.name => Ok(()),
        None => Err(Status::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            request.name
        ))),
        Some(name) => Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            request.name
        ))),
    }
}

/// A body's namespace must be the URL's; one that names none gets it.
fn place_in_namespace(kind: &Kind, value: &mut Value, namespace: &str) -> Result<(), Status> {
    let said = meta::text(value, "namespace");
    if !kind.namespaced {
        meta::put_meta(value, "namespace", None);
        return Ok(());
    }
    match said {
        Some(said) if said == namespace => Ok(()),
        None => {
            value.set_at(&["metadata", "namespace"], namespace);
            Ok(())
        }
        Some(_) => Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )),
    }
}

fn touches_managers(how: PatchType, body: &Value) -> bool {
    match how {
        PatchType::Merge | PatchType::Strategic => body.at(&["metadata", "managedFields"]).is_some(),
        PatchType::Apply => false,
        PatchType::Json => body.as_list().unwrap_or_default().iter().any(|operation| {
            ["path", "from"].iter().filter_map(|key| operation.get(key)?.as_str()).any(|path| {
                matches!(path.trim_start_matches('/'), "" | "metadata")
                    || path.trim_start_matches('/').starts_with("metadata/managedFields")
            })
        }),
    }
}

fn apply_plain_patch(kind: &Kind, how: PatchType, target: &Value, body: &Value) -> Result<Value, Status> {
    match how {
        PatchType::Json => patch::json(target, body),
        PatchType::Merge => Ok(patch::merge(target, body)),
        PatchType::Strategic => patch::strategic(&kind.schema, target, body),
        PatchType::Apply => Ok(target.clone()),
    }
}

/// What a write says of the object it means must be true of the one that is there.
fn check_preconditions(
    resource: &Resource,
    kind: &Kind,
    value: &Value,
    live: &Object,
    request: &Request,
) -> Result<(), Status> {
    if let Some(uid) = meta::text(value, "uid").filter(|uid| request.verb == Verb::Update && **uid != live.uid()) {
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
             UID in precondition: {uid}, UID in object meta: {}",
            storage_key(resource, live),
            live.uid()
        );
        return Err(Status::conflict(&kind.group, &kind.plural, &request.name, &why));
    }
    match meta::text(value, "resourceVersion").map(Text::as_str) {
        None | Some("0") if strategy::updates_unconditionally(kind) || request.verb != Verb::Update => Ok(()),
        None | Some("0") => {
            let problem = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
            Err(Status::invalid(&kind.group, &kind.plural, &request.name, &[problem]))
        }
        Some(version) => match version.parse::<u64>() {
            Ok(version) if version == live.version() => Ok(()),
            Ok(_) => Err(Status::stale(&kind.group, &kind.plural, &request.name)),
            Err(_) => {
                let problem = format!("strconv.ParseUint: parsing {version:?}: invalid syntax");
                Err(Status::internal_bare(&problem))
            }
        },
    }
}

/// Where etcd would keep it; some messages show it.
pub(super) fn storage_key(resource: &Resource, object: &Object) -> String {
    let kind = &resource.storage;
    let prefix = match (kind.custom(), kind.plural.as_str()) {
        (Some(_), plural) => format!("{}/{plural}", kind.group),
        (None, "services") => "services/specs".into(),
        (None, "endpoints") => "services/endpoints".into(),
        (None, "nodes") => "minions".into(),
        (None, plural) => plural.to_owned(),
    };
    match object.namespace().as_str() {
        "" => format!("/registry/{prefix}/{}", object.name()),
        namespace => format!("/registry/{prefix}/{namespace}/{}", object.name()),
    }
}
