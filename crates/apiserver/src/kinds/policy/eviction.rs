//! Evictions, sent to `eviction` of Pods.

use k8s_openapi::api::policy::v1::Eviction;

use crate::kinds::kind_def::KindDef;

/// Eviction.
pub(crate) static DEF: KindDef = KindDef {
    plural: "evictions",
    ..KindDef::of::<Eviction>()
};
