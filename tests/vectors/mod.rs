//! Pairs of input and answer that were obtained by running Argo Rollouts 1.10.1: they decide what "the same" means.
//!
//! `cargo test --test it vectors::` reads the files beside this one; with `TIDEGATE_VECTORS=DIR` those of that folder (the same
//! file names; one that is missing there is an error). One test per file, one module per category.

mod analysis;
mod anti_affinity;
mod canary_replicas;
mod conditions;
mod ephemeral_metadata;
mod experiments;
mod health;
mod history_cleanup;
mod limits;
mod names;
mod pod_hash;
mod providers;
mod references;
mod replicaset_helpers;
mod revisions;
mod rollouts;
mod routers;
mod server;
mod step_hash;
mod template_equal;
mod validation;
mod validation_metrics;
mod validation_references;

use std::{borrow::Cow, env, fs, path::PathBuf};

use serde_json::Value;

/// One line of a file.
#[derive(serde::Deserialize)]
pub struct Case {
    pub id: String,
    pub input: Value,
    pub expect: Value,
    /// Other answers that were seen when the same was asked again.
    #[serde(default)]
    pub alternatives: Vec<Value>,
    /// What was recorded looks like a mistake of Argo Rollouts.
    #[serde(default)]
    pub bug: bool,
    /// Which of the other answers is the right one, if what was recorded is a mistake.
    #[serde(default)]
    pub prefer: Option<usize>,
    /// Whose words an error has.
    #[serde(default, rename = "errorClass")]
    pub error_class: String,
}

/// Runs every case of a category: `answer` returns what we say, which must be what Argo Rollouts said. `None` leaves a
/// case out, which is counted; say beside it which upstream bug its input's shape shows.
#[track_caller]
pub fn check(category: &str, answer: impl Fn(&Value, &Value) -> Option<Value>) {
    judge(category, |case| answer(&case.input, &case.expect));
}

/// As [`check`], for those who need all of a case.
#[track_caller]
pub fn judge(category: &str, answer: impl Fn(&Case) -> Option<Value>) {
    let folder = env::var_os("TIDEGATE_VECTORS")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors"), PathBuf::from);
    let file = folder.join(format!("{category}.jsonl"));
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let (mut ran, mut left_out, mut misses) = (0, 0, Vec::new());
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let case: Case = serde_json::from_str(&mended(line))
            .unwrap_or_else(|error| panic!("{}:{}: {error}", file.display(), number + 1));
        match answer(&case) {
            None => left_out += 1,
            Some(ours) if ours == case.expect => ran += 1,
            Some(ours) => {
                ran += 1;
                misses.push(format!("{}\n  input {}\n  argo  {}\n  ours  {ours}", case.id, case.input, case.expect));
            }
        }
    }
    println!("{category}: {ran} cases, {left_out} left out, {} misses", misses.len());
    assert!(ran > 0, "{} holds no case", file.display());
    let shown = misses.iter().take(20).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(misses.is_empty(), "{category}: {} of {ran} differ:\n{shown}", misses.len());
}

/// Go reads the escape of half a surrogate pair as U+FFFD, where `serde_json` refuses it.
fn mended(line: &str) -> Cow<'_, str> {
    let half = |at: usize| {
        let digits = line.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok().filter(|unit| (0xD800..0xE000).contains(unit))
    };
    let (mut out, mut at, mut copied) = (String::new(), 0, 0);
    while let Some(found) = line[at..].find('\\') {
        at += found;
        at += match (half(at), half(at + 6)) {
            (Some(0xD800..0xDC00), Some(0xDC00..)) => 12,
            (Some(_), _) => {
                out.push_str(&line[copied..at]);
                out.push_str("\\ufffd");
                copied = at + 6;
                6
            }
            (None, _) => 2,
        };
    }
    if copied == 0 {
        return line.into();
    }
    out.push_str(&line[copied..]);
    out.into()
}
