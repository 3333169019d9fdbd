//! `tidegate demo`, as a person sees it in a pipe and on a terminal.
#![allow(missing_docs, clippy::unwrap_used)]

use std::{
    collections::HashSet,
    fs::File,
    io::Read,
    num::NonZero,
    process::Command,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    pty::{self, OpenptFlags},
    termios::{self, Winsize},
};

#[test]
fn the_demo_ends_well_and_says_how_each_commit_went() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("repository");
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate")).args(["demo", "--keep"]).arg(&kept).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let log = text.split_once("git log\n").unwrap().1;
    let states: Vec<&str> = log
        .lines()
        .filter_map(|line| line.trim().split([' ', ',']).nth(1).filter(|_| line.starts_with("     ")))
        .collect();
    assert_eq!(states, ["success", "failure", "success", "success"], "{text}");
    assert!(log.contains("held since commit"), "{log}");
    assert!(text.contains("step 4/6, 40 %, 2 of 5 pods, pauses"), "{text}");
    let repository = git2::Repository::open_bare(&kept).unwrap();
    let mut walk = repository.revwalk().unwrap();
    walk.push_ref("refs/heads/main").unwrap();
    let notes: Vec<String> = walk
        .map(|id| {
            String::from_utf8_lossy(
                repository.find_note(Some("refs/notes/tidegate"), id.unwrap()).unwrap().message_bytes(),
            )
            .into_owned()
        })
        .collect();
    let states: Vec<&str> =
        notes.iter().filter_map(|note| note.strip_prefix("tidegate/default/demo: ")?.split(',').next()).collect();
    assert_eq!(states, ["success", "failure", "success", "success"], "{notes:?}");
}

/// The live view on a terminal of this size, resized on the way if that is asked for. Nothing wraps, nothing is drawn twice,
/// and nothing of the block is left in the scrollback.
fn watch(size: (u16, u16), resized: Option<(u16, u16)>) {
    let winsize = |(ws_row, ws_col): (u16, u16)| Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
    let master = pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    pty::grantpt(&master).unwrap();
    pty::unlockpt(&master).unwrap();
    let name = pty::ptsname(&master, Vec::new()).unwrap();
    let slave = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    termios::tcsetwinsize(&master, winsize(size)).unwrap();
    let mut demo = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .arg("demo")
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR")
        .stdin(slave.try_clone().unwrap())
        .stdout(slave.try_clone().unwrap())
        .stderr(slave)
        .spawn()
        .unwrap();
    let (sender, chunks) = mpsc::channel();
    let mut reader = File::from(master.try_clone().unwrap());
    thread::spawn(move || {
        let mut bytes = [0; 65536];
        while let Ok(count @ 1..) = reader.read(&mut bytes) {
            if sender.send(bytes[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    let of = |count: u16| NonZero::new(count).unwrap();
    let mut terminal = vt100::Parser::new(of(size.0), of(size.1), 10_000);
    let (begun, mut waits_for, mut pictures, mut moving) = (Instant::now(), resized, 0, 0);
    loop {
        match chunks.recv_timeout(Duration::from_millis(60)) {
            Ok(chunk) => terminal.process(&chunk),
            // Between two frames.
            Err(RecvTimeoutError::Timeout) => {
                let rows: Vec<String> = terminal.screen().rows(0, 500).collect();
                if !rows.iter().any(|row| row == "git log") {
                    check(&rows);
                    pictures += 1;
                    moving += usize::from(rows.iter().any(|row| row.contains("canary")));
                }
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if let Some(new) = waits_for.filter(|_| begun.elapsed() > Duration::from_secs(8)) {
            waits_for = None;
            termios::tcsetwinsize(&master, winsize(new)).unwrap();
            terminal.screen_mut().set_size(of(new.0), of(new.1));
            // The next frame is of the new size.
            let until = Instant::now() + Duration::from_millis(400);
            while let Ok(chunk) = chunks.recv_timeout(until.saturating_duration_since(Instant::now())) {
                terminal.process(&chunk);
            }
        }
        if demo.try_wait().unwrap().is_some() && chunks.recv_timeout(Duration::from_millis(200)).is_err() {
            break;
        }
    }
    assert!(demo.wait().unwrap().success());
    assert!(pictures > 50 && moving > 10, "{pictures} pictures, {moving} of a canary");
    terminal.screen_mut().set_scrollback(usize::MAX);
    let above = terminal.screen().scrollback();
    assert!(above < 60, "{above} lines above the screen");
}

/// What must be so in every picture.
fn check(rows: &[String]) {
    let picture = rows.join("\n");
    let mut commits = HashSet::new();
    for row in rows.iter().map(|row| row.trim_end()).filter(|row| !row.is_empty()) {
        assert!(row.starts_with("  ") || row.starts_with("tidegate demo"), "a line is broken: {row:?}\n{picture}");
        let mut words = row.split_whitespace();
        let (mark, commit) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if "·●✔✖↷".contains(mark) {
            assert!(commits.insert(commit.to_owned()), "{commit} is there twice\n{picture}");
        }
    }
}

#[test]
fn the_live_view_fits_its_terminal() {
    let sizes = [((24, 80), None), ((40, 120), None), ((24, 100), Some((18, 60)))];
    let watching: Vec<_> =
        sizes.into_iter().map(|(size, resized)| thread::spawn(move || watch(size, resized))).collect();
    for watching in watching {
        if let Err(why) = watching.join() {
            std::panic::resume_unwind(why);
        }
    }
}
