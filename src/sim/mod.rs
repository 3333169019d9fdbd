//! The whole system in one process and in virtual time: what tests, forecasts and the fault simulator run on.

mod act;
mod calm;
pub mod checker;
#[cfg(test)]
mod decisions;
pub mod faults;
pub mod forecast;
pub mod install;
pub mod likeness;
pub mod local;
pub mod objects;
pub mod plan;
mod rules;
pub mod seed;
pub mod starts;
pub mod story;
pub mod trace;
pub mod warnings;
pub mod web;
mod world;
