//! Kinds of `resource.k8s.io`. They are stored: no device is allocated.

use super::kind_def::KindDef;

mod device_class;
mod resource_claim;
mod resource_claim_template;
mod resource_slice;

/// The rows of the group, in the order of discovery.
pub(super) const KINDS: &[&KindDef] = &[
    &device_class::DEF,
    &resource_claim::DEF,
    &resource_claim_template::DEF,
    &resource_slice::DEF,
];
