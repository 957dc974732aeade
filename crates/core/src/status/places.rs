//! The target clusters of a binding: the state of its copy on each member, and the message about it.

use entourage_api::work::NotAppliedReason;

use crate::{
    cache::{Attempt, CopyState, Problem, ProblemKind, ResourceState},
    fleet::identities,
    fleet::{
        Fleet, autoscaling::is_followed, current::is_current, secrets::withheld, suspension::is_suspended,
        wanted::wants,
    },
    messages,
    object::{ResourceId, Str, Time},
    pulled::Applied,
    stored_binding::{is_held_back_from, purge},
};

/// One cluster of a binding.
pub(super) struct Place<'a> {
    pub(super) cluster: &'a Str,
    pub(super) state: &'a CopyState,
    pub(super) wanted: bool,
    pub(super) current: bool,
    /// The reason why the kind cannot be listed on the member, although it responds. If an earlier list succeeded, only where
    /// the copy is not up to date: nothing can be done about it until the rights are restored.
    pub(super) unlistable: Option<&'a String>,
    /// True if the member responds, but its list is not synced yet.
    pub(super) unknown: bool,
    pub(super) answers: bool,
    /// The reason why the member is not used although it may respond.
    pub(super) objection: Option<String>,
    /// True if delivery to this cluster is suspended.
    pub(super) suspended: bool,
    /// The problem of the copy. Not an earlier one that is no longer retried: a restart would not find it again.
    pub(super) problem: Option<&'a Problem>,
    /// True if the copy is not required, and is kept because delivery is suspended.
    pub(super) held: bool,
    /// The reason why an allow-list keeps the Secret away from the cluster.
    pub(super) withheld: Option<String>,
    /// A message about the replicas that it lacks while others are purged elsewhere.
    pub(super) short: Option<String>,
}

impl Place<'_> {
    /// True if it is applied, with all its replicas.
    pub(super) fn is_complete(&self) -> bool {
        self.applied() && self.short.is_none()
    }

    /// True if it will be complete without a user's action.
    pub(super) fn is_on_its_way(&self) -> bool {
        self.is_pending() || (self.applied() && self.short.is_some())
    }

    /// True if a report is still to come.
    pub(super) fn is_pending(&self) -> bool {
        self.wanted
            && self.answers
            && (!self.current || self.awaits_agent())
            && self.problem.is_none()
            && self.unlistable.is_none()
            && !self.suspended
            && self.withheld.is_none()
    }

    /// The time since when a report is awaited, if the copy is not of the current version of the template.
    pub(super) fn pending_since(&self) -> Option<Time> {
        let since = || self.state.outdated_since.or(self.state.wanted_since);
        (self.is_pending() && !self.applied()).then(since).flatten()
    }

    /// True if it is not delivered because a user suspended delivery, and for no other reason.
    pub(super) fn is_as_asked(&self) -> bool {
        self.suspended && self.problem.is_none() && self.unlistable.is_none() && self.withheld.is_none()
    }

    /// True if a rule of an override policy cannot be applied to it.
    pub(super) fn has_override_error(&self) -> bool {
        self.problem
            .is_some_and(|problem| problem.kind == ProblemKind::Override)
    }

    /// True if it is not required, and the member refuses its removal.
    pub(super) fn has_removal_error(&self) -> bool {
        let is_refusal = |kind| matches!(kind, ProblemKind::Rejected | ProblemKind::Failed);
        !self.wanted && self.problem.is_some_and(|problem| is_refusal(problem.kind))
    }

    /// True if the copy exists, in whatever version.
    pub(super) fn stands(&self) -> bool {
        let is_there = self.state.live.is_some() || !self.answers;
        let is_kept_back = self.unlistable.is_some() && !self.current;
        self.problem.is_none()
            && self.state.record.is_some()
            && is_there
            && !is_kept_back
            && self.withheld.is_none()
            && self.by_agent().is_none()
    }

    /// The report of the member's agent and its words, unless it has applied the copy; `None` also where there is no agent.
    fn by_agent(&self) -> Option<(Applied, &str)> {
        let live = self.state.live.as_ref()?;
        let applied = live.by_agent.filter(|applied| *applied != Applied::Done)?;
        Some((applied, live.why_unhealthy.as_deref().unwrap_or_default()))
    }

    fn awaits_agent(&self) -> bool {
        matches!(self.by_agent(), Some((Applied::Awaited, _)))
    }

    /// True if the copy was written, or observed, in the current version of the template (I9), whether or not the member
    /// responds. A change on the member is no other version: it is corrected, or its problem is reported.
    pub(super) fn applied(&self) -> bool {
        self.stands() && (!self.wanted || self.state.outdated_since.is_none())
    }

    /// The reason why it is not applied, and the message about it; `None` if there is nothing to report.
    pub(super) fn report(&self) -> Option<(NotAppliedReason, String)> {
        let is_kept = |problem: &Problem| problem.attempt == Attempt::Removal;
        if let Some(why) = self
            .withheld
            .as_ref()
            .filter(|_| !self.problem.is_some_and(is_kept))
        {
            return Some((NotAppliedReason::NotAllowed, why.clone()));
        }
        let unlistable = self.unlistable.filter(|_| self.problem.is_none());
        if let Some(why) = unlistable {
            return Some((NotAppliedReason::Unknown, messages::unlistable(self.cluster, why)));
        }
        match (self.problem, &self.objection) {
            (Some(problem), _) => Some((problem.kind.reason(), problem.message.clone())),
            _ if self.applied() => None,
            _ if self.suspended => Some((NotAppliedReason::Suspended, messages::SUSPENDED.into())),
            (None, Some(why)) => Some((NotAppliedReason::Unknown, messages::unused(self.cluster, why))),
            _ if !self.answers => Some((NotAppliedReason::Unknown, messages::unresponsive(self.cluster))),
            _ if self.current => Some(match self.by_agent() {
                Some((Applied::Failed, why)) => (
                    NotAppliedReason::Refused,
                    messages::not_applied(self.cluster, why),
                ),
                _ => (NotAppliedReason::Pending, messages::awaits_agent(self.cluster)),
            }),
            _ => Some((NotAppliedReason::Pending, messages::PENDING.into())),
        }
    }

    /// The reason why it is not applied; `None` if it is.
    pub(super) fn reason(&self) -> Option<NotAppliedReason> {
        self.report()
            .map(|(reason, _)| reason)
            .filter(|_| !self.applied())
    }
}

