//! GitSources. Argo Rollouts has nothing like them, so every word is ours.

use jiff::SignedDuration;

use super::given;
use crate::{
    api::{self, IntOrString},
    kubernetes::{duration, names},
    model::{
        git_source::{
            Drift, GitSource, Host, LoadRestrictor, OnAbort, OnImmutable, OnNewCommit, PlanAccess, Prune, Reference,
            Rendering, Report, Rollouts, Signed, Verification,
        },
        path::At,
        problem::{Code, Notes, Parsed},
        remote::Remote,
        version_range::VersionRange,
        weight::Limit,
    },
};

/// How often to look for new commits if nothing is said.
const INTERVAL: SignedDuration = SignedDuration::from_mins(1);
/// How much one commit may delete if nothing is said.
const PRUNE_LIMIT: Limit = Limit::Percent(50);

/// A GitSource.
pub fn git_source(wire: &api::GitSource) -> Parsed<GitSource> {
    let mut notes = Notes::default();
    let exact = spec(&wire.spec, &At::ROOT.key("spec"), &mut notes);
    notes.close(exact)
}

fn spec(wire: &api::GitSourceSpec, at: &At, notes: &mut Notes) -> Option<GitSource> {
    url(&wire.url, &at.key("url"), notes);
    folder(&wire.path, &at.key("path"), notes);
    let reference = reference(&wire.reference, &at.key("ref"), notes);
    let verify = match &wire.verify {
        Some(verify) => verification(verify, &at.key("verify"), notes).map(Some),
        None => Some(None),
    };
    let report = match &wire.report {
        Some(report) => self::report(report, &at.key("report"), notes).map(Some),
        None => Some(None),
    };
    let plan = match &wire.plan {
        Some(plan) => plan_access(plan, &at.key("plan"), notes).map(Some),
        None => Some(None),
    };
    let kustomize = rendering(wire.kustomize.as_ref(), &at.key("kustomize"), notes);
    let on_abort =
        [("", OnAbort::Hold), ("Hold", OnAbort::Hold), ("Restore", OnAbort::Restore), ("Revert", OnAbort::Revert)];
    let on_new_commit =
        [("", OnNewCommit::Supersede), ("Supersede", OnNewCommit::Supersede), ("Wait", OnNewCommit::Wait)];
    let on_abort = one_of(&wire.on_abort, &on_abort, &at.key("onAbort"), notes);
    let on_immutable = [("", OnImmutable::Fail), ("Fail", OnImmutable::Fail), ("Replace", OnImmutable::Replace)];
    let on_immutable = one_of(&wire.on_immutable, &on_immutable, &at.key("onImmutable"), notes);
    let on_new_commit = one_of(&wire.on_new_commit, &on_new_commit, &at.key("onNewCommit"), notes);
    let name = |reference: &api::LocalReference| reference.name.clone();
    Some(GitSource {
        url: wire.url.clone(),
        reference: reference?,
        path: wire.path.clone(),
        exclude: wire.exclude.clone(),
        kustomize: kustomize?,
        interval: interval(&wire.interval, &at.key("interval"), notes)?,
        suspend: wire.suspend,
        secret: wire.secret_ref.as_ref().map(name),
        verify: verify?,
        service_account: account(&wire.service_account_name, &at.key("serviceAccountName"), notes)?,
        target_namespace: given(&wire.target_namespace),
        kinds: wire.allow.kinds.clone(),
        namespaces: wire.allow.namespaces.clone(),
        prune: prune(wire, at, notes),
        drift: if wire.self_heal.unwrap_or(true) { Drift::Heal } else { Drift::Leave },
        depends_on: wire.depends_on.iter().map(name).collect(),
        webhook: wire.webhook.as_ref().map(|webhook| name(&webhook.secret_ref)),
        report: report?,
        plan: plan?,
        on_abort: on_abort?,
        on_immutable: on_immutable?,
        on_new_commit: on_new_commit?,
    })
}

