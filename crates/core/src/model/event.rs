//! Something to tell people about an object, as a Kubernetes event. Never written here.

use serde::Serialize;

/// Something to tell people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Whether it is bad news.
    pub warning: bool,
    /// Its reason, one of the constants.
    pub reason: &'static str,
    /// The sentence.
    pub message: String,
}
