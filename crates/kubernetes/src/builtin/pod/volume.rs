//! Rules for the volumes of a pod and for where its containers see them.

use super::{Place, Rules, container};
use crate::{
    builtin::{field::Field, meta, resource, storage},
    names,
    value::Value,
};

/// Every kind of volume, in the order upstream looks for them, with the name a second one is blamed on.
const KINDS: [(&str, &str); 30] = [
    ("emptyDir", "emptyDir"),
    ("hostPath", "hostPath"),
    ("gitRepo", "gitRepo"),
    ("gcePersistentDisk", "gcePersistentDisk"),
    ("awsElasticBlockStore", "awsElasticBlockStore"),
    ("secret", "secret"),
    ("nfs", "nfs"),
    ("iscsi", "iscsi"),
    ("glusterfs", "glusterfs"),
    ("flocker", "flocker"),
    ("persistentVolumeClaim", "persistentVolumeClaim"),
    ("rbd", "rbd"),
    ("cinder", "cinder"),
    ("cephfs", "cephFS"),
    ("quobyte", "quobyte"),
    ("downwardAPI", "downwarAPI"), // as upstream misspells it
    ("fc", "fc"),
    ("flexVolume", "flexVolume"),
    ("configMap", "configMap"),
    ("azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume"),
    ("photonPersistentDisk", "photonPersistentDisk"),
    ("portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk"),
    ("storageos", "storageos"),
    ("projected", "projected"),
    ("scaleIO", "scaleIO"),
    ("csi", "csi"),
    ("ephemeral", "ephemeral"),
    ("image", "image"),
];

/// `spec.volumes`. Returns those that are in order, by name: mounts may name no others. `pod` is the name of the pod,
/// if there is one already.
pub(super) fn volumes<'v>(at: &Field<'v, '_>, place: Place, pod: &str) -> Vec<(&'v str, &'v Value)> {
    let mut good: Vec<(&str, &Value)> = Vec::new();
    for volume in at.items() {
        let before = at.noted();
        source(&volume, place, pod);
        let name = volume.child("name");
        name.check_required(names::dns_label);
        if good.iter().any(|(taken, _)| *taken == name.text()) {
            name.duplicate();
        }
        if at.noted() == before {
            good.push((name.text(), volume.value));
        }
        let claim = volume.child("persistentVolumeClaim");
        let claim = claim.child("claimName");
        let made_for = |volume: &Value| {
            let name = volume.str_at(&["name"]).unwrap_or_default();
            volume.get("ephemeral").is_some() && claim.text().strip_prefix(pod) == Some(&format!("-{name}"))
        };
        if !pod.is_empty() && !claim.text().is_empty() && at.list().iter().any(made_for) {
            claim.invalid("must not reference a PVC that gets created for an ephemeral volume");
        }
    }
    good
}

fn source(at: &Field, place: Place, pod: &str) {
    let mut kinds = 0;
    for (kind, blamed) in KINDS {
        let source = at.child(kind);
        if !source.is_set() {
            continue;
        }
        kinds += 1;
        if kinds > 1 {
            at.child(blamed).forbidden("may not specify more than 1 volume type");
            continue;
        }
        one_source(&source, kind, place);
        let name = at.child("name");
        if kind == "ephemeral" && !pod.is_empty() && !name.text().is_empty() {
            let claim = format!("{pod}-{}", name.text());
            for message in names::dns_subdomain(&claim) {
                name.invalid(format!("PVC name {claim:?}: {message}"));
            }
        }
    }
    if kinds == 0 {
        at.required("must specify a volume type");
    }
}

fn one_source(at: &Field, kind: &str, place: Place) {
    let needs = |fields: &[&str]| {
        for field in fields.iter().map(|name| at.child(name)).filter(|field| field.text().is_empty()) {
            field.required("");
        }
    };
    match kind {
        "emptyDir" if resource::amount(at.child("sizeLimit").value) < 0 => {
            at.child("sizeLimit").forbidden("SizeLimit field must be a valid resource quantity");
        }
        "hostPath" => host_path(at),
        "secret" => {
            needs(&["secretName"]);
            files(at);
        }
        "configMap" => {
            needs(&["name"]);
            files(at);
        }
        "downwardAPI" => {
            file_mode(&at.child("defaultMode"));
            at.child("items").list().iter().for_each(|file| downward_file(at, file));
        }
        "projected" => projected(at),
        "persistentVolumeClaim" => needs(&["claimName"]),
        "nfs" => {
            needs(&["server", "path"]);
            absolute(&at.child("path"));
        }
        "csi" => storage::csi_volume(at),
        "ephemeral" => {
            let template = at.child("volumeClaimTemplate");
            if template.is_set() { storage::claim_template(&template) } else { template.required("") }
        }
        "image" => {
            if place == Place::Pod {
                needs(&["reference"]);
            }
            at.child("pullPolicy").one_of_required(&["Always", "IfNotPresent", "Never"]);
        }
        "gitRepo" => {
            needs(&["repository"]);
            descending(&at.child("directory"));
        }
        "rbd" => needs(&["image"]),
        "cinder" | "portworxVolume" | "awsElasticBlockStore" => needs(&["volumeID"]),
        "glusterfs" => needs(&["endpoints", "path"]),
        "azureFile" => needs(&["secretName", "shareName"]),
        "vsphereVolume" => needs(&["volumePath"]),
        "flexVolume" => needs(&["driver"]),
        "iscsi" => needs(&["targetPortal", "iqn"]),
        _ => {}
    }
}

