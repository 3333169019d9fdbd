//! Subresources that are no part of the object: scale, eviction, binding, a namespace's finalize.

use std::sync::Arc;

use super::{
    Store,
    registry::Resource,
    request::{Answer, Outcome, PatchType, Request, Response, Verb},
    write::{not_found, present},
};
use crate::controllers::pdb;
use crate::kubernetes::{
    apply::{self, Who},
    clock::rfc3339,
    kind::Kind,
    object::Object,
    patch,
    selector::Labels,
    status::{FieldError, Reason, Status},
    value::{Text, Value},
};

impl Store {
    pub(super) fn subresource(&mut self, resource: &Resource, kind: &Arc<Kind>, request: Request) -> Outcome {
        match (kind.plural.as_str(), request.subresource.as_str()) {
            (_, "scale") => self.scale(resource, kind, request),
            ("pods", "eviction") => self.evict(resource, kind, &request),
            ("pods", "binding") => self.bind(resource, kind, &request),
            ("namespaces", "finalize") => self.finalize(resource, kind, request),
            _ => match request.verb {
                // The parts of an object that have a door of their own: read as the object, written like it.
                Verb::Get => self.read(resource, kind, &request),
                Verb::Update => self.update(resource, kind, request),
                Verb::Patch(how) => self.patch(resource, kind, how, request),
                Verb::List | Verb::Create | Verb::Delete | Verb::DeleteCollection => Err(not_allowed()),
            },
        }
    }

    fn parent(&self, resource: &Resource, kind: &Kind, request: &Request) -> Result<Arc<Object>, Status> {
        let found = self.find(&resource.table, &request.namespace, &request.name);
        found.cloned().ok_or_else(|| not_found(kind, &request.name))
    }

