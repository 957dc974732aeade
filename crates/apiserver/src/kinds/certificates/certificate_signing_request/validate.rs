//! Errors of CertificateSigningRequests. Those that a stored request has already are tolerated in its updates.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use serde_json::Value;

use super::{DECISIONS, conditions, of_type};
use crate::{
    object::{
        Object,
        tree::{Errors, below, items, list, number, text},
    },
    status::FieldError,
    x509::{self, der, request::Request},
};

/// The shortest lifetime that a certificate may have, in seconds.
const SHORTEST: i64 = 600;

/// The signer of an API version that is gone.
const LEGACY: &str = "kubernetes.io/legacy-unknown";

/// Conditions that are true if they are there, and stay.
const FINAL: [&str; 3] = ["Approved", "Denied", "Failed"];

/// The usages, sorted.
const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// Errors of a new request.
pub(super) fn create(request: &Object) -> Vec<FieldError> {
    let mut errors = Errors::default();
    spec_errors(below(request, "spec"), &mut errors);
    errors.0
}

/// Errors of an update; the spec is that of before.
pub(super) fn update(subresource: &str, new: &Object, old: &Object) -> Vec<FieldError> {
    let mut errors = Errors::default();
    condition_errors(new, old, &mut errors);
    let certificate = |request| text(below(request, "status"), "certificate");
    let changes = certificate(new) != certificate(old);
    if changes
        && !certificate(new).is_empty()
        && let Some(problem) = certificate_problem(certificate(new))
    {
        errors.invalid("status.certificate", "<certificate data>", &problem);
    }
    let count = |request, kind: &str| of_type(request, kind).len();
    for kind in FINAL.iter().filter(|kind| count(new, kind) < count(old, kind)) {
        let detail = format!("updates may not remove a condition of type {kind:?}");
        errors.forbidden("status.conditions", &detail);
    }
    if subresource != "approval" {
        for kind in DECISIONS
            .iter()
            .filter(|kind| count(new, kind) > count(old, kind))
        {
            let detail = format!("updates may not add a condition of type {kind:?}");
            errors.forbidden("status.conditions", &detail);
        }
    }
    if changes && subresource != "status" {
        errors.forbidden("status.certificate", "updates may not set certificate content");
    } else if changes && !certificate(old).is_empty() {
        let detail = "updates may not modify existing certificate content";
        errors.forbidden("status.certificate", detail);
    }
    errors.0
}

fn spec_errors(spec: &Object, errors: &mut Errors) {
    let pem = BASE64_STANDARD.decode(text(spec, "request")).unwrap_or_default();
    if let Err(problem) = Request::of_pem(&pem) {
        let value = spec.get("request").cloned().unwrap_or(Value::Null);
        errors.invalid("spec.request", value, problem);
    }
    let usages = list(spec, "usages");
    if usages.is_empty() {
        errors.required("spec.usages", "");
    }
    for (at, usage) in usages.iter().enumerate() {
        let usage = usage.as_str().unwrap_or_default();
        errors.one_of(format!("spec.usages[{at}]"), usage, USAGES);
    }
    for (at, usage) in usages.iter().enumerate() {
        if usages[..at].contains(usage) {
            errors.duplicate(format!("spec.usages[{at}]"), usage.clone());
        }
    }
    match text(spec, "signerName") {
        "" => errors.required("spec.signerName", ""),
        LEGACY => {
            let detail = "the legacy signerName is not allowed via this API version";
            errors.invalid("spec.signerName", LEGACY, detail);
        }
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

fn condition_errors(new: &Object, old: &Object, errors: &mut Errors) {
    let was = |kind: &str| !of_type(old, kind).is_empty();
    let was_both = DECISIONS.iter().all(|kind| was(kind));
    let had_two = conditions(old)
        .iter()
        .any(|condition| of_type(old, condition["type"].as_str().unwrap_or_default()).len() > 1);
    let mut before: Vec<&str> = Vec::new();
    for (path, condition) in items(below(new, "status"), "conditions", "status") {
        let kind = text(condition, "type");
        let field = |name: &str| format!("{path}.{name}");
        if kind.is_empty() && !was("") {
            errors.required(field("type"), "");
        }
        let possible: &[&str] = if FINAL.contains(&kind) {
            &["True"]
        } else {
            &["False", "True", "Unknown"]
        };
        errors.required_one_of(field("status"), text(condition, "status"), possible);
        let contrary = DECISIONS.iter().find(|one| **one != kind && before.contains(one));
        if DECISIONS.contains(&kind) && contrary.is_some() && !was_both {
            let detail = "Approved and Denied conditions are mutually exclusive";
            errors.invalid(field("type"), kind, detail);
        }
        if before.contains(&kind) && !had_two {
            errors.duplicate(field("type"), kind);
        }
        before.push(kind);
    }
}

/// The problem of a certificate in base64.
fn certificate_problem(encoded: &str) -> Option<String> {
    let pem = BASE64_STANDARD.decode(encoded).unwrap_or_default();
    match x509::first_label(&pem) {
        None => return Some("must contain at least one CERTIFICATE PEM block".to_owned()),
        Some("CERTIFICATE") => {}
        Some(other) => {
            return Some(format!(
                "only CERTIFICATE PEM blocks are allowed, found {other:?}"
            ));
        }
    }
    let is_good = CertificateDer::pem_slice_iter(&pem)
        .all(|one| one.is_ok_and(|one| der::whole(&one, der::SEQUENCE).is_some()));
    (!is_good).then(|| "x509: malformed certificate".to_owned())
}
