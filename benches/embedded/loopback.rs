//! Writes over loopback HTTP, ours and the real server's.

use crate::Row;

/// The rows of this part.
pub fn rows() -> Vec<Row> {
    Vec::new()
}
