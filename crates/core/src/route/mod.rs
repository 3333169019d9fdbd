//! Telling routers where the traffic goes: a lens on the objects of each.
//!
//! A leaf per router reads a [`Route`] off its objects and makes a [`Move`] on them. Two laws hold for every leaf: reading
//! after writing gives what was written, and every byte that is not ours stays as it is. Never asks a cluster, never decides
//! how much goes where, and says what is in the way instead of failing.

mod alb;
mod ingress;
mod istio;
mod nested;
mod nginx;
mod smi;
mod traefik;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::{Deserialize, Serialize};

use crate::{
    api::{
        CanaryStrategy, Rollout, RolloutTrafficRouting, SetHeaderRoute, SetMirrorRoute, WeightDestination,
        constants::ping_pong::PING,
    },
    kubernetes::{
        status::FieldError,
        value::{Text, Value},
    },
    model::refers,
};

/// A kind of object that a router reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// An Ingress.
    Ingress,
    /// A TrafficSplit of the Service Mesh Interface.
    TrafficSplit,
    /// A TraefikService.
    TraefikService,
    /// A VirtualService of Istio.
    VirtualService,
    /// A DestinationRule of Istio.
    DestinationRule,
}

impl Kind {
    /// Its API group.
    pub fn group(self) -> &'static str {
        match self {
            Kind::Ingress => "networking.k8s.io",
            Kind::TrafficSplit => "split.smi-spec.io",
            Kind::TraefikService => "traefik.io",
            Kind::VirtualService | Kind::DestinationRule => "networking.istio.io",
        }
    }

    /// The version that is read and written.
    pub fn version(self, apis: &Apis) -> &'static str {
        match self {
            Kind::Ingress => "v1",
            Kind::TrafficSplit => apis.smi.as_str(),
            Kind::TraefikService => "v1alpha1",
            Kind::VirtualService | Kind::DestinationRule => "v1alpha3",
        }
    }

    /// Its name in paths.
    pub fn plural(self) -> &'static str {
        match self {
            Kind::Ingress => "ingresses",
            Kind::TrafficSplit => "trafficsplits",
            Kind::TraefikService => "traefikservices",
            Kind::VirtualService => "virtualservices",
            Kind::DestinationRule => "destinationrules",
        }
    }

    /// Its name in manifests.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Ingress => "Ingress",
            Kind::TrafficSplit => "TrafficSplit",
            Kind::TraefikService => "TraefikService",
            Kind::VirtualService => "VirtualService",
            Kind::DestinationRule => "DestinationRule",
        }
    }

    /// The field of a Rollout that speaks of it.
    fn router(self) -> &'static str {
        match self {
            Kind::Ingress => "nginx",
            Kind::TrafficSplit => "smi",
            Kind::TraefikService => "traefik",
            Kind::VirtualService | Kind::DestinationRule => "istio",
        }
    }

    /// What Argo Rollouts calls one that does not exist.
    pub fn not_found(self, name: &str) -> String {
        match self {
            // Read through a cache, which calls it by one.
            Kind::Ingress => format!("ingress.networking.k8s.io \"{name}\" not found"),
            Kind::TrafficSplit | Kind::TraefikService | Kind::VirtualService | Kind::DestinationRule => {
                format!("{}.{} \"{name}\" not found", self.plural(), self.group())
            }
        }
    }
}

/// The versions of routers' APIs that are spoken; those of Argo Rollouts if nothing else is said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Apis {
    /// Of TrafficSplits.
    pub smi: SmiVersion,
}

/// A version of TrafficSplits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SmiVersion {
    /// Weights are quantities.
    #[default]
    V1Alpha1,
    /// Weights are numbers.
    V1Alpha2,
    /// The same, with more of what is not ours.
    V1Alpha3,
}

impl SmiVersion {
    /// As paths spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            SmiVersion::V1Alpha1 => "v1alpha1",
            SmiVersion::V1Alpha2 => "v1alpha2",
            SmiVersion::V1Alpha3 => "v1alpha3",
        }
    }
}

/// Which object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Id {
    /// Of which kind.
    pub kind: Kind,
    /// Its namespace.
    pub namespace: Text,
    /// Its name.
    pub name: Text,
}

