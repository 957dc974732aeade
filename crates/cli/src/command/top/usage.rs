//! The use of CPU and memory: read from metrics, sorted, and as a table with kubectl's units.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use entourage_core::interpreter::quantity::amount;
use serde_json::{Value, json};

use super::{Measured, SortBy};
use crate::command::get::table::{Row, Shown, View, items, text};

/// A thousandth of a CPU, and a mebibyte, in the smallest units of quantities.
const MILLI: i128 = 1_000_000;
const MEBI: i128 = 1_000_000_000 << 20;

/// The text in the place of a use that is not measured, as kubectl's.
const UNKNOWN: &str = "<unknown>";

/// The use of one node or pod, in the smallest units of quantities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Usage {
    cluster: String,
    /// Empty for a node.
    namespace: String,
    name: String,
    /// `None` for a node without metrics.
    used: Option<Used>,
    /// The CPU and memory that a node has for pods; `None` if it does not say so.
    allocatable: (Option<i128>, Option<i128>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Used {
    cpu: i128,
    memory: i128,
}

/// The nodes of a NodeMetricsList, with what the NodeList says that they have; and those of the NodeList that have no metrics.
pub(super) fn nodes(cluster: &str, metrics: &Value, nodes: &Value) -> Vec<Usage> {
    let allocatable: BTreeMap<&str, &Value> = items(nodes, "/items")
        .iter()
        .map(|node| (text(node, "/metadata/name"), &node["status"]["allocatable"]))
        .collect();
    let measured = items(metrics, "/items").iter();
    let names: BTreeSet<&str> = measured
        .clone()
        .map(|node| text(node, "/metadata/name"))
        .collect();
    let rows = measured.map(|node| {
        let name = text(node, "/metadata/name");
        let of = |resource: &str| amount(&allocatable.get(name)?[resource]);
        Usage {
            allocatable: (of("cpu"), of("memory")),
            ..usage(cluster, node, std::slice::from_ref(&node["usage"]))
        }
    });
    let all = items(nodes, "/items").iter();
    let others = all.filter(|node| !names.contains(text(node, "/metadata/name")));
    let others = others.map(|node| Usage {
        used: None,
        ..usage(cluster, node, &[])
    });
    rows.chain(others).collect()
}

/// The pods of a PodMetricsList: the sums of their containers.
pub(super) fn pods_of(cluster: &str, metrics: &Value) -> Vec<Usage> {
    let measured = items(metrics, "/items").iter();
    measured
        .map(|pod| {
            let containers = items(pod, "/containers").iter();
            let used: Vec<Value> = containers.map(|each| each["usage"].clone()).collect();
            usage(cluster, pod, &used)
        })
        .collect()
}

fn usage(cluster: &str, object: &Value, used: &[Value]) -> Usage {
    let sum = |resource: &str| {
        used.iter()
            .filter_map(|each| amount(&each[resource]))
            .sum::<i128>()
    };
    Usage {
        cluster: cluster.to_owned(),
        namespace: text(object, "/metadata/namespace").to_owned(),
        name: text(object, "/metadata/name").to_owned(),
        used: Some(Used {
            cpu: sum("cpu"),
            memory: sum("memory"),
        }),
        allocatable: (None, None),
    }
}

/// Puts rows in order; those without metrics are last.
pub(super) fn sort(rows: &mut [Usage], by: Option<SortBy>) {
    rows.sort_by_cached_key(|row| {
        let used = match by {
            None => None,
            Some(SortBy::Cpu) => row.used.map(|used| used.cpu),
            Some(SortBy::Memory) => row.used.map(|used| used.memory),
        };
        (
            Reverse(used),
            row.cluster.clone(),
            row.namespace.clone(),
            row.name.clone(),
        )
    });
}

/// The rows of a table.
pub(super) fn view(rows: &[Usage], what: Measured) -> View {
    let of_nodes = if what == Measured::Nodes {
        Shown::Always
    } else {
        Shown::Wide
    };
    View {
        columns: vec![
            ("CLUSTER", Shown::Always),
            ("NAMESPACE", Shown::AllNamespaces),
            ("NAME", Shown::Always),
            ("CPU(cores)", Shown::Always),
            ("CPU%", of_nodes),
            ("MEMORY(bytes)", Shown::Always),
            ("MEMORY%", of_nodes),
        ],
        rows: rows.iter().map(row).collect(),
        more: Vec::new(),
    }
}

fn row(usage: &Usage) -> Row {
    let (cpu, memory) = usage.allocatable;
    let used = match usage.used {
        Some(used) => [
            // As kubectl: thousandths are rounded up, mebibytes down.
            format!("{}m", (used.cpu + MILLI - 1).div_euclid(MILLI)),
            share(used.cpu, cpu),
            format!("{}Mi", used.memory.div_euclid(MEBI)),
            share(used.memory, memory),
        ],
        None => [UNKNOWN; 4].map(str::to_owned),
    };
    let place = [usage.cluster.clone(), usage.namespace.clone(), usage.name.clone()];
    let [cpu, cpu_share, memory, memory_share] = &used;
    let known = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty() && text != UNKNOWN);
    let item = json!({
        "cluster": usage.cluster, "namespace": usage.namespace, "name": usage.name, "cpu": known(cpu),
        "cpuShare": known(cpu_share), "memory": known(memory), "memoryShare": known(memory_share),
    });
    Row {
        name: format!("{}/{}", usage.cluster, usage.name),
        cells: place.into_iter().chain(used).collect(),
        item,
    }
}

