//! The keys of issuers: found by discovery, kept for a while, asked for again when a token names a key that is not known.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::Request;
use jiff::Timestamp;
use thiserror::Error;
use tokio::{sync::Mutex, time::timeout};

use super::http::{Http, Limits};
use crate::{
    forge::oidc::{Keys, Token, TokenError, Workflow, keys_url},
    model::git_source::PlanAccess,
};

/// How long keys are believed in.
const KEYS_LIFETIME: Duration = Duration::from_secs(3600);
/// How often an issuer is asked at most, whatever tokens name.
const REFRESH_INTERVAL: Duration = Duration::from_secs(2);
/// What asking an issuer may cost: whoever writes a GitSource names the host.
pub const ISSUER_LIMITS: Limits =
    Limits { connect: Duration::from_secs(5), answer: Duration::from_secs(5), bytes: 256 << 10 };
/// How long discovery and keys may take together: everybody with a token of that issuer waits for them.
const ISSUER_TIME: Duration = Duration::from_secs(10);
/// The most issuers whose keys are kept.
const ISSUERS: usize = 100;

/// Why nobody is let in.
#[derive(Debug, Error)]
pub enum Error {
    /// The token does not count.
    #[error("{0}")]
    Token(#[from] TokenError),
    /// The issuer's keys are not known.
    #[error("the keys of {issuer} cannot be read: {cause}")]
    Issuer {
        /// The issuer.
        issuer: String,
        /// Why not.
        cause: String,
    },
}

/// The keys of issuers.
pub struct Issuers {
    http: Http,
    /// Each behind a lock of its own: an issuer that answers slowly delays nobody else's tokens.
    known: std::sync::Mutex<HashMap<String, Arc<Mutex<Known>>>>,
}

#[derive(Default)]
struct Known {
    keys: Keys,
    /// When they were asked for, with or without success.
    asked: Option<Instant>,
    /// When they came; none if they never did.
    came: Option<Instant>,
}

impl Issuers {
    /// Asks through this client.
    pub fn new(http: Http) -> Issuers {
        Issuers { http, known: std::sync::Mutex::default() }
    }

    /// Checks a token against what a GitSource says.
    pub async fn check(&self, token: &str, access: &PlanAccess) -> Result<Workflow, Error> {
        let token = Token::parse(token)?;
        if !token.claims_issuer(&access.issuer) {
            return Err(TokenError::Issuer.into());
        }
        let keys = self.keys(&access.issuer, false).await?;
        match token.check(&keys, access, Timestamp::now()) {
            // The issuer may have a new one.
            Err(TokenError::UnknownKey) => {
                let keys = self.keys(&access.issuer, true).await?;
                Ok(token.check(&keys, access, Timestamp::now())?)
            }
            checked => Ok(checked?),
        }
    }

    async fn keys(&self, issuer: &str, anew: bool) -> Result<Keys, Error> {
        let entry = self.entry(issuer);
        let mut entry = entry.lock().await;
        let now = Instant::now();
        let is_within = |since: Option<Instant>, time| since.is_some_and(|since| now.duration_since(since) < time);
        let is_fresh = is_within(entry.came, KEYS_LIFETIME);
        let failed = |cause: String| Error::Issuer { issuer: issuer.to_owned(), cause };
        match (is_fresh, is_within(entry.asked, REFRESH_INTERVAL)) {
            (true, _) if !anew => return Ok(entry.keys.clone()),
            (true, true) => return Ok(entry.keys.clone()),
            (false, true) => return Err(failed("they could not be read a moment ago".to_owned())),
            (_, false) => {}
        }
        let fetched = match timeout(ISSUER_TIME, self.fetch(issuer)).await {
            Ok(fetched) => fetched,
            Err(_) => Err(format!("it took longer than {} s", ISSUER_TIME.as_secs())),
        };
        // Counted from the end: those who waited for a slow issuer meanwhile do not each wait for it again.
        entry.asked = Some(Instant::now());
        let keys = fetched.map_err(failed)?;
        (entry.keys, entry.came) = (keys.clone(), entry.asked);
        Ok(keys)
    }

    fn entry(&self, issuer: &str) -> Arc<Mutex<Known>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= ISSUERS && !known.contains_key(issuer) {
            known.clear();
        }
        known.entry(issuer.to_owned()).or_default().clone()
    }

    async fn fetch(&self, issuer: &str) -> Result<Keys, String> {
        let discovery = self.get(&format!("{issuer}/.well-known/openid-configuration")).await?;
        let url = keys_url(issuer, &discovery).ok_or("its discovery document names no keys of its own host")?;
        Keys::parse(&self.get(&url).await?).ok_or_else(|| "they are no set of keys".to_owned())
    }

    async fn get(&self, url: &str) -> Result<Bytes, String> {
        let request = Request::get(url).header("accept", "application/json").body(Bytes::new());
        let answer = self.http.send(request.map_err(|error| error.to_string())?).await;
        let answer = answer.map_err(|error| error.to_string())?;
        match answer.status().as_u16() {
            200 => Ok(answer.into_body()),
            code => Err(format!("{url} answers {code}")),
        }
    }
}
