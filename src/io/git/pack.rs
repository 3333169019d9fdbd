//! What a pack would cost, before it is unpacked.
//!
//! Every object's size, as it says itself and as it really is, is looked at in one pass, with nothing kept but where
//! objects begin: libgit2 makes room for whatever size a difference promises. Never writes, never needs the objects.

use std::io::{self, BufRead, Read};

use flate2::bufread::ZlibDecoder;

use super::limits::FetchLimits;

/// Why a pack is not taken.
#[derive(Debug, PartialEq, Eq)]
pub enum Objection {
    /// It is more than allowed: what, and what is allowed.
    Limit(String, String),
    /// It is no pack.
    Malformed(String),
}

impl From<io::Error> for Objection {
    fn from(error: io::Error) -> Objection {
        Objection::Malformed(match error.kind() {
            io::ErrorKind::UnexpectedEof => "a pack that ends too soon".to_owned(),
            _ => format!("a pack that cannot be read: {error}"),
        })
    }
}

/// Looks at every object of a pack. Answers with the size of the largest.
pub fn check(pack: impl BufRead, limits: &FetchLimits) -> Result<u64, Objection> {
    let mut pack = Counting { inner: pack, at: 0 };
    let mut header = [0; 12];
    pack.read_exact(&mut header)?;
    let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    if &header[..4] != b"PACK" || !matches!(number(4), 2 | 3) {
        return Err(Objection::Malformed("something else than a pack".to_owned()));
    }
    let objects = number(8);
    if objects > limits.objects {
        return Err(over("the number of objects", limits.objects.to_string()));
    }
    // Where each object begins, in order, and how many differences it stands upon.
    let mut depths: Vec<(u64, u32)> = Vec::new();
    let (mut unpacked, mut largest): (u64, u64) = (0, 0);
    for _ in 0..objects {
        let begin = pack.at;
        let (kind, size) = head(&mut pack)?;
        let depth = match kind {
            1..=4 => 0,
            6 => {
                let back = offset(&mut pack)?;
                let base = begin.checked_sub(back).filter(|_| back > 0);
                let base = base.and_then(|base| depths.binary_search_by_key(&base, |(at, _)| *at).ok());
                let base = base.ok_or_else(|| Objection::Malformed("a difference to nothing".to_owned()))?;
                depths[base].1 + 1
            }
            7 => {
                pack.read_exact(&mut [0; 20])?;
                1
            }
            _ => return Err(Objection::Malformed(format!("an object of the kind {kind}"))),
        };
        if depth > limits.delta_depth {
            return Err(over("the chain of differences", limits.delta_depth.to_string()));
        }
        let result = inflate(&mut pack, size, depth > 0, limits)?;
        unpacked = unpacked.saturating_add(result);
        largest = largest.max(result);
        if unpacked > limits.unpacked_bytes {
            return Err(over("the unpacked size", format!("{} MiB", limits.unpacked_bytes >> 20)));
        }
        depths.push((begin, depth));
    }
    Ok(largest)
}

fn over(what: &str, allowed: String) -> Objection {
    Objection::Limit(format!("{what} of a pack"), allowed)
}

/// The kind and size of an object.
fn head(pack: &mut impl Read) -> Result<(u8, u64), Objection> {
    let mut byte = byte_of(pack)?;
    let kind = (byte >> 4) & 7;
    let mut size = u64::from(byte & 15);
    let mut shift = 4;
    while byte & 0x80 != 0 {
        byte = byte_of(pack)?;
        size |= bits(byte, shift)?;
        shift += 7;
    }
    Ok((kind, size))
}

fn bits(byte: u8, shift: u32) -> Result<u64, Objection> {
    if shift > 56 {
        return Err(Objection::Malformed("a size beyond all bounds".to_owned()));
    }
    Ok(u64::from(byte & 0x7f) << shift)
}

fn byte_of(pack: &mut impl Read) -> Result<u8, Objection> {
    let mut byte = [0];
    pack.read_exact(&mut byte)?;
    Ok(byte[0])
}

/// How far back a base lies.
fn offset(pack: &mut impl Read) -> Result<u64, Objection> {
    let mut byte = byte_of(pack)?;
    let mut back = u64::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = byte_of(pack)?;
        if back > u64::MAX >> 9 {
            return Err(Objection::Malformed("an offset beyond all bounds".to_owned()));
        }
        back = ((back + 1) << 7) | u64::from(byte & 0x7f);
    }
    Ok(back)
}

/// Reads an object's bytes and forgets them; answers with the size of what they stand for.
fn inflate(pack: &mut impl BufRead, size: u64, delta: bool, limits: &FetchLimits) -> Result<u64, Objection> {
    let allowed = || over("the size of an object", format!("{} MiB", limits.object_bytes >> 20));
    if size > limits.object_bytes {
        return Err(allowed());
    }
    let mut stream = ZlibDecoder::new(pack);
    let mut start = Vec::new();
    if delta {
        stream.by_ref().take(20).read_to_end(&mut start)?;
    }
    let rest = io::copy(&mut stream.by_ref().take(size + 1), &mut io::sink())?;
    if start.len() as u64 + rest != size {
        return Err(Objection::Malformed("an object of another size than it says".to_owned()));
    }
    if !delta {
        return Ok(size);
    }
    let mut start = start.as_slice();
    let (_, result) = (varint(&mut start)?, varint(&mut start)?);
    if result > limits.object_bytes { Err(allowed()) } else { Ok(result) }
}

