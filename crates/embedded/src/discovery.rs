//! What the server serves: the catalog of groups, versions and kinds, and the documents clients discover it by.
//!
//! A [`Catalog`] is built once per change of the registry; requests are routed by it. Pure data, no I/O.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::kubernetes::{
    kind::{Kind, Origin, Subresource},
    value::{Text, Value},
};
use crate::value;

/// Every kind served, by group and version, in the order clients prefer them.
#[derive(Debug, Default, Clone)]
pub struct Catalog {
    groups: Vec<Group>,
}

/// An API group.
#[derive(Debug, Clone)]
pub struct Group {
    /// Its name; empty for the core group.
    pub name: Text,
    /// Whether Kubernetes itself serves it. The real server answers unknown paths below such a group with a Status,
    /// below any other with a plain page.
    pub built_in: bool,
    /// Its versions, the preferred one first.
    pub versions: Vec<Version>,
}

/// One version of a group.
#[derive(Debug, Clone)]
pub struct Version {
    /// `v1`
    pub name: Text,
    /// Its kinds, sorted by resource.
    pub kinds: Vec<Arc<Kind>>,
}

/// The built-in groups in the real server's order of priority; custom groups follow by name.
const PRIORITY: [&str; 21] = [
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
];

impl Catalog {
    /// The catalog of these kinds.
    pub fn of(kinds: &[Arc<Kind>]) -> Catalog {
        let mut groups: Vec<Group> = Vec::new();
        for kind in kinds {
            let at = groups.iter().position(|group| group.name == kind.group).unwrap_or_else(|| {
                groups.push(Group { name: kind.group.clone(), built_in: false, versions: Vec::new() });
                groups.len() - 1
            });
            let group = &mut groups[at];
            group.built_in |= matches!(kind.origin, Origin::BuiltIn);
            let at = group.versions.iter().position(|version| version.name == kind.version).unwrap_or_else(|| {
                group.versions.push(Version { name: kind.version.clone(), kinds: Vec::new() });
                group.versions.len() - 1
            });
            group.versions[at].kinds.push(kind.clone());
        }
        for group in &mut groups {
            group.versions.sort_by(|a, b| precedence(&b.name).cmp(&precedence(&a.name)).then(a.name.cmp(&b.name)));
            for version in &mut group.versions {
                version.kinds.sort_by(|a, b| a.plural.cmp(&b.plural));
            }
        }
        let rank = |group: &Group| PRIORITY.iter().position(|name| group.name == *name).unwrap_or(PRIORITY.len());
        groups.sort_by(|a, b| rank(a).cmp(&rank(b)).then(a.name.cmp(&b.name)));
        Catalog { groups }
    }

    /// The groups, the preferred one first.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The group of this name.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// A version of a group.
    pub fn version(&self, group: &str, version: &str) -> Option<&Version> {
        self.group(group)?.versions.iter().find(|served| served.name == version)
    }

    /// The kind behind a resource.
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        let kinds = &self.version(group, version)?.kinds;
        kinds.binary_search_by(|kind| kind.plural.as_str().cmp(plural)).ok().map(|at| &kinds[at])
    }

    /// The kind of this name.
    pub fn kind(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<Kind>> {
        self.version(group, version)?.kinds.iter().find(|served| served.kind == kind)
    }

    /// `APIGroupDiscoveryList`: all of `/apis`, or with `core` all of `/api`, in one document of this version (`v2`).
    pub fn aggregated(&self, core: bool, version: &str) -> Value {
        let groups = self.groups.iter().filter(|group| group.name.is_empty() == core);
        value!({
            "kind": "APIGroupDiscoveryList",
            "apiVersion": format!("apidiscovery.k8s.io/{version}"),
            "metadata": {},
            "items": groups.map(aggregated_group).collect::<Vec<_>>(),
        })
    }

    /// `APIVersions`, the answer of `/api`. `address` is where clients find the server.
    pub fn core_versions(&self, address: &str) -> Value {
        let versions = self.group("").map_or(&[][..], |group| &group.versions);
        value!({
            "kind": "APIVersions",
            "versions": versions.iter().map(|version| version.name.as_str()).collect::<Vec<_>>(),
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
        })
    }

    /// `APIGroupList`, the answer of `/apis`.
    pub fn group_list(&self) -> Value {
        let named = self.groups.iter().filter(|group| !group.name.is_empty());
        value!({"kind": "APIGroupList", "apiVersion": "v1", "groups": named.map(group_body).collect::<Vec<_>>()})
    }

    /// Every path a visitor may start from, the answer of `/`.
    pub fn paths(&self) -> Value {
        let mut paths: Vec<String> = ["/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz"]
            .into_iter()
            .chain(["/version"])
            .map(String::from)
            .collect();
        for group in &self.groups {
            let base = if group.name.is_empty() { "/api".into() } else { format!("/apis/{}", group.name) };
            paths.extend(group.versions.iter().map(|version| format!("{base}/{}", version.name)));
            paths.push(base);
        }
        paths.sort();
        paths.dedup();
        value!({"paths": paths})
    }
}

