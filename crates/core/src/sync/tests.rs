//! What a source does, decision by decision, on a cluster that is only a map.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, OnceLock},
};

use jiff::{SignedDuration, Timestamp};

use super::{
    Action, Guard, Life, Offer, Report, State, Verdict, View, check, compare, decide,
    detail::Detail,
    id::{Id, Sort, Sorts},
    pods::Pods,
    reason::{Doubt, Reason},
    refuse,
    rights::{MissingRights, ReadRight},
    set::{self, Scope},
    view::{Commit, Fetched, Memo, Refusal, digest_of},
};
use crate::{
    api::{self, GitRevision, GitSourceStatus},
    kubernetes::{kind::Kind, object::Object, schema::crd, value::Value},
    manifest,
    model::{
        git_source::{Drift, GitSource, OnAbort, OnImmutable, OnNewCommit, Prune},
        parse,
        weight::Limit,
    },
    value,
};

/// A source, what it has recorded, and a cluster that does what it is told.
struct Scene {
    spec: GitSource,
    status: GitSourceStatus,
    live: HashMap<Id, Arc<Object>>,
    sets: Vec<Value>,
    refused: BTreeMap<Id, Refusal>,
    waits_for: Vec<String>,
    request: String,
    fetched: Fetched,
    now: Timestamp,
    version: u64,
    /// What commits were told, oldest first.
    told: Vec<Report>,
    life: Life,
    details: BTreeMap<Id, Detail>,
    denied: Option<MissingRights>,
    unlisted: Option<MissingRights>,
    memo: Memo,
}

fn spec() -> GitSource {
    let wire = value!({"spec": {"url": "https://git.example/shop.git", "serviceAccountName": "deployer",
        "allow": {"kinds": ["*"], "namespaces": ["shop"]}}});
    parse::git_source(&api::read(&wire).object).into_result().unwrap()
}

/// A commit's hash from a digit.
fn sha(digit: u8) -> String {
    digit.to_string().repeat(40)
}

fn sorts(files: &[manifest::File]) -> Sorts {
    let kinds = set::kinds(files);
    let mut sorts = set::built_in(&kinds);
    static OURS: OnceLock<Vec<Arc<Kind>>> = OnceLock::new();
    let ours = OURS.get_or_init(|| api::crd::all().iter().flat_map(crd::kinds).map(Arc::new).collect());
    for kind in ours {
        sorts.insert((kind.api_version().into(), kind.kind.clone()), Some(Arc::new(Sort::of(kind))));
    }
    sorts
}

fn read(text: &str) -> set::Set {
    let files = [manifest::read("deploy/all.yaml", text.as_bytes())];
    let allowance = super::allow::Allowance { kinds: vec!["*".into()], namespaces: vec!["shop".into()] };
    set::read(&files, &Scope { namespace: "shop".into(), allowance }, &sorts(&files))
}

impl Scene {
    fn new() -> Scene {
        Scene {
            spec: spec(),
            status: GitSourceStatus::default(),
            live: HashMap::new(),
            sets: Vec::new(),
            refused: BTreeMap::new(),
            waits_for: Vec::new(),
            request: String::new(),
            fetched: Fetched::Nothing,
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            version: 0,
            told: Vec::new(),
            life: Life::Given,
            details: BTreeMap::new(),
            denied: None,
            unlisted: None,
            memo: Memo::default(),
        }
    }

    fn push(&mut self, digit: u8, text: &str) {
        let revision =
            GitRevision { commit: sha(digit), reference: "refs/heads/main".into(), ..GitRevision::default() };
        let commit = Commit {
            revision,
            set: read(text).into(),
            waiting: None,
            moved_back: false,
            stale: None,
            promoted: None,
            lost: None,
            alike: Vec::new(),
        };
        self.fetched = Fetched::Commit(Box::new(commit));
    }

    fn commit(&mut self) -> &mut Commit {
        match &mut self.fetched {
            Fetched::Commit(commit) => commit,
            Fetched::Nothing | Fetched::Failed(_) => panic!("nothing was pushed"),
        }
    }

    fn view(&self) -> View {
        View {
            now: self.now,
            namespace: "shop".into(),
            name: "web".into(),
            generation: 1,
            life: self.life,
            trouble: None,
            offered: None,
            denied: self.denied.clone(),
            unlisted: self.unlisted.clone(),
            memo: self.memo.clone(),
            spec: Ok(self.spec.clone()),
            status: self.status.clone(),
            request: self.request.clone(),
            fetched: self.fetched.clone(),
            live: self.live.clone(),
            sets: self.sets.clone(),
            waits_for: self.waits_for.clone(),
            refused: self.refused.clone(),
            answers: BTreeMap::new(),
            details: self.details.clone(),
        }
    }

    /// One pass: decided, judged, carried out.
    fn pass(&mut self) -> Verdict {
        let view = self.view();
        let verdict = decide(&view);
        let anew = decide(&View { memo: Memo::default(), ..view.clone() });
        assert_eq!(format!("{verdict:?}"), format!("{anew:?}"), "what is remembered changes nothing");
        assert_eq!(check(&view, &verdict), [], "{:?}", verdict.reasons);
        self.now += SignedDuration::from_secs(1);
        self.status = verdict.status.clone();
        self.told.extend(verdict.reports.iter().cloned());
        for action in &verdict.actions {
            match action {
                Action::Apply(write) => self.apply(&write.id, &write.patch, write.force),
                Action::Prune(stale) | Action::Replace(stale) | Action::EndHook(stale) => {
                    assert_eq!(self.live.remove(&stale.id).unwrap().uid(), stale.uid);
                }
                Action::HandOver(handover) => {
                    let mut service = Object::clone(&self.live[&handover.service]);
                    let path = ["metadata", "annotations", "argo-rollouts.argoproj.io/managed-by-rollouts"];
                    service.value.set_at(&path, &handover.to);
                    self.live.insert(handover.service.clone(), Arc::new(service));
                }
            }
        }
        verdict
    }

    /// Passes until nothing is written any more.
    fn settle(&mut self) -> Verdict {
        for _ in 0..10 {
            let verdict = self.pass();
            if verdict.actions.is_empty() {
                return verdict;
            }
        }
        panic!("it never ends");
    }

    fn apply(&mut self, id: &Id, patch: &Value, force: bool) {
        self.version += 1;
        let api_version = patch.str_at(&["apiVersion"]).unwrap();
        let sort = sorts(&[manifest::read("x", patch.to_json().as_bytes())]);
        let sort = sort.get(&(api_version.into(), id.kind.clone())).cloned().flatten().unwrap();
        let kind = sort.kind.clone().unwrap();
        let blank = || {
            let mut value = value!({"apiVersion": api_version, "kind": id.kind.as_str()});
            value.set_at(&["metadata", "name"], &id.name);
            value.set_at(&["metadata", "uid"], format!("uid-{}", self.version));
            if !id.namespace.is_empty() {
                value.set_at(&["metadata", "namespace"], &id.namespace);
            }
            Object { value, managers: Arc::default() }
        };
        let live = self.live.get(id).map_or_else(blank, |live| Object::clone(live));
        let mut after = compare::applied(&kind, &live, patch, force).unwrap_or_else(|d| panic!("{id}: {d:?}"));
        after.value.set_at(&["metadata", "resourceVersion"], self.version.to_string());
        if after.value.get("spec") != live.value.get("spec") {
            let generation = live.value.int_at(&["metadata", "generation"]).unwrap_or_default() + 1;
            after.value.set_at(&["metadata", "generation"], generation);
        }
        self.live.insert(id.clone(), Arc::new(after));
    }

