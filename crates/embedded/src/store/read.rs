//! Reading: get and list.

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use super::{
    Store,
    registry::{Resource, TableId},
    request::{Answer, List, Options, Outcome, Request, Response},
    write::{not_found, present},
};
use crate::kubernetes::{
    kind::Kind,
    object::Object,
    selector::{Fields, Labels},
    status::{Cause, FieldError, Reason, Status},
    value::Text,
};

impl Store {
    pub(super) fn read(&mut self, resource: &Resource, kind: &Arc<Kind>, request: &Request) -> Outcome {
        if let Some(version) = &request.options.resource_version {
            self.not_too_new(parse_version(version).map_err(Status::internal_bare)?)?;
        }
        let found = self.find(&resource.table, &request.namespace, &request.name);
        let object = found.ok_or_else(|| not_found(kind, &request.name))?;
        Ok(Response::ok(Answer::Object(kind.clone(), present(kind, object))))
    }

    pub(super) fn list_request(&mut self, resource: &Resource, kind: &Arc<Kind>, request: &Request) -> Outcome {
        let options = &request.options;
        check_list_options(options, false)?;
        let wanted = Wanted::parse(kind, request)?;
        let (page, version) = self.page(resource, options)?;
        let (start, snapshot) = match &page {
            Some(token) => (Some(token), self.snapshot(&resource.table, version)),
            None if version == self.version => (None, None),
            None => (None, self.snapshot(&resource.table, version)),
        };
        let namespace = request.namespace.as_str();
        let after = start.map(|token| (token.namespace.as_str(), token.name.as_str()));
        let all = self.ordered(&resource.table, namespace, snapshot.as_ref());
        let mut rest = all.into_iter().filter(|object| {
            let key = (object.namespace(), object.name());
            after.is_none_or(|after| key_order((&key.0, &key.1), after).is_gt())
        });
        let mut items = Vec::new();
        let mut matching = rest.by_ref().filter(|object| wanted.matches(kind, object));
        // A list at "any version" comes from memory upstream, which knows no pages.
        let unlimited = options.limit == 0 || options.resource_version.as_deref() == Some("0");
        let limit = if unlimited { usize::MAX } else { options.limit };
        items.extend(matching.by_ref().take(limit));
        let next = matching.next();
        let remaining = match (&next, wanted.is_everything()) {
            (Some(_), true) => Some(1 + rest.count()),
            _ => None,
        };
        let continue_token = match (&next, items.last()) {
            (Some(_), Some(last)) => Some(Token::after(last).encode(version as i64)),
            _ => None,
        };
        let items = items.iter().map(|object| present(kind, object)).collect();
        let version = if page.as_ref().is_some_and(|token| token.inconsistent) { self.version } else { version };
        Ok(Response::ok(Answer::List(kind.clone(), List { version, continue_token, remaining, items })))
    }

    /// Where a list begins and at which version it is read.
    fn page(&self, resource: &Resource, options: &Options) -> Result<(Option<Token>, u64), Status> {
        if !options.continue_token.is_empty() {
            let (token, version) = Token::decode(&options.continue_token, resource.storage.namespaced)?;
            if version < 0 {
                return Ok((Some(Token { inconsistent: true, ..token }), self.version));
            }
            let version = version as u64;
            if version < self.history.floor() {
                return Err(token.expired());
            }
            return Ok((Some(token), version.min(self.version)));
        }
        let Some(text) = options.resource_version.as_deref() else { return Ok((None, self.version)) };
        let version = parse_version(text)
            .map_err(|message| Status::bad_request(format!("invalid resource version: {message}")))?;
        self.not_too_new(version)?;
        // Of old, a limited list at a version is a list of that version.
        let exact = options.limit > 0 && version > 0;
        match options.resource_version_match.as_deref() {
            rule if rule == Some("Exact") || (rule.is_none() && exact) => {
                if version < self.history.floor() {
                    return Err(Status::expired("The resourceVersion for the provided list is too old."));
                }
                Ok((None, version))
            }
            _ => Ok((None, self.version)),
        }
    }

