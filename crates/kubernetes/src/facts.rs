//! The built-in kinds: names, columns, types and defaults, as the real server's own code tells them.
//!
//! The data is `facts/kinds.txt`, written by `tests/control-plane/facts` (whose header explains its lines) and read once
//! per process. Nothing here is specific to one kind; what data cannot say is in [`builtin`](super::builtin).

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use super::{
    kind::{Column, Kind, Origin, Subresource},
    schema::{Empty, Field, Merge, Schema, Shape, Struct, Topology},
    value::{Text, Value, intern},
};

/// Every built-in kind, in the order of discovery.
pub fn kinds() -> &'static [Arc<Kind>] {
    &FACTS.kinds
}

/// The built-in kind of this name.
pub fn kind(group: &str, version: &str, kind: &str) -> Option<&'static Arc<Kind>> {
    FACTS.kinds.iter().find(|k| k.kind == kind && k.group == group && k.version == version)
}

/// The type of a kind, or of what only requests and subresources carry: `Scale`, `Eviction`, `DeleteOptions`.
pub fn schema(group: &str, version: &str, kind: &str) -> Option<&'static Arc<Schema>> {
    let root = FACTS.roots.iter().find(|root| root.kind == kind && root.group == group && root.version == version);
    root.map(|root| &root.schema).or_else(|| self::kind(group, version, kind).map(|kind| &kind.schema))
}

/// The struct of this OpenAPI name. A type that contains itself (`JSONSchemaProps`) is [`Shape::Any`] where it recurs,
/// and is to be looked up here by its name.
pub fn named(name: &str) -> Option<&'static Arc<Schema>> {
    FACTS.types.get(name)
}

/// The embedded Go struct that declares a field of a struct, if it is not the struct itself: Go's type errors name it.
pub fn embedded_in(type_name: &str, field: &str) -> Option<&'static str> {
    let fields = FACTS.embedded.get(type_name)?;
    fields.iter().find(|(name, _)| name == field).map(|(_, embedded)| embedded.as_str())
}

/// The protobuf field numbers of the built-in kinds, a line for each message.
pub const WIRE: &str = include_str!("facts/wire.txt");

static FACTS: LazyLock<Facts> = LazyLock::new(|| match Facts::parse(include_str!("facts/kinds.txt")) {
    Ok(facts) => facts,
    // A test reads the same text, so a program that was tested never gets here.
    Err(line) => panic!("facts/kinds.txt: cannot read {line:?}"),
});

#[derive(Default)]
struct Facts {
    kinds: Vec<Arc<Kind>>,
    roots: Vec<Root>,
    types: HashMap<Text, Arc<Schema>>,
    /// By type, the fields that embedded structs declare, and which.
    embedded: HashMap<Text, Vec<(Text, Text)>>,
}

struct Root {
    group: Text,
    version: Text,
    kind: Text,
    schema: Arc<Schema>,
}

impl Facts {
    /// Reads the data; the error is the first line it cannot read.
    fn parse(text: &str) -> Result<Facts, String> {
        let mut reader = Reader::default();
        let mut lines = text.lines().filter(|line| !line.starts_with('#')).peekable();
        while let Some(line) = lines.next() {
            let mut body = Vec::new();
            while let Some(part) = lines.next_if(|line| line.starts_with('\t')) {
                body.push(part);
            }
            reader.block(line, &body).ok_or_else(|| line.to_owned())?;
        }
        reader.facts.types = reader.types.into_values().filter_map(|s| Some((s.name.clone()?, s))).collect();
        Ok(reader.facts)
    }
}

#[derive(Default)]
struct Reader<'a> {
    facts: Facts,
    /// `core.v1` → `io.k8s.api.core.v1`
    prefixes: HashMap<&'a str, &'a str>,
    /// By abbreviated name.
    types: HashMap<&'a str, Arc<Schema>>,
    /// One shared schema per shape that needs no words.
    plain: HashMap<&'a str, Arc<Schema>>,
}

