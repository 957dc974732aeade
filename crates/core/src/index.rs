//! The Index: everything observed, joined. It is the only state of the control plane; all of it can be rebuilt from
//! the API servers.
//!
//! A template, its binding and its copies share one [`ResourceId`] and live in one [`ResourceState`]. Two reverse indexes make an event
//! cost what it affects: dependency → referrers, and policy → templates it claims. [`Index::observe`] is the one door;
//! it answers with the keys to plan again (`routes`).
//!
//! It names no planner. What planners ask together is a query here (`needs`, `wanted`, `claims`, `current`, …), and what one
//! remembers between plans is a plain type here (`brakes`, `contests`, `rebalancers`, …).

pub(crate) mod activation;
pub(crate) mod brakes;
pub(crate) mod claims;
pub(crate) mod contests;
mod copy_state;
pub(crate) mod current;
mod cut_off;
mod demand;
pub(crate) mod distributions;
pub(crate) mod identities;
mod kinds;
pub(crate) mod namespaces;
pub(crate) mod needs;
mod observe;
mod override_index;
mod policy_index;
pub(crate) mod rebalancers;
pub(crate) mod regarding;
pub(crate) mod render_specs;
mod resource_state;
mod rights;
mod routes;
pub(crate) mod suspension;
mod sync_requirement;
pub(crate) mod taints;
mod uses;
pub(crate) mod wanted;

use brakes::Brakes;
use cut_off::CutOff;
use distributions::Distributions;
pub(crate) use kinds::{NamedKinds, selected_kinds};
use namespaces::Namespaces;
pub(crate) use override_index::{OverrideIndex, Reach};
pub(crate) use policy_index::PolicyIndex;
use rebalancers::Rebalancers;
pub(crate) use sync_requirement::INTERPRETER_WATCHES;
use sync_requirement::{BASE, OVERRIDES, Waiting};
pub(crate) use uses::follows;

pub use crate::config::{Config, KINDS_PER_NAMESPACE};
pub use copy_state::{CopyState, PendingWrite, Problem, Trouble};
pub(crate) use observe::consents;
pub use observe::content_version;
pub use resource_state::{Binding, Member, Policy, ResourceState, Stats, Tombstone};
pub(crate) use resource_state::{Copied, TaintPolicy};

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use entourage_api::{
    cluster::{Cluster, SyncMode},
    config::ResourceInterpreterCustomization,
    keys::label,
    work::ResourceBinding,
};

use crate::{
    cache::{Revisions, WatchTable},
    eviction_budget::Evictions,
    interpreter::{Interpreter, hook::Contract, references::DependencyReference},
    object::{Gvk, Meta, NamespacedName, ResourceId, Str, Time, revision},
    observation::{Configured, Watch},
};

