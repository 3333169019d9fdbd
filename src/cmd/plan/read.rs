//! Both sides of a plan: two revisions, a folder and a revision, or two folders.
//!
//! Files are read as the daemon reads them, straight from the object database; a file that is the same on both sides is read
//! once.

use std::{collections::HashMap, path::PathBuf};

use anyhow::{Context, anyhow};
use git2::{BranchType, Commit, Repository};

use super::{super::lint, Arguments};
use crate::{
    cmd::remedied,
    io::git::{self, Store},
    kustomize::{Located, Rendered},
    lint::rule::{Own, Rule},
    manifest::{self, MistakeKind},
    model::git_source::Rendering,
    plan::{Side, Warning},
    sim::plan::{Reading, Sides},
    sync::set::Problem,
};

/// Branches that are looked for, in this order, if the branch checked out has no upstream.
const DEFAULTS: [&str; 5] = ["origin/HEAD", "origin/main", "origin/master", "main", "master"];

/// Reads both sides.
pub fn sides(arguments: &Arguments, path: &str, exclude: &[String], how: Rendering) -> anyhow::Result<Sides> {
    if arguments.paths.is_empty() {
        let repository = repository()?;
        let to = commit(&repository, &arguments.to)?;
        let (name, from) = match &arguments.from {
            Some(name) => (name.clone(), commit(&repository, name)?),
            None => base(&repository, &to)?,
        };
        let store = Store::local(repository.path())?;
        let new = revision(&store, &arguments.to, &to.id().to_string(), path, exclude, how, None)?;
        let old = revision(&store, &name, &from.id().to_string(), path, exclude, how, Some(&new))?;
        return Ok(Sides { old, new });
    }
    let new = folder(&arguments.paths, arguments.path.as_deref(), how)?;
    if let Some(dir) = &arguments.from_dir {
        return Ok(Sides { old: folder(std::slice::from_ref(dir), arguments.path.as_deref(), how)?, new });
    }
    let name = arguments.from.as_deref().unwrap_or("HEAD");
    let old = match (repository(), &arguments.from) {
        (Ok(repository), from) => match (commit(&repository, name), from) {
            (Ok(_), _) => {
                let read = lint::in_revision(name, &arguments.paths, how)?;
                let id = commit(&repository, name)?.id().to_string();
                reading(Side { name: name.to_owned(), commit: id }, read)
            }
            (Err(error), Some(_)) => return Err(error),
            // A repository without a commit has nothing to compare with.
            (Err(_), None) => Reading::default(),
        },
        (Err(error), Some(_)) => return Err(error),
        (Err(_), None) => Reading::default(),
    };
    Ok(Sides { old, new })
}

fn repository() -> anyhow::Result<Repository> {
    let here = std::env::current_dir().context("finding the current folder")?;
    Repository::discover(&here).map_err(|error| {
        remedied(
            anyhow!("{} is in no git repository: {}", here.display(), error.message()),
            "run it inside the repository, or give folders: `tidegate plan NEW --from-dir OLD`",
        )
    })
}

fn commit<'r>(repository: &'r Repository, name: &str) -> anyhow::Result<Commit<'r>> {
    repository.revparse_single(name).and_then(|object| object.peel_to_commit()).map_err(|error| {
        remedied(
            anyhow!("{name} is no revision of this repository: {}", error.message()),
            "give a branch, a tag or a commit; in CI, fetch it first (`fetch-depth: 0`)",
        )
    })
}

/// The commit to compare with if none is given.
fn base<'r>(repository: &'r Repository, to: &Commit<'r>) -> anyhow::Result<(String, Commit<'r>)> {
    let head = repository.head().ok();
    let branch =
        head.as_ref().filter(|head| head.is_branch()).and_then(|head| head.shorthand().ok().map(str::to_owned));
    let upstream = branch.and_then(|branch| {
        let upstream = repository.find_branch(&branch, BranchType::Local).ok()?.upstream().ok()?;
        let name = upstream.name().ok().flatten()?.to_owned();
        Some(name)
    });
    let names: Vec<String> = upstream.into_iter().chain(DEFAULTS.map(str::to_owned)).collect();
    for name in &names {
        let Ok(other) = commit(repository, name) else { continue };
        let found = repository.merge_base(other.id(), to.id()).map_err(|error| {
            remedied(
                anyhow!("{name} and {} have no common commit here: {}", to.id(), error.message()),
                "fetch the whole history (`fetch-depth: 0`), or give --from",
            )
        })?;
        return Ok((format!("merge base with {name}"), repository.find_commit(found)?));
    }
    Err(remedied(
        anyhow!("there is no branch to compare with: none of {} exists", names.join(", ")),
        "give --from REVISION",
    ))
}

