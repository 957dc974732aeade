//! The state of a resource: a template with its binding and its copies; and of a policy and a member.

use super::{Contest, Freshness, ScalingWrites};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use entourage_api::{
    cluster::Cluster,
    keys::{annotation, condition, label},
    policy::{ClusterTaintPolicy, PropagationPolicy},
    work::{AggregatedStatusItem, DependentObjectReference, ResourceBinding, TargetCluster},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::{
    cache::Copies,
    interpreter::{
        operations::Operation,
        question::InterpretError,
        references::{DependencyReference, DependencySelection},
    },
    object::{Gvk, Meta, NamespacedName, ResourceId, Str, Time, revision, shared_key},
    observation::{self, Probe, Template},
    readiness::is_ready,
    scheduler::Candidate,
    stored_binding::eviction_from,
};

/// A template with its binding and its copies.
#[derive(Clone, Debug, Default)]
pub struct ResourceState {
    /// The template on the hub.
    pub template: Option<Template>,
    /// The freshness of the template.
    pub freshness: Freshness,
    /// A point GET returned 404 since the template was last observed: the proof of absence that a removal needs.
    pub absent: bool,
    /// The time when a point GET of the template was last refused to our account, since it was last observed or known to be
    /// absent, and the hub's message. Boxed: few have it.
    pub unreadable: Option<Box<(Time, String)>>,
    /// The uid of a template that this process observed being deleted with `--cascade=orphan`.
    pub orphaning: Option<Str>,
    /// The uid of the binding since whose deletion a point GET found the template: it still exists.
    pub confirmed: Option<Str>,
    /// The revision of the last change of the template by a user that this process observed since the claim.
    pub touched: Option<u64>,
    /// The time of the last edit reported by a watch that caused a new plan; none once a list showed something else.
    pub edited: Option<Time>,
    /// A point GET found a token Secret.
    pub not_propagatable: bool,
    /// Its binding as stored.
    pub binding: Option<Binding>,
    /// Its last binding, if this process observed its deletion: its clusters must be accounted for again, and its status
    /// without a policy stays.
    pub vanished: Option<Box<Binding>>,
    /// The permanent id of its binding, also after the binding is deleted.
    pub permanent_id: Option<Str>,
    /// The inputs of the last request to an interpreter to aggregate its status: [`crate::plan::Change::Aggregate`].
    pub aggregated: Option<u64>,
    /// The interpret error because of which its status is not aggregated from its copies.
    pub unaggregated: Option<InterpretError>,
    /// The operations that were failing when the status of its binding was last written by this process; `None` before.
    pub reported_failures: Option<BTreeSet<Operation>>,
    /// The time of the retry of the aggregation, because the interpreter may respond then.
    pub aggregate_again: Option<Time>,
    /// Its copies, by member.
    pub copies: Copies,
    /// The freshness of the binding.
    pub binding_freshness: Freshness,
    /// Members where a deleted referrer requested that the copy is preserved (architecture 2.14).
    pub preserved_on: BTreeSet<Str>,
    /// The time when the stored binding's spec last changed; for coalescing.
    pub spec_written: Option<Time>,
    /// The time when the stored binding's clusters last changed, as observed by this process.
    pub clusters_chosen: Option<Time>,
    /// The times of the first and the last response of a member since the status was last written.
    pub answers: Option<(Time, Time)>,
    /// The time when lists that determine the status, its own or its dependencies', were last synced.
    pub lists_came: Option<Time>,
    /// The time when the status was last written.
    pub status_written: Option<Time>,
    /// The fate of the status that was last written to the template. Boxed: few have it.
    pub contest: Option<Box<Contest>>,
    /// The last writes of the template by this process because of autoscalers. Boxed: few have it.
    pub scaling_writes: Option<Box<ScalingWrites>>,
    /// The time when the template's own status last changed.
    pub template_status_written: Option<Time>,
}

/// The freshness of a resource that was forgotten: events below it stay outdated.
#[derive(Clone, Debug, Default)]
pub struct Tombstone {
    /// Of the template.
    pub template: Freshness,
    /// Of its binding.
    pub binding: Freshness,
    /// Of its copies, by member.
    pub copies: Vec<(Str, Freshness)>,
}

impl ResourceState {
    /// True if the template is known to be deleted for good: a point GET returned 404, or the object is now a token Secret, or
    /// its owner deletes it in the foreground and the API server waits for its dependents, of which the binding is one.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        match &self.template {
            None => self.absent || self.not_propagatable,
            Some(template) => {
                template.meta.deleting.is_some() && template.meta.has_finalizer("foregroundDeletion")
            }
        }
    }

    /// The template, unless it is gone.
    #[must_use]
    pub fn standing(&self) -> Option<&Template> {
        self.template.as_ref().filter(|_| !self.is_gone())
    }

    /// True if the template was deleted with `--cascade=orphan`: there is proof of its absence, and its binding is neither
    /// being deleted nor owned by anything. The hub's garbage collector removes the ownerReference before the template is
    /// deleted.
    #[must_use]
    pub fn is_orphaned(&self) -> bool {
        self.absent && self.may_be_orphaned()
    }

    /// As [`Self::is_orphaned`], but without the proof of absence.
    #[must_use]
    pub fn may_be_orphaned(&self) -> bool {
        self.template.is_none()
            && self
                .binding
                .as_ref()
                .is_some_and(|binding| binding.meta.deleting.is_none() && binding.owner().is_none())
    }

    /// True if the template was deleted with `--cascade=orphan` while its binding still has the ownerReference: the hub's
    /// garbage collector has not removed it yet, or does not know bindings. It looks for new kinds twice a minute, and deletes
    /// dependents of kinds that were unknown to it later.
    #[must_use]
    pub fn is_orphaning(&self) -> bool {
        let owner = self.last_binding().and_then(Binding::owner);
        owner.is_some() && owner == self.orphaning.as_deref()
    }

    /// True if the dependencies of the template are still needed on its clusters: it exists, or its binding does. That ends
    /// with a template that is deleted for good, unless it is orphaned, and may be known later than the deletion: other watches
    /// report it.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        match (&self.template, &self.binding) {
            (Some(_), _) => !self.is_gone(),
            (None, binding) => binding
                .as_ref()
                .is_some_and(|binding| binding.meta.deleting.is_none()),
        }
    }

    /// True if an object exists on a member that, by its metadata, was created there for this hub, and for which nothing
    /// accounts any more.
    #[must_use]
    pub fn is_left_on(&self, cluster: &str) -> bool {
        let copied = self.copies.get(cluster).and_then(|copy| copy.copied.as_ref());
        copied.is_some_and(|copied| copied.meta.names_cluster(cluster))
    }

    /// True if there is no template, and no copy is there or may be.
    #[must_use]
    pub fn has_nothing_left(&self) -> bool {
        let mut copies = self.copies.values();
        self.template.is_none() && copies.all(|state| state.is_absent() && state.copied.is_none())
    }

    /// The binding, or the one that was deleted.
    #[must_use]
    pub fn last_binding(&self) -> Option<&Binding> {
        self.binding.as_ref().or(self.vanished.as_deref())
    }
}