fn share(used: i128, of: Option<i128>) -> String {
    match of {
        Some(of) if of > 0 => format!("{}%", used.saturating_mul(100) / of),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods() -> Vec<Usage> {
        let pod = |namespace: &str, name: &str, usage: &[(&str, &str)]| {
            let containers: Vec<Value> = usage
                .iter()
                .map(|(cpu, memory)| json!({"name": "c", "usage": {"cpu": cpu, "memory": memory}}))
                .collect();
            json!({"metadata": {"namespace": namespace, "name": name}, "containers": containers})
        };
        let one = json!({"items": [
            pod("shop", "web", &[("1500000n", "2048Ki"), ("250u", "3Mi")]),
            pod("shop", "db", &[("2", "1Gi")]),
        ]});
        let two = json!({"items": [pod("shop", "web", &[("100m", "2Gi")]), pod("a", "idle", &[])]});
        [pods_of("m2", &one), pods_of("m1", &two)].concat()
    }

    #[test]
    fn the_containers_of_a_pod_are_added_up() {
        let mut rows = pods();
        sort(&mut rows, None);
        assert_eq!(
            view(&rows, Measured::Pods).table(false, true),
            "CLUSTER   NAMESPACE   NAME   CPU(cores)   MEMORY(bytes)\n\
             m1        a           idle   0m           0Mi\n\
             m1        shop        web    100m         2048Mi\n\
             m2        shop        db     2000m        1024Mi\n\
             m2        shop        web    2m           5Mi\n"
        );
    }

    #[test]
    fn the_largest_use_is_first() {
        for (by, first) in [(SortBy::Cpu, "m2/db"), (SortBy::Memory, "m1/web")] {
            let mut rows = pods();
            sort(&mut rows, Some(by));
            assert_eq!(row(&rows[0]).name, first, "{by:?}");
        }
    }

    #[test]
    fn the_share_of_a_node_is_of_what_it_has_for_pods() {
        let metrics = json!({"items": [
            {"metadata": {"name": "n1"}, "usage": {"cpu": "500m", "memory": "1Gi"}},
            {"metadata": {"name": "new"}, "usage": {"cpu": "1", "memory": "1Mi"}},
        ]});
        let allocatable = json!({"cpu": "2", "memory": "4Gi"});
        let all = json!({"items": [
            {"metadata": {"name": "down"}, "status": {"allocatable": allocatable}},
            {"metadata": {"name": "n1"}, "status": {"allocatable": allocatable}},
        ]});
        let mut rows = nodes("m1", &metrics, &all);
        sort(&mut rows, Some(SortBy::Cpu));
        assert_eq!(
            view(&rows, Measured::Nodes).table(false, false),
            "CLUSTER   NAME   CPU(cores)   CPU%        MEMORY(bytes)   MEMORY%\n\
             m1        new    1000m        -           1Mi             -\n\
             m1        n1     500m         25%         1024Mi          25%\n\
             m1        down   <unknown>    <unknown>   <unknown>       <unknown>\n"
        );
    }
}
