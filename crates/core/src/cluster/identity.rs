//! The identity of a member cluster: the uid of the namespace kube-system there, compared with `spec.id`.
//!
//! Invariants: nothing is written to or deleted from a member unless the cluster that responds is the one of its Cluster object,
//! and no older Cluster object has the same identity. A Cluster without an id gets that of the cluster that responds first.

use serde_json::json;

pub use crate::fleet::identities::check;
use crate::{
    cache::Member,
    fleet::Fleet,
    fleet::identities::objection,
    object::Str,
    observation::Server,
    plan::{Change, HubObject, Key, Plan, Verb},
};

/// Returns the plan of a key, unless it would change a member that must not be used. Cost: as [`objection`].
pub(crate) fn gate(fleet: &Fleet, key: &Key, plan: Plan) -> Plan {
    let Server::Member(cluster) = key.server() else {
        return plan;
    };
    if plan.changes.is_empty() {
        return plan;
    }
    match objection(fleet, &cluster) {
        Some(objection) => Plan::wait(objection.message(&cluster)),
        None => plan,
    }
}

/// Sets the id of the cluster that responds, if its Cluster has none.
pub(super) fn fill_in(name: &Str, member: &Member) -> Option<Plan> {
    let seen = member.id.as_ref()?;
    if !member.object.spec.id.is_empty() {
        return None;
    }
    let body = json!({
        "metadata": { "uid": &*member.meta.uid, "resourceVersion": &*member.meta.resource_version },
        "spec": { "id": &**seen },
    });
    Some(Plan::one(
        Change::Hub {
            object: HubObject::Cluster(name.clone()),
            verb: Verb::Merge(body),
        },
        "which cluster it is was not stored",
    ))
}
