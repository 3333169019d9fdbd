//! The alerts, for the Prometheus operator. What each expression names is in the metric table; a test holds them together.

use crate::{kubernetes::value::Value, value};

/// Something that a person should know of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alert {
    /// `GitSourceStalled`
    pub name: &'static str,
    /// What must hold.
    pub expression: &'static str,
    /// For how long.
    pub minutes: u32,
    /// `critical`: nothing is reconciled; `warning`: something is wrong; `info`: a person may be waited for.
    pub severity: &'static str,
    /// What happens.
    pub summary: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

/// All of them, the worst first.
pub const ALERTS: &[Alert] = &[
    Alert {
        name: "TidegateDown",
        expression: "absent(up{job=\"tidegate-metrics\"} == 1)",
        minutes: 5,
        severity: "critical",
        summary: "No Tidegate pod answers.",
        remedy: "`kubectl -n tidegate describe pods` says why pods do not start; `tidegate doctor` checks rights and definitions.",
    },
    Alert {
        name: "TidegatePassesFail",
        expression: "sum by (machine) (rate(tidegate_passes_total{outcome=\"failed\"}[10m])) / sum by (machine) (rate(tidegate_passes_total[10m])) > 0.5",
        minutes: 10,
        severity: "critical",
        summary: "More than half of the passes of machine {{ $labels.machine }} fail.",
        remedy: "The log has the errors (`level=ERROR` and `WARN`); `tidegate doctor --account tidegate/tidegate` checks every right.",
    },
    Alert {
        name: "TidegateFenceStands",
        expression: "min_over_time(tidegate_fenced[15m]) > 0",
        minutes: 15,
        severity: "warning",
        summary: "{{ $value }} objects wait to see what was written; their watch may have stopped.",
        remedy: "Look at `tidegate_watch_restarts_total` and the API server's health; deleting the leader's pod hands over to the other one.",
    },
    Alert {
        name: "TidegateQueueStands",
        expression: "min_over_time(tidegate_queue_depth[10m]) > 50",
        minutes: 10,
        severity: "warning",
        summary: "More than 50 objects have been due for ten minutes.",
        remedy: "Compare `rollout_reconcile` and `controller_clientset_k8s_request_total` with earlier; raise `--workers` or the CPU request.",
    },
    Alert {
        name: "TidegateRefusesDecisions",
        expression: "increase(tidegate_refused_total[15m]) > 0",
        minutes: 0,
        severity: "warning",
        summary: "A decision of machine {{ $labels.machine }} would have broken a rule and was refused; nothing was changed.",
        remedy: "This is a bug of Tidegate: the object's events name the rule. Report it with the file that `--record` writes.",
    },
    Alert {
        name: "GitSourceStalled",
        expression: "tidegate_source_condition{type=\"Stalled\"} == 1",
        minutes: 10,
        severity: "warning",
        summary: "GitSource {{ $labels.namespace }}/{{ $labels.name }} is stalled.",
        remedy: "Its condition Stalled says why and what to do: `kubectl describe gitsource`.",
    },
    Alert {
        name: "GitSourceNotApplied",
        expression: "tidegate_source_behind_seconds{stage=\"applied\"} > 900",
        minutes: 5,
        severity: "warning",
        summary: "The newest commit of GitSource {{ $labels.namespace }}/{{ $labels.name }} has not been applied for 15 minutes.",
        remedy: "`tidegate sources` shows what it waits for: `dependsOn`, a hook, a hold, or an error.",
    },
    Alert {
        name: "GitSourceNotReported",
        expression: "tidegate_source_condition{type=\"Reported\"} == 0",
        minutes: 15,
        severity: "warning",
        summary: "The git host takes no commit statuses of GitSource {{ $labels.namespace }}/{{ $labels.name }}.",
        remedy: "Its condition Reported has the host's answer; most often the token lacks a scope. Rollouts go on all the same.",
    },
    Alert {
        name: "GitSourceNotRolledOut",
        expression: "tidegate_source_behind_seconds{stage=\"rolled_out\"} > 14400",
        minutes: 5,
        severity: "info",
        summary: "The newest commit of GitSource {{ $labels.namespace }}/{{ $labels.name }} has not been rolled out for four hours.",
        remedy: "`tidegate sources` and `tidegate list rollouts` show what waits: often a pause without a duration.",
    },
    Alert {
        name: "RolloutDegraded",
        expression: "rollout_info{phase=~\"Abort|Error|InvalidSpec|Timeout\"} == 1",
        minutes: 10,
        severity: "warning",
        summary: "Rollout {{ $labels.namespace }}/{{ $labels.name }} is degraded: {{ $labels.phase }}.",
        remedy: "`tidegate get rollout` names the pod, the metric or the field; the stable version goes on serving.",
    },
    Alert {
        name: "RolloutPaused",
        expression: "rollout_info{phase=\"Paused\"} == 1",
        minutes: 1440,
        severity: "info",
        summary: "Rollout {{ $labels.namespace }}/{{ $labels.name }} has been paused for a day.",
        remedy: "`tidegate promote` goes on, `tidegate abort` goes back.",
    },
];

/// The PrometheusRule, without a name.
pub(super) fn rule() -> Value {
    let rules = ALERTS.iter().map(|alert| {
        value!({
            "alert": alert.name, "expr": alert.expression, "for": format!("{}m", alert.minutes),
            "labels": {"severity": alert.severity},
            "annotations": {
                "summary": alert.summary, "description": alert.remedy,
                "runbook_url": "https://github.com/tidegate/tidegate/blob/main/docs/metrics.md#alerts",
            },
        })
    });
    value!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
        "spec": {"groups": [{"name": super::NAME, "rules": Value::list(rules)}]},
    })
}

/// The alerts as a table of the documentation.
pub fn markdown() -> String {
    let mut out = "| alert | severity | fires when | what to do |\n|---|---|---|---|\n".to_owned();
    for alert in ALERTS {
        let expression = alert.expression.replace('|', "\\|");
        let after = if alert.minutes == 0 { String::new() } else { format!(" for {} minutes", alert.minutes) };
        out.push_str(&format!("| {} | {} | `{expression}`{after} | {} |\n", alert.name, alert.severity, alert.remedy));
    }
    out
}
