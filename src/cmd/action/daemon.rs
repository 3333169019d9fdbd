//! The plan of a running daemon: CI shows the workflow's own token and needs no access to the cluster.

use std::time::Duration;

use anyhow::{Context, anyhow};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use form_urlencoded::byte_serialize;
use git2::Repository;
use http::{Request, Response, header};
use serde_json::Value as Json;

use super::Asked;
use crate::{
    cmd::{comment::variable, remedied, run::proxy},
    forge::oidc::is_commit,
    io::http::{Http, Limits},
    workflow::StepReport,
};

/// What an answer may cost: somewhat more than a daemon gives.
const LIMITS: Limits = Limits { connect: Duration::from_secs(10), answer: Duration::from_secs(180), bytes: 32 << 20 };
/// How often a daemon that makes other plans is asked.
const TRIES: usize = 10;

/// Asks a daemon for the plan of the commit that this workflow runs for.
pub fn ask(url: &str, asked: &Asked, from: Option<&str>, to: &str) -> anyhow::Result<StepReport> {
    let url = url.trim_end_matches('/');
    let place = asked.source.as_deref().and_then(|source| source.split_once('/'));
    let plain = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-.".contains(c));
    let Some((namespace, name)) = place.filter(|(namespace, name)| plain(namespace) && plain(name)) else {
        return Err(remedied(
            anyhow!("the daemon plans one GitSource of its cluster, and `source` names none"),
            "give `source: NAMESPACE/NAME` with `daemon-url`",
        ));
    };
    if asked.path.is_some() || asked.live {
        return Err(remedied(
            anyhow!("`path` and `kubeconfig` are for plans that are made on the runner"),
            "leave them out: the daemon has the GitSource's own path and its own cluster",
        ));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(async {
        let http = Http::new(proxy()?, LIMITS).context("cannot prepare TLS")?;
        let token = token(&http, url).await?;
        let wanted = commit_of(to);
        let sha = claim(&token, "sha");
        if let Some(wanted) = wanted.filter(|wanted| sha.as_ref().is_some_and(|sha| sha != wanted)) {
            return Err(remedied(
                anyhow!("the workflow runs for {}, not for {wanted}", sha.unwrap_or_default()),
                "leave `to` out, and run on `pull_request` or `push`: the daemon plans the commit of the workflow's token",
            ));
        }
        let from = from.and_then(commit_of).map(|from| format!("?from={from}")).unwrap_or_default();
        let address = format!("{url}/plan/{namespace}/{name}{from}");
        for _ in 1..TRIES {
            let answer = send(&http, &address, &token).await?;
            if answer.status().as_u16() != 429 {
                return read(&answer, url, &token);
            }
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        read(&send(&http, &address, &token).await?, url, &token)
    })
}

/// The whole hash of a revision of the repository checked out.
fn commit_of(name: &str) -> Option<String> {
    let repository = Repository::discover(".").ok();
    let found = repository.as_ref().and_then(|repository| repository.revparse_single(name).ok());
    let found = found.and_then(|object| object.peel_to_commit().ok()).map(|commit| commit.id().to_string());
    found.or_else(|| is_commit(name).then(|| name.to_owned()))
}

async fn send(http: &Http, url: &str, token: &str) -> anyhow::Result<Response<Bytes>> {
    let request = Request::get(url)
        .header(header::AUTHORIZATION, format!("Bearer {token}"))
        .header(header::ACCEPT, "application/json")
        .body(Bytes::new())
        .with_context(|| format!("{url} is no address"))?;
    http.send(request).await.map_err(|error| {
        remedied(
            anyhow!("the daemon cannot be asked: {error}"),
            "see that `daemon-url` leads to what `tidegate run --webhooks` serves",
        )
    })
}

/// The token of this workflow for this audience.
async fn token(http: &Http, audience: &str) -> anyhow::Result<String> {
    let set = |name: &str| {
        variable(name).ok_or_else(|| {
            remedied(
                anyhow!("the runner gives this job no OpenID Connect token"),
                "the job needs `permissions: id-token: write`; workflows of forks get none",
            )
        })
    };
    let url = set("ACTIONS_ID_TOKEN_REQUEST_URL")?;
    let secret = set("ACTIONS_ID_TOKEN_REQUEST_TOKEN")?;
    let joint = if url.contains('?') { '&' } else { '?' };
    let audience: String = byte_serialize(audience.as_bytes()).collect();
    let failed = |why: String| anyhow!("the runner's token cannot be had: {why}");
    let request = Request::get(format!("{url}{joint}audience={audience}"))
        .header(header::AUTHORIZATION, format!("Bearer {secret}"))
        .header(header::ACCEPT, "application/json")
        .body(Bytes::new())
        .map_err(|error| failed(error.to_string()))?;
    let answer = http.send(request).await.map_err(|error| failed(error.to_string()))?;
    let body: Json = serde_json::from_slice(answer.body()).unwrap_or_default();
    match (answer.status().as_u16(), body["value"].as_str()) {
        (200, Some(token)) => Ok(token.to_owned()),
        (code, _) => Err(failed(format!("the host answers {code}"))),
    }
}

/// What the token says of the workflow; whether that is true is the daemon's to find out.
fn claim(token: &str, name: &str) -> Option<String> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Json = serde_json::from_slice(&claims).ok()?;
    claims[name].as_str().map(str::to_owned)
}

fn read(answer: &Response<Bytes>, url: &str, token: &str) -> anyhow::Result<StepReport> {
    let code = answer.status().as_u16();
    if code == 200 {
        return serde_json::from_slice(answer.body()).map_err(|error| {
            remedied(
                anyhow!("the daemon's answer is no plan: {error}"),
                "use the Action and the daemon of the same release",
            )
        });
    }
    let body: Json = serde_json::from_slice(answer.body()).unwrap_or_default();
    let message = body["error"].as_str().unwrap_or("it says nothing more").to_owned();
    let said = |name: &str| claim(token, name).unwrap_or_else(|| "nothing".to_owned());
    Err(match code {
        401 => remedied(
            anyhow!("{message}"),
            format!(
                "the GitSource needs `plan` with issuer {}, audience {url}, repository {} and a pattern for {} in refs",
                said("iss"),
                said("repository"),
                said("ref")
            ),
        ),
        404 => remedied(anyhow!("the daemon at {url} makes no plans"), "run one that does, with --webhooks"),
        _ => anyhow!("the daemon makes no plan: {message} ({code})"),
    })
}
