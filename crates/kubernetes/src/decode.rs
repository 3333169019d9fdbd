//! Bodies to objects as a kind understands them: decoding and defaults, built-in and custom kinds alike.
//!
//! The store does this to what clients send, and a comparison of git with a cluster to what it would send. Never judges
//! whether an object may be stored.

use std::sync::{Arc, LazyLock};

use super::{
    builtin, facts,
    kind::Kind,
    schema::{self, Schema, crd, embedded, prune, typed},
    value::Value,
};

/// An object as its kind understands it, and what the client should be told about it.
pub struct Decoded {
    /// The object.
    pub value: Value,
    /// `unknown field "spec.foo"`, `duplicate field "spec.bar"`.
    pub strict: Vec<String>,
}

/// Reads a body as an object of this kind; the error is what Go's decoder would have said. What is shared with `old`, an
/// object that was decoded before, is taken as it is.
pub fn decode(kind: &Kind, body: &Value, old: Option<&Value>, duplicates: &[String]) -> Result<Decoded, String> {
    let mut strict: Vec<String> = duplicates.iter().map(|path| format!("duplicate field {path:?}")).collect();
    let (mut value, unknown) = if kind.custom().is_none() {
        let decoded = typed::decode_since(kind, &kind.schema, body, old.unwrap_or(&Value::Null))?;
        (decoded.value, decoded.unknown)
    } else {
        decode_custom(kind, body, old)?
    };
    strict.extend(unknown.iter().map(|path| format!("unknown field {path:?}")));
    if !value.str_at(&["apiVersion"]).is_some_and(|said| kind.has_api_version(said)) {
        value.set_at(&["apiVersion"], kind.api_version());
    }
    if value.str_at(&["kind"]) != Some(&kind.kind) {
        value.set_at(&["kind"], &kind.kind);
    }
    Ok(Decoded { value, strict })
}

/// A custom resource is pruned by its schema; its metadata is as typed as everybody's.
fn decode_custom(kind: &Kind, body: &Value, old: Option<&Value>) -> Result<(Value, Vec<String>), String> {
    let mut value = body.clone();
    let mut unknown = prune::prune_since(&kind.schema, &mut value, old);
    unknown.extend(schema::embedded::coerce(kind, &mut value)?);
    let decoded_before = old.and_then(|old| old.get("metadata"));
    if let Some(metadata) = value.get("metadata").filter(|new| !decoded_before.is_some_and(|old| old.is(new))) {
        let decoded = typed::decode(kind, &OBJECT_META, metadata)?;
        if !decoded.value.is(metadata) {
            value.set_at(&["metadata"], decoded.value);
        }
        unknown.extend(decoded.unknown.iter().map(|path| format!("metadata.{path}")));
    }
    unknown.extend(embedded::coerce(kind, &mut value)?);
    Ok((value, unknown))
}

/// The type of the metadata of custom resources.
static OBJECT_META: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let any = facts::kinds().iter().find_map(|kind| kind.schema.child("metadata").cloned());
    any.unwrap_or_else(|| Arc::new(Schema::default()))
});

/// Fills in defaults. What is shared with `old` has them.
pub fn default(kind: &Kind, value: &mut Value, old: Option<&Value>) {
    if kind.custom().is_some() {
        schema::default::fill_since(&kind.schema, value, old);
        return;
    }
    builtin::default_since(kind, value, old.unwrap_or(&Value::Null));
    if is_crd(kind) {
        crd::default(value);
    }
}

/// Whether objects of this kind define other kinds.
pub fn is_crd(kind: &Kind) -> bool {
    kind.is("apiextensions.k8s.io", "CustomResourceDefinition")
}
