//! What kubectl shows of an object in a few letters: ages, and how a pod is doing.
//!
//! Never reads a clock: who asks for an age says what time it is.

use jiff::{SignedDuration, Timestamp};

use super::value::Value;

/// How long ago a time of the API was; `<unknown>` if there is none.
pub fn age(time: Option<&str>, now: Timestamp) -> String {
    let time = time.filter(|time| !time.is_empty()).and_then(|time| time.parse::<Timestamp>().ok());
    time.map_or_else(|| "<unknown>".to_owned(), |time| human(now.duration_since(time)))
}

/// A duration to two or three significant figures, as upstream's `HumanDuration`: `2m`, `3m20s`, `5d4h`, `2y10d`.
pub fn human(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    let two = |large: i64, unit: char, small: i64, fraction: char| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{fraction}"),
    };
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    match seconds {
        // A little skew between clocks is taken for now.
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, 'm', seconds % 60, 's'),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, 'h', minutes % 60, 'm'),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 192 => two(days, 'd', hours % 24, 'h'),
        _ if days < 730 => format!("{days}d"),
        _ if days < 2920 => two(years, 'y', days % 365, 'd'),
        _ => format!("{years}y"),
    }
}

/// What the containers of a pod come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodState {
    /// In one word.
    pub reason: String,
    /// How many containers are ready.
    pub ready: usize,
    /// How many there are.
    pub total: usize,
    /// How often they were started again.
    pub restarts: Restarts,
}

/// How often containers were started again, and when the last one had ended before it was.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Restarts {
    /// How often.
    pub count: i64,
    /// When.
    pub last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, container: &Value) {
        self.count += container.int_at(&["restartCount"]).unwrap_or(0);
        let ended = container.str_at(&["lastState", "terminated", "finishedAt"]).and_then(|time| time.parse().ok());
        self.last = self.last.max(ended);
    }
}

/// How far the init containers are.
struct Initialization {
    done: bool,
    sidecars: Restarts,
}

impl PodState {
    /// Reads it off a pod.
    pub fn of(pod: &Value) -> PodState {
        let mut state = PodState {
            reason: first_filled(text(pod, &["status", "reason"]), text(pod, &["status", "phase"])).to_owned(),
            ready: 0,
            total: pod.list_at(&["spec", "containers"]).len()
                + pod.list_at(&["spec", "initContainers"]).iter().filter(|container| is_sidecar(container)).count(),
            restarts: Restarts::default(),
        };
        let conditions = pod.list_at(&["status", "conditions"]);
        let gated = |condition: &Value| {
            condition.str_at(&["type"]) == Some("PodScheduled")
                && condition.str_at(&["reason"]) == Some("SchedulingGated")
        };
        if conditions.iter().any(gated) {
            state.reason = "SchedulingGated".to_owned();
        }
        let Initialization { done, sidecars } = state.initialize(pod);
        if done || holds(conditions, "Initialized") {
            state.run(pod, sidecars);
        }
        if is_terminating(pod) && text(pod, &["status", "reason"]) == "NodeLost" {
            state.reason = "Unknown".to_owned();
        } else if is_terminating(pod) && !matches!(text(pod, &["status", "phase"]), "Succeeded" | "Failed") {
            state.reason = "Terminating".to_owned();
        }
        state
    }

    /// Walks the init containers up to the first that is not done.
    fn initialize(&mut self, pod: &Value) -> Initialization {
        let containers = pod.list_at(&["spec", "initContainers"]);
        let mut sidecars = Restarts::default();
        for (i, status) in pod.list_at(&["status", "initContainerStatuses"]).iter().enumerate() {
            let name = status.str_at(&["name"]);
            let container = containers.iter().find(|container| container.str_at(&["name"]) == name);
            let is_sidecar = container.is_some_and(is_sidecar);
            self.restarts.add(status);
            if is_sidecar {
                sidecars.add(status);
            }
            let waiting = status.str_at(&["state", "waiting", "reason"]).unwrap_or_default();
            let is = |key: &str| status.get(key).and_then(Value::as_bool).unwrap_or(false);
            match status.at(&["state", "terminated"]) {
                Some(ended) if ended.int_at(&["exitCode"]).unwrap_or(0) == 0 => continue,
                _ if is_sidecar && is("started") => {
                    self.ready += usize::from(is("ready"));
                    continue;
                }
                Some(ended) => self.reason = format!("Init:{}", ending(ended)),
                None if !waiting.is_empty() && waiting != "PodInitializing" => self.reason = format!("Init:{waiting}"),
                None => self.reason = format!("Init:{i}/{}", containers.len()),
            }
            return Initialization { done: false, sidecars };
        }
        Initialization { done: true, sidecars }
    }

