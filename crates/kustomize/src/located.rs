//! Values of kustomization files with the place of each, and typed access to them in kustomize's terms: unknown fields
//! and wrong types are refused where they stand.

use std::rc::Rc;

use serde_json::Number;

use crate::{
    fault::{At, Fault, Res},
    read::Text,
    scalar,
};

/// Sorted pairs of texts.
pub type Pairs = Vec<(Rc<str>, Rc<str>)>;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct Located {
    pub at: At,
    pub yaml: Yaml,
    /// Written as a literal block: its lines stand in the file as they are.
    pub literal: bool,
}

#[derive(Clone, Debug)]
pub enum Yaml {
    Null,
    Bool(bool),
    Number(Number),
    Text(Rc<str>),
    List(Rc<[Located]>),
    Map(Rc<[Entry]>),
    /// The key `<<`.
    Merge,
}

/// A field of a map.
#[derive(Clone, Debug)]
pub struct Entry {
    pub name: Rc<str>,
    pub at: At,
    pub value: Located,
    /// The same key stood here before.
    pub first: Option<At>,
}

impl Yaml {
    pub fn as_key(&self) -> Option<Rc<str>> {
        match self {
            Yaml::Text(text) => Some(text.clone()),
            Yaml::Bool(value) => Some(value.to_string().into()),
            Yaml::Number(number) => Some(go_number(number).into()),
            Yaml::Merge => Some("<<".into()),
            Yaml::Null | Yaml::List(_) | Yaml::Map(_) => None,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Yaml::Null => "null",
            Yaml::Bool(_) => "a boolean",
            Yaml::Number(_) => "a number",
            Yaml::Text(_) | Yaml::Merge => "a string",
            Yaml::List(_) => "a list",
            Yaml::Map(_) => "a map",
        }
    }
}

fn go_number(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => scalar::go_shortest(float),
        _ => number.to_string(),
    }
}

impl Located {
    pub fn weight(&self) -> usize {
        match &self.yaml {
            Yaml::List(list) => 1 + list.iter().map(Located::weight).sum::<usize>(),
            Yaml::Map(map) => 1 + map.iter().map(|entry| entry.value.weight()).sum::<usize>(),
            _ => 1,
        }
    }

    pub fn to_json(&self) -> serde_json::Value {
        match &self.yaml {
            Yaml::Null => serde_json::Value::Null,
            Yaml::Bool(value) => (*value).into(),
            Yaml::Number(number) => serde_json::Value::Number(number.clone()),
            Yaml::Text(text) => text.as_ref().into(),
            Yaml::Merge => "<<".into(),
            Yaml::List(list) => list.iter().map(Located::to_json).collect(),
            Yaml::Map(map) => map.iter().map(|entry| (entry.name.to_string(), entry.value.to_json())).collect(),
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self.yaml, Yaml::Null)
    }
}

/// How a file is decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decode {
    /// Unknown fields are refused rather than skipped.
    pub strict: bool,
    /// Numbers and booleans are taken where a text is wanted.
    pub lenient: bool,
}

/// Kustomization files.
pub const STRICT: Decode = Decode { strict: true, lenient: false };
/// Configurations of transformers.
pub const CONFIGURATION: Decode = Decode { strict: true, lenient: true };
/// Plugins and replacement files.
pub const LENIENT: Decode = Decode { strict: false, lenient: true };

