//! The state of distributions: their specs, the status of each of their places, and the observed objects of their names.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    distributed::{
        observed::{Distribution, ObservedObject},
        targets::Candidates,
    },
    drift::DriftBackoff,
    object::{Gvk, ResourceId, Str, Time},
    observation::{ObjectRef, Watch},
    places::{Place, Step, TargetStatus},
};

/// Objects of one kind and name, on the hub or on a member: the scope of one watch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DistributionServer {
    pub(crate) cluster: Option<Str>,
    pub(crate) gvk: Gvk,
    pub(crate) name: Str,
}

impl DistributionServer {
    pub(crate) fn watch(&self) -> Watch {
        Watch::Distributed(self.cluster.clone(), self.gvk.clone(), self.name.clone())
    }
}

/// A copy as it was last written or compared; kept after it is deleted, so that a copy that is deleted again and again can be
/// distinguished from one that is created for the first time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) uid: Str,
    pub(crate) resource_version: Str,
    pub(crate) content: u64,
    /// True if it equals that content. Else it was only read, and is not to be written for now.
    pub(crate) equal: bool,
}

impl Written {
    /// True if it is about this version of the copy.
    pub(crate) fn is_of(&self, part: &ObservedObject) -> bool {
        self.uid == part.uid && self.resource_version == part.resource_version
    }
}

/// The last attempt, which failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) step: Step,
    /// The message for the user.
    pub(crate) message: String,
    /// The content that was to be written.
    pub(crate) content: u64,
    pub(crate) attempts: u32,
    pub(crate) retry_at: Time,
}

/// One place of a distribution.
#[derive(Clone, Debug, Default)]
pub(crate) struct TargetState {
    pub(crate) target_status: Option<TargetStatus>,
    pub(crate) written: Option<Written>,
    pub(crate) failure: Option<Failure>,
    /// The last attempt came to nothing, since the server had another version than the cached one, of the copy or of what a removal
    /// was decided from: its event is on its way, or its server was restored. No request before this time, so that none is
    /// repeated for a version that the server does not have.
    pub(crate) not_before: Option<Time>,
    /// The number of drift corrections in a row. Boxed: few have it.
    pub(crate) drift_backoff: Option<Box<DriftBackoff>>,
    /// It counts as failed for that reason: see [`DriftBackoff::reported_until`].
    pub(crate) is_contended: bool,
    /// It is no longer a target, and an edit that this process observed explains that; see [`crate::governor`].
    pub(crate) explained: bool,
    /// Its deletion was counted.
    pub(crate) counted: bool,
}

impl TargetState {
    /// The drift of the copy, if it is about this content and no accident.
    pub(crate) fn reported_drift(&self, content: u64) -> Option<&DriftBackoff> {
        let is_of_it = self
            .written
            .as_ref()
            .is_some_and(|written| written.content == content);
        self.drift_backoff
            .as_deref()
            .filter(|_| is_of_it && self.is_contended)
    }

    /// The reason why the copy counts as failed, for the user.
    pub(crate) fn failure_message(&self) -> Option<String> {
        let failure = self.failure.as_ref().map(|failure| failure.message.clone());
        let drift_backoff = self.drift_backoff.as_ref().filter(|_| self.is_contended);
        failure.or_else(|| drift_backoff?.message_of_distribution())
    }

    /// True if the copy counts as failed only because it may be changed back at any moment: for now it is equal.
    pub(crate) fn is_equal_but_contended(&self, part: &ObservedObject) -> bool {
        let written = self.written.as_ref();
        self.is_contended
            && self.failure.is_none()
            && part.deleting.is_none()
            && written.is_some_and(|written| written.equal && written.is_of(part))
    }

    /// The next write does not count as a correction of the last one.
    pub(crate) fn reset_drift(&mut self) {
        (self.written, self.drift_backoff, self.is_contended) = (None, None, false);
    }
}

/// A distribution.
#[derive(Clone, Debug)]
pub(crate) struct DistributionState {
    pub(crate) object: Arc<Distribution>,
    /// Every place that is a target, or has a copy.
    pub(crate) target_states: BTreeMap<Place, TargetState>,
    /// The places by target status.
    pub(crate) by_target_status: BTreeMap<TargetStatus, BTreeSet<Place>>,
    /// The workloads that its selector matches, by namespace.
    pub(crate) workloads: BTreeMap<Str, BTreeSet<ResourceId>>,
    /// Namespaces without such a workload any more, and the time since when.
    pub(crate) left: BTreeMap<Str, Time>,
    /// Copies of a strict distribution that were created since it was last complete: on a conflict these are removed, and no others.
    pub(crate) made: BTreeSet<Place>,
    /// Places with a write of which no watch reports yet what it comes to: it is in flight (`None`), or its outcome is unknown, and
    /// what it created is reported before this time.
    pub(crate) in_flight: BTreeMap<Place, Option<Time>>,
    /// The time when the status was last written.
    pub(crate) status_written: Option<Time>,
    /// The time since when something is in progress; for the lag.
    pub(crate) under_way_since: Option<Time>,
    /// True if everything in progress has ended once since this process has it in its cache.
    pub(crate) settled: bool,
}

impl DistributionState {
    pub(crate) fn new(object: Arc<Distribution>) -> Self {
        Self {
            object,
            target_states: BTreeMap::new(),
            by_target_status: BTreeMap::new(),
            workloads: BTreeMap::new(),
            left: BTreeMap::new(),
            made: BTreeSet::new(),
            in_flight: BTreeMap::new(),
            status_written: None,
            under_way_since: None,
            settled: false,
        }
    }

