//! What a client asks of the store, and what it is told.

pub use crate::kubernetes::patch::PatchType;
use std::sync::Arc;

use crate::kubernetes::{
    kind::Kind,
    object::Object,
    status::Status,
    value::{Text, Value},
};

/// One request, already taken apart by the front.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// What to do.
    pub verb: Verb,
    /// The API group; empty for the core group.
    pub group: Text,
    /// The version: `v1`.
    pub version: Text,
    /// The resource: `replicasets`.
    pub resource: Text,
    /// The namespace; empty for none or all.
    pub namespace: Text,
    /// The object's name; empty for a collection.
    pub name: Text,
    /// `status`, `scale`, `eviction`, `binding`; empty for the object itself.
    pub subresource: Text,
    /// The object, patch or options sent along.
    pub body: Option<Value>,
    /// Keys that stood twice in the body, as [`parse`](crate::kubernetes::value::parse) names them.
    pub duplicates: Vec<String>,
    /// The query.
    pub options: Options,
    /// The client's name (its User-Agent up to the first slash): the field manager of writes that name none.
    pub agent: Text,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum Verb {
    #[default]
    Get,
    List,
    Create,
    Update,
    Patch(PatchType),
    Delete,
    DeleteCollection,
}

/// The query parameters, decoded.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `dryRun=All`
    pub dry_run: bool,
    /// `fieldManager`
    pub field_manager: Option<Text>,
    /// `force` of an apply.
    pub force: Option<bool>,
    /// `fieldValidation`
    pub field_validation: FieldValidation,
    /// `labelSelector`
    pub label_selector: String,
    /// `fieldSelector`
    pub field_selector: String,
    /// `limit`; 0 is none.
    pub limit: usize,
    /// `continue`
    pub continue_token: String,
    /// `resourceVersion`; `None` when absent or empty.
    pub resource_version: Option<String>,
    /// `resourceVersionMatch`
    pub resource_version_match: Option<String>,
    /// `timeoutSeconds`
    pub timeout_seconds: Option<u64>,
    /// `allowWatchBookmarks`
    pub bookmarks: bool,
    /// `sendInitialEvents`
    pub send_initial_events: Option<bool>,
    /// `gracePeriodSeconds`
    pub grace_period_seconds: Option<i64>,
    /// `propagationPolicy`: `Foreground`, `Background`, `Orphan`.
    pub propagation_policy: Option<Text>,
    /// `orphanDependents`, of old clients.
    pub orphan_dependents: Option<bool>,
}

/// What to do about unknown and duplicate fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldValidation {
    /// Drop them and say so in a warning (the server's default).
    #[default]
    Warn,
    /// Refuse the request.
    Strict,
    /// Drop them silently.
    Ignore,
}

/// What a request came to.
#[derive(Debug, Clone)]
pub struct Response {
    /// The HTTP code: 200, 201 or 202.
    pub code: u16,
    /// What to send back.
    pub answer: Answer,
    /// Warning headers.
    pub warnings: Vec<String>,
}

/// The body of a [`Response`].
#[derive(Debug, Clone)]
pub enum Answer {
    /// One object of a served kind.
    Object(Arc<Kind>, Arc<Object>),
    /// A list.
    List(Arc<Kind>, List),
    /// Something that is no stored object: a Scale, a Status with details of a deletion, a review.
    Value(Value),
}

/// A list as read at one version.
#[derive(Debug, Clone)]
pub struct List {
    /// The version it was read at.
    pub version: u64,
    /// Where to go on, if there is more.
    pub continue_token: Option<String>,
    /// How many are left after these, if that is known.
    pub remaining: Option<usize>,
    /// The objects in key order.
    pub items: Vec<Arc<Object>>,
}

/// What the store answers.
pub type Outcome = Result<Response, Status>;

impl Response {
    /// 200 with this body.
    pub fn ok(answer: Answer) -> Response {
        Response { code: 200, answer, warnings: Vec::new() }
    }

    /// The object of the answer: in full for one object, `None` for a list.
    pub fn object(&self) -> Option<&Arc<Object>> {
        match &self.answer {
            Answer::Object(_, object) => Some(object),
            Answer::List(..) | Answer::Value(_) => None,
        }
    }

    /// The items of the answer, if it is a list.
    pub fn items(&self) -> &[Arc<Object>] {
        match &self.answer {
            Answer::List(_, list) => &list.items,
            Answer::Object(..) | Answer::Value(_) => &[],
        }
    }
}
