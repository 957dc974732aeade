//! Copies that are purged directly, and the replicas that start on other clusters when they are gone.
//!
//! A cluster that is new to the workload gets its copy after that (`crate::eviction::awaits_purge`). One that has the workload
//! keeps its earlier share: the binding stores it ([`annotation::SHARES_BEFORE_PURGE`]), and it counts as long as the binding
//! has the eviction task. So the delivered replicas follow from the binding alone, also after a restart.

use std::collections::BTreeMap;

use entourage_api::{
    keys::annotation,
    policy::{Placement, PurgeMode, ReplicaSchedulingType},
    work::{GracefulEvictionTask, ResourceBinding, ResourceBindingSpec, TargetCluster},
};

use super::eviction_from;

/// The earlier replicas of clusters, by name.
pub(crate) type Shares = BTreeMap<String, i32>;

/// The tasks whose copies are purged directly, except for copies that another object requires. Cost: O(tasks × (clusters + what
/// requires the object)).
pub(crate) fn purged(spec: &ResourceBindingSpec) -> impl Iterator<Item = &GracefulEvictionTask> {
    spec.graceful_eviction_tasks.iter().filter(|task| {
        let from = &task.from_cluster;
        is_direct(task) && TargetCluster::find(&spec.clusters, from).is_none() && !is_required(spec, from)
    })
}

/// True if the copy is deleted before its replacements are created.
pub(crate) fn is_direct(task: &GracefulEvictionTask) -> bool {
    task.purge_mode == Some(PurgeMode::Directly) && task.suppress_deletion != Some(true)
}

/// True if another object requires the copy on a cluster. Cost: O(dependents).
pub(crate) fn is_required(spec: &ResourceBindingSpec, cluster: &str) -> bool {
    let mut required = spec.required_by.iter();
    required.any(|each| TargetCluster::find(&each.clusters, cluster).is_some())
}

/// The shares that are stored from now on: those that the clusters have when a copy begins to be purged. `held` is the stored
/// binding; the other arguments are its next tasks and clusters. Cost: O(tasks²) while no copy is purged directly; when one
/// begins to be, O(clusters²) for the scheduled clusters.
pub(crate) fn remembered(
    held: &ResourceBinding,
    placement: &Placement,
    (tasks, chosen): (&[GracefulEvictionTask], &[TargetCluster]),
) -> Shares {
    let is_divided = placement.replica_scheduling_type() == ReplicaSchedulingType::Divided;
    if !is_divided || !tasks.iter().any(is_direct) {
        return Shares::new();
    }
    let spec = &held.spec;
    let begins = |task: &GracefulEvictionTask| eviction_from(spec, &task.from_cluster).is_none();
    if !tasks.iter().any(|task| is_direct(task) && begins(task)) {
        return stored(held);
    }
    let share = |target: &TargetCluster| {
        let before = TargetCluster::find(&spec.clusters, &target.name);
        // A copy that was being evicted from there has replicas, too.
        let evicted = || eviction_from(spec, &target.name)?.replicas;
        let share = before.map(|before| share(held, before, false)).or_else(evicted)?;
        Some((target.name.clone(), share))
    };
    chosen.iter().filter_map(share).collect()
}

