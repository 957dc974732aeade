//! The Index: everything observed, joined. It is the only state of the control plane; all of it can be rebuilt from
//! the API servers.
//!
//! A template, its binding and its copies share one [`Id`] and live in one [`Entity`]. Two reverse indexes make an event
//! cost what it affects: dependency → referrers, and policy → templates it claims. [`Index::observe`] is the one door;
//! it answers with the keys to plan again.

mod demand;
mod observe;

pub use observe::{claim_of, content_version};

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use entourage_api::{
    cluster::{Cluster, SyncMode},
    keys::label,
    policy::PropagationPolicy,
    work::{CopyRecord, ResourceBinding},
};

use crate::{
    interpreter::references::{DependencyKind, DependencyReference},
    object::{Gvk, Id, Meta, Named, Str, Time, revision},
    observation::{Copy, Probe, Template, Watch, Which, refers},
};

/// What the decisions can be tuned by. Durations are milliseconds.
#[derive(Clone, Debug)]
pub struct Config {
    /// Our hub's id: the uid of its kube-system namespace.
    pub hub: Str,
    /// The feature gate PropagateDeps (seed 004).
    pub propagate_deps: bool,
    /// How long the copies of a dependency that was deleted on the hub while referenced outlive its binding's
    /// deletionTimestamp. Default 5,000.
    pub deletion_grace: i64,
    /// How long a workload's first release to a cluster waits for its dependencies there. Default 30,000.
    pub dependency_wait: i64,
    /// How long referrers that arrive together are collected before the attached binding is written. Default 50.
    pub coalesce: i64,
    /// How long a status waits for the members that have not answered yet. Default 200.
    pub status_delay: i64,
    /// The least time between two status writes of one binding. Default 1,000.
    pub status_interval: i64,
    /// How long a member must fail its probes before its Ready condition turns False. Default 30,000.
    pub cluster_failure_threshold: i64,
}

impl Config {
    /// The defaults, for a hub.
    #[must_use]
    pub fn new(hub: &str) -> Self {
        Self {
            hub: hub.into(),
            propagate_deps: true,
            deletion_grace: 5_000,
            dependency_wait: 30_000,
            coalesce: 50,
            status_delay: 200,
            status_interval: 1_000,
            cluster_failure_threshold: 30_000,
        }
    }
}

/// Why a copy could not be brought in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// An object that is not ours stands there.
    Foreign,
    /// The member refused it.
    Rejected,
    /// The member, or the hub for the source, did not answer.
    Unreachable,
    /// There is nothing to deliver.
    NoSource,
}

/// The last attempt that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What kind of trouble.
    pub trouble: Trouble,
    /// For a person.
    pub message: String,
    /// The source version that was tried.
    pub source: String,
    /// How often in a row.
    pub attempts: u32,
    /// Not before then, unless the source changes.
    pub retry_at: Time,
}

/// One template on one member.
#[derive(Clone, Debug, Default)]
pub struct CopyState {
    /// The copy as last seen, if it is ours.
    pub live: Option<Copy>,
    /// The copy as last written; from an answer, or at start from the binding's status.
    pub record: Option<CopyRecord>,
    /// The last failure, cleared by success.
    pub problem: Option<Problem>,
    /// When the copy was first wanted here.
    pub wanted_since: Option<Time>,
    /// The source version of the last attempt, successful or not.
    pub answered: Option<String>,
    /// Not written again before this time.
    pub not_before: Option<Time>,
    /// A write is under way: until its outcome is known a copy may stand here.
    pub in_flight: bool,
    /// A write ended without an answer: a copy may stand here until a GET or a list says otherwise.
    pub uncertain: bool,
    /// The revision below which watch events of this copy are old news.
    pub floor: u64,
}

impl CopyState {
    /// Whether the live copy is the one that was last written, unchanged since.
    #[must_use]
    pub fn is_as_written(&self) -> bool {
        let (Some(live), Some(record)) = (&self.live, &self.record) else {
            return false;
        };
        *live.meta.uid == *record.uid
            && match (record.generation, &record.resource_version) {
                (Some(generation), _) => live.meta.generation == Some(generation),
                (None, Some(version)) => *live.meta.resource_version == **version,
                (None, None) => false,
            }
    }
}

