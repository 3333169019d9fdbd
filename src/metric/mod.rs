//! Measuring: for each provider what to ask, and what the answer means. One leaf per provider.
//!
//! Never asks: requests are values, and `io` carries them out.

pub mod job;
pub mod prometheus;
pub mod web;

use std::{collections::BTreeMap, fmt, time::Duration};

use base64::Engine;
use jiff::Timestamp;

use crate::{
    analysis::{Judgement, Phase, Work, expression::Val, judge},
    api::{AnalysisRun, Authentication, Measurement, Metric, SecretKeyRef, Time},
    kubernetes::value::Value,
    model::secret::Secret,
};

/// What is to be done for a measurement.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// Create this Job.
    CreateJob(Value),
    /// Look at this Job.
    LookAtJob {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// Delete this Job.
    DeleteJob {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// Send this request.
    Send(Box<Request>),
    /// Nothing: this is the measurement.
    Known(Measurement),
}

/// A request on the web. What it carries may be secret, and does not show.
#[derive(Clone, PartialEq)]
pub struct Request {
    /// `GET`, `POST` or `PUT`
    pub method: String,
    /// The address.
    pub url: String,
    /// Headers to send.
    pub headers: Vec<(String, String)>,
    /// What to send.
    pub body: Vec<u8>,
    /// How long the answer may take.
    pub timeout: Duration,
    /// Whether the certificate is not looked at.
    pub insecure: bool,
    /// Who gives out the token to send along, if one is needed.
    pub oauth2: Option<OAuth2>,
    /// What to send instead where the method is not known.
    pub otherwise: Option<Box<Request>>,
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.url.split(['?', '#']).next().unwrap_or_default();
        write!(f, "{} {}", self.method, address.rsplit('@').next().unwrap_or_default())
    }
}

/// Who gives out a token to whom.
#[derive(Debug, Clone, PartialEq)]
pub struct OAuth2 {
    /// Where.
    pub url: String,
    /// Who asks.
    pub id: String,
    /// How that is known.
    pub secret: Secret,
    /// What for.
    pub scopes: Vec<String>,
}

/// The answer to a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Response {
    /// Its code.
    pub code: u16,
    /// What came with it.
    pub body: Vec<u8>,
}

/// Who gives out a token, if anybody is named. The error is Argo Rollouts'.
fn oauth2(authentication: &Authentication) -> Result<Option<OAuth2>, String> {
    let given = &authentication.oauth2;
    if given.token_url.is_empty() {
        return Ok(None);
    }
    if given.client_id.is_empty() || given.client_secret.is_empty() {
        return Err("missing mandatory parameter in metric for OAuth2 setup".to_owned());
    }
    Ok(Some(OAuth2 {
        url: given.token_url.clone(),
        id: given.client_id.clone(),
        secret: Secret::new(given.client_secret.as_str()),
        scopes: given.scopes.clone(),
    }))
}

/// What the operator of the engine says about measuring.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Where Jobs run.
    pub jobs: job::Place,
    /// Where Prometheus is, for metrics that do not say.
    pub prometheus: Option<String>,
}

/// What to do for a measurement of a metric, everything filled in.
pub fn ask(run: &AnalysisRun, metric: &Metric, work: &Work, settings: &Settings, now: Timestamp) -> Ask {
    if let Some(job) = &metric.provider.job {
        let before = match work {
            Work::Start => return Ask::CreateJob(job::build(run, metric, job, &settings.jobs)),
            Work::Resume(before) | Work::Terminate(before) => before,
        };
        return match (job::of(run, before), work) {
            (Err(problem), _) => Ask::Known(failed(before.clone(), problem, now)),
            (Ok((namespace, name)), Work::Terminate(_)) => Ask::DeleteJob { namespace, name },
            (Ok((namespace, name)), Work::Start | Work::Resume(_)) => Ask::LookAtJob { namespace, name },
        };
    }
    let request = match (&metric.provider.web, &metric.provider.prometheus) {
        (Some(web), _) => Some(web::ask(web)),
        (None, Some(metric)) => Some(prometheus::ask(metric, settings.prometheus.as_deref(), now)),
        (None, None) => None,
    };
    match (work, request) {
        (Work::Start, Some(Ok(request))) => Ask::Send(Box::new(request)),
        (Work::Start, Some(Err(problem))) => Ask::Known(failed(started(now), problem, now)),
        (Work::Start, None) => {
            let problem = format!("metrics of {} cannot be measured by this version", provider(metric));
            Ask::Known(failed(started(now), problem, now))
        }
        // All others are over as soon as they have begun.
        (Work::Resume(before) | Work::Terminate(before), _) => {
            Ask::Known(failed(before.clone(), "the measurement was begun and never finished".to_owned(), now))
        }
    }
}

