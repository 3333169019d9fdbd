//! Telling commits: as git notes where the repository is on this machine, to its host where there is one.
//!
//! A host is told by a task of its own, which keeps to the reporter's pace. Whoever cannot be told never holds a sync up;
//! what is still to be told is kept in a ConfigMap, so that a last word outlives a restart.

use std::sync::Arc;

use tokio::sync::mpsc::{self, Receiver, Sender};

use super::{keep, secret::Secrets};
use crate::{
    engine::key::Place,
    forge::{self, Credential, Status, notes, reporter::Reporter},
    io::{
        clock::Clock,
        forge::{app_credential, tell},
        git::{Access, Network, Store},
    },
    model::{
        git_source::{GitSource, Host},
        remote::Remote,
    },
    sync::{Report, State},
};

/// Who is told.
#[derive(Clone)]
pub enum Teller {
    /// Nobody.
    Nobody,
    /// The repository itself.
    Notes(Store),
    /// Its host.
    Forge(Sender<(String, Status)>),
}

/// What a source's status is called.
pub fn context(place: &Place, spec: &GitSource) -> String {
    let given = spec.report.as_ref().and_then(|report| report.context.clone());
    given.unwrap_or_else(|| format!("tidegate/{}/{}", place.namespace, place.name))
}

/// In a forge's words.
fn status(report: &Report) -> Status {
    let state = match report.state {
        State::Pending => forge::State::Pending,
        State::Success => forge::State::Success,
        State::Failure => forge::State::Failure,
        State::Error => forge::State::Error,
        State::Superseded => forge::State::Superseded,
    };
    Status { state, description: report.words.clone(), target: None }
}

/// What is needed to tell.
pub struct Telling {
    /// The source.
    pub place: Place,
    /// What it wants.
    pub spec: GitSource,
    /// Its repository.
    pub store: Store,
    /// Where that is, if it is elsewhere.
    pub remote: Option<Remote>,
    /// How hosts are reached, if they are.
    pub network: Option<Arc<Network>>,
    /// Where secrets are.
    pub secrets: Secrets,
    /// What time it is.
    pub clock: Clock,
}

impl Teller {
    /// Who is told of a source's commits.
    pub async fn of(telling: Telling) -> Teller {
        let host = telling.spec.report.as_ref().map(|report| report.host);
        match (host, telling.remote.clone(), telling.network.clone()) {
            (Some(Host::None), _, _) => Teller::Nobody,
            // A repository without a host keeps its own notes.
            (Some(Host::Notes), _, _) | (None, None, _) => Teller::Notes(telling.store),
            (Some(host), Some(remote), Some(network)) => {
                let api = telling.spec.report.as_ref().and_then(|report| report.url.clone());
                match forge::Place::of(host, &remote, api.as_deref()) {
                    Ok(Some(forge)) => {
                        let (sender, receiver) = mpsc::channel(256);
                        tokio::spawn(talk(telling, remote, forge, network, receiver));
                        Teller::Forge(sender)
                    }
                    Ok(None) => Teller::Nobody,
                    Err(why) => {
                        tracing::warn!(source = %telling.place, why, "commits cannot be told");
                        Teller::Nobody
                    }
                }
            }
            (Some(_) | None, _, _) => Teller::Nobody,
        }
    }

    /// Tells a commit. What does not work is logged.
    pub async fn tell(&self, place: &Place, spec: &GitSource, report: &Report, clock: Clock) {
        match self {
            Teller::Nobody => {}
            Teller::Notes(store) => {
                let (store, commit, context) = (store.clone(), report.commit.to_string(), context(place, spec));
                let (words, now) = (notes::words(&status(report)), clock.now());
                let noted = tokio::task::spawn_blocking(move || store.note(&commit, &context, &words, now)).await;
                match noted {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => tracing::warn!(source = %place, %error, "a commit was not told"),
                    Err(error) => tracing::warn!(source = %place, %error, "a commit was not told"),
                }
            }
            Teller::Forge(sender) => {
                let _ = sender.send((report.commit.to_string(), status(report))).await;
            }
        }
    }
}

/// Tells a host, at the reporter's pace, until nobody has anything to say any more.
async fn talk(
    telling: Telling,
    remote: Remote,
    forge: forge::Place,
    network: Arc<Network>,
    mut receiver: Receiver<(String, Status)>,
) {
    let context = context(&telling.place, &telling.spec);
    let kept = keep::load_reports(telling.secrets.api(), &telling.place).await;
    let mut reporter: Reporter = kept.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let progress = forge.forge.progress();
    loop {
        let now = telling.clock.now();
        while let Some(work) = reporter.due(now, progress) {
            let outcome = match credential(&telling, &remote, &forge, &network).await {
                Ok((place, credential)) => tell(network.http(), &place, &credential, &work).await,
                Err(why) => forge::Outcome::Forbidden(why),
            };
            reporter.done(&work, outcome, telling.clock.now());
            save(&telling, &reporter).await;
        }
        let wait = reporter.wake(now, progress).map(|wake| wake.duration_since(now));
        let wait = wait.and_then(|wait| wait.try_into().ok()).unwrap_or(std::time::Duration::from_secs(3600));
        tokio::select! {
            heard = receiver.recv() => {
                let Some((commit, status)) = heard else { return };
                let ends = status.state.ends();
                reporter.want(&commit, &context, status, telling.clock.now());
                if ends {
                    save(&telling, &reporter).await;
                }
            }
            () = tokio::time::sleep(wait) => {}
        }
    }
}

async fn save(telling: &Telling, reporter: &Reporter) {
    let Ok(text) = serde_json::to_string(reporter) else { return };
    if let Err(error) = keep::save_reports(telling.secrets.api(), &telling.place, text).await {
        tracing::warn!(source = %telling.place, %error, "what is still to be told was not kept");
    }
}

/// What to show to the host, read anew each time: tokens change.
async fn credential(
    telling: &Telling,
    remote: &Remote,
    forge: &forge::Place,
    network: &Network,
) -> Result<(forge::Place, Credential), String> {
    let own = telling.spec.report.as_ref().and_then(|report| report.secret.clone());
    let name = own.clone().or_else(|| telling.spec.secret.clone());
    let Some(name) = name else {
        return Err("there is no Secret to tell with; name one in report.secretRef".to_owned());
    };
    let data = telling.secrets.read(&telling.place.namespace, &name).await?;
    if own.is_none()
        && let Ok(access) = Access::from_secret(remote, &data)
        && let Some(token) = app_credential(network.http(), network, forge, &access).await
    {
        return Ok((forge.clone().by_app(), token?));
    }
    Ok((forge.clone(), Credential::from_secret(&data)?))
}
