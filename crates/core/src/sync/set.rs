//! From the files of a commit to the objects it wants, or every reason why it cannot be had.
//!
//! What is read here is what is written: the namespace is filled in, what a server alone may say is taken out, secrets in
//! plain text become data. Never drops an object silently: one that is not understood is a problem with a place.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock},
};

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{
    allow::Allowance,
    expressions::{self, Compiler, Expressions},
    id::{Id, Sort, Sorts, cut},
    policy::{Policy, policy},
    stage,
};
use crate::{
    api::constants::annotation,
    engine::key,
    kubernetes::{
        builtin, facts, names,
        schema::crd,
        value::{Map, Text, Value, intern},
    },
    manifest::{File, Object, place::Step},
};

/// What a commit wants.
#[derive(Debug, Clone, Default)]
pub struct Set {
    /// Its objects, in the order in which they are written.
    pub objects: Vec<Desired>,
    /// What it runs once, in the order in which that begins.
    pub hooks: Vec<Desired>,
    /// What is wrong with it. If anything is, nothing of it is written.
    pub problems: Vec<Problem>,
    /// Computed when it is first asked for.
    digest: OnceLock<String>,
}

impl Set {
    /// A commit of which nothing can be had.
    pub fn unreadable(problem: Problem) -> Set {
        Set { problems: vec![problem], ..Set::default() }
    }

    /// Its objects, and what it runs once.
    pub fn with_hooks(&self) -> impl Iterator<Item = &Desired> {
        self.objects.iter().chain(&self.hooks)
    }

    /// A digest of every object with its content: two sets with the same digest want the same, in whichever files their objects
    /// stand.
    pub fn digest(&self) -> &str {
        self.digest.get_or_init(|| {
            let line = |object: &Desired| format!("{}/{}\t{}\n", object.id.group, object.id, object.digest);
            let mut lines: Vec<String> = self.with_hooks().map(line).collect();
            lines.sort_unstable();
            let digest = ring::digest::digest(&ring::digest::SHA256, lines.concat().as_bytes());
            digest.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
        })
    }
}

/// An object that a commit wants.
#[derive(Debug, Clone)]
pub struct Desired {
    /// Its names.
    pub id: Id,
    /// What it is to say.
    pub object: Value,
    /// What of its content can be told in a few bytes.
    pub digest: Text,
    /// Its file.
    pub file: Text,
    /// The line it begins in.
    pub line: usize,
    /// Where overlays changed it, by file and line; none unless a kustomization rendered it.
    pub patched: Arc<[(Text, usize)]>,
    /// The commit that its content came with, if that is known to be an older one.
    pub blamed: Option<Text>,
    /// What its kind is.
    pub sort: Arc<Sort>,
    /// How it wants to be treated.
    pub policy: Policy,
    /// By what it says itself how it is doing.
    pub expressions: Expressions,
}

impl Desired {
    /// Where it stands, for people: `base/web.yaml:2, patched in prod/web.yaml:1`.
    pub fn place(&self) -> String {
        let patched = patched(&self.patched);
        format!("{}:{}{patched}", self.file, self.line)
    }
}

/// Where overlays changed an object, after its own place: `, patched in prod/web.yaml:1`.
pub fn patched(patched: &[(Text, usize)]) -> String {
    let places: Vec<String> = patched.iter().map(|(file, line)| format!("{file}:{line}")).collect();
    if places.is_empty() { String::new() } else { format!(", patched in {}", places.join(", ")) }
}

/// Something wrong with a commit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The file; empty if it is about none.
    pub file: Text,
    /// The line; 0 if it is about none.
    pub line: usize,
    /// What is wrong, and what to do.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.file.as_str(), self.line) {
            ("", _) => f.write_str(&self.message),
            (file, 0) => write!(f, "{file}: {}", self.message),
            (file, line) => write!(f, "{file}:{line}: {}", self.message),
        }
    }
}

/// Where the objects of a source go.
#[derive(Debug, Clone)]
pub struct Scope {
    /// The namespace of objects that name none.
    pub namespace: Text,
    /// What may be brought.
    pub allowance: Allowance,
}

