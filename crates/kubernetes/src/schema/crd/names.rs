//! Which names a CRD gets, and what its status says about it.
//!
//! The real server leaves this to two controllers; here both act at once, with the outcome they settle on.

use crate::value;
use crate::value::{Text, Value, intern};

/// The status of a CRD after the server looked at its names, or `None` if it is as it should be. `others` are the other
/// CRDs (any group); `now` is the time of a condition that changes.
pub fn settle<'a>(crd: &Value, others: impl IntoIterator<Item = &'a Value>, now: &Text) -> Option<Value> {
    let wanted = crd.at(&["spec", "names"])?;
    let held = crd.at(&["status", "acceptedNames"]).cloned().unwrap_or_default();
    let mut status = crd.get("status").cloned().unwrap_or_default();
    if !same_names(wanted, &held) || condition(crd, "NamesAccepted").is_none() {
        let used = Used::in_group(crd, others);
        let (names, conflict) = accept(wanted, &held, &used);
        let accepted = match conflict {
            None => {
                value!({"type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": "no conflicts found"})
            }
            Some((reason, message)) => {
                value!({"type": "NamesAccepted", "status": "False", "reason": reason, "message": message})
            }
        };
        status.set_at(&["acceptedNames"], names);
        set_condition(&mut status, accepted, now);
    }
    let is_true = |status: &Value, kind: &str| {
        let conditions = status.list_at(&["conditions"]);
        conditions.iter().any(|c| c.str_at(&["type"]) == Some(kind) && c.str_at(&["status"]) == Some("True"))
    };
    if !is_true(&status, "Established") {
        let established = match is_true(&status, "NamesAccepted") {
            true => value!({"type": "Established", "status": "True", "reason": "InitialNamesAccepted",
                "message": "the initial names have been accepted"}),
            false => value!({"type": "Established", "status": "False", "reason": "NotAccepted",
                "message": "not all names are accepted"}),
        };
        set_condition(&mut status, established, now);
    }
    (crd.get("status") != Some(&status)).then_some(status)
}

/// Whether the server serves the kinds of this CRD: its names were accepted once.
pub fn is_established(crd: &Value) -> bool {
    condition(crd, "Established").is_some_and(|c| c.str_at(&["status"]) == Some("True"))
}

/// Marks a CRD that is being deleted.
pub fn set_terminating(status: &mut Value, now: &Text) {
    let words = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    let condition =
        value!({"type": "Terminating", "status": "True", "reason": "InstanceDeletionPending", "message": words});
    set_condition(status, condition, now);
}

fn condition<'a>(crd: &'a Value, kind: &str) -> Option<&'a Value> {
    crd.list_at(&["status", "conditions"]).iter().find(|c| c.str_at(&["type"]) == Some(kind))
}

/// Puts a condition in its place. Its time changes only with its status.
fn set_condition(status: &mut Value, mut condition: Value, now: &Text) {
    let mut conditions = status.list_at(&["conditions"]).to_vec();
    let same = |c: &Value| c.str_at(&["type"]) == condition.str_at(&["type"]);
    let place = conditions.iter().position(same);
    let since = place
        .map(|i| &conditions[i])
        .filter(|old| old.get("status") == condition.get("status"))
        .and_then(|old| old.get("lastTransitionTime").cloned());
    condition.set_at(&["lastTransitionTime"], since.unwrap_or_else(|| now.into()));
    match place {
        Some(i) => conditions[i] = condition,
        None => conditions.push(condition),
    }
    status.set_at(&["conditions"], conditions);
}

fn same_names(a: &Value, b: &Value) -> bool {
    let scalar = |key: &str| a.str_at(&[key]).unwrap_or_default() == b.str_at(&[key]).unwrap_or_default();
    let list = |key: &str| a.list_at(&[key]) == b.list_at(&[key]);
    ["plural", "singular", "kind", "listKind"].into_iter().all(scalar)
        && ["shortNames", "categories"].into_iter().all(list)
}

/// The names the CRDs of a group hold. A CRD counts its own: the ones it holds are compared before.
#[derive(Default)]
struct Used {
    resources: Vec<Text>,
    kinds: Vec<Text>,
}

impl Used {
    fn in_group<'a>(crd: &Value, others: impl IntoIterator<Item = &'a Value>) -> Used {
        let mut used = Used::default();
        used.add(crd);
        for other in others {
            let same = |path: &[&str]| other.at(path) == crd.at(path);
            if same(&["spec", "group"]) && !same(&["metadata", "name"]) {
                used.add(other);
            }
        }
        used
    }

    fn add(&mut self, crd: &Value) {
        let Some(names) = crd.at(&["status", "acceptedNames"]) else { return };
        let text = |key: &str| names.get(key).and_then(Value::as_text).cloned();
        self.resources.extend(["plural", "singular"].into_iter().filter_map(text));
        self.resources.extend(names.list_at(&["shortNames"]).iter().filter_map(Value::as_text).cloned());
        self.kinds.extend(["kind", "listKind"].into_iter().filter_map(text));
    }
}

