//! What a source is, and where what it has reached is kept: in the status of its GitSource, or in a ConfigMap for one
//! that was given on the command line.

use std::{borrow::Cow, path::PathBuf};

use jiff::Timestamp;

use super::{Given, git_sources};
use crate::{
    api::{
        self, GitSourceStatus, Time,
        constants::{FINALIZER, TIDEGATE_API_VERSION, annotation, condition, kind, reason},
    },
    engine::{
        cache::{place_of, version_of},
        key::{ObjectKey, Place, Resource},
        write::Written,
    },
    io::{
        api::{Api, Error, Force, Run},
        world,
    },
    kubernetes::value::Value,
    model::{git_source::GitSource, health::Standing, parse, problem::Problem},
    rollout::Event,
    sync::{Guard, announce},
    value,
};

/// A source.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Where it is.
    pub place: Place,
    /// Its identity; empty for one that was given on the command line.
    pub uid: String,
    /// Whether it is being deleted.
    pub is_leaving: bool,
    /// Who is waited for before it is gone.
    pub finalizers: Vec<String>,
    /// The generation of its specification.
    pub generation: i64,
    /// What it wants, or what is wrong with it.
    pub spec: Result<GitSource, Vec<Problem>>,
    /// The value of the annotation that asks for a sync.
    pub request: String,
    /// The sources it depends on that have not rolled out.
    pub waits_for: Vec<String>,
    /// The folder of its repository, if that is on this machine.
    pub folder: Option<PathBuf>,
    /// Where its status is.
    pub kept: Kept,
}

/// Where a status is.
#[derive(Debug, Clone)]
pub enum Kept {
    /// In the GitSource, which had this version.
    Object(Box<GitSourceStatus>, u64),
    /// In a ConfigMap.
    ConfigMap,
}

impl Subject {
    /// A source that was given on the command line.
    pub fn given(given: &Given) -> Subject {
        Subject {
            place: Place::new(&given.namespace, &given.name),
            uid: String::new(),
            is_leaving: false,
            finalizers: Vec::new(),
            generation: 1,
            spec: Ok(given.spec.clone()),
            request: String::new(),
            waits_for: Vec::new(),
            folder: given.folder.clone(),
            kept: Kept::ConfigMap,
        }
    }

    /// A GitSource, among those of its namespace.
    pub fn object<'o>(object: &Value, others: impl Iterator<Item = &'o Value>) -> Subject {
        let source: api::GitSource = api::read(object).object;
        let spec = parse::git_source(&source).into_result();
        let depends: Vec<String> = spec.as_ref().map(|spec| spec.depends_on.clone()).unwrap_or_default();
        let ready: Vec<String> =
            others.filter(|other| has_rolled_out(other)).map(|other| place_of(other).name.to_string()).collect();
        Subject {
            place: place_of(object),
            uid: source.metadata.uid.clone(),
            is_leaving: source.metadata.deletion_timestamp.is_some(),
            finalizers: source.metadata.finalizers.clone(),
            generation: source.metadata.generation,
            spec,
            request: source.metadata.annotations.get(annotation::SYNC_REQUESTED).cloned().unwrap_or_default(),
            waits_for: depends.into_iter().filter(|name| !ready.contains(name)).collect(),
            folder: None,
            kept: Kept::Object(Box::new(source.status.unwrap_or_default()), version_of(object)),
        }
    }
}

impl Subject {
    /// What tells it from every other source: its uid, or its name if it was given on the command line.
    pub fn identity(&self) -> Cow<'_, str> {
        match self.uid.as_str() {
            "" => self.place.to_string().into(),
            uid => uid.into(),
        }
    }

    /// What people wrote of it: its generation, and whether they asked for a look.
    pub fn version(&self) -> String {
        format!("{} {}", self.generation, self.request)
    }

    /// Whether its deletion waits for us.
    pub fn is_guarded(&self) -> bool {
        self.finalizers.iter().any(|name| name == FINALIZER)
    }
}

