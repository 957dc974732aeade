//! The table of references. One line a row, so that it reads as a table.

use super::{
    NativeGvk, NonReference, ReferenceRow,
    Within::{self, Container, Object, PodSpec},
};

const CONFIG_MAP: NativeGvk<'static> = core("ConfigMap");
const CLAIM: NativeGvk<'static> = core("PersistentVolumeClaim");
const SECRET: NativeGvk<'static> = core("Secret");
const SERVICE: NativeGvk<'static> = core("Service");
const SERVICE_ACCOUNT: NativeGvk<'static> = core("ServiceAccount");

const INGRESS: Within = Object("networking.k8s.io", "Ingress");
const ACCOUNT: Within = Object("", "ServiceAccount");
const SERVICE_IMPORT: Within = Object("multicluster.x-k8s.io", "ServiceImport");

/// The paths of all dependencies by name.
///
/// Source: Karmada reference 3.1, and the PodSpec of Kubernetes 1.36. Different from Karmada: `optional` is
/// kept, and the deprecated `serviceAccount` counts (an API server serves it equal to `serviceAccountName`).
#[rustfmt::skip]
pub const REFERENCES: &[ReferenceRow] = &[
    optional(Container, "env[].valueFrom.configMapKeyRef.name", CONFIG_MAP, "one environment variable"),
    optional(Container, "env[].valueFrom.secretKeyRef.name", SECRET, "one environment variable"),
    optional(Container, "envFrom[].configMapRef.name", CONFIG_MAP, "environment variables, one a key"),
    optional(Container, "envFrom[].secretRef.name", SECRET, "environment variables, one a key"),
    required(PodSpec, "imagePullSecrets[].name", SECRET, "registry credentials of the kubelet"),
    karmada_ignores(PodSpec, "serviceAccount", SERVICE_ACCOUNT, "the pods' identity, by the deprecated name of the field"),
    required(PodSpec, "serviceAccountName", SERVICE_ACCOUNT, "the pods' identity"),
    required(PodSpec, "volumes[].azureFile.secretName", SECRET, "storage account of an Azure file share"),
    required(PodSpec, "volumes[].cephfs.secretRef.name", SECRET, "CephFS credentials"),
    required(PodSpec, "volumes[].cinder.secretRef.name", SECRET, "OpenStack credentials"),
    optional(PodSpec, "volumes[].configMap.name", CONFIG_MAP, "files, one a key"),
    required(PodSpec, "volumes[].csi.nodePublishSecretRef.name", SECRET, "credentials for an inline CSI volume"),
    required(PodSpec, "volumes[].flexVolume.secretRef.name", SECRET, "credentials for a FlexVolume driver"),
    required(PodSpec, "volumes[].iscsi.secretRef.name", SECRET, "CHAP credentials"),
    required(PodSpec, "volumes[].persistentVolumeClaim.claimName", CLAIM, "storage"),
    optional(PodSpec, "volumes[].projected.sources[].configMap.name", CONFIG_MAP, "files, one a key"),
    optional(PodSpec, "volumes[].projected.sources[].secret.name", SECRET, "files, one a key"),
    required(PodSpec, "volumes[].rbd.secretRef.name", SECRET, "Ceph credentials"),
    required(PodSpec, "volumes[].scaleIO.secretRef.name", SECRET, "ScaleIO credentials"),
    optional(PodSpec, "volumes[].secret.secretName", SECRET, "files, one a key"),
    required(PodSpec, "volumes[].storageos.secretRef.name", SECRET, "StorageOS credentials"),

    ReferenceRow { source: "Kubernetes API reference, ServiceAccount v1; ignored by Karmada (reference 3.1)", ..required(ACCOUNT, "imagePullSecrets[].name", SECRET, "registry credentials of pods that name none") },
    required(INGRESS, "spec.tls[].secretName", SECRET, "certificate and key of a host"),
    ReferenceRow { prefix: "derived-", ..required(SERVICE_IMPORT, "metadata.name", SERVICE, "the local Service that stands for the imported one") },
];

