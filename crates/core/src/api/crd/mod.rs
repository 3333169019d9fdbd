//! The CustomResourceDefinitions, made from the types: `crds/*.yaml` is what this module says.
//!
//! They accept every object that the definitions of Argo Rollouts accept, fill in the same defaults, and leave the words
//! out of pod templates, so that `kubectl apply` can remember them in an annotation. Never written by hand.

mod builtin;
mod parts;
mod structural;

use schemars::JsonSchema;

pub(super) use parts::{
    any_object, immutable_selector, job_spec, object_meta, pod_template, selector, template_metadata,
};

use super::{AnalysisRun, AnalysisTemplate, ClusterAnalysisTemplate, Experiment, GitSource, Rollout, constants};
use crate::{kubernetes::value::Value, value};

/// A kind, as its definition names it.
struct Kind {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    short: &'static str,
    scope: &'static str,
    schema: Value,
    subresources: Value,
    /// Name, type, path and description.
    columns: &'static [[&'static str; 4]],
}

const AGE: [&str; 4] = ["Age", "date", ".metadata.creationTimestamp", "Time since the object was created"];

/// The definitions of all kinds, in the order in which they are best installed.
pub fn all() -> Vec<Value> {
    kinds().into_iter().map(definition).collect()
}

fn kinds() -> [Kind; 6] {
    [
        Kind {
            group: constants::GROUP,
            kind: constants::kind::ROLLOUT,
            plural: "rollouts",
            short: "ro",
            scope: "Namespaced",
            schema: schema::<Rollout>(),
            subresources: value!({"status": {}, "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.HPAReplicas",
                "labelSelectorPath": ".status.selector",
            }}),
            columns: &[
                ["Desired", "integer", ".spec.replicas", "Number of pods wanted"],
                ["Current", "integer", ".status.replicas", "Number of pods there are"],
                ["Up-to-date", "integer", ".status.updatedReplicas", "Number of pods of the newest version"],
                ["Available", "integer", ".status.availableReplicas", "Number of pods that are available"],
                AGE,
            ],
        },
        Kind {
            group: constants::GROUP,
            kind: constants::kind::ANALYSIS_TEMPLATE,
            plural: "analysistemplates",
            short: "at",
            scope: "Namespaced",
            schema: schema::<AnalysisTemplate>(),
            subresources: Value::object(),
            columns: &[AGE],
        },
        Kind {
            group: constants::GROUP,
            kind: constants::kind::CLUSTER_ANALYSIS_TEMPLATE,
            plural: "clusteranalysistemplates",
            short: "cat",
            scope: "Cluster",
            schema: schema::<ClusterAnalysisTemplate>(),
            subresources: Value::object(),
            columns: &[AGE],
        },
        Kind {
            group: constants::GROUP,
            kind: constants::kind::ANALYSIS_RUN,
            plural: "analysisruns",
            short: "ar",
            scope: "Namespaced",
            schema: schema::<AnalysisRun>(),
            // No status subresource: Argo's own tools write the status through the object itself.
            subresources: Value::object(),
            columns: &[["Status", "string", ".status.phase", "How far the analysis is"], AGE],
        },
        Kind {
            group: constants::GROUP,
            kind: constants::kind::EXPERIMENT,
            plural: "experiments",
            short: "exp",
            scope: "Namespaced",
            schema: schema::<Experiment>(),
            subresources: Value::object(),
            columns: &[["Status", "string", ".status.phase", "How far the experiment is"], AGE],
        },
        Kind {
            group: constants::TIDEGATE_GROUP,
            kind: constants::kind::GIT_SOURCE,
            plural: "gitsources",
            short: "gs",
            scope: "Namespaced",
            schema: schema::<GitSource>(),
            subresources: value!({"status": {}}),
            columns: &[
                ["URL", "string", ".spec.url", "The repository"],
                ["Rolled out", "string", ".status.rolledOut.commit", "The newest commit that is fully rolled out"],
                [
                    "Ready",
                    "string",
                    r#".status.conditions[?(@.type=="Ready")].status"#,
                    "Whether all is as the newest commit says",
                ],
                ["Status", "string", r#".status.conditions[?(@.type=="Ready")].message"#, "Why"],
                AGE,
            ],
        },
    ]
}

fn schema<T: JsonSchema>() -> Value {
    structural::of::<T>()
}

fn definition(kind: Kind) -> Value {
    let columns = kind.columns.iter().map(|[name, r#type, path, description]| {
        value!({"name": name, "type": r#type, "jsonPath": path, "description": description})
    });
    let mut definition = value!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{}", kind.plural, kind.group)},
        "spec": {
            "group": kind.group,
            "scope": kind.scope,
            "names": {
                "kind": kind.kind,
                "listKind": format!("{}List", kind.kind),
                "plural": kind.plural,
                "singular": kind.kind.to_lowercase(),
                "shortNames": [kind.short],
            },
        },
    });
    let mut version = value!({"name": constants::VERSION, "served": true, "storage": true});
    version.set_at(&["additionalPrinterColumns"], Value::list(columns));
    version.set_at(&["subresources"], kind.subresources);
    version.set_at(&["schema", "openAPIV3Schema"], kind.schema);
    definition.set_at(&["spec", "versions"], Value::list([version]));
    definition
}
