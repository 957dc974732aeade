//! Other writers of templates' status: a hub that runs workload controllers.
//!
//! Such a hub has Nodes, which the shell looks for when it starts ([`crate::config::Config::hub_has_nodes`]), or another writer
//! there replaces our status again and again. Two writers of one field would write for ever: ours is not written then, and the
//! status of the members is in the bindings.

use super::Fleet;
use crate::object::Gvk;

/// The reason why the status of templates of a kind is not written; `None` if it is.
pub(crate) fn is_of_others(fleet: &Fleet, gvk: &Gvk) -> Option<&'static str> {
    if fleet.config.hub_has_nodes {
        return Some("the hub has Nodes: its own controllers write the status of workloads");
    }
    fleet
        .memory
        .contested
        .contains(gvk)
        .then_some("another writer on the hub writes the status of this kind, too")
}
