//! What a repository and its host may cost.

use std::time::Duration;

/// What a fetch may cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchLimits {
    /// Wall time for all of it.
    pub time: Duration,
    /// Wall time without a byte.
    pub silence: Duration,
    /// Refs that a host lists.
    pub references: usize,
    /// Bytes of all that a host lists.
    pub listing_bytes: usize,
    /// Ends of a shallow history that a host names in one answer.
    pub shallow: usize,
    /// Bytes of a pack.
    pub pack_bytes: u64,
    /// Objects in a pack.
    pub objects: u32,
    /// Bytes of one object, unpacked. Where a difference is applied three of them are in memory at once.
    pub object_bytes: u64,
    /// Bytes of all objects, unpacked.
    pub unpacked_bytes: u64,
    /// Differences upon differences.
    pub delta_depth: u32,
    /// Commits of history behind a tip that is fetched for the first time.
    pub depth: u32,
    /// Packs in a store before they are made one.
    pub packs: usize,
}

impl Default for FetchLimits {
    fn default() -> FetchLimits {
        FetchLimits {
            time: Duration::from_secs(300),
            silence: Duration::from_secs(30),
            references: 100_000,
            listing_bytes: 16 << 20,
            shallow: 1_000,
            pack_bytes: 1 << 30,
            objects: 2_000_000,
            object_bytes: 48 << 20,
            unpacked_bytes: 4 << 30,
            // Git itself packs chains of at most 4095, and of 50 unless told otherwise.
            delta_depth: 4095,
            depth: 50,
            packs: 50,
        }
    }
}

/// What reading the files of a commit may cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadLimits {
    /// Entries of trees that are looked at.
    pub entries: usize,
    /// Folders within folders.
    pub depth: usize,
    /// Bytes of a path.
    pub path_bytes: usize,
    /// Files that are read.
    pub files: usize,
    /// Bytes of one file.
    pub file_bytes: usize,
    /// Bytes of all files.
    pub bytes: usize,
}

impl Default for ReadLimits {
    fn default() -> ReadLimits {
        ReadLimits {
            entries: 200_000,
            depth: 64,
            path_bytes: 1024,
            files: 20_000,
            file_bytes: 8 << 20,
            bytes: 128 << 20,
        }
    }
}
