//! The functions on values that may be absent.

use std::sync::Arc;

use super::{Function, lists::walked, one};
use crate::schema::cel::value::{Fault, Val, fault, list};

/// The function of this name.
pub(super) fn function(name: &str, method: bool) -> Option<Function> {
    Some(match (name, method) {
        ("optional.of", false) => |_, args| Ok(Val::Optional(Some(Arc::new(one(args)?.clone())))),
        ("optional.none", false) => |_, _| Ok(Val::Optional(None)),
        ("optional.ofNonZeroValue", false) => |_, args| {
            let value = one(args)?;
            Ok(Val::Optional((!is_zero(value)).then(|| Arc::new(value.clone()))))
        },
        ("optional.unwrap", false) | ("unwrapOpt", true) => |meter, args| {
            let mut out = Vec::new();
            for item in walked(meter, args)? {
                let Val::Optional(inner) = item else { return Err(Fault::Overload) };
                out.extend(inner.map(|value| (*value).clone()));
            }
            Ok(list(out))
        },
        ("hasValue", true) => |_, args| Ok(Val::Bool(optional(args)?.is_some())),
        ("value", true) => |_, args| match optional(args)? {
            Some(value) => Ok((**value).clone()),
            None => fault("optional.none() dereference"),
        },
        _ => return None,
    })
}

fn optional<'v, 'a>(args: &'v [Val<'a>]) -> Result<&'v Option<Arc<Val<'a>>>, Fault> {
    match args.first() {
        Some(Val::Optional(inner)) => Ok(inner),
        _ => Err(Fault::Overload),
    }
}

fn is_zero(value: &Val<'_>) -> bool {
    match value {
        Val::Null => true,
        Val::Bool(b) => !b,
        Val::Int(n) | Val::Duration(n) => *n == 0,
        Val::Uint(n) => *n == 0,
        Val::Double(f) => *f == 0.0,
        Val::Str(text) => text.is_empty(),
        Val::Bytes(bytes) => bytes.is_empty(),
        Val::Optional(inner) => inner.is_none(),
        other => other.len() == Some(0),
    }
}
