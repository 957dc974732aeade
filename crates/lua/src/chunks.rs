//! The names under which pieces of Lua appear in the virtual machine.

/// What scripts are called inside the virtual machine: a place is `script:12:`. Their own names are not the script
/// author's to choose there.
pub(crate) const CHUNK: &str = "script";

/// What the part of it that is written in Lua is called there.
pub(crate) const PRELUDE: &str = "prelude";
