//! The kinds of the control plane that crates below the planners refer to.

use crate::object::Gvk;

/// The group and version of ResourceDistributions that is stored.
pub const DISTRIBUTION_API: &str = "apps.kruise.io/v1alpha1";

/// The kind of ResourceDistributions.
pub const DISTRIBUTION: &str = "ResourceDistribution";

/// The kind of ResourceDistributions, as a [`Gvk`].
#[must_use]
pub fn distribution() -> Gvk {
    Gvk::new(DISTRIBUTION_API, DISTRIBUTION)
}

/// The group and version of WorkloadRebalancers.
pub const REBALANCER_API: &str = "apps.karmada.io/v1alpha1";

/// The kind of WorkloadRebalancers.
pub const REBALANCER: &str = "WorkloadRebalancer";

/// The kind of WorkloadRebalancers, as a [`Gvk`].
#[must_use]
pub fn rebalancer() -> Gvk {
    Gvk::new(REBALANCER_API, REBALANCER)
}

/// The group and version of FederatedResourceQuotas.
pub const QUOTA_API: &str = "policy.karmada.io/v1alpha1";

/// The kind of FederatedResourceQuotas.
pub const QUOTA: &str = "FederatedResourceQuota";

/// The kind of FederatedResourceQuotas, as a [`Gvk`].
#[must_use]
pub fn quota() -> Gvk {
    Gvk::new(QUOTA_API, QUOTA)
}

/// The kind of the ResourceQuotas that members enforce.
#[must_use]
pub fn resource_quota() -> Gvk {
    Gvk::new("v1", "ResourceQuota")
}

/// The group and version of ServiceExports and ServiceImports.
pub const SERVICES_API: &str = "multicluster.x-k8s.io/v1alpha1";

/// The kind of ServiceExports.
#[must_use]
pub fn service_export() -> Gvk {
    Gvk::new(SERVICES_API, "ServiceExport")
}

/// The kind of ServiceImports.
#[must_use]
pub fn service_import() -> Gvk {
    Gvk::new(SERVICES_API, "ServiceImport")
}

/// The kind of Services.
#[must_use]
pub fn service() -> Gvk {
    Gvk::new("v1", "Service")
}

/// True if a kind is that of Secrets. Cost: O(1).
#[must_use]
pub fn is_secret(gvk: &Gvk) -> bool {
    gvk.group.is_empty() && *gvk.kind == *"Secret"
}

/// The kind of Secrets.
#[must_use]
pub fn secret() -> Gvk {
    Gvk::new("v1", "Secret")
}

/// The kind of EndpointSlices.
#[must_use]
pub fn endpoint_slice() -> Gvk {
    Gvk::new("discovery.k8s.io/v1", "EndpointSlice")
}

/// The group and version of Clusters.
pub const CLUSTER_API: &str = "cluster.karmada.io/v1alpha1";
