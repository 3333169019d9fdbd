//! A conversation with the host of a repository, over https or ssh.
//!
//! Knows how each is reached, trusted and shown our credentials; what is said is [`super::wire`]'s. Never follows a
//! redirect to another host.

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use jiff::Timestamp;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

use super::{
    Error,
    app::Tokens,
    credentials::{Access, Proof},
    limits::FetchLimits,
    ssh::{self, Shell},
    wire::{self, Greeter, Greeting, Packet, Service},
};
use crate::{
    io::http::{self as client, Http, Proxy, Session},
    kubernetes::foreign,
    model::remote::{Remote, Scheme},
};

/// From which size on objects are unpacked one pack at a time.
const LARGE_OBJECT_BYTES: u64 = 4 << 20;

/// What is needed to reach hosts.
pub struct Network {
    http: Http,
    proxy: Option<Proxy>,
    tokens: Tokens,
    /// Who unpacks large objects: one at a time, because three copies of one are in memory meanwhile.
    unpacking: Semaphore,
}

impl Network {
    /// Reaches hosts through this client; ssh goes through the same proxy.
    pub fn new(http: Http, proxy: Option<Proxy>) -> Network {
        Network { http, proxy, tokens: Tokens::default(), unpacking: Semaphore::new(1) }
    }

    /// The client for https.
    pub fn http(&self) -> &Http {
        &self.http
    }

    /// A turn to unpack a pack whose largest object has so many bytes. Small ones wait for nobody.
    pub(super) async fn unpacking_turn(&self, largest: u64) -> Option<SemaphorePermit<'_>> {
        if largest <= LARGE_OBJECT_BYTES {
            return None;
        }
        // It is never closed.
        self.unpacking.acquire().await.ok()
    }

    /// Tokens of GitHub Apps.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }
}

/// A host that has greeted us.
pub struct Host<'a> {
    remote: &'a Remote,
    limits: &'a FetchLimits,
    line: Line,
    /// What has arrived and was not read yet.
    buffer: BytesMut,
    /// What it can do.
    pub greeting: Greeting,
}

enum Line {
    Https(Box<Https>),
    Ssh(Box<Shell>),
}

struct Https {
    service: Service,
    session: Session,
    /// The repository's address, perhaps after a redirect.
    base: String,
    authorization: Option<HeaderValue>,
    /// What is still to be read.
    answer: Option<Incoming>,
}

