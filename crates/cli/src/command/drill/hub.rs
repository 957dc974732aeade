//! The state of the hub during a drill: bindings, the failing Cluster, and the dependencies of its workloads.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail};
use entourage_api::keys::{condition, label};
use entourage_core::object::{Gvk, ResourceId};
use kube::{Client, api::ListParams};
use serde_json::Value;

use crate::{
    apply::{CLUSTER, CLUSTER_RESOURCE_BINDING, Kind, RESOURCE_BINDING},
    command::{failover::taints, graph},
    connect::{explain, within},
    kinds::{Kinds, Served},
    lists::{PAGE, api, list},
    observe::condition,
};

/// A binding of the hub.
#[derive(Clone, Debug)]
pub(super) struct Binding {
    pub(super) id: ResourceId,
    object: Value,
}

impl Binding {
    /// True if a policy schedules it; otherwise it follows its dependents.
    pub(super) fn is_workload(&self) -> bool {
        !self.object["spec"]["placement"].is_null()
    }

    pub(super) fn follows(&self) -> bool {
        self.object["spec"]["propagateDeps"] == true
    }

    /// Its target clusters, each with its replicas.
    pub(super) fn clusters(&self) -> BTreeMap<String, i64> {
        targets(&self.object["spec"]["clusters"]).collect()
    }

    /// The clusters where a copy is accounted for: those it is scheduled to, required on, or being evicted from.
    pub(super) fn accounted(&self) -> BTreeSet<String> {
        let required = self.object["spec"]["requiredBy"].as_array();
        let required = required.into_iter().flatten();
        let required = required.flat_map(|each| targets(&each["clusters"]));
        let names = targets(&self.object["spec"]["clusters"]).chain(required);
        names.map(|(name, _)| name).chain(self.evicted_from()).collect()
    }

    pub(super) fn evicted_from(&self) -> BTreeSet<String> {
        let tasks = self.object["spec"]["gracefulEvictionTasks"].as_array();
        let tasks = tasks.into_iter().flatten();
        tasks
            .filter_map(|task| task["fromCluster"].as_str().map(str::to_owned))
            .collect()
    }

    /// The reason why no other cluster fits, if its eviction is blocked.
    pub(super) fn blocked(&self) -> Option<&str> {
        let why = condition(&self.object, condition::EVICTION_BLOCKED, "True")?;
        Some(why.rsplit_once("can be scheduled: ").map_or(why, |(_, why)| why))
    }

    /// True if a cluster reports that its copy is not healthy.
    pub(super) fn is_unhealthy_on(&self, cluster: &str) -> bool {
        let items = self.object["status"]["aggregatedStatus"].as_array();
        let mut items = items.into_iter().flatten();
        !items.any(|item| {
            item["clusterName"] == cluster && item["applied"] == true && item["health"] != "Unhealthy"
        })
    }

    /// The reason why it is not settled; `None` if its copies are on their clusters, healthy, and on no others.
    pub(super) fn unsettled(&self) -> Option<String> {
        let id = &self.id;
        let evicted = self.evicted_from();
        if !evicted.is_empty() {
            return Some(format!("{id} is still being evicted from {}", joined(&evicted)));
        }
        for type_ in [
            condition::SCHEDULED,
            condition::FULLY_APPLIED,
            condition::DEPENDENCIES_READY,
        ] {
            if let Some(why) = condition(&self.object, type_, "False") {
                return Some(format!("{id}: {type_} is False: {why}"));
            }
        }
        let wanted = self.accounted();
        let mut waiting = wanted.iter().filter(|cluster| self.is_unhealthy_on(cluster));
        waiting
            .next()
            .map(|cluster| format!("the copy of {id} on {cluster} is not there or not healthy yet"))
            .or_else(|| {
                let is_nowhere = wanted.is_empty() && self.is_workload();
                is_nowhere.then(|| format!("{id} is not scheduled to any cluster yet"))
            })
    }