impl<'a> Reader<'a> {
    /// Reads a line and the indented lines that belong to it.
    fn block(&mut self, line: &'a str, body: &[&'a str]) -> Option<()> {
        let words: Vec<&str> = line.split('\t').collect();
        match words.as_slice() {
            ["prefix", short, long] => {
                self.prefixes.insert(short, long);
            }
            ["type", name, rest @ ..] => {
                let full = self.full(name)?;
                let fields = body.iter().map(|line| self.field(line)).collect::<Option<_>>()?;
                let embedded: Vec<_> = body.iter().filter_map(|line| embedding(line)).collect();
                if !embedded.is_empty() {
                    self.facts.embedded.insert(full.clone(), embedded);
                }
                let shape = Shape::Struct(Struct { fields, atomic: rest == ["atomic"], ..Struct::default() });
                let schema = Schema { shape, name: Some(full), ..Schema::default() };
                self.types.insert(name, Arc::new(schema));
            }
            ["root", version, kind, name] => {
                let (group, version) = group_version(version);
                let schema = self.types.get(name)?.clone();
                self.facts.roots.push(Root { group, version, kind: intern(kind), schema });
            }
            ["kind", version, kind, plural, singular, name, words @ ..] => {
                let (group, version) = group_version(version);
                let subresources = body.iter().filter_map(|line| subresource(line)).collect();
                let columns = body.iter().filter_map(|line| column(line)).collect();
                self.facts.kinds.push(Arc::new(Kind {
                    group,
                    version,
                    kind: intern(kind),
                    list_kind: format!("{kind}List").into(),
                    plural: intern(plural),
                    singular: intern(singular),
                    short_names: list(words, "short="),
                    categories: list(words, "categories="),
                    namespaced: words.contains(&"namespaced"),
                    verbs: list(words, "verbs="),
                    subresources,
                    columns,
                    schema: self.types.get(name)?.clone(),
                    origin: Origin::BuiltIn,
                }));
            }
            _ => return None,
        }
        Some(())
    }

    /// The OpenAPI name behind an abbreviated one.
    fn full(&self, name: &str) -> Option<Text> {
        let (package, bare) = name.rsplit_once('.')?;
        Some(format!("{}.{bare}", self.prefixes.get(package)?).into())
    }

    fn field(&mut self, line: &'a str) -> Option<(Text, Field)> {
        let mut words = line.split('\t').skip(1);
        let (name, shape, empty) = (words.next()?, words.next()?, words.next()?);
        let words: Vec<&str> = words.collect();
        let empty = match empty {
            "?" => Empty::Keep,
            "-" => Empty::Omit,
            "+" => Empty::Show,
            "!" => Empty::Null,
            _ => return None,
        };
        let default = match word(&words, "default=") {
            Some(json) => Some(Value::from_json(json.as_bytes()).ok()?),
            None => None,
        };
        let field = Field {
            schema: self.schema(shape, &words)?,
            required: words.contains(&"required"),
            empty,
            default,
            retain_keys: words.contains(&"retain"),
            replace: words.contains(&"replace"),
        };
        Some((intern(name), field))
    }

    /// The type of a field: shared if nothing in the words changes it.
    fn schema(&mut self, shape: &'a str, words: &[&'a str]) -> Option<Arc<Schema>> {
        let changes = ["atomic", "set", "merge", "zero", "map=", "merge=", "go=", "ref=", "enum=", "schema="];
        if !words.iter().any(|word| {
            changes.iter().any(|change| word == change || change.ends_with('=') && word.starts_with(change))
        }) {
            return self.plain(shape);
        }
        let mut schema = Schema::clone(&*self.plain(shape)?);
        match &mut schema.shape {
            Shape::List { topology, merge, items } => {
                *topology = match word(words, "map=") {
                    Some(keys) => Topology::Map(keys.split(',').map(intern).collect()),
                    None if words.contains(&"set") => Topology::Set,
                    None => Topology::Atomic,
                };
                *merge = match word(words, "merge=") {
                    Some(key) => Merge::Key(intern(key)),
                    None if words.contains(&"merge") => Merge::Union,
                    None => Merge::Replace,
                };
                let go = word(words, "go=").and_then(|go| go.strip_prefix("[]"));
                if go.is_some() || word(words, "enum=").is_some() {
                    *items = Arc::new(Schema { go: go.map(intern), allowed: allowed(words), ..Schema::clone(items) });
                }
            }
            Shape::Map { atomic, values } => {
                *atomic = words.contains(&"atomic");
                let go = word(words, "go=").and_then(|go| go.strip_prefix("map[")?.split_once(']'));
                if let Some((_, go)) = go.filter(|_| values.name.is_none()) {
                    *values = Arc::new(Schema { go: Some(intern(go)), ..Schema::clone(values) });
                }
            }
            Shape::Struct(fields) => fields.atomic |= words.contains(&"atomic"),
            _ => schema.allowed = allowed(words),
        }
        schema.go = word(words, "go=").map(intern);
        if let Some(name) = word(words, "ref=") {
            name_innermost(&mut schema, &self.full(name)?);
        }
        schema.default = match word(words, "schema=") {
            Some(json) => Some(Value::from_json(json.as_bytes()).ok()?),
            None => words.contains(&"zero").then(|| zero(&schema.shape)).flatten(),
        };
        Some(Arc::new(schema))
    }

    fn plain(&mut self, shape: &'a str) -> Option<Arc<Schema>> {
        if let Some(schema) = self.types.get(shape).or_else(|| self.plain.get(shape)) {
            return Some(schema.clone());
        }
        let (made, name) = match shape {
            "any" => (Shape::Any, None),
            "bool" => (Shape::Bool, None),
            "int32" => (Shape::Int32, None),
            "int64" => (Shape::Int64, None),
            "number" => (Shape::Number, None),
            "string" => (Shape::Str, None),
            "bytes" => (Shape::Bytes, None),
            "int-or-string" => (Shape::IntOrString, Some("util.intstr.IntOrString")),
            "quantity" => (Shape::Quantity, Some("api.resource.Quantity")),
            "time" => (Shape::Time, Some("meta.v1.Time")),
            "microtime" => (Shape::MicroTime, Some("meta.v1.MicroTime")),
            "duration" => (Shape::Duration, Some("meta.v1.Duration")),
            _ if let Some(items) = shape.strip_prefix('[') => {
                let (topology, merge) = (Topology::Atomic, Merge::Replace);
                (Shape::List { items: self.plain(items)?, topology, merge }, None)
            }
            _ if let Some(values) = shape.strip_prefix('{') => {
                (Shape::Map { values: self.plain(values)?, atomic: false }, None)
            }
            _ => return None,
        };
        let name = name.and_then(|name| self.full(name));
        let schema = Arc::new(Schema { shape: made, name, ..Schema::default() });
        self.plain.insert(shape, schema.clone());
        Some(schema)
    }
}

