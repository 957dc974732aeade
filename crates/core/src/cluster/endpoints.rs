//! The condition EndpointsCollected of a Cluster: False while endpoints of Services that it exports are not on the hub. There is none if
//! all are, or it exports nothing.

use entourage_api::keys::{condition, reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::{
    cache::Member,
    condition as conditions,
    fleet::Fleet,
    kinds,
    object::{ResourceId, Str, Time},
};

/// Sets the condition. Cost: O(Services that the member exports); O(ServiceExports) in Pull mode.
pub(super) fn fill(fleet: &Fleet, name: &Str, member: &Member, conditions: &mut Vec<Condition>, now: Time) {
    let problem = match fleet.config.share_services {
        true => problem(fleet, name),
        false => None,
    };
    let Some((reason, message)) = problem else {
        conditions::remove(conditions, condition::ENDPOINTS_COLLECTED);
        return;
    };
    conditions::set(
        conditions,
        Condition {
            type_: condition::ENDPOINTS_COLLECTED.into(),
            status: "False".into(),
            reason: reason.into(),
            message,
            observed_generation: member.meta.generation,
            last_transition_time: now.to_k8s(),
        },
    );
}

/// The reason and the message.
fn problem(fleet: &Fleet, name: &Str) -> Option<(&'static str, String)> {
    if fleet.is_pull(name) {
        let first = ResourceId::new(kinds::service_export(), "", "");
        let exports = fleet.cache.resources.range(first.clone()..);
        let mut exports = exports.take_while(|(id, _)| id.gvk == first.gvk);
        let is_here = exports.any(|(_, resource)| {
            let copy = resource.copies.get(name);
            copy.is_some_and(|copy| copy.live.is_some())
        });
        // What was collected while it was in Push mode.
        let is_held = || fleet.cache.services.sources_of(name).next().is_some();
        return (is_here || is_held()).then(|| {
            let message = format!(
                "endpoints of the Services that {name} exports are not collected: it is in Pull mode, and its agent does not report them. \
                 Those that were collected before stay as they are while it is ready"
            );
            (reason::PULL_MODE, message)
        });
    }
    let mut watches = fleet.endpoints_of(name);
    if let Some(why) = watches.find_map(|watch| fleet.cache.watches.refused(watch)) {
        let message = format!(
            "the joined account may not list and watch EndpointSlices of {name}: {why}. Endpoints of the Services that it exports stay \
             as they are on the hub. Grant the rights with `entourage join {name}` and the flags that it was joined with"
        );
        return Some((reason::RIGHTS_MISSING, message));
    }
    if let Some(unwatched) = fleet.memory.unwatched_exports.of(name) {
        let message = format!(
            "{name} exports more than {} Services: endpoints of {} of them are not collected, and those that are on the hub are in reserve. \
             Export less",
            fleet.config.exports_per_member,
            unwatched.len()
        );
        return Some((reason::TOO_MANY_EXPORTS, message));
    }
    let (kept, left_out) = fleet.cache.services.counts(name);
    (left_out > 0).then(|| {
        let limit = fleet.config.endpoints_per_member;
        let message = format!(
            "{left_out} EndpointSlices of Services that {name} exports are not collected: the others count {kept} of {limit} \
             (--endpoints-per-member), one for each slice, port and address. Raise the limit, or export less"
        );
        (reason::TOO_MANY_ENDPOINTS, message)
    })
}
