//! What the codec promises, tried on memories and statuses that nobody would think of.

use proptest::{collection::vec, option, prelude::*};

use super::{decode, encode};
use crate::{
    api::{self, AlbStatus, AwsResourceRef, RolloutCondition, RolloutSpec, RolloutStatus, StepPluginStatus, Time},
    kubernetes::value::Value,
    model::memory::{
        Abort, Attempt, Begun, BlueGreenMemory, CanaryMemory, Ended, Hash, Hold, Intents, Memory, Pause, PingPong,
        Pods, PreviewSize, Promotion, Run, Share, Verification, Weights,
    },
    value,
};

fn time() -> impl Strategy<Value = Time> {
    (0_i64..4_102_444_800).prop_map(|second| jiff::Timestamp::from_second(second).unwrap().into())
}

fn hash() -> impl Strategy<Value = Option<Hash>> {
    "[a-z0-9]{0,4}".prop_map(Hash::new)
}

fn pause() -> impl Strategy<Value = Pause> {
    let reason =
        prop_oneof!["CanaryPauseStep", "BlueGreenPause", "InconclusiveAnalysisRun", "Inconclusive.*", ".{0,3}"];
    (reason, time()).prop_map(|(reason, since)| Pause { reason: reason.as_str().into(), since })
}

fn hold() -> impl Strategy<Value = Hold> {
    let by = prop_oneof![Just(Begun::Here), Just(Begun::Elsewhere)];
    let waiting = (pause(), vec(pause(), 0..3), by).prop_map(|(first, more, by)| Hold::Waiting { first, more, by });
    prop_oneof![Just(Hold::Free), Just(Hold::Released), waiting]
}

fn abort() -> impl Strategy<Value = Abort> {
    prop_oneof![Just(Abort::No), Just(Abort::Asked), time().prop_map(Abort::Since), time().prop_map(Abort::Retry)]
}

fn run() -> impl Strategy<Value = Option<Run>> {
    let phase = prop_oneof!["Running", "Successful", "Error", "[A-Z]{0,2}"];
    let run = (".{0,4}", phase, ".{0,4}").prop_map(|(name, phase, message)| Run {
        name,
        phase: phase.as_str().into(),
        message,
    });
    option::of(run)
}

fn share() -> impl Strategy<Value = Share> {
    (any::<i32>(), "[a-z]{0,3}", hash()).prop_map(|(weight, service, version)| Share { weight, service, version })
}

fn weights() -> impl Strategy<Value = Option<Weights>> {
    let asked = prop_oneof![Just(Verification::NotAsked), Just(Verification::Pending), Just(Verification::Confirmed)];
    let weights = (share(), share(), vec(share(), 0..3), asked);
    option::of(weights.prop_map(|(canary, stable, additional, verification)| Weights {
        canary,
        stable,
        additional,
        verification,
    }))
}

fn plugin() -> impl Strategy<Value = StepPluginStatus> {
    (any::<i32>(), ".{0,3}", option::of(time()), any::<bool>()).prop_map(|(index, name, started_at, disabled)| {
        let status = disabled.then(|| value!({"any": [1, {"thing": "x"}]}));
        StepPluginStatus { index, name, started_at, disabled, status, ..StepPluginStatus::default() }
    })
}

fn canary() -> impl Strategy<Value = CanaryMemory> {
    let role = option::of(prop_oneof![Just(PingPong::Ping), Just(PingPong::Pong)]);
    (weights(), run(), run(), hash(), role, vec(plugin(), 0..3)).prop_map(
        |(weights, step_run, background_run, experiment, stable_service, plugins)| CanaryMemory {
            weights,
            step_run,
            background_run,
            experiment,
            stable_service,
            plugins,
        },
    )
}

fn blue_green() -> impl Strategy<Value = BlueGreenMemory> {
    let size = prop_oneof![Just(PreviewSize::Preview), Just(PreviewSize::Full)];
    (hash(), hash(), size, run(), run()).prop_map(|(active, preview, size, before_run, after_run)| BlueGreenMemory {
        active,
        preview,
        size,
        before_run,
        after_run,
    })
}

fn pods() -> impl Strategy<Value = Pods> {
    let numbers = (any::<i32>(), any::<i32>(), any::<i32>(), any::<i32>(), any::<i32>(), "[a-z=,]{0,5}");
    numbers.prop_map(|(all, updated, ready, available, scaled, selector)| Pods {
        all,
        updated,
        ready,
        available,
        scaled,
        selector,
    })
}

fn attempt() -> impl Strategy<Value = Option<Attempt>> {
    let how = option::of(prop_oneof!["Promoted", "Aborted", "[a-z]{1,3}"].prop_map(|word| word.as_str().into()));
    let ended = option::of((time(), how).prop_map(|(at, how)| Ended { at, how }));
    let attempt = (time(), option::of(time()), any::<i64>(), ended);
    option::of(attempt.prop_map(|(began, waits_since, waited, ended)| Attempt { began, waits_since, waited, ended }))
}

