//! Ambassador: beside each Mapping of the stable Service one for the canary, which carries the weight.
//!
//! The base Mapping is only read. The canary's is made when there is something to send there, and goes with the last of it.
//! Knows no routes by header or mirror, and no destinations of experiments.

use super::{Asked, Id, Kind, Leaf, Move, Problem, Route, Router, Routes, Row, Told, agreed};
use crate::{
    api::{AmbassadorTrafficRouting, CanaryStrategy, Rollout, constants::reason},
    kubernetes::{status::FieldError, value::Value},
    model::references::References,
    value,
};

/// All of the traffic.
const TOTAL: i64 = 100;
/// What the name of a canary's Mapping ends with, and how long that of its base may be.
const SUFFIX: &str = "-canary";
const LONGEST_BASE: usize = 246;

pub const ROW: Row = Row {
    leaf: Leaf::Ambassador,
    name: "Ambassador",
    field: "ambassador",
    kinds: &[Kind::Mapping],
    is_used: |routing| routing.ambassador.is_some(),
    router: |asked| Some(Box::new(Writer::of(asked)?)),
};

/// What a Rollout says about its Ambassador.
struct Writer<'r> {
    rollout: &'r Rollout,
    canary: &'r CanaryStrategy,
    ambassador: &'r AmbassadorTrafficRouting,
}

impl Router for Writer<'_> {
    fn ids(&self) -> Vec<Id> {
        self.ambassador.mappings.iter().flat_map(|name| [self.base(name), self.canary_of(name)]).collect()
    }

    fn write(&self, routes: &mut Routes, step: Move<'_>, told: &mut Vec<Told>) -> Result<(), Problem> {
        match step {
            Move::Weights { canary, additional: _ } => self.weigh_all(routes, canary, told),
            Move::Hashes { .. } | Move::Header(_) | Move::Mirror(_) | Move::Clear => Ok(()),
        }
    }

    fn read(&self, routes: &Routes) -> Option<Route> {
        agreed(self.ambassador.mappings.iter().map(|name| {
            routes.get(&self.base(name))?;
            let canary = match routes.get(&self.canary_of(name)) {
                Some(mapping) => mapping.int_at(&["spec", "weight"])?,
                None => 0,
            };
            Some(Route { canary, stable: TOTAL - canary, ..Route::default() })
        }))
    }

    fn missing(&self, routes: &Routes) -> Option<FieldError> {
        const FIELD: &str = "spec.strategy.canary.trafficRouting.ambassador.mappings";
        if self.ambassador.mappings.is_empty() {
            return Some(FieldError::invalid(FIELD, Value::Null, "must provide at least one mapping"));
        }
        let name = self.ambassador.mappings.iter().find(|name| routes.get(&self.base(name)).is_none())?;
        Some(FieldError::invalid(FIELD, name.as_str(), Kind::Mapping.not_found(&routes.apis, name)))
    }

    fn refer(&self, routes: &Routes, found: &mut References) {
        let bases = self.ambassador.mappings.iter().filter_map(|name| routes.get(&self.base(name)));
        found.mappings.extend(bases.cloned());
    }
}

