//! What a rule may cost at worst, as the real server estimates it before it takes a CRD.
//!
//! Everything is in its units, and follows its estimate to the unit: a rule near the limit must be taken or refused alike.

use std::collections::HashMap;

use super::{
    ast::{Expr, Fold, Literal, Node},
    check::Checked,
    types::{FUNCTIONS, Object, Part, Type, unescape},
};
use crate::{
    schema::{Schema, Shape},
    value::{Text, intern},
};

/// The largest request the server takes, in bytes: no value is larger.
const LARGEST: u64 = 3 * 1024 * 1024;
/// What going over one character costs.
const STRING: f64 = 0.1;
/// What one character of a pattern costs.
const REGEX: f64 = 0.25;

/// The cost of a rule about values of a schema, at worst.
pub(super) fn estimate(expr: &Expr, checked: &Checked<'_>, schema: &Schema, part: Part) -> u64 {
    let mut coster = Coster {
        checked,
        schema,
        part,
        paths: HashMap::new(),
        locals: Vec::new(),
        sizes: HashMap::new(),
        entries: HashMap::new(),
    };
    coster.cost(expr)
}

/// How often a value of this schema fits into a request.
pub(super) fn cardinality(schema: &Schema, part: Part) -> u64 {
    LARGEST / (min_size(schema, part) + 1)
}

/// How many elements a range holds.
#[derive(Debug, Clone, Copy)]
struct Size {
    min: u64,
    max: u64,
}

const UNKNOWN: Size = Size { min: 0, max: u64::MAX };

impl Size {
    fn fixed(n: u64) -> Size {
        Size { min: n, max: n }
    }

