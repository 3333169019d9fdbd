//! Whatever bytes arrive, in whatever pieces: no decoder panics, none takes more than it may, and what one writes another reads.

use std::sync::Arc;

use proptest::{collection::vec, prelude::*};
use serde_json::{Value as Json, json};
use tidegate_plugin::{
    answer,
    call::{metric, router, step},
    gob::{Decoder, Encoder, Limits, Value, schema::Of},
    handshake,
    link::Link,
    object::{self, Part, Rollout, Template, table},
    output::Lines,
    yamux::{Session, WINDOW},
};

/// Small, so that arbitrary input reaches them.
const LIMITS: Limits = Limits { message: 4096, definitions: 2048, memory: 16 * 1024, depth: 8 };

/// Reads as far as it goes; says what a value took at most, roughly.
fn drain(decoder: &mut Decoder) -> Result<usize, ()> {
    let mut most = 0;
    while let Some(value) = decoder.next_value().map_err(|_| ())? {
        most = most.max(size(&value));
        // Whatever it is, it is read or refused.
        let _ = (answer::rpc_error(&value), metric::read_measurement(&value), metric::read_metadata(&value));
        let _ = (router::read_verified(&value), step::read_result(&value), answer::text(&value, "Type"));
    }
    Ok(most)
}

fn size(value: &Value) -> usize {
    let own = size_of::<Value>();
    own + match value {
        Value::Bytes(bytes) | Value::Opaque(bytes) => bytes.len(),
        Value::Text(text) => text.len(),
        Value::Struct(fields) => fields.iter().map(|(_, value)| 16 + size(value)).sum(),
        Value::List(values) => values.iter().map(size).sum(),
        Value::Map(pairs) => pairs.iter().map(|(key, value)| size(key) + size(value)).sum(),
        Value::Interface(Some(named)) => named.name.len() + size(&named.value),
        Value::Interface(None) | Value::Bool(_) | Value::Int(_) | Value::Uint(_) => 0,
        Value::Float(_) | Value::Complex(..) => 0,
    }
}

/// Bytes that look like a stream: messages with a length, many of them definitions.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let small = prop_oneof![4 => 0_u8..24, 1 => any::<u8>(), 1 => Just(0xff_u8), 1 => Just(0x7f_u8)];
    let head = prop_oneof![
        Just(vec![0x7f]),
        Just(vec![0xff, 0x81]),
        Just(vec![0xff, 0x80]),
        Just(vec![0xff, 0x82]),
        Just(vec![0x10, 0]),
        Just(vec![])
    ];
    let message = (head, vec(small, 0..60)).prop_map(|(mut head, body)| {
        head.extend(body);
        head.insert(0, head.len() as u8);
        head
    });
    vec(message, 0..12).prop_map(|messages| messages.concat())
}

/// A recorded answer with bytes changed.
fn changed() -> impl Strategy<Value = Vec<u8>> {
    let answers = include_str!("../vectors/metric.jsonl").lines().filter_map(|line| {
        let line: Json = serde_json::from_str(line).ok()?;
        let hex = line["response_hex"].as_str()?.to_owned();
        (!hex.is_empty()).then(|| {
            (0..hex.len())
                .step_by(2)
                .filter_map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok())
                .collect::<Vec<u8>>()
        })
    });
    let answers: Vec<_> = answers.collect();
    (proptest::sample::select(answers), vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)).prop_map(
        |(mut answer, changes)| {
            for (at, byte) in changes {
                let at = at.index(answer.len());
                answer[at] = byte;
            }
            answer
        },
    )
}

fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        // Short enough for a reader that does not round exactly.
        (any::<i32>(), 0..30_i32).prop_map(|(number, twos)| json!(f64::from(number) / f64::from(1 << (twos / 3)))),
        "[a-zé\u{0}\"<]{0,6}".prop_map(Json::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        let key = prop_oneof![
            4 => proptest::sample::select(vec![
                "metadata", "spec", "status", "strategy", "canary", "steps", "template", "containers", "name", "labels",
                "annotations", "replicas", "setWeight", "pause", "plugin", "config", "trafficRouting", "plugins",
                "creationTimestamp", "resources", "limits", "cpu", "maxSurge", "managedFields", "fieldsV1",
            ]).prop_map(str::to_owned),
            1 => "[a-z]{0,4}",
        ];
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Json::from),
            proptest::collection::btree_map(key, inner, 0..6).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_gob_is_read_or_refused_in_bounded_memory(input in prop_oneof![stream(), changed(), vec(any::<u8>(), 0..300)], piece in 1_usize..50) {
        let mut whole = Decoder::new(LIMITS);
        whole.push(&input);
        let at_once = drain(&mut whole);
        prop_assert!(at_once.is_err() || at_once.unwrap_or_default() <= LIMITS.memory);
        let mut pieces = Decoder::new(LIMITS);
        let mut outcome = Ok(0);
        for bytes in input.chunks(piece) {
            pieces.push(bytes);
            outcome = drain(&mut pieces);
            prop_assert!(pieces.pending() <= LIMITS.message + LIMITS.definitions + 16 + piece || outcome.is_err());
            if outcome.is_err() {
                break;
            }
        }
        prop_assert_eq!(outcome.is_err(), at_once.is_err());
    }

    #[test]
    fn any_yamux_is_read_or_refused_in_bounded_memory(frames in vec((0_u8..5, 0_u8..16, 0_u32..10, prop_oneof![0_u32..40, any::<u32>()], vec(any::<u8>(), 0..40)), 0..40)) {
        let mut session = Session::new();
        let ids = [session.open(), session.open(), session.open()];
        for (kind, flags, id, length, mut data) in frames {
            let mut frame = vec![0, kind, 0, flags];
            frame.extend(id.to_be_bytes());
            frame.extend(length.to_be_bytes());
            if kind == 0 && (length as usize) < data.len() {
                data.truncate(length as usize);
            }
            frame.extend(data);
            if session.receive(&frame).is_err() {
                break;
            }
            prop_assert!(ids.iter().all(|id| session.waiting(*id) <= WINDOW as usize));
            session.take(1, 7);
            prop_assert!(session.transmit().len() <= 64 * 1024);
        }
    }

    #[test]
    fn any_connection_is_served_or_refused(input in vec(vec(any::<u8>(), 0..100), 0..20), frames in vec((proptest::sample::select(vec![1_u32, 3, 5, 7]), stream()), 0..8)) {
        let mut link = Link::new("RpcStepPlugin", LIMITS).expect("a link");
        for (id, data) in frames {
            let mut frame = vec![0, 0, 0, 0];
            frame.extend(id.to_be_bytes());
            frame.extend((data.len() as u32).to_be_bytes());
            frame.extend(data);
            if link.receive(&frame).is_err() {
                return Ok(());
            }
            link.transmit();
        }
        for bytes in input {
            if link.receive(&bytes).is_err() {
                break;
            }
        }
    }

    #[test]
    fn any_line_is_a_handshake_or_refused_in_printable_text(line in prop_oneof![".{0,80}", "[0-2]\\|[0-2]\\|(unix|tcp|\\PC{0,4})\\|[/a-z0-9:.]{0,20}(\\|.{0,10}){0,3}"]) {
        if let Err(error) = handshake::parse(&line) {
            prop_assert!(!error.to_string().chars().any(char::is_control), "{error}");
        }
    }

    #[test]
    fn any_output_becomes_bounded_printable_lines(pieces in vec(vec(any::<u8>(), 0..200), 0..20)) {
        let mut lines = Lines::default();
        let mut out: Vec<_> = pieces.iter().flat_map(|bytes| lines.push(bytes, 0.0)).collect();
        out.extend(lines.end(0.0));
        for (_, text) in out {
            prop_assert!(!text.chars().any(char::is_control), "{text:?}");
        }
    }

    #[test]
    fn any_object_is_sent_or_refused_and_arrives_as_it_was_sent(spec in json(), metadata in json()) {
        let object = json!({"metadata": metadata, "spec": spec});
        let rollout = Rollout { object: &object, template: Template::Referenced };
        let name = "RemoveManagedRoutesArgs";
        let Ok(value) = table().argument(name, &[("Rollout", Part::Rollout(&rollout))]) else { return Ok(()) };
        let mut encoder = Encoder::new(table().schema());
        let bytes = encoder.put_interface(Some((name, table().root(name), &value))).expect("a value of its type");
        let mut decoder = Decoder::new(Limits::default());
        decoder.push(&bytes);
        let Ok(Some(Value::Interface(Some(named)))) = decoder.next_value() else { panic!("no interface") };
        prop_assert_eq!(sent(named.value), sent(value));
    }

    #[test]
    fn raw_json_stays_the_same_json(json in json()) {
        let text = object::compact(&json);
        let again: Json = serde_json::from_str(&text).expect("JSON");
        prop_assert_eq!(object::compact(&again), text);
    }

    #[test]
    fn any_value_is_read_as_it_was_written(numbers in vec(any::<i64>(), 0..5), text in ".{0,20}", float in any::<f64>()) {
        let mut encoder = Encoder::new(table().schema());
        let mut bytes = encoder.put_single(Of::Text, &Value::Text(text.clone())).expect("a text");
        for number in &numbers {
            bytes.extend(encoder.put_single(Of::Int, &Value::Int(*number)).expect("a number"));
        }
        bytes.extend(encoder.put_single(Of::Float, &Value::Float(float)).expect("a float"));
        let mut decoder = Decoder::new(Limits::default());
        decoder.push(&bytes);
        prop_assert_eq!(decoder.next_value(), Ok(Some(Value::Text(text))));
        for number in numbers {
            prop_assert_eq!(decoder.next_value(), Ok(Some(Value::Int(number))));
        }
        prop_assert_eq!(decoder.next_value(), Ok(Some(Value::Float(float))));
        prop_assert_eq!(decoder.next_value(), Ok(None));
    }
}

/// A value without the zeros that a struct does not send.
fn sent(value: Value) -> Value {
    let is_zero = |value: &Value| match value {
        Value::Bool(is) => !is,
        Value::Int(number) => *number == 0,
        Value::Text(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::List(list) => list.is_empty(),
        _ => false,
    };
    match value {
        Value::Struct(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| !is_zero(value));
            let mut fields: Vec<(Arc<str>, Value)> = fields.map(|(name, value)| (name, sent(value))).collect();
            fields.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Struct(fields)
        }
        Value::List(list) => Value::List(list.into_iter().map(sent).collect()),
        Value::Map(pairs) => Value::Map(pairs.into_iter().map(|(key, value)| (key, sent(value))).collect()),
        other => other,
    }
}
