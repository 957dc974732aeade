//! What a server checks itself on objects of our kinds, as rules in CEL.
//!
//! Only rules that cost little: a server estimates a rule's cost from the longest list that a request can
//! hold, and refuses the whole definition when the estimate is too high. The reference schemas limit
//! neither lists nor strings. So no rule here looks at a list inside a list, and one on the items of a list
//! may cost half of what the estimate allows: about five steps for each of a million empty items. That is
//! why the sizes of spread constraints, the names of affinities and the keys of field selectors are not
//! here: they are refused, with a reason, when a policy is planned.
//! Source: Karmada reference 6.2.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, ValidationRule,
};

/// One rule.
pub struct Rule {
    /// Name of the definition that has it.
    pub crd: &'static str,
    /// Where in the schema of each version: property names, `[]` for the items of a list.
    pub path: &'static [&'static str],
    /// The expression; `self` is the value at the path.
    pub rule: &'static str,
    /// What the author of a refused object is told.
    pub message: &'static str,
}

const CLUSTER: &str = "clusters.cluster.karmada.io";
const POLICY: &str = "propagationpolicies.policy.karmada.io";

/// Every rule. The one place to add one; each has a refused object in `testdata/rules.yaml`.
pub const RULES: &[Rule] = &[
    Rule {
        crd: CLUSTER,
        path: &[],
        rule: "self.metadata.name.size() <= 48 && !self.metadata.name.contains('.')",
        message: "a cluster's name has at most 48 characters and no dots: it becomes part of a namespace's name",
    },
    Rule {
        crd: POLICY,
        path: &["spec", "schedulerName"],
        rule: "self == oldSelf",
        message: "schedulerName is immutable",
    },
    Rule {
        crd: POLICY,
        path: &["spec"],
        rule: "!has(self.preemption) || self.preemption != 'Always' || \
               self.resourceSelectors.all(s, has(s.name))",
        message: "preemption Always requires a name in every resource selector",
    },
    Rule {
        crd: POLICY,
        path: &["spec"],
        rule: "!has(self.failover) || !has(self.failover.application) || \
               (has(self.propagateDeps) && self.propagateDeps)",
        message: "failover.application requires propagateDeps: true",
    },
    Rule {
        crd: POLICY,
        path: &["spec", "failover", "application"],
        rule: "!has(self.gracePeriodSeconds) || (self.gracePeriodSeconds > 0 && \
               (!has(self.purgeMode) || self.purgeMode == 'Gracefully'))",
        message: "gracePeriodSeconds is greater than 0 and only goes with purgeMode Gracefully",
    },
    Rule {
        crd: POLICY,
        path: &["spec", "failover", "application", "decisionConditions"],
        rule: "!has(self.tolerationSeconds) || self.tolerationSeconds >= 0",
        message: "tolerationSeconds is not negative",
    },
    Rule {
        crd: POLICY,
        path: &["spec", "suspension"],
        rule: "!(has(self.dispatching) && self.dispatching && has(self.dispatchingOnClusters))",
        message: "suspension.dispatching and suspension.dispatchingOnClusters exclude each other",
    },
    Rule {
        crd: POLICY,
        path: &["spec", "placement"],
        rule: "!(has(self.clusterAffinity) && has(self.clusterAffinities))",
        message: "clusterAffinity and clusterAffinities exclude each other",
    },
    Rule {
        crd: POLICY,
        path: &["spec", "placement", "spreadConstraints", "[]"],
        rule: "!(has(self.spreadByField) && has(self.spreadByLabel))",
        message: "spreadByField and spreadByLabel exclude each other",
    },
];

/// Adds the rules of a definition to it.
pub(super) fn add(crd: &mut CustomResourceDefinition) {
    let name = crd.metadata.name.clone().unwrap_or_default();
    for version in &mut crd.spec.versions {
        for rule in RULES.iter().filter(|rule| rule.crd == name) {
            let root = version
                .schema
                .as_mut()
                .and_then(|schema| schema.open_api_v3_schema.as_mut());
            if let Some(schema) = root.and_then(|root| resolve(root, rule.path)) {
                schema
                    .x_kubernetes_validations
                    .get_or_insert_default()
                    .push(ValidationRule {
                        rule: rule.rule.into(),
                        message: Some(rule.message.into()),
                        ..ValidationRule::default()
                    });
            }
        }
    }
}

/// The schema at a path, if there is one.
fn resolve<'a>(schema: &'a mut JSONSchemaProps, path: &[&str]) -> Option<&'a mut JSONSchemaProps> {
    let Some((step, rest)) = path.split_first() else {
        return Some(schema);
    };
    let next = match (*step, &mut schema.items) {
        ("[]", Some(JSONSchemaPropsOrArray::Schema(items))) => Some(items.as_mut()),
        (name, _) => schema.properties.as_mut()?.get_mut(name),
    };
    resolve(next?, rest)
}

#[cfg(test)]
mod tests;
