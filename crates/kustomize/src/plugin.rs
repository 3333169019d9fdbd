//! Entries of `generators`, `transformers` and `validators`: objects that configure kustomize's own plugins. Every other
//! plugin is a program, and refused.

use std::rc::Rc;

use serde_json::Value;

use crate::{
    build::{Build, Gathered, Level, Work, joined, origin_text},
    config::{self, FieldSpec},
    fault::{At, Fault, Res},
    generate,
    kustomization::{self, Replica},
    located::{Entry, Fields, LENIENT, Located, Yaml},
    object::{self, Object},
    patch::Patch,
    read::Text,
    resources,
    transform::{Affix, End, Images, Namespace, Replicas, SetTexts, Subjects, ValueAdd, ValueTarget},
    value::{self, Spots},
};

/// A configured transformer.
pub struct Transformer {
    pub at: At,
    /// Where it says what it does.
    pub does_at: At,
    pub work: Work,
    /// What is noted on the objects it worked on.
    pub origin: Option<String>,
}

/// The objects that generators make.
pub fn generators(build: &mut Build<'_>, level: &Level<'_>) -> Res<Vec<(Object, Option<String>, At)>> {
    let mut made = Vec::new();
    for object in entries(build, level, &level.k.generators)? {
        let origin = origin(build, &object);
        let (kind, config) = configuration(build, &object)?;
        let at = object.at;
        let made_one = match &*kind {
            "ConfigMapGenerator" | "SecretGenerator" => {
                let secret = &*kind == "SecretGenerator";
                let mut fields = Fields::of(LENIENT, &config, "the generator")?;
                let (name, namespace) = match fields.take("metadata") {
                    Some(metadata) => kustomization::object_meta(LENIENT, &metadata.value)?,
                    None => Default::default(),
                };
                let mut generator = kustomization::generator_fields(LENIENT, &mut fields, secret)?;
                generator.at = at;
                if generator.name.is_empty() {
                    generator.name = name;
                }
                if generator.namespace.is_empty() {
                    generator.namespace = namespace;
                }
                generate::object(&mut build.world, build.files, &level.root, &generator, secret)
                    .map_err(|fault| fault.at(at))?
            }
            "IAMPolicyGenerator" => iam_policy(build, &config, at)?,
            "HelmChartInflationGenerator" => return Err(no_helm(at)),
            other => {
                return Err(Fault::new(format!("{other} is no built-in generator"))
                    .at(object.place(&build.world, &["kind"]))
                    .remedy("list transformers under transformers"));
            }
        };
        made.push((made_one, origin, at));
    }
    Ok(made)
}

fn no_helm(at: At) -> Box<Fault> {
    Fault::new("this generator needs helm, which is not run while rendering")
        .at(at)
        .remedy("render the chart in CI and commit the result, or sync the chart by itself")
}

fn iam_policy(build: &mut Build<'_>, config: &Located, at: At) -> Res<Object> {
    let json = config.to_json();
    let text =
        |path: &[&str]| path.iter().fold(&json, |value, part| &value[*part]).as_str().unwrap_or_default().to_owned();
    if text(&["cloud"]) != "gke" {
        return Err(Fault::new(format!("the cloud {:?} is not supported", text(&["cloud"])))
            .at(at)
            .remedy("write cloud: gke"));
    }
    let mut yaml = format!(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  annotations:\n    iam.gke.io/gcp-service-account: {}@{}.iam.gserviceaccount.com\n  name: {}\n",
        text(&["serviceAccount", "name"]),
        text(&["serviceAccount", "projectId"]),
        text(&["kubernetesService", "name"]),
    );
    let namespace = text(&["kubernetesService", "namespace"]);
    if !namespace.is_empty() {
        yaml.push_str(&format!("\n  namespace: {namespace}"));
    }
    let source = Text { at, text: yaml.into(), lines: None };
    resources::objects(&mut build.world, &source)?
        .pop()
        .ok_or_else(|| Fault::new("the generator makes no object").at(at))
}

