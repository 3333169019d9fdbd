//! Whether two tools still write the same objects, and how the one that has ended gives up its fields.
//!
//! Server-side apply remembers who owns a field, also after that tool is gone, and refuses others who want it to be different.
//! Decides from `managedFields` alone; never needs a clock.

use jiff::Timestamp;

use crate::{api::constants::FIELD_MANAGER, kubernetes::value::Value, value};

/// The field managers of Argo CD.
pub const ARGOCD: &[&str] = &["argocd-controller", "argocd-application-controller", "argocd-server"];
/// The field managers of Flux.
pub const FLUX: &[&str] = &["kustomize-controller"];

fn text<'v>(entry: &'v Value, key: &str) -> &'v str {
    entry.str_at(&[key]).unwrap_or_default()
}

fn entries(object: &Value) -> impl Iterator<Item = &Value> {
    let entries = object.list_at(&["metadata", "managedFields"]).iter();
    entries.filter(|entry| text(entry, "subresource").is_empty())
}

/// When the newest of these managers wrote the object.
fn written(object: &Value, managers: &[&str]) -> Option<Timestamp> {
    let by = |entry: &&Value| managers.contains(&text(entry, "manager"));
    entries(object).filter(by).filter_map(|entry| text(entry, "time").parse().ok()).max()
}

/// Whether a GitSource has written the object.
pub fn is_ours(object: &Value) -> bool {
    entries(object).any(|entry| text(entry, "manager") == FIELD_MANAGER && text(entry, "operation") == "Apply")
}

/// Whether the other tool has changed the object after a GitSource had it.
pub fn is_fought(object: &Value, rivals: &[&str]) -> bool {
    match (written(object, &[FIELD_MANAGER]), written(object, rivals)) {
        (Some(ours), Some(theirs)) => is_ours(object) && theirs > ours,
        (Some(_), None) | (None, Some(_) | None) => false,
    }
}

/// The patch (JSON) that takes the fields of managers that have ended from them; `None` if they have none, or if no GitSource owns
/// the object: then nobody would.
pub fn release(object: &Value, ended: &[&str]) -> Option<Value> {
    let all = object.list_at(&["metadata", "managedFields"]);
    let kept: Vec<Value> = all.iter().filter(|entry| !ended.contains(&text(entry, "manager"))).cloned().collect();
    if kept.len() == all.len() || !is_ours(object) {
        return None;
    }
    let version = object.str_at(&["metadata", "resourceVersion"]).unwrap_or_default();
    Some(value!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        {"op": "replace", "path": "/metadata/managedFields", "value": (Value::list(kept))},
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(entries: &[(&str, &str, &str)]) -> Value {
        let entries = entries.iter().map(|(manager, operation, time)| {
            value!({"manager": *manager, "operation": *operation, "time": *time, "fieldsV1": {"f:spec": {}}})
        });
        let mut object = value!({"metadata": {"name": "web", "resourceVersion": "7"}});
        object.set_at(&["metadata", "managedFields"], Value::list(entries));
        object
    }

    const EARLY: &str = "2026-01-01T10:00:00Z";
    const LATE: &str = "2026-01-01T10:05:00Z";

    #[test]
    fn a_rival_that_writes_after_us_fights() {
        #[track_caller]
        fn check(entries: &[(&str, &str, &str)], expected: bool) {
            assert_eq!(is_fought(&object(entries), ARGOCD), expected, "{entries:?}");
        }
        let ours = |time| (FIELD_MANAGER, "Apply", time);
        check(&[("argocd-controller", "Apply", EARLY), ours(LATE)], false);
        check(&[("argocd-controller", "Apply", LATE), ours(EARLY)], true);
        check(&[("argocd-controller", "Update", LATE), ours(EARLY)], true);
        check(&[("kubectl-edit", "Update", LATE), ours(EARLY)], false);
        check(&[("argocd-controller", "Apply", LATE)], false);
    }

    #[test]
    fn a_tool_that_has_ended_gives_up_its_fields_once_they_are_ours() {
        let both = object(&[
            ("kustomize-controller", "Apply", EARLY),
            ("kubectl", "Update", EARLY),
            (FIELD_MANAGER, "Apply", LATE),
        ]);
        let patch = release(&both, FLUX).unwrap();
        assert_eq!(patch.as_list().unwrap()[0].str_at(&["value"]), Some("7"));
        let kept = patch.as_list().unwrap()[1].list_at(&["value"]).iter().map(|entry| text(entry, "manager"));
        assert_eq!(kept.collect::<Vec<_>>(), ["kubectl", FIELD_MANAGER]);
        assert_eq!(release(&both, ARGOCD), None);
        assert_eq!(release(&object(&[("kustomize-controller", "Apply", EARLY)]), FLUX), None);
    }
}
