//! Which files are applied together: those that were named; of a folder those of each kustomization, and otherwise those of
//! each folder. Parts that a kustomization merges into its objects are told apart.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path, PathBuf},
};

use super::read::{Given, Role, is_kustomization};
use crate::{cmd::kubeconfig, kubernetes::value::Value, lint::FileSet};

/// The sets of what was read, by positions in it.
pub fn of(given: &[Given]) -> Vec<FileSet> {
    let kustomizations: BTreeMap<PathBuf, Kustomization> = given
        .iter()
        .filter(|given| is_kustomization(&given.path))
        .filter_map(|given| Some((folder(&given.path), Kustomization::read(&given.path, &given.file.source.text)?)))
        .collect();
    let patches: BTreeSet<&PathBuf> =
        kustomizations.values().flat_map(|kustomization| &kustomization.patches).collect();
    let mut named = FileSet::default();
    let mut found: BTreeMap<PathBuf, usize> = BTreeMap::new();
    let mut parts = FileSet::default();
    for (at, one) in given.iter().enumerate() {
        let path = normal(&one.path);
        match (one.role, patches.contains(&path)) {
            (Role::Named, true) => named.patches.push(at),
            (Role::Named, false) => named.files.push(at),
            (Role::Found, true) => parts.patches.push(at),
            (Role::Found, false) => drop(found.insert(path, at)),
            (Role::Aside, _) => {}
        }
    }
    let mut sets = vec![named, parts];
    let used: BTreeSet<&PathBuf> = kustomizations.values().flat_map(|kustomization| &kustomization.resources).collect();
    let mut taken = BTreeSet::new();
    let is_root = |folder: &PathBuf, kustomization: &Kustomization| kustomization.renames || !used.contains(folder);
    for (root, _) in kustomizations.iter().filter(|(folder, kustomization)| is_root(folder, kustomization)) {
        let mut files = BTreeSet::new();
        gather(root, &kustomizations, &found, &mut BTreeSet::new(), &mut files);
        taken.extend(files.iter().copied());
        sets.push(FileSet { files: files.into_iter().collect(), patches: Vec::new() });
    }
    let mut folders: BTreeMap<PathBuf, FileSet> = BTreeMap::new();
    for (path, at) in found.iter().filter(|(_, at)| !taken.contains(*at)) {
        folders.entry(folder(path)).or_default().files.push(*at);
    }
    sets.extend(folders.into_values());
    sets.retain(|set| *set != FileSet::default());
    sets
}

/// The files of a kustomization and of all that it is made of.
fn gather(
    of: &Path,
    all: &BTreeMap<PathBuf, Kustomization>,
    found: &BTreeMap<PathBuf, usize>,
    seen: &mut BTreeSet<PathBuf>,
    files: &mut BTreeSet<usize>,
) {
    let Some(kustomization) = all.get(of).filter(|_| seen.insert(of.to_owned())) else { return };
    for resource in &kustomization.resources {
        match found.get(resource) {
            Some(at) => drop(files.insert(*at)),
            None if all.get(resource).is_some_and(|part| part.renames) => {}
            None => gather(resource, all, found, seen, files),
        }
    }
}

/// What a kustomization says of other files.
#[derive(Debug, PartialEq, Eq)]
struct Kustomization {
    /// The files and folders that it is made of.
    resources: Vec<PathBuf>,
    /// The files that change them.
    patches: Vec<PathBuf>,
    /// Whether its objects have other names outside than in their files: then it is a set of its own.
    renames: bool,
}

impl Kustomization {
    /// Reads one. A path that is an address, or a patch that stands in the file itself, leads to no file.
    fn read(path: &Path, text: &str) -> Option<Kustomization> {
        let value = kubeconfig::parse(text).ok().filter(|value| value.as_map().is_some())?;
        let folder = folder(path);
        let file = |name: &str| normal(&folder.join(name));
        let texts = |key: &str| value.list_at(&[key]).iter().filter_map(Value::as_str).map(file).collect::<Vec<_>>();
        let paths = |key: &str| {
            let patches = value.list_at(&[key]).iter();
            patches.filter_map(|patch| patch.str_at(&["path"])).map(file).collect::<Vec<_>>()
        };
        let renames = ["namePrefix", "nameSuffix", "namespace"].iter().any(|key| value.str_at(&[key]).is_some());
        Some(Kustomization {
            renames,
            resources: [texts("resources"), texts("bases"), texts("components")].concat(),
            patches: [paths("patches"), texts("patchesStrategicMerge"), paths("patchesJson6902")].concat(),
        })
    }
}

