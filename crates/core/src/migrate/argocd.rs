//! Argo CD's Applications as GitSources.
//!
//! One Application becomes one GitSource for each of its git sources, in the namespace that it writes to. ApplicationSets with
//! list generators are unfolded; of others the Applications that they have made in a cluster are read. Never looks into a
//! repository, so what Argo CD would render there is named, not assumed.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{
    Choices, Draft, Entry, Migration, Note, Origin, Subject, Taken, Weight, allowance, expand,
    fields::{self, Fate, Table},
    url,
};
use crate::{
    kubernetes::value::Value,
    manifest::{Object, place::Step},
    model::{remote::Remote, version_range},
};

use Fate::{Missing, Same, Taken as Carried, Within};
use Step::{Index, Key};

/// The API group of Applications.
pub const GROUP: &str = "argoproj.io";

const HELM: &str =
    "commit what `helm template` makes of the chart, for example by a workflow, and point the GitSource at that";
const KUSTOMIZE: &str = "write it into the kustomization.yaml of the path";
const PROJECT: &str = "say it in spec.allow of the GitSources, and in the rights of their ServiceAccount";

/// What becomes of the fields of an Application's `spec`. `spec.sources` is looked up as `spec.source`.
pub const FIELDS: Table = &[
    ("spec.project", Carried),
    ("spec.source", Within),
    ("spec.source.repoURL", Carried),
    ("spec.source.path", Carried),
    ("spec.source.targetRevision", Carried),
    ("spec.source.chart", Carried),
    ("spec.source.ref", Carried),
    ("spec.source.name", Same),
    (
        "spec.source.tagPrefix",
        Missing("the highest tag with a prefix cannot be followed", "name the tag, or a branch that follows it"),
    ),
    ("spec.source.helm", Missing("no Helm chart is rendered", HELM)),
    (
        "spec.source.plugin",
        Missing("config management plugins are not run", "commit what the plugin makes, for example by a workflow"),
    ),
    ("spec.source.kustomize", Within),
    ("spec.source.kustomize.namePrefix", Missing("it is not applied", KUSTOMIZE)),
    ("spec.source.kustomize.nameSuffix", Missing("it is not applied", KUSTOMIZE)),
    ("spec.source.kustomize.images", Missing("images are not replaced", KUSTOMIZE)),
    ("spec.source.kustomize.replicas", Missing("replica counts are not replaced", KUSTOMIZE)),
    ("spec.source.kustomize.patches", Missing("patches are not applied", KUSTOMIZE)),
    ("spec.source.kustomize.components", Missing("components are not added", KUSTOMIZE)),
    ("spec.source.kustomize.ignoreMissingComponents", Same),
    (
        "spec.source.kustomize.namespace",
        Missing("it is not applied", "set spec.targetNamespace, or write it into the kustomization.yaml of the path"),
    ),
    ("spec.source.kustomize.commonLabels", Missing("labels are not added", KUSTOMIZE)),
    ("spec.source.kustomize.commonAnnotations", Missing("annotations are not added", KUSTOMIZE)),
    ("spec.source.kustomize.commonAnnotationsEnvsubst", Missing("variables are not replaced", KUSTOMIZE)),
    ("spec.source.kustomize.forceCommonLabels", Same),
    ("spec.source.kustomize.forceCommonAnnotations", Same),
    ("spec.source.kustomize.labelWithoutSelector", Same),
    ("spec.source.kustomize.labelIncludeTemplates", Same),
    ("spec.source.kustomize.version", Same),
    ("spec.source.kustomize.kubeVersion", Same),
    ("spec.source.kustomize.apiVersions", Same),
    ("spec.source.directory", Within),
    ("spec.source.directory.recurse", Carried),
    ("spec.source.directory.exclude", Carried),
    (
        "spec.source.directory.include",
        Missing(
            "files cannot be chosen by what they are called, only left out",
            "name what is not to be read in spec.exclude, or move the files into a folder of their own",
        ),
    ),
    (
        "spec.source.directory.jsonnet",
        Missing("Jsonnet is not evaluated", "commit what it makes, for example by a workflow"),
    ),
    (
        "spec.source.directory.disableExtensionFilter",
        Missing("files that do not end in .yaml, .yml or .json are not read", "rename them"),
    ),
    (
        "spec.sourceHydrator",
        Missing("nothing is hydrated", "let a workflow render into the branch, and point the GitSource at that"),
    ),
    ("spec.destination", Within),
    ("spec.destination.server", Carried),
    ("spec.destination.name", Carried),
    ("spec.destination.namespace", Carried),
    ("spec.syncPolicy", Within),
    ("spec.syncPolicy.automated", Within),
    ("spec.syncPolicy.automated.prune", Carried),
    ("spec.syncPolicy.automated.selfHeal", Carried),
    ("spec.syncPolicy.automated.enabled", Carried),
    (
        "spec.syncPolicy.automated.allowEmpty",
        Missing("a commit that empties the path deletes nothing", "delete the GitSource where everything is to go"),
    ),
    ("spec.syncPolicy.syncOptions", Carried),
    ("spec.syncPolicy.retry", Same),
    (
        "spec.syncPolicy.managedNamespaceMetadata",
        Missing(
            "no namespace is created or labelled",
            "add the Namespace to the repository, and `Namespace` to spec.allow.kinds",
        ),
    ),
    ("spec.ignoreDifferences", Carried),
    ("spec.info", Same),
    ("spec.revisionHistoryLimit", Same),
];

