//! The fleet as this process knows it: the cache, the graph and the memory, and the queries that several planners share.
//!
//! It is the only state of the control plane; all of it can be rebuilt from the API servers. It names no planner, and nothing here
//! changes it: that is done by [`crate::Engine`] alone.

pub(crate) mod activation;
pub(crate) mod autoscaling;
pub(crate) mod claims;
pub(crate) mod consent;
pub(crate) mod contests;
pub(crate) mod current;
mod demand;
pub(crate) mod execution_namespaces;
pub(crate) mod exports;
pub(crate) mod identities;
pub(crate) mod namespaces;
pub(crate) mod needs;
mod priorities;
pub(crate) mod quotas;
pub(crate) mod regarding;
pub(crate) mod render_specs;
mod rights;
pub(crate) mod secrets;
mod stats;
pub(crate) mod suspension;
pub(crate) mod sync_requirement;
pub(crate) mod taints;
pub(crate) mod target_status;
pub(crate) mod uses;
pub(crate) mod wanted;
pub(crate) mod workload_groups;
pub(crate) mod works;

pub use crate::memory::{
    eviction_counts::Eviction,
    problem_counts::{ConditionProblem, MemberProblems, ProblemCounts},
    propagations::Propagated,
};
pub(crate) use consent::consents;
pub(crate) use priorities::Priority;
pub use stats::Stats;
pub(crate) use sync_requirement::INTERPRETER_WATCHES;

use std::{collections::BTreeSet, sync::Arc};

use entourage_api::{
    cluster::{Cluster, SyncMode},
    names,
};
use sync_requirement::{BASE, OVERRIDES};

use crate::{
    cache::{Cache, Member, ResourceState},
    config::Config,
    graph::{Graph, Links, Reach},
    kinds,
    memory::Memory,
    object::{Gvk, NamespacedName, ResourceId, Str},
    observation::{Server, ServicePart, Watch},
};

/// The fleet as this process knows it.
#[derive(Debug)]
pub struct Fleet {
    /// Settings.
    pub config: Config,
    /// True if this process writes: then its records come from its own responses, see [`crate::engine`].
    pub(crate) leading: bool,
    pub(crate) cache: Cache,
    pub(crate) graph: Graph,
    pub(crate) memory: Memory,
}

impl Fleet {
    /// An empty fleet that demands the base watches.
    pub(crate) fn new(config: Config) -> Self {
        let distributions = config.distribute.then_some(Watch::Distributions);
        let works = config.mirror_works.then_some(Watch::Works);
        let mut graph = Graph::default();
        let services = config.share_services.then(|| {
            // Which members export a Service is known also while no policy selects a ServiceExport.
            graph.kinds.insert(kinds::service_export());
            graph.interpreter.review(&kinds::service_export());
            let parts = [ServicePart::Import, ServicePart::Derived, ServicePart::Imported];
            let exports = Watch::Templates(kinds::service_export());
            parts.map(Watch::ServiceParts).into_iter().chain([exports])
        });
        let watches = BASE
            .into_iter()
            .chain(OVERRIDES)
            .chain(INTERPRETER_WATCHES)
            .chain([
                Watch::Namespaces,
                Watch::TaintPolicies,
                Watch::Rebalancers,
                Watch::Quotas,
            ])
            .chain(distributions)
            .chain(works)
            .chain(services.into_iter().flatten())
            .collect();
        Self {
            config,
            leading: true,
            cache: Cache {
                watches,
                ..Cache::default()
            },
            graph,
            memory: Memory::default(),
        }
    }

    /// The list-and-watches that must run now.
    #[must_use]
    pub fn demand(&self) -> &BTreeSet<Watch> {
        self.cache.watches.demanded()
    }

    /// The number of changes of [`Self::demand`]: while it is the same, so is the demand. Cost: O(1).
    #[must_use]
    pub fn demand_changes(&self) -> u64 {
        self.cache.watches.changes()
    }

    /// A Cluster object.
    #[must_use]
    pub fn cluster(&self, name: &str) -> Option<Arc<Cluster>> {
        self.cache.members.get(name).map(|member| member.object.clone())
    }

    /// A template with its binding and its copies, if any of them is known.
    #[must_use]
    pub fn resource(&self, id: &ResourceId) -> Option<&ResourceState> {
        self.cache.resources.get(id).map(|resource| &**resource)
    }

    /// The links of a template: its dependencies and its referrers. Cost: O(log resources).
    #[must_use]
    pub fn links(&self, id: &ResourceId) -> &Links {
        self.graph.links.of(id)
    }

    /// All templates with their bindings and copies, in order. Cost: O(1) to start; not for use per event.
    pub fn resources(&self) -> impl Iterator<Item = (&ResourceId, &ResourceState)> {
        self.cache
            .resources
            .iter()
            .map(|(id, resource)| (id, &**resource))
    }

