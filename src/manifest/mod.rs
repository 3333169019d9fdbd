//! Bytes of files to objects that know where each of their nodes was written.
//!
//! Reads YAML as kubectl does. Never touches a file itself: who calls hands it the bytes and a name for them.
