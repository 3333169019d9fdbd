//! Objects made up from a structural schema.

use std::collections::BTreeSet;

use tidegate::{kubernetes::value::Value, value};

/// An object that fits the schema, decided by the seed.
pub fn object(schema: &Value, seed: u64) -> Value {
    let mut dice = Dice(seed);
    // How likely an optional field is: from sparse objects, which go deep, to full ones, which stay shallow.
    let percent = 5 + dice.below(60);
    make(schema, &mut dice, percent, 0)
}

/// Replaces some values by others, of any type.
pub fn spoil(object: &mut Value, seed: u64) {
    fn spoil(value: &mut Value, dice: &mut Dice) {
        if dice.chance(4) {
            *value = if dice.chance(20) { Value::Null } else { anything(dice, 0) };
        } else if let Some(items) = value.as_list_mut() {
            items.iter_mut().for_each(|item| spoil(item, dice));
        } else if let Some(map) = value.as_map_mut() {
            let keys: Vec<_> = map.keys().cloned().collect();
            keys.iter().for_each(|key| spoil(map.entry(key), dice));
        }
    }
    spoil(object, &mut Dice(seed));
}

/// SplitMix64: small, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

fn make(schema: &Value, dice: &mut Dice, percent: u64, depth: u64) -> Value {
    if schema.get("x-kubernetes-int-or-string").is_some() {
        return if dice.chance(50) { (dice.next() as i32).into() } else { text(dice) };
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_list) {
        return allowed[dice.below(allowed.len() as u64) as usize].clone();
    }
    match schema.str_at(&["type"]) {
        Some("boolean") => dice.chance(50).into(),
        Some("integer") if schema.str_at(&["format"]) == Some("int32") => (dice.next() as i32).into(),
        Some("integer") => ((dice.next() >> 12) as i64).into(),
        Some("number") => (dice.below(1000) as f64 / 8.0).into(),
        Some("string") if schema.str_at(&["format"]) == Some("date-time") => {
            let second = dice.below(4_000_000_000) as i64;
            jiff::Timestamp::from_second(second).unwrap().strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into()
        }
        Some("string") => text(dice),
        Some("array") => {
            let count = if depth > 12 { 0 } else { dice.below(3) };
            Value::list((0..count).map(|_| make(schema.get("items").unwrap(), dice, percent, depth + 1)))
        }
        Some("object") => fields(schema, dice, percent, depth),
        _ => anything(dice, 0),
    }
}

fn fields(schema: &Value, dice: &mut Dice, percent: u64, depth: u64) -> Value {
    if let Some(values) = schema.get("additionalProperties") {
        let count = dice.below(3);
        let entry = |dice: &mut Dice| (format!("k{}.x/y", dice.below(9)), make(values, dice, percent, depth + 1));
        return Value::Map((0..count).map(|_| entry(dice)).collect());
    }
    if schema.get("x-kubernetes-preserve-unknown-fields").is_some() {
        return anything(dice, 0).get("map").cloned().unwrap_or_else(Value::object);
    }
    let required = schema.list_at(&["required"]);
    let mut object = Value::object();
    for (name, property) in schema.get("properties").and_then(Value::as_map).into_iter().flat_map(|map| map.iter()) {
        // Along one path an object is as deep as its type; beside it, it thins out.
        if required.contains(&name.into()) || dice.chance(percent.saturating_sub(depth * 2).max(4)) || depth == 0 {
            object.set_at(&[name], make(property, dice, percent, depth + 1));
        }
    }
    object
}

fn anything(dice: &mut Dice, depth: u32) -> Value {
    match dice.below(if depth > 2 { 4 } else { 7 }) {
        0 => text(dice),
        1 => ((dice.next() as i32) / 3).into(),
        2 => dice.chance(50).into(),
        3 => (dice.below(9) as f64 + 0.5).into(),
        4 => Value::list((0..dice.below(3)).map(|_| anything(dice, depth + 1)).collect::<Vec<_>>()),
        _ => {
            let mut map = value!({"map": {}});
            for index in 0..dice.below(4) {
                map.set_at(&["map", &format!("x{index}")], anything(dice, depth + 1));
            }
            map
        }
    }
}

fn text(dice: &mut Dice) -> Value {
    const TEXTS: [&str; 8] = ["", "web", "25%", "1h30m", "ünïcode ✓", "{{args.x}}", "a\nb", "<&>"];
    TEXTS[dice.below(8) as usize].into()
}

/// The paths of all fields that a schema names, without those of free-form parts.
pub fn paths(schema: &Value, at: &str, all: &mut BTreeSet<String>) {
    // Pod templates are held as they are: one field of them is as good as another.
    if at.ends_with(".template.spec") || at.ends_with(".job.spec") {
        return;
    }
    for (name, property) in schema.get("properties").and_then(Value::as_map).into_iter().flat_map(|map| map.iter()) {
        let path = format!("{at}.{name}");
        paths(property, &path, all);
        all.insert(path);
    }
    if let Some(items) = schema.get("items") {
        paths(items, &format!("{at}[]"), all);
    }
}

/// Calls `see` with the path of every field of an object.
pub fn visit(value: &Value, at: &str, see: &mut dyn FnMut(&str)) {
    match value {
        Value::Map(fields) => {
            for (name, value) in fields.iter() {
                let path = format!("{at}.{name}");
                see(&path);
                visit(value, &path, see);
            }
        }
        Value::List(items) => items.iter().for_each(|item| visit(item, &format!("{at}[]"), see)),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => {}
    }
}
