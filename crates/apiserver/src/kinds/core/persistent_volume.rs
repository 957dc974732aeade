//! PersistentVolumes.

use serde_json::{Value, json};

use crate::{
    kinds::{
        amounts::nano,
        kind_def::{KindDef, fields, protect},
        pod_spec,
        storage::csi_driver::named_driver,
    },
    names,
    object::{
        Object, field,
        tree::{Errors, IMMUTABLE, below, default, list, made, object, object_mut, same, text},
    },
    printer::{AGE, NAME, Printer, UNSET, View, wide, words},
    resource::Surroundings,
    status::FieldError,
};

const MODES: [&str; 4] = [
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];

pub(super) const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];

/// The sources of volumes in the order in which they are checked.
const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

pub(super) static DEF: KindDef = KindDef {
    short: &["pv"],
    subresources: &["status"],
    defaults: |volume| {
        let spec = made(volume, "spec");
        default(spec, "persistentVolumeReclaimPolicy", "Retain");
        default(spec, "volumeMode", "Filesystem");
        pod_spec::source_defaults(spec);
        if let Some(status) = object_mut(volume, "status") {
            default(status, "phase", "Pending");
        }
    },
    created: |volume| {
        volume.insert("status".to_owned(), json!({"phase": "Pending"}));
        protect(volume, "kubernetes.io/pv-protection");
    },
    placed: |subresource, volume, old, around| {
        if old.is_none() || subresource == "status" {
            date_phase(volume, old, around);
        }
        Ok(())
    },
    returns_object: true,
    errors: volume,
    changes: Some(volume_changes),
    warnings: |volume, _| warnings(volume),
    selectable: Some(|volume| fields([("name", field(volume, "name"))])),
    printer: Printer::of(&[
        NAME,
        words("Capacity", ".spec.capacity")
            .at("spec.capacity.storage")
            .or("0"),
        words("Access Modes", ".spec.accessModes")
            .shows(|volume| modes(volume.list("spec.accessModes")).into()),
        words("Reclaim Policy", ".spec.persistentVolumeReclaimPolicy"),
        words("Status", ".status.phase").shows(phase),
        words("Claim", ".spec.claimRef").shows(|volume| {
            let claim = volume.at("spec.claimRef").map(|_| {
                format!(
                    "{}/{}",
                    volume.text("spec.claimRef.namespace"),
                    volume.text("spec.claimRef.name")
                )
            });
            claim.unwrap_or_default().into()
        }),
        words("StorageClass", "StorageClass of the pv").shows(class),
        words("VolumeAttributesClass", "VolumeAttributesClass of the pv")
            .at("spec.volumeAttributesClassName")
            .or(UNSET),
        words("Reason", ".status.reason"),
        AGE,
        wide("VolumeMode", ".spec.volumeMode").or(UNSET),
    ]),
    ..KindDef::of::<k8s_openapi::api::core::v1::PersistentVolume>()
};

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
    if capacity.len() != 1 || !capacity.contains_key("storage") {
        errors.push(FieldError::not_supported(
            "spec.capacity",
            spec.get("capacity").cloned().unwrap_or_default(),
            &["storage"],
        ));
    }
    for (name, amount) in capacity {
        positive(Some(amount), &format!("spec.capacity[{name}]"), errors);
    }
    let policy = text(spec, "persistentVolumeReclaimPolicy");
    if !policy.is_empty() {
        errors.one_of(
            "spec.persistentVolumeReclaimPolicy",
            policy,
            &["Delete", "Recycle", "Retain"],
        );
    }
    if let Some(affinity) = object(spec, "nodeAffinity") {
        match object(affinity, "required") {
            Some(required) => pod_spec::node_selector(required, "spec.nodeAffinity.required", errors),
            None => errors.required(
                "spec.nodeAffinity.required",
                "must specify required node constraints",
            ),
        }
    }
    sources(spec, errors);
    let path = text(below(spec, "hostPath"), "path");
    let root = path.starts_with('/') && path.split('/').all(|step| matches!(step, "" | "."));
    if root && policy == "Recycle" {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        errors.forbidden("spec.persistentVolumeReclaimPolicy", detail);
    }
    storage_class(spec, errors);
    if let Some(Value::String(mode)) = spec.get("volumeMode") {
        errors.one_of("spec.volumeMode", mode, &VOLUME_MODES);
    }
    if let Some(Value::String(class)) = spec.get("volumeAttributesClassName") {
        let field = "spec.volumeAttributesClassName";
        if class.is_empty() {
            errors.required(field, "an empty string is disallowed");
        } else {
            errors.all_invalid(field, class.as_str(), names::dns_subdomain(class, false));
        }
        if object(spec, "csi").is_none() {
            let detail = "has to be specified when using volumeAttributesClassName";
            errors.required("spec.csi", detail);
        }
    }
}

