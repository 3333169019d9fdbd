//! A git host inside the test: git over https and the statuses of a forge, in virtual time and with moods.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, request::Parts};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tidegate::{
    io::{
        git::Network,
        http::{Dial, Http, Limits, Line},
    },
    kubernetes::value::Value,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_rustls::TlsAcceptor;

use crate::server::{certificate, git, reply, serving};

/// How the host is today.
#[derive(Debug, Clone)]
pub enum Mood {
    /// It does what it is asked.
    Good,
    /// Nobody answers at its address.
    Down,
    /// It takes so long.
    Slow(Duration),
    /// It answers every status with this code, these headers and these words.
    Says(u16, Vec<(&'static str, String)>, String),
}

/// A status that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posted {
    pub commit: String,
    pub context: String,
    pub state: String,
    pub words: String,
    pub target: Option<String>,
}

/// What is asked of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub host: String,
    pub path: String,
    pub authorization: Option<String>,
}

#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    acceptor: Mutex<TlsAcceptor>,
    authority: String,
    repository: PathBuf,
    mood: Mutex<Mood>,
    /// The token that it wants to see, whoever asks.
    token: Mutex<String>,
    posted: Mutex<Vec<Posted>>,
    asked: Mutex<Vec<Asked>>,
    /// How many requests have come to the port at which it is slow.
    slow: AtomicUsize,
}

impl Host {
    pub fn new(repository: &Path) -> Host {
        let (config, authority) = certificate();
        Host(Arc::new(Inner {
            acceptor: Mutex::new(TlsAcceptor::from(Arc::new(config))),
            authority,
            repository: repository.to_owned(),
            mood: Mutex::new(Mood::Good),
            token: Mutex::new("good-token".to_owned()),
            posted: Mutex::default(),
            asked: Mutex::default(),
            slow: AtomicUsize::new(0),
        }))
    }

    /// Serves with another certificate from now on.
    pub fn show(&self, issued: &crate::authority::Issued) {
        *self.0.acceptor.lock().unwrap() = TlsAcceptor::from(Arc::new(serving(issued).0));
    }

    /// The certificate of its authority.
    pub fn authority(&self) -> &str {
        &self.0.authority
    }

    /// A network that has this host and no other.
    pub fn network(&self) -> Network {
        let http = Http::new(None, Limits::default()).unwrap();
        let http = http.trusting(self.authority().as_bytes()).unwrap();
        Network::new(http.dialing(self.dial()), None)
    }

    fn dial(&self) -> Dial {
        let host = self.clone();
        Arc::new(move |name, port| {
            let (host, known, is_slow) =
                (host.clone(), name == "git.example" && [443, 9443].contains(&port), port == 9443);
            Box::pin(async move {
                if !known || matches!(host.mood(), Mood::Down) {
                    return Err(io::Error::new(io::ErrorKind::ConnectionRefused, "nobody is there"));
                }
                let (ours, theirs) = tokio::io::duplex(64 << 10);
                if is_slow {
                    tokio::spawn(host.attend_slowly(theirs));
                } else {
                    tokio::spawn(host.attend(theirs));
                }
                Ok(Box::new(ours) as Box<dyn Line>)
            })
        })
    }

    pub fn mood(&self) -> Mood {
        self.0.mood.lock().unwrap().clone()
    }

    pub fn be(&self, mood: Mood) {
        *self.0.mood.lock().unwrap() = mood;
    }

    pub fn want(&self, token: &str) {
        *self.0.token.lock().unwrap() = token.to_owned();
    }

    /// What arrived, oldest first.
    pub fn posted(&self) -> Vec<Posted> {
        self.0.posted.lock().unwrap().clone()
    }

    /// What arrived for a commit, as `context: state, words`.
    pub fn about(&self, commit: &str) -> Vec<String> {
        let posted = self.posted().into_iter().filter(|posted| posted.commit == commit);
        posted.map(|posted| format!("{}: {}, {}", posted.context, posted.state, posted.words)).collect()
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.0.asked.lock().unwrap().clone()
    }

    async fn attend(self, stream: DuplexStream) {
        let acceptor = self.0.acceptor.lock().unwrap().clone();
        let Ok(stream) = acceptor.accept(stream).await else { return };
        let service = service_fn(move |request: Request<Incoming>| {
            let host = self.clone();
            async move { host.answer(request).await }
        });
        drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
    }

    /// Begins an answer and goes on with one byte in two seconds.
    async fn attend_slowly(self, stream: DuplexStream) {
        let acceptor = self.0.acceptor.lock().unwrap().clone();
        let Ok(mut stream) = acceptor.accept(stream).await else { return };
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let Ok(byte) = stream.read_u8().await else { return };
            head.push(byte);
        }
        self.0.slow.fetch_add(1, Ordering::Relaxed);
        let begin = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\nContent-Length: 65520\r\n\r\nfff0";
        let mut answer = stream.write_all(begin).await;
        while answer.is_ok() && stream.flush().await.is_ok() {
            tokio::time::sleep(Duration::from_secs(2)).await;
            answer = stream.write_all(b"x").await;
        }
    }

    /// How many requests have come to the port at which it is slow.
    pub fn slow(&self) -> usize {
        self.0.slow.load(Ordering::Relaxed)
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let authorization = parts.headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
        let host = parts.headers.get("host").map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
        self.0.asked.lock().unwrap().push(Asked { host, path: parts.uri.path().to_owned(), authorization });
        if let Mood::Slow(time) = self.mood() {
            tokio::time::sleep(time).await;
        }
        Ok(if parts.uri.path().starts_with("/api/v1/") {
            self.status(&parts, &body)
        } else {
            self.git(parts, body).await
        })
    }

    /// Gitea's way to take a status.
    fn status(&self, parts: &Parts, body: &[u8]) -> Response<Full<Bytes>> {
        let shown = parts.headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
        if shown != Some(format!("token {}", self.0.token.lock().unwrap())) {
            return reply(401, &[], r#"{"message":"invalid username, password or token"}"#);
        }
        if let Mood::Says(code, headers, words) = self.mood() {
            let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            return reply(code, &headers, words);
        }
        let body = Value::from_json(body).unwrap();
        let text = |name: &str| body.str_at(&[name]).unwrap_or_default().to_owned();
        self.0.posted.lock().unwrap().push(Posted {
            commit: parts.uri.path().rsplit('/').next().unwrap().to_owned(),
            context: text("context"),
            state: text("state"),
            words: text("description"),
            target: body.str_at(&["target_url"]).map(str::to_owned),
        });
        reply(201, &[], "{}")
    }

    /// Git itself, for whoever shows the token as a password.
    async fn git(&self, parts: Parts, body: Bytes) -> Response<Full<Bytes>> {
        use base64::{Engine, engine::general_purpose::STANDARD};
        let expected = format!("Basic {}", STANDARD.encode(format!("ada:{}", self.0.token.lock().unwrap())));
        let shown = parts.headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
        if shown != Some(expected) {
            return reply(401, &[("www-authenticate", "Basic realm=x")], "no");
        }
        if let Mood::Says(code, headers, words) = self.mood() {
            let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            return reply(code, &headers, words);
        }
        let repository = self.0.repository.clone();
        tokio::task::spawn_blocking(move || git(&repository, &parts, &body)).await.unwrap()
    }
}
