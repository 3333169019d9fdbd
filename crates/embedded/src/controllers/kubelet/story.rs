//! What will happen to a pod, read from its spec, annotations and images: a function of time since it started.
//!
//! The table of what is honoured stands in the [module above](super). Nothing here looks at a pod's status or writes.

use jiff::SignedDuration;

use crate::kubernetes::value::Value;

/// The prefix of every annotation that tells the fake kubelet what to play.
pub const PREFIX: &str = "embedded.tidegate.dev/";

/// How long a container takes to exit beyond the `sleep`s its command names.
const EXIT_DELAY: SignedDuration = SignedDuration::from_millis(300);
/// How long a pod takes to stop beyond its preStop hooks.
const STOP_DELAY: SignedDuration = SignedDuration::from_millis(50);
/// The first wait before a crashed container is started again; it doubles up to [`BACK_OFF_LIMIT`].
const BACK_OFF: SignedDuration = SignedDuration::from_secs(10);
const BACK_OFF_LIMIT: SignedDuration = SignedDuration::from_secs(300);
/// A container that ran this long starts over with the first wait.
const BACK_OFF_RESET: SignedDuration = SignedDuration::from_secs(600);

/// What will happen to a pod.
#[derive(Debug, Clone, PartialEq)]
pub struct Story {
    /// Whether any node may run it.
    pub schedulable: bool,
    /// How long its images take to arrive.
    pub pull: SignedDuration,
    /// Its containers, in order.
    pub containers: Vec<Course>,
    /// How long it takes to stop once it is being deleted; `None` if it never stops by itself.
    pub stop: Option<SignedDuration>,
}

/// What will happen to a container.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// The container's name.
    pub name: String,
    /// Its end, or the lack of one.
    pub fate: Fate,
    /// How long after each start it is ready; `None` if it never is.
    pub ready: Option<SignedDuration>,
    /// How long after each start it is ready no longer.
    pub unready: Option<SignedDuration>,
    /// Whether it is started again after it exited.
    pub restarts: bool,
}

/// How a container ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fate {
    /// It never starts: its image cannot be pulled.
    NoImage,
    /// It runs until it is stopped.
    Runs,
    /// It exits with this code this long after each start.
    Exits {
        /// How long it runs.
        after: SignedDuration,
        /// With which code.
        code: i64,
    },
}

/// A container at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// What it is doing.
    pub state: State,
    /// How often it was started again.
    pub restarts: i64,
    /// Whether it is ready.
    pub ready: bool,
    /// When this changes, counted from the container's first start; `None` if never.
    pub until: Option<SignedDuration>,
}

/// What a container is doing. Times are counted from the container's first start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum State {
    /// Waiting for its image, in vain.
    NoImage,
    /// Running since.
    Running(SignedDuration),
    /// Exited and waiting to be started again.
    BackOff {
        /// When it started.
        from: SignedDuration,
        /// When it exited.
        to: SignedDuration,
        /// With which code.
        code: i64,
        /// How long it waits.
        wait: SignedDuration,
    },
    /// Exited for good.
    Ended {
        /// When it started.
        from: SignedDuration,
        /// When it exited.
        to: SignedDuration,
        /// With which code.
        code: i64,
    },
}

