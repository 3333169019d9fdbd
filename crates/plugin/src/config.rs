//! Which plugins are configured: the three lists in the ConfigMap `argo-rollouts-config`.
//!
//! Never reads the ConfigMap and never touches a file. Every problem of every entry is named; an entry with a problem is left
//! out, so that it cannot be taken for a plugin.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value as Json};

use crate::{call::Kind, output::printable};

/// A configured plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configured {
    /// What it is: the list it stands in.
    pub kind: Kind,
    /// `namespace/name`, as Rollouts and AnalysisTemplates name it.
    pub name: String,
    /// Where its executable comes from.
    pub location: Location,
    /// What the executable must be.
    pub sha256: Option<Checksum>,
    /// Its arguments.
    pub args: Vec<String>,
    /// The Secrets whose data are headers of the download, in order, in the controller's namespace.
    pub headers_from: Vec<String>,
    /// Whether steps that name it are skipped.
    pub is_disabled: bool,
}

/// Where an executable comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A file; relative to the working directory.
    File(PathBuf),
    /// A URL of http or https.
    Url(String),
}

/// A SHA-256.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Checksum(pub [u8; 32]);

impl Checksum {
    /// Reads 64 hexadecimal digits, in either case.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            let pair =
                std::str::from_utf8(pair).ok().filter(|pair| pair.bytes().all(|digit| digit.is_ascii_hexdigit()));
            *byte = u8::from_str_radix(pair?, 16).ok()?;
        }
        Some(Checksum(bytes))
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// What is wrong with an entry, and where: `stepPlugins[1] (tidegate/off): …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The key of the ConfigMap.
    pub key: &'static str,
    /// The place in its list, if it has one.
    pub index: Option<usize>,
    /// The plugin's name, if it has one.
    pub name: Option<String>,
    /// What is wrong and what to do.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.key)?;
        if let Some(index) = self.index {
            write!(out, "[{index}]")?;
        }
        if let Some(name) = &self.name {
            write!(out, " ({name})")?;
        }
        write!(out, ": {}", self.text)
    }
}

/// What the ConfigMap says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Configuration {
    /// The plugins, in the order in which Argo Rollouts puts their executables in place.
    pub plugins: Vec<Configured>,
    /// What is wrong.
    pub problems: Vec<Problem>,
}

impl Configuration {
    /// The plugin of a kind and a name; the first wins.
    pub fn find(&self, kind: Kind, name: &str) -> Option<&Configured> {
        self.plugins.iter().find(|plugin| plugin.kind == kind && plugin.name == name)
    }
}

/// Reads the data of the ConfigMap. Keys that are not ours are ignored, as are unknown keys of an entry.
pub fn read(data: &BTreeMap<String, String>) -> Configuration {
    let mut out = Configuration::default();
    for kind in Kind::ALL {
        let Some(text) = data.get(kind.key()) else { continue };
        let key = kind.key();
        let list = match serde_saphyr::from_str::<Json>(text) {
            Ok(Json::Null) => continue,
            Ok(Json::Array(list)) => list,
            Ok(_) => {
                let text = "a list of plugins is needed: `- name: namespace/name`".to_owned();
                out.problems.push(Problem { key, index: None, name: None, text });
                continue;
            }
            Err(error) => {
                let error = error.to_string();
                let first = error.lines().next().unwrap_or_default();
                let text = format!("not YAML: {}", printable(first));
                out.problems.push(Problem { key, index: None, name: None, text });
                continue;
            }
        };
        for (index, item) in list.iter().enumerate() {
            match entry(kind, item) {
                Ok(plugin) => out.plugins.push(plugin),
                Err((name, texts)) => {
                    let name = name.map(|name| printable(&name));
                    let problem = |text| Problem { key, index: Some(index), name: name.clone(), text };
                    out.problems.extend(texts.into_iter().map(problem));
                }
            }
        }
    }
    out
}

type Problems = (Option<String>, Vec<String>);

