//! The steps of a canary.

use std::collections::BTreeMap;

use super::{analysis, pods, strategy, tolerated, tolerated_seconds, traffic::argo_max_weight};
use crate::{
    api::{self, AnalysisRunArgument, IntOrString},
    kubernetes::{duration, names},
    model::{
        path::At,
        problem::{Code, Notes},
        step::{
            Action, CanaryScale, ExperimentAnalysis, ExperimentStep, ExperimentTemplate, HeaderMatch, MirrorRoute,
            PluginStep, RequestMatch, Route, Step, TextMatch,
        },
        weight::{MaxWeight, Weight, go_int},
    },
};

const NO_SINGLE_ACTION: &str =
    "Step must have one of the following set: experiment, setWeight, setCanaryScale, plugin or pause";

/// All steps; `None` if one of them makes no sense.
pub fn steps(wire: &api::CanaryStrategy, at: &At, notes: &mut Notes) -> Option<Vec<Step>> {
    let canary = Canary { wire, routing: wire.traffic_routing.as_ref() };
    let steps: Vec<Option<Step>> =
        wire.steps.iter().enumerate().map(|(index, step)| canary.step(step, &at.index(index), notes)).collect();
    steps.into_iter().collect()
}

/// What the steps must know of their canary.
struct Canary<'w> {
    wire: &'w api::CanaryStrategy,
    routing: Option<&'w api::RolloutTrafficRouting>,
}

