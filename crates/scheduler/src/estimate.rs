//! The estimate of the replicas that a cluster has room for, by what its Cluster object reports.
//!
//! `status.resourceSummary` has the resources that the nodes offer, less those that pods request. Where the Cluster has classes of
//! nodes (`spec.resourceModels`) and their numbers, the estimate is made node by node. Source: Karmada's general estimator
//! (Karmada reference 1.3).
//!
//! A workload with several components is one set of pods: a cluster has room for it if it has room for all of them together.

mod pack;

use std::collections::BTreeMap;

use entourage_api::{
    cluster::{Cluster, ResourceModel, ResourceSummary},
    work::{Component, ReplicaRequirements, ResourceBindingSpec, Resources, TargetCluster},
};
use entourage_model::{object::Str, quantity};
use serde_json::Value;

/// Amounts by resource, in units of 10⁻⁹.
pub type Amounts = BTreeMap<Str, i128>;

/// The resource that counts pods.
const PODS: &str = "pods";

/// One, in units of 10⁻⁹.
const ONE: i128 = 1_000_000_000;

/// The resources that one replica requests, which is also a pod; or those of all components of a workload together, which are placed as
/// one set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The resources that its pods request together.
    amounts: Amounts,
    /// The number of its pods.
    pods: i64,
    /// The pods of a set, sorted; empty for a replica, and for a set without pods.
    parts: Vec<Part>,
}

/// Pods of a set that request the same resources.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    /// The resources that each requests.
    each: Amounts,
    /// Their number, 1 or more.
    pods: i64,
}

impl Default for Demand {
    /// A replica that requests no resources.
    fn default() -> Self {
        Self {
            amounts: Amounts::new(),
            pods: 1,
            parts: Vec::new(),
        }
    }
}

impl Demand {
    /// The demand of a replica; `None` requests no resources. Cost: O(resources).
    #[must_use]
    pub fn of(requirements: Option<&ReplicaRequirements>) -> Self {
        Self {
            amounts: requirements.map_or_else(Amounts::new, |each| requested(&each.resource_request)),
            ..Self::default()
        }
    }

    /// The demand of a set of components, whatever their order. Cost: O(components × (resources + log components)).
    #[must_use]
    pub fn of_set(components: &[Component]) -> Self {
        let (mut amounts, mut parts) = (Amounts::new(), Vec::new());
        for component in components.iter().filter(|each| each.replicas > 0) {
            let requirements = component.replica_requirements.as_ref();
            let each = requirements.map_or_else(Amounts::new, |each| requested(&each.resource_request));
            let pods = i64::from(component.replicas);
            for (name, amount) in &each {
                let sum = amounts.entry(name.clone()).or_insert(0_i128);
                *sum = sum.saturating_add(amount.saturating_mul(i128::from(pods)));
            }
            parts.push(Part { each, pods });
        }
        parts.sort();
        Self {
            amounts,
            pods: parts.iter().map(|part| part.pods).sum(),
            parts,
        }
    }

    /// The demand that a stored binding counts on each of its clusters, as often as [`TargetCluster::units`] says. Cost: O(clusters), and that of
    /// [`Self::of_set`].
    #[must_use]
    pub fn of_binding(spec: &ResourceBindingSpec) -> Self {
        let is_set = |target: &TargetCluster| target.replicas == 0 && !target.components.is_empty();
        if spec.clusters.iter().any(is_set) {
            return Self::of_set(&spec.components);
        }
        Self::of(spec.replica_requirements.as_ref())
    }

    /// True for a set with pods.
    #[must_use]
    pub fn is_set(&self) -> bool {
        !self.parts.is_empty()
    }

    /// The number of pods of one replica, or of the set.
    #[must_use]
    pub fn pods(&self) -> i64 {
        self.pods
    }

    /// The amounts of one replica and its pod, or of a set and its pods, by resource. Cost: O(resources).
    #[must_use]
    pub fn with_pod(&self) -> Amounts {
        let each = |(name, amount): (&str, i128)| (name.into(), amount);
        self.of_pod().map(each).collect()
    }

