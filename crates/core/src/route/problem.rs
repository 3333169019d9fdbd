//! Why a router cannot be told.

use std::fmt;

use super::{Apis, Kind};

/// Why a router cannot be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// An object does not exist.
    Missing(String),
    /// In the words of Argo Rollouts.
    Said(String),
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
    pub(super) fn within(self, place: impl Into<String>) -> Problem {
        let place = place.into();
        if place.is_empty() { self } else { Problem::Within(place, Box::new(self)) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Missing(what) | Problem::Said(what) => f.write_str(what),
            Problem::MissingStable(name) => {
                let cause = Kind::Ingress.not_found(&Apis::default(), name);
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
