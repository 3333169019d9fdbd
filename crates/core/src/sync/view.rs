//! Everything a decision about a GitSource may know, from one observation.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;

use super::{
    compare::{self, Difference},
    detail::{self, Detail},
    health::Doing,
    hold,
    id::{Id, Sort},
    ownership::{Claimants, Claims},
    policy::{self, Apply},
    rights::MissingRights,
    set::{Desired, Set},
};
use crate::{
    api::{
        GitRevision, GitSourceStatus,
        constants::{self, annotation, label},
    },
    kubernetes::{
        object::Object,
        value::{Text, Value},
    },
    model::{git_source::GitSource, health::Standing, problem::Problem},
};

/// Everything a decision may know.
#[derive(Debug, Clone)]
pub struct View {
    /// When it was seen.
    pub now: Timestamp,
    /// The source's namespace.
    pub namespace: Text,
    /// The source's name.
    pub name: Text,
    /// The generation of its specification.
    pub generation: i64,
    /// Whether it is to go.
    pub life: Life,
    /// What it wants, or what is wrong with it.
    pub spec: Result<GitSource, Vec<Problem>>,
    /// What was last recorded of it.
    pub status: GitSourceStatus,
    /// The value of the annotation that asks for a sync; empty if there is none.
    pub request: String,
    /// What was fetched.
    pub fetched: Fetched,
    /// What is in the cluster of what git wants and what the inventory has.
    pub live: HashMap<Id, Arc<Object>>,
    /// The ReplicaSets that may refer to something that is to be pruned, if [`super::prune::namespaces`] asked for them.
    pub sets: Vec<Value>,
    /// The sources it depends on that have not rolled out.
    pub waits_for: Vec<String>,
    /// What the server refused, for this content and this version of the live object.
    pub refused: BTreeMap<Id, Refusal>,
    /// What a server's dry run said of objects whose schema is not known, and that an apply changed nothing.
    pub answers: BTreeMap<Id, Answer>,
    /// Why commit statuses cannot be posted, if they cannot.
    pub trouble: Option<String>,
    /// The branch on which a revert of the commit is offered, if it is.
    pub offered: Option<String>,
    /// What stands behind objects that were not done when they were last seen.
    pub details: BTreeMap<Id, Detail>,
    /// What the source's account may not read of what git wants and what the inventory has: nothing is decided without it.
    pub denied: Option<MissingRights>,
    /// What it may not list of what may still refer to something that is to be pruned.
    pub unlisted: Option<MissingRights>,
    /// What earlier views found out about pairs.
    pub memo: Memo,
}

/// Whether a source stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It was given on the command line: nobody can delete it.
    Given,
    /// It stays.
    Stays {
        /// Whether its deletion would wait for us.
        guarded: bool,
    },
    /// It is being deleted.
    Leaves {
        /// Whether that waits for us.
        guarded: bool,
        /// Whether its namespace goes, too, and all that is in it.
        with_namespace: bool,
    },
}

/// What was fetched.
#[derive(Debug, Clone)]
pub enum Fetched {
    /// Nothing was tried yet.
    Nothing,
    /// It did not work; what was there stays.
    Failed(String),
    /// A commit.
    Commit(Box<Commit>),
}

/// A commit that is followed.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The commit.
    pub revision: GitRevision,
    /// What it wants.
    pub set: Arc<Set>,
    /// The newest commit of the reference, if this one is not yet over and that one has to wait.
    pub waiting: Option<GitRevision>,
    /// Whether the reference was moved to a history that does not contain what it was at before.
    pub moved_back: bool,
    /// Why the repository could not be looked at since, if it could not: nothing is deleted meanwhile.
    pub stale: Option<String>,
    /// What the last promoted commit wanted, where an abort puts that back.
    pub promoted: Option<(GitRevision, Arc<Set>)>,
    /// Why that cannot be read, if it cannot.
    pub lost: Option<String>,
    /// The commits just before this one that want the same and were never followed, because they came with it; oldest first.
    pub alike: Vec<String>,
}

