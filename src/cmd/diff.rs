//! `tidegate diff`: what applying manifests would change in a cluster.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
};

use anstyle::{AnsiColor, Style};
use anyhow::{Context, anyhow};
use jiff::Timestamp;
use ring::rand::{SecureRandom, SystemRandom};

use super::{
    Output,
    access::{Access, Cluster, unanswered},
    lint,
    print::say,
    remedied,
};
use crate::{
    api::{
        self, GitSourceStatus,
        constants::{annotation, label},
    },
    engine::key::{Place, Resource},
    io::{
        api::{Api, Error, Force, Run},
        kinds,
        source::{self, git_sources, scope},
    },
    kubernetes::{
        apply::Managers,
        object::Object,
        value::{Text, Value},
    },
    manifest,
    model::{
        git_source::{GitSource, Rendering},
        parse,
    },
    plan::{PlannedHook, hook, output},
    sync::{
        Life, Reason, View,
        allow::Allowance,
        compare,
        id::{Id, Sorts},
        ownership::Claims,
        prune,
        set::{self, Desired, Scope, Set},
        text::{self, SecretMask},
        view::{Fetched, Memo},
    },
};

/// The arguments of `tidegate diff`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Files, folders, or `-` for standard input. The current folder if none.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Read the paths as they are in this revision of the git repository around the current folder.
    #[arg(long, value_name = "REVISION")]
    git: Option<String>,
    /// Compare as this GitSource of the namespace would: what it may bring, where that goes, and what it would delete.
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// How to print what differs.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    access: Access,
}

/// What would happen to an object.
pub(super) struct Change {
    id: Id,
    place: (Text, usize),
    patched: Arc<[(Text, usize)]>,
    what: What,
    fields: Vec<String>,
    pub(super) diff: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Create,
    Change,
    Delete,
    Nothing,
}

impl What {
    fn as_str(self) -> &'static str {
        match self {
            What::Create => "create",
            What::Change => "change",
            What::Delete => "delete",
            What::Nothing => "nothing",
        }
    }
}

/// What would happen to everything, and what would not for a reason.
struct Comparison {
    changes: Vec<Change>,
    stays: Vec<Reason>,
    /// The hooks that a sync of it runs.
    hooks: Vec<PlannedHook>,
}

/// Compares: 0 if nothing would change, 1 if something would.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let compared = runtime.block_on(compare(&arguments))?;
    // A hook that runs again is a change, too.
    let differs = compared.changes.iter().any(|change| change.what != What::Nothing) || !compared.hooks.is_empty();
    match arguments.output {
        Output::Text => print(&compared, arguments.source.is_some())?,
        Output::Json => {
            let object = |change: &Change| {
                serde_json::json!({
                    "group": change.id.group.as_str(), "kind": change.id.kind.as_str(),
                    "namespace": change.id.namespace.as_str(), "name": change.id.name.as_str(),
                    "file": change.place.0.as_str(), "line": change.place.1,
                    "change": change.what.as_str(), "fields": change.fields, "diff": change.diff,
                    "patched": change.patched.iter().map(|(file, line)| format!("{file}:{line}")).collect::<Vec<_>>(),
                })
            };
            let all: Vec<_> = compared.changes.iter().map(object).collect();
            let stays: Vec<String> = compared.stays.iter().map(ToString::to_string).collect();
            let hooks = output::json_hooks(&compared.hooks);
            let whole = serde_json::json!({"different": differs, "objects": all, "stays": stays, "hooks": hooks});
            say(&format!("{whole:#}\n"))?;
        }
    }
    Ok(ExitCode::from(u8::from(differs)))
}