/// All other fields of a pod spec, an Ingress or a ServiceAccount that name an object, with the reason why it is not propagated.
///
/// Source: Karmada reference 3.1 "Ignored", and the PodSpec, Ingress and ServiceAccount of Kubernetes 1.36.
#[rustfmt::skip]
pub const NON_REFERENCES: &[NonReference] = &[
    not(ACCOUNT, "secrets", "what pods mount they name themselves, and tokens are one cluster's"),
    not(Container, "env[].valueFrom.fieldRef", "a field of the pod itself"),
    not(Container, "env[].valueFrom.fileKeyRef", "a file in a volume of the pod itself; the volume's own source is a row"),
    not(Container, "env[].valueFrom.resourceFieldRef", "a resource of a container of the pod itself"),
    not(Container, "image", "pulled from a registry by each cluster"),
    not(Container, "livenessProbe.grpc.service", "a word in the request that the container answers"),
    not(Container, "readinessProbe.grpc.service", "a word in the request that the container answers"),
    not(Container, "resizePolicy", "names a resource of the container: cpu, memory"),
    not(Container, "resources.claims", "an entry of the pod's own resourceClaims"),
    not(Container, "securityContext.windowsOptions.gmsaCredentialSpecName", "a cluster-scoped custom resource of the cluster's administrator"),
    not(Container, "securityContext.windowsOptions.runAsUserName", "a user of the container's image"),
    not(Container, "startupProbe.grpc.service", "a word in the request that the container answers"),
    not(INGRESS, "spec.defaultBackend", "the Service behind it is the user's to propagate, as in Karmada; most often it is where the workload is"),
    not(INGRESS, "spec.ingressClassName", "cluster-scoped, the cluster administrator's"),
    not(INGRESS, "spec.rules[].http.paths[].backend", "the Service behind it is the user's to propagate, as in Karmada; most often it is where the workload is"),
    not(PodSpec, "ephemeralContainers[].targetContainerName", "a container of the pod itself"),
    not(PodSpec, "hostAliases", "lines of a hosts file"),
    not(PodSpec, "nodeName", "a node belongs to one cluster"),
    not(PodSpec, "priorityClassName", "cluster-scoped, the cluster administrator's; propagate it by a policy of its own"),
    not(PodSpec, "resourceClaims", "DRA claims are allocated from one cluster's devices"),
    not(PodSpec, "resources.claims", "an entry of the pod's own resourceClaims"),
    not(PodSpec, "runtimeClassName", "cluster-scoped, names a handler of the cluster's nodes"),
    not(PodSpec, "schedulerName", "a process in the cluster, not an object"),
    not(PodSpec, "schedulingGroup", "a PodGroup is made by the workload's controller in the cluster where it runs"),
    not(PodSpec, "securityContext.windowsOptions.gmsaCredentialSpecName", "a cluster-scoped custom resource of the cluster's administrator"),
    not(PodSpec, "securityContext.windowsOptions.runAsUserName", "a user of the container's image"),
    not(PodSpec, "volumes[].awsElasticBlockStore", "a disk of a cloud account, not an object"),
    not(PodSpec, "volumes[].azureDisk", "a disk of a cloud account, not an object"),
    not(PodSpec, "volumes[].azureFile.shareName", "a share of a storage account, not an object"),
    not(PodSpec, "volumes[].cinder.volumeID", "a disk of an OpenStack project, not an object"),
    not(PodSpec, "volumes[].csi.driver", "a driver installed by the cluster's administrator"),
    not(PodSpec, "volumes[].downwardAPI", "fields of the pod itself"),
    not(PodSpec, "volumes[].emptyDir", "made for each pod"),
    not(PodSpec, "volumes[].ephemeral.volumeClaimTemplate", "the claim is made from the template in the cluster where the pod runs; its storage class and data source are that cluster's"),
    not(PodSpec, "volumes[].fc", "a disk of a storage network, not an object"),
    not(PodSpec, "volumes[].flexVolume.driver", "a driver installed by the cluster's administrator"),
    not(PodSpec, "volumes[].flocker", "a data set of the storage system, not an object"),
    not(PodSpec, "volumes[].gcePersistentDisk", "a disk of a cloud account, not an object"),
    not(PodSpec, "volumes[].gitRepo", "cloned from a server by each node"),
    not(PodSpec, "volumes[].glusterfs.endpoints", "Endpoints hold addresses of one cluster's network"),
    not(PodSpec, "volumes[].hostPath", "a file of the node"),
    not(PodSpec, "volumes[].image", "pulled from a registry by each cluster"),
    not(PodSpec, "volumes[].iscsi.initiatorName", "a name of the storage network, not an object"),
    not(PodSpec, "volumes[].nfs", "an export of a file server, not an object"),
    not(PodSpec, "volumes[].photonPersistentDisk", "a disk of a cloud account, not an object"),
    not(PodSpec, "volumes[].portworxVolume", "a volume of one cluster's storage, not an object"),
    not(PodSpec, "volumes[].projected.sources[].clusterTrustBundle", "cluster-scoped trust anchors of each cluster's signers"),
    not(PodSpec, "volumes[].projected.sources[].downwardAPI", "fields of the pod itself"),
    not(PodSpec, "volumes[].projected.sources[].podCertificate", "issued to each pod by a signer of its cluster"),
    not(PodSpec, "volumes[].projected.sources[].serviceAccountToken", "issued to each pod by its cluster; the ServiceAccount is a row"),
    not(PodSpec, "volumes[].quobyte", "a volume of the storage system, not an object"),
    not(PodSpec, "volumes[].rbd.image", "an image in a Ceph pool, not an object"),
    not(PodSpec, "volumes[].scaleIO.volumeName", "a volume of the storage system, not an object"),
    not(PodSpec, "volumes[].storageos.volumeName", "a volume of the storage system, not an object"),
    not(PodSpec, "volumes[].vsphereVolume", "a disk of a data centre, not an object"),
];

