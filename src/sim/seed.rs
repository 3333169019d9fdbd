//! A story that a seed tells: any Rollout, anything people and the world may do to it, any weather, and then quiet.
//!
//! The same seed tells the same story and has the same weather, bit for bit. Whatever happened, once it is quiet
//! everything must come to rest within the waits that were declared and a minute; no rule may be broken on the way.

use jiff::{SignedDuration, Timestamp};

use super::{
    faults::{Dice, Weather},
    local::Local,
    story::{Player, Story},
    trace::Trace,
};
use crate::{embedded::controllers::Settings, kubernetes::value::Value, value};

/// How long everything may take beyond the waits that were declared.
const SLACK: i64 = 60;

/// What a seed came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// What happened, state by state.
    pub trace: String,
    /// What should not have happened.
    pub complaints: Vec<String>,
    /// How many writes the engine sent.
    pub writes: u64,
}

/// Runs a seed.
pub fn run(seed: u64) -> Run {
    let mut dice = Dice::new(seed);
    let story = story(&mut dice);
    let start = Timestamp::from_second(1_767_225_600).unwrap_or(Timestamp::UNIX_EPOCH);
    let jitter = SignedDuration::from_millis(count(&mut dice, 200));
    let mut local = Local::new(start, Settings { seed, jitter, ..Settings::default() });
    local.latency = SignedDuration::from_millis(*dice.pick(&[0, 0, 5, 40]).unwrap_or(&0));
    local.faults.weather = weather(&mut dice);
    let mut player = Player::new(local);
    player.trace = Some(Trace::default());
    for object in &story.objects {
        player.act(&value!({"apply": object.clone()}));
        player.main = "web".into();
    }
    for act in &story.acts {
        player.act(act);
    }
    player.local.faults = super::faults::Faults::default();
    let complaints = quiet(&mut player, declared(&story));
    let trace = player.trace.take().map(|trace| trace.text()).unwrap_or_default();
    Run { trace: format!("# seed {seed}\n{trace}"), complaints, writes: player.local.writes() }
}

/// Nothing happens any more: everything comes to rest in time, and stays so.
fn quiet(player: &mut Player, waits: i64) -> Vec<String> {
    player.act(&value!({"controller": "start"}));
    player.pass_time((waits + SLACK) * 1000);
    let mut complaints: Vec<String> = Vec::new();
    let before = (player.local.store().version(), player.local.events.len());
    player.local.resync();
    player.pass_time(60_000);
    if before != (player.local.store().version(), player.local.events.len()) {
        complaints.push(format!("L1: not at rest after {waits} s of declared waits and {SLACK} s more"));
    }
    let rollout = player.rollout();
    let phase = rollout.str_at(&["status", "phase"]).unwrap_or_default();
    let is_deleted = rollout.is_null();
    if !is_deleted && !["Healthy", "Paused", "Degraded"].contains(&phase) {
        complaints.push(format!("L1: at rest, but {phase}"));
    }
    complaints.extend(player.local.refused.iter().map(|(place, broken)| format!("refused {place}: {broken}")));
    complaints.extend(player.local.checker.broken());
    complaints.dedup();
    complaints
}

fn count(dice: &mut Dice, below: u64) -> i64 {
    i64::try_from(dice.below(below)).unwrap_or_default()
}

fn chance(dice: &mut Dice, of_a_hundred: u64) -> bool {
    dice.below(100) < of_a_hundred
}

fn weather(dice: &mut Dice) -> Option<Weather> {
    let own = Dice::new(dice.below(u64::MAX));
    let (writes, breaks) = (dice.below(150), dice.below(80));
    let lag = SignedDuration::from_millis(*dice.pick(&[0, 0, 50, 300, 1000]).unwrap_or(&0));
    chance(dice, 70).then_some(Weather { dice: own, writes, lag, breaks })
}

/// The waits that a story declares, in seconds: pauses, delays, deadlines, and how long pods take.
fn declared(story: &Story) -> i64 {
    let mut sum = 0;
    let mut add = |value: &Value| {
        walk(value, &mut |key, value| {
            let seconds = value.as_int().or_else(|| value.as_str()?.trim_end_matches('s').parse().ok());
            let is_wait = ["duration", "autoPromotionSeconds", "scaleDownDelaySeconds", "abortScaleDownDelaySeconds"]
                .into_iter()
                .chain(["progressDeadlineSeconds", "minReadySeconds"])
                .any(|wait| wait == key);
            sum += seconds.filter(|_| is_wait).unwrap_or_default();
        });
    };
    story.objects.iter().chain(&story.acts).for_each(&mut add);
    // A default delay of 30 s, one for each version that the story has; and each restart looks again after 30 s.
    sum + 30 * i64::try_from(story.acts.len()).unwrap_or_default() + 60
}

