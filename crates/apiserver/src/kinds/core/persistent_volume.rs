//! PersistentVolumes.

use serde_json::{Value, json};

use crate::{
    kinds::{
        amounts::nano,
        kind_def::{KindDef, fields},
    },
    names,
    object::{
        Object, field, metadata_mut,
        tree::{Errors, below, default, list, made, object, object_mut, same, text},
    },
    printer::{AGE, NAME, Printer, UNSET, View, wide, words},
};

const MODES: [&str; 4] = [
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];

pub(super) const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];

/// Fields of a volume's spec that are not its source.
const NOT_SOURCES: [&str; 9] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

pub(super) static DEF: KindDef = KindDef {
    short: &["pv"],
    subresources: &["status"],
    defaults: |volume| {
        let spec = made(volume, "spec");
        default(spec, "persistentVolumeReclaimPolicy", "Retain");
        default(spec, "volumeMode", "Filesystem");
        if let Some(status) = object_mut(volume, "status") {
            default(status, "phase", "Pending");
        }
    },
    created: |volume| {
        volume.insert("status".to_owned(), json!({"phase": "Pending"}));
        protect(volume, "kubernetes.io/pv-protection");
    },
    errors: volume,
    changes: Some(volume_changes),
    selectable: Some(|volume| fields([("name", field(volume, "name"))])),
    printer: Printer::new(
        &[
            NAME,
            words("Capacity", ".spec.capacity"),
            words("Access Modes", ".spec.accessModes"),
            words("Reclaim Policy", ".spec.persistentVolumeReclaimPolicy"),
            words("Status", ".status.phase"),
            words("Claim", ".spec.claimRef"),
            words("StorageClass", "StorageClass of the pv"),
            words("VolumeAttributesClass", "VolumeAttributesClass of the pv"),
            words("Reason", ".status.reason"),
            AGE,
            wide("VolumeMode", ".spec.volumeMode"),
        ],
        |volume| {
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
    ),
    ..KindDef::of::<k8s_openapi::api::core::v1::PersistentVolume>()
};

/// The finalizer that keeps what is in use.
pub(super) fn protect(object: &mut Object, finalizer: &str) {
    let finalizers = metadata_mut(object)
        .entry("finalizers")
        .or_insert_with(|| json!([]));
    if let Value::Array(finalizers) = finalizers
        && !finalizers.iter().any(|known| known == finalizer)
    {
        finalizers.push(finalizer.into());
    }
}

pub(super) fn access_modes(spec: &Object, none: &str, errors: &mut Errors) {
    let modes = list(spec, "accessModes");
    if modes.is_empty() {
        errors.required("spec.accessModes", none);
    }
    for mode in modes.iter().filter_map(Value::as_str) {
        errors.one_of("spec.accessModes", mode, &MODES);
    }
    if modes.len() > 1 && modes.iter().any(|mode| mode == "ReadWriteOncePod") {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.forbidden("spec.accessModes", detail);
    }
}

pub(super) fn positive(amount: Option<&Value>, field: &str, errors: &mut Errors) {
    match amount {
        None => errors.required(field, ""),
        Some(amount) if nano(amount).is_none_or(|amount| amount <= 0) => {
            errors.invalid(field, amount.clone(), "must be greater than zero");
        }
        Some(_) => {}
    }
}

fn volume(volume: &Object, errors: &mut Errors) {
    let spec = below(volume, "spec");
    access_modes(spec, "", errors);
    let capacity = below(spec, "capacity");
    if capacity.is_empty() {
        errors.required("spec.capacity", "");
    }
    if capacity.len() > 1 || !capacity.is_empty() && !capacity.contains_key("storage") {
        errors.push(crate::status::FieldError::not_supported(
            "spec.capacity",
            spec.get("capacity").cloned().unwrap_or_default(),
            &["storage"],
        ));
    } else if let Some(storage) = capacity.get("storage") {
        positive(Some(storage), "spec.capacity[storage]", errors);
    }
    let policy = text(spec, "persistentVolumeReclaimPolicy");
    errors.one_of(
        "spec.persistentVolumeReclaimPolicy",
        policy,
        &["Delete", "Recycle", "Retain"],
    );
    let mut sources = spec.keys().filter(|key| !NOT_SOURCES.contains(&key.as_str()));
    if sources.next().is_none() {
        errors.required("spec", "must specify a volume type");
    }
    for source in sources {
        let field = format!("spec.{source}");
        errors.forbidden(field, "may not specify more than 1 volume type");
    }
    if let Some(path) = object(spec, "hostPath") {
        errors.needs(path, "spec.hostPath", "path");
        if text(path, "path") == "/" && policy == "Recycle" {
            let detail = "may not be 'recycle' for a hostPath mount of '/'";
            errors.forbidden("spec.persistentVolumeReclaimPolicy", detail);
        }
    }
    if let Some(csi) = object(spec, "csi") {
        errors.needs(csi, "spec.csi", "driver");
        errors.needs(csi, "spec.csi", "volumeHandle");
    }
    if let Some(nfs) = object(spec, "nfs") {
        errors.needs(nfs, "spec.nfs", "server");
        errors.needs(nfs, "spec.nfs", "path");
    }
    if object(spec, "local").is_some() && object(spec, "nodeAffinity").is_none() {
        errors.required("spec.nodeAffinity", "Local volume requires node affinity");
    }
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        let problems = names::dns_subdomain(class, false);
        errors.all_invalid("spec.storageClassName", class, problems);
    }
    if let Some(Value::String(mode)) = spec.get("volumeMode") {
        errors.one_of("spec.volumeMode", mode, &VOLUME_MODES);
    }
}

fn volume_changes(new: &Object, old: &Object, errors: &mut Errors) {
    volume(new, errors);
    let source = |object: &Object| {
        let mut spec = below(object, "spec").clone();
        spec.retain(|key, _| !NOT_SOURCES.contains(&key.as_str()));
        spec
    };
    if source(new) != source(old) {
        errors.forbidden(
            "spec.persistentvolumesource",
            "spec.persistentvolumesource is immutable after creation",
        );
    }
    let (before, after) = (below(old, "spec"), below(new, "spec"));
    if !same(before.get("volumeMode"), after.get("volumeMode")) {
        errors.immutable(after, before, "spec", "volumeMode");
    }
}

pub(super) fn phase(object: &View<'_>) -> Value {
    if object.leaving() {
        "Terminating".into()
    } else {
        object.text("status.phase").into()
    }
}

/// The storage class: an old annotation comes before the field.
pub(super) fn class(object: &View<'_>) -> Value {
    match object.annotation("volume.beta.kubernetes.io/storage-class") {
        "" => object.text("spec.storageClassName").into(),
        class => class.into(),
    }
}

/// Access modes in short, in this order.
pub(super) fn modes(modes: &[Value]) -> String {
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
