//! What becomes of a change that a person makes by hand to an object that a GitSource keeps as git says.

use crate::{
    api::{
        self,
        constants::{FIELD_MANAGER, annotation, label},
    },
    kubernetes::{
        apply::{Managers, fieldpath::PathElement},
        value::Value,
    },
};

/// What becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// The source puts it back.
    TakenBack,
    /// It stays, and until when.
    Stays(String),
}

/// The GitSource of an object, as namespace and name; `None` if it has none, or one whose name is too long to be told.
pub fn source_of(object: &Value) -> Option<(&str, &str)> {
    object.str_at(&["metadata", "labels", label::SOURCE])?.split_once('.')
}

/// What becomes of a change of an object; nothing if no source keeps it, or if git says nothing about what is changed. `source`
/// is its GitSource, if that can be read; `patch` is what is changed, everything that git says if it is not given.
pub fn fate(object: &Value, source: Option<&Value>, patch: Option<&Value>) -> Option<Fate> {
    let mark = object.str_at(&["metadata", "labels", label::SOURCE])?;
    let note = |key: &str| object.str_at(&["metadata", "annotations", key]);
    let is_gits = patch.is_none_or(|patch| {
        let managers = object.at(&["metadata", "managedFields"]).cloned().unwrap_or_default();
        let managers = Managers::parse(&managers).unwrap_or_default();
        let mut paths = Vec::new();
        leaves(patch, &mut Vec::new(), &mut paths);
        let ours = |path: &Vec<PathElement>| {
            let mut owners = managers.owners().iter();
            owners.any(|owner| owner.manager == FIELD_MANAGER && owner.subresource.is_empty() && owner.fields.has(path))
        };
        paths.iter().any(ours)
    });
    if !is_gits {
        return None;
    }
    if note(annotation::SUSPEND) == Some("true") {
        return Some(Fate::Stays(format!("it is suspended for the source {mark}")));
    }
    if note(annotation::APPLY) == Some("once") {
        return Some(Fate::Stays(format!("the source {mark} applies it once only")));
    }
    let Some(source) = source else { return Some(Fate::TakenBack) };
    let source: api::GitSource = api::read(source).object;
    if source.spec.suspend {
        return Some(Fate::Stays(format!("the source {mark} is suspended; it takes this back when it is resumed")));
    }
    if source.spec.self_heal == Some(false) {
        let words = format!("the source {mark} leaves what others change until a commit changes this object");
        return Some(Fate::Stays(words));
    }
    Some(Fate::TakenBack)
}

/// The paths of everything that a patch sets.
fn leaves(value: &Value, path: &mut Vec<PathElement>, paths: &mut Vec<Vec<PathElement>>) {
    match value.as_map() {
        Some(map) => {
            for (key, below) in map.iter() {
                path.push(PathElement::field(key));
                leaves(below, path, paths);
                path.pop();
            }
        }
        None => paths.push(path.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[track_caller]
    fn check(notes: Value, spec: Value, patch: Value, expected: Option<&str>) {
        let mut object = value!({"metadata": {"name": "web", "labels": {"tidegate.dev/source": "shop.web"}, "managedFields": [
            {"manager": "tidegate", "operation": "Apply", "apiVersion": "argoproj.io/v1alpha1", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {"f:paused": {}}}}]}});
        object.set_at(&["metadata", "annotations"], notes);
        let mut source = value!({"metadata": {"name": "web"}});
        source.set_at(&["spec"], spec);
        let fate = fate(&object, Some(&source), Some(&patch));
        let told = fate.map(|fate| match fate {
            Fate::TakenBack => "taken back".to_owned(),
            Fate::Stays(why) => why,
        });
        assert_eq!(told.as_deref(), expected);
    }

    #[test]
    fn only_what_git_says_is_taken_back_and_only_where_the_source_does_that() {
        let paused = || value!({"spec": {"paused": true}});
        check(value!({}), value!({}), paused(), Some("taken back"));
        check(value!({}), value!({}), value!({"spec": {"restartAt": "2026-01-01T00:00:00Z"}}), None);
        check(
            value!({"tidegate.dev/suspend": "true"}),
            value!({}),
            paused(),
            Some("it is suspended for the source shop.web"),
        );
        check(
            value!({"tidegate.dev/apply": "once"}),
            value!({}),
            paused(),
            Some("the source shop.web applies it once only"),
        );
        check(
            value!({}),
            value!({"selfHeal": false}),
            paused(),
            Some("the source shop.web leaves what others change until a commit changes this object"),
        );
        check(
            value!({}),
            value!({"suspend": true}),
            paused(),
            Some("the source shop.web is suspended; it takes this back when it is resumed"),
        );
        assert_eq!(fate(&value!({"metadata": {"name": "web"}}), None, None), None);
        let object = value!({"metadata": {"labels": {"tidegate.dev/source": "shop.web"}}});
        assert_eq!((fate(&object, None, None), source_of(&object)), (Some(Fate::TakenBack), Some(("shop", "web"))));
    }
}