fn host_path(at: &Field) {
    let path = at.child("path");
    if path.text().is_empty() {
        return path.required("");
    }
    no_backsteps(&path);
    at.child("type").one_of_given(&[
        "",
        "BlockDevice",
        "CharDevice",
        "Directory",
        "DirectoryOrCreate",
        "File",
        "FileOrCreate",
        "Socket",
    ]);
}

fn file_mode(at: &Field) {
    if !(0..=0o777).contains(&at.int()) {
        at.invalid("must be a number between 0 and 0777 (octal), both inclusive");
    }
}

fn files(at: &Field) {
    file_mode(&at.child("defaultMode"));
    at.child("items").items().for_each(|item| key_to_path(&item));
}

fn key_to_path(at: &Field) {
    for field in [at.child("key"), at.child("path")] {
        if field.text().is_empty() {
            field.required("");
        }
    }
    descending_unreserved(&at.child("path"), at.child("path").text());
    file_mode(&at.child("mode"));
}

const DOWNWARD_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// One file of the downward API; upstream blames its problems on the volume (`at`), not on the item.
fn downward_file(at: &Field, file: &Value) {
    let path = file.str_at(&["path"]).unwrap_or_default();
    if path.is_empty() {
        at.child("path").required("");
    }
    descending_unreserved(&at.child("path"), path);
    let (field, resource) = (file.get("fieldRef"), file.get("resourceFieldRef"));
    match (field, resource) {
        (Some(field), _) => {
            container::field_ref(&at.child("fieldRef").with(field), &DOWNWARD_FIELDS);
            if resource.is_some() {
                at.refuse("resource", "fieldRef and resourceFieldRef can not be specified simultaneously");
            }
        }
        (None, Some(resource)) => {
            container::resource_ref(&at.child("resourceFieldRef").with(resource), container::Reader::Volume);
        }
        (None, None) => at.required("one of fieldRef and resourceFieldRef is required"),
    }
    if let Some(mode) = file.get("mode") {
        file_mode(&at.child("mode").with(mode));
    }
}

fn projected(at: &Field) {
    file_mode(&at.child("defaultMode"));
    let mut paths: Vec<&str> = Vec::new();
    for source in at.child("sources").items() {
        let mut sources = 0;
        for kind in ["secret", "configMap"] {
            let from = source.child(kind);
            if !from.is_set() {
                continue;
            }
            sources += 1;
            let name = from.child("name");
            if name.text().is_empty() {
                name.required("");
            }
            for item in from.child("items").items() {
                key_to_path(&item);
                unique_path(at, &mut paths, item.value.str_at(&["path"]).unwrap_or_default(), name.text());
            }
        }
        let downward = source.child("downwardAPI");
        if downward.is_set() {
            sources += 1;
            for file in downward.child("items").list() {
                downward_file(&downward, file);
                let path = file.str_at(&["path"]).unwrap_or_default();
                unique_path(at, &mut paths, path, path);
            }
        }
        let token = source.child("serviceAccountToken");
        if token.is_set() {
            sources += 1;
            service_account_token(at, &token);
        }
        sources += usize::from(source.child("clusterTrustBundle").is_set());
        sources += usize::from(source.child("podCertificate").is_set());
        if sources > 1 {
            source.forbidden("may not specify more than 1 volume type per source");
        }
    }
}

fn unique_path<'v>(at: &Field, paths: &mut Vec<&'v str>, path: &'v str, blamed: &str) {
    if path.is_empty() {
        return;
    }
    if paths.contains(&path) {
        at.refuse(blamed, "conflicting duplicate paths");
    } else {
        paths.push(path);
    }
}

fn service_account_token(at: &Field, token: &Field) {
    let expiry = token.child("expirationSeconds");
    if expiry.int() < 600 {
        expiry.refuse(expiry.int(), "may not specify a duration less than 10 minutes");
    }
    if expiry.int() > 1 << 32 {
        expiry.refuse(expiry.int(), "may not specify a duration larger than 2^32 seconds");
    }
    match token.child("path").text() {
        "" => at.child("path").required(""),
        path => descending_unreserved(&at.child("path"), path),
    }
}

fn absolute(at: &Field) {
    if !at.text().starts_with('/') {
        at.refuse(at.text(), "must be an absolute path");
    }
}

/// A relative path that stays below where it starts.
pub(super) fn descending(at: &Field) {
    descending_text(at, at.text());
}

fn descending_text(at: &Field, path: &str) {
    if path.starts_with('/') {
        at.refuse(path, "must be a relative path");
    }
    if path.split('/').any(|part| part == "..") {
        at.refuse(path, "must not contain '..'");
    }
}