fn entry(kind: Kind, item: &Json) -> Result<Configured, Problems> {
    let Json::Object(item) = item else {
        return Err((None, vec!["a plugin with a name and a location is needed".into()]));
    };
    let mut problems = Vec::new();
    let mut note = |outcome: Result<(), String>| problems.extend(outcome.err());
    let mut plugin = Configured {
        kind,
        name: String::new(),
        location: Location::File(PathBuf::new()),
        sha256: None,
        args: Vec::new(),
        headers_from: Vec::new(),
        is_disabled: false,
    };
    let name = text(item, "name");
    note(name.clone().and_then(|name| check_name(&name)));
    plugin.name = name.clone().unwrap_or_default();
    let sha256 = text(item, "sha256");
    note(sha256.and_then(|text| {
        if !text.is_empty() {
            let wrong = || "sha256 must be 64 hexadecimal digits, as `sha256sum` prints them".to_owned();
            plugin.sha256 = Some(Checksum::parse(&text).ok_or_else(wrong)?);
        }
        Ok(())
    }));
    note(text(item, "location").and_then(|text| {
        plugin.location = location(&text)?;
        if text.starts_with("http://") && get(item, "sha256").is_none() {
            return Err("a location of plain http needs a sha256: anybody on the way can change the file".into());
        }
        Ok(())
    }));
    note(strings(item, "args").map(|args| plugin.args = args));
    note(secrets(item).map(|secrets| plugin.headers_from = secrets));
    match get(item, "disabled") {
        None | Some(Json::Null) => {}
        Some(Json::Bool(is)) => plugin.is_disabled = *is,
        Some(_) => problems.push("disabled must be true or false".into()),
    }
    if problems.is_empty() { Ok(plugin) } else { Err((name.ok().filter(|name| !name.is_empty()), problems)) }
}

/// A key as Go's JSON decoder finds it: in any case.
fn get<'a>(item: &'a Map<String, Json>, key: &str) -> Option<&'a Json> {
    item.get(key).or_else(|| item.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value))
}

fn text(item: &Map<String, Json>, key: &str) -> Result<String, String> {
    match get(item, key) {
        None | Some(Json::Null) => Ok(String::new()),
        Some(Json::String(text)) => Ok(text.clone()),
        Some(_) => Err(format!("{key} must be a string; put it in quotes")),
    }
}

fn strings(item: &Map<String, Json>, key: &str) -> Result<Vec<String>, String> {
    let list = match get(item, key) {
        None | Some(Json::Null) => return Ok(Vec::new()),
        Some(Json::Array(list)) => list,
        Some(_) => return Err(format!("{key} must be a list of strings")),
    };
    let string = |(index, json): (usize, &Json)| match json {
        Json::String(text) if text.contains('\0') => Err(format!("{key}[{index}] must not contain a zero byte")),
        Json::String(text) => Ok(text.clone()),
        _ => Err(format!("{key}[{index}] must be a string; put it in quotes")),
    };
    list.iter().enumerate().map(string).collect()
}

fn secrets(item: &Map<String, Json>) -> Result<Vec<String>, String> {
    let list = match get(item, "headersFrom") {
        None | Some(Json::Null) => return Ok(Vec::new()),
        Some(Json::Array(list)) => list,
        Some(_) => return Err("headersFrom must be a list of `secretRef: {name: …}`".into()),
    };
    let name = |(index, json): (usize, &Json)| {
        let secret = json.as_object().and_then(|item| get(item, "secretRef")).and_then(Json::as_object);
        let name = secret.map(|secret| text(secret, "name"));
        match name {
            Some(Ok(name)) if !name.is_empty() => Ok(name),
            _ => Err(format!("headersFrom[{index}] must be `secretRef: {{name: …}}`")),
        }
    };
    list.iter().enumerate().map(name).collect()
}

fn check_name(name: &str) -> Result<(), String> {
    let is_word = |text: &str, more: &str| {
        !text.is_empty() && text.chars().all(|char| char.is_ascii_alphanumeric() || more.contains(char))
    };
    match name.split_once('/') {
        // Argo Rollouts would put the file of `a/..` outside its folder.
        Some((_, "." | "..")) => Err(format!("the name {name} must not end in a folder")),
        Some((namespace, name)) if is_word(namespace, "-") && is_word(name, "_-.") => Ok(()),
        _ => {
            let name = printable(name);
            Err(format!("plugin repository ({name}) must be in the format of <namespace>/<name>"))
        }
    }
}

