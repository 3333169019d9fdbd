//! Deletion: preconditions, grace, finalizers, propagation, collections.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::{
    Store, definition, meta,
    registry::Resource,
    request::{Answer, List, Outcome, Request, Response, Verb},
    strategy,
    write::{not_found, present},
};
use crate::kubernetes::{
    clock::rfc3339,
    decode,
    kind::Kind,
    object::Object,
    status::{FieldError, Status},
    value::{Text, Value},
};

/// `metav1.DeleteOptions`, from the body or the query.
#[derive(Debug, Clone, Default)]
struct DeleteOptions {
    grace: Option<i64>,
    uid: Option<Text>,
    version: Option<Text>,
    propagation: Option<Text>,
    orphan: Option<bool>,
    dry_run: bool,
}

impl DeleteOptions {
    fn of(request: &Request) -> Result<DeleteOptions, Status> {
        let body = request.body.as_ref();
        let text = |path: &[&str]| body.and_then(|body| body.at(path)?.as_text().cloned());
        let options = DeleteOptions {
            grace: body.and_then(|body| body.int_at(&["gracePeriodSeconds"])).or(request.options.grace_period_seconds),
            uid: text(&["preconditions", "uid"]),
            version: text(&["preconditions", "resourceVersion"]),
            propagation: text(&["propagationPolicy"]).or_else(|| request.options.propagation_policy.clone()),
            orphan: body.and_then(|body| body.get("orphanDependents")?.as_bool()).or(request.options.orphan_dependents),
            dry_run: request.options.dry_run
                || body.is_some_and(|body| body.list_at(&["dryRun"]).iter().any(|run| *run == "All")),
        };
        options.check()?;
        Ok(options)
    }

    fn check(&self) -> Result<(), Status> {
        const FIELD: &str = "propagationPolicy";
        let allowed = ["Foreground", "Background", "Orphan", "nil"];
        let problem = match (&self.propagation, self.orphan) {
            (Some(policy), Some(_)) => {
                Some(FieldError::invalid(FIELD, policy, "orphanDependents and deletionPropagation cannot be both set"))
            }
            (Some(policy), None) if !allowed[..3].contains(&policy.as_str()) => {
                Some(FieldError::not_supported(FIELD, policy, &allowed))
            }
            _ => None,
        };
        match problem {
            Some(problem) => Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", &[problem])),
            None => Ok(()),
        }
    }
}

/// What a deletion does now.
enum Course {
    /// Take it away.
    Now,
    /// Mark it, and wait for its grace period or its finalizers.
    Mark(Value),
    /// Mark it, then take it away: a pod that needs no time is told to go all the same.
    MarkAndGo(Value),
    /// It is marked already; nothing changes.
    Pending,
}

impl Store {
    pub(super) fn delete(&mut self, resource: &Resource, kind: &Arc<Kind>, request: &Request) -> Outcome {
        let options = DeleteOptions::of(request)?;
        let found = self.find(&resource.table, &request.namespace, &request.name).cloned();
        let object = found.ok_or_else(|| not_found(kind, &request.name))?;
        let warnings = deletion_warnings(kind, &options);
        let mut response = self.delete_object(resource, kind, object, &options)?;
        response.warnings.extend(warnings);
        Ok(response)
    }

    /// Whether this deletion would be refused.
    pub(super) fn check_delete(&self, kind: &Kind, object: &Object, request: &Request) -> Result<(), Status> {
        check_preconditions(kind, object, &DeleteOptions::of(request)?)
    }

    pub(super) fn delete_collection(&mut self, resource: &Resource, kind: &Arc<Kind>, request: &Request) -> Outcome {
        let options = DeleteOptions::of(request)?;
        let list = Request { verb: Verb::List, body: None, ..request.clone() };
        let listed = self.list_request(resource, kind, &list)?;
        for item in listed.items() {
            let stored = self.find(&resource.table, &item.namespace(), &item.name()).cloned();
            if let Some(stored) = stored {
                self.delete_object(resource, kind, stored, &options)?;
            }
        }
        let items = listed.items().to_vec();
        let version = match &listed.answer {
            Answer::List(_, list) => list.version,
            Answer::Object(..) | Answer::Value(_) => self.version,
        };
        let list = List { version, continue_token: None, remaining: None, items };
        Ok(Response::ok(Answer::List(kind.clone(), list)))
    }