impl Id {
    fn beside(rollout: &Rollout, kind: Kind, name: &str) -> Id {
        Id { kind, namespace: rollout.metadata.namespace.as_str().into(), name: name.into() }
    }
}

/// An object of a router, as it was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Routed {
    /// Of which kind; items of a list do not say so themselves.
    pub kind: Kind,
    /// The whole of it.
    pub object: Value,
}

impl Routed {
    fn id(&self) -> Id {
        let text = |key: &str| self.object.at(&["metadata", key]).and_then(Value::as_text).cloned().unwrap_or_default();
        Id { kind: self.kind, namespace: text("namespace"), name: text("name") }
    }
}

/// What the load balancer says about the weights that status records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verification {
    /// Nobody asks.
    #[default]
    NotAsked,
    /// It does as it was told.
    Agrees,
    /// It does not, or not yet.
    Differs,
}

/// The objects of a Rollout's routers, and in which order they were changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Routes {
    #[serde(serialize_with = "listed")]
    objects: BTreeMap<Id, Value>,
    #[serde(skip)]
    order: Vec<Id>,
    #[serde(skip)]
    apis: Apis,
    #[serde(skip)]
    unserved: Vec<Kind>,
    #[serde(skip)]
    scope: RouteScope,
}

/// Where the objects may be that a Rollout routes with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RouteScope {
    /// In the namespace of the Rollout: whoever writes it need not be allowed to change the routes of others.
    #[default]
    Namespace,
    /// In any namespace, as with Argo Rollouts.
    Cluster,
}

impl RouteScope {
    /// Whether it is what it is if the operator says nothing.
    pub fn is_usual(&self) -> bool {
        *self == RouteScope::default()
    }
}

/// Keys of an object are texts; ours are not.
fn listed<S: serde::Serializer>(objects: &BTreeMap<Id, Value>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(objects)
}

impl Routes {
    /// These objects, none of them changed.
    pub fn of(objects: impl IntoIterator<Item = (Id, Value)>) -> Routes {
        Routes { objects: objects.into_iter().collect(), ..Routes::default() }
    }

    /// The same, of these versions.
    pub fn speaking(self, apis: Apis) -> Routes {
        Routes { apis, ..self }
    }

    /// The same, where the server does not know these kinds.
    pub fn without(self, unserved: &[Kind]) -> Routes {
        Routes { unserved: unserved.to_vec(), ..self }
    }

    /// The same without what a Rollout of this namespace may not reach: it can neither be read nor written.
    pub fn within(mut self, namespace: &str, scope: RouteScope) -> Routes {
        if scope == RouteScope::Namespace {
            self.objects.retain(|id, _| id.namespace == *namespace);
        }
        Routes { scope, ..self }
    }

    /// Those that were seen.
    pub fn seen(objects: &[Routed]) -> Routes {
        Routes::of(objects.iter().map(|routed| (routed.id(), routed.object.clone())))
    }

    /// One object.
    pub fn get(&self, id: &Id) -> Option<&Value> {
        self.objects.get(id)
    }

    /// All objects.
    pub fn iter(&self) -> impl Iterator<Item = (&Id, &Value)> {
        self.objects.iter()
    }

    /// What was changed, in the order in which it is to be written.
    pub fn changed(&self) -> &[Id] {
        &self.order
    }

    /// An object as it should be.
    pub fn put(&mut self, id: Id, object: Value) {
        if !self.order.contains(&id) {
            self.order.push(id.clone());
        }
        self.objects.insert(id, object);
    }
}

/// A router that can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaf {
    /// Istio.
    Istio,
    /// The nginx ingress controller.
    Nginx,
    /// The AWS load balancer controller.
    Alb,
    /// The Service Mesh Interface.
    Smi,
    /// Traefik.
    Traefik,
}

/// The routers of a Rollout in the order in which they are told, or the name of the first that cannot be.
pub fn leaves(routing: &RolloutTrafficRouting) -> Result<Vec<Leaf>, &str> {
    let known = [
        ("Istio", routing.istio.is_some(), Some(Leaf::Istio)),
        ("Nginx", routing.nginx.is_some(), Some(Leaf::Nginx)),
        ("ALB", routing.alb.is_some(), Some(Leaf::Alb)),
        ("SMI", routing.smi.is_some(), Some(Leaf::Smi)),
        ("Ambassador", routing.ambassador.is_some(), None),
        ("AppMesh", routing.app_mesh.is_some(), None),
        ("Traefik", routing.traefik.is_some(), Some(Leaf::Traefik)),
        ("Apisix", routing.apisix.is_some(), None),
    ];
    let plugins = routing.plugins.keys().map(|name| (name.as_str(), true, None));
    let wanted = known.into_iter().chain(plugins).filter(|(_, is_wanted, _)| *is_wanted);
    wanted.map(|(name, _, leaf)| leaf.ok_or(name)).collect()
}

