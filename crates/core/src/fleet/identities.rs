//! The identity check of a member: the cluster that responds must be the one that its Cluster stands for.

use entourage_api::keys::reason;

use super::Fleet;
use crate::{memory::identities, object::Str};

/// The reason why a member is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Objection {
    /// Another physical cluster responds than the one with this id.
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

    /// The message for the user.
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

/// Checks that the cluster that responds is the one that a Cluster stands for. An empty `stored` is filled in later.
///
/// # Errors
/// Another cluster responds; the message is for the user.
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

/// The reason why nothing may be written to or removed from a member now. Cost: O(log Clusters).
pub(crate) fn objection(fleet: &Fleet, cluster: &str) -> Option<Objection> {
    let member = fleet.cache.members.get(cluster)?;
    let stored = member.object.spec.id.as_str();
    if let Some(seen) = &member.id
        && check(cluster, stored, seen).is_err()
    {
        return Some(Objection::Changed {
            stored: stored.into(),
            seen: seen.clone(),
        });
    }
    let older = fleet.memory.identities.oldest(&identities::of(member)?)?;
    (**older != *cluster).then(|| Objection::Conflict { older: older.clone() })
}
