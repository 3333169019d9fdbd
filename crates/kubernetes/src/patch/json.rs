//! JSON patch (RFC 6902), with the laxness of the real server.
//!
//! `replace` of a missing key adds it, indices may be negative, the part of a path before its first slash is ignored, a
//! missing value is `null`, and a failure never says why.

use crate::{
    status::{Reason, Status},
    value::{Value, intern},
};

use super::{cannot_unmarshal, json_type, unprocessable};

/// How many operations one patch may have.
const OPERATION_LIMIT: usize = 10_000;
/// How many bytes all `copy` operations of one patch may copy.
const COPY_LIMIT: usize = 3 * 1024 * 1024;
/// How deep an object may become: what is nested deeper could not be read again.
const DEPTH_LIMIT: usize = 120;

/// The object after a JSON patch.
pub fn apply(target: &Value, patch: &Value) -> Result<Value, Status> {
    check(patch)?;
    let operations = patch.as_list().unwrap_or_default();
    if operations.len() > OPERATION_LIMIT {
        let message = format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is {OPERATION_LIMIT}, got {}",
            operations.len()
        );
        return Err(Status::new(413, Reason::RequestEntityTooLarge, message));
    }
    let mut document = Document { root: target.clone(), copied: 0, depth: None };
    for operation in operations {
        document.apply(operation).map_err(|Failed| unprocessable())?;
    }
    Ok(document.root)
}

/// Whether the body is a list of operations whose members have the right types; 400 if not.
pub fn check(patch: &Value) -> Result<(), Status> {
    let refused = |why: String| Err(Status::bad_request(format!("error decoding patch: {why}")));
    let operations = match patch {
        Value::Null => return Ok(()),
        Value::List(operations) => operations,
        other => return refused(cannot_unmarshal(other, "[]handlers.jsonPatchOp")),
    };
    for operation in operations.iter() {
        match operation {
            Value::Null => {}
            Value::Map(operation) => {
                for member in ["op", "path", "from"] {
                    match operation.get(member) {
                        None | Some(Value::Null | Value::Str(_)) => {}
                        Some(other) => {
                            let (found, field) = (json_type(other), format!("jsonPatchOp.{member}"));
                            return refused(format!(
                                "json: cannot unmarshal {found} into Go struct field {field} of type string"
                            ));
                        }
                    }
                }
            }
            other => return refused(cannot_unmarshal(other, "handlers.jsonPatchOp")),
        }
    }
    Ok(())
}

/// What strict field validation has to say about the operations themselves: `json patch unknown field "[0].extra"`.
pub fn unknown_fields(patch: &Value) -> Vec<String> {
    let operations = patch.as_list().unwrap_or_default().iter().enumerate();
    let members = operations.filter_map(|(i, operation)| Some((i, operation.as_map()?)));
    members
        .flat_map(|(i, operation)| operation.keys().map(move |key| (i, key)))
        .filter(|(_, key)| !matches!(key.as_str(), "op" | "path" | "from" | "value"))
        .map(|(i, key)| format!("json patch unknown field \"[{i}].{key}\""))
        .collect()
}

/// An operation does not apply. Why is of no interest: the answer does not tell.
struct Failed;

struct Document {
    root: Value,
    copied: usize,
    /// At least the depth of the root, once an operation could have deepened it.
    depth: Option<usize>,
}

impl Document {
    fn apply(&mut self, operation: &Value) -> Result<(), Failed> {
        let text = |member: &str| operation.get(member).and_then(Value::as_str).ok_or(Failed);
        let given = operation.get("value");
        match text("op")? {
            "add" => {
                let value = given.cloned().unwrap_or_default();
                let deep = depth(&value);
                self.add(text("path")?, value, deep)
            }
            "remove" => self.remove(text("path")?).map(drop),
            "replace" => self.replace(text("path")?, given),
            "test" => self.test(text("path")?, given),
            "move" => {
                // Measuring what is moved each time would make a long patch slow; it is no deeper than the whole.
                let deep = self.bound();
                let value = self.remove(text("from")?)?;
                self.add(text("path")?, value, deep)
            }
            "copy" => {
                let value = self.get(text("from")?)?.unwrap_or_default();
                self.copied += value.to_json().len();
                if self.copied > COPY_LIMIT {
                    return Err(Failed);
                }
                let deep = depth(&value);
                self.add(text("path")?, value, deep)
            }
            _ => Err(Failed),
        }
    }

