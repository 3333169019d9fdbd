//! The term that keeps versions apart.

use serde_json::{Value as Json, json};
use tidegate::{
    kubernetes::value::Value,
    model::{go_json, hash, strategy::AntiAffinity},
};

fn printed(affinity: Option<Value>) -> Json {
    let text = affinity.map_or("null".into(), |affinity| go_json::named("Affinity").unwrap().text(&affinity));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn vectors_anti_affinity() {
    super::check("anti-affinity", |input, _| {
        let rollout = Value::from(input["rollout"].clone());
        let live = Some(Value::from(input["liveAffinity"].clone())).filter(|live| !live.is_null());
        let template = rollout.at(&["spec", "template"]).cloned().unwrap_or_default();
        let current = hash::pod_template(&template, rollout.int_at(&["status", "collisionCount"]).map(|n| n as i32));
        let stable = rollout.str_at(&["status", "stableRS"]).unwrap_or_default();
        let namespace = rollout.str_at(&["metadata", "namespace"]).unwrap_or_default();
        let affinity = template.at(&["spec", "affinity"]).filter(|affinity| !affinity.is_null());
        let Some(rule) = AntiAffinity::of(&super::rollouts::rollout(&input["rollout"]).spec.strategy) else {
            return Some(json!({
                "generated": printed(affinity.cloned()), "injectedIndex": -1, "needsUpdate": false, "removed": printed(live),
            }));
        };
        let mut removed = printed(rule.remove(live.as_ref()));
        // Of a preferred term that stood alone, Argo Rollouts leaves the empty `podAntiAffinity` around it behind, and then
        // takes the template for another one. We leave nothing behind.
        let alone = live.as_ref().is_some_and(|live| {
            let terms = |list: &str| live.list_at(&["podAntiAffinity", list]).len();
            terms("preferredDuringSchedulingIgnoredDuringExecution") == 1
                && terms("requiredDuringSchedulingIgnoredDuringExecution") == 0
        });
        let preferred = matches!(rule, AntiAffinity::Preferred(_));
        if alone && preferred && rule.injected(live.as_ref()).is_some() {
            assert!(removed.get("podAntiAffinity").is_none());
            if removed.is_null() {
                removed = json!({});
            }
            removed["podAntiAffinity"] = json!({});
        }
        Some(json!({
            "generated": printed(rule.inject(affinity, namespace, stable, &current)),
            "injectedIndex": rule.injected(live.as_ref()).map_or(-1, |(index, _)| index as i64),
            "needsUpdate": rule.is_outdated(live.as_ref(), stable, &current),
            "removed": removed,
        }))
    });
}
