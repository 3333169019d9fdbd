//! Requests to hosts outside the cluster: one client for git and for every forge.
//!
//! Always TLS, always verified; bounded in time and bytes. Never follows a redirect, so that what was meant for one host is
//! never sent to another; never retries; never reads the environment.

use std::{fmt, future::Future, io, sync::Arc, time::Duration};

use base64::Engine;
use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1::SendRequest};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    time::{error::Elapsed, timeout},
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        self, CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
        client::{
            WebPkiServerVerifier,
            danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
            verify_server_name,
        },
        crypto::ring,
        pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
        server::ParsedCertificate,
    },
};

use crate::model::secret::Secret;

/// What was not done, and why.
#[derive(Debug, Error)]
pub enum Error {
    /// There is no such place.
    #[error("{url:?} is no address: {reason}")]
    Address {
        /// What was given, without a query.
        url: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// The host was not reached, or hung up.
    #[error("{host} cannot be reached: {cause}")]
    Unreachable {
        /// Which host.
        host: String,
        /// What went wrong.
        cause: String,
    },
    /// The host did not prove to be who it should be.
    #[error("the certificate of {host} is not trusted: {cause}")]
    Untrusted {
        /// Which host.
        host: String,
        /// Why.
        cause: String,
    },
    /// It took too long.
    #[error("{host} took longer than {} s", .allowed.as_secs())]
    Slow {
        /// Which host.
        host: String,
        /// How long it may take.
        allowed: Duration,
    },
    /// Its answer is too long.
    #[error("the answer of {host} is more than the {allowed} bytes allowed")]
    Large {
        /// Which host.
        host: String,
        /// How much is allowed.
        allowed: usize,
    },
    /// It may not be reached, for this reason.
    #[error("{0}")]
    Refused(String),
    /// A bundle of certificates holds none.
    #[error("the bundle of authorities cannot be used: {0}")]
    Authorities(String),
}

/// What a request may cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Until the connection stands.
    pub connect: Duration,
    /// Until the answer is there, all of it.
    pub answer: Duration,
    /// Bytes of the answer.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { connect: Duration::from_secs(10), answer: Duration::from_secs(30), bytes: 1 << 20 }
    }
}

/// A proxy to go through, as the operator gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// What it wants to see: user and password, joined by a colon.
    pub user: Option<Secret>,
    /// Hosts that are reached without it: names, or endings that begin with a dot.
    pub except: Vec<String>,
}

impl Proxy {
    /// Reads `http://[user:password@]host:port`.
    pub fn parse(url: &str, except: &str) -> Result<Proxy, Error> {
        let wrong = |reason| Error::Address { url: "the proxy".to_owned(), reason };
        let rest = url.strip_prefix("http://").ok_or_else(|| wrong("it must begin with http://"))?;
        let rest = rest.trim_end_matches('/');
        let (user, address) = match rest.rsplit_once('@') {
            Some((user, address)) => (Some(Secret::new(user)), address),
            None => (None, rest),
        };
        let (host, port) = address.rsplit_once(':').ok_or_else(|| wrong("it names no port"))?;
        let port = port.parse().map_err(|_| wrong("it names no port"))?;
        let except = except.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
        Ok(Proxy { host: host.to_owned(), port, user, except })
    }

    fn skips(&self, host: &str) -> bool {
        self.except.iter().any(|name| match name.strip_prefix('.') {
            Some(ending) => host == ending || host.ends_with(name.as_str()),
            None => host == name || name == "*",
        })
    }
}

/// A connection to a host, whatever carries it.
pub trait Line: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Line for T {}

/// How a host is reached where that is not the network's to say: a simulated one lives in this very process. TLS is
/// spoken all the same.
pub type Dial = Arc<dyn Fn(&str, u16) -> BoxFuture<'static, io::Result<Box<dyn Line>>> + Send + Sync>;

/// The client.
#[derive(Clone)]
pub struct Http {
    tls: Arc<ClientConfig>,
    proxy: Option<Arc<Proxy>>,
    dial: Option<Dial>,
    limits: Limits,
}

impl Http {
    /// A client that trusts the authorities of this machine.
    pub fn new(proxy: Option<Proxy>, limits: Limits) -> Result<Http, Error> {
        let found = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(found.certs);
        Ok(Http { tls: Arc::new(config(roots)?), proxy: proxy.map(Arc::new), dial: None, limits })
    }

