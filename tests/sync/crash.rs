//! A daemon that dies between two writes of a pass: before a write, or when it is carried out and nobody knows.
//!
//! What the inventory names already is written before it is recorded. Whatever was not recorded is found out again.

use std::time::Duration;

use tidegate::{kubernetes::value::Value, sync::State, value};

use crate::{
    line::When,
    objects::source,
    scene::{Scene, map, web},
};

/// Files; an empty one is gone.
type Files = Vec<(&'static str, String)>;

/// Where a source keeps what it has reached.
#[derive(Debug, Clone, Copy)]
enum Kept {
    ConfigMap,
    Object,
}

/// How a story ended.
#[derive(Debug, PartialEq)]
struct End {
    /// The objects, with who owns what in them.
    objects: Vec<Value>,
    /// What was written to ConfigMaps since the commit, in any order.
    writes: Vec<String>,
    /// What is recorded.
    record: Value,
    /// What the commit was told last.
    last: (State, String),
    note: Option<String>,
}

#[tokio::test(start_paused = true)]
async fn an_update_that_was_not_recorded_is_not_made_twice() {
    let files = vec![("deploy/a.yaml", map("a", "x")), ("deploy/b.yaml", map("b", "x"))];
    let change = vec![("deploy/a.yaml", map("a", "y"))];
    check(&files, &change, &["configmaps a"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_was_not_recorded_is_not_forgotten() {
    let files = ["a", "b", "c"].map(|name| (file(name), map(name, "x"))).to_vec();
    check(&files, &vec![("deploy/b.yaml", String::new())], &["configmaps b"]).await;
}

#[tokio::test(start_paused = true)]
async fn s58_whatever_a_crash_leaves_of_a_commit_is_completed() {
    let mut files: Files = ["a", "b", "c", "d"].map(|name| (file(name), map(name, "x"))).to_vec();
    // One pod and no pauses: each word about a Rollout's way is one more record to die at.
    let web = |image: &str| {
        let steps = "[{setWeight: 25}, {pause: {duration: 10s}}, {setWeight: 50}, {pause: {duration: 10s}}]";
        web(image).replace(steps, "[{setWeight: 50}]").replace("replicas: 4", "replicas: 1")
    };
    files.push(("deploy/web.yaml", web("web:1")));
    let change = vec![
        ("deploy/a.yaml", map("a", "y")),
        ("deploy/b.yaml", String::new()),
        ("deploy/d.yaml", map("d", "y")),
        ("deploy/web.yaml", web("web:2")),
    ];
    check(&files, &change, &["configmaps a", "configmaps b", "configmaps d"]).await;
}

#[tokio::test(start_paused = true)]
async fn s58_what_is_new_is_neither_lost_nor_made_twice() {
    let files =
        vec![("deploy/a.yaml", map("a", "x")), ("deploy/b.yaml", map("b", "x")), ("deploy/c.yaml", map("c", "x"))];
    let change =
        vec![("deploy/a.yaml", map("a", "y")), ("deploy/b.yaml", String::new()), ("deploy/d.yaml", map("d", "x"))];
    check(&files, &change, &["configmaps a", "configmaps b", "configmaps d"]).await;
}

fn file(name: &str) -> &'static str {
    match name {
        "a" => "deploy/a.yaml",
        "b" => "deploy/b.yaml",
        "c" => "deploy/c.yaml",
        _ => "deploy/d.yaml",
    }
}

/// Plays a change to its end without a crash, which must have written these ConfigMaps once, and then with a crash at each
/// write, which must end the same.
async fn check(files: &Files, change: &Files, writes: &[&str]) {
    // Dying before a write differs from dying after the one before only in what commits were told meanwhile, wherever
    // that is recorded.
    for (kept, deaths) in [(Kept::ConfigMap, vec![When::Before, When::After]), (Kept::Object, vec![When::After])] {
        let (_, end) = play(kept, files, change, None).await;
        assert_eq!(end.writes, writes);
        assert_eq!(end.last.0, State::Success);
        for when in deaths {
            let crashes = exhaust(kept, files, change, when, &end).await;
            assert!(crashes > writes.len(), "at each write, and at the record: {crashes}");
        }
    }
}

/// Plays a change with a crash at one write after the other, until there is none left; answers how many there were.
async fn exhaust(kept: Kept, files: &Files, change: &Files, when: When, end: &End) -> usize {
    let mut crashes = 0;
    loop {
        let write = crashes + 1;
        let (crashed, now) = play(kept, files, change, Some((when, write))).await;
        assert_eq!(now, *end, "{kept:?}, dead {when:?} write {write}");
        if !crashed {
            return crashes;
        }
        crashes = write;
    }
}

/// Plays a change; answers whether the daemon died on the way, and how it ended.
async fn play(kept: Kept, files: &Files, change: &Files, crash: Option<(When, usize)>) -> (bool, End) {
    let mut scene = match kept {
        Kept::ConfigMap => Scene::new(),
        Kept::Object => Scene::objects(),
    };
    let first = scene.repository.commit(&borrowed(files));
    match kept {
        Kept::ConfigMap => scene.hint().await,
        Kept::Object => scene.source(source("shop", "deploy")),
    }
    scene.until(&first, State::Success).await;
    scene.pass(5).await;
    let before = scene.cluster.with(|store| store.version());
    let born = uids(&scene);
    if let Some((when, write)) = crash {
        scene.line.cut(when, write);
    }
    let second = scene.push(&borrowed(change)).await;
    let crashed = tokio::time::timeout(Duration::from_secs(200), scene.line.died()).await.is_ok();
    if crashed {
        scene.crash().await;
        scene.start();
    }
    scene.until(&second, State::Success).await;
    scene.pass(120).await;
    for (name, uid) in uids(&scene) {
        assert!(born.iter().all(|(other, was)| *other != name || *was == uid), "{name} was created again");
    }
    let end = ended(&mut scene, kept, &second, before);
    scene.end().await;
    (crashed, end)
}

fn borrowed(files: &Files) -> Vec<(&str, &str)> {
    files.iter().map(|(path, text)| (*path, text.as_str())).collect()
}

/// The ConfigMaps that the source has written.
fn is_its(name: &str) -> bool {
    name.len() == 1
}

/// What a source may write.
const KINDS: [(&str, &str); 3] = [("", "configmaps"), ("", "services"), ("argoproj.io", "rollouts")];

fn uids(scene: &Scene) -> Vec<(String, String)> {
    let text = |object: &Value, key: &str| object.str_at(&["metadata", key]).unwrap().to_owned();
    let named = |(group, plural)| {
        let objects = scene.list(group, plural).into_iter();
        objects.map(move |object| (format!("{plural} {}", text(&object, "name")), text(&object, "uid")))
    };
    KINDS.into_iter().flat_map(named).collect()
}

fn ended(scene: &mut Scene, kept: Kept, commit: &str, before: u64) -> End {
    let objects = scene.cluster.with(|store| {
        let objects = KINDS.into_iter().flat_map(|(group, plural)| store.list(group, plural, "default"));
        objects
            .filter(|object| !object.name().starts_with("tidegate."))
            .map(|object| lasting(&object.with_managed_fields()))
            .collect()
    });
    let mut writes = scene.written_since(before);
    writes.retain(|write| write.strip_prefix("configmaps ").is_some_and(is_its));
    writes.sort();
    let record = match kept {
        Kept::ConfigMap => {
            let map = scene.get("", "configmaps", "tidegate.shop").unwrap();
            let part = |key: &str| Value::from_json(map.value.str_at(&["data", key]).unwrap().as_bytes()).unwrap();
            value!([part("status"), part("inventory")])
        }
        Kept::Object => scene.git_source("shop").get("status").cloned().unwrap(),
    };
    let last = scene.last(commit).unwrap();
    End {
        objects,
        writes,
        record: timeless(&record),
        last: (last.state, last.words),
        note: scene.repository.note(commit),
    }
}

/// What of an object does not depend on when and how often it was looked at.
fn lasting(object: &Value) -> Value {
    let at = |path: &[&str]| object.at(path).cloned().unwrap_or_default();
    let status = |key: &str| at(&["status", key]);
    let mut metadata = at(&["metadata"]);
    for key in ["uid", "resourceVersion", "creationTimestamp"] {
        metadata.remove_at(&[key]);
    }
    let status = value!([status("phase"), status("stableRS"), status("currentPodHash")]);
    timeless(
        &value!({"kind": at(&["kind"]), "metadata": metadata, "spec": at(&["spec"]), "data": at(&["data"]), "status": status}),
    )
}

/// The same without moments and identities.
fn timeless(value: &Value) -> Value {
    match value {
        Value::Map(map) => {
            let mut left = Value::object();
            let entries =
                map.iter().filter(|(key, _)| !["uid", "time", "at"].contains(&key.as_str()) && !key.ends_with("Time"));
            entries.for_each(|(key, value)| left.set_at(&[key.as_str()], timeless(value)));
            left
        }
        value => value.as_list().map_or_else(|| value.clone(), |list| Value::list(list.iter().map(timeless))),
    }
}
