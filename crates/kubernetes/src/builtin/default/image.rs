//! Image references, as far as they decide when an image is pulled.

use std::sync::LazyLock;

use regex::Regex;

/// `Always` for an image whose tag is `latest` or left out, `IfNotPresent` for any other, and for what is no reference.
pub(super) fn pull_policy(image: &str) -> &'static str {
    match tag(image) {
        Some("latest") => "Always",
        _ => "IfNotPresent",
    }
}

/// The tag of a reference, `latest` if it names neither tag nor digest; `None` if it is no reference.
fn tag(image: &str) -> Option<&str> {
    if image.len() == 64 && image.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return None; // a bare image id
    }
    let (domain, rest) = match image.split_once('/') {
        Some((domain, rest)) if is_domain(domain) => (domain, rest),
        _ => ("docker.io", image),
    };
    let parts = REFERENCE.captures(rest).filter(|_| DOMAIN.is_match(domain))?;
    let name = parts.get(1)?;
    // `library/` is put before a bare name of the default domain.
    let library = if domain == "docker.io" && !name.as_str().contains('/') { 8 } else { 0 };
    if domain.len() + 1 + library + name.len() > 255 {
        return None;
    }
    match (parts.get(2), parts.get(3)) {
        (_, Some(digest)) if !is_digest(digest.as_str()) => None,
        (Some(tag), _) => Some(tag.as_str()),
        (None, Some(_)) => Some(""),
        (None, None) => Some("latest"),
    }
}

/// Whether what stands before the first slash is a host rather than the first part of a name.
fn is_domain(text: &str) -> bool {
    text.contains(['.', ':']) || text == "localhost" || text.to_lowercase() != text
}

/// Name, tag and digest.
static REFERENCE: LazyLock<Regex> = LazyLock::new(|| {
    let part = "[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*";
    let tag = "[0-9A-Za-z_][0-9A-Za-z_.-]{0,127}";
    let digest = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}";
    pattern(&format!("^({part}(?:/{part})*)(?::({tag}))?(?:@({digest}))?$"))
});

static DOMAIN: LazyLock<Regex> = LazyLock::new(|| {
    let label = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
    pattern(&format!("^(?:{label}(?:\\.{label})*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?$"))
});

fn pattern(text: &str) -> Regex {
    match Regex::new(text) {
        Ok(regex) => regex,
        Err(problem) => unreachable!("{problem}"),
    }
}

/// Whether a digest is of a known algorithm and of its length.
fn is_digest(text: &str) -> bool {
    let Some((algorithm, hex)) = text.split_once(':') else { return false };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return false,
    };
    hex.len() == length && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_found_and_nonsense_has_none() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let id = "0".repeat(64);
        let long = "a".repeat(250);
        for (image, expected) in [
            ("nginx", Some("latest")),
            ("nginx:1", Some("1")),
            ("nginx:latest", Some("latest")),
            ("a/b/c:v1", Some("v1")),
            ("localhost/b", Some("latest")),
            ("registry:5000/b", Some("latest")),
            ("registry:5000/b:x", Some("x")),
            ("Registry/b:x", Some("x")),
            ("[::1]:5000/b:x", Some("x")),
            (&format!("nginx@{digest}"), Some("")),
            (&format!("nginx:1@{digest}"), Some("1")),
            ("a__b-.c", None),
            ("a__b--c.d:1", Some("1")),
            ("", None),
            ("Nginx", None),
            ("nginx:", None),
            ("nginx:-1", None),
            (" nginx", None),
            ("nginx@sha256:00", None),
            (&format!("nginx@md5:{}", "0".repeat(32)), None),
            ("a//b", None),
            ("-a.b/c", None),
            (&id, None),
            (&long, None),
        ] {
            assert_eq!(tag(image), expected, "{image}");
        }
    }
}
