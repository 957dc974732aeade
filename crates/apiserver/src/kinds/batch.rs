//! Kinds of `batch`.

use super::kind_def::KindDef;

mod cron_job;
mod job;
pub(crate) mod schedule;

/// The rows of the group, in the order of discovery.
pub(super) const KINDS: &[&KindDef] = &[&cron_job::DEF, &job::DEF];
