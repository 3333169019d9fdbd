//! The types of CEL, as a schema declares them and as rules combine them.

use std::{collections::HashMap, fmt, sync::Arc, sync::LazyLock};

use crate::{
    schema::{Schema, Shape},
    value::{Text, intern},
};

/// A type.
#[derive(Debug, Clone)]
pub(super) enum Type<'a> {
    /// Known only when the rule runs.
    Dyn,
    /// Of an expression that was complained about.
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Str,
    Bytes,
    Duration,
    Timestamp,
    List(Arc<Type<'a>>),
    Map(Arc<Type<'a>>, Arc<Type<'a>>),
    Optional(Arc<Type<'a>>),
    /// The type of a type.
    Kind(Option<Arc<Type<'a>>>),
    /// An object with the fields of a schema.
    Object(Object<'a>),
    /// A type of the Kubernetes libraries, such as `kubernetes.Quantity`.
    Named(&'static str),
    /// Any type, the same throughout one signature.
    Param(&'static str),
    /// A type that is yet to be found out.
    Var(usize),
}

/// The type of objects at one place of a schema.
#[derive(Debug, Clone)]
pub(super) struct Object<'a> {
    /// As complaints name it.
    pub name: Arc<str>,
    /// What declares the fields.
    pub schema: &'a Schema,
    pub part: Part,
}

/// Which fields an object shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Those of its schema.
    Plain,
    /// Also `apiVersion`, `kind` and `metadata`, as the root of an object does.
    Resource,
    /// `name` and `generateName`, of metadata.
    Meta,
}

impl<'a> Type<'a> {
    /// The type a schema declares; `None` if rules may not look at its values.
    pub(super) fn of(schema: &'a Schema, resource: bool, name: &str) -> Option<Type<'a>> {
        let rules = schema.rules.as_deref();
        if rules.is_some_and(|rules| rules.untyped) {
            return None;
        }
        let format = rules.and_then(|rules| rules.format.as_ref()).map(|format| format.name.as_str());
        Some(match &schema.shape {
            Shape::IntOrString => Type::Dyn,
            Shape::Bool => Type::Bool,
            Shape::Int32 | Shape::Int64 => Type::Int,
            Shape::Number => Type::Double,
            Shape::Str => match format {
                Some("byte") => Type::Bytes,
                Some("duration") => Type::Duration,
                Some("date" | "date-time") => Type::Timestamp,
                _ => Type::Str,
            },
            Shape::List { items, .. } => {
                Type::List(Arc::new(Type::of(items, is_embedded(items), &format!("{name}.@idx"))?))
            }
            Shape::Map { values, .. } => {
                let values = Type::of(values, is_embedded(values), &format!("{name}.@elem"))?;
                Type::Map(Arc::new(Type::Str), Arc::new(values))
            }
            Shape::Struct(_) => {
                let part = if resource { Part::Resource } else { Part::Plain };
                Type::Object(Object { name: name.into(), schema, part })
            }
            Shape::Time | Shape::MicroTime | Shape::Quantity | Shape::Duration | Shape::Bytes => Type::Str,
            Shape::Any => return None,
        })
    }

    /// The parts of a type that has some.
    pub(super) fn parameters(&self) -> Vec<&Type<'a>> {
        match self {
            Type::List(item) | Type::Optional(item) => vec![item],
            Type::Map(key, value) => vec![key, value],
            Type::Kind(Some(inner)) => vec![inner],
            _ => Vec::new(),
        }
    }

    pub(super) fn is_dyn(&self) -> bool {
        matches!(self, Type::Dyn)
    }

    /// Whether both are the same, to the last part.
    pub(super) fn same(&self, other: &Type<'_>) -> bool {
        match (self, other) {
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => a.same(b),
            (Type::Map(a, b), Type::Map(c, d)) => a.same(c) && b.same(d),
            (Type::Kind(Some(a)), Type::Kind(Some(b))) => a.same(b),
            (Type::Kind(None), Type::Kind(None)) => true,
            (Type::Object(a), Type::Object(b)) => std::ptr::eq(a.schema, b.schema) && a.part == b.part,
            (Type::Named(a), Type::Named(b)) | (Type::Param(a), Type::Param(b)) => a == b,
            (Type::Var(a), Type::Var(b)) => a == b,
            (Type::Kind(_) | Type::Object(_) | Type::Named(_) | Type::Param(_) | Type::Var(_), _) => false,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

fn is_embedded(schema: &Schema) -> bool {
    schema.as_struct().is_some_and(|fields| fields.embedded)
}

impl<'a> Object<'a> {
    /// The type of a field, by the name rules use for it.
    pub(super) fn field(&self, escaped: &str) -> Option<Type<'a>> {
        if self.part == Part::Meta {
            return matches!(escaped, "name" | "generateName").then_some(Type::Str);
        }
        if self.part == Part::Resource {
            match escaped {
                "apiVersion" | "kind" => return Some(Type::Str),
                "metadata" => {
                    let schema = self.schema.child("metadata").map_or(self.schema, |schema| schema);
                    let name = format!("{}.metadata", self.name).into();
                    return Some(Type::Object(Object { name, schema, part: Part::Meta }));
                }
                _ => {}
            }
        }
        let raw = unescape(escaped)?;
        let field = self.schema.as_struct()?.field(&raw)?;
        Type::of(&field.schema, is_embedded(&field.schema), &format!("{}.{escaped}", self.name))
    }
}

impl fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Dyn => f.write_str("dyn"),
            Type::Error => f.write_str("!error!"),
            Type::Null => f.write_str("null"),
            Type::Bool => f.write_str("bool"),
            Type::Int => f.write_str("int"),
            Type::Uint => f.write_str("uint"),
            Type::Double => f.write_str("double"),
            Type::Str => f.write_str("string"),
            Type::Bytes => f.write_str("bytes"),
            Type::Duration => f.write_str("duration"),
            Type::Timestamp => f.write_str("timestamp"),
            Type::List(item) => write!(f, "list({item})"),
            Type::Map(key, value) => write!(f, "map({key}, {value})"),
            Type::Optional(item) => write!(f, "optional_type({item})"),
            Type::Kind(None) => f.write_str("type"),
            Type::Kind(Some(inner)) => write!(f, "type({inner})"),
            Type::Object(object) => f.write_str(&object.name),
            Type::Named(name) | Type::Param(name) => f.write_str(name),
            Type::Var(n) => write!(f, "_var{n}"),
        }
    }
}

/// Words of CEL that a field may be named by.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The name rules use for a field; `None` if there is none.
pub(super) fn escape(field: &str) -> Option<String> {
    if field.is_empty() || field.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&field) {
        return Some(format!("__{field}__"));
    }
    let mut out = String::with_capacity(field.len());
    let mut rest = field;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("__") {
            out.push_str("__underscores__");
            rest = after;
            continue;
        }
        match c {
            '.' => out.push_str("__dot__"),
            '-' => out.push_str("__dash__"),
            '/' => out.push_str("__slash__"),
            c if c.is_ascii_alphanumeric() || c == '_' => out.push(c),
            _ => return None,
        }
        rest = &rest[c.len_utf8()..];
    }
    Some(out)
}

