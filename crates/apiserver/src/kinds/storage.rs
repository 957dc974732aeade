//! Kinds of `storage.k8s.io`.

use super::kind_def::KindDef;

pub(in crate::kinds) mod csi_driver;
mod csi_node;
mod csi_storage_capacity;
pub(in crate::kinds) mod storage_class;
mod volume_attachment;
mod volume_attributes_class;

/// The rows of the group, in the order of discovery.
pub(super) const KINDS: &[&KindDef] = &[
    &csi_driver::DEF,
    &csi_node::DEF,
    &csi_storage_capacity::DEF,
    &storage_class::DEF,
    &volume_attachment::DEF,
    &volume_attributes_class::DEF,
];
