//! `tidegate diff`: what applying manifests would change in a cluster.

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use anstyle::{AnsiColor, Style};
use anyhow::{Context, anyhow};
use ring::rand::{SecureRandom, SystemRandom};

use super::{Output, access::Access, lint, print::say, remedied};
use crate::{
    api::constants::{annotation, label},
    engine::key::{Place, Resource},
    io::{
        api::{Api, Force, Run},
        kinds,
    },
    kubernetes::{
        apply::Managers,
        object::Object,
        value::{Text, Value},
    },
    manifest,
    sync::{
        allow::Allowance,
        compare,
        id::{Id, Sorts},
        ownership::Claims,
        set::{self, Desired, Scope},
        text::{self, Veil},
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
    /// How to print what differs.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    access: Access,
}

/// What would happen to an object.
struct Change {
    id: Id,
    place: (Text, usize),
    what: What,
    fields: Vec<String>,
    diff: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Create,
    Change,
    Nothing,
}

impl What {
    fn as_str(self) -> &'static str {
        match self {
            What::Create => "create",
            What::Change => "change",
            What::Nothing => "nothing",
        }
    }
}

/// Compares: 0 if nothing would change, 1 if something would.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let changes = runtime.block_on(compare(&arguments))?;
    let differs = changes.iter().any(|change| change.what != What::Nothing);
    match arguments.output {
        Output::Text => print(&changes)?,
        Output::Json => {
            let object = |change: &Change| {
                serde_json::json!({
                    "group": change.id.group.as_str(), "kind": change.id.kind.as_str(),
                    "namespace": change.id.namespace.as_str(), "name": change.id.name.as_str(),
                    "file": change.place.0.as_str(), "line": change.place.1,
                    "change": change.what.as_str(), "fields": change.fields, "diff": change.diff,
                })
            };
            let all: Vec<_> = changes.iter().map(object).collect();
            say(&format!("{:#}\n", serde_json::json!({"different": differs, "objects": all})))?;
        }
    }
    Ok(ExitCode::from(u8::from(differs)))
}

async fn compare(arguments: &Arguments) -> anyhow::Result<Vec<Change>> {
    let files = lint::read(arguments.git.as_deref(), &arguments.paths)?;
    let cluster = arguments.access.connect().await?;
    let mut sorts = Sorts::new();
    kinds::learn(&cluster.api, &set::kinds(&files), &mut sorts).await.map_err(|error| anyhow!("{error}"))?;
    let set = read(&files, &cluster.namespace, &sorts)?;
    let mut live = Vec::new();
    for desired in &set {
        live.push(get(&cluster.api, desired).await?);
    }
    let objects = live.iter().flatten().map(|object| &object.value);
    let claims = Claims::of(set.iter().map(|desired| &desired.object).chain(objects));
    let mut key = [0; 32];
    SystemRandom::new().fill(&mut key).map_err(|_| anyhow!("no randomness to hide secrets with"))?;
    let veil = Veil::new(&key);
    let mut changes = Vec::new();
    for (desired, live) in set.iter().zip(&live) {
        changes.push(change(&cluster.api, &claims, desired, live.as_deref(), &veil).await?);
    }
    Ok(changes)
}

fn read(files: &[manifest::File], namespace: &str, sorts: &Sorts) -> anyhow::Result<Vec<Desired>> {
    let allowance = Allowance { kinds: vec!["*".to_owned()], namespaces: vec!["*".to_owned()] };
    let set = set::read(files, &Scope { namespace: namespace.into(), allowance }, sorts);
    if set.problems.is_empty() {
        return Ok(set.objects);
    }
    let problems: Vec<String> = set.problems.iter().map(ToString::to_string).collect();
    Err(remedied(anyhow!("{}", problems.join("\n")), "`tidegate lint` says more about each"))
}

async fn get(api: &Api, desired: &Desired) -> anyhow::Result<Option<Arc<Object>>> {
    let (resource, place) = served(desired);
    match api.object(&resource, &place).await {
        Ok(mut value) => {
            let owners = value.remove_at(&["metadata", "managedFields"]).unwrap_or_default();
            let managers = Managers::parse(&owners).unwrap_or_default().into();
            Ok(Some(Arc::new(Object { value, managers })))
        }
        Err(error) if error.code() == Some(404) => Ok(None),
        Err(error) => Err(anyhow!("{error}")),
    }
}

fn served(desired: &Desired) -> (Resource, Place) {
    let sort = &desired.sort;
    let place = Place { namespace: desired.id.namespace.clone(), name: desired.id.name.clone() };
    (Resource::new(&sort.group, &sort.version, &sort.plural), place)
}

async fn change(
    api: &Api,
    claims: &Claims,
    desired: &Desired,
    live: Option<&Object>,
    veil: &Veil,
) -> anyhow::Result<Change> {
    let (id, place) = (desired.id.clone(), (desired.file.clone(), desired.line));
    let name = format!("{}:{}", place.0, place.1);
    let Some(live) = live else {
        let diff = text::unified("", &text::text(&desired.object, veil), "(absent)", &name);
        return Ok(Change { id, place, what: What::Create, fields: Vec::new(), diff });
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
    let diff = text::unified(&text::text(&live.value, veil), &text::text(&after, veil), &format!("live {id}"), &name);
    let what = if diff.is_empty() { What::Nothing } else { What::Change };
    let fields = if what == What::Nothing { Vec::new() } else { fields };
    Ok(Change { id, place, what, fields, diff })
}

/// Where an object came from is not what is asked about.
fn with_marks(mut patch: Value, live: &Object) -> Value {
    if let Some(source) = live.value.at(&["metadata", "labels", label::SOURCE]) {
        patch.set_at(&["metadata", "labels", label::SOURCE], source);
    }
    for note in [annotation::COMMIT, annotation::PATH, annotation::DIGEST] {
        if let Some(value) = live.value.at(&["metadata", "annotations", note]) {
            patch.set_at(&["metadata", "annotations", note], value);
        }
    }
    patch
}

fn print(changes: &[Change]) -> anyhow::Result<()> {
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
    out += &format!("{new} to create, {changed} to change, {same} as they should be\n");
    say(&out)
}
