//! A cluster as the world of a pass: reads and writes go to its API server, requests for metrics to the network.
//!
//! Never decides and never tries again: the queue does.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use tokio::io::AsyncWriteExt;

use super::{
    api::{Api, Error},
    clock::Clock,
    errand::Errands,
    web::Web,
};
use crate::{
    api::constants::{self, EVENT_COMPONENT, annotation},
    engine::{
        cache::place_of,
        key::{Key, Machine, ObjectKey, Place},
        resource,
        world::{Announcement, Found, Live, Note, Read, Refusal, Trouble, World},
        write::{Verb, Write, Written},
    },
    kubernetes::{apply::Managers, clock::rfc3339, names, value::Value},
    model::{event::Event, secret::Secret, template},
    value,
};

/// The world of one pass.
pub struct Cluster {
    /// The way to the API server.
    pub api: Api,
    /// The way to those who measure, if there is one.
    pub web: Option<Web>,
    /// The requests for metrics of all passes.
    pub(super) errands: Errands,
    /// Whether this pass waits for other servers.
    pub(super) is_away: Arc<AtomicBool>,
    /// What the pass is about.
    pub key: Key,
    /// Where decisions are recorded, if they are.
    pub record: Option<PathBuf>,
    /// What time it is.
    pub clock: Clock,
    /// When the decision began.
    pub deciding: Instant,
}

impl World for Cluster {
    async fn read(&mut self, reads: &[Read]) -> Result<Vec<Found>, Trouble> {
        let cluster = &*self;
        let found = join_all(reads.iter().map(|read| cluster.read_one(read)));
        if !reads.iter().any(|read| matches!(read, Read::Send(_))) {
            return found.await.into_iter().collect();
        }
        let _away = cluster.errands.leave();
        cluster.is_away.store(true, Ordering::Relaxed);
        let found = found.await;
        if !cluster.is_away.swap(false, Ordering::Relaxed) {
            // The pass is being cancelled: it writes nothing any more.
            std::future::pending::<()>().await;
        }
        found.into_iter().collect()
    }

    async fn write(&mut self, write: &Write) -> Result<Option<Written>, Trouble> {
        let ObjectKey { resource, place } = &write.object;
        let answer = match &write.verb {
            Verb::Create => self.api.create(resource, &place.namespace, &write.body).await,
            Verb::Patch => self.api.patch(resource, place, write.subresource, &write.body).await,
            Verb::Delete(..) => self.api.delete(resource, place, &write.body).await.map(|_| Value::Null),
            Verb::Evict(..) => self.api.evict(place, &write.body).await.map(|_| Value::Null),
        };
        match answer {
            Ok(answer) => Ok(write.done(&answer)),
            Err(error) if error.code().is_some_and(|code| write.tolerates(code)) => Ok(None),
            Err(error) => Err(self.trouble(error)),
        }
    }