/// A template with all that belongs to it.
#[derive(Clone, Debug, Default)]
pub struct Entity {
    /// The template on the hub.
    pub template: Option<Template>,
    /// Watch events of the template below this revision are old news.
    pub floor: u64,
    /// A point GET said 404 since the template was last seen: the proof a removal needs.
    pub absent: bool,
    /// A point GET found a token Secret.
    pub never_travels: bool,
    /// Its binding as stored.
    pub binding: Option<Binding>,
    /// Its last binding, seen to go away by this process: what it placed must be accounted for again, and what it said
    /// without a policy stays.
    pub vanished: Option<Binding>,
    /// The permanent id its binding had, also after the binding is gone.
    pub permanent_id: Option<Str>,
    /// Its copies, by member.
    pub copies: BTreeMap<Str, CopyState>,
    /// What the template refers to. Kept after the template is gone, until its copies are.
    pub references: Vec<DependencyReference>,
    /// The templates whose references name this one.
    pub referrers: BTreeSet<Id>,
    /// Templates that named this one until a copy of theirs that does not is everywhere they are.
    pub former: BTreeSet<Id>,
    /// What this template named before: the other direction of `former`.
    pub left_behind: BTreeSet<Id>,
    /// Watch events of the binding below this revision are old news.
    pub binding_floor: u64,
    /// Members where a referrer that ended asked for the copy to be kept (architecture 2.14).
    pub preserved_on: BTreeSet<Str>,
    /// When the stored binding's spec last changed; for coalescing.
    pub spec_written: Option<Time>,
    /// When the first and the last member answered since the status was last written.
    pub answers: Option<(Time, Time)>,
    /// When the status was last written.
    pub status_written: Option<Time>,
    /// When the template's own status last changed.
    pub template_status_written: Option<Time>,
}

/// What is remembered of a forgotten entity: the revisions below which events are old news.
#[derive(Clone, Debug, Default)]
pub struct Tombstone {
    template: u64,
    binding: u64,
    copies: Vec<(Str, u64)>,
}

impl Entity {
    /// Whether the template is known to be gone for good: a point GET said so, or the object is a token Secret now, or
    /// its owner deletes it in the foreground and the API server waits for its dependents, of which the binding is one.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        match &self.template {
            None => self.absent || self.never_travels,
            Some(template) => template.meta.deleting.is_some() && template.meta.has_finalizer("foregroundDeletion"),
        }
    }

    /// The template, unless it is gone or going.
    #[must_use]
    pub fn standing(&self) -> Option<&Template> {
        self.template.as_ref().filter(|_| !self.is_gone())
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
    pub name: Named,
    /// The object.
    pub object: Arc<ResourceBinding>,
}

impl Binding {
    /// Whether the binding has a cluster among its own, committed ones.
    #[must_use]
    pub fn is_placed_on(&self, cluster: &str) -> bool {
        self.object
            .spec
            .clusters
            .iter()
            .any(|target| target.name == cluster)
    }

    /// Whether the binding accounts for a copy on a cluster: own or required.
    #[must_use]
    pub fn accounts_for(&self, cluster: &str) -> bool {
        let required = self.object.spec.required_by.iter().flat_map(|snapshot| &snapshot.clusters);
        self.object.spec.clusters.iter().chain(required).any(|target| target.name == cluster)
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
}

/// A member cluster.
#[derive(Clone, Debug)]
pub struct Member {
    /// Metadata, projected.
    pub meta: Meta,
    /// The object.
    pub object: Arc<Cluster>,
    /// The last probe.
    pub probe: Option<Probe>,
    /// When probes began to fail; cleared by a healthy one.
    pub failing_since: Option<Time>,
}

/// Sizes, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Templates seen on the hub.
    pub templates: usize,
    /// Bindings.
    pub bindings: usize,
    /// Copies seen on members.
    pub copies: usize,
    /// Clusters.
    pub clusters: usize,
    /// Policies.
    pub policies: usize,
    /// Copies of ours on members that no binding accounts for: they are reported here and left alone.
    pub unaccounted: usize,
}