    /// 504 for a version that does not exist yet. The real server waits three seconds for it first.
    fn not_too_new(&self, version: u64) -> Result<(), Status> {
        if version <= self.version {
            return Ok(());
        }
        let message = format!("Too large resource version: {version}, current: {}", self.version);
        let mut status = Status::new(504, Reason::Timeout, format!("Timeout: {message}"));
        let details = status.details.get_or_insert_default();
        details.retry_after_seconds = Some(1);
        details.causes.push(Cause {
            reason: "ResourceVersionTooLarge".into(),
            message: "Too large resource version".into(),
            field: String::new(),
        });
        Err(status)
    }

    /// What differs between now and an older version of a table: each object as it was then.
    fn snapshot(&self, table: &TableId, version: u64) -> Option<Snapshot> {
        if version >= self.version {
            return None;
        }
        let mut then = Snapshot::new();
        for change in self.history.since(version).rev().filter(|change| change.table == *table) {
            then.insert((change.object.namespace(), change.object.name()), change.old.clone());
        }
        Some(then)
    }

    /// The objects of a table in order, as they are or as they were.
    fn ordered(&self, table: &TableId, namespace: &str, snapshot: Option<&Snapshot>) -> Vec<Arc<Object>> {
        let now = self.objects(table, namespace);
        let Some(snapshot) = snapshot.filter(|snapshot| !snapshot.is_empty()) else { return now.cloned().collect() };
        let mut then: BTreeMap<(Text, Text), Arc<Object>> =
            now.map(|object| ((object.namespace(), object.name()), object.clone())).collect();
        for (key, object) in snapshot.iter().filter(|(key, _)| namespace.is_empty() || key.0 == namespace) {
            match object {
                Some(object) => then.insert(key.clone(), object.clone()),
                None => then.remove(key),
            };
        }
        let mut then: Vec<Arc<Object>> = then.into_values().collect();
        then.sort_by(|a, b| key_order((&a.namespace(), &a.name()), (&b.namespace(), &b.name())));
        then
    }
}

/// The order of keys in storage: `namespace/name` as one text, so that `a-b/x` comes before `a/x`.
pub(super) fn key_order(a: (&str, &str), b: (&str, &str)) -> std::cmp::Ordering {
    fn whole<'a>((namespace, name): (&'a str, &'a str)) -> impl Iterator<Item = u8> + 'a {
        namespace.bytes().chain(std::iter::once(b'/')).chain(name.bytes())
    }
    whole(a).cmp(whole(b))
}

type Snapshot = BTreeMap<(Text, Text), Option<Arc<Object>>>;

/// The selectors of a list or watch.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    labels: Labels,
    fields: Fields,
    name: Text,
    everything: bool,
}

impl Wanted {
    pub(super) fn parse(kind: &Kind, request: &Request) -> Result<Wanted, Status> {
        let labels = Labels::parse(&request.options.label_selector)?;
        let fields = Fields::parse(&request.options.field_selector)?;
        fields.check(kind)?;
        let everything = request.options.label_selector.is_empty() && request.options.field_selector.is_empty();
        Ok(Wanted { labels, fields, name: request.name.clone(), everything })
    }

    pub(super) fn is_everything(&self) -> bool {
        self.everything
    }

    pub(super) fn matches(&self, kind: &Kind, object: &Object) -> bool {
        (self.name.is_empty() || object.name() == self.name)
            && (self.everything || (self.labels.matches(object.labels()) && self.fields.matches(kind, object)))
    }
}

/// A version as a client writes it.
pub(super) fn parse_version(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| {
        format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax")
    })
}

