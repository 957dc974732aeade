//! CertificateSigningRequests: the request never changes, approval changes its conditions, and signing its certificate.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use crate::{
    kinds::kind_def::{KindDef, fields},
    names,
    object::{
        Object,
        tree::{below, default, list, made, text},
    },
    printer::{AGE, NAME, NONE, Printer, View, duration, words},
    resource::{Rules, Surroundings},
    status::{FieldError, Result},
};

mod validate;

/// The conditions by which a request is decided: only approval changes them.
const DECISIONS: [&str; 2] = ["Approved", "Denied"];

pub(super) static DEF: KindDef = KindDef {
    short: &["csr"],
    subresources: &["approval", "status"],
    rules: Some(|| Arc::new(Requests)),
    printer: Printer::of(&[
        NAME,
        AGE,
        words("SignerName", ".spec.signerName"),
        words("Requestor", ".spec.request").at("spec.username"),
        words("RequestedDuration", ".spec.expirationSeconds").shows(|request| {
            let lasts = request.at("spec.expirationSeconds").and_then(Value::as_i64);
            lasts.map_or_else(|| NONE.to_owned(), duration).into()
        }),
        words("Condition", ".status.conditions").shows(|request| request_status(request).into()),
    ]),
    ..KindDef::of::<k8s_openapi::api::certificates::v1::CertificateSigningRequest>()
};

/// The rules of a CertificateSigningRequest.
#[derive(Debug)]
struct Requests;

impl Rules for Requests {
    fn defaults(&self, request: &mut Object) {
        made(request, "spec");
    }

    fn has_status(&self) -> bool {
        true
    }

    fn name_problems(&self, name: &str, prefix: bool) -> Vec<String> {
        names::path_segment(name, prefix)
    }

    fn prepare_create(&self, request: &mut Object, _: &dyn Surroundings) -> Result<()> {
        request.insert("status".to_owned(), json!({}));
        Ok(())
    }

    fn prepare_update(
        &self,
        subresource: &str,
        new: &mut Object,
        old: &Object,
        around: &dyn Surroundings,
    ) -> Result<()> {
        if let Some(spec) = old.get("spec") {
            new.insert("spec".to_owned(), spec.clone());
        }
        match subresource {
            "approval" => {
                date_conditions(new, old, &around.now());
                let conditions = below(new, "status").get("conditions").cloned();
                let mut status = below(old, "status").clone();
                match conditions {
                    Some(conditions) => status.insert("conditions".to_owned(), conditions),
                    None => status.remove("conditions"),
                };
                new.insert("status".to_owned(), Value::Object(status));
            }
            "status" => {
                keep_decisions(new, old);
                date_conditions(new, old, &around.now());
            }
            _ => {}
        }
        Ok(())
    }

    fn validate(&self, request: &Object) -> Vec<FieldError> {
        validate::create(request)
    }

    fn validate_update(&self, subresource: &str, new: &Object, old: &Object) -> Vec<FieldError> {
        validate::update(subresource, new, old)
    }

    fn selectable(&self, request: &Object) -> Option<BTreeMap<String, String>> {
        Some(fields([(
            "spec.signerName",
            text(below(request, "spec"), "signerName"),
        )]))
    }
}

/// The conditions of a request.
fn conditions(request: &Object) -> &[Value] {
    list(below(request, "status"), "conditions")
}

/// The conditions of a type.
fn of_type<'a>(request: &'a Object, kind: &str) -> Vec<&'a Value> {
    let all = conditions(request).iter();
    all.filter(|condition| condition["type"] == kind).collect()
}

/// Conditions to change.
fn conditions_mut(request: &mut Object) -> impl Iterator<Item = &mut Object> {
    let all = made(request, "status").get_mut("conditions");
    let all = all.and_then(Value::as_array_mut);
    all.into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Conditions without times get them: `lastTransitionTime` that of the same condition before, if there was one.
fn date_conditions(new: &mut Object, old: &Object, now: &str) {
    for condition in conditions_mut(new) {
        default(condition, "lastUpdateTime", now);
        let before = conditions(old).iter().find(|before| {
            let same = |name: &str| before.get(name) == condition.get(name);
            same("type") && same("status") && before["lastTransitionTime"].is_string()
        });
        let since = before.map_or_else(|| now.into(), |before| before["lastTransitionTime"].clone());
        default(condition, "lastTransitionTime", since);
    }
}

/// Decisions keep what they said, unless one is added or removed, which is refused later.
fn keep_decisions(new: &mut Object, old: &Object) {
    for kind in DECISIONS {
        let before = of_type(old, kind);
        if before.len() != of_type(new, kind).len() {
            continue;
        }
        let meant = conditions_mut(new).filter(|condition| text(condition, "type") == kind);
        for (condition, before) in meant.zip(before) {
            if let Value::Object(before) = before {
                condition.clone_from(before);
            }
        }
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
