//! The client with which metrics are measured: http and https, with a limit on time, bytes and redirects, and a policy of
//! where it may connect to.
//!
//! Never shows what it sends: an error names the host and what went wrong, not the request. Never follows an answer to
//! another origin, so that what was meant for one host is not sent to another; that an http address leads to the same one
//! over https is no other origin.

use std::{sync::Arc, time::Duration};

use base64::Engine;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, lookup_host},
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        self, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
        client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
        pki_types::{CertificateDer, ServerName, UnixTime},
    },
};

use super::{http::Error, outbound::Outbound};
use crate::metric::{self, OAuth2, Response};

/// How many bytes an answer may have.
const BYTES: usize = 1 << 20;
/// How often an answer may lead elsewhere.
const REDIRECTS: usize = 3;
/// The longest that an answer may take, whatever a metric says: it keeps the place of another tenant's.
const LONGEST: Duration = Duration::from_secs(60);

/// The client.
#[derive(Clone)]
pub struct Web {
    trusting: Arc<ClientConfig>,
    blind: Arc<ClientConfig>,
    outbound: Arc<Outbound>,
}

impl Web {
    /// A client that trusts the authorities of this machine, and connects to where it may.
    pub fn new(outbound: Outbound) -> Result<Web, Error> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(ring::default_provider());
        let builder = || {
            let builder = ClientConfig::builder_with_provider(provider.clone());
            builder.with_safe_default_protocol_versions().map_err(|error| Error::Authorities(error.to_string()))
        };
        let trusting = builder()?.with_root_certificates(roots).with_no_client_auth();
        let anyone = Arc::new(Anyone(provider.clone()));
        let blind = builder()?.dangerous().with_custom_certificate_verifier(anyone).with_no_client_auth();
        Ok(Web { trusting: Arc::new(trusting), blind: Arc::new(blind), outbound: Arc::new(outbound) })
    }

    /// Performs a request, all of it in its time.
    pub async fn fetch(&self, request: &metric::Request) -> Result<Response, Error> {
        let host = request.url.split('/').nth(2).unwrap_or_default().rsplit('@').next().unwrap_or_default().to_owned();
        let allowed = request.timeout.min(LONGEST);
        let late = Error::Slow { host, allowed };
        tokio::time::sleep(request.after.min(LONGEST)).await;
        // No time is not a little time.
        if allowed.is_zero() {
            return Err(late);
        }
        tokio::time::timeout(allowed, self.talk(request)).await.map_err(|_| late)?
    }

    async fn talk(&self, request: &metric::Request) -> Result<Response, Error> {
        let token = match &request.oauth2 {
            Some(oauth2) => Some(self.token(oauth2, request.insecure).await?),
            None => None,
        };
        let mut answer = self.follow(request, token.as_deref()).await?;
        if let Some(other) = request.otherwise.as_ref().filter(|_| [405, 501].contains(&answer.code)) {
            answer = self.follow(other, token.as_deref()).await?;
        }
        Ok(answer)
    }

    /// A token for whom the metric names: by the header first, then in the body, as hosts differ.
    async fn token(&self, oauth2: &OAuth2, insecure: bool) -> Result<String, Error> {
        let mut form = vec![("grant_type", "client_credentials".to_owned())];
        if !oauth2.scopes.is_empty() {
            form.push(("scope", oauth2.scopes.join(" ")));
        }
        let encode = |pairs: &[(&str, String)]| {
            form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish().into_bytes()
        };
        let part = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let pair = format!("{}:{}", part(&oauth2.id), part(oauth2.secret.expose()));
        let basic = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair));
        let kind = ("Content-Type".to_owned(), "application/x-www-form-urlencoded".to_owned());
        let ask = |headers: Vec<(String, String)>, body: Vec<u8>| metric::Request {
            method: "POST".to_owned(),
            headers,
            body,
            insecure,
            ..metric::Request::get(oauth2.url.clone(), Duration::MAX)
        };
        let by_header = ask(vec![kind.clone(), ("Authorization".to_owned(), basic)], encode(&form));
        let mut answer = self.follow(&by_header, None).await?;
        if !(200..300).contains(&answer.code) {
            form.extend([("client_id", oauth2.id.clone()), ("client_secret", oauth2.secret.expose().to_owned())]);
            answer = self.follow(&ask(vec![kind], encode(&form)), None).await?;
        }
        let host = oauth2.url.split('/').nth(2).unwrap_or_default().to_owned();
        let refused = |cause: String| Error::Unreachable { host: host.clone(), cause };
        if !(200..300).contains(&answer.code) {
            return Err(refused(format!("it gives out no token ({})", answer.code)));
        }
        let body = crate::kubernetes::value::Value::from_json(&answer.body).unwrap_or_default();
        let token = body.str_at(&["access_token"]).filter(|token| !token.is_empty());
        token.map(str::to_owned).ok_or_else(|| refused("its answer holds no token".to_owned()))
    }

    /// Performs a request and goes where its answers lead.
    async fn follow(&self, request: &metric::Request, token: Option<&str>) -> Result<Response, Error> {
        let mut request = request.clone();
        for _ in 0..=REDIRECTS {
            let (answer, location) = self.once(&request, token).await?;
            let Some(location) = location.filter(|_| [301, 302, 303, 307, 308].contains(&answer.code)) else {
                return Ok(answer);
            };
            let next = absolute(&request.url, &location);
            // What was meant for one host is not for another.
            if !is_same_origin(&request.url, &next) {
                let cause = format!("it leads to {}; name that address in the metric", authority(&next));
                return Err(Error::Unreachable { host: authority(&request.url), cause });
            }
            if answer.code != 307 && answer.code != 308 && request.method != "GET" {
                "GET".clone_into(&mut request.method);
                request.body.clear();
                request.headers.retain(|(key, _)| !key.eq_ignore_ascii_case("content-type"));
            }
            request.url = next;
        }
        Err(Error::Unreachable { host: authority(&request.url), cause: "it leads elsewhere too often".to_owned() })
    }

    /// Connects to where a name leads now, if that may be reached: all that it leads to is judged, and one of that is taken.
    async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, Error> {
        let unreachable = |cause: String| Error::Unreachable { host: host.to_owned(), cause };
        let found = lookup_host((host, port)).await.map_err(|error| unreachable(error.to_string()))?;
        let mut last = unreachable("it has no address".to_owned());
        for address in found {
            if let Err(refusal) = self.outbound.check(host, address.ip(), port) {
                return Err(Error::Refused(refusal.to_string()));
            }
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = unreachable(error.to_string()),
            }
        }
        Err(last)
    }

    async fn once(&self, request: &metric::Request, token: Option<&str>) -> Result<(Response, Option<String>), Error> {
        let wrong = |reason| Error::Address { url: authority(&request.url), reason };
        let uri: Uri = request.url.replace(' ', "%20").parse().map_err(|_| wrong("it cannot be read"))?;
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(|| wrong("it names no host"))?.to_owned();
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(_) | None => return Err(wrong("it must begin with http:// or https://")),
        };
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let stream = self.connect(host.trim_matches(['[', ']']), port).await?;
        let message = message(request, &uri, token).ok_or_else(|| wrong("a header cannot be sent"))?;
        if !is_tls {
            return exchange(stream, message, &host).await;
        }
        let name =
            ServerName::try_from(host.trim_matches(['[', ']']).to_owned()).map_err(|_| wrong("its host is no name"))?;
        let config = if request.insecure { &self.blind } else { &self.trusting };
        let unreachable = |error: std::io::Error| Error::Unreachable { host: host.clone(), cause: error.to_string() };
        let stream = TlsConnector::from(config.clone()).connect(name, stream).await.map_err(unreachable)?;
        exchange(stream, message, &host).await
    }
}

