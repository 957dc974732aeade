//! What is held of each object: a template with its binding and its copies, a policy, a member.

use super::{Contest, Freshness};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use entourage_api::{
    cluster::Cluster,
    keys::{annotation, condition, label},
    policy::{ClusterTaintPolicy, PropagationPolicy},
    work::{DependentObjectReference, ResourceBinding, TargetCluster},
};

use crate::{
    cache::CopyState,
    interpreter::{
        question::InterpretError,
        references::{DependencyReference, DependencySelection},
    },
    object::{Gvk, Meta, NamespacedName, ResourceId, Str, Time},
    observation::{self, Probe, Template},
    readiness::is_ready,
    scheduler::Candidate,
    stored_binding::eviction_from,
};

/// A template with all that belongs to it.
#[derive(Clone, Debug, Default)]
pub struct ResourceState {
    /// The template on the hub.
    pub template: Option<Template>,
    /// The freshness of the template.
    pub freshness: Freshness,
    /// A point GET said 404 since the template was last seen: the proof a removal needs.
    pub absent: bool,
    /// When a point GET of the template was last refused to our account, since it was last seen or known to be absent, and
    /// the hub's words. Boxed: few have it.
    pub unreadable: Option<Box<(Time, String)>>,
    /// The uid of a template that this process saw being deleted with `--cascade=orphan`.
    pub orphaning: Option<Str>,
    /// The binding (by uid) since whose deletion a point GET found the template: it is really still there.
    pub confirmed: Option<Str>,
    /// The revision of the last change of the template that a user made and this process saw since the claim.
    pub touched: Option<u64>,
    /// When an edit that a watch told last had it planned again; not since a list showed something else.
    pub edited: Option<Time>,
    /// A point GET found a token Secret.
    pub never_travels: bool,
    /// Its binding as stored.
    pub binding: Option<Binding>,
    /// Its last binding, seen to go away by this process: what it placed must be accounted for again, and what it said
    /// without a policy stays.
    pub vanished: Option<Binding>,
    /// The permanent id its binding had, also after the binding is gone.
    pub permanent_id: Option<Str>,
    /// For what its status was last asked for by what people taught us of the kind: [`crate::plan::Change::Aggregate`].
    pub aggregated: Option<u64>,
    /// Why its status is not made of its copies', when what people taught us of the kind has no answer to that.
    pub unaggregated: Option<InterpretError>,
    /// From when on it is asked once more, because who was asked may have an answer then.
    pub aggregate_again: Option<Time>,
    /// Its copies, by member.
    pub copies: BTreeMap<Str, CopyState>,
    /// The freshness of the binding.
    pub binding_freshness: Freshness,
    /// Members where a referrer that ended asked for the copy to be kept (architecture 2.14).
    pub preserved_on: BTreeSet<Str>,
    /// When the stored binding's spec last changed; for coalescing.
    pub spec_written: Option<Time>,
    /// When the stored binding's clusters last changed, as this process saw it.
    pub clusters_chosen: Option<Time>,
    /// When the first and the last member answered since the status was last written.
    pub answers: Option<(Time, Time)>,
    /// When lists that decide the status, its own or its dependencies', last became known.
    pub lists_came: Option<Time>,
    /// When the status was last written.
    pub status_written: Option<Time>,
    /// What became of the status that was last written to the template. Boxed: few have it.
    pub contest: Option<Box<Contest>>,
    /// When the template's own status last changed.
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
    /// Whether the template is known to be gone for good: a point GET said so, or the object is a token Secret now, or
    /// its owner deletes it in the foreground and the API server waits for its dependents, of which the binding is one.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        match &self.template {
            None => self.absent || self.never_travels,
            Some(template) => {
                template.meta.deleting.is_some() && template.meta.has_finalizer("foregroundDeletion")
            }
        }
    }

    /// The template, unless it is gone or going.
    #[must_use]
    pub fn standing(&self) -> Option<&Template> {
        self.template.as_ref().filter(|_| !self.is_gone())
    }

    /// Whether the template was deleted with `--cascade=orphan`: it is proven to be gone, and its binding is neither being
    /// deleted nor owned by anything. The hub's garbage collector takes the ownerReference off before the template goes.
    #[must_use]
    pub fn is_orphaned(&self) -> bool {
        self.absent && self.may_be_orphaned()
    }

    /// As [`Self::is_orphaned`], but for the proof that the template is gone.
    #[must_use]
    pub fn may_be_orphaned(&self) -> bool {
        self.template.is_none()
            && self
                .binding
                .as_ref()
                .is_some_and(|binding| binding.meta.deleting.is_none() && binding.owner().is_none())
    }

    /// Whether the template was deleted with `--cascade=orphan` while its binding says that it owns it: the hub's garbage
    /// collector did not come to that yet, or does not know bindings. It looks for new kinds twice a minute, and what it does
    /// not know it deletes later.
    #[must_use]
    pub fn is_orphaning(&self) -> bool {
        let owner = self.last_binding().and_then(Binding::owner);
        owner.is_some() && owner == self.orphaning.as_deref()
    }

    /// Whether what the template needs on its clusters is needed still: it stands, or its binding does. That ends with a template
    /// that is gone for good, unless it is orphaned, and may be known later than that: other watches.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        match (&self.template, &self.binding) {
            (Some(_), _) => !self.is_gone(),
            (None, binding) => binding
                .as_ref()
                .is_some_and(|binding| binding.meta.deleting.is_none()),
        }
    }

    /// Whether an object stands on a member that was made there for this hub, as its metadata says, and that nothing accounts
    /// for any more.
    #[must_use]
    pub fn is_left_on(&self, cluster: &str) -> bool {
        let copied = self.copies.get(cluster).and_then(|copy| copy.copied.as_ref());
        copied.is_some_and(|copied| copied.meta.names_cluster(cluster))
    }

    /// The binding, or the one that vanished.
    #[must_use]
    pub fn last_binding(&self) -> Option<&Binding> {
        self.binding.as_ref().or(self.vanished.as_ref())
    }
}

