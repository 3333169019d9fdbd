//! Tokens of workflows: who asks, proven by the signature of the issuer that a GitSource names.
//!
//! A token is checked against keys that are given; fetching them is another's. Only RS256 and ES256 count, whatever a token
//! says of itself, and a key counts for its own algorithm only. Never returns a token, nor a claim of one that failed.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use ring::signature::{ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;
use serde_json::Value as Json;
use thiserror::Error;

use crate::model::git_source::PlanAccess;

/// How far the clocks of issuer and daemon may differ.
const SKEW: SignedDuration = SignedDuration::from_secs(30);
/// The most bytes of a token.
const TOKEN_BYTES: usize = 16 << 10;
/// The most keys of an issuer that are kept.
const KEYS: usize = 64;

/// Why a token does not count: for the daemon's log, never for who sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TokenError {
    /// It is no signed JSON Web Token.
    #[error("it is no signed token")]
    Malformed,
    /// Its algorithm is not one that counts.
    #[error("its algorithm is neither RS256 nor ES256")]
    Algorithm,
    /// The issuer has no such key.
    #[error("its key is none of the issuer's")]
    UnknownKey,
    /// The signature is not of that key.
    #[error("its signature is wrong")]
    Signature,
    /// Another issuer.
    #[error("it is of another issuer")]
    Issuer,
    /// For somebody else.
    #[error("it is for another audience")]
    Audience,
    /// Too late, or too early.
    #[error("it is expired or not valid yet")]
    Time,
    /// Of another repository.
    #[error("it is of another repository")]
    Repository,
    /// Of a ref that is not allowed.
    #[error("it is of a ref that is not allowed")]
    Ref,
    /// It names no commit.
    #[error("it names no commit")]
    Commit,
}

/// What a token that counts says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workflow {
    /// The commit that the workflow runs for.
    pub commit: String,
    /// The ref that it runs for.
    pub reference: String,
}

/// A token that nobody has checked yet.
pub struct Token<'t> {
    algorithm: Algorithm,
    key: String,
    /// What is signed.
    signed: &'t str,
    signature: Vec<u8>,
    claims: Claims,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    Rs256,
    Es256,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: String,
    /// Extensions that must be understood: there are none that we do.
    crit: Option<Json>,
}

/// GitHub, Gitea and Forgejo say `repository` and `ref`, GitLab `project_path` and `ref_path`.
#[derive(Deserialize)]
struct Claims {
    iss: String,
    aud: Json,
    exp: i64,
    nbf: Option<i64>,
    #[serde(alias = "project_path", default)]
    repository: String,
    #[serde(rename = "ref", default)]
    reference: String,
    #[serde(default)]
    ref_path: String,
    #[serde(default)]
    sha: String,
}

