//! One pass over an Experiment on the embedded cluster, by the functions that the daemon uses.
//!
//! Never decides.

use jiff::Timestamp;

use super::local::{Local, Stop};
use crate::{
    engine::{cache::place_of, compare, key::Key, write::Written},
    experiment::{Verdict, View, decide, diff, refused},
};

impl Local {
    /// Decides about an Experiment and carries it out; answers when to look again.
    pub(super) fn compare(&mut self, key: &Key, written: &mut Vec<Written>) -> Result<Option<Timestamp>, Stop> {
        let seen = compare::see(&self.state.cache, &key.place, self.now());
        let Some((seen, missing)) = seen else { return Ok(None) };
        // What was not seen may be there all the same: the server is asked before anybody is told that it is missing.
        let is_there = missing.iter().any(|key| {
            let (resource, place) = (&key.resource, &key.place);
            self.store.get(&resource.group, &resource.plural, &place.namespace, &place.name).is_some()
        });
        if is_there {
            return Err(Stop::Failed(None));
        }
        let view = View::of(&seen);
        let verdict = decide(&view);
        for action in diff(&view, &verdict) {
            match self.send(&compare::write(&view, &action)) {
                Ok(done) => written.extend(done),
                Err(Stop::Impossible(why)) => return self.conclude(&view, refused(&view, &action, &why), written),
                Err(stop) => return Err(stop),
            }
        }
        self.conclude(&view, verdict, written)
    }

    fn conclude(
        &mut self,
        view: &View,
        verdict: Verdict,
        written: &mut Vec<Written>,
    ) -> Result<Option<Timestamp>, Stop> {
        if let Some(write) = verdict.status.as_ref().and_then(|status| compare::record(view, status)) {
            written.extend(self.send(&write)?);
        }
        let place = place_of(&view.object);
        self.compared.extend(verdict.events.into_iter().map(|event| (place.clone(), event)));
        if let Some(rollout) = compare::rollout(&self.state.cache, &view.object).map(place_of) {
            self.events.extend(verdict.for_rollout.into_iter().map(|event| (rollout.clone(), event)));
        }
        Ok(verdict.wake)
    }
}
