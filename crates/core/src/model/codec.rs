//! Status ⇄ memory: the one place that knows in which fields of status Argo's protocols hide.
//!
//! Laws, which the tests hold it to: what is encoded is decoded again as it was, whatever stood in status before; a field
//! that is not ours is left as it is. Never decides anything.

use super::memory::{Abort, Begun, Hold, Memory, Pause, Promotion};
use crate::api::{
    PauseCondition, RolloutAnalysisRunStatus, RolloutSpec, RolloutStatus, Time,
    constants::{analysis_phase, message, phase},
};

/// What a status remembers.
pub fn decode(status: &RolloutStatus) -> Memory {
    Memory {
        hold: hold(status),
        abort: abort(status),
        promotion: promotion(status),
        restarted_at: moment(status.restarted_at),
    }
}

/// Makes status remember this.
pub fn encode(memory: &Memory, status: &mut RolloutStatus) {
    let condition = |pause: &Pause| PauseCondition { reason: pause.reason.to_string(), start_time: pause.since };
    status.pause_conditions = memory.hold.pauses().map(condition).collect();
    status.controller_pause = memory.hold.is_begun_here();
    (status.abort, status.aborted_at) = match memory.abort {
        Abort::No => (false, None),
        Abort::Asked => (true, None),
        Abort::Since(at) => (true, Some(at)),
        Abort::Retry(at) => (false, Some(at)),
    };
    status.promote_full = memory.promotion.is_full();
    status.restarted_at = memory.restarted_at;
}

/// Three states in two fields: what was begun here and has no reason any more was ended by a person.
pub fn hold(status: &RolloutStatus) -> Hold {
    let mut pauses = status
        .pause_conditions
        .iter()
        .map(|condition| Pause { reason: condition.reason.as_str().into(), since: condition.start_time });
    match (pauses.next(), status.controller_pause) {
        (Some(first), controller_pause) => {
            let by = if controller_pause { Begun::Here } else { Begun::Elsewhere };
            Hold::Waiting { first, more: pauses.collect(), by }
        }
        (None, true) => Hold::Released,
        (None, false) => Hold::Free,
    }
}

/// Four states in two fields: an abort that is taken back leaves its time behind.
pub fn abort(status: &RolloutStatus) -> Abort {
    match (status.abort, moment(status.aborted_at)) {
        (false, None) => Abort::No,
        (true, None) => Abort::Asked,
        (true, Some(at)) => Abort::Since(at),
        (false, Some(at)) => Abort::Retry(at),
    }
}

/// How promotion goes on.
pub fn promotion(status: &RolloutStatus) -> Promotion {
    if status.promote_full { Promotion::Full } else { Promotion::BySteps }
}

/// Takes back what something else overruled (S33).
///
/// An abort that was acted upon has its moment, so that one without came after the full promotion, or together with it.
///
/// A pause that a person ended while `spec.paused` held, or before a pass saw that it no longer holds, begins anew:
/// `promote` is also the only verb that ends a pause by hand, so that it approves nothing there. Argo Rollouts decides the
/// same in the pass between the two writes of `promote`. An inconclusive analysis is answered all the same.
pub fn overrule(spec: &RolloutSpec, status: &mut RolloutStatus) {
    if abort(status) == Abort::Asked {
        status.promote_full = false;
    }
    let is_paused_by_hand = spec.paused || status.phase == phase::PAUSED && status.message == message::PAUSED_BY_HAND;
    if is_paused_by_hand && hold(status) == Hold::Released && !is_inconclusive(status) {
        status.controller_pause = false;
    }
}

/// Whether an analysis that status names was inconclusive.
pub fn is_inconclusive(status: &RolloutStatus) -> bool {
    let runs = [
        &status.canary.current_step_analysis_run_status,
        &status.canary.current_background_analysis_run_status,
        &status.blue_green.pre_promotion_analysis_run_status,
        &status.blue_green.post_promotion_analysis_run_status,
    ];
    let is_inconclusive = |run: &RolloutAnalysisRunStatus| run.status == analysis_phase::INCONCLUSIVE;
    runs.into_iter().flatten().any(is_inconclusive)
}

