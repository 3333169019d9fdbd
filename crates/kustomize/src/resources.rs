//! Texts of resources into objects: documents, lists of objects, and the checks every object must pass.

use std::collections::VecDeque;

use crate::{
    fault::{Fault, Res},
    node::{Id, Kind},
    object::{self, Object, World},
    read::{self, Text},
    value,
};

/// The objects of a text.
pub fn objects(world: &mut World, text: &Text) -> Res<Vec<Object>> {
    let unix;
    let text = if text.text.contains("\r\n") {
        unix = Text { text: text.text.replace("\r\n", "\n").into(), ..text.clone() };
        &unix
    } else {
        text
    };
    let documents = read::split(text)?;
    let alone = documents.len() == 1;
    let mut queue: VecDeque<Id> = VecDeque::new();
    for (offset, part) in documents {
        let Some(root) = read::resource(&mut world.arena, text, offset, part)? else { continue };
        let kind = world.arena.filled(root, "kind").map(|kind| world.arena.text(kind));
        let is_list = matches!(kind.as_deref(), Some("List" | "ResourceList"));
        let items = world.arena.field(root, "items").map(|(_, items)| items);
        if alone && is_list && (items.is_some() || world.arena.field(root, "functionConfig").is_some()) {
            queue.extend(items.map(|items| world.arena.get(items).content.clone()).unwrap_or_default());
        } else {
            queue.push_back(root);
        }
    }
    let mut checked = VecDeque::new();
    for root in queue {
        if !world.arena.is_empty(root) {
            object::check_object(world, root)?;
            checked.push_back(root);
        }
    }
    let mut objects = Vec::new();
    while let Some(root) = checked.pop_front() {
        world.arena.spend(1)?;
        let kind = world.arena.field(root, "kind").map(|(_, kind)| world.arena.text(kind)).unwrap_or_default();
        let items = kind.ends_with("List").then(|| world.arena.field(root, "items")).flatten();
        let Some((_, items)) = items else {
            objects.push(Object::new(root, world.arena.at(root)));
            continue;
        };
        // The list goes through JSON on its way.
        let whole = value::decoded(&world.arena, root)?;
        match (&whole["items"], world.arena.get(items).kind) {
            (serde_json::Value::Null, _) => {}
            (serde_json::Value::Array(list), Kind::List) => {
                let olds = world.arena.get(items).content.clone();
                for (item, old) in list.iter().zip(olds) {
                    let node = value::from_json_text(&mut world.arena, item, old)?;
                    if !world.arena.is_empty(node) {
                        object::check_object(world, node)?;
                        checked.push_back(node);
                    }
                }
            }
            _ => return Err(Fault::new(format!("items of a {kind} must be a list")).at(world.arena.at(items))),
        }
    }
    Ok(objects)
}
