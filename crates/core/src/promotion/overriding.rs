//! The override policies that would change the copy of a new template: the object on the member would not stay as it is.

use entourage_api::policy::OverrideSpec;
use serde::Deserialize as _;
use serde_json::Value;

use crate::{
    object::{Meta, NamespacedName, ResourceId, StrMap},
    overrides::{Candidates, Policy, select},
    scheduler::Candidate,
};

/// The OverridePolicies and ClusterOverridePolicies of a hub.
#[derive(Clone, Debug, Default)]
pub struct OverridePolicies(Vec<(NamespacedName, Policy)>);

impl OverridePolicies {
    /// Reads the policies as stored. One that cannot be read has no effect; one that is being deleted has it until it is gone.
    #[must_use]
    pub fn new(policies: &[Value]) -> Self {
        let policy = |object: &Value| {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
            let name = NamespacedName::new(text("namespace"), text("name"));
            let spec = OverrideSpec::deserialize(&object["spec"]).ok()?;
            let policy = Policy::new(&name, &Meta::of(object), &spec);
            Some((name, policy))
        };
        Self(policies.iter().filter_map(policy).collect())
    }

    /// The first policy that changes the copy of a template on a cluster, as `Kind name`. Cost: O(policies).
    pub(super) fn of(&self, id: &ResourceId, labels: &StrMap, cluster: &Candidate<'_>) -> Option<String> {
        let changes = |(name, policy): &&(NamespacedName, Policy)| {
            let mut alone = Candidates::default();
            if name.namespace.is_empty() {
                alone.cluster_wide.push((name, policy));
            } else {
                alone.of_namespace.push((name, policy));
            }
            !select(&alone, id, labels, cluster).is_empty()
        };
        // Those of the cluster come first: they may set the labels by which the others select.
        let (wide, own): (Vec<_>, Vec<_>) = self.0.iter().partition(|(name, _)| name.namespace.is_empty());
        let (name, _) = wide.into_iter().chain(own).find(changes)?;
        let kind = if name.namespace.is_empty() {
            "ClusterOverridePolicy"
        } else {
            "OverridePolicy"
        };
        Some(format!("{kind} {name}"))
    }
}
