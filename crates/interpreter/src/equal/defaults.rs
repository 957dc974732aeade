//! The defaults of API servers. One line a row, so that it reads as a table.

use FilledIn::{AliasOf, ByTheServer, Flag, Number, ObjectOfDefaults, OneOf, Text};

/// The start of a row's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// At the pod spec of any kind that has one.
    PodSpec,
    /// At the object, of this kind only, in any version: `Service`, or with a group `Deployment.apps`. It need not be an
    /// interpreted kind.
    Kind(&'static str),
}

/// The value of an absent field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilledIn {
    /// This string.
    Text(&'static str),
    /// One of these strings; the server decides.
    OneOf(&'static [&'static str]),
    /// This number.
    Number(i64),
    /// This boolean.
    Flag(bool),
    /// An object in which every field is its own default; `{}` too.
    ObjectOfDefaults,
    /// Any value of the server: never compared.
    ByTheServer,
    /// The same as the adjacent field of this name.
    AliasOf(&'static str),
}

/// A field that API servers fill in.
#[derive(Clone, Copy, Debug)]
pub struct DefaultRow {
    /// The start of the path.
    pub scope: Scope,
    /// The path; `*` matches any one segment, `containers[]` an entry of any list of containers.
    pub path: &'static str,
    /// The default.
    pub default: FilledIn,
}

