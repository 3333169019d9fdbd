//! Requests to an API server, as values in and values out.
//!
//! One small client for every kind: paths and bodies are made here, errors are classified once. Never retries by itself:
//! the queue does, and the client below obeys `Retry-After`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::{Method, Request, header};
use kube::Client;
use thiserror::Error;
use tokio::time::timeout;

use super::{lease::Gate, metrics::Shared, outage::Outages};
use crate::{
    api::constants::{CLI_FIELD_MANAGER, FIELD_MANAGER},
    engine::{
        key::{BadSegment, Place, Resource},
        metrics,
    },
    kubernetes::value::{Part, Value},
    value,
};

/// How long a request may take, but for a watch: as long as an API server itself gives it.
pub const REQUEST_LIMIT: Duration = Duration::from_secs(60);

/// What the server did not do, and why.
#[derive(Debug, Error)]
pub enum Error {
    /// It said no.
    #[error("{method} {path}: {message} ({code})")]
    Refused {
        /// What was asked.
        method: Method,
        /// Of what.
        path: String,
        /// The HTTP code.
        code: u16,
        /// Its words.
        message: String,
        /// When it wants to be asked again.
        after: Option<Duration>,
        /// Which fields it is about, each with what is wrong.
        causes: Vec<(String, String)>,
    },
    /// It was not asked: another daemon leads.
    #[error("{method} {path}: not sent, another daemon leads")]
    NotLeading {
        /// What was to be asked.
        method: Method,
        /// Of what.
        path: String,
    },
    /// It was not asked: a name cannot be part of a path.
    #[error(transparent)]
    BadName(#[from] BadSegment),
    /// It was not reached, or answered something else.
    #[error("{method} {path}: {cause}")]
    Unreachable {
        /// What was asked.
        method: Method,
        /// Of what.
        path: String,
        /// What went wrong.
        cause: String,
    },
}

impl Error {
    /// The HTTP code, if the server answered.
    pub fn code(&self) -> Option<u16> {
        match self {
            Error::Refused { code, .. } => Some(*code),
            Error::NotLeading { .. } | Error::BadName(_) | Error::Unreachable { .. } => None,
        }
    }

    /// When the server wants to be asked again.
    pub fn after(&self) -> Option<Duration> {
        match self {
            Error::Refused { after, .. } => *after,
            Error::NotLeading { .. } | Error::BadName(_) | Error::Unreachable { .. } => None,
        }
    }

    /// What the server or the client said, without the request it was about.
    pub fn words(&self) -> &str {
        match self {
            Error::Refused { message, .. } => message,
            Error::NotLeading { .. } => "another daemon leads",
            Error::BadName(_) => "a name in the request cannot be the name of an object or a namespace",
            Error::Unreachable { cause, .. } => cause,
        }
    }

    /// Whether the same request would be refused again as long as nothing else changes.
    pub fn is_refusal(&self) -> bool {
        match self {
            Error::Refused { code: 400 | 403 | 404 | 405 | 413 | 415 | 422, .. } | Error::BadName(_) => true,
            // So the server calls an object that does not fit its type.
            Error::Refused { code: 500, message, .. } => {
                message.starts_with("failed to create typed patch object")
                    || message.contains("unable to convert unstructured")
            }
            Error::Refused { .. } | Error::NotLeading { .. } | Error::Unreachable { .. } => false,
        }
    }

    /// Tells a client's errors apart.
    pub fn of(method: &Method, path: &str, error: kube::Error) -> Error {
        match error {
            kube::Error::Api(status) => Error::Refused {
                method: method.clone(),
                path: path.to_owned(),
                code: status.code,
                message: status.message.clone(),
                after: status
                    .details
                    .as_ref()
                    .map(|details| details.retry_after_seconds)
                    .filter(|seconds| *seconds > 0)
                    .map(|seconds| Duration::from_secs(seconds.into())),
                causes: status
                    .details
                    .iter()
                    .flat_map(|details| &details.causes)
                    .map(|cause| (cause.message.clone(), cause.field.clone()))
                    .collect(),
            },
            other => Error::Unreachable { method: method.clone(), path: path.to_owned(), cause: root(&other) },
        }
    }
}

/// What is at the bottom of an error: `Connection refused` says more than `client error`.
fn root(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => root(source),
        None => error.to_string(),
    }
}

/// What becomes of fields that others own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// They are left, and the apply is refused.
    Left,
    /// They are taken.
    Taken,
}

/// Whether something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run {
    /// It does.
    Wet,
    /// It is only asked what would.
    Dry,
}

