//! CertificateSigningRequests: stored; nobody signs them here.

use serde_json::Value;

use super::kind::{Kind, empty_status, fields};
use crate::object::{
    Object,
    tree::{Errors, below, list, made, number, same, text},
};

/// The shortest time a certificate may be asked for, in seconds.
const SHORTEST: i64 = 600;

/// CertificateSigningRequest.
pub(super) static REQUEST: Kind = Kind {
    kind: "CertificateSigningRequest",
    has_status: true,
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
    ..Kind::PLAIN
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
