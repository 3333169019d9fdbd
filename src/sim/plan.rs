//! Makes a plan: from the files of both sides to what changes, what that starts, and how it would go.
//!
//! A Rollout that no change concerns costs nothing: it is neither looked at nor run.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Instant,
};

use super::{
    starts::{self, Origin},
    warnings,
};
use crate::{
    manifest::File,
    model::git_source::{GitSource, Prune},
    plan::{Plan, Side, Warning, What, change, hook, kinds},
    sync::{
        id::Sorts,
        set::{self, Part, Problem, Scope, Set},
    },
};

/// Both sides of a plan.
#[derive(Debug, Clone, Default)]
pub struct Sides {
    /// What is compared with.
    pub old: Reading,
    /// What is planned.
    pub new: Reading,
}

/// The manifests of one side.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// What it is called.
    pub side: Side,
    /// Its files.
    pub files: Vec<File>,
    /// What could not be read of it.
    pub problems: Vec<Problem>,
    /// Whether that is a whole kustomization: what it brought is not known to be gone.
    pub is_partial: bool,
    /// What there is to say about its kustomizations.
    pub notes: Vec<Warning>,
    /// The hash and size of each file, and which of [`files`](Reading::files) it is, by path.
    pub blobs: HashMap<String, (String, usize, usize)>,
    /// Files of the old side that are the same on the new side, by their indices.
    pub same: BTreeMap<usize, usize>,
}

impl Reading {
    /// A side of files.
    pub fn of(side: Side, files: Vec<File>) -> Reading {
        Reading { side, files, ..Reading::default() }
    }
}

/// The rules that a plan is made by.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Where objects go, and what may be brought.
    pub scope: Scope,
    /// The folder of the repository.
    pub path: String,
    /// The GitSource: `shop/web`; empty if none.
    pub source: String,
    /// What it says.
    pub spec: Option<GitSource>,
    /// When forecasts must have been made, by the clock on the wall; whenever it takes if not given. What is not forecast by
    /// then says so.
    pub deadline: Option<Instant>,
}

/// Both sides, made sense of.
#[derive(Debug, Clone, Default)]
pub struct Sets {
    /// What is compared with.
    pub old: Set,
    /// What is planned.
    pub new: Set,
}

/// Makes a plan of what git says alone.
pub fn make(sides: &Sides, rules: &Rules) -> Plan {
    let sorts = kinds::known(sides.old.files.iter().chain(&sides.new.files));
    let sets = sets(sides, rules, &sorts);
    make_from(sides, &sets, rules, &|_| Origin::Git)
}

/// The same from sets that were read already; `origin` says where each Rollout starts from.
pub fn make_from(sides: &Sides, sets: &Sets, rules: &Rules, origin: &dyn Fn(&crate::sync::id::Id) -> Origin) -> Plan {
    let changes = change::changes(&sets.old, &sets.new, &rules.scope.namespace);
    let mut plan = Plan {
        from: sides.old.side.clone(),
        to: sides.new.side.clone(),
        path: rules.path.clone(),
        source: rules.source.clone(),
        hash: changes.hash,
        objects: changes.objects,
        unchanged: changes.unchanged,
        problems: sets.new.problems.iter().chain(&sides.new.problems).cloned().collect(),
        ..Plan::default()
    };
    plan.problems.sort();
    if let Some(spec) = &rules.spec {
        keep(&mut plan, spec);
    }
    // What a broken file held is not known to be gone.
    let broken: BTreeSet<String> = plan.problems.iter().map(|problem| problem.file.to_string()).collect();
    let is_known_to_be_gone = |file: &str| !sides.new.is_partial && !broken.contains(file);
    plan.objects.retain(|change| is_there(change.what) || is_known_to_be_gone(change.file.as_str()));
    // Of what cannot be applied, nothing starts.
    if plan.problems.is_empty() {
        plan.rollouts = starts::all(&plan.objects, sets, origin, rules.deadline);
        // A commit that changes nothing runs none.
        plan.hooks = if plan.has_changes() { hook::hooks(&sets.new) } else { Vec::new() };
    }
    plan.warnings = warnings::all(sides, sets, &plan, rules.deadline);
    plan
}

fn is_there(what: What) -> bool {
    matches!(what, What::Create | What::Change)
}

/// What stays because the GitSource does not prune.
fn keep(plan: &mut Plan, spec: &GitSource) {
    if spec.prune != Prune::Never {
        return;
    }
    for change in plan.objects.iter_mut().filter(|change| change.what == What::Delete) {
        change.what = What::Keep;
        change.note = "stays: the GitSource does not prune".to_owned();
    }
}

/// The objects of both sides. A file that is the same on both is made sense of once.
pub fn sets(sides: &Sides, rules: &Rules, sorts: &Sorts) -> Sets {
    let Sides { old, new } = sides;
    let after = set::parts(&new.files, &rules.scope, sorts);
    let defines = |reading: &Reading| reading.files.iter().flat_map(|file| &file.objects).any(set::is_definition);
    // Who defines kinds has a say in what every other file means.
    let is_apart = !defines(old) && !defines(new);
    let before: Vec<Part> = if is_apart {
        let files = old.files.iter().enumerate();
        let changed: Vec<File> =
            files.filter(|(index, _)| !old.same.contains_key(index)).map(|(_, file)| file.clone()).collect();
        let mut parts = set::parts(&changed, &rules.scope, sorts).into_iter();
        let part = |index: usize| match old.same.get(&index) {
            Some(same) => after.get(*same).cloned(),
            None => parts.next(),
        };
        (0..old.files.len()).filter_map(part).collect()
    } else {
        set::parts(&old.files, &rules.scope, sorts)
    };
    Sets { old: set::assemble(before), new: set::assemble(after) }
}