/// The rules of the query of a list or watch.
pub(super) fn check_list_options(options: &Options, watch: bool) -> Result<(), Status> {
    const MATCH: &str = "resourceVersionMatch";
    const AGAIN: &str = "resourceVersionMatch is forbidden when continue is provided";
    let rule = options.resource_version_match.as_deref().unwrap_or_default();
    let version = options.resource_version.as_deref().unwrap_or_default();
    let (paged, initial) = (!options.continue_token.is_empty(), options.send_initial_events.is_some());
    let given = !rule.is_empty();
    let forbidden = |field: &str, why: &str, when: bool| when.then(|| FieldError::forbidden(field, why));
    let unsupported =
        |allowed: &[&str]| (given && !allowed.contains(&rule)).then(|| FieldError::not_supported(MATCH, rule, allowed));
    let checks = if watch {
        let needs = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        let alone = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        vec![
            forbidden(MATCH, needs, initial && rule != "NotOlderThan"),
            forbidden(MATCH, alone, given && !initial),
            unsupported(&["NotOlderThan"]),
            forbidden(MATCH, AGAIN, given && paged),
        ]
    } else {
        let unless = "resourceVersionMatch is forbidden unless resourceVersion is provided";
        let zero = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
        vec![
            forbidden(MATCH, unless, given && version.is_empty()),
            forbidden(MATCH, AGAIN, given && paged),
            unsupported(&["Exact", "NotOlderThan", ""]),
            forbidden(MATCH, zero, rule == "Exact" && version == "0"),
            forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list", initial),
        ]
    };
    let problems: Vec<FieldError> = checks.into_iter().flatten().collect();
    if !problems.is_empty() {
        return Err(Status::invalid("meta.k8s.io", "ListOptions", "", &problems));
    }
    if paged && !version.is_empty() && version != "0" {
        return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
    }
    Ok(())
}

/// Where a page ended.
#[derive(Debug, Clone, Default)]
struct Token {
    namespace: String,
    name: String,
    /// Whether it was given out with an expired page: the list goes on at the newest version.
    inconsistent: bool,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    v: String,
    #[serde(default)]
    rv: i64,
    #[serde(default)]
    start: String,
}

impl Token {
    fn after(object: &Object) -> Token {
        Token { namespace: object.namespace().to_string(), name: object.name().to_string(), inconsistent: false }
    }

    /// The token of a page read at `rv`; -1 for one that goes on at the newest version.
    fn encode(&self, rv: i64) -> String {
        let start = match self.namespace.as_str() {
            "" => format!("{}\u{0}", self.name),
            namespace => format!("{namespace}/{}\u{0}", self.name),
        };
        let wire = Wire { v: "meta.k8s.io/v1".into(), rv, start };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&wire).unwrap_or_default())
    }

    fn decode(text: &str, namespaced: bool) -> Result<(Token, i64), Status> {
        let invalid = |detail: String| {
            Status::bad_request(format!("invalid continue token: continue key is not valid: {detail}"))
        };
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|error| invalid(go_base64_error(text, &error)))?;
        let wire: Wire = serde_json::from_slice(&bytes).map_err(|error| invalid(error.to_string()))?;
        if wire.v != "meta.k8s.io/v1" {
            return Err(invalid(format!("server does not recognize this encoded version {}", wire.v)));
        }
        if wire.rv == 0 {
            return Err(invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)".into()));
        }
        if wire.start.is_empty() {
            return Err(invalid("encoded start key empty (version meta.k8s.io/v1)".into()));
        }
        if wire.start.split('/').any(|part| part == ".." || part == ".") {
            return Err(invalid(wire.start));
        }
        let key = wire.start.trim_end_matches('\u{0}');
        let (namespace, name) = match key.split_once('/') {
            Some((namespace, name)) if namespaced => (namespace, name),
            _ => ("", key),
        };
        Ok((Token { namespace: namespace.into(), name: name.into(), inconsistent: false }, wire.rv))
    }

    /// 410, with a token that goes on at the newest version.
    fn expired(&self) -> Status {
        let mut status = Status::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list \
             without the continue parameter, or use the continue token in this response to retrieve the remainder of the \
             results. Continuing with the provided token results in an inconsistent list - objects that were created, \
             modified, or deleted between the time the first chunk was returned and now may show up in the list.",
        );
        status.continue_token = Some(self.encode(-1));
        status
    }
}

/// Go names the first bad byte of a base64 text.
fn go_base64_error(text: &str, error: &base64::DecodeError) -> String {
    let at = match error {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => *at,
        base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => text.len(),
    };
    format!("illegal base64 data at input byte {at}")
}
