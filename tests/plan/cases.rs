use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use jiff::SignedDuration;
use tidegate::{
    embedded::store::request::{PatchType, Request, Verb},
    engine::key::Place,
    kustomize::{self, Entry, Located, Rendered, Tree},
    manifest,
    model::git_source::Rendering,
    plan::{Plan, Side, kinds, output},
    rollout::Seen,
    sim::{
        forecast::{Model, START},
        plan::{Reading, Rules, Sets, Sides, make_from, sets},
        starts::Origin,
    },
    sync::{
        allow::Allowance,
        id::Id,
        set::{self, Problem, Scope},
    },
    value,
};

/// A change, as its file says.
pub struct Case {
    pub name: String,
    pub old: Vec<(String, String)>,
    pub new: Vec<(String, String)>,
    pub past: Vec<Past>,
}

/// What happened before.
pub enum Past {
    Applied(String),
    Passes(SignedDuration),
    Aborts,
}

pub fn rules() -> Rules {
    let allowance = Allowance { kinds: vec!["*".into()], namespaces: vec!["*".into()] };
    Rules {
        scope: Scope { namespace: "shop".into(), allowance },
        path: "deploy".into(),
        source: String::new(),
        spec: None,
        deadline: None,
    }
}

impl Case {
    pub fn read(path: &Path) -> Case {
        let text = fs::read_to_string(path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut case = Case { name, old: Vec::new(), new: Vec::new(), past: Vec::new() };
        let mut parts = text.split("\n=== ");
        parts.next();
        for part in parts {
            let (head, body) = part.split_once('\n').unwrap_or((part, ""));
            let (side, file) = head.split_once(' ').unwrap_or((head, ""));
            let (body, orders): (Vec<&str>, Vec<&str>) = body.lines().partition(|line| !line.starts_with('!'));
            let body = body.join("\n") + "\n";
            let entry = (format!("deploy/{file}"), body.clone());
            match side {
                "old" => case.old.push(entry),
                "new" => case.new.push(entry),
                "both" => {
                    case.old.push(entry.clone());
                    case.new.push(entry);
                }
                "past" => case.past.push(Past::Applied(body)),
                other => panic!("{}: what is `{other}`?", path.display()),
            }
            for order in orders {
                case.past.push(match order.split_once(' ') {
                    Some(("!pass", seconds)) => {
                        Past::Passes(SignedDuration::from_secs(seconds.trim_end_matches('s').parse().unwrap()))
                    }
                    None if order == "!abort" => Past::Aborts,
                    _ => panic!("{}: what is `{order}`?", path.display()),
                });
            }
        }
        case
    }

    pub fn sides(&self) -> Sides {
        let side = |name: &str, files: &[(String, String)]| {
            let (files, problems) = manifests(files);
            let is_partial = !problems.is_empty();
            let side = Side { name: name.into(), commit: String::new() };
            Reading { problems, is_partial, ..Reading::of(side, files) }
        };
        Sides { old: side("main", &self.old), new: side("HEAD", &self.new) }
    }

    pub fn sets(&self, sides: &Sides) -> Sets {
        sets(sides, &rules(), &kinds::known(sides.old.files.iter().chain(&sides.new.files)))
    }

    /// What is recorded of a Rollout after the past.
    fn recorded(&self, id: &Id) -> Option<Seen> {
        if self.past.is_empty() {
            return None;
        }
        let place = Place { namespace: id.namespace.clone(), name: id.name.clone() };
        let mut model = Model::new(START);
        for past in &self.past {
            match past {
                Past::Applied(text) => {
                    let files = [manifest::read("past.yaml", text.as_bytes())];
                    let set = set::read(&files, &rules().scope, &kinds::known(files.iter()));
                    assert!(set.problems.is_empty(), "{:?}", set.problems);
                    // The one before is rolled out first.
                    if model.rollout(&place).is_some() {
                        assert!(model.settle(&place), "{}: the past does not settle", self.name);
                    }
                    model.apply(set.objects.iter());
                }
                Past::Passes(time) => model.local().advance(*time),
                Past::Aborts => {
                    let request = Request {
                        verb: Verb::Patch(PatchType::Merge),
                        group: "argoproj.io".into(),
                        version: "v1alpha1".into(),
                        resource: "rollouts".into(),
                        namespace: place.namespace.clone(),
                        name: place.name.clone(),
                        subresource: "status".into(),
                        body: Some(value!({"status": {"abort": true}})),
                        ..Request::default()
                    };
                    model.local().ask(request).unwrap();
                    model.local().advance(SignedDuration::from_secs(60));
                }
            }
        }
        if !self.past.iter().any(|past| matches!(past, Past::Passes(_) | Past::Aborts)) {
            assert!(model.settle(&place), "{}: the past does not settle", self.name);
        }
        model.local().see(&place)
    }

    pub fn plan(&self) -> Plan {
        let sides = self.sides();
        let sets = self.sets(&sides);
        make_from(&sides, &sets, &rules(), &|id| self.recorded(id).map_or(Origin::Git, Origin::recorded))
    }
}

/// The files of a side; those of folders that are kustomizations as they are rendered.
fn manifests(files: &[(String, String)]) -> (Vec<manifest::File>, Vec<Problem>) {
    let tree = Texts(files.iter().cloned().collect());
    let folders = tree.0.keys().filter_map(|path| path.rsplit_once('/'));
    let kustomizations = folders.filter(|(_, name)| kustomize::FILE_NAMES.contains(name)).map(|(folder, _)| folder);
    let kustomizations: Vec<&str> = kustomizations.collect();
    let is_plain = |path: &str| !kustomizations.iter().any(|folder| path.starts_with(&format!("{folder}/")));
    let plain = files.iter().filter(|(path, _)| is_plain(path));
    let mut read: Vec<manifest::File> =
        plain.map(|(path, text)| manifest::read(path.clone(), text.as_bytes())).collect();
    let all: Vec<Rendered> = kustomizations
        .iter()
        .map(|folder| kustomize::render(&tree, folder, Rendering::default(), &|path| path.to_owned()))
        .collect();
    let roots = kustomize::roots(all, "", |one| one);
    let problems = roots.iter().filter_map(|one| one.fault.as_ref()).map(Located::problem).collect();
    read.extend(roots.into_iter().map(|one| one.file));
    (read, problems)
}

struct Texts(BTreeMap<String, String>);

impl Tree for Texts {
    fn entry(&self, path: &str) -> Result<Option<Entry>, String> {
        if let Some(text) = self.0.get(path) {
            return Ok(Some(Entry::File { size: text.len() as u64 }));
        }
        let is_folder = self.0.keys().any(|file| file.starts_with(&format!("{path}/")));
        Ok((is_folder || path.is_empty()).then_some(Entry::Directory))
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        self.0.get(path).map(|text| text.as_bytes().to_vec()).ok_or_else(|| "no such file".to_owned())
    }
}

pub fn all() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plan/cases");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "case"));
    paths.sort();
    paths.iter().map(|path| Case::read(path)).collect()
}

#[test]
fn every_change_prints_what_is_stored() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plan/cases");
    let mut misses = Vec::new();
    let cases = all();
    for case in &cases {
        let plan = case.plan();
        let text = anstream::adapter::strip_str(&output::text(&plan)).to_string();
        let markdown = output::markdown(&plan, output::LIMIT, &|_| None);
        for (ending, printed) in [("txt", text), ("md", markdown), ("json", output::json(&plan))] {
            let stored = folder.join(format!("{}.{ending}", case.name));
            if env::var_os("TIDEGATE_BLESS").is_some() {
                fs::write(&stored, printed).unwrap();
                continue;
            }
            let expected = fs::read_to_string(&stored).unwrap_or_default();
            if expected != printed {
                misses.push(format!("{}\n--- stored\n{expected}--- printed\n{printed}", stored.display()));
            }
        }
    }
    assert!(cases.len() >= 30, "{} cases", cases.len());
    assert!(misses.is_empty(), "{}", misses.join("\n"));
}

#[test]
fn the_same_change_is_printed_alike_twice() {
    let case = all().into_iter().find(|case| case.name == "canary").unwrap();
    assert_eq!(output::json(&case.plan()), output::json(&case.plan()));
}
