//! Patches: which kind a text is, which objects it is for, and its application.

use std::rc::Rc;

use crate::{
    fault::{At, Fault, InstructedBy, Res},
    jsonpatch::{self, Operation},
    kustomization, merge,
    object::{self, Object, Set, World},
    read::Text,
    resources,
    selector::Selector,
    tree::Files,
    value,
};

/// A patch that was read.
#[derive(Debug)]
pub struct Patch {
    pub at: At,
    /// Where its text begins.
    text_at: At,
    body: Body,
    target: Option<Selector>,
}

#[derive(Debug)]
enum Body {
    Strategic(Vec<Object>),
    Json(Vec<Operation>),
    /// A text of comments does nothing.
    Nothing,
}

impl Patch {
    /// Reads an entry of `patches`.
    pub fn read(world: &mut World, files: &Files<'_>, root: &str, patch: &kustomization::Patch) -> Res<Patch> {
        let text = match (&patch.path, &patch.patch) {
            (Some(path), None) => {
                files.load_text(root, &path.text).map_err(|fault| fault.on(path.at, "in this file"))?
            }
            (None, Some(text)) if !text.text.trim().is_empty() => trimmed(text),
            (Some(_), Some(_)) => {
                return Err(Fault::new("a patch has path and patch").at(patch.at).remedy("remove one of them"));
            }
            (None, _) => {
                return Err(Fault::new("a patch needs path or patch")
                    .at(patch.at)
                    .remedy("name a file, or write the patch"));
            }
        };
        let strategic = resources::objects(world, &text);
        let json = jsonpatch::parse(&text);
        let body = match (strategic, json) {
            (Ok(objects), Ok(operations)) if !objects.is_empty() && !operations.is_empty() => {
                return Err(Fault::new("the patch is both a strategic merge patch and a JSON patch").at(patch.at));
            }
            (Ok(objects), _) if objects.is_empty() => Body::Nothing,
            (Ok(objects), _) => Body::Strategic(objects),
            (Err(_), Ok(operations)) => Body::Json(operations),
            (Err(strategic), Err(json)) => return Err(neither(*strategic, *json, &text, patch)),
        };
        if let Body::Strategic(objects) = &body {
            for object in objects {
                for (allowed, note) in [(patch.allow_name, object::ALLOW_NAME), (patch.allow_kind, object::ALLOW_KIND)]
                {
                    if allowed {
                        object.note(world, note, "enabled")?;
                    }
                }
            }
        }
        Ok(Patch { at: patch.at, text_at: text.at, body, target: patch.target.clone() })
    }

    /// Reads an entry of `patchesJson6902`.
    pub fn read_json(files: &Files<'_>, root: &str, patch: &kustomization::Patch) -> Res<Patch> {
        if patch.target.as_ref().is_none_or(|target| target.name.is_empty()) {
            let at = patch.target.as_ref().map_or(patch.at, |target| target.at);
            return Err(Fault::new("the target of a JSON patch needs a name here")
                .at(patch.at)
                .also(at, "the target")
                .remedy("add the name, or move the patch to patches"));
        }
        let text = match (&patch.path, &patch.patch) {
            (Some(path), None) => {
                files.load_text(root, &path.text).map_err(|fault| fault.on(path.at, "in this file"))?
            }
            (None, Some(text)) => text.clone(),
            (Some(_), Some(_)) => {
                return Err(Fault::new("a patch has path and patch").at(patch.at).remedy("remove one of them"));
            }
            (None, None) => return Err(Fault::new("a patch needs path or patch").at(patch.at)),
        };
        let operations = jsonpatch::parse(&text)?;
        if operations.is_empty() {
            return Err(Fault::new("the patch is empty").at(text.at).remedy("add operations, or remove the entry"));
        }
        Ok(Patch { at: patch.at, text_at: text.at, body: Body::Json(operations), target: patch.target.clone() })
    }

