//! The analysis templates that a Rollout names, and those that these name.
//!
//! A Rollout that names one that does not exist waits, with the words of Argo Rollouts, until it does. Never puts them
//! together, and never measures anything.

use crate::{
    api::{self, AnalysisRunArgument, AnalysisTemplate, AnalysisTemplateRef, AnalysisTemplateSpec, Rollout},
    kubernetes::{status::FieldError, value::Value},
    model::{
        problem::Words,
        references::{AnalysisRole, Templates},
    },
};

/// Where a template is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In the namespace of the Rollout.
    Namespace,
    /// In the cluster, for every namespace.
    Cluster,
}

impl Scope {
    fn of(reference: &AnalysisTemplateRef) -> Scope {
        if reference.cluster_scope == Some(true) { Scope::Cluster } else { Scope::Namespace }
    }

    /// The kind of a template that is kept there.
    pub fn kind(self) -> &'static str {
        match self {
            Scope::Namespace => "AnalysisTemplate",
            Scope::Cluster => "ClusterAnalysisTemplate",
        }
    }
}

/// A template that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Where it should be.
    pub scope: Scope,
    /// Its name.
    pub name: String,
    /// Where it is named.
    pub field: String,
}

impl From<Missing> for String {
    /// What a Rollout says about it.
    fn from(missing: Missing) -> String {
        let what = format!("{} '{}' not found", missing.scope.kind(), missing.name);
        Words::Field(FieldError::invalid(missing.field, missing.name.as_str(), what)).to_string()
    }
}

/// The template that a reference names, if it does not exist.
pub fn missing(reference: &AnalysisTemplateRef, known: &[Value]) -> Option<Missing> {
    find("", reference, known).err()
}

/// An analysis of a Rollout: what it is for, its templates and arguments.
type Analysis<'a> = (AnalysisRole, &'a [AnalysisTemplateRef], &'a [AnalysisRunArgument]);

/// The analyses of a Rollout, in the order in which they are looked at.
fn analyses(rollout: &Rollout) -> Vec<Analysis<'_>> {
    let strategy = &rollout.spec.strategy;
    let mut analyses: Vec<Analysis<'_>> = Vec::new();
    if let Some(strategy) = &strategy.blue_green {
        let before = strategy.pre_promotion_analysis.as_ref().map(|analysis| (AnalysisRole::PrePromotion, analysis));
        let after = strategy.post_promotion_analysis.as_ref().map(|analysis| (AnalysisRole::PostPromotion, analysis));
        let both = before.into_iter().chain(after);
        analyses.extend(both.map(|(role, analysis)| (role, &analysis.templates[..], &analysis.args[..])));
    } else if let Some(strategy) = &strategy.canary {
        for (index, step) in strategy.steps.iter().enumerate() {
            let analysis = step.analysis.as_ref();
            analyses.extend(analysis.map(|of| (AnalysisRole::Step(index), &of.templates[..], &of.args[..])));
        }
        let background = strategy.analysis.as_ref();
        analyses.extend(background.map(|of| (AnalysisRole::Background, &of.templates[..], &of.args[..])));
    }
    analyses
}

/// Whether a Rollout names templates.
pub fn are_named(rollout: &Rollout) -> bool {
    analyses(rollout).iter().any(|(_, templates, _)| !templates.is_empty())
}

/// The templates that a Rollout names, directly or through others, as far as they exist, and whether any is the cluster's.
pub fn reach(rollout: &Rollout, find: impl Fn(Scope, &str) -> Option<Value>) -> (Vec<Value>, bool) {
    let named = analyses(rollout).into_iter().flat_map(|(_, templates, _)| templates.to_vec());
    reach_from(named.collect(), find)
}

/// The same, from these references on.
pub fn reach_from(
    mut open: Vec<AnalysisTemplateRef>,
    find: impl Fn(Scope, &str) -> Option<Value>,
) -> (Vec<Value>, bool) {
    let mut met: Vec<(Scope, String)> = Vec::new();
    let mut found = Vec::new();
    while let Some(reference) = open.pop() {
        let key = (Scope::of(&reference), reference.template_name);
        // Templates may name each other in a circle.
        if met.contains(&key) {
            continue;
        }
        if let Some(template) = find(key.0, &key.1) {
            open.extend(api::read::<AnalysisTemplate>(&template).object.spec.templates);
            found.push(template);
        }
        met.push(key);
    }
    (found, met.iter().any(|(scope, _)| *scope == Scope::Cluster))
}

/// The templates of every analysis, or what is said about the first that does not exist.
pub(super) fn gather(rollout: &Rollout, known: &[Value]) -> Result<Vec<Templates>, String> {
    let mut gathered = Vec::new();
    for (role, references, arguments) in analyses(rollout) {
        let templates = follow_all(&role.field(), references, known)?;
        gathered.push(Templates { role, templates, arguments: arguments.to_vec() });
    }
    Ok(gathered)
}

