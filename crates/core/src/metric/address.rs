//! Addresses as Go's `net/url` reads and writes them: what providers are asked must be what Argo Rollouts asks.
//!
//! Never says whether an address makes sense; whoever sends the request does.

use std::collections::BTreeMap;

/// The parts of an address; what stands behind `#` is no part of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address<'a> {
    /// The scheme and the host.
    pub base: &'a str,
    /// The path, as it is written.
    pub path: &'a str,
    /// What stands behind the question mark, if there is one.
    pub query: Option<&'a str>,
}

impl<'a> Address<'a> {
    /// The parts of a text.
    pub fn of(text: &'a str) -> Address<'a> {
        let text = text.split_once('#').map_or(text, |(before, _)| before);
        let (rest, query) = match text.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (text, None),
        };
        let host = rest.find("://").map_or(0, |at| at + 3);
        let path = rest[host..].find('/').map_or(rest.len(), |at| host + at);
        Address { base: &rest[..path], path: &rest[path..], query }
    }

    /// The address with this query instead, each key where its place in the alphabet is.
    pub fn with(&self, query: &Query) -> String {
        format!("{}{}?{}", self.base, escaped_path(self.path), query.encoded())
    }

    /// The address as a request names it.
    pub fn requested(&self) -> String {
        let query = self.query.map(|query| format!("?{query}")).unwrap_or_default();
        format!("{}{}{query}", self.base, escaped_path(self.path))
    }
}

/// The pairs of a query, by key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query(BTreeMap<Vec<u8>, Vec<Vec<u8>>>);

impl Query {
    /// The pairs that can be read; one with a semicolon or with a percent sign that begins nothing is passed over.
    pub fn of(text: &str) -> Query {
        let mut query = Query::default();
        for pair in text.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if let (Some(key), Some(value)) = (unescaped(key), unescaped(value)) {
                query.0.entry(key).or_default().push(value);
            }
        }
        query
    }

    /// One value for a key, whatever it had.
    pub fn set(&mut self, key: &str, value: &str) {
        self.0.insert(key.into(), vec![value.into()]);
    }

    fn encoded(&self) -> String {
        let pairs = self.0.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)));
        let pairs = pairs.map(|(key, value)| format!("{}={}", escaped(key, is_plain), escaped(value, is_plain)));
        pairs.collect::<Vec<_>>().join("&").replace("%20", "+")
    }
}

/// A path below another one, without detours.
pub fn joined(path: &str, below: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').chain(below.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// A path as it is requested: what may not stand in one is escaped, what is escaped stays.
fn escaped_path(path: &str) -> String {
    let mut out = String::new();
    let mut rest = path;
    while let Some(at) = rest.find('%') {
        let (before, behind) = rest.split_at(at);
        out.push_str(&escaped(before.as_bytes(), is_in_path));
        let is_code = behind.as_bytes().get(1..3).is_some_and(|code| code.iter().all(u8::is_ascii_hexdigit));
        let taken = if is_code { 3 } else { 1 };
        out.push_str(&behind[..taken]);
        rest = &behind[taken..];
    }
    out + &escaped(rest.as_bytes(), is_in_path)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte)
}

fn is_in_path(byte: u8) -> bool {
    is_plain(byte) || b"$&+,/:;=@!'()*[]".contains(&byte)
}

fn escaped(bytes: &[u8], is_kept: impl Fn(u8) -> bool) -> String {
    let mut out = String::new();
    for byte in bytes {
        if is_kept(*byte) { out.push(char::from(*byte)) } else { out.push_str(&format!("%{byte:02X}")) }
    }
    out
}

/// The bytes of a part of a query; nothing if a percent sign begins nothing.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    let (mut out, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
                (high * 16 + low) as u8
            }
            other => other,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart_as_go_does() {
        for (text, base, path, query) in [
            ("http://h", "http://h", "", None),
            ("http://u:p@h:1/a/b?x=1#f?y", "http://u:p@h:1", "/a/b", Some("x=1")),
            ("https://h?x=/y", "https://h", "", Some("x=/y")),
            ("https://h#/a", "https://h", "", None),
        ] {
            assert_eq!(Address::of(text), Address { base, path, query }, "{text}");
        }
        assert_eq!(Address::of("http://h/a b/%2f%/ü?q r").requested(), "http://h/a%20b/%2f%/%C3%BC?q r");
    }

    #[test]
    fn a_query_is_read_and_written_as_go_does() {
        let mut query = Query::of("b=2&a=x+y&a=%7E&bad=%zz&semi=1;2&flag&=e");
        query.set("format", "json");
        assert_eq!(Address::of("http://h/p").with(&query), "http://h/p?=e&a=x+y&a=~&b=2&flag=&format=json");
        assert_eq!(Query::of("k=%2Bé*").encoded(), "k=%2B%C3%A9%2A");
    }

    #[test]
    fn paths_are_joined_without_detours() {
        for (path, expected) in
            [("", "/render"), ("/", "/render"), ("/a//b/../c/", "/a/c/render"), ("/../x", "/x/render")]
        {
            assert_eq!(joined(path, "render"), expected, "{path}");
        }
    }
}
