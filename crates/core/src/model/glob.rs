//! Patterns of paths: `docs/**`, `*.test.yaml`, `charts/*/templates`.
//!
//! As in an ignore file: a pattern without a slash matches a name in any folder, one with a slash matches from the top;
//! `*` and `?` stay within a name, `**` does not; what matches a folder matches all that is in it. Never takes longer
//! than the pattern's length times the path's.

/// Whether a pattern matches a path, or a folder that it is in.
pub fn matches(pattern: &str, path: &str) -> bool {
    let pattern = pattern.trim_end_matches('/');
    if pattern.is_empty() {
        return false;
    }
    let mut parts: Vec<&str> = match pattern.strip_prefix('/') {
        Some(anchored) => anchored.split('/').collect(),
        None if pattern.contains('/') => pattern.split('/').collect(),
        None => vec!["**", pattern],
    };
    // All that is in a folder is not the folder itself.
    if parts.last() == Some(&"**") {
        parts.push("*");
    }
    let names: Vec<&str> = path.split('/').collect();
    (1..=names.len()).any(|depth| parts_match(&parts, &names[..depth]))
}

/// Whether each part matches its name, and `**` any number of them.
fn parts_match(parts: &[&str], names: &[&str]) -> bool {
    wild(parts, names, |part| *part == "**", |part, name| name_matches(part, name))
}

/// Whether a pattern without folders matches a name.
pub fn name_matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    wild(&pattern, &name, |c| *c == '*', |wanted, c| *wanted == '?' || wanted == c)
}

/// Matches with wildcards in quadratic time: after a mismatch only the last wildcard has to take one more.
fn wild<P, N>(pattern: &[P], text: &[N], any: impl Fn(&P) -> bool, one: impl Fn(&P, &N) -> bool) -> bool {
    let (mut at, mut read) = (0, 0);
    let mut last: Option<(usize, usize)> = None;
    while read < text.len() {
        if at < pattern.len() && any(&pattern[at]) {
            last = Some((at, read));
            at += 1;
        } else if at < pattern.len() && one(&pattern[at], &text[read]) {
            at += 1;
            read += 1;
        } else if let Some((wildcard, from)) = last {
            last = Some((wildcard, from + 1));
            at = wildcard + 1;
            read = from + 1;
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_an_ignore_file() {
        #[track_caller]
        fn check(pattern: &str, matching: &[&str], others: &[&str]) {
            for path in matching {
                assert!(matches(pattern, path), "{pattern} must match {path}");
            }
            for path in others {
                assert!(!matches(pattern, path), "{pattern} must not match {path}");
            }
        }
        check("docs/**", &["docs/a", "docs/a/b.yaml"], &["docs", "x/docs/a"]);
        check("docs", &["docs", "docs/a", "x/docs/a"], &["docs2/a"]);
        check("/docs", &["docs/a"], &["x/docs/a"]);
        check("docs/", &["docs/a", "x/docs/a"], &["docs2"]);
        check("*.test.yaml", &["a.test.yaml", "x/y/a.test.yaml"], &["a.yaml", "test.yaml"]);
        check("a/*/c", &["a/b/c", "a/b/c/d"], &["a/c", "a/b/b/c"]);
        check("a/**/c", &["a/c", "a/b/c", "a/b/b/c"], &["x/a/c"]);
        check("**/c", &["c", "a/c"], &["ac"]);
        check("?.yaml", &["a.yaml", "é.yaml"], &["ab.yaml"]);
        check("a*b*c", &["abc", "aXbYc", "abbc"], &["ab", "acb"]);
        check("", &[], &["", "a"]);
        check("/", &[], &["", "a"]);
    }

    #[test]
    fn a_hostile_pattern_is_cheap() {
        assert!(!matches(&"*a".repeat(200), &"a".repeat(199)));
        assert!(!matches(&"**/a/".repeat(200), &["a"; 150].join("/")));
    }
}
