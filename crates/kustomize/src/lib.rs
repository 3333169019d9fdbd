//! Kustomize as a pure function: a tree of files in, Kubernetes objects with their places out, or a problem that names
//! file, line and remedy.
//!
//! The objects are those of `kustomize build` v5.8.2 with no flags: the same, in the same order. Nothing is fetched, run
//! or written, and no file is opened: whoever calls [`render`] answers for the tree ([`Tree`]). What kustomize would fetch
//! or run is refused by name. How much a build may read, make and compute is limited by [`Budgets`].
//!
//! ```text
//! Tree ─▶ tree (paths, links, limits) ─▶ kustomization (strict fields) ─▶ build ─▶ sorted objects ─▶ emit (YAML)
//!                                         resources (documents, lists)     │
//!          node (text, tag, style) ◀───────────────┘                       ├─ patch: merge, jsonpatch
//!                                                                          ├─ transform, generate, replace, plugin
//!                                                                          └─ names, vars (once, at the end)
//! ```
//!
//! kustomize works on YAML nodes, not on values, and so does this crate: a scalar keeps its style while objects are worked
//! on, and patching a number over a quoted text gives a text. Two readers decide what a plain scalar is (`scalar`).

mod build;
mod config;
mod crds;
mod emit;
mod fault;
mod generate;
mod ident;
mod jsonpatch;
mod kustomization;
mod located;
mod merge;
mod names;
mod node;
mod object;
mod patch;
mod path;
mod plugin;
mod read;
mod replace;
mod resources;
mod scalar;
mod schema;
mod selector;
mod transform;
mod tree;
mod value;
mod vars;

use std::{collections::BTreeMap, fmt, sync::Arc};

pub use serde_json::Value;

pub use crate::tree::{Dependency, Entry, Tree};
use crate::{
    build::Build,
    fault::{At, Fault},
    node::Arena,
    object::World,
    schema::Schemas,
    tree::Files,
    value::Spots,
};

/// The version of kustomize whose output this is.
pub const VERSION: &str = "5.8.2";
const MANAGED_BY: &str = "kustomize-v5.8.2";

/// The names that make a directory a kustomization.
pub const FILE_NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// Where the files of a kustomization may lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Restrict {
    /// In or below its directory, as kustomize has it.
    #[default]
    Root,
    /// Anywhere in the tree, as with `--load-restrictor LoadRestrictionsNone`.
    Repository,
}

/// The order of objects when a kustomization does not say (`sortOptions`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Order {
    /// By kind, as kustomize has it without flags.
    #[default]
    Legacy,
    /// As they were gathered, as with `--reorder none`.
    Gathered,
}

/// How much one build may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// Files read, each time they are read.
    pub files: usize,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Bytes read in all.
    pub bytes: u64,
    /// Kustomizations inside each other.
    pub depth: usize,
    /// Objects.
    pub objects: usize,
    /// Values: scalars, lists and maps of all objects and patches, with every copy.
    pub nodes: usize,
    /// Bytes of text in all objects, each time they are written.
    pub text: u64,
    /// Steps of work, some tens of nanoseconds each: what stands for time in a function without a clock.
    pub steps: u64,
}

impl Default for Budgets {
    fn default() -> Budgets {
        Budgets {
            files: 10_000,
            file_bytes: 16 << 20,
            bytes: 64 << 20,
            depth: 64,
            objects: 10_000,
            nodes: 8_000_000,
            text: 512 << 20,
            steps: 200_000_000,
        }
    }
}

/// How a directory is rendered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Names, labels, replicas and lists of Argo Rollouts are known as those of Deployments are.
    pub rollouts: bool,
    /// Where files may lie.
    pub restrict: Restrict,
    /// The order of the objects.
    pub order: Order,
    /// How much the build may use.
    pub budgets: Budgets,
}

/// Where something stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The file, as a path of the tree.
    pub file: Arc<str>,
    /// The line, from 1; 0 means the file as a whole.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}:{}", self.file, self.column),
        }
    }
}