/// A client, and the counters of what is asked through it.
#[derive(Clone)]
pub struct Api {
    client: Client,
    metrics: Shared,
    /// In whose name requests are made, if not in our own.
    user: Option<Arc<str>>,
    gate: Option<Gate>,
    /// How much is read of the answer to a write.
    answers: Part,
    /// How many events were numbered, by this client and its copies.
    events: Arc<AtomicU64>,
    /// Whose fields are those that are written.
    manager: &'static str,
    /// What is wrong with the cluster, as far as it was said.
    outages: Arc<Outages>,
    /// How long to wait for an answer, if not as long as the client below does.
    patience: Option<Duration>,
}

/// The path of a request that says whose write it is: `managedFields` would otherwise name nobody.
fn signed(method: &Method, path: &str, manager: &str) -> String {
    if ![Method::POST, Method::PUT, Method::PATCH].contains(method) {
        return path.to_owned();
    }
    let and = if path.contains('?') { '&' } else { '?' };
    format!("{path}{and}fieldManager={manager}")
}

impl Api {
    /// Asks through this client.
    pub fn new(client: Client) -> Api {
        let (metrics, events, outages) = (Shared::default(), Arc::default(), Arc::default());
        Api {
            client,
            metrics,
            user: None,
            gate: None,
            answers: Part::Whole,
            events,
            manager: FIELD_MANAGER,
            outages,
            patience: None,
        }
    }

    /// The same, for what a person asks for.
    pub fn by_hand(self) -> Api {
        Api { manager: CLI_FIELD_MANAGER, ..self }
    }

    /// The same, for who waits no longer than this for an answer.
    pub fn within(self, patience: Duration) -> Api {
        Api { patience: Some(patience), ..self }
    }

    /// The same client in somebody else's name, with that one's rights.
    pub fn acting_as(&self, user: String) -> Api {
        Api { user: Some(user.into()), ..self.clone() }
    }

    /// In whose name requests are made, if not in our own.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Whether whoever asks may do this with every object of a resource in a namespace; with every one there is if the
    /// namespace is empty.
    pub async fn may(&self, verb: &str, resource: &Resource, namespace: &str) -> Result<bool, Error> {
        let mut review = value!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"});
        let attributes = [("verb", verb), ("group", &*resource.group), ("version", &*resource.version)];
        for (key, word) in attributes.into_iter().chain([("resource", &*resource.plural), ("namespace", namespace)]) {
            review.set_at(&["spec", "resourceAttributes", key], word);
        }
        let reviews = Resource::new("authorization.k8s.io", "v1", "selfsubjectaccessreviews");
        let body = Some(("application/json", &review));
        let answer = self.exchange(Method::POST, &reviews.path(None)?, body, Part::Whole).await?;
        Ok(answer.at(&["status", "allowed"]).and_then(Value::as_bool) == Some(true))
    }

    /// The same, for writes of whoever leads only: others are refused before they are sent.
    pub fn behind(self, gate: Gate) -> Api {
        Api { gate: Some(gate), ..self }
    }

    /// The same, for who wants to know of the answer to a write only which object it was and which version it has now.
    pub fn briefly(self) -> Api {
        Api { answers: Part::Metadata, ..self }
    }

    /// What holds its writes back, if anything does.
    pub fn gate(&self) -> Option<&Gate> {
        self.gate.as_ref()
    }

    /// What was counted.
    pub fn metrics(&self) -> &Shared {
        &self.metrics
    }

    /// What is wrong with the cluster, as far as it was said by this client or its copies.
    pub fn outages(&self) -> &Outages {
        &self.outages
    }

    /// A number that this client and its copies give to no other event.
    pub fn next_event(&self) -> u64 {
        self.events.fetch_add(1, Ordering::Relaxed)
    }

    /// The client below.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Reads a path.
    pub async fn get(&self, path: &str) -> Result<Value, Error> {
        self.get_part(path, Part::Whole).await
    }

    /// Reads this part of what is at a path.
    pub async fn get_part(&self, path: &str, part: Part) -> Result<Value, Error> {
        self.exchange(Method::GET, path, None, part).await
    }

    /// Reads an object.
    pub async fn object(&self, resource: &Resource, place: &Place) -> Result<Value, Error> {
        self.get(&resource.object_path(place)?).await
    }

    /// Creates an object as a person means it: a field that does not exist is an error. Without a namespace if it belongs
    /// to none.
    pub async fn create_strictly(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        body: &Value,
    ) -> Result<Value, Error> {
        let path = format!("{}?fieldValidation=Strict", resource.path(namespace)?);
        self.send(Method::POST, &path, Some(("application/json", body))).await
    }

