//! Volumes, claims, and the classes and drivers that make them.

use serde_json::Value;

use super::{
    Printer,
    column::{AGE, NAME, boolean, number, text, wide},
    view::{UNSET, View},
};

pub(super) const PRINTERS: &[Printer] = &[
    Printer {
        group: "",
        kind: "PersistentVolume",
        columns: &[
            NAME,
            text("Capacity", ".spec.capacity"),
            text("Access Modes", ".spec.accessModes"),
            text("Reclaim Policy", ".spec.persistentVolumeReclaimPolicy"),
            text("Status", ".status.phase"),
            text("Claim", ".spec.claimRef"),
            text("StorageClass", "StorageClass of the pv"),
            text("VolumeAttributesClass", "VolumeAttributesClass of the pv"),
            text("Reason", ".status.reason"),
            AGE,
            wide("VolumeMode", ".spec.volumeMode"),
        ],
        cells: |volume| {
            let claim = volume.at("spec.claimRef").map(|_| {
                format!(
                    "{}/{}",
                    volume.text("spec.claimRef.namespace"),
                    volume.text("spec.claimRef.name")
                )
            });
            vec![
                volume.name(),
                volume.or("spec.capacity.storage", "0"),
                modes(volume.list("spec.accessModes")).into(),
                volume.text("spec.persistentVolumeReclaimPolicy").into(),
                phase(volume),
                claim.unwrap_or_default().into(),
                class(volume),
                volume.or("spec.volumeAttributesClassName", UNSET),
                volume.text("status.reason").into(),
                volume.age(),
                volume.or("spec.volumeMode", UNSET),
            ]
        },
    },
    Printer {
        group: "",
        kind: "PersistentVolumeClaim",
        columns: &[
            NAME,
            text("Status", ".status.phase"),
            text("Volume", ".spec.volumeName"),
            text("Capacity", ".status.capacity"),
            text("Access Modes", ".status.accessModes"),
            text("StorageClass", "StorageClass of the pvc"),
            text("VolumeAttributesClass", "VolumeAttributesClass of the pvc"),
            AGE,
            wide("VolumeMode", ".spec.volumeMode"),
        ],
        cells: |claim| {
            let bound = !claim.text("spec.volumeName").is_empty();
            let capacity = if bound {
                claim.or("status.capacity.storage", "0")
            } else {
                "".into()
            };
            let modes = if bound {
                modes(claim.list("status.accessModes"))
            } else {
                String::new()
            };
            vec![
                claim.name(),
                phase(claim),
                claim.text("spec.volumeName").into(),
                capacity,
                modes.into(),
                class(claim),
                claim.or("spec.volumeAttributesClassName", UNSET),
                claim.age(),
                claim.or("spec.volumeMode", UNSET),
            ]
        },
    },
    Printer {
        group: "storage.k8s.io",
        kind: "StorageClass",
        columns: &[
            NAME,
            text("Provisioner", ".provisioner"),
            text("ReclaimPolicy", ".reclaimPolicy"),
            text("VolumeBindingMode", ".volumeBindingMode"),
            text("AllowVolumeExpansion", ".allowVolumeExpansion"),
            AGE,
        ],
        cells: |class| {
            const DEFAULT: [&str; 2] = [
                "storageclass.kubernetes.io/is-default-class",
                "storageclass.beta.kubernetes.io/is-default-class",
            ];
            let default = DEFAULT.into_iter().any(|name| class.annotation(name) == "true");
            let mark = if default { " (default)" } else { "" };
            vec![
                format!("{}{mark}", class.text("metadata.name")).into(),
                class.text("provisioner").into(),
                class.or("reclaimPolicy", "Delete"),
                class.or("volumeBindingMode", "Immediate"),
                class.flag("allowVolumeExpansion").into(),
                class.age(),
            ]
        },
    },
    Printer {
        group: "storage.k8s.io",
        kind: "VolumeAttachment",
        columns: &[
            NAME,
            text("Attacher", ".spec.attacher"),
            text("PV", ".spec.source.persistentVolumeName"),
            text("Node", ".spec.nodeName"),
            boolean("Attached", ".status.attached"),
            AGE,
        ],
        cells: |attachment| {
            vec![
                attachment.name(),
                attachment.text("spec.attacher").into(),
                attachment.text("spec.source.persistentVolumeName").into(),
                attachment.text("spec.nodeName").into(),
                attachment.flag("status.attached").into(),
                attachment.age(),
            ]
        },
    },
    Printer {
        group: "storage.k8s.io",
        kind: "CSINode",
        columns: &[
            NAME,
            number(
                "Drivers",
                "Drivers indicates the number of CSI drivers registered on the node",
            ),
            AGE,
        ],
        cells: |node| vec![node.name(), node.count("spec.drivers").into(), node.age()],
    },
    Printer {
        group: "storage.k8s.io",
        kind: "CSIDriver",
        columns: &[
            NAME,
            boolean("AttachRequired", ".spec.attachRequired"),
            boolean("PodInfoOnMount", ".spec.podInfoOnMount"),
            boolean("StorageCapacity", ".spec.storageCapacity"),
            text("TokenRequests", ".spec.tokenRequests"),
            boolean("RequiresRepublish", ".spec.requiresRepublish"),
            text("Modes", ".spec.volumeLifecycleModes"),
            AGE,
        ],
        cells: |driver| {
            let attach = driver
                .at("spec.attachRequired")
                .and_then(Value::as_bool)
                .unwrap_or(true);
            let audiences: Vec<&str> = driver
                .list("spec.tokenRequests")
                .iter()
                .map(|request| request["audience"].as_str().unwrap_or_default())
                .collect();
            let tokens = if audiences.is_empty() {
                UNSET.to_owned()
            } else {
                audiences.join(",")
            };
            let modes: Vec<&str> = driver
                .list("spec.volumeLifecycleModes")
                .iter()
                .filter_map(Value::as_str)
                .collect();
            let modes = if modes.is_empty() {
                super::view::NONE.to_owned()
            } else {
                modes.join(",")
            };
            vec![
                driver.name(),
                attach.into(),
                driver.flag("spec.podInfoOnMount").into(),
                driver.flag("spec.storageCapacity").into(),
                tokens.into(),
                driver.flag("spec.requiresRepublish").into(),
                modes.into(),
                driver.age(),
            ]
        },
    },
    Printer {
        group: "storage.k8s.io",
        kind: "CSIStorageCapacity",
        columns: &[
            NAME,
            text("StorageClassName", ".storageClassName"),
            text("Capacity", ".capacity"),
        ],
        cells: |capacity| {
            let class = capacity.text("storageClassName");
            vec![capacity.name(), class.into(), capacity.or("capacity", UNSET)]
        },
    },
];

fn phase(object: &View<'_>) -> Value {
    if object.leaving() {
        "Terminating".into()
    } else {
        object.text("status.phase").into()
    }
}

/// The storage class: an old annotation comes before the field.
fn class(object: &View<'_>) -> Value {
    match object.annotation("volume.beta.kubernetes.io/storage-class") {
        "" => object.text("spec.storageClassName").into(),
        class => class.into(),
    }
}

/// Access modes in short, in this order.
fn modes(modes: &[Value]) -> String {
    const SHORT: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let found: Vec<&str> = SHORT
        .into_iter()
        .filter(|(mode, _)| modes.iter().any(|one| one == mode))
        .map(|(_, short)| short)
        .collect();
    found.join(",")
}
