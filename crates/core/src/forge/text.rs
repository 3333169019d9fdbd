//! Words within a host's bounds.

/// At most so many characters; what is cut ends with an ellipsis, but for the number of others at its end: `… (and 2 more)`.
/// Line breaks become blanks.
pub fn cut(text: &str, most: usize) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() <= most {
        return text;
    }
    let others = text.rfind(" (and ").map(|at| &text[at..]).filter(|end| end.ends_with(" more)") && end.len() < 20);
    let others = others.filter(|end| end.len() < most).unwrap_or_default();
    let short: String = text.chars().take(most.saturating_sub(1 + others.len())).collect();
    format!("{short}…{others}")
}

/// A name of at most so many characters; a longer one becomes its digest, so that two names stay two.
pub fn key(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    let digest = ring::digest::digest(&ring::digest::SHA256, name.as_bytes());
    let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    hex.chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_cut_by_characters() {
        assert_eq!(cut("a  b\nc", 10), "a b c");
        assert_eq!(cut("äöüäöü", 4), "äöü…");
        assert_eq!(cut(&"x".repeat(141), 140).chars().count(), 140);
        assert_eq!(cut(&"x".repeat(140), 140), "x".repeat(140));
        assert_eq!(cut("web: it failed for a reason (and 2 more)", 24), "web: it fa… (and 2 more)");
        assert_eq!(cut("(and 2 more) of those that failed", 10), "(and 2 mo…");
    }

    #[test]
    fn long_names_stay_different() {
        assert_eq!(key("tidegate/web", 40), "tidegate/web");
        let (one, other) = (key(&"x".repeat(41), 40), key(&"x".repeat(42), 40));
        assert_eq!((one.len(), other.len()), (40, 40));
        assert_ne!(one, other);
    }
}
