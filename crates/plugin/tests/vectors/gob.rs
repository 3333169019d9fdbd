//! Plain Go values: numbers at their limits, arrays, maps, interfaces, types that write themselves.

use std::sync::Arc;

use tidegate_plugin::gob::{
    Decoder, Encoder, Limits, Schema, Value,
    schema::{Field, Form, Of, SelfMade, Shape, Type},
};

use super::{bytes, lines, text};

/// The types of the recording, as far as we send such types.
fn schema() -> Arc<Schema> {
    let of = |name: &str, go: &str, shape| Type { name: name.into(), go: go.into(), shape, form: Form::Plain };
    let field = |name: &str, of| Field { name: name.into(), of, pointer: false, json: None, inline: false };
    let inner = Shape::Struct(vec![field("A", Of::Int), field("B", Of::Text)]);
    Arc::new(Schema {
        types: vec![
            of("bInner", "main.bInner", inner),
            of("", "[]string", Shape::Slice(Of::Text)),
            of("", "[]main.bInner", Shape::Slice(Of::Type(0))),
            of("", "[3]int", Shape::Array(Of::Int, 3)),
            of("", "map[string]int", Shape::Map(Of::Text, Of::Int)),
            of("", "struct {}", Shape::Struct(vec![])),
            of(
                "bRec",
                "main.bRec",
                Shape::Struct(vec![field("V", Of::Int), field("Next", Of::Type(6)), field("Kids", Of::Type(7))]),
            ),
            of("", "[]main.bRec", Shape::Slice(Of::Type(6))),
            of("bBin", "main.bBin", Shape::Opaque { by: SelfMade::Binary, announces: vec![] }),
            of("", "[]int", Shape::Slice(Of::Int)),
        ],
    })
}

/// The ids of the recording go on from one line to the next, in one process: ours do as well, over these types in turn.
/// Its program had met two of them in a registered type before.
#[test]
fn values_are_written_as_go_writes_them() {
    let lines = lines("gob-basic.jsonl");
    let mut encoder = Encoder::new(schema());
    encoder.put_struct(0, &Value::Struct(vec![])).expect("a struct");
    encoder.put_single(Of::Type(9), &Value::List(vec![])).expect("a value");
    let mut seen = 0;
    for line in &lines {
        let place = match text(line, "name") {
            "two of one type" => 0,
            "slice of string" => 1,
            "slice of struct" => 2,
            "array" => 3,
            "map" => 4,
            "empty struct" => 5,
            "recursive" => 6,
            _ => continue,
        };
        seen += 1;
        let wanted = bytes(text(line, "hex"));
        // Each line is a stream of its own: what was announced on another is announced again.
        encoder = encoder.next_stream();
        let mut decoder = Decoder::new(Limits::default());
        decoder.push(&wanted);
        let mut out = Vec::new();
        while let Some(value) = decoder.next_value().expect("a value") {
            out.extend(match place {
                0 | 5 | 6 => encoder.put_struct(place, &value).expect("a struct"),
                _ => encoder.put_single(Of::Type(place), &value).expect("a value"),
            });
        }
        assert_eq!(super::hex(&out), text(line, "hex"), "{}", text(line, "name"));
    }
    assert_eq!(seen, 7);
}

#[test]
fn basic_values_are_read_and_written_as_go_does() {
    let mut seen = 0;
    for line in lines("gob-basic.jsonl") {
        let of = match text(&line, "go_type") {
            "uint64" => Of::Uint,
            "int64" => Of::Int,
            "float64" => Of::Float,
            "bool" => Of::Bool,
            "string" => Of::Text,
            "[]uint8" => Of::Bytes,
            _ => continue,
        };
        seen += 1;
        let values = decode(&bytes(text(&line, "hex")));
        let said = line["values"][0].as_str().expect("a value");
        let shown = match &values[..] {
            [Value::Uint(number)] => number.to_string(),
            [Value::Int(number)] => number.to_string(),
            [Value::Float(number)] if number.is_infinite() => "+Inf".into(),
            [Value::Float(number)] if number.abs() > 1e300 => format!("{number:e}").replace('e', "e+"),
            [Value::Float(number)] => number.to_string(),
            [Value::Bool(is)] => is.to_string(),
            [Value::Text(text)] => text.clone(),
            [Value::Bytes(bytes)] => format!("{bytes:?}").replace(',', ""),
            other => panic!("{other:?}"),
        };
        assert_eq!(shown, said);
        let again = Encoder::new(schema()).put_single(of, &values[0]).expect("a value");
        assert_eq!(super::hex(&again), text(&line, "hex"), "{}", text(&line, "name"));
    }
    assert_eq!(seen, 34);
}

