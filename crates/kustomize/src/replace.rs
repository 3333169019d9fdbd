//! Replacements: the value of a field of one object into fields of others, as kustomize copies it.

use std::rc::Rc;

use crate::{
    emit,
    fault::{At, Fault, InstructedBy, Res},
    ident::{Gvk, Name},
    kustomization::{FieldOptions, Replacement, Source, Target},
    node::{Arena, Id, Kind, Node, Tag},
    object::{Object, Set, World},
    path,
    read::{self, Text},
    selector::Matcher,
    value,
};

/// Applies replacements in order, each to the result of the one before.
pub fn apply(world: &mut World, set: &mut Set, replacements: &[Replacement]) -> Res<()> {
    for replacement in replacements {
        let Some(targets) =
            replacement.targets.as_ref().filter(|_| replacement.source.is_some() || replacement.value.is_some())
        else {
            return Err(Fault::new("a replacement needs a source and targets")
                .at(replacement.at)
                .remedy("add source or sourceValue, and targets"));
        };
        let value = source_value(world, set, replacement)?;
        for target in targets {
            to_target(world, set, value, target)?;
        }
    }
    Ok(())
}

fn source_value(world: &mut World, set: &Set, replacement: &Replacement) -> Res<Id> {
    let source = match (&replacement.source, &replacement.value) {
        (Some(_), Some(value)) => {
            return Err(Fault::new("a replacement has source and sourceValue")
                .at(replacement.at)
                .also(value.at, "the value")
                .remedy("remove one of them"));
        }
        (None, Some(value)) => return Ok(world.arena.add(Node::scalar(&value.text, Tag::None, value.at))),
        (None, None) => return Err(Fault::new("a replacement needs a source").at(replacement.at)),
        (Some(source), None) => source,
    };
    let root = source_object(world, set, source)?;
    let path: Rc<str> = source.path.as_ref().map_or_else(|| "metadata.name".into(), |path| path.text.clone());
    let path_at = source.path.as_ref().map_or(source.at, |path| path.at);
    let found = path::lookup(&mut world.arena, root, &path::split_dots(&path), None).or_at(path_at)?;
    let Some(found) = found.filter(|found| !world.arena.is_empty(*found)) else {
        return Err(Fault::new(format!("{} has nothing at {path}", source.id.show()))
            .at(source.at)
            .also(world.arena.at(root), "the object")
            .remedy("correct fieldPath, or add the field"));
    };
    let Some(options) = source.options.as_ref().filter(|options| !options.delimiter.is_empty()) else {
        return Ok(found);
    };
    if world.arena.get(found).kind != Kind::Scalar {
        return Err(Fault::new("only a text can be cut at a delimiter")
            .at(options.at)
            .also(world.arena.at(found), "the value"));
    }
    let text = world.arena.text(found);
    let pieces: Vec<&str> = text.split(&*options.delimiter).collect();
    let piece = usize::try_from(options.index).ok().and_then(|index| pieces.get(index)).copied();
    let Some(piece) = piece else {
        return Err(Fault::new(format!("the value has {} pieces; {} is none of them", pieces.len(), options.index))
            .at(options.at)
            .remedy("count from 0"));
    };
    let copy = world.arena.copy(found)?;
    world.arena.get_mut(copy).text = piece.into();
    Ok(copy)
}

/// The names of an object as replacements see them: the present one as written, then the earlier ones.
fn names(world: &World, object: &Object) -> Res<Vec<Name>> {
    let gvk: Gvk = object.gvk(world);
    let mut names = vec![Name { gvk, name: object.name(world), namespace: object.namespace(world), cluster: false }];
    names.extend(object.previous(world)?);
    Ok(names)
}

fn source_object(world: &World, set: &Set, source: &Source) -> Res<Id> {
    world.arena.spend(20 * set.list.len())?;
    let mut found: Option<&Object> = None;
    for object in &set.list {
        if names(world, object)?.iter().any(|name| name.is_selected_by(&source.id)) {
            if let Some(first) = found {
                return Err(Fault::new(format!("several objects are {}", source.id.show()))
                    .at(source.at)
                    .also(first.at, "one of them")
                    .remedy("add kind, name or namespace"));
            }
            found = Some(object);
        }
    }
    found.and_then(|object| object.root).ok_or_else(|| {
        Fault::new(format!("no object is {}", source.id.show()))
            .at(source.at)
            .remedy("correct the source, or add the object to the resources")
    })
}

fn to_target(world: &mut World, set: &mut Set, value: Id, target: &Target) -> Res<()> {
    let Some(select) = &target.select else {
        return Err(Fault::new("a target must say what it selects").at(target.at).remedy("add select"));
    };
    let selector = Matcher::new(select)?;
    let rejects: Vec<Matcher> = target.reject.iter().map(Matcher::new).collect::<Res<_>>()?;
    world.arena.spend(20 * set.list.len())?;
    let default = [Text { at: target.at, text: "metadata.name".into(), lines: None }];
    let paths = if target.paths.is_empty() { &default[..] } else { &target.paths };
    for index in 0..set.change().len() {
        let object = set.list[index].clone();
        let Some(root) = object.root else { continue };
        let names = names(world, &object)?;
        let (labels, annotations) = (object.labels(world), object.annotations(world));
        let fits = |matcher: &Matcher| matcher.labels.matches(&labels) && matcher.annotations.matches(&annotations);
        let rejected = target.reject.iter().zip(&rejects).any(|(reject, matcher)| {
            let by_label = !(reject.labels.is_empty() && reject.annotations.is_empty()) && fits(matcher);
            by_label || (!matcher.is_empty && names.iter().any(|name| matcher.has(name)))
        });
        if !fits(&selector) || rejected || !names.iter().any(|name| selector.has(name)) {
            continue;
        }
        for path in paths {
            to_path(&mut world.arena, root, value, path, target.options.as_ref())
                .map_err(|fault| fault.on(path.at, "in this object"))?;
        }
        set.list[index].patched.push(target.at);
    }
    Ok(())
}