/// Reads the story of a pod. `ready_delay` is how long any container takes to become ready.
pub fn read(pod: &Value, ready_delay: SignedDuration) -> Story {
    let seconds = |name: &str| annotation(pod, name).and_then(duration);
    let restart_policy = pod.str_at(&["spec", "restartPolicy"]).unwrap_or("Always");
    let course = |container: &Value| {
        let image = container.str_at(&["image"]).unwrap_or_default();
        let tag = Tag::of(image);
        let words = words(container);
        let exit_code = annotation(pod, "exit-code").and_then(|code| code.parse::<i64>().ok());
        let crash = seconds("crash-after").or(match tag {
            Some(Tag::Crash(after)) => Some(after),
            Some(Tag::NeverReady | Tag::Slow(_)) | None => None,
        });
        let ends = restart_policy != "Always";
        let fate = if cannot_pull(image) || is_set(pod, "image-pull-error") {
            Fate::NoImage
        } else if words.contains("/bad-command") {
            // What a container runtime answers when the command is not there.
            Fate::Exits { after: SignedDuration::ZERO, code: 128 }
        } else if let Some(after) = crash {
            Fate::Exits { after, code: exit_code.unwrap_or(1) }
        } else if ends {
            let after = seconds("run-for").unwrap_or_else(|| sleeps(&words).saturating_add(EXIT_DELAY));
            Fate::Exits { after, code: exit_code.or_else(|| last_exit(&words)).unwrap_or(0) }
        } else {
            Fate::Runs
        };
        let restarts = match (restart_policy, fate) {
            ("Never", _) => false,
            ("OnFailure", Fate::Exits { code, .. }) => code != 0,
            _ => true,
        };
        let ready = if is_set(pod, "never-ready") || tag == Some(Tag::NeverReady) {
            None
        } else if let Some(after) = seconds("ready-after") {
            Some(after)
        } else if ends {
            Some(SignedDuration::ZERO)
        } else {
            let slow = match tag {
                Some(Tag::Slow(by)) => by,
                Some(Tag::NeverReady | Tag::Crash(_)) | None => SignedDuration::ZERO,
            };
            Some(ready_delay.saturating_add(probe_delay(container)).saturating_add(slow))
        };
        let name = container.str_at(&["name"]).unwrap_or_default().to_owned();
        Course { name, fate, ready, unready: seconds("unready-after"), restarts }
    };
    let containers = pod.list_at(&["spec", "containers"]);
    Story {
        schedulable: !is_set(pod, "unschedulable"),
        pull: seconds("pull-time").unwrap_or_default(),
        containers: containers.iter().map(course).collect(),
        stop: match annotation(pod, "stop-after") {
            Some("never") => None,
            Some(text) if duration(text).is_some() => duration(text),
            Some(_) | None => {
                let hooks = containers.iter().map(|container| hook(container, "preStop"));
                Some(hooks.fold(STOP_DELAY, SignedDuration::saturating_add))
            }
        },
    }
}

impl Course {
    /// The container at this time after its first start.
    pub fn at(&self, time: SignedDuration) -> Moment {
        let Fate::Exits { after, code } = self.fate else {
            let state = match self.fate {
                Fate::NoImage => State::NoImage,
                Fate::Runs | Fate::Exits { .. } => State::Running(SignedDuration::ZERO),
            };
            return match state {
                State::Running(_) => self.running(SignedDuration::ZERO, None, 0, time),
                state => Moment { state, restarts: 0, ready: false, until: None },
            };
        };
        let (mut run, mut from) = (0, SignedDuration::ZERO);
        if self.restarts && after >= SignedDuration::ZERO {
            (run, from) = skip_runs(after, time);
        }
        loop {
            let to = from.saturating_add(after);
            if time < to {
                return self.running(from, Some(to), run, time);
            }
            if !self.restarts {
                return Moment { state: State::Ended { from, to, code }, restarts: run, ready: false, until: None };
            }
            let wait = back_off(after, run);
            let next = to.saturating_add(wait);
            if time < next || next == SignedDuration::MAX {
                let state = State::BackOff { from, to, code, wait };
                return Moment { state, restarts: run, ready: false, until: Some(next) };
            }
            (run, from) = (run + 1, next);
        }
    }

    fn running(&self, from: SignedDuration, to: Option<SignedDuration>, restarts: i64, time: SignedDuration) -> Moment {
        let ready = self.ready.map(|after| from.saturating_add(after));
        let unready = self.unready.map(|after| from.saturating_add(after));
        let is_ready = ready.is_some_and(|at| at <= time) && unready.is_none_or(|at| time < at);
        let until = [ready, unready, to].into_iter().flatten().filter(|at| *at > time).min();
        Moment { state: State::Running(from), restarts, ready: is_ready, until }
    }
}

/// How long a container that ran for `after` waits before it is started for the `run + 1`st time.
fn back_off(after: SignedDuration, run: i64) -> SignedDuration {
    if after >= BACK_OFF_RESET {
        return BACK_OFF;
    }
    let doubled = 1i32 << run.clamp(0, 8);
    BACK_OFF.saturating_mul(doubled).min(BACK_OFF_LIMIT)
}

