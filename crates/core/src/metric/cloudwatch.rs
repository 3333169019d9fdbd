//! A metric that Amazon CloudWatch answers.
//!
//! Never sends anything.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;

use super::{
    Ask, Request, Response, Talk, ago, aws,
    aws::{Region, credentials, sign},
    cbor, failed, length, started,
};
use crate::{
    analysis::expression::Val,
    api::{CloudWatchMetric, CloudWatchMetricDataQuery, CloudWatchMetricStat, IntOrString, Measurement},
    kubernetes::value::Value,
    value,
};

/// How far back to look if nothing is said.
const INTERVAL: &str = "5m";
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Where the operation is.
const PATH: &str = "/service/GraniteServiceVersion20100801/operation/GetMetricData";
/// What AWS's own client says before anything that went wrong.
const OPERATION: &str = "operation error CloudWatch: GetMetricData";

/// What to do next.
pub fn next(talk: &Talk<'_>, cloudwatch: &CloudWatchMetric) -> Ask {
    let body = match body(cloudwatch, talk.now) {
        Ok(body) => body,
        Err(problem) => return talk.failed(problem),
    };
    let settings = &talk.settings.aws;
    let Some(region) = &settings.region else {
        return talk.failed(format!("{OPERATION}, no region is known: AWS_REGION is not set"));
    };
    let region = &match Region::parse(region) {
        Ok(region) => region,
        Err(problem) => return talk.failed(format!("{OPERATION}, AWS_REGION: {problem}")),
    };
    let (who, answers) = match credentials(talk, None, region) {
        Ok(found) => found,
        Err(next) => return next,
    };
    match answers {
        [] => {
            let url = format!("{}{PATH}", settings.cloudwatch(region).trim_end_matches('/'));
            let request = Request::post(url, "application/cbor", body, TIMEOUT);
            let mut request = request.with("Accept", "application/cbor").with("Smithy-Protocol", "rpc-v2-cbor");
            sign(&mut request, &who, region, "monitoring", talk.now);
            Ask::Send(Box::new(request))
        }
        [Err(problem), ..] => talk.failed(problem.clone()),
        [Ok(answer), ..] => talk.known(read(talk, &who, answer)),
    }
}

/// What to ask.
fn body(cloudwatch: &CloudWatchMetric, now: Timestamp) -> Result<Vec<u8>, String> {
    let interval = if cloudwatch.interval.is_empty() { INTERVAL } else { &cloudwatch.interval };
    let start = ago(now, length(interval)?);
    let asked = value!({
        "StartTime": start.as_second(),
        "EndTime": now.as_second(),
        "MetricDataQueries": Value::list(cloudwatch.metric_data_queries.iter().map(query)),
    });
    Ok(cbor::write(&asked, &["StartTime", "EndTime"]))
}

fn query(given: &CloudWatchMetricDataQuery) -> Value {
    let mut query = value!({"Id": given.id.as_str()});
    let texts = [("Expression", &given.expression), ("Label", &given.label)];
    for (key, text) in texts.into_iter().filter_map(|(key, text)| Some((key, text.as_deref()?))) {
        query.set_at(&[key], text);
    }
    if let Some(stat) = &given.metric_stat {
        query.set_at(&["MetricStat"], self::stat(stat));
    }
    if let Some(period) = &given.period {
        query.set_at(&["Period"], seconds(period));
    }
    if let Some(flag) = given.return_data {
        query.set_at(&["ReturnData"], Value::Bool(flag));
    }
    query
}

fn stat(given: &CloudWatchMetricStat) -> Value {
    let mut metric = value!({"MetricName": given.metric.metric_name.as_str()});
    if let Some(namespace) = &given.metric.namespace {
        metric.set_at(&["Namespace"], namespace.as_str());
    }
    if !given.metric.dimensions.is_empty() {
        let dimensions = given.metric.dimensions.iter();
        let dimensions = dimensions.map(|one| value!({"Name": one.name.as_str(), "Value": one.value.as_str()}));
        metric.set_at(&["Dimensions"], Value::list(dimensions));
    }
    let mut stat = value!({"Metric": metric, "Period": seconds(&given.period), "Stat": given.stat.as_str()});
    if !given.unit.is_empty() {
        stat.set_at(&["Unit"], given.unit.as_str());
    }
    stat
}

/// A number of seconds; a text that is none is 0, as in Argo Rollouts.
fn seconds(period: &IntOrString) -> i64 {
    match period {
        IntOrString::Int(seconds) => i64::from(*seconds),
        IntOrString::String(text) => text.parse().unwrap_or_default(),
    }
}

/// What an answer means.
fn read(talk: &Talk<'_>, who: &aws::Credentials, response: &Response) -> Measurement {
    let body = cbor::read(&response.body).unwrap_or_default();
    if response.code != 200 || body.as_map().is_none() {
        let problem = who.hide(refusal(response.code, &body));
        return failed(started(talk.now), problem, talk.now);
    }
    let results = body.list_at(&["MetricDataResults"]);
    let values: Vec<Val> = results.iter().map(values).collect();
    let text = Val::list(values).print();
    let result = if results.is_empty() { Val::Nil } else { Val::list(results.iter().map(self::result).collect()) };
    let mut measured = talk.judged_keeping(&result, text);
    let said = body.list_at(&["Messages"]).iter().map(|message| {
        let text = |key: &str| message.str_at(&[key]).unwrap_or_default();
        format!("{}: {}", text("Code"), text("Value"))
    });
    let said: Vec<String> = said.collect();
    if !said.is_empty() {
        measured.metadata.insert("messages".to_owned(), said.join(", "));
    }
    measured
}

fn refusal(code: u16, body: &Value) -> String {
    let text = |keys: [&str; 2]| keys.iter().find_map(|key| body.str_at(&[key])).unwrap_or("unknown");
    let (kind, said) = (text(["__type", "code"]), text(["message", "Message"]));
    format!("{OPERATION}, https response error StatusCode: {code}, api error {kind}: {said}")
}

fn values(result: &Value) -> Val {
    let values: Vec<f64> = result.list_at(&["Values"]).iter().filter_map(Value::as_float).collect();
    Val::floats(&values)
}

/// A result as conditions see it, by the names that it has in Go.
fn result(result: &Value) -> Val {
    let text = |key: &str| result.str_at(&[key]).map_or(Val::Nil, Val::text);
    let seconds = result.list_at(&["Timestamps"]).iter().filter_map(Value::as_float);
    let moments = seconds.filter_map(|seconds| Timestamp::from_second(seconds as i64).ok()).map(Val::Moment);
    let messages = result.list_at(&["Messages"]).iter().map(Val::of_json).collect();
    let fields: BTreeMap<String, Val> = [
        ("Id", text("Id")),
        ("Label", text("Label")),
        ("StatusCode", Val::text(result.str_at(&["StatusCode"]).unwrap_or_default())),
        ("Timestamps", Val::list(moments.collect())),
        ("Values", values(result)),
        ("Messages", Val::list(messages)),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    Val::Map(Arc::new(fields))
}