/// The kinds that a commit's objects are of, as `apiVersion` and `kind`: what must be known before they are read.
pub fn kinds(files: &[File]) -> Vec<(Text, Text)> {
    let objects = files.iter().flat_map(|file| &file.objects);
    let mut kinds: Vec<_> = objects.map(|object| (intern(object.api_version()), intern(object.kind()))).collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

/// What a file wants.
#[derive(Debug, Clone, Default)]
pub struct Part {
    /// Its objects, in their order.
    objects: Vec<Desired>,
    /// What is wrong with them.
    problems: Vec<Problem>,
    /// Whether it defines kinds: other files may depend on it.
    defines: bool,
}

impl Part {
    /// Whether it means the same in every commit in which it is the same file.
    pub fn is_plain(&self) -> bool {
        self.problems.is_empty() && !self.defines
    }

    /// The kinds of its objects, as `apiVersion` and `kind`.
    pub fn kinds(&self) -> impl Iterator<Item = (Text, Text)> {
        self.objects.iter().map(|desired| kind_of(&desired.object))
    }

    /// The same, with what its kinds are now; `None` if it has to be read again.
    pub fn renewed(&self, sorts: &Sorts) -> Option<Part> {
        let renew = |desired: &Desired| {
            let sort = sorts.get(&kind_of(&desired.object))?.clone()?;
            let is_same = sort.namespaced == desired.sort.namespaced && sort.plural == desired.sort.plural;
            is_same.then(|| Desired { sort, blamed: None, ..desired.clone() })
        };
        let objects: Option<Vec<Desired>> = self.objects.iter().map(renew).collect();
        objects.filter(|_| self.is_plain()).map(|objects| Part { objects, ..Part::default() })
    }
}

fn kind_of(object: &Value) -> (Text, Text) {
    let text = |key| object.get(key).and_then(Value::as_text).cloned().unwrap_or_default();
    (text("apiVersion"), text("kind"))
}

/// Reads the objects of a commit.
pub fn read(files: &[File], scope: &Scope, sorts: &Sorts) -> Set {
    assemble(parts(files, scope, sorts))
}

/// Reads the objects of files, file by file.
pub fn parts(files: &[File], scope: &Scope, sorts: &Sorts) -> Vec<Part> {
    let own = defined(files.iter().flat_map(|file| &file.objects));
    let mut compiler = Compiler::default();
    let mut part = |file: &File| {
        let mut part = Part::default();
        for mistake in file.mistakes.iter().filter(|mistake| mistake.kind.is_fatal()) {
            let line = file.source.position(mistake.span.start).line;
            let remedy = if mistake.remedy.is_empty() { String::new() } else { format!("; {}", mistake.remedy) };
            part.problems.push(Problem {
                file: Text::from(file.source.name.as_str()),
                line,
                message: format!("{}{remedy}", mistake.what),
            });
        }
        for object in &file.objects {
            part.defines |= is_definition(object);
            match desired(object, scope, sorts, &own, &mut compiler) {
                Err(problem) => part.problems.push(problem),
                Ok(desired) => part.objects.push(desired),
            }
        }
        part
    };
    files.iter().map(&mut part).collect()
}

/// Puts the objects of a commit in their order.
pub fn assemble(parts: Vec<Part>) -> Set {
    let mut set = Set::default();
    let mut seen: BTreeMap<Id, (Text, usize)> = BTreeMap::new();
    for part in parts {
        set.problems.extend(part.problems);
        for desired in part.objects {
            if set.objects.len() == OBJECTS {
                let message = format!("the commit brings more than {OBJECTS} objects; split it into several sources");
                set.problems.push(Problem { file: desired.file.clone(), line: desired.line, message });
                set.problems.sort();
                return set;
            }
            let place = (desired.file.clone(), desired.line);
            if let Some((file, line)) = seen.insert(desired.id.clone(), place) {
                let message = format!("{} is given twice, first in {file}:{line}; remove one", desired.id);
                set.problems.push(Problem { file: desired.file.clone(), line: desired.line, message });
            }
            match desired.policy.hook {
                Some(_) => set.hooks.push(desired),
                None => set.objects.push(desired),
            }
        }
    }
    set.problems.sort();
    let all = set.objects.iter().filter(|desired| !desired.expressions.is_empty()).count();
    set.objects.iter_mut().for_each(|desired| desired.expressions.limit = expressions::limit(all));
    for objects in [&mut set.objects, &mut set.hooks] {
        objects.sort_by_cached_key(|desired| stage::order(desired.policy.wave, &desired.id));
    }
    set
}

/// How much is shown of what is wrong with an expression: it repeats the expression for each mistake in it.
const SHOWN: usize = 1024;

/// How many objects a source may bring: each is compared in every pass.
const OBJECTS: usize = 10_000;

/// Whether an object defines a kind.
pub fn is_definition(object: &Object) -> bool {
    object.group() == "apiextensions.k8s.io" && object.kind() == "CustomResourceDefinition"
}

/// The kinds that the commit's own definitions define.
fn defined<'o>(objects: impl Iterator<Item = &'o Object>) -> BTreeMap<(Text, Text), Arc<Sort>> {
    let definitions = objects.filter(|object| is_definition(object));
    let kinds = definitions.flat_map(|definition| {
        let mut value = definition.value.clone();
        crd::default(&mut value);
        crd::kinds(&value)
    });
    let sort = |kind| Arc::new(Sort { served: false, ..Sort::of(&Arc::new(kind)) });
    let named = kinds.map(|kind| ((Text::from(kind.api_version()), kind.kind.clone()), sort(kind)));
    named.collect()
}

