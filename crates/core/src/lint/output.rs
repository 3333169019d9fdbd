//! A report as text for people, JSON, SARIF, or commands for GitHub's runner. Returns text; prints nothing.

use std::fmt::Write;

use serde_json::{Value as Json, json};

use super::{
    Finding, Report, Spot,
    rule::{Rule, Severity},
};
use crate::manifest::snippet::{self, Note, Weight};

/// For people: each finding with the lines it is about, and a summary.
pub fn text(report: &Report, colour: bool) -> String {
    let mut out = String::new();
    for finding in &report.findings {
        let note = Note {
            weight: match finding.rule.severity() {
                Severity::Error => Weight::Error,
                Severity::Warning => Weight::Warning,
                Severity::Hint => Weight::Hint,
            },
            code: finding.rule.name(),
            what: &finding.what,
            at: (&finding.at.source, finding.at.span),
            also: finding.also.iter().map(|(spot, said)| (&*spot.source, spot.span, said.as_str())).collect(),
            remedy: &finding.remedy,
        };
        out.push_str(&snippet::render(&note, colour));
        out.push_str("\n\n");
    }
    out.push_str(&summary(report));
    out.push('\n');
    out
}

/// One line: what was looked at and what it came to.
pub fn summary(report: &Report) -> String {
    let looked = format!("{} in {}", counted(report.objects, "object"), counted(report.files, "file"));
    let counts: Vec<String> = [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Hint, "hint")]
        .into_iter()
        .map(|(severity, word)| (report.count(severity), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| counted(count, word))
        .collect();
    match &counts[..] {
        [] => format!("{looked}: nothing to complain about"),
        [one] => format!("{looked}: {one}"),
        [first @ .., last] => format!("{looked}: {} and {last}", first.join(", ")),
    }
}

fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// For programs.
pub fn json(report: &Report) -> String {
    let findings: Vec<Json> = report
        .findings
        .iter()
        .map(|finding| {
            let mut entry = json!({
                "rule": finding.rule.name(),
                "severity": finding.rule.severity().to_string(),
                "message": finding.what,
                "remedy": finding.remedy,
                "object": finding.object,
                "field": finding.field,
                "related": finding.also.iter().map(|(spot, said)| merged(place(spot), json!({"message": said}))).collect::<Vec<_>>(),
            });
            entry = merged(entry, place(&finding.at));
            entry
        })
        .collect();
    let whole = json!({
        "findings": findings,
        "summary": {
            "files": report.files,
            "objects": report.objects,
            "errors": report.count(Severity::Error),
            "warnings": report.count(Severity::Warning),
            "hints": report.count(Severity::Hint),
        },
    });
    pretty(&whole)
}

fn pretty(value: &Json) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

fn merged(mut into: Json, from: Json) -> Json {
    if let (Json::Object(into), Json::Object(from)) = (&mut into, from) {
        into.extend(from);
    }
    into
}

fn place(spot: &Spot) -> Json {
    let (start, end) = ends(spot);
    json!({"file": spot.source.name, "line": start.0, "column": start.1, "endLine": end.0, "endColumn": end.1})
}

/// Line and column of both ends; the end is the first character after it.
fn ends(spot: &Spot) -> ((usize, usize), (usize, usize)) {
    let start = spot.source.position(spot.span.start);
    let end = spot.source.position(spot.span.end);
    ((start.line, start.column), (end.line, end.column))
}

/// For code-scanning services: SARIF 2.1.0.
pub fn sarif(report: &Report, version: &str) -> String {
    let mut broken: Vec<Rule> = report.findings.iter().map(|finding| finding.rule).collect();
    broken.sort();
    broken.dedup();
    let rules: Vec<Json> = broken
        .iter()
        .map(|rule| {
            json!({
                "id": rule.name(),
                "shortDescription": {"text": rule.title()},
                "fullDescription": {"text": rule.why()},
                "defaultConfiguration": {"level": level(*rule)},
            })
        })
        .collect();
    let results: Vec<Json> = report.findings.iter().map(|finding| result(finding, &broken)).collect();
    pretty(&json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "tidegate lint", "version": version, "rules": rules}},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    }))
}

fn level(rule: Rule) -> &'static str {
    match rule.severity() {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Hint => "note",
    }
}

fn result(finding: &Finding, rules: &[Rule]) -> Json {
    let mut result = json!({
        "ruleId": finding.rule.name(),
        "ruleIndex": rules.iter().position(|rule| *rule == finding.rule),
        "level": level(finding.rule),
        "message": {"text": sentence(finding)},
        "locations": [location(&finding.at)],
    });
    if !finding.also.is_empty() {
        let related =
            finding.also.iter().map(|(spot, said)| merged(location(spot), json!({"message": {"text": said}})));
        result["relatedLocations"] = related.collect();
    }
    result
}

fn sentence(finding: &Finding) -> String {
    if finding.remedy.is_empty() { finding.what.clone() } else { format!("{}; {}", finding.what, finding.remedy) }
}

fn location(spot: &Spot) -> Json {
    let (start, end) = ends(spot);
    json!({"physicalLocation": {
        "artifactLocation": {"uri": uri(&spot.source.name)},
        "region": {"startLine": start.0, "startColumn": start.1, "endLine": end.0, "endColumn": end.1},
    }})
}

/// A path as a relative reference: what has a meaning in addresses is escaped.
fn uri(path: &str) -> String {
    let mut out = String::new();
    for byte in path.strip_prefix("./").unwrap_or(path).bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => out.push(byte.into()),
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

/// For GitHub's runner: commands that annotate the lines of a pull request.
pub fn github(report: &Report) -> String {
    let mut out = String::new();
    for finding in &report.findings {
        let command = match finding.rule.severity() {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Hint => "notice",
        };
        let (start, end) = ends(&finding.at);
        let file = property(finding.at.source.name.strip_prefix("./").unwrap_or(&finding.at.source.name));
        // The runner takes a column for the end only on the same line.
        let columns = if start.0 == end.0 { format!(",col={},endColumn={}", start.1, end.1) } else { String::new() };
        let title = property(finding.rule.name());
        let message = data(&sentence(finding));
        let _ = writeln!(
            out,
            "::{command} file={file},line={},endLine={}{columns},title={title}::{message}",
            start.0, end.0
        );
    }
    let _ = writeln!(out, "{}", data(&summary(report)));
    out
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
