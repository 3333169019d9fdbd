//! How a plan compares with a cluster: what applying it would do there, and what is not part of the change.

use crate::sync::id::Id;

/// How a plan compares with a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Live {
    /// The name of the cluster.
    pub cluster: String,
    /// The objects that are not as the new side wants them.
    pub objects: Vec<LiveObject>,
    /// What is no longer in git.
    pub prune: Vec<Pruned>,
    /// What could not be read, and why: forecasts take for granted that it is as its manifests say.
    pub unseen: Vec<String>,
}

/// An object in the cluster beside both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveObject {
    /// The object.
    pub id: Id,
    /// What this change does to the live object; empty if nothing.
    pub change: String,
    /// How the live object differs from the old side: not part of this change; empty if it does not.
    pub drift: String,
    /// What the server says to a dry run; empty if it accepts it.
    pub refused: String,
}

/// An object that is no longer in git.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pruned {
    /// The object.
    pub id: Id,
    /// Whether it is deleted.
    pub removed: bool,
    /// Why, or why not.
    pub reason: String,
}
