//! The line between the daemon and the cluster, which goes dead at a chosen write, as when the machine is gone.

use std::{
    convert::Infallible,
    future::{Future, pending},
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use http::{Method, Request};
use tokio::sync::watch;
use tower::Service;

/// A line that lasts as long as one life of the daemon.
#[derive(Clone)]
pub struct Line {
    state: Arc<Mutex<State>>,
    dead: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    /// How many writes went over it.
    writes: usize,
    /// The write at which it goes dead.
    cut: Option<(When, usize)>,
}

/// What becomes of the write at which a line goes dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// It does not arrive.
    Before,
    /// It is carried out, and the answer does not arrive.
    After,
}

/// Whose writes go over a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Those of the engine, which do not count.
    Engine,
    /// Those of the sources.
    Sources,
}

impl Default for Line {
    fn default() -> Line {
        Line { state: Arc::default(), dead: watch::Sender::new(false) }
    }
}

impl Line {
    /// Goes dead at the write of this number from now on; the next one is the first.
    pub fn cut(&self, when: When, write: usize) {
        let mut state = self.state.lock().unwrap();
        state.cut = Some((when, state.writes + write));
    }

    /// Nothing goes over it any more, in either direction.
    pub fn die(&self) {
        self.dead.send_replace(true);
    }

    fn is_dead(&self) -> bool {
        *self.dead.borrow()
    }

    /// Waits until it is dead.
    pub async fn died(&self) {
        self.dead.subscribe().wait_for(|dead| *dead).await.unwrap();
    }

    /// The service at the other end.
    pub fn to<S>(&self, service: S, whose: Whose) -> End<S> {
        End { line: self.clone(), service, whose }
    }

    /// Counts a write; answers what becomes of it if it is the one.
    fn count(&self) -> Option<When> {
        let mut state = self.state.lock().unwrap();
        state.writes += 1;
        state.cut.filter(|(_, write)| *write == state.writes).map(|(when, _)| when)
    }
}

/// What is asked over a line.
#[derive(Clone)]
pub struct End<S> {
    line: Line,
    service: S,
    whose: Whose,
}

impl<S, B> Service<Request<B>> for End<S>
where
    S: Service<Request<B>, Error = Infallible>,
    S::Future: Send + 'static,
    S::Response: Send + 'static,
{
    type Response = S::Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let is_dry = request.uri().query().is_some_and(|query| query.contains("dryRun"));
        // A question, whatever its method is.
        let is_review = request.uri().path().ends_with("reviews");
        let is_write = self.whose == Whose::Sources && request.method() != Method::GET && !is_dry && !is_review;
        let fate = if is_write && !self.line.is_dead() { self.line.count() } else { None };
        if fate == Some(When::Before) {
            self.line.die();
        }
        if self.line.is_dead() {
            return Box::pin(pending());
        }
        let (answer, line) = (self.service.call(request), self.line.clone());
        Box::pin(async move {
            let answer = answer.await;
            if fate == Some(When::After) {
                line.die();
            }
            if line.is_dead() { pending().await } else { answer }
        })
    }
}
