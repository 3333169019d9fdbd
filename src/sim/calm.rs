//! What is still wrong with a Rollout once everybody leaves it in peace: what a person would find who looks at everything
//! that belongs to it.
//!
//! Reads the cluster only, never what the engine decided.

use super::{
    objects::{self, dig},
    story::{Player, Story},
};
use crate::{
    api::constants::label::POD_TEMPLATE_HASH as HASH,
    embedded::store::request::Verb,
    kubernetes::{object, value::Value},
    value,
};

/// How often somebody looks whether to promote or to retry.
const LOOK: i64 = 2_500;

/// After how many retries the steps are left out.
const PATIENCE: i64 = 3;

/// Brings back what is missing, sets a good image, and does what a patient person would, until nothing is wrong any more or
/// the time is over; answers what still is.
pub(super) fn settle(player: &mut Player, story: &Story, image: &str, millis: i64) -> Vec<String> {
    player.act(&value!({"controller": "continue"}));
    player.act(&value!({"web": {"m": {"v": 1}}}));
    for object in story.objects.iter().map(objects::expand) {
        let text = |path: &[&str]| object.str_at(path).unwrap_or_default().to_owned();
        let kind = text(&["kind"]);
        let is_there = player.get(&kind, &text(&["metadata", "name"])).is_some();
        if !["Rollout", "CustomResourceDefinition"].contains(&kind.as_str()) && !is_there {
            player.act(&value!({"apply": object.clone()}));
        }
    }
    // Who made pods unready by hand replaces them: nothing else would.
    let unready = player.all("Pod").iter().filter(|pod| !is_ready(pod)).map(name).collect::<Vec<_>>();
    unready.iter().for_each(|pod| drop(player.ask(Verb::Delete, "Pod", pod, "", None)));
    let mut patch = value!({"spec": {"paused": false}});
    // Who gave a Rollout a second strategy takes it back.
    if !player.rollout().at(&["spec", "strategy", "blueGreen"]).is_none_or(Value::is_null) {
        patch.set_at(&["spec", "strategy", "canary"], Value::Null);
    }
    player.act(&value!({"patch": {"patch": patch}}));
    player.act(&value!({"set-image": image}));
    let (mut left, mut retries, mut is_patient) = (millis, 0, true);
    loop {
        player.pass_time(LOOK);
        left -= LOOK;
        let wrong = trouble(player, image);
        if wrong.is_empty() || left <= 0 {
            return wrong;
        }
        let rollout = player.rollout();
        if is_patient && (retries == PATIENCE || left < millis / 2) {
            // An experiment with pods of a bad stable version, for one, can only fail, and a step that gives traffic back to
            // it waits for ever.
            is_patient = false;
            player.act(&value!({"promote": {"full": true}}));
        }
        if rollout.at(&["status", "abort"]).and_then(Value::as_bool) == Some(true) {
            retries += 1;
            player.act(&value!({"retry": null}));
        } else if !rollout.list_at(&["status", "pauseConditions"]).is_empty() {
            player.act(&value!({"promote": null}));
        }
    }
}

/// What is wrong, in words.
fn trouble(player: &Player, image: &str) -> Vec<String> {
    let rollout = player.rollout();
    if rollout.is_null() {
        return vec!["there is no Rollout".into()];
    }
    let status = |key: &str| rollout.str_at(&["status", key]).unwrap_or_default().to_owned();
    let (stable, phase) = (status("stableRS"), status("phase"));
    let mut wrong = Vec::new();
    if phase != "Healthy" {
        wrong.push(format!("phase {phase}: {}", status("message")));
    }
    let generation = rollout.int_at(&["metadata", "generation"]).unwrap_or_default().to_string();
    if status("observedGeneration") != generation {
        wrong.push(format!("generation {} of {generation} is observed", status("observedGeneration")));
    }
    if stable.is_empty() || status("currentPodHash") != stable {
        wrong.push(format!("stable '{stable}', current '{}'", status("currentPodHash")));
    }
    let replicas = rollout.int_at(&["spec", "replicas"]).unwrap_or(1);
    wrong.extend(pods(player, &stable, image, replicas));
    wrong.extend(sets(player, &rollout, &stable));
    // Without pods a Service waits for the first one, as with Argo Rollouts.
    if replicas > 0 {
        wrong.extend(services(player, &rollout, &stable));
    }
    wrong.extend(routes(player, &rollout, &stable));
    for kind in ["AnalysisRun", "Experiment"] {
        let is_over = |run: &&Value| {
            let phase = run.str_at(&["status", "phase"]).unwrap_or_default();
            ["Successful", "Failed", "Error", "Inconclusive"].contains(&phase)
        };
        let open = player.all(kind).into_iter().filter(|run| !is_over(&run));
        wrong.extend(open.map(|run| format!("{kind} {} is not over", name(&run))));
    }
    if player.local.is_fenced() {
        wrong.push("something is fenced".into());
    }
    wrong
}