    /// The template whose binding has this name.
    #[must_use]
    pub fn by_binding(&self, name: &NamespacedName) -> Option<&ResourceId> {
        self.graph.by_binding.get(name)
    }

    /// True if every demanded watch of the hub, and of every member that responds, is synced. Cost: O(members).
    #[must_use]
    pub fn is_synced(&self) -> bool {
        let watched = self.cache.watches.all_synced(|cluster| self.answers(cluster));
        // A probe ends within its deadline, one way or the other.
        let probed = |member: &Member| member.probe.is_some();
        watched && self.cache.members.values().all(probed)
    }

    /// The watches that [`Self::is_synced`] misses; none if only a probe is missing. Cost: O(watches).
    #[must_use]
    pub fn unsynced(&self) -> Vec<Watch> {
        let counts = |watch: &&Watch| match watch.server() {
            Server::Hub => true,
            Server::Member(cluster) => self.answers(&cluster),
        };
        self.cache.watches.unsynced().filter(counts).cloned().collect()
    }

    /// True if a Cluster is in Pull mode: its copies are Works, which its agent applies. Cost: O(log Clusters).
    pub(crate) fn is_pull(&self, cluster: &str) -> bool {
        let member = self.cache.members.get(cluster);
        member.is_some_and(|member| member.object.spec.sync_mode == SyncMode::Pull)
    }

    /// True if a member's last probe found it healthy, and it may be used. A member that was never probed does not respond.
    pub(crate) fn answers(&self, cluster: &str) -> bool {
        self.cache
            .members
            .get(cluster)
            .is_some_and(|member| member.probe.as_ref().is_some_and(|probe| probe.healthy))
            && identities::objection(self, cluster).is_none()
    }

    /// True if a member was probed since this process began.
    pub(crate) fn was_probed(&self, cluster: &str) -> bool {
        self.cache
            .members
            .get(cluster)
            .is_none_or(|member| member.probe.is_some())
    }

    /// True if the copies of a kind on a member are synced.
    pub(crate) fn copies_known(&self, cluster: &Str, gvk: &Gvk) -> bool {
        let copies = self.copies(cluster, gvk);
        self.cache.watches.is_synced(&copies) || self.cache.watches.is_no_such_kind(&copies)
    }

    /// True if a copy may still exist on the member: it is observed, or it was written and its watch is not synced.
    pub(crate) fn may_exist(&self, id: &ResourceId, cluster: &Str) -> bool {
        let Some(resource) = self.cache.resources.get(id) else {
            return false;
        };
        let (Some(copy), Some(member)) = (resource.copies.get(cluster), self.cache.members.get(cluster))
        else {
            return false;
        };
        if copy.live.is_some() || copy.in_flight || copy.pending.is_some() {
            return true;
        }
        // An unlisted member may hold copies that were written there, or could have been before this process began.
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

    /// True if the dependencies of a template are propagated with it; a binding that was deleted counts until it is created again.
    pub(crate) fn is_following(&self, resource: &ResourceState) -> bool {
        self.config.propagate_deps
            && resource.last_binding().is_some_and(|binding| {
                binding.refers
                    && binding.object.spec.placement.is_some()
                    && binding.object.spec.propagate_deps
            })
    }

    /// The objects that a policy of this reach may select. Cost: as stated at [`Self::reconsider_reach`] for objects.
    pub(crate) fn reached<'a>(&'a self, reach: &'a Reach) -> impl Iterator<Item = &'a ResourceId> {
        let kinds: Vec<&Gvk> = match &reach.gvk {
            Some(gvk) => vec![gvk],
            None => self.graph.kinds.iter().collect(),
        };
        let in_one_place = !reach.namespace.is_empty();
        kinds.into_iter().flat_map(move |gvk| {
            let first = ResourceId::new(gvk.clone(), &reach.namespace, &reach.name);
            self.cache
                .resources
                .range(first..)
                .map(|(id, _)| id)
                .take_while(move |id| id.gvk == *gvk && (!in_one_place || id.namespace == reach.namespace))
                .take_while(move |id| !in_one_place || reach.name.is_empty() || id.name == reach.name)
                .filter(|id| reach.name.is_empty() || id.name == reach.name)
        })
    }

    /// The name of the binding of a template: as stored, or as it would be created. If two groups serve a kind of this name,
    /// the first one has Karmada's name, the other one has its group in the name (architecture 6); further ones have their full
    /// identity in it.
    pub(crate) fn binding_name_of(&self, id: &ResourceId) -> Str {
        if let Some(binding) = self.resource(id).and_then(ResourceState::last_binding) {
            return binding.name.name.clone();
        }
        let names = names::binding_names(&id.gvk.group, &id.gvk.kind, &id.name);
        let is_free = |name: &&String| {
            let holder = self
                .graph
                .by_binding
                .get(&NamespacedName::new(&id.namespace, name));
            holder.is_none_or(|holder| holder == id)
        };
        let [.., last] = &names;
        names.iter().find(is_free).unwrap_or(last).as_str().into()
    }
}
