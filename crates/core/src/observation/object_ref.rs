//! The id of an object that an event is about, and the watch that reports it; the id of the workload that an autoscaler scales.

use serde_json::Value;

use super::{Watch, services::ServicePart};
use crate::{
    interpreter::{NativeKind, hook::Contract},
    object::{Gvk, NamespacedName, ResourceId, Str},
};

/// The id of the object that an event is about, without the object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectRef {
    /// A PropagationPolicy.
    Policy(NamespacedName),
    /// An OverridePolicy or a ClusterOverridePolicy.
    Override(NamespacedName),
    /// A ResourceInterpreterCustomization.
    Customization(Str),
    /// A configuration of hooks.
    Hooks(Contract, Str),
    /// A ClusterTaintPolicy.
    TaintPolicy(Str),
    /// A ResourceBinding.
    Binding(NamespacedName),
    /// A Cluster.
    Cluster(Str),
    /// A template on the hub.
    Template(ResourceId),
    /// A copy on a member.
    Copy(Str, ResourceId),
    /// A namespace: of a member, or of the hub.
    Namespace(Option<Str>, Str),
    /// A ResourceDistribution.
    Distribution(Str),
    /// An object, on the hub or on a member, with the name of a distribution's copies.
    Distributed(Option<Str>, ResourceId),
    /// A WorkloadRebalancer.
    Rebalancer(Str),
    /// A FederatedResourceQuota.
    Quota(NamespacedName),
    /// A ResourceQuota of a member that a FederatedResourceQuota made.
    QuotaCopy(Str, NamespacedName),
    /// A PriorityClass.
    PriorityClass(Str),
    /// A Work.
    Work(NamespacedName),
    /// The Lease of the agent of a cluster in Pull mode.
    Lease(Str),
    /// A node of a member.
    Node(Str, Str),
    /// A pod of a member, by a number made of its namespace and name.
    Pod(Str, u64),
    /// A part of a Service of other clusters, on the hub.
    ServicePart(ServicePart, NamespacedName),
    /// An EndpointSlice of a Service that a member exports: the member, the Service, its name.
    Endpoints(Str, NamespacedName, Str),
}

impl ObjectRef {
    /// The watch that reports the object.
    pub(crate) fn watch(&self) -> Watch {
        let scoped = |name: &NamespacedName, namespaced, cluster_scoped| match name.namespace.is_empty() {
            true => cluster_scoped,
            false => namespaced,
        };
        match self {
            Self::Policy(name) => scoped(name, Watch::Policies, Watch::ClusterPolicies),
            Self::Override(name) => scoped(name, Watch::Overrides, Watch::ClusterOverrides),
            Self::Binding(name) => scoped(name, Watch::Bindings, Watch::ClusterBindings),
            Self::Customization(_) => Watch::Customizations,
            Self::Hooks(contract, _) => Watch::Hooks(*contract),
            Self::TaintPolicy(_) => Watch::TaintPolicies,
            Self::Cluster(_) => Watch::Clusters,
            Self::Template(id) => Watch::Templates(id.gvk.clone()),
            Self::Copy(cluster, id) => Watch::Copies(cluster.clone(), id.gvk.clone()),
            Self::Namespace(None, _) => Watch::Namespaces,
            Self::Namespace(Some(cluster), _) => Watch::MemberNamespaces(cluster.clone()),
            Self::Distribution(_) => Watch::Distributions,
            Self::Distributed(cluster, id) => {
                Watch::Distributed(cluster.clone(), id.gvk.clone(), id.name.clone())
            }
            Self::Rebalancer(_) => Watch::Rebalancers,
            Self::Quota(_) => Watch::Quotas,
            Self::QuotaCopy(cluster, _) => Watch::QuotaCopies(cluster.clone()),
            Self::PriorityClass(_) => Watch::PriorityClasses,
            Self::Work(_) => Watch::Works,
            Self::Lease(_) => Watch::Leases,
            Self::Node(cluster, _) => Watch::Nodes(cluster.clone()),
            Self::Pod(cluster, _) => Watch::Pods(cluster.clone()),
            Self::ServicePart(part, _) => Watch::ServiceParts(*part),
            Self::Endpoints(cluster, service, _) => Watch::Endpoints(cluster.clone(), service.clone()),
        }
    }
}

/// The workload that an object scales, in its own namespace; `None` if it is no autoscaler.
pub(super) fn scale_target(
    native: &dyn NativeKind,
    id: &ResourceId,
    object: &Value,
) -> Option<Box<ResourceId>> {
    let (target, name) = native.scale_target(object)?;
    let gvk = Gvk {
        group: target.group.into(),
        version: target.version.into(),
        kind: target.kind.into(),
    };
    Some(Box::new(ResourceId::new(gvk, &id.namespace, name)))
}
