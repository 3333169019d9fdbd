//! What a daemon that knows everything has to compute: all objects against what is live, and one of them after a commit.

use std::{
    collections::{BTreeMap, HashMap},
    hint::black_box,
    sync::Arc,
    time::Instant,
};

use jiff::Timestamp;
use tidegate::{
    api::{self, GitRevision, GitSourceStatus},
    embedded::store::{
        Config, Store,
        request::{Answer, Options, PatchType, Request, Verb},
    },
    kubernetes::{object::Object, schema::crd, value::Value},
    manifest,
    model::parse,
    sync::{
        Life, View,
        allow::Allowance,
        id::{Id, Sort, Sorts},
        set::{self, Scope, Set},
        view::{Fetched, Memo},
    },
    value,
};

use crate::{
    repository::{OBJECTS, Repository},
    table::{Row, thousands},
};

/// The kinds of the repository.
fn sorts(files: &[manifest::File]) -> Sorts {
    let mut sorts = set::built_in(&set::kinds(files));
    for kind in api::crd::all().iter().flat_map(crd::kinds) {
        let name = (kind.api_version().into(), kind.kind.clone());
        sorts.insert(name, Some(Arc::new(Sort::of(&Arc::new(kind)))));
    }
    sorts
}

/// A view of a source that has seen nothing of the cluster.
fn view() -> View {
    let wire = value!({"spec": {"url": "https://git.example/shop.git", "serviceAccountName": "deployer",
        "allow": {"kinds": ["*"], "namespaces": ["*"]}}});
    View {
        now: Timestamp::UNIX_EPOCH,
        namespace: "default".into(),
        name: "shop".into(),
        generation: 1,
        life: Life::Given,
        spec: parse::git_source(&api::read(&wire).object).into_result(),
        status: GitSourceStatus::default(),
        request: String::new(),
        fetched: Fetched::Nothing,
        live: HashMap::new(),
        sets: Vec::new(),
        waits_for: Vec::new(),
        refused: BTreeMap::new(),
        answers: BTreeMap::new(),
        trouble: None,
        offered: None,
        details: Default::default(),
        denied: None,
        unlisted: None,
        memo: Memo::default(),
    }
}

/// Applies every object of a set, as the daemon would.
fn live(view: &View, set: &Set, commit: &GitRevision) -> HashMap<Id, Arc<Object>> {
    let mut store = Store::new(Config::new(Timestamp::UNIX_EPOCH, 1));
    tidegate::sim::install::definitions(&mut store).expect("our own definitions");
    let mut apply = |id: &Id, sort: &Sort, patch: &Value| {
        let request = Request {
            verb: Verb::Patch(PatchType::Apply),
            group: sort.group.clone(),
            version: sort.version.clone(),
            resource: sort.plural.clone(),
            namespace: id.namespace.clone(),
            name: id.name.clone(),
            body: Some(patch.clone()),
            options: Options { field_manager: Some("tidegate".into()), ..Default::default() },
            ..Request::default()
        };
        match store.apply(request).expect("a valid object").answer {
            Answer::Object(_, object) => object.clone(),
            _ => unreachable!("an apply answers with the object"),
        }
    };
    let pairs = view.pairs(set, commit);
    pairs
        .iter()
        .map(|pair| (pair.desired.id.clone(), apply(&pair.desired.id, &pair.desired.sort, &pair.patch)))
        .collect()
}

/// The rows of the table.
pub fn rows(repository: &Repository) -> Vec<Row> {
    let read = |(path, text): (&String, &String)| manifest::read(path.clone(), text.as_bytes());
    let files: Vec<manifest::File> = repository.texts().map(read).collect();
    let sorts = sorts(&files);
    let allowance = Allowance { kinds: vec!["*".to_owned()], namespaces: vec!["*".to_owned()] };
    let scope = Scope { namespace: "default".into(), allowance };
    let parts = set::parts(&files, &scope, &sorts);
    let whole = set::assemble(parts.clone());
    assert!(whole.problems.is_empty(), "{:?}", whole.problems.first());
    let commit = GitRevision { commit: "1".repeat(40), ..GitRevision::default() };
    let mut view = view();
    view.live = live(&view, &whole, &commit);
    let anew = (0..5).map(|_| {
        view.memo = Memo::default();
        let begin = Instant::now();
        black_box(view.pairs(&whole, &commit));
        begin.elapsed()
    });
    let anew = anew.min().unwrap_or_default();
    // One file has changed: it is read, put among the others, and compared.
    let (path, text) = repository.texts().next().expect("a file");
    let changed = text.replace("value 1 ", "value one ").replace(":1.0", ":1.1");
    let one = (0..5).map(|_| {
        let begin = Instant::now();
        let file = manifest::read(path.clone(), changed.as_bytes());
        let mut new = set::parts(std::slice::from_ref(&file), &scope, &sorts);
        let mut all: Vec<_> = parts.iter().skip(1).filter_map(|part| part.renewed(&sorts)).collect();
        all.append(&mut new);
        let set = set::assemble(all);
        black_box(view.pairs(&set, &commit));
        begin.elapsed()
    });
    let one = one.min().unwrap_or_default();
    let row = |name: String, measured: std::time::Duration, wanted| Row {
        name,
        measured: format!("{:.0} ms", measured.as_secs_f64() * 1e3),
        wanted,
        peer: String::new(),
    };
    vec![
        row(format!("{} objects compared with what is live, all known", thousands(OBJECTS as u64)), anew, "≤ 500 ms"),
        row("the same after one file has changed: read, put in order, compared".into(), one, "≤ 50 ms"),
    ]
}
