//! ResourceSlices.

use crate::{
    kinds::kind_def::{KindDef, fields},
    object::tree::{below, text},
    printer::{AGE, NAME, Printer, UNSET, words},
};

pub(super) static DEF: KindDef = KindDef {
    has_generation: true,
    changes: Some(|new, old, errors| {
        let (new, old) = (below(new, "spec"), below(old, "spec"));
        for key in ["driver", "nodeName"] {
            errors.immutable(new, old, "spec", key);
        }
    }),
    selectable: Some(|slice| {
        let spec = below(slice, "spec");
        fields([
            ("spec.driver", text(spec, "driver")),
            ("spec.nodeName", text(spec, "nodeName")),
        ])
    }),
    printer: Printer::of(&[
        NAME,
        words("Node", ".spec.nodeName").or(UNSET),
        words("Driver", ".spec.driver"),
        words("Pool", ".spec.pool.name"),
        AGE,
    ]),
    ..KindDef::of::<k8s_openapi::api::resource::v1::ResourceSlice>()
};
