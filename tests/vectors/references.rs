//! Which objects a Rollout refers to.

use serde_json::json;
use tidegate::model::refers::{self, Key};

#[test]
fn vectors_references() {
    super::check("references", |input, _| {
        let text = |name: &str| input[name].as_str().unwrap();
        Some(match text("kind") {
            "virtual-service-name" => {
                // Argo Rollouts takes the `svc` of a full DNS name for the namespace.
                if text("text").ends_with(".svc.cluster.local") {
                    return None;
                }
                let key = refers::virtual_service(text("text"));
                json!({"name": key.name, "namespace": key.namespace})
            }
            "canary-ingress-name" => json!({"name": refers::canary_ingress(text("rollout"), text("ingress"))}),
            _ => {
                let rollout = super::rollouts::rollout(&input["rollout"]);
                let texts = |keys: Vec<Key>| keys.iter().map(Key::to_string).collect::<Vec<_>>();
                json!({
                    "services": texts(refers::services(&rollout)),
                    "ingresses": texts(refers::ingresses(&rollout)),
                    "virtualServices": texts(refers::virtual_services(&rollout)),
                    "destinationRules": texts(refers::destination_rule(&rollout).into_iter().collect()),
                })
            }
        })
    });
}
