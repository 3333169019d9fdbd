//! Plays a story on a server and keeps what it answered, word for word.

use std::{collections::BTreeMap, time::Instant};

use jiff::Timestamp;
use serde_json::Value;

use super::{
    corpus::{Pick, Step, Story, fill, fill_value},
    server::{Call, Next, Reply, Server, Watch},
};

/// What a server answered to one step.
#[derive(Debug)]
pub struct Answer {
    /// The step's title as written.
    pub title: String,
    /// When it came.
    pub time: Timestamp,
    /// Code, content type, warnings.
    pub head: Option<Reply>,
    /// The body.
    pub body: Body,
}

/// The body of an answer.
#[derive(Debug)]
pub enum Body {
    Json(Value),
    Text(String),
    Events(Vec<Value>),
}

/// Plays all steps in order.
pub fn play(story: &Story, server: &dyn Server) -> Vec<Answer> {
    let mut stage =
        Stage { server, words: story.words.clone(), watches: BTreeMap::new(), story: &story.name, number: 0 };
    story.steps.iter().map(|step| stage.act(step)).collect()
}

struct Stage<'a> {
    server: &'a dyn Server,
    words: BTreeMap<String, String>,
    watches: BTreeMap<String, Box<dyn Watch>>,
    story: &'a str,
    number: usize,
}

impl Stage<'_> {
    fn act(&mut self, step: &Step) -> Answer {
        self.number += 1;
        let without_head = |body| Answer { title: step.title(), time: Timestamp::now(), head: None, body };
        let answer = match (&step.read, &step.request, &step.forget) {
            (Some(watch), _, _) => without_head(Body::Events(self.read(watch, step))),
            (None, Some(request), _) => self.ask(step, request),
            (None, None, version) => {
                let version = fill(version.as_deref().unwrap_or_default(), &self.words);
                self.server.forget(version.parse().unwrap_or_default());
                without_head(Body::Text(String::new()))
            }
        };
        for (word, pointer) in &step.keep {
            let found = match &answer.body {
                Body::Json(body) => body.pointer(pointer).cloned(),
                Body::Events(events) => Value::Array(events.clone()).pointer(pointer).cloned(),
                Body::Text(_) => None,
            };
            let text = match found {
                Some(Value::String(text)) => text,
                Some(other) => other.to_string(),
                None => String::new(),
            };
            self.words.insert(word.clone(), text);
        }
        answer
    }

    fn ask(&mut self, step: &Step, request: &str) -> Answer {
        let call = self.call(step, request);
        let since = Instant::now();
        loop {
            let reply = match &step.watch {
                Some(name) => match self.server.watch(&call) {
                    Ok((reply, watch)) => {
                        self.watches.insert(name.clone(), watch);
                        reply
                    }
                    Err(reply) => reply,
                },
                None => self.server.call(&call),
            };
            let time = Timestamp::now();
            let mut body = body_of(&reply);
            if holds(&step.until, &reply, &body) || since.elapsed() > self.server.patience() {
                if let Body::Json(body) = &mut body {
                    step.pick.iter().for_each(|pick| choose(body, pick));
                }
                return Answer { title: step.title(), time, head: Some(reply), body };
            }
            self.server.pause();
        }
    }

    fn call(&self, step: &Step, request: &str) -> Call {
        let filled = fill(request, &self.words);
        let (method, target) = filled.split_once(' ').unwrap_or((&filled, "/"));
        let (method, implied) = match method {
            "MERGE" => ("PATCH", Some("application/merge-patch+json")),
            "JSON-PATCH" => ("PATCH", Some("application/json-patch+json")),
            "STRATEGIC" => ("PATCH", Some("application/strategic-merge-patch+json")),
            "APPLY" => ("PATCH", Some("application/apply-patch+yaml")),
            other => (other, None),
        };
        let body = match (&step.body, &step.text) {
            (Some(body), None) => Some(fill_value(body, &self.words).to_string().into_bytes()),
            (None, Some(text)) => Some(fill(text, &self.words).into_bytes()),
            (None, None) => None,
            (Some(_), Some(_)) => panic!("{} {}: both `body` and `text`", self.story, self.number),
        };
        let content = match step.content.as_deref() {
            Some("yaml") => Some("application/yaml".to_string()),
            Some("none") => None,
            Some(other) => Some(other.to_string()),
            None => implied.map(str::to_string).or(body.as_ref().map(|_| "application/json".to_string())),
        };
        let accept = step.accept.as_ref().map(|accept| fill(accept, &self.words));
        let accept = accept.as_deref().map(|accept| match accept {
            "table" => "application/json;as=Table;v=v1;g=meta.k8s.io",
            "partial" => "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            "partial-list" => "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            other => other,
        });
        Call {
            method: method.to_string(),
            target: target.to_string(),
            content,
            accept: accept.map(str::to_string),
            body,
            anonymous: step.anonymous,
        }
    }

    fn read(&mut self, name: &str, step: &Step) -> Vec<Value> {
        let mut events = Vec::new();
        let Some(watch) = self.watches.get_mut(name) else {
            return vec![Value::String(format!("no watch {name} is open"))];
        };
        let wanted = step.events.unwrap_or(usize::MAX);
        while events.len() < wanted {
            match watch.next() {
                Next::Line(line) => {
                    let event = serde_json::from_str(&line).unwrap_or(Value::String(line));
                    let bookmark = event["type"] == "BOOKMARK";
                    // Bookmarks on a schedule come when they like; only a step that waits for one sees it.
                    if bookmark && !step.bookmark && !initial(&event) {
                        continue;
                    }
                    events.push(event);
                    if bookmark && step.bookmark {
                        break;
                    }
                }
                Next::End => {
                    if !step.end {
                        events.push(Value::String("the watch ended".into()));
                    }
                    break;
                }
                Next::Silence => {
                    events.push(Value::String("the watch fell silent".into()));
                    break;
                }
            }
        }
        events
    }
}

fn body_of(reply: &Reply) -> Body {
    let text = String::from_utf8_lossy(&reply.body);
    let parsed = match reply.content.as_str() {
        "application/yaml" => serde_saphyr::from_str(&text).ok(),
        _ => serde_json::from_str(&text).ok(),
    };
    parsed.map_or_else(|| Body::Text(text.into_owned()), Body::Json)
}

/// Whether a bookmark ends the initial events of a streaming list.
fn initial(event: &Value) -> bool {
    event.pointer("/object/metadata/annotations/k8s.io~1initial-events-end").is_some()
}

fn holds(until: &BTreeMap<String, Value>, reply: &Reply, body: &Body) -> bool {
    until.iter().all(|(pointer, wanted)| match (pointer.as_str(), body) {
        ("code", _) => *wanted == reply.code,
        (pointer, Body::Json(body)) => body.pointer(pointer).unwrap_or(&Value::Null) == wanted,
        (_, Body::Text(_) | Body::Events(_)) => false,
    })
}

fn choose(body: &mut Value, pick: &Pick) {
    let stays = |name: &str| pick.of.iter().any(|of| of == name);
    match (body.pointer_mut(&pick.at), &pick.by) {
        (Some(Value::Array(items)), Some(by)) => {
            let name =
                |item: &Value| if by.starts_with('/') { item.pointer(by).cloned() } else { item.get(by).cloned() };
            items.retain(|item| name(item).as_ref().and_then(Value::as_str).is_some_and(stays));
        }
        (Some(Value::Object(fields)), None) => fields.retain(|key, _| stays(key)),
        _ => {}
    }
}
