//! A cluster as bytes: one checksummed line per change, appended as it happens.
//!
//! ```text
//! tidegate cluster data, format 1
//! 9ae0daaf {"at":["apps","replicasets","default","web"],"object":{…},"version":17}
//! 1c291ca3 {"at":["","pods","default","web-x"],"version":18}
//! ```
//! A line without an object says that it was deleted. A file that ends in the middle of a line was cut off by a crash:
//! what is whole counts, the rest is reported. A broken line with whole ones after it is damage, and refused. This
//! module knows bytes only; the file is somebody else's.

use std::{collections::BTreeMap, fmt, sync::Arc};

use flate2::Crc;
use serde::{Deserialize, Serialize};

use crate::kubernetes::{
    apply::Managers,
    object::Object,
    value::{Text, Value},
};

/// The first line of every journal.
pub const HEADER: &str = "tidegate cluster data, format 1\n";

/// Which object a record is about: group and plural of its storage kind, namespace, name.
pub type Place = (Text, Text, Text, Text);

/// One change: what became of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The object it is about.
    pub place: Place,
    /// The version the change made.
    pub version: u64,
    /// The object after it; `None` if it was deleted.
    pub object: Option<Arc<Object>>,
}

#[derive(Serialize)]
struct Line<'a> {
    at: &'a Place,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'a Object>,
    version: u64,
}

#[derive(Deserialize)]
struct Parsed {
    at: Place,
    #[serde(default)]
    object: Option<Value>,
    version: u64,
}

/// Appends a record's line to `out`.
pub fn encode(place: &Place, version: u64, object: Option<&Object>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(b"00000000 ");
    // Writing JSON to memory cannot fail: every key is a string.
    let _ = serde_json::to_writer(&mut *out, &Line { at: place, object, version });
    let sum = checksum(&out[start + 9..]);
    out[start..start + 8].copy_from_slice(sum.as_bytes());
    out.push(b'\n');
}

fn checksum(bytes: &[u8]) -> String {
    let mut crc = Crc::new();
    crc.update(bytes);
    format!("{:08x}", crc.sum())
}

/// What a journal says.
#[derive(Debug, Default)]
pub struct Journal {
    /// The objects that exist at its end.
    pub objects: BTreeMap<Place, Arc<Object>>,
    /// The version of the last change.
    pub version: u64,
    /// How many bytes of it are whole: where the next record goes.
    pub end: usize,
    /// How many bytes after that were cut off by a crash.
    pub torn: usize,
    /// How many records there were.
    pub records: usize,
}

/// Why bytes are no journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// They do not begin with [`HEADER`]: somebody else's file.
    Foreign,
    /// A record is broken, and whole ones follow.
    Damaged {
        /// Where the broken record begins.
        offset: usize,
        /// On which line.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Foreign => f.write_str("it is not a data file of this program"),
            Problem::Damaged { offset, line, why } => {
                write!(f, "it is damaged at line {line} (byte {offset}): {why}")
            }
        }
    }
}

/// Reads a journal. No bytes at all are a new one.
pub fn decode(bytes: &[u8]) -> Result<Journal, Problem> {
    let mut journal = Journal::default();
    if !bytes.starts_with(HEADER.as_bytes()) {
        // A crash may have cut off the very first write.
        if HEADER.as_bytes().starts_with(bytes) {
            journal.torn = bytes.len();
            return Ok(journal);
        }
        return Err(Problem::Foreign);
    }
    journal.end = HEADER.len();
    let mut number = 1;
    while journal.end < bytes.len() {
        number += 1;
        let rest = &bytes[journal.end..];
        let length = rest.iter().position(|byte| *byte == b'\n');
        let record = length.map_or(Err("it has no end".into()), |length| decode_line(&rest[..length]));
        match (record, length) {
            (Ok(record), Some(length)) => {
                journal.end += length + 1;
                journal.take(record);
            }
            (Err(why), length) => {
                let after = length.map_or(&[][..], |length| &rest[length + 1..]);
                if after.split(|byte| *byte == b'\n').any(|line| decode_line(line).is_ok()) {
                    return Err(Problem::Damaged { offset: journal.end, line: number, why });
                }
                journal.torn = rest.len();
                break;
            }
            (Ok(_), None) => break,
        }
    }
    Ok(journal)
}