async fn compare(arguments: &Arguments) -> anyhow::Result<Comparison> {
    let files = |how| lint::read(arguments.git.as_deref(), &arguments.paths, how);
    // What cannot be read needs no cluster to be said.
    let read_now = if arguments.source.is_none() { Some(files(Rendering::default())?) } else { None };
    let cluster = arguments.access.connect().await?;
    let source = match &arguments.source {
        Some(name) => Some(Source::named(&cluster, name).await?),
        None => None,
    };
    let files = match read_now {
        Some(read) => read,
        None => files(source.as_ref().map(|source| source.spec.kustomize).unwrap_or_default())?,
    };
    let mut sorts = Sorts::new();
    kinds::learn(&cluster.api, &set::kinds(&files), &mut sorts, &Sorts::new()).await.map_err(unanswered)?;
    let everything = || {
        let allowance = Allowance { kinds: vec!["*".to_owned()], namespaces: vec!["*".to_owned()] };
        Scope { namespace: cluster.namespace.as_str().into(), allowance }
    };
    let scope = source.as_ref().map_or_else(everything, |source| scope(&source.place, &source.spec));
    let whole = read(&files, &scope, &sorts)?;
    let set = &whole.objects;
    let mut live = Vec::new();
    for desired in set {
        let (resource, place) = served(desired);
        live.push(get(&cluster.api, &resource, &place).await?);
    }
    let objects = live.iter().flatten().map(|object| &object.value);
    let claims = Claims::of(set.iter().map(|desired| &desired.object).chain(objects));
    let mut key = [0; 32];
    SystemRandom::new().fill(&mut key).map_err(|_| anyhow!("no randomness to hide secrets with"))?;
    let mask = SecretMask::new(&key);
    let mut changes = Vec::new();
    for (desired, live) in set.iter().zip(&live) {
        changes.push(change(&cluster.api, &claims, desired, live.as_deref(), &mask).await?);
    }
    let hooks = hooks(&cluster.api, source.as_ref(), &whole, &mut changes, &mask).await?;
    let mut stays = Vec::new();
    if let Some(source) = source {
        let live = set.iter().zip(live).filter_map(|(desired, live)| Some((desired.id.clone(), live?))).collect();
        let view = source.view(&cluster.api, &whole, live, &mut sorts).await?;
        let (prunes, reasons) = prune::decide(&view, &source.spec, &whole, false);
        changes.extend(prunes.iter().filter_map(|stale| deletion(&view, &stale.id, &mask)));
        stays = reasons.into_iter().filter(|reason| !matches!(reason, Reason::Prunes(_))).collect();
    }
    Ok(Comparison { changes, stays, hooks })
}

/// The hooks that a sync runs: those of content that the source does not have, or, where there is no source, of a folder in
/// which something differs. How each differs from the one of an earlier commit is a change.
async fn hooks(
    api: &Api,
    source: Option<&Source>,
    set: &Set,
    changes: &mut Vec<Change>,
    mask: &SecretMask,
) -> anyhow::Result<Vec<PlannedHook>> {
    let mut compared = Vec::new();
    for desired in &set.hooks {
        let (resource, place) = served(desired);
        let live = get(api, &resource, &place).await?;
        compared.push(change(api, &Claims::default(), desired, live.as_deref(), mask).await?);
    }
    let run = match source {
        Some(source) => source.status.content.as_ref().is_none_or(|content| content.digest != set.digest()),
        // One that is not there may have been deleted when it had ended.
        None => {
            changes.iter().any(|change| change.what != What::Nothing)
                || compared.iter().any(|change| change.what == What::Change)
        }
    };
    if !run {
        return Ok(Vec::new());
    }
    changes.extend(compared);
    Ok(hook::hooks(set))
}

/// A GitSource, as far as it matters to what would be deleted.
pub(super) struct Source {
    pub(super) place: Place,
    pub(super) spec: GitSource,
    status: GitSourceStatus,
}

impl Source {
    pub(super) async fn named(cluster: &Cluster, name: &str) -> anyhow::Result<Source> {
        let object = cluster.object(&git_sources(), name).await?;
        let source: api::GitSource = api::read(&object).object;
        Source::of(cluster.place(name), source)
    }

