//! Kinds of `certificates.k8s.io`.

use super::kind_def::KindDef;

mod certificate_signing_request;

/// The rows of the group, in the order of discovery.
pub(super) const KINDS: &[&KindDef] = &[&certificate_signing_request::DEF];