    /// Somebody else changes an object.
    fn edit(&mut self, kind: &str, name: &str, change: impl FnOnce(&mut Value)) {
        self.version += 1;
        let id = self.live.keys().find(|id| id.kind == kind && id.name == name).unwrap().clone();
        let mut object = Object::clone(&self.live[&id]);
        change(&mut object.value);
        object.value.set_at(&["metadata", "resourceVersion"], self.version.to_string());
        self.live.insert(id, Arc::new(object));
    }

    /// The engine reports a Rollout.
    fn rollout(&mut self, phase: &str, stable: &str, current: &str) {
        self.edit("Rollout", "web", |web| {
            let generation = web.int_at(&["metadata", "generation"]).unwrap_or_default().to_string();
            let abort = phase == "Degraded";
            web.set_at(
                &["status"],
                value!({"phase": phase, "observedGeneration": generation, "stableRS": stable,
                "currentPodHash": current, "abort": abort, "updatedReplicas": 2, "replicas": 2, "availableReplicas": 2,
                "message": if abort { "RolloutAborted: it timed out" } else { "" }}),
            );
        });
    }

    /// The hash of the template that git wants.
    fn hash(&mut self) -> String {
        let desired = self.commit().set.objects.iter().find(|desired| desired.id.kind == "Rollout").unwrap();
        super::hold::template_hash(&desired.object, None).unwrap().to_string()
    }

    #[track_caller]
    fn last(&self, digit: u8, state: State, words: &str) {
        let last = self
            .told
            .iter()
            .rev()
            .find(|report| report.commit == sha(digit).as_str() && report.rollout.is_none())
            .unwrap();
        assert_eq!((last.state, last.words.as_str()), (state, words));
    }

    fn names(&self) -> Vec<&str> {
        let ids: BTreeSet<&Id> = self.live.keys().collect();
        ids.into_iter().map(|id| id.name.as_str()).collect()
    }
}

fn map(name: &str, text: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{k: {text}}}\n---\n")
}

fn rollout(image: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {{name: web}}\nspec:\n  replicas: 2\n  \
         selector: {{matchLabels: {{app: web}}}}\n  strategy: {{canary: {{steps: [{{setWeight: 50}}, {{pause: {{}}}}]}}}}\n  \
         template:\n    metadata: {{labels: {{app: web}}}}\n    spec: {{containers: [{{name: main, image: '{image}'}}]}}\n---\n"
    )
}

fn actions(verdict: &Verdict) -> Vec<String> {
    let name = |action: &Action| match action {
        Action::Apply(write) => format!("apply {}", write.id),
        Action::Prune(stale) => format!("prune {}", stale.id),
        Action::Replace(stale) => format!("replace {}", stale.id),
        Action::HandOver(handover) => format!("hand over {}", handover.service),
        Action::EndHook(stale) => format!("end {}", stale.id),
    };
    verdict.actions.iter().map(name).collect()
}

