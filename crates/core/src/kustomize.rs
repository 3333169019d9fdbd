//! Folders that are kustomizations, to the objects that they render: with the places of all their parts, in the base and in the
//! overlays.
//!
//! The rendering is that of `tidegate_kustomize`; here its objects become manifests like any other. Never reads a file
//! itself: a tree answers.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

pub use tidegate_kustomize::{
    Dependency, Entry, FILE_NAMES, Problem as Fault, Restrict, Tree, VERSION, is_kustomization,
};
use tidegate_kustomize::{Object as Built, Options, Written};

use crate::{
    kubernetes::{foreign, value::Value},
    manifest::{
        File, Object,
        place::{Position, Source},
        rendered::{Origin, Origins},
    },
    model::git_source::{LoadRestrictor, Rendering, Rollouts},
    sync::set::Problem,
};

/// What a kustomization rendered.
#[derive(Debug, Clone)]
pub struct Rendered {
    /// Its folder, as a path of the tree.
    pub folder: String,
    /// Its objects, in kustomize's order, each in the file that it was first written in; the file itself is the kustomization.
    pub file: File,
    /// The same as `kustomize build` prints them; empty where only the objects are kept.
    pub yaml: String,
    /// Why it cannot be rendered; then there are no objects.
    pub fault: Option<Located>,
    /// What works but should be seen to.
    pub warnings: Vec<Located>,
    /// Whether it is a component: a part of others, not rendered by itself.
    pub is_component: bool,
    /// Every path that the outcome depends on.
    pub dependencies: BTreeMap<String, Dependency>,
}

/// Something to say about a file of a kustomization.
#[derive(Debug, Clone)]
pub struct Located {
    /// The file.
    pub source: Arc<Source>,
    /// Where in it; `None` for all of it.
    pub position: Option<Position>,
    /// What is to be said.
    pub what: String,
    /// A second place that has to do with it, and what stands there.
    pub also: Option<(Arc<Source>, Position, String)>,
    /// What to do about it; empty if nothing needs to be said.
    pub remedy: String,
}

impl Located {
    /// As a problem of a commit.
    pub fn problem(&self) -> Problem {
        let also = self.also.as_ref().map(|(source, at, what)| format!(" ({}:{}: {what})", source.name, at.line));
        let remedy = if self.remedy.is_empty() { String::new() } else { format!("; {}", self.remedy) };
        Problem {
            file: self.source.name.as_str().into(),
            line: self.position.map_or(0, |at| at.line),
            message: format!("{}{}{remedy}", self.what, also.unwrap_or_default()),
        }
    }
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem().fmt(f)
    }
}

/// A tree whose texts are remembered: places are told by them.
struct Remembered<'t> {
    tree: &'t dyn Tree,
    texts: RefCell<BTreeMap<String, Vec<u8>>>,
}

impl Tree for Remembered<'_> {
    fn entry(&self, path: &str) -> Result<Option<Entry>, String> {
        self.tree.entry(path)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let bytes = self.tree.read(path)?;
        self.texts.borrow_mut().insert(path.to_owned(), bytes.clone());
        Ok(bytes)
    }
}

