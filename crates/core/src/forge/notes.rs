//! Git notes: the words of a status for a repository that has no host.

use super::{State, Status};

/// The line of a status, behind its context.
pub fn words(status: &Status) -> String {
    match status.description.as_str() {
        "" => status.state.name().to_owned(),
        description => format!("{}, {description}", status.state.name()),
    }
}

/// The state that a context's line of a note says.
pub fn state(note: &str, context: &str) -> Option<State> {
    let line = note.lines().find_map(|line| line.strip_prefix(context)?.strip_prefix(": "))?;
    let word = line.split(',').next().unwrap_or_default().trim();
    let states = [State::Pending, State::Success, State::Failure, State::Error, State::Superseded];
    states.into_iter().find(|state| state.name() == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn a_note_says_the_state_first() {
        let status =
            |description: &str| Status { state: State::Superseded, description: description.into(), target: None };
        assert_eq!(words(&status("by abc")), "superseded, by abc");
        assert_eq!(words(&status("")), "superseded");
    }

    #[test]
    fn a_note_is_read_as_it_is_written() {
        let note = "a/b: success, rolled out: 3 objects\na: superseded\n";
        assert_eq!(state(note, "a/b"), Some(State::Success));
        assert_eq!(state(note, "a"), Some(State::Superseded));
        assert_eq!(state(note, "b"), None);
    }
}
