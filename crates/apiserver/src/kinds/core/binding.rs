//! Bindings of Pods to Nodes: taken, never stored.

use k8s_openapi::api::core::v1::Binding;

use crate::kinds::kind_def::KindDef;

/// Binding.
pub(super) static DEF: KindDef = KindDef {
    verbs: &["create"],
    ..KindDef::of::<Binding>()
};
