use super::*;

const SECRET: &str = "It's a Secret to Everybody";
const BODY: &[u8] = b"Hello, World!";
/// The test vector that GitHub publishes.
const DIGEST: &str = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap())).collect()
}

fn now() -> Timestamp {
    Timestamp::from_second(1_700_000_000).unwrap()
}

fn judge(pairs: &[(&'static str, &str)], body: &[u8], secret: &str) -> Result<Sender, Refusal> {
    verify(&headers(pairs), body, &Secret::new(secret), &mut Heard::default(), now())
}

fn standard_signature(id: &str, time: i64, body: &str, key: &[u8]) -> String {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), format!("{id}.{time}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(tag))
}

#[test]
fn each_scheme_is_checked_over_the_raw_bytes() {
    #[track_caller]
    fn check(pairs: &[(&'static str, &str)], expected: Sender) {
        assert_eq!(judge(pairs, BODY, SECRET), Ok(expected));
        assert!(judge(pairs, BODY, "another").is_err(), "another secret");
        assert_eq!(judge(pairs, BODY, ""), Err(Refusal::Unsigned), "no secret, no proof");
        let by_body =
            !matches!(expected, Sender::AzureDevOps) && !pairs.iter().any(|(name, _)| *name == "x-gitlab-token");
        assert_eq!(judge(pairs, b"Hello, World?", SECRET).is_err(), by_body, "another body");
    }
    let prefixed = format!("sha256={DIGEST}");
    check(&[("x-github-event", "push"), ("x-hub-signature-256", &prefixed)], Sender::GitHub);
    check(&[("x-gitea-event", "push"), ("x-gitea-signature", DIGEST)], Sender::Gitea);
    check(&[("x-forgejo-event", "push"), ("x-forgejo-signature", DIGEST)], Sender::Gitea);
    check(&[("x-event-key", "repo:push"), ("x-hub-signature", &prefixed)], Sender::Bitbucket);
    check(&[("x-gitlab-event", "Push Hook"), ("x-gitlab-token", SECRET)], Sender::GitLab);
    check(&[("x-signature", &prefixed)], Sender::Generic);
    let basic = format!("Basic {}", STANDARD.encode(format!("anybody:{SECRET}")));
    check(&[("authorization", &basic)], Sender::AzureDevOps);
    let time = now().as_second();
    let signature = standard_signature("m1", time, "Hello, World!", SECRET.as_bytes());
    let several = format!("v1,AAAA v2,xx {signature}");
    let time = time.to_string();
    check(&[("webhook-id", "m1"), ("webhook-timestamp", &time), ("webhook-signature", &several)], Sender::GitLab);
}

#[test]
fn what_is_not_proven_is_refused() {
    #[track_caller]
    fn check(pairs: &[(&'static str, &str)], expected: Refusal) {
        assert_eq!(judge(pairs, BODY, SECRET), Err(expected), "{pairs:?}");
    }
    let prefixed = format!("sha256={DIGEST}");
    check(&[], Refusal::Unsigned);
    check(&[("x-github-event", "push")], Refusal::Unsigned);
    check(&[("x-github-event", "push"), ("x-hub-signature-256", DIGEST)], Refusal::Wrong);
    check(&[("x-github-event", "push"), ("x-hub-signature-256", "sha256=")], Refusal::Wrong);
    check(&[("x-github-event", "push"), ("x-hub-signature-256", &prefixed[..69])], Refusal::Wrong);
    // The old digest is not enough.
    check(
        &[("x-github-event", "push"), ("x-hub-signature", "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59")],
        Refusal::Unsigned,
    );
    check(&[("x-signature", "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59")], Refusal::Wrong);
    check(&[("x-gitea-event", "push"), ("x-gitea-signature", "")], Refusal::Wrong);
    check(
        &[("x-gitea-event", "push"), ("x-github-event", "push"), ("x-hub-signature-256", &prefixed)],
        Refusal::Unsigned,
    );
    let both = [("x-forgejo-event", "push"), ("x-forgejo-signature", "00"), ("x-gitea-signature", DIGEST)];
    check(&both, Refusal::Wrong);
    check(&[("x-gitlab-event", "Push Hook")], Refusal::Unsigned);
    check(&[("x-gitlab-event", "Push Hook"), ("x-gitlab-token", "It's a Secret")], Refusal::Wrong);
    check(&[("x-event-key", "repo:push"), ("x-hook-uuid", "x")], Refusal::Unsigned);
    check(&[("authorization", "Bearer x")], Refusal::Unsigned);
    check(&[("authorization", "Basic !")], Refusal::Wrong);
}

#[test]
fn a_signed_time_must_be_near() {
    #[track_caller]
    fn check(off: i64, expected: Result<Sender, Refusal>) {
        let time = now().as_second() + off;
        let key = STANDARD.encode(b"key");
        let signature = standard_signature("m1", time, "Hello, World!", b"key");
        let time = time.to_string();
        let pairs = [("webhook-id", "m1"), ("webhook-timestamp", time.as_str()), ("webhook-signature", &signature)];
        assert_eq!(judge(&pairs, BODY, &format!("whsec_{key}")), expected);
    }
    check(0, Ok(Sender::GitLab));
    check(-300, Ok(Sender::GitLab));
    check(-301, Err(Refusal::Stale));
    check(301, Err(Refusal::Stale));
}

#[test]
fn a_message_is_heard_once() {
    let mut heard = Heard::default();
    let prefixed = format!("sha256={DIGEST}");
    let mut hear = |delivery: &str, seconds: i64| {
        let pairs =
            [("x-github-event", "push"), ("x-hub-signature-256", prefixed.as_str()), ("x-github-delivery", delivery)];
        let now = now() + SignedDuration::from_secs(seconds);
        verify(&headers(&pairs), BODY, &Secret::new(SECRET), &mut heard, now)
    };
    assert_eq!(hear("1", 0), Ok(Sender::GitHub));
    assert_eq!(hear("1", 1), Err(Refusal::Repeated));
    assert_eq!(hear("2", 2), Err(Refusal::Repeated), "the delivery's name is not proven");
    assert_eq!(hear("1", 700), Ok(Sender::GitHub), "a person may send it again");
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut heard = Heard::default();
    for number in 0..10_000_u32 {
        assert!(heard.first(&[&number.to_be_bytes()], now()));
    }
    assert_eq!(heard.0.len(), MOST);
}

#[test]
fn a_push_is_a_hint() {
    #[track_caller]
    fn check(sender: Sender, pairs: &[(&'static str, &str)], body: &str, remote: &str, reference: Option<&str>) {
        let hint = hint(sender, &headers(pairs), body.as_bytes()).unwrap().unwrap();
        assert!(hint.concerns(&Remote::parse(remote).unwrap()), "{hint:?}");
        assert!(!hint.concerns(&Remote::parse("https://host/team/other").unwrap()), "{hint:?}");
        assert_eq!(hint.references.first().map(String::as_str), reference);
    }
    let github = r#"{"ref":"refs/heads/main","repository":{"id":1,"clone_url":"https://github.com/Team/web.git","ssh_url":"git@github.com:Team/web.git"},"commits":[]}"#;
    let push = [("x-github-event", "push"), ("content-type", "application/json")];
    check(Sender::GitHub, &push, github, "https://github.com/team/web", Some("refs/heads/main"));
    check(Sender::GitHub, &push, github, "ssh://git@github.com/team/web.git", Some("refs/heads/main"));
    let form = format!("x=1&payload={}", form_urlencoded::byte_serialize(github.as_bytes()).collect::<String>());
    let encoded = [("x-github-event", "push"), ("content-type", "application/x-www-form-urlencoded")];
    check(Sender::GitHub, &encoded, &form, "https://github.com/team/web", Some("refs/heads/main"));
    check(Sender::Gitea, &[("x-gitea-event", "push")], github, "https://github.com/team/web", Some("refs/heads/main"));
    let gitlab = r#"{"object_kind":"push","ref":"refs/heads/main","project":{"git_http_url":"https://gitlab.com/a/b/c.git","git_ssh_url":"git@gitlab.com:a/b/c.git"}}"#;
    check(
        Sender::GitLab,
        &[("x-gitlab-event", "Push Hook")],
        gitlab,
        "https://gitlab.com/a/b/c",
        Some("refs/heads/main"),
    );
    let cloud = r#"{"push":{"changes":[{"new":{"name":"main","type":"branch"}}]},"repository":{"links":{"html":{"href":"https://bitbucket.org/team/web"}}}}"#;
    check(Sender::Bitbucket, &[("x-event-key", "repo:push")], cloud, "ssh://git@bitbucket.org/team/web.git", None);
    let center = r#"{"repository":{"slug":"api","links":{"clone":[{"href":"ssh://git@bitbucket.corp:7999/web/api.git","name":"ssh"},{"href":"https://bitbucket.corp/scm/web/api.git","name":"http"}]}},"changes":[{"ref":{"id":"refs/heads/main"}}]}"#;
    let changed = [("x-event-key", "repo:refs_changed")];
    check(Sender::Bitbucket, &changed, center, "https://bitbucket.corp/scm/WEB/api.git", Some("refs/heads/main"));
    let azure = r#"{"eventType":"git.push","resource":{"refUpdates":[{"name":"refs/heads/main"}],"repository":{"remoteUrl":"https://org@dev.azure.com/org/web/_git/api"}}}"#;
    check(Sender::AzureDevOps, &[], azure, "https://dev.azure.com/org/web/_git/api", Some("refs/heads/main"));
    let generic = r#"{"url":"https://host/team/web","ref":"refs/heads/main"}"#;
    check(Sender::Generic, &[], generic, "https://host/team/web", Some("refs/heads/main"));
}

#[test]
fn other_events_are_passed_by_and_nonsense_is_named() {
    let quiet = [
        (Sender::GitHub, [("x-github-event", "ping")], "{}"),
        (Sender::GitLab, [("x-gitlab-event", "Issue Hook")], "{}"),
        (Sender::Bitbucket, [("x-event-key", "diagnostics:ping")], "{}"),
        (Sender::AzureDevOps, [("x", "y")], r#"{"eventType":"workitem.created"}"#),
    ];
    for (sender, pairs, body) in quiet {
        assert_eq!(hint(sender, &headers(&pairs), body.as_bytes()), Ok(None), "{sender:?}");
    }
    let anything = hint(Sender::Generic, &headers(&[]), b"not json").unwrap().unwrap();
    assert!(anything.concerns(&Remote::parse("https://host/a").unwrap()), "about the source it was sent for");
    let push = headers(&[("x-github-event", "push")]);
    for body in ["", "[]", "{\"repository\":1}", "{\"ref\":{}}"] {
        let error = hint(Sender::GitHub, &push, body.as_bytes()).unwrap_err();
        assert!(error.starts_with("the payload cannot be read at line"), "{error}");
    }
}

proptest::proptest! {
    /// SR20: whatever is sent, the answer is an answer, and nothing that is not proven is heard.
    #[test]
    fn no_message_breaks_the_door(body in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200), value in "[ -~]{0,80}") {
        let names = ["x-forgejo-signature", "x-gitea-signature", "webhook-signature", "x-gitlab-token", "x-hub-signature", "x-hub-signature-256", "x-signature", "authorization"];
        for name in names {
            let pairs = [(name, value.as_str()), ("x-gitlab-event", "x"), ("webhook-id", "1"), ("webhook-timestamp", "1")];
            proptest::prop_assert!(judge(&pairs, &body, SECRET).is_err());
        }
        for sender in [Sender::GitHub, Sender::GitLab, Sender::Gitea, Sender::Bitbucket, Sender::AzureDevOps, Sender::Generic] {
            let event = headers(&[("x-github-event", "push"), ("x-gitea-event", "push"), ("x-gitlab-event", "Push Hook"), ("x-event-key", "repo:push")]);
            drop(hint(sender, &event, &body));
        }
    }
}