    /// Adds the demand of so many replicas, or sets, with their pods. Cost: O(resources × log amounts).
    pub fn add_to(&self, amounts: &mut Amounts, replicas: i64) {
        for (name, amount) in self.of_pod() {
            let more = amount.saturating_mul(i128::from(replicas));
            match amounts.get_mut(name) {
                Some(held) => *held = held.saturating_add(more),
                None => {
                    amounts.insert(name.into(), more);
                }
            }
        }
    }

    /// The amounts as a number of replicas, rounded up; pods count only for replicas that request nothing else.
    fn replicas_of(&self, amounts: &Amounts) -> i128 {
        let of = |name: &str, amount: i128| {
            let taken = amounts.get(name).copied().unwrap_or(0).max(0);
            taken.saturating_add(amount - 1) / amount
        };
        if self.pods == 0 {
            return 0;
        }
        if self.amounts.is_empty() {
            return of(PODS, self.amount_of_pods());
        }
        let each = |(name, amount): (&Str, &i128)| of(name, *amount);
        self.amounts.iter().map(each).max().unwrap_or(0)
    }

    /// As [`Self::with_pod`], without allocation.
    fn of_pod(&self) -> impl Iterator<Item = (&str, i128)> {
        let resources = self.amounts.iter().map(|(name, amount)| (&**name, *amount));
        resources.chain([(PODS, self.amount_of_pods())])
    }

    /// Its pods, as an amount of the resource that counts them.
    fn amount_of_pods(&self) -> i128 {
        i128::from(self.pods).saturating_mul(ONE)
    }
}

/// The free resources of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// The capacity of the nodes, less the requests of pods; negative where a resource is overcommitted.
    free: Amounts,
    /// The classes of nodes, smallest first; empty if their numbers are unknown.
    classes: Vec<Class>,
    /// The requests of workloads that the summary does not contain yet.
    reserved: Amounts,
}

/// The answer of the estimator of a cluster, for one workload. It counts the pods that were on the nodes then; what was
/// scheduled and was not there yet is unknown to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// The number of further replicas that the nodes had room for.
    pub replicas: i64,
    /// The replicas of the workload that were on the nodes.
    pub own: i64,
    /// The requests of other workloads that were scheduled and were not on the nodes yet.
    pub others: Amounts,
}

impl Estimate {
    /// The number of replicas of the workload that there is room for, those that it has there included. Cost: O(resources).
    #[must_use]
    pub fn all(&self, demand: &Demand) -> i64 {
        let others = demand.replicas_of(&self.others);
        let left = i128::from(self.replicas).saturating_sub(others).max(0);
        let left = i64::try_from(left).unwrap_or(i64::MAX);
        left.saturating_add(self.own)
    }
}

/// A class of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Class {
    /// The least that a node of it has free.
    least: Amounts,
    /// The number of nodes.
    nodes: i64,
}

impl Capacity {
    /// The capacity that a Cluster reports; `None` if it reports none. Cost: O(resources + classes).
    #[must_use]
    pub fn of(cluster: &Cluster) -> Option<Self> {
        let summary = cluster.status.as_ref()?.resource_summary.as_ref()?;
        let mut free = amounts(&summary.allocatable);
        for taken in [&summary.allocated, &summary.allocating] {
            for (name, amount) in amounts(taken) {
                if let Some(held) = free.get_mut(&name) {
                    *held = held.saturating_sub(amount);
                }
            }
        }
        Some(Self {
            free,
            classes: classes(cluster, summary),
            reserved: Amounts::new(),
        })
    }

    /// Reserves the demand of so many replicas, with their pods. Cost: O(resources).
    pub fn reserve(&mut self, demand: &Demand, replicas: i64) {
        demand.add_to(&mut self.reserved, replicas);
    }

    /// Takes the demand of so many replicas from what is reserved. Cost: O(resources).
    pub fn release(&mut self, demand: &Demand, replicas: i64) {
        for (name, amount) in demand.of_pod() {
            if let Some(held) = self.reserved.get_mut(name) {
                *held = held.saturating_sub(amount.saturating_mul(i128::from(replicas)));
            }
        }
        self.reserved.retain(|_, amount| *amount > 0);
    }

