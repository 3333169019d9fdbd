//! A plan as one page without scripts and without anything from elsewhere.

use std::fmt::Write;

use super::{asked, counts, facts, numbered, picture::svg, side, text::waiting};
use crate::plan::{
    Live, Plan, RolloutPlan,
    escape::{html as escaped, line},
    forecast::{Forecast, length},
    hook::moment,
};

const STYLE: &str = "\
:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:0 auto;padding:1rem;overflow-wrap:anywhere}\
h1{font-size:1.4rem}h2{font-size:1.15rem;margin-top:2rem}h3{font-size:1rem}\
.wide{overflow-x:auto}table{border-collapse:collapse;overflow-wrap:normal;white-space:nowrap;font-variant-numeric:tabular-nums}\
td,th{padding:.2rem .6rem;border-bottom:1px solid #8884;text-align:right}td.l,th.l{text-align:left}\
pre{overflow-x:auto;background:#8881;padding:.6rem;border-radius:4px;font-size:13px;overflow-wrap:normal}\
ins{color:#1a7f37;text-decoration:none}del{color:#cf222e;text-decoration:none}\
.error{color:#cf222e}.warning{color:#9a6700}.hint{color:#0969da}summary{cursor:pointer}svg{max-width:100%;height:auto}";

/// A plan as a page.
pub fn html(plan: &Plan) -> String {
    let mut out = String::from("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    // Nothing is loaded and nothing runs, whatever slipped in.
    out += "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">";
    out += "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>Tidegate plan</title>";
    let _ = writeln!(out, "<style>{STYLE}</style></head><body>");
    let _ = writeln!(out, "<h1>Tidegate plan: {}</h1>", escaped(&counts(plan)));
    let mut about = format!("<code>{}</code> → <code>{}</code>", escaped(&side(&plan.from)), escaped(&side(&plan.to)));
    if !plan.path.is_empty() {
        about += &format!(", path <code>{}</code>", escaped(&line(&plan.path)));
    }
    if !plan.source.is_empty() {
        about += &format!(", GitSource <code>{}</code>", escaped(&line(&plan.source)));
    }
    let _ = writeln!(out, "<p>{about}<br>plan <code>{}</code></p>", plan.hash);
    if !plan.problems.is_empty() {
        out += "<h2 class=\"error\">Nothing would be applied</h2>\n<ul>";
        for problem in &plan.problems {
            let _ = writeln!(out, "<li><code>{}</code></li>", escaped(&line(&problem.to_string())));
        }
        out += "</ul>\n";
    }
    if !plan.rollouts.is_empty() {
        out += "<h2>What it starts</h2>\n";
        plan.rollouts.iter().for_each(|rollout| started(&mut out, rollout));
    }
    if !plan.hooks.is_empty() {
        out += "<h2>Hooks that run</h2>\n<ul>";
        for hook in &plan.hooks {
            let (phase, when) = (hook.phase.name(), moment(hook.phase));
            let (id, file) = (escaped(&line(&hook.id.to_string())), escaped(&line(&hook.file)));
            let _ = writeln!(out, "<li>{phase} <code>{id}</code> (<code>{file}:{}</code>): {when}</li>", hook.line);
        }
        out += "</ul>\n";
    }
    if !plan.warnings.is_empty() {
        out += "<h2>Warnings</h2>\n<ul>";
        for warning in &plan.warnings {
            let remedy = if warning.remedy.is_empty() { String::new() } else { format!("; {}", warning.remedy) };
            let _ = writeln!(
                out,
                "<li><b class=\"{0}\">{0}</b> <code>{1}:{2}</code> <code>{3}</code>: {4} ({5})</li>",
                warning.severity,
                escaped(&line(&warning.file)),
                warning.line,
                escaped(&line(&warning.object)),
                escaped(&line(&format!("{}{remedy}", warning.message))),
                escaped(&warning.rule)
            );
        }
        out += "</ul>\n";
    }
    if !plan.objects.is_empty() {
        out += "<h2>What changes</h2>\n";
        let open = if plan.objects.len() <= 10 { " open" } else { "" };
        for change in &plan.objects {
            let title = format!("{} {}", change.what.as_str(), line(&change.id.to_string()));
            let place = line(&change.place());
            let note = if change.note.is_empty() { String::new() } else { format!("<p>{}</p>", escaped(&change.note)) };
            fold(&mut out, open, &format!("{} <code>{}</code>", escaped(&title), escaped(&place)), &note, &change.diff);
        }
    }
    if let Some(live) = &plan.live {
        cluster(&mut out, live);
    }
    out += "</body></html>\n";
    out
}

/// A fold with a difference; the title is HTML already.
fn fold(out: &mut String, open: &str, title: &str, note: &str, diff: &str) {
    let _ = writeln!(out, "<details{open}><summary>{title}</summary>{note}<pre>{}</pre></details>", coloured(diff));
}

fn coloured(diff: &str) -> String {
    let mut out = String::new();
    for row in diff.lines() {
        let text = escaped(row);
        let _ = match row.as_bytes().first() {
            _ if row.starts_with("---") || row.starts_with("+++") => writeln!(out, "<b>{text}</b>"),
            Some(b'+') => writeln!(out, "<ins>{text}</ins>"),
            Some(b'-') => writeln!(out, "<del>{text}</del>"),
            Some(_) | None => writeln!(out, "{text}"),
        };
    }
    out
}

fn started(out: &mut String, rollout: &RolloutPlan) {
    let _ = writeln!(
        out,
        "<h3><code>{}</code>: {}</h3><p>{} (<code>{}:{}</code>)</p>",
        escaped(&line(&rollout.id.to_string())),
        escaped(&rollout.starts.title()),
        escaped(&line(&rollout.reason)),
        escaped(&line(&rollout.file)),
        rollout.line
    );
    let Some(forecast) = &rollout.forecast else { return };
    let facts: Vec<String> = facts(rollout).iter().map(|fact| escaped(fact)).collect();
    let _ = writeln!(out, "<p>{}</p>", facts.join("; "));
    table(out, forecast);
    if forecast.curve.len() > 1 {
        out.push_str(&svg(forecast));
    }
}

fn table(out: &mut String, forecast: &Forecast) {
    if forecast.steps.is_empty() {
        return;
    }
    *out += "<div class=\"wide\"><table><tr><th>at<th>step<th class=\"l\">what<th>weight<th>traffic<th>stable<th>canary<th>total<th class=\"l\">waits for</tr>\n";
    for step in &forecast.steps {
        let _ = writeln!(
            out,
            "<tr><td>{}<td>{}<td class=\"l\"><code>{}</code><td>{}%<td>{}%<td>{}<td>{}<td>{}<td class=\"l\">{}</tr>",
            length(step.at),
            numbered(step),
            escaped(&line(&step.what)),
            step.weight,
            step.traffic,
            step.stable,
            step.canary,
            step.total,
            waiting(step.waits_for, &length(step.lasts))
        );
    }
    *out += "</table></div>\n<ul>";
    for step in &forecast.steps {
        for analysis in &step.analyses {
            let arguments: Vec<String> =
                analysis.arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let with = if arguments.is_empty() {
                String::new()
            } else {
                format!(" with <code>{}</code>", escaped(&line(&arguments.join(", "))))
            };
            let lasts = analysis.lasts.map(|lasts| format!(", {}", length(lasts))).unwrap_or_default();
            let queries: String = analysis
                .queries
                .iter()
                .map(|query| format!("<li>today <code>{}</code></li>", escaped(&asked(query))))
                .collect();
            let queries = if queries.is_empty() { queries } else { format!("<ul>{queries}</ul>") };
            let _ = writeln!(
                out,
                "<li>step {}: {} analysis of <code>{}</code>{with}{lasts}{queries}</li>",
                step.number,
                escaped(&line(&analysis.role)),
                escaped(&line(&analysis.metrics.join(", ")))
            );
        }
        if let Some(back) = &step.if_analysis_fails {
            let (number, to, lasts) = (step.number, escaped(&line(&back.to)), length(back.lasts));
            let _ = writeln!(out, "<li>step {number}: if it fails, back to {to} in {lasts}</li>");
        }
    }
    *out += "</ul>\n";
}

fn cluster(out: &mut String, live: &Live) {
    let _ = writeln!(out, "<h2>In the cluster <code>{}</code></h2>", escaped(&line(&live.cluster)));
    for object in &live.objects {
        let name = escaped(&line(&object.id.to_string()));
        if !object.refused.is_empty() {
            let _ = writeln!(
                out,
                "<p class=\"error\"><code>{name}</code> is refused: {}</p>",
                escaped(&line(&object.refused))
            );
        }
        let both = [
            ("this change does to the live object", &object.change),
            ("drift, not part of this change", &object.drift),
        ];
        for (title, diff) in both.into_iter().filter(|(_, diff)| !diff.is_empty()) {
            fold(out, "", &format!("<code>{name}</code> {title}"), "", diff);
        }
    }
    *out += "<ul>";
    for pruned in &live.prune {
        let word = if pruned.removed { "prune" } else { "keep" };
        let (name, reason) = (escaped(&line(&pruned.id.to_string())), escaped(&line(&pruned.reason)));
        let _ = writeln!(out, "<li>{word} <code>{name}</code>: {reason}</li>");
    }
    for unseen in &live.unseen {
        let _ = writeln!(out, "<li>not read: {}</li>", escaped(&line(unseen)));
    }
    *out += "</ul>\n";
}
