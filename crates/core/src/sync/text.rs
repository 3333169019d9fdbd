//! Differences for people: two objects as text, line by line, with nothing secret in them.
//!
//! What a server alone says is left out on both sides. The values of Secrets are masked: short digests under a key of the run,
//! so that equal values look equal and the values stay unknown. Never shows `managedFields` or what kubectl last applied.

use ring::hmac;
use similar::TextDiff;

use crate::{
    api::constants::annotation,
    kubernetes::value::{Map, Value},
};

/// Masks the values of Secrets.
pub struct SecretMask(hmac::Key);

impl SecretMask {
    /// A mask with these bytes as its key, which should be new for each run.
    pub fn new(bytes: &[u8]) -> SecretMask {
        SecretMask(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    fn mask(&self, value: &Value) -> Value {
        let tag = hmac::sign(&self.0, value.to_json().as_bytes());
        let digest: String = tag.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        Value::from(format!("(hidden {digest})"))
    }
}

/// An object as text.
pub fn text(object: &Value, mask: &SecretMask) -> String {
    serde_saphyr::to_string(&shown(object, mask)).unwrap_or_default()
}

/// An object without what only a server says, and with its secrets hidden.
pub fn shown(object: &Value, mask: &SecretMask) -> Value {
    let mut value = object.clone();
    value.remove_at(&["status"]);
    for field in ["managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink"] {
        value.remove_at(&["metadata", field]);
    }
    value.remove_at(&["metadata", "annotations", annotation::LAST_APPLIED]);
    if value.str_at(&["kind"]) == Some("Secret") {
        for field in ["data", "stringData"] {
            let hidden = value.get(field).and_then(Value::as_map).map(|map| hide(map, mask));
            if let Some(hidden) = hidden {
                value.set_at(&[field], Value::Map(hidden));
            }
        }
    }
    value
}

fn hide(map: &Map, mask: &SecretMask) -> Map {
    map.iter().map(|(key, value)| (key.clone(), mask.mask(value))).collect()
}

/// The lines in which two texts differ, with three around them, as `diff -u` prints them; empty if they do not.
pub fn unified(old: &str, new: &str, old_name: &str, new_name: &str) -> String {
    if old == new {
        return String::new();
    }
    TextDiff::from_lines(old, new).unified_diff().context_radius(3).header(old_name, new_name).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn sr15_secrets_show_only_whether_they_differ() {
        let secret = |text: &str| {
            value!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "managedFields": [text],
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": text}},
                "data": {"same": "c2FtZQ==", "other": text}, "stringData": {"plain": text}})
        };
        let mask = SecretMask::new(b"a key");
        let (one, two) = (text(&secret("hunter2"), &mask), text(&secret("hunter3"), &mask));
        let diff = unified(&one, &two, "live", "git");
        assert!(!(one.clone() + &two + &diff).contains("hunter") && !one.contains("c2FtZQ"), "{one}{diff}");
        assert!(diff.contains("-  other: (hidden") && diff.contains("+  other: (hidden"), "{diff}");
        assert!(!diff.contains("-  same"), "{diff}");
        let another = text(&secret("hunter2"), &SecretMask::new(b"another key"));
        assert_ne!(one, another, "a digest is of no use beyond its run");
    }

    #[test]
    fn what_only_a_server_says_is_no_difference() {
        let mask = SecretMask::new(b"a");
        let live = value!({"kind": "ConfigMap", "metadata": {"name": "a", "uid": "u", "resourceVersion": "7"}, "data": {"k": "x"}, "status": {}});
        let git = value!({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "z"}});
        let diff = unified(&text(&live, &mask), &text(&git, &mask), "live", "git");
        assert_eq!(
            diff,
            "--- live\n+++ git\n@@ -1,5 +1,5 @@\n data:\n-  k: x\n+  k: z\n kind: ConfigMap\n metadata:\n   name: a\n"
        );
    }
}