/// What becomes of the fields of an AppProject.
pub const PROJECT_FIELDS: Table = &[
    ("spec.description", Same),
    (
        "spec.sourceRepos",
        Missing(
            "which repositories may be used is not restricted",
            "a GitSource names one repository: restrict who may create GitSources",
        ),
    ),
    ("spec.destinations", Missing("the restriction to these places is not carried over", PROJECT)),
    (
        "spec.clusterResourceWhitelist",
        Missing("which kinds without a namespace are allowed is not carried over", PROJECT),
    ),
    (
        "spec.clusterResourceBlacklist",
        Missing("which kinds without a namespace are refused is not carried over", PROJECT),
    ),
    ("spec.namespaceResourceWhitelist", Missing("which kinds are allowed is not carried over", PROJECT)),
    ("spec.namespaceResourceBlacklist", Missing("which kinds are refused is not carried over", PROJECT)),
    (
        "spec.destinationServiceAccounts",
        Missing(
            "which account writes is not carried over",
            "set spec.serviceAccountName of the GitSources, or give --service-account",
        ),
    ),
    (
        "spec.roles",
        Missing("its roles are not carried over", "give people rights on GitSources by roles of Kubernetes"),
    ),
    (
        "spec.orphanedResources",
        Missing(
            "objects that nothing manages are not reported",
            "see `kubectl get` with the label tidegate.dev/source missing",
        ),
    ),
    (
        "spec.syncWindows",
        Missing("there are no windows of time", "suspend the GitSource outside of them, for example by a CronJob"),
    ),
    (
        "spec.signatureKeys",
        Missing("OpenPGP signatures are not verified", "sign with ssh keys, and name them in spec.verify"),
    ),
    (
        "spec.sourceIntegrity",
        Missing("OpenPGP signatures are not verified", "sign with ssh keys, and name them in spec.verify"),
    ),
    ("spec.sourceNamespaces", Same),
    ("spec.permitOnlyProjectScopedClusters", Same),
];

/// How Argo CD calls the cluster it runs in.
const OWN_CLUSTER: [&str; 3] =
    ["https://kubernetes.default.svc", "https://kubernetes.default.svc.cluster.local", "in-cluster"];

