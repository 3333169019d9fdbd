//! Which fields of an object belong to another field manager, without any configuration.
//!
//! An autoscaler owns the size of what it scales; a Rollout owns the hash in the selectors of its Services, the weights
//! in its routes, and the size of the workload it replaces. Where git says something about such a field, what is live
//! counts: it is what is applied, so that an apply never moves it and never gives up a field that would then be removed.
//! On creation git's word counts. Never looks at anything but names and shapes.

use std::collections::{BTreeSet, HashMap};

use super::id::Id;
use crate::{
    api::{
        self, Rollout,
        constants::{self, annotation, label},
    },
    kubernetes::{
        apply::{Operation, Owner, fieldpath::PathElement},
        object::Object,
        value::{Map, Text, Value},
    },
    rollout::services,
    route,
};

/// Who owns what, among the objects of a view.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claims {
    /// What autoscalers scale, and what Rollouts with a `workloadRef` scale down.
    scaled: BTreeSet<Id>,
    /// The Services whose selectors Rollouts set.
    services: BTreeSet<Id>,
    /// The objects in which Rollouts set weights and routes, by group, namespace and name: they name no kinds.
    routers: BTreeSet<(Text, Text)>,
    /// The kinds of which Rollouts may move any object of a namespace, by namespace and kind.
    every: BTreeSet<(Text, Text)>,
    /// The routes that Rollouts make and remove.
    routes: BTreeSet<Text>,
    /// The Services that experiments have brought.
    brought: BTreeSet<Text>,
}

/// Who claims what, object by object: what one says is not read again as long as it is the same.
#[derive(Debug, Default)]
pub struct Claimants {
    wanted: HashMap<Id, (Value, Claims)>,
    live: HashMap<Id, (Value, Claims)>,
}

impl Claimants {
    /// Who owns what: objects that git wants and objects that are there count alike.
    pub fn of<'o>(
        &mut self,
        wanted: impl Iterator<Item = (&'o Id, &'o Value)>,
        live: impl Iterator<Item = (&'o Id, &'o Value)>,
    ) -> Claims {
        let mut claims = Claims::default();
        renew(&mut self.wanted, wanted, &mut claims);
        renew(&mut self.live, live, &mut claims);
        claims
    }
}

fn renew<'o>(
    known: &mut HashMap<Id, (Value, Claims)>,
    objects: impl Iterator<Item = (&'o Id, &'o Value)>,
    all: &mut Claims,
) {
    let mut now = HashMap::new();
    for (id, object) in objects.filter(|(id, _)| claims(id)) {
        let (key, claimed) = match known.remove_entry(id).filter(|(_, (of, _))| of.is(object)) {
            Some((key, (_, claimed))) => (key, claimed),
            None => {
                let mut claimed = Claims::default();
                claimed.claim(id, object);
                (id.clone(), claimed)
            }
        };
        all.add(&claimed);
        now.insert(key, (object.clone(), claimed));
    }
    *known = now;
}

/// Whether objects of this kind own fields of others.
fn claims(id: &Id) -> bool {
    matches!(
        (id.group.as_str(), id.kind.as_str()),
        ("autoscaling", "HorizontalPodAutoscaler")
            | ("keda.sh", "ScaledObject")
            | (constants::GROUP, constants::kind::ROLLOUT)
    )
}

