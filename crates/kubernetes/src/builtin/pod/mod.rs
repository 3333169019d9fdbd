//! Pods, and the pod templates that workloads carry.

mod container;
mod placement;
mod prepare;
mod security;
mod update;
mod volume;

pub use container::port_or_name;
pub use placement::{node_selector, taints};
pub use prepare::{bind, drop_unserved, evict_condition, prepare_create, prepare_update};
pub use update::{validate_status, validate_update};
pub use volume::template_metadata;

use super::{
    field::{Field, Judge},
    gostruct, meta, net,
    resource::{self, Level},
};
use crate::{names, value::Value};

/// The other operating system.
const WINDOWS: &str = "windows";

/// Whether a pod itself is described or what pods will be made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A pod.
    Pod,
    /// A pod template.
    Template,
}

/// What the rules for containers must know of their pod.
struct Rules<'v> {
    volumes: Vec<(&'v str, &'v Value)>,
    claims: Vec<&'v str>,
    grace: Option<i64>,
    restart_policy: &'v str,
    os: Option<&'v str>,
    host_users: bool,
}

impl<'v> Rules<'v> {
    fn volume(&self, name: &str) -> Option<&'v Value> {
        self.volumes.iter().find(|(known, _)| *known == name).map(|(_, volume)| *volume)
    }
}

/// A new pod.
pub fn validate_create(pod: &Field) {
    whole(pod);
    let spec = pod.child("spec");
    if spec.child("ephemeralContainers").len() > 0 {
        spec.child("ephemeralContainers").forbidden("cannot be set on create");
    }
    if !spec.child("nodeName").text().is_empty() && spec.child("schedulingGates").len() > 0 {
        spec.child("nodeName").forbidden("cannot be set until all schedulingGates have been cleared");
    }
}

/// What holds for any pod, new or changed.
fn whole(pod: &Field) {
    let (metadata, spec) = (pod.child("metadata"), pod.child("spec"));
    annotations(&metadata.child("annotations"), &spec);
    pod_spec(&spec, Place::Pod, metadata.child("name").text());
    if spec.child("serviceAccountName").text().is_empty() {
        for volume in spec.child("volumes").items() {
            for source in volume.child("projected").child("sources").items() {
                let token = source.child("serviceAccountToken");
                if token.is_set() {
                    token.forbidden("must not be specified when serviceAccountName is not set");
                }
            }
        }
    }
    for list in ["containers", "initContainers"] {
        spec.child(list).items().for_each(|container| container::image_spaces(&container));
    }
}

/// `template` of a workload: `at` is the template, which is there.
pub fn template(at: &Field) {
    labels_and_annotations(at);
    let spec = at.child("spec");
    pod_spec(&spec, Place::Template, "");
    if spec.child("ephemeralContainers").len() > 0 {
        spec.child("ephemeralContainers").forbidden("ephemeral containers not allowed in pod template");
    }
}

/// Labels and annotations of a template. Upstream leaves `metadata` out of their paths and, of a StatefulSet, judges
/// them twice.
pub fn labels_and_annotations(at: &Field) {
    let metadata = at.child("metadata");
    meta::labels(&at.child("labels").with(metadata.child("labels").value));
    let annotated = at.child("annotations").with(metadata.child("annotations").value);
    meta::annotations(&annotated);
    annotations(&annotated, &at.child("spec"));
}

/// Annotations that mean something to pods.
pub fn annotations(at: &Field, spec: &Field) {
    if at.len() == 0 {
        return;
    }
    let mirror = at.key("kubernetes.io/config.mirror");
    if mirror.is_set() && spec.child("nodeName").text().is_empty() {
        mirror.invalid("must set spec.nodeName if mirror pod annotation is set");
    }
    let cost = at.key("controller.kubernetes.io/pod-deletion-cost");
    if cost.is_set() && at.judge() == Judge::Server && !is_deletion_cost(cost.text()) {
        cost.invalid("must be a 32bit integer");
    }
    for (key, profile) in at.entries() {
        if key == "seccomp.security.alpha.kubernetes.io/pod"
            || key.starts_with("container.seccomp.security.alpha.kubernetes.io/")
        {
            seccomp_annotation(&at.child(key));
        }
        if let Some(name) = key.strip_prefix("container.apparmor.security.beta.kubernetes.io/") {
            let named = |list| spec.child(list).list().iter().any(|c| c.str_at(&["name"]) == Some(name));
            if !["initContainers", "containers", "ephemeralContainers"].into_iter().any(named) {
                profile.refuse(name, "container not found");
            }
            let text = profile.text();
            if !["", "runtime/default", "unconfined"].contains(&text) && !text.starts_with("localhost/") {
                profile.invalid(format!("invalid AppArmor profile name: {text:?}"));
            }
        }
    }
}

