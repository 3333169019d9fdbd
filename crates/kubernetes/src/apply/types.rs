//! A [`Schema`] as server-side apply sees it: scalars, maps and lists, each owned as one or piece by piece.
//!
//! Mirrors how the real server derives its merge schema from OpenAPI, with its corners: areas of unknown fields have
//! *deduced* types (objects piece by piece, lists as one), and whole objects inside custom resources have the metadata of
//! any object. Never looks further than one level.

use std::sync::{Arc, LazyLock};

use super::fieldpath::{PathElement, compare_values};
use crate::{
    schema::{Empty, Field, Schema, Shape, Struct, Topology},
    status::go_quoted,
    value::{Text, Value, intern},
};

/// The type of a value.
#[derive(Debug, Clone, Copy)]
pub enum Type<'a> {
    /// What a schema says.
    Known {
        /// The schema.
        schema: &'a Schema,
        /// Some ancestor keeps unknown fields, so this does too.
        open: bool,
        /// A whole custom object: apiVersion, kind and metadata are what they always are.
        object: bool,
    },
    /// Unknown: objects piece by piece, lists as one.
    Deduced,
    /// Unknown, and owned as one.
    Opaque,
}

/// What a value of some type is merged as.
#[derive(Debug, Clone, Copy)]
pub enum Atom<'a> {
    /// A leaf.
    Scalar(Scalar),
    /// An object.
    Map(MapType<'a>),
    /// A list.
    List(ListType<'a>),
}

/// What a leaf may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// Any but lists and objects.
    Untyped,
    /// A number.
    Number,
    /// A string.
    Str,
    /// A boolean.
    Bool,
}

/// The type of an object.
#[derive(Debug, Clone, Copy)]
pub struct MapType<'a> {
    fields: Option<&'a Struct>,
    object: bool,
    open: bool,
    /// The type of keys that are no declared fields, if such keys may be.
    pub elements: Option<&'a Schema>,
    deduced: bool,
    /// Owned as one.
    pub atomic: bool,
}

/// The type of a list.
#[derive(Debug, Clone, Copy)]
pub struct ListType<'a> {
    /// The type of its items.
    pub items: Type<'a>,
    topology: &'a Topology,
}

static ATOMIC: Topology = Topology::Atomic;

impl<'a> Type<'a> {
    /// The type of whole objects of a built-in kind.
    pub fn built_in(schema: &'a Schema) -> Type<'a> {
        Type::Known { schema, open: false, object: false }
    }

    /// The type of whole objects of a custom kind.
    pub fn custom(schema: &'a Schema) -> Type<'a> {
        Type::Known { schema, open: false, object: true }
    }

    /// What a value of this type is merged as. Where the type leaves a choice, the value decides; `None` and `null` do not.
    pub fn atom(self, value: Option<&Value>) -> Atom<'a> {
        let fitting = match value {
            Some(Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_)) => self.scalar().map(Atom::Scalar),
            Some(Value::List(_)) => self.list().map(Atom::List),
            Some(Value::Map(_) | Value::Null) | None => None,
        };
        fitting
            .or_else(|| self.map().map(Atom::Map))
            .or_else(|| self.scalar().map(Atom::Scalar))
            .or_else(|| self.list().map(Atom::List))
            .unwrap_or(Atom::Scalar(Scalar::Untyped))
    }

    /// As a leaf, if values may be one.
    fn scalar(self) -> Option<Scalar> {
        let Type::Known { schema, .. } = self else { return Some(Scalar::Untyped) };
        match schema.shape {
            Shape::Bool => Some(Scalar::Bool),
            Shape::Int32 | Shape::Int64 | Shape::Number => Some(Scalar::Number),
            Shape::Str | Shape::Bytes => Some(Scalar::Str),
            Shape::Duration if schema.name.is_some() => Some(Scalar::Str),
            Shape::Any | Shape::IntOrString | Shape::Quantity | Shape::Time | Shape::MicroTime | Shape::Duration => {
                Some(Scalar::Untyped)
            }
            Shape::Struct(_) | Shape::Map { .. } | Shape::List { .. } => None,
        }
    }