/// The templates that an analysis names, directly or through others: those of the namespace first, then the cluster's.
pub fn follow_all(
    field: &str,
    references: &[AnalysisTemplateRef],
    known: &[Value],
) -> Result<Vec<(String, AnalysisTemplateSpec)>, Missing> {
    let mut met = Vec::new();
    follow(field, references, known, &mut met)?;
    // A stable sort keeps the order in which they were met.
    met.sort_by_key(|(scope, _, _)| *scope == Scope::Cluster);
    Ok(met.into_iter().map(|(_, name, template)| (name, template.spec)).collect())
}

/// Follows references to templates and from there on; each template counts once.
fn follow(
    field: &str,
    references: &[AnalysisTemplateRef],
    known: &[Value],
    met: &mut Vec<(Scope, String, AnalysisTemplate)>,
) -> Result<(), Missing> {
    for reference in references {
        let (scope, name) = (Scope::of(reference), &reference.template_name);
        if met.iter().any(|(other, met, _)| *other == scope && met == name) {
            continue;
        }
        let template: AnalysisTemplate = api::read(find(field, reference, known)?).object;
        let nested = template.spec.templates.clone();
        met.push((scope, name.clone(), template));
        follow("spec.templates", &nested, known, met)?;
    }
    Ok(())
}

/// The template that a reference names.
fn find<'k>(field: &str, reference: &AnalysisTemplateRef, known: &'k [Value]) -> Result<&'k Value, Missing> {
    let (scope, name) = (Scope::of(reference), reference.template_name.as_str());
    let is_it = |template: &&Value| {
        let namespace = template.str_at(&["metadata", "namespace"]).unwrap_or_default();
        let other = if namespace.is_empty() { Scope::Cluster } else { Scope::Namespace };
        other == scope && template.str_at(&["metadata", "name"]) == Some(name)
    };
    let found = known.iter().find(is_it);
    found.ok_or_else(|| Missing { scope, name: name.to_owned(), field: field.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    fn template(namespace: &str, name: &str, nested: Value) -> Value {
        let mut template = value!({
            "metadata": {"name": name},
            "spec": {"metrics": [{"name": name, "provider": {"job": {}}}], "templates": nested},
        });
        if !namespace.is_empty() {
            template.set_at(&["metadata", "namespace"], namespace);
        }
        template
    }

    fn rollout(references: Value) -> Rollout {
        let step = value!({"analysis": {"templates": references}});
        api::read(&value!({"spec": {"strategy": {"canary": {"steps": [{"setWeight": 1}, step]}}}})).object
    }

    #[test]
    fn the_first_template_that_does_not_exist_is_named_where_it_is_named() {
        let known = [
            template("shop", "a", value!([{"templateName": "b", "clusterScope": true}])),
            template("", "b", value!([{"templateName": "a"}])),
            template("shop", "c", value!([{"templateName": "d"}])),
        ];
        let at = "spec.strategy.canary.steps[1].analysis.templates";
        for (references, outcome) in [
            (value!([{"templateName": "a"}]), Ok(vec!["a", "b"])),
            (value!([{"templateName": "b", "clusterScope": true}]), Ok(vec!["a", "b"])),
            (value!([]), Ok(vec![])),
            (
                value!([{"templateName": "a"}, {"templateName": "b"}]),
                Err(format!("{at}: Invalid value: \"b\": AnalysisTemplate 'b' not found")),
            ),
            (
                value!([{"templateName": "a", "clusterScope": true}]),
                Err(format!("{at}: Invalid value: \"a\": ClusterAnalysisTemplate 'a' not found")),
            ),
            (
                value!([{"templateName": "c"}]),
                Err("spec.templates: Invalid value: \"d\": AnalysisTemplate 'd' not found".to_owned()),
            ),
        ] {
            let gathered = gather(&rollout(references.clone()), &known);
            let names =
                gathered.map(|mut all| all.remove(0).templates.into_iter().map(|(name, _)| name).collect::<Vec<_>>());
            assert_eq!(names, outcome.map(|names| names.into_iter().map(str::to_owned).collect()), "{references}");
        }
    }

    #[test]
    fn templates_are_reached_through_each_other_and_circles_end() {
        let find = |scope: Scope, name: &str| match (scope, name) {
            (Scope::Namespace, "a") => {
                Some(template("shop", "a", value!([{"templateName": "b", "clusterScope": true}])))
            }
            (Scope::Cluster, "b") => Some(template("", "b", value!([{"templateName": "a"}, {"templateName": "x"}]))),
            _ => None,
        };
        let (found, cluster) = reach(&rollout(value!([{"templateName": "a"}])), find);
        let names: Vec<_> = found.iter().filter_map(|template| template.str_at(&["metadata", "name"])).collect();
        assert_eq!((names, cluster), (vec!["a", "b"], true));
        assert_eq!(reach(&rollout(value!([{"templateName": "x"}])), find), (vec![], false));
        assert!(!are_named(&rollout(value!([]))));
    }
}
