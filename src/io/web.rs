//! The client with which metrics are measured: http and https, with a limit on time, bytes and redirects.
//!
//! Never shows what it sends: an error names the host and what went wrong, not the request.

use std::{sync::Arc, time::Duration};

use base64::Engine;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        self, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
        client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
        pki_types::{CertificateDer, ServerName, UnixTime},
    },
};

use super::http::{Error, connect};
use crate::metric::{self, OAuth2, Response};

/// How many bytes an answer may have.
const BYTES: usize = 1 << 20;
/// How often an answer may lead elsewhere.
const REDIRECTS: usize = 10;

/// The client.
#[derive(Clone)]
pub struct Web {
    trusting: Arc<ClientConfig>,
    blind: Arc<ClientConfig>,
}

impl Web {
    /// A client that trusts the authorities of this machine.
    pub fn new() -> Result<Web, Error> {
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
        Ok(Web { trusting: Arc::new(trusting), blind: Arc::new(blind) })
    }

    /// Performs a request, all of it in its time.
    pub async fn fetch(&self, request: &metric::Request) -> Result<Response, Error> {
        let host = request.url.split('/').nth(2).unwrap_or_default().rsplit('@').next().unwrap_or_default().to_owned();
        let late = Error::Slow { host, allowed: request.timeout };
        tokio::time::sleep(request.after).await;
        // No time is not a little time.
        if request.timeout.is_zero() {
            return Err(late);
        }
        tokio::time::timeout(request.timeout, self.talk(request)).await.map_err(|_| late)?
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
        let mut keeps_secrets = true;
        for _ in 0..=REDIRECTS {
            let (answer, location) = self.once(&request, token.filter(|_| keeps_secrets)).await?;
            let Some(location) = location.filter(|_| [301, 302, 303, 307, 308].contains(&answer.code)) else {
                return Ok(answer);
            };
            let next = absolute(&request.url, &location);
            // What was meant for one host is not for another.
            if authority(&next) != authority(&request.url) {
                keeps_secrets = false;
                request.headers.retain(|(key, _)| !is_secret(&key.to_ascii_lowercase()));
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
        let stream = connect(host.trim_matches(['[', ']']), port, None).await?;
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

/// Whether a header may say who we are.
fn is_secret(key: &str) -> bool {
    ["authorization", "cookie", "www-authenticate", "x-amz-security-token"].contains(&key) || key.ends_with("-key")
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
}
