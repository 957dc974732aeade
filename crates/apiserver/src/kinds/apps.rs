//! Kinds of `apps`.

use super::kind_def::KindDef;

mod controller_revision;
mod daemon_set;
mod deployment;
pub(super) mod replica_set;
mod stateful_set;

/// The rows of the group, in the order of discovery.
pub(super) const KINDS: &[&KindDef] = &[
    &controller_revision::DEF,
    &daemon_set::DEF,
    &deployment::DEF,
    &replica_set::DEF,
    &stateful_set::DEF,
];
