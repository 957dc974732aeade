//! The eviction tasks that are created: their cause, their grace period, and their message; and those that cannot be.

use entourage_api::{
    keys::reason,
    policy::{FailoverBehavior, PurgeMode},
    work::{GracefulEvictionTask, ResourceBinding, TargetCluster},
};

use super::{APPLICATION_FAILOVER, Cause, RETURN, state};
use crate::{
    eviction::TAINT_MANAGER,
    object::{ResourceId, Time},
};

/// The maximum length of a task's message, in bytes, by the API server.
const LONGEST_MESSAGE: usize = 1_024;

/// The task for an eviction from a cluster, with the labels preserved from the copy's status. `before`: the clusters of the
/// workload until now.
pub(super) fn new_task(
    id: &ResourceId,
    target: &TargetCluster,
    cause: &Cause,
    (failover, held): (Option<&FailoverBehavior>, &ResourceBinding),
    before: &[&str],
    now: Time,
) -> GracefulEvictionTask {
    let application = failover.and_then(|failover| failover.application.as_ref());
    let (mode, seconds, rules, why, mut message, producer) = match cause {
        Cause::Taint(taint) => {
            let cluster = failover.and_then(|failover| failover.cluster.as_ref());
            (
                cluster.map(|behaviour| behaviour.purge_mode).unwrap_or_default(),
                None,
                cluster.and_then(|behaviour| behaviour.state_preservation.as_ref()),
                reason::TAINT_UNTOLERATED,
                format!("the taint {taint} of {} is not tolerated", target.name),
                TAINT_MANAGER,
            )
        }
        Cause::Application(seconds) => (
            application
                .map(|behaviour| behaviour.purge_mode)
                .unwrap_or_default(),
            application.and_then(|behaviour| behaviour.grace_period_seconds),
            application.and_then(|behaviour| behaviour.state_preservation.as_ref()),
            reason::APPLICATION_FAILURE,
            format!("unhealthy on {} for more than {seconds} s", target.name),
            APPLICATION_FAILOVER[usize::from(id.namespace.is_empty())],
        ),
    };
    let (labels, lacks) = state::preserved(held, &target.name, rules);
    for lack in lacks {
        message = format!("{message}; {lack}");
    }
    message.truncate(message.floor_char_boundary(LONGEST_MESSAGE));
    GracefulEvictionTask {
        from_cluster: target.name.clone(),
        purge_mode: Some(mode),
        replicas: (target.replicas > 0).then_some(target.replicas),
        reason: why.into(),
        message,
        producer: producer.into(),
        preserved_label_state: labels,
        grace_period_seconds: seconds.filter(|_| mode == PurgeMode::Gracefully),
        suppress_deletion: (mode == PurgeMode::Never).then_some(true),
        creation_timestamp: Some(now.to_k8s()),
        clusters_before_failover: before.iter().map(|name| (*name).to_owned()).collect(),
    }
}

/// The task for a replacement that is no longer needed because the evicted cluster recovered: its copy may be the only healthy
/// one by the time that it can be deleted. The replacement is no home cluster: two clusters must not alternate.
pub(super) fn surplus(target: &TargetCluster, recovered: &str, now: Time) -> GracefulEvictionTask {
    GracefulEvictionTask {
        from_cluster: target.name.clone(),
        purge_mode: Some(PurgeMode::Gracefully),
        replicas: (target.replicas > 0).then_some(target.replicas),
        reason: reason::CLUSTER_RECOVERED.into(),
        message: format!("{recovered}, which it replaced, has recovered"),
        producer: RETURN.into(),
        creation_timestamp: Some(now.to_k8s()),
        ..GracefulEvictionTask::default()
    }
}

/// The sentence about evictions that are due and cannot start; empty if there is none.
pub(super) fn blocked(due: &[(&TargetCluster, Cause)], why: &str) -> String {
    if due.is_empty() {
        return String::new();
    }
    let reasons: Vec<String> = due
        .iter()
        .map(|(target, cause)| match cause {
            Cause::Taint(taint) => format!("{} (taint {taint} is not tolerated)", target.name),
            Cause::Application(seconds) => {
                format!("{} (unhealthy for more than {seconds} s)", target.name)
            }
        })
        .collect();
    format!(
        "It is to be evicted from {}, and stays, {why}",
        reasons.join(", ")
    )
}