#[test]
fn a_commit_is_applied_then_seen_then_a_success() {
    let mut scene = Scene::new();
    scene.push(1, &(rollout("web:1") + &map("a", "x")));
    let first = scene.pass();
    assert_eq!(actions(&first), ["apply ConfigMap shop/a", "apply Rollout shop/web"]);
    assert_eq!(first.status.applied, None);
    assert_eq!(first.status.inventory.len(), 2, "named before they are written");
    scene.last(1, State::Pending, "applying 2 of 2 objects");
    scene.settle();
    assert_eq!(scene.status.applied.as_ref().unwrap().commit, sha(1));
    assert!(scene.status.inventory.iter().all(|entry| entry.uid.starts_with("uid-")));
    scene.last(1, State::Pending, "web: 0 of 2 pods");
    let hash = scene.hash();
    scene.rollout("Healthy", &hash, &hash);
    scene.pass();
    scene.last(1, State::Success, "rolled out: 2 objects");
    assert_eq!(scene.status.rolled_out.as_ref().unwrap().commit, sha(1));
    let ready: Vec<_> = scene.status.conditions.iter().map(|c| (c.r#type.as_str(), c.status.as_str())).collect();
    assert_eq!(ready, [("Ready", "True")]);
}

#[test]
fn s57_an_object_names_the_newest_commit_that_changed_it_and_never_in_its_pods() {
    let mut scene = Scene::new();
    scene.push(1, &(rollout("web:1") + &map("a", "x")));
    scene.settle();
    scene.push(2, &(rollout("web:1") + &map("a", "z")));
    let verdict = scene.pass();
    assert_eq!(actions(&verdict), ["apply ConfigMap shop/a"], "the Rollout's content is that of the first commit");
    scene.settle();
    let commit = |scene: &Scene, name: &str| {
        let live = scene.live.iter().find(|(id, _)| id.name == name).unwrap().1;
        live.annotation("tidegate.dev/commit").unwrap().to_owned()
    };
    assert_eq!((commit(&scene, "a"), commit(&scene, "web")), (sha(2), sha(1)));
    let web = scene.live.values().find(|live| live.name() == "web").unwrap();
    assert!(!web.value.at(&["spec", "template"]).unwrap().to_json().contains("tidegate"));
}

#[test]
fn s58_nothing_is_deleted_on_doubt() {
    let mut scene = Scene::new();
    scene.push(1, &(map("a", "x") + &map("b", "x") + &map("c", "x")));
    scene.settle();
    let doubt = |verdict: &Verdict| {
        verdict.reasons.iter().find_map(|reason| match reason {
            Reason::NoPruning(doubt) => Some(doubt.clone()),
            _ => None,
        })
    };
    scene.push(2, "");
    assert_eq!(doubt(&scene.settle()), Some(Doubt::Empty));
    let words = "nothing is deleted: there is no object in the path; remove the GitSource to let go of everything";
    scene.last(2, State::Failure, words);
    scene.push(3, &(map("a", "x") + "apiVersion: v1\nkind: [\n"));
    assert_eq!(doubt(&scene.settle()), Some(Doubt::Unread));
    scene.push(4, &map("a", "x"));
    assert_eq!(doubt(&scene.settle()), None, "two of three are just within the half, rounded up");
    assert_eq!(scene.names(), ["a"]);
    scene.push(5, &(map("a", "x") + &map("b", "x") + &map("c", "x") + &map("d", "x")));
    scene.settle();
    scene.push(6, &map("a", "x"));
    assert_eq!(doubt(&scene.settle()), Some(Doubt::TooMany { stale: 3, of: 4, limit: 2 }));
    let words = "nothing is deleted: 3 of 4 objects are no longer in the path, and one commit may delete 2; raise spec.pruneLimit";
    scene.last(6, State::Failure, words);
    scene.fetched = Fetched::Failed("no answer".into());
    assert_eq!(scene.settle().actions.len(), 0);
    scene.push(6, &map("a", "x"));
    scene.spec.prune = Prune::Never;
    assert_eq!(doubt(&scene.settle()), Some(Doubt::Off));
    scene.last(6, State::Success, "rolled out: 1 object; nothing is deleted: the source does not prune");
    scene.spec.prune = Prune::UpTo(Limit::Pods(3));
    scene.settle();
    assert_eq!(scene.names(), ["a"]);
}

#[test]
fn s58_only_what_is_ours_by_uid_goes_and_what_says_so_stays() {
    let mut scene = Scene::new();
    scene.spec.prune = Prune::UpTo(Limit::Percent(100));
    let kept =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: k, annotations: {tidegate.dev/prune: disabled}}\n---\n";
    scene.push(1, &(map("a", "x") + &map("b", "x") + kept));
    scene.settle();
    // Somebody deletes and creates a namesake, even with our mark on it.
    scene.edit("ConfigMap", "b", |b| b.set_at(&["metadata", "uid"], "another"));
    scene.push(2, &map("a", "x"));
    let verdict = scene.settle();
    assert_eq!(scene.names(), ["a", "b", "k"]);
    let b = Id::new("", "ConfigMap", "shop", "b");
    assert!(verdict.reasons.contains(&Reason::NotOurs(b)));
    let words = "rolled out: 1 object; ConfigMap shop/b is not the object that was written and stays (and 1 more)";
    scene.last(2, State::Success, words);
}

/// A Rollout of another name, moved there from `web`.
fn moved() -> String {
    rollout("web:1").replace("name: web}\nspec", "name: shop}\nspec")
}

#[test]
fn s58_what_is_renamed_goes_only_when_its_new_name_is_healthy() {
    let mut scene = Scene::new();
    scene.push(1, &(rollout("web:1") + &map("a", "x")));
    scene.settle();
    let hash = scene.hash();
    scene.rollout("Healthy", &hash, &hash);
    scene.settle();
    scene.push(2, &(moved() + &map("a", "x")));
    let verdict = scene.settle();
    assert_eq!(scene.names(), ["a", "shop", "web"]);
    let of = Id::new("argoproj.io", "Rollout", "shop", "shop");
    assert!(verdict.reasons.contains(&Reason::PrunesLater { count: 1, of }), "{:?}", verdict.reasons);
    scene.edit("Rollout", "shop", |shop| {
        shop.set_at(
            &["status"],
            value!({"phase": "Healthy", "observedGeneration": "1", "stableRS": hash.as_str(), "currentPodHash": hash.as_str()}),
        );
    });
    assert_eq!(actions(&scene.pass()), ["prune Rollout shop/web"]);
    scene.last(2, State::Pending, "deleting 1 object no longer in git");
    scene.settle();
    scene.last(2, State::Success, "rolled out: 2 objects");
}

#[test]
fn what_stands_in_the_way_of_something_new_goes_first_and_that_is_said() {
    let service = |name: &str, port: u16| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{type: NodePort, ports: [{{port: 80, nodePort: {port}}}]}}\n---\n"
        )
    };
    let refuse = |scene: &mut Scene, message: &str| {
        let verdict = decide(&scene.view());
        let Action::Apply(write) = &verdict.actions[0] else { panic!("{verdict:?}") };
        let refusal = Refusal {
            digest: digest_of(&write.patch),
            version: Some(0),
            message: message.into(),
            immutable: false,
            line: None,
        };
        scene.refused.insert(write.id.clone(), refusal);
    };
    let mut scene = Scene::new();
    scene.push(1, &(service("old", 30_001) + &map("a", "x") + &map("b", "x")));
    scene.settle();
    scene.push(2, &(service("new", 30_001) + &map("a", "x")));
    refuse(&mut scene, "spec.ports[0].nodePort: Invalid value: 30001: provided port is already allocated");
    let verdict = scene.pass();
    assert_eq!(actions(&verdict), ["prune Service shop/old"], "not b, which is in nobody's way");
    let (old, new) = (Id::new("", "Service", "shop", "old"), Id::new("", "Service", "shop", "new"));
    assert!(verdict.reasons.contains(&Reason::PrunesFirst(old, new)));
    scene.last(2, State::Pending, "new is not there yet");
    scene.refused.clear();
    scene.settle();
    scene.last(2, State::Success, "rolled out: 2 objects");
    assert_eq!(scene.names(), ["a", "new"]);
    // A name in a message counts among objects of one kind only, and only if it has what the other wants.
    scene.push(3, &(service("other", 30_002) + &map("a", "x")));
    for harmless in ["admission denied: a already exists", "new is a bad word", "the new limit of Services is exceeded"]
    {
        refuse(&mut scene, harmless);
        assert_eq!(actions(&scene.pass()), Vec::<String>::new(), "{harmless}");
        scene.refused.clear();
    }
    refuse(&mut scene, "the address already exists in shop/new.");
    assert_eq!(actions(&scene.pass()), ["prune Service shop/new"]);
}

#[test]
fn what_was_done_and_left_is_announced_once_of_each_kind() {
    let mut scene = Scene::new();
    let events = |scene: &mut Scene| -> Vec<String> {
        let view = scene.view();
        let verdict = scene.pass();
        let done = verdict.actions.iter().map(|action| match action {
            Action::Apply(write) => write.id.clone(),
            Action::Prune(stale) | Action::Replace(stale) | Action::EndHook(stale) => stale.id.clone(),
            Action::HandOver(handover) => handover.service.clone(),
        });
        super::announcements(&view, &verdict, &super::Acted { done: done.collect() })
            .iter()
            .map(|event| format!("{}: {}", event.reason, event.message))
            .collect()
    };
    scene.push(1, &(map("a", "x") + &map("b", "x") + &map("c", "x") + &map("d", "x")));
    let first = "Applied: commit 11111111: ConfigMap shop/a; ConfigMap shop/b; ConfigMap shop/c (and 1 more)";
    assert_eq!(events(&mut scene), [first]);
    assert_eq!(events(&mut scene), ["RolledOut: commit 11111111: rolled out: 4 objects"]);
    assert_eq!(events(&mut scene), [""; 0]);
    scene.edit("ConfigMap", "a", |a| a.set_at(&["data", "k"], "theirs"));
    assert_eq!(events(&mut scene), ["DriftHealed: ConfigMap shop/a was changed by others at .data.k and is put right"]);
    scene.push(2, &map("a", "x"));
    let words = "nothing is deleted: 3 of 4 objects are no longer in the path, and one commit may delete 2; raise spec.pruneLimit";
    assert_eq!(events(&mut scene), [format!("PruneRefused: commit 22222222: {words}")]);
    scene.push(3, &(map("a", "x") + &map("b", "x") + &map("c", "x")));
    assert_eq!(events(&mut scene), ["Pruned: ConfigMap shop/d is no longer in git"]);
    assert_eq!(events(&mut scene), ["RolledOut: commit 33333333: rolled out: 3 objects"]);
}

