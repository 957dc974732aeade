//! Adoption of a former hub's copies, or of a Karmada's: which of them this hub takes over, and what changes in their metadata.
//!
//! A hub that is rebuilt from files has another id, so that the copies of the hub it replaces belong to another hub. An object
//! changes hands only if its metadata names the former hub and the cluster that it is in, and this hub has what it was made
//! from and wants it there. Everything else is left alone: nothing is adopted only to be removed next.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use entourage_api::keys::{annotation, label};
use serde_json::{Map, Value, json};

use crate::{
    member_namespace::{self, list},
    object::{Gvk, Meta, NamespacedName, ResourceId, Str, StrMap},
};

mod by_origin;
pub mod karmada;
mod state;
mod versions;

pub use crate::marks::HUB_LABELS;
pub use state::{Distributed, HubState, Placed};
pub use versions::{Preferred, Versions};

/// The annotations whose value begins with the id of a hub and the name of a cluster.
const RECORDS: &[&str] = &[annotation::CREATED_BY, annotation::RELEASED_FROM];

/// The former hub, this hub, and the cluster whose objects change hands.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// The id of the former hub.
    pub former: Str,
    /// The id of this hub.
    pub hub: Str,
    /// The name of the cluster on this hub.
    pub cluster: Str,
    /// The labels of the cluster's namespaces, which distributions select.
    pub namespaces: BTreeMap<Str, StrMap>,
}

/// The treatment of an object, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It becomes this hub's.
    Adopt,
    /// Left alone: this hub has nothing that it is a copy of.
    NoTemplate,
    /// Left alone: this hub has its template, and no binding of it.
    NoBinding,
    /// Left alone: the controllers have not scheduled its binding as it is, or have not made it for the template as it is.
    NotScheduled,
    /// Left alone: this hub has what it was made from, and does not want it on this cluster.
    NotPlaced(Origin),
    /// Left alone: its metadata names a binding, and that of its template has another name: the second one.
    OtherBinding(NamespacedName, NamespacedName),
    /// Left alone: labels and annotations that the former hub set, and that this hub's namespace lacks, would be removed next.
    WouldLose(Lost),
    /// Left alone: its metadata names another cluster. It was copied from there, or the cluster had that name.
    OtherCluster(Str),
    /// Left alone: it belongs to a third hub.
    OtherHub(Str),
    /// Left alone: it is being deleted.
    Deleting,
    /// It was taken over from this Karmada before.
    Adopted,
    /// It is this hub's without a record, and Karmada has a Work with it: it was taken over by `conflictResolution: Overwrite`, or is
    /// a namespace that a policy placed. It cannot be given back.
    Overwritten,
    /// Left alone: Karmada has no Work with it, and would not touch it either.
    NoWork,
    /// Left alone: Karmada has no binding of it: its Work was made by a user, or for a FederatedResourceQuota.
    NotOfBinding,
    /// Left alone: its permanent ids are not those that this Karmada has.
    OtherKarmada,
    /// Left alone: this hub would change the template of its Pods, at this path.
    WouldRestart(String),
    /// Left alone: this hub would change a workload, at this path, so that Pods are removed or a revision rolls out.
    WouldRemovePods(String),
    /// Left alone: this hub would delete or release it next.
    WouldBeRemoved,
    /// Left alone: what this hub would change is not known, and why.
    Unknown(String),
    /// It is given back to Karmada.
    Return,
    /// Left alone: it would not be safe with a Karmada that is started again.
    Hazardous(karmada::Hazard),
    /// Left alone: this hub did not take it over; it made it.
    NotAdopted,
}

/// The object of a hub that an object on a member was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A template, by its binding.
    Template,
    /// A ResourceDistribution.
    Distribution,
    /// A FederatedResourceQuota.
    Quota,
    /// A namespace.
    Namespace,
}

