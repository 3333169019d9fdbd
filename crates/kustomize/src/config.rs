//! Which fields the transformers work on: the built-in tables, what configurations add, and the walk along one path.

use std::{rc::Rc, sync::LazyLock};

use serde_json::Value;

use crate::{
    fault::{At, Fault, Res},
    ident::Gvk,
    located::{Decode, Fields, Located},
    node::{Arena, Id, Kind, Style, Tag},
    path,
};

/// One field, of the objects of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldSpec {
    pub gvk: Gvk,
    pub path: Rc<str>,
    pub create: bool,
    /// Where it is configured.
    pub at: At,
    /// Where `create` is configured.
    pub create_at: At,
}

/// The fields in which objects of one type are named.
#[derive(Clone, Debug)]
pub struct Referrers {
    pub target: Gvk,
    pub fields: Vec<FieldSpec>,
}

/// The tables of all transformers.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub name_prefix: Vec<FieldSpec>,
    pub name_suffix: Vec<FieldSpec>,
    pub namespace: Vec<FieldSpec>,
    pub common_labels: Vec<FieldSpec>,
    pub labels: Vec<FieldSpec>,
    pub template_labels: Vec<FieldSpec>,
    pub claim_labels: Vec<FieldSpec>,
    pub annotations: Vec<FieldSpec>,
    pub names: Vec<Referrers>,
    pub vars: Vec<FieldSpec>,
    pub images: Vec<FieldSpec>,
    pub replicas: Vec<FieldSpec>,
}

static DEFAULTS: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../data/fieldspecs.json")).unwrap_or_default());
static ROLLOUTS: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../data/rollouts.json")).unwrap_or_default());

impl Config {
    /// The built-in tables, with those for Argo Rollouts if asked for.
    pub fn builtin(rollouts: bool) -> Res<Config> {
        let config = Config::from_data(&DEFAULTS);
        if rollouts { config.merge(&Config::from_data(&ROLLOUTS)) } else { Ok(config) }
    }

    fn from_data(data: &Value) -> Config {
        let text = |value: &Value, name: &str| -> Rc<str> { value[name].as_str().unwrap_or_default().into() };
        let gvk = |value: &Value| Gvk {
            group: text(value, "group"),
            version: text(value, "version"),
            kind: text(value, "kind"),
        };
        let spec = |value: &Value| FieldSpec {
            gvk: gvk(value),
            path: text(value, "path"),
            create: value["create"] == true,
            at: At::NONE,
            create_at: At::NONE,
        };
        let list = |value: &Value| value.as_array().into_iter().flatten().map(spec).collect::<Vec<_>>();
        let referrers = |value: &Value| Referrers { target: gvk(value), fields: list(&value["referrers"]) };
        let mut config = Config {
            name_prefix: list(&data["namePrefix"]),
            name_suffix: list(&data["nameSuffix"]),
            namespace: list(&data["namespace"]),
            common_labels: list(&data["commonLabels"]),
            labels: list(&data["labels"]),
            template_labels: list(&data["templateLabels"]),
            claim_labels: list(&data["volumeClaimTemplateLabels"]),
            annotations: list(&data["commonAnnotations"]),
            names: data["nameReference"].as_array().into_iter().flatten().map(referrers).collect(),
            vars: list(&data["varReference"]),
            images: list(&data["images"]),
            replicas: list(&data["replicas"]),
        };
        config.sort();
        config
    }

    /// Reads a configuration file.
    pub fn decode(decode: Decode, value: &Located) -> Res<Config> {
        let mut fields = Fields::of(decode, value, "")?;
        let mut config = Config {
            name_prefix: field_specs(decode, &mut fields, "namePrefix")?,
            name_suffix: field_specs(decode, &mut fields, "nameSuffix")?,
            namespace: field_specs(decode, &mut fields, "namespace")?,
            common_labels: field_specs(decode, &mut fields, "commonLabels")?,
            labels: field_specs(decode, &mut fields, "labels")?,
            template_labels: field_specs(decode, &mut fields, "templateLabels")?,
            claim_labels: field_specs(decode, &mut fields, "volumeClaimTemplateLabels")?,
            annotations: field_specs(decode, &mut fields, "commonAnnotations")?,
            names: Vec::new(),
            vars: field_specs(decode, &mut fields, "varReference")?,
            images: field_specs(decode, &mut fields, "images")?,
            replicas: field_specs(decode, &mut fields, "replicas")?,
        };
        for entry in fields.list("nameReference")?.unwrap_or_default() {
            let mut fields = Fields::of(decode, entry, "nameReference")?;
            let target = gvk(&mut fields)?;
            let specs = field_specs(decode, &mut fields, "fieldSpecs")?;
            fields.finish()?;
            config.names.push(Referrers { target, fields: specs });
        }
        fields.finish()?;
        config.sort();
        Ok(config)
    }

