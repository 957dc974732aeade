//! VolumeAttachments.

use super::csi_driver::named_driver;
use crate::{
    kinds::{
        kind_def::{KindDef, METADATA, empty_status},
        pod_spec::internal,
    },
    names,
    object::tree::{IMMUTABLE, below, made, object, text},
    printer::{AGE, Column, NAME, Printer, boolean, words},
};

pub(super) static DEF: KindDef = KindDef {
    subresources: &["status"],
    kept_by_status: METADATA,
    created: |attachment| {
        empty_status(attachment);
        // Always sent.
        made(attachment, "status").insert("attached".to_owned(), false.into());
    },
    errors: |attachment, errors| {
        let spec = below(attachment, "spec");
        named_driver(text(spec, "attacher"), "spec.attacher", errors);
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
        if new.get("spec") != old.get("spec") {
            let shown = internal::shown("AttachmentSpec", below(new, "spec"));
            errors.invalid_text("spec", shown, IMMUTABLE);
        }
    }),
    returns_object: true,
    printer: Printer::new(
        &[
            NAME,
            Column {
                format: "name",
                ..words("Attacher", ".spec.attacher")
            },
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
