//! Hostile input: requests of the conformance corpus with pieces bent, dropped and swapped. Whatever is asked, the
//! answer is an answer: no panic, a Status for every refusal, and a refused request changes nothing.
//!
//! `TIDEGATE_SEED=n` tries other bends.

use std::{collections::BTreeMap, env, path::Path};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tidegate::embedded::{
    http::{
        cluster::{Cluster, Pace},
        service::{Body, Front, Settings},
    },
    store::{Config, Store},
};
use tower::ServiceExt;

use super::conformance::corpus;

#[test]
fn bent_requests_are_answered_and_refusals_change_nothing() {
    let seed = env::var("TIDEGATE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::new(Config::new("2024-05-01T10:00:00Z".parse::<Timestamp>().unwrap(), seed));
        let front = Front::new(Cluster::new(store, None, None, Pace::Runtime), Settings::default());
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for story in corpus::stories(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance")) {
            for step in &story.steps {
                let Some(ask) = Ask::of(&story.words, step) else { continue };
                for _ in 0..2 {
                    check(&front, &chance.bend(&ask)).await;
                }
                // Unbent, so that there is something to be hostile to.
                check(&front, &ask).await;
            }
        }
    });
}

/// A request as it goes over the wire.
#[derive(Debug, Clone)]
struct Ask {
    method: String,
    target: String,
    content: String,
    accept: Option<String>,
    body: Vec<u8>,
}

impl Ask {
    fn of(words: &BTreeMap<String, String>, step: &corpus::Step) -> Option<Ask> {
        let filled = corpus::fill(step.request.as_ref()?, words);
        let (method, target) = filled.split_once(' ')?;
        let (method, content) = match method {
            "MERGE" => ("PATCH", "application/merge-patch+json"),
            "JSON-PATCH" => ("PATCH", "application/json-patch+json"),
            "STRATEGIC" => ("PATCH", "application/strategic-merge-patch+json"),
            "APPLY" => ("PATCH", "application/apply-patch+yaml"),
            other => (other, "application/json"),
        };
        let body = match (&step.body, &step.text) {
            (Some(body), _) => corpus::fill_value(body, words).to_string(),
            (None, Some(text)) => text.clone(),
            (None, None) => String::new(),
        };
        // What the story would remember from earlier answers is a version as often as not.
        let number = |text: &str| text.replace("${", "1").replace('}', "");
        let content = match step.content.as_deref() {
            Some("yaml") => "application/yaml",
            Some(other) => other,
            None => content,
        };
        Some(Ask {
            method: method.into(),
            target: number(target),
            content: content.into(),
            accept: step.accept.clone().filter(|accept| accept.contains('/')),
            body: body.into_bytes(),
        })
    }
}

async fn check(front: &Front, ask: &Ask) {
    let request = Request::builder().method(ask.method.as_str()).uri(&ask.target).header("content-type", &ask.content);
    let request = match &ask.accept {
        Some(accept) => request.header("accept", accept),
        None => request,
    };
    // What no HTTP library would send never reaches the service.
    let Ok(request) = request.body(Full::new(Bytes::from(ask.body.clone()))) else { return };
    let before = front.cluster().with(|store| store.version());
    let Ok(response) = front.clone().oneshot(request).await;
    let code = response.status().as_u16();
    let plain = response.headers().get("content-type").is_some_and(|kind| kind.as_bytes().starts_with(b"text/plain"));
    let body = match response.into_body() {
        Body::Events(_) => return,
        body => body.collect().await.unwrap().to_bytes(),
    };
    if code < 400 {
        return;
    }
    let after = front.cluster().with(|store| store.version());
    let shown = || format!("{ask:?}\nanswered {code} {}", String::from_utf8_lossy(&body));
    // A collection is deleted one by one, on a real server too: what was deleted before the trouble stays deleted.
    assert!(before == after || ask.method == "DELETE", "a refused request changed the store: {}", shown());
    assert!(!shown().contains("panic"), "{}", shown());
    let yaml = ask.accept.as_ref().is_some_and(|accept| accept.contains("yaml"));
    if plain || yaml || ask.method == "HEAD" {
        return;
    }
    let status: Value = serde_json::from_slice(&body).unwrap_or_else(|_| panic!("no JSON: {}", shown()));
    assert_eq!(
        (&status["kind"], &status["status"], &status["code"]),
        (&json!("Status"), &json!("Failure"), &json!(code)),
        "{}",
        shown()
    );
}