fn varint(bytes: &mut &[u8]) -> Result<u64, Objection> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = byte_of(bytes)?;
        value |= bits(byte, shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
}

/// A reader that knows how far it is.
struct Counting<R> {
    inner: R,
    at: u64,
}

impl<R: BufRead> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Counting<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.at += amount as u64;
        self.inner.consume(amount);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::ZlibEncoder};

    use super::*;

    enum Object {
        Blob(Vec<u8>),
        /// A difference to the object before: the size of the base, the size promised.
        Delta(u64, u64),
        /// An object that says another size than it has.
        Liar(u64, Vec<u8>),
    }

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut out = ZlibEncoder::new(Vec::new(), Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    fn size_head(kind: u8, mut size: u64) -> Vec<u8> {
        let mut out = vec![(kind << 4) | (size & 15) as u8];
        size >>= 4;
        while size > 0 {
            *out.last_mut().unwrap() |= 0x80;
            out.push((size & 0x7f) as u8);
            size >>= 7;
        }
        out
    }

    fn number(mut value: u64) -> Vec<u8> {
        let mut out = vec![(value & 0x7f) as u8];
        value >>= 7;
        while value > 0 {
            *out.last_mut().unwrap() |= 0x80;
            out.push((value & 0x7f) as u8);
            value >>= 7;
        }
        out
    }

    fn pack(objects: &[Object]) -> Vec<u8> {
        let mut out = b"PACK\0\0\0\x02".to_vec();
        out.extend((objects.len() as u32).to_be_bytes());
        let mut last = 0;
        for object in objects {
            let begin = out.len();
            match object {
                Object::Blob(bytes) => {
                    out.extend(size_head(3, bytes.len() as u64));
                    out.extend(zlib(bytes));
                }
                Object::Liar(size, bytes) => {
                    out.extend(size_head(3, *size));
                    out.extend(zlib(bytes));
                }
                Object::Delta(base, result) => {
                    let delta = [number(*base), number(*result), vec![0x90, 1]].concat();
                    out.extend(size_head(6, delta.len() as u64));
                    let back = begin - last;
                    assert!(back < 128);
                    out.push(back as u8);
                    out.extend(zlib(&delta));
                }
            }
            last = begin;
        }
        out.extend([0; 20]);
        out
    }

    fn small() -> FetchLimits {
        FetchLimits { objects: 4, object_bytes: 2 << 20, unpacked_bytes: 3 << 20, delta_depth: 2, ..Default::default() }
    }

    #[track_caller]
    fn check_pack(bytes: &[u8], expected: Result<(), &str>) {
        let found = check(bytes, &small()).map(drop).map_err(|objection| match objection {
            Objection::Limit(what, allowed) => format!("{what} > {allowed}"),
            Objection::Malformed(what) => what,
        });
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    /// SR6: counts, sizes and chains are bounded before anything is unpacked.
    #[test]
    fn a_pack_has_a_budget() {
        use Object::{Blob, Delta, Liar};
        let blob = || Blob(b"hello".to_vec());
        check_pack(&pack(&[]), Ok(()));
        check_pack(&pack(&[blob(), Delta(5, 1), Delta(1, 1), blob()]), Ok(()));
        check_pack(&pack(&[blob(), blob(), blob(), blob(), blob()]), Err("the number of objects of a pack > 4"));
        check_pack(&pack(&[Blob(vec![0; 3 << 20])]), Err("the size of an object of a pack > 2 MiB"));
        check_pack(&pack(&[blob(), Delta(5, 1 << 40)]), Err("the size of an object of a pack > 2 MiB"));
        let half = || Blob(vec![0; (2 << 20) - 1]);
        check_pack(&pack(&[half(), half()]), Err("the unpacked size of a pack > 3 MiB"));
        let chain = [blob(), Delta(5, 1), Delta(1, 1), Delta(1, 1)];
        check_pack(&pack(&chain), Err("the chain of differences of a pack > 2"));
        check_pack(&pack(&[Liar(3, vec![0; 9])]), Err("an object of another size than it says"));
        check_pack(&pack(&[Liar(99, vec![0; 9])]), Err("an object of another size than it says"));
        check_pack(&pack(&[Delta(5, 1)]), Err("a difference to nothing"));
        check_pack(b"PACK\0\0\0\x09\0\0\0\0", Err("something else than a pack"));
        check_pack(b"<html>", Err("a pack that ends too soon"));
    }

    #[test]
    fn no_prefix_of_a_pack_is_a_pack() {
        let whole = pack(&[Object::Blob(b"hello".to_vec()), Object::Delta(5, 1)]);
        for end in 0..whole.len() - 20 {
            assert!(check(&whole[..end], &small()).is_err(), "{end}");
        }
    }

    proptest::proptest! {
        /// SR6: whatever arrives, the answer is an answer.
        #[test]
        fn no_bytes_break_the_check(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400), at in 12..60usize) {
            let mut spoilt = pack(&[Object::Blob(b"hello".to_vec()), Object::Delta(5, 1), Object::Delta(1, 1)]);
            spoilt.splice(at.min(spoilt.len())..(at + bytes.len()).min(spoilt.len()), bytes.iter().copied());
            drop(check(spoilt.as_slice(), &small()));
            drop(check([b"PACK\0\0\0\x02\0\0\0\x04".as_slice(), &bytes].concat().as_slice(), &small()));
        }
    }
}
