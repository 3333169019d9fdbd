//! Keeps one connection to a running plugin: moves its bytes, keeps its time, hands answers to those who wait for them.
//!
//! One task per process. It ends when the plugin does, breaks the protocol, gives no sign of life, or when nobody holds the
//! connection any more; then the process group is killed and every open call is answered with the reason.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, split},
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep_until},
};

use crate::{
    gob::{Limits, Value},
    link::{Incoming, Link, Output, Service},
    output::{Line, Lines, Log, Pace},
    process::{Process, Socket},
    rpc::Argument,
};

/// What a connection needs to know.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// How often the plugin is asked for a sign of life.
    pub ping_every: Duration,
    /// How long it may take to give one.
    pub pong_within: Duration,
    /// How long a process may take to end by itself once its connection is closed.
    pub exit_within: Duration,
}

/// The outcome of a call: the value, the server's refusal, or why there is none.
pub type Outcome = Result<Value, String>;

/// A connection. When the last copy goes, the process is killed.
#[derive(Debug)]
pub struct Connection {
    commands: mpsc::Sender<Command>,
    ended: watch::Receiver<bool>,
    reason: Arc<OnceLock<String>>,
    /// When it was made.
    pub since: Instant,
}

#[derive(Debug)]
enum Command {
    Call { service: Service, method: &'static str, argument: Argument, reply: oneshot::Sender<Outcome> },
    End,
}

/// Bytes per second of all that a plugin sends, and at once: what it may cost us to read.
const RECEIVED: (f64, f64) = (8.0 * 1024.0 * 1024.0, 32.0 * 1024.0 * 1024.0);
/// Bytes per second of what it prints over the connection, and at once.
const PRINTED: (f64, f64) = (1024.0 * 1024.0, 4.0 * 1024.0 * 1024.0);
/// Calls past their deadline that a plugin may leave unanswered.
const UNANSWERED: usize = 16;
/// What Go says when a connection ends in the middle of an answer.
const EOF: &str = "unexpected EOF";

impl Connection {
    /// Takes over a process that listens, and returns when it takes calls.
    pub async fn open(
        process: Process,
        socket: Box<dyn Socket>,
        link: Link,
        plugin: Arc<str>,
        log: Log,
        times: Times,
    ) -> Result<Connection, String> {
        let (commands, received) = mpsc::channel(16);
        let (ready, is_ready) = oneshot::channel();
        let (end, ended) = watch::channel(false);
        let reason = Arc::new(OnceLock::new());
        let start = Instant::now();
        let printer = Printer { plugin, log, start, lines: Default::default(), pace: Pace::new(PRINTED.0, PRINTED.1) };
        let task = Task {
            link,
            printer,
            times,
            pending: HashMap::new(),
            refused: None,
            ready: Some(ready),
            commands: received,
        };
        tokio::spawn({
            let reason = Arc::clone(&reason);
            async move { task.run(process, socket, &reason, end).await }
        });
        match is_ready.await {
            Ok(()) => Ok(Connection { commands, ended, reason, since: start }),
            Err(_) => Err(reason.get().cloned().unwrap_or_else(|| EOF.into())),
        }
    }

    /// Calls a method. Whoever stops waiting loses the answer, nothing else.
    pub async fn call(&self, service: Service, method: &'static str, argument: Argument) -> Outcome {
        let (reply, outcome) = oneshot::channel();
        let shut_down = || self.reason.get().map_or_else(|| EOF.to_owned(), |_| "connection is shut down".to_owned());
        self.commands
            .send(Command::Call { service, method, argument, reply })
            .await
            .map_err(|_| "connection is shut down".to_owned())?;
        outcome.await.unwrap_or_else(|_| Err(shut_down()))
    }

    /// Why the connection is over, if it is.
    pub fn ended(&self) -> Option<&str> {
        self.reason.get().map(String::as_str)
    }

    /// Ends the connection and the process, if they have not ended, and waits for it.
    pub async fn end(&self) {
        let _ = self.commands.send(Command::End).await;
        self.gone().await;
    }

    /// Waits until the process is gone.
    pub async fn gone(&self) {
        // The sender goes with the task, which is as good.
        let _ = self.ended.clone().wait_for(|is_over| *is_over).await;
    }
}

struct Task {
    link: Link,
    printer: Printer,
    times: Times,
    pending: HashMap<(Service, u64), oneshot::Sender<Outcome>>,
    /// Who made the call that ended the connection.
    refused: Option<oneshot::Sender<Outcome>>,
    ready: Option<oneshot::Sender<()>>,
    commands: mpsc::Receiver<Command>,
}

impl Task {
    async fn run(
        mut self,
        mut process: Process,
        socket: Box<dyn Socket>,
        reason: &OnceLock<String>,
        end: watch::Sender<bool>,
    ) {
        let why = self.serve(socket).await;
        // Set before anybody learns of it: the next use must find that the connection is over.
        let _ = reason.set(why.clone());
        self.commands.close();
        let pending = self.pending.drain().map(|(_, reply)| reply);
        for reply in pending.chain(self.refused.take()) {
            let _ = reply.send(Err(why.clone()));
        }
        while let Ok(command) = self.commands.try_recv() {
            if let Command::Call { reply, .. } = command {
                let _ = reply.send(Err(why.clone()));
            }
        }
        drop(self.ready.take());
        self.printer.end();
        if why == EOF {
            // It closed the connection first: it ends by itself, and needs a moment to remove its file.
            process.wait(self.times.exit_within).await;
        }
        process.end().await;
        let _ = end.send(true);
    }

