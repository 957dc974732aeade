//! Kinds of `authentication.k8s.io`.

use super::kind_def::KindDef;

mod self_subject_review;
pub(crate) mod token_request;
mod token_review;

/// The rows of the group, in the order of discovery.
pub(super) const KINDS: &[&KindDef] = &[&self_subject_review::DEF, &token_review::DEF];