impl Canary<'_> {
    /// One step, in the order of Argo Rollouts' checks.
    fn step(&self, wire: &api::CanaryStep, at: &At, notes: &mut Notes) -> Option<Step> {
        count_actions(wire, at, notes);
        let weight = wire.set_weight.map(|weight| self.weight(weight, &at.key("setWeight"), notes));
        let pause = wire.pause.as_ref().map(|wire| pause(wire, &at.key("pause"), notes));
        let scale = wire.set_canary_scale.as_ref().map(|wire| self.scale(wire, at, notes));
        let header = wire.set_header_route.as_ref().map(|wire| self.header(wire, at, notes));
        let mirror = wire.set_mirror_route.as_ref().map(|wire| self.mirror(wire, at, notes));
        self.managed(wire, at, notes);
        if let Some(experiment) = &wire.experiment {
            self.experiment_weights(experiment, &at.key("experiment"), notes);
        }
        field_paths(wire, at, notes);
        let experiment = wire.experiment.as_ref().map(|wire| experiment(wire, &at.key("experiment"), notes));
        let analysis = wire.analysis.as_ref().map(|wire| analysis::reference(wire, &at.key("analysis"), notes));
        let plugin = wire
            .plugin
            .as_ref()
            .map(|wire| PluginStep { name: wire.name.clone(), config: wire.config.clone().unwrap_or_default() });
        // The order in which Argo Rollouts looks for what to wait for.
        let actions = [
            pause,
            scale.map(|scale| Some(Action::SetCanaryScale(scale))),
            weight.map(|weight| weight.map(Action::SetWeight)),
            experiment.map(|step| Some(Action::Experiment(Box::new(step)))),
            analysis.map(|analysis| analysis.map(Action::Analysis)),
            header.map(|route| route.map(Action::SetHeaderRoute)),
            mirror.map(|route| route.map(Action::SetMirrorRoute)),
            plugin.map(|plugin| Some(Action::Plugin(plugin))),
        ];
        let mut actions = actions.into_iter().flatten().collect::<Option<Vec<Action>>>()?;
        if actions.is_empty() {
            return None;
        }
        let action = actions.remove(0);
        Some(Step { action, also: actions })
    }

    fn weight(&self, weight: i32, at: &At, notes: &mut Notes) -> Option<Weight> {
        let max = argo_max_weight(self.wire);
        if !(0..=max).contains(&weight) {
            let words = at.invalid(weight, format!("SetWeight needs to be between 0 and {max}"));
            let what = format!("{weight} is not within 0 to {max}");
            notes.argo(at, Code::SetWeightRange, words, what, format!("use a weight from 0 to {max}"));
        }
        Weight::new(weight, MaxWeight::new(max)?)
    }

    fn scale(&self, wire: &api::SetCanaryScale, at: &At, notes: &mut Notes) -> CanaryScale {
        let step_at = at.key("setCanaryScale");
        if self.routing.is_none() {
            // Argo Rollouts blames what is missing: `spec.strategy.trafficRouting`.
            let (spec, strategy) = (At::ROOT.key("spec"), "strategy");
            let strategy = spec.key(strategy);
            let words = strategy.key("trafficRouting").required("SetCanaryScale requires TrafficRouting to be set");
            let what = "without traffic routing the number of canary pods is the weight";
            let remedy = "use setWeight, or add trafficRouting";
            notes.argo(&step_at, Code::SetCanaryScaleWithoutRouting, words, what, remedy);
        }
        let given = usize::from(wire.weight.is_some())
            + usize::from(wire.replicas.is_some())
            + usize::from(wire.match_traffic_weight);
        if given != 1 {
            let what = match given {
                0 => "no size is given; the pods match the traffic",
                _ => "several sizes are given",
            };
            let remedy = "keep one of weight, replicas and matchTrafficWeight";
            notes.ours(&step_at, Code::SetCanaryScaleAmbiguous, what, remedy);
        }
        match (wire.match_traffic_weight, wire.replicas, wire.weight) {
            (false, Some(replicas), _) => CanaryScale::Replicas(tolerated(replicas, &step_at.key("replicas"), notes)),
            (false, None, Some(weight)) => {
                let at = step_at.key("weight");
                if weight > 100 {
                    let what = format!("{weight} % is more than all of the Rollout's pods");
                    notes.ours(&at, Code::NumberOutOfRange, what, "use a percentage up to 100");
                }
                CanaryScale::Percent(tolerated(weight, &at, notes))
            }
            (true, _, _) | (false, None, None) => CanaryScale::MatchTrafficWeight,
        }
    }

    fn header(&self, wire: &api::SetHeaderRoute, at: &At, notes: &mut Notes) -> Option<Route<HeaderMatch>> {
        let at = at.key("setHeaderRoute");
        let able = |r: &&api::RolloutTrafficRouting| {
            r.istio.is_some() || r.alb.is_some() || r.apisix.is_some() || r.has_plugin()
        };
        let Some(routing) = self.routing.filter(able) else {
            let detail = "SetHeaderRoute requires TrafficRouting, supports Istio and ALB and Apisix";
            let words = at.invalid_struct(wire, detail);
            let what = "no router here can route by header";
            notes.argo(&at, Code::HeaderRouteRouter, words, what, "use Istio, ALB, Apisix or a plugin");
            return None;
        };
        let matches_at = at.key("match");
        let one = |(index, wire): (usize, &api::HeaderRoutingMatch)| {
            let at = matches_at.index(index);
            let value = wire.header_value.as_ref();
            let value = match routing.alb {
                Some(_) => exact_only(value, &at, notes),
                None => text_match(value, &at, notes),
            };
            Some(HeaderMatch { header: wire.header_name.clone(), value: value? })
        };
        let matches: Vec<Option<HeaderMatch>> = wire.r#match.iter().enumerate().map(one).collect();
        let matches = matches.into_iter().collect::<Option<_>>()?;
        Some(Route { name: wire.name.clone(), matches })
    }

    fn mirror(&self, wire: &api::SetMirrorRoute, at: &At, notes: &mut Notes) -> Option<MirrorRoute> {
        let at = at.key("setMirrorRoute");
        if !self.routing.is_some_and(|routing| routing.istio.is_some() || routing.has_plugin()) {
            let words = at.invalid_struct(wire, "SetMirrorRoute requires TrafficRouting, supports Istio and Plugins");
            notes.argo(&at, Code::MirrorRouteRouter, words, "no router here can mirror", "use Istio or a plugin");
        }
        let matches_at = at.key("match");
        let one = |(index, wire)| request_match(wire, &matches_at.index(index), notes);
        let matches: Vec<Option<RequestMatch>> = wire.r#match.iter().enumerate().map(one).collect();
        let percentage = wire.percentage.unwrap_or(100);
        if !(0..=100).contains(&percentage) {
            let what = format!("{percentage} is not within 0 to 100");
            notes.ours(&at.key("percentage"), Code::MirrorPercentage, what, "use a percentage from 0 to 100");
        }
        let matches = matches.into_iter().collect::<Option<_>>()?;
        let percentage = u32::try_from(percentage).unwrap_or(0);
        Some(MirrorRoute { route: Route { name: wire.name.clone(), matches }, percentage })
    }

    /// Routes that steps make must be among the managed ones.
    fn managed(&self, wire: &api::CanaryStep, at: &At, notes: &mut Notes) {
        let Some(routing) = self.routing else { return };
        let header = wire.set_header_route.as_ref().map(|route| ("setHeaderRoute", &route.name));
        let mirror = wire.set_mirror_route.as_ref().map(|route| ("setMirrorRoute", &route.name));
        let routes = || header.into_iter().chain(mirror);
        let managed = &routing.managed_routes;
        if managed.is_empty() {
            if let Some((field, name)) = routes().next() {
                let (spec, strategy, routing) = ("spec", "strategy", "trafficRouting");
                let (spec, list) = (At::ROOT.key(spec), "managedRoutes");
                let strategy = spec.key(strategy);
                let routing = strategy.key(routing);
                let missing = "Rollout has missing field 'spec.strategy.canary.trafficRouting.managedRoutes'";
                let what = format!("there are no managedRoutes to hold {name:?}");
                let remedy = format!("add trafficRouting.managedRoutes with {name:?}");
                let words = routing.key(list).required(missing);
                notes.argo(&at.key(field), Code::ManagedRoutesMissing, words, what, remedy);
            }
            return;
        }
        for (field, name) in routes() {
            if !managed.iter().any(|route| route.name == *name) {
                let at = at.key(field);
                let detail =
                    "Steps define a route that does not exist in spec.strategy.canary.trafficRouting.managedRoutes";
                let words = at.invalid(name.as_str(), detail);
                let what = format!("{name:?} is not among the managedRoutes");
                let remedy = format!("add {name:?} to trafficRouting.managedRoutes");
                notes.argo(&at, Code::ManagedRouteUnknown, words, what, remedy);
            }
        }
    }

    fn experiment_weights(&self, wire: &api::RolloutExperimentStep, at: &At, notes: &mut Notes) {
        let able =
            |r: &api::RolloutTrafficRouting| r.alb.is_some() || r.smi.is_some() || r.istio.is_some() || r.has_plugin();
        let detail = match self.routing {
            None => "Experiment template weight cannot be set unless TrafficRouting is enabled",
            Some(routing) if !able(routing) => {
                "Experiment template weight is only available for TrafficRouting with SMI, ALB, Istio and Plugins at \
                 this time"
            }
            Some(_) => return,
        };
        let templates_at = at.key("templates");
        for (index, template) in wire.templates.iter().flatten().enumerate() {
            if let Some(weight) = template.weight {
                let at = templates_at.index(index);
                let at = at.key("weight");
                let words = at.invalid(weight, detail);
                let what = "nothing here can route a share of the traffic to an experiment";
                let remedy = "remove the weight, or use ALB, SMI, Istio or a plugin";
                notes.argo(&at, Code::ExperimentWeight, words, what, remedy);
            }
        }
    }
}