impl<'r> Writer<'r> {
    fn of(Asked { rollout, canary, routing }: Asked<'r>) -> Option<Writer<'r>> {
        Some(Writer { rollout, canary, ambassador: routing.ambassador.as_ref()? })
    }

    fn base(&self, name: &str) -> Id {
        Id::beside(self.rollout, Kind::Mapping, name)
    }

    fn canary_of(&self, base: &str) -> Id {
        let base = &base[..base.floor_char_boundary(LONGEST_BASE)];
        Id::beside(self.rollout, Kind::Mapping, &format!("{base}{SUFFIX}"))
    }

    /// Gives every canary's Mapping this weight; a problem of one does not keep the others from it.
    fn weigh_all(&self, routes: &mut Routes, weight: i32, told: &mut Vec<Told>) -> Result<(), Problem> {
        let (mut is_changed, mut problems) = (false, Vec::new());
        for name in &self.ambassador.mappings {
            match self.weigh(routes, name, weight, told) {
                Ok(changed) => is_changed |= changed,
                Err(problem) => problems.push(problem),
            }
        }
        // Said once it was done: a pass that has nothing to do says nothing.
        if is_changed || !problems.is_empty() {
            let message = format!("Set canary mapping weight to {weight}");
            told.insert(0, Told { warning: false, reason: reason::CANARY_MAPPING_WEIGHT_UPDATE, message });
        }
        match problems.len() {
            0 | 1 => problems.pop().map_or(Ok(()), Err),
            count => {
                let all: String = problems.iter().map(|problem| format!("[{problem}]")).collect();
                Err(Problem::Said(format!("{count} errors found: {all}")))
            }
        }
    }

    /// Gives one Mapping this weight; says whether anything changed.
    fn weigh(&self, routes: &mut Routes, name: &str, weight: i32, told: &mut Vec<Told>) -> Result<bool, Problem> {
        let id = self.canary_of(name);
        let before = routes.get(&id).cloned();
        let after = match &before {
            Some(_) | None if weight == 0 => None,
            Some(before) => {
                let mut after = before.clone();
                set_in_spec(&mut after, "weight", i64::from(weight).into());
                Some(after)
            }
            None => Some(self.make(routes, name, &id, weight, told)?),
        };
        let is_changed = after != before;
        match after {
            None => routes.remove(&id),
            Some(after) if is_changed => routes.put(id, after),
            Some(_) => {}
        }
        Ok(is_changed)
    }

    /// A Mapping for the canary like the base one.
    fn make(&self, routes: &Routes, name: &str, id: &Id, weight: i32, told: &mut Vec<Told>) -> Result<Value, Problem> {
        let mut warn = |reason, message: String| told.push(Told { warning: true, reason, message });
        let base = routes.must(&self.base(name)).inspect_err(|_| {
            warn(reason::AMBASSADOR_MAPPING_NOT_FOUND, format!("Ambassador mapping \"{name}\" not found"));
        })?;
        if matches!(base.at(&["spec", "weight"]), Some(Value::Int(weight)) if *weight != 0) {
            let what = format!("Ambassador mapping \"{name}\" can not define weight");
            warn(reason::AMBASSADOR_MAPPING_CONFIG_ERROR, what.clone());
            return Err(Problem::Said(what));
        }
        let service = base.str_at(&["spec", "service"]).unwrap_or_default();
        let service = service.replacen(&self.canary.stable_service, &self.canary.canary_service, 1);
        let mut made = base.clone();
        made.set_at(&["metadata"], value!({"name": id.name.as_str(), "namespace": id.namespace.as_str()}));
        set_in_spec(&mut made, "service", service.into());
        set_in_spec(&mut made, "weight", i64::from(weight).into());
        Ok(made)
    }
}

/// Sets a field of the specification, if that can have fields.
fn set_in_spec(mapping: &mut Value, key: &str, value: Value) {
    if mapping.at(&["spec"]).is_none_or(|spec| spec.as_map().is_some()) {
        mapping.set_at(&["spec", key], value);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        api,
        route::{read, write},
    };

    proptest! {
        /// The two laws.
        #[test]
        fn what_was_written_is_read_and_nothing_else_changes(
            names in prop::collection::btree_set("[a-z]{1,8}", 1..4), weights in prop::collection::vec(0..=100i32, 1..6),
            theirs in "[a-z]{1,6}",
        ) {
            let mappings = Value::list(names.iter().map(|name| name.as_str().into()));
            let rollout: Rollout = api::read(&value!({"metadata": {"name": "web", "namespace": "shop", "uid": "u"},
                "spec": {"strategy": {"canary": {"stableService": "stable", "canaryService": "canary",
                    "trafficRouting": {"ambassador": {"mappings": mappings}}}}}})).object;
            let id = |name: &str| Id { kind: Kind::Mapping, namespace: "shop".into(), name: name.into() };
            let base = |name: &str| value!({"metadata": {"name": name, "namespace": "shop", "labels": {"x": theirs.as_str()}},
                "spec": {"prefix": "/x/", "service": "stable:80", "note": theirs.as_str()}});
            let mut routes = Routes::of(names.iter().map(|name| (id(name), base(name))));
            for weight in weights {
                let step = Move::Weights { canary: weight, additional: &[] };
                prop_assert_eq!(write(Leaf::Ambassador, &rollout, &mut routes, step, &mut Vec::new()), Ok(()));
                let expected = Route { canary: weight.into(), stable: (100 - weight).into(), ..Route::default() };
                prop_assert_eq!(read(Leaf::Ambassador, &rollout, &routes), Some(expected));
                for name in &names {
                    prop_assert_eq!(routes.get(&id(name)), Some(&base(name)));
                    let canary = routes.get(&id(&format!("{name}-canary")));
                    let made = value!({"metadata": {"name": format!("{name}-canary"), "namespace": "shop"},
                        "spec": {"prefix": "/x/", "service": "canary:80", "note": theirs.as_str(), "weight": weight}});
                    prop_assert_eq!(canary, (weight != 0).then_some(&made));
                }
                let (mut told, before) = (Vec::new(), routes.clone());
                prop_assert_eq!(write(Leaf::Ambassador, &rollout, &mut routes, step, &mut told), Ok(()));
                prop_assert_eq!((told, &routes), (Vec::new(), &before));
            }
        }
    }
}
