//! Promotion: the template of an object that exists on a member, and the policy that keeps it where it is.
//!
//! The template has what a user wrote and nothing that belongs to the member: its copy there then equals the object, which is
//! taken over without being created again.

use std::fmt;

use entourage_api::{
    keys::{TRUE, label},
    names,
};
use serde_json::{Map, Value, json};

use crate::{
    interpreter,
    marks::{HUB_LABELS, is_mark},
    object::{Gvk, ResourceId},
    rendered::Rendered,
    reserved::{is_skipped_kind, is_skipped_namespace},
    scope,
};

pub mod claims;
mod overriding;
mod scaling;
mod stored;

pub use overriding::OverridePolicies;
pub use scaling::{SCALERS, retain_replicas, scaled_by};
pub use stored::{Altered, altered, different, differs};

/// The reason why an object does not become a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotPromotable {
    /// It is being deleted.
    Deleting,
    /// It is a service-account token.
    Token,
    /// Its kind or namespace is never propagated.
    Reserved,
    /// It is managed by this hub already.
    Managed,
    /// This hub makes it from a ResourceDistribution or a FederatedResourceQuota.
    Made,
    /// Another control plane manages it: the id of a hub, or empty if its metadata names none.
    ManagedByOther(String),
    /// It has a controller on the member, which would create or change it: `Kind name`.
    Owned(String),
}

impl fmt::Display for NotPromotable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deleting => f.write_str("it is being deleted"),
            Self::Token => f.write_str("service-account tokens are never propagated"),
            Self::Reserved => {
                f.write_str("its kind or namespace belongs to the system and is never propagated")
            }
            Self::Managed => f.write_str("it is managed by this hub already"),
            Self::Made => f.write_str(
                "it is managed by this hub already: a ResourceDistribution or a FederatedResourceQuota makes it",
            ),
            Self::ManagedByOther(hub) if hub.is_empty() => {
                f.write_str("another control plane manages it (label karmada.io/managed)")
            }
            Self::ManagedByOther(hub) => write!(
                f,
                "hub {hub} manages it; `entourage adopt` takes over the copies of a former hub"
            ),
            Self::Owned(owner) => write!(f, "it belongs to {owner}: promote that instead"),
        }
    }
}

/// Returns the template of an object as it is on a member. Cost: O(size of the object).
///
/// # Errors
/// The reason why it must not become a template of the hub with this id.
pub fn template(id: &ResourceId, live: &Value, hub: &str) -> Result<Rendered, NotPromotable> {
    let meta = &live["metadata"];
    if !meta["deletionTimestamp"].is_null() {
        return Err(NotPromotable::Deleting);
    }
    if interpreter::not_propagatable(live) {
        return Err(NotPromotable::Token);
    }
    let is_system = id.gvk.is_namespace() && is_skipped_namespace(&id.name);
    if is_skipped_kind(&id.gvk) || is_skipped_namespace(&id.namespace) || is_system {
        return Err(NotPromotable::Reserved);
    }
    if let Some(managed) = managed(meta, hub) {
        return Err(managed);
    }
    if let Some(owner) = controller(meta) {
        return Err(NotPromotable::Owned(owner));
    }
    Ok(Rendered(pruned(id, live)))
}

/// An object without what belongs to the server that it is on: what a user wrote.
#[must_use]
pub fn pruned(id: &ResourceId, live: &Value) -> Value {
    let mut template = live.clone();
    interpreter::common_prune(&mut template);
    if let Some(native) = interpreter::native(&id.gvk.group, &id.gvk.version, &id.gvk.kind) {
        native.prune(&mut template);
    }
    template["apiVersion"] = json!(id.gvk.api_version());
    template["kind"] = json!(&*id.gvk.kind);
    if let Some(meta) = template["metadata"].as_object_mut() {
        for field in ["labels", "annotations"] {
            if let Some(all) = meta.get_mut(field).and_then(Value::as_object_mut) {
                all.retain(|key, _| !is_mark(key));
            }
        }
        meta.retain(|_, value| !value.as_object().is_some_and(Map::is_empty));
    }
    template
}

/// The policy that places a template on one cluster, with its dependencies if `deps`. It has the controllers take over the
/// objects there, and nowhere else: a template that asked for it would do so wherever another policy, or a referrer, takes it.
#[must_use]
pub fn policy(id: &ResourceId, cluster: &str, name: &str, deps: bool) -> Value {
    let mut selector = json!({"apiVersion": id.gvk.api_version(), "kind": &*id.gvk.kind, "name": &*id.name});
    let mut metadata = json!({"name": name});
    let kind = if id.namespace.is_empty() {
        &scope::CLUSTER_POLICY
    } else {
        selector["namespace"] = json!(&*id.namespace);
        metadata["namespace"] = json!(&*id.namespace);
        &scope::POLICY
    };
    json!({
        "apiVersion": scope::POLICY_API, "kind": kind.kind, "metadata": metadata,
        "spec": {
            "resourceSelectors": [selector],
            "placement": {"clusterAffinity": {"clusterNames": [cluster]}},
            "propagateDeps": deps,
            "conflictResolution": "Overwrite",
        },
    })
}

/// The name of the policy if the user gives none.
#[must_use]
pub fn policy_name(gvk: &Gvk, name: &str) -> String {
    names::binding_name(&gvk.kind, name)
}

fn managed(meta: &Value, hub: &str) -> Option<NotPromotable> {
    let makers = HUB_LABELS
        .iter()
        .filter_map(|key| Some((*key, meta["labels"][*key].as_str()?)));
    let makers: Vec<(&str, &str)> = makers.collect();
    if let Some((_, other)) = makers.iter().find(|(_, maker)| *maker != hub) {
        return Some(NotPromotable::ManagedByOther((*other).to_owned()));
    }
    match makers.first() {
        Some((key, _)) if *key == label::HUB => Some(NotPromotable::Managed),
        Some(_) => Some(NotPromotable::Made),
        None => {
            let is_managed = meta["labels"][label::MANAGED] == TRUE;
            is_managed.then(|| NotPromotable::ManagedByOther(String::new()))
        }
    }
}

fn controller(meta: &Value) -> Option<String> {
    let mut owners = meta["ownerReferences"].as_array()?.iter();
    let owner = owners.find(|owner| owner["controller"] == true)?;
    let text = |field: &str| owner[field].as_str().unwrap_or_default();
    Some(format!("{} {}", text("kind"), text("name")))
}

#[cfg(test)]
mod tests;
