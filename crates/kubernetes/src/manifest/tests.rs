use proptest::prelude::*;

use super::*;
use crate::{
    manifest::{place::Crumb, scalar::Tag},
    value,
};

fn file(text: &str) -> File {
    read("f.yaml", text.as_bytes())
}

/// What kubectl said about an input, recorded by `testdata/record.py`.
#[derive(serde::Deserialize)]
struct Recorded {
    yaml: Option<String>,
    base64: Option<String>,
    objects: Option<Vec<Value>>,
    refused: Option<String>,
}

/// Where we differ from kubectl on purpose: how the input looks, and why.
fn differs_on_purpose(bytes: &[u8], file: &File) -> Option<&'static str> {
    let kind = |kind| file.mistakes.iter().any(|mistake| mistake.kind == kind);
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    if kind(MistakeKind::Encoding) {
        return Some("kubectl reads UTF-16 and puts replacement characters into broken UTF-8; we ask for UTF-8");
    }
    if kind(MistakeKind::Repeated) {
        return Some("kubectl takes the last of two equal keys; we refuse");
    }
    if text.contains("a: \u{feff}") || text.contains("a: |#x") {
        return Some(
            "an invisible mark inside a value, and a comment stuck to a block's header: YAML 1.2 refuses both",
        );
    }
    if text.ends_with("%YAML 1.1\n") || text == "...\n" {
        return Some(
            "a directive after the last document, and the end of no document: kubectl's reader stumbles at random",
        );
    }
    if text.contains("1E400") {
        return Some("a number beyond all floats in JSON: text to us, as it is in YAML");
    }
    if text.starts_with("kind:") {
        return Some("kubectl annotate takes an object without apiVersion; no server does");
    }
    None
}

#[test]
fn files_are_read_as_kubectl_reads_them() {
    let (mut same, mut misses) = (0, Vec::new());
    for line in include_str!("testdata/kubectl.jsonl").lines() {
        let row: Recorded = serde_json::from_str(line).unwrap();
        let bytes = match (row.yaml, row.base64) {
            (Some(text), _) => text.into_bytes(),
            (None, Some(coded)) => base64::Engine::decode(&base64::engine::general_purpose::STANDARD, coded).unwrap(),
            (None, None) => panic!("{line}"),
        };
        let file = read("f", &bytes);
        let refused = file.mistakes.iter().any(|mistake| mistake.kind.is_fatal());
        let ours: Vec<&Value> = file.objects.iter().map(|object| &object.value).collect();
        let alike = match (&row.objects, &row.refused) {
            (Some(theirs), _) => {
                !refused && ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| same_type(a, b))
            }
            (None, _) => refused,
        };
        if alike {
            same += 1;
        } else if differs_on_purpose(&bytes, &file).is_none() {
            let text = String::from_utf8_lossy(&bytes);
            let theirs = row.objects.map(|o| format!("{o:?}")).or(row.refused).unwrap_or_default();
            misses.push(format!("{text:?}\n  kubectl {theirs}\n  ours    {ours:?} {:?}", file.mistakes));
        }
    }
    assert!(misses.is_empty(), "{same} alike, {} not:\n{}", misses.len(), misses.join("\n"));
    assert!(same > 335, "{same}");
}

