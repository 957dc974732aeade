//! SelfSubjectReviews: answered, never stored.

use k8s_openapi::api::authentication::v1::SelfSubjectReview;

use crate::kinds::kind_def::KindDef;

/// SelfSubjectReview.
pub(super) static DEF: KindDef = KindDef {
    verbs: &["create"],
    ..KindDef::of::<SelfSubjectReview>()
};