/// Migrates Applications, and the ApplicationSets among the objects as far as they can be unfolded.
pub fn migrate(objects: &[(&Object, Origin)], choices: &Choices) -> Migration {
    let mut migration = Migration::default();
    let repositories = objects.iter().filter_map(|(object, _)| Repository::of(&object.value)).collect::<Vec<_>>();
    for (object, origin) in objects.iter().filter(|(object, _)| object.group() == GROUP) {
        let subject = Subject::of(object, *origin);
        match object.kind() {
            "Application" => application(&subject, choices, &repositories, &mut migration),
            "ApplicationSet" => {
                let unfolded = expand::application_set(&subject, objects, &mut migration.notes);
                for made in &unfolded {
                    application(made, choices, &repositories, &mut migration);
                }
                migration.read += usize::from(unfolded.is_empty());
            }
            "AppProject" => {
                migration.read += 1;
                fields::check(&subject, "spec", PROJECT_FIELDS, &mut migration.notes);
            }
            _ => {}
        }
    }
    migration
}

fn application(subject: &Subject<'_>, choices: &Choices, repositories: &[Repository], migration: &mut Migration) {
    migration.read += 1;
    let notes = &mut migration.notes;
    if !is_for_this_cluster(subject, choices) {
        let server = ["server", "name"].map(|key| subject.text(&["spec", "destination", key])).concat();
        let what = format!("it is for another cluster, {server}: no GitSource is written for it");
        let remedy = "run the daemon in that cluster, and name this one with --destination to migrate what is for it";
        notes.push(subject.note(Weight::NoEquivalent, &[Key("spec"), Key("destination")], what, remedy));
        return;
    }
    let sources = git_sources(subject, notes);
    fields::check(subject, "spec", FIELDS, notes);
    annotations(subject, notes);
    let mut made = Vec::new();
    let several = sources.len() > 1;
    for (number, steps) in sources.iter().enumerate() {
        let name = if number == 0 { subject.name().to_owned() } else { format!("{}-{}", subject.name(), number + 1) };
        if let Some(source) = source(subject, steps, &name, choices, repositories, &mut migration.notes) {
            let text = |key| source.str_at(&["metadata", key]).unwrap_or_default().to_owned();
            made.push((text("namespace"), text("name")));
            migration.sources.push(source);
        }
    }
    if several {
        let what = format!(
            "its {} sources become GitSources of their own, each with its own commits and its own order",
            sources.len()
        );
        let remedy = "add spec.dependsOn where one needs what another brings";
        migration.notes.push(subject.note(Weight::Differs, &[Key("spec"), Key("sources")], what, remedy));
    }
    if !made.is_empty() {
        let (namespace, name) = (subject.namespace().to_owned(), subject.name().to_owned());
        migration.taken.push(Taken { kind: "Application", namespace, name, sources: made });
    }
}

fn is_for_this_cluster(subject: &Subject<'_>, choices: &Choices) -> bool {
    ["server", "name"].iter().all(|key| {
        let given = subject.text(&["spec", "destination", key]);
        given.is_empty() || OWN_CLUSTER.contains(&given) || choices.destinations.iter().any(|known| known == given)
    })
}

/// Where the sources stand that a GitSource can read.
fn git_sources<'s>(subject: &'s Subject<'_>, notes: &mut Vec<Note>) -> Vec<Vec<Step<'s>>> {
    let several = subject.value.list_at(&["spec", "sources"]);
    let places: Vec<(Vec<Step<'_>>, &Value)> = if several.is_empty() {
        subject.value.at(&["spec", "source"]).map(|one| (vec![Key("spec"), Key("source")], one)).into_iter().collect()
    } else {
        several.iter().enumerate().map(|(at, one)| (vec![Key("spec"), Key("sources"), Index(at)], one)).collect()
    };
    if places.is_empty() && subject.value.at(&["spec", "sourceHydrator"]).is_none() {
        notes.push(subject.note(Weight::NoEquivalent, &[Key("spec")], "it has no source", "name one"));
    }
    let mut found = Vec::new();
    for (steps, one) in places {
        let has = |key: &str| one.get(key).is_some_and(|value| value.as_map().is_none_or(|map| !map.is_empty()));
        if has("chart") {
            let steps = [&steps[..], &[Key("chart")]].concat();
            notes.push(subject.note(
                Weight::NoEquivalent,
                &steps,
                "it is a chart of a Helm repository: no GitSource is written for it",
                HELM,
            ));
        } else if has("helm") || has("plugin") {
            // What the field means is said where all fields are looked at.
        } else if has("ref") && !has("path") {
            let steps = [&steps[..], &[Key("ref")]].concat();
            notes.push(subject.note(
                Weight::NoEquivalent,
                &steps,
                "it only holds values for a Helm chart: no GitSource is written for it",
                HELM,
            ));
        } else {
            found.push(steps);
        }
    }
    found
}