    fn scale(&mut self, resource: &Resource, kind: &Arc<Kind>, request: Request) -> Outcome {
        let stored = self.parent(resource, kind, &request)?;
        let parent = present(kind, &stored);
        let old = match (scale_of(kind, &parent), request.verb) {
            (Ok(scale), _) => scale,
            (Err(missing), Verb::Get) => return Err(missing),
            (Err(_), _) => bare_scale(kind, &parent),
        };
        let who = Who {
            manager: request.options.field_manager.clone().unwrap_or_else(|| request.agent.clone()),
            subresource: request.subresource.clone(),
            now: self.now(),
        };
        let body = || request.body.clone().unwrap_or_default();
        let force = request.options.force.unwrap_or(false);
        let (new, managers) = match request.verb {
            Verb::Get => return Ok(Response::ok(Answer::Value(old))),
            Verb::Update => (body(), None),
            Verb::Patch(PatchType::Json) => (patch::json(&old, &body())?, None),
            Verb::Patch(PatchType::Merge | PatchType::Strategic) => (patch::merge(&old, &body()), None),
            Verb::Patch(PatchType::Apply) => {
                let (new, managers) = apply::apply_scale(kind, &parent, &old, &body(), &who, force)?;
                (new, Some(managers))
            }
            Verb::List | Verb::Create | Verb::Delete | Verb::DeleteCollection => return Err(not_allowed()),
        };
        if request.verb == Verb::Update
            && let Some(name) = new.str_at(&["metadata", "name"]).filter(|name| *name != request.name)
        {
            return Err(Status::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                request.name
            )));
        }
        let replicas = wanted_replicas(kind, &new, &request)?;
        if let Some(version) = new.str_at(&["metadata", "resourceVersion"]).filter(|version| !version.is_empty())
            && version != parent.version().to_string()
        {
            return Err(Status::stale(&kind.group, &kind.plural, &request.name));
        }
        let mut scaled = old.clone();
        scaled.set_at(&["spec", "replicas"], replicas);
        let managers = managers.unwrap_or_else(|| apply::scaled(kind, &parent, &old, &scaled, &who));
        let mut value = parent.value.clone();
        value.set_at(&paths(kind).0.iter().map(Text::as_str).collect::<Vec<_>>(), replicas);
        let write = Request { verb: Verb::Patch(PatchType::Merge), subresource: Text::new(), body: None, ..request };
        let object = self.replace(resource, kind, stored, &parent, value, managers, &write)?;
        Ok(Response::ok(Answer::Value(scale_of(kind, &object)?)))
    }

    fn evict(&mut self, resource: &Resource, kind: &Arc<Kind>, request: &Request) -> Outcome {
        if request.verb != Verb::Create {
            return Err(not_allowed());
        }
        let body = request.body.clone().unwrap_or_default();
        let said = body.str_at(&["metadata", "name"]).unwrap_or_default();
        if !said.is_empty() && said != request.name {
            return Err(Status::bad_request("name in URL does not match name in Eviction object"));
        }
        let pod = self.parent(resource, kind, request)?;
        let mut options = body.get("deleteOptions").cloned().unwrap_or_else(Value::object);
        let dry_run = request.options.dry_run || options.list_at(&["dryRun"]).iter().any(|run| *run == "All");
        if options.at(&["preconditions", "uid"]).is_none() {
            options.set_at(&["preconditions", "uid"], pod.uid());
        }
        options.remove_at(&["preconditions", "resourceVersion"]);
        let delete = Request { verb: Verb::Delete, subresource: Text::new(), body: Some(options), ..request.clone() };
        // Before anything is written: a refused eviction costs no budget.
        self.check_delete(kind, &pod, &delete)?;
        let budgets: Vec<Arc<Object>> =
            self.list("policy", "poddisruptionbudgets", &request.namespace).cloned().collect();
        let change = pdb::may_evict(&pod, &budgets, self.now())?;
        if !dry_run {
            if let Some((budget, status)) = change {
                self.note_eviction(&budget, status)?;
            }
            self.mark_disrupted(resource, &pod);
        }
        self.delete(resource, kind, &delete)?;
        Ok(created())
    }

    /// Writes what an eviction costs into the budget's status.
    fn note_eviction(&mut self, budget: &Object, status: Value) -> Result<(), Status> {
        let mut value = budget.value.clone();
        value.set_at(&["status"], status);
        let request = Request {
            verb: Verb::Update,
            group: "policy".into(),
            version: "v1".into(),
            resource: "poddisruptionbudgets".into(),
            namespace: budget.namespace(),
            name: budget.name(),
            subresource: "status".into(),
            body: Some(value),
            agent: "kube-apiserver".into(),
            ..Request::default()
        };
        self.apply(request).map(|_| ())
    }

    /// Says on the pod why it goes.
    fn mark_disrupted(&mut self, resource: &Resource, pod: &Arc<Object>) {
        let mut conditions = pod.value.list_at(&["status", "conditions"]).to_vec();
        conditions.retain(|condition| condition.str_at(&["type"]) != Some("DisruptionTarget"));
        conditions.push(crate::value!({
            "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "lastProbeTime": null,
            "message": "Eviction API: evicting", "lastTransitionTime": rfc3339(self.now()).as_str(),
        }));
        let mut value = pod.value.clone();
        value.set_at(&["status", "conditions"], conditions);
        // As a binding, it is the server's own doing and nobody's field.
        let managers = pod.managers.clone();
        self.commit(resource, Some(pod.clone()), Some(Object { value, managers }));
    }

    fn bind(&mut self, resource: &Resource, kind: &Arc<Kind>, request: &Request) -> Outcome {
        if request.verb != Verb::Create {
            return Err(not_allowed());
        }
        let body = request.body.clone().unwrap_or_default();
        let stored = self.parent(resource, kind, request)?;
        let node = body.str_at(&["target", "name"]).unwrap_or_default();
        let target = body.str_at(&["target", "kind"]).unwrap_or_default();
        let mut problems = Vec::new();
        if !target.is_empty() && target != "Node" {
            problems.push(FieldError::not_supported("target.kind", target, &["Node", "<empty>"]));
        }
        if node.is_empty() {
            problems.push(FieldError::required("target.name", ""));
        }
        if !problems.is_empty() {
            let texts: Vec<String> = problems.iter().map(FieldError::to_string).collect();
            return Err(Status::internal_bare(match texts.as_slice() {
                [one] => one.clone(),
                many => format!("[{}]", many.join(", ")),
            }));
        }
        let refuse = |why: String| Err(Status::conflict("", "pods/binding", &request.name, &why));
        if stored.is_terminating() {
            return refuse(format!("pod {} is being deleted, cannot be assigned to a host", request.name));
        }
        if let Some(host) = stored.value.str_at(&["spec", "nodeName"]).filter(|host| !host.is_empty()) {
            return refuse(format!("pod {} is already assigned to node {host:?}", request.name));
        }
        if request.options.dry_run {
            return Ok(created());
        }
        let mut value = stored.value.clone();
        value.set_at(&["spec", "nodeName"], node);
        schedule(&mut value, &rfc3339(self.now()));
        if let Some(annotations) = body.at(&["metadata", "annotations"]).and_then(Value::as_map) {
            for (key, text) in annotations.iter() {
                value.set_at(&["metadata", "annotations", key], text);
            }
        }
        // Nobody owns what a binding sets.
        let managers = stored.managers.clone();
        self.commit(resource, Some(stored), Some(Object { value, managers }));
        Ok(created())
    }

    /// Replaces a namespace with its `spec.finalizers`; the last one lets a terminating namespace go.
    fn finalize(&mut self, resource: &Resource, kind: &Arc<Kind>, request: Request) -> Outcome {
        match request.verb {
            Verb::Update => self.update(resource, kind, request),
            Verb::Get | Verb::List | Verb::Create | Verb::Patch(_) | Verb::Delete | Verb::DeleteCollection => {
                Err(not_allowed())
            }
        }
    }
}

