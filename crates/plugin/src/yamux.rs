//! yamux, the client's side: streams over one connection, with a window for each direction of each stream.
//!
//! Never touches a socket: bytes in, bytes out. Bounded whatever the other end does: a stream holds at most its window,
//! answers to pings and refusals are counted, and streams that the other end opens are refused, a few times.

use std::collections::BTreeMap;

/// What every stream may send before the receiver gives back.
pub const WINDOW: u32 = 256 * 1024;
/// Data of one frame that we send. Any split is allowed; small frames let other streams in between.
const FRAME: usize = 16 * 1024;
/// Bytes of pongs, refusals and windows that may wait for the other end to read.
const CONTROL_LIMIT: usize = 64 * 1024;
/// Streams that the other end may try to open. go-plugin opens none.
const REFUSALS: u32 = 16;

/// Why a connection is over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// Not yamux, or not of this version.
    #[error("not a yamux connection: {0}")]
    Malformed(&'static str),
    /// More data than the window allowed.
    #[error("stream {0} exceeds its window")]
    WindowExceeded(u32),
    /// A stream that does not exist.
    #[error("a frame for stream {0}, which is not open")]
    NoStream(u32),
    /// Streams over streams.
    #[error("the plugin keeps opening streams")]
    TooManyStreams,
    /// Pings over pings, whose answers are not read.
    #[error("the plugin floods the connection and does not read")]
    Flood,
    /// The other end says goodbye.
    #[error("the plugin closed the connection (code {0})")]
    GoneAway(u32),
}

/// A connection.
#[derive(Debug, Default)]
pub struct Session {
    streams: BTreeMap<u32, Stream>,
    /// The header that is arriving.
    header: Vec<u8>,
    /// The data that is arriving, if a frame with data is.
    data: Option<Arriving>,
    control: Vec<u8>,
    refused: u32,
    pings: u32,
    unanswered: Option<u32>,
    /// The stream that sent last: the next one goes first.
    last: u32,
}

#[derive(Debug)]
struct Arriving {
    /// The stream, if its data is wanted.
    stream: Option<u32>,
    left: u32,
}

#[derive(Debug)]
struct Stream {
    /// What may still be sent.
    credit: u32,
    outgoing: Vec<u8>,
    /// What the other end may still send.
    window: u32,
    incoming: Vec<u8>,
    /// What was taken since the window was given back.
    taken: u32,
    is_ended: bool,
}

const DATA: u8 = 0;
const WINDOW_UPDATE: u8 = 1;
const PING: u8 = 2;
const GO_AWAY: u8 = 3;
const SYN: u16 = 1;
const ACK: u16 = 2;
const FIN: u16 = 4;
const RST: u16 = 8;
const HEADER: usize = 12;

impl Session {
    /// A connection without streams.
    pub fn new() -> Self {
        Session::default()
    }

    /// Opens a stream. It is announced at once: a plugin serves nothing before it has accepted three.
    pub fn open(&mut self) -> u32 {
        let id = self.streams.last_key_value().map_or(1, |(id, _)| id.saturating_add(2));
        let stream = Stream {
            credit: WINDOW,
            outgoing: Vec::new(),
            window: WINDOW,
            incoming: Vec::new(),
            taken: 0,
            is_ended: false,
        };
        self.streams.insert(id, stream);
        self.frame(WINDOW_UPDATE, SYN, id, 0);
        id
    }

