//! The dashboard for Grafana. Descriptions of panels come from the metric table; a test holds expressions and table together.

use super::NAME;
use crate::{engine::metrics::table::Metric, kubernetes::value::Value, value};

/// A graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panel {
    /// What it shows.
    pub title: &'static str,
    /// How the numbers are written, as Grafana calls it.
    pub unit: &'static str,
    /// Each line, and what it is called.
    pub queries: &'static [(&'static str, &'static str)],
}

/// The rows, with their panels.
pub const ROWS: &[(&str, &[Panel])] = &[
    (
        "From commit to rolled out",
        &[
            Panel {
                title: "Newest commit not rolled out for",
                unit: "s",
                queries: &[(
                    "max by (namespace, name) (tidegate_source_behind_seconds{stage=\"rolled_out\",namespace=~\"$namespace\"})",
                    "{{namespace}}/{{name}}",
                )],
            },
            Panel {
                title: "Seen to applied",
                unit: "s",
                queries: &[
                    (
                        "histogram_quantile(0.5, sum by (le) (rate(tidegate_source_lag_seconds_bucket{stage=\"applied\",namespace=~\"$namespace\"}[1h])))",
                        "median",
                    ),
                    (
                        "histogram_quantile(0.95, sum by (le) (rate(tidegate_source_lag_seconds_bucket{stage=\"applied\",namespace=~\"$namespace\"}[1h])))",
                        "95 %",
                    ),
                ],
            },
            Panel {
                title: "Seen to rolled out",
                unit: "s",
                queries: &[
                    (
                        "histogram_quantile(0.5, sum by (le) (rate(tidegate_source_lag_seconds_bucket{stage=\"rolled_out\",namespace=~\"$namespace\"}[1h])))",
                        "median",
                    ),
                    (
                        "histogram_quantile(0.95, sum by (le) (rate(tidegate_source_lag_seconds_bucket{stage=\"rolled_out\",namespace=~\"$namespace\"}[1h])))",
                        "95 %",
                    ),
                ],
            },
            Panel {
                title: "Sources stalled, not ready, not reported",
                unit: "short",
                queries: &[
                    ("sum(tidegate_source_condition{type=\"Stalled\",namespace=~\"$namespace\"})", "stalled"),
                    ("count(tidegate_source_condition{type=\"Ready\",namespace=~\"$namespace\"} == 0)", "not ready"),
                    (
                        "count(tidegate_source_condition{type=\"Reported\",namespace=~\"$namespace\"} == 0)",
                        "not reported",
                    ),
                    ("sum(tidegate_source_held{namespace=~\"$namespace\"})", "objects held"),
                ],
            },
            Panel {
                title: "Commit statuses by the host's answer",
                unit: "ops",
                queries: &[(
                    "sum by (outcome) (rate(tidegate_source_reports_total{namespace=~\"$namespace\"}[5m]))",
                    "{{outcome}}",
                )],
            },
        ],
    ),
    (
        "Rollouts",
        &[
            Panel {
                title: "Rollouts by phase",
                unit: "short",
                queries: &[("sum by (phase) (rollout_info{namespace=~\"$namespace\"})", "{{phase}}")],
            },
            Panel {
                title: "Duration by how it ended, 95 %",
                unit: "s",
                queries: &[(
                    "histogram_quantile(0.95, sum by (le, status) (rate(rollout_duration_seconds_bucket[1d])))",
                    "{{status}}",
                )],
            },
            Panel {
                title: "Unavailable replicas",
                unit: "short",
                queries: &[(
                    "rollout_info_replicas_unavailable{namespace=~\"$namespace\"} > 0",
                    "{{namespace}}/{{name}}",
                )],
            },
            Panel {
                title: "Analysis runs by phase",
                unit: "short",
                queries: &[("sum by (phase) (analysis_run_info{namespace=~\"$namespace\"})", "{{phase}}")],
            },
            Panel {
                title: "Events",
                unit: "ops",
                queries: &[(
                    "sum by (reason) (rate(rollout_events_total{namespace=~\"$namespace\"}[5m]))",
                    "{{reason}}",
                )],
            },
        ],
    ),
    (
        "The daemon",
        &[
            Panel {
                title: "Passes by outcome",
                unit: "ops",
                queries: &[("sum by (machine, outcome) (rate(tidegate_passes_total[5m]))", "{{machine}} {{outcome}}")],
            },
            Panel {
                title: "Queue, running, fenced",
                unit: "short",
                queries: &[
                    ("sum(tidegate_queue_depth)", "due"),
                    ("sum(tidegate_passes_running)", "running"),
                    ("sum(tidegate_fenced)", "fenced"),
                ],
            },
            Panel {
                title: "Time to reconcile a Rollout",
                unit: "s",
                queries: &[
                    ("histogram_quantile(0.5, sum by (le) (rate(rollout_reconcile_bucket[5m])))", "median"),
                    ("histogram_quantile(0.95, sum by (le) (rate(rollout_reconcile_bucket[5m])))", "95 %"),
                ],
            },
            Panel {
                title: "Refused decisions",
                unit: "short",
                queries: &[("sum by (machine) (increase(tidegate_refused_total[1h]))", "{{machine}}")],
            },
            Panel {
                title: "Requests to the API server",
                unit: "ops",
                queries: &[(
                    "sum by (verb, status_code) (rate(controller_clientset_k8s_request_total[5m]))",
                    "{{verb}} {{status_code}}",
                )],
            },
            Panel {
                title: "Objects known",
                unit: "short",
                queries: &[("sum by (kind) (tidegate_cache_objects)", "{{kind}}")],
            },
        ],
    ),
];

