//! The one loop body: observe, decide, check, act, record, announce.
//!
//! ```text
//! look ⇄ read ──▶ decide ──▶ diff ──▶ check ──▶ for each action, then the record: write ──▶ announce
//! ```
//!
//! The same for every machine and in every world. Writes nothing if a rule would be broken. An error ends the pass where it
//! is: the next one starts from what is there then. What was written is told as it is acknowledged, so that the next pass
//! waits until it is seen.

use super::{
    machine::{Done, Machine, Observation, Then},
    outbox::Outbox,
    queue::Outcome,
    world::{Announcement, Note, Trouble, World},
    write::Written,
};
use crate::{
    api::constants::{message, reason},
    kubernetes::value::Value,
    model::event::Event,
};

/// How often a pass may find that there is more to read.
const ROUNDS: usize = 16;

/// Carries one pass through; `None` if this process may not go on.
pub async fn pass<M: Machine, W: World>(
    world: &mut W,
    mut case: M::Case,
    outbox: &mut Outbox,
    written: &mut Vec<Written>,
) -> Option<Outcome> {
    match attempt::<M, W>(world, &mut case, outbox, written).await {
        Ok(outcome) => Some(outcome),
        Err(Trouble::Over) => None,
        Err(trouble) => {
            world.note(Note::Failed(&trouble));
            Some(Outcome::Failed(trouble.after()))
        }
    }
}

async fn attempt<M: Machine, W: World>(
    world: &mut W,
    case: &mut M::Case,
    outbox: &mut Outbox,
    written: &mut Vec<Written>,
) -> Result<Outcome, Trouble> {
    let view = match observe::<M, W>(world, case).await? {
        Observation::Complete(view) => view,
        Observation::Stale => return Ok(Outcome::Settled(None)),
        Observation::Missing(_) | Observation::Behind => return Ok(Outcome::Failed(None)),
    };
    world.note(Note::Deciding);
    let verdict = M::decide(&view);
    let actions = M::diff(&view, &verdict);
    let broken = M::check(&view, &verdict, &actions);
    world.note(Note::Decided { actions: actions.len(), reasons: M::reasons(&verdict), wake: M::wake(&view, &verdict) });
    if world.records() {
        world.record(M::KEY, &*case, &verdict).await;
    }
    if !broken.is_empty() {
        refuse::<M, W>(world, &view, outbox, broken).await;
        return Ok(Outcome::Failed(None));
    }
    outbox.is_allowed();
    let ended = act::<M, W>(world, &view, verdict, &actions, outbox, written).await;
    let wait = match &ended {
        Err(Trouble::Over) => return Err(Trouble::Over),
        Ok(Outcome::Settled(_)) => outbox.wait(M::crowd(&view), M::now(&view)),
        Ok(Outcome::Failed(_)) | Err(_) => None,
    };
    if wait.is_none() && !outbox.is_empty() {
        world.announce(outbox.take()).await;
    }
    Ok(match ended? {
        Outcome::Settled(wake) => Outcome::Settled(wake.into_iter().chain(wait).min()),
        Outcome::Failed(after) => Outcome::Failed(after),
    })
}

/// Reads until everything is known that the decision needs.
async fn observe<M: Machine, W: World>(world: &mut W, case: &mut M::Case) -> Result<Observation<M::View>, Trouble> {
    for _ in 0..ROUNDS {
        match M::look(case) {
            Observation::Missing(reads) => {
                let found = world.read(&reads).await?;
                M::absorb(case, found);
            }
            known => return Ok(known),
        }
    }
    Ok(Observation::Behind)
}

/// Carries the actions out, records the verdict and puts into the outbox what is to be announced. A place at which a
/// process may end is a turn of this one loop.
async fn act<M: Machine, W: World>(
    world: &mut W,
    view: &M::View,
    mut verdict: M::Verdict,
    actions: &[M::Action],
    outbox: &mut Outbox,
    written: &mut Vec<Written>,
) -> Result<Outcome, Trouble> {
    let (object, now) = (M::object(view), M::now(view));
    let mut is_new = outbox.meet(object.at(&["metadata", "uid"]).and_then(Value::as_text));
    let (mut done, mut own, mut then): (Vec<&M::Action>, _, _) = (Vec::new(), None, Then::GoOn);
    let mut rest = actions.iter();
    let mut after = None;
    let ended = loop {
        let action = rest.next();
        let write = match action {
            Some(action) => M::write(view, action),
            None => match M::record(view, &verdict, own) {
                Some(write) => write,
                None => break Ok(()),
            },
        };
        match (world.write(&write).await, action) {
            (Ok(acknowledged), Some(action)) => {
                own = acknowledged.as_ref().and_then(Written::rollout_version).or(own);
                written.extend(acknowledged);
                done.push(action);
            }
            (Ok(acknowledged), None) => {
                written.extend(acknowledged);
                M::recorded(view, &verdict).into_iter().for_each(|note| world.note(note));
                break Ok(());
            }
            (Err(Trouble::Refused(why)), Some(action)) => {
                let Some(instead) = M::refused(view, &verdict, action, &write, &why) else {
                    break Err(Trouble::Refused(why));
                };
                if instead.then != Then::GoOn {
                    // Nothing else is written but the record, and what was done so far is announced.
                    rest = Default::default();
                    let partly = Done { actions: &done, is_recorded: false, is_new: std::mem::take(&mut is_new) };
                    outbox.add(M::announce(view, &verdict, &partly), now);
                    done.clear();
                }
                if instead.then == Then::Fail {
                    after = why.after;
                    world.note(Note::Failed(&Trouble::Refused(why)));
                }
                (verdict, then) = (instead.verdict, instead.then);
            }
            (Err(trouble), _) => break Err(trouble),
        }
    };
    if ended == Err(Trouble::Over) {
        return Err(Trouble::Over);
    }
    let done = Done { actions: &done, is_recorded: ended.is_ok(), is_new };
    outbox.add(M::announce(view, &verdict, &done), now);
    ended.map(|()| match then {
        Then::GoOn | Then::Settle => Outcome::Settled(M::wake(view, &verdict)),
        Then::Fail => Outcome::Failed(after),
    })
}

