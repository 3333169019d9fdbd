//! The metrics of an analysis.
//!
//! Argo Rollouts stops at the first problem of the first metric that has one; all others are marked as not reached.

use std::collections::BTreeSet;

use super::given;
use crate::{
    api::{self, IntOrString},
    kubernetes::{duration, schema::regexp},
    model::{
        analysis::{Metric, Provider, Times},
        arguments,
        path::At,
        problem::{Code, Notes, Words},
        weight::{go_int, int_value},
    },
};

/// How many measurements are kept if nothing is said.
const KEPT: u32 = 10;
/// How many errors in a row are tolerated if nothing is said.
const CONSECUTIVE_ERRORS: u32 = 4;

/// Metrics and the rules that apply to some of them.
pub struct Metrics<'w> {
    /// The metrics.
    pub metrics: &'w [api::Metric],
    /// Which are measured but do not count.
    pub dry_run: &'w [api::DryRun],
    /// How many measurements to keep of which.
    pub retention: &'w [api::MeasurementRetention],
}

impl Metrics<'_> {
    /// All metrics of a run, whose arguments are filled in; `None` if one of them makes no sense.
    pub fn exact(&self, at: &At, notes: &mut Notes) -> Option<Vec<Metric>> {
        let metrics = check(self.metrics, &at.key("metrics"), notes);
        let rules = Rules::read(self, at, notes);
        let mut metrics = metrics?;
        for metric in &mut metrics {
            metric.dry_run = rules.dry_run.contains(&metric.name);
            if let Some((_, kept)) = rules.kept.iter().rev().find(|(name, _)| *name == metric.name) {
                metric.kept = *kept;
            }
        }
        Some(metrics)
    }
}

/// Every problem of these metrics, and what they are if there is none. Numbers and durations that hold arguments are
/// taken for right.
pub fn check(wire: &[api::Metric], at: &At, notes: &mut Notes) -> Option<Vec<Metric>> {
    if wire.is_empty() {
        let words = Words::Plain("no metrics specified".into());
        notes.argo(at, Code::MetricsMissing, words, "there is nothing to measure", "add a metric");
        return None;
    }
    let mut names = BTreeSet::new();
    let mut metrics = Vec::new();
    for (index, metric) in wire.iter().enumerate() {
        let at = at.index(index);
        let mut checker = Checker { index, at: &at, notes };
        if !names.insert(&metric.name) {
            checker.refuse(
                "name",
                Code::MetricNameTwice,
                format!("duplicate name '{}'", metric.name),
                format!("{:?} is the name of a metric before", metric.name),
                "give each metric a name of its own",
            );
        }
        metrics.push(checker.metric(metric));
    }
    metrics.into_iter().collect()
}

/// The first problem of these metrics in the words of Argo Rollouts.
pub fn argo_error(wire: &[api::Metric]) -> Option<String> {
    let mut notes = Notes::default();
    check(wire, &At::ROOT.key("metrics"), &mut notes);
    notes.close::<()>(None).argo.first().map(Words::to_string)
}

/// The numbers of a metric; `None` for one that holds an argument.
struct Numbers {
    count: Option<i64>,
    failure: Option<i64>,
    success: Option<i64>,
    inconclusive: Option<i64>,
    error: Option<i64>,
}

struct Checker<'c, 'p> {
    index: usize,
    at: &'c At<'p>,
    notes: &'c mut Notes,
}

impl Checker<'_, '_> {
    /// Notes what Argo Rollouts reports as `metrics[0]: …`, after which it stops.
    fn refuse(&mut self, field: &str, code: Code, argo: String, what: String, remedy: &str) {
        let words = Words::Plain(format!("metrics[{}]: {argo}", self.index));
        self.notes.argo(&self.at.key(field), code, words, what, remedy);
        self.notes.argo_stops();
    }

