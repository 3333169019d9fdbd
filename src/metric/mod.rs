//! Measuring: for each provider what to ask, and what the answer means. One leaf per provider.
//!
//! Never asks: requests are values, and `io` carries them out.

pub mod job;

use base64::Engine;
use jiff::Timestamp;

use crate::{
    analysis::{Phase, Work},
    api::{AnalysisRun, Measurement, Metric, SecretKeyRef, Time},
    kubernetes::value::Value,
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
    /// Nothing: this is the measurement.
    Known(Measurement),
}

/// What the operator of the engine says about measuring.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Where Jobs run.
    pub jobs: job::Place,
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
    match work {
        Work::Start => {
            let problem = format!("metrics of {} cannot be measured by this version", provider(metric));
            Ask::Known(failed(started(now), problem, now))
        }
        // All others are over as soon as they have begun.
        Work::Resume(before) | Work::Terminate(before) => {
            Ask::Known(failed(before.clone(), "the measurement was begun and never finished".to_owned(), now))
        }
    }
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