    /// The number of places with this status. Cost: O(log statuses).
    pub(crate) fn count(&self, target_status: TargetStatus) -> usize {
        self.by_target_status.get(&target_status).map_or(0, BTreeSet::len)
    }

    /// The number of targets. Cost: O(statuses).
    pub(crate) fn meant(&self) -> usize {
        let meant = self
            .by_target_status
            .iter()
            .filter(|(target_status, _)| target_status.is_meant());
        meant.map(|(_, places)| places.len()).sum()
    }

    /// True if there is something to do and nothing blocks it.
    pub(crate) fn is_under_way(&self) -> bool {
        self.by_target_status
            .keys()
            .any(|target_status| target_status.is_under_way())
    }

    /// Notes a status; `None` forgets the place. Returns true if it changed. Cost: O(log places).
    pub(crate) fn set(&mut self, place: &Place, target_status: Option<TargetStatus>, now: Time) -> bool {
        let before = self
            .target_states
            .get(place)
            .and_then(|target_state| target_state.target_status);
        if let Some(before) = before
            && target_status != Some(before)
            && let Some(places) = self.by_target_status.get_mut(&before)
        {
            places.remove(place);
            if places.is_empty() {
                self.by_target_status.remove(&before);
            }
        }
        match target_status {
            Some(target_status) => {
                self.target_states.entry(place.clone()).or_default().target_status = Some(target_status);
                if before != Some(target_status) {
                    self.by_target_status
                        .entry(target_status)
                        .or_default()
                        .insert(place.clone());
                }
            }
            None => {
                self.target_states.remove(place);
                self.made.remove(place);
            }
        }
        match (self.is_under_way(), self.under_way_since) {
            (true, None) => self.under_way_since = Some(now),
            (false, Some(_)) => (self.under_way_since, self.settled) = (None, true),
            _ => {}
        }
        before != target_status
    }
}

/// All distributions.
#[derive(Debug, Default)]
pub(crate) struct Distributions {
    pub(crate) held: BTreeMap<Str, DistributionState>,
    /// Namespace → distributions that may select it.
    pub(crate) candidates: Candidates,
    /// Distributions whose targets select by workloads.
    pub(crate) by_workload: BTreeSet<Str>,
    /// Place → distributions that have it among their places.
    pub(crate) at: BTreeMap<Place, BTreeSet<Str>>,
    /// Watch → distributions that need it, and the objects that it reports by namespace.
    pub(crate) looked: BTreeMap<DistributionServer, Looked>,
}

/// The observed objects of one [`DistributionServer`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Looked {
    pub(crate) by: BTreeSet<Str>,
    pub(crate) parts: BTreeMap<Str, ObservedObject>,
}

impl Distributions {
    /// The object in a namespace. Cost: O(log).
    pub(crate) fn part(&self, at: &DistributionServer, namespace: &Str) -> Option<&ObservedObject> {
        self.looked.get(at)?.parts.get(namespace)
    }

    /// The watch of a distribution's copy in a place; `None` if the distribution is invalid.
    pub(crate) fn place_of(&self, name: &Str, place: &Place) -> Option<DistributionServer> {
        let spec = self.held.get(name)?.object.spec.as_ref().ok()?;
        Some(DistributionServer {
            cluster: place.cluster.clone(),
            gvk: spec.gvk.clone(),
            name: spec.name.clone(),
        })
    }

    /// The version from which a copy was written is no longer known. Cost: O(copies of the name).
    pub(crate) fn forget_written(&mut self, cluster: &Option<Str>, gvk: &Gvk, name: &Str) {
        for held in self.held.values_mut() {
            let of_it = matches!(&held.object.spec, Ok(spec) if spec.gvk == *gvk && spec.name == *name);
            for (place, target_state) in held.target_states.iter_mut().filter(|_| of_it) {
                if place.cluster == *cluster {
                    target_state.written = None;
                }
            }
        }
    }

    /// Every cached object of one kind and name on one server.
    pub(crate) fn which(&self, cluster: &Option<Str>, gvk: &Gvk, name: &Str) -> Vec<ObjectRef> {
        let at = DistributionServer {
            cluster: cluster.clone(),
            gvk: gvk.clone(),
            name: name.clone(),
        };
        let looked = self.looked.get(&at).into_iter();
        let namespaces = looked.flat_map(|looked| looked.parts.keys());
        namespaces
            .map(|namespace| {
                let id = ResourceId {
                    gvk: gvk.clone(),
                    namespace: namespace.clone(),
                    name: name.clone(),
                };
                ObjectRef::Distributed(cluster.clone(), id)
            })
            .collect()
    }

    /// The source object of a distribution, if it has one and it is cached. Cost: O(log).
    pub(crate) fn source(&self, id: &ResourceId) -> Option<&ObservedObject> {
        let at = DistributionServer {
            cluster: None,
            gvk: id.gvk.clone(),
            name: id.name.clone(),
        };
        self.part(&at, &id.namespace)
    }
}

/// The kinds that a selector of workloads selects. Source: ResourceDistribution reference 6.4; Pods and ReplicaSets are
/// short-lived, and a hub has none.
pub(crate) fn workload_kinds() -> Vec<Gvk> {
    [
        ("apps/v1", "Deployment"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "DaemonSet"),
        ("batch/v1", "Job"),
        ("batch/v1", "CronJob"),
        ("apps.kruise.io/v1alpha1", "CloneSet"),
        ("apps.kruise.io/v1beta1", "StatefulSet"),
        ("apps.kruise.io/v1alpha1", "DaemonSet"),
    ]
    .map(|(api_version, kind)| Gvk::new(api_version, kind))
    .into()
}
