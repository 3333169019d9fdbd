//! Names in Rollouts that lead to other objects: Services, analysis templates, what routers change.
//!
//! Only the given files are known. A name that leads nowhere is a warning if others of its kind are given, and a hint if
//! none is: then it may well live elsewhere.

use std::collections::BTreeMap;

use super::{
    Notes,
    index::{Found, Index, Sort},
    name_of, plain, routers,
    rule::{Code, Own},
    spot,
};
use crate::{
    api::constants,
    kubernetes::value::{Map, Value},
    manifest::{Object, place::Step},
};

use Step::{Index as At, Key};

/// The kinds that are looked up.
pub const SERVICE: Sort<'static> = Sort::new("", "Service");
const ROLLOUT: Sort<'static> = Sort::new(constants::GROUP, constants::kind::ROLLOUT);

/// Follows the names of every Rollout.
pub fn check(index: &Index<'_>, notes: &mut Notes) {
    let mut used: BTreeMap<(String, String), (&Object, Vec<Step<'static>>)> = BTreeMap::new();
    for rollout in index.of(ROLLOUT) {
        for (path, name) in services(rollout) {
            if let Some(service) = look_up(index, rollout, &path, SERVICE, &name, notes) {
                leads_to_pods(rollout, &path, service, notes);
            }
            let key = (rollout.namespace().to_owned(), name.clone());
            match used.get(&key) {
                Some((other, at)) if !std::ptr::eq(*other, *rollout) => {
                    let what = format!("{} uses the Service {name} as well", name_of(other));
                    let finding = notes.say(rollout, &path, Own::ServiceShared, what);
                    finding.remedy = "give each Rollout Services of its own".into();
                    finding.also.push((spot(other, at), "here".into()));
                }
                Some(_) => {}
                None => drop(used.insert(key, (rollout, path))),
            }
        }
        for (path, name) in root_services(rollout) {
            look_up(index, rollout, &path, SERVICE, &name, notes);
        }
        routers::check(index, rollout, notes);
    }
}

/// Looks up a name, and says so if it leads nowhere.
pub fn look_up<'a>(
    index: &Index<'a>,
    from: &Object,
    path: &[Step<'_>],
    sort: Sort<'_>,
    name: &str,
    notes: &mut Notes,
) -> Option<&'a Object> {
    let cluster_wide = sort.kind == constants::kind::CLUSTER_ANALYSIS_TEMPLATE;
    look_up_in(index, from, path, sort, if cluster_wide { "" } else { from.namespace() }, name, notes)
}

/// The same in a namespace that is given.
pub fn look_up_in<'a>(
    index: &Index<'a>,
    from: &Object,
    path: &[Step<'_>],
    sort: Sort<'_>,
    namespace: &str,
    name: &str,
    notes: &mut Notes,
) -> Option<&'a Object> {
    match index.find(sort, namespace, name) {
        Found::Here(object) => return Some(object),
        Found::Missing(meant) => {
            let what = format!("the {} {name} is not among the given files", sort.kind);
            let remedy = meant.unwrap_or_else(|| format!("add the {}, or mend the name", sort.kind));
            notes.say(from, path, Own::ReferenceMissing, what).remedy = remedy;
        }
        Found::NotGiven => {
            notes.absent(from, path, sort.kind, name);
        }
    }
    None
}

