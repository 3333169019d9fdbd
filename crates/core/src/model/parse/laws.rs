//! Laws of parsing: it answers whatever it is given, and what it makes of a good object is all of it.
//!
//! The second is shown by the way back: an exact Rollout, written as a manifest, is the same exact Rollout when read
//! again.

use proptest::prelude::*;

use super::*;
use crate::{
    api::{IntOrString, RolloutAnalysis},
    kubernetes::value::Value,
    model::{
        analysis::{Analysis, ArgumentValue, Scope, TemplateRef},
        problem::Severity,
        references::{self, References, ServiceRole, Templates},
        rollout::{PodTemplate, Pods, ScaleDown},
        step::{Action, CanaryScale, ExperimentStep, RequestMatch, TextMatch},
        strategy::{AfterAbort, AntiAffinity, BlueGreen, Canary, Metadata, Promotion, Strategy, Threshold},
        traffic::{Ingresses, OldPods, Router, Traffic},
        weight::Limit,
    },
    value,
};

/// Objects with as many fields as possible, to start from.
fn objects() -> Vec<Value> {
    let template = value!({
        "metadata": {"labels": {"app": "web"}, "annotations": {"a": "b"}},
        "spec": {"containers": [{"name": "web", "image": "web:1", "ports": [{"containerPort": 80}],
            "resources": {"limits": {"cpu": "1"}}, "env": [{"name": "A", "value": "b"}]}]},
    });
    let json = |value: &Value| serde_json::Value::from(value);
    let analysis = value!({
        "templates": [{"templateName": "t"}, {"templateName": "c", "clusterScope": true}],
        "args": [{"name": "a", "value": "1"}, {"name": "h", "valueFrom": {"podTemplateHashValue": "Stable"}},
            {"name": "l", "valueFrom": {"podTemplateHashValue": "Latest"}},
            {"name": "f", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}}],
        "dryRun": [{"metricName": ".*"}], "measurementRetention": [{"metricName": "m", "limit": 3}],
        "analysisRunMetadata": {"labels": {"x": "y"}},
    });
    let mut background = analysis.clone();
    background.set_at(&["startingStep"], 1);
    let common = value!({
        "replicas": 5, "selector": {"matchLabels": {"app": "web"}}, "template": json(&template), "minReadySeconds": 3,
        "revisionHistoryLimit": 4, "paused": true, "progressDeadlineSeconds": 60, "progressDeadlineAbort": true,
        "restartAt": "2026-01-02T03:04:05Z", "rollbackWindow": {"revisions": 2},
        "analysis": {"successfulRunHistoryLimit": 1, "unsuccessfulRunHistoryLimit": 2},
    });
    let with = |strategy: serde_json::Value| {
        let mut spec = common.clone();
        spec.set_at(&["strategy"], Value::from(strategy));
        value!({"metadata": {"name": "web"}, "spec": json(&spec)})
    };
    let routing = value!({
        "istio": {"virtualServices": [{"name": "vs", "routes": ["r"], "tlsRoutes": [{"port": 3, "sniHosts": ["h"]}],
            "tcpRoutes": [{"port": 4}]}],
            "destinationRule": {"name": "d", "canarySubsetName": "cs", "stableSubsetName": "ss"}},
        "nginx": {"stableIngress": "i", "annotationPrefix": "p", "additionalIngressAnnotations": {"a": "b"}},
        "alb": {"ingresses": ["i"], "servicePort": 80, "rootService": "r",
            "stickinessConfig": {"enabled": true, "durationSeconds": 5}},
        "smi": {"rootService": "r", "trafficSplitName": "t"}, "ambassador": {"mappings": ["m"]},
        "appMesh": {"virtualService": {"name": "v", "routes": ["r"]}, "virtualNodeGroup": {
            "canaryVirtualNodeRef": {"name": "c"}, "stableVirtualNodeRef": {"name": "s"}}},
        "traefik": {"weightedTraefikServiceName": "t"}, "apisix": {"route": {"name": "a", "rules": ["r"]}},
        "gatewayAPI": {"httpRoute": "r", "tcpRoutes": [{"name": "t"}], "skipVerification": true},
        "plugins": {"x/y": {"z": 1}}, "managedRoutes": [{"name": "h"}, {"name": "m"}], "maxTrafficWeight": 200,
    });
    let steps = value!([
        {"setWeight": 150}, {"pause": {}}, {"pause": {"duration": "1h"}}, {"setCanaryScale": {"weight": 20}},
        {"setCanaryScale": {"replicas": 2}}, {"setCanaryScale": {"matchTrafficWeight": true}},
        {"analysis": json(&analysis)},
        {"setHeaderRoute": {"name": "h", "match": [{"headerName": "x", "headerValue": {"exact": "y"}}]}},
        {"setMirrorRoute": {"name": "m", "percentage": 30, "match": [{"method": {"exact": "GET"},
            "path": {"prefix": "/"}, "headers": {"a": {"regex": "b"}}}]}},
        {"plugin": {"name": "a/b", "config": {"c": [1]}}},
        {"experiment": {"duration": "1h", "scaleDownDelaySeconds": 3, "dryRun": [{"metricName": "x"}],
            "templates": [{"name": "a", "specRef": "stable", "replicas": 2, "weight": 5, "service": {"name": "q"},
                "metadata": {"labels": {"a": "b"}}, "selector": {"matchLabels": {"a": "b"}}}],
            "analyses": [{"name": "n", "templateName": "t", "clusterScope": true, "requiredForCompletion": true,
                "args": [{"name": "a", "value": "1"}]}]}},
        {"setWeight": 3, "setCanaryScale": {"replicas": 1}},
    ]);
    let canary = with(serde_json::json!({"canary": {
        "canaryService": "c", "stableService": "s", "maxSurge": "20%", "maxUnavailable": 1,
        "analysis": json(&background), "antiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}},
        "canaryMetadata": {"labels": {"role": "c"}}, "stableMetadata": {"annotations": {"role": "s"}},
        "scaleDownDelaySeconds": 9, "scaleDownDelayRevisionLimit": 2, "abortScaleDownDelaySeconds": 0,
        "minPodsPerReplicaSet": 2, "replicaProgressThreshold": {"type": "Pods", "value": 3},
        "pingPong": {"pingService": "ping", "pongService": "pong"},
        "trafficRouting": json(&routing), "steps": json(&steps),
    }}));
    let plain = with(serde_json::json!({"canary": {"maxSurge": 1, "maxUnavailable": 0, "steps": [{"setWeight": 20}]}}));
    let blue_green = with(serde_json::json!({"blueGreen": {
        "activeService": "a", "previewService": "p", "previewReplicaCount": 1, "autoPromotionEnabled": true,
        "autoPromotionSeconds": 5, "maxUnavailable": "10%", "scaleDownDelaySeconds": 3, "scaleDownDelayRevisionLimit": 1,
        "prePromotionAnalysis": json(&analysis), "postPromotionAnalysis": json(&analysis),
        "antiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": {"weight": 7}},
        "previewMetadata": {"labels": {"a": "b"}}, "activeMetadata": {"labels": {"a": "c"}},
        "abortScaleDownDelaySeconds": 4,
    }}));
    let mut elsewhere = plain.clone();
    elsewhere.remove_at(&["spec", "template"]);
    elsewhere.set_at(
        &["spec", "workloadRef"],
        value!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "scaleDown": "onsuccess"}),
    );
    let metrics = value!([
        {"name": "m", "interval": "5m", "initialDelay": "1s", "count": 3, "failureLimit": 1, "inconclusiveLimit": 1,
            "consecutiveErrorLimit": 2, "consecutiveSuccessLimit": 2, "successCondition": "result > {{args.a}}",
            "failureCondition": "result < 1", "provider": {"prometheus": {"query": "q", "address": "http://p"}}},
        {"name": "w", "provider": {"web": {"url": "u", "headers": [{"key": "k", "value": "v"}]}}},
        {"name": "j", "provider": {"job": {"spec": {"template": json(&template)}}}},
        {"name": "p", "provider": {"plugin": {"a/b": {}}}},
    ]);
    let args =
        value!([{"name": "a", "value": "1"}, {"name": "s", "valueFrom": {"secretKeyRef": {"name": "n", "key": "k"}}}]);
    let run = value!({"metadata": {"name": "r"}, "spec": {
        "metrics": json(&metrics), "args": json(&args), "terminate": true, "ttlStrategy": {"secondsAfterFailure": 3},
        "dryRun": [{"metricName": "w"}], "measurementRetention": [{"metricName": "m", "limit": 2}],
        "templates": [{"templateName": "x"}]}});
    let experiment = value!({"metadata": {"name": "e"}, "spec": {
        "duration": "1h", "progressDeadlineSeconds": 60, "templates": [{"name": "a", "replicas": 1, "minReadySeconds": 1,
            "selector": {"matchLabels": {"app": "web"}}, "template": json(&template), "service": {}}],
        "analyses": [{"name": "n", "templateName": "t", "args": [{"name": "a", "value": "1"}]}]}});
    let source = value!({"metadata": {"name": "g"}, "spec": {
        "url": "https://host/repo", "serviceAccountName": "s", "ref": {"branch": "main"}, "path": "a/b", "interval": "30s",
        "verify": {"mode": "Tag", "secretRef": {"name": "k"}}, "report": {"host": "github"}, "pruneLimit": "20%"}});
    vec![canary, plain, blue_green, elsewhere, run, experiment, source]
}

