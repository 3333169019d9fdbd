//! URLs of repositories as other tools take them, as URLs that a GitSource takes. A password never leaves this module.

use super::{Note, Subject, Weight};
use crate::{manifest::place::Step, model::remote::Remote};

/// The URL that a GitSource takes; `None` if there is none, which is noted.
pub fn url(subject: &Subject<'_>, steps: &[Step<'_>], given: &str, notes: &mut Vec<Note>) -> Option<String> {
    let mut refuse = |what: &str, remedy: &str| {
        notes.push(subject.note(Weight::NoEquivalent, steps, what, remedy));
        None
    };
    if given.is_empty() {
        return refuse("no repository is named, so no GitSource is written for it", "name its URL");
    }
    if let Some((scheme, _)) = given.split_once("://").filter(|(scheme, _)| !["https", "ssh"].contains(scheme)) {
        let what = format!("{} cannot be fetched from, so no GitSource is written for it", words(scheme));
        return refuse(&what, "a GitSource fetches from git by https or ssh; see whether the host has one of them");
    }
    let given = given.trim_end_matches('/');
    let authority = given.strip_prefix("https://").and_then(|rest| Some(rest.split_once('/')?.0)).unwrap_or_default();
    let Some((user, _)) = authority.rsplit_once('@') else {
        return match Remote::parse(given) {
            Ok(_) => Some(given.to_owned()),
            Err(wrong) => refuse(
                &format!("this URL {wrong}, so no GitSource is written for it"),
                "write https://host/path, ssh://user@host/path or user@host:path",
            ),
        };
    };
    let bare = format!("https://{}", &given["https://".len() + user.len() + 1..]);
    let (weight, what, remedy) = if user.contains(':') {
        let what = "the URL holds a password, which is not carried over";
        (Weight::ToDo, what, "put it into a Secret with `username` and `password`, and name that in spec.secretRef")
    } else {
        (
            Weight::Differs,
            "the user in the URL is left out",
            "if the host needs it, put it into the Secret as `username`",
        )
    };
    notes.push(subject.note(weight, steps, what, remedy));
    Remote::parse(&bare).is_ok().then_some(bare)
}

fn words(scheme: &str) -> String {
    match scheme {
        "http" => "plain http".to_owned(),
        "oci" => "an OCI registry".to_owned(),
        scheme => format!("{scheme:?}"),
    }
}
