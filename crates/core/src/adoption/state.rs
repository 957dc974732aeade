//! The objects of this hub that copies are made from, as stored.

use std::collections::{BTreeMap, BTreeSet};

use entourage_api::kruise::DistributionTargets;
use serde::Deserialize as _;
use serde_json::Value;

use crate::{
    distributed::targets::Targets,
    kinds::resource_quota,
    object::{Gvk, Meta, NamespacedName, ResourceId, Str, StrMap},
    places::is_system,
};

/// The objects of this hub that copies are made from.
#[derive(Clone, Debug, Default)]
pub struct HubState {
    /// The bindings that are not being deleted.
    pub bindings: BTreeMap<NamespacedName, Placed>,
    /// The uids of the templates, of the kinds that the former hub's copies have and of those that need these.
    pub templates: BTreeMap<ResourceId, Str>,
    /// Those of these templates whose annotation takes over objects of others at once.
    pub overwriting: BTreeSet<ResourceId>,
    /// The namespaces that are not being deleted.
    pub namespaces: BTreeMap<Str, Meta>,
    /// The ResourceDistributions that are not being deleted.
    pub distributions: BTreeMap<Str, Distributed>,
    /// The FederatedResourceQuotas, and the clusters that each assigns limits to.
    pub quotas: BTreeMap<NamespacedName, BTreeSet<Str>>,
}

/// The template that a binding is for, and its clusters.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The template, in the version in which copies are written.
    pub resource: ResourceId,
    /// The clusters that it is scheduled to, or where a referrer needs it, as stored: the controllers may be about to change them.
    pub clusters: BTreeSet<Str>,
    /// The uid of the template that it was made for.
    owner: Str,
    /// The clusters that its placement led to; `None` without a placement.
    scheduled: Option<BTreeSet<Str>>,
    /// False if the scheduler has not seen its spec as it is.
    is_current: bool,
    propagates_dependencies: bool,
    /// The clusters where each referrer needs it, by the referrer's binding.
    required: BTreeMap<NamespacedName, BTreeSet<Str>>,
}

impl Placed {
    fn of(resource: ResourceId, binding: &Value) -> Self {
        let (meta, spec) = (&binding["metadata"], &binding["spec"]);
        let scheduled = names(&spec["clusters"], "name");
        let required: BTreeMap<_, _> = list(&spec["requiredBy"])
            .map(|each| {
                let name = NamespacedName::new(text(&each["namespace"]), text(&each["name"]));
                (name, names(&each["clusters"], "name"))
            })
            .collect();
        let clusters = required.values().chain([&scheduled]).flatten().cloned().collect();
        let owner = list(&meta["ownerReferences"]).find(|owner| owner["controller"] == true);
        let generation = meta["generation"].as_i64();
        let observed = binding["status"]["schedulerObservedGeneration"].as_i64();
        Self {
            resource,
            clusters,
            owner: owner.map_or("", |owner| text(&owner["uid"])).into(),
            scheduled: spec["placement"].is_object().then_some(scheduled),
            is_current: generation.is_some() && generation == observed,
            propagates_dependencies: spec["propagateDeps"] == true,
            required,
        }
    }
}

/// A distribution: what it copies, and where. Nothing of its content.
#[derive(Clone, Debug)]
pub struct Distributed {
    kind: Str,
    name: Str,
    /// The members with targets, as reported or by name.
    clusters: BTreeSet<Str>,
    /// The cluster and namespace of each target that another owner holds, as reported.
    conflicts: BTreeSet<(Str, Str)>,
    targets: Targets,
}