/// Everything observed.
#[derive(Debug)]
pub struct Index {
    /// Settings.
    pub config: Config,
    pub(crate) policies: BTreeMap<Named, Policy>,
    pub(crate) members: BTreeMap<Str, Member>,
    pub(crate) entities: BTreeMap<Id, Entity>,
    /// Binding → template. Never parsed from a name.
    pub(crate) by_binding: BTreeMap<Named, Id>,
    /// (namespace, kind) → policies that select it.
    pub(crate) selecting: BTreeMap<(Str, Gvk), BTreeSet<Str>>,
    /// Policy → templates or bindings that carry its claim.
    pub(crate) claimed: BTreeMap<Named, BTreeSet<Id>>,
    /// Forgotten entities: below these revisions events are old news. Bounded.
    pub(crate) tombstones: BTreeMap<Id, Tombstone>,
    pub(crate) buried: VecDeque<(Time, Id)>,
    pub(crate) demand: BTreeSet<Watch>,
    /// Watches that have listed at least once.
    pub(crate) listed: BTreeSet<Watch>,
    /// Watches that are listed and healthy now.
    pub(crate) synced: BTreeSet<Watch>,
    /// The revision of the last list of each watch.
    pub(crate) list_revisions: BTreeMap<Watch, u64>,
    /// Policies and Clusters that are gone: below these revisions events are old news.
    pub(crate) gone_floors: BTreeMap<Which, u64>,
    /// Watches that have failed and never listed.
    pub(crate) unlistable: BTreeMap<Watch, String>,
    /// Kinds in use.
    pub(crate) kinds: BTreeSet<Gvk>,
}

