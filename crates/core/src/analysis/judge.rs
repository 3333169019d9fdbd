//! What a measured value means: the conditions of its metric.
//!
//! Never measures.

use jiff::Timestamp;

use super::{
    expression::{Env, Val, holds},
    phase::Phase,
};
use crate::api::Metric;

/// What a value means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// How it counts.
    pub phase: Phase,
    /// Why it cannot be judged; empty otherwise.
    pub message: String,
}

/// Judges a value by the conditions of its metric. Failure wins over success; neither is inconclusive if both are given.
pub fn judge(metric: &Metric, result: &Val, now: Timestamp) -> Judgement {
    let env = Env { result: result.clone(), now };
    let ask = |name: &str, condition: &str| {
        let asked = (!condition.is_empty()).then(|| holds(condition, &env)).transpose();
        asked.map_err(|problem| format!("could not evaluate {name} \"{condition}\": {problem}"))
    };
    let answers = ask("successCondition", &metric.success_condition)
        .and_then(|success| Ok((success, ask("failureCondition", &metric.failure_condition)?)));
    let phase = match answers {
        Err(message) => return Judgement { phase: Phase::Error, message },
        Ok((_, Some(true)) | (Some(false), None)) => Phase::Failed,
        Ok((None, None | Some(false)) | (Some(true), None | Some(false))) => Phase::Successful,
        Ok((Some(false), Some(false))) => Phase::Inconclusive,
    };
    Judgement { phase, message: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_wins_and_neither_is_inconclusive() {
        let judged = |success: &str, failure: &str, result: f64| {
            let metric =
                Metric { success_condition: success.into(), failure_condition: failure.into(), ..Metric::default() };
            judge(&metric, &Val::Float(result), Timestamp::UNIX_EPOCH).phase
        };
        for (success, failure, result, phase) in [
            ("", "", 1.0, Phase::Successful),
            ("result > 0", "", 1.0, Phase::Successful),
            ("result > 0", "", 0.0, Phase::Failed),
            ("", "result > 0", 1.0, Phase::Failed),
            ("", "result > 0", 0.0, Phase::Successful),
            ("result > 0", "result > 1", 2.0, Phase::Failed),
            ("result > 0", "result > 1", 1.0, Phase::Successful),
            ("result > 2", "result < 1", 1.5, Phase::Inconclusive),
            ("result +", "", 1.5, Phase::Error),
        ] {
            assert_eq!(judged(success, failure, result), phase, "{success} {failure} {result}");
        }
    }
}
