//! Every rule a lint can name: those of `model`, and those that only a look at files or at several objects can break.
//!
//! A name is never reused or changed once released. Never knows how a rule is checked.

use std::{fmt, str::FromStr};

pub use crate::model::code::{Code, Severity};

macro_rules! rules {
    ($($variant:ident $name:literal $severity:ident $title:literal $why:literal;)*) => {
        /// A rule about files, about several objects, or about what is wise.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Own {
            $(#[doc = $title] $variant,)*
        }

        impl Own {
            /// Every one there is.
            pub const ALL: &'static [Own] = &[$(Own::$variant),*];

            fn name(self) -> &'static str {
                match self { $(Own::$variant => $name,)* }
            }

            fn severity(self) -> Severity {
                match self { $(Own::$variant => Severity::$severity,)* }
            }

            fn title(self) -> &'static str {
                match self { $(Own::$variant => $title,)* }
            }

            fn why(self) -> &'static str {
                match self { $(Own::$variant => $why,)* }
            }
        }
    };
}

rules! {
    // The text
    Encoding "encoding" Error "a file is not UTF-8"
        "Manifests are UTF-8. kubectl puts a replacement character where a byte is none, so that a name or a password is silently another one.";
    YamlSyntax "yaml-syntax" Error "a file is not YAML as kubectl reads it"
        "kubectl reads YAML 1.1, document by document, cut at lines of three dashes. A document that does not parse is skipped here, the others are looked at.";
    RepeatedKey "repeated-key" Error "a key is given twice in one map"
        "YAML forbids it; kubectl takes the last and says nothing, so that half of what was written has no effect.";
    YamlValue "yaml-value" Error "a value cannot be carried in JSON"
        "Kubernetes objects are JSON: there are no infinities, and a tag such as !!int needs a value that fits it.";
    YamlKey "yaml-key" Error "a key is no text"
        "Keys of Kubernetes objects are texts. Lists, maps and null cannot be keys.";
    YamlMerge "yaml-merge" Error "a merge key without a map"
        "`<<` takes the fields of a map, or of a list of maps, of which the first wins.";
    YamlBudget "yaml-budget" Error "a file is too large, too deep, or repeats too much"
        "Aliases can make a few bytes stand for gigabytes. No Kubernetes object comes near the limits.";
    NotAnObject "not-an-object" Error "a document is no Kubernetes object"
        "Every object says its apiVersion and its kind; a document that is only comments is passed over.";
    KeyReadOtherwise "key-read-otherwise" Warning "a key is not read as it is written"
        "In YAML 1.1 the plain words y, n, yes, no, on and off are booleans, also as keys: `on: 1` is read as `\"true\": 1`.";
    MergeReplaces "merge-replaces" Warning "a merge key replaces what stands before it"
        "YAML says that the keys of the map itself win. kubectl takes what comes last, so `<<` must stand first.";
    IgnoredText "ignored-text" Warning "text after the end of a document is ignored"
        "kubectl stops reading at `...` and goes on at the next line of three dashes.";

    // Kustomizations
    KustomizationInvalid "kustomization-invalid" Error "a kustomization cannot be rendered"
        "Nothing of a commit with such a kustomization is applied. Remote bases, programs and charts in a kustomization are refused: nothing is fetched or run while rendering.";
    KustomizationDoubtful "kustomization-doubtful" Hint "a kustomization is rendered, but perhaps not as it was meant"
        "A key is given twice, of which the last one counts, or a field is deprecated.";
    FileUnused "file-unused" Warning "a manifest beside a kustomization is not used by it"
        "A folder with a kustomization holds what that names and nothing else, so this file is not applied. Add it to `resources`, or remove it.";
    PlainKustomize "plain-kustomize" Hint "kustomize without configuration renders a Rollout otherwise"
        "Kustomize knows nothing of Rollouts: names that it generates are not followed, lists of containers are replaced by those of a patch, labels and replicas are not set. Tidegate knows them, unless a GitSource says `kustomize.rollouts: false`; whoever runs `kustomize build` needs the configuration that Argo Rollouts publishes.";

    // The schema
    UnknownField "unknown-field" Error "a field does not exist"
        "An API server drops it, or refuses the object; either way it has no effect. Mostly it is misspelt or indented wrongly.";
    MissingField "missing-field" Error "a field is missing"
        "The schema demands it, so an API server refuses the object.";
    FieldValue "field-value" Error "a field holds a value that the schema does not allow"
        "An API server refuses the object.";
    UnknownVersion "unknown-version" Error "there is no such version of this kind"
        "Argo Rollouts has one version, argoproj.io/v1alpha1; GitSource is tidegate.dev/v1alpha1.";
    NameMissing "name-missing" Error "an object has no name"
        "Only an object that is created, never one that is applied, may have a generateName instead.";
    NameInvalid "name-invalid" Error "the name of an object cannot be used"
        "Names are lower-case letters, digits, dots and dashes, and end up in the names of ReplicaSets, AnalysisRuns and pods.";
    DuplicateObject "duplicate-object" Error "an object is given twice"
        "Two documents with the same kind, namespace and name are one object in the cluster: the last to be applied wins.";
    StatusGiven "status-given" Warning "a manifest holds a status"
        "The status is the controller's. For AnalysisRuns and Experiments it is part of the object, so applying it overwrites results; elsewhere it is dropped.";
    ServerFields "server-fields" Hint "a manifest holds fields that the server fills in"
        "uid, resourceVersion, generation, creationTimestamp and managedFields come from a copy out of a cluster; a resourceVersion makes the next apply fail.";

    AnnotationValue "annotation-value" Error "an annotation about syncing holds a value that means nothing"
        "A GitSource refuses the whole commit. Argo CD's and Helm's annotations for hooks and waves are read, too.";
    AnnotationIgnored "annotation-ignored" Warning "an annotation of another tool asks for something that is not done"
        "Of Argo CD's and Helm's annotations hooks, waves, deletion policies, Prune=false, Force=true and resource-policy are honoured. Hooks for other moments are not applied.";

    // References among the given files
    ReferenceMissing "reference-missing" Warning "an object that is named is not among the given files"
        "Other objects of that kind are given, so this one was probably forgotten or misspelt. If it comes from elsewhere, ignore this rule.";
    ReferenceNotGiven "reference-not-given" Hint "an object that is named was not given, so it could not be checked"
        "None of that kind was given. Give the files that hold it to have ports, selectors, routes and arguments checked too.";
    ServiceShared "service-shared" Error "two Rollouts use one Service"
        "Each would write its own pod hash into the Service's selector, in turns.";
    SelectorOverlap "selector-overlap" Error "two workloads select each other's pods"
        "Both would count the other's pods as their own, and a Service of one sends traffic to the other.";
    ServicePort "service-port" Warning "a Service leads to a port that no container names"
        "A named targetPort is looked up among the ports of the containers; without it the Service has no endpoints.";
    WorkloadReference "workload-reference" Error "workloadRef names a workload whose pods the Rollout does not select"
        "With a workloadRef the selector is taken from the workload; one that is given as well must fit the workload's template.";
    WorkloadStillScaled "workload-still-scaled" Hint "the workload of a workloadRef keeps its own pods"
        "The Deployment runs its pods beside those of the Rollout until somebody scales it down: set replicas to 0 there, or `workloadRef.scaleDown`.";
    DependsOnItself "depends-on-itself" Error "a GitSource waits for itself"
        "A source is synced once all that it depends on are rolled out; in a circle none ever is.";
    AutoscalerTarget "autoscaler-target" Warning "an autoscaler scales something else than the Rollout"
        "A HorizontalPodAutoscaler finds its target by apiVersion, kind and name; with workloadRef it must name the Rollout, not the Deployment.";
    AutoscaledReplicas "autoscaled-replicas" Hint "replicas are given in git and set by an autoscaler"
        "Each apply puts back the number in the manifest, and the autoscaler changes it again. Leave `spec.replicas` out.";
    AutoscalerRange "autoscaler-range" Warning "an autoscaler contradicts the Rollout"
        "minReplicas above maxReplicas is refused, and a number of replicas outside of the range is changed at once.";

    NotSupported "not-supported" Warning "a Rollout asks for what this version of Tidegate does not have"
        "Argo Rollouts may have it. Here the Rollout keeps its versions and its traffic as they are, and is Degraded with this reason until the field is removed.";

    // What a careful colleague would say
    WeightUnreachable "weight-unreachable" Warning "a weight cannot be reached with so few pods"
        "Without traffic routing the share of requests is the share of pods. With few pods only a few shares exist, and the nearest is used.";
    WeightNoEffect "weight-no-effect" Hint "a setWeight step changes nothing"
        "The weight is the one that is in force already, or, without traffic routing, gives the same number of pods.";
    WeightBackwards "weight-backwards" Hint "a setWeight step goes back"
        "The canary gets less traffic than before. That is allowed, and rarely what is meant.";
    LastWeightFull "last-weight-full" Hint "the last step sets the whole weight"
        "After the last step the canary gets all traffic anyway, so the step only adds a pass.";
    PauseAtFullWeight "pause-at-full-weight" Warning "a pause without end while the canary has all traffic already"
        "Everybody is on the new version, but the update is not over: the old pods stay, the status stays Paused, and an abort still goes back.";
    PauseWithoutCanary "pause-without-canary" Hint "a pause before the first weight"
        "Before the first setWeight there is no canary traffic, and with traffic routing not even a canary pod: there is nothing to look at.";
    NothingAfterStep "nothing-after-step" Hint "nothing is left to do after this step"
        "Steps that follow the whole weight without looking at anything (no pause, no analysis, no experiment) have no effect.";
    RoutingWithoutSteps "routing-without-steps" Warning "traffic routing without steps"
        "All traffic moves at once as soon as the new pods are ready.";
    PausedInManifest "paused-in-manifest" Warning "the Rollout is paused in its manifest"
        "Nothing is rolled out or scaled as long as `spec.paused` is true, and every apply pauses it again.";
    AbortKeepsCanary "abort-keeps-canary" Hint "an aborted canary is kept for ever"
        "abortScaleDownDelaySeconds: 0 does not mean at once, but never.";
    NoHistory "no-history" Hint "no old revision is kept"
        "With revisionHistoryLimit: 0 there is nothing to undo to.";
    ImageTag "image-tag" Hint "an image without a fixed tag"
        "A Rollout begins when the template changes. A new image under the same tag changes nothing in it, and which version a pod runs depends on when it started.";
    HashLabel "hash-label" Warning "the pod hash is written by hand"
        "rollouts-pod-template-hash is set by the controller on ReplicaSets, pods and Services; in a manifest it would select pods of one revision only.";
    ManagedRouteUnused "managed-route-unused" Hint "a managed route is used by no step"
        "It stays without effect.";
    ArgumentUnused "argument-unused" Hint "a template declares an argument that no metric uses"
        "It must be given a value all the same wherever the template is used.";
    TemplateUnused "template-unused" Hint "an analysis template is used by nothing among the given files"
        "It may be used from elsewhere.";
}