#[test]
fn what_a_stable_or_canary_template_refers_to_stays_until_it_does_not() {
    let mut scene = Scene::new();
    scene.push(1, &(map("a", "x") + &map("config-1", "x") + &map("config-2", "x")));
    scene.settle();
    let set = |replicas: i32| {
        value!({"metadata": {"name": "web-1", "namespace": "shop"}, "spec": {"replicas": replicas, "template": {"spec": {
            "containers": [{"name": "main", "envFrom": [{"configMapRef": {"name": "config-1"}}]}]}}}})
    };
    scene.sets = vec![set(2)];
    scene.push(2, &(map("a", "x") + &map("config-2", "x")));
    let verdict = scene.settle();
    let id = Id::new("", "ConfigMap", "shop", "config-1");
    assert!(verdict.reasons.contains(&Reason::StillReferenced(id, "ReplicaSet web-1".into())));
    assert_eq!(super::prune::namespaces(&scene.view(), &scene.commit().set.clone()).len(), 1);
    scene.sets = vec![set(0)];
    scene.settle();
    assert_eq!(scene.names(), ["a", "config-2"]);
}

#[test]
fn a_commit_that_changes_no_object_does_not_supersede() {
    let mut scene = Scene::new();
    scene.spec.path = "deploy".into();
    scene.push(1, &rollout("web:1"));
    scene.settle();
    let good = scene.hash();
    scene.rollout("Healthy", &good, &good);
    scene.settle();
    // The second one brings a bad image; the third one changes something elsewhere, while that is rolled out.
    scene.push(2, &rollout("web:2"));
    scene.settle();
    scene.push(3, &rollout("web:2"));
    scene.settle();
    scene.last(2, State::Pending, "web: 2 of 2 pods");
    scene.last(3, State::Pending, "no change under deploy; same as 22222222: web: 2 of 2 pods");
    let bad = scene.hash();
    scene.rollout("Degraded", &good, &bad);
    scene.settle();
    let failed = "web: held since commit 22222222: aborted: it timed out; a commit that changes its pod template, or `tidegate retry rollout web`, goes on";
    scene.last(2, State::Failure, failed);
    scene.last(3, State::Failure, &format!("no change under deploy; same as 22222222: {failed}"));
    assert!(!scene.told.iter().any(|report| report.state == State::Superseded), "{:?}", scene.told);
    // What helps the guilty one helps all.
    scene.push(4, &rollout("web:2"));
    scene.settle();
    scene.rollout("Healthy", &bad, &bad);
    scene.settle();
    scene.last(2, State::Success, "rolled out: 1 object");
    for digit in [3, 4] {
        scene.last(digit, State::Success, "no change under deploy; same as 22222222: rolled out: 1 object");
    }
    // From then on the older ones are over, whatever comes.
    let told = scene.told.len();
    scene.push(5, &rollout("web:2"));
    scene.settle();
    scene.last(5, State::Success, "no change under deploy; same as 22222222: rolled out: 1 object");
    assert!(scene.told[told..].iter().all(|report| report.commit == sha(5).as_str()), "{:?}", &scene.told[told..]);
    scene.push(6, &rollout("web:3"));
    scene.settle();
    assert!(!scene.told.iter().any(|report| report.state == State::Superseded), "{:?}", scene.told);
    // A change supersedes all that follow the content before it.
    scene.push(7, &rollout("web:3"));
    scene.settle();
    scene.push(8, &rollout("web:1"));
    scene.settle();
    for digit in [6, 7] {
        scene.last(digit, State::Superseded, "by commit 88888888");
    }
}

#[test]
fn a_commit_that_cannot_be_read_ends_those_before_it_and_joins_nothing() {
    let mut scene = Scene::new();
    scene.spec.path = "deploy".into();
    scene.push(1, &rollout("web:1"));
    scene.settle();
    scene.push(2, "apiVersion: v1\nkind: [\n");
    scene.settle();
    scene.last(1, State::Superseded, "by commit 22222222");
    scene.push(3, &rollout("web:1"));
    scene.settle();
    let hash = scene.hash();
    scene.rollout("Healthy", &hash, &hash);
    scene.settle();
    scene.last(3, State::Success, "no change under deploy; same as 11111111: rolled out: 1 object");
    let last = |digit: u8| scene.told.iter().rev().find(|report| report.commit == sha(digit).as_str()).unwrap().state;
    assert_eq!((last(1), last(2)), (State::Superseded, State::Error));
}

#[test]
fn only_so_many_commits_follow_one_content() {
    let mut scene = Scene::new();
    scene.push(1, &rollout("web:1"));
    scene.settle();
    for digit in 2..=30 {
        scene.push(digit, &rollout("web:1"));
        scene.settle();
    }
    let content = scene.status.content.clone().unwrap();
    assert_eq!((content.following.len(), &content.following[0], &content.newest), (20, &sha(1), &sha(30)));
    let superseded: BTreeSet<String> = scene
        .told
        .iter()
        .filter(|report| report.state == State::Superseded)
        .map(|report| report.commit.to_string())
        .collect();
    assert_eq!(superseded.len(), 9);
    assert!(!superseded.contains(&sha(1)));
}

#[test]
fn s60_a_commit_that_was_overtaken_is_told_so_and_never_succeeds() {
    let mut scene = Scene::new();
    scene.push(1, &rollout("web:1"));
    scene.settle();
    scene.push(2, &rollout("web:2"));
    scene.settle();
    scene.last(1, State::Superseded, "by commit 22222222");
    let hash = scene.hash();
    scene.rollout("Healthy", &hash, &hash);
    scene.settle();
    scene.last(1, State::Superseded, "by commit 22222222");
    scene.last(2, State::Success, "rolled out: 1 object");
    scene.push(3, &rollout("web:3"));
    scene.settle();
    scene.last(2, State::Success, "rolled out: 1 object");
}

#[test]
fn s60_success_waits_until_this_generation_is_promoted() {
    let mut scene = Scene::new();
    scene.push(1, &rollout("web:1"));
    scene.settle();
    let hash = scene.hash();
    scene.rollout("Healthy", &hash, &hash);
    scene.settle();
    scene.push(2, &rollout("web:2"));
    scene.pass();
    let verdict = scene.pass();
    assert_eq!(verdict.reports.last().unwrap().state, State::Pending, "the status is about the generation before");
}

