//! One comment on a pull request that is kept up to date: found by a hidden marker, created once, then updated.
//!
//! A conversation of requests and answers, without I/O: [`Sticky::first`] and [`Sticky::answered`] name the next request until
//! the comment is as wanted. Never updates a comment that somebody else wrote, whatever marker it carries: its author could
//! change what reviewers read afterwards.

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use serde::{Deserialize, Serialize};

use super::{Credential, Place, outcome::said, place::json};
use crate::model::{git_source::Host, remote::Remote};

/// The most characters that GitHub takes as a comment; the other hosts take more.
pub const LONGEST: usize = 65_536;

/// So many comments are asked for at once.
const PAGE: usize = 100;
/// So many pages of comments are looked through.
const PAGES: usize = 50;

/// The hosts on which comments are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommentHost {
    /// GitHub and GitHub Enterprise Server.
    GitHub,
    /// Gitea and Forgejo.
    Gitea,
    /// GitLab, where pull requests are merge requests.
    GitLab,
}

impl CommentHost {
    /// The host of a workflow, by the address of its API.
    pub fn of_workflow(api: &str) -> CommentHost {
        if api.trim_end_matches('/').ends_with("/api/v1") { CommentHost::Gitea } else { CommentHost::GitHub }
    }
}

/// A pull request, or a merge request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    /// Which host.
    pub host: CommentHost,
    /// Where its API is, without a slash at its end.
    pub api: String,
    /// The repository's path there, in parts that need no escaping; GitLab takes the project's number, too.
    path: Vec<String>,
    /// The number of the pull request.
    pub number: u64,
}

impl PullRequest {
    /// A pull request of `owner/name`.
    pub fn of(host: CommentHost, api: &str, repository: &str, number: u64) -> Result<PullRequest, String> {
        let path: Vec<String> = repository.split('/').map(str::to_owned).collect();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let is_part = |part: &String| !part.trim_matches('.').is_empty() && part.chars().all(is_plain);
        let enough = match host {
            CommentHost::GitHub | CommentHost::Gitea => path.len() == 2,
            CommentHost::GitLab => true,
        };
        if enough && path.iter().all(is_part) {
            Ok(PullRequest { host, api: api.trim_end_matches('/').to_owned(), path, number })
        } else {
            Err(format!("{repository:?} is not how this kind of host names a repository"))
        }
    }

    /// Reads the address of a pull request's page: `https://host/owner/name/pull/7` (GitHub), `…/pulls/7` (Gitea),
    /// `https://host/group/name/-/merge_requests/7` (GitLab).
    pub fn parse(host: CommentHost, page: &str) -> Result<PullRequest, String> {
        let (separator, kind) = match host {
            CommentHost::GitHub => ("/pull/", Host::GitHub),
            CommentHost::Gitea => ("/pulls/", Host::Gitea),
            CommentHost::GitLab => ("/-/merge_requests/", Host::GitLab),
        };
        let wrong = || {
            format!(
                "{:?} is not the address of a pull request, https://HOST/OWNER/NAME{separator}NUMBER",
                nameless(page)
            )
        };
        let (repository, number) = page.trim_end_matches('/').rsplit_once(separator).ok_or_else(wrong)?;
        let number = number.parse().map_err(|_| wrong())?;
        let remote = Remote::parse(repository).map_err(|_| wrong())?;
        let place = Place::of(kind, &remote, None)?.ok_or_else(wrong)?;
        PullRequest::of(host, &place.api, &place.path.join("/"), number)
    }

    /// Where it is in the API.
    fn repository(&self) -> String {
        match self.host {
            CommentHost::GitHub | CommentHost::Gitea => format!("{}/repos/{}", self.api, self.path.join("/")),
            CommentHost::GitLab => format!("{}/projects/{}", self.api, self.path.join("%2F")),
        }
    }

    /// Where its comments are listed and created.
    fn comments(&self) -> String {
        match self.host {
            CommentHost::GitHub | CommentHost::Gitea => {
                format!("{}/issues/{}/comments", self.repository(), self.number)
            }
            CommentHost::GitLab => format!("{}/merge_requests/{}/notes", self.repository(), self.number),
        }
    }

    /// How one of its comments is changed.
    fn update(&self, id: u64) -> (Method, String) {
        match self.host {
            CommentHost::GitHub | CommentHost::Gitea => {
                (Method::PATCH, format!("{}/issues/comments/{id}", self.repository()))
            }
            CommentHost::GitLab => (Method::PUT, format!("{}/{id}", self.comments())),
        }
    }