fn condition() -> impl Strategy<Value = RolloutCondition> {
    let words = ("[A-Z][a-z]{0,3}", "True|False|Unknown", prop_oneof!["RolloutAborted", "[A-Z]{0,2}"], ".{0,4}");
    (words, time(), time()).prop_map(|((r#type, status, reason, message), last_update_time, last_transition_time)| {
        RolloutCondition { r#type, status, last_update_time, last_transition_time, reason, message }
    })
}

fn alb() -> impl Strategy<Value = AlbStatus> {
    (".{0,3}", ".{0,3}").prop_map(|(name, ingress)| AlbStatus {
        load_balancer: AwsResourceRef { name, ..AwsResourceRef::default() },
        ingress,
        ..AlbStatus::default()
    })
}

fn memory() -> impl Strategy<Value = Memory> {
    let versions = (option::of(any::<i64>()), option::of(any::<i64>()), hash(), hash(), hash(), option::of(0..9_u32));
    let promotion = prop_oneof![Just(Promotion::BySteps), Just(Promotion::Full)];
    let wishes = (hold(), abort(), promotion, option::of(time()), option::of(any::<i32>()));
    let rest = (pods(), canary(), blue_green(), vec(condition(), 0..3), attempt(), option::of(alb()), vec(alb(), 0..2));
    (versions, wishes, rest).prop_map(|(versions, wishes, rest)| {
        let (generation, workload_generation, current, stable, steps, step) = versions;
        let (hold, abort, promotion, restarted_at, collisions) = wishes;
        let (pods, canary, blue_green, conditions, attempt, alb, albs) = rest;
        Memory {
            generation,
            workload_generation,
            current,
            stable,
            steps,
            step,
            hold,
            abort,
            promotion,
            restarted_at,
            collisions,
            pods,
            canary,
            blue_green,
            conditions,
            attempt,
            alb,
            albs,
        }
    })
}

/// A status as a person with `kubectl edit` and a bad day would leave it.
fn wreck() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        "abort|abortedAt|pauseConditions|controllerPause|currentStepIndex|canary|blueGreen|weights|duration|conditions",
        "rolloutStartedAt|verified|stable|observedGeneration|promoteFull|alb|albs|stepPluginStatuses|name|status",
        "[a-z]{1,3}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((key.clone(), inner), 0..6).prop_map(|fields| Value::Map(fields.into_iter().collect())),
        ]
    })
}

fn reread(status: &Value) -> Memory {
    decode(&api::read::<RolloutStatus>(status).object)
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded_again(memory in memory(), old in wreck()) {
        let status = encode(&memory, &RolloutSpec::default(), &old);
        prop_assert_eq!(reread(&status), memory);
    }

    #[test]
    fn what_is_said_already_is_not_said_again(memory in memory(), old in wreck()) {
        let spec = RolloutSpec::default();
        let status = encode(&memory, &spec, &old);
        prop_assert!(encode(&memory, &spec, &status).is(&status));
        let remembered = reread(&status);
        prop_assert!(encode(&remembered, &spec, &status).is(&status));
    }

    #[test]
    fn what_is_not_ours_stays(before in memory(), after in memory(), foreign in wreck()) {
        let spec = RolloutSpec::default();
        let mut old = encode(&before, &spec, &Value::Null);
        let both_have_weights = before.canary.weights.is_some() && after.canary.weights.is_some();
        let mut places = vec![vec!["x"], vec!["canary", "x"], vec!["blueGreen", "x"]];
        places.extend(both_have_weights.then(|| vec!["canary", "weights", "canary", "x"]));
        for place in &places {
            old.set_at(place, &foreign);
        }
        let new = encode(&after, &spec, &old);
        for place in &places {
            prop_assert_eq!(new.at(place), Some(&foreign));
        }
        prop_assert_eq!(reread(&new), after);
    }

    #[test]
    fn any_status_can_be_read(status in wreck()) {
        let memory = reread(&status);
        Intents::of(&RolloutSpec::default(), &memory);
    }
}

#[test]
fn what_peoples_tools_write_is_understood() {
    #[track_caller]
    fn check(status: Value, expected: Intents) {
        assert_eq!(Intents::of(&RolloutSpec::default(), &reread(&status)), expected, "{status}");
    }
    let waiting = value!({"controllerPause": true,
        "pauseConditions": [{"reason": "CanaryPauseStep", "startTime": "2024-01-01T00:00:00Z"}]});
    check(waiting, Intents::default());
    check(value!({"controllerPause": true}), Intents { go_on: true, ..Intents::default() });
    check(value!({"controllerPause": true, "pauseConditions": []}), Intents { go_on: true, ..Intents::default() });
    check(value!({"abort": true}), Intents { abort: true, ..Intents::default() });
    check(value!({"abort": true, "abortedAt": "2024-01-01T00:00:00Z"}), Intents::default());
    check(value!({"abort": false, "abortedAt": "2024-01-01T00:00:00Z"}), Intents { retry: true, ..Intents::default() });
    check(value!({"promoteFull": true}), Intents { promote_fully: true, ..Intents::default() });
}

#[test]
fn phase_and_message_follow_from_the_rest() {
    let spec: RolloutSpec = api::read(&value!({"replicas": 2, "strategy": {"canary": {}}})).object;
    let memory = Memory {
        current: Hash::new("new"),
        stable: Hash::new("old"),
        pods: Pods { all: 2, updated: 2, available: 2, ..Pods::default() },
        ..Memory::default()
    };
    let status = encode(&memory, &spec, &value!({"phase": "Healthy", "message": "", "extra": 1}));
    assert_eq!(status.str_at(&["phase"]), Some("Progressing"));
    assert_eq!(status.str_at(&["message"]), Some("waiting for all steps to complete"));
    let done = Memory { stable: Hash::new("new"), ..memory };
    let status = encode(&done, &spec, &status);
    assert_eq!((status.str_at(&["phase"]), status.get("message")), (Some("Healthy"), None));
    assert_eq!(status.int_at(&["extra"]), Some(1));
}
