//! What the daemon may do in a cluster: one table, from which its roles are made.
//!
//! A request outside of this table is a bug: either of the table or of whoever makes it. The tests compare it with the requests
//! that were made, in both directions.

use super::{Install, NAME, Scope};
use crate::{api::constants::GROUP, kubernetes::value::Value, route, value};

/// A kind by its resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// `deployments`
    pub plural: String,
    /// `apps`; empty for the core group.
    pub group: String,
}

impl Kind {
    /// Reads `deployments.apps`.
    pub fn parse(text: &str) -> Result<Kind, &'static str> {
        let (plural, group) = text.split_once('.').map_or((text, None), |(plural, group)| (plural, Some(group)));
        let is_label = |part: &str| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        };
        if !is_label(plural) || !group.is_none_or(|group| group.split('.').all(is_label)) {
            return Err("name a resource such as `secrets` or `certificates.cert-manager.io`");
        }
        Ok(Kind { plural: plural.to_owned(), group: group.unwrap_or_default().to_owned() })
    }
}

/// Where a right is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Where Rollouts and GitSources are.
    Watched,
    /// In the daemon's own namespace.
    Own,
    /// Objects without a namespace; granted only to a daemon of the whole cluster.
    Cluster,
}

/// Something that the daemon may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Right {
    /// The API group.
    pub group: &'static str,
    /// The resources, with their subresources.
    pub resources: &'static [&'static str],
    /// The verbs.
    pub verbs: &'static [&'static str],
    /// Where.
    pub place: Place,
    /// What it is needed for.
    pub why: &'static str,
}

const READ: &[&str] = &["get", "list", "watch"];

/// What the daemon does in its own name.
pub const RIGHTS: &[Right] = &[
    Right {
        group: GROUP,
        resources: &["rollouts"],
        verbs: &["get", "list", "watch", "patch"],
        place: Place::Watched,
        why: "reconcile Rollouts; the revision is an annotation",
    },
    Right {
        group: GROUP,
        resources: &["rollouts/status"],
        verbs: &["patch"],
        place: Place::Watched,
        why: "their status",
    },
    Right {
        group: GROUP,
        resources: &["analysisruns", "experiments"],
        verbs: &["get", "list", "watch", "create", "patch", "delete"],
        place: Place::Watched,
        why: "run analyses and experiments",
    },
    Right {
        group: GROUP,
        resources: &["rollouts/finalizers", "analysisruns/finalizers", "experiments/finalizers"],
        verbs: &["update"],
        place: Place::Watched,
        why: "own ReplicaSets, AnalysisRuns and Jobs where owner references are checked",
    },
    Right {
        group: GROUP,
        resources: &["analysistemplates"],
        verbs: READ,
        place: Place::Watched,
        why: "what to measure",
    },
    Right {
        group: GROUP,
        resources: &["clusteranalysistemplates"],
        verbs: READ,
        place: Place::Cluster,
        why: "what to measure",
    },
    Right {
        group: "apps",
        resources: &["replicasets"],
        verbs: &["get", "list", "watch", "create", "patch", "delete"],
        place: Place::Watched,
        why: "a ReplicaSet for each version",
    },
    Right {
        group: "apps",
        resources: &["deployments"],
        verbs: &["get", "list", "watch", "patch"],
        place: Place::Watched,
        why: "templates of `workloadRef`, and scaling their Deployments down",
    },
    Right {
        group: "",
        resources: &["podtemplates"],
        verbs: READ,
        place: Place::Watched,
        why: "templates of `workloadRef`",
    },
    Right {
        group: "",
        resources: &["services"],
        verbs: &["get", "list", "watch", "create", "patch", "delete"],
        place: Place::Watched,
        why: "select the pods of a version; Experiments have Services of their own",
    },
    Right {
        group: "",
        resources: &["pods"],
        verbs: &["get", "list", "watch", "patch"],
        place: Place::Watched,
        why: "why pods are not ready, labels of roles",
    },
    Right { group: "", resources: &["pods/eviction"], verbs: &["create"], place: Place::Watched, why: "restart pods" },
    Right {
        group: "",
        resources: &["events"],
        verbs: &["create", "list"],
        place: Place::Watched,
        why: "announce, explain",
    },
    Right {
        group: "batch",
        resources: &["jobs"],
        verbs: &["get", "list", "watch", "create", "delete"],
        place: Place::Watched,
        why: "metrics that are Jobs",
    },
    Right { group: "", resources: &["secrets"], verbs: &["get"], place: Place::Watched, why: "arguments of analyses" },
    Right { group: "", resources: &["secrets"], verbs: &["get"], place: Place::Own, why: "keys of metric providers" },
    Right {
        group: "tidegate.dev",
        resources: &["gitsources"],
        verbs: &["get", "list", "watch", "patch"],
        place: Place::Watched,
        why: "sync GitSources; finalizers",
    },
    Right {
        group: "tidegate.dev",
        resources: &["gitsources/status"],
        verbs: &["patch"],
        place: Place::Watched,
        why: "their status",
    },
    Right {
        group: "",
        resources: &["configmaps"],
        verbs: &["get", "list", "watch", "create", "patch", "delete"],
        place: Place::Watched,
        why: "the inventories of sources",
    },
    Right {
        group: "",
        resources: &["namespaces"],
        verbs: &["get"],
        place: Place::Cluster,
        why: "whether a target is there",
    },
    Right {
        group: "apiextensions.k8s.io",
        resources: &["customresourcedefinitions"],
        verbs: &["get"],
        place: Place::Cluster,
        why: "the scope and schema of a kind that git names",
    },
    Right {
        group: "",
        resources: &["serviceaccounts"],
        verbs: &["impersonate"],
        place: Place::Watched,
        why: "read and write with the rights of the account that a GitSource names",
    },
    Right {
        group: "coordination.k8s.io",
        resources: &["leases"],
        verbs: &["get", "create", "update"],
        place: Place::Own,
        why: "one daemon works at a time",
    },
];

