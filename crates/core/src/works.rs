//! Works: a view of each copy for tools that read Works, with `--work-objects=mirror`.
//!
//! A Work exists while the stored binding accounts for the cluster, or the copy may still exist there. Its manifest is rendered
//! by the shell when it is written, as for a delivery, and is not kept: an annotation has the version that it was rendered from.
//! Its status repeats the entry of its cluster in the status of the binding, so it is written only after that, and no more often
//! than once in `status_interval`. A Work without the mark of this hub is left alone, unless it carries the permanent id of our
//! binding: that of a Karmada that was here before is taken over.

mod manifest;
mod report;

pub use manifest::verb;

use crate::{
    cache::{Binding, HeldWork, ResourceState},
    fleet::{
        Fleet,
        render_specs::render_spec,
        suspension::is_suspended_by_bindings,
        wanted::{is_committed, is_former},
        works::work_of,
    },
    object::{Meta, NamespacedName, ResourceId, Str, Time},
    observation::{Template, Watch},
    plan::{Change, HubObject, Plan, Preconditions, SyncRequirement, Verb, WorkOrder},
    render_spec::source_version,
    scope,
};
use entourage_api::keys::{annotation, finalizer};

/// The namespace and name of the Work of an order.
#[must_use]
pub fn name_of(order: &WorkOrder) -> NamespacedName {
    work_of(&order.id, &order.cluster)
}

/// Plans the Work of a copy. Cost: O(labels and annotations + size of its reported status).
#[must_use]
pub fn plan(fleet: &Fleet, id: &ResourceId, cluster: &Str, now: Time) -> Plan {
    // In Pull mode a Work is the copy itself.
    if !fleet.config.mirror_works || fleet.is_pull(cluster) {
        return Plan::nothing();
    }
    if !fleet.cache.watches.is_listed(&Watch::Works) {
        return Plan::wait("Works are not synced yet");
    }
    let held = fleet.work(id, cluster);
    let is_other = |held: &HeldWork| {
        held.work
            .id
            .as_ref()
            .is_none_or(|other| other.gvk.group != id.gvk.group)
    };
    // Whatever the mode is now, and whether the Cluster exists: to end or rewrite it would delete or change the copy.
    if held.is_some_and(|held| held.work.is_copy(&fleet.config.hub)) {
        return Plan::wait("the Work is the copy of a member in Pull mode");
    }
    if held.is_some_and(is_other) {
        return Plan::wait("the Work of this name carries another object");
    }
    if held.is_some_and(|held| held.work.meta.deleting.is_some()) {
        return Plan::wait("the Work is being deleted");
    }
    let resource = fleet.resource(id);
    let binding = resource.and_then(|resource| resource.binding.as_ref());
    match (resource, binding) {
        (Some(resource), Some(binding))
            if fleet.work_purpose(cluster).is_some() && binding.accounts_for(cluster) =>
        {
            keep(fleet, id, cluster, (resource, binding, held), now)
        }
        _ => held.map_or_else(Plan::nothing, |held| end(fleet, id, cluster, held)),
    }
}

/// The stored binding accounts for the cluster.
fn keep(
    fleet: &Fleet,
    id: &ResourceId,
    cluster: &Str,
    (resource, binding, held): (&ResourceState, &Binding, Option<&HeldWork>),
    now: Time,
) -> Plan {
    let id_label = scope::binding(&binding.name.namespace).id_label;
    let is_theirs = |held: &HeldWork| {
        let work = &held.work;
        !work.is_of(&fleet.config.hub) && work.meta.label(id_label) != Some(binding.permanent_id())
    };
    if binding.permanent_id().is_empty() || held.is_some_and(is_theirs) {
        return Plan::wait("a Work of this name exists and is not managed by this hub");
    }
    let template = resource.template.as_ref();
    let template = template.filter(|template| {
        template.meta.deleting.is_none() && !is_former(binding, template) && is_committed(binding, cluster)
    });
    if fleet
        .execution_namespace(cluster)
        .is_none_or(|namespace| namespace.deleting.is_some())
    {
        return Plan::wait("its execution namespace is created first");
    }
    let order = template.and_then(|template| order(fleet, id, cluster, (resource, template, binding), held));
    if let Some(order) = order {
        return match held.map(|held| held.since.plus(fleet.config.status_interval)) {
            Some(until) if now < until => Plan::wait_until(until, "the Work was written a moment ago"),
            _ => {
                let why = format!("source {}", order.source);
                Plan::one(Change::MirrorWork(Box::new(order)), why)
            }
        };
    }
    let Some(held) = held else {
        return Plan::wait("there is no template to mirror");
    };
    let Some((status, events)) = report::status(fleet, id, cluster, (binding, held), now) else {
        return Plan::nothing();
    };
    let until = held.since.plus(fleet.config.status_interval);
    if now < until {
        return Plan::wait_until(until, "the Work was written a moment ago");
    }
    let object = HubObject::Work(work_of(id, cluster));
    let verb = Verb::MergeStatus(report::patch(held, &status));
    let mut plan = Plan::one(Change::Hub { object, verb }, "the status differs");
    plan.changes.extend(events.into_iter().map(Change::Emit));
    plan
}

