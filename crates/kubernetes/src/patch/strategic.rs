//! Strategic merge patch: Kubernetes' own, by the merge keys of the type.
//!
//! Follows upstream's algorithm step by step where its order of steps can be seen in the outcome: where items of a merged
//! list end up, which directives survive, and which mistake is reported first.

use crate::{
    schema::{Field, Merge, Schema, Shape},
    status::Status,
    value::{Map, Text, Value},
};

use super::{cannot_unmarshal, go_print, unexpected, unprocessable, without_nulls};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ORDER: &str = "$setElementOrder";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";

/// The object after a strategic merge patch. Fields that the patch sets to what they are stay shared.
pub fn apply(schema: &Schema, target: &Value, patch: &Value) -> Result<Value, Status> {
    match (target, &integral(patch)) {
        (Value::Map(target), Value::Map(patch)) => match merge_map(schema, target, patch) {
            Ok(merged) => Ok(merged.into()),
            Err(refusal) => Err(refusal.status()),
        },
        (target, Value::Null) => Ok(target.clone()),
        (_, patch) => Err(Status::bad_request(cannot_unmarshal(patch, "map[string]interface {}"))),
    }
}

/// The patch with 3.0 as 3: unlike the JSON decoder, which judges the other patches, the converter takes it for an integer.
fn integral(patch: &Value) -> Value {
    match patch {
        Value::Float(f) if f.fract() == 0.0 => patch.as_int().map_or_else(|| patch.clone(), Value::Int),
        Value::Map(map) => {
            let mut out = map.clone();
            for (key, old) in map.iter() {
                let new = integral(old);
                if matches!(old, Value::Map(_) | Value::List(_) | Value::Float(_)) && !new.is(old) {
                    out.insert(key.clone(), new);
                }
            }
            out.into()
        }
        Value::List(items) => {
            let new: Vec<Value> = items.iter().map(integral).collect();
            if items.iter().zip(&new).all(|(old, new)| old.is(new)) { patch.clone() } else { new.into() }
        }
        other => other.clone(),
    }
}

/// Why a patch cannot be applied.
#[derive(Debug)]
enum Refusal {
    /// A directive has the wrong form: 400.
    Form(&'static str),
    /// 422, without saying why.
    ListOfLists,
    /// Anything else is a 500 upstream.
    Other(String),
}

impl Refusal {
    fn status(self) -> Status {
        match self {
            Refusal::Form(what) => Status::bad_request(format!("invalid patch format of {what}")),
            Refusal::ListOfLists => unprocessable(),
            Refusal::Other(message) => unexpected(message),
        }
    }
}

fn wrong_type<T>(expected: &str, found: &Value) -> Result<T, Refusal> {
    Err(Refusal::Other(format!("expected a {expected}, but received a {}", go_type(found))))
}

fn no_merge_key<T>(item: &Map, key: &str) -> Result<T, Refusal> {
    let item = go_print(&Value::Map(item.clone()));
    Err(Refusal::Other(format!("map: {item} does not contain declared merge key: {key}")))
}

fn merge_map(schema: &Schema, original: &Map, patch: &Map) -> Result<Map, Refusal> {
    if let Some(directive) = patch.get(PATCH) {
        return follow_directive(directive, patch);
    }
    let mut out = original.clone();
    retain_keys(&mut out, patch)?;
    let mut ordered: Vec<&str> = Vec::new();
    for (key, order) in patch.iter().filter(|(key, _)| key.starts_with(SET_ORDER)) {
        ordered.push(merge_in_order(schema, &mut out, patch, key, order)?);
    }
    for (key, value) in patch.iter() {
        if key == RETAIN_KEYS || key.starts_with(SET_ORDER) || ordered.contains(&key.as_str()) {
            continue;
        }
        match key.strip_prefix(DELETE_FROM) {
            None => merge_field(schema, &mut out, key, value, Mode::Merge)?,
            Some(rest) => match rest.strip_prefix('/') {
                None => return Err(Refusal::Form("primitive list")),
                // Upstream takes the directive without a name for a field of that very name, which no object has.
                Some("") => {}
                Some(list) => merge_field(schema, &mut out, &list.into(), value, Mode::DeleteFrom)?,
            },
        }
    }
    Ok(out)
}

/// What a map with `$patch` in it means.
fn follow_directive(directive: &Value, patch: &Map) -> Result<Map, Refusal> {
    match directive.as_str() {
        Some("replace") => {
            let mut patch = patch.clone();
            patch.remove(PATCH);
            Ok(patch)
        }
        Some("delete") => Ok(Map::default()),
        _ => unknown_directive(directive, patch),
    }
}

fn unknown_directive<T>(directive: &Value, patch: &Map) -> Result<T, Refusal> {
    let map = go_print(&Value::Map(patch.clone()));
    Err(Refusal::Other(format!("unknown patch type: {} in map: {map}", go_verb_s(directive))))
}

/// Drops what `$retainKeys` does not name. Everything the patch sets must be named.
fn retain_keys(out: &mut Map, patch: &Map) -> Result<(), Refusal> {
    let Some(keys) = patch.get(RETAIN_KEYS) else { return Ok(()) };
    let Some(keys) = keys.as_list() else { return Err(Refusal::Form("retainKeys")) };
    let named = |key: &str| keys.iter().any(|named| named.as_str() == Some(key));
    let directive = |key: &str| key == RETAIN_KEYS || key.starts_with(DELETE_FROM) || key.starts_with(SET_ORDER);
    if patch.iter().any(|(key, value)| !value.is_null() && !directive(key) && !named(key)) {
        return Err(Refusal::Form("retainKeys"));
    }
    out.retain(|key, _| named(key));
    Ok(())
}

/// Whether a field's value is merged in, or its items are taken out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Merge,
    DeleteFrom,
}