/// Whether two addresses have the same scheme, host and port. From http to https of the same host, each at its own port, is
/// a step to the better and no other origin.
fn is_same_origin(from: &str, to: &str) -> bool {
    let origin = |url: &str| {
        let uri: Uri = url.parse().ok()?;
        let scheme = uri.scheme_str()?.to_ascii_lowercase();
        let usual = if scheme == "https" { 443 } else { 80 };
        let port = uri.port_u16().unwrap_or(usual);
        Some((scheme, uri.host()?.to_ascii_lowercase(), port))
    };
    let (Some(from), Some(to)) = (origin(from), origin(to)) else { return false };
    let is_better = (from.0.as_str(), from.2, to.0.as_str(), to.2) == ("http", 80, "https", 443) && from.1 == to.1;
    from == to || is_better
}

fn authority(url: &str) -> String {
    url.split('/').nth(2).unwrap_or_default().rsplit('@').next().unwrap_or_default().to_owned()
}

/// Where an answer leads, seen from where it came from.
fn absolute(from: &str, location: &str) -> String {
    if location.contains("://") {
        return location.to_owned();
    }
    let scheme = from.split("://").next().unwrap_or("http");
    match location.strip_prefix("//") {
        Some(rest) => format!("{scheme}://{rest}"),
        None if location.starts_with('/') => format!("{scheme}://{}{location}", authority(from)),
        None => {
            let path = from.split(['?', '#']).next().unwrap_or(from);
            let folder = path.rsplit_once('/').filter(|(folder, _)| folder.matches('/').count() > 2);
            format!("{}/{location}", folder.map_or(path, |(folder, _)| folder))
        }
    }
}

