//! The live view of clusters that stand still.

use std::{env, fs, num::NonZero, path::Path};

use super::*;
use crate::{cmd::screen::Block, value};

#[test]
fn rollouts_that_do_not_fit_are_counted_and_those_that_move_come_first() {
    let rollout = |name: &str, phase: &str| value!({"metadata": {"name": name, "namespace": "shop", "uid": name}, "status": {"phase": phase}});
    let all: Vec<Value> =
        ["a", "b", "c", "d"].iter().map(|name| rollout(name, "Healthy")).chain([rollout("z", "Paused")]).collect();
    let all = Seen { rollouts: all, ..still() };
    let names = |most: usize| {
        let rows = fitting(&all, most);
        rows.iter().map(|row| row.split_whitespace().next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(5), ["shop/z", "shop/a", "shop/b", "shop/c", "shop/d"]);
    assert_eq!(names(3), ["shop/z", "shop/a", "and"]);
    assert_eq!(fitting(&all, 3)[2], "  and 3 more");
    assert_eq!(names(0), [""; 0]);
}

#[test]
fn a_rollout_is_a_bar_and_its_versions() {
    let rollout = value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u"},
        "spec": {"strategy": {"canary": {"steps": [{"setWeight": 40}, {"pause": {}}]}}},
        "status": {"stableRS": "a", "currentPodHash": "b", "currentStepIndex": 1, "phase": "Paused"}});
    let sets = vec![set("u", "a", "1", 3, 3), set("u", "b", "2", 2, 1), set("u", "c", "0", 0, 0)];
    let rows = rollout_rows(&rollout, &Seen { sets, ..still() });
    assert_eq!(
        rows,
        [
            "  shop/web  ████████░░░░░░░░░░░░  40 %  step 2/2  Paused",
            "    revision 2   canary  web:2                            ■□ 1/2",
            "    revision 1   stable  web:1                            ■■■ 3/3",
        ]
    );
}

#[test]
fn a_commit_is_one_row() {
    let line = Line {
        commit: "a".repeat(40),
        subject: "web 2.0".into(),
        told: Some((State::Pending, "web: 1 of 2 pods".into())),
    };
    let plain = anstream::adapter::strip_str(&row(&line, 10)).to_string();
    assert_eq!(plain, "  ● aaaaaaaa  web 2.0     web: 1 of 2 pods");
}

#[test]
fn a_blue_green_bar_is_full_once_the_active_service_has_switched() {
    let rollout = |active: &str| {
        value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
            "metadata": {"name": "api", "namespace": "shop", "uid": "u"},
            "spec": {"strategy": {"blueGreen": {"activeService": "api"}}},
            "status": {"stableRS": "a", "currentPodHash": "b", "phase": "Paused", "blueGreen": {"activeSelector": active}}})
    };
    let sets = vec![set("u", "a", "1", 2, 2), set("u", "b", "2", 2, 2)];
    let seen = Seen { sets, ..still() };
    let rows = |active: &str| rollout_rows(&rollout(active), &seen);
    assert_eq!(
        rows("a"),
        [
            "  shop/api  ░░░░░░░░░░░░░░░░░░░░   0 %  Paused",
            "    revision 2   preview web:2                            ■■ 2/2",
            "    revision 1   stable  web:1                            ■■ 2/2",
        ]
    );
    assert_eq!(
        rows("b"),
        [
            "  shop/api  ████████████████████ 100 %  Paused",
            "    revision 2   active  web:2                            ■■ 2/2",
            "    revision 1   stable  web:1                            ■■ 2/2",
        ]
    );
}

fn set(owner: &str, hash: &str, revision: &str, wanted: i32, ready: i32) -> Value {
    value!({"metadata": {"labels": {"rollouts-pod-template-hash": hash}, "annotations": {"rollout.argoproj.io/revision": revision},
        "ownerReferences": [{"uid": owner, "controller": true}]},
        "spec": {"replicas": wanted, "template": {"spec": {"containers": [{"image": format!("web:{revision}")}]}}},
        "status": {"readyReplicas": ready}})
}

/// A cluster in which nothing is.
fn still() -> Seen {
    let now = "2026-01-01T01:00:00Z".parse().unwrap();
    Seen { rollouts: Vec::new(), sets: Vec::new(), now, logged: Vec::new() }
}

