//! Kinds of `authorization.k8s.io`.

use super::kind_def::KindDef;

mod local_subject_access_review;
mod self_subject_access_review;
mod self_subject_rules_review;
mod subject_access_review;

/// The rows of the group, in the order of discovery.
pub(super) const KINDS: &[&KindDef] = &[
    &local_subject_access_review::DEF,
    &self_subject_access_review::DEF,
    &self_subject_rules_review::DEF,
    &subject_access_review::DEF,
];
