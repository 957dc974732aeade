//! The table of event reasons: the objects that each is recorded on, when, and what keeps it from being recorded twice.
//!
//! An Event is recorded on a transition only. `docs/reference/events.md` is generated from this table (`cargo xtask events`), the
//! scenario tests fail for an Event that is not in it, and a test of xtask for a row without code or test.

use entourage_api::keys::event;

/// The objects that events are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// The template.
    Template,
    /// The ResourceBinding or ClusterResourceBinding.
    Binding,
    /// The PropagationPolicy or ClusterPropagationPolicy.
    Policy,
    /// The OverridePolicy or ClusterOverridePolicy.
    OverridePolicy,
    /// The Cluster.
    Cluster,
    /// The ResourceDistribution, if this control plane executes it.
    Distribution,
    /// The WorkloadRebalancer.
    Rebalancer,
    /// The FederatedResourceQuota.
    Quota,
    /// The Work: of a member in Pull mode by its agent, else with `--work-objects=mirror`.
    Work,
}

impl On {
    /// The objects of a kind.
    #[must_use]
    pub fn of(kind: &str) -> Self {
        match kind {
            "ResourceBinding" | "ClusterResourceBinding" => Self::Binding,
            "PropagationPolicy" | "ClusterPropagationPolicy" => Self::Policy,
            "OverridePolicy" | "ClusterOverridePolicy" => Self::OverridePolicy,
            "Cluster" => Self::Cluster,
            "ResourceDistribution" => Self::Distribution,
            "WorkloadRebalancer" => Self::Rebalancer,
            "FederatedResourceQuota" => Self::Quota,
            "Work" => Self::Work,
            _ => Self::Template,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Template => "template",
            Self::Binding => "ResourceBinding",
            Self::Policy => "PropagationPolicy",
            Self::OverridePolicy => "OverridePolicy",
            Self::Cluster => "Cluster",
            Self::Distribution => "ResourceDistribution",
            Self::Rebalancer => "WorkloadRebalancer",
            Self::Quota => "FederatedResourceQuota",
            Self::Work => "Work",
        }
    }
}