/// The field of a line and the embedded struct that declares it.
fn embedding(line: &str) -> Option<(Text, Text)> {
    let mut words = line.split('\t').skip(1);
    let name = words.next()?;
    Some((intern(name), intern(words.find_map(|word| word.strip_prefix("in="))?)))
}

/// The value of a word such as `map=port,protocol`.
fn word<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words.iter().find_map(|word| word.strip_prefix(name))
}

fn allowed(words: &[&str]) -> Vec<Value> {
    word(words, "enum=").map(|list| list.split('|').map(|value| intern(value).into()).collect()).unwrap_or_default()
}

/// Names what a list or map, of lists or maps, holds.
fn name_innermost(schema: &mut Schema, name: &Text) {
    match &mut schema.shape {
        Shape::List { items: inner, .. } | Shape::Map { values: inner, .. } => {
            name_innermost(Arc::make_mut(inner), name)
        }
        _ => schema.name = Some(name.clone()),
    }
}

fn zero(shape: &Shape) -> Option<Value> {
    match shape {
        Shape::Bool => Some(false.into()),
        Shape::Int32 | Shape::Int64 | Shape::Number => Some(0.into()),
        Shape::Str => Some("".into()),
        _ => None,
    }
}

fn group_version(text: &str) -> (Text, Text) {
    let (group, version) = text.split_once('/').unwrap_or(("", text));
    (intern(group), intern(version))
}

fn list(words: &[&str], name: &str) -> Vec<Text> {
    match word(words, name) {
        Some(text) => texts(text),
        None => Vec::new(),
    }
}

/// A list as written: separated by commas, all eight verbs as a star.
fn texts(text: &str) -> Vec<Text> {
    let text = if text == "*" { "create,delete,deletecollection,get,list,patch,update,watch" } else { text };
    text.split(',').map(intern).collect()
}

fn subresource(line: &str) -> Option<Subresource> {
    let words: Vec<&str> = line.split('\t').skip(1).collect();
    let ["sub", name, version, kind, verbs] = words.as_slice() else { return None };
    let (group, version) = group_version(version);
    Some(Subresource { name: intern(name), group, version, kind: intern(kind), verbs: texts(verbs) })
}

