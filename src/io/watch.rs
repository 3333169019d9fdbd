//! Follows the objects of a resource: lists them page by page, then hears of every change.
//!
//! Ends only when nobody listens. A broken stream is taken up where it broke; a version that the server has forgotten (410)
//! means a new list. Objects are decoded straight into [`Value`]s.

use std::time::Duration;

use futures::AsyncBufReadExt;
use http::{Method, Request};
use tokio::{
    sync::mpsc::Sender,
    time::{Instant, timeout},
};

use super::api::{self, Api, Error};
use crate::{
    engine::{cache::News, key::Resource, resource},
    kubernetes::value::{Part, Value},
};

/// How many objects a page of a list has.
const PAGE: usize = 500;
/// How long a stream lasts before it is taken up anew.
const STREAM: Duration = Duration::from_secs(290);
/// How long a stream may be silent: a little longer than it lasts.
const SILENCE: Duration = Duration::from_secs(300);
/// The first wait after an error; it doubles up to the longest.
const FIRST: Duration = Duration::from_millis(100);
/// The longest wait after an error.
const LONGEST: Duration = Duration::from_secs(10);

/// Which objects to follow.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scope {
    /// Their resource.
    pub resource: Resource,
    /// Their namespace; all if not given.
    pub namespace: Option<String>,
    /// A label selector; all if empty.
    pub selector: String,
    /// A field selector; all if empty.
    pub fields: String,
    /// How much of each.
    pub part: Part,
}

impl Scope {
    /// All objects of a resource, whole.
    pub fn of(resource: &Resource) -> Scope {
        Scope {
            resource: resource.clone(),
            namespace: None,
            selector: String::new(),
            fields: String::new(),
            part: Part::Whole,
        }
    }
}

/// Follows until the receiver is gone; what is delivered names the resource.
pub async fn follow(api: Api, scope: Scope, news: Sender<(Resource, News)>) {
    let resource = scope.resource.clone();
    follow_as(api, scope, resource, news).await;
}

/// Follows until the receiver is gone; what is delivered carries this tag.
pub async fn follow_as<T: Clone>(api: Api, scope: Scope, tag: T, news: Sender<(T, News)>) {
    let mut wait = FIRST;
    let mut version = None;
    let mut is_served = true;
    while !news.is_closed() {
        let outcome = match &mut version {
            None => announced_list(&api, &scope, &tag, &news).await.map(|newest| version = Some(newest)),
            Some(version) => stream(&api, &scope, version, &tag, &news).await,
        };
        match outcome {
            Ok(()) => {
                wait = FIRST;
                is_served = true;
            }
            Err(error) => {
                // What the server has forgotten must be listed anew; so must what was never listed.
                if error.code() == Some(410) {
                    api.metrics().with(|metrics| metrics.watched_anew(&scope.resource.plural));
                    version = None;
                    continue;
                }
                // Its definition is not installed, or no longer, or we may not see it: who needs it goes on without, and it
                // may come at any time.
                let is_forbidden = error.code() == Some(403) && resource::is_optional(&scope.resource);
                if is_forbidden || error.code() == Some(404) {
                    version = None;
                    if std::mem::take(&mut is_served) {
                        let _ = news.send((tag.clone(), News::Unserved)).await;
                    }
                }
                api.metrics().with(|metrics| metrics.watched_anew(&scope.resource.plural));
                let pause = error.after().unwrap_or(wait);
                match api.outages().failed(&scope.resource, &error) {
                    Some(sentence) => tracing::warn!("{sentence}"),
                    None => tracing::debug!(resource = %scope.resource, %error, ?pause, "cannot follow; trying again"),
                }
                tokio::time::sleep(pause).await;
                wait = (wait * 2).min(LONGEST);
            }
        }
    }
}

fn path(scope: &Scope, query: &[(&str, String)]) -> Result<String, Error> {
    let mut serializer = form_urlencoded::Serializer::new(String::new());
    query.iter().filter(|(_, value)| !value.is_empty()).for_each(|(key, value)| {
        serializer.append_pair(key, value);
    });
    for (key, selector) in [("labelSelector", &scope.selector), ("fieldSelector", &scope.fields)] {
        if !selector.is_empty() {
            serializer.append_pair(key, selector);
        }
    }
    Ok(format!("{}?{}", scope.resource.path(scope.namespace.as_deref())?, serializer.finish()))
}