/// A stored binding with its metadata at hand.
#[derive(Clone, Debug)]
pub struct Binding {
    /// Whether its template is of a kind that refers to others.
    pub refers: bool,
    /// Metadata, projected.
    pub meta: Meta,
    /// Namespace and name.
    pub name: NamespacedName,
    /// The object.
    pub object: Arc<ResourceBinding>,
}

impl Binding {
    /// Its permanent id; empty while it has none.
    #[must_use]
    pub fn permanent_id(&self) -> &str {
        let id_label = crate::scope::binding(&self.name.namespace).id_label;
        self.meta.label(id_label).unwrap_or_default()
    }

    /// Whether the binding has a cluster among its own, committed ones.
    #[must_use]
    pub fn is_placed_on(&self, cluster: &str) -> bool {
        self.object
            .spec
            .clusters
            .iter()
            .any(|target| target.name == cluster)
    }

    /// Whether the workload needs its dependencies on a cluster: it is placed there, or it is being evicted from there and
    /// its copy may still be there. Cost: O(clusters + tasks).
    #[must_use]
    pub fn needs_on(&self, cluster: &str) -> bool {
        self.is_placed_on(cluster) || eviction_from(&self.object.spec, cluster).is_some()
    }

    /// Where the workload needs its dependencies: on its own clusters, and on those that it is being evicted from. Sorted.
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

    /// What its template needs, as it was last told: an annotation says so. Nothing if it cannot be read.
    pub(crate) fn stored_dependencies(
        &self,
        id: &ResourceId,
    ) -> (Vec<DependencyReference>, Vec<DependencySelection>) {
        let stored = self.meta.annotation(annotation::DEPENDENCIES).unwrap_or("[]");
        let all: Vec<DependentObjectReference> = serde_json::from_str(stored).unwrap_or_default();
        observation::named(id, &all)
    }