/// Why a directory cannot be rendered, or what should be seen to though it can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where to look first.
    pub place: Option<Place>,
    /// What is wrong.
    pub message: String,
    /// A second place, and what stands there.
    pub also: Option<(Place, String)>,
    /// What to do.
    pub remedy: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.message)?;
        if let Some((place, what)) = &self.also {
            write!(f, " ({place}: {what})")?;
        }
        if let Some(remedy) = &self.remedy {
            write!(f, "; {remedy}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}

/// An object of a build.
#[derive(Clone, Debug)]
pub struct Object {
    /// What it says.
    pub value: Value,
    /// Where it was first written: in a file of resources, or in the generator that makes it.
    pub place: Place,
    /// The instructions that changed more than a name or a label of it: patches, merging generators, replacements.
    pub patched: Vec<Place>,
    files: Arc<[Arc<str>]>,
    spots: Spots,
}

/// One step from an object to a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// The value of a key.
    Key(&'a str),
    /// An element of a list.
    Index(usize),
}

impl Object {
    /// Where the part at a path was written: in the base, or in the patch that put it there. The nearest part that is there
    /// answers for what is not.
    pub fn place_of(&self, path: &[Step<'_>]) -> Place {
        let (mut value, mut spots) = (&self.value, &self.spots);
        for step in path {
            let next = match (step, value) {
                (Step::Key(name), Value::Object(map)) => {
                    map.iter().enumerate().find(|(_, (key, _))| key == name).map(|(index, (_, value))| (index, value))
                }
                (Step::Index(index), Value::Array(list)) => list.get(*index).map(|value| (*index, value)),
                _ => None,
            };
            let Some((index, inner)) = next else { break };
            let Some(spot) = spots.parts.get(index).filter(|spot| spot.at.is_known()) else { break };
            (value, spots) = (inner, spot);
        }
        place(&self.files, spots.at).unwrap_or_else(|| self.place.clone())
    }

    /// The object as `kustomize build` prints it.
    pub fn to_yaml(&self) -> String {
        emit::object(&self.value)
    }

    /// The files of the build, as [`Written::at`] counts them: the same for all its objects.
    pub fn files(&self) -> &Arc<[Arc<str>]> {
        &self.files
    }

    /// Where it and each of its parts were written.
    pub fn written(&self) -> Written<'_> {
        Written(&self.spots)
    }
}

/// Where a part of an object was written.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a>(&'a Spots);

impl<'a> Written<'a> {
    /// The file, by its position among [`Object::files`], the line and the column, from 1; `None` if that is not known, and
    /// the part that holds it answers for it.
    pub fn at(self) -> Option<(usize, u32, u32)> {
        let At { file, line, column } = self.0.at;
        self.0.at.is_known().then_some((file as usize, line, column))
    }

    /// The elements of a list, or the values of a map by key.
    pub fn parts(self) -> impl ExactSizeIterator<Item = Written<'a>> {
        self.0.parts.iter().map(Written)
    }
}

/// What a build gives.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// The objects, in kustomize's order.
    pub objects: Vec<Object>,
    /// What works but should be seen to.
    pub warnings: Vec<Problem>,
    /// Every path of the tree that the outcome depends on, also those where nothing is. As long as what was asked about
    /// them is answered alike, so is the build.
    pub dependencies: BTreeMap<String, Dependency>,
}

impl Rendered {
    /// All objects as `kustomize build` prints them.
    pub fn to_yaml(&self) -> String {
        let objects: Vec<String> = self.objects.iter().map(Object::to_yaml).collect();
        objects.join("---\n")
    }
}

/// A build that failed.
#[derive(Clone, Debug)]
pub struct Failed {
    /// Why.
    pub problem: Problem,
    /// What was found before.
    pub warnings: Vec<Problem>,
    /// The paths that the failure depends on, as in [`Rendered::dependencies`].
    pub dependencies: BTreeMap<String, Dependency>,
}

/// Whether a directory of a tree is a kustomization, by the name of a file in it.
pub fn is_kustomization(tree: &dyn Tree, directory: &str) -> Result<bool, String> {
    for name in FILE_NAMES {
        let path = if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") };
        if matches!(tree.entry(&path)?, Some(Entry::File { .. } | Entry::Link { .. })) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Renders a directory of a tree.
pub fn render(tree: &dyn Tree, directory: &str, options: &Options) -> Result<Rendered, Box<Failed>> {
    let files = Files::new(tree, options.restrict, &options.budgets);
    let world = World {
        arena: Arena::new(options.budgets.nodes, options.budgets.steps, options.budgets.text),
        schemas: Schemas::new(options.rollouts),
    };
    let mut warnings = Vec::new();
    let outcome = Build::new(&files, options, world).and_then(|mut build| {
        let set = build.run(directory);
        warnings = std::mem::take(&mut build.warnings);
        let mut objects = Vec::new();
        for object in set?.list {
            let Some(root) = object.root else { continue };
            let (value, spots) =
                value::with_spots(&build.world.arena, root).map_err(|fault| match fault.at.is_known() {
                    true => fault,
                    false => fault.at(object.at),
                })?;
            objects.push((object, value, spots));
        }
        Ok(objects)
    });
    let names: Arc<[Arc<str>]> = files.names().iter().map(|name| Arc::from(&**name)).collect();
    let dependencies = files.dependencies().into_iter().map(|(path, asked)| (path.to_string(), asked)).collect();
    let warnings = warnings
        .into_iter()
        .map(|(at, message)| Problem { place: place(&names, at), message, also: None, remedy: None })
        .collect();
    match outcome {
        Ok(list) => {
            let somewhere = Place { file: directory.into(), line: 0, column: 0 };
            let objects = list
                .into_iter()
                .map(|(object, value, spots)| Object {
                    value,
                    place: place(&names, object.at).unwrap_or_else(|| somewhere.clone()),
                    patched: object.patched.iter().filter_map(|at| place(&names, *at)).collect(),
                    files: names.clone(),
                    spots,
                })
                .collect();
            Ok(Rendered { objects, warnings, dependencies })
        }
        Err(fault) => {
            let Fault { at, also, message, remedy } = *fault;
            let also = also.and_then(|(at, what)| Some((place(&names, at)?, what)));
            let problem = Problem { place: place(&names, at), message, also, remedy };
            Err(Box::new(Failed { problem, warnings, dependencies }))
        }
    }
}

fn place(names: &[Arc<str>], at: At) -> Option<Place> {
    let file = names.get(at.file as usize)?.clone();
    Some(Place { file, line: at.line, column: at.column })
}
