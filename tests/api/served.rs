//! The definitions at work in an embedded cluster: what they fill in and what they refuse.

use jiff::Timestamp;
use tidegate::{
    embedded::store::{
        Config, Store,
        request::{FieldValidation, Options, PatchType, Request, Verb},
    },
    kubernetes::value::Value,
    value,
};

fn cluster() -> Store {
    let mut store = Store::new(Config::new(Timestamp::UNIX_EPOCH, 1));
    tidegate::sim::install::definitions(&mut store).unwrap();
    store
}

fn request(verb: Verb, group: &str, resource: &str, body: Value) -> Request {
    Request {
        verb,
        group: group.into(),
        version: "v1alpha1".into(),
        resource: resource.into(),
        namespace: "default".into(),
        name: if verb == Verb::Create { "".into() } else { body.str_at(&["metadata", "name"]).unwrap_or("web").into() },
        body: Some(body),
        options: Options { field_validation: FieldValidation::Strict, ..Options::default() },
        ..Request::default()
    }
}

fn source(changes: &[(&[&str], Value)]) -> Value {
    let mut source = value!({"apiVersion": "tidegate.dev/v1alpha1", "kind": "GitSource", "metadata": {"name": "web"},
        "spec": {"url": "https://git.example.org/team/web.git", "serviceAccountName": "deployer"}});
    for (path, value) in changes {
        source.set_at(path, value);
    }
    source
}

#[test]
fn a_git_source_says_little_and_gets_the_rest() {
    let create = request(Verb::Create, "tidegate.dev", "gitsources", source(&[]));
    let stored = cluster().apply(create).unwrap().object().unwrap().value.clone();
    assert_eq!(
        stored.get("spec").unwrap(),
        &value!({
            "url": "https://git.example.org/team/web.git", "serviceAccountName": "deployer", "path": "", "interval": "1m",
            "prune": true, "pruneLimit": "50%", "selfHeal": true, "onAbort": "Hold", "onImmutable": "Fail", "onNewCommit": "Supersede",
        })
    );
}

#[test]
fn a_git_source_that_cannot_be_meant_is_refused() {
    #[track_caller]
    fn check(path: &[&str], value: Value, expected: Option<&str>) {
        let create = request(Verb::Create, "tidegate.dev", "gitsources", source(&[(path, value.clone())]));
        let message = cluster().apply(create).err().map(|status| status.message);
        match expected {
            None => assert_eq!(message, None, "{value}"),
            Some(words) => assert!(message.as_deref().is_some_and(|m| m.contains(words)), "{value}: {message:?}"),
        }
    }
    let (url, path) = (&["spec", "url"][..], &["spec", "path"][..]);
    check(url, value!("ssh://git@git.example.org:2222/team/web"), None);
    check(url, value!("https://git.example.org/~user/a+b/web.git/"), None);
    for bad in [
        "",
        "git.example.org/x",
        "file:///etc",
        "ext::sh -c id",
        "http://git.example.org/x",
        "git://h/x",
        "https://-h/x",
        "ssh://-oProxyCommand=id/x",
        "https://u:p@h/x",
        "https://h/a b",
        "https://h/-x",
        "https://h/%0a",
        "https://h",
    ] {
        check(url, value!(bad), Some("spec.url"));
    }
    check(path, value!("deploy/.well-known/web..v2"), None);
    for bad in ["/etc", "..", "a/../b", "a//b", "./a", "a/.", "a/"] {
        check(path, value!(bad), Some("spec.path"));
    }
    check(&["spec", "ref"], value!({"branch": "main"}), None);
    check(
        &["spec", "ref"],
        value!({"branch": "main", "tag": "v1"}),
        Some("name one of branch, tag, semver and commit"),
    );
    check(&["spec", "ref"], value!({"commit": "abc123"}), Some("spec.ref.commit"));
    check(&["spec", "interval"], value!("1 hour"), Some("spec.interval"));
    check(&["spec", "serviceAccountName"], value!(""), Some("spec.serviceAccountName"));
    check(&["spec", "onAbort"], value!("Explode"), Some("spec.onAbort"));
    check(&["spec", "verify"], value!({"mode": "Commit"}), Some("spec.verify.secretRef: Required value"));
    check(&["spec", "credentials"], value!({}), Some("unknown field \"spec.credentials\""));
}

#[test]
fn a_rollouts_selector_stays_as_it_is() {
    let mut store = cluster();
    let rollout = value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "replicas": 1}});
    store.apply(request(Verb::Create, "argoproj.io", "rollouts", rollout)).unwrap();
    let mut patch = |spec| {
        let mut body = value!({"metadata": {"name": "web"}});
        body.set_at(&["spec"], spec);
        store.apply(request(Verb::Patch(PatchType::Merge), "argoproj.io", "rollouts", body))
    };
    patch(value!({"replicas": 2})).unwrap();
    let refused = patch(value!({"selector": {"matchLabels": {"app": "other"}}})).unwrap_err();
    assert!(refused.message.contains(".spec.selector is immutable"), "{}", refused.message);
}

#[test]
fn free_form_parts_are_kept_and_the_rest_is_known() {
    let mut store = cluster();
    let rollout = value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "web"}, "spec": {
        "template": {"spec": {"containers": [{"name": "web", "resources": {"limits": {"memory": "invalid"}}}],
            "volumes": [{"name": "v", "unheard-of": {"x": 1}}]}},
        "strategy": {"canary": {
            "trafficRouting": {"plugins": {"a/b": {"any": [1, {"thing": null}]}}},
            "steps": [{"plugin": {"name": "p", "config": {"deep": {"er": true}}}}]}}}});
    let create = request(Verb::Create, "argoproj.io", "rollouts", rollout.clone());
    let stored = store.apply(create).unwrap().object().unwrap().value.clone();
    assert_eq!(stored.get("spec"), rollout.get("spec"));
    let mut typo = rollout;
    typo.set_at(&["metadata", "name"], "typo");
    typo.set_at(&["spec", "strategy", "canary", "maxSurges"], 1);
    let refused = store.apply(request(Verb::Create, "argoproj.io", "rollouts", typo)).unwrap_err();
    assert!(refused.message.contains("unknown field \"spec.strategy.canary.maxSurges\""), "{}", refused.message);
}

#[test]
fn the_definitions_fit_into_kubectls_annotation() {
    for definition in tidegate::api::crd::all() {
        let (name, bytes) = (definition.str_at(&["metadata", "name"]).unwrap(), definition.to_json().len());
        assert!(bytes < 200_000, "{name} has {bytes} bytes; kubectl apply refuses to remember more than 262144");
    }
}