    /// The list or object that holds the last part of a path, and that part.
    fn holder<'a>(&self, path: &'a str) -> Result<(&Value, Pointer<'a>), Failed> {
        let pointer = Pointer::new(path)?;
        let mut holder = &self.root;
        for part in pointer.parents() {
            holder = child(holder, &unescaped(part))?.ok_or(Failed)?;
        }
        match holder {
            Value::Map(_) | Value::List(_) => Ok((holder, pointer)),
            _ => Err(Failed),
        }
    }

    fn holder_mut(&mut self, pointer: &Pointer<'_>) -> Result<&mut Value, Failed> {
        let mut holder = &mut self.root;
        for part in pointer.parents() {
            let key = unescaped(part);
            holder = match holder {
                Value::Map(map) => map.get_mut(&key).ok_or(Failed)?,
                Value::List(items) => {
                    let at = index(&key, items.len())?;
                    &mut std::sync::Arc::make_mut(items)[at]
                }
                _ => return Err(Failed),
            };
        }
        Ok(holder)
    }

    fn get(&self, path: &str) -> Result<Option<Value>, Failed> {
        let (holder, pointer) = self.holder(path)?;
        Ok(child(holder, &pointer.key())?.cloned())
    }

    /// `deep` is at least the depth of `value`.
    fn add(&mut self, path: &str, value: Value, deep: usize) -> Result<(), Failed> {
        let (holder, pointer) = self.holder(path)?;
        let key = pointer.key();
        if let Value::Map(map) = holder
            && map.get(&key) == Some(&value)
        {
            return Ok(());
        }
        self.deepen(&pointer, &value, deep)?;
        match self.holder_mut(&pointer)? {
            Value::Map(map) => {
                map.insert(intern(&key), value);
            }
            Value::List(items) => {
                let at = match key.as_str() {
                    "-" => items.len(),
                    // One more than there are, so that -1 appends.
                    key => index(key, items.len() + 1)?,
                };
                std::sync::Arc::make_mut(items).insert(at, value);
            }
            _ => return Err(Failed),
        }
        Ok(())
    }

    fn remove(&mut self, path: &str) -> Result<Value, Failed> {
        let (holder, pointer) = self.holder(path)?;
        let key = pointer.key();
        match holder {
            Value::Map(map) if !map.contains_key(&key) => return Err(Failed),
            Value::List(items) => {
                index(&key, items.len())?;
            }
            _ => {}
        }
        match self.holder_mut(&pointer)? {
            Value::Map(map) => map.remove(&key).ok_or(Failed),
            Value::List(items) => {
                let at = index(&key, items.len())?;
                Ok(std::sync::Arc::make_mut(items).remove(at))
            }
            _ => Err(Failed),
        }
    }

    fn replace(&mut self, path: &str, value: Option<&Value>) -> Result<(), Failed> {
        if path.is_empty() {
            return match value {
                Some(value @ (Value::Map(_) | Value::List(_))) => {
                    self.root = value.clone();
                    Ok(())
                }
                _ => Err(Failed),
            };
        }
        let value = value.cloned().unwrap_or_default();
        let (holder, pointer) = self.holder(path)?;
        let key = pointer.key();
        let unchanged = match holder {
            Value::Map(map) => map.get(&key) == Some(&value),
            holder => child(holder, &key)? == Some(&value),
        };
        if unchanged {
            return Ok(());
        }
        self.deepen(&pointer, &value, depth(&value))?;
        match self.holder_mut(&pointer)? {
            Value::Map(map) => {
                map.insert(intern(&key), value);
            }
            Value::List(items) => {
                let at = index(&key, items.len())?;
                std::sync::Arc::make_mut(items)[at] = value;
            }
            _ => return Err(Failed),
        }
        Ok(())
    }

    fn test(&self, path: &str, expected: Option<&Value>) -> Result<(), Failed> {
        let found = if path.is_empty() { Some(self.root.clone()) } else { self.get(path)? };
        let (found, expected) = (found.unwrap_or_default(), expected.cloned().unwrap_or_default());
        if same(&found, &expected) { Ok(()) } else { Err(Failed) }
    }

    /// At least the depth of the root. A bound is kept, so that it is measured only when the bound grows too large.
    fn bound(&mut self) -> usize {
        *self.depth.get_or_insert_with(|| depth(&self.root))
    }

    /// Refuses what would nest too deep.
    fn deepen(&mut self, pointer: &Pointer<'_>, value: &Value, deep: usize) -> Result<(), Failed> {
        if !matches!(value, Value::Map(_) | Value::List(_)) {
            return Ok(());
        }
        let above = pointer.parents().count() + 1;
        let mut after = self.bound().max(above + deep);
        if after > DEPTH_LIMIT {
            after = depth(&self.root).max(above + depth(value));
        }
        self.depth = Some(after);
        if after > DEPTH_LIMIT { Err(Failed) } else { Ok(()) }
    }
}

/// A path, taken apart at its slashes. What stands before the first is ignored, as upstream does.
struct Pointer<'a> {
    parents: Option<&'a str>,
    last: &'a str,
}