/// An object that exists in every namespace of every cluster, created there by the cluster's own controllers.
#[derive(Clone, Copy, Debug)]
pub struct Everywhere {
    /// Group, version and kind of the object.
    pub gvk: NativeGvk<'static>,
    /// Its name in every namespace.
    pub name: &'static str,
    /// Its creator, and the reason why the hub's must not replace it.
    pub reason: &'static str,
}

/// Objects that are never propagated as dependencies, because each cluster has its own.
///
/// Source: `default` is Karmada reference 3.1. The others are additions: an API server with the ServiceAccount
/// admission plug-in adds a volume with its CA to every Pod, and the hub's CA must not reach a member.
#[rustfmt::skip]
pub const EVERYWHERE: &[Everywhere] = &[
    Everywhere { gvk: SERVICE_ACCOUNT, name: "default", reason: "the ServiceAccount controller makes it in every namespace" },
    Everywhere { gvk: CONFIG_MAP, name: "kube-root-ca.crt", reason: "each cluster publishes its own API server's CA in every namespace" },
    Everywhere { gvk: CONFIG_MAP, name: "openshift-service-ca.crt", reason: "each OpenShift cluster publishes its own service CA in every namespace" },
];

const KARMADA: &str = "Karmada reference 3.1";

const fn required(
    within: Within,
    path: &'static str,
    gvk: NativeGvk<'static>,
    summary: &'static str,
) -> ReferenceRow {
    ReferenceRow {
        within,
        path,
        gvk,
        prefix: "",
        optional: None,
        summary,
        source: KARMADA,
    }
}

const fn optional(
    within: Within,
    path: &'static str,
    gvk: NativeGvk<'static>,
    summary: &'static str,
) -> ReferenceRow {
    ReferenceRow {
        within,
        path,
        gvk,
        prefix: "",
        optional: Some("optional"),
        summary,
        source: KARMADA,
    }
}

const fn karmada_ignores(
    within: Within,
    path: &'static str,
    gvk: NativeGvk<'static>,
    summary: &'static str,
) -> ReferenceRow {
    let source = "Kubernetes API reference, PodSpec v1; ignored by Karmada (reference 3.1)";
    ReferenceRow {
        within,
        path,
        gvk,
        prefix: "",
        optional: None,
        summary,
        source,
    }
}

const fn core(kind: &'static str) -> NativeGvk<'static> {
    NativeGvk {
        group: "",
        version: "v1",
        kind,
    }
}

const fn not(within: Within, path: &'static str, reason: &'static str) -> NonReference {
    NonReference { within, path, reason }
}