/// Keys of labels and annotations of a namespace, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Of labels.
    pub labels: Vec<String>,
    /// Of annotations.
    pub annotations: Vec<String>,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part =
            |of: &str, keys: &[String]| (!keys.is_empty()).then(|| format!("{of} {}", keys.join(", ")));
        let parts = [
            part("labels", &self.labels),
            part("annotations", &self.annotations),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(&parts.join(" and "))
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Adopt => f.write_str("adopt"),
            Self::NoTemplate => f.write_str("left alone: no template on this hub"),
            Self::NoBinding => f.write_str(
                "left alone: its template has no binding: no policy selects it, or the controllers have not made it yet",
            ),
            Self::NotScheduled => f.write_str(
                "left alone: its binding is not scheduled yet: see that the controllers run, then run the command again",
            ),
            Self::NotPlaced(origin) => f.write_str(match origin {
                Origin::Template => "left alone: its template is not scheduled to this cluster",
                Origin::Distribution => {
                    "left alone: its ResourceDistribution does not have this cluster and namespace as a target"
                }
                Origin::Quota => "left alone: its FederatedResourceQuota assigns nothing to this cluster",
                Origin::Namespace => "left alone: this hub does not propagate the namespace",
            }),
            Self::OtherBinding(theirs, ours) => {
                write!(
                    f,
                    "left alone: made for binding {theirs}, which is {ours} on this hub"
                )
            }
            Self::WouldLose(lost) => {
                write!(
                    f,
                    "left alone: would lose {lost}; set them on the hub's namespace first"
                )
            }
            Self::OtherCluster(name) => write!(f, "left alone: made for cluster {name}"),
            Self::OtherHub(id) => write!(f, "left alone: belongs to hub {id}"),
            Self::Deleting => f.write_str("left alone: it is being deleted"),
            Self::Adopted => f.write_str("adopted already"),
            Self::Overwritten => f.write_str(
                "this hub's without a record, and in a Work of Karmada: a namespace that a policy placed, or taken over by \
                 conflictResolution; --undo does not give it back",
            ),
            Self::NoWork => f.write_str("left alone: Karmada has no Work of it"),
            Self::NotOfBinding => {
                f.write_str("left alone: its Work has no binding: a Work of a user, or of a FederatedResourceQuota")
            }
            Self::OtherKarmada => {
                f.write_str("left alone: its permanent ids are not those of this Karmada's Work and binding")
            }
            Self::WouldRestart(path) => {
                write!(f, "left alone: this hub would change {path}: Pods would restart; --allow-restarts adopts it")
            }
            Self::WouldRemovePods(path) => write!(
                f,
                "left alone: this hub would change {path}: Pods may be removed, or a revision rolled out; --allow-restarts adopts it"
            ),
            Self::WouldBeRemoved => f.write_str("left alone: this hub would remove it next"),
            Self::Unknown(why) => {
                write!(f, "left alone: what this hub would change is not known: {why}; --allow-unknown adopts it")
            }
            Self::Return => f.write_str("give back"),
            Self::Hazardous(hazard) => write!(f, "left alone: {hazard}"),
            Self::NotAdopted => f.write_str("left alone: this hub made it; Karmada does not have it"),
        }
    }
}

/// Decides on one object of a member. `None` if no hub but this one has a mark on it. Cost: O(labels and annotations);
/// O(bindings) for a copy whose metadata names a binding that is not its template's.
#[must_use]
pub fn decide(state: &HubState, transfer: &Transfer, id: &ResourceId, live: &Meta) -> Option<Decision> {
    let holders = holders(id, live);
    if !holders.contains(&*transfer.former) {
        let other = holders.into_iter().find(|hub| **hub != *transfer.hub)?;
        return Some(Decision::OtherHub(other.into()));
    }
    if live.deleting.is_some() {
        return Some(Decision::Deleting);
    }
    let is_former = |label: &&&str| live.label(label) == Some(&transfer.former);
    Some(match HUB_LABELS.iter().find(is_former) {
        Some(&label::FEDERATED_QUOTA) => by_origin::of_quota(state, transfer, id, live),
        Some(&label::DISTRIBUTED_BY) => by_origin::of_distribution(state, transfer, id, live),
        Some(_) => by_origin::of_binding(state, transfer, id, live),
        // Without a mark: a namespace that no policy placed, or a claim that was released because it holds data.
        None if id.gvk.is_namespace() => by_origin::of_namespace(state, transfer, id, live),
        None => by_origin::of_released_claim(state, transfer, id, live),
    })
}

/// True if objects of a kind may have records of a hub in annotations alone, so that no selector finds them.
#[must_use]
pub fn has_records(gvk: &Gvk) -> bool {
    gvk.is_namespace() || gvk.is_claim()
}

/// The ids of the hubs that have marks on an object: its makers, and for a namespace or a claim those with records on it.
#[must_use]
pub fn holders<'a>(id: &ResourceId, live: &'a Meta) -> BTreeSet<&'a str> {
    let mut all: BTreeSet<&str> = HUB_LABELS.iter().filter_map(|key| live.label(key)).collect();
    if has_records(&id.gvk) {
        let lists = live.annotations.keys();
        all.extend(lists.filter_map(|key| key.strip_prefix(annotation::MANAGED_BY_PREFIX)));
        let records = RECORDS.iter().filter_map(|key| live.annotation(key));
        all.extend(records.filter_map(|record| record.split('/').next()));
    }
    all
}

/// The merge patch of exactly this version of an object that makes it this hub's: the former hub's id is replaced in labels and
/// records, nothing else changes.
#[must_use]
pub fn patch(transfer: &Transfer, live: &Meta) -> Value {
    let Transfer {
        former, hub, cluster, ..
    } = transfer;
    let labels: Map<String, Value> = HUB_LABELS
        .iter()
        .filter(|key| live.label(key) == Some(former))
        .map(|key| ((*key).to_owned(), json!(&**hub)))
        .collect();
    let mut annotations = Map::new();
    for key in RECORDS {
        if let Some(record) = live.annotation(key)
            && member_namespace::is_of(record, former, cluster)
        {
            let rest = record.strip_prefix(&**former).unwrap_or_default();
            annotations.insert((*key).to_owned(), json!(format!("{hub}{rest}")));
        }
    }
    if live.annotation(&list::key(former)).is_some() {
        annotations.insert(list::key(former), Value::Null);
        annotations.insert(list::key(hub), json!(list::merged(live, (hub, former))));
    }
    json!({"metadata": {
        "uid": &*live.uid, "resourceVersion": &*live.resource_version, "labels": labels, "annotations": annotations,
    }})
}

#[cfg(test)]
mod tests;
