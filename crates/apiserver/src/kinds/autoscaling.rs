//! Kinds of `autoscaling`.

use super::kind_def::KindDef;

mod horizontal_pod_autoscaler;
pub(crate) mod scale;

/// The rows of the group, in the order of discovery.
pub(super) const KINDS: &[&KindDef] = &[&horizontal_pod_autoscaler::V2, &horizontal_pod_autoscaler::V1];
