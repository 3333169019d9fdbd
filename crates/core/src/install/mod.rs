//! What to install in a cluster so that the daemon runs there: accounts, rights, the Deployment and what goes with it.
//!
//! One source for `tidegate manifests`, `tidegate install`, the chart and the kustomize base, so that they cannot disagree.
//! Never asks a cluster what it has.

pub mod alerts;
pub mod chart;
pub mod dashboard;
pub mod kustomize;
pub mod rights;
mod template;
mod workload;

use crate::{api::crd, kubernetes::value::Value, value};

/// The name of everything that is installed.
pub const NAME: &str = "tidegate";

/// What people choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Install {
    /// The namespace of the daemon.
    pub namespace: String,
    /// Whose Rollouts and GitSources it reconciles.
    pub scope: Scope,
    /// The container image.
    pub image: String,
    /// How many pods; one works, the others stand by.
    pub replicas: u16,
    /// Serve webhooks and plans of workflows.
    pub webhooks: bool,
    /// Serve the pages of sources, and where people reach them.
    pub pages: Option<String>,
    /// Only Rollouts with this instance id.
    pub instance_id: Option<String>,
    /// Kinds beyond the built-in ones that GitSources may read, as `plural.group`; `secrets` among them.
    pub reads: Vec<rights::Kind>,
    /// More arguments of `tidegate run`.
    pub arguments: Vec<String>,
    /// Optional parts.
    pub parts: Vec<Part>,
}

/// Whose objects are reconciled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Those of all namespaces.
    Cluster,
    /// Those of this namespace; no right outside of it and of the daemon's own is needed.
    Namespace(String),
}

/// What can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The CustomResourceDefinitions.
    Definitions,
    /// The Namespace of the daemon.
    Namespace,
    /// A ServiceMonitor for the Prometheus operator.
    ServiceMonitor,
    /// A PrometheusRule with alerts.
    Alerts,
    /// A ConfigMap with a dashboard, as Grafana's sidecar finds it.
    Dashboard,
    /// A NetworkPolicy that admits only what the daemon serves.
    NetworkPolicy,
}

impl Install {
    /// The usual installation of this image.
    pub fn new(namespace: &str, image: &str) -> Install {
        Install {
            namespace: namespace.to_owned(),
            scope: Scope::Cluster,
            image: image.to_owned(),
            replicas: 2,
            webhooks: false,
            pages: None,
            instance_id: None,
            reads: Vec::new(),
            arguments: Vec::new(),
            parts: vec![Part::Definitions, Part::Namespace],
        }
    }

    fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }

    fn leave_out(&mut self, part: Part) {
        self.parts.retain(|kept| *kept != part);
    }

    /// The objects, in the order in which they are applied.
    pub fn objects(&self) -> Vec<Value> {
        let mut objects = Vec::new();
        if self.has(Part::Definitions) {
            objects.extend(crd::all());
        }
        if self.has(Part::Namespace) {
            objects.push(self.labelled(value!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": {
                    "name": self.namespace,
                    // The daemon runs under the strictest profile, and so may whatever else comes into its namespace.
                    "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
                },
            })));
        }
        objects.push(self.account());
        objects.extend(self.rights());
        objects.extend(self.workload());
        objects
    }

    fn account(&self) -> Value {
        self.owned(value!({"apiVersion": "v1", "kind": "ServiceAccount"}))
    }

    /// An object of the daemon's namespace, under the common name.
    fn owned(&self, mut object: Value) -> Value {
        object.set_at(&["metadata", "name"], NAME);
        object.set_at(&["metadata", "namespace"], self.namespace.as_str());
        self.labelled(object)
    }

    fn labelled(&self, mut object: Value) -> Value {
        object.set_at(&["metadata", "labels", "app.kubernetes.io/name"], NAME);
        object.set_at(&["metadata", "labels", "app.kubernetes.io/part-of"], NAME);
        object
    }
}

#[cfg(test)]
mod tests;
