//! Where a value stands in an object: the place a person looks at, and the place Argo Rollouts names for it.
//!
//! [`At`] is a chain on the stack that a parser carries down; it becomes a [`Path`] only when there is something to say,
//! so a walk over a good object allocates nothing. Never looks at the object itself.

use std::fmt;

use serde::Serialize;

use super::problem::Words;
use crate::kubernetes::{
    status::{FieldError, Rule},
    value::{Text, Value},
};

/// The keys and indices that lead from an object's root to one of its values.
///
/// A path may lead to a value that is absent: a reader of manifests points at the nearest ancestor that is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(pub Vec<Segment>);

/// One step of a [`Path`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// The field of an object, or the entry of a map.
    Key(Text),
    /// The item of a list.
    Index(usize),
}

impl Path {
    /// Reads a path as Kubernetes prints it: `spec.containers[0].resources.limits[cpu]`.
    ///
    /// A number in brackets is an index, anything else in brackets a key (which may hold dots).
    pub fn of_field(field: &str) -> Path {
        let mut segments = Vec::new();
        let mut rest = field;
        while !rest.is_empty() {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            if end > 0 {
                segments.push(Segment::Key(rest[..end].into()));
            }
            rest = &rest[end..];
            if let Some(bracketed) = rest.strip_prefix('[') {
                let (inner, after) = bracketed.split_once(']').unwrap_or((bracketed, ""));
                segments.push(inner.parse().map_or_else(|_| Segment::Key(inner.into()), Segment::Index));
                rest = after;
            }
            rest = rest.strip_prefix('.').unwrap_or(rest);
        }
        Path(segments)
    }

    /// The segments from the root on.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// The path of an entry below this one.
    pub fn join(&self, segment: Segment) -> Path {
        let mut segments = self.0.clone();
        segments.push(segment);
        Path(segments)
    }

    /// The value at this path, if it is there.
    pub fn find<'v>(&self, root: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(root, |value, segment| match segment {
            Segment::Key(key) => value.get(key),
            Segment::Index(index) => value.as_list()?.get(*index),
        })
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Key(key) if key.contains(['.', '[', ']']) || key.is_empty() => write!(f, "['{key}']")?,
                Segment::Key(key) if i > 0 => write!(f, ".{key}")?,
                Segment::Key(key) => f.write_str(key)?,
                Segment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// A place under inspection: a chain of borrowed steps.
#[derive(Clone, Copy)]
pub struct At<'p> {
    parent: Option<&'p At<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Root,
    Key(&'p str),
    /// A key that Argo Rollouts leaves out of the paths it prints.
    Silent(&'p str),
    Index(usize),
}

impl<'p> At<'p> {
    /// The object itself.
    pub const ROOT: At<'static> = At { parent: None, step: Step::Root };

    /// The field of this object.
    pub fn key(&'p self, key: &'p str) -> At<'p> {
        At { parent: Some(self), step: Step::Key(key) }
    }

    /// The field of this object, which Argo Rollouts does not mention: it says `spec.strategy.steps[0]` for
    /// `spec.strategy.canary.steps[0]`.
    pub fn silent(&'p self, key: &'p str) -> At<'p> {
        At { parent: Some(self), step: Step::Silent(key) }
    }

    /// The item of this list.
    pub fn index(&'p self, index: usize) -> At<'p> {
        At { parent: Some(self), step: Step::Index(index) }
    }

    /// The place in the manifest.
    pub fn path(&self) -> Path {
        let mut segments = self.parent.map(At::path).unwrap_or_default().0;
        match self.step {
            Step::Root => {}
            Step::Key(key) | Step::Silent(key) => segments.push(Segment::Key(key.into())),
            Step::Index(index) => segments.push(Segment::Index(index)),
        }
        Path(segments)
    }

    /// The place in the words of Argo Rollouts.
    pub fn field(&self) -> String {
        let mut field = self.parent.map(At::field).unwrap_or_default();
        match self.step {
            Step::Root | Step::Silent(_) => {}
            Step::Key(key) => {
                if !field.is_empty() {
                    field.push('.');
                }
                field.push_str(key);
            }
            Step::Index(index) => field.push_str(&format!("[{index}]")),
        }
        field
    }

    /// Argo Rollouts' words for a value here that is wrong.
    pub fn invalid(&self, value: impl Into<Value>, detail: impl Into<String>) -> Words {
        Words::Field(FieldError::invalid(self.field(), value, detail))
    }

    /// The same for a value that it prints as a struct.
    pub fn invalid_struct(&self, value: &impl Serialize, detail: impl Into<String>) -> Words {
        let rule = Rule::Printed(Box::new(Rule::Invalid(Value::Null)), go_json(value));
        Words::Field(FieldError { field: self.field(), rule, detail: detail.into() })
    }

    /// Argo Rollouts' words for a value that should be here.
    pub fn required(&self, detail: impl Into<String>) -> Words {
        Words::Field(FieldError::required(self.field(), detail))
    }

    /// Argo Rollouts' words where it calls a mistake here an internal error.
    pub fn internal(&self, detail: impl Into<String>) -> Words {
        Words::Field(FieldError::internal(self.field(), detail))
    }
}

/// A wire type as Go writes it: fields in Go's order, three characters of strings as escapes.
pub fn go_json(value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).unwrap_or_default();
    json.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn a_place_knows_where_it_is_and_what_argo_calls_it() {
        let spec = At::ROOT.key("spec");
        let strategy = spec.key("strategy");
        let canary = strategy.silent("canary");
        let steps = canary.key("steps");
        let weight = steps.index(2);
        let weight = weight.key("setWeight");
        assert_eq!(weight.path().to_string(), "spec.strategy.canary.steps[2].setWeight");
        assert_eq!(weight.field(), "spec.strategy.steps[2].setWeight");
    }

    #[test]
    fn paths_as_kubernetes_prints_them_lead_to_the_value() {
        let object = value!({"spec": {"containers": [{"limits": {"nvidia.com/gpu": 1}}]}});
        for (field, text, found) in [
            ("spec.containers[0].limits[nvidia.com/gpu]", "spec.containers[0].limits['nvidia.com/gpu']", true),
            ("spec.containers[1]", "spec.containers[1]", false),
            ("spec.containers[0", "spec.containers[0]", true),
            ("", "", true),
            ("[", "['']", false),
            ("spec..containers", "spec.containers", true),
        ] {
            let path = Path::of_field(field);
            assert_eq!(path.to_string(), text);
            assert_eq!(path.find(&object).is_some(), found, "{field}");
        }
    }
}
