//! What those in whose name the daemon writes may do: a layer in front of the cluster that refuses as RBAC does.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use tidegate::{embedded::http::service::Front, kubernetes::value::Value};
use tower::Service;

use crate::line::Whose;

/// What is not allowed, as `method resource` by name; whoever asks in nobody's name may do everything.
#[derive(Clone, Default)]
pub struct Rights(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    denied: BTreeSet<(String, String)>,
    /// The same for one user.
    denied_to: BTreeSet<(String, String, String)>,
    /// In whose name whatever is asked meets a bug of the client.
    breaks: BTreeSet<String>,
    /// Whether nobody may list in somebody's name.
    no_lists: bool,
    /// How often each resource was read in somebody's name.
    gets: BTreeMap<String, usize>,
    /// What was read in nobody's name, as `resource` or `resource/name`, but for what is watched.
    own: BTreeSet<String>,
    /// In whose names something was written.
    users: BTreeSet<String>,
    /// The paths that were watched, each time anew.
    watched: Vec<String>,
    /// Whether only this namespace may be looked into.
    only: Option<String>,
    /// Requests for Secrets that name none: lists and watches.
    greedy: Vec<String>,
    /// How often one was read.
    secrets: usize,
}

impl Rights {
    /// From now on nobody in whose name is asked may do this.
    pub fn deny(&self, method: &str, resource: &str) {
        self.0.lock().unwrap().denied.insert((method.to_owned(), resource.to_owned()));
    }

    /// From now on this account of the namespace `default` may not do this.
    pub fn deny_to(&self, account: &str, method: &str, resource: &str) {
        let user = format!("system:serviceaccount:default:{account}");
        self.0.lock().unwrap().denied_to.insert((user, method.to_owned(), resource.to_owned()));
    }

    /// Whoever asks in the name of this account of the namespace `default` panics, or does not any more.
    pub fn break_for(&self, account: &str, breaks: bool) {
        let user = format!("system:serviceaccount:default:{account}");
        let mut state = self.0.lock().unwrap();
        if breaks {
            state.breaks.insert(user)
        } else {
            state.breaks.remove(&user)
        };
    }

    /// From now on nobody in whose name is asked may list anything.
    pub fn deny_lists(&self) {
        self.0.lock().unwrap().no_lists = true;
    }

    pub fn allow_all(&self) {
        let mut state = self.0.lock().unwrap();
        state.denied.clear();
        state.denied_to.clear();
    }

    /// How often a resource was read in somebody's name.
    pub fn reads(&self, resource: &str) -> usize {
        self.0.lock().unwrap().gets.get(resource).copied().unwrap_or_default()
    }

    /// What was read in the daemon's own name, but for what is watched.
    pub fn read_as_daemon(&self) -> Vec<String> {
        self.0.lock().unwrap().own.iter().cloned().collect()
    }

    /// Whoever asks may see this namespace, what kinds there are, and nothing else.
    pub fn confine(&self, namespace: &str) {
        self.0.lock().unwrap().only = Some(namespace.to_owned());
    }

    /// How often a resource was watched so far.
    pub fn watches(&self, resource: &str) -> usize {
        self.0.lock().unwrap().watched.iter().filter(|path| path.ends_with(resource)).count()
    }

    /// Requests for Secrets: how many name one, and those that do not.
    pub fn secrets(&self) -> (usize, Vec<String>) {
        let state = self.0.lock().unwrap();
        (state.secrets, state.greedy.clone())
    }

    pub fn users(&self) -> Vec<String> {
        self.0.lock().unwrap().users.iter().cloned().collect()
    }

    pub fn over(self, front: Front, whose: Whose) -> Guarded {
        Guarded { rights: self, front, whose }
    }

