//! Which objects an instruction is about: expressions on type, name and namespace, and Kubernetes label selectors.

use std::{collections::BTreeMap, rc::Rc};

use regex::{Regex, RegexBuilder};

use crate::{
    fault::{At, Fault, Res},
    ident::{Gvk, Name},
};

/// What a kustomization writes under `target`, `select` or `reject`.
#[derive(Clone, Debug)]
pub struct Selector {
    pub at: At,
    pub group: Rc<str>,
    pub version: Rc<str>,
    pub kind: Rc<str>,
    pub name: Rc<str>,
    pub namespace: Rc<str>,
    pub labels: Rc<str>,
    pub annotations: Rc<str>,
    /// Where each of these is written.
    pub places: [At; 7],
}

/// A selector whose expressions were read.
pub struct Matcher {
    group: Option<Regex>,
    version: Option<Regex>,
    kind: Option<Regex>,
    name: Option<Regex>,
    namespace: Option<Regex>,
    pub labels: Requirements,
    pub annotations: Requirements,
    pub is_empty: bool,
}

impl Matcher {
    pub fn new(selector: &Selector) -> Res<Matcher> {
        let whole = |text: &str, at: At| {
            if text.is_empty() {
                Ok(None)
            } else {
                expression(&format!("^(?:{text})$")).map(Some).map_err(|fault| fault.at(at))
            }
        };
        let [group, version, kind, name, namespace, labels, annotations] = selector.places;
        let fields = [&selector.group, &selector.version, &selector.kind, &selector.name, &selector.namespace];
        Ok(Matcher {
            group: whole(&selector.group, group)?,
            version: whole(&selector.version, version)?,
            kind: whole(&selector.kind, kind)?,
            name: whole(&selector.name, name)?,
            namespace: whole(&selector.namespace, namespace)?,
            labels: Requirements::parse(&selector.labels).map_err(|fault| fault.at(labels))?,
            annotations: Requirements::parse(&selector.annotations).map_err(|fault| fault.at(annotations))?,
            is_empty: fields.iter().all(|field| field.is_empty()),
        })
    }

    pub fn has_kind(&self, gvk: &Gvk) -> bool {
        let fits = |expression: &Option<Regex>, text: &str| expression.as_ref().is_none_or(|e| e.is_match(text));
        fits(&self.group, &gvk.group) && fits(&self.version, &gvk.version) && fits(&self.kind, &gvk.kind)
    }

    pub fn has_name(&self, name: &str) -> bool {
        self.name.as_ref().is_none_or(|expression| expression.is_match(name))
    }

    pub fn has_namespace(&self, namespace: &str) -> bool {
        self.namespace.as_ref().is_none_or(|expression| expression.is_match(namespace))
    }

    pub fn has(&self, id: &Name) -> bool {
        self.has_kind(&id.gvk) && self.has_name(&id.name) && self.has_namespace(&id.namespace)
    }
}

/// A regular expression as Go writes them.
pub fn expression(pattern: &str) -> Res<Regex> {
    if pattern.len() > 4096 {
        return Err(Fault::budget("the expression is longer than 4096 bytes").remedy("select by label"));
    }
    let translated = translate(pattern);
    RegexBuilder::new(&translated).size_limit(1 << 20).dfa_size_limit(1 << 20).nest_limit(64).build().map_err(|error| {
        let why = match &error {
            regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
            error => error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned(),
        };
        Fault::new(format!("{pattern:?} is no regular expression: {why}"))
            .remedy("the syntax is that of Go (RE2): no look-ahead, no back-references")
    })
}

