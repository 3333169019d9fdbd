//! A plugin that is started when it is needed, started again when it has ended, and called with a deadline.
//!
//! Whatever a plugin does costs its own calls only: start, initialisation and calls have time limits, a process that ends
//! again and again is started less and less often, and at most so many calls are open at once.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::Value as Json;
use tokio::{
    sync::{Mutex, Semaphore},
    time::{Instant, timeout},
};

use crate::{
    answer::{self, AnswerError},
    call::{
        self, Call,
        metric::{self, Measurement},
        router::{self, Verified},
        step::{self, Context, Operation, StepResult},
    },
    connection::{Connection, Times, link},
    gob::{Limits, Value},
    link::Service,
    object::{ObjectError, Rollout},
    output::{Log, printable},
    process::{self, Launch},
    rpc::Argument,
};

/// How long things may take, and how much may be open.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// From the start of the process to the line that says where it listens, and to the first answer after it.
    pub start: Duration,
    /// `InitPlugin`.
    pub init: Duration,
    /// The sign of life before each use.
    pub ping: Duration,
    /// Any other call. Argo Rollouts waits for ever.
    pub call: Duration,
    /// `Control.Quit`, and then the end of the process.
    pub quit: Duration,
    /// Calls that are open at once; more wait, within their own time.
    pub open_calls: usize,
    /// What the plugin's answers may take.
    pub answers: Limits,
    /// yamux's own signs of life.
    pub keepalive: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            start: Duration::from_secs(60),
            init: Duration::from_secs(60),
            ping: Duration::from_secs(10),
            call: Duration::from_secs(300),
            quit: Duration::from_secs(2),
            open_calls: 32,
            answers: Limits::default(),
            keepalive: Duration::from_secs(30),
        }
    }
}

/// Why a call has no answer. The text is that of Argo Rollouts; what a plugin wrote in it is made printable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The plugin cannot be had.
    #[error("unable to start plugin system: {0}")]
    Unavailable(String),
    /// The call was made and failed.
    #[error("{method} rpc call error: {reason}")]
    Failed {
        /// What was called.
        method: &'static str,
        /// Why.
        reason: String,
    },
    /// The plugin answered with an error of its own.
    #[error("{0}")]
    Plugin(String),
    /// The objects are not what they should be.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

/// One configured plugin.
pub struct Plugin {
    launch: Launch,
    bounds: Bounds,
    log: Log,
    state: Mutex<State>,
    slots: Semaphore,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// Ends and failed starts since it last ran well.
    failures: u32,
    /// When it may be started again, and why it ended.
    rest: Option<(Instant, String)>,
    is_stopped: bool,
}

/// A process that ran so long has run well.
const RAN_WELL: Duration = Duration::from_secs(60);
/// The longest time between two starts.
const LONGEST_REST: Duration = Duration::from_secs(60);

