//! Rules for the containers of a pod.

use super::{Rules, WINDOWS, security, volume};
use crate::{
    builtin::{
        field::{Field, Judge},
        resource::{self, Level},
    },
    names,
    value::Value,
};

/// `spec.containers`
pub(super) fn containers(at: &Field, pod: &Rules) {
    if at.len() == 0 {
        return at.required("");
    }
    let mut seen: Vec<&str> = Vec::new();
    for container in at.items() {
        common(&container, pod);
        let name = container.child("name");
        if seen.contains(&name.text()) {
            name.duplicate();
        } else {
            seen.push(name.text());
        }
        hooks_and_probes(&container, pod);
        restart_policy(&container);
    }
    host_ports(at);
}

/// `spec.initContainers`
pub(super) fn init_containers(at: &Field, pod: &Rules, regular: &[Value]) {
    let mut seen: Vec<&str> = regular.iter().map(|container| container.str_at(&["name"]).unwrap_or_default()).collect();
    for container in at.items() {
        common(&container, pod);
        let policy = container.child("restartPolicy");
        let always = policy.text() == "Always";
        if always {
            if container.child("restartPolicyRules").len() > 0 {
                let why = "restartPolicyRules are not allowed for init containers with restart policy Always";
                container.child("restartPolicyRules").forbidden(why);
            }
        } else {
            restart_policy(&container);
        }
        let name = container.child("name");
        if seen.contains(&name.text()) {
            name.duplicate();
        } else if !name.text().is_empty() {
            seen.push(name.text());
        }
        let mut ports = Vec::new();
        host_ports_of(&at.index(0), &container, &mut ports);
        if always {
            hooks_and_probes(&container, pod);
            continue;
        }
        for hook in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            let hook = container.child(hook);
            if hook.is_set() {
                hook.forbidden("may not be set for init containers without restartPolicy=Always");
            }
        }
    }
}

/// `spec.ephemeralContainers`
pub(super) fn ephemeral_containers(at: &Field, pod: &Rules, others: &[&[Value]]) {
    let others = others.iter().flat_map(|list| list.iter());
    let others: Vec<&str> = others.map(|container| container.str_at(&["name"]).unwrap_or_default()).collect();
    let mut seen = others.clone();
    for container in at.items() {
        common(&container, pod);
        image_spaces(&container);
        let name = container.child("name");
        if seen.contains(&name.text()) {
            name.duplicate();
        } else {
            seen.push(name.text());
        }
        let target = container.child("targetContainerName");
        if !target.text().is_empty() && !others.contains(&target.text()) {
            target.not_found();
        }
        let barred = [
            "ports",
            "resources",
            "resizePolicy",
            "restartPolicy",
            "restartPolicyRules",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
            "lifecycle",
        ];
        for barred in barred.map(|name| container.child(name)) {
            if barred.len() > 0 || barred.value.as_str().is_some() {
                barred.forbidden("cannot be set for an Ephemeral Container");
            }
        }
        for mount in container.child("volumeMounts").items() {
            for path in [mount.child("subPath"), mount.child("subPathExpr")] {
                if !path.text().is_empty() {
                    path.forbidden("cannot be set for an Ephemeral Container");
                }
            }
        }
    }
}

/// Pods, other than templates, take images without stray spaces only.
pub(super) fn image_spaces(container: &Field) {
    let image = container.child("image");
    if image.text().trim() != image.text() {
        image.invalid("must not have leading or trailing whitespace");
    }
}

fn common(at: &Field, pod: &Rules) {
    at.child("name").check_required(names::dns_label);
    if at.child("image").text().is_empty() {
        at.child("image").required("");
    }
    at.child("terminationMessagePolicy").one_of_required(&["File", "FallbackToLogsOnError"]);
    ports(&at.child("ports"));
    env(&at.child("env"));
    env_from(&at.child("envFrom"));
    volume::mounts(at, pod);
    volume::devices(at, pod);
    at.child("imagePullPolicy").one_of_required(&["Always", "IfNotPresent", "Never"]);
    resource::requirements(&at.child("resources"), Level::Container, &pod.claims);
    resize_policy(&at.child("resizePolicy"), pod);
    security::container(&at.child("securityContext"), pod);
}

