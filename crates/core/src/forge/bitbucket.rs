//! Bitbucket Cloud: build statuses, one for each key; the same key overwrites.

use bytes::Bytes;
use http::{Method, Request};
use serde::Serialize;

use super::{
    Credential, Place, Post, State,
    place::json,
    text::{cut, key},
};

/// The longest key.
const KEY: usize = 40;

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
        State::Superseded => "STOPPED",
    };
    let body = Body {
        key: key(post.context, KEY),
        state,
        name: cut(post.context, 255),
        description: cut(&post.status.description, 255),
        // A link is wanted; the repository's own page is one.
        url: post.status.target.as_deref().unwrap_or(&place.page),
    };
    let [workspace, repository] = [place.part(0), place.part(1)];
    let url = format!("{}/repositories/{workspace}/{repository}/commit/{}/statuses/build", place.api, post.sha);
    json(Method::POST, url, ("authorization", credential.basic_or_bearer()), &body)
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
        let path = ["a", "b"].map(str::to_owned).to_vec();
        let api = "https://api.bitbucket.org/2.0".to_owned();
        let place = Place { forge: Forge::Bitbucket, api, path, page: "https://bitbucket.org/a/b".into() };
        let mut credential = Credential { username: None, token: Secret::new("canary-secret") };
        let status = Status { state: State::Superseded, description: "d".into(), target: None };
        let context = "tidegate/a-rather-long-namespace/and-a-long-name";
        let post = Post { sha: "abc", context, status: &status, earlier: None };
        let asked = request(&place, &credential, &post).unwrap();
        assert_eq!(asked.uri(), "https://api.bitbucket.org/2.0/repositories/a/b/commit/abc/statuses/build");
        assert_eq!(asked.headers()["authorization"], "Bearer canary-secret");
        let digest = key(context, 40);
        assert_eq!(digest.len(), 40);
        let rest = r#""description":"d","url":"https://bitbucket.org/a/b""#;
        let expected = format!(r#"{{"key":"{digest}","state":"STOPPED","name":"{context}",{rest}}}"#);
        assert_eq!(std::str::from_utf8(asked.body()).unwrap(), expected);
        credential.username = Some("ada".into());
        let asked = request(&place, &credential, &post).unwrap();
        assert_eq!(asked.headers()["authorization"], "Basic YWRhOmNhbmFyeS1zZWNyZXQ=");
        assert!(!format!("{asked:?}").contains("YWRh"));
    }
}