fn url(url: &str, at: &At, notes: &mut Notes) {
    if Remote::parse(url).is_ok() {
        return;
    }
    let named = without_user(url);
    let repository = ["https://", "ssh://"].iter().find_map(|scheme| url.strip_prefix(scheme));
    let (what, remedy) = match repository.map(|rest| rest.split_once('/').unwrap_or((rest, ""))) {
        None => {
            let what = format!("{named:?} is neither https://, ssh:// nor user@host:path");
            (what, "write https://host/path, ssh://user@host/path or user@host:path")
        }
        Some(("", _) | (_, "")) => {
            (format!("{named:?} names no repository"), "write https://host/path or ssh://user@host/path")
        }
        Some((host, _)) if host.contains('@') && url.starts_with("https://") => {
            ("a URL is no place for credentials".to_owned(), "put them into a Secret, and name it in secretRef")
        }
        Some(_) => match Remote::parse(url) {
            Ok(_) => return,
            Err(wrong) => (format!("{named:?} {wrong}"), "write https://host/path or ssh://user@host/path"),
        },
    };
    notes.ours(at, Code::SourceUrl, what, remedy);
}

/// A URL as it can be repeated: who or what stands before its host may be a password.
fn without_user(url: &str) -> String {
    match (url.find("://"), url.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => format!("{}***{}", &url[..scheme + 3], &url[at..]),
        (None, Some(at)) => format!("***{}", &url[at..]),
        (Some(_) | None, Some(_) | None) => url.to_owned(),
    }
}

/// Nothing outside of the repository is read.
fn folder(path: &str, at: &At, notes: &mut Notes) {
    if path.starts_with('/') || path.split('/').any(|part| part == "..") {
        let what = format!("{path:?} leads out of the repository");
        notes.ours(at, Code::SourceValue, what, "name a folder below the repository's root");
    }
}

