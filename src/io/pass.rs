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
        key::{ObjectKey, Place},
        write::{Verb, Write},
    },
    kubernetes::{clock::rfc3339, names, value::Value},
    rollout::{Action, Event, Verdict, View, refused, services},
    value,
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
            Err(error) if error.code().is_some_and(|code| write.is_impossible(code)) => {
                tell_impossible(api, view, action, &error, written).await?;
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

/// Says in status, and as an event, that the server does not take what is new.
async fn tell_impossible(
    api: &Api,
    view: &View,
    action: &Action,
    error: &Error,
    written: &mut Vec<Written>,
) -> Result<(), Error> {
    let verdict = refused(view, action, error.words());
    if let Some(write) = Write::status(view, &verdict, None) {
        written.extend(send(api, &write).await?);
    }
    for (number, event) in verdict.events.iter().enumerate() {
        announce(api, &view.object, event, view.now, number).await;
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

/// Gives a Service back to its owner if no Rollout of the cluster leads it; one of another instance may.
pub async fn release(api: &Api, service: &Value, written: &mut Vec<Written>) -> Result<(), Error> {
    let place = place_of(service);
    let all = resource::rollouts().path(Some(&place.namespace));
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
    let Some(patch) = services::release(service, &rollouts) else { return Ok(()) };
    let key = ObjectKey { resource: resource::services(), place };
    match api.patch(&key.resource, &key.place, "", &patch).await {
        Ok(released) => {
            tracing::info!(service = %key.place, "given back to its owner: no rollout leads it any more");
            written.push(Written::Version(key, version_of(&released)));
            Ok(())
        }
        Err(error) if error.code() == Some(404) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Announces something about a Rollout as an event. Events are for people: one that cannot be written is only logged.
pub async fn announce(api: &Api, rollout: &Value, event: &Event, now: Timestamp, number: usize) {
    let text = |key: &str| rollout.str_at(&["metadata", key]).unwrap_or_default();
    let r#type = if event.warning { "Warning" } else { "Normal" };
    let place = Place::new(text("namespace"), text("name"));
    api.metrics().with(|metrics| metrics.announced(place, r#type, event.reason));
    announce_about(api, constants::kind::ROLLOUT, rollout, event, now, number).await;
}

/// Announces something about an object of this kind of ours.
pub async fn announce_about(api: &Api, kind: &str, object: &Value, event: &Event, now: Timestamp, number: usize) {
    let text = |key: &str| object.str_at(&["metadata", key]).unwrap_or_default();
    let (name, namespace, time) = (text("name"), text("namespace"), rfc3339(now));
    let body = value!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": format!("{name}.{:x}.{number}", now.as_nanosecond()), "namespace": namespace},
        "involvedObject": {
            "apiVersion": constants::API_VERSION,
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
