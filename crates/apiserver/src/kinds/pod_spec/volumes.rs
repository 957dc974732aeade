//! Volumes of a pod.

use serde_json::Value;

use super::{
    containers::{Volumes, backsteps, descending, mode},
    env::{self, VOLUME_FIELDS},
};
use crate::{
    names,
    object::{
        Object,
        tree::{Errors, count, flag, items, list, number, object, text},
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
    ("rbd", &["monitors", "image"]),
    ("cinder", &["volumeID"]),
    ("cephfs", &["monitors"]),
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
    ("image", &["reference"]),
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
    for (kind, _) in NEEDED {
        let Some(source) = object(volume, kind) else {
            continue;
        };
        let path = format!("{path}.{kind}");
        if given > 0 {
            errors.forbidden(path, "may not specify more than 1 volume type");
            continue;
        }
        given += 1;
        volume_source(kind, source, &path, errors);
    }
    if given == 0 {
        errors.required(path, "must specify a volume type");
    }
}

/// The errors in one source of a volume, wherever it stands.
pub(crate) fn volume_source(kind: &str, source: &Object, path: &str, errors: &mut Errors) {
    let needed = NEEDED.iter().find(|(known, _)| *known == kind);
    for key in needed.map_or(&[][..], |(_, keys)| keys) {
        if source
            .get(*key)
            .is_none_or(|value| value == "" || value.as_array().is_some_and(Vec::is_empty))
        {
            errors.required(format!("{path}.{key}"), "");
        }
    }
    special(kind, source, path, errors);
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
        "iscsi" => {
            let lun = count(source, "lun");
            if !(0..=255).contains(&lun) {
                errors.invalid(format!("{path}.lun"), lun, "must be between 0 and 255, inclusive");
            }
            let iqn = text(source, "iqn");
            if !iqn.is_empty()
                && !["iqn.", "eui.", "naa."]
                    .iter()
                    .any(|start| iqn.starts_with(start))
            {
                errors.invalid(format!("{path}.iqn"), iqn, "must be valid format");
            }
            let secret = flag(source, "chapAuthDiscovery") || flag(source, "chapAuthSession");
            if secret && object(source, "secretRef").is_none() {
                errors.required(format!("{path}.secretRef"), "");
            }
        }
        "fc" => match (
            list(source, "targetWWNs").is_empty(),
            list(source, "wwids").is_empty(),
        ) {
            (true, true) => errors.required(
                format!("{path}.targetWWNs"),
                "must specify either targetWWNs or wwids, but not both",
            ),
            (false, false) => errors.invalid(
                format!("{path}.targetWWNs"),
                source.get("targetWWNs").cloned().unwrap_or_default(),
                "targetWWNs and wwids can not be specified simultaneously",
            ),
            (false, true) if number(source, "lun").is_none() => errors.required(
                format!("{path}.lun"),
                "lun is required if targetWWNs is specified",
            ),
            _ => {}
        },
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
    let whole = path;
    let mut places: Vec<&str> = Vec::new();
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
            let own = list(part, "items").iter().filter_map(Value::as_object);
            for place in own
                .chain([part])
                .map(|file| text(file, "path"))
                .filter(|place| !place.is_empty())
            {
                if places.contains(&place) {
                    let named = [text(part, "name"), place];
                    let shown = named
                        .into_iter()
                        .find(|text| !text.is_empty())
                        .unwrap_or_default();
                    errors.invalid(whole, shown, "conflicting duplicate paths");
                }
                places.push(place);
            }
        }
        if given == 0 {
            errors.required(path, "must specify a source");
        }
    }
}

fn token(token: &Object, path: &str, errors: &mut Errors) {
    let seconds = number(token, "expirationSeconds").unwrap_or(3600);
    token_seconds(seconds, &format!("{path}.expirationSeconds"), errors);
    let place = text(token, "path");
    if place.is_empty() {
        errors.required(format!("{path}.path"), "");
    } else {
        env::local_file(place, &format!("{path}.path"), errors);
    }
}

/// The life of a token, in seconds.
pub(crate) fn token_seconds(seconds: i64, field: &str, errors: &mut Errors) {
    if seconds < 600 {
        errors.invalid(field, seconds, "may not specify a duration less than 10 minutes");
    }
    if seconds > 1 << 32 {
        errors.invalid(
            field,
            seconds,
            "may not specify a duration larger than 2^32 seconds",
        );
    }
}
