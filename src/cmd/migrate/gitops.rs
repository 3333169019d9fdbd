//! `tidegate migrate argocd` and `tidegate migrate flux`: files or a cluster to GitSources, and how the other tool ends.
//!
//! Reads; writes files where `--out` says, and to the cluster only with `--finish --yes`.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, anyhow};
use clap::Args;

use crate::{
    api::{self, GitSource, constants::kind},
    cmd::{
        access::{Access, Cluster, unanswered},
        lint,
        print::{document, note, say},
        remedied,
    },
    engine::key::{Place, Resource},
    io::{kinds, source::git_sources, watch},
    kubernetes::value::{Text, Value},
    manifest::{self, File, Object},
    migrate::{Choices, Entry, Migration, Note, Origin, Tool, Weight, fight, report},
    model::git_source::Rendering,
};

/// The arguments of `tidegate migrate argocd` and `tidegate migrate flux`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Files and folders with the other tool's objects; `-` is standard input.
    #[arg(value_name = "FILE", required_unless_present_any = ["live", "finish"])]
    files: Vec<PathBuf>,
    /// Read the objects in the cluster, of every namespace unless -n names one, and check whether both tools write.
    #[arg(long)]
    live: bool,
    /// Write each GitSource into a file of its own in this folder, instead of to standard output.
    #[arg(long, value_name = "DIR", conflicts_with = "finish")]
    out: Option<PathBuf>,
    /// The ServiceAccount in whose name objects are written, where the other tool names none.
    #[arg(long, value_name = "NAME", default_value = "deployer")]
    service_account: String,
    /// The namespace of the GitSources; by default that of what they sync (Argo CD), or that of the Kustomization.
    #[arg(long, value_name = "NAME")]
    into: Option<String>,
    /// Another name or address that the other tool has for the cluster that the GitSources are for; can be given several times.
    #[arg(long = "destination", value_name = "CLUSTER")]
    destinations: Vec<String>,
    /// After the other tool has ended: take the fields that are still in its name from it, so that it is in no commit's way.
    #[arg(long, conflicts_with = "files")]
    finish: bool,
    /// With --finish: do it, and do not only say what would be done.
    #[arg(long, requires = "finish")]
    yes: bool,
    #[command(flatten)]
    access: Access,
}

/// Migrates, or ends a migration.
pub async fn run(tool: Tool, arguments: Arguments) -> anyhow::Result<ExitCode> {
    if arguments.finish {
        return finish(tool, &arguments).await;
    }
    let cluster = if arguments.live { Some(arguments.access.connect().await?) } else { None };
    let mut files: Vec<(File, Origin)> = Vec::new();
    if !arguments.files.is_empty() {
        let read = lint::read(None, &arguments.files, Rendering::default())?;
        files.extend(read.into_iter().map(|file| (file, Origin::File)));
    }
    if let Some(cluster) = &cluster {
        files.extend(
            live(tool, cluster, arguments.access.namespace()).await?.into_iter().map(|file| (file, Origin::Cluster)),
        );
    }
    super::broken(files.iter().map(|(file, _)| file))?;
    let objects: Vec<(&Object, Origin)> =
        files.iter().flat_map(|(file, origin)| file.objects.iter().map(|object| (object, *origin))).collect();
    if !objects.iter().any(|(object, _)| tool.is_known(object)) {
        let remedy = "give the files that hold its objects, or --live";
        return Err(remedied(anyhow!("there is no object of {} in what was given", tool.title()), remedy));
    }
    let choices = Choices {
        service_account: arguments.service_account.clone(),
        namespace: arguments.into.clone(),
        destinations: arguments.destinations.clone(),
    };
    let mut migration = tool.migrate(&objects, &choices);
    if let Some(cluster) = &cluster {
        migration.notes.extend(fights(tool, cluster, &objects).await?);
    }
    print(tool, &migration, arguments.out.as_deref())?;
    let is_whole = migration.count(Weight::NoEquivalent) + migration.count(Weight::Conflict) == 0;
    Ok(ExitCode::from(u8::from(!is_whole)))
}

