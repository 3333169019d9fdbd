//! What a controller can do: read the store cheaply, and write to it through ordinary API requests in its own name.
//!
//! Nothing here decides anything. Every write goes through [`Store::apply`], so that versions, generations, managed fields
//! and watch events look as they do when the real controllers write.

use std::sync::Arc;

use arcstr::literal;
use jiff::Timestamp;

use super::{
    ask,
    event::{Record, Recorder, Source},
    index::Index,
    replicaset::controller_reference,
};
use crate::kubernetes::{
    object::Object,
    selector::Labels,
    status::{Status, qualified},
    value::{Text, Value},
};
use crate::store::{
    ObjectRef, Store,
    request::{Answer, Options, PatchType, Request, Verb},
};

/// A resource by the names a request needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: Text,
    /// The version requests are made at.
    pub version: Text,
    /// The plural.
    pub plural: Text,
    /// The kind.
    pub kind: Text,
}

macro_rules! resources {
    ($($(#[$doc:meta])* $name:ident = $group:literal $version:literal $plural:literal $kind:literal;)*) => {
        $($(#[$doc])* pub static $name: Resource = Resource {
            group: literal!($group), version: literal!($version), plural: literal!($plural), kind: literal!($kind),
        };)*
    };
}
resources! {
    /// Pods.
    PODS = "" "v1" "pods" "Pod";
    /// Nodes.
    NODES = "" "v1" "nodes" "Node";
    /// Services.
    SERVICES = "" "v1" "services" "Service";
    /// Events.
    EVENTS = "" "v1" "events" "Event";
    /// Namespaces.
    NAMESPACES = "" "v1" "namespaces" "Namespace";
    /// ReplicaSets.
    REPLICA_SETS = "apps" "v1" "replicasets" "ReplicaSet";
    /// Deployments.
    DEPLOYMENTS = "apps" "v1" "deployments" "Deployment";
    /// Jobs.
    JOBS = "batch" "v1" "jobs" "Job";
    /// EndpointSlices.
    ENDPOINT_SLICES = "discovery.k8s.io" "v1" "endpointslices" "EndpointSlice";
    /// PodDisruptionBudgets.
    BUDGETS = "policy" "v1" "poddisruptionbudgets" "PodDisruptionBudget";
    /// ResourceQuotas.
    QUOTAS = "" "v1" "resourcequotas" "ResourceQuota";
    /// HorizontalPodAutoscalers.
    AUTOSCALERS = "autoscaling" "v2" "horizontalpodautoscalers" "HorizontalPodAutoscaler";
}

/// An object's namespace and name; the namespace is empty for cluster-scoped objects.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The namespace.
    pub namespace: Text,
    /// The name.
    pub name: Text,
}

impl Key {
    /// The key of an object.
    pub fn of(object: &Object) -> Key {
        Key { namespace: object.namespace(), name: object.name() }
    }
}

/// Who a write is made as: the client's name, which becomes the field manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agent {
    /// Every controller but the kubelet and the scheduler.
    ControllerManager,
    /// The fake kubelet.
    Kubelet,
    /// The fake scheduler.
    Scheduler,
    /// The server itself, where it does more than answer.
    Server,
}

impl Agent {
    fn name(self) -> Text {
        match self {
            Agent::ControllerManager => literal!("kube-controller-manager"),
            Agent::Kubelet => literal!("kubelet"),
            Agent::Scheduler => literal!("kube-scheduler"),
            Agent::Server => literal!("kube-apiserver"),
        }
    }
}

/// The store as one controller sees it.
pub struct Hands<'a> {
    /// The store.
    pub store: &'a mut Store,
    /// What is known about pods beyond the store's own indexes.
    pub index: &'a Index,
    /// Where events are counted and combined.
    pub recorder: &'a mut Recorder,
    /// Who writes.
    pub agent: Agent,
}