fn merge_field(schema: &Schema, out: &mut Map, key: &Text, value: &Value, mode: Mode) -> Result<(), Refusal> {
    let Some(old) = out.get(key) else {
        if mode == Mode::Merge
            && !value.is_null()
            && let Some(new) = without_directives(&without_nulls(value))
        {
            out.insert(key.clone(), new);
        }
        return Ok(());
    };
    let new = match (old, value) {
        (_, Value::Null) => None,
        (Value::Map(old_map), Value::Map(patch)) => {
            let field = field_of(schema, key)?;
            let new = if field.replace { patch.clone() } else { merge_map(&field.schema, old_map, patch)? };
            if new.is(old_map) {
                return Ok(());
            }
            Some(new.into())
        }
        (Value::List(old_items), Value::List(patch)) => {
            let list = list_of(schema, key)?;
            Some(kept_if_same(old, list.merged(old_items, patch, mode)?))
        }
        (old, value) if same_type(old, value) => Some(value.clone()),
        (_, _) if mode == Mode::DeleteFrom => return Ok(()),
        (_, value) => without_directives(&without_nulls(value)),
    };
    match new {
        None => {
            out.remove(key);
        }
        Some(new) if new.is(old) || new == *old => {}
        Some(new) => {
            out.insert(key.clone(), new);
        }
    }
    Ok(())
}