    /// The clusters where copies of the binding before this one may be.
    pub(crate) fn former_clusters(&self) -> impl Iterator<Item = &str> {
        let names = self.meta.annotation(annotation::FORMER_CLUSTERS).into_iter();
        names
            .flat_map(|names| names.split(','))
            .filter(|name| !name.is_empty())
    }

    /// Whether the binding accounts for a copy on a cluster: own, being evicted, required, or of the binding before it.
    #[must_use]
    pub fn accounts_for(&self, cluster: &str) -> bool {
        let required = self
            .object
            .spec
            .required_by
            .iter()
            .flat_map(|snapshot| &snapshot.clusters);
        self.object
            .spec
            .clusters
            .iter()
            .chain(required)
            .any(|target| target.name == cluster)
            || eviction_from(&self.object.spec, cluster).is_some()
            || self.former_clusters().any(|name| name == cluster)
    }

    /// Whether a copy on a cluster may be from this binding, as stored: it accounts for the cluster, or reports of it.
    #[must_use]
    pub fn may_have_left(&self, cluster: &str) -> bool {
        let status = self.object.status.iter();
        let mut reported = status.flat_map(|status| &status.aggregated_status);
        self.accounts_for(cluster) || reported.any(|item| item.cluster_name == cluster)
    }

    /// True if the status, as stored, says that there is a scheduling result. Cost: O(conditions).
    pub(crate) fn is_scheduled(&self) -> bool {
        let status = self.object.status.as_ref();
        let mut conditions = status.into_iter().flat_map(|status| &status.conditions);
        conditions.any(|each| each.type_ == condition::SCHEDULED && each.status == "True")
    }

    /// Whether copies stay, without ownership metadata, when a user ends what was placed: its policy asks for that, or the
    /// binding is orphaned and was deleted to release them.
    #[must_use]
    pub fn is_preserving(&self) -> bool {
        let is_released = self.meta.deleting.is_some() && self.owner().is_none();
        is_released || self.object.spec.preserve_resources_on_deletion == Some(true)
    }

    /// Whether it was left behind by a former template of this name, deleted with `--cascade=orphan`. A binding of this
    /// very template that lost its owner is not: the template may be about to go, and only the watch is late.
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

/// A policy with its metadata at hand.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Metadata, projected.
    pub meta: Meta,
    /// The object.
    pub object: Arc<PropagationPolicy>,
    /// When it was first seen by this process.
    pub since: Time,
    /// Its resourceVersion when its generation was first seen by this process, and when that was: a status that is written
    /// is no edit.
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
    /// Which physical cluster answers: the uid of its namespace kube-system, read before anything else on a connection.
    pub id: Option<Str>,
    /// The last probe.
    pub probe: Option<Probe>,
    /// When probes began to fail; cleared by a healthy one, and set anew when a cut-off ends: see [`crate::cluster`].
    pub failing_since: Option<Time>,
    /// When probes began to find it healthy; cleared by one that does not.
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
    /// When that changed last.
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

/// Whether another component keeps this binding; we leave it alone.
pub(crate) fn is_kept_by_others(meta: &Meta) -> bool {
    meta.label(label::BINDING_MANAGED_BY).is_some()
}

/// The policy whose claim a binding carries and that therefore waits for it.
pub(crate) fn claim_on(binding: &Meta) -> Option<NamespacedName> {
    crate::scope::claim_of(binding).filter(|_| !is_kept_by_others(binding))
}

/// Metadata of a typed object.
pub(crate) fn meta_of(meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> Meta {
    let strings = |map: &Option<BTreeMap<String, String>>| {
        map.iter()
            .flatten()
            .filter(|(key, _)| !crate::object::WHOLE_OBJECTS.contains(&key.as_str()))
            .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
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