    /// The number of replicas, or sets, that there is room for. `own`: those of the same workload that are among the reserved
    /// amounts and do not count. There is room for any number of sets without pods.
    ///
    /// Cost: O(resources of the demand), times O(classes) where there are any; for a set that of `pack::sets`.
    #[must_use]
    pub fn replicas(&self, demand: &Demand, own: i64) -> i64 {
        self.replicas_or(demand, own, i128::MAX)
    }

    /// True if there is room for one replica, or set. Cost: that of [`Self::replicas`], for a set without the search for the number.
    #[must_use]
    pub fn holds_one(&self, demand: &Demand) -> bool {
        self.replicas_or(demand, 0, 1) > 0
    }

    /// As [`Self::replicas`]; of sets on classes of nodes it counts `most` or fewer.
    fn replicas_or(&self, demand: &Demand, own: i64, most: i128) -> i64 {
        if demand.pods == 0 {
            return i64::MAX;
        }
        let of_pods = demand.amount_of_pods();
        let pods = self.left(PODS, of_pods, own).unwrap_or(0) / of_pods;
        if pods <= 0 {
            return 0;
        }
        let fitting = if !self.is_by_class(demand) {
            self.by_sum(demand, own)
        } else if demand.parts.is_empty() {
            self.by_class(demand).saturating_sub(self.spoken_for(demand, own))
        } else {
            self.sets_by_class(demand, own, most.min(pods).min(self.by_sum(demand, own)))
        };
        i64::try_from(pods.min(fitting).max(0)).unwrap_or(i64::MAX)
    }

    /// The amount of a resource that is left; `None` if the nodes do not offer it.
    fn left(&self, name: &str, amount: i128, own: i64) -> Option<i128> {
        let free = *self.free.get(name)?;
        Some(free.saturating_sub(self.others(name, amount, own)))
    }

    /// The amount that is reserved for other workloads. `amount` is what one replica of this one requests.
    fn others(&self, name: &str, amount: i128, own: i64) -> i128 {
        let reserved = self.reserved.get(name).copied().unwrap_or(0);
        reserved
            .saturating_sub(amount.saturating_mul(i128::from(own)))
            .max(0)
    }

    /// Counts the cluster as one node.
    fn by_sum(&self, demand: &Demand, own: i64) -> i128 {
        let each = |(name, amount): (&Str, &i128)| self.left(name, *amount, own).unwrap_or(0).max(0) / amount;
        demand.amounts.iter().map(each).min().unwrap_or(i128::MAX)
    }

    /// True if there are classes of nodes, and they say something of each requested resource.
    fn is_by_class(&self, demand: &Demand) -> bool {
        let is_reported = |name: &Str| self.classes.iter().any(|class| class.least.contains_key(name));
        !self.classes.is_empty() && demand.amounts.keys().all(is_reported)
    }

    /// On the nodes of the classes that surely have room for one replica.
    fn by_class(&self, demand: &Demand) -> i128 {
        let nodes = self.classes.iter().filter(|class| class.nodes > 0);
        nodes.fold(0, |sum: i128, class| {
            let on_one = pack::on_one(&class.least, &demand.amounts);
            sum.saturating_add(on_one.saturating_mul(i128::from(class.nodes)))
        })
    }

    /// The sets, `most` or fewer, for which the nodes of the classes surely have room. What is reserved for others has nodes of its own.
    fn sets_by_class(&self, demand: &Demand, own: i64, most: i128) -> i128 {
        let others = demand
            .amounts
            .iter()
            .map(|(name, amount)| (name.clone(), self.others(name, *amount, own)));
        let nodes = pack::without(&self.classes, others.collect());
        pack::sets(&nodes, &demand.parts, most)
    }

    /// The reserved amounts as a number of replicas, rounded up.
    fn spoken_for(&self, demand: &Demand, own: i64) -> i128 {
        let each = |(name, amount): (&Str, &i128)| {
            let others = self.others(name, *amount, own);
            others.saturating_add(amount - 1) / amount
        };
        demand.amounts.iter().map(each).max().unwrap_or(0)
    }
}

/// The resources that a pod requests, without those of which it requests none, and without pods.
fn requested(list: &Resources) -> Amounts {
    let mut all = amounts(list);
    all.retain(|name, amount| *amount > 0 && **name != *PODS);
    all
}