/// Says that an outage is over, if this answer ends one.
fn answered(api: &Api, scope: &Scope, asked: Instant) {
    if let Some(sentence) = api.outages().answered(&scope.resource, asked) {
        tracing::warn!("{sentence}");
    }
}

/// Lists everything and says so; answers the version it is from.
async fn announced_list<T: Clone>(api: &Api, scope: &Scope, tag: &T, news: &Sender<(T, News)>) -> Result<u64, Error> {
    let asked = Instant::now();
    let (objects, version) = list(api, scope).await?;
    answered(api, scope, asked);
    // The receiver may be gone; then `follow` ends.
    let _ = news.send((tag.clone(), News::List(objects, version))).await;
    Ok(version)
}

/// Everything there is, page by page, and the version it is from.
pub async fn list(api: &Api, scope: &Scope) -> Result<(Vec<Value>, u64), Error> {
    let (mut objects, mut next, mut version) = (Vec::new(), String::new(), 0);
    loop {
        let (items, more, newest) = page(api, scope, &next).await?;
        objects.extend(items);
        version = newest.unwrap_or(version);
        next = match more {
            Some(more) => more,
            None => return Ok((objects, version)),
        };
    }
}

/// One page of what there is, where the next one begins if there is one, and the version it is from.
pub async fn page(api: &Api, scope: &Scope, from: &str) -> Result<(Vec<Value>, Option<String>, Option<u64>), Error> {
    let page = path(scope, &[("limit", PAGE.to_string()), ("continue", from.to_owned())])?;
    let page = api.get_part(&page, scope.part).await?;
    let text = |key: &str| page.str_at(&["metadata", key]).unwrap_or_default();
    let more = Some(text("continue").to_owned()).filter(|more| !more.is_empty());
    Ok((page.list_at(&["items"]).to_vec(), more, text("resourceVersion").parse().ok()))
}

