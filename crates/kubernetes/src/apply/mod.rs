//! Server-side apply: which field manager owns which field, and what an apply changes.
//!
//! Does what kube-apiserver's field manager does, in its words, down to its odd corners (two entries for one manager after
//! a write to `/scale`, no time on an entry whose apply changed nothing). Objects and owners go in, objects and owners
//! come out; decoding, defaulting and storing are the store's. Never drops what it does not understand of an object.
//!
//! - [`fieldpath`][]: sets of paths and `FieldsV1`.
//! - [`types`], [`typed`], [`mod@validate`]: objects along their schema.
//! - [`Managers`][]: `metadata.managedFields`.
//! - [`updated`], [`apply`]: what a write does to them. [`scaled`], [`apply_scale`]: the same through `/scale`.

pub mod fieldpath;
mod last_applied;
#[cfg(test)]
mod laws;
mod managers;
#[cfg(test)]
mod replay;
pub mod reset;
mod scale;
pub mod typed;
pub mod types;
pub mod validate;

use std::sync::LazyLock;

use jiff::Timestamp;

use self::{
    fieldpath::Set,
    managers::whole_second,
    reset::{Filter, reset_fields},
    types::Type,
    validate::{Duplicates, validate},
};
use super::{
    kind::Kind,
    object::Object,
    schema::Schema,
    status::{Cause, Details, Reason, Status, go_quoted},
    value::{Text, Value, intern},
};

pub use self::{
    managers::{Managers, Operation, Owner},
    scale::{apply_scale, scaled},
};

/// Who writes, through which door, when.
#[derive(Debug, Clone)]
pub struct Who {
    /// `fieldManager`, or what the client's agent is called.
    pub manager: Text,
    /// `status`, `scale`, …; empty for the object itself.
    pub subresource: Text,
    /// The time of the write.
    pub now: Timestamp,
}

/// Who owns what after a create (`old` is `None`), update or patch that is no apply.
///
/// `new` is the object as decoded and defaulted, before admission and before the kind's own preparation (as upstream: what
/// those change is nobody's). It may still carry the client's `metadata.managedFields`, which are honoured as upstream
/// does: taken if valid, reset by `[]` or `[{}]`, ignored otherwise and on subresources. The caller removes them, and need
/// not put them in where the request does not mention them.
pub fn updated(kind: &Kind, old: Option<&Object>, new: &Value, who: &Who) -> Managers {
    let scope = Scope::of(kind, &who.subresource);
    let sent = new.at(&["metadata", "managedFields"]).filter(|_| who.subresource.is_empty());
    let live = || old.map(|old| old.managers.distinct()).unwrap_or_default();
    let owners = match sent {
        None | Some(Value::Null) => live(),
        Some(sent) if is_reset(sent) => Vec::new(),
        Some(sent) => match Managers::parse(sent) {
            Ok(sent) if !sent.is_empty() => scope.reconciled(sent.distinct()),
            _ => live(),
        },
    };
    match old {
        None => scope.track(&scope.nothing(), new, owners, who),
        // Who was not tracked so far is not from now on: only an apply begins to.
        Some(_) if owners.is_empty() => Managers::default(),
        Some(old) => scope.track(&old.value, new, owners, who),
    }
}

/// What an apply makes of an object (`live` is `None` to create one): the merged object, without managedFields, before
/// decoding and defaulting, and its owners. The merged object is the very live value if nothing changed.
///
/// For `/scale` see [`scaled`] and [`apply_scale`].
pub fn apply(
    kind: &Kind,
    live: Option<&Object>,
    patch: &Value,
    who: &Who,
    force: bool,
) -> Result<(Value, Managers), Status> {
    let scope = Scope::of(kind, &who.subresource);
    let nothing = scope.nothing();
    let (live, owners) = match live {
        Some(live) => (&live.value, live.managers.distinct()),
        None => (&nothing, Vec::new()),
    };
    scope.apply(live, patch, owners, who, force)
}

/// 500: what an apply made of an object is none of its kind. `message` is why it cannot be decoded.
pub fn undecodable(kind: &Kind, patch: &Value, message: &str) -> Status {
    let meta = |key| patch.str_at(&["metadata", key]).unwrap_or_default();
    let what = format!("{}/{}, Kind={}", kind.group, kind.version, kind.kind);
    // Upstream takes another way here than from JSON, with other words for the same problems.
    let why = match message.strip_prefix("json: cannot unmarshal ").and_then(|text| text.split_once(" into Go ")) {
        Some((found, goal)) => {
            let goal = goal.rsplit_once(" of type ").map_or(goal, |(_, goal)| goal);
            match found.strip_prefix("number ") {
                Some(_) => format!("cannot convert float64 to {goal}"),
                None => format!("json: cannot unmarshal {found} into Go value of type {goal}"),
            }
        }
        None if message.starts_with("illegal base64") => format!("error decoding from json: {message}"),
        None => message.to_owned(),
    };
    let (namespace, name) = (meta("namespace"), meta("name"));
    let message = format!(
        "failed to convert new object ({namespace}/{name}; {what}) to proper version: unable to convert unstructured object \
         to {what}: {why}"
    );
    Status::new(500, Reason::Unknown, message)
}

