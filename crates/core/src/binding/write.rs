//! The writes of a binding: create, replace, remove the claim, remove the finalizers.

use std::collections::BTreeSet;

use entourage_api::{
    keys::{annotation, event, finalizer},
    work::{AggregatedStatusItem, GracefulEvictionTask, ResourceBinding, ResourceBindingSpec},
};

use super::named;
use crate::{
    cache::{Binding, BindingMeta, ResourceState},
    fleet::{
        Fleet,
        regarding::{on_binding, on_template},
    },
    object::{NamespacedName, ResourceId, Str},
    observation::Template,
    plan::{Change, Event, HubObject, Plan, SyncRequirement, Verb},
    scope,
    stored_binding::{eviction_from, to_value},
};

/// Creates a binding. A template that was last observed before an outage may not exist on a hub that was restored meanwhile, and
/// a binding created for it would make orphaned copies look managed.
pub(super) fn create(fleet: &Fleet, id: &ResourceId, wanted: &ResourceBinding) -> Plan {
    let proof = SyncRequirement::Templates(id.gvk.clone());
    if !fleet.has(&proof) {
        return Plan::wait_for(proof, "whether the template is still there is not known");
    }
    let name = wanted.metadata.name.as_deref().unwrap_or_default();
    let object = HubObject::Binding(NamespacedName::new(&id.namespace, name));
    Plan::one(
        Change::Hub {
            object,
            verb: Verb::Create(to_value(wanted)),
        },
        "there is no binding",
    )
}

pub(super) fn delete(binding: &Binding, why: &str) -> Plan {
    let BindingMeta {
        uid,
        resource_version,
        ..
    } = &binding.meta;
    write(
        binding,
        Verb::Delete {
            uid: uid.clone(),
            resource_version: resource_version.clone(),
        },
        why,
    )
}

/// Removes this control plane's finalizers once no copy remains. Cost: O(its copies), more where a member refuses the kind.
pub(super) fn finish(fleet: &Fleet, id: &ResourceId, resource: &ResourceState, binding: &Binding) -> Plan {
    if let Some((cluster, _)) = resource
        .copies
        .iter()
        .find(|(cluster, _)| fleet.may_stand(id, cluster))
    {
        return Plan::wait(format!("a copy may still exist on {cluster}"));
    }
    release(binding, "no copy is left")
}

/// Removes the claim of a policy; all other fields stay.
pub(super) fn disown(binding: &Binding) -> Plan {
    let mut object = (*binding.object).clone();
    if let Some(labels) = &mut object.metadata.labels {
        labels.retain(|key, _| !scope::CLAIM_LABELS.contains(&key.as_str()));
    }
    if let Some(annotations) = &mut object.metadata.annotations {
        annotations.retain(|key, _| !scope::CLAIM_ANNOTATIONS.contains(&key.as_str()));
    }
    write(binding, Verb::Replace(to_value(&object)), "its policy ends")
}

pub(super) fn release(binding: &Binding, why: &str) -> Plan {
    let mut object = (*binding.object).clone();
    let finalizers = object.metadata.finalizers.get_or_insert_default();
    let before = finalizers.len();
    let own_finalizer = scope::binding(&binding.name.namespace).finalizer;
    finalizers.retain(|each| each != own_finalizer && each != finalizer::DEPENDENCIES);
    if finalizers.len() == before {
        return Plan::wait("others hold the binding");
    }
    write(binding, Verb::Replace(to_value(&object)), why)
}

/// Returns the events for evictions that a write starts, on the template and on the binding. Cost: O(tasks²).
pub(super) fn evicted(
    id: &ResourceId,
    template: &Template,
    binding: &Binding,
    wanted: &ResourceBindingSpec,
) -> Vec<Change> {
    let before = &binding.object.spec;
    let is_new = |task: &&GracefulEvictionTask| eviction_from(before, &task.from_cluster).is_none();
    let begun = wanted.graceful_eviction_tasks.iter().filter(is_new);
    let events = begun.flat_map(|task| {
        let message = format!("Evicted from cluster {}: {}.", task.from_cluster, task.message);
        [on_template(id, template), on_binding(binding)].map(|regarding| {
            Change::Emit(Event {
                regarding,
                warning: false,
                reason: event::EVICT_WORKLOAD_SUCCEED,
                message: message.clone(),
            })
        })
    });
    events.collect()
}

pub(super) fn write(binding: &Binding, verb: Verb, why: &str) -> Plan {
    Plan::one(
        Change::Hub {
            object: HubObject::Binding(binding.name.clone()),
            verb,
        },
        why,
    )
}

/// Records, on a binding that is created again or rescheduled, the clusters that may have a copy and that no other field names:
/// until its status records the copies themselves, or they are gone. A status item alone may only report that the cluster does
/// not respond, and is removed with its cause. No cluster is lost by a crash in between. Cost: O(copies).
pub(super) fn note_former(
    fleet: &Fleet,
    id: &ResourceId,
    resource: &ResourceState,
    stored: Option<&Binding>,
    wanted: &mut ResourceBinding,
) {
    let accounted: BTreeSet<&str> = named(&wanted.spec).collect();
    let status = stored.and_then(|stored| stored.object.status.as_ref());
    let recorded = |cluster: &str| {
        let item = status.and_then(|status| AggregatedStatusItem::find(&status.aggregated_status, cluster));
        item.is_some_and(|item| item.copy.is_some())
    };
    let is_missed = |cluster: &&str| !accounted.contains(cluster) && !recorded(cluster);
    let missed: BTreeSet<&str> = match stored {
        Some(stored) => {
            let all = stored.former_clusters().chain(named(&stored.object.spec));
            all.filter(is_missed).collect()
        }
        None => resource
            .copies
            .keys()
            .map(|name| &**name)
            .filter(is_missed)
            .collect(),
    };
    let may_stand = |cluster: &&str| fleet.may_stand(id, &Str::from(*cluster));
    let left: Vec<&str> = missed.into_iter().filter(may_stand).collect();
    if !left.is_empty() {
        let annotations = wanted.metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::FORMER_CLUSTERS.into(), left.join(","));
    } else if let Some(annotations) = &mut wanted.metadata.annotations {
        annotations.remove(annotation::FORMER_CLUSTERS);
    }
}
