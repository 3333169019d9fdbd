//! `tidegate build`: what a kustomization renders.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::ValueEnum;

use super::{
    kustomize::{self as rendering, DiskTree, RenderFlags},
    lint::in_repository,
    print::document,
    remedied,
};
use crate::{
    io::git::{ReadLimits, Store},
    kubernetes::value::Value,
    kustomize::{self, FILE_NAMES, Rendered},
    model::git_source::Rendering,
    value,
};

/// The arguments of `tidegate build`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The folder that is a kustomization.
    #[arg(default_value = ".", value_name = "PATH")]
    path: PathBuf,
    /// Read it as it is in this revision of the git repository around the current folder.
    #[arg(long, value_name = "REVISION")]
    git: Option<String>,
    /// How to print the objects.
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    output: Format,
    #[command(flatten)]
    render: RenderFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// As `kustomize build` prints them.
    Yaml,
    /// For programs: one List.
    Json,
}

/// Prints the objects of a kustomization, in its order.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let folder = folder(&arguments.path);
    let how = arguments.render.rendering();
    let (rendered, unused) = match &arguments.git {
        Some(revision) => in_git(revision, folder, how)?,
        None => on_disk(folder, how)?,
    };
    rendering::checked(&rendered)?;
    rendering::note_unused(unused.iter().map(String::as_str));
    match arguments.output {
        Format::Yaml => document(&rendered.yaml),
        Format::Json => {
            let items = rendered.file.objects.iter().map(|object| object.value.clone());
            let list = value!({"apiVersion": "v1", "kind": "List"});
            document(&printed(list, Value::list(items)))
        }
    }
}

fn printed(mut list: Value, items: Value) -> String {
    list.set_at(&["items"], items);
    format!("{:#}\n", serde_json::Value::from(&list))
}

/// The folder that is meant: people name the file in it, too.
fn folder(path: &Path) -> &Path {
    let is_file = path.file_name().is_some_and(|name| FILE_NAMES.iter().any(|known| name == *known));
    match path.parent().filter(|_| is_file) {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    }
}

fn on_disk(folder: &Path, how: Rendering) -> anyhow::Result<(Rendered, Vec<String>)> {
    let (tree, inner) = DiskTree::around(folder)?;
    if !rendering::is_kustomization(folder) {
        return Err(none(&folder.display().to_string()));
    }
    let rendered = kustomize::render(&tree, &inner, how, &|path| tree.shown(path));
    let names = rendering::manifests(folder, &inner);
    let unused = kustomize::unused(names.iter().map(String::as_str), std::iter::once(&rendered));
    let unused = unused.into_iter().map(|path| tree.shown(path)).collect();
    Ok((rendered, unused))
}

fn in_git(revision: &str, folder: &Path, how: Rendering) -> anyhow::Result<(Rendered, Vec<String>)> {
    let (repository, commit, path) = in_repository(revision, folder)?;
    let store = Store::local(repository.path())?;
    let found = store.files(&commit, &path, &[], &ReadLimits::default())?;
    let all = store.kustomized(&commit, &path, &found.kustomizations, how)?;
    let one = all.into_iter().find(|one| one.rendered.folder == path);
    let one = one.ok_or_else(|| none(&format!("{revision}:{path}")))?;
    Ok((kustomize::render(&store.commit_tree(&commit)?, &path, how, &str::to_owned), one.unused))
}

fn none(folder: &str) -> anyhow::Error {
    remedied(
        anyhow!("{folder} has no kustomization.yaml, kustomization.yml or Kustomization"),
        "name the folder of a kustomization; manifests of other folders are applied as they are",
    )
}
