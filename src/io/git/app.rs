//! Tokens of GitHub Apps: a signed statement who we are, exchanged for a token that lives an hour.
//!
//! Tokens are kept until shortly before they end, and never longer than the process.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, header};
use jiff::{SignedDuration, Timestamp};
use ring::{
    rand::SystemRandom,
    signature::{RSA_PKCS1_SHA256, RsaKeyPair},
};
use serde::Deserialize;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, pem::PemObject};

use super::credentials::App;
use crate::{io::http::Http, model::secret::Secret};

/// Tokens that are still good.
#[derive(Default)]
pub struct Tokens(Mutex<HashMap<Whose, Token>>);

/// Whose token it is, at which API.
#[derive(PartialEq, Eq, Hash)]
struct Whose {
    api: String,
    app: String,
    installation: String,
    /// A digest of the key: who does not hold it gets no token that it was given for.
    key: [u8; 32],
}

/// A token, and when it ends.
#[derive(Clone)]
struct Token(Secret, Timestamp);

/// How long before its end a token is not used any more.
const MARGIN: SignedDuration = SignedDuration::from_mins(5);

impl Tokens {
    /// A token for an installation, from the host's API.
    pub async fn get(&self, http: &Http, api: &str, app: &App, now: Timestamp) -> Result<Secret, String> {
        let whose = Whose::of(api, app);
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&whose).cloned();
        if let Some(Token(token, end)) = known
            && end.duration_since(now) > MARGIN
        {
            return Ok(token);
        }
        let token = exchange(http, api, app, now).await?;
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Keys that are not used any more are forgotten with the last token that they got.
        tokens.retain(|_, Token(_, end)| *end > now);
        tokens.insert(whose, token.clone());
        Ok(token.0)
    }
}

impl Whose {
    fn of(api: &str, app: &App) -> Whose {
        let digest = ring::digest::digest(&ring::digest::SHA256, app.key.expose().as_bytes());
        let mut key = [0; 32];
        key.copy_from_slice(digest.as_ref());
        Whose { api: api.to_owned(), app: app.id.clone(), installation: app.installation.clone(), key }
    }
}

#[derive(Deserialize)]
struct Granted {
    token: String,
    expires_at: Timestamp,
}

async fn exchange(http: &Http, api: &str, app: &App, now: Timestamp) -> Result<Token, String> {
    let statement = statement(app, now)?;
    let mut bearer = HeaderValue::try_from(format!("Bearer {}", statement.expose())).map_err(|_| "odd statement")?;
    bearer.set_sensitive(true);
    let request = Request::builder()
        .method(Method::POST)
        .uri(format!("{api}/app/installations/{}/access_tokens", app.installation))
        .header(header::AUTHORIZATION, bearer)
        .header(header::ACCEPT, "application/vnd.github+json")
        .body(Bytes::new())
        .map_err(|error| error.to_string())?;
    let answer = http.send(request).await.map_err(|error| error.to_string())?;
    if answer.status() != StatusCode::CREATED {
        return Err(match answer.status() {
            StatusCode::UNAUTHORIZED => "the host does not accept the App's key".to_owned(),
            StatusCode::NOT_FOUND => "the App has no such installation".to_owned(),
            status => format!("the host answers {status} when asked for a token"),
        });
    }
    let granted: Granted =
        serde_json::from_slice(answer.body()).map_err(|_| "the host's answer holds no token".to_owned())?;
    Ok(Token(Secret::new(granted.token), granted.expires_at))
}

/// The statement who we are: issued a minute ago, for clocks that go differently, and good for nine.
fn statement(app: &App, now: Timestamp) -> Result<Secret, String> {
    let pair = key_pair(&app.key)?;
    let now = now.as_second();
    let claims = format!(r#"{{"iat":{},"exp":{},"iss":"{}"}}"#, now - 60, now + 540, app.id);
    let head = URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256","typ":"JWT"}"#);
    let signed = format!("{head}.{}", URL_SAFE_NO_PAD.encode(claims));
    let mut signature = vec![0; pair.public().modulus_len()];
    pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
        .map_err(|_| "signing failed".to_owned())?;
    Ok(Secret::new(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))))
}

fn key_pair(key: &Secret) -> Result<RsaKeyPair, String> {
    let unusable = "the App's private key is no RSA key in PEM".to_owned();
    let der = PrivateKeyDer::from_pem_slice(key.expose().as_bytes()).map_err(|_| unusable.clone())?;
    match &der {
        PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der()).map_err(|_| unusable),
        PrivateKeyDer::Pkcs8(der) => RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).map_err(|_| unusable),
        _ => Err(unusable),
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};

    use super::*;

    const KEY: &str = include_str!("testdata/app.pem");

    #[test]
    fn the_statement_is_signed_by_the_app() {
        let app = App { id: "42".into(), installation: "7".into(), key: Secret::new(KEY) };
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let statement = statement(&app, now).unwrap();
        let (signed, signature) = statement.expose().rsplit_once('.').unwrap();
        let (head, claims) = signed.split_once('.').unwrap();
        let decode = |text: &str| String::from_utf8(URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap();
        assert_eq!(decode(head), r#"{"alg":"RS256","typ":"JWT"}"#);
        assert_eq!(decode(claims), r#"{"iat":1699999940,"exp":1700000540,"iss":"42"}"#);
        let public = key_pair(&app.key).unwrap().public().as_ref().to_vec();
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, public);
        public.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
    }

    #[tokio::test]
    async fn sr4_a_token_is_for_who_holds_the_key_it_was_given_for() {
        let app = |key: &str| App { id: "42".into(), installation: "7".into(), key: Secret::new(key) };
        let (http, now) = (Http::new(None, crate::io::http::Limits::default()).unwrap(), Timestamp::UNIX_EPOCH);
        let (api, tokens) = ("https://api.git.test", Tokens::default());
        let end = now + SignedDuration::from_hours(1);
        let given = Token(Secret::new("token-of-the-victim"), end);
        tokens.0.lock().unwrap().insert(Whose::of(api, &app("key of the victim")), given);
        let own = tokens.get(&http, api, &app("key of the victim"), now).await.unwrap();
        assert_eq!(own.expose(), "token-of-the-victim");
        // The ids are no secret; a key that is none does not get as far as the network.
        let other = tokens.get(&http, api, &app("key of the attacker"), now).await;
        assert_eq!(other.err().as_deref(), Some("the App's private key is no RSA key in PEM"));
    }

    #[test]
    fn a_key_that_is_none_is_refused_without_being_shown() {
        for key in ["", "canary-secret", "-----BEGIN PRIVATE KEY-----\nY2FuYXJ5\n-----END PRIVATE KEY-----\n"] {
            let app = App { id: "42".into(), installation: "7".into(), key: Secret::new(key) };
            let error = statement(&app, Timestamp::UNIX_EPOCH).err().unwrap();
            assert_eq!(error, "the App's private key is no RSA key in PEM");
        }
    }
}