/// The built-in kinds that repositories hold; one watch for each is
/// shared by all GitSources. Secrets and rights are not among them: who syncs those says so.
const SYNCED: [(&str, &[&str]); 7] = [
    (
        "",
        &[
            "endpoints",
            "limitranges",
            "persistentvolumeclaims",
            "replicationcontrollers",
            "resourcequotas",
            "serviceaccounts",
        ],
    ),
    ("apps", &["daemonsets", "statefulsets"]),
    ("autoscaling", &["horizontalpodautoscalers"]),
    ("batch", &["cronjobs"]),
    ("networking.k8s.io", &["networkpolicies"]),
    ("policy", &["poddisruptionbudgets"]),
    ("discovery.k8s.io", &["endpointslices"]),
];

/// A rule of a role.
fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    let list = |words: &[&str]| Value::from(words.iter().map(|word| Value::from(*word)).collect::<Vec<_>>());
    value!({"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)})
}

impl Install {
    /// The namespace in which a right of this place is needed, empty for all of them; `None` if it is not needed.
    pub fn namespace_of(&self, place: Place) -> Option<&str> {
        match (place, &self.scope) {
            (Place::Own, _) => Some(&self.namespace),
            (Place::Watched | Place::Cluster, Scope::Cluster) => Some(""),
            (Place::Watched, Scope::Namespace(watched)) => Some(watched),
            (Place::Cluster, Scope::Namespace(_)) => None,
        }
    }

    /// The rules for one place, as far as the scope needs them.
    fn rules(&self, place: Place) -> Vec<Value> {
        let granted = RIGHTS.iter().filter(|right| right.place == place);
        let mut rules: Vec<Value> = granted.map(|right| rule(right.group, right.resources, right.verbs)).collect();
        if place == Place::Watched {
            let apis = route::Apis::default();
            for routed in route::kinds() {
                // A Service has a rule of its own.
                if routed == route::Kind::Service {
                    continue;
                }
                let is_read = routed == route::Kind::MeshService;
                let verbs = if is_read { READ } else { &["get", "list", "watch", "create", "patch", "delete"] };
                rules.push(rule(routed.group(&apis), &[routed.plural(&apis)], verbs));
            }
            rules.extend(SYNCED.iter().map(|(group, resources)| rule(group, resources, READ)));
            rules.extend(self.reads.iter().map(|kind| rule(&kind.group, &[&kind.plural], READ)));
        }
        rules
    }

    /// Roles and who has them.
    pub(super) fn rights(&self) -> Vec<Value> {
        let mut objects = Vec::new();
        let account = value!([{"kind": "ServiceAccount", "name": NAME, "namespace": self.namespace.as_str()}]);
        let mut grant = |role: &str, name: &str, namespace: Option<&str>, rules: Vec<Value>| {
            let mut made = self.labelled(value!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": role, "metadata": {"name": name}, "rules": rules,
            }));
            let mut binding = self.labelled(value!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{role}Binding"), "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name},
                "subjects": account.clone(),
            }));
            if let Some(namespace) = namespace {
                made.set_at(&["metadata", "namespace"], namespace);
                binding.set_at(&["metadata", "namespace"], namespace);
            }
            objects.extend([made, binding]);
        };
        match &self.scope {
            Scope::Cluster => {
                let rules = [self.rules(Place::Watched), self.rules(Place::Cluster)].concat();
                grant("ClusterRole", NAME, None, rules);
                grant("Role", NAME, Some(&self.namespace), self.rules(Place::Own));
            }
            Scope::Namespace(watched) if *watched == self.namespace => {
                let rules = [self.rules(Place::Watched), self.rules(Place::Own)].concat();
                grant("Role", NAME, Some(watched), rules);
            }
            Scope::Namespace(watched) => {
                grant("Role", NAME, Some(watched), self.rules(Place::Watched));
                grant("Role", NAME, Some(&self.namespace), self.rules(Place::Own));
            }
        }
        objects
    }
}
