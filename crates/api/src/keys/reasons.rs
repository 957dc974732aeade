//! The table of condition reasons.

table! {
    /// Reasons of conditions; each says which condition types it belongs to.
    reason {
        /// Scheduled is True.
        SUCCESS = "Success";
        /// Scheduled is False: the scheduler failed.
        SCHEDULER_ERROR = "SchedulerError";
        /// Scheduled is False: no cluster passes the filters.
        NO_CLUSTER_FIT = "NoClusterFit";
        /// Scheduled is False: the clusters that fit cannot take all replicas.
        UNSCHEDULABLE = "Unschedulable";
        /// Scheduled is False: a quota of the federation is exhausted.
        QUOTA_EXCEEDED = "QuotaExceeded";
        /// FullyApplied is True.
        FULLY_APPLIED_SUCCESS = "FullyAppliedSuccess";
        /// Ours. FullyApplied is False: copies are being written to members.
        DELIVERING = "Delivering";
        /// FullyApplied is False.
        FULLY_APPLIED_FAILED = "FullyAppliedFailed";
        /// Ours. Healthy is True.
        ALL_HEALTHY = "AllHealthy";
        /// Ours. Healthy is False: some copy is not healthy.
        UNHEALTHY = "Unhealthy";
        /// Ours. DependenciesReady is True.
        DEPENDENCIES_DELIVERED = "DependenciesDelivered";
        /// Ours. DependenciesReady is False: an object that is referred to does not exist on the hub.
        DEPENDENCY_MISSING = "DependencyMissing";
        /// Ours. DependenciesReady is False: a dependency is not yet present on some target cluster.
        NOT_DELIVERED = "NotDelivered";
        /// Ours. Effective is False.
        PARTS_WITHOUT_EFFECT = "PartsWithoutEffect";
        /// Ours. Matched is True.
        TEMPLATES_MATCHED = "TemplatesMatched";
        /// Ours. Matched is False: no template matches, or other policies have claimed those that match.
        NO_TEMPLATE = "NoTemplate";
        /// Ours. Matched is False: a selector is invalid.
        INVALID_SELECTOR = "InvalidSelector";
        /// Ours. Matched is False: the policies of the namespace name more kinds than are watched.
        TOO_MANY_KINDS = "TooManyKinds";
        /// Ours. Matched is False: the hub does not allow the controllers to claim a template that the policy selects.
        CLAIM_REFUSED = "ClaimRefused";
        /// Ours. Matched is False: an override policy that the policy depends on does not exist.
        DEPENDENT_OVERRIDE_MISSING = "DependentOverrideMissing";
        /// Applied is True.
        APPLIED_SUCCESSFUL = "AppliedSuccessful";
        /// Applied is False.
        APPLIED_FAILED = "AppliedFailed";
        /// Ours. Interpreted is False.
        NO_ANSWER = "NoAnswer";
        /// Ours. Orphaned is True.
        TEMPLATE_ORPHANED = "TemplateOrphaned";
        /// Ours. DependencyPolicyConflict is True.
        REFERRERS_DISAGREE = "ReferrersDisagree";
        /// Dispatching is True.
        DISPATCHING = "Dispatching";
        /// Dispatching is False.
        SUSPEND_DISPATCHING = "SuspendDispatching";
        /// Ready of a Cluster is True.
        CLUSTER_READY = "ClusterReady";
        /// Ready of a Cluster is False: it responds and reports that it is not healthy.
        CLUSTER_NOT_READY = "ClusterNotReady";
        /// Ready of a Cluster is False: it cannot be reached.
        CLUSTER_NOT_REACHABLE = "ClusterNotReachable";
        /// Ours. Ready of a Cluster is False: it responds too slowly to be used.
        CLUSTER_API_SLOW = "ClusterAPISlow";
        /// Ours. Ready of a Cluster is False: it refuses the token of its Secret, or the requests of our account.
        CREDENTIALS_REFUSED = "CredentialsRefused";
        /// Ours. Ready of a Cluster is Unknown: more than half of the members stopped responding at the same time, so the fault
        /// is most likely on the hub's side.
        HUB_CUT_OFF = "HubCutOff";
        /// Ready of a Cluster is False: the responding physical cluster is not the one that `spec.id` names.
        CLUSTER_ID_CHANGED = "ClusterIDChanged";
        /// Ready of a Cluster is False: an older Cluster object represents the same physical cluster.
        CLUSTER_ID_CONFLICT = "ClusterIDConflict";
        /// Ready of a Cluster is False: it responds, and our account may not read its id.
        CLUSTER_ID_UNKNOWN = "ClusterIDUnknown";
        /// Ready of a Cluster is Unknown: it is in Pull mode, and no agent has ever reported.
        CLUSTER_STATUS_NEVER_UPDATED = "ClusterStatusNeverUpdated";
        /// Ready of a Cluster is Unknown: no status was reported in time.
        CLUSTER_STATUS_UNKNOWN = "ClusterStatusUnknown";
        /// Ours. Ready of a Cluster is False: `spec.secretRef` names a Secret that is not for this Cluster.
        CREDENTIALS_NOT_FOR_CLUSTER = "CredentialsNotForCluster";
        /// Ours. Ready of a Cluster is False: its endpoint, proxy or verification of certificates is not the one that its
        /// Secret is bound to.
        CREDENTIALS_NOT_FOR_ADDRESS = "CredentialsNotForAddress";
        /// Ours. Ready of a Cluster is False: the address at which its Secret is first used cannot be recorded on the Secret.
        CREDENTIALS_NOT_RECORDED = "CredentialsNotRecorded";
        /// Ours. Ready of a Cluster is False: its Secret has no token.
        CREDENTIALS_MISSING = "CredentialsMissing";
        /// Ours. Ready of a Cluster is False: it names no Secret, or one that does not exist.
        SECRET_MISSING = "SecretMissing";
        /// Ours. Ready of a Cluster is False: its Secret cannot be read.
        SECRET_NOT_READ = "SecretNotRead";
        /// Ours. Ready of a Cluster is False: its Secret is not in the namespace of the Secrets of Clusters.
        SECRET_NAMESPACE_FORBIDDEN = "SecretNamespaceForbidden";
        /// Ours. Ready of a Cluster is False: its endpoint, its proxy or the headers for that cannot be used.
        INVALID_ENDPOINT = "InvalidEndpoint";
        /// Ours. Ready of a Cluster is False: its Secret has no valid certificate under `caBundle`.
        INVALID_CA_BUNDLE = "InvalidCABundle";
        /// Ours. Ready of a Cluster is False: a client cannot be built from its endpoint and its Secret.
        CLIENT_NOT_BUILT = "ClientNotBuilt";
        /// CompleteAPIEnablements is True.
        FULL_API_ENABLEMENTS = "FullAPIEnablements";
        /// CompleteAPIEnablements is False: some groups could not be discovered.
        PARTIAL_API_ENABLEMENTS = "PartialAPIEnablements";
        /// CompleteAPIEnablements is False: no group could be discovered.
        EMPTY_API_ENABLEMENTS = "EmptyAPIEnablements";
        /// Ours. Released of a Cluster is False: the member does not allow our account to read kinds that may have copies
        /// there. AgentWatched of a Cluster is False: the hub does not allow our account to read Leases. CapacityWatched of a Cluster is
        /// False: the member does not allow our account to watch nodes and pods. EndpointsCollected of a Cluster is False: the
        /// member does not allow our account to watch EndpointSlices.
        RIGHTS_MISSING = "RightsMissing";
        /// Ours. EndpointsCollected of a Cluster is False: it exports more endpoints than are collected of one.
        TOO_MANY_ENDPOINTS = "TooManyEndpoints";
        /// Ours. EndpointsCollected of a Cluster is False: it exports more Services than are watched on one.
        TOO_MANY_EXPORTS = "TooManyExports";
        /// Ours. EndpointsCollected of a Cluster is False: it is in Pull mode, and nothing reports its endpoints.
        PULL_MODE = "PullMode";
        /// Ours. Released of a Cluster is False: the member does not respond, so its copies are not accounted for.
        COPIES_UNKNOWN = "CopiesUnknown";
        /// Ours. CopiesWatched of a Cluster is False: the member responds, and lists of some kinds fail.
        LIST_FAILS = "ListFails";
        /// Ours. RemovalsPaused is True: more copies were deleted within a minute than no edit explains.
        UNEXPLAINED_REMOVALS = "UnexplainedRemovals";
        /// Ours. RemovalsPaused is True: none of the templates of the member's copies exists on the hub any more.
        HUB_LOOKS_EMPTY = "HubLooksEmpty";
        /// Ours. RemovalsPaused is True: the hub was restored to an earlier state.
        HUB_ROLLED_BACK = "HubRolledBack";
        /// Ours. RemovalsPaused is True: more copies were deleted within a minute than `--removal-budget` allows.
        REMOVAL_BUDGET_EXCEEDED = "RemovalBudgetExceeded";
        /// Ours. RemovalsPaused is True: a deletion waits for a list of the hub that fails.
        HUB_NOT_SYNCED = "HubNotSynced";
        /// Ours. RemovalsPaused is False: a user resumed the deletions.
        REMOVALS_RESUMED = "RemovalsResumed";
        /// Of `Evicting`: the binding has eviction tasks.
        GRACEFUL_EVICTION = "GracefulEviction";
        /// Of `EvictionBlocked`: no other cluster fits.
        NO_REPLACEMENT = "NoReplacement";
        /// Reason of an eviction task: the binding does not tolerate a taint of the cluster.
        TAINT_UNTOLERATED = "TaintUntolerated";
        /// Reason of an eviction task: the workload stayed unhealthy for too long.
        APPLICATION_FAILURE = "ApplicationFailure";
        /// Reason of an eviction task: the cluster that was replaced got its workload back.
        CLUSTER_RECOVERED = "ClusterRecovered";
    }
}
