//! VolumeAttributesClasses.

use super::storage_class::{parameters, provisioner};
use crate::{
    kinds::kind_def::{KindDef, protect},
    object::tree::{below, same},
    printer::{AGE, NAME, Printer, words},
};

/// VolumeAttributesClass: nothing of it may change.
pub(super) static DEF: KindDef = KindDef {
    short: &["vac"],
    returns_object: true,
    created: |class| protect(class, "kubernetes.io/vac-protection"),
    errors: |class, errors| {
        provisioner(class, "driverName", errors);
        if below(class, "parameters").is_empty() {
            errors.required("parameters", "must contain at least one key/value pair");
        }
        parameters(class, errors);
    },
    changes: Some(|new, old, errors| {
        for key in ["driverName", "parameters"] {
            if !same(new.get(key), old.get(key)) {
                errors.forbidden(key, &format!("updates to {key} are forbidden."));
            }
        }
    }),
    printer: Printer::new(&[NAME, words("DriverName", ".driverName"), AGE], |class| {
        vec![class.name(), class.text("driverName").into(), class.age()]
    }),
    ..KindDef::of::<k8s_openapi::api::storage::v1::VolumeAttributesClass>()
};
