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
    /// The templates, of the kinds that the former hub's copies have.
    pub templates: BTreeSet<ResourceId>,
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
    /// The clusters that it is scheduled to, or where a referrer needs it.
    pub clusters: BTreeSet<Str>,
}

impl Placed {
    /// True if a copy of this object on a cluster is wanted.
    pub(super) fn is_wanted(&self, id: &ResourceId, cluster: &str) -> bool {
        self.resource == *id && self.clusters.contains(cluster)
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
        let spec = &binding["spec"];
        let resource = &spec["resource"];
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
        let mut clusters = names(&spec["clusters"], "name");
        for referrer in list(&spec["requiredBy"]) {
            clusters.append(&mut names(&referrer["clusters"], "name"));
        }
        let placed = Placed { resource, clusters };
        let name = NamespacedName::new(text(&meta["namespace"]), text(&meta["name"]));
        self.bindings.insert(name, placed);
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
