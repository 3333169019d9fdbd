//! Namespaces, Nodes, quotas, limits, priorities and leases: what a cluster is organised by.

use super::{field::Field, gostruct, names_finalizer, pod, resource};
use crate::{names, status::FieldError, value::Value};

/// A new Namespace is active and guarded until it is empty.
pub(super) fn prepare_namespace(namespace: &mut Value) {
    namespace.set_at(&["status"], crate::value!({"phase": "Active"}));
    let mut finalizers = namespace.list_at(&["spec", "finalizers"]).to_vec();
    if !finalizers.contains(&Value::from("kubernetes")) {
        finalizers.push("kubernetes".into());
        namespace.set_at(&["spec", "finalizers"], finalizers);
    }
    label_namespace(namespace);
}

/// A Namespace is always labelled with its name.
pub(super) fn label_namespace(namespace: &mut Value) {
    let label = ["metadata", "labels", "kubernetes.io/metadata.name"];
    let name = namespace.at(&["metadata", "name"]).cloned().unwrap_or_default();
    if namespace.at(&label) != Some(&name) {
        namespace.set_at(&label, name);
    }
}

/// A new Node takes no pods until it is ready.
pub(super) fn prepare_node(node: &mut Value) {
    let taint = "node.kubernetes.io/not-ready";
    let mut taints = node.list_at(&["spec", "taints"]).to_vec();
    let tainted = |t: &Value| t.str_at(&["key"]) == Some(taint) && t.str_at(&["effect"]) == Some("NoSchedule");
    if !taints.iter().any(tainted) {
        taints.push(crate::value!({"key": taint, "effect": "NoSchedule"}));
        node.set_at(&["spec", "taints"], taints);
    }
}

/// A Namespace, new or changed.
pub(super) fn validate_namespace(namespace: &Field) {
    let spec = namespace.child("spec");
    let at = spec.child("finalizers");
    for finalizer in at.list() {
        finalizer_name(&at, finalizer.as_str().unwrap_or_default());
    }
}

/// A write to `namespaces/finalize`.
pub(super) fn validate_finalize(namespace: &Field) {
    let spec = namespace.child("spec");
    spec.child("finalizers").items().for_each(|finalizer| finalizer_name(&finalizer, finalizer.text()));
}

fn finalizer_name(at: &Field, name: &str) {
    names::label_key(name).into_iter().for_each(|message| at.refuse(name, message));
    if !names_finalizer(name) {
        at.refuse(name, "name is neither a standard finalizer name nor is it fully qualified");
    }
}

/// A write to `namespaces/status`.
pub(super) fn validate_namespace_status(namespace: &Field) {
    let (metadata, status) = (namespace.child("metadata"), namespace.child("status"));
    let phase = status.child("phase").text();
    let (wanted, when) = match metadata.child("deletionTimestamp").is_set() {
        false => ("Active", "empty"),
        true => ("Terminating", "not empty"),
    };
    if phase != wanted {
        let why = format!("may only be '{wanted}' if `deletionTimestamp` is {when}");
        status.child("Phase").refuse(phase, why);
    }
}

/// A Node, new or changed.
pub(super) fn validate_node(node: &Field, old: Option<&Value>) {
    node_taints(node);
    node_amounts(node);
    if let Some(old) = old {
        validate_node_update(node, old);
    }
}

fn node_taints(node: &Field) {
    // Upstream blames the metadata.
    let (spec, metadata) = (node.child("spec"), node.child("metadata"));
    pod::taints(&metadata.child("taints").with(spec.child("taints").value));
}

fn node_amounts(node: &Field) {
    let status = node.child("status");
    for list in ["capacity", "allocatable"] {
        let list = status.child(list);
        for (name, amount) in list.value.as_map().map(|map| map.iter()).into_iter().flatten() {
            resource::quantity(&list.child(name).with(amount), name);
        }
    }
}

/// What holds for changes to a Node or to its status.
pub(super) fn validate_node_update(node: &Field, old: &Value) {
    let (spec, status) = (node.child("spec"), node.child("status"));
    node_amounts(node);
    let addresses = status.child("addresses");
    for (i, address) in addresses.items().enumerate() {
        if addresses.list()[..i].contains(address.value) {
            let problem = FieldError::duplicate(address.to_string(), Value::Null);
            address.note(problem.printed(gostruct::print("NodeAddress", address.value)));
        }
    }
    let ranges = old.list_at(&["spec", "podCIDRs"]);
    if !ranges.is_empty() && ranges != spec.child("podCIDRs").list() {
        spec.child("podCIDRs").forbidden("node updates may not change podCIDR except from \"\" to valid");
    }
    let provider = old.str_at(&["spec", "providerID"]).unwrap_or_default();
    if !provider.is_empty() && provider != spec.child("providerID").text() {
        spec.child("providerID").forbidden("node updates may not change providerID except from \"\" to valid");
    }
    node_taints(node);
}

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "VolumeAttributesClass",
    "CrossNamespacePodAffinity",
];