/// Puts our finalizer on a source, or takes it off.
pub async fn guard(api: &Api, subject: &Subject, guard: Guard) -> Result<Option<Written>, Error> {
    let Kept::Object(_, version) = &subject.kept else { return Ok(None) };
    let others = subject.finalizers.iter().filter(|name| *name != FINALIZER).map(String::as_str);
    let names: Vec<&str> = match guard {
        Guard::Put => others.chain([FINALIZER]).collect(),
        Guard::Take => others.collect(),
    };
    let mut patch = value!({"metadata": {"resourceVersion": version.to_string()}});
    patch.set_at(&["metadata", "finalizers"], Value::list(names.into_iter().map(Value::from)));
    match api.patch(&git_sources(), &subject.place, "", &patch).await {
        Ok(written) => {
            let key = ObjectKey { resource: git_sources(), place: subject.place.clone() };
            // The last finalizer that goes takes the object along, and there is no version to wait for.
            let gone = guard == Guard::Take && subject.is_leaving;
            Ok((!gone).then(|| Written::Version(key, version_of(&written))))
        }
        Err(error) if error.code() == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the newest commit of a source is rolled out, as its present specification wants it.
fn has_rolled_out(object: &Value) -> bool {
    let source: api::GitSource = api::read(object).object;
    let status = source.status.unwrap_or_default();
    let ready = status.conditions.iter().any(|told| told.r#type == condition::READY && told.status == "True");
    let commit = |revision: &Option<api::GitRevision>| revision.as_ref().map(|revision| revision.commit.clone());
    ready
        && status.observed_generation >= source.metadata.generation
        && commit(&status.seen) == commit(&status.rolled_out)
}

fn config_maps() -> Resource {
    Resource::new("", "v1", "configmaps")
}

fn config_map(place: &Place) -> Place {
    Place::new(&place.namespace, &format!("tidegate.{}", place.name))
}

/// What was last recorded of a source that was given on the command line.
pub async fn load(api: &Api, place: &Place) -> Result<GitSourceStatus, Error> {
    let map = config_map(place);
    match api.object(&config_maps(), &map).await {
        Ok(map) => {
            let part = |key: &str| {
                let text = map.str_at(&["data", key]).unwrap_or_default();
                api::read::<GitSourceStatus>(&Value::from_json(text.as_bytes()).unwrap_or_default()).object
            };
            let (status, inventory) = (part("status"), part("inventory").inventory);
            Ok(if inventory.is_empty() { status } else { GitSourceStatus { inventory, ..status } })
        }
        Err(error) if error.code() == Some(404) => Ok(GitSourceStatus::default()),
        Err(error) => Err(error),
    }
}

/// A status in two parts: what is short, and the inventory, which is long and seldom new.
fn parts(status: &GitSourceStatus) -> (GitSourceStatus, GitSourceStatus) {
    let mut short = status.clone();
    let inventory = std::mem::take(&mut short.inventory);
    (short, GitSourceStatus { inventory, ..GitSourceStatus::default() })
}

/// Records what a source has reached, if that is new. An inventory that is as it was is not sent again.
pub async fn record(
    api: &Api,
    subject: &Subject,
    old: &GitSourceStatus,
    new: &GitSourceStatus,
) -> Result<Option<Written>, Error> {
    if old == new {
        return Ok(None);
    }
    let same = old.inventory == new.inventory;
    let (short, inventory) = parts(new);
    match &subject.kept {
        Kept::Object(_, version) => {
            let (mut status, before) =
                if same { (api::write(&short), api::write(&parts(old).0)) } else { (api::write(new), api::write(old)) };
            forget(&before, &mut status);
            let mut patch = value!({"metadata": {"resourceVersion": version.to_string()}});
            patch.set_at(&["status"], status);
            let written = api.patch(&git_sources(), &subject.place, "status", &patch).await?;
            let key = ObjectKey { resource: git_sources(), place: subject.place.clone() };
            Ok(Some(Written::Version(key, version_of(&written))))
        }
        Kept::ConfigMap => {
            let place = config_map(&subject.place);
            let status = api::write(&short).to_json();
            if same {
                let patch = value!({"data": {"status": status.as_str()}});
                match api.patch(&config_maps(), &place, "", &patch).await {
                    Ok(_) => return Ok(None),
                    // It is new, or somebody took it away.
                    Err(error) if error.code() == Some(404) => {}
                    Err(error) => return Err(error),
                }
            }
            let mut map = value!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}});
            map.set_at(&["metadata", "name"], &place.name);
            map.set_at(&["metadata", "namespace"], &place.namespace);
            map.set_at(&["data", "status"], status);
            map.set_at(&["data", "inventory"], api::write(&inventory).to_json());
            api.apply(&config_maps(), &place, &map, Force::Taken, Run::Wet).await?;
            Ok(None)
        }
    }
}

