//! Overrides: the changes of the copies on some clusters.
//!
//! ```text
//! OverridePolicies ──select──► rules for (template, cluster), in order ──apply──► the copy, changed
//!                                             └─────────record──► two annotations on the copy
//! ```
//!
//! Order: every ClusterOverridePolicy before every OverridePolicy of the object's namespace; among each, less specific
//! selectors before more specific ones (all < labels < name), then by name; the rules of a policy as written. Each rule is
//! applied to the result of the previous one. Source: Karmada reference, appendix C.

mod apply;
mod containers;
mod field;
#[cfg(test)]
mod golden;
mod image;
mod kept;
mod metadata;
mod patch;
#[cfg(test)]
mod properties;
mod record;
mod select;

pub use apply::{BadOverride, apply, apply_to_metadata};
pub use record::{RECORD_LIMIT, records};
pub use select::{Candidates, select};

use std::{fmt, sync::Arc};

use entourage_api::policy::{ClusterAffinity, OverrideSpec, Overriders, ResourceSelector};
use serde::{Serialize, Serializer, ser::SerializeStruct as _};
use sha2::{Digest, Sha256};

use entourage_model::object::{Meta, NamespacedName, ResourceId};
use entourage_scheduler::{Candidate, affinity, check};

/// The rules that apply to one copy, in order.
pub type Rules = Arc<[Arc<Rule>]>;

/// An OverridePolicy, or a ClusterOverridePolicy, compiled: read once when it is observed, shared by all copies.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The selectors; empty: all objects.
    pub selectors: Vec<ResourceSelector>,
    rules: Vec<Aimed>,
}

/// A rule and its target clusters.
#[derive(Clone, Debug, PartialEq)]
struct Aimed {
    target: Option<ClusterAffinity>,
    /// The form for Secrets: its record and version do not depend on the values that it sets; it sets the same values.
    to_secrets: Arc<Rule>,
    /// The form for all other objects.
    to_others: Arc<Rule>,
}

impl Policy {
    /// Compiles a policy from its name (without a namespace for a ClusterOverridePolicy), metadata and spec. The same
    /// generation of the same object makes an equal policy.
    ///
    /// Cost: O(size of the spec).
    #[must_use]
    pub fn new(name: &NamespacedName, meta: &Meta, spec: &OverrideSpec) -> Self {
        let mut rules = Vec::new();
        for (position, rule) in spec.override_rules.iter().enumerate() {
            let at = format!("spec.overrideRules[{position}]");
            rules.push(Aimed::new(
                name,
                meta,
                &at,
                rule.target_cluster.as_ref(),
                &rule.overriders,
            ));
        }
        // The deprecated pair applies if there are no rules.
        if rules.is_empty() && !spec.overriders.is_empty() {
            let target = spec.target_cluster.as_ref();
            rules.push(Aimed::new(name, meta, "spec", target, &spec.overriders));
        }
        Self {
            selectors: spec.resource_selectors.clone(),
            rules,
        }
    }

    /// True if it has no rule that would change anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.iter().all(|rule| rule.to_others.overriders.is_empty())
    }

    /// True if a rule applies on a cluster. A rule with an invalid target applies everywhere, and fails there.
    #[must_use]
    pub fn aims_at(&self, cluster: &Candidate<'_>) -> bool {
        self.rules.iter().any(|rule| rule.is_for(cluster))
    }

    /// True if a rule depends on labels or fields of clusters, so that a change of a Cluster may change the rules that apply.
    #[must_use]
    pub fn looks_at_clusters(&self) -> bool {
        let looks =
            |target: &ClusterAffinity| target.label_selector.is_some() || target.field_selector.is_some();
        self.rules
            .iter()
            .any(|rule| rule.target.as_ref().is_some_and(looks))
    }
}

