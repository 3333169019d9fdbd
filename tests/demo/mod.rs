//! `tidegate demo` and `tidegate dev`, as a person sees them in a pipe and on a terminal.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::Read,
    num::NonZero,
    os::{fd::OwnedFd, unix::fs::chown},
    path::Path,
    process::{Child, Command},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    process::{self, Pid, Signal},
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

const SIZE: (u16, u16) = (24, 80);

fn winsize((ws_row, ws_col): (u16, u16)) -> Winsize {
    Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 }
}

fn of(count: u16) -> NonZero<u16> {
    NonZero::new(count).unwrap()
}

/// A program on a pseudo-terminal, and what its screen shows.
struct Terminal {
    program: Child,
    master: OwnedFd,
    chunks: Receiver<Vec<u8>>,
    parser: vt100::Parser,
}

impl Terminal {
    fn runs(arguments: &[&str], folder: &Path, size: (u16, u16)) -> Terminal {
        let master = pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        pty::grantpt(&master).unwrap();
        pty::unlockpt(&master).unwrap();
        let name = pty::ptsname(&master, Vec::new()).unwrap();
        let slave = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        termios::tcsetwinsize(&master, winsize(size)).unwrap();
        let program = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .args(arguments)
            .env("TERM", "xterm-256color")
            .env("TMPDIR", folder)
            .env("XDG_RUNTIME_DIR", folder)
            .env_remove("NO_COLOR")
            .env_remove("TIDEGATE_LOG")
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
        Terminal { program, master, chunks, parser: vt100::Parser::new(of(size.0), of(size.1), 10_000) }
    }

    fn resize(&mut self, size: (u16, u16)) {
        termios::tcsetwinsize(&self.master, winsize(size)).unwrap();
        self.parser.screen_mut().set_size(of(size.0), of(size.1));
        // The next frame is of the new size.
        let until = Instant::now() + Duration::from_millis(400);
        while let Ok(chunk) = self.chunks.recv_timeout(until.saturating_duration_since(Instant::now())) {
            self.parser.process(&chunk);
        }
    }

