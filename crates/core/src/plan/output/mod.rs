//! A plan as text, Markdown, JSON or HTML. Returns text; prints nothing.

mod html;
mod json;
mod markdown;
mod picture;
mod text;

pub use html::html;
pub use json::{hooks as json_hooks, json};
pub use markdown::{LIMIT, markdown};
pub use picture::{drawing, svg};
pub use text::{hooks as text_hooks, text};

use super::{
    Plan, RolloutPlan, Side, Starts, What,
    escape::line,
    forecast::{Query, Step, length},
};

/// `main (1a2b3c4d)`
fn side(side: &Side) -> String {
    let name = line(&side.name);
    match side.commit.get(..8) {
        Some(short) if !name.starts_with(short) => format!("{name} ({short})"),
        Some(_) | None => name,
    }
}

/// `1 to create, 2 to change, 0 to delete, 40 unchanged`
fn counts(plan: &Plan) -> String {
    let count = |what| plan.count(what);
    let keep = match count(What::Keep) {
        0 => String::new(),
        kept => format!("{kept} to keep, "),
    };
    format!(
        "{} to create, {} to change, {} to delete, {keep}{} unchanged",
        count(What::Create),
        count(What::Change),
        count(What::Delete),
        plan.unchanged
    )
}

/// What a forecast comes to, in a few lines.
fn facts(rollout: &RolloutPlan) -> Vec<String> {
    let Some(forecast) = &rollout.forecast else { return Vec::new() };
    let mut facts = Vec::new();
    let end = match forecast.outcome {
        super::forecast::Outcome::Healthy => format!("earliest finish after {}", length(forecast.ends)),
        super::forecast::Outcome::Degraded => {
            format!("degraded after {}: {}", length(forecast.ends), line(&forecast.message))
        }
        super::forecast::Outcome::Unfinished => {
            format!("not finished after {}: {}", length(forecast.ends), line(&forecast.message))
        }
    };
    facts.push(end);
    facts.push(match forecast.approvals.len() {
        0 => "no approvals".to_owned(),
        1 => "1 approval".to_owned(),
        several => format!("{several} approvals"),
    });
    let peak = &forecast.peak;
    let mut most = format!("peak {} pods", peak.pods);
    if peak.cpu_millis > 0 {
        most += &format!(", {} CPU", cpu(peak.cpu_millis));
    }
    if peak.memory_bytes > 0 {
        most += &format!(", {} memory requested", memory(peak.memory_bytes));
    }
    facts.push(most);
    let (least, wanted) = forecast.lowest;
    if rollout.starts == Starts::FirstDeployment {
        return facts;
    }
    facts.push(format!("never below {least} available of {wanted} wanted"));
    facts
}

/// `2/4`; before the first step and after the last one there is no number.
fn numbered(step: &Step) -> String {
    match step.number {
        0 => "start".to_owned(),
        number if number > step.of => "end".to_owned(),
        number => format!("{number}/{}", step.of),
    }
}

/// What a metric said when it was asked: `rate: Successful [0.99]`
fn asked(query: &Query) -> String {
    let value = if query.value.is_empty() { String::new() } else { format!(" {}", line(&query.value)) };
    let message = if query.message.is_empty() { String::new() } else { format!(" {}", line(&query.message)) };
    format!("{}: {}{value}{message}", line(&query.metric), query.phase)
}

fn cpu(millis: i64) -> String {
    if millis % 1000 == 0 { format!("{}", millis / 1000) } else { format!("{millis}m") }
}

fn memory(bytes: i64) -> String {
    const MI: i64 = 1 << 20;
    match bytes {
        _ if bytes % (MI << 10) == 0 => format!("{}Gi", bytes / (MI << 10)),
        _ if bytes >= MI => format!("{}Mi", (bytes + MI / 2) / MI),
        _ => format!("{bytes}"),
    }
}
