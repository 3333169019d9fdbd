//! A real git host: what is pushed is heard of and fetched, and statuses that are told arrive.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../git/authority.rs"]
mod authority;
mod daemon;
mod gitea;

use std::{collections::BTreeMap, path::Path, time::Duration};

use http::Method;
use jiff::Timestamp;
use tidegate::{
    forge::{
        Credential, Outcome, Place, State, Status,
        reporter::{Progress, Reporter},
    },
    io::{
        forge::tell,
        git::{Access, FetchLimits, Network, Relation, Store, fetch},
        webhook::{Hooks, Limits, Source},
    },
    kubernetes::value::Value,
    model::{
        git_source::{Host, Reference},
        remote::Remote,
        secret::Secret,
    },
    value,
};
use tokio::{net::TcpListener, sync::mpsc, time::timeout};

use self::gitea::Gitea;

/// The state of each context of a commit, as the host tells it.
async fn told(gitea: &Gitea, token: &str, sha: &str) -> Vec<(String, String, String)> {
    let answer = gitea.api(Method::GET, &format!("/repos/ada/web/commits/{sha}/status"), token, None).await;
    let statuses = answer.at(&["statuses"]).and_then(Value::as_list).unwrap_or_default();
    let mut found: Vec<_> = statuses
        .iter()
        .map(|status| {
            ["context", "status", "description"].map(|name| status.str_at(&[name]).unwrap_or_default().to_owned())
        })
        .map(|[context, state, description]| (context, state, description))
        .collect();
    found.sort();
    found
}

/// Tells all that is due, as the daemon does.
async fn report(gitea: &Gitea, reporter: &mut Reporter, place: &Place, credential: &Credential) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    while let Some(work) = reporter.due(Timestamp::now(), Progress::Told) {
        let outcome = tell(&gitea.http, place, credential, &work, Timestamp::now()).await;
        outcomes.push(outcome.clone());
        reporter.done(&work, outcome, Timestamp::now());
    }
    outcomes
}