/// Changes to an object: at the n-th of its values, put the m-th of these, or nothing.
fn change(value: &mut Value, at: usize, what: usize) {
    let leaves = [
        Value::Null,
        Value::Int(-1),
        Value::Int(0),
        Value::Int(101),
        Value::Int(i64::from(i32::MAX)),
        Value::Int(i64::MIN),
        Value::Float(1.5),
        Value::from(""),
        Value::from("x"),
        Value::from("10"),
        Value::from("-5%"),
        Value::from("1h"),
        Value::from("{{args.a}}"),
        Value::from("metadata.x"),
        Value::from("é\u{0}["),
        Value::Bool(true),
        Value::object(),
        Value::list([]),
        Value::list([Value::object(), Value::Null, Value::from("s")]),
    ];
    let mut open = at % count(value).max(1);
    replace(value, &mut open, leaves.get(what % (leaves.len() + 1)));
}

fn count(value: &Value) -> usize {
    let map = value.as_map().map_or(0, |map| map.values().map(count).sum());
    1 + map + value.as_list().map_or(0, |list| list.iter().map(count).sum())
}

/// Walks to the value that `open` counts down to. `None` removes it from its map.
fn replace(value: &mut Value, open: &mut usize, with: Option<&Value>) -> bool {
    if *open == 0 {
        if let Some(with) = with {
            *value = with.clone();
        }
        return true;
    }
    *open -= 1;
    if let Some(list) = value.as_list_mut() {
        return list.iter_mut().any(|item| replace(item, open, with));
    }
    let keys: Vec<_> = value.as_map().map(|map| map.keys().cloned().collect()).unwrap_or_default();
    for key in keys {
        let Some(map) = value.as_map_mut() else { return false };
        if *open == 0 && with.is_none() {
            map.remove(&key);
            return true;
        }
        if map.get_mut(&key).is_some_and(|value| replace(value, open, with)) {
            return true;
        }
    }
    false
}

