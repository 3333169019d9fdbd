//! Posts commit statuses: as git notes where the repository is on this machine, to its host where there is one.
//!
//! A host has a task of its own, which keeps to the reporter's throttling. A host that does not answer never holds a sync up;
//! pending statuses are kept in a ConfigMap, so that the last one of a commit outlives a restart.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::{
    keep,
    secret::{BoundSecret, Secrets},
};
use crate::{
    engine::key::Place,
    forge::{self, Credential, Status, notes, reporter::Reporter},
    io::{
        api::Api,
        clock::Clock,
        forge::{app_credential, tell},
        git::{Access, Network, Store},
        http::Http,
    },
    model::{
        git_source::{GitSource, Host},
        remote::Remote,
    },
    sync::{Report, State, bond},
};

/// Who is told.
#[derive(Clone)]
pub enum Teller {
    /// Nobody, for a reason if that is not what was wanted.
    Nobody(Option<String>),
    /// The repository itself.
    Notes(Store),
    /// Its host.
    Forge(Sender<Word>, Trouble),
}

/// What a commit is to be told, under which context.
pub struct Word {
    commit: String,
    context: String,
    status: Status,
}

/// Why a host cannot be told, if it cannot.
#[derive(Clone, Default)]
pub struct Trouble(Arc<Mutex<Option<String>>>);