impl<'a> Pointer<'a> {
    fn new(path: &'a str) -> Result<Pointer<'a>, Failed> {
        let (_, rest) = path.split_once('/').ok_or(Failed)?;
        Ok(match rest.rsplit_once('/') {
            Some((parents, last)) => Pointer { parents: Some(parents), last },
            None => Pointer { parents: None, last: rest },
        })
    }

    fn parents(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.parents.into_iter().flat_map(|parents| parents.split('/'))
    }

    fn key(&self) -> String {
        unescaped(self.last)
    }
}

/// `~1` is a slash, `~0` a tilde; read from left to right, once.
fn unescaped(part: &str) -> String {
    if !part.contains('~') {
        return part.to_owned();
    }
    let mut out = String::with_capacity(part.len());
    let mut rest = part;
    while let Some(at) = rest.find('~') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        (out, rest) = match after.as_bytes().first() {
            Some(b'0') => (out + "~", &after[1..]),
            Some(b'1') => (out + "/", &after[1..]),
            _ => (out + "~", after),
        };
    }
    out + rest
}

/// The field or item of this name. A missing or null field is none, a missing item a failure.
fn child<'a>(holder: &'a Value, key: &str) -> Result<Option<&'a Value>, Failed> {
    let found = match holder {
        Value::Map(map) => map.get(key),
        Value::List(items) => Some(&items[index(key, items.len())?]),
        _ => return Err(Failed),
    };
    Ok(found.filter(|value| !value.is_null()))
}

/// An index into a list of this length; negative ones count from the end.
fn index(key: &str, length: usize) -> Result<usize, Failed> {
    let at: i64 = key.parse().map_err(|_| Failed)?;
    let at = if at < 0 { at + length as i64 } else { at };
    usize::try_from(at).ok().filter(|at| *at < length).ok_or(Failed)
}

