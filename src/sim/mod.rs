//! The whole system in one process and in virtual time: what tests, forecasts and the fault simulator run on.

pub mod local;
