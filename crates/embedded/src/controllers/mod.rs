//! The world around the store: what makes pods, moves them and cleans up after them.
//!
//! Each controller decides with functions of what it read, and does with [`hands`]: ordinary API requests in the names of
//! the real ones, so that versions, generations, managed fields, events and watch events look as they would. [`World`]
//! turns the store's changes into keys to look at, one key per [step](World::step), and knows when to look again.
//!
//! ```text
//! store ── changes ──▶ notice ──▶ queue of tasks ──▶ one task: read, decide, write ──▶ store
//!                                      ▲                          │
//!                                      └──── timers ◀── when to look again
//! ```
//!
//! A world is never saved: after a restart it looks at every object once, and times are read from the objects. Which task
//! comes first, and how long pods take, a seed decides. It never blocks, sleeps or looks at a clock.
//!
//! | file | plays |
//! |---|---|
//! | [`replicaset`] | ReplicaSets |
//! | [`deployment`] | Deployments |
//! | [`job`] | Jobs, and their time to live |
//! | [`endpointslice`] | EndpointSlices of Services |
//! | [`pdb`], [`disruption`] | PodDisruptionBudgets and evictions |
//! | [`quota`] | ResourceQuotas on the number of objects |
//! | [`hpa`] | HorizontalPodAutoscalers, on values given by annotation |
//! | [`gc`] | the garbage collector |
//! | [`namespace`] | the emptying of namespaces |
//! | [`node`] | nodes that are lost |
//! | [`kubelet`] | the scheduler and a kubelet that is honest about being fake |
//! | [`event`] | events as recorders combine them |

/// A JSON object built in place: `map! {"phase": phase, "items": list}`. The keys are static.
macro_rules! map {
    ($($key:literal : $value:expr),* $(,)?) => {
        $crate::kubernetes::value::Value::Map(
            [$((::arcstr::literal!($key), $crate::kubernetes::value::Value::from($value))),*].into_iter().collect(),
        )
    };
}

pub mod ask;
pub mod deployment;
pub mod disruption;
pub mod endpointslice;
pub mod event;
pub mod gc;
pub mod hands;
pub mod hpa;
pub mod index;
pub mod job;
pub mod kubelet;
pub mod namespace;
pub mod node;
pub mod pdb;
pub mod quota;
pub mod replicaset;
pub mod roster;
#[cfg(test)]
mod tests;
mod world;

pub use roster::Controller;
pub use world::{Next, Settings, World};