/// The fields of one map, as they are asked for.
pub struct Fields<'a> {
    decode: Decode,
    at: At,
    what: String,
    entries: &'a [Entry],
    known: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// Opens a map; null has no fields.
    pub fn of(decode: Decode, value: &'a Located, what: impl Into<String>) -> Res<Fields<'a>> {
        let what = what.into();
        let entries: &[Entry] = match &value.yaml {
            Yaml::Map(entries) => entries,
            Yaml::Null => &[],
            other => {
                return Err(Fault::new(format!("{what} must be a map, not {}", other.name())).at(value.at));
            }
        };
        Ok(Fields { decode, at: value.at, what, entries, known: Vec::new() })
    }

    pub fn at(&self) -> At {
        self.at
    }

    /// Opens another view of the same map, for fields that are listed in two groups.
    pub fn take(&mut self, name: &'static str) -> Option<&'a Entry> {
        self.known.push(name);
        // Go's decoder matches names without regard to case; of several the last in bytewise order stays.
        self.entries
            .iter()
            .filter(|entry| entry.name.eq_ignore_ascii_case(name) && !entry.value.is_null())
            .max_by(|a, b| a.name.cmp(&b.name))
    }

    fn called(&self, name: &str) -> String {
        if self.what.is_empty() { name.to_owned() } else { format!("{}.{name}", self.what) }
    }

    /// Refuses what nobody asked for.
    pub fn finish(self) -> Res<()> {
        if !self.decode.strict {
            return Ok(());
        }
        let unknown =
            self.entries.iter().find(|entry| !self.known.iter().any(|name| entry.name.eq_ignore_ascii_case(name)));
        let Some(entry) = unknown else { return Ok(()) };
        let what = match self.what.as_str() {
            "" => format!("unknown field {:?}", &*entry.name),
            what => format!("unknown field {:?} in {what}", &*entry.name),
        };
        let near = self.known.iter().min_by_key(|name| distance(name, &entry.name));
        let fault = Fault::new(what).at(entry.at);
        Err(match near {
            Some(near) if distance(near, &entry.name) <= 2 => fault.remedy(format!("did you mean {near}?")),
            _ => fault.remedy(format!("remove it; known are {}", self.known.join(", "))),
        })
    }

    pub fn text(&mut self, name: &'static str) -> Res<Option<Text>> {
        let called = self.called(name);
        self.take(name).map(|entry| text(self.decode, &entry.value, &called)).transpose()
    }

    /// A text that says something.
    pub fn filled(&mut self, name: &'static str) -> Res<Option<Text>> {
        Ok(self.text(name)?.filter(|text| !text.text.is_empty()))
    }

    /// A text without its place; absent is empty.
    pub fn word(&mut self, name: &'static str) -> Res<Rc<str>> {
        Ok(self.text(name)?.map_or_else(|| "".into(), |text| text.text))
    }

    pub fn flag(&mut self, name: &'static str) -> Res<bool> {
        let called = self.called(name);
        match self.take(name).map(|entry| &entry.value) {
            None => Ok(false),
            Some(Located { yaml: Yaml::Bool(value), .. }) => Ok(*value),
            Some(other) => Err(wrong(other, &called, "a boolean", "write true or false, without quotes")),
        }
    }

    pub fn integer(&mut self, name: &'static str) -> Res<Option<i64>> {
        let called = self.called(name);
        let Some(value) = self.take(name).map(|entry| &entry.value) else { return Ok(None) };
        let integer = match &value.yaml {
            Yaml::Number(number) => number.as_i64(),
            _ => None,
        };
        integer.map(Some).ok_or_else(|| wrong(value, &called, "an integer", "write a number without quotes"))
    }

    pub fn list(&mut self, name: &'static str) -> Res<Option<&'a [Located]>> {
        let called = self.called(name);
        match self.take(name).map(|entry| &entry.value) {
            None => Ok(None),
            Some(Located { yaml: Yaml::List(list), .. }) => Ok(Some(list)),
            Some(other) => Err(wrong(other, &called, "a list", "write its entries with a dash")),
        }
    }

    pub fn texts(&mut self, name: &'static str) -> Res<Vec<Text>> {
        let decode = self.decode;
        let called = format!("an entry of {}", self.called(name));
        let list = self.list(name)?.unwrap_or_default();
        // A null in a list of strings is an empty string.
        list.iter().map(|value| text(decode, value, &called)).collect()
    }

    /// A map of texts, sorted by key.
    pub fn pairs(&mut self, name: &'static str) -> Res<Option<Pairs>> {
        let called = self.called(name);
        let Some(entry) = self.take(name) else { return Ok(None) };
        let Yaml::Map(entries) = &entry.value.yaml else {
            return Err(wrong(&entry.value, &called, "a map", "write key: value"));
        };
        let mut pairs = Vec::with_capacity(entries.len());
        for entry in entries.iter() {
            let value = text(self.decode, &entry.value, &format!("{called}.{}", entry.name))?;
            pairs.push((entry.name.clone(), value.text));
        }
        pairs.sort();
        Ok(Some(pairs))
    }
}

/// A value where a text is wanted; null is an empty one.
pub fn text(decode: Decode, value: &Located, called: &str) -> Res<Text> {
    let text: Rc<str> = match &value.yaml {
        Yaml::Text(text) => text.clone(),
        Yaml::Merge => "<<".into(),
        Yaml::Null => "".into(),
        Yaml::Bool(_) | Yaml::Number(_) if decode.lenient => value.yaml.as_key().unwrap_or_default(),
        Yaml::Bool(_) | Yaml::Number(_) | Yaml::List(_) | Yaml::Map(_) => {
            return Err(wrong(value, called, "a string", "quote it"));
        }
    };
    // The place of a block is that of its first line that is not empty.
    let blank = text.bytes().take_while(|byte| *byte == b'\n').count() as u32;
    let lines = value.literal.then_some((value.at.line.saturating_sub(blank), value.at.column));
    Ok(Text { at: value.at, text, lines })
}

fn wrong(value: &Located, called: &str, wanted: &str, remedy: &str) -> Box<Fault> {
    let hint = match &value.yaml {
        Yaml::Bool(_) if wanted == "a string" => {
            "quote it: kustomization files are YAML 1.1, where y, n, on, off, yes and no are booleans"
        }
        Yaml::List(_) | Yaml::Map(_) if wanted == "a string" => "write one string here",
        _ => remedy,
    };
    Fault::new(format!("{called} must be {wanted}, not {}", value.yaml.name())).at(value.at).remedy(hint)
}

/// How many edits two words are apart, by letters of any case.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}
