//! Objects that are served at several versions.

use jiff::Timestamp;

use super::{
    Config, Store,
    request::{Request, Verb},
};
use crate::{kubernetes::value::Value, value};

/// Written at one version and read at the other, through the whole store; the answers are the real server's.
#[test]
fn one_stored_object_is_served_at_both_versions() {
    let mut store = Store::new(Config::new(Timestamp::UNIX_EPOCH, 1));
    let mut ask = |verb, group: &str, version: &str, resource: &str, name: &str, body: Option<Value>| {
        let request = Request {
            verb,
            group: group.into(),
            version: version.into(),
            resource: resource.into(),
            namespace: "default".into(),
            name: name.into(),
            body,
            ..Request::default()
        };
        let mut value = store.apply(request).unwrap().object().unwrap().value.clone();
        value.remove_at(&["metadata"]);
        value
    };

    let target = value!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"});
    let mut sent = value!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h"}, "spec": {"maxReplicas": 3}});
    sent.set_at(&["spec", "scaleTargetRef"], &target);
    let mut v1 = value!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
        "spec": {"maxReplicas": 3, "minReplicas": 1, "targetCPUUtilizationPercentage": 80},
        "status": {"currentReplicas": 0, "desiredReplicas": 0}});
    v1.set_at(&["spec", "scaleTargetRef"], &target);
    let mut v2 = value!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "spec": {"maxReplicas": 3, "minReplicas": 1, "metrics": [{"type": "Resource",
            "resource": {"name": "cpu", "target": {"averageUtilization": 80, "type": "Utilization"}}}]},
        "status": {"currentMetrics": null, "desiredReplicas": 0}});
    v2.set_at(&["spec", "scaleTargetRef"], &target);
    let autoscalers = "horizontalpodautoscalers";
    assert_eq!(ask(Verb::Create, "autoscaling", "v1", autoscalers, "", Some(sent)), v1);
    assert_eq!(ask(Verb::Get, "autoscaling", "v1", autoscalers, "h", None), v1);
    assert_eq!(ask(Verb::Get, "autoscaling", "v2", autoscalers, "h", None), v2);

    let about = serde_json::json!({"kind": "Pod", "name": "p", "namespace": "default"});
    let sent = value!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": about,
        "message": "hello", "reason": "R", "type": "Normal", "source": {"component": "me"}});
    ask(Verb::Create, "", "v1", "events", "", Some(sent));
    assert_eq!(
        ask(Verb::Get, "events.k8s.io", "v1", "events", "e", None),
        value!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "deprecatedFirstTimestamp": null,
            "deprecatedLastTimestamp": null, "deprecatedSource": {"component": "me"}, "eventTime": null,
            "note": "hello", "reason": "R", "regarding": about, "type": "Normal"})
    );
}