    fn lists(&mut self) -> [&mut Vec<FieldSpec>; 11] {
        [
            &mut self.name_prefix,
            &mut self.name_suffix,
            &mut self.namespace,
            &mut self.common_labels,
            &mut self.labels,
            &mut self.template_labels,
            &mut self.claim_labels,
            &mut self.annotations,
            &mut self.vars,
            &mut self.images,
            &mut self.replicas,
        ]
    }

    fn sort(&mut self) {
        for list in self.lists() {
            list.sort_by_cached_key(|spec| order(&spec.gvk));
        }
        self.names.sort_by_cached_key(|referrers| order(&referrers.target));
    }

    /// These tables with what others add.
    pub fn merge(&self, other: &Config) -> Res<Config> {
        let mut merged = self.clone();
        let mut others = other.clone();
        for (list, more) in merged.lists().into_iter().zip(others.lists()) {
            merge_all(list, more)?;
        }
        for referrers in &other.names {
            let mut found = false;
            for own in merged.names.iter_mut().filter(|own| own.target == referrers.target) {
                merge_all(&mut own.fields, &referrers.fields)?;
                found = true;
            }
            if !found {
                merged.names.push(referrers.clone());
            }
        }
        merged.sort();
        Ok(merged)
    }
}

/// Adds fields that are not there yet.
pub fn merge_all(list: &mut Vec<FieldSpec>, more: &[FieldSpec]) -> Res<()> {
    more.iter().try_for_each(|spec| merge_one(list, spec))
}

pub fn merge_one(list: &mut Vec<FieldSpec>, spec: &FieldSpec) -> Res<()> {
    match list.iter().find(|own| own.path == spec.path && own.gvk.is_selected_by(&spec.gvk)) {
        None => list.push(spec.clone()),
        Some(own) if own.create == spec.create => {}
        Some(own) => {
            let built_in = if own.at.is_known() { "" } else { " in the built-in table" };
            return Err(Fault::new(format!("{} is there already{built_in} with create: {}", spec.path, own.create))
                .at(spec.create_at)
                .also(own.create_at, "configured here")
                .remedy("remove this entry, or give it the same create"));
        }
    }
    Ok(())
}

const FIRST: [&str; 22] = [
    "Namespace",
    "ResourceQuota",
    "StorageClass",
    "CustomResourceDefinition",
    "ServiceAccount",
    "PodSecurityPolicy",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ConfigMap",
    "Secret",
    "Endpoints",
    "Service",
    "LimitRange",
    "PriorityClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
];
const LAST: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// The kinds that come first and last in legacy order.
pub fn legacy_order() -> (Vec<Rc<str>>, Vec<Rc<str>>) {
    (FIRST.map(Into::into).to_vec(), LAST.map(Into::into).to_vec())
}

/// Where a kind comes, given the kinds that come first and last.
pub fn rank(kind: &str, first: &[Rc<str>], last: &[Rc<str>]) -> i64 {
    if let Some(index) = last.iter().rposition(|name| &**name == kind) {
        return 1 + index as i64;
    }
    first.iter().rposition(|name| &**name == kind).map_or(0, |index| index as i64 - first.len() as i64)
}

fn order(gvk: &Gvk) -> (i64, String) {
    let place = |list: &[&str]| list.iter().position(|name| *name == &*gvk.kind);
    let rank = place(&LAST)
        .map(|index| 1 + index as i64)
        .or_else(|| place(&FIRST).map(|index| index as i64 - 22))
        .unwrap_or(0);
    (rank, gvk.sort_text())
}

