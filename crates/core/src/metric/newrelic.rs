//! A metric that New Relic answers, by NerdGraph.
//!
//! Never sends anything.

use std::{collections::BTreeMap, time::Duration};

use super::{Ask, Request, Response, Talk, entry, failed, started, web::fractional};
use crate::{
    analysis::expression::Val,
    api::NewRelicMetric,
    kubernetes::value::Value,
    model::{go_json, secret::Secret},
    value,
};

/// The Secret with the keys if none is named.
const SECRET: &str = "newrelic";
/// How many seconds the query may take if nothing is said.
const SECONDS: i64 = 5;
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How often a host that is busy or broken is asked.
const TRIES: usize = 4;

/// What is asked of NerdGraph.
const QUERY: &str = "query (
  $query: Nrql!, 
  $accountId: Int!,
  $timeout: Seconds!
)
{
  actor {
    account(id: $accountId) {
      nrql(query: $query, timeout: $timeout) {
        results
      }
    }
  }
}
";

/// An account, and how to log in.
struct Account {
    id: i64,
    key: Secret,
    url: String,
}

/// What to do next. Who is busy or broken is asked again, after a while.
pub fn next(talk: &Talk<'_>, newrelic: &NewRelicMetric) -> Ask {
    let profile = if newrelic.profile.is_empty() { SECRET } else { &newrelic.profile };
    let account = talk.own_secret(profile).and_then(|secret| account(secret).map_err(|said| talk.refused(said)));
    let account = match account {
        Ok(account) => account,
        Err(next) => return next,
    };
    let seconds = newrelic.timeout.unwrap_or(SECONDS);
    if seconds < 0 {
        return talk.failed("timeout value needs to be a positive value".to_owned());
    }
    let tries = talk.heard.answers.len();
    match talk.heard.answers.last() {
        None => Ask::Send(Box::new(ask(newrelic, &account, seconds, Duration::ZERO))),
        Some(answer) if is_worth_another_try(answer) && tries < TRIES => {
            let after = Duration::from_secs(1 << (tries - 1).min(2));
            Ask::Send(Box::new(ask(newrelic, &account, seconds, after)))
        }
        Some(Err(problem)) => talk.failed(problem.clone()),
        Some(Ok(answer)) => talk.known(match results(answer, tries) {
            Ok(results) => talk.judged(&Val::of_json(&results), go_json::any_text(&fractional(&results))),
            Err(problem) => failed(started(talk.now), problem, talk.now),
        }),
    }
}

fn is_worth_another_try(answer: &Result<Response, String>) -> bool {
    match answer {
        Err(_) => true,
        Ok(answer) => is_busy(answer.code),
    }
}

fn is_busy(code: u16) -> bool {
    code == 429 || (code >= 500 && code != 501)
}

/// The account that a Secret describes; the error is Argo Rollouts'.
fn account(secret: &Value) -> Result<Account, String> {
    let given = |key: &str| entry(secret, key).filter(|text| !text.is_empty());
    let (Some(id), Some(key)) = (given("account-id"), given("personal-api-key")) else {
        return Err("account ID or personal API key not found".to_owned());
    };
    let id = id.parse().map_err(|_| "could not parse account ID: it is no number".to_owned())?;
    let region = given("region").unwrap_or_default().to_lowercase();
    let at_home = match region.as_str() {
        "eu" => "https://api.eu.newrelic.com/graphql",
        "staging" => "https://staging-api.newrelic.com/graphql",
        // Whatever else is said means the first of the regions, as in Argo Rollouts.
        _ => "https://api.newrelic.com/graphql",
    };
    let url = given("base-url-nerdgraph").unwrap_or_else(|| at_home.to_owned());
    Ok(Account { id, key: Secret::new(key), url })
}

/// What to ask.
fn ask(newrelic: &NewRelicMetric, account: &Account, seconds: i64, after: Duration) -> Request {
    let variables = value!({"accountId": account.id, "query": newrelic.query.as_str(), "timeout": seconds});
    let body = value!({"query": QUERY, "variables": variables}).to_json();
    let request = Request::post(account.url.clone(), "application/json", body, TIMEOUT);
    Request { after, ..request.with("Api-Key", account.key.expose()) }
}

/// What goes beside the measurements: the query with its arguments filled in.
pub fn metadata(newrelic: &NewRelicMetric) -> BTreeMap<String, String> {
    let query = newrelic.query.clone();
    if query.is_empty() { BTreeMap::new() } else { [("ResolvedNewRelicQuery".to_owned(), query)].into() }
}

/// The rows of an answer: the only one, or all of them. The error is that of New Relic's own client.
fn results(response: &Response, tries: usize) -> Result<Value, String> {
    let code = response.code;
    if is_busy(code) {
        return Err(format!("New Relic answers {code}, giving up after {tries} attempt(s)"));
    }
    let body = response.json();
    let errors = body.as_ref().map(|body| body.list_at(&["errors"])).unwrap_or_default();
    let said: Vec<&str> = errors.iter().filter_map(|error| error.str_at(&["message"])).collect();
    match code {
        200..300 => {}
        401 => {
            let said = "Invalid credentials provided. Missing API key or an invalid API key was provided.";
            return Err(format!("401 response returned: {said}"));
        }
        404 => return Err("resource not found".to_owned()),
        code if said.is_empty() => return Err(format!("{code} response returned")),
        code => return Err(format!("{code} response returned: {}", said.join(", "))),
    }
    if !said.is_empty() {
        return Err(said.join(", "));
    }
    let body = body?;
    let rows = body.list_at(&["data", "actor", "account", "nrql", "results"]);
    match rows {
        [] => Err("no results returned from NRQL query".to_owned()),
        [row] if row.as_map().is_none_or(|row| row.is_empty()) => Err("no results returned from NRQL query".to_owned()),
        [row] => Ok(row.clone()),
        rows => Ok(Value::list(rows.iter().cloned())),
    }
}
