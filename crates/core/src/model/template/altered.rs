//! Whether the template of a ReplicaSet is still as it was made.
//!
//! A ReplicaSet does not keep its first template, but the server keeps who wrote which field. Never looks at the template
//! itself.

use crate::kubernetes::apply::{Managers, fieldpath::Set};

/// Where the specification of the pods is.
const PODS: [&str; 3] = ["spec", "template", "spec"];

/// Whether somebody changed what pods a ReplicaSet makes since it was made: fields of them have more than one writer.
///
/// Whoever creates a ReplicaSet writes all of it, and a later writer owns what it changed. The metadata of its pods is left
/// out, and so is their affinity: controllers write there what comes and goes with the role of a version, and during a swap
/// these are two. So an edit of the affinity is not told, nor is one that only removes fields, which leaves no owner
/// behind, nor one in the name of who made the set. Without owners nothing is told. Who took a field over without changing
/// it counts as a writer.
pub fn is_altered(managers: &Managers) -> bool {
    let of_roles = Set::of_fields(&["affinity"]);
    let writes_pods =
        |fields: &Set| fields.below(&PODS).is_some_and(|own| !own.recursive_difference(&of_roles).is_empty());
    let mut writers = managers.owners().iter().filter(|owner| writes_pods(&owner.fields)).map(|owner| &owner.manager);
    let first = writers.next();
    writers.any(|writer| Some(writer) != first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{kubernetes::value::Value, value};

    fn owner(manager: &str, operation: &str, fields: Value) -> Value {
        value!({"manager": manager, "operation": operation, "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    fn pods(fields: Value) -> Value {
        value!({"f:spec": {"f:template": {"f:spec": fields}}})
    }

    #[track_caller]
    fn check(others: &[Value], expected: bool) {
        let containers =
            value!({"f:containers": {"k:{\"name\":\"app\"}": {".": {}, "f:name": {}}}, "f:restartPolicy": {}});
        let made = owner("rollouts-controller", "Update", pods(containers));
        let entries = [&[made], others].concat();
        assert_eq!(is_altered(&Managers::parse(&Value::list(entries)).unwrap()), expected, "{others:?}");
    }

    #[test]
    fn a_second_writer_of_pods_has_altered_them() {
        let image = || pods(value!({"f:containers": {"k:{\"name\":\"app\"}": {"f:image": {}}}}));
        let labels = value!({"f:spec": {"f:template": {"f:metadata": {"f:labels": {"f:role": {}}}}}});
        let affinity =
            || value!({"f:podAntiAffinity": {".": {}, "f:requiredDuringSchedulingIgnoredDuringExecution": {}}});
        check(&[], false);
        check(&[owner("kubectl-edit", "Update", image())], true);
        check(&[owner("kubectl", "Apply", image())], true);
        check(&[owner("kubectl-patch", "Update", pods(value!({"f:dnsPolicy": {}})))], true);
        // The same one, in another role.
        check(&[owner("rollouts-controller", "Apply", image())], false);
        // Sizes, counts and notes.
        check(&[owner("kubectl-scale", "Update", value!({"f:spec": {"f:replicas": {}}}))], false);
        check(&[owner("kube-controller-manager", "Update", value!({"f:status": {"f:replicas": {}}}))], false);
        check(&[owner("tidegate", "Update", value!({"f:metadata": {"f:annotations": {"f:a": {}}}}))], false);
        // What comes and goes with a role.
        check(&[owner("tidegate", "Update", labels)], false);
        check(&[owner("tidegate", "Update", pods(value!({"f:affinity": affinity()})))], false);
        check(&[owner("x", "Update", pods(value!({"f:affinity": affinity(), "f:hostNetwork": {}})))], true);
    }

    #[test]
    fn without_owners_nothing_is_told() {
        assert!(!is_altered(&Managers::default()));
    }
}
