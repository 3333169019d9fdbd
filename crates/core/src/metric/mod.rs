//! Measuring: for each provider what to ask, and what the answer means. One leaf per provider.
//!
//! A measurement is a conversation: [`ask`] is given all that was heard so far and says what is to be done next, until
//! the measurement is known. Never asks anybody: requests are values, and `io` carries them out.

pub mod address;
pub mod aws;
pub mod cbor;
pub mod cloudwatch;
pub mod confined;
pub mod datadog;
pub mod graphite;
pub mod influxdb;
pub mod job;
pub mod kayenta;
pub mod newrelic;
pub mod prometheus;
pub mod skywalking;
pub mod wavefront;
pub mod web;

use std::{borrow::Cow, collections::BTreeMap, fmt, time::Duration};

use base64::Engine;
use jiff::{SignedDuration, Timestamp};

use crate::{
    analysis::{HIDDEN, Judgement, Phase, Sample, Work, expression::Val, judge},
    api::{AnalysisRun, Authentication, Measurement, Metric, SecretKeyRef, Time},
    kubernetes::{duration, value::Value},
    model::secret::Secret,
    sync::bond::Bond,
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
    /// Read this Secret.
    ReadSecret {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// Read this file of the machine, which holds a token.
    ReadToken(String),
    /// Send this request.
    Send(Box<Request>),
    /// Nothing: this is what was measured.
    Known(Box<Sample>),
}

/// Answers to requests; or why there was none.
pub type Answers = [Result<Response, String>];

/// What was heard so far for a measurement. It may be secret, and does not show.
#[derive(Clone, Default, PartialEq)]
pub struct Heard {
    /// The Secret that was to be read; or why it was not.
    pub secret: Option<Result<Value, String>>,
    /// The token that was to be read; or why it was not.
    pub token: Option<Result<Secret, String>>,
    /// The answers to the requests, in their order; or why there was none.
    pub answers: Vec<Result<Response, String>>,
}

impl fmt::Debug for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Heard({} answers)", self.answers.len())
    }
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
    /// How long to wait before it is sent.
    pub after: Duration,
    /// How long the answer may take.
    pub timeout: Duration,
    /// Whether the certificate is not looked at.
    pub insecure: bool,
    /// Who gives out the token to send along, if one is needed.
    pub oauth2: Option<OAuth2>,
    /// What to send instead where the method is not known.
    pub otherwise: Option<Box<Request>>,
}

impl Request {
    /// A request that carries nothing.
    pub fn get(url: String, timeout: Duration) -> Request {
        Request {
            method: "GET".to_owned(),
            url: address::Address::of(&url).requested(),
            headers: Vec::new(),
            body: Vec::new(),
            after: Duration::ZERO,
            timeout,
            insecure: false,
            oauth2: None,
            otherwise: None,
        }
    }

    /// A request that carries a text of a kind.
    pub fn post(url: String, kind: &str, body: impl Into<Vec<u8>>, timeout: Duration) -> Request {
        let request = Request::get(url, timeout).with("Content-Type", kind);
        Request { method: "POST".to_owned(), body: body.into(), ..request }
    }

    /// The same request with one more header.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Request {
        self.headers.push((key.to_owned(), value.to_owned()));
        self
    }
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

/// The answer to a request. It may be secret, and does not show.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Response {
    /// Its code.
    pub code: u16,
    /// What came with it.
    pub body: Vec<u8>,
}

impl Response {
    /// What came with it, as text.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// What came with it, as JSON; the error says that it is none.
    pub fn json(&self) -> Result<Value, String> {
        Value::from_json(&self.body).map_err(|error| error.to_string())
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} bytes", self.code, self.body.len())
    }
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
    /// The namespace of the engine itself, where the Secrets of providers are.
    pub namespace: String,
    /// How to log in at Datadog, for metrics that name no Secret.
    pub datadog: Option<datadog::Keys>,
    /// What is known about AWS.
    pub aws: aws::Settings,
    /// Where arguments from Secrets may be sent.
    pub secret_hosts: SecretHosts,
}

/// Where an argument from a Secret may be sent with a metric.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SecretHosts {
    /// To the hosts that the Secret names; one that names none goes wherever the metric says, as in Argo Rollouts.
    #[default]
    WhereNamed,
    /// To the hosts that the Secret names, and nowhere without that.
    Required,
}