impl Group {
    /// `APIGroup`, the answer of `/apis/<group>`.
    pub fn to_value(&self) -> Value {
        let mut body = group_body(self);
        body["kind"] = "APIGroup".into();
        body["apiVersion"] = "v1".into();
        body.into()
    }

    /// `APIResourceList`, the answer of `/apis/<group>/<version>`.
    pub fn resources(&self, version: &Version) -> Value {
        let mut resources = Vec::new();
        for kind in &version.kinds {
            resources.push(resource(kind));
            resources.extend(subresources(kind).into_iter().map(|sub| subresource(kind, sub)));
        }
        value!({
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": group_version(&self.name, &version.name),
            "resources": resources,
        })
    }
}

/// How Kubernetes ranks versions: released before beta before alpha, then by number; other names come last.
pub fn precedence(version: &str) -> (u8, u64, u64) {
    let parse = || {
        let rest = version.strip_prefix('v')?;
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (major, stage) = rest.split_at(digits);
        let major: u64 = major.parse().ok()?;
        match stage {
            "" => Some((3, major, 0)),
            stage => stage
                .strip_prefix("beta")
                .map(|minor| (2, minor))
                .or_else(|| stage.strip_prefix("alpha").map(|minor| (1, minor)))
                .and_then(|(level, minor)| Some((level, major, minor.parse().ok()?))),
        }
    };
    parse().unwrap_or((0, 0, 0))
}

fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

fn group_body(group: &Group) -> serde_json::Value {
    let version = |version: &Version| {
        serde_json::json!({
            "groupVersion": group_version(&group.name, &version.name), "version": version.name.as_str(),
        })
    };
    let preferred = group.versions.first().map(version);
    let versions: Vec<_> = group.versions.iter().map(version).collect();
    serde_json::json!({"name": group.name.as_str(), "versions": versions, "preferredVersion": preferred})
}

/// Built-in subresources are listed by name, those of a CRD as the real server adds them: status before scale.
fn subresources(kind: &Kind) -> Vec<&Subresource> {
    let mut all: Vec<&Subresource> = kind.subresources.iter().collect();
    match kind.origin {
        Origin::BuiltIn => all.sort_by(|a, b| a.name.cmp(&b.name)),
        Origin::Custom(_) => all.sort_by(|a, b| b.name.cmp(&a.name)),
    }
    all
}

fn texts(texts: &[Text]) -> Vec<&str> {
    texts.iter().map(Text::as_str).collect()
}

fn resource(kind: &Kind) -> serde_json::Value {
    let mut body = serde_json::json!({
        "name": kind.plural.as_str(), "singularName": kind.singular.as_str(), "namespaced": kind.namespaced,
        "kind": kind.kind.as_str(), "verbs": texts(&kind.verbs),
    });
    if !kind.short_names.is_empty() {
        body["shortNames"] = texts(&kind.short_names).into();
    }
    if !kind.categories.is_empty() {
        body["categories"] = texts(&kind.categories).into();
    }
    if kind.verbs.iter().any(|verb| verb == "list") {
        body["storageVersionHash"] = storage_version_hash(kind).into();
    }
    body
}

/// A name for the form objects are stored in; clients only ever compare it.
fn storage_version_hash(kind: &Kind) -> String {
    let (group, version) = match (kind.group.as_str(), kind.kind.as_str(), &kind.origin) {
        ("events.k8s.io", _, Origin::BuiltIn) => ("", "v1"),
        ("autoscaling", "HorizontalPodAutoscaler", Origin::BuiltIn) => ("autoscaling", "v2"),
        (group, _, Origin::BuiltIn) => (group, kind.version.as_str()),
        (group, _, Origin::Custom(custom)) => (group, custom.storage_version.as_str()),
    };
    let digest = ring::digest::digest(&ring::digest::SHA256, format!("{group}/{version}/{}", kind.kind).as_bytes());
    STANDARD.encode(&digest.as_ref()[..8])
}

