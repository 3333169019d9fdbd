//! Keeping a comment on a pull request up to date: performs what [`crate::forge::comment`] asks for.
//!
//! Never retries: the caller has other ways to show the text.

use super::http::Http;
use crate::forge::{
    Credential,
    comment::{Comment, NextRequest, NotPosted, Posted, PullRequest, Sticky},
};

/// Creates or updates the comment.
pub async fn post(
    http: &Http,
    on: &PullRequest,
    credential: &Credential,
    comment: &Comment,
) -> Result<Posted, NotPosted> {
    let (mut sticky, mut request) = Sticky::first(on, credential, comment)?;
    loop {
        let answer = http.send(request).await.map_err(|error| NotPosted::Failed(error.to_string()))?;
        match sticky.answered(&answer)? {
            NextRequest::Send(next) => request = *next,
            NextRequest::End(posted) => return Ok(posted),
        }
    }
}
