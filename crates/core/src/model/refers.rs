//! Which objects a Rollout refers to by name: what must be watched for it, and seen before a decision about it.
//!
//! Never says whether they exist or fit.

use std::fmt;

use crate::{
    api::{Experiment, IstioTrafficRouting, ObjectMeta, Rollout, RolloutTrafficRouting, constants},
    kubernetes::value::Value,
    value,
};

/// The name of an object in a namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The Services that stand for the Rollout's versions.
pub fn services(rollout: &Rollout) -> Vec<Key> {
    let strategy = &rollout.spec.strategy;
    let names = match (&strategy.blue_green, &strategy.canary) {
        (Some(blue_green), _) => vec![&blue_green.active_service, &blue_green.preview_service],
        (None, Some(canary)) => {
            let ping_pong = canary.ping_pong.iter().flat_map(|both| [&both.ping_service, &both.pong_service]);
            [&canary.canary_service, &canary.stable_service].into_iter().chain(ping_pong).collect()
        }
        (None, None) => Vec::new(),
    };
    names.into_iter().filter(|name| !name.is_empty()).map(|name| beside(rollout, name.clone())).collect()
}

/// The Ingresses that route to them, and those that are made for the canary.
pub fn ingresses(rollout: &Rollout) -> Vec<Key> {
    let Some(routing) = routing(rollout) else { return Vec::new() };
    let mut names = Vec::new();
    if let Some(nginx) = &routing.nginx {
        let single = Some(&nginx.stable_ingress).filter(|name| !name.is_empty());
        for stable in single.into_iter().chain(&nginx.stable_ingresses) {
            names.extend([stable.clone(), canary_ingress(&rollout.metadata.name, stable)]);
        }
    }
    if let Some(alb) = &routing.alb {
        let single = Some(&alb.ingress).filter(|name| !name.is_empty());
        names.extend(single.into_iter().chain(&alb.ingresses).cloned());
    }
    names.into_iter().map(|name| beside(rollout, name)).collect()
}

/// The VirtualServices of Istio that route to them. One and several at once is an error, and none of them counts.
pub fn virtual_services(rollout: &Rollout) -> Vec<Key> {
    let Some(istio) = istio(rollout) else { return Vec::new() };
    let given: Vec<&str> = match (&istio.virtual_service, istio.virtual_services.as_slice()) {
        (Some(one), []) => vec![&one.name],
        (None, several) => several.iter().map(|one| one.name.as_str()).collect(),
        (Some(_), _) => Vec::new(),
    };
    let keys = given.into_iter().map(virtual_service);
    let keys = keys.map(|key| if key.namespace.is_empty() { beside(rollout, key.name) } else { key });
    keys.filter(|key| !key.name.is_empty()).collect()
}

/// The DestinationRule of Istio whose subsets are the Rollout's versions.
pub fn destination_rule(rollout: &Rollout) -> Option<Key> {
    let rule = istio(rollout)?.destination_rule.as_ref()?;
    (!rule.name.is_empty()).then(|| beside(rollout, rule.name.clone()))
}

fn routing(rollout: &Rollout) -> Option<&RolloutTrafficRouting> {
    rollout.spec.strategy.canary.as_ref()?.traffic_routing.as_ref()
}

fn istio(rollout: &Rollout) -> Option<&IstioTrafficRouting> {
    routing(rollout)?.istio.as_ref()
}

fn beside(rollout: &Rollout, name: String) -> Key {
    Key { namespace: rollout.metadata.namespace.clone(), name }
}

/// The object that a VirtualService's name stands for: `name` in the Rollout's namespace (then none is returned),
/// `name.namespace`, or a full DNS name. A name may hold dots, a namespace cannot.
pub fn virtual_service(text: &str) -> Key {
    let short = text.strip_suffix(".cluster.local").map(|text| text.strip_suffix(".svc").unwrap_or(text));
    let short = short.unwrap_or(text);
    let (name, namespace) = short.rsplit_once('.').unwrap_or((short, ""));
    Key { namespace: namespace.to_owned(), name: name.to_owned() }
}

/// How an object that belongs to a Rollout names it.
pub fn owner(rollout: &Rollout) -> Value {
    controller(constants::kind::ROLLOUT, &rollout.metadata)
}

/// Makes a Rollout the controller of an object that has none; its other owners stay.
pub fn adopt(object: &mut Value, rollout: &Rollout) {
    let owners = object.list_at(&["metadata", "ownerReferences"]).iter().cloned().chain([owner(rollout)]);
    let owners = Value::list(owners);
    object.set_at(&["metadata", "ownerReferences"], owners);
}

/// How an object that belongs to an Experiment names it.
pub fn experiment_owner(experiment: &Experiment) -> Value {
    controller(constants::kind::EXPERIMENT, &experiment.metadata)
}

fn controller(kind: &str, metadata: &ObjectMeta) -> Value {
    value!({
        "apiVersion": constants::API_VERSION,
        "kind": kind,
        "name": metadata.name.as_str(),
        "uid": metadata.uid.as_str(),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// The Ingress that is made for the canary beside a stable one; none without a stable one. Names end at 253 bytes.
pub fn canary_ingress(rollout: &str, stable: &str) -> String {
    const SUFFIX: &str = "-canary";
    if stable.is_empty() {
        return String::new();
    }
    let mut name = format!("{rollout}-{stable}");
    // Names are ASCII; of any other text no character is cut in half.
    name.truncate(name.floor_char_boundary(253 - SUFFIX.len()));
    name + SUFFIX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_dns_name_is_a_name_and_a_namespace() {
        for (text, name, namespace) in [
            ("web", "web", ""),
            ("web.shop", "web", "shop"),
            ("web.v2.shop", "web.v2", "shop"),
            ("web.shop.svc.cluster.local", "web", "shop"),
            ("", "", ""),
        ] {
            let key = virtual_service(text);
            assert_eq!((key.name.as_str(), key.namespace.as_str()), (name, namespace), "{text}");
        }
    }

    #[test]
    fn a_long_name_is_cut_where_a_character_ends() {
        assert_eq!(canary_ingress(&"é".repeat(200), "x"), "é".repeat(123) + "-canary");
        assert_eq!(canary_ingress(&"a".repeat(300), "x").len(), 253);
    }
}