#[test]
fn a_version_that_was_given_up_is_held_until_a_new_commit_or_a_retry() {
    let mut scene = Scene::new();
    scene.push(1, &rollout("web:1"));
    scene.settle();
    let good = scene.hash();
    scene.rollout("Healthy", &good, &good);
    scene.settle();
    scene.push(2, &rollout("web:2"));
    scene.settle();
    let bad = scene.hash();
    scene.rollout("Degraded", &good, &bad);
    scene.settle();
    let words = "web: held since commit 22222222: aborted: it timed out; a commit that changes its pod template, or `tidegate retry rollout web`, goes on";
    scene.last(2, State::Failure, words);
    // Somebody goes back by hand: git does not push the failed version in again, whatever else it changes.
    scene.edit("Rollout", "web", |web| {
        web.set_at(&["spec", "template", "spec", "containers"], value!([{"name": "main", "image": "web:1"}]));
        web.set_at(&["metadata", "generation"], 9);
    });
    scene.rollout("Healthy", &good, &good);
    assert_eq!(actions(&scene.settle()), Vec::<String>::new());
    scene.push(3, &(rollout("web:2") + &map("a", "x")));
    assert_eq!(actions(&scene.pass()), ["apply ConfigMap shop/a"]);
    scene.settle();
    scene.last(3, State::Failure, words);
    scene.push(4, &rollout("web:3"));
    assert_eq!(actions(&scene.pass()), ["apply Rollout shop/web"]);
    assert_eq!(scene.status.held, []);
}

#[test]
fn why_pods_were_not_ready_outlives_them() {
    let mut scene = Scene::new();
    scene.push(1, &rollout("web:1"));
    scene.settle();
    let good = scene.hash();
    scene.rollout("Healthy", &good, &good);
    scene.settle();
    scene.push(2, &rollout("web:9"));
    scene.settle();
    let bad = scene.hash();
    scene.rollout("Progressing", &good, &bad);
    let web = Id::new("argoproj.io", "Rollout", "shop", "web");
    let pods = Pods { ready: 0, wanted: 1, why: Some("ImagePullBackOff: web:9 not found".into()) };
    let detail = Detail { version: bad.clone(), pods: Some(pods), ..Detail::default() };
    scene.details.insert(web.clone(), detail);
    let verdict = scene.pass();
    assert!(verdict.wake.is_some(), "pods are not watched");
    let words = "web: step 1/2, 50 %, 0 of 1 new pods ready: ImagePullBackOff: web:9 not found";
    scene.last(2, State::Pending, words);
    scene.details.clear();
    scene.rollout("Degraded", &good, &bad);
    scene.pass();
    let words = "web: held since commit 22222222: aborted: its new pods were not ready: ImagePullBackOff: web:9 not found; it timed out; \
                 a commit that changes its pod template, or `tidegate retry rollout web`, goes on";
    scene.last(2, State::Failure, words);
    scene.push(3, &rollout("web:3"));
    scene.settle();
    let next = scene.hash();
    scene.rollout("Progressing", &good, &next);
    scene.pass();
    scene.last(3, State::Pending, "web: step 1/2, 50 %, 2 of 2 pods");
    assert_eq!(scene.status.unready, [], "another version has other pods");
}

#[test]
fn a_retry_of_the_rollout_ends_the_hold() {
    let mut scene = Scene::new();
    scene.push(1, &rollout("web:1"));
    scene.settle();
    let hash = scene.hash();
    scene.rollout("Degraded", "good", &hash);
    scene.settle();
    assert_eq!(scene.status.held.len(), 1);
    scene.rollout("Progressing", "good", &hash);
    scene.settle();
    assert_eq!(scene.status.held, []);
    scene.rollout("Healthy", &hash, &hash);
    scene.settle();
    scene.last(1, State::Success, "rolled out: 1 object");
}

#[test]
fn a_restore_takes_the_configuration_back_with_the_pods() {
    let mut scene = Scene::new();
    scene.spec.on_abort = OnAbort::Restore;
    scene.push(1, &(rollout("web:1") + &map("a", "old")));
    scene.settle();
    let good = scene.hash();
    scene.rollout("Healthy", &good, &good);
    scene.settle();
    let promoted = (scene.commit().revision.clone(), scene.commit().set.clone());
    scene.push(2, &(rollout("web:2") + &map("a", "new") + &map("b", "new")));
    scene.commit().promoted = Some(promoted);
    scene.settle();
    let bad = scene.hash();
    scene.rollout("Degraded", &good, &bad);
    scene.pass();
    let verdict = scene.settle();
    scene.rollout("Healthy", &good, &good);
    scene.settle();
    let a = scene.live.values().find(|live| live.name() == "a").unwrap();
    assert_eq!(a.value.str_at(&["data", "k"]), Some("old"));
    assert_eq!(scene.names(), ["a", "web"], "what came with it is gone with it");
    assert!(verdict.reasons.contains(&Reason::Restores { commit: sha(1).into() }));
    scene.last(2, State::Failure, "held since commit 22222222, back at commit 11111111: web: aborted: it timed out");
    assert_eq!(scene.status.rolled_out.as_ref().unwrap().commit, sha(1));
    // A person who asks for it gets another try.
    scene.request = "again".into();
    assert_eq!(actions(&scene.pass()), ["apply ConfigMap shop/a", "apply ConfigMap shop/b", "apply Rollout shop/web"]);
}

#[test]
fn what_others_change_is_put_right_or_left_as_the_source_says() {
    let mut scene = Scene::new();
    scene.push(1, &map("a", "x"));
    scene.settle();
    scene.edit("ConfigMap", "a", |a| a.set_at(&["data", "k"], "hacked"));
    scene.spec.drift = Drift::Leave;
    let verdict = scene.pass();
    let id = Id::new("", "ConfigMap", "shop", "a");
    assert_eq!(verdict.reasons, [Reason::DriftLeft(id.clone(), vec![".data.k".into()])]);
    scene.spec.drift = Drift::Heal;
    let verdict = scene.pass();
    assert_eq!(verdict.reasons, [Reason::Heals(id, vec![".data.k".into()])]);
    assert_eq!(actions(&scene.settle()), Vec::<String>::new());
}

#[test]
fn waves_wait_until_the_ones_before_are_healthy() {
    let mut scene = Scene::new();
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate, annotations: {tidegate.dev/wave: '-1'}}\nspec:\n  \
               template: {spec: {restartPolicy: Never, containers: [{name: main, image: 'x:1'}]}}\n---\n";
    scene.push(1, &(map("a", "x") + job));
    assert_eq!(actions(&scene.pass()), ["apply Job shop/migrate"]);
    scene.settle();
    scene.last(1, State::Pending, "wave 0 waits for Job shop/migrate: is running");
    scene.edit("Job", "migrate", |job| {
        job.set_at(&["status", "conditions"], value!([{"type": "Complete", "status": "True"}]));
    });
    assert_eq!(actions(&scene.pass()), ["apply ConfigMap shop/a"]);
    scene.settle();
    scene.last(1, State::Success, "rolled out: 2 objects");
}

#[test]
fn objects_may_ask_to_be_ignored_suspended_or_applied_once() {
    let with = |name: &str, note: &str, text: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, annotations: {{{note}}}}}\ndata: {{k: {text}}}\n---\n"
        )
    };
    let all = |text: &str| {
        with("a", "tidegate.dev/apply: ignore", text)
            + &with("b", "tidegate.dev/suspend: 'true'", text)
            + &with("c", "tidegate.dev/apply: once", text)
            + &map("d", text)
    };
    let mut scene = Scene::new();
    scene.push(1, &all("x"));
    scene.settle();
    assert_eq!(scene.names(), ["c", "d"]);
    scene.edit("ConfigMap", "d", |d| d.set_at(&["metadata", "annotations", "tidegate.dev/suspend"], "true"));
    scene.push(2, &all("z"));
    assert_eq!(actions(&scene.settle()), Vec::<String>::new(), "suspended in the cluster");
}

