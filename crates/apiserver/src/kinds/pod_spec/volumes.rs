//! Volumes of a pod.

use super::{
    containers::{Volumes, backsteps, descending, mode},
    env::{self, VOLUME_FIELDS},
};
use crate::{
    names,
    object::{
        Object,
        tree::{Errors, items, list, number, object, text},
    },
};

const HOST_PATH_TYPES: [&str; 8] = [
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];

/// The sources of volumes in the order in which they are checked, and the fields of each that may not be empty.
const NEEDED: &[(&str, &[&str])] = &[
    ("emptyDir", &[]),
    ("hostPath", &["path"]),
    ("gitRepo", &["repository"]),
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("secret", &["secretName"]),
    ("nfs", &["server", "path"]),
    ("iscsi", &["targetPortal", "iqn"]),
    ("glusterfs", &["endpoints", "path"]),
    ("persistentVolumeClaim", &["claimName"]),
    ("rbd", &["image"]),
    ("cinder", &["volumeID"]),
    ("cephfs", &[]),
    ("flocker", &[]),
    ("downwardAPI", &[]),
    ("fc", &[]),
    ("azureFile", &["secretName", "shareName"]),
    ("configMap", &["name"]),
    ("vsphereVolume", &["volumePath"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("photonPersistentDisk", &["pdID"]),
    ("projected", &[]),
    ("portworxVolume", &["volumeID"]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
    ("storageos", &[]),
    ("quobyte", &["registry", "volume"]),
    ("flexVolume", &["driver"]),
    ("csi", &["driver"]),
    ("ephemeral", &[]),
    ("image", &[]),
];

/// Checks the volumes; returns the good ones, which containers may mount.
pub(super) fn validate<'a>(spec: &'a Object, path: &str, errors: &mut Errors) -> Volumes<'a> {
    let mut good = Volumes::new();
    for (at, volume) in list(spec, "volumes").iter().enumerate() {
        let Some(volume) = volume.as_object() else {
            continue;
        };
        let path = format!("{path}.volumes[{at}]");
        let mut own = Errors::default();
        source(volume, &path, &mut own);
        let name = text(volume, "name");
        let field = format!("{path}.name");
        if name.is_empty() {
            own.required(&field, "");
        } else {
            own.all_invalid(&field, name, names::dns_label(name, false));
        }
        if good.contains_key(name) {
            own.duplicate(&field, name);
        }
        if own.0.is_empty() {
            good.insert(name, volume);
        }
        errors.extend(own.0);
    }
    good
}

fn source(volume: &Object, path: &str, errors: &mut Errors) {
    let mut given = 0;
    for (kind, needed) in NEEDED {
        let Some(source) = object(volume, kind) else {
            continue;
        };
        let path = format!("{path}.{kind}");
        if given > 0 {
            errors.forbidden(path, "may not specify more than 1 volume type");
            continue;
        }
        given += 1;
        for key in *needed {
            errors.needs(source, &path, key);
        }
        special(kind, source, &path, errors);
    }
    if given == 0 {
        errors.required(path, "must specify a volume type");
    }
}

fn special(kind: &str, source: &Object, path: &str, errors: &mut Errors) {
    match kind {
        "hostPath" => {
            if backsteps(text(source, "path")) {
                errors.invalid(
                    format!("{path}.path"),
                    text(source, "path"),
                    "must not contain '..'",
                );
            }
            errors.one_of(format!("{path}.type"), text(source, "type"), &HOST_PATH_TYPES);
        }
        "emptyDir" => {
            let negative = source
                .get("sizeLimit")
                .and_then(super::resources::amount)
                .is_some_and(|size| size < 0);
            if negative {
                errors.forbidden(
                    format!("{path}.sizeLimit"),
                    "SizeLimit field must be a valid resource quantity",
                );
            }
        }
        "secret" | "configMap" => {
            mode(source, path, "defaultMode", errors);
            env::key_to_path(source, path, errors);
        }
        "nfs" => {
            let place = text(source, "path");
            if !place.is_empty() && !place.starts_with('/') {
                errors.invalid(format!("{path}.path"), place, "must be an absolute path");
            }
        }
        "gitRepo" => descending(text(source, "directory"), &format!("{path}.directory"), errors),
        "downwardAPI" => {
            mode(source, path, "defaultMode", errors);
            downward(source, path, errors);
        }
        "projected" => projected(source, path, errors),
        "ephemeral" if object(source, "volumeClaimTemplate").is_none() => {
            errors.required(format!("{path}.volumeClaimTemplate"), "");
        }
        "csi" if !text(source, "driver").is_empty() => {
            let driver = text(source, "driver");
            if driver.len() > 63 {
                errors.invalid(
                    format!("{path}.driver"),
                    driver,
                    "must be no more than 63 characters",
                );
            }
            errors.all_invalid(
                &format!("{path}.driver"),
                driver,
                names::dns_subdomain(&driver.to_lowercase(), false),
            );
        }
        _ => {}
    }
}

fn downward(source: &Object, path: &str, errors: &mut Errors) {
    for (path, file) in items(source, "items", path) {
        let place = text(file, "path");
        if place.is_empty() {
            errors.required(format!("{path}.path"), "");
        }
        env::local_file(place, &format!("{path}.path"), errors);
        match (object(file, "fieldRef"), object(file, "resourceFieldRef")) {
            (Some(field), other) => {
                env::field_ref(field, &format!("{path}.fieldRef"), &VOLUME_FIELDS, errors);
                if other.is_some() {
                    errors.invalid(
                        &path,
                        "resource",
                        "fieldRef and resourceFieldRef can not be specified simultaneously",
                    );
                }
            }
            (None, Some(resource)) => {
                env::resource_ref(resource, &format!("{path}.resourceFieldRef"), true, errors);
            }
            (None, None) => errors.required(&path, "one of fieldRef and resourceFieldRef is required"),
        }
        mode(file, &path, "mode", errors);
    }
}

fn projected(source: &Object, path: &str, errors: &mut Errors) {
    mode(source, path, "defaultMode", errors);
    for (path, one) in items(source, "sources", path) {
        let mut given = 0;
        for key in [
            "secret",
            "configMap",
            "downwardAPI",
            "serviceAccountToken",
            "clusterTrustBundle",
            "podCertificate",
        ] {
            let Some(part) = object(one, key) else { continue };
            given += 1;
            let path = format!("{path}.{key}");
            match key {
                _ if given > 1 => {
                    errors.forbidden(&path, "may not specify more than 1 volume type per source");
                }
                "secret" | "configMap" => {
                    errors.needs(part, &path, "name");
                    env::key_to_path(part, &path, errors);
                }
                "downwardAPI" => downward(part, &path, errors),
                "serviceAccountToken" => token(part, &path, errors),
                _ => {}
            }
        }
        if given == 0 {
            errors.required(path, "must specify a source");
        }
    }
}

fn token(token: &Object, path: &str, errors: &mut Errors) {
    let seconds = number(token, "expirationSeconds").unwrap_or(3600);
    let field = format!("{path}.expirationSeconds");
    if seconds < 600 {
        errors.invalid(&field, seconds, "may not specify a duration less than 10 minutes");
    }
    if seconds > 1 << 32 {
        errors.invalid(
            &field,
            seconds,
            "may not specify a duration larger than 2^32 seconds",
        );
    }
    let place = text(token, "path");
    if place.is_empty() {
        errors.required(format!("{path}.path"), "");
    } else {
        env::local_file(place, &format!("{path}.path"), errors);
    }
}