fn folder(path: &Path) -> PathBuf {
    normal(path.parent().unwrap_or(Path::new("")))
}

/// A path without `.`, and without `..` but at its beginning.
fn normal(path: &Path) -> PathBuf {
    let mut parts: Vec<Component<'_>> = Vec::new();
    for part in path.components() {
        match (part, parts.last()) {
            (Component::CurDir, _) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => drop(parts.pop()),
            (part, _) => parts.push(part),
        }
    }
    parts.iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest;

    fn given(files: &[(&str, &str, Role)]) -> Vec<Given> {
        let read = |(path, text, role): &(&str, &str, Role)| {
            let file = manifest::read(*path, text.as_bytes());
            Given { file, path: PathBuf::from(path), role: *role }
        };
        files.iter().map(read).collect()
    }

    #[track_caller]
    fn check(files: &[(&str, &str, Role)], expected: &[&[&str]]) {
        let given = given(files);
        let name = |mark: &str, at: &usize| format!("{mark}{}", given[*at].path.display());
        let names = |set: FileSet| -> Vec<String> {
            set.files.iter().map(|at| name("", at)).chain(set.patches.iter().map(|at| name("patch ", at))).collect()
        };
        let sets: Vec<Vec<String>> = of(&given).into_iter().map(names).collect();
        assert_eq!(sets, expected);
    }

    const ANY: &str = "kind: ConfigMap";

    #[test]
    fn files_that_were_named_are_one_set_and_folders_one_each() {
        use Role::{Found, Named};
        let files =
            [("b/x.yaml", ANY, Named), ("a/x.yaml", ANY, Named), ("c/x.yaml", ANY, Found), ("c/d/x.yaml", ANY, Found)];
        check(&files, &[&["b/x.yaml", "a/x.yaml"], &["c/x.yaml"], &["c/d/x.yaml"]]);
    }

    #[test]
    fn a_kustomization_is_one_set_with_all_that_it_is_made_of() {
        use Role::{Aside, Found};
        let base = "resources: [web.yaml, ./deep/service.yaml]";
        let prod = "resources: [../base, https://git.example/other]\npatches: [{path: replicas.yaml}, {patch: 'a: b'}]\n\
                    patchesStrategicMerge: [old.yaml]\npatchesJson6902: [{path: ops.yaml, target: {kind: Rollout}}]";
        check(
            &[
                ("base/kustomization.yaml", base, Aside),
                ("base/web.yaml", ANY, Found),
                ("base/deep/service.yaml", ANY, Found),
                ("base/loose.yaml", ANY, Found),
                ("prod/kustomization.yaml", prod, Aside),
                ("prod/replicas.yaml", ANY, Found),
                ("prod/old.yaml", ANY, Found),
                ("test/Kustomization", "bases: [../base]", Aside),
            ],
            &[
                &["patch prod/replicas.yaml", "patch prod/old.yaml"],
                &["base/web.yaml", "base/deep/service.yaml"],
                &["base/web.yaml", "base/deep/service.yaml"],
                &["base/loose.yaml"],
            ],
        );
    }

    #[test]
    fn a_part_that_renames_is_a_set_of_its_own() {
        use Role::{Aside, Found};
        let part = "namePrefix: a-\nresources: [x.yaml]";
        check(
            &[
                ("kustomization.yaml", "resources: [a, b]\nnamespace: shop", Aside),
                ("a/kustomization.yaml", part, Aside),
                ("a/x.yaml", ANY, Found),
                ("b/kustomization.yaml", "resources: [x.yaml]", Aside),
                ("b/x.yaml", ANY, Found),
            ],
            &[&["b/x.yaml"], &["a/x.yaml"]],
        );
    }

    #[test]
    fn a_patch_that_is_named_is_a_patch() {
        use Role::{Aside, Named};
        let prod = "patches: [{path: replicas.yaml}]";
        let files = [("/x/prod/replicas.yaml", ANY, Named), ("/x/prod/kustomization.yaml", prod, Aside)];
        check(&files, &[&["patch /x/prod/replicas.yaml"]]);
    }

    #[test]
    fn kustomizations_in_a_circle_end() {
        use Role::{Aside, Found};
        let files = [
            ("a/kustomization.yaml", "resources: [../b, x.yaml]", Aside),
            ("b/kustomization.yaml", "resources: [../a]", Aside),
            ("a/x.yaml", ANY, Found),
            ("c/kustomization.yaml", "resources: [../a]", Aside),
            ("d/kustomization.yaml", "[", Aside),
        ];
        check(&files, &[&["a/x.yaml"]]);
        check(&files[..3], &[&["a/x.yaml"]]);
    }
}
