//! What the real server does to objects of built-in kinds beyond decoding them: defaults, preparation, validation.
//!
//! One file per family of kinds. A write goes through [`default()`], then [`prepare_create`] or [`prepare_update`], then
//! [`validate_create`] or [`validate_update`]; all are pure functions of the object (and of the object before), and
//! whatever else a preparation may look at is in its [`Context`]. Metadata is validated by the store; custom resources
//! never come here.

pub mod addresses;
pub mod default;

use jiff::Timestamp;

pub use addresses::Addresses;
pub use default::default;

use super::{
    kind::Kind,
    status::{FieldError, Status},
    value::{Text, Value},
};

/// What preparing an object may need to know beside the object.
#[derive(Debug)]
pub struct Context<'a> {
    /// The time of the request.
    pub now: Timestamp,
    /// The uid the store gives (or gave) the object.
    pub uid: Text,
    /// `status`, `scale`, …; empty for a write to the object itself.
    pub subresource: &'a str,
    /// A number that is different for each write: what is random on the real server follows from it here.
    pub seed: u64,
    /// What the Services of the cluster hold.
    pub addresses: &'a Addresses,
}

/// Makes an object that a client wants to create what the server stores: status reset, fields the server owns filled in.
/// `value` is decoded, defaulted and has its final name. An error is what admission or an allocator says no to.
pub fn prepare_create(_kind: &Kind, _value: &mut Value, _context: &mut Context<'_>) -> Result<(), Status> {
    Ok(())
}

/// Makes an object that a client wants to write over `old` what the server stores: status kept on a write to the object,
/// everything else kept on a write to `/status` (see [`Context::subresource`]).
pub fn prepare_update(
    _kind: &Kind,
    _value: &mut Value,
    _old: &Value,
    _context: &mut Context<'_>,
) -> Result<(), Status> {
    Ok(())
}

/// The rules a new object breaks, in upstream's order; the store puts those of its metadata before them.
pub fn validate_create(_kind: &Kind, _value: &Value) -> Vec<FieldError> {
    Vec::new()
}

/// The rules that the change from `old` breaks. `subresource` is empty for a write to the object itself.
pub fn validate_update(_kind: &Kind, _subresource: &str, _value: &Value, _old: &Value) -> Vec<FieldError> {
    Vec::new()
}

/// What is wrong with this name for an object of this kind, in upstream's words.
pub fn validate_name(_kind: &Kind, _name: &str) -> Vec<String> {
    Vec::new()
}