fn desired(
    object: &Object,
    scope: &Scope,
    sorts: &Sorts,
    own: &BTreeMap<(Text, Text), Arc<Sort>>,
    compiler: &mut Compiler,
) -> Result<Desired, Problem> {
    let file = Text::from(object.source.name.as_str());
    let kind = [Step::Key("kind")];
    // Of a rendered object a patch may have given the kind; it is still known by where it was first written.
    let is_own = Arc::ptr_eq(object.source_of(kind), &object.source);
    let line = if is_own { object.position(kind).line } else { object.position([]).line };
    let refuse = |steps: &[Step<'_>], message: String| {
        let file = Text::from(object.source_of(steps.iter().copied()).name.as_str());
        let line = object.position(steps.iter().copied()).line;
        Err(Problem { file, line, message })
    };
    let name = (intern(object.api_version()), intern(object.kind()));
    let served = sorts.get(&name).cloned().flatten();
    let Some(sort) = served.or_else(|| own.get(&name).cloned()) else {
        let message = format!(
            "the cluster serves no {} of {}; install its definition, or put it into the same folder",
            name.1, name.0
        );
        return refuse(&[Step::Key("kind")], message);
    };
    let mut value = cleaned(&object.value);
    if object.value.at(&["sops", "mac"]).is_some() {
        let message = format!(
            "the {} {} is encrypted with SOPS, which is not decrypted here; keep secrets in the cluster with External \
             Secrets or Sealed Secrets, or leave the file out with spec.exclude",
            name.1,
            object.name()
        );
        return refuse(&[Step::Key("sops")], message);
    }
    if object.name().is_empty() {
        match generated(&value) {
            Some(named) => value.set_at(&["metadata", "name"], named),
            None => return refuse(&[Step::Key("metadata")], format!("the {} has no name; give it one", name.1)),
        }
    }
    if sort.namespaced && object.namespace().is_empty() {
        value.set_at(&["metadata", "namespace"], &scope.namespace);
    } else if !sort.namespaced {
        value.remove_at(&["metadata", "namespace"]);
    }
    let id = Id::of(&value);
    if let Some(message) = scope.allowance.refuses(&id, &sort) {
        return refuse(&[Step::Key("kind")], message);
    }
    if !id.namespace.is_empty()
        && let Some(problem) = names::dns_label(&id.namespace).into_iter().next()
    {
        let steps = [Step::Key("metadata"), Step::Key("namespace")];
        return refuse(&steps, format!("{:?} is not a namespace: {problem}", id.namespace));
    }
    let bad = name_problem(&sort, &id);
    if let Some(problem) = bad {
        return refuse(
            &[Step::Key("metadata"), Step::Key("name")],
            format!("{:?} is no name: {problem}", id.name.as_str()),
        );
    }
    let policy = match policy(&value) {
        Ok(policy) => policy,
        Err((key, message)) => {
            return refuse(&[Step::Key("metadata"), Step::Key("annotations"), Step::Key(key)], message);
        }
    };
    let mut expressions = Expressions::default();
    let (healthy, failed) = &policy.health;
    for (key, text, place) in [
        (annotation::HEALTH, healthy, &mut expressions.healthy),
        (annotation::HEALTH_FAILED, failed, &mut expressions.failed),
    ] {
        let Some(text) = text else { continue };
        match compiler.compile(text, &sort) {
            Ok(expression) => *place = Some(expression),
            Err(why) => {
                let steps = [Step::Key("metadata"), Step::Key("annotations"), Step::Key(key)];
                return refuse(&steps, format!("{key} is no CEL expression about {}: {}", name.1, cut(&why, SHOWN)));
            }
        }
    }
    let digest = digest(&value);
    let patched = object.patched().map(|(source, at)| (Text::from(source.name.as_str()), at.line)).collect();
    Ok(Desired { id, digest, file, line, patched, blamed: None, sort, policy, expressions, object: value })
}