/// What the server refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What was to be written.
    pub digest: Text,
    /// The version of the live object, 0 if there was none; `None` if it does not matter.
    pub version: Option<u64>,
    /// What the server said, with what to do.
    pub message: String,
    /// Whether it refused because a field cannot change.
    pub immutable: bool,
    /// The line of the field that it is about, if that is known.
    pub line: Option<usize>,
}

impl Refusal {
    /// The server refused to delete an object, whatever it says.
    pub fn deletion(message: String) -> Refusal {
        Refusal { digest: DELETION.into(), version: None, message, immutable: false, line: None }
    }

    /// The server refused to give a Service to another Rollout.
    pub fn handover(message: String) -> Refusal {
        Refusal { digest: HANDOVER.into(), version: None, message, immutable: false, line: None }
    }
}

/// What stands for the content of a handover.
const HANDOVER: &str = "handover";

/// What stands for the content of a deletion.
const DELETION: &str = "deletion";

/// What a server's dry run said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What was to be written.
    pub digest: Text,
    /// The version of the live object.
    pub version: u64,
    /// What it would have changed.
    pub difference: Difference,
}

/// An object that git wants, beside what is there.
#[derive(Debug, Clone)]
pub struct Pair<'v> {
    /// What git wants.
    pub desired: &'v Desired,
    /// What is there.
    pub live: Option<&'v Arc<Object>>,
    /// What would be applied, with its marks.
    pub patch: Value,
    /// The commit that its content came with.
    pub blamed: Text,
    /// What applying it would change; `None` if it is not there.
    pub difference: Option<Difference>,
    /// How it is doing; `None` if it is not there.
    pub doing: Option<Arc<Doing>>,
    /// Its identity, if it is there and this source wrote it.
    pub ours: Option<Text>,
    /// Whether there is nothing to do about it, as far as the two sides can say.
    pub rests: bool,
}

impl View {
    /// The mark that objects of this source bear.
    pub fn mark(&self) -> Text {
        mark(&self.namespace, &self.name)
    }

    /// Whether this source wrote an object.
    pub fn is_ours(&self, object: &Value) -> bool {
        object.str_at(&["metadata", "labels", label::SOURCE]) == Some(&self.mark())
    }

    /// Why the server does not delete an object, if it was asked lately and did not.
    pub fn refused_deletion(&self, id: &Id) -> Option<&str> {
        self.refused.get(id).filter(|refused| refused.digest == DELETION).map(|refused| refused.message.as_str())
    }

    /// Why the server does not give a Service to another Rollout, if it was asked lately and did not.
    pub fn refused_handover(&self, id: &Id) -> Option<&str> {
        self.refused.get(id).filter(|refused| refused.digest == HANDOVER).map(|refused| refused.message.as_str())
    }

    /// Every object of a set, beside what is there. What was found out before is not found out again.
    pub fn pairs<'v>(&'v self, set: &'v Set, commit: &GitRevision) -> Vec<Pair<'v>> {
        let mut memo = self.memo.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = set.objects.iter().map(|desired| (&desired.id, &desired.object));
        let live = self.live.iter().map(|(id, live)| (id, &live.value));
        let (claims, mark) = (memo.claims.of(wanted, live), self.mark());
        memo.begin(&claims, set.objects.len());
        let pair = |desired: &'v Desired| {
            let live = self.live.get(&desired.id);
            let found = memo.find(desired, live, commit, || Found::of(&claims, desired, live, &mark, commit));
            let Found { patch, difference, doing, blamed, ours, rests, .. } = found;
            // A server's word counts more than what is found out here.
            let answer = live.and_then(|live| self.answer(desired, live, &patch));
            let rests = rests && answer.is_none();
            let doing = doing.map(|doing| self.looked_behind(&desired.id, live, doing));
            Pair { desired, live, blamed, difference: answer.or(difference), patch, doing, ours, rests }
        };
        set.objects.iter().map(pair).collect()
    }

    /// How an object is doing, with what stands behind it or did so last.
    fn looked_behind(&self, id: &Id, live: Option<&Arc<Object>>, doing: Arc<Doing>) -> Arc<Doing> {
        let Some(live) = live.filter(|_| doing.standing != Standing::Current && detail::is_known(id)) else {
            return doing;
        };
        let version = detail::version(&live.value);
        let detail = self.details.get(id).filter(|detail| !version.is_empty() && detail.version == version);
        let with = detail.map(|detail| doing.with(detail)).filter(|with| with.words != doing.words);
        let recalled = || Some(doing.remembering(detail::remembered(&self.status, id, &version)?));
        with.or_else(recalled).map_or_else(|| doing.clone(), Arc::new)
    }

    fn answer(&self, desired: &Desired, live: &Object, patch: &Value) -> Option<Difference> {
        let answer = self.answers.get(&desired.id).filter(|answer| answer.version == live.version())?;
        (answer.digest == digest_of(patch)).then(|| answer.difference.clone())
    }
}