/// The objects that a Rollout's routers read and write, whether they exist or not.
pub fn named(rollout: &Rollout) -> Vec<Id> {
    let ingresses = refers::ingresses(rollout).into_iter();
    let mut named: Vec<Id> = ingresses.map(|key| Id::beside(rollout, Kind::Ingress, &key.name)).collect();
    if let Some((canary, routing)) = routing(rollout)
        && let Some(istio) = &routing.istio
    {
        named.extend(istio::Writer { rollout, canary, routing, istio }.ids());
    }
    if let Some((canary, RolloutTrafficRouting { smi: Some(smi), .. })) = routing(rollout) {
        named.push(smi::Writer { rollout, canary, smi }.id());
    }
    if let Some((canary, RolloutTrafficRouting { traefik: Some(traefik), .. })) = routing(rollout) {
        named.push(traefik::Writer { rollout, canary, traefik }.id());
    }
    named
}

/// The objects that this Rollout's routers made before it was orphaned, and that nobody controls since.
pub fn orphans(rollout: &Rollout, routes: &Routes) -> Vec<Id> {
    let Some((canary, routing)) = routing(rollout) else { return Vec::new() };
    let nginx = routing.nginx.as_ref().map(|nginx| nginx::Writer { rollout, canary, routing, nginx }.orphans(routes));
    let smi = routing.smi.as_ref().and_then(|smi| smi::Writer { rollout, canary, smi }.orphan(routes));
    nginx.into_iter().flatten().chain(smi).collect()
}

/// What is wrong with the objects that must exist: the first that is missing, in the words of Argo Rollouts.
pub fn missing(rollout: &Rollout, routes: &Routes) -> Option<FieldError> {
    missing_ingress(rollout, routes)
        .or_else(|| missing_virtual_service(rollout, routes))
        .or_else(|| missing_definition(rollout, routes))
}

/// A kind that the server does not know, because its definition is not installed.
fn missing_definition(rollout: &Rollout, routes: &Routes) -> Option<FieldError> {
    let id = named(rollout).into_iter().find(|id| routes.unserved.contains(&id.kind))?;
    let (router, kind) = (id.kind.router(), id.kind);
    let what = format!(
        "the server does not know {}.{}/{}: its CustomResourceDefinition is not installed",
        kind.plural(),
        kind.group(),
        kind.version(&routes.apis)
    );
    Some(FieldError::invalid(format!("spec.strategy.canary.trafficRouting.{router}"), id.name.as_str(), what))
}

fn missing_virtual_service(rollout: &Rollout, routes: &Routes) -> Option<FieldError> {
    let (canary, routing) = routing(rollout)?;
    let istio = routing.istio.as_ref()?;
    let named = istio::Writer { rollout, canary, routing, istio }.ids();
    let Id { name, namespace, .. } =
        named.iter().find(|id| id.kind == Kind::VirtualService && routes.get(id).is_none())?;
    let field = if istio.virtual_services.is_empty() { "virtualService" } else { "virtualServices" };
    let field = format!("spec.strategy.canary.trafficRouting.istio.{field}.name");
    if routes.scope == RouteScope::Namespace && *namespace != rollout.metadata.namespace.as_str() {
        let what = format!(
            "the VirtualService is in the namespace {namespace}, and a Rollout routes within its own; \
             move it, or have the operator start Tidegate with `--allow-cross-namespace-routes`"
        );
        return Some(FieldError::invalid(field, format!("{name}.{namespace}"), what));
    }
    Some(FieldError::invalid(field, name.as_str(), Kind::VirtualService.not_found(name)))
}

