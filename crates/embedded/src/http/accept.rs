//! Which form an answer takes: `Accept`, `?pretty`, and what only some clients ask for (Table, metadata only).

use crate::kubernetes::status::{Reason, Status};

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Form {
    /// JSON or YAML.
    pub encoding: Encoding,
    /// Indented, for people.
    pub pretty: bool,
    /// What to make of the object first.
    pub view: View,
}

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum Encoding {
    #[default]
    Json,
    Yaml,
}

/// What to make of an object before it is sent. Each names the version of `meta.k8s.io` asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum View {
    /// The object itself.
    #[default]
    Whole,
    /// What kubectl prints.
    Table(MetaVersion),
    /// `PartialObjectMetadata`
    Metadata(MetaVersion),
    /// `PartialObjectMetadataList`
    MetadataList(MetaVersion),
}

/// A version of `meta.k8s.io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum MetaVersion {
    V1,
    V1Beta1,
}

impl MetaVersion {
    /// `meta.k8s.io/v1`
    pub fn api_version(self) -> &'static str {
        match self {
            MetaVersion::V1 => "meta.k8s.io/v1",
            MetaVersion::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

impl Encoding {
    /// The media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Encoding::Json => "application/json",
            Encoding::Yaml => "application/yaml",
        }
    }
}

/// One entry of an `Accept` header.
#[derive(Debug, Clone, PartialEq)]
pub struct Clause<'a> {
    kind: &'a str,
    subtype: &'a str,
    quality: f32,
    parameters: Vec<(&'a str, &'a str)>,
}

/// Takes an `Accept` header apart, what the client likes best first.
pub fn clauses(header: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = header
        .split(',')
        .filter_map(|clause| {
            let mut parts = clause.split(';').map(str::trim);
            let (kind, subtype) = match parts.next()?.split_once('/') {
                Some((kind, subtype)) => (kind.trim(), subtype.trim()),
                None if clause.trim() == "*" => ("*", "*"),
                None => return None,
            };
            let mut clause = Clause { kind, subtype, quality: 1.0, parameters: Vec::new() };
            for parameter in parts {
                match parameter.split_once('=') {
                    Some(("q", quality)) => clause.quality = quality.trim().parse().unwrap_or(1.0),
                    Some((key, value)) => clause.parameters.push((key.trim(), value.trim())),
                    None => {}
                }
            }
            Some(clause)
        })
        .collect();
    let specific = |clause: &Clause<'_>| (clause.kind == "*", clause.subtype == "*");
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality).then(specific(a).cmp(&specific(b))));
    clauses
}

impl Clause<'_> {
    fn admits(&self, kind: &str, subtype: &str) -> bool {
        (self.kind == "*" && self.subtype == "*")
            || (self.kind == kind && (self.subtype == "*" || self.subtype == subtype))
    }

    /// The value of a parameter; empty if it is absent.
    pub fn parameter(&self, key: &str) -> &str {
        self.parameters.iter().find(|(known, _)| *known == key).map_or("", |(_, value)| value)
    }

    /// Whether JSON would do, by this clause.
    pub fn admits_json(&self) -> bool {
        self.admits("application", "json")
    }
}

/// Which views an endpoint offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// A resource: tables and metadata, too.
    Resource,
    /// Anything else: itself only.
    Plain,
}

/// Chooses the form of an answer. `accept` is the header, empty if there is none.
pub fn negotiate(accept: &str, offer: Offer, pretty: bool) -> Result<Form, Status> {
    choose(accept, offer, pretty).ok_or_else(|| not_acceptable(&["application/json", "application/yaml", PROTOBUF]))
}

/// The form of an error: as asked, or indented JSON if what was asked for cannot be had.
pub fn for_error(accept: &str, pretty: bool) -> Form {
    choose(accept, Offer::Plain, pretty).unwrap_or(Form { pretty: true, ..Form::default() })
}

fn choose(accept: &str, offer: Offer, pretty: bool) -> Option<Form> {
    if accept.is_empty() {
        return Some(Form { pretty, ..Form::default() });
    }
    for clause in &clauses(accept) {
        for encoding in [Encoding::Json, Encoding::Yaml] {
            let subtype = match encoding {
                Encoding::Json => "json",
                Encoding::Yaml => "yaml",
            };
            if clause.admits("application", subtype)
                && let Some(view) = view(clause, offer)
            {
                return Some(Form { encoding, pretty: pretty || clause.parameter("pretty") == "1", view });
            }
        }
    }
    None
}

