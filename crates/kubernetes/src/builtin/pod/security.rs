//! Rules for what the processes of a pod may do.

use super::{Rules, WINDOWS, volume};
use crate::{
    builtin::{field::Field, gostruct},
    names,
    value::Value,
};

/// `spec.securityContext`, with the flags that stand beside it in `spec`.
pub(super) fn pod(spec: &Field) {
    let at = spec.child("securityContext");
    for id in [at.child("fsGroup"), at.child("runAsUser"), at.child("runAsGroup")] {
        id.check_int(names::user_id);
    }
    at.child("supplementalGroups").items().for_each(|group| group.check_int(names::user_id));
    if spec.child("shareProcessNamespace").is_true() && spec.child("hostPID").is_true() {
        at.child("shareProcessNamespace").refuse(true, "ShareProcessNamespace and HostPID cannot both be enabled");
    }
    sysctls(spec, &at.child("sysctls"));
    at.child("fsGroupChangePolicy").one_of_given(&["Always", "OnRootMismatch"]);
    seccomp(&at.child("seccompProfile"));
    app_armor(&at.child("appArmorProfile"));
    at.child("supplementalGroupsPolicy").one_of_given(&["Merge", "Strict"]);
    at.child("seLinuxChangePolicy").one_of_given(&["Recursive"]);
}

/// `securityContext` of a container.
pub(super) fn container(at: &Field, pod: &Rules) {
    if !at.is_set() {
        return;
    }
    for id in [at.child("runAsUser"), at.child("runAsGroup")] {
        id.check_int(names::user_id);
    }
    let proc_mount = at.child("procMount");
    proc_mount.one_of_given(&["Default", "Unmasked"]);
    if pod.host_users && proc_mount.text() == "Unmasked" {
        proc_mount.invalid("`hostUsers` must be false to use `Unmasked`");
    }
    seccomp(&at.child("seccompProfile"));
    if at.child("allowPrivilegeEscalation").value.as_bool() == Some(false) {
        let printed = || gostruct::print("SecurityContext", at.value);
        if at.child("privileged").is_true() {
            at.refuse_printed(printed(), "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
        }
        let added = at.value.list_at(&["capabilities", "add"]);
        if added.contains(&Value::from("CAP_SYS_ADMIN")) {
            let why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            at.refuse_printed(printed(), why);
        }
    }
    app_armor(&at.child("appArmorProfile"));
}

fn seccomp(at: &Field) {
    if !at.is_set() {
        return;
    }
    let (kind, profile) = (at.child("type"), at.child("localhostProfile"));
    match kind.text() {
        "" => kind.required("type is required when seccompProfile is set"),
        _ => kind.one_of(&["Localhost", "RuntimeDefault", "Unconfined"]),
    }
    match (kind.text(), profile.is_set()) {
        ("Localhost", false) => profile.required("must be set when seccomp type is Localhost"),
        ("Localhost", true) => volume::descending(&profile),
        (_, true) => {
            let printed = gostruct::print("SeccompProfile", at.value);
            profile.refuse_printed(printed, "can only be set when seccomp type is Localhost");
        }
        (_, false) => {}
    }
}

fn app_armor(at: &Field) {
    if !at.is_set() {
        return;
    }
    let (kind, profile) = (at.child("type"), at.child("localhostProfile"));
    match kind.text() {
        "Localhost" => {
            let text = profile.text();
            if !profile.is_set() || (text.is_empty()) {
                profile.required("must be set when AppArmor type is Localhost");
            } else if text.trim() != text {
                profile.invalid("must not be padded with whitespace");
            }
            if text.len() > 4095 {
                profile.too_long(4095);
            }
        }
        "RuntimeDefault" | "Unconfined" => {
            if profile.is_set() {
                profile.invalid("can only be set when AppArmor type is Localhost");
            }
        }
        "" => kind.required("type is required when appArmorProfile is set"),
        _ => kind.not_supported(&["Localhost", "RuntimeDefault", "Unconfined"]),
    }
}

const SYSCTL: &str = "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

fn is_sysctl(name: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
    let edge = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    name.len() <= 253
        && name.split(['.', '/']).all(|part| {
            let part = part.as_bytes();
            part.iter().all(|b| inner(*b)) && edge(part.first()) && edge(part.last())
        })
}

fn sysctls(spec: &Field, at: &Field) {
    let mut seen: Vec<&str> = Vec::new();
    for sysctl in at.items() {
        let name = sysctl.child("name");
        if name.text().is_empty() {
            name.required("");
        } else if !is_sysctl(name.text()) {
            name.invalid(format!("must have at most 253 characters and match regex {SYSCTL}"));
        } else if seen.contains(&name.text()) {
            name.duplicate();
        }
        let dotted = name.text().replace('/', ".");
        let ipc =
            dotted == "kernel.sem" || ["kernel.shm", "kernel.msg", "fs.mqueue."].iter().any(|p| dotted.starts_with(p));
        if spec.child("hostNetwork").is_true() && dotted.starts_with("net.") {
            name.invalid("may not be specified when 'hostNetwork' is true");
        } else if spec.child("hostIPC").is_true() && ipc {
            name.invalid("may not be specified when 'hostIPC' is true");
        }
        seen.push(name.text());
    }
}

/// What a pod without the host's users cannot share with the host either.
pub(super) fn host_users(spec: &Field, pod: &Rules) {
    if pod.host_users {
        return;
    }
    for (set, blamed) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.child(set).is_true() {
            spec.child(blamed).forbidden("when `hostUsers` is false");
        }
    }
    each_container(spec, |container| {
        if container.child("volumeDevices").len() > 0 {
            container.child("volumeDevices").forbidden("when `hostUsers` is false");
        }
    });
}

