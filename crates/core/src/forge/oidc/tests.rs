use ring::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaEncoding,
        RsaKeyPair,
    },
};
use serde_json::json;

use super::*;

const NOW: i64 = 1_790_000_000;
const SHA: &str = "0123456789abcdef0123456789abcdef01234567";

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// An issuer with one key.
struct Issuer {
    pair: EcdsaKeyPair,
    id: &'static str,
}

impl Issuer {
    fn new(id: &'static str) -> Issuer {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap();
        Issuer { pair, id }
    }

    fn keys(&self) -> Keys {
        let point = self.pair.public_key().as_ref();
        let key = json!({"kty": "EC", "crv": "P-256", "kid": self.id, "use": "sig", "alg": "ES256",
            "x": encode(&point[1..33]), "y": encode(&point[33..])});
        Keys::parse(json!({ "keys": [key] }).to_string().as_bytes()).unwrap()
    }

    fn token(&self, claims: &Json) -> String {
        let signed =
            format!("{}.{}", encode(json!({"alg": "ES256", "kid": self.id}).to_string()), encode(claims.to_string()));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", encode(signature))
    }
}

fn claims() -> Json {
    json!({"iss": "https://issuer.example", "aud": "https://tidegate.example", "exp": NOW + 300, "nbf": NOW - 10,
        "repository": "shop/deploy", "ref": "refs/pull/7/merge", "sha": SHA})
}

fn with(name: &str, value: impl Into<Json>) -> Json {
    let mut claims = claims();
    claims[name] = value.into();
    claims
}

fn access() -> PlanAccess {
    PlanAccess {
        issuer: "https://issuer.example".into(),
        audience: "https://tidegate.example".into(),
        repository: "shop/deploy".into(),
        refs: vec!["refs/pull/*/merge".into(), "refs/heads/main".into()],
    }
}

fn check(token: &str, keys: &Keys) -> Result<Workflow, TokenError> {
    Token::parse(token)?.check(keys, &access(), Timestamp::from_second(NOW).unwrap())
}

#[test]
fn a_token_counts_if_all_of_it_is_right() {
    let issuer = Issuer::new("one");
    let good = Workflow { commit: SHA.into(), reference: "refs/pull/7/merge".into() };
    assert_eq!(check(&issuer.token(&claims()), &issuer.keys()), Ok(good.clone()));
    let several = with("aud", json!(["other", "https://tidegate.example"]));
    assert_eq!(check(&issuer.token(&several), &issuer.keys()), Ok(good));
    let gitlab = json!({"iss": "https://issuer.example", "aud": "https://tidegate.example", "exp": NOW + 300,
        "project_path": "shop/deploy", "ref": "main", "ref_path": "refs/heads/main", "sha": SHA});
    assert_eq!(check(&issuer.token(&gitlab), &issuer.keys()).unwrap().reference, "refs/heads/main");
}

#[test]
fn a_claim_that_is_wrong_lets_nobody_in() {
    let issuer = Issuer::new("one");
    for (name, value, error) in [
        ("iss", json!("https://other.example"), TokenError::Issuer),
        ("iss", json!("https://issuer.example.evil"), TokenError::Issuer),
        ("aud", json!("https://tidegate.example/"), TokenError::Audience),
        ("aud", json!(null), TokenError::Audience),
        ("exp", json!(NOW - 60), TokenError::Time),
        ("nbf", json!(NOW + 60), TokenError::Time),
        ("exp", json!(i64::MAX), TokenError::Time),
        ("repository", json!("shop/other"), TokenError::Repository),
        ("repository", json!("Shop/deploy"), TokenError::Repository),
        ("ref", json!("refs/heads/other"), TokenError::Ref),
        ("ref", json!("refs/pull/7/merge/more"), TokenError::Ref),
        ("ref", json!("refs/pull//merge"), TokenError::Ref),
        ("ref", json!(""), TokenError::Ref),
        ("sha", json!("main"), TokenError::Commit),
    ] {
        let token = issuer.token(&with(name, value.clone()));
        assert_eq!(check(&token, &issuer.keys()), Err(error), "{name} {value}");
    }
    let mut without = claims();
    without.as_object_mut().unwrap().remove("exp");
    assert_eq!(check(&issuer.token(&without), &issuer.keys()), Err(TokenError::Malformed));
}

#[test]
fn only_a_signature_of_the_issuers_own_key_counts() {
    let (issuer, other) = (Issuer::new("one"), Issuer::new("one"));
    assert_eq!(check(&other.token(&claims()), &issuer.keys()), Err(TokenError::Signature));
    assert_eq!(check(&Issuer::new("two").token(&claims()), &issuer.keys()), Err(TokenError::UnknownKey));
    let token = issuer.token(&claims());
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let (header, _) = signed.split_once('.').unwrap();
    let forged = format!("{header}.{}.{signature}", encode(with("repository", "shop/other").to_string()));
    assert_eq!(check(&forged, &issuer.keys()), Err(TokenError::Signature));
}

