//! Which ReplicaSet is the one of a template.

use std::cell::OnceCell;

use super::Prepared;
use crate::{
    kubernetes::value::{Text, Value},
    model::{affinity, ephemeral, replica_set, strategy::AntiAffinity},
};

/// The template whose ReplicaSet is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The template, as it was asked for.
    pub template: &'a Value,
    /// Its hash.
    pub hash: &'a str,
    /// The hashes that status recorded: `currentPodHash`, then `stableRS`.
    pub recorded: &'a [&'a str],
    /// The rule by which terms were put into live templates.
    pub anti_affinity: Option<AntiAffinity>,
    /// The names of ReplicaSets whose template is not as it was made: what it says today does not tell what they are.
    pub altered: &'a [Text],
}

/// How a ReplicaSet was recognised, and where it stands in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Status named it, and its template is the wanted one, whatever its hash would be today.
    Recorded(usize),
    /// It carries the hash.
    ByHash(usize),
    /// Its template is the wanted one, though it carries another hash.
    ByTemplate(usize),
}

impl Found {
    /// Where it stands in the list.
    pub fn index(self) -> usize {
        match self {
            Found::Recorded(index) | Found::ByHash(index) | Found::ByTemplate(index) => index,
        }
    }
}

/// Finds the ReplicaSet of a template among those of a Rollout; of several the oldest, then the first by name.
pub fn find(wanted: &Wanted<'_>, sets: &[Value]) -> Option<Found> {
    let mut order: Vec<usize> = (0..sets.len()).collect();
    order.sort_by(|a, b| replica_set::by_age(&sets[*a], &sets[*b]));
    let with_label = |hash: &str| {
        let carries = |index: &&usize| replica_set::hash(&sets[**index]) == hash;
        order.iter().find(carries).copied().filter(|_| !hash.is_empty())
    };
    // Filling in the defaults is dear, and a set that carries the hash does not need it.
    let prepared = OnceCell::new();
    let is_wanted = |index: &usize| {
        let name = sets[*index].str_at(&["metadata", "name"]);
        if wanted.altered.iter().any(|altered| Some(altered.as_str()) == name) {
            return false;
        }
        let live = affinity::without_injected(&ephemeral::without(&sets[*index]), wanted.anti_affinity);
        prepared.get_or_init(|| Prepared::of(wanted.template)).equals(&live)
    };
    let others = wanted.recorded.iter().filter(|recorded| **recorded != wanted.hash);
    let recorded = others.filter_map(|recorded| with_label(recorded)).find(is_wanted).map(Found::Recorded);
    recorded
        .or_else(|| with_label(wanted.hash).map(Found::ByHash))
        .or_else(|| order.iter().copied().find(is_wanted).map(Found::ByTemplate))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    fn set(name: &str, hash: &str, image: &str, created: &str) -> Value {
        let template = Prepared::of(&value!({"spec": {"containers": [{"name": "c", "image": image}]}}));
        let mut set = value!({"metadata": {"name": name, "creationTimestamp": created, "labels": {"rollouts-pod-template-hash": hash}}});
        set.set_at(&["spec", "template"], template.value());
        set
    }

    #[track_caller]
    fn check(recorded: &[&str], sets: &[Value], expected: Option<Found>) {
        check_altered(&[], recorded, sets, expected);
    }

    #[track_caller]
    fn check_altered(altered: &[&str], recorded: &[&str], sets: &[Value], expected: Option<Found>) {
        let template = value!({"spec": {"containers": [{"name": "c", "image": "a:1"}]}});
        let altered: Vec<Text> = altered.iter().map(|name| (*name).into()).collect();
        let wanted = Wanted { template: &template, hash: "mine", recorded, anti_affinity: None, altered: &altered };
        assert_eq!(find(&wanted, sets), expected);
    }

    #[test]
    fn recorded_identity_wins_over_a_hash_that_changed_by_itself() {
        let sets = [
            set("r-mine", "mine", "a:1", "2026-01-02T00:00:00Z"),
            set("r-then", "then", "a:1", "2026-01-01T00:00:00Z"),
        ];
        check(&["then"], &sets, Some(Found::Recorded(1)));
        check(&["", "then"], &sets, Some(Found::Recorded(1)));
        check(&["mine"], &sets, Some(Found::ByHash(0)));
        check(&[], &sets, Some(Found::ByHash(0)));
    }

    #[test]
    fn a_recorded_set_of_another_template_is_the_version_before() {
        let sets = [set("r-then", "then", "a:0", "2026-01-01T00:00:00Z")];
        check(&["then"], &sets, None);
        check(&[], &[], None);
    }

    #[test]
    fn of_equal_templates_the_oldest_is_taken() {
        let sets = [
            set("r-c", "c", "a:1", "2026-01-02T00:00:00Z"),
            set("r-b", "b", "a:1", "2026-01-01T00:00:00Z"),
            set("r-a", "a", "a:1", "2026-01-01T00:00:00Z"),
        ];
        check(&[], &sets, Some(Found::ByTemplate(2)));
    }
    #[test]
    fn a_template_that_was_altered_tells_nothing() {
        let sets =
            [set("r-then", "then", "a:1", "2026-01-01T00:00:00Z"), set("r-b", "b", "a:1", "2026-01-02T00:00:00Z")];
        check_altered(&["r-then"], &["then"], &sets, Some(Found::ByTemplate(1)));
        check_altered(&["r-then", "r-b"], &["then"], &sets, None);
        // The hash is not read from the template.
        check_altered(
            &["r-mine"],
            &[],
            &[set("r-mine", "mine", "a:1", "2026-01-01T00:00:00Z")],
            Some(Found::ByHash(0)),
        );
    }
}