/// The names the CRD gets, and the last conflict found: upstream checks on and lets the last one speak.
fn accept(wanted: &Value, held: &Value, used: &Used) -> (Value, Option<(&'static str, String)>) {
    let mut names = held.as_map().cloned().unwrap_or_default();
    let mut conflict = None;
    let taken = |key: &str, used: &[Text]| {
        let name = wanted.str_at(&[key]).unwrap_or_default();
        let fresh = name == held.str_at(&[key]).unwrap_or_default() || !used.iter().any(|other| other == name);
        (!fresh).then(|| format!("\"{name}\" is already in use"))
    };
    let checks = [
        ("plural", "PluralConflict", taken("plural", &used.resources)),
        ("singular", "SingularConflict", taken("singular", &used.resources)),
        ("shortNames", "ShortNamesConflict", short_names(wanted, held, used)),
        ("kind", "KindConflict", taken("kind", &used.kinds)),
        ("listKind", "ListKindConflict", taken("listKind", &used.kinds)),
        ("categories", "", None),
    ];
    for (key, reason, found) in checks {
        match (found, wanted.get(key)) {
            (Some(words), _) => conflict = Some((reason, words)),
            (None, Some(value)) => drop(names.insert(intern(key), value)),
            (None, None) => drop(names.remove(key)),
        }
    }
    for key in ["plural", "kind"] {
        if !names.contains_key(key) {
            names.insert(intern(key), "");
        }
    }
    (Value::Map(names), conflict)
}

/// What to say of the short names that are taken, if any are.
fn short_names(wanted: &Value, held: &Value, used: &Used) -> Option<String> {
    let held = held.list_at(&["shortNames"]);
    let taken =
        |name: &&Value| !held.contains(name) && name.as_text().is_some_and(|name| used.resources.contains(name));
    let mut texts: Vec<String> = Vec::new();
    for name in wanted.list_at(&["shortNames"]).iter().filter(taken) {
        let text = format!("{name} is already in use");
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-01T00:00:00Z";

    fn crd(plural: &str, kind: &str, short_names: &[&str]) -> Value {
        let mut crd = value!({"metadata": {"name": format!("{plural}.a.test")}, "spec": {"group": "a.test", "names": {
            "plural": plural, "kind": kind, "shortNames": short_names}}});
        crate::schema::crd::default(&mut crd);
        crd
    }

    fn settled(mut crd: Value, others: &[&Value]) -> Value {
        let status = settle(&crd, others.iter().copied(), &NOW.into()).expect("a new CRD gets a status");
        crd.set_at(&["status"], status);
        crd
    }

    #[test]
    fn free_names_are_accepted_at_once_and_stay() {
        let first = settled(crd("widgets", "Widget", &["w"]), &[]);
        let expected = value!({
            "acceptedNames": {"plural": "widgets", "singular": "widget", "shortNames": ["w"], "kind": "Widget", "listKind": "WidgetList"},
            "conditions": [
                {"type": "NamesAccepted", "status": "True", "lastTransitionTime": NOW, "reason": "NoConflicts", "message": "no conflicts found"},
                {"type": "Established", "status": "True", "lastTransitionTime": NOW, "reason": "InitialNamesAccepted", "message": "the initial names have been accepted"},
            ],
        });
        assert_eq!(first.get("status"), Some(&expected));
        assert!(is_established(&first));
        assert_eq!(settle(&first, [], &"later".into()), None);
    }

    #[test]
    fn a_name_in_use_is_named_and_freed_later() {
        // As the real server answered: the last conflict speaks, and what is free is taken all the same.
        let first = settled(crd("widgets", "Widget", &["w"]), &[]);
        let second = settled(crd("wodgets", "Widget", &["w", "x"]), &[&first]);
        let expected = value!({
            "acceptedNames": {"plural": "wodgets", "kind": ""},
            "conditions": [
                {"type": "NamesAccepted", "status": "False", "lastTransitionTime": NOW, "reason": "ListKindConflict", "message": "\"WidgetList\" is already in use"},
                {"type": "Established", "status": "False", "lastTransitionTime": NOW, "reason": "NotAccepted", "message": "not all names are accepted"},
            ],
        });
        assert_eq!(second.get("status"), Some(&expected));
        let freed = settle(&second, [], &NOW.into()).unwrap();
        assert_eq!(freed.at(&["acceptedNames", "kind"]), Some(&"Widget".into()));
        assert_eq!(freed.list_at(&["conditions"])[1].str_at(&["status"]), Some("True"));
    }

    #[test]
    fn several_short_names_in_use_are_named_together() {
        let first = settled(crd("as", "A", &["x", "y"]), &[]);
        let second = settled(crd("bs", "B", &["x", "y", "z"]), &[&first]);
        let condition = &second.list_at(&["status", "conditions"])[0];
        assert_eq!(condition.str_at(&["reason"]), Some("ShortNamesConflict"));
        assert_eq!(condition.str_at(&["message"]), Some("[\"x\" is already in use, \"y\" is already in use]"));
    }
}
