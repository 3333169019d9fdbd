//! The host side of hashicorp's go-plugin, as far as Argo Rollouts uses it: existing metric, traffic-router and step plugins
//! run unchanged.
//!
//! Layers, each of which knows only those before it:
//!
//! - bytes: [`gob`], [`yamux`], [`handshake`], [`output`];
//! - protocol: [`rpc`] over one stream, [`link`] over one connection;
//! - Argo Rollouts: [`object`] (Kubernetes objects to gob), [`call`] (methods and answers), [`config`], [`machine`] (step
//!   plugins in a Rollout's status);
//! - processes: [`process`], [`connection`], [`client`], [`install`]. Only these do I/O.
//!
//! A plugin is a stranger's program: everything it sends is bounded, everything it does has a deadline, and what it costs
//! are its own calls.

#![warn(unreachable_pub)]

pub mod answer;
pub mod call;
pub mod client;
pub mod config;
pub mod connection;
pub mod gob;
pub mod handshake;
pub mod install;
pub mod link;
pub mod machine;
pub mod object;
pub mod output;
pub mod process;
pub mod rpc;
pub mod yamux;
