//! Takes out of answers what may differ between two runs, and nothing else.
//!
//! A uid, a version or a made-up name becomes the number of the step that first showed it (`uid3`, `v3`), so that two
//! answers that mean the same object still say so. Versions keep their order: a version that is not newer than all
//! before it says where it belongs. A list's version only has to lie where it should between the versions of objects,
//! because a real cluster writes leases of its own in between.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use jiff::Timestamp;
use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

use super::{
    corpus::World,
    play::{Answer, Body},
};

/// The answers of one story in comparable form, one object per step.
///
/// In a busy world the order of writes by different controllers is nobody's promise, so versions say nothing there.
pub fn normalise(corpus: &str, world: World, answers: &[Answer]) -> Vec<Value> {
    let began = answers.first().map_or(Timestamp::now(), |answer| answer.time);
    let prefixes =
        PREFIX.captures_iter(corpus).map(|found| Regex::new(&format!("({})[a-z0-9]{{5}}\\b", &found[1])).unwrap());
    let mut names =
        Names { corpus, busy: world == World::Busy, began, prefixes: prefixes.collect(), ..Names::default() };
    for answer in answers {
        match &answer.body {
            Body::Json(body) => names.learn_hashes(body),
            Body::Events(events) => events.iter().for_each(|event| names.learn_hashes(event)),
            Body::Text(_) => {}
        }
    }
    answers.iter().map(|answer| names.answer(answer)).collect()
}

struct Names<'a> {
    /// The story as written: what stands there literally is no accident and stays.
    corpus: &'a str,
    busy: bool,
    began: Timestamp,
    now: Timestamp,
    step: usize,
    /// Whether this is inside a bookmark.
    bookmark: bool,
    uids: BTreeMap<String, String>,
    versions: BTreeMap<u64, String>,
    made_up: BTreeMap<String, String>,
    hashes: BTreeMap<String, String>,
    /// What names the story asks to be made up, to recognise those of objects that never came to be.
    prefixes: Vec<Regex>,
    addresses: BTreeMap<String, String>,
    future: BTreeMap<String, String>,
}

impl Default for Names<'_> {
    fn default() -> Self {
        Names {
            corpus: "",
            busy: false,
            began: Timestamp::UNIX_EPOCH,
            now: Timestamp::UNIX_EPOCH,
            step: 0,
            bookmark: false,
            prefixes: Vec::new(),
            uids: BTreeMap::new(),
            versions: BTreeMap::new(),
            made_up: BTreeMap::new(),
            hashes: BTreeMap::new(),
            addresses: BTreeMap::new(),
            future: BTreeMap::new(),
        }
    }
}

static UID: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").unwrap());
static TIME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)").unwrap());
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b10\.96\.\d+\.\d+\b").unwrap());
static PREFIX: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"generateName: ([\w-]+)").unwrap());
static AGE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^(\d+[ydhms])+( ago)?$").unwrap());
static VERSION: LazyLock<Regex> = LazyLock::new(|| {
    let before = r"resource ?version(?: in precondition| in object meta)?: |current: |version: \d+ \(|resourceversion in (?:the precondition|record) \(";
    Regex::new(&format!("(?i)({before})(\\d+)")).unwrap()
});

/// A value that an error quotes.
static QUOTED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#"Invalid value: ("\{(?:[^"\\]|\\.)*")"#).unwrap());

