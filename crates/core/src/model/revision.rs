//! Revisions: the numbers that order a Rollout's versions, kept in annotations.
//!
//! A new version gets the highest number so far plus one; a version that is returned to gets a new number and keeps its
//! old ones in a history. Never lowers a number.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::{
    api::constants::annotation::{DESIRED_REPLICAS, LAST_APPLIED, NOTIFIED, REVISION, REVISION_HISTORY},
    kubernetes::status::go_quoted,
};

/// What is on a Rollout for its own sake, and is not copied to its ReplicaSets.
const NOT_COPIED: [&str; 5] = [LAST_APPLIED, REVISION, REVISION_HISTORY, DESIRED_REPLICAS, NOTIFIED];

/// Whether an annotation of a Rollout is copied to its ReplicaSets.
pub fn is_copied(key: &str) -> bool {
    !NOT_COPIED.contains(&key)
}

/// The annotations of an object.
pub type Annotations = BTreeMap<String, String>;

/// A number that cannot be read, in Go's words.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unreadable {
    /// It is no decimal number.
    #[error("strconv.ParseInt: parsing {}: invalid syntax", go_quoted(.0))]
    Syntax(String),
    /// It does not fit.
    #[error("strconv.ParseInt: parsing {}: value out of range", go_quoted(.0))]
    Range(String),
}

/// The revision of an object; 0 if it has none.
pub fn of(annotations: &Annotations) -> Result<i64, Unreadable> {
    annotations.get(REVISION).map_or(Ok(0), |text| parse(text))
}

/// The revision that is noted on an object, if there is one that can be read.
pub fn noted(annotations: &Annotations) -> Option<i64> {
    annotations.get(REVISION).and_then(|text| parse(text).ok())
}

/// The highest among the revisions that are noted on ReplicaSets; what cannot be read does not count.
pub fn highest<'a>(noted: impl IntoIterator<Item = &'a str>) -> i64 {
    noted.into_iter().filter_map(|text| parse(text).ok()).max().unwrap_or_default().max(0)
}

/// What an update of a ReplicaSet's annotations did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update {
    /// The ReplicaSet must be written.
    Changed,
    /// It is as it should be; or its revision cannot be read, and it is left to a person.
    Unchanged,
}

/// Brings the annotations of the ReplicaSet of the current template up to date: copies the Rollout's, raises the revision,
/// remembers the old one, and notes the Rollout's size on a set that is about to be created (`created_for`).
pub fn update(
    annotations: &mut Annotations,
    rollout: &Annotations,
    revision: &str,
    created_for: Option<i32>,
) -> Update {
    let mut changed = false;
    for (key, value) in rollout.iter().filter(|(key, _)| is_copied(key)) {
        // An absent annotation reads as an empty one, so an empty one is never added.
        if annotations.get(key).map_or("", String::as_str) != value {
            annotations.insert(key.clone(), value.clone());
            changed = true;
        }
    }
    let before = annotations.get(REVISION).cloned();
    let number = match before.as_deref() {
        None | Some("") => Ok(0),
        Some(text) => parse(text),
    };
    let (Ok(number), Ok(raised)) = (number, parse(revision)) else { return Update::Unchanged };
    if number < raised {
        annotations.insert(REVISION.to_owned(), revision.to_owned());
        changed = true;
    }
    // A set that had a revision and is written again: remember what it was.
    if let Some(before) = before.filter(|_| changed) {
        let history = annotations.entry(REVISION_HISTORY.to_owned()).or_default();
        // A history that begins with nothing is started anew.
        *history = if history.is_empty() || history.starts_with(',') { before } else { format!("{history},{before}") };
    }
    if let Some(size) = created_for.map(|size| size.to_string())
        && annotations.get(DESIRED_REPLICAS) != Some(&size)
    {
        annotations.insert(DESIRED_REPLICAS.to_owned(), size);
        changed = true;
    }
    if changed { Update::Changed } else { Update::Unchanged }
}

/// Reads a number as Go does.
pub fn parse(text: &str) -> Result<i64, Unreadable> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Unreadable::Syntax(text.to_owned()));
    }
    text.parse().map_err(|_| Unreadable::Range(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(pairs: &[(&str, &str)]) -> Annotations {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_version_that_is_returned_to_remembers_its_old_numbers() {
        let mut set = notes(&[(REVISION, "1")]);
        assert_eq!(update(&mut set, &Annotations::new(), "3", None), Update::Changed);
        assert_eq!(set, notes(&[(REVISION, "3"), (REVISION_HISTORY, "1")]));
        assert_eq!(update(&mut set, &Annotations::new(), "5", None), Update::Changed);
        assert_eq!(set, notes(&[(REVISION, "5"), (REVISION_HISTORY, "1,3")]));
        assert_eq!(update(&mut set, &Annotations::new(), "5", None), Update::Unchanged);
        assert_eq!(update(&mut set, &Annotations::new(), "2", None), Update::Unchanged);
    }

    #[test]
    fn numbers_are_refused_in_gos_words() {
        assert_eq!(parse("1.5").unwrap_err().to_string(), r#"strconv.ParseInt: parsing "1.5": invalid syntax"#);
        assert_eq!(
            parse("9223372036854775808").unwrap_err().to_string(),
            r#"strconv.ParseInt: parsing "9223372036854775808": value out of range"#
        );
        assert_eq!(parse("-9223372036854775808"), Ok(i64::MIN));
        assert_eq!(highest(["x", "7", "", "-8"]), 7);
    }
}