    /// As an object, if values may be one.
    pub fn map(self) -> Option<MapType<'a>> {
        let none = MapType { fields: None, object: false, open: false, elements: None, deduced: true, atomic: false };
        let (schema, open, object) = match self {
            Type::Known { schema, open, object } => (schema, open, object),
            Type::Deduced => return Some(none),
            Type::Opaque => return Some(MapType { atomic: true, ..none }),
        };
        match &schema.shape {
            Shape::Any if is_raw_extension(schema) => Some(MapType { atomic: true, ..none }),
            Shape::Any | Shape::IntOrString => Some(MapType { object, ..none }),
            Shape::Struct(fields) => {
                let object = object || fields.embedded;
                let open = open || fields.open;
                let deduced = open || (fields.fields.is_empty() && !object);
                Some(MapType { fields: Some(fields), object, open, elements: None, deduced, atomic: fields.atomic })
            }
            Shape::Map { values, atomic } => {
                Some(MapType { fields: None, object, open, elements: Some(values), deduced: false, atomic: *atomic })
            }
            _ => None,
        }
    }

    /// As a list, if values may be one.
    pub fn list(self) -> Option<ListType<'a>> {
        let opaque = ListType { items: Type::Opaque, topology: &ATOMIC };
        let Type::Known { schema, open, .. } = self else { return Some(opaque) };
        match &schema.shape {
            Shape::Any | Shape::IntOrString => Some(opaque),
            Shape::List { items, topology, .. } => {
                Some(ListType { items: Type::Known { schema: items, open, object: false }, topology })
            }
            _ => None,
        }
    }
}

fn is_raw_extension(schema: &Schema) -> bool {
    schema.name.as_deref() == Some("io.k8s.apimachinery.pkg.runtime.RawExtension")
}

impl<'a> MapType<'a> {
    /// The type of a declared field.
    pub fn field(&self, name: &str) -> Option<Type<'a>> {
        if self.object {
            match name {
                "metadata" => return Some(Type::built_in(&OBJECT_META)),
                "apiVersion" | "kind" => return Some(Type::built_in(&STRING)),
                _ => {}
            }
        }
        let field = self.fields?.field(name)?;
        Some(Type::Known { schema: &field.schema, open: self.open, object: false })
    }

    /// Looks up keys that come in order.
    pub fn in_order(self) -> Lookup<'a> {
        let left = self.fields.map(|fields| fields.fields.as_slice()).unwrap_or_default();
        Lookup { map: self, left }
    }

    /// The type of the value under any key, if that key may be.
    pub fn value(&self, key: &str) -> Option<Type<'a>> {
        self.field(key).or_else(|| self.element())
    }

    /// The type of values whose keys are no declared fields.
    fn element(&self) -> Option<Type<'a>> {
        match self.elements {
            Some(schema) => Some(Type::Known { schema, open: self.open, object: false }),
            None => {
                self.deduced.then_some(if self.atomic && self.fields.is_none() { Type::Opaque } else { Type::Deduced })
            }
        }
    }

    /// Whether nothing at all is known of it.
    pub fn is_unknown(&self) -> bool {
        self.deduced && self.fields.is_none_or(|fields| fields.fields.is_empty()) && !self.object
    }
}

/// Looks up the keys of one object in order, each not far behind the one before.
pub struct Lookup<'a> {
    map: MapType<'a>,
    left: &'a [(Text, Field)],
}

impl<'a> Lookup<'a> {
    /// Whether the key is a declared field, and the type of the value under it, if it may be.
    pub fn find(&mut self, key: &str) -> (bool, Option<Type<'a>>) {
        if self.map.object && matches!(key, "apiVersion" | "kind" | "metadata") {
            return (true, self.map.field(key));
        }
        let mut near = 1;
        while self.left.get(near).is_some_and(|(name, _)| name.as_str() < key) {
            near *= 2;
        }
        let part = &self.left[..self.left.len().min(near + 1)];
        let place = part.binary_search_by(|(name, _)| name.as_str().cmp(key));
        let (Ok(at) | Err(at)) = place;
        let here = &self.left[at..];
        self.left = here;
        match (place, here.first()) {
            (Ok(_), Some((_, field))) => {
                (true, Some(Type::Known { schema: &field.schema, open: self.map.open, object: false }))
            }
            _ => (false, self.map.element()),
        }
    }
}

impl<'a> ListType<'a> {
    /// Owned as one.
    pub fn is_atomic(&self) -> bool {
        *self.topology == Topology::Atomic
    }

