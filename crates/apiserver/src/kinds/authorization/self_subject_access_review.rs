//! SelfSubjectAccessReviews: answered, never stored.

use crate::kinds::kind_def::KindDef;

pub(super) static DEF: KindDef = KindDef {
    verbs: &["create"],
    ..KindDef::of::<k8s_openapi::api::authorization::v1::SelfSubjectAccessReview>()
};