impl Distributed {
    /// `None` if its targets are invalid: nothing is distributed then.
    fn of(object: &Value) -> Option<Self> {
        let (spec, status) = (&object["spec"], &object["status"]);
        let (embedded, source) = (&spec["resource"], &spec["resourceFrom"]);
        let name = |field: &str, embedded: &Value| -> Str {
            let all = [&status["distributed"][field], embedded, &source[field]];
            let mut given = all.into_iter().filter_map(Value::as_str);
            given.next().unwrap_or_default().into()
        };
        let targets = DistributionTargets::deserialize(&spec["targets"]).ok()?;
        // Without clusters its targets are namespaces of the hub.
        let affinity = targets.clusters.clone().unwrap_or_default();
        let excluded = |name: &Str| affinity.exclude.iter().any(|each| **each == **name);
        let is_by_name = affinity.label_selector.is_none() && affinity.field_selector.is_none();
        let named = affinity.cluster_names.iter().filter(|_| is_by_name);
        let mut clusters: BTreeSet<Str> = named.map(|name| name.as_str().into()).collect();
        let mut conflicts: BTreeSet<(Str, Str)> = BTreeSet::new();
        // What an older version of the targets led to says nothing of these.
        if status["observedGeneration"] == object["metadata"]["generation"] {
            let reported = list(&status["clusters"]).filter(|each| each["desired"].as_i64() > Some(0));
            clusters.extend(reported.map(|each| Str::from(text(&each["name"]))));
            conflicts.extend(
                list(&status["conflictingNamespaces"])
                    .map(|each| (Str::from(text(&each["cluster"])), Str::from(text(&each["name"])))),
            );
        }
        clusters.retain(|name| !excluded(name));
        Some(Self {
            kind: name("kind", &embedded["kind"]),
            name: name("name", &embedded["metadata"]["name"]),
            clusters,
            conflicts,
            targets: Targets::compile(&targets).ok()?,
        })
    }

    /// True if a copy of this kind and name is wanted in a namespace with these labels. Namespaces that are selected by their
    /// workloads count only if the distribution reports them.
    pub(super) fn is_wanted(&self, id: &ResourceId, cluster: &str, labels: &StrMap) -> bool {
        let is_of = id.gvk.group.is_empty() && id.gvk.kind == self.kind && id.name == self.name;
        let is_reported = || self.conflicts.contains(&(cluster.into(), id.namespace.clone()));
        let is_target =
            || self.clusters.contains(cluster) && self.targets.means(&id.namespace, labels, false);
        is_of && !is_system(&id.namespace) && (is_reported() || is_target())
    }
}

impl HubState {
    /// Adds a binding as stored.
    pub fn add_binding(&mut self, binding: &Value) {
        let meta = &binding["metadata"];
        let resource = &binding["spec"]["resource"];
        let (Some(api_version), Some(kind), Some(name)) = (
            resource["apiVersion"].as_str(),
            resource["kind"].as_str(),
            resource["name"].as_str(),
        ) else {
            return;
        };
        if is_deleting(binding) {
            return;
        }
        let resource = ResourceId::new(Gvk::new(api_version, kind), text(&resource["namespace"]), name);
        let name = NamespacedName::new(text(&meta["namespace"]), text(&meta["name"]));
        self.bindings.insert(name, Placed::of(resource, binding));
    }

    /// True if the controllers want a copy of this object on a cluster, by this binding: it was made for the template as it is,
    /// and is scheduled there by its placement, or a referrer's is that propagates dependencies. Cost: O(its referrers, direct
    /// and indirect ones).
    pub(super) fn is_wanted(&self, binding: &NamespacedName, id: &ResourceId, cluster: &str) -> bool {
        let is_of = |placed: &Placed| placed.resource == *id;
        self.bindings.get(binding).is_some_and(is_of)
            && (self.is_scheduled(binding, cluster) || self.is_required(binding, cluster))
    }

    /// True if this hub has what a binding was made for, in the version with that uid.
    fn is_of_its_template(&self, placed: &Placed) -> bool {
        let uid = self.templates.get(&placed.resource);
        uid.is_some_and(|uid| !uid.is_empty() && *uid == placed.owner)
    }

    /// True if the controllers have still to bring a binding up to date with its template or its placement, or it names the
    /// cluster without either of the reasons for which a copy is wanted.
    pub(super) fn is_open(&self, placed: &Placed, cluster: &str) -> bool {
        !self.is_of_its_template(placed)
            || placed.scheduled.is_some() && !placed.is_current
            || placed.clusters.contains(cluster)
    }

