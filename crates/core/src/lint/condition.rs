//! Conditions of metrics: whether they parse, and whether the names in them exist. Never evaluates one.

use super::{Notes, rule::Code, similar};
use crate::{
    analysis::expression::{
        self, Kind, Mistake,
        lex::{Token, Word},
    },
    kubernetes::value::Value,
    manifest::{Object, place::Step},
};

use Step::{Index, Key};

/// What a condition may name beside the language's own functions.
const NAMES: [&str; 7] = ["result", "asInt", "asFloat", "isNaN", "isInf", "isNil", "default"];

/// The functions of the language.
const FUNCTIONS: &str = "all none any one filter map find findIndex findLast findLastIndex count sum groupBy sortBy reduce \
    len type abs ceil floor round int float string trim trimPrefix trimSuffix upper lower split splitAfter replace repeat \
    join indexOf lastIndexOf hasPrefix hasSuffix max min mean median toJSON fromJSON toBase64 fromBase64 now duration date \
    timezone first last get take keys values toPairs fromPairs reverse uniq concat flatten sort bitand bitor bitxor bitnand \
    bitnot bitshl bitshr bitushr";

/// Looks at the conditions of all metrics of an object.
pub fn check(object: &Object, notes: &mut Notes) {
    for (index, metric) in object.value.list_at(&["spec", "metrics"]).iter().enumerate() {
        for field in ["successCondition", "failureCondition"] {
            let Some(text) = metric.get(field).and_then(Value::as_str).filter(|text| !text.is_empty()) else {
                continue;
            };
            let path = [Key("spec"), Key("metrics"), Index(index), Key(field)];
            for complaint in judge(text) {
                let (code, what, remedy) = match complaint {
                    Complaint::Syntax(what) => (
                        Code::ConditionSyntax,
                        format!("the condition does not parse: {what}"),
                        "see the expr language: `result[0] >= 0.95`".to_owned(),
                    ),
                    Complaint::Name(name) => {
                        let known = NAMES.into_iter().chain(FUNCTIONS.split_whitespace());
                        let near = similar::nearest(&name, known).map(|near| format!("did you mean {near}?"));
                        let remedy = near.unwrap_or_else(|| "the value of the metric is called result".to_owned());
                        (Code::ConditionSyntax, format!("the condition names {name}, which does not exist"), remedy)
                    }
                    Complaint::Ignores(function) => (
                        Code::ConditionIgnoresArgument,
                        format!("{function} looks at the whole result, whatever its first argument is"),
                        format!(
                            "compare with nil instead, or write {function}(result{})",
                            if function == "default" { ", …" } else { "" }
                        ),
                    ),
                };
                notes.say(object, &path, code, what).remedy = remedy;
            }
        }
    }
}

/// What is wrong with a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Complaint {
    /// It does not parse.
    Syntax(String),
    /// It names something that does not exist.
    Name(String),
    /// It calls a function that ignores its argument.
    Ignores(&'static str),
}

fn judge(text: &str) -> Vec<Complaint> {
    let text = without_arguments(text);
    let tree = match expression::parse(&text) {
        Err(mistake) => return vec![Complaint::Syntax(plainly(&mistake))],
        Ok(tree) => tree,
    };
    let known = |name: &str| NAMES.contains(&name) || FUNCTIONS.split_whitespace().any(|known| known == name);
    let unknown = tree.names().into_iter().filter(|name| !known(name)).map(|name| Complaint::Name(name.to_owned()));
    let ignoring = tree.calls().into_iter().filter_map(|(name, arguments)| {
        let of_result = matches!(&arguments.first()?.kind, Kind::Name(name) if name == "result");
        ["isNil", "default"].into_iter().find(|ignorant| *ignorant == name && !of_result).map(Complaint::Ignores)
    });
    unknown.chain(ignoring).collect()
}