impl Claims {
    /// What objects claim.
    pub fn of<'o>(objects: impl Iterator<Item = &'o Value>) -> Claims {
        let mut claims = Claims::default();
        objects.for_each(|object| claims.claim(&Id::of(object), object));
        claims
    }

    fn claim(&mut self, id: &Id, object: &Value) {
        match (id.group.as_str(), id.kind.as_str()) {
            ("autoscaling", "HorizontalPodAutoscaler") => self.scaler(id, object, ""),
            ("keda.sh", "ScaledObject") => self.scaler(id, object, "Deployment"),
            (constants::GROUP, constants::kind::ROLLOUT) => self.rollout(id, object),
            _ => {}
        }
    }

    fn add(&mut self, other: &Claims) {
        self.scaled.extend(other.scaled.iter().cloned());
        self.services.extend(other.services.iter().cloned());
        self.routers.extend(other.routers.iter().cloned());
        self.every.extend(other.every.iter().cloned());
        self.routes.extend(other.routes.iter().cloned());
        self.brought.extend(other.brought.iter().cloned());
    }

    fn scaler(&mut self, id: &Id, object: &Value, default: &str) {
        let text = |key: &str| object.str_at(&["spec", "scaleTargetRef", key]);
        let kind = text("kind").unwrap_or(default);
        let group = match text("apiVersion") {
            Some(version) => version.split_once('/').map_or("", |(group, _)| group),
            None => "apps",
        };
        self.scaled.insert(Id::new(group, kind, &id.namespace, text("name").unwrap_or_default()));
    }

    fn rollout(&mut self, id: &Id, object: &Value) {
        let brought = object.list_at(&["status", "canary", "weights", "additional"]).iter();
        let brought = brought.filter_map(|other| other.get("serviceName").and_then(Value::as_text)).cloned();
        let brought: Vec<Text> = brought.collect();
        // Only what it names matters; its pods and how it is doing are most of it.
        let mut bare = object.clone();
        for path in [&["status"][..], &["spec", "template"]] {
            if bare.at(path).is_some() {
                bare.remove_at(path);
            }
        }
        let mut rollout: Rollout = api::read(&bare).object;
        rollout.metadata.namespace = id.namespace.to_string();
        for (_, name) in services::named(&rollout) {
            self.services.insert(Id::new("", "Service", &id.namespace, name));
        }
        if let Some(workload) = &rollout.spec.workload_ref {
            let group = workload.api_version.split_once('/').map_or("", |(group, _)| group);
            self.scaled.insert(Id::new(group, &workload.kind, &id.namespace, &workload.name));
        }
        for named in route::named(&rollout) {
            if named.is_every() {
                self.every.insert((named.namespace, named.kind.word().into()));
            } else {
                self.routers.insert((named.namespace, named.name));
            }
        }
        let routing = object.at(&["spec", "strategy", "canary", "trafficRouting"]);
        for route in routing.map(|routing| routing.list_at(&["managedRoutes"])).unwrap_or_default() {
            self.routes.extend(route.get("name").and_then(Value::as_text).cloned());
        }
        if let Some(plugins) = routing.and_then(|routing| routing.get("plugins")) {
            self.named_below(&id.namespace, plugins);
        }
        self.brought.extend(brought);
    }

    /// Takes every name below the settings of a plugin for that of an object it moves: plugins have shapes of their own.
    fn named_below(&mut self, namespace: &Text, value: &Value) {
        match value {
            Value::Map(map) => {
                for (key, value) in map.iter() {
                    if let Some(name) = value.as_text().filter(|_| key == "name" || key.ends_with("Route")) {
                        self.routers.insert((namespace.clone(), name.clone()));
                    }
                    self.named_below(namespace, value);
                }
            }
            Value::List(items) => items.iter().for_each(|item| self.named_below(namespace, item)),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => {}
        }
    }

    /// Whether somebody else sets the size of an object.
    pub fn is_scaled(&self, id: &Id, live: Option<&Object>) -> bool {
        self.scaled.contains(id) || live.is_some_and(scaled_by_a_controller)
    }

    /// Whether a Rollout sets the selector of this Service: one of this view, or any other, which the Service names.
    pub fn is_service(&self, id: &Id, live: Option<&Object>) -> bool {
        let led = |live: &Object| id.is("", "Service") && live.annotation(annotation::MANAGED_BY).is_some();
        self.services.contains(id) || live.is_some_and(led)
    }

    /// Whether a Rollout moves weights in this object.
    pub fn is_router(&self, id: &Id) -> bool {
        let routes = ["networking.k8s.io", "extensions"].contains(&&*id.group)
            || super::stage::Stage::of(&id.group, &id.kind) == super::stage::Stage::Route;
        routes
            && (self.routers.contains(&(id.namespace.clone(), id.name.clone()))
                || self.every.contains(&(id.namespace.clone(), id.kind.clone())))
    }

    /// What is applied where git wants `desired`: what is somebody else's is as it is live.
    pub fn settle(&self, id: &Id, desired: &Value, live: Option<&Object>) -> Value {
        let mut wanted = desired.clone();
        for note in MANAGED {
            wanted.remove_at(&["metadata", "annotations", note]);
        }
        if self.is_scaled(id, live)
            && let Some(live) = live
        {
            match live.value.at(&["spec", "replicas"]).filter(|_| owns(live, &["spec", "replicas"])) {
                // Given up, it would be removed, and the default is one.
                Some(replicas) => wanted.set_at(&["spec", "replicas"], replicas),
                None => drop(wanted.remove_at(&["spec", "replicas"])),
            }
        }
        if self.is_service(id, live) {
            wanted.remove_at(&["spec", "selector", label::POD_TEMPLATE_HASH]);
            let path = ["spec", "selector", label::POD_TEMPLATE_HASH];
            if let Some(hash) = live.and_then(|live| live.value.at(&path))
                && wanted.at(&["spec", "selector"]).is_some()
            {
                // A selector is owned as a whole: without the hash it would be taken back.
                wanted.set_at(&path, hash);
            }
        }
        if self.is_router(id)
            && let Some(live) = live
        {
            wanted = self.routed(&wanted, &live.value);
        }
        wanted
    }

    /// A router's object with the weights, hashes and made routes that are live.
    fn routed(&self, wanted: &Value, live: &Value) -> Value {
        let mut own = live.clone();
        let rules = live.list_at(&["spec", "rules"]);
        let is_made = |rule: &&Value| rule.str_at(&["name"]).is_some_and(|name| self.is_made(name));
        if rules.iter().any(|rule| is_made(&rule)) {
            own.set_at(&["spec", "rules"], Value::list(rules.iter().filter(|rule| !is_made(rule)).cloned()));
        }
        let mut routed = kept(wanted, &own);
        for (list, destinations) in [("rules", "backendRefs"), ("http", "route")] {
            self.keep_brought(&mut routed, &own, list, destinations);
        }
        if rules.iter().any(|rule| is_made(&rule)) && !routed.list_at(&["spec", "rules"]).is_empty() {
            // Each stays where it is among the others: which of two equal rules wins depends on that.
            let mut left = routed.list_at(&["spec", "rules"]).to_vec().into_iter();
            let mut all: Vec<Value> = Vec::new();
            for rule in rules {
                if is_made(&rule) { all.push(rule.clone()) } else { all.extend(left.next()) }
            }
            all.extend(left);
            routed.set_at(&["spec", "rules"], all);
        }
        for stanza in ["http", "tls", "tcp"] {
            let (wanted, live) = (routed.list_at(&["spec", stanza]), live.list_at(&["spec", stanza]));
            let made =
                |route: &&Value| route.get("name").and_then(Value::as_text).is_some_and(|n| self.routes.contains(n));
            if wanted.is_empty() || !live.iter().any(|route| made(&route)) {
                continue;
            }
            // They stand before everything else, or they would never match.
            let own = wanted.iter().filter(|route| !made(route));
            let all: Vec<Value> = live.iter().filter(made).chain(own).cloned().collect();
            routed.set_at(&["spec", stanza], all);
        }
        let notes = live.at(&["metadata", "annotations"]).and_then(Value::as_map);
        for (key, note) in notes.into_iter().flat_map(Map::iter).filter(|(key, _)| is_action(key)) {
            if routed.at(&["metadata", "annotations", key]).is_some() {
                routed.set_at(&["metadata", "annotations", key], note);
            }
        }
        routed
    }
}

