//! The steps of one cluster: the filters, the placement, the referrers there, and the state of the copy.

mod copy;

use std::collections::BTreeSet;

use entourage_api::work::{AggregatedStatusItem, NotAppliedReason, TargetCluster};

use super::{LISTED, Subject, distributions};
use crate::{
    cache::Member,
    failover::inspected::{Inspected, cause},
    fleet::{exports::is_provided_by, identities, needs::followers, secrets::withheld, wanted::wants},
    inspection::explanation::{
        ClusterExplanation,
        Effect::{Against, For, Note},
        Presence, Step, rule,
    },
    messages,
    object::{NamespacedName, Str},
    scheduler::{Filter, FilterReason, Fitness},
};

/// The name of the filter that says that a workload is being evicted.
const EVICTION: &str = "eviction";

/// The explanation for each cluster: every member, and those that the binding still names.
pub(super) fn explained(subject: &Subject<'_>, inspected: Option<&Inspected>) -> Vec<ClusterExplanation> {
    let names = names(subject);
    let all = names.iter().map(|cluster| {
        let at = At {
            subject,
            cluster,
            member: subject.fleet.cache.members.get(cluster),
            inspected,
            fitness: inspected.and_then(|inspected| inspected.fitness.get(&**cluster)),
        };
        at.explained()
    });
    all.collect()
}

/// The clusters where the copy is, is wanted, or is kept away from, with the message about it.
pub(super) fn places(subject: &Subject<'_>) -> Vec<(Str, Presence, String)> {
    let names = names(subject).into_iter();
    let all = names.map(|cluster| {
        let at = At {
            subject,
            cluster: &cluster,
            member: None,
            inspected: None,
            fitness: None,
        };
        let presence = at.presence();
        let message = at.recorded().map(|item| item.applied_message.clone());
        let message = message.unwrap_or_default();
        (cluster, presence, message)
    });
    all.filter(|(_, presence, _)| *presence != Presence::Absent)
        .collect()
}

fn names(subject: &Subject<'_>) -> BTreeSet<Str> {
    let mut names: BTreeSet<Str> = subject.fleet.cache.members.keys().cloned().collect();
    if let Some(binding) = subject.binding {
        let spec = &binding.object.spec;
        let required = spec.required_by.iter().flat_map(|snapshot| &snapshot.clusters);
        let targets = spec.clusters.iter().chain(required);
        names.extend(targets.map(|target| Str::from(target.name.as_str())));
        let status = binding.object.status.as_ref();
        let items = status.into_iter().flat_map(|status| &status.aggregated_status);
        names.extend(items.map(|item| Str::from(item.cluster_name.as_str())));
    }
    names
}

/// One cluster of a subject.
struct At<'a> {
    subject: &'a Subject<'a>,
    cluster: &'a Str,
    member: Option<&'a Member>,
    inspected: Option<&'a Inspected>,
    fitness: Option<&'a Fitness>,
}