    /// One that was read already.
    pub(super) fn of(place: Place, source: api::GitSource) -> anyhow::Result<Source> {
        let name = &place.name;
        let spec = parse::git_source(&source).into_result().map_err(|problems| {
            let words: Vec<String> =
                problems.iter().map(|problem| format!("{}: {}", problem.path, problem.what)).collect();
            remedied(anyhow!("the GitSource {name} makes no sense: {}", words.join(", ")), "mend it first")
        })?;
        Ok(Source { place, spec, status: source.status.unwrap_or_default() })
    }

    /// Everything that the decision what to delete may know.
    pub(super) async fn view(
        &self,
        api: &Api,
        set: &Set,
        mut live: HashMap<Id, Arc<Object>>,
        sorts: &mut Sorts,
    ) -> anyhow::Result<View> {
        for entry in &self.status.inventory {
            let id = Id::of_entry(entry);
            if live.contains_key(&id) {
                continue;
            }
            let api_version = api_version(&id.group, &entry.version);
            let name = (Text::from(api_version), id.kind.clone());
            kinds::learn(api, std::slice::from_ref(&name), sorts, &Sorts::new()).await.map_err(unanswered)?;
            let Some(sort) = sorts.get(&name).cloned().flatten() else { continue };
            let place = Place { namespace: id.namespace.clone(), name: id.name.clone() };
            match read_one(api, &Resource::new(&sort.group, &sort.version, &sort.plural), &place).await {
                Ok(object) => live.extend(object.map(|object| (id, object))),
                // What must not be seen is not known to be there.
                Err(error) if error.code() == Some(403) => tracing::warn!(object = %id, %error, "not read"),
                Err(error) => return Err(unanswered(error)),
            }
        }
        let mut view = View {
            now: Timestamp::now(),
            namespace: self.place.namespace.clone(),
            name: self.place.name.clone(),
            generation: 0,
            life: Life::Stays { guarded: true },
            spec: Ok(self.spec.clone()),
            status: self.status.clone(),
            request: String::new(),
            fetched: Fetched::Nothing,
            live,
            sets: Vec::new(),
            waits_for: Vec::new(),
            refused: BTreeMap::new(),
            answers: BTreeMap::new(),
            trouble: None,
            offered: None,
            details: Default::default(),
            denied: None,
            unlisted: None,
            memo: Memo::default(),
        };
        match source::sets(api, &prune::namespaces(&view, set)).await.map_err(unanswered)? {
            Ok(sets) => view.sets = sets,
            Err(missing) => view.unlisted = Some(missing),
        }
        Ok(view)
    }
}

fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

fn deletion(view: &View, id: &Id, mask: &SecretMask) -> Option<Change> {
    let live = view.live.get(id)?;
    let file = live.annotation(annotation::PATH).unwrap_or_default();
    let diff = text::unified(&text::text(&live.value, mask), "", &format!("live {id}"), "(no longer in git)");
    let (place, patched) = ((file.into(), 0), Arc::default());
    Some(Change { id: id.clone(), place, patched, what: What::Delete, fields: Vec::new(), diff })
}

fn read(files: &[manifest::File], scope: &Scope, sorts: &Sorts) -> anyhow::Result<Set> {
    let set = set::read(files, scope, sorts);
    if set.problems.is_empty() {
        return Ok(set);
    }
    let problems: Vec<String> = set.problems.iter().map(ToString::to_string).collect();
    Err(remedied(anyhow!("{}", problems.join("\n")), "`tidegate lint` says more about each"))
}

pub(super) async fn get(api: &Api, resource: &Resource, place: &Place) -> anyhow::Result<Option<Arc<Object>>> {
    read_one(api, resource, place).await.map_err(unanswered)
}

