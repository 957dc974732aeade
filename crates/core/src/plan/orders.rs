//! The data that changes of copies of distributions, of ResourceQuotas and of Works are executed with.

use std::sync::Arc;

use entourage_api::work::{Component, ReplicaRequirements, Resources};
use serde::Serialize;

use super::{Evidence, Preconditions, RemovalMode};
use crate::{
    distributed::render,
    object::{NamespacedName, ResourceId, Str, Time},
    places::Place,
    render_spec::RenderSpec,
};

/// The data that a copy of a distribution is applied with.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Order {
    /// The distribution.
    pub distribution: Str,
    /// The server and namespace of the copy.
    pub place: Place,
    /// The copy's id.
    pub id: ResourceId,
    /// The data it is rendered with.
    pub render_spec: render::DistributionRenderSpec,
    /// The object that is distributed, if it is a separate object; else it is embedded in the distribution.
    pub source: Option<ResourceId>,
    /// The object at the target as last observed; `None` creates it.
    pub live: Option<Preconditions>,
    /// True if it must be read before it is written.
    pub read_first: bool,
    /// True if it may be deleted and created again where an update cannot change it.
    pub may_recreate: bool,
    /// True if it may be written; else it is only compared.
    pub may_write: bool,
}

/// The data that a copy of a distribution is removed with.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WithdrawalOrder {
    /// The distribution.
    pub distribution: Str,
    /// The distribution's uid.
    pub uid: Str,
    /// The server and namespace of the copy.
    pub place: Place,
    /// The copy's id.
    pub id: ResourceId,
    /// The uid and resourceVersion of exactly this object; no other object is changed.
    pub preconditions: Preconditions,
    /// Delete or release.
    pub mode: RemovalMode,
    /// The objects that the removal was decided from. Empty if the distribution is being deleted: that cannot be undone.
    pub evidence: Vec<Evidence>,
}

/// The data that the ResourceQuota of a FederatedResourceQuota is applied with.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QuotaOrder {
    /// The quota; the ResourceQuota has its namespace and name.
    pub quota: NamespacedName,
    /// The member.
    pub cluster: Str,
    /// The id of this hub.
    pub hub: Str,
    /// The limits.
    pub hard: Resources,
}

/// A question to estimators.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EstimateOrder {
    /// The requirements in one word: the outcome repeats it.
    pub key: Str,
    /// The time of the question: the outcome repeats it.
    pub asked: Time,
    /// The requirements of one replica; `None` for a workload without any, and for a set.
    pub requirements: Option<Arc<ReplicaRequirements>>,
    /// The set that is asked about; `None` for replicas.
    pub set: Option<ComponentSet>,
    /// The members whose estimators are asked.
    pub clusters: Vec<Str>,
}

/// The components of a workload that are placed together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComponentSet {
    /// The components.
    pub components: Arc<[Component]>,
    /// The namespace whose quotas count.
    pub namespace: Str,
}

/// The data that the Work of a copy is written with.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkOrder {
    /// The copy's id.
    pub id: ResourceId,
    /// The member.
    pub cluster: Str,
    /// The data the copy is rendered with.
    pub render_spec: RenderSpec,
    /// The version that it is rendered from.
    pub source: Str,
    /// The Work as last observed; `None` creates it.
    pub live: Option<Preconditions>,
    /// Its finalizers without Karmada's, which no controller removes any more; `None` if it has not that one.
    pub finalizers: Option<Vec<Str>>,
    /// `spec.preserveResourcesOnDeletion`.
    pub preserves: bool,
    /// True to suspend it because its binding is, false to end that, `None` to leave it.
    pub suspend: Option<bool>,
}
