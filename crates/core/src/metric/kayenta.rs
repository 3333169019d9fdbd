//! A metric that Kayenta judges: the configuration is looked up, the judgement begun, and asked for until it is there.
//!
//! Never sends anything.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{Ask, Request, Response, Talk, ago, failed, length, over, started};
use crate::{
    analysis::{Phase, Work, expression::Val},
    api::{KayentaMetric, KayentaScope, Measurement, ScopeDetail, Time},
    kubernetes::value::Value,
    value,
};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(15);
/// How long a judgement may take before somebody looks again.
const PATIENCE: SignedDuration = SignedDuration::from_secs(15);
/// The measurement's note of the judgement.
const EXECUTION: &str = "canaryExecutionId";

/// What to do next.
pub fn next(talk: &Talk<'_>, kayenta: &KayentaMetric) -> Ask {
    match talk.work {
        Work::Start => begin(talk, kayenta),
        Work::Resume(before) => go_on(talk, kayenta, before),
        // Kayenta goes on judging, but nobody waits for it. In Argo Rollouts the run would, for ever.
        Work::Terminate(before) => over(Measurement {
            phase: Phase::Inconclusive.as_str().to_owned(),
            finished_at: Some(Time::from(talk.now)),
            ..before.clone()
        }),
    }
}

fn begin(talk: &Talk<'_>, kayenta: &KayentaMetric) -> Ask {
    let send = |request: Request| Ask::Send(Box::new(request));
    let KayentaMetric { address, application, storage_account_name: storage, .. } = kayenta;
    match talk.heard.answers.as_slice() {
        [] => {
            let pairs = format!("application={application}&configurationAccountName={storage}");
            send(Request::get(format!("{address}/canaryConfig?{pairs}"), TIMEOUT))
        }
        [Err(problem)] => talk.failed(problem.clone()),
        [Ok(found)] => {
            let job = configuration(found, &kayenta.canary_config_name).and_then(|id| start(talk, kayenta, &id));
            job.map_or_else(|problem| talk.failed(problem), send)
        }
        [_, Err(_), ..] => talk.failed("Invalid Response".to_owned()),
        [_, Ok(answer), ..] => match execution(answer) {
            Err(problem) => talk.failed(problem),
            Ok(id) => talk.known(Measurement {
                phase: Phase::Running.as_str().to_owned(),
                metadata: [(EXECUTION.to_owned(), id)].into(),
                resume_at: Some(soon(talk.now)),
                ..started(talk.now)
            }),
        },
    }
}

fn soon(now: Timestamp) -> Time {
    Time::from(now.saturating_add(PATIENCE).unwrap_or(Timestamp::MAX))
}

/// The id of a configuration in the list of all; the error is Argo Rollouts'.
fn configuration(answer: &Response, name: &str) -> Result<String, String> {
    if answer.code != 200 {
        return Err(format!("Invalid Response: HTTP {}", answer.code));
    }
    let body = answer.json()?;
    let all = body.as_list().ok_or_else(|| "the answer is no list of configurations".to_owned())?;
    let found = all.iter().find(|one| one.str_at(&["name"]) == Some(name));
    let id = found.and_then(|one| one.str_at(&["id"]));
    id.map(str::to_owned).ok_or_else(|| "Canary config not found".to_owned())
}

/// The request that begins a judgement; names are put into the address as they are, as in Argo Rollouts.
fn start(talk: &Talk<'_>, kayenta: &KayentaMetric, id: &str) -> Result<Request, String> {
    let mut scopes = Value::object();
    for scope in &kayenta.scopes {
        scopes.set_at(&[scope.name.as_str()], self::scope(talk, kayenta, scope)?);
    }
    let thresholds = value!({"pass": kayenta.threshold.pass, "marginal": kayenta.threshold.marginal});
    let body = value!({"scopes": scopes, "thresholds": thresholds}).to_json();
    let url = format!(
        "{}/canary/{id}?application={}&metricsAccountName={}&configurationAccountName={}&storageAccountName={}",
        kayenta.address,
        kayenta.application,
        kayenta.metrics_account_name,
        kayenta.configuration_account_name,
        kayenta.storage_account_name,
    );
    Ok(Request::post(url, "application/json", body, TIMEOUT))
}

