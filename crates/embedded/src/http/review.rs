//! Kinds that are asked and never stored: who may do what (everybody, everything), who am I, is this token good.

use jiff::{SignedDuration, Timestamp};

use crate::{
    kubernetes::{clock::rfc3339, kind::Kind, value::Value},
    value,
};

/// Whether objects of this kind are answered instead of stored.
pub fn is_review(kind: &Kind) -> bool {
    kind.custom().is_none() && matches!(kind.group.as_str(), "authorization.k8s.io" | "authentication.k8s.io")
}

/// Answers a review. `token` is the one that opens this cluster, if it takes one.
pub fn answer(kind: &Kind, mut review: Value, token: Option<&str>) -> Value {
    let status = match kind.kind.as_str() {
        "SelfSubjectRulesReview" => value!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        }),
        "SelfSubjectReview" => value!({"userInfo": user()}),
        "TokenReview" => {
            let given = review.str_at(&["spec", "token"]);
            match token.is_none_or(|token| given == Some(token)) {
                true => value!({"authenticated": true, "user": user()}),
                false => value!({"error": "[invalid bearer token]", "user": {}}),
            }
        }
        _ => value!({"allowed": true}),
    };
    review.set_at(&["kind"], kind.kind.clone());
    review.set_at(&["apiVersion"], kind.api_version());
    if review.get("metadata").is_none() {
        review.set_at(&["metadata"], Value::object());
    }
    review.set_at(&["status"], status);
    review
}

/// The only user there is.
fn user() -> serde_json::Value {
    serde_json::json!({"username": "admin", "groups": ["system:masters", "system:authenticated"]})
}

/// Answers a `TokenRequest` for a service account. The token opens nothing.
pub fn token_request(mut request: Value, namespace: &str, name: &str, now: Timestamp) -> Value {
    let seconds = request.int_at(&["spec", "expirationSeconds"]).unwrap_or(3600).clamp(600, 1 << 32);
    let until = now.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
    request.set_at(&["kind"], "TokenRequest");
    request.set_at(&["apiVersion"], "authentication.k8s.io/v1");
    request.set_at(&["metadata"], value!({"name": name, "namespace": namespace}));
    request.set_at(&["spec", "expirationSeconds"], seconds);
    let token = format!("embedded.{namespace}.{name}");
    request.set_at(&["status"], value!({"token": token, "expirationTimestamp": rfc3339(until).as_str()}));
    request
}

/// The parts of a control plane, all well: the answer to `componentstatuses`.
pub fn components() -> Vec<Value> {
    ["controller-manager", "etcd-0", "scheduler"]
        .map(|name| {
            value!({
                "kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": name},
                "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}],
            })
        })
        .to_vec()
}

/// What cannot be had from pods without processes, in one sentence.
pub fn no_process(subresource: &str) -> &'static str {
    match subresource {
        "log" => "the embedded cluster runs no containers, so there are no logs",
        "exec" => "the embedded cluster runs no containers, so nothing can be executed in one",
        "attach" => "the embedded cluster runs no containers, so there is nothing to attach to",
        "portforward" => "the embedded cluster runs no containers, so no port can be forwarded",
        _ => "the embedded cluster runs no containers, so nothing can be proxied",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes::facts;

    #[test]
    fn everybody_may_do_everything() {
        let kind = facts::kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview").unwrap();
        assert!(is_review(kind));
        let review = value!({"spec": {"resourceAttributes": {"verb": "delete", "resource": "nodes"}}});
        assert_eq!(
            answer(kind, review, Some("secret")),
            value!({
                "kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {},
                "spec": {"resourceAttributes": {"verb": "delete", "resource": "nodes"}},
                "status": {"allowed": true},
            })
        );
    }

    #[test]
    fn only_the_clusters_token_is_good() {
        let kind = facts::kind("authentication.k8s.io", "v1", "TokenReview").unwrap();
        let ask = |token: &str| answer(kind, value!({"spec": {"token": token}}), Some("secret"));
        assert_eq!(ask("secret").at(&["status", "authenticated"]), Some(&Value::Bool(true)));
        assert_eq!(ask("other").at(&["status", "authenticated"]), None);
    }
}
