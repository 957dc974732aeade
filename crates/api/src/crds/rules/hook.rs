//! The rules for configurations of interpreter webhooks.

use super::Rule;

const EXPLORING: &str = "resourceexploringwebhookconfigurations.config.karmada.io";
const INTERPRETING: &str = "resourceinterpreterwebhookconfigurations.config.karmada.io";
const BOTH: &[&str] = &[EXPLORING, INTERPRETING];

pub(super) const RULES: &[Rule] = &[
    Rule {
        crds: BOTH,
        paths: &[&["webhooks"]],
        rule: "self.all(a, self.exists_one(b, b.name == a.name))",
        message: "two webhooks have the same name: give each its own",
    },
    Rule {
        crds: BOTH,
        paths: &[&["webhooks", "[]", "name"]],
        rule: "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)+[.]?$')",
        message: "a webhook's name is a full domain name such as nodes.hooks.example.com",
    },
    Rule {
        crds: BOTH,
        paths: &[&["webhooks", "[]", "timeoutSeconds"]],
        rule: "1 <= self && self <= 30",
        message: "timeoutSeconds is between 1 and 30",
    },
    Rule {
        crds: BOTH,
        paths: &[&["webhooks", "[]", "clientConfig"]],
        rule: "has(self.url) != has(self.service)",
        message: "clientConfig has either url or service",
    },
    Rule {
        crds: BOTH,
        paths: &[&["webhooks", "[]", "clientConfig"]],
        rule: "!has(self.url) || self.url.startsWith('https://')",
        message: "clientConfig.url starts with https://",
    },
    Rule {
        crds: &[INTERPRETING],
        paths: &[&["webhooks", "[]", "interpreterContextVersions"]],
        rule: "self.exists(version, version == 'v1alpha1')",
        message: "interpreterContextVersions lists v1alpha1: no other version is supported",
    },
    Rule {
        crds: &[EXPLORING],
        paths: &[&["webhooks", "[]", "exploreReviewVersions"]],
        rule: "self.exists(version, version == 'v1alpha1')",
        message: "exploreReviewVersions lists v1alpha1: no other version is supported",
    },
    Rule {
        crds: BOTH,
        paths: &[&["webhooks", "[]", "rules", "[]", "operations"]],
        rule: "self.size() == 1 || (self.size() > 1 && !self.exists(operation, operation == '*'))",
        message: "operations lists the operations of the webhook, or * alone for all",
    },
    Rule {
        crds: &[INTERPRETING],
        paths: &[&["webhooks", "[]", "rules", "[]", "operations"]],
        rule: "self.all(operation, operation in ['*', 'InterpretReplica', 'InterpretComponent', 'ReviseReplica', \
               'InterpretStatus', 'Prune', 'Retain', 'AggregateStatus', 'InterpretHealth', 'InterpretDependency'])",
        message: "an operation is not known; known are InterpretReplica, InterpretComponent, ReviseReplica, \
                  InterpretStatus, Prune, Retain, AggregateStatus, InterpretHealth, InterpretDependency and *",
    },
    Rule {
        crds: &[EXPLORING],
        paths: &[&["webhooks", "[]", "rules", "[]", "operations"]],
        rule: "self.all(operation, operation in ['*', 'ExploreReplica', 'ExploreStatus', 'ExplorePacking', \
               'ExploreReplicaRevising', 'ExploreRetaining', 'ExploreStatusAggregating', 'ExploreHealthy', \
               'ExploreDependencies'])",
        message: "an operation is not known; known are ExploreReplica, ExploreStatus, ExplorePacking, \
                  ExploreReplicaRevising, ExploreRetaining, ExploreStatusAggregating, ExploreHealthy, \
                  ExploreDependencies and *",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{explorer, interpreter};

    #[test]
    fn the_rules_know_every_operation() {
        for (crd, operations) in [
            (EXPLORING, explorer::OPERATIONS),
            (INTERPRETING, interpreter::OPERATIONS),
        ] {
            let rule = RULES
                .iter()
                .find(|rule| rule.crds == [crd] && rule.message.starts_with("an operation"))
                .unwrap();
            let quoted: Vec<String> = operations.iter().map(|one| format!("'{one}'")).collect();
            assert!(rule.rule.contains(&format!("[{}]", quoted.join(", "))), "{crd}");
            for operation in operations {
                assert!(rule.message.contains(operation), "{crd}: {operation}");
            }
        }
    }
}