    fn union(self, other: Size) -> Size {
        Size { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    fn add(self, other: Size) -> Size {
        Size { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    fn times(self, other: Size) -> Size {
        Size { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// The cost of so much for each, rounded up.
    fn factor(self, factor: f64) -> u64 {
        factored(self.max, factor)
    }
}

fn factored(n: u64, factor: f64) -> u64 {
    let cost = (n as f64 * factor).ceil();
    if cost >= 18_446_744_073_709_551_616.0 { u64::MAX } else { cost as u64 }
}

/// The sizes of the keys and values of a container.
#[derive(Debug, Clone, Copy)]
struct Entry {
    list: bool,
    key: Size,
    value: Size,
}

impl Entry {
    fn union(a: Option<Entry>, b: Option<Entry>) -> Option<Entry> {
        let (a, b) = (a?, b?);
        Some(Entry { list: a.list, key: a.key.union(b.key), value: a.value.union(b.value) })
    }
}

type Path = Vec<Text>;

/// A variable of a loop.
struct Local {
    name: Text,
    path: Path,
    size: Option<Size>,
    entry: Option<Entry>,
}

struct Coster<'c, 'a> {
    checked: &'c Checked<'a>,
    schema: &'c Schema,
    part: Part,
    /// Where in the object an expression points, by id; the first step is the variable.
    paths: HashMap<usize, Path>,
    locals: Vec<Local>,
    sizes: HashMap<usize, Size>,
    entries: HashMap<usize, Entry>,
}

/// An argument, as the estimates of functions see it.
struct Arg<'e, 'a> {
    expr: &'e Expr,
    t: Type<'a>,
    path: Path,
    size: Option<Size>,
    cost: u64,
}

impl<'a> Coster<'_, 'a> {
    fn cost(&mut self, expr: &Expr) -> u64 {
        match &expr.node {
            Node::Literal(_) => 0,
            Node::Ident(name) => {
                let path = self.local(name).map_or_else(|| vec![name.clone()], |local| local.path.clone());
                self.paths.insert(expr.id, path);
                1
            }
            Node::Select { operand, test: true, .. } => self.cost(operand),
            // A name with dots that is a type.
            Node::Select { .. } if self.checked.type_names.contains_key(&expr.id) => {
                self.paths.insert(expr.id, vec![intern(self.checked.type_names[&expr.id])]);
                1
            }
            Node::Select { operand, field, .. } => {
                let mut sum = self.cost(operand);
                let t = &self.checked.types[operand.id];
                if matches!(t, Type::Map(..) | Type::Object(_) | Type::Named(_) | Type::Var(_)) {
                    sum = sum.saturating_add(1);
                }
                let mut path = self.path(operand);
                path.push(field.clone());
                self.paths.insert(expr.id, path);
                sum
            }
            Node::Call { function, target, args } => self.call(expr, function, target.as_deref(), args),
            Node::List { items, .. } => {
                let mut sum = 0u64;
                let mut size = Size { min: u64::MAX, max: 0 };
                for item in items {
                    sum = sum.saturating_add(self.cost(item));
                    size = size.union(self.size_or_unknown(item));
                }
                if items.is_empty() {
                    size.min = 0;
                }
                self.entries.insert(expr.id, Entry { list: true, key: Size::fixed(1), value: size });
                sum.saturating_add(10)
            }
            Node::Map(entries) => {
                let mut sum = 0u64;
                let empty = Size { min: if entries.is_empty() { 0 } else { u64::MAX }, max: 0 };
                let (mut key, mut value) = (empty, empty);
                for entry in entries {
                    sum = sum.saturating_add(self.cost(&entry.key)).saturating_add(self.cost(&entry.value));
                    key = key.union(self.size_or_unknown(&entry.key));
                    value = value.union(self.size_or_unknown(&entry.value));
                }
                self.entries.insert(expr.id, Entry { list: false, key, value });
                sum.saturating_add(30)
            }
            Node::Struct { .. } => 40,
            Node::Fold(fold) => self.fold(expr, fold),
        }
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    fn path(&self, expr: &Expr) -> Path {
        if let Node::Ident(name) = &expr.node
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths.get(&expr.id).cloned().unwrap_or_default()
    }

    fn fold(&mut self, expr: &Expr, fold: &Fold) -> u64 {
        let empty = matches!(&fold.range.node, Node::List { items, .. } if items.is_empty());
        let never = matches!(fold.condition.node, Node::Literal(Literal::Bool(false)));
        let mut sum = self.cost(&fold.range).saturating_add(self.cost(&fold.init));
        let accu = Local {
            name: fold.accu.clone(),
            path: self.path(&fold.init),
            size: self.size(&fold.init),
            entry: self.entry(&fold.init),
        };
        let depth = self.locals.len();
        self.locals.push(accu);
        if empty && never {
            // A value bound to a name.
            sum = sum.saturating_add(self.cost(&fold.result));
            self.locals.truncate(depth);
            if let Some(size) = self.size(&fold.result) {
                self.sizes.insert(expr.id, size);
            }
            if let Some(entry) = self.entry(&fold.result) {
                self.entries.insert(expr.id, entry);
            }
            return sum;
        }
        self.variables(fold);
        let condition = self.cost(&fold.condition);
        let step = self.cost(&fold.step);
        self.locals.truncate(depth + 1);
        sum = sum.saturating_add(self.cost(&fold.result));
        self.locals.truncate(depth);
        let count = self.size_or_unknown(&fold.range);
        sum = sum.saturating_add(count.max.saturating_mul(step.saturating_add(condition)));
        match fold.init.node {
            Node::Literal(_) => {
                if let Some(size) = self.size(&fold.init) {
                    self.sizes.insert(expr.id, size);
                }
            }
            Node::List { .. } | Node::Map(_) => {
                self.sizes.insert(expr.id, count);
                if let Some(entry) = self.entry(&fold.step) {
                    self.entries.insert(expr.id, entry);
                }
            }
            _ => {}
        }
        sum
    }

    fn variables(&mut self, fold: &Fold) {
        let entry = self.entry(&fold.range);
        let list = entry.map_or_else(|| matches!(self.checked.types[fold.range.id], Type::List(_)), |entry| entry.list);
        let path = self.path(&fold.range);
        let mut push = |name: &Text, step: &str, size: Option<Size>| {
            let mut path = path.clone();
            path.push(intern(step));
            self.locals.push(Local { name: name.clone(), path, size, entry: None });
        };
        let (key, value) = (entry.map(|entry| entry.key), entry.map(|entry| entry.value));
        match &fold.var2 {
            Some(var2) => {
                push(&fold.var, if list { "@indices" } else { "@keys" }, key);
                push(var2, if list { "@items" } else { "@values" }, value);
            }
            None if list => push(&fold.var, "@items", value),
            None => push(&fold.var, "@keys", key),
        }
    }

    fn call(&mut self, expr: &Expr, function: &str, target: Option<&Expr>, args: &[Expr]) -> u64 {
        let full = target
            .and_then(Expr::qualified_name)
            .map(|prefix| format!("{prefix}.{function}"))
            .filter(|name| FUNCTIONS.contains_key(name.as_str()));
        let (name, target) = match &full {
            Some(name) => (name.as_str(), None),
            None => (function, target),
        };
        if name == "dyn" {
            let cost = self.cost(&args[0]).saturating_add(1);
            if let Some(size) = self.size(&args[0]) {
                self.sizes.insert(expr.id, size);
            }
            if let Some(entry) = self.entry(&args[0]) {
                self.entries.insert(expr.id, entry);
            }
            return cost;
        }
        let args: Vec<Arg<'_, 'a>> = args.iter().map(|arg| self.arg(arg)).collect();
        if matches!(name, "_&&_" | "_||_") {
            return args.iter().fold(0u64, |sum, arg| sum.saturating_add(arg.cost));
        }
        let overloads = self.checked.overloads.get(&expr.id).cloned().unwrap_or_default();
        if overloads.is_empty() {
            return 0;
        }
        let target = target.map(|target| self.arg(target));
        let mut cost = 0u64;
        let mut result: Option<Size> = None;
        for overload in overloads {
            let (one, size) = self.function(expr, name, overload, target.as_ref(), &args);
            cost = cost.max(one);
            if let Some(size) = size {
                result = Some(result.map_or(size, |result| result.union(size)));
            }
            let step = match overload {
                "index_list" => "@items",
                "index_map" => "@values",
                _ => "",
            };
            if !step.is_empty() {
                result = self.entry(args[0].expr).map(|entry| entry.value);
                let mut path = self.path(args[0].expr);
                path.push(intern(step));
                self.paths.insert(expr.id, path);
            }
            if result.is_none() {
                result = self.size(expr);
            }
        }
        if let Some(size) = result {
            self.sizes.insert(expr.id, size);
        }
        cost.saturating_add(target.map_or(0, |target| target.cost))
    }

    fn arg<'e>(&mut self, expr: &'e Expr) -> Arg<'e, 'a> {
        let cost = self.cost(expr);
        Arg { expr, t: self.checked.types[expr.id].clone(), path: self.path(expr), size: self.size(expr), cost }
    }

    fn size_or_unknown(&mut self, expr: &Expr) -> Size {
        self.size(expr).unwrap_or(UNKNOWN)
    }

    /// The size of an expression's value, if it can be told.
    fn size(&mut self, expr: &Expr) -> Option<Size> {
        if let Some(size) = self.sizes.get(&expr.id) {
            return Some(*size);
        }
        match &expr.node {
            Node::Literal(Literal::Str(text)) => return Some(Size::fixed(text.chars().count() as u64)),
            Node::Literal(Literal::Bytes(bytes)) => return Some(Size::fixed(bytes.len() as u64)),
            Node::Literal(_) => return Some(Size::fixed(1)),
            Node::List { items, .. } => return Some(Size::fixed(items.len() as u64)),
            Node::Map(entries) => return Some(Size::fixed(entries.len() as u64)),
            _ => {}
        }
        let path = self.path(expr);
        if let Some(size) = self.declared(&path) {
            self.sizes.insert(expr.id, size);
            return Some(size);
        }
        if is_scalar(&self.checked.types[expr.id]) {
            return Some(Size::fixed(1));
        }
        match &expr.node {
            Node::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    fn entry(&self, expr: &Expr) -> Option<Entry> {
        if let Some(entry) = self.entries.get(&expr.id) {
            return Some(*entry);
        }
        match &expr.node {
            Node::Ident(name) => self.local(name).and_then(|local| local.entry),
            _ => None,
        }
    }

    /// The size the schema allows at a path. The first step is dropped whatever it is, as upstream drops it.
    fn declared(&self, path: &[Text]) -> Option<Size> {
        let (_, steps) = path.split_first()?;
        let mut place = Place::Schema(self.schema, self.part);
        for step in steps {
            place = place.step(step)?;
        }
        Some(Size { min: 0, max: place.max_elements() })
    }

    /// The size of an argument, as the estimates of library functions take it.
    fn given(&self, arg: &Arg<'_, '_>) -> Size {
        arg.size.or_else(|| self.declared(&arg.path)).unwrap_or(UNKNOWN)
    }

    /// The size of the items of a list; `None` if the argument is no list.
    fn item_size(&self, arg: &Arg<'_, 'a>) -> Option<(Type<'a>, Size)> {
        let item = match &arg.t {
            Type::List(item) => (**item).clone(),
            Type::Map(key, _) => (**key).clone(),
            _ => return None,
        };
        let mut path = arg.path.clone();
        if path.is_empty() {
            return Some((item, UNKNOWN));
        }
        path.push(intern("@items"));
        Some((item, self.declared(&path).unwrap_or(UNKNOWN)))
    }

    fn function(
        &mut self,
        expr: &Expr,
        name: &str,
        overload: &str,
        target: Option<&Arg<'_, 'a>>,
        args: &[Arg<'_, 'a>],
    ) -> (u64, Option<Size>) {
        let sum = args.iter().fold(0u64, |sum, arg| sum.saturating_add(arg.cost));
        let with_args = |(cost, size): (u64, Option<Size>)| (cost.saturating_add(sum), size);
        if let Some(found) = self.list_function(overload, target, args) {
            return with_args(found);
        }
        if let Some(found) = self.library(name, overload, target, args) {
            return with_args(found);
        }
        let size = |arg: &Arg<'_, '_>| arg.size.unwrap_or(UNKNOWN);
        match (overload, target, args) {
            ("string_format", Some(target), _) => with_args((size(target).factor(STRING), None)),
            ("string_to_bytes", _, [arg]) => {
                let s = size(arg);
                with_args((s.factor(STRING), Some(Size { min: s.min, max: s.max.wrapping_mul(4) })))
            }
            ("bytes_to_string", _, [arg]) => {
                let s = size(arg);
                with_args((s.factor(STRING), Some(Size { min: s.min / 4, max: s.max })))
            }
            ("strings_quote", _, [arg]) => {
                let s = size(arg);
                let quoted = Size { min: s.min.wrapping_add(2), max: s.max.wrapping_mul(2).wrapping_add(2) };
                with_args((s.factor(STRING), Some(quoted)))
            }
            ("starts_with_string" | "ends_with_string", _, [arg]) => with_args((size(arg).factor(STRING), None)),
            ("in_list", _, [_, list]) => with_args((size(list).factor(1.0), None)),
            ("matches_string", Some(target), [pattern]) => {
                let text = size(target).add(Size::fixed(1)).factor(STRING);
                with_args((text.saturating_mul(size(pattern).factor(REGEX)), None))
            }
            ("contains_string", Some(target), [part]) => {
                with_args((size(target).factor(STRING).saturating_mul(size(part).factor(STRING)), None))
            }
            ("conditional", _, [condition, yes, no]) => {
                let entry = Entry::union(self.entry(yes.expr), self.entry(no.expr));
                if let Some(entry) = entry {
                    self.entries.insert(expr.id, entry);
                }
                let cost = condition.cost.saturating_add(yes.cost.max(no.cost));
                (cost, Some(size(yes).union(size(no))))
            }
            ("add_string" | "add_bytes" | "add_list", _, [a, b]) => {
                let result = size(a).add(size(b));
                if let Some(entry) = Entry::union(self.entry(a.expr), self.entry(b.expr)) {
                    self.entries.insert(expr.id, entry);
                }
                let cost = if overload == "add_list" { 1 } else { result.factor(STRING) };
                with_args((cost, Some(result)))
            }
            (_, _, [a, b]) if is_comparison(overload) => {
                with_args((factored(size(a).max.min(size(b).max), STRING), None))
            }
            _ => with_args((1, None)),
        }
    }

    /// The functions on lists that come with an estimate of their own.
    fn list_function(
        &self,
        overload: &str,
        target: Option<&Arg<'_, 'a>>,
        args: &[Arg<'_, 'a>],
    ) -> Option<(u64, Option<Size>)> {
        let number = |arg: &Arg<'_, '_>, otherwise: u64| match &arg.expr.node {
            Node::Literal(Literal::Int(n)) => u64::try_from(*n).unwrap_or(0),
            _ => otherwise,
        };
        let made = |factor: f64, size: Size| Some((size.factor(factor).saturating_add(11), Some(size)));
        match (overload, target, args) {
            ("list_slice", Some(list), [start, end]) => {
                let end = number(end, self.given(list).max);
                made(1.0, Size::fixed(end.wrapping_sub(number(start, 0))))
            }
            ("lists_range", None, [count]) => made(1.0, Size::fixed(number(count, u64::MAX))),
            ("list_reverse", Some(list), []) => made(1.0, self.given(list)),
            ("list_flatten", Some(list), []) => made(1.0, self.given(list)),
            ("list_flatten_int", Some(list), [depth]) => made(number(depth, u64::MAX) as f64, self.given(list)),
            ("list_distinct", Some(list), []) => {
                let size = self.given(list);
                made(2.0, size.times(size))
            }
            (_, Some(list), keys) if overload.starts_with("list_") && overload.contains("_sort") => {
                let by = if overload.ends_with("_sort") { list } else { keys.first()? };
                let texts = overload.starts_with("list_string_") || overload.starts_with("list_bytes_");
                let size = self.given(by);
                made(if texts { 2.1 } else { 2.0 }, size.times(size))
            }
            ("list_sets_contains_list" | "list_sets_intersects_list", _, [a, b]) => {
                Some((self.given(a).times(self.given(b)).factor(1.0).saturating_add(1), None))
            }
            ("list_sets_equivalent_list", _, [a, b]) => {
                Some((self.given(a).times(self.given(b)).factor(2.0).saturating_add(1), None))
            }
            _ => None,
        }
    }

    /// The functions of the Kubernetes libraries, and those it estimates in CEL's stead.
    fn library(
        &self,
        name: &str,
        overload: &str,
        target: Option<&Arg<'_, 'a>>,
        args: &[Arg<'_, 'a>],
    ) -> Option<(u64, Option<Size>)> {
        let first = args.first().map(|arg| self.given(arg));
        match name {
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
                let target = target?;
                let size = self.given(target);
                let Some((item, item_size)) = self.item_size(target) else { return Some((size.factor(STRING), None)) };
                let each = match item {
                    Type::Str | Type::Bytes => item_size.factor(STRING).saturating_add(1),
                    _ => 1,
                };
                Some((size.max.saturating_mul(each), None))
            }
            "url" => first.map(|size| (size.factor(STRING), Some(size))),
            "lowerAscii" | "upperAscii" | "substring" | "trim" => {
                let size = self.given(target?);
                Some((size.factor(STRING), Some(size)))
            }
            "replace" => {
                let size = self.given(target?);
                let (old, new) = (self.given(args.first()?), self.given(args.get(1)?));
                Some((size.factor(2.0 * STRING), Some(replaced(size, old, new))))
            }
            "split" => {
                let size = self.given(target?);
                let max = match args.get(1).map(|arg| &arg.expr.node) {
                    Some(Node::Literal(Literal::Int(n))) => *n as u64,
                    _ => size.max,
                };
                Some((size.factor(2.0 * STRING), Some(Size { min: 0, max })))
            }
            "join" => {
                let target = target?;
                let count = self.given(target);
                let mut size = self.item_size(target).map_or(Size::fixed(0), |(_, item)| count.times(item));
                if let Some(separator) = first {
                    let between = Size { min: count.min.saturating_sub(1), max: count.max.saturating_sub(1) };
                    size = size.add(separator.times(between));
                }
                Some((size.factor(STRING), Some(size)))
            }
            "find" | "findAll" => {
                let size = self.given(target?);
                let text = size.add(Size::fixed(1)).factor(STRING);
                let cost = text.saturating_mul(first?.factor(REGEX));
                Some((cost, Some(Size { min: 0, max: size.max })))
            }
            "ip" if overload == "cidr_ip" => Some((1, None)),
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
                first.map(|size| (size.factor(STRING), None))
            }
            "ip.isCanonical" => first.map(|size| (size.factor(2.0 * STRING), None)),
            "containsIP" | "containsCIDR" => {
                // Two addresses of at most 16 bytes.
                let mut cost = Size::fixed(32).factor(STRING);
                if name == "containsCIDR" {
                    cost += Size::fixed(16).factor(STRING) + 1;
                }
                if overload.ends_with("_string") {
                    cost = cost.saturating_add(first?.factor(STRING));
                }
                Some((cost, None))
            }
            "validate" => {
                let longest = 128.0;
                first.map(|size| (factored(size.factor(STRING), longest * REGEX), None))
            }
            "format.named"
            | "masked"
            | "prefixLength"
            | "family"
            | "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast"
            | "sign"
            | "asInteger"
            | "isInteger"
            | "asApproximateFloat"
            | "isGreaterThan"
            | "isLessThan"
            | "compareTo"
            | "add"
            | "sub"
            | "major"
            | "minor"
            | "patch"
            | "getScheme"
            | "getHostname"
            | "getHost"
            | "getPort"
            | "getEscapedPath"
            | "getQuery" => Some((1, None)),
            "_==_" => {
                let [a, b] = args else { return None };
                let (Type::Named(a_name), Type::Named(b_name)) = (&a.t, &b.t) else { return None };
                match (a_name == b_name, *a_name) {
                    (false, _) => None,
                    (true, "kubernetes.NamedFormat") => Some((factored(64, STRING), None)),
                    (true, "kubernetes.URL") => {
                        // Upstream looks at the right side only.
                        let max = b.size.map_or(1, |size| size.max);
                        Some((factored(max, STRING), None))
                    }
                    _ => Some((1, None)),
                }
            }
            _ => None,
        }
    }
}

fn is_comparison(overload: &str) -> bool {
    matches!(overload, "equals" | "not_equals")
        || (["less_", "greater_"].iter().any(|start| overload.starts_with(start))
            && (overload.ends_with("_string") || overload.ends_with("_bytes")))
}

/// How long a text is after parts of it were replaced.
fn replaced(size: Size, old: Size, new: Size) -> Size {
    let (mut count, mut kept) = (Size::fixed(0), Size::fixed(0));
    if old.min == 0 {
        count.max = size.max.saturating_add(1);
        kept.max = size.max;
    } else if new.max <= old.min {
        kept.max = size.max;
    } else {
        count.max = (size.max as f64 / old.min as f64).ceil() as u64;
    }
    if old.max == 0 {
        count.min = size.min.saturating_add(1);
        kept.min = size.min;
    } else if old.max <= new.min {
        kept.min = size.min;
    } else {
        count.min = (size.min as f64 / old.max as f64).ceil() as u64;
    }
    count.times(new).add(kept)
}

fn is_scalar(t: &Type<'_>) -> bool {
    match t {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        Type::Optional(inner) => is_scalar(inner),
        _ => false,
    }
}

/// A place in the declarations of a schema.
enum Place<'s> {
    Schema(&'s Schema, Part),
    /// A text without a bound that is declared, such as the key of a map.
    Text,
    /// A name in metadata or the type of an object.
    Name,
}

impl<'s> Place<'s> {
    fn step(&self, step: &str) -> Option<Place<'s>> {
        let Place::Schema(schema, part) = self else { return None };
        let of = |schema: &'s Schema| Place::Schema(schema, super::value::part_of(schema));
        match (step, &schema.shape) {
            ("@items" | "@values", Shape::List { items, .. }) => Some(of(items)),
            ("@items" | "@values", Shape::Map { values, .. }) => Some(of(values)),
            ("@keys", Shape::Map { .. }) => Some(Place::Text),
            (name, Shape::Struct(fields)) => {
                let object = Object { name: "".into(), schema, part: *part };
                object.field(name)?;
                if *part == Part::Meta || (*part == Part::Resource && matches!(name, "apiVersion" | "kind")) {
                    return Some(Place::Name);
                }
                let raw = unescape(name)?;
                match (part, raw.as_str()) {
                    (Part::Resource, "metadata") => {
                        Some(Place::Schema(fields.field("metadata").map_or(*schema, |f| &f.schema), Part::Meta))
                    }
                    _ => fields.field(&raw).map(|field| of(&field.schema)),
                }
            }
            _ => None,
        }
    }

    fn max_elements(&self) -> u64 {
        match self {
            Place::Schema(schema, _) => max_elements(schema),
            Place::Text => 0,
            Place::Name => LARGEST - 2,
        }
    }
}

fn max_elements(schema: &Schema) -> u64 {
    let rules = schema.rules.as_deref();
    let bound = |limit: Option<i64>| limit.map(|n| u64::try_from(n).unwrap_or(0));
    let length = rules.and_then(|rules| bound(rules.max_length));
    let whole = LARGEST - 2;
    match &schema.shape {
        Shape::IntOrString => length.map_or(whole, |n| n.saturating_mul(4)),
        Shape::Str => match format(schema) {
            "byte" => length.unwrap_or(whole),
            "duration" | "date-time" => 32,
            "date" => 12,
            _ => match length {
                Some(n) => n.saturating_mul(4),
                None if !schema.allowed.is_empty() => schema
                    .allowed
                    .iter()
                    .filter_map(|choice| choice.as_str())
                    .map(|s| s.len() as u64)
                    .max()
                    .unwrap_or(0),
                None => whole,
            },
        },
        Shape::List { items, .. } => {
            let declared = rules.and_then(|rules| bound(rules.max_items));
            declared.unwrap_or_else(|| whole / (min_size(items, super::value::part_of(items)) + 1))
        }
        Shape::Map { values, .. } => {
            let declared = rules.and_then(|rules| bound(rules.max_properties));
            declared.unwrap_or_else(|| whole / (min_size(values, super::value::part_of(values)) + 6))
        }
        _ => 0,
    }
}

fn format(schema: &Schema) -> &str {
    schema.rules.as_deref().and_then(|rules| rules.format.as_ref()).map_or("", |format| format.name.as_str())
}

/// The least a value takes up in a request.
fn min_size(schema: &Schema, part: Part) -> u64 {
    match &schema.shape {
        Shape::IntOrString | Shape::Int32 | Shape::Int64 | Shape::Number => 1,
        Shape::Bool => 4,
        Shape::Str => match format(schema) {
            "duration" => 3,
            "date" => 12,
            "date-time" => 21,
            _ => 2,
        },
        Shape::Struct(fields) => {
            let object = Object { name: "".into(), schema, part };
            let mut size = 2;
            for (name, field) in &fields.fields {
                let shown = super::types::escape(name).is_some_and(|escaped| object.field(&escaped).is_some())
                    || Type::of(&field.schema, false, "").is_some();
                if field.required && field.schema.default.is_none() && shown {
                    size += name.len() as u64 + min_size(&field.schema, super::value::part_of(&field.schema)) + 4;
                }
            }
            size
        }
        _ => 2,
    }
}
