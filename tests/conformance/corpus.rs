//! The corpus as written: YAML files of steps, each of which is one request or one look at a watch.
//!
//! ```yaml
//! let: {cm: /api/v1/namespaces/versions/configmaps}     # used as ${cm}
//! steps:
//! - do: POST ${cm}?fieldManager=me                      # any method, or MERGE, JSON-PATCH, STRATEGIC, APPLY for a patch
//!   body: {metadata: {name: a}}                         # sent as JSON; `text` sends bytes as they stand
//!   keep: {rv: /metadata/resourceVersion}               # remembers a part of the answer as ${rv}
//! - do: GET ${cm}?watch=1&resourceVersion=${rv}&timeoutSeconds=20
//!   watch: w                                            # leaves the answer open under a name
//! - read: w                                             # looks at the next events: a number of them, or up to the end
//!   events: 2
//! - forget: ${rv}                                       # the server forgets all that happened up to this version
//! - do: GET ${cm}/a
//!   until: {code: 404}                                  # asks again until controllers have done their work
//! ```

use std::{collections::BTreeMap, fs, path::Path};

use serde::Deserialize;
use serde_json::Value;

/// One file: a story that owns its namespaces and groups, so that stories do not see each other.
#[derive(Debug)]
pub struct Story {
    /// The file's name without its ending.
    pub name: String,
    /// The file as written.
    pub text: String,
    /// Who else writes.
    pub world: World,
    /// Words used in the steps.
    pub words: BTreeMap<String, String>,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

/// Who writes besides the story.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum World {
    /// Only what the API cannot be imagined without: the garbage collector, and who empties deleted namespaces.
    Quiet,
    /// The controllers of a cluster, but no kubelet and no scheduler.
    Busy,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default, rename = "let")]
    words: BTreeMap<String, String>,
    /// Objects shared by anchors; not read otherwise.
    #[serde(default, rename = "with")]
    _with: Value,
    steps: Vec<Step>,
}

/// One operation.
#[derive(Debug, Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The request line: `METHOD path?query`.
    #[serde(default, rename = "do")]
    pub request: Option<String>,
    /// The content type of the body: a short name or a media type.
    #[serde(default, rename = "as")]
    pub content: Option<String>,
    /// What to ask for: a short name or a media type.
    #[serde(default)]
    pub accept: Option<String>,
    /// The body, as JSON.
    #[serde(default)]
    pub body: Option<Value>,
    /// The body, byte for byte.
    #[serde(default)]
    pub text: Option<String>,
    /// Without the token.
    #[serde(default)]
    pub anonymous: bool,
    /// Name → JSON pointer into the answer.
    #[serde(default)]
    pub keep: BTreeMap<String, String>,
    /// JSON pointer (or `code`) → the value to wait for; null waits for absence.
    #[serde(default)]
    pub until: BTreeMap<String, Value>,
    /// Compare only a part of the answer.
    #[serde(default)]
    pub pick: Vec<Pick>,
    /// Leaves the answer open under this name.
    #[serde(default)]
    pub watch: Option<String>,
    /// The server forgets its history up to this version, as it does in time.
    #[serde(default)]
    pub forget: Option<String>,
    /// Reads from the watch of this name.
    #[serde(default)]
    pub read: Option<String>,
    /// How many events to read.
    #[serde(default)]
    pub events: Option<usize>,
    /// Read until the server ends the watch.
    #[serde(default)]
    pub end: bool,
    /// Read until a bookmark came.
    #[serde(default)]
    pub bookmark: bool,
}

/// A part of an answer: some entries of a list or of a map.
#[derive(Debug, Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct Pick {
    /// JSON pointer to the list or map.
    pub at: String,
    /// The field that names an entry of a list, or a JSON pointer to it.
    #[serde(default)]
    pub by: Option<String>,
    /// The entries that stay.
    pub of: Vec<String>,
}

impl Step {
    /// How a report calls this step.
    pub fn title(&self) -> String {
        match (&self.request, &self.read, &self.forget) {
            (Some(request), _, _) => request.clone(),
            (None, Some(watch), _) => format!("read {watch}"),
            (None, None, Some(version)) => format!("forget {version}"),
            (None, None, None) => "nothing".into(),
        }
    }
}

impl Story {
    /// Whether the server is made to forget. That is no request, so it works on a real server (through its etcd) and in
    /// process, and it disturbs other stories.
    pub fn forgets(&self) -> bool {
        self.steps.iter().any(|step| step.forget.is_some())
    }
}

/// Reads all stories, in the order of their names: `corpus/` and, with controllers, `world/`.
pub fn stories(folder: &Path) -> Vec<Story> {
    let quiet = stories_of(&folder.join("corpus"), World::Quiet);
    quiet.into_iter().chain(stories_of(&folder.join("world"), World::Busy)).collect()
}

fn stories_of(folder: &Path, world: World) -> Vec<Story> {
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "yaml"))
        .collect();
    paths.sort();
    paths.iter().map(|path| story(path, world)).collect()
}

fn story(path: &Path, world: World) -> Story {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let yaml_1_2 = serde_saphyr::options! { strict_booleans: true };
    let file: File = serde_saphyr::from_str_with_options(&text, yaml_1_2)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for (number, step) in file.steps.iter().enumerate() {
        assert!(
            [&step.request, &step.read, &step.forget].iter().filter(|what| what.is_some()).count() == 1,
            "{}: step {} needs one of `do`, `read` and `forget`",
            path.display(),
            number + 1
        );
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = if world == World::Busy { format!("world-{name}") } else { name.into_owned() };
    Story { name, text, world, words: file.words, steps: file.steps }
}

/// Puts the words in: `${rv}`. An unknown word stays, so that it shows up in the answer.
pub fn fill(text: &str, words: &BTreeMap<String, String>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else { break };
        filled.push_str(&rest[..start]);
        match words.get(&rest[start + 2..start + length]) {
            // A word may use other words.
            Some(word) => filled.push_str(&fill(word, words)),
            None => filled.push_str(&rest[start..=start + length]),
        }
        rest = &rest[start + length + 1..];
    }
    filled + rest
}

/// Puts the words into every string of a body.
pub fn fill_value(value: &Value, words: &BTreeMap<String, String>) -> Value {
    match value {
        Value::String(text) => Value::String(fill(text, words)),
        Value::Array(items) => items.iter().map(|item| fill_value(item, words)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (fill(key, words), fill_value(value, words))).collect()
        }
        other => other.clone(),
    }
}

#[test]
fn words_are_put_in_and_directives_stay() {
    let words = BTreeMap::from([("a".into(), "1".into()), ("b".into(), "x${a}y".into())]);
    assert_eq!(fill("/${b}/${a}?$patch=${c}&d=${", &words), "/x1y/1?$patch=${c}&d=${");
}
