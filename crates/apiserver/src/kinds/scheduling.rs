//! Kinds of `scheduling.k8s.io`.

use super::kind_def::KindDef;

mod priority_class;

/// The rows of the group, in the order of discovery.
pub(super) const KINDS: &[&KindDef] = &[&priority_class::DEF];