/// What applying an object would change, as far as its schema is known here.
fn difference(desired: &Desired, live: &Object, patch: &Value) -> Difference {
    desired.sort.kind.as_ref().map_or(Difference::Unknown, |kind| compare::compare(kind, live, patch))
}

/// What was found out about pairs, for as long as both sides and who owns what are the same. Only ever saves work.
#[derive(Debug, Clone, Default)]
pub struct Memo(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    claims: Claimants,
    claimed: Claims,
    pairs: HashMap<(Id, Text), (Of, Found)>,
}

/// What something was found out about.
#[derive(Debug)]
struct Of {
    sort: Arc<Sort>,
    file: Text,
    live: Option<Arc<Object>>,
    /// What its expressions might cost.
    limit: u64,
}

/// What is found out about an object that git wants and what is there.
#[derive(Debug, Clone)]
struct Found {
    patch: Value,
    difference: Option<Difference>,
    doing: Option<Arc<Doing>>,
    blamed: Text,
    /// Whether it is the object itself that says whom to blame.
    noted: bool,
    ours: Option<Text>,
    rests: bool,
}

impl Found {
    fn of(claims: &Claims, desired: &Desired, live: Option<&Arc<Object>>, mark: &str, commit: &GitRevision) -> Found {
        let ours = live.filter(|live| live.value.str_at(&["metadata", "labels", label::SOURCE]) == Some(mark));
        let noted = noted(desired, ours);
        let blamed = noted.clone().unwrap_or_else(|| brought(desired, commit).into());
        let patch = patch(claims, desired, live.map(AsRef::as_ref), mark, &blamed);
        let difference = live.map(|live| difference(desired, live, &patch));
        let rests = ours.is_some_and(|live| !live.is_terminating() && !policy::is_suspended(&live.value))
            && desired.policy.apply == Apply::Always
            && !desired.policy.suspended
            && desired.sort.served
            && difference == Some(Difference::Same);
        Found {
            patch,
            difference,
            doing: live.map(|live| {
                let schema = desired.sort.kind.as_ref().map(|kind| &*kind.schema);
                Arc::new(Doing::judged(&live.value, &desired.expressions, schema))
            }),
            blamed,
            noted: noted.is_some(),
            ours: ours.map(|live| live.uid()),
            rests,
        }
    }
}

impl Known {
    /// Forgets everything if somebody else owns something now, or if there is far more of it than is looked at.
    fn begin(&mut self, claims: &Claims, objects: usize) {
        if self.claimed != *claims || self.pairs.len() > objects.saturating_mul(3).saturating_add(64) {
            self.pairs.clear();
            self.claimed = claims.clone();
        }
    }

