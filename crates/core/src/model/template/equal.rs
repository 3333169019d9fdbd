//! Whether a live pod template is what a desired one becomes when the API server takes it in.
//!
//! The desired template gets the server's defaults; the live one is taken as it is. Empty and absent lists and maps are
//! the same, quantities are compared by amount, and two things do not count: the label with the hash, and
//! `serviceAccount`, which the server fills in beside `serviceAccountName`.

use crate::{
    api::constants::label,
    kubernetes::{
        builtin, facts,
        value::{Map, Text, Value},
    },
    model::go_json,
};

/// A desired pod template with the API server's defaults, to be compared with live ones.
///
/// Making it costs tens of microseconds, comparing with it a few: keep it beside the object it was made from.
#[derive(Debug, Clone)]
pub struct Prepared {
    template: Value,
    /// The account under its deprecated name, if it has no other: a server adds the new name.
    account: Text,
    /// The same as servers before Kubernetes 1.35 fill it, which leave the pull policy of an image volume open; only if
    /// there is such a volume.
    before: Option<Value>,
}

impl Prepared {
    /// Decodes a template as Argo Rollouts does and fills in the defaults.
    pub fn of(template: &Value) -> Prepared {
        let mut decoded = go_json::pod_template().decode_whole(template).value;
        let volumes = decoded.list_at(&["spec", "volumes"]).to_vec();
        let account = decoded.remove_at(&["spec", "serviceAccount"]).and_then(|account| account.as_text().cloned());
        let mut object = Value::object();
        object.set_at(&["template"], decoded);
        if let Some(kind) = facts::kind("", "v1", "PodTemplate") {
            builtin::default(kind, &mut object);
        }
        let template = object.remove_at(&["template"]).unwrap_or_default();
        Prepared { before: without_image_policies(&template, &volumes), account: account.unwrap_or_default(), template }
    }

    /// Whether a live template is this one.
    pub fn equals(&self, live: &Value) -> bool {
        let same = |ours: &Value| same(ours, live) && self.is_account(live);
        same(&self.template) || self.before.as_ref().is_some_and(same)
    }

    /// Whether the pods run as the account that was asked for, under whichever name.
    fn is_account(&self, live: &Value) -> bool {
        let name = |template: &Value| {
            template.at(&["spec", "serviceAccountName"]).and_then(Value::as_text).cloned().unwrap_or_default()
        };
        let (ours, theirs) = (name(&self.template), name(live));
        ours == theirs || ours.is_empty() && theirs == self.account
    }

    /// The template with its defaults.
    pub fn value(&self) -> &Value {
        &self.template
    }
}

fn same(ours: &Value, live: &Value) -> bool {
    if ours.is(live) {
        return true;
    }
    let (metadata, spec) = go_json::parts_of_pod_template();
    let part = |name: &str| (ours.get(name).unwrap_or(&Value::Null), live.get(name).unwrap_or(&Value::Null));
    let ((our_metadata, metadata_there), (our_spec, spec_there)) = (part("metadata"), part("spec"));
    spec.same_but(our_spec, spec_there, &["serviceAccount", "serviceAccountName"])
        && metadata.same_but(our_metadata, metadata_there, &["labels"])
        && same_labels(our_metadata.get("labels"), metadata_there.get("labels"))
}

/// The template without the pull policies that were not asked for; `None` if there are none.
fn without_image_policies(template: &Value, asked: &[Value]) -> Option<Value> {
    let is_open = |volume: &Value| {
        let policy = volume.str_at(&["image", "pullPolicy"]).unwrap_or_default();
        volume.get("image").is_some() && policy.is_empty()
    };
    if !asked.iter().any(is_open) {
        return None;
    }
    let mut template = template.clone();
    let volumes = template.list_at(&["spec", "volumes"]).iter().zip(asked).map(|(volume, asked)| {
        let mut volume = volume.clone();
        if is_open(asked) {
            volume.remove_at(&["image", "pullPolicy"]);
        }
        volume
    });
    let volumes = Value::list(volumes);
    template.set_at(&["spec", "volumes"], volumes);
    Some(template)
}

/// Whether the labels are the same but for the hash.
fn same_labels(ours: Option<&Value>, theirs: Option<&Value>) -> bool {
    counted(ours).eq(counted(theirs))
}

