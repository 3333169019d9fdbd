//! ConfigMaps and Secrets from literals, files and env files, and the hash of their content.

use std::{collections::BTreeMap, rc::Rc};

use base64::Engine;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::{
    fault::{At, Fault, Res},
    kustomization::{Generator, GeneratorOptions},
    node::{Id, Kind, Node, Style, Tag},
    object::{self, Object, World},
    path,
    read::Text,
    tree::Files,
    value,
};

/// What a key of generated data holds.
type Data = BTreeMap<Rc<str>, (Vec<u8>, At)>;

/// Makes the object of a generator.
pub fn object(world: &mut World, files: &Files<'_>, root: &str, generator: &Generator, secret: bool) -> Res<Object> {
    let at = generator.at;
    let kind = if secret { "Secret" } else { "ConfigMap" };
    if generator.name.is_empty() {
        return Err(Fault::new(format!("the generated {kind} has no name")).at(at).remedy("give the generator a name"));
    }
    let data = data(files, root, generator)?;
    let mut content = Vec::new();
    for (key, text) in [("apiVersion", "v1"), ("kind", kind)] {
        content.push(world.arena.add(Node::scalar(key, Tag::Str, at)));
        content.push(world.arena.add(Node::scalar(text, Tag::Str, at)));
    }
    let node = world.arena.add(Node { content, tag: Tag::Map, ..Node::map(at) });
    let mut object = Object::new(node, at);
    set(world, node, &["metadata", "name"], Node::string(&generator.name, at))?;
    if !generator.namespace.is_empty() {
        set(world, node, &["metadata", "namespace"], Node::string(&generator.namespace, at))?;
    }
    if secret {
        let kind = if generator.kind.is_empty() { "Opaque" } else { &*generator.kind };
        set(world, node, &["type"], Node::string(kind, at))?;
        path::lookup(&mut world.arena, node, &["data".to_owned()], Some(Kind::Map))?;
    }
    for (key, (bytes, at)) in &data {
        let (field, text) = match std::str::from_utf8(bytes) {
            Ok(text) if !secret => ("data", text.to_owned()),
            _ if secret => ("data", base64_lines(bytes)),
            _ => ("binaryData", base64_lines(bytes)),
        };
        set(world, node, &[field, key], Node::string(&text, *at))?;
    }
    let options = generator.options.clone().unwrap_or_default();
    for (key, text) in options.labels.iter().flatten() {
        object::set_label(world, node, key, text)?;
    }
    for (key, text) in options.annotations.iter().flatten() {
        object::set_annotation(world, node, key, text)?;
    }
    if options.immutable {
        set(world, node, &["immutable"], Node::scalar("true", Tag::Bool, at))?;
    }
    finish(world, &mut object, generator.behavior.as_ref(), &options)?;
    Ok(object)
}

fn finish(world: &mut World, object: &mut Object, behavior: Option<&Text>, options: &GeneratorOptions) -> Res<()> {
    if !options.no_hash {
        object.note(world, object::NEEDS_HASH, "enabled")?;
    }
    let behavior = match behavior.map(|behavior| &*behavior.text) {
        Some("merge") => "merge",
        Some("replace") => "replace",
        Some("create") => "create",
        _ => "unspecified",
    };
    object.note(world, object::BEHAVIOR, behavior)
}

/// Sets a field; a key with special characters is one part.
fn set(world: &mut World, root: Id, path: &[&str], value: Node) -> Res<()> {
    let Some((last, parents)) = path.split_last() else { return Ok(()) };
    let parents: Vec<String> = parents.iter().map(|part| (*part).to_owned()).collect();
    let Some(map) = path::lookup(&mut world.arena, root, &parents, Some(Kind::Map))? else { return Ok(()) };
    let value = world.arena.add(value);
    world.arena.set_field(map, last, Some(value), Style::PLAIN)
}