    /// Reads an entry of `patchesStrategicMerge`: objects, or the path of a file of them.
    pub fn read_strategic(world: &mut World, files: &Files<'_>, root: &str, entry: &Text) -> Res<Vec<Object>> {
        if let Ok(objects) = resources::objects(world, entry) {
            return Ok(objects);
        }
        let looks_inline = entry.text.contains('\n');
        let text = files.load_text(root, &entry.text).map_err(|fault| {
            if looks_inline {
                Fault::new("this is neither a file nor a patch").at(entry.at)
            } else {
                fault.on(entry.at, "in this file")
            }
        })?;
        resources::objects(world, &text)
    }

    pub fn apply(&self, world: &mut World, set: &mut Set) -> Res<()> {
        match &self.body {
            Body::Nothing => Ok(()),
            Body::Strategic(patches) => match &self.target {
                Some(target) => self.strategic_to_target(world, set, patches, target),
                None => patches.iter().try_for_each(|patch| to_named(world, set, patch, self.at, false)),
            },
            Body::Json(operations) => {
                let Some(target) = &self.target else {
                    return Err(Fault::new("a JSON patch needs a target")
                        .at(self.text_at)
                        .also(self.at, "the entry")
                        .remedy("add target with the kind and the name"));
                };
                self.json_to_target(world, set, operations, target, true)
            }
        }
    }

    /// The same for `patchesJson6902`, which does not note the old name first.
    pub fn apply_json(&self, world: &mut World, set: &mut Set) -> Res<()> {
        match (&self.body, &self.target) {
            (Body::Json(operations), Some(target)) => self.json_to_target(world, set, operations, target, false),
            _ => Ok(()),
        }
    }

    fn strategic_to_target(&self, world: &mut World, set: &mut Set, patches: &[Object], target: &Selector) -> Res<()> {
        let [patch] = patches else {
            return Err(Fault::new(format!("the patch has {} documents, but a target", patches.len()))
                .at(self.at)
                .remedy("write one entry for each document, or remove the target"));
        };
        let selected = set.select(world, target)?;
        apply_copies(world, set, &selected, patch, self.at)
    }

    fn json_to_target(
        &self,
        world: &mut World,
        set: &mut Set,
        operations: &[Operation],
        target: &Selector,
        note: bool,
    ) -> Res<()> {
        for index in set.select(world, target)? {
            let object = &mut set.change()[index];
            let Some(root) = object.root else { continue };
            if note {
                object.store_previous(world)?;
            }
            let notes = object.internal_annotations(world);
            let mut document = value::of(&world.arena, root)?;
            jsonpatch::apply(operations, &mut document).map_err(|fault| fault.also(object.at, "the object"))?;
            world.arena.spend(world.arena.get(root).content.len() + 1)?;
            let patch_at = operations.first().map_or(self.at, |operation| operation.at);
            let node = value::to_node(&mut world.arena, &document, Some(root), patch_at)?;
            object.root = Some(node);
            object.patched.push(self.at);
            let mut annotations = object.annotations(world);
            annotations.extend(notes);
            object.set_annotations(world, &annotations)?;
        }
        Ok(())
    }
}

fn trimmed(text: &Text) -> Text {
    // Leading blank lines would move the lines below.
    let start = text.text.trim_start();
    let skipped = text.text.len() - start.len();
    let newlines = text.text[..skipped].matches('\n').count() as u32;
    let indented = !text.text[..skipped].ends_with('\n') && skipped > 0;
    let lines = text.lines.map(|(line, column)| (line + newlines, column)).filter(|_| !indented);
    Text { at: text.at, text: text.text.trim().into(), lines }
}

/// Why a text is neither kind of patch: the reason of the kind that it looks like.
fn neither(strategic: Fault, json: Fault, text: &Text, patch: &kustomization::Patch) -> Box<Fault> {
    let is_list = text.text.trim_start().starts_with(['-', '[']);
    let why = if is_list { json } else { strategic };
    let message = format!("this is neither a strategic merge patch nor a JSON patch: {}", why.message);
    let remedy = if is_list {
        "write operations with op, path and value"
    } else {
        "a strategic merge patch needs apiVersion, kind and metadata.name, also with a target"
    };
    let fault = Fault::new(message).remedy(why.remedy.unwrap_or_else(|| remedy.to_owned()));
    let fault = fault.at(why.at).at(text.at).at(patch.at);
    fault.also(patch.at, "the entry")
}

