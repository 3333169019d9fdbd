//! Single decisions, on one core, without any I/O.

use std::hint::black_box;

use allocation_counter::measure;
use jiff::{SignedDuration, Timestamp};
use tidegate::{
    embedded::{controllers::Settings, store::request::PatchType, store::request::Request, store::request::Verb},
    engine::key::Place,
    kubernetes::value::Value,
    rollout::{Seen, Verdict, View, check, decide, diff, diff::status_patch},
    sim::local::Local,
    value,
};

use crate::{
    rollout,
    table::{Row, thousands, time},
};

/// What was seen of a Rollout with three ReplicaSets: at rest, and with a version to scale.
struct Scenes {
    rest: Seen,
    action: Seen,
}

fn scenes() -> Scenes {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
    let mut local = Local::new(start, Settings { seed: 1, ..Settings::default() });
    let place = Place::new("default", "web");
    local.create("argoproj.io", "v1alpha1", "rollouts", "default", rollout("web")).expect("a valid Rollout");
    local.advance(SignedDuration::from_secs(60));
    for image in ["web:2", "web:3"] {
        set_image(&mut local, image);
        local.advance(SignedDuration::from_secs(120));
    }
    let rest = local.see(&place).expect("the Rollout");
    assert_eq!(rest.sets.len(), 3);
    set_image(&mut local, "web:2");
    let acts = |local: &Local| {
        let seen = local.see(&place).expect("the Rollout");
        let view = View::of(&seen);
        let actions = diff(&view, &decide(&view));
        (!actions.is_empty() && view.new.is_some()).then_some(seen)
    };
    let action = loop {
        // One step brings the new version's set, another one its first pod.
        match acts(&local) {
            Some(seen) => break seen,
            None => assert!(local.step(), "the engine has something to do"),
        }
    };
    Scenes { rest, action }
}

fn set_image(local: &mut Local, image: &str) {
    let patch = value!([{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": image}]);
    let request = Request {
        verb: Verb::Patch(PatchType::Json),
        group: "argoproj.io".into(),
        version: "v1alpha1".into(),
        resource: "rollouts".into(),
        namespace: "default".into(),
        name: "web".into(),
        body: Some(patch),
        ..Request::default()
    };
    local.ask(request).expect("a valid image");
}

/// Everything that is computed between seeing and writing.
fn pass(view: &View) -> (Verdict, Option<Value>) {
    let verdict = decide(view);
    let actions = diff(view, &verdict);
    assert!(check(view, &verdict, &actions).is_empty());
    let patch = verdict.status.as_ref().and_then(|status| status_patch(view, status));
    (verdict, patch)
}

fn row(name: &str, wanted: &'static str, count: u32, mut work: impl FnMut()) -> Row {
    let allocations = measure(&mut work).count_total;
    let each = time(count, work);
    let rate = thousands((1.0 / each.as_secs_f64()) as u64);
    let measured = format!("{rate}/s, {:.2} µs, {allocations} allocations", each.as_secs_f64() * 1e6);
    Row { name: name.into(), measured, wanted, peer: String::new() }
}

/// The rows of the table.
pub fn rows() -> Vec<Row> {
    let Scenes { rest, action } = scenes();
    let (resting, acting) = (View::of(&rest), View::of(&action));
    assert!(decide(&resting).is_quiet(&resting));
    let mut rows = vec![
        row("decision, nothing to do", "100,000/s, 0 allocations", 200_000, || {
            drop(black_box(pass(black_box(&resting))))
        }),
        row("decision with an action", "30,000/s", 20_000, || drop(black_box(pass(black_box(&acting))))),
        row("making sense of what was seen, anew", "", 2_000, || drop(black_box(View::of(black_box(&rest))))),
    ];
    rows[0].peer = "Argo Rollouts: 1.5 ms for a pass that does nothing (its own logs)".into();
    rows
}

/// Repeats one decision so many times, for `callgrind`.
pub fn repeat(which: &str, count: u32) {
    let Scenes { rest, action } = scenes();
    let view = match which {
        "noop" => View::of(&rest),
        "action" => View::of(&action),
        other => panic!("no decision is called {other}; there are noop and action"),
    };
    for _ in 0..count {
        black_box(pass(black_box(&view)));
    }
}
