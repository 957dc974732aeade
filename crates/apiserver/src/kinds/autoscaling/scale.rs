//! Scales, sent to `scale` of what has replicas.

use crate::kinds::kind_def::KindDef;

pub(crate) static DEF: KindDef = KindDef {
    plural: "scales",
    ..KindDef::of::<k8s_openapi::api::autoscaling::v1::Scale>()
};