/// Hears of changes after a version, which is the last one heard of when the stream ends, also if it breaks: from an earlier
/// one on the server would tell again what is past, and old objects would come back.
async fn stream<T: Clone>(
    api: &Api,
    scope: &Scope,
    version: &mut u64,
    tag: &T,
    news: &Sender<(T, News)>,
) -> Result<(), Error> {
    let seconds = STREAM.as_secs().to_string();
    let query = [
        ("watch", "true".to_owned()),
        ("allowWatchBookmarks", "true".to_owned()),
        ("resourceVersion", version.to_string()),
        ("timeoutSeconds", seconds),
    ];
    let path = path(scope, &query)?;
    let broken = |cause: String| Error::Unreachable { method: Method::GET, path: path.clone(), cause };
    let request = Request::get(&path).body(Vec::new()).map_err(|error| broken(error.to_string()))?;
    let late = |limit: Duration| broken(format!("nothing came within {limit:?}"));
    let asked = Instant::now();
    let opened = match timeout(api::REQUEST_LIMIT, api.client().request_stream(request)).await {
        Ok(opened) => opened.map_err(|error| Error::of(&Method::GET, &path, error)),
        Err(_) => Err(late(api::REQUEST_LIMIT)),
    };
    api.count(&Method::GET, &path, opened.as_ref().err());
    let mut lines = std::pin::pin!(opened?);
    answered(api, scope, asked);
    let mut line = Vec::new();
    loop {
        // The server ends the stream in time; who hears nothing for longer has lost the connection.
        let read = timeout(SILENCE, lines.read_until(b'\n', &mut line)).await.map_err(|_| late(SILENCE))?;
        if read.map_err(|error| broken(error.to_string()))? == 0 {
            break;
        }
        let event = Value::part_of_json(&line, scope.part).map_err(|error| broken(error.to_string()))?;
        line.clear();
        let object = event.get("object").cloned().unwrap_or_default();
        let at = object.str_at(&["metadata", "resourceVersion"]).and_then(|text| text.parse().ok());
        let heard = match event.str_at(&["type"]).unwrap_or_default() {
            "ADDED" | "MODIFIED" => News::Object(object),
            "DELETED" => News::Gone(object),
            "BOOKMARK" => {
                *version = at.unwrap_or(*version);
                continue;
            }
            _ => {
                let code = object.int_at(&["code"]).and_then(|code| u16::try_from(code).ok()).unwrap_or_default();
                let message = object.str_at(&["message"]).unwrap_or_default().to_owned();
                return Err(Error::Refused {
                    method: Method::GET,
                    path,
                    code,
                    message,
                    after: None,
                    causes: Vec::new(),
                });
            }
        };
        *version = at.unwrap_or(*version);
        if news.send((tag.clone(), heard)).await.is_err() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    };

    use bytes::Bytes;
    use http::Response;
    use http_body_util::{Either, Full, StreamBody};
    use hyper::body::Frame;
    use kube::{Client, client::Body};
    use tokio::sync::mpsc;

    use super::*;
    use crate::engine::resource;

    #[tokio::test(start_paused = true)]
    async fn s2_a_stream_that_breaks_is_taken_up_where_it_broke() {
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = asked.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let pair = query.split('&').find(|pair| pair.starts_with("resourceVersion=")).map(str::to_owned);
            let is_watch = query.contains("watch=true");
            noted.lock().unwrap().extend(pair);
            async move {
                let list = r#"{"metadata": {"resourceVersion": "5"}, "items": []}"#;
                let event = r#"{"type": "MODIFIED", "object": {"metadata": {"name": "web", "resourceVersion": "9"}}}"#;
                let answer = if is_watch { format!("{event}\n") } else { list.to_owned() };
                let mut frames = vec![Ok(Frame::data(hyper::body::Bytes::from(answer)))];
                if is_watch {
                    frames.push(Err(std::io::Error::other("cut off")));
                }
                let body = StreamBody::new(futures::stream::iter(frames));
                Ok::<_, std::convert::Infallible>(Response::new(body))
            }
        });
        let (sender, mut heard) = tokio::sync::mpsc::channel(1);
        let api = Api::new(kube::Client::new(service, "default"));
        let scope = Scope::of(&resource::rollouts());
        let task = tokio::spawn(follow(api, scope, sender));
        for _ in 0..4 {
            heard.recv().await.unwrap();
        }
        drop(heard);
        task.abort();
        let asked = asked.lock().unwrap();
        assert_eq!(asked[..3], ["resourceVersion=5", "resourceVersion=9", "resourceVersion=9"]);
    }

    /// A list is answered, and then nothing comes any more, as from a connection that is half open.
    #[tokio::test(start_paused = true)]
    async fn a_watch_that_falls_silent_is_begun_anew() {
        let opened = Arc::new(AtomicUsize::new(0));
        let count = opened.clone();
        let server = tower::service_fn(move |request: Request<Body>| {
            let count = count.clone();
            async move {
                let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
                let body = if is_watch {
                    count.fetch_add(1, Ordering::Relaxed);
                    let silence = futures::stream::pending::<Result<Frame<Bytes>, std::convert::Infallible>>();
                    Either::Left(StreamBody::new(silence))
                } else {
                    let list = r#"{"kind": "List", "metadata": {"resourceVersion": "7"}, "items": []}"#;
                    Either::Right(Full::new(Bytes::from(list)))
                };
                Ok::<_, std::convert::Infallible>(http::Response::new(body))
            }
        });
        let api = Api::new(Client::new(server, "default"));
        let (sender, mut receiver) = mpsc::channel(16);
        tokio::spawn(follow(api, Scope::of(&resource::pods()), sender));
        assert!(matches!(receiver.recv().await, Some((_, News::List(_, 7)))));
        tokio::time::sleep(Duration::from_secs(660)).await;
        assert!(opened.load(Ordering::Relaxed) >= 3, "{opened:?}");
    }

    /// A request that is never answered ends by itself.
    #[tokio::test(start_paused = true)]
    async fn a_request_without_an_answer_ends() {
        let server = tower::service_fn(|_: Request<Body>| {
            std::future::pending::<Result<http::Response<Full<Bytes>>, std::convert::Infallible>>()
        });
        let api = Api::new(Client::new(server, "default"));
        let error = api.get("/api/v1/pods").await.unwrap_err();
        assert!(error.to_string().contains("no answer within 60s"), "{error}");
    }
}