fn data(files: &Files<'_>, root: &str, generator: &Generator) -> Res<Data> {
    let mut data = Data::new();
    let mut insert = |key: &str, bytes: Vec<u8>, at: At| match data.get(key) {
        Some((_, first)) => Err(Fault::new(format!("{} gets the key {key:?} twice", generator.name))
            .at(at)
            .also(*first, "the first time")
            .remedy("remove one of them")),
        None => {
            data.insert(key.into(), (bytes, at));
            Ok(())
        }
    };
    for env in &generator.envs {
        let (file, bytes) = files.load(root, &env.text).map_err(|fault| fault.at(env.at))?;
        let number = files.number(&file);
        for (index, line) in lines(&bytes).enumerate() {
            let at = At { file: number, line: index as u32 + 1, column: 1 };
            if let Some((key, value)) = env_line(line, index == 0).map_err(|fault| fault.at(at))? {
                insert(key, value.into(), at)?;
            }
        }
    }
    for literal in &generator.literals {
        let pair = literal.text.split_once('=').filter(|(key, _)| !key.is_empty());
        let (key, value) = pair.ok_or_else(|| {
            // What it says may be a secret.
            Fault::new("the literal is not key=value").at(literal.at).remedy("write key=value")
        })?;
        insert(key, unquoted(value).into(), literal.at)?;
    }
    for source in &generator.files {
        let (key, path) = file_source(&source.text).map_err(|fault| fault.at(source.at))?;
        let (_, bytes) = files.load(root, path).map_err(|fault| fault.at(source.at))?;
        insert(key, bytes, source.at)?;
    }
    Ok(data)
}

/// The lines of an env file; a line may end in CR LF.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let empty = bytes.is_empty();
    bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)).filter(move |_| !empty)
}

fn env_line(line: &[u8], first: bool) -> Res<Option<(&str, &str)>> {
    if line.len() > 64 * 1024 {
        return Err(Fault::new("the line is longer than 64 KiB").remedy("use files for large values"));
    }
    let line = std::str::from_utf8(line)
        .map_err(|_| Fault::new("the line is not UTF-8").remedy("use files for binary values"))?;
    let line = if first { line.strip_prefix('\u{feff}').unwrap_or(line) } else { line };
    let line = line.trim_start();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (key, value) = line.split_once('=').unwrap_or((line, ""));
    Ok((!key.is_empty()).then_some((key, value)))
}

fn unquoted(value: &str) -> &str {
    for quote in ['"', '\''] {
        if value.len() >= 2 && value.starts_with(quote) && value.ends_with(quote) {
            return &value[1..value.len() - 1];
        }
    }
    value
}

fn file_source(source: &str) -> Res<(&str, &str)> {
    let mut parts = source.split('=');
    let fault = |what: String| Fault::new(what).remedy("write path, or key=path");
    match (parts.next(), parts.next(), parts.next()) {
        (Some(path), None, _) => Ok((path.trim_end_matches('/').rsplit('/').next().unwrap_or(path), path)),
        (Some(""), Some(_), None) => Err(fault(format!("{source:?} has no key before ="))),
        (Some(_), Some(""), None) => Err(fault(format!("{source:?} has no path after ="))),
        (Some(key), Some(path), None) => Ok((key, path)),
        _ => Err(fault(format!("{source:?} has more than one ="))),
    }
}

/// Base64, broken into lines as Go's YAML library does it: the breaks are part of the value.
pub fn base64_lines(bytes: &[u8]) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(bytes);
    if text.len() < 70 {
        return text;
    }
    let mut out = String::with_capacity(text.len() + text.len() / 70 + 1);
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(70));
        out.push_str(line);
        out.push('\n');
        rest = after;
    }
    out
}