/// The name of a hook that asks for a generated one: the same for the same content, because it is looked for by name.
fn generated(object: &Value) -> Option<String> {
    let prefix = object.str_at(&["metadata", "generateName"])?;
    let is_hook = policy(object).is_ok_and(|policy| policy.hook.is_some());
    is_hook.then(|| format!("{prefix}{}", digest(object)))
}

fn name_problem(sort: &Sort, id: &Id) -> Option<String> {
    // A name that a URL path could misread must not reach one, whatever the kind's own rules are.
    if key::path(&[&id.name]).is_err() {
        return Some("it may not be `.` or `..`, nor hold `/`, `\\`, `%`, `?`, `#` or a control character".to_owned());
    }
    let kind = sort.kind.as_deref().filter(|kind| kind.custom().is_none())?;
    builtin::validate_name(kind, &id.name).into_iter().next()
}

/// An object without what only a server may say, and with its secrets as data.
fn cleaned(object: &Value) -> Value {
    const SERVERS: [&str; 8] = [
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    ];
    let mut value = object.clone();
    value.remove_at(&["status"]);
    for field in SERVERS {
        value.remove_at(&["metadata", field]);
    }
    drop_null_stamps(&mut value);
    value.remove_at(&["metadata", "annotations", annotation::LAST_APPLIED]);
    if value.at(&["metadata", "annotations"]).is_some_and(|notes| notes.as_map().is_some_and(|map| map.is_empty())) {
        value.remove_at(&["metadata", "annotations"]);
    }
    let is_secret = value.str_at(&["kind"]) == Some("Secret") && value.str_at(&["apiVersion"]) == Some("v1");
    if is_secret && let Some(plain) = value.remove_at(&["stringData"]) {
        // Write-only: a server keeps it as data, and nobody could tell later whether it still says the same.
        for (key, text) in plain.as_map().into_iter().flat_map(|map| map.iter()) {
            let text = text.as_str().unwrap_or_default();
            value.set_at(&["data", key], STANDARD.encode(text));
        }
    }
    value
}

/// Drops `creationTimestamp: null` from the metadata of templates: generators write it, and schemas do not know it there.
fn drop_null_stamps(value: &mut Value) {
    if !has_null_stamps(value) {
        return;
    }
    if let Some(items) = value.as_list_mut() {
        items.iter_mut().for_each(drop_null_stamps);
        return;
    }
    let keys: Vec<Text> = value.as_map().into_iter().flat_map(Map::keys).cloned().collect();
    for key in keys {
        let Some(below) = value.as_map_mut().and_then(|map| map.get_mut(&key)) else { continue };
        if key == *"metadata" && below.get("creationTimestamp").is_some_and(Value::is_null) {
            below.remove_at(&["creationTimestamp"]);
        }
        drop_null_stamps(below);
    }
}

/// Looked for first: what is not changed stays shared with where it was read.
fn has_null_stamps(value: &Value) -> bool {
    match value {
        Value::Map(map) => map.iter().any(|(key, below)| {
            key == "metadata" && below.get("creationTimestamp").is_some_and(Value::is_null) || has_null_stamps(below)
        }),
        Value::List(items) => items.iter().any(has_null_stamps),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => false,
    }
}

