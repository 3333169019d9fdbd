//! `tidegate plan`: what a commit will do, before it is merged.

pub(super) mod live;
pub(super) mod read;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, anyhow};
use clap::ValueEnum;

use super::{
    access::Access,
    comment,
    print::{document, say},
    remedied,
};
use crate::{
    api::{self, constants},
    engine::key::Place,
    io::{
        outbound::{self, Outbound},
        query,
        source::scope,
        web::Web,
    },
    manifest::{self, File},
    metric,
    model::{git_source::GitSource, parse},
    plan::{Plan, RolloutPlan, kinds, output},
    rollout::Seen,
    sim::{
        plan::{Rules, Sides, make_from, sets},
        starts::Origin,
        warnings,
    },
    sync::{allow::Allowance, id::Id, set::Scope},
};

/// The arguments of `tidegate plan`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Files and folders on disk as the new side, instead of --to.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The revision to compare with. By default the merge base of --to and the upstream or default branch; HEAD if paths are given.
    #[arg(long, value_name = "REVISION")]
    from: Option<String>,
    /// The revision to plan.
    #[arg(long, value_name = "REVISION", default_value = "HEAD", conflicts_with = "paths")]
    to: String,
    /// A folder on disk to compare with, instead of --from.
    #[arg(long, value_name = "DIR", conflicts_with = "from", requires = "paths")]
    from_dir: Option<PathBuf>,
    /// The folder of the repository that holds the manifests.
    #[arg(long, value_name = "DIR")]
    path: Option<String>,
    /// Plan as this GitSource would: a file that holds one, or the name of one among the manifests.
    #[arg(long, value_name = "NAME|FILE")]
    source: Option<String>,
    /// Compare with the cluster as well, read-only.
    #[arg(long)]
    live: bool,
    /// Run each metric of the analyses once. Nothing secret is sent along, and no Job is run.
    #[arg(long)]
    query: bool,
    /// Take the state of a Rollout from a decision that `tidegate run --record` wrote.
    #[arg(long, value_name = "FILE", conflicts_with = "live")]
    view: Option<PathBuf>,
    /// How to print the plan.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
    /// Write the plan to a file instead of standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write the curve of each forecast into this folder as SVG; Markdown shows them from there.
    #[arg(long, value_name = "DIR")]
    assets: Option<PathBuf>,
    /// The most bytes that Markdown may have.
    #[arg(long, value_name = "BYTES", default_value_t = output::LIMIT)]
    max_size: usize,
    /// Exit with 0 also if something changes.
    #[arg(long)]
    exit_zero: bool,
    #[command(flatten)]
    comment: comment::CommentFlags,
    #[command(flatten)]
    access: Access,
}

