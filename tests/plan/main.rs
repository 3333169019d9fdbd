//! What `tidegate plan` prints for the changes in `cases/`: each beside its `.txt`, `.md` and `.json`.
//!
//! A case is a text: `=== old deploy/web.yaml` begins a file of the old side, `=== new …` one of the new side, `=== both …` one
//! of both. `=== past …` is applied to a cluster first and rolled out; `!pass 30s` and `!abort` say what happens to it before the
//! state is recorded. `TIDEGATE_BLESS=1 cargo test --test plan` writes the outputs anew; look at the difference.
#![allow(missing_docs, clippy::unwrap_used)]

mod cases;
mod hostile;
mod large;
mod review;
mod truth;
