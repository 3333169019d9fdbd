//! An AnalysisRun that a person starts from a template. Never reads a Secret, never looks anything up.

use crate::{
    api::{
        self, AnalysisTemplate, Argument,
        constants::{API_VERSION, annotation, kind, label},
    },
    kubernetes::value::Value,
    model::arguments,
    value,
};

/// What a person says about the run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wishes {
    /// Its name; without one it is named after `generate`, or after the template.
    pub name: Option<String>,
    /// How its name begins.
    pub generate: Option<String>,
    /// Where it runs.
    pub namespace: String,
    /// Which controller looks after it.
    pub instance: Option<String>,
    /// Values for the template's arguments.
    pub arguments: Vec<(String, String)>,
}

/// The run, or why there is none.
pub fn run(template: &Value, wishes: &Wishes) -> Result<Value, String> {
    let read: AnalysisTemplate = api::read(template).object;
    if !template.list_at(&["spec", "templates"]).is_empty() {
        return Err("the template refers to others; only a Rollout or an Experiment can put them together".to_owned());
    }
    let given = wishes.arguments.iter().map(|(name, value)| Argument {
        name: name.clone(),
        value: Some(value.clone()),
        value_from: None,
    });
    let given: Vec<Argument> = given.collect();
    // What a template does not declare is taken as given; what it declares must have a value.
    let merged = if read.spec.args.is_empty() { given } else { arguments::merge(&given, &read.spec.args)? };
    let mut run = value!({"apiVersion": API_VERSION, "kind": kind::ANALYSIS_RUN});
    match (&wishes.name, &wishes.generate) {
        (Some(name), _) => run.set_at(&["metadata", "name"], name.as_str()),
        (None, Some(beginning)) => run.set_at(&["metadata", "generateName"], beginning.as_str()),
        (None, None) if read.metadata.name.is_empty() => return Err("name is invalid".to_owned()),
        (None, None) => run.set_at(&["metadata", "generateName"], format!("{}-", read.metadata.name)),
    }
    run.set_at(&["metadata", "namespace"], wishes.namespace.as_str());
    for part in ["labels", "annotations"] {
        if let Some(entries) = template.at(&["metadata", part]) {
            run.set_at(&["metadata", part], entries.clone());
        }
    }
    run.remove_at(&["metadata", "annotations", annotation::LAST_APPLIED]);
    if let Some(instance) = &wishes.instance {
        run.set_at(&["metadata", "labels", label::INSTANCE_ID], instance.as_str());
    }
    run.set_at(&["spec"], template.get("spec").cloned().unwrap_or_else(Value::object));
    if !merged.is_empty() {
        run.set_at(&["spec", "args"], Value::list(merged.iter().map(api::write)));
    }
    Ok(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(args: Value) -> Value {
        value!({
            "kind": "AnalysisTemplate",
            "metadata": {
                "name": "rate", "uid": "u", "resourceVersion": "5", "labels": {"team": "a"},
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "b"},
            },
            "spec": {"metrics": [{"name": "m"}], "args": args},
        })
    }

    #[test]
    fn a_run_has_the_templates_metrics_and_the_values_given() {
        let wishes = Wishes {
            namespace: "shop".into(),
            instance: Some("i".into()),
            arguments: vec![("host".into(), "a=b".into()), ("other".into(), "x".into())],
            ..Wishes::default()
        };
        let declared = value!([{"name": "host"}, {"name": "port", "value": "80"}]);
        let made = run(&template(declared), &wishes).unwrap();
        let expected = value!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "AnalysisRun",
            "metadata": {
                "generateName": "rate-", "namespace": "shop", "annotations": {"note": "b"},
                "labels": {"team": "a", "argo-rollouts.argoproj.io/controller-instance-id": "i"},
            },
            "spec": {
                "metrics": [{"name": "m"}],
                "args": [{"name": "host", "value": "a=b"}, {"name": "port", "value": "80"}],
            },
        });
        assert_eq!(made, expected);
        let named = Wishes { name: Some("now".into()), ..wishes };
        assert_eq!(run(&template(value!([])), &named).unwrap().str_at(&["metadata", "name"]), Some("now"));
    }

    #[test]
    fn what_is_missing_is_named() {
        let wishes = Wishes::default();
        let refused = |template: &Value| run(template, &wishes).unwrap_err();
        assert_eq!(refused(&template(value!([{"name": "host"}]))), "args.host was not resolved");
        assert_eq!(refused(&value!({"spec": {}})), "name is invalid");
        let mut nested = template(value!([]));
        nested.set_at(&["spec", "templates"], value!([{"templateName": "x"}]));
        assert!(refused(&nested).starts_with("the template refers to others"));
    }
}