/// The Scale of an object.
fn scale_of(kind: &Kind, parent: &Object) -> Result<Value, Status> {
    let (spec, _) = paths(kind);
    let path: Vec<&str> = spec.iter().map(Text::as_str).collect();
    if parent.value.int_at(&path).is_none() && kind.custom().is_some() {
        return Err(Status::internal(format!(
            "the spec replicas field {:?} does not exist",
            format!(".{}", spec.join("."))
        )));
    }
    Ok(bare_scale(kind, parent))
}

/// The Scale of an object, whether or not it says how many it wants.
fn bare_scale(kind: &Kind, parent: &Object) -> Value {
    let (spec, status) = paths(kind);
    let int = |path: &[Text]| {
        let path: Vec<&str> = path.iter().map(Text::as_str).collect();
        parent.value.int_at(&path)
    };
    let mut scale = crate::value!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {"name": parent.name().as_str(), "uid": parent.uid().as_str()},
        "spec": {}, "status": {"replicas": int(&status).unwrap_or(0)},
    });
    for key in ["namespace", "resourceVersion", "creationTimestamp"] {
        if let Some(text) = parent.value.at(&["metadata", key]) {
            scale.set_at(&["metadata", key], text);
        }
    }
    if let Some(wanted) = int(&spec).filter(|wanted| *wanted != 0) {
        scale.set_at(&["spec", "replicas"], wanted);
    }
    if let Some(selector) = selector_of(kind, parent).filter(|selector| !selector.is_empty()) {
        scale.set_at(&["status", "selector"], selector);
    }
    scale
}

/// Where an object keeps what it wants and what it has.
fn paths(kind: &Kind) -> (Vec<Text>, Vec<Text>) {
    match kind.custom().and_then(|custom| custom.scale.clone()) {
        Some(scale) => (scale.spec_replicas, scale.status_replicas),
        None => (vec!["spec".into(), "replicas".into()], vec!["status".into(), "replicas".into()]),
    }
}

fn selector_of(kind: &Kind, parent: &Object) -> Option<String> {
    if let Some(custom) = kind.custom() {
        let path = custom.scale.as_ref()?.selector.as_ref()?;
        let path: Vec<&str> = path.iter().map(Text::as_str).collect();
        return parent.value.str_at(&path).map(str::to_owned);
    }
    let selector = parent.value.at(&["spec", "selector"])?;
    if kind.kind == "ReplicationController" {
        let labels = selector.as_map()?;
        let pairs: Vec<String> =
            labels.iter().map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default())).collect();
        return Some(pairs.join(","));
    }
    Labels::of(selector).ok().map(|labels| labels.to_string())
}

fn wanted_replicas(kind: &Kind, scale: &Value, request: &Request) -> Result<i64, Status> {
    let given = scale.at(&["spec", "replicas"]);
    let wanted = match given {
        None | Some(Value::Null) => 0,
        Some(value) => value.as_int().filter(|_| !matches!(value, Value::Str(_))).ok_or_else(|| {
            Status::bad_request(format!(
                "Scale in version \"v1\" cannot be handled as a Scale: json: cannot unmarshal {} into Go struct field \
                 ScaleSpec.spec.replicas of type int32",
                value.type_name()
            ))
        })?,
    };
    // A custom resource's own rules judge its number.
    if wanted >= 0 || kind.custom().is_some() {
        return Ok(wanted);
    }
    let problem = FieldError::invalid("spec.replicas", wanted, "must be greater than or equal to 0");
    Err(Status::invalid("autoscaling", "Scale", &request.name, &[problem]))
}

/// Sets the condition that says a pod has a node.
fn schedule(value: &mut Value, now: &Text) {
    let mut conditions: Vec<Value> = value
        .list_at(&["status", "conditions"])
        .iter()
        .filter(|condition| condition.str_at(&["type"]) != Some("PodScheduled"))
        .cloned()
        .collect();
    conditions.push(crate::value!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now.as_str(),
    }));
    value.set_at(&["status", "conditions"], Value::list(conditions));
}

fn created() -> Response {
    let status =
        crate::value!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Response { code: 201, answer: Answer::Value(status), warnings: Vec::new() }
}

fn not_allowed() -> Status {
    let mut status =
        Status::new(405, Reason::MethodNotAllowed, "the server does not allow this method on the requested resource");
    status.details = Some(Box::default());
    status
}
