//! `cargo xtask`: the helper commands of this repository in one place. Each runs what CONTRIBUTING would otherwise ask people to type.

#![warn(unreachable_pub)]

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

mod outside;
mod picture;

/// A command: its name, its arguments, what it does.
struct Task {
    name: &'static str,
    arguments: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<(), String>,
}

const TASKS: [Task; 9] = [
    Task {
        name: "bless",
        arguments: "[GROUP …]",
        about: "store what tests print: verbs, scenarios, plan, lint, screens, docs; all without a name",
        run: bless,
    },
    Task { name: "docs", arguments: "", about: "write docs/cli.md, docs/crds.md and docs/metrics.md", run: docs },
    Task { name: "crds", arguments: "", about: "write crds/ from the types", run: crds },
    Task {
        name: "charts",
        arguments: "",
        about: "write charts/tidegate and kustomize/ from what is installed",
        run: charts,
    },
    Task { name: "picture", arguments: "", about: "write docs/demo.svg from a run of tidegate demo", run: picture },
    Task { name: "book", arguments: "", about: "build the book into target/book (installs mdbook once)", run: book },
    Task {
        name: "preprocess",
        arguments: "",
        about: "what mdbook calls: links that leave the book lead to the repository",
        run: preprocess,
    },
    Task {
        name: "facts",
        arguments: "",
        about: "ask a real kube-apiserver for its kinds and rewrite crates/kubernetes/src/facts",
        run: facts,
    },
    Task {
        name: "record",
        arguments: "[GROUP …]",
        about: "record answers of the real programs: conformance (kube-apiserver), ssh (OpenSSH)",
        run: record,
    },
];

/// Stored outputs, and the tests that write them.
const BLESSED: [(&str, &[&str]); 6] = [
    ("verbs", &["--package", "tidegate", "--test", "program", "verbs::"]),
    ("scenarios", &["--package", "tidegate", "--test", "scenarios"]),
    ("plan", &["--package", "tidegate", "--test", "plan"]),
    ("lint", &["--package", "tidegate", "--test", "it", "lint::"]),
    ("screens", &["--package", "tidegate", "--lib", "cmd::live"]),
    ("docs", &["--package", "tidegate", "--test", "it", "reference::"]),
];

const RECORDERS: [(&str, &[&str]); 2] =
    [("conformance", &["tests/conformance/run", "record"]), ("ssh", &["tests/ssh/record"])];

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let Some(task) = arguments.first().and_then(|name| TASKS.iter().find(|task| task.name == name)) else {
        say("cargo xtask COMMAND\n");
        for Task { name, arguments, about, .. } in &TASKS {
            say(&format!("  {:22} {about}", format!("{name} {arguments}")));
        }
        return if arguments.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(2) };
    };
    match (task.run)(&arguments[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("cargo xtask {}: {error}", task.name));
            ExitCode::FAILURE
        }
    }
}

fn say(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}

/// A program in the root of the repository.
fn program(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    command
}

fn cargo() -> Command {
    program(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|error| format!("cannot start {name}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name}: {status}")) }
}

/// The rows that were named; all if none was.
fn chosen<T: Copy>(table: &[(&'static str, T)], names: &[String]) -> Result<Vec<T>, String> {
    for name in names {
        if !table.iter().any(|(known, _)| known == name) {
            let known: Vec<&str> = table.iter().map(|(known, _)| *known).collect();
            return Err(format!("there is no group {name:?}; name some of {}", known.join(", ")));
        }
    }
    let wanted = table.iter().filter(|(name, _)| names.is_empty() || names.iter().any(|wanted| wanted == name));
    Ok(wanted.map(|(_, row)| *row).collect())
}

fn bless(names: &[String]) -> Result<(), String> {
    for test in chosen(&BLESSED, names)? {
        succeed(cargo().args(["test", "--locked", "--quiet"]).args(test).env("TIDEGATE_BLESS", "1"))?;
    }
    succeed(program("git").args(["status", "--short"]))
}

fn docs(_: &[String]) -> Result<(), String> {
    bless(&["docs".to_owned()])
}

fn crds(_: &[String]) -> Result<(), String> {
    succeed(cargo().args(["run", "--locked", "--quiet", "--package", "tidegate", "--", "crds", "--dir", "crds"]))
}

fn charts(_: &[String]) -> Result<(), String> {
    let tidegate = ["run", "--locked", "--quiet", "--package", "tidegate", "--", "manifests"];
    succeed(cargo().args(tidegate).args(["--chart", "charts/tidegate"]))?;
    succeed(cargo().args(tidegate).args(["--kustomize", "kustomize"]))
}

fn facts(_: &[String]) -> Result<(), String> {
    succeed(&mut program("tests/control-plane/facts/run"))
}

fn record(names: &[String]) -> Result<(), String> {
    for recorder in chosen(&RECORDERS, names)? {
        succeed(program(recorder[0]).args(&recorder[1..]))?;
    }
    Ok(())
}

fn book(_: &[String]) -> Result<(), String> {
    let mdbook = program(".ci/tool").arg("mdbook").stderr(Stdio::inherit()).output();
    let mdbook = mdbook.map_err(|error| format!("cannot start .ci/tool: {error}"))?;
    if !mdbook.status.success() {
        return Err("there is no mdbook".to_owned());
    }
    let mdbook = String::from_utf8_lossy(&mdbook.stdout).trim().to_owned();
    succeed(program(mdbook).args(["build", "docs", "--dest-dir"]).arg(root().join("target/book")))
}

fn picture(_: &[String]) -> Result<(), String> {
    let run = cargo().args(["run", "--release", "--locked", "--quiet", "--package", "tidegate", "--", "demo"]).output();
    let run = run.map_err(|error| format!("cannot start cargo: {error}"))?;
    if !run.status.success() {
        return Err(format!("tidegate demo: {}\n{}", run.status, String::from_utf8_lossy(&run.stderr)));
    }
    let path = root().join("docs/demo.svg");
    let svg = picture::svg(&String::from_utf8_lossy(&run.stdout));
    std::fs::write(&path, svg).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn preprocess(arguments: &[String]) -> Result<(), String> {
    // mdbook asks first whether a renderer is supported.
    if arguments.first().is_some_and(|word| word == "supports") {
        return Ok(());
    }
    let read = std::io::read_to_string(std::io::stdin()).map_err(|error| format!("cannot read: {error}"))?;
    let book = outside::preprocess(&read)?;
    use std::io::Write;
    std::io::stdout().write_all(book.as_bytes()).map_err(|error| format!("cannot write: {error}"))
}