    /// Serves until the connection is over; says why.
    async fn serve(&mut self, socket: Box<dyn Socket>) -> String {
        let (mut reader, mut writer) = split(socket);
        let mut input = vec![0; 64 * 1024];
        let (mut output, mut written) = (Vec::new(), 0);
        let mut pace = Pace::new(RECEIVED.0, RECEIVED.1);
        let mut ping_at = Instant::now() + self.times.ping_every;
        let mut pong_by = None;
        loop {
            if written == output.len() {
                (output, written) = (self.link.transmit(), 0);
            }
            let print_at = self.printer.print(&mut self.link);
            let now = self.printer.now();
            let owed = (-pace.left(now)).max(0.0);
            let read_at = self.printer.at(now + owed / RECEIVED.0);
            let is_owing = owed > 0.0;
            let timer = [Some(ping_at), pong_by, print_at, is_owing.then_some(read_at)];
            let timer = timer.into_iter().flatten().min().unwrap_or(ping_at);
            tokio::select! {
                read = reader.read(&mut input), if !is_owing => {
                    let length = match read {
                        Ok(0) | Err(_) => return EOF.into(),
                        Ok(length) => length,
                    };
                    pace.charge(length as f64, self.printer.now());
                    if let Err(why) = self.receive(input.get(..length).unwrap_or_default()) {
                        return why;
                    }
                }
                wrote = writer.write(output.get(written..).unwrap_or_default()), if written < output.len() => {
                    match wrote {
                        Ok(0) | Err(_) => return EOF.into(),
                        Ok(length) => written += length,
                    }
                }
                command = self.commands.recv() => match command {
                    Some(Command::Call { service, method, argument, reply }) => {
                        if let Err(why) = self.call(service, method, &argument, reply) {
                            return why;
                        }
                    }
                    Some(Command::End) | None => return "connection is shut down".into(),
                },
                () = sleep_until(timer) => {
                    let now = Instant::now();
                    if pong_by.take_if(|by| *by <= now).is_some() && self.link.is_ping_unanswered() {
                        return "keepalive timeout".into();
                    }
                    if ping_at <= now {
                        ping_at = now + self.times.ping_every;
                        // One at a time: another would give the plugin more time for the first.
                        if !self.link.is_ping_unanswered() {
                            self.link.ping();
                            pong_by = Some(now + self.times.pong_within);
                        }
                    }
                }
            }
        }
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<(), String> {
        for incoming in self.link.receive(bytes).map_err(|error| error.to_string())? {
            match incoming {
                Incoming::Ready => {
                    if let Some(ready) = self.ready.take() {
                        let _ = ready.send(());
                    }
                }
                Incoming::Answer(service, answer) => {
                    let Some(reply) = self.pending.remove(&(service, answer.sequence)) else {
                        return Err("the plugin answers a call that was not made".into());
                    };
                    // Nobody waits any more if the deadline has passed.
                    let _ = reply.send(answer.outcome);
                }
            }
        }
        Ok(())
    }

    fn call(
        &mut self,
        service: Service,
        method: &'static str,
        argument: &Argument,
        reply: oneshot::Sender<Outcome>,
    ) -> Result<(), String> {
        let unanswered = self.pending.values().filter(|reply| reply.is_closed()).count();
        if unanswered >= UNANSWERED {
            self.refused = Some(reply);
            return Err(format!("the plugin has left {unanswered} calls unanswered past their deadlines"));
        }
        let name = match service {
            Service::Control => format!("Control.{method}"),
            Service::Plugin => format!("Plugin.{method}"),
        };
        match self.link.call(service, &name, argument) {
            Ok(Some(sequence)) => {
                self.pending.insert((service, sequence), reply);
            }
            Ok(None) => {
                let _ = reply.send(Err("the plugin is not ready".into()));
            }
            Err(error) => {
                let _ = reply.send(Err(error.to_string()));
            }
        }
        Ok(())
    }
}

/// Makes log lines of what the plugin prints over the connection.
struct Printer {
    plugin: Arc<str>,
    log: Log,
    start: Instant,
    lines: [Lines; 2],
    pace: Pace,
}

impl Printer {
    fn now(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    fn at(&self, now: f64) -> Instant {
        self.start + Duration::from_secs_f64(now)
    }

    /// Prints what has arrived and may be printed; says when to come back if the plugin prints too fast.
    fn print(&mut self, link: &mut Link) -> Option<Instant> {
        let now = self.now();
        if self.pace.left(now) > 0.0 {
            for (index, output) in [Output::Stdout, Output::Stderr].into_iter().enumerate() {
                let bytes = link.output(output, usize::MAX);
                self.pace.charge(bytes.len() as f64, now);
                let lines = self.lines.get_mut(index).map(|lines| lines.push(&bytes, now));
                self.send(lines.unwrap_or_default());
            }
        }
        let owed = -self.pace.left(now);
        (owed >= 0.0).then(|| self.at(now + owed / PRINTED.0 + 0.001))
    }

    fn end(&mut self) {
        let now = self.now();
        let lines: Vec<_> = self.lines.iter_mut().flat_map(|lines| lines.end(now)).collect();
        self.send(lines);
    }

    fn send(&self, lines: Vec<(crate::output::Level, String)>) {
        for (level, text) in lines {
            (self.log)(Line { plugin: Arc::clone(&self.plugin), level, text });
        }
    }
}

/// A link to a plugin of this interface.
pub fn link(interface: &str, limits: Limits) -> Result<Link, String> {
    Link::new(interface, limits).map_err(|error| error.to_string())
}