fn changed() -> impl Strategy_<Value = Value> {
    let changes = proptest::collection::vec((any::<usize>(), any::<usize>()), 0..6);
    (0..objects().len(), changes).prop_map(|(which, changes)| {
        let mut object = objects().swap_remove(which);
        changes.into_iter().for_each(|(at, what)| change(&mut object, at, what));
        object
    })
}

use proptest::strategy::Strategy as Strategy_;

fn coherent<T>(parsed: &Parsed<T>) {
    let errors = parsed.problems.iter().any(|problem| problem.severity() == Severity::Error);
    assert!(!(errors && parsed.exact.is_some()), "an error and an exact object");
    assert!(errors || parsed.exact.is_some(), "neither an error nor an exact object: {:?}", parsed.problems);
    let said = parsed.problems.iter().filter(|problem| problem.argo.as_ref().is_some_and(|argo| argo.reached)).count();
    assert!(said <= parsed.argo.len(), "more is said to be reached than is");
}

proptest! {
    #[test]
    fn whatever_an_object_holds_it_is_exact_or_has_an_error(object in changed()) {
        coherent(&rollout(&api::read(&object).object, PodsFrom::Manifest));
        coherent(&rollout(&api::read(&object).object, PodsFrom::Workload));
        coherent(&template(&api::read(&object).object));
        coherent(&cluster_template(&api::read(&object).object));
        coherent(&run(&api::read(&object).object));
        coherent(&experiment(&api::read(&object).object));
        coherent(&git_source(&api::read(&object).object));
    }

    #[test]
    fn whatever_is_referred_to_is_judged(object in changed(), other in changed()) {
        let rollout: api::Rollout = api::read(&object).object;
        let template: api::AnalysisTemplate = api::read(&other).object;
        let others = || vec![other.clone()];
        let references = References {
            services: vec![(ServiceRole::Stable, other.clone())],
            templates: vec![Templates { templates: vec![("t".into(), template.spec)], ..Templates::default() }],
            ingresses: others(),
            virtual_services: others(),
            mappings: others(),
            app_mesh: others(),
        };
        references::check(&rollout, &references);
    }

    #[test]
    fn an_exact_rollout_is_all_of_its_manifest(object in changed()) {
        let wire: api::Rollout = api::read(&object).object;
        if let Some(exact) = rollout(&wire, PodsFrom::Manifest).exact {
            let again = rollout(&api::Rollout { spec: back(&exact), ..api::Rollout::default() }, PodsFrom::Manifest);
            prop_assert_eq!(again.exact.as_ref(), Some(&exact), "{:?}", again.problems);
        }
    }
}