/// The clusters of a binding: those where its copy is required, and those where one may exist. Cost: O(copies).
pub(super) fn places<'a>(fleet: &'a Fleet, id: &ResourceId, resource: &'a ResourceState) -> Vec<Place<'a>> {
    resource
        .copies
        .iter()
        .filter_map(|(cluster, state)| {
            let wanted = wants(fleet, id, resource, cluster) && fleet.cache.members.contains_key(cluster);
            let answers = fleet.answers(cluster);
            let is_reported = || fleet.may_exist(id, cluster) && is_known_of(fleet, id, resource, cluster);
            if !wanted && !is_reported() {
                return None;
            }
            let watch = fleet.copies(cluster, &id.gvk);
            let unlistable = fleet.cache.watches.unlistable(&watch);
            let unknown = !fleet.was_probed(cluster)
                || (answers && unlistable.is_none() && !fleet.cache.watches.is_listed(&watch));
            let current = is_current(fleet, id, cluster);
            let refused = fleet.cache.watches.refused(&watch).filter(|_| !current);
            let suspended = wanted && is_suspended(fleet, id, resource, cluster);
            let binding = resource.binding.as_ref().map(|binding| &binding.object);
            let is_left = || {
                let of = resource
                    .template
                    .as_ref()
                    .zip(binding.and_then(|binding| binding.spec.placement.as_ref()));
                of.is_some_and(|(template, placement)| is_followed(fleet, id, template, placement))
            };
            Some(Place {
                unlistable: unlistable.or(refused).filter(|_| answers),
                cluster,
                state,
                wanted,
                current,
                unknown,
                answers,
                objection: identities::objection(fleet, cluster).map(|objection| objection.message(cluster)),
                suspended,
                problem: state.problem.as_deref().filter(|_| !suspended),
                held: !wanted && binding.is_some_and(|binding| is_held_back_from(&binding.spec, cluster)),
                withheld: withheld(fleet, id, cluster)
                    .filter(|_| wanted)
                    .and_then(|withheld| withheld.message().map(ToOwned::to_owned)),
                short: binding.and_then(|binding| purge::lacking(binding, cluster, is_left())),
            })
        })
        .collect()
}

/// True if a cluster where the copy is not required is to be reported: not for a copy that may have been sent and is not
/// observed. Cost: O(log n).
fn is_known_of(fleet: &Fleet, id: &ResourceId, resource: &ResourceState, cluster: &Str) -> bool {
    let state = resource.copies.get(cluster);
    let is_reported = |state: &CopyState| {
        state.live.is_some() || state.in_flight || state.record.is_some() || state.problem.is_some()
    };
    state.is_some_and(is_reported) || !fleet.copies_known(cluster, &id.gvk)
}

