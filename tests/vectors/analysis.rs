//! Analyses: arguments, templates put together, what measurements come to, and whole passes.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value as Json, json};
use tidegate::{
    analysis::{self, Look, Phase, Sample, Work, assess, schedule},
    api::{self, AnalysisRun, AnalysisTemplateSpec, Argument, Measurement, Metric, MetricResult},
    kubernetes::{status::go_quoted, value::Value},
    model::{arguments, compose, event::Event, go_json, parse},
};

use super::check;

fn read<T: serde::de::DeserializeOwned + Default>(json: &Json) -> T {
    api::read(&Value::from(json.clone())).object
}

fn text<'j>(json: &'j Json, key: &str) -> &'j str {
    json[key].as_str().unwrap_or_default()
}

fn time(json: &Json) -> Timestamp {
    json.as_str().unwrap().parse().unwrap()
}

fn written<T: serde::Serialize>(object: &T) -> Json {
    Json::from(&api::write(object))
}

/// A metric as Go writes it.
fn metric(metric: &Metric) -> Json {
    serde_json::from_str(&go_json::metric().text(&api::write(metric))).unwrap()
}

fn outcome(key: &str, outcome: Result<Json, String>) -> Json {
    match outcome {
        Ok(value) => json!({"error": null, key: value}),
        Err(error) => json!({"error": error}),
    }
}

#[test]
fn vectors_analysis_args() {
    check("analysis-args", |input, expect| {
        let given: Vec<Argument> = read(&input["args"]);
        Some(match text(input, "kind") {
            "merge" => {
                let merged = arguments::merge(
                    &read::<Vec<Argument>>(&input["incoming"]),
                    &read::<Vec<Argument>>(&input["template"]),
                );
                outcome("args", merged.map(|arguments| written(&arguments)))
            }
            "resolve-metric" => {
                let ours = arguments::resolve_metric(&read(&input["metric"]), &given);
                match ours {
                    // What a value breaks is told by another reader of JSON in other words.
                    Err(_) if text(expect, "error").starts_with("invalid character") => expect.clone(),
                    ours => outcome("metric", ours.map(|resolved| metric(&resolved))),
                }
            }
            "resolve-text" => {
                let quote = |argument: &Argument| {
                    let quoted = argument.value.as_deref().map(go_quoted);
                    let inner = quoted.map(|text| text[1..text.len() - 1].to_owned());
                    Argument { value: inner, ..argument.clone() }
                };
                let quoted: Vec<Argument> = given.iter().map(quote).collect();
                let given = if input["quoted"] == true { &quoted } else { &given };
                outcome("text", arguments::resolve_text(text(input, "text"), given).map(Json::from))
            }
            "rollout-args" => {
                let versions =
                    arguments::Versions { stable: text(input, "stableHash"), latest: text(input, "newHash") };
                let asked: Vec<api::AnalysisRunArgument> = read(&input["args"]);
                let (given, error) = arguments::given(&asked, versions, &read(&input["rollout"]));
                json!({"args": given.map(|given| written(&given)), "error": error})
            }
            kind => panic!("{kind}"),
        })
    });
}

#[test]
fn vectors_analysis_templates() {
    check("analysis-templates", |input, _| {
        let specs = |key: &str| -> Vec<AnalysisTemplateSpec> {
            input[key].as_array().into_iter().flatten().map(|template| read(&template["spec"])).collect()
        };
        let all: Vec<AnalysisTemplateSpec> = specs("templates").into_iter().chain(specs("clusterTemplates")).collect();
        let (given, dry_run, retention): (Vec<Argument>, Vec<_>, Vec<_>) =
            (read(&input["args"]), read(&input["dryRun"]), read(&input["measurementRetention"]));
        let flattened = match compose::flatten(all.iter()) {
            Ok(flattened) => flattened,
            Err(refusal) => return Some(json!({"flattenError": refusal.to_string(), "runError": refusal.to_string()})),
        };
        let whole = |spec: Json, metrics: &[Metric]| {
            let mut spec = spec;
            if !metrics.is_empty() {
                spec["metrics"] = metrics.iter().map(metric).collect();
            }
            spec
        };
        let mut answer = json!({"flattenError": null, "flattened": whole(written(&flattened), &flattened.metrics)});
        let given = compose::Given { arguments: &given, dry_run: &dry_run, retention: &retention };
        let spec = match compose::run(flattened, given) {
            Ok(spec) => spec,
            Err(refusal) => {
                answer["runError"] = refusal.to_string().into();
                return Some(answer);
            }
        };
        answer["runError"] = Json::Null;
        answer["runSpec"] = whole(written(&spec), &spec.metrics);
        if spec.metrics.is_empty() {
            answer["runSpec"]["metrics"] = Json::Null;
        }
        answer["validateError"] = parse::metrics_error(&spec.metrics).map_or(Json::Null, Json::from);
        let run = AnalysisRun { spec, ..AnalysisRun::default() };
        let (found, problem) = analysis::dry_run(&run, &run.spec.metrics);
        answer["dryRunError"] = problem.map_or(Json::Null, Json::from);
        answer["dryRunMetrics"] = found.into_iter().map(|name| (name, Json::from(true))).collect();
        let (found, problem) = analysis::kept(&run, &run.spec.metrics);
        answer["retentionError"] = problem.map_or(Json::Null, Json::from);
        answer["retentionLimits"] = found.into_iter().map(|(name, limit)| (name, Json::from(limit))).collect();
        Some(answer)
    });
}