fn status(state: State, description: &str) -> Status {
    Status { state, description: description.to_owned(), target: Some("https://tidegate.example/web".to_owned()) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_is_heard_fetched_and_answered_with_statuses() {
    let gitea = Gitea::start().await;
    let tokens = gitea.user("ada", &[("all", "all"), ("write", "write:repository"), ("read", "read:repository")]);
    let [all, writer, reader] = tokens.try_into().unwrap();
    let repository = value!({"name": "web", "default_branch": "main", "private": true});
    gitea.api(Method::POST, "/user/repos", &all, Some(&repository)).await;

    // The door, and a hook that knocks at it.
    let (sender, mut news) = mpsc::channel(8);
    let hooks = Hooks::new(Limits::default(), sender);
    let source = Source { namespace: "shop".into(), name: "web".into() };
    hooks.open(source.clone(), Secret::new("hook-secret"));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let door = format!("http://{}/hook/shop/web", listener.local_addr().unwrap());
    tokio::spawn(hooks.serve(listener, std::future::pending()));
    let config = value!({"url": door.as_str(), "content_type": "json", "secret": "hook-secret"});
    let hook = value!({"type": "gitea", "config": config, "events": ["push"], "active": true});
    gitea.api(Method::POST, "/repos/ada/web/hooks", &all, Some(&hook)).await;

    let url = format!("{}/ada/web.git", gitea.web());
    let remote = Remote::parse(&url).unwrap();
    let work = tempfile::tempdir().unwrap();
    let push = |text: &str, message: &str| {
        std::fs::write(work.path().join("a.yaml"), text).unwrap();
        let git = |arguments: &[&str]| gitea.git(work.path(), arguments);
        if !Path::new(&work.path().join(".git")).exists() {
            git(&["init", "-q", "-b", "main"]);
        }
        git(&["add", "."]);
        git(&["commit", "-q", "-m", message]);
        let with_token = url.replace("https://", &format!("https://ada:{all}@"));
        git(&["push", "-q", &with_token, "main"]);
        git(&["rev-parse", "HEAD"])
    };

    let cache = tempfile::tempdir().unwrap();
    let store = Store::open(cache.path(), &remote).unwrap();
    let keys = [("username", "ada"), ("password", reader.as_str()), ("ca.crt", gitea.issued.authority.as_str())];
    let keys: BTreeMap<String, Vec<u8>> =
        keys.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect();
    let access = Access::from_secret(&remote, &keys).unwrap();
    let network = Network::new(gitea.http.clone(), None);
    let mut known: Option<String> = None;
    let mut commits = Vec::new();
    for (text, message) in [("one", "first"), ("two", "second"), ("three", "third")] {
        let sha = push(text, message);
        let heard = timeout(Duration::from_secs(60), news.recv()).await.expect("the hook must come").unwrap();
        assert_eq!(heard.source, source);
        assert!(heard.hint.concerns(&remote), "{:?}", heard.hint);
        assert_eq!(heard.hint.references, ["refs/heads/main"]);
        let limits = FetchLimits::default();
        let fetched = fetch(&store, &remote, &Reference::Default, known.as_deref(), &access, &network, &limits).await;
        let fetched = fetched.unwrap_or_else(|error| panic!("{error:?}\n{}", gitea.log()));
        assert_eq!(
            (fetched.commit.as_str(), fetched.relation),
            (sha.as_str(), known.as_ref().map(|_| Relation::Ahead))
        );
        assert_eq!(store.about(&sha).unwrap().subject, message);
        known = Some(sha.clone());
        commits.push(sha);
    }

    // Pending, then how each ended.
    let place = Place::of(Host::Gitea, &remote, None).unwrap().unwrap();
    let credential = Credential { username: None, token: Secret::new(writer) };
    let mut reporter = Reporter::default();
    for sha in &commits {
        reporter.want(sha, "tidegate/shop/web", status(State::Pending, "web: step 1/3, 20 %"), Timestamp::now());
    }
    let posted = report(&gitea, &mut reporter, &place, &credential).await;
    assert_eq!(posted, vec![Outcome::Posted(None); 3]);
    let ends = [
        (State::Superseded, "superseded by a later commit", "warning"),
        (State::Failure, "web: aborted, error rate 7 %", "failure"),
        (State::Success, "web: fully rolled out", "success"),
    ];
    for (sha, (state, words, word)) in commits.iter().zip(ends) {
        let pending = ("tidegate/shop/web".to_owned(), "pending".to_owned(), "web: step 1/3, 20 %".to_owned());
        assert_eq!(told(&gitea, &all, sha).await, [pending]);
        reporter.want(sha, "tidegate/shop/web", status(state, words), Timestamp::now());
        assert_eq!(report(&gitea, &mut reporter, &place, &credential).await, [Outcome::Posted(None)]);
        let ended = ("tidegate/shop/web".to_owned(), word.to_owned(), words.to_owned());
        assert_eq!(told(&gitea, &all, sha).await, [ended]);
    }

    // Refusals are what they are.
    let ask = async |token: &str, sha: &str| {
        let mut reporter = Reporter::default();
        reporter.want(sha, "c", status(State::Success, ""), Timestamp::now());
        let credential = Credential { username: None, token: Secret::new(token) };
        report(&gitea, &mut reporter, &place, &credential).await.remove(0)
    };
    let refused = |outcome: Outcome| matches!(&outcome, Outcome::Forbidden(why) if !why.contains(reader.as_str()));
    assert!(refused(ask("wrong", &commits[0]).await), "a wrong token");
    assert!(refused(ask(&reader, &commits[0]).await), "a token that may only read");
    let unknown = ask(&all, &"0".repeat(40)).await;
    assert!(matches!(unknown, Outcome::Retry(None, _) | Outcome::GiveUp(_)), "{unknown:?}");
}