/// The words of an expression that name series: neither functions nor labels nor what stands in braces and brackets.
pub fn series(expression: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let (mut rest, mut depth) = (expression, 0_usize);
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        if length == 0 {
            depth = match first {
                '{' | '[' => depth + 1,
                '}' | ']' => depth.saturating_sub(1),
                _ => depth,
            };
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let word = &rest[..length];
        rest = &rest[length..];
        if word == "by" {
            // Labels in brackets.
            rest = rest.split_once(')').map_or("", |(_, after)| after);
        } else if depth == 0 && word.contains('_') && !rest.starts_with('(') {
            // Every metric's name has an underscore; a function's is followed by a bracket.
            found.push(word);
        }
    }
    found
}

/// The dashboard, as Grafana imports it.
pub fn dashboard() -> Value {
    let mut panels = Vec::new();
    let mut top = 0_i64;
    for (title, row) in ROWS {
        panels.push(value!({
            "type": "row", "title": *title, "collapsed": false, "id": panels.len() as i64 + 1,
            "gridPos": {"x": 0, "y": top, "w": 24, "h": 1}, "panels": [],
        }));
        top += 1;
        for (number, panel) in row.iter().enumerate() {
            let place = (number % 3) as i64 * 8;
            let mut graph = graph(panel, panels.len() as i64 + 1);
            graph.set_at(&["gridPos"], value!({"x": place, "y": top, "w": 8, "h": 8}));
            panels.push(graph);
            if number % 3 == 2 || number + 1 == row.len() {
                top += 8;
            }
        }
    }
    value!({
        "title": "Tidegate", "uid": NAME, "tags": [NAME], "schemaVersion": 39, "editable": true, "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"}, "timezone": "browser",
        "templating": {"list": [
            {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
            {
                "name": "namespace", "label": "Namespace", "type": "query", "datasource": source(),
                "query": "label_values(rollout_info, namespace)", "refresh": 2, "sort": 1,
                "includeAll": true, "multi": true, "allValue": ".*", "current": {"text": "All", "value": "$__all"},
            },
        ]},
        "panels": Value::list(panels),
    })
}

fn source() -> Value {
    value!({"type": "prometheus", "uid": "${datasource}"})
}

fn graph(panel: &Panel, id: i64) -> Value {
    let mut descriptions: Vec<String> = Vec::new();
    for name in panel.queries.iter().flat_map(|(expression, _)| series(expression)) {
        let Some(metric) = Metric::of(name) else { continue };
        let line = format!("`{}`: {}", metric.name, metric.help);
        if !descriptions.contains(&line) {
            descriptions.push(line);
        }
    }
    let queries = panel.queries.iter().zip('A'..).map(|((expression, legend), letter)| {
        value!({
            "refId": letter.to_string(), "expr": *expression, "legendFormat": *legend, "datasource": source(),
            "editorMode": "code", "range": true,
        })
    });
    value!({
        "id": id, "type": "timeseries", "title": panel.title, "description": descriptions.join("\n\n"),
        "datasource": source(),
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "custom": {"fillOpacity": 8, "showPoints": "never"}}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": Value::list(queries),
    })
}

/// The ConfigMap, without a name.
pub(super) fn config_map() -> Value {
    let json = serde_json::to_string_pretty(&dashboard()).unwrap_or_default();
    value!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"labels": {"grafana_dashboard": "1"}},
        "data": {"tidegate.json": json},
    })
}
