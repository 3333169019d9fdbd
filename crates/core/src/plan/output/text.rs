//! A plan for a terminal: what starts first, then what changes, then what is wrong.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};

use super::{asked, counts, drawing, facts, numbered, side};
use crate::{
    lint::rule::Severity,
    plan::{
        Change, Live, Plan, PlannedHook, RolloutPlan, Warning, What,
        escape::{line, visible},
        forecast::{Forecast, WaitsFor, length},
        hook::moment,
    },
};

/// So many objects are shown with their differences; of the rest only the names.
const SHOWN: usize = 60;
/// So many more are named; the rest is counted.
const NAMED: usize = 400;
/// So many lines of one difference are shown.
const LINES: usize = 300;
/// So many Rollouts are shown with their forecasts.
const FORECASTS: usize = 20;
/// So many warnings are shown.
const WARNINGS: usize = 100;

/// A plan for people. Colour is in it; whoever prints it takes it out where it is not wanted.
pub fn text(plan: &Plan) -> String {
    let mut out = String::new();
    let bold = Style::new().bold();
    let _ = writeln!(out, "{bold}{} → {}{bold:#}{}", side(&plan.from), side(&plan.to), about(plan));
    let _ = writeln!(out, "{}", counts(plan));
    let _ = writeln!(out, "plan {}", plan.hash);
    if !plan.problems.is_empty() {
        heading(&mut out, "Nothing would be applied");
        for problem in &plan.problems {
            let _ = writeln!(out, "  {}", line(&problem.to_string()));
        }
    }
    if !plan.rollouts.is_empty() {
        heading(&mut out, "What it starts");
        for (index, rollout) in plan.rollouts.iter().enumerate() {
            started(&mut out, rollout, index < FORECASTS);
        }
    }
    out += &hooks(&plan.hooks);
    if !plan.warnings.is_empty() {
        heading(&mut out, "Warnings");
        plan.warnings.iter().take(WARNINGS).for_each(|warning| warned(&mut out, warning));
        let left = plan.warnings.len().saturating_sub(WARNINGS);
        if left > 0 {
            let _ = writeln!(out, "  and {left} more; `-o json` lists them all");
        }
    }
    if !plan.objects.is_empty() {
        heading(&mut out, "What changes");
        for (index, change) in plan.objects.iter().enumerate().take(NAMED) {
            changed(&mut out, change, index < SHOWN);
        }
        rest(&mut out, plan.objects.get(NAMED..).unwrap_or_default());
    }
    if let Some(live) = &plan.live {
        cluster(&mut out, live);
    }
    out
}

fn about(plan: &Plan) -> String {
    let mut about = String::new();
    if !plan.path.is_empty() {
        about += &format!(", path {}", line(&plan.path));
    }
    if !plan.source.is_empty() {
        about += &format!(", GitSource {}", line(&plan.source));
    }
    about
}

fn heading(out: &mut String, title: &str) {
    let bold = Style::new().bold();
    let _ = writeln!(out, "\n{bold}{title}{bold:#}");
}

fn started(out: &mut String, rollout: &RolloutPlan, whole: bool) {
    let cyan = AnsiColor::Cyan.on_default().bold();
    let place = format!("{}:{}", line(&rollout.file), rollout.line);
    let _ = writeln!(out, "  {cyan}{}{cyan:#}: {} ({place})", line(&rollout.id.to_string()), rollout.starts.title());
    let _ = writeln!(out, "    {}", line(&rollout.reason));
    let Some(forecast) = rollout.forecast.as_ref().filter(|_| whole) else { return };
    let _ = writeln!(out, "    {}", facts(rollout).join("; "));
    table(out, forecast);
    for row in drawing(forecast) {
        let _ = writeln!(out, "    {row}");
    }
}

/// The steps of a forecast, in columns.
fn table(out: &mut String, forecast: &Forecast) {
    let head = ["at", "step", "weight", "traffic", "stable", "canary", "total", "waits for", ""].map(str::to_owned);
    let mut rows = vec![head];
    for step in &forecast.steps {
        rows.push([
            length(step.at),
            numbered(step),
            format!("{}%", step.weight),
            format!("{}%", step.traffic),
            step.stable.to_string(),
            step.canary.to_string(),
            step.total.to_string(),
            waiting(step.waits_for, &length(step.lasts)),
            line(&step.what),
        ]);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..9).map(width).collect();
    for row in &rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(index, (cell, width))| {
            let pad = " ".repeat(width - cell.chars().count());
            if index < 7 { format!("{pad}{cell}") } else { format!("{cell}{pad}") }
        });
        let _ = writeln!(out, "    {}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    for step in &forecast.steps {
        for analysis in &step.analyses {
            let arguments: Vec<String> =
                analysis.arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let lasts = analysis.lasts.map(|lasts| format!(", {}", length(lasts))).unwrap_or_default();
            let _ = writeln!(
                out,
                "    step {}: {} analysis {}({}){lasts}",
                step.number,
                line(&analysis.role),
                line(&analysis.metrics.join(", ")),
                line(&arguments.join(", "))
            );
            for query in &analysis.queries {
                let _ = writeln!(out, "      today {}", asked(query));
            }
        }
        if let Some(back) = &step.if_analysis_fails {
            let _ = writeln!(
                out,
                "    step {}: if the analysis fails: back to {} in {}",
                step.number,
                line(&back.to),
                length(back.lasts)
            );
        }
    }
}

