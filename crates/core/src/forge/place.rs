//! Which host, where its API is, and what to show it.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, header};
use serde::Serialize;

use super::{github, reporter::Progress};
use crate::model::{
    git_source::Host,
    remote::{Remote, Scheme},
    secret::Secret,
};

/// The hosts that commits can be told on by requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // named as they call themselves
pub enum Forge {
    GitHub,
    /// GitHub, by an App: a check run instead of a status.
    GitHubChecks,
    GitLab,
    Gitea,
    Bitbucket,
    BitbucketDataCenter,
    AzureDevOps,
}

impl Forge {
    /// The host of a repository, by its URL.
    pub fn of(remote: &Remote) -> Option<Forge> {
        let host = remote.host.as_str();
        let called = |name: &str| host.split(['.', '-']).any(|part| part == name);
        if host == "bitbucket.org" {
            Some(Forge::Bitbucket)
        } else if host == "dev.azure.com" || host == "ssh.dev.azure.com" || host.ends_with(".visualstudio.com") {
            Some(Forge::AzureDevOps)
        } else if called("github") || host.ends_with(".ghe.com") {
            Some(Forge::GitHub)
        } else if called("gitlab") {
            Some(Forge::GitLab)
        } else if called("gitea") || called("forgejo") || host == "codeberg.org" {
            Some(Forge::Gitea)
        } else if called("bitbucket") {
            Some(Forge::BitbucketDataCenter)
        } else {
            None
        }
    }

    /// How much of its progress a commit can be told.
    pub fn progress(self) -> Progress {
        match self {
            Forge::GitLab => Progress::Once,
            Forge::GitHub
            | Forge::GitHubChecks
            | Forge::Gitea
            | Forge::Bitbucket
            | Forge::BitbucketDataCenter
            | Forge::AzureDevOps => Progress::Told,
        }
    }
}

/// A repository at its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Which host.
    pub forge: Forge,
    /// Where its API is, without a slash at its end.
    pub api: String,
    /// The repository's path there, in parts.
    pub path: Vec<String>,
    /// The repository's page, for hosts that insist on a link.
    pub page: String,
}

impl Place {
    /// Where to tell the commits of a repository. `None` if nobody is to be told, or by notes.
    pub fn of(host: Host, remote: &Remote, api: Option<&str>) -> Result<Option<Place>, String> {
        let forge = match host {
            Host::None | Host::Notes => return Ok(None),
            Host::Auto => Forge::of(remote).ok_or_else(|| {
                format!("it is not clear what kind of host {} is; name it in report.host", remote.host)
            })?,
            Host::GitHub => Forge::GitHub,
            Host::GitLab => Forge::GitLab,
            Host::Gitea => Forge::Gitea,
            Host::Bitbucket => Forge::Bitbucket,
            Host::BitbucketDataCenter => Forge::BitbucketDataCenter,
            Host::AzureDevOps => Forge::AzureDevOps,
        };
        let mut path: Vec<String> = remote.segments().into_iter().map(str::to_owned).collect();
        let mut base = String::new();
        match forge {
            Forge::AzureDevOps => path = azure_path(&path),
            Forge::BitbucketDataCenter => (base, path) = data_center_path(&path),
            Forge::GitHub | Forge::GitHubChecks | Forge::GitLab | Forge::Gitea | Forge::Bitbucket => {}
        }
        let parts = match forge {
            Forge::GitLab => 2..=20,
            Forge::AzureDevOps => 3..=3,
            Forge::GitHub | Forge::GitHubChecks | Forge::Gitea | Forge::Bitbucket | Forge::BitbucketDataCenter => 2..=2,
        };
        if !parts.contains(&path.len()) {
            return Err(format!("{remote} is not how this kind of host names a repository"));
        }
        // Over ssh the port is the shell's.
        let port = remote.port.filter(|_| remote.scheme == Scheme::Https);
        let web = port.map_or(format!("https://{}", remote.host), |port| format!("https://{}:{port}", remote.host));
        let default = match forge {
            Forge::GitHub | Forge::GitHubChecks => github::api(remote),
            Forge::GitLab => format!("{web}/api/v4"),
            Forge::Gitea => format!("{web}/api/v1"),
            Forge::Bitbucket => "https://api.bitbucket.org/2.0".to_owned(),
            Forge::BitbucketDataCenter => format!("{web}{base}/rest/api/latest"),
            Forge::AzureDevOps => "https://dev.azure.com".to_owned(),
        };
        let api = api.map_or(default, |given| given.trim_end_matches('/').to_owned());
        let page = format!("{web}/{}", path.join("/"));
        Ok(Some(Place { forge, api, path, page }))
    }