fn source(
    subject: &Subject<'_>,
    steps: &[Step<'_>],
    name: &str,
    choices: &Choices,
    repositories: &[Repository],
    notes: &mut Vec<Note>,
) -> Option<Value> {
    let one = steps.iter().try_fold(&subject.value, |value, step| match step {
        Key(key) => value.get(key),
        Index(at) => value.as_list()?.get(*at),
    })?;
    let below = |key| [steps, &[Key(key)]].concat();
    let text = |key: &str| one.str_at(&[key]).unwrap_or_default();
    let target = subject.text(&["spec", "destination", "namespace"]);
    let url = url::url(subject, &below("repoURL"), text("repoURL"), notes)?;
    let namespace = match (&choices.namespace, target) {
        (Some(chosen), _) => chosen.as_str(),
        (None, "") => {
            let what = format!(
                "it names no namespace: the GitSource is in {}, and so are objects without one",
                subject.namespace()
            );
            notes.push(subject.note(
                Weight::Differs,
                &[Key("spec"), Key("destination")],
                what,
                "give --namespace to choose another",
            ));
            subject.namespace()
        }
        (None, target) => target,
    };
    let mut draft = Draft::new(namespace, name);
    draft.set(&["url"], url.as_str());
    revision(subject, &below("targetRevision"), text("targetRevision"), &mut draft, notes);
    draft.path(text("path"));
    if !target.is_empty() && target != namespace {
        draft.set(&["targetNamespace"], target);
    }
    draft.set(&["serviceAccountName"], choices.service_account.as_str());
    directory(subject, steps, one, &mut draft, notes);
    policy(subject, &mut draft, notes);
    options(subject, &mut draft, notes);
    differences(subject, notes);
    let inventory = inventory(&subject.value);
    allowance(&mut draft, target, &inventory);
    credentials(subject, &below("repoURL"), &url, repositories, &mut draft, notes);
    draft.close(subject, notes)
}

/// Argo CD asks the repository what a name is; a GitSource is told.
fn revision(subject: &Subject<'_>, steps: &[Step<'_>], text: &str, draft: &mut Draft, notes: &mut Vec<Note>) {
    let is_hash = |least: usize| text.len() >= least && text.len() <= 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
    if text.is_empty() || text == "HEAD" {
    } else if let Some(branch) = text.strip_prefix("refs/heads/") {
        draft.set(&["ref", "branch"], branch);
    } else if let Some(tag) = text.strip_prefix("refs/tags/") {
        draft.set(&["ref", "tag"], tag);
    } else if is_hash(40) {
        draft.set(&["ref", "commit"], text.to_lowercase());
    } else if text.contains(['*', '^', '~', '<', '>', '|', ' '])
        || ["x", "X"].iter().any(|x| text.split('.').any(|part| part == *x))
    {
        draft.set(&["ref", "semver"], text);
    } else if is_hash(7) && text.bytes().any(|b| b.is_ascii_digit()) {
        let what = format!("{text} is taken for a branch, but looks like the beginning of a commit's hash");
        notes.push(subject.note(Weight::ToDo, steps, what, "if it is one, write the whole hash into spec.ref.commit"));
        draft.set(&["ref", "branch"], text);
    } else if version_range::version(text).is_some() {
        let what = format!("{text} is taken for a tag; Argo CD looks whether it is a branch or a tag");
        notes.push(subject.note(
            Weight::Differs,
            steps,
            what,
            "if it is a branch, write it into spec.ref.branch instead",
        ));
        draft.set(&["ref", "tag"], text);
    } else {
        if !["main", "master"].contains(&text) {
            let what = format!("{text} is taken for a branch; Argo CD looks whether it is a branch or a tag");
            notes.push(subject.note(
                Weight::Differs,
                steps,
                what,
                "if it is a tag, write it into spec.ref.tag instead",
            ));
        }
        draft.set(&["ref", "branch"], text);
    }
}