/// The field a rule means by a name; `None` if no field has that name.
pub(super) fn unescape(name: &str) -> Option<Text> {
    if !name.contains("__") {
        return Some(intern(name));
    }
    let inner = name.strip_prefix("__").and_then(|name| name.strip_suffix("__"));
    if let Some(word) = inner.filter(|word| RESERVED.contains(word)) {
        return Some(intern(word));
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(i) = rest.find("__") {
        out.push_str(&rest[..i]);
        let end = rest[i + 2..].find("__")? + i + 2;
        out.push_str(match &rest[i + 2..end] {
            "underscores" => "__",
            "dot" => ".",
            "dash" => "-",
            "slash" => "/",
            _ => return None,
        });
        rest = &rest[end + 2..];
    }
    out.push_str(rest);
    Some(intern(&out))
}

/// One way to call a function.
#[derive(Debug)]
pub(super) struct Overload {
    pub id: &'static str,
    /// Called as `target.function(…)`; the target is the first argument.
    pub method: bool,
    pub args: Vec<Type<'static>>,
    pub result: Type<'static>,
}

/// The functions of the environment rules run in, as the real server's tells them.
pub(super) static FUNCTIONS: LazyLock<HashMap<&'static str, Vec<Overload>>> = LazyLock::new(|| {
    let mut functions: HashMap<&'static str, Vec<Overload>> = HashMap::new();
    for line in include_str!("functions.txt").lines() {
        let mut parts = line.split(' ');
        let (Some(name), Some(id), Some(args), Some(result)) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let (name, method) = name.strip_prefix('.').map_or((name, false), |name| (name, true));
        let args = args.split('|').filter(|arg| *arg != "-").map(read).collect();
        functions.entry(name).or_default().push(Overload { id, method, args, result: read(result) });
    }
    functions
});

/// Reads a type as [`FUNCTIONS`] writes it.
fn read(text: &'static str) -> Type<'static> {
    if let Some((outer, inner)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        return match outer {
            "list" => Type::List(Arc::new(read(inner))),
            "optional_type" => Type::Optional(Arc::new(read(inner))),
            "type" => Type::Kind(Some(Arc::new(read(inner)))),
            _ => {
                let (key, value) = inner.split_once(',').unwrap_or((inner, "dyn"));
                Type::Map(Arc::new(read(key)), Arc::new(read(value)))
            }
        };
    }
    match text {
        "dyn" => Type::Dyn,
        "null" => Type::Null,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::Str,
        "bytes" => Type::Bytes,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "type" => Type::Kind(None),
        name if name.len() == 1 => Type::Param(name),
        name => Type::Named(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_of_the_table_is_read() {
        let overloads: usize = FUNCTIONS.values().map(Vec::len).sum();
        assert_eq!(overloads, include_str!("functions.txt").lines().count());
        let shown: Vec<String> = FUNCTIONS["getQuery"].iter().map(|o| o.result.to_string()).collect();
        assert_eq!(shown, ["map(string, list(string))"]);
    }

    #[test]
    fn a_field_and_its_name_in_rules_are_each_others() {
        let rows = [
            ("plain", "plain"),
            ("namespace", "__namespace__"),
            ("a-b", "a__dash__b"),
            ("a.b/c", "a__dot__b__slash__c"),
            ("a__b", "a__underscores__b"),
            ("_x", "_x"),
        ];
        for (field, name) in rows {
            assert_eq!(escape(field).as_deref(), Some(name));
            assert_eq!(unescape(name).as_deref(), Some(field));
        }
        assert_eq!((escape("x y"), escape("1a"), unescape("a__b")), (None, None, None));
        // A reserved word may stand for itself where a field is meant.
        assert_eq!(unescape("namespace").as_deref(), Some("namespace"));
    }
}