fn name(object: &Value) -> String {
    object.str_at(&["metadata", "name"]).unwrap_or_default().to_owned()
}

fn hash(object: &Value) -> &str {
    object.str_at(&["metadata", "labels", HASH]).unwrap_or_default()
}

/// The ReplicaSets that are the Rollout's, or ought to be: those of Experiments and Deployments are theirs.
fn own_sets(player: &Player) -> Vec<Value> {
    let mut sets = player.all("ReplicaSet");
    sets.retain(|set| {
        let owner = set.list_at(&["metadata", "ownerReferences"]).first();
        owner.is_none_or(|owner| owner.str_at(&["kind"]) == Some("Rollout"))
    });
    sets
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod.list_at(&["status", "conditions"]);
    let is = |condition: &Value, key: &str, text: &str| condition.str_at(&[key]) == Some(text);
    conditions.iter().any(|condition| is(condition, "type", "Ready") && is(condition, "status", "True"))
}

fn pods(player: &Player, stable: &str, image: &str, replicas: i64) -> Vec<String> {
    let sets: Vec<String> = own_sets(player).iter().map(name).collect();
    let owner = |pod: &Value| pod.list_at(&["metadata", "ownerReferences"]).first().map(|owner| dig(owner, "name"));
    let is_own =
        |pod: &Value| owner(pod).is_none_or(|owner| sets.iter().any(|set| owner.as_str() == Some(set.as_str())));
    let (mut wrong, mut count) = (Vec::new(), 0);
    for pod in player.all("Pod").iter().filter(|pod| is_own(pod)) {
        let name = name(pod);
        if hash(pod) != stable {
            wrong.push(format!("pod {name} is left over"));
            continue;
        }
        count += 1;
        if !is_ready(pod) {
            wrong.push(format!("pod {name} is not ready"));
        }
        if dig(pod, "spec.containers[0].image").as_str() != Some(image) {
            wrong.push(format!("pod {name} has another image than {image}"));
        }
    }
    if count != replicas {
        wrong.push(format!("{count} pods of {replicas}"));
    }
    wrong
}

fn sets(player: &Player, rollout: &Value, stable: &str) -> Vec<String> {
    let uid = rollout.str_at(&["metadata", "uid"]);
    let referred: Vec<Value> =
        player.all("Service").iter().map(|one| dig(one, &format!("spec.selector.{HASH}"))).collect();
    let (mut wrong, mut old) = (Vec::new(), 0);
    for set in own_sets(player) {
        if object::controller(&set).as_deref() != uid {
            wrong.push(format!("ReplicaSet {} is not owned by it", name(&set)));
        }
        let size = set.int_at(&["spec", "replicas"]).unwrap_or(1);
        if hash(&set) != stable && size > 0 {
            wrong.push(format!("ReplicaSet {} of another revision has {size}", name(&set)));
        }
        let is_referred = hash(&set) == stable || referred.iter().any(|one| one.as_str() == Some(hash(&set)));
        old += i64::from(!is_referred && size == 0);
    }
    let limit = rollout.int_at(&["spec", "revisionHistoryLimit"]).unwrap_or(10);
    if old > limit {
        wrong.push(format!("{old} old ReplicaSets, limit {limit}"));
    }
    wrong
}

