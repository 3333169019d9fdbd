//! The figures of the API's types, as a table: what was measured and what is wanted.
//!
//! Everything runs on one core. Each row is the best of several rounds, since what disturbs a measurement only ever makes
//! it slower.

mod manifest;
#[path = "../table/mod.rs"]
mod table;
mod template;

fn main() {
    let mut rows = manifest::rows();
    rows.extend(template::rows());
    table::print(&rows);
}