impl Claims {
    /// Whether a rule bears the name of a route that a Rollout makes, or that of a numbered copy.
    fn is_made(&self, name: &str) -> bool {
        let base = name.rsplit_once('-').filter(|(_, number)| number.bytes().all(|b| b.is_ascii_digit()));
        let is_known = |name: &str| self.routes.iter().any(|known| known == name);
        is_known(name) || base.is_some_and(|(base, _)| is_known(base))
    }

    /// Keeps what leads to the Services of experiments.
    fn keep_brought(&self, routed: &mut Value, live: &Value, list: &str, destinations: &str) {
        let rules = live.list_at(&["spec", list]);
        if self.brought.is_empty() || rules.is_empty() || routed.list_at(&["spec", list]).len() != rules.len() {
            return;
        }
        let service = |to: &Value| to.str_at(&["name"]).or_else(|| to.str_at(&["destination", "host"])).map(Text::from);
        let mut all = routed.list_at(&["spec", list]).to_vec();
        for (rule, live) in all.iter_mut().zip(rules) {
            let own = rule.list_at(&[destinations]).to_vec();
            let is_missing = |to: &&Value| {
                let service = service(to);
                service
                    .is_some_and(|name| self.brought.contains(&name) && !own.iter().any(|to| self::service(to, &name)))
            };
            let more: Vec<Value> = live.list_at(&[destinations]).iter().filter(is_missing).cloned().collect();
            if !more.is_empty() {
                rule.set_at(&[destinations], Value::list(own.iter().cloned().chain(more)));
            }
        }
        routed.set_at(&["spec", list], all);
    }
}

