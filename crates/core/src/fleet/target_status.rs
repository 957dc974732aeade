//! The status of a distribution in one place: from observations alone.

use entourage_api::{keys::annotation, kruise::WritePolicy, policy::ClusterAffinity};

use crate::{
    cache::Member,
    distributed::observed::{ObservedObject, Spec},
    fleet::{
        Fleet,
        secrets::{Withheld, withheld_copy},
    },
    memory::distributions::{DistributionServer, DistributionState, Written},
    object::{Str, Time},
    places::{Place, Step, TargetStatus, is_denied},
    scheduler::{Candidate, affinity},
};

/// True if nothing may be written: a strict distribution has a conflict somewhere. Existing copies are still compared, so that
/// their status is reported.
pub(crate) fn is_shut(held: &DistributionState, spec: &Spec) -> bool {
    spec.write_policy == WritePolicy::Strict && held.count(TargetStatus::Conflict) > 0
}

/// True if the object in a place is the source. An object of another kind or name in that namespace is not: copies may be in
/// the source's namespace while the distribution has another source than at its first execution.
fn is_source(spec: &Spec, place: &Place) -> bool {
    spec.source.as_ref().is_some_and(|source| {
        place.cluster.is_none()
            && source.namespace == place.namespace
            && (&source.gvk, &source.name) == (&spec.gvk, &spec.name)
    })
}

fn candidate<'a>(name: &'a str, member: &'a Member) -> Candidate<'a> {
    Candidate {
        name,
        labels: &member.meta.labels,
        cluster: &member.object,
        ready: true,
        deleting: false,
    }
}

/// The time for which a namespace stays selected after its last selected workload is gone, in milliseconds: the replacement of
/// a workload removes nothing.
pub(crate) const WORKLOAD_GRACE: i64 = 30_000;

/// The reason why the source, if it is an object of its own, cannot be read.
pub(crate) enum NoSource {
    /// It is not known yet whether it exists.
    Unknown,
    /// The message for the user.
    Because(String),
}

impl Fleet {
    /// The status of a place; `None` if it is not a target and has no copy. Cost: O(log), and that of the selectors.
    pub(crate) fn target_status(&self, name: &Str, place: &Place, now: Time) -> Option<TargetStatus> {
        let held = self.memory.distributions.held.get(name)?;
        let Ok(spec) = &held.object.spec else { return None };
        let at = self.memory.distributions.place_of(name, place)?;
        let part = self.memory.distributions.part(&at, &place.namespace);
        let ours = self.copy_of(name, place);
        if held.object.is_claimed() {
            return ours.map(|_| TargetStatus::Kept);
        }
        let ending = held.object.meta.deleting.is_some();
        let target_state = held.target_states.get(place);
        let failure = target_state.and_then(|target_state| target_state.failure.as_ref());
        // A removal that failed proves nothing about a copy that is a target again, and vice versa.
        let failed = |content| {
            let failure =
                failure.filter(|failure| failure.step != Step::Delete && failure.content == content)?;
            Some(failure.step)
        };
        let is_contended =
            |content| target_state.is_some_and(|target_state| target_state.reported_drift(content).is_some());
        // A copy that may be changed back at any moment is not equal, whatever its state is now.
        let troubled = |content| {
            let contended = || is_contended(content).then_some(Step::Update);
            failed(content).or_else(contended).map(TargetStatus::Failed)
        };
        let leaving = match failure {
            Some(failure) if failure.step == Step::Delete => TargetStatus::Failed(Step::Delete),
            _ => TargetStatus::Leaving,
        };
        if ending || !self.is_meant(held, spec, place, now) {
            ours?;
            // All other copies are rendered from a copy that is itself the source.
            let is_kept = !ending && (is_source(spec, place) || self.is_held_back(held));
            return Some(if is_kept { TargetStatus::Kept } else { leaving });
        }
        match withheld_copy(self, spec, place.cluster.as_ref()) {
            Some(Withheld::NotAllowed(_)) if ours.is_some() => return Some(leaving),
            Some(Withheld::NotAllowed(_) | Withheld::Unreadable(_)) => {
                return Some(TargetStatus::Failed(Step::Get));
            }
            Some(Withheld::Unknown) => return Some(TargetStatus::Pending),
            None => {}
        }
        if !self.has_namespace(place) {
            return Some(TargetStatus::NoNamespace);
        }
        let watch = at.watch();
        if !self.cache.watches.is_listed(&watch) && self.cache.watches.is_unlistable(&watch) {
            return Some(TargetStatus::Failed(Step::Get));
        }
        let content = match self.content(name, spec) {
            Ok(content) => content,
            Err(NoSource::Unknown) => return Some(TargetStatus::Pending),
            // The existing copy stays as it is.
            Err(NoSource::Because(_)) => return Some(TargetStatus::Failed(Step::Get)),
        };
        let is_shut = is_shut(held, spec);
        match (part, ours) {
            (Some(part), None) => {
                if part.holder.is_none() && spec.write_policy == WritePolicy::Overwrite {
                    return Some(troubled(content).unwrap_or(TargetStatus::Pending));
                }
                return Some(TargetStatus::Conflict);
            }
            (_, Some(part)) => {
                // All or nothing: copies that were created before the conflict was found are deleted.
                if is_shut && held.made.contains(place) {
                    return Some(leaving);
                }
                let known = target_state
                    .and_then(|target_state| target_state.written.as_ref())
                    .filter(|written| written.is_of(part));
                let is_current = |known: &Written| known.equal && known.content == content;
                if part.deleting.is_none() && known.is_some_and(is_current) && !is_contended(content) {
                    return Some(TargetStatus::Done);
                }
                let is_otherwise = |known: &Written| !known.equal && known.content == content;
                if is_shut && part.deleting.is_none() && !known.is_some_and(is_otherwise) {
                    return Some(troubled(content).unwrap_or(TargetStatus::Pending));
                }
            }
            (None, None) => {}
        }
        if is_shut {
            return Some(TargetStatus::Blocked);
        }
        Some(troubled(content).unwrap_or(TargetStatus::Pending))
    }

