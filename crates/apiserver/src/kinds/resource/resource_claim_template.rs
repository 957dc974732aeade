//! ResourceClaimTemplates.

use super::resource_claim::devices;
use crate::{
    kinds::kind_def::KindDef,
    object::tree::{IMMUTABLE, made},
    printer::{AGE, NAME, Printer},
};

pub(super) static DEF: KindDef = KindDef {
    defaults: |template| devices(made(made(template, "spec"), "spec")),
    changes: Some(|new, old, errors| {
        if new.get("spec") != old.get("spec") {
            errors.invalid("spec", new.get("spec").cloned().unwrap_or_default(), IMMUTABLE);
        }
    }),
    printer: Printer::of(&[NAME, AGE]),
    ..KindDef::of::<k8s_openapi::api::resource::v1::ResourceClaimTemplate>()
};
