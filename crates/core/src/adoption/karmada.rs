//! Adoption of the copies of a Karmada that exists: which of them this hub takes over, and how they are given back.
//!
//! A copy of Karmada has every mark by which a hub proves ownership but the hub's id. It is Karmada's only if its permanent ids are
//! those of the Work and the binding that Karmada stores: names alone may be equal by chance, ids are not. What adopts a copy also
//! records these ids on it, because the controllers replace them by their own, and what gives it back needs them.

mod hazard;
mod lease_watch;
mod next;
mod retirement;
mod state;

use entourage_api::keys::{TRUE, annotation, label};
use serde_json::{Value, json};

use super::{Decision, HubState, Transfer, by_origin};
use crate::{
    marks,
    object::{Meta, NamespacedName, ResourceId, Str},
    ownership::names_cluster,
    scope,
};

pub use hazard::{Hazard, hazard, hazards};
pub use lease_watch::{LeaseRecord, LeaseWatch, Renewed};
pub use next::{Allowed, Next, next};
pub use retirement::{Retired, Retirement, Stay, retirement, retiring_patch};
pub use state::{Karmada, KarmadaBinding, KarmadaCluster, KarmadaPolicy, Stored, Work};

/// The ids that a copy had before it was adopted.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    karmada: Str,
    work: Str,
    binding: Str,
}

impl Record {
    fn on(live: &Meta) -> Option<Self> {
        let mut parts = live.annotation(annotation::ADOPTED_FROM)?.split('/');
        let mut next = || parts.next().filter(|part| !part.is_empty()).map(Str::from);
        Some(Self {
            karmada: next()?,
            work: next()?,
            binding: next()?,
        })
    }
}

/// Decides on one object of a member. `None` if it is no copy of Karmada: this hub made it, say. Cost: as
/// [`super::decide`].
#[must_use]
pub fn decide(
    state: &HubState,
    karmada: &Karmada,
    transfer: &Transfer,
    id: &ResourceId,
    live: &Meta,
) -> Option<Decision> {
    if is_of_hub(live, transfer) {
        let Some(record) = Record::on(live) else {
            return karmada
                .has_on(&transfer.cluster, id)
                .then_some(Decision::Overwritten);
        };
        return (record.karmada == karmada.id).then_some(Decision::Adopted);
    }
    if live.label(label::MANAGED) != Some(TRUE) {
        return None;
    }
    // A namespace that no policy placed: each hub merges its metadata into it, whoever else does.
    let owner = marks::owner(live);
    if id.gvk.is_namespace() && owner.is_none() {
        return None;
    }
    if let Some(other) = live.label(label::HUB) {
        return Some(Decision::OtherHub(other.into()));
    }
    if live.deleting.is_some() {
        return Some(Decision::Deleting);
    }
    if !names_cluster(live, &transfer.cluster) {
        return Some(by_origin::other_cluster(live));
    }
    let refused = refusal(karmada, id, live, owner.as_ref());
    Some(refused.unwrap_or_else(|| by_origin::of_binding(state, transfer, id, live)))
}

/// The reason why an object that names this cluster is no copy that this Karmada has there.
fn refusal(
    karmada: &Karmada,
    id: &ResourceId,
    live: &Meta,
    owner: Option<&NamespacedName>,
) -> Option<Decision> {
    let work = work_of(karmada, live).filter(|(_, work)| work.objects.contains(id));
    let Some((_, work)) = work else {
        return Some(Decision::NoWork);
    };
    let Some(binding) = &work.binding else {
        return Some(Decision::NotOfBinding);
    };
    let stored = karmada.bindings.get(binding).map(|binding| &*binding.id);
    let is_same = |one: Option<&str>, other: &Str| !other.is_empty() && one == Some(&**other);
    let is_its = owner == Some(binding)
        && is_same(live.label(label::WORK_ID), &work.id)
        && is_same(live.label(id_label(binding)), &work.binding_id)
        && is_same(stored, &work.binding_id);
    (!is_its).then_some(Decision::OtherKarmada)
}

/// The merge patch of exactly this version of a copy that makes it this hub's, and records the ids by which it is given back.
/// Nothing else changes.
#[must_use]
pub fn patch(karmada: &Karmada, transfer: &Transfer, live: &Meta) -> Value {
    let of_binding = marks::owner(live).and_then(|owner| live.label(id_label(&owner)));
    let record = format!(
        "{}/{}/{}",
        karmada.id,
        live.label(label::WORK_ID).unwrap_or_default(),
        of_binding.unwrap_or_default()
    );
    json!({"metadata": {
        "uid": &*live.uid, "resourceVersion": &*live.resource_version,
        "labels": {label::HUB: &*transfer.hub}, "annotations": {annotation::ADOPTED_FROM: record},
    }})
}

/// Decides whether one object of a member is given back. `None` if it is not this hub's. What Karmada would delete when it is
/// started stays this hub's.
#[must_use]
pub fn decide_return(
    karmada: &Karmada,
    transfer: &Transfer,
    id: &ResourceId,
    live: &Meta,
) -> Option<Decision> {
    if !is_of_hub(live, transfer) {
        return None;
    }
    let Some(record) = Record::on(live) else {
        let is_held = karmada.has_on(&transfer.cluster, id);
        return Some(if is_held {
            Decision::Overwritten
        } else {
            Decision::NotAdopted
        });
    };
    if record.karmada != karmada.id {
        return Some(Decision::OtherKarmada);
    }
    if live.deleting.is_some() {
        return Some(Decision::Deleting);
    }
    if !names_cluster(live, &transfer.cluster) {
        return Some(by_origin::other_cluster(live));
    }
    let is_its = |(_, work): &(_, &Work)| work.objects.contains(id) && work.id == record.work;
    let Some((name, work)) = work_of(karmada, live).filter(is_its) else {
        return Some(Decision::NoWork);
    };
    let made_again = || {
        let owner = work.binding.clone()?;
        (work.binding_id != record.binding && !work.preserves).then_some(Hazard::OtherBinding(owner))
    };
    let hazard = hazard(karmada, name, work).or_else(made_again);
    Some(hazard.map_or(Decision::Return, Decision::Hazardous))
}

/// The merge patch of exactly this version of a copy that gives it back: this hub's id goes, and the ids of Karmada are as they were.
#[must_use]
pub fn return_patch(live: &Meta) -> Value {
    let mut labels = json!({label::HUB: null});
    if let (Some(record), Some(owner)) = (Record::on(live), marks::owner(live)) {
        labels[label::WORK_ID] = json!(&*record.work);
        labels[id_label(&owner)] = json!(&*record.binding);
    }
    json!({"metadata": {
        "uid": &*live.uid, "resourceVersion": &*live.resource_version,
        "labels": labels, "annotations": {annotation::ADOPTED_FROM: null},
    }})
}

fn is_of_hub(live: &Meta, transfer: &Transfer) -> bool {
    live.label(label::HUB) == Some(&*transfer.hub)
}

/// The Work that the metadata of an object names.
fn work_of<'a>(karmada: &'a Karmada, live: &Meta) -> Option<(&'a NamespacedName, &'a Work)> {
    let namespace = live.annotation(annotation::WORK_NAMESPACE)?;
    let name = live.annotation(annotation::WORK_NAME)?;
    karmada.works.get_key_value(&NamespacedName::new(namespace, name))
}

/// The label with the permanent id of a binding.
fn id_label(binding: &NamespacedName) -> &'static str {
    scope::binding(&binding.namespace).id_label
}

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;
