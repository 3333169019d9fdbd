//! Leader election, when several could work: a Lease, held by one at a time.
//!
//! A holder that has not renewed for as long as it promised has gone; that is judged by when a change was *seen* here, not
//! by the times in the Lease, because clocks differ. The leader may write only until its renewal is due, counted from
//! before the request that renewed it was sent: so no process writes after another may have become leader. Never asks the time.

use jiff::{SignedDuration, Timestamp};

use crate::{
    kubernetes::value::{Text, Value},
    value,
};

/// How long things take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// How long a holder is believed in without news.
    pub lease: SignedDuration,
    /// How long a holder may work without a renewal.
    pub renewal: SignedDuration,
    /// How often to try.
    pub retry: SignedDuration,
}

impl Default for Timing {
    /// As Argo Rollouts does by default.
    fn default() -> Timing {
        let seconds = SignedDuration::from_secs;
        Timing { lease: seconds(15), renewal: seconds(10), retry: seconds(2) }
    }
}

/// One of those that could work.
#[derive(Debug)]
pub struct Candidate {
    identity: Text,
    timing: Timing,
    /// What the Lease said when it last changed, and when that was seen.
    seen: Option<(Value, Timestamp)>,
    /// When the last renewal that succeeded was asked for.
    renewed: Option<Timestamp>,
}

/// What to do about the Lease.
#[derive(Debug, Clone, PartialEq)]
pub enum Move {
    /// Make it: nobody has it.
    Create(Value),
    /// Write it, on condition that it is as it was seen.
    Replace(Value),
    /// Somebody else holds it.
    Wait,
}

impl Candidate {
    /// A candidate of this name, which nobody else has.
    pub fn new(identity: &str, timing: Timing) -> Candidate {
        Candidate { identity: identity.into(), timing, seen: None, renewed: None }
    }

    /// What to do, now that the Lease was seen; `None` if there is none.
    pub fn next(&mut self, lease: Option<&Value>, now: Timestamp) -> Move {
        let Some(lease) = lease else {
            self.seen = None;
            return Move::Create(value!({"spec": self.spec(None, now)}));
        };
        let spec = lease.at(&["spec"]).cloned().unwrap_or_default();
        if self.seen.as_ref().is_none_or(|(before, _)| *before != spec) {
            self.seen = Some((spec.clone(), now));
        }
        let holder = spec.str_at(&["holderIdentity"]).unwrap_or_default();
        if !holder.is_empty() && holder != self.identity.as_str() && !self.is_over(&spec, now) {
            self.renewed = None;
            return Move::Wait;
        }
        let mut wanted = lease.clone();
        wanted.set_at(&["spec"], self.spec(Some(&spec), now));
        Move::Replace(wanted)
    }

    /// The request that was asked for at this time was granted.
    pub fn renewed(&mut self, asked: Timestamp) {
        self.renewed = Some(asked);
    }

    /// The Lease went to somebody else.
    pub fn lost(&mut self) {
        self.renewed = None;
    }

    /// Until when it may write; `None` if it may not.
    pub fn leads_until(&self) -> Option<Timestamp> {
        self.renewed?.saturating_add(self.timing.renewal).ok()
    }

    /// When to try again.
    pub fn wake(&self, now: Timestamp) -> Timestamp {
        now.saturating_add(self.timing.retry).unwrap_or(Timestamp::MAX)
    }

    /// The Lease, given back so that the next one need not wait; `None` if it is somebody else's.
    pub fn release(&self, lease: &Value, now: Timestamp) -> Option<Value> {
        let spec = lease.at(&["spec"])?;
        if spec.str_at(&["holderIdentity"]) != Some(self.identity.as_str()) {
            return None;
        }
        let mut released = lease.clone();
        let mut spec = self.spec(Some(spec), now);
        spec.set_at(&["holderIdentity"], "");
        spec.set_at(&["leaseDurationSeconds"], 1);
        released.set_at(&["spec"], spec);
        Some(released)
    }

    /// Whether the holder has been silent for longer than it promised.
    fn is_over(&self, spec: &Value, now: Timestamp) -> bool {
        let promised = spec.int_at(&["leaseDurationSeconds"]).map_or(self.timing.lease, SignedDuration::from_secs);
        let since = self.seen.as_ref().map_or(now, |(_, since)| *since);
        since.saturating_add(promised).is_ok_and(|end| end <= now)
    }

