//! Trees as text: the header, then a line for each object with icons, status, age and what else is worth knowing.
//!
//! Colours are always in the text; whoever prints it to something that is no terminal strips them.

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;

use super::{ExperimentTree, Icon, Image, Info, Kind, Node, Role, RolloutTree, Tag};
use crate::{
    api::constants::analysis_phase,
    kubernetes::{foreign, shown::human},
    rollout::wait::Wait,
};

/// Text with its colour.
pub(super) type Cell = Vec<(Style, String)>;

/// A Rollout's tree; `program` is what the person types.
pub fn rollout(tree: &RolloutTree, program: &str, now: Timestamp) -> String {
    let mut out = Header::default();
    out.line("Name:", plain(&tree.root.name));
    out.line("Namespace:", plain(&tree.namespace));
    out.line("Status:", status(&tree.root));
    out.filled("Message:", &tree.message);
    if let Some(wait) = &tree.wait {
        let measured = tree.measured.as_ref().filter(|_| matches!(wait, Wait::Step { .. } | Wait::Analysis));
        let trouble = match (&tree.trouble, measured) {
            (Some((pod, why)), _) => format!(" ({pod}: {why})"),
            (None, Some(measured)) => format!(" ({measured})"),
            (None, None) => String::new(),
        };
        out.line("Waits:", plain(&(wait.describe(&tree.root.name, program, now) + &trouble)));
    }
    out.line("Strategy:", plain(tree.strategy));
    if let Some(progress) = &tree.progress {
        out.line("  Step:", plain(&progress.step));
        out.line("  SetWeight:", plain(&progress.set_weight.to_string()));
        out.line("  ActualWeight:", plain(&progress.actual_weight.to_string()));
    }
    out.images(&tree.images);
    out.line("Replicas:", Vec::new());
    for (label, count) in
        ["  Desired:", "  Current:", "  Updated:", "  Ready:", "  Available:"].into_iter().zip(tree.replicas)
    {
        out.line(label, plain(&count.to_string()));
    }
    format!("{}\n{}", out.text, lines(&tree.root, now))
}

/// An Experiment's tree.
pub fn experiment(tree: &ExperimentTree, now: Timestamp) -> String {
    let mut out = Header::default();
    out.line("Name:", plain(&tree.root.name));
    out.line("Namespace:", plain(&tree.namespace));
    out.line("Status:", status(&tree.root));
    out.filled("Message:", &tree.message);
    out.images(&tree.images);
    format!("{}\n{}", out.text, lines(&tree.root, now))
}

/// The lines above the tree.
#[derive(Default)]
struct Header {
    text: String,
}

