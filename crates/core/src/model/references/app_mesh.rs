//! VirtualRouters of App Mesh.

use crate::{
    kubernetes::{status::FieldError, value::Value},
    model::{
        path::Path,
        problem::{Code, Notes, Words},
    },
};

const ROUTE_TYPES: [&str; 4] = ["httpRoute", "tcpRoute", "http2Route", "grpcRoute"];

/// Argo Rollouts stops at the first route that is not as it should be.
pub fn check(resource: &Value, notes: &mut Notes) {
    let kind = resource.str_at(&["kind"]).unwrap_or_default();
    if kind != "VirtualRouter" {
        let detail = format!("Expected object kind to be VirtualRouter but is {kind}");
        let what = format!("a {kind} stands where a VirtualRouter is needed");
        return note(FieldError::invalid("kind", kind, detail), what, "name a VirtualRouter", notes);
    }
    let router = super::name(resource);
    let routes = resource.list_at(&["spec", "routes"]);
    if routes.is_empty() {
        let detail = format!("No routes defined for AppMesh virtual-router {router}");
        let what = format!("the VirtualRouter {router:?} has no routes");
        return note(FieldError::invalid("spec.routes", router, detail), what, "add a route", notes);
    }
    for (index, route) in routes.iter().enumerate() {
        check_route(router, index, route, notes);
    }
    notes.argo_resumes();
}

fn note(error: FieldError, what: String, remedy: &str, notes: &mut Notes) {
    let path = Path::of_field("spec.strategy.canary.trafficRouting.appMesh.virtualService");
    notes.argo_at(path, Code::AppMeshRoutes, Words::Field(error), what, remedy);
}

fn check_route(router: &str, index: usize, route: &Value, notes: &mut Notes) {
    let field = format!("spec.routes[{index}]");
    let mut refuse = |field: &str, detail: String, what: &str, remedy: &str| {
        let what = format!("route {index} of the VirtualRouter {router:?} {what}");
        note(FieldError::invalid(field, router, detail), what, remedy, notes);
        notes.argo_stops();
    };
    let Some(fields) = route.as_map() else {
        let detail = format!("Invalid route was found for AppMesh virtual-router {router} at index {index}");
        return refuse(&field, detail, "is no route", "write a route");
    };
    // Go's `%s` of a name that is not there.
    let name = fields.get("name").map_or_else(
        || "%!s(<nil>)".to_owned(),
        |name| match name.as_str() {
            Some(name) => name.to_owned(),
            None => name.to_json(),
        },
    );
    let Some(kind) = ROUTE_TYPES.into_iter().find(|kind| fields.get(kind).is_some_and(|rule| rule.as_map().is_some()))
    else {
        let detail = format!(
            "Error getting route details for AppMesh virtual-router {router} and route {name}. Error: Route has \
             unsupported route type"
        );
        return refuse(&field, detail, "has no rule that is known", "use httpRoute, tcpRoute, http2Route or grpcRoute");
    };
    let targets_field = format!("{field}.{kind}.action.weightedTargets");
    let remedy = "give the route two weighted targets: the nodes of the stable and of the new version";
    match route.at(&[kind, "action", "weightedTargets"]).and_then(Value::as_list) {
        None => {
            let detail = format!("Invalid route action found for AppMesh virtual-router {router} and route {name}");
            refuse(&targets_field, detail, "has no weighted targets", remedy);
        }
        Some(targets) if targets.len() != 2 => {
            let count = targets.len();
            let detail = format!(
                "Invalid number of weightedTargets ({count}) for AppMesh virtual-router {router} and route {name}, \
                 expected 2"
            );
            refuse(&targets_field, detail, &format!("has {count} weighted targets"), remedy);
        }
        Some(_) => {}
    }
}
