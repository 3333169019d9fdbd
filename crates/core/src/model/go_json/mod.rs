//! JSON as Go's encoder writes the types of Argo Rollouts: the bytes that hashes are made of.
//!
//! `types.txt` lists each type's fields in Go's order and when they are written. [`write`](Type::write) lays a value out
//! along a type straight into a hash or a buffer; [`decode`](Type::decode) says what Argo Rollouts' decoder makes of a
//! value, malformed ones included. Never fills defaults, never judges values.
//!
//! The types are those of the Kubernetes libraries Argo Rollouts 1.10 was built with, not those of the cluster at hand
//! ([`facts`](crate::kubernetes::facts)): a field added since must not change a hash.

mod decode;
mod same;
mod write;

use std::{collections::HashMap, sync::LazyLock};

use crate::kubernetes::value::Text;

pub use decode::{Decoded, Wrong};
pub use write::{Sink, Stopped, any_text, is_special, string};

/// A Go type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Type(&'static Shape);

/// The type of `spec.template`.
pub fn pod_template() -> Type {
    Type(&GRAPH.pod_template)
}

/// The types of a pod template's `metadata` and `spec`.
pub fn parts_of_pod_template() -> (Type, Type) {
    (Type(&GRAPH.metadata), Type(&GRAPH.pod_spec))
}

/// The type of `spec.strategy.canary.steps`.
pub fn steps() -> Type {
    Type(&GRAPH.steps)
}

/// The type of a metric of an analysis.
pub fn metric() -> Type {
    Type(&GRAPH.metric)
}

/// The struct of this name: `Affinity`, `PodTemplateMetadata`.
pub fn named(name: &str) -> Option<Type> {
    GRAPH.names.get(name).map(|index| Type(&GRAPH.shapes[*index]))
}

/// What values of a type look like.
#[derive(Debug, PartialEq, Eq)]
enum Shape {
    Bool,
    Int32,
    Int64,
    Str,
    Quantity,
    Time,
    IntOrString,
    /// Free JSON.
    Raw,
    /// By its place in the graph.
    Struct(usize),
    List(Box<Shape>),
    Map(Box<Shape>),
    /// A pointer.
    Optional(Box<Shape>),
}

/// When a field is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Emit {
    /// Even if empty.
    Always,
    /// `omitempty`: not `false`, 0, "", nil, or a list or map of nothing.
    NotEmpty,
    /// `omitzero`.
    NotZero,
}

#[derive(Debug)]
struct Field {
    name: Text,
    /// `"name":`
    key: String,
    shape: Shape,
    emit: Emit,
}

/// A struct with its fields in Go's order.
#[derive(Debug)]
struct Struct {
    fields: Vec<Field>,
    /// Where the field of a name is: an open hash table of places plus one. Field names differ in length, first, middle
    /// or last letter, so nearly every name is found at once; a template is hashed and compared in every pass.
    places: [u8; PLACES],
}

/// A power of two, more than twice the most fields.
const PLACES: usize = 128;

fn place_of(name: &str) -> usize {
    let bytes = name.as_bytes();
    let letter = |at: usize| usize::from(bytes.get(at).copied().unwrap_or_default());
    bytes.len() + letter(0) * 3 + letter(bytes.len() / 2) * 7 + letter(bytes.len().saturating_sub(1)) * 31
}

impl Struct {
    fn new(fields: Vec<Field>) -> Struct {
        let mut places = [0; PLACES];
        for (index, field) in fields.iter().enumerate() {
            let mut place = place_of(&field.name) % PLACES;
            while places[place] != 0 {
                place = (place + 1) % PLACES;
            }
            places[place] = index as u8 + 1;
        }
        Struct { fields, places }
    }

    fn find(&self, name: &str) -> Option<usize> {
        let mut place = place_of(name) % PLACES;
        loop {
            let index = usize::from(self.places[place]).checked_sub(1)?;
            if self.fields[index].name.as_str() == name {
                return Some(index);
            }
            place = (place + 1) % PLACES;
        }
    }