    /// The comments of a page, the oldest first.
    fn page(&self, number: usize) -> String {
        let comments = self.comments();
        match self.host {
            CommentHost::GitHub => format!("{comments}?per_page={PAGE}&page={number}"),
            // All of them at once: it has no pages.
            CommentHost::Gitea => comments,
            CommentHost::GitLab => format!("{comments}?sort=asc&order_by=created_at&per_page={PAGE}&page={number}"),
        }
    }

    /// The header that carries a token.
    fn proof(&self, credential: &Credential) -> (&'static str, String) {
        match self.host {
            CommentHost::GitHub => ("authorization", credential.bearer()),
            CommentHost::Gitea => ("authorization", format!("token {}", credential.token.expose())),
            CommentHost::GitLab => ("private-token", credential.token.expose().to_owned()),
        }
    }
}

/// The hidden first line by which a comment is found again. `parts` say what the comment is about, so that two sources have two
/// comments; they are not shown.
pub fn marker(parts: &[&str]) -> String {
    format!("<!-- tidegate-plan {} -->", digest(parts))
}

/// A name for what a comment is about: 32 hexadecimal digits.
pub fn digest(parts: &[&str]) -> String {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    for part in parts {
        // With its length, so that ("a", "bc") and ("ab", "c") differ.
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part.as_bytes());
    }
    context.finish().as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// A comment as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// See [`marker`].
    pub marker: String,
    /// Markdown, without the marker.
    pub text: String,
    /// Whether it is worth a new comment, or only the update of an earlier one.
    pub if_missing: IfMissing,
}

/// What to do if there is no comment yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IfMissing {
    Create,
    Skip,
}

/// What became of the comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Posted {
    Created,
    Updated,
    Unchanged,
    Skipped,
}

/// Why there is no comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotPosted {
    /// The token does not suffice, as that of a pull request from a fork.
    Forbidden(String),
    /// The host cannot be reached, or answers with an error.
    Failed(String),
}

impl NotPosted {
    /// The reason.
    pub fn reason(&self) -> &str {
        match self {
            NotPosted::Forbidden(reason) | NotPosted::Failed(reason) => reason,
        }
    }
}

/// What comes next.
#[derive(Debug)]
pub enum NextRequest {
    /// Send this, and hand in its answer.
    Send(Box<Request<Bytes>>),
    /// Nothing more.
    End(Posted),
}

/// The conversation.
#[derive(Debug)]
pub struct Sticky<'a> {
    on: &'a PullRequest,
    credential: &'a Credential,
    comment: &'a Comment,
    waits_for: WaitsFor,
}

#[derive(Debug)]
enum WaitsFor {
    User,
    Page { number: usize, author: Author },
    Write(Posted),
}

/// Whom the token belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Author {
    Login(String),
    /// The token of an App, such as that of a workflow on GitHub, which cannot ask for its own name.
    App,
}

/// GitHub says `login`, GitLab `username`, Gitea both.
#[derive(Debug, Deserialize)]
struct User {
    login: Option<String>,
    username: Option<String>,
    #[serde(rename = "type", default)]
    kind: String,
}

impl User {
    fn name(self) -> Option<String> {
        self.login.or(self.username).filter(|name| !name.is_empty())
    }
}

#[derive(Debug, Deserialize)]
struct Existing {
    id: u64,
    #[serde(default)]
    body: Option<String>,
    /// GitHub, Gitea
    user: Option<User>,
    /// GitLab
    author: Option<User>,
}

#[derive(Serialize)]
struct Body {
    body: String,
}

impl<'a> Sticky<'a> {
    /// Begins: whose token is it?
    pub fn first(
        on: &'a PullRequest,
        credential: &'a Credential,
        comment: &'a Comment,
    ) -> Result<(Sticky<'a>, Request<Bytes>), NotPosted> {
        let request = read(on, credential, format!("{}/user", on.api))?;
        Ok((Sticky { on, credential, comment, waits_for: WaitsFor::User }, request))
    }