    /// The same client, but for hosts of a private authority: it trusts these certificates and no others.
    pub fn trusting(&self, bundle: &[u8]) -> Result<Http, Error> {
        let mut roots = RootCertStore::empty();
        let mut own = Vec::new();
        for certificate in CertificateDer::pem_slice_iter(bundle) {
            let certificate = certificate.map_err(|error| Error::Authorities(error.to_string()))?;
            roots.add(certificate.clone()).map_err(|error| Error::Authorities(error.to_string()))?;
            own.push(certificate);
        }
        if roots.is_empty() {
            return Err(Error::Authorities("it holds no certificate".to_owned()));
        }
        let mut config = config(roots.clone())?;
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| Error::Authorities(error.to_string()))?;
        config.dangerous().set_certificate_verifier(Arc::new(OwnAuthority { verifier, own }));
        Ok(Http { tls: Arc::new(config), ..self.clone() })
    }

    /// The same client, which reaches hosts so.
    pub fn dialing(self, dial: Dial) -> Http {
        Http { dial: Some(dial), ..self }
    }

    /// Performs a request and takes its whole answer.
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Error> {
        let mut session = self.session(request.uri())?;
        let host = session.host.clone();
        let limits = &self.limits;
        let whole = async {
            let (head, body) = session.ask(request).await?.into_parts();
            Ok(Response::from_parts(head, collect(body, limits.bytes, &host).await?))
        };
        in_time(&host, limits.connect + limits.answer, whole).await
    }

    /// Prepares to talk to the host of an address; connects when something is asked.
    pub fn session(&self, address: &Uri) -> Result<Session, Error> {
        let wrong = |reason| Error::Address { url: plain(address), reason };
        if address.scheme_str() != Some("https") {
            return Err(wrong("it must begin with https://"));
        }
        let host = address.host().filter(|host| !host.is_empty()).ok_or_else(|| wrong("it names no host"))?;
        let port = address.port_u16().unwrap_or(443);
        Ok(Session { http: self.clone(), host: host.to_owned(), port, open: None })
    }
}

/// An address without its query, which may hold anything.
fn plain(address: &Uri) -> String {
    format!("{}://{}{}", address.scheme_str().unwrap_or_default(), address.host().unwrap_or_default(), address.path())
}

