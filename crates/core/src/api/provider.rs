//! Whom a metric asks, and what.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{IntOrString, crd, is_null, is_zero};
use crate::kubernetes::value::Value;

/// Whom a metric asks: exactly one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct MetricProvider {
    /// Prometheus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prometheus: Option<PrometheusMetric>,
    /// Kayenta.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kayenta: Option<KayentaMetric>,
    /// Any web address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub web: Option<WebMetric>,
    /// Datadog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datadog: Option<DatadogMetric>,
    /// Wavefront.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wavefront: Option<WavefrontMetric>,
    /// New Relic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_relic: Option<NewRelicMetric>,
    /// A Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<JobMetric>,
    /// AWS CloudWatch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cloud_watch: Option<CloudWatchMetric>,
    /// Graphite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graphite: Option<GraphiteMetric>,
    /// InfluxDB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub influxdb: Option<InfluxdbMetric>,
    /// Apache SkyWalking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skywalking: Option<SkyWalkingMetric>,
    /// A plugin, with its own settings.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crd::any_object")]
    pub plugin: BTreeMap<String, Value>,
}

/// A query to Prometheus.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct PrometheusMetric {
    /// Where it is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// The query.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// How to log in.
    pub authentication: Authentication,
    /// How many seconds to wait; 30 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<i64>,
    /// Does not check its certificate.
    #[serde(skip_serializing_if = "is_zero")]
    pub insecure: bool,
    /// Headers to send.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<WebMetricHeader>,
    /// Asks for a range instead of a moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range_query: Option<PrometheusRangeQueryArgs>,
}

/// A range of time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct PrometheusRangeQueryArgs {
    /// An expression for its start, such as `now() - duration("1h")`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub start: String,
    /// An expression for its end.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub end: String,
    /// The distance between points, such as `1m`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub step: String,
}

/// How to log in: one of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Authentication {
    /// With an AWS signature.
    pub sigv4: Sigv4Config,
    /// With a token of OAuth 2.
    pub oauth2: OAuth2Config,
    /// With a password.
    pub basic_auth: BasicAuthConfig,
}

/// An AWS signature.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Sigv4Config {
    /// The region.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// The profile.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub profile: String,
    /// The role.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub role_arn: String,
}

/// Client credentials of OAuth 2.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct OAuth2Config {
    /// Where to get the token.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub token_url: String,
    /// Who asks.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub client_id: String,
    /// The secret.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub client_secret: String,
    /// What for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
}

/// A name and a password.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct BasicAuthConfig {
    /// The name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// The password.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub password: String,
}

/// A query to Wavefront.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct WavefrontMetric {
    /// Where it is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// The query.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub query: String,
}

/// A query to New Relic.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct NewRelicMetric {
    /// The Secret with its settings; `newrelic` if not given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub profile: String,
    /// The query, in NRQL.
    #[schemars(extend("x-required" = true))]
    pub query: String,
    /// How many seconds to wait; 5 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<i64>,
}

/// A Job whose end decides.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct JobMetric {
    /// What the Job carries.
    #[serde(skip_serializing_if = "is_null")]
    #[schemars(schema_with = "crd::template_metadata")]
    pub metadata: Value,
    /// The Job.
    #[serde(skip_serializing_if = "is_null")]
    #[schemars(schema_with = "crd::job_spec", extend("x-required" = true))]
    pub spec: Value,
}

/// A query to Graphite.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct GraphiteMetric {
    /// Where it is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// The query.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub query: String,
}

/// A query to InfluxDB.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct InfluxdbMetric {
    /// The Secret with its settings; `influxdb` if not given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub profile: String,
    /// The query, in Flux.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub query: String,
}

/// A query to AWS CloudWatch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CloudWatchMetric {
    /// How far back to look; `5m` if not given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub interval: String,
    /// The queries.
    #[schemars(extend("x-required" = true))]
    pub metric_data_queries: Vec<CloudWatchMetricDataQuery>,
}

/// One query of several.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CloudWatchMetricDataQuery {
    /// What others call it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// An expression over others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// What to print for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// A statistic of a metric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric_stat: Option<CloudWatchMetricStat>,
    /// The seconds that a point stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<IntOrString>,
    /// Whether it is part of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub return_data: Option<bool>,
}

/// A statistic of a metric.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CloudWatchMetricStat {
    /// The metric.
    pub metric: CloudWatchMetricStatMetric,
    /// The seconds that a point stands for.
    pub period: IntOrString,
    /// The statistic.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stat: String,
    /// The unit.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unit: String,
}