    fn is_scheduled(&self, binding: &NamespacedName, cluster: &str) -> bool {
        self.bindings.get(binding).is_some_and(|placed| {
            let scheduled = placed.scheduled.as_ref();
            let is_there = scheduled.is_some_and(|clusters| clusters.contains(cluster));
            is_there && placed.is_current && self.is_of_its_template(placed)
        })
    }

    fn is_required(&self, binding: &NamespacedName, cluster: &str) -> bool {
        let (mut seen, mut open) = (BTreeSet::from([binding]), vec![binding]);
        while let Some(name) = open.pop() {
            let placed = self.bindings.get(name);
            let Some(placed) = placed.filter(|placed| self.is_of_its_template(placed)) else {
                continue;
            };
            for (referrer, clusters) in &placed.required {
                if !clusters.contains(cluster) || !seen.insert(referrer) {
                    continue;
                }
                let held = self.bindings.get(referrer);
                let propagates = held.is_some_and(|held| held.propagates_dependencies);
                if propagates && self.is_scheduled(referrer, cluster) {
                    return true;
                }
                open.push(referrer);
            }
        }
        false
    }

    /// Adds a FederatedResourceQuota as stored.
    pub fn add_quota(&mut self, quota: &Value) {
        let meta = &quota["metadata"];
        if !is_deleting(quota) {
            let name = NamespacedName::new(text(&meta["namespace"]), text(&meta["name"]));
            let clusters = names(&quota["spec"]["staticAssignments"], "clusterName");
            self.quotas.insert(name, clusters);
        }
    }

    /// Adds a ResourceDistribution as stored.
    pub fn add_distribution(&mut self, distribution: &Value) {
        if !is_deleting(distribution)
            && let Some(distributed) = Distributed::of(distribution)
        {
            let name = text(&distribution["metadata"]["name"]).into();
            self.distributions.insert(name, distributed);
        }
    }

    /// Adds a namespace as stored.
    pub fn add_namespace(&mut self, namespace: &Value) {
        if !is_deleting(namespace) {
            let name = text(&namespace["metadata"]["name"]).into();
            self.namespaces.insert(name, Meta::of(namespace));
        }
    }

    /// The kinds of the copies that this hub makes.
    #[must_use]
    pub fn kinds(&self) -> BTreeSet<Gvk> {
        let distributed = self.distributions.values().map(|each| &*each.kind);
        let distributed = distributed.filter(|kind| !kind.is_empty());
        let mut all: BTreeSet<Gvk> = distributed.map(|kind| Gvk::new("v1", kind)).collect();
        all.extend(self.versions());
        if !self.quotas.is_empty() {
            all.insert(resource_quota());
        }
        if !self.namespaces.is_empty() {
            all.insert(Gvk::new("v1", "Namespace"));
        }
        all
    }

    /// The kinds of the templates that need others.
    #[must_use]
    pub fn kinds_of_referrers(&self) -> BTreeSet<Gvk> {
        let referrers = self.bindings.values().flat_map(|placed| placed.required.keys());
        let held = referrers.filter_map(|name| self.bindings.get(name));
        held.map(|placed| placed.resource.gvk.clone()).collect()
    }

    /// The kinds of the bindings, in each version that one of them names.
    #[must_use]
    pub fn versions(&self) -> Vec<Gvk> {
        let all = self.bindings.values().map(|placed| &placed.resource.gvk);
        let all: BTreeMap<(&Str, &Str, &Str), &Gvk> = all
            .map(|gvk| ((&gvk.group, &gvk.kind, &gvk.version), gvk))
            .collect();
        all.into_values().cloned().collect()
    }

    /// The version in which the copy of a binding is written.
    #[must_use]
    pub fn version_of(&self, binding: &NamespacedName) -> Option<&Gvk> {
        self.bindings.get(binding).map(|placed| &placed.resource.gvk)
    }
}

fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn names(all: &Value, field: &str) -> BTreeSet<Str> {
    list(all)
        .filter_map(|item| item[field].as_str())
        .map(Str::from)
        .collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
