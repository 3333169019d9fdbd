//! A story that a seed tells: any Rollout, anything people and the world may do to it, any weather, and then quiet.
//!
//! The same seed tells the same story and has the same weather, bit for bit. Whatever happened, once it is quiet
//! everything must come to rest within the waits that were declared and a minute, and once somebody sets a good image and
//! approves it, nothing may be left over; no rule may be broken on the way.

use jiff::{SignedDuration, Timestamp};

use super::{
    calm,
    faults::{Dice, Weather},
    local::Local,
    story::{Player, Story},
    trace::Trace,
    web::WEB,
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

/// Images whose pods become ready.
const GOOD: [&str; 3] = ["app:v1", "app:v2", "app:v3"];

/// All that a seed decides.
#[derive(Debug, Clone)]
struct Tale {
    seed: u64,
    story: Story,
    jitter: SignedDuration,
    latency: SignedDuration,
    weather: Option<Weather>,
    /// What somebody sets once it is quiet.
    image: &'static str,
}

/// Runs a seed.
pub fn run(seed: u64) -> Run {
    play(&tale(seed))
}

/// The same for a seed that breaks a rule, without what it takes not to break it: faults, delays, acts.
pub fn shrunk(seed: u64) -> Run {
    let tale = tale(seed);
    let run = play(&tale);
    let rule = |complaint: &String| complaint.split(':').next().unwrap_or_default().to_owned();
    match run.complaints.first().map(rule) {
        Some(broken) => shrink(tale, run, |run| run.complaints.iter().any(|complaint| rule(complaint) == broken)).1,
        None => run,
    }
}

/// The shortest tale that is found, one thing less at a time, whose run still is like this.
fn shrink(mut tale: Tale, mut run: Run, is_like: impl Fn(&Run) -> bool) -> (Tale, Run) {
    loop {
        let found = tale.simpler().map(|simpler| (play(&simpler), simpler)).find(|(run, _)| is_like(run));
        match found {
            Some((found, simpler)) => (run, tale) = (found, simpler),
            None => return (tale, run),
        }
    }
}

impl Tale {
    /// The same, with one thing less each.
    fn simpler(&self) -> impl Iterator<Item = Tale> {
        let own = self.clone();
        let calm = self.weather.is_some().then(|| Tale { weather: None, ..own.clone() });
        let delays = [self.jitter, self.latency];
        let even = (delays != [SignedDuration::ZERO; 2]).then(|| Tale {
            jitter: SignedDuration::ZERO,
            latency: SignedDuration::ZERO,
            ..own.clone()
        });
        let acts = (0..self.story.acts.len()).map(move |act| {
            let mut fewer = own.clone();
            fewer.story.acts.remove(act);
            fewer
        });
        calm.into_iter().chain(even).chain(acts)
    }
}

fn tale(seed: u64) -> Tale {
    let mut dice = Dice::new(seed);
    let story = story(&mut dice);
    let jitter = SignedDuration::from_millis(count(&mut dice, 200));
    let latency = SignedDuration::from_millis(*dice.pick(&[0, 0, 5, 40]).unwrap_or(&0));
    let weather = weather(&mut dice);
    let image = *dice.pick(&GOOD).unwrap_or(&"app:v1");
    Tale { seed, story, jitter, latency, weather, image }
}

fn play(tale: &Tale) -> Run {
    let Tale { seed, story, jitter, image, .. } = tale;
    let start = Timestamp::from_second(1_767_225_600).unwrap_or(Timestamp::UNIX_EPOCH);
    let mut local = Local::new(start, Settings { seed: *seed, jitter: *jitter, ..Settings::default() });
    local.latency = tale.latency;
    local.faults.weather = tale.weather.clone();
    let mut player = Player::new(local);
    player.trace = Some(Trace::default());
    player.local.web.set(&story.web);
    for object in &story.objects {
        player.act(&value!({"apply": object.clone()}));
        player.main = "web".into();
    }
    for act in &story.acts {
        player.act(act);
    }
    player.local.faults = super::faults::Faults::default();
    let waits = declared(story);
    let mut complaints = quiet(&mut player, waits);
    let wrong = calm::settle(&mut player, story, image, (waits + 2 * SLACK) * 1000);
    complaints.extend(wrong.into_iter().map(|wrong| format!("L1: left in peace, but {wrong}")));
    complaints.extend(broken(&player));
    complaints.dedup();
    let trace = player.trace.take().map(|trace| trace.text()).unwrap_or_default();
    Run { trace: format!("# seed {seed}\n{trace}"), complaints, writes: player.local.writes() }
}

/// Nothing happens any more: everything comes to rest in time, and stays so.
fn quiet(player: &mut Player, waits: i64) -> Vec<String> {
    player.act(&value!({"controller": "continue"}));
    if !player.local.is_running() {
        player.act(&value!({"controller": "start"}));
    }
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
    complaints
}

/// The rules that were broken.
fn broken(player: &Player) -> Vec<String> {
    let refused = player.local.refused.iter().map(|(place, broken)| format!("refused {place}: {broken}"));
    refused.chain(player.local.checker.broken()).collect()
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
    let strategy = strategy(dice);
    let mut rollout = value!({"replicas": count(dice, 6), "strategy": strategy.clone()});
    let refers = chance(dice, 15);
    if refers {
        let workload = value!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web-dep"});
        for (key, value) in [("template", Value::Null), ("selector", Value::Null), ("workloadRef", workload)] {
            spec.set_at(&[key], value);
        }
    }
    rollout.set_at(&["spec"], spec);
    let services = ["active", "preview", "stable", "canary", "root", "ping", "pong"];
    let deployment = value!({"deployment": {"name": "web-dep", "app": "web", "replicas": 0}});
    let objects = services.map(|name| value!({"service": name})).into_iter().chain(routers(&strategy));
    let acts = (0..2 + dice.below(9)).flat_map(|_| [act(dice, &strategy, refers), pause(dice)]).collect();
    Story {
        name: "seed".into(),
        title: String::new(),
        objects: objects
            .chain(refers.then_some(deployment))
            .chain([template(), value!({"rollout": rollout})])
            .collect(),
        acts,
        web: value!({"m": {"v": 1}}),
        settles: false,
    }
}

/// The objects of the routers that a strategy names.
fn routers(strategy: &Value) -> Vec<Value> {
    let routing = strategy.at(&["canary", "trafficRouting"]).cloned().unwrap_or_default();
    let mut objects: Vec<Value> = ingresses().into();
    let kinds = match routing.get("istio") {
        Some(_) => &["VirtualService", "DestinationRule"][..],
        None if routing.get("smi").is_some() => &["TrafficSplit"],
        None if routing.get("traefik").is_some() => &["TraefikService"],
        None => &[],
    };
    // Definitions come first.
    objects.splice(0..0, kinds.iter().map(|kind| value!({"served": *kind})));
    if routing.get("istio").is_some() {
        let route = |one: Value, other: Value| value!([{"destination": one, "weight": 100}, {"destination": other, "weight": 0}]);
        let host = |name: &str| value!({"host": name});
        let subset = |name: &str| value!({"host": "web", "subset": name});
        let route = if routing.at(&["istio", "destinationRule"]).is_some() {
            route(subset("stable"), subset("canary"))
        } else if strategy.at(&["canary", "pingPong"]).is_some() {
            route(host("ping"), host("pong"))
        } else {
            route(host("stable"), host("canary"))
        };
        let rule = value!({"name": "primary", "route": route});
        let subsets = ["stable", "canary"].map(|name| value!({"name": name, "labels": {"app": "web"}}));
        objects.push(value!({"virtualservice": {"name": "vs", "spec": {"hosts": ["web"], "http": [rule]}}}));
        objects.push(
            value!({"destinationrule": {"name": "dr", "spec": {"host": "web", "subsets": Value::list(subsets)}}}),
        );
    }
    if routing.get("traefik").is_some() {
        let service = |name: &str, weight: i64| value!({"name": name, "port": 80, "weight": weight});
        let weighted = value!({"services": [service("stable", 100), service("canary", 0)]});
        objects.push(value!({"apiVersion": "traefik.io/v1alpha1", "kind": "TraefikService",
            "metadata": {"name": "traefik"}, "spec": {"weighted": weighted}}));
    }
    objects
}

fn ingresses() -> [Value; 2] {
    let ingresses = [("nginx", "stable", value!({"number": 80})), ("alb", "root", value!({"name": "use-annotation"}))];
    ingresses.map(
        |(name, service, port)| value!({"ingress": {"name": name, "class": name, "service": service, "port": port}}),
    )
}

/// What analyses measure: twice, so that every run ends.
fn template() -> Value {
    let web = value!({"web": {"url": format!("{WEB}/m"), "jsonPath": "{$.v}"}});
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
    let routed = chance(dice, 45);
    if routed || chance(dice, 30) {
        canary.set_at(&["stableService"], "stable");
        canary.set_at(&["canaryService"], "canary");
    }
    if routed {
        route(dice, &mut canary);
        steps_of_routers(dice, &mut canary);
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

/// Behind one router, or behind nginx and a load balancer.
fn route(dice: &mut Dice, canary: &mut Value) {
    let router = dice.below(9);
    if [0, 2].contains(&router) {
        canary.set_at(&["trafficRouting", "nginx"], value!({"stableIngress": "nginx"}));
    }
    if [1, 2].contains(&router) {
        let alb = value!({"ingress": "alb", "rootService": "root", "servicePort": 80});
        canary.set_at(&["trafficRouting", "alb"], alb);
    }
    match router {
        3 => canary.set_at(&["trafficRouting", "smi"], Value::object()),
        4 => canary.set_at(&["trafficRouting", "traefik"], value!({"weightedTraefikServiceName": "traefik"})),
        5 | 6 => canary.set_at(&["trafficRouting", "istio"], value!({"virtualService": {"name": "vs"}})),
        7 => {
            let rule = value!({"name": "dr", "canarySubsetName": "canary", "stableSubsetName": "stable"});
            let istio = value!({"virtualService": {"name": "vs"}, "destinationRule": rule});
            canary.set_at(&["trafficRouting", "istio"], istio);
            canary.remove_at(&["stableService"]);
            canary.remove_at(&["canaryService"]);
        }
        8 => {
            canary.set_at(&["trafficRouting", "istio"], value!({"virtualService": {"name": "vs"}}));
            canary.set_at(&["pingPong"], value!({"pingService": "ping", "pongService": "pong"}));
            canary.remove_at(&["stableService"]);
            canary.remove_at(&["canaryService"]);
        }
        _ => {}
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

/// Steps that only a router has.
fn steps_of_routers(dice: &mut Dice, canary: &mut Value) {
    let mut steps = canary.list_at(&["steps"]).to_vec();
    if chance(dice, 30) {
        steps.insert(0, value!({"setCanaryScale": {"replicas": 1 + count(dice, 2)}}));
        if chance(dice, 50) {
            steps.push(value!({"setCanaryScale": {"matchTrafficWeight": true}}));
            steps.push(value!({"setWeight": 50}));
        }
    }
    if canary.at(&["trafficRouting", "istio"]).is_some() && chance(dice, 30) {
        let header = value!({"headerName": "x", "headerValue": {"exact": "y"}});
        canary.set_at(&["trafficRouting", "managedRoutes"], value!([{"name": "hdr"}]));
        steps.insert(steps.len().min(1), value!({"setHeaderRoute": {"name": "hdr", "match": [header]}}));
        steps.push(value!({"setHeaderRoute": {"name": "hdr"}}));
    }
    canary.set_at(&["steps"], steps);
}

fn steps(dice: &mut Dice) -> Value {
    let step = |dice: &mut Dice| match dice.below(12) {
        0 | 1 => value!({"pause": {}}),
        2 | 3 => value!({"pause": {"duration": 1 + count(dice, 12)}}),
        4 => value!({"analysis": analysis()}),
        5 if chance(dice, 50) => {
            let templates =
                value!([{"name": "baseline", "specRef": "stable"}, {"name": "canary", "specRef": "canary"}]);
            let duration = format!("{}s", 1 + count(dice, 5));
            value!({"experiment": {"duration": duration, "scaleDownDelaySeconds": 1, "templates": templates}})
        }
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
fn act(dice: &mut Dice, strategy: &Value, refers: bool) -> Value {
    let revision = 1 + count(dice, 4);
    let pods = value!({"revision": revision, "count": *dice.pick(&[1, 1, 2, 9]).unwrap_or(&1)});
    if chance(dice, 25) {
        return edit(dice, revision, refers);
    }
    match dice.below(27) {
        0..=4 => value!({"set-image": *dice.pick(&GOOD).unwrap_or(&"app:v1")}),
        5 | 6 => {
            value!({"set-image": *dice.pick(&["app:bad", "app:bad-2", "app:never-ready", "app:slow-3"]).unwrap_or(&"app:bad")})
        }
        7 | 8 => value!({"promote": null}),
        9 => value!({"promote": {"full": true}}),
        10 => value!({"promote": {"skip": "step"}}),
        11 | 12 => value!({"abort": null}),
        13 => value!({"retry": null}),
        14 => value!({"undo": null}),
        15 => value!({"undo": {"to": revision}}),
        16 => value!({"scale": count(dice, 7)}),
        17 => value!({"patch": {"patch": {"spec": {"replicas": count(dice, 6)}}}}),
        18 => value!({"delete-pod": pods}),
        19 => value!({"unready-pod": pods}),
        20 => value!({"restart": null}),
        21 => value!({"controller": "restart"}),
        22 => value!({"controller": *dice.pick(&["kill", "start", "stop", "continue"]).unwrap_or(&"kill")}),
        23 => value!({"pause": null}),
        24 => value!({"resume": null}),
        25 => edit_steps(dice, strategy),
        _ => value!({"patch": {"patch": {"spec": {"strategy": {"canary": {"steps": steps(dice)}}}}}}),
    }
}

/// One step is changed, added or taken away.
fn edit_steps(dice: &mut Dice, strategy: &Value) -> Value {
    let mut steps = strategy.list_at(&["canary", "steps"]).to_vec();
    let at = usize::try_from(count(dice, steps.len() as u64)).unwrap_or_default();
    match steps.get_mut(at) {
        Some(step) if step.get("setWeight").is_some() => step.set_at(&["setWeight"], 1 + count(dice, 99)),
        Some(step) if step.at(&["pause", "duration"]).is_some() => {
            step.set_at(&["pause", "duration"], 1 + count(dice, 3))
        }
        _ if chance(dice, 50) => steps.push(value!({"setWeight": 90})),
        _ => drop(steps.pop()),
    }
    value!({"patch": {"patch": {"spec": {"strategy": {"canary": {"steps": steps}}}}}})
}

/// Something that people do by hand to what the engine looks after.
fn edit(dice: &mut Dice, revision: i64, refers: bool) -> Value {
    let service = *dice.pick(&["active", "preview", "stable", "canary", "ping", "pong"]).unwrap_or(&"active");
    let set = |size: i64| value!({"kind": "ReplicaSet", "revision": revision, "patch": {"spec": {"replicas": size}}});
    let after = |dice: &mut Dice| *dice.pick(&[0.0, 0.2, 2.0]).unwrap_or(&0.0);
    match dice.below(16) {
        0 | 1 => value!({"orphan": null}),
        2 => value!({"recreate": {"policy": *dice.pick(&["Background", "Foreground"]).unwrap_or(&"Background")}}),
        3 => value!({"reset-service": {"name": service, "after": after(dice)}}),
        4 => value!({"unhash-service": service}),
        5 => value!({"edit-service": {"name": service, "revision": revision}}),
        6 => {
            let policy = *dice.pick(&["Background", "Foreground"]).unwrap_or(&"Background");
            value!({"delete": {"kind": "ReplicaSet", "revision": revision, "propagation": policy}})
        }
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
        12 => value!({"reset": {"object": dice.pick(&ingresses()).cloned(), "after": after(dice)}}),
        13 => value!({"edit-route": if chance(dice, 50) { [100, 0] } else { [50, 50] }.map(Value::from).to_vec()}),
        14 => value!({"delete": {"kind": "TrafficSplit", "name": "web"}}),
        _ if refers => value!({"scale": 0}),
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

    #[test]
    fn a_story_shrinks_to_what_its_end_needs() {
        let mut tale = tale(3);
        tale.story.acts.truncate(2);
        assert!(tale.story.acts.len() == 2 && tale.weather.is_some(), "{tale:?}");
        let run = play(&tale);
        let (short, run) = shrink(tale, run, |run| run.writes > 0);
        assert_eq!(short.story.acts, Vec::<Value>::new());
        assert!(short.weather.is_none() && run.writes > 0, "{run:?}");
    }
}
