//! Ranges of versions, and the tag that is highest in one.
//!
//! Alternatives are separated by `||`, conditions by blanks or commas: `>=1.2.0 <2.0.0 || 3.x`. A version without an
//! operator means itself (`1.2.3`), or every one that it begins (`1.2`, `1.2.x`). Versions with a pre-release count only
//! where the range names one of the same version. Never guesses: a tag that is not a version is not one.

use semver::{Version, VersionReq};

/// A range of versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRange(Vec<VersionReq>);

impl VersionRange {
    /// Reads a range, or says what is wrong.
    pub fn parse(text: &str) -> Result<VersionRange, String> {
        if text.trim().is_empty() {
            return Err("a range of versions is empty".to_owned());
        }
        text.split("||").map(alternative).collect::<Result<_, _>>().map(VersionRange)
    }

    /// Whether a version is in the range.
    pub fn contains(&self, version: &Version) -> bool {
        self.0.iter().any(|range| range.matches(version))
    }

    /// The tag with the highest version in the range. Of two tags with one version, such as `1.0.0` and `v1.0.0`, the
    /// later by name, so that the answer does not depend on the order in which a server lists them.
    pub fn highest<'a>(&self, tags: impl Iterator<Item = &'a str>) -> Option<(&'a str, Version)> {
        let versions = tags.filter_map(|tag| Some((tag, version(tag)?)));
        let inside = versions.filter(|(_, version)| self.contains(version));
        inside.max_by(|(one_tag, one), (other_tag, other)| one.cmp(other).then(one_tag.cmp(other_tag)))
    }
}

/// The version that a tag names; a leading `v` does not count.
pub fn version(tag: &str) -> Option<Version> {
    Version::parse(tag.strip_prefix('v').unwrap_or(tag)).ok()
}

fn alternative(text: &str) -> Result<VersionReq, String> {
    let text = text.trim();
    if matches!(text, "*" | "x" | "X") {
        return Ok(VersionReq::STAR);
    }
    if text.contains(" - ") {
        return Err(format!("{text:?} is a range with a dash; write >= and <= instead"));
    }
    let mut conditions: Vec<String> = Vec::new();
    for word in text.split([' ', '\t', ',']).filter(|word| !word.is_empty()) {
        match conditions.last_mut() {
            // `>= 1.2` is one condition.
            Some(last) if last.ends_with(['<', '>', '=', '~', '^']) => last.push_str(plain(word)),
            _ => {
                let operator = word.len() - word.trim_start_matches(['<', '>', '=', '~', '^']).len();
                let operator_or_equal = if operator == 0 { "=" } else { &word[..operator] };
                conditions.push(format!("{operator_or_equal}{}", plain(&word[operator..])));
            }
        }
    }
    VersionReq::parse(&conditions.join(", ")).map_err(|error| format!("{text:?} is no range of versions: {error}"))
}

fn plain(version: &str) -> &str {
    version.strip_prefix('v').unwrap_or(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAGS: [&str; 9] = ["v1.0.0", "1.2.0", "v1.10.0", "1.9.9", "v2.0.0-rc.1", "v2.0.0", "3.0.0", "latest", "v4"];

    #[test]
    fn the_highest_tag_of_a_range_is_found() {
        #[track_caller]
        fn check(range: &str, expected: Option<&str>) {
            let found = VersionRange::parse(range).unwrap().highest(TAGS.into_iter()).map(|(tag, _)| tag);
            assert_eq!(found, expected, "{range}");
        }
        check(">=1.2.0 <2.0.0", Some("v1.10.0"));
        check(">=1.2.0, <2.0.0", Some("v1.10.0"));
        check(">= v1.2.0 < v2.0.0", Some("v1.10.0"));
        check("1.x", Some("v1.10.0"));
        check("1", Some("v1.10.0"));
        check("1.2", Some("1.2.0"));
        check("1.2.0", Some("1.2.0"));
        check("~1.9", Some("1.9.9"));
        check("^1.2", Some("v1.10.0"));
        check("*", Some("3.0.0"));
        check("<2.0.0 || 2.x", Some("v2.0.0"));
        check(">=2.0.0-rc.0 <2.0.0", Some("v2.0.0-rc.1"));
        check(">9", None);
    }

    #[test]
    fn a_range_that_is_none_is_refused() {
        for range in ["", " ", "newest", ">=", "1.2 - 1.4", "1.2.3.4", "||", ">=1 ||", "main"] {
            assert!(VersionRange::parse(range).is_err(), "{range}");
        }
    }

    #[test]
    fn the_order_of_the_tags_does_not_matter() {
        let range = VersionRange::parse("*").unwrap();
        assert_eq!(range.highest(["1.0.0", "v1.0.0"].into_iter()), range.highest(["v1.0.0", "1.0.0"].into_iter()));
    }
}
