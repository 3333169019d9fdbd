//! A plan for a comment or a job summary, in GitHub's Markdown, which Gitea, Forgejo and GitLab read, too.
//!
//! Never longer than the host takes: what is less important is shown in less detail, each time as a whole, so that no fence or
//! fold is left open.

use std::{collections::BTreeMap, fmt::Write};

use super::{asked, counts, drawing, facts, numbered, side, text::waiting};
use crate::{
    lint::rule::Severity,
    plan::{
        Change, Live, Plan, RolloutPlan, Warning, What,
        escape::{cell, code, fence, line, prose, summary},
        forecast::{Forecast, length},
        hook::moment,
    },
};

/// What hosts take as a comment, with room for a marker around it.
pub const LIMIT: usize = 65_000;

/// How much is shown.
#[derive(Debug, Clone, Copy)]
struct Detail {
    /// Rollouts with forecasts.
    forecasts: usize,
    /// Objects with their differences.
    differences: usize,
    /// Lines of each difference.
    lines: usize,
    /// Objects and warnings by name.
    names: usize,
}

const DETAILS: [Detail; 7] = [
    Detail { forecasts: usize::MAX, differences: usize::MAX, lines: usize::MAX, names: usize::MAX },
    Detail { forecasts: 50, differences: 200, lines: 200, names: 1000 },
    Detail { forecasts: 20, differences: 60, lines: 80, names: 400 },
    Detail { forecasts: 10, differences: 20, lines: 40, names: 200 },
    Detail { forecasts: 5, differences: 5, lines: 30, names: 100 },
    Detail { forecasts: 1, differences: 0, lines: 0, names: 30 },
    Detail { forecasts: 0, differences: 0, lines: 0, names: 0 },
];

/// A plan as Markdown of at most so many bytes. `pictures` says where the curve of a Rollout is, if it is anywhere.
pub fn markdown(plan: &Plan, limit: usize, pictures: &dyn Fn(&RolloutPlan) -> Option<String>) -> String {
    let mut out = String::new();
    for detail in DETAILS {
        out = whole(plan, detail, pictures);
        if out.len() <= limit {
            break;
        }
    }
    out
}

fn whole(plan: &Plan, detail: Detail, pictures: &dyn Fn(&RolloutPlan) -> Option<String>) -> String {
    let mut out = String::new();
    let _ =
        writeln!(out, "### Tidegate plan: {}\n", if plan.has_changes() { counts(plan) } else { "no changes".into() });
    let mut about = format!("{} → {}", code(&side(&plan.from)), code(&side(&plan.to)));
    if !plan.path.is_empty() {
        about += &format!(", path {}", code(&plan.path));
    }
    if !plan.source.is_empty() {
        about += &format!(", GitSource {}", code(&plan.source));
    }
    let _ = writeln!(out, "{about}, plan `{}`\n", plan.hash.get(..12).unwrap_or_default());
    if !plan.problems.is_empty() {
        out += "**Nothing would be applied:**\n\n";
        for problem in plan.problems.iter().take(detail.names.max(10)) {
            let _ = writeln!(out, "- {}", code(&problem.to_string()));
        }
        more(&mut out, plan.problems.len(), detail.names.max(10));
        out.push('\n');
    }
    if !plan.rollouts.is_empty() {
        out += "#### What it starts\n\n";
        for (index, rollout) in plan.rollouts.iter().enumerate().take(detail.names.max(10)) {
            started(&mut out, rollout, index < detail.forecasts, pictures);
        }
        more(&mut out, plan.rollouts.len(), detail.names.max(10));
    }
    if !plan.hooks.is_empty() {
        out += "#### Hooks that run\n\n";
        for hook in plan.hooks.iter().take(detail.names.max(10)) {
            let (phase, when) = (hook.phase.name(), moment(hook.phase));
            let (id, place) = (code(&hook.id.to_string()), code(&format!("{}:{}", hook.file, hook.line)));
            let _ = writeln!(out, "- {phase} {id} ({place}): {when}");
        }
        more(&mut out, plan.hooks.len(), detail.names.max(10));
        out.push('\n');
    }
    if !plan.warnings.is_empty() {
        warnings(&mut out, &plan.warnings, detail);
    }
    if !plan.objects.is_empty() {
        out += "#### What changes\n\n";
        for (index, change) in plan.objects.iter().enumerate().take(detail.names) {
            changed(&mut out, change, if index < detail.differences { detail.lines } else { 0 });
        }
        rest(&mut out, plan.objects.get(detail.names..).unwrap_or_default());
        out.push('\n');
    }
    if let Some(live) = &plan.live {
        cluster(&mut out, live, detail);
    }
    out
}