/// A run not after `time` and its start: skips the runs of equal waits at once, so that a year costs no more than an hour.
fn skip_runs(after: SignedDuration, time: SignedDuration) -> (i64, SignedDuration) {
    let growing = if after >= BACK_OFF_RESET { 0 } else { 5 };
    let mut from = SignedDuration::ZERO;
    for run in 0..growing {
        let next = from.saturating_add(after).saturating_add(back_off(after, run));
        if next > time {
            return (run, from);
        }
        from = next;
    }
    let period = after.saturating_add(back_off(after, growing));
    let whole = (time - from).as_millis() / period.as_millis().max(1);
    let skipped = i32::try_from(whole).unwrap_or(i32::MAX);
    (growing + i64::from(skipped), from.saturating_add(period.saturating_mul(skipped)))
}

fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    let annotations = object.at(&["metadata", "annotations"])?.as_map()?;
    annotations.get(&format!("{PREFIX}{name}"))?.as_str()
}

/// Whether an object carries the annotation of this name with the value `true`.
pub fn is_set(object: &Value, name: &str) -> bool {
    annotation(object, name) == Some("true")
}

/// `5`, `5s`, `300ms`, `2m`, `1h`: a time span; a bare number is seconds.
pub fn duration(text: &str) -> Option<SignedDuration> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..digits].parse().ok()?;
    let unit = match &text[digits..] {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    // A hundred years are enough for any story, and keep sums of a few of them in range.
    let millis = number * unit * 1000.0;
    (millis.is_finite() && millis <= 3.2e12).then(|| SignedDuration::from_millis(millis.round() as i64))
}

/// What an image's tag says, if it is one of the telling ones.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Tag {
    Crash(SignedDuration),
    NeverReady,
    Slow(SignedDuration),
}

impl Tag {
    fn of(image: &str) -> Option<Tag> {
        let (_, tag) = image.rsplit_once(':')?;
        let (word, rest) = match tag.split_once('-') {
            Some(("never", "ready")) => ("never-ready", ""),
            Some(("never", rest)) if rest.starts_with("ready-") => ("never-ready", ""),
            Some((word, rest)) => (word, rest),
            None => (tag, ""),
        };
        match word {
            "crash" => Some(Tag::Crash(duration(rest).unwrap_or_default())),
            "never-ready" => Some(Tag::NeverReady),
            "slow" => Some(Tag::Slow(duration(rest).unwrap_or(SignedDuration::from_secs(30)))),
            _ => None,
        }
    }
}

fn cannot_pull(image: &str) -> bool {
    ["does-not-exist", "argo-error", "nonexistent", "invalid-image", ":bad-"].iter().any(|bad| image.contains(bad))
        || image.ends_with(":bad")
        || image.ends_with(":error")
}

/// A container's command and arguments as one text, quoted and separated as in JSON.
fn words(container: &Value) -> String {
    let mut text = String::new();
    for word in container.list_at(&["command"]).iter().chain(container.list_at(&["args"])) {
        text.push_str(word.as_str().unwrap_or_default());
        text.push_str("\", \"");
    }
    text
}

/// How long before a container can be ready: its postStart hook and the initial delay of its probes.
fn probe_delay(container: &Value) -> SignedDuration {
    let initial = |probe| container.int_at(&[probe, "initialDelaySeconds"]).unwrap_or(0);
    let probes = initial("readinessProbe").max(initial("startupProbe"));
    hook(container, "postStart").saturating_add(SignedDuration::from_secs(probes.clamp(0, i64::from(i32::MAX))))
}

/// How long a lifecycle hook sleeps, by its command or its `sleep` action.
fn hook(container: &Value, name: &str) -> SignedDuration {
    let Some(hook) = container.at(&["lifecycle", name]) else { return SignedDuration::ZERO };
    let action = hook.int_at(&["sleep", "seconds"]).unwrap_or(0).clamp(0, i64::from(i32::MAX));
    let command = hook.get("exec").map(words).unwrap_or_default();
    sleeps(&command).saturating_add(SignedDuration::from_secs(action))
}

/// The sum of all `sleep N` in a command.
fn sleeps(words: &str) -> SignedDuration {
    numbers_after(words, "sleep")
        .map(SignedDuration::from_secs)
        .fold(SignedDuration::ZERO, SignedDuration::saturating_add)
}