/// Chance that is the same in every run of a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    fn one_of<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    /// The request with one or two things wrong with it.
    fn bend(&mut self, ask: &Ask) -> Ask {
        let mut bent = ask.clone();
        for _ in 0..=self.below(2) {
            match self.below(10) {
                0 => bent.target = self.bend_path(&bent.target),
                1 => bent.target = self.bend_query(&bent.target),
                2 => bent.method = self.one_of(&["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "ODD"]).into(),
                3 => bent.content = self.one_of(&CONTENTS).into(),
                4 => bent.accept = Some(self.one_of(&ACCEPTS).into()),
                5 => self.bend_bytes(&mut bent.body),
                _ => {
                    if let Ok(mut body) = serde_json::from_slice::<Value>(&bent.body) {
                        self.bend_value(&mut body);
                        bent.body = body.to_string().into_bytes();
                    }
                }
            }
        }
        bent
    }

    fn bend_path(&mut self, target: &str) -> String {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut parts: Vec<String> = path.split('/').map(str::to_string).collect();
        let at = self.below(parts.len());
        match self.below(4) {
            0 => drop(parts.remove(at)),
            1 => parts.insert(at, self.one_of(&WORDS).into()),
            2 => parts[at] = self.one_of(&WORDS).into(),
            _ => parts.push(self.one_of(&["status", "scale", "log", "eviction", "", "..", "%2e%2e", "a%00b"]).into()),
        }
        let path = parts.join("/");
        let path = if path.starts_with('/') { path } else { format!("/{path}") };
        if query.is_empty() { path } else { format!("{path}?{query}") }
    }

    fn bend_query(&mut self, target: &str) -> String {
        let key = self.one_of(&[
            "watch",
            "limit",
            "continue",
            "resourceVersion",
            "resourceVersionMatch",
            "labelSelector",
            "fieldSelector",
            "timeoutSeconds",
            "sendInitialEvents",
            "allowWatchBookmarks",
            "fieldManager",
            "fieldValidation",
            "force",
            "dryRun",
            "gracePeriodSeconds",
            "propagationPolicy",
            "orphanDependents",
            "pretty",
            "includeObject",
        ]);
        let value = self.one_of(&[
            "",
            "0",
            "1",
            "-1",
            "true",
            "false",
            "x",
            "All",
            "Exact",
            "NotOlderThan",
            "Strict",
            "99999999999999999999",
            "a%20in%20(b",
            "a%3Db,c!%3Dd",
            "metadata.name%3Da",
            "!a",
            "%F0%9F%90%88",
            "%00",
            "%ZZ",
            "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi8uLiJ9",
            "Foreground",
            "Orphan",
        ]);
        let sign = if target.contains('?') { '&' } else { '?' };
        format!("{target}{sign}{key}={value}")
    }

    fn bend_bytes(&mut self, body: &mut Vec<u8>) {
        let at = self.below(body.len());
        match self.below(4) {
            0 => body.truncate(at),
            1 => body.insert(at.min(body.len()), self.below(256) as u8),
            2 => body.extend_from_slice(b"{}"),
            _ => *body = [b"[".repeat(5000), b"]".repeat(5000)].concat(),
        }
    }

    fn bend_value(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) if !fields.is_empty() && self.below(4) > 0 => self.bend_fields(fields),
            Value::Array(items) if !items.is_empty() && self.below(4) > 0 => {
                let at = self.below(items.len());
                match self.below(4) {
                    0 => drop(items.remove(at)),
                    1 => items.push(items[at].clone()),
                    2 => items[at] = self.odd_value(),
                    _ => self.bend_value(&mut items[at]),
                }
            }
            other => *other = self.odd_value(),
        }
    }

    fn bend_fields(&mut self, fields: &mut Map<String, Value>) {
        let keys: Vec<String> = fields.keys().cloned().collect();
        let key = &keys[self.below(keys.len())];
        match self.below(6) {
            0 => drop(fields.remove(key)),
            1 => {
                let value = self.odd_value();
                fields.insert(self.one_of(&WORDS).into(), value);
            }
            2 => {
                let value = self.odd_value();
                fields.insert(key.clone(), value);
            }
            _ => self.bend_value(fields.get_mut(key).unwrap()),
        }
    }

    fn odd_value(&mut self) -> Value {
        match self.below(16) {
            0 => Value::Null,
            1 => json!(true),
            2 => json!(-1),
            3 => json!(0),
            4 => json!(1.5),
            5 => json!(i64::MAX),
            6 => json!(u64::MAX),
            7 => json!(1e300),
            8 => json!(""),
            9 => json!("x".repeat(300)),
            10 => json!("ü\u{0}\n\"\\🐈"),
            11 => json!([]),
            12 => json!({}),
            13 => json!([null, 1, "x", [], {}]),
            14 => json!({"": {"$patch": "delete"}, "a": [{}]}),
            _ => json!(self.one_of(&WORDS)),
        }
    }
}

const WORDS: [&str; 24] = [
    "a",
    "",
    "-",
    "..",
    "default",
    "pods",
    "configmaps",
    "deployments",
    "namespaces",
    "v1",
    "apps",
    "metadata",
    "name",
    "spec",
    "status",
    "$patch",
    "$retainKeys",
    "$setElementOrder/containers",
    "$deleteFromPrimitiveList/finalizers",
    "replace",
    "uid",
    "2024-13-45T99:00:00Z",
    "10Ei",
    "100%",
];

const CONTENTS: [&str; 8] = [
    "",
    "text/plain",
    "application/json",
    "application/yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

const ACCEPTS: [&str; 6] = [
    "*/*",
    "",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=;v=;g=",
    ";;;,,,",
];