impl Journal {
    fn take(&mut self, record: Record) {
        self.records += 1;
        self.version = self.version.max(record.version);
        match record.object {
            Some(object) => drop(self.objects.insert(record.place, object)),
            None => drop(self.objects.remove(&record.place)),
        }
    }
}

fn decode_line(line: &[u8]) -> Result<Record, String> {
    let (Some(sum), Some(b' '), Some(json)) = (line.get(..8), line.get(8), line.get(9..)) else {
        return Err("it is too short".into());
    };
    if sum != checksum(json).as_bytes() {
        return Err("its checksum does not match".into());
    }
    let parsed: Parsed = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    let object = parsed.object.map(object).transpose()?;
    Ok(Record { place: parsed.at, version: parsed.version, object: object.map(Arc::new) })
}

/// An object as on the wire, with its managedFields decoded.
pub fn object(mut value: Value) -> Result<Object, String> {
    let managers = match value.remove_at(&["metadata", "managedFields"]) {
        Some(wire) => Managers::parse(&wire)?,
        None => Managers::default(),
    };
    Ok(Object { value, managers: Arc::new(managers) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    fn place(name: &str) -> Place {
        ("".into(), "configmaps".into(), "default".into(), name.into())
    }

    fn config(name: &str, data: &str) -> Arc<Object> {
        let value = value!({"kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": data}});
        Arc::new(Object { value, managers: Arc::default() })
    }

    fn written(records: &[(&str, u64, Option<&str>)]) -> Vec<u8> {
        let mut bytes = HEADER.as_bytes().to_vec();
        for (name, version, data) in records {
            let object = data.map(|data| config(name, data));
            encode(&place(name), *version, object.as_deref(), &mut bytes);
        }
        bytes
    }

    #[test]
    fn the_last_record_of_an_object_counts() {
        let bytes = written(&[("a", 1, Some("x")), ("b", 2, Some("y")), ("a", 3, Some("z\nz")), ("b", 4, None)]);
        let journal = decode(&bytes).unwrap();
        assert_eq!(journal.objects, BTreeMap::from([(place("a"), config("a", "z\nz"))]));
        assert_eq!((journal.version, journal.end, journal.torn, journal.records), (4, bytes.len(), 0, 4));
    }

    #[test]
    fn a_journal_cut_anywhere_keeps_what_is_whole() {
        let whole = written(&[("a", 1, Some("x"))]);
        let bytes = written(&[("a", 1, Some("x")), ("b", 2, Some("y"))]);
        for cut in whole.len()..bytes.len() {
            let journal = decode(&bytes[..cut]).unwrap();
            assert_eq!((journal.version, journal.end, journal.torn), (1, whole.len(), cut - whole.len()), "{cut}");
        }
        for cut in 0..HEADER.len() {
            let journal = decode(&bytes[..cut]).unwrap();
            assert_eq!((journal.version, journal.end, journal.torn), (0, 0, cut), "{cut}");
        }
        let mut zeros = whole.clone();
        zeros.extend([0; 4096]);
        assert_eq!(decode(&zeros).unwrap().torn, 4096);
    }

    #[test]
    fn any_flipped_bit_in_the_middle_is_damage() {
        let bytes = written(&[("a", 1, Some("x")), ("b", 2, Some("y")), ("c", 3, None)]);
        let first = HEADER.len();
        let second = written(&[("a", 1, Some("x"))]).len();
        for at in first..second {
            let mut broken = bytes.clone();
            broken[at] ^= 0x10;
            let problem = decode(&broken).map(|journal| journal.records).unwrap_err();
            assert!(matches!(problem, Problem::Damaged { offset, line: 2, .. } if offset == first), "{at}: {problem}");
        }
    }

    #[test]
    fn a_strangers_file_is_refused() {
        for bytes in [&b"apiVersion: v1\n"[..], b"\0", b"tidegate cluster data, format 2\n"] {
            assert_eq!(decode(bytes).map(|journal| journal.records), Err(Problem::Foreign));
        }
    }
}
