//! What is different between two trees, one line for each difference: for whoever reads a pipe.

use std::collections::{BTreeMap, BTreeSet};

use anstyle::Style;
use jiff::Timestamp;

use super::{
    ExperimentTree, Kind, Node, RolloutTree,
    render::{info, status, word},
};

/// What is different about a Rollout, in the order of the newer tree; what is gone comes last. Time alone is no
/// difference.
pub fn changes(before: &RolloutTree, after: &RolloutTree, program: &str, now: Timestamp) -> Vec<String> {
    let summary = |tree: &RolloutTree| {
        let weight = tree.progress.as_ref().map(|progress| (progress.step.clone(), progress.set_weight));
        (tree.root.status.clone(), tree.message.clone(), tree.wait.clone(), weight)
    };
    let is_same = summary(before) == summary(after);
    let headline = (!is_same).then(|| headline(after, program, now));
    headline.into_iter().chain(children(&before.root, &after.root, now)).collect()
}

/// What is different about an Experiment.
pub fn experiment_changes(before: &ExperimentTree, after: &ExperimentTree, now: Timestamp) -> Vec<String> {
    let is_same = before.root.status == after.root.status && before.message == after.message;
    let headline = (!is_same).then(|| format!("{} {}", line(&after.root, now), after.message).trim_end().to_owned());
    headline.into_iter().chain(children(&before.root, &after.root, now)).collect()
}

/// What is different below the root.
fn children(before: &Node, after: &Node, now: Timestamp) -> Vec<String> {
    let (old, new) = (below(before), below(after));
    let known: BTreeMap<(&str, &str), &Node> = old.iter().map(|node| (key(node), *node)).collect();
    let is_same = |node: &Node, old: &&Node| old.status == node.status && old.info == node.info;
    let changed = new.iter().filter(|node| !known.get(&key(node)).is_some_and(|old| is_same(node, old)));
    let there: BTreeSet<(&str, &str)> = new.iter().map(|node| key(node)).collect();
    let gone = old.iter().filter(|node| !there.contains(&key(node)));
    let gone = gone.map(|node| format!("{} {} is gone", word(node.kind), node.name));
    changed.map(|node| line(node, now)).chain(gone).collect()
}

/// The objects below a node.
fn below(node: &Node) -> Vec<&Node> {
    let mut nodes = Vec::new();
    for child in &node.children {
        nodes.extend((child.kind != Kind::Revision).then_some(child));
        nodes.extend(below(child));
    }
    nodes
}

/// `Rollout web ॥ Paused CanaryPauseStep, step 1/2, weight 50: waits …`
fn headline(tree: &RolloutTree, program: &str, now: Timestamp) -> String {
    let mut text = line(&tree.root, now);
    if !tree.message.is_empty() {
        text.push_str(&format!(" {}", tree.message));
    }
    if let Some(progress) = tree.progress.as_ref().filter(|progress| !progress.step.is_empty()) {
        text.push_str(&format!(", step {}, weight {}", progress.step, progress.set_weight));
    }
    if let Some(wait) = &tree.wait {
        text.push_str(&format!(": waits {}", wait.describe(&tree.root.name, program, now)));
    }
    text
}

fn line(node: &Node, now: Timestamp) -> String {
    let plain = |cell: Vec<(Style, String)>| cell.into_iter().map(|(_, text)| text).collect::<String>();
    let parts = [word(node.kind).to_owned(), node.name.clone(), plain(status(node)), plain(info(node, now))];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

fn key(node: &Node) -> (&'static str, &str) {
    (word(node.kind), &node.name)
}
