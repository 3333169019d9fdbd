//! What those in whose name the daemon writes may do: a layer in front of the cluster that refuses as RBAC does.

use std::{
    collections::BTreeSet,
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use tidegate::embedded::http::service::Front;
use tower::Service;

/// What is not allowed, as `method resource` by name; whoever asks in nobody's name may do everything.
#[derive(Clone, Default)]
pub struct Rights(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    denied: BTreeSet<(String, String)>,
    /// In whose names something was written.
    users: BTreeSet<String>,
}

impl Rights {
    /// From now on nobody in whose name is asked may do this.
    pub fn deny(&self, method: &str, resource: &str) {
        self.0.lock().unwrap().denied.insert((method.to_owned(), resource.to_owned()));
    }

    pub fn allow_all(&self) {
        self.0.lock().unwrap().denied.clear();
    }

    pub fn users(&self) -> Vec<String> {
        self.0.lock().unwrap().users.iter().cloned().collect()
    }

    pub fn over(self, front: Front) -> Guarded {
        Guarded { rights: self, front }
    }

    /// The refusal, if there is one.
    fn refusal(&self, method: &str, path: &str, user: Option<&str>) -> Option<String> {
        let mut state = self.0.lock().unwrap();
        let user = user?;
        state.users.insert(user.to_owned());
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let at = parts.iter().position(|part| *part == "namespaces").map_or(3, |at| at + 2);
        let resource = (*parts.get(at)?).to_owned();
        let denied = state.denied.contains(&(method.to_owned(), resource.clone()));
        let verb = method.to_lowercase();
        denied.then(|| {
            format!(
                r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"{resource} is forbidden: User \"{user}\" cannot {verb} resource \"{resource}\" in API group \"\" in the namespace \"default\"","reason":"Forbidden","code":403}}"#
            )
        })
    }
}

#[derive(Clone)]
pub struct Guarded {
    rights: Rights,
    front: Front,
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
        match self.rights.refusal(request.method().as_str(), request.uri().path(), user) {
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