    /// Takes in what is written until nothing is for a moment: then the screen is a picture. None once the program has ended.
    fn picture(&mut self) -> Option<Vec<String>> {
        loop {
            match self.chunks.recv_timeout(Duration::from_millis(60)) {
                Ok(chunk) => self.parser.process(&chunk),
                Err(RecvTimeoutError::Timeout) if self.program.try_wait().unwrap().is_none() => {
                    return Some(self.screen());
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Watches, with a look at each picture, until one is as wanted.
    #[track_caller]
    fn until(&mut self, wanted: &str, mut look: impl FnMut(&mut Terminal, &[String])) {
        let begun = Instant::now();
        while let Some(rows) = self.picture() {
            look(self, &rows);
            if rows.iter().any(|row| row.contains(wanted)) {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{wanted:?} never shows:\n{}", rows.join("\n"));
        }
        panic!("it ended without {wanted:?}:\n{}", self.text().join("\n"));
    }

    fn screen(&self) -> Vec<String> {
        self.parser.screen().rows(0, 500).map(|row| row.trim_end().to_owned()).collect()
    }

    /// What is above the screen.
    fn above(&mut self) -> Vec<String> {
        self.parser.screen_mut().set_scrollback(usize::MAX);
        let above = self.parser.screen().scrollback();
        let first = |parser: &mut vt100::Parser, back: usize| {
            parser.screen_mut().set_scrollback(back);
            parser.screen().rows(0, 500).next().unwrap_or_default().trim_end().to_owned()
        };
        let rows = (1..=above).rev().map(|back| first(&mut self.parser, back)).collect();
        self.parser.screen_mut().set_scrollback(0);
        rows
    }

    /// Everything that can be read, from the top.
    fn text(&mut self) -> Vec<String> {
        [self.above(), self.screen()].concat()
    }

    /// Ends it by a signal; its exit code.
    fn signal(&mut self, signal: Signal) -> Option<i32> {
        process::kill_process(Pid::from_child(&self.program), signal).unwrap();
        while self.picture().is_some() {}
        self.program.wait().unwrap().code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// What must be so in every picture of a live view: no line is broken, none is there twice, on the screen or above it.
fn check(terminal: &mut Terminal, rows: &[String], printed: &[&str]) {
    let picture = rows.join("\n");
    let mut commits = HashSet::new();
    for row in rows.iter().filter(|row| !row.is_empty()) {
        let is_printed = printed.iter().any(|line| row.starts_with(line));
        assert!(row.starts_with("  ") || is_printed, "a line is broken: {row:?}\n{picture}");
        let mut words = row.split_whitespace();
        let (mark, commit) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if "·●✔✖↷".contains(mark) {
            assert!(commits.insert(commit.to_owned()), "{commit} is there twice\n{picture}");
        }
    }
    for row in terminal.above() {
        let is_printed = row.is_empty() || printed.iter().any(|line| row.starts_with(line));
        assert!(is_printed, "of the view, above the screen: {row:?}\n{picture}");
    }
}

/// The whole demo on a terminal of this size, resized on the way if that is asked for.
fn watch(size: (u16, u16), resized: Option<(u16, u16)>) {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::runs(&["demo"], folder.path(), size);
    let (begun, mut waits_for, mut pictures, mut moving) = (Instant::now(), resized, 0, 0);
    while let Some(rows) = terminal.picture() {
        if rows.iter().any(|row| row == "git log") {
            continue;
        }
        check(&mut terminal, &rows, &["tidegate demo: "]);
        pictures += 1;
        moving += usize::from(rows.iter().any(|row| row.contains("canary")));
        if let Some(new) = waits_for.filter(|_| begun.elapsed() > Duration::from_secs(8)) {
            waits_for = None;
            terminal.resize(new);
        }
    }
    assert!(terminal.program.wait().unwrap().success());
    assert!(pictures > 50 && moving > 10, "{pictures} pictures, {moving} of a canary");
    let text = terminal.text();
    assert!(text[0].starts_with("tidegate demo: "), "{}", text.join("\n"));
    let twice = text.iter().filter(|row| row.contains("Deploy web 1.0")).count();
    assert_eq!(twice, 2, "once in the view, once in the log:\n{}", text.join("\n"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "a folder is left");
}

#[test]
fn the_live_view_fits_its_terminal() {
    let sizes = [(SIZE, None), ((40, 120), None), ((24, 100), Some((18, 60)))];
    let watching: Vec<_> =
        sizes.into_iter().map(|(size, resized)| thread::spawn(move || watch(size, resized))).collect();
    for watching in watching {
        if let Err(why) = watching.join() {
            std::panic::resume_unwind(why);
        }
    }
}

#[test]
fn a_demo_that_is_stopped_leaves_nothing_behind() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let folder = tempfile::tempdir().unwrap();
        let mut terminal = Terminal::runs(&["demo"], folder.path(), SIZE);
        terminal.until("canary", |terminal, rows| check(terminal, rows, &["tidegate demo: "]));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the scratch repository");
        assert_eq!(terminal.signal(signal), Some(code));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "its folder is left");
        // The view stays, and whatever comes next comes below it.
        let (row, column) = terminal.parser.screen().cursor_position();
        let below = terminal.screen().split_off(row.into()).concat();
        assert_eq!((column, below.as_str()), (0, ""), "{}", terminal.text().join("\n"));
        assert!(terminal.screen().iter().any(|row| row.contains("canary")));
    }
}

/// A repository whose commits are made as a test goes on.
struct Repository(git2::Repository);

impl Repository {
    fn commit(&self, subject: &str, files: &[(&str, String)]) {
        let mut folder = self.0.treebuilder(None).unwrap();
        for (name, text) in files {
            folder.insert(name, self.0.blob(text.as_bytes()).unwrap(), 0o100_644).unwrap();
        }
        let tree = self.0.find_tree(folder.write().unwrap()).unwrap();
        let who = git2::Signature::now("Ada", "ada@example.org").unwrap();
        let parent = self.0.find_reference("refs/heads/main").ok().and_then(|head| head.peel_to_commit().ok());
        let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
        self.0.commit(Some("refs/heads/main"), &who, &who, subject, &tree, &parents).unwrap();
    }
}

fn repository(folder: &Path) -> Repository {
    let mut options = git2::RepositoryInitOptions::new();
    options.initial_head("main").external_template(false);
    Repository(git2::Repository::init_opts(folder, &options).unwrap())
}

/// A blue-green Rollout and so many canaries.
fn manifests(canaries: usize, image: &str) -> Vec<(&'static str, String)> {
    let service = |name: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{selector: {{app: {name}}}, ports: [{{port: 80}}]}}\n"
        )
    };
    let rollout = |name: &str, strategy: &str, replicas: usize| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {{name: {name}}}\nspec:\n  replicas: {replicas}\n  \
             progressDeadlineSeconds: 5\n  progressDeadlineAbort: true\n  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    \
             metadata: {{labels: {{app: {name}}}}}\n    spec: {{containers: [{{name: app, image: \"{image}\"}}]}}\n  \
             strategy: {strategy}\n"
        )
    };
    let blue_green = rollout("blue", "{blueGreen: {activeService: blue, autoPromotionEnabled: false}}", 2);
    let canaries: Vec<String> = (0..canaries)
        .map(|at| rollout(&format!("canary-{at:02}"), "{canary: {steps: [{setWeight: 50}, {pause: {}}]}}", 2))
        .collect();
    vec![("blue.yaml", [blue_green, service("blue")].join("---\n")), ("canaries.yaml", canaries.join("---\n"))]
}

#[test]
fn dev_shows_more_rollouts_than_fit_and_long_failures_on_a_small_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let repo = folder.path().join("repo");
    let repository = repository(&repo);
    repository.commit("Deploy everything", &manifests(12, "registry.example/app:1"));
    let mut terminal = Terminal::runs(&["dev", repo.to_str().unwrap()], folder.path(), SIZE);
    let printed = ["cluster ready at ", "press Ctrl-C to stop", "  export KUBECONFIG=", "  kubectl get namespaces"];
    let look = |terminal: &mut Terminal, rows: &[String]| check(terminal, rows, &printed);
    terminal.until("rolled out: 14 objects", look);
    terminal.until(" more", look);
    repository.commit("An image that does not exist, under a long subject", &manifests(12, "registry.example/app:bad"));
    terminal.until("preview", look);
    terminal.resize((24, 60));
    terminal.until("✖ ", look);
    terminal.resize((30, 100));
    terminal.until("✖ ", look);
    terminal.resize(SIZE);
    terminal.until("✖ ", look);
    assert_eq!(terminal.signal(Signal::INT), Some(0));
    let text = terminal.text();
    assert!(text.iter().any(|row| row.starts_with("cluster ready at ")), "what was above the view is gone");
    assert_eq!(text.iter().filter(|row| row.contains("Deploy everything")).count(), 1, "{}", text.join("\n"));
    assert_eq!(text.iter().rfind(|row| !row.is_empty()).map(String::as_str), Some("stopped"), "{}", text.join("\n"));
}

#[test]
fn dev_says_what_is_wrong_with_a_repository_before_it_begins() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str], user: &[(&str, &str)]| {
        let output = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .arg("dev")
            .args(arguments)
            .envs(user.iter().copied())
            .env("XDG_RUNTIME_DIR", folder.path())
            .output()
            .unwrap();
        (String::from_utf8(output.stderr).unwrap(), output.status.code())
    };
    let nothing = folder.path().join("nothing");
    fs::create_dir(&nothing).unwrap();
    let (said, code) =
        run(&[nothing.to_str().unwrap()], &[("GIT_CEILING_DIRECTORIES", folder.path().to_str().unwrap())]);
    assert!(said.contains("is in no git repository") && said.contains("git init"), "{said}");
    assert_eq!(code, Some(2));
    let repo = folder.path().join("repo");
    repository(&repo).commit("Deploy", &manifests(1, "registry.example/app:1"));
    let (said, code) = run(&[repo.to_str().unwrap(), "--branch", "nope"], &[]);
    assert!(said.contains("error: there is no branch \"nope\"\nhint: there are main\n"), "{said}");
    assert_eq!(code, Some(2));
    // Only root can give a repository to somebody else; what is said is a test of the command's own.
    if chown(&repo, Some(12345), None).is_ok() {
        let (said, code) = run(&[repo.to_str().unwrap()], &[("HOME", folder.path().to_str().unwrap())]);
        let remedy = format!("git config --global --add safe.directory {}", repo.display());
        assert!(said.contains("belongs to another user") && said.contains(&remedy), "{said}");
        assert_eq!(code, Some(2));
    }
}

#[test]
fn dev_waits_for_the_first_commit_of_an_empty_repository() {
    let folder = tempfile::tempdir().unwrap();
    let repo = folder.path().join("repo");
    let repository = repository(&repo);
    let mut terminal = Terminal::runs(&["dev", repo.to_str().unwrap()], folder.path(), SIZE);
    terminal.until("press Ctrl-C to stop", |_, _| {});
    let note = "note: the repository has no commit yet; the first one is rolled out as soon";
    assert!(terminal.text().iter().any(|row| row.starts_with(note)), "{}", terminal.text().join("\n"));
    repository.commit("The first", &manifests(1, "registry.example/app:1"));
    terminal.until("rolled out: 3 objects", |_, _| {});
    assert!(!terminal.text().concat().contains("WARN"), "{}", terminal.text().join("\n"));
    assert_eq!(terminal.signal(Signal::INT), Some(0));
}