fn walk(value: &Value, see: &mut impl FnMut(&str, &Value)) {
    for (key, value) in value.as_map().into_iter().flat_map(crate::kubernetes::value::Map::iter) {
        see(key, value);
        walk(value, see);
    }
    value.as_list().into_iter().flatten().for_each(|item| walk(item, see));
}

/// The story that the dice tell.
fn story(dice: &mut Dice) -> Story {
    let mut spec = value!({"progressDeadlineSeconds": 5 + count(dice, 30)});
    for (key, value, hundredth) in [
        ("progressDeadlineAbort", value!(true), 20),
        ("minReadySeconds", value!(1 + count(dice, 3)), 15),
        ("revisionHistoryLimit", value!(1 + count(dice, 3)), 30),
        ("rollbackWindow", value!({"revisions": 1 + count(dice, 2)}), 20),
    ] {
        if chance(dice, hundredth) {
            spec.set_at(&[key], value);
        }
    }
    let rollout = value!({"rollout": {"replicas": count(dice, 6), "strategy": strategy(dice), "spec": spec}});
    let services = ["active", "preview", "stable", "canary", "root"].map(|name| value!({"service": name}));
    let acts = (0..2 + dice.below(9)).flat_map(|_| [act(dice), pause(dice)]).collect();
    Story {
        name: "seed".into(),
        title: String::new(),
        objects: services.into_iter().chain(ingresses()).chain([template(), rollout]).collect(),
        acts,
        web: value!({"m": {"v": 1}}),
        settles: false,
    }
}

fn ingresses() -> [Value; 2] {
    let ingresses = [("nginx", "stable", value!({"number": 80})), ("alb", "root", value!({"name": "use-annotation"}))];
    ingresses.map(
        |(name, service, port)| value!({"ingress": {"name": name, "class": name, "service": service, "port": port}}),
    )
}

/// What analyses measure: twice, so that every run ends.
fn template() -> Value {
    let web = value!({"web": {"url": "%WEB%/m", "jsonPath": "{$.v}"}});
    let metric = value!({"name": "m", "count": 2, "interval": "1s", "provider": web,
        "successCondition": "result == 1", "failureCondition": "result == 2"});
    value!({"analysis": {"name": "t", "metrics": [metric]}})
}

fn analysis() -> Value {
    value!({"templates": [{"templateName": "t"}]})
}

fn strategy(dice: &mut Dice) -> Value {
    if chance(dice, 60) { canary(dice) } else { blue_green(dice) }
}

fn canary(dice: &mut Dice) -> Value {
    let mut canary = value!({"steps": steps(dice)});
    let limits =
        [(value!(1), value!(0)), (value!(0), value!(1)), (value!("50%"), value!("25%")), (value!(2), value!(1))];
    if let (true, Some((surge, missing))) = (chance(dice, 70), dice.pick(&limits)) {
        canary.set_at(&["maxSurge"], surge.clone());
        canary.set_at(&["maxUnavailable"], missing.clone());
    }
    let routed = chance(dice, 35);
    if routed || chance(dice, 30) {
        canary.set_at(&["stableService"], "stable");
        canary.set_at(&["canaryService"], "canary");
    }
    if routed {
        route(dice, &mut canary);
    }
    if chance(dice, 15) {
        canary.set_at(&["canaryMetadata"], value!({"labels": {"role": "canary"}}));
        canary.set_at(&["stableMetadata"], value!({"labels": {"role": "stable"}}));
    }
    if chance(dice, 15) {
        canary.set_at(&["analysis"], analysis());
    }
    value!({"canary": canary})
}

/// Behind nginx or a load balancer, or both.
fn route(dice: &mut Dice, canary: &mut Value) {
    let routers = dice.below(3);
    if routers != 1 {
        canary.set_at(&["trafficRouting", "nginx"], value!({"stableIngress": "nginx"}));
    }
    if routers != 0 {
        let alb = value!({"ingress": "alb", "rootService": "root", "servicePort": 80});
        canary.set_at(&["trafficRouting", "alb"], alb);
    }
    if chance(dice, 40) {
        canary.set_at(&["dynamicStableScale"], true);
    } else if chance(dice, 70) {
        canary.set_at(&["scaleDownDelaySeconds"], count(dice, 20));
    }
    for (key, below, hundredth) in [
        ("abortScaleDownDelaySeconds", 10, 50),
        ("minPodsPerReplicaSet", 3, 20),
        ("scaleDownDelayRevisionLimit", 2, 20),
    ] {
        if chance(dice, hundredth) {
            canary.set_at(&[key], count(dice, below));
        }
    }
}

fn steps(dice: &mut Dice) -> Value {
    let step = |dice: &mut Dice| match dice.below(11) {
        0 | 1 => value!({"pause": {}}),
        2 | 3 => value!({"pause": {"duration": 1 + count(dice, 12)}}),
        4 => value!({"analysis": analysis()}),
        _ => value!({"setWeight": *dice.pick(&[0, 10, 25, 33, 50, 67, 100]).unwrap_or(&50)}),
    };
    let steps: Vec<Value> = (0..dice.below(6)).map(|_| step(dice)).collect();
    Value::list(steps)
}