fn decode(bytes: &[u8]) -> Vec<Value> {
    let mut decoder = Decoder::new(Limits::default());
    decoder.push(bytes);
    let values = std::iter::from_fn(|| decoder.next_value().expect("a value")).collect();
    assert_eq!(decoder.pending(), 0);
    values
}

#[track_caller]
fn check(name: &str, wanted: &str) {
    let line = lines("gob-basic.jsonl").into_iter().find(|line| text(line, "name") == name).expect("the line");
    let bytes = bytes(text(&line, "hex"));
    let shown: Vec<_> = decode(&bytes).iter().map(show).collect();
    assert_eq!(shown.join(" "), wanted);
    // The same, byte by byte: nothing depends on how it arrives.
    let mut decoder = Decoder::new(Limits::default());
    let mut values = Vec::new();
    for byte in bytes {
        decoder.push(&[byte]);
        while let Some(value) = decoder.next_value().expect("a value") {
            values.push(show(&value));
        }
    }
    assert_eq!(values.join(" "), wanted);
}

fn show(value: &Value) -> String {
    let list = |values: &mut dyn Iterator<Item = String>| values.collect::<Vec<_>>().join(" ");
    match value {
        Value::Bool(is) => is.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => format!("u{number}"),
        Value::Float(number) => format!("f{number}"),
        Value::Complex(real, imaginary) => format!("({real}{imaginary:+}i)"),
        Value::Bytes(bytes) => format!("b{bytes:?}"),
        Value::Text(text) => format!("{text:?}"),
        Value::Struct(fields) => {
            format!("{{{}}}", list(&mut fields.iter().map(|(name, value)| format!("{name}:{}", show(value)))))
        }
        Value::List(values) => format!("[{}]", list(&mut values.iter().map(show))),
        Value::Map(pairs) => {
            format!("map[{}]", list(&mut pairs.iter().map(|(key, value)| format!("{}:{}", show(key), show(value)))))
        }
        Value::Opaque(bytes) => format!("o{}", super::hex(bytes)),
        Value::Interface(None) => "nil".into(),
        Value::Interface(Some(named)) => format!("<{} {}>", named.name, show(&named.value)),
    }
}

#[test]
fn composite_values_are_read_by_the_types_on_the_stream() {
    check("two of one type", r#"{A:1 B:"a"} {A:2} {}"#);
    check("slice of string", r#"["" "a"]"#);
    check("array", "[0 1 2]");
    check("map", r#"map["k":0]"#);
    check("recursive", "{V:1 Next:{V:2} Kids:[{V:3} {}]}");
    check("mixed zero", "{Arr:[u0 u0 u0] Arr2:[0 0] Inner:{}}");
    check(
        "mixed",
        concat!(
            r#"{Bool:true Int:-5 I8:-128 U:u300 F32:f1.5 F64:f-2.25 C:(1-1i) S:"s" Bytes:b[98] Ints:[1 0] Strs:["" "z"] "#,
            r#"Arr:[u1 u0 u2] Arr2:[0 7] Map:map["":0] Inner:{B:"i"} PInner:{} PInt:1 Iface:<inner {A:9 B:"if"}> Last:"l"}"#
        ),
    );
    check("mixed: interface int", r#"{Arr:[u0 u0 u0] Arr2:[0 0] Inner:{} Iface:<int 7> Last:"after"}"#);
    check("interface at top level, twice", r#"<inner {A:1 B:"top"}> <inner {A:1 B:"top"}>"#);
    check("interface nil at top level", "nil");
    check("k8s types, pointer to the zero time", "{P:o01000000000000000000000000ffff D:{} Q:{} I:{} E:{}}");
}