/// A ResourceQuota, new or changed.
pub(super) fn validate_quota(quota: &Field, old: Option<&Value>) {
    let spec = quota.child("spec");
    amounts(&spec.child("hard"));
    let scopes = spec.child("scopes");
    scopes_apply(&spec, &scopes);
    scope_selector(&spec);
    let Some(old) = old else { return };
    let names = |list: &[Value]| {
        let mut names: Vec<String> = list.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect();
        names.sort();
        names.dedup();
        names
    };
    if names(old.list_at(&["spec", "scopes"])) != names(scopes.list()) {
        scopes.invalid("field is immutable");
    }
}

/// A write to `resourcequotas/status`.
pub(super) fn validate_quota_status(quota: &Field) {
    let status = quota.child("status");
    amounts(&status.child("hard"));
    amounts(&status.child("used"));
}

fn amounts(at: &Field) {
    for (name, amount) in at.entries() {
        resource::name(&amount, name);
        if !name.contains('/') && !resource::is_quota(name) {
            amount.refuse(name, "must be a standard resource for quota");
        }
        resource::quantity(&amount, name);
    }
}

fn scope_covers(scope: &str, name: &str) -> bool {
    let computed = ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];
    match scope {
        "Terminating" | "NotTerminating" | "NotBestEffort" | "PriorityClass" | "CrossNamespacePodAffinity" => {
            name == "pods" || computed.contains(&name)
        }
        "BestEffort" => name == "pods",
        "VolumeAttributesClass" => name == "persistentvolumeclaims" || name == "requests.storage",
        _ => true,
    }
}

const EXCLUSIVE: [(&str, &str); 2] = [("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")];

fn scopes_apply(spec: &Field, at: &Field) {
    for scope in at.list().iter().filter_map(Value::as_str) {
        if !SCOPES.contains(&scope) {
            at.invalid("unsupported scope");
        }
        for (name, _) in spec.child("hard").entries() {
            if resource::is_quota(name) && !scope_covers(scope, name) {
                at.invalid("unsupported scope applied to resource");
            }
        }
    }
    let has = |scope: &str| at.list().iter().any(|given| given.as_str() == Some(scope));
    for _ in EXCLUSIVE.iter().filter(|(one, other)| has(one) && has(other)) {
        at.invalid("conflicting scopes");
    }
}