    /// The watches of a distribution: on the hub, for its source and for copies from before it selected members; and on every
    /// member if it selects members, since a copy may exist on one that it no longer selects. Otherwise on those members that
    /// may hold earlier copies. Cost: O(members).
    pub(crate) fn distribution_servers(&self, name: &Str) -> Vec<DistributionServer> {
        let Some(Ok(spec)) = self
            .memory
            .distributions
            .held
            .get(name)
            .map(|held| &held.object.spec)
        else {
            return Vec::new();
        };
        let at = |cluster: Option<&Str>| DistributionServer {
            cluster: cluster.cloned(),
            gvk: spec.gvk.clone(),
            name: spec.name.clone(),
        };
        let mut all = vec![at(None)];
        let held = self.memory.distributions.held.get(name);
        let may_hold = |cluster: &&Str| {
            held.is_some_and(|held| held.object.may_be_on_any_member() || held.object.reported_on(cluster))
        };
        all.extend(
            self.cache
                .members
                .keys()
                .filter(may_hold)
                .map(|cluster| at(Some(cluster))),
        );
        all
    }

    /// The copy of a distribution in a place that it accounts for. Cost: O(log), and that of the selectors.
    pub(crate) fn copy_of(&self, name: &Str, place: &Place) -> Option<&ObservedObject> {
        let held = self.memory.distributions.held.get(name)?;
        let spec = held.object.spec.as_ref().ok()?;
        let at = self.memory.distributions.place_of(name, place)?;
        let part = self.memory.distributions.part(&at, &place.namespace)?;
        let is_marked = part.is_of(name, &held.object.meta.uid, &self.config.hub, place);
        (is_marked && self.accounts_for(held, spec, place)).then_some(part)
    }

    /// True if a distribution accounts for a copy in a place. On a member: it selects that place, or its status lists it, as it
    /// does before the first copy is written there, or there is no status, or the copy was written by this process. Metadata
    /// that was copied from another member proves nothing.
    fn accounts_for(&self, held: &DistributionState, spec: &Spec, place: &Place) -> bool {
        let Some(cluster) = &place.cluster else {
            return true;
        };
        let was_written = || {
            held.target_states
                .get(place)
                .is_some_and(|target_state| target_state.written.is_some())
        };
        let is_selected = |wanted: &ClusterAffinity| {
            let member = self.cache.members.get(cluster);
            member.is_some_and(|member| affinity::selects(wanted, &candidate(cluster, member)))
        };
        spec.clusters.as_ref().is_some_and(is_selected)
            || held.object.has_no_report()
            || held.object.reported_on(cluster)
            || was_written()
    }

