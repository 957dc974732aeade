//! The rules for propagation policies.

use super::{Path, Rule};

const POLICIES: &[&str] = &[
    "clusterpropagationpolicies.policy.karmada.io",
    "propagationpolicies.policy.karmada.io",
];

/// The requirements of every field selector for clusters.
const FIELD_REQUIREMENTS: &[Path] = &[
    &[
        "spec",
        "placement",
        "clusterAffinity",
        "fieldSelector",
        "matchExpressions",
        "[]",
    ],
    &[
        "spec",
        "placement",
        "clusterAffinities",
        "[]",
        "fieldSelector",
        "matchExpressions",
        "[]",
    ],
    &[
        "spec",
        "placement",
        "clusterAffinities",
        "[]",
        "overflowAffinities",
        "[]",
        "fieldSelector",
        "matchExpressions",
        "[]",
    ],
];

pub(super) const RULES: &[Rule] = &[
    Rule {
        crds: POLICIES,
        paths: &[&["spec", "schedulerName"]],
        rule: "self == oldSelf",
        message: "schedulerName is immutable",
    },
    Rule {
        crds: POLICIES,
        paths: &[&["spec"]],
        rule: "!has(self.preemption) || self.preemption != 'Always' || \
               self.resourceSelectors.all(s, has(s.name) && s.name != '')",
        message: "preemption Always requires a name in every resource selector",
    },
    Rule {
        crds: POLICIES,
        paths: &[&["spec"]],
        rule: "!has(self.failover) || !has(self.failover.application) || \
               (has(self.propagateDeps) && self.propagateDeps)",
        message: "failover.application requires propagateDeps: true",
    },
    Rule {
        crds: POLICIES,
        paths: &[&["spec", "failover", "application"]],
        rule: "!has(self.gracePeriodSeconds) || (self.gracePeriodSeconds > 0 && \
               (!has(self.purgeMode) || self.purgeMode == 'Gracefully'))",
        message: "gracePeriodSeconds is greater than 0 and is only allowed with purgeMode Gracefully",
    },
    Rule {
        crds: POLICIES,
        paths: &[&["spec", "failover", "application", "decisionConditions"]],
        rule: "!has(self.tolerationSeconds) || self.tolerationSeconds >= 0",
        message: "tolerationSeconds is not negative",
    },
    Rule {
        crds: POLICIES,
        paths: &[
            &[
                "spec",
                "failover",
                "application",
                "statePreservation",
                "rules",
                "[]",
                "aliasLabelName",
            ],
            &[
                "spec",
                "failover",
                "cluster",
                "statePreservation",
                "rules",
                "[]",
                "aliasLabelName",
            ],
        ],
        rule: LABEL_KEY,
        message: "aliasLabelName is the key of a label: at most 63 letters, digits, dashes, underscores and dots, \
                  with or without a domain and a slash before it",
    },
    Rule {
        crds: POLICIES,
        paths: &[&["spec", "suspension"]],
        rule: "!(has(self.dispatching) && self.dispatching && has(self.dispatchingOnClusters) && \
               has(self.dispatchingOnClusters.clusterNames) && self.dispatchingOnClusters.clusterNames.size() > 0)",
        message: "suspension.dispatching and suspension.dispatchingOnClusters are mutually exclusive",
    },
    Rule {
        crds: POLICIES,
        paths: &[&["spec", "placement"]],
        rule: "!(has(self.clusterAffinity) && has(self.clusterAffinities))",
        message: "clusterAffinity and clusterAffinities are mutually exclusive",
    },
    Rule {
        crds: POLICIES,
        paths: &[&["spec", "placement", "clusterAffinities"]],
        rule: "self.all(a, self.exists_one(b, b.affinityName == a.affinityName))",
        message: "two clusterAffinities have the same affinityName: give each its own",
    },
    Rule {
        crds: POLICIES,
        paths: &[&["spec", "placement", "clusterAffinities", "[]"]],
        rule: "!has(self.overflowAffinities) || self.overflowAffinities.all(a, a.affinityName != self.affinityName && \
               self.overflowAffinities.exists_one(b, b.affinityName == a.affinityName))",
        message: "the affinityName of each of overflowAffinities differs from the others and from that of the group",
    },
    Rule {
        crds: POLICIES,
        paths: &[&["spec", "placement", "clusterAffinities", "[]"]],
        rule: "!has(self.overflowAffinities) || self.overflowAffinities.size() == 0 || has(self.labelSelector) || \
               has(self.fieldSelector) || has(self.clusterNames) || has(self.exclude)",
        message: "overflowAffinities requires that the group itself selects clusters, by clusterNames for instance",
    },
    Rule {
        crds: POLICIES,
        paths: &[&["spec", "placement"]],
        rule: "!has(self.clusterAffinities) || \
               self.clusterAffinities.all(a, !has(a.overflowAffinities) || a.overflowAffinities.size() == 0) || \
               (has(self.replicaScheduling) && (!has(self.replicaScheduling.replicaSchedulingType) || \
               self.replicaScheduling.replicaSchedulingType == 'Divided') && \
               ((has(self.replicaScheduling.replicaDivisionPreference) && \
               self.replicaScheduling.replicaDivisionPreference == 'Aggregated') || \
               (has(self.replicaScheduling.weightPreference) && \
               has(self.replicaScheduling.weightPreference.dynamicWeight))))",
        message: "overflowAffinities requires replicaSchedulingType Divided, with replicaDivisionPreference \
                  Aggregated or with weightPreference.dynamicWeight",
    },
    Rule {
        crds: POLICIES,
        paths: FIELD_REQUIREMENTS,
        rule: FIELD_KEY.0,
        message: FIELD_KEY.1,
    },
    Rule {
        crds: POLICIES,
        paths: FIELD_REQUIREMENTS,
        rule: FIELD_OPERATOR.0,
        message: FIELD_OPERATOR.1,
    },
    Rule {
        crds: POLICIES,
        paths: &[&["spec", "placement", "clusterTolerations", "[]"]],
        rule: "!has(self.operator) || (self.operator != 'Lt' && self.operator != 'Gt')",
        message: "the operator of a toleration is Exists or Equal",
    },
    Rule {
        crds: POLICIES,
        paths: &[&["spec", "placement", "spreadConstraints", "[]"]],
        rule: "!has(self.spreadByField) || !has(self.spreadByLabel) || self.spreadByLabel == ''",
        message: "spreadByField and spreadByLabel are mutually exclusive",
    },
    Rule {
        crds: POLICIES,
        paths: &[&["spec", "placement", "spreadConstraints", "[]"]],
        rule: "(!has(self.minGroups) || self.minGroups >= 0) && (!has(self.maxGroups) || self.maxGroups >= 0)",
        message: "minGroups and maxGroups are not negative",
    },
    Rule {
        crds: POLICIES,
        paths: &[&["spec", "placement", "spreadConstraints", "[]"]],
        rule: "!has(self.minGroups) || !has(self.maxGroups) || self.maxGroups <= 0 || \
               self.minGroups <= self.maxGroups",
        message: "maxGroups is at least minGroups, or 0 for no limit",
    },
    // Value by value: older servers take the longest request for the length of an enum's values. One with neither field nor
    // label spreads by cluster.
    Rule {
        crds: POLICIES,
        paths: &[&["spec", "placement", "spreadConstraints"]],
        rule: "self.filter(c, has(c.spreadByField) ? c.spreadByField == 'cluster' : \
               !has(c.spreadByLabel) || c.spreadByLabel == '').size() <= 1 && \
               self.filter(c, has(c.spreadByField) && c.spreadByField == 'region').size() <= 1 && \
               self.filter(c, has(c.spreadByField) && c.spreadByField == 'zone').size() <= 1 && \
               self.filter(c, has(c.spreadByField) && c.spreadByField == 'provider').size() <= 1",
        message: "two spreadConstraints have the same spreadByField (cluster, if they have no label either): keep one of \
                  them",
    },
    Rule {
        crds: POLICIES,
        paths: &[&["spec", "placement", "workloadAffinity"]],
        rule: "!has(self.affinity) || !has(self.antiAffinity) || \
               self.affinity.groupByLabelKey != self.antiAffinity.groupByLabelKey",
        message: "workloadAffinity.affinity and antiAffinity have different groupByLabelKeys",
    },
    Rule {
        crds: POLICIES,
        paths: &[
            &[
                "spec",
                "placement",
                "workloadAffinity",
                "affinity",
                "groupByLabelKey",
            ],
            &[
                "spec",
                "placement",
                "workloadAffinity",
                "antiAffinity",
                "groupByLabelKey",
            ],
        ],
        rule: LABEL_KEY,
        message: "groupByLabelKey is the key of a label: at most 63 letters, digits, dashes, underscores and dots, \
                  with or without a domain and a slash before it",
    },
];

/// The keys that a field selector may name, as a rule and its message.
pub(super) const FIELD_KEY: (&str, &str) = (
    "self.key == 'provider' || self.key == 'region' || self.key == 'zone'",
    "the key of a field selector is provider, region or zone; for anything else use labelSelector",
);

/// The operators of a field selector, as a rule and its message.
pub(super) const FIELD_OPERATOR: (&str, &str) = (
    "self.operator == 'In' || self.operator == 'NotIn'",
    "the operator of a field selector is In or NotIn",
);

/// The CEL expression that is true if `self` is a valid label key.
const LABEL_KEY: &str = "self.matches('^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?\
                         [A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')";