fn missing_ingress(rollout: &Rollout, routes: &Routes) -> Option<FieldError> {
    let (_, routing) = routing(rollout)?;
    // Argo Rollouts looks at one of the two.
    let (field, one, several) = match (&routing.alb, &routing.nginx) {
        (Some(alb), _) => (["alb.ingress", "alb.ingresses"], &alb.ingress, &alb.ingresses),
        (None, Some(nginx)) => {
            (["nginx.stableIngress", "nginx.StableIngresses"], &nginx.stable_ingress, &nginx.stable_ingresses)
        }
        (None, None) => return None,
    };
    let (field, value, names) = match several.as_slice() {
        [] => (field[0], Value::from(one.as_str()), std::slice::from_ref(one)),
        names => (field[1], Value::list(names.iter().map(|name| name.as_str().into())), names),
    };
    let is_missing = |name: &&String| routes.get(&Id::beside(rollout, Kind::Ingress, name)).is_none();
    let name = names.iter().find(is_missing)?;
    let field = format!("spec.strategy.canary.trafficRouting.{field}");
    Some(FieldError::invalid(field, value, Kind::Ingress.not_found(name)))
}

/// Something to tell a router.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Move<'m> {
    /// Which versions stand behind the destinations.
    Hashes {
        /// Behind the canary's.
        canary: &'m str,
        /// Behind the stable one's.
        stable: &'m str,
        /// Behind those of an experiment.
        additional: &'m [WeightDestination],
    },
    /// How much goes where; the stable destination gets the rest.
    Weights {
        /// To the canary.
        canary: i32,
        /// To an experiment's destinations.
        additional: &'m [WeightDestination],
    },
    /// Requests with a header that go to the canary; without a match, no longer.
    Header(&'m SetHeaderRoute),
    /// Requests that are copied to the canary; without a match, no longer.
    Mirror(&'m SetMirrorRoute),
    /// No routes of steps any more.
    Clear,
}

/// Where a router sends the traffic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Route {
    /// How much to the canary.
    pub canary: i64,
    /// How much to the stable version.
    pub stable: i64,
    /// How much to an experiment's Services.
    pub additional: Vec<(String, i64)>,
    /// The routes that steps have made.
    pub managed: BTreeSet<String>,
}

/// What was told to a router, as an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Whether it is bad news.
    pub warning: bool,
    /// Its reason, one of the constants.
    pub reason: &'static str,
    /// The sentence.
    pub message: String,
}

/// Why a router cannot be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// An object does not exist.
    Missing(Kind, String),
    /// The Ingress that the canary's is made from does not exist.
    MissingStable(String),
    /// The canary's Ingress is somebody else's.
    NotOurs(String),
    /// The TrafficSplit is somebody else's.
    SplitNotOurs(String),
    /// The TraefikService has no weighted services.
    NoWeightedServices,
    /// One of its services cannot be read.
    NoService,
    /// One of its services has no name.
    NamelessService,
    /// It has no service for this role.
    NoTraefikService(&'static str),
    /// A field has a value of the wrong type.
    WrongType(String),
    /// The routes of a VirtualService are not as they must be.
    Routes(String),
    /// A VirtualService has no http routes.
    NoHttp,
    /// One of its routes cannot be read.
    NoRoute,
    /// A problem, and where it was met.
    Within(String, Box<Problem>),
    /// No rule of the Ingress leads to the Service.
    NoBackend {
        /// The Ingress.
        ingress: String,
        /// The Service.
        service: String,
    },
    /// No rule leads to the Service whose action is written.
    NoRule(String),
    /// Clients cannot stay with a version for so long, or so short.
    Stickiness,
    /// What is noted on an Ingress about its managed annotations cannot be read.
    Unreadable {
        /// The Ingress.
        ingress: String,
        /// What is wrong with it.
        why: String,
    },
}

