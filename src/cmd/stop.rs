//! The signals that end a command which goes on: it cleans up after itself and says so by its exit code.

use std::process::ExitCode;

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for Ctrl-C and for being told to end.
pub struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

/// How a command was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// By Ctrl-C.
    Interrupted,
    /// By SIGTERM.
    Terminated,
}

impl Stop {
    /// Listens from now on.
    pub fn new() -> anyhow::Result<Stop> {
        let listen = |kind: SignalKind| signal(kind).context("cannot listen for signals");
        Ok(Stop { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// Resolves with the first of them.
    pub async fn asked(&mut self) -> Stopped {
        tokio::select! {
            _ = self.interrupt.recv() => Stopped::Interrupted,
            _ = self.terminate.recv() => Stopped::Terminated,
        }
    }
}

impl Stopped {
    /// What shells take for a program that such a signal ended before its work was done.
    pub fn code(self) -> ExitCode {
        ExitCode::from(match self {
            Stopped::Interrupted => 130,
            Stopped::Terminated => 143,
        })
    }
}
