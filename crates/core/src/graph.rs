//! The graph: relations between objects, derived from the cache and kept up to date with each change.
//!
//! The reverse directions make an event cost what it affects: dependency → referrers, policy → templates that it claims.

pub(crate) mod closure;
mod links;
mod named_kinds;
mod override_index;
mod policy_index;
mod referrers;
mod scaling;
mod secret_lists;
mod workload_groups;

use std::collections::{BTreeMap, BTreeSet};

use links::LinkTable;
pub use links::Links;
pub(crate) use named_kinds::{NamedKinds, selected_kinds};
pub(crate) use override_index::{OverrideIndex, Reach};
pub(crate) use policy_index::PolicyIndex;
pub use referrers::Referrers;
pub(crate) use scaling::Scaling;
pub(crate) use secret_lists::SecretLists;
pub(crate) use workload_groups::{GroupRule, Membership, WorkloadGroups};

use crate::{
    interpreter::Interpreter,
    object::{Gvk, NamespacedName, ResourceId, Str},
};

/// The relations between objects.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// The references of templates, in both directions.
    pub(crate) links: LinkTable,
    /// Binding → template. Never parsed from a name.
    pub(crate) by_binding: BTreeMap<NamespacedName, ResourceId>,
    /// Template → policies that may select it.
    pub(crate) policy_index: PolicyIndex,
    /// Template → override policies that may select it.
    pub(crate) override_index: OverrideIndex,
    /// Policy → templates or bindings that carry its claim.
    pub(crate) claimed: BTreeMap<NamespacedName, BTreeSet<ResourceId>>,
    /// Workload group → bindings that are its members, as stored.
    pub(crate) workload_groups: WorkloadGroups,
    /// Workload → autoscalers that scale it, and autoscaler → workloads that are labelled because of it.
    pub(crate) scaling: Scaling,
    /// Namespace → templates of other namespaces that refer to something in it; the empty name stands for cluster-scoped objects.
    pub(crate) cross_namespace_referrers: BTreeMap<Str, BTreeSet<ResourceId>>,
    /// The allow-lists of Secrets that depend on labels of Clusters.
    pub(crate) secret_lists: SecretLists,
    /// (kind, namespace) → templates that select objects of it by label.
    pub(crate) selectors: BTreeMap<(Gvk, Str), BTreeSet<ResourceId>>,
    /// The kinds in use, each in the version that is watched.
    pub(crate) kinds: BTreeSet<Gvk>,
    /// The kinds that policies select.
    pub(crate) named_kinds: NamedKinds,
    /// Customizations and hooks, merged for each kind.
    pub(crate) interpreter: Interpreter,
    /// The kinds whose interpretation changed, until their templates are listed again: their earlier references count.
    pub(crate) read_again: BTreeSet<Gvk>,
}