impl Names<'_> {
    fn answer(&mut self, answer: &Answer) -> Value {
        self.step += 1;
        self.now = answer.time;
        let mut entry = Map::new();
        entry.insert("do".into(), answer.title.clone().into());
        if let Some(head) = &answer.head {
            entry.insert("code".into(), head.code.into());
            if head.content != "application/json" {
                entry.insert("type".into(), head.content.clone().into());
            }
            if !head.warnings.is_empty() {
                let warnings = head.warnings.iter().map(|warning| json!(warning)).collect();
                entry.insert("warnings".into(), self.rewrite(Value::Array(warnings)));
            }
        }
        match &answer.body {
            Body::Json(body) => entry.insert("body".into(), self.value(body.clone())),
            Body::Events(events) => entry.insert("events".into(), self.value(Value::Array(events.clone()))),
            Body::Text(text) if text.is_empty() => None,
            Body::Text(text) => entry.insert("text".into(), self.text(text).into()),
        };
        Value::Object(entry)
    }

    fn value(&mut self, mut body: Value) -> Value {
        let mut versions = BTreeSet::new();
        self.learn(&body, false, &mut versions);
        let several = versions.len() > 1;
        for (n, version) in versions.into_iter().enumerate() {
            let name = if several { format!("v{}.{}", self.step, n + 1) } else { format!("v{}", self.step) };
            // Versions are named in ascending order, so whatever is above was known before this step.
            let name = match self.versions.range(version..).next() {
                Some((_, next)) => format!("{name}<{}", next.split('<').next().unwrap_or_default()),
                None => name,
            };
            self.versions.insert(version, name);
        }
        sort_by_meaning(&mut body);
        self.rewrite(body)
    }

    /// Finds versions and made-up names that are new in this answer.
    fn learn(&mut self, value: &Value, bookmark: bool, versions: &mut BTreeSet<u64>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.learn(item, bookmark, versions)),
            Value::Object(fields) => {
                let bookmark = bookmark || fields.get("type").is_some_and(|kind| kind == "BOOKMARK");
                if let Some(metadata) = fields.get("metadata").filter(|_| !bookmark && !is_list(fields)) {
                    if let Some(version) = metadata["resourceVersion"].as_str().and_then(|text| text.parse().ok())
                        && !self.versions.contains_key(&version)
                    {
                        versions.insert(version);
                    }
                    self.learn_name(metadata);
                }
                fields.values().for_each(|field| self.learn(field, bookmark, versions));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn learn_name(&mut self, metadata: &Value) {
        let (Some(prefix), Some(name)) = (metadata["generateName"].as_str(), metadata["name"].as_str()) else { return };
        let suffix = name.strip_prefix(prefix).unwrap_or_default();
        if suffix.len() != 5 || self.corpus.contains(name) || self.made_up.contains_key(name) {
            return;
        }
        let known = self.made_up.values().filter(|made| made.contains(&format!("{{{}", self.step))).count();
        let mark = if known == 0 { String::new() } else { format!(".{}", known + 1) };
        self.made_up.insert(name.into(), format!("{prefix}{{{}{mark}}}", self.step));
    }

    /// The hash of a pod template is a checksum of Go's memory layout: only that it is the same everywhere counts. Learnt
    /// from the whole play, because a Deployment names its ReplicaSet before anybody reads it.
    fn learn_hashes(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.learn_hashes(item)),
            Value::Object(fields) => {
                if let Some(Value::String(hash)) = fields.get("pod-template-hash") {
                    let count = self.hashes.len();
                    self.hashes.entry(hash.clone()).or_insert(format!("{{hash {}}}", count + 1));
                }
                fields.values().for_each(|field| self.learn_hashes(field));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn rewrite(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.rewrite(item)).collect()),
            Value::Object(fields) => self.rewrite_fields(fields),
            other => other,
        }
    }

    fn rewrite_fields(&mut self, fields: Map<String, Value>) -> Value {
        let list = is_list(&fields);
        let bookmark = fields.get("type").is_some_and(|kind| kind == "BOOKMARK");
        let mut rewritten = Map::new();
        for (key, value) in fields {
            let value = match (key.as_str(), value) {
                ("columnDefinitions", Value::Array(columns)) => self.columns(columns),
                ("metadata", Value::Object(metadata)) => self.metadata(metadata, list || self.bookmark),
                ("object", object) if bookmark => {
                    self.bookmark = true;
                    let object = self.rewrite(object);
                    self.bookmark = false;
                    object
                }
                ("cells", Value::Array(cells)) => Value::Array(
                    cells
                        .into_iter()
                        .map(|cell| match cell.as_str() {
                            Some(text) if AGE.is_match(text) => json!("an age"),
                            _ => self.rewrite(cell),
                        })
                        .collect(),
                ),
                ("nodePort" | "healthCheckNodePort", Value::Number(port))
                    if (30000..32768).contains(&port.as_u64().unwrap_or(0))
                        && !self.corpus.contains(&port.to_string()) =>
                {
                    let name = self.address(&port.to_string(), "port");
                    json!(name)
                }
                (_, value) => self.rewrite(value),
            };
            rewritten.insert(self.text(&key), value);
        }
        Value::Object(rewritten)
    }

    /// `metadata` of an object, or of a list or bookmark, whose versions are moments and not writes.
    fn metadata(&mut self, metadata: Map<String, Value>, moment: bool) -> Value {
        let mut rewritten = Map::new();
        for (key, value) in metadata {
            let value = match (key.as_str(), &value) {
                ("resourceVersion", Value::String(_)) if self.busy => json!("a version"),
                ("resourceVersion", Value::String(text)) => match (text.parse::<u64>(), moment) {
                    (Ok(version), true) => match self.versions.range(..=version).next_back() {
                        Some((_, name)) => json!(format!("at {name}")),
                        None => json!("at the start"),
                    },
                    (Ok(version), false) => self.versions.get(&version).map_or(value, |name| json!(name)),
                    (Err(_), _) => value,
                },
                ("continue", Value::String(text)) if !text.is_empty() => json!("a token"),
                _ => self.rewrite(value),
            };
            rewritten.insert(key, value);
        }
        Value::Object(rewritten)
    }

    /// The server's own descriptions of columns are prose, which the embedded cluster writes for itself.
    fn columns(&mut self, mut columns: Vec<Value>) -> Value {
        for column in columns.iter_mut().filter_map(Value::as_object_mut) {
            column.retain(|key, value| {
                key != "description"
                    || value.as_str().is_some_and(|text| !text.is_empty() && self.corpus.contains(text))
            });
        }
        self.rewrite(Value::Array(columns))
    }

    fn address(&mut self, address: &str, kind: &str) -> String {
        let first = format!("{kind}{}", self.step);
        let known = self.addresses.values().filter(|name| name.split('.').next() == Some(&first)).count();
        let name = if known == 0 { first } else { format!("{first}.{}", known + 1) };
        self.addresses.entry(address.to_string()).or_insert(name).clone()
    }

    fn text(&mut self, text: &str) -> String {
        let mut text = text.to_string();
        // Names first: the hash they carry is marked in what they become.
        for (name, mark) in self.made_up.iter().chain(&self.hashes) {
            if text.contains(name.as_str()) {
                text = text.replace(name.as_str(), mark);
            }
        }
        for prefix in &self.prefixes {
            if prefix.is_match(&text) {
                text = prefix.replace_all(&text, "$1{never}").into_owned();
            }
        }
        if QUOTED.is_match(&text) {
            let replaced =
                QUOTED.replace_all(&text, |found: &Captures| format!("Invalid value: {}", self.quoted(&found[1])));
            text = replaced.into_owned();
        }
        if UID.is_match(&text) {
            text = UID.replace_all(&text, |found: &Captures| self.uid(&found[0])).into_owned();
        }
        if TIME.is_match(&text) {
            text = TIME.replace_all(&text, |found: &Captures| self.time(&found[0])).into_owned();
        }
        if ADDRESS.is_match(&text) {
            let replaced = ADDRESS.replace_all(&text, |found: &Captures| {
                if self.corpus.contains(&found[0]) { found[0].to_string() } else { self.address(&found[0], "ip") }
            });
            text = replaced.into_owned();
        }
        if VERSION.is_match(&text) {
            let replaced = VERSION.replace_all(&text, |found: &Captures| {
                if found[1].starts_with("current") || found[1].starts_with("version") {
                    return format!("{}now", &found[1]);
                }
                let known = found[2].parse().ok().and_then(|version: u64| self.versions.get(&version));
                format!("{}{}", &found[1], known.map_or(&found[2], |name| name.as_str()))
            });
            text = replaced.into_owned();
        }
        text
    }

    /// A whole object quoted in a message: its fields stand in the order of some Go struct or map, which is no promise.
    fn quoted(&mut self, quoted: &str) -> String {
        let object = serde_json::from_str::<String>(quoted).ok().and_then(|text| serde_json::from_str(&text).ok());
        object.map_or_else(|| quoted.to_string(), |object: Value| json!(self.rewrite(object).to_string()).to_string())
    }

    fn uid(&mut self, uid: &str) -> String {
        if self.corpus.contains(uid) {
            return uid.to_string();
        }
        let step = self.step;
        let known = self.uids.values().filter(|name| name.split('.').next() == Some(&format!("uid{step}"))).count();
        let mark = if known == 0 { String::new() } else { format!(".{}", known + 1) };
        self.uids.entry(uid.to_string()).or_insert_with(|| format!("uid{step}{mark}")).clone()
    }

    /// A time of this run is "now"; one that lies ahead says by how much, to the nearest ten seconds; others stay.
    fn time(&mut self, text: &str) -> String {
        let Ok(time) = text.parse::<Timestamp>() else { return text.to_string() };
        let precision = if text.contains('.') { " (micro)" } else { "" };
        if let Some(known) = self.future.get(text) {
            return known.clone();
        }
        let ahead = time.as_second() - self.now.as_second();
        if time.as_second() < self.began.as_second() - 86_400 || ahead > 86_400 {
            return text.to_string();
        }
        if ahead <= 3 {
            return format!("now{precision}");
        }
        let name = format!("now+{}s{precision}", (ahead + 5) / 10 * 10);
        self.future.insert(text.to_string(), name.clone());
        name
    }
}