fn column(line: &str) -> Option<Column> {
    let words: Vec<&str> = line.split('\t').skip(1).collect();
    let ["col", kind, format, priority, name] = words.as_slice() else { return None };
    let format = if *format == "-" { Text::default() } else { intern(format) };
    let (name, kind, priority) = (intern(name), intern(kind), priority.parse().ok()?);
    Some(Column { name, kind, format, priority, ..Column::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[track_caller]
    fn field(kind: &str, path: &[&str]) -> Field {
        let kind = kinds().iter().find(|k| k.kind == kind).unwrap();
        let (last, parents) = path.split_last().unwrap();
        let parent = parents.iter().fold(kind.schema.clone(), |schema, step| match &schema.shape {
            Shape::List { items, .. } => items.clone(),
            _ => schema.child(step).unwrap().clone(),
        });
        parent.as_struct().unwrap().field(last).unwrap().clone()
    }

    #[test]
    fn every_line_is_read() {
        let text = include_str!("facts/kinds.txt");
        let count = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
        let facts = Facts::parse(text).unwrap_or_default();
        assert_eq!(facts.kinds.len(), count("kind\t"));
        assert_eq!(facts.roots.len(), count("root\t"));
        assert_eq!(facts.types.len(), count("type\t"));
        assert_eq!(facts.kinds.iter().map(|kind| kind.columns.len()).sum::<usize>(), count("\tcol\t"));
        assert_eq!(facts.kinds.iter().map(|kind| kind.subresources.len()).sum::<usize>(), count("\tsub\t"));
    }

    #[test]
    fn fields_can_be_found_by_bisection() {
        for schema in FACTS.types.values() {
            let fields = &schema.as_struct().unwrap().fields;
            assert!(fields.is_sorted_by(|a, b| a.0 < b.0), "{:?}", schema.name);
        }
    }

    #[test]
    fn a_deployment_is_described() {
        let kind = kind("apps", "v1", "Deployment").unwrap();
        assert_eq!(
            (kind.plural.as_str(), kind.singular.as_str(), kind.namespaced),
            ("deployments", "deployment", true)
        );
        assert_eq!(
            (kind.short_names.as_slice(), kind.categories.as_slice()),
            (&[intern("deploy")][..], &[intern("all")][..])
        );
        assert_eq!(kind.subresource("scale").map(|sub| sub.kind.as_str()), Some("Scale"));
        assert_eq!(
            kind.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(","),
            "Name,Ready,Up-to-date,Available,Age,Containers,Images,Selector"
        );
        assert_eq!(kind.schema.name.as_deref(), Some("io.k8s.api.apps.v1.Deployment"));
    }

    #[test]
    fn fields_say_what_go_openapi_and_the_defaulters_say() {
        let replicas = field("Deployment", &["spec", "replicas"]);
        assert_eq!((replicas.default, replicas.empty, replicas.required), (Some(value!(1)), Empty::Keep, false));
        assert_eq!(field("Deployment", &["spec", "selector"]).empty, Empty::Null);
        assert_eq!(field("Deployment", &["spec", "template"]).empty, Empty::Show);
        assert!(field("Deployment", &["spec", "strategy"]).retain_keys);
        let ports = field("Pod", &["spec", "containers", "", "ports"]).schema;
        let Shape::List { topology, merge, .. } = &ports.shape else { panic!() };
        assert_eq!(*topology, Topology::Map(vec![intern("containerPort"), intern("protocol")]));
        assert_eq!(*merge, Merge::Key(intern("containerPort")));
        let protocol = field("Service", &["spec", "ports", "", "protocol"]);
        assert_eq!((protocol.default, protocol.schema.default.clone()), (Some(value!("TCP")), Some(value!("TCP"))));
        assert_eq!(protocol.schema.go.as_deref(), Some("v1.Protocol"));
        assert_eq!(protocol.schema.allowed, [value!("SCTP"), value!("TCP"), value!("UDP")]);
    }

    #[test]
    fn what_only_subresources_carry_has_a_type() {
        assert_eq!(schema("autoscaling", "v1", "Scale").unwrap().go_type(), "Scale");
        assert_eq!(schema("policy", "v1", "Eviction").unwrap().go_type(), "Eviction");
        assert_eq!(schema("", "v1", "DeleteOptions").unwrap().go_type(), "DeleteOptions");
        assert!(schema("", "v1", "Nothing").is_none());
    }

    #[test]
    fn a_recursive_type_is_found_by_name() {
        let props = named("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps").unwrap();
        let not = &props.as_struct().unwrap().field("not").unwrap().schema;
        assert!(matches!(not.shape, Shape::Any));
        assert_eq!(not.name, props.name);
    }
}