    fn metric(&mut self, wire: &api::Metric) -> Option<Metric> {
        let numbers = Numbers {
            count: self.number("count", wire.count.as_ref()),
            failure: self.number("failureLimit", wire.failure_limit.as_ref()),
            success: self.number("consecutiveSuccessLimit", wire.consecutive_success_limit.as_ref()),
            inconclusive: self.number("inconclusiveLimit", wire.inconclusive_limit.as_ref()),
            error: self.number("consecutiveErrorLimit", wire.consecutive_error_limit.as_ref()),
        };
        self.limits(&numbers);
        self.interval_needed(wire, &numbers);
        let interval = self.duration("interval", "interval", &wire.interval);
        let initial_delay = self.duration("initialDelay", "startDelay", &wire.initial_delay);
        let provider = self.provider(&wire.provider);
        let limit = |number: Option<i64>| u32::try_from(number.unwrap_or(0)).ok();
        let times = match (numbers.count.unwrap_or(0), wire.interval.is_empty()) {
            (0, true) => Times::Count(1),
            (0, false) => Times::Endless,
            // Below zero is reached with the first measurement.
            (count, _) => Times::Count(u32::try_from(count.max(1)).unwrap_or(u32::MAX)),
        };
        let error_limit = if wire.consecutive_error_limit.is_some() { limit(numbers.error) } else { None };
        Some(Metric {
            name: wire.name.clone(),
            interval: interval?,
            initial_delay: initial_delay?,
            times,
            success_condition: given(&wire.success_condition),
            failure_condition: given(&wire.failure_condition),
            failure_limit: limit(numbers.failure),
            inconclusive_limit: limit(numbers.inconclusive).unwrap_or(0),
            consecutive_error_limit: error_limit.unwrap_or(CONSECUTIVE_ERRORS),
            consecutive_success_limit: limit(numbers.success).filter(|limit| *limit > 0),
            dry_run: false,
            kept: KEPT,
            provider: provider?,
        })
    }

    fn number(&mut self, field: &str, given: Option<&IntOrString>) -> Option<i64> {
        let Some(given) = given else { return Some(0) };
        if let IntOrString::String(text) = given {
            if arguments::is_open(text) {
                return None;
            }
            if go_int(text).is_none() {
                let what = format!("{text:?} is no number and counts as {}", int_value(given));
                self.notes.ours(&self.at.key(field), Code::MetricNumber, what, "write a number");
            }
        }
        Some(int_value(given))
    }

    fn limits(&mut self, numbers: &Numbers) {
        let before = self.notes.len();
        let refuse = |this: &mut Self, field: &str, argo: &str, what: &str, remedy: &str| {
            this.refuse(field, Code::MetricLimit, argo.to_owned(), what.to_owned(), remedy);
        };
        let least_zero = "use zero or a number above it";
        if numbers.success.is_some_and(|n| n < 0) {
            let argo = "consecutiveSuccessLimit must be >= 0";
            refuse(self, "consecutiveSuccessLimit", argo, "it is below zero", least_zero);
        }
        if numbers.failure.is_some_and(|n| n < -1) {
            let argo = "failureLimit must be >= 0, or -1 to be disabled";
            refuse(self, "failureLimit", argo, "it is below -1", "use -1 for no limit, or zero or a number above it");
        }
        if numbers.success == Some(0) && numbers.failure == Some(-1) {
            let argo = "failureLimit and consecutiveSuccessLimit cannot both be disabled";
            let remedy = "set consecutiveSuccessLimit, or let failureLimit be zero or above";
            refuse(self, "failureLimit", argo, "neither failures nor successes can end the metric", remedy);
        }
        if numbers.inconclusive.is_some_and(|n| n < 0) {
            let argo = "inconclusiveLimit must be >= 0";
            refuse(self, "inconclusiveLimit", argo, "it is below zero", least_zero);
        }
        if numbers.error.is_some_and(|n| n < 0) {
            let argo = "consecutiveErrorLimit must be >= 0";
            refuse(self, "consecutiveErrorLimit", argo, "it is below zero", least_zero);
        }
        if self.notes.len() == before {
            self.reachable(numbers);
        }
    }

