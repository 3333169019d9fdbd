//! The query string, decoded and checked as the real server's options are: same defaults, same refusals.

use super::path;
use crate::kubernetes::{
    selector::{Fields, Labels},
    status::{FieldError, Status},
    value::Value,
};
use crate::store::request::{FieldValidation, Options, PatchType};

/// A decoded query string.
#[derive(Debug, Clone, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Takes a query apart. Pairs that cannot be decoded are dropped, as Go does.
    pub fn parse(query: &str) -> Query {
        let decode = |text: &str| Some(path::decode(&text.replace('+', " "))?.into_owned());
        let pairs = query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';'));
        Query(
            pairs
                .filter_map(|pair| {
                    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                    Some((decode(key)?, decode(value)?))
                })
                .collect(),
        )
    }

    /// The first value of a key.
    pub fn first(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// Every value of a key.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// A boolean: anything but `0` and `false` counts as true, even nothing.
    pub fn flag(&self, key: &str) -> Option<bool> {
        self.first(key).map(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// An integer, refused in the words of Go's parser.
    pub fn int(&self, key: &str) -> Result<Option<i64>, Status> {
        self.first(key).map(int).transpose()
    }

    fn text(&self, key: &str) -> String {
        self.first(key).unwrap_or_default().to_owned()
    }

    fn filled(&self, key: &str) -> Option<&str> {
        self.first(key).filter(|value| !value.is_empty())
    }
}

fn int(text: &str) -> Result<i64, Status> {
    let refuse = |why: &str| Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"));
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refuse("invalid syntax"));
    }
    text.parse().map_err(|_| refuse("value out of range"))
}

/// The options of a list or watch, and whether it is to be a watch.
pub fn list(query: &Query) -> Result<(Options, bool), Status> {
    let options = Options {
        label_selector: query.text("labelSelector"),
        field_selector: query.text("fieldSelector"),
        bookmarks: query.flag("allowWatchBookmarks").unwrap_or_default(),
        resource_version: query.filled("resourceVersion").map(str::to_owned),
        resource_version_match: query.filled("resourceVersionMatch").map(str::to_owned),
        ..Options::default()
    };
    Labels::parse(&options.label_selector)?;
    Fields::parse(&options.field_selector)?;
    let watch = query.flag("watch").unwrap_or_default();
    let mut options = Options {
        timeout_seconds: query.int("timeoutSeconds")?.map(|seconds| seconds.max(0).unsigned_abs()),
        limit: usize::try_from(query.int("limit")?.unwrap_or_default()).unwrap_or_default(),
        continue_token: query.text("continue"),
        send_initial_events: query.flag("sendInitialEvents"),
        ..options
    };
    default_initial_events(&mut options, watch);
    let problems = if watch { watch_problems(&options) } else { list_problems(&options) };
    refuse("ListOptions", problems)?;
    Ok((options, watch))
}

/// A watch that starts at no particular version begins with what is there, as if the client had asked for it.
fn default_initial_events(options: &mut Options, watch: bool) {
    let anywhere = options.resource_version.as_deref().is_none_or(|version| version == "0");
    if watch && anywhere && options.send_initial_events.is_none() && options.resource_version_match.is_none() {
        options.send_initial_events = Some(true);
        options.resource_version_match = Some("NotOlderThan".into());
    }
}

const MATCH: &str = "resourceVersionMatch";