/// A stored binding with its projected metadata.
#[derive(Clone, Debug)]
pub struct Binding {
    /// True if its template is of a kind that refers to others.
    pub refers: bool,
    /// Its version.
    pub meta: BindingMeta,
    /// Namespace and name.
    pub name: NamespacedName,
    /// The object. It alone has the labels and annotations: a hub has several bindings for each workload.
    pub object: Arc<ResourceBinding>,
}

/// The version of a binding.
#[derive(Clone, Debug)]
pub struct BindingMeta {
    /// The uid that the API server assigned.
    pub uid: Str,
    /// The resourceVersion as served.
    pub resource_version: Str,
    /// `metadata.generation`.
    pub generation: Option<i64>,
    /// `metadata.deletionTimestamp`.
    pub deleting: Option<Time>,
}

impl BindingMeta {
    /// The version in the metadata of an object.
    #[must_use]
    pub fn of(meta: &ObjectMeta) -> Self {
        Self {
            uid: meta.uid.as_deref().unwrap_or_default().into(),
            resource_version: meta.resource_version.as_deref().unwrap_or_default().into(),
            generation: meta.generation,
            deleting: meta.deletion_timestamp.as_ref().map(Time::from_k8s),
        }
    }

    /// The resourceVersion as a number; see [`Meta::revision`].
    #[must_use]
    pub fn revision(&self) -> u64 {
        revision(&self.resource_version)
    }

    /// True if this is the same version of the same object.
    #[must_use]
    pub fn is_same_version(&self, other: &Self) -> bool {
        self.uid == other.uid && self.resource_version == other.resource_version
    }
}

