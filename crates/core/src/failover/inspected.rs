//! The answers of scheduling to [`crate::inspection`]: the decision, the result of each filter for it, and the outcome without a cluster.
//! Nothing is decided here: every request to the scheduler is that of [`decide`].

use std::collections::BTreeMap;

use entourage_api::{
    policy::{FailoverBehavior, Placement},
    work::{ResourceBinding, TargetCluster},
};

use super::{Decision, companions::companions, decide, outcomes::failed};
use crate::{
    cache::ResourceState,
    descheduling::stuck,
    eviction::tolerance::{Stay, stay},
    fleet::{Fleet, autoscaling::as_scaled},
    object::{ResourceId, Str, Time},
    observation::Template,
    scheduler::{Fitness, Outcome},
    scheduling::{self, Situation},
};

/// A template with its placement and its stored binding, as [`decide`] gets them.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'a> {
    /// The template.
    pub(crate) id: &'a ResourceId,
    /// Its state.
    pub(crate) of: (&'a ResourceState, &'a Template),
    /// Its placement, and the treatment of failures.
    pub(crate) behaviour: (&'a Placement, Option<&'a FailoverBehavior>),
    /// The stored binding.
    pub(crate) held: &'a ResourceBinding,
}

/// The clusters of a request to the scheduler.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// The present ones; `None` for those of the stored binding.
    pub(crate) current: Option<Vec<TargetCluster>>,
    /// Those that it is being evicted from, or is kept from for another reason of failover; see [`cause`].
    pub(crate) evicted: Vec<Str>,
}

/// A decision, with the result of each filter for each cluster.
pub(crate) struct Inspected {
    /// The decision.
    pub(crate) decision: Decision,
    /// The clusters, by name.
    pub(crate) fitness: BTreeMap<String, Fitness>,
}

/// The decision about a template, and what its filters say of each cluster; `None` if this control plane does not schedule it.
///
/// Cost: that of [`decide`], and O(clusters × entries of the placement).
pub(crate) fn inspect(fleet: &Fleet, asking: Asking<'_>, now: Time) -> Option<Inspected> {
    let decision = decide(fleet, asking.id, asking.of, asking.behaviour, asking.held, now)?;
    let used = match &decision.outcome {
        Outcome::Placed { affinity, .. } => Some(&**affinity),
        Outcome::Failed { .. } => None,
    };
    let all = again(
        fleet,
        asking,
        (&decision, None),
        now,
        |template, held, situation| {
            let placement = asking.behaviour.0;
            scheduling::fitness(
                fleet,
                asking.id,
                template,
                placement,
                held,
                (situation, used),
                now,
            )
        },
    );
    let fitness = all.into_iter().map(|each| (each.cluster.clone(), each)).collect();
    Some(Inspected { decision, fitness })
}

/// The outcome if the workload had to leave a cluster now; `None` if this control plane does not schedule it.
///
/// Cost: that of [`decide`].
pub(crate) fn without(fleet: &Fleet, asking: Asking<'_>, cluster: &Str, now: Time) -> Option<Outcome> {
    let decision = decide(fleet, asking.id, asking.of, asking.behaviour, asking.held, now)?;
    let left = (&decision, Some(cluster));
    let scheduled = again(fleet, asking, left, now, |template, held, situation| {
        let placement = asking.behaviour.0;
        scheduling::schedule(fleet, asking.id, template, placement, held, situation, now)
    });
    Some(scheduled.outcome)
}

/// The cause for which a decision keeps a workload from a cluster, where its filters say that it is being evicted.
pub(crate) fn cause(
    fleet: &Fleet,
    asking: Asking<'_>,
    decision: &Decision,
    cluster: &str,
    now: Time,
) -> String {
    let placement = asking.behaviour.0;
    let mut tasks = decision.tasks.iter();
    if let Some(task) = tasks.find(|task| task.from_cluster == *cluster) {
        let why = match task.message.as_str() {
            "" => &task.reason,
            message => message,
        };
        return format!("it is being evicted from it: {why}");
    }
    if failed(asking.held, placement, now).contains(cluster) {
        return "the application failed there in this version of the template".to_owned();
    }
    let member = fleet.cache.members.get(cluster);
    match member.map(|member| stay(&member.object, &placement.cluster_tolerations)) {
        Some(Stay::Until(time, taint)) if time <= now => {
            format!("its toleration of the taint {taint} is over")
        }
        _ => "it does not fail back to it yet".to_owned(),
    }
}

/// Makes the last request of a decision again, without one of the clusters if it is named.
fn again<T>(
    fleet: &Fleet,
    Asking {
        id,
        of: (resource, template),
        behaviour: (placement, _),
        held,
    }: Asking<'_>,
    (decision, left): (&Decision, Option<&Str>),
    now: Time,
    used: impl FnOnce(&Template, &ResourceBinding, Situation<'_>) -> T,
) -> T {
    let scaled = as_scaled(fleet, id, (resource, template), placement, held, Some(now));
    let (template, held) = match &scaled {
        Some((template, held)) => (template, held),
        None => (template, held),
    };
    let (companions, _) = companions(fleet, id, template, placement, now);
    let asked = &decision.asked;
    let current = asked.current.as_deref().unwrap_or(&held.spec.clusters);
    let current = current
        .iter()
        .filter(|target| left.is_none_or(|left| **left != *target.name));
    let current: Vec<TargetCluster> = current.cloned().collect();
    let evicted: Vec<Str> = asked.evicted.iter().chain(left).cloned().collect();
    let stuck = stuck(fleet, id, resource, &held.spec, now);
    let by_room = scheduling::by_room(fleet, id, template, placement, held, now);
    let situation = (
        current.as_slice(),
        evicted.as_slice(),
        &companions,
        stuck.replicas.as_slice(),
        by_room.as_ref(),
    );
    used(template, held, situation)
}
