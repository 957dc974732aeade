//! The dependency that a first delivery waits for.

use crate::{
    cache::{ProblemKind, ResourceState, referred},
    fleet::{
        Fleet,
        needs::is_required_on,
        secrets::{Withheld, withheld},
    },
    interpreter::{operations::Operation, question::InterpretError},
    object::{ResourceId, Str},
};

/// The first dependency that a workload's first delivery to a cluster waits for: one that exists on the hub and is being
/// delivered there (architecture 2.9). A dependency that does not exist, is never propagated, or is blocked by an unmanaged
/// object, by an override that cannot be applied or by an allow-list is not waited for. A dependency itself waits in the same way
/// for its own dependencies that are delivered there for its sake, but not for its dependents.
///
/// Cost: O(references), of a dependency × their referrers.
pub(super) fn awaited(
    fleet: &Fleet,
    id: &ResourceId,
    resource: &ResourceState,
    cluster: &Str,
) -> Option<ResourceId> {
    let follows = fleet.is_following(resource);
    if !follows && !is_required_on(fleet, id, cluster) {
        return None;
    }
    fleet
        .links(id)
        .references
        .iter()
        .map(referred)
        .find(|dependency| {
            let needed = fleet.resource(dependency);
            let goes_along = || {
                let references = &fleet.links(dependency).references;
                is_required_on(fleet, dependency, cluster) && !references.iter().any(|each| each.id == *id)
            };
            if !(follows || needed.is_some() && goes_along()) {
                return false;
            }
            if !fleet.is_kind_listed(&dependency.gvk) {
                return true;
            }
            let Some(needed) = needed else {
                return false;
            };
            let exists = needed
                .template
                .as_ref()
                .is_some_and(|template| template.meta.deleting.is_none() && !needed.not_propagatable);
            if !exists {
                return false;
            }
            // Its own dependencies are being interpreted at this moment.
            let unasked = needed
                .template
                .as_ref()
                .and_then(|template| template.lacks(Operation::References));
            if follows && unasked.is_some_and(InterpretError::is_unasked) {
                return true;
            }
            let is_kept_away = |withheld: Withheld| withheld.message().is_some();
            if withheld(fleet, dependency, cluster).is_some_and(is_kept_away) {
                return false;
            }
            let Some(state) = needed.copies.get(cluster) else {
                return true;
            };
            let kept_out = state.problem.as_ref().is_some_and(|problem| {
                matches!(
                    problem.kind,
                    ProblemKind::Foreign
                        | ProblemKind::NoSource
                        | ProblemKind::Override
                        | ProblemKind::Interpretation
                )
            });
            // A copy whose removal got no response is checked first.
            let is_delivered = state.record.is_some() && state.is_lasting() && state.pending.is_none();
            !is_delivered && !kept_out
        })
}