    /// True if a place is a target.
    fn is_meant(&self, held: &DistributionState, spec: &Spec, place: &Place, now: Time) -> bool {
        if self.config.is_protected(&place.namespace) {
            return false;
        }
        if is_source(spec, place) {
            return false;
        }
        let labels = match (&place.cluster, &spec.clusters) {
            (None, None) => match self.cache.namespaces.hub.get(&place.namespace) {
                Some(meta) if is_denied(meta) => return false,
                Some(meta) => Some(&meta.labels),
                None => None,
            },
            (Some(cluster), Some(affinity)) => {
                if !self.is_selected(cluster, affinity) {
                    return false;
                }
                match self.cache.namespaces.on(cluster, &place.namespace) {
                    Some(seen) if seen.denied => return false,
                    Some(seen) => Some(&seen.labels),
                    None => None,
                }
            }
            _ => return false,
        };
        let has_workload = held.workloads.contains_key(&place.namespace)
            || held
                .left
                .get(&place.namespace)
                .is_some_and(|left| now < left.plus(WORKLOAD_GRACE));
        match labels {
            Some(labels) => spec.targets.means(&place.namespace, labels, has_workload),
            None => spec.targets.mean_missing(&place.namespace),
        }
    }

    /// True if an affinity selects a member that is not being removed.
    pub(crate) fn is_selected(&self, cluster: &Str, wanted: &ClusterAffinity) -> bool {
        self.cache.members.get(cluster).is_some_and(|member| {
            member.meta.deleting.is_none() && affinity::selects(wanted, &candidate(cluster, member))
        })
    }

    fn has_namespace(&self, place: &Place) -> bool {
        match &place.cluster {
            None => self
                .cache
                .namespaces
                .hub
                .get(&place.namespace)
                .is_some_and(|meta| meta.deleting.is_none()),
            Some(cluster) => self
                .cache
                .namespaces
                .on(cluster, &place.namespace)
                .is_some_and(|seen| !seen.deleting),
        }
    }

    /// The content number of the copies, or the reason why it is not known.
    pub(crate) fn content(&self, name: &Str, spec: &Spec) -> Result<u64, NoSource> {
        if let Some(why) = &spec.renamed {
            return Err(NoSource::Because(why.clone()));
        }
        let Some(source) = &spec.source else {
            return Ok(spec.content);
        };
        match self.memory.distributions.source(source) {
            Some(part) if part.deleting.is_some() => Err(NoSource::Because(format!(
                "{source} is being deleted: its copies stay as they are"
            ))),
            Some(part) if part.consents_to(name) => Ok(part.version()),
            Some(_) => Err(NoSource::Because(format!(
                "{source} may not be distributed: its owner consents by the annotation {}: {name}",
                annotation::DISTRIBUTION_ALLOWED
            ))),
            None => {
                let watch =
                    crate::observation::Watch::Distributed(None, source.gvk.clone(), source.name.clone());
                if self.cache.watches.is_listed(&watch) {
                    Err(NoSource::Because(format!(
                        "{source} does not exist: its copies stay as they are"
                    )))
                } else {
                    Err(NoSource::Unknown)
                }
            }
        }
    }

    /// The number of copies that stay although no namespace is selected. Cost: O(statuses).
    pub(crate) fn held_back(&self, held: &DistributionState) -> usize {
        if self.is_held_back(held) {
            held.count(TargetStatus::Kept)
        } else {
            0
        }
    }

    /// True if copies stay although no namespace is selected: the spec was changed so since its last report, which may be a
    /// mistake, and nobody confirmed it. The observed generation in the status stays behind until then, so that a restart finds
    /// this state.
    pub(crate) fn is_held_back(&self, held: &DistributionState) -> bool {
        held.meant() == 0
            && !held.object.may_be_empty()
            && held.object.meta.generation.unwrap_or_default() != held.object.observed_generation()
    }
}