    /// Queues data; it leaves as the window allows.
    pub fn send(&mut self, id: u32, bytes: &[u8]) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.outgoing.extend_from_slice(bytes);
        }
    }

    /// Takes at most so much of what has arrived, and gives the window back when half of it was taken.
    pub fn take(&mut self, id: u32, most: usize) -> Vec<u8> {
        let Some(stream) = self.streams.get_mut(&id) else { return Vec::new() };
        let length = stream.incoming.len().min(most);
        let rest = stream.incoming.split_off(length);
        let bytes = std::mem::replace(&mut stream.incoming, rest);
        stream.taken += length as u32;
        if stream.taken >= WINDOW / 2 && !stream.is_ended {
            let back = std::mem::take(&mut stream.taken);
            stream.window += back;
            self.frame(WINDOW_UPDATE, 0, id, back);
        }
        bytes
    }

    /// Bytes that have arrived and were not taken.
    pub fn waiting(&self, id: u32) -> usize {
        self.streams.get(&id).map_or(0, |stream| stream.incoming.len())
    }

    /// Whether the other end has ended a stream, and all it sent was taken.
    pub fn is_ended(&self, id: u32) -> bool {
        self.streams.get(&id).is_none_or(|stream| stream.is_ended && stream.incoming.is_empty())
    }

    /// Asks for a sign of life.
    pub fn ping(&mut self) {
        self.pings = self.pings.wrapping_add(1);
        self.unanswered = Some(self.pings);
        self.frame(PING, SYN, 0, self.pings);
    }

    /// Whether the last ping is unanswered.
    pub fn is_ping_unanswered(&self) -> bool {
        self.unanswered.is_some()
    }

    /// Reads what has arrived.
    pub fn receive(&mut self, mut bytes: &[u8]) -> Result<(), SessionError> {
        while !bytes.is_empty() {
            if let Some(arriving) = &mut self.data {
                let length = bytes.len().min(arriving.left as usize);
                let (data, rest) = bytes.split_at(length);
                bytes = rest;
                arriving.left -= length as u32;
                if let Some(stream) = arriving.stream.and_then(|id| self.streams.get_mut(&id)) {
                    stream.incoming.extend_from_slice(data);
                }
                if arriving.left == 0 {
                    self.data = None;
                }
                continue;
            }
            let length = bytes.len().min(HEADER - self.header.len());
            let (head, rest) = bytes.split_at(length);
            bytes = rest;
            self.header.extend_from_slice(head);
            if let Some((&[version, kind, f1, f2], words)) = self.header.split_first_chunk::<4>()
                && let Some((&id, length)) = words.split_first_chunk::<4>()
                && let Some((&length, _)) = length.split_first_chunk::<4>()
            {
                self.header.clear();
                if version != 0 {
                    return Err(SessionError::Malformed("a frame of another version"));
                }
                let flags = u16::from_be_bytes([f1, f2]);
                self.arrived(kind, flags, u32::from_be_bytes(id), u32::from_be_bytes(length))?;
            }
        }
        if self.control.len() > CONTROL_LIMIT { Err(SessionError::Flood) } else { Ok(()) }
    }

    fn arrived(&mut self, kind: u8, flags: u16, id: u32, length: u32) -> Result<(), SessionError> {
        match kind {
            PING if flags & SYN != 0 => {
                // Not past the limit even within one piece of input.
                if self.control.len() <= CONTROL_LIMIT {
                    self.frame(PING, ACK, 0, length);
                }
                Ok(())
            }
            PING => {
                self.unanswered = self.unanswered.filter(|waiting| *waiting != length);
                Ok(())
            }
            GO_AWAY => Err(SessionError::GoneAway(length)),
            DATA | WINDOW_UPDATE if flags & SYN != 0 => self.refuse(kind, id, length),
            DATA => self.data(flags, id, length),
            WINDOW_UPDATE => {
                let Some(stream) = self.streams.get_mut(&id) else { return self.stray(kind, id, length) };
                stream.credit = stream.credit.saturating_add(length);
                stream.is_ended |= flags & (FIN | RST) != 0;
                Ok(())
            }
            _ => Err(SessionError::Malformed("a frame of an unknown kind")),
        }
    }

    fn data(&mut self, flags: u16, id: u32, length: u32) -> Result<(), SessionError> {
        let Some(stream) = self.streams.get_mut(&id) else { return self.stray(DATA, id, length) };
        stream.window = stream.window.checked_sub(length).ok_or(SessionError::WindowExceeded(id))?;
        stream.is_ended |= flags & (FIN | RST) != 0;
        self.data = (length > 0).then_some(Arriving { stream: Some(id), left: length });
        Ok(())
    }

    /// The other end opens a stream: it is told no.
    fn refuse(&mut self, kind: u8, id: u32, length: u32) -> Result<(), SessionError> {
        if id == 0 || id % 2 == 1 {
            return Err(SessionError::Malformed("the plugin opens a stream with an id of ours"));
        }
        self.refused += 1;
        if self.refused > REFUSALS {
            return Err(SessionError::TooManyStreams);
        }
        self.frame(WINDOW_UPDATE, RST, id, 0);
        self.skip(kind, id, length)
    }

    /// A frame for a stream that we do not have. One that was refused may still get what was on its way.
    fn stray(&mut self, kind: u8, id: u32, length: u32) -> Result<(), SessionError> {
        if id == 0 || id % 2 == 1 || self.refused == 0 {
            return Err(SessionError::NoStream(id));
        }
        self.skip(kind, id, length)
    }

    fn skip(&mut self, kind: u8, id: u32, length: u32) -> Result<(), SessionError> {
        if kind == DATA {
            if length > WINDOW {
                return Err(SessionError::WindowExceeded(id));
            }
            self.data = (length > 0).then_some(Arriving { stream: None, left: length });
        }
        Ok(())
    }

    /// The next bytes to write, at most a frame of data; empty if there is nothing to send or no window to send it in.
    pub fn transmit(&mut self) -> Vec<u8> {
        let mut out = std::mem::take(&mut self.control);
        let after = self.streams.range(self.last.saturating_add(1)..).chain(self.streams.range(..=self.last));
        let mut ready = after.filter(|(_, stream)| stream.credit > 0 && !stream.outgoing.is_empty());
        let Some(id) = ready.next().map(|(id, _)| *id) else { return out };
        let Some(stream) = self.streams.get_mut(&id) else { return out };
        let length = stream.outgoing.len().min(FRAME).min(stream.credit as usize);
        stream.credit -= length as u32;
        put_header(&mut out, DATA, 0, id, length as u32);
        out.extend(stream.outgoing.drain(..length));
        self.last = id;
        out
    }

    fn frame(&mut self, kind: u8, flags: u16, id: u32, length: u32) {
        put_header(&mut self.control, kind, flags, id, length);
    }
}

