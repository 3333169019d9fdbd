//! What is wrong with the objects that a Rollout names.

use serde_json::Value;
use tidegate::{
    api,
    model::references::{self, AnalysisRole, References, ServiceRole, Templates},
};

use super::{
    check,
    validation::{field, read, shown},
};

/// The role of a Service. Argo Rollouts checks nothing for a role it does not know; here there is no such role.
fn role(name: &str) -> Option<ServiceRole> {
    Some(match name {
        "ActiveService" => ServiceRole::Active,
        "PreviewService" => ServiceRole::Preview,
        "CanaryService" => ServiceRole::Canary,
        "StableService" => ServiceRole::Stable,
        "PingService" => ServiceRole::Ping,
        "PongService" => ServiceRole::Pong,
        _ => return None,
    })
}

fn list<T>(value: &Value, one: impl FnMut(&Value) -> T) -> Vec<T> {
    value.as_array().into_iter().flatten().map(one).collect()
}

fn templates(input: &Value) -> Option<Templates> {
    let role = match input["type"].as_str().unwrap() {
        "PrePromotionAnalysis" => AnalysisRole::PrePromotion,
        "PostPromotionAnalysis" => AnalysisRole::PostPromotion,
        "InlineAnalysis" => AnalysisRole::Step(input["stepIndex"].as_u64().unwrap_or(0) as usize),
        "BackgroundAnalysis" => AnalysisRole::Background,
        _ => return None,
    };
    let template = |input: &Value| {
        let template: api::AnalysisTemplate = read(input);
        (template.metadata.name, template.spec)
    };
    let mut templates = list(&input["templates"], template);
    templates.extend(list(&input["clusterTemplates"], template));
    Some(Templates { role, templates, arguments: list(&input["args"], read) })
}

#[test]
fn vectors_validation_references() {
    check("validation-references", |input, expect| {
        let given = &input["references"];
        let objects = |name: &str| list(&given[name], |object| object.clone().into());
        let references = References {
            services: list(&given["services"], |one| {
                Some((role(one["type"].as_str().unwrap())?, one["service"].clone().into()))
            })
            .into_iter()
            .flatten()
            .collect(),
            templates: list(&given["analysisTemplates"], templates).into_iter().flatten().collect(),
            ingresses: objects("ingresses"),
            virtual_services: objects("virtualServices"),
            mappings: objects("ambassadorMappings"),
            app_mesh: objects("appMeshResources"),
        };
        let parsed = references::check(&read(&input["rollout"]), &references);
        let mut ours: Vec<Value> = parsed.argo.iter().map(|words| shown(field(words))).collect();
        let mut answer = expect.clone();
        if expect["unordered"] == true {
            // Go walks maps in any order: the order of theirs is no better than that of ours.
            let mut theirs = expect["errors"].as_array().unwrap().clone();
            let text = |error: &Value| error["message"].as_str().unwrap().to_owned();
            theirs.sort_by_key(text);
            ours.sort_by_key(text);
            if ours == theirs {
                return Some(answer);
            }
        }
        answer["errors"] = ours.into();
        Some(answer)
    });
}
