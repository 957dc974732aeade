//! Kinds of `events.k8s.io`.

use super::kind_def::KindDef;

mod event;

/// The rows of the group, in the order of discovery.
pub(super) const KINDS: &[&KindDef] = &[&event::DEF];