/// Says why a request with what is in these Secrets is not sent: one of them may not go to its host.
pub fn check_hosts(request: &Request, carried: &[Bond<'_>], rule: SecretHosts) -> Result<(), String> {
    let otherwise = request.otherwise.iter().map(|other| other.url.as_str());
    let token = request.oauth2.iter().map(|oauth2| oauth2.url.as_str());
    for url in std::iter::once(request.url.as_str()).chain(otherwise).chain(token) {
        for bond in carried {
            match (rule, bond.hosts) {
                (SecretHosts::WhereNamed, None) => {}
                (SecretHosts::WhereNamed, Some(_)) | (SecretHosts::Required, _) => bond.check_url(url)?,
            }
        }
    }
    Ok(())
}

impl Settings {
    /// What the variables of a process say, by the names that Argo Rollouts and AWS gave them.
    pub fn of(namespace: &str, variable: impl Fn(&str) -> Option<String>) -> Settings {
        let given = |name: &str| variable(name).filter(|text| !text.is_empty());
        Settings {
            jobs: job::Place { namespace: given("ARGO_ROLLOUTS_ANALYSIS_JOB_NAMESPACE"), ..job::Place::default() },
            prometheus: given("ARGO_ROLLOUTS_PROMETHEUS_ADDRESS"),
            namespace: namespace.to_owned(),
            datadog: datadog::Keys::of(given),
            aws: aws::Settings::of(given),
            secret_hosts: SecretHosts::default(),
        }
    }
}

/// A measurement under way: what is measured for whom, and what was heard so far.
#[derive(Debug, Clone, Copy)]
pub struct Talk<'t> {
    /// The run.
    pub run: &'t AnalysisRun,
    /// The metric, everything filled in.
    pub metric: &'t Metric,
    /// Whether it begins, goes on or is to end.
    pub work: &'t Work,
    /// What the operator says.
    pub settings: &'t Settings,
    /// What was heard.
    pub heard: &'t Heard,
    /// When.
    pub now: Timestamp,
}

/// What to do next for a measurement.
pub fn ask(talk: &Talk<'_>) -> Ask {
    let provider = &talk.metric.provider;
    if let Some(job) = &provider.job {
        return talk.job(job);
    }
    if let Some(kayenta) = &provider.kayenta {
        return talk.hidden(kayenta::next(talk, kayenta));
    }
    // All others are over as soon as they have begun.
    if let Work::Resume(before) | Work::Terminate(before) = talk.work {
        let problem = "the measurement was begun and never finished".to_owned();
        return over(failed(before.clone(), problem, talk.now));
    }
    let next = if let Some(web) = &provider.web {
        talk.once(web::ask(web).map_err(|problem| talk.refused(problem)), |answer| {
            web::read(talk.metric, web, answer, talk.now)
        })
    } else if let Some(prometheus) = &provider.prometheus {
        prometheus::next(talk, prometheus)
    } else if let Some(datadog) = &provider.datadog {
        datadog::next(talk, datadog)
    } else if let Some(wavefront) = &provider.wavefront {
        wavefront::next(talk, wavefront)
    } else if let Some(newrelic) = &provider.new_relic {
        newrelic::next(talk, newrelic)
    } else if let Some(cloudwatch) = &provider.cloud_watch {
        cloudwatch::next(talk, cloudwatch)
    } else if let Some(graphite) = &provider.graphite {
        graphite::next(talk, graphite)
    } else if let Some(influxdb) = &provider.influxdb {
        influxdb::next(talk, influxdb)
    } else if let Some(skywalking) = &provider.skywalking {
        skywalking::next(talk, skywalking)
    } else {
        talk.refused(format!("metrics of {} cannot be measured by this version", self::provider(talk.metric)))
    };
    talk.hidden(next)
}

/// The end of a measurement, without anything beside it.
fn over(measurement: Measurement) -> Ask {
    Ask::Known(Box::new(Sample { measurement, ..Sample::default() }))
}

