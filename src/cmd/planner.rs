//! Plans for workflows: a workflow shows a token, the daemon plans the token's commit against the cluster.
//!
//! Nothing of a request is believed but a token that the GitSource's issuer signed. The commit is read from the source's
//! own repository, the cluster is asked with the rights of the source's ServiceAccount, and nothing is written but dry runs.

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::anyhow;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use super::{
    access::Cluster,
    diff::Source,
    plan::{live, read},
};
use crate::{
    api,
    engine::key::Place,
    forge::oidc::Workflow,
    io::{
        api::Api,
        git::{self, FetchLimits, Network, Store, Stores, Use},
        oidc::Issuers,
        source::{account, git_sources, scope, secret::Secrets},
        webhook::{PLAN_TIME, PlanRequest, Planner as Answers},
    },
    kubernetes::value::Text,
    model::{
        git_source::{GitSource, PlanAccess, Reference},
        remote::Remote,
    },
    plan::Plan,
    sim::plan::{Rules, Sides},
    workflow::StepReport,
};

/// How many plans are made at once, one of them for each namespace.
const PLANS: usize = 4;
/// How long forecasts may take of the time for a plan; what is not forecast by then says so.
const FORECAST_TIME: Duration = Duration::from_secs(60);
/// How many stores with commits of pull requests are kept, for how long without a plan, and for how many plans: each leaves
/// a commit there that nobody else needs.
const STORES: (usize, Duration, usize) = (16, Duration::from_secs(1800), 200);
/// The most bytes of an answer.
const ANSWER_BYTES: usize = 16 << 20;
/// No refusal comes earlier: how long it took does not tell how far a token came.
const REFUSAL_DELAY: Duration = Duration::from_secs(1);
/// What whoever is not let in is told, whatever the reason: it must not tell which sources there are.
const REFUSAL: &str =
    "the daemon has no such source, or the workflow may not ask for its plans; the daemon's log says which";

/// Makes plans for workflows.
pub struct Planner {
    /// Asks in the daemon's own name: for GitSources alone.
    pub api: Api,
    /// Only GitSources of this namespace; all if not given.
    pub namespace: Option<String>,
    /// How hosts of repositories are reached.
    pub network: Arc<Network>,
    /// The keys of issuers.
    pub issuers: Issuers,
    /// What the cluster is called in a plan.
    pub cluster: String,
    /// Where commits of pull requests are kept: apart from those that are synced.
    stores: Stores,
    busy: Mutex<HashSet<Text>>,
    slots: Arc<Semaphore>,
}

/// One plan of a namespace at a time; over when it is dropped.
struct Turn {
    planner: Arc<Planner>,
    place: Place,
    _slot: OwnedSemaphorePermit,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.planner.busy.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.place.namespace);
    }
}

/// A source that may be planned for a workflow.
struct Allowed {
    source: api::GitSource,
    spec: GitSource,
    workflow: Workflow,
}

impl Planner {
    /// Asks through these. Commits of pull requests are kept in the folder `cache`.
    pub fn new(
        api: Api,
        cluster: String,
        namespace: Option<String>,
        network: Arc<Network>,
        issuers: Issuers,
        cache: PathBuf,
    ) -> Planner {
        let (stores, busy, slots) = (Stores::new(cache), Mutex::default(), Arc::new(Semaphore::new(PLANS)));
        Planner { api, cluster, namespace, network, issuers, stores, busy, slots }
    }

    /// As the door for webhooks calls it.
    pub fn answers(self) -> Answers {
        let planner = Arc::new(self);
        Arc::new(move |asked| {
            let planner = planner.clone();
            Box::pin(async move { planner.answer(asked).await })
        })
    }