impl Aimed {
    fn new(
        name: &NamespacedName,
        meta: &Meta,
        at: &str,
        target: Option<&ClusterAffinity>,
        overriders: &Overriders,
    ) -> Self {
        let bare = record::entry(&name.name, &record::without_values(overriders));
        let to_others = Rule {
            policy: name.clone(),
            at: at.to_owned(),
            overriders: Arc::new(overriders.clone()),
            unusable: target.and_then(|target| {
                let why = check::check_affinity(target).err()?;
                Some(format!("targetCluster.{why}"))
            }),
            record: record::entry(&name.name, overriders),
            record_for_secrets: bare.clone(),
            version: [0; 8],
        };
        let stated = match meta.content_generation() {
            Some(generation) => format!("g{generation}"),
            None => format!("v{}", meta.resource_version),
        };
        // Not part of the record, but it decides whether the rule can be applied.
        let mut content = vec![&*name.namespace, at, &*to_others.record];
        content.extend(to_others.unusable.as_deref());
        let version = digest(&content);
        Self {
            target: target.cloned(),
            to_secrets: Arc::new(Rule {
                version: digest(&[&name.namespace, at, &bare, &meta.uid, &stated]),
                ..to_others.clone()
            }),
            to_others: Arc::new(Rule { version, ..to_others }),
        }
    }

    fn is_for(&self, cluster: &Candidate<'_>) -> bool {
        let target = self.target.as_ref();
        self.to_others.unusable.is_some() || target.is_none_or(|target| affinity::selects(target, cluster))
    }

    /// The form of the rule for an object.
    fn rule_for(&self, id: &ResourceId) -> &Arc<Rule> {
        if record::is_secret(id) {
            &self.to_secrets
        } else {
            &self.to_others
        }
    }
}

fn digest(parts: &[&str]) -> [u8; 8] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let mut digest = [0; 8];
    digest.copy_from_slice(&hash.finalize()[..8]);
    digest
}

/// One rule of a policy. Neither `Debug` nor `Serialize` print the values that it sets: they may be meant for a Secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Rule {
    /// The policy; without a namespace it is a ClusterOverridePolicy.
    policy: NamespacedName,
    /// The path in the policy, such as `spec.overrideRules[0]`.
    at: String,
    overriders: Arc<Overriders>,
    /// The reason why it cannot be used: its targetCluster is invalid. Such a rule applies everywhere, and fails there: to
    /// leave it out would deliver objects without it.
    unusable: Option<String>,
    /// Its entry in the annotation, with and without the values that it sets.
    record: String,
    record_for_secrets: String,
    version: [u8; 8],
}

impl Rule {
    /// Changes whenever the rule does. It is stored, as part of a copy's source version: for a Secret it depends on the
    /// policy's uid and generation, never on the values, of which not even a digest may be stored.
    #[must_use]
    pub fn version(&self) -> [u8; 8] {
        self.version
    }

    /// The policy that it belongs to; without a namespace it is a ClusterOverridePolicy.
    #[must_use]
    pub fn policy(&self) -> &NamespacedName {
        &self.policy
    }

    fn is_cluster_wide(&self) -> bool {
        self.policy.namespace.is_empty()
    }

    /// True if it may change labels or annotations.
    pub fn touches_metadata(&self) -> bool {
        const METADATA: &str = "/metadata";
        let rules = &self.overriders;
        !rules.labels_overrider.is_empty()
            || !rules.annotations_overrider.is_empty()
            || rules
                .field_overrider
                .iter()
                .any(|each| each.field_path.starts_with(METADATA))
            || rules.plaintext.iter().any(|each| each.path.starts_with(METADATA))
            || rules.image_overrider.iter().any(|each| {
                let predicate = each.predicate.as_ref();
                predicate.is_some_and(|predicate| predicate.path.starts_with(METADATA))
            })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_cluster_wide() {
            write!(f, "ClusterOverridePolicy {} {}", self.policy.name, self.at)
        } else {
            write!(f, "OverridePolicy {} {}", self.policy, self.at)
        }
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kind = if self.is_cluster_wide() {
            "ClusterOverridePolicy"
        } else {
            "OverridePolicy"
        };
        let mut rule = serializer.serialize_struct("Rule", 4)?;
        rule.serialize_field("kind", kind)?;
        rule.serialize_field("namespace", &*self.policy.namespace)?;
        rule.serialize_field("name", &*self.policy.name)?;
        rule.serialize_field("rule", &self.at)?;
        rule.end()
    }
}
