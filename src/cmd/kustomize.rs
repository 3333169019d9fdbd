//! Kustomizations on disk: the tree that they are read from, and how their files are called.
//!
//! Bases may lie anywhere in the repository around the folder; without a repository anywhere on the disk, as with kustomize.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use clap::ValueEnum;

use super::{print::note, remedied};
use crate::{
    kustomize::{Entry, FILE_NAMES, Located, Rendered, Tree, joined},
    model::git_source::{self, Rendering, Rollouts},
};

/// How kustomizations are rendered, as flags.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct RenderFlags {
    /// Know nothing of Rollouts, as `kustomize build` without configuration.
    #[arg(long)]
    pub plain: bool,
    /// Where the files of a kustomization may lie.
    #[arg(long, value_enum, default_value_t, value_name = "RESTRICTOR")]
    pub load_restrictor: LoadRestrictor,
}

/// Where the files of a kustomization may lie.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LoadRestrictor {
    /// In or below its folder, as kustomize has it.
    #[default]
    #[value(alias = "LoadRestrictionsRootOnly")]
    RootOnly,
    /// Anywhere in the repository.
    #[value(alias = "LoadRestrictionsNone", alias = "none")]
    Repository,
}

impl RenderFlags {
    /// What they say.
    pub fn rendering(self) -> Rendering {
        Rendering {
            rollouts: if self.plain { Rollouts::Plain } else { Rollouts::Known },
            load_restrictor: match self.load_restrictor {
                LoadRestrictor::RootOnly => git_source::LoadRestrictor::RootOnly,
                LoadRestrictor::Repository => git_source::LoadRestrictor::Repository,
            },
        }
    }
}

/// A tree of files on disk. Links are read, never followed here: whoever renders follows them inside the tree.
pub struct DiskTree {
    root: PathBuf,
    here: PathBuf,
}

impl DiskTree {
    /// The tree around a folder, and the folder's path in it.
    pub fn around(folder: &Path) -> anyhow::Result<(DiskTree, String)> {
        let shown = || format!("reading {}", folder.display());
        let whole = folder.canonicalize().with_context(shown)?;
        let repository = git2::Repository::discover(&whole).ok();
        let work_tree = repository.as_ref().and_then(|repository| repository.workdir()?.canonicalize().ok());
        let root = work_tree.filter(|root| whole.starts_with(root)).unwrap_or_else(|| PathBuf::from("/"));
        let inner = whole.strip_prefix(&root).unwrap_or(&whole);
        let inner = inner.to_str().ok_or_else(|| anyhow!("{} is not UTF-8", folder.display()))?.to_owned();
        let here = std::env::current_dir().and_then(|here| here.canonicalize()).unwrap_or_else(|_| PathBuf::from("/"));
        Ok((DiskTree { root, here }, inner))
    }

    /// What a file of the tree is called: by its path from the current folder if it lies in it.
    pub fn shown(&self, path: &str) -> String {
        let whole = self.root.join(path);
        whole.strip_prefix(&self.here).unwrap_or(&whole).display().to_string()
    }
}

impl Tree for DiskTree {
    fn entry(&self, path: &str) -> Result<Option<Entry>, String> {
        let whole = self.root.join(path);
        let about = match fs::symlink_metadata(&whole) {
            Ok(about) => about,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        Ok(Some(if about.is_dir() {
            Entry::Directory
        } else if about.is_symlink() {
            let target = fs::read_link(&whole).map_err(|error| error.to_string())?;
            match target.to_str() {
                Some(target) => Entry::Link { target: target.to_owned() },
                None => Entry::Other { what: "a symbolic link that is not text" },
            }
        } else if about.is_file() {
            Entry::File { size: about.len() }
        } else {
            Entry::Other { what: "neither a file nor a folder" }
        }))
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        fs::read(self.root.join(path)).map_err(|error| error.to_string())
    }
}

/// The manifests in and below a folder on disk that is a kustomization, by their paths in its tree; those of kustomizations
/// below it are theirs.
pub fn manifests(folder: &Path, inner: &str) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let (path, about) = (entry.path(), entry.file_type());
        let is_folder = about.as_ref().is_ok_and(fs::FileType::is_dir);
        let is_manifest = [".yaml", ".yml", ".json"].iter().any(|ending| name.ends_with(ending));
        if name.starts_with('.') {
            continue;
        } else if is_folder && !is_kustomization(&path) {
            found.extend(manifests(&path, &joined(inner, &name)));
        } else if about.is_ok_and(|about| about.is_file()) && is_manifest && !FILE_NAMES.contains(&name.as_str()) {
            found.push(joined(inner, &name));
        }
    }
    found.sort();
    found
}

/// Whether a folder on disk is a kustomization.
pub fn is_kustomization(folder: &Path) -> bool {
    FILE_NAMES.iter().any(|name| folder.join(name).is_file())
}

/// What was rendered, or why it was not; warnings go to standard error.
pub fn checked(rendered: &Rendered) -> anyhow::Result<()> {
    for located in &rendered.warnings {
        note(format_args!("warning: {located}"));
    }
    match &rendered.fault {
        None => Ok(()),
        Some(fault) => Err(error(fault)),
    }
}

/// Says which manifests of a kustomization's folder are not used.
pub fn note_unused<'n>(unused: impl IntoIterator<Item = &'n str>) {
    let unused: Vec<&str> = unused.into_iter().collect();
    if !unused.is_empty() {
        let are = if unused.len() == 1 { "is" } else { "are" };
        note(format_args!("note: no kustomization uses {}, so it {are} left out", listed(&unused)));
    }
}

fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 5;
    match names.split_at_checked(SHOWN) {
        Some((first, more)) if !more.is_empty() => format!("{} and {} more", first.join(", "), more.len()),
        Some(_) | None => names.join(", "),
    }
}

fn error(fault: &Located) -> anyhow::Error {
    let remedy = fault.remedy.clone();
    let bare = Located { remedy: String::new(), ..fault.clone() };
    let place = match bare.position {
        Some(at) => format!("{}:{}:{}", bare.source.name, at.line, at.column),
        None => bare.source.name.clone(),
    };
    let error = anyhow!("{place}: {}", bare.problem().message);
    if remedy.is_empty() { error } else { remedied(error, remedy) }
}
