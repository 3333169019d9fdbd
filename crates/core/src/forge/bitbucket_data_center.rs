//! Bitbucket Data Center: build statuses of a repository's commits. Its pages show the name, not the description.

use bytes::Bytes;
use http::{HeaderValue, Method, Request};
use serde::Serialize;

use super::{
    Credential, Place, Post, State,
    place::json,
    text::{cut, key},
};

/// The longest key and name.
const LONGEST: usize = 255;

#[derive(Serialize)]
struct Body<'a> {
    key: String,
    state: &'static str,
    name: String,
    description: String,
    url: &'a str,
}

/// A status.
pub fn request(place: &Place, credential: &Credential, post: &Post<'_>) -> Result<Request<Bytes>, String> {
    let state = match post.status.state {
        State::Pending => "INPROGRESS",
        State::Success => "SUCCESSFUL",
        State::Failure | State::Error => "FAILED",
        State::Superseded => "CANCELLED",
    };
    let body = Body {
        key: key(post.context, LONGEST),
        state,
        name: cut(&format!("{}: {}", post.context, post.status.description), LONGEST),
        description: cut(&post.status.description, LONGEST),
        url: post.status.target.as_deref().unwrap_or(&place.page),
    };
    let [project, repository] = [place.part(0), place.part(1)];
    let url = format!("{}/projects/{project}/repos/{repository}/commits/{}/builds", place.api, post.sha);
    let mut request = json(Method::POST, url, ("authorization", credential.basic_or_bearer()), &body)?;
    // Without this the host suspects a browser of being tricked.
    request.headers_mut().insert("x-atlassian-token", HeaderValue::from_static("no-check"));
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        forge::{Forge, Status},
        model::secret::Secret,
    };

    #[test]
    fn a_status_is_as_the_host_wants_it() {
        let path = ["WEB", "api"].map(str::to_owned).to_vec();
        let api = "https://bitbucket.corp/rest/api/latest".to_owned();
        let place =
            Place { forge: Forge::BitbucketDataCenter, api, path, page: "https://bitbucket.corp/WEB/api".into() };
        let credential = Credential { username: None, token: Secret::new("canary-secret") };
        let status = Status { state: State::Pending, description: "step 1/2".into(), target: None };
        let post = Post { sha: "abc", context: "c", status: &status, earlier: None };
        let request = request(&place, &credential, &post).unwrap();
        assert_eq!(request.uri(), "https://bitbucket.corp/rest/api/latest/projects/WEB/repos/api/commits/abc/builds");
        assert_eq!(request.headers()["x-atlassian-token"], "no-check");
        let words = r#""name":"c: step 1/2","description":"step 1/2""#;
        let expected = format!(r#"{{"key":"c","state":"INPROGRESS",{words},"url":"https://bitbucket.corp/WEB/api"}}"#);
        assert_eq!(std::str::from_utf8(request.body()).unwrap(), expected);
        let long = Status { state: State::Failure, description: "x".repeat(400), target: None };
        let post = Post { sha: "abc", context: "c", status: &long, earlier: None };
        let request = super::request(&place, &credential, &post).unwrap();
        assert_eq!(std::str::from_utf8(request.body()).unwrap().matches('x').count(), 251 + 254);
    }
}
