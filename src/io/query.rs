//! Each metric of an analysis, measured once for a plan: does it answer, has it data, and what is the value today.
//!
//! What is asked stands in a change that nobody has merged yet, so nothing secret goes along: no Secret is read, no token, no
//! credentials of this machine are used, no Job is run, and a request of the web provider that is not a GET is not sent.

use jiff::Timestamp;

use super::web::Web;
use crate::{
    analysis::{self, Look, Sample, Work},
    api::{self, AnalysisRun, Measurement, Metric},
    kubernetes::value::Value,
    metric::{self, Ask, Heard, Settings, Talk},
    plan::forecast::Query,
};

/// Measures each metric of an AnalysisRun once. A metric that would need a secret is not asked.
pub async fn once(web: &Web, settings: &Settings, run: &Value, now: Timestamp) -> Vec<Query> {
    let run: AnalysisRun = api::read(&begun(run)).object;
    let plan = match analysis::look(&run, now) {
        Look::Open(plan) => plan,
        Look::Broken(problem) => return vec![unasked("", problem)],
        Look::Over(_) => return Vec::new(),
    };
    if let Some((argument, _)) = plan.secrets(&run).first() {
        let why = format!("not asked: its argument {argument} comes from a Secret");
        return run.spec.metrics.iter().map(|metric| unasked(&metric.name, why.clone())).collect();
    }
    let metrics = match plan.ready(&run, &[]) {
        Ok(metrics) => metrics,
        Err(problem) => return vec![unasked("", problem)],
    };
    let mut answers = Vec::new();
    let mut samples = Vec::new();
    for (task, metric) in plan.tasks.iter().zip(&metrics) {
        let sample = ask(web, settings, &run, metric, now).await;
        samples.push(sample.clone().unwrap_or_default());
        answers.push((task.name.clone(), sample));
    }
    // The conditions are applied by whoever applies them in a rollout.
    let status = analysis::decide(&run, &plan, samples, &[], now).status;
    let answer = |(name, sample): (String, Result<Sample, String>)| match sample {
        Err(why) => unasked(&name, why),
        Ok(_) => {
            let result = status.metric_results.iter().find(|result| result.name == name);
            let last = result.and_then(|result| result.measurements.last()).cloned().unwrap_or_default();
            let Measurement { phase, value, message, .. } = last;
            Query { metric: name, phase, value, message }
        }
    };
    answers.into_iter().map(answer).collect()
}

/// The run as if it began now: no delay, nothing measured.
fn begun(run: &Value) -> Value {
    let mut run = run.clone();
    run.remove_at(&["status"]);
    let mut metrics = run.list_at(&["spec", "metrics"]).to_vec();
    for metric in &mut metrics {
        metric.remove_at(&["initialDelay"]);
    }
    run.set_at(&["spec", "metrics"], metrics);
    run
}

fn unasked(metric: &str, why: String) -> Query {
    Query { metric: metric.to_owned(), phase: String::new(), value: String::new(), message: why }
}

async fn ask(
    web: &Web,
    settings: &Settings,
    run: &AnalysisRun,
    metric: &Metric,
    now: Timestamp,
) -> Result<Sample, String> {
    let mut heard = Heard::default();
    loop {
        let talk = Talk { run, metric, work: &Work::Start, settings, heard: &heard, now };
        match metric::ask(&talk) {
            Ask::Known(sample) => return Ok(*sample),
            Ask::ReadSecret { name, .. } => return Err(format!("not asked: it needs the Secret {name}")),
            Ask::ReadToken(_) => return Err("not asked: it needs a token".to_owned()),
            Ask::CreateJob(_) | Ask::LookAtJob { .. } | Ask::DeleteJob { .. } => {
                return Err("not asked: it is a Job".to_owned());
            }
            Ask::Send(request) => {
                if metric.provider.web.is_some() && request.method != "GET" {
                    return Err(format!("not asked: a {} request may change something", request.method));
                }
                if request.oauth2.is_some() {
                    return Err("not asked: it needs a token".to_owned());
                }
                heard.answers.push(web.fetch(&request).await.map_err(|error| error.to_string()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::outbound::Outbound;
    use crate::value;

    async fn check(metric: Value, args: Value) -> Query {
        let run = value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun", "metadata": {"name": "a"},
            "spec": {"args": args, "metrics": [metric]}});
        let web = Web::new(Outbound::anywhere()).unwrap();
        once(&web, &Settings::default(), &run, Timestamp::UNIX_EPOCH).await.remove(0)
    }

    #[tokio::test]
    async fn nothing_secret_is_sent_and_nothing_is_changed() {
        let secret = value!([{"name": "token", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]);
        let web = |method: &str| {
            value!({"name": "m", "provider": {"web": {"url": "http://127.0.0.1:1/{{args.token}}", "method": method}},
                "successCondition": "true"})
        };
        assert_eq!(check(web("GET"), secret).await.message, "not asked: its argument token comes from a Secret");
        let plain = || value!([{"name": "token", "value": "x"}]);
        assert_eq!(check(web("PUT"), plain()).await.message, "not asked: a PUT request may change something");
        let job = value!({"name": "m", "provider": {"job": {"spec": {"template": {"spec": {"containers": []}}}}}});
        assert_eq!(check(job, plain()).await.message, "not asked: it is a Job");
        let answer = check(web("GET"), plain()).await;
        assert_eq!(answer.phase, "Error", "nobody listens there: {answer:?}");
    }
}