/// Applies a patch to the one object that has or had its name.
pub fn to_named(world: &mut World, set: &mut Set, patch: &Object, entry: At, copies: bool) -> Res<()> {
    let name = patch.original(world)?;
    let found = set.ever_named(world, &name)?;
    let at = patch.place(world, &["metadata", "name"]);
    match found.as_slice() {
        [index] if copies => apply_copies(world, set, &[*index], patch, entry),
        [index] => {
            let mut object = set.list[*index].clone();
            let before = object::all_names(world, &object)?;
            apply_one(world, &mut object, patch, entry)?;
            set.put_back(world, *index, object, &before)
        }
        [] => {
            let near =
                set.list.iter().find(|object| object.name(world) == name.name && *object.kind(world) == *name.gvk.kind);
            let fault = Fault::new(format!("there is no {} to patch", name.show())).at(at).also(entry, "the entry");
            Err(match near {
                Some(near) if near.gvk(world) != name.gvk => {
                    fault.remedy(format!("write apiVersion: {}", near.gvk(world).api_version()))
                }
                Some(near) if !near.namespace(world).is_empty() => {
                    fault.remedy(format!("write namespace: {} in its metadata", near.namespace(world)))
                }
                _ => fault.remedy("correct kind, name or namespace, or give the patch a target"),
            })
        }
        [first, ..] => Err(Fault::new(format!("{} objects are or were {}", found.len(), name.show()))
            .at(at)
            .also(set.list[*first].at, "one of them")
            .remedy("give the patch a target")),
    }
}

/// Applies copies of a patch to objects that were selected.
fn apply_copies(world: &mut World, set: &mut Set, selected: &[usize], patch: &Object, entry: At) -> Res<()> {
    for index in selected {
        let mut object = set.change()[*index].clone();
        let mut copy = patch.copy(world)?;
        copy.take_metadata(world, patch)?;
        let (gvk, kind): (_, Rc<str>) = (object.gvk(world), patch.kind(world));
        let patch_at = patch.place(world, &["kind"]);
        copy.set_text(world, &["apiVersion"], &gvk.api_version(), patch_at)?;
        copy.set_text(world, &["kind"], &kind, patch_at)?;
        apply_one(world, &mut object, &copy, entry)?;
        set.change()[*index] = object;
    }
    set.recheck(world)
}

/// Merges a patch into an object, which keeps its kind, name and namespace unless told otherwise.
fn apply_one(world: &mut World, object: &mut Object, patch: &Object, entry: At) -> Res<()> {
    let (Some(root), Some(patch_root)) = (object.root, patch.root) else { return Ok(()) };
    let (name, namespace, kind) = (object.name(world), object.namespace(world), object.kind(world));
    let places = [object.place(world, &["metadata", "name"]), object.place(world, &["kind"])];
    let (allow_name, allow_kind) =
        (patch.has_note(world, object::ALLOW_NAME), patch.has_note(world, object::ALLOW_KIND));
    if allow_name || allow_kind {
        object.store_previous(world)?;
    }
    let merged = merge::merge(&mut world.arena, &world.schemas, root, patch_root)
        .or_at(patch.at)
        .map_err(|fault| fault.also(entry, "the entry"))?;
    object.patched.push(entry);
    if merged.is_none() {
        object.root = None;
    }
    if object.is_gone(world) {
        return Ok(());
    }
    if !allow_kind {
        object.set_text(world, &["kind"], &kind, places[1])?;
    }
    if !allow_name {
        object.set_text(world, &["metadata", "name"], &name, places[0])?;
    }
    object.set_namespace(world, &namespace)
}
