//! The table of references. One line a row, so that it reads as a table.

use super::{
    DependencyKind::{self, ConfigMap, PersistentVolumeClaim, Secret, ServiceAccount},
    NonReference, ReferenceRow,
    Within::{self, Container, PodSpec},
};

/// Every path in a pod spec that makes an object travel with the workload.
///
/// Source: Karmada reference 3.1, and the PodSpec of Kubernetes 1.36. Different from Karmada: `optional` is
/// kept, and the deprecated `serviceAccount` counts (an API server serves it equal to `serviceAccountName`).
#[rustfmt::skip]
pub const REFERENCES: &[ReferenceRow] = &[
    optional(Container, "env[].valueFrom.configMapKeyRef.name", ConfigMap, "one environment variable"),
    optional(Container, "env[].valueFrom.secretKeyRef.name", Secret, "one environment variable"),
    optional(Container, "envFrom[].configMapRef.name", ConfigMap, "environment variables, one a key"),
    optional(Container, "envFrom[].secretRef.name", Secret, "environment variables, one a key"),
    required(PodSpec, "imagePullSecrets[].name", Secret, "registry credentials of the kubelet"),
    karmada_ignores(PodSpec, "serviceAccount", ServiceAccount, "the pods' identity, by the deprecated name of the field"),
    required(PodSpec, "serviceAccountName", ServiceAccount, "the pods' identity"),
    required(PodSpec, "volumes[].azureFile.secretName", Secret, "storage account of an Azure file share"),
    required(PodSpec, "volumes[].cephfs.secretRef.name", Secret, "CephFS credentials"),
    required(PodSpec, "volumes[].cinder.secretRef.name", Secret, "OpenStack credentials"),
    optional(PodSpec, "volumes[].configMap.name", ConfigMap, "files, one a key"),
    required(PodSpec, "volumes[].csi.nodePublishSecretRef.name", Secret, "credentials for an inline CSI volume"),
    required(PodSpec, "volumes[].flexVolume.secretRef.name", Secret, "credentials for a FlexVolume driver"),
    required(PodSpec, "volumes[].iscsi.secretRef.name", Secret, "CHAP credentials"),
    required(PodSpec, "volumes[].persistentVolumeClaim.claimName", PersistentVolumeClaim, "storage"),
    optional(PodSpec, "volumes[].projected.sources[].configMap.name", ConfigMap, "files, one a key"),
    optional(PodSpec, "volumes[].projected.sources[].secret.name", Secret, "files, one a key"),
    required(PodSpec, "volumes[].rbd.secretRef.name", Secret, "Ceph credentials"),
    required(PodSpec, "volumes[].scaleIO.secretRef.name", Secret, "ScaleIO credentials"),
    optional(PodSpec, "volumes[].secret.secretName", Secret, "files, one a key"),
    required(PodSpec, "volumes[].storageos.secretRef.name", Secret, "StorageOS credentials"),
];

