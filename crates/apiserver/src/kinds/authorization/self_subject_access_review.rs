//! SelfSubjectAccessReviews: answered, never stored.

use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;

use crate::kinds::kind_def::KindDef;

/// SelfSubjectAccessReview.
pub(super) static DEF: KindDef = KindDef {
    verbs: &["create"],
    ..KindDef::of::<SelfSubjectAccessReview>()
};
