//! Flux's Kustomizations as GitSources.
//!
//! One Kustomization becomes one GitSource, in its own namespace, with what its GitRepository says about the repository. Secrets
//! keep their names and keys. Other kinds of Flux are named. Never looks into a repository.

use std::collections::BTreeMap;

use super::{
    Choices, Draft, Entry, Migration, Note, Origin, Subject, Taken, Weight, allowance,
    fields::{self, Fate, Table},
    url,
};
use crate::{
    kubernetes::{names, value::Value},
    manifest::{Object, place::Step},
};

use Fate::{Missing, Same, Taken as Carried, Within};
use Step::{Index, Key};

const KUSTOMIZE: &str = "write it into the kustomization.yaml of the path";

/// What becomes of the fields of a Kustomization.
pub const FIELDS: Table = &[
    ("spec.sourceRef", Carried),
    ("spec.path", Carried),
    ("spec.interval", Same),
    ("spec.retryInterval", Same),
    ("spec.timeout", Same),
    ("spec.wait", Same),
    ("spec.prune", Carried),
    ("spec.deletionPolicy", Carried),
    ("spec.targetNamespace", Carried),
    ("spec.serviceAccountName", Carried),
    ("spec.dependsOn", Carried),
    ("spec.suspend", Carried),
    ("spec.force", Carried),
    ("spec.healthChecks", Same),
    (
        "spec.healthCheckExprs",
        Missing(
            "expressions about health stand at the objects",
            "annotate them with `tidegate.dev/health` and `tidegate.dev/health-failed`",
        ),
    ),
    ("spec.kubeConfig", Carried),
    (
        "spec.decryption",
        Missing(
            "Secrets encrypted with SOPS are not decrypted: a commit with them is refused",
            "keep them with External Secrets or Sealed Secrets, or leave this Kustomization to Flux",
        ),
    ),
    (
        "spec.postBuild",
        Missing(
            "variables are not substituted",
            "write the values into the repository, for example with `replacements` of a kustomization.yaml",
        ),
    ),
    (
        "spec.commonMetadata",
        Missing(
            "labels and annotations are not added",
            "write `labels` and `commonAnnotations` into the kustomization.yaml of the path",
        ),
    ),
    ("spec.namePrefix", Missing("it is not applied", KUSTOMIZE)),
    ("spec.nameSuffix", Missing("it is not applied", KUSTOMIZE)),
    ("spec.patches", Missing("patches are not applied", KUSTOMIZE)),
    ("spec.images", Missing("images are not replaced", KUSTOMIZE)),
    ("spec.components", Missing("components are not added", KUSTOMIZE)),
    ("spec.ignoreMissingComponents", Same),
    ("spec.buildMetadata", Same),
    (
        "spec.ignore",
        Missing(
            "fields are not ignored by a list: those that git does not name are never compared",
            "remove them from git, or annotate the object with `tidegate.dev/apply: once`",
        ),
    ),
];

/// What becomes of the fields of a GitRepository.
pub const REPOSITORY_FIELDS: Table = &[
    ("spec.url", Carried),
    ("spec.ref", Within),
    ("spec.ref.branch", Carried),
    ("spec.ref.tag", Carried),
    ("spec.ref.semver", Carried),
    ("spec.ref.name", Carried),
    ("spec.ref.commit", Carried),
    ("spec.interval", Carried),
    ("spec.timeout", Same),
    ("spec.secretRef", Carried),
    ("spec.suspend", Carried),
    ("spec.ignore", Carried),
    ("spec.provider", Carried),
    (
        "spec.serviceAccountName",
        Missing("no identity of a cloud is used to fetch", "give a Secret with a token or a key (docs/gitsource.md)"),
    ),
    (
        "spec.verify",
        Missing(
            "OpenPGP signatures are not verified, and how Flux names its keys is not carried over",
            "sign with ssh keys, and name them in spec.verify",
        ),
    ),
    ("spec.proxySecretRef", Missing("no proxy is used", "let the daemon reach the host")),
    ("spec.recurseSubmodules", Missing("submodules are not read", "make each a GitSource of its own")),
    ("spec.include", Missing("repositories are not put together", "make each a GitSource of its own")),
    ("spec.sparseCheckout", Same),
];

