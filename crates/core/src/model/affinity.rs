//! Keeping pods of a new version off the nodes of the stable one: the term that is put into its pod template.
//!
//! The term is not part of the template that is hashed and compared, so it can be found and taken out again. Never touches
//! a term that names anything but the hash label.

use crate::{
    api::{self, constants::label},
    kubernetes::value::{Value, intern},
    model::strategy::AntiAffinity,
    value,
};

const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

impl AntiAffinity {
    /// The rule of a strategy, if it has one. Of two kinds the preferred one counts.
    pub fn of(strategy: &api::RolloutStrategy) -> Option<AntiAffinity> {
        let canary = strategy.canary.as_ref().and_then(|canary| canary.anti_affinity.as_ref());
        let blue_green = strategy.blue_green.as_ref().and_then(|blue_green| blue_green.anti_affinity.as_ref());
        let rule = canary.or(blue_green)?;
        let preferred = rule.preferred_during_scheduling_ignored_during_execution.as_ref();
        let required = rule.required_during_scheduling_ignored_during_execution.as_ref();
        // Validation refuses other weights.
        preferred
            .map(|preferred| AntiAffinity::Preferred(preferred.weight.clamp(1, 100) as u8))
            .or_else(|| required.map(|_| AntiAffinity::Required))
    }

    /// The field of `podAntiAffinity` that holds its terms.
    fn list(self) -> &'static str {
        match self {
            AntiAffinity::Preferred(_) => PREFERRED,
            AntiAffinity::Required => REQUIRED,
        }
    }

    /// The affinity of a new version's pods: that of the template with the term added.
    ///
    /// `stable` is the hash that was promoted last; with none, or when the template is that very version, there is nobody
    /// to keep away from.
    pub fn inject(self, affinity: Option<&Value>, namespace: &str, stable: &str, current: &str) -> Option<Value> {
        if stable.is_empty() || stable == current {
            return affinity.cloned();
        }
        let term = value!({
            "labelSelector": {"matchExpressions": [{"key": label::POD_TEMPLATE_HASH, "operator": "In", "values": [stable]}]},
            "namespaces": [namespace],
            "topologyKey": "kubernetes.io/hostname",
        });
        let term = match self {
            AntiAffinity::Preferred(weight) => {
                let mut weighted = value!({"weight": weight});
                weighted.set_at(&["podAffinityTerm"], term);
                weighted
            }
            AntiAffinity::Required => term,
        };
        let mut affinity = affinity.cloned().unwrap_or_else(Value::object);
        let path = ["podAntiAffinity", self.list()];
        let terms = affinity.list_at(&path).iter().cloned().chain([term]);
        let terms = Value::list(terms);
        affinity.set_at(&path, terms);
        Some(affinity)
    }

    /// Where in its list the term stands, and the hash it keeps away from.
    pub fn injected(self, affinity: Option<&Value>) -> Option<(usize, &str)> {
        let terms = affinity?.list_at(&["podAntiAffinity", self.list()]);
        terms.iter().enumerate().find_map(|(index, term)| {
            let term = match self {
                AntiAffinity::Preferred(_) => term.get("podAffinityTerm")?,
                AntiAffinity::Required => term,
            };
            let requirements = term.list_at(&["labelSelector", "matchExpressions"]);
            let ours = requirements
                .iter()
                .find(|requirement| requirement.str_at(&["key"]) == Some(label::POD_TEMPLATE_HASH))?;
            Some((index, ours.list_at(&["values"]).first().and_then(Value::as_str).unwrap_or_default()))
        })
    }

    /// Whether a live affinity keeps away from a version that is no longer the stable one.
    pub fn is_outdated(self, affinity: Option<&Value>, stable: &str, current: &str) -> bool {
        let hash = self.injected(affinity).map(|(_, hash)| hash);
        stable != current && hash.is_some_and(|hash| !hash.is_empty() && hash != stable)
    }

    /// A live affinity without the term; what only held the term goes too.
    pub fn remove(self, affinity: Option<&Value>) -> Option<Value> {
        let Some((index, _)) = self.injected(affinity) else { return affinity.cloned() };
        let mut affinity = affinity?.clone();
        let anti = affinity.as_map_mut()?.get_mut("podAntiAffinity")?.as_map_mut()?;
        let terms = anti.get_mut(self.list())?.as_list_mut()?;
        terms.remove(index);
        if terms.is_empty() {
            anti.remove(self.list());
        }
        let is_empty = [PREFERRED, REQUIRED]
            .iter()
            .all(|list| anti.get(list).and_then(Value::as_list).is_none_or(<[Value]>::is_empty));
        let map = affinity.as_map_mut()?;
        if is_empty {
            map.remove("podAntiAffinity");
        }
        let is_set = |name: &str| map.get(name).is_some_and(|part| !part.is_null());
        (is_set("podAntiAffinity") || is_set("podAffinity") || is_set("nodeAffinity")).then_some(affinity)
    }
}

/// A live pod template as it was before the term was added.
pub fn without_injected(template: &Value, rule: Option<AntiAffinity>) -> Value {
    let affinity = template.at(&["spec", "affinity"]);
    let Some(rule) = rule.filter(|rule| rule.injected(affinity).is_some()) else { return template.clone() };
    let removed = rule.remove(affinity);
    let mut template = template.clone();
    if let Some(spec) = template.as_map_mut().and_then(|map| map.get_mut("spec")).and_then(Value::as_map_mut) {
        match removed {
            Some(affinity) => spec.insert(intern("affinity"), affinity),
            None => spec.remove("affinity"),
        };
    }
    template
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_comes_out_again() {
        for rule in [AntiAffinity::Preferred(5), AntiAffinity::Required] {
            for affinity in [
                None,
                Some(value!({"nodeAffinity": {}})),
                Some(value!({"podAntiAffinity": {REQUIRED: [{"topologyKey": "z"}]}})),
            ] {
                let injected = rule.inject(affinity.as_ref(), "ns", "old", "new");
                assert!(rule.injected(injected.as_ref()).is_some());
                assert!(rule.is_outdated(injected.as_ref(), "other", "new"));
                assert!(!rule.is_outdated(injected.as_ref(), "old", "new"));
                assert_eq!(rule.remove(injected.as_ref()), affinity);
            }
        }
    }

    #[test]
    fn a_first_version_keeps_away_from_nobody() {
        assert_eq!(AntiAffinity::Required.inject(None, "ns", "", "new"), None);
        assert_eq!(AntiAffinity::Required.inject(None, "ns", "new", "new"), None);
    }

    #[test]
    fn a_term_without_a_selector_is_not_ours() {
        let odd = value!({"podAntiAffinity": {REQUIRED: [{}, 5, {"labelSelector": null}]}});
        assert_eq!(AntiAffinity::Required.injected(Some(&odd)), None);
        assert_eq!(AntiAffinity::Required.remove(Some(&odd)), Some(odd));
    }
}