/// `file://` and what follows is a path, absolute or not.
fn location(text: &str) -> Result<Location, String> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(if text.is_empty() {
            "no location: file:// and a path, or a URL of https".into()
        } else {
            "plugin location must be of http(s) or file scheme".into()
        });
    };
    match scheme.to_ascii_lowercase().as_str() {
        "file" if Path::new(rest).file_name().is_some() => Ok(Location::File(PathBuf::from(rest))),
        "file" => Err("the location names no file".into()),
        "http" | "https"
            if rest.chars().all(|char| !char.is_control() && !char.is_whitespace()) && !rest.is_empty() =>
        {
            Ok(Location::Url(text.to_owned()))
        }
        "http" | "https" => Err("the location is an invalid URL".into()),
        _ => Err("plugin location must be of http(s) or file scheme".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(key: &str, text: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(key.to_owned(), text.to_owned()), ("other".to_owned(), "{".to_owned())])
    }

    fn plugin(kind: Kind, name: &str, location: Location) -> Configured {
        let name = name.to_owned();
        Configured { kind, name, location, sha256: None, args: vec![], headers_from: vec![], is_disabled: false }
    }

    #[track_caller]
    fn check(text: &str, wanted: &[Configured]) {
        let found = read(&data("stepPlugins", text));
        assert_eq!((found.plugins.as_slice(), found.problems.as_slice()), (wanted, [].as_slice()));
    }

    #[track_caller]
    fn check_problems(text: &str, wanted: &[&str]) {
        let found = read(&data("stepPlugins", text));
        let problems: Vec<_> = found.problems.iter().map(Problem::to_string).collect();
        assert_eq!((found.plugins, problems), (vec![], wanted.iter().map(|text| (*text).to_owned()).collect()));
    }

    #[test]
    fn plugins_are_read_as_argo_rollouts_reads_them() {
        let file = |path: &str| Location::File(PathBuf::from(path));
        check("", &[]);
        check("[]", &[]);
        check("- {name: a/b, location: 'file:///p'}", &[plugin(Kind::Step, "a/b", file("/p"))]);
        check(
            "- {NAME: a-1/b_c.d, Location: 'file://./p', unknown: [1], args: null}",
            &[plugin(Kind::Step, "a-1/b_c.d", file("./p"))],
        );
        check(
            concat!(
                "- name: a/b\n  location: https://host/p?x=1\n",
                "  sha256: E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855\n",
                "  disabled: true\n  args: ['-v', '1']\n  headersFrom: [{secretRef: {name: one}}, {secretRef: {name: two}}]"
            ),
            &[Configured {
                sha256: Checksum::parse("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
                is_disabled: true,
                args: vec!["-v".into(), "1".into()],
                headers_from: vec!["one".into(), "two".into()],
                ..plugin(Kind::Step, "a/b", Location::Url("https://host/p?x=1".into()))
            }],
        );
    }

    #[test]
    fn the_list_decides_the_kind_and_the_first_of_a_name_wins() {
        let list = |path: &str| format!("- {{name: a/b, location: 'file:///{path}'}}");
        let found = read(&BTreeMap::from([
            ("stepPlugins".to_owned(), format!("{}\n{}", list("one"), list("two"))),
            ("metricProviderPlugins".to_owned(), list("three")),
            ("trafficRouterPlugins".to_owned(), list("four")),
        ]));
        let kinds: Vec<_> = found.plugins.iter().map(|plugin| plugin.kind).collect();
        assert_eq!(kinds, [Kind::TrafficRouter, Kind::Metric, Kind::Step, Kind::Step]);
        let step = found.find(Kind::Step, "a/b").map(|plugin| plugin.location.clone());
        assert_eq!(step, Some(Location::File("/one".into())));
        assert_eq!(found.find(Kind::Step, "a/c"), None);
    }

    #[test]
    fn every_problem_of_every_entry_is_named() {
        let format = "must be in the format of <namespace>/<name>";
        check_problems("{}", &["stepPlugins: a list of plugins is needed: `- name: namespace/name`"]);
        check_problems("- 1", &["stepPlugins[0]: a plugin with a name and a location is needed"]);
        check_problems(
            "- {name: a, location: ''}\n- {name: 5, location: 'ftp://x', args: x, disabled: 'yes', headersFrom: [{}]}",
            &[
                &format!("stepPlugins[0] (a): plugin repository (a) {format}"),
                "stepPlugins[0] (a): no location: file:// and a path, or a URL of https",
                "stepPlugins[1]: name must be a string; put it in quotes",
                "stepPlugins[1]: plugin location must be of http(s) or file scheme",
                "stepPlugins[1]: args must be a list of strings",
                "stepPlugins[1]: headersFrom[0] must be `secretRef: {name: …}`",
                "stepPlugins[1]: disabled must be true or false",
            ],
        );
        check_problems(
            "- {name: a/.., location: 'file://'}\n- {name: a/b/c, location: /bin/x, args: [1]}",
            &[
                "stepPlugins[0] (a/..): the name a/.. must not end in a folder",
                "stepPlugins[0] (a/..): the location names no file",
                &format!("stepPlugins[1] (a/b/c): plugin repository (a/b/c) {format}"),
                "stepPlugins[1] (a/b/c): plugin location must be of http(s) or file scheme",
                "stepPlugins[1] (a/b/c): args[0] must be a string; put it in quotes",
            ],
        );
        check_problems(
            "- {name: a/b, location: 'http://host/p'}\n- {name: a/c, location: 'https://host/p', sha256: abc}",
            &[
                "stepPlugins[0] (a/b): a location of plain http needs a sha256: anybody on the way can change the file",
                "stepPlugins[1] (a/c): sha256 must be 64 hexadecimal digits, as `sha256sum` prints them",
            ],
        );
        let found = read(&data("stepPlugins", "- {name: [")).problems;
        assert!(found.len() == 1 && found[0].to_string().starts_with("stepPlugins: not YAML: "), "{found:?}");
    }
}