/// What the operating system of the pod has no use for.
pub(super) fn operating_system(spec: &Field, pod: &Rules) {
    let os = spec.child("os");
    if !os.is_set() {
        return;
    }
    let name = os.child("name");
    if name.text().is_empty() {
        return name.required("");
    }
    if !["linux", WINDOWS].contains(&name.text()) {
        return os.with(name.value).not_supported(&["linux", WINDOWS]);
    }
    let context = spec.child("securityContext");
    if pod.os != Some(WINDOWS) {
        let bar = |context: &Field| {
            let options = context.child("windowsOptions");
            if options.is_set() {
                options.forbidden("windows options cannot be set for a linux pod");
            }
        };
        bar(&context);
        each_container(spec, |container| bar(&container.child("securityContext")));
        return;
    }
    let bar = |at: &Field, names: &[&str]| {
        for field in names.iter().map(|name| at.child(name)) {
            if field.is_set() && field.value.as_bool() != Some(false) {
                field.forbidden("cannot be set for a windows pod");
            }
        }
    };
    bar(&context, &["appArmorProfile", "seLinuxOptions"]);
    bar(spec, &["hostUsers", "hostPID", "hostIPC"]);
    bar(&context, &["seccompProfile", "fsGroup", "fsGroupChangePolicy", "sysctls"]);
    bar(spec, &["shareProcessNamespace"]);
    let of_pod = ["runAsUser", "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy"];
    bar(&context, &of_pod);
    let of_container = [
        "appArmorProfile",
        "seLinuxOptions",
        "seccompProfile",
        "capabilities",
        "readOnlyRootFilesystem",
        "privileged",
        "allowPrivilegeEscalation",
        "procMount",
        "runAsUser",
        "runAsGroup",
    ];
    each_container(spec, |container| bar(&container.child("securityContext"), &of_container));
}

/// Every container of a pod, in upstream's order.
pub(super) fn each_container(spec: &Field, judge: impl Fn(&Field)) {
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        spec.child(list).items().for_each(|container| judge(&container));
    }
}
