//! How long an attempt took that has just ended, read off the two statuses around its end.

use jiff::Timestamp;

use crate::api::{RolloutDurationStatus, constants::completion};

/// An attempt that has ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Attempt {
    /// How it ended.
    pub status: String,
    /// How long it took, in seconds.
    pub total: f64,
    /// How long of this it waited for people.
    pub waited: f64,
}

/// The attempt that ended between the two; one whose place another took, before it ended, was superseded.
pub(super) fn ended(
    old: Option<&RolloutDurationStatus>,
    new: Option<&RolloutDurationStatus>,
    now: Timestamp,
) -> Option<Attempt> {
    let started = |duration: &RolloutDurationStatus| duration.rollout_started_at;
    let was_running = old.filter(|old| started(old).is_some() && old.finished_at.is_none());
    if let Some(old) = was_running
        && new.is_some_and(|new| started(new) != started(old))
    {
        let open = old.manual_pause_started_at.map_or(0, |since| now.duration_since(since.into()).as_secs());
        let waited = old.total_manual_pause_duration_seconds.unwrap_or_default().saturating_add(open);
        return attempt(old, now, waited, completion::SUPERSEDED);
    }
    let new = new?;
    let is_same_end = old.is_some_and(|old| old.finished_at == new.finished_at && started(old) == started(new));
    if is_same_end {
        return None;
    }
    let waited = new.total_manual_pause_duration_seconds.unwrap_or_default();
    attempt(new, new.finished_at?.into(), waited, new.completion_status.as_deref()?)
}

fn attempt(of: &RolloutDurationStatus, end: Timestamp, waited: i64, status: &str) -> Option<Attempt> {
    let start: Timestamp = of.rollout_started_at?.into();
    let total = end.duration_since(start).as_secs_f64();
    (!status.is_empty()).then(|| Attempt { status: status.to_owned(), total, waited: waited as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{api, value};

    #[test]
    fn an_attempt_is_counted_once_when_it_ends() {
        #[track_caller]
        fn check(
            old: crate::kubernetes::value::Value,
            new: crate::kubernetes::value::Value,
            expected: Option<(&str, f64, f64)>,
        ) {
            let read = |value: &_| api::read::<RolloutDurationStatus>(value).object;
            let given = |value: &crate::kubernetes::value::Value| (!value.is_null()).then(|| read(value));
            let ended = ended(given(&old).as_ref(), given(&new).as_ref(), "2026-01-01T01:00:00Z".parse().unwrap());
            let expected = expected.map(|(status, total, waited)| Attempt { status: status.into(), total, waited });
            assert_eq!(ended, expected, "{old} {new}");
        }
        let running = || value!({"rolloutStartedAt": "2026-01-01T00:00:00Z"});
        let promoted = || {
            value!({
                "rolloutStartedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:10:00Z",
                "totalManualPauseDurationSeconds": 60, "completionStatus": "Promoted",
            })
        };
        let next = || value!({"rolloutStartedAt": "2026-01-01T01:00:00Z"});
        let waiting =
            || value!({"rolloutStartedAt": "2026-01-01T00:00:00Z", "manualPauseStartedAt": "2026-01-01T00:30:00Z"});
        let null = || crate::kubernetes::value::Value::Null;
        check(null(), running(), None);
        check(running(), running(), None);
        check(running(), promoted(), Some(("Promoted", 600.0, 60.0)));
        check(promoted(), promoted(), None);
        check(promoted(), next(), None);
        check(running(), next(), Some(("Superseded", 3600.0, 0.0)));
        check(waiting(), next(), Some(("Superseded", 3600.0, 1800.0)));
        check(null(), null(), None);
    }
}
