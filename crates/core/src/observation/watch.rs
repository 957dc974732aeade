//! The lists and watches.

use std::{
    cmp::Ordering,
    hash::{Hash, Hasher},
};

use super::services::ServicePart;
use crate::{
    interpreter::{Interpretation, hook::Contract},
    kinds,
    object::{Gvk, NamespacedName, Str},
    scope,
    server::Server,
};

/// The namespace of the hub with the Leases of agents. Source: Karmada reference 4.1; its agents know no other.
pub const LEASES: &str = "karmada-cluster";

/// One list-and-watch. The engine returns those it needs ([`crate::fleet::Fleet::demand`]); the shell keeps them open. Watches of
/// two versions of a kind differ.
#[derive(Clone, Debug)]
pub enum Watch {
    /// PropagationPolicies of the hub, whole objects.
    Policies,
    /// ClusterPropagationPolicies of the hub, whole objects.
    ClusterPolicies,
    /// OverridePolicies of the hub, whole objects.
    Overrides,
    /// ClusterOverridePolicies of the hub, whole objects.
    ClusterOverrides,
    /// ResourceBindings of the hub, whole objects.
    Bindings,
    /// ClusterResourceBindings of the hub, whole objects.
    ClusterBindings,
    /// Clusters of the hub, whole objects.
    Clusters,
    /// ResourceInterpreterCustomizations of the hub, whole objects.
    Customizations,
    /// ResourceInterpreterWebhookConfigurations or ResourceExploringWebhookConfigurations of the hub, whole objects.
    Hooks(Contract),
    /// ClusterTaintPolicies of the hub, whole objects.
    TaintPolicies,
    /// Namespaces of the hub, metadata.
    Namespaces,
    /// Namespaces of a member, metadata.
    MemberNamespaces(Str),
    /// Templates of a kind on the hub: whole objects for a kind that is interpreted, metadata for the others; token Secrets
    /// excluded.
    Templates(Gvk),
    /// Copies of a kind on a member that are managed by this hub (label `entourage.dev/hub` = the hub's id): metadata for kinds
    /// that have no status to report, whole objects for the others.
    Copies(Str, Gvk),
    /// ResourceDistributions of the hub, whole objects.
    Distributions,
    /// Objects of a kind and a name in all namespaces, of the hub or of a member, metadata: copies of a distribution, and
    /// unmanaged objects of the same name.
    Distributed(Option<Str>, Gvk, Str),
    /// WorkloadRebalancers of the hub, whole objects.
    Rebalancers,
    /// FederatedResourceQuotas of the hub, whole objects.
    Quotas,
    /// ResourceQuotas of a member that FederatedResourceQuotas of this hub made (label `entourage.dev/federated-quota` = the
    /// hub's id), whole objects.
    QuotaCopies(Str),
    /// PriorityClasses of the hub, reduced at once to their metadata and value; demanded once a policy has a `schedulePriority`.
    PriorityClasses,
    /// Works of the hub, whole objects, reduced at once to their metadata and a digest of their status; see
    /// [`crate::config::Config::mirror_works`].
    Works,
    /// Leases of the agents of clusters in Pull mode: those of the namespace [`LEASES`] of the hub, whole objects.
    Leases,
    /// Nodes of a member, whole objects; see [`crate::config::Config::model_resources`].
    Nodes(Str),
    /// Pods of a member, whole objects, reduced at once to their requests.
    Pods(Str),
    /// ServiceImports, Services or EndpointSlices of the hub, whole objects, reduced at once to what [`crate::services`] reads; see
    /// [`crate::config::Config::share_services`].
    ServiceParts(ServicePart),
    /// EndpointSlices of a member that belong to a Service that it exports, whole objects, reduced at once to their endpoints.
    Endpoints(Str, NamespacedName),
}

impl PartialEq for Watch {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Watch {}

impl PartialOrd for Watch {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Watch {
    fn cmp(&self, other: &Self) -> Ordering {
        let own = (self.parts(), self.service());
        own.cmp(&(other.parts(), other.service()))
    }
}

impl Hash for Watch {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.parts(), self.service()).hash(state);
    }
}

