//! GitSources: what they depend on, and who they act as.

use super::{
    Notes,
    index::{Found, Index, Sort},
    references::look_up,
    rule::Own,
};
use crate::{
    api::constants,
    manifest::{Object, place::Step},
};

use Step::{Index as At, Key};

const SOURCE: Sort<'static> = Sort::new(constants::TIDEGATE_GROUP, constants::kind::GIT_SOURCE);
const ACCOUNT: Sort<'static> = Sort::new("", "ServiceAccount");

/// Follows the names in every GitSource.
pub fn check(index: &Index<'_>, notes: &mut Notes) {
    for source in index.of(SOURCE) {
        for (i, name) in needs(source) {
            let path = [Key("spec"), Key("dependsOn"), At(i), Key("name")];
            if look_up(index, source, &path, SOURCE, name, notes).is_some() && waits_for(index, source, name) {
                let what = format!("{} waits for itself, by way of {name}", source.name());
                notes.say(source, &path, Own::DependsOnItself, what).remedy = "break the circle".into();
            }
        }
        let name = source.value.str_at(&["spec", "serviceAccountName"]).unwrap_or_default();
        let path = [Key("spec"), Key("serviceAccountName")];
        // Accounts mostly come from elsewhere: only if some are given is a missing one worth a word.
        if !name.is_empty() && matches!(index.find(ACCOUNT, source.namespace(), name), Found::Missing(_)) {
            look_up(index, source, &path, ACCOUNT, name, notes);
        }
    }
}

fn needs(source: &Object) -> Vec<(usize, &str)> {
    let list = source.value.list_at(&["spec", "dependsOn"]).iter().enumerate();
    list.filter_map(|(i, one)| Some((i, one.str_at(&["name"])?))).collect()
}

/// Whether the source called `name` waits, directly or not, for this one.
fn waits_for(index: &Index<'_>, source: &Object, name: &str) -> bool {
    let (mut seen, mut open): (Vec<String>, Vec<String>) = (Vec::new(), vec![name.to_owned()]);
    while let Some(name) = open.pop() {
        if name == source.name() {
            return true;
        }
        if seen.contains(&name) {
            continue;
        }
        if let Found::Here(found) = index.find(SOURCE, source.namespace(), &name) {
            open.extend(needs(found).into_iter().map(|(_, name)| name.to_owned()));
        }
        seen.push(name);
    }
    false
}
