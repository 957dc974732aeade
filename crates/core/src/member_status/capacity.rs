//! The capacity of a member from its nodes and pods.
//!
//! Nodes that are not ready or are cordoned offer nothing, and what their pods request does not count either: what is left is what
//! new pods can use.

use entourage_api::cluster::{AllocatableModeling, NodeSummary, ResourceModel, ResourceSummary};
use entourage_api::work::Resources;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::{
    cache::{MemberUsage, add_amounts},
    interpreter::quantity,
    object::Str,
    observation::Node,
    scheduler::estimate::{Amounts, least_of},
};

/// The number of nodes. Cost: O(nodes).
pub(crate) fn node_summary(usage: &MemberUsage) -> NodeSummary {
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    NodeSummary {
        total_num: count(usage.nodes().len()),
        ready_num: count(usage.nodes().values().filter(|node| node.is_ready).count()),
    }
}

/// The resources of nodes that take pods. Cost: O(nodes × resources).
pub(crate) fn resource_summary(usage: &MemberUsage, models: &[ResourceModel]) -> ResourceSummary {
    let (mut allocatable, mut allocated) = (Amounts::new(), Amounts::new());
    let mut modelings: Vec<AllocatableModeling> = models
        .iter()
        .map(|model| AllocatableModeling {
            grade: model.grade,
            count: 0,
        })
        .collect();
    let classes: Vec<(i32, Amounts)> = models
        .iter()
        .map(|model| (model.grade, least_of(model)))
        .collect();
    for (name, node) in usage.nodes().iter().filter(|(_, node)| is_open(node)) {
        add_amounts(&mut allocatable, &node.allocatable);
        let requested = usage.requested(name);
        if let Some(requested) = requested {
            add_amounts(&mut allocated, requested);
        }
        if let Some(place) = class(&classes, node, requested) {
            modelings[place].count += 1;
        }
    }
    modelings.sort_by_key(|each| each.grade);
    ResourceSummary {
        allocatable: written(&allocatable),
        allocating: written(usage.pending()),
        allocated: written(&allocated),
        allocatable_modelings: modelings,
    }
}

/// True if new pods can be scheduled to the node.
const fn is_open(node: &Node) -> bool {
    node.is_ready && !node.is_cordoned
}

/// The highest class that a node has enough free resources for: at least the least amount of each resource of the class. `None` if
/// there is no such class.
fn class(classes: &[(i32, Amounts)], node: &Node, requested: Option<&Amounts>) -> Option<usize> {
    let free = |name: &Str| {
        let offered = node.allocatable.get(name).copied().unwrap_or(0);
        offered - requested.and_then(|sum| sum.get(name).copied()).unwrap_or(0)
    };
    let has = |least: &Amounts| least.iter().all(|(name, amount)| free(name) >= *amount);
    let of_it = classes.iter().enumerate().filter(|(_, (_, least))| has(least));
    of_it.max_by_key(|(_, (grade, _))| *grade).map(|(place, _)| place)
}

fn written(amounts: &Amounts) -> Resources {
    let each = |(name, amount): (&Str, &i128)| (name.to_string(), Quantity(quantity::display(name, *amount)));
    amounts.iter().map(each).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::{cache::Usage, observation::Pod};

    const ONE: i128 = 1_000_000_000;

    fn node(is_ready: bool, is_cordoned: bool, cpu: i128) -> Node {
        Node {
            revision: 1,
            is_ready,
            is_cordoned,
            allocatable: [("cpu".into(), cpu * ONE), ("pods".into(), 110 * ONE)].into(),
        }
    }

    fn usage(nodes: &[(&str, Node)], pods: &[(Option<&str>, i128)]) -> Usage {
        let (mut usage, cluster) = (Usage::default(), Str::from("m"));
        for (name, node) in nodes {
            usage.node_seen(&cluster, &(*name).into(), node.clone());
        }
        for (number, (node, cpu)) in (0..).zip(pods) {
            let requests: Amounts = [("cpu".into(), cpu * ONE / 1000), ("pods".into(), ONE)].into();
            let pod = Pod {
                revision: 1,
                node: node.map(Into::into),
                requests: Some(Arc::new(requests)),
                unscheduled: None,
            };
            usage.pod_seen(&cluster, number, pod, crate::object::Time(0));
        }
        usage
    }

    fn summary(usage: &Usage, models: Value) -> Value {
        let models: Vec<ResourceModel> = serde_json::from_value(models).unwrap();
        serde_json::to_value(resource_summary(usage.of("m").unwrap(), &models)).unwrap()
    }

    #[test]
    fn only_nodes_that_take_pods_and_their_pods_count() {
        let nodes = [
            ("a", node(true, false, 4)),
            ("b", node(true, true, 4)),
            ("c", node(false, false, 4)),
        ];
        let pods = [
            (Some("a"), 1500),
            (Some("b"), 1000),
            (Some("gone"), 1000),
            (None, 250),
            (None, 250),
        ];
        let usage = usage(&nodes, &pods);
        assert_eq!(
            summary(&usage, json!([])),
            json!({
                "allocatable": {"cpu": "4", "pods": "110"},
                "allocated": {"cpu": "1500m", "pods": "1"},
                "allocating": {"cpu": "500m", "pods": "2"},
            })
        );
        let nodes = node_summary(usage.of("m").unwrap());
        assert_eq!((nodes.total_num, nodes.ready_num), (3, 2));
    }

    #[test]
    fn a_node_is_of_the_highest_class_that_it_has_room_for() {
        let model = |grade: i32, cpu: [&str; 2]| json!({"grade": grade, "ranges": [{"name": "cpu", "min": cpu[0], "max": cpu[1]}]});
        let models = json!([model(2, ["2", "4"]), model(0, ["0", "1"]), model(1, ["1", "2"])]);
        let nodes = [
            ("a", node(true, false, 4)),
            ("b", node(true, false, 4)),
            ("c", node(true, false, 1)),
            ("d", node(true, false, 1)),
            ("e", node(true, true, 4)),
        ];
        let usage = usage(&nodes, &[(Some("a"), 500), (Some("b"), 2500), (Some("d"), 1)]);
        assert_eq!(
            summary(&usage, models)["allocatableModelings"],
            json!([{"grade": 0, "count": 1}, {"grade": 1, "count": 2}, {"grade": 2, "count": 1}])
        );
    }
}