    /// The count must be able to reach every limit.
    fn reachable(&mut self, numbers: &Numbers) {
        let Some(count) = numbers.count.filter(|count| *count > 0) else { return };
        let raise = "raise count, or lower the limits";
        match (numbers.failure, numbers.success) {
            (Some(failure @ 0..), Some(success)) if count < failure.saturating_add(success) => {
                let argo = format!(
                    "count ({count}) must be >= failureLimit + consecutiveSuccessLimit ({failure} + {success}) if both \
                     >= 0"
                );
                let what = format!("{count} measurements cannot hold {failure} failures and {success} successes");
                self.refuse("count", Code::MetricLimit, argo, what, raise);
            }
            (Some(..0), Some(success)) if count < success => {
                let argo = "count must be >= consecutiveSuccessLimit".to_owned();
                let what = format!("{count} measurements cannot hold {success} successes");
                self.refuse("count", Code::MetricLimit, argo, what, raise);
            }
            (_, _) => {}
        }
        if let Some(inconclusive) = numbers.inconclusive.filter(|inconclusive| count < *inconclusive) {
            let argo = "count must be >= inconclusiveLimit".to_owned();
            let what = format!("{count} measurements cannot hold {inconclusive} inconclusive ones");
            self.refuse("count", Code::MetricLimit, argo, what, raise);
        }
    }

    fn interval_needed(&mut self, wire: &api::Metric, numbers: &Numbers) {
        if numbers.count.is_some_and(|count| count > 1) && wire.interval.is_empty() {
            let argo = "interval must be specified when count > 1".to_owned();
            let what = "there is no interval between the measurements".to_owned();
            self.refuse("interval", Code::MetricInterval, argo, what, "add an interval such as 30s or 5m");
        }
    }

    fn duration(&mut self, field: &str, argo: &str, text: &str) -> Option<Option<jiff::SignedDuration>> {
        if text.is_empty() || arguments::is_open(text) {
            return Some(None);
        }
        match duration::parse(text) {
            Ok(duration) => Some(Some(duration)),
            Err(error) => {
                let argo = format!("invalid {argo} string: {error}");
                self.refuse(field, Code::MetricDuration, argo, error, "write a text such as 30s, 5m or 1h30m");
                None
            }
        }
    }

    fn provider(&mut self, wire: &api::MetricProvider) -> Option<Provider> {
        let mut providers = providers(wire);
        let remedy = "name exactly one provider, such as prometheus, web or job";
        match providers.len() {
            0 => {
                let (argo, what) = ("no provider specified".to_owned(), "there is no provider".to_owned());
                self.refuse("provider", Code::MetricProvider, argo, what, remedy);
                None
            }
            1 => {
                let provider = providers.pop()?;
                self.complete(&provider);
                Some(provider)
            }
            count => {
                let what = format!("there are {count} providers");
                self.refuse("provider", Code::MetricProvider, "multiple providers specified".to_owned(), what, remedy);
                None
            }
        }
    }

    /// What a provider needs to be asked at all.
    fn complete(&mut self, provider: &Provider) {
        let provider_at = self.at.key("provider");
        let mut missing = |kind: &str, field: &str, empty: bool| {
            if empty {
                let at = provider_at.key(kind);
                let what = format!("{kind} needs {field}");
                self.notes.ours(&at.key(field), Code::ProviderIncomplete, what, format!("add {field}"));
            }
        };
        match provider {
            Provider::Prometheus(metric) => missing("prometheus", "query", metric.query.is_empty()),
            Provider::Web(metric) => missing("web", "url", metric.url.is_empty()),
            Provider::Job(metric) => missing("job", "spec", metric.spec.is_null()),
            Provider::Wavefront(metric) => missing("wavefront", "query", metric.query.is_empty()),
            Provider::NewRelic(metric) => missing("newRelic", "query", metric.query.is_empty()),
            Provider::Graphite(metric) => missing("graphite", "query", metric.query.is_empty()),
            Provider::Influxdb(metric) => missing("influxdb", "query", metric.query.is_empty()),
            Provider::SkyWalking(metric) => missing("skywalking", "query", metric.query.is_empty()),
            Provider::Kayenta(metric) => missing("kayenta", "address", metric.address.is_empty()),
            Provider::CloudWatch(metric) => {
                missing("cloudWatch", "metricDataQueries", metric.metric_data_queries.is_empty());
            }
            Provider::Datadog(metric) => {
                missing("datadog", "query", metric.query.is_empty() && metric.queries.is_empty());
            }
            Provider::Plugin { .. } => {}
        }
    }
}

