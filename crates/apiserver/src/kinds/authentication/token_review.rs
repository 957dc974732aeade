//! TokenReviews: answered, never stored.

use k8s_openapi::api::authentication::v1::TokenReview;

use crate::kinds::kind_def::KindDef;

/// TokenReview.
pub(super) static DEF: KindDef = KindDef {
    verbs: &["create"],
    ..KindDef::of::<TokenReview>()
};
