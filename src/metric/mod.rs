//! Measuring: for each provider what to ask, and what the answer means. One leaf per provider.
//!
//! Never asks: requests are values, and `io` carries them out.

pub mod job;

use jiff::Timestamp;

use crate::{
    analysis::Phase,
    api::{Measurement, Metric, Time},
};

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
