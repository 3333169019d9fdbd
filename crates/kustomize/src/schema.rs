//! Which lists a strategic merge joins by key, and which kinds are cluster-scoped: Kubernetes 1.21.2 as kustomize has it
//! built in, or the schema file of a kustomization.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, HashSet},
    rc::Rc,
    sync::LazyLock,
};

use serde_json::Value;

use crate::fault::{Fault, Res};

/// What the schema says about one place of an object.
#[derive(Clone, Debug)]
pub enum Schema {
    /// A field of a built-in definition; `None` for one that leads to no list that is merged.
    Builtin(Option<&'static Edge>),
    /// A built-in definition.
    Definition(&'static Definition),
    /// A schema from a file.
    Custom(Rc<Value>),
}

/// How a list is merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeKeys(pub Vec<Rc<str>>);

type Definition = HashMap<String, Edge>;

/// A field of a definition.
#[derive(Debug)]
pub struct Edge {
    keys: Option<Vec<String>>,
    to: Option<String>,
    via: Option<String>,
}

struct Builtin {
    definitions: HashMap<String, Definition>,
    types: HashMap<String, String>,
    cluster: HashSet<String>,
    namespaced: HashSet<String>,
}

static BUILTIN: LazyLock<Builtin> = LazyLock::new(|| {
    let mut builtin = parse_builtin(include_str!("../data/merge-keys.json"));
    let rollouts = parse_builtin(include_str!("../data/rollouts-merge-keys.json"));
    builtin.definitions.extend(rollouts.definitions);
    // Found only if asked for: see `Schemas::of_type`.
    builtin.types.extend(rollouts.types);
    let scope: Value = serde_json::from_str(include_str!("../data/scope.json")).unwrap_or_default();
    let names =
        |list: &Value| list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    builtin.cluster = names(&scope["cluster"]);
    builtin.namespaced = names(&scope["namespaced"]);
    builtin
});

fn parse_builtin(text: &str) -> Builtin {
    let data: Value = serde_json::from_str(text).unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let edge = |value: &Value| Edge {
        keys: value["keys"].as_array().map(|keys| keys.iter().filter_map(text).collect()),
        to: text(&value["to"]),
        via: text(&value["via"]),
    };
    let fields = |value: &Value| value.as_object().into_iter().flatten().map(|(k, v)| (k.clone(), edge(v))).collect();
    let object = |value: &Value| value.as_object().cloned().unwrap_or_default();
    Builtin {
        definitions: object(&data["definitions"]).iter().map(|(name, value)| (name.clone(), fields(value))).collect(),
        types: object(&data["types"]).iter().filter_map(|(k, v)| Some((k.clone(), text(v)?))).collect(),
        cluster: HashSet::new(),
        namespaced: HashSet::new(),
    }
}

/// The group of the kinds whose merge keys are built in as an option.
const ROLLOUTS: &str = "argoproj.io/";

/// The schemas of one build. kustomize has one set per process, loaded when first needed; what was asked before
/// decides what is known after.
#[derive(Debug, Default)]
pub struct Schemas {
    rollouts: bool,
    /// The setting of the outermost kustomization that has one.
    set: Cell<bool>,
    custom: RefCell<Option<Rc<Value>>>,
    /// A kind that the built-in table does not know was asked for before a file was set.
    delayed: Cell<bool>,
    loaded: RefCell<Vec<Source>>,
    current: Cell<bool>,
    scopes: RefCell<HashMap<String, bool>>,
}

#[derive(Clone, Debug)]
enum Source {
    Builtin,
    Custom(Rc<Value>),
}

impl Schemas {
    pub fn new(rollouts: bool) -> Schemas {
        Schemas { rollouts, ..Schemas::default() }
    }

    /// Whether an earlier setting holds already.
    pub fn is_set(&self) -> bool {
        self.set.get()
    }

    /// Uses the built-in schema of this version.
    pub fn use_version(&self, version: &str) -> Res<()> {
        if version != "v1.21.2" {
            return Err(Fault::new(format!("there is no built-in schema of version {version:?}"))
                .remedy("remove it, or write v1.21.2, the only one that kustomize has"));
        }
        self.set.set(true);
        self.current.set(false);
        Ok(())
    }

    /// Uses the schema of a file instead of the built-in one.
    pub fn use_file(&self, schema: Value) {
        self.set.set(true);
        *self.custom.borrow_mut() = Some(Rc::new(schema));
        self.current.set(false);
    }

    fn load(&self) {
        if self.current.replace(true) {
            return;
        }
        let mut loaded = self.loaded.borrow_mut();
        match &*self.custom.borrow() {
            Some(custom) => {
                loaded.push(Source::Custom(custom.clone()));
                self.read_scopes(custom);
                if self.delayed.replace(false) {
                    loaded.push(Source::Builtin);
                }
            }
            None => {
                loaded.push(Source::Builtin);
                self.delayed.set(false);
            }
        }
    }

    /// A kind is namespaced if a path of its interface says so.
    fn read_scopes(&self, schema: &Value) {
        let mut scopes = self.scopes.borrow_mut();
        for (path, item) in schema["paths"].as_object().into_iter().flatten() {
            let Some(name) = type_name(&item["get"]["x-kubernetes-group-version-kind"]) else { continue };
            if path.contains("namespaces/{namespace}") {
                scopes.insert(name, true);
            } else {
                scopes.entry(name).or_insert(false);
            }
        }
    }

    /// Whether a kind is certainly cluster-scoped. Every kind that is not known counts as namespaced.
    pub fn is_cluster_scoped(&self, group: &str, version: &str, kind: &str) -> bool {
        let name = typed(group, version, kind);
        if BUILTIN.cluster.contains(&name) {
            return true;
        }
        if BUILTIN.namespaced.contains(&name) {
            return false;
        }
        if !self.current.get() {
            if self.custom.borrow().is_some() {
                self.load();
            } else {
                self.delayed.set(true);
                return false;
            }
        }
        self.scopes.borrow().get(&name).is_some_and(|namespaced| !namespaced)
    }

    /// The schema of a kind.
    pub fn of_type(&self, api_version: &str, kind: &str) -> Option<Schema> {
        self.load();
        let name = format!("{api_version} {kind}");
        if api_version.starts_with(ROLLOUTS) && self.rollouts && self.custom.borrow().is_none() {
            return builtin_type(&name);
        }
        self.loaded.borrow().iter().rev().find_map(|source| match source {
            Source::Builtin if api_version.starts_with(ROLLOUTS) => None,
            Source::Builtin => builtin_type(&name),
            Source::Custom(schema) => {
                let definitions = schema["definitions"].as_object()?;
                let definition = definitions.values().find(|definition| {
                    let types = definition["x-kubernetes-group-version-kind"].as_array();
                    types.into_iter().flatten().any(|entry| type_name(entry).as_deref() == Some(&name))
                })?;
                Some(Schema::Custom(Rc::new(definition.clone())))
            }
        })
    }

    fn definition(&self, reference: &str) -> Option<Schema> {
        let name = reference.strip_prefix("#/definitions/")?.replace("~1", "/").replace("~0", "~");
        self.loaded.borrow().iter().rev().find_map(|source| match source {
            Source::Builtin => BUILTIN.definitions.get(&name).map(Schema::Definition),
            Source::Custom(schema) => Some(Schema::Custom(Rc::new(schema["definitions"].get(&name)?.clone()))),
        })
    }

    /// Follows references of a schema from a file.
    fn resolved(&self, mut schema: Rc<Value>) -> Option<Schema> {
        for _ in 0..32 {
            match schema["$ref"].as_str() {
                None => return Some(Schema::Custom(schema)),
                Some(reference) => match self.definition(reference)? {
                    Schema::Custom(next) => schema = next,
                    builtin => return Some(builtin),
                },
            }
        }
        None
    }

    pub fn field(&self, schema: &Schema, name: &str) -> Option<Schema> {
        match schema {
            Schema::Definition(fields) => Some(Schema::Builtin(fields.get(name))),
            Schema::Builtin(Some(Edge { to: Some(to), via, .. })) => {
                let definition = BUILTIN.definitions.get(to).map(Schema::Definition)?;
                match via.as_deref() {
                    None => self.field(&definition, name),
                    // The values of this map are of the definition.
                    Some("{}") => Some(definition),
                    Some(_) => None,
                }
            }
            Schema::Builtin(_) => Some(Schema::Builtin(None)),
            Schema::Custom(value) => {
                let found = value["properties"]
                    .get(name)
                    .or_else(|| Some(&value["additionalProperties"]).filter(|v| v.is_object()))?;
                self.resolved(Rc::new(found.clone()))
            }
        }
    }

    pub fn elements(&self, schema: &Schema) -> Option<Schema> {
        match schema {
            Schema::Builtin(Some(Edge { to: Some(to), via: Some(via), .. })) if via == "[]" => {
                BUILTIN.definitions.get(to).map(Schema::Definition)
            }
            Schema::Builtin(_) => Some(Schema::Builtin(None)),
            Schema::Definition(_) => None,
            Schema::Custom(value) => {
                let is_array = match &value["type"] {
                    Value::String(kind) => kind == "array",
                    Value::Array(kinds) => kinds.len() == 1 && kinds[0] == "array",
                    _ => false,
                };
                if !is_array {
                    return None;
                }
                self.resolved(Rc::new(value.get("items")?.clone()))
            }
        }
    }

    /// The keys by which this list is merged; `None` if it is replaced.
    pub fn merge_keys(&self, schema: &Schema) -> Option<MergeKeys> {
        match schema {
            Schema::Builtin(Some(edge)) => {
                edge.keys.as_ref().map(|keys| MergeKeys(keys.iter().map(|key| key.as_str().into()).collect()))
            }
            Schema::Builtin(None) | Schema::Definition(_) => None,
            Schema::Custom(value) => {
                let strategy = value["x-kubernetes-patch-strategy"].as_str()?;
                if !strategy.split(',').any(|strategy| strategy == "merge") {
                    return None;
                }
                let list = value["x-kubernetes-list-map-keys"].as_array();
                let keys = match list {
                    Some(list) => list.iter().filter_map(Value::as_str).map(Into::into).collect(),
                    None => value["x-kubernetes-patch-merge-key"].as_str().map(Into::into).into_iter().collect(),
                };
                Some(MergeKeys(keys))
            }
        }
    }
}

fn builtin_type(name: &str) -> Option<Schema> {
    BUILTIN.definitions.get(BUILTIN.types.get(name)?).map(Schema::Definition)
}

fn typed(group: &str, version: &str, kind: &str) -> String {
    if group.is_empty() { format!("{version} {kind}") } else { format!("{group}/{version} {kind}") }
}

fn type_name(entry: &Value) -> Option<String> {
    Some(typed(entry["group"].as_str().unwrap_or_default(), entry["version"].as_str()?, entry["kind"].as_str()?))
}