    fn find(
        &mut self,
        desired: &Desired,
        live: Option<&Arc<Object>>,
        commit: &GitRevision,
        find: impl FnOnce() -> Found,
    ) -> Found {
        let key = (desired.id.clone(), desired.digest.clone());
        let is_same = |(of, found): &&(Of, Found)| {
            let live_is_same = match (&of.live, live) {
                (Some(before), Some(now)) => Arc::ptr_eq(before, now),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            live_is_same
                && Arc::ptr_eq(&of.sort, &desired.sort)
                && of.file == desired.file
                && of.limit == desired.expressions.limit
                && (found.noted || found.blamed == brought(desired, commit))
        };
        if let Some((_, found)) = self.pairs.get(&key).filter(is_same) {
            return found.clone();
        }
        let found = find();
        let (sort, file) = (desired.sort.clone(), desired.file.clone());
        let of = Of { sort, file, live: live.cloned(), limit: desired.expressions.limit };
        self.pairs.insert(key, (of, found.clone()));
        found
    }
}

/// What a patch says, in a few bytes.
pub fn digest_of(patch: &Value) -> Text {
    let digest = ring::digest::digest(&ring::digest::SHA256, patch.to_json().as_bytes());
    digest.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

/// The value of the label that objects of a source bear: its names, cut with a digest where they are too long for one.
pub fn mark(namespace: &str, name: &str) -> Text {
    const LONGEST: usize = 63;
    let full = format!("{namespace}.{name}");
    if full.len() <= LONGEST {
        return full.into();
    }
    let digest = ring::digest::digest(&ring::digest::SHA256, full.as_bytes());
    let digest: String = digest.as_ref().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{digest}", &full[..full.floor_char_boundary(LONGEST - digest.len() - 1)]).into()
}

/// The newest commit that changed an object's content, as the object notes it: true as long as git says the same.
fn noted(desired: &Desired, ours: Option<&Arc<Object>>) -> Option<Text> {
    let same = ours.filter(|live| live.annotation(annotation::DIGEST) == Some(&desired.digest))?;
    same.annotation(annotation::COMMIT).filter(|commit| !commit.is_empty()).map(Text::from)
}

/// The commit that brought an object's content, where it does not note one.
fn brought<'c>(desired: &'c Desired, commit: &'c GitRevision) -> &'c str {
    desired.blamed.as_deref().unwrap_or(&commit.commit)
}

/// What is applied: what git wants where it is git's to say, and where it came from. Never a word in the pod template.
fn patch(claims: &Claims, desired: &Desired, live: Option<&Object>, mark: &str, blamed: &str) -> Value {
    let mut patch = claims.settle(&desired.id, &desired.object, live);
    patch.set_at(&["metadata", "labels", label::SOURCE], mark);
    patch.set_at(&["metadata", "annotations", annotation::COMMIT], blamed);
    patch.set_at(&["metadata", "annotations", annotation::PATH], &desired.file);
    patch.set_at(&["metadata", "annotations", annotation::DIGEST], &desired.digest);
    if let Some(template) = template(desired, live, blamed) {
        patch.set_at(&["metadata", "annotations", annotation::TEMPLATE], template);
    }
    patch
}

/// Which commit brought the pod template of a Rollout, with the hash of that template: a revision made by hand has another
/// one. Not said of a template that was there before it was noted.
fn template(desired: &Desired, live: Option<&Object>, blamed: &str) -> Option<Text> {
    if !desired.id.is(constants::GROUP, constants::kind::ROLLOUT) {
        return None;
    }
    let noted = live.and_then(|live| live.annotation(annotation::TEMPLATE));
    let is_same = live.is_some_and(|live| live.annotation(annotation::DIGEST) == Some(&desired.digest));
    if is_same {
        return noted.map(Text::from);
    }
    let hash = hold::wanted_hash(desired, live.map(|live| &live.value))?;
    if let Some(noted) = noted.filter(|noted| noted.split(' ').next() == Some(hash.as_str())) {
        return Some(noted.into());
    }
    let before = live.and_then(|live| hold::template_hash(&live.value, Some(&live.value)));
    (before != Some(hash.clone())).then(|| format!("{hash} {blamed}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_a_label_value_and_two_sources_never_share_one() {
        assert_eq!(mark("shop", "web"), "shop.web");
        let long = "n".repeat(63);
        let (first, second) = (mark(&long, "web"), mark(&long, "api"));
        assert_eq!((first.len(), second.len()), (63, 63));
        assert_ne!(first, second);
    }
}
