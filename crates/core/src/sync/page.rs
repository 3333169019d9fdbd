//! The page of a source: its recorded status for people, as HTML that needs nothing else.
//!
//! Whatever comes from a repository or a cluster is text here, never markup. Never shows a value of an object.

use std::fmt::Write;

use super::reason::short;
use crate::{
    api::{GitRevision, GitSourceStatus, constants::condition},
    kubernetes::foreign,
};

/// A source as it is shown.
#[derive(Debug, Clone)]
pub struct Shown {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Where its repository is.
    pub repository: String,
    /// The folder that is read.
    pub path: String,
    /// What it has reached.
    pub status: GitSourceStatus,
}

/// How many objects are listed.
const MOST: usize = 500;

/// The page of one source.
pub fn one(shown: &Shown) -> String {
    let status = &shown.status;
    let mut body = String::new();
    let title = format!("{}/{}", shown.namespace, shown.name);
    let ready = status.conditions.iter().find(|told| told.r#type == condition::READY);
    let (state, words) = ready.map_or(("Unknown", "nothing is known yet"), |told| (&told.status, &told.message));
    // Writing to a string does not fail.
    let _ = write!(
        body,
        "<h1>{}</h1><p class={}>{}: {}</p><p>{} <code>{}</code></p>",
        text(&title),
        match state {
            "True" => "good",
            "False" => "bad",
            _ => "wait",
        },
        match state {
            "True" => "rolled out",
            "False" => "failed",
            _ => "under way",
        },
        text(words),
        text(&shown.repository),
        text(if shown.path.is_empty() { "/" } else { &shown.path }),
    );
    for told in status.conditions.iter().filter(|told| told.r#type == condition::REPORTED) {
        let _ = write!(body, "<p class=bad>commit statuses cannot be posted: {}</p>", text(&told.message));
    }
    body += "<table>";
    for (word, revision) in [("seen", &status.seen), ("applied", &status.applied), ("rolled out", &status.rolled_out)] {
        body += &row(word, revision.as_ref());
    }
    body += "</table>";
    let held = status
        .held
        .iter()
        .map(|held| format!("{} {}: {} (commit {})", held.kind, held.name, held.reason, short(&held.commit)));
    body += &list("held", held);
    let problems = status.problems.iter().map(|problem| match (problem.file.as_str(), problem.line) {
        ("", _) => problem.message.clone(),
        (file, 0) => format!("{file}: {}", problem.message),
        (file, line) => format!("{file}:{line}: {}", problem.message),
    });
    body += &list("problems", problems);
    let objects = status.inventory.iter().take(MOST).map(|entry| match entry.namespace.as_str() {
        "" => format!("{} {}", entry.kind, entry.name),
        namespace => format!("{} {namespace}/{}", entry.kind, entry.name),
    });
    body += &list(&format!("{} objects", status.inventory.len()), objects);
    page(&title, &body)
}

/// The page of all sources.
pub fn all<'s>(shown: impl Iterator<Item = &'s Shown>) -> String {
    let mut body = "<h1>sources</h1><table>".to_owned();
    for source in shown {
        let ready = source.status.conditions.iter().find(|told| told.r#type == condition::READY);
        // Names of objects are made of letters, digits, dots and dashes.
        let _ = write!(
            body,
            "<tr><td><a href=\"/sources/{0}/{1}\">{0}/{1}</a></td><td>{2}</td></tr>",
            text(&source.namespace),
            text(&source.name),
            text(ready.map_or("", |told| told.message.as_str())),
        );
    }
    page("sources", &(body + "</table>"))
}

/// A page of one sentence.
pub fn message(words: &str) -> String {
    page("tidegate", &format!("<p>{}</p>", text(words)))
}

fn row(word: &str, revision: Option<&GitRevision>) -> String {
    match revision {
        Some(revision) => format!(
            "<tr><td>{word}</td><td><code>{}</code></td><td>{}</td><td>{}</td></tr>",
            text(short(&revision.commit)),
            text(&revision.subject),
            text(&revision.at.map(|at| at.to_string()).unwrap_or_default()),
        ),
        None => format!("<tr><td>{word}</td><td>none yet</td></tr>"),
    }
}

fn list(title: &str, items: impl Iterator<Item = String>) -> String {
    let items: String = items.map(|item| format!("<li>{}</li>", text(&item))).collect();
    if items.is_empty() { String::new() } else { format!("<h2>{}</h2><ul>{items}</ul>", text(title)) }
}

/// Text that means nothing else to a browser.
fn text(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for c in foreign::line(raw).chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            c => out.push(c),
        }
    }
    out
}

fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\"><title>{}</title>\
         <style>body{{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}}td{{padding-right:1.5em}}\
         .good{{color:#17692b}}.bad{{color:#a3182b}}.wait{{color:#7a5300}}</style><body>{body}</body></html>\n",
        text(title)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Condition, HeldObject, InventoryEntry, SourceProblem, Time};

    #[test]
    fn a_page_says_what_the_status_says_and_markup_from_outside_is_text() {
        let told = Condition {
            r#type: "Ready".into(),
            status: "False".into(),
            observed_generation: 1,
            last_transition_time: Time::from(jiff::Timestamp::UNIX_EPOCH),
            reason: "RolloutFailed".into(),
            message: "web: aborted: <script>alert(1)</script>".into(),
        };
        let revision =
            GitRevision { commit: "a".repeat(40), subject: "\"><img src=x>".into(), ..GitRevision::default() };
        let status = GitSourceStatus {
            conditions: vec![told],
            seen: Some(revision),
            held: vec![HeldObject {
                kind: "Rollout".into(),
                name: "web".into(),
                reason: "<b>".into(),
                ..Default::default()
            }],
            problems: vec![SourceProblem { file: "a.yaml".into(), line: 3, message: "no & never".into() }],
            inventory: vec![InventoryEntry {
                kind: "Rollout".into(),
                namespace: "shop".into(),
                name: "web".into(),
                ..Default::default()
            }],
            ..GitSourceStatus::default()
        };
        let shown = Shown {
            namespace: "shop".into(),
            name: "web".into(),
            repository: "https://git.example/shop".into(),
            path: "deploy".into(),
            status,
        };
        let page = one(&shown);
        for words in [
            "failed: web: aborted: &lt;script&gt;alert(1)&lt;/script&gt;",
            "<code>aaaaaaaa</code>",
            "&quot;&gt;&lt;img src=x&gt;",
            "a.yaml:3: no &amp; never",
            "Rollout shop/web",
        ] {
            assert!(page.contains(words), "{words}: {page}");
        }
        assert!(!page.contains("<script") && !page.contains("<img") && !page.contains("<b>"));
        assert!(all([&shown].into_iter()).contains("href=\"/sources/shop/web\""));
    }
}
