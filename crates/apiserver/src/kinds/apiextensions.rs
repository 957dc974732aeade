//! Kinds of `apiextensions.k8s.io`.

use super::kind_def::KindDef;

mod custom_resource_definition;

/// The rows of the group, in the order of discovery.
pub(super) const KINDS: &[&KindDef] = &[&custom_resource_definition::DEF];