/// `pause 1m`, `approval`
pub(super) fn waiting(waits_for: WaitsFor, lasts: &str) -> String {
    match waits_for {
        WaitsFor::Nothing => String::new(),
        WaitsFor::Approval => "approval".to_owned(),
        WaitsFor::Pods | WaitsFor::Pause | WaitsFor::Analysis => format!("{} {lasts}", waits_for.as_str()),
    }
}

/// The hooks that run, under their heading; empty if there are none.
pub fn hooks(hooks: &[PlannedHook]) -> String {
    let mut out = String::new();
    if hooks.is_empty() {
        return out;
    }
    heading(&mut out, "Hooks that run");
    hooks.iter().take(NAMED).for_each(|hook| runs(&mut out, hook));
    let left = hooks.len().saturating_sub(NAMED);
    if left > 0 {
        let _ = writeln!(out, "  and {left} more; `-o json` lists them all");
    }
    out
}

fn runs(out: &mut String, hook: &PlannedHook) {
    let (phase, when) = (hook.phase.name(), moment(hook.phase));
    let (id, file) = (line(&hook.id.to_string()), line(&hook.file));
    let _ = writeln!(out, "  {phase} {id} ({file}:{}): {when}", hook.line);
}

fn warned(out: &mut String, warning: &Warning) {
    let colour = match warning.severity {
        Severity::Error => AnsiColor::Red,
        Severity::Warning => AnsiColor::Yellow,
        Severity::Hint => AnsiColor::Cyan,
    };
    let style = colour.on_default().bold();
    let place = match (warning.file.as_str(), warning.line) {
        ("", _) => String::new(),
        (file, 0) => format!("{}: ", line(file)),
        (file, number) => format!("{}:{number}: ", line(file)),
    };
    let remedy = if warning.remedy.is_empty() { String::new() } else { format!("; {}", line(&warning.remedy)) };
    let _ = writeln!(
        out,
        "  {style}{}{style:#} {place}{}{}{remedy} [{}]",
        warning.severity,
        if warning.object.is_empty() { String::new() } else { format!("{}: ", line(&warning.object)) },
        line(&warning.message),
        line(&warning.rule)
    );
}

fn changed(out: &mut String, change: &Change, whole: bool) {
    let (word, colour) = match change.what {
        What::Create => ("create", AnsiColor::Green),
        What::Change => ("change", AnsiColor::Yellow),
        What::Delete => ("delete", AnsiColor::Red),
        What::Keep => ("keep", AnsiColor::Cyan),
    };
    let style = colour.on_default().bold();
    let _ = writeln!(out, "  {style}{word}{style:#} {}  {}", line(&change.id.to_string()), line(&change.place()));
    if !change.note.is_empty() {
        let _ = writeln!(out, "    {}", line(&change.note));
    }
    if whole {
        diff(out, &change.diff);
    }
}

fn diff(out: &mut String, text: &str) {
    let (red, green, cyan) = (AnsiColor::Red.on_default(), AnsiColor::Green.on_default(), AnsiColor::Cyan.on_default());
    let text = visible(text);
    for row in text.lines().take(LINES) {
        let style = match row.as_bytes().first() {
            _ if row.starts_with("---") || row.starts_with("+++") => Style::new().bold(),
            Some(b'-') => red,
            Some(b'+') => green,
            Some(b'@') => cyan,
            Some(_) | None => Style::new(),
        };
        let _ = writeln!(out, "    {style}{row}{style:#}");
    }
    let left = text.lines().count().saturating_sub(LINES);
    if left > 0 {
        let _ = writeln!(out, "    … {left} more lines; `-o json` has them all");
    }
}

/// What is only counted, by what becomes of it and by kind.
fn rest(out: &mut String, changes: &[Change]) {
    let mut counts: std::collections::BTreeMap<(What, &str), usize> = std::collections::BTreeMap::new();
    changes.iter().for_each(|change| *counts.entry((change.what, change.id.kind.as_str())).or_default() += 1);
    for ((what, kind), count) in counts {
        let _ = writeln!(out, "  {} {count} more of kind {}", what.as_str(), line(kind));
    }
}

fn cluster(out: &mut String, live: &Live) {
    heading(out, &format!("In the cluster {}", line(&live.cluster)));
    if live.objects.is_empty() && live.prune.is_empty() && live.unseen.is_empty() {
        let _ = writeln!(out, "  everything is as the new side wants it");
    }
    for (index, object) in live.objects.iter().enumerate() {
        let _ = writeln!(out, "  {}", line(&object.id.to_string()));
        if !object.refused.is_empty() {
            let red = AnsiColor::Red.on_default().bold();
            let _ = writeln!(out, "    {red}refused{red:#} {}", line(&object.refused));
        }
        for (title, text) in [
            ("this change does to the live object:", &object.change),
            ("drift, not part of this change:", &object.drift),
        ] {
            if !text.is_empty() {
                let _ = writeln!(out, "    {title}");
                if index < SHOWN {
                    diff(out, text);
                }
            }
        }
    }
    for pruned in &live.prune {
        let word = if pruned.removed { "prune" } else { "keep" };
        let _ = writeln!(out, "  {word} {}: {}", line(&pruned.id.to_string()), line(&pruned.reason));
    }
    for unseen in &live.unseen {
        let _ = writeln!(out, "  not read: {}", line(unseen));
    }
}