/// An object with its managers, if there is one.
pub(super) async fn read_one(api: &Api, resource: &Resource, place: &Place) -> Result<Option<Arc<Object>>, Error> {
    match api.object(resource, place).await {
        Ok(mut value) => {
            let owners = value.remove_at(&["metadata", "managedFields"]).unwrap_or_default();
            let managers = Managers::parse(&owners).unwrap_or_default().into();
            Ok(Some(Arc::new(Object { value, managers })))
        }
        Err(error) if error.code() == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn served(desired: &Desired) -> (Resource, Place) {
    let sort = &desired.sort;
    let place = Place { namespace: desired.id.namespace.clone(), name: desired.id.name.clone() };
    (Resource::new(&sort.group, &sort.version, &sort.plural), place)
}

pub(super) async fn change(
    api: &Api,
    claims: &Claims,
    desired: &Desired,
    live: Option<&Object>,
    mask: &SecretMask,
) -> anyhow::Result<Change> {
    let (id, place) = (desired.id.clone(), (desired.file.clone(), desired.line));
    let (name, patched) = (desired.place(), desired.patched.clone());
    let Some(live) = live else {
        let diff = text::unified("", &text::text(&desired.object, mask), "(absent)", &name);
        return Ok(Change { id, place, patched, what: What::Create, fields: Vec::new(), diff });
    };
    let patch = with_marks(claims.settle(&id, &desired.object, Some(live)), live);
    let after = match &desired.sort.kind {
        Some(kind) => match compare::applied(kind, live, &patch, true) {
            Ok(after) => after.value,
            Err(difference) => return Err(anyhow!("{name}: {id} cannot be applied: {difference:?}")),
        },
        None => {
            let (resource, place) = served(desired);
            let answer = api.apply(&resource, &place, &patch, Force::Taken, Run::Dry).await;
            answer.map_err(|error| anyhow!("{name}: {error}"))?
        }
    };
    let fields = match &desired.sort.kind {
        Some(kind) => compare::fields(kind, &live.value, &after),
        None => Vec::new(),
    };
    let diff = text::unified(&text::text(&live.value, mask), &text::text(&after, mask), &format!("live {id}"), &name);
    let what = if diff.is_empty() { What::Nothing } else { What::Change };
    let fields = if what == What::Nothing { Vec::new() } else { fields };
    Ok(Change { id, place, patched, what, fields, diff })
}

/// Where an object came from is not what is asked about.
pub(super) fn with_marks(mut patch: Value, live: &Object) -> Value {
    if let Some(source) = live.value.at(&["metadata", "labels", label::SOURCE]) {
        patch.set_at(&["metadata", "labels", label::SOURCE], source);
    }
    for note in [annotation::COMMIT, annotation::PATH, annotation::DIGEST, annotation::TEMPLATE] {
        if let Some(value) = live.value.at(&["metadata", "annotations", note]) {
            patch.set_at(&["metadata", "annotations", note], value);
        }
    }
    patch
}

fn print(compared: &Comparison, prunes: bool) -> anyhow::Result<()> {
    let Comparison { changes, stays, hooks } = compared;
    let (red, green, cyan) = (AnsiColor::Red.on_default(), AnsiColor::Green.on_default(), AnsiColor::Cyan.on_default());
    let mut out = String::new();
    for change in changes.iter().filter(|change| change.what != What::Nothing) {
        for line in change.diff.lines() {
            let style = match line.as_bytes().first() {
                _ if line.starts_with("---") || line.starts_with("+++") => Style::new().bold(),
                Some(b'-') => red,
                Some(b'+') => green,
                Some(b'@') => cyan,
                Some(_) | None => Style::new(),
            };
            out += &format!("{style}{line}{style:#}\n");
        }
    }
    let count = |what: What| changes.iter().filter(|change| change.what == what).count();
    let (new, changed, same) = (count(What::Create), count(What::Change), count(What::Nothing));
    stays.iter().for_each(|reason| out += &format!("{reason}\n"));
    if !hooks.is_empty() {
        out += &format!("{}\n", output::text_hooks(hooks));
    }
    let deleted = if prunes { format!("{} to delete, ", count(What::Delete)) } else { String::new() };
    out += &format!("{new} to create, {changed} to change, {deleted}{same} as they should be\n");
    say(&out)
}
