//! Execution namespaces: each Cluster has the namespace `karmada-es-<cluster>` on the hub, which holds its Works.
//!
//! It is created when the Cluster has its finalizer, with the label of the system. When the Cluster is deleted it is deleted, too,
//! if it has that label and holds no Work any more; the Cluster waits for it. One without the label is somebody else's: it is
//! used, and stays.

use entourage_api::{
    keys::{TRUE, event, finalizer, label},
    names,
};
use serde_json::json;

use crate::{
    cache::Member,
    fleet::{Fleet, execution_namespaces::is_of_system},
    kinds,
    object::Str,
    observation::Watch,
    plan::{Change, Event, HubObject, Plan, Preconditions, Regarding, SyncRequirement, Verb},
};

/// The reason why an execution namespace is not deleted.
pub const HOLDS_WORKS: &str = "it holds a Work that is not managed by this hub. While an agent follows it, deleting the Work deletes \
                               its object on the cluster, and with a Namespace all that is in it, unless \
                               spec.preserveResourcesOnDeletion of the Work is set first";

/// Plans the execution namespace of a Cluster. Cost: O(log namespaces).
#[must_use]
pub fn plan(fleet: &Fleet, cluster: &Str) -> Plan {
    let Some(member) = fleet.cache.members.get(cluster) else {
        return Plan::nothing();
    };
    // Without the finalizer nothing would delete it.
    if !member.meta.has_finalizer(finalizer::CLUSTER) {
        return Plan::nothing();
    }
    if !fleet.cache.watches.is_listed(&Watch::Namespaces) {
        return Plan::wait("the hub's namespaces are not synced yet");
    }
    if member.meta.deleting.is_some() {
        return end(fleet, cluster, member);
    }
    if fleet.execution_namespace(cluster).is_some() {
        return Plan::nothing();
    }
    let name = names::execution_namespace(cluster);
    let body = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "labels": {label::SYSTEM: TRUE}},
    });
    let created = Change::Hub {
        object: HubObject::Namespace(name.as_str().into()),
        verb: Verb::Create(body),
    };
    let mut plan = Plan::one(created, "the Cluster has no execution namespace");
    let message = format!("namespace {name} was created on the hub: it holds the Works of this cluster");
    let event = event_of(cluster, member, event::CREATE_EXECUTION_SPACE_SUCCEED, message);
    plan.changes.push(Change::Emit(event));
    plan
}

/// Deletes it, if the Cluster leaves for certain.
fn end(fleet: &Fleet, cluster: &Str, member: &Member) -> Plan {
    let Some(namespace) = fleet.execution_namespace(cluster) else {
        return Plan::nothing();
    };
    if !is_of_system(namespace) {
        return Plan::wait(
            "its execution namespace has no label of the system: it is not managed by this hub, and is kept",
        );
    }
    if namespace.deleting.is_some() {
        return Plan::wait("its execution namespace is being deleted");
    }
    if fleet.holds_works(cluster) {
        return Plan::wait("the Works in its execution namespace are deleted first");
    }
    if fleet.is_pull(cluster) && fleet.resources().any(|(id, _)| fleet.may_exist(id, cluster)) {
        return Plan::wait("the copies there, which are Works, are removed first");
    }
    if fleet.is_pull(cluster) && fleet.holds_namespaces(cluster) {
        return Plan::wait("the namespaces there, which are Works, are released first");
    }
    if !fleet.is_base_synced() {
        return Plan::wait_for(
            SyncRequirement::Base,
            "Clusters are not synced: the cluster may no longer be deleted",
        );
    }
    let name = names::execution_namespace(cluster);
    let message = format!("namespace {name} was deleted on the hub: no Work was left in it");
    let ended = Change::EndExecutionNamespace {
        name: name.as_str().into(),
        preconditions: Preconditions {
            uid: namespace.uid.clone(),
            resource_version: namespace.resource_version.clone(),
        },
        event: Box::new(event_of(
            cluster,
            member,
            event::REMOVE_EXECUTION_SPACE_SUCCEED,
            message,
        )),
    };
    Plan::one(ended, "the cluster leaves")
}

fn event_of(cluster: &Str, member: &Member, reason: &'static str, message: String) -> Event {
    Event {
        regarding: Regarding {
            api_version: kinds::CLUSTER_API.into(),
            kind: "Cluster".into(),
            namespace: "".into(),
            name: cluster.clone(),
            uid: member.meta.uid.clone(),
        },
        warning: false,
        reason,
        message,
    }
}
