//! Repositories on a host: fetched over https, told of by webhooks, trusted or not.

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use tidegate::{
    engine::key::Place,
    io::{
        source::Hint,
        webhook::{Hooks, Limits},
    },
    sync::State,
    value,
};
use tokio::sync::mpsc;

use crate::{
    host::Mood,
    hosted::source,
    scene::{Scene, map, web},
};

/// A scene in which the repository is fetched from its host, with a password.
fn fetched() -> Scene {
    let mut scene = Scene::hosted();
    scene.remote = true;
    let authority = scene.host().authority().to_owned();
    scene.secret("fetch", &[("username", "ada"), ("password", "good-token"), ("ca.crt", &authority)]);
    scene
}

fn ready(scene: &Scene) -> (String, String) {
    let source = scene.git_source("shop");
    let told = &source.list_at(&["status", "conditions"])[0];
    (told.str_at(&["reason"]).unwrap().to_owned(), told.str_at(&["message"]).unwrap().to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_repository_on_a_host_is_fetched_rolled_out_and_told() {
    let mut scene = fetched();
    let first = scene.repository.commit(&[("deploy/web.yaml", &web("web:1"))]);
    let mut shop = source();
    shop.set_at(&["spec", "secretRef"], value!({"name": "fetch"}));
    scene.source(shop);
    scene.start();
    scene.until(&first, State::Success).await;
    let bad = scene.push(&[("deploy/web.yaml", &web("web:crash"))]).await;
    scene.until(&bad, State::Failure).await;
    let fix = scene.push(&[("deploy/web.yaml", &web("web:2"))]).await;
    scene.until(&fix, State::Success).await;
    scene.pass(1).await;
    let host = scene.host();
    for (commit, word) in [(&first, ": success, "), (&bad, ": failure, web: held since commit "), (&fix, ": success, ")]
    {
        assert!(host.about(commit).last().unwrap().contains(word), "{:#?}", host.about(commit));
    }
    let polls = host.asked().len();
    scene.pass(660).await;
    let polls = host.asked().len() - polls;
    assert!(polls <= 22, "a look that finds nothing is two requests a minute: {polls}");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_revert_is_pushed_to_the_host() {
    let mut scene = fetched();
    let first = scene.repository.commit(&[("deploy/web.yaml", &web("web:1")), ("deploy/a.yaml", &map("a", "old"))]);
    let mut shop = source();
    shop.set_at(&["spec", "secretRef"], value!({"name": "fetch"}));
    shop.set_at(&["spec", "onAbort"], "Revert");
    scene.source(shop);
    scene.start();
    scene.until(&first, State::Success).await;
    let bad = scene.push(&[("deploy/web.yaml", &web("web:crash")), ("deploy/a.yaml", &map("a", "new"))]).await;
    let words = scene.until(&bad, State::Failure).await;
    let branch = format!("tidegate/revert-{}", &bad[..8]);
    assert!(words.contains(&format!(", a revert is on the branch {branch}: ")), "{words}");
    let offered = scene.repository.git().find_reference(&format!("refs/heads/{branch}")).unwrap().target().unwrap();
    let deploy = |id: git2::Oid| {
        scene.repository.git().find_commit(id).unwrap().tree().unwrap().get_name("deploy").unwrap().id()
    };
    assert_eq!(deploy(offered), deploy(git2::Oid::from_str(&first).unwrap()));
    scene.pass(1200).await;
    let pushes = scene.host().asked().iter().filter(|asked| asked.path.ends_with("/git-receive-pack")).count();
    assert_eq!(pushes, 1);
    // Another machine, which has to get the old commit before it can say what is wanted.
    scene.kill().await;
    scene.lose_cache();
    scene.start();
    scene.pass(600).await;
    assert_eq!(scene.get("", "configmaps", "a").unwrap().value.str_at(&["data", "k"]), Some("old"));
    assert_eq!(scene.last(&bad).unwrap().words, words);
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_down_or_refuses_is_named_and_nothing_changes() {
    let mut scene = fetched();
    let first = scene.repository.commit(&[("deploy/a.yaml", &map("a", "x")), ("deploy/b.yaml", &map("b", "x"))]);
    let mut shop = source();
    shop.set_at(&["spec", "secretRef"], value!({"name": "fetch"}));
    scene.source(shop);
    scene.start();
    scene.until(&first, State::Success).await;
    let second = scene.repository.commit(&[("deploy/b.yaml", ""), ("deploy/a.yaml", &map("a", "z"))]);
    let host = scene.host();
    let basic = format!("Basic {}", STANDARD.encode("ada:good-token"));
    for (mood, words) in [
        (Mood::Down, "nobody is there"),
        (Mood::Says(500, Vec::new(), "oops".into()), "500"),
        (
            Mood::Says(302, vec![("location", "https://evil.example/team/shop.git/info/refs".into())], String::new()),
            "evil.example",
        ),
        (Mood::Says(200, Vec::new(), "<html>".into()), "git"),
    ] {
        host.be(mood.clone());
        scene.pass(130).await;
        let (_, message) = ready(&scene);
        assert!(
            message.contains("the repository cannot be fetched: ") && message.contains(words),
            "{mood:?}: {message}"
        );
        assert!(!message.contains("good-token") && !message.contains(&basic));
        assert_eq!(scene.get("", "configmaps", "a").unwrap().value.str_at(&["data", "k"]), Some("x"));
        assert!(scene.get("", "configmaps", "b").is_some());
    }
    host.be(Mood::Good);
    host.want("another");
    scene.pass(130).await;
    let (_, message) = ready(&scene);
    assert!(message.contains("401") || message.contains("accept"), "{message}");
    host.want("good-token");
    scene.until(&second, State::Success).await;
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn sr5_a_host_of_an_unknown_authority_is_not_shown_the_password() {
    let mut scene = fetched();
    let other = crate::authority::issue().authority;
    scene.secret("fetch", &[("username", "ada"), ("password", "good-token"), ("ca.crt", &other)]);
    scene.repository.commit(&[("deploy/a.yaml", &map("a", "x"))]);
    let mut shop = source();
    shop.set_at(&["spec", "secretRef"], value!({"name": "fetch"}));
    scene.source(shop);
    scene.start();
    scene.pass(30).await;
    let (reason, message) = ready(&scene);
    assert_eq!(reason, "FetchFailed");
    assert!(message.contains("put that authority's certificate into ca.crt"), "{message}");
    assert_eq!(scene.host().asked(), [], "not a word was said");
    assert!(scene.get("", "configmaps", "a").is_none());
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn sr5_a_self_signed_certificate_is_trusted_where_it_is_named_and_nowhere_else() {
    let own = crate::authority::own();
    let another = crate::authority::own();
    for (named, works) in [(&own, true), (&another, false)] {
        let mut scene = fetched();
        scene.host().show(&own);
        scene.secret("fetch", &[("username", "ada"), ("password", "good-token"), ("ca.crt", &named.authority)]);
        let first = scene.repository.commit(&[("deploy/a.yaml", &map("a", "x"))]);
        let mut shop = source();
        shop.set_at(&["spec", "secretRef"], value!({"name": "fetch"}));
        scene.source(shop);
        scene.start();
        if works {
            scene.until(&first, State::Success).await;
        } else {
            scene.pass(30).await;
            assert_eq!(ready(&scene).0, "FetchFailed");
            assert_eq!(scene.host().asked(), [], "not a word was said");
        }
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_as_hosts_show_it_is_reached_by_ssh() {
    let mut scene = fetched();
    let mut shop = source();
    shop.set_at(&["spec", "url"], "git@git.example:team/shop.git");
    shop.remove_at(&["spec", "report"]);
    scene.source(shop);
    scene.start();
    scene.pass(30).await;
    let (reason, message) = ready(&scene);
    assert_eq!(reason, "FetchFailed");
    assert!(message.contains("ssh://git@git.example/team/shop.git"), "{message}");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn sr4_a_commit_that_another_source_fetched_is_not_read_without_access_to_its_repository() {
    let mut scene = fetched();
    let first = scene.repository.commit(&[("deploy/a.yaml", &map("a", "private"))]);
    let mut shop = source();
    shop.set_at(&["spec", "secretRef"], value!({"name": "fetch"}));
    scene.source(shop);
    scene.start();
    scene.until(&first, State::Success).await;
    // The authority is known to the attacker, the password is not.
    let authority = scene.host().authority().to_owned();
    scene.secret("nothing", &[("ca.crt", &authority)]);
    let mut thief = source();
    thief.set_at(&["metadata", "name"], "thief");
    thief.set_at(&["spec", "secretRef"], value!({"name": "nothing"}));
    thief.set_at(&["spec", "ref"], value!({"commit": first.as_str()}));
    scene.source(thief);
    scene.pass(130).await;
    let thief = scene.git_source("thief");
    let told = &thief.list_at(&["status", "conditions"])[0];
    assert_eq!(told.str_at(&["reason"]), Some("FetchFailed"), "{told}");
    assert!(thief.at(&["status", "seen"]).is_none(), "{thief}");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn sr4_a_source_that_moves_to_another_host_does_not_take_its_password_along() {
    let mut scene = fetched();
    let first = scene.repository.commit(&[("deploy/a.yaml", &map("a", "x"))]);
    let mut shop = source();
    shop.set_at(&["spec", "secretRef"], value!({"name": "fetch"}));
    scene.source(shop);
    scene.start();
    scene.until(&first, State::Success).await;
    scene.pass(5).await;
    let asked = scene.host().asked().len();
    let moved = value!({"spec": {"url": "https://git.example:8443/team/shop.git"}});
    scene.patch("tidegate.dev", "v1alpha1", "gitsources", "", "shop", moved).unwrap();
    scene.pass(30).await;
    let (_, message) = ready(&scene);
    assert!(
        message.contains("the Secret fetch may be sent to git.example, not to https://git.example:8443"),
        "{message}"
    );
    // Nor is the token to report with shown to whoever the source calls its host now.
    let source = scene.git_source("shop");
    let reported = source.list_at(&["status", "conditions"]).iter().find(|c| c.str_at(&["type"]) == Some("Reported"));
    let reported = reported.unwrap().str_at(&["message"]).unwrap().to_owned();
    assert!(
        reported.contains("the Secret token may be sent to git.example, not to https://git.example:8443"),
        "{reported}"
    );
    assert_eq!(scene.host().asked()[asked..], []);
    assert!(scene.get("", "configmaps", "a").is_some(), "nothing is taken away");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn sr4_a_secret_that_names_no_host_is_not_sent_and_the_message_says_what_to_write() {
    let mut scene = fetched();
    let authority = scene.host().authority().to_owned();
    scene.secret_for("", "fetch", &[("username", "ada"), ("password", "good-token"), ("ca.crt", &authority)]);
    let first = scene.repository.commit(&[("deploy/a.yaml", &map("a", "x"))]);
    let mut shop = source();
    shop.set_at(&["spec", "secretRef"], value!({"name": "fetch"}));
    scene.source(shop);
    scene.start();
    scene.pass(30).await;
    let (reason, message) = ready(&scene);
    assert_eq!(reason, "FetchFailed");
    let command = "kubectl annotate -n default secret/fetch --overwrite tidegate.dev/hosts='https://git.example'";
    assert!(message.ends_with(command), "{message}");
    assert_eq!(scene.host().asked(), []);
    let annotated = value!({"metadata": {"annotations": {"tidegate.dev/hosts": "https://git.example"}}});
    scene.patch("", "v1", "secrets", "", "fetch", annotated).unwrap();
    scene.until(&first, State::Success).await;
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn sr4_neither_a_second_source_nor_a_swap_of_secrets_takes_a_password_to_another_host() {
    let mut scene = fetched();
    let authority = scene.host().authority().to_owned();
    scene.secret_for("git.example:8443", "evil", &[("password", "bait"), ("ca.crt", &authority)]);
    let first = scene.repository.commit(&[("deploy/a.yaml", &map("a", "x"))]);
    let mut shop = source();
    shop.set_at(&["spec", "secretRef"], value!({"name": "fetch"}));
    scene.source(shop.clone());
    scene.start();
    scene.until(&first, State::Success).await;
    scene.pass(5).await;
    let good = |scene: &Scene| {
        let basic = format!("Basic {}", STANDARD.encode("ada:good-token"));
        let asked = scene.host().asked();
        asked
            .iter()
            .filter(|asked| asked.host.ends_with(":8443") && asked.authorization.as_ref() == Some(&basic))
            .count()
    };
    shop.set_at(&["metadata", "name"], "second");
    shop.set_at(&["spec", "url"], "https://git.example:8443/team/shop.git");
    scene.source(shop);
    let patch = |scene: &Scene, name: &str| {
        let url = "https://git.example:8443/team/shop.git";
        let patch = value!({"spec": {"url": url, "secretRef": {"name": name}}});
        scene.patch("tidegate.dev", "v1alpha1", "gitsources", "", "shop", patch).unwrap();
    };
    patch(&scene, "evil");
    scene.pass(70).await;
    patch(&scene, "fetch");
    scene.pass(70).await;
    assert_eq!(good(&scene), 0);
    for name in ["shop", "second"] {
        let source = scene.git_source(name);
        let message = source.list_at(&["status", "conditions"])[0].str_at(&["message"]).unwrap().to_owned();
        assert!(message.contains("the Secret fetch may be sent to git.example, not to"), "{name}: {message}");
    }
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn sr17_the_password_to_fetch_with_is_not_sent_to_another_host_that_is_reported_to() {
    let mut scene = fetched();
    let authority = scene.host().authority().to_owned();
    // Even where the Secret may go there.
    let both = "git.example git.example:8443";
    scene.secret_for(both, "fetch", &[("username", "ada"), ("password", "good-token"), ("ca.crt", &authority)]);
    let first = scene.repository.commit(&[("deploy/a.yaml", &map("a", "x"))]);
    let mut shop = source();
    shop.set_at(&["spec", "secretRef"], value!({"name": "fetch"}));
    shop.set_at(&["spec", "report"], value!({"host": "gitea", "url": "https://git.example:8443/api/v1"}));
    scene.source(shop);
    scene.start();
    scene.until(&first, State::Success).await;
    scene.pass(70).await;
    let shop = scene.git_source("shop");
    let reported = shop.list_at(&["status", "conditions"]).iter().find(|c| c.str_at(&["type"]) == Some("Reported"));
    let message = reported.unwrap().str_at(&["message"]).unwrap();
    assert!(message.contains("name a Secret for it in report.secretRef"), "{message}");
    assert!(scene.host().asked().iter().all(|asked| !asked.path.contains("/api/v1")));
    scene.end().await;
}

/// What a host sends to the door, and the code it gets.
async fn knock(hooks: &Hooks, path: &str, signature: Option<String>, body: &str) -> u16 {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    tokio::spawn(hooks.clone().attend(theirs));
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(ours)).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    let mut request = Request::post(path).header("host", "tidegate.example").header("x-gitea-event", "push");
    request = request.header("x-gitea-delivery", body.len().to_string());
    if let Some(signature) = signature {
        request = request.header("x-gitea-signature", signature);
    }
    let answer = sender.send_request(request.body(Full::new(Bytes::copy_from_slice(body.as_bytes()))).unwrap());
    let answer = answer.await.unwrap();
    let code = answer.status().as_u16();
    answer.into_body().collect().await.unwrap();
    code
}

fn signed(key: &str, body: &str) -> Option<String> {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key.as_bytes());
    let tag = ring::hmac::sign(&key, body.as_bytes());
    Some(tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[tokio::test(start_paused = true)]
async fn sr20_a_signed_webhook_is_acted_upon_at_once_and_any_other_is_not() {
    let mut scene = Scene::hosted();
    let (news, mut heard) = mpsc::channel(16);
    let hooks = Hooks::new(Limits::default(), news);
    scene.hooks = Some(hooks.clone());
    scene.secret("hook", &[("token", "hook-secret")]);
    let first = scene.repository.commit(&[("deploy/a.yaml", &map("a", "x"))]);
    let mut shop = source();
    shop.set_at(&["spec", "webhook"], value!({"secretRef": {"name": "hook"}}));
    shop.set_at(&["spec", "interval"], "1h");
    scene.source(shop);
    scene.start();
    scene.until(&first, State::Success).await;
    let hints = scene.hints();
    tokio::spawn(async move {
        while let Some(news) = heard.recv().await {
            let place = Place::new(&news.source.namespace, &news.source.name);
            hints.send(Hint::Source(place)).await.unwrap();
        }
    });
    let second = scene.repository.commit(&[("deploy/a.yaml", &map("a", "y"))]);
    let body = |commit: &str| {
        format!(
            r#"{{"ref":"refs/heads/main","after":"{commit}","repository":{{"clone_url":"https://git.example/team/shop.git","full_name":"team/shop"}}}}"#
        )
    };
    let path = "/hook/default/shop";
    let text = body(&second);
    assert_eq!(knock(&hooks, path, None, &text).await, 401);
    assert_eq!(knock(&hooks, path, signed("guess", &text), &text).await, 401);
    assert_eq!(knock(&hooks, "/hook/default/other", signed("hook-secret", &text), &text).await, 401);
    scene.pass(120).await;
    assert!(scene.last(&second).is_none(), "nobody proved anything");
    let begun = scene.elapsed();
    assert_eq!(knock(&hooks, path, signed("hook-secret", &text), &text).await, 202);
    scene.until(&second, State::Success).await;
    assert!(scene.elapsed() - begun < 5);
    // The same again is no news, and a word of somebody else's repository is none either.
    assert_eq!(knock(&hooks, path, signed("hook-secret", &text), &text).await, 200);
    scene.end().await;
}
