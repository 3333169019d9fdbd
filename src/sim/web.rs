//! The web of stories: what providers answer to those who measure.

use std::collections::BTreeMap;

use crate::{
    kubernetes::value::{Map, Value},
    metric::Response,
};

/// Where stories find those who measure.
pub const WEB: &str = "http://web.test";

/// The namespace of the engine in stories.
pub const OWN: &str = "argo-rollouts";

/// What the web answers in a story: by the first word of the path, one answer after the other, the last for ever.
#[derive(Debug, Clone, Default)]
pub struct Web(BTreeMap<String, Vec<Value>>);

impl Web {
    /// Lets a path be answered anew.
    pub fn set(&mut self, answers: &Value) {
        for (path, answer) in answers.as_map().into_iter().flat_map(Map::iter) {
            let answers = answer.as_list().map_or_else(|| vec![answer.clone()], <[Value]>::to_vec);
            self.0.insert(path.to_string(), answers);
        }
    }

    /// What a path answers next.
    pub fn answer(&mut self, url: &str) -> Result<Response, String> {
        let path = url.strip_prefix(WEB).unwrap_or_default().trim_start_matches('/');
        let word = path.split(['?', '/']).next().unwrap_or_default();
        let answers = self.0.get_mut(word).ok_or_else(|| format!("nobody listens at {url}"))?;
        let answer = if answers.len() > 1 { answers.remove(0) } else { answers.first().cloned().unwrap_or_default() };
        let code = answer.int_at(&["status"]).and_then(|code| u16::try_from(code).ok());
        let body = answer.get("body").filter(|_| code.is_some()).unwrap_or(&answer);
        let body = body.as_str().map_or_else(|| body.to_json(), str::to_owned);
        Ok(Response { code: code.unwrap_or(200), body: body.into_bytes() })
    }
}