    /// The same place, told by an App.
    pub fn by_app(self) -> Place {
        let forge = if self.forge == Forge::GitHub { Forge::GitHubChecks } else { self.forge };
        Place { forge, ..self }
    }

    /// A part of the path.
    pub(super) fn part(&self, number: usize) -> &str {
        self.path.get(number).map(String::as_str).unwrap_or_default()
    }
}

/// `org/project/_git/repository`, or over ssh `v3/org/project/repository`.
fn azure_path(path: &[String]) -> Vec<String> {
    match path.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [org, project, "_git", repository] | ["v3", org, project, repository] => {
            [org, project, repository].map(|part| (*part).to_owned()).to_vec()
        }
        // A repository that is called as its project.
        [org, "_git", repository] => [org, repository, repository].map(|part| (*part).to_owned()).to_vec(),
        _ => path.to_vec(),
    }
}

/// `[below/]scm/PROJECT/repository`; what stands before `scm` is where the whole host lives.
fn data_center_path(path: &[String]) -> (String, Vec<String>) {
    match path.iter().position(|part| part == "scm") {
        Some(at) => (path[..at].iter().map(|part| format!("/{part}")).collect(), path[at + 1..].to_vec()),
        None => (String::new(), path.to_vec()),
    }
}

/// What to show to an API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// A user, for hosts that want one beside the token.
    pub username: Option<String>,
    /// The token or password.
    pub token: Secret,
}

impl Credential {
    /// Takes what a Secret holds: `token`, or what a repository is fetched with.
    pub fn from_secret(data: &BTreeMap<String, Vec<u8>>) -> Result<Credential, String> {
        let text = |name: &str| {
            let text =
                data.get(name).map(|bytes| std::str::from_utf8(bytes).map(|text| text.trim_end_matches(['\r', '\n'])));
            text.transpose()
                .map_err(|_| format!("the key {name} is no text"))
                .map(|text| text.filter(|text| !text.is_empty()))
        };
        let token = match (text("token")?, text("bearerToken")?, text("password")?) {
            (Some(token), _, _) | (None, Some(token), _) | (None, None, Some(token)) => Secret::new(token),
            (None, None, None) => return Err("the key token is missing".to_owned()),
        };
        Ok(Credential { username: text("username")?.map(str::to_owned), token })
    }

    pub(super) fn bearer(&self) -> String {
        format!("Bearer {}", self.token.expose())
    }

    pub(super) fn basic(&self) -> String {
        let user = self.username.as_deref().unwrap_or_default();
        format!("Basic {}", STANDARD.encode(format!("{user}:{}", self.token.expose())))
    }

    /// As a user if there is one, else by the token alone.
    pub(super) fn basic_or_bearer(&self) -> String {
        if self.username.is_some() { self.basic() } else { self.bearer() }
    }
}

