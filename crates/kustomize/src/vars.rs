//! Variables: `$(NAME)` in the places that the configuration lists, with the value of a field of an object.

use std::{collections::BTreeMap, rc::Rc};

use crate::{
    config::{self, FieldSpec},
    fault::{Fault, Res},
    kustomization::Var,
    node::{Arena, Id, Kind, Style, Tag},
    object::{Object, Set, World},
    path,
};

/// What a variable stands for.
enum Value {
    Text(Rc<str>),
    Typed(Rc<str>, Tag),
    /// A list or a map cannot be put into a text.
    Structure,
}

/// Ties the variables of a kustomization to the objects they name, and adds them to those of its bases.
pub fn declare(world: &World, set: &mut Set, known: &mut BTreeMap<Rc<str>, Var>, vars: &[Var]) -> Res<()> {
    for var in vars {
        let mut target = var.object.clone();
        // Without a version the type is not one the schema knows.
        target.cluster = false;
        let mut matched = Vec::new();
        for (index, object) in set.list.iter().enumerate() {
            let fits = object.ever(world, |id| {
                id.name == target.name
                    && id.gvk == target.gvk
                    && (target.namespace.is_empty() || id.effective_namespace() == target.effective_namespace())
            })?;
            if fits {
                matched.push(index);
            }
        }
        match matched.as_slice() {
            [] => {}
            [index] => set.list[*index].vars.push(var.name.clone()),
            _ => {
                return Err(Fault::new(format!("the variable {} fits {} objects", var.name, matched.len()))
                    .at(var.object_at)
                    .remedy("add the namespace of the object"));
            }
        }
    }
    merge(known, vars.iter().cloned())
}

/// Joins variables; a name may be given once in a whole build.
pub fn merge(known: &mut BTreeMap<Rc<str>, Var>, vars: impl Iterator<Item = Var>) -> Res<()> {
    for var in vars {
        if let Some(first) = known.get(&var.name) {
            let (at, first) = (var.at, first.at);
            return Err(Fault::new(format!("the variable {} is there already", var.name))
                .at(at)
                .also(first, "first here")
                .remedy("give it another name"));
        }
        known.insert(var.name.clone(), var);
    }
    Ok(())
}

/// Puts the values of all variables into the objects.
pub fn resolve(world: &mut World, set: &Set, vars: &BTreeMap<Rc<str>, Var>, specs: &[FieldSpec]) -> Res<()> {
    if vars.is_empty() {
        return Ok(());
    }
    let mut values = BTreeMap::new();
    for var in vars.values() {
        values.insert(var.name.clone(), find(world, set, var)?);
    }
    for object in &set.list {
        let Some(root) = object.root else { continue };
        for spec in specs {
            config::walk(&mut world.arena, root, spec, None, &mut |arena, node| put(arena, node, &values))?;
        }
    }
    Ok(())
}

fn find(world: &mut World, set: &Set, var: &Var) -> Res<Value> {
    let object: Option<&Object> = set.list.iter().find(|object| object.vars.contains(&var.name));
    let missing =
        |what: String| Fault::new(what).at(var.object_at).remedy("correct objref and fieldref, or remove the variable");
    let Some(root) = object.and_then(|object| object.root) else {
        return Err(missing(format!("the variable {} names {}, which is not there", var.name, var.object.show())));
    };
    let parts: Vec<String> = path::split_dots(&var.path).into_iter().flat_map(positions).collect();
    let found = path::lookup(&mut world.arena, root, &parts, None).map_err(|fault| fault.at(var.at))?;
    let Some(found) = found else {
        return Err(missing(format!("{} has no field {}", var.object.show(), var.path)));
    };
    let node = world.arena.get(found);
    let text = node.text.clone();
    Ok(match (node.kind, &node.tag) {
        (Kind::Scalar, Tag::Int | Tag::Bool | Tag::Float) => Value::Typed(normal(&node.tag, &text), node.tag.clone()),
        (Kind::Scalar, _) => Value::Text(text),
        (Kind::Map | Kind::List, _) => Value::Structure,
    })
}

/// A number or boolean as it is put into a text.
fn normal(tag: &Tag, text: &str) -> Rc<str> {
    match tag {
        Tag::Int => text.parse::<i64>().map_or_else(|_| text.into(), |n| n.to_string().into()),
        Tag::Float => text.parse::<f64>().map_or_else(|_| text.into(), |n| format!("{n}").into()),
        Tag::Bool => text.to_ascii_lowercase().into(),
        _ => text.into(),
    }
}

