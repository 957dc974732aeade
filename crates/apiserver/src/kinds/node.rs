//! Kinds of `node.k8s.io`.

use super::kind_def::KindDef;

mod runtime_class;

/// The rows of the group, in the order of discovery.
pub(super) const KINDS: &[&KindDef] = &[&runtime_class::DEF];