/// The transformers that entries configure.
pub fn transformers(build: &mut Build<'_>, level: &Level<'_>, list: &[Text]) -> Res<Vec<Transformer>> {
    let mut all = Vec::new();
    for object in entries(build, level, list)? {
        let origin = origin(build, &object);
        let (kind, config) = configuration(build, &object)?;
        let at = object.at;
        let work = transformer(build, level, &object, &kind, &config).map_err(|fault| fault.at(at))?;
        let does_at = match &config.yaml {
            Yaml::Map(entries) => {
                let own = entries.iter().filter(|entry| !matches!(&*entry.name, "apiVersion" | "kind" | "metadata"));
                own.map(|entry| entry.value.at).min().unwrap_or(at)
            }
            _ => at,
        };
        all.push(Transformer { at, does_at, work, origin });
    }
    Ok(all)
}

/// Entries are objects, written there or in files, or kustomizations that make them.
fn entries(build: &mut Build<'_>, level: &Level<'_>, list: &[Text]) -> Res<Vec<Object>> {
    let mut gathered = Gathered::default();
    let mut paths = Vec::new();
    for entry in list {
        match resources::objects(&mut build.world, entry) {
            Err(_) if !entry.text.contains('\n') => paths.push(entry.clone()),
            Err(fault) => return Err(fault.at(entry.at)),
            Ok(objects) => {
                for mut object in objects {
                    if entry.lines.is_none() {
                        object.at = entry.at;
                    }
                    if build.notes_origin() {
                        let file = file_of(build, entry);
                        let origin = format!("path: {}\n", origin_text(&joined(&level.origin, &file)));
                        object.note(&mut build.world, object::ORIGIN, &origin)?;
                    }
                    gathered.set.append(&build.world, object)?;
                }
            }
        }
    }
    build.resources(level, &paths, &mut gathered)?;
    Ok(gathered.set.list)
}

fn file_of(build: &Build<'_>, entry: &Text) -> String {
    let file = build.files.name(entry.at.file).unwrap_or_default();
    file.rsplit('/').next().unwrap_or_default().to_owned()
}

/// What is noted on the objects of a configured plugin, if origins are noted.
fn origin(build: &Build<'_>, object: &Object) -> Option<String> {
    if !build.notes_origin() {
        return None;
    }
    let world = &build.world;
    let text = object.annotations(world).get(object::ORIGIN).cloned()?;
    let path = text.lines().find_map(|line| line.strip_prefix("path: "))?;
    let mut origin = format!(
        "configuredIn: {path}\nconfiguredBy:\n  apiVersion: {}\n  kind: {}\n  name: {}\n",
        object.api_version(world),
        object.kind(world),
        origin_text(&object.name(world))
    );
    let namespace = object.namespace(world);
    if !namespace.is_empty() {
        origin.push_str(&format!("  namespace: {}\n", origin_text(&namespace)));
    }
    Some(origin)
}

/// The kind of a built-in plugin and its configuration.
fn configuration(build: &Build<'_>, object: &Object) -> Res<(Rc<str>, Located)> {
    let world = &build.world;
    let kind = object.kind(world);
    if &*object.api_version(world) != "builtin" {
        let function = object.annotations(world).contains_key(object::FUNCTION);
        let what =
            if function { "a function that runs in a container or as a program" } else { "not built into kustomize" };
        return Err(Fault::new(format!("the plugin {kind} is {what}: no program is run while rendering"))
            .at(if function { object.place(world, &["metadata", "annotations", object::FUNCTION]) } else { object.at })
            .remedy("run it in CI and commit what it makes, or use a built-in transformer (apiVersion: builtin)"));
    }
    let Some(root) = object.root else { return Err(Fault::new("the entry is empty").at(object.at)) };
    let (json, spots) = value::with_spots(&world.arena, root)?;
    Ok((kind, locate(&json, &spots)))
}