/// Everything observed.
#[derive(Debug)]
pub struct Index {
    /// Settings.
    pub config: Config,
    /// Whether this process writes: then its records are its own answers, see [`observe`].
    pub(crate) leading: bool,
    pub(crate) policies: BTreeMap<NamespacedName, Policy>,
    pub(crate) members: BTreeMap<Str, Member>,
    pub(crate) resources: BTreeMap<ResourceId, ResourceState>,
    /// Binding → template. Never parsed from a name.
    pub(crate) by_binding: BTreeMap<NamespacedName, ResourceId>,
    /// Template → policies that may select it.
    pub(crate) policy_index: PolicyIndex,
    /// What is changed in copies.
    pub(crate) override_index: OverrideIndex,
    /// Policy → templates or bindings that carry its claim.
    pub(crate) claimed: BTreeMap<NamespacedName, BTreeSet<ResourceId>>,
    /// Forgotten entities: below these revisions events are old news. Bounded.
    pub(crate) tombstones: BTreeMap<ResourceId, Tombstone>,
    pub(crate) buried: VecDeque<(Time, ResourceId)>,
    /// The state of each list-and-watch.
    pub(crate) watches: WatchTable,
    /// Policies, overrides, Clusters and namespaces: below these revisions events are old news.
    pub(crate) revisions: Revisions,
    /// Templates whose claim the hub refuses to our account, and its words.
    pub(crate) unclaimed: BTreeMap<ResourceId, String>,
    /// Whether who held what before this process began is remembered; see [`sync_requirement`].
    pub(crate) remembers_former: bool,
    /// Who waits for proof.
    pub(crate) waiting: Waiting,
    /// How many deletions there were, and where they are paused.
    pub(crate) brakes: Brakes,
    /// When which binding may be evicted.
    pub(crate) evictions: Evictions,
    /// Kinds whose templates have a status of others; see [`contests`].
    pub(crate) contested: BTreeSet<Gvk>,
    /// Keys that planning others has dirtied.
    pub(crate) raised: Vec<crate::plan::Key>,
    /// What is to be said in the log.
    pub(crate) notices: Vec<String>,
    /// Where what is being observed comes from.
    pub(crate) origin: observe::Origin,
    /// What people teach us of kinds.
    pub(crate) customizations: BTreeMap<Str, Arc<ResourceInterpreterCustomization>>,
    /// Configurations of hooks.
    pub(crate) hooks: BTreeMap<(Contract, Str), Arc<Configured>>,
    /// The same, put together.
    pub(crate) interpreter: Interpreter,
    /// Kinds of which something else is taught now, until their templates were listed again: what they referred to counts.
    pub(crate) read_again: BTreeSet<Gvk>,
    /// Namespace → templates of others that name something in it; empty for what has no namespace.
    pub(crate) cross_namespace_referrers: BTreeMap<Str, BTreeSet<ResourceId>>,
    /// Namespaces of the hub and of members.
    pub(crate) namespaces: Namespaces,
    /// (kind, namespace) → templates that select objects of it by label.
    pub(crate) selectors: BTreeMap<(Gvk, Str), BTreeSet<ResourceId>>,
    /// Distributions, their places and the objects of their names.
    pub(crate) distributions: Distributions,
    /// Which Clusters stand for which physical cluster.
    pub(crate) identities: identities::Identities,
    /// Members that stopped answering together.
    pub(crate) cut_off: CutOff,
    /// ClusterTaintPolicies.
    pub(crate) taint_policies: BTreeMap<Str, TaintPolicy>,
    /// Objects on members that carry our metadata and are not managed.
    pub(crate) copied: BTreeMap<Str, Copied>,
    /// Kinds in use, each in the version that is watched.
    pub(crate) kinds: BTreeSet<Gvk>,
    /// Kinds that policies name.
    pub(crate) named_kinds: NamedKinds,
    /// What asks for workloads to be placed afresh.
    pub(crate) rebalancers: Rebalancers,
}

