//! Webhooks: proven first, read then, and only ever a hint to look at a repository that is configured anyway.
//!
//! Every scheme is checked over the raw bytes in constant time, and what was heard a moment ago is not heard again. No field
//! of a payload is trusted: a hint names a repository and perhaps a reference, and the worst a lie can do is a fetch that
//! finds nothing new. Never answers, never fetches.

use std::collections::VecDeque;

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, header};
use jiff::{SignedDuration, Timestamp};
use ring::{digest, hmac};
use serde::Deserialize;

use crate::model::{remote::Remote, secret::Secret};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // named as they call themselves
pub enum Sender {
    GitHub,
    GitLab,
    /// Gitea or Forgejo.
    Gitea,
    /// Bitbucket, in the cloud or not.
    Bitbucket,
    AzureDevOps,
    /// Anybody with the secret.
    Generic,
}

/// Why a message is not heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It has no proof that we know.
    Unsigned,
    /// Its proof is wrong.
    Wrong,
    /// It was signed too long ago, or too far ahead.
    Stale,
    /// It was heard a moment ago.
    Repeated,
}

/// How far a signed time may be from ours.
const TOLERANCE: SignedDuration = SignedDuration::from_mins(5);
/// How long a message is remembered; and how many are.
const REMEMBERED: SignedDuration = SignedDuration::from_mins(10);
const MOST: usize = 4096;

/// The messages of the last minutes.
#[derive(Debug, Clone, Default)]
pub struct Heard(VecDeque<([u8; 32], Timestamp)>);

impl Heard {
    /// Whether a message is new; it is not from then on.
    fn first(&mut self, message: &[&[u8]], now: Timestamp) -> bool {
        while self.0.front().is_some_and(|(_, at)| now.duration_since(*at) > REMEMBERED) || self.0.len() >= MOST {
            self.0.pop_front();
        }
        let mut context = digest::Context::new(&digest::SHA256);
        message.iter().for_each(|part| context.update(part));
        let mut print = [0; 32];
        print.copy_from_slice(context.finish().as_ref());
        if self.0.iter().any(|(known, _)| *known == print) {
            return false;
        }
        self.0.push_back((print, now));
        true
    }
}

/// Checks that a message comes from somebody who has the secret, before anything in it is read.
pub fn verify(
    headers: &HeaderMap,
    body: &[u8],
    secret: &Secret,
    heard: &mut Heard,
    now: Timestamp,
) -> Result<Sender, Refusal> {
    if secret.is_empty() {
        return Err(Refusal::Unsigned);
    }
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let key = || hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
    let signed = |given: Option<&str>| proves(&key(), body, given.ok_or(Refusal::Unsigned)?);
    let prefixed = |name: &str| signed(text(name).map(|given| given.strip_prefix("sha256=").unwrap_or("")));
    // Gitea and Forgejo also send the names of GitHub and Gogs: they are asked first.
    let sender = if headers.contains_key("x-forgejo-event") || headers.contains_key("x-forgejo-signature") {
        signed(text("x-forgejo-signature"))?;
        Sender::Gitea
    } else if headers.contains_key("x-gitea-event") {
        signed(text("x-gitea-signature"))?;
        Sender::Gitea
    } else if let Some(given) = text("webhook-signature") {
        standard(text("webhook-id"), text("webhook-timestamp"), given, body, secret, now)?;
        Sender::GitLab
    } else if headers.contains_key("x-gitlab-event") {
        same(secret, text("x-gitlab-token").ok_or(Refusal::Unsigned)?)?;
        Sender::GitLab
    } else if headers.contains_key("x-event-key") {
        prefixed("x-hub-signature")?;
        Sender::Bitbucket
    } else if headers.contains_key("x-github-event") {
        prefixed("x-hub-signature-256")?;
        Sender::GitHub
    } else if let Some(given) = text("x-signature") {
        generic(given, body, secret)?;
        Sender::Generic
    } else if let Some(given) = text(header::AUTHORIZATION.as_str()) {
        basic(given, secret)?;
        Sender::AzureDevOps
    } else {
        return Err(Refusal::Unsigned);
    };
    // Only what is proven counts: a name of the delivery beside the body could be changed at will.
    let id = if headers.contains_key("webhook-signature") { text("webhook-id").unwrap_or_default() } else { "" };
    if heard.first(&[id.as_bytes(), b"\n", body], now) { Ok(sender) } else { Err(Refusal::Repeated) }
}