/// A mistake in words that help more than those of the library, where there are such.
fn plainly(mistake: &Mistake) -> String {
    match &mistake.unexpected {
        Some((Token { kind: Word::Eof, .. }, Some(wanted))) => format!("`{wanted}` is missing at the end"),
        Some((Token { kind: Word::Eof, .. }, None)) => "a value is missing at the end".into(),
        Some((Token { kind: Word::Operator, text, .. }, _)) if text == "=" => "`=` compares nothing; write `==`".into(),
        Some((token, Some(wanted))) => format!("`{wanted}` is missing before {}", shown(token)),
        Some((token, None)) if token.kind == Word::Bracket && [")", "]", "}"].contains(&token.text.as_str()) => {
            format!("{} closes nothing", shown(token))
        }
        Some((token, None)) => format!("{} is not expected here; is an operator missing?", shown(token)),
        None if mistake.message == "literal not terminated" => "a quote is opened and never closed".into(),
        None => format!("{} (character {})", mistake.message, mistake.at.start + 1),
    }
}

fn shown(token: &Token) -> String {
    match token.kind {
        Word::Number => "a number".into(),
        Word::String => "a text".into(),
        Word::Identifier | Word::Operator | Word::Bracket | Word::Eof => format!("`{}`", token.text),
    }
}

/// The text with a number for each `{{…}}`: what is filled in there is not known yet.
fn without_arguments(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((_, next)) = after.split_once("}}") else { break };
        out.push_str(before);
        out.push('1');
        rest = next;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn conditions_people_write_parse() {
        for text in [
            "result[0] >= 0.95",
            "len(result) == 0 || isNaN(result[0]) || result[0] >= {{args.threshold}}",
            "result.ok && result.successPercent >= 0.90",
            "all(result, # < 5) and not any(result, {# > 1e3})",
            "result == \"ok\" or result == 'fine' or result == `raw`",
            "(result?.data?.[0].x ?? 0) > 1",
            "result in [1, 2, 3] ? true : false",
            "let x = result[0]; x > 1 && x < 2",
            "asFloat(result) not in 1..5",
            "filter(result, .value > 0 && .name matches '^a') | len() > 1",
            "default(result, 0) < 0.05",
            "{a: 1, 'b': 2}.a == 1",
            "result[1:3] == result[:2]",
            "-result ** 2 ^ 3 % 4 > +1",
            "result startsWith 'a' && !(result endsWith 'b') && result contains 'c'",
            "if result > 1 { true } else { false }",
            "reduce(result, #acc + #, 0) > 1 // sum",
            "result.Values[0] /* cloudwatch */ < 0x1F",
            "now() - duration('1h') < date('2026-01-01') && result > 1_000",
            "isNil(result) || result != nil",
        ] {
            assert_eq!(judge(text), [], "{text}");
        }
    }

    #[test]
    fn conditions_that_cannot_work_are_named() {
        #[track_caller]
        fn check(text: &str, complaint: Complaint) {
            assert_eq!(judge(text).first(), Some(&complaint), "{text}");
        }
        let syntax = |text: &str| Complaint::Syntax(text.to_owned());
        check("result[0] >=", syntax("a value is missing at the end"));
        check("result[0 >= 1", syntax("`]` is missing at the end"));
        check("(result > 1", syntax("`)` is missing at the end"));
        check("result > 1)", syntax("`)` closes nothing"));
        check("result = 1", syntax("`=` compares nothing; write `==`"));
        check("result > 'x", syntax("a quote is opened and never closed"));
        check("result > 1 result < 2", syntax("`result` is not expected here; is an operator missing?"));
        check("result & 1", syntax("`&` is not expected here; is an operator missing?"));
        let mixed =
            "Operator (>) and coalesce expressions (??) cannot be mixed. Wrap either by parentheses. (character 15)";
        check("result.x ?? 0 > 1", syntax(mixed));
        check("reslt[0] > 1", Complaint::Name("reslt".into()));
        check("default(result[0], 0) > 1", Complaint::Ignores("default"));
        check("isNil(result.x)", Complaint::Ignores("isNil"));
    }

    proptest! {
        #[test]
        fn no_condition_makes_it_panic(text in "[-a-z0-9 .()\\[\\]{}#?:|&'\"<>=!+*/%^;,é_`\n]{0,60}") {
            judge(&text);
            judge(&text.repeat(50));
        }
    }

    #[test]
    fn deep_nesting_is_refused() {
        for text in
            ["(".repeat(100_000), "-".repeat(100_000), "[".repeat(100_000), "a?".repeat(100_000), "not ".repeat(50_000)]
        {
            assert!(matches!(&judge(&text)[..], [Complaint::Syntax(_)]), "{}", &text[..5]);
        }
    }
}