/// Says which rules would have been broken, once for as long as they are the same.
async fn refuse<M: Machine, W: World>(world: &mut W, view: &M::View, outbox: &mut Outbox, broken: Vec<String>) {
    world.note(Note::Broken(&broken));
    let message = message::reconciliation_error(&broken.join("; "));
    if outbox.is_refused(&message) {
        let event = Event { warning: true, reason: reason::RECONCILIATION_ERROR, message };
        world.announce(vec![Announcement { kind: M::KIND, object: M::object(view).clone(), event }]).await;
    }
}

impl Trouble {
    /// When the server wants to be asked again.
    fn after(&self) -> Option<jiff::Timestamp> {
        match self {
            Trouble::Refused(why) => why.after,
            Trouble::Unreachable(_) | Trouble::Over => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::Future,
        pin::pin,
        task::{Context, Poll, Waker},
    };

    use jiff::Timestamp;

    use super::*;
    use crate::{
        engine::{
            cache::{News, place_of},
            driver::{Driver, Next},
            key::ObjectKey,
            machine::Settings,
            resource,
            world::{Found, Read, Refusal},
            write::{Verb, Write},
        },
        value,
    };

    /// A server that has nothing and refuses to create what has one of these names.
    #[derive(Default)]
    struct Server {
        refuses: Vec<&'static str>,
        written: Vec<String>,
        announced: Vec<String>,
        version: u64,
    }

    impl World for Server {
        async fn read(&mut self, reads: &[Read]) -> Result<Vec<Found>, Trouble> {
            Ok(reads.iter().map(|_| Found::Missing("not found".to_owned())).collect())
        }

        async fn write(&mut self, write: &Write) -> Result<Option<Written>, Trouble> {
            let name = place_of(&write.body).name;
            if write.verb == Verb::Create && self.refuses.iter().any(|refused| name.contains(refused)) {
                let message = format!("{name}: exceeded quota");
                return Err(Trouble::Refused(Refusal { code: 403, message, after: None }));
            }
            self.version += 1;
            self.written.push(write.to_string());
            let key = ObjectKey { resource: write.object.resource.clone(), place: place_of(&write.body) };
            Ok(Some(Written::Version(key, 100 + self.version)))
        }

        async fn announce(&mut self, announcements: Vec<Announcement>) {
            self.announced.extend(announcements.into_iter().map(|one| one.event.message));
        }
    }

    fn now<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("this server answers at once"),
        }
    }

    /// Two Jobs are to begin, and one of them is refused: the other one's write is acknowledged, and status tells of both.
    #[test]
    fn a_refused_job_leaves_the_other_measurements_as_they_are() {
        let metric = |name: &str| value!({"name": name, "provider": {"job": {"spec": {"template": {"spec": {}}}}}});
        let run = value!({
            "metadata": {"namespace": "shop", "name": "run", "uid": "u", "resourceVersion": "1"},
            "spec": {"metrics": [metric("bad"), metric("good")]},
        });
        let mut driver = Driver::new(Settings::default());
        let start = Timestamp::UNIX_EPOCH;
        let mut lists = driver.start();
        let pass = loop {
            for watch in lists {
                let objects = if watch.resource == resource::runs() { vec![run.clone()] } else { Vec::new() };
                driver.hear(&watch, News::List(objects, 1), start, start);
            }
            match driver.next(start, |_| {}).expect("something to do") {
                Next::Pass(pass) => break pass,
                Next::Follow(watches) => lists = watches,
            }
        };
        let mut server = Server { refuses: vec!["bad"], ..Server::default() };
        let (mut outbox, mut written) = (pass.outbox, Vec::new());
        let outcome = now(pass.case.pass(&mut server, &mut outbox, &mut written));
        assert!(matches!(outcome, Some(Outcome::Settled(Some(_)))), "{outcome:?}");
        assert_eq!(written.len(), 2, "the Job and the status: {:?}", server.written);
        assert!(server.written[0].starts_with("create jobs.batch"), "{:?}", server.written);
        let status = &server.written[1];
        assert!(status.contains("exceeded quota") && status.contains("job-name"), "{status}");
    }
}