/// Renders a folder of a tree. Files are called what `shown` makes of their paths.
pub fn render(tree: &dyn Tree, folder: &str, how: Rendering, shown: &dyn Fn(&str) -> String) -> Rendered {
    let options = Options {
        rollouts: how.rollouts == Rollouts::Known,
        restrict: match how.load_restrictor {
            LoadRestrictor::RootOnly => Restrict::Root,
            LoadRestrictor::Repository => Restrict::Repository,
        },
        ..Options::default()
    };
    let remembered = Remembered { tree, texts: RefCell::default() };
    let outcome = tidegate_kustomize::render(&remembered, folder, &options);
    let sources = Sources { texts: remembered.texts.into_inner(), shown, known: RefCell::default() };
    let own = FILE_NAMES.map(|name| joined(folder, name)).into_iter().find(|path| sources.texts.contains_key(path));
    let own = own.unwrap_or_else(|| joined(folder, FILE_NAMES[0]));
    let source = sources.get(&own);
    let is_component = is_component(&source);
    let located = |fault: Fault| sources.located(fault, &source);
    let mut file = File { source: source.clone(), objects: Vec::new(), mistakes: Vec::new() };
    let (yaml, fault, warnings, dependencies) = match outcome {
        Ok(rendered) => {
            let yaml = rendered.to_yaml();
            let files = rendered.objects.first().map(|object| object.files().clone()).unwrap_or_default();
            let all: Arc<[Arc<Source>]> = files.iter().map(|path| sources.get(path)).collect();
            file.objects = rendered.objects.into_iter().map(|object| self::object(object, &all)).collect();
            (yaml, None, rendered.warnings, rendered.dependencies)
        }
        Err(failed) => (String::new(), Some(failed.problem), failed.warnings, failed.dependencies),
    };
    let (fault, warnings) = (fault.map(&located), warnings.into_iter().map(&located).collect());
    Rendered { folder: folder.to_owned(), file, yaml, fault, warnings, is_component, dependencies }
}

/// Those that are rendered by themselves: not what others are made of, and not a component.
///
/// `top` is what was asked for: it is rendered whatever it is.
pub fn roots<T>(all: Vec<T>, top: &str, rendered: impl Fn(&T) -> &Rendered) -> Vec<T> {
    let own = |one: &Rendered| {
        let read = |path: &String| one.dependencies.get(path) == Some(&Dependency::Content);
        FILE_NAMES.map(|name| joined(&one.folder, name)).into_iter().find(read)
    };
    let mut used: BTreeSet<String> = BTreeSet::new();
    for one in all.iter().map(&rendered) {
        let itself = own(one);
        let read = one.dependencies.iter().filter(|(_, asked)| **asked == Dependency::Content);
        used.extend(read.map(|(path, _)| path.clone()).filter(|path| Some(path) != itself.as_ref()));
    }
    let is_root =
        |one: &Rendered| one.folder == top || !one.is_component && own(one).is_none_or(|path| !used.contains(&path));
    all.into_iter().filter(|one| is_root(rendered(one))).collect()
}

/// Which of these files of a kustomization's folder nothing that was rendered reads.
pub fn unused<'n, 'r>(
    names: impl Iterator<Item = &'n str>,
    rendered: impl Iterator<Item = &'r Rendered> + Clone,
) -> Vec<&'n str> {
    let is_used = |path: &str| {
        let reads = |one: &Rendered| one.dependencies.get(path) == Some(&Dependency::Content);
        rendered.clone().any(reads)
    };
    names.filter(|path| !is_used(path)).collect()
}

/// A name in a folder of a tree.
pub fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Whether a kustomization says that it is a part of others.
fn is_component(source: &Source) -> bool {
    let kinds = source.text.lines().filter_map(|line| line.strip_prefix("kind:"));
    kinds
        .map(|kind| kind.split(" #").next().unwrap_or_default().trim().trim_matches(['"', '\'']))
        .any(|kind| kind == "Component")
}

/// The files of a build, by their paths.
struct Sources<'s> {
    texts: BTreeMap<String, Vec<u8>>,
    shown: &'s dyn Fn(&str) -> String,
    known: RefCell<BTreeMap<String, Arc<Source>>>,
}

