//! Words that were probably meant: the nearest of a list by edit distance. Knows nothing about what the words are.

/// The nearest of `known`, if it is near enough for a slip of the fingers.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    // Of a very short word every other is near.
    let limit = (word.chars().count() / 3).min(4);
    let near = known.into_iter().map(|known| (distance(word, known, limit), known));
    near.filter(|(distance, _)| *distance <= limit).min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

/// How many letters to change, add, drop or swap with a neighbour; `limit + 1` if more than `limit`. Case costs nothing:
/// `setweight` is `setWeight`.
fn distance(a: &str, b: &str, limit: usize) -> usize {
    let letters = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<Vec<char>>();
    let (a, b) = (letters(a), letters(b));
    if a.len().abs_diff(b.len()) > limit {
        return limit + 1;
    }
    // Two rows back, one row back, this row.
    let (mut before, mut last, mut row) =
        (vec![0; b.len() + 1], (0..=b.len()).collect::<Vec<_>>(), vec![0; b.len() + 1]);
    for (i, x) in a.iter().enumerate() {
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = last[j] + usize::from(x != y);
            row[j + 1] = change.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        std::mem::swap(&mut before, &mut last);
        std::mem::swap(&mut last, &mut row);
    }
    last[b.len()]
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
