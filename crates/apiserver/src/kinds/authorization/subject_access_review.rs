//! SubjectAccessReviews: answered, never stored.

use k8s_openapi::api::authorization::v1::SubjectAccessReview;

use crate::kinds::kind_def::KindDef;

/// SubjectAccessReview.
pub(super) static DEF: KindDef = KindDef {
    verbs: &["create"],
    ..KindDef::of::<SubjectAccessReview>()
};
