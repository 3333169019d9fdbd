//! Accepting connections, for every listener of the process.
//!
//! An error of `accept` ends nothing and costs next to nothing: the listener waits, a little longer each time, says so once
//! and goes on when connections can be accepted again. Never returns an error, never reads from a connection.

use std::{future::Future, io, time::Duration};

use tokio::net::{TcpListener, TcpStream};

/// The wait after the first error.
const BACKOFF_FIRST: Duration = Duration::from_millis(10);
/// The longest wait: how late the first connection may be after, say, file descriptors have become free.
const BACKOFF_MAX: Duration = Duration::from_secs(1);

/// Where connections come from.
pub trait Listener {
    /// A connection.
    type Stream;

    /// The next connection. Dropping the future loses none.
    fn accept(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<TcpStream> {
        TcpListener::accept(self).await.map(|(stream, _)| stream)
    }
}

/// Accepts the connections of a listener, whatever goes wrong.
#[derive(Debug)]
pub struct Acceptor<L> {
    listener: L,
    name: &'static str,
    failures: u32,
}

impl<L: Listener> Acceptor<L> {
    /// Accepts what comes to this listener, which the log calls so.
    pub fn new(listener: L, name: &'static str) -> Acceptor<L> {
        Acceptor { listener, name, failures: 0 }
    }

    /// The next connection. Dropping the future loses none.
    pub async fn next(&mut self) -> L::Stream {
        loop {
            match self.listener.accept().await {
                Ok(stream) => {
                    if self.failures > 0 {
                        tracing::info!(listener = self.name, failures = self.failures, "accepts connections again");
                        self.failures = 0;
                    }
                    return stream;
                }
                // Only that one connection is gone; the next one is there already.
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    if self.failures == 0 {
                        tracing::warn!(
                            listener = self.name,
                            %error,
                            "cannot accept connections; trying again until it works"
                        );
                    }
                    // Counted before the wait, which may be dropped.
                    let wait = backoff(self.failures);
                    self.failures = self.failures.saturating_add(1);
                    tokio::time::sleep(wait).await;
                }
            }
        }
    }
}

/// Whether an error says only that a client hung up before it was accepted. Everything else, such as a lack of file
/// descriptors or memory, stays when `accept` is called again at once.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// How long to wait after this many errors in a row before this one: 10, 20, 40 ... 640 ms, then a second.
fn backoff(failures: u32) -> Duration {
    BACKOFF_FIRST.saturating_mul(1 << failures.min(10)).min(BACKOFF_MAX)
}

#[cfg(test)]
mod failing;

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::time::Instant;
    use tracing_subscriber::fmt::MakeWriter;

    use super::{
        failing::{failing, too_many_files},
        *,
    };

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'w> MakeWriter<'w> for Log {
        type Writer = Log;

        fn make_writer(&'w self) -> Log {
            self.clone()
        }
    }

    #[test]
    fn the_wait_grows_to_a_second() {
        let waits: Vec<u128> = (0..9).map(|failures| backoff(failures).as_millis()).collect();
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        assert_eq!(backoff(u32::MAX), BACKOFF_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lack_of_file_descriptors_is_waited_out_and_logged_once() {
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false).without_time().finish();
        let _log = tracing::subscriber::set_default(subscriber);
        let (listener, outside) = failing((0..20).map(|_| too_many_files()));
        let mut acceptor = Acceptor::new(listener, "webhooks");
        let _near = outside.connect().await;
        let began = Instant::now();
        acceptor.next().await;
        // 7 waits come to 1.27 s, each of the other 13 is a second.
        assert_eq!(began.elapsed(), Duration::from_millis(1270 + 13_000));
        assert_eq!(outside.calls(), 21);
        let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[0].contains("WARN") && lines[0].contains("Too many open files"), "{text}");
        assert!(lines[1].contains("INFO") && lines[1].contains("failures=20"), "{text}");
        // Another lack is another line, and begins with a short wait.
        acceptor.listener.errors.lock().unwrap().push_back(too_many_files());
        let (_other, began) = (outside.connect().await, Instant::now());
        acceptor.next().await;
        assert_eq!(began.elapsed(), Duration::from_millis(10));
        assert_eq!(String::from_utf8(log.0.lock().unwrap().clone()).unwrap().lines().count(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_hangs_up_makes_nobody_wait() {
        let errors = [io::ErrorKind::ConnectionAborted, io::ErrorKind::ConnectionReset].map(io::Error::from);
        let (listener, outside) = failing(errors);
        let mut acceptor = Acceptor::new(listener, "webhooks");
        let (_near, began) = (outside.connect().await, Instant::now());
        acceptor.next().await;
        assert_eq!((began.elapsed(), outside.calls()), (Duration::ZERO, 3));
    }

    /// Whoever waits for other things beside connections asks anew each time.
    #[tokio::test(start_paused = true)]
    async fn a_wait_that_is_dropped_is_not_forgotten() {
        let (listener, outside) = failing((0..1000).map(|_| too_many_files()));
        let mut acceptor = Acceptor::new(listener, "webhooks");
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(60) {
            drop(tokio::time::timeout(Duration::from_secs(2), acceptor.next()).await);
        }
        assert!(outside.calls() < 120, "{}", outside.calls());
    }
}