#[test]
fn the_objects_to_start_from_are_good() {
    let [canary, plain, blue_green, elsewhere, run_, experiment_, source] = objects().try_into().unwrap();
    for object in [&plain, &blue_green, &elsewhere] {
        assert_eq!(rollout(&api::read(object).object, PodsFrom::Manifest).problems, []);
    }
    let canary = rollout(&api::read(&canary).object, PodsFrom::Manifest);
    let codes: Vec<Code> = canary.problems.iter().map(|problem| problem.code).collect();
    assert_eq!(codes, [Code::RoutersSeveral, Code::StepWithTwoActions]);
    assert_eq!(run(&api::read(&run_).object).problems, []);
    assert!(experiment(&api::read(&experiment_).object).exact.is_some());
    assert_eq!(git_source(&api::read(&source).object).problems, []);
}

/// An exact Rollout as a manifest.
fn back(exact: &Rollout) -> api::RolloutSpec {
    let mut spec = api::RolloutSpec {
        replicas: match exact.replicas {
            Replicas::Given(count) => Some(int(count)),
            Replicas::Unsaid => None,
        },
        min_ready_seconds: whole(exact.min_ready),
        rollback_window: exact.rollback_window.map(|revisions| api::RollbackWindowSpec { revisions: int(revisions) }),
        revision_history_limit: Some(int(exact.revision_history_limit)),
        paused: exact.paused,
        progress_deadline_seconds: Some(whole(exact.deadline.after)),
        progress_deadline_abort: exact.deadline.then == DeadlineAction::Abort,
        restart_at: exact.restart_at.map(Into::into),
        analysis: Some(api::AnalysisRunStrategy {
            successful_run_history_limit: Some(int(exact.run_history.successful)),
            unsuccessful_run_history_limit: Some(int(exact.run_history.unsuccessful)),
        }),
        ..api::RolloutSpec::default()
    };
    match &exact.pods {
        Pods::Own(pods) | Pods::Found(_, pods) => template_back(pods, &mut spec),
        Pods::Elsewhere(workload) => {
            let scale_down = match workload.scale_down {
                ScaleDown::Never => "never",
                ScaleDown::OnSuccess => "onsuccess",
                ScaleDown::Progressively => "progressively",
            };
            spec.workload_ref = Some(api::ObjectRef {
                api_version: workload.api_version.clone(),
                kind: workload.kind.name().into(),
                name: workload.name.clone(),
                scale_down: scale_down.into(),
            });
        }
    }
    match &exact.strategy {
        Strategy::Canary(canary) => spec.strategy.canary = Some(canary_back(canary)),
        Strategy::BlueGreen(blue_green) => spec.strategy.blue_green = Some(blue_green_back(blue_green)),
    }
    spec
}