/// The manifests of a commit; what is the same in `known` is taken from there.
pub fn revision(
    store: &Store,
    name: &str,
    commit: &str,
    path: &str,
    exclude: &[String],
    how: Rendering,
    known: Option<&Reading>,
) -> anyhow::Result<Reading> {
    let id = commit.to_owned();
    let blobs: HashMap<String, (String, usize)> = known
        .iter()
        .flat_map(|known| known.blobs.iter().map(|(path, (blob, size, _))| (path.clone(), (blob.clone(), *size))))
        .collect();
    let side = Side { name: name.to_owned(), commit: id.clone() };
    let git::Content { files, kustomized } = match store.content(&id, path, exclude, &blobs, how) {
        Ok(content) => content,
        // A folder that does not exist on the old side holds nothing.
        Err(git::Error::Missing { .. }) if known.is_some() => return Ok(Reading { side, ..Reading::default() }),
        Err(error) => return Err(remedied(anyhow!("{error}"), "give the folder of the manifests with --path")),
    };
    let mut reading = Reading { side, ..Reading::default() };
    for file in files.files {
        let index = reading.files.len();
        match (&file.bytes, known) {
            (Some(bytes), _) => reading.files.push(tidied(manifest::read(file.path.clone(), bytes))),
            (None, Some(known)) => {
                let Some((_, _, same)) = known.blobs.get(&file.path) else { continue };
                reading.files.push(known.files[*same].clone());
                reading.same.insert(index, *same);
            }
            (None, None) => continue,
        }
        reading.blobs.insert(file.path, (file.blob, file.size, index));
    }
    for one in kustomized {
        let (index, path) = (reading.files.len(), one.path());
        let same = known.and_then(|known| known.blobs.get(&path)).filter(|(digest, ..)| *digest == one.digest);
        match (same, known) {
            (Some((_, _, same)), Some(known)) => {
                reading.files.push(known.files[*same].clone());
                reading.same.insert(index, *same);
            }
            (Some(_) | None, _) => reading.files.push(one.rendered.file.clone()),
        }
        reading.blobs.insert(path, (one.digest, 0, index));
        reading.is_partial |= one.rendered.fault.is_some();
        reading.notes.extend(notes(&one.rendered, one.unused.iter().map(String::as_str)));
        reading.problems.extend(one.rendered.fault.iter().map(Located::problem));
    }
    for refused in files.refused {
        let message = format!("the entry {}", refused.why);
        reading.problems.push(Problem { file: refused.path.into(), line: 0, message });
    }
    Ok(reading)
}

/// Files of other tools lie about in every repository: what holds no object at all is none of ours.
fn tidied(mut file: manifest::File) -> manifest::File {
    let is_shape = |mistake: &manifest::Mistake| mistake.kind == MistakeKind::Shape;
    if file.objects.is_empty() && !file.mistakes.is_empty() && file.mistakes.iter().all(is_shape) {
        file.mistakes.clear();
    }
    file
}

/// The manifests below folders on disk.
fn folder(paths: &[PathBuf], below: Option<&str>, how: Rendering) -> anyhow::Result<Reading> {
    let paths: Vec<PathBuf> = match below {
        Some(below) => paths.iter().map(|path| path.join(below)).collect(),
        None => paths.to_vec(),
    };
    let name = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ");
    let read = lint::on_disk(&paths, how)?;
    Ok(reading(Side { name, commit: String::new() }, read))
}

fn reading(side: Side, read: lint::Reading) -> Reading {
    let about = |one: &lint::Kustomized| notes(&one.rendered, one.unused.iter().map(|source| source.name.as_str()));
    let notes = read.kustomized.iter().flat_map(about).collect();
    let lint::Manifests { files, faults } = read.manifests();
    let problems = faults.iter().map(Located::problem).collect();
    Reading { problems, is_partial: !faults.is_empty(), notes, ..Reading::of(side, files) }
}

/// What there is to say about a kustomization, as `lint` does.
fn notes<'n>(rendered: &Rendered, unused: impl Iterator<Item = &'n str>) -> Vec<Warning> {
    let note = |rule: Own, file: &str, line: usize, message: String, remedy: &str| {
        let rule = Rule::Own(rule);
        let (severity, rule) = (rule.severity(), rule.name().to_owned());
        let (file, remedy) = (file.to_owned(), remedy.to_owned());
        Warning { severity, rule, message, remedy, object: String::new(), file, line, column: 0 }
    };
    let doubtful = rendered.warnings.iter().map(|warning| {
        let line = warning.position.map_or(0, |at| at.line);
        note(Own::KustomizationDoubtful, &warning.source.name, line, warning.what.clone(), &warning.remedy)
    });
    let unused = unused.map(|file| {
        let message = format!("{} does not use this file", rendered.file.source.name);
        note(Own::FileUnused, file, 0, message, "add it to resources, or remove it")
    });
    doubtful.chain(unused).collect()
}
