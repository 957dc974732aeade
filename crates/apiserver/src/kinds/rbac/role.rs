//! Roles.

use super::{rules, rules_always};
use crate::kinds::kind_def::KindDef;

pub(super) static DEF: KindDef = KindDef {
    defaults: rules_always,
    errors: |role, errors| rules(role, true, errors),
    ..super::base::<k8s_openapi::api::rbac::v1::Role>()
};