/// The reason why an event is not recorded twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Once {
    /// This condition of the object, or of its binding, on the hub: no event after a restart or a takeover.
    Condition(&'static str),
    /// Another field of an object on the hub, which is written with the event: no event after a restart, either.
    Written(&'static str),
    /// This process observed the change. A restart may lose one event, and repeats none.
    Observed,
    /// The first refusal since the last success. After a restart a refusal that lasts is recorded once more.
    Refusal,
}

impl Once {
    fn text(self) -> String {
        match self {
            Self::Condition(type_) => format!("condition `{type_}`"),
            Self::Written(field) => field.to_owned(),
            Self::Observed => "observed change".to_owned(),
            Self::Refusal => "until it succeeds".to_owned(),
        }
    }
}

/// One row: a reason on some objects.
#[derive(Clone, Copy, Debug)]
pub struct EventReason {
    /// The reason.
    pub reason: &'static str,
    /// `Warning` or `Normal`.
    pub warning: bool,
    /// The objects.
    pub on: &'static [On],
    /// The transition, for users, in Markdown.
    pub when: &'static str,
    /// The reason why it is not recorded twice.
    pub once: Once,
    /// True if Karmada does not have the reason.
    pub ours: bool,
}

use On::{Binding, Cluster, Distribution, OverridePolicy, Policy, Quota, Rebalancer, Template, Work};
use Once::{Condition, Observed, Refusal, Written};

/// All event reasons, in the order of the path of a template.
#[rustfmt::skip]
pub const ALL: &[EventReason] = &[
    normal(event::APPLY_POLICY_SUCCEED, &[Template], "A policy claimed it.", Written("the claim")),
    warning(event::APPLY_POLICY_FAILED, &[Policy], "`Matched` turned False.", Condition("Matched")),
    warning(event::APPLY_POLICY_FAILED, &[Template], "The hub refuses the claim of its policy; the message has the server's words.", Refusal),
    normal(event::PREEMPT_POLICY_SUCCEED, &[Template], "A policy with `preemption: Always` took it over from another one.", Written("the claim")),
    ours(warning(event::PARTS_WITHOUT_EFFECT, &[Policy], "`Effective` turned False.", Condition("Effective"))),
    ours(warning(event::PARTS_WITHOUT_EFFECT, &[OverridePolicy], "It changes no copy (any more): it has no overriders, its rules are for no cluster of the hub, or nothing that it selects is propagated to one of them. Their kinds have no status, as in Karmada: `entourage get overrides` says it at any time.", Refusal)),
    warning(event::GET_REPLICAS_FAILED, &[Template], "Its replicas or components cannot be interpreted (any more).", Condition("Interpreted")),
    normal(event::GET_REPLICAS_SUCCEED, &[Template], "They can be again.", Observed),
    warning(event::GET_DEPENDENCIES_FAILED, &[Template], "Its dependencies cannot be interpreted (any more).", Condition("Interpreted")),
    normal(event::GET_DEPENDENCIES_SUCCEED, &[Template], "Its dependencies are followed from now on, or can be interpreted again.", Condition("DependenciesReady")),
    ours(warning(event::NO_ANSWER, &[Template], "`Interpreted` turned False: the message names the customization, the line and the cause.", Condition("Interpreted"))),
    warning(event::SCHEDULE_BINDING_FAILED, &[Template, Binding], "`Scheduled` turned False, or is False for another reason.", Condition("Scheduled")),
    normal(event::SCHEDULE_BINDING_SUCCEED, &[Template, Binding], "`Scheduled` turned True: the message has the clusters and replicas. With `--events=all` on the ResourceBinding, too.", Condition("Scheduled")),
    normal(event::DESCHEDULE_BINDING_SUCCEED, &[Template, Binding], "The [descheduler](../concepts.md#descheduler) moved replicas whose pods no node of their cluster took: the message has the cluster and the number.", Written("`spec.clusters`")),
    normal(event::EVICT_WORKLOAD_SUCCEED, &[Template, Binding], "Its [eviction](../concepts.md#failover) from a cluster began: the message has the cluster and the cause.", Written("the eviction task")),
    warning(event::EVICT_WORKLOAD_FAILED, &[Template], "`EvictionBlocked` turned True.", Condition("EvictionBlocked")),
    warning(event::APPLY_OVERRIDE_POLICY_FAILED, &[Template], "A rule of an override policy cannot be applied on a cluster, or for another reason than before.", Written("`aggregatedStatus`")),
    normal(event::APPLY_OVERRIDE_POLICY_SUCCEED, &[Template], "The copy on a cluster was written with other rules than before.", Written("`aggregatedStatus`")),
    warning(event::SYNC_FAILED, &[Binding], "`FullyApplied` turned False.", Condition("FullyApplied")),
    warning(event::SYNC_FAILED, &[Cluster], "The member refuses a namespace, or a ClusterOverridePolicy for it cannot be applied: the message says which, why, and what to do.", Refusal),
    normal(event::SYNC_SUCCEED, &[Work], "`Applied` turned True.", Condition("Applied")),
    warning(event::SYNC_FAILED, &[Work], "`Applied` turned False: the message says why.", Condition("Applied")),
    normal(event::WORK_DISPATCHING, &[Work], "`Dispatching` turned False, because of `suspendDispatching`, or True again.", Condition("Dispatching")),
    normal(event::REFLECT_STATUS_SUCCEED, &[Work], "The status of its object is reported for the first time, or again.", Written("`manifestStatuses`")),
    warning(event::REFLECT_STATUS_FAILED, &[Work], "In Pull mode: the status of its object cannot be interpreted (any more); the message has the rule and the cause.", Refusal),
    normal(event::INTERPRET_HEALTH_SUCCEED, &[Work], "The health of its object is reported for the first time, or another one.", Written("`manifestStatuses`")),
    warning(event::INTERPRET_HEALTH_FAILED, &[Work], "In Pull mode: the health of its object cannot be interpreted (any more); the message has the rule and the cause.", Refusal),
    normal(event::SYNC_WORK_SUCCEED, &[Template, Binding], "`FullyApplied` turned True: the message counts the clusters. Not on a dependency without a policy of its own. With `--events=all` on the ResourceBinding, too.", Condition("FullyApplied")),
    warning(event::SYNC_WORK_FAILED, &[Template, Policy, OverridePolicy, Cluster, Distribution, Rebalancer], "The hub refuses a write of the controllers for it (validation, quota, rights); the message has the server's words.", Refusal),
    normal(event::WORK_DISPATCHING, &[Binding], "Delivery begins to be held back by `suspension`; the condition says at any time on which clusters.", Condition("Dispatching")),
    warning(event::CLEANUP_WORK_FAILED, &[Binding], "A member refuses the removal of a copy that is no longer required there, or for another reason than before.", Written("`aggregatedStatus`")),
    ours(warning(event::SECRET_NOT_ALLOWED, &[Template], "The allow-list of its namespace, or its own (`entourage.dev/secrets-to`), begins to keep the Secret away from a cluster, or cannot be read: the message names the cluster, the annotation and what to do.", Written("`aggregatedStatus`"))),
    warning(event::DEPENDENCY_POLICY_CONFLICT, &[Binding], "The policies of its referrers begin to contradict each other.", Condition("DependencyPolicyConflict")),
    warning(event::SYNC_DEPENDENCIES_FAILED, &[Template], "`DependenciesReady` turned False, or is False for another reason.", Condition("DependenciesReady")),
    normal(event::SYNC_DEPENDENCIES_SUCCEED, &[Binding], "`DependenciesReady` turned True.", Condition("DependenciesReady")),
    warning(event::REFLECT_STATUS_FAILED, &[Binding], "The status of its copies cannot be interpreted (any more).", Condition("Interpreted")),
    normal(event::REFLECT_STATUS_SUCCEED, &[Binding], "It can be again.", Observed),
    warning(event::INTERPRET_HEALTH_FAILED, &[Binding], "The health of its copies cannot be interpreted (any more).", Condition("Interpreted")),
    normal(event::INTERPRET_HEALTH_SUCCEED, &[Binding], "It can be again.", Observed),
    normal(event::AGGREGATE_STATUS_SUCCEED, &[Template], "The first status was merged from its members (kinds with a native or shipped interpreter), or it can be merged again.", Written("the status")),
    warning(event::AGGREGATE_STATUS_FAILED, &[Template], "Its status cannot be merged by its interpreter (any more), or the hub refuses the write; the message has the cause.", Condition("Interpreted")),
    ours(warning(event::FOLLOW_AUTOSCALERS_FAILED, &[Template], "The label or the replicas that follow from [autoscalers on members](../guides/propagate.md#autoscalers) stay as they are: another writer of the hub, or a webhook, keeps undoing them, the hub refuses the write, a cluster that does not respond may still have the autoscaler, a cluster has no replica, an eviction is to be confirmed or left replicas behind, or the members keep the autoscaler when its propagation ends. The message says which, and what to do.", Refusal)),
    warning(event::SYNC_DERIVED_SERVICE_FAILED, &[Template], "A [ServiceImport](../guides/services.md) gets no Service on the hub: its name is too long, it has no ports, another Service has the name, or the hub refuses the write. The message says which.", Refusal),
    ours(warning(event::COLLECT_ENDPOINTS_FAILED, &[Template], "On a [ServiceExport](../guides/services.md): the hub refuses an EndpointSlice for one of a member; the message has the server's words. Grant the rights of `config/rbac-services`.", Refusal)),
    ours(normal(event::VOLUME_RETAINED, &[Template, Binding], "A [claim that holds data](../concepts.md#claims-hold-data) is kept on the member that the message names: on the workload, and on the claim or its binding. Delete it there if its data is not needed any more.", Written("the preservation"))),
    ours(warning(event::DELETION_BLOCKED, &[Template], "A PersistentVolumeClaim or PersistentVolume is being deleted on the hub for 30 s, and nothing there removes the finalizer that protects it. The message has the flag that helps.", Refusal)),
    ours(normal(event::TEMPLATE_ORPHANED, &[Binding], "`Orphaned` turned True: the template was deleted with `--cascade=orphan`, and its copies are kept.", Condition("Orphaned"))),
    normal(event::CREATE_EXECUTION_SPACE_SUCCEED, &[Cluster], "Its [execution namespace](metadata.md#execution-namespaces) was created.", Written("the namespace")),
    warning(event::CREATE_EXECUTION_SPACE_FAILED, &[Cluster], "The hub refuses that; the message has the server's words.", Refusal),
    normal(event::REMOVE_EXECUTION_SPACE_SUCCEED, &[Cluster], "It leaves, and its execution namespace was deleted.", Written("the namespace")),
    warning(event::REMOVE_EXECUTION_SPACE_FAILED, &[Cluster], "It leaves, and its execution namespace still holds a Work, or the hub refuses the deletion: delete the Works, or grant what the message says.", Refusal),
    ours(warning(event::CLUSTER_NOT_READY, &[Cluster], "`Ready` turned False, or Unknown with `HubCutOff`.", Condition("Ready"))),
    normal(event::TAINT_CLUSTER_SUCCEED, &[Cluster], "[Taints](members.md#taints-of-a-cluster) were put on it or taken off it: which, and whether because of `Ready` or of which ClusterTaintPolicy.", Written("the taints")),
    ours(warning(event::NAMESPACE_KEPT, &[Cluster], "A namespace that was deleted on the hub [stays there](../concepts.md#namespaces): the message says what is in it.", Written("the release"))),
    ours(warning(event::REMOVALS_PAUSED, &[Cluster], "Deletions of its copies are paused: see [the removal brake](../concepts.md#the-removal-brake).", Condition("RemovalsPaused"))),
    ours(normal(event::DISTRIBUTED, &[Distribution], "Every namespace that it means has its copy: for the first time, again, or after an edit. Nothing to do.", Written("the conditions"))),
    ours(warning(event::DISTRIBUTION_INVALID, &[Distribution], "It cannot be distributed as it is written, or what it names does not exist or may not be distributed: do what the message says.", Written("the conditions"))),
    ours(warning(event::DISTRIBUTION_CONFLICT, &[Distribution], "`ConflictOccurred` turned True: the message names the first namespace and whose object is there. Delete it, exclude the namespace, or say `writePolicy: overwrite`.", Condition("ConflictOccurred"))),
    ours(warning(event::DISTRIBUTION_FAILED, &[Distribution], "One of the other conditions turned True: the message has the namespace and the server's words. Grant the right, raise the quota, create the namespace.", Written("the conditions"))),
    normal(event::SYNC_QUOTA_SUCCEED, &[Quota], "Every cluster of `staticAssignments` has its ResourceQuota: for the first time, again, or after an edit.", Observed),
    warning(event::SYNC_QUOTA_FAILED, &[Quota], "A cluster of `staticAssignments` does not get its ResourceQuota: the message has the cluster and the cause. One of that name that exists there and is not managed by this hub is never taken over: delete or rename it. Rights: `entourage join CLUSTER --allow resourcequotas`.", Refusal),
    normal(event::COLLECT_QUOTA_STATUS_SUCCEED, &[Quota], "`aggregatedStatus` has the limits and use of every cluster: for the first time, or again.", Written("`aggregatedStatus`")),
    warning(event::COLLECT_QUOTA_STATUS_FAILED, &[Quota], "The hub refuses the finalizer or the status of a quota with `staticAssignments`; the message has the server's words.", Refusal),
    normal(event::COLLECT_QUOTA_OVERALL_STATUS_SUCCEED, &[Quota], "`overall` and `overallUsed` are in the status for the first time.", Written("`status.overall`")),
    warning(event::COLLECT_QUOTA_OVERALL_STATUS_FAILED, &[Quota], "The hub refuses the status of a quota without `staticAssignments`; the message has the server's words.", Refusal),
    ours(warning(event::DISTRIBUTION_HELD, &[Distribution], "Its targets mean no namespace any more, and its copies are kept: correct the targets, or confirm by `entourage.dev/allow-empty-targets: \"true\"`.", Written("the conditions"))),
];

const fn row(reason: &'static str, on: &'static [On], when: &'static str, once: Once) -> EventReason {
    EventReason {
        reason,
        warning: false,
        on,
        when,
        once,
        ours: false,
    }
}

const fn normal(reason: &'static str, on: &'static [On], when: &'static str, once: Once) -> EventReason {
    row(reason, on, when, once)
}

const fn warning(reason: &'static str, on: &'static [On], when: &'static str, once: Once) -> EventReason {
    EventReason {
        warning: true,
        ..row(reason, on, when, once)
    }
}

const fn ours(row: EventReason) -> EventReason {
    EventReason { ours: true, ..row }
}

/// True if the table has this reason, with this type, on objects of this kind. A ResourceDistribution may be a template. Cost:
/// O(rows).
#[must_use]
pub fn is_listed(reason: &str, warning: bool, kind: &str) -> bool {
    let on = On::of(kind);
    let mut rows = ALL.iter();
    let is_on =
        |row: &EventReason| row.on.contains(&on) || (on == Distribution && row.on.contains(&Template));
    rows.any(|row| row.reason == reason && row.warning == warning && is_on(row))
}

/// The table as Markdown, for the page of events.
#[must_use]
pub fn markdown() -> String {
    let mut text = String::from("| Reason | Type, on | When | Once by |\n|---|---|---|---|\n");
    let mut before = "";
    for row in ALL {
        let name = match (row.reason == before, row.ours) {
            (true, _) => String::new(),
            (false, true) => format!("`{}` (*ours*) ", row.reason),
            (false, false) => format!("`{}` ", row.reason),
        };
        before = row.reason;
        let type_ = if row.warning { "Warning" } else { "Normal" };
        let on: Vec<&str> = row.on.iter().map(|on| on.name()).collect();
        text += &format!(
            "| {name}| {type_}, {} | {} | {} |\n",
            on.join(", "),
            row.when,
            row.once.text()
        );
    }
    text
}
