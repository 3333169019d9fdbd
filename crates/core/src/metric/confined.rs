//! A Job of an analysis in a namespace that is not its run's: whoever writes the run has no rights there.
//!
//! What a Job may have is listed; all else is refused by its name, so that a field that Kubernetes learns one day is refused
//! as well. What the restricted profile of pod security asks for and a Job leaves out is filled in. Pure.

use crate::{kubernetes::value::Value, value};

/// What pods may have.
const POD: [&str; 23] = [
    "activeDeadlineSeconds",
    "affinity",
    "automountServiceAccountToken",
    "containers",
    "dnsConfig",
    "dnsPolicy",
    "enableServiceLinks",
    "hostname",
    "initContainers",
    "nodeSelector",
    "os",
    "preemptionPolicy",
    "readinessGates",
    "restartPolicy",
    "schedulerName",
    "securityContext",
    "serviceAccount",
    "serviceAccountName",
    "subdomain",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
    "volumes",
];
/// What containers may have.
const CONTAINER: [&str; 19] = [
    "args",
    "command",
    "env",
    "image",
    "imagePullPolicy",
    "livenessProbe",
    "name",
    "ports",
    "readinessProbe",
    "resizePolicy",
    "resources",
    "restartPolicy",
    "securityContext",
    "startupProbe",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "tty",
    "volumeMounts",
    "workingDir",
];
/// What the security contexts of pods and containers may have, whatever the value.
const SECURITY: [&str; 7] = [
    "fsGroup",
    "fsGroupChangePolicy",
    "readOnlyRootFilesystem",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "allowPrivilegeEscalation",
];
/// Volumes that hold nothing of the namespace.
const VOLUMES: [&str; 3] = ["downwardAPI", "emptyDir", "name"];
/// Labels of pods that choose nothing but what is put beside them.
const LABELS: [&str; 1] = ["sidecar.istio.io/inject"];

/// Puts the pods of a Job under an account of the operator's, without a token and with the restricted profile; the error names
/// what a Job has that it may not have there.
pub fn confine(spec: &mut Value, account: &str) -> Result<(), String> {
    let pod = spec.at(&["template", "spec"]).cloned().unwrap_or_default();
    let at = "spec.template.spec";
    only(&pod, &POD, at)?;
    security(pod.at(&["securityContext"]), &format!("{at}.securityContext"))?;
    for (index, volume) in pod.list_at(&["volumes"]).iter().enumerate() {
        only(volume, &VOLUMES, &format!("{at}.volumes[{index}]"))?;
    }
    let mut pod = pod;
    for list in ["initContainers", "containers"] {
        let mut containers = pod.list_at(&[list]).to_vec();
        if containers.is_empty() {
            continue;
        }
        for (index, container) in containers.iter_mut().enumerate() {
            confine_container(container, &format!("{at}.{list}[{index}]"))?;
        }
        pod.set_at(&[list], containers);
    }
    pod.remove_at(&["serviceAccount"]);
    pod.set_at(&["serviceAccountName"], account);
    pod.set_at(&["automountServiceAccountToken"], false);
    pod.set_at(&["enableServiceLinks"], false);
    pod.set_at(&["securityContext", "runAsNonRoot"], true);
    if pod.at(&["securityContext", "seccompProfile"]).is_none_or(Value::is_null) {
        pod.set_at(&["securityContext", "seccompProfile"], value!({"type": "RuntimeDefault"}));
    }
    spec.set_at(&["template", "spec"], pod);
    // By its labels a pod is chosen: by Services, by network policies.
    let labels = spec.at(&["template", "metadata", "labels"]).and_then(Value::as_map);
    let kept: Vec<(String, Value)> = labels
        .into_iter()
        .flat_map(|labels| labels.iter())
        .filter(|(key, _)| LABELS.contains(&key.as_str()))
        .map(|(key, label)| (key.to_string(), label.clone()))
        .collect();
    spec.remove_at(&["template", "metadata", "labels"]);
    for (key, label) in kept {
        spec.set_at(&["template", "metadata", "labels", &key], label);
    }
    Ok(())
}

fn confine_container(container: &mut Value, at: &str) -> Result<(), String> {
    only(container, &CONTAINER, at)?;
    for (index, port) in container.list_at(&["ports"]).iter().enumerate() {
        only(port, &["containerPort", "name", "protocol"], &format!("{at}.ports[{index}]"))?;
    }
    for (index, variable) in container.list_at(&["env"]).iter().enumerate() {
        let at = format!("{at}.env[{index}]");
        only(variable, &["name", "value", "valueFrom"], &at)?;
        if let Some(from) = variable.at(&["valueFrom"]) {
            only(from, &["fieldRef", "resourceFieldRef"], &format!("{at}.valueFrom"))?;
        }
    }
    security(container.at(&["securityContext"]), &format!("{at}.securityContext"))?;
    container.set_at(&["securityContext", "allowPrivilegeEscalation"], false);
    container.set_at(&["securityContext", "capabilities", "drop"], value!(["ALL"]));
    Ok(())
}

/// What the restricted profile says about a security context.
fn security(context: Option<&Value>, at: &str) -> Result<(), String> {
    let Some(map) = context.and_then(Value::as_map) else { return Ok(()) };
    for (key, given) in map.iter() {
        let is_fine = match key.as_str() {
            key if SECURITY.contains(&key) => true,
            "privileged" => given.as_bool() == Some(false),
            "runAsNonRoot" => given.as_bool() == Some(true),
            "runAsUser" => given.as_int().is_some_and(|user| user != 0),
            "seccompProfile" => matches!(given.str_at(&["type"]), Some("RuntimeDefault" | "Localhost")),
            "capabilities" => {
                let added = given.list_at(&["add"]);
                added.iter().all(|name| name.as_str() == Some("NET_BIND_SERVICE"))
            }
            _ => false,
        };
        if !is_fine && !given.is_null() {
            return Err(refused(&format!("{at}.{key}: {}", given.to_json())));
        }
    }
    Ok(())
}

