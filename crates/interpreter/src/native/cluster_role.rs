//! ClusterRole.

use serde_json::Value;

use super::{NativeGvk, NativeKind, Operation, Resource};
use crate::json::{at, items as list, remove, set};

/// rbac.authorization.k8s.io/v1 ClusterRole.
///
/// Retained: the rules of one that aggregates others; its controller on the member collects them from that member's
/// roles, and a PUT of the template's rules would contend with it without end.
pub(super) struct ClusterRole;

impl NativeKind for ClusterRole {
    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "rbac.authorization.k8s.io",
            version: "v1",
            kind: "ClusterRole",
        }
    }

    fn summary(&self) -> &'static str {
        "access: rights in the whole cluster"
    }

    fn resource(&self) -> Option<Resource> {
        Some(Resource::cluster_scoped("clusterroles"))
    }

    fn operations(&self) -> &'static [Operation] {
        &[Operation::Retain]
    }

    fn needs_live(&self, _desired: &Value) -> bool {
        true
    }

    fn retain(&self, desired: &mut Value, live: &Value) {
        if list(desired, &["aggregationRule", "clusterRoleSelectors"]).is_empty() {
            return;
        }
        let rules = at(live, &["rules"]);
        if rules.is_null() {
            remove(desired, &["rules"]);
        } else {
            set(desired, &["rules"], rules.clone());
        }
    }
}