#[test]
fn a_suspended_source_and_one_that_depends_on_another_change_nothing() {
    let mut scene = Scene::new();
    scene.push(1, &map("a", "x"));
    scene.waits_for = vec!["base".into()];
    assert_eq!(actions(&scene.pass()), Vec::<String>::new());
    scene.last(1, State::Pending, "waits until the source base has rolled out");
    scene.waits_for.clear();
    scene.spec.suspend = true;
    assert_eq!(actions(&scene.pass()), Vec::<String>::new());
    assert_eq!(scene.status.conditions[0].reason, "Suspended");
    scene.spec.suspend = false;
    assert_eq!(actions(&scene.pass()), ["apply ConfigMap shop/a"]);
}

#[test]
fn a_commit_that_cannot_be_read_changes_nothing_and_says_where() {
    let mut scene = Scene::new();
    scene.push(1, &map("a", "x"));
    scene.settle();
    scene.push(2, &(map("a", "z") + "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: w}\n"));
    assert_eq!(actions(&scene.pass()), Vec::<String>::new());
    let words = "deploy/all.yaml:7: the cluster serves no Widget of example.org/v1; install its definition, or put it into the same folder";
    scene.last(2, State::Error, words);
    assert_eq!(scene.status.problems[0].line, 7);
    assert_eq!(scene.status.applied.as_ref().unwrap().commit, sha(1));
}

#[test]
fn what_belongs_to_another_source_or_tool_is_named_and_left() {
    let mut scene = Scene::new();
    scene.push(1, &(map("a", "x") + &map("b", "x")));
    scene.settle();
    scene.edit("ConfigMap", "a", |a| a.set_at(&["metadata", "labels", "tidegate.dev/source"], "bank.core"));
    scene.pass();
    let words = "deploy/all.yaml:2: ConfigMap shop/a belongs to the source bank.core; remove it from one of the two";
    scene.last(1, State::Failure, words);
}

#[test]
fn what_the_server_refused_is_not_tried_again_until_something_changes() {
    let mut scene = Scene::new();
    scene.push(1, &map("a", "x"));
    let verdict = decide(&scene.view());
    let Action::Apply(write) = &verdict.actions[0] else { panic!() };
    let refusal = Refusal {
        digest: digest_of(&write.patch),
        version: Some(0),
        message: "field is immutable".into(),
        immutable: false,
        line: Some(3),
    };
    scene.refused.insert(write.id.clone(), refusal);
    assert_eq!(actions(&scene.pass()), Vec::<String>::new());
    scene.last(1, State::Failure, "deploy/all.yaml:3: ConfigMap shop/a: field is immutable");
    scene.push(2, &map("a", "z"));
    assert_eq!(actions(&scene.pass()), ["apply ConfigMap shop/a"]);
}

#[test]
fn what_cannot_change_is_made_anew_only_if_it_or_its_source_says_so() {
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: SIZE}}}\n---\n";
    let noted = map("a", "x").replace("{name: a}", "{name: a, annotations: {tidegate.dev/replace: 'true'}}");
    let refused = |scene: &mut Scene| {
        for action in decide(&scene.view()).actions {
            let Action::Apply(write) = action else { continue };
            let (digest, version) = (digest_of(&write.patch), write.version);
            let message = "data cannot change once the object is there".to_owned();
            scene.refused.insert(write.id.clone(), Refusal { digest, version, message, immutable: true, line: None });
        }
    };
    let mut scene = Scene::new();
    let all = |text: &str, size: &str| noted.replace('x', text) + &map("b", text) + &claim.replace("SIZE", size);
    scene.push(1, &all("x", "1Gi"));
    scene.settle();
    scene.push(2, &all("z", "2Gi"));
    refused(&mut scene);
    let verdict = scene.pass();
    assert_eq!(actions(&verdict), ["replace ConfigMap shop/a"], "neither what does not ask for it nor what holds data");
    assert!(verdict.reports[0].words.contains("ConfigMap shop/b: data cannot change"), "{:?}", verdict.reports);
    scene.spec.on_immutable = OnImmutable::Replace;
    scene.refused.retain(|id, _| id.name != "a");
    assert_eq!(actions(&scene.pass()), ["apply ConfigMap shop/a", "replace ConfigMap shop/b"]);
    scene.refused.retain(|id, _| id.name != "b");
    scene.settle();
    let words = "deploy/all.yaml:12: PersistentVolumeClaim shop/data: data cannot change once the object is there";
    scene.last(2, State::Failure, words);
}

#[test]
fn an_object_that_is_there_is_taken_over() {
    let mut scene = Scene::new();
    let mut there =
        value!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop", "uid": "u"}});
    there.set_at(&["data", "k"], "x");
    let id = Id::of(&there);
    scene.live.insert(id.clone(), Arc::new(Object { value: there, managers: Arc::default() }));
    scene.push(1, &map("a", "x"));
    let verdict = scene.pass();
    assert_eq!(verdict.reasons, [Reason::Adopts(id)]);
    scene.settle();
    scene.last(1, State::Success, "rolled out: 1 object");
    assert_eq!(scene.status.inventory[0].uid, "u");
}

#[test]
fn a_new_commit_may_have_to_wait() {
    let mut source = spec();
    source.on_new_commit = OnNewCommit::Wait;
    let mut status = GitSourceStatus::default();
    assert_eq!(super::commit_to_follow(&source, &status, "b"), "b");
    status.seen = Some(GitRevision { commit: "a".into(), ..GitRevision::default() });
    assert_eq!(super::commit_to_follow(&source, &status, "b"), "a");
    status.rolled_out = status.seen.clone();
    assert_eq!(super::commit_to_follow(&source, &status, "b"), "b");
    source.on_new_commit = OnNewCommit::Supersede;
    status.rolled_out = None;
    assert_eq!(super::commit_to_follow(&source, &status, "b"), "b");
}

#[test]
fn s63_a_service_of_a_rollout_is_never_dirty() {
    let mut scene = Scene::new();
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n---\n";
    let rollout = rollout("web:1").replace("{canary: {", "{canary: {stableService: web, ");
    scene.push(1, &(rollout + service));
    scene.settle();
    scene.edit("Service", "web", |web| {
        web.set_at(&["spec", "selector", "rollouts-pod-template-hash"], "abc");
        web.set_at(&["metadata", "annotations", "argo-rollouts.argoproj.io/managed-by-rollouts"], "web");
    });
    assert_eq!(actions(&scene.pass()), Vec::<String>::new());
}

#[test]
fn same_view_same_verdict() {
    let mut scene = Scene::new();
    scene.push(1, &(rollout("web:1") + &map("a", "x")));
    scene.settle();
    let view = scene.view();
    let (one, two) = (decide(&view), decide(&view));
    assert_eq!((one.status, one.reports, one.reasons), (two.status, two.reports, two.reasons));
}