    fn spec(&self, before: Option<&Value>, now: Timestamp) -> Value {
        let time = micros(now);
        let held = before.is_some_and(|spec| spec.str_at(&["holderIdentity"]) == Some(self.identity.as_str()));
        let transitions = before.and_then(|spec| spec.int_at(&["leaseTransitions"])).unwrap_or_default();
        let acquired = before.filter(|_| held).and_then(|spec| spec.str_at(&["acquireTime"])).map(str::to_owned);
        let is_first = before.is_none();
        value!({
            "holderIdentity": self.identity.as_str(),
            "leaseDurationSeconds": self.timing.lease.as_secs(),
            "acquireTime": acquired.unwrap_or_else(|| time.clone()),
            "renewTime": time.as_str(),
            "leaseTransitions": if held || is_first { transitions } else { transitions + 1 },
        })
    }
}

/// A time with microseconds, as Leases have them.
fn micros(time: Timestamp) -> String {
    format!("{time:.6}")
}

/// The name of the Lease of an instance: that of Argo Rollouts, so that both never work at the same time. A scope that is
/// not the controller's own namespace has a Lease of its own.
pub fn name(instance: Option<&str>, scope: Option<&str>, own: &str) -> String {
    let instance = instance.filter(|instance| !instance.is_empty()).map(|instance| format!("-{instance}"));
    // A dot: a namespace has none, so that no other instance's name ends like this.
    let scope = scope.filter(|scope| !scope.is_empty() && *scope != own).map(|scope| format!(".{scope}"));
    format!("argo-rollouts-controller-lock{}{}", instance.unwrap_or_default(), scope.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn lease(candidate: &mut Candidate, lease: Option<&Value>, second: i64) -> Value {
        match candidate.next(lease, at(second)) {
            Move::Create(lease) | Move::Replace(lease) => {
                candidate.renewed(at(second));
                lease
            }
            Move::Wait => panic!("waits at {second}"),
        }
    }

    #[test]
    fn s51_a_holder_may_write_until_its_renewal_is_due_and_another_only_after_that() {
        let (mut one, mut two) = (Candidate::new("one", Timing::default()), Candidate::new("two", Timing::default()));
        let held = lease(&mut one, None, 0);
        assert_eq!(one.leads_until(), Some(at(10)));
        for second in [1, 10, 15] {
            assert_eq!(two.next(Some(&held), at(second)), Move::Wait, "{second}");
        }
        assert_eq!(two.leads_until(), None);
        let renewed = lease(&mut one, Some(&held), 8);
        assert_eq!(one.leads_until(), Some(at(18)));
        assert_eq!(two.next(Some(&renewed), at(16)), Move::Wait, "news count from when they are seen");
        assert_eq!(two.next(Some(&renewed), at(30)), Move::Wait);
        let taken = lease(&mut two, Some(&renewed), 31);
        assert_eq!(taken.str_at(&["spec", "holderIdentity"]), Some("two"));
        assert_eq!(taken.int_at(&["spec", "leaseTransitions"]), Some(1));
        assert_eq!(one.next(Some(&taken), at(32)), Move::Wait);
        assert_eq!(one.leads_until(), None, "who sees another holder stops at once");
    }

    #[test]
    fn a_renewal_keeps_the_time_of_the_taking() {
        let mut one = Candidate::new("one", Timing::default());
        let first = lease(&mut one, None, 0);
        let second = lease(&mut one, Some(&first), 2);
        assert_eq!(first.at(&["spec", "acquireTime"]), second.at(&["spec", "acquireTime"]));
        assert_eq!(second.str_at(&["spec", "renewTime"]), Some("2023-11-14T22:13:22.000000Z"));
        assert_eq!(second.int_at(&["spec", "leaseTransitions"]), Some(0));
    }

    #[test]
    fn l11_what_is_given_back_is_taken_at_once() {
        let (mut one, mut two) = (Candidate::new("one", Timing::default()), Candidate::new("two", Timing::default()));
        let held = lease(&mut one, None, 0);
        assert_eq!(two.next(Some(&held), at(1)), Move::Wait);
        let released = one.release(&held, at(2)).unwrap();
        assert_eq!(two.release(&held, at(2)), None, "only its own");
        lease(&mut two, Some(&released), 3);
        assert_eq!(two.leads_until(), Some(at(13)));
    }

    #[test]
    fn s52_each_scope_and_instance_has_a_lease_of_its_own() {
        for (instance, scope, expected) in [
            (None, None, "argo-rollouts-controller-lock"),
            (None, Some("argo"), "argo-rollouts-controller-lock"),
            (Some("blue"), None, "argo-rollouts-controller-lock-blue"),
            (None, Some("shop"), "argo-rollouts-controller-lock.shop"),
            (Some("blue"), Some("shop"), "argo-rollouts-controller-lock-blue.shop"),
        ] {
            assert_eq!(name(instance, scope, "argo"), expected);
        }
    }
}
