//! The small pages of a daemon: `/metrics`, `/healthz` and `/readyz` over plain HTTP.
//!
//! `/metrics` is an answer of the daemon's own loop. Health is answered at once from the loop's last sign of life, so that
//! whoever asks often learns nothing late and costs the loop nothing, and a loop that does not turn shows all the same.
//! Never takes more than a request line, one for each connection: what is not a GET of a known path is refused. Whoever
//! keeps a connection without asking or reading loses it to the next one.

use std::{collections::VecDeque, convert::Infallible, future::Future, io, net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
    time::{Instant, timeout},
};

use super::metrics;
use crate::listen::{Acceptor, Listener};

/// How many connections may be open at once; one more ends the oldest of them.
const CONNECTIONS: usize = 64;
/// How long a client may take to ask, and the daemon to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a connection lasts at most.
const CONNECTION: Duration = Duration::from_secs(15);
/// How often the loop is asked for a sign of life.
const PULSE: Duration = Duration::from_secs(1);
/// How long a loop without a sign of life counts as alive.
const ALIVE: Duration = Duration::from_secs(15);
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
    let (sender, pulse) = watch::channel(Pulse { at: Instant::now(), is_ready: false });
    let answered = answer_with(listener, name, {
        let daemon = daemon.clone();
        move |method, path| {
            let (daemon, pulse) = (daemon.clone(), *pulse.borrow());
            async move { answer(&method, &path, pages, &daemon, pulse).await }
        }
    });
    match pages {
        Pages::Metrics => answered.await,
        Pages::Health => {
            tokio::join!(answered, feel(&daemon, &sender));
        }
    }
}

/// The last sign of life of the loop.
#[derive(Debug, Clone, Copy)]
struct Pulse {
    at: Instant,
    is_ready: bool,
}

/// Asks the loop for signs of life.
async fn feel(daemon: &mpsc::Sender<Question>, pulse: &watch::Sender<Pulse>) {
    loop {
        if let Some(is_ready) = ask(daemon, Question::Ready).await {
            pulse.send_replace(Pulse { at: Instant::now(), is_ready });
        }
        tokio::time::sleep(PULSE).await;
    }
}

/// Answers requests, of which only the method and the path are read, until it is dropped. The log calls the listener by
/// this name.
pub async fn answer_with<L, F, A>(listener: L, name: &'static str, answer: F)
where
    L: Listener<Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static>,
    F: Fn(Method, String) -> A + Clone + Send + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    let mut open: VecDeque<Connection> = VecDeque::new();
    let mut acceptor = Acceptor::new(listener, name);
    loop {
        let stream = acceptor.next().await;
        open.retain(|connection| !connection.0.is_finished());
        // The oldest goes: whoever comes now may be the one whose answer decides whether the daemon lives on.
        if open.len() == CONNECTIONS {
            open.pop_front();
        }
        let answer = answer.clone();
        open.push_back(Connection(tokio::spawn(async move {
            drop(timeout(CONNECTION, connection(stream, answer)).await);
        })));
    }
}

