//! Git notes: the words of a status for a repository that has no host.

use super::Status;

/// The line of a status, behind its context.
pub fn words(status: &Status) -> String {
    match status.description.as_str() {
        "" => status.state.name().to_owned(),
        description => format!("{}, {description}", status.state.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forge::State;

    #[test]
    fn a_note_says_the_state_first() {
        let status =
            |description: &str| Status { state: State::Superseded, description: description.into(), target: None };
        assert_eq!(words(&status("by abc")), "superseded, by abc");
        assert_eq!(words(&status("")), "superseded");
    }
}
