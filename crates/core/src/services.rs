//! Services of other clusters (`multicluster.x-k8s.io`): the endpoints of Services that members export, and the Services that stand for
//! ServiceImports. Design: docs/decisions/0015.
//!
//! A member exports a Service while the copy of a ServiceExport of its name is there. Its EndpointSlices are watched and kept in the
//! cache; each has one EndpointSlice on the hub that stands for it. A ServiceImport has one Service on the hub. Both are templates like
//! any other: they are dependencies of the ServiceImport, whose policy brings them to members. Invariants:
//!
//! - An EndpointSlice of the hub is one of ours if its metadata names its source
//!   ([`Slice::source`](crate::observation::Slice::source)), as Karmada's does, too. Nothing else is changed or deleted.
//! - It is deleted only if that is proven: the member lists its slices, or its ServiceExports, and there is none, and none is to be there;
//!   or the Cluster leaves.
//! - A member that is not ready loses no endpoint. Its table is in `state`.
//! - A Service stands for a ServiceImport if its owner or the annotation of a user says so, whatever its name.

mod derived;
mod held;
mod state;

use entourage_api::{
    keys::{self, annotation, label},
    names,
};
use serde_json::{Value, json};

pub(crate) use derived::plan as plan_derived;

use self::{
    held::{Held, name_for},
    state::{State, Wanted, wanted},
};
use crate::{
    fleet::{
        Fleet,
        exports::{Export, LONGEST_NAME, export, is_derivable, is_expected, slice_id},
        identities::objection,
    },
    kinds,
    memory::deletion_pauses::explains,
    object::{Meta, NamespacedName, Str, Time},
    observation::{Endpoints, ServicePart, Slice, SliceSource, Watch},
    plan::{Change, HubObject, Plan, Preconditions, SyncRequirement, Verb},
    readiness::may_serve,
};

/// Plans the EndpointSlices of the hub that stand for those of a Service of a member. Cost: O(their endpoints).
#[must_use]
pub(crate) fn plan(fleet: &Fleet, cluster: &Str, service: &NamespacedName, now: Time) -> Plan {
    if !fleet.config.share_services {
        return Plan::nothing();
    }
    let imported = Watch::ServiceParts(ServicePart::Imported);
    if !fleet.cache.watches.is_listed(&imported) {
        return Plan::wait("the EndpointSlices of the hub are not synced yet");
    }
    if !fleet.is_base_synced() {
        return Plan::wait_for(SyncRequirement::Base, "the hub is not synced yet");
    }
    let state = observe(fleet, cluster, service);
    if !is_derivable(&service.name) && state.export == Export::Yes {
        let why = format!(
            "endpoints of Service {service} are not collected: no Service can be named {}; give it a name of at most {} characters",
            names::derived_service(&service.name),
            LONGEST_NAME - names::DERIVED_PREFIX.len()
        );
        return Plan::one(Change::Refuse(why), "its name is too long");
    }
    let mut plan = Plan::nothing();
    for held in Held::all(fleet, cluster, service) {
        let collected = fleet.cache.services.slice(cluster, service, &held.source.slice);
        let content = held.kept().map(|(_, slice)| &slice.content);
        // The slices of importers are on members for others.
        let collected = collected.filter(|collected| !collected.slice.is_dispatched());
        let state = State {
            is_left_out: state.is_left_out || collected.is_some_and(|collected| collected.is_left_out),
            ..state
        };
        match wanted(
            state,
            collected.map(|collected| &collected.slice.content),
            content,
        ) {
            Wanted::Absent => {
                let ends = held.objects().map(|object| end(fleet, &held.source, object, now));
                plan.changes.extend(ends);
            }
            Wanted::Kept => {}
            Wanted::As(content) => {
                // A second one for the same source: of a time when both names were taken.
                plan.changes
                    .extend(held.others().map(|(name, slice)| delete(name, &slice.meta)));
                plan.changes.extend(write(fleet, &held, &content));
            }
        }
    }
    let creates = plan.changes.iter().any(is_create);
    if let Some(until) = fleet.memory.endpoints.not_before(cluster, service, now)
        && !creates
        && !plan.changes.is_empty()
    {
        return Plan::wait_until(until, "they were written less than a second ago");
    }
    if !plan.changes.is_empty() {
        plan.why.push(format!("{service} of {cluster}: {}", state.text()));
    }
    plan
}

