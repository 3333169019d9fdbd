//! What a route says about itself: whether its gateways have taken over what it asks for.
//!
//! No condition says that proxies have the new weights already; that the controller has accepted this generation is the most
//! that can be known.

use crate::{
    kubernetes::value::Value,
    route::{Accepted, Kind},
};

/// What the gateways of a route say of its newest generation. One that nobody has said anything about is not waited for: a
/// controller that writes no status must not stop updates.
pub fn accepted(kind: Kind, route: &Value) -> Accepted {
    let named = |key: &str| route.str_at(&["metadata", key]).unwrap_or_default();
    let name = format!("{} {}", kind.word(), named("name"));
    let asked = route.list_at(&["spec", "parentRefs"]);
    let parents = route.list_at(&["status", "parents"]).iter();
    let is_asked = |parent: &&Value| {
        let reference = parent.get("parentRef").cloned().unwrap_or_default();
        asked.iter().any(|asked| are_same(asked, &reference, named("namespace")))
    };
    let parents: Vec<&Value> = parents.filter(is_asked).collect();
    if parents.is_empty() {
        return Accepted::NotAsked;
    }
    let generation = route.int_at(&["metadata", "generation"]).unwrap_or_default();
    let said: Vec<Option<&Value>> = parents.iter().map(|parent| condition(parent, "Accepted")).collect();
    let is_late = |condition: &&Value| condition.int_at(&["observedGeneration"]).is_some_and(|seen| seen < generation);
    if said.iter().flatten().any(is_late) {
        return Accepted::NotYet(format!("{name}: a gateway has not seen its newest version yet"));
    }
    if !said.iter().flatten().any(|condition| condition.str_at(&["status"]) == Some("True")) {
        let why = said.into_iter().flatten().next().map_or_else(|| "no condition Accepted".to_owned(), explained);
        return Accepted::NotYet(format!("{name}: no gateway has accepted it: {why}"));
    }
    // They may be about backends of others.
    let warning = parents.iter().find_map(|parent| {
        let unresolved = condition(parent, "ResolvedRefs").filter(|refs| refs.str_at(&["status"]) == Some("False"));
        let partial = condition(parent, "PartiallyInvalid").filter(|part| part.str_at(&["status"]) == Some("True"));
        let why = unresolved.or(partial).map(explained)?;
        let remedy = match unresolved.and_then(|refs| refs.str_at(&["reason"])) {
            Some("RefNotPermitted") => "; a ReferenceGrant in the namespace of the Services must allow it",
            Some(_) | None => "",
        };
        Some(format!("{name}: {why}{remedy}"))
    });
    Accepted::Yes(warning)
}

fn condition<'v>(parent: &'v Value, kind: &str) -> Option<&'v Value> {
    parent.list_at(&["conditions"]).iter().find(|condition| condition.str_at(&["type"]) == Some(kind))
}

fn explained(condition: &Value) -> String {
    let text = |key: &str| condition.str_at(&[key]).unwrap_or_default();
    let what = format!("{} is {} ({})", text("type"), text("status"), text("reason"));
    if text("message").is_empty() { what } else { format!("{what}: {}", text("message")) }
}

/// Whether two references are to the same parent; what is not said has its default.
fn are_same(a: &Value, b: &Value, namespace: &str) -> bool {
    let text = |reference: &Value, key: &str, default: &str| reference.str_at(&[key]).unwrap_or(default).to_owned();
    let of = |reference: &Value| {
        (
            text(reference, "group", "gateway.networking.k8s.io"),
            text(reference, "kind", "Gateway"),
            text(reference, "namespace", namespace),
            text(reference, "name", ""),
            text(reference, "sectionName", ""),
            reference.int_at(&["port"]),
        )
    };
    of(a) == of(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn a_route_is_accepted_once_a_gateway_has_seen_its_newest_version() {
        let condition = |kind: &str, status: &str, seen: i64| value!({"type": kind, "status": status, "observedGeneration": seen, "reason": "R", "message": "m"});
        let parent = |gateway: &str, conditions: Vec<Value>| value!({"parentRef": {"name": gateway, "namespace": "shop"}, "conditions": Value::list(conditions)});
        let (yes, no) = (|seen| condition("Accepted", "True", seen), |seen| condition("Accepted", "False", seen));
        for (parents, expected) in [
            (vec![], Accepted::NotAsked),
            (vec![parent("other", vec![yes(3)])], Accepted::NotAsked),
            (vec![parent("gw", vec![yes(3)])], Accepted::Yes(None)),
            (vec![parent("gw", vec![yes(3)]), parent("gw", vec![no(3)])], Accepted::Yes(None)),
            (
                vec![parent("gw", vec![yes(2)])],
                Accepted::NotYet("HTTPRoute r: a gateway has not seen its newest version yet".into()),
            ),
            (
                vec![parent("gw", vec![no(3)])],
                Accepted::NotYet("HTTPRoute r: no gateway has accepted it: Accepted is False (R): m".into()),
            ),
            (
                vec![parent("gw", vec![])],
                Accepted::NotYet("HTTPRoute r: no gateway has accepted it: no condition Accepted".into()),
            ),
            (
                vec![parent("gw", vec![yes(3), condition("ResolvedRefs", "False", 3)])],
                Accepted::Yes(Some("HTTPRoute r: ResolvedRefs is False (R): m".into())),
            ),
        ] {
            let route = value!({"metadata": {"name": "r", "namespace": "shop", "generation": 3},
                "spec": {"parentRefs": [{"name": "gw"}]}, "status": {"parents": Value::list(parents)}});
            assert_eq!(accepted(Kind::HttpRoute, &route), expected, "{route}");
        }
    }

    #[test]
    fn a_reference_that_is_not_permitted_is_told_with_its_remedy() {
        let conditions = value!([{"type": "Accepted", "status": "True"},
            {"type": "ResolvedRefs", "status": "False", "reason": "RefNotPermitted"}]);
        let route = value!({"metadata": {"name": "r", "namespace": "edge"}, "spec": {"parentRefs": [{"name": "gw"}]},
            "status": {"parents": [{"parentRef": {"name": "gw"}, "conditions": conditions}]}});
        let Accepted::Yes(Some(warning)) = accepted(Kind::HttpRoute, &route) else { panic!("no warning") };
        assert_eq!(
            warning,
            "HTTPRoute r: ResolvedRefs is False (RefNotPermitted); a ReferenceGrant in the namespace of the Services \
             must allow it"
        );
    }
}