    /// Walks the containers, the first one last: its state is what shows.
    fn run(&mut self, pod: &Value, sidecars: Restarts) {
        self.restarts = sidecars;
        let (mut running, mut failure) = (false, String::new());
        for status in pod.list_at(&["status", "containerStatuses"]).iter().rev() {
            self.restarts.add(status);
            let waiting = status.str_at(&["state", "waiting", "reason"]).unwrap_or_default();
            let terminated = status.at(&["state", "terminated"]);
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if let Some(ended) = terminated {
                self.reason = ending(ended);
                if ended.int_at(&["exitCode"]).unwrap_or(0) != 0 {
                    failure = self.reason.clone();
                }
            } else if status.get("ready").and_then(Value::as_bool) == Some(true)
                && status.at(&["state", "running"]).is_some()
            {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            self.reason = match running {
                true if holds(pod.list_at(&["status", "conditions"]), "Ready") => "Running".to_owned(),
                _ if !failure.is_empty() => failure,
                true => "NotReady".to_owned(),
                false => return,
            };
        }
    }
}

/// An init container that goes on running.
fn is_sidecar(container: &Value) -> bool {
    container.str_at(&["restartPolicy"]) == Some("Always")
}

/// How a container ended: its reason, signal or exit code.
fn ending(terminated: &Value) -> String {
    let number = |key: &str| terminated.int_at(&[key]).unwrap_or(0);
    match terminated.str_at(&["reason"]).unwrap_or_default() {
        "" if number("signal") != 0 => format!("Signal:{}", number("signal")),
        "" => format!("ExitCode:{}", number("exitCode")),
        reason => reason.to_owned(),
    }
}

fn first_filled<'a>(a: &'a str, b: &'a str) -> &'a str {
    if a.is_empty() { b } else { a }
}

fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    object.str_at(path).unwrap_or_default()
}

fn is_terminating(object: &Value) -> bool {
    object.at(&["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null())
}

/// The condition of this type.
pub fn condition<'a>(conditions: &'a [Value], kind: &str) -> Option<&'a Value> {
    conditions.iter().find(|condition| condition.str_at(&["type"]) == Some(kind))
}

/// Whether the condition of this type is there and true.
pub fn holds(conditions: &[Value], kind: &str) -> bool {
    condition(conditions, kind).is_some_and(|condition| condition.str_at(&["status"]) == Some("True"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        let rows = [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (205, "3m25s"),
            (600, "10m"),
            (3 * 3600 - 1, "179m"),
            (3 * 3600, "3h"),
            (3 * 3600 + 60, "3h1m"),
            (8 * 3600 + 59, "8h"),
            (47 * 3600, "47h"),
            (48 * 3600, "2d"),
            (49 * 3600, "2d1h"),
            (8 * 86400 + 3600, "8d"),
            (729 * 86400, "729d"),
            (730 * 86400, "2y"),
            (731 * 86400, "2y1d"),
            (2920 * 86400, "8y"),
            (4000 * 86400, "10y"),
        ];
        for (seconds, text) in rows {
            assert_eq!(human(SignedDuration::from_secs(seconds)), text, "{seconds}");
        }
        assert_eq!(human(SignedDuration::new(-1, -500_000_000)), "0s", "a clock that is a little behind");
        assert_eq!(age(None, Timestamp::UNIX_EPOCH), "<unknown>");
        assert_eq!(age(Some("1970-01-01T00:00:00Z"), Timestamp::from_second(61).unwrap()), "61s");
    }
}
