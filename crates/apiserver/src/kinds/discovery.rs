//! Kinds of `discovery.k8s.io`.

use super::kind_def::KindDef;

mod endpoint_slice;

/// The rows of the group, in the order of discovery.
pub(super) const KINDS: &[&KindDef] = &[&endpoint_slice::DEF];
