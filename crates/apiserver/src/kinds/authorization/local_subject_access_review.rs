//! LocalSubjectAccessReviews: answered, never stored.

use k8s_openapi::api::authorization::v1::LocalSubjectAccessReview;

use crate::kinds::kind_def::KindDef;

/// LocalSubjectAccessReview.
pub(super) static DEF: KindDef = KindDef {
    verbs: &["create"],
    ..KindDef::of::<LocalSubjectAccessReview>()
};