fn seccomp_annotation(at: &Field) {
    match at.text() {
        "runtime/default" | "docker/default" | "unconfined" => {}
        text if text.starts_with("localhost/") => {}
        _ => at.invalid("must be a valid seccomp profile"),
    }
}

fn is_deletion_cost(text: &str) -> bool {
    let first = text.bytes().next();
    (text == "0" || matches!(first, Some(b'-' | b'1'..=b'9'))) && text.parse::<i32>().is_ok()
}

/// `spec` of a pod or of a template; `name` is the pod's.
pub fn pod_spec(spec: &Field, place: Place, name: &str) {
    let grace = spec.child("terminationGracePeriodSeconds");
    if !grace.is_set() {
        grace.required("");
    }
    let volumes = volume::volumes(&spec.child("volumes"), place, name);
    let claimed = spec.child("resourceClaims");
    let pod = Rules {
        volumes,
        claims: claimed.list().iter().filter_map(|claim| claim.str_at(&["name"])).collect(),
        grace: grace.value.as_int(),
        restart_policy: spec.child("restartPolicy").text(),
        os: spec.value.str_at(&["os", "name"]),
        host_users: spec.child("hostUsers").value.as_bool() != Some(false),
    };
    resource_claims(&claimed);
    let (init, regular) = (spec.child("initContainers"), spec.child("containers"));
    container::containers(&regular, &pod);
    container::init_containers(&init, &pod, regular.list());
    container::ephemeral_containers(&spec.child("ephemeralContainers"), &pod, &[regular.list(), init.list()]);
    pod_resources(spec, &pod);
    host_network(spec, place);
    spec.child("restartPolicy").one_of_required(&["Always", "OnFailure", "Never"]);
    spec.child("dnsPolicy").one_of_required(&["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]);
    meta::labels(&spec.child("nodeSelector"));
    security::pod(spec);
    placement::affinity(&spec.child("affinity"));
    dns(spec);
    for gate in spec.child("readinessGates").items() {
        gate.child("conditionType").check(names::label_key);
    }
    scheduling_gates(&spec.child("schedulingGates"));
    placement::spread(&spec.child("topologySpreadConstraints"));
    security::host_users(spec, &pod);
    hostname_override(spec);
    names_of_others(spec);
    spec.child("preemptionPolicy").one_of_given(&["PreemptLowerPriority", "Never"]);
    let overhead = spec.child("overhead");
    for (name, amount) in overhead.entries() {
        // Upstream checks it as if it were the limits of a container.
        let blamed = overhead.child("limits");
        let blamed = blamed.key(name).with(amount.value);
        resource::container_name(&blamed, name);
        resource::quantity(&blamed, name);
    }
    security::operating_system(spec, &pod);
    file_key_volumes(spec);
}

fn names_of_others(spec: &Field) {
    spec.child("serviceAccountName").check_given(names::dns_subdomain);
    spec.child("nodeName").check_given(names::dns_subdomain);
    let deadline = spec.child("activeDeadlineSeconds");
    if deadline.is_set() {
        deadline.check_int(|seconds| names::in_range(seconds, 1, i64::from(i32::MAX)));
    }
    spec.child("hostname").check_given(names::dns_label);
    spec.child("subdomain").check_given(names::dns_label);
    placement::tolerations(&spec.child("tolerations"));
    for alias in spec.child("hostAliases").items() {
        net::ip(&alias.child("ip"), &[]);
        alias.child("hostnames").items().for_each(|name| name.check(names::dns_subdomain));
    }
    spec.child("priorityClassName").check_given(names::dns_subdomain);
    let runtime = spec.child("runtimeClassName");
    if runtime.is_set() {
        runtime.check(names::dns_subdomain);
    }
}

fn resource_claims(at: &Field) {
    let mut seen: Vec<&str> = Vec::new();
    for claim in at.items() {
        let name = claim.child("name");
        if name.text().is_empty() {
            name.required("");
        } else if seen.contains(&name.text()) {
            name.duplicate();
        } else {
            name.check(names::dns_label);
            seen.push(name.text());
        }
        let (of, from) = (claim.child("resourceClaimName"), claim.child("resourceClaimTemplateName"));
        let printed = || gostruct::print("PodResourceClaim", claim.value);
        match (of.is_set(), from.is_set()) {
            (true, true) => {
                let why = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified";
                claim.refuse_printed(printed(), why);
            }
            (false, false) => {
                let why = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
                claim.refuse_printed(printed(), why);
            }
            (true, false) | (false, true) => {}
        }
        for reference in [of, from] {
            if reference.is_set() {
                reference.check(names::dns_subdomain);
            }
        }
    }
}

fn pod_resources(spec: &Field, pod: &Rules) {
    let at = spec.child("resources");
    if !at.is_set() {
        return;
    }
    if pod.os == Some(WINDOWS) {
        return at.forbidden("may not be set for a windows pod");
    }
    if at.child("claims").len() > 0 {
        at.child("claims").forbidden("claims may not be set for Resources at pod-level");
    }
    resource::requirements(&at, Level::Pod, &pod.claims);
}

fn host_network(spec: &Field, place: Place) {
    if !spec.child("hostNetwork").is_true() {
        return;
    }
    for container in spec.child("containers").items() {
        for port in container.child("ports").items() {
            let (host, inner) = (port.child("hostPort"), port.child("containerPort").int());
            if (place == Place::Pod || host.int() != 0) && host.int() != inner {
                host.refuse(host.int(), "must match `containerPort` when `hostNetwork` is true");
            }
        }
    }
}

fn dns(spec: &Field) {
    let at = spec.child("dnsConfig");
    let (servers, searches) = (at.child("nameservers"), at.child("searches"));
    if spec.child("dnsPolicy").text() == "None" {
        if !at.is_set() {
            return at.required("must provide `dnsConfig` when `dnsPolicy` is None");
        }
        if servers.len() == 0 {
            return servers.required("must provide at least one DNS nameserver when `dnsPolicy` is None");
        }
    }
    if servers.len() > 3 {
        servers.invalid("must not have more than 3 nameservers");
    }
    servers.items().for_each(|server| net::ip(&server, &[]));
    if searches.len() > 32 {
        searches.invalid("must not have more than 32 search paths");
    }
    let length: usize = searches.list().iter().map(|search| search.as_str().unwrap_or_default().len() + 1).sum();
    if length > 2049 {
        searches.invalid("must not have more than 2048 characters (including spaces) in the search list");
    }
    for search in searches.items().filter(|search| search.text() != ".") {
        let name = search.text().strip_suffix('.').unwrap_or(search.text());
        names::dns_subdomain_with_underscore(name).into_iter().for_each(|message| search.refuse(name, message));
    }
    for option in at.child("options").items() {
        if option.child("name").text().is_empty() {
            option.required("must not be empty");
        }
    }
}

fn scheduling_gates(at: &Field) {
    let mut seen: Vec<&str> = Vec::new();
    for gate in at.items() {
        let name = gate.child("name").text();
        names::label_key(name).into_iter().for_each(|message| gate.refuse(name, message));
        if seen.contains(&name) {
            gate.duplicate_of(name);
        }
        seen.push(name);
    }
}

fn hostname_override(spec: &Field) {
    let at = spec.child("hostnameOverride");
    if !at.is_set() {
        return;
    }
    if spec.child("setHostnameAsFQDN").is_true() {
        at.forbidden("may not be specified when setHostnameAsFQDN is true");
    }
    if spec.child("hostNetwork").is_true() {
        at.forbidden("may not be specified when hostNetwork is true");
    }
    if at.text().len() > 64 {
        at.too_long(64);
    }
    at.check(names::dns_subdomain);
}

fn file_key_volumes(spec: &Field) {
    security::each_container(spec, |container| {
        for variable in container.child("env").items() {
            let from = variable.child("valueFrom");
            let file = from.child("fileKeyRef");
            if !file.is_set() {
                continue;
            }
            let name = file.child("volumeName");
            let named = |volume: &&Value| volume.str_at(&["name"]).unwrap_or_default() == name.text();
            match spec.child("volumes").list().iter().find(named) {
                None => name.not_found(),
                Some(volume) if volume.get("emptyDir").is_none() => {
                    name.refuse(name.text(), "referenced volume must be of type emptyDir");
                }
                Some(_) => {}
            }
        }
    });
}