fn stored(binding: &ResourceBinding) -> Shares {
    let annotations = binding.metadata.annotations.as_ref();
    let text = annotations.and_then(|all| all.get(annotation::SHARES_BEFORE_PURGE));
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// The replicas of a copy on one of the clusters of a binding with divided replicas: its share; while copies are purged, only
/// its earlier share, and of its growth only as much as keeps the total within the replicas that are requested: see
/// [`requested`]. Cost: O(1) without eviction tasks, else O(tasks × (clusters + what requires the object)); where a copy is
/// purged, plus O(clusters × log clusters) to read the stored shares.
pub(crate) fn share(binding: &ResourceBinding, target: &TargetCluster, is_followed: bool) -> i32 {
    let spec = &binding.spec;
    let going = purged(spec).map(|task| i64::from(task.replicas.unwrap_or_default().max(0)));
    let going: i64 = going.sum();
    if going == 0 {
        return target.replicas;
    }
    let shares = stored(binding);
    let Some(before) = shares.get(&target.name) else {
        return target.replicas;
    };
    let grows = |target: &TargetCluster| {
        let before = *shares.get(&target.name)?;
        Some(i64::from(target.replicas) - i64::from(before)).filter(|growth| *growth > 0)
    };
    let Some(growth) = grows(target) else {
        return target.replicas;
    };
    // The shares of new clusters do not run: their copies are created when the others are gone.
    let holders = spec
        .clusters
        .iter()
        .filter(|each| shares.contains_key(&each.name));
    let running = holders
        .clone()
        .map(|each| i64::from(each.replicas) - grows(each).unwrap_or_default());
    let free = i64::from(requested(spec, is_followed)) - going - running.sum::<i64>();
    let first = holders.take_while(|each| each.name != target.name);
    let granted = (free - first.filter_map(grows).sum::<i64>()).clamp(0, growth);
    i32::try_from(i64::from(*before) + granted).unwrap_or(target.replicas)
}

/// The replicas that are requested of a binding. Where shares follow the members, the number in the template lags behind, or is that of a
/// user which counts for nothing: what runs must not exceed their sum. Cost: O(clusters).
fn requested(spec: &ResourceBindingSpec, is_followed: bool) -> i32 {
    let shares = spec.clusters.iter().map(|target| target.replicas);
    match is_followed {
        true => shares.fold(0, i32::saturating_add),
        false => spec.replicas,
    }
}

/// A message about the part of its share that a cluster lacks until copies are purged elsewhere; `None` if it lacks nothing.
/// Cost: O(1) without eviction tasks, else O(clusters) and that of [`share`].
pub(crate) fn lacking(binding: &ResourceBinding, cluster: &str, is_followed: bool) -> Option<String> {
    purged(&binding.spec).next()?;
    let target = TargetCluster::find(&binding.spec.clusters, cluster)?;
    let share = share(binding, target, is_followed);
    let from: Vec<&str> = purged(&binding.spec)
        .map(|task| task.from_cluster.as_str())
        .collect();
    (share < target.replicas).then(|| {
        format!(
            "{share} of {} replicas, the others when the copy on {} is deleted",
            target.replicas,
            from.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(all: &[(&str, i32)]) -> Vec<TargetCluster> {
        let target = |(name, replicas): &(&str, i32)| TargetCluster {
            name: (*name).into(),
            replicas: *replicas,
            components: Vec::new(),
        };
        all.iter().map(target).collect()
    }

    fn task(from: &str, replicas: i32) -> GracefulEvictionTask {
        GracefulEvictionTask {
            from_cluster: from.into(),
            replicas: Some(replicas),
            purge_mode: Some(PurgeMode::Directly),
            ..GracefulEvictionTask::default()
        }
    }

    /// The replicas delivered to each cluster of a binding that is evicted from `m9` with 3 replicas.
    fn delivered(replicas: i32, before: &[(&str, i32)], clusters: &[(&str, i32)]) -> Vec<i32> {
        let before: Shares = before
            .iter()
            .map(|(name, share)| ((*name).into(), *share))
            .collect();
        let mut binding = ResourceBinding::default();
        let text = serde_json::to_string(&before).expect("text");
        let annotations = binding.metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::SHARES_BEFORE_PURGE.into(), text);
        binding.spec.replicas = replicas;
        binding.spec.clusters = targets(clusters);
        binding.spec.graceful_eviction_tasks = vec![task("m9", 3)];
        let clusters = binding.spec.clusters.clone();
        clusters
            .iter()
            .map(|target| share(&binding, target, false))
            .collect()
    }

    #[test]
    fn shares_grow_by_what_does_not_run_elsewhere() {
        for (what, replicas, before, clusters, expected) in [
            (
                "all of it waits",
                9,
                vec![("a", 3), ("b", 3)],
                vec![("a", 5), ("b", 4)],
                vec![3, 3],
            ),
            (
                "a new cluster waits by itself",
                6,
                vec![("a", 3)],
                vec![("a", 3), ("new", 3)],
                vec![3, 3],
            ),
            (
                "scaled up",
                12,
                vec![("a", 3), ("b", 3)],
                vec![("a", 6), ("b", 6)],
                vec![6, 3],
            ),
            (
                "scaled up beside a new cluster",
                9,
                vec![("a", 3)],
                vec![("a", 5), ("new", 4)],
                vec![5, 4],
            ),
            (
                "scaled down",
                2,
                vec![("a", 3), ("b", 3)],
                vec![("a", 1), ("b", 1)],
                vec![1, 1],
            ),
            (
                "one shrinks",
                9,
                vec![("a", 1), ("b", 5)],
                vec![("a", 5), ("b", 4)],
                vec![2, 4],
            ),
            (
                "nothing is remembered",
                9,
                vec![],
                vec![("a", 5), ("b", 4)],
                vec![5, 4],
            ),
        ] {
            assert_eq!(delivered(replicas, &before, &clusters), expected, "{what}");
        }
    }

    #[test]
    fn where_shares_follow_only_their_sum_is_requested() {
        let mut binding = ResourceBinding::default();
        binding.spec.replicas = 20;
        binding.spec.clusters = targets(&[("a", 13)]);
        assert_eq!(requested(&binding.spec, false), 20);
        assert_eq!(requested(&binding.spec, true), 13);
        // Of 13 replicas 10 still run on the cluster that is purged: those that moved wait for that.
        let text = serde_json::to_string(&Shares::from([("a".into(), 3)])).expect("text");
        binding.metadata.annotations = Some([(annotation::SHARES_BEFORE_PURGE.into(), text)].into());
        binding.spec.graceful_eviction_tasks = vec![task("m9", 10)];
        for (is_followed, want) in [(false, 10), (true, 3)] {
            let share = share(&binding, &binding.spec.clusters[0], is_followed);
            assert_eq!(share, want, "{is_followed}");
        }
        assert!(lacking(&binding, "a", true).is_some_and(|says| says.starts_with("3 of 13 replicas")));
    }

    #[test]
    fn a_purge_that_waits_to_be_confirmed_is_none() {
        let mut task = task("m9", 3);
        for (suppressed, is_direct) in [(None, true), (Some(false), true), (Some(true), false)] {
            task.suppress_deletion = suppressed;
            assert_eq!(super::is_direct(&task), is_direct, "{suppressed:?}");
        }
    }

    #[test]
    fn shares_are_remembered_from_the_beginning_of_a_purge_to_its_end() {
        let mut placement = Placement::default();
        let divided = serde_json::json!({"replicaSchedulingType": "Divided"});
        placement.replica_scheduling = serde_json::from_value(divided).expect("strategy");
        let mut held = ResourceBinding::default();
        held.spec.clusters = targets(&[("a", 3), ("m9", 3)]);
        let chosen = targets(&[("a", 4), ("b", 2)]);
        let shares = |held: &ResourceBinding, tasks: &[_]| remembered(held, &placement, (tasks, &chosen));
        let first = shares(&held, &[task("m9", 3)]);
        assert_eq!(first, Shares::from([("a".into(), 3)]));
        let text = serde_json::to_string(&first).expect("text");
        held.metadata.annotations = Some([(annotation::SHARES_BEFORE_PURGE.into(), text)].into());
        held.spec.clusters = chosen.clone();
        held.spec.graceful_eviction_tasks = vec![task("m9", 3)];
        assert_eq!(shares(&held, &[task("m9", 3)]), first);
        // Another purge: the running replicas are stored again; `b` still waits for the first one with its 2.
        let second = shares(&held, &[task("m9", 3), task("m8", 1)]);
        assert_eq!(second, Shares::from([("a".into(), 3), ("b".into(), 2)]));
        // A cluster that was to be evicted from keeps its replicas.
        held.spec.clusters = targets(&[("a", 4)]);
        let leaves_b = GracefulEvictionTask {
            purge_mode: Some(PurgeMode::Gracefully),
            ..task("b", 1)
        };
        held.spec.graceful_eviction_tasks = vec![task("m9", 3), leaves_b];
        let third = shares(&held, &[task("m9", 3), task("m8", 1)]);
        assert_eq!(third, Shares::from([("a".into(), 3), ("b".into(), 1)]));
        assert!(shares(&held, &[]).is_empty());
        assert!(remembered(&held, &Placement::default(), (&[task("m9", 3)], &chosen)).is_empty());
    }
}