/// Every provider that a metric names.
fn providers(wire: &api::MetricProvider) -> Vec<Provider> {
    let mut providers = Vec::new();
    providers.extend(wire.prometheus.clone().map(Provider::Prometheus));
    providers.extend(wire.kayenta.clone().map(Provider::Kayenta));
    providers.extend(wire.web.clone().map(Provider::Web));
    providers.extend(wire.datadog.clone().map(Provider::Datadog));
    providers.extend(wire.wavefront.clone().map(Provider::Wavefront));
    providers.extend(wire.new_relic.clone().map(Provider::NewRelic));
    providers.extend(wire.job.clone().map(Provider::Job));
    providers.extend(wire.cloud_watch.clone().map(Provider::CloudWatch));
    providers.extend(wire.graphite.clone().map(Provider::Graphite));
    providers.extend(wire.influxdb.clone().map(Provider::Influxdb));
    providers.extend(wire.skywalking.clone().map(Provider::SkyWalking));
    let plugins = wire.plugin.iter();
    providers.extend(plugins.map(|(name, config)| Provider::Plugin { name: name.clone(), config: config.clone() }));
    providers
}

/// What the rules of a run say, by metric.
struct Rules {
    dry_run: BTreeSet<String>,
    kept: Vec<(String, u32)>,
}

impl Rules {
    fn read(wire: &Metrics, at: &At, notes: &mut Notes) -> Rules {
        let mut rules = Rules { dry_run: BTreeSet::new(), kept: Vec::new() };
        let names: Vec<&String> = wire.metrics.iter().map(|metric| &metric.name).collect();
        let list_at = at.key("dryRun");
        for (index, rule) in wire.dry_run.iter().enumerate() {
            let item = list_at.index(index);
            let words = format!("dryRun[{index}]: Rule didn't match any metric name(s)");
            let found = matching(&rule.metric_name, &names, Code::DryRunUnmatched, words, &item, notes);
            rules.dry_run.extend(found.into_iter().cloned());
        }
        let list_at = at.key("measurementRetention");
        for (index, rule) in wire.retention.iter().enumerate() {
            let item = list_at.index(index);
            let words = format!("measurementRetention[{index}]: Rule didn't match any metric name(s)");
            let found = matching(&rule.metric_name, &names, Code::RetentionUnmatched, words, &item, notes);
            let kept = u32::try_from(rule.limit).ok().filter(|limit| *limit > 0).unwrap_or(KEPT);
            rules.kept.extend(found.into_iter().map(|name| (name.clone(), kept)));
        }
        rules
    }
}

/// The names that a pattern finds; a problem if there is none.
fn matching<'n>(
    pattern: &str,
    names: &[&'n String],
    code: Code,
    words: String,
    at: &At,
    notes: &mut Notes,
) -> Vec<&'n String> {
    let at = at.key("metricName");
    let (code, what) = match regexp::compile(pattern) {
        Ok(regex) => {
            let found: Vec<&String> = names.iter().filter(|name| regex.is_match(name)).copied().collect();
            if !found.is_empty() {
                return found;
            }
            (code, format!("{pattern:?} matches no metric"))
        }
        Err(error) => (Code::PatternInvalid, format!("{pattern:?} is no regular expression: {error}")),
    };
    notes.argo(&at, code, Words::Plain(words), what, "name a metric, or write .* for all of them");
    notes.argo_stops();
    Vec::new()
}

/// Patterns of a template, whose metrics may be joined by those of others, must at least be regular expressions.
pub fn check_patterns<'w>(patterns: impl Iterator<Item = &'w String>, at: &At, notes: &mut Notes) {
    for (index, pattern) in patterns.enumerate() {
        if let Err(error) = regexp::compile(pattern) {
            let item = at.index(index);
            let what = format!("{pattern:?} is no regular expression: {error}");
            notes.ours(&item.key("metricName"), Code::PatternInvalid, what, "write .* for every metric");
        }
    }
}