/// The message about clusters where delivery is suspended, and copies that are kept for that reason; `None` if there are none.
pub(super) fn suspended(places: &[Place<'_>]) -> Option<String> {
    let names = |which: fn(&Place<'_>) -> bool| {
        let of_it = places.iter().filter(|place| which(place));
        of_it.map(|place| &**place.cluster).collect::<Vec<_>>().join(", ")
    };
    let mut sentences = Vec::new();
    let (suspended, held) = (names(|place| place.suspended), names(|place| place.held));
    if !suspended.is_empty() {
        sentences.push(format!("Delivery is suspended on {suspended}."));
    }
    if !held.is_empty() {
        sentences.push(format!(
            "Copies that are no longer scheduled are kept, as delivery is suspended, on {held}."
        ));
    }
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

#[cfg(test)]
mod tests {
    use entourage_api::cluster::Cluster;
    use serde_json::json;

    use super::*;
    use crate::{
        config::Config,
        drift::{DriftBackoff, Drifting},
        interpreter::{
            operations::Operation,
            question::{InterpretError, Until},
        },
        object::Gvk,
        observation::{Delivered, Holder, Observation, Subject},
    };

    fn id() -> ResourceId {
        ResourceId::new(Gvk::new("apps/v1", "Deployment"), "shop", "web")
    }

    /// The state of the copy after this outcome of a delivery.
    fn after(outcome: Delivered) -> CopyState {
        let mut fleet = Fleet::new(Config::new("hub"));
        let cluster: Cluster = serde_json::from_value(json!({
            "metadata": {"name": "m1"}, "spec": {"syncMode": "Push"},
        }))
        .unwrap();
        fleet.observe(Observation::Seen(Subject::Cluster(cluster.into())), Time(0));
        fleet.observe(Observation::Delivered("m1".into(), id(), outcome), Time(0));
        fleet.resource(&id()).unwrap().copies.get("m1").unwrap().clone()
    }

    fn place<'a>(cluster: &'a Str, state: &'a CopyState) -> Place<'a> {
        Place {
            cluster,
            state,
            wanted: true,
            current: false,
            unlistable: None,
            unknown: false,
            answers: true,
            objection: None,
            suspended: false,
            problem: state.problem.as_deref(),
            held: false,
            withheld: None,
            short: None,
        }
    }

    #[test]
    fn every_outcome_of_a_delivery_has_its_reason() {
        let error = |until| InterpretError {
            until,
            ..InterpretError::of_components("layer", "why".into())
        };
        assert_eq!(error(Until::Changed).operation, Operation::Components);
        let table = [
            (Delivered::Foreign(Holder::Unknown), NotAppliedReason::Conflict),
            (
                Delivered::Rejected("y already exists on m1 and is not managed by this hub".into()),
                NotAppliedReason::Refused,
            ),
            (
                Delivered::Unreachable("timeout".into()),
                NotAppliedReason::Unknown,
            ),
            (
                Delivered::Failed("failed calling webhook".into()),
                NotAppliedReason::Refused,
            ),
            (
                Delivered::BadOverride("m1 refused x".into()),
                NotAppliedReason::Override,
            ),
            (
                Delivered::NoSource("it does not exist on the hub".into()),
                NotAppliedReason::Pending,
            ),
            (
                Delivered::Uninterpreted(error(Until::Changed)),
                NotAppliedReason::InterpretError,
            ),
            (
                Delivered::Uninterpreted(error(Until::Answered)),
                NotAppliedReason::InterpretError,
            ),
        ];
        let cluster: Str = "m1".into();
        for (outcome, reason) in table {
            let state = after(outcome.clone());
            assert_eq!(place(&cluster, &state).reason(), Some(reason), "{outcome:?}");
        }
    }

    #[test]
    fn what_is_no_outcome_has_its_reason() {
        let (cluster, cause): (Str, String) = ("m1".into(), "403".into());
        let state = CopyState::default();
        let drift = (0..3).fold(None, |held, _| {
            Some(DriftBackoff::corrected(
                held,
                Drifting::Copy,
                "spec.replicas",
                Time(0),
            ))
        });
        let contended = CopyState {
            problem: Some(Box::new(Problem {
                kind: ProblemKind::Contended,
                message: drift.unwrap().message(&id(), "m1").unwrap(),
                interpret_error: None,
                attempt: Attempt::Delivery(None),
                attempts: 0,
                retry_at: Time(0),
            })),
            ..CopyState::default()
        };
        let table = [
            (place(&cluster, &contended), NotAppliedReason::Contended),
            (
                Place {
                    answers: false,
                    ..place(&cluster, &state)
                },
                NotAppliedReason::Unknown,
            ),
            (
                Place {
                    objection: Some("it is another one".into()),
                    ..place(&cluster, &state)
                },
                NotAppliedReason::Unknown,
            ),
            (
                Place {
                    unlistable: Some(&cause),
                    ..place(&cluster, &state)
                },
                NotAppliedReason::Unknown,
            ),
            (
                Place {
                    suspended: true,
                    ..place(&cluster, &state)
                },
                NotAppliedReason::Suspended,
            ),
            (place(&cluster, &state), NotAppliedReason::Pending),
            (
                Place {
                    withheld: Some("a list leaves it out".into()),
                    suspended: true,
                    ..place(&cluster, &state)
                },
                NotAppliedReason::NotAllowed,
            ),
        ];
        for (place, reason) in table {
            assert_eq!(place.reason(), Some(reason), "{:?}", place.report());
        }
    }
}
