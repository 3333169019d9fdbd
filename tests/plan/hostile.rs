//! What a pull request says must stay what it says: data.

use tidegate::{
    manifest,
    plan::{Side, output},
    sim::plan::{Reading, Sides, make},
};

use crate::cases::rules;

const NASTY: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: nasty\n  annotations:\n    a: \"```\\n</details>\\n# pwned @team #1 <script>alert(1)</script>\\n::error::x\"\n\
data:\n  k: \"````\\n<img src=x onerror=alert(1)>\\u202e\\e[31m\"\n---\n\
apiVersion: example.org/v1\nkind: \"Wid`get|<b>\"\nmetadata:\n  name: \"a`b|c<script>@team - x\"\nspec: {x: 1}\n---\n\
apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: \"a\\n# pwned <img> @team\"\n";

fn plan() -> tidegate::plan::Plan {
    let side = |name: &str, text: &str| {
        let files = vec![manifest::read("deploy/`x`|<y>.yaml", text.as_bytes())];
        Reading::of(Side { name: name.into(), commit: String::new() }, files)
    };
    make(&Sides { old: side("`main`<b>", ""), new: side("@team", NASTY) }, &rules())
}

#[test]
fn markdown_cannot_be_left() {
    let plan = plan();
    assert_eq!((plan.objects.len(), plan.problems.len()), (2, 1), "{:?}", plan.problems);
    let text = output::markdown(&plan, output::LIMIT, &|_| None);
    // What is not in a fence or a code span.
    let mut fence: Option<String> = None;
    let mut outside = String::new();
    for line in text.lines() {
        let ticks: String = line.chars().take_while(|c| *c == '`').collect();
        match &fence {
            Some(open) if ticks.len() >= open.len() && line.trim_end() == ticks => fence = None,
            Some(_) => {}
            None if ticks.len() >= 3 => fence = Some(ticks),
            None => outside += &(without_spans(line) + "\n"),
        }
    }
    assert_eq!(fence, None, "a fence is left open:\n{text}");
    for word in ["<script", "<img", "pwned", "::error", "<b>", "@team", "<y>"] {
        assert!(!outside.contains(word), "{word} got out:\n{outside}");
    }
    assert_eq!(outside.matches("<details>").count(), outside.matches("</details>").count());
    assert!(!text.contains('\u{202e}') && !text.contains('\u{1b}'), "{text}");
}

/// A line without what stands in code spans.
fn without_spans(line: &str) -> String {
    let (mut out, mut rest) = (String::new(), line);
    while let Some(at) = rest.find('`') {
        out += &rest[..at];
        let ticks = rest[at..].len() - rest[at..].trim_start_matches('`').len();
        let body = &rest[at + ticks..];
        let mut end = None;
        let mut from = 0;
        while let Some(found) = body[from..].find('`') {
            let start = from + found;
            let run = body[start..].len() - body[start..].trim_start_matches('`').len();
            if run == ticks {
                end = Some(start + run);
                break;
            }
            from = start + run;
        }
        let Some(end) = end else { return out + &rest[at..] };
        rest = &body[end..];
    }
    out + rest
}

#[test]
fn html_has_no_tag_of_theirs() {
    let text = output::html(&plan());
    for word in ["<script", "<img", "<b>|", "<y>", "onerror=alert(1)>"] {
        assert!(!text.contains(word), "{word} got through:\n{text}");
    }
    assert!(text.contains("default-src 'none'"));
}

#[test]
fn a_terminal_sees_no_escape_of_theirs() {
    let text = output::text(&plan());
    assert!(!text.contains("\u{1b}[31malert") && !text.contains('\u{202e}'));
    let plain = anstream::adapter::strip_str(&text).to_string();
    assert!(!plain.contains('\u{1b}'), "{plain}");
}

#[test]
fn a_plan_of_thousands_of_objects_fits_a_comment_and_stays_whole() {
    let object = |number: usize| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: map-{number}}}\ndata: {{k: \"{}\"}}\n---\n",
            "x".repeat(200)
        )
    };
    let text: String = (0..5000).map(object).collect();
    let files = vec![manifest::read("deploy/all.yaml", text.as_bytes())];
    let side = |files| Reading::of(Side::default(), files);
    let plan = make(&Sides { old: side(Vec::new()), new: side(files) }, &rules());
    assert_eq!(plan.objects.len(), 5000);
    for limit in [65_000, 20_000, 2_000] {
        let text = output::markdown(&plan, limit, &|_| None);
        assert!(text.len() <= limit, "{} for {limit}", text.len());
        assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
        assert!(text.contains("5000 to create"));
    }
    assert!(output::text(&plan).lines().count() < 2500, "folds");
}
