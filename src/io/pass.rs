//! One pass about a Rollout on a cluster: act, record, announce, in this order.
//!
//! What was seen and decided is handed in; here it is only carried out. Every acknowledged write is told, so that the next
//! pass waits until it is seen. An error ends the pass: the next one starts from what is.

use jiff::Timestamp;

use super::api::{Api, Error};
use crate::{
    api::{
        self, Rollout,
        constants::{self, EVENT_COMPONENT},
    },
    engine::{
        cache::{place_of, version_of},
        key::{ObjectKey, Place, Resource},
        write::{Verb, Write},
    },
    kubernetes::{clock::rfc3339, names, value::Value},
    rollout::{Action, Event, Verdict, View, refused, services},
    route, value,
};

pub use crate::engine::{observe::resource, write::Written};

/// Carries a verdict out. What was written is added to `written` as it is acknowledged, also if a later write fails.
pub async fn carry_out(
    api: &Api,
    view: &View,
    verdict: &Verdict,
    actions: &[Action],
    written: &mut Vec<Written>,
) -> Result<(), Error> {
    let mut own = None;
    for action in actions {
        let write = Write::of(view, action);
        let done = match send(api, &write).await {
            Err(error) if error.code().is_some_and(|code| write.is_refused(code)) => {
                tell_refused(api, view, action, &error, written).await?;
                return Err(error);
            }
            done => done?,
        };
        own = done.as_ref().and_then(Written::rollout_version).or(own);
        written.extend(done);
    }
    if let Some(write) = Write::status(view, verdict, own) {
        written.extend(send(api, &write).await?);
        if let Some(status) = &verdict.status {
            api.metrics().with(|metrics| metrics.recorded(&view.rollout.status, status, view.now));
        }
    }
    Ok(())
}

/// Says in status, and as an event, that the server refuses to create an object.
async fn tell_refused(
    api: &Api,
    view: &View,
    action: &Action,
    error: &Error,
    written: &mut Vec<Written>,
) -> Result<(), Error> {
    let Some(verdict) = refused(view, action, error.words()) else { return Ok(()) };
    if let Some(write) = Write::status(view, &verdict, None) {
        written.extend(send(api, &write).await?);
    }
    for event in &verdict.events {
        announce(api, &view.object, event, view.now).await;
    }
    Ok(())
}

/// Sends a write; answers what is to be seen before the next decision.
pub async fn send(api: &Api, write: &Write) -> Result<Option<Written>, Error> {
    let ObjectKey { resource, place } = &write.object;
    let answer = match &write.verb {
        Verb::Create => api.create(resource, &place.namespace, &write.body).await,
        Verb::Patch => api.patch(resource, place, write.subresource, &write.body).await,
        Verb::Delete(..) => api.delete(resource, place, &write.body).await.map(|_| Value::Null),
        Verb::Evict(..) => api.evict(place, &write.body).await.map(|_| Value::Null),
    };
    match answer {
        Ok(answer) => Ok(write.done(&answer)),
        Err(error) if error.code().is_some_and(|code| write.tolerates(code)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Gives a Service or a DestinationRule back to its owner if no Rollout of the cluster leads it; one of another instance may.
pub async fn release(api: &Api, resource: Resource, service: &Value, written: &mut Vec<Written>) -> Result<(), Error> {
    let place = place_of(service);
    let all = resource::rollouts().path(Some(&place.namespace))?;
    let rollouts = match services::leader(service) {
        // Nobody can be called so.
        Some(name) if !names::dns_subdomain(name).is_empty() => Vec::new(),
        Some(name) => match api.get(&format!("{all}/{name}")).await {
            Ok(rollout) => vec![rollout],
            Err(error) if error.code() == Some(404) => Vec::new(),
            Err(error) => return Err(error),
        },
        None => api.get(&all).await?.list_at(&["items"]).to_vec(),
    };
    let rollouts: Vec<Rollout> = rollouts.iter().map(|rollout| api::read(rollout).object).collect();
    let is_service = resource == resource::services();
    let patch = if is_service { services::release(service, &rollouts) } else { route::release(service, &rollouts) };
    let Some(patch) = patch else { return Ok(()) };
    let key = ObjectKey { resource, place };
    match api.patch(&key.resource, &key.place, "", &patch).await {
        Ok(released) => {
            tracing::info!(object = %key, "given back to its owner: no rollout leads it any more");
            written.push(Written::Version(key, version_of(&released)));
            Ok(())
        }
        Err(error) if error.code() == Some(404) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Announces something about a Rollout as an event. Events are for people: one that cannot be written is only logged.
pub async fn announce(api: &Api, rollout: &Value, event: &Event, now: Timestamp) {
    let text = |key: &str| rollout.str_at(&["metadata", key]).unwrap_or_default();
    let r#type = if event.warning { "Warning" } else { "Normal" };
    let place = Place::new(text("namespace"), text("name"));
    api.metrics().with(|metrics| metrics.announced(place, r#type, event.reason));
    announce_about(api, constants::kind::ROLLOUT, rollout, event, now).await;
}

/// Announces something about an object of this kind of ours.
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