/// Whether a destination leads to this Service.
fn service(to: &Value, name: &str) -> bool {
    to.str_at(&["name"]).or_else(|| to.str_at(&["destination", "host"])) == Some(name)
}

/// Annotations that only engines write.
const MANAGED: [&str; 6] = [
    annotation::REVISION,
    annotation::REVISION_HISTORY,
    annotation::MANAGED_BY,
    annotation::MANAGED_ALB_ANNOTATIONS,
    annotation::MANAGED_ALB_ACTIONS,
    "deployment.kubernetes.io/revision",
];

/// Whether an annotation of an Ingress is how the AWS controller is told of weights.
fn is_action(key: &str) -> bool {
    key.starts_with("alb.ingress.kubernetes.io/actions.")
}

/// What is wanted, with every weight and every hash label as it is live. Items of lists belong together that are alike but
/// for those.
fn kept(wanted: &Value, live: &Value) -> Value {
    match (wanted, live) {
        (Value::Map(map), Value::Map(other)) => {
            let mut out = Map::default();
            for (key, value) in map.iter().filter(|(key, _)| !is_moved(key)) {
                out.insert(key.clone(), other.get(key).map_or_else(|| value.clone(), |live| kept(value, live)));
            }
            // Only where git routes at all: a weight that is live belongs to a destination that git names.
            for (key, value) in other.iter().filter(|(key, _)| is_moved(key)) {
                out.insert(key.clone(), value.clone());
            }
            Value::Map(out)
        }
        (Value::List(items), Value::List(others)) => {
            if items.len() == others.len()
                && items.iter().zip(others.iter()).all(|(item, live)| !items_clash(item, live))
            {
                // Nothing was put in or taken out.
                return Value::list(items.iter().zip(others.iter()).map(|(item, live)| kept(item, live)));
            }
            let mut left: Vec<&Value> = others.iter().collect();
            let pairs = items.iter().map(|item| {
                let at = left.iter().position(|live| bare(item) == bare(live));
                let at = at.or_else(|| left.iter().position(|live| same_name(item, live)));
                at.map_or_else(|| item.clone(), |at| kept(item, left.remove(at)))
            });
            Value::list(pairs)
        }
        _ => wanted.clone(),
    }
}

fn is_moved(key: &str) -> bool {
    key == "weight" || key == label::POD_TEMPLATE_HASH
}

/// Whether two items bear different names, and so are not the same.
fn items_clash(a: &Value, b: &Value) -> bool {
    let names = |item: &Value| ["name", "host"].map(|key| item.str_at(&[key]).map(str::to_owned));
    let host = |item: &Value| item.str_at(&["destination", "host"]).map(str::to_owned);
    names(a) != names(b) || host(a) != host(b)
}