impl At<'_> {
    fn explained(&self) -> ClusterExplanation {
        let presence = self.presence();
        let mut steps = self.state();
        steps.extend(self.filters());
        steps.extend(self.placement());
        steps.extend(self.referrers());
        steps.extend(self.snapshots());
        steps.extend(self.eviction());
        steps.extend(self.allow_list());
        steps.extend(self.suspension());
        steps.extend(self.pause(presence));
        steps.extend(self.overrides());
        steps.extend(self.delivery(presence));
        steps.extend(distributions::steps(self.subject, Some(&**self.cluster)));
        ClusterExplanation {
            cluster: self.cluster.clone(),
            presence,
            steps,
        }
    }

    fn is_wanted(&self) -> bool {
        let Subject {
            fleet, id, resource, ..
        } = self.subject;
        resource.is_some_and(|resource| wants(fleet, id, resource, self.cluster))
    }

    /// The recorded state of the copy.
    fn recorded(&self) -> Option<&AggregatedStatusItem> {
        self.subject.binding?.status_on(self.cluster)
    }

    fn presence(&self) -> Presence {
        let item = self.recorded();
        if !self.is_wanted() {
            if item.is_some_and(|item| item.applied || item.copy.is_some()) {
                return Presence::Leaving;
            }
            return distributions::presence(self.subject, self.cluster).unwrap_or(Presence::Absent);
        }
        if self.subject.template.is_none() && item.is_none() {
            return Presence::KeptAway;
        }
        let is_suspended = || self.suspended_by().is_some();
        match item {
            Some(item) if item.applied => Presence::Present,
            Some(item) => match item.applied_reason {
                Some(NotAppliedReason::Unknown) => Presence::Unknown,
                Some(NotAppliedReason::Pending) if is_suspended() => Presence::KeptAway,
                Some(NotAppliedReason::Pending) => Presence::Pending,
                // Its removal waits, or its list cannot be read.
                Some(NotAppliedReason::NotAllowed) if item.copy.is_some() => Presence::Leaving,
                Some(_) => Presence::KeptAway,
                // The definition on the hub lacks the field.
                None if item.applied_message.is_empty() && !is_suspended() => Presence::Pending,
                None => Presence::KeptAway,
            },
            None if is_suspended() => Presence::KeptAway,
            None => Presence::Pending,
        }
    }

    /// The state of the cluster, where it is not as usual.
    fn state(&self) -> Vec<Step> {
        let cluster = self.cluster;
        let Some(member) = self.member else {
            let message = format!("there is no Cluster {cluster}");
            return vec![Step::new(rule::CLUSTER, Against, message)];
        };
        let mut steps = Vec::new();
        if member.meta.deleting.is_some() {
            let message = format!("{cluster} is being deleted");
            steps.push(Step::new(rule::CLUSTER, Against, message));
        }
        if let Some(objection) = identities::objection(self.subject.fleet, cluster) {
            let message = messages::unused(cluster, &objection.message(cluster));
            steps.push(Step::new(rule::CLUSTER, Against, message));
        } else if let Some(probe) = member.probe.as_ref().filter(|probe| !probe.healthy) {
            let message = format!("{cluster} is not ready: {}: {}", probe.reason, probe.message);
            steps.push(Step::new(rule::CLUSTER, Against, message));
        }
        steps
    }

    /// Each filter of the scheduler.
    fn filters(&self) -> Vec<Step> {
        let checks = self.fitness.iter().flat_map(|fitness| &fitness.checks);
        let step = |(filter, objection): &(&'static Filter, Option<FilterReason>)| {
            let (effect, message) = match objection {
                Some(FilterReason(why)) => (Against, self.left_out(filter, why)),
                None => (Note, "passes it".to_owned()),
            };
            Step {
                filter: Some(filter.name),
                ..Step::new(rule::FILTER, effect, message)
            }
        };
        checks.map(step).collect()
    }

    /// The objection of a filter, whose own words follow a number of clusters elsewhere.
    fn left_out(&self, filter: &Filter, why: &str) -> String {
        let asking = self.subject.asking();
        let asked = asking.zip(self.inspected).filter(|_| filter.name == EVICTION);
        let why = match asked {
            Some((asking, inspected)) => {
                let Subject { fleet, now, .. } = *self.subject;
                cause(fleet, asking, &inspected.decision, self.cluster, now)
            }
            None => why.to_owned(),
        };
        format!("leaves it out: {why}")
    }

    /// The share of the cluster in the scheduling result.
    fn placement(&self) -> Option<Step> {
        self.subject.placement()?;
        let is_stored = self.subject.binding.is_some();
        let clusters = self.subject.held.spec.clusters.as_slice();
        if let Some(target) = TargetCluster::find(clusters, self.cluster) {
            let message = match (target.replicas, target.components.as_slice()) {
                (0, []) => "it is scheduled here".to_owned(),
                (0, components) => format!(
                    "it is scheduled here, with all of its {} components",
                    components.len()
                ),
                (1, _) => "it is scheduled here, with 1 replica".to_owned(),
                (replicas, _) => format!("it is scheduled here, with {replicas} replicas"),
            };
            return Some(Step::new(rule::PLACEMENT, For, message));
        }
        let fitness = self.fitness.filter(|fitness| fitness.fits())?;
        let path = &fitness.affinity;
        if !is_stored {
            let message = format!("every filter passes it for {path}, and nothing is scheduled yet");
            return Some(Step::new(rule::PLACEMENT, Note, message));
        }
        let why = if fitness.is_other_group {
            "another group of clusterAffinities is used".to_owned()
        } else if fitness.notes.is_empty() {
            "other clusters have all replicas".to_owned()
        } else {
            fitness.notes.join("; ")
        };
        let message = format!("every filter passes it for {path}, and it is not chosen: {why}");
        Some(Step::new(rule::PLACEMENT, Against, message))
    }

    /// The referrers that need it here.
    fn referrers(&self) -> Vec<Step> {
        let Subject { fleet, id, .. } = *self.subject;
        if !fleet.config.propagate_deps {
            return Vec::new();
        }
        let mut here = followers(fleet, id).filter(|(_, _, binding)| binding.needs_on(self.cluster));
        if is_provided_by(fleet, id, self.cluster) {
            let message = "it stands for an EndpointSlice of this member, and is not needed here";
            let is_needed = here.next().is_some();
            return is_needed
                .then(|| Step::new(rule::DEPENDENCY, Against, message))
                .into_iter()
                .collect();
        }
        let mut here = here.peekable();
        if here.peek().is_none() {
            let is_dependency = self.subject.placement().is_none() && followers(fleet, id).next().is_some();
            let message = "nothing that it is propagated with is scheduled here";
            let step = is_dependency.then(|| Step::new(rule::DEPENDENCY, Against, message));
            return step.into_iter().collect();
        }
        let (named, rest): (Vec<_>, Vec<_>) = here.enumerate().partition(|(place, _)| *place < LISTED);
        let steps = named.into_iter().map(|(_, (referrer, _, binding))| {
            let what = if binding.is_placed_on(self.cluster) {
                "is scheduled here"
            } else {
                "is being evicted from here"
            };
            Step::new(rule::DEPENDENCY, For, format!("{referrer} {what} and needs it"))
        });
        let mut steps: Vec<Step> = steps.collect();
        if !rest.is_empty() {
            let message = format!("{} more objects need it here", rest.len());
            steps.push(Step::new(rule::DEPENDENCY, For, message));
        }
        steps
    }

    /// The allow-list that keeps the Secret away.
    fn allow_list(&self) -> Option<Step> {
        let Subject { fleet, id, .. } = *self.subject;
        let withheld = withheld(fleet, id, self.cluster).filter(|_| self.is_wanted())?;
        let message = withheld.message()?.to_owned();
        Some(Step::new(rule::ALLOW_LIST, Against, message))
    }

    /// The snapshots of the binding that name the cluster, where they are all that says why: those of former referrers, and those that
    /// were stored before dependencies were turned off.
    fn snapshots(&self) -> Option<Step> {
        let spec = &self.subject.binding?.object.spec;
        let here = |clusters: &[TargetCluster]| TargetCluster::find(clusters, self.cluster).is_some();
        let snapshots = spec.required_by.iter().filter(|each| here(&each.clusters));
        let names = snapshots.map(|each| NamespacedName::new(&each.namespace, &each.name).to_string());
        let mut names: Vec<String> = names.collect();
        let rest = names.len().saturating_sub(LISTED);
        names.truncate(LISTED);
        (!names.is_empty()).then(|| {
            let more = match rest {
                0 => String::new(),
                rest => format!(" and {rest} more"),
            };
            let message = format!("the binding records for it: {}{more}", names.join(", "));
            Step::new(rule::REQUIRED_BY, Note, message)
        })
    }
}
