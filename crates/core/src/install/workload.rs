//! The Deployment of the daemon, and what goes with it.

use super::{Install, NAME, Part, Scope, alerts, dashboard};
use crate::{kubernetes::value::Value, value};

/// The ports of the container, by name.
const PORTS: [(&str, u16); 4] = [("metrics", 8090), ("health", 8080), ("webhooks", 9292), ("pages", 8082)];

impl Install {
    /// What runs, and how it is reached.
    pub(super) fn workload(&self) -> Vec<Value> {
        let mut objects = vec![self.deployment()];
        if self.replicas > 1 {
            objects.push(self.owned(value!({
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app.kubernetes.io/name": NAME}}},
            })));
        }
        objects.extend(self.ports().into_iter().filter(|(port, _)| *port != "health").map(|(port, number)| {
            let mut service = self.owned(value!({
                "apiVersion": "v1", "kind": "Service",
                "spec": {
                    "selector": {"app.kubernetes.io/name": NAME},
                    "ports": [{"name": port, "port": if port == "metrics" { number } else { 80 }, "targetPort": port}],
                },
            }));
            service.set_at(&["metadata", "name"], format!("{NAME}-{port}"));
            service.set_at(&["metadata", "labels", "app.kubernetes.io/component"], port);
            service
        }));
        if self.has(Part::NetworkPolicy) {
            let ports: Vec<Value> =
                self.ports().iter().map(|(_, number)| value!({"port": *number, "protocol": "TCP"})).collect();
            // The way out is open: hosts of repositories and metrics are for the cluster's operator to say.
            objects.push(self.owned(value!({
                "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
                "spec": {
                    "podSelector": {"matchLabels": {"app.kubernetes.io/name": NAME}},
                    "policyTypes": ["Ingress"], "ingress": [{"ports": ports}],
                },
            })));
        }
        if self.has(Part::ServiceMonitor) {
            objects.push(self.owned(value!({
                "apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor",
                "spec": {
                    "selector": {"matchLabels": {
                        "app.kubernetes.io/name": NAME, "app.kubernetes.io/component": "metrics"}},
                    "endpoints": [{"port": "metrics"}],
                },
            })));
        }
        if self.has(Part::Alerts) {
            objects.push(self.owned(alerts::rule()));
        }
        if self.has(Part::Dashboard) {
            let mut dashboard = self.owned(dashboard::config_map());
            dashboard.set_at(&["metadata", "name"], format!("{NAME}-dashboard"));
            objects.push(dashboard);
        }
        objects
    }

    /// The ports that are served.
    fn ports(&self) -> Vec<(&'static str, u16)> {
        let served = |port: &str| match port {
            "webhooks" => self.webhooks,
            "pages" => self.pages.is_some(),
            _ => true,
        };
        PORTS.into_iter().filter(|(port, _)| served(port)).collect()
    }

    fn arguments(&self) -> Vec<Value> {
        let mut arguments =
            vec!["run".to_owned(), "--cache=/var/cache/tidegate".to_owned(), "--log-format=json".to_owned()];
        if let Scope::Namespace(watched) = &self.scope {
            let watched = if self.watches_own() { "$(NAMESPACE)" } else { watched };
            arguments.push(format!("--namespace={watched}"));
        }
        if let Some(id) = &self.instance_id {
            arguments.push(format!("--instance-id={id}"));
        }
        // Of each port that people choose, where it is served.
        for (port, number) in self.ports() {
            if port == "webhooks" || port == "pages" {
                arguments.push(format!("--{port}=0.0.0.0:{number}"));
            }
        }
        if let Some(url) = self.pages.as_ref().filter(|url| !url.is_empty()) {
            arguments.push(format!("--pages-url={url}"));
        }
        arguments.extend(self.arguments.iter().cloned());
        arguments.into_iter().map(Value::from).collect()
    }

    /// Whether only the daemon's own namespace is reconciled. Then no field but `metadata.namespace` names it, so that whatever moves
    /// the objects to another namespace moves what is reconciled, too.
    fn watches_own(&self) -> bool {
        self.scope == Scope::Namespace(self.namespace.clone())
    }

    pub(super) fn deployment(&self) -> Value {
        let ports: Vec<Value> = self
            .ports()
            .iter()
            .map(|(name, number)| value!({"name": *name, "containerPort": *number, "protocol": "TCP"}))
            .collect();
        let probe = |path: &str| value!({"httpGet": {"path": path, "port": "health"}, "periodSeconds": 10});
        let mut container = value!({
            "name": NAME, "image": self.image.as_str(), "args": self.arguments(), "ports": ports,
            "livenessProbe": probe("/healthz"), "readinessProbe": probe("/readyz"),
            "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
            "securityContext": {
                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": [
                {"name": "cache", "mountPath": "/var/cache/tidegate"}, {"name": "tmp", "mountPath": "/tmp"},
            ],
        });
        if self.watches_own() {
            let own = value!({"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}});
            container.set_at(&["env"], Value::list([own]));
        }
        self.owned(value!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "spec": {
                "replicas": self.replicas,
                "selector": {"matchLabels": {"app.kubernetes.io/name": NAME}},
                "template": {
                    "metadata": {"labels": {"app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": NAME}},
                    "spec": {
                        "serviceAccountName": NAME,
                        "securityContext": {
                            "runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532,
                            "seccompProfile": {"type": "RuntimeDefault"},
                        },
                        "terminationGracePeriodSeconds": 30,
                        "topologySpreadConstraints": [{
                            "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
                            "labelSelector": {"matchLabels": {"app.kubernetes.io/name": NAME}},
                        }],
                        "containers": [container],
                        "volumes": [
                            {"name": "cache", "emptyDir": {"sizeLimit": "4Gi"}}, {"name": "tmp", "emptyDir": {}},
                        ],
                    },
                },
            },
        }))
    }
}
