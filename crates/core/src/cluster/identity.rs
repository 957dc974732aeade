//! Which physical cluster a Cluster is: the uid of the namespace kube-system there, held against `spec.id`.
//!
//! Invariants: nothing is written to or removed from a member unless the cluster that answers is the one that its Cluster
//! stands for, and no older Cluster stands for it, too. A Cluster without an id gets that of the cluster that answers first.

use entourage_api::keys::reason;
use serde_json::json;

use crate::{
    index::{Index, Member},
    object::Str,
    observation::Server,
    plan::{Change, HubObject, Key, Plan, Verb},
};

/// Why a member is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Objection {
    /// Another physical cluster answers than the one with this id.
    Changed { stored: Str, seen: Str },
    /// An older Cluster stands for the same physical cluster.
    Conflict { older: Str },
}

impl Objection {
    /// The reason of the condition Ready.
    pub(crate) const fn reason(&self) -> &'static str {
        match self {
            Self::Changed { .. } => reason::CLUSTER_ID_CHANGED,
            Self::Conflict { .. } => reason::CLUSTER_ID_CONFLICT,
        }
    }

    /// For a person.
    pub(crate) fn message(&self, cluster: &str) -> String {
        match self {
            Self::Changed { stored, seen } => changed(cluster, stored, seen),
            Self::Conflict { older } => format!(
                "Cluster {older} stands for the same physical cluster and is older; nothing is written or removed through \
                 {cluster}. Delete one of the two"
            ),
        }
    }
}

/// Whether the cluster that answers is the one that a Cluster stands for. An empty `stored` is filled in later.
///
/// # Errors
/// For a person: another one answers.
pub fn check(cluster: &str, stored: &str, seen: &str) -> Result<(), String> {
    if stored.is_empty() || stored == seen {
        return Ok(());
    }
    Err(changed(cluster, stored, seen))
}

fn changed(cluster: &str, stored: &str, seen: &str) -> String {
    format!(
        "another physical cluster answers at the endpoint of {cluster}: the uid of its namespace kube-system is {seen}, \
         spec.id is {stored}; nothing is written or removed there. If that is meant, run `entourage join {cluster} --replace`"
    )
}

/// The id that a Cluster stands for: as stored, else that of the cluster that answers.
pub(crate) fn of(member: &Member) -> Option<Str> {
    match member.object.spec.id.as_str() {
        "" => member.id.clone(),
        stored => Some(stored.into()),
    }
}

/// Why nothing may be written to or removed from a member now. Cost: O(log Clusters).
pub(crate) fn objection(index: &Index, cluster: &str) -> Option<Objection> {
    let member = index.members.get(cluster)?;
    let stored = member.object.spec.id.as_str();
    if let Some(seen) = &member.id
        && check(cluster, stored, seen).is_err()
    {
        return Some(Objection::Changed {
            stored: stored.into(),
            seen: seen.clone(),
        });
    }
    let older = index.identities.oldest(&of(member)?)?;
    (**older != *cluster).then(|| Objection::Conflict { older: older.clone() })
}

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
