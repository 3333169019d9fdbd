//! Plays a story on the embedded cluster, at a pace.

use std::{collections::BTreeMap, fs, path::Path};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tidegate::{
    embedded::controllers::Settings,
    kubernetes::value::Value as Tree,
    sim::{
        local::Local,
        story::{Player, Story},
    },
    value,
};

use crate::trace::{self, Seen};

/// All stories of the folder.
pub fn stories(folder: &Path) -> Vec<Story> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml") && !file.ends_with("known.yaml"));
    files.sort();
    // Stories share much of what they say.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { enforce_alias_anchor_ratio: false }
    };
    let read = |file: &std::path::PathBuf| -> Vec<Tree> {
        serde_saphyr::from_str_with_options(&fs::read_to_string(file).unwrap(), options.clone()).unwrap()
    };
    files.iter().flat_map(read).filter_map(|entry| Story::of(&entry)).collect()
}

/// How fast things go in a play.
#[derive(Clone, Copy)]
pub struct Pace {
    /// How far apart pods of one ReplicaSet become ready, at most.
    jitter: i64,
    /// How long it takes until the engine hears of a change.
    latency: i64,
    /// What decides the rest.
    seed: u64,
}

/// Pods that become ready together, one after the other, and so slowly that every state in between is acted upon.
pub const PACES: [Pace; 4] = [
    Pace { jitter: 0, latency: 40, seed: 1 },
    Pace { jitter: 30, latency: 5, seed: 1 },
    Pace { jitter: 90, latency: 40, seed: 2 },
    Pace { jitter: 100, latency: 0, seed: 1 },
];

/// How each act ended, and the sequences of what was seen.
pub fn play(story: &Story, pace: Pace) -> (Vec<String>, BTreeMap<String, Value>) {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let jitter = SignedDuration::from_millis(pace.jitter);
    let mut local = Local::new(start, Settings { seed: pace.seed, jitter, ..Settings::default() });
    local.latency = SignedDuration::from_millis(pace.latency);
    let mut player = Player::new(local);
    let text = format!("{:?}", story.objects);
    for (word, group, version, kind) in [
        ("\"smi\"", "split.smi-spec.io", "v1alpha1", "TrafficSplit"),
        ("\"istio\"", "networking.istio.io", "v1alpha3", "VirtualService"),
        ("\"istio\"", "networking.istio.io", "v1alpha3", "DestinationRule"),
    ] {
        if text.contains(word) {
            player.apply(&definition(group, version, kind));
        }
    }
    let results = player.play(story);
    assert_eq!(player.local.refused, [], "{}: rules would have been broken", story.name);
    assert_eq!(player.local.checker.broken(), Vec::<String>::new(), "{}: rules were broken", story.name);
    let told = player.local.events.iter().map(|(place, event)| {
        let kind = if event.warning { "Warning" } else { "Normal" };
        (place.name.to_string(), format!("{kind} {}: {}", event.reason, event.message))
    });
    let events: Vec<(String, String)> = told.collect();
    let told = player.local.told.iter().map(|(place, event)| {
        let kind = if event.warning { "Warning" } else { "Normal" };
        (place.name.to_string(), format!("{kind} {}: {}", event.reason, event.message))
    });
    let told: Vec<(String, String)> = told.collect();
    let compared = player.local.compared.iter().map(|(place, event)| {
        let kind = if event.warning { "Warning" } else { "Normal" };
        (place.name.to_string(), format!("{kind} {}: {}", event.reason, event.message))
    });
    let compared: Vec<(String, String)> = compared.collect();
    let seen: Vec<Seen> = player
        .seen
        .iter()
        .map(|(kind, name, object)| Seen {
            kind: kind.to_string(),
            name: name.to_string(),
            object: object.as_ref().map(Value::from),
        })
        .collect();
    (results, trace::build(&seen, &events, &told, &compared))
}

/// What a mesh brings along.
fn definition(group: &str, version: &str, kind: &str) -> Tree {
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    let schema = value!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    value!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": singular, "listKind": format!("{kind}List")},
            "versions": [{"name": version, "served": true, "storage": true, "schema": schema}],
        },
    })
}