impl Problem {
    /// The same, with the place where it was met before it.
    fn within(self, place: impl Into<String>) -> Problem {
        let place = place.into();
        if place.is_empty() { self } else { Problem::Within(place, Box::new(self)) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Missing(kind, name) => f.write_str(&kind.not_found(name)),
            Problem::MissingStable(name) => {
                let cause = Kind::Ingress.not_found(name);
                write!(f, "error retrieving stableIngress `{name}` from cache: {cause}")
            }
            Problem::NotOurs(name) => write!(f, "canary ingress `{name}` controlled by different object"),
            Problem::SplitNotOurs(name) => write!(f, "Rollout does not own TrafficSplit `{name}`"),
            Problem::NoWeightedServices => {
                f.write_str("spec.weighted.services was not found in traefik service manifest")
            }
            Problem::NoService => f.write_str("Failed type assertion setting weight for traefik service"),
            Problem::NamelessService => f.write_str("name field was not found in service"),
            Problem::NoTraefikService(role) => write!(f, "traefik {role} service was not found"),
            Problem::WrongType(what) | Problem::Routes(what) => f.write_str(what),
            Problem::NoHttp => f.write_str("spec.http not found"),
            Problem::NoRoute => {
                f.write_str("Could not cast type to map[string]any to find route name in Istio Virtual Service")
            }
            Problem::Within(place, problem) => write!(f, "{place}{problem}"),
            Problem::NoBackend { ingress, service } => {
                write!(f, "ingress `{ingress}` has no rules using service {service} backend")
            }
            Problem::NoRule(service) => write!(f, "ingress does not have service `{service}` in rules"),
            Problem::Stickiness => {
                f.write_str("TargetGroupStickinessConfig's duration must be between 1 and 604800 seconds (7 days)!")
            }
            Problem::Unreadable { ingress, why } => {
                let key = crate::api::constants::annotation::MANAGED_ALB_ANNOTATIONS;
                write!(f, "annotation {key} of ingress `{ingress}` cannot be read: {why}")
            }
        }
    }
}

/// Tells a router. What was changed before a problem stays changed.
pub fn write(
    leaf: Leaf,
    rollout: &Rollout,
    routes: &mut Routes,
    step: Move<'_>,
    told: &mut Vec<Told>,
) -> Result<(), Problem> {
    let Some((canary, routing)) = routing(rollout) else { return Ok(()) };
    let done = match leaf {
        Leaf::Istio => {
            let istio = routing.istio.as_ref();
            istio.map(|istio| istio::Writer { rollout, canary, routing, istio }.write(routes, step, told))
        }
        Leaf::Nginx => {
            let nginx = routing.nginx.as_ref();
            nginx.map(|nginx| nginx::Writer { rollout, canary, routing, nginx }.write(routes, step, told))
        }
        Leaf::Alb => {
            let alb = routing.alb.as_ref();
            alb.map(|alb| alb::Writer { rollout, canary, routing, alb }.write(routes, step, told))
        }
        Leaf::Smi => {
            let smi = routing.smi.as_ref();
            smi.map(|smi| smi::Writer { rollout, canary, smi }.write(routes, step, told))
        }
        Leaf::Traefik => {
            let traefik = routing.traefik.as_ref();
            traefik.map(|traefik| traefik::Writer { rollout, canary, traefik }.write(routes, step))
        }
    };
    done.unwrap_or(Ok(()))
}

/// Where a router sends the traffic; `None` if nobody told it yet, or if its objects do not agree.
pub fn read(leaf: Leaf, rollout: &Rollout, routes: &Routes) -> Option<Route> {
    let (canary, routing) = routing(rollout)?;
    match leaf {
        Leaf::Istio => istio::Writer { rollout, canary, routing, istio: routing.istio.as_ref()? }.read(routes),
        Leaf::Nginx => nginx::Writer { rollout, canary, routing, nginx: routing.nginx.as_ref()? }.read(routes),
        Leaf::Alb => alb::Writer { rollout, canary, routing, alb: routing.alb.as_ref()? }.read(routes),
        Leaf::Smi => smi::Writer { rollout, canary, smi: routing.smi.as_ref()? }.read(routes),
        Leaf::Traefik => traefik::Writer { rollout, canary, traefik: routing.traefik.as_ref()? }.read(routes),
    }
}

fn routing(rollout: &Rollout) -> Option<(&CanaryStrategy, &RolloutTrafficRouting)> {
    let canary = rollout.spec.strategy.canary.as_ref()?;
    Some((canary, canary.traffic_routing.as_ref()?))
}

/// The Services of a canary: the two that change places if there are such, those named after their roles otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Services<'r> {
    /// Of the stable version.
    pub stable: &'r str,
    /// Of the new version.
    pub canary: &'r str,
}

