//! What may be a name: the rules for names, keys, labels and ports, with the words the real server uses.
//!
//! Every rule answers with the list of sentences to complain with; an empty list means the text is fine. Nothing is
//! allocated for a text that is fine.

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const UNDERSCORE_SUBDOMAIN: &str = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*";
const SUBDOMAIN_WORDS: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
                               '.', and must start and end with an alphanumeric character";
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const KEY_WORDS: &str =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/// The longest DNS label, label value and name part of a label key.
pub const LABEL_LIMIT: usize = 63;
/// The longest DNS subdomain, and with it the longest name of most objects.
pub const SUBDOMAIN_LIMIT: usize = 253;

/// The name of most objects: lower-case DNS labels joined by dots.
pub fn dns_subdomain(text: &str) -> Vec<String> {
    let mut problems = too_long(text, SUBDOMAIN_LIMIT);
    if !is_subdomain(text) {
        problems.push(pattern(SUBDOMAIN_WORDS, SUBDOMAIN, &["example.com"]));
    }
    problems
}

/// A DNS subdomain in which labels may hold underscores, as in a pod's DNS search list.
pub fn dns_subdomain_with_underscore(text: &str) -> Vec<String> {
    let mut problems = too_long(text, SUBDOMAIN_LIMIT);
    let label = |label: &str| {
        let label = label.strip_prefix('_').unwrap_or(label).as_bytes();
        framed(label, is_lower, |b| is_lower(b) || b == b'-' || b == b'_')
    };
    if !text.split('.').all(label) {
        let words = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or \
                     '.', and must start and end with an alphanumeric character";
        problems.push(pattern(words, UNDERSCORE_SUBDOMAIN, &["example.com"]));
    }
    problems
}

/// The name of a namespace or a container: one lower-case DNS label.
pub fn dns_label(text: &str) -> Vec<String> {
    let mut problems = too_long(text, LABEL_LIMIT);
    if !is_label(text) {
        problems.push(match is_subdomain(text) {
            true => "must not contain dots".to_owned(),
            false => {
                let words = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and \
                             must start and end with an alphanumeric character";
                pattern(words, LABEL, &["my-name", "123-abc"])
            }
        });
    }
    problems
}

/// The name of a Service: a DNS label that starts with a letter.
pub fn dns1035_label(text: &str) -> Vec<String> {
    let mut problems = too_long(text, LABEL_LIMIT);
    if !is_label(text) || text.as_bytes()[0].is_ascii_digit() {
        let words = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                     alphabetic character, and end with an alphanumeric character";
        problems.push(pattern(words, "[a-z]([-a-z0-9]*[a-z0-9])?", &["my-name", "abc-123"]));
    }
    problems
}

/// A host of an Ingress that begins with `*.`.
pub fn wildcard_dns_subdomain(text: &str) -> Vec<String> {
    let mut problems = too_long(text, SUBDOMAIN_LIMIT);
    if !text.strip_prefix("*.").is_some_and(is_subdomain) {
        let words = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must \
                     consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character";
        problems.push(pattern(words, &format!(r"\*\.{SUBDOMAIN}"), &["*.example.com"]));
    }
    problems
}

/// A label key, annotation key, finalizer or resource name: `name` or `example.com/name`. Upstream's "qualified name".
pub fn label_key(text: &str) -> Vec<String> {
    let pattern_of_name = || pattern(KEY_WORDS, KEY, &["MyName", "my.name", "123-abc"]);
    let mut problems = Vec::new();
    let mut parts = text.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(prefix), Some(name), None) => {
            if prefix.is_empty() {
                problems.push("prefix part must be non-empty".to_owned());
            } else {
                // The prefix is measured in bytes, the same subdomain elsewhere in characters: upstream's words differ.
                problems.extend(too_many_bytes(prefix, SUBDOMAIN_LIMIT).map(|s| format!("prefix part {s}")));
                if !is_subdomain(prefix) {
                    problems.push(format!("prefix part {}", pattern(SUBDOMAIN_WORDS, SUBDOMAIN, &["example.com"])));
                }
            }
            name
        }
        _ => {
            let with = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {} {with}", pattern_of_name())];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    }
    problems.extend(too_many_bytes(name, LABEL_LIMIT).map(|s| format!("name part {s}")));
    if !is_key(name) {
        problems.push(format!("name part {}", pattern_of_name()));
    }
    problems
}

