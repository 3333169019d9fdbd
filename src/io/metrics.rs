//! The counters as tasks share them, and what the system knows of this process.

use std::{
    fmt::Write,
    sync::{Arc, Mutex, PoisonError},
};

use crate::engine::metrics::Metrics;

/// Counters that every task may add to.
#[derive(Debug, Clone, Default)]
pub struct Shared(Arc<Mutex<Metrics>>);

impl Shared {
    /// Counts something, or makes the page. Whoever panicked while counting left at worst one number too few.
    pub fn with<T>(&self, count: impl FnOnce(&mut Metrics) -> T) -> T {
        count(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The usual numbers about a process, under the names that Prometheus' own clients give them; nothing where the system
/// does not tell.
pub fn process() -> String {
    let mut out = String::new();
    let mut say = |name: &str, help: &str, kind: &str, number: Option<f64>| {
        if let Some(number) = number {
            let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {number}\n");
        }
    };
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is the program's name, which may hold anything; the third is behind its last bracket.
    let fields: Vec<&str> =
        stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
    let ticks = |place: usize| fields.get(place).and_then(|text| text.parse::<f64>().ok()).map(|ticks| ticks / TICKS);
    let cpu = ticks(11).zip(ticks(12)).map(|(user, system)| user + system);
    say("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", "counter", cpu);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim_start_matches(':').trim().split(' ').next()?.parse::<f64>().ok().map(|kilobytes| kilobytes * 1024.0)
    };
    say("process_resident_memory_bytes", "Resident memory size in bytes.", "gauge", kilobytes("VmRSS"));
    say("process_virtual_memory_bytes", "Virtual memory size in bytes.", "gauge", kilobytes("VmSize"));
    let open = std::fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as f64);
    say("process_open_fds", "Number of open file descriptors.", "gauge", open);
    let booted = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let booted = booted.lines().find_map(|line| line.strip_prefix("btime ")).and_then(|text| text.parse::<f64>().ok());
    let start = booted.zip(ticks(19)).map(|(booted, started)| booted + started);
    say("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", "gauge", start);
    out
}

/// How many ticks a second has for a process, on every Linux.
const TICKS: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn the_system_tells_about_this_process() {
        let page = process();
        for name in ["process_cpu_seconds_total", "process_resident_memory_bytes", "process_start_time_seconds"] {
            let line = page.lines().find_map(|line| line.strip_prefix(&format!("{name} "))).unwrap();
            assert!(line.parse::<f64>().unwrap() >= 0.0, "{name} {line}");
        }
    }
}