impl Sources<'_> {
    fn get(&self, path: &str) -> Arc<Source> {
        let mut known = self.known.borrow_mut();
        let source = known.entry(path.to_owned()).or_insert_with(|| {
            let text = self.texts.get(path).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default();
            let text = text.strip_prefix('\u{feff}').unwrap_or(text);
            Arc::new(Source::new(foreign::line(&(self.shown)(path)), text))
        });
        source.clone()
    }

    fn located(&self, fault: Fault, own: &Arc<Source>) -> Located {
        let at = |line: u32, column: u32| Position { line: line as usize, column: (column as usize).max(1) };
        let (source, position) = match &fault.place {
            Some(place) => (self.get(&place.file), (place.line > 0).then(|| at(place.line, place.column))),
            None => (own.clone(), None),
        };
        let also = fault.also.filter(|(place, _)| place.line > 0);
        Located {
            source,
            position,
            what: foreign::line(&fault.message),
            also: also.map(|(place, what)| (self.get(&place.file), at(place.line, place.column), foreign::line(&what))),
            remedy: foreign::line(&fault.remedy.unwrap_or_default()),
        }
    }
}

/// A built object as a manifest.
fn object(built: Built, sources: &Arc<[Arc<Source>]>) -> Object {
    let number = |file: &str| sources_position(built.files(), file);
    let own = number(&built.place.file).unwrap_or_default();
    let offset = |file: usize, line: u32, column: u32| {
        let position = Position { line: line.max(1) as usize, column: column.max(1) as usize };
        sources.get(file).map_or(0, |source| source.offset(position))
    };
    let first = Origin { source: own, at: offset(own, built.place.line, built.place.column), parts: Vec::new() };
    let mut others: BTreeMap<usize, Position> = BTreeMap::new();
    let root = origin(built.written(), &first, &offset, &mut |file, line, column| {
        if file != own {
            let at = Position { line: line.max(1) as usize, column: column.max(1) as usize };
            others.entry(file).and_modify(|known| *known = (*known).min(at)).or_insert(at);
        }
    });
    let mut patched: Vec<(usize, Position)> = Vec::new();
    for place in &built.patched {
        let at = Position { line: place.line.max(1) as usize, column: place.column.max(1) as usize };
        patched.extend(number(&place.file).filter(|file| *file != own).map(|file| (file, at)));
    }
    // What else wrote a part of it, and is not named yet.
    others.retain(|file, _| !patched.iter().any(|(known, _)| known == file));
    patched.extend(others);
    let source = sources.get(own).cloned().unwrap_or_else(|| Arc::new(Source::new("", "")));
    Object::rendered(Value::from(built.value), source, Origins { sources: sources.clone(), root, patched })
}

fn sources_position(files: &[Arc<str>], file: &str) -> Option<usize> {
    files.iter().position(|name| &**name == file)
}