fn descending_unreserved(at: &Field, path: &str) {
    descending_text(at, path);
    if path.starts_with("..") && !path.starts_with("../") {
        at.refuse(path, "must not start with '..'");
    }
}

/// A path that never goes up.
pub(super) fn no_backsteps(at: &Field) {
    if at.text().split('/').any(|part| part == "..") {
        at.invalid("must not contain '..'");
    }
}

/// `volumeMounts` of a container.
pub(super) fn mounts(container: &Field, pod: &Rules) {
    let (at, devices) = (container.child("volumeMounts"), container.child("volumeDevices"));
    let mut paths: Vec<&str> = Vec::new();
    for mount in at.items() {
        let (name, path) = (mount.child("name"), mount.child("mountPath"));
        if name.text().is_empty() {
            name.required("");
        }
        if pod.volume(name.text()).is_none() {
            name.not_found();
        }
        if path.text().is_empty() {
            path.required("");
        }
        if paths.contains(&path.text()) {
            path.refuse(path.text(), "must be unique");
        }
        paths.push(path.text());
        if devices.list().iter().any(|device| device.str_at(&["name"]).unwrap_or_default() == name.text()) {
            name.refuse(name.text(), "must not already exist in volumeDevices");
        }
        if devices.list().iter().any(|device| device.str_at(&["devicePath"]).unwrap_or_default() == path.text()) {
            path.refuse(path.text(), "must not already exist as a path in volumeDevices");
        }
        sub_paths(&at, &mount);
        propagation(&at, &mount, container);
    }
}

fn sub_paths(at: &Field, mount: &Field) {
    let (path, expression) = (mount.child("subPath"), mount.child("subPathExpr"));
    descending_text(&at.child("subPath"), path.text());
    if expression.text().is_empty() {
        return;
    }
    if !path.text().is_empty() {
        expression.invalid("subPathExpr and subPath are mutually exclusive");
    }
    descending_text(&at.child("subPathExpr"), expression.text());
}

fn propagation(at: &Field, mount: &Field, container: &Field) {
    let (mode, read_only) = (mount.child("mountPropagation"), mount.child("recursiveReadOnly"));
    if mode.is_set() {
        let blamed = at.child("mountPropagation").with(mode.value);
        blamed.one_of(&["Bidirectional", "HostToContainer", "None"]);
        let context = container.child("securityContext");
        if mode.text() == "Bidirectional" && !context.child("privileged").is_true() {
            blamed.forbidden("Bidirectional mount propagation is available only to privileged containers");
        }
    }
    if !read_only.is_set() {
        return;
    }
    let blamed = at.child("recursiveReadOnly").with(read_only.value);
    match read_only.text() {
        "Disabled" => {}
        "Enabled" | "IfPossible" => {
            if !mount.child("readOnly").is_true() {
                blamed.forbidden("may only be specified when readOnly is true");
            }
            if mode.is_set() && mode.text() != "None" {
                blamed.forbidden("may only be specified when mountPropagation is None or not specified");
            }
        }
        _ => blamed.not_supported(&["Disabled", "Enabled", "IfPossible"]),
    }
}

/// `volumeDevices` of a container.
pub(super) fn devices(container: &Field, pod: &Rules) {
    let (at, mounts) = (container.child("volumeDevices"), container.child("volumeMounts"));
    let (mut paths, mut names): (Vec<&str>, Vec<&str>) = Default::default();
    for device in at.items() {
        let (name, path) = (device.child("name"), device.child("devicePath"));
        if name.text().is_empty() {
            name.required("");
        }
        if names.contains(&name.text()) {
            name.refuse(name.text(), "must be unique");
        }
        match pod.volume(name.text()) {
            Some(volume) if volume.get("persistentVolumeClaim").or(volume.get("ephemeral")).is_none() => {
                let why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                name.refuse(name.text(), why);
            }
            Some(_) => {}
            None => name.not_found(),
        }
        if path.text().is_empty() {
            path.required("");
        }
        if paths.contains(&path.text()) {
            path.refuse(path.text(), "must be unique");
        }
        if path.text().split('/').any(|part| part == "..") {
            path.refuse(path.text(), "can not contain backsteps ('..')");
        } else {
            paths.push(path.text());
        }
        if mounts.list().iter().any(|mount| mount.str_at(&["name"]).unwrap_or_default() == name.text()) {
            name.refuse(name.text(), "must not already exist in volumeMounts");
        }
        if mounts.list().iter().any(|mount| mount.str_at(&["mountPath"]).unwrap_or_default() == path.text()) {
            path.refuse(path.text(), "must not already exist as a path in volumeMounts");
        }
        if !name.text().is_empty() {
            names.push(name.text());
        }
    }
}

/// Labels and annotations of an object that is made from a template, and nothing else of its metadata.
pub fn template_metadata(at: &Field) {
    meta::annotations(&at.child("annotations"));
    meta::labels(&at.child("labels"));
    for (name, _) in at.value.as_map().map(|map| map.iter()).into_iter().flatten() {
        if !["annotations", "labels", "creationTimestamp"].contains(&name.as_str()) {
            at.child(name).forbidden("cannot be set");
        }
    }
}
