//! Our own kinds in an embedded cluster.

use crate::{
    api::crd,
    embedded::store::{
        Store,
        request::{Options, PatchType, Request, Verb},
    },
    kubernetes::{status::Status, value::intern},
};

/// Installs the definitions of our kinds, or brings those of an older version up to date.
pub fn definitions(store: &mut Store) -> Result<(), Status> {
    for definition in crd::all() {
        let name = definition.str_at(&["metadata", "name"]).map(intern).unwrap_or_default();
        store.apply(Request {
            verb: Verb::Patch(PatchType::Apply),
            group: "apiextensions.k8s.io".into(),
            version: "v1".into(),
            resource: "customresourcedefinitions".into(),
            name,
            body: Some(definition),
            options: Options { field_manager: Some("tidegate".into()), force: Some(true), ..Options::default() },
            agent: "tidegate".into(),
            ..Request::default()
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::{
        embedded::store::{Config, request::FieldValidation},
        value,
    };

    #[test]
    fn a_rollout_can_be_created_and_a_second_installation_changes_nothing() {
        let mut store = Store::new(Config::new(Timestamp::UNIX_EPOCH, 1));
        definitions(&mut store).unwrap();
        let version = store.version();
        definitions(&mut store).unwrap();
        assert_eq!(store.version(), version);
        let create = |body| Request {
            verb: Verb::Create,
            group: "argoproj.io".into(),
            version: "v1alpha1".into(),
            resource: "rollouts".into(),
            namespace: "default".into(),
            body: Some(body),
            options: Options { field_validation: FieldValidation::Strict, ..Options::default() },
            ..Request::default()
        };
        let rollout = |container| {
            value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "web"}, "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
                "strategy": {"canary": {"steps": [{"setWeight": 20}, {"pause": {"duration": "1h"}}]}}}})
        };
        let bad = store.apply(create(rollout(value!({"image": "web:1", "ports": [{"containerPort": "eighty"}]}))));
        let message = bad.unwrap_err().message;
        assert!(message.contains("spec.template.spec.containers[0].name: Required value"), "{message}");
        assert!(message.contains("must be of type integer: \"string\""), "{message}");
        let good = value!({"name": "web", "image": "web:1", "ports": [{"containerPort": 80}]});
        let stored = store.apply(create(rollout(good))).unwrap().object().unwrap().value.clone();
        let port = &stored.list_at(&["spec", "template", "spec", "containers"])[0].list_at(&["ports"])[0];
        assert_eq!(port.get("protocol"), Some(&value!("TCP")));
    }
}
