//! A unified diff of two texts, cut where the real server's library cuts it.
//!
//! The matching is that of Python's difflib, which the Go library follows: the longest common run of lines first, then
//! the rest on both sides of it; in a long text, lines that repeat a lot do not start a run.

use std::collections::HashMap;

/// How many equal lines are shown around a change.
const CONTEXT: usize = 3;

/// A run of equal lines: where it starts in the old and in the new text, and its length.
type Run = (usize, usize, usize);

/// The changes from `old` to `new`; empty if there are none.
pub(super) fn unified(old: &str, new: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let mut runs = Vec::new();
    find_runs(&a, &b, &places(&b), (0, a.len()), (0, b.len()), &mut runs);
    runs.push((a.len(), b.len(), 0));
    let mut out = String::new();
    for group in group(changes(&runs)) {
        hunk(&mut out, &a, &b, &group);
    }
    out
}

/// Where each line stands in the text, but for lines that stand in too many places.
fn places<'t>(lines: &[&'t str]) -> HashMap<&'t str, Vec<usize>> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (i, line) in lines.iter().enumerate() {
        places.entry(line).or_default().push(i);
    }
    if lines.len() >= 200 {
        let many = lines.len() / 100 + 1;
        places.retain(|_, at| at.len() <= many);
    }
    places
}

fn find_runs(
    a: &[&str],
    b: &[&str],
    places: &HashMap<&str, Vec<usize>>,
    (a_from, a_to): (usize, usize),
    (b_from, b_to): (usize, usize),
    runs: &mut Vec<Run>,
) {
    let (mut i, mut j, mut length) = (a_from, b_from, 0);
    let mut ending_at: HashMap<usize, usize> = HashMap::new();
    for (x, line) in a.iter().enumerate().take(a_to).skip(a_from) {
        let mut next = HashMap::new();
        for &y in places.get(line).map(Vec::as_slice).unwrap_or_default() {
            if !(b_from..b_to).contains(&y) {
                continue;
            }
            let run = y.checked_sub(1).and_then(|y| ending_at.get(&y)).unwrap_or(&0) + 1;
            next.insert(y, run);
            if run > length {
                (i, j, length) = (x + 1 - run, y + 1 - run, run);
            }
        }
        ending_at = next;
    }
    while i > a_from && j > b_from && a[i - 1] == b[j - 1] {
        (i, j, length) = (i - 1, j - 1, length + 1);
    }
    while i + length < a_to && j + length < b_to && a[i + length] == b[j + length] {
        length += 1;
    }
    if length == 0 {
        return;
    }
    find_runs(a, b, places, (a_from, i), (b_from, j), runs);
    match runs.last_mut() {
        Some((x, y, before)) if *x + *before == i && *y + *before == j => *before += length,
        _ => runs.push((i, j, length)),
    }
    find_runs(a, b, places, (i + length, a_to), (j + length, b_to), runs);
}

/// A stretch of both texts.
#[derive(Clone, Copy)]
struct Stretch {
    equal: bool,
    a: (usize, usize),
    b: (usize, usize),
}

fn changes(runs: &[Run]) -> Vec<Stretch> {
    let mut all = Vec::new();
    let (mut i, mut j) = (0, 0);
    for &(x, y, length) in runs {
        if i < x || j < y {
            all.push(Stretch { equal: false, a: (i, x), b: (j, y) });
        }
        (i, j) = (x + length, y + length);
        if length > 0 {
            all.push(Stretch { equal: true, a: (x, i), b: (y, j) });
        }
    }
    all
}

impl Stretch {
    /// Its first equal lines only.
    fn head(self) -> Stretch {
        let (a, b) = (self.a, self.b);
        Stretch { a: (a.0, a.1.min(a.0 + CONTEXT)), b: (b.0, b.1.min(b.0 + CONTEXT)), ..self }
    }

    /// Its last equal lines only.
    fn tail(self) -> Stretch {
        let (a, b) = (self.a, self.b);
        let start = |(from, to): (usize, usize)| from.max(to.saturating_sub(CONTEXT));
        Stretch { a: (start(a), a.1), b: (start(b), b.1), ..self }
    }
}

/// Changes that are close together, with the equal lines around them.
fn group(mut all: Vec<Stretch>) -> Vec<Vec<Stretch>> {
    if let Some(first) = all.first_mut().filter(|first| first.equal) {
        *first = first.tail();
    }
    if let Some(last) = all.last_mut().filter(|last| last.equal) {
        *last = last.head();
    }
    let mut groups = vec![Vec::new()];
    for stretch in all {
        let far = stretch.equal && stretch.a.1 - stretch.a.0 > 2 * CONTEXT;
        if let Some(group) = groups.last_mut() {
            group.push(if far { stretch.head() } else { stretch });
        }
        if far {
            groups.push(vec![stretch.tail()]);
        }
    }
    groups.retain(|group| group.iter().any(|stretch| !stretch.equal));
    groups
}

fn hunk(out: &mut String, a: &[&str], b: &[&str], group: &[Stretch]) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
    let range = |from: usize, to: usize| match to - from {
        0 => format!("{from},0"),
        1 => format!("{}", from + 1),
        length => format!("{},{length}", from + 1),
    };
    let (old, new) = (range(first.a.0, last.a.1), range(first.b.0, last.b.1));
    out.push_str(&format!("@@ -{old} +{new} @@\n"));
    let mut lines = |mark: char, lines: &[&str]| {
        for line in lines {
            out.push(mark);
            out.push_str(line);
            out.push('\n');
        }
    };
    for stretch in group {
        if stretch.equal {
            lines(' ', &a[stretch.a.0..stretch.a.1]);
        } else {
            lines('-', &a[stretch.a.0..stretch.a.1]);
            lines('+', &b[stretch.b.0..stretch.b.1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_shows_three_lines_around_each_change() {
        let rows = [
            ("a\nb\nc", "a\nb\nc", ""),
            ("1\n2\n3\n4\n5\n6", "1\n2\n3\n4\nx\n6", "@@ -2,5 +2,5 @@\n 2\n 3\n 4\n-5\n+x\n 6\n"),
            ("1\n2", "1\n2\n3", "@@ -1,2 +1,3 @@\n 1\n 2\n+3\n"),
            (
                "x\n1\n2\n3\n4\n5\n6\n7\n8\ny",
                "a\n1\n2\n3\n4\n5\n6\n7\n8\nb",
                "@@ -1,4 +1,4 @@\n-x\n+a\n 1\n 2\n 3\n@@ -7,4 +7,4 @@\n 6\n 7\n 8\n-y\n+b\n",
            ),
            ("a\nb\nc\nd\ne", "a\nx\nc\nd\ny", "@@ -1,5 +1,5 @@\n a\n-b\n+x\n c\n d\n-e\n+y\n"),
        ];
        for (old, new, diff) in rows {
            assert_eq!(unified(old, new), diff);
        }
    }
}