/// The kinds of Flux that have no equivalent, with what to do.
const OTHERS: &[(&str, &str, &str, &str)] = &[
    (
        "helm.toolkit.fluxcd.io",
        "HelmRelease",
        "no Helm release is made",
        "commit what `helm template` makes of the chart, for example by a workflow, or leave it to Flux",
    ),
    (
        "source.toolkit.fluxcd.io",
        "HelmRepository",
        "Helm repositories are not read",
        "leave it to Flux with the HelmReleases that use it",
    ),
    (
        "source.toolkit.fluxcd.io",
        "HelmChart",
        "Helm charts are not read",
        "leave it to Flux with the HelmReleases that use it",
    ),
    (
        "source.toolkit.fluxcd.io",
        "OCIRepository",
        "OCI registries are not read",
        "point the GitSource at the git repository that the artifact is made of",
    ),
    (
        "source.toolkit.fluxcd.io",
        "Bucket",
        "buckets are not read",
        "point a GitSource at a git repository with the same files",
    ),
    (
        "notification.toolkit.fluxcd.io",
        "Receiver",
        "the webhook ends with Flux",
        "name a Secret in spec.webhook, and let the host send to /hook/NAMESPACE/NAME (docs/hosts.md)",
    ),
    (
        "notification.toolkit.fluxcd.io",
        "Alert",
        "its messages end with Flux",
        "commit statuses (spec.report) say how each commit went",
    ),
    (
        "notification.toolkit.fluxcd.io",
        "Provider",
        "its messages end with Flux",
        "for a git host, set spec.report of the GitSources",
    ),
    (
        "image.toolkit.fluxcd.io",
        "ImageRepository",
        "registries are not looked at",
        "leave image automation to Flux: it commits, and a GitSource follows",
    ),
    (
        "image.toolkit.fluxcd.io",
        "ImagePolicy",
        "registries are not looked at",
        "leave image automation to Flux: it commits, and a GitSource follows",
    ),
    (
        "image.toolkit.fluxcd.io",
        "ImageUpdateAutomation",
        "nothing is committed",
        "leave image automation to Flux: it commits, and a GitSource follows",
    ),
];

/// Migrates Kustomizations.
pub fn migrate(objects: &[(&Object, Origin)], choices: &Choices) -> Migration {
    let mut migration = Migration::default();
    let mut repositories: BTreeMap<(String, String), Subject<'_>> = BTreeMap::new();
    for (object, origin) in
        objects.iter().filter(|(object, _)| is_kind(object, "source.toolkit.fluxcd.io", "GitRepository"))
    {
        let subject = Subject::of(object, *origin);
        migration.read += 1;
        repository(&subject, &mut migration.notes);
        repositories.insert((subject.namespace().to_owned(), subject.name().to_owned()), subject);
    }
    for (object, origin) in objects {
        let subject = Subject::of(object, *origin);
        if is_kind(object, "kustomize.toolkit.fluxcd.io", "Kustomization") {
            kustomization(&subject, choices, &repositories, &mut migration);
        } else if let Some((_, _, what, remedy)) = OTHERS.iter().find(|(group, kind, ..)| is_kind(object, group, kind))
        {
            migration.read += 1;
            migration.notes.push(subject.note(Weight::NoEquivalent, &[], *what, *remedy));
        }
    }
    migration
}

/// Whether a migration from Flux has something to say about objects of this kind.
pub fn is_known(object: &Object) -> bool {
    is_kind(object, "source.toolkit.fluxcd.io", "GitRepository")
        || is_kind(object, "kustomize.toolkit.fluxcd.io", "Kustomization")
        || OTHERS.iter().any(|(group, kind, ..)| is_kind(object, group, kind))
}

fn is_kind(object: &Object, group: &str, kind: &str) -> bool {
    object.group() == group && object.kind() == kind
}

/// What is to be said about a repository, once however many Kustomizations read it.
fn repository(subject: &Subject<'_>, notes: &mut Vec<Note>) {
    fields::check(subject, "spec", REPOSITORY_FIELDS, notes);
    let provider = subject.text(&["spec", "provider"]);
    if !["", "generic", "github"].contains(&provider) {
        let what = format!("the identity of a cloud ({provider}) is not used to fetch");
        notes.push(subject.note(
            Weight::NoEquivalent,
            &[Key("spec"), Key("provider")],
            what,
            "give a Secret with a token or a key (docs/gitsource.md)",
        ));
    }
}

