//! DeviceClasses.

use crate::{
    kinds::kind_def::KindDef,
    object::tree::made,
    printer::{AGE, NAME, Printer},
};

pub(super) static DEF: KindDef = KindDef {
    has_generation: true,
    defaults: |class| {
        made(class, "spec");
    },
    printer: Printer::of(&[NAME, AGE]),
    ..KindDef::of::<k8s_openapi::api::resource::v1::DeviceClass>()
};