impl<'a> Host<'a> {
    /// Connects and hears what the host can do.
    pub async fn open(
        remote: &'a Remote,
        service: Service,
        access: &Access,
        network: &Network,
        limits: &'a FetchLimits,
    ) -> Result<Host<'a>, Error> {
        let access = access.for_host_of(remote)?;
        let line = match (remote.scheme, &access.proof) {
            (Scheme::Ssh, Proof::Key { identity, password, known_hosts }) => {
                let proof = ssh::Proof { identity, password: password.as_ref(), known_hosts };
                let shell = Shell::open(remote, service, &proof, network.proxy.as_ref(), limits.silence).await?;
                Line::Ssh(Box::new(shell))
            }
            (Scheme::Ssh, Proof::None | Proof::Basic { .. } | Proof::Bearer(_) | Proof::App(_)) => {
                let cause = "ssh needs a Secret with the keys identity and known_hosts".to_owned();
                return Err(Error::Credentials { remote: remote.to_string(), cause });
            }
            (Scheme::Https, _) => https(remote, service, access, network).await?,
        };
        let nothing = Greeting::Two(Vec::new());
        let mut host = Host { remote, limits, line, buffer: BytesMut::new(), greeting: nothing };
        let mut greeter = Greeter::default();
        // The newer version lists what it can do here, the older one what it has.
        let most = limits.references.max(64);
        loop {
            let packet = host.packet().await?;
            if let Some(greeting) = greeter.take(packet, most, limits.listing_bytes).map_err(|cause| host.odd(cause))? {
                host.greeting = greeting;
                return Ok(host);
            }
        }
    }

    /// Asks something; the answer is read packet by packet.
    pub async fn ask(&mut self, words: Bytes) -> Result<(), Error> {
        self.buffer.clear();
        match &mut self.line {
            Line::Ssh(shell) => {
                let said = shell.say(words).await;
                said.map_err(|cause| Error::Unreachable { remote: self.remote.to_string(), cause })
            }
            Line::Https(https) => {
                if let Some(rest) = https.answer.take() {
                    drain(rest).await;
                }
                let url = format!("{}/{}", https.base, https.service.as_str());
                let request = request(Method::POST, &url, https.service, https.authorization.as_ref(), words);
                let response = match request {
                    Ok(request) => https.session.ask(request).await.map_err(|error| reached(self.remote, error))?,
                    Err(cause) => return Err(self.odd(cause)),
                };
                https.answer = Some(success(self.remote, https.service, response)?.into_body());
                Ok(())
            }
        }
    }

    /// The next packet.
    pub async fn packet(&mut self) -> Result<Packet, Error> {
        loop {
            if let Some(packet) = wire::take(&mut self.buffer).map_err(|cause| self.odd(cause))? {
                return Ok(packet);
            }
            let more = match &mut self.line {
                Line::Ssh(shell) => timeout(self.limits.silence, shell.hear()).await.map(Ok),
                Line::Https(https) => match &mut https.answer {
                    Some(answer) => timeout(self.limits.silence, chunk(answer)).await.map(Option::transpose),
                    None => Ok(Ok(None)),
                },
            };
            match more {
                Err(_) => return Err(Error::Slow { remote: self.remote.to_string(), allowed: self.limits.silence }),
                Ok(Err(cause)) => return Err(Error::Unreachable { remote: self.remote.to_string(), cause }),
                Ok(Ok(Some(bytes))) => self.buffer.extend_from_slice(&bytes),
                Ok(Ok(None)) => return Err(self.hung_up().await),
            }
        }
    }

    /// Something that git does not say.
    pub fn odd(&self, cause: String) -> Error {
        Error::Malformed { remote: self.remote.to_string(), cause }
    }

    async fn hung_up(&mut self) -> Error {
        let remote = self.remote.to_string();
        match &mut self.line {
            Line::Ssh(shell) => {
                let said = timeout(self.limits.silence, shell.last_words()).await.unwrap_or_default();
                match said.as_str() {
                    "" => Error::Unreachable { remote, cause: "it hung up".to_owned() },
                    said => Error::Denied { remote, cause: format!("it says {said:?}") },
                }
            }
            Line::Https(_) => Error::Malformed { remote, cause: "an answer that ends too soon".to_owned() },
        }
    }
}

async fn chunk(body: &mut Incoming) -> Option<Result<Bytes, String>> {
    loop {
        match body.frame().await? {
            Err(error) => return Some(Err(error.to_string())),
            Ok(frame) => {
                if let Ok(data) = frame.into_data() {
                    return Some(Ok(data));
                }
            }
        }
    }
}

/// Reads what is left of an answer, so that the connection can be used again.
async fn drain(mut body: Incoming) {
    while let Some(Ok(_)) = body.frame().await {}
}

/// Asks for the greeting over https; on a redirect within the same host the repository's own path is taken from it.
async fn https(remote: &Remote, service: Service, access: &Access, network: &Network) -> Result<Line, Error> {
    let unusable = |cause: String| Error::Credentials { remote: remote.to_string(), cause };
    let http = match &access.authorities {
        Some(bundle) => network.http.trusting(bundle).map_err(|error| unusable(error.to_string()))?,
        None => network.http.clone(),
    };
    let authorization = authorization(remote, access, &http, network).await?;
    let mut base = remote.to_string();
    let mut moved = false;
    loop {
        let address: Uri = base.parse().map_err(|_| unusable("the URL cannot be used".to_owned()))?;
        let mut session = http.session(&address).map_err(|error| reached(remote, error))?;
        let question = format!("{base}/info/refs?service={}", service.as_str());
        let request = request(Method::GET, &question, service, authorization.as_ref(), Bytes::new())
            .map_err(|cause| Error::Malformed { remote: remote.to_string(), cause })?;
        let response = session.ask(request).await.map_err(|error| reached(remote, error))?;
        if response.status().is_redirection() && !moved {
            base = same_host(remote, &response)?;
            moved = true;
            continue;
        }
        let response = success(remote, service, response)?;
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if kind != Some(format!("application/x-{}-advertisement", service.as_str()).as_str()) {
            let cause = "a page instead of a repository; is the URL the one that `git clone` takes?".to_owned();
            return Err(Error::Malformed { remote: remote.to_string(), cause });
        }
        let answer = Some(response.into_body());
        return Ok(Line::Https(Box::new(Https { service, session, base, authorization, answer })));
    }
}