/// Equal, and integers where the other has integers.
fn same_type(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Map(a), Value::Map(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|((k, v), (l, w))| k == l && same_type(v, w))
        }
        (Value::List(a), Value::List(b)) => a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same_type(a, b)),
        // The recording went through decimal digits.
        (Value::Float(a), Value::Float(b)) => (a - b).abs() <= b.abs() * 1e-15,
        (a, b) => a == b && a.type_name() == b.type_name(),
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    #[track_caller]
    fn check(text: &str, kind: MistakeKind, at: (usize, usize), what: &str) {
        let file = file(text);
        let mistake = file.mistakes.first().unwrap_or_else(|| panic!("no mistake in {text:?}"));
        let position = file.source.position(mistake.span.start);
        assert_eq!((mistake.kind, position.line, position.column), (kind, at.0, at.1), "{text:?}: {mistake:?}");
        assert!(mistake.what.contains(what), "{text:?}: {}", mistake.what);
        assert!(!mistake.remedy.is_empty(), "{text:?}");
    }
    let head = "apiVersion: v1\nkind: X\n";
    check(&format!("{head}a: 1\nb: 2\na: 3\n"), MistakeKind::Repeated, (5, 1), "a is given twice");
    check(&format!("{head}a:\n\tb: 1\n"), MistakeKind::Syntax, (4, 1), "tab");
    check(&format!("{head}a: [1, 2\n"), MistakeKind::Syntax, (3, 4), "never closed");
    check(&format!("{head}a: .inf\n"), MistakeKind::Scalar, (3, 4), ".inf");
    check(&format!("{head}on: 1\n"), MistakeKind::KeyReadOtherwise, (3, 1), "\"true\"");
    check(&format!("{head}a: *b\n"), MistakeKind::Syntax, (3, 4), "&b");
    check(&format!("{head}a: &b [*b]\n"), MistakeKind::Budget, (3, 8), "contains itself");
    check(&format!("{head}d: &d {{x: 1}}\na: {{x: 2, <<: *d}}\n"), MistakeKind::MergeReplaces, (4, 5), "<<");
    check(&format!("{head}...\nx: 1\n"), MistakeKind::Ignored, (3, 1), "ignores");
    check(&format!("{head}--- x\n"), MistakeKind::Syntax, (3, 1), "three dashes");
    check("a: 1\n", MistakeKind::Shape, (1, 1), "no kind");
    check("kind: X\n", MistakeKind::Shape, (1, 1), "no apiVersion");
    check("- a\n", MistakeKind::Shape, (1, 1), "an array");
    check("apiVersion: v1\nkind: List\nitems:\n- 5\n", MistakeKind::Shape, (4, 3), "an integer");
    check("a: \u{7}\n", MistakeKind::Syntax, (1, 4), "U+0007");
    check("# x\n%YAML 1.2\n---\n", MistakeKind::Syntax, (2, 1), "");
}

#[test]
fn both_places_of_a_repeated_key_are_named() {
    let file = file("apiVersion: v1\nkind: X\nd:\n  k: 1\n  j: 2\n  k: 3\n");
    let mistake = &file.mistakes[0];
    let (first, said) = *mistake.also.clone().unwrap();
    let lines = (file.source.position(mistake.span.start).line, file.source.position(first.start).line);
    assert_eq!((lines, said.as_str()), ((6, 4), "it is given here first"));
    assert_eq!(file.objects[0].value.at(&["d", "k"]), Some(&value!(3)));
}

#[test]
fn a_broken_document_leaves_the_others() {
    let file = file("apiVersion: v1\nkind: A\n---\na: [\n---\napiVersion: v1\nkind: B\na: b\n");
    let kinds: Vec<&str> = file.objects.iter().map(Object::kind).collect();
    assert_eq!((kinds, file.mistakes.len()), (vec!["A", "B"], 1));
    assert_eq!(file.objects[1].position([Step::Key("a")]), Position { line: 8, column: 4 });
}

#[test]
fn places_lead_through_lists_merges_and_aliases() {
    let text = "\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: A
  metadata: {name: a}
  base: &base
    x: 1
    ys:
    - z: {w: 5}
  other:
    <<: *base
    v: 2
  again: *base
- kind: B
  apiVersion: v1
";
    let file = file(text);
    #[track_caller]
    fn check(object: &Object, path: &[Step<'_>], line: usize, column: usize) {
        assert_eq!(object.position(path.iter().copied()), Position { line, column }, "{path:?}");
    }
    use Step::{Index, Key};
    let [a, b] = &file.objects[..] else { panic!("{:?}", file.mistakes) };
    check(a, &[Key("metadata"), Key("name")], 6, 20);
    check(a, &[Key("metadata")], 6, 13);
    check(a, &[Key("base")], 7, 3);
    check(a, &[Key("other"), Key("x")], 8, 8);
    check(a, &[Key("other"), Key("v")], 13, 8);
    check(a, &[Key("other"), Key("ys"), Index(0), Key("z"), Key("w")], 10, 14);
    check(a, &[Key("again")], 14, 10);
    check(a, &[Key("again"), Key("x")], 8, 8);
    check(a, &[Key("spec"), Key("replicas")], 4, 3);
    check(a, &[Key("base"), Key("ys"), Index(3)], 9, 5);
    check(b, &[Key("kind")], 15, 9);
}

#[test]
fn items_of_a_typed_list_take_its_kind_and_keep_their_places() {
    let file = file("apiVersion: v1\nkind: ThingList\nitems:\n- metadata: {name: t}\n  a: 5\n");
    let object = &file.objects[0];
    assert_eq!(object.value, value!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "t"}, "a": 5}));
    assert_eq!(object.position([Step::Key("a")]), Position { line: 5, column: 6 });
    assert_eq!(object.position([Step::Key("metadata"), Step::Key("name")]), Position { line: 4, column: 20 });
}

