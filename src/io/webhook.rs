//! The door for git hosts: a path for the webhooks of each source that has a secret, one for the plans that its workflows ask
//! for, and nothing else.
//!
//! What a stranger can cost is bounded before anything is read: requests a second, bytes, time, connections. What is heard
//! becomes a hint for the one source whose path and secret it came by. Never fetches, never answers with anything that
//! tells a guess from a miss but the code.

use std::{
    collections::HashMap,
    convert::Infallible,
    future::Future,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use jiff::Timestamp;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::timeout,
};

use crate::{
    forge::{
        oidc::is_commit,
        webhook::{self, Heard, Hint, Refusal},
    },
    listen::{Acceptor, Listener},
    model::secret::Secret,
};

/// What a stranger may cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a message.
    pub bytes: usize,
    /// Until a message is here.
    pub time: Duration,
    /// Connections at once.
    pub connections: usize,
    /// Messages a second, on average; twice as many at once.
    pub rate: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { bytes: 1 << 20, time: Duration::from_secs(10), connections: 64, rate: 20 }
    }
}

/// A source, by namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Source {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A source's repository may have something new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// Which source.
    pub source: Source,
    /// What was said.
    pub hint: Hint,
}

/// What a workflow asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRequest {
    /// Of which source.
    pub source: Source,
    /// The token that the workflow shows; nobody has checked it.
    pub token: Secret,
    /// The commit to compare with, if it names one.
    pub from: Option<String>,
}

/// Answers workflows.
pub type Planner = Arc<dyn Fn(PlanRequest) -> BoxFuture<'static, Response<Full<Bytes>>> + Send + Sync>;

/// How many who ask for plans may wait at once: all of them, and those who ask for sources of one namespace. Each may wait for
/// an issuer that never answers; webhooks have seats of their own.
const PLAN_SEATS: (usize, usize) = (96, 32);

/// How long a plan may take, with everything that it needs.
pub const PLAN_TIME: Duration = Duration::from_secs(120);

/// The doors that are open. Clones are the same.
#[derive(Clone)]
pub struct Hooks(Arc<Inner>);

struct Inner {
    limits: Limits,
    doors: Mutex<HashMap<Source, Door>>,
    bucket: Mutex<Bucket>,
    news: mpsc::Sender<News>,
    planner: Option<Planner>,
    /// Those who wait for a plan, by the namespace of the source.
    waiting: Mutex<HashMap<String, usize>>,
}

/// The seat of a connection; given up when it turns out to be one that asks for a plan, which has its own.
type Seat = Arc<Mutex<Option<OwnedSemaphorePermit>>>;

/// The seat of one who waits for a plan; given up when it is dropped.
struct PlanSeat {
    hooks: Hooks,
    namespace: String,
}

impl Drop for PlanSeat {
    fn drop(&mut self) {
        let mut waiting = self.hooks.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = waiting.get_mut(&self.namespace) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(&self.namespace);
            }
        }
    }
}

/// The door of a source. Each remembers what it heard for itself: one push knocks at the doors of all sources of a
/// repository with the same words.
struct Door {
    secret: Secret,
    heard: Heard,
}

/// What is left of the rate.
struct Bucket {
    left: f64,
    at: Instant,
}

/// What the path of a hook begins with.
const PREFIX: &str = "/hook/";
/// What the path of a plan begins with.
const PLAN_PREFIX: &str = "/plan/";

impl Hooks {
    /// Opens no door yet. News go to the channel; if nobody takes them they are dropped, and polling finds the commit.
    pub fn new(limits: Limits, news: mpsc::Sender<News>) -> Hooks {
        Hooks::with_plans(limits, news, None)
    }

    /// The same, and workflows are answered.
    pub fn with_plans(limits: Limits, news: mpsc::Sender<News>, planner: Option<Planner>) -> Hooks {
        let bucket = Mutex::new(Bucket { left: f64::from(limits.rate) * 2.0, at: Instant::now() });
        Hooks(Arc::new(Inner { limits, doors: Mutex::default(), bucket, news, planner, waiting: Mutex::default() }))
    }