/// All fields that may be present on one side only and still be equal.
///
/// Source: the objects that Kubernetes 1.36 serves for minimal ones, and the defaulting of each kind's version from 1.20 on. The
/// table includes fields that some version in that range does not have (`podReplacementPolicy`), that a version sets at another
/// time (`procMount`), or that an override may omit in a list entry it adds.
#[rustfmt::skip]
pub const DEFAULTS: &[DefaultRow] = &[
    pod("containers[].imagePullPolicy", OneOf(&["Always", "IfNotPresent"])),
    pod("containers[].lifecycle.*.httpGet.path", Text("/")),
    pod("containers[].lifecycle.*.httpGet.scheme", Text("HTTP")),
    pod("containers[].env[].value", Text("")),
    pod("containers[].env[].valueFrom.fieldRef.apiVersion", Text("v1")),
    pod("containers[].env[].valueFrom.fileKeyRef.optional", Flag(false)),
    pod("containers[].env[].valueFrom.resourceFieldRef.divisor", Text("0")),
    pod("containers[].livenessProbe.failureThreshold", Number(3)),
    pod("containers[].livenessProbe.grpc.service", Text("")),
    pod("containers[].livenessProbe.httpGet.path", Text("/")),
    pod("containers[].livenessProbe.httpGet.scheme", Text("HTTP")),
    pod("containers[].livenessProbe.periodSeconds", Number(10)),
    pod("containers[].livenessProbe.successThreshold", Number(1)),
    pod("containers[].livenessProbe.timeoutSeconds", Number(1)),
    pod("containers[].ports[].protocol", Text("TCP")),
    pod("containers[].readinessProbe.failureThreshold", Number(3)),
    pod("containers[].readinessProbe.grpc.service", Text("")),
    pod("containers[].readinessProbe.httpGet.path", Text("/")),
    pod("containers[].readinessProbe.httpGet.scheme", Text("HTTP")),
    pod("containers[].readinessProbe.periodSeconds", Number(10)),
    pod("containers[].readinessProbe.successThreshold", Number(1)),
    pod("containers[].readinessProbe.timeoutSeconds", Number(1)),
    pod("containers[].resources", ObjectOfDefaults),
    pod("containers[].securityContext.procMount", Text("Default")),
    pod("containers[].startupProbe.failureThreshold", Number(3)),
    pod("containers[].startupProbe.grpc.service", Text("")),
    pod("containers[].startupProbe.httpGet.path", Text("/")),
    pod("containers[].startupProbe.httpGet.scheme", Text("HTTP")),
    pod("containers[].startupProbe.periodSeconds", Number(10)),
    pod("containers[].startupProbe.successThreshold", Number(1)),
    pod("containers[].startupProbe.timeoutSeconds", Number(1)),
    pod("containers[].terminationMessagePath", Text("/dev/termination-log")),
    pod("containers[].terminationMessagePolicy", Text("File")),
    pod("dnsPolicy", Text("ClusterFirst")),
    pod("imagePullSecrets[].name", Text("")),
    pod("restartPolicy", Text("Always")),
    pod("schedulerName", Text("default-scheduler")),
    pod("securityContext", ObjectOfDefaults),
    pod("serviceAccount", ByTheServer),
    pod("serviceAccountName", AliasOf("serviceAccount")),
    pod("terminationGracePeriodSeconds", Number(30)),
    pod("volumes[].azureDisk.cachingMode", Text("ReadWrite")),
    pod("volumes[].azureDisk.fsType", Text("ext4")),
    pod("volumes[].azureDisk.kind", Text("Shared")),
    pod("volumes[].azureDisk.readOnly", Flag(false)),
    pod("volumes[].configMap.defaultMode", Number(0o644)),
    pod("volumes[].downwardAPI.defaultMode", Number(0o644)),
    pod("volumes[].downwardAPI.items[].fieldRef.apiVersion", Text("v1")),
    pod("volumes[].downwardAPI.items[].resourceFieldRef.divisor", Text("0")),
    pod("volumes[].emptyDir", ObjectOfDefaults),
    pod("volumes[].ephemeral.volumeClaimTemplate.metadata", ObjectOfDefaults),
    pod("volumes[].ephemeral.volumeClaimTemplate.spec.volumeMode", Text("Filesystem")),
    pod("volumes[].hostPath.type", Text("")),
    pod("volumes[].image.pullPolicy", OneOf(&["Always", "IfNotPresent"])),
    pod("volumes[].iscsi.iscsiInterface", Text("default")),
    pod("volumes[].projected.defaultMode", Number(0o644)),
    pod("volumes[].projected.sources[].downwardAPI.items[].fieldRef.apiVersion", Text("v1")),
    pod("volumes[].projected.sources[].downwardAPI.items[].resourceFieldRef.divisor", Text("0")),
    pod("volumes[].projected.sources[].serviceAccountToken.expirationSeconds", Number(3600)),
    pod("volumes[].rbd.keyring", Text("/etc/ceph/keyring")),
    pod("volumes[].rbd.pool", Text("rbd")),
    pod("volumes[].rbd.user", Text("admin")),
    pod("volumes[].scaleIO.fsType", Text("xfs")),
    pod("volumes[].scaleIO.storageMode", Text("ThinProvisioned")),
    pod("volumes[].secret.defaultMode", Number(0o644)),

    of("APIService.apiregistration.k8s.io", "spec.service.port", Number(443)),

    of("ClusterRoleBinding.rbac.authorization.k8s.io", "roleRef.apiGroup", Text(RBAC)),
    of("ClusterRoleBinding.rbac.authorization.k8s.io", "subjects[].apiGroup", OneOf(&["", RBAC])),

    of("CronJob.batch", "spec.concurrencyPolicy", Text("Allow")),
    of("CronJob.batch", "spec.failedJobsHistoryLimit", Number(1)),
    of("CronJob.batch", "spec.jobTemplate.metadata", ObjectOfDefaults),
    of("CronJob.batch", "spec.jobTemplate.spec.podFailurePolicy.rules[].onPodConditions[].status", Text("True")),
    of("CronJob.batch", "spec.jobTemplate.spec.template.metadata", ObjectOfDefaults),
    of("CronJob.batch", "spec.successfulJobsHistoryLimit", Number(3)),
    of("CronJob.batch", "spec.suspend", Flag(false)),

    of("CustomResourceDefinition.apiextensions.k8s.io", "spec.conversion", ObjectOfDefaults),
    of("CustomResourceDefinition.apiextensions.k8s.io", "spec.conversion.strategy", Text("None")),
    of("CustomResourceDefinition.apiextensions.k8s.io", "spec.conversion.webhook.clientConfig.service.port", Number(443)),
    of("CustomResourceDefinition.apiextensions.k8s.io", "spec.preserveUnknownFields", Flag(false)),

    of("DaemonSet.apps", "spec.revisionHistoryLimit", Number(10)),
    of("DaemonSet.apps", "spec.updateStrategy", ObjectOfDefaults),
    of("DaemonSet.apps", "spec.updateStrategy.rollingUpdate", ObjectOfDefaults),
    of("DaemonSet.apps", "spec.updateStrategy.rollingUpdate.maxSurge", Number(0)),
    of("DaemonSet.apps", "spec.updateStrategy.rollingUpdate.maxUnavailable", Number(1)),
    of("DaemonSet.apps", "spec.updateStrategy.type", Text("RollingUpdate")),

    of("Deployment.apps", "spec.progressDeadlineSeconds", Number(600)),
    of("Deployment.apps", "spec.replicas", Number(1)),
    of("Deployment.apps", "spec.revisionHistoryLimit", Number(10)),
    of("Deployment.apps", "spec.strategy", ObjectOfDefaults),
    of("Deployment.apps", "spec.strategy.rollingUpdate", ObjectOfDefaults),
    of("Deployment.apps", "spec.strategy.rollingUpdate.maxSurge", Text("25%")),
    of("Deployment.apps", "spec.strategy.rollingUpdate.maxUnavailable", Text("25%")),
    of("Deployment.apps", "spec.strategy.type", Text("RollingUpdate")),

    of("Endpoints", "subsets[].ports[].protocol", Text("TCP")),

    of("EndpointSlice.discovery.k8s.io", "endpoints[].conditions", ObjectOfDefaults),
    of("EndpointSlice.discovery.k8s.io", "ports[].name", Text("")),
    of("EndpointSlice.discovery.k8s.io", "ports[].protocol", Text("TCP")),

    of("HorizontalPodAutoscaler.autoscaling", "spec.behavior.scaleDown.selectPolicy", Text("Max")),
    of("HorizontalPodAutoscaler.autoscaling", "spec.behavior.scaleUp.selectPolicy", Text("Max")),
    of("HorizontalPodAutoscaler.autoscaling", "spec.behavior.scaleUp.stabilizationWindowSeconds", Number(0)),
    of("HorizontalPodAutoscaler.autoscaling", "spec.minReplicas", Number(1)),

    of("Job.batch", "spec.backoffLimit", Number(6)),
    of("Job.batch", "spec.completionMode", Text("NonIndexed")),
    of("Job.batch", "spec.completions", Number(1)),
    of("Job.batch", "spec.manualSelector", Flag(false)),
    of("Job.batch", "spec.parallelism", Number(1)),
    of("Job.batch", "spec.podFailurePolicy.rules[].onPodConditions[].status", Text("True")),
    of("Job.batch", "spec.podReplacementPolicy", OneOf(&["Failed", "TerminatingOrFailed"])),
    of("Job.batch", "spec.suspend", Flag(false)),

    of("MutatingWebhookConfiguration.admissionregistration.k8s.io", "webhooks[].clientConfig.service.port", Number(443)),
    of("MutatingWebhookConfiguration.admissionregistration.k8s.io", "webhooks[].failurePolicy", Text("Fail")),
    of("MutatingWebhookConfiguration.admissionregistration.k8s.io", "webhooks[].matchPolicy", Text("Equivalent")),
    of("MutatingWebhookConfiguration.admissionregistration.k8s.io", "webhooks[].namespaceSelector", ObjectOfDefaults),
    of("MutatingWebhookConfiguration.admissionregistration.k8s.io", "webhooks[].objectSelector", ObjectOfDefaults),
    of("MutatingWebhookConfiguration.admissionregistration.k8s.io", "webhooks[].reinvocationPolicy", Text("Never")),
    of("MutatingWebhookConfiguration.admissionregistration.k8s.io", "webhooks[].rules[].scope", Text("*")),
    of("MutatingWebhookConfiguration.admissionregistration.k8s.io", "webhooks[].timeoutSeconds", Number(10)),

    of("Namespace", "spec", ObjectOfDefaults),
    of("Namespace", "spec.finalizers", ByTheServer),

    of("NetworkPolicy.networking.k8s.io", "spec.egress[].ports[].protocol", Text("TCP")),
    of("NetworkPolicy.networking.k8s.io", "spec.ingress[].ports[].protocol", Text("TCP")),

    of("PersistentVolume", "spec.azureDisk.cachingMode", Text("ReadWrite")),
    of("PersistentVolume", "spec.azureDisk.fsType", Text("ext4")),
    of("PersistentVolume", "spec.azureDisk.kind", Text("Shared")),
    of("PersistentVolume", "spec.azureDisk.readOnly", Flag(false)),
    of("PersistentVolume", "spec.hostPath.type", Text("")),
    of("PersistentVolume", "spec.iscsi.iscsiInterface", Text("default")),
    of("PersistentVolume", "spec.persistentVolumeReclaimPolicy", Text("Retain")),
    of("PersistentVolume", "spec.rbd.keyring", Text("/etc/ceph/keyring")),
    of("PersistentVolume", "spec.rbd.pool", Text("rbd")),
    of("PersistentVolume", "spec.rbd.user", Text("admin")),
    of("PersistentVolume", "spec.scaleIO.fsType", Text("xfs")),
    of("PersistentVolume", "spec.scaleIO.storageMode", Text("ThinProvisioned")),
    of("PersistentVolume", "spec.volumeMode", Text("Filesystem")),

    of("PersistentVolumeClaim", "spec.volumeMode", Text("Filesystem")),

    of("PriorityClass.scheduling.k8s.io", "preemptionPolicy", Text("PreemptLowerPriority")),

    of("ReplicaSet.apps", "spec.replicas", Number(1)),

    of("ReplicationController", "spec.replicas", Number(1)),

    of("RoleBinding.rbac.authorization.k8s.io", "roleRef.apiGroup", Text(RBAC)),
    of("RoleBinding.rbac.authorization.k8s.io", "subjects[].apiGroup", OneOf(&["", RBAC])),

    of("Secret", "type", Text("Opaque")),

    of("Service", "spec.allocateLoadBalancerNodePorts", Flag(true)),
    of("Service", "spec.externalTrafficPolicy", Text("Cluster")),
    of("Service", "spec.internalTrafficPolicy", Text("Cluster")),
    of("Service", "spec.ipFamilyPolicy", Text("SingleStack")),
    of("Service", "spec.ports[].protocol", Text("TCP")),
    of("Service", "spec.ports[].targetPort", AliasOf("port")),
    of("Service", "spec.sessionAffinity", Text("None")),
    of("Service", "spec.sessionAffinityConfig", ObjectOfDefaults),
    of("Service", "spec.sessionAffinityConfig.clientIP", ObjectOfDefaults),
    of("Service", "spec.sessionAffinityConfig.clientIP.timeoutSeconds", Number(10800)),
    of("Service", "spec.type", Text("ClusterIP")),

    of("StatefulSet.apps", "spec.persistentVolumeClaimRetentionPolicy", ObjectOfDefaults),
    of("StatefulSet.apps", "spec.persistentVolumeClaimRetentionPolicy.whenDeleted", Text("Retain")),
    of("StatefulSet.apps", "spec.persistentVolumeClaimRetentionPolicy.whenScaled", Text("Retain")),
    of("StatefulSet.apps", "spec.podManagementPolicy", Text("OrderedReady")),
    of("StatefulSet.apps", "spec.replicas", Number(1)),
    of("StatefulSet.apps", "spec.revisionHistoryLimit", Number(10)),
    of("StatefulSet.apps", "spec.updateStrategy", ObjectOfDefaults),
    of("StatefulSet.apps", "spec.updateStrategy.rollingUpdate", ObjectOfDefaults),
    of("StatefulSet.apps", "spec.updateStrategy.rollingUpdate.maxUnavailable", Number(1)),
    of("StatefulSet.apps", "spec.updateStrategy.rollingUpdate.partition", Number(0)),
    of("StatefulSet.apps", "spec.updateStrategy.type", Text("RollingUpdate")),
    of("StatefulSet.apps", "spec.volumeClaimTemplates[].apiVersion", ByTheServer),
    of("StatefulSet.apps", "spec.volumeClaimTemplates[].kind", ByTheServer),
    of("StatefulSet.apps", "spec.volumeClaimTemplates[].spec.volumeMode", Text("Filesystem")),
    of("StatefulSet.apps", "spec.volumeClaimTemplates[].status", ByTheServer),

    of("StorageClass.storage.k8s.io", "reclaimPolicy", Text("Delete")),
    of("StorageClass.storage.k8s.io", "volumeBindingMode", Text("Immediate")),

    of("ValidatingWebhookConfiguration.admissionregistration.k8s.io", "webhooks[].clientConfig.service.port", Number(443)),
    of("ValidatingWebhookConfiguration.admissionregistration.k8s.io", "webhooks[].failurePolicy", Text("Fail")),
    of("ValidatingWebhookConfiguration.admissionregistration.k8s.io", "webhooks[].matchPolicy", Text("Equivalent")),
    of("ValidatingWebhookConfiguration.admissionregistration.k8s.io", "webhooks[].namespaceSelector", ObjectOfDefaults),
    of("ValidatingWebhookConfiguration.admissionregistration.k8s.io", "webhooks[].objectSelector", ObjectOfDefaults),
    of("ValidatingWebhookConfiguration.admissionregistration.k8s.io", "webhooks[].rules[].scope", Text("*")),
    of("ValidatingWebhookConfiguration.admissionregistration.k8s.io", "webhooks[].timeoutSeconds", Number(10)),
];