/// Go's zero time is no time.
fn moment(time: Option<Time>) -> Option<Time> {
    time.filter(|time| !time.is_zero())
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, option, prelude::*};

    use super::*;
    use crate::{api, kubernetes::value::Value, value};

    fn time() -> impl Strategy<Value = Time> {
        (0_i64..4_102_444_800).prop_map(|second| jiff::Timestamp::from_second(second).unwrap().into())
    }

    fn pause() -> impl Strategy<Value = Pause> {
        let reason =
            prop_oneof!["CanaryPauseStep", "BlueGreenPause", "InconclusiveAnalysisRun", "Inconclusive.*", ".{0,3}"];
        (reason, time()).prop_map(|(reason, since)| Pause { reason: reason.as_str().into(), since })
    }

    fn holds() -> impl Strategy<Value = Hold> {
        let by = prop_oneof![Just(Begun::Here), Just(Begun::Elsewhere)];
        let waiting = (pause(), vec(pause(), 0..3), by).prop_map(|(first, more, by)| Hold::Waiting { first, more, by });
        prop_oneof![Just(Hold::Free), Just(Hold::Released), waiting]
    }

    fn aborts() -> impl Strategy<Value = Abort> {
        prop_oneof![Just(Abort::No), Just(Abort::Asked), time().prop_map(Abort::Since), time().prop_map(Abort::Retry)]
    }

    fn memory() -> impl Strategy<Value = Memory> {
        let promotion = prop_oneof![Just(Promotion::BySteps), Just(Promotion::Full)];
        (holds(), aborts(), promotion, option::of(time())).prop_map(|(hold, abort, promotion, restarted_at)| Memory {
            hold,
            abort,
            promotion,
            restarted_at,
        })
    }

    /// A status as a person with `kubectl edit` and a bad day would leave it.
    fn wreck() -> impl Strategy<Value = RolloutStatus> {
        let key = prop_oneof![
            "abort|abortedAt|pauseConditions|controllerPause|promoteFull|restartedAt|reason|startTime|replicas|canary",
            "[a-z]{1,3}",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,6}".prop_map(Value::from),
        ];
        let tree = leaf.prop_recursive(4, 40, 6, move |inner| {
            prop_oneof![
                vec(inner.clone(), 0..4).prop_map(Value::from),
                vec((key.clone(), inner), 0..6).prop_map(|fields| Value::Map(fields.into_iter().collect())),
            ]
        });
        tree.prop_map(|tree| api::read::<RolloutStatus>(&tree).object)
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded_again(memory in memory(), mut status in wreck()) {
            encode(&memory, &mut status);
            prop_assert_eq!(decode(&status), memory);
        }

        #[test]
        fn what_is_not_ours_stays(memory in memory(), before in wreck()) {
            let mut after = before.clone();
            encode(&memory, &mut after);
            let ours = decode(&before);
            encode(&ours, &mut after);
            // Go's zero time, and nothing else of ours, is said in another way the second time.
            let mut plain = before;
            encode(&ours, &mut plain);
            prop_assert_eq!(after, plain);
        }

        #[test]
        fn what_is_noted_has_nothing_left_to_act_upon(memory in memory(), now in time()) {
            let noted = memory.acted_upon(now);
            prop_assert_eq!(noted.clone().acted_upon(now), noted);
        }
    }

    #[test]
    fn what_peoples_tools_write_is_understood() {
        #[track_caller]
        fn check(status: Value, expected: Memory) {
            assert_eq!(decode(&api::read::<RolloutStatus>(&status).object), expected, "{status}");
        }
        let at = Time::parse("2024-01-01T00:00:00Z").unwrap();
        let waiting = value!({"controllerPause": true,
            "pauseConditions": [{"reason": "CanaryPauseStep", "startTime": "2024-01-01T00:00:00Z"}]});
        let hold = Hold::Free.and("CanaryPauseStep".into(), at);
        check(waiting, Memory { hold, ..Memory::default() });
        let released = Memory { hold: Hold::Released, ..Memory::default() };
        check(value!({"controllerPause": true}), released.clone());
        check(value!({"controllerPause": true, "pauseConditions": []}), released);
        let abort = |abort| Memory { abort, ..Memory::default() };
        check(value!({"abort": true}), abort(Abort::Asked));
        check(value!({"abort": true, "abortedAt": "2024-01-01T00:00:00Z"}), abort(Abort::Since(at)));
        check(value!({"abort": false, "abortedAt": "2024-01-01T00:00:00Z"}), abort(Abort::Retry(at)));
        check(value!({"promoteFull": true}), Memory { promotion: Promotion::Full, ..Memory::default() });
    }

    #[test]
    fn s33_an_abort_overrules_a_full_promotion_that_came_before_it() {
        let after = |status: Value| {
            let mut status = api::read::<RolloutStatus>(&status).object;
            overrule(&RolloutSpec::default(), &mut status);
            promotion(&status)
        };
        assert_eq!(after(value!({"promoteFull": true, "abort": true})), Promotion::BySteps);
        assert_eq!(after(value!({"promoteFull": true})), Promotion::Full);
        let acted_upon = value!({"promoteFull": true, "abort": true, "abortedAt": "2024-01-01T00:00:00Z"});
        assert_eq!(after(acted_upon), Promotion::Full);
    }
    #[test]
    fn s33_a_promotion_during_a_pause_by_hand_approves_nothing() {
        #[track_caller]
        fn check(paused: bool, status: Value, expected: Hold) {
            let mut read = api::read::<RolloutStatus>(&status).object;
            overrule(&RolloutSpec { paused, ..RolloutSpec::default() }, &mut read);
            assert_eq!(hold(&read), expected, "spec.paused {paused}, {status}");
        }
        let waiting = value!({"controllerPause": true,
            "pauseConditions": [{"reason": "BlueGreenPause", "startTime": "2024-01-01T00:00:00Z"}]});
        let hold = Hold::Free.and("BlueGreenPause".into(), Time::parse("2024-01-01T00:00:00Z").unwrap());
        check(true, waiting, hold);
        let by_hand = value!({"controllerPause": true, "phase": "Paused", "message": "manually paused"});
        check(true, by_hand.clone(), Hold::Free);
        check(false, by_hand.clone(), Hold::Free);
        let at_gate = value!({"controllerPause": true, "phase": "Paused", "message": "BlueGreenPause"});
        check(true, at_gate.clone(), Hold::Free);
        check(false, at_gate, Hold::Released);
        let mut inconclusive = by_hand;
        let path = ["blueGreen", "prePromotionAnalysisRunStatus"];
        inconclusive.set_at(&path, value!({"name": "a", "status": "Inconclusive"}));
        check(true, inconclusive.clone(), Hold::Released);
        check(false, inconclusive, Hold::Released);
    }
}