fn ports(at: &Field) {
    let mut seen: Vec<&str> = Vec::new();
    for port in at.items() {
        let name = port.child("name");
        if !name.text().is_empty() {
            let before = name.noted();
            name.check(names::port_name);
            if name.noted() == before {
                if seen.contains(&name.text()) {
                    name.duplicate();
                } else {
                    seen.push(name.text());
                }
            }
        }
        let number = port.child("containerPort");
        if number.int() == 0 {
            number.required("")
        } else {
            number.check_int(names::port_number)
        }
        if port.child("hostPort").int() != 0 {
            port.child("hostPort").check_int(names::port_number);
        }
        port.child("protocol").one_of_required(&["SCTP", "TCP", "UDP"]);
    }
}

fn host_ports(at: &Field) {
    let mut seen = Vec::new();
    at.items().for_each(|container| host_ports_of(&container, &container, &mut seen));
}

/// Upstream blames the conflicts within each init container on the first of them.
fn host_ports_of(blamed: &Field, container: &Field, seen: &mut Vec<String>) {
    for (i, port) in container.child("ports").list().iter().enumerate() {
        let number = port.int_at(&["hostPort"]).unwrap_or(0);
        if number == 0 {
            continue;
        }
        let text = |key| port.str_at(&[key]).unwrap_or_default();
        let key = format!("{}/{}/{number}", text("protocol"), text("hostIP"));
        if seen.contains(&key) {
            blamed.child("ports").index(i).child("hostPort").duplicate_of(key.as_str());
        } else {
            seen.push(key);
        }
    }
}

/// The rule for names of environment variables. Servers have relaxed it; a library does if it is told to.
fn env_name(judge: Judge) -> fn(&str) -> Vec<String> {
    match judge {
        Judge::Server => names::relaxed_env_var_name,
        Judge::Library => names::env_var_name,
    }
}

fn env(at: &Field) {
    for variable in at.items() {
        variable.child("name").check_required(env_name(at.judge()));
        let from = variable.child("valueFrom");
        if from.is_set() {
            env_source(&from, variable.child("value").text());
        }
    }
}

const ENV_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

fn env_source(at: &Field, value: &str) {
    let mut sources = 0;
    let mut given = |source: &Field| {
        sources += usize::from(source.is_set());
        source.is_set()
    };
    let field = at.child("fieldRef");
    if given(&field) {
        field_ref(&field, &ENV_FIELDS);
    }
    let resource = at.child("resourceFieldRef");
    if given(&resource) {
        resource_ref(&resource, Reader::Env);
    }
    for reference in [at.child("configMapKeyRef"), at.child("secretKeyRef")] {
        if given(&reference) {
            reference.child("name").check(names::dns_subdomain);
            reference.child("key").check_required(names::config_map_key);
        }
    }
    let file = at.child("fileKeyRef");
    if given(&file) {
        file.child("key").check_required(names::relaxed_env_var_name);
        file.child("volumeName").check_required(names::dns_label);
        let path = file.child("path");
        if path.text().is_empty() { path.required("") } else { volume::no_backsteps(&path) }
    }
    if sources == 0 {
        let all = match at.judge() {
            Judge::Server => "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
            Judge::Library => "`fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`",
        };
        at.refuse("", format!("must specify one of: {all}"));
    } else if !value.is_empty() {
        at.refuse("", "may not be specified when `value` is not empty");
    } else if sources > 1 {
        at.refuse("", "may not have more than one field specified at a time");
    }
}