fn directory(subject: &Subject<'_>, steps: &[Step<'_>], one: &Value, draft: &mut Draft, notes: &mut Vec<Note>) {
    let mut exclude: Vec<Value> = Vec::new();
    let is_directory = one.get("directory").is_some();
    let recurses = one.at(&["directory", "recurse"]) == Some(&Value::Bool(true));
    if !recurses && one.get("kustomize").is_none() {
        exclude.push("*/**".into());
        if !is_directory {
            let what = "files in folders below the path are left out, as Argo CD leaves them out of a plain directory";
            let remedy = "if the path holds a kustomization.yaml or a chart, this is not a plain directory: see docs/migrate-argocd.md";
            notes.push(subject.note(Weight::Differs, &[steps, &[Key("path")]].concat(), what, remedy));
        }
    }
    let given = one.str_at(&["directory", "exclude"]).unwrap_or_default();
    let inner =
        given.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).filter(|inner| !inner.contains(['{', '}']));
    match inner {
        Some(inner) => exclude.extend(inner.split(',').map(str::trim).filter(|part| !part.is_empty()).map(Value::from)),
        None if given.is_empty() => {}
        None if given.contains(['{', '[', '!']) => {
            let steps = [steps, &[Key("directory"), Key("exclude")]].concat();
            let what = format!("the pattern {given:?} has signs that patterns of spec.exclude do not have");
            notes.push(subject.note(
                Weight::NoEquivalent,
                &steps,
                what,
                "write it with `*`, `**` and `?` into spec.exclude",
            ));
        }
        None => exclude.push(given.into()),
    }
    if !exclude.is_empty() {
        draft.set(&["exclude"], Value::list(exclude));
    }
}

fn policy(subject: &Subject<'_>, draft: &mut Draft, notes: &mut Vec<Note>) {
    let automated = subject.value.at(&["spec", "syncPolicy", "automated"]);
    let is_off = automated.is_none_or(|automated| automated.get("enabled") == Some(&Value::Bool(false)));
    let skips = subject.text(&["metadata", "annotations", "argocd.argoproj.io/skip-reconcile"]) == "true";
    if is_off || skips {
        let what =
            "Argo CD syncs it only when asked, so the GitSource is suspended; one that is resumed follows every commit";
        let remedy = "`tidegate resume NAME` to let it go on, and `tidegate suspend NAME` to stop it again";
        notes.push(subject.note(Weight::Differs, &[Key("spec"), Key("syncPolicy")], what, remedy));
        draft.set(&["suspend"], true);
    }
    draft.set(&["prune"], subject.is_set(&["spec", "syncPolicy", "automated", "prune"]));
    draft.set(&["selfHeal"], subject.is_set(&["spec", "syncPolicy", "automated", "selfHeal"]));
}

/// `syncPolicy.syncOptions`, of which most are what is done anyway.
fn options(subject: &Subject<'_>, draft: &mut Draft, notes: &mut Vec<Note>) {
    for (at, option) in subject.value.list_at(&["spec", "syncPolicy", "syncOptions"]).iter().enumerate() {
        let option = option.as_str().unwrap_or_default();
        let (weight, what, remedy) = match option {
            "ServerSideApply=true"
            | "ApplyOutOfSyncOnly=true"
            | "PruneLast=true"
            | "SkipDryRunOnMissingResource=true"
            | "FailOnSharedResource=true"
            | "RespectIgnoreDifferences=true"
            | "PrunePropagationPolicy=background"
            | "Validate=true"
            | "ClientSideApplyMigration=true" => continue,
            option if option.ends_with("=false") && option != "Validate=false" && option != "Prune=false" => continue,
            "Prune=false" => {
                draft.set(&["prune"], false);
                continue;
            }
            "Replace=true" | "Force=true" => {
                draft.set(&["onImmutable"], "Replace");
                (
                    Weight::Differs,
                    "objects are replaced only where a field of theirs cannot be changed",
                    "nothing to do, unless an object must be made anew each time",
                )
            }
            "CreateNamespace=true" => (
                Weight::NoEquivalent,
                "no namespace is created",
                "it is there already; for a new cluster add it to the repository, and `Namespace` to spec.allow.kinds",
            ),
            "Validate=false" => (
                Weight::NoEquivalent,
                "the API server's validation is not turned off",
                "remove the fields that it refuses; `tidegate lint` names them",
            ),
            _ => (
                Weight::NoEquivalent,
                "this option is not known, and nothing is done about it",
                "see what it does, and whether you need that",
            ),
        };
        let steps = [Key("spec"), Key("syncPolicy"), Key("syncOptions"), Index(at)];
        notes.push(subject.note(weight, &steps, format!("{option}: {what}"), remedy));
    }
}