/// A rule of either sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// About what one object means.
    Model(Code),
    /// About files and several objects.
    Own(Own),
}

impl Rule {
    /// Every rule there is.
    pub fn all() -> impl Iterator<Item = Rule> {
        Own::ALL.iter().copied().map(Rule::Own).chain(Code::ALL.iter().copied().map(Rule::Model))
    }

    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Model(code) => code.name(),
            Rule::Own(own) => own.name(),
        }
    }

    /// How bad it is to break this rule.
    pub fn severity(self) -> Severity {
        match self {
            Rule::Model(code) => code.severity(),
            Rule::Own(own) => own.severity(),
        }
    }

    /// Whether `kubectl argo rollouts lint` fails for it: that looks at the text, the fields and the meaning of Rollouts, and
    /// at what these refer to.
    pub fn is_of_argo(self) -> bool {
        match self {
            // Of an Ingress that does not lead to the Rollout it takes no notice.
            Rule::Model(code) => code.severity() == Severity::Error && code != Code::IngressBackend,
            Rule::Own(own) => [
                Own::Encoding,
                Own::YamlSyntax,
                Own::RepeatedKey,
                Own::YamlValue,
                Own::YamlKey,
                Own::YamlMerge,
                Own::YamlBudget,
                Own::NotAnObject,
                Own::UnknownField,
            ]
            .contains(&own),
        }
    }

    /// The rule in one line.
    pub fn title(self) -> &'static str {
        match self {
            Rule::Model(code) => code.title(),
            Rule::Own(own) => own.title(),
        }
    }

    /// Why the rule exists and what happens otherwise.
    pub fn why(self) -> &'static str {
        match self {
            Rule::Model(code) => code.why(),
            Rule::Own(own) => own.why(),
        }
    }

    /// What `--explain` prints.
    pub fn explain(self) -> String {
        format!("{} ({}): {}.\n\n{}\n", self.name(), self.severity(), self.title(), self.why())
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(name: &str) -> Result<Rule, String> {
        Rule::all().find(|rule| rule.name() == name).ok_or_else(|| {
            let near = super::similar::nearest(name, Rule::all().map(Rule::name));
            let meant = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            format!("there is no rule `{name}`{meant}")
        })
    }
}

impl From<Code> for Rule {
    fn from(code: Code) -> Rule {
        Rule::Model(code)
    }
}

impl From<Own> for Rule {
    fn from(own: Own) -> Rule {
        Rule::Own(own)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_rule_has_one_name_and_explains_itself() {
        let names: BTreeSet<&str> = Rule::all().map(Rule::name).collect();
        assert_eq!(names.len(), Rule::all().count(), "a name is used twice");
        for rule in Rule::all() {
            assert_eq!(rule.name().parse(), Ok(rule));
            let text = rule.explain();
            assert!(rule.why().len() > 10 && rule.why().ends_with('.'), "{rule} hardly says why: {}", rule.why());
            assert!(!rule.title().ends_with('.') && text.starts_with(rule.name()), "{rule}");
        }
    }

    #[test]
    fn a_misspelt_rule_is_recognised() {
        assert_eq!(
            "repeated-keys".parse::<Rule>(),
            Err("there is no rule `repeated-keys`; did you mean `repeated-key`?".into())
        );
    }
}