impl<'t> Token<'t> {
    /// Takes a token apart.
    pub fn parse(text: &'t str) -> Result<Token<'t>, TokenError> {
        if text.len() > TOKEN_BYTES {
            return Err(TokenError::Malformed);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(TokenError::Malformed)?;
        let bytes = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Malformed);
        let header: Header = serde_json::from_slice(&bytes(header)?).map_err(|_| TokenError::Malformed)?;
        let algorithm = match header.alg.as_str() {
            "RS256" => Algorithm::Rs256,
            "ES256" => Algorithm::Es256,
            _ => return Err(TokenError::Algorithm),
        };
        if header.kid.is_empty() || header.crit.is_some() {
            return Err(TokenError::Malformed);
        }
        let claims: Claims = serde_json::from_slice(&bytes(claims)?).map_err(|_| TokenError::Malformed)?;
        Ok(Token { algorithm, key: header.kid, signed, signature: bytes(signature)?, claims })
    }

    /// Whether it claims to be of this issuer: otherwise there is no reason to ask that one for keys.
    pub fn claims_issuer(&self, issuer: &str) -> bool {
        self.claims.iss.trim_end_matches('/') == issuer
    }

    /// Checks everything. The signature comes first: nothing of a claim counts before it does.
    pub fn check(&self, keys: &Keys, access: &PlanAccess, now: Timestamp) -> Result<Workflow, TokenError> {
        self.check_signature(keys)?;
        let claims = &self.claims;
        if !self.claims_issuer(&access.issuer) {
            return Err(TokenError::Issuer);
        }
        let audiences = match &claims.aud {
            Json::Array(all) => all.iter().filter_map(Json::as_str).collect(),
            Json::String(one) => vec![one.as_str()],
            _ => Vec::new(),
        };
        if !audiences.contains(&access.audience.as_str()) {
            return Err(TokenError::Audience);
        }
        let time = |seconds: i64| Timestamp::from_second(seconds).map_err(|_| TokenError::Time);
        let is_early = match claims.nbf {
            Some(from) => time(from)?.duration_since(now) > SKEW,
            None => false,
        };
        if now.duration_since(time(claims.exp)?) > SKEW || is_early {
            return Err(TokenError::Time);
        }
        if claims.repository != access.repository {
            return Err(TokenError::Repository);
        }
        let reference = if claims.ref_path.is_empty() { &claims.reference } else { &claims.ref_path };
        if !access.allows_ref(reference) {
            return Err(TokenError::Ref);
        }
        if !is_commit(&claims.sha) {
            return Err(TokenError::Commit);
        }
        Ok(Workflow { commit: claims.sha.clone(), reference: reference.clone() })
    }

    fn check_signature(&self, keys: &Keys) -> Result<(), TokenError> {
        let fits = |key: &&Key| key.id == self.key && key.public.algorithm() == self.algorithm;
        let key = keys.0.iter().find(fits).ok_or(TokenError::UnknownKey)?;
        let checked = match &key.public {
            Public::Rsa { n, e } => RsaPublicKeyComponents { n, e }.verify(
                &RSA_PKCS1_2048_8192_SHA256,
                self.signed.as_bytes(),
                &self.signature,
            ),
            Public::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(self.signed.as_bytes(), &self.signature)
            }
        };
        checked.map_err(|_| TokenError::Signature)
    }
}

/// Whether this is the whole hash of a commit.
pub fn is_commit(text: &str) -> bool {
    [40, 64].contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// The keys of an issuer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys(Vec<Key>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    id: String,
    public: Public,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Public {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// The point, uncompressed.
    P256(Vec<u8>),
}

impl Public {
    fn algorithm(&self) -> Algorithm {
        match self {
            Public::Rsa { .. } => Algorithm::Rs256,
            Public::P256(_) => Algorithm::Es256,
        }
    }
}

impl Keys {
    /// Reads a JSON Web Key Set. Keys that are not for signatures, or of other kinds, are passed over.
    pub fn parse(bytes: &[u8]) -> Option<Keys> {
        let set: Json = serde_json::from_slice(bytes).ok()?;
        let keys = set.get("keys")?.as_array()?;
        Some(Keys(keys.iter().take(KEYS).filter_map(key).collect()))
    }
}

fn key(json: &Json) -> Option<Key> {
    let text = |name: &str| json.get(name).and_then(Json::as_str);
    let number = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?).ok();
    if text("use").is_some_and(|usage| usage != "sig") {
        return None;
    }
    let (public, algorithm) = match text("kty")? {
        "RSA" => (Public::Rsa { n: number("n")?, e: number("e")? }, "RS256"),
        "EC" if text("crv") == Some("P-256") => {
            let point: Vec<u8> = [vec![4], number("x")?, number("y")?].concat();
            (Public::P256(point), "ES256")
        }
        _ => return None,
    };
    if text("alg").is_some_and(|alg| alg != algorithm) {
        return None;
    }
    Some(Key { id: text("kid").filter(|id| !id.is_empty())?.to_owned(), public })
}

/// Where an issuer's keys are, by what it says of itself. They must be its own: of the same host.
pub fn keys_url(issuer: &str, discovery: &[u8]) -> Option<String> {
    let said: Json = serde_json::from_slice(discovery).ok()?;
    let text = |name: &str| said.get(name).and_then(Json::as_str);
    let url = text("jwks_uri")?;
    let origin = |url: &str| -> Option<String> {
        Some(url.strip_prefix("https://")?.split(['/', '?', '#']).next()?.to_lowercase())
    };
    let is_own = text("issuer")?.trim_end_matches('/') == issuer && origin(url)? == origin(issuer)?;
    (is_own && !url.contains('@')).then(|| url.to_owned())
}

#[cfg(test)]
mod tests;