fn locate(value: &Value, spots: &Spots) -> Located {
    let none = Spots { at: spots.at, parts: Vec::new() };
    let part = |index: usize| spots.parts.get(index).unwrap_or(&none);
    let yaml = match value {
        Value::Null => Yaml::Null,
        Value::Bool(value) => Yaml::Bool(*value),
        Value::Number(number) => Yaml::Number(number.clone()),
        Value::String(text) => Yaml::Text(text.as_str().into()),
        Value::Array(list) => {
            Yaml::List(list.iter().enumerate().map(|(index, value)| locate(value, part(index))).collect())
        }
        Value::Object(map) => Yaml::Map(
            map.iter()
                .enumerate()
                .map(|(index, (name, value))| Entry {
                    name: name.as_str().into(),
                    at: part(index).at,
                    value: locate(value, part(index)),
                    first: None,
                })
                .collect(),
        ),
    };
    // Texts of several lines are blocks in nearly every file.
    let literal = matches!(&yaml, Yaml::Text(text) if text.contains('\n'));
    Located { at: spots.at, yaml, literal }
}

fn transformer(build: &mut Build<'_>, level: &Level<'_>, object: &Object, kind: &str, config: &Located) -> Res<Work> {
    let at = object.at;
    let mut fields = Fields::of(LENIENT, config, "")?;
    let specs = |fields: &mut Fields<'_>| config::field_specs(LENIENT, fields, "fieldSpecs");
    let texts = |fields: &mut Fields<'_>, name| -> Res<Work> {
        let pairs = fields.pairs(name)?.unwrap_or_default();
        Ok(Work::Texts(SetTexts { at, pairs, fields: specs(fields)? }))
    };
    let affix = |fields: &mut Fields<'_>, end: End| -> Res<Affix> {
        let text = fields.word(if end == End::Prefix { "prefix" } else { "suffix" })?;
        if fields.take("fieldSpecs").is_none() {
            return Err(Fault::new("fieldSpecs is missing").at(at).remedy("add `fieldSpecs: [{path: metadata/name}]`"));
        }
        Ok(Affix { at, end, text, fields: specs(fields)? })
    };
    match kind {
        "AnnotationsTransformer" => texts(&mut fields, "annotations"),
        "LabelTransformer" => texts(&mut fields, "labels"),
        "PrefixTransformer" => Ok(Work::Affix(affix(&mut fields, End::Prefix)?)),
        "SuffixTransformer" => Ok(Work::Affix(affix(&mut fields, End::Suffix)?)),
        "PrefixSuffixTransformer" => {
            Ok(Work::Affixes(affix(&mut fields, End::Prefix)?, affix(&mut fields, End::Suffix)?))
        }
        "HashTransformer" => Ok(Work::Hash),
        "NamespaceTransformer" => namespace(&mut fields, at),
        "ImageTagTransformer" => {
            let empty = Located { at, yaml: Yaml::Null, literal: false };
            let image = kustomization::image(LENIENT, fields.take("imageTag").map_or(&empty, |entry| &entry.value))?;
            Ok(Work::Images(Images { image, fields: specs(&mut fields)? }))
        }
        "ReplicaCountTransformer" => {
            let replica = match fields.take("replica") {
                Some(entry) => kustomization::replica(LENIENT, &entry.value)?,
                None => Replica { at, name: "".into(), count: 0 },
            };
            Ok(Work::Replicas(Replicas { replica, fields: specs(&mut fields)? }))
        }
        "PatchTransformer" => {
            let patch = kustomization::patch_fields(LENIENT, &mut fields, "patch")?;
            Ok(Work::Patch(Patch::read(&mut build.world, build.files, &level.root, &patch)?))
        }
        "PatchJson6902Transformer" => {
            let patch = kustomization::patch_fields(LENIENT, &mut fields, "jsonOp")?;
            Ok(Work::JsonPatch(Patch::read_json(build.files, &level.root, &patch)?))
        }
        "PatchStrategicMergeTransformer" => strategic(build, level, &mut fields, at),
        "ReplacementTransformer" => {
            let list = fields.list("replacements")?.unwrap_or_default();
            let entries =
                list.iter().map(|value| kustomization::replacement_entry(LENIENT, value)).collect::<Res<Vec<_>>>()?;
            Ok(Work::Replacements(build.replacements(&level.root, &entries)?))
        }
        "ValueAddTransformer" => value_add(build, level, &mut fields, at),
        other => Err(Fault::new(format!("{other} is no built-in transformer"))
            .at(object.place(&build.world, &["kind"]))
            .remedy("correct the kind; those of kustomize end in Transformer")),
    }
}

