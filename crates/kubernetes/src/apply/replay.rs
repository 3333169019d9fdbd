//! Sequences of writes recorded from a real kube-apiserver, replayed step by step.
//!
//! `testdata/record.py` made them. Each step starts from the recorded object, so one wrong step does not hide the next.

use std::sync::Arc;

use jiff::Timestamp;

use super::{Managers, Who, apply, apply_scale, scaled, updated};
use crate::{
    facts,
    kind::Kind,
    object::Object,
    patch,
    schema::{self, crd},
    value::{Value, intern, parse},
};

struct Step<'a> {
    kind: &'a Kind,
    step: &'a Value,
    live: Option<Object>,
}

#[test]
fn recorded_sequences_end_as_on_the_real_server() {
    let mut lines = include_str!("testdata/recorded.jsonl").lines().map(|line| parse(line.as_bytes()).unwrap().value);
    let mut definition = lines.next().unwrap().get("crd").unwrap().clone();
    crd::default(&mut definition);
    let thing = Arc::new(crd::kinds(&definition).remove(0));
    let (mut sequences, mut steps, mut wrong) = (0, 0, Vec::new());
    for sequence in lines {
        sequences += 1;
        let name = sequence.str_at(&["name"]).unwrap();
        let kind = match sequence.str_at(&["kind"]).unwrap() {
            "Thing" => &thing,
            "Deployment" => facts::kind("apps", "v1", "Deployment").unwrap(),
            core => facts::kind("", "v1", core).unwrap(),
        };
        let mut live = Value::Null;
        for (i, step) in sequence.list_at(&["steps"]).iter().enumerate() {
            steps += 1;
            live = step.get("live").unwrap_or(&live).clone();
            if let Err(difference) = (Step { kind, step, live: object(&live) }).check() {
                wrong.push(format!("{name}[{i}] {}: {difference}", step.get("body").unwrap()));
            }
            if step.int_at(&["code"]) < Some(300) {
                live = step.get("after").or(step.get("answer")).unwrap().clone();
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {steps} steps differ\n\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(sequences >= 60, "only {sequences} sequences of {steps} steps");
}

impl Step<'_> {
    fn text(&self, key: &str) -> &str {
        self.step.str_at(&[key]).unwrap_or_default()
    }

    fn check(&self) -> Result<(), String> {
        let answer = self.step.get("answer").unwrap();
        let refused = self.step.int_at(&["code"]) >= Some(300);
        let after = self.step.get("after").unwrap_or(answer);
        match (self.text("do"), refused) {
            ("apply", refused) => match (self.applied(after), refused) {
                (Err(status), _) => same("refusal", &ordered(&status), &ordered(answer)),
                // The server refused later, in decoding or validation.
                (Ok(_), true) if answer.get("details").is_some_and(|details| details.get("kind").is_some()) => Ok(()),
                (Ok((value, _)), true) => Err(format!("accepted as {value}, not refused with {answer}")),
                (Ok((value, managers)), false) => {
                    self.same_owners(&managers, after)?;
                    match self.text("sub") {
                        "scale" => same("replicas", spec_replicas(&value), spec_replicas(answer)),
                        _ => same("object", &self.plain(&value), &self.plain(answer)),
                    }
                }
            },
            (_, true) => Ok(()),
            (_, false) => self.same_owners(&self.written(answer, after), after),
        }
    }

    fn same_owners(&self, ours: &Managers, after: &Value) -> Result<(), String> {
        let theirs = Managers::parse(wire(after)).unwrap();
        if self.text("sub") == "scale" {
            // The parent was read a moment later, when a controller may have written its status.
            let spec = |managers: &Managers| managers.0.iter().filter(|o| o.subresource != "status").cloned().collect();
            return same("managedFields", &Managers(spec(ours)).to_value(), &Managers(spec(&theirs)).to_value());
        }
        match self.live.as_ref().filter(|live| live.value.at(VERSION) == after.at(VERSION)) {
            // Nothing was stored, so no time moved.
            Some(live) if ours.same_but_for_times(&live.managers) => Ok(()),
            _ => same("managedFields", &ours.to_value(), wire(after)),
        }
    }

    /// Who wrote when. The time is that of the answer, so that whole managedFields can be compared.
    fn who(&self, after: &Value) -> Who {
        let times = |value: &Value| -> Vec<Timestamp> {
            let entries = value.as_list().unwrap_or_default().iter();
            entries.filter_map(|entry| entry.str_at(&["time"])).map(|time| time.parse().unwrap()).collect()
        };
        let before = self.live.as_ref().map(|live| times(&live.managers.to_value())).unwrap_or_default();
        let now = times(wire(after)).into_iter().filter(|time| !before.contains(time)).max();
        Who {
            manager: intern(self.text("as")),
            subresource: intern(self.text("sub")),
            now: now.unwrap_or_else(|| "2099-01-01T00:00:00Z".parse().unwrap()),
        }
    }

    fn applied(&self, after: &Value) -> Result<(Value, Managers), Value> {
        let force = self.step.get("force").and_then(Value::as_bool).unwrap_or_default();
        let (patch, who) = (self.step.get("body").unwrap(), self.who(after));
        let outcome = match self.text("sub") {
            "scale" => {
                let scale = self.step.get("scale").unwrap();
                apply_scale(self.kind, self.live.as_ref().unwrap(), scale, patch, &who, force)
            }
            _ => apply(self.kind, self.live.as_ref(), patch, &who, force),
        };
        outcome.map_err(|status| status.to_value())
    }

    /// The owners after a write that was no apply. What the server made of the object stands for what was sent.
    fn written(&self, answer: &Value, after: &Value) -> Managers {
        let who = self.who(after);
        if self.text("sub") == "scale" {
            let scale = self.step.get("scale").unwrap();
            return scaled(self.kind, self.live.as_ref().unwrap(), scale, answer, &who);
        }
        let mut new = match (self.text("do"), &self.live) {
            // The server resets what the door does not let through only after it has looked at who owns it.
            ("merge", Some(live)) if self.kind.custom().is_some() => {
                patch::merge(&live.value, self.step.get("body").unwrap())
            }
            _ => answer.clone(),
        };
        new.remove_at(&["metadata", "managedFields"]);
        let body = self.step.get("body").unwrap();
        let sent = body.at(&["metadata", "managedFields"]).or_else(|| {
            let patched = body.as_list()?.iter().find(|op| op.str_at(&["path"]) == Some("/metadata/managedFields"))?;
            patched.get("value")
        });
        if let Some(sent) = sent {
            new.set_at(&["metadata", "managedFields"], sent);
        }
        updated(self.kind, self.live.as_ref(), &new, &who)
    }
}

impl Step<'_> {
    /// What an apply through this door decides of an object. Defaults and dropped fields are the store's to see to.
    fn plain(&self, value: &Value) -> Value {
        let mut value = value.clone();
        if self.kind.custom().is_some() {
            schema::prune::prune(&self.kind.schema, &mut value);
            schema::default::fill(&self.kind.schema, &mut value);
        }
        for key in ["resourceVersion", "generation", "managedFields", "uid", "creationTimestamp"] {
            value.remove_at(&["metadata", key]);
        }
        match self.text("sub") {
            "status" => value.remove_at(&["spec"]),
            _ => value.remove_at(&["status"]),
        };
        without_blanks(&value)
    }
}

const VERSION: &[&str] = &["metadata", "resourceVersion"];

/// A refusal with its causes in one order: Go's is any.
fn ordered(status: &Value) -> Value {
    let mut causes: Vec<Value> = status.list_at(&["details", "causes"]).to_vec();
    causes.sort_by_key(Value::to_json);
    let mut status = status.clone();
    if !causes.is_empty() {
        status.set_at(&["details", "causes"], causes);
    }
    status
}

fn object(live: &Value) -> Option<Object> {
    let mut value = live.as_map().map(|_| live.clone())?;
    let managers = value.remove_at(&["metadata", "managedFields"]).unwrap_or_default();
    Some(Object { value, managers: Arc::new(Managers::parse(&managers).unwrap()) })
}

fn wire(value: &Value) -> &Value {
    static NONE: std::sync::LazyLock<Value> = std::sync::LazyLock::new(|| Value::list([]));
    value.at(&["metadata", "managedFields"]).unwrap_or(&NONE)
}

fn spec_replicas(scale: &Value) -> &Value {
    scale.at(&["spec", "replicas"]).unwrap_or(&Value::Null)
}

#[track_caller]
fn same(what: &str, ours: &Value, theirs: &Value) -> Result<(), String> {
    if ours == theirs { Ok(()) } else { Err(format!("{what}\n   ours: {ours}\n theirs: {theirs}")) }
}

fn without_blanks(value: &Value) -> Value {
    match value {
        Value::Map(map) => {
            let fields = map.iter().map(|(key, value)| (key.clone(), without_blanks(value)));
            let blank = |value: &Value| value.is_null() || value.as_map().is_some_and(|map| map.is_empty());
            Value::Map(fields.filter(|(_, value)| !blank(value)).collect())
        }
        Value::List(items) => Value::list(items.iter().map(without_blanks)),
        other => other.clone(),
    }
}