fn subresource(kind: &Kind, sub: &Subresource) -> serde_json::Value {
    let mut body = serde_json::json!({
        "name": format!("{}/{}", kind.plural, sub.name), "singularName": "", "namespaced": kind.namespaced,
        "kind": sub.kind.as_str(), "verbs": texts(&sub.verbs),
    });
    if (&sub.group, &sub.version) != (&kind.group, &kind.version) {
        body["group"] = sub.group.as_str().into();
        body["version"] = sub.version.as_str().into();
    }
    body
}

fn aggregated_group(group: &Group) -> serde_json::Value {
    let metadata = match group.name.as_str() {
        "" => serde_json::json!({}),
        name => serde_json::json!({"name": name}),
    };
    let versions: Vec<_> = group
        .versions
        .iter()
        .map(|version| {
            let resources: Vec<_> = version.kinds.iter().map(|kind| aggregated_resource(kind)).collect();
            serde_json::json!({"version": version.name.as_str(), "resources": resources, "freshness": "Current"})
        })
        .collect();
    serde_json::json!({"metadata": metadata, "versions": versions})
}

/// The kind a resource answers with. The real server leaves group and version empty where they go without saying, but
/// spells them out for custom resources.
fn response_kind(kind: &Kind, group: &str, version: &str, name: &str) -> serde_json::Value {
    let custom = matches!(kind.origin, Origin::Custom(_));
    let same = kind.group == group && kind.version == version;
    let (group, version) = if same && !custom { ("", "") } else { (group, version) };
    serde_json::json!({"group": group, "version": version, "kind": name})
}

fn aggregated_resource(kind: &Kind) -> serde_json::Value {
    let mut body = serde_json::json!({
        "resource": kind.plural.as_str(),
        "responseKind": response_kind(kind, &kind.group, &kind.version, &kind.kind),
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular.as_str(),
        "verbs": texts(&kind.verbs),
    });
    if !kind.short_names.is_empty() {
        body["shortNames"] = texts(&kind.short_names).into();
    }
    if !kind.categories.is_empty() {
        body["categories"] = texts(&kind.categories).into();
    }
    let subresources: Vec<_> = subresources(kind)
        .into_iter()
        .map(|sub| {
            serde_json::json!({
                "subresource": sub.name.as_str(),
                "responseKind": response_kind(kind, &sub.group, &sub.version, &sub.kind),
                "verbs": texts(&sub.verbs),
            })
        })
        .collect();
    if !subresources.is_empty() {
        body["subresources"] = subresources.into();
    }
    body
}

/// Kinds for the tests of this crate's front.
#[cfg(test)]
pub(crate) mod samples {
    use super::*;
    use crate::kubernetes::kind::{Custom, Scale};

    const ALL: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

    fn texts(texts: &[&str]) -> Vec<Text> {
        texts.iter().map(|text| Text::from(*text)).collect()
    }