fn services(player: &Player, rollout: &Value, stable: &str) -> Vec<String> {
    let strategy = |path: &str| dig(rollout, &format!("spec.strategy.{path}"));
    let leading = match dig(rollout, "status.canary.stablePingPong").as_str() {
        Some("ping") => "canary.pingPong.pingService",
        _ => "canary.pingPong.pongService",
    };
    let fields = [
        "blueGreen.activeService",
        "blueGreen.previewService",
        "canary.stableService",
        "canary.canaryService",
        leading,
    ];
    let mut wrong = Vec::new();
    for service in fields.map(strategy).iter().filter_map(Value::as_str) {
        let object = player.get("Service", service).unwrap_or_default();
        let leads_to = object.str_at(&["spec", "selector", HASH]).unwrap_or_default();
        if leads_to != stable {
            wrong.push(format!("Service {service} leads to '{leads_to}', not to {stable}"));
        }
    }
    wrong
}

/// Everything goes to the stable version, whatever the router.
fn routes(player: &Player, rollout: &Value, stable: &str) -> Vec<String> {
    let routing = dig(rollout, "spec.strategy.canary.trafficRouting");
    let has = |router: &str| routing.get(router).is_some();
    let mut wrong = Vec::new();
    if has("nginx")
        && let Some(ingress) = player.get("Ingress", "web-nginx-canary")
        && let weight = dig(&ingress, "metadata.annotations.nginx~ingress~kubernetes~io/canary-weight")
        && weight.as_str() != Some("0")
    {
        wrong.push(format!("nginx: canary weight {weight}"));
    }
    if has("smi") {
        let split = player.get("TrafficSplit", "web").unwrap_or_default();
        let weight = |service: &str| {
            let backend =
                split.list_at(&["spec", "backends"]).iter().find(|one| one.str_at(&["service"]) == Some(service));
            backend.map(|backend| objects::text(&dig(backend, "weight"))).unwrap_or_default()
        };
        if weight("stable") != "100" || !["", "0"].contains(&weight("canary").as_str()) {
            wrong.push(format!("smi: stable {}, canary {}", weight("stable"), weight("canary")));
        }
    }
    if has("traefik") {
        let service = player.get("TraefikService", "traefik").unwrap_or_default();
        let services = dig(&service, "spec.weighted.services");
        let weights: Vec<i64> = services
            .as_list()
            .unwrap_or_default()
            .iter()
            .map(|one| one.int_at(&["weight"]).unwrap_or_default())
            .collect();
        if weights != [100, 0] {
            wrong.push(format!("traefik: {weights:?}"));
        }
    }
    if has("istio") {
        let leading = dig(rollout, "status.canary.stablePingPong");
        let wanted = if rollout.at(&["spec", "strategy", "canary", "pingPong"]).is_some() {
            if leading.as_str() == Some("ping") { "ping" } else { "pong" }
        } else {
            "stable"
        };
        let service = player.get("VirtualService", "vs").unwrap_or_default();
        let rules = service.list_at(&["spec", "http"]);
        if rules.len() != 1 {
            wrong.push(format!("istio: {} rules", rules.len()));
        }
        for destination in rules.iter().flat_map(|rule| rule.list_at(&["route"])) {
            let subset = dig(destination, "destination.subset");
            let host = if subset.is_null() { dig(destination, "destination.host") } else { subset };
            let weight = destination.int_at(&["weight"]).unwrap_or_default();
            if weight != if host.as_str() == Some(wanted) { 100 } else { 0 } {
                wrong.push(format!("istio: weight {weight} for {host}"));
            }
        }
        if routing.at(&["istio", "destinationRule"]).is_some() {
            let rule = player.get("DestinationRule", "dr").unwrap_or_default();
            let subsets = rule.list_at(&["spec", "subsets"]).iter();
            let other =
                subsets.map(|subset| dig(subset, &format!("labels.{HASH}"))).filter(|one| one.as_str() != Some(stable));
            wrong.extend(other.map(|other| format!("istio: a subset of {other}")));
        }
    }
    wrong
}
