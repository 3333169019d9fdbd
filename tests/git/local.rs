//! A repository of the user's: statuses become notes, commits are seen at once.

use std::{process::Command, time::Duration};

use jiff::Timestamp;
use tidegate::io::git::{Store, Watch};
use tokio::time::timeout;

use super::repository::Made;

#[test]
fn statuses_are_notes_that_git_shows() {
    let made = Made::new();
    let one = made.push("main", &[("a.yaml", "1")], "one").to_string();
    let store = Store::local(&made.path()).unwrap();
    let now = Timestamp::from_second(1_700_000_000).unwrap();
    store.note(&one, "tidegate/web", "pending, step 1/3", now).unwrap();
    store.note(&one, "tidegate/api", "success", now).unwrap();
    store.note(&one, "tidegate/web", "failure, web:\nno", now).unwrap();
    let words = "tidegate/web: failure, web: no\ntidegate/api: success\n";
    assert_eq!(store.notes(&one).as_deref(), Some(words));
    let before = made.repository.refname_to_id(tidegate::io::git::NOTES).unwrap();
    store.note(&one, "tidegate/api", "success", now).unwrap();
    assert_eq!(
        made.repository.refname_to_id(tidegate::io::git::NOTES).unwrap(),
        before,
        "nothing new, nothing written"
    );
    let shown = Command::new("git").arg("-C").arg(made.path()).args(["notes", "--ref=tidegate", "show", &one]).output();
    assert_eq!(String::from_utf8(shown.expect("please install git").stdout).unwrap(), words);
    assert_eq!(made.repository.refname_to_id("refs/heads/main").unwrap().to_string(), one, "the branch is untouched");
}

#[tokio::test]
async fn a_commit_is_seen_at_once_and_a_note_is_not_one() {
    let made = Made::new();
    let one = made.push("main", &[("a.yaml", "1")], "one").to_string();
    let store = Store::local(&made.path()).unwrap();
    let watch = Watch::new(&store).unwrap();
    store.note(&one, "tidegate/web", "success", Timestamp::UNIX_EPOCH).unwrap();
    let heard = || async { timeout(Duration::from_secs(60), watch.changed()).await.expect("no news") };
    made.push("main", &[("a.yaml", "2")], "two");
    heard().await;
    made.push("feature/x", &[("a.yaml", "3")], "three");
    heard().await;
}
