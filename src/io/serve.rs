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
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::{Semaphore, mpsc, oneshot},
};

use super::metrics;
use crate::listen::{Acceptor, Listener};

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
    let name = match pages {
        Pages::Metrics => "metrics",
        Pages::Health => "health",
    };
    answer_with(listener, name, move |method, path| {
        let daemon = daemon.clone();
        async move { answer(&method, &path, pages, &daemon).await }
    })
    .await;
}

/// Answers requests, of which only the method and the path are read, until it is dropped. The log calls the listener by
/// this name.
pub async fn answer_with<L, F, A>(listener: L, name: &'static str, answer: F)
where
    L: Listener<Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static>,
    F: Fn(Method, String) -> A + Clone + Send + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let mut acceptor = Acceptor::new(listener, name);
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        let stream = acceptor.next().await;
        let answer = answer.clone();
        tokio::spawn(async move {
            connection(stream, answer).await;
            drop(slot);
        });
    }
}

async fn connection<F, A>(stream: impl AsyncRead + AsyncWrite + Unpin, answer: F)
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

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        time::Instant,
    };

    use super::*;
    use crate::io::failing::{failing, too_many_files};

    #[tokio::test(start_paused = true)]
    async fn pages_are_there_again_when_there_are_file_descriptors() {
        let (listener, outside) = failing((0..8).map(|_| too_many_files()));
        tokio::spawn(answer_with(listener, "pages", |_, path| async move { page(StatusCode::OK, path) }));
        let began = Instant::now();
        let mut client = outside.connect().await;
        client.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).await.unwrap();
        assert!(text.ends_with("/healthz"), "{text}");
        assert_eq!((began.elapsed(), outside.calls()), (Duration::from_millis(2270), 10));
    }
}