fn count_actions(wire: &api::CanaryStep, at: &At, notes: &mut Notes) {
    let (experiment, pause) = (wire.experiment.is_some(), wire.pause.is_some());
    let (weight, analysis) = (wire.set_weight.is_some(), wire.analysis.is_some());
    let exclusive = [weight, pause, experiment, analysis].into_iter().filter(|given| *given).count();
    let others = [
        wire.set_canary_scale.is_some(),
        wire.set_header_route.is_some(),
        wire.set_mirror_route.is_some(),
        wire.plugin.is_some(),
    ];
    let others = others.into_iter().filter(|given| *given).count();
    if exclusive > 1 {
        let value = format!(
            "step.Experiment: {experiment} step.Pause: {pause} step.SetWeight: {weight} step.Analysis: {analysis}"
        );
        let words = at.invalid(value, NO_SINGLE_ACTION);
        let what = format!("the step names {exclusive} actions");
        notes.argo(at, Code::StepAmbiguous, words, what, "write one step for each action");
    } else if exclusive + others > 1 {
        let what = format!("the step names {} actions, of which only one is waited for", exclusive + others);
        notes.ours(at, Code::StepWithTwoActions, what, "write one step for each action");
    }
    if exclusive + others == 0 {
        let value = "step.Experiment: true step.Pause: true step.SetWeight: true step.Analysis: true \
                     step.SetCanaryScale: true step.SetHeaderRoute: true step.SetMirrorRoute: true step.Plugin: true";
        let words = at.invalid(value, NO_SINGLE_ACTION);
        notes.argo(at, Code::StepEmpty, words, "the step names no action", "name an action, or remove the step");
    }
}