    /// What identifies the item, or why nothing does.
    pub fn element(&self, item: &Value) -> Result<PathElement, String> {
        if let Some(problem) = self.unidentified(item) {
            return Err(problem);
        }
        Ok(match self.topology {
            Topology::Atomic | Topology::Set => PathElement::Value(item.clone()),
            Topology::Map(keys) => {
                let value = |key: &Text| item.get(key).or_else(|| self.default(key)).cloned();
                PathElement::key(keys.iter().filter_map(|key| Some((key.clone(), value(key)?))).collect())
            }
        })
    }

    /// Why nothing identifies the item, if so.
    pub fn unidentified(&self, item: &Value) -> Option<String> {
        match (self.topology, item) {
            (Topology::Atomic, _) => Some("invalid indexing of non-associative list".into()),
            (Topology::Set, Value::Map(_)) => {
                Some("associative list without keys has an element that's a map type".into())
            }
            (Topology::Set, Value::List(_)) => Some("not supported: associative list with lists as elements".into()),
            (Topology::Set, Value::Null) => {
                Some("associative list without keys has an element that's an explicit null".into())
            }
            (Topology::Set, _) => None,
            (Topology::Map(_), Value::Null) => Some("associative list with keys may not have a null element".into()),
            (Topology::Map(keys), Value::Map(map)) => {
                let found = keys.iter().any(|key| map.contains_key(key) || self.default(key).is_some());
                (!found && !keys.is_empty()).then(|| {
                    let keys: Vec<String> = keys.iter().map(|key| go_quoted(key)).collect();
                    format!(
                        "associative list with keys has an element that omits all key fields [{}] (and doesn't have \
                         default values for any key fields)",
                        keys.join(" ")
                    )
                })
            }
            (Topology::Map(_), _) => Some("associative list with keys may not have non-map elements".into()),
        }
    }

    /// The value of a key field that an item leaves out.
    fn default(&self, key: &str) -> Option<&'a Value> {
        let Type::Known { schema, .. } = self.items else { return None };
        let field = schema.as_struct()?.field(key)?;
        // OpenAPI gives plain fields that are always shown their zero as default.
        field.schema.default.as_ref().or_else(|| match (field.empty, &field.schema.shape) {
            (Empty::Show, Shape::Str) => Some(&EMPTY),
            (Empty::Show, Shape::Int32 | Shape::Int64) => Some(&ZERO),
            _ => None,
        })
    }

    /// The identities of a list's items, without allocating one each.
    pub fn keys(&self, items: &'a [Value]) -> Keys<'a> {
        let stride = match self.topology {
            Topology::Atomic | Topology::Set => 1,
            Topology::Map(keys) => keys.len(),
        };
        let mut flat = Vec::with_capacity(stride * items.len());
        for item in items {
            match self.topology {
                Topology::Atomic | Topology::Set => flat.push(Some(item)),
                Topology::Map(keys) => {
                    flat.extend(keys.iter().map(|key| item.get(key).or_else(|| self.default(key))));
                }
            }
        }
        let mut keys = Keys { stride, len: items.len(), flat, order: Vec::new() };
        if items.len() > LINEAR {
            let mut order: Vec<u32> = (0..items.len() as u32).collect();
            order.sort_by(|a, b| compare_keys(keys.at(*a as usize), keys.at(*b as usize)).then(a.cmp(b)));
            keys.order = order;
        }
        keys
    }
}

/// Lists up to this length are searched item by item.
const LINEAR: usize = 16;

static ZERO: Value = Value::Int(0);
static EMPTY: Value = Value::Str(Text::new());

/// What identifies each item of a list, borrowed from the items.
pub struct Keys<'a> {
    stride: usize,
    len: usize,
    flat: Vec<Option<&'a Value>>,
    /// The items sorted by key, of long lists.
    order: Vec<u32>,
}

impl<'a> Keys<'a> {
    /// The key of an item.
    pub fn at(&self, i: usize) -> &[Option<&'a Value>] {
        &self.flat[i * self.stride..(i + 1) * self.stride]
    }

    /// The first item with this key.
    pub fn find(&self, key: &[Option<&Value>]) -> Option<usize> {
        if self.order.is_empty() {
            return (0..self.len).find(|i| self.at(*i) == key);
        }
        let first = self.order.partition_point(|i| compare_keys(self.at(*i as usize), key).is_lt());
        let at = *self.order.get(first)? as usize;
        (self.at(at) == key).then_some(at)
    }

    /// All items with this key.
    pub fn all(&self, key: &[Option<&Value>]) -> impl Iterator<Item = usize> {
        (0..self.len).filter(move |i| self.at(*i) == key)
    }