/// The write of the Work's metadata and spec; `None` if they are as desired.
fn order(
    fleet: &Fleet,
    id: &ResourceId,
    cluster: &Str,
    (resource, template, binding): (&ResourceState, &Template, &Binding),
    held: Option<&HeldWork>,
) -> Option<WorkOrder> {
    let none = Default::default();
    let state = resource.copies.get(cluster).unwrap_or(&none);
    let render_spec = render_spec(fleet, id, (resource, template, binding), (state, cluster));
    let source = source_version(&template.meta, &render_spec);
    let preserves = binding.object.spec.preserve_resources_on_deletion == Some(true);
    let by_binding = is_suspended_by_bindings(fleet, id, resource, cluster);
    let work = held.map(|held| &held.work);
    let marked = work.is_some_and(|work| {
        work.meta
            .annotation(annotation::WORK_SUSPENDED_BY_BINDING)
            .is_some()
    });
    let suspend = match work.is_some_and(|work| work.suspended) {
        false if by_binding => Some(true),
        // A user ended it, or the binding did.
        _ if marked && !by_binding => Some(false),
        _ => None,
    };
    let is_same = work.is_some_and(|work| {
        work.is_of(&fleet.config.hub)
            && work.meta.annotation(annotation::WORK_SOURCE) == Some(&*source)
            && work.preserves == preserves
    });
    if is_same && suspend.is_none() {
        return None;
    }
    Some(WorkOrder {
        id: id.clone(),
        cluster: cluster.clone(),
        render_spec,
        source: source.as_str().into(),
        live: work.map(|work| Preconditions {
            uid: work.meta.uid.clone(),
            resource_version: work.meta.resource_version.clone(),
        }),
        finalizers: work.and_then(|work| without_karmadas(&work.meta)),
        preserves,
        suspend,
    })
}

/// The finalizers of a Work without the one of Karmada; `None` if it does not have that one.
fn without_karmadas(meta: &Meta) -> Option<Vec<Str>> {
    let others = |meta: &Meta| {
        let all = meta
            .finalizers
            .iter()
            .filter(|each| &***each != finalizer::EXECUTION);
        all.cloned().collect()
    };
    meta.has_finalizer(finalizer::EXECUTION).then(|| others(meta))
}

/// The stored binding does not account for the cluster: the Work goes when the copy is gone.
fn end(fleet: &Fleet, id: &ResourceId, cluster: &Str, held: &HeldWork) -> Plan {
    if !held.work.is_of(&fleet.config.hub) {
        return Plan::wait("the Work is not managed by this hub");
    }
    if !fleet.is_base_synced() {
        return Plan::wait_for(SyncRequirement::Base, "the hub is not synced yet");
    }
    if fleet.may_exist(id, cluster) {
        return Plan::wait("its copy may still exist");
    }
    let verb = Verb::Delete {
        uid: held.work.meta.uid.clone(),
        resource_version: held.work.meta.resource_version.clone(),
    };
    let object = HubObject::Work(work_of(id, cluster));
    Plan::one(Change::Hub { object, verb }, "its copy is gone")
}