    async fn answer(self: Arc<Planner>, asked: PlanRequest) -> Response<Full<Bytes>> {
        let began = Instant::now();
        let place = Place::new(&asked.source.namespace, &asked.source.name);
        let allowed = match self.allow(&place, asked.token.expose()).await {
            Ok(allowed) => allowed,
            Err(reason) => {
                tracing::warn!(source = %place, reason, "plan refused");
                tokio::time::sleep_until(began + REFUSAL_DELAY).await;
                return error(StatusCode::UNAUTHORIZED, REFUSAL);
            }
        };
        let Some(turn) = self.clone().turn(&place) else {
            let mut busy = error(StatusCode::TOO_MANY_REQUESTS, "other plans are being made; try again in a moment");
            busy.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
            return busy;
        };
        let Workflow { commit, reference } = allowed.workflow.clone();
        tracing::info!(source = %place, commit, r#ref = reference, "plan asked for by a workflow");
        // Forecasts are work: they must not hold up what else the daemon does.
        let (handle, shown) = (tokio::runtime::Handle::current(), place.clone());
        let made = tokio::task::spawn_blocking(move || {
            let plan = self.plan(&turn.place, allowed, asked.from);
            let made = handle.block_on(async {
                let made = tokio::time::timeout(PLAN_TIME, plan).await;
                self.tidy().await;
                made
            });
            drop(turn);
            made
        });
        let (code, message) = match made.await {
            Ok(Ok(Ok(plan))) => match answer(&plan) {
                Some(answer) => return answer,
                None => (StatusCode::INSUFFICIENT_STORAGE, "the plan is larger than the daemon answers".to_owned()),
            },
            Ok(Ok(Err(error))) => (StatusCode::UNPROCESSABLE_ENTITY, super::action::message(&error)),
            Ok(Err(_)) => {
                let allowed = PLAN_TIME.as_secs();
                (StatusCode::GATEWAY_TIMEOUT, format!("the plan was not made in {allowed} s"))
            }
            Err(error) => {
                tracing::error!(source = %shown, %error, "plan ended by a panic");
                (StatusCode::INTERNAL_SERVER_ERROR, "the plan cannot be made; the daemon's log says why".to_owned())
            }
        };
        tracing::warn!(source = %shown, message, "plan not made");
        error(code, &message)
    }

    /// Whether whoever shows this token may ask for plans of a source; if not, why, for the log.
    async fn allow(&self, place: &Place, token: &str) -> Result<Allowed, String> {
        if self.namespace.as_deref().is_some_and(|own| own != &*place.namespace) {
            return Err("the daemon does not look after this namespace".to_owned());
        }
        let object = self.api.object(&git_sources(), place).await.map_err(|error| error.to_string())?;
        let source: api::GitSource = api::read(&object).object;
        let Source { spec, .. } = Source::of(place.clone(), source.clone()).map_err(|error| format!("{error:#}"))?;
        let access: &PlanAccess = spec.plan.as_ref().ok_or("the GitSource has no `plan`")?;
        let workflow = self.issuers.check(token, access).await.map_err(|error| format!("the token: {error}"))?;
        Ok(Allowed { source, spec, workflow })
    }

    fn turn(self: Arc<Planner>, place: &Place) -> Option<Turn> {
        let slot = self.slots.clone().try_acquire_owned().ok()?;
        let is_first = self.busy.lock().unwrap_or_else(PoisonError::into_inner).insert(place.namespace.clone());
        is_first.then(|| Turn { planner: self, place: place.clone(), _slot: slot })
    }

    async fn plan(&self, place: &Place, allowed: Allowed, from: Option<String>) -> anyhow::Result<Plan> {
        let Allowed { source, spec, workflow } = allowed;
        let status = source.status.clone().unwrap_or_default();
        let applied = || status.applied.as_ref().or(status.seen.as_ref()).map(|revision| revision.commit.clone());
        let old = from.or_else(applied);
        let remote = Remote::parse(&spec.url).map_err(|why| anyhow!("the URL of the source: {why}"))?;
        let store = self.stores.open(&remote).await?;
        self.fetch(&store, place, &spec, &remote, &workflow.commit).await?;
        if let Some(old) = &old {
            self.fetch(&store, place, &spec, &remote, old).await?;
        }
        let name = workflow.reference.as_str();
        let new = read::revision(&store, name, &workflow.commit, &spec.path, &spec.exclude, spec.kustomize, None)?;
        let old = match &old {
            Some(commit) => {
                let short = commit.get(..8).unwrap_or(commit);
                read::revision(&store, short, commit, &spec.path, &spec.exclude, spec.kustomize, Some(&new))?
            }
            None => Default::default(),
        };
        let scope = scope(place, &spec);
        let api = account::acting_as(&self.api, &place.namespace, &spec.service_account);
        let cluster = Cluster { api, namespace: scope.namespace.to_string() };
        // Forecasts never wait, so that no timeout ends them: they look at the clock themselves.
        let deadline = Some(std::time::Instant::now() + FORECAST_TIME);
        let rules = Rules { scope, path: spec.path.clone(), source: place.to_string(), spec: Some(spec), deadline };
        let source = Source::of(place.clone(), source)?;
        let mut plan = live::against(&cluster, &Sides { old, new }, Some(source), &rules).await?;
        if let Some(live) = &mut plan.live {
            live.cluster.clone_from(&self.cluster);
        }
        Ok(plan)
    }

    /// Lets go of stores that nobody asked for lately, or that hold too much.
    async fn tidy(&self) {
        let (count, idle, plans) = STORES;
        let stays = |used: &Use| used.later < count && used.last.elapsed() < idle && used.times < plans;
        self.stores.remove_all_but(|_, used| stays(used)).await;
    }

    /// Brings a commit from the source's own repository, with its own Secret, under the same rules as a sync. The host
    /// is asked also if the commit is here: it may be here because another tenant's source may read it.
    async fn fetch(
        &self,
        store: &Store,
        place: &Place,
        spec: &GitSource,
        remote: &Remote,
        commit: &str,
    ) -> anyhow::Result<()> {
        let reader = account::acting_as(&self.api, &place.namespace, &spec.service_account);
        let access = Secrets::new(reader).access(&place.namespace, spec, remote).await?;
        let reference = Reference::Commit(commit.to_owned());
        let limits = FetchLimits { time: PLAN_TIME, ..FetchLimits::default() };
        git::fetch(store, remote, &reference, None, &access, &self.network, &limits).await?;
        Ok(())
    }
}

/// The plan, and what a workflow shows of it.
fn answer(plan: &Plan) -> Option<Response<Full<Bytes>>> {
    let text = serde_json::to_string(&StepReport::of(plan)).ok()?;
    (text.len() <= ANSWER_BYTES).then(|| json(StatusCode::OK, text))
}

fn error(code: StatusCode, message: &str) -> Response<Full<Bytes>> {
    json(code, serde_json::json!({ "error": message }).to_string())
}

fn json(code: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