/// The value of a label.
pub fn label_value(text: &str) -> Vec<String> {
    let mut problems: Vec<String> = too_many_bytes(text, LABEL_LIMIT).into_iter().collect();
    if !text.is_empty() && !is_key(text) {
        let words = format!("a valid label must be an empty string or {}", KEY_WORDS.trim_start_matches("must "));
        problems.push(pattern(&words, &format!("({KEY})?"), &["MyValue", "my_value", "12345"]));
    }
    problems
}

/// A key of a ConfigMap's or Secret's data.
pub fn config_map_key(text: &str) -> Vec<String> {
    let mut problems = too_long(text, SUBDOMAIN_LIMIT);
    if !all(text, |b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')) {
        let words = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        problems.push(pattern(words, "[-._a-zA-Z0-9]+", &["key.name", "KEY_NAME", "key-name"]));
    }
    problems.extend(climbs(text));
    problems
}

/// The name of an environment variable as it was before 1.34 relaxed it.
pub fn env_var_name(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if !all(text, allowed) || text.as_bytes()[0].is_ascii_digit() {
        let words = "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', \
                     and must not start with a digit";
        let examples = ["my.env-name", "MY_ENV.NAME", "MyEnvName1"];
        problems.push(pattern(words, "[-._a-zA-Z][-._a-zA-Z0-9]*", &examples));
    }
    problems.extend(climbs(text));
    problems
}

/// The name of an environment variable: any printable ASCII but `=`.
pub fn relaxed_env_var_name(text: &str) -> Vec<String> {
    if text.is_empty() {
        return vec!["environment variable name must be non-empty".to_owned()];
    }
    match all(text, |b| (b' '..=b'~').contains(&b) && b != b'=') {
        true => Vec::new(),
        false => vec![
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
                .to_owned(),
        ],
    }
}

/// The name of a container's or Service's port.
pub fn port_name(text: &str) -> Vec<String> {
    let mut problems = too_long(text, 15);
    let mut unless = |fine: bool, words: &str| {
        if !fine {
            problems.push(words.to_owned());
        }
    };
    unless(
        all(text, |b| is_lower(b) || b == b'-'),
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
    );
    unless(text.bytes().any(|b| b.is_ascii_lowercase()), "must contain at least one letter (a-z)");
    unless(!text.contains("--"), "must not contain consecutive hyphens");
    unless(!text.starts_with('-') && !text.ends_with('-'), "must not begin or end with a hyphen");
    problems
}

/// The number of a port.
pub fn port_number(port: i64) -> Vec<String> {
    in_range(port, 1, 65535)
}

/// A number between `least` and `most`, both included.
pub fn in_range(number: i64, least: i64, most: i64) -> Vec<String> {
    match (least..=most).contains(&number) {
        true => Vec::new(),
        false => vec![format!("must be between {least} and {most}, inclusive")],
    }
}

/// A user or group id.
pub fn user_id(id: i64) -> Vec<String> {
    in_range(id, 0, i32::MAX.into())
}

/// A percentage such as `25%`.
pub fn percent(text: &str) -> Vec<String> {
    match text.strip_suffix('%').is_some_and(|digits| all(digits, |b| b.is_ascii_digit())) {
        true => Vec::new(),
        false => {
            let words = "a valid percent string must be a numeric string followed by an ending '%'";
            vec![pattern(words, "[0-9]+%", &["1%", "93%"])]
        }
    }
}

/// The name of an HTTP header.
pub fn http_header_name(text: &str) -> Vec<String> {
    match all(text, |b| b.is_ascii_alphanumeric() || b == b'-') {
        true => Vec::new(),
        false => {
            let words = "a valid HTTP header must consist of alphanumeric characters or '-'";
            vec![pattern(words, "[-A-Za-z0-9]+", &["X-Header-Name"])]
        }
    }
}

/// An identifier of C.
pub fn c_identifier(text: &str) -> Vec<String> {
    let fine = all(text, |b| b.is_ascii_alphanumeric() || b == b'_') && !text.as_bytes()[0].is_ascii_digit();
    match fine {
        true => Vec::new(),
        false => {
            let words = "a valid C identifier must start with alphabetic character or '_', followed by a string of \
                         alphanumeric characters or '_'";
            vec![pattern(words, "[A-Za-z_][A-Za-z0-9_]*", &["my_name", "MY_NAME", "MyName"])]
        }
    }
}