/// The GitSources to standard output or into files; what is to be known to standard error, or to standard output where that is
/// free.
fn print(tool: Tool, migration: &Migration, out: Option<&Path>) -> anyhow::Result<()> {
    let told = format!("{}{}", report::notes(migration), report::steps(tool, &migration.taken));
    let yaml = |source: &Value| serde_saphyr::to_string(source).unwrap_or_default();
    let Some(folder) = out else {
        document(&migration.sources.iter().map(yaml).collect::<Vec<_>>().join("---\n"))?;
        note(told.trim_end());
        return Ok(());
    };
    let file = |source: &Value| {
        let text = |key| source.str_at(&["metadata", key]).unwrap_or_default();
        folder.join(format!("{}_{}.yaml", text("namespace"), text("name")))
    };
    // Nothing is written unless everything can be.
    if let Some(there) = migration.sources.iter().map(file).find(|path| path.exists()) {
        return Err(remedied(
            anyhow!("{} is there already", there.display()),
            "give another folder with --out, or remove the file",
        ));
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for source in &migration.sources {
        let path = file(source);
        fs::write(&path, yaml(source)).with_context(|| format!("cannot write {}", path.display()))?;
        say(&format!("{}\n", path.display()))?;
    }
    say(&told)
}

/// The other tool's objects in a cluster.
async fn live(tool: Tool, cluster: &Cluster, namespace: Option<&str>) -> anyhow::Result<Vec<File>> {
    let mut files = Vec::new();
    for (group, version, plural, kind, selector) in tool.kinds() {
        let resource = Resource::new(group, version, plural);
        let scope = watch::Scope {
            namespace: namespace.map(str::to_owned),
            selector: (*selector).to_owned(),
            ..watch::Scope::of(&resource)
        };
        let objects = match watch::list(&cluster.api, &scope).await {
            Ok((objects, _)) => objects,
            Err(error) if error.code() == Some(404) => continue,
            Err(error) if error.code() == Some(403) => {
                note(format_args!("{plural} may not be read, so nothing is said about them: {}", error.words()));
                continue;
            }
            Err(error) => return Err(unanswered(error)),
        };
        for mut object in objects {
            object.set_at(&["kind"], *kind);
            object.set_at(
                &["apiVersion"],
                if group.is_empty() { (*version).to_owned() } else { format!("{group}/{version}") },
            );
            files.push(manifest::read("the cluster", object.to_json().as_bytes()));
        }
    }
    Ok(files)
}

/// What both tools write: GitSources that are there and not suspended, beside what the other tool still keeps.
async fn fights(tool: Tool, cluster: &Cluster, objects: &[(&Object, Origin)]) -> anyhow::Result<Vec<Note>> {
    let mut notes = Vec::new();
    let sources = sources(cluster, None).await?;
    let kept =
        keepers(tool, objects.iter().filter(|(_, origin)| *origin == Origin::Cluster).map(|(object, _)| &object.value));
    for source in &sources {
        let read: GitSource = api::read(source).object;
        let place = (&read.metadata.namespace, &read.metadata.name);
        for (object, found) in written(cluster, &read).await? {
            let keeper = kept.get(&object).filter(|_| !read.spec.suspend);
            let is_fought = found.as_ref().is_some_and(|found| fight::is_fought(found, tool.managers()));
            let what = match keeper {
                Some(keeper) => format!("{keeper} keeps {} {} in sync, too", object.kind, object.name),
                None if is_fought => format!("{} has changed {} {} since", tool.title(), object.kind, object.name),
                None => continue,
            };
            notes.push(Note {
                weight: Weight::Conflict,
                at: None,
                object: format!("{} {}/{}", kind::GIT_SOURCE, place.0, place.1),
                field: String::new(),
                what,
                remedy: "end the other tool for it (step 1 below), or suspend the GitSource".to_owned(),
            });
        }
    }
    Ok(notes)
}

/// Which object of the other tool keeps what.
fn keepers<'o>(tool: Tool, objects: impl Iterator<Item = &'o Value>) -> BTreeMap<Entry, String> {
    let called = |object: &Value| {
        let text = |path: &[&str]| object.str_at(path).unwrap_or_default().to_owned();
        format!("{} {}/{}", text(&["kind"]), text(&["metadata", "namespace"]), text(&["metadata", "name"]))
    };
    objects.flat_map(|object| tool.keeps(object).into_iter().map(move |entry| (entry, called(object)))).collect()
}

