//! Who plays the world, by the names kube-controller-manager knows them by.

/// A controller, or the kubelet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Controller {
    ReplicaSet,
    Deployment,
    Job,
    TtlAfterFinished,
    EndpointSlice,
    Disruption,
    ResourceQuota,
    HorizontalPodAutoscaler,
    NodeLifecycle,
    Namespace,
    GarbageCollector,
    /// Binds pods, too: there is no scheduler.
    Kubelet,
}

impl Controller {
    /// All of them.
    pub const ALL: [Controller; 12] = [
        Controller::ReplicaSet,
        Controller::Deployment,
        Controller::Job,
        Controller::TtlAfterFinished,
        Controller::EndpointSlice,
        Controller::Disruption,
        Controller::ResourceQuota,
        Controller::HorizontalPodAutoscaler,
        Controller::NodeLifecycle,
        Controller::Namespace,
        Controller::GarbageCollector,
        Controller::Kubelet,
    ];

    /// Its name in the arguments of kube-controller-manager.
    pub fn name(self) -> &'static str {
        match self {
            Controller::ReplicaSet => "replicaset-controller",
            Controller::Deployment => "deployment-controller",
            Controller::Job => "job-controller",
            Controller::TtlAfterFinished => "ttl-after-finished-controller",
            Controller::EndpointSlice => "endpointslice-controller",
            Controller::Disruption => "disruption-controller",
            Controller::ResourceQuota => "resourcequota-controller",
            Controller::HorizontalPodAutoscaler => "horizontal-pod-autoscaler-controller",
            Controller::NodeLifecycle => "node-lifecycle-controller",
            Controller::Namespace => "namespace-controller",
            Controller::GarbageCollector => "garbage-collector-controller",
            Controller::Kubelet => "kubelet",
        }
    }

    /// The controller of this name.
    pub fn named(name: &str) -> Option<Controller> {
        Controller::ALL.into_iter().find(|controller| controller.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_controller_is_found_by_its_name() {
        for controller in Controller::ALL {
            assert_eq!(Controller::named(controller.name()), Some(controller));
        }
        assert_eq!(Controller::named("cronjob-controller"), None);
    }
}
