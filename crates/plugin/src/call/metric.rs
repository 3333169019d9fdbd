//! The methods of metric providers.
//!
//! The AnalysisRun goes with its spec unresolved, the Metric beside it with its arguments in place.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value as Json;

use super::Call;
use crate::{
    answer::{self, AnswerError, Fields},
    gob::Value,
    object::{ObjectError, Part, table},
};

/// What a plugin measured. The phase is the plugin's own verdict: Argo Rollouts applies no condition to it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Measurement {
    /// Successful, Failed, Inconclusive, Error, Running, Pending; or whatever the plugin says.
    pub phase: String,
    /// Why.
    pub message: String,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// What was measured, as text.
    pub value: String,
    /// What the plugin wants to find again when it resumes.
    pub metadata: BTreeMap<String, String>,
    /// When to go on.
    pub resume_at: Option<Timestamp>,
}

/// `Run`: begins a measurement. Answered with a measurement.
pub fn run(analysis_run: Option<&Json>, metric: &Json) -> Result<Call, ObjectError> {
    let parts = [("AnalysisRun", object(analysis_run)), ("Metric", Part::Json(metric))];
    Ok(Call::with("Run", "RunArgs", table().argument("RunArgs", &parts)?))
}

/// `Resume`: goes on with a measurement that was not finished. Answered with a measurement.
pub fn resume(analysis_run: Option<&Json>, metric: &Json, measurement: &Json) -> Result<Call, ObjectError> {
    go_on("Resume", analysis_run, metric, measurement)
}

/// `Terminate`: ends a measurement that was not finished. Answered with a measurement.
pub fn terminate(analysis_run: Option<&Json>, metric: &Json, measurement: &Json) -> Result<Call, ObjectError> {
    go_on("Terminate", analysis_run, metric, measurement)
}

fn go_on(
    method: &'static str,
    analysis_run: Option<&Json>,
    metric: &Json,
    measurement: &Json,
) -> Result<Call, ObjectError> {
    let name = "TerminateAndResumeArgs";
    let parts = [
        ("AnalysisRun", object(analysis_run)),
        ("Metric", Part::Json(metric)),
        ("Measurement", Part::Json(measurement)),
    ];
    Ok(Call::with(method, name, table().argument(name, &parts)?))
}

/// `GarbageCollect`: drops what the plugin keeps of measurements beyond a limit. Answered with an `RpcError`.
pub fn garbage_collect(analysis_run: Option<&Json>, metric: &Json, limit: i64) -> Result<Call, ObjectError> {
    let name = "GarbageCollectArgs";
    let parts = [
        ("AnalysisRun", object(analysis_run)),
        ("Metric", Part::Json(metric)),
        ("Limit", Part::Plain(Value::Int(limit))),
    ];
    Ok(Call::with("GarbageCollect", name, table().argument(name, &parts)?))
}

/// `GetMetadata`: what to show beside a metric's results. Answered with texts by texts.
pub fn metadata(metric: &Json) -> Result<Call, ObjectError> {
    let name = "GetMetadataArgs";
    Ok(Call::with("GetMetadata", name, table().argument(name, &[("Metric", Part::Json(metric))])?))
}

fn object(json: Option<&Json>) -> Part<'_> {
    json.map_or(Part::Nil, Part::Json)
}

/// Reads the answer to `Run`, `Resume` and `Terminate`.
pub fn read_measurement(answer: &Value) -> Result<Measurement, AnswerError> {
    let fields = Fields::of(answer, "Measurement")?;
    Ok(Measurement {
        phase: fields.text("Phase")?,
        message: fields.text("Message")?,
        started_at: fields.time("StartedAt")?,
        finished_at: fields.time("FinishedAt")?,
        value: fields.text("Value")?,
        metadata: fields.texts("Metadata")?,
        resume_at: fields.time("ResumeAt")?,
    })
}

/// Reads the answer to `GetMetadata`.
pub fn read_metadata(answer: &Value) -> Result<BTreeMap<String, String>, AnswerError> {
    answer::texts(answer, "Metadata")
}

/// The measurement as Argo Rollouts notes it: an error says through what it came, and a call that failed is an error that
/// is over.
pub fn noted(method: Method, outcome: Result<Measurement, String>, now: Timestamp) -> Measurement {
    match outcome {
        Ok(mut measurement) => {
            if measurement.phase == "Error" {
                measurement.message = format!("failed to {} via plugin: {}", method.verb(), measurement.message);
            }
            measurement
        }
        Err(message) => {
            Measurement { phase: "Error".into(), message, finished_at: Some(now), ..Measurement::default() }
        }
    }
}

/// The methods that measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Begins.
    Run,
    /// Goes on.
    Resume,
    /// Ends.
    Terminate,
}

impl Method {
    fn verb(self) -> &'static str {
        match self {
            Method::Run => "run",
            Method::Resume => "resume",
            Method::Terminate => "terminate",
        }
    }
}
