//! What differs between built-in and custom kinds when an object is written: decoding, defaults, preparation, validation.

use super::{meta, request::FieldValidation};
use crate::kubernetes::{
    builtin::{self, Context},
    convert,
    decode::is_crd,
    facts,
    kind::Kind,
    names,
    schema::{
        self, crd, prune,
        validate::{self, Judgement},
    },
    status::Status,
    value::Value,
};

/// What becomes of unknown and duplicate fields: warnings, an error, or nothing.
pub(super) fn judge(strict: Vec<String>, validation: FieldValidation) -> Result<Vec<String>, String> {
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(strict),
        FieldValidation::Strict if strict.is_empty() => Ok(strict),
        FieldValidation::Strict => Err(format!("strict decoding error: {}", strict.join(", "))),
    }
}

/// The same object at another version of its resource. Custom resources have one shape in all versions, but each version
/// knows its own fields.
pub(super) fn convert(kind: &Kind, value: &Value) -> Value {
    if kind.custom().is_none() {
        let version = value.str_at(&["apiVersion"]).unwrap_or_default();
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        return facts::kind(group, version, &kind.kind)
            .map_or_else(|| value.clone(), |from| convert::convert(from, kind, value));
    }
    let mut value = value.clone();
    value.set_at(&["apiVersion"], kind.api_version());
    if kind.custom().is_some() {
        prune::prune(&kind.schema, &mut value);
    }
    value
}

/// A stored custom resource as it is read: its schema may have changed since it was written.
pub(super) fn refresh(kind: &Kind, value: &Value) -> Value {
    let mut value = value.clone();
    if kind.custom().is_none() {
        return value;
    }
    if kind.custom().is_none() {
        return value; // the types of built-in kinds do not change, and their nulls are not to be pruned
    }
    prune::prune(&kind.schema, &mut value);
    schema::default::fill(&kind.schema, &mut value);
    value
}

/// Makes a new object what the server stores.
pub(super) fn prepare_create(kind: &Kind, value: &mut Value, context: &mut Context<'_>) -> Result<(), Status> {
    match kind.custom() {
        Some(custom) if custom.status => {
            value.remove_at(&["status"]);
            Ok(())
        }
        Some(_) => Ok(()),
        None if is_crd(kind) => {
            crd::prepare_create(value);
            Ok(())
        }
        None => builtin::prepare_create(kind, value, context),
    }
}

/// Makes a changed object what the server stores: a write to the object keeps its status, a write to the status keeps
/// everything else.
pub(super) fn prepare_update(
    kind: &Kind,
    value: &mut Value,
    old: &Value,
    context: &mut Context<'_>,
) -> Result<(), Status> {
    if is_crd(kind) && context.subresource.is_empty() {
        crd::prepare_update(value, old);
        return Ok(());
    }
    let Some(custom) = kind.custom() else { return builtin::prepare_update(kind, value, old, context) };
    if context.subresource == "status" {
        let status = value.get("status").cloned();
        let metadata = value.get("metadata").cloned();
        *value = old.clone();
        meta::put(value, "status", status);
        // The client's idea of the version still counts.
        let version = metadata.as_ref().and_then(|metadata| metadata.get("resourceVersion")).cloned();
        if let Some(version) = version {
            value.set_at(&["metadata", "resourceVersion"], version);
        }
    } else if custom.status {
        meta::put(value, "status", old.get("status").cloned());
    }
    Ok(())
}

/// What is wrong with a new object, and what is only worth a warning.
pub(super) fn judge_create(kind: &Kind, value: &Value) -> Judgement {
    let name = |name: &str| match kind.custom() {
        Some(_) => names::dns_subdomain(name),
        None => builtin::validate_name(kind, name),
    };
    let mut problems = meta::validate_create(kind, value, &name);
    if kind.custom().is_some() {
        return validate::judge(kind, value, None, problems);
    }
    problems.extend(match is_crd(kind) {
        true => crd::validate(value, None),
        false => builtin::validate_create(kind, value),
    });
    let warnings = match is_crd(kind) {
        true => crd::warnings(value, None),
        false => builtin::warnings(kind, value, None),
    };
    Judgement { problems, warnings }
}

/// What is wrong with a change, and what is only worth a warning.
pub(super) fn judge_update(kind: &Kind, subresource: &str, value: &Value, old: &Value) -> Judgement {
    let rounds = if kind.custom().is_some() { 1 } else { builtin::metadata_rounds(kind, subresource) };
    let mut problems = meta::validate_update(value, old, rounds);
    if kind.custom().is_some() {
        return match subresource {
            "status" => validate::judge_status(kind, value, old, problems),
            _ => validate::judge(kind, value, Some(old), problems),
        };
    }
    problems.extend(match is_crd(kind) {
        true if subresource.is_empty() => crd::validate(value, Some(old)),
        true => Vec::new(),
        false => builtin::validate_update(kind, subresource, value, old),
    });
    let warnings = match subresource.is_empty() {
        true if is_crd(kind) => crd::warnings(value, Some(old)),
        true => builtin::warnings(kind, value, Some(old)),
        false => Vec::new(),
    };
    Judgement { problems, warnings }
}

/// Whether a PUT of an object that is not there creates it.
pub(super) fn creates_on_update(kind: &Kind) -> bool {
    kind.custom().is_none()
        && matches!(
            (kind.group.as_str(), kind.kind.as_str()),
            ("", "Service" | "Endpoints" | "Event" | "LimitRange")
                | ("events.k8s.io", "Event")
                | ("coordination.k8s.io", "Lease")
                | ("node.k8s.io", "RuntimeClass")
                | ("rbac.authorization.k8s.io", _)
        )
}

/// Whether a PUT may leave out the version it is based on.
pub(super) fn updates_unconditionally(kind: &Kind) -> bool {
    kind.custom().is_none()
        && !matches!(
            (kind.group.as_str(), kind.kind.as_str()),
            ("policy", "PodDisruptionBudget")
                | ("coordination.k8s.io" | "admissionregistration.k8s.io" | "apiextensions.k8s.io", _)
                | ("node.k8s.io", "RuntimeClass")
                | ("apiregistration.k8s.io", _)
                | ("storage.k8s.io", "CSIDriver" | "CSINode" | "CSIStorageCapacity" | "VolumeAttachment")
        )
}

/// Whether a deletion answers with the object that is gone instead of a `Status`.
pub(super) fn returns_deleted(kind: &Kind) -> bool {
    kind.custom().is_none()
        && matches!(
            (kind.group.as_str(), kind.kind.as_str()),
            (
                "",
                "ResourceQuota"
                    | "PersistentVolume"
                    | "PersistentVolumeClaim"
                    | "ServiceAccount"
                    | "Namespace"
                    | "Pod"
                    | "Service"
                    | "PodTemplate"
            ) | (
                "storage.k8s.io",
                "CSIDriver" | "CSINode" | "StorageClass" | "VolumeAttachment" | "VolumeAttributesClass"
            ) | ("resource.k8s.io", _)
        )
}