/// `ignoreDifferences`: what engines and autoscalers own is never compared; the rest is a matter of the repository.
fn differences(subject: &Subject<'_>, notes: &mut Vec<Note>) {
    for (at, entry) in subject.value.list_at(&["spec", "ignoreDifferences"]).iter().enumerate() {
        let pointers = entry.list_at(&["jsonPointers"]);
        let is_scale =
            !pointers.is_empty() && pointers.iter().all(|pointer| pointer.as_str() == Some("/spec/replicas"));
        let is_rest = ["jqPathExpressions", "managedFieldsManagers"].iter().all(|key| entry.list_at(&[key]).is_empty());
        let kind = entry.str_at(&["kind"]).unwrap_or_default();
        let (weight, what, remedy) = if is_scale && is_rest {
            (
                Weight::Differs,
                format!(
                    "the replica count of {kind} is left alone where an autoscaler sets it, and compared everywhere else"
                ),
                "where something else sets it, remove `replicas` from git",
            )
        } else {
            (
                Weight::NoEquivalent,
                format!(
                    "differences of {kind} are not ignored by a list: fields that git does not name are never compared"
                ),
                "remove the fields from git, or annotate the object with `tidegate.dev/apply: once`",
            )
        };
        notes.push(subject.note(weight, &[Key("spec"), Key("ignoreDifferences"), Index(at)], what, remedy));
    }
}

/// What annotations and owners of an Application mean.
fn annotations(subject: &Subject<'_>, notes: &mut Vec<Note>) {
    let all = subject.value.at(&["metadata", "annotations"]).and_then(Value::as_map);
    for (key, _) in all.into_iter().flat_map(|map| map.iter()) {
        let steps = [Key("metadata"), Key("annotations"), Key(key)];
        if key.starts_with("notifications.argoproj.io/") {
            let what = "notifications of Argo CD end with it";
            notes.push(subject.note(
                Weight::NoEquivalent,
                &steps,
                what,
                "commit statuses (spec.report) say how each commit went",
            ));
        } else if *key == "argocd.argoproj.io/sync-wave" {
            let what = "the order among Applications is not carried over";
            notes.push(subject.note(
                Weight::NoEquivalent,
                &steps,
                what,
                "name the sources that must be rolled out first in spec.dependsOn",
            ));
        }
    }
    let owner = subject.value.list_at(&["metadata", "ownerReferences"]).first();
    let by_set = owner.map(|owner| format!("ApplicationSet {}", owner.str_at(&["name"]).unwrap_or_default()));
    let tracked = subject.text(&["metadata", "annotations", "argocd.argoproj.io/tracking-id"]);
    let by_app = tracked.split_once(':').map(|(app, _)| format!("Application {app}"));
    if let Some(writer) = by_set.or(by_app) {
        let what = format!("{writer} writes it, and would write it again");
        notes.push(subject.note(Weight::ToDo, &[], what, "end that one first: docs/migrate-argocd.md says how"));
    }
}

/// The objects that Argo CD says it has written.
pub fn inventory(application: &Value) -> Vec<Entry> {
    let entry = |resource: &Value| {
        let text = |key: &str| resource.str_at(&[key]).unwrap_or_default().to_owned();
        Entry { group: text("group"), kind: text("kind"), namespace: text("namespace"), name: text("name") }
    };
    let entries = application.list_at(&["status", "resources"]).iter().map(entry);
    entries.filter(|entry| !entry.kind.is_empty() && !entry.name.is_empty()).collect()
}