fn list_problems(options: &Options) -> Vec<FieldError> {
    let mut problems = Vec::new();
    if let Some(wanted) = options.resource_version_match.as_deref() {
        if options.resource_version.is_none() {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            problems.push(FieldError::forbidden(MATCH, why));
        }
        if !options.continue_token.is_empty() {
            problems.push(FieldError::forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"));
        }
        if !matches!(wanted, "Exact" | "NotOlderThan") {
            problems.push(FieldError::not_supported(MATCH, wanted, &["Exact", "NotOlderThan", ""]));
        }
        if wanted == "Exact" && options.resource_version.as_deref() == Some("0") {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            problems.push(FieldError::forbidden(MATCH, why));
        }
    }
    if options.send_initial_events.is_some() {
        problems.push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    problems
}

fn watch_problems(options: &Options) -> Vec<FieldError> {
    let mut problems = Vec::new();
    let wanted = options.resource_version_match.as_deref();
    if options.send_initial_events.is_some() && wanted != Some("NotOlderThan") {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        problems.push(FieldError::forbidden(MATCH, why));
    }
    if let Some(wanted) = wanted {
        if options.send_initial_events.is_none() {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            problems.push(FieldError::forbidden(MATCH, why));
        }
        if wanted != "NotOlderThan" {
            problems.push(FieldError::not_supported(MATCH, wanted, &["NotOlderThan"]));
        }
        if !options.continue_token.is_empty() {
            problems.push(FieldError::forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"));
        }
    }
    problems
}

/// The options of a get.
pub fn get(query: &Query) -> Result<Options, Status> {
    if query.flag("export") == Some(true) {
        let why = "the export parameter, deprecated since v1.14, is no longer supported";
        return Err(Status::bad_request(why));
    }
    Ok(Options { resource_version: query.filled("resourceVersion").map(str::to_owned), ..Options::default() })
}

/// Which write the options belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Write {
    Create,
    Update,
    Patch(PatchType),
}

/// The options of a create, update or patch.
pub fn write(query: &Query, write: Write) -> Result<Options, Status> {
    let manager = query.filled("fieldManager");
    let force = query.flag("force").filter(|_| matches!(write, Write::Patch(_)));
    let mut problems = Vec::new();
    match write {
        Write::Patch(PatchType::Apply) if manager.is_none() => {
            problems.push(FieldError::required("fieldManager", "is required for apply patch"));
        }
        Write::Patch(PatchType::Json | PatchType::Merge | PatchType::Strategic) if force.is_some() => {
            problems.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
        }
        Write::Create | Write::Update | Write::Patch(_) => {}
    }
    problems.extend(manager_problems(manager.unwrap_or_default()));
    let dry_run: Vec<&str> = query.all("dryRun").collect();
    problems.extend(dry_run_problem(&dry_run));
    let field_validation = match query.first("fieldValidation").unwrap_or_default() {
        "" | "Warn" => FieldValidation::Warn,
        "Strict" => FieldValidation::Strict,
        "Ignore" => FieldValidation::Ignore,
        other => {
            let known = ["", "Ignore", "Strict", "Warn"];
            problems.push(FieldError::not_supported("fieldValidation", other, &known));
            FieldValidation::Warn
        }
    };
    let kind = match write {
        Write::Create => "CreateOptions",
        Write::Update => "UpdateOptions",
        Write::Patch(_) => "PatchOptions",
    };
    refuse(kind, problems)?;
    let field_manager = manager.map(Into::into);
    Ok(Options { dry_run: !dry_run.is_empty(), field_manager, force, field_validation, ..Options::default() })
}

/// The longest name of a field manager.
const MANAGER_LIMIT: usize = 128;

fn manager_problems(manager: &str) -> Vec<FieldError> {
    let mut problems = Vec::new();
    if manager.len() > MANAGER_LIMIT {
        problems.push(FieldError::too_long("fieldManager", MANAGER_LIMIT));
    }
    for (at, c) in manager.char_indices().filter(|(_, c)| !printable(*c)) {
        let why = format!("invalid character U+{:04X} (at position {at})", c as u32);
        problems.push(FieldError::invalid("fieldManager", manager, why));
    }
    problems
}

fn printable(c: char) -> bool {
    c == ' ' || !(c.is_control() || c.is_whitespace())
}

/// The client's name for managedFields: the User-Agent up to the first slash, as far as it can be printed.
pub fn agent(user_agent: &str) -> String {
    let name = user_agent.split('/').next().unwrap_or_default();
    let mut short = String::new();
    for c in name.chars().filter(|c| printable(*c)) {
        if short.len() + c.len_utf8() > MANAGER_LIMIT {
            break;
        }
        short.push(c);
    }
    short
}

fn dry_run_problem(values: &[&str]) -> Option<FieldError> {
    let wrong = values.iter().any(|value| *value != "All");
    let given = Value::list(values.iter().map(|value| Value::from(*value)));
    wrong.then(|| FieldError::not_supported("dryRun", given, &["All"]))
}

/// The options of a delete, from the query: used when the request has no body.
pub fn delete(query: &Query) -> Result<(Options, Option<Value>), Status> {
    let dry_run = Value::list(query.all("dryRun").map(Value::from));
    let mut body = Value::object();
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.set_at(&[key], value);
        }
    };
    set("gracePeriodSeconds", query.int("gracePeriodSeconds")?.map(Value::from));
    set("orphanDependents", query.flag("orphanDependents").map(Value::from));
    set("propagationPolicy", query.first("propagationPolicy").map(Value::from));
    set("dryRun", Some(dry_run).filter(|values| values.as_list().is_some_and(|values| !values.is_empty())));
    for key in ["uid", "resourceVersion"] {
        if let Some(value) = query.filled(key) {
            body.set_at(&["preconditions", key], value);
        }
    }
    delete_options(body)
}