fn blue_green(dice: &mut Dice) -> Value {
    let mut strategy = value!({"activeService": "active"});
    let numbers = [
        ("autoPromotionSeconds", 10, 30),
        ("previewReplicaCount", 4, 30),
        ("scaleDownDelaySeconds", 20, 70),
        ("scaleDownDelayRevisionLimit", 2, 20),
        ("abortScaleDownDelaySeconds", 10, 40),
    ];
    for (key, below, hundredth) in numbers {
        if chance(dice, hundredth) {
            strategy.set_at(&[key], count(dice, below));
        }
    }
    if chance(dice, 60) {
        strategy.set_at(&["previewService"], "preview");
    }
    if chance(dice, 40) {
        strategy.set_at(&["autoPromotionEnabled"], false);
    }
    for key in ["prePromotionAnalysis", "postPromotionAnalysis"] {
        if chance(dice, 15) {
            strategy.set_at(&[key], analysis());
        }
    }
    value!({"blueGreen": strategy})
}

/// Something that people or the world do.
fn act(dice: &mut Dice) -> Value {
    let revision = 1 + count(dice, 4);
    let pods = value!({"revision": revision, "count": 1 + count(dice, 3)});
    if chance(dice, 20) {
        return edit(dice, revision);
    }
    match dice.below(22) {
        0..=4 => value!({"set-image": *dice.pick(&["app:v1", "app:v2", "app:v3"]).unwrap_or(&"app:v1")}),
        5 => value!({"set-image": *dice.pick(&["app:bad", "app:never-ready", "app:slow-3"]).unwrap_or(&"app:bad")}),
        6 | 7 => value!({"promote": null}),
        8 => value!({"promote": {"full": true}}),
        9 => value!({"promote": {"skip": "step"}}),
        10 | 11 => value!({"abort": null}),
        12 => value!({"retry": null}),
        13 => value!({"undo": null}),
        14 => value!({"scale": count(dice, 7)}),
        15 => value!({"delete-pod": pods}),
        16 => value!({"unready-pod": pods}),
        17 => value!({"restart": null}),
        18 => value!({"controller": "restart"}),
        19 => value!({"pause": null}),
        20 => value!({"resume": null}),
        _ => value!({"patch": {"patch": {"spec": {"strategy": {"canary": {"steps": steps(dice)}}}}}}),
    }
}

/// Something that people do by hand to what the engine looks after.
fn edit(dice: &mut Dice, revision: i64) -> Value {
    let service = *dice.pick(&["active", "preview", "stable", "canary"]).unwrap_or(&"active");
    let set = |size: i64| value!({"kind": "ReplicaSet", "revision": revision, "patch": {"spec": {"replicas": size}}});
    match dice.below(14) {
        0 | 1 => value!({"orphan": null}),
        2 => value!({"recreate": {"policy": *dice.pick(&["Background", "Foreground"]).unwrap_or(&"Background")}}),
        3 => value!({"reset-service": {"name": service, "after": *dice.pick(&[0.0, 0.2, 2.0]).unwrap_or(&0.0)}}),
        4 => value!({"unhash-service": service}),
        5 => value!({"edit-service": {"name": service, "revision": revision}}),
        6 => value!({"delete": {"kind": "ReplicaSet", "revision": revision}}),
        7 => value!({"patch": set(count(dice, 5))}),
        8 => value!({"delete-runs": null}),
        9 | 10 => value!({"web": {"m": {"v": *dice.pick(&[0, 1, 1, 2]).unwrap_or(&1)}}}),
        11 => {
            let weight = value!({"metadata": {"annotations": {"nginx.ingress.kubernetes.io/canary-weight": "50"}}});
            let mut act = value!({"kind": "Ingress", "name": "web-nginx-canary"});
            let what = if chance(dice, 50) {
                act.set_at(&["patch"], weight);
                "patch"
            } else {
                "delete"
            };
            value!({what: act})
        }
        12 => {
            let after = *dice.pick(&[0.0, 0.2, 2.0]).unwrap_or(&0.0);
            value!({"reset": {"object": dice.pick(&ingresses()).cloned(), "after": after}})
        }
        _ => {
            value!({"patch": {"patch": {"spec": {"replicas": 0, "template": {"spec": {"containers": [{"name": "app", "image": "app:v1"}]}}}}}})
        }
    }
}

/// How long until the next thing happens.
fn pause(dice: &mut Dice) -> Value {
    value!({"sleep": *dice.pick(&[0.0, 0.05, 0.3, 1.0, 3.0, 15.0]).unwrap_or(&1.0)})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_replays_bit_for_bit() {
        for seed in 0..4 {
            assert_eq!(run(seed), run(seed), "seed {seed}");
        }
    }
}