fn request(
    method: Method,
    url: &str,
    service: Service,
    authorization: Option<&HeaderValue>,
    body: Bytes,
) -> Result<Request<Bytes>, String> {
    let mut request = Request::builder().method(&method).uri(url).header("Git-Protocol", "version=2");
    if method == Method::POST {
        request = request
            .header(header::CONTENT_TYPE, format!("application/x-{}-request", service.as_str()))
            .header(header::ACCEPT, format!("application/x-{}-result", service.as_str()));
    }
    if let Some(authorization) = authorization {
        request = request.header(header::AUTHORIZATION, authorization);
    }
    request.body(body).map_err(|error| error.to_string())
}

/// What we show the host.
async fn authorization(
    remote: &Remote,
    access: &Access,
    http: &Http,
    network: &Network,
) -> Result<Option<HeaderValue>, Error> {
    let basic = |username: &str, password: &str| format!("Basic {}", STANDARD.encode(format!("{username}:{password}")));
    let words = match &access.proof {
        Proof::None | Proof::Key { .. } => return Ok(None),
        Proof::Basic { username, password } => basic(username, password.expose()),
        Proof::Bearer(token) => format!("Bearer {}", token.expose()),
        Proof::App(app) => {
            let api = crate::forge::github::api(remote);
            let token = network.tokens.get(http, &api, app, Timestamp::now()).await;
            let token = token.map_err(|cause| Error::Denied { remote: remote.to_string(), cause })?;
            basic("x-access-token", token.expose())
        }
    };
    let mut value = HeaderValue::try_from(words).map_err(|_| Error::Credentials {
        remote: remote.to_string(),
        cause: "they have characters that cannot be sent".to_owned(),
    })?;
    value.set_sensitive(true);
    Ok(Some(value))
}

/// The repository's address after a redirect, if it stays at the same host (SR4).
fn same_host(remote: &Remote, response: &Response<Incoming>) -> Result<String, Error> {
    let location =
        response.headers().get(header::LOCATION).and_then(|location| location.to_str().ok()).unwrap_or_default();
    let location = match location.strip_prefix('/') {
        Some(path) => {
            let mut own = Remote { path: String::new(), ..remote.clone() }.to_string();
            own.push_str(path);
            own
        }
        None => location.to_owned(),
    };
    let place = location.split(['?', '#']).next().unwrap_or_default();
    let found = place.strip_suffix("/info/refs").and_then(|base| Remote::parse(base).ok());
    match found {
        Some(found) if found.origin() == remote.origin() => Ok(found.to_string()),
        // Whatever stands behind the path stays unsaid.
        Some(_) | None => {
            let to = foreign::line(place.rsplit_once('@').map_or(place, |(_, rest)| rest));
            Err(Error::Redirected { remote: remote.to_string(), to: to.chars().take(200).collect() })
        }
    }
}

/// The response, if it is one of success.
fn success(remote: &Remote, service: Service, response: Response<Incoming>) -> Result<Response<Incoming>, Error> {
    let remote_name = remote.to_string();
    match response.status() {
        StatusCode::OK => Ok(response),
        StatusCode::UNAUTHORIZED => {
            Err(Error::Denied { remote: remote_name, cause: "it does not accept the credentials (401)".to_owned() })
        }
        StatusCode::FORBIDDEN => {
            let may = match service {
                Service::Fetch => "read it",
                Service::Push => "write to it",
            };
            Err(Error::Denied { remote: remote_name, cause: format!("the credentials may not {may} (403)") })
        }
        StatusCode::NOT_FOUND => Err(Error::Missing {
            remote: remote.host.clone(),
            what: format!("repository {}, or it is not shown to these credentials (404)", remote.path),
        }),
        status if status.is_redirection() => {
            same_host(remote, &response).and_then(|to| Err(Error::Redirected { remote: remote_name.clone(), to }))
        }
        status if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() => {
            Err(Error::Unreachable { remote: remote_name, cause: format!("it answers {status}") })
        }
        status => Err(Error::Malformed { remote: remote_name, cause: format!("the answer {status}") }),
    }
}

fn reached(remote: &Remote, error: client::Error) -> Error {
    let remote = remote.to_string();
    match error {
        client::Error::Untrusted { .. } => Error::Untrusted { remote, cause: error.to_string() },
        client::Error::Slow { allowed, .. } => Error::Slow { remote, allowed },
        client::Error::Address { .. }
        | client::Error::Unreachable { .. }
        | client::Error::Large { .. }
        | client::Error::Refused(_)
        | client::Error::Authorities(_) => Error::Unreachable { remote, cause: error.to_string() },
    }
}