impl Trouble {
    fn set(&self, why: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What a source's status is called, and that of one of its Rollouts.
pub fn context(place: &Place, spec: &GitSource, rollout: Option<&str>) -> String {
    let given = spec.report.as_ref().and_then(|report| report.context.clone());
    let context = given.unwrap_or_else(|| format!("tidegate/{}/{}", place.namespace, place.name));
    match rollout {
        Some(rollout) => format!("{context}/{rollout}"),
        None => context,
    }
}

/// In a forge's words: most hosts have no state for a commit that was superseded, and show the description alone.
fn status(report: &Report, page: Option<&str>) -> Status {
    let description = match report.state {
        State::Superseded => format!("{} {}", report.state.name(), report.words),
        State::Pending | State::Success | State::Failure | State::Error => report.words.clone(),
    };
    Status { state: report.state, description, target: page.map(str::to_owned) }
}

/// What is needed to tell.
pub struct Telling {
    /// The source.
    pub place: Place,
    /// Its identity; empty for one that was given on the command line.
    pub uid: String,
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
    /// Where what is still to be told is kept.
    pub api: Api,
    /// What time it is.
    pub clock: Clock,
}

impl Teller {
    /// Who is told of a source's commits; an error if a Secret may not be sent there.
    pub async fn of(telling: Telling) -> Result<Teller, String> {
        let host = telling.spec.report.as_ref().map(|report| report.host);
        Ok(match (host, telling.remote.clone(), telling.network.clone()) {
            (Some(Host::None), _, _) => Teller::Nobody(None),
            // A repository without a host keeps its own notes.
            (Some(Host::Notes), _, _) | (None, None, _) => Teller::Notes(telling.store),
            (Some(host), Some(remote), Some(network)) => {
                let api = telling.spec.report.as_ref().and_then(|report| report.url.clone());
                match forge::Place::of(host, &remote, api.as_deref()) {
                    Ok(Some(forge)) => {
                        check(&telling, &remote, &forge).await?;
                        let (sender, receiver) = mpsc::channel(256);
                        let trouble = Trouble::default();
                        tokio::spawn(talk(telling, remote, forge, network, receiver, trouble.clone()));
                        Teller::Forge(sender, trouble)
                    }
                    Ok(None) => Teller::Nobody(None),
                    Err(why) => {
                        tracing::warn!(source = %telling.place, why, "commit statuses cannot be posted");
                        Teller::Nobody(Some(why))
                    }
                }
            }
            (Some(_) | None, _, _) => Teller::Nobody(None),
        })
    }

    /// Why commit statuses cannot be posted, if they cannot.
    pub fn trouble(&self) -> Option<String> {
        match self {
            Teller::Nobody(why) => why.clone(),
            Teller::Notes(_) => None,
            Teller::Forge(_, trouble) => trouble.get(),
        }
    }

    /// Whether the notes of a repository say how a commit ended.
    pub fn has_ended(&self, place: &Place, spec: &GitSource, commit: &str) -> bool {
        let Teller::Notes(store) = self else { return false };
        let noted = store.notes(commit).and_then(|note| notes::state(&note, &context(place, spec, None)));
        noted.is_some_and(|state| matches!(state, State::Success | State::Failure | State::Error))
    }

    /// Tells a commit. What does not work is logged.
    pub async fn tell(&self, place: &Place, spec: &GitSource, report: &Report, page: Option<&str>, clock: Clock) {
        let context = context(place, spec, report.rollout.as_deref());
        let commit = report.commit.to_string();
        match self {
            Teller::Nobody(_) => {}
            Teller::Notes(store) => {
                let status = Status { state: report.state, description: report.words.clone(), target: None };
                let (store, now) = (store.clone(), clock.now());
                let noted = move || {
                    let noted = store.notes(&commit).and_then(|note| notes::state(&note, &context));
                    match noted {
                        Some(before) if !forge::follows(before, status.state) => Ok(()),
                        Some(_) | None => store.note(&commit, &context, &notes::words(&status), now),
                    }
                };
                let noted = tokio::task::spawn_blocking(noted).await;
                match noted {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => tracing::warn!(source = %place, %error, "commit status not posted"),
                    Err(error) => tracing::warn!(source = %place, %error, "commit status not posted"),
                }
            }
            Teller::Forge(sender, _) => {
                let word = Word { commit, context, status: status(report, page) };
                let _ = sender.send(word).await;
            }
        }
    }
}

/// How long it is remembered what commits were told that are over.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(24);

/// How often the Secret is read again while the host refuses what is in it.
const NEW_TOKEN: Duration = Duration::from_secs(60);

/// Says early why the Secret to report with must not be sent to the host. One that cannot be read may be there later.
async fn check(telling: &Telling, remote: &Remote, forge: &forge::Place) -> Result<(), String> {
    let Some(name) = secret_of(&telling.spec) else { return Ok(()) };
    let Ok(secret) = telling.secrets.bound(&telling.place.namespace, &name).await else { return Ok(()) };
    may_report(&telling.spec, remote, forge, &secret)
}

/// Whether a Secret may be sent to the API of a host.
fn may_report(spec: &GitSource, remote: &Remote, forge: &forge::Place, secret: &BoundSecret) -> Result<(), String> {
    let api = bond::origin(&forge.api)?;
    let has_own = spec.report.as_ref().is_some_and(|report| report.secret.is_some());
    if !has_own && !bond::is_own_api(remote, &api) {
        return Err(format!(
            "the Secret to fetch with is not sent to {api}, which is not the host of the repository; \
             name a Secret for it in report.secretRef"
        ));
    }
    secret.check(&api)
}

/// Tells a host, at the reporter's pace, until nobody has anything to say any more.
async fn talk(
    telling: Telling,
    remote: Remote,
    forge: forge::Place,
    network: Arc<Network>,
    mut receiver: Receiver<Word>,
    trouble: Trouble,
) {
    let kept = keep::load_reports(&telling.api, &telling.place).await;
    let mut reporter: Reporter = kept.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let progress = forge.forge.progress();
    let (mut closed, mut shown, mut refused) = (false, None, false);
    loop {
        let now = telling.clock.now();
        if refused && digest(&telling).await != shown {
            // Somebody gave us another token: it is tried at once.
            reporter.unblock();
            refused = false;
        }
        while let Some(work) = reporter.due(now, progress) {
            shown = digest(&telling).await;
            let outcome = match credential(&telling, &remote, &forge, &network).await {
                Ok((http, place, credential)) => tell(&http, &place, &credential, &work, telling.clock.now()).await,
                Err(why) => forge::Outcome::Forbidden(why),
            };
            refused = matches!(outcome, forge::Outcome::Forbidden(_));
            let why = outcome.trouble().map(str::to_owned);
            telling.api.metrics().with(|metrics| metrics.reported(&telling.place, &outcome));
            reporter.done(&work, outcome, telling.clock.now());
            if let Some(why) = &why
                && trouble.get().as_ref() != Some(why)
            {
                tracing::warn!(source = %telling.place, commit = work.sha, why, "commit status not posted");
            }
            trouble.set(why);
            reporter.forget(telling.clock.now().saturating_sub(REMEMBERED).unwrap_or(Timestamp::MIN));
            save(&telling, &reporter).await;
        }
        if closed {
            return;
        }
        let wait = reporter.wake(now, progress).map(|wake| wake.duration_since(now));
        let wait = wait.and_then(|wait| wait.try_into().ok()).unwrap_or(Duration::from_secs(3600));
        let wait = if refused { wait.min(NEW_TOKEN) } else { wait };
        tokio::select! {
            heard = receiver.recv() => {
                let Some(Word { commit, context, status }) = heard else {
                    // What can be said at once is; the rest is kept for whoever comes next.
                    closed = true;
                    continue;
                };
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
    if let Err(error) = keep::save_reports(&telling.api, &telling.place, &telling.uid, text).await {
        tracing::warn!(source = %telling.place, %error, "pending commit statuses were not saved");
    }
}

/// The Secret to tell with.
fn secret_of(spec: &GitSource) -> Option<String> {
    let own = spec.report.as_ref().and_then(|report| report.secret.clone());
    own.or_else(|| spec.secret.clone())
}

/// What stands for what is in the Secret now, so that a new one is noticed.
async fn digest(telling: &Telling) -> Option<Vec<u8>> {
    let secret = telling.secrets.bound(&telling.place.namespace, &secret_of(&telling.spec)?).await.ok()?;
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    context.update(secret.hosts.unwrap_or_default().as_bytes());
    for (key, value) in &secret.data {
        context.update(&(key.len() as u64).to_le_bytes());
        context.update(key.as_bytes());
        context.update(&(value.len() as u64).to_le_bytes());
        context.update(value);
    }
    Some(context.finish().as_ref().to_vec())
}

/// What to show to the host, read anew each time: tokens change.
async fn credential(
    telling: &Telling,
    remote: &Remote,
    forge: &forge::Place,
    network: &Network,
) -> Result<(Http, forge::Place, Credential), String> {
    let own = telling.spec.report.as_ref().and_then(|report| report.secret.clone());
    let Some(name) = secret_of(&telling.spec) else {
        return Err("there is no Secret to tell with; name one in report.secretRef".to_owned());
    };
    let secret = telling.secrets.bound(&telling.place.namespace, &name).await?;
    may_report(&telling.spec, remote, forge, &secret)?;
    let data = secret.data;
    let http = match data.get("ca.crt") {
        Some(bundle) => network.http().trusting(bundle).map_err(|error| error.to_string())?,
        None => network.http().clone(),
    };
    if own.is_none()
        && let Ok(access) = Access::from_secret(remote, &data)
        && let Some(token) = app_credential(&http, network, forge, &access, telling.clock.now()).await
    {
        return Ok((http, forge.clone().by_app(), token?));
    }
    Ok((http, forge.clone(), Credential::from_secret(&data)?))
}