impl Plugin {
    /// A plugin that is not started yet.
    pub fn new(launch: Launch, bounds: Bounds, log: Log) -> Self {
        Plugin {
            slots: Semaphore::new(bounds.open_calls.max(1)),
            launch,
            bounds,
            log,
            state: Mutex::new(State::default()),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.launch.name
    }

    /// Calls a method, within the time of a call.
    pub async fn call(&self, call: Call) -> Result<Value, CallError> {
        let method = call.method;
        let late = |_| self.late(method, self.bounds.call);
        // A call that waits for its turn must not wait longer than its turn would take.
        let slot = timeout(self.bounds.call, self.slots.acquire()).await.map_err(late)?;
        let _slot = slot.map_err(|_| CallError::Unavailable("the plugin is stopped".into()))?;
        let connection = self.connection().await?;
        let answer = connection.call(Service::Plugin, method, call.argument);
        let outcome = timeout(self.bounds.call, answer).await.map_err(late)?;
        outcome.map_err(|reason| CallError::Failed { method, reason: printable(&reason) })
    }

    fn late(&self, method: &'static str, limit: Duration) -> CallError {
        CallError::Failed { method, reason: format!("no answer within {} s", limit.as_secs_f64()) }
    }

    /// The connection to a process that has just given a sign of life; starts one if there is none.
    async fn connection(&self) -> Result<Arc<Connection>, CallError> {
        let connection = self.running().await?;
        let ping = connection.call(Service::Control, "Ping", Argument::Bool(true));
        let outcome = match timeout(self.bounds.ping, ping).await {
            Ok(Ok(_)) => return Ok(connection),
            Ok(Err(reason)) => printable(&reason),
            Err(_) => format!("no answer within {} s", self.bounds.ping.as_secs_f64()),
        };
        let mut state = self.state.lock().await;
        if state.connection.as_ref().is_some_and(|current| Arc::ptr_eq(current, &connection)) {
            state.ended(&connection, &outcome);
            state.connection = None;
        }
        drop(state);
        // An end that was noticed only now is no reason to fail: Argo Rollouts starts the plugin again at once.
        if connection.ended().is_some() {
            return self.running().await;
        }
        connection.end().await;
        Err(CallError::Unavailable(format!(
            "could not ping plugin will cleanup process so we can restart it next reconcile ({outcome})"
        )))
    }

    /// The connection to a process; starts one if there is none.
    async fn running(&self) -> Result<Arc<Connection>, CallError> {
        let mut state = self.state.lock().await;
        if state.is_stopped {
            return Err(CallError::Unavailable(format!("plugin {} is stopped", self.name())));
        }
        if let Some(connection) = state.connection.take() {
            match connection.ended() {
                None => return Ok(Arc::clone(state.connection.insert(connection))),
                Some(reason) => state.ended(&connection, reason),
            }
        }
        if let Some((until, reason)) = &state.rest
            && let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
        {
            let seconds = left.as_secs_f64().ceil();
            let text =
                format!("plugin {} ended and is started again in {seconds} s at the earliest: {reason}", self.name());
            return Err(CallError::Unavailable(text));
        }
        match self.start().await {
            Ok(connection) => {
                state.rest = None;
                Ok(Arc::clone(state.connection.insert(Arc::new(connection))))
            }
            Err(reason) => {
                let reason = printable(&reason);
                state.failed(&reason);
                Err(CallError::Unavailable(reason))
            }
        }
    }

    async fn start(&self) -> Result<Connection, String> {
        let name = self.name();
        let unable = |reason: String| format!("unable to get plugin client ({name}): {reason}");
        let begun = process::start(&self.launch, self.bounds.start, &self.log).await;
        let (process, socket) = begun.map_err(|error| unable(error.to_string()))?;
        let link = link(self.launch.kind.interface(), self.bounds.answers).map_err(unable)?;
        let times =
            Times { ping_every: self.bounds.keepalive, pong_within: self.bounds.ping, exit_within: self.bounds.quit };
        let open = Connection::open(process, socket, link, Arc::clone(&self.launch.name), Arc::clone(&self.log), times);
        let open = timeout(self.bounds.start, open).await;
        let connection =
            open.map_err(|_| unable("timeout while waiting for plugin to start".into()))?.map_err(unable)?;
        let call = call::init();
        let answer = timeout(self.bounds.init, connection.call(Service::Plugin, call.method, call.argument)).await;
        let text = match answer {
            Ok(Ok(value)) => answer::rpc_error(&value).map_err(|error| error.to_string()),
            Ok(Err(reason)) => Err(format!("InitPlugin rpc call error: {reason}")),
            Err(_) => Err(self.late("InitPlugin", self.bounds.init).to_string()),
        };
        match text {
            Ok(text) if text.is_empty() => Ok(connection),
            // Argo Rollouts would take the plugin at its next use, without initialising it again.
            Ok(text) | Err(text) => {
                connection.end().await;
                Err(format!("unable to initialize plugin via rpc ({name}): {text}"))
            }
        }
    }

    /// Ends the process: it is asked to, and killed if it does not.
    pub async fn stop(&self) {
        let mut state = self.state.lock().await;
        state.is_stopped = true;
        let Some(connection) = state.connection.take() else { return };
        drop(state);
        // A plugin may be gone before its answer is out.
        let quit = connection.call(Service::Control, "Quit", Argument::Bool(true));
        let quit = async {
            let _ = quit.await;
            connection.gone().await;
        };
        let _ = timeout(self.bounds.quit, quit).await;
        connection.end().await;
    }
}

impl State {
    /// Notes that a process has ended without being told to.
    fn ended(&mut self, connection: &Connection, reason: &str) {
        if connection.since.elapsed() >= RAN_WELL {
            self.failures = 0;
        }
        self.failed(reason);
    }

    /// The first new start is made at once; then the time between two doubles.
    fn failed(&mut self, reason: &str) {
        self.failures = self.failures.saturating_add(1);
        self.rest = Some((Instant::now() + rest(self.failures), printable(reason)));
    }
}

fn rest(failures: u32) -> Duration {
    match failures {
        0 | 1 => Duration::ZERO,
        more => Duration::from_secs(1 << (more - 2).min(6)).min(LONGEST_REST),
    }
}

/// Turns what a plugin answers into what was asked for.
fn read<T>(method: &'static str, outcome: Result<T, AnswerError>) -> Result<T, CallError> {
    outcome.map_err(|error| CallError::Failed { method, reason: error.to_string() })
}

fn accepted(method: &'static str, answer: &Value) -> Result<(), CallError> {
    let error = read(method, answer::rpc_error(answer))?;
    if error.is_empty() { Ok(()) } else { Err(CallError::Plugin(printable(&error))) }
}

/// What any plugin offers.
impl Plugin {
    /// What the plugin calls itself.
    pub async fn plugin_type(&self) -> Result<String, CallError> {
        let answer = self.call(call::plugin_type()).await?;
        Ok(printable(&read("Type", answer::text(&answer, "Type"))?))
    }
}

/// A plugin as a metric provider.
#[derive(Clone)]
pub struct MetricProvider(pub Arc<Plugin>);

impl MetricProvider {
    /// Begins a measurement.
    pub async fn run(&self, analysis_run: &Json, metric: &Json) -> Result<Measurement, CallError> {
        self.measure(metric::run(Some(analysis_run), metric)?).await
    }