/// Says in a merge patch that what was there before and is not wanted any more goes, however deep it stands: what a patch leaves out
/// stays.
fn forget(before: &Value, after: &mut Value) {
    let (Some(before), Some(after)) = (before.as_map(), after.as_map_mut()) else { return };
    for (key, old) in before.iter() {
        match after.get_mut(key) {
            Some(new) => forget(old, new),
            None => drop(after.insert(key.clone(), Value::Null)),
        }
    }
}

/// The target of log lines that say how a commit goes: whoever shows commits leaves them out.
pub const OUTCOME: &str = "tidegate::outcome";

/// Writes an event about a GitSource. Of a source that was given on the command line it is about the ConfigMap in which its
/// status is, and a line of the log, because whoever gave it watches that.
pub async fn announce(api: &Api, subject: &Subject, event: Event, now: Timestamp) {
    let mut object = value!({"metadata": {}});
    object.set_at(&["metadata", "namespace"], &subject.place.namespace);
    match &subject.kept {
        Kept::Object(_, version) => {
            object.set_at(&["metadata", "uid"], subject.uid.as_str());
            object.set_at(&["metadata", "resourceVersion"], version.to_string());
            object.set_at(&["metadata", "name"], &subject.place.name);
            world::announce_about(api, kind::GIT_SOURCE, &object, &event, now).await;
        }
        Kept::ConfigMap => {
            // What others did to the cluster is said where nothing was asked for, too. Fetching logs its own failures.
            if event.reason == "FetchFailed" {
                tracing::debug!(source = %subject.place, reason = event.reason, "{}", event.message);
            } else if announce::is_of_commit(event.reason) {
                tracing::warn!(target: OUTCOME, source = %subject.place, reason = event.reason, "{}", event.message);
            } else if event.warning || ["DriftHealed", "TakenOver", "HandedOver"].contains(&event.reason) {
                tracing::warn!(source = %subject.place, reason = event.reason, "{}", event.message);
            } else {
                tracing::info!(source = %subject.place, reason = event.reason, "{}", event.message);
            }
            object.set_at(&["metadata", "name"], &config_map(&subject.place).name);
            world::announce_about(api, "ConfigMap", &object, &event, now).await;
        }
    }
}

/// Says of a source that it is left alone for a while.
pub async fn set_aside(api: &Api, subject: &Subject, message: String, now: Timestamp) {
    let event = Event { warning: true, reason: reason::QUARANTINED, message: message.clone() };
    announce(api, subject, event, now).await;
    let Kept::Object(old, _) = &subject.kept else { return };
    let generation = subject.generation;
    let conditions =
        Standing::Stalled.conditions(reason::QUARANTINED, &message, generation, Time::from(now), &old.conditions);
    // Of the newest version, whatever became of the one that the pass was about.
    let mut patch = value!({"status": {"observedGeneration": generation}});
    let status = api::write(&GitSourceStatus { conditions, ..GitSourceStatus::default() });
    patch.set_at(&["status", "conditions"], status.get("conditions").cloned().unwrap_or_default());
    if let Err(error) = api.patch(&git_sources(), &subject.place, "status", &patch).await {
        tracing::warn!(source = %subject.place, %error, "that it is set aside is not in its status");
    }
}

fn reports(place: &Place) -> Place {
    Place::new(&place.namespace, &format!("tidegate.{}.reports", place.name))
}

/// What commits are still to be told, as it was kept.
pub async fn load_reports(api: &Api, place: &Place) -> Option<String> {
    let map = api.object(&config_maps(), &reports(place)).await.ok()?;
    map.str_at(&["data", "reports"]).map(str::to_owned)
}

/// Keeps what commits are still to be told.
///
/// They go with the GitSource of this uid.
pub async fn save_reports(api: &Api, source: &Place, uid: &str, text: String) -> Result<(), Error> {
    let place = reports(source);
    let mut map = value!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}});
    map.set_at(&["metadata", "name"], &place.name);
    map.set_at(&["metadata", "namespace"], &place.namespace);
    if !uid.is_empty() {
        let mut owner = value!({"apiVersion": TIDEGATE_API_VERSION, "kind": kind::GIT_SOURCE, "uid": uid});
        owner.set_at(&["name"], &source.name);
        map.set_at(&["metadata", "ownerReferences"], Value::list([owner]));
    }
    map.set_at(&["data", "reports"], text);
    api.apply(&config_maps(), &place, &map, Force::Taken, Run::Wet).await.map(drop)
}
