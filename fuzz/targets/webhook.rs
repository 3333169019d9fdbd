//! Any body is a message of any host, proven or not: the first byte chooses the host, the second one the event.
#![no_main]

use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use tidegate::{
    forge::webhook::{Heard, Sender, hint, verify},
    model::secret::Secret,
};

const SENDERS: [(Sender, &str); 6] = [
    (Sender::GitHub, "x-github-event"),
    (Sender::GitLab, "x-gitlab-event"),
    (Sender::Gitea, "x-gitea-event"),
    (Sender::Bitbucket, "x-event-key"),
    (Sender::AzureDevOps, "x-vss-activityid"),
    (Sender::Generic, "x-signature"),
];
const EVENTS: [&str; 8] =
    ["push", "Push Hook", "repo:push", "repo:refs_changed", "git.push", "ping", "delete", "application/json"];

fuzz_target!(|bytes: &[u8]| {
    let [sender, event, body @ ..] = bytes else { return };
    let (sender, name) = SENDERS[usize::from(*sender) % SENDERS.len()];
    let mut headers = HeaderMap::new();
    headers.insert(HeaderName::from_static(name), HeaderValue::from_static(EVENTS[usize::from(*event) % EVENTS.len()]));
    if event & 0x80 != 0 {
        headers.insert("content-type", HeaderValue::from_static("application/x-www-form-urlencoded"));
    }
    let _ = hint(sender, &headers, body);
    // A signature of the sender's own making.
    for name in ["x-hub-signature-256", "x-signature", "webhook-signature", "authorization"] {
        if let Ok(value) = HeaderValue::from_bytes(&body[..body.len().min(100)]) {
            headers.insert(name, value);
        }
    }
    let proven = verify(&headers, body, &Secret::new("secret"), &mut Heard::default(), Timestamp::UNIX_EPOCH);
    assert!(proven.is_err(), "nobody guesses the secret");
});