fn reference(wire: &api::GitReference, at: &At, notes: &mut Notes) -> Option<Reference> {
    let named: [Option<Reference>; 4] = [
        given(&wire.branch).map(Reference::Branch),
        given(&wire.tag).map(Reference::Tag),
        given(&wire.semver).map(Reference::Semver),
        given(&wire.commit).map(Reference::Commit),
    ];
    let mut named = named.into_iter().flatten();
    let first = named.next().unwrap_or(Reference::Default);
    if named.next().is_some() {
        let what = "several things to follow are named";
        notes.ours(at, Code::SourceReference, what, "keep one of branch, tag, semver and commit");
        return None;
    }
    if let Reference::Commit(commit) = &first
        && !(matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')))
    {
        let what = format!("{commit:?} is not the whole hash of a commit");
        notes.ours(&at.key("commit"), Code::SourceReference, what, "write all 40 (or 64) digits");
        return None;
    }
    if let Reference::Semver(range) = &first
        && let Err(what) = VersionRange::parse(range)
    {
        notes.ours(&at.key("semver"), Code::SourceReference, what, "write a range such as >=1.2.0 <2.0.0");
        return None;
    }
    Some(first)
}

fn interval(text: &str, at: &At, notes: &mut Notes) -> Option<SignedDuration> {
    if text.is_empty() {
        return Some(INTERVAL);
    }
    match duration::parse(text) {
        Ok(interval) if interval.is_positive() => Some(interval),
        Ok(_) => {
            notes.ours(at, Code::SourceValue, format!("{text} is not above zero"), "write a text such as 30s or 5m");
            None
        }
        Err(error) => {
            notes.ours(at, Code::SourceValue, error, "write a text such as 30s or 5m");
            None
        }
    }
}

fn prune(wire: &api::GitSourceSpec, at: &At, notes: &mut Notes) -> Prune {
    let limit = wire.prune_limit.as_ref().map_or(PRUNE_LIMIT, Limit::of);
    let wrong = match (&limit, &wire.prune_limit) {
        (Limit::Unreadable(text), _) => Some(format!("{text:?} is neither a number nor a percentage")),
        (Limit::Pods(number @ ..0) | Limit::Percent(number @ ..0), _) => Some(format!("{number} is below zero")),
        (Limit::Percent(_), Some(IntOrString::String(text))) if !text.ends_with('%') => {
            Some(format!("{text:?} may mean a number or a percentage"))
        }
        (Limit::Pods(_) | Limit::Percent(_), _) => None,
    };
    if let Some(what) = wrong {
        let remedy = "write a number such as 10 or a percentage such as 50%";
        notes.ours(&at.key("pruneLimit"), Code::SourceValue, what, remedy);
    }
    if wire.prune.unwrap_or(true) { Prune::UpTo(limit) } else { Prune::Never }
}

fn verification(wire: &api::GitVerification, at: &At, notes: &mut Notes) -> Option<Verification> {
    let modes = [
        ("", Signed::Commit),
        ("Commit", Signed::Commit),
        ("Tag", Signed::Tag),
        ("TagAndCommit", Signed::TagAndCommit),
    ];
    let signed = one_of(&wire.mode, &modes, &at.key("mode"), notes);
    let secret_at = at.key("secretRef");
    Some(Verification { secret: named(&wire.secret_ref.name, &secret_at.key("name"), notes)?, signed: signed? })
}

fn report(wire: &api::GitReport, at: &At, notes: &mut Notes) -> Option<Report> {
    let hosts = [
        ("", Host::Auto),
        ("auto", Host::Auto),
        ("github", Host::GitHub),
        ("gitlab", Host::GitLab),
        ("gitea", Host::Gitea),
        ("bitbucket", Host::Bitbucket),
        ("bitbucket-data-center", Host::BitbucketDataCenter),
        ("azure-devops", Host::AzureDevOps),
        ("notes", Host::Notes),
        ("none", Host::None),
    ];
    Some(Report {
        host: one_of(&wire.host, &hosts, &at.key("host"), notes)?,
        url: given(&wire.url),
        secret: wire.secret_ref.as_ref().map(|secret| secret.name.clone()),
        context: given(&wire.context),
        per_rollout: wire.per_rollout,
    })
}

/// Who may ask for plans. What is missing allows nobody, so nothing may be missing.
fn plan_access(wire: &api::GitPlan, at: &At, notes: &mut Notes) -> Option<PlanAccess> {
    let issuer = wire.issuer.trim_end_matches('/');
    let host = issuer.strip_prefix("https://").unwrap_or_default();
    if host.is_empty() || host.starts_with('/') || host.contains(['@', '?', '#', ' ']) {
        let what = "it is no https URL of an issuer";
        notes.ours(
            &at.key("issuer"),
            Code::SourceValue,
            what,
            "write such as https://token.actions.githubusercontent.com",
        );
        return None;
    }
    if wire.refs.is_empty() {
        notes.ours(&at.key("refs"), Code::SourceValue, "no ref is allowed", "name some, such as refs/pull/*/merge");
        return None;
    }
    for (index, name) in wire.refs.iter().enumerate() {
        let odd = |part: &str| part.is_empty() || (part.contains('*') && part != "*");
        if !name.starts_with("refs/") || name.split('/').any(odd) {
            let what = format!("{name:?} is no ref");
            let remedy =
                "write the whole ref, such as refs/heads/main; a `*` stands for one whole part: refs/pull/*/merge";
            notes.ours(&at.key("refs").index(index), Code::SourceValue, what, remedy);
            return None;
        }
    }
    Some(PlanAccess {
        issuer: issuer.to_owned(),
        audience: named(&wire.audience, &at.key("audience"), notes)?,
        repository: named(&wire.repository, &at.key("repository"), notes)?,
        refs: wire.refs.clone(),
    })
}

fn rendering(wire: Option<&api::GitKustomize>, at: &At, notes: &mut Notes) -> Option<Rendering> {
    let Some(wire) = wire else { return Some(Rendering::default()) };
    let restrictors = [
        ("", LoadRestrictor::RootOnly),
        ("RootOnly", LoadRestrictor::RootOnly),
        ("Repository", LoadRestrictor::Repository),
    ];
    Some(Rendering {
        rollouts: if wire.rollouts.unwrap_or(true) { Rollouts::Known } else { Rollouts::Plain },
        load_restrictor: one_of(&wire.load_restrictor, &restrictors, &at.key("loadRestrictor"), notes)?,
    })
}

fn named(name: &str, at: &At, notes: &mut Notes) -> Option<String> {
    if name.is_empty() {
        notes.ours(at, Code::SourceValue, "there is no name", "name it");
    }
    given(name)
}

/// The name of an account. It becomes part of the name of a user, in which a colon would separate.
fn account(name: &str, at: &At, notes: &mut Notes) -> Option<String> {
    let name = named(name, at, notes)?;
    match names::dns_subdomain(&name).into_iter().next() {
        None => Some(name),
        Some(problem) => {
            notes.ours(at, Code::SourceValue, format!("{name:?} is no name of a ServiceAccount"), problem);
            None
        }
    }
}

/// The meaning of a word that must be one of these.
fn one_of<T: Copy>(word: &str, known: &[(&str, T)], at: &At, notes: &mut Notes) -> Option<T> {
    let found = known.iter().find(|(name, _)| *name == word).map(|(_, meaning)| *meaning);
    if found.is_none() {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).filter(|name| !name.is_empty()).collect();
        notes.ours(at, Code::SourceValue, format!("{word:?} is unknown"), format!("use {}", names.join(", ")));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn a_source_is_read_with_its_defaults() {
        let wire = api::read(&value!({"spec": {"url": "https://host/repo", "serviceAccountName": "sync"}})).object;
        let source = git_source(&wire).into_result().unwrap();
        assert_eq!((source.reference, source.interval), (Reference::Default, INTERVAL));
        assert_eq!((source.prune, source.drift), (Prune::UpTo(PRUNE_LIMIT), Drift::Heal));
        assert_eq!((source.on_abort, source.on_new_commit), (OnAbort::Hold, OnNewCommit::Supersede));
        assert_eq!(
            source.kustomize,
            Rendering { rollouts: Rollouts::Known, load_restrictor: LoadRestrictor::RootOnly }
        );
    }

    #[test]
    fn how_kustomizations_are_rendered_is_said_or_refused() {
        let source = |kustomize| {
            let mut wire = value!({"spec": {"url": "https://host/repo", "serviceAccountName": "sync"}});
            wire.set_at(&["spec", "kustomize"], kustomize);
            git_source(&api::read(&wire).object).into_result()
        };
        let plain = source(value!({"rollouts": false, "loadRestrictor": "Repository"})).unwrap().kustomize;
        assert_eq!(plain, Rendering { rollouts: Rollouts::Plain, load_restrictor: LoadRestrictor::Repository });
        let problems = source(value!({"loadRestrictor": "None"})).unwrap_err();
        assert_eq!(problems[0].what, "\"None\" is unknown");
    }

    #[test]
    fn looks_are_spread() {
        let wire = api::read(&value!({"spec": {"url": "https://host/repo", "serviceAccountName": "sync"}})).object;
        let source = git_source(&wire).into_result().unwrap();
        let looks: Vec<_> = (0..100).map(|look| source.next_look("some-uid", look)).collect();
        let most = INTERVAL + INTERVAL / 10;
        assert!(looks.iter().all(|wait| (INTERVAL..=most).contains(wait)));
        let mut different = looks.clone();
        different.sort();
        different.dedup();
        assert!(different.len() > 80, "{different:?}");
        assert_ne!(source.next_look("other-uid", 0), looks[0]);
    }

    #[test]
    fn every_problem_of_a_source_is_named() {
        #[track_caller]
        fn check(field: &str, given: serde_json::Value, expected: &str) {
            let mut object = value!({"spec": {"url": "https://host/repo", "serviceAccountName": "sync"}});
            object.set_at(&["spec", field], crate::kubernetes::value::Value::from(given));
            let parsed = git_source(&api::read(&object).object);
            let found: Vec<String> = parsed.problems.iter().map(|p| format!("{}: {}", p.path, p.what)).collect();
            assert_eq!(found, [expected]);
            assert_eq!(parsed.exact, None);
        }
        check(
            "serviceAccountName",
            "a:kube-system:admin".into(),
            "spec.serviceAccountName: \"a:kube-system:admin\" is no name of a ServiceAccount",
        );
        check(
            "url",
            "git@host:re po".into(),
            "spec.url: \"***@host:re po\" is neither https://, ssh:// nor user@host:path",
        );
        check("url", "https://u:p@host/x".into(), "spec.url: a URL is no place for credentials");
        check("url", "https://host".into(), "spec.url: \"https://host\" names no repository");
        check("path", "../x".into(), "spec.path: \"../x\" leads out of the repository");
        let two = serde_json::json!({"branch": "a", "tag": "b"});
        check("ref", two, "spec.ref: several things to follow are named");
        let short = serde_json::json!({"commit": "abc"});
        check("ref", short, "spec.ref.commit: \"abc\" is not the whole hash of a commit");
        let range = serde_json::json!({"semver": "1 - 2"});
        let dash = "spec.ref.semver: \"1 - 2\" is a range with a dash; write >= and <= instead";
        check("ref", range, dash);
        let odd = "https://host/a?b";
        let characters = "has a path with characters other than letters, digits, `~`, `_`, `.`, `+` and `-`";
        check("url", odd.into(), &format!("spec.url: {odd:?} {characters}"));
        check("interval", "5".into(), "spec.interval: time: missing unit in duration \"5\"");
        check("interval", "0s".into(), "spec.interval: 0s is not above zero");
        check("pruneLimit", "10".into(), "spec.pruneLimit: \"10\" may mean a number or a percentage");
        check("serviceAccountName", "".into(), "spec.serviceAccountName: there is no name");
        check("onAbort", "Cry".into(), "spec.onAbort: \"Cry\" is unknown");
        let report = serde_json::json!({"host": "svn"});
        check("report", report, "spec.report.host: \"svn\" is unknown");
        let plan = |field: &str, given: serde_json::Value| {
            let mut plan = serde_json::json!({"issuer": "https://issuer.example", "audience": "https://tidegate.example",
                "repository": "shop/deploy", "refs": ["refs/heads/main"]});
            plan[field] = given;
            plan
        };
        for issuer in [
            "",
            "issuer.example",
            "http://issuer.example",
            "https://",
            "https:///x",
            "https://user@issuer.example",
            "https://issuer.example?a=b",
            "https://issuer.example#a",
            "https://issuer.example /",
        ] {
            check("plan", plan("issuer", issuer.into()), "spec.plan.issuer: it is no https URL of an issuer");
        }
        check("plan", plan("audience", "".into()), "spec.plan.audience: there is no name");
        check("plan", plan("repository", "".into()), "spec.plan.repository: there is no name");
        check("plan", plan("refs", serde_json::json!([])), "spec.plan.refs: no ref is allowed");
        for name in ["main", "refs/heads/*-x", "refs//main", "refs/heads/", "*", ""] {
            let what = format!("spec.plan.refs[1]: {name:?} is no ref");
            check("plan", plan("refs", serde_json::json!(["refs/heads/main", name])), &what);
        }
    }

    #[test]
    fn who_may_ask_for_plans_is_read() {
        let plan = value!({"issuer": "https://issuer.example/group/", "audience": "https://tidegate.example",
            "repository": "shop/deploy", "refs": ["refs/heads/main", "refs/pull/*/merge"]});
        let wire = value!({"spec": {"url": "https://host/repo", "serviceAccountName": "sync", "plan": plan}});
        let access = git_source(&api::read(&wire).object).into_result().unwrap().plan.unwrap();
        assert_eq!(access.issuer, "https://issuer.example/group");
        assert_eq!((&*access.audience, &*access.repository), ("https://tidegate.example", "shop/deploy"));
        for (name, allowed) in [
            ("refs/heads/main", true),
            ("refs/pull/7/merge", true),
            ("refs/pull/7/head", false),
            ("refs/pull//merge", false),
            ("refs/pull/7/8/merge", false),
            ("refs/heads/main2", false),
            ("refs/heads/*", false),
            ("main", false),
            ("", false),
        ] {
            assert_eq!(access.allows_ref(name), allowed, "{name}");
        }
    }
}