/// Go's syntax where Rust's differs: `\Q…\E`, and brackets and `&&` inside a class mean themselves.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    let mut class = 0; // 0: outside, 1: at the start of a class, 2: inside
    while let Some(c) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix("\\Q") {
            let (text, after) = quoted.split_once("\\E").unwrap_or((quoted, ""));
            out.push_str(&regex::escape(text));
            rest = after;
            continue;
        }
        if c == '\\' {
            let escaped: String = rest.chars().take(2).collect();
            out.push_str(&escaped);
            rest = &rest[escaped.len()..];
            class = if class == 1 { 2 } else { class };
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match (class, c) {
            (0, '[') => {
                out.push('[');
                class = 1;
                if let Some(after) = rest.strip_prefix('^') {
                    out.push('^');
                    rest = after;
                }
                // A bracket that comes first is a member.
                if let Some(after) = rest.strip_prefix(']') {
                    out.push_str("\\]");
                    rest = after;
                    class = 2;
                }
            }
            (1 | 2, '[') if rest.starts_with(':') => {
                let end = rest.find(":]").map_or(rest.len(), |end| end + 2);
                out.push('[');
                out.push_str(&rest[..end]);
                rest = &rest[end..];
                class = 2;
            }
            (1 | 2, ']') => {
                out.push(']');
                class = 0;
            }
            (1 | 2, '[' | '&' | '~') => {
                out.push('\\');
                out.push(c);
                class = 2;
            }
            (1 | 2, '-') if rest.starts_with('-') => {
                out.push_str("\\-");
                class = 2;
            }
            (_, c) => {
                out.push(c);
                class = if class == 1 { 2 } else { class };
            }
        }
    }
    out
}

/// A label selector.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Requirements(Vec<Requirement>);

#[derive(Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug, PartialEq, Eq)]
enum Test {
    Exists,
    Missing,
    In(Vec<String>),
    NotIn(Vec<String>),
    Above(i64),
    Below(i64),
}

impl Requirements {
    pub fn parse(text: &str) -> Res<Requirements> {
        let mut tokens = Tokens { rest: text };
        let mut all = Vec::new();
        let wrong = |why: String| {
            Fault::new(format!("{text:?} is no label selector: {why}"))
                .remedy("write key=value, key!=value, key in (a,b), key or !key, joined by commas")
        };
        loop {
            match tokens.next() {
                Token::End if all.is_empty() => return Ok(Requirements(all)),
                Token::Not => {
                    let Token::Word(key) = tokens.next() else { return Err(wrong("after ! stands no key".into())) };
                    check_key(&key).map_err(wrong)?;
                    match tokens.peek() {
                        Token::End | Token::Comma => {}
                        other => return Err(wrong(format!("after !{key} stands {other:?}"))),
                    }
                    all.push(Requirement { key, test: Test::Missing });
                }
                Token::Word(key) => {
                    check_key(&key).map_err(wrong)?;
                    let test = requirement(&mut tokens).map_err(wrong)?;
                    all.push(Requirement { key, test });
                }
                _ => return Err(wrong("a key is missing".into())),
            }
            match tokens.next() {
                Token::End => return Ok(Requirements(all)),
                Token::Comma => {}
                other => return Err(wrong(format!("a comma is missing before {other:?}"))),
            }
        }
    }

    pub fn matches(&self, labels: &BTreeMap<Rc<str>, Rc<str>>) -> bool {
        self.0.iter().all(|requirement| {
            let value = labels.get(requirement.key.as_str());
            let number = || value.and_then(|value| value.parse::<i64>().ok());
            match &requirement.test {
                Test::Exists => value.is_some(),
                Test::Missing => value.is_none(),
                Test::In(list) => value.is_some_and(|value| list.iter().any(|other| **other == **value)),
                Test::NotIn(list) => value.is_none_or(|value| list.iter().all(|other| **other != **value)),
                Test::Above(limit) => number().is_some_and(|n| n > *limit),
                Test::Below(limit) => number().is_some_and(|n| n < *limit),
            }
        })
    }
}