    pub(crate) fn kind(group: &str, version: &str, name: &str, plural: &str, namespaced: bool) -> Kind {
        Kind {
            group: group.into(),
            version: version.into(),
            kind: name.into(),
            list_kind: format!("{name}List").into(),
            plural: plural.into(),
            singular: name.to_lowercase().into(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced,
            verbs: texts(&ALL),
            subresources: Vec::new(),
            columns: Vec::new(),
            schema: Arc::default(),
            origin: Origin::BuiltIn,
        }
    }

    pub(crate) fn subresource(name: &str, (group, version, kind): (&str, &str, &str), verbs: &[&str]) -> Subresource {
        let (name, group, version, kind) = (name.into(), group.into(), version.into(), kind.into());
        Subresource { name, group, version, kind, verbs: texts(verbs) }
    }

    /// A small cluster: some core kinds, Deployments, one review, one CRD.
    pub(crate) fn catalog() -> Catalog {
        let three = ["get", "patch", "update"];
        let mut pods = kind("", "v1", "Pod", "pods", true);
        pods.short_names = texts(&["po"]);
        pods.categories = texts(&["all"]);
        pods.subresources = vec![
            subresource("status", ("", "v1", "Pod"), &three),
            subresource("eviction", ("policy", "v1", "Eviction"), &["create"]),
            subresource("log", ("", "v1", "Pod"), &["get"]),
            subresource("proxy", ("", "v1", "PodProxyOptions"), &["create", "delete", "get", "patch", "update"]),
        ];
        let mut namespaces = kind("", "v1", "Namespace", "namespaces", false);
        namespaces.verbs.retain(|verb| *verb != "deletecollection");
        namespaces.subresources = vec![
            subresource("status", ("", "v1", "Namespace"), &three),
            subresource("finalize", ("", "v1", "Namespace"), &["update"]),
        ];
        let mut deployments = kind("apps", "v1", "Deployment", "deployments", true);
        deployments.subresources = vec![
            subresource("status", ("apps", "v1", "Deployment"), &three),
            subresource("scale", ("autoscaling", "v1", "Scale"), &three),
        ];
        let mut review =
            kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", false);
        review.verbs = texts(&["create"]);
        let mut gadgets = kind("front.test", "v1", "Gadget", "gadgets", true);
        gadgets.origin = Origin::Custom(Arc::new(Custom {
            crd: "gadgets.front.test".into(),
            status: true,
            scale: Some(Scale::default()),
            storage: true,
            storage_version: "v1".into(),
            ..Custom::default()
        }));
        gadgets.subresources = vec![
            subresource("status", ("front.test", "v1", "Gadget"), &three),
            subresource("scale", ("autoscaling", "v1", "Scale"), &three),
        ];
        let mut old = gadgets.clone();
        old.version = "v1beta1".into();
        Catalog::of(
            &[
                old,
                gadgets,
                review,
                deployments,
                namespaces,
                pods,
                kind("", "v1", "ConfigMap", "configmaps", true),
                kind("", "v1", "Node", "nodes", false),
                kind("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true),
                kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true),
            ]
            .map(Arc::new),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_rank_as_kubernetes_ranks_them() {
        let mut versions = vec!["v1alpha1", "foo", "v1", "v2beta1", "v10", "v1beta2", "v2", "v1beta10", "v3alpha1"];
        versions.sort_by_key(|version| std::cmp::Reverse(precedence(version)));
        assert_eq!(versions, ["v10", "v2", "v1", "v2beta1", "v1beta10", "v1beta2", "v3alpha1", "v1alpha1", "foo"]);
    }

    #[test]
    fn groups_stand_in_the_order_of_their_priority() {
        let catalog = samples::catalog();
        let names: Vec<_> = catalog.groups().iter().map(|group| (group.name.as_str(), group.built_in)).collect();
        let builtin = [("", true), ("apps", true), ("authorization.k8s.io", true), ("autoscaling", true)];
        assert_eq!(names, [&builtin[..], &[("front.test", false)]].concat());
        assert_eq!(
            catalog.group("autoscaling").unwrap().to_value(),
            value!({
                "kind": "APIGroup", "apiVersion": "v1", "name": "autoscaling",
                "versions": [
                    {"groupVersion": "autoscaling/v2", "version": "v2"},
                    {"groupVersion": "autoscaling/v1", "version": "v1"},
                ],
                "preferredVersion": {"groupVersion": "autoscaling/v2", "version": "v2"},
            })
        );
    }

    #[test]
    fn legacy_lists_name_each_subresource_as_a_resource() {
        let catalog = samples::catalog();
        let group = catalog.group("front.test").unwrap();
        let verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
        let three = ["get", "patch", "update"];
        assert_eq!(
            group.resources(&group.versions[0]),
            value!({
                "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "front.test/v1", "resources": [
                    {"name": "gadgets", "singularName": "gadget", "namespaced": true, "kind": "Gadget", "verbs": verbs,
                     "storageVersionHash": "e9do6iYsNlk="},
                    {"name": "gadgets/status", "singularName": "", "namespaced": true, "kind": "Gadget", "verbs": three},
                    {"name": "gadgets/scale", "singularName": "", "namespaced": true, "kind": "Scale",
                        "group": "autoscaling", "version": "v1", "verbs": three},
                ],
            })
        );
    }

    #[test]
    fn aggregated_discovery_spells_out_only_kinds_of_custom_resources() {
        let catalog = samples::catalog();
        let all = catalog.aggregated(false, "v2");
        let kinds: Vec<String> = all
            .list_at(&["items"])
            .iter()
            .flat_map(|group| group.list_at(&["versions"])[0].list_at(&["resources"]).to_vec())
            .map(|resource| resource.get("responseKind").unwrap().to_json())
            .collect();
        assert_eq!(
            kinds,
            [
                r#"{"group":"","kind":"Deployment","version":""}"#,
                r#"{"group":"","kind":"SelfSubjectAccessReview","version":""}"#,
                r#"{"group":"","kind":"HorizontalPodAutoscaler","version":""}"#,
                r#"{"group":"front.test","kind":"Gadget","version":"v1"}"#,
            ]
        );
        let core = catalog.aggregated(true, "v2");
        assert_eq!(core.list_at(&["items"])[0].get("metadata"), Some(&value!({})));
    }
}