fn kustomization(
    subject: &Subject<'_>,
    choices: &Choices,
    repositories: &BTreeMap<(String, String), Subject<'_>>,
    migration: &mut Migration,
) {
    migration.read += 1;
    let notes = &mut migration.notes;
    let reference = [Key("spec"), Key("sourceRef")];
    if let Some(config) = subject.value.at(&["spec", "kubeConfig"]).filter(|config| !config.is_null()) {
        let _ = config;
        let what = "it is for another cluster: no GitSource is written for it";
        notes.push(subject.note(
            Weight::NoEquivalent,
            &[Key("spec"), Key("kubeConfig")],
            what,
            "run the daemon in that cluster, and migrate there",
        ));
        return;
    }
    let kind = subject.text(&["spec", "sourceRef", "kind"]);
    if kind != "GitRepository" {
        let what = format!("it reads a source of kind {kind:?}: no GitSource is written for it");
        notes.push(subject.note(
            Weight::NoEquivalent,
            &reference,
            what,
            "point a GitSource at a git repository with the same files",
        ));
        return;
    }
    let own = subject.namespace().to_owned();
    let named = subject.text(&["spec", "sourceRef", "namespace"]);
    let place = (
        if named.is_empty() { own.clone() } else { named.to_owned() },
        subject.text(&["spec", "sourceRef", "name"]).to_owned(),
    );
    let Some(from) = repositories.get(&place) else {
        let what = format!("the GitRepository {}/{} was not given: no GitSource is written for it", place.0, place.1);
        notes.push(subject.note(
            Weight::NoEquivalent,
            &reference,
            what,
            "give the file that holds it as well, or --live",
        ));
        return;
    };
    fields::check(subject, "spec", FIELDS, notes);
    let namespace = choices.namespace.clone().unwrap_or(own);
    let mut draft = Draft::new(&namespace, subject.name());
    if fill(subject, from, choices, &mut draft, notes).is_none() {
        return;
    }
    let Some(source) = draft.close(subject, notes) else { return };
    let made = (namespace, subject.name().to_owned());
    migration.sources.push(source);
    migration.taken.push(Taken {
        kind: "Kustomization",
        namespace: subject.namespace().to_owned(),
        name: subject.name().to_owned(),
        sources: vec![made],
    });
}

fn fill(
    subject: &Subject<'_>,
    from: &Subject<'_>,
    choices: &Choices,
    draft: &mut Draft,
    notes: &mut Vec<Note>,
) -> Option<()> {
    let url = url::url(from, &[Key("spec"), Key("url")], from.text(&["spec", "url"]), notes)?;
    draft.set(&["url"], url.as_str());
    revision(from, draft, notes);
    draft.path(subject.text(&["spec", "path"]));
    // How often git is looked at; how often Flux compares with the cluster has no meaning where changes are watched.
    let interval = from.text(&["spec", "interval"]);
    if !interval.is_empty() {
        draft.set(&["interval"], interval);
    }
    exclude(from, subject.text(&["spec", "path"]), draft, notes);
    let target = subject.text(&["spec", "targetNamespace"]);
    if !target.is_empty() && target != draft.namespace {
        draft.set(&["targetNamespace"], target);
    }
    account(subject, choices, draft, notes);
    rules(subject, from, draft, notes);
    depends(subject, draft, notes);
    let target = if target.is_empty() { draft.namespace.clone() } else { target.to_owned() };
    allowance(draft, &target, &inventory(&subject.value));
    secret(from, &url, draft, notes);
    let managed = ["kustomize.toolkit.fluxcd.io/name"]
        .iter()
        .find_map(|label| subject.value.str_at(&["metadata", "labels", label]));
    if let Some(parent) = managed.filter(|parent| *parent != subject.name()) {
        let what = format!("the Kustomization {parent} writes it, and would write it again");
        notes.push(subject.note(
            Weight::ToDo,
            &[],
            what,
            "change it in git, not in the cluster: docs/migrate-flux.md says how",
        ));
    }
    Some(())
}

