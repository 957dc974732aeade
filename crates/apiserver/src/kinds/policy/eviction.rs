//! Evictions, sent to `eviction` of Pods.

use crate::kinds::kind_def::KindDef;

pub(crate) static DEF: KindDef = KindDef {
    plural: "evictions",
    ..KindDef::of::<k8s_openapi::api::policy::v1::Eviction>()
};