    /// Changes an object by a JSON patch.
    pub async fn patch_json(&self, resource: &Resource, place: &Place, patch: &Value) -> Result<Value, Error> {
        self.send(Method::PATCH, &resource.object_path(place)?, Some(("application/json-patch+json", patch))).await
    }

    /// Applies an object, server-side, in the name of git. A dry run changes nothing.
    pub async fn apply(
        &self,
        resource: &Resource,
        place: &Place,
        body: &Value,
        force: Force,
        run: Run,
    ) -> Result<Value, Error> {
        let mut path = resource.object_path(place)?;
        if force == Force::Taken {
            path += "?force=true";
        }
        if run == Run::Dry {
            path += if force == Force::Taken { "&dryRun=All" } else { "?dryRun=All" };
        }
        self.send(Method::PATCH, &path, Some(("application/apply-patch+yaml", body))).await
    }

    /// Creates an object.
    pub async fn create(&self, resource: &Resource, namespace: &str, body: &Value) -> Result<Value, Error> {
        self.send(Method::POST, &resource.path(Some(namespace))?, Some(("application/json", body))).await
    }

    /// Changes an object, or one of its subresources, by a merge patch.
    pub async fn patch(
        &self,
        resource: &Resource,
        place: &Place,
        subresource: &str,
        patch: &Value,
    ) -> Result<Value, Error> {
        let mut path = resource.object_path(place)?;
        if !subresource.is_empty() {
            path = format!("{path}/{subresource}");
        }
        self.send(Method::PATCH, &path, Some(("application/merge-patch+json", patch))).await
    }

    /// Replaces an object, on condition that it has the version that the body says.
    pub async fn replace(&self, resource: &Resource, place: &Place, body: &Value) -> Result<Value, Error> {
        self.send(Method::PUT, &resource.object_path(place)?, Some(("application/json", body))).await
    }

    /// Deletes an object; `options` are its `DeleteOptions`.
    pub async fn delete(&self, resource: &Resource, place: &Place, options: &Value) -> Result<Value, Error> {
        self.send(Method::DELETE, &resource.object_path(place)?, Some(("application/json", options))).await
    }

    /// Evicts a pod.
    pub async fn evict(&self, place: &Place, eviction: &Value) -> Result<Value, Error> {
        let path = format!("{}/eviction", Resource::new("", "v1", "pods").object_path(place)?);
        self.send(Method::POST, &path, Some(("application/json", eviction))).await
    }

    /// Counts a request; `error` is what became of it if it failed.
    pub fn count(&self, method: &Method, path: &str, error: Option<&Error>) {
        let code = match error {
            Some(error) => error.code().unwrap_or_default(),
            None if *method == Method::POST => 201,
            None => 200,
        };
        self.metrics.with(|metrics| metrics.asked(metrics::Request::of(method.as_str(), path, code)));
    }

    async fn send(&self, method: Method, path: &str, body: Option<(&str, &Value)>) -> Result<Value, Error> {
        self.exchange(method, path, body, self.answers).await
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, &Value)>,
        part: Part,
    ) -> Result<Value, Error> {
        let unreachable = |cause: String| Error::Unreachable { method: method.clone(), path: path.to_owned(), cause };
        let mut request = Request::builder().method(method.clone()).uri(signed(&method, path, self.manager));
        if let Some((kind, _)) = body {
            request = request.header(header::CONTENT_TYPE, kind);
        }
        if let Some(user) = &self.user {
            request = request.header("Impersonate-User", user.as_ref());
        }
        if method != Method::GET && self.gate.as_ref().is_some_and(|gate| !gate.is_open()) {
            return Err(Error::NotLeading { method, path: path.to_owned() });
        }
        let bytes = body.map(|(_, body)| body.to_json().into_bytes()).unwrap_or_default();
        let request = request.body(bytes).map_err(|error| unreachable(error.to_string()))?;
        let limit = self.patience.unwrap_or(REQUEST_LIMIT);
        let answered = match timeout(limit, self.client.request_text(request)).await {
            Ok(answered) => answered.map_err(|error| Error::of(&method, path, error)),
            Err(_) => Err(unreachable(format!("no answer within {limit:?}"))),
        };
        self.count(&method, path, answered.as_ref().err());
        let text = answered?;
        Value::part_of_json(text.as_bytes(), part).map_err(|error| unreachable(error.to_string()))
    }
}
