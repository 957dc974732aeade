//! PersistentVolumeClaims.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::{
    kinds::{
        amounts::nano,
        core::persistent_volume::{VOLUME_MODES, access_modes, class, modes, phase, positive, protect},
        kind_def::KindDef,
        pod_spec::internal::unified,
    },
    names,
    object::{
        Object,
        tree::{Errors, at, below, default, made, object, object_mut, text},
    },
    printer::{AGE, NAME, Printer, UNSET, wide, words},
};

pub(super) static DEF: KindDef = KindDef {
    short: &["pvc"],
    subresources: &["status"],
    defaults: |claim| {
        let spec = made(claim, "spec");
        default(spec, "volumeMode", "Filesystem");
        copy_source(spec);
        if let Some(status) = object_mut(claim, "status") {
            default(status, "phase", "Pending");
        }
    },
    created: |claim| {
        claim.insert("status".to_owned(), json!({"phase": "Pending"}));
        protect(claim, "kubernetes.io/pvc-protection");
    },
    errors: claim,
    changes: Some(claim_changes),
    printer: Printer::new(
        &[
            NAME,
            words("Status", ".status.phase"),
            words("Volume", ".spec.volumeName"),
            words("Capacity", ".status.capacity"),
            words("Access Modes", ".status.accessModes"),
            words("StorageClass", "StorageClass of the pvc"),
            words("VolumeAttributesClass", "VolumeAttributesClass of the pvc"),
            AGE,
            wide("VolumeMode", ".spec.volumeMode"),
        ],
        |claim| {
            let bound = !claim.text("spec.volumeName").is_empty();
            let (capacity, modes) = if bound {
                let modes = modes(claim.list("status.accessModes"));
                (claim.or("status.capacity.storage", "0"), modes)
            } else {
                ("".into(), String::new())
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
    ),
    ..KindDef::of::<k8s_openapi::api::core::v1::PersistentVolumeClaim>()
};

/// `dataSource` and `dataSourceRef` are two names of one thing, unless the reference has a namespace.
fn copy_source(spec: &mut Object) {
    let (source, reference) = (
        spec.get("dataSource").cloned(),
        spec.get("dataSourceRef").cloned(),
    );
    match (source, reference) {
        (Some(source @ Value::Object(_)), None) => {
            spec.insert("dataSourceRef".to_owned(), source);
        }
        (None, Some(Value::Object(reference))) if text(&reference, "namespace").is_empty() => {
            spec.insert("dataSource".to_owned(), Value::Object(reference));
        }
        _ => {}
    }
}

fn claim(claim: &Object, errors: &mut Errors) {
    let spec = below(claim, "spec");
    access_modes(spec, "at least 1 access mode is required", errors);
    if let Some(selector) = object(spec, "selector") {
        errors.extend(names::label_selector(selector, "spec.selector"));
    }
    let storage = at(spec, &["resources", "requests"]).get("storage");
    positive(storage, "spec.resources[storage]", errors);
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        let problems = names::dns_subdomain(class, false);
        errors.all_invalid("spec.storageClassName", class, problems);
    }
    if let Some(Value::String(mode)) = spec.get("volumeMode") {
        errors.one_of("spec.volumeMode", mode, &VOLUME_MODES);
    }
    for key in ["dataSource", "dataSourceRef"] {
        let Some(source) = object(spec, key) else { continue };
        for part in ["name", "kind"] {
            errors.needs(source, &format!("spec.{key}"), part);
        }
        let kind = text(source, "kind");
        if text(source, "apiGroup").is_empty() && kind != "PersistentVolumeClaim" {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.invalid(format!("spec.{key}"), kind, detail);
        }
    }
}

fn claim_changes(new: &Object, old: &Object, errors: &mut Errors) {
    claim(new, errors);
    let (before, mut after) = (below(old, "spec").clone(), below(new, "spec").clone());
    let mut expected = before.clone();
    let take = |from: &Object, to: &mut Object, key: &str| match from.get(key) {
        Some(value) => {
            to.insert(key.to_owned(), value.clone());
        }
        None => {
            to.remove(key);
        }
    };
    if text(&before, "volumeName").is_empty() {
        take(&after, &mut expected, "volumeName");
    }
    if !before.contains_key("storageClassName") {
        take(&after, &mut expected, "storageClassName");
    }
    let bound = text(below(new, "status"), "phase") == "Bound";
    if bound {
        take(&before, &mut after, "volumeAttributesClassName");
        if let Some(requests) = after
            .get_mut("resources")
            .and_then(Value::as_object_mut)
            .and_then(|resources| object_mut(resources, "requests"))
        {
            take(at(&before, &["resources", "requests"]), requests, "storage");
        }
    }
    if expected != after {
        let diff = unified(&internal(&expected), &internal(&after));
        let rule = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        errors.forbidden("spec", &format!("{rule}\n{diff}"));
    }
    let size = |object: &Object, path: &[&str]| at(object, path).get("storage").and_then(nano);
    let requests = ["spec", "resources", "requests"];
    let (was, is) = (size(old, &requests), size(new, &requests));
    let capacity = size(old, &["status", "capacity"]);
    if is < was && is <= capacity {
        errors.forbidden(
            "spec.resources.requests.storage",
            "field can not be less than status.capacity",
        );
    }
}

/// The spec in the server's own form, as JSON with one space of indent.
fn internal(spec: &Object) -> String {
    let resources = below(spec, "resources");
    let plain = |key: &str| spec.get(key).cloned().unwrap_or(Value::Null);
    let amounts = |key: &str| resources.get(key).cloned().unwrap_or(Value::Null);
    let mut out = String::from("{\n");
    let rows = [
        ("AccessModes", plain("accessModes")),
        ("Selector", plain("selector")),
        ("Resources", Value::Null),
        ("VolumeName", text(spec, "volumeName").into()),
        ("StorageClassName", plain("storageClassName")),
        ("VolumeMode", plain("volumeMode")),
        ("DataSource", plain("dataSource")),
        ("DataSourceRef", plain("dataSourceRef")),
        ("VolumeAttributesClassName", plain("volumeAttributesClassName")),
    ];
    let last = rows.len() - 1;
    for (at, (name, value)) in rows.into_iter().enumerate() {
        let shown = if name == "Resources" {
            let (limits, requests) = (indented(&amounts("limits"), 2), indented(&amounts("requests"), 2));
            format!("{{\n  \"Limits\": {limits},\n  \"Requests\": {requests}\n }}")
        } else {
            indented(&value, 1)
        };
        let comma = if at == last { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = writeln!(out, " \"{name}\": {shown}{comma}");
    }
    out.push_str("}\n");
    out
}

/// JSON over several lines, one space a level, `level` levels in.
fn indented(value: &Value, level: usize) -> String {
    let (open, close, parts): (char, char, Vec<String>) = match value {
        Value::Array(items) if !items.is_empty() => {
            let parts = items.iter().map(|item| indented(item, level + 1)).collect();
            ('[', ']', parts)
        }
        Value::Object(map) if !map.is_empty() => {
            let part = |(key, item): (&String, &Value)| {
                format!("{}: {}", Value::from(key.as_str()), indented(item, level + 1))
            };
            ('{', '}', map.iter().map(part).collect())
        }
        other => return other.to_string(),
    };
    let (inner, outer) = (" ".repeat(level + 1), " ".repeat(level));
    let lines = parts.join(&format!(",\n{inner}"));
    format!("{open}\n{inner}{lines}\n{outer}{close}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_claim_is_reported_with_a_diff_of_the_servers_own_form() {
        let object = |size: &str| match json!({"spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
            "resources": {"requests": {"storage": size}}}, "status": {"phase": "Pending"}})
        {
            Value::Object(object) => object,
            _ => Object::new(),
        };
        let mut errors = Errors::default();
        claim_changes(&object("2Gi"), &object("1Gi"), &mut errors);
        let texts: Vec<String> = errors.0.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), 1);
        assert!(
            texts[0].ends_with("@@ -6,7 +6,7 @@\n  \"Resources\": {\n   \"Limits\": null,\n   \"Requests\": {\n-   \"storage\": \"1Gi\"\n+   \"storage\": \"2Gi\"\n   }\n  },\n  \"VolumeName\": \"\",\n"),
            "{}",
            texts[0]
        );
    }
}
