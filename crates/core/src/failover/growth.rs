//! Divided replicas of a copy that is purged directly: they start elsewhere when it is gone, on clusters that hold the workload
//! already as on those that are new to it. A copy that is made waits for that where it is delivered
//! (`crate::eviction::awaits_purge`); one that would grow keeps its share here.

use entourage_api::{
    policy::{Placement, ReplicaSchedulingType},
    work::{GracefulEvictionTask, ResourceBindingSpec, TargetCluster},
};

use crate::{eviction::purged, index::Index, object::Id};

/// Takes back what shares would grow by, in so far as there would be more replicas than the template asks for, and says so.
/// `spec`: where the workload is, as stored; `tasks`: what it is to leave from now on.
///
/// Cost: O(tasks × clusters).
pub(super) fn hold_back(
    index: &Index,
    id: &Id,
    (placement, total): (&Placement, Option<i32>),
    (spec, tasks): (&ResourceBindingSpec, &[GracefulEvictionTask]),
    chosen: &mut [TargetCluster],
) -> Option<String> {
    if placement.replica_scheduling_type() != ReplicaSchedulingType::Divided {
        return None;
    }
    let (mut going, mut from) = (0, Vec::new());
    for task in purged(index, id, spec, (&*chosen, tasks)) {
        going += i64::from(task.replicas.unwrap_or_default());
        from.push(task.from_cluster.as_str());
    }
    if going == 0 {
        return None;
    }
    let share = |name: &str| {
        let mut targets = spec.clusters.iter();
        let target = targets.find(|target| target.name == *name);
        target.map(|target| target.replicas)
    };
    let shares = chosen
        .iter()
        .map(|target| share(&target.name).map_or(target.replicas, |share| share.min(target.replicas)));
    let free = i64::from(total?) - going - shares.map(i64::from).sum::<i64>();
    let mut free = i32::try_from(free.max(0)).unwrap_or(i32::MAX);
    let mut held = 0;
    for target in chosen {
        let Some(share) = share(&target.name).filter(|share| *share < target.replicas) else {
            continue;
        };
        let growth = target.replicas - share;
        let granted = growth.min(free);
        free -= granted;
        held += growth - granted;
        target.replicas = share + granted;
    }
    (held > 0).then(|| {
        format!(
            "{held} replicas start when the copy on {} is gone, because its purgeMode is Directly.",
            from.join(", ")
        )
    })
}