    /// Goes on with the answer to the last request.
    pub fn answered(&mut self, answer: &Response<Bytes>) -> Result<NextRequest, NotPosted> {
        match &self.waits_for {
            WaitsFor::User => {
                let author = author(self.on.host, answer)?;
                self.ask_page(1, author)
            }
            WaitsFor::Page { number, author } => {
                accepted(answer, "read the comments")?;
                let found: Vec<Existing> = serde_json::from_slice(answer.body())
                    .map_err(|_| NotPosted::Failed("the host's list of comments cannot be read".to_owned()))?;
                let (number, author) = (*number, author.clone());
                match found.iter().find(|existing| self.is_ours(existing, &author)) {
                    Some(existing) => self.update(existing),
                    None if found.len() < PAGE || self.on.host == CommentHost::Gitea => self.create(),
                    None if number < PAGES => self.ask_page(number + 1, author),
                    None => {
                        let most = PAGE * PAGES;
                        Err(NotPosted::Failed(format!("the pull request has more than {most} comments")))
                    }
                }
            }
            WaitsFor::Write(posted) => {
                accepted(answer, "write comments")?;
                Ok(NextRequest::End(*posted))
            }
        }
    }

    fn is_ours(&self, existing: &Existing, author: &Author) -> bool {
        let marked = existing.body.as_deref().is_some_and(|body| body.starts_with(&self.comment.marker));
        let user = existing.user.as_ref().or(existing.author.as_ref());
        let written_by_us = user.is_some_and(|user| match author {
            Author::Login(login) => user.login.as_ref().or(user.username.as_ref()) == Some(login),
            // Apps are installed by those who own the repository; anybody else writes as a user.
            Author::App => user.kind == "Bot",
        });
        marked && written_by_us
    }

    fn ask_page(&mut self, number: usize, author: Author) -> Result<NextRequest, NotPosted> {
        let request = read(self.on, self.credential, self.on.page(number))?;
        self.waits_for = WaitsFor::Page { number, author };
        Ok(NextRequest::Send(Box::new(request)))
    }

    fn body(&self) -> String {
        let Comment { marker, text, .. } = self.comment;
        format!("{marker}\n{text}")
    }

    fn create(&mut self) -> Result<NextRequest, NotPosted> {
        match self.comment.if_missing {
            IfMissing::Skip => Ok(NextRequest::End(Posted::Skipped)),
            IfMissing::Create => self.write(Method::POST, self.on.comments(), Posted::Created),
        }
    }

    fn update(&mut self, existing: &Existing) -> Result<NextRequest, NotPosted> {
        let body = self.body();
        // Hosts may end lines in their own way, and take blanks from the end.
        let plain = |text: &str| text.replace("\r\n", "\n").trim_end().to_owned();
        if existing.body.as_deref().map(plain) == Some(plain(&body)) {
            return Ok(NextRequest::End(Posted::Unchanged));
        }
        let (method, url) = self.on.update(existing.id);
        self.write(method, url, Posted::Updated)
    }

    fn write(&mut self, method: Method, url: String, posted: Posted) -> Result<NextRequest, NotPosted> {
        let body = Body { body: self.body() };
        let request = json(method, url, self.on.proof(self.credential), &body).map_err(NotPosted::Failed)?;
        self.waits_for = WaitsFor::Write(posted);
        Ok(NextRequest::Send(Box::new(request)))
    }
}

/// A request that reads.
fn read(on: &PullRequest, credential: &Credential, url: String) -> Result<Request<Bytes>, NotPosted> {
    let (name, secret) = on.proof(credential);
    let mut secret = HeaderValue::try_from(secret)
        .map_err(|_| NotPosted::Failed("the token has characters that cannot be sent".to_owned()))?;
    secret.set_sensitive(true);
    let request = Request::get(url).header(name, secret).header(header::ACCEPT, "application/json");
    request.body(Bytes::new()).map_err(|error| NotPosted::Failed(error.to_string()))
}

/// Whose token it is.
fn author(host: CommentHost, answer: &Response<Bytes>) -> Result<Author, NotPosted> {
    match (answer.status(), host) {
        (StatusCode::OK, _) => serde_json::from_slice::<User>(answer.body())
            .ok()
            .and_then(User::name)
            .map(Author::Login)
            .ok_or_else(|| NotPosted::Failed("the host does not say whose token it is".to_owned())),
        (StatusCode::FORBIDDEN | StatusCode::NOT_FOUND, CommentHost::GitHub) => Ok(Author::App),
        (StatusCode::FORBIDDEN, CommentHost::Gitea) => {
            let why = format!("the token may not say whose it is (403{}); give it the scope read:user", said(answer));
            Err(NotPosted::Forbidden(why))
        }
        _ => accepted(answer, "say whose it is")
            .and_then(|()| Err(NotPosted::Failed(format!("the host answers {}", answer.status())))),
    }
}

