//! What API servers fill in. One line a row, so that it reads as a table.

use FilledIn::{AliasOf, ByTheServer, Flag, Number, ObjectOfDefaults, OneOf, Text};

/// Where a row's path starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// At the pod spec of any kind that has one.
    PodSpec,
    /// At the object, of this kind only.
    Kind(&'static str),
}

/// What the absence of a field means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilledIn {
    /// This string.
    Text(&'static str),
    /// One of these strings; which, the server decides.
    OneOf(&'static [&'static str]),
    /// This number.
    Number(i64),
    /// This boolean.
    Flag(bool),
    /// An object in which every field is its own default; `{}` too.
    ObjectOfDefaults,
    /// Whatever the server sets: never compared.
    ByTheServer,
    /// The same as the field of this name beside it.
    AliasOf(&'static str),
}

/// A field that API servers fill in.
#[derive(Clone, Copy, Debug)]
pub struct DefaultRow {
    /// Where the path starts.
    pub scope: Scope,
    /// The path; `*` stands for any one segment, `containers[]` for an entry of any list of containers.
    pub path: &'static str,
    /// What is filled in.
    pub default: FilledIn,
}

/// Every field that may be there on one side only and still be equal.
///
/// Source: the objects that Kubernetes 1.36 serves for minimal ones, and the defaulting of `core/v1`, `apps/v1` and
/// `batch/v1` from 1.20 on. Fields are here that some version in that range does not know (`podReplacementPolicy`), that
/// a version fills in at another time (`procMount`), or that an override may leave out of a list entry it adds.
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

    of("DaemonSet", "spec.revisionHistoryLimit", Number(10)),
    of("DaemonSet", "spec.updateStrategy", ObjectOfDefaults),
    of("DaemonSet", "spec.updateStrategy.rollingUpdate", ObjectOfDefaults),
    of("DaemonSet", "spec.updateStrategy.rollingUpdate.maxSurge", Number(0)),
    of("DaemonSet", "spec.updateStrategy.rollingUpdate.maxUnavailable", Number(1)),
    of("DaemonSet", "spec.updateStrategy.type", Text("RollingUpdate")),

    of("Deployment", "spec.progressDeadlineSeconds", Number(600)),
    of("Deployment", "spec.replicas", Number(1)),
    of("Deployment", "spec.revisionHistoryLimit", Number(10)),
    of("Deployment", "spec.strategy", ObjectOfDefaults),
    of("Deployment", "spec.strategy.rollingUpdate", ObjectOfDefaults),
    of("Deployment", "spec.strategy.rollingUpdate.maxSurge", Text("25%")),
    of("Deployment", "spec.strategy.rollingUpdate.maxUnavailable", Text("25%")),
    of("Deployment", "spec.strategy.type", Text("RollingUpdate")),

    of("Job", "spec.backoffLimit", Number(6)),
    of("Job", "spec.completionMode", Text("NonIndexed")),
    of("Job", "spec.completions", Number(1)),
    of("Job", "spec.manualSelector", Flag(false)),
    of("Job", "spec.parallelism", Number(1)),
    of("Job", "spec.podFailurePolicy.rules[].onPodConditions[].status", Text("True")),
    of("Job", "spec.podReplacementPolicy", OneOf(&["Failed", "TerminatingOrFailed"])),
    of("Job", "spec.suspend", Flag(false)),

    of("PersistentVolumeClaim", "spec.volumeMode", Text("Filesystem")),

    of("ReplicaSet", "spec.replicas", Number(1)),

    of("Secret", "type", Text("Opaque")),

    of("StatefulSet", "spec.persistentVolumeClaimRetentionPolicy", ObjectOfDefaults),
    of("StatefulSet", "spec.persistentVolumeClaimRetentionPolicy.whenDeleted", Text("Retain")),
    of("StatefulSet", "spec.persistentVolumeClaimRetentionPolicy.whenScaled", Text("Retain")),
    of("StatefulSet", "spec.podManagementPolicy", Text("OrderedReady")),
    of("StatefulSet", "spec.replicas", Number(1)),
    of("StatefulSet", "spec.revisionHistoryLimit", Number(10)),
    of("StatefulSet", "spec.updateStrategy", ObjectOfDefaults),
    of("StatefulSet", "spec.updateStrategy.rollingUpdate", ObjectOfDefaults),
    of("StatefulSet", "spec.updateStrategy.rollingUpdate.maxUnavailable", Number(1)),
    of("StatefulSet", "spec.updateStrategy.rollingUpdate.partition", Number(0)),
    of("StatefulSet", "spec.updateStrategy.type", Text("RollingUpdate")),
    of("StatefulSet", "spec.volumeClaimTemplates[].apiVersion", ByTheServer),
    of("StatefulSet", "spec.volumeClaimTemplates[].kind", ByTheServer),
    of("StatefulSet", "spec.volumeClaimTemplates[].spec.volumeMode", Text("Filesystem")),
    of("StatefulSet", "spec.volumeClaimTemplates[].status", ByTheServer),
];

/// Tails of paths that hold quantities; `*` stands for any one segment. An API server rewrites them ("1024Mi" becomes
/// "1Gi"), so an override's spelling is not what it serves.
pub const QUANTITIES: &[&str] = &[
    "emptyDir.sizeLimit",
    "overhead.*",
    "resourceFieldRef.divisor",
    "resources.limits.*",
    "resources.requests.*",
];

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
