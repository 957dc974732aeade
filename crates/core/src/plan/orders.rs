//! The data that changes of ResourceQuotas and Works are executed with.

use entourage_api::work::Resources;
use serde::Serialize;

use super::Preconditions;
use crate::{
    object::{NamespacedName, ResourceId, Str},
    render_spec::RenderSpec,
};

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