/// A connection under way; over when it is dropped.
struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
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
    server.timer(TokioTimer::new()).header_read_timeout(PATIENCE).keep_alive(false).max_buf_size(16 << 10);
    // A client that hangs up is no news.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(method: &Method, path: &str, pages: Pages, daemon: &mpsc::Sender<Question>, pulse: Pulse) -> Answer {
    if method != Method::GET && method != Method::HEAD {
        return page(StatusCode::METHOD_NOT_ALLOWED, "only GET\n".to_owned());
    }
    match (pages, path) {
        (Pages::Metrics, "/metrics") => match ask(daemon, Question::Metrics).await {
            Some(text) => page(StatusCode::OK, text + &metrics::process()),
            None => page(StatusCode::SERVICE_UNAVAILABLE, SILENT.to_owned()),
        },
        (Pages::Health, "/healthz" | "/readyz") if daemon.is_closed() || pulse.at.elapsed() > ALIVE => {
            page(StatusCode::SERVICE_UNAVAILABLE, SILENT.to_owned())
        }
        // Only who is not ready yet is asked; nobody has reason to hold that up.
        (Pages::Health, "/readyz") if !pulse.is_ready => match ask(daemon, Question::Ready).await {
            Some(true) => page(StatusCode::OK, "ok".to_owned()),
            Some(false) => page(StatusCode::SERVICE_UNAVAILABLE, "not everything has been listed yet\n".to_owned()),
            None => page(StatusCode::SERVICE_UNAVAILABLE, SILENT.to_owned()),
        },
        (Pages::Health, "/healthz" | "/readyz") => page(StatusCode::OK, "ok".to_owned()),
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

    /// What a page answers to one request.
    async fn look(port: u16, path: &str) -> String {
        let mut client = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        client.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).await.unwrap();
        let (code, body) = (text.split(' ').nth(1).unwrap_or_default(), text.rsplit("\r\n\r\n").next().unwrap());
        format!("{code} {}", body.trim())
    }

    fn health() -> (u16, mpsc::Receiver<Question>) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, questions) = mpsc::channel(16);
        tokio::spawn(serve(TcpListener::from_std(listener).unwrap(), Pages::Health, sender));
        (port, questions)
    }

    /// SR24: whoever asks without end and never reads keeps nobody from asking for the daemon's health.
    #[tokio::test]
    async fn sr24_connections_that_never_read_do_not_hold_health() {
        let (port, mut questions) = health();
        tokio::spawn(async move {
            while let Some(Question::Ready(sender)) = questions.recv().await {
                let _ = sender.send(true);
            }
        });
        let (mut greedy, pipelined) = (Vec::new(), b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n".repeat(10_000));
        for number in 0..3 * CONNECTIONS {
            let mut client = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            // Some ask without end, some say nothing at all.
            if number % 2 == 0 {
                drop(timeout(Duration::from_millis(5), client.write_all(&pipelined)).await);
            }
            greedy.push(client);
        }
        for _ in 0..10 {
            let answer = timeout(Duration::from_secs(1), look(port, "/healthz")).await.unwrap();
            assert_eq!(answer, "200 ok");
        }
    }

    /// SR21: no page changes anything, and there is none but those.
    #[tokio::test]
    async fn sr21_no_page_takes_more_than_a_question() {
        let (sender, _questions) = mpsc::channel(16);
        let pulse = Pulse { at: Instant::now(), is_ready: true };
        for (pages, known) in [(Pages::Health, vec!["/healthz", "/readyz"]), (Pages::Metrics, vec!["/metrics"])] {
            for path in ["/healthz", "/readyz", "/metrics", "/", "/debug/pprof", "/healthz/", "/../metrics"] {
                for method in ["POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE"] {
                    let method: Method = method.parse().unwrap();
                    assert_eq!(answer(&method, path, pages, &sender, pulse).await.status(), 405, "{method} {path}");
                }
                if !known.contains(&path) {
                    assert_eq!(answer(&Method::GET, path, pages, &sender, pulse).await.status(), 404, "{path}");
                }
            }
        }
    }

    /// Health is answered without the loop, and says all the same when the loop stands still.
    #[tokio::test(start_paused = true)]
    async fn a_loop_that_stands_still_is_told_by_its_health() {
        let (sender, mut questions) = mpsc::channel(16);
        let (pulse, felt) = watch::channel(Pulse { at: Instant::now(), is_ready: false });
        let daemon = sender.clone();
        tokio::spawn(async move { feel(&daemon, &pulse).await });
        let (turn, turns) = watch::channel(false);
        let answering = tokio::spawn(async move {
            let mut held = Vec::new();
            while let Some(Question::Ready(asked)) = questions.recv().await {
                if *turns.borrow() {
                    let _ = asked.send(true);
                } else {
                    held.push(asked);
                }
            }
        });
        let page = async |path: &str| {
            let pulse = *felt.borrow();
            answer(&Method::GET, path, Pages::Health, &sender, pulse).await.status().as_u16()
        };
        assert_eq!((page("/healthz").await, page("/readyz").await), (200, 503), "it has just begun");
        turn.send_replace(true);
        tokio::time::sleep(PATIENCE + 2 * PULSE).await;
        assert_eq!((page("/healthz").await, page("/readyz").await), (200, 200));
        // From now on the loop answers nothing; it is asked, and asked again.
        turn.send_replace(false);
        tokio::time::sleep(ALIVE - 2 * PULSE).await;
        assert_eq!((page("/healthz").await, page("/readyz").await), (200, 200));
        tokio::time::sleep(3 * PULSE).await;
        assert_eq!((page("/healthz").await, page("/readyz").await), (503, 503));
        // One that has ended is known to have at once.
        turn.send_replace(true);
        tokio::time::sleep(PATIENCE + 2 * PULSE).await;
        assert_eq!(page("/healthz").await, 200);
        answering.abort();
        assert!(answering.await.is_err());
        assert_eq!(page("/healthz").await, 503);
    }
}