impl Arguments {
    /// Two revisions of the repository, for a command that prints the plan itself.
    pub(super) fn revisions(from: Option<String>, to: String, asked: super::action::Asked) -> Arguments {
        Arguments {
            paths: Vec::new(),
            from,
            to,
            from_dir: None,
            path: asked.path,
            source: asked.source,
            live: asked.live,
            // A metric names any address: a pull request must not make a runner ask it.
            query: false,
            view: None,
            output: Format::Json,
            out: None,
            assets: None,
            max_size: output::LIMIT,
            exit_zero: false,
            comment: comment::CommentFlags::default(),
            access: asked.access,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For a terminal.
    Text,
    /// For a comment or a job summary.
    Markdown,
    /// For programs: one JSON object.
    Json,
    /// One page without scripts.
    Html,
}

/// Plans: 0 if nothing changes, 1 if something does, 2 if it cannot be applied.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let about = [arguments.source.as_deref(), arguments.path.as_deref()];
    let publisher = comment::Publisher::new(&arguments.comment, &about.map(Option::unwrap_or_default))?;
    let plan = make(&arguments)?;
    write(&arguments, &plan)?;
    if let Some(publisher) = publisher {
        publisher.publish(&plan)?;
    }
    Ok(ExitCode::from(match (plan.problems.is_empty(), plan.has_changes()) {
        (false, _) => 2,
        (true, true) if !arguments.exit_zero => 1,
        (true, _) => 0,
    }))
}

/// Makes the plan, and prints nothing.
pub(super) fn make(arguments: &Arguments) -> anyhow::Result<Plan> {
    let given = arguments.source.as_deref().map(source_file).transpose()?.flatten();
    let path = arguments.path.clone().or_else(|| given.as_ref().map(|(_, spec)| spec.path.clone())).unwrap_or_default();
    let exclude = given.as_ref().map(|(_, spec)| spec.exclude.clone()).unwrap_or_default();
    let how = given.as_ref().map(|(_, spec)| spec.kustomize).unwrap_or_default();
    let sides = read::sides(arguments, &path, &exclude, how)?;
    let mut plan = if arguments.live {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
        runtime.block_on(live::plan(arguments, &sides, given, path))?
    } else {
        let source = match (given, &arguments.source) {
            (Some(given), _) => Some(given),
            (None, Some(name)) => Some(among(name, &sides)?),
            (None, None) => None,
        };
        let recorded = arguments.view.as_deref().map(recorded).transpose()?;
        let rules = rules(arguments, source.as_ref(), path);
        let sorts = kinds::known(sides.old.files.iter().chain(&sides.new.files));
        let sets = sets(&sides, &rules, &sorts);
        make_from(&sides, &sets, &rules, &|id| match &recorded {
            Some(seen) if Id::of(&seen.rollout) == *id => Origin::recorded(seen.clone()),
            Some(_) | None => Origin::Git,
        })
    };
    if arguments.query {
        query(&mut plan)?;
    }
    Ok(plan)
}

/// Asks each metric once.
fn query(plan: &mut Plan) -> anyhow::Result<()> {
    let prometheus = std::env::var("ARGO_ROLLOUTS_PROMETHEUS_ADDRESS").ok().filter(|address| !address.is_empty());
    // Whoever operates the machine named this address; all others stand in a change that nobody has merged.
    let allow = outbound::named(prometheus.as_deref()).into_iter().collect();
    let outbound = Outbound { allow, ..Outbound::default() };
    let web = Web::new(outbound).map_err(|error| anyhow!("metrics cannot be asked: {error}"))?;
    let settings = metric::Settings { prometheus, ..metric::Settings::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let now = jiff::Timestamp::now();
    let forecasts = plan.rollouts.iter_mut().filter_map(|rollout| rollout.forecast.as_mut());
    for analysis in forecasts.flat_map(|forecast| &mut forecast.steps).flat_map(|step| &mut step.analyses) {
        analysis.queries = runtime.block_on(query::once(&web, &settings, &analysis.object, now));
    }
    warnings::asked(plan);
    Ok(())
}

/// A recorded decision.
fn recorded(file: &Path) -> anyhow::Result<Seen> {
    let shown = file.display();
    let text = fs::read_to_string(file).with_context(|| format!("reading {shown}"))?;
    let read = serde_json::from_str(&text)
        .and_then(|mut record: serde_json::Value| serde_json::from_value(record["seen"].take()));
    read.map_err(|error| {
        let remedy = "`tidegate run --record DIR` writes one file for each decision";
        remedied(anyhow!("{shown} is not a recorded decision: {error}"), remedy)
    })
}

/// What the GitSource allows, or everything.
fn rules(arguments: &Arguments, source: Option<&(Place, GitSource)>, path: String) -> Rules {
    let mut scope = match source {
        Some((place, spec)) => scope(place, spec),
        None => Scope {
            namespace: "default".into(),
            allowance: Allowance { kinds: vec!["*".to_owned()], namespaces: vec!["*".to_owned()] },
        },
    };
    if let Some(namespace) = arguments.access.namespace() {
        scope.namespace = namespace.into();
    }
    let name = source.map(|(place, _)| place.to_string()).unwrap_or_default();
    Rules { scope, path, source: name, spec: source.map(|(_, spec)| spec.clone()), deadline: None }
}

/// The GitSource of a file, if the name is one.
fn source_file(name: &str) -> anyhow::Result<Option<(Place, GitSource)>> {
    let is_path = name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".json");
    // `team/shop` is a name with its namespace, unless there is such a file.
    if !is_path && !Path::new(name).is_file() {
        return Ok(None);
    }
    let bytes = fs::read(name).with_context(|| format!("reading {name}"))?;
    let files = [manifest::read(name, &bytes)];
    let mut found = sources(&files);
    match (found.next(), found.next()) {
        (Some(object), None) => Ok(Some(parsed(object)?)),
        (None, _) => Err(remedied(anyhow!("{name} holds no GitSource"), "name the file that does")),
        (Some(_), Some(_)) => {
            Err(remedied(anyhow!("{name} holds several GitSources"), "name one of them, without the file"))
        }
    }
}

/// The GitSource of a name among the manifests of the new side.
fn among(name: &str, sides: &Sides) -> anyhow::Result<(Place, GitSource)> {
    let is_it = |object: &&manifest::Object| {
        object.name() == name || format!("{}/{}", object.namespace(), object.name()) == name
    };
    match sources(&sides.new.files).find(is_it) {
        Some(object) => parsed(object),
        None => Err(remedied(
            anyhow!("there is no GitSource {name} among the manifests"),
            "give the file that holds it: --source path/to/source.yaml",
        )),
    }
}

fn sources(files: &[File]) -> impl Iterator<Item = &manifest::Object> {
    let objects = files.iter().flat_map(|file| &file.objects);
    objects.filter(|object| object.group() == constants::TIDEGATE_GROUP && object.kind() == constants::kind::GIT_SOURCE)
}

fn parsed(object: &manifest::Object) -> anyhow::Result<(Place, GitSource)> {
    let source: api::GitSource = api::read(&object.value).object;
    let spec = parse::git_source(&source).into_result().map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(|problem| format!("{}: {}", problem.path, problem.what)).collect();
        remedied(
            anyhow!("the GitSource {} of {} is invalid: {}", object.name(), object.source.name, lines.join(", ")),
            "`tidegate lint` says more",
        )
    })?;
    let namespace = if object.namespace().is_empty() { "default" } else { object.namespace() };
    Ok((Place { namespace: namespace.into(), name: object.name().into() }, spec))
}

