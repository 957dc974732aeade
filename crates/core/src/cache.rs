//! The cache: facts as observed, nothing derived and nothing decided.

mod revisions;
mod watches;

pub(crate) use revisions::{AGE, MOST, Revisions};
pub(crate) use watches::WatchTable;