#[test]
fn what_cannot_be_put_back_stays_as_it_is_and_says_so() {
    let mut scene = Scene::new();
    scene.spec.on_abort = OnAbort::Restore;
    scene.push(1, &(rollout("web:1") + &map("a", "old")));
    scene.settle();
    let good = scene.hash();
    scene.rollout("Healthy", &good, &good);
    scene.pass();
    scene.push(2, &(rollout("web:2") + &map("a", "old")));
    scene.settle();
    let bad = scene.hash();
    scene.rollout("Degraded", &good, &bad);
    // Somebody lost the store, and the host does not give the old commit any more.
    scene.commit().lost = Some("no such commit".into());
    scene.edit("ConfigMap", "a", |a| a.set_at(&["data", "k"], "restored"));
    let verdict = scene.pass();
    assert_eq!(actions(&verdict), [] as [&str; 0]);
    let words =
        "held since commit 22222222, commit 11111111 cannot be put back: no such commit; web: aborted: it timed out";
    scene.last(2, State::Failure, words);
    scene.push(3, &(rollout("web:3") + &map("a", "old")));
    scene.commit().lost = Some("no such commit".into());
    assert_eq!(scene.pass().actions.len(), 2, "a new commit goes on");
}

#[test]
fn a_source_that_prunes_is_guarded_before_it_writes_and_one_that_does_not_is_not() {
    let mut scene = Scene::new();
    scene.life = Life::Stays { guarded: false };
    scene.push(1, &map("a", "x"));
    let first = scene.pass();
    assert_eq!((first.guard, first.actions.len(), first.reports.len()), (Some(Guard::Put), 0, 0));
    scene.life = Life::Stays { guarded: true };
    assert_eq!(scene.pass().guard, None);
    assert_eq!(scene.names(), ["a"]);
    scene.spec.prune = Prune::Never;
    assert_eq!(scene.pass().guard, Some(Guard::Take));
    scene.life = Life::Stays { guarded: false };
    assert_eq!(scene.pass().guard, None);
    scene.spec.suspend = true;
    scene.spec.prune = Prune::UpTo(Limit::Percent(50));
    assert_eq!(scene.pass().guard, None, "nothing is written, so nothing has to be guarded");
}

fn leaving() -> Scene {
    let mut scene = Scene::new();
    let kept =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: k, annotations: {tidegate.dev/prune: disabled}}\n---\n";
    let team = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n---\n";
    scene.push(1, &(rollout("web:1") + &map("a", "x") + &map("b", "x") + kept + team));
    scene.settle();
    scene.edit("ConfigMap", "b", |b| b.set_at(&["metadata", "uid"], "another"));
    scene.fetched = Fetched::Nothing;
    scene.life = Life::Leaves { guarded: true, with_namespace: false };
    scene
}

#[test]
fn s58_a_deleted_source_takes_what_is_its_own_along_workloads_first() {
    let mut scene = leaving();
    assert_eq!(actions(&scene.pass()), ["prune Rollout shop/web"]);
    assert_eq!(scene.told.last().unwrap().words, "the source was deleted");
    let second = scene.pass();
    assert_eq!((actions(&second), second.guard), (vec!["prune ConfigMap shop/a".to_owned()], None));
    let last = scene.pass();
    assert_eq!(last.guard, Some(Guard::Take));
    assert_eq!(scene.names(), ["b", "k", "team"], "a namesake, what says so, and what others live in");
    let team = Id::new("", "Namespace", "", "team");
    assert!(last.reasons.contains(&Reason::HoldsOthers(team)));
    scene.life = Life::Leaves { guarded: false, with_namespace: false };
    let verdict = scene.pass();
    assert_eq!((verdict.guard, verdict.actions.len()), (None, 0), "others keep it");
}

#[test]
fn s58_a_deleted_source_lets_go_where_it_must_not_delete() {
    let check = |change: fn(&mut Scene)| {
        let mut scene = leaving();
        change(&mut scene);
        let verdict = scene.pass();
        assert_eq!((verdict.guard, verdict.actions.len()), (Some(Guard::Take), 0));
        assert_eq!(scene.live.len(), 5);
    };
    check(|scene| scene.spec.suspend = true);
    check(|scene| scene.spec.prune = Prune::Never);
    check(|scene| scene.life = Life::Leaves { guarded: true, with_namespace: true });
}

#[test]
fn a_deletion_that_the_server_refuses_is_told_and_waits() {
    let mut scene = leaving();
    let web = Id::new("argoproj.io", "Rollout", "shop", "web");
    scene.refused.insert(web, Refusal::deletion("not allowed".into()));
    let verdict = scene.pass();
    assert_eq!((verdict.guard, verdict.actions.len()), (None, 0));
    let ready = &scene.status.conditions[0];
    assert_eq!((ready.reason.as_str(), ready.message.as_str()), ("DeletionRefused", "Rollout shop/web: not allowed"));
    // The same where git no longer has it: the commit cannot be a success.
    let mut scene = Scene::new();
    scene.push(1, &(map("a", "x") + &map("b", "x")));
    scene.settle();
    scene.refused.insert(Id::new("", "ConfigMap", "shop", "b"), Refusal::deletion("not allowed".into()));
    scene.push(2, &map("a", "x"));
    scene.settle();
    scene.last(2, State::Failure, "ConfigMap shop/b: not allowed");
}

#[test]
fn s60_each_rollout_has_a_word_of_its_own_if_the_source_wants_it() {
    let mut scene = Scene::new();
    scene.spec.report = Some(crate::model::git_source::Report {
        host: crate::model::git_source::Host::Notes,
        url: None,
        secret: None,
        context: None,
        per_rollout: true,
    });
    let each = |verdict: &Verdict| -> Vec<(String, State, String)> {
        let named = verdict
            .reports
            .iter()
            .filter_map(|report| Some((report.rollout.clone()?.to_string(), report.state, report.words.clone())));
        named.collect()
    };
    let word = |state: State, words: &str| vec![("web".to_owned(), state, words.to_owned())];
    scene.push(1, &(rollout("web:1") + &map("a", "x")));
    assert_eq!(each(&scene.pass()), word(State::Pending, "is not applied yet"));
    assert_eq!(each(&scene.settle()), word(State::Pending, "0 of 2 pods"));
    let hash = scene.hash();
    scene.rollout("Healthy", &hash, &hash);
    assert_eq!(each(&scene.pass()), word(State::Success, "fully promoted"));
    scene.push(2, &(rollout("web:2") + &map("a", "x")));
    assert_eq!(each(&scene.pass()), word(State::Pending, "is not applied yet"));
    scene.settle();
    scene.push(3, &(rollout("web:3") + &map("a", "x")));
    let words = format!("by commit {}", &sha(3)[..8]);
    assert_eq!(each(&scene.pass())[0], ("web".to_owned(), State::Superseded, words));
    scene.settle();
    let bad = scene.hash();
    scene.rollout("Degraded", &hash, &bad);
    let words = "held since commit 33333333: aborted: it timed out; a commit that changes its pod template, or `tidegate retry rollout web`, goes on";
    assert_eq!(each(&scene.pass()), word(State::Failure, words));
}