fn scope_selector(spec: &Field) {
    let selector = spec.child("scopeSelector");
    let at = selector.child("matchExpressions");
    for requirement in at.items() {
        let scope = requirement.child("scopeName").text();
        let (operator, values) = (requirement.child("operator").text(), requirement.child("values"));
        if !SCOPES.contains(&scope) {
            at.child("scopeName").refuse(scope, "unsupported scope");
        }
        for (name, _) in spec.child("hard").entries() {
            if resource::is_quota(name) && !scope_covers(scope, name) {
                let printed = gostruct::print("ScopeSelector", selector.value);
                at.refuse_printed(printed, "unsupported scope applied to resource");
            }
        }
        let plain = ["BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity"];
        if plain.contains(&scope) && operator != "Exists" {
            let scopes = "ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                          ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            at.child("operator").refuse(operator, format!("must be 'Exists' when scope is any of {scopes}"));
        }
        match operator {
            "In" | "NotIn" if values.len() == 0 => {
                let why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                at.child("values").required(why);
            }
            "Exists" | "DoesNotExist" if values.len() > 0 => {
                let why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                at.child("values").refuse(values.value, why);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => at.child("operator").refuse(operator, "not a valid selector operator"),
        }
    }
}

/// A LimitRange, new or changed.
pub(super) fn validate_limit_range(range: &Field) {
    let mut seen: Vec<&str> = Vec::new();
    let spec = range.child("spec");
    for limit in spec.child("limits").items() {
        let kind = limit.child("type");
        let problems = names::label_key(kind.text());
        if problems.is_empty()
            && !kind.text().contains('/')
            && !["Pod", "Container", "PersistentVolumeClaim"].contains(&kind.text())
        {
            kind.invalid("must be a standard limit type or fully qualified");
        }
        problems.into_iter().for_each(|message| kind.refuse(kind.text(), message));
        if seen.contains(&kind.text()) {
            kind.duplicate();
        }
        seen.push(kind.text());
        limit_names(&limit, kind.text());
        limit_order(&limit, kind.text());
    }
}

fn limit_names(limit: &Field, kind: &str) {
    let check = |list: &str| {
        for (name, amount) in limit.child(list).entries() {
            if matches!(kind, "Pod" | "Container") {
                resource::container_name(&amount, name);
            } else {
                resource::name(&amount, name);
            }
        }
    };
    check("max");
    check("min");
    for list in ["default", "defaultRequest"] {
        if kind != "Pod" {
            check(list);
        } else if limit.child(list).len() > 0 {
            limit.child(list).forbidden("may not be specified when `type` is 'Pod'");
        }
    }
    let stored = |list: &str| limit.value.at(&[list, "storage"]).is_some();
    if kind == "PersistentVolumeClaim" && !stored("min") && !stored("max") {
        limit.child("limits").required("either minimum or maximum storage value is required, but neither was provided");
    }
    check("maxLimitRequestRatio");
}

fn limit_order(limit: &Field, kind: &str) {
    let lists = ["min", "max", "default", "defaultRequest", "maxLimitRequestRatio"];
    let names = lists.iter().flat_map(|list| limit.value.get(list).and_then(Value::as_map));
    let mut names: Vec<&str> = names.flat_map(|map| map.keys()).map(|name| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let defaulted = |list: &str| !(kind == "Pod" && list.starts_with("default"));
    for name in names {
        let of = |list: &str| limit.value.at(&[list, name]).filter(|_| defaulted(list));
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_json(), str::to_owned);
        let above = |more: &str, less: &str, blamed: &str, shown: &str, words: [&str; 2]| {
            let (Some(more), Some(less)) = (of(more), of(less)) else { return };
            if resource::amount(more) > resource::amount(less) {
                let [more_is, less_is] = words;
                let why = format!("{more_is} value {} is greater than {less_is} value {}", text(more), text(less));
                limit.child(blamed).key(name).refuse(of(shown).unwrap_or(more), why);
            }
        };
        above("min", "max", "min", "min", ["min", "max"]);
        above("min", "defaultRequest", "defaultRequest", "defaultRequest", ["min", "default request"]);
        above("defaultRequest", "max", "defaultRequest", "defaultRequest", ["default request", "max"]);
        above("defaultRequest", "default", "defaultRequest", "defaultRequest", ["default request", "default limit"]);
        above("min", "default", "default", "min", ["min", "default"]);
        above("default", "max", "default", "max", ["default", "max"]);
        if let Some(ratio) = of("maxLimitRequestRatio").filter(|ratio| resource::amount(ratio) < 1_000_000_000) {
            let at = limit.child("maxLimitRequestRatio");
            at.key(name).refuse(ratio, format!("ratio {} is less than 1", text(ratio)));
        }
        if let (Some(default), Some(request)) = (of("default"), of("defaultRequest"))
            && !resource::may_overcommit(name)
            && resource::amount(default) != resource::amount(request)
        {
            let (default, asked) = (text(default), text(request));
            let why = format!("default value {default} must equal to defaultRequest value {asked} in {name}");
            limit.child("defaultRequest").key(name).refuse(request, why);
        }
    }
}

/// A PriorityClass, new or changed.
pub(super) fn validate_priority_class(class: &Field, old: Option<&Value>) {
    let (value, policy) = (class.child("value"), class.child("preemptionPolicy"));
    if let Some(old) = old {
        if value.int() != old.int_at(&["value"]).unwrap_or(0) {
            value.forbidden("may not be changed in an update.");
        }
        return policy.immutable(old.get("preemptionPolicy"));
    }
    let metadata = class.child("metadata");
    let name = metadata.child("name");
    if name.text().starts_with("system-") {
        let known = match name.text() {
            "system-cluster-critical" => Some(2_000_000_000),
            "system-node-critical" => Some(2_000_001_000),
            _ => None,
        };
        let name_text = name.text();
        let error = match known {
            None => Some(format!("{name_text} is not a known system priority class")),
            Some(known) if known != value.int() => Some(format!("value of {name_text} PriorityClass must be {known}")),
            Some(_) if class.child("globalDefault").is_true() => {
                Some(format!("globalDefault of {name_text} PriorityClass must be false"))
            }
            Some(_) => None,
        };
        if let Some(error) = error {
            let why = "priority class names with 'system-' prefix are reserved for system use only. error:";
            name.forbidden(format!("{why} {error}"));
        }
    } else if value.int() > 1_000_000_000 {
        value.forbidden("maximum allowed value of a user defined priority is 1000000000");
    }
    policy.one_of_given(&["PreemptLowerPriority", "Never"]);
}

/// A Lease, new or changed.
pub(super) fn validate_lease(lease: &Field) {
    let spec = lease.child("spec");
    let (duration, transitions) = (spec.child("leaseDurationSeconds"), spec.child("leaseTransitions"));
    if duration.is_set() && duration.int() <= 0 {
        duration.invalid("must be greater than 0");
    }
    if transitions.int() < 0 {
        transitions.invalid("must be greater than or equal to 0");
    }
}

/// A RuntimeClass, new or changed.
pub(super) fn validate_runtime_class(class: &Field, old: Option<&Value>) {
    match old {
        None => class.child("handler").check(names::dns_label),
        Some(old) => class.child("handler").immutable(old.get("handler")),
    }
}

/// A ControllerRevision, new or changed.
pub(super) fn validate_controller_revision(revision: &Field, old: Option<&Value>) {
    revision.child("revision").non_negative();
    let data = revision.child("data");
    match old {
        Some(old) if old.get("data").unwrap_or(&Value::Null) != data.value => data.invalid("field is immutable"),
        Some(_) => {}
        None if !data.is_set() => data.required("data is mandatory"),
        None if data.value.as_map().is_none() => data.required("data must be a valid JSON object"),
        None => {}
    }
}
