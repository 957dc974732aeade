//! The rules for ResourceDistributions.
//!
//! Of the distributed object a rule sees only the fields that every object has: `apiVersion`, `kind` and the name. No message
//! contains more.

use super::Rule;

const DISTRIBUTIONS: &[&str] = &["resourcedistributions.apps.kruise.io"];

pub(super) const RULES: &[Rule] = &[
    Rule {
        crds: DISTRIBUTIONS,
        paths: &[&["spec"]],
        rule: "has(self.resource) != has(self.resourceFrom)",
        message: "what is distributed is given as either resource or resourceFrom",
    },
    Rule {
        crds: DISTRIBUTIONS,
        paths: &[&["spec", "resource"]],
        rule: "has(self.apiVersion) && self.apiVersion == 'v1' && \
               has(self.kind) && (self.kind == 'ConfigMap' || self.kind == 'Secret')",
        message: "only a ConfigMap or a Secret of apiVersion v1 is distributed",
    },
    // Copies under the old name would be orphaned. A resource without a name had no copies.
    Rule {
        crds: DISTRIBUTIONS,
        paths: &[&["spec"]],
        rule: "!(has(self.resource) || has(self.resourceFrom)) || \
               !(has(oldSelf.resource) || has(oldSelf.resourceFrom)) || \
               (has(self.resource) ? self.resource.kind : self.resourceFrom.kind) == \
               (has(oldSelf.resource) ? oldSelf.resource.kind : oldSelf.resourceFrom.kind)",
        message: "the kind of what is distributed is immutable: make another ResourceDistribution",
    },
    Rule {
        crds: DISTRIBUTIONS,
        paths: &[&["spec"]],
        rule: "!(has(self.resource) || has(self.resourceFrom)) || \
               !(has(oldSelf.resourceFrom) || (has(oldSelf.resource) && has(oldSelf.resource.metadata) && \
               has(oldSelf.resource.metadata.name))) || \
               (has(self.resource) ? (has(self.resource.metadata) && has(self.resource.metadata.name) ? \
               self.resource.metadata.name : '') : self.resourceFrom.name) == \
               (has(oldSelf.resource) ? oldSelf.resource.metadata.name : oldSelf.resourceFrom.name)",
        message: "the name of what is distributed is immutable: make another ResourceDistribution",
    },
];
