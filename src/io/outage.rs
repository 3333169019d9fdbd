//! What is said of a cluster that does not answer as it should: one sentence for each trouble, not one for each watch and
//! each try. Never decides when to try again.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::api::Error;
use crate::{
    api::constants::{GROUP, TIDEGATE_GROUP},
    engine::key::Resource,
};

/// How long a trouble lasts before it is said again.
const AGAIN: Duration = Duration::from_secs(600);

/// The troubles of a cluster that last, and when each was said last.
#[derive(Debug, Default)]
pub struct Outages {
    said: Mutex<BTreeMap<Trouble, Instant>>,
}

/// What is wrong. It is over once the same request is answered; a trouble of the whole cluster, once any is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Trouble {
    /// Nobody answers.
    Unreachable,
    /// The cluster does not know who asks.
    Unauthorized,
    /// The definitions of our kinds are not installed.
    Definitions,
    /// Another kind is not served.
    Missing(String),
    /// Anything else, with the HTTP code.
    Refused(String, u16),
}

impl Trouble {
    fn of(resource: &Resource, error: &Error) -> Option<Trouble> {
        match error {
            Error::Unreachable { .. } => Some(Trouble::Unreachable),
            Error::Refused { code: 401, .. } => Some(Trouble::Unauthorized),
            Error::Refused { code: 404, .. } if resource.group == *GROUP || resource.group == *TIDEGATE_GROUP => {
                Some(Trouble::Definitions)
            }
            Error::Refused { code: 404, .. } => Some(Trouble::Missing(resource.to_string())),
            Error::Refused { code, .. } => Some(Trouble::Refused(resource.to_string(), *code)),
            // That another daemon leads is no trouble of the cluster.
            Error::NotLeading { .. } | Error::BadName(_) => None,
        }
    }

    fn sentence(&self, resource: &Resource, error: &Error) -> String {
        let words = error.words();
        match self {
            Trouble::Unreachable => format!("cannot reach the cluster: {words}; trying again until it answers"),
            Trouble::Unauthorized => {
                "the cluster does not accept the credentials (401); trying again: renew the token or the certificate"
                    .to_owned()
            }
            Trouble::Definitions => {
                format!(
                    "the cluster does not serve {resource}: `tidegate crds | kubectl apply -f -` installs the definitions"
                )
            }
            Trouble::Missing(_) => format!("the cluster does not serve {resource}; what needs it waits until it does"),
            Trouble::Refused(_, 403) => format!("may not follow {resource}: {words}; trying again: grant the right"),
            Trouble::Refused(_, code) => format!("cannot follow {resource}: {words} ({code}); trying again"),
        }
    }
}

impl Outages {
    /// The sentence about a request for this resource that failed, unless it was said a short while ago.
    pub fn failed(&self, resource: &Resource, error: &Error) -> Option<String> {
        let trouble = Trouble::of(resource, error)?;
        let now = Instant::now();
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.get(&trouble).is_some_and(|last| now.duration_since(*last) < AGAIN) {
            return None;
        }
        let sentence = trouble.sentence(resource, error);
        said.insert(trouble, now);
        Some(sentence)
    }

    /// The sentence about the end of a trouble, now that a request for this resource was answered. One that was asked before
    /// the trouble was said proves nothing.
    pub fn answered(&self, resource: &Resource, asked: Instant) -> Option<&'static str> {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.is_empty() {
            return None;
        }
        let name = resource.to_string();
        let is_ours = resource.group == *GROUP || resource.group == *TIDEGATE_GROUP;
        let mut was_out = false;
        said.retain(|trouble, last| match trouble {
            _ if asked <= *last => true,
            Trouble::Unreachable | Trouble::Unauthorized => {
                was_out = true;
                false
            }
            Trouble::Definitions => !is_ours,
            Trouble::Missing(missing) => *missing != name,
            Trouble::Refused(refused, _) => *refused != name,
        });
        was_out.then_some("the cluster answers again")
    }

    /// A sentence about the definitions was printed already.
    pub fn definitions_are_said(&self) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.insert(Trouble::Definitions, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    fn refused(code: u16) -> Error {
        let (method, path, message) = (Method::GET, "/x".to_owned(), "no".to_owned());
        Error::Refused { method, path, code, message, after: None, causes: Vec::new() }
    }

    fn unreachable() -> Error {
        Error::Unreachable { method: Method::GET, path: "/x".into(), cause: "Connection refused".into() }
    }

    #[tokio::test(start_paused = true)]
    async fn each_trouble_is_one_sentence_until_it_is_over() {
        let (pods, sets) = (Resource::new("", "v1", "pods"), Resource::new("apps", "v1", "replicasets"));
        let (rollouts, sources) =
            (Resource::new(GROUP, "v1alpha1", "rollouts"), Resource::new(TIDEGATE_GROUP, "v1alpha1", "gitsources"));
        let outages = Outages::default();
        let gone = "cannot reach the cluster: Connection refused; trying again until it answers";
        assert_eq!(outages.failed(&pods, &unreachable()).as_deref(), Some(gone));
        assert_eq!(outages.failed(&sets, &unreachable()), None);
        assert_eq!(outages.answered(&rollouts, Instant::now()), None, "asked before");
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(outages.answered(&rollouts, Instant::now()), Some("the cluster answers again"));
        assert_eq!(outages.answered(&pods, Instant::now()), None);
        assert_eq!(outages.failed(&pods, &unreachable()).as_deref(), Some(gone), "it is gone once more");
        tokio::time::advance(AGAIN).await;
        assert_eq!(outages.failed(&sets, &unreachable()).as_deref(), Some(gone), "it has lasted");
        let unknown = outages.failed(&pods, &refused(401)).unwrap();
        assert!(unknown.contains("does not accept the credentials (401)"), "{unknown}");
        assert_eq!(outages.failed(&sets, &refused(401)), None);
        assert_eq!(
            outages.failed(&rollouts, &refused(404)).as_deref(),
            Some(
                "the cluster does not serve rollouts.argoproj.io: `tidegate crds | kubectl apply -f -` installs the definitions"
            )
        );
        assert_eq!(outages.failed(&sources, &refused(404)), None);
        let other = outages.failed(&Resource::new("x.example", "v1", "routes"), &refused(404)).unwrap();
        assert_eq!(other, "the cluster does not serve routes.x.example; what needs it waits until it does");
        assert!(outages.failed(&pods, &refused(403)).unwrap().starts_with("may not follow pods: no"));
        assert_eq!(outages.failed(&pods, &refused(403)), None);
        assert!(outages.failed(&sets, &refused(403)).is_some(), "of another kind");
    }
}
