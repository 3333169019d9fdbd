//! One connection to a plugin: its streams in the order go-plugin wants them, and the calls over them.
//!
//! Streams 1 (control), 3 (what the plugin prints on stdout) and 5 (on stderr) first, then `Dispense`, then stream 7 for the
//! plugin's own methods. Never waits: the caller moves bytes and keeps the time.

use crate::{
    gob::{DecodeError, EncodeError, Limits, Value},
    rpc::{Answer, Argument, Channel},
    yamux::{Session, SessionError},
};

/// Whose methods are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Service {
    /// go-plugin's own: `Control.Ping`, `Control.Quit`.
    Control,
    /// The plugin's.
    Plugin,
}

/// What the plugin prints once it serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Its stdout.
    Stdout,
    /// Its stderr.
    Stderr,
}

/// What has arrived.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// The plugin takes calls.
    Ready,
    /// The answer to a call.
    Answer(Service, Answer),
}

/// Why a connection is over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The connection below.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// An answer that cannot be read.
    #[error("cannot read the plugin's answer: {0}")]
    Answer(#[from] DecodeError),
    /// The plugin does not offer what it is configured as.
    #[error("{0}")]
    NotOffered(String),
    /// The plugin does not follow go-plugin's protocol.
    #[error("the plugin {0}")]
    Protocol(&'static str),
    /// The plugin has ended a stream.
    #[error("stream closed")]
    Closed,
}

/// One connection.
#[derive(Debug)]
pub struct Link {
    session: Session,
    control: (u32, Channel),
    plugin: Channel,
    outputs: [u32; 2],
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Dispensing,
    /// Waits for the four bytes to come back.
    Connecting {
        stream: u32,
        number: [u8; 4],
    },
    Ready {
        stream: u32,
    },
}

impl Link {
    /// A new connection to a plugin that offers the interface of this name.
    pub fn new(interface: &str, limits: Limits) -> Result<Self, EncodeError> {
        let mut session = Session::new();
        let mut control = (session.open(), Channel::new(limits));
        let outputs = [session.open(), session.open()];
        let (_, bytes) = control.1.request("Dispenser.Dispense", &Argument::Text(interface.to_owned()))?;
        session.send(control.0, &bytes);
        Ok(Link { session, control, plugin: Channel::new(limits), outputs, phase: Phase::Dispensing })
    }

    /// Queues a call; its number is that of the answer. Before the plugin is ready its own methods cannot be called.
    pub fn call(&mut self, service: Service, method: &str, argument: &Argument) -> Result<Option<u64>, EncodeError> {
        let (stream, channel) = match (service, &self.phase) {
            (Service::Control, _) => (self.control.0, &mut self.control.1),
            (Service::Plugin, Phase::Ready { stream }) => (*stream, &mut self.plugin),
            (Service::Plugin, Phase::Dispensing | Phase::Connecting { .. }) => return Ok(None),
        };
        let (sequence, bytes) = channel.request(method, argument)?;
        self.session.send(stream, &bytes);
        Ok(Some(sequence))
    }

    /// Reads what has arrived.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Vec<Incoming>, LinkError> {
        self.session.receive(bytes)?;
        let mut incoming = Vec::new();
        self.read_control(&mut incoming)?;
        self.read_plugin(&mut incoming)?;
        Ok(incoming)
    }

    fn read_control(&mut self, incoming: &mut Vec<Incoming>) -> Result<(), LinkError> {
        let (stream, channel) = &mut self.control;
        channel.push(&self.session.take(*stream, usize::MAX));
        while let Some(answer) = channel.next_answer()? {
            if let Phase::Dispensing = self.phase {
                let number = match answer.outcome {
                    Ok(Value::Uint(number)) => u32::try_from(number).ok(),
                    Ok(_) => None,
                    Err(error) => return Err(LinkError::NotOffered(error)),
                };
                let number = number.ok_or(LinkError::Protocol("answers Dispense with something else than a number"))?;
                let number = number.to_le_bytes();
                let stream = self.session.open();
                self.session.send(stream, &number);
                self.phase = Phase::Connecting { stream, number };
            } else {
                incoming.push(Incoming::Answer(Service::Control, answer));
            }
        }
        if self.session.is_ended(*stream) { Err(LinkError::Closed) } else { Ok(()) }
    }

    fn read_plugin(&mut self, incoming: &mut Vec<Incoming>) -> Result<(), LinkError> {
        if let Phase::Connecting { stream, number } = self.phase {
            if self.session.waiting(stream) >= number.len() {
                if self.session.take(stream, number.len()) != number {
                    return Err(LinkError::Protocol("confirms another stream than the one it was asked for"));
                }
                self.phase = Phase::Ready { stream };
                incoming.push(Incoming::Ready);
            } else if self.session.is_ended(stream) {
                return Err(LinkError::Closed);
            }
        }
        if let Phase::Ready { stream } = self.phase {
            self.plugin.push(&self.session.take(stream, usize::MAX));
            while let Some(answer) = self.plugin.next_answer()? {
                incoming.push(Incoming::Answer(Service::Plugin, answer));
            }
            if self.session.is_ended(stream) {
                return Err(LinkError::Closed);
            }
        }
        Ok(())
    }

    /// The next bytes to write; empty if there are none.
    pub fn transmit(&mut self) -> Vec<u8> {
        self.session.transmit()
    }

    /// Takes at most so much of what the plugin has printed. What is not taken stops the plugin from printing more.
    pub fn output(&mut self, output: Output, most: usize) -> Vec<u8> {
        let [stdout, stderr] = self.outputs;
        match output {
            Output::Stdout => self.session.take(stdout, most),
            Output::Stderr => self.session.take(stderr, most),
        }
    }

    /// Asks for a sign of life.
    pub fn ping(&mut self) {
        self.session.ping();
    }

    /// Whether the last sign of life that was asked for is still missing.
    pub fn is_ping_unanswered(&self) -> bool {
        self.session.is_ping_unanswered()
    }
}