    /// Opens the door of a source. One without a secret has none; one that is open with the same secret stays as it is.
    pub fn open(&self, source: Source, secret: Secret) {
        let mut doors = self.0.doors.lock().unwrap_or_else(PoisonError::into_inner);
        if secret.is_empty() {
            doors.remove(&source);
        } else if doors.get(&source).is_none_or(|door| door.secret != secret) {
            doors.insert(source, Door { secret, heard: Heard::default() });
        }
    }

    /// Closes it.
    pub fn close(&self, source: &Source) {
        self.0.doors.lock().unwrap_or_else(PoisonError::into_inner).remove(source);
    }

    /// Listens until told to stop.
    pub async fn serve<L>(self, listener: L, stop: impl Future<Output = ()>)
    where
        L: Listener<Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static>,
    {
        tokio::pin!(stop);
        let seats = Arc::new(Semaphore::new(self.0.limits.connections));
        let mut acceptor = Acceptor::new(listener, "webhooks");
        loop {
            let stream = tokio::select! {
                () = &mut stop => return,
                stream = acceptor.next() => stream,
            };
            // Full: whoever comes is sent away at once, without a word.
            let Ok(seat) = seats.clone().try_acquire_owned() else { continue };
            let hooks = self.clone();
            tokio::spawn(hooks.attend_in(stream, Arc::new(Mutex::new(Some(seat)))));
        }
    }

    /// Hears what comes over one connection.
    pub async fn attend(self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        self.attend_in(stream, Seat::default()).await;
    }

    async fn attend_in(self, stream: impl AsyncRead + AsyncWrite + Unpin, seat: Seat) {
        let time = self.0.limits.time;
        let plans = Arc::new(AtomicBool::new(false));
        let asked = plans.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let hooks = self.clone();
            let is_plan = hooks.0.planner.is_some() && request.uri().path().starts_with(PLAN_PREFIX);
            asked.fetch_or(is_plan, Ordering::Relaxed);
            let seat = seat.clone();
            async move { Ok::<_, Infallible>(hooks.hear(request, &seat).await) }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(time).max_buf_size(64 << 10).keep_alive(false);
        let connection = http.serve_connection(TokioIo::new(stream), service);
        // A connection that breaks is the sender's loss.
        tokio::pin!(connection);
        if timeout(time * 2, &mut connection).await.is_err() && plans.load(Ordering::Relaxed) {
            drop(timeout(PLAN_TIME, connection).await);
        }
    }

