//! Commits that are told on a host: what arrives there, and what a host that misbehaves never does to a rollout.

use std::time::Duration;

use tidegate::{kubernetes::value::Value, sync::State, value};

use crate::{
    host::{Host, Mood},
    scene::{Scene, map, web},
};

const CONTEXT: &str = "tidegate/default/shop";

pub fn source() -> Value {
    value!({"apiVersion": "tidegate.dev/v1alpha1", "kind": "GitSource", "metadata": {"name": "shop"},
        "spec": {"url": "https://git.example/team/shop.git", "path": "deploy", "serviceAccountName": "deployer",
            "report": {"host": "gitea", "secretRef": {"name": "token"}}}})
}

/// A hosted scene with its source, and a first commit that is rolled out and told so.
async fn begun() -> (Scene, Host, String) {
    let mut scene = Scene::hosted();
    let first = scene.repository.commit(&[("deploy/web.yaml", &web("web:1"))]);
    scene.source(source());
    scene.start();
    scene.until(&first, State::Success).await;
    scene.pass(1).await;
    let host = scene.host();
    assert_eq!(host.about(&first).last().unwrap(), "tidegate/default/shop: success, rolled out: 3 objects");
    (scene, host, first)
}

/// What the source says about telling.
fn reported(scene: &Scene) -> Option<String> {
    let source = scene.git_source("shop");
    let told = source.list_at(&["status", "conditions"]).iter().find(|c| c.str_at(&["type"]) == Some("Reported"));
    told.map(|told| told.str_at(&["message"]).unwrap().to_owned())
}

/// How long a commit takes from its push to its success, whatever its host thinks of that.
async fn rolled_out(scene: &mut Scene, image: &str) -> (String, i64) {
    let commit = scene.repository.commit(&[("deploy/web.yaml", &web(image))]);
    scene.hint().await;
    let begun = scene.elapsed();
    scene.until(&commit, State::Success).await;
    (commit, scene.elapsed() - begun)
}

