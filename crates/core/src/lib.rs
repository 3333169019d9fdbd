//! What Tidegate decides, without doing any of it: pure functions of views.
//!
//! Never does I/O and never reads a clock: no runtime, client, file or socket is among its dependencies. The crate `tidegate`
//! carries it to a cluster, and its documentation shows the whole.

pub mod analysis;
pub mod api;
pub mod engine;
pub mod experiment;
pub mod forge;
pub mod install;
pub mod kustomize;
pub mod lint;
pub mod metric;
pub mod migrate;
pub mod model;
pub mod plan;
pub mod rollout;
pub mod route;
pub mod sync;
pub mod tree;
pub mod workflow;

use tidegate_kubernetes::{self as kubernetes, manifest, value};