impl Index {
    /// An empty index that demands the base watches.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let distributions = config.distribute.then_some(Watch::Distributions);
        Self {
            config,
            leading: true,
            policies: BTreeMap::new(),
            members: BTreeMap::new(),
            resources: BTreeMap::new(),
            by_binding: BTreeMap::new(),
            policy_index: PolicyIndex::default(),
            override_index: OverrideIndex::default(),
            claimed: BTreeMap::new(),
            tombstones: BTreeMap::new(),
            buried: VecDeque::new(),
            watches: BASE
                .into_iter()
                .chain(OVERRIDES)
                .chain(INTERPRETER_WATCHES)
                .chain([Watch::Namespaces, Watch::TaintPolicies, Watch::Rebalancers])
                .chain(distributions)
                .collect(),
            revisions: Revisions::default(),
            unclaimed: BTreeMap::new(),
            remembers_former: false,
            waiting: Waiting::default(),
            brakes: Brakes::default(),
            evictions: Evictions::default(),
            contested: BTreeSet::new(),
            raised: Vec::new(),
            notices: Vec::new(),
            origin: observe::Origin::default(),
            customizations: BTreeMap::new(),
            hooks: BTreeMap::new(),
            interpreter: Interpreter::default(),
            read_again: BTreeSet::new(),
            cross_namespace_referrers: BTreeMap::new(),
            namespaces: Namespaces::default(),
            selectors: BTreeMap::new(),
            distributions: Distributions::default(),
            identities: identities::Identities::default(),
            cut_off: CutOff::default(),
            taint_policies: BTreeMap::new(),
            copied: BTreeMap::new(),
            kinds: BTreeSet::new(),
            named_kinds: NamedKinds::default(),
            rebalancers: Rebalancers::default(),
        }
    }

    /// Which list-and-watches must run now.
    #[must_use]
    pub fn demand(&self) -> &BTreeSet<Watch> {
        self.watches.demanded()
    }

    /// Watches that were forgotten since this was last asked: one of them that runs must end, and list afresh if it is
    /// demanded again. Cost: O(1).
    pub fn take_ended(&mut self) -> BTreeSet<Watch> {
        self.watches.take_ended()
    }

    /// Keys that planning others has dirtied: to be asked for after each plan. Cost: O(1) when there are none.
    pub fn take_raised(&mut self) -> Vec<crate::plan::Key> {
        let clusters = self.brakes.take_raised().into_iter();
        let mut raised = std::mem::take(&mut self.raised);
        raised.extend(clusters.map(crate::plan::Key::Cluster));
        raised
    }

    /// What a person is to read in the log, once. Cost: O(1) when there is nothing.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// How often [`Self::demand`] has changed: while this stays, so does that. Cost: O(1).
    #[must_use]
    pub fn demand_changes(&self) -> u64 {
        self.watches.changes()
    }

    /// A Cluster object.
    #[must_use]
    pub fn cluster(&self, name: &str) -> Option<Arc<Cluster>> {
        self.members.get(name).map(|member| member.object.clone())
    }

    /// An entity, if anything is known under this identity.
    #[must_use]
    pub fn resource(&self, id: &ResourceId) -> Option<&ResourceState> {
        self.resources.get(id)
    }

    /// All entities, in order. Cost: O(1) to start; not for use per event.
    pub fn resources(&self) -> impl Iterator<Item = (&ResourceId, &ResourceState)> {
        self.resources.iter()
    }

    /// The identity whose binding has this name.
    #[must_use]
    pub fn by_binding(&self, name: &NamespacedName) -> Option<&ResourceId> {
        self.by_binding.get(name)
    }

    /// True if every demanded watch of the hub, and of every member that answers, is listed and healthy.
    /// Cost: O(members).
    #[must_use]
    pub fn is_synced(&self) -> bool {
        let watched = self.watches.all_synced(|cluster| self.answers(cluster));
        // A probe ends within its deadline, one way or the other.
        let probed =
            |member: &Member| member.probe.is_some() || member.object.spec.sync_mode == SyncMode::Pull;
        watched && self.members.values().all(probed)
    }

    /// Whether a member's last probe found it healthy, and it may be used. A member that was never probed does not answer.
    pub(crate) fn answers(&self, cluster: &str) -> bool {
        self.members
            .get(cluster)
            .is_some_and(|member| member.probe.as_ref().is_some_and(|probe| probe.healthy))
            && identities::objection(self, cluster).is_none()
    }

    /// Whether a member was probed since this process began; one that an agent takes care of never is.
    pub(crate) fn was_probed(&self, cluster: &str) -> bool {
        self.members
            .get(cluster)
            .is_none_or(|member| member.probe.is_some() || member.object.spec.sync_mode == SyncMode::Pull)
    }

    /// Whether copies of a kind on a member are known: listed, and the watch is healthy.
    pub(crate) fn copies_known(&self, cluster: &Str, gvk: &Gvk) -> bool {
        let copies = self.copies(cluster, gvk);
        self.watches.is_synced(&copies) || self.watches.is_no_such_kind(&copies)
    }

    /// Whether a copy may still exist on the member: it is seen, or it was written and the member cannot be asked.
    pub(crate) fn may_exist(&self, id: &ResourceId, cluster: &Str) -> bool {
        let Some(resource) = self.resources.get(id) else {
            return false;
        };
        let (Some(copy), Some(member)) = (resource.copies.get(cluster), self.members.get(cluster)) else {
            return false;
        };
        if copy.live.is_some() || copy.in_flight || copy.pending.is_some() {
            return true;
        }
        // What an unlisted member may hold: what was written there, or could have been before this process began.
        let was_ready = member
            .object
            .status
            .as_ref()
            .is_some_and(|status| !status.kubernetes_version.is_empty());
        let placed = resource
            .last_binding()
            .is_some_and(|binding| binding.accounts_for(cluster));
        (copy.record.is_some() || (placed && was_ready)) && !self.copies_known(cluster, &id.gvk)
    }

    /// Whether the binding of a template takes its dependencies along; one that vanished counts until it is made again.
    pub(crate) fn is_following(&self, resource: &ResourceState) -> bool {
        self.config.propagate_deps
            && resource.last_binding().is_some_and(|binding| {
                binding.refers
                    && binding.object.spec.placement.is_some()
                    && binding.object.spec.propagate_deps
            })
    }
}

/// The identity a reference names.
#[must_use]
pub fn referred(reference: &DependencyReference) -> ResourceId {
    reference.id.clone()
}

/// The identity a binding is for.
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

/// Whether an event at `resource_version` is older than what is held.
pub(crate) fn is_old(resource_version: &str, held: u64) -> bool {
    revision(resource_version) < held
}