fn template_back(pods: &PodTemplate, spec: &mut api::RolloutSpec) {
    spec.selector = Some(pods.selector.given.clone());
    spec.template = pods.template.clone();
}

fn int(number: u32) -> i32 {
    number.try_into().unwrap()
}

fn whole(duration: SignedDuration) -> i32 {
    duration.as_secs().try_into().unwrap()
}

fn limit_back(limit: &Limit) -> IntOrString {
    match limit {
        Limit::Pods(pods) => (*pods).into(),
        Limit::Percent(percent) => IntOrString::String(format!("{percent}%")),
        Limit::Unreadable(text) => IntOrString::String(text.clone()),
    }
}

fn metadata_back(metadata: &Metadata) -> api::PodTemplateMetadata {
    api::PodTemplateMetadata { labels: metadata.labels.clone(), annotations: metadata.annotations.clone() }
}

fn run_metadata_back(metadata: &Metadata) -> api::AnalysisRunMetadata {
    api::AnalysisRunMetadata { labels: metadata.labels.clone(), annotations: metadata.annotations.clone() }
}

fn abort_back(after: AfterAbort) -> Option<i32> {
    match after {
        AfterAbort::Unsaid => None,
        // 0 stands for ever; at once is what Argo Rollouts makes of a number below it.
        AfterAbort::ScaleDownAfter(SignedDuration::ZERO) => Some(-1),
        AfterAbort::ScaleDownAfter(duration) => Some(whole(duration)),
        AfterAbort::Keep => Some(0),
    }
}

fn anti_affinity_back(anti_affinity: AntiAffinity) -> api::AntiAffinity {
    let mut wire = api::AntiAffinity::default();
    match anti_affinity {
        AntiAffinity::Preferred(weight) => {
            wire.preferred_during_scheduling_ignored_during_execution =
                Some(api::PreferredDuringScheduling { weight: weight.into() });
        }
        AntiAffinity::Required => {
            wire.required_during_scheduling_ignored_during_execution = Some(api::RequiredDuringScheduling::default());
        }
    }
    wire
}

fn reference_back(template: &TemplateRef) -> api::AnalysisTemplateRef {
    let cluster_scope = (template.scope == Scope::Cluster).then_some(true);
    api::AnalysisTemplateRef { template_name: template.name.clone(), cluster_scope }
}

fn arguments_back(arguments: &[(String, ArgumentValue)]) -> Vec<api::AnalysisRunArgument> {
    let one = |(name, value): &(String, ArgumentValue)| {
        let mut wire = api::AnalysisRunArgument { name: name.clone(), ..api::AnalysisRunArgument::default() };
        let mut from = api::ArgumentValueFrom::default();
        match value {
            ArgumentValue::Literal(value) => wire.value = value.clone(),
            ArgumentValue::StableHash => from.pod_template_hash_value = Some("Stable".into()),
            ArgumentValue::LatestHash => from.pod_template_hash_value = Some("Latest".into()),
            ArgumentValue::Field(path) => from.field_ref = Some(api::FieldRef { field_path: path.clone() }),
        }
        wire.value_from = Some(from).filter(|from| *from != api::ArgumentValueFrom::default());
        wire
    };
    arguments.iter().map(one).collect()
}

fn dry_run_back(rules: &[String]) -> Vec<api::DryRun> {
    rules.iter().map(|rule| api::DryRun { metric_name: rule.clone() }).collect()
}

fn analysis_back(analysis: &Analysis) -> RolloutAnalysis {
    let kept = |rule: &crate::model::analysis::Retention| api::MeasurementRetention {
        metric_name: rule.pattern.clone(),
        limit: rule.limit,
    };
    RolloutAnalysis {
        templates: analysis.templates.iter().map(reference_back).collect(),
        args: arguments_back(&analysis.arguments),
        dry_run: dry_run_back(&analysis.dry_run),
        measurement_retention: analysis.retention.iter().map(kept).collect(),
        analysis_run_metadata: Some(run_metadata_back(&analysis.metadata)),
    }
}

