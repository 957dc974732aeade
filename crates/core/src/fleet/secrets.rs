//! Allow-lists of Secrets: whether a Secret may be propagated to a cluster.
//!
//! The owner of a namespace limits where its Secrets go by an annotation on the Namespace of the hub ([`annotation::SECRETS_TO`]), and
//! the owner of a Secret by the same annotation on the Secret; where both have one, a cluster must be on both lists. Without either
//! a Secret is propagated as any other object. Invariants:
//!
//! - While the lists of a Secret are not known, or one of them cannot be read, nothing of it is sent and nothing of it is removed.
//! - A cluster that a list leaves out has no copy: none is written, and an existing one is deleted, also while workloads there need
//!   it. Its owner said so, as by the deletion of the Secret.
//!
//! Source: docs/decisions/0017-secrets-go-where-their-namespace-allows.md.

use entourage_api::keys::annotation;

use super::Fleet;
use crate::{
    allowed_clusters::AllowedClusters,
    distributed::observed::Spec,
    kinds::is_secret,
    object::{Gvk, ResourceId, Str, StrMap},
    observation::Watch,
};

/// The reason why a Secret is kept away from a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Withheld {
    /// A list does not list the cluster; the message for users.
    NotAllowed(String),
    /// A list cannot be read; the message for users.
    Unreadable(String),
    /// The namespace of the Secret, and so its list, is not known.
    Unknown,
}

impl Withheld {
    /// The message for users; `None` while the list is not known.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Self::NotAllowed(why) | Self::Unreadable(why) => Some(why),
            Self::Unknown => None,
        }
    }
}

/// The reason why an object is kept away from a cluster; `None` if it may be there. Cost: O(1) unless it is a Secret; else O(length of
/// its lists × labels of the Cluster).
pub(crate) fn withheld(fleet: &Fleet, id: &ResourceId, cluster: &str) -> Option<Withheld> {
    if !is_secret(&id.gvk) {
        return None;
    }
    let template = fleet.resource(id).and_then(|resource| resource.template.as_ref());
    let own = template.and_then(|template| template.meta.annotation(annotation::SECRETS_TO));
    withheld_by(fleet, id, own, cluster)
}

/// True if an allow-list keeps a Secret away from a cluster, so that an existing copy is to be deleted. Cost: as [`withheld`].
pub(crate) fn is_revoked(fleet: &Fleet, id: &ResourceId, cluster: &str) -> bool {
    matches!(withheld(fleet, id, cluster), Some(Withheld::NotAllowed(_)))
}

/// The same for the copy of a distribution: the lists of its source count. A Secret that is written into the distribution has no
/// namespace, and so no list. Cost: as [`withheld`].
pub(crate) fn withheld_copy(fleet: &Fleet, spec: &Spec, cluster: Option<&Str>) -> Option<Withheld> {
    let source = spec.source.as_ref().filter(|source| is_secret(&source.gvk))?;
    let seen = fleet.memory.distributions.source(source)?;
    withheld_by(fleet, source, seen.secrets_to.as_deref(), cluster?)
}

fn withheld_by(fleet: &Fleet, id: &ResourceId, own: Option<&str>, cluster: &str) -> Option<Withheld> {
    let namespace = fleet.cache.namespaces.hub.get(&id.namespace);
    if namespace.is_none() && !fleet.config.implied_namespaces {
        return Some(Withheld::Unknown);
    }
    let none = StrMap::default();
    let member = fleet.cache.members.get(cluster);
    let labels = member.map_or(&none, |member| &member.meta.labels);
    let of_namespace = namespace.and_then(|namespace| namespace.annotation(annotation::SECRETS_TO));
    let lists = [(of_namespace, true), (own, false)];
    let lists = lists.iter().filter_map(|(text, is_of_namespace)| {
        let list = AllowedClusters::read((*text)?);
        Some((list, *is_of_namespace))
    });
    let mut unreadable = None;
    for (list, is_of_namespace) in lists {
        let of = match is_of_namespace {
            true => format!("Namespace {}", id.namespace),
            false => "the Secret".to_owned(),
        };
        let key = annotation::SECRETS_TO;
        match list {
            Ok(list) if list.allows(cluster, labels) => {}
            Ok(_) => {
                return Some(Withheld::NotAllowed(format!(
                    "{id} may not be propagated to {cluster}: the annotation {key} of {of} does not list it; add the \
                     cluster, or a label of it, to the annotation, or place what needs the Secret elsewhere"
                )));
            }
            Err(why) => {
                unreadable.get_or_insert(Withheld::Unreadable(format!(
                    "{id} is neither written to {cluster} nor removed there: the annotation {key} of {of} cannot be \
                     read ({why}); write names of clusters, or labels like env=prod, with commas between them"
                )));
            }
        }
    }
    unreadable
}

impl Fleet {
    /// True if the allow-lists of a kind's objects were observed, so far as it has any. Cost: O(1).
    pub(crate) fn are_secret_lists_known(&self, gvk: &Gvk) -> bool {
        !is_secret(gvk) || self.cache.watches.is_listed(&Watch::Namespaces)
    }

    /// True if the allow-lists of namespaces, and the labels of Clusters, are synced: a removal because of them requires that. The
    /// sync of each of these watches plans distributions again, too.
    pub(crate) fn are_secret_lists_certain(&self) -> bool {
        self.cache.watches.is_synced(&Watch::Namespaces) && self.cache.watches.is_synced(&Watch::Clusters)
    }
}