/// Compares a digest in hexadecimal digits, in constant time.
fn proves(key: &hmac::Key, body: &[u8], given: &str) -> Result<(), Refusal> {
    let given = hex(given).ok_or(Refusal::Wrong)?;
    hmac::verify(key, body, &given).map_err(|_| Refusal::Wrong)
}

fn hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || text.is_empty() {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    text.as_bytes().chunks(2).map(|pair| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8)).collect()
}

/// Compares secrets in constant time: by what each would sign.
fn same(secret: &Secret, given: &str) -> Result<(), Refusal> {
    let key = |text: &str| hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes());
    let tag = hmac::sign(&key(given), b"the same?");
    hmac::verify(&key(secret.expose()), b"the same?", tag.as_ref()).map_err(|_| Refusal::Wrong)
}

/// The scheme of Standard Webhooks, which GitLab's signing tokens use: name, time and body are signed.
fn standard(
    id: Option<&str>,
    time: Option<&str>,
    given: &str,
    body: &[u8],
    secret: &Secret,
    now: Timestamp,
) -> Result<(), Refusal> {
    let (Some(id), Some(time)) = (id, time) else { return Err(Refusal::Unsigned) };
    let bytes = match secret.expose().strip_prefix("whsec_") {
        Some(encoded) => STANDARD.decode(encoded).map_err(|_| Refusal::Wrong)?,
        None => secret.expose().as_bytes().to_vec(),
    };
    let key = hmac::Key::new(hmac::HMAC_SHA256, &bytes);
    let message = [id.as_bytes(), b".", time.as_bytes(), b".", body].concat();
    let proven = given.split(' ').filter_map(|one| STANDARD.decode(one.strip_prefix("v1,")?).ok());
    if !proven.into_iter().any(|tag| hmac::verify(&key, &message, &tag).is_ok()) {
        return Err(Refusal::Wrong);
    }
    let time = time.parse().ok().and_then(|seconds| Timestamp::from_second(seconds).ok()).ok_or(Refusal::Stale)?;
    if now.duration_since(time).abs() > TOLERANCE { Err(Refusal::Stale) } else { Ok(()) }
}

/// `X-Signature: sha256=<hex>`, or sha512.
fn generic(given: &str, body: &[u8], secret: &Secret) -> Result<(), Refusal> {
    let (name, digits) = given.split_once('=').ok_or(Refusal::Wrong)?;
    let algorithm = match name {
        "sha256" => hmac::HMAC_SHA256,
        "sha512" => hmac::HMAC_SHA512,
        _ => return Err(Refusal::Wrong),
    };
    proves(&hmac::Key::new(algorithm, secret.expose().as_bytes()), body, digits)
}

/// A password; whose it is does not matter.
fn basic(given: &str, secret: &Secret) -> Result<(), Refusal> {
    let encoded = given.strip_prefix("Basic ").ok_or(Refusal::Unsigned)?;
    let decoded = STANDARD.decode(encoded.trim()).map_err(|_| Refusal::Wrong)?;
    let decoded = String::from_utf8(decoded).map_err(|_| Refusal::Wrong)?;
    same(secret, decoded.split_once(':').ok_or(Refusal::Wrong)?.1)
}

/// What a message hints at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hint {
    /// How the repository is called, in any of its ways.
    pub urls: Vec<String>,
    /// Which references moved; any, if none is named.
    pub references: Vec<String>,
}

impl Hint {
    /// Whether it may be about a repository. A hint without a name is about the one it was sent for.
    pub fn concerns(&self, remote: &Remote) -> bool {
        self.urls.is_empty() || self.urls.iter().filter_map(|url| read_url(url)).any(|url| url.same_repository(remote))
    }
}

/// A URL as hosts write them, with `git@host:path` among them.
fn read_url(url: &str) -> Option<Remote> {
    if let Ok(remote) = Remote::parse(url) {
        return Some(remote);
    }
    // Azure DevOps names the organisation as a user.
    if let Some((user, rest)) = url.strip_prefix("https://").and_then(|rest| rest.split_once('@'))
        && !user.contains('/')
    {
        return Remote::parse(&format!("https://{rest}")).ok();
    }
    let (host, path) = url.split_once(':')?;
    Remote::parse(&format!("ssh://{host}/{}", path.trim_start_matches('/'))).ok()
}