fn blue_green_back(exact: &BlueGreen) -> api::BlueGreenStrategy {
    let (enabled, seconds) = match exact.promotion {
        Promotion::Automatic => (true, 0),
        Promotion::After(duration) => (true, whole(duration)),
        Promotion::Manual => (false, 0),
    };
    api::BlueGreenStrategy {
        active_service: exact.active.clone(),
        preview_service: exact.preview.clone().unwrap_or_default(),
        preview_replica_count: exact.preview_replicas.map(int),
        auto_promotion_enabled: Some(enabled),
        auto_promotion_seconds: seconds,
        max_unavailable: Some(limit_back(&exact.max_unavailable)),
        scale_down_delay_seconds: Some(whole(exact.scale_down_delay)),
        scale_down_delay_revision_limit: exact.scale_down_revision_limit.map(int),
        pre_promotion_analysis: exact.pre_promotion.as_ref().map(analysis_back),
        anti_affinity: exact.anti_affinity.map(anti_affinity_back),
        post_promotion_analysis: exact.post_promotion.as_ref().map(analysis_back),
        preview_metadata: exact.preview_metadata.as_ref().map(metadata_back),
        active_metadata: exact.active_metadata.as_ref().map(metadata_back),
        abort_scale_down_delay_seconds: abort_back(exact.after_abort),
    }
}

fn canary_back(exact: &Canary) -> api::CanaryStrategy {
    let threshold = match exact.progress_threshold {
        Threshold::Percent(value) => ("Percent", value),
        Threshold::Pods(value) => ("Pods", value),
    };
    let background = |one: &crate::model::analysis::BackgroundAnalysis| {
        let plain = analysis_back(&one.analysis);
        api::RolloutAnalysisBackground {
            templates: plain.templates,
            args: plain.args,
            dry_run: plain.dry_run,
            measurement_retention: plain.measurement_retention,
            analysis_run_metadata: plain.analysis_run_metadata,
            starting_step: Some(int(one.starting_step)),
        }
    };
    let mut wire = api::CanaryStrategy {
        canary_service: exact.services.canary.clone().unwrap_or_default(),
        stable_service: exact.services.stable.clone().unwrap_or_default(),
        ping_pong: exact.services.ping_pong.as_ref().map(|services| api::PingPongSpec {
            ping_service: services.ping.clone(),
            pong_service: services.pong.clone(),
        }),
        steps: exact.steps.iter().map(step_back).collect(),
        max_unavailable: Some(limit_back(&exact.max_unavailable)),
        max_surge: Some(limit_back(&exact.max_surge)),
        analysis: exact.analysis.as_ref().map(background),
        anti_affinity: exact.anti_affinity.map(anti_affinity_back),
        canary_metadata: exact.canary_metadata.as_ref().map(metadata_back),
        stable_metadata: exact.stable_metadata.as_ref().map(metadata_back),
        scale_down_delay_revision_limit: exact.scale_down_revision_limit.map(int),
        min_pods_per_replica_set: exact.min_pods_per_replica_set.map(int),
        replica_progress_threshold: Some(api::ReplicaProgressThreshold {
            r#type: threshold.0.into(),
            value: int(threshold.1),
        }),
        ..api::CanaryStrategy::default()
    };
    if let Some(traffic) = &exact.traffic {
        traffic_back(traffic, &mut wire);
    }
    wire
}