impl Header {
    fn line(&mut self, label: &str, cell: Cell) {
        let line = format!("{label:<17}{}", coloured(&cell));
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn filled(&mut self, label: &str, text: &str) {
        if !text.is_empty() {
            self.line(label, plain(text));
        }
    }

    fn images(&mut self, images: &[Image]) {
        for (number, image) in images.iter().enumerate() {
            let mut cell = plain(&image.image);
            for (number, tag) in image.tags.iter().enumerate() {
                cell.extend(plain(if number == 0 { " (" } else { ", " }));
                cell.push(match tag {
                    Tag::Role(role) => (colour_of_role(*role), role.as_str().to_owned()),
                    Tag::Template(template) => (Style::new(), format!("Σ:{template}")),
                });
            }
            if !image.tags.is_empty() {
                cell.extend(plain(")"));
            }
            self.line(if number == 0 { "Images:" } else { "" }, cell);
        }
    }
}

/// The tree below a root, with a line of headings.
fn lines(root: &Node, now: Timestamp) -> String {
    let mut rows = vec![["NAME", "KIND", "STATUS", "AGE", "INFO"].map(plain).to_vec()];
    row(root, "", "", now, &mut rows);
    columns(&rows)
}

fn row(node: &Node, prefix: &str, below: &str, now: Timestamp, rows: &mut Vec<Vec<Cell>>) {
    let mut name = plain(&format!("{prefix}{} ", letter(node.kind)));
    name.push((colour_of_name(node), node.name.clone()));
    let age = node.created.map(|created| human(now.duration_since(created))).unwrap_or_default();
    rows.push(vec![name, plain(word(node.kind)), status(node), plain(&age), info(node, now)]);
    for (number, child) in node.children.iter().enumerate() {
        let (branch, trunk) =
            if number + 1 == node.children.len() { ("└──", "   ") } else { ("├──", "│  ") };
        // The root's children begin at the margin.
        row(child, &format!("{below}{branch}"), &format!("{below}{trunk}"), now, rows);
    }
}

/// Cells below each other, two blanks apart, as Go's tabwriter puts them.
pub(super) fn columns(rows: &[Vec<Cell>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |cell: &Cell| cell.iter().map(|(_, text)| text.chars().count()).sum::<usize>();
    let widths: Vec<usize> = (0..count)
        .map(|column| rows.iter().filter_map(|row| row.get(column)).map(width).max().unwrap_or_default() + 2)
        .collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, wanted) in row.iter().zip(&widths) {
            line.push_str(&coloured(cell));
            line.extend(std::iter::repeat_n(' ', wanted - width(cell)));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Text without colour.
pub(super) fn plain(text: &str) -> Cell {
    vec![(Style::new(), text.to_owned())]
}

fn coloured(cell: &Cell) -> String {
    let part = |(style, text): &(Style, String)| {
        // Names and images are written by whoever may write the objects.
        let text = foreign::line(text);
        if *style == Style::new() { text } else { format!("{style}{text}{style:#}") }
    };
    cell.iter().map(part).collect()
}

/// `✔ Healthy`
pub(super) fn status(node: &Node) -> Cell {
    let Some(status) = &node.status else { return Vec::new() };
    vec![(colour_of_icon(status.icon), status.icon.as_str().to_owned()), (Style::new(), format!(" {}", status.word))]
}

/// `stable,delay:29s`
pub(super) fn info(node: &Node, now: Timestamp) -> Cell {
    let mut cell = Cell::new();
    for (number, info) in node.info.iter().enumerate() {
        if number > 0 {
            cell.extend(plain(","));
        }
        match info {
            Info::Role(role) => cell.push((colour_of_role(*role), role.as_str().to_owned())),
            Info::Delay(None) => cell.extend(plain("delay:")),
            Info::Delay(Some(until)) if *until < now => cell.extend(plain("delay:passed")),
            Info::Delay(Some(until)) => cell.extend(plain(&format!("delay:{}", human(until.duration_since(now))))),
            Info::Ready(ready, total) => cell.extend(plain(&format!("ready:{ready}/{total}"))),
            Info::Restarts(count) => cell.extend(plain(&format!("restarts:{count}"))),
            Info::Measurements(icon, count) => {
                cell.push((colour_of_icon(*icon), icon.as_str().to_owned()));
                cell.extend(plain(&format!(" {count}")));
            }
        }
    }
    cell
}

fn letter(kind: Kind) -> &'static str {
    match kind {
        Kind::Rollout => "⟳",
        Kind::Revision => "#",
        Kind::ReplicaSet => "⧉",
        Kind::Pod => "□",
        Kind::AnalysisRun => "α",
        Kind::Job => "⊞",
        Kind::Experiment => "Σ",
    }
}

/// The kind's word; a revision is no object.
pub(super) fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Rollout => "Rollout",
        Kind::Revision => "",
        Kind::ReplicaSet => "ReplicaSet",
        Kind::Pod => "Pod",
        Kind::AnalysisRun => "AnalysisRun",
        Kind::Job => "Job",
        Kind::Experiment => "Experiment",
    }
}

fn colour(colour: AnsiColor) -> Style {
    colour.on_default()
}

fn colour_of_icon(icon: Icon) -> Style {
    match icon {
        Icon::Waiting | Icon::Unknown => colour(AnsiColor::Yellow),
        Icon::Progressing => colour(AnsiColor::BrightBlue),
        Icon::Warning | Icon::Bad => colour(AnsiColor::Red),
        Icon::Ok => colour(AnsiColor::Green),
        Icon::Paused | Icon::Neutral | Icon::None => Style::new(),
    }
}

fn colour_of_role(role: Role) -> Style {
    match role {
        Role::Canary => colour(AnsiColor::Yellow),
        Role::Stable | Role::Active => colour(AnsiColor::Green),
        Role::Preview | Role::Ping | Role::Pong => colour(AnsiColor::BrightBlue),
    }
}

/// A version has the colour of its first part; an analysis stands out while it runs.
fn colour_of_name(node: &Node) -> Style {
    let role = node.info.iter().find_map(|info| match info {
        Info::Role(role) => Some(*role),
        Info::Delay(_) | Info::Ready(..) | Info::Restarts(_) | Info::Measurements(..) => None,
    });
    let word = node.status.as_ref().map(|status| status.word.as_str()).unwrap_or_default();
    let is_analysis = matches!(node.kind, Kind::AnalysisRun | Kind::Job | Kind::Experiment);
    match role {
        Some(role) => colour_of_role(role),
        None if is_analysis && [analysis_phase::PENDING, analysis_phase::RUNNING].contains(&word) => {
            colour(AnsiColor::BrightBlue)
        }
        None => Style::new(),
    }
}
