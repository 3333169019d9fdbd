//! The order in which objects are written.
//!
//! Namespaces and definitions first, then what pods read, then pods, then what leads traffic to them. Inside a stage by
//! kind and name, so that two runs are alike. Waves are people's own order on top: a higher one waits until everything in
//! lower ones is healthy. Never decides whether an object is written at all.

use super::id::Id;
use crate::route;

/// What is written together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// What other objects live in or are instances of.
    Foundation,
    /// What pods are run as, read, mount and are limited by; what is measured.
    Configuration,
    /// What runs pods, and scales it.
    Workload,
    /// What leads traffic to pods, but for Services: they are in [`Stage::Configuration`], because a Rollout refuses to move
    /// without them.
    Route,
}

impl Stage {
    /// The stage of a kind.
    pub fn of(group: &str, kind: &str) -> Stage {
        match (group, kind) {
            ("", "Namespace")
            | ("apiextensions.k8s.io", "CustomResourceDefinition")
            | ("scheduling.k8s.io", "PriorityClass")
            | ("storage.k8s.io", "StorageClass")
            | ("node.k8s.io", "RuntimeClass")
            | ("networking.k8s.io", "IngressClass")
            | ("gateway.networking.k8s.io", "GatewayClass") => Stage::Foundation,
            ("rbac.authorization.k8s.io", _)
            | (
                "",
                "ServiceAccount"
                | "ConfigMap"
                | "Secret"
                | "PersistentVolume"
                | "PersistentVolumeClaim"
                | "LimitRange"
                | "ResourceQuota"
                | "PodTemplate"
                | "Service",
            )
            | ("argoproj.io", "AnalysisTemplate" | "ClusterAnalysisTemplate")
            | ("networking.k8s.io", "NetworkPolicy")
            | ("policy", _) => Stage::Configuration,
            // Groups that routers had before, or that belong to one.
            ("traefik.containo.us" | "x.getambassador.io" | "elbv2.k8s.aws", _)
            | ("admissionregistration.k8s.io" | "apiregistration.k8s.io", _) => Stage::Route,
            (group, _) if is_of_routers(group) => Stage::Route,
            _ => Stage::Workload,
        }
    }
}

/// Whether routers read objects of this group.
fn is_of_routers(group: &str) -> bool {
    let apis = route::Apis::default();
    !group.is_empty() && route::kinds().iter().any(|kind| kind.group(&apis) == group)
}

/// What objects are sorted by.
pub fn order(wave: i64, id: &Id) -> (i64, Stage, u8, Id) {
    // A Deployment that a Rollout refers to must be there before the Rollout looks for it.
    let last = u8::from(id.is("argoproj.io", "Rollout") || id.group == "autoscaling");
    (wave, Stage::of(&id.group, &id.kind), last, id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_come_in_the_order_in_which_they_need_each_other() {
        let mut ids = [
            (0, "networking.istio.io", "VirtualService"),
            (0, "argoproj.io", "Rollout"),
            (0, "apps", "Deployment"),
            (0, "", "Service"),
            (0, "", "ConfigMap"),
            (0, "argoproj.io", "AnalysisTemplate"),
            (0, "example.org", "Widget"),
            (0, "autoscaling", "HorizontalPodAutoscaler"),
            (0, "apiextensions.k8s.io", "CustomResourceDefinition"),
            (0, "", "Namespace"),
            (-1, "batch", "Job"),
            (1, "", "Namespace"),
        ]
        .map(|(wave, group, kind)| (wave, Id::new(group, kind, "", "x")));
        ids.sort_by_key(|(wave, id)| order(*wave, id));
        let kinds: Vec<&str> = ids.iter().map(|(_, id)| id.kind.as_str()).collect();
        assert_eq!(
            kinds,
            [
                "Job",
                "Namespace",
                "CustomResourceDefinition",
                "ConfigMap",
                "Service",
                "AnalysisTemplate",
                "Deployment",
                "Widget",
                "Rollout",
                "HorizontalPodAutoscaler",
                "VirtualService",
                "Namespace",
            ]
        );
    }
}
