//! Repositories as they come: read in place, fetched, rewritten, hostile.

mod authority;
mod fetching;
mod keys;
mod local;
mod openssh;
mod pushing;
mod reading;
mod rendering;
mod repository;
mod server;
mod shell;
mod signatures;
mod ssh;
mod ways;