fn reasons(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(|event| event.reason).collect()
}

#[test]
fn vectors_analysis_assess() {
    check("analysis-assess", |input, _| {
        Some(match text(input, "kind") {
            "worst" => {
                let (left, right) = (Phase::of(text(input, "left")), Phase::of(text(input, "right")));
                json!({
                    "isWorse": right.is_worse_than(left),
                    "leftCompleted": left.is_over(),
                    "worst": left.worse(right).as_str(),
                })
            }
            "metric-status" => {
                let (metric, result): (Metric, MetricResult) = (read(&input["metric"]), read(&input["result"]));
                let broken = assess::broken_limit(&metric, &result);
                let (phase, message) = broken.unwrap_or_default();
                json!({
                    "effectiveCount": assess::effective_count(&metric),
                    "limitPhase": phase.as_str(),
                    "limitMessage": message,
                    "phase": assess::metric(&metric, &result, input["terminating"] == true).as_str(),
                })
            }
            "run-status" => {
                let mut run: AnalysisRun = read(&input["run"]);
                let metrics = run.spec.metrics.clone();
                let now = time(&input["now"]);
                let names = input["dryRun"].as_object().into_iter().flatten();
                let dry_run: BTreeSet<String> = names.map(|(name, _)| name.clone()).collect();
                let was_ending = assess::is_ending(&run);
                let ours = assess::run(&mut run, &metrics, &dry_run, now);
                let results = run
                    .status
                    .metric_results
                    .iter()
                    .map(|result| json!({"name": result.name, "phase": result.phase, "message": result.message}));
                json!({
                    "phase": ours.phase.as_str(),
                    "message": ours.message,
                    "eventReasons": reasons(&ours.events),
                    "metricResults": results.collect::<Vec<_>>(),
                    "runSummary": written(&run.status.run_summary),
                    "dryRunSummary": written(&run.status.dry_run_summary),
                    "nextReconcile": schedule::next(&run.status, &metrics, now).map(|time| time.to_string()),
                    "wasTerminating": was_ending,
                })
            }
            "ttl" => {
                let end = assess::end_of_life(&read(&input["run"]));
                json!({"exceeded": end.is_some_and(|end| end <= time(&input["now"]))})
            }
            kind => panic!("{kind}"),
        })
    });
}

/// What the provider of the recording answers.
fn sample(input: &Json, name: &str, work: &Work) -> Sample {
    let now: api::Time = time(&input["now"]).into();
    let measurement = match work {
        Work::Terminate(before) => Measurement { phase: "Successful".into(), finished_at: Some(now), ..before.clone() },
        Work::Start | Work::Resume(_) => {
            let answered: Measurement = read(&input["measurements"][name]);
            let started_at = match work {
                Work::Resume(before) => before.started_at,
                Work::Start | Work::Terminate(_) => Some(now),
            };
            Measurement { started_at, ..answered }
        }
    };
    Sample { measurement, ..Sample::default() }
}

#[test]
fn vectors_analysis_reconcile() {
    check("analysis-reconcile", |input, _| {
        let run: AnalysisRun = read(&input["run"]);
        let now = time(&input["now"]);
        let (status, events, wake) = match analysis::look(&run, now) {
            Look::Over(_) => (run.status.clone(), Vec::new(), None),
            Look::Broken(problem) => {
                let verdict = analysis::broken(&run, problem);
                (verdict.status, verdict.events, verdict.wake)
            }
            Look::Open(plan) => {
                let samples = plan.tasks.iter().map(|task| sample(input, &task.name, &task.work)).collect();
                let verdict = analysis::decide(&run, &plan, samples, &[], now);
                (verdict.status, verdict.events, verdict.wake)
            }
        };
        let mut status = written(&status);
        if let Some(results) = status.get_mut("metricResults").and_then(Json::as_array_mut) {
            results.sort_by_key(|result| result["name"].to_string());
        }
        let wait = wake.map(|wake| wake.duration_since(now).as_secs().max(0));
        Some(json!({"status": status, "eventReasons": reasons(&events), "requeueAfterSeconds": wait}))
    });
}