/// Merges the list that `$setElementOrder/<list>` names and puts its items into that order. Returns the list's name.
fn merge_in_order<'a>(
    schema: &Schema,
    out: &mut Map,
    patch: &Map,
    directive: &'a str,
    order: &Value,
) -> Result<&'a str, Refusal> {
    let Some(order) = order.as_list() else { return wrong_type("[]interface {}", order) };
    let name = match directive.split_once('/') {
        Some((SET_ORDER, name)) => name,
        _ => return Err(Refusal::Form("setElementOrder list")),
    };
    let list = |map: &Map| match map.get(name) {
        None => Ok(None),
        Some(Value::List(items)) => Ok(Some(items.clone())),
        Some(other) => wrong_type("[]interface {}", other),
    };
    let (original, patch) = (list(out)?, list(patch)?);
    let List { items, merge, key } = list_of(schema, name)?;
    let patched = patch.as_ref().map(|items| items.as_slice()).unwrap_or_default();
    check_order(patched, order, key)?;
    let merged = match (&original, &patch) {
        (None, None) => return Ok(name),
        (Some(original), None) => original.to_vec(),
        (None, Some(patch)) => patch.iter().filter_map(without_directives).collect(),
        (Some(original), Some(patch)) => List { items, merge, key }.merged(original, patch, Mode::Merge)?,
    };
    let original = original.unwrap_or_default();
    let (in_order, others) = partition(merged, order, key)?;
    let kind = element_kind(&original, patched)?;
    let new = arranged(in_order, others, order, &original, key, kind)?;
    let old = Value::List(original);
    let new = kept_if_same(&old, new);
    if !new.is(&old) || !out.contains_key(name) {
        out.insert(Text::from(name), new);
    }
    Ok(name)
}

/// The items of the patch must stand in the order that the directive names, and all of them must be in it.
fn check_order(patch: &[Value], order: &[Value], key: Option<&Text>) -> Result<(), Refusal> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut rest = order.iter();
    for item in patch {
        if key.is_some() {
            match item {
                Value::Map(map) if map.contains_key(PATCH) => continue,
                Value::Map(_) => {}
                other => return wrong_type("map[string]interface {}", other),
            }
        }
        loop {
            let Some(wanted) = rest.next() else {
                let (patch, order) = (go_print(&Value::list(patch.to_vec())), go_print(&Value::list(order.to_vec())));
                let message = format!("The order in patch list:\n{patch}\n doesn't match {SET_ORDER} list:\n{order}\n");
                return Err(Refusal::Other(message));
            };
            let found = match key {
                None => same(item, wanted),
                Some(key) => same(merge_value(item, key)?, merge_value(wanted, key)?),
            };
            if found {
                break;
            }
        }
    }
    Ok(())
}

/// How a list of some type merges.
struct List<'a> {
    items: &'a Schema,
    merge: &'a Merge,
    key: Option<&'a Text>,
}

impl List<'_> {
    fn merged(&self, original: &[Value], patch: &[Value], mode: Mode) -> Result<Vec<Value>, Refusal> {
        if *self.merge == Merge::Replace && mode == Mode::Merge {
            return Ok(patch.to_vec());
        }
        if original.is_empty() && patch.is_empty() {
            return Ok(Vec::new());
        }
        let kind = element_kind(original, patch)?;
        if kind == Kind::Scalar {
            if mode == Mode::DeleteFrom {
                let gone = |item: &&Value| !patch.iter().any(|dead| same(dead, item));
                return Ok(original.iter().filter(gone).cloned().collect());
            }
            let mut merged: Vec<Value> = Vec::with_capacity(original.len() + patch.len());
            for item in original.iter().chain(patch) {
                if !merged.iter().any(|kept| same(kept, item)) {
                    merged.push(item.clone());
                }
            }
            let (in_patch, others) = partition(merged, patch, self.key)?;
            return arranged(in_patch, others, patch, original, self.key, kind);
        }
        let Some(key) = self.key else {
            let name = go_kind(self.items);
            return Err(Refusal::Other(format!("cannot merge lists without merge key for {name}")));
        };
        let (original, patch) = special_items(original, patch, key)?;
        let merged = self.merge_items(original.clone(), &patch, key)?;
        let (in_patch, others) = partition(merged, &patch, self.key)?;
        arranged(in_patch, others, &patch, &original, self.key, kind)
    }

    /// Items of the patch are merged into those with the same key, or added.
    fn merge_items(&self, mut merged: Vec<Value>, patch: &[Value], key: &Text) -> Result<Vec<Value>, Refusal> {
        for item in patch {
            let wanted = merge_value(item, key)?;
            let Value::Map(fields) = item else { return wrong_type("map[string]interface {}", item) };
            match find(&merged, key, wanted)? {
                None => merged.push(item.clone()),
                Some(at) => {
                    let Value::Map(old) = &merged[at] else { continue };
                    let new = merge_map(self.items, old, fields)?;
                    if !new.is(old) {
                        merged[at] = new.into();
                    }
                }
            }
        }
        Ok(merged)
    }
}

