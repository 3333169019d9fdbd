//! Rules of Ingresses: which Services their paths lead to.
//!
//! Never looks at anything but paths of http rules; a path without a Service leads to none.

use super::{Id, Kind, Routes};
use crate::{
    api::Rollout,
    kubernetes::{status::FieldError, value::Value},
    model::references::References,
    value,
};

/// The Service that a path leads to; empty if to none.
pub fn service(path: &Value) -> &str {
    path.str_at(&["backend", "service", "name"]).unwrap_or_default()
}

/// Whether a rule leads to this Service.
pub fn leads_to(ingress: &Value, name: &str) -> bool {
    let rules = ingress.list_at(&["spec", "rules"]).iter();
    let mut paths = rules.flat_map(|rule| rule.list_at(&["http", "paths"]));
    paths.any(|path| path.at(&["backend", "service"]).is_some() && service(path) == name)
}

/// Changes the paths of every rule that has some.
pub fn change_paths(ingress: &mut Value, mut change: impl FnMut(&mut Vec<Value>)) {
    let rules = ingress.as_map_mut().and_then(|ingress| ingress.get_mut("spec"));
    let rules = rules.and_then(|spec| spec.as_map_mut()?.get_mut("rules")).and_then(Value::as_list_mut);
    for rule in rules.into_iter().flatten() {
        let Some(paths) = rule.at(&["http", "paths"]).and_then(Value::as_list) else { continue };
        let mut changed = paths.to_vec();
        change(&mut changed);
        if changed != paths {
            rule.set_at(&["http", "paths"], changed);
        }
    }
}

/// A path for every request, whose backend is an annotation of this name.
pub fn by_annotation(name: &str) -> Value {
    value!({
        "path": "/*",
        "pathType": "ImplementationSpecific",
        "backend": {"service": {"name": name, "port": {"name": "use-annotation"}}},
    })
}

/// Adds the Ingresses of these names that exist, each once.
pub fn refer(ids: &[Id], routes: &Routes, found: &mut References) {
    for ingress in ids.iter().filter_map(|id| routes.get(id)) {
        if !found.ingresses.contains(ingress) {
            found.ingresses.push(ingress.clone());
        }
    }
}

/// What Argo Rollouts says of the first that does not exist, of one Ingress or of several, each with its field.
pub fn missing(
    rollout: &Rollout,
    routes: &Routes,
    fields: [&str; 2],
    one: &String,
    several: &[String],
) -> Option<FieldError> {
    let (field, value, names) = match several {
        [] => (fields[0], Value::from(one.as_str()), std::slice::from_ref(one)),
        names => (fields[1], Value::list(names.iter().map(|name| name.as_str().into())), names),
    };
    let is_missing = |name: &&String| routes.get(&Id::beside(rollout, Kind::Ingress, name)).is_none();
    let name = names.iter().find(is_missing)?;
    let field = format!("spec.strategy.canary.trafficRouting.{field}");
    Some(FieldError::invalid(field, value, Kind::Ingress.not_found(&routes.apis, name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rules_with_paths_are_changed() {
        let path = |name: &str| value!({"backend": {"service": {"name": name}}});
        let mut ingress = value!({"spec": {"rules": [
            {"host": "a"},
            {"host": "b", "http": {"paths": [path("x"), {"backend": {"resource": {"name": "x"}}}]}},
        ]}});
        assert!(leads_to(&ingress, "x") && !leads_to(&ingress, "y") && !leads_to(&ingress, ""));
        let before = ingress.clone();
        change_paths(&mut ingress, |_| {});
        assert_eq!(ingress, before);
        change_paths(&mut ingress, |paths| paths.retain(|path| service(path) == "x"));
        assert_eq!(ingress.list_at(&["spec", "rules"])[1].list_at(&["http", "paths"]), [path("x")]);
        assert_eq!(ingress.list_at(&["spec", "rules"])[0], value!({"host": "a"}));
    }
}