/// The name of a storage class, of a volume or a claim.
pub(super) fn storage_class(spec: &Object, errors: &mut Errors) {
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        let problems = names::dns_subdomain(class, false);
        errors.all_invalid("spec.storageClassName", class, problems);
    }
}

/// A volume has one source.
fn sources(spec: &Object, errors: &mut Errors) {
    let mut given = 0;
    for kind in SOURCES {
        let Some(source) = object(spec, kind) else {
            continue;
        };
        let path = format!("spec.{kind}");
        given += 1;
        if given > 1 {
            errors.forbidden(path, "may not specify more than 1 volume type");
            continue;
        }
        match kind {
            "csi" => csi(source, errors),
            "local" => {
                errors.needs(source, &path, "path");
                if text(source, "path").split('/').any(|step| step == "..") {
                    errors.invalid("spec.local.path", text(source, "path"), "must not contain '..'");
                }
                if object(spec, "nodeAffinity").is_none() {
                    errors.required("spec.nodeAffinity", "Local volume requires node affinity");
                }
            }
            _ => pod_spec::volume_source(kind, source, &path, errors),
        }
    }
    if given == 0 {
        errors.required("spec", "must specify a volume type");
    }
}

/// A rule for names.
type Rule = fn(&str, bool) -> Vec<String>;

fn csi(source: &Object, errors: &mut Errors) {
    named_driver(text(source, "driver"), "spec.csi.driver", errors);
    errors.needs(source, "spec.csi", "volumeHandle");
    for key in [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ] {
        let Some(secret) = object(source, key) else {
            continue;
        };
        for (part, rule) in [
            ("name", names::dns_subdomain as Rule),
            ("namespace", names::dns_label as Rule),
        ] {
            let (value, field) = (text(secret, part), format!("spec.csi.{key}.{part}"));
            match value {
                "" => errors.required(field, ""),
                value => errors.all_invalid(&field, value, rule(value, false)),
            }
        }
    }
}

/// The one secret of a source that may be added.
const EXPAND: &str = "controllerExpandSecretRef";

fn volume_changes(new: &Object, old: &Object, errors: &mut Errors) {
    volume(new, errors);
    let (before, after) = (below(old, "spec"), below(new, "spec"));
    let source = |spec: &Object| {
        let mut source = spec.clone();
        source.retain(|key, _| SOURCES.contains(&key.as_str()));
        source
    };
    let (was, mut is) = (source(before), source(after));
    if object(&was, "csi").is_some_and(|csi| !csi.contains_key(EXPAND))
        && let Some(csi) = object_mut(&mut is, "csi")
    {
        csi.remove(EXPAND);
    }
    if was != is {
        let diff = pod_spec::internal::difference("PersistentVolumeSource", &was, &is);
        let detail = format!("spec.persistentvolumesource is immutable after creation\n{diff}");
        errors.forbidden("spec.persistentvolumesource", &detail);
    }
    let shown = |key: &str| after.get(key).cloned().unwrap_or(Value::Null);
    if !same(before.get("volumeMode"), after.get("volumeMode")) {
        errors.invalid("volumeMode", shown("volumeMode"), IMMUTABLE);
    }
    let fixed = before.contains_key("nodeAffinity");
    if fixed && !same(before.get("nodeAffinity"), after.get("nodeAffinity")) {
        let detail = "field is immutable, except for updating from beta label to GA";
        errors.invalid("nodeAffinity", shown("nodeAffinity"), detail);
    }
    let class = "volumeAttributesClassName";
    if before.contains_key(class) && !after.contains_key(class) {
        errors.required(class, "update from non-nil value to nil is forbidden");
    }
}

/// A new phase is dated.
fn date_phase(volume: &mut Object, old: Option<&Object>, around: &dyn Surroundings) {
    const KEY: &str = "lastPhaseTransitionTime";
    let was = old.map(|old| below(old, "status"));
    let status = made(volume, "status");
    let changed = was.is_none_or(|was| text(was, "phase") != text(status, "phase"));
    if changed && status.get(KEY) == was.and_then(|was| was.get(KEY)) {
        status.insert(KEY.to_owned(), around.now().into());
    }
}

fn warnings(volume: &Object) -> Vec<String> {
    let spec = below(volume, "spec");
    let mut found = Vec::new();
    if text(spec, "persistentVolumeReclaimPolicy") == "Recycle" {
        found.push("spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.".to_owned());
    }
    found.extend(pod_spec::deprecated_volumes(spec, "spec"));
    found
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