/// Where a part of an object stands; a part of unknown place stands where what holds it does.
fn origin(
    written: Written<'_>,
    holder: &Origin,
    offset: &dyn Fn(usize, u32, u32) -> u32,
    see: &mut dyn FnMut(usize, u32, u32),
) -> Origin {
    let mut here = Origin { source: holder.source, at: holder.at, parts: Vec::with_capacity(written.parts().len()) };
    if let Some((file, line, column)) = written.at() {
        see(file, line, column);
        (here.source, here.at) = (file, offset(file, line, column));
    }
    let parts: Vec<Origin> = written.parts().map(|part| origin(part, &here, offset, see)).collect();
    here.parts = parts;
    here
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::place::Step;

    struct Memory(BTreeMap<String, String>);

    impl Tree for Memory {
        fn entry(&self, path: &str) -> Result<Option<Entry>, String> {
            if let Some(text) = self.0.get(path) {
                return Ok(Some(Entry::File { size: text.len() as u64 }));
            }
            let below = format!("{path}/");
            let is_folder = path.is_empty() || self.0.keys().any(|file| file.starts_with(&below));
            Ok(is_folder.then_some(Entry::Directory))
        }

        fn read(&self, path: &str) -> Result<Vec<u8>, String> {
            self.0.get(path).map(|text| text.clone().into_bytes()).ok_or_else(|| "no such file".to_owned())
        }
    }

    fn tree(files: &[(&str, &str)]) -> Memory {
        Memory(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }

    fn shop() -> Memory {
        tree(&[
            ("base/kustomization.yaml", "resources:\n- web.yaml\n"),
            (
                "base/web.yaml",
                "# the shop\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: 1 # one\n  template:\n    \
                 spec:\n      containers:\n      - name: main\n        image: web:1\n",
            ),
            (
                "prod/kustomization.yaml",
                "resources: [../base]\nnamespace: shop\nimages:\n- name: web\n  newTag: '2'\npatches:\n- path: replicas.yaml\n",
            ),
            (
                "prod/replicas.yaml",
                "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 5\n",
            ),
        ])
    }

    fn rendered(tree: &Memory, folder: &str) -> Rendered {
        render(tree, folder, Rendering::default(), &|path| path.to_owned())
    }

    #[test]
    fn every_part_of_an_object_stands_where_it_was_written() {
        let rendered = rendered(&shop(), "prod");
        assert!(rendered.fault.is_none(), "{:?}", rendered.fault);
        let object = &rendered.file.objects[0];
        #[track_caller]
        fn check(object: &Object, steps: &[Step<'_>], place: &str, text: &str) {
            let (source, at) = (object.source_of(steps.iter().copied()), object.position(steps.iter().copied()));
            assert_eq!(format!("{}:{}:{}", source.name, at.line, at.column), place);
            assert_eq!(source.slice(object.span(steps.iter().copied())), text);
        }
        let container =
            [Step::Key("spec"), Step::Key("template"), Step::Key("spec"), Step::Key("containers"), Step::Index(0)];
        check(object, &[Step::Key("kind")], "base/web.yaml:3:7", "Deployment");
        check(object, &[Step::Key("spec"), Step::Key("replicas")], "prod/replicas.yaml:5:13", "5");
        check(object, &[&container[..], &[Step::Key("name")]].concat(), "base/web.yaml:11:15", "main");
        // What is not there stands where its nearest ancestor does: at its key.
        check(object, &[Step::Key("spec"), Step::Key("paused")], "base/web.yaml:6:1", "spec");
        assert_eq!(object.source.name, "base/web.yaml");
        let patched: Vec<String> =
            object.patched().map(|(source, at)| format!("{}:{}", source.name, at.line)).collect();
        assert!(
            patched.contains(&"prod/kustomization.yaml:7".to_owned())
                || patched.contains(&"prod/replicas.yaml:1".to_owned()),
            "{patched:?}"
        );
        assert!(patched.iter().any(|place| place.starts_with("prod/kustomization.yaml")), "{patched:?}");
    }

    #[test]
    fn what_others_are_made_of_is_not_rendered_by_itself() {
        let mut tree = shop();
        tree.0.insert(
            "part/kustomization.yaml".into(),
            "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n".into(),
        );
        let all: Vec<Rendered> = ["base", "part", "prod"].iter().map(|folder| rendered(&tree, folder)).collect();
        let folders = |top: &str| -> Vec<String> {
            roots(all.clone(), top, |one| one).into_iter().map(|one| one.folder).collect()
        };
        assert_eq!(folders(""), ["prod"]);
        assert_eq!(folders("base"), ["base", "prod"]);
        let names = ["prod/replicas.yaml", "prod/old.yaml"];
        assert_eq!(unused(names.into_iter(), all.iter()), ["prod/old.yaml"]);
    }

    #[test]
    fn a_fault_is_a_problem_with_a_place() {
        let mut tree = shop();
        tree.0
            .insert("prod/kustomization.yaml".into(), "resources:\n- ../base\n- https://example.org/x?ref=1\n".into());
        let fault = rendered(&tree, "prod").fault.unwrap();
        assert_eq!(
            fault.to_string(),
            "prod/kustomization.yaml:3: \"https://example.org/x?ref=1\" is an address on the network: nothing is fetched while \
             rendering; copy it into the repository (`kustomize localize` does), and name it by a relative path"
        );
    }
}