/// The classes of nodes with their numbers, by grade; empty if no numbers are reported.
fn classes(cluster: &Cluster, summary: &ResourceSummary) -> Vec<Class> {
    if summary.allocatable_modelings.is_empty() {
        return Vec::new();
    }
    let mut models: Vec<_> = cluster.spec.resource_models.iter().collect();
    models.sort_by_key(|model| model.grade);
    let nodes = |grade| {
        let mut all = summary.allocatable_modelings.iter();
        all.find(|each| each.grade == grade)
            .map_or(0, |each| i64::from(each.count))
    };
    let class = models.into_iter().map(|model| Class {
        least: least_of(model),
        nodes: nodes(model.grade),
    });
    class.collect()
}

/// The least that a node of a class has free. Cost: O(resources).
#[must_use]
pub fn least_of(model: &ResourceModel) -> Amounts {
    let ranges = model.ranges.iter();
    ranges
        .filter_map(|range| Some((range.name.as_str().into(), read(&range.min.0)?)))
        .collect()
}

/// The amounts of a list of quantities as JSON; what is not a quantity is left out. Cost: O(resources).
#[must_use]
pub fn amounts_of(list: &Value) -> Amounts {
    let list = list.as_object().into_iter().flatten();
    list.filter_map(|(name, value)| Some((name.as_str().into(), quantity::amount(value)?)))
        .collect()
}

/// The amounts of a list; what is not a quantity is left out.
#[must_use]
pub fn amounts(list: &Resources) -> Amounts {
    let read = |(name, quantity): (&String, &k8s_openapi::apimachinery::pkg::api::resource::Quantity)| {
        Some((Str::from(name.as_str()), read(&quantity.0)?))
    };
    list.iter().filter_map(read).collect()
}

