//! The operations that each kind has: the table that the documentation shows and that rights are made of.
//!
//! The code of an operation is the kind's own; a test demands that the golden cases show every operation listed here
//! at work, and none that is not.

mod contract;

use Operation::{Aggregate, Health, Prune, References, Reflect, Replicas, Retain, Revise};
pub use contract::Contract;

/// What can be done with the objects of a kind beyond carrying them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// What it names is taken along.
    References,
    /// It asks for a number of replicas.
    Replicas,
    /// It consists of parts, each with replicas of its own.
    Components,
    /// That number can be set for a cluster.
    Revise,
    /// What only the hub's own machinery set is not sent.
    Prune,
    /// What belongs to the member stays.
    Retain,
    /// The status of its copies is reported.
    Reflect,
    /// The status of its template is made of them.
    Aggregate,
    /// Whether a copy does well is judged by a rule.
    Health,
}

/// Every interpreted kind and its operations, in all its versions.
#[rustfmt::skip]
pub const OPERATIONS: &[(&str, &[Operation])] = &[
    ("APIService", &[Retain, Reflect, Health]),
    ("ClusterRole", &[Retain]),
    ("ConfigMap", &[]),
    ("CronJob", &[References, Reflect, Aggregate]),
    ("CustomResourceDefinition", &[Retain, Reflect, Health]),
    ("DaemonSet", &[References, Prune, Reflect, Aggregate, Health]),
    ("Deployment", &[References, Replicas, Revise, Prune, Retain, Reflect, Aggregate, Health]),
    ("EndpointSlice", &[Prune]),
    ("HorizontalPodAutoscaler", &[Prune, Reflect, Aggregate]),
    ("Ingress", &[References, Retain, Reflect, Aggregate, Health]),
    ("Job", &[References, Replicas, Revise, Prune, Retain, Reflect, Aggregate]),
    ("MutatingWebhookConfiguration", &[Retain]),
    ("Namespace", &[Prune, Retain, Reflect, Health]),
    ("PersistentVolume", &[Prune, Retain, Reflect, Aggregate]),
    ("PersistentVolumeClaim", &[Prune, Retain, Reflect, Aggregate, Health]),
    ("Pod", &[References, Replicas, Prune, Retain, Reflect, Aggregate, Health]),
    ("PodDisruptionBudget", &[Reflect, Aggregate, Health]),
    ("ReplicaSet", &[References, Replicas, Revise, Prune, Retain, Reflect, Aggregate, Health]),
    ("ReplicationController", &[References, Replicas, Revise, Retain, Reflect, Aggregate, Health]),
    ("ResourceDistribution", &[Reflect, Aggregate, Health]),
    ("ResourceQuota", &[Reflect]),
    ("Secret", &[]),
    ("Service", &[Prune, Retain, Reflect, Aggregate, Health]),
    ("ServiceAccount", &[References, Prune, Retain]),
    ("ServiceImport", &[References, Retain, Reflect]),
    ("StatefulSet", &[References, Replicas, Revise, Retain, Reflect, Aggregate, Health]),
    ("ValidatingWebhookConfiguration", &[Retain]),
];

