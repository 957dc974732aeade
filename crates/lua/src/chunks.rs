//! The names of chunks of Lua in the virtual machine.

/// The name of scripts in the virtual machine: a position is `script:12:`. A script's author cannot choose it.
pub(crate) const CHUNK: &str = "script";

/// The name of the part of this crate that is written in Lua.
pub(crate) const PRELUDE: &str = "prelude";
