//! What a workflow runs for, from the payload of its event.

use serde_json::Value as Json;

/// What a workflow runs for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trigger {
    /// A pull request.
    PullRequest {
        /// Its number.
        number: u64,
        /// The last commit of its branch.
        head: String,
        /// The last commit of the branch that it goes to, when the event happened.
        base: String,
        /// Whether it comes from another repository; then the workflow's token may only read.
        fork: bool,
        /// Whether the commit checked out is that of the target branch, not of the pull request.
        on_target: bool,
    },
    /// A push.
    Push {
        /// The commit that the branch was at; empty if it is new.
        before: String,
    },
    /// Something else, or a payload that cannot be read.
    Other,
}

impl Trigger {
    /// Reads an event: its name and its payload.
    pub fn read(event: &str, payload: &str) -> Trigger {
        let payload: Json = serde_json::from_str(payload).unwrap_or_default();
        let text = |pointer: &str| payload.pointer(pointer).and_then(Json::as_str).unwrap_or_default().to_owned();
        match event {
            "pull_request" | "pull_request_target" => {
                let number = ["/pull_request/number", "/number"].iter().find_map(|at| payload.pointer(at)?.as_u64());
                let Some(number) = number else { return Trigger::Other };
                // A fork that was deleted since has no repository.
                let (from, to) = (text("/pull_request/head/repo/full_name"), text("/pull_request/base/repo/full_name"));
                Trigger::PullRequest {
                    number,
                    head: commit(text("/pull_request/head/sha")),
                    base: commit(text("/pull_request/base/sha")),
                    fork: from.is_empty() || from != to,
                    on_target: event == "pull_request_target",
                }
            }
            "push" => Trigger::Push { before: commit(text("/before")) },
            _ => Trigger::Other,
        }
    }
}

/// A commit, or nothing: hosts write a commit that does not exist as zeros.
fn commit(text: String) -> String {
    let is_commit = text.len() >= 40 && text.chars().all(|c| c.is_ascii_hexdigit()) && text.chars().any(|c| c != '0');
    if is_commit { text } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_as_hosts_send_them() {
        #[track_caller]
        fn check(event: &str, payload: &str, expected: Trigger) {
            assert_eq!(Trigger::read(event, payload), expected);
        }
        let (a, b) = ("a".repeat(40), "b".repeat(40));
        let pull = |head: &str| {
            format!(
                r#"{{"action":"opened","number":7,"pull_request":{{"number":7,"head":{{"sha":"{a}","repo":{head}}},
                     "base":{{"sha":"{b}","ref":"main","repo":{{"full_name":"team/web"}}}}}}}}"#
            )
        };
        let expected =
            |fork, on_target| Trigger::PullRequest { number: 7, head: a.clone(), base: b.clone(), fork, on_target };
        check("pull_request", &pull(r#"{"full_name":"team/web"}"#), expected(false, false));
        check("pull_request", &pull(r#"{"full_name":"mallory/web"}"#), expected(true, false));
        check("pull_request", &pull("null"), expected(true, false));
        check("pull_request_target", &pull(r#"{"full_name":"team/web"}"#), expected(false, true));
        check("push", &format!(r#"{{"before":"{a}","after":"{b}"}}"#), Trigger::Push { before: a.clone() });
        let created = format!(r#"{{"before":"{}"}}"#, "0".repeat(40));
        check("push", &created, Trigger::Push { before: String::new() });
        check("push", r#"{"before":"--upload-pack=x"}"#, Trigger::Push { before: String::new() });
        check("pull_request", "{}", Trigger::Other);
        check("pull_request", "not json", Trigger::Other);
        check("schedule", "{}", Trigger::Other);
    }
}