/// Whether a client asks for managedFields to be forgotten.
fn is_reset(sent: &Value) -> bool {
    let blank = |value: &Value| value.is_null() || *value == "";
    match sent.as_list() {
        Some([]) => true,
        Some([Value::Map(entry)]) => entry.values().all(blank),
        _ => false,
    }
}

/// Fields nobody can own.
static NEVER_OWNED: LazyLock<Set> = LazyLock::new(|| {
    Set::of_fields(&[
        "apiVersion",
        "kind",
        "metadata",
        "metadata.name",
        "metadata.namespace",
        "metadata.creationTimestamp",
        "metadata.selfLink",
        "metadata.uid",
        "metadata.clusterName",
        "metadata.generation",
        "metadata.managedFields",
        "metadata.resourceVersion",
    ])
});

/// How many managers that do not apply are kept apart.
const MOST_UPDATERS: usize = 10;

/// The kind and the door of a write.
struct Scope<'a> {
    ty: Type<'a>,
    schema: &'a Schema,
    custom: bool,
    group: &'a str,
    version: &'a str,
    kind: &'a str,
    api_version: Text,
    filter: Filter,
}

/// Fields that somebody else owns and an apply would change.
type Conflicts = Vec<(Owner, Set)>;

impl<'a> Scope<'a> {
    fn of(kind: &'a Kind, subresource: &str) -> Scope<'a> {
        let custom = kind.custom().is_some();
        let schema = &*kind.schema;
        Scope {
            ty: if custom { Type::custom(schema) } else { Type::built_in(schema) },
            schema,
            custom,
            group: &kind.group,
            version: &kind.version,
            kind: &kind.kind,
            api_version: intern(&kind.api_version()),
            filter: reset_fields(kind, subresource),
        }
    }

    /// An object before anything is set.
    fn nothing(&self) -> Value {
        match self.custom {
            true => crate::value!({"apiVersion": self.api_version.as_str(), "kind": self.kind}),
            false => types::zero(self.schema),
        }
    }

    fn owner(&self, who: &Who, operation: Operation, fields: Set, time: Option<Timestamp>) -> Owner {
        let manager = if who.manager.is_empty() { intern("unknown") } else { who.manager.clone() };
        let (api_version, subresource) = (self.api_version.clone(), who.subresource.clone());
        Owner { manager, operation, api_version, subresource, time, fields }
    }

    /// Owners whose version can still be read, with sets that fit today's schema.
    fn reconciled(&self, mut owners: Vec<Owner>) -> Vec<Owner> {
        for owner in &mut owners {
            if let Some(fields) = typed::reconcile(self.ty, &owner.fields) {
                owner.fields = fields;
            }
        }
        owners
    }

    fn readable(&self, owner: &Owner) -> bool {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        // Events are one resource in two groups.
        group == self.group || self.kind == "Event"
    }

    /// The owners after somebody made `new` of `live`, other than by apply.
    fn track(&self, live: &Value, new: &Value, mut owners: Vec<Owner>, who: &Who) -> Managers {
        if validate(self.ty, new, Some(live), Duplicates::Allowed).is_err() {
            return Managers::default();
        }
        if self.custom {
            owners = self.reconciled(owners);
        }
        owners.retain(|owner| self.readable(owner));
        let changes = typed::compare(self.ty, live, new).map(|set| self.filter.keep(set));
        let touched = changes.modified.union(&changes.added);
        for owner in &mut owners {
            owner.fields = owner.fields.difference(&touched).difference(&changes.removed);
        }
        let mine = touched.difference(&NEVER_OWNED);
        if !mine.is_empty() {
            let mine = self.owner(who, Operation::Update, mine, Some(whole_second(who.now)));
            match owners.iter_mut().find(|owner| owner.is(&mine)) {
                Some(owner) => *owner = Owner { fields: owner.fields.union(&mine.fields), ..mine },
                None => owners.push(mine),
            }
        }
        owners.retain(|owner| !owner.fields.is_empty());
        cap(&mut owners);
        Managers::of(owners)
    }

    fn apply(
        &self,
        live: &Value,
        patch: &Value,
        mut owners: Vec<Owner>,
        who: &Who,
        force: bool,
    ) -> Result<(Value, Managers), Status> {
        self.check(live, patch)?;
        if owners.is_empty() {
            let before = Who { manager: intern("before-first-apply"), ..who.clone() };
            owners = self.track(&self.nothing(), live, owners, &before).0;
        }
        if self.custom {
            owners = self.reconciled(owners);
        }
        let outcome = match self.merge(live, patch, owners.clone(), who, force) {
            Err(conflicts) if who.manager == "kubectl" => {
                let conflicts = match last_applied::owned(self.ty, &self.api_version, live) {
                    Some(owned) => last_applied::without(conflicts, &owned),
                    None => conflicts,
                };
                match conflicts.is_empty() {
                    true => self.merge(live, patch, owners, who, true),
                    false => Err(conflicts),
                }
            }
            outcome => outcome,
        };
        let (mut object, managers) = outcome.map_err(conflict)?;
        if who.manager == "kubectl" {
            last_applied::refresh(&mut object, patch);
        }
        Ok((object, managers))
    }

    /// What is wrong with the patch before anything is merged.
    fn check(&self, live: &Value, patch: &Value) -> Result<(), Status> {
        let (group, version, kind) = type_of(patch);
        if (group.as_str(), version.as_str(), kind.as_str()) != (self.group, self.version, self.kind) {
            return Err(Status::bad_request(format!("invalid object type: {group}/{version}, Kind={kind}")));
        }
        if patch.at(&["metadata", "managedFields"]).is_some_and(|value| value.as_list().is_some()) {
            return Err(Status::bad_request("metadata.managedFields must be nil"));
        }
        let refuse = |what: &str, object: &Value, problem: String| {
            let meta = |key| object.str_at(&["metadata", key]).unwrap_or_default();
            let (namespace, name) = (meta("namespace"), meta("name"));
            let message = format!(
                "failed to create typed {what} object ({namespace}/{name}; {}/{}, Kind={}): {problem}",
                self.group, self.version, self.kind
            );
            Status::new(500, Reason::Unknown, message)
        };
        validate(self.ty, patch, Some(live), Duplicates::Refused).map_err(|problem| refuse("patch", patch, problem))?;
        if self.custom {
            // Built-in objects were decoded along their type; a custom one may be older than today's schema.
            validate(self.ty, live, None, Duplicates::Allowed).map_err(|problem| refuse("live", live, problem))?;
        }
        Ok(())
    }

    fn merge(
        &self,
        live: &Value,
        patch: &Value,
        mut owners: Vec<Owner>,
        who: &Who,
        force: bool,
    ) -> Result<(Value, Managers), Conflicts> {
        let mut merged = typed::merge(self.ty, live, patch);
        let mut mine = self.owner(who, Operation::Apply, self.filter.keep(&typed::fields(self.ty, patch)), None);
        let last = owners.iter().position(|owner| owner.is(&mine)).map(|at| owners.remove(at));
        let given_up = last.as_ref().is_some_and(|last| !last.fields.difference(&mine.fields).is_empty());
        if let Some(last) = last {
            mine.time = last.time;
            if given_up {
                let owned = owners.iter().fold(mine.fields.clone(), |all, owner| all.union(&owner.fields));
                merged = self.prune(merged, &last.fields, &owned);
            }
        }
        owners.retain(|owner| self.readable(owner));
        let changes = typed::compare(self.ty, live, &merged).map(|set| self.filter.keep(set));
        let touched = changes.modified.union(&changes.added);
        if !touched.is_empty() && !force {
            let conflicts = owners.iter().filter_map(|owner| {
                let fields = owner.fields.intersection(&touched);
                (!fields.is_empty()).then(|| (owner.clone(), fields))
            });
            let conflicts: Conflicts = conflicts.collect();
            if !conflicts.is_empty() {
                return Err(conflicts);
            }
        }
        for owner in &mut owners {
            owner.fields = owner.fields.difference(&touched).difference(&changes.removed);
        }
        if merged.is(live) || merged == *live {
            merged = live.clone();
        } else {
            mine.time = Some(whole_second(who.now));
        }
        mine.fields = mine.fields.difference(&NEVER_OWNED);
        owners.push(mine);
        owners.retain(|owner| !owner.fields.is_empty());
        Ok((merged, Managers::of(owners)))
    }

    /// Removes what the last apply set, this one does not, and nobody owns. What nobody owns below a field that stays,
    /// stays too.
    fn prune(&self, merged: Value, last: &Set, owned: &Set) -> Value {
        let named = |set: &Set| typed::with_named_fields(Some(self.ty), set);
        let last = named(last);
        let all = named(&typed::fields(self.ty, &merged));
        let pruned = typed::remove(self.ty, &merged, &last);
        let left = named(&typed::fields(self.ty, &pruned));
        let pruned = typed::remove(self.ty, &merged, &all.difference(&left.union(&named(owned))));
        let left = named(&typed::fields(self.ty, &pruned));
        typed::remove(self.ty, &merged, &all.difference(&left).intersection(&last))
    }
}

/// The group, version and kind an object names.
fn type_of(object: &Value) -> (String, String, String) {
    let text = |key| object.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    match api_version.split('/').collect::<Vec<_>>().as_slice() {
        [version] => (String::new(), (*version).to_owned(), kind),
        [group, version] => ((*group).to_owned(), (*version).to_owned(), kind),
        _ => Default::default(),
    }
}

/// Merges the oldest managers that do not apply, so that no more than [`MOST_UPDATERS`] are left.
fn cap(owners: &mut Vec<Owner>) {
    let updaters = |owners: &[Owner]| owners.iter().filter(|owner| owner.operation == Operation::Update).count();
    let mut left = updaters(owners);
    if left <= MOST_UPDATERS {
        return;
    }
    let mut order: Vec<Owner> = owners.iter().filter(|owner| owner.operation == Operation::Update).cloned().collect();
    order.sort_by_cached_key(|owner| (owner.time.map_or(0, Timestamp::as_second), owner.identity()));
    let mut first: Vec<Owner> = Vec::new();
    for owner in order {
        if left <= MOST_UPDATERS {
            return;
        }
        let Some(first) = first.iter().find(|first| first.api_version == owner.api_version) else {
            first.push(owner);
            continue;
        };
        let bucket = Owner { manager: intern("ancient-changes"), subresource: Text::new(), ..owner.clone() };
        if !owners.iter().any(|owner| owner.is(&bucket)) {
            owners.retain(|owner| !owner.is(first));
            owners.push(Owner { fields: first.fields.clone(), ..bucket.clone() });
        }
        if let Some(old) = owners.iter_mut().find(|owner| owner.is(&bucket)) {
            old.fields = owner.fields.union(&old.fields);
            old.time = owner.time;
        }
        owners.retain(|other| !other.is(&owner));
        left -= 1;
    }
}

/// 409: these fields belong to others.
fn conflict(mut conflicts: Conflicts) -> Status {
    conflicts.sort_by_cached_key(|(owner, _)| owner.identity());
    let mut causes = Vec::new();
    let mut lines = Vec::new();
    for (owner, fields) in &conflicts {
        let mut whom = go_quoted(&owner.manager);
        if !owner.subresource.is_empty() {
            whom += &format!(" with subresource {}", go_quoted(&owner.subresource));
        }
        if owner.operation == Operation::Update {
            whom += &format!(" using {}", owner.api_version);
        }
        lines.push(format!("conflicts with {whom}:"));
        fields.each(&mut |path| {
            let field: String = path.iter().map(ToString::to_string).collect();
            lines.push(format!("- {field}"));
            causes.push(Cause {
                reason: "FieldManagerConflict".into(),
                message: format!("conflict with {whom}"),
                field,
            });
        });
    }
    let message = match causes.as_slice() {
        [one] => format!("Apply failed with 1 conflict: {}: {}", one.message, one.field),
        many => format!("Apply failed with {} conflicts: {}", many.len(), lines.join("\n")),
    };
    let mut status = Status::new(409, Reason::Conflict, message);
    status.details = Some(Box::new(Details { causes, ..Details::default() }));
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{facts, schema::typed, value};

    #[test]
    fn what_cannot_be_decoded_is_refused_in_the_words_of_the_unstructured_decoder() {
        let deployment = facts::kind("apps", "v1", "Deployment").unwrap();
        let secret = facts::kind("", "v1", "Secret").unwrap();
        let cpu =
            |cpu| value!({"spec": {"template": {"spec": {"containers": [{"resources": {"limits": {"cpu": cpu}}}]}}}});
        let quantity = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
        let rows = [
            (
                deployment,
                value!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": {"a": 1}}}}}),
                "json: cannot unmarshal object into Go value of type int32",
            ),
            (deployment, value!({"spec": {"replicas": 1.5}}), "cannot convert float64 to int32"),
            (deployment, cpu("x"), quantity),
            (secret, value!({"data": {"a": "!"}}), "error decoding from json: illegal base64 data at input byte 0"),
        ];
        for (kind, object, why) in rows {
            let message = typed::decode(kind, &kind.schema, &object).map(|_| ()).unwrap_err();
            let patch = value!({"metadata": {"name": "d"}});
            let what = format!("{}/{}, Kind={}", kind.group, kind.version, kind.kind);
            assert_eq!(
                undecodable(kind, &patch, &message).message,
                format!(
                    "failed to convert new object (/d; {what}) to proper version: unable to convert unstructured object to \
                     {what}: {why}"
                )
            );
        }
    }
}
