//! What commands print: text as it is, objects as kubectl prints them.

use std::{
    borrow::Cow,
    fmt,
    io::{self, IsTerminal, Write},
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::Context;
use clap::{ArgAction, ValueEnum};
use serde::Serialize;

use super::access::Unneeded;
use crate::{
    kubernetes::{foreign, value::Value},
    value,
};

/// How to print an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The object as JSON.
    Json,
    /// The object as YAML.
    Yaml,
    /// `rollout.argoproj.io/web`
    Name,
}

/// Whether to go on looking. As in kubectl, `--watch=false` is a way to say so, too.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Watch {
    /// Go on, and show every change.
    #[arg(short, long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_possible_values = true, hide_default_value = true)]
    pub watch: bool,
}

/// The arguments of `tidegate version`.
#[derive(Debug, clap::Args)]
pub struct Version {
    /// Only the number.
    #[arg(long)]
    pub short: bool,
    #[command(flatten)]
    _unneeded: Unneeded,
}

/// Prints the version.
pub fn version(short: bool) -> anyhow::Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    let platform = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
    // Of a release; whoever builds the source knows what it is.
    let commit = option_env!("TIDEGATE_COMMIT").map(|commit| format!("  GitCommit: {commit}\n")).unwrap_or_default();
    say(&if short {
        format!("tidegate: v{version}\n")
    } else {
        format!("tidegate: v{version}\n{commit}  Platform: {platform}\n")
    })
}

/// The reader of standard output is gone: no error, but the end of a command that goes on.
#[derive(Debug, thiserror::Error)]
#[error("standard output is closed")]
pub struct Closed;

/// Prints the result of a command; colour goes to terminals only. A reader who has read enough (`tidegate diff | head`)
/// changes nothing about how the command ends.
pub fn say(text: &str) -> anyhow::Result<()> {
    match stream(text) {
        Err(error) if error.is::<Closed>() => Ok(()),
        outcome => outcome,
    }
}

/// Prints a part of what goes on being printed: [`Closed`] once nobody can read it.
pub fn stream(text: &str) -> anyhow::Result<()> {
    draw(&shown(text))
}

/// Prints what was made for a terminal, with its movements of the cursor.
pub fn draw(text: &str) -> anyhow::Result<()> {
    written(anstream::stdout().lock(), text)
}

/// Prints a document as it is: nothing in it is taken for a colour.
pub fn document(text: &str) -> anyhow::Result<()> {
    match written(io::stdout().lock(), &shown(text)) {
        Err(error) if error.is::<Closed>() => Ok(()),
        outcome => outcome,
    }
}

/// A program that reads gets every byte; on a terminal nothing but colour is acted upon.
fn shown(text: &str) -> Cow<'_, str> {
    if io::stdout().is_terminal() { Cow::Owned(foreign::terminal(text)) } else { Cow::Borrowed(text) }
}

fn written(mut out: impl Write, text: &str) -> anyhow::Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Closed.into()),
        outcome => outcome.context("cannot write to standard output"),
    }
}

/// Prints a line on standard output where nothing depends on whether it is read.
pub fn line(text: impl fmt::Display) {
    let _ = stream(&format!("{text}\n"));
}

/// Prints a line for people on standard error, if there is anywhere to print it.
pub fn note(text: impl fmt::Display) {
    let mut err = anstream::stderr().lock();
    let line = if LOGS_ARE_JSON.load(Ordering::Relaxed) {
        let now = jiff::Timestamp::now().to_string();
        value!({"timestamp": now, "level": "INFO", "message": text.to_string(), "target": "tidegate"}).to_json()
    } else {
        foreign::terminal(&text.to_string())
    };
    let _ = err.write_all(format!("{line}\n").as_bytes()).and_then(|()| err.flush());
}

/// Whether what goes beside logs is a line of them: then every line is JSON, whatever reads it.
pub static LOGS_ARE_JSON: AtomicBool = AtomicBool::new(false);

/// Prints an object, or in text what happened to it.
pub fn show(object: &Value, format: Option<Format>, text: &str) -> anyhow::Result<()> {
    match format {
        None => say(text),
        Some(format) => say(&formatted(object, format)),
    }
}

/// Prints objects: as a list if it is to be JSON or YAML.
pub fn show_all(objects: &[Value], format: Format) -> anyhow::Result<()> {
    if format == Format::Name {
        return say(&objects.iter().map(|object| formatted(object, format)).collect::<String>());
    }
    let items = Value::list(objects.iter().map(without_managers));
    say(&formatted(
        &value!({"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}),
        format,
    ))
}

fn without_managers(object: &Value) -> Value {
    let mut object = object.clone();
    object.remove_at(&["metadata", "managedFields"]);
    object
}

fn formatted(object: &Value, format: Format) -> String {
    let shown = without_managers(object);
    match format {
        Format::Json => {
            let mut bytes = Vec::new();
            let pretty = serde_json::ser::PrettyFormatter::with_indent(b"    ");
            // A value has string keys and goes to memory: it cannot fail.
            let _ = shown.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, pretty));
            bytes.push(b'\n');
            String::from_utf8(bytes).unwrap_or_default()
        }
        Format::Yaml => serde_saphyr::to_string(&shown).unwrap_or_default(),
        Format::Name => format!("{}\n", name(object)),
    }
}

/// `rollout.argoproj.io/web`, `pod/web-1`
pub fn name(object: &Value) -> String {
    let text = |path: &[&str]| object.str_at(path).unwrap_or_default();
    let kind = text(&["kind"]).to_lowercase();
    let name = text(&["metadata", "name"]);
    match text(&["apiVersion"]).split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_printed_as_kubectl_prints_them() {
        let object = value!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
            "metadata": {"name": "web", "managedFields": [{"manager": "x"}]},
        });
        assert_eq!(formatted(&object, Format::Name), "rollout.argoproj.io/web\n");
        assert_eq!(
            formatted(&object, Format::Json),
            "{\n    \"apiVersion\": \"argoproj.io/v1alpha1\",\n    \"kind\": \"Rollout\",\n    \"metadata\": {\n        \"name\": \"web\"\n    }\n}\n"
        );
        assert_eq!(
            formatted(&object, Format::Yaml),
            "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata:\n  name: web\n"
        );
        assert_eq!(name(&value!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}})), "pod/a");
    }
}