fn same_name(a: &Value, b: &Value) -> bool {
    ["name", "host"].iter().any(|key| a.str_at(&[key]).is_some_and(|name| b.str_at(&[key]) == Some(name)))
}

/// A value without what Rollouts move in it.
fn bare(value: &Value) -> Value {
    match value {
        Value::Map(map) => Value::Map(
            map.iter().filter(|(key, _)| !is_moved(key)).map(|(key, value)| (key.clone(), bare(value))).collect(),
        ),
        Value::List(items) => Value::list(items.iter().map(bare)),
        other => other.clone(),
    }
}

/// Whether a controller has set an object's size through its scale.
fn scaled_by_a_controller(live: &Object) -> bool {
    let path = ["spec", "replicas"].map(PathElement::field);
    live.managers
        .owners()
        .iter()
        .any(|owner| owner.subresource == "scale" && !owner.manager.starts_with("kubectl") && owner.fields.has(&path))
}

/// Whether our last apply owns a field.
pub fn owns(live: &Object, path: &[&str]) -> bool {
    let path: Vec<PathElement> = path.iter().map(|name| PathElement::field(name)).collect();
    live.managers.owners().iter().any(|owner| {
        owner.manager == constants::FIELD_MANAGER && owner.operation == Operation::Apply && owner.fields.has(&path)
    })
}

