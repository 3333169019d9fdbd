//! What a step says about a plan: annotations, outputs, the comment's text, and whether it fails.

use serde_json::Value as Json;

use super::{Annotation, Level};
use crate::{
    forge::comment::LONGEST,
    lint::rule::Severity,
    plan::{Plan, What, escape::prose, output},
};

/// Runners show so many annotations of each level of a step, and drop the rest.
const SHOWN: usize = 10;

/// What makes a step fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailOn {
    /// Nothing that the plan says.
    Never,
    /// A plan that cannot be applied, an error of a rule, or something that the cluster refuses.
    Error,
    /// And warnings.
    Warning,
    /// And any change.
    Changes,
}

/// Whether a step fails because of its plan.
pub fn fails(plan: &Plan, on: FailOn) -> bool {
    let refused = plan.live.iter().flat_map(|live| &live.objects).any(|object| !object.refused.is_empty());
    let errors = !plan.problems.is_empty() || plan.warned(Severity::Error) > 0 || refused;
    let warnings = plan.warned(Severity::Warning) > 0;
    match on {
        FailOn::Never => false,
        FailOn::Error => errors,
        FailOn::Warning => errors || warnings,
        FailOn::Changes => errors || warnings || plan.has_changes(),
    }
}

/// What is wrong with a plan, at the lines of its files, the worst first; no more of each level than are shown.
pub fn annotations(plan: &Plan) -> Vec<Annotation> {
    let mut all = Vec::new();
    for problem in &plan.problems {
        all.push(Annotation {
            level: Level::Error,
            file: problem.file.to_string(),
            line: problem.line,
            column: 0,
            message: format!("nothing would be applied: {}", problem.message),
        });
    }
    for warning in &plan.warnings {
        let level = match warning.severity {
            Severity::Error => Level::Error,
            Severity::Warning => Level::Warning,
            Severity::Hint => Level::Notice,
        };
        let object = if warning.object.is_empty() { String::new() } else { format!("{}: ", warning.object) };
        let remedy = if warning.remedy.is_empty() { String::new() } else { format!("; {}", warning.remedy) };
        all.push(Annotation {
            level,
            file: warning.file.clone(),
            line: warning.line,
            column: warning.column,
            message: format!("{object}{}{remedy} [{}]", warning.message, warning.rule),
        });
    }
    for object in plan.live.iter().flat_map(|live| &live.objects).filter(|object| !object.refused.is_empty()) {
        let message = format!("the cluster refuses {}: {}", object.id, object.refused);
        all.push(Annotation::plain(Level::Error, message));
    }
    all.sort_by_key(|annotation| annotation.level);
    let of = |level: Level| all.iter().filter(move |annotation| annotation.level == level);
    let shown = [Level::Error, Level::Warning, Level::Notice].into_iter().flat_map(|level| {
        let left = of(level).count().saturating_sub(SHOWN);
        let last = (left > 0).then(|| Annotation::plain(level, format!("and {} more; see the plan", left + 1)));
        let most = if last.is_some() { SHOWN - 1 } else { SHOWN };
        of(level).take(most).cloned().chain(last).collect::<Vec<_>>()
    });
    shown.collect()
}

/// The outputs of a step, as lines for its file of outputs. None of them holds text of a manifest.
pub fn outputs(plan: &Json, file: &str) -> String {
    let word = |name: &str| {
        let text = plan[name].as_str().unwrap_or_default();
        text.chars().filter(char::is_ascii_alphanumeric).collect::<String>()
    };
    format!(
        "has-changes={}\ncounts={}\nplan-file={}\nplan-hash={}\nexit-code={}\n",
        plan["hasChanges"].as_bool().unwrap_or_default(),
        plan["counts"],
        file.replace(['\r', '\n'], "_"),
        word("hash"),
        exit_code(plan)
    )
}

/// What `tidegate plan` exits with for this plan.
pub fn exit_code(plan: &Json) -> u8 {
    match (plan["counts"]["problems"].as_u64(), plan["hasChanges"].as_bool()) {
        (Some(0), Some(false)) => 0,
        (Some(0), Some(true)) => 1,
        _ => 2,
    }
}

/// The text of the comment: as much of the plan as fits with `around` more characters.
pub fn comment_text(plan: &Plan, commit: &str, around: usize) -> String {
    let footer = footer(commit);
    let room = LONGEST - around - footer.len();
    // Bytes, of which there are at least as many as characters.
    let text = output::markdown(plan, room.min(output::LIMIT), &|_| None);
    if text.len() <= room {
        return text + &footer;
    }
    let count = |what| plan.count(what);
    format!(
        "### Tidegate plan: {} to create, {} to change, {} to delete\n\nPlan `{}`. Its text is too long for a comment: \
         see the job summary, or the output `plan-file`.\n{footer}",
        count(What::Create),
        count(What::Change),
        count(What::Delete),
        plan.hash.get(..12).unwrap_or_default()
    )
}