impl Talk<'_> {
    fn job(&self, job: &crate::api::JobMetric) -> Ask {
        let before = match self.work {
            Work::Start => {
                let built = job::build(self.run, self.metric, job, &self.settings.jobs);
                return built.map_or_else(|problem| self.refused(problem), Ask::CreateJob);
            }
            Work::Resume(before) | Work::Terminate(before) => before,
        };
        match (job::own(self.run, &self.metric.name, before, &self.settings.jobs), self.work) {
            (Err(problem), _) => over(failed(before.clone(), problem, self.now)),
            (Ok((namespace, name)), Work::Terminate(_)) => Ask::DeleteJob { namespace, name },
            (Ok((namespace, name)), Work::Start | Work::Resume(_)) => Ask::LookAtJob { namespace, name },
        }
    }

    /// The end of a measurement that cannot even begin: its provider is not set up.
    fn refused(&self, problem: String) -> Ask {
        over(failed(started(self.now), problem, self.now))
    }

    /// The end of a measurement that went wrong.
    fn failed(&self, problem: String) -> Ask {
        self.known(failed(started(self.now), problem, self.now))
    }

    /// The end of a measurement.
    fn known(&self, measurement: Measurement) -> Ask {
        Ask::Known(Box::new(Sample { measurement, metadata: metadata(self.metric) }))
    }

    /// A measurement whose value is known.
    fn judged(&self, result: &Val, text: String) -> Measurement {
        judged(self.metric, started(self.now), result, text, self.now)
    }

    /// As [`Talk::judged`], but the value stays if it cannot be judged.
    fn judged_keeping(&self, result: &Val, text: String) -> Measurement {
        Measurement { value: text, ..self.judged(result, String::new()) }
    }

    /// The whole of a measurement with one request.
    fn once(&self, request: Result<Request, Ask>, read: impl FnOnce(&Response) -> Measurement) -> Ask {
        match (request, self.heard.answers.first()) {
            (Err(end), _) => end,
            (Ok(request), None) => Ask::Send(Box::new(request)),
            (Ok(_), Some(Err(problem))) => self.failed(problem.clone()),
            (Ok(_), Some(Ok(answer))) => self.known(read(answer)),
        }
    }

    /// A Secret in the namespace of the engine; or what to do to have it.
    fn own_secret(&self, name: &str) -> Result<&Value, Ask> {
        match &self.heard.secret {
            Some(Ok(secret)) => Ok(secret),
            Some(Err(problem)) => Err(self.refused(problem.clone())),
            None => Err(Ask::ReadSecret { namespace: self.settings.namespace.clone(), name: name.to_owned() }),
        }
    }

    /// Takes what is secret out of what is told: a provider may say back what it was sent.
    fn hidden(&self, ask: Ask) -> Ask {
        let Ask::Known(mut sample) = ask else { return ask };
        if self.heard.answers.is_empty() {
            return Ask::Known(sample);
        }
        let told = [&mut sample.measurement.message, &mut sample.measurement.value];
        let notes = sample.measurement.metadata.values_mut();
        let secrets = self.secrets();
        for text in told.into_iter().chain(notes) {
            for secret in &secrets {
                if text.contains(secret.as_str()) {
                    *text = text.replace(secret.as_str(), HIDDEN);
                }
            }
        }
        Ask::Known(sample)
    }

    /// What must not be told: what is in the Secret of the provider, but for what only says where it is.
    fn secrets(&self) -> Vec<String> {
        let data = self.heard.secret.iter().flatten().filter_map(|secret| secret.get("data")?.as_map());
        let keys = data.flat_map(|data| data.iter()).filter(|(key, _)| !OPEN.contains(&key.as_str()));
        let kept = keys.filter_map(|(_, value)| decoded(value.as_str()?));
        let given = self.settings.datadog.iter().flat_map(datadog::Keys::secrets);
        let given = given.chain(self.settings.aws.secrets()).map(|secret| secret.expose().to_owned());
        kept.chain(given).filter(|secret| !secret.trim().is_empty()).collect()
    }
}

/// The keys in Secrets of providers that hold nothing secret.
const OPEN: [&str; 6] = ["address", "org", "account-id", "region", "base-url-rest", "base-url-nerdgraph"];

/// What a provider adds to the results of a metric.
pub fn metadata(metric: &Metric) -> BTreeMap<String, String> {
    let provider = &metric.provider;
    let prometheus = provider.prometheus.as_ref().map(prometheus::metadata);
    prometheus.or_else(|| provider.new_relic.as_ref().map(newrelic::metadata)).unwrap_or_default()
}

/// A moment some time ago.
fn ago(now: Timestamp, length: SignedDuration) -> Timestamp {
    now.saturating_sub(length).unwrap_or(Timestamp::MIN)
}

/// A length of time as Go reads it.
fn length(text: &str) -> Result<SignedDuration, String> {
    duration::parse(text)
}

/// A number without an exponent, as Prometheus prints it.
fn digits(number: f64) -> String {
    match number {
        number if number.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        number => format!("{number}"),
    }
}

/// Numbers in a list, each as it is printed alone.
fn listed(texts: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", texts.into_iter().collect::<Vec<_>>().join(","))
}