fn more(out: &mut String, count: usize, shown: usize) {
    if count > shown {
        let _ = writeln!(out, "- and {} more", count - shown);
    }
}

fn started(out: &mut String, rollout: &RolloutPlan, detailed: bool, pictures: &dyn Fn(&RolloutPlan) -> Option<String>) {
    let _ = writeln!(
        out,
        "**{}: {}** ({}), {}\n",
        code(&rollout.id.to_string()),
        rollout.starts.title(),
        code(&format!("{}:{}", rollout.file, rollout.line)),
        prose(&rollout.reason)
    );
    let Some(forecast) = rollout.forecast.as_ref().filter(|_| detailed) else { return };
    for fact in facts(rollout) {
        let _ = writeln!(out, "- {}", prose(&fact));
    }
    out.push('\n');
    table(out, forecast);
    let rows = drawing(forecast);
    if !rows.is_empty() {
        out.push_str(&fence("text", &rows.join("\n")));
        out.push('\n');
    }
    if let Some(picture) = pictures(rollout) {
        let _ = writeln!(out, "![pods and weight over time](<{}>)\n", picture.replace(['<', '>', '\n', '\\'], "_"));
    }
}

fn table(out: &mut String, forecast: &Forecast) {
    if forecast.steps.is_empty() {
        return;
    }
    *out += "| at | step | | weight | traffic | stable | canary | total | waits for |\n";
    *out += "|--:|--:|---|--:|--:|--:|--:|--:|---|\n";
    for step in &forecast.steps {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {}% | {}% | {} | {} | {} | {} |",
            length(step.at),
            numbered(step),
            cell(&step.what),
            step.weight,
            step.traffic,
            step.stable,
            step.canary,
            step.total,
            waiting(step.waits_for, &length(step.lasts))
        );
    }
    out.push('\n');
    let mut lines = Vec::new();
    for step in &forecast.steps {
        for analysis in &step.analyses {
            let arguments: Vec<String> =
                analysis.arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let lasts = analysis.lasts.map(|lasts| format!(", {}", length(lasts))).unwrap_or_default();
            let with =
                if arguments.is_empty() { String::new() } else { format!(" with {}", code(&arguments.join(", "))) };
            lines.push(format!(
                "- step {}: {} analysis of {}{with}{lasts}",
                step.number,
                prose(&analysis.role),
                code(&analysis.metrics.join(", "))
            ));
            lines.extend(analysis.queries.iter().map(|query| format!("  - today {}", code(&asked(query)))));
        }
        if let Some(back) = &step.if_analysis_fails {
            let lasts = length(back.lasts);
            lines.push(format!("- step {}: if it fails, back to {} in {lasts}", step.number, prose(&back.to)));
        }
    }
    if !lines.is_empty() {
        let _ = writeln!(out, "{}\n", lines.join("\n"));
    }
}