#[test]
fn bombs_are_refused_quickly() {
    let mut laughs = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
    for i in 1..20 {
        let one = format!("*a{},", i - 1);
        laughs += &format!("a{i}: &a{i} [{}]\n", one.repeat(9));
    }
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), "*a,".repeat(20_000));
    let deep = "[".repeat(100_000);
    let blocks: String = (0..2_000).map(|i| format!("{}a:\n", " ".repeat(i))).collect();
    let mut chain = String::from("a0: &a0 [1]\n");
    for i in 1..50_000 {
        chain += &format!("a{i}: &a{i} [*a{}]\n", i - 1);
    }
    for text in [laughs, long, deep, blocks, chain] {
        let file = file(&text);
        assert!(file.objects.is_empty() && file.mistakes.len() == 1, "{:?}", &text[..40]);
        assert!(file.mistakes[0].kind.is_fatal());
    }
}

/// Documents as people write them, nested a little, in both notations.
fn document() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        "[a-z]{1,6}",
        "[0-9]{1,4}",
        Just("yes".to_owned()),
        Just("~".to_owned()),
        Just("'q: x'".to_owned()),
        Just("\"d\\n\"".to_owned()),
        Just("[1, {a: b}]".to_owned()),
        Just("{x: 1, 'y': [z]}".to_owned()),
        Just("é日".to_owned()),
    ];
    let block = scalar.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(("[a-f]{1,3}", inner.clone()), 1..4).prop_map(|fields| {
                let mut text = String::new();
                for (i, (key, value)) in fields.into_iter().enumerate() {
                    text += &format!("\n{key}{i}x:{}", below(&value));
                }
                text
            }),
            prop::collection::vec(inner, 1..4)
                .prop_map(|items| { items.into_iter().map(|item| format!("\n-{}", below(&item))).collect::<String>() }),
        ]
    });
    block.prop_map(|body| format!("apiVersion: v1\nkind: X\nbody:{}\n", below(&body)))
}

fn below(value: &str) -> String {
    if value.starts_with('\n') { value.replace('\n', "\n  ") } else { format!(" {value}") }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read("x", &bytes);
    }

    #[test]
    fn no_text_makes_it_panic(text in "[-:\\[\\]{}&*!|>'\"%#?,@` \ta-c0-9.\n\r<é\u{feff}~_]{0,120}") {
        let file = file(&text);
        for mistake in &file.mistakes {
            let note = snippet::Note {
                weight: snippet::Weight::Error, code: "c", what: &mistake.what, at: (&file.source, mistake.span),
                also: mistake.also.iter().map(|also| (&*file.source, also.0, also.1.as_str())).collect(), remedy: &mistake.remedy,
            };
            prop_assert!(snippet::render(&note, false).contains("-->"));
        }
        for object in &file.objects {
            object.walk(|path, _, _| { object.position(path.iter().map(Crumb::step)); });
        }
    }

    #[test]
    fn every_place_points_at_its_text(text in document()) {
        let file = file(&text);
        prop_assert!(file.mistakes.is_empty(), "{text}\n{:?}", file.mistakes);
        let object = &file.objects[0];
        let mut wrong = Vec::new();
        object.walk(|path, value, place| {
            let shown = object.source.slice(place.value);
            let right = match value {
                Value::Map(_) => shown.starts_with(['{']) || shown.contains(':'),
                Value::List(_) => shown.starts_with(['[', '-']),
                Value::Str(text) if shown.starts_with(['\'', '"']) => shown.len() > text.len(),
                scalar => scalar::read(shown, true, Tag::None).as_ref() == Ok(scalar),
            };
            let key = match path.last() {
                Some(Crumb::Key(key)) => object.source.slice(place.key).trim_matches('\'') == key.as_str(),
                Some(Crumb::Index(_)) | None => place.key.is_empty(),
            };
            if !right || !key || (object.place(path.iter().map(Crumb::step)) != (place, true)) {
                wrong.push(format!("{path:?} {value:?} {shown:?} {place:?}"));
            }
        });
        prop_assert!(wrong.is_empty(), "{text}\n{wrong:#?}");
    }
}
