//! The methods of Argo Rollouts' three plugin interfaces: what they are called with, and what their answers say.
//!
//! Never performs a call: see [`crate::client`].

pub mod metric;
pub mod router;
pub mod step;

use crate::{gob::Value, rpc::Argument};

/// The three interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Measures for an AnalysisRun.
    Metric,
    /// Moves traffic.
    TrafficRouter,
    /// Runs as a step of a canary.
    Step,
}

impl Kind {
    /// All of them, in the order in which Argo Rollouts puts their executables in place.
    pub const ALL: [Kind; 3] = [Kind::TrafficRouter, Kind::Metric, Kind::Step];

    /// The value of the variable by which a plugin knows that it was started by its host.
    pub fn cookie(self) -> &'static str {
        match self {
            Kind::Metric => "metricprovider",
            Kind::TrafficRouter => "trafficrouter",
            Kind::Step => "step",
        }
    }

    /// The name under which a plugin offers the interface.
    pub fn interface(self) -> &'static str {
        match self {
            Kind::Metric => "RpcMetricProviderPlugin",
            Kind::TrafficRouter => "RpcTrafficRouterPlugin",
            Kind::Step => "RpcStepPlugin",
        }
    }

    /// The key of the ConfigMap that lists plugins of this kind.
    pub fn key(self) -> &'static str {
        match self {
            Kind::Metric => "metricProviderPlugins",
            Kind::TrafficRouter => "trafficRouterPlugins",
            Kind::Step => "stepPlugins",
        }
    }
}

/// A method and what it is called with.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Its name.
    pub method: &'static str,
    /// What it is called with.
    pub argument: Argument,
}

impl Call {
    fn nil(method: &'static str) -> Self {
        Call { method, argument: Argument::Nil }
    }

    fn with(method: &'static str, name: &'static str, value: Value) -> Self {
        Call { method, argument: Argument::Struct(name, value) }
    }
}

/// `InitPlugin`: the first call to every new process. Answered with an `RpcError`.
pub fn init() -> Call {
    Call::nil("InitPlugin")
}

/// `Type`: what the plugin calls itself. Answered with a text.
pub fn plugin_type() -> Call {
    Call::nil("Type")
}