/// The text of the comment if there is no plan.
pub fn failure_text(error: &str, commit: &str) -> String {
    let error: String = error.chars().take(2000).collect();
    format!("### Tidegate plan: error\n\nThis change cannot be planned: {}\n{}", prose(&error), footer(commit))
}

fn footer(commit: &str) -> String {
    let is_commit = commit.len() >= 40 && commit.chars().all(|c| c.is_ascii_hexdigit());
    match commit.get(..8) {
        Some(short) if is_commit => format!("\n<sub>Planned at {short}; updated with every push.</sub>\n"),
        Some(_) | None => "\n<sub>Updated with every push.</sub>\n".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{plan::Warning, sync::set::Problem};

    fn warning(severity: Severity, line: usize) -> Warning {
        Warning {
            severity,
            rule: "pause-without-end".into(),
            message: "waits".into(),
            remedy: "give a duration".into(),
            object: "Rollout web".into(),
            file: "web.yaml".into(),
            line,
            column: 3,
        }
    }

    fn problem(message: &str) -> Problem {
        Problem { file: "deploy/web.yaml".into(), line: 3, message: message.to_owned() }
    }

    #[test]
    fn a_step_fails_on_what_it_is_asked_to() {
        let clean = Plan::default();
        let warned = Plan { warnings: vec![warning(Severity::Warning, 1)], ..Plan::default() };
        let hinted = Plan { warnings: vec![warning(Severity::Hint, 1)], ..Plan::default() };
        let wrong = Plan { warnings: vec![warning(Severity::Error, 1)], ..Plan::default() };
        let broken = Plan { problems: vec![problem("x")], ..Plan::default() };
        let all = [FailOn::Never, FailOn::Error, FailOn::Warning, FailOn::Changes];
        let failing = |plan: &Plan| all.map(|on| fails(plan, on));
        assert_eq!(failing(&clean), [false, false, false, false]);
        assert_eq!(failing(&hinted), [false, false, false, false]);
        assert_eq!(failing(&warned), [false, false, true, true]);
        assert_eq!(failing(&wrong), [false, true, true, true]);
        assert_eq!(failing(&broken), [false, true, true, true]);
    }

    #[test]
    fn the_worst_is_annotated_first_and_no_more_than_is_shown() {
        let mut warnings: Vec<Warning> = (1..=12).map(|line| warning(Severity::Warning, line)).collect();
        warnings.push(warning(Severity::Error, 20));
        let plan = Plan { problems: vec![problem("a\n::error::b")], warnings, ..Plan::default() };
        let lines: Vec<String> = annotations(&plan).iter().map(ToString::to_string).collect();
        assert_eq!(lines.len(), 2 + 10);
        assert_eq!(lines[0], "::error file=deploy/web.yaml,line=3::nothing would be applied: a : :error: :b");
        let text = "Rollout web: waits; give a duration [pause-without-end]";
        assert_eq!(lines[1], format!("::error file=web.yaml,line=20,col=3::{text}"));
        assert_eq!(lines[2], format!("::warning file=web.yaml,line=1,col=3::{text}"));
        assert_eq!(lines[11], "::warning::and 3 more; see the plan");
    }

    #[test]
    fn outputs_are_one_line_each() {
        let plan = Plan { hash: "ab".repeat(32), problems: vec![problem("x")], ..Plan::default() };
        let json = serde_json::from_str(&output::json(&plan)).unwrap();
        let text = outputs(&json, "/tmp/a\nplan-hash=evil");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert_eq!(lines[0], "has-changes=false");
        assert!(lines[1].starts_with(r#"counts={"change":0,"create":0,"#), "{text}");
        assert_eq!(lines[2], "plan-file=/tmp/a_plan-hash=evil");
        assert_eq!(lines[4], "exit-code=2");
    }

    #[test]
    fn a_comment_is_never_too_long() {
        let plan = Plan { problems: (0..10).map(|_| problem(&"é\"`".repeat(20_000))).collect(), ..Plan::default() };
        let text = comment_text(&plan, &"a".repeat(40), 60);
        assert!(text.chars().count() + 60 <= LONGEST && text.contains("too long for a comment"), "{}", text.len());
        let small = comment_text(&Plan::default(), "HEAD", 60);
        assert!(small.contains("no changes") && small.ends_with("\n<sub>Updated with every push.</sub>\n"), "{small}");
        assert!(failure_text("<b>@team", &"a".repeat(40)).contains("&lt;b&gt;@&#8203;team"));
        assert!(failure_text(&"x".repeat(100_000), "").len() < 3000);
    }
}