impl Binding {
    /// The value of a label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        let labels = self.object.metadata.labels.as_ref()?;
        labels.get(key).map(String::as_str)
    }

    /// The value of an annotation.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        let annotations = self.object.metadata.annotations.as_ref()?;
        annotations.get(key).map(String::as_str)
    }

    /// Its permanent id; empty while it has none.
    #[must_use]
    pub fn permanent_id(&self) -> &str {
        let id_label = crate::scope::binding(&self.name.namespace).id_label;
        self.label(id_label).unwrap_or_default()
    }

    /// The policy that it names as its claimant.
    #[must_use]
    pub fn claimant(&self) -> Option<NamespacedName> {
        crate::scope::claim_in(|key| self.annotation(key))
    }

    /// True if another component manages it, so that it is not changed.
    pub(crate) fn is_kept_by_others(&self) -> bool {
        self.label(label::BINDING_MANAGED_BY).is_some()
    }

    /// The policy whose claim it carries, and whose release therefore waits for it.
    pub(crate) fn claim(&self) -> Option<NamespacedName> {
        self.claimant().filter(|_| !self.is_kept_by_others())
    }

    /// True if the binding has a cluster among its own, committed ones.
    #[must_use]
    pub fn is_placed_on(&self, cluster: &str) -> bool {
        TargetCluster::find(&self.object.spec.clusters, cluster).is_some()
    }

    /// True if the workload needs its dependencies on a cluster: it is scheduled there, or it is being evicted from there and
    /// its copy may still exist. Cost: O(clusters + tasks).
    #[must_use]
    pub fn needs_on(&self, cluster: &str) -> bool {
        self.is_placed_on(cluster) || eviction_from(&self.object.spec, cluster).is_some()
    }

    /// The clusters where the workload needs its dependencies: its own, and those that it is being evicted from. Sorted.
    #[must_use]
    pub fn needed_on(&self) -> Vec<TargetCluster> {
        let spec = &self.object.spec;
        let mut all = spec.clusters.clone();
        for task in &spec.graceful_eviction_tasks {
            if !self.is_placed_on(&task.from_cluster) {
                all.push(TargetCluster {
                    name: task.from_cluster.clone(),
                    replicas: task.replicas.unwrap_or_default(),
                    components: Vec::new(),
                });
            }
        }
        if !spec.graceful_eviction_tasks.is_empty() {
            all.sort();
        }
        all
    }

    /// The dependencies of its template as last stored in an annotation. None if it cannot be read.
    pub(crate) fn stored_dependencies(
        &self,
        id: &ResourceId,
    ) -> (Vec<DependencyReference>, Vec<DependencySelection>) {
        let stored = self.annotation(annotation::DEPENDENCIES).unwrap_or("[]");
        let all: Vec<DependentObjectReference> = serde_json::from_str(stored).unwrap_or_default();
        observation::named(id, &all)
    }

    /// The clusters where copies of the previous binding may exist.
    pub(crate) fn former_clusters(&self) -> impl Iterator<Item = &str> {
        let names = self.annotation(annotation::FORMER_CLUSTERS).into_iter();
        names
            .flat_map(|names| names.split(','))
            .filter(|name| !name.is_empty())
    }

    /// True if the binding accounts for a copy on a cluster: own, being evicted, required, or of the previous binding.
    #[must_use]
    pub fn accounts_for(&self, cluster: &str) -> bool {
        let mut required = self.object.spec.required_by.iter();
        self.is_placed_on(cluster)
            || required.any(|snapshot| TargetCluster::find(&snapshot.clusters, cluster).is_some())
            || eviction_from(&self.object.spec, cluster).is_some()
            || self.former_clusters().any(|name| name == cluster)
    }

    /// True if a copy on a cluster may be from this binding, as stored: it accounts for the cluster, or its status lists it.
    #[must_use]
    pub fn may_have_left(&self, cluster: &str) -> bool {
        self.accounts_for(cluster) || self.status_on(cluster).is_some()
    }

    /// The state of the copy on a cluster, as stored. Cost: as [`AggregatedStatusItem::find`].
    pub(crate) fn status_on(&self, cluster: &str) -> Option<&AggregatedStatusItem> {
        let status = self.object.status.as_ref()?;
        AggregatedStatusItem::find(&status.aggregated_status, cluster)
    }

    /// True if the status, as stored, has a scheduling result. Cost: O(conditions).
    pub(crate) fn is_scheduled(&self) -> bool {
        self.has_scheduled("True")
    }

    /// True if the status, as stored, has the reason why there is no scheduling result. Cost: O(conditions).
    pub(crate) fn is_refused(&self) -> bool {
        self.has_scheduled("False")
    }

    fn has_scheduled(&self, value: &str) -> bool {
        let status = self.object.status.as_ref();
        let mut conditions = status.into_iter().flat_map(|status| &status.conditions);
        conditions.any(|each| each.type_ == condition::SCHEDULED && each.status == value)
    }

    /// True if copies are kept, without ownership metadata, when a user ends their propagation: its policy requests it, or the
    /// binding is orphaned and was deleted to release them.
    #[must_use]
    pub fn is_preserving(&self) -> bool {
        let is_released = self.meta.deleting.is_some() && self.owner().is_none();
        is_released || self.object.spec.preserve_resources_on_deletion == Some(true)
    }

    /// True if it is orphaned from a former template of this name that was deleted with `--cascade=orphan`. A binding of this
    /// very template that lost its owner is not: the template may be about to be deleted, and only the watch is late.
    #[must_use]
    pub fn is_adoptable_by(&self, template: &Template) -> bool {
        self.owner().is_none() && *self.object.spec.resource.uid != *template.meta.uid
    }

    /// The uid of its controller owner.
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        let owners = self.object.metadata.owner_references.as_ref()?;
        owners
            .iter()
            .find(|owner| owner.controller == Some(true))
            .map(|owner| owner.uid.as_str())
    }
}