fn revision(from: &Subject<'_>, draft: &mut Draft, notes: &mut Vec<Note>) {
    let text = |key: &str| from.text(&["spec", "ref", key]);
    // What Flux prefers comes first.
    let chosen = ["commit", "name", "semver", "tag", "branch"].into_iter().find(|key| !text(key).is_empty());
    let steps = [Key("spec"), Key("ref")];
    match chosen {
        // Flux's own default is the branch master, not what the repository names.
        None => draft.set(&["ref", "branch"], "master"),
        Some("name") => match (text("name").strip_prefix("refs/heads/"), text("name").strip_prefix("refs/tags/")) {
            (Some(branch), _) => draft.set(&["ref", "branch"], branch),
            (_, Some(tag)) => draft.set(&["ref", "tag"], tag),
            (None, None) => {
                let what =
                    format!("the reference {:?} cannot be followed; the repository's default branch is", text("name"));
                notes.push(from.note(Weight::NoEquivalent, &steps, what, "name a branch or a tag in spec.ref"));
            }
        },
        Some(key) => draft.set(&["ref", key], text(key)),
    }
}

/// `spec.ignore`, in the syntax of .gitignore from the repository's root, as patterns from the path.
fn exclude(from: &Subject<'_>, path: &str, draft: &mut Draft, notes: &mut Vec<Note>) {
    let path = super::plain_path(path);
    let (mut patterns, mut left) = (Vec::new(), Vec::new());
    for line in from.text(&["spec", "ignore"]).lines().map(str::trim) {
        match line {
            "" => {}
            line if line.starts_with('#') => {}
            // Everything, but for what is named to be read: a path below is enough.
            "/*" | "*" | "/**" => {}
            line if line.starts_with('!') => {
                let kept = line[1..].trim_matches('/').trim_end_matches("/**").trim_end_matches("/*");
                let reads = !kept.contains('*') && (path == kept || path.starts_with(&format!("{kept}/")));
                if !reads {
                    left.push(line.to_owned());
                }
            }
            line if line.contains(['[', '\\']) => left.push(line.to_owned()),
            line => patterns.extend(below(line, &path)),
        }
    }
    if !left.is_empty() {
        let what = format!("these patterns are not carried over: {}", left.join(", "));
        notes.push(from.note(
            Weight::NoEquivalent,
            &[Key("spec"), Key("ignore")],
            what,
            "say in spec.exclude what is not to be read; patterns are relative to spec.path",
        ));
    }
    if !patterns.is_empty() {
        draft.set(&["exclude"], Value::list(patterns.into_iter().map(Value::from)));
    }
}

/// A pattern from the repository's root as one from a folder below; none if it matches nothing there.
fn below(pattern: &str, path: &str) -> Option<String> {
    let is_anchored = pattern.trim_end_matches('/').contains('/');
    if !is_anchored || path.is_empty() {
        return Some(pattern.to_owned());
    }
    let top = pattern.trim_start_matches('/');
    if top.starts_with("**/") {
        return Some(top.to_owned());
    }
    top.strip_prefix(path)
        .and_then(|rest| rest.strip_prefix('/'))
        .filter(|rest| !rest.is_empty())
        .map(|rest| format!("/{rest}"))
}

fn account(subject: &Subject<'_>, choices: &Choices, draft: &mut Draft, notes: &mut Vec<Note>) {
    let given = subject.text(&["spec", "serviceAccountName"]);
    if !given.is_empty() {
        return draft.set(&["serviceAccountName"], given);
    }
    draft.set(&["serviceAccountName"], choices.service_account.as_str());
    let what = format!(
        "Flux writes it with the rights of its controller; a GitSource writes with those of the ServiceAccount {} in {}",
        choices.service_account, draft.namespace
    );
    notes.push(subject.note(
        Weight::ToDo,
        &[],
        what,
        "create it with the rights that the objects of the path need (docs/gitsource.md)",
    ));
}

