//! `tidegate create`: objects from files, and AnalysisRuns from templates.

use std::{fs, path::PathBuf};

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};

use super::{
    access::Cluster,
    get,
    intent::{Common, analysis_runs},
    print::{Watch, name, show},
    remedied,
};
use crate::{
    analysis::by_hand::{self, Wishes},
    api::constants::{GROUP, VERSION, kind},
    engine::key::Resource,
    io::api::Error,
    kubernetes::value::Value,
    manifest,
};

/// The arguments of `tidegate create`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: Option<What>,
    /// Files with Rollouts, Experiments, AnalysisTemplates, ClusterAnalysisTemplates or AnalysisRuns.
    #[arg(short, long, value_name = "FILE")]
    filename: Vec<PathBuf>,
    #[command(flatten)]
    watch: Watch,
    /// Do not colour the output.
    #[arg(long)]
    no_color: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Start an analysis from a template.
    #[command(name = "analysisrun", visible_alias = "ar")]
    AnalysisRun(FromTemplate),
}

#[derive(Debug, Args)]
struct FromTemplate {
    /// The template in the cluster.
    #[arg(long, value_name = "NAME", required_unless_present = "from_file", conflicts_with = "from_file")]
    from: Option<String>,
    /// The template in a file.
    #[arg(long, value_name = "FILE")]
    from_file: Option<PathBuf>,
    /// The template is a ClusterAnalysisTemplate.
    #[arg(long)]
    global: bool,
    /// The name of the run.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// How the name of the run begins; by default with the template's name.
    #[arg(long, value_name = "TEXT")]
    generate_name: Option<String>,
    /// The controller that is to look after it.
    #[arg(long, value_name = "ID")]
    instance_id: Option<String>,
    /// A value for an argument of the template; can be given several times.
    #[arg(short, long = "argument", value_name = "NAME=VALUE", value_parser = argument)]
    arguments: Vec<(String, String)>,
}

fn argument(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("arguments must be in the form NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Creates them.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    if let Some(What::AnalysisRun(wanted)) = &arguments.what {
        return analysis_run(wanted, &arguments.common).await;
    }
    let mut objects = Vec::new();
    for file in &arguments.filename {
        objects.extend(read(file)?);
    }
    match (&objects[..], arguments.watch.watch) {
        ([], _) => return Err(remedied(anyhow!("there is nothing to create"), "give files with -f FILE")),
        ([_, _, ..], true) => return Err(anyhow!("Cannot watch multiple resources")),
        (_, _) => {}
    }
    for object in &objects {
        resource_of(object)?;
    }
    let cluster = arguments.common.access.connect().await?;
    for object in &objects {
        let (resource, is_global) = resource_of(object)?;
        let namespace = object.str_at(&["metadata", "namespace"]).unwrap_or(&cluster.namespace);
        let namespace = (!is_global).then_some(namespace);
        let created = cluster.api.create_strictly(&resource, namespace, object).await;
        let created = created.map_err(|error| refused(&cluster, error, &resource))?;
        show(&created, arguments.common.output, &format!("{} created\n", name(&created)))?;
        if arguments.watch.watch {
            return get::follow(&cluster, &created, arguments.no_color).await;
        }
    }
    Ok(())
}

/// The objects of a file; an error with the place of the first mistake.
fn read(path: &PathBuf) -> anyhow::Result<Vec<Value>> {
    let shown = path.display().to_string();
    let bytes = fs::read(path).with_context(|| format!("cannot read {shown}"))?;
    let file = manifest::read(shown.as_str(), &bytes);
    if let Some(mistake) = file.mistakes.iter().find(|mistake| mistake.kind.is_fatal()) {
        let at = file.source.position(mistake.span.start);
        let remedy = if mistake.remedy.is_empty() {
            format!("`tidegate lint {shown}` shows more")
        } else {
            mistake.remedy.clone()
        };
        return Err(remedied(anyhow!("{shown}:{}:{}: {}", at.line, at.column, mistake.what), remedy));
    }
    Ok(file.objects.iter().map(|object| object.value.clone()).collect())
}

/// The resource of an object, and whether it belongs to no namespace.
fn resource_of(object: &Value) -> anyhow::Result<(Resource, bool)> {
    let text = |key: &str| object.str_at(&[key]).unwrap_or_default();
    let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    let plural = match text("kind") {
        kind::ROLLOUT => "rollouts",
        kind::EXPERIMENT => "experiments",
        kind::ANALYSIS_TEMPLATE => "analysistemplates",
        kind::CLUSTER_ANALYSIS_TEMPLATE => "clusteranalysistemplates",
        kind::ANALYSIS_RUN => "analysisruns",
        _ => "",
    };
    if group != GROUP || plural.is_empty() {
        let error = anyhow!("creates of {group}/{} unsupported", text("kind"));
        return Err(remedied(error, "use `kubectl create -f` for other kinds"));
    }
    Ok((Resource::new(GROUP, VERSION, plural), text("kind") == kind::CLUSTER_ANALYSIS_TEMPLATE))
}

fn refused(cluster: &Cluster, error: Error, resource: &Resource) -> anyhow::Error {
    match error.code() {
        // So a server says that it has no such path at all.
        Some(404) if error.words().contains("page not found") => super::access::unserved(resource),
        Some(404) => remedied(
            anyhow!("{}: {}", resource, error.words()),
            format!(
                "see that namespace {} exists and the definitions are installed (`tidegate crds`)",
                cluster.namespace
            ),
        ),
        _ => super::access::unanswered(error),
    }
}

async fn analysis_run(wanted: &FromTemplate, common: &Common) -> anyhow::Result<()> {
    let cluster = common.access.connect().await?;
    let template = match (&wanted.from_file, &wanted.from) {
        (Some(file), _) => {
            let objects = read(file)?;
            objects.into_iter().next().ok_or_else(|| anyhow!("there is no template in {}", file.display()))?
        }
        (None, Some(name)) if wanted.global => {
            let resource = Resource::new(GROUP, VERSION, "clusteranalysistemplates");
            let global = Cluster { api: cluster.api.clone(), namespace: String::new() };
            global.object(&resource, name).await?
        }
        (None, Some(name)) => cluster.object(&Resource::new(GROUP, VERSION, "analysistemplates"), name).await?,
        (None, None) => return Err(anyhow!("one of --from or --from-file must be specified")),
    };
    let wishes = Wishes {
        name: wanted.name.clone(),
        generate: wanted.generate_name.clone(),
        namespace: cluster.namespace.clone(),
        instance: wanted.instance_id.clone(),
        arguments: wanted.arguments.clone(),
    };
    let run = by_hand::run(&template, &wishes)
        .map_err(|why| remedied(anyhow!("{why}"), "give values with -a NAME=VALUE, and a name with --name"))?;
    let created = cluster.api.create(&analysis_runs(), &cluster.namespace, &run).await;
    let created = created.map_err(|error| refused(&cluster, error, &analysis_runs()))?;
    show(&created, common.output, &format!("{} created\n", name(&created)))
}