/// Obeys the items that are directives: the remaining items of the original and of the patch.
fn special_items(original: &[Value], patch: &[Value], key: &Text) -> Result<(Vec<Value>, Vec<Value>), Refusal> {
    let (mut original, mut rest, mut replace) = (original.to_vec(), Vec::with_capacity(patch.len()), false);
    for item in patch {
        let Value::Map(fields) = item else { return wrong_type("map[string]interface {}", item) };
        let Some(directive) = fields.get(PATCH) else {
            rest.push(item.clone());
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let Some(dead) = fields.get(key) else { return no_merge_key(fields, key) };
                while let Some(at) = find(&original, key, dead)? {
                    original.remove(at);
                }
            }
            Some("replace") => replace = true,
            Some("merge") => return Err(Refusal::Other("merging lists cannot yet be specified in the patch".into())),
            _ => return unknown_directive(directive, fields),
        }
    }
    Ok(if replace { (rest, Vec::new()) } else { (original, rest) })
}

/// Those that `by` holds too, and the others.
fn partition(items: Vec<Value>, by: &[Value], key: Option<&Text>) -> Result<(Vec<Value>, Vec<Value>), Refusal> {
    let (mut held, mut others) = (Vec::with_capacity(items.len()), Vec::new());
    for item in items {
        let is_held = match key {
            None => by.iter().any(|other| same(other, &item)),
            Some(key) => find(by, key, merge_value(&item, key)?)?.is_some(),
        };
        if is_held { held.push(item) } else { others.push(item) }
    }
    Ok((held, others))
}

/// Items of the patch in the patch's order, the server's in the server's, interleaved as they stood on the server.
fn arranged(
    patch: Vec<Value>,
    server: Vec<Value>,
    patch_order: &[Value],
    server_order: &[Value],
    key: Option<&Text>,
    kind: Kind,
) -> Result<Vec<Value>, Refusal> {
    let key = match kind {
        Kind::Scalar => None,
        Kind::Map => key,
    };
    let patch = sorted(patch, patch_order, key)?;
    let server = sorted(server, server_order, key)?;
    if patch.is_empty() || server.is_empty() {
        return Ok(if patch.is_empty() { server } else { patch });
    }
    let place = |item: &Value| server_order.iter().position(|other| same(value_of(other, key), value_of(item, key)));
    let mut all = Vec::with_capacity(patch.len() + server.len());
    let (mut server, mut patch) = (server.into_iter().peekable(), patch.into_iter().peekable());
    loop {
        let server_first = match (server.peek(), patch.peek()) {
            (None, None) => return Ok(all),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(left), Some(right)) => matches!((place(left), place(right)), (Some(l), Some(r)) if l < r),
        };
        all.extend(if server_first { server.next() } else { patch.next() });
    }
}

fn sorted(items: Vec<Value>, order: &[Value], key: Option<&Text>) -> Result<Vec<Value>, Refusal> {
    if let Some(key) = key {
        items.iter().chain(order).try_for_each(|item| merge_value(item, key).map(drop))?;
    }
    let place = |item: &Value| order.iter().position(|other| same(value_of(other, key), value_of(item, key)));
    let mut placed: Vec<(Option<usize>, Value)> = items.into_iter().map(|item| (place(&item), item)).collect();
    if placed.iter().all(|(place, _)| place.is_some()) {
        placed.sort_by_key(|(place, _)| *place);
    } else {
        // Upstream's comparison puts an item without a place before whatever it meets; its insertion sort shows that.
        let before = |a: Option<usize>, b: Option<usize>| !matches!((a, b), (Some(a), Some(b)) if a >= b);
        for i in 1..placed.len() {
            for j in (1..=i).rev() {
                if !before(placed[j].0, placed[j - 1].0) {
                    break;
                }
                placed.swap(j, j - 1);
            }
        }
    }
    Ok(placed.into_iter().map(|(_, item)| item).collect())
}

