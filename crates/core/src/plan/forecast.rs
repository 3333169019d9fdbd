//! How a Rollout would go: what a forecast holds. The simulator (`sim::forecast`) makes one by letting the engine run.
//!
//! All times count from the moment at which the change is applied.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use crate::kubernetes::value::Value;

/// How a Rollout would go.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Forecast {
    /// How it ends.
    pub outcome: Outcome,
    /// What its status says at the end, unless it is healthy.
    pub message: String,
    /// When it ends.
    pub ends: SignedDuration,
    /// What a person has to allow.
    pub approvals: Vec<Approval>,
    /// What happens, in order.
    pub steps: Vec<Step>,
    /// The most that runs at one moment.
    pub peak: Peak,
    /// The fewest available pods, and how many are wanted.
    pub lowest: (i64, i64),
    /// Pods and weight over time: each point holds until the next.
    pub curve: Vec<Point>,
}

/// How a forecast ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Outcome {
    /// The new version is the stable one, and all is as it should be.
    Healthy,
    /// It was given up.
    Degraded,
    /// It still waits when the forecast is cut off.
    #[default]
    Unfinished,
}

impl Outcome {
    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Healthy => "healthy",
            Outcome::Degraded => "degraded",
            Outcome::Unfinished => "unfinished",
        }
    }
}

/// Something that a person has to allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The step, from 1; 0 if it is none.
    pub step: usize,
    /// When it is needed.
    pub at: SignedDuration,
    /// What for.
    pub what: String,
}

/// What a step waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitsFor {
    /// Nothing.
    #[default]
    Nothing,
    /// Pods.
    Pods,
    /// The end of a pause.
    Pause,
    /// A person.
    Approval,
    /// An analysis.
    Analysis,
}

impl WaitsFor {
    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            WaitsFor::Nothing => "none",
            WaitsFor::Pods => "pods",
            WaitsFor::Pause => "pause",
            WaitsFor::Approval => "approval",
            WaitsFor::Analysis => "analysis",
        }
    }
}

/// One step of a forecast.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    /// When it begins.
    pub at: SignedDuration,
    /// How long it lasts.
    pub lasts: SignedDuration,
    /// Its number, from 1; one more than there are for what comes after the last.
    pub number: usize,
    /// How many there are.
    pub of: usize,
    /// What it does.
    pub what: String,
    /// The share of traffic that is asked for.
    pub weight: i64,
    /// The share of traffic that the new version gets.
    pub traffic: i64,
    /// Pods of the stable version at its end.
    pub stable: i64,
    /// Pods of the new version at its end.
    pub canary: i64,
    /// All pods at its end, with those of older versions.
    pub total: i64,
    /// What it waits for.
    pub waits_for: WaitsFor,
    /// The analyses that run during it.
    pub analyses: Vec<Analysis>,
    /// What happens if one of them fails.
    pub if_analysis_fails: Option<Return>,
}

/// An analysis of a forecast.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Analysis {
    /// The AnalysisRun.
    pub name: String,
    /// What it is for: a step, the background, before or after the switch.
    pub role: String,
    /// Its arguments, resolved. What comes from a Secret is hidden.
    pub arguments: BTreeMap<String, String>,
    /// Its metrics.
    pub metrics: Vec<String>,
    /// How long it runs, if it ends during the forecast.
    pub lasts: Option<SignedDuration>,
    /// The AnalysisRun itself, as it was created.
    pub object: Value,
    /// What its metrics say today, if they were asked.
    pub queries: Vec<Query>,
}

/// A metric that was measured once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// The metric.
    pub metric: String,
    /// Successful, Failed, Inconclusive or Error; empty if it was not asked.
    pub phase: String,
    /// What was measured.
    pub value: String,
    /// Why it came to nothing, or why it was not asked.
    pub message: String,
}

/// The way back after an analysis failed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Return {
    /// The version that serves at the end: `revision 1`.
    pub to: String,
    /// How long it takes from the failed measurement until every request and pod is there again.
    pub lasts: SignedDuration,
    /// What the status says then.
    pub message: String,
}

/// The most that runs at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Peak {
    /// Pods.
    pub pods: i64,
    /// What they request of processors, in thousandths.
    pub cpu_millis: i64,
    /// What they request of memory.
    pub memory_bytes: i64,
}

/// Pods and weight at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Point {
    /// When.
    pub at: SignedDuration,
    /// Pods of the stable version.
    pub stable: i64,
    /// Pods of the new version.
    pub canary: i64,
    /// The share of traffic of the new version.
    pub weight: i64,
}

/// A length of time for people: `0.3s`, `47m12s`, `1h2m`.
pub fn length(duration: SignedDuration) -> String {
    let millis = duration.as_millis();
    // A pause of a minute that begins within a second and ends on one is a minute.
    let millis = if millis >= 10_000 { (millis + 500) / 1000 * 1000 } else { millis };
    let seconds = millis / 1000;
    let (hours, minutes, left) = (seconds / 3600, seconds % 3600 / 60, seconds % 60);
    let parts = |large: i128, unit: char, small: i128, fraction: char| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{fraction}"),
    };
    match seconds {
        _ if millis == 0 => "0s".to_owned(),
        0..10 if millis % 1000 >= 100 => format!("{seconds}.{}s", millis % 1000 / 100),
        0..60 => format!("{seconds}s"),
        60..3600 => parts(minutes, 'm', left, 's'),
        _ => parts(hours, 'h', minutes, 'm'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_as_long_as_they_need_to_be() {
        for (millis, expected) in [
            (0, "0s"),
            (320, "0.3s"),
            (9_900, "9.9s"),
            (10_300, "10s"),
            (59_700, "1m"),
            (60_000, "1m"),
            (2_832_000, "47m12s"),
            (3_720_000, "1h2m"),
            (7_200_000, "2h"),
        ] {
            assert_eq!(length(SignedDuration::from_millis(millis)), expected);
        }
    }
}