    async fn announce(&mut self, announcements: Vec<Announcement>) {
        for Announcement { kind, object, event } in &announcements {
            if *kind == constants::kind::ROLLOUT {
                let r#type = if event.warning { "Warning" } else { "Normal" };
                self.api.metrics().with(|metrics| metrics.announced(place_of(object), r#type, event.reason));
            }
            announce_about(&self.api, kind, object, event, self.clock.now()).await;
        }
    }

    async fn record<C: Serialize + Sync, V: Serialize + Sync>(&mut self, machine: Machine, case: &C, verdict: &V) {
        let Some(folder) = &self.record else { return };
        let place = &self.key.place;
        let now = self.clock.now().as_nanosecond();
        // A Rollout's is as it always was, so that old files and new ones are replayed alike.
        let (name, mut record) = match machine {
            Machine::Rollout => (String::new(), serde_json::to_value(case)),
            Machine::Analysis | Machine::Experiment | Machine::Sync | Machine::Service | Machine::Subsets => {
                (format!("{}_", machine.name()), serde_json::to_value(case))
            }
        };
        if let Ok(record) = &mut record {
            record["machine"] = machine.name().into();
            record["verdict"] = serde_json::to_value(verdict).unwrap_or_default();
            forget_applied(record);
        }
        let name = format!("{name}{}_{}_{now}.json", place.namespace, place.name);
        let written = match record.and_then(|record| serde_json::to_vec_pretty(&record)) {
            Ok(bytes) => own_file(&folder.join(name), &bytes).await,
            Err(error) => Err(error.into()),
        };
        if let Err(error) = written {
            tracing::warn!(%error, folder = %folder.display(), "a decision was not recorded");
        }
    }

    fn records(&self) -> bool {
        self.record.is_some()
    }

    fn note(&mut self, note: Note<'_>) {
        let (machine, object) = (self.key.machine, &self.key.place);
        let kind = machine.name();
        match note {
            // How long the server took is not how long it takes to decide.
            Note::Deciding => self.deciding = Instant::now(),
            Note::Decided { actions, reasons, wake } => {
                let took = self.deciding.elapsed().as_secs_f64();
                self.api.metrics().with(|metrics| metrics.decided(took));
                let (reasons, wake) = (reasons.join("; "), wake.map(|wake| wake.to_string()));
                tracing::info!(kind, %object, actions, reasons, wake, "decided");
            }
            Note::Broken(rules) => {
                tracing::error!(kind, %object, rules = rules.join("; "), "refused");
                self.api.metrics().with(|metrics| metrics.refused(machine));
            }
            // Somebody wrote in between: the next pass sees it.
            Note::Failed(Trouble::Refused(why)) if why.code == 409 => {
                tracing::debug!(kind, %object, error = why.message, "the world moved on");
            }
            Note::Failed(Trouble::Refused(Refusal { message, code, .. })) => {
                tracing::warn!(kind, %object, error = message, code, "a pass failed; trying again");
            }
            Note::Failed(Trouble::Unreachable(error)) => {
                tracing::warn!(kind, %object, error, "a pass failed; trying again");
            }
            Note::Failed(Trouble::Over) => {}
            Note::Recorded { before, after, now } => {
                self.api.metrics().with(|metrics| metrics.recorded(before, after, now));
            }
        }
    }
}

impl Cluster {
    /// The world of who only announces.
    pub fn announcing(api: Api, clock: Clock) -> Cluster {
        let key = Key { machine: Machine::Rollout, place: Place::new("", "") };
        let (errands, is_away) = (Errands::new(1), Arc::default());
        Cluster { api, web: None, errands, is_away, key, record: None, clock, deciding: Instant::now() }
    }

    async fn read_one(&self, read: &Read) -> Result<Found, Trouble> {
        match read {
            Read::Object(key) => match self.api.object(&key.resource, &key.place).await {
                Ok(object) => Ok(Found::Object(Live { is_altered: is_altered(&object), object })),
                Err(error) if error.code() == Some(404) => Ok(Found::Missing(error.words().to_owned())),
                Err(error) if error.is_refusal() => Ok(Found::Refused(error.words().to_owned())),
                Err(error) => Err(self.trouble(error)),
            },
            Read::List(resource, namespace, label) => {
                let path = resource.path(Some(namespace)).map_err(|error| self.trouble(error.into()))?;
                let selector = label.as_ref().map(|(key, value)| {
                    let mut query = form_urlencoded::Serializer::new(String::new());
                    query.append_pair("labelSelector", &format!("{key}={value}")).finish()
                });
                match self.api.get(&format!("{path}?{}", selector.unwrap_or_default())).await {
                    Ok(list) => Ok(Found::List(list.list_at(&["items"]).to_vec())),
                    Err(error) if error.code() == Some(404) => Ok(Found::Missing(error.words().to_owned())),
                    Err(error) if error.is_refusal() => Ok(Found::Refused(error.words().to_owned())),
                    Err(error) => Err(self.trouble(error)),
                }
            }
            // Read each time: whoever gives it out changes it.
            Read::Token(file) => {
                let read = tokio::fs::read_to_string(file).await;
                let problem = |error| format!("the token in {file} cannot be read: {error}");
                Ok(Found::Token(read.map(Secret::new).map_err(problem)))
            }
            Read::Send(request) => Ok(Found::Answer(match &self.web {
                Some(web) => {
                    let _place = self.errands.turn(&self.key.place.namespace).await;
                    web.fetch(request).await.map_err(|error| error.to_string())
                }
                None => Err("there is no way to the network".to_owned()),
            })),
        }
    }

    fn trouble(&self, error: Error) -> Trouble {
        let after = error.after().and_then(|after| SignedDuration::try_from(after).ok());
        let after = after.map(|after| self.clock.now().saturating_add(after).unwrap_or(Timestamp::MAX));
        let refused = |code: u16| Trouble::Refused(Refusal { code, message: error.words().to_owned(), after });
        match &error {
            Error::Refused { code, .. } => refused(*code),
            // What a server would say to it.
            Error::BadName(_) => refused(400),
            Error::NotLeading { .. } => Trouble::Over,
            Error::Unreachable { .. } => Trouble::Unreachable(error.to_string()),
        }
    }
}

/// Whether a field manager other than its maker changed the pod template of a ReplicaSet. `managedFields` that cannot be
/// read say nothing.
fn is_altered(set: &Value) -> bool {
    let managers = set.at(&["metadata", "managedFields"]).and_then(|wire| Managers::parse(wire).ok());
    managers.is_some_and(|managers| template::is_altered(&managers))
}

/// Writes a file that nobody else on this machine reads: templates of pods may hold what is nobody else's business.
async fn own_file(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = tokio::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path).await?;
    file.write_all(bytes).await?;
    file.flush().await
}

/// Takes out the last applied configurations: they repeat manifests, and more than once held what should not be in a file.
fn forget_applied(json: &mut serde_json::Value) {
    match json {
        serde_json::Value::Object(map) => {
            map.remove(annotation::LAST_APPLIED);
            map.values_mut().for_each(forget_applied);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(forget_applied),
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_) => {}
    }
}

/// Announces something about an object of this kind of ours. Events are for people: one that cannot be written is only
/// logged.
pub async fn announce_about(api: &Api, kind: &str, object: &Value, event: &Event, now: Timestamp) {
    let text = |key: &str| object.str_at(&["metadata", key]).unwrap_or_default();
    let (name, namespace, time) = (text("name"), text("namespace"), rfc3339(now));
    let api_version = match kind {
        constants::kind::GIT_SOURCE => constants::TIDEGATE_API_VERSION,
        "ConfigMap" => "v1",
        _ => constants::API_VERSION,
    };
    let body = value!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": event_name(name, now, api.next_event()), "namespace": namespace},
        "involvedObject": {
            "apiVersion": api_version,
            "kind": kind,
            "name": name,
            "namespace": namespace,
            "uid": text("uid"),
            "resourceVersion": text("resourceVersion"),
        },
        "type": if event.warning { "Warning" } else { "Normal" },
        "reason": event.reason,
        "message": event.message.as_str(),
        "source": {"component": EVENT_COMPONENT},
        "reportingComponent": EVENT_COMPONENT,
        "firstTimestamp": time.as_str(),
        "lastTimestamp": time.as_str(),
        "count": 1,
    });
    if let Err(error) = api.create(&resource::events(), namespace, &body).await {
        tracing::warn!(%error, reason = event.reason, "an event was not written");
    }
}

/// A name that no other event has: a client gives each `number` once, and `now` tells clients apart. An object
/// name that would make it too long is cut.
fn event_name(object: &str, now: Timestamp, number: u64) -> String {
    let unique = format!("{:x}.{number:x}", now.as_nanosecond());
    let room = names::SUBDOMAIN_LIMIT.saturating_sub(unique.len() + 1);
    let end = object.floor_char_boundary(room);
    // Each part between dots ends with a letter or a digit.
    format!("{}.{unique}", object[..end].trim_end_matches(['-', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_about_long_names_have_valid_names_of_their_own() {
        let now: Timestamp = "2026-01-01T00:00:00.123456789Z".parse().unwrap();
        assert_eq!(event_name("web", now, 10), "web.18867251f555cd15.a");
        let dashes = format!("w{}", "-".repeat(252));
        for object in ["web".to_owned(), "w".repeat(253), format!("{}.{}", "w".repeat(230), "x".repeat(22)), dashes] {
            let (one, other) = (event_name(&object, now, 1), event_name(&object, now, u64::MAX));
            for name in [&one, &other] {
                assert!(names::dns_subdomain(name).is_empty(), "{name}: {:?}", names::dns_subdomain(name));
            }
            assert_ne!(one, other);
        }
    }
}