/// The place of the item with this value of its merge key.
fn find(items: &[Value], key: &str, wanted: &Value) -> Result<Option<usize>, Refusal> {
    for (i, item) in items.iter().enumerate() {
        match item {
            Value::Map(map) if map.get(key).is_some_and(|value| same(value, wanted)) => return Ok(Some(i)),
            Value::Map(_) => {}
            _ => return Err(Refusal::Other(format!("value for key {i} is not a map"))),
        }
    }
    Ok(None)
}

/// The value of an item's merge key, which must be there.
fn merge_value<'a>(item: &'a Value, key: &str) -> Result<&'a Value, Refusal> {
    match item {
        Value::Map(map) => map.get(key).map_or_else(|| no_merge_key(map, key), Ok),
        other => wrong_type("map[string]interface {}", other),
    }
}

/// What an item is recognised by.
fn value_of<'a>(item: &'a Value, key: Option<&Text>) -> &'a Value {
    match key {
        None => item,
        Some(key) => item.get(key).unwrap_or(&Value::Null),
    }
}

/// The list itself if `new` holds the same items in the same order.
fn kept_if_same(old: &Value, new: Vec<Value>) -> Value {
    match old.as_list() {
        Some(items) if items.len() == new.len() && items.iter().zip(&new).all(|(a, b)| a.is(b) || a == b) => {
            old.clone()
        }
        _ => new.into(),
    }
}

/// A value without the objects that hold a `$patch`; none if it is one itself.
fn without_directives(value: &Value) -> Option<Value> {
    match value {
        Value::Map(map) if map.contains_key(PATCH) => None,
        Value::Map(map) => {
            let mut out = map.clone();
            for (key, field) in map.iter() {
                match without_directives(field) {
                    None => drop(out.remove(key)),
                    Some(new) if new.is(field) => {}
                    Some(new) if matches!(new, Value::Map(_) | Value::List(_)) => drop(out.insert(key.clone(), new)),
                    Some(_) => {}
                }
            }
            Some(out.into())
        }
        Value::List(items) => Some(kept_if_same(value, items.iter().filter_map(without_directives).collect())),
        scalar => Some(scalar.clone()),
    }
}

/// What the items of a list are, as far as merging cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Scalar,
    Map,
}

/// The one type that all items must have.
fn element_kind(original: &[Value], patch: &[Value]) -> Result<Kind, Refusal> {
    let mut items = original.iter().chain(patch);
    let Some(first) = items.next() else {
        return Err(Refusal::Other("no elements in any of the given slices".into()));
    };
    if matches!(first, Value::List(_)) {
        return Err(Refusal::ListOfLists);
    }
    if first.is_null() || !items.all(|item| same_type(first, item)) {
        let lists = [original, patch].map(|list| Value::list(list.to_vec()));
        let message = format!("list element types are not identical: {}", go_print(&Value::list(lists)));
        return Err(Refusal::Other(message));
    }
    Ok(if matches!(first, Value::Map(_)) { Kind::Map } else { Kind::Scalar })
}

fn field_of<'a>(schema: &'a Schema, key: &str) -> Result<&'a Field, Refusal> {
    let unknown = || {
        let message = format!("unable to find api field in struct {} for the json field {key:?}", schema.go_type());
        Refusal::Other(message)
    };
    match &schema.shape {
        Shape::Struct(fields) => fields.field(key).ok_or_else(unknown),
        Shape::Any => Err(unknown()),
        _ => {
            let kind = go_kind(schema);
            let message = format!("merging an object in json but data type is not struct, instead is: {kind}");
            Err(Refusal::Other(message))
        }
    }
}