/// A name that only has to fit into a path: names of RBAC objects.
pub fn path_segment(text: &str) -> Vec<String> {
    match text {
        "." | ".." => vec![format!("may not be '{text}'")],
        _ => path_segment_prefix(text),
    }
}

/// What may stand before the generated part of a [`path_segment`].
pub fn path_segment_prefix(text: &str) -> Vec<String> {
    ['/', '%'].into_iter().filter(|c| text.contains(*c)).map(|c| format!("may not contain '{c}'")).collect()
}

/// What upstream checks in place of a `generateName`: a dash at the end is fine, since more will follow.
///
/// It also swallows the character before that dash, so `A-` passes as `a`; that oddity is kept.
pub fn mask_trailing_dash(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let mut chars = rest.chars();
            chars.next_back();
            format!("{}a", chars.as_str())
        }
        _ => prefix.to_owned(),
    }
}

const GENERATED_LENGTH: usize = 5;
const GENERATED_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// A name made from a `generateName` and a number; other numbers make other names.
pub fn generate(base: &str, seed: u64) -> String {
    let mut end = base.len().min(LABEL_LIMIT - GENERATED_LENGTH);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{}", &base[..end], suffix(seed, GENERATED_LENGTH))
}

/// `length` characters of the alphabet that names are generated from (no vowels, so no words).
pub fn suffix(seed: u64, length: usize) -> String {
    // SplitMix64: neighbouring seeds must not make neighbouring names.
    let mut state = seed;
    (0..length)
        .map(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut bits = state;
            bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            bits ^= bits >> 31;
            char::from(GENERATED_ALPHABET[(bits % GENERATED_ALPHABET.len() as u64) as usize])
        })
        .collect()
}