/// A pause in whole seconds, as Argo Rollouts counts them: -1 for a text that cannot be read, and the lowest number for
/// one that is too long.
pub fn pause_seconds(given: &IntOrString) -> i32 {
    match given {
        IntOrString::Int(seconds) => *seconds,
        IntOrString::String(text) => match (go_int(text), duration::parse(text)) {
            (Some(seconds), _) => seconds,
            (None, Ok(duration)) => i32::try_from(duration.as_secs()).unwrap_or(i32::MIN),
            (None, Err(_)) => -1,
        },
    }
}

fn pause(wire: &api::RolloutPause, at: &At, notes: &mut Notes) -> Option<Action> {
    let Some(given) = &wire.duration else { return Some(Action::Pause(None)) };
    let seconds = pause_seconds(given);
    if seconds >= 0 {
        return Some(Action::Pause(Some(super::seconds(seconds))));
    }
    let at = at.key("duration");
    let words = at.invalid(seconds, "Duration needs to be greater than 0");
    let what = match given {
        IntOrString::Int(_) => format!("{seconds} s is below zero"),
        IntOrString::String(text) => match duration::parse(text) {
            Ok(_) => format!("{text:?} is below zero or too long"),
            Err(error) => error,
        },
    };
    let remedy = "write seconds, or a text such as 90s, 15m or 1h30m; leave it out to wait for a person";
    notes.argo(&at, Code::PauseDuration, words, what, remedy);
    None
}

const MATCH_MISSING: &str =
    "StringMatch value missed, match value must have one of the following: exact, regex, prefix";
const MATCH_SEVERAL: &str = "StringMatch match value must have exactly one of the following: exact, regex, prefix";

fn exact_only(wire: Option<&api::StringMatch>, at: &At, notes: &mut Notes) -> Option<TextMatch> {
    let value_at = at.key("headerValue");
    let Some(value) = wire else {
        let words = at.invalid(crate::kubernetes::value::Value::Null, MATCH_MISSING);
        notes.argo(&value_at, Code::StringMatch, words, "there is nothing to compare with", "add an exact value");
        return None;
    };
    if value.exact.is_empty() || !value.regex.is_empty() || !value.prefix.is_empty() {
        let words = at.invalid_struct(value, "SetHeaderRoute match value invalid. ALB supports 'exact' value only");
        notes.argo(&value_at, Code::StringMatch, words, "ALB compares exactly", "give exact, and nothing else");
        return None;
    }
    Some(TextMatch::Exact(value.exact.clone()))
}