    /// Goes on with a measurement.
    pub async fn resume(&self, run: &Json, metric: &Json, measurement: &Json) -> Result<Measurement, CallError> {
        self.measure(metric::resume(Some(run), metric, measurement)?).await
    }

    /// Ends a measurement.
    pub async fn terminate(&self, run: &Json, metric: &Json, measurement: &Json) -> Result<Measurement, CallError> {
        self.measure(metric::terminate(Some(run), metric, measurement)?).await
    }

    async fn measure(&self, call: Call) -> Result<Measurement, CallError> {
        let method = call.method;
        read(method, metric::read_measurement(&self.0.call(call).await?))
    }

    /// Drops what the plugin keeps beyond a number of measurements.
    pub async fn garbage_collect(&self, run: &Json, metric: &Json, limit: i64) -> Result<(), CallError> {
        accepted("GarbageCollect", &self.0.call(metric::garbage_collect(Some(run), metric, limit)?).await?)
    }

    /// What to show beside the results.
    pub async fn metadata(&self, metric: &Json) -> Result<BTreeMap<String, String>, CallError> {
        read("GetMetadata", metric::read_metadata(&self.0.call(metric::metadata(metric)?).await?))
    }
}

/// A plugin as a traffic router.
#[derive(Clone)]
pub struct TrafficRouter(pub Arc<Plugin>);

impl TrafficRouter {
    /// Says which versions are canary and stable.
    pub async fn update_hash(
        &self,
        rollout: &Rollout<'_>,
        canary: &str,
        stable: &str,
        destinations: &Json,
    ) -> Result<(), CallError> {
        self.move_traffic(router::update_hash(rollout, canary, stable, destinations)?).await
    }

    /// Sets the canary's share and those of an experiment.
    pub async fn set_weight(&self, rollout: &Rollout<'_>, weight: i32, destinations: &Json) -> Result<(), CallError> {
        self.move_traffic(router::set_weight(rollout, weight, destinations)?).await
    }

    /// Sends requests with certain headers to the canary.
    pub async fn set_header_route(&self, rollout: &Rollout<'_>, route: &Json) -> Result<(), CallError> {
        self.move_traffic(router::set_header_route(rollout, route)?).await
    }

    /// Copies requests to the canary.
    pub async fn set_mirror_route(&self, rollout: &Rollout<'_>, route: &Json) -> Result<(), CallError> {
        self.move_traffic(router::set_mirror_route(rollout, route)?).await
    }

    /// Removes the routes of the two methods before.
    pub async fn remove_managed_routes(&self, rollout: &Rollout<'_>) -> Result<(), CallError> {
        self.move_traffic(router::remove_managed_routes(rollout)?).await
    }

    /// Whether the shares are in effect.
    pub async fn verify_weight(
        &self,
        rollout: &Rollout<'_>,
        weight: i32,
        destinations: &Json,
    ) -> Result<Verified, CallError> {
        let answer = self.0.call(router::verify_weight(rollout, weight, destinations)?).await?;
        let (verified, error) = read("VerifyWeight", router::read_verified(&answer))?;
        if error.is_empty() { Ok(verified) } else { Err(CallError::Plugin(printable(&error))) }
    }

    async fn move_traffic(&self, call: Call) -> Result<(), CallError> {
        let method = call.method;
        accepted(method, &self.0.call(call).await?)
    }
}

/// A plugin as a step.
#[derive(Clone)]
pub struct StepPlugin(pub Arc<Plugin>);

impl StepPlugin {
    /// Calls an operation.
    pub async fn operate(
        &self,
        operation: Operation,
        rollout: &Rollout<'_>,
        context: Context<'_>,
    ) -> Result<StepResult, CallError> {
        let answer = self.0.call(step::operate(operation, Some(rollout), Some(context))?).await?;
        read(operation.name(), step::read_result(&answer))?.map_err(|error| CallError::Plugin(printable(&error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_that_keeps_ending_is_started_less_and_less_often() {
        let rests: Vec<_> = (0..10).map(|failures| rest(failures).as_secs()).collect();
        assert_eq!(rests, [0, 0, 1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(rest(u32::MAX), LONGEST_REST);
    }
}
