//! Ownership through `/scale`: one field, `spec.replicas` of the Scale, that stands for one field of its parent.
//!
//! Upstream forgets here that the Scale's version is part of who a manager is, so that the owner of the parent's replicas
//! loses them to an entry without a time, or to nobody. Clients see the outcome, so it is the same here.

use super::{
    Filter, Managers, Operation, Owner, Scope, Who,
    fieldpath::{Path, PathElement, Set},
    types::{SCALE, Type},
};
use crate::{
    kind::Kind,
    object::Object,
    status::{Reason, Status},
    value::{Text, Value, intern},
};

/// Who owns what of the parent after a write of its `/scale` that is no apply. `old` and `new` are the Scale objects.
pub fn scaled(kind: &Kind, parent: &Object, old: &Value, new: &Value, who: &Who) -> Managers {
    let parents = Parents::of(kind, parent);
    let owners = parents.as_scale();
    let after = match owners.is_empty() {
        true => Managers::default(),
        false => scope().track(&shown(old), &shown(new), owners, who),
    };
    parents.after(after)
}

/// What an apply to `/scale` makes of the Scale object, and of the owners of its parent.
pub fn apply_scale(
    kind: &Kind,
    parent: &Object,
    live: &Value,
    patch: &Value,
    who: &Who,
    force: bool,
) -> Result<(Value, Managers), Status> {
    let parents = Parents::of(kind, parent);
    let live = shown(live);
    let (scale, after) = scope().apply(&live, patch, parents.as_scale(), who, force)?;
    if kind.custom().is_some() && !scale.is(&live) {
        // Upstream knows how to turn the merged Scale back only into versions of the custom resource.
        let meta = |key| patch.str_at(&["metadata", key]).unwrap_or_default();
        let message = format!(
            "failed to convert new object ({}/{}; autoscaling/v1, Kind=Scale) to proper version: request to convert CR to \
             an invalid group/version: autoscaling/v1",
            meta("namespace"),
            meta("name")
        );
        return Err(Status::new(500, Reason::Unknown, message));
    }
    Ok((scale, parents.after(after)))
}

fn scope() -> Scope<'static> {
    Scope {
        ty: Type::built_in(&SCALE),
        schema: &SCALE,
        custom: false,
        group: "autoscaling",
        version: "v1",
        kind: "Scale",
        api_version: intern("autoscaling/v1"),
        filter: Filter::All,
    }
}

/// A Scale as Go shows it: without replicas where there are none.
fn shown(scale: &Value) -> Value {
    let mut scale = scale.clone();
    if scale.int_at(&["spec", "replicas"]) == Some(0) {
        scale.remove_at(&["spec", "replicas"]);
    }
    scale
}

/// The owners of an object with a `/scale`.
struct Parents {
    owners: Vec<Owner>,
    group: Text,
    api_version: Text,
    replicas: Path,
}

impl Parents {
    fn of(kind: &Kind, parent: &Object) -> Parents {
        let replicas = match kind.custom().and_then(|custom| custom.scale.as_ref()) {
            Some(scale) => scale.spec_replicas.iter().cloned().map(PathElement::Field).collect(),
            None => replicas(),
        };
        let (group, api_version) = (kind.group.clone(), intern(&kind.api_version()));
        Parents { owners: parent.managers.distinct(), group, api_version, replicas }
    }

    fn knows(&self, owner: &Owner) -> bool {
        owner.api_version.split_once('/').map_or("", |(group, _)| group) == self.group
    }

    /// The owners of the parent's replicas, as owners of the Scale's.
    fn as_scale(&self) -> Vec<Owner> {
        let owners = self.owners.iter().filter(|owner| self.knows(owner) && owner.fields.has(&self.replicas));
        let owners = owners.map(|owner| Owner {
            api_version: intern("autoscaling/v1"),
            fields: Set::of([replicas()]),
            ..owner.clone()
        });
        Managers::of(owners.collect()).distinct()
    }

    /// The owners of the parent, given those of the Scale after the write.
    fn after(self, scale: Managers) -> Managers {
        let mut scale = scale.distinct();
        let mut out: Vec<Owner> = Vec::new();
        let lost = Set::of([self.replicas.clone()]);
        for owner in self.owners.iter().filter(|owner| self.knows(owner)) {
            if !owner.fields.has(&self.replicas) {
                out.push(owner.clone());
                continue;
            }
            match scale.iter().position(|other| other.is(owner)) {
                Some(at) => {
                    scale.remove(at);
                    out.push(owner.clone());
                }
                None => out.push(Owner { fields: owner.fields.difference(&lost), ..owner.clone() }),
            }
        }
        out.retain(|owner| !owner.fields.is_empty());
        for owner in scale.into_iter().filter(|owner| owner.fields.has(&replicas())) {
            let time = self.owners.iter().find(|other| other.is(&owner)).and_then(|other| other.time);
            if owner.operation == Operation::Apply {
                out.retain(|other| !other.is(&owner));
            }
            out.push(Owner { api_version: self.api_version.clone(), fields: lost.clone(), time, ..owner });
        }
        Managers::of(out)
    }
}

fn replicas() -> Path {
    vec![PathElement::field("spec"), PathElement::field("replicas")]
}
