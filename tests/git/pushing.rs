//! A revert on a branch of its own: made in a repository on this machine, pushed to a host.

use jiff::Timestamp;
use tidegate::io::git::{FetchLimits, Pushed, Revert, Store, branch, push};

use super::{
    fetching::Reader,
    repository::Made,
    server::{Server, reply},
};

fn at() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

#[test]
fn a_revert_takes_the_folder_back_and_leaves_the_rest() {
    let made = Made::new();
    let good =
        made.push("main", &[("deploy/a/x.yaml", "1"), ("deploy/b.yaml", "1"), ("src/main", "1")], "good").to_string();
    let bad =
        made.push("main", &[("deploy/a/x.yaml", "2"), ("deploy/c.yaml", "2"), ("src/main", "2")], "bad").to_string();
    let store = Store::local(&made.path()).unwrap();
    let revert = |path: &'static str| Revert { from: &bad, to: &good, path, why: "web: aborted: too slow", at: at() };
    let commit = store.revert(&revert("deploy")).unwrap().unwrap();
    assert_eq!(store.revert(&revert("deploy")).unwrap().as_deref(), Some(commit.as_str()), "the same each time");
    let text = |path: &str| {
        let commit = made.repository.find_commit(git2::Oid::from_str(&commit).unwrap()).unwrap();
        let entry = commit.tree().unwrap().get_path(std::path::Path::new(path)).ok()?;
        Some(String::from_utf8(made.repository.find_blob(entry.id()).unwrap().content().to_vec()).unwrap())
    };
    assert_eq!(text("deploy/a/x.yaml").as_deref(), Some("1"));
    assert_eq!(text("deploy/b.yaml").as_deref(), Some("1"));
    assert_eq!(text("deploy/c.yaml"), None);
    assert_eq!(text("src/main").as_deref(), Some("2"), "not its business");
    let about = store.about(&commit).unwrap();
    assert_eq!((about.subject.as_str(), about.author.as_str()), ("Revert \"bad\"", "tidegate"));
    assert_eq!(store.folder_hash(&commit, "deploy").unwrap(), store.folder_hash(&good, "deploy").unwrap());
    let everything = store.revert(&revert("")).unwrap().unwrap();
    assert_eq!(store.folder_hash(&everything, "").unwrap(), store.folder_hash(&good, "").unwrap());
    let nothing = Revert { from: &bad, to: &bad, path: "deploy", why: "", at: at() };
    assert_eq!(store.revert(&nothing).unwrap(), None);
    assert!(store.revert(&revert("missing")).is_err());
    // A branch that is there stays where it is.
    store.make_branch(&branch(&bad), &commit).unwrap();
    store.make_branch(&branch(&bad), &good).unwrap();
    let name = format!("refs/heads/{}", branch(&bad));
    assert_eq!(made.repository.find_reference(&name).unwrap().target().unwrap().to_string(), commit);
}

#[tokio::test]
async fn a_branch_is_pushed_once_and_a_refusal_is_told() {
    let made = Made::new();
    let good = made.push("main", &[("deploy/a.yaml", "1"), ("b.yaml", "1")], "good").to_string();
    let bad = made.push("main", &[("deploy/a.yaml", "2"), ("b.yaml", "2")], "bad").to_string();
    let server = Server::git(&made.path()).await;
    let reader = Reader::of(&server);
    assert_eq!(reader.main().await.unwrap().commit, bad);
    let revert = Revert { from: &bad, to: &good, path: "deploy", why: "", at: at() };
    let commit = reader.store().revert(&revert).unwrap().unwrap();
    let send = async |name: &str| {
        let (access, network, limits) = (reader.access(), reader.network(), FetchLimits::default());
        push(reader.store(), &reader.remote, name, &commit, access, network, &limits).await
    };
    assert_eq!(send("refs/heads/tidegate/x").await.unwrap(), Pushed::Made);
    assert_eq!(send("refs/heads/tidegate/x").await.unwrap(), Pushed::There);
    let arrived = made.repository.find_reference("refs/heads/tidegate/x").unwrap().target().unwrap();
    assert_eq!(arrived.to_string(), commit);
    let tree = made.repository.find_commit(arrived).unwrap().tree().unwrap();
    let entry = tree.get_path(std::path::Path::new("deploy/a.yaml")).unwrap();
    assert_eq!(made.repository.find_blob(entry.id()).unwrap().content(), b"1");
    // A name that no reference can have is refused by git itself.
    let refused = send("refs/heads/a..b").await.unwrap_err().to_string();
    assert!(refused.contains("the branch is not taken: "), "{refused}");
    let denied = Server::start(|_, _| reply(403, &[], "")).await;
    let reader = Reader::of(&denied);
    let (access, limits) = (reader.access(), FetchLimits::default());
    let error = push(reader.store(), &reader.remote, "refs/heads/x", &commit, access, reader.network(), &limits).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("the credentials may not write to it (403)"), "{error}");
}
