//! The methods of traffic routers.

use serde_json::Value as Json;

use super::Call;
use crate::{
    answer::{AnswerError, Fields},
    gob::Value,
    object::{ObjectError, Part, Rollout, table},
};

/// What a router says about the weights in effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verified {
    /// They are those that were set.
    Yes,
    /// They are not, yet.
    No,
    /// The router cannot tell.
    NotImplemented,
}

/// `UpdateHash`: which versions are canary and stable, before weights are set. Answered with an `RpcError`.
pub fn update_hash(
    rollout: &Rollout<'_>,
    canary: &str,
    stable: &str,
    destinations: &Json,
) -> Result<Call, ObjectError> {
    let name = "UpdateHashArgs";
    let parts = [
        ("Rollout", Part::Rollout(rollout)),
        ("CanaryHash", Part::Plain(Value::Text(canary.to_owned()))),
        ("StableHash", Part::Plain(Value::Text(stable.to_owned()))),
        ("AdditionalDestinations", Part::Json(destinations)),
    ];
    Ok(Call::with("UpdateHash", name, table().argument(name, &parts)?))
}

/// `SetWeight`: the canary's share, and those of an experiment. Answered with an `RpcError`.
pub fn set_weight(rollout: &Rollout<'_>, weight: i32, destinations: &Json) -> Result<Call, ObjectError> {
    weighted("SetWeight", rollout, weight, destinations)
}

/// `VerifyWeight`: whether these shares are in effect. Answered with a [`Verified`] and an `RpcError`.
pub fn verify_weight(rollout: &Rollout<'_>, weight: i32, destinations: &Json) -> Result<Call, ObjectError> {
    weighted("VerifyWeight", rollout, weight, destinations)
}

fn weighted(
    method: &'static str,
    rollout: &Rollout<'_>,
    weight: i32,
    destinations: &Json,
) -> Result<Call, ObjectError> {
    let name = "SetWeightAndVerifyWeightArgs";
    let parts = [
        ("Rollout", Part::Rollout(rollout)),
        ("DesiredWeight", Part::Plain(Value::Int(weight.into()))),
        ("AdditionalDestinations", Part::Json(destinations)),
    ];
    Ok(Call::with(method, name, table().argument(name, &parts)?))
}

/// `SetHeaderRoute`: sends requests with certain headers to the canary; without a match, no longer. Answered with an
/// `RpcError`.
pub fn set_header_route(rollout: &Rollout<'_>, route: &Json) -> Result<Call, ObjectError> {
    let name = "SetHeaderArgs";
    let parts = [("Rollout", Part::Rollout(rollout)), ("SetHeaderRoute", Part::Json(route))];
    Ok(Call::with("SetHeaderRoute", name, table().argument(name, &parts)?))
}

/// `SetMirrorRoute`: copies requests to the canary; without a match, no longer. Answered with an `RpcError`.
pub fn set_mirror_route(rollout: &Rollout<'_>, route: &Json) -> Result<Call, ObjectError> {
    let name = "SetMirrorArgs";
    let parts = [("Rollout", Part::Rollout(rollout)), ("SetMirrorRoute", Part::Json(route))];
    Ok(Call::with("SetMirrorRoute", name, table().argument(name, &parts)?))
}

/// `RemoveManagedRoutes`: removes the routes of the two methods before. Answered with an `RpcError`.
pub fn remove_managed_routes(rollout: &Rollout<'_>) -> Result<Call, ObjectError> {
    let name = "RemoveManagedRoutesArgs";
    Ok(Call::with("RemoveManagedRoutes", name, table().argument(name, &[("Rollout", Part::Rollout(rollout))])?))
}

/// Reads the answer to `VerifyWeight`: the verdict and the text of an error, empty if there is none.
pub fn read_verified(answer: &Value) -> Result<(Verified, String), AnswerError> {
    let fields = Fields::of(answer, "VerifyWeightResponse")?;
    let verified = match fields.int("Verified")? {
        1 => Verified::Yes,
        2 => Verified::NotImplemented,
        // Argo Rollouts takes any other number for a no.
        _ => Verified::No,
    };
    Ok((verified, fields.inner("Err")?.text("ErrorString")?))
}
