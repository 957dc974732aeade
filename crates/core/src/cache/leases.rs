//! The Leases of agents as observed, with the times when this process saw them renewed, or read them.

use std::collections::BTreeMap;

use crate::{
    object::{Str, Time},
    observation::Lease,
};

/// A Lease as observed.
#[derive(Clone, Debug)]
pub(crate) struct HeldLease {
    pub(crate) lease: Lease,
    /// The time when this process observed its last renewal.
    pub(crate) since: Time,
}

/// The last GET of a Lease.
#[derive(Clone, Debug)]
pub(crate) struct LeaseRead {
    /// The time of its response.
    pub(crate) at: Time,
    /// The message of a hub that refused it to our account. Such a GET proves nothing.
    pub(crate) refused: Option<String>,
}

/// The Leases of agents, by the names of their clusters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leases {
    pub(crate) held: BTreeMap<Str, HeldLease>,
    /// The last GET of each that had been read at all.
    pub(crate) read: BTreeMap<Str, LeaseRead>,
    /// The times from which the grace counts anew: Ready turned from Unknown to another status, which is the agent's doing, or the
    /// Cluster was made anew.
    pub(crate) returned: BTreeMap<Str, Time>,
    /// The times when Leases were deleted that do not exist again.
    pub(crate) ended: BTreeMap<Str, Time>,
    /// The time of the last list: what happened in the gap before it was not observed, so every grace begins anew.
    pub(crate) listed: Option<Time>,
}

impl Leases {
    /// Forgets what is known of the agent of a Cluster, apart from the Lease itself.
    pub(crate) fn forget(&mut self, cluster: &str) {
        self.read.remove(cluster);
        self.returned.remove(cluster);
        self.ended.remove(cluster);
    }
}
