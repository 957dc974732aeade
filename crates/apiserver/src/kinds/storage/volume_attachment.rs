//! VolumeAttachments.

use serde_json::Value;

use super::csi_driver::driver_name;
use crate::{
    kinds::kind_def::{KindDef, empty_status},
    names,
    object::{
        Object,
        tree::{IMMUTABLE, below, made, object, text},
    },
    printer::{AGE, NAME, Printer, boolean, words},
};

pub(super) static DEF: KindDef = KindDef {
    subresources: &["status"],
    created: |attachment| {
        empty_status(attachment);
        // Always sent.
        made(attachment, "status").insert("attached".to_owned(), false.into());
    },
    errors: |attachment, errors| {
        let spec = below(attachment, "spec");
        match text(spec, "attacher") {
            "" => errors.required("spec.attacher", ""),
            name => errors.all_invalid("spec.attacher", name, driver_name(name)),
        }
        let source = below(spec, "source");
        match (
            object(source, "inlineVolumeSpec"),
            text(source, "persistentVolumeName"),
        ) {
            (Some(_), "") => {}
            (Some(_), _) => errors.forbidden(
                "spec.source",
                "must specify exactly one of inlineVolumeSpec and persistentVolumeName",
            ),
            (None, "") => errors.required(
                "spec.source",
                "must specify exactly one of inlineVolumeSpec and persistentVolumeName",
            ),
            (None, _) => {}
        }
        let node = text(spec, "nodeName");
        errors.all_invalid("spec.nodeName", node, names::dns_subdomain(node, false));
    },
    changes: Some(|new, old, errors| {
        let spec = |object: &Object| object.get("spec").cloned().unwrap_or(Value::Null);
        if spec(new) != spec(old) {
            errors.invalid("spec", spec(new), IMMUTABLE);
        }
    }),
    printer: Printer::new(
        &[
            NAME,
            words("Attacher", ".spec.attacher"),
            words("PV", ".spec.source.persistentVolumeName"),
            words("Node", ".spec.nodeName"),
            boolean("Attached", ".status.attached"),
            AGE,
        ],
        |attachment| {
            vec![
                attachment.name(),
                attachment.text("spec.attacher").into(),
                attachment.text("spec.source.persistentVolumeName").into(),
                attachment.text("spec.nodeName").into(),
                attachment.flag("status.attached").into(),
                attachment.age(),
            ]
        },
    ),
    ..KindDef::of::<k8s_openapi::api::storage::v1::VolumeAttachment>()
};