fn write(arguments: &Arguments, plan: &Plan) -> anyhow::Result<()> {
    let picture = |rollout: &RolloutPlan| {
        let folder = arguments.assets.as_ref()?;
        rollout.forecast.as_ref().filter(|forecast| forecast.curve.len() > 1)?;
        Some(format!("{}/{}", folder.display(), picture_name(rollout)))
    };
    if let Some(folder) = &arguments.assets {
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        for rollout in &plan.rollouts {
            if let (Some(file), Some(forecast)) = (picture(rollout), &rollout.forecast) {
                fs::write(&file, output::svg(forecast)).with_context(|| format!("writing {file}"))?;
            }
        }
    }
    let text = match arguments.output {
        Format::Text => output::text(plan),
        Format::Markdown => output::markdown(plan, arguments.max_size, &picture),
        Format::Json => output::json(plan),
        Format::Html => output::html(plan),
    };
    match &arguments.out {
        Some(file) => {
            let plain = anstream::adapter::strip_str(&text).to_string();
            let text = if arguments.output == Format::Text { &plain } else { &text };
            fs::write(file, text).with_context(|| format!("writing {}", file.display()))
        }
        None if arguments.output == Format::Text => say(&text),
        None => document(&text),
    }
}

/// A file name that is ours, whatever the Rollout is called.
fn picture_name(rollout: &RolloutPlan) -> String {
    let safe = |text: &str| -> String {
        text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
    };
    format!("{}.{}.svg", safe(&rollout.id.namespace), safe(&rollout.id.name))
}
