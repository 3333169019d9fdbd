//! The figures of the API's types, as a table: what was measured and what is wanted.
//!
//! Everything runs on one core. Each row is the best of several rounds, since what disturbs a measurement only ever makes
//! it slower.

mod manifest;
mod template;

use std::time::{Duration, Instant};

/// One line of the table.
pub struct Row {
    /// What was done.
    pub name: String,
    /// What it came to.
    pub measured: String,
    /// What the design asks for.
    pub wanted: &'static str,
    /// A floor in the same run, where there is one.
    pub floor: String,
}

fn main() {
    let mut rows = manifest::rows();
    rows.extend(template::rows());
    print(&rows);
}

fn print(rows: &[Row]) {
    let width = |pick: &dyn Fn(&Row) -> &str, least: usize| {
        rows.iter().map(|row| pick(row).chars().count()).max().unwrap_or(0).max(least)
    };
    let (a, b, c) = (width(&|row| &row.name, 0), width(&|row| &row.measured, 8), width(&|row| row.wanted, 6));
    let line = |cells: [&str; 4]| println!("{:<a$}  {:>b$}  {:>c$}  {}", cells[0], cells[1], cells[2], cells[3]);
    line(["", "measured", "wanted", "floor in the same run"]);
    for row in rows {
        line([&row.name, &row.measured, row.wanted, &row.floor]);
    }
}

/// How long `work` takes: the best of seven rounds of `count`.
pub fn time(count: u32, mut work: impl FnMut()) -> Duration {
    let round = |_| {
        let begin = Instant::now();
        (0..count).for_each(|_| work());
        begin.elapsed() / count
    };
    (0..7).map(round).min().unwrap_or(Duration::MAX)
}
