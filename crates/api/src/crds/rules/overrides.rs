//! What is checked on OverridePolicies and ClusterOverridePolicies.
//!
//! The operations of rules lie in lists of lists, which no rule looks at: what is wrong there is said where it is applied.

use super::{
    Path, Rule,
    policy::{FIELD_KEY, FIELD_OPERATOR},
};

const OVERRIDES: &[&str] = &[
    "clusteroverridepolicies.policy.karmada.io",
    "overridepolicies.policy.karmada.io",
];

/// The requirements of every field selector that chooses clusters.
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

/// The requirements of every label selector that chooses clusters.
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

/// The type of label selectors is not ours: here is how many requirements one of them may have.
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
    // Such a rule fails on every cluster, and only there: it is better not to be written.
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
    // Clients written in Go send an empty `overriders` along.
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
