//! The clusters where data is awaited from now on: see [`crate::eviction`].

use entourage_api::{
    policy::Placement,
    work::{ResourceBinding, TargetCluster},
};

use super::{home, records::Exchange};
use crate::{
    eviction::data::{Awaited, is_requested, stored},
    object::{Str, Time},
    stored_binding::eviction_from,
};

/// The clusters where data is awaited from now on: those that the workload is scheduled to by an eviction or by fail-back, and
/// those where it was awaited before. Not a recovered cluster whose copy still exists. Cost: O(tasks × clusters).
pub(super) fn awaited(
    (held, placement): (&ResourceBinding, &Placement),
    exchange: &Exchange<'_>,
    now: Time,
) -> Awaited {
    if !is_requested(held) {
        return Awaited::new();
    }
    let mut all = stored(held);
    all.retain(|cluster, _| TargetCluster::find(exchange.chosen, cluster).is_some());
    let moves = |name: &str| !exchange.made.is_empty() || home::is_home(held, placement, name, now);
    let new = exchange.new.iter();
    let new = new.filter(|name| eviction_from(&held.spec, name).is_none() && moves(name));
    all.extend(new.map(|name| (Str::from(*name), now.to_k8s())));
    all
}
