//! `tidegate doctor`: what stands in the way of the daemon, and what to do about it.
//!
//! Only reads, and asks the server who may do what. A check that cannot be made says why; the others are made all the same.

use std::{fmt::Write as _, process::ExitCode};

use anstyle::{AnsiColor, Style};
use clap::Args;
use futures::{StreamExt, stream};
use http::Request;
use jiff::{Timestamp, fmt::rfc2822};
use kube::client::Body;

use super::{
    Output,
    access::{Access, Cluster, unanswered},
    bold,
    print::say,
};
use crate::{
    api::crd,
    engine::{
        key::{Place, Resource},
        observe::resource,
    },
    install::{Install, NAME, Scope, rights::RIGHTS},
    io::{api::Api, source::git_sources, watch},
    kubernetes::value::Value,
    value,
};

/// The arguments of `tidegate doctor`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Check the rights of this ServiceAccount, as NAMESPACE/NAME; without it, those of whoever asks.
    #[arg(long, value_name = "ACCOUNT", value_parser = account)]
    account: Option<Place>,
    /// As if the daemon reconciled this namespace only.
    #[arg(long, value_name = "NAME")]
    watch_namespace: Option<String>,
    /// Print the findings as JSON.
    #[arg(short, long, value_enum, default_value_t = Output::Text, value_name = "FORMAT")]
    output: Output,
    #[command(flatten)]
    access: Access,
}

fn account(text: &str) -> Result<Place, &'static str> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(Place::new(namespace, name))
        }
        _ => Err("give NAMESPACE/NAME, such as tidegate/tidegate"),
    }
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Good,
    Warning,
    Bad,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Good => "ok",
            State::Warning => "warning",
            State::Bad => "error",
        }
    }

    fn mark(self) -> (&'static str, Style) {
        match self {
            State::Good => ("✔", bold(AnsiColor::Green)),
            State::Warning => ("!", bold(AnsiColor::Yellow)),
            State::Bad => ("✖", bold(AnsiColor::Red)),
        }
    }
}

/// What a check found.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    check: &'static str,
    state: State,
    what: String,
    remedy: String,
}

impl Finding {
    fn good(check: &'static str, what: impl Into<String>) -> Finding {
        Finding { check, state: State::Good, what: what.into(), remedy: String::new() }
    }

    fn warning(check: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { check, state: State::Warning, what: what.into(), remedy: remedy.into() }
    }

    fn bad(check: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { check, state: State::Bad, what: what.into(), remedy: remedy.into() }
    }
}

