//! What a Rollout refers to: whether the objects that it names are what it needs.
//!
//! Pure over given objects: who looks them up (in a cluster, or among the files of a lint) is not known here. What is
//! missing altogether is noticed by whoever looks. Never changes an object.

mod app_mesh;
mod istio;
mod templates;

pub use istio::check_routes as istio_routes;
pub use templates::{Role as AnalysisRole, Templates};

use super::{
    path::{At, Path},
    problem::{Code, Notes, Parsed, Words},
};
use crate::{
    api::{
        self,
        constants::{annotation, label, message},
    },
    kubernetes::{status::FieldError, value::Value},
};

/// The objects that a Rollout names, as far as they were found.
#[derive(Debug, Clone, Default)]
pub struct References {
    /// Services, with what they are for.
    pub services: Vec<(ServiceRole, Value)>,
    /// Analysis templates, with what they are for.
    pub templates: Vec<Templates>,
    /// Ingresses.
    pub ingresses: Vec<Value>,
    /// VirtualServices of Istio.
    pub virtual_services: Vec<Value>,
    /// Mappings of Ambassador.
    pub mappings: Vec<Value>,
    /// VirtualRouters of App Mesh.
    pub app_mesh: Vec<Value>,
}

/// What a Service is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // named after the fields
pub enum ServiceRole {
    Active,
    Preview,
    Canary,
    Stable,
    Ping,
    Pong,
}

impl ServiceRole {
    /// The field that names it.
    pub fn field(self) -> &'static str {
        match self {
            ServiceRole::Active => "spec.strategy.blueGreen.activeService",
            ServiceRole::Preview => "spec.strategy.blueGreen.previewService",
            ServiceRole::Canary => "spec.strategy.canary.canaryService",
            ServiceRole::Stable => "spec.strategy.canary.stableService",
            ServiceRole::Ping => "spec.strategy.canary.pingPong.pingService",
            ServiceRole::Pong => "spec.strategy.canary.pingPong.pongService",
        }
    }
}

/// Every problem of the objects that a Rollout names, in the order of Argo Rollouts.
pub fn check(rollout: &api::Rollout, references: &References) -> Parsed<()> {
    let mut notes = Notes::default();
    for (role, service) in &references.services {
        check_service(rollout, *role, service, &mut notes);
    }
    for templates in &references.templates {
        templates.check(rollout, &mut notes);
    }
    for ingress in &references.ingresses {
        check_ingress(rollout, ingress, &mut notes);
    }
    for service in &references.virtual_services {
        istio::check(rollout, service, &mut notes);
    }
    for mapping in &references.mappings {
        check_mapping(mapping, &mut notes);
    }
    for resource in &references.app_mesh {
        app_mesh::check(resource, &mut notes);
    }
    notes.close(Some(()))
}

/// A finding about an object, blamed on the field of the Rollout that names it.
struct Finding<'f> {
    /// The field, in Argo Rollouts' words and in the manifest.
    field: &'f str,
    /// The name that is printed.
    value: &'f str,
    code: Code,
}

impl Finding<'_> {
    fn note(&self, detail: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>, notes: &mut Notes) {
        let words = Words::Field(FieldError::invalid(self.field, self.value, detail));
        notes.argo_at(Path::of_field(self.field), self.code, words, what, remedy);
    }
}

fn name(object: &Value) -> &str {
    object.str_at(&["metadata", "name"]).unwrap_or_default()
}

fn check_service(rollout: &api::Rollout, role: ServiceRole, service: &Value, notes: &mut Notes) {
    let name = name(service);
    let finding = |code| Finding { field: role.field(), value: name, code };
    let labels = rollout.spec.template.at(&["metadata", "labels"]);
    let selector = service.at(&["spec", "selector"]).and_then(Value::as_map);
    for (key, wanted) in selector.into_iter().flat_map(|selector| selector.iter()) {
        if key == label::POD_TEMPLATE_HASH || labels.and_then(|labels| labels.get(key)) == Some(wanted) {
            continue;
        }
        finding(Code::ServiceSelector).note(
            format!("Service \"{name}\" has unmatch label \"{key}\" in rollout"),
            format!("the Service {name:?} asks for {key}={wanted}, which the template's labels do not have"),
            format!("give the template the label {key}={wanted}, or remove it from the Service's selector"),
            notes,
        );
    }
    let owner = service.at(&["metadata", "annotations", annotation::MANAGED_BY]).and_then(Value::as_str);
    if let Some(owner) = owner.filter(|owner| *owner != rollout.metadata.name) {
        finding(Code::ServiceManaged).note(
            message::service_managed_elsewhere(name),
            format!("the Service {name:?} is managed by the Rollout {owner:?}"),
            format!("use another Service, or remove its annotation {}", annotation::MANAGED_BY),
            notes,
        );
    }
}

fn check_ingress(rollout: &api::Rollout, ingress: &Value, notes: &mut Notes) {
    let Some(canary) = &rollout.spec.strategy.canary else { return };
    let Some(routing) = &canary.traffic_routing else { return };
    let name = name(ingress).to_owned();
    let (field, service) = match (&routing.nginx, &routing.alb) {
        (Some(nginx), _) if nginx.stable_ingresses.contains(&name) => ("nginx.stableIngresses", &canary.stable_service),
        (Some(nginx), _) if nginx.stable_ingress == name => ("nginx.stableIngress", &canary.stable_service),
        (_, Some(alb)) if alb.ingresses.contains(&name) || alb.ingress == name => {
            let field = if alb.ingresses.contains(&name) { "alb.ingresses" } else { "alb.ingress" };
            let root = Some(&alb.root_service).filter(|service| !service.is_empty());
            (field, root.unwrap_or(&canary.stable_service))
        }
        (_, _) => return,
    };
    if !has_rule_with(ingress, service) {
        let field = format!("spec.strategy.canary.trafficRouting.{field}");
        let finding = Finding { field: &field, value: &name, code: Code::IngressBackend };
        finding.note(
            format!("ingress `{name}` has no rules using service {service} backend"),
            format!("no rule of the Ingress {name:?} leads to the Service {service:?}"),
            format!("add a rule with the backend {service:?} to the Ingress"),
            notes,
        );
    }
}

/// Whether a rule leads to this Service, in the present form of Ingresses or the one of old.
fn has_rule_with(ingress: &Value, service: &str) -> bool {
    let rules = ingress.list_at(&["spec", "rules"]).iter();
    let mut paths = rules.flat_map(|rule| rule.list_at(&["http", "paths"]));
    paths.any(|path| {
        let now = path.str_at(&["backend", "service", "name"]);
        now.or_else(|| path.str_at(&["backend", "serviceName"])) == Some(service)
    })
}

fn check_mapping(mapping: &Value, notes: &mut Notes) {
    let Some(weight) = mapping.int_at(&["spec", "weight"]).filter(|weight| *weight != 0) else { return };
    let name = name(mapping);
    let words =
        FieldError::invalid("spec.weight", name, format!("Ambassador mapping \"{name}\" can not define weight"));
    let at = At::ROOT.key("spec");
    let (at, canary) = (at.key("strategy"), "canary");
    let at = at.key(canary);
    let at = at.key("trafficRouting");
    let at = at.key("ambassador");
    notes.argo(
        &at.key("mappings"),
        Code::AmbassadorWeight,
        Words::Field(words),
        format!("the Mapping {name:?} has the weight {weight}"),
        "remove the weight from the Mapping",
    );
}
