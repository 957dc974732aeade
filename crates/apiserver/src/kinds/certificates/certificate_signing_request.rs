//! CertificateSigningRequests: stored, and never signed here.

use serde_json::Value;

use crate::{
    kinds::kind_def::{KindDef, empty_status, fields},
    object::{
        Object,
        tree::{Errors, below, list, made, number, same, text},
    },
    printer::{AGE, NAME, NONE, Printer, View, duration, words},
};

/// The shortest lifetime that a certificate may have, in seconds.
const SHORTEST: i64 = 600;

pub(super) static DEF: KindDef = KindDef {
    short: &["csr"],
    subresources: &["approval", "status"],
    defaults: |request| {
        made(request, "spec");
    },
    created: empty_status,
    updated: |subresource, new, old| {
        // The request itself never changes; approval changes the conditions.
        if let Some(spec) = old.get("spec") {
            new.insert("spec".to_owned(), spec.clone());
        }
        if subresource == "approval" && !same(new.get("status"), old.get("status")) {
            let conditions = below(new, "status").get("conditions").cloned();
            let mut status = below(old, "status").clone();
            match conditions {
                Some(conditions) => status.insert("conditions".to_owned(), conditions),
                None => status.remove("conditions"),
            };
            new.insert("status".to_owned(), Value::Object(status));
        }
    },
    errors,
    changes: Some(|_, _, _| {}),
    selectable: Some(|request| fields([("spec.signerName", text(below(request, "spec"), "signerName"))])),
    printer: Printer::new(
        &[
            NAME,
            AGE,
            words("SignerName", ".spec.signerName"),
            words("Requestor", ".spec.request"),
            words("RequestedDuration", ".spec.expirationSeconds"),
            words("Condition", ".status.conditions"),
        ],
        |request| {
            let lasts = request.at("spec.expirationSeconds").and_then(Value::as_i64);
            vec![
                request.name(),
                request.age(),
                request.text("spec.signerName").into(),
                request.text("spec.username").into(),
                lasts.map_or_else(|| NONE.to_owned(), duration).into(),
                request_status(request).into(),
            ]
        },
    ),
    ..KindDef::of::<k8s_openapi::api::certificates::v1::CertificateSigningRequest>()
};

fn errors(request: &Object, errors: &mut Errors) {
    let spec = below(request, "spec");
    if text(spec, "request").is_empty() {
        errors.invalid("spec.request", "", "PEM block type must be CERTIFICATE REQUEST");
    }
    if list(spec, "usages").is_empty() {
        errors.required("spec.usages", "usages must be provided");
    }
    match text(spec, "signerName") {
        "" => errors.required("spec.signerName", ""),
        name if name.split('/').count() != 2 => {
            let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
            errors.invalid("spec.signerName", name, detail);
        }
        _ => {}
    }
    if let Some(seconds) = number(spec, "expirationSeconds").filter(|seconds| *seconds < SHORTEST) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.invalid("spec.expirationSeconds", seconds, detail);
    }
}

fn request_status(request: &View<'_>) -> String {
    let has = |kind: &str| {
        request
            .list("status.conditions")
            .iter()
            .any(|one| one["type"] == kind)
    };
    let mut status = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (_, true) => "Approved",
        _ => "Pending",
    }
    .to_owned();
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !request.text("status.certificate").is_empty() {
        status.push_str(",Issued");
    }
    status
}