fn is_list(fields: &Map<String, Value>) -> bool {
    fields.contains_key("items") || fields.contains_key("rows")
}

/// Sorts what the real server gives in random order: causes (it walks maps), and managers of one second.
fn sort_by_meaning(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(sort_by_meaning),
        Value::Object(fields) => {
            if fields.get("kind").is_some_and(|kind| kind == "Status") {
                sort_causes(fields);
            }
            if let Some(Value::Array(managers)) = fields.get_mut("managedFields") {
                managers.sort_by_cached_key(|manager| {
                    ["operation", "manager", "apiVersion", "subresource"].map(|key| manager[key].to_string())
                });
            }
            fields.values_mut().for_each(sort_by_meaning);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn sort_causes(status: &mut Map<String, Value>) {
    let Some(Value::Array(causes)) = status.get_mut("details").and_then(|details| details.get_mut("causes")) else {
        return;
    };
    let sentence = |cause: &Value| {
        let (field, message) = (cause["field"].as_str().unwrap_or(""), cause["message"].as_str().unwrap_or(""));
        if field.is_empty() { message.to_string() } else { format!("{field}: {message}") }
    };
    let mut sentences: Vec<String> = causes.iter().map(sentence).collect();
    causes.sort_by_cached_key(Value::to_string);
    sentences.sort();
    sentences.dedup();
    // The message lists the same sentences in the same random order: `x is invalid: [a, b]`.
    let Some(Value::String(message)) = status.get_mut("message") else { return };
    let Some((before, listed)) =
        message.split_once('[').and_then(|(before, rest)| Some((before, rest.strip_suffix(']')?)))
    else {
        return;
    };
    let joined = sentences.join(", ");
    if joined.len() == listed.len() && sentences.iter().all(|sentence| listed.contains(sentence.as_str())) {
        *message = format!("{before}[{joined}]");
    }
}

#[cfg(test)]
mod tests {
    use super::super::server::Reply;
    use super::*;

    fn answer(body: Value) -> Answer {
        let head = Reply { code: 200, content: "application/json".into(), ..Reply::default() };
        let time = "2024-05-01T10:00:00Z".parse().unwrap();
        Answer { title: "GET /".into(), time, head: Some(head), body: Body::Json(body) }
    }

    #[track_caller]
    fn check(bodies: &[Value], expected: &[Value]) {
        let answers: Vec<Answer> = bodies.iter().cloned().map(answer).collect();
        let got: Vec<Value> =
            normalise("", World::Quiet, &answers).into_iter().map(|mut entry| entry["body"].take()).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn versions_keep_their_order_and_a_list_its_place() {
        let object = |version: &str| json!({"metadata": {"resourceVersion": version}});
        check(
            &[
                object("70"),
                object("90"),
                object("80"),
                json!({"metadata": {"resourceVersion": "95"}, "items": [object("70"), object("90")]}),
                json!({"metadata": {"resourceVersion": "60"}, "items": [object("100"), object("101")]}),
            ],
            &[
                object("v1"),
                object("v2"),
                object("v3<v2"),
                json!({"metadata": {"resourceVersion": "at v2"}, "items": [object("v1"), object("v2")]}),
                json!({"metadata": {"resourceVersion": "at the start"}, "items": [object("v5.1"), object("v5.2")]}),
            ],
        );
    }

    #[test]
    fn times_of_the_run_are_now_and_others_stay() {
        check(
            &[json!([
                "2024-05-01T10:00:01Z",
                "2024-05-01T10:00:29Z",
                "2024-05-01T10:00:00.123456Z",
                "2020-01-01T00:00:00Z"
            ])],
            &[json!(["now", "now+30s", "now (micro)", "2020-01-01T00:00:00Z"])],
        );
    }

    #[test]
    fn causes_are_sorted_in_the_list_and_in_the_message() {
        let status = |causes: [&str; 2]| {
            json!({"kind": "Status", "message": format!("a is invalid: [{}: x, {}: x]", causes[0], causes[1]),
                   "details": {"causes": causes.map(|field| json!({"field": field, "message": "x"}))}})
        };
        check(&[status(["b", "a"])], &[status(["a", "b"])]);
    }

    #[test]
    fn the_same_uid_has_the_same_name_everywhere() {
        let uid = "01234567-89ab-cdef-0123-456789abcdef";
        check(
            &[json!({"uid": uid}), json!({"message": format!("not {uid}, sorry")})],
            &[json!({"uid": "uid1"}), json!({"message": "not uid1, sorry"})],
        );
    }

    #[test]
    fn hashes_are_marked_within_names() {
        let labels = json!({"pod-template-hash": "x7f5"});
        check(
            &[json!({"metadata": {"generateName": "web-x7f5-", "name": "web-x7f5-abcde", "labels": labels}})],
            &[json!({"metadata": {"generateName": "web-{hash 1}-", "name": "web-{hash 1}-{1}",
                                  "labels": {"pod-template-hash": "{hash 1}"}}})],
        );
    }

    #[test]
    fn made_up_names_are_marked() {
        check(
            &[
                json!({"metadata": {"generateName": "web-", "name": "web-x7k2p"}}),
                json!("pods \"web-x7k2p\" not found"),
            ],
            &[json!({"metadata": {"generateName": "web-", "name": "web-{1}"}}), json!("pods \"web-{1}\" not found")],
        );
    }
}