/// The options of a delete, from a decoded `DeleteOptions`. What the query cannot carry stays in the body.
pub fn delete_options(body: Value) -> Result<(Options, Option<Value>), Status> {
    let policy = body.str_at(&["propagationPolicy"]);
    let orphan = body.get("orphanDependents").and_then(Value::as_bool);
    let dry_run: Vec<&str> = body.list_at(&["dryRun"]).iter().filter_map(Value::as_str).collect();
    let mut problems = Vec::new();
    if let Some(policy) = policy {
        if orphan.is_some() {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            problems.push(FieldError::invalid("propagationPolicy", policy, why));
        }
        if !matches!(policy, "Foreground" | "Background" | "Orphan") {
            let known = ["Foreground", "Background", "Orphan", "nil"];
            problems.push(FieldError::not_supported("propagationPolicy", policy, &known));
        }
    }
    problems.extend(dry_run_problem(&dry_run));
    refuse("DeleteOptions", problems)?;
    let options = Options {
        dry_run: !dry_run.is_empty(),
        grace_period_seconds: body.int_at(&["gracePeriodSeconds"]),
        propagation_policy: policy.map(Into::into),
        orphan_dependents: orphan,
        ..Options::default()
    };
    Ok((options, Some(body)))
}

fn refuse(kind: &str, problems: Vec<FieldError>) -> Result<(), Status> {
    if problems.is_empty() { Ok(()) } else { Err(Status::invalid("meta.k8s.io", kind, "", &problems)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<T>(outcome: Result<T, Status>) -> String {
        outcome.map_or_else(|status| format!("{} {}", status.code, status.message), |_| "fine".into())
    }

    #[test]
    fn pairs_are_decoded_and_the_first_wins() {
        let query = Query::parse("a=1&a=2&b=x+y%2Cz&c&d=%zz&e;f=1&=g");
        let answers = ["a", "b", "c", "d", "e", ""].map(|key| query.first(key));
        assert_eq!(answers, [Some("1"), Some("x y,z"), Some(""), None, None, Some("g")]);
        assert_eq!(query.all("a").collect::<Vec<_>>(), ["1", "2"]);
    }

    #[test]
    fn only_zero_and_false_are_false() {
        let query = Query::parse("a=0&b=False&c=&d=no&e=true");
        let answers = ["a", "b", "c", "d", "e", "f"].map(|key| query.flag(key));
        assert_eq!(answers, [Some(false), Some(false), Some(true), Some(true), Some(true), None]);
    }

    #[test]
    fn lists_are_refused_in_the_servers_words() {
        let rows = [
            ("limit=5&continue=abc&timeoutSeconds=3", "fine"),
            ("limit=-1", "fine"),
            ("limit=abc", "400 strconv.ParseInt: parsing \"abc\": invalid syntax"),
            ("timeoutSeconds=", "400 strconv.ParseInt: parsing \"\": invalid syntax"),
            ("limit=9223372036854775808", {
                "400 strconv.ParseInt: parsing \"9223372036854775808\": value out of range"
            }),
            ("labelSelector=a%3D%3D%3Db", "400 unable to parse requirement: found '=', expected: identifier"),
            ("fieldSelector=foo", "400 invalid selector: 'foo'; can't understand 'foo'"),
            ("resourceVersionMatch=Foo", {
                "422 ListOptions.meta.k8s.io \"\" is invalid: [resourceVersionMatch: Forbidden: resourceVersionMatch is \
                 forbidden unless resourceVersion is provided, resourceVersionMatch: Unsupported value: \"Foo\": \
                 supported values: \"Exact\", \"NotOlderThan\", \"\"]"
            }),
            ("sendInitialEvents=true", {
                "422 ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is \
                 forbidden for list"
            }),
            ("sendInitialEvents=true&watch=1", {
                "422 ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents \
                 requires setting resourceVersionMatch to NotOlderThan"
            }),
            ("watch=1&resourceVersion=5", "fine"),
        ];
        for (query, answer) in rows {
            assert_eq!(message(list(&Query::parse(query))), answer, "{query}");
        }
    }

    #[test]
    fn a_watch_from_nowhere_starts_with_what_is_there() {
        let ask = |query| {
            let (options, watch) = list(&Query::parse(query)).unwrap();
            (watch, options.send_initial_events)
        };
        assert_eq!(ask("watch=1"), (true, Some(true)));
        assert_eq!(ask("watch=1&resourceVersion=0"), (true, Some(true)));
        assert_eq!(ask("watch=1&resourceVersion=7"), (true, None));
        assert_eq!(ask("watch=0"), (false, None));
    }

    #[test]
    fn writes_are_refused_in_the_servers_words() {
        let rows = [
            (Write::Create, "fieldManager=x&dryRun=All&fieldValidation=Strict", "fine"),
            (Write::Create, "dryRun=Foo&dryRun=All", {
                "422 CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Foo\",\"All\"]: supported \
                 values: \"All\""
            }),
            (Write::Update, "fieldManager=%01", {
                "422 UpdateOptions.meta.k8s.io \"\" is invalid: fieldManager: Invalid value: \"\\x01\": invalid \
                 character U+0001 (at position 0)"
            }),
            (Write::Update, "fieldValidation=strict", {
                "422 UpdateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"strict\": \
                 supported values: \"\", \"Ignore\", \"Strict\", \"Warn\""
            }),
            (Write::Patch(PatchType::Apply), "", {
                "422 PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"
            }),
            (Write::Patch(PatchType::Merge), "force=1", {
                "422 PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply \
                 patch"
            }),
        ];
        for (kind, query, answer) in rows {
            assert_eq!(message(write(&Query::parse(query), kind)), answer, "{query}");
        }
        let long = format!("fieldManager={}", "a".repeat(129));
        assert_eq!(
            message(write(&Query::parse(&long), Write::Create)),
            "422 CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: may not be more than 128 bytes"
        );
    }

    #[test]
    fn a_delete_keeps_its_preconditions_in_the_body() {
        let query = "gracePeriodSeconds=5&propagationPolicy=Orphan&uid=u&resourceVersion=7&dryRun=All";
        let (options, body) = delete(&Query::parse(query)).unwrap();
        assert_eq!(
            (options.grace_period_seconds, options.propagation_policy.as_deref(), options.dry_run),
            (Some(5), Some("Orphan"), true)
        );
        let preconditions = body.unwrap().get("preconditions").cloned();
        assert_eq!(preconditions, Some(crate::value!({"uid": "u", "resourceVersion": "7"})));
        assert_eq!(
            message(delete(&Query::parse("propagationPolicy="))),
            "422 DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"\": supported values: \
             \"Foreground\", \"Background\", \"Orphan\", \"nil\""
        );
    }

    #[test]
    fn a_client_is_named_by_the_start_of_its_user_agent() {
        assert_eq!(agent("kubectl/v1.35.4 (linux/amd64)"), "kubectl");
        assert_eq!(agent("a b\u{1}c"), "a bc");
        assert_eq!(agent(&"é".repeat(100)).len(), 128);
    }
}
