//! The methods of step plugins.

use std::sync::Arc;

use serde_json::Value as Json;

use super::Call;
use crate::{
    answer::{AnswerError, Fields},
    gob::Value,
    object::{ObjectError, Part, Rollout, compact, table},
};

/// What a step plugin is called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub enum Operation {
    /// To do its work, as often as it wants.
    Run,
    /// To stop it: the update is promoted past the step.
    Terminate,
    /// To undo it: the update is aborted.
    Abort,
}

impl Operation {
    /// Its name, on the wire and in status.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Run => "Run",
            Operation::Terminate => "Terminate",
            Operation::Abort => "Abort",
        }
    }
}

/// What a step plugin is told beside the Rollout.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Context<'a> {
    /// The plugin's name.
    pub plugin: &'a str,
    /// The step's configuration.
    pub config: Option<&'a Json>,
    /// What the plugin reported last.
    pub status: Option<&'a Json>,
}

/// What a step plugin answers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StepResult {
    /// Running, Successful, Failed, Error; empty leaves it as it was.
    pub phase: String,
    /// Why.
    pub message: String,
    /// When to call again, in nanoseconds.
    pub requeue_after: i64,
    /// What the plugin wants to find again.
    pub status: Option<Json>,
}

/// Calls an operation. Answered with a result and an `RpcError`.
pub fn operate(
    operation: Operation,
    rollout: Option<&Rollout<'_>>,
    context: Option<Context<'_>>,
) -> Result<Call, ObjectError> {
    let name = match operation {
        Operation::Run => "step.RunArgs",
        Operation::Terminate => "step.TerminateArgs",
        Operation::Abort => "step.AbortArgs",
    };
    let rollout = rollout.map_or(Part::Nil, Part::Rollout);
    let context = context.map_or(Part::Nil, |context| Part::Plain(wire(context)));
    let value = table().argument(name, &[("Rollout", rollout), ("Context", context)])?;
    Ok(Call::with(operation.name(), name, value))
}

fn wire(context: Context<'_>) -> Value {
    let raw = |json: Option<&Json>| Value::Bytes(json.map(compact).unwrap_or_default().into_bytes());
    Value::Struct(vec![
        (Arc::from("PluginName"), Value::Text(context.plugin.to_owned())),
        (Arc::from("Config"), raw(context.config)),
        (Arc::from("Status"), raw(context.status)),
    ])
}

/// Reads the answer: a result, or the text of an error.
pub fn read_result(answer: &Value) -> Result<Result<StepResult, String>, AnswerError> {
    let fields = Fields::of(answer, "Response")?;
    let error = fields.inner("Error")?.text("ErrorString")?;
    if !error.is_empty() {
        return Ok(Err(error));
    }
    let result = fields.inner("Result")?;
    Ok(Ok(StepResult {
        phase: result.text("Phase")?,
        message: result.text("Message")?,
        requeue_after: result.int("RequeueAfter")?,
        status: result.json("Status")?,
    }))
}
