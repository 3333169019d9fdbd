//! Words that were probably meant: the nearest of a list by edit distance. Knows nothing about what the words are.

/// The nearest of `known`, if it is near enough for a slip of the fingers.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    // Of a very short word every other is near.
    let limit = (word.chars().count() / 3).min(4);
    // Case costs nothing: `setweight` is `setWeight`.
    let word = word.to_lowercase();
    let near = known.into_iter().map(|known| (strsim::osa_distance(&word, &known.to_lowercase()), known));
    near.filter(|(distance, _)| *distance <= limit).min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let fields = ["setWeight", "setCanaryScale", "pause", "analysis", "replicas"];
        let rows = [
            ("setweight", Some("setWeight")),
            ("setWieght", Some("setWeight")),
            ("pausse", Some("pause")),
            ("replica", Some("replicas")),
            ("setCanaryWeight", None),
            ("x", None),
            ("", None),
        ];
        for (word, meant) in rows {
            assert_eq!(nearest(word, fields), meant, "{word}");
        }
    }
}
