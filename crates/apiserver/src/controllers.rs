//! The controllers of a cluster: they empty namespaces, collect dependents, create service accounts and sign certificates.
//!
//! One task reads the store's changes and passes each to every controller of the table; then each works on its queue. A
//! controller keeps an index and a queue, both synchronous; it reads the store's current state only while it works on its
//! queue. When the task is too late for a change, as at the start with an existing store, it begins again from the stored
//! objects.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::{Arc, Weak},
};

use serde::Deserialize;
use tokio::{sync::watch, time::Instant};

use crate::{
    admission,
    auth::token,
    authority::Authority,
    resource::Kinds,
    store::{Entry, Happened, Reader, Revision},
};

mod accounts;
mod bootstrap;
mod definitions;
mod disruption;
mod endpoints;
mod garbage;
mod namespaces;
mod nodes;
mod objects;
mod paced;
mod policies;
mod protection;
mod quotas;
mod registration;
mod roles;
mod signing;
mod standing;
mod tokens;
mod volumes;

pub(crate) use objects::create;
pub(crate) use volumes::SELECTED;

/// The number of items of work that are done before other tasks get a turn.
const TURN: usize = 64;

/// The collection and key of an object. Ordered, so that work is done in the same order everywhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Collection in the store.
    pub(crate) collection: String,
    /// Key in it.
    pub(crate) key: String,
}

impl Place {
    /// The namespace, empty for none.
    pub(crate) fn namespace(&self) -> &str {
        self.key.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// The name.
    pub(crate) fn name(&self) -> &str {
        self.key.split_once('/').map_or(&self.key, |(_, name)| name)
    }
}

/// The view of the cluster for its controllers.
pub(crate) trait Context: admission::Context {
    /// Applies `change` to the kinds.
    fn change_kinds(&self, change: &mut dyn FnMut(&mut Kinds));

    /// Changes when other kinds are served; the value is the number of changes.
    fn kinds_changes(&self) -> watch::Receiver<u64>;

    /// The key that signs tokens of service accounts.
    fn token_key(&self) -> &token::Key;

    /// The cluster's authority.
    fn authority(&self) -> Option<&Authority>;

    /// True if the cluster has the controllers `pvc-protection` and `pv-protection`.
    fn storage_protection(&self) -> bool;

    /// The parts of a whole cluster that this one has.
    fn stand_ins(&self) -> StandIns;

    /// The address at which the API server is served.
    fn address(&self) -> SocketAddr;
}

/// The parts of a whole cluster that an API server with the controllers of a hub lacks. Default: none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StandIns {
    /// Keeps the ConfigMap `kube-root-ca.crt` in each namespace, if the cluster has an authority.
    pub root_ca: bool,
    /// Keeps Service, Endpoints and EndpointSlice `kubernetes` in the namespace `default`, and the ServiceCIDR `kubernetes`.
    pub api_service: bool,
    /// Serves APIServices and keeps one for each group version that is served. None of another server is asked.
    pub api_services: bool,
    /// Keeps the status of ResourceQuotas, by which new objects are refused.
    pub quotas: bool,
    /// Keeps the status of PodDisruptionBudgets, by which evictions are refused.
    pub disruption: bool,
    /// Deployments have ReplicaSets. This and the next five act where workloads have a stand-in.
    pub deployments: bool,
    /// ReplicaSets and ReplicationControllers have pods.
    pub replica_sets: bool,
    /// StatefulSets have pods and claims.
    pub stateful_sets: bool,
    /// DaemonSets have a pod.
    pub daemon_sets: bool,
    /// Jobs have pods.
    pub jobs: bool,
    /// CronJobs have Jobs.
    pub cron_jobs: bool,
    /// Keeps the status of ValidatingAdmissionPolicies: warnings about the types in their expressions.
    pub type_checks: bool,
    /// Keeps Endpoints and EndpointSlices of Services.
    pub endpoints: bool,
    /// Keeps the Node that pods run on.
    pub node: bool,
    /// Binds claims to volumes, makes volumes for claims of a class, and makes the default class `standard`.
    pub volumes: bool,
}

impl StandIns {
    /// All of it, for a cluster that is no hub.
    pub const ALL: Self = Self {
        root_ca: true,
        api_service: true,
        api_services: true,
        quotas: true,
        disruption: true,
        deployments: true,
        replica_sets: true,
        stateful_sets: true,
        daemon_sets: true,
        jobs: true,
        cron_jobs: true,
        type_checks: true,
        endpoints: true,
        node: true,
        volumes: true,
    };
}

/// A change as controllers see it.
pub(crate) struct Seen {
    pub(crate) place: Place,
    pub(crate) happened: Happened,
    pub(crate) head: Head,
    /// The revision of the change.
    pub(crate) revision: Revision,
}

/// Something that the cluster does by itself.
pub(crate) trait Controller: Send {
    /// Forgets everything: all that is stored will be seen again.
    fn reset(&mut self);

    /// Notes a change. Cost: independent of the number of objects.
    fn see(&mut self, seen: &Seen);

    /// Other kinds are served than before.
    fn kinds_changed(&mut self) {}

    /// Does one noted piece of work; false when there is none.
    fn work(&mut self, cluster: &dyn Context) -> bool;

    /// The time at which there will be work even if nothing changes.
    fn wakes(&self) -> Option<Instant> {
        None
    }
}

