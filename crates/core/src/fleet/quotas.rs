//! The quotas of namespaces over all clusters: what bindings use of them, and what they leave.

use entourage_api::work::{ResourceBindingSpec, Resources, TargetCluster};
use entourage_model::quantity;

use crate::{
    cache::add_amounts,
    fleet::Fleet,
    object::{NamespacedName, ResourceId},
    observation::{AssignedQuota, Template, Watch},
    scheduler::estimate::{Amounts, amounts},
};

/// The resources that a binding requests on all its clusters together. Cost: O(clusters × components + resources).
pub(crate) fn used_by(spec: &ResourceBindingSpec) -> Amounts {
    let requirements = spec.replica_requirements.as_ref();
    let mut sum = Amounts::new();
    let replicas = spec.clusters.iter().map(|target| target.replicas);
    if let Some(requirements) = requirements {
        add_times(&mut sum, &requirements.resource_request, replicas.sum());
    }
    for component in &spec.components {
        let Some(requirements) = &component.replica_requirements else {
            continue;
        };
        let on = |target: &TargetCluster| {
            let named = target.components.iter().find(|each| each.name == component.name);
            named.map_or(component.replicas, |each| each.replicas)
        };
        add_times(
            &mut sum,
            &requirements.resource_request,
            spec.clusters.iter().map(on).sum(),
        );
    }
    sum
}

fn add_times(sum: &mut Amounts, request: &Resources, replicas: i32) {
    let times = |amount: i128| amount.saturating_mul(i128::from(replicas.max(0)));
    let all = amounts(request).into_iter();
    let all = all.map(|(name, amount)| (name, times(amount.max(0))));
    add_amounts(sum, &all.filter(|(_, amount)| *amount > 0).collect());
}

/// An amount in the form in which an API server writes it for a resource.
pub(crate) fn shown(resource: &str, amount: i128) -> String {
    let measured = resource
        .strip_prefix("requests.")
        .or_else(|| resource.strip_prefix("limits."));
    quantity::display(measured.unwrap_or(resource), amount)
}

impl Fleet {
    /// True if the quotas were listed, or do not matter to decisions.
    pub(crate) fn are_quotas_known(&self) -> bool {
        let quotas = Watch::Quotas;
        !self.config.enforce_quotas
            || self.cache.watches.is_listed(&quotas)
            || self.cache.watches.is_unlistable(&quotas)
    }

    /// The ResourceQuota on a member that a quota manages. Cost: O(log quotas).
    pub(crate) fn quota_copy(&self, cluster: &str, name: &NamespacedName) -> Option<&AssignedQuota> {
        let copy = self.memory.quotas.copy(cluster, name)?;
        copy.is_managed(&self.config.hub, cluster, name).then_some(copy)
    }

    /// True if a ResourceQuota that a quota manages is on a member. Cost: O(ResourceQuotas there).
    pub(crate) fn has_quota_copies(&self, cluster: &str) -> bool {
        let mut all = self.memory.quotas.copies_on(cluster);
        all.any(|name| self.quota_copy(cluster, name).is_some())
    }

    /// The message about the first quota of the namespace that a template would exceed on these clusters; `None` if it exceeds
    /// none, or requests no more than it does on its present ones. Source: Karmada's message of the refusal.
    ///
    /// Cost: O(clusters × components + quotas of the namespace × resources).
    pub(crate) fn over_quota(
        &self,
        id: &ResourceId,
        template: &Template,
        (clusters, present): (&[TargetCluster], &[TargetCluster]),
    ) -> Option<String> {
        if !self.config.enforce_quotas || !self.memory.quotas.is_limited(&id.namespace) {
            return None;
        }
        // All of its components are on each cluster, whatever the result says that is not stored yet.
        let whole = |target: &TargetCluster| TargetCluster {
            components: Vec::new(),
            ..target.clone()
        };
        let on = |clusters: &[TargetCluster]| {
            let components = template
                .components
                .as_deref()
                .filter(|_| template.replicas.is_none());
            used_by(&ResourceBindingSpec {
                replica_requirements: template.requirements.as_deref().cloned(),
                components: components.unwrap_or_default().to_vec(),
                clusters: clusters.iter().map(whole).collect(),
                ..Default::default()
            })
        };
        let (wanted, held) = (on(clusters), on(present));
        let others = self.memory.quotas.used_by_others(id);
        let of = |amounts: &Amounts, name: &str| amounts.get(name).copied().unwrap_or_default();
        for (quota, state) in self.memory.quotas.of_namespace(&id.namespace) {
            if state.meta.deleting.is_some() {
                continue;
            }
            for (name, limit) in amounts(&state.object.spec.overall) {
                let sum = of(&others, &name).saturating_add(of(&wanted, &name));
                if sum > limit && of(&wanted, &name) > of(&held, &name) {
                    return Some(format!(
                        "FederatedResourceQuota({}/{}) exceeded for resource {name}: requested sum {}, limit {}.",
                        quota.namespace,
                        quota.name,
                        shown(&name, sum),
                        shown(&name, limit)
                    ));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn used(spec: Value) -> Value {
        let used = used_by(&serde_json::from_value(spec).unwrap());
        let all = used
            .iter()
            .map(|(name, amount)| (name.to_string(), shown(name, *amount).into()));
        Value::Object(all.collect())
    }

    #[test]
    fn a_binding_uses_its_requests_times_the_replicas_of_all_its_clusters() {
        let resource =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "a", "namespace": "shop"});
        let clusters = json!([{"name": "m1", "replicas": 2}, {"name": "m2", "replicas": 1}]);
        let request = json!({"resourceRequest": {"cpu": "500m", "memory": "1Gi", "example.com/none": "0"}});
        assert_eq!(
            used(
                json!({"resource": resource, "replicas": 9, "replicaRequirements": request, "clusters": clusters})
            ),
            json!({"cpu": "1500m", "memory": "3Gi"})
        );
        assert_eq!(
            used(json!({"resource": resource, "clusters": clusters})),
            json!({})
        );
        assert_eq!(
            used(json!({"resource": resource, "replicas": 9, "replicaRequirements": request})),
            json!({})
        );
        let component = |name: &str, replicas: i32, cpu: &str| json!({"name": name, "replicas": replicas, "replicaRequirements": {"resourceRequest": {"cpu": cpu}}});
        assert_eq!(
            used(
                json!({"resource": resource, "components": [component("head", 1, "2"), component("worker", 3, "1")],
                "clusters": [{"name": "m1"}, {"name": "m2", "components": [{"name": "worker", "replicas": 1}]}]})
            ),
            json!({"cpu": "8"})
        );
    }
}