/// The suffix that the content of an object gives its name.
pub fn hash(world: &World, object: &Object) -> Res<String> {
    let Some(root) = object.root else { return Ok(String::new()) };
    let kind = object.kind(world);
    let field = |name: &str| -> Res<Value> {
        let Some((_, found)) = world.arena.field(root, name) else { return Ok("".into()) };
        if world.arena.get(found).kind == Kind::Scalar {
            return Ok(world.arena.text(found).as_ref().into());
        }
        value::of(&world.arena, found)
    };
    let mut content = Map::new();
    content.insert("kind".to_owned(), kind.as_ref().into());
    // Empty by a slip that has become the format.
    content.insert("name".to_owned(), "".into());
    content.insert("data".to_owned(), field("data")?);
    let optional = match &*kind {
        "ConfigMap" => "binaryData",
        "Secret" => {
            content.insert("type".to_owned(), field("type")?);
            "stringData"
        }
        other => {
            return Err(Fault::new(format!("only a ConfigMap or a Secret gets a hash, not a {other}"))
                .at(object.at)
                .remedy(format!("remove the annotation {}", object::NEEDS_HASH)));
        }
    };
    let extra = field(optional)?;
    if extra.is_object() {
        content.insert(optional.to_owned(), extra);
    }
    let digest = Sha256::digest(value::go_json(&Value::Object(content)).as_bytes());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(hex
        .chars()
        .take(10)
        .map(|c| match c {
            '0' => 'g',
            '1' => 'h',
            '3' => 'k',
            'a' => 'm',
            'e' => 't',
            c => c,
        })
        .collect())
}

/// The same Secret with `stringData` folded into `data`, as the API server would.
pub fn fold_string_data(world: &mut World, secret: &Object) -> Res<Object> {
    let copy = secret.copy(world)?;
    let Some(root) = copy.root else { return Ok(copy) };
    if let Some((_, texts)) = world.arena.field(root, "stringData") {
        let pairs: Vec<(Id, Id)> = world.arena.pairs(texts).collect();
        for (key, text) in pairs {
            if world.arena.get(text).kind != Kind::Scalar {
                return Err(Fault::new("a value of stringData must be a text").at(world.arena.at(text)));
            }
            let plain = if world.arena.is_null(text) { "".into() } else { world.arena.text(text) };
            let encoded = base64_lines(plain.as_bytes());
            let (key, at) = (world.arena.text(key), world.arena.at(text));
            set(world, root, &["data", &key], Node::string(&encoded, at))?;
        }
        world.arena.clear(root, "stringData")?;
    }
    Ok(copy)
}

/// Joins `data` and `binaryData` of an older object with those of a newer, which wins.
pub fn merge_data(world: &mut World, new: &Object, data: &Object, binary: &Object) -> Res<()> {
    let Some(root) = new.root else { return Ok(()) };
    for (field, old) in [("data", data), ("binaryData", binary)] {
        let mut merged: BTreeMap<Rc<str>, (Rc<str>, At)> = BTreeMap::new();
        for object in [old, new] {
            let map = object.root.and_then(|root| world.arena.field(root, field)).map(|(_, map)| map);
            let Some(map) = map else { continue };
            for (key, text) in world.arena.pairs(map) {
                let plain = if world.arena.is_null(text) { "".into() } else { world.arena.text(text) };
                merged.insert(world.arena.text(key), (plain, world.arena.at(text)));
            }
        }
        world.arena.clear(root, field)?;
        for (key, (text, at)) in merged {
            set(world, root, &[field, &key], Node::string(&text, at))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_base64_is_broken_into_lines() {
        assert_eq!(base64_lines(b"x"), "eA==");
        let long = base64_lines(&[0; 60]);
        assert_eq!(long.lines().map(str::len).collect::<Vec<_>>(), [70, 10]);
        assert!(long.ends_with('\n'));
    }

    #[test]
    fn lines_of_env_files_are_read_as_kustomize_reads_them() {
        #[track_caller]
        fn check(line: &str, expected: Option<(&str, &str)>) {
            assert_eq!(env_line(line.as_bytes(), true).unwrap(), expected, "{line:?}");
        }
        check("A=b=c", Some(("A", "b=c")));
        check("  A='x' ", Some(("A", "'x' ")));
        check("\u{feff}A", Some(("A", "")));
        check("# no", None);
        check("=x", None);
    }
}