#[test]
fn no_other_algorithm_counts() {
    let issuer = Issuer::new("one");
    let payload = encode(claims().to_string());
    let header = |alg: &str| encode(json!({"alg": alg, "kid": "one"}).to_string());
    for alg in ["none", "None", "HS256", "RS1", "ES384", ""] {
        let signed = format!("{}.{payload}", header(alg));
        // The public key as a shared secret: an old trick.
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, issuer.pair.public_key().as_ref());
        let forged = format!("{signed}.{}", encode(ring::hmac::sign(&key, signed.as_bytes())));
        assert_eq!(check(&forged, &issuer.keys()), Err(TokenError::Algorithm), "{alg}");
        assert_eq!(check(&format!("{signed}."), &issuer.keys()), Err(TokenError::Algorithm), "{alg}");
    }
    // An elliptic key is none for RSA.
    let crossed = format!("{}.{payload}.{}", header("RS256"), encode([0; 64]));
    assert_eq!(check(&crossed, &issuer.keys()), Err(TokenError::UnknownKey));
    for text in ["", ".", "..", "a.b.c", &"x".repeat(TOKEN_BYTES + 1)] {
        assert_eq!(check(text, &issuer.keys()), Err(TokenError::Malformed));
    }
}

#[test]
fn an_issuer_names_keys_of_its_own_host_only() {
    let said = |issuer: &str, keys: &str| json!({"issuer": issuer, "jwks_uri": keys}).to_string();
    let found = |text: String| keys_url("https://issuer.example", text.as_bytes());
    let own = "https://issuer.example/keys";
    assert_eq!(found(said("https://issuer.example", own)).as_deref(), Some(own));
    assert_eq!(found(said("https://issuer.example/", own)).as_deref(), Some(own));
    for (issuer, keys) in [
        ("https://other.example", own),
        ("https://issuer.example", "https://other.example/keys"),
        ("https://issuer.example", "http://issuer.example/keys"),
        ("https://issuer.example", "https://issuer.example@other.example/keys"),
        ("https://issuer.example", "https://issuer.example:8443/keys"),
    ] {
        assert_eq!(found(said(issuer, keys)), None, "{issuer} {keys}");
    }
}

#[test]
fn keys_for_other_uses_are_passed_over() {
    let key = |more: Json| {
        let mut key = json!({"kty": "EC", "crv": "P-256", "kid": "k", "x": encode([1; 32]), "y": encode([2; 32])});
        key.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Keys::parse(json!({ "keys": [key] }).to_string().as_bytes()).unwrap().0.len()
    };
    assert_eq!(key(json!({})), 1);
    for more in [
        json!({"use": "enc"}),
        json!({"kid": ""}),
        json!({"crv": "P-384"}),
        json!({"kty": "oct"}),
        json!({"alg": "ES384"}),
    ] {
        assert_eq!(key(more.clone()), 0, "{more}");
    }
    assert_eq!(Keys::parse(b"[]"), None);
}

/// A key as GitHub and Gitea sign with.
struct RsaIssuer(RsaKeyPair);

impl RsaIssuer {
    fn new(pkcs8: &[u8]) -> RsaIssuer {
        RsaIssuer(RsaKeyPair::from_pkcs8(pkcs8).unwrap())
    }

    fn keys(&self) -> Keys {
        let public: RsaPublicKeyComponents<Vec<u8>> = self.0.public().into();
        let key = json!({"kty": "RSA", "kid": "one", "use": "sig", "n": encode(public.n), "e": encode(public.e)});
        Keys::parse(json!({ "keys": [key] }).to_string().as_bytes()).unwrap()
    }

    fn token(&self, alg: &str, padding: &'static dyn RsaEncoding) -> String {
        let header = json!({"alg": alg, "kid": "one", "typ": "JWT"});
        let signed = format!("{}.{}", encode(header.to_string()), encode(claims().to_string()));
        let mut signature = vec![0; self.0.public().modulus_len()];
        self.0.sign(padding, &SystemRandom::new(), signed.as_bytes(), &mut signature).unwrap();
        format!("{signed}.{}", encode(signature))
    }
}

#[test]
fn a_token_signed_with_rsa_counts_for_its_own_key_and_padding() {
    let issuer = RsaIssuer::new(include_bytes!("../../../../../tests/whole/keys/issuer.pk8"));
    let other = RsaIssuer::new(include_bytes!("../../../../../tests/whole/keys/other.pk8"));
    let good = Workflow { commit: SHA.into(), reference: "refs/pull/7/merge".into() };
    assert_eq!(check(&issuer.token("RS256", &RSA_PKCS1_SHA256), &issuer.keys()), Ok(good));
    assert_eq!(check(&other.token("RS256", &RSA_PKCS1_SHA256), &issuer.keys()), Err(TokenError::Signature));
    assert_eq!(check(&issuer.token("RS256", &RSA_PSS_SHA256), &issuer.keys()), Err(TokenError::Signature));
    assert_eq!(check(&issuer.token("PS256", &RSA_PSS_SHA256), &issuer.keys()), Err(TokenError::Algorithm));
    assert_eq!(check(&issuer.token("ES256", &RSA_PKCS1_SHA256), &issuer.keys()), Err(TokenError::UnknownKey));
}
