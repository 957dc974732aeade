//! Kinds of `policy`.

use super::kind_def::KindDef;

pub(crate) mod eviction;
pub(crate) mod pod_disruption_budget;

/// The rows of the group, in the order of discovery.
pub(super) const KINDS: &[&KindDef] = &[&pod_disruption_budget::DEF];
