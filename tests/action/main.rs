//! The Action, run by act as a runner does, with comments on a real git host.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../git/authority.rs"]
mod authority;
#[path = "../forge/gitea.rs"]
#[allow(dead_code)]
mod gitea;
mod install;
mod runner;

use std::time::{Duration, Instant};

use http::Method;
use tidegate::{kubernetes::value::Value, value};

use self::{
    gitea::Gitea,
    runner::{Event, Runner},
};

/// A comment as the host has it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Comment {
    id: i64,
    author: String,
    body: String,
    updated: String,
}

/// A git host with a repository, and a runner with a clone of it.
struct Bed {
    gitea: Gitea,
    runner: Runner,
    /// A token that may do everything.
    all: String,
    /// What a workflow has: it may comment.
    writer: String,
    /// What a workflow of a fork has.
    reader: String,
    /// That of another user.
    mallory: String,
}

impl Bed {
    async fn start() -> Bed {
        let gitea = Gitea::start().await;
        let may_comment = "write:issue,read:repository,read:user";
        let may_read = "read:issue,read:repository,read:user";
        let tokens = gitea.user("ada", &[("all", "all"), ("writer", may_comment), ("reader", may_read)]);
        let [all, writer, reader] = tokens.try_into().unwrap();
        let mallory = gitea.user("mallory", &[("all", "all")]).remove(0);
        let repository = value!({"name": "web", "default_branch": "main"});
        gitea.api(Method::POST, "/user/repos", &all, Some(&repository)).await;
        let runner = Runner::new(gitea.issued.authority.as_str());
        let bed = Bed { gitea, runner, all, writer, reader, mallory };
        bed.git(&["init", "-q", "-b", "main"]);
        bed.runner.write(".github/workflows/plan.yaml", include_str!("../../examples/workflows/plan.yaml"));
        bed.runner.write("deploy/web.yaml", &rollout("1.0"));
        bed.commit("first");
        bed.push("ada", &bed.all, "main");
        bed.filled().await;
        bed
    }

    /// Waits until the host has seen that the repository is not empty any more: before, it knows no pull requests.
    async fn filled(&self) {
        let began = Instant::now();
        loop {
            let repository = self.gitea.api(Method::GET, "/repos/ada/web", &self.all, None).await;
            if repository.at(&["empty"]).and_then(Value::as_bool) == Some(false) {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "the host does not see the push");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.gitea.git(&self.runner.clone, arguments)
    }

    fn commit(&self, message: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn push(&self, owner: &str, token: &str, branch: &str) {
        let url = format!("{}/{owner}/web.git", self.gitea.web());
        let url = url.replace("https://", &format!("https://{owner}:{token}@"));
        self.git(&["push", "-q", "--force", &url, &format!("HEAD:{branch}")]);
    }

    /// Begins a branch at main.
    fn branch(&self, name: &str) {
        self.git(&["checkout", "-q", "-f", "-B", name, "main"]);
        self.git(&["clean", "-q", "-fd"]);
    }

    /// Opens a pull request of what is checked out, by a branch of `owner`'s repository; its number.
    async fn open(&self, owner: &str, branch: &str) -> u64 {
        let token = if owner == "ada" { &self.all } else { &self.mallory };
        self.push(owner, token, branch);
        let head = if owner == "ada" { branch.to_owned() } else { format!("{owner}:{branch}") };
        let body = value!({"title": branch, "head": head.as_str(), "base": "main"});
        let made = self.gitea.api(Method::POST, "/repos/ada/web/pulls", token, Some(&body)).await;
        u64::try_from(made.at(&["number"]).and_then(Value::as_int).unwrap()).unwrap()
    }

    /// The payload that hosts send for a pull request of what is checked out.
    fn pull_request(&self, number: u64, owner: &str) -> Event {
        let (head, base) = (self.git(&["rev-parse", "HEAD"]), self.git(&["rev-parse", "main"]));
        let payload = format!(
            r#"{{"action":"synchronize","number":{number},"repository":{{"full_name":"ada/web"}},"pull_request":{{"number":{number},
               "head":{{"ref":"b","sha":"{head}","repo":{{"full_name":"{owner}/web"}}}},
               "base":{{"ref":"main","sha":"{base}","repo":{{"full_name":"ada/web"}}}}}}}}"#
        );
        Event { name: "pull_request", payload, api: format!("{}/api/v1", self.gitea.web()), token: self.writer.clone() }
    }

    async fn comments(&self, number: u64) -> Vec<Comment> {
        let path = format!("/repos/ada/web/issues/{number}/comments");
        let list = self.gitea.api(Method::GET, &path, &self.all, None).await;
        let text = |comment: &Value, path: &[&str]| comment.str_at(path).unwrap_or_default().to_owned();
        let read = |comment: &Value| Comment {
            id: comment.at(&["id"]).and_then(Value::as_int).unwrap(),
            author: text(comment, &["user", "login"]),
            body: text(comment, &["body"]),
            updated: text(comment, &["updated_at"]),
        };
        list.as_list().unwrap_or_default().iter().map(read).collect()
    }

    /// What the host shows of a Markdown text.
    async fn rendered(&self, text: &str) -> String {
        let body = value!({"Text": text, "Mode": "gfm", "Context": "ada/web"});
        let request = http::Request::post(format!("{}/api/v1/markdown", self.gitea.web()))
            .header("authorization", format!("token {}", self.all))
            .header("content-type", "application/json")
            .body(bytes::Bytes::from(body.to_string()))
            .unwrap();
        let answer = self.gitea.http.send(request).await.unwrap();
        assert!(answer.status().is_success(), "{}", answer.status());
        String::from_utf8(answer.body().to_vec()).unwrap()
    }
}

