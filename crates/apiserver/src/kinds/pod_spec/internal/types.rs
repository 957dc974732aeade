//! The types of pod specs in the server's own form.

/// The type of a field.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// A string; `""` when absent.
    Text,
    /// A number; 0 when absent.
    Number,
    /// A boolean; false when absent.
    Flag,
    /// Any value; null when absent.
    Plain,
    /// An object of a type of the table; null when absent.
    Maybe(&'static str),
    /// An object of a type of the table; empty when absent.
    Always(&'static str),
    /// A list of objects of a type of the table; null when empty.
    Many(&'static str),
    /// The security context: some fields of the spec are in it.
    Context,
}

use Form::{Always, Context, Flag, Many, Maybe, Number, Plain, Text};

/// The fields of a type.
pub(super) type Fields = &'static [(&'static str, &'static str, Form)];

/// Each type: its fields in order, by their own names and those in JSON.
pub(super) const TYPES: &[(&str, Fields)] = &[
    (
        "PodSpec",
        &[
            ("Volumes", "volumes", Many("Volume")),
            ("InitContainers", "initContainers", Many("Container")),
            ("Containers", "containers", Many("Container")),
            (
                "EphemeralContainers",
                "ephemeralContainers",
                Many("EphemeralContainer"),
            ),
            ("RestartPolicy", "restartPolicy", Text),
            (
                "TerminationGracePeriodSeconds",
                "terminationGracePeriodSeconds",
                Plain,
            ),
            ("ActiveDeadlineSeconds", "activeDeadlineSeconds", Plain),
            ("DNSPolicy", "dnsPolicy", Text),
            ("NodeSelector", "nodeSelector", Plain),
            ("ServiceAccountName", "serviceAccountName", Text),
            (
                "AutomountServiceAccountToken",
                "automountServiceAccountToken",
                Plain,
            ),
            ("NodeName", "nodeName", Text),
            ("SecurityContext", "securityContext", Context),
            ("ImagePullSecrets", "imagePullSecrets", Many("Reference")),
            ("Hostname", "hostname", Text),
            ("Subdomain", "subdomain", Text),
            ("SetHostnameAsFQDN", "setHostnameAsFQDN", Plain),
            ("Affinity", "affinity", Maybe("Affinity")),
            ("SchedulerName", "schedulerName", Text),
            ("Tolerations", "tolerations", Many("Toleration")),
            ("HostAliases", "hostAliases", Many("HostAlias")),
            ("PriorityClassName", "priorityClassName", Text),
            ("Priority", "priority", Plain),
            ("PreemptionPolicy", "preemptionPolicy", Plain),
            ("DNSConfig", "dnsConfig", Maybe("DNSConfig")),
            ("ReadinessGates", "readinessGates", Many("")),
            ("RuntimeClassName", "runtimeClassName", Plain),
            ("Overhead", "overhead", Plain),
            ("EnableServiceLinks", "enableServiceLinks", Plain),
            (
                "TopologySpreadConstraints",
                "topologySpreadConstraints",
                Many("Spread"),
            ),
            ("OS", "os", Maybe("")),
            ("SchedulingGates", "schedulingGates", Many("")),
            ("ResourceClaims", "resourceClaims", Many("")),
            ("Resources", "resources", Maybe("Resources")),
            ("HostnameOverride", "hostnameOverride", Plain),
            ("SchedulingGroup", "schedulingGroup", Maybe("")),
        ],
    ),
    ("Container", CONTAINER),
    ("EphemeralContainer", CONTAINER),
    (
        "Resources",
        &[
            ("Limits", "limits", Plain),
            ("Requests", "requests", Plain),
            ("Claims", "claims", Many("")),
        ],
    ),
    (
        "Port",
        &[
            ("Name", "name", Text),
            ("HostPort", "hostPort", Number),
            ("ContainerPort", "containerPort", Number),
            ("Protocol", "protocol", Text),
            ("HostIP", "hostIP", Text),
        ],
    ),
    (
        "EnvVar",
        &[
            ("Name", "name", Text),
            ("Value", "value", Text),
            ("ValueFrom", "valueFrom", Maybe("EnvVarSource")),
        ],
    ),
    (
        "EnvVarSource",
        &[
            ("FieldRef", "fieldRef", Maybe("FieldRef")),
            ("ResourceFieldRef", "resourceFieldRef", Maybe("ResourceFieldRef")),
            ("ConfigMapKeyRef", "configMapKeyRef", Maybe("KeyRef")),
            ("SecretKeyRef", "secretKeyRef", Maybe("KeyRef")),
            ("FileKeyRef", "fileKeyRef", Maybe("")),
        ],
    ),
    (
        "FieldRef",
        &[
            ("APIVersion", "apiVersion", Text),
            ("FieldPath", "fieldPath", Text),
        ],
    ),
    (
        "ResourceFieldRef",
        &[
            ("ContainerName", "containerName", Text),
            ("Resource", "resource", Text),
            ("Divisor", "divisor", Text),
        ],
    ),
    (
        "KeyRef",
        &[
            ("Name", "name", Text),
            ("Key", "key", Text),
            ("Optional", "optional", Plain),
        ],
    ),
    (
        "EnvFrom",
        &[
            ("Prefix", "prefix", Text),
            ("ConfigMapRef", "configMapRef", Maybe("OptionalRef")),
            ("SecretRef", "secretRef", Maybe("OptionalRef")),
        ],
    ),
    (
        "OptionalRef",
        &[("Name", "name", Text), ("Optional", "optional", Plain)],
    ),
    ("Reference", &[("Name", "name", Text)]),
    (
        "Mount",
        &[
            ("Name", "name", Text),
            ("ReadOnly", "readOnly", Flag),
            ("RecursiveReadOnly", "recursiveReadOnly", Plain),
            ("MountPath", "mountPath", Text),
            ("SubPath", "subPath", Text),
            ("MountPropagation", "mountPropagation", Plain),
            ("SubPathExpr", "subPathExpr", Text),
        ],
    ),
    (
        "Device",
        &[("Name", "name", Text), ("DevicePath", "devicePath", Text)],
    ),
    (
        "Probe",
        &[
            ("Exec", "exec", Maybe("Exec")),
            ("HTTPGet", "httpGet", Maybe("HTTPGet")),
            ("TCPSocket", "tcpSocket", Maybe("Socket")),
            ("GRPC", "grpc", Maybe("GRPC")),
            ("InitialDelaySeconds", "initialDelaySeconds", Number),
            ("TimeoutSeconds", "timeoutSeconds", Number),
            ("PeriodSeconds", "periodSeconds", Number),
            ("SuccessThreshold", "successThreshold", Number),
            ("FailureThreshold", "failureThreshold", Number),
            (
                "TerminationGracePeriodSeconds",
                "terminationGracePeriodSeconds",
                Plain,
            ),
        ],
    ),
    ("Exec", &[("Command", "command", Plain)]),
    (
        "HTTPGet",
        &[
            ("Path", "path", Text),
            ("Port", "port", Plain),
            ("Host", "host", Text),
            ("Scheme", "scheme", Text),
            ("HTTPHeaders", "httpHeaders", Many("Header")),
        ],
    ),
    ("Header", &[("Name", "name", Text), ("Value", "value", Text)]),
    ("Socket", &[("Port", "port", Plain), ("Host", "host", Text)]),
    ("GRPC", &[("Port", "port", Number), ("Service", "service", Plain)]),
    (
        "Lifecycle",
        &[
            ("PostStart", "postStart", Maybe("Hook")),
            ("PreStop", "preStop", Maybe("Hook")),
            ("StopSignal", "stopSignal", Plain),
        ],
    ),
    (
        "Hook",
        &[
            ("Exec", "exec", Maybe("Exec")),
            ("HTTPGet", "httpGet", Maybe("HTTPGet")),
            ("TCPSocket", "tcpSocket", Maybe("Socket")),
            ("Sleep", "sleep", Maybe("")),
        ],
    ),
    (
        "ContainerContext",
        &[
            ("Capabilities", "capabilities", Maybe("Capabilities")),
            ("Privileged", "privileged", Plain),
            ("SELinuxOptions", "seLinuxOptions", Maybe("SELinuxOptions")),
            ("WindowsOptions", "windowsOptions", Maybe("WindowsOptions")),
            ("RunAsUser", "runAsUser", Plain),
            ("RunAsGroup", "runAsGroup", Plain),
            ("RunAsNonRoot", "runAsNonRoot", Plain),
            ("ReadOnlyRootFilesystem", "readOnlyRootFilesystem", Plain),
            ("AllowPrivilegeEscalation", "allowPrivilegeEscalation", Plain),
            ("ProcMount", "procMount", Plain),
            ("SeccompProfile", "seccompProfile", Maybe("Profile")),
            ("AppArmorProfile", "appArmorProfile", Maybe("Profile")),
        ],
    ),
    ("Capabilities", &[("Add", "add", Plain), ("Drop", "drop", Plain)]),
    (
        "Profile",
        &[
            ("Type", "type", Text),
            ("LocalhostProfile", "localhostProfile", Plain),
        ],
    ),
    (
        "PodContext",
        &[
            ("HostNetwork", "hostNetwork", Flag),
            ("HostPID", "hostPID", Flag),
            ("HostIPC", "hostIPC", Flag),
            ("ShareProcessNamespace", "shareProcessNamespace", Plain),
            ("HostUsers", "hostUsers", Plain),
            ("SELinuxOptions", "seLinuxOptions", Maybe("SELinuxOptions")),
            ("WindowsOptions", "windowsOptions", Maybe("WindowsOptions")),
            ("RunAsUser", "runAsUser", Plain),
            ("RunAsGroup", "runAsGroup", Plain),
            ("RunAsNonRoot", "runAsNonRoot", Plain),
            ("SupplementalGroups", "supplementalGroups", Plain),
            ("SupplementalGroupsPolicy", "supplementalGroupsPolicy", Plain),
            ("FSGroup", "fsGroup", Plain),
            ("FSGroupChangePolicy", "fsGroupChangePolicy", Plain),
            ("Sysctls", "sysctls", Many("Header")),
            ("SeccompProfile", "seccompProfile", Maybe("Profile")),
            ("AppArmorProfile", "appArmorProfile", Maybe("Profile")),
            ("SELinuxChangePolicy", "seLinuxChangePolicy", Plain),
        ],
    ),
    (
        "Toleration",
        &[
            ("Key", "key", Text),
            ("Operator", "operator", Text),
            ("Value", "value", Text),
            ("Effect", "effect", Text),
            ("TolerationSeconds", "tolerationSeconds", Plain),
        ],
    ),
    (
        "HostAlias",
        &[("IP", "ip", Text), ("Hostnames", "hostnames", Plain)],
    ),
    (
        "DNSConfig",
        &[
            ("Nameservers", "nameservers", Plain),
            ("Searches", "searches", Plain),
            ("Options", "options", Many("Option")),
        ],
    ),
    ("Option", &[("Name", "name", Text), ("Value", "value", Plain)]),
    (
        "Spread",
        &[
            ("MaxSkew", "maxSkew", Number),
            ("TopologyKey", "topologyKey", Text),
            ("WhenUnsatisfiable", "whenUnsatisfiable", Text),
            ("LabelSelector", "labelSelector", Plain),
            ("MinDomains", "minDomains", Plain),
            ("NodeAffinityPolicy", "nodeAffinityPolicy", Plain),
            ("NodeTaintsPolicy", "nodeTaintsPolicy", Plain),
            ("MatchLabelKeys", "matchLabelKeys", Plain),
        ],
    ),
    (
        "Volume",
        &[
            ("Name", "name", Text),
            ("HostPath", "hostPath", Maybe("HostPath")),
            ("EmptyDir", "emptyDir", Maybe("EmptyDir")),
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
            ("GitRepo", "gitRepo", Maybe("GitRepo")),
            ("Secret", "secret", Maybe("SecretVolume")),
            ("NFS", "nfs", Maybe("NFS")),
            ("ISCSI", "iscsi", Maybe("ISCSI")),
            ("Glusterfs", "glusterfs", Maybe("Glusterfs")),
            ("PersistentVolumeClaim", "persistentVolumeClaim", Maybe("Claim")),
            ("RBD", "rbd", Maybe("RBD")),
            ("Quobyte", "quobyte", Maybe("Quobyte")),
            ("FlexVolume", "flexVolume", Maybe("FlexVolume")),
            ("Cinder", "cinder", Maybe("Cinder")),
            ("CephFS", "cephfs", Maybe("CephFS")),
            ("Flocker", "flocker", Maybe("Flocker")),
            ("DownwardAPI", "downwardAPI", Maybe("Files")),
            ("FC", "fc", Maybe("FC")),
            ("AzureFile", "azureFile", Maybe("AzureFile")),
            ("ConfigMap", "configMap", Maybe("ConfigMapVolume")),
            ("VsphereVolume", "vsphereVolume", Maybe("VsphereVolume")),
            ("AzureDisk", "azureDisk", Maybe("AzureDisk")),
            (
                "PhotonPersistentDisk",
                "photonPersistentDisk",
                Maybe("PhotonPersistentDisk"),
            ),
            ("Projected", "projected", Maybe("Projected")),
            ("PortworxVolume", "portworxVolume", Maybe("PortworxVolume")),
            ("ScaleIO", "scaleIO", Maybe("ScaleIO")),
            ("StorageOS", "storageos", Maybe("StorageOS")),
            ("CSI", "csi", Maybe("CSI")),
            ("Ephemeral", "ephemeral", Maybe("Ephemeral")),
            ("Image", "image", Maybe("Image")),
        ],
    ),
    ("HostPath", &[("Path", "path", Text), ("Type", "type", Plain)]),
    (
        "EmptyDir",
        &[("Medium", "medium", Text), ("SizeLimit", "sizeLimit", Plain)],
    ),
    (
        "SecretVolume",
        &[
            ("SecretName", "secretName", Text),
            ("Items", "items", Many("KeyToPath")),
            ("DefaultMode", "defaultMode", Plain),
            ("Optional", "optional", Plain),
        ],
    ),
    (
        "ConfigMapVolume",
        &[
            ("Name", "name", Text),
            ("Items", "items", Many("KeyToPath")),
            ("DefaultMode", "defaultMode", Plain),
            ("Optional", "optional", Plain),
        ],
    ),
    (
        "KeyToPath",
        &[
            ("Key", "key", Text),
            ("Path", "path", Text),
            ("Mode", "mode", Plain),
        ],
    ),
    (
        "NFS",
        &[
            ("Server", "server", Text),
            ("Path", "path", Text),
            ("ReadOnly", "readOnly", Flag),
        ],
    ),
    (
        "Claim",
        &[("ClaimName", "claimName", Text), ("ReadOnly", "readOnly", Flag)],
    ),
    (
        "Files",
        &[
            ("Items", "items", Many("File")),
            ("DefaultMode", "defaultMode", Plain),
        ],
    ),
    (
        "File",
        &[
            ("Path", "path", Text),
            ("FieldRef", "fieldRef", Maybe("FieldRef")),
            ("ResourceFieldRef", "resourceFieldRef", Maybe("ResourceFieldRef")),
            ("Mode", "mode", Plain),
        ],
    ),
    (
        "Projected",
        &[
            ("Sources", "sources", Many("Projection")),
            ("DefaultMode", "defaultMode", Plain),
        ],
    ),
    (
        "Projection",
        &[
            ("Secret", "secret", Maybe("ProjectedKeys")),
            ("DownwardAPI", "downwardAPI", Maybe("ProjectedFiles")),
            ("ConfigMap", "configMap", Maybe("ProjectedKeys")),
            ("ServiceAccountToken", "serviceAccountToken", Maybe("Token")),
            ("ClusterTrustBundle", "clusterTrustBundle", Maybe("")),
            ("PodCertificate", "podCertificate", Maybe("")),
        ],
    ),
    (
        "ProjectedKeys",
        &[
            ("Name", "name", Text),
            ("Items", "items", Many("KeyToPath")),
            ("Optional", "optional", Plain),
        ],
    ),
    ("ProjectedFiles", &[("Items", "items", Many("File"))]),
    (
        "Token",
        &[
            ("Audience", "audience", Text),
            ("ExpirationSeconds", "expirationSeconds", Number),
            ("Path", "path", Text),
        ],
    ),
];

const CONTAINER: Fields = &[
    ("Name", "name", Text),
    ("Image", "image", Text),
    ("Command", "command", Plain),
    ("Args", "args", Plain),
    ("WorkingDir", "workingDir", Text),
    ("Ports", "ports", Many("Port")),
    ("EnvFrom", "envFrom", Many("EnvFrom")),
    ("Env", "env", Many("EnvVar")),
    ("Resources", "resources", Always("Resources")),
    ("ResizePolicy", "resizePolicy", Many("")),
    ("RestartPolicy", "restartPolicy", Plain),
    ("RestartPolicyRules", "restartPolicyRules", Many("")),
    ("VolumeMounts", "volumeMounts", Many("Mount")),
    ("VolumeDevices", "volumeDevices", Many("Device")),
    ("LivenessProbe", "livenessProbe", Maybe("Probe")),
    ("ReadinessProbe", "readinessProbe", Maybe("Probe")),
    ("StartupProbe", "startupProbe", Maybe("Probe")),
    ("Lifecycle", "lifecycle", Maybe("Lifecycle")),
    ("TerminationMessagePath", "terminationMessagePath", Text),
    ("TerminationMessagePolicy", "terminationMessagePolicy", Text),
    ("ImagePullPolicy", "imagePullPolicy", Text),
    ("SecurityContext", "securityContext", Maybe("ContainerContext")),
    ("Stdin", "stdin", Flag),
    ("StdinOnce", "stdinOnce", Flag),
    ("TTY", "tty", Flag),
];