/// What is compared, as Kayenta wants it: times that are not given are those of the last interval, or of the whole run.
fn scope(talk: &Talk<'_>, kayenta: &KayentaMetric, scope: &KayentaScope) -> Result<Value, String> {
    let (control, experiment) = (&scope.control_scope, &scope.experiment_scope);
    let both = |name: &str, one: &str, other: &str| {
        let problem = || format!("controlScope.{name} and experimentScope.{name} must both be set or be empty");
        (one.is_empty() == other.is_empty()).then_some(()).ok_or_else(problem)
    };
    both("start", &control.start, &experiment.start)?;
    both("end", &control.end, &experiment.end)?;
    let print = |moment: Timestamp| Time::from(moment).to_string();
    let start = match (control.start.is_empty(), kayenta.lookback) {
        (false, _) => None,
        (true, true) => Some(print(talk.run.status.started_at.map_or(talk.now, Timestamp::from))),
        (true, false) => {
            let interval = &talk.metric.interval;
            let back = length(interval).map_err(|problem| format!("Invalid duration \"{interval}\": {problem}"))?;
            Some(print(ago(talk.now, back)))
        }
    };
    let end = control.end.is_empty().then(|| print(talk.now));
    let side = |side: &ScopeDetail| {
        value!({
            "scope": side.scope.as_str(),
            "location": side.region.as_str(),
            "step": side.step,
            "start": start.as_deref().unwrap_or(&side.start),
            "end": end.as_deref().unwrap_or(&side.end),
        })
    };
    Ok(value!({"controlScope": side(control), "experimentScope": side(experiment)}))
}

/// The id of a judgement that has begun; the error is Argo Rollouts'.
fn execution(answer: &Response) -> Result<String, String> {
    if answer.code != 200 {
        return Err("Invalid Response".to_owned());
    }
    let body = answer.json()?;
    let id = Val::of_json(body.get(EXECUTION).unwrap_or(&Value::Null)).print();
    if id.is_empty() { Err("Invalid canaryExecutionId".to_owned()) } else { Ok(id) }
}

fn go_on(talk: &Talk<'_>, kayenta: &KayentaMetric, before: &Measurement) -> Ask {
    let problem = |said: String| over(failed(before.clone(), said, talk.now));
    match talk.heard.answers.as_slice() {
        [] => {
            let id = before.metadata.get(EXECUTION).map(String::as_str).unwrap_or_default();
            Ask::Send(Box::new(Request::get(format!("{}/canary/{id}", kayenta.address), TIMEOUT)))
        }
        [Err(_), ..] => problem("Invalid Response".to_owned()),
        [Ok(answer), ..] => match score(answer) {
            Err(said) => problem(said),
            Ok(None) => over(Measurement { resume_at: Some(soon(talk.now)), ..before.clone() }),
            Ok(Some(score)) => {
                let phase = match score {
                    score if score >= kayenta.threshold.pass => Phase::Successful,
                    score if score >= kayenta.threshold.marginal => Phase::Inconclusive,
                    _ => Phase::Failed,
                };
                over(Measurement {
                    phase: phase.as_str().to_owned(),
                    value: score.to_string(),
                    finished_at: Some(Time::from(talk.now)),
                    ..before.clone()
                })
            }
        },
    }
}

/// The score of a judgement, cut to a whole number, if it is complete; the error is Argo Rollouts'.
fn score(answer: &Response) -> Result<Option<i64>, String> {
    if answer.code != 200 {
        return Err("Invalid Response".to_owned());
    }
    let body = answer.json()?;
    let expected = |path: &str, found: &Value, wanted: &str| {
        let found = Val::of_json(found);
        format!("{path} accessor error: {} is of the type {}, expected {wanted}", found.print(), found.type_name())
    };
    let complete = reach(&body, &["complete"])?.ok_or_else(|| "Missing Complete Status".to_owned())?;
    if !complete.as_bool().ok_or_else(|| expected(".complete", complete, "bool"))? {
        return Ok(None);
    }
    let path = ["result", "judgeResult", "score", "score"];
    let score = reach(&body, &path)?.ok_or_else(|| "Missing Score".to_owned())?;
    let number = score.as_float().ok_or_else(|| expected(&format!(".{}", path.join(".")), score, "float64"))?;
    Ok(Some(number as i64))
}

/// What is at a path, if anything is; the error is that something on the way is no map.
fn reach<'v>(value: &'v Value, path: &[&str]) -> Result<Option<&'v Value>, String> {
    let mut at = value;
    for (depth, step) in path.iter().enumerate() {
        if at.is_null() {
            return Ok(None);
        }
        if at.as_map().is_none() {
            let (path, found) = (path[..=depth].join("."), Val::of_json(at));
            let (print, kind) = (found.print(), found.type_name());
            return Err(format!(
                ".{path} accessor error: {print} is of the type {kind}, expected map[string]interface{{}}"
            ));
        }
        match at.get(step) {
            None => return Ok(None),
            Some(next) => at = next,
        }
    }
    Ok(Some(at))
}