impl<'r> Services<'r> {
    /// Those of a Rollout.
    pub fn of(rollout: &'r Rollout) -> Services<'r> {
        let Some(canary) = &rollout.spec.strategy.canary else { return Services { stable: "", canary: "" } };
        let Some(both) = &canary.ping_pong else {
            return Services { stable: &canary.stable_service, canary: &canary.canary_service };
        };
        // Until the first promotion the stable one is pong.
        if rollout.status.canary.stable_ping_pong == PING {
            Services { stable: &both.ping_service, canary: &both.pong_service }
        } else {
            Services { stable: &both.pong_service, canary: &both.ping_service }
        }
    }
}

/// The first of the readings, if all are the same.
fn agreed(readings: impl IntoIterator<Item = Option<Route>>) -> Option<Route> {
    let mut readings = readings.into_iter();
    let first = readings.next()??;
    readings.all(|other| other.as_ref() == Some(&first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routers_are_told_in_one_order_and_one_that_cannot_be_is_named() {
        let mut routing = RolloutTrafficRouting { alb: Some(Default::default()), ..Default::default() };
        assert_eq!(leaves(&routing), Ok(vec![Leaf::Alb]));
        routing.nginx = Some(Default::default());
        assert_eq!(leaves(&routing), Ok(vec![Leaf::Nginx, Leaf::Alb]));
        routing.plugins.insert("org/x".into(), Value::Null);
        assert_eq!(leaves(&routing), Err("org/x"));
        routing.ambassador = Some(Default::default());
        assert_eq!(leaves(&routing), Err("Ambassador"));
    }

    #[test]
    fn sr13_a_virtual_service_of_another_namespace_is_out_of_reach() {
        let service = |name: &str| crate::value!({"virtualService": {"name": name}});
        let rollout = |name: &str| -> Rollout {
            let routing = crate::value!({"istio": service(name)});
            let canary = crate::value!({"stableService": "s", "canaryService": "c", "trafficRouting": routing});
            let metadata = crate::value!({"name": "web", "namespace": "attacker"});
            crate::api::read(&crate::value!({"metadata": metadata, "spec": {"strategy": {"canary": canary}}})).object
        };
        let there = |namespace: &str| Id { kind: Kind::VirtualService, namespace: namespace.into(), name: "vs".into() };
        let to = |host: &str, weight: i64| crate::value!({"destination": {"host": host}, "weight": weight});
        let object = crate::value!({"spec": {"http": [{"route": [to("s", 100), to("c", 0)]}]}});
        for (name, namespace, scope, is_refused) in [
            ("vs.victim", "victim", RouteScope::Namespace, true),
            ("vs.victim", "victim", RouteScope::Cluster, false),
            ("vs.attacker", "attacker", RouteScope::Namespace, false),
            ("vs", "attacker", RouteScope::Namespace, false),
        ] {
            let rollout = rollout(name);
            let mut routes = Routes::of([(there(namespace), object.clone())]).within("attacker", scope);
            let refused = missing(&rollout, &routes).map(|error| error.to_string());
            assert_eq!(refused.is_some(), is_refused, "{name} {scope:?}: {refused:?}");
            let says_how = |text: &String| text.contains("start Tidegate with `--allow-cross-namespace-routes`");
            assert!(refused.iter().all(says_how), "{refused:?}");
            let (canary, routing) = routing(&rollout).unwrap();
            let writer = istio::Writer { rollout: &rollout, canary, routing, istio: routing.istio.as_ref().unwrap() };
            let step = Move::Weights { canary: 50, additional: &[] };
            assert_eq!(writer.write(&mut routes, step, &mut Vec::new()).is_err(), is_refused, "{name} {scope:?}");
        }
    }

    #[test]
    fn services_change_places() {
        let mut rollout: Rollout = crate::api::read(&crate::value!({"spec": {"strategy": {"canary": {
            "stableService": "s", "canaryService": "c"}}}}))
        .object;
        assert_eq!(Services::of(&rollout), Services { stable: "s", canary: "c" });
        if let Some(canary) = &mut rollout.spec.strategy.canary {
            canary.ping_pong = Some(crate::api::PingPongSpec { ping_service: "a".into(), pong_service: "b".into() });
        }
        assert_eq!(Services::of(&rollout), Services { stable: "b", canary: "a" });
        rollout.status.canary.stable_ping_pong = "ping".into();
        assert_eq!(Services::of(&rollout), Services { stable: "a", canary: "b" });
    }
}