fn to_path(arena: &mut Arena, root: Id, value: Id, path: &Text, options: Option<&FieldOptions>) -> Res<()> {
    let (at, path) = (path.at, &*path.text);
    let parts = path::split_dots(path);
    let create = options.filter(|options| options.create).map(|_| arena.get(value).kind);
    if inside_text(arena, root, value, &parts, options, create)? {
        return Ok(());
    }
    let fields = path::matches(arena, root, &parts, create).map_err(|fault| fault.remedy("correct the path"))?;
    if fields.is_empty() {
        let remedy =
            if create.is_some() { "correct the path" } else { "correct the path, or set options.create: true" };
        return Err(Fault::new(format!("there is no field {path}")).at(arena.at(root)).remedy(remedy));
    }
    for field in fields {
        set(arena, field, value, options)?;
        // What is wrong with it from now on is this instruction's doing.
        arena.get_mut(field).at = at;
    }
    Ok(())
}

/// A path that goes on inside a text that is YAML or JSON.
fn inside_text(
    arena: &mut Arena,
    root: Id,
    value: Id,
    parts: &[String],
    options: Option<&FieldOptions>,
    create: Option<Kind>,
) -> Res<bool> {
    for cut in 1..parts.len() {
        let Ok(Some(field)) = path::lookup(arena, root, &parts[..cut], None) else { continue };
        if arena.get(field).kind != Kind::Scalar {
            continue;
        }
        let (text, at) = (arena.text(field), arena.at(field));
        let Ok(inner) = read::embedded(arena, &text, at) else { continue };
        let Some(inner) = inner else { return Ok(false) };
        let Ok(fields) = path::matches(arena, inner, &parts[cut..], create) else { return Ok(false) };
        if fields.is_empty() {
            return Ok(false);
        }
        for found in fields {
            if set(arena, found, value, options).is_err() {
                return Ok(false);
            }
        }
        let Some(text) = written(arena, inner, &text, at)? else { return Ok(false) };
        arena.get_mut(field).text = text.into();
        return Ok(true);
    }
    Ok(false)
}

/// The changed structure in the notation of the text it came from.
fn written(arena: &Arena, inner: Id, text: &str, at: At) -> Res<Option<String>> {
    if text.trim_start().starts_with(['{', '[']) {
        let Ok(value) = value::of(arena, inner) else { return Ok(None) };
        let pretty = text.contains('\n') && text.contains("  ");
        return Ok(Some(if pretty { value::go_json_pretty(&value) } else { value::go_json(&value) }));
    }
    if has_comment(text) {
        return Err(Fault::new("the text holds YAML with comments, which would be moved or lost")
            .at(at)
            .remedy("remove the comments from the text, or replace the whole text"));
    }
    Ok(Some(emit::node(arena, inner)?.trim().to_owned()))
}

fn has_comment(text: &str) -> bool {
    let mut parser =
        granit_parser::Parser::new_from_str_with_options(text, granit_parser::options! { emit_comments: false });
    if !text.contains('#') {
        return false;
    }
    // A number sign outside every scalar begins a comment.
    let mut covered = vec![false; text.len()];
    while let Some(Ok((event, span))) = parser.next_event() {
        if let granit_parser::Event::Scalar(..) = event {
            let start = span.start.byte_offset().unwrap_or(0);
            let end = span.end.byte_offset().unwrap_or(start).min(text.len());
            covered[start.min(end)..end].fill(true);
        }
    }
    text.bytes().zip(covered).any(|(byte, covered)| byte == b'#' && !covered)
}

fn set(arena: &mut Arena, field: Id, value: Id, options: Option<&FieldOptions>) -> Res<()> {
    let value = arena.copy(value)?;
    if let Some(options) = options.filter(|options| !options.delimiter.is_empty()) {
        if arena.get(field).kind != Kind::Scalar {
            return Err(Fault::new("only a text can be cut at a delimiter").at(arena.at(field)));
        }
        let old = arena.text(field);
        arena.write(old.len() + arena.get(value).text.len())?;
        let new = if arena.is_null(value) { "".into() } else { arena.text(value) };
        let mut pieces: Vec<&str> = old.split(&*options.delimiter).collect();
        match usize::try_from(options.index) {
            Err(_) => pieces.insert(0, &new),
            Ok(index) => match pieces.get_mut(index) {
                Some(piece) => *piece = &new,
                None => pieces.push(&new),
            },
        }
        arena.get_mut(value).text = pieces.join(&options.delimiter).into();
    }
    if arena.get(field).kind == Kind::Scalar {
        // Type and style of the place stay.
        let text = arena.text(value);
        arena.get_mut(field).text = text;
    } else {
        arena.overwrite(field, value);
    }
    Ok(())
}