/// What a proven message hints at; `None` if it is about something else than a push.
pub fn hint(sender: Sender, headers: &HeaderMap, body: &[u8]) -> Result<Option<Hint>, String> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let form = text("content-type").starts_with("application/x-www-form-urlencoded");
    let decoded;
    let body = if form {
        let payload = form_urlencoded::parse(body).find(|(name, _)| name == "payload");
        decoded = payload.map(|(_, payload)| payload.into_owned()).unwrap_or_default();
        decoded.as_bytes()
    } else {
        body
    };
    let event = match sender {
        Sender::GitHub => text("x-github-event"),
        Sender::Gitea => match text("x-forgejo-event") {
            "" => text("x-gitea-event"),
            event => event,
        },
        Sender::GitLab => text("x-gitlab-event"),
        Sender::Bitbucket => text("x-event-key"),
        Sender::AzureDevOps | Sender::Generic => "",
    };
    match (sender, event) {
        (Sender::GitHub | Sender::Gitea, "push" | "create" | "delete") => {
            let push: Push = read(body)?;
            let names = [push.repository.clone_url, push.repository.ssh_url, push.repository.html_url];
            Ok(Some(Hint { urls: names.into_iter().flatten().collect(), references: push.r#ref.into_iter().collect() }))
        }
        (Sender::GitLab, "Push Hook" | "Tag Push Hook" | "System Hook") => {
            let push: GitLabPush = read(body)?;
            let names = [push.project.git_http_url, push.project.git_ssh_url, push.project.web_url];
            Ok(Some(Hint { urls: names.into_iter().flatten().collect(), references: push.r#ref.into_iter().collect() }))
        }
        (Sender::Bitbucket, "repo:push" | "repo:refs_changed") => {
            let push: BitbucketPush = read(body)?;
            let links = push.repository.links;
            let urls = links.clone.into_iter().chain(links.html).map(|link| link.href).collect();
            Ok(Some(Hint { urls, references: push.changes.into_iter().map(|change| change.r#ref.id).collect() }))
        }
        (Sender::AzureDevOps, _) => {
            let push: AzurePush = read(body)?;
            if push.event_type != "git.push" {
                return Ok(None);
            }
            let references = push.resource.ref_updates.into_iter().map(|update| update.name).collect();
            Ok(Some(Hint { urls: push.resource.repository.remote_url.into_iter().collect(), references }))
        }
        (Sender::Generic, _) => {
            // Anything will do, also nothing: the proof alone says that somebody wants us to look.
            let push: GenericPush = read(body).unwrap_or_default();
            Ok(Some(Hint { urls: push.url.into_iter().collect(), references: push.r#ref.into_iter().collect() }))
        }
        (Sender::GitHub | Sender::Gitea | Sender::GitLab | Sender::Bitbucket, _) => Ok(None),
    }
}

fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(body)
        .map_err(|error| format!("the payload cannot be read at line {}, column {}", error.line(), error.column()))
}

#[derive(Deserialize)]
struct Push {
    r#ref: Option<String>,
    repository: PushRepository,
}

#[derive(Deserialize)]
struct PushRepository {
    clone_url: Option<String>,
    ssh_url: Option<String>,
    html_url: Option<String>,
}

#[derive(Deserialize)]
struct GitLabPush {
    r#ref: Option<String>,
    project: GitLabProject,
}

#[derive(Deserialize)]
struct GitLabProject {
    git_http_url: Option<String>,
    git_ssh_url: Option<String>,
    web_url: Option<String>,
}

#[derive(Deserialize)]
struct BitbucketPush {
    repository: BitbucketRepository,
    /// Only of the one that is not in the cloud.
    #[serde(default)]
    changes: Vec<BitbucketChange>,
}

#[derive(Deserialize)]
struct BitbucketRepository {
    #[serde(default)]
    links: BitbucketLinks,
}

#[derive(Deserialize, Default)]
struct BitbucketLinks {
    #[serde(default)]
    clone: Vec<Link>,
    html: Option<Link>,
}

#[derive(Deserialize)]
struct Link {
    href: String,
}

#[derive(Deserialize)]
struct BitbucketChange {
    r#ref: BitbucketReference,
}

#[derive(Deserialize)]
struct BitbucketReference {
    id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AzurePush {
    event_type: String,
    #[serde(default)]
    resource: AzureResource,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct AzureResource {
    #[serde(default)]
    ref_updates: Vec<AzureUpdate>,
    #[serde(default)]
    repository: AzureRepository,
}

#[derive(Deserialize)]
struct AzureUpdate {
    name: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct AzureRepository {
    remote_url: Option<String>,
}

#[derive(Deserialize, Default)]
struct GenericPush {
    url: Option<String>,
    r#ref: Option<String>,
}

#[cfg(test)]
mod tests;