/// Every other field of a pod spec that names something, and why that does not travel.
///
/// Source: Karmada reference 3.1 "Ignored", and the PodSpec of Kubernetes 1.36.
#[rustfmt::skip]
pub const NON_REFERENCES: &[NonReference] = &[
    not(Container, "env[].valueFrom.fieldRef", "a field of the pod itself"),
    not(Container, "env[].valueFrom.fileKeyRef", "a file in a volume of the pod itself; the volume's own source is a row"),
    not(Container, "env[].valueFrom.resourceFieldRef", "a resource of a container of the pod itself"),
    not(Container, "image", "pulled from a registry by each cluster"),
    not(Container, "resources.claims", "an entry of the pod's own resourceClaims"),
    not(Container, "securityContext.windowsOptions.gmsaCredentialSpecName", "a cluster-scoped custom resource of the cluster's administrator"),
    not(PodSpec, "hostAliases", "lines of a hosts file"),
    not(PodSpec, "nodeName", "a node belongs to one cluster"),
    not(PodSpec, "priorityClassName", "cluster-scoped, the cluster administrator's; propagate it by a policy of its own"),
    not(PodSpec, "resourceClaims", "DRA claims are allocated from one cluster's devices"),
    not(PodSpec, "resources.claims", "an entry of the pod's own resourceClaims"),
    not(PodSpec, "runtimeClassName", "cluster-scoped, names a handler of the cluster's nodes"),
    not(PodSpec, "schedulerName", "a process in the cluster, not an object"),
    not(PodSpec, "schedulingGroup", "a PodGroup is made by the workload's controller in the cluster where it runs"),
    not(PodSpec, "securityContext.windowsOptions.gmsaCredentialSpecName", "a cluster-scoped custom resource of the cluster's administrator"),
    not(PodSpec, "volumes[].awsElasticBlockStore", "a disk of a cloud account, not an object"),
    not(PodSpec, "volumes[].azureDisk", "a disk of a cloud account, not an object"),
    not(PodSpec, "volumes[].cinder.volumeID", "a disk of an OpenStack project, not an object"),
    not(PodSpec, "volumes[].csi.driver", "a driver installed by the cluster's administrator"),
    not(PodSpec, "volumes[].downwardAPI", "fields of the pod itself"),
    not(PodSpec, "volumes[].ephemeral.volumeClaimTemplate", "the claim is made from the template in the cluster where the pod runs; its storage class and data source are that cluster's"),
    not(PodSpec, "volumes[].flexVolume.driver", "a driver installed by the cluster's administrator"),
    not(PodSpec, "volumes[].gcePersistentDisk", "a disk of a cloud account, not an object"),
    not(PodSpec, "volumes[].glusterfs.endpoints", "Endpoints hold addresses of one cluster's network"),
    not(PodSpec, "volumes[].image", "pulled from a registry by each cluster"),
    not(PodSpec, "volumes[].photonPersistentDisk", "a disk of a cloud account, not an object"),
    not(PodSpec, "volumes[].portworxVolume", "a volume of one cluster's storage, not an object"),
    not(PodSpec, "volumes[].projected.sources[].clusterTrustBundle", "cluster-scoped trust anchors of each cluster's signers"),
    not(PodSpec, "volumes[].projected.sources[].downwardAPI", "fields of the pod itself"),
    not(PodSpec, "volumes[].projected.sources[].podCertificate", "issued to each pod by a signer of its cluster"),
    not(PodSpec, "volumes[].projected.sources[].serviceAccountToken", "issued to each pod by its cluster; the ServiceAccount is a row"),
    not(PodSpec, "volumes[].rbd.image", "an image in a Ceph pool, not an object"),
    not(PodSpec, "volumes[].scaleIO.volumeName", "a volume of the storage system, not an object"),
    not(PodSpec, "volumes[].storageos.volumeName", "a volume of the storage system, not an object"),
    not(PodSpec, "volumes[].vsphereVolume", "a disk of a data centre, not an object"),
];

/// An object that exists in every namespace of every cluster, made there by the cluster's own controllers.
#[derive(Clone, Copy, Debug)]
pub struct Everywhere {
    /// Kind of the object.
    pub kind: DependencyKind,
    /// Its name in every namespace.
    pub name: &'static str,
    /// Who makes it, and why ours must not replace it.
    pub reason: &'static str,
}

/// Objects that are never taken along, because each cluster has its own.
///
/// Source: `default` is Karmada reference 3.1. The others are ours: an API server with the ServiceAccount
/// admission plug-in adds a volume with its CA to every Pod, and the hub's CA must not reach a member.
#[rustfmt::skip]
pub const EVERYWHERE: &[Everywhere] = &[
    Everywhere { kind: ServiceAccount, name: "default", reason: "the ServiceAccount controller makes it in every namespace" },
    Everywhere { kind: ConfigMap, name: "kube-root-ca.crt", reason: "each cluster publishes its own API server's CA in every namespace" },
    Everywhere { kind: ConfigMap, name: "openshift-service-ca.crt", reason: "each OpenShift cluster publishes its own service CA in every namespace" },
];

const KARMADA: &str = "Karmada reference 3.1";

const fn required(
    within: Within,
    path: &'static str,
    kind: DependencyKind,
    summary: &'static str,
) -> ReferenceRow {
    ReferenceRow {
        within,
        path,
        kind,
        optional: None,
        summary,
        source: KARMADA,
    }
}

const fn optional(
    within: Within,
    path: &'static str,
    kind: DependencyKind,
    summary: &'static str,
) -> ReferenceRow {
    ReferenceRow {
        within,
        path,
        kind,
        optional: Some("optional"),
        summary,
        source: KARMADA,
    }
}

const fn karmada_ignores(
    within: Within,
    path: &'static str,
    kind: DependencyKind,
    summary: &'static str,
) -> ReferenceRow {
    let source = "Kubernetes API reference, PodSpec v1; ignored by Karmada (reference 3.1)";
    ReferenceRow {
        within,
        path,
        kind,
        optional: None,
        summary,
        source,
    }
}

const fn not(within: Within, path: &'static str, reason: &'static str) -> NonReference {
    NonReference { within, path, reason }
}
