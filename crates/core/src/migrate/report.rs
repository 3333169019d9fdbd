//! A migration as text for people: what has no equivalent, and how to change over without losing an object. Returns text.

use super::{Migration, Note, Taken, Tool, Weight};
use crate::kubernetes::names;

/// Every note, the weightiest first, and a summary.
pub fn notes(migration: &Migration) -> String {
    format!("{}{}", listed(&migration.notes), summary(migration))
}

/// Notes, the weightiest first.
pub fn listed(notes: &[Note]) -> String {
    let mut all: Vec<&Note> = notes.iter().collect();
    all.sort_by_key(|note| note.weight);
    all.into_iter().map(note).collect()
}

/// One note: `deploy/shop.yaml:14:5: no equivalent: Application argocd/shop: spec.source.helm: no Helm chart is rendered`
fn note(note: &Note) -> String {
    let place = match &note.at {
        Some((file, position)) => format!("{file}:{}:{}: ", position.line, position.column),
        None => String::new(),
    };
    let field = if note.field.is_empty() { String::new() } else { format!("{}: ", note.field) };
    format!("{place}{}: {}: {field}{}\n    {}\n", word(note.weight), note.object, note.what, note.remedy)
}

/// How a weight is called.
pub fn word(weight: Weight) -> &'static str {
    match weight {
        Weight::Conflict => "conflict",
        Weight::NoEquivalent => "no equivalent",
        Weight::ToDo => "to do",
        Weight::Differs => "differs",
    }
}

fn summary(migration: &Migration) -> String {
    let plural = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let weights = [Weight::Conflict, Weight::NoEquivalent, Weight::ToDo, Weight::Differs];
    let counts: Vec<String> = weights
        .into_iter()
        .map(|weight| (migration.count(weight), word(weight)))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} × {word}"))
        .collect();
    let found = if counts.is_empty() { "everything has an equivalent".to_owned() } else { counts.join(", ") };
    format!("{} from {}: {found}\n", plural(migration.sources.len(), "GitSource"), plural(migration.read, "object"))
}

/// How to change over: objects stay, and at no moment both tools write them.
pub fn steps(tool: Tool, taken: &[Taken]) -> String {
    // Only names that can be names are put into commands.
    let is_plain = |text: &str| names::dns_subdomain(text).is_empty();
    let taken: Vec<&Taken> = taken.iter().filter(|one| is_plain(&one.namespace) && is_plain(&one.name)).collect();
    if taken.is_empty() {
        return String::new();
    }
    let names = taken.iter().map(|one| format!("{}/{}", one.namespace, one.name)).collect::<Vec<_>>().join(" ");
    let each = |command: &str| format!("   for a in {names}; do\n     kubectl -n ${{a%/*}} {command}\n   done\n");
    let (command, stop, end) = match tool {
        Tool::ArgoCd => (
            "argocd",
            format!(
                "1. Stop Argo CD from syncing them. Nothing is deleted.\n{}",
                each(
                    r#"patch application.argoproj.io ${a#*/} --type merge -p '{"spec":{"syncPolicy":{"automated":null}}}'"#
                )
            ),
            format!(
                "4. When `tidegate sources -A` says that all is rolled out, end the Applications. Without their finalizer nothing that\n   they have written is deleted.\n{}{}",
                each(r#"patch application.argoproj.io ${a#*/} --type merge -p '{"metadata":{"finalizers":null}}'"#),
                each("delete application.argoproj.io ${a#*/}"),
            ),
        ),
        Tool::Flux => (
            "flux",
            format!(
                "1. Suspend them in Flux, and turn off what deletes. Where they are in git, change them there. Nothing is deleted.\n{}",
                each(
                    r#"patch kustomization.kustomize.toolkit.fluxcd.io ${a#*/} --type merge -p '{"spec":{"suspend":true,"prune":false,"deletionPolicy":"Orphan"}}'"#
                )
            ),
            format!(
                "4. When `tidegate sources -A` says that all is rolled out, delete the Kustomizations. Suspended ones delete nothing.\n{}",
                each("delete kustomization.kustomize.toolkit.fluxcd.io ${a#*/}"),
            ),
        ),
    };
    format!(
        "\nHow to change over:\n{stop}\
         2. Create what is listed above under \"to do\", and see what each GitSource would change: `tidegate diff` in its folder.\n\
         3. Apply the GitSources. They adopt the objects that are there; where the same is wanted, nothing changes.\n\
         {end}\
         5. Check that nothing else writes the objects, and let go of the fields that are still in the other tool's name:\n   \
         tidegate migrate {command} --finish\n\
         Back, before step 4: `tidegate suspend` the GitSources and undo step 1.\n"
    )
}