fn only(object: &Value, known: &[&str], at: &str) -> Result<(), String> {
    let keys = object.as_map().into_iter().flat_map(|map| map.iter());
    let other = keys.filter(|(_, value)| !value.is_null()).find(|(key, _)| !known.contains(&key.as_str()));
    other.map_or(Ok(()), |(key, _)| Err(refused(&format!("{at}.{key}"))))
}

fn refused(what: &str) -> String {
    let what: String = what.chars().take(200).collect();
    format!(
        "a Job in a namespace that is not its run's must not have {what}; leave it out, or let the operator trust the Jobs of \
         all runs: tidegate run --trust-analysis-jobs"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(container: Value, pod: Value) -> Value {
        let mut spec =
            value!({"template": {"metadata": {"labels": {"app": "prometheus", "sidecar.istio.io/inject": "false"}}}});
        spec.set_at(&["template", "spec"], pod);
        let mut first = container;
        first.set_at(&["name"], "main");
        spec.set_at(&["template", "spec", "containers"], Value::list([first]));
        spec
    }

    #[test]
    fn sr13_a_job_in_the_operators_namespace_has_the_operators_account_and_no_rights() {
        let mut spec = job(
            value!({"image": "x", "securityContext": {"capabilities": {"add": ["NET_BIND_SERVICE"]}}}),
            value!({"serviceAccountName": "tidegate", "serviceAccount": "tidegate", "automountServiceAccountToken": true,
                "restartPolicy": "Never"}),
        );
        confine(&mut spec, "analysis").unwrap();
        assert_eq!(
            spec,
            value!({"template": {
                "metadata": {"labels": {"sidecar.istio.io/inject": "false"}},
                "spec": {
                    "restartPolicy": "Never",
                    "serviceAccountName": "analysis",
                    "automountServiceAccountToken": false,
                    "enableServiceLinks": false,
                    "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
                    "containers": [{"name": "main", "image": "x", "securityContext": {
                        "allowPrivilegeEscalation": false,
                        "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]},
                    }}],
                },
            }})
        );
        let once = spec.clone();
        confine(&mut spec, "analysis").unwrap();
        assert_eq!(spec, once);
    }

    #[test]
    fn sr13_what_a_job_must_not_have_there_is_refused_by_its_name() {
        let plain = || value!({});
        let env = |from: Value| value!({"env": [{"name": "a", "valueFrom": from}]});
        let volume = |volume: Value| value!({"volumes": [volume]});
        for (container, pod, what) in [
            (plain(), value!({"hostNetwork": true}), "spec.template.spec.hostNetwork;"),
            (plain(), value!({"hostPID": true}), "spec.template.spec.hostPID;"),
            (plain(), value!({"nodeName": "n"}), "spec.template.spec.nodeName;"),
            (plain(), value!({"priorityClassName": "p"}), "spec.template.spec.priorityClassName;"),
            (plain(), value!({"imagePullSecrets": [{"name": "p"}]}), "spec.template.spec.imagePullSecrets;"),
            (plain(), value!({"fieldOfTomorrow": 1}), "spec.template.spec.fieldOfTomorrow;"),
            (
                plain(),
                value!({"securityContext": {"runAsUser": 0}}),
                "spec.template.spec.securityContext.runAsUser: 0;",
            ),
            (plain(), volume(value!({"name": "v", "hostPath": {"path": "/"}})), "volumes[0].hostPath;"),
            (plain(), volume(value!({"name": "v", "secret": {"secretName": "s"}})), "volumes[0].secret;"),
            (plain(), volume(value!({"name": "v", "projected": {"sources": []}})), "volumes[0].projected;"),
            (value!({"envFrom": [{"secretRef": {"name": "s"}}]}), plain(), "containers[0].envFrom;"),
            (env(value!({"secretKeyRef": {"name": "s", "key": "k"}})), plain(), "env[0].valueFrom.secretKeyRef;"),
            (value!({"ports": [{"containerPort": 1, "hostPort": 1}]}), plain(), "ports[0].hostPort;"),
            (value!({"securityContext": {"privileged": true}}), plain(), "securityContext.privileged: true;"),
            (
                value!({"securityContext": {"procMount": "Unmasked"}}),
                plain(),
                "securityContext.procMount: \"Unmasked\";",
            ),
            (
                value!({"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}),
                plain(),
                "securityContext.capabilities: ",
            ),
            (
                plain(),
                value!({"initContainers": [{"name": "i", "securityContext": {"runAsNonRoot": false}}]}),
                "initContainers[0].securityContext.runAsNonRoot: false;",
            ),
        ] {
            let mut spec = job(container, pod);
            let before = spec.clone();
            let why = confine(&mut spec, "analysis").unwrap_err();
            assert!(why.contains(what), "{what}: {why}");
            assert_eq!(spec, before, "{what}");
        }
        let mut spec = job(
            env(value!({"fieldRef": {"fieldPath": "metadata.name"}})),
            volume(value!({"name": "v", "emptyDir": {}})),
        );
        assert_eq!(confine(&mut spec, "analysis"), Ok(()));
    }
}
