//! Who refers to what: from an object to those whose decisions it matters to.
//!
//! Kept beside the cache, so that a change of one Service does not have to be held against every Rollout there is. Never
//! knows whether what is referred to exists.

use std::collections::{BTreeSet, HashMap};

use super::key::{ObjectKey, Place};

/// The references of all subjects, in both directions.
#[derive(Debug, Clone, Default)]
pub struct References {
    from: HashMap<Place, Vec<ObjectKey>>,
    to: HashMap<ObjectKey, BTreeSet<Place>>,
}

impl References {
    /// A subject refers to these, and to nothing else.
    pub fn set(&mut self, who: &Place, what: Vec<ObjectKey>) {
        if self.from.get(who).is_some_and(|before| *before == what) {
            return;
        }
        for gone in self.from.remove(who).unwrap_or_default() {
            let Some(others) = self.to.get_mut(&gone) else { continue };
            others.remove(who);
            if others.is_empty() {
                self.to.remove(&gone);
            }
        }
        for key in &what {
            self.to.entry(key.clone()).or_default().insert(who.clone());
        }
        if !what.is_empty() {
            self.from.insert(who.clone(), what);
        }
    }

    /// Who refers to this.
    pub fn to(&self, what: &ObjectKey) -> impl Iterator<Item = &Place> {
        self.to.get(what).into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::key::Resource;

    #[test]
    fn both_directions_follow_a_change() {
        let service =
            |name: &str| ObjectKey { resource: Resource::new("", "v1", "services"), place: Place::new("shop", name) };
        let (web, api) = (Place::new("shop", "web"), Place::new("shop", "api"));
        let mut references = References::default();
        let who = |references: &References, name: &str| {
            references.to(&service(name)).map(|place| place.name.to_string()).collect::<Vec<_>>()
        };
        references.set(&web, vec![service("a"), service("b")]);
        references.set(&api, vec![service("b")]);
        assert_eq!(who(&references, "a"), ["web"]);
        assert_eq!(who(&references, "b"), ["api", "web"]);
        references.set(&web, vec![service("b")]);
        assert!(who(&references, "a").is_empty());
        references.set(&api, Vec::new());
        assert_eq!(who(&references, "b"), ["web"]);
        references.set(&web, Vec::new());
        assert!(references.to.is_empty() && references.from.is_empty());
    }
}