fn message(request: &metric::Request, uri: &Uri, token: Option<&str>) -> Option<Request<Full<Bytes>>> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut message = Request::builder().method(request.method.as_str()).uri(path);
    let headers = message.headers_mut()?;
    headers.insert(header::HOST, HeaderValue::from_str(uri.authority()?.as_str().rsplit('@').next()?).ok()?);
    headers.insert(header::USER_AGENT, HeaderValue::from_static(concat!("tidegate/", env!("CARGO_PKG_VERSION"))));
    for (key, value) in &request.headers {
        headers.append(HeaderName::try_from(key.as_str()).ok()?, HeaderValue::from_str(value).ok()?);
    }
    if let Some(token) = token {
        headers.insert(header::AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {token}")).ok()?);
    }
    message.body(Full::new(Bytes::from(request.body.clone()))).ok()
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    message: Request<Full<Bytes>>,
    host: &str,
) -> Result<(Response, Option<String>), Error> {
    let unreachable = |error: hyper::Error| Error::Unreachable { host: host.to_owned(), cause: error.to_string() };
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(unreachable)?;
    // Ends when the sender is dropped, or the host hangs up; whoever asks learns of it.
    tokio::spawn(async move { drop(connection.await) });
    let answer = sender.send_request(message).await.map_err(unreachable)?;
    let code = answer.status().as_u16();
    let location = answer.headers().get(header::LOCATION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let mut body = answer.into_body();
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(unreachable)?.into_data() else { continue };
        if bytes.len() + data.len() > BYTES {
            return Err(Error::Large { host: host.to_owned(), allowed: BYTES });
        }
        bytes.extend_from_slice(&data);
    }
    Ok((Response { code, body: bytes }, location))
}

