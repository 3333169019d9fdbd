//! Compares two plays of a story, and sets aside the differences that are known and accepted.

use std::{cell::Cell, fmt, fs, path::Path};

use serde::Deserialize;
use serde_json::Value;

/// One place where two answers differ.
#[derive(Debug, PartialEq)]
pub struct Miss {
    pub story: String,
    /// Counted from one.
    pub step: usize,
    pub title: String,
    /// JSON pointer into the answer.
    pub path: String,
    pub expected: Option<Value>,
    pub got: Option<Value>,
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(f, "{}:{} {}", self.story, self.step, self.title)?;
        writeln!(f, "    at       {}", self.path)?;
        writeln!(f, "    expected {}", short(&self.expected))?;
        write!(f, "    got      {}", short(&self.got))
    }
}

fn short(value: &Option<Value>) -> String {
    let Some(value) = value else { return "nothing".into() };
    let text = value.to_string();
    match text.char_indices().nth(600) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}

/// Where the answers of one story differ.
pub fn compare(story: &str, expected: &[Value], got: &[Value]) -> Vec<Miss> {
    let mut misses = Vec::new();
    for (number, (expected, got)) in expected.iter().zip(got).enumerate() {
        let title = expected["do"].as_str().unwrap_or_default();
        differ(expected, got, &mut String::new(), &mut |path, expected, got| {
            misses.push(Miss {
                story: story.into(),
                step: number + 1,
                title: title.into(),
                path: path.into(),
                expected: expected.cloned(),
                got: got.cloned(),
            });
        });
    }
    misses
}

fn differ(
    expected: &Value,
    got: &Value,
    path: &mut String,
    tell: &mut dyn FnMut(&str, Option<&Value>, Option<&Value>),
) {
    let length = path.len();
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => {
            let keys = expected.keys().chain(got.keys().filter(|key| !expected.contains_key(*key)));
            for key in keys {
                path.push('/');
                path.push_str(&key.replace('~', "~0").replace('/', "~1"));
                match (expected.get(key), got.get(key)) {
                    (Some(expected), Some(got)) => differ(expected, got, path, tell),
                    (expected, got) => tell(path, expected, got),
                }
                path.truncate(length);
            }
        }
        (Value::Array(expected), Value::Array(got)) => {
            for index in 0..expected.len().max(got.len()) {
                path.push_str(&format!("/{index}"));
                match (expected.get(index), got.get(index)) {
                    (Some(expected), Some(got)) => differ(expected, got, path, tell),
                    (expected, got) => tell(path, expected, got),
                }
                path.truncate(length);
            }
        }
        (expected, got) if expected == got => {}
        (expected, got) => tell(path, Some(expected), Some(got)),
    }
}

/// A difference that users of the embedded cluster can live with.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// The story it shows in.
    story: String,
    /// The step's request as written.
    step: String,
    /// JSON pointer: this place and all below it.
    at: String,
    /// What the real server says there, in part: for one of several steps that are written alike.
    #[serde(default)]
    real: String,
    /// Why that is fine.
    pub reason: String,
    #[serde(skip)]
    seen: Cell<bool>,
}

/// The list of known differences.
pub fn known(file: &Path) -> Vec<Known> {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let known: Vec<Known> = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    for entry in &known {
        assert!(!entry.reason.trim().is_empty(), "{}: {} gives no reason", file.display(), entry.step);
    }
    known
}

impl Known {
    /// Whether this is the difference meant. Remembers that it was seen.
    pub fn covers(&self, miss: &Miss) -> bool {
        let below =
            |path: &str| path.strip_prefix(&self.at).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let says = miss.expected.as_ref().map(Value::to_string).unwrap_or_default();
        let covers =
            self.story == miss.story && self.step == miss.title && below(&miss.path) && says.contains(&self.real);
        self.seen.set(self.seen.get() || covers);
        covers
    }

    /// What to say if it never showed.
    pub fn stale(&self) -> Option<String> {
        (!self.seen.get()).then(|| {
            format!("known.yaml: {} {} {} no longer differs; take it off the list", self.story, self.step, self.at)
        })
    }
}

#[test]
fn differences_are_named_by_their_place() {
    let miss = |path: &str, expected: Option<Value>, got: Option<Value>| Miss {
        story: "s".into(),
        step: 1,
        title: "GET /".into(),
        path: path.into(),
        expected,
        got,
    };
    use serde_json::json;
    assert_eq!(
        compare(
            "s",
            &[json!({"do": "GET /", "a": {"b/c": 1, "d": [1, 2]}, "e": 1})],
            &[json!({"do": "GET /", "a": {"b/c": 2, "d": [1]}, "f": 1})]
        ),
        [
            miss("/a/b~1c", Some(json!(1)), Some(json!(2))),
            miss("/a/d/1", Some(json!(2)), None),
            miss("/e", Some(json!(1)), None),
            miss("/f", None, Some(json!(1))),
        ]
    );
}