fn text_match(wire: Option<&api::StringMatch>, at: &At, notes: &mut Notes) -> Option<TextMatch> {
    let Some(value) = wire else {
        let words = at.invalid(crate::kubernetes::value::Value::Null, MATCH_MISSING);
        let remedy = "add one of exact, prefix and regex";
        notes.argo(at, Code::StringMatch, words, "there is nothing to compare with", remedy);
        return None;
    };
    let mut given = matchers(value);
    let remedy = "keep one of exact, prefix and regex";
    match given.len() {
        0 => {
            let words = at.invalid_struct(value, MATCH_MISSING);
            notes.argo(at, Code::StringMatch, words, "there is nothing to compare with", remedy);
            None
        }
        1 => given.pop(),
        _ => {
            let words = at.invalid_struct(value, MATCH_SEVERAL);
            notes.argo(at, Code::StringMatch, words, "there are several values to compare with", remedy);
            None
        }
    }
}

fn matchers(value: &api::StringMatch) -> Vec<TextMatch> {
    let given = |text: &String, matcher: fn(String) -> TextMatch| super::given(text).map(matcher);
    [
        given(&value.exact, TextMatch::Exact),
        given(&value.prefix, TextMatch::Prefix),
        given(&value.regex, TextMatch::Regex),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn request_match(wire: &api::RouteMatch, at: &At, notes: &mut Notes) -> Option<RequestMatch> {
    let check = |value: &Option<api::StringMatch>, notes: &mut Notes| match value {
        Some(value) => text_match(Some(value), at, notes).map(Some),
        None => Some(None),
    };
    let method = check(&wire.method, notes);
    let path = check(&wire.path, notes);
    // Argo Rollouts looks at the method once more, and never at the headers.
    check(&wire.method, notes);
    let headers_at = at.key("headers");
    let mut headers = BTreeMap::new();
    for (name, value) in &wire.headers {
        let given = matchers(value);
        if given.len() != 1 {
            let what = format!("the header {name:?} is compared with {} values", given.len());
            let remedy = "keep one of exact, prefix and regex";
            notes.ours(&headers_at.key(name), Code::MirrorHeader, what, remedy);
        }
        headers.extend(given.into_iter().next().map(|matcher| (name.clone(), matcher)));
    }
    Some(RequestMatch { method: method?, path: path?, headers })
}

/// Fields of metadata that an argument may be taken from.
fn field_paths(wire: &api::CanaryStep, at: &At, notes: &mut Notes) {
    let experiment = wire.experiment.iter().flat_map(|experiment| &experiment.analyses);
    let of_experiment = experiment.flat_map(|analysis| &analysis.args);
    let args: Vec<&AnalysisRunArgument> =
        of_experiment.chain(wire.analysis.iter().flat_map(|analysis| &analysis.args)).collect();
    for arg in &args {
        let field = arg.value_from.as_ref().and_then(|from| from.field_ref.as_ref());
        let Some(path) = field.map(|field| &field.field_path) else { continue };
        if path.starts_with("metadata") && !is_metadata_field(path) {
            let named = at.key("analyses");
            let detail = "Analyses arguments must refer to valid object metadata supported by downwardAPI";
            let words = named.invalid_struct(&args, detail);
            let what = format!("{path:?} of the argument {:?} is not a field that can be taken", arg.name);
            let remedy = "use metadata.name, metadata.namespace, metadata.uid, metadata.labels['…'] or \
                          metadata.annotations['…']";
            let place = if wire.analysis.is_some() { "analysis" } else { "experiment" };
            notes.argo(&at.key(place), Code::ArgumentFieldPath, words, what, remedy);
        }
    }
}

/// Whether the downward API has this field.
pub fn is_metadata_field(path: &str) -> bool {
    let subscripted =
        path.strip_suffix("']").and_then(|path| path.split_once("['")).filter(|(base, _)| !base.is_empty());
    match subscripted {
        Some(("metadata.annotations", key)) => names::label_key(&key.to_lowercase()).is_empty(),
        Some(("metadata.labels", key)) => names::label_key(key).is_empty(),
        Some(_) => false,
        None => {
            let plain = ["annotations", "labels", "name", "namespace", "uid"];
            path.strip_prefix("metadata.").is_some_and(|field| plain.contains(&field))
        }
    }
}

fn experiment(wire: &api::RolloutExperimentStep, at: &At, notes: &mut Notes) -> ExperimentStep {
    if let Some(error) = super::given(&wire.duration).and_then(|text| duration::parse(&text).err()) {
        let remedy = "write a text such as 90s, 15m or 1h30m";
        notes.ours(&at.key("duration"), Code::ExperimentDuration, error, remedy);
    }
    let templates_at = at.key("templates");
    let templates = wire.templates.as_deref().unwrap_or_default();
    if templates.is_empty() {
        notes.ours(&templates_at, Code::ExperimentTemplates, "there are no templates", "add a template");
    }
    let analyses_at = at.key("analyses");
    ExperimentStep {
        templates: templates
            .iter()
            .enumerate()
            .map(|(index, template)| experiment_template(template, &templates_at.index(index), notes))
            .collect(),
        duration: super::given(&wire.duration),
        analyses: wire
            .analyses
            .iter()
            .enumerate()
            .map(|(index, analysis)| experiment_analysis(analysis, &analyses_at.index(index), notes))
            .collect(),
        dry_run: wire.dry_run.iter().map(|rule| rule.metric_name.clone()).collect(),
        run_metadata: strategy::run_metadata(&wire.analysis_run_metadata),
        scale_down_delay: wire
            .scale_down_delay_seconds
            .map(|seconds| tolerated_seconds(seconds, &at.key("scaleDownDelaySeconds"), notes)),
    }
}

fn experiment_template(wire: &api::RolloutExperimentTemplate, at: &At, notes: &mut Notes) -> ExperimentTemplate {
    if !matches!(wire.spec_ref.as_str(), "stable" | "canary") {
        let what = format!("{:?} is neither stable nor canary", wire.spec_ref);
        notes.ours(&at.key("specRef"), Code::SpecRef, what, "use stable or canary");
    }
    ExperimentTemplate {
        name: wire.name.clone(),
        spec_ref: wire.spec_ref.clone(),
        replicas: tolerated(wire.replicas.unwrap_or(1), &at.key("replicas"), notes),
        metadata: strategy::metadata(&wire.metadata),
        selector: wire.selector.as_ref().and_then(pods::selector),
        weight: wire.weight.map(|weight| tolerated(weight, &at.key("weight"), notes)),
        service: wire.service.as_ref().map(|service| service.name.clone()),
    }
}

fn experiment_analysis(
    wire: &api::RolloutExperimentStepAnalysisTemplateRef,
    at: &At,
    notes: &mut Notes,
) -> ExperimentAnalysis {
    ExperimentAnalysis {
        name: wire.name.clone(),
        template: analysis::template_ref(&wire.template_name, wire.cluster_scope),
        arguments: analysis::arguments(&wire.args, &at.key("args"), notes),
        required: wire.required_for_completion,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_counts_whole_seconds_as_argo_does() {
        for (given, seconds) in [
            (IntOrString::Int(-5), -5),
            ("10".into(), 10),
            ("1h".into(), 3600),
            ("1.9s".into(), 1),
            ("soon".into(), -1),
            ("".into(), -1),
            ("1000000h".into(), i32::MIN),
        ] {
            assert_eq!(pause_seconds(&given), seconds, "{given:?}");
        }
    }

    #[test]
    fn arguments_come_from_fields_that_the_downward_api_has() {
        for (path, known) in [
            ("metadata.name", true),
            ("metadata.labels", true),
            ("metadata.labels['app.kubernetes.io/name']", true),
            ("metadata.labels['Bad key']", false),
            ("metadata.annotations['Upper/CASE']", true),
            ("metadata.generation", false),
            ("metadata.name['x']", false),
            ("metadata", false),
        ] {
            assert_eq!(is_metadata_field(path), known, "{path}");
        }
    }
}
