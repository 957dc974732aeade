//! ClusterRoles.

use serde_json::Value;

use super::{rules, rules_always};
use crate::{
    kinds::kind_def::KindDef,
    names,
    object::{
        Object,
        tree::{Errors, below, items, list},
    },
};

/// ClusterRole. Aggregation is a controller's work.
pub(super) static DEF: KindDef = KindDef {
    defaults: rules_always,
    errors: |role, errors| {
        rules(role, false, errors);
        aggregation(role, errors);
    },
    ..super::base::<k8s_openapi::api::rbac::v1::ClusterRole>()
};

fn aggregation(role: &Object, errors: &mut Errors) {
    if !role.get("aggregationRule").is_some_and(Value::is_object) {
        return;
    }
    let rule = below(role, "aggregationRule");
    if list(rule, "clusterRoleSelectors").is_empty() {
        errors.required(
            "aggregationRule.clusterRoleSelectors",
            "at least one clusterRoleSelector required if aggregationRule is non-nil",
        );
    }
    for (path, selector) in items(rule, "clusterRoleSelectors", "aggregationRule") {
        errors.extend(names::label_selector(selector, &path));
    }
}
