//! Open files: each cluster of a fleet has a listener, and a store if it is kept.

use anyhow::{Result, bail};

/// The open files of the process beside its clusters: kubectl's connections, standard streams, the runtime's own.
const BESIDE: u64 = 64;

/// Raises the limit of open files to the system's maximum, and fails if that is too low for a fleet.
pub(super) fn suffice(members: usize, kept: bool) -> Result<()> {
    let clusters = u64::try_from(members).unwrap_or(u64::MAX).saturating_add(1);
    let needed = BESIDE.saturating_add(clusters.saturating_mul(if kept { 2 } else { 1 }));
    // A system without such a limit does not set one.
    let allowed = rlimit::increase_nofile_limit(u64::MAX).unwrap_or(u64::MAX);
    if allowed < needed {
        bail!(
            "{members} members need {needed} open files, and this process may have {allowed}; raise the hard limit \
             (ulimit -Hn {needed}), or pass a smaller --members"
        );
    }
    Ok(())
}
