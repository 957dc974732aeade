//! Works as observed: the fields that decisions need, without the manifests.

use entourage_api::{
    keys::{annotation, finalizer, label},
    names,
    work::{ManifestStatus, ResourceHealth, WorkStatus},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    manifest,
    object::{Gvk, Meta, ResourceId, Str},
};

/// A Work of the hub.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// Its metadata.
    pub meta: Meta,
    /// The object that it carries, if it is one whose Work has this name.
    pub id: Option<ResourceId>,
    /// The objects that it carries, in their order; `None` for a manifest that names none.
    pub manifests: Box<[Option<ResourceId>]>,
    /// The hub that each manifest names, empty for none. No entries if all name that of the Work's own label.
    hubs: Box<[Str]>,
    /// `spec.suspendDispatching`.
    pub suspended: bool,
    /// `spec.preserveResourcesOnDeletion`.
    pub preserves: bool,
    /// Its conditions.
    pub conditions: Vec<Condition>,
    /// The digest of `status.manifestStatuses`, see [`digest`]; empty if there is none.
    pub reported: Str,
    /// True if the status of its object is reported.
    pub reflected: bool,
    /// The reported health of its object.
    pub health: Option<ResourceHealth>,
}

impl Work {
    /// Projects a Work. Cost: O(size of its metadata and status).
    #[must_use]
    pub fn of(object: &Value) -> Self {
        let status = WorkStatus::deserialize(&object["status"]).unwrap_or_default();
        let first = status.manifest_statuses.first();
        let manifests = manifests(object);
        Self {
            hubs: hubs(object),
            meta: Meta::of(object),
            id: carried(object, &manifests),
            manifests,
            suspended: object["spec"]["suspendDispatching"] == true,
            preserves: object["spec"]["preserveResourcesOnDeletion"] == true,
            reflected: first.is_some_and(|each| each.status.is_some()),
            health: first.and_then(|each| each.health),
            reported: digest(&status.manifest_statuses),
            conditions: status.conditions,
        }
    }

    /// The hub that a manifest names; empty for none.
    #[must_use]
    pub fn hub_of(&self, ordinal: usize) -> &str {
        let own = || self.meta.label(label::HUB).unwrap_or_default();
        self.hubs.get(ordinal).map_or_else(own, |hub| &**hub)
    }

    /// True if this hub made it or took it over. Without this mark it is never deleted.
    #[must_use]
    pub fn is_of(&self, hub: &str) -> bool {
        self.meta.label(label::HUB) == Some(hub)
    }

    /// True if it is a copy of a member in Pull mode, and no view of one: by its label, or by the finalizer of an agent on a Work of
    /// this hub. A view has neither; a Work of Karmada that is taken over has the finalizer, and not the mark of this hub.
    #[must_use]
    pub fn is_copy(&self, hub: &str) -> bool {
        self.meta.label(label::WORK_KIND).is_some()
            || (self.is_of(hub) && self.meta.has_finalizer(finalizer::EXECUTION))
    }

    /// True if a user suspended it: by its field, not by the suspension of its binding, which is marked.
    #[must_use]
    pub fn is_suspended_by_user(&self) -> bool {
        self.suspended
            && self
                .meta
                .annotation(annotation::WORK_SUSPENDED_BY_BINDING)
                .is_none()
    }
}

/// The objects that a Work carries.
fn manifests(object: &Value) -> Box<[Option<ResourceId>]> {
    let all = object["spec"]["workload"]["manifests"].as_array();
    all.into_iter().flatten().map(named).collect()
}

fn hubs(object: &Value) -> Box<[Str]> {
    let own = manifest::hub_of(object);
    let all = object["spec"]["workload"]["manifests"].as_array();
    let all = || all.into_iter().flatten().map(manifest::hub_of);
    if all().all(|hub| hub == own) {
        return Box::default();
    }
    all().map(Into::into).collect()
}

fn named(manifest: &Value) -> Option<ResourceId> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let meta = &manifest["metadata"];
    let (api_version, kind, name) = (
        text(&manifest["apiVersion"]),
        text(&manifest["kind"]),
        text(&meta["name"]),
    );
    let is_complete = [&api_version, &kind, &name].iter().all(|each| !each.is_empty());
    is_complete.then(|| ResourceId::new(Gvk::new(&api_version, &kind), &text(&meta["namespace"]), &name))
}

/// The object that a Work carries: the only one, if the Work has the name that follows from it.
fn carried(object: &Value, manifests: &[Option<ResourceId>]) -> Option<ResourceId> {
    let [Some(id)] = manifests else { return None };
    let name = names::work_name(&id.namespace, &id.name, &id.gvk.kind);
    (object["metadata"]["name"] == name).then(|| id.clone())
}

/// The digest of reports: equal for equal ones. Empty for none.
#[must_use]
pub fn digest(reports: &[ManifestStatus]) -> Str {
    match serde_json::to_string(reports) {
        Ok(text) if !reports.is_empty() => names::permanent_id(&[&text]).as_str().into(),
        _ => "".into(),
    }
}

/// The kind of Works.
#[must_use]
pub fn gvk() -> Gvk {
    Gvk::new("work.karmada.io/v1alpha1", "Work")
}
