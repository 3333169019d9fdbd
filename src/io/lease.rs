//! Leader election: one of several daemons is the leader and works, the others wait.
//!
//! A task renews the Lease and publishes until when this process leads. A [`Gate`] holds writes back that would be sent later
//! than that; it goes by the monotonic clock, so that a step of the wall clock opens nothing. Never ends the process
//! itself.

use std::future::Future;

use jiff::{SignedDuration, Timestamp};
use tokio::{
    sync::watch,
    time::{Duration, Instant, sleep, timeout},
};

use super::api::{Api, Error};
use crate::{
    engine::{
        key::{Place, Resource},
        lease::{Candidate, Move},
    },
    kubernetes::value::Value,
};

/// Until when this process leads; `None` while it does not.
#[derive(Debug, Clone)]
pub struct Gate(watch::Receiver<Option<Instant>>);

impl Gate {
    /// Whether a write may be sent now.
    pub fn is_open(&self) -> bool {
        self.0.borrow().is_some_and(|until| Instant::now() < until)
    }

    /// Resolves when leadership begins, is renewed or ends.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            // Nobody stands any more: the process is on its way out.
            std::future::pending::<()>().await;
        }
    }
}

/// A gate, and who opens it.
pub fn gate() -> (watch::Sender<Option<Instant>>, Gate) {
    let (sender, receiver) = watch::channel(None);
    (sender, Gate(receiver))
}

/// How long one request may take: a renewal that hangs must leave time for another.
const PATIENCE: Duration = Duration::from_secs(4);

/// The wall clock as it was when this began, moved on by the monotonic one.
struct Clock {
    began: Instant,
    wall: Timestamp,
}

impl Clock {
    fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.began.elapsed()).unwrap_or(SignedDuration::MAX);
        self.wall.saturating_add(passed).unwrap_or(Timestamp::MAX)
    }

    fn instant(&self, time: Timestamp) -> Instant {
        self.began + Duration::try_from(time.duration_since(self.wall)).unwrap_or_default()
    }
}

/// Stands for the Lease at a place until it is told to stop, and then gives it back; or until it was lost.
pub async fn stand(
    api: Api,
    place: Place,
    mut candidate: Candidate,
    leads: watch::Sender<Option<Instant>>,
    stop: impl Future<Output = ()>,
) {
    let clock = Clock { began: Instant::now(), wall: Timestamp::now() };
    tokio::pin!(stop);
    loop {
        let asked = clock.now();
        match timeout(PATIENCE, try_once(&api, &place, &mut candidate, &clock)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => match api.outages().failed(&leases(), &error) {
                Some(sentence) => tracing::warn!(lease = %place, "the lease was not renewed: {sentence}"),
                None => tracing::debug!(lease = %place, %error, "the lease was not renewed"),
            },
            Err(_) => tracing::warn!(lease = %place, "the lease was not renewed: no answer"),
        }
        let until = candidate.leads_until().map(|until| clock.instant(until));
        let was = leads.send_replace(until);
        match (was, until) {
            (None, Some(_)) => tracing::info!(lease = %place, "became leader"),
            (Some(_), None) => {
                tracing::warn!(lease = %place, "lost leadership");
                return;
            }
            (None, None) | (Some(_), Some(_)) => {}
        }
        let pause = candidate.wake(asked).duration_since(clock.now());
        tokio::select! {
            () = &mut stop => break,
            () = sleep(Duration::try_from(pause).unwrap_or_default()) => {}
        }
    }
    leads.send_replace(None);
    let released = async {
        let lease = api.object(&leases(), &place).await?;
        match candidate.release(&lease, clock.now()) {
            Some(released) => api.replace(&leases(), &place, &released).await.map(drop),
            None => Ok(()),
        }
    };
    if let Ok(Err(error)) = timeout(PATIENCE, released).await {
        tracing::debug!(lease = %place, %error, "the lease was not released; it expires by itself");
    }
}

async fn try_once(api: &Api, place: &Place, candidate: &mut Candidate, clock: &Clock) -> Result<(), Error> {
    let lease = match api.object(&leases(), place).await {
        Ok(lease) => Some(lease),
        Err(error) if error.code() == Some(404) => None,
        Err(error) => return Err(error),
    };
    let asked = clock.now();
    let written = match candidate.next(lease.as_ref(), asked) {
        Move::Wait => return Ok(()),
        Move::Create(mut lease) => {
            name(&mut lease, place);
            api.create(&leases(), &place.namespace, &lease).await
        }
        Move::Replace(lease) => api.replace(&leases(), place, &lease).await,
    };
    match written {
        Ok(_) => candidate.renewed(asked),
        // Somebody was faster: what they wrote is seen next time.
        Err(error) if error.code() == Some(409) => candidate.lost(),
        Err(error) => return Err(error),
    }
    Ok(())
}

fn leases() -> Resource {
    Resource::new("coordination.k8s.io", "v1", "leases")
}

fn name(lease: &mut Value, place: &Place) {
    lease.set_at(&["apiVersion"], "coordination.k8s.io/v1");
    lease.set_at(&["kind"], "Lease");
    lease.set_at(&["metadata", "name"], place.name.clone());
    lease.set_at(&["metadata", "namespace"], place.namespace.clone());
}
