//! PersistentVolumeClaims.

use serde_json::{Value, json};

use crate::{
    kinds::{
        amounts::nano,
        core::persistent_volume::{VOLUME_MODES, access_modes, class, modes, phase, positive, storage_class},
        kind_def::{KindDef, default_class, protect},
        pod_spec::internal::difference,
        storage::storage_class::DEFAULT,
    },
    names,
    object::{
        Object, field, metadata,
        tree::{Errors, IMMUTABLE, at, below, default, flag, made, object, object_mut, same, text, within},
    },
    printer::{AGE, NAME, Printer, UNSET, wide, words},
    resource::Surroundings,
    status::{About, Result, Status},
};

const CLASSES: &str = "storage.k8s.io/storageclasses";

pub(super) static DEF: KindDef = KindDef {
    short: &["pvc"],
    subresources: &["status"],
    defaults: |claim| {
        let spec = made(claim, "spec");
        default(spec, "volumeMode", "Filesystem");
        for key in ["dataSource", "dataSourceRef"] {
            within(spec, key, |source| {
                source.entry("apiGroup").or_insert(Value::Null);
            });
        }
        if let Some(status) = object_mut(claim, "status") {
            default(status, "phase", "Pending");
        }
    },
    created: |claim| {
        claim.insert("status".to_owned(), json!({"phase": "Pending"}));
        protect(claim, "kubernetes.io/pvc-protection");
        copy_source(made(claim, "spec"));
    },
    updated: |subresource, claim, old| {
        if subresource.is_empty() {
            let spec = made(claim, "spec");
            let before = below(old, "spec");
            if !["dataSource", "dataSourceRef"]
                .iter()
                .any(|key| before.contains_key(*key))
            {
                copy_source(spec);
            }
        }
    },
    placed: |subresource, claim, old, around| match old {
        None => {
            default_storage_class(claim, around);
            Ok(())
        }
        Some(old) if subresource.is_empty() => resize(claim, old, around),
        Some(_) => Ok(()),
    },
    returns_object: true,
    warnings: |claim, _| {
        let storage = at(claim, &["spec", "resources", "requests"]).get("storage");
        let part = storage.filter(|storage| nano(storage).is_some_and(|nano| nano % 1_000_000_000 != 0));
        let shown = part.and_then(Value::as_str).map(|amount| {
            format!("spec.resources.requests[storage]: fractional byte value {amount:?} is invalid, must be an integer")
        });
        shown.into_iter().collect()
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

/// `dataSource` and `dataSourceRef` are two names of one thing, unless the reference has a namespace. The older one takes
/// claims and snapshots only; anything else in it is dropped.
fn copy_source(spec: &mut Object) {
    let known = object(spec, "dataSource").is_some_and(|source| {
        matches!(
            (text(source, "apiGroup"), text(source, "kind")),
            ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
        )
    });
    if !known {
        spec.remove("dataSource");
    }
    let taken = |key: &str| object(spec, key).cloned();
    match (taken("dataSource"), taken("dataSourceRef")) {
        (Some(source), None) => {
            spec.insert("dataSourceRef".to_owned(), Value::Object(source));
        }
        (None, Some(reference)) if text(&reference, "namespace").is_empty() => {
            spec.insert("dataSource".to_owned(), Value::Object(reference));
        }
        _ => {}
    }
}

/// A claim that names no class gets the default one.
pub(crate) fn default_storage_class(claim: &mut Object, around: &dyn Surroundings) {
    let named = below(metadata(claim), "annotations").contains_key("volume.beta.kubernetes.io/storage-class");
    let spec = made(claim, "spec");
    if !named
        && !spec.contains_key("storageClassName")
        && let Some(class) = default_class(CLASSES, &DEFAULT, around)
    {
        spec.insert("storageClassName".to_owned(), class.into());
    }
}

/// A claim grows when it is bound and its class says so. Source: the admission plugin `PersistentVolumeClaimResize`.
fn resize(claim: &Object, old: &Object, around: &dyn Surroundings) -> Result<()> {
    let size = |claim| {
        at(claim, &["spec", "resources", "requests"])
            .get("storage")
            .and_then(nano)
    };
    if size(claim) <= size(old) {
        return Ok(());
    }
    // What is not acceptable at all is reported first.
    let mut errors = Errors::default();
    claim_changes(claim, old, &mut errors);
    let class = |claim| text(below(claim, "spec"), "storageClassName");
    let expands = class(claim) == class(old)
        && around
            .get(CLASSES, class(claim))
            .is_some_and(|class| flag(&class, "allowVolumeExpansion"));
    if !errors.0.is_empty() || expands {
        return Ok(());
    }
    let about = About {
        group: "",
        resource: "persistentvolumeclaims",
        name: field(claim, "name"),
    };
    Err(Status::forbidden(
        about,
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize",
    ))
}

fn claim(claim: &Object, errors: &mut Errors) {
    let spec = below(claim, "spec");
    access_modes(spec, "at least 1 access mode is required", errors);
    if let Some(selector) = object(spec, "selector") {
        errors.extend(names::label_selector(selector, "spec.selector"));
    }
    let storage = at(spec, &["resources", "requests"]).get("storage");
    positive(storage, "spec.resources[storage]", errors);
    storage_class(spec, errors);
    if let Some(Value::String(mode)) = spec.get("volumeMode") {
        errors.one_of("spec.volumeMode", mode, &VOLUME_MODES);
    }
    for key in ["dataSource", "dataSourceRef"] {
        let Some(source) = object(spec, key) else { continue };
        for part in ["name", "kind"] {
            errors.needs(source, &format!("spec.{key}"), part);
        }
        let (group, kind) = (text(source, "apiGroup"), text(source, "kind"));
        if group.is_empty() {
            if kind != "PersistentVolumeClaim" {
                let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
                errors.invalid(format!("spec.{key}"), kind, detail);
            }
        } else {
            let problems = names::dns_subdomain(group, false);
            errors.all_invalid(&format!("spec.{key}.apiGroup"), group, problems);
        }
    }
    if let (Some(source), Some(reference)) = (object(spec, "dataSource"), object(spec, "dataSourceRef")) {
        // The server quotes the path of the field, which is empty in JSON.
        let mut refuse = |detail| errors.invalid("spec", json!({}), detail);
        let same = ["apiGroup", "kind", "name"]
            .iter()
            .all(|key| text(source, key) == text(reference, key));
        if !text(reference, "namespace").is_empty() {
            refuse("may not be specified when dataSourceRef.namespace is specified");
        } else if !same {
            refuse("must match dataSourceRef");
        }
    }
    let class = text(spec, "volumeAttributesClassName");
    if !class.is_empty() {
        let problems = names::dns_subdomain(class, false);
        errors.all_invalid("spec.volumeAttributesClassName", class, problems);
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
        let diff = difference("PersistentVolumeClaimSpec", &expected, &after);
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
    let mode = |claim| below(claim, "spec").get("volumeMode");
    if !same(mode(new), mode(old)) {
        errors.invalid("volumeMode", mode(new).cloned().unwrap_or(Value::Null), IMMUTABLE);
    }
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