#[test]
fn a_pause_says_how_long_is_left_or_that_a_person_ends_it() {
    #[track_caller]
    fn check(strategy: Value, reason: &str, expected: &str) {
        let mut rollout = value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
            "metadata": {"name": "web", "namespace": "shop", "uid": "u"}, "spec": {"strategy": strategy},
            "status": {"stableRS": "a", "currentPodHash": "b", "currentStepIndex": 0, "phase": "Paused", "controllerPause": true}});
        let pause = value!([{"reason": reason, "startTime": "2026-01-01T00:59:40Z"}]);
        rollout.set_at(&["status", "pauseConditions"], pause);
        let row = rollout_rows(&rollout, &still()).remove(0);
        assert!(row.ends_with(expected), "{row}");
    }
    let canary = |pause: &str| value!({"canary": {"steps": [{"pause": serde_json::from_str::<serde_json::Value>(pause).unwrap()}]}});
    check(canary(r#"{"duration": "30s"}"#), "CanaryPauseStep", "step 1/1  Paused, 10s left");
    check(canary(r#"{"duration": "5s"}"#), "CanaryPauseStep", "step 1/1  Paused, 0s left");
    check(canary("{}"), "CanaryPauseStep", "step 1/1  Paused, waiting for approval");
    let blue_green = |seconds: i64| value!({"blueGreen": {"activeService": "a", "autoPromotionSeconds": seconds}});
    check(blue_green(90), "BlueGreenPause", "Paused, switches in 70s");
    check(
        value!({"blueGreen": {"activeService": "a", "autoPromotionEnabled": false}}),
        "BlueGreenPause",
        "Paused, waiting for approval",
    );
}

#[test]
fn what_is_said_of_a_commit_goes_below_it_where_it_does_not_fit_beside_it() {
    let all = commits();
    let shown = |spare: usize| -> Vec<String> {
        let rows = commit_rows(&all, 26, 80, spare);
        rows.iter().map(|row| anstream::adapter::strip_str(row).to_string().trim_end().to_owned()).collect()
    };
    assert_eq!(
        shown(9),
        [
            "  ✔ aaaaaaaa  Deploy                      rolled out: 7 objects",
            "  ✖ bbbbbbbb  A subject that is longer than the column it has to stand in",
            "      web: 0 of 2 new pods ready: ImagePullBackOff: registry.example/web:9 not",
            "      found; web: 0 of 2 new pods ready: ImagePullBackOff:",
            "      registry.example/web:9 not found; web: 0 of 2 new pods ready:",
            "      ImagePullBackOff: registry.example/web:9 not found; web: 0 of 2 new pods",
            "      ready: ImagePullBackOff: registry.example/web:9 not found;",
            "  ● cccccccc  Scale 日本語 up",
            "      web: step 2/2, 40 %, 1 of 2 new pods ready",
            "  · dddddddd  Just pushed",
        ]
    );
    // The newest first, where there is not room for all.
    assert_eq!(shown(1).len(), 5);
    assert_eq!(shown(1)[3], "      web: step 2/2, 40 %, 1 of 2 new pods ready");
    assert_eq!(shown(0).len(), 4);
}

#[test]
fn a_log_line_leaves_out_what_takes_the_room_of_what_it_says() {
    #[track_caller]
    fn check(line: &str, expected: &str) {
        assert_eq!(brief(line), expected);
    }
    let entry = "2026-01-01T00:00:00.000001Z  WARN tidegate::io::source: ConfigMap a: changed source=default/shop";
    check(entry, "WARN ConfigMap a: changed source=default/shop");
    check("a second line: of an entry", "a second line: of an entry");
    check("", "");
}

/// A cluster that stands still: a canary that fails, a blue-green update before its switch, ten Rollouts at rest.
fn seen(ready: i32) -> Seen {
    let rollout = |name: &str, strategy: &Value, status: &Value| {
        value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
            "metadata": {"name": name, "namespace": "shop", "uid": name},
            "spec": {"strategy": serde_json::Value::from(strategy)}, "status": serde_json::Value::from(status)})
    };
    let canary = value!({"canary": {"steps": [{"setWeight": 40}, {"pause": {}}]}});
    let blue_green = value!({"blueGreen": {"activeService": "api"}});
    let resting = value!({"stableRS": "a", "currentPodHash": "a", "phase": "Healthy"});
    let mut rollouts: Vec<Value> = (0..10).map(|at| rollout(&format!("app-{at}"), &canary, &resting)).collect();
    rollouts.push(rollout(
        "web",
        &canary,
        &value!({"stableRS": "a", "currentPodHash": "b", "currentStepIndex": 1, "phase": "Progressing"}),
    ));
    rollouts.push(rollout(
        "api",
        &blue_green,
        &value!({"stableRS": "a", "currentPodHash": "b", "phase": "Paused", "blueGreen": {"activeSelector": "a"}}),
    ));
    let sets = vec![
        set("web", "a", "1", 3, 3),
        set("web", "b", "2", 2, ready),
        set("api", "a", "7", 2, 2),
        set("api", "b", "8", 2, 2),
        set("app-0", "a", "1", 1, 1),
    ];
    let logged = format!(
        "2026-01-01T00:00:00.000001Z  WARN tidegate::io: cannot fetch {}",
        "the repository, which is far away and slow; ".repeat(3)
    );
    Seen { rollouts, sets, logged: vec![logged], ..still() }
}

/// Commits as `dev` shows them: among them one whose failure is longer than any terminal is wide.
fn commits() -> Vec<Line> {
    let line = |commit: &str, subject: &str, told: Option<(State, String)>| Line {
        commit: commit.repeat(40),
        subject: subject.into(),
        told,
    };
    let reason = "web: 0 of 2 new pods ready: ImagePullBackOff: registry.example/web:9 not found; ".repeat(4);
    vec![
        line("a", "Deploy", Some((State::Success, "rolled out: 7 objects".into()))),
        line("b", "A subject that is longer than the column it has to stand in", Some((State::Failure, reason))),
        line("c", "Scale 日本語 up", Some((State::Pending, "web: step 2/2, 40 %, 1 of 2 new pods ready".into()))),
        line("d", "Just pushed", None),
    ]
}

/// A terminal on which something was printed before the view began.
struct Terminal {
    parser: vt100::Parser,
    block: Block,
    size: Size,
}

const BEFORE: &str = "$ tidegate dev\r\ncluster ready at https://127.0.0.1:40001\r\n";

impl Terminal {
    fn new(width: u16, height: u16) -> Terminal {
        let of = |count: u16| NonZero::new(count).unwrap();
        let mut parser = vt100::Parser::new(of(height), of(width), 1000);
        parser.process(BEFORE.as_bytes());
        let size = Size { width: width.into(), height: height.into() };
        Terminal { parser, block: Block::default(), size }
    }

    fn draws(&mut self, ready: i32) {
        let room = Size { height: self.size.height - 1, ..self.size };
        let rows = rows(&commits(), &seen(ready), room)
            .iter()
            .map(|row| anstream::adapter::strip_str(row).to_string())
            .collect();
        let out = self.block.draw(rows, self.size);
        self.parser.process(out.as_bytes());
    }

    fn resizes(&mut self, width: u16, height: u16) {
        let of = |count: u16| NonZero::new(count).unwrap();
        self.parser.screen_mut().set_size(of(height), of(width));
        self.size = Size { width: width.into(), height: height.into() };
    }

    /// All that is above the screen, then the screen.
    fn text(&mut self) -> (Vec<String>, Vec<String>) {
        let screen = |parser: &vt100::Parser| -> Vec<String> {
            parser.screen().rows(0, 500).map(|row| row.trim_end().to_owned()).collect()
        };
        let now = screen(&self.parser);
        self.parser.screen_mut().set_scrollback(usize::MAX);
        let above = self.parser.screen().scrollback();
        let mut scrolled = Vec::new();
        for back in (1..=above).rev() {
            self.parser.screen_mut().set_scrollback(back);
            scrolled.extend(screen(&self.parser).into_iter().next());
        }
        self.parser.screen_mut().set_scrollback(0);
        (scrolled, now)
    }

    /// Compares the screen with the one that is stored; `TIDEGATE_BLESS=1` stores it.
    #[track_caller]
    fn shows(&mut self, stored: &str) {
        let (above, screen) = self.text();
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cmd/live").join(stored);
        let text = format!("{}\n", screen.join("\n").trim_end());
        if env::var_os("TIDEGATE_BLESS").is_some() {
            fs::write(&file, &text).unwrap();
        }
        let expected = fs::read_to_string(&file).unwrap_or_default();
        assert!(expected == text, "{stored}\n--- stored\n{expected}--- now\n{text}");
        let printed: Vec<&str> = BEFORE.lines().collect();
        let kept = printed.iter().position(|line| above.last().is_some_and(|last| last == line)).map_or(0, |at| at + 1);
        assert_eq!(above, printed[..kept], "something of the view is above the screen");
    }
}

#[test]
fn the_view_fills_a_terminal_and_leaves_nothing_above_it() {
    for (width, height) in [(80, 24), (120, 40)] {
        let mut terminal = Terminal::new(width, height);
        (0..30).for_each(|frame| terminal.draws(frame % 3));
        terminal.draws(1);
        terminal.shows(&format!("{width}x{height}.txt"));
    }
}

#[test]
fn a_resize_redraws_the_view_and_nothing_else() {
    let mut terminal = Terminal::new(120, 40);
    terminal.draws(0);
    for (width, height) in [(80, 40), (60, 24), (100, 30), (80, 24)] {
        terminal.resizes(width, height);
        (0..3).for_each(|ready| terminal.draws(ready));
    }
    terminal.draws(1);
    let (above, screen) = terminal.text();
    let printed: Vec<&str> = BEFORE.lines().collect();
    assert_eq!([above, screen].concat()[..2], printed, "what was printed before is erased");
    terminal.shows("resized.txt");
    // Afterwards the prompt comes below.
    let end = terminal.block.end();
    terminal.parser.process(end.as_bytes());
    terminal.parser.process(b"$ ");
    terminal.shows("ended.txt");
}

#[test]
fn what_is_drawn_already_is_not_drawn_again() {
    let (mut block, size) = (Block::default(), Size { width: 80, height: 24 });
    assert!(!block.draw(vec!["a".into()], size).is_empty());
    assert_eq!(block.draw(vec!["a".into()], size), "");
    assert!(!block.draw(vec!["b".into()], size).is_empty());
    assert!(!block.draw(vec!["b".into()], Size { width: 79, height: 24 }).is_empty());
}