#[tokio::test(start_paused = true)]
async fn s61_each_word_arrives_once_the_newest_wins_and_the_last_one_is_there() {
    let (mut scene, host, first) = begun().await;
    let (second, _) = rolled_out(&mut scene, "web:2").await;
    scene.pass(600).await;
    for commit in [&first, &second] {
        let about = host.about(commit);
        let mut once = about.clone();
        once.dedup();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), about.len(), "{about:#?}");
        assert!(about.len() <= 50);
        assert!(about.last().unwrap().contains(": success, "), "{about:#?}");
        assert!(about[..about.len() - 1].iter().all(|word| word.contains(": pending, ")), "{about:#?}");
    }
    let pages: Vec<_> = host.posted().into_iter().map(|posted| posted.target).collect();
    assert!(pages.iter().all(|page| page.as_deref() == Some("https://tidegate.example/sources/default/shop")));
    let page = scene.board.answer(&http::Method::GET, "/sources/default/shop");
    assert_eq!(page.status(), 200);
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn s62_a_host_that_is_down_or_slow_holds_nothing_up_and_hears_the_newest_in_the_end() {
    let (mut scene, host, _) = begun().await;
    let (_, usual) = rolled_out(&mut scene, "web:2").await;
    for mood in [Mood::Down, Mood::Slow(Duration::from_secs(1000))] {
        host.be(mood.clone());
        let (commit, time) = rolled_out(&mut scene, &format!("web:{mood:?}").replace([' ', '(', ')'], "-")).await;
        assert!(time <= usual + 1, "{mood:?}: {time} s instead of {usual} s");
        assert_eq!(host.about(&commit), [] as [&str; 0]);
        scene.pass(90).await;
        let why = reported(&scene).unwrap();
        assert!(why.contains("git.example"), "{why}");
        host.be(Mood::Good);
        scene.pass(4000).await;
        let about = host.about(&commit);
        assert_eq!(about, [format!("{CONTEXT}: success, rolled out: 3 objects")], "only the newest word");
        scene.pass(90).await;
        assert_eq!(reported(&scene), None, "and nobody complains any more");
    }
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn s62_whatever_a_host_answers_a_rollout_goes_on_and_the_source_says_so() {
    let says = |code: u16, headers: &[(&'static str, &str)], words: &str| {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Mood::Says(code, headers, format!(r#"{{"message":"{words}"}}"#))
    };
    let rows = [
        (says(403, &[], "no scope"), "the token may not set statuses (403, no scope)"),
        (says(404, &[], "gone"), "the host does not know the commit, or does not show it to the token (404, gone)"),
        (says(409, &[], "busy"), "the host answers 409 Conflict"),
        (says(422, &[], "bad"), "the host answers 422 Unprocessable Entity, bad"),
        (says(429, &[("retry-after", "120")], "slow down"), "the host wants fewer requests (429)"),
        (says(503, &[], "oops"), "the host answers 503 Service Unavailable"),
    ];
    let (mut scene, host, _) = begun().await;
    for (number, (mood, words)) in rows.into_iter().enumerate() {
        host.be(mood.clone());
        let asked = host.asked().len();
        let (commit, _) = rolled_out(&mut scene, &format!("web:{}", number + 10)).await;
        scene.pass(70).await;
        assert_eq!(reported(&scene).as_deref(), Some(words));
        assert!(host.asked().len() - asked < 15, "{mood:?}: asked {} times", host.asked().len() - asked);
        host.be(Mood::Good);
        scene.pass(4000).await;
        let about = host.about(&commit);
        // What can never be told is not tried again; everything else arrives.
        let lost = matches!(mood, Mood::Says(422, ..));
        assert_eq!(about.is_empty(), lost, "{mood:?}: {about:?}");
    }
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn s62_a_token_that_is_refused_is_named_and_a_new_one_is_tried_at_once() {
    let (mut scene, host, _) = begun().await;
    host.want("other-token");
    let (second, _) = rolled_out(&mut scene, "web:2").await;
    scene.pass(70).await;
    let why = "the host does not accept the token (401, invalid username, password or token)";
    assert_eq!(reported(&scene).as_deref(), Some(why));
    let asked = host.asked().len();
    scene.pass(1200).await;
    assert!(host.asked().len() - asked <= 1, "nobody knocks for ever");
    scene.secret("token", &[("token", "other-token")]);
    scene.pass(120).await;
    assert_eq!(host.about(&second), [format!("{CONTEXT}: success, rolled out: 3 objects")]);
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn l13_a_last_word_outlives_a_restart_and_arrives_once() {
    let (mut scene, host, _) = begun().await;
    host.be(Mood::Down);
    let (second, _) = rolled_out(&mut scene, "web:2").await;
    scene.kill().await;
    let third = scene.repository.commit(&[("deploy/web.yaml", &web("web:crash"))]);
    scene.start();
    scene.until(&third, State::Failure).await;
    scene.kill().await;
    host.be(Mood::Good);
    scene.start();
    scene.pass(7200).await;
    assert_eq!(host.about(&second), [format!("{CONTEXT}: success, rolled out: 3 objects")]);
    let about = host.about(&third);
    assert!(about.len() == 1 && about[0].contains(": failure, web: held since commit "), "{about:#?}");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn l13_a_commit_that_is_overtaken_ends_on_its_host_too() {
    let (mut scene, host, _) = begun().await;
    let second = scene.repository.commit(&[("deploy/web.yaml", &web("web:2"))]);
    scene.hint().await;
    scene.pass(5).await;
    let (third, _) = rolled_out(&mut scene, "web:3").await;
    scene.pass(60).await;
    assert_eq!(
        *host.about(&second).last().unwrap(),
        format!("{CONTEXT}: warning, superseded by commit {}", &third[..8])
    );
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn s60_each_rollout_has_a_status_of_its_own_if_the_source_wants_it() {
    let mut scene = Scene::hosted();
    let api = web("api:1").replace("web", "api").replace("api:1", "web:1");
    let first = scene.repository.commit(&[("deploy/web.yaml", &web("web:1")), ("deploy/api.yaml", &api)]);
    let mut shop = source();
    shop.set_at(&["spec", "report", "perRollout"], true);
    shop.set_at(&["spec", "report", "context"], "deploy");
    scene.source(shop);
    scene.start();
    scene.until(&first, State::Success).await;
    let second = scene.repository.commit(&[("deploy/web.yaml", &web("web:crash"))]);
    scene.until(&second, State::Failure).await;
    scene.pass(60).await;
    let host = scene.host();
    let last = |commit: &str, context: &str| {
        let prefix = format!("{context}: ");
        host.about(commit).into_iter().rev().find_map(|word| word.strip_prefix(&prefix).map(str::to_owned)).unwrap()
    };
    assert_eq!(last(&first, "deploy/web"), "success, fully promoted");
    assert_eq!(last(&first, "deploy/api"), "success, fully promoted");
    assert_eq!(last(&first, "deploy"), "success, rolled out: 6 objects");
    assert_eq!(last(&second, "deploy/api"), "success, fully promoted");
    assert!(last(&second, "deploy/web").starts_with("failure, held since commit "), "{:#?}", host.about(&second));
    assert!(last(&second, "deploy").starts_with("failure, web: held since commit "));
    // Overtaken on the way: what had ended stays as it was.
    let third = scene.push(&[("deploy/web.yaml", &web("web:3"))]).await;
    scene.until(&third, State::Pending).await;
    scene.pass(3).await;
    let fourth = scene.push(&[("deploy/web.yaml", &web("web:4"))]).await;
    scene.until(&fourth, State::Success).await;
    scene.pass(60).await;
    assert_eq!(last(&third, "deploy/web"), format!("warning, superseded by commit {}", &fourth[..8]));
    assert_eq!(last(&third, "deploy/api"), "success, fully promoted");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_parse_error_is_told_to_the_commit_that_brought_it_with_file_and_line() {
    let (mut scene, host, _) = begun().await;
    let broken = scene.repository.commit(&[("deploy/b.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: [\n")]);
    scene.until(&broken, State::Error).await;
    scene.pass(30).await;
    let about = host.about(&broken);
    assert!(about.len() == 1 && about[0].starts_with(&format!("{CONTEXT}: error, deploy/b.yaml:")), "{about:?}");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_is_missing_is_named_and_waited_for() {
    let mut scene = Scene::hosted();
    scene.delete("", "v1", "secrets", "token");
    let first = scene.repository.commit(&[("deploy/a.yaml", &map("a", "x"))]);
    scene.source(source());
    scene.start();
    scene.until(&first, State::Success).await;
    scene.pass(70).await;
    assert_eq!(reported(&scene).as_deref(), Some("there is no Secret token in the namespace default"));
    scene.secret("token", &[("token", "good-token")]);
    scene.pass(120).await;
    assert_eq!(scene.host().about(&first), [format!("{CONTEXT}: success, rolled out: 1 object")]);
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn sr12_a_secret_and_pods_that_the_account_may_not_read_are_named_with_the_rule_that_lets_it() {
    let mut scene = Scene::hosted();
    scene.rights.deny("GET", "secrets");
    scene.rights.deny("GET", "pods");
    let first = scene.repository.commit(&[("deploy/web.yaml", &web("web:slow-20"))]);
    scene.source(source());
    scene.start();
    scene.until(&first, State::Success).await;
    let pending = scene.told.iter().filter(|told| told.commit == first.as_str() && told.state == State::Pending);
    let words: Vec<&str> = pending.map(|told| told.words.as_str()).collect();
    let may =
        "more is not known: the ServiceAccount default/deployer may not list pods in default; bind it to a Role there";
    assert!(words.iter().any(|words| words.contains(may)), "{words:#?}");
    let why = reported(&scene).unwrap();
    let rule = "may not get secrets in default; bind it to a Role there with \
                {apiGroups: [\"\"], resources: [secrets], resourceNames: [token], verbs: [get]}";
    assert!(why.contains(rule), "{why}");
    assert_eq!(scene.host().about(&first), [""; 0]);
    scene.rights.allow_all();
    scene.pass(600).await;
    assert_eq!(scene.host().about(&first).last().unwrap(), "tidegate/default/shop: success, rolled out: 3 objects");
    assert_eq!(reported(&scene), None);
    scene.end().await;
}