/// Group, version and kind from fields of a map.
pub fn gvk(fields: &mut Fields<'_>) -> Res<Gvk> {
    Ok(Gvk { group: fields.word("group")?, version: fields.word("version")?, kind: fields.word("kind")? })
}

/// A list of field specs.
pub fn field_specs(decode: Decode, fields: &mut Fields<'_>, name: &'static str) -> Res<Vec<FieldSpec>> {
    let list = fields.list(name)?.unwrap_or_default();
    list.iter().map(|entry| field_spec(decode, entry, name)).collect()
}

fn field_spec(decode: Decode, entry: &Located, name: &str) -> Res<FieldSpec> {
    let mut fields = Fields::of(decode, entry, name)?;
    let create_at = fields.take("create").map_or(entry.at, |create| create.at);
    let spec = FieldSpec {
        gvk: gvk(&mut fields)?,
        path: fields.word("path")?,
        create: fields.flag("create")?,
        at: entry.at,
        create_at,
    };
    fields.finish()?;
    Ok(spec)
}

/// What a transformer makes at the end of a path that is not there.
#[derive(Clone, Copy)]
pub struct Create {
    pub kind: Kind,
    pub tag: fn() -> Tag,
}

/// Walks a field spec into an object and calls `set` with every node at its end.
pub fn walk(
    arena: &mut Arena,
    root: Id,
    spec: &FieldSpec,
    create: Option<Create>,
    set: &mut dyn FnMut(&mut Arena, Id) -> Res<()>,
) -> Res<()> {
    let text = |name: &str| arena.field(root, name).map(|(_, value)| arena.text(value)).unwrap_or_default();
    let object = Gvk::parse(&text("apiVersion"), &text("kind"));
    if !object.is_selected_by(&spec.gvk) {
        return Ok(());
    }
    let parts = path::split(&spec.path, '/');
    path::short(&parts).map_err(|fault| fault.at(spec.at))?;
    step(arena, root, spec, &parts, create, set)
}

fn step(
    arena: &mut Arena,
    here: Id,
    spec: &FieldSpec,
    parts: &[String],
    create: Option<Create>,
    set: &mut dyn FnMut(&mut Arena, Id) -> Res<()>,
) -> Res<()> {
    arena.spend(1)?;
    let Some((part, rest)) = parts.split_first() else { return set(arena, here) };
    if arena.is_null(here) {
        return Ok(());
    }
    match arena.get(here).kind {
        Kind::List => {
            for element in arena.get(here).content.clone() {
                step(arena, element, spec, parts, create, set)?;
            }
            Ok(())
        }
        Kind::Scalar => Err(Fault::new(format!("the path {} goes through a single value", spec.path))
            .at(spec.at)
            .also(arena.at(here), "the value")
            .at(arena.at(here))
            .remedy("correct the path, or give it the kind whose objects have it")),
        Kind::Map => {
            let (name, is_list) = match part.strip_suffix("[]") {
                Some(name) => (name, true),
                None => (part.as_str(), false),
            };
            if name.is_empty() {
                return Err(Fault::new(format!("the path {:?} has an empty part", spec.path)).at(spec.at));
            }
            let name = [name.to_owned()];
            let (field, made) = match create.filter(|_| spec.create && !is_list) {
                None => (path::lookup(arena, here, &name, None)?, is_list.then_some((Kind::List, Tag::None))),
                Some(create) if rest.is_empty() => {
                    (path::lookup(arena, here, &name, Some(create.kind))?, Some((create.kind, (create.tag)())))
                }
                Some(_) => (path::lookup(arena, here, &name, Some(Kind::Map))?, Some((Kind::Map, Tag::Map))),
            };
            let Some(field) = field else { return Ok(()) };
            if arena.is_null(field)
                && let Some((kind, tag)) = made
            {
                let node = arena.get_mut(field);
                (node.kind, node.tag) = (kind, tag);
                if kind != Kind::Scalar {
                    node.style = Style::PLAIN;
                }
            }
            step(arena, field, spec, rest, create, set)
        }
    }
}