impl Watch {
    /// The fields that distinguish one watch from another.
    fn parts(&self) -> (u8, &str, Option<&Gvk>, &str) {
        match self {
            Self::Policies => (0, "", None, ""),
            Self::ClusterPolicies => (1, "", None, ""),
            Self::Overrides => (2, "", None, ""),
            Self::ClusterOverrides => (3, "", None, ""),
            Self::Bindings => (4, "", None, ""),
            Self::ClusterBindings => (5, "", None, ""),
            Self::Clusters => (6, "", None, ""),
            Self::Namespaces => (7, "", None, ""),
            Self::MemberNamespaces(cluster) => (8, cluster, None, ""),
            Self::Templates(gvk) => (9, "", Some(gvk), &gvk.version),
            Self::Copies(cluster, gvk) => (10, cluster, Some(gvk), &gvk.version),
            Self::Distributions => (11, "", None, ""),
            Self::Customizations => (13, "", None, ""),
            Self::Hooks(Contract::Interpreter) => (14, "", None, ""),
            Self::Hooks(Contract::Explorer) => (15, "", None, ""),
            Self::TaintPolicies => (16, "", None, ""),
            // The hub's before the members': no member has an empty name.
            Self::Distributed(cluster, gvk, name) => {
                (12, cluster.as_deref().unwrap_or_default(), Some(gvk), name)
            }
            Self::Rebalancers => (17, "", None, ""),
            Self::Works => (22, "", None, ""),
            Self::Leases => (24, "", None, ""),
            Self::Nodes(cluster) => (18, cluster, None, ""),
            Self::Pods(cluster) => (19, cluster, None, ""),
            Self::Quotas => (20, "", None, ""),
            Self::QuotaCopies(cluster) => (21, cluster, None, ""),
            Self::PriorityClasses => (23, "", None, ""),
            Self::ServiceParts(part) => (25, "", None, part.kind()),
            Self::Endpoints(cluster, _) => (26, cluster, None, ""),
        }
    }

    /// The Service whose endpoints it reads.
    const fn service(&self) -> Option<&NamespacedName> {
        match self {
            Self::Endpoints(_, service) => Some(service),
            _ => None,
        }
    }

    /// The API server it reads from.
    #[must_use]
    pub fn server(&self) -> Server {
        match self {
            Self::Copies(cluster, _)
            | Self::MemberNamespaces(cluster)
            | Self::Nodes(cluster)
            | Self::Pods(cluster)
            | Self::QuotaCopies(cluster)
            | Self::Endpoints(cluster, _)
            | Self::Distributed(Some(cluster), ..) => Server::Member(cluster.clone()),
            _ => Server::Hub,
        }
    }
}

/// The kind that a watch reads.
#[must_use]
pub fn kind_read_by(watch: &Watch) -> Gvk {
    match watch {
        Watch::Policies => Gvk::new(scope::POLICY_API, scope::POLICY.kind),
        Watch::ClusterPolicies => Gvk::new(scope::POLICY_API, scope::CLUSTER_POLICY.kind),
        Watch::Overrides => Gvk::new(scope::POLICY_API, "OverridePolicy"),
        Watch::ClusterOverrides => Gvk::new(scope::POLICY_API, "ClusterOverridePolicy"),
        Watch::Customizations => Gvk::new("config.karmada.io/v1alpha1", "ResourceInterpreterCustomization"),
        Watch::TaintPolicies => Gvk::new(scope::POLICY_API, "ClusterTaintPolicy"),
        Watch::Hooks(contract) => Gvk::new("config.karmada.io/v1alpha1", contract.configuration()),
        Watch::Bindings => Gvk::new(scope::BINDING_API, scope::BINDING.kind),
        Watch::ClusterBindings => Gvk::new(scope::BINDING_API, scope::CLUSTER_BINDING.kind),
        Watch::Clusters => Gvk::new(kinds::CLUSTER_API, "Cluster"),
        Watch::Namespaces | Watch::MemberNamespaces(_) => Gvk::new("v1", "Namespace"),
        Watch::Templates(gvk) | Watch::Copies(_, gvk) | Watch::Distributed(_, gvk, _) => gvk.clone(),
        Watch::Distributions => kinds::distribution(),
        Watch::Rebalancers => kinds::rebalancer(),
        Watch::Quotas => kinds::quota(),
        Watch::QuotaCopies(_) => kinds::resource_quota(),
        Watch::PriorityClasses => super::priority_class::gvk(),
        Watch::Works => super::work::gvk(),
        Watch::Leases => Gvk::new("coordination.k8s.io/v1", "Lease"),
        Watch::Nodes(_) => Gvk::new("v1", "Node"),
        Watch::Pods(_) => Gvk::new("v1", "Pod"),
        Watch::ServiceParts(part) => part.gvk(),
        Watch::Endpoints(..) => kinds::endpoint_slice(),
    }
}

/// True if a watch requests whole objects; the others request metadata. `interpretation` is that of its kind.
#[must_use]
pub fn is_whole(watch: &Watch, interpretation: &Interpretation) -> bool {
    match watch {
        Watch::Namespaces | Watch::MemberNamespaces(_) | Watch::Distributed(..) => false,
        Watch::Templates(gvk) => interpretation.is_interpreted(gvk),
        Watch::Copies(_, gvk) => interpretation.is_copied_whole(gvk),
        _ => true,
    }
}