/// A canary of four pods.
fn rollout(version: &str) -> String {
    include_str!("../../examples/canary.yaml").replace("web:1.0", &format!("web:{version}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn one_comment_follows_a_pull_request() {
    let bed = Bed::start().await;
    bed.branch("next");
    bed.runner.write("deploy/web.yaml", &rollout("2.0"));
    let head = bed.commit("second");
    let number = bed.open("ada", "next").await;

    let first = bed.runner.run(&bed.pull_request(number, "ada"));
    assert!(first.passed, "{}", first.text);
    let [made] = bed.comments(number).await.try_into().unwrap();
    assert_eq!(made.author, "ada");
    assert!(made.body.starts_with("<!-- tidegate-plan "), "{}", made.body);
    let said = |part: &str| assert!(made.body.contains(part), "{part} is missing in {}", made.body);
    said("### Tidegate plan: 0 to create, 1 to change, 0 to delete, 0 unchanged");
    said("`Rollout default/web`: new rollout");
    said(&format!("`{}` → `HEAD ({})`", &bed.git(&["rev-parse", "main"])[..8], &head[..8]));
    said("- image: registry.example/web:1.0\n");
    said(&format!("<sub>Planned at {};", &head[..8]));
    assert!(first.has_line(&format!("comment created on pull request {number}")), "{}", first.text);
    let summary = first.summary();
    assert!(summary.starts_with("### Tidegate plan: 0 to create, 1 to change"), "{summary}");

    // The outputs.
    let line = first.line_with("changes {").unwrap_or_else(|| panic!("no outputs in {}", first.text));
    assert!(line.contains(r#""change":1"#), "{line}");
    let hash = line.split(' ').nth(1).unwrap();
    assert!(hash.len() == 64 && made.body.contains(&hash[..12]), "{line}");

    // For the picture in the docs: tests/action/picture.
    if let Some(file) = std::env::var_os("TIDEGATE_COMMENT") {
        std::fs::write(file, bed.rendered(&made.body).await).unwrap();
    }

    // The same again: nothing is written.
    let again = bed.runner.run(&bed.pull_request(number, "ada"));
    assert!(again.has_line(&format!("comment on pull request {number} is up to date")), "{}", again.text);
    assert_eq!(bed.comments(number).await, std::slice::from_ref(&made));

    // More is pushed, and the host merged it already, as GitHub does: what counts is what the merge changes.
    bed.runner.write("deploy/web.yaml", &rollout("3.0"));
    bed.commit("third");
    let mut event = bed.pull_request(number, "ada");
    bed.git(&["checkout", "-q", "main"]);
    bed.runner.write("deploy/other.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n");
    bed.commit("meanwhile on main");
    bed.git(&["checkout", "-q", "-B", "merged", "main"]);
    bed.git(&["merge", "-q", "--no-ff", "--no-edit", "next"]);
    let second = bed.runner.run(&event);
    assert!(second.has_line(&format!("comment updated on pull request {number}")), "{}", second.text);
    let [updated] = bed.comments(number).await.try_into().unwrap();
    assert_eq!(updated.id, made.id);
    assert!(updated.body.contains("web:3.0") && !updated.body.contains("web:2.0"), "{}", updated.body);
    assert!(!updated.body.contains("other"), "what others merged is not part of it: {}", updated.body);

    // A change that is taken back is said, a pull request that changes nothing is left alone.
    bed.branch("next");
    bed.commit("nothing");
    event = bed.pull_request(number, "ada");
    assert!(bed.runner.run(&event).passed);
    let [none] = bed.comments(number).await.try_into().unwrap();
    assert_eq!(none.id, made.id);
    assert!(none.body.contains("### Tidegate plan: no changes"), "{}", none.body);
    bed.branch("quiet");
    bed.runner.write("README.md", "hello");
    bed.commit("no manifest");
    let quiet = bed.open("ada", "quiet").await;
    let run = bed.runner.run(&bed.pull_request(quiet, "ada"));
    assert!(
        run.passed && run.has_line(&format!("nothing changes; no comment on pull request {quiet}")),
        "{}",
        run.text
    );
    assert_eq!(bed.comments(quiet).await, []);

    // A push has a plan, and nowhere to comment.
    let before = bed.git(&["rev-parse", "main~1"]);
    bed.git(&["checkout", "-q", "-f", "main"]);
    let payload = format!(r#"{{"before":"{before}","ref":"refs/heads/main"}}"#);
    bed.runner.edit(".github/workflows/plan.yaml", "pull_request:\n    paths: [deploy/**]", "push:");
    let push = bed.runner.run(&Event { name: "push", payload, ..event });
    assert!(push.passed && push.summary().contains("1 to create, 0 to change"), "{}", push.text);
    assert!(push.line_with("comment").is_none(), "{}", push.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_right_to_comment_the_summary_has_the_plan() {
    let bed = Bed::start().await;
    // A fork, whose token may only read.
    bed.gitea.api(Method::POST, "/repos/ada/web/forks", &bed.mallory, Some(&value!({}))).await;
    bed.branch("fork");
    bed.runner.write("deploy/web.yaml", &rollout("2.0"));
    bed.commit("from outside");
    let number = bed.open("mallory", "fork").await;
    let event = Event { token: bed.reader.clone(), ..bed.pull_request(number, "mallory") };
    let run = bed.runner.run(&event);
    assert!(run.passed, "{}", run.text);
    assert!(run.summary().starts_with("### Tidegate plan: 0 to create, 1 to change"), "{}", run.summary());
    assert!(run.summary().contains("No comment&#58; ") || run.summary().contains("No comment: "), "{}", run.summary());
    let [notice] = run.commands("notice").try_into().unwrap();
    assert!(notice.contains("may not write comments (403"), "{notice}");
    assert!(notice.contains("workflows of forks have a token that may only read"), "{notice}");
    assert_eq!(bed.comments(number).await, []);

    // A token that may not, in the repository itself.
    let lacking = bed.gitea.admin(&[
        "user",
        "generate-access-token",
        "--username",
        "ada",
        "--token-name",
        "lacking",
        "--scopes",
        "read:repository,read:user",
        "--raw",
    ]);
    let event = |token: &str, api: &str| Event {
        token: token.to_owned(),
        api: api.to_owned(),
        ..bed.pull_request(number, "ada")
    };
    let api = format!("{}/api/v1", bed.gitea.web());
    let run = bed.runner.run(&event(&lacking, &api));
    let [warning] = run.commands("warning").try_into().unwrap();
    assert!(run.passed && warning.contains("pull-requests: write"), "{warning} {}", run.text);
    let wrong = bed.runner.run(&event("wrong-token", &api));
    let [warning] = wrong.commands("warning").try_into().unwrap();
    assert!(wrong.passed && warning.contains("does not accept the token (401"), "{warning}");

    // Nobody answers.
    let down = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let down = format!("https://{down}/api/v1");
    let run = bed.runner.run(&event(&bed.writer, &down));
    let [warning] = run.commands("warning").try_into().unwrap();
    assert!(run.passed && warning.contains("cannot be reached"), "{warning} {}", run.text);
    assert!(run.summary().starts_with("### Tidegate plan: 0 to create, 1 to change"), "{}", run.summary());
    for run in [&run, &wrong] {
        assert!(!run.text.contains(&bed.writer) && !run.text.contains("wrong-token"), "a token is in the log");
    }

    // Unless there must be one.
    bed.runner.edit(".github/workflows/plan.yaml", "path: deploy\n", "path: deploy\n          comment: always\n");
    let run = bed.runner.run(&event(&bed.writer, &down));
    assert!(
        !run.passed && run.commands("error").iter().any(|error| error.contains("cannot be reached")),
        "{}",
        run.text
    );
    assert_eq!(bed.comments(number).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_cannot_speak_for_the_workflow_or_the_reviewer() {
    let bed = Bed::start().await;
    bed.branch("evil");
    // Every way out that is known to us, as values, as a name that lint quotes, and as the name of a file.
    let ways = [
        "::error::pwned",
        "::set-output name=plan-hash::pwned",
        "::add-mask::e",
        "::stop-commands::pwned",
        "##[error]pwned",
        "```",
        "````\\n# pwned",
        "</details></code></pre><script>pwned()</script>",
        "<!-- tidegate-plan --> --> pwned",
        "@mallory",
        "![x](https://pwned.example/x.png)",
        "https://pwned.example/",
    ];
    let data: String = ways.iter().enumerate().map(|(at, way)| format!("  k{at}: \"{way}\"\n")).collect();
    let block =
        "  text: |\n    ::error::pwned\n    ##[error]pwned\n    ```\n    </details>\n    <script>pwned()</script>\n";
    bed.runner.write(
        "deploy/evil.yaml",
        &format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: evil}}\ndata:\n{data}{block}"),
    );
    let step = "        - setWeight: \"::error::pwned\"\n        - pause: {duration: \"1m\\n::error::pwned\"}\n";
    bed.runner.write("deploy/web.yaml", &(rollout("`@mallory`") + step));
    bed.runner.write(
        "deploy/a,line=1::error::pwned\n::error::pwned.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"<b>\\n::error::pwned\"}\n",
    );
    bed.commit("evil\n\n::error::pwned");
    let number = bed.open("ada", "evil").await;
    // Somebody knows the marker and was here first.
    let marked = value!({"body": tidegate::forge::comment::marker(&["", "deploy"]).as_str()});
    let path = format!("/repos/ada/web/issues/{number}/comments");
    bed.gitea.api(Method::POST, &path, &bed.mallory, Some(&marked)).await;
    let run = bed.runner.run(&bed.pull_request(number, "ada"));
    assert!(!run.passed, "a change that cannot be applied fails: {}", run.text);
    // The runner took no command that a manifest wrote: each it took begins as ours do.
    let taken: Vec<String> = run.taken();
    assert!(taken.iter().any(|command| command.starts_with("::error file=deploy/")), "{taken:#?}");
    for command in &taken {
        let pwned =
            command.starts_with("::error::pwned") || command.contains("name=plan-hash") || command.contains("add-mask");
        assert!(!pwned, "{command}");
    }
    assert!(!taken.iter().any(|command| command.starts_with("##[")), "{taken:#?}");
    // GitHub's runner looks for commands behind blanks, too, and for `##[` anywhere: so text of a manifest is only printed while
    // no command is taken.
    let (guarded, open) = run.printed();
    assert!(guarded.iter().any(|line| line.contains("::error::pwned")), "{guarded:#?}");
    assert!(!open.iter().any(|line| line.contains("pwned")), "{open:#?}");

    let comments = bed.comments(number).await;
    let [theirs, ours] = comments.try_into().unwrap();
    assert_eq!((theirs.author.as_str(), ours.author.as_str()), ("mallory", "ada"));
    for text in [ours.body.as_str(), run.summary()] {
        let shown = bed.rendered(text).await;
        for sign in ["<script", "pwned()</", "<img", "class=\"mention\"", "href=\"/mallory\"", "href=\"https://pwned"] {
            assert!(!shown.contains(sign), "{sign} in {shown}");
        }
        assert_eq!(shown.matches("<details").count(), shown.matches("</details>").count(), "{shown}");
        assert!(!shown.contains("<h1"), "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oversized_plan_is_folded_and_a_broken_one_is_annotated() {
    let bed = Bed::start().await;
    bed.branch("large");
    for at in 0..400 {
        let lines: String = (0..40).map(|line| format!("  key-{line}: \"{}\"\n", "long value ".repeat(4))).collect();
        let text = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: map-{at}}}\ndata:\n{lines}");
        bed.runner.write(&format!("deploy/map-{at}.yaml"), &text);
    }
    bed.runner.write("deploy/web.yaml", &rollout("2.0"));
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData:\n  password: canary-secret\n";
    bed.runner.write("deploy/db.yaml", secret);
    bed.commit("large");
    let number = bed.open("ada", "large").await;
    let run = bed.runner.run(&bed.pull_request(number, "ada"));
    assert!(run.passed, "{}", run.text);
    let [made] = bed.comments(number).await.try_into().unwrap();
    assert!(made.body.chars().count() < 65_536, "{}", made.body.len());
    assert!(made.body.contains("### Tidegate plan: 401 to create, 1 to change") && made.body.contains("Rollout"));
    assert!(run.summary().len() > 100_000 && run.summary().len() < 1 << 20, "{}", run.summary().len());

    assert!(!made.body.contains("canary-secret") && !run.text.contains("canary-secret"), "a Secret is shown");

    // The same pull request, now with manifests that cannot be read.
    bed.branch("large");
    bed.runner.write("deploy/db.yaml", &(secret.to_owned() + "  password: canary-secret\n"));
    bed.runner.write("deploy/web.yaml", &rollout("2.0").replace("kind: Rollout", "kind: [Rollout"));
    bed.commit("broken");
    let run = bed.runner.run(&bed.pull_request(number, "ada"));
    assert!(!run.passed, "{}", run.text);
    let errors = run.commands("error");
    assert!(errors.iter().any(|error| error.starts_with("::error file=deploy/web.yaml,line=")), "{errors:?}");
    let [broken] = bed.comments(number).await.try_into().unwrap();
    assert_eq!(broken.id, made.id);
    assert!(broken.body.contains("Nothing would be applied"), "{}", broken.body);
    assert!(!broken.body.contains("canary-secret") && !run.text.contains("canary-secret"), "a Secret is shown");

    // And one that asks for a revision that is not there: the comment does not stay as it was.
    bed.runner.edit(".github/workflows/plan.yaml", "path: deploy\n", "path: deploy\n          from: nowhere\n");
    let run = bed.runner.run(&bed.pull_request(number, "ada"));
    assert!(
        !run.passed && run.commands("error")[0].contains("nowhere is no revision of this repository"),
        "{}",
        run.text
    );
    let [failed] = bed.comments(number).await.try_into().unwrap();
    assert_eq!(failed.id, made.id);
    assert!(failed.body.contains("cannot be planned"), "{}", failed.body);
}

#[test]
fn the_gate_opens_when_the_commit_is_rolled_out() {
    let runner = Runner::new("");
    runner.write(".github/workflows/gate.yaml", include_str!("../../examples/workflows/gate.yaml"));
    runner.init();
    let event = |context: &str, state: &str| Event {
        name: "status",
        payload: format!(
            r#"{{"sha":"{}","context":"{context}","state":"{state}","description":"$(touch pwned)"}}"#,
            "a".repeat(40)
        ),
        api: "https://127.0.0.1:9/api/v1".to_owned(),
        token: "unused".to_owned(),
    };
    let opened = |context: &str, state: &str| {
        let run = runner.run(&event(context, state));
        assert!(run.passed, "{}", run.text);
        run.has_line(&format!("{} is rolled out", "a".repeat(40)))
    };
    assert!(opened("tidegate/shop/web", "success"));
    assert!(!opened("tidegate/shop/web", "pending"));
    assert!(!opened("tidegate/shop/web", "failure"));
    assert!(!opened("tidegate/shop/api", "success"));
}
