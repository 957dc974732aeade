//! The places of a binding: what is known of its copy on each member, and what a person is told about it.

use crate::{
    index::{
        CopyState, Index, Problem, ResourceState, Trouble, current::is_current, identities,
        suspension::is_suspended, wanted::wants,
    },
    messages,
    object::{ResourceId, Str, Time},
    stored_binding::{is_held_back_from, purge},
};

/// One place of a binding.
pub(super) struct Place<'a> {
    pub(super) cluster: &'a Str,
    pub(super) state: &'a CopyState,
    pub(super) wanted: bool,
    pub(super) current: bool,
    /// Why what the member holds cannot be listed, although it answers. Of a list that worked and is refused since only
    /// where the copy is not what it should be: nothing can be done about it until there are rights again.
    pub(super) unlistable: Option<&'a String>,
    /// The member answers, but what it holds is not listed yet.
    pub(super) unknown: bool,
    pub(super) answers: bool,
    /// Why the member is not used although it may answer.
    pub(super) objection: Option<String>,
    /// Nothing may be written here now.
    pub(super) suspended: bool,
    /// What is wrong with the copy. Not what was, where nothing is tried any more: a restart would not find it again.
    pub(super) problem: Option<&'a Problem>,
    /// It is not wanted, and stays because nothing may be written here now.
    pub(super) held: bool,
    /// What it has of its replicas while others are purged elsewhere.
    pub(super) short: Option<String>,
}

impl Place<'_> {
    /// Whether it is applied, with all replicas that it is to have.
    pub(super) fn is_complete(&self) -> bool {
        self.applied() && self.short.is_none()
    }

    /// Whether what it lacks comes without anybody's doing.
    pub(super) fn is_on_its_way(&self) -> bool {
        self.is_pending() || (self.applied() && self.short.is_some())
    }

    /// Whether an answer is still to come.
    pub(super) fn is_pending(&self) -> bool {
        self.wanted
            && self.answers
            && !self.current
            && self.problem.is_none()
            && self.unlistable.is_none()
            && !self.suspended
    }

    /// Since when an answer is awaited, where the copy is not in the version that the template has now.
    pub(super) fn pending_since(&self) -> Option<Time> {
        let since = || self.state.outdated_since.or(self.state.wanted_since);
        (self.is_pending() && !self.applied()).then(since).flatten()
    }

    /// Whether it is not there because a user suspended delivery, and for no other reason.
    pub(super) fn is_as_asked(&self) -> bool {
        self.suspended && self.problem.is_none() && self.unlistable.is_none()
    }

    /// Whether an override policy keeps it from being brought in line.
    pub(super) fn is_spoiled(&self) -> bool {
        self.problem
            .is_some_and(|problem| problem.trouble == Trouble::Override)
    }

    /// Whether the copy stands there, in whatever version.
    pub(super) fn stands(&self) -> bool {
        let is_there = self.state.live.is_some() || !self.answers;
        let is_kept_back = self.unlistable.is_some() && !self.current;
        self.problem.is_none() && self.state.record.is_some() && is_there && !is_kept_back
    }

    /// Whether the copy was written, or seen, in the version that the template has now (I9), whether or not the member
    /// responds. A change on the member is no other version: it is changed back, or its problem is told.
    pub(super) fn applied(&self) -> bool {
        self.stands() && (!self.wanted || self.state.outdated_since.is_none())
    }

    pub(super) fn message(&self) -> String {
        if let (Some(why), None) = (self.unlistable, self.problem) {
            return messages::unlistable(self.cluster, why);
        }
        match self.problem {
            Some(problem) => problem.message.clone(),
            None if self.applied() => String::new(),
            None if self.suspended => messages::SUSPENDED.into(),
            None if self.objection.is_some() => {
                messages::unused(self.cluster, self.objection.as_deref().unwrap_or_default())
            }
            None if !self.answers => messages::silent(self.cluster),
            None => messages::PENDING.into(),
        }
    }
}

/// The places of a binding: where its copy is wanted, and where one may stand. Cost: O(copies).
pub(super) fn places<'a>(index: &'a Index, id: &ResourceId, resource: &'a ResourceState) -> Vec<Place<'a>> {
    resource
        .copies
        .iter()
        .filter_map(|(cluster, state)| {
            let wanted = wants(index, id, resource, cluster) && index.members.contains_key(cluster);
            let answers = index.answers(cluster);
            let is_told = || index.may_exist(id, cluster) && is_known_of(index, id, resource, cluster);
            if !wanted && !is_told() {
                return None;
            }
            let watch = index.copies(cluster, &id.gvk);
            let unlistable = index.watches.unlistable(&watch);
            let unknown = !index.was_probed(cluster)
                || (answers && unlistable.is_none() && !index.watches.is_listed(&watch));
            let current = is_current(index, id, cluster);
            let refused = index.watches.refused(&watch).filter(|_| !current);
            let suspended = wanted && is_suspended(index, resource, cluster);
            let binding = resource.binding.as_ref().map(|binding| &binding.object);
            Some(Place {
                unlistable: unlistable.or(refused).filter(|_| answers),
                cluster,
                state,
                wanted,
                current,
                unknown,
                answers,
                objection: identities::objection(index, cluster).map(|objection| objection.message(cluster)),
                suspended,
                problem: state.problem.as_ref().filter(|_| !suspended),
                held: !wanted && binding.is_some_and(|binding| is_held_back_from(&binding.spec, cluster)),
                short: binding.and_then(|binding| purge::lacking(binding, cluster)),
            })
        })
        .collect()
}

/// Whether there is something to tell of a place that is not wanted: not of what was perhaps sent there and is not seen.
/// Cost: O(log n).
fn is_known_of(index: &Index, id: &ResourceId, resource: &ResourceState, cluster: &Str) -> bool {
    let state = resource.copies.get(cluster);
    let is_told = |state: &CopyState| {
        state.live.is_some() || state.in_flight || state.record.is_some() || state.problem.is_some()
    };
    state.is_some_and(is_told) || !index.copies_known(cluster, &id.gvk)
}

/// Where delivery is held back, and what is not removed for that reason.
pub(super) fn suspended(places: &[Place<'_>]) -> Option<String> {
    let names = |which: fn(&Place<'_>) -> bool| {
        let of_it = places.iter().filter(|place| which(place));
        of_it.map(|place| &**place.cluster).collect::<Vec<_>>().join(", ")
    };
    let mut told = Vec::new();
    let (suspended, held) = (names(|place| place.suspended), names(|place| place.held));
    if !suspended.is_empty() {
        told.push(format!("Delivery is suspended on {suspended}."));
    }
    if !held.is_empty() {
        told.push(format!(
            "Copies that are no longer scheduled are kept, as delivery is suspended, on {held}."
        ));
    }
    (!told.is_empty()).then(|| told.join(" "))
}