    /// How many items have this key.
    pub fn count(&self, key: &[Option<&Value>]) -> usize {
        if self.order.is_empty() {
            return self.all(key).count();
        }
        let first = self.order.partition_point(|i| compare_keys(self.at(*i as usize), key).is_lt());
        self.order[first..].iter().take_while(|i| self.at(**i as usize) == key).count()
    }
}

fn compare_keys(a: &[Option<&Value>], b: &[Option<&Value>]) -> std::cmp::Ordering {
    let compare = |a: &Option<&Value>, b: &Option<&Value>| match (a, b) {
        (Some(a), Some(b)) => compare_values(a, b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    };
    a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne()).unwrap_or(a.len().cmp(&b.len()))
}

static STRING: LazyLock<Schema> = LazyLock::new(|| Schema::of(Shape::Str));

/// `metav1.ObjectMeta`, which every custom object has.
static OBJECT_META: LazyLock<Schema> = LazyLock::new(|| {
    let text = || Schema::of(Shape::Str);
    let texts = || Schema::of(Shape::Map { values: Arc::new(Schema::of(Shape::Str)), atomic: false });
    let list = |items: Schema, topology| {
        Schema::of(Shape::List { items: Arc::new(items), topology, merge: Default::default() })
    };
    let mut owner = structure([
        ("apiVersion", text()),
        ("blockOwnerDeletion", Schema::of(Shape::Bool)),
        ("controller", Schema::of(Shape::Bool)),
        ("kind", text()),
        ("name", text()),
        ("uid", text()),
    ]);
    if let Shape::Struct(owner) = &mut owner.shape {
        owner.atomic = true;
        owner.fields.iter_mut().filter(|(name, _)| *name == "uid").for_each(|(_, field)| field.empty = Empty::Show);
    }
    structure([
        ("annotations", texts()),
        ("creationTimestamp", Schema::of(Shape::Time)),
        ("deletionGracePeriodSeconds", Schema::of(Shape::Int64)),
        ("deletionTimestamp", Schema::of(Shape::Time)),
        ("finalizers", list(text(), Topology::Set)),
        ("generateName", text()),
        ("generation", Schema::of(Shape::Int64)),
        ("labels", texts()),
        ("managedFields", list(Schema::of(Shape::Any), Topology::Atomic)),
        ("name", text()),
        ("namespace", text()),
        ("ownerReferences", list(owner, Topology::Map(vec![intern("uid")]))),
        ("resourceVersion", text()),
        ("selfLink", text()),
        ("uid", text()),
    ])
});

/// `autoscaling/v1 Scale`, which every `/scale` shows.
pub(super) static SCALE: LazyLock<Schema> = LazyLock::new(|| {
    structure([
        ("apiVersion", Schema::of(Shape::Str)),
        ("kind", Schema::of(Shape::Str)),
        ("metadata", OBJECT_META.clone()),
        ("spec", structure([("replicas", Schema::of(Shape::Int32))])),
        ("status", structure([("replicas", Schema::of(Shape::Int32)), ("selector", Schema::of(Shape::Str))])),
    ])
});

/// A struct of these fields, sorted by name.
fn structure<const N: usize>(fields: [(&str, Schema); N]) -> Schema {
    let fields = fields.into_iter().map(|(name, schema)| (intern(name), Field::of(schema))).collect();
    Schema::of(Shape::Struct(Struct { fields, ..Struct::default() }))
}

/// What an object of a built-in kind is before anything is set: the fields Go always shows.
pub(super) fn zero(schema: &Schema) -> Value {
    match &schema.shape {
        Shape::Struct(fields) => {
            let shown = fields.fields.iter().filter_map(|(name, field)| match field.empty {
                Empty::Show => Some((name.clone(), zero(&field.schema))),
                Empty::Null => Some((name.clone(), Value::Null)),
                Empty::Keep | Empty::Omit => None,
            });
            Value::Map(shown.collect())
        }
        Shape::Str => EMPTY.clone(),
        Shape::Int32 | Shape::Int64 | Shape::Number | Shape::IntOrString => ZERO.clone(),
        Shape::Bool => Value::Bool(false),
        Shape::Quantity => "0".into(),
        Shape::Duration => "0s".into(),
        Shape::Any | Shape::Time | Shape::MicroTime | Shape::Bytes | Shape::Map { .. } | Shape::List { .. } => {
            Value::Null
        }
    }
}
