//! The rules for Clusters and for ClusterTaintPolicies.

use super::Rule;

pub(super) const RULES: &[Rule] = &[
    Rule {
        crds: &["clusters.cluster.karmada.io"],
        paths: &[&[]],
        rule: "self.metadata.name.size() <= 48 && !self.metadata.name.contains('.')",
        message: "a cluster's name has at most 48 characters and no dots: it becomes part of a namespace's name",
    },
    Rule {
        crds: &["clustertaintpolicies.policy.karmada.io"],
        paths: &[&["spec", "taints"]],
        rule: "self.all(a, self.exists_one(b, b.key == a.key && b.effect == a.effect))",
        message: "two taints have the same key and effect: keep one of them",
    },
];
