//! The copy of a Secret that an allow-list keeps away from a cluster: see [`crate::fleet::secrets`].

use super::plan::end;
use crate::{
    cache::{Binding, CopyState, ResourceState},
    fleet::{
        Fleet,
        secrets::{Withheld, withheld},
        wanted::{is_former, wants},
    },
    object::{ResourceId, Str, Time},
    observation::Template,
    plan::{Plan, RemovalMode, SyncRequirement},
};

/// The plan of a copy that an allow-list keeps away; `None` if no list decides on it. An existing copy that a list leaves out is
/// deleted: no workload that needs it, no suspension and no policy that preserves resources keeps it. Like every removal it needs
/// proof, and the governor counts it.
///
/// Cost: that of [`withheld`], and of [`wants`] where it keeps the copy away.
pub(super) fn plan(
    fleet: &Fleet,
    id: &ResourceId,
    cluster: &Str,
    (resource, template, binding, state): (&ResourceState, &Template, &Binding, &CopyState),
    now: Time,
) -> Option<Plan> {
    let withheld = withheld(fleet, id, cluster)?;
    // The binding is created again first, so that a record of the copy is left.
    let is_replaced =
        binding.meta.deleting.is_some() || is_former(binding, template) || binding.is_adoptable_by(template);
    match withheld {
        Withheld::NotAllowed(why) if state.live.is_some() && !is_replaced => {
            Some(revoke(fleet, id, cluster, state, &why, now))
        }
        _ if !wants(fleet, id, resource, cluster) => None,
        Withheld::NotAllowed(why) | Withheld::Unreadable(why) => Some(Plan::wait(why)),
        Withheld::Unknown => Some(Plan::wait(format!(
            "namespace {} is not known yet, and so the clusters that its Secrets may be propagated to",
            id.namespace
        ))),
    }
}

fn revoke(fleet: &Fleet, id: &ResourceId, cluster: &Str, state: &CopyState, why: &str, now: Time) -> Plan {
    if !fleet.are_secret_lists_certain() {
        return Plan::wait_for(
            SyncRequirement::SecretLists,
            "namespaces and Clusters are not synced: the Secret may be allowed there",
        );
    }
    if !fleet.is_removal_safe(&id.gvk) {
        return Plan::not_proven(&id.gvk);
    }
    end(
        fleet,
        id,
        cluster,
        (state, state.explained),
        RemovalMode::Delete,
        now,
        why,
    )
}
