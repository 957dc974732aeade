//! Environment variables and where they come from.

use serde_json::Value;

use crate::{
    names,
    object::{
        Object,
        tree::{Errors, items, object, text},
    },
};

/// The fields that a `fieldRef` of an environment variable may name.
const ENV_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// The fields that a `fieldRef` of a volume may name.
pub(super) const VOLUME_FIELDS: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];

/// The fields of a pod that have a name in the downward API at all.
const KNOWN_FIELDS: [&str; 15] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.host",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.phase",
    "status.podIP",
    "status.podIPs",
];

const RESOURCE_FIELDS: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

const SOURCES: [&str; 5] = [
    "fieldRef",
    "resourceFieldRef",
    "configMapKeyRef",
    "secretKeyRef",
    "fileKeyRef",
];

const ONE: &str = "may not have more than one field specified at a time";

pub(super) fn validate(container: &Object, path: &str, errors: &mut Errors) {
    for (path, variable) in items(container, "env", path) {
        let name = text(variable, "name");
        if name.is_empty() {
            errors.required(format!("{path}.name"), "");
        } else {
            errors.all_invalid(&format!("{path}.name"), name, names::env_name(name));
        }
        if let Some(source) = object(variable, "valueFrom") {
            value_from(variable, source, &format!("{path}.valueFrom"), errors);
        }
    }
    let all = format!("{path}.envFrom");
    for (path, source) in items(container, "envFrom", path) {
        let prefix = text(source, "prefix");
        if !prefix.is_empty() {
            errors.all_invalid(&format!("{path}.prefix"), prefix, names::env_name(prefix));
        }
        let mut given = 0;
        for key in ["configMapRef", "secretRef"] {
            if let Some(reference) = object(source, key) {
                given += 1;
                errors.needs(reference, &format!("{path}.{key}"), "name");
            }
        }
        match given {
            0 => errors.invalid(&all, "", "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => errors.invalid(&all, "", ONE),
        }
    }
}

fn value_from(variable: &Object, source: &Object, path: &str, errors: &mut Errors) {
    let mut given = 0;
    for key in SOURCES {
        let Some(reference) = object(source, key) else {
            continue;
        };
        given += 1;
        let path = format!("{path}.{key}");
        match key {
            "fieldRef" => field_ref(reference, &path, &ENV_FIELDS, errors),
            "resourceFieldRef" => resource_ref(reference, &path, false, errors),
            "fileKeyRef" => {
                for key in ["key", "path", "volumeName"] {
                    errors.needs(reference, &path, key);
                }
            }
            _ => {
                errors.needs(reference, &path, "name");
                let key = text(reference, "key");
                if key.is_empty() {
                    errors.required(format!("{path}.key"), "");
                } else {
                    errors.all_invalid(&format!("{path}.key"), key, names::config_map_key(key));
                }
            }
        }
    }
    if given == 0 {
        errors.invalid(
            path,
            "",
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        );
    }
    if !text(variable, "value").is_empty() {
        if given != 0 {
            errors.invalid(path, "", "may not be specified when `value` is not empty");
        }
    } else if given > 1 {
        errors.invalid(path, "", ONE);
    }
}

/// A reference to a field of the pod, of which `possible` may be named here.
pub(super) fn field_ref(reference: &Object, path: &str, possible: &[&str], errors: &mut Errors) {
    for key in ["apiVersion", "fieldPath"] {
        if text(reference, key).is_empty() {
            return errors.required(format!("{path}.{key}"), "");
        }
    }
    let named = text(reference, "fieldPath");
    let (whole, subscript) = match named.strip_suffix("']").and_then(|text| text.split_once("['")) {
        Some((whole, subscript)) if !whole.is_empty() => (whole, Some(subscript)),
        _ => (named, None),
    };
    if text(reference, "apiVersion") != "v1" || !KNOWN_FIELDS.contains(&whole) {
        let why = if text(reference, "apiVersion") == "v1" {
            format!("error converting fieldPath: field label not supported: {named}")
        } else {
            format!(
                "error converting fieldPath: unsupported pod version: {}",
                text(reference, "apiVersion")
            )
        };
        return errors.invalid(format!("{path}.fieldPath"), named, &why);
    }
    match (subscript, whole) {
        (Some(key), "metadata.annotations") => {
            errors.all_invalid(path, key, names::qualified_name(&key.to_lowercase()));
        }
        (Some(key), "metadata.labels") => errors.all_invalid(path, key, names::qualified_name(key)),
        (Some(_), _) => errors.invalid(path, whole, "does not support subscript"),
        (None, _) => errors.one_of(format!("{path}.fieldPath"), whole, possible),
    }
}

/// A reference to the requests or limits of a container.
pub(super) fn resource_ref(reference: &Object, path: &str, volume: bool, errors: &mut Errors) {
    if volume && text(reference, "containerName").is_empty() {
        return errors.required(format!("{path}.containerName"), "");
    }
    let resource = text(reference, "resource");
    if resource.is_empty() {
        return errors.required(format!("{path}.resource"), "");
    }
    let huge = ["limits.hugepages-", "requests.hugepages-"];
    if !huge.iter().any(|prefix| resource.starts_with(prefix)) {
        errors.one_of(format!("{path}.resource"), resource, &RESOURCE_FIELDS);
    }
}

/// Keys of a ConfigMap or Secret that become files.
pub(super) fn key_to_path(source: &Object, path: &str, errors: &mut Errors) {
    for (path, item) in items(source, "items", path) {
        errors.needs(item, &path, "key");
        errors.needs(item, &path, "path");
        local_file(text(item, "path"), &format!("{path}.path"), errors);
        super::containers::mode(item, &path, "mode", errors);
    }
}

/// A file that a volume makes: a relative path that does not begin with two dots.
pub(super) fn local_file(file: &str, field: &str, errors: &mut Errors) {
    super::containers::descending(file, field, errors);
    if file.starts_with("..") && !file.starts_with("../") && file != ".." {
        errors.invalid(field, Value::from(file), "must not start with '..'");
    }
}