fn rules(subject: &Subject<'_>, from: &Subject<'_>, draft: &mut Draft, notes: &mut Vec<Note>) {
    if subject.is_set(&["spec", "suspend"]) || from.is_set(&["spec", "suspend"]) {
        draft.set(&["suspend"], true);
    }
    let prunes = subject.is_set(&["spec", "prune"]);
    draft.set(&["prune"], prunes);
    if subject.is_set(&["spec", "force"]) {
        draft.set(&["onImmutable"], "Replace");
    }
    let deletion = subject.text(&["spec", "deletionPolicy"]);
    let is_same = matches!(
        (deletion, prunes),
        ("" | "MirrorPrune", _) | ("Delete" | "WaitForTermination", true) | ("Orphan", false)
    );
    if !is_same {
        let what = format!(
            "deletionPolicy {deletion} differs from prune: deleting a GitSource deletes its objects if it prunes"
        );
        let remedy =
            if prunes { "suspend the GitSource before you delete it" } else { "set spec.prune before you delete it" };
        notes.push(subject.note(Weight::Differs, &[Key("spec"), Key("deletionPolicy")], what, remedy));
    }
}

fn depends(subject: &Subject<'_>, draft: &mut Draft, notes: &mut Vec<Note>) {
    let mut names = Vec::new();
    for (at, one) in subject.value.list_at(&["spec", "dependsOn"]).iter().enumerate() {
        let text = |key: &str| one.str_at(&[key]).unwrap_or_default();
        let steps = [Key("spec"), Key("dependsOn"), Index(at)];
        if !text("namespace").is_empty() && text("namespace") != subject.namespace() {
            let what = format!("it depends on {}/{}, which is in another namespace", text("namespace"), text("name"));
            notes.push(subject.note(
                Weight::NoEquivalent,
                &steps,
                what,
                "a GitSource depends on others of its own namespace: put both into one",
            ));
            continue;
        }
        if !text("readyExpr").is_empty() {
            let what = "when it is ready is not an expression: its commit must be rolled out";
            notes.push(subject.note(Weight::NoEquivalent, &steps, what, "see whether that is enough"));
        }
        names.push(crate::value!({"name": text("name")}));
    }
    if !names.is_empty() {
        draft.set(&["dependsOn"], Value::list(names));
    }
}

/// The objects that Flux says it has written.
pub fn inventory(kustomization: &Value) -> Vec<Entry> {
    // `shop_web_apps_Deployment`; a colon in a name (of roles) is written as two underscores.
    let entry = |entry: &Value| {
        let id = entry.str_at(&["id"])?;
        let (rest, kind) = id.rsplit_once('_')?;
        let (rest, group) = rest.rsplit_once('_')?;
        let (namespace, name) = rest.split_once('_')?;
        let owned = str::to_owned;
        Some(Entry {
            group: owned(group),
            kind: owned(kind),
            namespace: owned(namespace),
            name: name.replace("__", ":"),
        })
    };
    kustomization.list_at(&["status", "inventory", "entries"]).iter().filter_map(entry).collect()
}

fn secret(from: &Subject<'_>, url: &str, draft: &mut Draft, notes: &mut Vec<Note>) {
    let name = from.text(&["spec", "secretRef", "name"]);
    if name.is_empty() {
        return;
    }
    draft.set(&["secretRef", "name"], name);
    let host = crate::model::remote::Remote::parse(url).map(|remote| remote.origin().to_string()).unwrap_or_default();
    let steps = [Key("spec"), Key("secretRef")];
    let is_there = draft.namespace == from.namespace();
    let what = match is_there {
        true => format!("the Secret {name} keeps its keys, but is sent nowhere before it names its hosts"),
        false => format!("the Secret {name} must be in {}, the GitSource's namespace", draft.namespace),
    };
    // Only names that can be names are put into a command.
    let is_plain = [name, draft.namespace.as_str()].iter().all(|text| names::dns_subdomain(text).is_empty());
    let remedy = match is_there && is_plain {
        true => format!("kubectl -n {} annotate secret/{name} tidegate.dev/hosts={host}", draft.namespace),
        false => format!("it needs the same keys there, and the annotation tidegate.dev/hosts: {host}"),
    };
    let note = from.note(Weight::ToDo, &steps, what, remedy);
    if !notes.contains(&note) {
        notes.push(note);
    }
}
