//! The rules by name: a stable code, how bad it is to break it, and why it exists.
//!
//! A code is never reused or renamed once released; people silence and search for it. Never knows how a rule is checked.

use std::{fmt, str::FromStr};

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Works, but there is a better way to say it.
    Hint,
    /// Works, but most likely not as meant.
    Warning,
    /// Does not work: the object is refused or ignored as it is.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Hint => "hint",
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}

macro_rules! codes {
    ($($variant:ident $name:literal $severity:ident $title:literal $why:literal;)*) => {
        /// Which rule is broken.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $title] $variant,)*
        }

        impl Code {
            /// Every code there is.
            pub const ALL: &'static [Code] = &[$(Code::$variant),*];

            /// The stable name.
            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            /// How bad it is to break this rule.
            pub fn severity(self) -> Severity {
                match self { $(Code::$variant => Severity::$severity,)* }
            }

            /// The rule in one line.
            pub fn title(self) -> &'static str {
                match self { $(Code::$variant => $title,)* }
            }

            /// Why the rule exists and what happens otherwise.
            pub fn why(self) -> &'static str {
                match self { $(Code::$variant => $why,)* }
            }
        }
    };
}

codes! {
    // Any object
    Malformed "malformed" Error "a field holds a value of the wrong type"
        "The field is read as if it were absent, and so may be everything after it. Write the type that the schema names.";
    NegativeNumber "negative-number" Error "a count or a time is below zero"
        "Counts of pods, revisions and seconds start at zero. Argo Rollouts refuses the whole object.";
    NumberOutOfRange "number-out-of-range" Warning "a number is outside of what makes sense"
        "Argo Rollouts accepts the number and then works with something else: the nearest number that makes sense is used.";

    // Rollout: the pods
    SelectorMissing "selector-missing" Error "a Rollout needs a selector"
        "Without `spec.selector` no pod can be found. Only a Rollout with `workloadRef` may leave it out: it takes the workload's.";
    SelectorEmpty "selector-empty" Error "an empty selector would choose every pod"
        "An empty selector chooses all pods of the namespace, those of others included, so it is refused.";
    SelectorInvalid "selector-invalid" Error "the selector is no valid label selector"
        "Keys and values follow the rules of labels; `In` and `NotIn` need values, `Exists` and `DoesNotExist` have none.";
    SelectorMismatch "selector-mismatch" Error "the template's labels do not satisfy the selector"
        "Pods made from the template would not be found again, so new ones would be made for ever.";
    TemplateWithWorkloadRef "template-with-workload-ref" Error "a Rollout has a template and a workloadRef"
        "The template comes from one place: from `spec.template` or from the workload that `spec.workloadRef` names.";
    WorkloadKind "workload-kind" Error "workloadRef names a kind without a pod template"
        "A Rollout can take its template from an apps Deployment, an apps ReplicaSet or a core PodTemplate.";
    WorkloadScaleDown "workload-scale-down" Warning "workloadRef.scaleDown has an unknown value"
        "`never`, `onsuccess` and `progressively` are known; any other text means `never`.";
    PodTemplate "pod-template" Error "the pod template breaks a rule of Kubernetes"
        "A ReplicaSet with this template would be refused by the API server.";
    ProgressDeadline "progress-deadline" Error "progressDeadlineSeconds is not above minReadySeconds"
        "A pod that must be ready for minReadySeconds cannot become available before the deadline.";

    // Rollout: the strategy
    StrategyMissing "strategy-missing" Error "a Rollout needs a strategy"
        "Say `strategy.canary: {}` for a plain rolling update, or `strategy.blueGreen` with its services.";
    StrategyAmbiguous "strategy-ambiguous" Error "a Rollout names two strategies"
        "`canary` and `blueGreen` exclude each other.";
    ActiveServiceMissing "active-service-missing" Error "a blue-green Rollout needs an active Service"
        "Blue-green switches the selector of `activeService`; without one there is nothing to switch.";
    SameService "same-service" Error "two roles share one Service"
        "A Service selects the pods of one ReplicaSet; the two roles need two Services.";
    ScaleDownRevisionLimit "scale-down-revision-limit" Error "more old revisions are kept running than are kept"
        "`scaleDownDelayRevisionLimit` may not be above `revisionHistoryLimit`: revisions beyond that are deleted.";
    AutoPromotionSeconds "auto-promotion-seconds" Warning "autoPromotionSeconds has no effect without auto-promotion"
        "With `autoPromotionEnabled: false` the Rollout waits for a person, whatever `autoPromotionSeconds` says.";
    AntiAffinityAmbiguous "anti-affinity-ambiguous" Error "antiAffinity needs exactly one kind"
        "Either `preferredDuringSchedulingIgnoredDuringExecution` or `requiredDuringSchedulingIgnoredDuringExecution`.";
    AntiAffinityWeight "anti-affinity-weight" Error "the weight of a preferred antiAffinity is not within 1 to 100"
        "It becomes a scheduling preference, whose weight Kubernetes limits to 1..100.";
    SurgeAndUnavailableZero "surge-and-unavailable-zero" Error "maxSurge and maxUnavailable are both zero"
        "No pod may be added and none removed, so the update could never move. Unreadable text counts as zero.";
    PercentWithoutSign "percent-without-sign" Warning "a text without a percent sign is read as a percentage"
        "`\"10\"` means 10 %, the number `10` means ten pods. Write `10%` or leave out the quotes.";
    LimitUnreadable "limit-unreadable" Warning "maxSurge or maxUnavailable is neither a number nor a percentage"
        "One unreadable limit makes both count as zero pods (of which one may still be unavailable).";
    RollbackWindow "rollback-window" Warning "rollbackWindow.revisions is below one"
        "A window of less than one revision never lets a rollback skip its steps.";
    ReplicaProgressThreshold "replica-progress-threshold" Warning "replicaProgressThreshold makes no sense"
        "`type` is `Percent` or `Pods`, `value` is not negative, and a percentage is at most 100. Otherwise every pod is waited for.";

    // Rollout: traffic
    ServicesMissing "services-missing" Error "this router needs canaryService and stableService"
        "The router shifts traffic between two Services, so both must be named.";
    PingPongRouter "ping-pong-router" Error "this router cannot do ping-pong"
        "Ping-pong works with ALB, Istio and plugins.";
    PingPongServices "ping-pong-services" Error "ping-pong needs two Services"
        "The two Services swap the roles of stable and canary at every update; both must be named, and differ.";
    PingPongRootService "ping-pong-root-service" Error "ping-pong with ALB needs a root Service"
        "The ingress must have a rule whose backend stays the same while ping and pong swap roles: `alb.rootService`.";
    ScaleDownDelayWithoutRouting "scale-down-delay-without-routing" Error "scaleDownDelaySeconds needs traffic routing"
        "Without a router old pods are part of the weight and are scaled down as new ones appear; there is nothing to delay.";
    DynamicStableScaleWithoutRouting "dynamic-stable-scale-without-routing" Error "dynamicStableScale needs traffic routing"
        "Without a router the stable ReplicaSet shrinks anyway as the canary grows.";
    DynamicStableScaleWithDelay "dynamic-stable-scale-with-delay" Error "dynamicStableScale and scaleDownDelaySeconds exclude each other"
        "With dynamicStableScale the old pods are gone when the update ends, so there is nothing left to delay.";
    MaxTrafficWeight "max-traffic-weight" Error "this router has no maxTrafficWeight"
        "Only nginx and plugins can count traffic in other parts than hundredths.";
    MaxTrafficWeightZero "max-traffic-weight-zero" Error "maxTrafficWeight is not above zero"
        "Weights are shares of maxTrafficWeight; Argo Rollouts accepts zero and then divides by it.";
    RouterMissing "router-missing" Warning "trafficRouting names no router"
        "Pods are scaled as if traffic were routed, but nothing routes it: every ready pod gets its share of requests.";
    RoutersSeveral "routers-several" Hint "trafficRouting names several routers"
        "Each gets the same weights in a fixed order. That is allowed, and rarely what is meant.";
    RouterIngress "router-ingress" Error "the router needs its ingress, or its ingresses, but not both"
        "Exactly one of the single and the plural field says which Ingress to work with.";
    RouterVirtualService "router-virtual-service" Error "Istio needs its virtualService, or its virtualServices, but not both"
        "Exactly one of the single and the plural field says which VirtualService to work with.";
    RouterObject "router-object" Error "the router does not name the object it should change"
        "Without the name of that object there is nothing to write weights to.";
    ManagedRoutesMissing "managed-routes-missing" Error "header and mirror steps need managedRoutes"
        "Routes made by steps are put before the others in the order of `trafficRouting.managedRoutes`, and only those listed are removed again.";
    ManagedRouteUnknown "managed-route-unknown" Error "a step names a route that is not in managedRoutes"
        "List the route in `trafficRouting.managedRoutes`; its place there is its precedence.";
    ManagedRouteTwice "managed-route-twice" Warning "managedRoutes lists a route twice"
        "The order of managedRoutes is the precedence of routes; a second mention has no meaning.";

    // Rollout: steps
    StepEmpty "step-empty" Error "a step says nothing"
        "A step does one thing: setWeight, pause, setCanaryScale, experiment, analysis, setHeaderRoute, setMirrorRoute or plugin.";
    StepAmbiguous "step-ambiguous" Error "a step names several actions"
        "Of setWeight, pause, experiment and analysis a step may have one. Write one step for each.";
    StepWithTwoActions "step-with-two-actions" Warning "a step names two actions"
        "Both take effect, but only the first of pause, setCanaryScale, setWeight, experiment, analysis, setHeaderRoute, setMirrorRoute, plugin is waited for. Write one step for each.";
    SetWeightRange "set-weight-range" Error "setWeight is out of range"
        "A weight is a share of the traffic: from 0 to 100, or to `trafficRouting.maxTrafficWeight`.";
    PauseDuration "pause-duration" Error "the duration of a pause cannot be read"
        "Seconds as a number, or a text such as `90s`, `15m` or `1h30m`; not negative. Without one the step waits for a person.";
    SetCanaryScaleWithoutRouting "set-canary-scale-without-routing" Error "setCanaryScale needs traffic routing"
        "Without a router the number of canary pods is the weight; the two cannot differ.";
    SetCanaryScaleAmbiguous "set-canary-scale-ambiguous" Warning "setCanaryScale says several sizes, or none"
        "One of `weight`, `replicas` and `matchTrafficWeight`. If several are given, `matchTrafficWeight` wins over `replicas`, and that over `weight`.";
    HeaderRouteRouter "header-route-router" Error "this router cannot route by header"
        "setHeaderRoute works with Istio, ALB, Apisix and plugins.";
    MirrorRouteRouter "mirror-route-router" Error "this router cannot mirror"
        "setMirrorRoute works with Istio and plugins.";
    StringMatch "string-match" Error "a match needs exactly one of exact, prefix and regex"
        "ALB knows `exact` only.";
    MirrorPercentage "mirror-percentage" Warning "the percentage of a mirror is not within 0 to 100"
        "It is the share of requests that are copied to the canary.";
    MirrorHeader "mirror-header" Warning "a header of a mirror is not compared with exactly one value"
        "Argo Rollouts does not look at it; the first of exact, prefix and regex is used, and a header with none is ignored.";
    ExperimentWeight "experiment-weight" Error "an experiment's template cannot have a weight here"
        "Weights of experiment templates need traffic routing with ALB, SMI, Istio or a plugin.";
    ExperimentDuration "experiment-duration" Warning "the duration of an experiment cannot be read"
        "A text such as `90s`, `15m` or `1h30m`. The experiment is made all the same and ends with an error.";
    ExperimentTemplates "experiment-templates" Warning "an experiment without templates"
        "It has nothing to run.";
    SpecRef "spec-ref" Warning "specRef is neither stable nor canary"
        "The experiment cannot be made: there is no such ReplicaSet to take the pods from.";
    StartingStep "starting-step" Warning "startingStep lies behind the last step"
        "The background analysis would start only when the steps are over, and never runs.";
    ArgumentFieldPath "argument-field-path" Error "an argument's fieldPath is not supported"
        "Of metadata: `metadata.name`, `metadata.namespace`, `metadata.uid`, `metadata.labels['…']`, `metadata.annotations['…']`. Of the rest of the Rollout any path that ends in a plain value.";
    ArgumentSource "argument-source" Warning "an argument has no value, or two"
        "Either `value`, or one way to find it in `valueFrom`. Without both the value is empty.";
    TemplatesMissing "templates-missing" Warning "an analysis names no template"
        "There is nothing to measure, so no analysis is run.";

    // Analysis
    MetricsMissing "metrics-missing" Error "there are no metrics"
        "An analysis without metrics cannot come to a result.";
    MetricNameTwice "metric-name-twice" Error "two metrics have the same name"
        "Results are kept by name.";
    MetricLimit "metric-limit" Error "a metric's limits contradict each other"
        "`failureLimit` is at least -1 (off), the others at least 0; not both failureLimit and consecutiveSuccessLimit may be off; and `count` must be able to reach every limit.";
    MetricInterval "metric-interval" Error "a metric that is measured more than once needs an interval"
        "`count` above 1 needs `interval`, a text such as `30s` or `5m`.";
    MetricDuration "metric-duration" Error "a metric's duration cannot be read"
        "A text such as `30s`, `5m` or `1h30m`; a number needs a unit.";
    MetricProvider "metric-provider" Error "a metric needs exactly one provider"
        "Where the value comes from: prometheus, job, web, kayenta, datadog, wavefront, newRelic, cloudWatch, graphite, influxdb, skywalking or one plugin.";
    MetricEndless "metric-endless" Error "a metric never ends where an end is needed"
        "With an interval and no count a metric is measured for ever. That suits a background analysis, which ends with the steps; a step, or an analysis before or after promotion, would never end.";
    MetricNumber "metric-number" Warning "a metric's number cannot be read"
        "A text that is no number, once its arguments are filled in, counts as zero.";
    ProviderIncomplete "provider-incomplete" Warning "a provider misses something it needs"
        "The measurement would be an error each time.";
    DryRunUnmatched "dry-run-unmatched" Error "a dryRun rule matches no metric"
        "`metricName` is a regular expression that must match at least one metric of the run.";
    RetentionUnmatched "retention-unmatched" Error "a measurementRetention rule matches no metric"
        "`metricName` is a regular expression that must match at least one metric of the run.";
    PatternInvalid "pattern-invalid" Error "a metricName is no regular expression"
        "Write `.*` for every metric; a plain `*` is not a regular expression.";
    ConditionSyntax "condition-syntax" Error "a condition cannot be parsed"
        "Every measurement would be an error.";
    ConditionIgnoresArgument "condition-ignores-argument" Warning "isNil and default look at the whole result"
        "Whatever their first argument is, they test `result`. Compare with nil instead: `result.x == nil`, or `result.x ?? 0`.";
    ArgumentTwice "argument-twice" Error "an argument has two values"
        "Merged templates must agree on an argument's value, and an argument has a value or a source, not both.";
    ArgumentDeclaredTwice "argument-declared-twice" Warning "a template declares an argument twice"
        "A given value goes to the first, and the second may be left without one.";
    ArgumentUnresolved "argument-unresolved" Error "an argument has no value"
        "Give it a default in the template or a value where the template is used.";
    ArgumentUnknown "argument-unknown" Error "a metric uses an argument that is not declared"
        "Declare it under `args`. Everything between double braces is taken for an argument.";
    ArgumentUndeclared "argument-undeclared" Warning "an argument is given that no template declares"
        "It is ignored.";
    RuleTwice "rule-twice" Error "two rules have the same metricName"
        "Of dryRun and measurementRetention rules each metricName may be there once, also among merged templates.";
    TemplateNested "template-nested" Error "the templates that a template names cannot be merged"
        "A template may name others, whose metrics and arguments are merged.";

    // Experiment
    ExperimentSelector "experiment-selector" Error "an experiment's template needs a selector"
        "Without a selector, or with an empty one, the pods of the experiment cannot be distinguished from others.";
    ExperimentTemplateName "experiment-template-name" Error "an experiment's template needs a name of its own"
        "The ReplicaSets are named `<experiment>-<template>`.";
    ExperimentDeadline "experiment-deadline" Error "minReadySeconds is above progressDeadlineSeconds"
        "The pods cannot become available before the deadline.";
    ExperimentPods "experiment-pods" Warning "an experiment's pod template breaks a rule of Kubernetes"
        "The ReplicaSet with this template would be refused by the API server.";
    ExperimentEndless "experiment-endless" Warning "an experiment never ends"
        "Without a duration it ends when all analyses that are required for completion have ended; there is none.";
    AnalysisNameTwice "analysis-name-twice" Error "two analyses of an experiment have the same name"
        "Results are kept by name.";

    // GitSource
    SourceUrl "source-url" Error "the URL of a GitSource names no repository"
        "`https://host/path`, `ssh://user@host/path` or `user@host:path`, without credentials: these belong into a Secret.";
    SourceReference "source-reference" Error "a GitSource does not say what to follow"
        "At most one of branch, tag, semver and commit; a commit by its whole hash. Without any, the default branch is followed.";
    SourceValue "source-value" Error "a field of a GitSource holds a value that means nothing"
        "The schema names the values that are known.";

    // Referenced objects
    ServiceNotFound "service-not-found" Error "a Service does not exist"
        "The Rollout waits until it does.";
    ServiceSelector "service-selector" Error "a Service asks for a label that the pods do not have"
        "The Service would choose none of the Rollout's pods.";
    ServiceManaged "service-managed" Error "a Service is managed by another Rollout"
        "Two Rollouts would change its selector in turns.";
    TemplateNotFound "template-not-found" Error "an analysis template does not exist"
        "The Rollout waits until it does.";
    IngressBackend "ingress-backend" Error "an Ingress has no rule with the Rollout's Service"
        "The router copies the rules that lead to the stable Service (or the root Service of ALB); there are none.";
    VirtualServiceRoutes "virtual-service-routes" Error "a VirtualService does not have the routes that the Rollout needs"
        "Each route that the Rollout manages must lead to both, stable and canary: as hosts, or as subsets if a DestinationRule is named.";
    IstioMissing "istio-missing" Error "a VirtualService is given, but the Rollout does not use Istio"
        "The Rollout has no `trafficRouting.istio`.";
    AmbassadorWeight "ambassador-weight" Error "the base mapping has a weight"
        "A canary mapping with a weight is made beside the base mapping, which must have none.";
    AppMeshRoutes "app-mesh-routes" Error "a VirtualRouter does not have the routes that the Rollout needs"
        "Each route needs an HTTP, HTTP/2, TCP or gRPC rule with exactly two weighted targets.";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Code {
    type Err = String;

    fn from_str(name: &str) -> Result<Code, String> {
        let found = Code::ALL.iter().find(|code| code.name() == name);
        found.copied().ok_or_else(|| format!("there is no rule {name:?}"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_code_has_a_name_of_its_own_and_is_found_by_it() {
        let names: BTreeSet<&str> = Code::ALL.iter().map(|code| code.name()).collect();
        assert_eq!(names.len(), Code::ALL.len());
        for code in Code::ALL {
            assert_eq!(code.name().parse(), Ok(*code));
            let plain = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(code.name().chars().all(plain), "{code}");
            assert!(!code.title().ends_with('.') && code.why().ends_with('.'), "{code}");
        }
    }
}
