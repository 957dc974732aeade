//! SelfSubjectRulesReviews: answered, never stored.

use k8s_openapi::api::authorization::v1::SelfSubjectRulesReview;

use crate::kinds::kind_def::KindDef;

/// SelfSubjectRulesReview.
pub(super) static DEF: KindDef = KindDef {
    verbs: &["create"],
    ..KindDef::of::<SelfSubjectRulesReview>()
};