/// `ports[0]` is the field and the position.
fn positions(part: String) -> Vec<String> {
    let split = part.strip_suffix(']').and_then(|rest| rest.rsplit_once('['));
    match split {
        Some((field, index)) if !index.is_empty() && index.bytes().all(|b| b.is_ascii_digit()) => {
            let field = (!field.is_empty()).then(|| field.to_owned());
            field.into_iter().chain([index.to_owned()]).collect()
        }
        _ => vec![part],
    }
}

fn put(arena: &mut Arena, node: Id, values: &BTreeMap<Rc<str>, Value>) -> Res<()> {
    if arena.is_null(node) {
        return Ok(());
    }
    match arena.get(node).kind {
        Kind::Scalar => {
            if arena.get(node).is_string() {
                replace(arena, node, values)?;
            }
        }
        Kind::Map => {
            let pairs: Vec<(Id, Id)> = arena.pairs(node).collect();
            for (key, value) in pairs {
                if !arena.get(key).is_string() {
                    return Err(Fault::new(format!("the key {} is not a string", arena.text(key)))
                        .at(arena.at(key))
                        .remedy("quote it"));
                }
                if arena.get(value).is_string() {
                    replace(arena, value, values)?;
                }
            }
        }
        Kind::List => {
            for element in arena.get(node).content.clone() {
                if !arena.get(element).is_string() {
                    return Err(Fault::new("variables are put into a list of strings, and this is none")
                        .at(arena.at(element))
                        .remedy("quote it"));
                }
                replace(arena, element, values)?;
            }
        }
    }
    Ok(())
}

fn replace(arena: &mut Arena, node: Id, values: &BTreeMap<Rc<str>, Value>) -> Res<()> {
    let input = arena.text(node);
    // What will be written is counted before it is.
    let longest = values.values().map(|value| match value {
        Value::Text(text) | Value::Typed(text, _) => text.len(),
        Value::Structure => 0,
    });
    arena.write(input.len() + input.matches("$(").count() * longest.max().unwrap_or_default())?;
    let (text, tag) = expand(&input, values);
    let place = arena.get_mut(node);
    place.text = text.into();
    place.tag = tag;
    place.style = Style::PLAIN;
    Ok(())
}

fn expand(input: &str, values: &BTreeMap<Rc<str>, Value>) -> (String, Tag) {
    let mut out = String::new();
    let mut rest = input;
    while let Some(at) = rest.find('$') {
        let after = &rest[at + 1..];
        if after.is_empty() {
            break;
        }
        out.push_str(&rest[..at]);
        if let Some(after) = after.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some(inner) = after.strip_prefix('(') {
            let Some(end) = inner.find(')') else {
                out.push_str("$(");
                rest = inner;
                continue;
            };
            let name = &inner[..end];
            let whole = input.len() == name.len() + 3;
            match values.get(name) {
                Some(Value::Typed(text, tag)) if whole => return (text.to_string(), tag.clone()),
                Some(Value::Text(text) | Value::Typed(text, _)) => out.push_str(text),
                Some(Value::Structure) | None => out.push_str(&format!("$({name})")),
            }
            rest = &inner[end + 1..];
        } else {
            let first = after.chars().next().map_or(0, char::len_utf8);
            out.push('$');
            out.push_str(&after[..first]);
            rest = &after[first..];
        }
    }
    out.push_str(rest);
    (out, Tag::Str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_expand_as_in_kustomize() {
        let values =
            BTreeMap::from([("A".into(), Value::Text("a".into())), ("N".into(), Value::Typed("8".into(), Tag::Int))]);
        let check = |input: &str, expected: &str, tag: Tag| {
            assert_eq!(expand(input, &values), (expected.to_owned(), tag), "{input}")
        };
        check("$(A)-$(N)", "a-8", Tag::Str);
        check("$(N)", "8", Tag::Int);
        check("$$(A)_$(A)", "$(A)_a", Tag::Str);
        check("$(B)$", "$(B)$", Tag::Str);
        check("x$(A", "x$(A", Tag::Str);
        check("$A", "$A", Tag::Str);
    }
}