fn put_header(out: &mut Vec<u8>, kind: u8, flags: u16, id: u32, length: u32) {
    out.extend([0, kind]);
    out.extend(flags.to_be_bytes());
    out.extend(id.to_be_bytes());
    out.extend(length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u16, id: u32, length: u32, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        put_header(&mut out, kind, flags, id, length);
        out.extend_from_slice(data);
        out
    }

    /// What a connection with one stream answers to frames, wherever they are cut.
    #[track_caller]
    fn check(frames: &[Vec<u8>], wanted: Result<Vec<u8>, SessionError>) {
        let input = frames.concat();
        for piece in [1, 5, 12, 4096] {
            let mut session = Session::new();
            session.open();
            session.transmit();
            let outcome = input.chunks(piece).try_for_each(|bytes| session.receive(bytes));
            assert_eq!(outcome.map(|()| session.transmit()), wanted, "in pieces of {piece}");
        }
    }

    #[test]
    fn a_ping_is_answered_with_its_number() {
        check(&[frame(PING, SYN, 0, 0xdead, &[])], Ok(frame(PING, ACK, 0, 0xdead, &[])));
    }

    #[test]
    fn streams_of_the_plugin_are_refused_and_what_they_send_is_skipped() {
        let answer = frame(WINDOW_UPDATE, RST, 2, 0, &[]);
        check(&[frame(WINDOW_UPDATE, SYN, 2, 0, &[]), frame(DATA, 0, 2, 3, b"abc")], Ok(answer.clone()));
        check(&[frame(DATA, SYN, 2, 3, b"abc"), frame(WINDOW_UPDATE, FIN, 2, 0, &[])], Ok(answer));
        let many: Vec<_> = (1..=17).map(|id| frame(WINDOW_UPDATE, SYN, id * 2, 0, &[])).collect();
        check(&many, Err(SessionError::TooManyStreams));
    }

    #[test]
    fn what_breaks_the_protocol_ends_the_connection() {
        check(&[vec![1; 12]], Err(SessionError::Malformed("a frame of another version")));
        check(&[frame(9, 0, 1, 0, &[])], Err(SessionError::Malformed("a frame of an unknown kind")));
        check(&[frame(DATA, 0, 1, WINDOW + 1, &[])], Err(SessionError::WindowExceeded(1)));
        check(&[frame(DATA, 0, 1, u32::MAX, &[])], Err(SessionError::WindowExceeded(1)));
        check(&[frame(DATA, SYN, 2, u32::MAX, &[])], Err(SessionError::WindowExceeded(2)));
        check(&[frame(DATA, 0, 7, 1, b"a")], Err(SessionError::NoStream(7)));
        check(&[frame(WINDOW_UPDATE, 0, 2, 1, &[])], Err(SessionError::NoStream(2)));
        check(&[frame(GO_AWAY, 0, 0, 2, &[])], Err(SessionError::GoneAway(2)));
        check(
            &[frame(WINDOW_UPDATE, SYN, 3, 0, &[])],
            Err(SessionError::Malformed("the plugin opens a stream with an id of ours")),
        );
        check(&vec![frame(PING, SYN, 0, 1, &[]); CONTROL_LIMIT / HEADER + 2], Err(SessionError::Flood));
    }

    #[test]
    fn a_sender_stops_at_its_window_and_goes_on_when_it_is_given_back() {
        let mut session = Session::new();
        let id = session.open();
        session.transmit();
        session.send(id, &vec![7; WINDOW as usize + 10]);
        let sent = |session: &mut Session| {
            std::iter::from_fn(|| Some(session.transmit()).filter(|out| !out.is_empty()))
                .map(|out| out.len() - HEADER)
                .sum::<usize>()
        };
        assert_eq!(sent(&mut session), WINDOW as usize);
        assert_eq!(session.receive(&frame(WINDOW_UPDATE, 0, id, 4, &[])), Ok(()));
        assert_eq!(sent(&mut session), 4);
    }

    #[test]
    fn the_window_is_given_back_once_half_of_it_was_taken() {
        let mut session = Session::new();
        let id = session.open();
        session.transmit();
        let half = WINDOW / 2;
        assert_eq!(session.receive(&frame(DATA, 0, id, half, &vec![1; half as usize])), Ok(()));
        assert_eq!((session.take(id, 10).len(), session.transmit()), (10, Vec::new()));
        assert_eq!(session.take(id, usize::MAX).len(), half as usize - 10);
        assert_eq!(session.transmit(), frame(WINDOW_UPDATE, 0, id, half, &[]));
    }

    #[test]
    fn streams_take_turns() {
        let mut session = Session::new();
        let (first, second) = (session.open(), session.open());
        session.transmit();
        session.send(first, &vec![1; 3 * FRAME]);
        session.send(second, b"now");
        let ids: Vec<_> = (0..4).map(|_| session.transmit().get(7).copied()).collect();
        assert_eq!(ids, [Some(1), Some(3), Some(1), Some(1)]);
    }
}