    /// Hears one request.
    async fn hear(&self, request: Request<Incoming>, seat: &Seat) -> Response<Full<Bytes>> {
        if !self.room() {
            return answer(StatusCode::TOO_MANY_REQUESTS, "too many requests");
        }
        if let Some(planner) = &self.0.planner
            && let Some(path) = request.uri().path().strip_prefix(PLAN_PREFIX)
        {
            return match plan_request(path, &request) {
                Ok(asked) => {
                    let Some(_seat) = self.plan_seat(&asked.source.namespace) else {
                        let mut busy = answer(StatusCode::TOO_MANY_REQUESTS, "too many ask for plans");
                        busy.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
                        return busy;
                    };
                    // Webhooks get theirs back.
                    drop(seat.lock().unwrap_or_else(PoisonError::into_inner).take());
                    planner(asked).await
                }
                Err((code, words)) => answer(code, words),
            };
        }
        let source = request.uri().path().strip_prefix(PREFIX).and_then(|path| path.split_once('/'));
        let source = source.map(|(namespace, name)| Source { namespace: namespace.to_owned(), name: name.to_owned() });
        // Whether there is such a source is nobody's business who cannot prove to know its secret.
        let Some(source) = source else { return answer(StatusCode::NOT_FOUND, "no such page") };
        if request.method() != Method::POST {
            return answer(StatusCode::METHOD_NOT_ALLOWED, "post it");
        }
        let declared =
            request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if declared.is_some_and(|length: u64| length > self.0.limits.bytes as u64) {
            return answer(StatusCode::PAYLOAD_TOO_LARGE, "too large");
        }
        let (head, body) = request.into_parts();
        let body = match timeout(self.0.limits.time, Limited::new(body, self.0.limits.bytes).collect()).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                return answer(StatusCode::PAYLOAD_TOO_LARGE, "too large");
            }
            Ok(Err(_)) | Err(_) => return answer(StatusCode::BAD_REQUEST, "not all of it arrived"),
        };
        let verified = match self.0.doors.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&source) {
            Some(Door { secret, heard }) => webhook::verify(&head.headers, &body, secret, heard, Timestamp::now()),
            // As much work as a wrong proof is.
            None => {
                let nobody = Secret::new("nobody knows this source");
                webhook::verify(&head.headers, &body, &nobody, &mut Heard::default(), Timestamp::now())
                    .and(Err(Refusal::Wrong))
            }
        };
        match verified {
            Err(Refusal::Unsigned | Refusal::Wrong | Refusal::Stale) => answer(StatusCode::UNAUTHORIZED, "not proven"),
            // Some hosts switch a hook off that answers with an error, so what is merely not news is fine.
            Err(Refusal::Repeated) => answer(StatusCode::OK, "heard before"),
            Ok(sender) => match webhook::hint(sender, &head.headers, &body) {
                Ok(Some(hint)) => {
                    tracing::info!(
                        namespace = source.namespace,
                        name = source.name,
                        "a webhook says that there is something new"
                    );
                    let taken = self.0.news.try_send(News { source, hint }).is_ok();
                    answer(StatusCode::ACCEPTED, if taken { "thank you" } else { "busy; polling will find it" })
                }
                Ok(None) => answer(StatusCode::OK, "nothing to do"),
                Err(why) => {
                    tracing::warn!(
                        namespace = source.namespace,
                        name = source.name,
                        why,
                        "a webhook could not be read"
                    );
                    answer(StatusCode::OK, "not understood; polling will find it")
                }
            },
        }
    }

    /// A seat to wait for a plan in, if there is one.
    fn plan_seat(&self, namespace: &str) -> Option<PlanSeat> {
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, own) = (waiting.values().sum::<usize>(), waiting.get(namespace).copied().unwrap_or_default());
        if all >= PLAN_SEATS.0 || own >= PLAN_SEATS.1 {
            return None;
        }
        *waiting.entry(namespace.to_owned()).or_default() += 1;
        Some(PlanSeat { hooks: self.clone(), namespace: namespace.to_owned() })
    }

    /// Whether one more request fits the rate.
    fn room(&self) -> bool {
        self.0.bucket.lock().unwrap_or_else(PoisonError::into_inner).take(self.0.limits.rate, Instant::now())
    }
}

impl Bucket {
    fn take(&mut self, rate: u32, now: Instant) -> bool {
        let rate = f64::from(rate);
        self.left = (self.left + now.duration_since(self.at).as_secs_f64() * rate).min(rate * 2.0);
        self.at = now;
        if self.left < 1.0 {
            return false;
        }
        self.left -= 1.0;
        true
    }
}

/// Reads what a workflow asks for. What is wrong with it does not depend on which sources there are.
fn plan_request(path: &str, request: &Request<Incoming>) -> Result<PlanRequest, (StatusCode, &'static str)> {
    if request.method() != Method::GET {
        return Err((StatusCode::METHOD_NOT_ALLOWED, "get it"));
    }
    let part = |text: &str| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        !text.is_empty() && text.len() <= 253 && text.chars().all(plain)
    };
    let Some((namespace, name)) = path.split_once('/').filter(|(namespace, name)| part(namespace) && part(name)) else {
        return Err((StatusCode::BAD_REQUEST, "the path is /plan/NAMESPACE/NAME"));
    };
    let from = request.uri().query().and_then(|query| query.strip_prefix("from=")).map(str::to_owned);
    if from.as_deref().is_some_and(|from| !is_commit(from)) {
        return Err((StatusCode::BAD_REQUEST, "from is no whole hash of a commit"));
    }
    let token = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = token.and_then(|value| value.strip_prefix("Bearer ").or_else(|| value.strip_prefix("bearer ")));
    let Some(token) = token else { return Err((StatusCode::UNAUTHORIZED, "show the token of the workflow")) };
    let source = Source { namespace: namespace.to_owned(), name: name.to_owned() };
    Ok(PlanRequest { source, token: Secret::new(token), from })
}

fn answer(code: StatusCode, words: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(words.as_bytes())));
    *response.status_mut() = code;
    response
}

#[cfg(test)]
mod tests;