/// Takes everybody for who they say they are, where the metric says so.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_leads_elsewhere_from_where_it_came() {
        for (from, location, to) in [
            ("http://a/b/c?d", "e", "http://a/b/e"),
            ("http://a", "e", "http://a/e"),
            ("http://a/b/c", "/e", "http://a/e"),
            ("https://a/b", "//x/e", "https://x/e"),
            ("https://u@a/b", "http://x/e", "http://x/e"),
        ] {
            assert_eq!(absolute(from, location), to);
        }
        assert_eq!(authority("https://user:secret@host:1/a"), "host:1");
    }

    #[test]
    fn sr18_an_origin_is_a_scheme_a_host_and_a_port() {
        for (from, to, is_same) in [
            ("https://a/x", "https://a/y", true),
            ("https://a/x", "https://A:443/y", true),
            ("https://a/x", "http://a/y", false),
            ("http://a/x", "https://a/y", true),
            ("http://a:80/x", "https://a:443/y", true),
            ("http://a:8080/x", "https://a:8080/y", false),
            ("http://a/x", "https://a:8443/y", false),
            ("https://a/x", "https://a:8443/y", false),
            ("https://a/x", "https://b/y", false),
            ("https://a/x", "https://a@b/y", false),
            ("https://a/x", "nonsense", false),
        ] {
            assert_eq!(is_same_origin(from, to), is_same, "{from} {to}");
        }
    }

    /// A host that answers every request so, and what it was asked.
    async fn host(answer: String) -> (u16, tokio::sync::mpsc::UnboundedReceiver<String>) {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, asked) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut bytes = vec![0; 4096];
                let read = stream.read(&mut bytes).await.unwrap();
                drop(sender.send(String::from_utf8_lossy(&bytes[..read]).into_owned()));
                drop(stream.write_all(answer.as_bytes()).await);
            }
        });
        (port, asked)
    }

    fn redirect(code: u16, to: &str) -> String {
        format!("HTTP/1.1 {code} x\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    }

    const OK: &str = "HTTP/1.1 200 x\r\ncontent-length: 1\r\nconnection: close\r\n\r\n1";

    /// SR18: neither headers of any name nor a body go where an answer leads.
    #[tokio::test]
    async fn sr18_no_answer_leads_to_another_origin() {
        let web = Web::new(Outbound::anywhere()).unwrap();
        for code in [301, 302, 303, 307, 308] {
            let (elsewhere, mut reached) = host(OK.to_owned()).await;
            let (port, _asked) = host(redirect(code, &format!("http://127.0.0.1:{elsewhere}/x"))).await;
            let url = format!("http://127.0.0.1:{port}/");
            let request = metric::Request::post(url, "text/plain", "canary-secret", Duration::from_secs(5));
            let error = web.fetch(&request.with("X-Api-Token", "canary-secret")).await.unwrap_err();
            let said = format!(
                "127.0.0.1:{port} cannot be reached: it leads to 127.0.0.1:{elsewhere}; name that address in the metric"
            );
            assert_eq!(error.to_string(), said, "{code}");
            assert!(reached.try_recv().is_err(), "{code}");
        }
        let (port, _asked) = host(redirect(302, "/again")).await;
        let request = metric::Request::get(format!("http://127.0.0.1:{port}/"), Duration::from_secs(5));
        let error = web.fetch(&request).await.unwrap_err();
        assert!(error.to_string().contains("it leads elsewhere too often"), "{error}");
    }

    /// SR18: whatever the machine is called, the address that the name leads to decides.
    #[tokio::test]
    async fn sr18_the_machine_of_the_engine_is_out_of_reach_by_any_name() {
        let (port, mut reached) = host(OK.to_owned()).await;
        let web = Web::new(Outbound::default()).unwrap();
        for name in ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "127.1", "[::ffff:127.0.0.1]", "0.0.0.0"] {
            let request = metric::Request::get(format!("http://{name}:{port}/"), Duration::from_secs(5));
            let error = web.fetch(&request).await.unwrap_err();
            assert!(matches!(error, Error::Refused(_)), "{name}: {error}");
        }
        assert!(reached.try_recv().is_err(), "nothing was sent");
        let allow = vec![format!("127.0.0.1:{port}").parse().unwrap()];
        let web = Web::new(Outbound { allow, ..Outbound::default() }).unwrap();
        let request = metric::Request::get(format!("http://127.0.0.1:{port}/"), Duration::from_secs(5));
        assert_eq!(web.fetch(&request).await.unwrap().body, b"1");
    }

    /// SR24: a host that never answers is given up, whatever the metric says.
    #[tokio::test(start_paused = true)]
    async fn sr24_no_measurement_takes_longer_than_a_minute() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let web = Web::new(Outbound::anywhere()).unwrap();
        let error = web.fetch(&metric::Request::get(url, Duration::from_secs(3600))).await.unwrap_err();
        assert!(error.to_string().ends_with("took longer than 60 s"), "{error}");
    }
}
