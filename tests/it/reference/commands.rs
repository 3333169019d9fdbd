//! `docs/cli.md`, from the arguments that the program reads.

use std::fmt::Write;

use clap::{Arg, Command, CommandFactory};
use tidegate::cmd::Cli;

use super::{cell, check};

/// Flags that every command of a cluster takes, in a section of their own.
const CONNECTION: &str = "Cluster";

#[test]
fn the_page_of_commands_is_what_the_program_reads() {
    let mut program = Cli::command();
    program.build();
    check("cli.md", &page(&program));
}

fn page(program: &Command) -> String {
    let mut out = String::from("# Commands\n\n");
    let commands: Vec<&Command> = visible(program).collect();
    let _ = writeln!(out, "`tidegate COMMAND --help` says the same on a terminal.\n\n| command | |\n|---|---|");
    for command in &commands {
        let _ = writeln!(out, "| [`{0}`](#tidegate-{0}) | {1} |", command.get_name(), about(command));
    }
    let _ = writeln!(out, "\n## Flags of every command\n");
    table(program.get_arguments().filter(|arg| arg.is_global_set()), &mut out);
    let connected = commands.iter().find(|command| flags(command).any(is_of_connection));
    let _ = writeln!(out, "\n## Flags of the cluster\n\nEvery command that reaches a cluster takes them.\n");
    table(connected.into_iter().flat_map(|command| flags(command)).filter(|arg| is_of_connection(arg)), &mut out);
    for command in commands {
        describe(command, "tidegate", &mut out);
    }
    out
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str()))
}

fn is_of_connection(arg: &Arg) -> bool {
    arg.get_help_heading() == Some(CONNECTION)
}

fn about(command: &Command) -> String {
    cell(&command.get_about().map(ToString::to_string).unwrap_or_default())
}

fn describe(command: &Command, parent: &str, out: &mut String) {
    let name = format!("{parent} {}", command.get_name());
    let usage = command.clone().bin_name(&name).render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    let text = command.get_long_about().or_else(|| command.get_about()).map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(out, "\n## {name}\n\n{text}\n\n```text\n{usage}\n```");
    let aliases: Vec<String> = command.get_visible_aliases().map(|alias| format!("`{alias}`")).collect();
    if !aliases.is_empty() {
        let _ = writeln!(out, "\nAlso called {}.", aliases.join(", "));
    }
    let own: Vec<&Arg> = flags(command).filter(|arg| !is_of_connection(arg) && !is_of_program(arg)).collect();
    if !own.is_empty() {
        out.push('\n');
        table(own.into_iter(), out);
    }
    if let Some(after) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        let _ = writeln!(out, "\n{after}");
    }
    for below in visible(command) {
        describe(below, &name, out);
    }
}

/// Flags that the program itself has, and clap hands down.
fn is_of_program(arg: &Arg) -> bool {
    arg.is_global_set() && Cli::command().get_arguments().any(|own| own.get_id() == arg.get_id())
}

fn table<'a>(arguments: impl Iterator<Item = &'a Arg>, out: &mut String) {
    out.push_str("| | |\n|---|---|\n");
    for arg in arguments {
        let _ = writeln!(out, "| {} | {} |", name(arg), meaning(arg));
    }
}

/// `-n`, `--namespace NAMESPACE`
fn name(arg: &Arg) -> String {
    let values: Vec<&str> = arg.get_value_names().unwrap_or_default().iter().map(|name| name.as_str()).collect();
    let takes_value = arg.get_action().takes_values();
    let value = if takes_value { values.join(" ") } else { String::new() };
    if arg.is_positional() {
        let more = if arg.get_num_args().is_some_and(|count| count.max_values() > 1) { "…" } else { "" };
        return format!("`{value}{more}`");
    }
    let short = arg.get_short().map(|letter| format!("`-{letter}`, ")).unwrap_or_default();
    let long = arg.get_long().unwrap_or_default();
    format!("{short}`--{long}{}{value}`", if takes_value { " " } else { "" })
}

fn meaning(arg: &Arg) -> String {
    let help = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut out = cell(&help);
    if !out.is_empty() && !out.ends_with(['.', '!', '?']) {
        out.push('.');
    }
    let takes_value = arg.get_action().takes_values();
    let words: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|word| !word.is_hide_set())
        .map(|word| format!("`{}`", word.get_name()))
        .collect();
    if takes_value && !words.is_empty() && !arg.is_hide_possible_values_set() {
        let _ = write!(out, " One of {}.", words.join(", "));
    }
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|word| word.to_string_lossy().into_owned()).collect();
    if takes_value && !defaults.is_empty() && !arg.is_hide_default_value_set() {
        let _ = write!(out, " Default: `{}`.", cell(&defaults.join(",")));
    }
    if let Some(variable) = arg.get_env().filter(|_| !arg.is_hide_env_set()) {
        let _ = write!(out, " Environment: `{}`.", variable.to_string_lossy());
    }
    out
}