/// What an answer that is no success means.
fn accepted(answer: &Response<Bytes>, what: &str) -> Result<(), NotPosted> {
    match answer.status() {
        StatusCode::OK | StatusCode::CREATED => Ok(()),
        StatusCode::UNAUTHORIZED => {
            Err(NotPosted::Forbidden(format!("the host does not accept the token (401{})", said(answer))))
        }
        StatusCode::FORBIDDEN => Err(NotPosted::Forbidden(format!("the token may not {what} (403{})", said(answer)))),
        StatusCode::NOT_FOUND => Err(NotPosted::Forbidden(format!(
            "the host does not know the pull request, or does not show it to the token (404{})",
            said(answer)
        ))),
        status if status.is_redirection() => {
            Err(NotPosted::Failed(format!("the host answers {status}: its API is somewhere else")))
        }
        status => Err(NotPosted::Failed(format!("the host answers {status}{}", said(answer)))),
    }
}

/// An address without what may stand before its host: a user and a password.
fn nameless(page: &str) -> String {
    match (page.split_once("://"), page.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
        (None, Some((_, rest))) => rest.to_owned(),
        (_, None) => page.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::secret::Secret;

    const GITHUB: (CommentHost, &str) = (CommentHost::GitHub, "https://api.github.com");
    const GITEA: (CommentHost, &str) = (CommentHost::Gitea, "https://git.corp/api/v1/");
    const GITLAB: (CommentHost, &str) = (CommentHost::GitLab, "https://gitlab.com/api/v4");

    /// Plays answers (code, body) to a conversation about the text `new`; the requests as lines, and how it ended.
    fn play(
        (host, api): (CommentHost, &str),
        if_missing: IfMissing,
        answers: &[(u16, String)],
    ) -> (Vec<String>, Result<Posted, NotPosted>) {
        let on = PullRequest::of(host, api, "team/web", 7).unwrap();
        let credential = Credential { username: None, token: Secret::new("canary-secret") };
        let comment = Comment { marker: marker(&["web"]), text: "new".to_owned(), if_missing };
        let (mut sticky, mut request) = Sticky::first(&on, &credential, &comment).unwrap();
        let mut lines = Vec::new();
        for (code, body) in answers {
            assert!(!format!("{request:?}").contains("canary"), "the token must not show");
            let sent = request.headers().get("authorization").or(request.headers().get("private-token"));
            assert!(sent.unwrap().to_str().unwrap().ends_with("canary-secret"));
            let text = std::str::from_utf8(request.body()).unwrap();
            let address = request.uri().to_string().replace(api.trim_end_matches('/'), "");
            lines.push(format!("{} {address} {text}", request.method()).trim_end().to_owned());
            let answer = Response::builder().status(*code).body(Bytes::from(body.clone())).unwrap();
            match sticky.answered(&answer) {
                Ok(NextRequest::Send(next)) => request = *next,
                Ok(NextRequest::End(posted)) => return (lines, Ok(posted)),
                Err(reason) => return (lines, Err(reason)),
            }
        }
        panic!("one more answer is wanted, to {} {}", request.method(), request.uri());
    }

    fn me(login: &str) -> (u16, String) {
        (200, format!(r#"{{"id":3,"login":"{login}","username":"{login}"}}"#))
    }

    fn app() -> (u16, String) {
        (403, r#"{"message":"Resource not accessible by integration"}"#.to_owned())
    }

    fn comment(id: u64, login: &str, kind: &str, text: &str) -> String {
        let body = serde_json::to_string(&format!("{}\n{text}", marker(&["web"]))).unwrap();
        let user = format!(r#"{{"login":"{login}","username":"{login}","type":"{kind}"}}"#);
        format!(r#"{{"id":{id},"body":{body},"user":{user}}}"#)
    }

    #[test]
    fn users_are_read_as_each_host_writes_them() {
        let name = |text: &str| serde_json::from_str::<User>(text).unwrap().name();
        assert_eq!(name(r#"{"login":"ada","type":"User"}"#).as_deref(), Some("ada"));
        assert_eq!(name(r#"{"id":1,"username":"ada"}"#).as_deref(), Some("ada"));
        assert_eq!(name(r#"{"id":1,"login":"ada","username":"ada"}"#).as_deref(), Some("ada"));
        assert_eq!(name("{}"), None);
        let note = r#"{"id":41,"type":null,"body":"x","author":{"id":1,"username":"ada"}}"#;
        assert!(serde_json::from_str::<Existing>(note).unwrap().author.is_some());
    }

    fn list(comments: &[String]) -> (u16, String) {
        (200, format!("[{}]", comments.join(",")))
    }

    #[test]
    fn the_first_comment_is_created_and_later_ones_update_it() {
        let new = serde_json::to_string(&format!("{}\nnew", marker(&["web"]))).unwrap();
        let body = format!(r#"{{"body":{new}}}"#);
        let rows = [
            (
                GITHUB,
                "/repos/team/web/issues/7/comments",
                "?per_page=100&page=1",
                "PATCH /repos/team/web/issues/comments/41",
            ),
            (GITEA, "/repos/team/web/issues/7/comments", "", "PATCH /repos/team/web/issues/comments/41"),
            (
                GITLAB,
                "/projects/team%2Fweb/merge_requests/7/notes",
                "?sort=asc&order_by=created_at&per_page=100&page=1",
                "PUT /projects/team%2Fweb/merge_requests/7/notes/41",
            ),
        ];
        for (host, comments, query, update) in rows {
            let first = play(host, IfMissing::Create, &[me("ada"), list(&[]), (201, "{}".into())]);
            let asked = ["GET /user".to_owned(), format!("GET {comments}{query}"), format!("POST {comments} {body}")];
            assert_eq!(first, (asked.to_vec(), Ok(Posted::Created)));

            let old = comment(41, "ada", "User", "old");
            let second = play(host, IfMissing::Skip, &[me("ada"), list(&[old]), (200, "{}".into())]);
            assert_eq!((second.0[2].as_str(), second.1), (format!("{update} {body}").as_str(), Ok(Posted::Updated)));

            let same = comment(41, "ada", "User", "new\r\n");
            assert_eq!(play(host, IfMissing::Create, &[me("ada"), list(&[same])]).1, Ok(Posted::Unchanged));
            assert_eq!(play(host, IfMissing::Skip, &[me("ada"), list(&[])]).1, Ok(Posted::Skipped));
        }
    }

    #[test]
    fn a_comment_that_somebody_else_wrote_is_never_updated() {
        let created = |answers: &[(u16, String)]| {
            assert_eq!(play(GITHUB, IfMissing::Create, answers).1, Ok(Posted::Created));
        };
        created(&[me("ada"), list(&[comment(1, "mallory", "User", "old")]), (201, "{}".into())]);
        created(&[app(), list(&[comment(1, "mallory", "User", "old")]), (201, "{}".into())]);
        // Quoted, the marker is not the first line.
        let quoted = comment(1, "ada", "User", "x").replace("<!--", "see <!--");
        created(&[me("ada"), list(&[quoted]), (201, "{}".into())]);
        let other = comment(1, "ada", "User", "x").replace(&marker(&["web"]), &marker(&["api"]));
        created(&[me("ada"), list(&[other]), (201, "{}".into())]);
        let deleted = r#"{"id":1,"body":null,"user":null}"#.to_owned();
        created(&[app(), list(&[deleted]), (201, "{}".into())]);
        let ours = comment(2, "github-actions[bot]", "Bot", "old");
        let both = list(&[comment(1, "mallory", "User", "old"), ours]);
        let (lines, posted) = play(GITHUB, IfMissing::Create, &[app(), both, (200, "{}".into())]);
        assert_eq!(posted, Ok(Posted::Updated));
        assert!(lines[2].starts_with("PATCH /repos/team/web/issues/comments/2 "), "{lines:?}");
    }

    #[test]
    fn later_pages_are_looked_at() {
        let full: Vec<String> = (0..100).map(|id| format!(r#"{{"id":{id},"body":"hi","user":null}}"#)).collect();
        let last = list(&[comment(500, "ada", "User", "old")]);
        let (lines, posted) = play(GITHUB, IfMissing::Create, &[me("ada"), list(&full), last, (200, "{}".into())]);
        assert_eq!(posted, Ok(Posted::Updated));
        assert_eq!(lines[2], "GET /repos/team/web/issues/7/comments?per_page=100&page=2");
        // Gitea answers with all of them, however many there are.
        let (lines, posted) = play(GITEA, IfMissing::Create, &[me("ada"), list(&full), (201, "{}".into())]);
        assert_eq!((lines.len(), posted), (3, Ok(Posted::Created)));
        let endless: Vec<(u16, String)> = [me("ada")].into_iter().chain((0..50).map(|_| list(&full))).collect();
        let many = "the pull request has more than 5000 comments";
        assert_eq!(play(GITHUB, IfMissing::Create, &endless).1, Err(NotPosted::Failed(many.into())));
    }

    #[test]
    fn a_refusal_says_what_the_token_may_not_do() {
        #[track_caller]
        fn check(host: (CommentHost, &str), answers: &[(u16, String)], expected: NotPosted) {
            assert_eq!(play(host, IfMissing::Create, answers).1, Err(expected));
        }
        let forbidden = |text: &str| NotPosted::Forbidden(text.to_owned());
        let failed = |text: &str| NotPosted::Failed(text.to_owned());
        let words = || r#"{"message":"no\u0007pe"}"#.to_owned();
        check(GITHUB, &[(401, words())], forbidden("the host does not accept the token (401, no\\u{7}pe)"));
        check(GITHUB, &[app(), list(&[]), app()], {
            forbidden("the token may not write comments (403, Resource not accessible by integration)")
        });
        check(
            GITHUB,
            &[app(), (404, String::new())],
            forbidden("the host does not know the pull request, or does not show it to the token (404)"),
        );
        check(
            GITEA,
            &[(403, words())],
            forbidden("the token may not say whose it is (403, no\\u{7}pe); give it the scope read:user"),
        );
        check(GITEA, &[me("ada"), (403, words())], forbidden("the token may not read the comments (403, no\\u{7}pe)"));
        check(GITLAB, &[(502, "<html>".into())], failed("the host answers 502 Bad Gateway"));
        check(GITLAB, &[(200, "<html>".into())], failed("the host does not say whose token it is"));
        check(GITLAB, &[me("ada"), (200, "{}".into())], failed("the host's list of comments cannot be read"));
        let moved = "the host answers 301 Moved Permanently: its API is somewhere else";
        check(GITHUB, &[me("ada"), (301, String::new())], failed(moved));
    }

    #[test]
    fn markers_tell_sources_apart_and_show_nothing() {
        assert_eq!(marker(&["shop/web", "deploy"]), marker(&["shop/web", "deploy"]));
        assert_ne!(marker(&["a", "bc"]), marker(&["ab", "c"]));
        assert!(!marker(&["--> <b>"]).contains("<b>"));
    }

    #[test]
    fn a_pull_request_is_known_by_its_address() {
        #[track_caller]
        fn check(host: CommentHost, page: &str, expected: Result<&str, &str>) {
            let found = PullRequest::parse(host, page).map(|on| on.comments());
            assert_eq!(found.as_deref().map_err(String::as_str), expected);
        }
        use CommentHost::*;
        check(GitHub, "https://github.com/a/b/pull/7", Ok("https://api.github.com/repos/a/b/issues/7/comments"));
        check(
            Gitea,
            "https://git.corp:3000/a/b/pulls/7/",
            Ok("https://git.corp:3000/api/v1/repos/a/b/issues/7/comments"),
        );
        let notes = "https://gitlab.com/api/v4/projects/a%2Fb%2Fc/merge_requests/7/notes";
        check(GitLab, "https://gitlab.com/a/b/c/-/merge_requests/7", Ok(notes));
        assert_eq!(nameless("https://ada:canary@host/a/b/pulls/1"), "https://host/a/b/pulls/1");
        assert_eq!(nameless("ada:canary@host"), "host");
        let wrong = "\"https://github.com/a/b/issues/7\" is not the address of a pull request, https://HOST/OWNER/NAME/pull/NUMBER";
        check(GitHub, "https://github.com/a/b/issues/7", Err(wrong));
        assert!(PullRequest::of(GitHub, "https://api.github.com", "a/../b", 1).is_err());
        assert!(PullRequest::of(GitHub, "https://api.github.com", "a/..", 1).is_err());
        assert!(PullRequest::of(GitHub, "https://api.github.com", "a/b?x", 1).is_err());
        assert!(PullRequest::of(GitLab, "https://gitlab.com/api/v4", "42", 1).is_ok());
        assert_eq!(CommentHost::of_workflow("https://git.corp/api/v1"), Gitea);
        assert_eq!(CommentHost::of_workflow("https://api.github.com"), GitHub);
        assert_eq!(CommentHost::of_workflow("https://ghe.corp/api/v3"), GitHub);
    }
}