/// A repository that Argo CD has credentials for: a Secret of which only the address and the names of the keys are read.
struct Repository {
    secret: String,
    url: String,
    is_prefix: bool,
    keys: Vec<String>,
}

impl Repository {
    fn of(secret: &Value) -> Option<Repository> {
        let sort = secret.str_at(&["metadata", "labels", "argocd.argoproj.io/secret-type"])?;
        let is_prefix = match (secret.str_at(&["kind"])?, sort) {
            ("Secret", "repository") => false,
            ("Secret", "repo-creds") => true,
            _ => return None,
        };
        let mut keys: BTreeMap<String, String> = BTreeMap::new();
        for (field, is_encoded) in [("data", true), ("stringData", false)] {
            for (key, value) in secret.get(field).and_then(Value::as_map).into_iter().flat_map(|map| map.iter()) {
                let text = if key != "url" {
                    String::new()
                } else if is_encoded {
                    let bytes = STANDARD.decode(value.as_str()?).ok()?;
                    String::from_utf8(bytes).ok()?
                } else {
                    value.as_str()?.to_owned()
                };
                keys.insert(key.to_string(), text);
            }
        }
        let url = keys.remove("url")?;
        let secret = secret.str_at(&["metadata", "name"])?.to_owned();
        Some(Repository { secret, url, is_prefix, keys: keys.into_keys().collect() })
    }

    fn is_for(&self, url: &str) -> bool {
        let plain = |url: &str| url.trim_end_matches('/').trim_end_matches(".git").to_owned();
        match (Remote::parse(url), Remote::parse(&self.url)) {
            (Ok(one), Ok(other)) if !self.is_prefix => one.same_repository(&other),
            _ if self.is_prefix => plain(url).starts_with(&plain(&self.url)),
            _ => plain(url) == plain(&self.url),
        }
    }

    /// Which key of ours each of its keys becomes.
    fn translated(&self) -> Vec<String> {
        let ours = |key: &str| match key {
            "username" | "password" | "bearerToken" => Some(key.to_owned()),
            "sshPrivateKey" => Some("identity".to_owned()),
            "githubAppID" | "githubAppInstallationID" | "githubAppPrivateKey" => Some(key.to_owned()),
            _ => None,
        };
        let renamed = |key: &String| match ours(key) {
            Some(name) if name == *key => Some(name),
            Some(name) => Some(format!("{key} as {name}")),
            None => None,
        };
        self.keys.iter().filter_map(renamed).collect()
    }
}

fn credentials(
    subject: &Subject<'_>,
    steps: &[Step<'_>],
    url: &str,
    repositories: &[Repository],
    draft: &mut Draft,
    notes: &mut Vec<Note>,
) {
    let best = repositories.iter().filter(|one| one.is_for(url)).max_by_key(|one| (!one.is_prefix, one.url.len()));
    let is_ssh = !url.starts_with("https://");
    if best.is_none() && !is_ssh {
        return;
    }
    let name = format!("{}-git", draft.name);
    let from = match best {
        Some(one) if !one.translated().is_empty() => {
            format!("with {} of Argo CD's Secret {}", one.translated().join(", "), one.secret)
        }
        Some(one) => format!("from Argo CD's Secret {}", one.secret),
        None => "with identity, a private key".to_owned(),
    };
    let hosts = if is_ssh { ", and known_hosts as in Argo CD's ConfigMap argocd-ssh-known-hosts-cm" } else { "" };
    let what = format!(
        "the GitSource reads its credentials from the Secret {name} in {}, which is not there yet",
        draft.namespace
    );
    let remedy = format!("create it {from}{hosts}, and the annotation tidegate.dev/hosts (docs/gitsource.md)");
    draft.set(&["secretRef", "name"], name);
    notes.push(subject.note(Weight::ToDo, steps, what, remedy));
}