fn config(roots: RootCertStore) -> Result<ClientConfig, Error> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Authorities(error.to_string()))?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Verifies as usual, but also takes the very certificate that the operator named: one that is signed by itself and calls
/// itself an authority, as `openssl req -x509` makes it, may be a server's own.
#[derive(Debug)]
struct OwnAuthority {
    verifier: Arc<WebPkiServerVerifier>,
    own: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for OwnAuthority {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = self.verifier.verify_server_cert(certificate, others, name, ocsp, now);
        let is_authority = |error: &rustls::Error| match error {
            rustls::Error::InvalidCertificate(CertificateError::Other(cause)) => {
                // Found only after its dates were.
                cause.to_string() == "CaUsedAsEndEntity"
            }
            _ => false,
        };
        match verified {
            Err(error) if is_authority(&error) && self.own.iter().any(|own| own == certificate) => {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

async fn in_time<T>(host: &str, allowed: Duration, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let late = |_: Elapsed| Error::Slow { host: host.to_owned(), allowed };
    timeout(allowed, work).await.map_err(late)?
}

async fn collect(mut body: Incoming, allowed: usize, host: &str) -> Result<Bytes, Error> {
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Error::Unreachable { host: host.to_owned(), cause: error.to_string() })?;
        let Ok(data) = frame.into_data() else { continue };
        if all.len() + data.len() > allowed {
            return Err(Error::Large { host: host.to_owned(), allowed });
        }
        all.extend_from_slice(&data);
    }
    Ok(all.freeze())
}

/// A conversation with one host. Only ever talks to that host.
pub struct Session {
    http: Http,
    host: String,
    port: u16,
    open: Option<SendRequest<Full<Bytes>>>,
}

impl Session {
    /// Performs a request; its body comes as it arrives. The previous answer must have been read to its end.
    pub async fn ask(&mut self, request: Request<Bytes>) -> Result<Response<Incoming>, Error> {
        let (mut head, body) = request.into_parts();
        let same = head.uri.scheme_str() == Some("https")
            && head.uri.host().is_some_and(|host| host.eq_ignore_ascii_case(&self.host))
            && head.uri.port_u16().unwrap_or(443) == self.port;
        if !same {
            return Err(Error::Address { url: plain(&head.uri), reason: "it is another host's" });
        }
        let address = if self.port == 443 { self.host.clone() } else { format!("{}:{}", self.host, self.port) };
        let name = HeaderValue::from_str(&address);
        head.headers.insert(header::HOST, name.map_err(|_| self.odd("its host has odd characters"))?);
        head.headers.entry(header::USER_AGENT).or_insert(HeaderValue::from_static(AGENT));
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        head.uri = path.parse().map_err(|_| self.odd("its path has odd characters"))?;
        let host = self.host.clone();
        let unreachable = |error: hyper::Error| Error::Unreachable { host: host.clone(), cause: chain(&error) };
        // A connection that the host has closed since is replaced.
        let mut usable = None;
        if let Some(mut sender) = self.open.take() {
            usable = sender.ready().await.is_ok().then_some(sender);
        }
        let mut sender = match usable {
            Some(sender) => sender,
            None => self.connect().await?,
        };
        let answer = sender.send_request(Request::from_parts(head, Full::new(body)));
        let answer = in_time(&host, self.http.limits.answer, async { answer.await.map_err(unreachable) }).await?;
        self.open = Some(sender);
        Ok(answer)
    }

    fn odd(&self, reason: &'static str) -> Error {
        Error::Address { url: format!("https://{}", self.host), reason }
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, Error> {
        in_time(&self.host, self.http.limits.connect, async {
            let stream: Box<dyn Line> = match &self.http.dial {
                Some(dial) => dial(&self.host, self.port).await.map_err(|error| unreachable(&self.host, &error))?,
                None => Box::new(connect(&self.host, self.port, self.http.proxy.as_deref()).await?),
            };
            let name = ServerName::try_from(self.host.clone()).map_err(|_| self.odd("its host is no name"))?;
            let connector = TlsConnector::from(self.http.tls.clone());
            let stream = connector.connect(name, stream).await.map_err(|error| refused(&self.host, &error))?;
            let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
                .await
                .map_err(|error| Error::Unreachable { host: self.host.clone(), cause: chain(&error) })?;
            // Ends when the sender is dropped, or the host hangs up; whoever asks learns of it.
            tokio::spawn(async move { drop(connection.await) });
            Ok(sender)
        })
        .await
    }
}

/// How we introduce ourselves; some hosts refuse those who do not.
const AGENT: &str = concat!("tidegate/", env!("CARGO_PKG_VERSION"));

/// Connects to a host, through the proxy if there is one for it.
pub async fn connect(host: &str, port: u16, proxy: Option<&Proxy>) -> Result<TcpStream, Error> {
    let Some(proxy) = proxy.filter(|proxy| !proxy.skips(host)) else {
        return TcpStream::connect((host, port)).await.map_err(|error| unreachable(host, &error));
    };
    let through = format!("{host} through the proxy {}:{}", proxy.host, proxy.port);
    let mut stream =
        TcpStream::connect((proxy.host.as_str(), proxy.port)).await.map_err(|error| unreachable(&through, &error))?;
    let mut request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n");
    if let Some(user) = &proxy.user {
        let encoded = base64::engine::general_purpose::STANDARD.encode(user.expose());
        request.push_str(&format!("Proxy-Authorization: Basic {encoded}\r\n"));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await.map_err(|error| unreachable(&through, &error))?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() > 8192 {
            return Err(Error::Large { host: through, allowed: 8192 });
        }
        let byte = stream.read_u8().await.map_err(|error| unreachable(&through, &error))?;
        answer.push(byte);
    }
    let first = String::from_utf8_lossy(&answer);
    let code = first.split(' ').nth(1).unwrap_or_default().to_owned();
    if code == "200" {
        Ok(stream)
    } else {
        Err(Error::Unreachable {
            host: through,
            cause: format!("it answers {:?}", code.chars().take(3).collect::<String>()),
        })
    }
}

fn unreachable(host: &str, error: &io::Error) -> Error {
    Error::Unreachable { host: host.to_owned(), cause: error.to_string() }
}

/// A handshake that failed: for want of trust, or for another reason.
fn refused(host: &str, error: &io::Error) -> Error {
    let host = host.to_owned();
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(why)) => Error::Untrusted { host, cause: said(why) },
        Some(_) | None => Error::Unreachable { host, cause: error.to_string() },
    }
}

fn said(why: &rustls::CertificateError) -> String {
    match why {
        // Another authority may have the name of the one that is known.
        rustls::CertificateError::UnknownIssuer | rustls::CertificateError::BadSignature => {
            "it was issued by an authority that is not known here; put that authority's certificate into ca.crt"
                .to_owned()
        }
        other => other.to_string(),
    }
}

/// An error with what caused it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("proxy", &self.proxy).field("limits", &self.limits).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_read_and_keeps_its_password() {
        let proxy = Proxy::parse("http://ada:canary-secret@proxy:3128/", ".internal, host").unwrap();
        assert_eq!((proxy.host.as_str(), proxy.port), ("proxy", 3128));
        assert!(!format!("{proxy:?}").contains("canary"));
        let skipped = |host| proxy.skips(host);
        assert!(skipped("host") && skipped("a.internal") && skipped("internal"));
        assert!(!skipped("host.example") && !skipped("xinternal"));
        for wrong in ["https://proxy:1", "proxy:1", "http://proxy", "http://proxy:x"] {
            assert!(Proxy::parse(wrong, "").is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_tls_is_spoken() {
        let http = Http::new(None, Limits::default()).unwrap();
        let error = http.session(&"http://host/a?token=canary-secret".parse().unwrap()).err().unwrap();
        assert_eq!(error.to_string(), "\"http://host/a\" is no address: it must begin with https://");
        assert!(http.trusting(b"no certificate").is_err());
    }
}
