//! StorageClasses.

use serde_json::Value;

use crate::{
    kinds::kind_def::KindDef,
    names,
    object::{
        Object,
        tree::{Errors, IMMUTABLE, below, default, items, list, same, text},
    },
    printer::{AGE, NAME, Printer, words},
};

/// StorageClass: hardly anything of it may change.
pub(super) static DEF: KindDef = KindDef {
    short: &["sc"],
    defaults: |class| {
        default(class, "reclaimPolicy", "Delete");
        default(class, "volumeBindingMode", "Immediate");
    },
    errors: storage_class,
    changes: Some(|new, old, errors| {
        storage_class(new, errors);
        for key in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            if !same(new.get(key), old.get(key)) {
                errors.invalid(key, new.get(key).cloned().unwrap_or(Value::Null), IMMUTABLE);
            }
        }
    }),
    returns_object: true,
    printer: Printer::new(
        &[
            NAME,
            words("Provisioner", ".provisioner"),
            words("ReclaimPolicy", ".reclaimPolicy"),
            words("VolumeBindingMode", ".volumeBindingMode"),
            words("AllowVolumeExpansion", ".allowVolumeExpansion"),
            AGE,
        ],
        |class| {
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
    ),
    ..KindDef::of::<k8s_openapi::api::storage::v1::StorageClass>()
};

/// Annotations of the class that claims without one get.
pub(in crate::kinds) const DEFAULT: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

fn storage_class(class: &Object, errors: &mut Errors) {
    provisioner(class, "provisioner", errors);
    parameters(class, errors);
    let policy = text(class, "reclaimPolicy");
    if !policy.is_empty() {
        errors.one_of("reclaimPolicy", policy, &["Delete", "Retain"]);
    }
    errors.required_one_of(
        "volumeBindingMode",
        text(class, "volumeBindingMode"),
        &["Immediate", "WaitForFirstConsumer"],
    );
    let mut terms: Vec<&Object> = Vec::new();
    for (at, term) in list(class, "allowedTopologies")
        .iter()
        .filter_map(Value::as_object)
        .enumerate()
    {
        let path = format!("allowedTopologies[{at}]");
        topology(term, &path, errors);
        if terms.contains(&term) {
            errors.duplicate(format!("{path}.matchLabelExpressions"), "");
        }
        terms.push(term);
    }
}

fn topology(term: &Object, path: &str, errors: &mut Errors) {
    let mut keys: Vec<&str> = Vec::new();
    for (path, one) in items(term, "matchLabelExpressions", path) {
        let values = list(one, "values");
        if values.is_empty() {
            errors.required(format!("{path}.values"), "");
        }
        for (at, value) in values.iter().enumerate() {
            if values[..at].contains(value) {
                errors.duplicate(format!("{path}.values[{at}]"), value.clone());
            }
        }
        let key = text(one, "key");
        errors.all_invalid(&format!("{path}.key"), key, names::qualified_name(key));
        if keys.contains(&key) {
            errors.duplicate(format!("{path}.key"), key);
        }
        keys.push(key);
    }
}

/// The name of what provides volumes; the server quotes it in lower case.
pub(super) fn provisioner(class: &Object, key: &str, errors: &mut Errors) {
    if text(class, key).is_empty() {
        errors.required(key, "");
    }
    let name = text(class, key).to_lowercase();
    if !name.is_empty() {
        errors.all_invalid(key, name.as_str(), names::qualified_name(&name));
    }
}

/// The parameters of a class.
pub(super) fn parameters(class: &Object, errors: &mut Errors) {
    const MOST: usize = 512;
    const LARGEST: usize = 256 * 1024;
    let parameters = below(class, "parameters");
    if parameters.len() > MOST {
        return errors.too_long("parameters", MOST);
    }
    let mut size = 0;
    for (key, value) in parameters {
        if key.is_empty() {
            errors.invalid("parameters", "", "field can not be empty.");
        }
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > LARGEST {
        errors.too_long("parameters", LARGEST);
    }
}