fn view(clause: &Clause<'_>, offer: Offer) -> Option<View> {
    let stream = clause.parameter("stream");
    if !(stream.is_empty() || stream == "watch") {
        return None;
    }
    if !["as", "g", "v"].iter().any(|key| clause.parameters.iter().any(|(known, _)| known == key)) {
        return Some(View::Whole);
    }
    let version = match (offer, clause.parameter("g"), clause.parameter("v")) {
        (Offer::Resource, "meta.k8s.io", "v1") => MetaVersion::V1,
        (Offer::Resource, "meta.k8s.io", "v1beta1") => MetaVersion::V1Beta1,
        _ => return None,
    };
    match clause.parameter("as") {
        "Table" => Some(View::Table(version)),
        "PartialObjectMetadata" => Some(View::Metadata(version)),
        "PartialObjectMetadataList" => Some(View::MetadataList(version)),
        _ => None,
    }
}

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// 406, with what would be accepted.
pub fn not_acceptable(accepted: &[&str]) -> Status {
    let message = format!("only the following media types are accepted: {}", accepted.join(", "));
    Status::new(406, Reason::NotAcceptable, message)
}

/// 406 of a watch that asks for YAML.
pub fn not_streamable() -> Status {
    not_acceptable(&["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"])
}

/// The check that the router of built-in kinds makes before any other: it knows no ranges but `*/*`.
pub fn router_accepts(accept: &str, produced: &[&str]) -> Result<(), Status> {
    let admits = |part: &str| {
        let media_type = part.split(';').next().unwrap_or_default().trim();
        media_type == "*/*" || produced.contains(&media_type)
    };
    if accept.is_empty() || accept.split(',').any(admits) {
        return Ok(());
    }
    let message = format!("406: Not Acceptable\n\nAvailable representations: {}", produced.join(", "));
    Err(Status { details: Some(Box::default()), ..Status::new(406, Reason::NotAcceptable, message) })
}

/// What the router says it can produce for a resource that can be watched.
pub const WATCHABLE: [&str; 5] = [
    "application/json",
    "application/yaml",
    PROTOBUF,
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];

/// What the router says it can produce for anything else.
pub const PRODUCED: [&str; 3] = ["application/json", "application/yaml", PROTOBUF];

/// Whether to indent: `?pretty` decides, else the tools people read by.
pub fn is_for_people(pretty: Option<&str>, user_agent: &str) -> bool {
    match pretty.filter(|value| !value.is_empty()) {
        Some(value) => matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True"),
        None => ["curl", "Wget", "Mozilla/5.0"].iter().any(|tool| user_agent.starts_with(tool)),
    }
}

/// Whether the client takes gzip.
pub fn accepts_gzip(accept_encoding: &str) -> bool {
    accept_encoding.split(',').any(|token| token.trim() == "gzip")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubectl_gets_a_table_and_falls_back_to_json() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,\
                       application/json";
        let resource = negotiate(kubectl, Offer::Resource, false).unwrap();
        assert_eq!(resource, Form { view: View::Table(MetaVersion::V1), ..Form::default() });
        assert_eq!(negotiate(kubectl, Offer::Plain, false).unwrap(), Form::default());
    }

    #[test]
    fn the_best_liked_form_wins() {
        let yaml = Form { encoding: Encoding::Yaml, ..Form::default() };
        let rows = [
            ("", Some(Form::default())),
            ("*/*", Some(Form::default())),
            ("text/plain,*/*", Some(Form::default())),
            ("application/*", Some(Form::default())),
            ("application/yaml", Some(yaml)),
            ("application/json;q=0.5,application/yaml", Some(yaml)),
            ("*/*,application/yaml", Some(yaml)),
            ("application/json;pretty=1", Some(Form { pretty: true, ..Form::default() })),
            ("application/vnd.kubernetes.protobuf,application/json", Some(Form::default())),
            ("application/json;stream=watch", Some(Form::default())),
            ("application/json;as=Foo;g=meta.k8s.io;v=v1", None),
            ("application/json;as=Table;g=meta.k8s.io;v=v2", None),
            ("application/vnd.kubernetes.protobuf", None),
            ("nonsense", None),
        ];
        for (accept, form) in rows {
            assert_eq!(negotiate(accept, Offer::Resource, false).ok(), form, "{accept}");
        }
    }

    #[test]
    fn refusals_list_what_is_accepted() {
        assert_eq!(
            negotiate("text/plain", Offer::Resource, false).unwrap_err().message,
            "only the following media types are accepted: application/json, application/yaml, \
             application/vnd.kubernetes.protobuf"
        );
        assert!(router_accepts("text/html, application/yaml;q=0.1", &WATCHABLE).is_ok());
        assert_eq!(
            router_accepts("application/*", &PRODUCED).unwrap_err().message,
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
             application/vnd.kubernetes.protobuf"
        );
    }

    #[test]
    fn people_read_indented_json() {
        assert!(is_for_people(None, "curl/8.5"));
        assert!(!is_for_people(Some("0"), "curl/8.5"));
        assert!(!is_for_people(None, "kubectl/v1.35.4"));
        assert!(is_for_people(Some("true"), "kubectl/v1.35.4"));
    }
}