async fn sources(cluster: &Cluster, namespace: Option<&str>) -> anyhow::Result<Vec<Value>> {
    let scope = watch::Scope { namespace: namespace.map(str::to_owned), ..watch::Scope::of(&git_sources()) };
    match watch::list(&cluster.api, &scope).await {
        Ok((sources, _)) => Ok(sources),
        Err(error) if error.code() == Some(404) => Ok(Vec::new()),
        Err(error) => Err(unanswered(error)),
    }
}

/// The objects that a source has written, as they are.
async fn written(cluster: &Cluster, source: &GitSource) -> anyhow::Result<Vec<(Entry, Option<Value>)>> {
    let mut found = Vec::new();
    for (entry, resource, place) in inventory(cluster, source).await? {
        let object = match cluster.api.object(&resource, &place).await {
            Ok(object) => Some(object),
            Err(error) if error.code() == Some(404) => None,
            Err(error) => return Err(unanswered(error)),
        };
        found.push((entry, object));
    }
    Ok(found)
}

/// The inventory of a source, and where each object is.
async fn inventory(cluster: &Cluster, source: &GitSource) -> anyhow::Result<Vec<(Entry, Resource, Place)>> {
    let entries = source.status.as_ref().map(|status| status.inventory.as_slice()).unwrap_or_default();
    let version = |group: &Text, version: &Text| match group.is_empty() {
        true => version.clone(),
        false => format!("{group}/{version}").into(),
    };
    let names: Vec<(Text, Text)> =
        entries.iter().map(|one| (version(&one.group, &one.version), one.kind.clone())).collect();
    let mut sorts = BTreeMap::new().into_iter().collect();
    kinds::learn(&cluster.api, &names, &mut sorts, &Default::default()).await.map_err(unanswered)?;
    let mut found = Vec::new();
    for (one, name) in entries.iter().zip(&names) {
        let Some(Some(sort)) = sorts.get(name) else { continue };
        let entry = Entry {
            group: one.group.to_string(),
            kind: one.kind.to_string(),
            namespace: one.namespace.to_string(),
            name: one.name.to_string(),
        };
        found.push((
            entry,
            Resource::new(&sort.group, &sort.version, &sort.plural),
            Place::new(&one.namespace, &one.name),
        ));
    }
    Ok(found)
}

/// Takes the fields of GitSources' objects from the other tool, where that has ended.
async fn finish(tool: Tool, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let cluster = arguments.access.connect().await?;
    let theirs = live(tool, &cluster, None).await?;
    let objects: Vec<&Value> = theirs.iter().flat_map(|file| &file.objects).map(|object| &object.value).collect();
    let kept = keepers(tool, objects.iter().copied());
    let (mut released, mut left) = (0, 0);
    for source in sources(&cluster, arguments.access.namespace()).await? {
        let read: GitSource = api::read(&source).object;
        for (entry, resource, place) in inventory(&cluster, &read).await? {
            let object = match cluster.api.object(&resource, &place).await {
                Ok(object) => object,
                Err(error) if error.code() == Some(404) => continue,
                Err(error) => return Err(unanswered(error)),
            };
            let Some(patch) = fight::release(&object, tool.managers()) else { continue };
            let called = format!("{}/{} in {}", resource.plural, place.name, place.namespace);
            if let Some(keeper) = kept.get(&entry) {
                left += 1;
                say(&format!("{called}: {keeper} still keeps it; end that first\n"))?;
                continue;
            }
            if arguments.yes {
                cluster.api.patch_json(&resource, &place, &patch).await.map_err(unanswered)?;
            }
            released += 1;
            let done = if arguments.yes { "is released" } else { "would be released" };
            say(&format!("{called}: {done} from {}\n", tool.title()))?;
        }
    }
    let hint = if arguments.yes || released == 0 { "" } else { "; nothing was written, --yes does it" };
    let plural = if released == 1 { "" } else { "s" };
    say(&format!("{released} object{plural} released, {left} still kept by {}{hint}\n", tool.title()))?;
    Ok(ExitCode::from(u8::from(left > 0)))
}