fn warnings(out: &mut String, warnings: &[Warning], detail: Detail) {
    *out += "#### Warnings\n\n";
    for warning in warnings.iter().take(detail.names) {
        let mark = match warning.severity {
            Severity::Error => "❌",
            Severity::Warning => "⚠️",
            Severity::Hint => "💡",
        };
        let place = match (warning.file.as_str(), warning.line) {
            ("", _) => String::new(),
            (file, 0) => format!("{}: ", code(file)),
            (file, number) => format!("{}: ", code(&format!("{file}:{number}"))),
        };
        let remedy = if warning.remedy.is_empty() { String::new() } else { format!("; {}", prose(&warning.remedy)) };
        let _ = writeln!(
            out,
            "- {mark} {place}{}{}{remedy} ({})",
            if warning.object.is_empty() { String::new() } else { format!("{}: ", code(&warning.object)) },
            prose(&warning.message),
            code(&warning.rule)
        );
    }
    more(out, warnings.len(), detail.names);
    out.push('\n');
}

fn changed(out: &mut String, change: &Change, lines: usize) {
    let place = change.place();
    let note = if change.note.is_empty() { String::new() } else { format!(": {}", change.note) };
    if lines == 0 || change.diff.is_empty() {
        let (what, note) = (change.what.as_str(), prose(&note));
        let _ = writeln!(out, "- {what} {} ({}){note}", code(&change.id.to_string()), code(&place));
        return;
    }
    let _ = writeln!(
        out,
        "<details><summary>{} {} {}</summary>\n",
        change.what.as_str(),
        summary(&change.id.to_string()),
        summary(&place)
    );
    if !note.is_empty() {
        let _ = writeln!(out, "{}\n", prose(note.trim_start_matches(": ")));
    }
    *out += &cut(&change.diff, lines);
    *out += "\n</details>\n\n";
}

/// A difference of at most so many lines.
fn cut(diff: &str, lines: usize) -> String {
    let count = diff.lines().count();
    if count <= lines {
        return fence("diff", diff);
    }
    let kept: String = diff.split_inclusive('\n').take(lines).collect();
    format!("{}\n{} more lines\n", fence("diff", &kept), count - lines)
}

fn rest(out: &mut String, changes: &[Change]) {
    let mut counts: BTreeMap<(What, &str), usize> = BTreeMap::new();
    changes.iter().for_each(|change| *counts.entry((change.what, change.id.kind.as_str())).or_default() += 1);
    for ((what, kind), count) in counts.into_iter().take(40) {
        let _ = writeln!(out, "- {} {count} more of kind {}", what.as_str(), code(kind));
    }
}

fn cluster(out: &mut String, live: &Live, detail: Detail) {
    let _ = writeln!(out, "#### In the cluster {}\n", code(&live.cluster));
    if live.objects.is_empty() && live.prune.is_empty() && live.unseen.is_empty() {
        *out += "Everything is as the new side wants it.\n\n";
    }
    for (index, object) in live.objects.iter().enumerate().take(detail.names) {
        let name = object.id.to_string();
        if !object.refused.is_empty() {
            let _ = writeln!(out, "- ❌ {} is refused: {}\n", code(&name), code(&object.refused));
        }
        let both = [
            ("this change does to the live object", &object.change),
            ("drift, not part of this change", &object.drift),
        ];
        for (title, diff) in both.into_iter().filter(|(_, diff)| !diff.is_empty()) {
            if index < detail.differences && detail.lines > 0 {
                let _ = writeln!(out, "<details><summary>{} {title}</summary>\n", summary(&name));
                *out += &cut(diff, detail.lines);
                *out += "\n</details>\n\n";
            } else {
                let _ = writeln!(out, "- {}: {title}", code(&name));
            }
        }
    }
    more(out, live.objects.len(), detail.names);
    for pruned in live.prune.iter().take(detail.names) {
        let word = if pruned.removed { "prune" } else { "keep" };
        let _ = writeln!(out, "- {word} {}: {}", code(&line(&pruned.id.to_string())), prose(&pruned.reason));
    }
    more(out, live.prune.len(), detail.names);
    for unseen in live.unseen.iter().take(detail.names) {
        let _ = writeln!(out, "- not read: {}", prose(unseen));
    }
    more(out, live.unseen.len(), detail.names);
    out.push('\n');
}