/// Every controller.
fn controllers() -> Vec<Box<dyn Controller>> {
    vec![
        Box::new(accounts::Accounts::default()),
        Box::new(bootstrap::Tokens::default()),
        Box::new(disruption::Disruption::default()),
        Box::new(endpoints::EndpointsOfServices::default()),
        Box::new(garbage::Garbage::default()),
        Box::new(namespaces::Namespaces::default()),
        Box::new(nodes::Nodes::default()),
        Box::new(policies::TypeChecks::default()),
        Box::new(protection::Protection::default()),
        Box::new(quotas::Quotas::default()),
        Box::new(registration::Registration::default()),
        Box::new(roles::Roles::default()),
        Box::new(signing::Signing::default()),
        Box::new(standing::Standing::default()),
        Box::new(tokens::Tokens::default()),
        Box::new(volumes::Volumes::default()),
    ]
}

/// Starts the controllers of a cluster as a task of the current runtime, if there is one. It ends with the cluster.
pub(crate) fn start(cluster: &Arc<dyn Context>) {
    definitions::start(cluster);
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(run(
            Arc::downgrade(cluster),
            cluster.store().ticks(),
            cluster.kinds_changes(),
        ));
    }
}

/// Holds the cluster only while it works, so that the last clone of the cluster ends it.
async fn run(
    cluster: Weak<dyn Context>,
    mut ticks: watch::Receiver<Revision>,
    mut kinds: watch::Receiver<u64>,
) {
    let mut state = Loop::new();
    loop {
        ticks.mark_unchanged();
        kinds.mark_unchanged();
        loop {
            let Some(cluster) = cluster.upgrade() else {
                return;
            };
            if !state.turn(&*cluster) {
                break;
            }
            drop(cluster);
            tokio::task::yield_now().await;
        }
        let wakes = state.wakes();
        let alarm = async {
            match wakes {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = ticks.changed() => if changed.is_err() { return },
            changed = kinds.changed() => if changed.is_err() { return },
            () = alarm => {}
        }
    }
}

/// The controllers and their position in the store's events.
pub(crate) struct Loop {
    controllers: Vec<Box<dyn Controller>>,
    /// The position in the events; `None` before the first.
    at: Option<Reader>,
    /// The number of changes of the kinds at the last turn.
    kinds: u64,
}

impl Loop {
    pub(crate) fn new() -> Self {
        Self {
            controllers: controllers(),
            at: None,
            kinds: 0,
        }
    }

    /// Sees what changed and does some work. False when there was nothing to do.
    pub(crate) fn turn(&mut self, cluster: &dyn Context) -> bool {
        let changed = self.observe(cluster);
        let kinds = *cluster.kinds_changes().borrow();
        if self.kinds != kinds {
            self.kinds = kinds;
            for controller in &mut self.controllers {
                controller.kinds_changed();
            }
        }
        let mut worked = false;
        for controller in &mut self.controllers {
            for _ in 0..TURN {
                if !controller.work(cluster) {
                    break;
                }
                worked = true;
            }
        }
        changed || worked
    }

    fn wakes(&self) -> Option<Instant> {
        self.controllers
            .iter()
            .filter_map(|controller| controller.wakes())
            .min()
    }

    fn observe(&mut self, cluster: &dyn Context) -> bool {
        let read = |at: &Reader| {
            let (changes, reached) = cluster.store().changes(at.at()).ok()?;
            at.reached(reached);
            Some(changes)
        };
        let Some(changes) = self.at.as_ref().and_then(read) else {
            self.begin_again(cluster);
            return true;
        };
        for change in &changes {
            self.show(&change.collection, change.event.happened, &change.event.entry);
        }
        !changes.is_empty()
    }

    /// Shows everything that is stored. What changes meanwhile is seen once more, which does no harm.
    fn begin_again(&mut self, cluster: &dyn Context) {
        for controller in &mut self.controllers {
            controller.reset();
        }
        self.at = Some(cluster.store().reader_of_all(cluster.store().revision()));
        for collection in cluster.store().collections() {
            for entry in cluster.store().list(&collection, "", None, 0).entries {
                self.show(&collection, Happened::Added, &entry);
            }
        }
    }

    fn show(&mut self, collection: &str, happened: Happened, entry: &Entry) {
        let seen = Seen {
            place: Place {
                collection: collection.to_owned(),
                key: entry.key.clone(),
            },
            happened,
            head: Head::of(entry),
            revision: entry.revision,
        };
        for controller in &mut self.controllers {
            controller.see(&seen);
        }
    }
}

/// The metadata of an object that controllers read. Parsing skips the rest without building it.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Head {
    #[serde(deserialize_with = "or_default")]
    pub(crate) uid: String,
    pub(crate) deletion_timestamp: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) finalizers: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) owner_references: Vec<Owner>,
}

/// An owner reference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Owner {
    #[serde(deserialize_with = "or_default")]
    pub(crate) api_version: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) kind: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) name: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) uid: String,
    pub(crate) controller: Option<bool>,
    pub(crate) block_owner_deletion: Option<bool>,
}

impl Head {
    /// The head of a stored object.
    pub(crate) fn of(entry: &Entry) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Whole {
            metadata: Head,
        }
        serde_json::from_slice::<Whole>(&entry.object)
            .unwrap_or_default()
            .metadata
    }

    /// True if the object is being deleted.
    pub(crate) fn is_leaving(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// The owner that controls the object.
    pub(crate) fn controller(&self) -> Option<&Owner> {
        self.owner_references
            .iter()
            .find(|owner| owner.controller == Some(true))
    }

    /// True if it has this finalizer.
    pub(crate) fn has(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|name| name == finalizer)
    }
}

/// A field that may be null.
fn or_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: serde::Deserializer<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Work that is done once however often it was noted, in order.
type Queue<T> = BTreeSet<T>;

#[cfg(test)]
mod tests;
