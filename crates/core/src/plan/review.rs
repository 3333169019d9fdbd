//! Whether a commit changes what was reviewed: the plan hash that its message names, against the one of what it brings.
//!
//! A trailer says what somebody planned; that the content is the same is what is checked. Never reads a repository.

use std::fmt;

/// The trailer of a commit message that names the reviewed plan.
pub const TRAILER: &str = "Tidegate-Plan";
/// So many digits name a plan beyond doubt in one repository.
const LEAST: usize = 12;

/// How a commit compares with the plan that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Review {
    /// It brings what was reviewed.
    Same(String),
    /// It brings something else.
    Other {
        /// What was reviewed.
        reviewed: String,
        /// What it brings.
        brings: String,
    },
}

impl Review {
    /// Compares the plan that messages name with the hash of what the commit brings; `None` if they name none.
    pub fn of<'m>(messages: impl IntoIterator<Item = &'m str>, hash: &str) -> Option<Review> {
        let reviewed = messages.into_iter().find_map(reviewed)?;
        Some(if hash.starts_with(&reviewed) {
            Review::Same(reviewed)
        } else {
            Review::Other { reviewed, brings: hash.to_owned() }
        })
    }
}

impl fmt::Display for Review {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |hash: &'_ str| hash.get(..LEAST).unwrap_or(hash).to_owned();
        match self {
            Review::Same(plan) => write!(f, "as in the reviewed plan {}", short(plan)),
            Review::Other { reviewed, brings } => {
                write!(f, "not the reviewed plan {}: this is plan {}", short(reviewed), short(brings))
            }
        }
    }
}

/// The plan that a message names in its last paragraph, where trailers stand.
pub fn reviewed(message: &str) -> Option<String> {
    let last = message.trim_end().rsplit("\n\n").next()?;
    let trailers = last.lines().rev().filter_map(|line| line.split_once(':'));
    let named = trailers.filter(|(key, _)| key.trim().eq_ignore_ascii_case(TRAILER)).map(|(_, value)| value.trim());
    let is_hash = |value: &&str| {
        (LEAST..=64).contains(&value.len())
            && value.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    named.filter(is_hash).map(str::to_owned).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trailer_names_the_reviewed_plan() {
        let hash = "0123456789abcdef".repeat(4);
        let message = |value: &str| format!("web 2\n\nwhy\n\nSigned-off-by: a\nTidegate-Plan: {value}\n");
        assert_eq!(reviewed(&message(&hash)), Some(hash.clone()));
        assert_eq!(reviewed(&message(&hash[..12])), Some(hash[..12].to_owned()));
        for other in ["", "0123", "not-a-hash-at-all", &hash.to_uppercase(), &format!("{hash}0")] {
            assert_eq!(reviewed(&message(other)), None, "{other}");
        }
        assert_eq!(reviewed(&format!("Tidegate-Plan: {hash}\n\nquoted above")), None, "only trailers count");
    }

    #[test]
    fn a_commit_is_compared_with_the_first_plan_that_is_named() {
        let (one, two) = ("a".repeat(64), "b".repeat(64));
        let named = format!("merge\n\nTidegate-Plan: {}", &one[..12]);
        assert_eq!(Review::of([named.as_str()], &one).unwrap().to_string(), "as in the reviewed plan aaaaaaaaaaaa");
        assert_eq!(
            Review::of(["nothing", named.as_str()], &two).unwrap().to_string(),
            "not the reviewed plan aaaaaaaaaaaa: this is plan bbbbbbbbbbbb"
        );
        assert_eq!(Review::of(["nothing"], &one), None);
    }
}