impl Hands<'_> {
    /// The time.
    pub fn now(&self) -> Timestamp {
        self.store.now()
    }

    /// An object by key.
    pub fn get(&self, resource: &Resource, key: &Key) -> Option<Arc<Object>> {
        self.store.get(&resource.group, &resource.plural, &key.namespace, &key.name).cloned()
    }

    /// The objects of a namespace, or of all.
    pub fn list(&self, resource: &Resource, namespace: &str) -> impl Iterator<Item = &Arc<Object>> {
        self.store.list(&resource.group, &resource.plural, namespace)
    }

    /// The objects of one resource that `owner` controls.
    pub fn owned(&self, resource: &Resource, owner: &Object) -> Vec<Arc<Object>> {
        self.owned_by_uid(resource, &owner.uid())
    }

    /// The objects of one resource whose controller has this uid.
    pub fn owned_by_uid(&self, resource: &Resource, uid: &str) -> Vec<Arc<Object>> {
        let is = |object: &&ObjectRef| object.plural == resource.plural && object.group == resource.group;
        let objects = self
            .store
            .owned_by(uid)
            .filter(is)
            .filter_map(|object| self.store.get(&object.group, &object.plural, &object.namespace, &object.name));
        objects.filter(|object| ask::controller_uid(&object.value).is_some_and(|owner| owner == uid)).cloned().collect()
    }

    /// The pods of a namespace that nobody controls.
    pub fn orphan_pods(&self, namespace: &str) -> Vec<Arc<Object>> {
        let orphans = self.index.orphans(namespace);
        orphans.filter_map(|name| self.store.get("", "pods", namespace, name)).cloned().collect()
    }

    /// The pods of a namespace with these labels.
    pub fn matching_pods(&self, namespace: &str, selector: &Labels) -> Vec<Arc<Object>> {
        self.list(&PODS, namespace).filter(|pod| selector.matches(pod.labels())).cloned().collect()
    }

    /// The resource behind an `apiVersion` and `kind`, as an owner or scale reference names it.
    pub fn resource_of(&self, api_version: &str, kind: &str) -> Option<Resource> {
        let (_, served) = self.store.registry().find_kind(api_version, kind)?;
        Some(Resource {
            group: served.group.clone(),
            version: served.version.clone(),
            plural: served.plural.clone(),
            kind: served.kind.clone(),
        })
    }

    /// The scale of an object of any kind: `None` if there is no such object, in words if its kind has no scale.
    pub fn scale(&mut self, api_version: &str, kind: &str, key: &Key) -> Result<Option<Value>, String> {
        let Some(resource) = self.resource_of(api_version, kind) else {
            return Err(format!("no matches for kind \"{kind}\" in version \"{api_version}\""));
        };
        let mut request = self.request(Verb::Get, &resource, key.namespace.clone(), key.name.clone(), None);
        request.subresource = literal!("scale");
        let scalable = self.store.registry().find_kind(api_version, kind);
        if scalable.is_some_and(|(_, served)| served.subresource("scale").is_none()) {
            let resource = qualified(&resource.group, &resource.plural);
            return Err(format!("{resource} does not implement the scale subresource"));
        }
        match self.store.apply(request) {
            Ok(response) => match response.answer {
                Answer::Value(scale) => Ok(Some(scale)),
                Answer::Object(_, object) => Ok(Some(object.value.clone())),
                Answer::List(..) => Ok(None),
            },
            Err(refused) if refused.code == 404 => Ok(None),
            Err(refused) => Err(refused.message),
        }
    }

    fn request(&self, verb: Verb, resource: &Resource, namespace: Text, name: Text, body: Option<Value>) -> Request {
        Request {
            verb,
            group: resource.group.clone(),
            version: resource.version.clone(),
            resource: resource.plural.clone(),
            namespace,
            name,
            body,
            agent: self.agent.name(),
            ..Request::default()
        }
    }

    fn send(&mut self, request: Request) -> Result<Option<Arc<Object>>, Status> {
        self.store.apply(request).map(|response| response.object().cloned())
    }

    /// Creates an object.
    pub fn create(&mut self, resource: &Resource, namespace: &Text, body: Value) -> Result<Arc<Object>, Status> {
        let request = self.request(Verb::Create, resource, namespace.clone(), Text::new(), Some(body));
        self.send(request)?.ok_or_else(|| Status::internal("a creation answered without an object"))
    }

    /// Replaces an object, unless somebody changed it since it was read.
    pub fn update(&mut self, resource: &Resource, new: Value) -> Result<Arc<Object>, Status> {
        let text = |field| new.at(&["metadata", field]).and_then(Value::as_text).cloned().unwrap_or_default();
        let (namespace, name) = (text("namespace"), text("name"));
        let request = self.request(Verb::Update, resource, namespace, name, Some(new));
        self.send(request)?.ok_or_else(|| Status::internal("an update answered without an object"))
    }

    /// Replaces an object's status, unless somebody changed the object since it was read.
    pub fn update_status(&mut self, resource: &Resource, old: &Object, status: Value) -> Result<Arc<Object>, Status> {
        let mut new = old.value.clone();
        new.set_at(&["status"], status);
        self.update_through_status(resource, new)
    }

    /// Replaces an object through its status subresource: what that keeps stays, annotations among the rest may change.
    pub fn update_through_status(&mut self, resource: &Resource, new: Value) -> Result<Arc<Object>, Status> {
        let text = |field| new.at(&["metadata", field]).and_then(Value::as_text).cloned().unwrap_or_default();
        let (namespace, name) = (text("namespace"), text("name"));
        let mut request = self.request(Verb::Update, resource, namespace, name, Some(new));
        request.subresource = literal!("status");
        self.send(request)?.ok_or_else(|| Status::internal("an update answered without an object"))
    }

    /// Patches an object or one of its subresources.
    pub fn patch(
        &mut self,
        kind: PatchType,
        resource: &Resource,
        key: &Key,
        subresource: &str,
        patch: Value,
    ) -> Result<Option<Arc<Object>>, Status> {
        let mut request =
            self.request(Verb::Patch(kind), resource, key.namespace.clone(), key.name.clone(), Some(patch));
        request.subresource = subresource.into();
        self.send(request)
    }

    /// Patches an object's status by strategic merge.
    pub fn patch_status(&mut self, resource: &Resource, key: &Key, status: Value) -> Result<(), Status> {
        let mut patch = Value::object();
        patch.set_at(&["status"], status);
        self.patch(PatchType::Strategic, resource, key, "status", patch).map(drop)
    }

    /// Sends a body to a subresource: a Binding, an Eviction.
    pub fn post(&mut self, resource: &Resource, key: &Key, subresource: &str, body: Value) -> Result<(), Status> {
        let mut request = self.request(Verb::Create, resource, key.namespace.clone(), key.name.clone(), Some(body));
        request.subresource = subresource.into();
        self.send(request).map(drop)
    }

    /// Replaces a subresource: a Scale.
    pub fn put(&mut self, resource: &Resource, key: &Key, subresource: &str, body: Value) -> Result<(), Status> {
        let mut request = self.request(Verb::Update, resource, key.namespace.clone(), key.name.clone(), Some(body));
        request.subresource = subresource.into();
        self.send(request).map(drop)
    }

    /// Deletes this very object (not another of the same name), in the default way.
    pub fn delete(&mut self, resource: &Resource, object: &Object) -> Result<(), Status> {
        self.delete_with(resource, object, Options::default())
    }

    /// Deletes this very object with these options.
    pub fn delete_with(&mut self, resource: &Resource, object: &Object, options: Options) -> Result<(), Status> {
        let body = map! {
            "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": map! {"uid": object.uid()},
        };
        let mut request = self.request(Verb::Delete, resource, object.namespace(), object.name(), Some(body));
        request.options = options;
        self.send(request).map(drop)
    }

    /// Makes `owner` the controller of an orphan, and puts finalizers on it.
    pub fn adopt(
        &mut self,
        resource: &Resource,
        owner: &Object,
        orphan: &Object,
        finalizers: &[&str],
    ) -> Result<(), Status> {
        let mut patch = Value::object();
        patch.set_at(&["metadata", "uid"], orphan.uid());
        patch.set_at(&["metadata", "ownerReferences"], Value::list([controller_reference(owner)]));
        if !finalizers.is_empty() {
            patch.set_at(&["metadata", "finalizers"], Value::list(finalizers.iter().map(|f| Value::from(*f))));
        }
        self.patch(PatchType::Strategic, resource, &Key::of(orphan), "", patch).map(drop)
    }

    /// Takes `owner` off the owner references of an object, and these finalizers with it.
    pub fn release(
        &mut self,
        resource: &Resource,
        owner: &Object,
        object: &Object,
        finalizers: &[&str],
    ) -> Result<(), Status> {
        let mut patch = Value::object();
        patch.set_at(&["metadata", "uid"], object.uid());
        let gone = map! {"$patch": "delete", "uid": owner.uid()};
        patch.set_at(&["metadata", "ownerReferences"], Value::list([gone]));
        if !finalizers.is_empty() {
            let list = Value::list(finalizers.iter().map(|f| Value::from(*f)));
            patch.set_at(&["metadata", "$deleteFromPrimitiveList/finalizers"], list);
        }
        self.patch(PatchType::Strategic, resource, &Key::of(object), "", patch).map(drop)
    }

    /// Records an event about an object.
    pub fn event(&mut self, component: &str, about: &Object, kind: &str, reason: &str, message: impl Into<String>) {
        self.report(Source { component, host: "", field_path: "" }, about, kind, reason, message);
    }

    /// Records an event from a source of its own. One that cannot be written is lost, as upstream loses it.
    pub fn report(&mut self, source: Source, about: &Object, kind: &str, reason: &str, message: impl Into<String>) {
        let record = self.recorder.record(source, about, kind, reason, &message.into(), self.store.now());
        let namespace = match about.namespace() {
            none if none.is_empty() => literal!("default"),
            namespace => namespace,
        };
        match record {
            Record::Dropped => {}
            Record::New(event) => drop(self.create(&EVENTS, &namespace, event)),
            Record::Again { name, patch, whole } => {
                let key = Key { namespace: namespace.clone(), name };
                if self.patch(PatchType::Strategic, &EVENTS, &key, "", patch).is_err_and(|refused| refused.code == 404)
                {
                    let _ = self.create(&EVENTS, &namespace, whole);
                }
            }
        }
    }
}
