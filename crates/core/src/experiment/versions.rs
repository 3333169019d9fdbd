//! A version of an Experiment: its ReplicaSet, its Service, and how far it is.
//!
//! A ReplicaSet is made without pods and gets them once it is there; at the end it keeps them for a while. Never touches
//! an object of the same name that is not the Experiment's.

use jiff::{SignedDuration, Timestamp};

use super::{
    decide::Pass,
    state::{self, Stage},
    view::name,
};
use crate::{
    api::{
        TemplateSpec, TemplateStatus,
        constants::{annotation, label, message, reason},
    },
    kubernetes::{
        clock::rfc3339,
        value::{Text, Value},
    },
    model::{hash, names, refers, replica_set::ReplicaSet},
    value,
};

impl Pass<'_> {
    /// A version has its turn: its objects are made, scaled, taken away; status says how far it is.
    pub(super) fn version(&mut self, template: &TemplateSpec) {
        let view = self.view;
        let known = state::version(&view.experiment.status, &template.name);
        let before = known
            .cloned()
            .unwrap_or_else(|| TemplateStatus { name: template.name.clone(), ..TemplateStatus::default() });
        let mut next = before.clone();
        if !Stage::of(&before.status).is_over() {
            next.message.clear();
        }
        let desired = state::replicas(&view.experiment, template);
        let set = view.sets.get(&template.name);
        match set {
            None => self.make_set(template, &mut next),
            Some(set) => {
                self.service(template, set, desired, &mut next);
                self.scale(template, set, desired, &mut next);
            }
        }
        let info = set.map(ReplicaSet::of).unwrap_or_default();
        (next.replicas, next.updated_replicas) = (info.current, info.current);
        (next.ready_replicas, next.available_replicas) = (info.ready, info.available);
        if counts(&before) != counts(&next) {
            next.last_transition_time = Some(self.now);
        }
        self.judge(template, desired, &mut next);
        self.tell_version(next);
    }

    /// Makes the ReplicaSet of a version. While another object has its name it waits, and not for ever.
    fn make_set(&mut self, template: &TemplateSpec, next: &mut TemplateStatus) {
        let experiment = &self.view.experiment;
        if self.is_ending || Stage::of(&next.status).is_over() {
            return;
        }
        let set = names::experiment_replica_set(&experiment.metadata.name, &template.name);
        if self.view.other_sets.iter().any(|other| *other == set.as_str()) {
            next.message = message::taken_in_experiment("ReplicaSet", &set, &template.name);
            next.last_transition_time.get_or_insert(self.now);
            return;
        }
        next.last_transition_time = Some(self.now);
        let object = self.set_object(&set, template, next.collision_count);
        self.target.sets.insert(Text::from(set.as_str()), object);
    }

    fn set_object(&self, set: &str, template: &TemplateSpec, collisions: Option<i32>) -> Value {
        let metadata = &self.view.experiment.metadata;
        let mut pods = template.template.clone();
        pods.remove_at(&["metadata", "labels", label::POD_TEMPLATE_HASH]);
        let hash = hash::pod_template(&pods, collisions);
        pods.set_at(&["metadata", "labels", label::POD_TEMPLATE_HASH], hash.as_str());
        let mut selector = template.selector.clone().unwrap_or_else(Value::object);
        selector.set_at(&["matchLabels", label::POD_TEMPLATE_HASH], hash.as_str());
        let mut object = value!({
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": self.own_metadata(set, &template.name),
            "spec": {"replicas": 0, "selector": selector},
        });
        object.set_at(&["metadata", "namespace"], metadata.namespace.as_str());
        if let Some(labels) = pods.at(&["metadata", "labels"]) {
            object.set_at(&["metadata", "labels"], labels.clone());
        }
        if template.min_ready_seconds != 0 {
            object.set_at(&["spec", "minReadySeconds"], template.min_ready_seconds);
        }
        object.set_at(&["spec", "template"], pods);
        object
    }

    fn own_metadata(&self, name: &str, template: &str) -> Value {
        let experiment = &self.view.experiment;
        let mut metadata = value!({
            "name": name,
            "namespace": experiment.metadata.namespace.as_str(),
            "ownerReferences": [refers::experiment_owner(experiment)],
        });
        metadata.set_at(&["annotations", annotation::EXPERIMENT_NAME], experiment.metadata.name.as_str());
        metadata.set_at(&["annotations", annotation::EXPERIMENT_TEMPLATE], template);
        metadata
    }

    /// The Service of a version: there while it has pods to lead to, if it asks for one and its pods have ports.
    fn service(&mut self, template: &TemplateSpec, set: &Value, desired: i32, next: &mut TemplateStatus) {
        let own = self.view.services.get(&template.name);
        let Some(asked) = &template.service else { return self.drop_service(own, next) };
        if desired == 0 {
            if ReplicaSet::of(set).available == 0 {
                self.drop_service(own, next);
            }
            return;
        }
        let given = Some(&asked.name).filter(|name| !name.is_empty()).map(String::as_str);
        let wanted = given.map_or_else(|| name(set), Text::from);
        let ports = ports(set);
        let made = match own {
            Some(own) => name(own),
            None if ports.is_empty() => return,
            None if self.view.other_services.contains(&wanted) => {
                let why = format!(
                    "service {wanted} already exists and is not owned by experiment template {}",
                    template.name
                );
                Stage::Error.as_str().clone_into(&mut next.status);
                next.message = format!("Failed to create Service {wanted} for template '{}': {why}", template.name);
                return;
            }
            None => {
                let selector = set.at(&["metadata", "labels"]).cloned().unwrap_or_default();
                let service = value!({
                    "apiVersion": "v1",
                    "kind": "Service",
                    "metadata": self.own_metadata(&wanted, &template.name),
                    "spec": {"selector": selector, "ports": Value::list(ports)},
                });
                self.target.services.insert(wanted.clone(), service);
                wanted
            }
        };
        next.service_name = made.to_string();
        next.pod_template_hash = ReplicaSet::of(set).hash.to_string();
    }

    fn drop_service(&mut self, own: Option<&Value>, next: &mut TemplateStatus) {
        if let Some(own) = own {
            self.target.services.remove(&name(own));
        }
        // It may have gone in a pass that did not live to say so.
        next.service_name.clear();
        next.pod_template_hash.clear();
    }

    /// Gives a ReplicaSet its pods; takes them away when they have stayed for as long as they should.
    fn scale(&mut self, template: &TemplateSpec, set: &Value, desired: i32, next: &mut TemplateStatus) {
        let (info, now) = (ReplicaSet::of(set), self.view.now);
        let path = ["metadata", "annotations", annotation::SCALE_DOWN_DEADLINE];
        let delay = state::scale_down_delay(&self.view.experiment);
        let mut wanted = set.clone();
        let mut left = None;
        if desired == 0 && !delay.is_zero() {
            if info.has_scale_down_deadline() {
                left = info.time_to_scale_down(now).unwrap_or_default();
            } else {
                let deadline = now.saturating_add(delay).unwrap_or(Timestamp::MAX);
                wanted.set_at(&path, rfc3339(deadline));
                left = Some(delay).filter(SignedDuration::is_positive);
            }
        } else if info.has_scale_down_deadline() {
            wanted.remove_at(&path);
        }
        if let Some(left) = left.filter(|_| info.desired != 0) {
            self.wake_at(now.saturating_add(left).unwrap_or(Timestamp::MAX));
        }
        let size = match left {
            Some(_) if info.desired != 0 => state::size(template),
            Some(_) | None => desired,
        };
        if info.desired != size {
            wanted.set_at(&["spec", "replicas"], size);
            next.last_transition_time = Some(self.now);
            let direction = if info.desired < size { "up" } else { "down" };
            let told = message::scaled_in_experiment(direction, &info.name, info.desired, size);
            self.say(reason::SCALING_REPLICA_SET, told);
        }
        self.target.sets.insert(info.name, wanted);
    }

    /// How far a version is. What is over stays so.
    fn judge(&self, template: &TemplateSpec, desired: i32, next: &mut TemplateStatus) {
        if Stage::of(&next.status).is_over() {
            return;
        }
        let (experiment, now) = (&self.view.experiment, self.view.now);
        // One that has run is not late when its pods are to go, however long ago they came.
        let stage = if self.is_ending {
            Stage::Successful
        } else if desired == next.available_replicas {
            if state::is_past(experiment, now) { Stage::Successful } else { Stage::Running }
        } else {
            let seconds = state::deadline_seconds(experiment);
            if now > deadline(next, seconds).unwrap_or(now) {
                next.message = message::template_deadline(&template.name, seconds);
                Stage::Failed
            } else {
                Stage::Progressing
            }
        };
        stage.as_str().clone_into(&mut next.status);
    }
}

/// When a version that does not get on has failed.
pub(super) fn deadline(version: &TemplateStatus, seconds: i32) -> Option<Timestamp> {
    let since: Timestamp = version.last_transition_time?.into();
    Some(since.saturating_add(SignedDuration::from_secs(seconds.into())).unwrap_or(Timestamp::MAX))
}

fn counts(version: &TemplateStatus) -> [i32; 4] {
    [version.replicas, version.updated_replicas, version.ready_replicas, version.available_replicas]
}

/// The ports of a Service: all those that the containers name.
fn ports(set: &Value) -> Vec<Value> {
    let containers = set.list_at(&["spec", "template", "spec", "containers"]).iter();
    let named = containers.flat_map(|container| container.list_at(&["ports"])).map(|port| {
        let number = port.get("containerPort").cloned().unwrap_or_default();
        let mut made = value!({"port": number.clone(), "targetPort": number});
        for key in ["protocol", "name"] {
            if let Some(given) = port.get(key) {
                made.set_at(&[key], given.clone());
            }
        }
        made
    });
    named.collect()
}
