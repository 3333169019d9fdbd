//! The table that every benchmark prints, and how its figures are taken. Each benchmark uses what it needs of it.
#![allow(dead_code)]

use std::{
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// One line of the table.
pub struct Row {
    /// What was done.
    pub name: String,
    /// What it came to.
    pub measured: String,
    /// What the design asks for.
    pub wanted: &'static str,
    /// A peer, or a floor in the same run, where there is one.
    pub peer: String,
}

/// Prints the table.
pub fn print(rows: &[Row]) {
    let width = |pick: &dyn Fn(&Row) -> &str, least: usize| {
        rows.iter().map(|row| pick(row).chars().count()).max().unwrap_or(0).max(least)
    };
    let (a, b, c) = (width(&|row| &row.name, 0), width(&|row| &row.measured, 8), width(&|row| row.wanted, 6));
    let line = |cells: [&str; 4]| println!("{:<a$}  {:>b$}  {:>c$}  {}", cells[0], cells[1], cells[2], cells[3]);
    line(["", "measured", "wanted", "peer or floor"]);
    for row in rows {
        line([&row.name, &row.measured, row.wanted, &row.peer]);
    }
}

/// How long `work` takes: the best of nine rounds of `count`, since what disturbs a measurement only ever makes it slower.
pub fn time(count: u32, mut work: impl FnMut()) -> Duration {
    let round = |_| {
        let begin = Instant::now();
        (0..count).for_each(|_| work());
        begin.elapsed() / count
    };
    (0..9).map(round).min().unwrap_or(Duration::MAX)
}

/// A process that ends with this one.
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The binary of this build.
pub fn tidegate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// The processor time that a process has used.
pub fn processor(id: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = [11, 12].iter().filter_map(|at| fields.get(*at)?.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// A line of what the system says about a process: `VmHWM:` is the most memory it has had, `VmRSS:` what it has now.
pub fn kilobytes(id: u32, line: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let found = status.lines().find_map(|text| text.strip_prefix(line)).unwrap_or_default();
    found.split_whitespace().next().and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// `12,345`
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