fn namespace(fields: &mut Fields<'_>, at: At) -> Res<Work> {
    let (_, namespace) = match fields.take("metadata") {
        Some(metadata) => kustomization::object_meta(LENIENT, &metadata.value)?,
        None => Default::default(),
    };
    let subjects = match &*fields.word("setRoleBindingSubjects")? {
        "" | "defaultOnly" => Subjects::NamedDefault,
        "allServiceAccounts" => Subjects::Accounts,
        "none" => Subjects::None,
        other => {
            return Err(Fault::new(format!("setRoleBindingSubjects cannot be {other:?}"))
                .at(at)
                .remedy("write defaultOnly, allServiceAccounts or none"));
        }
    };
    let unset_only = fields.flag("unsetOnly")?;
    let fields: Vec<FieldSpec> = config::field_specs(LENIENT, fields, "fieldSpecs")?;
    Ok(Work::Namespace(Namespace { at, namespace, fields, subjects, unset_only }))
}

fn strategic(build: &mut Build<'_>, level: &Level<'_>, fields: &mut Fields<'_>, at: At) -> Res<Work> {
    let mut patches = Vec::new();
    for entry in fields.texts("paths")? {
        let read = Patch::read_strategic(&mut build.world, build.files, &level.root, &entry)?;
        patches.extend(read.into_iter().map(|patch| (patch, entry.at)));
    }
    if let Some(text) = fields.filled("patches")? {
        let read = resources::objects(&mut build.world, &text)?;
        patches.extend(read.into_iter().map(|patch| (patch, text.at)));
    }
    if patches.is_empty() {
        return Err(Fault::new("there is no patch").at(at).remedy("fill in paths or patches"));
    }
    Ok(Work::StrategicPatches(patches))
}

fn value_add(build: &mut Build<'_>, level: &Level<'_>, fields: &mut Fields<'_>, at: At) -> Res<Work> {
    let mut value: Rc<str> = fields.word("value")?.trim().into();
    if value.is_empty() {
        value = level.root.rsplit('/').next().unwrap_or_default().into();
    }
    let mut targets = Vec::new();
    read_targets(fields, &mut targets)?;
    if let Some(path) = fields.filled("targetFilePath")? {
        let text = build.files.load_text(&level.root, &path.text).map_err(|fault| fault.at(path.at))?;
        if let Some(value) = crate::read::located(&text)? {
            let mut fields = Fields::of(LENIENT, &value, "")?;
            read_targets(&mut fields, &mut targets)?;
        }
    }
    if targets.is_empty() {
        return Err(Fault::new("there is no target").at(at).remedy("add targets"));
    }
    Ok(Work::ValueAdd(ValueAdd { at, value, targets }))
}

fn read_targets(fields: &mut Fields<'_>, targets: &mut Vec<ValueTarget>) -> Res<()> {
    for target in fields.list("targets")?.unwrap_or_default() {
        let mut fields = Fields::of(LENIENT, target, "targets")?;
        let selector = fields
            .take("selector")
            .map(|entry| kustomization::selector(LENIENT, &entry.value, "selector"))
            .transpose()?;
        let path = fields.word("fieldPath")?;
        if path.is_empty() {
            return Err(Fault::new("fieldPath is missing").at(target.at));
        }
        let position = fields.integer("filePathPosition")?.unwrap_or_default();
        let position =
            usize::try_from(position).map_err(|_| Fault::new("filePathPosition is negative").at(target.at))?;
        targets.push(ValueTarget { selector, path, position });
    }
    Ok(())
}
