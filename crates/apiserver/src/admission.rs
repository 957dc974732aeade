//! The admission plugins of a cluster, which act on writes beside the rules of each kind: limit ranges, quotas, runtime
//! classes, pod security, certificates, policies and webhooks.
//!
//! Costs: one list of the limit ranges or the quotas of the namespace for each create.

pub(crate) mod certificates;
mod limits;
pub(crate) mod policies;
pub(crate) mod quota;
pub(crate) mod request;
mod runtime;
pub(crate) mod webhooks;

pub(crate) use quota::{Charged, refund};

use std::sync::Arc;

use jiff::Timestamp;

use crate::{
    kinds::pod_security,
    object::{Object, field},
    resource::{Kinds, Resource, Surroundings, about},
    status::{Result, Status},
    store::Store,
};

/// The view of the cluster for admission and deletions.
pub(crate) trait Context: Surroundings + std::fmt::Debug + Send + Sync {
    /// The kinds served now.
    fn kinds(&self) -> Arc<Kinds>;

    /// The objects.
    fn store(&self) -> &Store;

    /// The clock.
    fn timestamp(&self) -> Timestamp;
}

/// Fills in the defaults of the namespace's limit ranges and what its runtime class says, before the kind prepares the object.
pub(crate) fn fill(cluster: &dyn Context, resource: &Resource, object: &mut Object) -> Result<()> {
    if !is(resource, "Pod") {
        return Ok(());
    }
    limits::fill(cluster, object);
    if !cluster.has_default_classes() {
        return Ok(());
    }
    let name = field(object, "name").to_owned();
    runtime::fill(cluster, object).map_err(|why| Status::forbidden(about(resource, &name), &why))
}

/// Charges the quotas for what an update asks for beyond what the object had, or refuses it.
pub(crate) fn admit_update(
    cluster: &dyn Context,
    resource: &Resource,
    subresource: &str,
    [new, old]: [&Object; 2],
    dry_run: bool,
) -> Result<Charged> {
    let counts = resource.group.is_empty()
        && matches!(
            (resource.kind.as_str(), subresource),
            ("PersistentVolumeClaim" | "Service", "") | ("Pod", "resize")
        );
    if !counts {
        return Ok(Charged::default());
    }
    let refused = |why: String| Status::forbidden(about(resource, field(new, "name")), &why);
    quota::charge(cluster, resource, new, Some(old), dry_run).map_err(refused)
}

/// Refuses a valid object that goes beyond a limit range, a quota or its namespace's pod security, and charges the quotas
/// unless `dry_run`. Returns warnings, and what was charged.
pub(crate) fn admit(
    cluster: &dyn Context,
    resource: &Resource,
    object: &Object,
    dry_run: bool,
) -> Result<(Vec<String>, Charged)> {
    if !resource.namespaced {
        return Ok(Default::default());
    }
    let refused = |why: String| Status::forbidden(about(resource, field(object, "name")), &why);
    if is(resource, "Pod") || is(resource, "PersistentVolumeClaim") {
        limits::check(cluster, &resource.kind, object).map_err(refused)?;
    }
    let warnings = security(cluster, resource, object).map_err(refused)?;
    let charged = quota::charge(cluster, resource, object, None, dry_run).map_err(refused)?;
    Ok((warnings, charged))
}

/// Refuses Pods that violate the level that their namespace enforces; returns its warnings, for workloads too.
fn security(
    cluster: &dyn Context,
    resource: &Resource,
    object: &Object,
) -> std::result::Result<Vec<String>, String> {
    let Some(spec) = resource.pod_spec(object) else {
        return Ok(Vec::new());
    };
    let Some(namespace) = cluster.get("namespaces", field(object, "namespace")) else {
        return Ok(Vec::new());
    };
    if resource.kind == "Pod"
        && let Some(why) = pod_security::violation(&namespace, "enforce", spec)
    {
        return Err(why.replacen("violate", "violates", 1));
    }
    let warning = pod_security::violation(&namespace, "warn", spec);
    Ok(warning.map(|why| format!("would {why}")).into_iter().collect())
}

fn is(resource: &Resource, kind: &str) -> bool {
    resource.group.is_empty() && resource.kind == kind
}
