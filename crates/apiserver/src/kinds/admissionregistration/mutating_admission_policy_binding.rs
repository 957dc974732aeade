//! MutatingAdmissionPolicyBindings.

use super::{BINDING, binding_defaults};
use crate::{kinds::kind_def::KindDef, object::tree::below};

pub(super) static DEF: KindDef = KindDef {
    categories: &["api-extensions"],
    has_generation: true,
    defaults: binding_defaults,
    errors: |binding, errors| super::binding(below(binding, "spec"), errors),
    printer: BINDING,
    ..KindDef::of::<k8s_openapi::api::admissionregistration::v1::MutatingAdmissionPolicyBinding>()
};