/// Pairs as they are written behind the question mark of an address.
fn query<'p>(pairs: impl IntoIterator<Item = (&'p str, &'p str)>) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
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
        (provider.skywalking.is_some(), "skywalking"),
        (!provider.plugin.is_empty(), "Plugin"),
    ];
    named.into_iter().find(|(is_named, _)| *is_named).map_or("Unknown Provider", |(_, name)| name)
}

/// The value of a key of a Secret. The error is Argo Rollouts'.
pub fn secret_value(secret: &Value, wanted: &SecretKeyRef) -> Result<String, String> {
    let missing = || format!("key '{}' does not exist in secret '{}'", wanted.key, wanted.name);
    entry(secret, &wanted.key).ok_or_else(missing)
}

/// The value of a key of a Secret, if it has one.
fn entry(secret: &Value, key: &str) -> Option<String> {
    decoded(secret.str_at(&["data", key])?)
}

fn decoded(encoded: &str) -> Option<String> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{api, value};

    #[test]
    fn sr22_a_plugin_is_named_in_an_error_and_not_fetched() {
        let metric: Metric = api::read(&value!({"name": "m", "provider": {"plugin": {"a/b": {}}}})).object;
        let (run, settings, heard, now) =
            (AnalysisRun::default(), Settings::default(), Heard::default(), Timestamp::UNIX_EPOCH);
        let talk = Talk { run: &run, metric: &metric, work: &Work::Start, settings: &settings, heard: &heard, now };
        let Ask::Known(sample) = ask(&talk) else { panic!() };
        assert_eq!(sample.measurement.phase, "Error");
        assert_eq!(sample.measurement.message, "metrics of Plugin cannot be measured by this version");
    }

    #[test]
    fn what_a_provider_says_back_does_not_show_its_keys() {
        let datadog = value!({"query": "q", "apiVersion": "v1", "interval": "5m"});
        let metric: Metric = api::read(&value!({"name": "m", "provider": {"datadog": datadog}})).object;
        let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let secret = value!({"data": {"api-key": encode("canary-one"), "app-key": encode("canary-two")}});
        let body = b"the key canary-one (canary-two) is not known".to_vec();
        let heard = Heard { secret: Some(Ok(secret)), token: None, answers: vec![Ok(Response { code: 403, body })] };
        let (run, settings, now) = (AnalysisRun::default(), Settings::default(), Timestamp::UNIX_EPOCH);
        let talk = Talk { run: &run, metric: &metric, work: &Work::Start, settings: &settings, heard: &heard, now };
        let Ask::Known(sample) = ask(&talk) else { panic!() };
        let said = "received authentication error response code: 403 the key ***** (*****) is not known";
        assert_eq!(sample.measurement.message, said);
        assert!(!format!("{talk:?} {:?}", heard.answers).contains("canary"));
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
    fn sr19_a_secret_that_names_no_host_is_sent_only_if_the_operator_lets_it() {
        let bond = |hosts| Bond { namespace: "shop", name: "s", hosts };
        let token =
            |url: &str| OAuth2 { url: url.to_owned(), id: "i".into(), secret: Secret::new("s"), scopes: vec![] };
        let plain = Request::get("http://prometheus:9090/x".into(), Duration::from_secs(1));
        let with_token = Request { oauth2: Some(token("https://evil.example/token")), ..plain.clone() };
        let (open, named) = (bond(None), bond(Some("prometheus:9090")));
        use SecretHosts::{Required, WhereNamed};
        for (request, carried, rule, is_sent) in [
            (&plain, vec![], Required, true),
            (&plain, vec![open], WhereNamed, true),
            (&plain, vec![open], Required, false),
            (&plain, vec![named], Required, true),
            (&plain, vec![named, open], Required, false),
            (&plain, vec![bond(Some("other"))], WhereNamed, false),
            (&with_token, vec![named], WhereNamed, false),
            (&with_token, vec![open], WhereNamed, true),
        ] {
            assert_eq!(check_hosts(request, &carried, rule).is_ok(), is_sent, "{carried:?} {rule:?} {request:?}");
        }
    }

    #[test]
    fn a_secret_has_keys() {
        let secret = value!({"data": {"k": "dg=="}});
        let wanted = |key: &str| SecretKeyRef { name: "s".into(), key: key.into() };
        assert_eq!(secret_value(&secret, &wanted("k")), Ok("v".into()));
        assert_eq!(secret_value(&secret, &wanted("x")), Err("key 'x' does not exist in secret 's'".into()));
    }
}