fn step_back(exact: &crate::model::step::Step) -> api::CanaryStep {
    let mut wire = api::CanaryStep::default();
    for action in exact.actions() {
        match action {
            Action::Pause(duration) => {
                wire.pause = Some(api::RolloutPause { duration: duration.map(|d| whole(d).into()) });
            }
            Action::SetCanaryScale(scale) => {
                let mut set = api::SetCanaryScale::default();
                match scale {
                    CanaryScale::Percent(weight) => set.weight = Some(int(*weight)),
                    CanaryScale::Replicas(replicas) => set.replicas = Some(int(*replicas)),
                    CanaryScale::MatchTrafficWeight => set.match_traffic_weight = true,
                }
                wire.set_canary_scale = Some(set);
            }
            Action::SetWeight(weight) => wire.set_weight = Some(int(weight.parts())),
            Action::Experiment(step) => wire.experiment = Some(experiment_back(step)),
            Action::Analysis(analysis) => wire.analysis = Some(analysis_back(analysis)),
            Action::SetHeaderRoute(route) => {
                let one = |one: &crate::model::step::HeaderMatch| api::HeaderRoutingMatch {
                    header_name: one.header.clone(),
                    header_value: Some(text_back(&one.value)),
                };
                let matches = route.matches.iter().map(one).collect();
                wire.set_header_route = Some(api::SetHeaderRoute { name: route.name.clone(), r#match: matches });
            }
            Action::SetMirrorRoute(mirror) => {
                let one = |one: &RequestMatch| api::RouteMatch {
                    method: one.method.as_ref().map(text_back),
                    path: one.path.as_ref().map(text_back),
                    headers: one.headers.iter().map(|(name, text)| (name.clone(), text_back(text))).collect(),
                };
                wire.set_mirror_route = Some(api::SetMirrorRoute {
                    name: mirror.route.name.clone(),
                    r#match: mirror.route.matches.iter().map(one).collect(),
                    percentage: Some(int(mirror.percentage)),
                });
            }
            Action::Plugin(plugin) => {
                let config = Some(plugin.config.clone()).filter(|config| !config.is_null());
                wire.plugin = Some(api::PluginStep { name: plugin.name.clone(), config });
            }
        }
    }
    wire
}

fn text_back(text: &TextMatch) -> api::StringMatch {
    let mut wire = api::StringMatch::default();
    match text {
        TextMatch::Exact(text) => wire.exact = text.clone(),
        TextMatch::Prefix(text) => wire.prefix = text.clone(),
        TextMatch::Regex(text) => wire.regex = text.clone(),
    }
    wire
}

fn experiment_back(exact: &ExperimentStep) -> api::RolloutExperimentStep {
    let template = |one: &crate::model::step::ExperimentTemplate| api::RolloutExperimentTemplate {
        name: one.name.clone(),
        spec_ref: one.spec_ref.clone(),
        replicas: Some(int(one.replicas)),
        metadata: metadata_back(&one.metadata),
        selector: one.selector.as_ref().map(|selector| selector.given.clone()),
        weight: one.weight.map(int),
        service: one.service.clone().map(|name| api::TemplateService { name }),
    };
    let analysis = |one: &crate::model::step::ExperimentAnalysis| {
        let reference = reference_back(&one.template);
        api::RolloutExperimentStepAnalysisTemplateRef {
            name: one.name.clone(),
            template_name: reference.template_name,
            cluster_scope: reference.cluster_scope,
            args: arguments_back(&one.arguments),
            required_for_completion: one.required,
        }
    };
    api::RolloutExperimentStep {
        templates: Some(exact.templates.iter().map(template).collect()),
        duration: exact.duration.clone().unwrap_or_default(),
        analyses: exact.analyses.iter().map(analysis).collect(),
        dry_run: dry_run_back(&exact.dry_run),
        analysis_run_metadata: run_metadata_back(&exact.run_metadata),
        scale_down_delay_seconds: exact.scale_down_delay.map(whole),
    }
}

fn traffic_back(exact: &Traffic, canary: &mut api::CanaryStrategy) {
    let mut wire = api::RolloutTrafficRouting {
        managed_routes: exact.managed_routes.iter().map(|name| api::ManagedRoute { name: name.clone() }).collect(),
        ..api::RolloutTrafficRouting::default()
    };
    if exact.max_weight != crate::model::weight::MaxWeight::PERCENT {
        wire.max_traffic_weight = Some(int(exact.max_weight.parts()));
    }
    for router in &exact.routers {
        router_back(router, &mut wire);
    }
    canary.traffic_routing = Some(wire);
    match exact.old_pods {
        OldPods::StayFor(delay) => canary.scale_down_delay_seconds = Some(whole(delay)),
        OldPods::FollowTraffic => canary.dynamic_stable_scale = true,
    }
    canary.abort_scale_down_delay_seconds = abort_back(exact.after_abort);
}

fn ingresses_back(ingresses: &Ingresses) -> (String, Vec<String>) {
    match ingresses {
        Ingresses::One(name) => (name.clone(), Vec::new()),
        Ingresses::Many(names) => (String::new(), names.clone()),
    }
}

fn router_back(router: &Router, wire: &mut api::RolloutTrafficRouting) {
    match router {
        Router::Istio(istio) => wire.istio = Some(istio_back(istio)),
        Router::Nginx(nginx) => {
            let (stable_ingress, stable_ingresses) = ingresses_back(&nginx.ingresses);
            wire.nginx = Some(api::NginxTrafficRouting {
                annotation_prefix: nginx.annotation_prefix.clone(),
                stable_ingress,
                additional_ingress_annotations: nginx.additional_annotations.clone(),
                stable_ingresses,
                canary_ingress_annotations: nginx.canary_annotations.clone(),
            });
        }
        Router::Alb(alb) => {
            let (ingress, ingresses) = ingresses_back(&alb.ingresses);
            let sticky = |duration: SignedDuration| api::StickinessConfig {
                enabled: true,
                duration_seconds: duration.as_secs(),
            };
            wire.alb = Some(api::AlbTrafficRouting {
                ingress,
                service_port: alb.service_port,
                root_service: alb.root_service.clone().unwrap_or_default(),
                annotation_prefix: alb.annotation_prefix.clone(),
                stickiness_config: alb.stickiness.map(sticky),
                ingresses,
            });
        }
        Router::Smi(smi) => {
            wire.smi = Some(api::SmiTrafficRouting {
                root_service: smi.root_service.clone().unwrap_or_default(),
                traffic_split_name: smi.traffic_split.clone().unwrap_or_default(),
            });
        }
        Router::Ambassador(one) => {
            wire.ambassador = Some(api::AmbassadorTrafficRouting { mappings: one.mappings.clone() });
        }
        Router::AppMesh(mesh) => {
            let node = |name: &String| Some(api::AppMeshVirtualNodeReference { name: name.clone() });
            wire.app_mesh = Some(api::AppMeshTrafficRouting {
                virtual_service: Some(api::AppMeshVirtualService {
                    name: mesh.virtual_service.clone(),
                    routes: mesh.routes.clone(),
                }),
                virtual_node_group: mesh.nodes.as_ref().map(|nodes| api::AppMeshVirtualNodeGroup {
                    canary_virtual_node_ref: node(&nodes.canary),
                    stable_virtual_node_ref: node(&nodes.stable),
                }),
            });
        }
        Router::Traefik(one) => {
            wire.traefik = Some(api::TraefikTrafficRouting { weighted_traefik_service_name: one.service.clone() });
        }
        Router::Apisix(one) => {
            let route = api::ApisixRoute { name: one.route.clone(), rules: one.rules.clone() };
            wire.apisix = Some(api::ApisixTrafficRouting { route: Some(route) });
        }
        Router::Gateway(one) => wire.gateway_api = Some((**one).clone()),
        Router::Plugin(one) => {
            wire.plugins.insert(one.name.clone(), one.config.clone());
        }
    }
}

fn istio_back(exact: &crate::model::traffic::Istio) -> api::IstioTrafficRouting {
    let service = |one: &crate::model::traffic::VirtualService| api::IstioVirtualService {
        name: one.given.clone(),
        routes: one.http.clone(),
        tls_routes: one
            .tls
            .iter()
            .map(|route| api::TlsRoute { port: route.port, sni_hosts: route.sni_hosts.clone() })
            .collect(),
        tcp_routes: one.tcp.iter().map(|port| api::TcpRoute { port: *port }).collect(),
    };
    api::IstioTrafficRouting {
        virtual_services: exact.virtual_services.iter().map(service).collect(),
        destination_rule: exact.destination_rule.as_ref().map(|rule| api::IstioDestinationRule {
            name: rule.name.clone(),
            canary_subset_name: rule.canary_subset.clone(),
            stable_subset_name: rule.stable_subset.clone(),
            additional_subset_names: rule.additional_subsets.clone(),
        }),
        ..api::IstioTrafficRouting::default()
    }
}