/// Equality as `test` sees it: numbers by how they are written, so 1 is not 1.0.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Int(_), Value::Float(_)) | (Value::Float(_), Value::Int(_)) => false,
        (Value::List(a), Value::List(b)) => a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same(a, b)),
        (Value::Map(a), Value::Map(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|((k, a), (l, b))| k == l && same(a, b))
        }
        (a, b) => a == b,
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::List(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Map(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{patch::tests::any_value, value};

    fn document() -> Value {
        value!({"a": {"b": 1, "x/y": 2, "m~n": 3, "none": null}, "l": ["p", "q", "r"]})
    }

    #[track_caller]
    fn check(patch: Value, expected: Value) {
        assert_eq!(apply(&document(), &patch).unwrap(), expected, "{patch}");
    }

    #[track_caller]
    fn check_list(patch: Value, expected: Value) {
        let after = apply(&document(), &value!([patch])).map(|after| after.get("l").cloned());
        assert_eq!(after.unwrap(), Some(expected), "{patch}");
    }

    #[test]
    fn lists_take_indices_from_either_end() {
        check_list(value!({"op": "add", "path": "/l/-", "value": 9}), value!(["p", "q", "r", 9]));
        check_list(value!({"op": "add", "path": "/l/3", "value": 9}), value!(["p", "q", "r", 9]));
        check_list(value!({"op": "add", "path": "/l/0", "value": 9}), value!([9, "p", "q", "r"]));
        check_list(value!({"op": "add", "path": "/l/-1", "value": 9}), value!(["p", "q", "r", 9]));
        check_list(value!({"op": "add", "path": "/l/-4", "value": 9}), value!([9, "p", "q", "r"]));
        check_list(value!({"op": "replace", "path": "/l/-1", "value": 9}), value!(["p", "q", 9]));
        check_list(value!({"op": "remove", "path": "/l/+1"}), value!(["p", "r"]));
        check_list(value!({"op": "move", "from": "/l/0", "path": "/l/-"}), value!(["q", "r", "p"]));
        check_list(value!({"op": "copy", "from": "/l/-1", "path": "/l/0"}), value!(["r", "p", "q", "r"]));
        check_list(value!({"op": "add", "path": "x/l/0"}), value!([null, "p", "q", "r"]));
    }

    #[test]
    fn keys_may_hold_slashes_and_tildes() {
        check(
            value!([
                {"op": "remove", "path": "/a/x~1y"},
                {"op": "test", "path": "/a/m~0n", "value": 3},
                {"op": "add", "path": "/a/~01", "value": 4},
                {"op": "remove", "path": "/l"},
                {"op": "copy", "from": "/a/missing", "path": "/a/copied"},
            ]),
            value!({"a": {"b": 1, "m~n": 3, "none": null, "~1": 4, "copied": null}}),
        );
    }

    #[test]
    fn failures_do_not_say_why() {
        let rows = [
            value!({"op": "zap", "path": "/a"}),
            value!({"path": "/a"}),
            value!({"op": "add"}),
            value!({"op": "add", "path": "", "value": {}}),
            value!({"op": "add", "path": "a", "value": {}}),
            value!({"op": "add", "path": "/x/y", "value": 1}),
            value!({"op": "add", "path": "/a/b/c", "value": 1}),
            value!({"op": "add", "path": "/a/none/c", "value": 1}),
            value!({"op": "add", "path": "/l/4", "value": 1}),
            value!({"op": "add", "path": "/l/-5", "value": 1}),
            value!({"op": "add", "path": "/l/x", "value": 1}),
            value!({"op": "remove", "path": "/x"}),
            value!({"op": "remove", "path": "/l/3"}),
            value!({"op": "remove", "path": "/l/-"}),
            value!({"op": "replace", "path": "/l/3", "value": 1}),
            value!({"op": "replace", "path": "", "value": 1}),
            value!({"op": "test", "path": "/a/b", "value": 1.5}),
            value!({"op": "test", "path": "/a/b"}),
            value!({"op": "move", "from": "/x", "path": "/y"}),
            value!({"op": "move", "from": "/a", "path": "/a/b"}),
            value!({"op": "copy", "path": "/y"}),
            Value::Null,
        ];
        for row in rows {
            let refused = apply(&document(), &Value::list([row.clone()])).unwrap_err();
            assert_eq!(refused, unprocessable(), "{row}");
        }
    }

    #[test]
    fn tests_see_null_and_absence_as_one() {
        for path in ["/a/none", "/a/missing"] {
            for test in [value!({"op": "test", "path": path}), value!({"op": "test", "path": path, "value": null})] {
                assert_eq!(apply(&document(), &Value::list([test])).unwrap(), document());
            }
        }
    }

    #[test]
    fn what_is_not_touched_stays_shared() {
        let old = document();
        let tested = value!([
            {"op": "test", "path": "/a/b", "value": 1},
            {"op": "replace", "path": "/a/b", "value": 1},
            {"op": "add", "path": "/l", "value": ["p", "q", "r"]},
        ]);
        assert!(apply(&old, &tested).unwrap().is(&old), "a patch that changes nothing returns the object itself");
        let new = apply(&old, &value!([{"op": "replace", "path": "/a/b", "value": 2}])).unwrap();
        assert!(new.get("l").unwrap().is(old.get("l").unwrap()));
    }

    #[test]
    fn limits_hold() {
        let test = value!({"op": "test", "path": "/a/b", "value": 1});
        let many = Value::list(vec![test; OPERATION_LIMIT + 1]);
        assert_eq!(apply(&document(), &many).unwrap_err().code, 413);
        // Doubling: without the limit on copies these 64 operations would make an object of 2^64 parts.
        let double = Value::list((0..64).map(|i| value!({"op": "copy", "from": "/a", "path": format!("/a/{i}")})));
        assert_eq!(apply(&document(), &double).unwrap_err().code, 422);
        let deepen = |i: usize| value!({"op": "add", "path": "/a".repeat(i + 2), "value": {}});
        let deeper = Value::list((0..200).map(deepen));
        assert_eq!(apply(&document(), &deeper).unwrap_err().code, 422);
        let swap = [
            value!({"op": "move", "from": "/a", "path": "/l/0"}),
            value!({"op": "move", "from": "/l/0", "path": "/a"}),
        ];
        let often = Value::list(swap.iter().cycle().take(1000).cloned());
        assert_eq!(apply(&document(), &often).unwrap(), document());
    }

    #[test]
    fn strange_members_are_named() {
        let patch = value!([{"op": "add", "path": "/a", "value": 1}, {"op": "test", "path": "/a", "valeu": 1, "x": 2}]);
        assert_eq!(
            unknown_fields(&patch),
            ["json patch unknown field \"[1].valeu\"", "json patch unknown field \"[1].x\""]
        );
    }

    proptest! {
        #[test]
        fn no_patch_panics(target in any_value(), patch in any_value()) {
            let _ = apply(&target, &patch);
        }

        #[test]
        fn operations_on_any_path_apply_or_fail(
            target in any_value(),
            operations in prop::collection::vec(
                (prop::sample::select(vec!["add", "remove", "replace", "test", "move", "copy"]),
                 "(/[ab0-]?(~[01])?){0,4}", "(/[ab0-]?){0,3}", any_value()),
                0..6),
        ) {
            let patch = Value::list(operations.into_iter().map(|(op, path, from, value)| {
                let mut operation = value!({"op": op, "path": path, "from": from});
                operation.set_at(&["value"], value);
                operation
            }));
            if let Err(status) = apply(&target, &patch) {
                prop_assert_eq!(status.code, 422);
            }
        }
    }
}
