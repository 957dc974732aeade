//! Every label, annotation, finalizer, event reason, condition type and condition reason, once.
//!
//! Each table is a sub-module of constants with an `ALL` slice of `(constant, string)`, so that docs, lint
//! rules and tests can walk it. Source: Karmada reference 0.2 to 0.5; ours are marked "Ours".

/// Declares one table: a sub-module with a documented constant per entry, and `ALL`.
macro_rules! table {
    ($(#[$doc:meta])* $name:ident { $($(#[$entry:meta])* $constant:ident = $value:literal;)+ }) => {
        $(#[$doc])*
        pub mod $name {
            $($(#[$entry])* pub const $constant: &str = $value;)+

            /// All entries of this table in declaration order: the constant's name and its string.
            pub const ALL: &[(&str, &str)] = &[$((stringify!($constant), $constant)),+];
        }
    };
}

table! {
    /// Label keys, and the label values with a meaning. Source: Karmada reference 0.2.
    label {
        /// On a PropagationPolicy, the templates it claims and their bindings: the policy's permanent id.
        PROPAGATION_POLICY_ID = "propagationpolicy.karmada.io/permanent-id";
        /// On a ClusterPropagationPolicy, the templates it claims and their bindings: the policy's permanent id.
        CLUSTER_PROPAGATION_POLICY_ID = "clusterpropagationpolicy.karmada.io/permanent-id";
        /// On a ResourceBinding, its Works and its copies on members: the binding's permanent id.
        RESOURCE_BINDING_ID = "resourcebinding.karmada.io/permanent-id";
        /// On a ClusterResourceBinding, its Works and its copies on members: the binding's permanent id.
        CLUSTER_RESOURCE_BINDING_ID = "clusterresourcebinding.karmada.io/permanent-id";
        /// On a Work and the copy made from it: the Work's permanent id. Push copies do not carry it.
        WORK_ID = "work.karmada.io/permanent-id";
        /// On a copy on a member: [`super::TRUE`]. Proves that some control plane manages it, not which one.
        MANAGED = "karmada.io/managed";
        /// On objects of the hub that belong to the system: [`super::TRUE`].
        SYSTEM = "karmada.io/system";
        /// Prefix of the label on an attached binding, one per referrer: the rest of the key is made by
        /// [`crate::names::depended_by_key`], the value is the referrer's permanent id.
        DEPENDED_BY_PREFIX = "resourcebinding.karmada.io/depended-by-";
        /// On a binding made by another component: that component's name. Lets the scheduler take it without a policy.
        BINDING_MANAGED_BY = "binding.karmada.io/managed-by";
        /// On a template that another component manages: that component's name. The detector ignores the template.
        CLAIMED_BY = "resourcetemplate.karmada.io/claimed-by";
        /// On any object of the hub: with [`super::DELETION_PROTECTED_ALWAYS`] admission refuses its deletion.
        DELETION_PROTECTED = "resourcetemplate.karmada.io/deletion-protected";
        /// On a workload template: [`super::TRUE`] keeps the replica count found on the member.
        RETAIN_REPLICAS = "resourcetemplate.karmada.io/retain-replicas";
        /// On a Namespace of the hub: [`super::TRUE`] keeps it from being synchronised to members.
        SKIP_AUTO_PROPAGATION = "namespace.karmada.io/skip-auto-propagation";
        /// Ours. On a copy on a member: the id of the hub that made it, which is the uid of the hub's
        /// `kube-system` namespace. With the binding's namespace and name it proves ownership (architecture 2.3).
        HUB = "entourage.dev/hub";
        /// Ours. On a copy that a ResourceDistribution made on a member: the id of the hub. Copies on the hub have an owner
        /// instead.
        DISTRIBUTED_BY = "entourage.dev/distributed-by";
        /// Ours. On a ResourceQuota that a FederatedResourceQuota made on a member: the id of the hub.
        FEDERATED_QUOTA = "entourage.dev/federated-quota";
        /// On an EndpointSlice: the Service that it belongs to. A label of Kubernetes.
        SERVICE_NAME = "kubernetes.io/service-name";
        /// On an EndpointSlice: the controller that writes it. A label of Kubernetes.
        ENDPOINTS_MANAGED_BY = "endpointslice.kubernetes.io/managed-by";
        /// Ours. On a Work of a cluster in Pull mode: the kind of its object and its API group, as `Deployment.apps`; a hash of both
        /// if that is too long.
        WORK_KIND = "entourage.dev/work-kind";
    }
}

/// The value of a boolean label that is set.
pub const TRUE: &str = "true";

/// The value of [`label::DELETION_PROTECTED`] that protects an object from deletion.
pub const DELETION_PROTECTED_ALWAYS: &str = "Always";

/// The value of [`label::ENDPOINTS_MANAGED_BY`] on EndpointSlices of the hub that stand for those of members, and on their copies.
/// Source: Karmada, which collects no slice with it.
pub const ENDPOINTS_DISPATCHED: &str = "endpointslice-dispatch-controller.karmada.io";

table! {
    /// Annotation keys. Source: Karmada reference 0.3.
    annotation {
        /// On a template and its binding: namespace of the PropagationPolicy that claims it.
        PROPAGATION_POLICY_NAMESPACE = "propagationpolicy.karmada.io/namespace";
        /// On a template and its binding: name of the PropagationPolicy that claims it.
        PROPAGATION_POLICY_NAME = "propagationpolicy.karmada.io/name";
        /// On a template and its binding: name of the ClusterPropagationPolicy that claims it.
        CLUSTER_PROPAGATION_POLICY_NAME = "clusterpropagationpolicy.karmada.io/name";
        /// On a binding: JSON of the placement it was last scheduled with.
        APPLIED_PLACEMENT = "policy.karmada.io/applied-placement";
        /// On a Work and its copy: JSON of the OverridePolicy rules that were applied.
        APPLIED_OVERRIDES = "policy.karmada.io/applied-overrides";
        /// On a Work and its copy: JSON of the ClusterOverridePolicy rules that were applied.
        APPLIED_CLUSTER_OVERRIDES = "policy.karmada.io/applied-cluster-overrides";
        /// On an independent binding with `propagateDeps`: JSON array of the objects it depends on.
        DEPENDENCIES = "resourcebinding.karmada.io/dependencies";
        /// On a Work and its copy: namespace of the ResourceBinding it was made for.
        RESOURCE_BINDING_NAMESPACE = "resourcebinding.karmada.io/namespace";
        /// On a Work and its copy: name of the ResourceBinding it was made for.
        RESOURCE_BINDING_NAME = "resourcebinding.karmada.io/name";
        /// On a Work and its copy: name of the ClusterResourceBinding it was made for.
        CLUSTER_RESOURCE_BINDING_NAME = "clusterresourcebinding.karmada.io/name";
        /// On a copy: namespace of its Work, the member's execution namespace. Kept on push copies too.
        WORK_NAMESPACE = "work.karmada.io/namespace";
        /// On a copy: name of its Work. Kept on push copies too, where no Work exists.
        WORK_NAME = "work.karmada.io/name";
        /// Ours. On a Work that mirrors a copy: the version that its manifest was rendered from.
        WORK_SOURCE = "entourage.dev/work-source";
        /// Ours. On a Work that mirrors a copy: it is suspended because its binding is, not by a user.
        WORK_SUSPENDED_BY_BINDING = "entourage.dev/suspended-by-binding";
        /// Ours. On a Work of a cluster in Pull mode: this control plane set its `preserveResourcesOnDeletion`, not a user; it is
        /// deleted next.
        WORK_RELEASED = "entourage.dev/released";
        /// On a template (a request), a Work and a copy: [`super::CONFLICT_OVERWRITE`] or [`super::CONFLICT_ABORT`].
        CONFLICT_RESOLUTION = "work.karmada.io/conflict-resolution";
        /// On a copy: uid of its template.
        TEMPLATE_UID = "resourcetemplate.karmada.io/uid";
        /// On a copy of a kind with a status: generation of the template it was made from.
        TEMPLATE_GENERATION = "resourcetemplate.karmada.io/generation";
        /// On a copy: comma separated, sorted keys of the labels that we set.
        MANAGED_LABELS = "resourcetemplate.karmada.io/managed-labels";
        /// On a copy: comma separated, sorted keys of the annotations that we set.
        MANAGED_ANNOTATIONS = "resourcetemplate.karmada.io/managed-annotations";
        /// Ours. Prefix of an annotation on a member's namespace, one for each hub: the rest of the key is the hub's id, the
        /// value lists, as JSON, the `labels` and `annotations` that this hub set.
        MANAGED_BY_PREFIX = "managed-by.entourage.dev/";
        /// Ours. On a member's namespace that a hub created there: the hub's id, a slash, the name of the Cluster, and, once
        /// the uid of the namespace is known, a slash and that uid.
        CREATED_BY = "entourage.dev/created-by";
        /// kubectl's own record on a template. It is never propagated: for a Secret it is the whole payload.
        LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";
        /// Ours. On a template that existed before the lazy policy that claims it: the version of the content that the policy
        /// found. The policy waits until the content changes. It is not propagated.
        WAITS = "entourage.dev/activation-waits";
        /// Ours. On a binding whose policy is lazy: the version of the template's content that the policy was last applied to;
        /// after a space, the [`WAITS`] that no longer applies, because the template has changed since.
        ACTIVATED = "entourage.dev/activated";
        /// Ours. On the binding of a kind that has a generation: the version of the template's content that its
        /// `spec.resource.resourceVersion` stands for, so that a change of status alone does not change it.
        CONTENT = "entourage.dev/content";
        /// Ours. On a binding with too many referrers to list them all: the number of referrers that `requiredBy` and the
        /// depended-by labels omit. They count as referrers all the same.
        REQUIRED_BY_LEFT_OUT = "entourage.dev/required-by-left-out";
        /// Ours. On a binding that was created again or rescheduled: the clusters, comma separated, that it is not scheduled to
        /// and that may have copies, until its status records the copies or they are deleted.
        FORMER_CLUSTERS = "entourage.dev/former-clusters";
        /// Ours. On a binding: the clusters, comma separated, where the application failed in the current version of its
        /// template. They are scheduled again only if no other cluster fits.
        FAILED_CLUSTERS = "entourage.dev/failed-clusters";
        /// Ours. On a binding that no cluster fits: the clusters, comma separated, that it left because its placement no longer
        /// selects them, until it is scheduled again.
        UNSELECTED_CLUSTERS = "entourage.dev/unselected-clusters";
        /// Ours. On a binding: the labels, as JSON by cluster, that `statePreservation` adds to the copies that replace evicted
        /// ones, as long as the workload is scheduled there.
        PRESERVED_LABELS = "entourage.dev/preserved-labels";
        /// Ours. On a policy, and on the bindings that it makes: a workload that was evicted from a cluster by a taint returns
        /// to it once the cluster has been ready for this duration, such as `10m`.
        FAIL_BACK = "entourage.dev/fail-back";
        /// Ours. On a binding whose policy has [`FAIL_BACK`]: the clusters that the workload was evicted from by taints, as
        /// JSON.
        HOME_CLUSTERS = "entourage.dev/home-clusters";
        /// Ours. On a policy, and on the bindings that it makes: with [`super::TRUE`] an evicted workload waits on its new
        /// cluster until the data of its claims is restored, as [`DATA_RESTORED_AT`] reports.
        WAIT_FOR_DATA = "entourage.dev/wait-for-data";
        /// Ours. On a binding whose policy has [`WAIT_FOR_DATA`]: the time since which each cluster waits for the data, as JSON
        /// by cluster.
        AWAITS_DATA = "entourage.dev/awaits-data";
        /// Ours. On a binding with divided replicas that has a task with purgeMode `Directly`: the replicas that its clusters
        /// had before, as JSON. They keep them until the copy is deleted.
        SHARES_BEFORE_PURGE = "entourage.dev/shares-before-purge";
        /// Ours. On a binding whose shares follow its members: the shares that the scheduler raised, by cluster, as JSON, as long as
        /// they are the shares; each with the generation of the binding that it was raised from.
        RAISED_SHARES = "entourage.dev/raised-shares";
        /// Set by a user or a backup tool. On a claim on a member: the time at which its data was restored there, RFC 3339.
        DATA_RESTORED_AT = "entourage.dev/data-restored-at";
        /// Ours. On a namespace: the namespaces, separated by commas, or `*` for all, whose objects may have dependencies in
        /// this namespace: by a field that shipped or declared rules read, or by the result of a customization.
        REFERENCES_FROM = "entourage.dev/references-from";
        /// Ours. On a namespace or a Secret of the hub, set by its owner: the clusters, separated by commas, that the Secrets of the
        /// namespace, or the Secret, may be propagated to, each by its name or by labels of its Cluster; empty: none.
        SECRETS_TO = "entourage.dev/secrets-to";
        /// Ours. On a Cluster that is being removed: the treatment of its copies, [`super::ON_UNJOIN_RELEASE`] (the default) or
        /// [`super::ON_UNJOIN_REMOVE`].
        ON_UNJOIN = "entourage.dev/on-unjoin";
        /// Ours. On a Cluster: objects there that carry the ownership metadata of this hub and are not managed by it, as
        /// JSON: their `count`, and the first of them in `objects`.
        COPIED_OBJECTS = "entourage.dev/copied-objects";
        /// On a copy that a ResourceDistribution made: the distribution's name. Source: ResourceDistribution reference 1.
        DISTRIBUTED_FROM = "kruise.io/resourcedistribution.resource.from";
        /// On a copy that a ResourceDistribution made: SHA-256 of the resource, hex. Source: ResourceDistribution reference 3.5.
        DISTRIBUTED_HASH = "kruise.io/resourcedistribution.resource.hashcode";
        /// Ours. On a copy that a ResourceDistribution made on a member: `CLUSTER/NAMESPACE` of the target that it was made
        /// for.
        DISTRIBUTED_IN = "entourage.dev/distributed-in";
        /// Ours. On a copy that a ResourceDistribution made: comma separated, sorted keys of the labels and annotations that it
        /// set, labels with the prefix `l:`, annotations with the prefix `a:`.
        DISTRIBUTED_KEYS = "entourage.dev/distributed-keys";
        /// Ours. On a ResourceQuota that a FederatedResourceQuota made on a member: `CLUSTER/NAMESPACE/NAME` of the assignment
        /// that it was made for.
        FEDERATED_QUOTA_FOR = "entourage.dev/federated-quota-for";
        /// On an EndpointSlice of the hub that stands for one of a member, and on its copies: that member. It is not propagated
        /// there. Source: Karmada.
        PROVISION_CLUSTER = "endpointslice.karmada.io/provision-cluster";
        /// Ours. On such an EndpointSlice: the name of the one on the member.
        COLLECTED_SLICE = "entourage.dev/collected-slice";
        /// Ours. On a Service of the hub that this control plane did not create, set by a user: the ServiceImport that it stands for from
        /// now on.
        DERIVED_FROM = "entourage.dev/derived-from";
        /// Ours. On a ResourceDistribution: [`super::TRUE`] confirms that its copies are deleted although its targets match no
        /// namespace.
        ALLOW_EMPTY_TARGETS = "entourage.dev/allow-empty-targets";
        /// Ours. On a ResourceDistribution: with `false` a copy that an update cannot change is not deleted and created again.
        ALLOW_RECREATION = "entourage.dev/allow-recreation";
        /// Ours. On a ConfigMap or Secret: the ResourceDistributions that may distribute it, by name, comma separated; `*` for
        /// all. `resourceFrom` requires this consent.
        DISTRIBUTION_ALLOWED = "entourage.dev/distribution-allowed";
        /// Ours. On a Namespace: [`super::DENY`] keeps every ResourceDistribution from writing into it.
        DISTRIBUTION = "entourage.dev/distribution";
        /// Ours. On a Cluster: resumes its deletions if they were paused at this time, as the condition
        /// [`super::condition::REMOVALS_PAUSED`] reports it; another pause is not ended.
        RESUME_REMOVALS = "entourage.dev/resume-removals";
        /// Ours. On a template whose label [`super::label::RETAIN_REPLICAS`] was set because HorizontalPodAutoscalers that are
        /// propagated scale it: their names, separated by commas. Without it the label is a user's. It is not propagated.
        SCALED_BY = "entourage.dev/scaled-by";
        /// Ours. On a PersistentVolumeClaim or a policy (a request), and on the bindings that it applies to: with
        /// [`super::VOLUME_RETENTION_DELETE`] claims that were bound on a member are deleted there like any other copy.
        VOLUME_RETENTION = "entourage.dev/volume-retention";
        /// Ours. On a PersistentVolumeClaim on a member that was released because it holds data: the ids of the hub and
        /// the cluster and the binding that it was managed by, so that the same one manages it again when the workload returns.
        RELEASED_FROM = "entourage.dev/released-from";
        /// Ours. On a copy that was taken over from a Karmada that still exists: the id of that Karmada, and the permanent ids of its
        /// Work and its binding, with slashes between them. It is the record by which the copy is given back.
        ADOPTED_FROM = "entourage.dev/adopted-from";
        /// Ours. On the Secret with a member's credentials: the time at which the token expires, RFC 3339. Absent if it does
        /// not.
        TOKEN_EXPIRES = "entourage.dev/token-expires";
        /// Ours. On the Secret with a member's credentials: the name of the Cluster that may use them.
        CREDENTIALS_CLUSTER = "entourage.dev/cluster";
        /// Ours. On the Secret with a member's credentials: the only `spec.apiEndpoint` that they are sent to.
        CREDENTIALS_ENDPOINT = "entourage.dev/api-endpoint";
        /// Ours. On the Secret with a member's credentials: the only `spec.proxyURL` that they are sent through, without user
        /// and password. Absent if there is no proxy.
        CREDENTIALS_PROXY = "entourage.dev/proxy-url";
        /// Ours. On the Secret with a member's credentials: [`super::TRUE`] allows `spec.insecureSkipTLSVerification`.
        CREDENTIALS_INSECURE = "entourage.dev/insecure-skip-tls-verification";
        /// Ours. On the Secret with a member's credentials: whom `entourage join --impersonate` named last. Absent if it never named
        /// anybody.
        IMPERSONATE = "entourage.dev/impersonate";
    }
}

/// Value of [`annotation::VOLUME_RETENTION`]: a claim is deleted although it was bound; its StorageClass decides about the
/// volume.
pub const VOLUME_RETENTION_DELETE: &str = "Delete";

/// Value of [`annotation::DISTRIBUTION`] that forbids distribution into the namespace.
pub const DENY: &str = "deny";

/// Value of [`annotation::ON_UNJOIN`]: the copies are kept on the member; their ownership metadata is removed.
pub const ON_UNJOIN_RELEASE: &str = "Release";

/// Value of [`annotation::ON_UNJOIN`]: the copies are deleted from the member.
pub const ON_UNJOIN_REMOVE: &str = "Remove";

/// Value of [`annotation::CONFLICT_RESOLUTION`]: take over an object that is already on the member.
pub const CONFLICT_OVERWRITE: &str = "overwrite";

/// Value of [`annotation::CONFLICT_RESOLUTION`]: do not change an object that is already on the member.
pub const CONFLICT_ABORT: &str = "abort";

table! {
    /// Finalizers. Source: Karmada reference 0.4.
    finalizer {
        /// On a Cluster.
        CLUSTER = "karmada.io/cluster-controller";
        /// On a Work.
        EXECUTION = "karmada.io/execution-controller";
        /// On a ResourceBinding.
        BINDING = "karmada.io/binding-controller";
        /// On a ClusterResourceBinding.
        CLUSTER_BINDING = "karmada.io/cluster-resource-binding-controller";
        /// On a PropagationPolicy.
        PROPAGATION_POLICY = "karmada.io/propagation-policy-controller";
        /// On a ClusterPropagationPolicy.
        CLUSTER_PROPAGATION_POLICY = "karmada.io/cluster-propagation-policy-controller";
        /// On an independent ResourceBinding with `propagateDeps`.
        DEPENDENCIES = "karmada.io/binding-dependencies-distributor";
        /// Ours. On a ResourceDistribution whose copies are not garbage collected: they are kept, or are on members.
        DISTRIBUTION = "entourage.dev/distribution";
        /// Ours. On a FederatedResourceQuota with static assignments: its ResourceQuotas on members are deleted first.
        QUOTA = "entourage.dev/federated-quota";
    }
}

table! {
    /// Reasons of Kubernetes events. Source: Karmada reference 0.5.
    event {
        /// Normal, on the workload template: its dependencies were interpreted.
        GET_DEPENDENCIES_SUCCEED = "GetDependenciesSucceed";
        /// Warning, on the workload template: its dependencies could not be interpreted.
        GET_DEPENDENCIES_FAILED = "GetDependenciesFailed";
        /// Normal, on the independent binding: its dependencies are scheduled to its clusters.
        SYNC_DEPENDENCIES_SUCCEED = "SyncScheduleResultToDependenciesSucceed";
        /// Warning, on the independent binding: some dependency could not be scheduled to its clusters.
        SYNC_DEPENDENCIES_FAILED = "SyncScheduleResultToDependenciesFailed";
        /// Warning, on an attached binding: its referrers request different conflict or deletion behaviour.
        DEPENDENCY_POLICY_CONFLICT = "DependencyPolicyConflict";
        /// Warning, on the template: the interpreter of its kind has no response for it.
        NO_ANSWER = "InterpretationFailed";
        /// Normal, on the template: a policy was applied to it.
        APPLY_POLICY_SUCCEED = "ApplyPolicySucceed";
        /// Warning, on the template: a policy could not be applied to it.
        APPLY_POLICY_FAILED = "ApplyPolicyFailed";
        /// Normal, on the template: a policy took it over from another one.
        PREEMPT_POLICY_SUCCEED = "PreemptPolicySucceed";
        /// Warning, on the template: a policy could not take it over from another one.
        PREEMPT_POLICY_FAILED = "PreemptPolicyFailed";
        /// Normal, on the template: override policies were applied.
        APPLY_OVERRIDE_POLICY_SUCCEED = "ApplyOverridePolicySucceed";
        /// Warning, on the template: an override policy could not be applied.
        APPLY_OVERRIDE_POLICY_FAILED = "ApplyOverridePolicyFailed";
        /// Normal, on the template: its replicas were read.
        GET_REPLICAS_SUCCEED = "GetReplicasSucceed";
        /// Warning, on the template: its replicas could not be read.
        GET_REPLICAS_FAILED = "GetReplicasFailed";
        /// Normal, on the binding and its template: it was scheduled.
        SCHEDULE_BINDING_SUCCEED = "ScheduleBindingSucceed";
        /// Warning, on the binding and its template: it could not be scheduled.
        SCHEDULE_BINDING_FAILED = "ScheduleBindingFailed";
        /// Normal, on the binding and its template: replicas were moved away from a cluster that cannot run them.
        DESCHEDULE_BINDING_SUCCEED = "DescheduleBindingSucceed";
        /// Warning, on the binding: replicas could not be moved. Not used here: what no other cluster has room for stays.
        DESCHEDULE_BINDING_FAILED = "DescheduleBindingFailed";
        /// Normal, on the binding and its template: it was evicted from a cluster.
        EVICT_WORKLOAD_SUCCEED = "EvictWorkloadFromClusterSucceed";
        /// Warning, on the binding and its template: it could not be evicted from a cluster.
        EVICT_WORKLOAD_FAILED = "EvictWorkloadFromClusterFailed";
        /// Normal, on the binding and its template: the desired copies of its clusters are computed.
        SYNC_WORK_SUCCEED = "SyncWorkSucceed";
        /// Warning, on the binding and its template: the desired copies of its clusters could not be computed.
        SYNC_WORK_FAILED = "SyncWorkFailed";
        /// Normal: a copy was written to a member.
        SYNC_SUCCEED = "SyncSucceed";
        /// Warning: a copy could not be written to a member.
        SYNC_FAILED = "SyncFailed";
        /// Warning: copies that are no longer wanted could not be deleted.
        CLEANUP_WORK_FAILED = "CleanupWorkFailed";
        /// Ours. Warning, on a Secret: the allow-list of its namespace, or its own, keeps it away from clusters.
        SECRET_NOT_ALLOWED = "SecretNotAllowed";
        /// Normal: delivery was suspended or resumed.
        WORK_DISPATCHING = "WorkDispatching";
        /// Normal: the members' status was merged into the template.
        AGGREGATE_STATUS_SUCCEED = "AggregateStatusSucceed";
        /// Warning: the members' status could not be merged into the template.
        AGGREGATE_STATUS_FAILED = "AggregateStatusFailed";
        /// Normal: a copy's status was read.
        REFLECT_STATUS_SUCCEED = "ReflectStatusSucceed";
        /// Warning: a copy's status could not be read.
        REFLECT_STATUS_FAILED = "ReflectStatusFailed";
        /// Normal: a copy's health was interpreted.
        INTERPRET_HEALTH_SUCCEED = "InterpretHealthSucceed";
        /// Warning: a copy's health could not be interpreted.
        INTERPRET_HEALTH_FAILED = "InterpretHealthFailed";
        /// Warning, on a ServiceImport: the Service that stands for it on the hub cannot be written.
        SYNC_DERIVED_SERVICE_FAILED = "SyncDerivedServiceFailed";
        /// Ours. Warning, on a ServiceExport: EndpointSlices of a member cannot be stored on the hub.
        COLLECT_ENDPOINTS_FAILED = "CollectEndpointsFailed";
        /// Ours. Normal, on a ResourceDistribution: every target namespace has its copy.
        DISTRIBUTED = "Distributed";
        /// Ours. Warning, on a ResourceDistribution: its spec is invalid.
        DISTRIBUTION_INVALID = "DistributionInvalid";
        /// Ours. Warning, on a ResourceDistribution: an object of this name already exists in some namespace and is not
        /// managed.
        DISTRIBUTION_CONFLICT = "DistributionConflict";
        /// Ours. Warning, on a ResourceDistribution: some copy cannot be read, written or deleted.
        DISTRIBUTION_FAILED = "DistributionFailed";
        /// Ours. Warning, on a ResourceDistribution: its targets match no namespace any more, and its copies are kept.
        DISTRIBUTION_HELD = "DistributionHeld";
        /// Ours. Warning, on a PersistentVolumeClaim or PersistentVolume of the hub: no controller there removes the finalizer
        /// that protects it.
        DELETION_BLOCKED = "DeletionBlocked";
        /// Ours. Normal, on a workload and on a PersistentVolumeClaim of it: the claim holds data on a member and is kept there.
        VOLUME_RETAINED = "VolumeRetained";
        /// Ours. Normal, on a binding: its template was deleted with `--cascade=orphan`, and its copies are kept.
        TEMPLATE_ORPHANED = "TemplateOrphaned";
        /// Ours. Warning, on a template: the label or the replicas that follow from autoscalers on members are not what they are to be,
        /// and a user can change that.
        FOLLOW_AUTOSCALERS_FAILED = "FollowAutoscalersFailed";
        /// Ours. Warning, on a policy, an override policy or a Cluster: some of its fields have no effect.
        PARTS_WITHOUT_EFFECT = "PartsWithoutEffect";
        /// Normal, on a Cluster: taints were added or removed.
        TAINT_CLUSTER_SUCCEED = "TaintClusterSucceed";
        /// Normal, on a FederatedResourceQuota: every assigned cluster has its ResourceQuota.
        SYNC_QUOTA_SUCCEED = "SyncFederatedResourceQuotaSucceed";
        /// Warning, on a FederatedResourceQuota: an assigned cluster does not have its ResourceQuota.
        SYNC_QUOTA_FAILED = "SyncFederatedResourceQuotaFailed";
        /// Normal, on a FederatedResourceQuota: the status of its clusters was collected.
        COLLECT_QUOTA_STATUS_SUCCEED = "CollectFederatedResourceQuotaStatusSucceed";
        /// Warning, on a FederatedResourceQuota: the status of its clusters cannot be stored.
        COLLECT_QUOTA_STATUS_FAILED = "CollectFederatedResourceQuotaStatusFailed";
        /// Normal, on a FederatedResourceQuota: its overall use was collected.
        COLLECT_QUOTA_OVERALL_STATUS_SUCCEED = "CollectFederatedResourceQuotaOverallStatusSucceed";
        /// Warning, on a FederatedResourceQuota: its overall use cannot be stored.
        COLLECT_QUOTA_OVERALL_STATUS_FAILED = "CollectFederatedResourceQuotaOverallStatusFailed";
        /// Normal, on a Cluster: its execution namespace was created on the hub.
        CREATE_EXECUTION_SPACE_SUCCEED = "CreateExecutionSpaceSucceed";
        /// Warning, on a Cluster: its execution namespace cannot be created on the hub.
        CREATE_EXECUTION_SPACE_FAILED = "CreateExecutionSpaceFailed";
        /// Normal, on a Cluster: its execution namespace was deleted on the hub.
        REMOVE_EXECUTION_SPACE_SUCCEED = "RemoveExecutionSpaceSucceed";
        /// Warning, on a Cluster: its execution namespace cannot be deleted on the hub.
        REMOVE_EXECUTION_SPACE_FAILED = "RemoveExecutionSpaceFailed";
        /// Ours. Warning, on a Cluster: it does not respond, or refuses our credentials.
        CLUSTER_NOT_READY = "ClusterNotReady";
        /// Ours. Warning, on a Cluster: a namespace that was deleted on the hub is kept on the member, because it is not empty.
        NAMESPACE_KEPT = "NamespaceKept";
        /// Ours. Warning, on a Cluster: deletions of its copies are paused until a user resumes them.
        REMOVALS_PAUSED = "RemovalsPaused";
    }
}

table! {
    /// Condition types. Source: Karmada reference 1.2 and 1.5, architecture 2.9.
    condition {
        /// On a binding: it is scheduled to clusters.
        SCHEDULED = "Scheduled";
        /// On a binding: its copies are applied on all target clusters.
        FULLY_APPLIED = "FullyApplied";
        /// Ours. On a binding: the dependencies of the workload are present on its target clusters.
        DEPENDENCIES_READY = "DependenciesReady";
        /// Ours. On a binding: it is being evicted from a cluster, and its copy still exists there.
        EVICTING = "Evicting";
        /// Ours. On a binding: it is to be evicted from a cluster, and no replacement can be scheduled.
        EVICTION_BLOCKED = "EvictionBlocked";
        /// Ours. On a binding: the copies are healthy, if the health of the kind is interpreted.
        HEALTHY = "Healthy";
        /// Ours. On a PropagationPolicy: it propagates at least one template.
        MATCHED = "Matched";
        /// Ours. On a PropagationPolicy or Cluster: False if some of its fields have no effect.
        EFFECTIVE = "Effective";
        /// On a Cluster: its API server responds and reports that it is healthy.
        READY = "Ready";
        /// On a Cluster: the list of APIs in its status is complete.
        COMPLETE_API_ENABLEMENTS = "CompleteAPIEnablements";
        /// Ours. On a Cluster that is being removed: False while its copies cannot be accounted for, with the cause.
        RELEASED = "Released";
        /// Ours. On a Cluster: False while the copies of some kinds cannot be listed there.
        COPIES_WATCHED = "CopiesWatched";
        /// Ours. On a Cluster in Pull mode: False while the hub does not permit the control plane to read its agent's Lease.
        AGENT_WATCHED = "AgentWatched";
        /// Ours. On a Cluster in Push mode: False while its capacity cannot be collected.
        CAPACITY_WATCHED = "CapacityWatched";
        /// Ours. On a Cluster that exports Services: False while some of their endpoints are not collected.
        ENDPOINTS_COLLECTED = "EndpointsCollected";
        /// Ours. On a Cluster: True while deletions of its copies wait for a user to resume them.
        REMOVALS_PAUSED = "RemovalsPaused";
        /// On a Work: its copy is on the member.
        APPLIED = "Applied";
        /// On a Work, and on the binding of push members: it is being delivered, or False while suspended.
        DISPATCHING = "Dispatching";
        /// Ours. On an attached binding: the policies of its referrers contradict each other.
        DEPENDENCY_POLICY_CONFLICT = "DependencyPolicyConflict";
        /// Ours. On a binding: its template was deleted with `--cascade=orphan`, and its copies are kept as they are.
        ORPHANED = "Orphaned";
        /// Ours. False: the interpreter of the kind, a customization or a webhook, has no response for the object.
        INTERPRETED = "Interpreted";
    }
}

mod reasons;

pub use reasons::reason;

table! {
    /// Taints of a Cluster that the control plane sets, and those that commands set. Source: Karmada reference 4.1.
    taint {
        /// Ready is False.
        NOT_READY = "cluster.karmada.io/not-ready";
        /// Ready is Unknown.
        UNREACHABLE = "cluster.karmada.io/unreachable";
        /// The Cluster is cordoned: with the effect NoSchedule no new binding is scheduled to it.
        UNSCHEDULABLE = "cluster.karmada.io/unschedulable";
        /// Ours. The Cluster is drained: with the effect NoExecute the bindings that are scheduled to it are evicted.
        DRAIN = "entourage.dev/drain";
    }
}

#[cfg(test)]
mod tests;
