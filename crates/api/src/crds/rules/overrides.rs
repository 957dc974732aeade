//! The rules for OverridePolicies and ClusterOverridePolicies.
//!
//! The operations of override rules lie in lists of lists, which no CEL rule visits: errors there are reported when they are
//! applied.

use super::{
    Path, Rule,
    policy::{FIELD_KEY, FIELD_OPERATOR},
};

const OVERRIDES: &[&str] = &[
    "clusteroverridepolicies.policy.karmada.io",
    "overridepolicies.policy.karmada.io",
];

/// The requirements of every field selector for clusters.
const FIELD_REQUIREMENTS: &[Path] = &[
    &["spec", "targetCluster", "fieldSelector", "matchExpressions", "[]"],
    &[
        "spec",
        "overrideRules",
        "[]",
        "targetCluster",
        "fieldSelector",
        "matchExpressions",
        "[]",
    ],
];

/// The requirements of every label selector for clusters.
const LABEL_REQUIREMENTS: &[Path] = &[
    &["spec", "targetCluster", "labelSelector", "matchExpressions", "[]"],
    &[
        "spec",
        "overrideRules",
        "[]",
        "targetCluster",
        "labelSelector",
        "matchExpressions",
        "[]",
    ],
];

/// The type of label selectors is not ours, so its limit on requirements is set here.
pub(super) const LIMITS: &[(&[&str], &[Path], i64)] = &[(
    OVERRIDES,
    &[
        &["spec", "targetCluster", "labelSelector", "matchExpressions"],
        &[
            "spec",
            "overrideRules",
            "[]",
            "targetCluster",
            "labelSelector",
            "matchExpressions",
        ],
    ],
    32,
)];

pub(super) const RULES: &[Rule] = &[
    // Such a rule would fail on every cluster when it is applied: it is rejected when it is written.
    Rule {
        crds: OVERRIDES,
        paths: FIELD_REQUIREMENTS,
        rule: FIELD_KEY.0,
        message: FIELD_KEY.1,
    },
    Rule {
        crds: OVERRIDES,
        paths: FIELD_REQUIREMENTS,
        rule: FIELD_OPERATOR.0,
        message: FIELD_OPERATOR.1,
    },
    Rule {
        crds: OVERRIDES,
        paths: LABEL_REQUIREMENTS,
        rule: "self.operator == 'In' || self.operator == 'NotIn' || self.operator == 'Exists' || \
               self.operator == 'DoesNotExist'",
        message: "the operator of a label selector is In, NotIn, Exists or DoesNotExist",
    },
    Rule {
        crds: OVERRIDES,
        paths: &[&["spec"]],
        rule: "!has(self.overrideRules) || !has(self.targetCluster)",
        message: "overrideRules and the deprecated targetCluster are mutually exclusive: move it into a rule",
    },
    // Clients written in Go also send an empty `overriders`.
    Rule {
        crds: OVERRIDES,
        paths: &[&["spec"]],
        rule: "!has(self.overrideRules) || !has(self.overriders) || \
               (!has(self.overriders.plaintext) || self.overriders.plaintext.size() == 0) && \
               (!has(self.overriders.imageOverrider) || self.overriders.imageOverrider.size() == 0) && \
               (!has(self.overriders.commandOverrider) || self.overriders.commandOverrider.size() == 0) && \
               (!has(self.overriders.argsOverrider) || self.overriders.argsOverrider.size() == 0) && \
               (!has(self.overriders.labelsOverrider) || self.overriders.labelsOverrider.size() == 0) && \
               (!has(self.overriders.annotationsOverrider) || self.overriders.annotationsOverrider.size() == 0) && \
               (!has(self.overriders.fieldOverrider) || self.overriders.fieldOverrider.size() == 0)",
        message: "overrideRules and the deprecated overriders are mutually exclusive: move them into a rule",
    },
];
