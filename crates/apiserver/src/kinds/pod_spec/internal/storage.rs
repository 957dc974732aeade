//! Types of volumes and claims.

use super::types::{
    Fields,
    Form::{Always, Flag, Maybe, Number, Plain, Text},
};

/// Each type: its fields in order, by their own names and those in JSON.
pub(super) const TYPES: &[(&str, Fields)] = &[
    (
        "GCEPersistentDisk",
        &[
            ("PDName", "pdName", Text),
            ("FSType", "fsType", Text),
            ("Partition", "partition", Number),
            ("ReadOnly", "readOnly", Flag),
        ],
    ),
    (
        "AWSElasticBlockStore",
        &[
            ("VolumeID", "volumeID", Text),
            ("FSType", "fsType", Text),
            ("Partition", "partition", Number),
            ("ReadOnly", "readOnly", Flag),
        ],
    ),
    (
        "GitRepo",
        &[
            ("Repository", "repository", Text),
            ("Revision", "revision", Text),
            ("Directory", "directory", Text),
        ],
    ),
    (
        "ISCSI",
        &[
            ("TargetPortal", "targetPortal", Text),
            ("IQN", "iqn", Text),
            ("Lun", "lun", Number),
            ("ISCSIInterface", "iscsiInterface", Text),
            ("FSType", "fsType", Text),
            ("ReadOnly", "readOnly", Flag),
            ("Portals", "portals", Plain),
            ("DiscoveryCHAPAuth", "chapAuthDiscovery", Flag),
            ("SessionCHAPAuth", "chapAuthSession", Flag),
            ("SecretRef", "secretRef", Maybe("SecretReference")),
            ("InitiatorName", "initiatorName", Plain),
        ],
    ),
    (
        "Glusterfs",
        &[
            ("EndpointsName", "endpoints", Text),
            ("Path", "path", Text),
            ("ReadOnly", "readOnly", Flag),
        ],
    ),
    (
        "RBD",
        &[
            ("CephMonitors", "monitors", Plain),
            ("RBDImage", "image", Text),
            ("FSType", "fsType", Text),
            ("RBDPool", "pool", Text),
            ("RadosUser", "user", Text),
            ("Keyring", "keyring", Text),
            ("SecretRef", "secretRef", Maybe("SecretReference")),
            ("ReadOnly", "readOnly", Flag),
        ],
    ),
    (
        "Quobyte",
        &[
            ("Registry", "registry", Text),
            ("Volume", "volume", Text),
            ("ReadOnly", "readOnly", Flag),
            ("User", "user", Text),
            ("Group", "group", Text),
            ("Tenant", "tenant", Text),
        ],
    ),
    (
        "FlexVolume",
        &[
            ("Driver", "driver", Text),
            ("FSType", "fsType", Text),
            ("SecretRef", "secretRef", Maybe("SecretReference")),
            ("ReadOnly", "readOnly", Flag),
            ("Options", "options", Plain),
        ],
    ),
    (
        "Cinder",
        &[
            ("VolumeID", "volumeID", Text),
            ("FSType", "fsType", Text),
            ("ReadOnly", "readOnly", Flag),
            ("SecretRef", "secretRef", Maybe("SecretReference")),
        ],
    ),
    (
        "CephFS",
        &[
            ("Monitors", "monitors", Plain),
            ("Path", "path", Text),
            ("User", "user", Text),
            ("SecretFile", "secretFile", Text),
            ("SecretRef", "secretRef", Maybe("SecretReference")),
            ("ReadOnly", "readOnly", Flag),
        ],
    ),
    (
        "Flocker",
        &[
            ("DatasetName", "datasetName", Text),
            ("DatasetUUID", "datasetUUID", Text),
        ],
    ),
    (
        "FC",
        &[
            ("TargetWWNs", "targetWWNs", Plain),
            ("Lun", "lun", Plain),
            ("FSType", "fsType", Text),
            ("ReadOnly", "readOnly", Flag),
            ("WWIDs", "wwids", Plain),
        ],
    ),
    (
        "AzureFile",
        &[
            ("SecretName", "secretName", Text),
            ("ShareName", "shareName", Text),
            ("ReadOnly", "readOnly", Flag),
        ],
    ),
    (
        "VsphereVolume",
        &[
            ("VolumePath", "volumePath", Text),
            ("FSType", "fsType", Text),
            ("StoragePolicyName", "storagePolicyName", Text),
            ("StoragePolicyID", "storagePolicyID", Text),
        ],
    ),
    (
        "AzureDisk",
        &[
            ("DiskName", "diskName", Text),
            ("DataDiskURI", "diskURI", Text),
            ("CachingMode", "cachingMode", Plain),
            ("FSType", "fsType", Plain),
            ("ReadOnly", "readOnly", Plain),
            ("Kind", "kind", Plain),
        ],
    ),
    (
        "PhotonPersistentDisk",
        &[("PdID", "pdID", Text), ("FSType", "fsType", Text)],
    ),
    (
        "PortworxVolume",
        &[
            ("VolumeID", "volumeID", Text),
            ("FSType", "fsType", Text),
            ("ReadOnly", "readOnly", Flag),
        ],
    ),
    (
        "ScaleIO",
        &[
            ("Gateway", "gateway", Text),
            ("System", "system", Text),
            ("SecretRef", "secretRef", Maybe("SecretReference")),
            ("SSLEnabled", "sslEnabled", Flag),
            ("ProtectionDomain", "protectionDomain", Text),
            ("StoragePool", "storagePool", Text),
            ("StorageMode", "storageMode", Text),
            ("VolumeName", "volumeName", Text),
            ("FSType", "fsType", Text),
            ("ReadOnly", "readOnly", Flag),
        ],
    ),
    (
        "StorageOS",
        &[
            ("VolumeName", "volumeName", Text),
            ("VolumeNamespace", "volumeNamespace", Text),
            ("FSType", "fsType", Text),
            ("ReadOnly", "readOnly", Flag),
            ("SecretRef", "secretRef", Maybe("ObjectReference")),
        ],
    ),
    (
        "CSI",
        &[
            ("Driver", "driver", Text),
            ("ReadOnly", "readOnly", Plain),
            ("FSType", "fsType", Plain),
            ("VolumeAttributes", "volumeAttributes", Plain),
            ("NodePublishSecretRef", "nodePublishSecretRef", Maybe("Reference")),
        ],
    ),
    (
        "Ephemeral",
        &[(
            "VolumeClaimTemplate",
            "volumeClaimTemplate",
            Maybe("ClaimTemplate"),
        )],
    ),
    (
        "Image",
        &[
            ("Reference", "reference", Text),
            ("PullPolicy", "pullPolicy", Text),
        ],
    ),
    (
        "ClaimTemplate",
        &[("Spec", "spec", Always("PersistentVolumeClaimSpec"))],
    ),
    (
        "SecretReference",
        &[("Name", "name", Text), ("Namespace", "namespace", Text)],
    ),
    (
        "PersistentVolumeSource",
        &[
            (
                "GCEPersistentDisk",
                "gcePersistentDisk",
                Maybe("GCEPersistentDisk"),
            ),
            (
                "AWSElasticBlockStore",
                "awsElasticBlockStore",
                Maybe("AWSElasticBlockStore"),
            ),
            ("HostPath", "hostPath", Maybe("HostPath")),
            ("Glusterfs", "glusterfs", Maybe("GlusterfsVolume")),
            ("NFS", "nfs", Maybe("NFS")),
            ("RBD", "rbd", Maybe("RBD")),
            ("Quobyte", "quobyte", Maybe("Quobyte")),
            ("ISCSI", "iscsi", Maybe("ISCSI")),
            ("FlexVolume", "flexVolume", Maybe("FlexVolume")),
            ("Cinder", "cinder", Maybe("Cinder")),
            ("CephFS", "cephfs", Maybe("CephFS")),
            ("FC", "fc", Maybe("FC")),
            ("Flocker", "flocker", Maybe("Flocker")),
            ("AzureFile", "azureFile", Maybe("AzureFileVolume")),
            ("VsphereVolume", "vsphereVolume", Maybe("VsphereVolume")),
            ("AzureDisk", "azureDisk", Maybe("AzureDisk")),
            (
                "PhotonPersistentDisk",
                "photonPersistentDisk",
                Maybe("PhotonPersistentDisk"),
            ),
            ("PortworxVolume", "portworxVolume", Maybe("PortworxVolume")),
            ("ScaleIO", "scaleIO", Maybe("ScaleIO")),
            ("Local", "local", Maybe("Local")),
            ("StorageOS", "storageos", Maybe("StorageOS")),
            ("CSI", "csi", Maybe("CSIVolume")),
        ],
    ),
    (
        "GlusterfsVolume",
        &[
            ("EndpointsName", "endpoints", Text),
            ("Path", "path", Text),
            ("ReadOnly", "readOnly", Flag),
            ("EndpointsNamespace", "endpointsNamespace", Plain),
        ],
    ),
    (
        "AzureFileVolume",
        &[
            ("SecretName", "secretName", Text),
            ("ShareName", "shareName", Text),
            ("ReadOnly", "readOnly", Flag),
            ("SecretNamespace", "secretNamespace", Plain),
        ],
    ),
    ("Local", &[("Path", "path", Text), ("FSType", "fsType", Plain)]),
    (
        "CSIVolume",
        &[
            ("Driver", "driver", Text),
            ("VolumeHandle", "volumeHandle", Text),
            ("ReadOnly", "readOnly", Flag),
            ("FSType", "fsType", Text),
            ("VolumeAttributes", "volumeAttributes", Plain),
            (
                "ControllerPublishSecretRef",
                "controllerPublishSecretRef",
                Maybe("SecretReference"),
            ),
            (
                "NodeStageSecretRef",
                "nodeStageSecretRef",
                Maybe("SecretReference"),
            ),
            (
                "NodePublishSecretRef",
                "nodePublishSecretRef",
                Maybe("SecretReference"),
            ),
            (
                "ControllerExpandSecretRef",
                "controllerExpandSecretRef",
                Maybe("SecretReference"),
            ),
            (
                "NodeExpandSecretRef",
                "nodeExpandSecretRef",
                Maybe("SecretReference"),
            ),
        ],
    ),
    (
        "PersistentVolumeClaimSpec",
        &[
            ("AccessModes", "accessModes", Plain),
            ("Selector", "selector", Plain),
            ("Resources", "resources", Always("ClaimResources")),
            ("VolumeName", "volumeName", Text),
            ("StorageClassName", "storageClassName", Plain),
            ("VolumeMode", "volumeMode", Plain),
            ("DataSource", "dataSource", Maybe("LocalReference")),
            ("DataSourceRef", "dataSourceRef", Maybe("TypedReference")),
            ("VolumeAttributesClassName", "volumeAttributesClassName", Plain),
        ],
    ),
    (
        "ClaimResources",
        &[("Limits", "limits", Plain), ("Requests", "requests", Plain)],
    ),
    (
        "LocalReference",
        &[
            ("APIGroup", "apiGroup", Plain),
            ("Kind", "kind", Text),
            ("Name", "name", Text),
        ],
    ),
    (
        "TypedReference",
        &[
            ("APIGroup", "apiGroup", Plain),
            ("Kind", "kind", Text),
            ("Name", "name", Text),
            ("Namespace", "namespace", Plain),
        ],
    ),
    (
        "CSINodeDriver",
        &[
            ("Name", "name", Text),
            ("NodeID", "nodeID", Text),
            ("TopologyKeys", "topologyKeys", Plain),
            ("Allocatable", "allocatable", Maybe("NodeResources")),
        ],
    ),
    ("NodeResources", &[("Count", "count", Plain)]),
    (
        "AttachmentSpec",
        &[
            ("Attacher", "attacher", Text),
            ("Source", "source", Always("AttachmentSource")),
            ("NodeName", "nodeName", Text),
        ],
    ),
    (
        "AttachmentSource",
        &[
            ("PersistentVolumeName", "persistentVolumeName", Plain),
            ("InlineVolumeSpec", "inlineVolumeSpec", Maybe("")),
        ],
    ),
];