fn requirement(tokens: &mut Tokens<'_>) -> Result<Test, String> {
    match tokens.peek() {
        Token::End | Token::Comma => return Ok(Test::Exists),
        _ => {}
    }
    let operator = tokens.next();
    match operator {
        Token::Word(word) if word == "in" || word == "notin" => {
            if tokens.next() != Token::Open {
                return Err(format!("after {word} stands no list in parentheses"));
            }
            let mut values = vec![String::new()];
            loop {
                match tokens.next() {
                    Token::Word(value) => {
                        check_value(&value)?;
                        if let Some(last) = values.last_mut() {
                            *last = value;
                        }
                    }
                    Token::Comma => values.push(String::new()),
                    Token::Close => break,
                    _ => return Err("a list in parentheses does not end".into()),
                }
            }
            Ok(if word == "in" { Test::In(values) } else { Test::NotIn(values) })
        }
        Token::Equals | Token::NotEquals | Token::Above | Token::Below => {
            let value = match tokens.peek() {
                Token::End | Token::Comma => String::new(),
                _ => match tokens.next() {
                    Token::Word(value) => value,
                    other => return Err(format!("{other:?} is no value")),
                },
            };
            check_value(&value)?;
            let number = || value.parse().map_err(|_| format!("{value:?} is no number"));
            Ok(match operator {
                Token::Equals => Test::In(vec![value]),
                Token::NotEquals => Test::NotIn(vec![value]),
                Token::Above => Test::Above(number()?),
                _ => Test::Below(number()?),
            })
        }
        other => Err(format!("{other:?} is no operator")),
    }
}

fn check_key(key: &str) -> Result<(), String> {
    let (prefix, name) = key.rsplit_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let fits =
        name.len() <= 63 && is_name(name) && prefix.is_none_or(|prefix| !prefix.is_empty() && prefix.len() <= 253);
    if fits { Ok(()) } else { Err(format!("{key:?} is no label key")) }
}

fn check_value(value: &str) -> Result<(), String> {
    if value.is_empty() || (value.len() <= 63 && is_name(value)) {
        Ok(())
    } else {
        Err(format!("{value:?} is no label value"))
    }
}

fn is_name(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    edge(text.chars().next())
        && edge(text.chars().last())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    End,
    Comma,
    Open,
    Close,
    Equals,
    NotEquals,
    Above,
    Below,
    Not,
    Word(String),
}

struct Tokens<'a> {
    rest: &'a str,
}

impl Tokens<'_> {
    fn peek(&self) -> Token {
        Tokens { rest: self.rest }.next()
    }

    fn next(&mut self) -> Token {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        for (text, token) in [
            (",", Token::Comma),
            ("(", Token::Open),
            (")", Token::Close),
            ("==", Token::Equals),
            ("=", Token::Equals),
            ("!=", Token::NotEquals),
            ("!", Token::Not),
            (">", Token::Above),
            ("<", Token::Below),
        ] {
            if let Some(rest) = self.rest.strip_prefix(text) {
                self.rest = rest;
                return token;
            }
        }
        let end = self.rest.find([' ', '\t', '\r', '\n', ',', '(', ')', '=', '!', '>', '<']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        if word.is_empty() { Token::End } else { Token::Word(word.to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_go_mean_the_same() {
        #[track_caller]
        fn check(pattern: &str, text: &str, expected: bool) {
            assert_eq!(expression(pattern).unwrap().is_match(text), expected, "{pattern} on {text}");
        }
        check("^(?:a|b)$", "b", true);
        check(r"^\Qa.b\E$", "axb", false);
        check("^[[a]$", "[", true);
        check("^[a&&b]$", "&", true);
        check("^[]a]$", "]", true);
        check("^[[:digit:]]+$", "12", true);
        assert!(expression("(?=x)").is_err());
        assert!(expression("(((((a{1000}){1000}){1000}").is_err());
    }

    #[test]
    fn label_selectors_are_read_as_kubernetes_reads_them() {
        #[track_caller]
        fn check(text: &str, labels: &[(&str, &str)], expected: bool) {
            let labels = labels.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
            assert_eq!(Requirements::parse(text).unwrap().matches(&labels), expected, "{text}");
        }
        check("", &[], true);
        check("a=b,c!=d", &[("a", "b")], true);
        check("a in (x, y),!z", &[("a", "y")], true);
        check("a notin (x)", &[("a", "x")], false);
        check("a", &[], false);
        check("n > 3", &[("n", "4")], true);
        assert!(Requirements::parse("a=b c").is_err());
        assert!(Requirements::parse("=b").is_err());
    }
}