/// A metric of CloudWatch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CloudWatchMetricStatMetric {
    /// What it is narrowed by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dimensions: Vec<CloudWatchMetricStatMetricDimension>,
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub metric_name: String,
    /// Its namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// What a metric is narrowed by.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CloudWatchMetricStatMetricDimension {
    /// The dimension.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its value.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
}

/// A query to Apache SkyWalking.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SkyWalkingMetric {
    /// Where it is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// The query, in GraphQL.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// How far back to look.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub interval: String,
}

/// A judgement by Kayenta.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct KayentaMetric {
    /// Where it is.
    #[schemars(extend("x-required" = true))]
    pub address: String,
    /// The application.
    #[schemars(extend("x-required" = true))]
    pub application: String,
    /// The canary configuration.
    #[schemars(extend("x-required" = true))]
    pub canary_config_name: String,
    /// The account for metrics.
    #[schemars(extend("x-required" = true))]
    pub metrics_account_name: String,
    /// The account for configurations.
    #[schemars(extend("x-required" = true))]
    pub configuration_account_name: String,
    /// The account for results.
    #[schemars(extend("x-required" = true))]
    pub storage_account_name: String,
    /// Which scores pass.
    #[schemars(extend("x-required" = true))]
    pub threshold: KayentaThreshold,
    /// What is compared.
    #[schemars(extend("x-required" = true))]
    pub scopes: Vec<KayentaScope>,
    /// Judges everything since the start, not only the last interval.
    #[serde(skip_serializing_if = "is_zero")]
    pub lookback: bool,
}

/// Which scores pass.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct KayentaThreshold {
    /// From here on it is a success.
    #[schemars(extend("x-required" = true))]
    pub pass: i64,
    /// From here on it is inconclusive.
    #[schemars(extend("x-required" = true))]
    pub marginal: i64,
}

/// What is compared.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct KayentaScope {
    /// Its name.
    #[schemars(extend("x-required" = true))]
    pub name: String,
    /// The stable side.
    #[schemars(extend("x-required" = true))]
    pub control_scope: ScopeDetail,
    /// The new side.
    #[schemars(extend("x-required" = true))]
    pub experiment_scope: ScopeDetail,
}

/// One side of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ScopeDetail {
    /// The scope.
    #[schemars(extend("x-required" = true))]
    pub scope: String,
    /// The region.
    #[schemars(extend("x-required" = true))]
    pub region: String,
    /// The distance between points, in seconds.
    #[schemars(extend("x-required" = true))]
    pub step: i64,
    /// When it starts.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub start: String,
    /// When it ends.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub end: String,
}

/// A question to a web address.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct WebMetric {
    /// GET, POST or PUT; GET if not given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub method: String,
    /// The address.
    #[schemars(extend("x-required" = true))]
    pub url: String,
    /// Headers to send.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<WebMetricHeader>,
    /// The body to send.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// How many seconds to wait; 10 if not given.
    #[serde(skip_serializing_if = "is_zero")]
    pub timeout_seconds: i64,
    /// What to take from the answer; all of it if not given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub json_path: String,
    /// Does not check the certificate.
    #[serde(skip_serializing_if = "is_zero")]
    pub insecure: bool,
    /// The body to send, as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::any_object")]
    pub json_body: Option<Value>,
    /// How to log in.
    pub authentication: Authentication,
}

/// A header.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct WebMetricHeader {
    /// Its name.
    #[schemars(extend("x-required" = true))]
    pub key: String,
    /// Its value.
    #[schemars(extend("x-required" = true))]
    pub value: String,
}

/// A query to Datadog.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct DatadogMetric {
    /// How far back to look.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("x-default" = "5m"))]
    pub interval: String,
    /// The query.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// Several queries by name, for a formula.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub queries: BTreeMap<String, String>,
    /// A formula over the queries.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub formula: String,
    /// Which API to ask: v1 or v2.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["v1", "v2"], "x-default" = "v1"))]
    pub api_version: String,
    /// How points become one, in v2.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["avg", "min", "max", "sum", "last", "percentile", "mean", "l2norm", "area"]))]
    pub aggregator: String,
    /// The Secret with its keys.
    pub secret_ref: SecretRef,
    /// How long to wait.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("x-default" = "10s"))]
    pub request_timeout: String,
}

/// A Secret.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SecretRef {
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// It is in the namespace of the analysis, not of the controller.
    #[serde(skip_serializing_if = "is_zero")]
    pub namespaced: bool,
}
