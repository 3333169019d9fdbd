//! Which files are applied together: those that were named; what each kustomization renders; and otherwise those of each
//! folder. Of the files that a kustomization is made of only the text is looked at: their objects are seen as rendered.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path, PathBuf},
};

use super::read::{Given, Role, is_kustomization};
use crate::{cmd::kubeconfig, kubernetes::value::Value, lint::FileSet};

/// The sets of what was read, by positions in it.
pub fn of(given: &[Given]) -> Vec<FileSet> {
    let patches: BTreeSet<PathBuf> = given
        .iter()
        .filter(|one| one.role == Role::Aside)
        .flat_map(|one| patches(&one.path, &one.file.source.text))
        .collect();
    let mut named = FileSet::default();
    let mut texts = FileSet::default();
    let mut rendered = Vec::new();
    let mut folders: BTreeMap<PathBuf, FileSet> = BTreeMap::new();
    for (at, one) in given.iter().enumerate() {
        match one.role {
            Role::Named if patches.contains(&normal(&one.path)) => named.patches.push(at),
            Role::Named => named.files.push(at),
            Role::Found => folders.entry(folder(&normal(&one.path))).or_default().files.push(at),
            Role::Part => texts.texts.push(at),
            Role::Rendered => rendered.push(FileSet { files: vec![at], ..FileSet::default() }),
            Role::Aside => {}
        }
    }
    let mut sets = vec![named, texts];
    sets.extend(rendered);
    sets.extend(folders.into_values());
    sets.retain(|set| *set != FileSet::default());
    sets
}

/// The files that a kustomization merges into its objects.
fn patches(path: &Path, text: &str) -> Vec<PathBuf> {
    let value = kubeconfig::parse(text).ok().filter(|value| is_kustomization(path) && value.as_map().is_some());
    let Some(value) = value else { return Vec::new() };
    let folder = folder(path);
    let file = |name: &str| normal(&folder.join(name));
    let texts = |key: &str| value.list_at(&[key]).iter().filter_map(Value::as_str).map(file).collect::<Vec<_>>();
    let paths = |key: &str| {
        let patches = value.list_at(&[key]).iter();
        patches.filter_map(|patch| patch.str_at(&["path"])).map(file).collect::<Vec<_>>()
    };
    [texts("patchesStrategicMerge"), paths("patches"), paths("patchesJson6902")].concat()
}

fn folder(path: &Path) -> PathBuf {
    path.parent().map(normal).unwrap_or_default()
}

/// A path without `.` and, where it can be done, without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut parts: Vec<Component<'_>> = Vec::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(parts.last(), Some(Component::Normal(_))) => drop(parts.pop()),
            Component::ParentDir | Component::Normal(_) | Component::RootDir | Component::Prefix(_) => parts.push(part),
        }
    }
    parts.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest;

    const ANY: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n";

    #[track_caller]
    fn check(files: &[(&str, &str, Role)], expected: &[&[&str]]) {
        let read = |(path, text, role): &(&str, &str, Role)| {
            let file = manifest::read(*path, text.as_bytes());
            Given { file, path: PathBuf::from(path), role: *role }
        };
        let given: Vec<Given> = files.iter().map(read).collect();
        let sets: Vec<Vec<String>> = of(&given)
            .into_iter()
            .map(|set| {
                let name = |at: &usize| given[*at].path.display().to_string();
                let patches = set.patches.iter().map(|at| format!("patch {}", name(at)));
                let texts = set.texts.iter().map(|at| format!("text {}", name(at)));
                set.files.iter().map(name).chain(patches).chain(texts).collect()
            })
            .collect();
        assert_eq!(sets, expected);
    }

    #[test]
    fn files_that_are_named_are_one_set_and_those_of_each_folder_another() {
        use Role::{Found, Named};
        let files =
            [("b/x.yaml", ANY, Named), ("a/x.yaml", ANY, Named), ("c/x.yaml", ANY, Found), ("c/d/x.yaml", ANY, Found)];
        check(&files, &[&["b/x.yaml", "a/x.yaml"], &["c/x.yaml"], &["c/d/x.yaml"]]);
    }

    #[test]
    fn what_a_kustomization_renders_is_a_set_and_what_it_is_made_of_is_text() {
        use Role::{Part, Rendered};
        check(
            &[
                ("base/web.yaml", ANY, Part),
                ("prod/replicas.yaml", ANY, Part),
                ("prod/kustomization.yaml", ANY, Rendered),
                ("test/kustomization.yaml", ANY, Rendered),
            ],
            &[
                &["text base/web.yaml", "text prod/replicas.yaml"],
                &["prod/kustomization.yaml"],
                &["test/kustomization.yaml"],
            ],
        );
    }

    #[test]
    fn a_patch_that_is_named_is_a_patch() {
        use Role::{Aside, Named};
        let prod = "patches: [{path: replicas.yaml}]";
        let files = [("/x/prod/replicas.yaml", ANY, Named), ("/x/prod/kustomization.yaml", prod, Aside)];
        check(&files, &[&["patch /x/prod/replicas.yaml"]]);
        let old = "patchesStrategicMerge: [./replicas.yaml]";
        check(&[files[0], ("/x/prod/Kustomization", old, Aside)], &[&["patch /x/prod/replicas.yaml"]]);
    }
}
