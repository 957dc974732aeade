//! Claims and volumes that are being deleted on the hub, and whose finalizer nothing there removes.
//!
//! API servers put a finalizer on each, which a controller removes when no Pod uses it. A hub runs no Pods; if it runs that
//! controller, or adds no finalizer, they are gone at once. Otherwise a message names the flag that helps, once. The finalizer
//! is never removed here: whether Pods of the hub use the claim is unknown.

use crate::{
    object::{Meta, ResourceId, Time},
    plan::{Change, Plan},
};

/// The time that the controller of a hub may take, in milliseconds.
const PATIENCE: i64 = 30_000;

const PROTECTED: [(&str, &str); 2] = [
    ("PersistentVolumeClaim", "kubernetes.io/pvc-protection"),
    ("PersistentVolume", "kubernetes.io/pv-protection"),
];

/// The plan with a message about a template that is being deleted; `None` if nothing protects it. Cost: O(finalizers).
pub(crate) fn plan(id: &ResourceId, meta: &Meta, now: Time) -> Option<Plan> {
    let deleted = meta.deleting?;
    let finalizer = protected_by(id, meta)?;
    let until = deleted.plus(PATIENCE + 999);
    Some(if now < until {
        Plan::wait_until(until, format!("the hub removes {finalizer}"))
    } else {
        Plan::one(
            Change::Refuse(words(id, finalizer)),
            "its finalizer is not removed",
        )
    })
}

fn protected_by(id: &ResourceId, meta: &Meta) -> Option<&'static str> {
    let of_kind = PROTECTED
        .iter()
        .find(|(kind, _)| id.gvk.group.is_empty() && *id.gvk.kind == **kind)?;
    meta.has_finalizer(of_kind.1).then_some(of_kind.1)
}

fn words(id: &ResourceId, finalizer: &str) -> String {
    format!(
        "{id} is being deleted, and nothing on the hub removes its finalizer {finalizer}: add pvc-protection,pv-protection to \
         --controllers of the hub's kube-controller-manager, or add StorageObjectInUseProtection to --disable-admission-plugins \
         of its kube-apiserver and remove the finalizer by hand"
    )
}
