//! The JSON of `docs/plan.md`: fields are added, never renamed or removed.

use jiff::SignedDuration;
use serde_json::{Value as Json, json};

use crate::{
    kubernetes::value::Text,
    lint::rule::Severity,
    plan::{Change, Live, Plan, PlannedHook, RolloutPlan, Side, Starts, Warning, What, forecast::Forecast},
    sync::id::Id,
};

/// A plan for programs.
pub fn json(plan: &Plan) -> String {
    let side = |side: &Side| json!({"name": side.name, "commit": side.commit});
    let problem = |problem: &crate::sync::set::Problem| json!({"file": problem.file.as_str(), "line": problem.line, "message": problem.message});
    let whole = json!({
        "version": 1,
        "hash": plan.hash,
        "hasChanges": plan.has_changes(),
        "from": side(&plan.from),
        "to": side(&plan.to),
        "path": plan.path,
        "source": plan.source,
        "counts": {
            "create": plan.count(What::Create),
            "change": plan.count(What::Change),
            "delete": plan.count(What::Delete),
            "keep": plan.count(What::Keep),
            "unchanged": plan.unchanged,
            "rollouts": plan.rollouts.len(),
            "errors": plan.warned(Severity::Error),
            "warnings": plan.warned(Severity::Warning),
            "hints": plan.warned(Severity::Hint),
            "problems": plan.problems.len(),
        },
        "problems": plan.problems.iter().map(problem).collect::<Vec<_>>(),
        "objects": plan.objects.iter().map(object).collect::<Vec<_>>(),
        "rollouts": plan.rollouts.iter().map(rollout).collect::<Vec<_>>(),
        "hooks": hooks(&plan.hooks),
        "warnings": plan.warnings.iter().map(warning).collect::<Vec<_>>(),
        "live": plan.live.as_ref().map(live),
    });
    let mut text = serde_json::to_string_pretty(&whole).unwrap_or_default();
    text.push('\n');
    text
}

fn named(id: &Id, mut with: Json) -> Json {
    if let Json::Object(map) = &mut with {
        for (key, text) in [("group", &id.group), ("kind", &id.kind), ("namespace", &id.namespace), ("name", &id.name)]
        {
            map.insert(key.to_owned(), Json::from(text.as_str()));
        }
    }
    with
}

fn object(change: &Change) -> Json {
    let mut object = json!({
        "change": change.what.as_str(), "file": change.file.as_str(), "line": change.line,
        "fields": change.fields, "note": change.note, "diff": change.diff,
    });
    // Of a kustomization alone.
    if !change.patched.is_empty() {
        let place = |(file, line): &(Text, usize)| json!({"file": file.as_str(), "line": line});
        object["patched"] = change.patched.iter().map(place).collect();
    }
    named(&change.id, object)
}

fn rollout(rollout: &RolloutPlan) -> Json {
    let (revision, skips_steps) = match rollout.starts {
        Starts::Rollback { revision, skips_steps } => (Some(revision), skips_steps),
        Starts::FirstDeployment => (None, true),
        Starts::NewRollout
        | Starts::Scale
        | Starts::Restart
        | Starts::Configuration
        | Starts::Nothing
        | Starts::Held
        | Starts::Invalid
        | Starts::Removed
        | Starts::Unknown => (None, false),
    };
    json!({
        "namespace": rollout.id.namespace.as_str(), "name": rollout.id.name.as_str(),
        "file": rollout.file.as_str(), "line": rollout.line,
        "starts": rollout.starts.as_str(), "reason": rollout.reason,
        "revision": revision, "skipsSteps": skips_steps,
        "supersedes": rollout.supersedes.map(|(step, steps)| json!({"step": step, "steps": steps})),
        "strategy": rollout.strategy,
        "forecast": rollout.forecast.as_ref().map(forecast),
    })
}

/// Seconds with one decimal: more would promise what no forecast can keep.
fn seconds(duration: SignedDuration) -> Json {
    let tenths = i64::try_from(duration.as_millis() / 100).unwrap_or(i64::MAX);
    #[allow(clippy::cast_precision_loss)]
    Json::from(tenths as f64 / 10.0)
}

fn forecast(forecast: &Forecast) -> Json {
    let approvals = forecast
        .approvals
        .iter()
        .map(|approval| json!({"step": approval.step, "seconds": seconds(approval.at), "what": approval.what}));
    let steps = forecast.steps.iter().map(|step| {
        let analyses = step.analyses.iter().map(|analysis| {
            json!({
                "name": analysis.name, "role": analysis.role, "arguments": analysis.arguments,
                "metrics": analysis.metrics, "seconds": analysis.lasts.map(seconds),
                "queries": analysis.queries.iter().map(|query| {
                    json!({"metric": query.metric, "phase": query.phase, "value": query.value, "message": query.message})
                }).collect::<Vec<_>>(),
            })
        });
        json!({
            "seconds": seconds(step.at), "lasts": seconds(step.lasts), "step": step.number, "steps": step.of,
            "what": step.what, "weight": step.weight, "traffic": step.traffic, "stable": step.stable,
            "canary": step.canary, "total": step.total, "wait": step.waits_for.as_str(),
            "analyses": analyses.collect::<Vec<_>>(),
            "ifAnalysisFails": step.if_analysis_fails.as_ref().map(|back| {
                json!({"to": back.to, "seconds": seconds(back.lasts), "message": back.message})
            }),
        })
    });
    let curve = forecast.curve.iter().map(|point| {
        json!({"seconds": seconds(point.at), "stable": point.stable, "canary": point.canary, "weight": point.weight})
    });
    json!({
        "outcome": forecast.outcome.as_str(), "message": forecast.message, "seconds": seconds(forecast.ends),
        "approvals": approvals.collect::<Vec<_>>(), "steps": steps.collect::<Vec<_>>(),
        "peak": {
            "pods": forecast.peak.pods, "cpuMillis": forecast.peak.cpu_millis, "memoryBytes": forecast.peak.memory_bytes,
        },
        "lowest": {"available": forecast.lowest.0, "wanted": forecast.lowest.1},
        "curve": curve.collect::<Vec<_>>(),
    })
}

/// The hooks that run.
pub fn hooks(hooks: &[PlannedHook]) -> Json {
    let hook = |hook: &PlannedHook| {
        let (phase, file) = (hook.phase.name(), hook.file.as_str());
        named(&hook.id, json!({"phase": phase, "wave": hook.wave, "file": file, "line": hook.line}))
    };
    hooks.iter().map(hook).collect()
}

fn warning(warning: &Warning) -> Json {
    json!({
        "severity": warning.severity.to_string(), "rule": warning.rule, "message": warning.message,
        "remedy": warning.remedy, "object": warning.object, "file": warning.file, "line": warning.line,
        "column": warning.column,
    })
}

fn live(live: &Live) -> Json {
    let objects = live.objects.iter().map(|object| {
        named(&object.id, json!({"change": object.change, "drift": object.drift, "refused": object.refused}))
    });
    let prune =
        live.prune.iter().map(|pruned| named(&pruned.id, json!({"removed": pruned.removed, "reason": pruned.reason})));
    json!({"cluster": live.cluster, "objects": objects.collect::<Vec<_>>(), "prune": prune.collect::<Vec<_>>(),
        "unseen": live.unseen})
}