/// Makes every check. Exit code 0: nothing is wrong, 1: something is, 2: the cluster does not answer.
pub async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let cluster = arguments.access.connect().await?;
    let namespace = arguments.access.namespace().unwrap_or(NAME);
    let version = cluster.api.get("/version").await.map_err(unanswered)?;
    let mut findings = vec![served(&version)];
    findings.push(clock(&cluster).await);
    findings.extend(definitions(&cluster).await);
    findings.push(rights(&cluster, &arguments, namespace).await);
    findings.extend(controllers(&cluster, namespace).await);
    findings.push(daemon(&cluster, namespace).await);
    findings.extend(sources(&cluster).await);
    match arguments.output {
        Output::Text => say(&text(&findings))?,
        Output::Json => say(&format!("{}\n", json(&findings)))?,
    }
    let worst = findings.iter().map(|finding| finding.state).max().unwrap_or(State::Good);
    Ok(if worst == State::Bad { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// The oldest minor version of Kubernetes whose API has all that is used.
const OLDEST_MINOR: u32 = 28;

fn served(version: &Value) -> Finding {
    let name = version.str_at(&["gitVersion"]).unwrap_or_default().to_owned();
    let minor = name.split('.').nth(1).and_then(|minor| minor.parse::<u32>().ok());
    match minor {
        Some(minor) if minor < OLDEST_MINOR => Finding::warning(
            "cluster",
            format!("Kubernetes {name}"),
            format!("it is older than 1.{OLDEST_MINOR}, the oldest one that is tested; upgrade it"),
        ),
        _ => Finding::good("cluster", format!("Kubernetes {name}")),
    }
}

/// How far the clocks may be apart: measurements, pauses and Leases compare times of both.
const SKEW_SECONDS: i64 = 10;

async fn clock(cluster: &Cluster) -> Finding {
    let Ok(request) = Request::get("/version").body(Body::empty()) else {
        return Finding::warning("clock", "cannot be asked", "");
    };
    let theirs = match cluster.api.client().send(request).await {
        Ok(answer) => answer.headers().get(http::header::DATE).and_then(|date| date.to_str().ok()).map(str::to_owned),
        Err(_) => None,
    };
    skew(theirs.as_deref(), Timestamp::now())
}

fn skew(theirs: Option<&str>, now: Timestamp) -> Finding {
    let Some(theirs) = theirs.and_then(|date| rfc2822::parse(date).ok()) else {
        return Finding::good("clock", "the server does not say its time");
    };
    let apart = now.duration_since(theirs.timestamp()).as_secs();
    if apart.abs() <= SKEW_SECONDS {
        return Finding::good("clock", format!("{apart} s from the server's"));
    }
    let remedy = "set the clock (NTP): pauses, analyses and the Lease compare times of both";
    Finding::warning("clock", format!("{apart} s from the server's"), remedy)
}

const APPLY_CRDS: &str = "install them: `tidegate crds | kubectl apply -f -`";

async fn definitions(cluster: &Cluster) -> Vec<Finding> {
    let kind = Resource::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let (mut missing, mut foreign, mut outdated, mut current) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for ours in crd::all() {
        let name = ours.str_at(&["metadata", "name"]).unwrap_or_default().to_owned();
        match cluster.api.object(&kind, &Place::new("", &name)).await {
            Ok(theirs) if schema(&theirs) == schema(&ours) => current += 1,
            Ok(_) if name.ends_with(".argoproj.io") => foreign.push(name),
            Ok(_) => outdated.push(name),
            Err(error) if error.code() == Some(404) => missing.push(name),
            Err(error) => {
                let what = format!("{name} cannot be read: {error}");
                return vec![Finding::warning(
                    "definitions",
                    what,
                    "ask for the right to get CustomResourceDefinitions",
                )];
            }
        }
    }
    let mut findings = Vec::new();
    if !missing.is_empty() {
        findings.push(Finding::bad("definitions", format!("missing: {}", missing.join(", ")), APPLY_CRDS));
    }
    if !outdated.is_empty() {
        let what = format!("of another version: {}", outdated.join(", "));
        findings.push(Finding::bad("definitions", what, APPLY_CRDS));
    }
    if !foreign.is_empty() {
        findings.push(Finding::good("definitions", format!("of Argo Rollouts, which work: {}", foreign.join(", "))));
    }
    if current > 0 {
        findings.push(Finding::good("definitions", format!("{current} of this version")));
    }
    findings
}

/// What the versions of a definition accept.
fn schema(definition: &Value) -> Vec<Option<&Value>> {
    let versions = definition.list_at(&["spec", "versions"]).iter();
    versions.map(|version| version.at(&["schema", "openAPIV3Schema"])).collect()
}

/// How many rights are asked about at once.
const AT_ONCE: usize = 8;

async fn rights(cluster: &Cluster, arguments: &Arguments, own: &str) -> Finding {
    let scope = arguments.watch_namespace.clone().map_or(Scope::Cluster, Scope::Namespace);
    let install = Install { scope, ..Install::new(own, "") };
    let reviews = asks(&install, arguments.account.as_ref());
    let count = reviews.len();
    let denied = match denied(&cluster.api, reviews).await {
        Ok(denied) => denied,
        Err(error) => return Finding::warning("rights", format!("cannot be asked about: {error}"), ""),
    };
    if denied.is_empty() {
        return Finding::good("rights", format!("all {count} that are needed"));
    }
    let remedy = "apply the roles: `tidegate install`, or `tidegate manifests | kubectl apply -f -`";
    Finding::bad("rights", format!("missing {} of {count}: {}", denied.len(), shortened(&denied)), remedy)
}

/// Says in the log which rights this process lacks, if it lacks any: what is missing shows otherwise only when it is needed.
pub async fn warn_of_missing_rights(api: &Api, scope: Scope, own: &str) {
    let reviews = asks(&Install { scope, ..Install::new(own, "") }, None);
    let count = reviews.len();
    match denied(api, reviews).await {
        Ok(denied) if denied.is_empty() => {}
        Ok(denied) => tracing::warn!(
            reason = shortened(&denied),
            "{} of {count} rights are missing; apply the roles with `tidegate install`, and see `tidegate doctor`",
            denied.len()
        ),
        Err(error) => tracing::debug!(error, "rights cannot be asked about"),
    }
}

/// What the server would refuse.
async fn denied(api: &Api, reviews: Vec<(String, &'static str, Value)>) -> Result<Vec<String>, String> {
    // Owned, so that the future can be sent to another thread.
    let asked = reviews
        .into_iter()
        .map(|(what, kind, body)| (what, format!("/apis/authorization.k8s.io/v1/{kind}"), body.to_json().into_bytes()));
    let asked: Vec<(String, String, Vec<u8>)> = asked.collect();
    let answers = stream::iter(asked).map(|(what, path, body)| async move {
        let request = Request::post(path).header("content-type", "application/json");
        let request = request.body(body).map_err(|error| error.to_string())?;
        let answer = api.client().request_text(request).await.map_err(|error| error.to_string())?;
        let answer = Value::from_json(answer.as_bytes()).map_err(|error| error.to_string())?;
        let is_allowed = answer.at(&["status", "allowed"]) == Some(&Value::Bool(true));
        Ok::<_, String>((!is_allowed).then_some(what))
    });
    let answers: Vec<_> = answers.buffered(AT_ONCE).collect().await;
    let mut denied = Vec::new();
    for answer in answers {
        denied.extend(answer?);
    }
    Ok(denied)
}

/// The first of them, and how many more there are.
fn shortened(denied: &[String]) -> String {
    let shown = denied.iter().take(6).map(String::as_str).collect::<Vec<_>>().join(", ");
    match denied.len().saturating_sub(6) {
        0 => shown,
        more => format!("{shown} (and {more} more)"),
    }
}

/// The questions about every right: what it is called, which review, and the review.
fn asks(install: &Install, account: Option<&Place>) -> Vec<(String, &'static str, Value)> {
    let mut asks = Vec::new();
    for right in RIGHTS {
        let Some(namespace) = install.namespace_of(right.place) else { continue };
        for resource in right.resources {
            let (plural, sub) = resource.split_once('/').unwrap_or((resource, ""));
            for verb in right.verbs {
                let attributes = value!({
                    "namespace": namespace, "verb": *verb, "group": right.group, "resource": plural, "subresource": sub,
                });
                let group = if right.group.is_empty() { String::new() } else { format!(".{}", right.group) };
                let place = if namespace.is_empty() { String::new() } else { format!(" in {namespace}") };
                let what = format!("{verb} {resource}{group}{place}");
                asks.push(match account {
                    None => {
                        let body = value!({
                            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                            "spec": {"resourceAttributes": attributes},
                        });
                        (what, "selfsubjectaccessreviews", body)
                    }
                    Some(account) => {
                        let user = format!("system:serviceaccount:{}:{}", account.namespace, account.name);
                        let group = format!("system:serviceaccounts:{}", account.namespace);
                        let body = value!({
                            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                            "spec": {
                                "user": user, "groups": ["system:serviceaccounts", group, "system:authenticated"],
                                "resourceAttributes": attributes,
                            },
                        });
                        (what, "subjectaccessreviews", body)
                    }
                });
            }
        }
    }
    asks
}

/// Who else works on Rollouts.
async fn controllers(cluster: &Cluster, own: &str) -> Vec<Finding> {
    let leases = Resource::new("coordination.k8s.io", "v1", "leases");
    let mut leaders = Vec::new();
    for namespace in [own, "argo-rollouts"] {
        if let Ok(lease) = cluster.api.object(&leases, &Place::new(namespace, "argo-rollouts-controller-lock")).await {
            leaders.push(leader(&lease, namespace, Timestamp::now()));
        }
    }
    // One that leads is news enough.
    leaders.sort_by_key(|finding| finding.state);
    leaders.truncate(1);
    let mut findings = leaders;
    let scope = watch::Scope { namespace: None, ..watch::Scope::of(&resource::rollouts()) };
    if let Ok((rollouts, _)) = watch::list(&cluster.api, &scope).await {
        findings.extend(others(&rollouts, Timestamp::now()));
    }
    findings
}

/// Whether a Lease has a holder that renews it.
fn leader(lease: &Value, namespace: &str, now: Timestamp) -> Finding {
    let holder = lease.str_at(&["spec", "holderIdentity"]).unwrap_or_default();
    let renewed = lease.str_at(&["spec", "renewTime"]).and_then(|time| time.parse::<Timestamp>().ok());
    let lasts = lease.int_at(&["spec", "leaseDurationSeconds"]).unwrap_or_default();
    let since = renewed.map(|renewed| now.duration_since(renewed).as_secs());
    let what = match since {
        _ if holder.is_empty() => format!("there is none: the Lease in {namespace} is free"),
        Some(since) if since > lasts + SKEW_SECONDS => {
            format!("there is none: {holder} renewed the Lease in {namespace} {since} s ago, for {lasts} s")
        }
        Some(_) | None => return Finding::good("leader", format!("{holder} holds the Lease in {namespace}")),
    };
    let remedy = format!("nothing is reconciled; see why no pod takes it: `kubectl -n {namespace} get pods`");
    Finding::warning("leader", what, remedy)
}

/// How long ago another controller's write still counts.
const RECENT_SECONDS: i64 = 600;

fn others(rollouts: &[Value], now: Timestamp) -> Option<Finding> {
    let mut names: Vec<String> = Vec::new();
    for entry in rollouts.iter().flat_map(|rollout| rollout.list_at(&["metadata", "managedFields"])) {
        let text = |key| entry.str_at(&[key]).unwrap_or_default();
        let is_recent =
            text("time").parse::<Timestamp>().is_ok_and(|at| now.duration_since(at).as_secs() < RECENT_SECONDS);
        let manager = text("manager");
        if text("subresource") == "status" && is_recent && manager != NAME && !names.iter().any(|name| name == manager)
        {
            names.push(manager.to_owned());
        }
    }
    let remedy = "scale the other controller down, or give each an instance id; the two never share a Lease in different namespaces";
    (!names.is_empty()).then(|| {
        let what = format!("the status of Rollouts was written in the last ten minutes by {}", names.join(", "));
        Finding::warning("controllers", what, remedy)
    })
}

async fn daemon(cluster: &Cluster, namespace: &str) -> Finding {
    match cluster.api.object(&resource::deployments(), &Place::new(namespace, NAME)).await {
        Ok(deployment) => {
            let count = |path: &[&str]| deployment.int_at(path).unwrap_or(0);
            let (wanted, available) = (count(&["spec", "replicas"]), count(&["status", "availableReplicas"]));
            let what = format!("{available} of {wanted} pods in {namespace} are ready");
            match available {
                0 => Finding::bad("daemon", what, format!("see `kubectl -n {namespace} describe pods`")),
                _ if available < wanted => {
                    Finding::warning("daemon", what, format!("see `kubectl -n {namespace} get pods`"))
                }
                _ => Finding::good("daemon", what),
            }
        }
        Err(error) if error.code() == Some(404) => Finding::warning(
            "daemon",
            format!("is not installed in {namespace}"),
            "`tidegate install --wait`, or name its namespace with -n",
        ),
        Err(error) => Finding::warning("daemon", format!("cannot be read: {error}"), ""),
    }
}

/// What GitSources say of their hosts, tokens and repositories.
async fn sources(cluster: &Cluster) -> Vec<Finding> {
    let scope = watch::Scope { namespace: None, ..watch::Scope::of(&git_sources()) };
    let Ok((sources, _)) = watch::list(&cluster.api, &scope).await else { return Vec::new() };
    let findings: Vec<Finding> = sources.iter().filter_map(source).collect();
    if findings.is_empty() && !sources.is_empty() {
        let count = sources.len();
        let plural = if count == 1 { "" } else { "s" };
        return vec![Finding::good("sources", format!("{count} GitSource{plural}, none with a problem"))];
    }
    findings
}

fn source(source: &Value) -> Option<Finding> {
    let text = |key| source.str_at(&["metadata", key]).unwrap_or_default();
    let is = |condition: &&Value, r#type: &str, status: &str| {
        condition.str_at(&["type"]) == Some(r#type) && condition.str_at(&["status"]) == Some(status)
    };
    let conditions = source.list_at(&["status", "conditions"]);
    let wrong =
        conditions.iter().find(|condition| is(condition, "Stalled", "True") || is(condition, "Reported", "False"))?;
    let message = wrong.str_at(&["message"]).unwrap_or_default();
    let what = format!("{}/{}: {message}", text("namespace"), text("name"));
    Some(Finding::warning(
        "sources",
        what,
        format!("see `kubectl -n {} describe gitsource {}`", text("namespace"), text("name")),
    ))
}

fn text(findings: &[Finding]) -> String {
    let mut out = String::new();
    for finding in findings {
        let (mark, style) = finding.state.mark();
        let _ = writeln!(out, "{style}{mark}{style:#} {:<12} {}", finding.check, finding.what);
        if !finding.remedy.is_empty() {
            let _ = writeln!(out, "               {}", finding.remedy);
        }
    }
    out
}

fn json(findings: &[Finding]) -> String {
    let rows: Vec<Value> = findings
        .iter()
        .map(|finding| {
            value!({
                "check": finding.check, "state": finding.state.word(), "message": finding.what.as_str(),
                "remedy": finding.remedy.as_str(),
            })
        })
        .collect();
    Value::from(rows).to_json()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_compared_with_the_servers() {
        let now: Timestamp = "2026-01-01T00:00:30Z".parse().unwrap();
        let check = |theirs: Option<&str>| skew(theirs, now).state;
        assert_eq!(check(Some("Thu, 01 Jan 2026 00:00:25 GMT")), State::Good);
        assert_eq!(check(Some("Thu, 01 Jan 2026 00:00:00 GMT")), State::Warning);
        assert_eq!(check(Some("Thu, 01 Jan 2026 00:02:00 GMT")), State::Warning);
        assert_eq!(check(Some("soon")), State::Good);
        assert_eq!(check(None), State::Good);
    }

    #[test]
    fn a_version_that_is_not_tested_is_named() {
        let check = |name: &str| served(&value!({"gitVersion": name})).state;
        assert_eq!(check("v1.35.4"), State::Good);
        assert_eq!(check("v1.28.0+k3s1"), State::Good);
        assert_eq!(check("v1.27.9"), State::Warning);
    }

    #[test]
    fn another_controller_is_seen_by_what_it_wrote_just_now() {
        let now: Timestamp = "2026-01-01T01:00:00Z".parse().unwrap();
        let rollout = |manager: &str, time: &str, sub: &str| value!({"metadata": {"managedFields": [{"manager": manager, "time": time, "subresource": sub}]}});
        let check = |rollouts: &[Value]| others(rollouts, now).map(|finding| finding.what);
        assert_eq!(check(&[rollout("tidegate", "2026-01-01T00:59:00Z", "status")]), None);
        assert_eq!(check(&[rollout("rollouts-controller", "2026-01-01T00:30:00Z", "status")]), None);
        assert_eq!(check(&[rollout("kubectl", "2026-01-01T00:59:00Z", "")]), None);
        let both = [
            rollout("rollouts-controller", "2026-01-01T00:59:00Z", "status"),
            rollout("rollouts-controller", "2026-01-01T00:59:10Z", "status"),
        ];
        let expected = "the status of Rollouts was written in the last ten minutes by rollouts-controller";
        assert_eq!(check(&both), Some(expected.to_owned()));
    }

    #[test]
    fn a_lease_that_nobody_renews_has_no_leader() {
        let now: Timestamp = "2026-01-01T01:00:00Z".parse().unwrap();
        let check = |holder: &str, renewed: &str| {
            let spec = value!({"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15});
            let found = leader(&value!({"spec": spec}), "ops", now);
            (found.state, found.what)
        };
        assert_eq!(check("a", "2026-01-01T00:59:50.000000Z"), (State::Good, "a holds the Lease in ops".to_owned()));
        assert_eq!(check("", "2026-01-01T00:59:50Z").1, "there is none: the Lease in ops is free");
        let stale = "there is none: a renewed the Lease in ops 60 s ago, for 15 s".to_owned();
        assert_eq!(check("a", "2026-01-01T00:59:00Z"), (State::Warning, stale));
    }

    #[test]
    fn every_right_is_asked_about_where_it_is_needed() {
        let own = Install { scope: Scope::Namespace("shop".into()), ..Install::new("tidegate", "") };
        let names: Vec<String> = asks(&own, None).into_iter().map(|(what, ..)| what).collect();
        assert!(names.contains(&"patch rollouts/status.argoproj.io in shop".to_owned()), "{names:?}");
        assert!(names.contains(&"create leases.coordination.k8s.io in tidegate".to_owned()), "{names:?}");
        assert!(!names.iter().any(|name| name.contains("clusteranalysistemplates")), "{names:?}");
        let all = asks(&Install::new("tidegate", ""), Some(&Place::new("tidegate", "tidegate")));
        let (_, kind, body) = all.iter().find(|(what, ..)| what.starts_with("get namespaces")).unwrap();
        assert_eq!(*kind, "subjectaccessreviews");
        assert_eq!(body.str_at(&["spec", "user"]), Some("system:serviceaccount:tidegate:tidegate"));
    }

    #[test]
    fn a_source_says_what_is_wrong_with_it() {
        let of = |r#type: &str, status: &str| {
            source(&value!({
                "metadata": {"name": "shop", "namespace": "team"},
                "status": {"conditions": [{"type": r#type, "status": status, "message": "the host refuses the token"}]},
            }))
            .map(|finding| finding.what)
        };
        assert_eq!(of("Ready", "False"), None);
        assert_eq!(of("Reported", "False"), Some("team/shop: the host refuses the token".to_owned()));
        assert_eq!(of("Stalled", "True"), Some("team/shop: the host refuses the token".to_owned()));
        assert_eq!(of("Stalled", "False"), None);
    }
}
