//! Scales, sent to `scale` of what has replicas.

use k8s_openapi::api::autoscaling::v1::Scale;

use crate::kinds::kind_def::KindDef;

/// Scale.
pub(crate) static DEF: KindDef = KindDef {
    plural: "scales",
    ..KindDef::of::<Scale>()
};
