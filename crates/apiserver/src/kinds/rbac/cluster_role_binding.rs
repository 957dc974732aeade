//! ClusterRoleBindings.

use super::{PRINTER, binding, binding_defaults, same_role};
use crate::kinds::kind_def::KindDef;

pub(super) static DEF: KindDef = KindDef {
    defaults: binding_defaults,
    errors: |role, errors| binding(role, &["ClusterRole"], errors),
    changes: Some(|new, old, errors| {
        binding(new, &["ClusterRole"], errors);
        same_role(new, old, errors);
    }),
    printer: PRINTER,
    ..super::base::<k8s_openapi::api::rbac::v1::ClusterRoleBinding>()
};
