//! Another writer of templates' status: a hub that runs workload controllers.
//!
//! Such a hub has Nodes, which the shell looks for when it starts ([`crate::config::Config::hub_has_nodes`]), or something
//! there puts another status in the place of ours again and again. Two writers of one field would write for ever: ours is not
//! written then, and what the members report is in the bindings.

use super::Fleet;
use crate::object::Gvk;

/// Why the status of templates of a kind is not ours to write; `None` where it is.
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
