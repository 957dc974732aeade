//! StorageClasses.

use serde_json::Value;

use crate::{
    kinds::kind_def::KindDef,
    names,
    object::{
        Object,
        tree::{Errors, IMMUTABLE, below, default, same, text},
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
        for (key, detail) in [
            ("parameters", "updates to parameters are forbidden."),
            ("provisioner", "updates to provisioner are forbidden."),
            ("reclaimPolicy", "updates to reclaimPolicy are forbidden."),
        ] {
            if !same(new.get(key), old.get(key)) {
                errors.forbidden(key, detail);
            }
        }
        if !same(new.get("volumeBindingMode"), old.get("volumeBindingMode")) {
            let mode = new.get("volumeBindingMode").cloned().unwrap_or(Value::Null);
            errors.invalid("volumeBindingMode", mode, IMMUTABLE);
        }
    }),
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
    ),
    ..KindDef::of::<k8s_openapi::api::storage::v1::StorageClass>()
};

fn storage_class(class: &Object, errors: &mut Errors) {
    match text(class, "provisioner") {
        "" => errors.required("provisioner", ""),
        provisioner => {
            let problems = names::qualified_name(&provisioner.to_ascii_lowercase());
            errors.all_invalid("provisioner", provisioner, problems);
        }
    }
    errors.required_one_of(
        "volumeBindingMode",
        text(class, "volumeBindingMode"),
        &["Immediate", "WaitForFirstConsumer"],
    );
    errors.required_one_of(
        "reclaimPolicy",
        text(class, "reclaimPolicy"),
        &["Delete", "Retain"],
    );
    if below(class, "parameters").contains_key("") {
        errors.invalid("parameters", text(class, "name"), "field can not be empty.");
    }
}