/// `fieldRef`: a field of the pod that the container may be told.
pub(super) fn field_ref(at: &Field, allowed: &[&str]) {
    let (version, path) = (at.child("apiVersion"), at.child("fieldPath"));
    if version.text().is_empty() {
        return version.required("");
    }
    if path.text().is_empty() {
        return path.required("");
    }
    if version.text() != "v1" {
        let why = format!("error converting fieldPath: unsupported pod version: {}", version.text());
        return path.invalid(why);
    }
    let whole = path.text();
    let subscript = whole.strip_suffix("']").and_then(|rest| rest.split_once("['"));
    match subscript {
        Some(("metadata.annotations", key)) => {
            let key = key.to_lowercase();
            names::label_key(&key).into_iter().for_each(|message| at.refuse(key.as_str(), message));
        }
        Some(("metadata.labels", key)) => {
            names::label_key(key).into_iter().for_each(|message| at.refuse(key, message));
        }
        Some(_) => {
            path.invalid(format!("error converting fieldPath: field label does not support subscript: {whole}"));
        }
        None if allowed.contains(&whole) || whole == "spec.host" => {}
        None if is_field_label(whole) => path.not_supported(allowed),
        None => path.invalid(format!("error converting fieldPath: field label not supported: {whole}")),
    }
}

fn is_field_label(path: &str) -> bool {
    ENV_FIELDS.contains(&path)
        || ["metadata.annotations", "metadata.labels", "spec.restartPolicy", "spec.schedulerName", "status.phase"]
            .contains(&path)
}

const RESOURCE_FIELDS: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// Who reads a field of the pod.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// A variable of the container itself.
    Env,
    /// A file in a volume, which must say whose limits it means.
    Volume,
}

/// `resourceFieldRef`: a limit or request that the container may be told.
pub(super) fn resource_ref(at: &Field, reader: Reader) {
    let (container, resource) = (at.child("containerName"), at.child("resource"));
    let name = resource.text();
    let huge = name.starts_with("requests.hugepages-") || name.starts_with("limits.hugepages-");
    if reader == Reader::Volume && container.text().is_empty() {
        container.required("");
    } else if name.is_empty() {
        resource.required("");
    } else if !huge {
        resource.one_of(&RESOURCE_FIELDS);
    }
    let divisor = at.child("divisor");
    if resource::amount(divisor.value) == 0 {
        return;
    }
    let sizes = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
    let divided = divisor.text();
    let what = match name {
        "limits.cpu" | "requests.cpu" => {
            if !["1m", "1"].contains(&divided) {
                divisor.refuse(name, "only divisor's values 1m and 1 are supported with the cpu resource");
            }
            return;
        }
        "limits.memory" | "requests.memory" => "memory",
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => "local ephemeral storage",
        _ if huge => "hugepages",
        _ => return,
    };
    if !sizes.contains(&divided) {
        let sizes = sizes.join(", ");
        divisor.refuse(name, format!("only divisor's values {sizes} are supported with the {what} resource"));
    }
}