    fn delete_object(
        &mut self,
        resource: &Resource,
        kind: &Arc<Kind>,
        object: Arc<Object>,
        options: &DeleteOptions,
    ) -> Outcome {
        check_admission(kind, &object)?;
        check_preconditions(kind, &object, options)?;
        let answer = |object: &Arc<Object>| Response::ok(Answer::Object(kind.clone(), present(kind, object)));
        match course(kind, &object, options, self.now()) {
            Course::Pending => Ok(answer(&object)),
            Course::Mark(value) => {
                let marked = Object { value, managers: object.managers.clone() };
                if options.dry_run {
                    return Ok(answer(&Arc::new(marked)));
                }
                let marked = self.commit(resource, Some(object), Some(marked));
                if decode::is_crd(kind) {
                    self.finish_definitions();
                }
                Ok(answer(&marked))
            }
            Course::MarkAndGo(value) => {
                let marked = Object { value, managers: object.managers.clone() };
                if options.dry_run {
                    return Ok(answer(&Arc::new(marked)));
                }
                let marked = self.commit(resource, Some(object), Some(marked));
                let gone = self.commit(resource, Some(marked), None);
                Ok(answer(&gone))
            }
            Course::Now => {
                if !options.dry_run {
                    let gone = self.commit(resource, Some(object.clone()), None);
                    if strategy::returns_deleted(kind) {
                        return Ok(answer(&gone));
                    }
                }
                if strategy::returns_deleted(kind) {
                    return Ok(answer(&object));
                }
                Ok(Response::ok(Answer::Value(success(kind, &object))))
            }
        }
    }
}

/// Namespaces that may never go.
fn check_admission(kind: &Kind, object: &Object) -> Result<(), Status> {
    let immortal = ["default", "kube-system", "kube-public"];
    if kind.is("", "Namespace") && immortal.contains(&object.name().as_str()) {
        return Err(Status::forbidden("", "namespaces", &object.name(), "this namespace may not be deleted"));
    }
    Ok(())
}

fn check_preconditions(kind: &Kind, object: &Object, options: &DeleteOptions) -> Result<(), Status> {
    let refuse = |why: String| Err(Status::conflict(&kind.group, &kind.kind, &object.name(), &why));
    if let Some(uid) = options.uid.as_ref().filter(|uid| **uid != object.uid()) {
        return refuse(format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and \
             then recreated",
            object.uid()
        ));
    }
    if let Some(version) = options.version.as_ref().filter(|version| **version != object.version().to_string()) {
        return refuse(format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). The object \
             might have been modified",
            object.version()
        ));
    }
    Ok(())
}

