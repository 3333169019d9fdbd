//! A listener that fails, for the tests of every listener of the process.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex},
};

use tokio::{io::DuplexStream, sync::mpsc, time::Instant};

use crate::listen::Listener;

/// A listener whose first answers are given; then come the connections of a channel.
pub(crate) struct Failing {
    pub errors: Mutex<VecDeque<io::Error>>,
    connections: tokio::sync::Mutex<mpsc::Receiver<DuplexStream>>,
    asked: Arc<Mutex<Vec<Instant>>>,
}

/// The other side of it.
pub(crate) struct Outside {
    pub connections: mpsc::Sender<DuplexStream>,
    /// When `accept` was called.
    pub asked: Arc<Mutex<Vec<Instant>>>,
}

impl Outside {
    /// Connects.
    pub(crate) async fn connect(&self) -> DuplexStream {
        let (near, far) = tokio::io::duplex(64 << 10);
        self.connections.send(far).await.unwrap();
        near
    }

    pub(crate) fn calls(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

/// A listener that fails with these errors first.
pub(crate) fn failing(errors: impl IntoIterator<Item = io::Error>) -> (Failing, Outside) {
    let (connections, receiver) = mpsc::channel(8);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let errors = Mutex::new(errors.into_iter().collect());
    let listener = Failing { errors, connections: tokio::sync::Mutex::new(receiver), asked: asked.clone() };
    (listener, Outside { connections, asked })
}

impl Listener for Failing {
    type Stream = DuplexStream;

    async fn accept(&self) -> io::Result<DuplexStream> {
        self.asked.lock().unwrap().push(Instant::now());
        if let Some(error) = self.errors.lock().unwrap().pop_front() {
            return Err(error);
        }
        match self.connections.lock().await.recv().await {
            Some(stream) => Ok(stream),
            None => std::future::pending().await,
        }
    }
}

/// What a process gets that has as many files open as it may.
pub(crate) fn too_many_files() -> io::Error {
    const EMFILE: i32 = 24;
    io::Error::from_raw_os_error(EMFILE)
}
