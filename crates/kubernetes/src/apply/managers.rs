//! `metadata.managedFields`: who owns what since when, on the wire and decoded.

use std::cmp::Ordering;

use jiff::Timestamp;
use serde::{Serialize, Serializer, ser::SerializeMap};

use super::fieldpath::{Set, write_json};
use crate::{
    clock::rfc3339,
    status::go_quoted,
    value::{Text, Value, intern},
};

/// `metadata.managedFields`, decoded: one entry per manager, operation, version and subresource, in the wire's order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Managers(pub(super) Vec<Owner>);

/// One entry of [`Managers`].
#[derive(Debug, Clone, PartialEq)]
pub struct Owner {
    /// The manager's name.
    pub manager: Text,
    /// How it wrote.
    pub operation: Operation,
    /// The version it wrote at: `apps/v1`.
    pub api_version: Text,
    /// What it wrote to: `status`, `scale`, …; empty for the object itself.
    pub subresource: Text,
    /// When it last changed something, to the second.
    pub time: Option<Timestamp>,
    /// What it owns.
    pub fields: Set,
}

/// How a manager wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By anything else.
    Update,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

impl Managers {
    /// Whether nobody owns anything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entries in the wire's order.
    pub fn owners(&self) -> &[Owner] {
        &self.0
    }

    /// Reads the wire's form; an error says what is wrong with it in upstream's words.
    pub fn parse(wire: &Value) -> Result<Managers, String> {
        let items = match wire {
            Value::Null => &[],
            wire => wire.as_list().ok_or("expected a list of managed fields entries")?,
        };
        items.iter().enumerate().map(|(i, item)| Owner::parse(i, item)).collect::<Result<_, _>>().map(Managers)
    }

    /// As on the wire.
    pub fn to_value(&self) -> Value {
        Value::list(self.0.iter().map(Owner::to_value))
    }

    /// Whether both name the same owners of the same fields, whenever they wrote. A write that changes nothing else must
    /// keep the old object (and its times) if this holds.
    pub fn same_but_for_times(&self, other: &Managers) -> bool {
        self.0.len() == other.0.len()
            && self
                .0
                .iter()
                .zip(&other.0)
                .all(|(a, b)| a.is(b) && a.api_version == b.api_version && a.fields == b.fields)
    }

    /// The entries to work on. Of two with one identity the last counts, as upstream reads them into a map.
    pub(super) fn distinct(&self) -> Vec<Owner> {
        let mut owners: Vec<Owner> = Vec::with_capacity(self.0.len() + 1);
        for owner in &self.0 {
            match owners.iter_mut().find(|other| other.is(owner)) {
                Some(other) => *other = owner.clone(),
                None => owners.push(owner.clone()),
            }
        }
        owners
    }

    /// Entries as they are stored: sorted, without those that own nothing.
    pub(super) fn of(mut owners: Vec<Owner>) -> Managers {
        owners.sort_by(Owner::order);
        Managers(owners)
    }
}

impl Owner {
    /// Whether both are the same manager in the same role. The version does not matter to who applies.
    pub(super) fn is(&self, other: &Owner) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    fn order(&self, other: &Owner) -> Ordering {
        let seconds = |owner: &Owner| owner.time.map_or(0, Timestamp::as_second);
        (self.operation.cmp(&other.operation))
            .then_with(|| seconds(self).cmp(&seconds(other)))
            .then_with(|| self.manager.cmp(&other.manager))
            .then_with(|| self.api_version.cmp(&other.api_version))
            .then_with(|| self.subresource.cmp(&other.subresource))
    }

    /// The text upstream sorts managers by.
    pub(super) fn identity(&self) -> String {
        let version = if self.operation == Operation::Apply { "" } else { self.api_version.as_str() };
        let fields = [
            ("manager", self.manager.as_str()),
            ("operation", self.operation.as_str()),
            ("apiVersion", version),
            ("subresource", self.subresource.as_str()),
        ];
        let mut out = String::from("{");
        for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
            if out.len() > 1 {
                out.push(',');
            }
            let mut json = String::new();
            let _ = write_json(&value.into(), &mut json); // a String takes anything
            out.push_str(&format!("\"{name}\":{json}"));
        }
        out + "}"
    }

    fn parse(i: usize, wire: &Value) -> Result<Owner, String> {
        let text = |key: &str| wire.get(key).and_then(Value::as_str).unwrap_or_default();
        let operation = match text("operation") {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err("operation must be `Apply` or `Update`".into()),
        };
        if text("apiVersion").is_empty() {
            return Err("apiVersion must not be empty".into());
        }
        match text("fieldsType") {
            "FieldsV1" => {}
            "" => return Err(format!("missing fieldsType in managed fields entry {i}")),
            other => return Err(format!("invalid fieldsType {} in managed fields entry {i}", go_quoted(other))),
        }
        let time = match wire.get("time") {
            None | Some(Value::Null) => None,
            Some(time) => {
                let time = time.as_str().and_then(|time| time.parse::<Timestamp>().ok());
                Some(whole_second(time.ok_or("time must be RFC 3339")?))
            }
        };
        Ok(Owner {
            manager: intern(text("manager")),
            operation,
            api_version: intern(text("apiVersion")),
            subresource: intern(text("subresource")),
            time,
            fields: Set::parse(wire.get("fieldsV1").unwrap_or(&Value::Null))?,
        })
    }

    fn to_value(&self) -> Value {
        let text = |text: &Text| (!text.is_empty()).then(|| Value::Str(text.clone()));
        let fields = [
            ("apiVersion", text(&self.api_version)),
            ("fieldsType", Some(FIELDS_V1.into())),
            ("fieldsV1", Some(self.fields.to_value())),
            ("manager", text(&self.manager)),
            ("operation", Some(self.operation.as_str().into())),
            ("subresource", text(&self.subresource)),
            ("time", self.time.map(|time| Value::Str(rfc3339(time)))),
        ];
        Value::Map(fields.into_iter().filter_map(|(key, value)| Some((intern(key), value?))).collect())
    }
}

const FIELDS_V1: &str = "FieldsV1";

/// `metav1.Time` knows no fractions.
pub(super) fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

impl Serialize for Managers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.0)
    }
}

impl Serialize for Owner {
    /// The same fields as [`to_value`](Owner::to_value), without building them.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(None)?;
        let text = |out: &mut S::SerializeMap, key, text: &Text| match text.is_empty() {
            true => Ok(()),
            false => out.serialize_entry(key, text.as_str()),
        };
        text(&mut out, "apiVersion", &self.api_version)?;
        out.serialize_entry("fieldsType", FIELDS_V1)?;
        out.serialize_entry("fieldsV1", &self.fields)?;
        text(&mut out, "manager", &self.manager)?;
        out.serialize_entry("operation", self.operation.as_str())?;
        text(&mut out, "subresource", &self.subresource)?;
        if let Some(time) = self.time {
            out.serialize_entry("time", rfc3339(time).as_str())?;
        }
        out.end()
    }
}