/// Who changed one of these fields last, as managedFields say; nothing if that is not known or it was git. A field that
/// somebody removed is nobody's: then it is who changed anything last.
pub fn last_writer(object: &Object, fields: &[String]) -> Option<Text> {
    let is_other = |owner: &&Owner| owner.subresource.is_empty() && owner.manager != constants::FIELD_MANAGER;
    let has_one = |owner: &&Owner| {
        let mut found = false;
        owner.fields.each(&mut |path| {
            let path: String = path.iter().map(ToString::to_string).collect();
            found |= fields.iter().any(|field| path.starts_with(field.as_str()) || field.starts_with(&path));
        });
        found
    };
    let others = || object.managers.owners().iter().filter(is_other);
    let newest = others().filter(has_one).max_by_key(|owner| owner.time);
    newest.or_else(|| others().max_by_key(|owner| owner.time)).map(|owner| owner.manager.clone())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{kubernetes::apply::Managers, value};

    fn live(value: Value, managers: Value) -> Object {
        Object { value, managers: Arc::new(Managers::parse(&managers).unwrap()) }
    }

    fn entry(manager: &str, operation: &str, subresource: &str, fields: Value) -> Value {
        value!({"manager": manager, "operation": operation, "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
            "subresource": subresource, "fieldsV1": serde_json::Value::from(&fields)})
    }

    fn replicas() -> Value {
        value!({"f:spec": {"f:replicas": {}}})
    }

    #[test]
    fn s63_the_size_of_what_is_scaled_stays_as_it_is() {
        let autoscaler = value!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"namespace": "shop", "name": "web"},
            "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}});
        let claims = Claims::of([&autoscaler].into_iter());
        let id = Id::new("apps", "Deployment", "shop", "web");
        let wanted = value!({"spec": {"replicas": 2, "paused": false}});
        let there = value!({"spec": {"replicas": 7}});
        assert_eq!(claims.settle(&id, &wanted, None), wanted, "on creation git's word counts");
        let ours = live(there.clone(), Value::list([entry("tidegate", "Apply", "", replicas())]));
        assert_eq!(claims.settle(&id, &wanted, Some(&ours)).int_at(&["spec", "replicas"]), Some(7), "not given up");
        let theirs =
            live(there.clone(), Value::list([entry("kube-controller-manager", "Update", "scale", replicas())]));
        assert_eq!(claims.settle(&id, &wanted, Some(&theirs)), value!({"spec": {"paused": false}}));
        // Without an autoscaler in sight, what a controller did through the scale counts, and what a person did does not.
        let none = Claims::default();
        assert_eq!(none.settle(&id, &wanted, Some(&theirs)), value!({"spec": {"paused": false}}));
        let person = live(there, Value::list([entry("kubectl", "Update", "scale", replicas())]));
        assert_eq!(none.settle(&id, &wanted, Some(&person)), wanted);
    }

    fn rollout(routing: Value) -> Value {
        value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"namespace": "shop", "name": "web"},
            "spec": {"workloadRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "old"},
                "strategy": {"canary": {"stableService": "web", "canaryService": "web-canary",
                    "trafficRouting": serde_json::Value::from(&routing)}}}})
    }

    #[test]
    fn s63_the_hash_of_a_service_and_the_size_of_a_replaced_workload_stay() {
        let claims = Claims::of([&rollout(Value::Null)].into_iter());
        let id = Id::new("", "Service", "shop", "web");
        let wanted = value!({"metadata": {"annotations": {"argo-rollouts.argoproj.io/managed-by-rollouts": "x", "a": "b"}},
            "spec": {"selector": {"app": "web", "rollouts-pod-template-hash": "old"}}});
        let there =
            live(value!({"spec": {"selector": {"app": "web", "rollouts-pod-template-hash": "abc"}}}), Value::Null);
        let settled = claims.settle(&id, &wanted, Some(&there));
        assert_eq!(
            settled,
            value!({"metadata": {"annotations": {"a": "b"}},
            "spec": {"selector": {"app": "web", "rollouts-pod-template-hash": "abc"}}})
        );
        assert_eq!(claims.settle(&id, &wanted, None).at(&["spec", "selector"]), Some(&value!({"app": "web"})));
        let other = Id::new("", "Service", "shop", "other");
        let both = claims.settle(&other, &wanted, Some(&there));
        assert_eq!(both.at(&["spec", "selector", "rollouts-pod-template-hash"]), Some(&Value::from("old")), "not ours");
        // The Rollout that leads it may come from another source, or from nowhere.
        let mut led = there.value.clone();
        led.set_at(&["metadata", "annotations", "argo-rollouts.argoproj.io/managed-by-rollouts"], "else");
        let settled = claims.settle(&other, &wanted, Some(&live(led, Value::Null)));
        assert_eq!(settled.at(&["spec", "selector"]), there.value.at(&["spec", "selector"]));
        let workload = Id::new("apps", "Deployment", "shop", "old");
        assert!(claims.is_scaled(&workload, None));
    }

    #[test]
    fn s63_weights_and_made_routes_stay_and_everything_else_is_gits() {
        let claims = Claims::of(
            [&rollout(value!({"managedRoutes": [{"name": "by-header"}],
                "istio": {"virtualService": {"name": "web-routes"}, "destinationRule": {"name": "web-rule"}}}))]
            .into_iter(),
        );
        let id = Id::new("networking.istio.io", "VirtualService", "shop", "web-routes");
        let route = |stable: i32, canary: i32, timeout: &str| {
            value!({"name": "primary", "timeout": timeout, "route": [
                {"destination": {"host": "web"}, "weight": stable},
                {"destination": {"host": "web-canary"}, "weight": canary}]})
        };
        let made = value!({"name": "by-header", "match": [], "route": [{"destination": {"host": "web-canary"}, "weight": 100}]});
        let mut there = value!({"spec": {}});
        there.set_at(&["spec", "http"], vec![made.clone(), route(80, 20, "1s")]);
        let mut wanted = value!({"spec": {}});
        wanted.set_at(&["spec", "http"], vec![route(100, 0, "5s")]);
        let settled = claims.settle(&id, &wanted, Some(&live(there, Value::Null)));
        assert_eq!(settled.list_at(&["spec", "http"]), [made, route(80, 20, "5s")]);
        let rule = Id::new("networking.istio.io", "DestinationRule", "shop", "web-rule");
        let subset = |hash: Option<&str>| {
            let mut labels = value!({"app": "web"});
            if let Some(hash) = hash {
                labels.set_at(&["rollouts-pod-template-hash"], hash);
            }
            value!({"spec": {"subsets": [{"name": "canary", "labels": serde_json::Value::from(&labels)}]}})
        };
        let settled = claims.settle(&rule, &subset(None), Some(&live(subset(Some("abc")), Value::Null)));
        assert_eq!(settled, subset(Some("abc")));
        let stranger = Id::new("networking.istio.io", "VirtualService", "shop", "others");
        assert!(!claims.is_router(&stranger));
    }

    #[test]
    fn s63_names_in_the_settings_of_plugins_are_routers_too() {
        let plugins = value!({"plugins": {"argoproj-labs/gatewayAPI": {"httpRoutes": [{"name": "web-route"}]}}});
        let claims = Claims::of([&rollout(plugins)].into_iter());
        let id = Id::new("gateway.networking.k8s.io", "HTTPRoute", "shop", "web-route");
        let rules = |weight: i32, port: i32| value!({"spec": {"rules": [{"backendRefs": [{"name": "web", "port": port, "weight": weight}]}]}});
        let settled = claims.settle(&id, &rules(100, 80), Some(&live(rules(30, 8080), Value::Null)));
        assert_eq!(settled, rules(30, 80));
    }

    #[test]
    fn the_writer_of_the_disputed_field_is_named_and_not_whoever_wrote_last() {
        let at = |manager: &str, time: &str, fields: Value| {
            let mut entry = entry(manager, "Update", "", fields);
            entry.set_at(&["time"], time);
            entry
        };
        let object = live(
            value!({}),
            Value::list([
                at("scaler", "2026-01-01T00:00:01Z", value!({"f:data": {"f:k": {}}})),
                at("labeller", "2026-01-01T00:00:09Z", value!({"f:metadata": {"f:labels": {"f:a": {}}}})),
                at("tidegate", "2026-01-01T00:00:10Z", value!({"f:data": {"f:k": {}}})),
            ]),
        );
        assert_eq!(last_writer(&object, &[".data.k".to_owned()]).as_deref(), Some("scaler"));
        assert_eq!(last_writer(&object, &[".metadata.labels.a".to_owned()]).as_deref(), Some("labeller"));
        // A field that somebody removed.
        assert_eq!(last_writer(&object, &[".data.gone".to_owned()]).as_deref(), Some("labeller"));
    }

    #[test]
    fn s63_rules_that_steps_made_and_what_experiments_brought_stay_where_they_are() {
        let mut rollout = rollout(value!({"managedRoutes": [{"name": "h"}], "gatewayAPI": {"httpRoute": "web-route"}}));
        let brought = value!([{"serviceName": "web-e", "weight": 5}]);
        rollout.set_at(&["status", "canary", "weights", "additional"], brought);
        let claims = Claims::of([&rollout].into_iter());
        let id = Id::new("gateway.networking.k8s.io", "HTTPRoute", "shop", "web-route");
        let to = |name: &str, weight: i32| value!({"name": name, "weight": weight});
        let rule = |path: &str, backends: Vec<Value>| value!({"matches": [{"path": {"value": path}}], "backendRefs": Value::list(backends)});
        let made = |name: &str| value!({"name": name, "backendRefs": [{"name": "web-canary"}]});
        let route = |rules: Vec<Value>| value!({"spec": {"rules": Value::list(rules)}});
        let git = route(vec![
            rule("/a", vec![to("web", 100), to("web-canary", 0)]),
            rule("/b", vec![to("web", 100), to("web-canary", 0)]),
        ]);
        let there = route(vec![
            made("h"),
            rule("/a", vec![to("web", 75), to("web-canary", 20), to("web-e", 5)]),
            rule("/b", vec![to("web", 75), to("web-canary", 20), to("web-e", 5)]),
            made("h-1"),
        ]);
        assert_eq!(claims.settle(&id, &git, Some(&live(there.clone(), Value::Null))), there);
    }
}