/// What the answer to a request means; the error is why there was none.
pub fn answered(metric: &Metric, answer: Result<Response, String>, now: Timestamp) -> Measurement {
    let response = match answer {
        Ok(response) => response,
        Err(problem) => return failed(started(now), problem, now),
    };
    match &metric.provider.web {
        Some(web) => web::read(metric, web, &response, now),
        None => prometheus::read(metric, &response, now),
    }
}

/// What a provider adds to the results of a metric.
pub fn metadata(metric: &Metric) -> BTreeMap<String, String> {
    metric.provider.prometheus.as_ref().map(prometheus::metadata).unwrap_or_default()
}

/// A measurement whose value is known and judged.
fn judged(metric: &Metric, begun: Measurement, result: &Val, text: String, now: Timestamp) -> Measurement {
    let Judgement { phase, message } = judge(metric, result, now);
    let value = if phase == Phase::Error { String::new() } else { text };
    Measurement { phase: phase.as_str().to_owned(), message, value, finished_at: Some(Time::from(now)), ..begun }
}

/// A measurement that could not be made.
pub fn failed(measurement: Measurement, problem: String, now: Timestamp) -> Measurement {
    Measurement {
        phase: Phase::Error.as_str().to_owned(),
        message: problem,
        finished_at: Some(Time::from(now)),
        ..measurement
    }
}

/// A measurement that begins now.
pub fn started(now: Timestamp) -> Measurement {
    Measurement { started_at: Some(Time::from(now)), ..Measurement::default() }
}

/// The name of the provider of a metric, as Argo Rollouts calls it.
pub fn provider(metric: &Metric) -> &'static str {
    let provider = &metric.provider;
    let named = [
        (provider.prometheus.is_some(), "Prometheus"),
        (provider.job.is_some(), "Job"),
        (provider.kayenta.is_some(), "Kayenta"),
        (provider.web.is_some(), "Web"),
        (provider.datadog.is_some(), "Datadog"),
        (provider.wavefront.is_some(), "Wavefront"),
        (provider.new_relic.is_some(), "NewRelic"),
        (provider.cloud_watch.is_some(), "CloudWatch"),
        (provider.graphite.is_some(), "Graphite"),
        (provider.influxdb.is_some(), "Influxdb"),
        (provider.skywalking.is_some(), "SkyWalking"),
        (!provider.plugin.is_empty(), "Plugin"),
    ];
    named.into_iter().find(|(is_named, _)| *is_named).map_or("Unknown Provider", |(_, name)| name)
}

/// The value of a key of a Secret. The error is Argo Rollouts'.
pub fn secret_value(secret: &Value, wanted: &SecretKeyRef) -> Result<String, String> {
    let missing = || format!("key '{}' does not exist in secret '{}'", wanted.key, wanted.name);
    let encoded = secret.str_at(&["data", &wanted.key]).ok_or_else(missing)?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).map_err(|_| missing())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{api, value};

    #[test]
    fn a_provider_without_a_leaf_is_named_in_an_error() {
        let metric: Metric = api::read(&value!({"name": "m", "provider": {"datadog": {"query": "q"}}})).object;
        let now = Timestamp::UNIX_EPOCH;
        let asked = ask(&AnalysisRun::default(), &metric, &Work::Start, &Settings::default(), now);
        let Ask::Known(measurement) = asked else { panic!("{asked:?}") };
        assert_eq!(measurement.phase, "Error");
        assert_eq!(measurement.message, "metrics of Datadog cannot be measured by this version");
    }

    #[test]
    fn a_request_does_not_show_what_it_carries() {
        let web = value!({
            "url": "https://user:canary-secret@host/path?key=canary-secret",
            "method": "POST",
            "body": "canary-secret",
            "headers": [{"key": "Authorization", "value": "canary-secret"}],
            "authentication": {"oauth2": {"tokenUrl": "t", "clientId": "i", "clientSecret": "canary-secret"}},
        });
        let request = web::ask(&api::read(&web).object).unwrap();
        assert_eq!(format!("{:?}", Ask::Send(Box::new(request))), "Send(POST host/path)");
    }

    #[test]
    fn a_secret_has_keys() {
        let secret = value!({"data": {"k": "dg=="}});
        let wanted = |key: &str| SecretKeyRef { name: "s".into(), key: key.into() };
        assert_eq!(secret_value(&secret, &wanted("k")), Ok("v".into()));
        assert_eq!(secret_value(&secret, &wanted("x")), Err("key 'x' does not exist in secret 's'".into()));
    }
}