impl Index {
    /// An empty index that demands the three base watches.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            policies: BTreeMap::new(),
            members: BTreeMap::new(),
            entities: BTreeMap::new(),
            by_binding: BTreeMap::new(),
            selecting: BTreeMap::new(),
            claimed: BTreeMap::new(),
            tombstones: BTreeMap::new(),
            buried: VecDeque::new(),
            demand: [Watch::Policies, Watch::Bindings, Watch::Clusters].into(),
            listed: BTreeSet::new(),
            synced: BTreeSet::new(),
            list_revisions: BTreeMap::new(),
            gone_floors: BTreeMap::new(),
            unlistable: BTreeMap::new(),
            kinds: BTreeSet::new(),
        }
    }

    /// Which list-and-watches must run now.
    #[must_use]
    pub fn demand(&self) -> &BTreeSet<Watch> {
        &self.demand
    }

    /// A Cluster object.
    #[must_use]
    pub fn cluster(&self, name: &str) -> Option<Arc<Cluster>> {
        self.members.get(name).map(|member| member.object.clone())
    }

    /// An entity, if anything is known under this identity.
    #[must_use]
    pub fn entity(&self, id: &Id) -> Option<&Entity> {
        self.entities.get(id)
    }

    /// All entities, in order. Cost: O(1) to start; not for use per event.
    pub fn entities(&self) -> impl Iterator<Item = (&Id, &Entity)> {
        self.entities.iter()
    }

    /// The identity whose binding has this name.
    #[must_use]
    pub fn by_binding(&self, name: &Named) -> Option<&Id> {
        self.by_binding.get(name)
    }

    /// Whether every demanded watch of the hub, and of every member that answers, is listed and healthy.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        let watched = self.demand.iter().all(|watch| match watch {
            Watch::Copies(cluster, _) => {
                !self.answers(cluster) || self.synced.contains(watch) || self.unlistable.contains_key(watch)
            }
            _ => self.synced.contains(watch),
        });
        // A probe ends within its deadline, one way or the other.
        let probed =
            |member: &Member| member.probe.is_some() || member.object.spec.sync_mode == SyncMode::Pull;
        watched && self.members.values().all(probed)
    }

    /// Sizes. Cost: O(entities); for metrics only.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let live = |each: &Entity| each.copies.values().filter(|copy| copy.live.is_some()).count();
        Stats {
            templates: self
                .entities
                .values()
                .filter(|each| each.template.is_some())
                .count(),
            bindings: self.by_binding.len(),
            copies: self.entities.values().map(live).sum(),
            clusters: self.members.len(),
            policies: self.policies.len(),
            unaccounted: self.entities.values().filter(|each| each.binding.is_none()).map(live).sum(),
        }
    }

    /// Whether every demanded kind of the hub has been listed.
    pub(crate) fn is_hub_listed(&self) -> bool {
        self.demand.iter().all(|watch| {
            matches!(watch, Watch::Copies(..))
                || self.listed.contains(watch)
                || self.unlistable.contains_key(watch)
        })
    }

    /// Whether policies, bindings, clusters and the templates of this kind are known well enough to plan for one.
    pub(crate) fn is_kind_listed(&self, gvk: &Gvk) -> bool {
        let base = [Watch::Policies, Watch::Bindings, Watch::Clusters];
        base.iter().all(|watch| self.listed.contains(watch)) && {
            let templates = Watch::Templates(gvk.clone());
            self.listed.contains(&templates) || self.unlistable.contains_key(&templates)
        }
    }

    /// Whether what the hub holds is known well enough to remove something of this kind: the first part of the proof
    /// (I1, I2). It takes policies, bindings, clusters, the kind itself, and every kind that may refer to it.
    pub(crate) fn is_removal_safe(&self, gvk: &Gvk) -> bool {
        self.is_base_synced()
            && self.kinds.iter().filter(|kind| *kind == gvk || refers(kind)).all(|kind| {
                self.synced.contains(&Watch::Templates(kind.clone()))
            })
    }

    /// Whether policies, bindings and clusters are known as they are now.
    pub(crate) fn is_base_synced(&self) -> bool {
        [Watch::Policies, Watch::Bindings, Watch::Clusters].iter().all(|watch| self.synced.contains(watch))
    }

    /// Whether a member's last probe found it healthy. A member that was never probed does not answer.
    pub(crate) fn answers(&self, cluster: &str) -> bool {
        self.members
            .get(cluster)
            .is_some_and(|member| member.probe.as_ref().is_some_and(|probe| probe.healthy))
    }

    /// Whether copies of a kind on a member are known: listed, and the watch is healthy.
    pub(crate) fn copies_known(&self, cluster: &Str, gvk: &Gvk) -> bool {
        self.synced.contains(&Watch::Copies(cluster.clone(), gvk.clone()))
    }

    /// Whether a copy may still stand on the member: it is seen, or it was written and the member cannot be asked.
    pub(crate) fn may_exist(&self, id: &Id, cluster: &Str) -> bool {
        let Some(entity) = self.entities.get(id) else {
            return false;
        };
        let (Some(copy), Some(member)) = (entity.copies.get(cluster), self.members.get(cluster)) else {
            return false;
        };
        if copy.live.is_some() || copy.in_flight || copy.uncertain {
            return true;
        }
        // What an unlisted member may hold: what was written there, or could have been before this process began.
        let was_ready = member.object.status.as_ref().is_some_and(|status| !status.kubernetes_version.is_empty());
        let placed = entity.last_binding().is_some_and(|binding| binding.accounts_for(cluster));
        (copy.record.is_some() || (placed && was_ready)) && !self.copies_known(cluster, &id.gvk)
    }

    /// Whether the binding of a template takes its dependencies along.
    pub(crate) fn is_following(&self, entity: &Entity) -> bool {
        self.config.propagate_deps
            && entity.binding.as_ref().is_some_and(|binding| binding.refers && binding.object.spec.placement.is_some() && binding.object.spec.propagate_deps)
    }
}

/// The identity a reference names.
#[must_use]
pub fn referred(reference: &DependencyReference) -> Id {
    Id::new(gvk_of(reference.kind), &reference.namespace, &reference.name)
}

fn gvk_of(kind: DependencyKind) -> Gvk {
    Gvk::new(kind.api_version(), kind.kind())
}

/// The identity a binding is for.
pub(crate) fn bound(binding: &ResourceBinding) -> Id {
    let resource = &binding.spec.resource;
    Id::new(
        Gvk::new(&resource.api_version, &resource.kind),
        &resource.namespace,
        &resource.name,
    )
}

/// Whether another component keeps this binding; we leave it alone.
pub(crate) fn is_kept_by_others(meta: &Meta) -> bool {
    meta.label(label::BINDING_MANAGED_BY).is_some()
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

/// Whether an event at `resource_version` is older than what is held.
pub(crate) fn is_old(resource_version: &str, held: u64) -> bool {
    revision(resource_version) < held
}