/// The paths of quantities; `*` at the end matches any key, one with dots too. An API server rewrites them ("1024Mi" becomes
/// "1Gi"), so an override's spelling differs from the served one. A custom resource's server does not rewrite them.
#[rustfmt::skip]
pub const QUANTITIES: &[(Scope, &str)] = &[
    (Scope::PodSpec, "containers[].env[].valueFrom.resourceFieldRef.divisor"),
    (Scope::PodSpec, "containers[].resources.limits.*"),
    (Scope::PodSpec, "containers[].resources.requests.*"),
    (Scope::PodSpec, "overhead.*"),
    (Scope::PodSpec, "resources.limits.*"),
    (Scope::PodSpec, "resources.requests.*"),
    (Scope::PodSpec, "volumes[].downwardAPI.items[].resourceFieldRef.divisor"),
    (Scope::PodSpec, "volumes[].emptyDir.sizeLimit"),
    (Scope::PodSpec, "volumes[].ephemeral.volumeClaimTemplate.spec.resources.limits.*"),
    (Scope::PodSpec, "volumes[].ephemeral.volumeClaimTemplate.spec.resources.requests.*"),
    (Scope::PodSpec, "volumes[].projected.sources[].downwardAPI.items[].resourceFieldRef.divisor"),

    (Scope::Kind("HorizontalPodAutoscaler.autoscaling"), "spec.behavior.scaleDown.tolerance"),
    (Scope::Kind("HorizontalPodAutoscaler.autoscaling"), "spec.behavior.scaleUp.tolerance"),
    (Scope::Kind("HorizontalPodAutoscaler.autoscaling"), "spec.metrics[].external.target.averageValue"),
    (Scope::Kind("HorizontalPodAutoscaler.autoscaling"), "spec.metrics[].external.target.value"),
    (Scope::Kind("HorizontalPodAutoscaler.autoscaling"), "spec.metrics[].object.target.averageValue"),
    (Scope::Kind("HorizontalPodAutoscaler.autoscaling"), "spec.metrics[].object.target.value"),
    (Scope::Kind("HorizontalPodAutoscaler.autoscaling"), "spec.metrics[].pods.target.averageValue"),
    (Scope::Kind("HorizontalPodAutoscaler.autoscaling"), "spec.metrics[].resource.target.averageValue"),
    (Scope::Kind("HorizontalPodAutoscaler.autoscaling"), "spec.metrics[].containerResource.target.averageValue"),

    (Scope::Kind("LimitRange"), "spec.limits[].default.*"),
    (Scope::Kind("LimitRange"), "spec.limits[].defaultRequest.*"),
    (Scope::Kind("LimitRange"), "spec.limits[].max.*"),
    (Scope::Kind("LimitRange"), "spec.limits[].maxLimitRequestRatio.*"),
    (Scope::Kind("LimitRange"), "spec.limits[].min.*"),

    (Scope::Kind("PersistentVolume"), "spec.capacity.*"),

    (Scope::Kind("PersistentVolumeClaim"), "spec.resources.limits.*"),
    (Scope::Kind("PersistentVolumeClaim"), "spec.resources.requests.*"),

    (Scope::Kind("ResourceQuota"), "spec.hard.*"),

    (Scope::Kind("RuntimeClass.node.k8s.io"), "overhead.podFixed.*"),

    (Scope::Kind("StatefulSet.apps"), "spec.volumeClaimTemplates[].spec.resources.limits.*"),
    (Scope::Kind("StatefulSet.apps"), "spec.volumeClaimTemplates[].spec.resources.requests.*"),
];

/// The API group of roles, and of subjects that are a user or a group.
const RBAC: &str = "rbac.authorization.k8s.io";

const fn pod(path: &'static str, default: FilledIn) -> DefaultRow {
    DefaultRow {
        scope: Scope::PodSpec,
        path,
        default,
    }
}

const fn of(kind: &'static str, path: &'static str, default: FilledIn) -> DefaultRow {
    DefaultRow {
        scope: Scope::Kind(kind),
        path,
        default,
    }
}
