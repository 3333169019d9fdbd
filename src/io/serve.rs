//! The small pages of a daemon: `/metrics`, `/healthz` and `/readyz` over plain HTTP.
//!
//! Every page is an answer of the daemon's own loop, so that a loop which does not turn shows. Never takes more than a
//! request line: what is not a GET of a known path is refused.

use std::{convert::Infallible, future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use thiserror::Error;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc, oneshot},
};

use super::metrics;

/// How many connections may be open at once; more wait to be accepted.
const CONNECTIONS: usize = 64;
/// How long a client may take to ask, and the daemon to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The text that Prometheus reads.
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What is asked of the daemon.
#[derive(Debug)]
pub enum Question {
    /// Its numbers.
    Metrics(oneshot::Sender<String>),
    /// Whether it is alive and knows enough to decide.
    Ready(oneshot::Sender<bool>),
}

/// Why nobody listens.
#[derive(Debug, Error)]
#[error("cannot listen on port {port}: {cause}")]
pub struct Error {
    /// The port.
    pub port: u16,
    /// Why not.
    pub cause: io::Error,
}

/// Which pages a port has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// `/metrics`
    Metrics,
    /// `/healthz` and `/readyz`
    Health,
}

/// Listens on a port of every address.
pub async fn listen(port: u16) -> Result<TcpListener, Error> {
    let address = SocketAddr::from(([0, 0, 0, 0], port));
    TcpListener::bind(address).await.map_err(|cause| Error { port, cause })
}

/// What is answered.
pub type Answer = Response<Full<Bytes>>;

/// Answers until it is dropped.
pub async fn serve(listener: TcpListener, pages: Pages, daemon: mpsc::Sender<Question>) {
    answer_with(listener, move |method, path| {
        let daemon = daemon.clone();
        async move { answer(&method, &path, pages, &daemon).await }
    })
    .await;
}

/// Answers requests, of which only the method and the path are read, until it is dropped.
pub async fn answer_with<F, A>(listener: TcpListener, answer: F)
where
    F: Fn(Method, String) -> A + Clone + Send + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, most likely: others must be closed first.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let answer = answer.clone();
        tokio::spawn(async move {
            connection(stream, answer).await;
            drop(slot);
        });
    }
}

async fn connection<F, A>(stream: TcpStream, answer: F)
where
    F: Fn(Method, String) -> A,
    A: Future<Output = Answer>,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = answer(request.method().clone(), request.uri().path().to_owned());
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    // A client that hangs up is no news.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(method: &Method, path: &str, pages: Pages, daemon: &mpsc::Sender<Question>) -> Answer {
    if method != Method::GET && method != Method::HEAD {
        return page(StatusCode::METHOD_NOT_ALLOWED, "only GET\n".to_owned());
    }
    match (pages, path) {
        (Pages::Metrics, "/metrics") => match ask(daemon, Question::Metrics).await {
            Some(text) => page(StatusCode::OK, text + &metrics::process()),
            None => page(StatusCode::SERVICE_UNAVAILABLE, SILENT.to_owned()),
        },
        (Pages::Health, "/healthz") => match ask(daemon, Question::Ready).await {
            Some(_) => page(StatusCode::OK, "ok".to_owned()),
            None => page(StatusCode::SERVICE_UNAVAILABLE, SILENT.to_owned()),
        },
        (Pages::Health, "/readyz") => match ask(daemon, Question::Ready).await {
            Some(true) => page(StatusCode::OK, "ok".to_owned()),
            Some(false) => page(StatusCode::SERVICE_UNAVAILABLE, "not everything has been listed yet\n".to_owned()),
            None => page(StatusCode::SERVICE_UNAVAILABLE, SILENT.to_owned()),
        },
        (Pages::Metrics, _) => page(StatusCode::NOT_FOUND, "there is /metrics\n".to_owned()),
        (Pages::Health, _) => page(StatusCode::NOT_FOUND, "there are /healthz and /readyz\n".to_owned()),
    }
}

const SILENT: &str = "the daemon does not answer\n";

async fn ask<T>(daemon: &mpsc::Sender<Question>, question: fn(oneshot::Sender<T>) -> Question) -> Option<T> {
    let (sender, receiver) = oneshot::channel();
    let answer = async {
        daemon.send(question(sender)).await.ok()?;
        receiver.await.ok()
    };
    tokio::time::timeout(PATIENCE, answer).await.ok().flatten()
}

fn page(code: StatusCode, text: String) -> Answer {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(EXPOSITION));
    response
}
