//! Aggregated ClusterRoles: their rules are those of every ClusterRole that their `aggregationRule` selects.
//! Source: the cluster role aggregation controller of kube-controller-manager.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Context, Controller, Seen, objects::change};
use crate::{
    kinds::workloads::selects,
    object::{Object, metadata},
    resource::stored::decode,
};

const ROLES: &str = "rbac.authorization.k8s.io/clusterroles";

/// True if a ClusterRole changed since all of them were last read: they are few and change seldom.
#[derive(Default)]
pub(super) struct Roles {
    changed: bool,
}

impl Controller for Roles {
    fn reset(&mut self) {
        self.changed = true;
    }

    fn see(&mut self, seen: &Seen) {
        self.changed |= seen.place.collection == ROLES;
    }

    fn work(&mut self, cluster: &dyn Context) -> bool {
        if !std::mem::take(&mut self.changed) {
            return false;
        }
        let page = cluster.entries(ROLES);
        let roles: BTreeMap<&str, Object> = page
            .entries
            .iter()
            .map(|entry| (entry.key.as_str(), decode(&entry.object)))
            .collect();
        for (name, role) in &roles {
            if let Some(rules) = aggregated(name, role, &roles)
                && list(role.get("rules")) != rules
            {
                fill(cluster, name, &rules);
            }
        }
        true
    }
}

/// The rules that a role aggregates from others; `None` if it does not aggregate. If one of the others aggregates rules itself,
/// its current rules count: when they change, this is computed again.
fn aggregated(name: &str, role: &Object, roles: &BTreeMap<&str, Object>) -> Option<Vec<Value>> {
    let rule = role.get("aggregationRule").filter(|rule| rule.is_object())?;
    let none = Object::new();
    let mut rules = Vec::new();
    for selector in list(rule.get("clusterRoleSelectors")) {
        for (_, role) in roles.iter().filter(|(other, _)| **other != name) {
            let labels = metadata(role).get("labels").and_then(Value::as_object);
            if selects(selector.as_object(), labels.unwrap_or(&none)) {
                for rule in list(role.get("rules")) {
                    if !rules.contains(rule) {
                        rules.push(rule.clone());
                    }
                }
            }
        }
    }
    Some(rules)
}

fn list(value: Option<&Value>) -> &[Value] {
    value
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

fn fill(cluster: &dyn Context, name: &str, rules: &[Value]) {
    change(cluster, ROLES, name, "", |role| {
        let aggregates = role.get("aggregationRule").is_some_and(Value::is_object);
        if aggregates {
            role.insert("rules".to_owned(), rules.into());
        }
        aggregates
    });
}