/// A policy with its projected metadata.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Metadata, projected.
    pub meta: Meta,
    /// The object.
    pub object: Arc<PropagationPolicy>,
    /// The time when this process first observed it.
    pub since: Time,
    /// Its resourceVersion when this process first observed its generation, and that time: a status update is not an edit.
    pub edited: (u64, Time),
}

/// A ClusterTaintPolicy.
#[derive(Clone, Debug)]
pub(crate) struct TaintPolicy {
    pub(crate) meta: Meta,
    pub(crate) object: Arc<ClusterTaintPolicy>,
}

/// A member cluster.
#[derive(Clone, Debug)]
pub struct Member {
    /// Metadata, projected.
    pub meta: Meta,
    /// The object.
    pub object: Arc<Cluster>,
    /// The physical cluster that responds: the uid of its namespace kube-system, read first on each connection.
    pub id: Option<Str>,
    /// The last probe.
    pub probe: Option<Probe>,
    /// The time when probes began to fail; cleared by a healthy one, and set anew when a cut-off ends: see [`crate::cluster`].
    pub failing_since: Option<Time>,
    /// The time when probes began to find it healthy; cleared by one that does not.
    pub answering_since: Option<Time>,
}

impl Member {
    /// The member as the scheduler sees it. Cost: O(conditions).
    pub(crate) fn candidate<'a>(&'a self, name: &'a str) -> Candidate<'a> {
        Candidate {
            name,
            labels: &self.meta.labels,
            cluster: &self.object,
            ready: is_ready(&self.object),
            deleting: self.meta.deleting.is_some(),
        }
    }
}

/// Objects on a member that carry our metadata and are not managed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copied {
    pub(crate) objects: BTreeSet<ResourceId>,
    /// The time of their last change.
    pub(crate) changed: Option<Time>,
}

/// The resource that a reference names.
#[must_use]
pub(crate) fn referred(reference: &DependencyReference) -> ResourceId {
    reference.id.clone()
}

/// The resource that a binding is for.
pub(crate) fn bound(binding: &ResourceBinding) -> ResourceId {
    let resource = &binding.spec.resource;
    ResourceId::new(
        Gvk::new(&resource.api_version, &resource.kind),
        &resource.namespace,
        &resource.name,
    )
}

/// Metadata of a typed object.
pub(crate) fn meta_of(meta: &ObjectMeta) -> Meta {
    let strings = |map: &Option<BTreeMap<String, String>>| {
        map.iter()
            .flatten()
            .filter(|(key, _)| !crate::object::WHOLE_OBJECTS.contains(&key.as_str()))
            .map(|(key, value)| (shared_key(key), value.as_str().into()))
            .collect()
    };
    Meta {
        uid: meta.uid.as_deref().unwrap_or_default().into(),
        resource_version: meta.resource_version.as_deref().unwrap_or_default().into(),
        generation: meta.generation,
        content: None,
        created: meta.creation_timestamp.as_ref().map(Time::from_k8s),
        deleting: meta.deletion_timestamp.as_ref().map(Time::from_k8s),
        labels: strings(&meta.labels),
        annotations: strings(&meta.annotations),
        finalizers: meta
            .finalizers
            .iter()
            .flatten()
            .map(|each| each.as_str().into())
            .collect(),
    }
}