fn list_of<'a>(schema: &'a Schema, key: &str) -> Result<List<'a>, Refusal> {
    match &field_of(schema, key)?.schema.shape {
        Shape::List { items, merge, .. } => {
            let key = match merge {
                Merge::Key(key) => Some(key),
                Merge::Replace | Merge::Union => None,
            };
            Ok(List { items, merge, key })
        }
        _ => Err(Refusal::Other("expected slice or array type, but got: struct".into())),
    }
}

/// What Go's reflection calls the kind of a type.
fn go_kind(schema: &Schema) -> &'static str {
    match &schema.shape {
        Shape::Struct(_) | Shape::Any | Shape::Quantity | Shape::IntOrString => "struct",
        Shape::Time | Shape::MicroTime | Shape::Duration => "struct",
        Shape::Map { .. } => "map",
        Shape::List { .. } | Shape::Bytes => "slice",
        Shape::Str => "string",
        Shape::Bool => "bool",
        Shape::Int32 => "int32",
        Shape::Int64 => "int64",
        Shape::Number => "float64",
    }
}

/// What Go calls the type of a decoded value; `%s` of no type at all for null.
fn go_type(value: &Value) -> &'static str {
    if value.is_null() { "%!s(<nil>)" } else { crate::schema::validate::go_type(value) }
}

