//! Which Clusters stand for which physical cluster, and whether the one that answers is the one that is meant.

use std::collections::{BTreeMap, BTreeSet};

use entourage_api::keys::reason;

use super::{Index, Member};
use crate::object::{Str, Time};

/// The Clusters of each id, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Identities {
    by_id: BTreeMap<Str, BTreeSet<(Time, Str)>>,
    held: BTreeMap<Str, (Str, Time)>,
}

impl Identities {
    /// The oldest Cluster with this id: by creation, then by name. Cost: O(log Clusters).
    pub(crate) fn oldest(&self, id: &str) -> Option<&Str> {
        self.by_id.get(id)?.first().map(|(_, name)| name)
    }

    /// Takes in what a Cluster stands for now. Answers which Clusters stand, or stood, for the same. Cost: O(those).
    pub(crate) fn set(&mut self, name: &Str, id: Option<Str>, created: Time) -> BTreeSet<Str> {
        let now = id.map(|id| (id, created));
        let mut concerned = BTreeSet::new();
        if self.held.get(name) == now.as_ref() {
            return concerned;
        }
        if let Some((id, created)) = self.held.remove(name)
            && let Some(all) = self.by_id.get_mut(&id)
        {
            concerned.extend(all.iter().map(|(_, name)| name.clone()));
            all.remove(&(created, name.clone()));
            if all.is_empty() {
                self.by_id.remove(&id);
            }
        }
        if let Some((id, created)) = now {
            let all = self.by_id.entry(id.clone()).or_default();
            all.insert((created, name.clone()));
            concerned.extend(all.iter().map(|(_, name)| name.clone()));
            self.held.insert(name.clone(), (id, created));
        }
        concerned
    }
}

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