    /// Changes with every write.
    pub(super) fn version(&self) -> (String, String) {
        let text = |field: &str| {
            self.object["metadata"][field]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        (text("uid"), text("resourceVersion"))
    }
}

fn targets(clusters: &Value) -> impl Iterator<Item = (String, i64)> {
    let all = clusters.as_array().into_iter().flatten();
    all.filter_map(|each| {
        let replicas = each["replicas"].as_i64().unwrap_or_default();
        Some((each["name"].as_str()?.to_owned(), replicas))
    })
}

pub(super) fn joined(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// All bindings of the hub, by their templates.
pub(super) async fn bindings(hub: &Client) -> Result<BTreeMap<ResourceId, Binding>> {
    let mut all = BTreeMap::new();
    for kind in [RESOURCE_BINDING, CLUSTER_RESOURCE_BINDING] {
        let objects = list(hub, &served(&kind), "", &ListParams::default().limit(PAGE)).await;
        let objects = objects
            .map_err(explain)
            .with_context(|| format!("cannot read the {} of the hub", kind.plural))?;
        for object in objects {
            let text = |field: &str| object["spec"]["resource"][field].as_str().unwrap_or_default();
            let gvk = Gvk::new(text("apiVersion"), text("kind"));
            let id = ResourceId::new(gvk, text("namespace"), text("name"));
            all.insert(id.clone(), Binding { id, object });
        }
    }
    Ok(all)
}

fn served(kind: &Kind) -> Served {
    Served {
        resource: kind.resource(),
        namespaced: kind.namespaced,
    }
}

/// The kinds of these objects, as the hub serves them.
pub(super) async fn kinds<'a>(
    hub: &Client,
    ids: impl Iterator<Item = &'a ResourceId>,
) -> Result<Vec<Served>> {
    let gvks: BTreeSet<Gvk> = ids.map(|id| id.gvk.clone()).collect();
    let mut kinds = Kinds::default();
    kinds
        .learn(hub, gvks.iter().cloned())
        .await
        .context("cannot ask the hub which kinds it serves")?;
    Ok(gvks.iter().filter_map(|gvk| kinds.get(gvk).cloned()).collect())
}

/// The required dependencies of each workload that are propagated with it: read from the workloads, not from their bindings.
pub(super) async fn needs(
    hub: &Client,
    bindings: &BTreeMap<ResourceId, Binding>,
) -> Result<BTreeMap<ResourceId, BTreeSet<ResourceId>>> {
    let drawing = graph::of_hub(hub, "").await?;
    let follows = |id: &ResourceId| bindings.get(id).is_some_and(Binding::follows);
    let exists = |id: &ResourceId| drawing.nodes.get(id).is_some_and(|node| node.exists);
    let edges = drawing.edges.iter().filter(|(id, _)| follows(id));
    let needs = edges.map(|(id, needed)| {
        let needed = needed.iter().filter(|(to, optional)| !**optional && exists(to));
        (id.clone(), needed.map(|(to, _)| to.clone()).collect())
    });
    Ok(needs.collect())
}

/// The state of a Cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClusterState {
    pub(super) ready: bool,
    pub(super) evicts: bool,
}

pub(super) async fn cluster(hub: &Client, name: &str) -> Result<ClusterState> {
    let found = within(api(hub, &served(&CLUSTER), "").get(name)).await;
    let found = found
        .map_err(explain)
        .with_context(|| format!("cannot read cluster {name}"))?;
    let object = serde_json::to_value(&found)?;
    let mut taints = object["spec"]["taints"].as_array().into_iter().flatten();
    Ok(ClusterState {
        ready: condition(&object, condition::READY, "True").is_some(),
        evicts: taints.any(|taint| taint["effect"] == "NoExecute"),
    })
}

/// The key of the taint with which the ClusterTaintPolicies of the hub evict from a failed member; `None` without such a
/// policy.
pub(super) async fn evicting_taint(hub: &Client) -> Result<Option<String>> {
    let policies = taints::policies(hub).await?;
    Ok(taints::evicting_key(&policies).map(str::to_owned))
}

/// Copies that a hub manages on these clusters and that no binding accounts for; then copies that bindings account for and that
/// do not exist. Read from the clusters themselves.
pub(super) async fn left_over(
    clusters: &[(String, Client)],
    kinds: &[Served],
    bindings: &BTreeMap<ResourceId, Binding>,
) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for (cluster, client) in clusters {
        let mut missing: BTreeSet<&ResourceId> = bindings
            .values()
            .filter(|binding| binding.accounted().contains(cluster))
            .map(|binding| &binding.id)
            .collect();
        for served in kinds {
            let managed = ListParams::default().labels(label::HUB).limit(PAGE);
            let objects = match list(client, served, "", &managed).await {
                Err(error) if crate::connect::is_not_found(&error) => continue,
                objects => objects
                    .map_err(explain)
                    .with_context(|| format!("cannot read the {} of {cluster}", served.resource.plural))?,
            };
            for object in &objects {
                let Some(id) = ResourceId::of(object) else {
                    bail!("{cluster} shows a {} without a name", served.resource.kind);
                };
                if !missing.remove(&id) {
                    wrong.push(format!("{id} is orphaned on {cluster}: no binding includes it"));
                }
            }
        }
        wrong.extend(missing.iter().map(|id| format!("{id} is missing on {cluster}")));
    }
    Ok(wrong)
}
