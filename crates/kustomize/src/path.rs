//! Paths into an object as kyaml walks them: fields, positions, `[key=value]`, and for targets `*` and expressions.

use regex::Regex;

use crate::{
    emit,
    fault::{Fault, Res},
    node::{Arena, Id, Kind, Node, Style},
    read, selector,
};

/// Splits at a delimiter; a backslash before it takes its meaning away.
pub fn split(path: &str, delimiter: char) -> Vec<String> {
    let mut parts: Vec<&str> = path.split(delimiter).collect();
    if parts.len() > 1 && parts[0].is_empty() {
        parts.remove(0);
    }
    let mut out: Vec<String> = vec![parts[0].to_owned()];
    for part in &parts[1..] {
        match out.last_mut() {
            Some(last) if last.ends_with('\\') => {
                last.pop();
                last.push(delimiter);
                last.push_str(part);
            }
            _ => out.push((*part).to_owned()),
        }
    }
    out
}

/// Splits at dots, but not in brackets: `[key.with.dots]` is a field, `[name=a.b]` an element.
pub fn split_dots(path: &str) -> Vec<String> {
    let parts = split(path, '.');
    let mut out = Vec::new();
    let mut index = 0;
    while index < parts.len() {
        let part = &parts[index];
        if part.starts_with('[') && !part.ends_with(']') {
            let mut whole = part.clone();
            while index + 1 < parts.len() {
                index += 1;
                whole.push('.');
                whole.push_str(&parts[index]);
                if parts[index].ends_with(']') {
                    break;
                }
            }
            out.push(if whole.contains('=') { whole } else { whole.trim_matches(['[', ']']).to_owned() });
        } else {
            out.push(part.clone());
        }
        index += 1;
    }
    out
}

/// A path may not make values that nobody can walk.
pub fn short(path: &[String]) -> Res<()> {
    if path.len() > 100 {
        return Err(Fault::budget("the path has more than 100 parts").remedy("no Kubernetes object needs that"));
    }
    Ok(())
}

fn is_element(part: &str) -> bool {
    part.starts_with('[') && part.ends_with(']')
}

fn position(part: &str) -> Option<i64> {
    let digits = part.strip_prefix(['+', '-']).unwrap_or(part);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    part.strip_prefix('+').unwrap_or(part).parse().ok()
}

fn element_parts(part: &str) -> Res<(&str, &str)> {
    let inner = part.strip_suffix(']').unwrap_or(part);
    let inner = inner.strip_prefix('[').unwrap_or(inner);
    inner
        .split_once('=')
        .ok_or_else(|| Fault::new(format!("{part} is no list element")).remedy("write [field=value], or a position"))
}

/// What a part that does not exist must be, for the next part to go on in it.
fn kind_before(next: Option<&str>, last: Kind) -> Kind {
    match next {
        None | Some("") => last,
        Some(next) if is_element(next) || position(next).is_some_and(|n| n >= 0) => Kind::List,
        Some(_) => Kind::Map,
    }
}

/// The node at a path; with `create` what is missing is made, and ends in a node of that kind.
pub fn lookup(arena: &mut Arena, start: Id, path: &[String], create: Option<Kind>) -> Res<Option<Id>> {
    short(path)?;
    let parts: Vec<&str> = path.iter().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
    let mut here = start;
    for (index, part) in parts.iter().enumerate() {
        let next = parts.get(index + 1).copied();
        let found = if let Some(position) = position(part) {
            if position < 0 {
                return Err(Fault::new(format!("the position {position} is negative")));
            }
            arena.elements(here)?.get(position as usize).copied()
        } else if *part == "-" {
            arena.elements(here)?.last().copied()
        } else if *part == "*" {
            return Err(Fault::new("* is not supported in this path"));
        } else if is_element(part) {
            let (name, value) = element_parts(part)?;
            element(arena, here, name, value, create.is_some())?
        } else {
            match (arena.lookup_field(here, part)?, create) {
                (None, Some(kind)) if !arena.is_null(here) => {
                    let node = Node::of_kind(kind_before(next, kind), arena.at(here));
                    let node = arena.add(node);
                    arena.set_field(here, part, Some(node), Style::PLAIN)?;
                    Some(node)
                }
                (found, _) => found,
            }
        };
        match found {
            Some(found) => here = found,
            None => return Ok(None),
        }
    }
    Ok(Some(here))
}