    fn field(&self, name: &str) -> Option<&Field> {
        self.find(name).map(|at| &self.fields[at])
    }
}

/// No type has more fields: a struct is laid out on the stack.
const MOST_FIELDS: usize = 48;

struct Graph {
    structs: Vec<Struct>,
    names: HashMap<&'static str, usize>,
    /// `Shape::Struct` of each struct, to hand out.
    shapes: Vec<Shape>,
    pod_template: Shape,
    metadata: Shape,
    pod_spec: Shape,
    steps: Shape,
    metric: Shape,
}

static GRAPH: LazyLock<Graph> = LazyLock::new(|| match Graph::parse(include_str!("types.txt")) {
    Ok(graph) => graph,
    // A test reads the same text, so a program that was tested never gets here.
    Err(line) => panic!("go_json/types.txt: cannot read {line:?}"),
});

fn fields_of(index: usize) -> &'static Struct {
    &GRAPH.structs[index]
}

impl Graph {
    /// Reads the data; the error is the first line it cannot read.
    fn parse(text: &'static str) -> Result<Graph, String> {
        let lines: Vec<&'static str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let names: HashMap<&'static str, usize> =
            lines.iter().enumerate().filter_map(|(index, line)| Some((line.split(' ').next()?, index))).collect();
        let structs = lines.iter().map(|line| structure(line, &names).ok_or_else(|| (*line).to_owned()));
        let structs = structs.collect::<Result<Vec<_>, _>>()?;
        let root = |name: &str| names.get(name).map(|index| Shape::Struct(*index)).ok_or_else(|| name.to_owned());
        Ok(Graph {
            pod_template: root("PodTemplateSpec")?,
            metadata: root("ObjectMeta")?,
            pod_spec: root("PodSpec")?,
            steps: Shape::List(Box::new(root("CanaryStep")?)),
            metric: root("Metric")?,
            shapes: (0..structs.len()).map(Shape::Struct).collect(),
            structs,
            names,
        })
    }
}

fn structure(line: &str, names: &HashMap<&str, usize>) -> Option<Struct> {
    let mut fields = Vec::new();
    for word in line.split(' ').skip(1) {
        let (name, shape) = word.split_once('=')?;
        let (emit, shape) = match shape.as_bytes().first()? {
            b'!' => (Emit::Always, &shape[1..]),
            b'0' => (Emit::NotZero, &shape[1..]),
            _ => (Emit::NotEmpty, shape),
        };
        fields.push(Field { name: name.into(), key: format!("\"{name}\":"), shape: shape_of(shape, names)?, emit });
    }
    (fields.len() <= MOST_FIELDS).then(|| Struct::new(fields))
}

fn shape_of(word: &str, names: &HashMap<&str, usize>) -> Option<Shape> {
    Some(match word {
        "bool" => Shape::Bool,
        "int32" => Shape::Int32,
        "int64" => Shape::Int64,
        "string" => Shape::Str,
        "quantity" => Shape::Quantity,
        "time" => Shape::Time,
        "int-or-string" => Shape::IntOrString,
        "raw-json" => Shape::Raw,
        _ if let Some(inner) = word.strip_prefix('?') => Shape::Optional(Box::new(shape_of(inner, names)?)),
        _ if let Some(inner) = word.strip_prefix('[') => Shape::List(Box::new(shape_of(inner, names)?)),
        _ if let Some(inner) = word.strip_prefix('{') => Shape::Map(Box::new(shape_of(inner, names)?)),
        _ => Shape::Struct(*names.get(word)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read() {
        let graph = Graph::parse(include_str!("types.txt")).unwrap();
        assert_eq!(graph.structs.len(), 164);
        for fields in &graph.structs {
            for (index, field) in fields.fields.iter().enumerate() {
                assert_eq!(fields.find(&field.name), Some(index));
            }
            assert!(fields.find("").is_none() && fields.find("noSuchField").is_none());
        }
        assert!(named("Affinity").is_some() && named("Nothing").is_none());
    }
}
