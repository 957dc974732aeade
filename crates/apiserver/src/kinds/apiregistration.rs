//! Kinds of `apiregistration.k8s.io`, which a cluster serves if its options say so.

use super::kind_def::KindDef;

mod api_service;

/// The rows of the group, in the order of discovery.
pub(super) const KINDS: &[&KindDef] = &[&api_service::DEF];