fn element(arena: &mut Arena, list: Id, name: &str, value: &str, create: bool) -> Res<Option<Id>> {
    let elements = arena.elements(list)?;
    let found = elements.iter().copied().find(|element| {
        if name.is_empty() {
            return &*arena.get(*element).text == value;
        }
        arena.field(*element, name).is_some_and(|(_, found)| &*arena.get(found).text == value)
    });
    if found.is_some() || !create || arena.is_null(list) {
        return Ok(found);
    }
    let at = arena.at(list);
    let text = arena.add(Node::scalar(value, crate::node::Tag::None, at));
    let new = if name.is_empty() {
        text
    } else {
        let key = arena.add(Node::scalar(name, crate::node::Tag::None, at));
        arena.add(Node { content: vec![key, text], ..Node::map(at) })
    };
    arena.append(list, new)?;
    Ok(Some(new))
}

/// All nodes that a target path matches; with `create` what is missing is made.
pub fn matches(arena: &mut Arena, start: Id, path: &[String], create: Option<Kind>) -> Res<Vec<Id>> {
    arena.spend(1)?;
    short(path)?;
    let Some((part, rest)) = path.split_first() else { return Ok(vec![start]) };
    if let Some(index) = position(part).filter(|n| *n >= 0) {
        let index = index as usize;
        let mut elements = arena.elements(start)?;
        if elements.len() == index
            && let Some(kind) = create
        {
            let node = Node::of_kind(kind_before(rest.first().map(String::as_str), kind), arena.at(start));
            let node = arena.add(node);
            arena.append(start, node)?;
            elements.push(node);
        }
        let Some(element) = elements.get(index) else {
            return Err(Fault::new(format!(
                "the path asks for position {index}, but the list has {} elements",
                elements.len()
            ))
            .at(arena.at(start)));
        };
        return matches(arena, *element, rest, create);
    }
    if is_element(part) {
        return matching_elements(arena, start, part, rest, create);
    }
    if part == "*" {
        let mut all = Vec::new();
        for element in arena.elements(start)? {
            all.extend(matches(arena, element, rest, create)?);
        }
        return Ok(all);
    }
    let field = match (arena.lookup_field(start, part)?, create) {
        (None, None) => return Ok(Vec::new()),
        (None, Some(kind)) => {
            let node = Node::of_kind(kind_before(rest.first().map(String::as_str), kind), arena.at(start));
            let node = arena.add(node);
            arena.set_field(start, part, Some(node), Style::PLAIN)?;
            node
        }
        (Some(field), _) => field,
    };
    if arena.get(field).kind == Kind::Scalar && !rest.is_empty() {
        // The text is read, and what is found in it is changed and forgotten.
        let (text, at) = (arena.text(field), arena.at(field));
        let inner = read::embedded(arena, &text, at)?
            .ok_or_else(|| Fault::new("the path goes on inside an empty text").at(at))?;
        return matches(arena, inner, rest, create);
    }
    matches(arena, field, rest, create)
}

fn matching_elements(arena: &mut Arena, list: Id, part: &str, rest: &[String], create: Option<Kind>) -> Res<Vec<Id>> {
    let (name, pattern) = element_parts(part)?;
    let expression = selector::expression(pattern)?;
    for attempt in 0..2 {
        let mut all = Vec::new();
        for element in arena.elements(list)? {
            all.extend(matching_element(arena, element, name, &expression, rest, create)?);
        }
        let Some(_) = create.filter(|_| all.is_empty() && attempt == 0) else { return Ok(all) };
        let at = arena.at(list);
        let value = arena.add(Node::scalar(pattern, crate::node::Tag::None, at));
        let new = if name.is_empty() {
            value
        } else {
            let key = arena.add(Node::scalar(name, crate::node::Tag::None, at));
            arena.add(Node { content: vec![key, value], ..Node::map(at) })
        };
        arena.append(list, new)?;
    }
    // kustomize looks for ever for an element that its own expression does not match.
    Err(Fault::new(format!("{part} matches no element, and an element made from it would not match either"))
        .remedy("write the value without special characters"))
}

fn matching_element(
    arena: &mut Arena,
    element: Id,
    name: &str,
    expression: &Regex,
    rest: &[String],
    create: Option<Kind>,
) -> Res<Vec<Id>> {
    arena.spend(1)?;
    if name.is_empty() {
        let matched = expression.is_match(emit::node(arena, element)?.trim());
        // kustomize ends here, whatever the path says.
        return Ok(if matched { vec![element] } else { Vec::new() });
    }
    let Some((_, value)) = arena.field(element, name) else { return Ok(Vec::new()) };
    if !expression.is_match(emit::node(arena, value)?.trim()) {
        return Ok(Vec::new());
    }
    matches(arena, element, rest, create)
}