fn course(kind: &Kind, object: &Object, options: &DeleteOptions, now: Timestamp) -> Course {
    let mut value = object.value.clone();
    let marked = meta::of(&value).is_some_and(|metadata| metadata.contains_key("deletionTimestamp"));
    let given = options.grace.map(|grace| if grace < 0 { 1 } else { grace });
    let graceful = if kind.is("", "Pod") { pod_grace(&value, given) } else { None };
    let left = value.int_at(&["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0);
    let mut shortened = false;
    match (graceful, marked) {
        (Some(_), true) if left > 0 => match given {
            Some(grace) if grace < left => {
                shorten(&mut value, left, grace, now);
                shortened = true;
            }
            _ => return Course::Pending,
        },
        (Some(grace), false) if grace > 0 => {
            mark(&mut value, now, grace);
            set_finalizers(kind, &mut value, options);
            return Course::Mark(value);
        }
        _ => {}
    }
    set_finalizers(kind, &mut value, options);
    let still = value.int_at(&["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0);
    if shortened && still > 0 {
        return Course::Mark(value);
    }
    if kind.is("", "Namespace") {
        return namespace_course(value, marked, now);
    }
    if decode::is_crd(kind) && !marked {
        definition::terminate(&mut value, now);
        value.set_at(&["metadata", "deletionTimestamp"], rfc3339(now));
        return Course::Mark(value);
    }
    if meta::finalizers_of(&value).is_empty() {
        if shortened {
            return Course::MarkAndGo(value);
        }
        if graceful.is_some() && !marked {
            mark(&mut value, now, 0);
            return Course::MarkAndGo(value);
        }
        return Course::Now;
    }
    if !marked || shortened {
        mark(&mut value, now, 0);
    }
    if value == object.value { Course::Pending } else { Course::Mark(value) }
}

/// A namespace stays until its controller has emptied it.
fn namespace_course(mut value: Value, marked: bool, now: Timestamp) -> Course {
    let waits = !value.list_at(&["spec", "finalizers"]).is_empty() || !meta::finalizers_of(&value).is_empty();
    if !waits {
        return Course::Now;
    }
    if marked {
        return Course::Pending;
    }
    value.set_at(&["metadata", "deletionTimestamp"], rfc3339(now));
    value.set_at(&["status", "phase"], "Terminating");
    Course::Mark(value)
}

/// How long a pod is given; `None` if it may go at once because it never ran or has ended.
fn pod_grace(value: &Value, given: Option<i64>) -> Option<i64> {
    let grace = given.or_else(|| value.int_at(&["spec", "terminationGracePeriodSeconds"])).unwrap_or(0);
    let unscheduled = value.str_at(&["spec", "nodeName"]).unwrap_or_default().is_empty();
    let ended = matches!(value.str_at(&["status", "phase"]), Some("Succeeded" | "Failed"));
    Some(if unscheduled || ended { 0 } else { grace })
}

fn mark(value: &mut Value, now: Timestamp, grace: i64) {
    if meta::of(value).is_none_or(|metadata| !metadata.contains_key("deletionTimestamp")) {
        meta::raise_generation(value);
    }
    let when = now.saturating_add(SignedDuration::from_secs(grace)).unwrap_or(now);
    value.set_at(&["metadata", "deletionTimestamp"], rfc3339(when));
    value.set_at(&["metadata", "deletionGracePeriodSeconds"], grace);
}

fn shorten(value: &mut Value, left: i64, grace: i64, now: Timestamp) {
    let due: Option<Timestamp> = value.str_at(&["metadata", "deletionTimestamp"]).and_then(|time| time.parse().ok());
    let begun = due.and_then(|due| due.checked_sub(SignedDuration::from_secs(left)).ok()).unwrap_or(now);
    let new = begun.saturating_add(SignedDuration::from_secs(grace)).unwrap_or(now);
    let (new, grace) = if new < now { (now, if grace == 0 { 0 } else { 1 }) } else { (new, grace) };
    value.set_at(&["metadata", "deletionTimestamp"], rfc3339(new));
    value.set_at(&["metadata", "deletionGracePeriodSeconds"], grace);
}

/// Puts the finalizer of the garbage collector that the propagation policy asks for.
fn set_finalizers(kind: &Kind, value: &mut Value, options: &DeleteOptions) {
    if !collects_garbage(kind) {
        return;
    }
    let old = meta::finalizers_of(value);
    let (had_orphan, had_foreground) = (old.contains(&"orphan"), old.contains(&"foregroundDeletion"));
    let (orphan, foreground) = match (options.orphan, options.propagation.as_deref()) {
        (Some(orphan), _) => (orphan, false),
        (None, Some("Orphan")) => (true, false),
        (None, Some("Foreground")) => (false, true),
        (None, Some(_)) => (false, false),
        (None, None) if had_orphan || had_foreground => (had_orphan, had_foreground && !had_orphan),
        (None, None) => (orphans_by_default(kind), false),
    };
    if (orphan, foreground) == (had_orphan, had_foreground) {
        return;
    }
    let mut new: Vec<Value> =
        old.iter().filter(|f| **f != "orphan" && **f != "foregroundDeletion").map(|f| Value::from(*f)).collect();
    new.extend(orphan.then(|| "orphan".into()));
    new.extend(foreground.then(|| "foregroundDeletion".into()));
    let new = (!new.is_empty()).then(|| Value::list(new));
    meta::put_meta(value, "finalizers", new);
}

fn collects_garbage(kind: &Kind) -> bool {
    !(kind.custom().is_none() && kind.kind == "Event")
}

fn orphans_by_default(kind: &Kind) -> bool {
    kind.is("", "ReplicationController") || kind.is("batch", "Job")
}

fn deletion_warnings(kind: &Kind, options: &DeleteOptions) -> Option<String> {
    let silent = options.propagation.is_some() || options.orphan.is_some();
    (kind.is("batch", "Job") && !silent).then(|| {
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set \
         propagationPolicy=Orphan to suppress this warning"
            .to_owned()
    })
}

/// The `Status` of an object that is gone.
fn success(kind: &Kind, object: &Object) -> Value {
    let mut value = crate::value!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": {"name": object.name().as_str(), "kind": kind.plural.as_str(), "uid": object.uid().as_str()},
    });
    if !kind.group.is_empty() {
        value.set_at(&["details", "group"], &kind.group);
    }
    value
}