/// The known state of the export of a Service by a member. Nothing reports the endpoints of one in Pull mode.
fn observe(fleet: &Fleet, cluster: &Str, service: &NamespacedName) -> State {
    let member = fleet.cache.members.get(cluster);
    let staying = member.filter(|member| member.meta.deleting.is_none());
    let endpoints = Watch::Endpoints(cluster.clone(), service.clone());
    // What another physical cluster has proves nothing.
    let is_itself = objection(fleet, cluster).is_none();
    State {
        leaves: staying.is_none(),
        export: export(fleet, cluster, service),
        is_ready: is_itself && staying.is_some_and(|member| may_serve(&member.object)),
        is_withdrawn: !is_expected(fleet, cluster, service),
        is_left_out: fleet.memory.unwatched_exports.contains(cluster, service),
        is_synced: is_itself && !fleet.is_pull(cluster) && fleet.cache.watches.is_synced(&endpoints),
    }
}

/// The write of a slice, if it differs.
fn write(fleet: &Fleet, held: &Held<'_>, content: &Endpoints) -> Option<Change> {
    let source = &held.source;
    let Some((name, slice)) = held.kept() else {
        let name = name_for(fleet, source);
        let mut metadata = metadata(source);
        metadata["namespace"] = json!(&*source.service.namespace);
        metadata["name"] = json!(&*name.name);
        return Some(hub(&name, Verb::Create(body(&metadata, content))));
    };
    if slice.meta.deleting.is_some() || (slice.content == *content && is_marked(&slice.meta, source)) {
        return None;
    }
    // The type of the addresses never changes: the slice is created again when it is gone.
    if slice.content.address_type != content.address_type {
        return Some(delete(name, &slice.meta));
    }
    let mut metadata = metadata(source);
    identify(&mut metadata, &slice.meta);
    Some(hub(name, Verb::Merge(body(&metadata, content))))
}

/// The end of a slice. One whose end nothing explains is put in reserve first: the removal brake may stop the deletion of its copies, and
/// these must not stay in use then.
fn end(fleet: &Fleet, source: &SliceSource, (name, slice): (&NamespacedName, &Slice), now: Time) -> Change {
    let reserve = slice.content.unready();
    if slice.content == reserve || is_end_explained(fleet, name, now) {
        return delete(name, &slice.meta);
    }
    let mut metadata = metadata(source);
    identify(&mut metadata, &slice.meta);
    hub(name, Verb::Merge(body(&metadata, &reserve)))
}

/// True if the removal brake does not stop the deletion of the copies of a slice of the hub: an edit explains it, or there are none.
fn is_end_explained(fleet: &Fleet, name: &NamespacedName, now: Time) -> bool {
    let id = slice_id(fleet, name);
    let resource = fleet.resource(&id);
    resource.is_none_or(|resource| resource.copies.is_empty() || explains(resource.edited, now))
}

const fn is_create(change: &Change) -> bool {
    matches!(
        change,
        Change::Hub {
            verb: Verb::Create(_),
            ..
        }
    )
}

fn hub(name: &NamespacedName, verb: Verb) -> Change {
    Change::Hub {
        object: HubObject::ServicePart(ServicePart::Imported, name.clone()),
        verb,
    }
}

fn delete(name: &NamespacedName, meta: &Meta) -> Change {
    let preconditions = Preconditions {
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
    };
    hub(name, Verb::delete(preconditions))
}

fn body(metadata: &Value, content: &Endpoints) -> Value {
    let gvk = kinds::endpoint_slice();
    json!({
        "apiVersion": gvk.api_version(), "kind": &*gvk.kind, "metadata": metadata,
        "addressType": &*content.address_type, "ports": content.ports, "endpoints": content.endpoints,
    })
}

/// The labels and annotations of the slice of the hub for a source.
fn metadata(source: &SliceSource) -> Value {
    json!({
        "labels": {
            label::SERVICE_NAME: names::derived_service(&source.service.name),
            label::ENDPOINTS_MANAGED_BY: keys::ENDPOINTS_DISPATCHED,
        },
        "annotations": {
            annotation::PROVISION_CLUSTER: &*source.cluster,
            annotation::COLLECTED_SLICE: &*source.slice,
        },
    })
}

/// True if a slice of the hub has all of its [`metadata`]: one that Karmada made does not.
fn is_marked(meta: &Meta, source: &SliceSource) -> bool {
    meta.annotation(annotation::COLLECTED_SLICE) == Some(&*source.slice)
        && meta.annotation(annotation::PROVISION_CLUSTER) == Some(&*source.cluster)
        && meta.label(label::ENDPOINTS_MANAGED_BY) == Some(keys::ENDPOINTS_DISPATCHED)
}

/// Names the object that a merge patch is about.
fn identify(metadata: &mut Value, meta: &Meta) {
    metadata["uid"] = json!(&*meta.uid);
    metadata["resourceVersion"] = json!(&*meta.resource_version);
}
