//! The operations of each kind: the source of the documentation's table and of the rights.
//!
//! The code of an operation is the kind's own; a test requires that the golden cases show every operation listed here in effect,
//! and no other.

mod contract;

use Operation::{Aggregate, Health, Prune, References, Reflect, Replicas, Retain, Revise};
pub use contract::Contract;

/// The operations on objects of a kind beyond propagation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Its dependencies are propagated.
    References,
    /// It requests a number of replicas.
    Replicas,
    /// It consists of components, each with replicas of its own.
    Components,
    /// That number can be set for a cluster.
    Revise,
    /// Fields that only the hub's own controllers set are not sent.
    Prune,
    /// Fields that belong to the member are retained.
    Retain,
    /// The status of its copies is reported.
    Reflect,
    /// The status of its template is aggregated from theirs.
    Aggregate,
    /// The health of a copy is determined by a rule.
    Health,
}

impl Operation {
    /// The name of the operation for users, in `ResourceInterpreterWebhookConfiguration`.
    #[must_use]
    pub fn word(self) -> &'static str {
        Contract::Interpreter.word(self).unwrap_or_default()
    }

    /// All operations, in the order of the documentation's columns.
    pub const ALL: &[Self] = &[
        References, Replicas, Revise, Prune, Retain, Reflect, Aggregate, Health,
    ];
}

#[cfg(test)]
mod tests {
    use std::{
        collections::{BTreeMap, BTreeSet},
        fs,
        path::Path,
    };

    use serde_json::json;

    use super::*;
    use crate::{
        Interpretation, NATIVE, NativeGvk, common_prune,
        golden::{Case, cases},
        native,
        native::has,
    };
    use entourage_golden::is_updating;
    use entourage_model::object::Gvk;

    /// The operations in the golden cases of a kind.
    fn shown(kind: &str) -> BTreeSet<Operation> {
        let mut shown = BTreeSet::new();
        for Case { object, want, .. } in cases(kind) {
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

    /// The operations of each native kind.
    fn listed() -> BTreeMap<&'static str, &'static [Operation]> {
        NATIVE
            .iter()
            .map(|kind| (kind.gvk().kind, kind.operations()))
            .collect()
    }

    #[test]
    fn the_golden_cases_show_every_operation_of_every_kind_and_no_other() {
        for (kind, operations) in listed() {
            assert_eq!(
                shown(kind),
                operations.iter().copied().collect(),
                "{kind}: its golden cases in crates/interpreter/testdata/interpreter show the left, `operations` of its file \
                 in crates/interpreter/src/native lists the right"
            );
            assert!(operations.is_sorted(), "{kind}: in the order of Operation::ALL");
        }
    }

    #[test]
    fn every_version_of_a_kind_has_the_same_operations() {
        let listed = listed();
        for kind in NATIVE {
            assert_eq!(kind.operations(), listed[kind.gvk().kind], "{:?}", kind.gvk());
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

    /// Only its retain hook for Secrets is missing: it keeps the data of service-account tokens, which are never propagated
    /// here.
    #[test]
    fn every_hook_of_karmada_is_there() {
        for (operation, kinds) in KARMADA {
            for kind in kinds.split_whitespace() {
                let operations = listed()[kind];
                assert!(operations.contains(operation), "{operation:?} {kind}");
            }
        }
    }

    /// The table in `docs/reference/kinds.md`, between its two comments.
    #[test]
    fn the_documentation_shows_the_table() {
        const BEGIN: &str = "<!-- native kinds: made of crates/interpreter/src/native by a test -->\n";
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
            "docs/reference/kinds.md: UPDATE_GOLDEN=1 cargo test -p entourage-interpreter writes the table anew"
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
        for (kind, operations) in listed() {
            let all = NATIVE.iter().map(|native| native.gvk());
            let of_kind: Vec<_> = all.filter(|gvk| gvk.kind == kind).collect();
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