impl Operation {
    /// What users know it by: its name in `ResourceInterpreterWebhookConfiguration`.
    #[must_use]
    pub fn word(self) -> &'static str {
        Contract::Interpreter.word(self).unwrap_or_default()
    }

    /// Every operation, in the order of the documentation's columns.
    pub const ALL: &[Self] = &[
        References, Replicas, Revise, Prune, Retain, Reflect, Aggregate, Health,
    ];
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use serde_json::json;

    use super::*;
    use crate::{
        Interpretation, NATIVE, NativeGvk, common_prune,
        golden::{cases, read},
        native,
        native::has,
    };
    use entourage_golden::is_updating;
    use entourage_model::object::Gvk;

    /// What the golden cases of a kind show.
    fn shown(kind: &str) -> BTreeSet<Operation> {
        let mut shown = BTreeSet::new();
        for case in cases(kind) {
            let (object, want) = (
                read(&case.join("object.yaml")).unwrap(),
                read(&case.join("want.yaml")).unwrap(),
            );
            let version = object["apiVersion"].as_str().unwrap();
            let (group, version) = version.split_once('/').unwrap_or(("", version));
            let native = native(group, version, kind).unwrap();
            let mut pruned = object.clone();
            common_prune(&mut pruned);
            let common = pruned.clone();
            native.prune(&mut pruned);
            let mut revised = json!({"spec": {}});
            native.revise_replicas(&mut revised, 3);
            for (operation, is_shown) in [
                (
                    References,
                    want["references"].as_array().is_some_and(|all| !all.is_empty()),
                ),
                (Replicas, !want["replicas"].is_null()),
                (Revise, revised != json!({"spec": {}})),
                (Prune, pruned != common),
                (Retain, !want["retained"].is_null()),
                (Reflect, !want["reflected"].is_null()),
                (Aggregate, !want["aggregated"].is_null()),
                (
                    Health,
                    want["health"].as_str().is_some_and(|health| health != "Healthy"),
                ),
            ] {
                if is_shown {
                    shown.insert(operation);
                }
            }
        }
        shown
    }

    #[test]
    fn the_golden_cases_show_every_operation_of_every_kind_and_no_other() {
        let kinds: BTreeSet<_> = NATIVE.iter().map(|kind| kind.gvk().kind).collect();
        let listed: Vec<_> = OPERATIONS.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(listed, Vec::from_iter(kinds), "sorted, each kind once");
        for (kind, operations) in OPERATIONS {
            assert_eq!(shown(kind), operations.iter().copied().collect(), "{kind}");
            assert!(operations.is_sorted(), "{kind}");
        }
    }

    #[test]
    fn what_reports_a_status_is_watched_whole_and_so_is_what_refers() {
        for kind in NATIVE {
            assert_eq!(kind.reports_status(), has(*kind, Reflect), "{:?}", kind.gvk());
            let refers = crate::references::refers(*kind);
            assert_eq!(refers, has(*kind, References), "{:?}", kind.gvk());
            let NativeGvk { group, version, kind } = kind.gvk();
            let api_version = if group.is_empty() {
                version.to_owned()
            } else {
                format!("{group}/{version}")
            };
            assert_eq!(
                Interpretation::default().is_interpreted(&Gvk::new(&api_version, kind)),
                refers || has(native(group, version, kind).unwrap(), Reflect),
                "{kind}"
            );
        }
    }

    /// The hooks of Karmada's native interpreter. Source: Karmada reference 3.1.
    const KARMADA: &[(Operation, &str)] = &[
        (
            References,
            "Deployment ReplicaSet StatefulSet DaemonSet Job CronJob Pod Ingress ServiceImport",
        ),
        (Replicas, "Deployment ReplicaSet StatefulSet Job Pod"),
        (Revise, "Deployment ReplicaSet StatefulSet Job"),
        (
            Retain,
            "Deployment Pod Service ServiceAccount PersistentVolumeClaim PersistentVolume Job",
        ),
        (
            Aggregate,
            "Deployment ReplicaSet Service Ingress Job CronJob DaemonSet StatefulSet Pod PersistentVolume \
             PersistentVolumeClaim PodDisruptionBudget HorizontalPodAutoscaler",
        ),
        (
            Reflect,
            "Deployment ReplicaSet Service Ingress Job DaemonSet StatefulSet PodDisruptionBudget \
             HorizontalPodAutoscaler CronJob Pod PersistentVolume PersistentVolumeClaim",
        ),
        (
            Health,
            "Deployment StatefulSet ReplicaSet DaemonSet Service Ingress PersistentVolumeClaim Pod PodDisruptionBudget",
        ),
    ];

    /// Its retain hook for Secrets is the one that is missing: it keeps the data of service-account tokens, which never
    /// travel here.
    #[test]
    fn every_hook_of_karmada_is_there() {
        for (operation, kinds) in KARMADA {
            for kind in kinds.split_whitespace() {
                let found = OPERATIONS.iter().find(|(name, _)| *name == kind);
                assert!(
                    found.is_some_and(|(_, operations)| operations.contains(operation)),
                    "{operation:?} {kind}"
                );
            }
        }
    }

    /// The table in `docs/reference/kinds.md`, between its two comments.
    #[test]
    fn the_documentation_shows_the_table() {
        const BEGIN: &str =
            "<!-- native kinds: made of crates/interpreter/src/operations.rs by its test -->\n";
        const END: &str = "<!-- end of native kinds -->";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/kinds.md");
        let text = fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once(BEGIN).expect("the comment that begins the table");
        let (_, after) = rest.split_once(END).expect("the comment that ends the table");
        let wanted = format!("{before}{BEGIN}{}{END}{after}", table());
        if is_updating() {
            fs::write(&path, &wanted).unwrap();
        }
        assert!(
            fs::read_to_string(&path).unwrap() == wanted,
            "UPDATE_GOLDEN=1 writes it anew"
        );
    }

    fn table() -> String {
        let names: Vec<_> = Operation::ALL
            .iter()
            .map(|operation| format!("{operation:?}").to_lowercase())
            .collect();
        let mut text = format!("\n| Kind | API version | {} |\n|---|---|", names.join(" | "));
        text.push_str(&"---|".repeat(names.len()));
        text.push('\n');
        for (kind, operations) in OPERATIONS {
            let all = NATIVE.iter().map(|native| native.gvk());
            let of_kind: Vec<_> = all.filter(|gvk| gvk.kind == *kind).collect();
            let versions: Vec<_> = of_kind.iter().map(|gvk| gvk.version).collect();
            let group = match of_kind[0].group {
                "" => String::new(),
                group => format!("{group}/"),
            };
            let marks: Vec<_> = Operation::ALL
                .iter()
                .map(|operation| if operations.contains(operation) { "•" } else { "" })
                .collect();
            text.push_str(&format!(
                "| {kind} | {group}{} | {} |\n",
                versions.join(", "),
                marks.join(" | ")
            ));
        }
        text.push('\n');
        text
    }
}