fn is_lower(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

fn is_label(text: &str) -> bool {
    framed(text.as_bytes(), is_lower, |b| is_lower(b) || b == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_key(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    framed(text.as_bytes(), |b| b.is_ascii_alphanumeric(), inner)
}

/// Not empty, `end` at both ends and `inner` between them.
fn framed(bytes: &[u8], end: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    match bytes {
        [] => false,
        [only] => end(*only),
        [first, middle @ .., last] => end(*first) && end(*last) && middle.iter().all(|b| inner(*b)),
    }
}

/// Not empty, and every byte allowed.
fn all(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(allowed)
}

fn too_long(text: &str, limit: usize) -> Vec<String> {
    match text.len() > limit {
        true => vec![format!("must be no more than {limit} characters")],
        false => Vec::new(),
    }
}

fn too_many_bytes(text: &str, limit: usize) -> Option<String> {
    (text.len() > limit).then(|| format!("must be no more than {limit} bytes"))
}

/// Names that would leave the directory a volume is mounted at.
fn climbs(text: &str) -> Option<String> {
    match text {
        "." | ".." => Some(format!("must not be '{text}'")),
        _ if text.starts_with("..") => Some("must not start with '..'".to_owned()),
        _ => None,
    }
}

/// The sentence about a pattern, with upstream's odd commas: `(e.g. 'a',  or 'b', regex used …)`.
fn pattern(words: &str, regex: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{words} (e.g. {}regex used for validation is '{regex}')", examples.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABEL_SAYS: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and \
                              must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex \
                              used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    const SUBDOMAIN_SAYS: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
                                  '-' or '.', and must start and end with an alphanumeric character (e.g. \
                                  'example.com', regex used for validation is \
                                  '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    const KEY_SAYS: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                            alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                            validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    const VALUE_SAYS: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
                              '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
                              'my_value',  or '12345', regex used for validation is \
                              '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

    #[track_caller]
    fn check(rule: fn(&str) -> Vec<String>, rows: &[(&str, &[&str])]) {
        for (text, says) in rows {
            assert_eq!(rule(text), *says, "about {text:?}");
        }
    }

    #[test]
    fn names_follow_the_rules_of_dns() {
        let long = "x".repeat(64);
        check(
            dns_label,
            &[
                ("a", &[]),
                ("0-a-9", &[]),
                ("a.b", &["must not contain dots"]),
                ("", &[LABEL_SAYS]),
                ("-a", &[LABEL_SAYS]),
                ("a-", &[LABEL_SAYS]),
                ("A", &[LABEL_SAYS]),
                ("é", &[LABEL_SAYS]),
                (&long, &["must be no more than 63 characters"]),
            ],
        );
        let long = "x".repeat(254);
        check(
            dns_subdomain,
            &[
                ("a.b-c.0", &[]),
                ("", &[SUBDOMAIN_SAYS]),
                ("a..b", &[SUBDOMAIN_SAYS]),
                ("a_b", &[SUBDOMAIN_SAYS]),
                ("a.-b", &[SUBDOMAIN_SAYS]),
                (&long, &["must be no more than 253 characters"]),
            ],
        );
        assert!(dns1035_label("a1").is_empty());
        for bad in ["1a", "", "a.b", "A"] {
            assert_eq!(
                dns1035_label(bad),
                ["a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                     alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', \
                     regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"]
            );
        }
        assert!(wildcard_dns_subdomain("*.a.b").is_empty());
        assert_eq!(wildcard_dns_subdomain("*").len(), 1);
        assert!(dns_subdomain_with_underscore("_a_b.c").is_empty());
        assert_eq!(dns_subdomain_with_underscore("__a").len(), 1);
    }

    #[test]
    fn label_keys_and_values_complain_in_bytes() {
        let (long, name_says) = ("x".repeat(64), format!("name part {KEY_SAYS}"));
        let prefix_says = format!("prefix part {SUBDOMAIN_SAYS}");
        let shape_says = format!(
            "a valid label key {KEY_SAYS} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        );
        check(
            label_key,
            &[
                ("a", &[]),
                ("example.com/My.Name_1", &[]),
                ("-a", &[&name_says]),
                ("", &["name part must be non-empty", &name_says]),
                ("a/", &["name part must be non-empty", &name_says]),
                ("/a", &["prefix part must be non-empty"]),
                ("A/b", &[&prefix_says]),
                ("a/b/c", &[&shape_says]),
                (&long, &["name part must be no more than 63 bytes"]),
            ],
        );
        check(
            label_value,
            &[
                ("", &[]),
                ("A_b-c.9", &[]),
                ("-b", &[VALUE_SAYS]),
                ("a b", &[VALUE_SAYS]),
                (&long, &["must be no more than 63 bytes"]),
            ],
        );
    }

    #[test]
    fn keys_variables_and_ports_have_rules_of_their_own() {
        let key_says = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  \
                        or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
        check(
            config_map_key,
            &[
                ("a.B_c-1", &[]),
                ("", &[key_says]),
                ("a b", &[key_says]),
                (".", &["must not be '.'"]),
                ("..", &["must not be '..'"]),
                ("..a", &["must not start with '..'"]),
            ],
        );
        assert!(env_var_name("A.b-c_1").is_empty());
        assert_eq!(env_var_name("1A").len(), 1);
        check(
            relaxed_env_var_name,
            &[
                ("1 A%", &[]),
                ("", &["environment variable name must be non-empty"]),
                (
                    "a=b",
                    &["a valid environment variable name must consist only of printable ASCII characters other than \
                         '='"],
                ),
            ],
        );
        check(
            port_name,
            &[
                ("http-2", &[]),
                ("12", &["must contain at least one letter (a-z)"]),
                ("-a", &["must not begin or end with a hyphen"]),
                ("a--b", &["must not contain consecutive hyphens"]),
                (
                    "A",
                    &[
                        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                        "must contain at least one letter (a-z)",
                    ],
                ),
                ("abcdefghijklmnop", &["must be no more than 15 characters"]),
            ],
        );
        assert_eq!(port_number(0), ["must be between 1 and 65535, inclusive"]);
        assert!(percent("100%").is_empty());
        assert_eq!(
            percent("%"),
            ["a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex \
                 used for validation is '[0-9]+%')"]
        );
        assert!(c_identifier("_a1").is_empty());
        assert_eq!(c_identifier("1a").len(), 1);
        check(
            path_segment,
            &[
                ("system:a b", &[]),
                ("..", &["may not be '..'"]),
                ("a/%", &["may not contain '/'", "may not contain '%'"]),
            ],
        );
    }

    #[test]
    fn generated_names_fit_and_differ() {
        let long = "é".repeat(40);
        let names: std::collections::HashSet<String> = (0..1000).map(|seed| generate("web-", seed)).collect();
        assert!(names.len() > 998, "{}", names.len());
        for name in &names {
            assert_eq!(name.len(), 9);
            assert!(dns_label(name).is_empty(), "{name}");
        }
        assert_eq!(generate("web-", 7), generate("web-", 7));
        assert_eq!(generate(&long, 1).len(), 63);
        assert_eq!(mask_trailing_dash("abc-"), "aba");
        assert_eq!(mask_trailing_dash("-"), "-");
    }
}