fn digest(object: &Value) -> Text {
    let digest = ring::digest::digest(&ring::digest::SHA256, object.to_json().as_bytes());
    digest.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

/// What is known of the built-in kinds among these, without asking anybody.
pub fn built_in(kinds: &[(Text, Text)]) -> Sorts {
    let sort = |(api_version, kind): &(Text, Text)| {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        facts::kind(group, version, kind).map(|kind| Arc::new(Sort::of(kind)))
    };
    kinds.iter().filter_map(|name| Some((name.clone(), Some(sort(name)?)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest;

    fn scope() -> Scope {
        Scope {
            namespace: "shop".into(),
            allowance: Allowance { kinds: vec!["*".into()], namespaces: vec!["shop".into()] },
        }
    }

    fn set(text: &str) -> Set {
        let files = [manifest::read("deploy/a.yaml", text.as_bytes())];
        let sorts = built_in(&kinds(&files));
        read(&files, &scope(), &sorts)
    }

    #[track_caller]
    fn problem(text: &str, expected: &[&str]) {
        let told: Vec<String> = set(text).problems.iter().map(ToString::to_string).collect();
        assert_eq!(told, expected, "{text}");
    }

    fn map(metadata: &str) -> String {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  {metadata}\n")
    }

    #[test]
    fn a_creation_timestamp_of_null_is_dropped_wherever_a_generator_wrote_it() {
        let text = "apiVersion: argoproj.io/v1alpha1\nkind: Experiment\nmetadata:\n  name: a\n  creationTimestamp: null\nspec:\n  \
                    templates:\n  - name: x\n    template:\n      metadata:\n        creationTimestamp: null\n        labels: {app: x}\n      \
                    spec:\n        volumes: [{name: v, configMap: {name: metadata}}]\n";
        let value = manifest::read("a.yaml", text.as_bytes()).objects[0].value.clone();
        let mut expected = value.clone();
        expected.remove_at(&["metadata", "creationTimestamp"]);
        let templates =
            expected.as_map_mut().unwrap().get_mut("spec").unwrap().as_map_mut().unwrap().get_mut("templates").unwrap();
        templates.as_list_mut().unwrap()[0].remove_at(&["template", "metadata", "creationTimestamp"]);
        assert_eq!(cleaned(&value), expected);
        assert!(!expected.to_json().contains("creationTimestamp"));
        // One that says something else is a mistake to be told.
        let said = manifest::read("a.yaml", text.replace("null\n        labels", "now\n        labels").as_bytes());
        assert!(cleaned(&said.objects[0].value).to_json().contains("\"creationTimestamp\":\"now\""));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        problem(&map("name: a"), &[]);
        problem(
            &format!("{}---\n# again\n{}", map("name: a"), map("name: a")),
            &["deploy/a.yaml:8: ConfigMap shop/a is given twice, first in deploy/a.yaml:2; remove one"],
        );
        problem(
            &map("{name: a, namespace: bank}"),
            &["deploy/a.yaml:2: the source does not allow the namespace bank; add it to spec.allow.namespaces"],
        );
        problem(&map("labels: {}"), &["deploy/a.yaml:4: the ConfigMap has no name; give it one"]);
        problem(&map("generateName: a-"), &["deploy/a.yaml:4: the ConfigMap has no name; give it one"]);
        problem(
            "apiVersion: example.org/v1\nkind: Widget\nmetadata:\n  name: a\n",
            &[
                "deploy/a.yaml:2: the cluster serves no Widget of example.org/v1; install its definition, or put it into \
               the same folder",
            ],
        );
        problem(
            &map("{name: a, annotations: {tidegate.dev/wave: soon}}"),
            &["deploy/a.yaml:4: tidegate.dev/wave is \"soon\"; write a whole number"],
        );
        problem(
            &map("name: ../secrets/b"),
            &[
                "deploy/a.yaml:4: \"../secrets/b\" is no name: it may not be `.` or `..`, nor hold `/`, `\\`, `%`, `?`, `#` or a control character",
            ],
        );
        assert!(!set("a: 1\n  b: [").problems.is_empty());
    }

    #[test]
    fn an_encrypted_secret_is_recognised_and_a_hook_gets_a_name() {
        problem(
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\ndata:\n  k: ENC[AES256_GCM,data:x]\nsops:\n  mac: ENC[x]\n",
            &[
                "deploy/a.yaml:8: the Secret a is encrypted with SOPS, which is not decrypted here; keep secrets in the \
               cluster with External Secrets or Sealed Secrets, or leave the file out with spec.exclude",
            ],
        );
        let hook = |text: &str| {
            let text = format!(
                "{}  annotations: {{argocd.argoproj.io/hook: PreSync}}\ndata: {{k: {text}}}\n",
                map("generateName: a-")
            );
            let set = set(&text);
            assert_eq!((set.problems.as_slice(), set.objects.len()), (&[][..], 0));
            set.hooks[0].id.name.to_string()
        };
        assert!(hook("x").starts_with("a-") && hook("x").len() == 18);
        assert_eq!(hook("x"), hook("x"));
        assert_ne!(hook("x"), hook("z"));
    }

    #[test]
    fn an_object_is_what_will_be_written_and_no_more() {
        let text = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n  uid: x\n  resourceVersion: '7'\n  annotations:\n    \
                    kubectl.kubernetes.io/last-applied-configuration: '{}'\nstringData: {b: plain}\ndata: {c: eA==}\nstatus: {d: 1}\n";
        let set = set(text);
        let expected = crate::value!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "shop"},
            "data": {"b": "cGxhaW4=", "c": "eA=="},
        });
        assert_eq!(set.objects[0].object, expected);
    }

    #[test]
    fn a_kind_may_come_with_its_definition_in_one_commit() {
        let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.org}\n\
                          spec:\n  group: example.org\n  scope: Namespaced\n  names: {plural: widgets, kind: Widget}\n  versions:\n  - name: v1\n    \
                          served: true\n    storage: true\n    schema: {openAPIV3Schema: {type: object}}\n";
        let set = set(&format!("apiVersion: example.org/v1\nkind: Widget\nmetadata: {{name: a}}\n---\n{definition}"));
        assert_eq!(set.problems, []);
        let order: Vec<(&str, bool)> = set.objects.iter().map(|d| (d.id.kind.as_str(), d.sort.served)).collect();
        assert_eq!(order, [("CustomResourceDefinition", true), ("Widget", false)]);
        assert_eq!(set.objects[1].id.namespace, "shop");
    }

    #[test]
    fn a_digest_is_about_content_not_about_its_form() {
        let first = set(&map("{name: a, labels: {b: c, d: e}}"));
        let second =
            set("metadata: {labels: {d: e, b: c}, namespace: shop, name: a}\nkind: ConfigMap\napiVersion: v1\n");
        let third = set(&map("{name: a, labels: {b: c, d: f}}"));
        assert_eq!(first.objects[0].digest, second.objects[0].digest);
        assert_ne!(first.objects[0].digest, third.objects[0].digest);
    }

    /// The source of one tenant does not keep the others waiting, whatever it writes into expressions.
    #[test]
    fn sr14_what_expressions_of_a_commit_may_cost_is_bounded() {
        let with = |name: &str, expression: &str| {
            map(&format!("name: {name}\n  annotations:\n    tidegate.dev/health: \"{expression}\"")) + "---\n"
        };
        problem(
            &with("a", &format!("'{}' == ''", "x".repeat(1100))),
            &[
                "deploy/a.yaml:6: tidegate.dev/health is no CEL expression about ConfigMap: it has 1108 bytes, and 1024 are allowed",
            ],
        );
        let many: String = (0..100).map(|number| with(&format!("a{number}"), &format!("{number} > 0"))).collect();
        let told = set(&many).problems;
        assert_eq!(told.len(), 36);
        assert!(
            told[0].message.ends_with("more than 64 different ones; use the same for objects of a kind"),
            "{}",
            told[0]
        );
        // Programs of patterns, and loops in loops, on every object.
        let began = std::time::Instant::now();
        let keys: String = (0..300).map(|number| format!("  k{number}: v\n")).collect();
        let loops = "self.data.all(a, self.data.all(b, self.data.all(c, a + b + c != 'x')))";
        let patterns = "self.metadata.name.matches('[[:alpha:]]{900}') || ".repeat(20) + "true";
        let large = |number: usize| {
            let expression = if number.is_multiple_of(2) { loops } else { &patterns };
            let text = with(&format!("a{number}"), expression);
            text.replace("---\n", &format!("data:\n{keys}---\n"))
        };
        let whole: String = (0..1000).map(large).collect();
        let set = set(&whole);
        assert_eq!(set.problems, [], "{}", set.problems[0]);
        for desired in &set.objects {
            let schema = desired.sort.kind.as_ref().map(|kind| &*kind.schema);
            let doing = super::super::health::Doing::judged(&desired.object, &desired.expressions, schema);
            assert!(!doing.words.contains("no such"), "{}", doing.words);
        }
        // Without a bound it takes minutes.
        assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
    }
}