fn read(text: &str) -> Option<i128> {
    quantity::amount(&Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cluster(models: &Value, summary: &Value) -> Cluster {
        serde_json::from_value(json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "m"},
            "spec": {"syncMode": "Push", "resourceModels": models},
            "status": {"resourceSummary": summary},
        }))
        .unwrap()
    }

    fn demand(request: &Value) -> Demand {
        let requirements: ReplicaRequirements =
            serde_json::from_value(json!({"resourceRequest": request})).unwrap();
        Demand::of(Some(&requirements))
    }

    fn replicas(models: &Value, summary: &Value, request: &Value) -> i64 {
        let capacity = Capacity::of(&cluster(models, summary)).unwrap();
        capacity.replicas(&demand(request), 0)
    }

    #[test]
    fn the_scarcest_resource_decides() {
        let summary = json!({
            "allocatable": {"cpu": "10", "memory": "100Gi", "pods": "110"},
            "allocated": {"cpu": "4", "memory": "20Gi", "pods": "10"},
            "allocating": {"cpu": "1500m", "pods": "2"},
        });
        for (request, want) in [
            (json!({"cpu": "500m"}), 9),
            (json!({"cpu": "500m", "memory": "10Gi"}), 8),
            (json!({"cpu": "1m"}), 98),
            (json!({}), 98),
            (json!({"cpu": "0", "pods": "0"}), 98),
            (json!({"cpu": "5"}), 0),
            (json!({"example.com/gpu": "1"}), 0),
        ] {
            assert_eq!(replicas(&json!([]), &summary, &request), want, "{request}");
        }
    }

    #[test]
    fn without_free_pods_there_is_no_room() {
        let request = json!({"cpu": "1"});
        let full = json!({"allocatable": {"cpu": "10", "pods": "5"}, "allocated": {"pods": "5"}});
        assert_eq!(replicas(&json!([]), &full, &request), 0);
        let waiting = json!({"allocatable": {"cpu": "10", "pods": "5"}, "allocating": {"pods": "500"}});
        assert_eq!(replicas(&json!([]), &waiting, &request), 0);
        assert_eq!(
            replicas(&json!([]), &json!({"allocatable": {"cpu": "10"}}), &request),
            0
        );
        assert_eq!(Capacity::of(&Cluster::default()), None);
    }

    /// The figures of Karmada's tests of the general estimator.
    #[test]
    fn only_nodes_of_a_class_that_surely_has_room_count() {
        let grade = |grade: i32, cpu: [&str; 2], memory: [&str; 2]| {
            json!({"grade": grade, "ranges": [
                {"name": "cpu", "min": cpu[0], "max": cpu[1]},
                {"name": "memory", "min": memory[0], "max": memory[1]},
            ]})
        };
        let models = json!([
            grade(0, ["0", "1"], ["0", "1Gi"]),
            grade(1, ["1", "2"], ["1Gi", "2Gi"]),
            grade(2, ["2", "4"], ["2Gi", "4Gi"]),
        ]);
        let summary = json!({
            "allocatable": {"cpu": "9", "memory": "9Gi", "pods": "110", "example.com/gpu": "2"},
            "allocatableModelings": [{"grade": 2, "count": 1}, {"grade": 0, "count": 1}, {"grade": 1, "count": 1}],
        });
        for (request, want) in [
            (json!({"cpu": "1.5"}), 1),
            (json!({"cpu": "3"}), 0),
            (json!({"cpu": "1", "memory": "1.5Gi"}), 1),
            (json!({"cpu": "1", "memory": "2.5Gi"}), 0),
            (json!({"cpu": "500m"}), 6),
            (json!({}), 110),
            // No class says anything of it: the sum decides.
            (json!({"cpu": "1", "example.com/gpu": "1"}), 2),
        ] {
            assert_eq!(replicas(&models, &summary, &request), want, "{request}");
        }
    }

    #[test]
    fn what_is_reserved_for_others_is_not_free() {
        let summary = json!({"allocatable": {"cpu": "10", "pods": "20"}});
        let mut capacity = Capacity::of(&cluster(&json!([]), &summary)).unwrap();
        let (small, large) = (demand(&json!({"cpu": "1"})), demand(&json!({"cpu": "2"})));
        capacity.reserve(&large, 3);
        assert_eq!(capacity.replicas(&small, 0), 4);
        assert_eq!(capacity.replicas(&large, 3), 5, "its own do not count");
        capacity.release(&large, 3);
        assert_eq!(capacity.replicas(&small, 0), 10);
        assert_eq!(capacity.reserved, Amounts::new());
    }

    #[test]
    fn what_an_estimator_does_not_know_of_others_counts_against_its_estimate_and_its_own_replicas_are_room() {
        let (none, small, large) = (
            demand(&json!({})),
            demand(&json!({"cpu": "1"})),
            demand(&json!({"cpu": "2"})),
        );
        // The demand of others and their replicas; the demand, its own replicas, and the estimate; the room.
        for ((others, unknown), (demand, own, replicas), want) in [
            ((&small, 0), (&small, 0, 7), 7),
            ((&small, 0), (&small, 0, 0), 0),
            ((&small, 0), (&small, 5, 0), 5),
            ((&small, 0), (&small, 5, i64::MAX), i64::MAX),
            ((&small, 3), (&small, 0, 7), 4),
            ((&small, 3), (&small, 2, 7), 6),
            ((&large, 2), (&small, 0, 5), 1),
            ((&small, 3), (&large, 0, 4), 2),
            ((&small, 9), (&small, 0, 7), 0),
            ((&small, 9), (&small, 4, 7), 4),
            ((&none, 4), (&small, 0, 7), 7),
            ((&small, 4), (&none, 0, 7), 3),
        ] {
            let mut amounts = Amounts::new();
            others.add_to(&mut amounts, unknown);
            let estimate = Estimate {
                replicas,
                own,
                others: amounts,
            };
            assert_eq!(
                estimate.all(demand),
                want,
                "{others:?} {unknown} {demand:?} {estimate:?}"
            );
        }
    }

    #[test]
    fn what_is_reserved_is_not_free_on_classes_of_nodes_either() {
        let models = json!([{"grade": 0, "ranges": [{"name": "cpu", "min": "4", "max": "8"}]}]);
        let summary = json!({
            "allocatable": {"cpu": "40", "pods": "20"},
            "allocatableModelings": [{"grade": 0, "count": 2}],
        });
        let mut capacity = Capacity::of(&cluster(&models, &summary)).unwrap();
        let demand = demand(&json!({"cpu": "2"}));
        assert_eq!(capacity.replicas(&demand, 0), 4);
        capacity.reserve(&demand, 3);
        assert_eq!(capacity.replicas(&demand, 0), 1);
        assert_eq!(capacity.replicas(&demand, 3), 4);
    }
}