    /// The refusal, if there is one.
    fn refusal(&self, method: &str, uri: &http::Uri, user: Option<&str>, whose: Whose) -> Option<String> {
        let path = uri.path();
        let mut state = self.0.lock().unwrap();
        if uri.query().is_some_and(|query| query.contains("watch=")) {
            state.watched.push(path.to_owned());
        }
        let is_create = method == "POST";
        match path.trim_matches('/').split('/').collect::<Vec<_>>().as_slice() {
            ["api", "v1", "namespaces", _, "secrets", _]
                if method == "GET" && !uri.query().unwrap_or_default().contains("watch") =>
            {
                state.secrets += 1;
            }
            [.., "secrets"] if !is_create => state.greedy.push(uri.to_string()),
            _ => {}
        }
        if let Some(only) = &state.only {
            let depth = path.trim_matches('/').split('/').count();
            let kinds =
                depth <= 3 && path.starts_with("/apis") || depth <= 2 || path.contains("customresourcedefinitions/");
            if !kinds && !path.contains(&format!("/namespaces/{only}/")) {
                let words = format!("{path} is forbidden: nothing outside of {only}");
                return Some(format!(
                    r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"{words}","reason":"Forbidden","code":403}}"#
                ));
            }
        }
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let first = if parts.first() == Some(&"api") { 2 } else { 3 };
        let at = if parts.get(first) == Some(&"namespaces") && parts.len() > first + 2 { first + 2 } else { first };
        let Some(user) = user else {
            let is_followed =
                uri.query().is_some_and(|query| query.contains("labelSelector=") || query.contains("watch="));
            if whose == Whose::Sources && method == "GET" && !is_followed && parts.len() > at {
                state.own.insert(parts[at..].join("/"));
            }
            return None;
        };
        state.users.insert(user.to_owned());
        if method == "GET" {
            *state.gets.entry(parts[at..at + 1].concat()).or_default() += 1;
        }
        let resource = (*parts.get(at)?).to_owned();
        let is_list = method == "GET" && parts.len() == at + 1;
        let denied = state.denies(user, method, &resource) || is_list && state.no_lists;
        let verb = method.to_lowercase();
        denied.then(|| {
            format!(
                r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"{resource} is forbidden: User \"{user}\" cannot {verb} resource \"{resource}\" in API group \"\" in the namespace \"default\"","reason":"Forbidden","code":403}}"#
            )
        })
    }
}

impl State {
    fn denies(&self, user: &str, method: &str, resource: &str) -> bool {
        let (method, resource) = (method.to_owned(), resource.to_owned());
        self.denied.contains(&(method.clone(), resource.clone()))
            || self.denied_to.contains(&(user.to_owned(), method, resource))
    }
}

/// The answer to a user who asks what that user may do.
async fn reviewed<B: http_body::Body>(rights: Rights, user: String, body: B) -> Bytes {
    let Ok(body) = body.collect().await.map(|body| body.to_bytes()) else { panic!("a review has a body") };
    let mut review = Value::from_json(&body).unwrap();
    let attribute = |key: &str| review.str_at(&["spec", "resourceAttributes", key]).unwrap().to_owned();
    let (method, resource) = (attribute("verb").to_uppercase(), attribute("resource"));
    let allowed = !rights.0.lock().unwrap().denies(&user, &method, &resource);
    review.set_at(&["status", "allowed"], allowed);
    review.to_json().into()
}

#[derive(Clone)]
pub struct Guarded {
    rights: Rights,
    front: Front,
    whose: Whose,
}

impl<B> Service<Request<B>> for Guarded
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
{
    type Response = Response<UnsyncBoxBody<Bytes, Infallible>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let user = request.headers().get("impersonate-user").and_then(|user| user.to_str().ok());
        if user.is_some_and(|user| self.rights.0.lock().unwrap().breaks.contains(user)) {
            // In the task of whoever waits for the answer.
            return Box::pin(async { panic!("a bug") });
        }
        if let Some(user) = user
            && request.uri().path().ends_with("/selfsubjectaccessreviews")
        {
            let (rights, user) = (self.rights.clone(), user.to_owned());
            let response = Response::builder().status(201).header("content-type", "application/json");
            return Box::pin(async move {
                let answer = reviewed(rights, user, request.into_body()).await;
                Ok(response.body(Full::new(answer).boxed_unsync()).unwrap())
            });
        }
        match self.rights.refusal(request.method().as_str(), request.uri(), user, self.whose) {
            Some(text) => {
                let body = Full::new(Bytes::from(text)).boxed_unsync();
                let response = Response::builder().status(403).header("content-type", "application/json");
                Box::pin(async move { Ok(response.body(body).unwrap()) })
            }
            None => {
                let answer = self.front.call(request);
                Box::pin(async move { Ok(answer.await?.map(BodyExt::boxed_unsync)) })
            }
        }
    }
}
