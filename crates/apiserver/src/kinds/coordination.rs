//! Kinds of `coordination.k8s.io`.

use super::kind_def::KindDef;

mod lease;

/// The rows of the group, in the order of discovery.
pub(super) const KINDS: &[&KindDef] = &[&lease::DEF];