/// The labels that count.
fn counted(labels: Option<&Value>) -> impl Iterator<Item = (&str, &str)> {
    let labels = labels.and_then(Value::as_map).into_iter().flat_map(Map::iter);
    labels
        .filter(|(key, _)| key.as_str() != label::POD_TEMPLATE_HASH)
        .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    fn live() -> Value {
        value!({"metadata": {"labels": {"app": "x", "rollouts-pod-template-hash": "h"}}, "spec": {
            "containers": [{
                "name": "c", "image": "nginx:1", "imagePullPolicy": "IfNotPresent", "resources": {},
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            }],
            "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
            "securityContext": {}, "serviceAccount": "robot", "serviceAccountName": "robot",
            "terminationGracePeriodSeconds": 30,
        }})
    }

    fn desired() -> Value {
        value!({"metadata": {"labels": {"app": "x"}}, "spec": {
            "containers": [{"name": "c", "image": "nginx:1"}], "serviceAccountName": "robot"}})
    }

    #[test]
    fn what_the_server_fills_in_makes_no_difference() {
        assert!(Prepared::of(&desired()).equals(&live()));
    }

    #[test]
    fn what_a_person_changed_does() {
        for (path, value) in [
            (&["metadata", "labels", "app"][..], value!("y")),
            (&["metadata", "labels", "more"], value!("y")),
            (&["metadata", "annotations"], value!({"a": "b"})),
            (&["spec", "hostname"], value!("h")),
            (&["spec", "serviceAccountName"], value!("other")),
        ] {
            let mut other = desired();
            other.set_at(path, value);
            assert!(!Prepared::of(&other).equals(&live()), "{path:?}");
        }
    }

    #[test]
    fn an_account_may_be_asked_for_under_its_old_name() {
        let mut wanted = desired();
        wanted.remove_at(&["spec", "serviceAccountName"]);
        assert!(!Prepared::of(&wanted).equals(&live()));
        wanted.set_at(&["spec", "serviceAccount"], "robot");
        assert!(Prepared::of(&wanted).equals(&live()));
        wanted.set_at(&["spec", "serviceAccount"], "other");
        assert!(!Prepared::of(&wanted).equals(&live()));
    }

    #[test]
    fn a_server_may_or_may_not_fill_the_policy_of_an_image_volume() {
        let mut wanted = desired();
        wanted.set_at(&["spec", "volumes"], value!([{"name": "v", "image": {"reference": "x:latest"}}]));
        let mut there = live();
        there.set_at(&["spec", "volumes"], value!([{"name": "v", "image": {"reference": "x:latest"}}]));
        assert!(Prepared::of(&wanted).equals(&there));
        there.set_at(
            &["spec", "volumes"],
            value!([{"name": "v", "image": {"reference": "x:latest", "pullPolicy": "Always"}}]),
        );
        assert!(Prepared::of(&wanted).equals(&there));
        there.set_at(
            &["spec", "volumes"],
            value!([{"name": "v", "image": {"reference": "x:latest", "pullPolicy": "Never"}}]),
        );
        assert!(!Prepared::of(&wanted).equals(&there));
    }

    /// The rows are random objects, and what the real server's code made of them.
    #[test]
    fn what_the_real_server_filled_in_is_recognised() {
        let mut compared = 0;
        for row in include_str!("../../../../kubernetes/src/builtin/testdata/default.jsonl").lines() {
            let row = Value::from_json(row.as_bytes()).unwrap();
            for path in [&["spec", "template"][..], &["template"], &["spec", "jobTemplate", "spec", "template"]] {
                let part = |name: &str| row.get(name).and_then(|object| object.at(path));
                let (Some(sent), Some(kept)) = (part("object"), part("answer")) else { continue };
                if kept.get("spec").is_some() {
                    assert!(Prepared::of(sent).equals(kept), "{sent}\n{kept}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 10);
    }

    #[test]
    fn a_template_is_itself_once_it_has_its_defaults() {
        for template in [Value::Null, value!({}), desired(), live(), value!({"spec": {"containers": 5}})] {
            let prepared = Prepared::of(&template);
            assert!(prepared.equals(prepared.value()), "{template}");
            let copy = Value::from_json(prepared.value().to_json().as_bytes()).unwrap();
            assert!(prepared.equals(&copy), "{template}");
            assert!(Prepared::of(&copy).equals(&copy), "{template}: defaults are filled once");
        }
    }
}