/// A value as Go's `%s` prints it, which is meant for strings only.
fn go_verb_s(value: &Value) -> String {
    match value {
        Value::Null => "%!s(<nil>)".to_owned(),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => format!("%!s({}={})", go_type(value), go_print(value)),
        Value::Str(text) => text.to_string(),
        Value::List(items) => format!("[{}]", items.iter().map(go_verb_s).collect::<Vec<_>>().join(" ")),
        Value::Map(map) => {
            let fields: Vec<String> = map.iter().map(|(key, value)| format!("{key}:{}", go_verb_s(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

fn same_type(a: &Value, b: &Value) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}

/// Equality of decoded scalars as Go sees it: an integer is never a float.
fn same(a: &Value, b: &Value) -> bool {
    same_type(a, b) && a == b
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::{
        patch::tests::{any_object, any_value},
        schema::{Struct, Topology},
        value,
    };

    /// A type with one list of each kind, nested in itself once.
    fn schema() -> Schema {
        let list = |items: Schema, merge: Merge| {
            Schema::of(Shape::List { items: Arc::new(items), topology: Topology::Atomic, merge })
        };
        let text = || Schema::of(Shape::Str);
        let level = |items: Schema| {
            let fields = vec![
                ("args".into(), Field::of(list(text(), Merge::Replace))),
                ("finalizers".into(), Field::of(list(text(), Merge::Union))),
                ("items".into(), Field::of(list(items, Merge::Key("name".into())))),
                ("name".into(), Field::of(text())),
                ("plain".into(), Field { replace: true, ..Field::of(Schema::of(Shape::Any)) }),
            ];
            Schema {
                name: Some("test.Level".into()),
                ..Schema::of(Shape::Struct(Struct { fields, ..Struct::default() }))
            }
        };
        level(level(Schema::default()))
    }

    #[track_caller]
    fn check(target: Value, patch: Value, expected: Value) {
        let merged = apply(&schema(), &target, &patch).map_err(|status| status.message);
        assert_eq!(merged, Ok(expected), "{target} with {patch}");
    }

    #[test]
    fn items_merge_by_key_and_keep_their_places() {
        let target = || value!({"items": [{"name": "a", "args": ["x"]}, {"name": "b"}, {"name": "c"}]});
        check(
            target(),
            value!({"items": [{"name": "c", "args": ["y"]}, {"name": "n"}]}),
            value!({"items": [{"name": "a", "args": ["x"]}, {"name": "b"}, {"name": "c", "args": ["y"]}, {"name": "n"}]}),
        );
        check(
            target(),
            value!({"items": [{"name": "b", "$patch": "delete"}]}),
            value!({"items": [{"name": "a", "args": ["x"]}, {"name": "c"}]}),
        );
        check(target(), value!({"items": [{"$patch": "replace"}, {"name": "z"}]}), value!({"items": [{"name": "z"}]}));
        check(
            target(),
            value!({"$setElementOrder/items": [{"name": "c"}, {"name": "a"}]}),
            value!({"items": [{"name": "b"}, {"name": "c"}, {"name": "a", "args": ["x"]}]}),
        );
    }

    #[test]
    fn scalars_unite_and_leave() {
        let target = || value!({"finalizers": ["a", "b", "c"]});
        check(target(), value!({"finalizers": ["d", "b"]}), value!({"finalizers": ["d", "a", "b", "c"]}));
        check(
            target(),
            value!({"$deleteFromPrimitiveList/finalizers": ["b", "x"]}),
            value!({"finalizers": ["a", "c"]}),
        );
        check(target(), value!({"args": ["q"]}), value!({"finalizers": ["a", "b", "c"], "args": ["q"]}));
    }

    #[test]
    fn maps_obey_directives() {
        let target = || value!({"plain": {"a": 1, "b": 2}, "name": "x"});
        check(target(), value!({"plain": {"c": 3}}), value!({"plain": {"c": 3}, "name": "x"}));
        check(target(), value!({"$patch": "replace", "name": "y"}), value!({"name": "y"}));
        check(target(), value!({"$patch": "delete"}), value!({}));
        check(target(), value!({"$retainKeys": ["name"], "name": "z"}), value!({"name": "z"}));
        check(value!({}), value!({"plain": {"$patch": "delete", "a": 1}}), value!({}));
    }

    #[test]
    fn whole_floats_are_integers() {
        let merged = apply(&schema(), &value!({}), &value!({"plain": {"a": [1.0, 1.5], "b": 2.0}})).unwrap();
        let list = merged.list_at(&["plain", "a"]);
        assert!(matches!(list, [Value::Int(1), Value::Float(_)]), "{list:?}");
        assert!(matches!(merged.at(&["plain", "b"]), Some(Value::Int(2))));
    }

    #[test]
    fn what_is_not_touched_stays_shared() {
        let old = value!({
            "items": [{"name": "a", "items": [{"name": "b", "args": ["x"]}]}, {"name": "z", "args": ["y"]}],
            "finalizers": ["f"], "plain": {"a": {}},
        });
        let same = value!({
            "items": [{"name": "a", "items": [{"name": "b"}]}], "finalizers": ["f"], "none": null, "plain": {"a": {}},
            "$setElementOrder/items": [{"name": "a"}, {"name": "z"}],
        });
        assert!(
            apply(&schema(), &old, &same).unwrap().is(&old),
            "a patch that changes nothing returns the object itself"
        );
        let new = apply(&schema(), &old, &value!({"items": [{"name": "a", "args": ["n"]}]})).unwrap();
        assert!(new.get("plain").unwrap().is(old.get("plain").unwrap()));
        assert!(new.list_at(&["items"])[1].is(&old.list_at(&["items"])[1]));
        assert!(new.list_at(&["items"])[0].get("items").unwrap().is(old.list_at(&["items"])[0].get("items").unwrap()));
    }

    proptest! {
        #[test]
        fn no_patch_panics(target in any_value(), patch in any_value()) {
            let _ = apply(&schema(), &target, &patch);
        }

        #[test]
        fn patching_with_the_object_itself_changes_nothing(target in any_object()) {
            let clean = without_directives(&without_nulls(&target));
            let known = |key: &Text| matches!(key.as_str(), "name" | "a" | "b");
            if let Some(Value::Map(mut clean)) = clean {
                clean.retain(|key, value| known(key) && !matches!(value, Value::Map(_) | Value::List(_)));
                let clean = Value::Map(clean);
                prop_assert!(apply(&schema(), &clean, &clean).is_ok_and(|same| same == clean));
            }
        }
    }
}
