//! What things that belong to a Rollout are called, and how a step reads in an event.
//!
//! Never asks whether a name is free: that is found out by creating the object, and a collision asks for the next name.

use std::fmt;

use crate::api::{
    CanaryStep,
    constants::{label, rollout_type},
};

/// The ReplicaSet of a template.
pub fn replica_set(rollout: &str, hash: &str) -> String {
    format!("{rollout}-{hash}")
}

/// The ReplicaSet, and the Service, of an experiment's template.
pub fn experiment_replica_set(experiment: &str, template: &str) -> String {
    format!("{experiment}-{template}")
}

/// What an analysis of a Rollout is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It runs beside the steps.
    Background,
    /// A step waits for it.
    Step {
        /// Which, counted from 0.
        index: i32,
    },
    /// The switch waits for it.
    PrePromotion,
    /// It can undo the switch.
    PostPromotion,
}

impl Purpose {
    /// The value of the label that says so.
    pub fn label(self) -> &'static str {
        match self {
            Purpose::Background => rollout_type::BACKGROUND,
            Purpose::Step { .. } => rollout_type::STEP,
            Purpose::PrePromotion => rollout_type::PRE_PROMOTION,
            Purpose::PostPromotion => rollout_type::POST_PROMOTION,
        }
    }

    /// The labels of its AnalysisRun. `instance` is the controller's, empty if it has none.
    pub fn labels(self, hash: &str, instance: &str) -> Vec<(&'static str, String)> {
        let mut labels =
            vec![(label::POD_TEMPLATE_HASH, hash.to_owned()), (label::ROLLOUT_TYPE, self.label().to_owned())];
        if let Purpose::Step { index } = self {
            labels.push((label::STEP_INDEX, index.to_string()));
        }
        if !instance.is_empty() {
            labels.push((label::INSTANCE_ID, instance.to_owned()));
        }
        labels
    }
}

/// The AnalysisRun of a Rollout: of its nth try to find a free name, counted from 0.
pub fn analysis_run(rollout: &str, hash: &str, revision: i64, purpose: Purpose, attempt: u32) -> String {
    let suffix = match purpose {
        Purpose::Background => String::new(),
        Purpose::Step { index } => format!("-{index}"),
        Purpose::PrePromotion => "-pre".to_owned(),
        Purpose::PostPromotion => "-post".to_owned(),
    };
    let name = format!("{rollout}-{hash}-{revision}{suffix}");
    if attempt == 0 { name } else { format!("{name}.{attempt}") }
}

/// The Experiment of a Rollout's step: of its nth try to find a free name, counted from 0.
pub fn experiment(rollout: &str, hash: &str, revision: i64, step: i32, attempt: u32) -> String {
    let name = format!("{rollout}-{hash}-{revision}-{step}");
    if attempt == 0 { name } else { format!("{name}-{attempt}") }
}

/// A step as events name it.
pub struct StepText<'a>(pub &'a CanaryStep);

impl fmt::Display for StepText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = self.0;
        if let Some(weight) = step.set_weight {
            return write!(f, "setWeight: {weight}");
        }
        if let Some(pause) = &step.pause {
            return match &pause.duration {
                Some(duration) => write!(f, "pause: {duration}"),
                None => f.write_str("pause"),
            };
        }
        if step.experiment.is_some() {
            return f.write_str("experiment");
        }
        if step.analysis.is_some() {
            return f.write_str("analysis");
        }
        match step.set_canary_scale.as_ref().map(|scale| (scale.weight, scale.match_traffic_weight, scale.replicas)) {
            Some((Some(weight), _, _)) => return write!(f, "setCanaryScale{{weight: {weight}}}"),
            Some((None, true, _)) => return f.write_str("setCanaryScale{matchTrafficWeight: true}"),
            Some((None, false, Some(replicas))) => return write!(f, "setCanaryScale{{replicas: {replicas}}}"),
            Some((None, false, None)) | None => {}
        }
        match (&step.plugin, &step.set_header_route, &step.set_mirror_route) {
            (Some(plugin), _, _) => write!(f, "plugin: {}", plugin.name),
            (None, Some(route), _) => write!(f, "setHeaderRoute: {}", route.name),
            (None, None, Some(route)) => write!(f, "setMirrorRoute: {}", route.name),
            (None, None, None) => f.write_str("invalid"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_whose_they_are() {
        assert_eq!(replica_set("web", "6bfdf7444"), "web-6bfdf7444");
        assert_eq!(experiment_replica_set("web-6bfdf7444-2-1", "canary"), "web-6bfdf7444-2-1-canary");
        assert_eq!(analysis_run("web", "h", 2, Purpose::Background, 0), "web-h-2");
        assert_eq!(analysis_run("web", "h", 2, Purpose::Step { index: 3 }, 1), "web-h-2-3.1");
        assert_eq!(analysis_run("web", "h", 2, Purpose::PrePromotion, 0), "web-h-2-pre");
        assert_eq!(analysis_run("web", "h", 2, Purpose::PostPromotion, 2), "web-h-2-post.2");
        assert_eq!(experiment("web", "h", 2, 3, 0), "web-h-2-3");
        assert_eq!(experiment("web", "h", 2, 3, 1), "web-h-2-3-1");
    }
}
