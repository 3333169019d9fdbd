//! The commands, one file each. The only place where errors become messages and exit codes.

pub mod kubeconfig;