type Named = (Vec<Step<'static>>, String);

/// The Services whose selectors a Rollout writes.
fn services(rollout: &Object) -> Vec<Named> {
    let fields: [&[&'static str]; 6] = [
        &["blueGreen", "activeService"],
        &["blueGreen", "previewService"],
        &["canary", "canaryService"],
        &["canary", "stableService"],
        &["canary", "pingPong", "pingService"],
        &["canary", "pingPong", "pongService"],
    ];
    named(rollout, &fields)
}

/// The Services that routers only name.
fn root_services(rollout: &Object) -> Vec<Named> {
    // The root Service of ALB is only the name of an action in the Ingress.
    named(rollout, &[&["canary", "trafficRouting", "smi", "rootService"]])
}

fn named(rollout: &Object, fields: &[&[&'static str]]) -> Vec<Named> {
    let text = |field: &&[&'static str]| {
        let path: Vec<&str> = ["spec", "strategy"].into_iter().chain(field.iter().copied()).collect();
        let name = rollout.value.str_at(&path).filter(|name| !name.is_empty())?;
        let steps = [Key("spec"), Key("strategy")].into_iter().chain(field.iter().map(|name| Key(name))).collect();
        Some((steps, name.to_owned()))
    };
    fields.iter().filter_map(text).collect()
}

/// A Service that a Rollout points at its pods must be able to find them.
fn leads_to_pods(rollout: &Object, path: &[Step<'_>], service: &Object, notes: &mut Notes) {
    let manager =
        service.value.at(&["metadata", "annotations"]).and_then(|all| all.get(constants::annotation::MANAGED_BY));
    if let Some(manager) = manager.and_then(Value::as_str).filter(|manager| *manager != rollout.name()) {
        let what = format!("the Service {} belongs to the Rollout {manager}", service.name());
        let finding = notes.say(rollout, path, Code::ServiceManaged, what);
        finding.remedy = "use another Service, or remove its annotation".into();
        let annotation = [Key("metadata"), Key("annotations"), Key(constants::annotation::MANAGED_BY)];
        finding.also.push((spot(service, &annotation), "says so".into()));
    }
    // With workloadRef the template is elsewhere.
    let Some(template) = rollout.value.at(&["spec", "template"]).filter(|template| template.get("spec").is_some())
    else {
        return;
    };
    let labels = template.at(&["metadata", "labels"]).and_then(Value::as_map);
    let selector = service.value.at(&["spec", "selector"]).and_then(Value::as_map);
    for (key, value) in selector.into_iter().flat_map(Map::iter) {
        let has = labels.and_then(|labels| labels.get(key));
        if key == constants::label::POD_TEMPLATE_HASH || has == Some(value) {
            continue;
        }
        let what = match has.and_then(Value::as_str) {
            Some(other) => {
                format!("the Service selects pods with {key}={}, but these have {key}={other}", plain(value))
            }
            None => format!("the Service selects pods with {key}={}, but these have no label {key}", plain(value)),
        };
        let selects = [Key("spec"), Key("selector"), Key(key)];
        let finding = notes.say(service, &selects, Code::ServiceSelector, what);
        finding.remedy = "mend the selector of the Service or the labels of the template".into();
        let at = [Key("spec"), Key("template"), Key("metadata"), Key("labels"), Key(key)];
        finding.also.push((spot(rollout, &at), format!("the labels of {}", name_of(rollout))));
    }
    target_ports(rollout, template, service, notes);
}

fn target_ports(rollout: &Object, template: &Value, service: &Object, notes: &mut Notes) {
    let ports =
        |list: &str| template.list_at(&["spec", list]).iter().flat_map(|c| c.list_at(&["ports"])).collect::<Vec<_>>();
    let known: Vec<&str> = ["containers", "initContainers"]
        .into_iter()
        .flat_map(ports)
        .filter_map(|port| port.str_at(&["name"]))
        .collect();
    for (index, port) in service.value.list_at(&["spec", "ports"]).iter().enumerate() {
        let Some(name) = port.str_at(&["targetPort"]).filter(|name| !known.contains(name)) else { continue };
        let path = [Key("spec"), Key("ports"), At(index), Key("targetPort")];
        let what = format!("no container of {} has a port named {name}", name_of(rollout));
        let near = super::similar::nearest(name, known.iter().copied());
        notes.say(service, &path, Own::ServicePort, what).remedy = match (near, &known[..]) {
            (Some(near), _) => format!("did you mean {near}?"),
            (None, []) => "name the port of the container, or give its number here".into(),
            (None, known) => format!("the containers have: {}", known.join(", ")),
        };
    }
}