#[test]
fn what_is_remembered_about_an_object_is_forgotten_when_somebody_else_scales_it() {
    let mut scene = Scene::new();
    scene.push(1, &rollout("web:1"));
    scene.settle();
    let hash = scene.hash();
    scene.rollout("Healthy", &hash, &hash);
    scene.settle();
    scene.edit("Rollout", "web", |web| web.set_at(&["spec", "replicas"], 7));
    // An autoscaler comes with the next commit: what was said before about its target does not count any more.
    let scaler = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec:\n  maxReplicas: 9\n  \
                  scaleTargetRef: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: web}\n";
    let before = scene.view();
    let Fetched::Commit(commit) = &before.fetched else { panic!() };
    let pairs = before.pairs(&commit.set, &commit.revision);
    assert_eq!(pairs[0].patch.int_at(&["spec", "replicas"]), Some(2));
    scene.push(2, &(rollout("web:1") + scaler));
    let verdict = scene.pass();
    assert_eq!(actions(&verdict), ["apply HorizontalPodAutoscaler shop/web"], "seven stay seven");
}

/// A Deployment whose pods name a commit, as somebody may write it who wants them to.
const STAMPED: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  selector: {matchLabels: {app: d}}\n  \
                       template:\n    metadata: {labels: {app: d}, annotations: {tidegate.dev/commit: mine}}\n    \
                       spec: {containers: [{name: main, image: d}]}\n---\n";

#[test]
fn a_verdict_that_would_break_a_rule_becomes_a_condition_that_names_the_rule() {
    let mut scene = Scene::new();
    scene.push(1, &map("a", "x"));
    scene.settle();
    scene.push(2, &(map("a", "z") + STAMPED));
    scene.request = "now".into();
    let view = scene.view();
    let broken = check(&view, &decide(&view));
    assert_eq!(broken.iter().map(|broken| broken.rule).collect::<Vec<_>>(), ["S57"]);
    let refused = refuse(&view, &broken);
    assert_eq!((refused.actions.len(), &refused.offer, refused.guard), (0, &None, None));
    let words = "refused, nothing is written: S57: deploy/all.yaml:7: Deployment shop/d would name its commit in its pod \
                 template; remove tidegate.dev/commit from its spec.template.metadata";
    let told = |verdict: &Verdict| -> Vec<(String, String, String, String)> {
        let conditions = verdict.status.conditions.clone();
        conditions.into_iter().map(|told| (told.r#type, told.status, told.reason, told.message)).collect()
    };
    let condition = |name: &str, status: &str| {
        (name.to_owned(), status.to_owned(), "RefusedByRuleS57".to_owned(), words.to_owned())
    };
    assert_eq!(told(&refused), [condition("Ready", "False"), condition("Stalled", "True")]);
    assert_eq!(refused.reports, [Report::new(&sha(2), State::Error, words.to_owned())]);
    // What was known stays known; what was seen and asked for is noted.
    let (before, after) = (&view.status, &refused.status);
    assert_eq!(
        (&after.inventory, &after.applied, &after.rolled_out),
        (&before.inventory, &before.applied, &before.rolled_out)
    );
    assert_eq!(after.seen.as_ref().map(|seen| seen.commit.clone()), Some(sha(2)));
    assert_eq!((after.observed_generation, after.last_sync_request.as_str()), (1, "now"));
    // Later the same is the same, so that nothing is recorded anew.
    scene.status = refused.status.clone();
    scene.now += SignedDuration::from_mins(5);
    let view = scene.view();
    assert_eq!(refuse(&view, &check(&view, &decide(&view))).status, refused.status);
    // The next commit is carried out, and the refused one had its last word.
    scene.push(3, &map("a", "z"));
    scene.settle();
    scene.last(3, State::Success, "rolled out: 1 object");
    assert!(!scene.told.iter().any(|report| report.state == State::Superseded), "{:?}", scene.told);
}

#[test]
fn a_revert_is_wanted_until_it_is_offered() {
    let mut scene = Scene::new();
    scene.spec.on_abort = OnAbort::Revert;
    scene.push(1, &rollout("web:1"));
    scene.settle();
    let good = scene.hash();
    scene.rollout("Healthy", &good, &good);
    scene.settle();
    let promoted = (scene.commit().revision.clone(), scene.commit().set.clone());
    scene.push(2, &rollout("web:2"));
    scene.settle();
    let bad = scene.hash();
    scene.rollout("Degraded", &good, &bad);
    scene.commit().promoted = Some(promoted);
    let mut view = scene.view();
    let wanted = decide(&view);
    assert_eq!(check(&view, &wanted), []);
    let Some(Offer { from, to, why, .. }) = wanted.offer else { panic!("{:?}", wanted.reasons) };
    assert_eq!((from.as_str(), to.as_str(), why.as_str()), (&*sha(2), &*sha(1), "web: aborted: it timed out"));
    view.offered = Some("tidegate/revert-22222222".to_owned());
    let offered = decide(&view);
    assert_eq!(offered.offer, None);
    let both = [&wanted.reports, &offered.reports].map(|reports| reports[0].words.clone());
    let words = |revert: &str| {
        format!("held since commit 22222222, back at commit 11111111{revert}: web: aborted: it timed out")
    };
    assert_eq!(both, [words(""), words(", a revert is on the branch tidegate/revert-22222222")]);
}

#[test]
fn sr12_what_may_not_be_read_is_neither_written_nor_deleted_nor_forgotten() {
    let mut scene = Scene::new();
    scene.push(1, &(map("a", "x") + &map("b", "x")));
    scene.settle();
    let right =
        ReadRight { namespace: "shop".into(), group: "".into(), plural: "configmaps".into(), name: None, verb: "get" };
    let missing = MissingRights { who: "the ServiceAccount shop/deployer".into(), rights: [right].into() };
    scene.push(2, &(map("a", "z") + &map("c", "x")));
    scene.denied = Some(missing.clone());
    let known = std::mem::take(&mut scene.live);
    let before = scene.status.inventory.clone();
    let verdict = scene.pass();
    assert!(verdict.actions.is_empty(), "{:?}", verdict.actions);
    assert_eq!(verdict.status.inventory, before);
    scene.last(2, State::Failure, &missing.to_string());
    // As soon as it may be read all goes on.
    (scene.live, scene.denied) = (known, None);
    let verdict = scene.settle();
    assert_eq!(scene.names(), ["a", "c"], "{:?}", verdict.reasons);
    scene.denied = Some(missing);
    scene.life = Life::Leaves { guarded: true, with_namespace: false };
    let verdict = scene.pass();
    assert_eq!((verdict.actions.len(), verdict.guard), (0, None));
    assert_eq!(verdict.status.conditions[0].reason, "ReadDenied");
    scene.life = Life::Leaves { guarded: true, with_namespace: true };
    assert_eq!(scene.pass().guard, Some(Guard::Take), "rights go with their namespace");
}
