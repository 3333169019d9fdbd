//! A host with TLS of a private authority: git's own program behind it, or whatever a test wants it to say.

use std::{
    io::Write,
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{Method, Response, StatusCode, request::Parts};
use http_body_util::{BodyExt, Full};
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

/// What was asked: method, path and query, authorization.
pub type Asked = (Method, String, Option<String>);

/// A host on this machine.
pub struct Server {
    pub address: SocketAddr,
    /// The certificate of its authority.
    pub authority: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

pub type Reply = Response<Full<Bytes>>;

impl Server {
    /// Answers every request so.
    pub async fn start(reply: impl Fn(&Parts, &[u8]) -> Reply + Send + Sync + 'static) -> Server {
        let (config, authority) = certificate();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, reply) = (asked.clone(), Arc::new(reply));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, log, reply) = (acceptor.clone(), log.clone(), reply.clone());
                tokio::spawn(async move {
                    // A client that does not trust us hangs up here.
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                        let (log, reply) = (log.clone(), reply.clone());
                        async move {
                            let (parts, body) = request.into_parts();
                            let body = body.collect().await?.to_bytes();
                            let shown =
                                parts.headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
                            log.lock().unwrap().push((parts.method.clone(), parts.uri.to_string(), shown));
                            let answer = tokio::task::spawn_blocking(move || reply(&parts, &body)).await.unwrap();
                            Ok::<_, hyper::Error>(answer)
                        }
                    });
                    drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
                });
            }
        });
        Server { address, authority, asked }
    }

    /// Serves a repository under any path.
    pub async fn git(repository: &Path) -> Server {
        let repository = repository.to_owned();
        Server::start(move |parts, body| git(&repository, parts, body)).await
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("https://{}/{path}", self.address)
    }

    /// What was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

/// A certificate for this machine.
pub fn certificate() -> (ServerConfig, String) {
    serving(&super::authority::issue())
}

/// A server with this certificate, and the authority to trust.
pub fn serving(issued: &super::authority::Issued) -> (ServerConfig, String) {
    let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap();
    let chain = CertificateDer::pem_slice_iter(issued.certificate.as_bytes()).collect::<Result<_, _>>().unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    (config, issued.authority.clone())
}

pub fn reply(code: u16, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Reply {
    let mut response = Response::builder().status(StatusCode::from_u16(code).unwrap());
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(Full::new(body.into())).unwrap()
}

pub const ADVERTISEMENT: &str = "application/x-git-upload-pack-advertisement";
pub const RESULT: &str = "application/x-git-upload-pack-result";

/// Git's own answer.
pub fn git(repository: &Path, parts: &Parts, body: &[u8]) -> Reply {
    let version = parts.headers.get("git-protocol").map(|value| value.to_str().unwrap().to_owned());
    let pushes = parts.uri.path_and_query().is_some_and(|path| path.as_str().contains("git-receive-pack"));
    if pushes {
        take(repository, parts.uri.path(), body)
    } else {
        speak(repository, parts.uri.path(), version.as_deref(), body)
    }
}

/// The same in a version of the protocol; the oldest if none is given.
pub fn speak(repository: &Path, path: &str, version: Option<&str>, body: &[u8]) -> Reply {
    let greeting = path.ends_with("/info/refs");
    let output = program("upload-pack", repository, greeting, version, body);
    match greeting {
        true if version.is_some() => reply(200, &[("content-type", ADVERTISEMENT)], output),
        true => {
            let bytes = [b"001e# service=git-upload-pack\n0000".as_slice(), &output].concat();
            reply(200, &[("content-type", ADVERTISEMENT)], bytes)
        }
        false => reply(200, &[("content-type", RESULT)], output),
    }
}

/// What git says to whoever pushes.
fn take(repository: &Path, path: &str, body: &[u8]) -> Reply {
    let greeting = path.ends_with("/info/refs");
    let output = program("receive-pack", repository, greeting, None, body);
    if greeting {
        let bytes = [b"001f# service=git-receive-pack\n0000".as_slice(), &output].concat();
        return reply(200, &[("content-type", "application/x-git-receive-pack-advertisement")], bytes);
    }
    reply(200, &[("content-type", "application/x-git-receive-pack-result")], output)
}

fn program(name: &str, repository: &Path, greeting: bool, version: Option<&str>, body: &[u8]) -> Vec<u8> {
    let mut command = Command::new("git");
    command.args(["-c", "safe.directory=*", name, "--stateless-rpc"]);
    if greeting {
        command.arg("--advertise-refs");
    }
    if let Some(version) = version {
        command.env("GIT_PROTOCOL", version);
    }
    command.arg(repository).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("git must be installed");
    child.stdin.take().unwrap().write_all(body).unwrap();
    child.wait_with_output().unwrap().stdout
}
