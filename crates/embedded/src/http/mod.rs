//! The front of the embedded cluster: HTTP for kubectl and for kube's client, in process or on a loopback port.
//!
//! `path`, `query`, `accept`, `body` and `ask` take a request apart; the store answers; `render` and `watch` put the
//! answer on the wire. Nothing here decides anything about objects.

pub mod accept;
pub mod ask;
pub mod body;
pub mod cluster;
pub mod data;
pub mod gojson;
pub mod path;
pub mod protobuf;
pub mod query;
pub mod render;
pub mod review;
pub mod server;
pub mod service;
pub mod watch;
pub mod yaml;
