//! Which physical cluster a Cluster is: the uid of the namespace kube-system there, held against `spec.id`.
//!
//! Invariants: nothing is written to or removed from a member unless the cluster that answers is the one that its Cluster
//! stands for, and no older Cluster stands for it, too. A Cluster without an id gets that of the cluster that answers first.

use serde_json::json;

pub use crate::index::identities::check;
use crate::{
    index::{Index, Member, identities::objection},
    object::Str,
    observation::Server,
    plan::{Change, HubObject, Key, Plan, Verb},
};

/// The plan of a key, unless it would change a member that is not to be used. Cost: as [`objection`].
pub(crate) fn gate(index: &Index, key: &Key, plan: Plan) -> Plan {
    let Server::Member(cluster) = key.server() else {
        return plan;
    };
    if plan.changes.is_empty() {
        return plan;
    }
    match objection(index, &cluster) {
        Some(objection) => Plan::wait(objection.message(&cluster)),
        None => plan,
    }
}

/// Fills in the id of the cluster that answers, where its Cluster has none.
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