/// A request with a JSON body; its proof is never shown.
pub(super) fn json(
    method: Method,
    url: String,
    proof: (&'static str, String),
    body: &impl Serialize,
) -> Result<Request<Bytes>, String> {
    let body = serde_json::to_vec(body).map_err(|error| error.to_string())?;
    let mut secret =
        HeaderValue::try_from(proof.1).map_err(|_| "the token has characters that cannot be sent".to_owned())?;
    secret.set_sensitive(true);
    Request::builder()
        .method(method)
        .uri(url)
        .header(proof.0, secret)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json")
        .body(Bytes::from(body))
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_known_by_its_url() {
        #[track_caller]
        fn check(url: &str, expected: Result<(Forge, &str, &str), &str>) {
            let remote = Remote::parse(url).unwrap();
            let place = Place::of(Host::Auto, &remote, None).map(Option::unwrap);
            let found = place.as_ref().map(|place| (place.forge, place.api.as_str(), place.path.join(" ")));
            let expected = expected.map(|(forge, api, path)| (forge, api, path.to_owned()));
            assert_eq!(found.map_err(String::as_str), expected);
        }
        use Forge::*;
        check("https://github.com/team/web.git", Ok((GitHub, "https://api.github.com", "team web")));
        check("ssh://git@github.com/team/web", Ok((GitHub, "https://api.github.com", "team web")));
        check("https://github.corp.example/team/web", Ok((GitHub, "https://github.corp.example/api/v3", "team web")));
        check("https://gitlab.com/a/b/c.git", Ok((GitLab, "https://gitlab.com/api/v4", "a b c")));
        check("ssh://git@gitlab.corp:2222/a/b", Ok((GitLab, "https://gitlab.corp/api/v4", "a b")));
        check("https://gitea.corp:3000/a/b", Ok((Gitea, "https://gitea.corp:3000/api/v1", "a b")));
        check("https://codeberg.org/a/b.git", Ok((Gitea, "https://codeberg.org/api/v1", "a b")));
        check("https://bitbucket.org/a/b.git", Ok((Bitbucket, "https://api.bitbucket.org/2.0", "a b")));
        let rest = "https://bitbucket.corp/rest/api/latest";
        check("https://bitbucket.corp/scm/WEB/api.git", Ok((BitbucketDataCenter, rest, "WEB api")));
        check("ssh://git@bitbucket.corp:7999/~ada/api.git", Ok((BitbucketDataCenter, rest, "~ada api")));
        let below = "https://bitbucket.corp/git/rest/api/latest";
        check("https://bitbucket.corp/git/scm/WEB/api", Ok((BitbucketDataCenter, below, "WEB api")));
        check("https://dev.azure.com/org/web/_git/api", Ok((AzureDevOps, "https://dev.azure.com", "org web api")));
        check("ssh://git@ssh.dev.azure.com/v3/org/web/api", Ok((AzureDevOps, "https://dev.azure.com", "org web api")));
        let unknown = "it is not clear what kind of host git.corp is; name it in report.host";
        check("https://git.corp/a/b", Err(unknown));
        let odd = "https://github.com/a is not how this kind of host names a repository";
        check("https://github.com/a", Err(odd));
    }

    #[test]
    fn a_credential_is_read_by_its_keys() {
        let read = |keys: &[(&str, &str)]| {
            let data = keys.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect();
            Credential::from_secret(&data).map(|found| (found.username, found.token.expose().to_owned()))
        };
        assert_eq!(read(&[("token", "t\n"), ("password", "p")]), Ok((None, "t".into())));
        assert_eq!(read(&[("username", "ada"), ("password", "p")]), Ok((Some("ada".into()), "p".into())));
        assert_eq!(read(&[("bearerToken", "b"), ("password", "p")]), Ok((None, "b".into())));
        assert_eq!(read(&[("token", "")]), Err("the key token is missing".into()));
    }

    #[test]
    fn a_named_host_and_api_win() {
        let remote = Remote::parse("https://git.corp/a/b").unwrap();
        let place = Place::of(Host::Gitea, &remote, Some("https://api.corp/x/")).unwrap().unwrap();
        assert_eq!((place.forge, place.api.as_str()), (Forge::Gitea, "https://api.corp/x"));
        assert_eq!(Place::of(Host::None, &remote, None), Ok(None));
        assert_eq!(Place::of(Host::Notes, &remote, None), Ok(None));
    }
}