/// The number of the last `exit N` in a command.
fn last_exit(words: &str) -> Option<i64> {
    numbers_after(words, "exit").last()
}

/// The numbers that follow a word, with quotes, commas and spaces between.
fn numbers_after<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = i64> + 'a {
    text.split(word).skip(1).filter_map(|rest| {
        let number = rest.trim_start_matches(['"', '\'', ',', ' ']);
        let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        (number.len() < rest.len()).then_some(())?;
        number[..digits].parse::<i32>().ok().map(i64::from)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    fn ms(millis: i64) -> SignedDuration {
        SignedDuration::from_millis(millis)
    }

    fn secs(seconds: i64) -> SignedDuration {
        SignedDuration::from_secs(seconds)
    }

    #[track_caller]
    fn check(annotations: Value, container: Value, restart_policy: &str, fate: Fate, ready: Option<SignedDuration>) {
        let annotations: Value = match annotations.as_map() {
            Some(map) => {
                let prefixed = map.iter().map(|(key, value)| (format!("{PREFIX}{key}"), value.clone()));
                Value::Map(prefixed.collect())
            }
            None => Value::object(),
        };
        let mut pod = value!({"metadata": {}, "spec": {"restartPolicy": restart_policy}});
        pod.set_at(&["metadata", "annotations"], annotations);
        pod.set_at(&["spec", "containers"], Value::list([container]));
        let story = read(&pod, ms(300));
        assert_eq!((story.containers[0].fate, story.containers[0].ready), (fate, ready));
    }

    #[test]
    fn a_pod_does_what_its_images_commands_and_annotations_say() {
        let exits = |after, code| Fate::Exits { after: ms(after), code };
        let none = || value!({});
        let soon = Some(ms(300));
        let now = Some(ms(0));
        check(none(), value!({"image": "app:v1"}), "Always", Fate::Runs, soon);
        check(none(), value!({"image": "app:bad"}), "Always", Fate::NoImage, soon);
        check(none(), value!({"image": "app:bad-label"}), "Always", Fate::NoImage, soon);
        check(none(), value!({"image": "app:badge"}), "Always", Fate::Runs, soon);
        check(none(), value!({"image": "reg:5000/does-not-exist"}), "Always", Fate::NoImage, soon);
        check(none(), value!({"image": "web:error"}), "Always", Fate::NoImage, soon);
        check(none(), value!({"image": "app:crash"}), "Always", exits(0, 1), soon);
        check(none(), value!({"image": "app:crash-5"}), "Always", exits(5000, 1), soon);
        check(none(), value!({"image": "app:never-ready"}), "Always", Fate::Runs, None);
        check(none(), value!({"image": "app:never-ready-2"}), "Always", Fate::Runs, None);
        check(none(), value!({"image": "app:slow-2m"}), "Always", Fate::Runs, Some(ms(120_300)));
        check(none(), value!({"image": "a", "command": ["/bad-command"]}), "Always", exits(0, 128), soon);
        let probe = value!({"image": "a", "readinessProbe": {"initialDelaySeconds": 4}});
        check(none(), probe, "Always", Fate::Runs, Some(ms(4300)));
        let hook = value!({"image": "a", "lifecycle": {"postStart": {"exec": {"command": ["sleep", "2"]}}}});
        check(none(), hook, "Always", Fate::Runs, Some(ms(2300)));
        let job = value!({"image": "a", "command": ["sh", "-c"], "args": ["sleep 2; sleep 3; exit 4"]});
        check(none(), job.clone(), "Never", exits(5300, 4), now);
        check(none(), job.clone(), "Always", Fate::Runs, soon);
        check(value!({"run-for": "1s", "exit-code": "7"}), job, "Never", exits(1000, 7), now);
        check(none(), value!({"image": "a"}), "Never", exits(300, 0), now);
        check(value!({"ready-after": "1m"}), value!({"image": "a"}), "Always", Fate::Runs, Some(secs(60)));
        check(value!({"never-ready": "true"}), value!({"image": "a"}), "Always", Fate::Runs, None);
        check(value!({"image-pull-error": "true"}), value!({"image": "a"}), "Always", Fate::NoImage, soon);
        check(value!({"crash-after": "3", "exit-code": "9"}), value!({"image": "a"}), "Always", exits(3000, 9), soon);
    }

    #[test]
    fn a_crashing_container_backs_off_longer_and_longer() {
        let fate = Fate::Exits { after: secs(2), code: 1 };
        let course = Course { name: "c".into(), fate, ready: Some(secs(1)), unready: None, restarts: true };
        let row = |time: i64| {
            let moment = course.at(secs(time));
            let state = match moment.state {
                State::Running(from) => format!("running since {}", from.as_secs()),
                State::BackOff { wait, .. } => format!("back-off {}", wait.as_secs()),
                other => format!("{other:?}"),
            };
            (state, moment.ready, moment.restarts, moment.until.map(|until| until.as_secs()))
        };
        for (time, state, ready, restarts, until) in [
            (0, "running since 0", false, 0, 1),
            (1, "running since 0", true, 0, 2),
            (2, "back-off 10", false, 0, 12),
            (12, "running since 12", false, 1, 13),
            (14, "back-off 20", false, 1, 34),
            (320, "running since 320", false, 5, 321),
            (322, "back-off 300", false, 5, 622),
            // 622 + 302 × n: a day later nothing is counted one by one.
            (622 + 302 * 300 + 1, "running since 91222", true, 306, 91224),
        ] {
            assert_eq!(row(time), (state.to_owned(), ready, restarts, Some(until)), "at {time}");
        }
    }

    #[test]
    fn a_container_that_ends_stays_ended() {
        let fate = Fate::Exits { after: secs(5), code: 3 };
        let course = Course { name: "c".into(), fate, ready: Some(secs(0)), unready: None, restarts: false };
        let ended = State::Ended { from: secs(0), to: secs(5), code: 3 };
        assert_eq!(course.at(secs(4)).state, State::Running(secs(0)));
        assert_eq!(course.at(secs(5)), Moment { state: ended, restarts: 0, ready: false, until: None });
        assert_eq!(course.at(secs(5000)).state, ended);
    }

    #[test]
    fn readiness_can_be_lost() {
        let course =
            Course { name: "c".into(), fate: Fate::Runs, ready: Some(secs(1)), unready: Some(secs(9)), restarts: true };
        let ready: Vec<bool> = [0, 1, 8, 9, 100].iter().map(|t| course.at(secs(*t)).ready).collect();
        assert_eq!(ready, [false, true, true, false, false]);
    }

    #[test]
    fn durations_read_as_people_write_them() {
        for (text, parsed) in [
            ("5", Some(secs(5))),
            ("1.5s", Some(ms(1500))),
            ("300ms", Some(ms(300))),
            ("2m", Some(secs(120))),
            ("1h", Some(secs(3600))),
            ("", None),
            ("soon", None),
            ("-1", None),
            ("9e9", None),
            ("99999999999999", None),
        ] {
            assert_eq!(duration(text), parsed, "{text}");
        }
    }

    #[test]
    fn stopping_takes_as_long_as_the_hooks_sleep() {
        let pod = |hook: Value, annotation: &str| {
            let mut pod = value!({"metadata": {"annotations": {}}, "spec": {"containers": [{"lifecycle": {}}]}});
            pod.set_at(&["spec", "containers"], Value::list([value!({"lifecycle": {"preStop": null}})]));
            let mut container = value!({"lifecycle": {}});
            container.set_at(&["lifecycle", "preStop"], hook);
            pod.set_at(&["spec", "containers"], Value::list([container]));
            if !annotation.is_empty() {
                pod.set_at(&["metadata", "annotations", "embedded.tidegate.dev/stop-after"], annotation);
            }
            read(&pod, ms(0)).stop
        };
        assert_eq!(pod(value!({}), ""), Some(ms(50)));
        assert_eq!(pod(value!({"exec": {"command": ["sleep", "5"]}}), ""), Some(ms(5050)));
        assert_eq!(pod(value!({"sleep": {"seconds": 7}}), ""), Some(ms(7050)));
        assert_eq!(pod(value!({}), "2s"), Some(secs(2)));
        assert_eq!(pod(value!({}), "never"), None);
    }
}