fn env_from(at: &Field) {
    for source in at.items() {
        source.child("prefix").check_given(env_name(at.judge()));
        let mut sources = 0;
        for reference in [source.child("configMapRef"), source.child("secretRef")] {
            if reference.is_set() {
                sources += 1;
                // Upstream lets a trailing dash pass here, as in a generateName.
                reference.child("name").check_required(|name| names::dns_subdomain(&names::mask_trailing_dash(name)));
            }
        }
        match sources {
            0 => at.refuse("", "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => at.refuse("", "may not have more than one field specified at a time"),
        }
    }
}

fn resize_policy(at: &Field, pod: &Rules) {
    let mut seen: Vec<&str> = Vec::new();
    for policy in at.items() {
        let (resource, restart) = (policy.child("resourceName").text(), policy.child("restartPolicy").text());
        if seen.contains(&resource) {
            policy.duplicate_of(resource);
        }
        seen.push(resource);
        for (given, allowed) in [(resource, ["cpu", "memory"]), (restart, ["NotRequired", "RestartContainer"])] {
            if given.is_empty() {
                at.required("");
            } else if !allowed.contains(&given) {
                at.note(crate::status::FieldError::not_supported(at.to_string(), given, &allowed));
            }
        }
        if pod.restart_policy == "Never" && restart != "NotRequired" {
            at.refuse(restart, "must be 'NotRequired' when `restartPolicy` is 'Never'");
        }
    }
}

fn restart_policy(at: &Field) {
    let (policy, rules) = (at.child("restartPolicy"), at.child("restartPolicyRules"));
    if !policy.is_set() {
        if rules.len() == 0 {
            return;
        }
        policy.required("must specify restartPolicy when restart rules are used");
    } else {
        policy.one_of(&["Always", "Never", "OnFailure"]);
    }
    if rules.len() > 20 {
        rules.too_long(20);
    }
    for rule in rules.items() {
        rule.child("action").one_of(&["Restart"]);
        let codes = rule.child("exitCodes");
        if !codes.is_set() {
            codes.required("must be specified");
            continue;
        }
        codes.child("operator").one_of(&["In", "NotIn"]);
        if codes.child("values").len() > 255 {
            codes.child("values").too_long(255);
        }
    }
}

fn hooks_and_probes(at: &Field, pod: &Rules) {
    let lifecycle = at.child("lifecycle");
    for hook in [lifecycle.child("postStart"), lifecycle.child("preStop")] {
        if hook.is_set() {
            handler(&hook, pod);
        }
    }
    stop_signal(&lifecycle.child("stopSignal"), pod);
    for (name, must_succeed_once) in [("livenessProbe", true), ("readinessProbe", false), ("startupProbe", true)] {
        let at = at.child(name);
        if !at.is_set() {
            continue;
        }
        probe(&at, pod);
        let successes = at.child("successThreshold");
        if must_succeed_once && successes.int() != 1 {
            successes.refuse(successes.int(), "must be 1");
        }
        let grace = at.child("terminationGracePeriodSeconds");
        if name == "readinessProbe" && grace.is_set() {
            grace.invalid("must not be set for readinessProbes");
        }
    }
}

fn stop_signal(at: &Field, pod: &Rules) {
    if !at.is_set() {
        return;
    }
    match pod.os {
        None => at.forbidden("may not be set for containers with empty `spec.os.name`"),
        Some(WINDOWS) => at.one_of(&["SIGKILL", "SIGTERM"]),
        Some(_) => {}
    }
}

fn probe(at: &Field, pod: &Rules) {
    handler(at, pod);
    for name in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
        at.child(name).non_negative();
    }
    let grace = at.child("terminationGracePeriodSeconds");
    if grace.is_set() && grace.int() <= 0 {
        grace.invalid("must be greater than 0");
    }
}

fn handler(at: &Field, pod: &Rules) {
    let mut handlers = 0;
    for name in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let action = at.child(name);
        if !action.is_set() {
            continue;
        }
        handlers += 1;
        if handlers > 1 {
            action.forbidden("may not specify more than 1 handler type");
            continue;
        }
        match name {
            "exec" if action.child("command").len() == 0 => action.child("command").required(""),
            "httpGet" => http_get(&action),
            "tcpSocket" => port_or_name(&action.child("port")),
            "grpc" => action.child("port").check_int(names::port_number),
            "sleep" => sleep(&action, pod),
            _ => {}
        }
    }
    if handlers == 0 {
        at.required("must specify a handler type");
    }
}

fn sleep(at: &Field, pod: &Rules) {
    let seconds = at.child("seconds").int();
    let Some(grace) = pod.grace else { return };
    if !(0..=grace).contains(&seconds) {
        let why = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        at.refuse(seconds, why);
    }
}

fn http_get(at: &Field) {
    if at.child("path").text().is_empty() {
        at.child("path").required("");
    }
    port_or_name(&at.child("port"));
    at.child("scheme").one_of(&["HTTP", "HTTPS"]);
    let headers = at.child("httpHeaders");
    for header in headers.items() {
        let name = header.child("name").text();
        names::http_header_name(name).into_iter().for_each(|message| headers.refuse(name, message));
    }
}

/// A port by number or by name.
pub fn port_or_name(at: &Field) {
    match at.value.as_str() {
        Some(_) => at.check(names::port_name),
        None => at.check_int(names::port_number),
    }
}
