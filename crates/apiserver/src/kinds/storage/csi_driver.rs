//! CSIDrivers.

use serde_json::Value;

use crate::{
    kinds::{kind_def::KindDef, pod_spec::token_seconds},
    names,
    object::{
        Object, metadata_mut,
        tree::{Errors, IMMUTABLE, below, items, list, made, number, same, text},
    },
    printer::{AGE, NAME, Printer, UNSET, boolean, or_none, words},
};

pub(super) static DEF: KindDef = KindDef {
    has_generation: true,
    defaults: |driver| {
        let spec = made(driver, "spec");
        for (key, value) in [
            ("attachRequired", Value::from(true)),
            ("podInfoOnMount", false.into()),
            ("storageCapacity", false.into()),
            ("fsGroupPolicy", "ReadWriteOnceWithFSType".into()),
            ("volumeLifecycleModes", vec!["Persistent"].into()),
            ("requiresRepublish", false.into()),
            ("seLinuxMount", false.into()),
        ] {
            spec.entry(key).or_insert(value);
        }
    },
    // The first generation is that of the first change.
    created: |driver| {
        metadata_mut(driver).remove("generation");
    },
    returns_object: true,
    errors: |driver, errors| spec(below(driver, "spec"), errors),
    changes: Some(|new, old, errors| {
        let (before, after) = (below(old, "spec"), below(new, "spec"));
        spec(after, errors);
        for (key, field) in [
            ("attachRequired", "spec.attachedRequired"),
            ("volumeLifecycleModes", "spec.volumeLifecycleModes"),
        ] {
            if !same(before.get(key), after.get(key)) {
                errors.invalid(field, after.get(key).cloned().unwrap_or(Value::Null), IMMUTABLE);
            }
        }
    }),
    warnings: |driver, _| {
        let spec = below(driver, "spec");
        let logged =
            !list(spec, "tokenRequests").is_empty() && !spec.contains_key("serviceAccountTokenInSecrets");
        let warning = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes";
        logged.then(|| warning.to_owned()).into_iter().collect()
    },
    printer: Printer::new(
        &[
            NAME,
            boolean("AttachRequired", ".spec.attachRequired"),
            boolean("PodInfoOnMount", ".spec.podInfoOnMount"),
            boolean("StorageCapacity", ".spec.storageCapacity"),
            words("TokenRequests", ".spec.tokenRequests"),
            boolean("RequiresRepublish", ".spec.requiresRepublish"),
            words("Modes", ".spec.volumeLifecycleModes"),
            AGE,
        ],
        |driver| {
            let attach = driver
                .at("spec.attachRequired")
                .and_then(Value::as_bool)
                .unwrap_or(true);
            let audiences: Vec<&str> = driver
                .list("spec.tokenRequests")
                .iter()
                .map(|request| request["audience"].as_str().unwrap_or_default())
                .collect();
            let tokens = if audiences.is_empty() {
                UNSET.to_owned()
            } else {
                audiences.join(",")
            };
            vec![
                driver.name(),
                attach.into(),
                driver.flag("spec.podInfoOnMount").into(),
                driver.flag("spec.storageCapacity").into(),
                tokens.into(),
                driver.flag("spec.requiresRepublish").into(),
                or_none(driver.texts("spec.volumeLifecycleModes").join(",")),
                driver.age(),
            ]
        },
    ),
    ..KindDef::of::<k8s_openapi::api::storage::v1::CSIDriver>()
};

fn spec(spec: &Object, errors: &mut Errors) {
    errors.required_one_of(
        "spec.fsGroupPolicy",
        text(spec, "fsGroupPolicy"),
        &["File", "None", "ReadWriteOnceWithFSType"],
    );
    let mut seen: Vec<&str> = Vec::new();
    for (path, request) in items(spec, "tokenRequests", "spec") {
        let audience = text(request, "audience");
        if seen.contains(&audience) {
            errors.duplicate(format!("{path}.audience"), audience);
            continue;
        }
        seen.push(audience);
        if let Some(seconds) = number(request, "expirationSeconds") {
            token_seconds(seconds, &format!("{path}.expirationSeconds"), errors);
        }
    }
    for mode in list(spec, "volumeLifecycleModes")
        .iter()
        .filter_map(Value::as_str)
    {
        errors.one_of("spec.volumeLifecycleModes", mode, &["Persistent", "Ephemeral"]);
    }
    if let Some(seconds) = number(spec, "nodeAllocatableUpdatePeriodSeconds").filter(|seconds| *seconds < 10)
    {
        errors.invalid(
            "spec.nodeAllocatableUpdatePeriodSeconds",
            seconds,
            "must be greater than or equal to 10 seconds",
        );
    }
}

/// The name of a driver in a field: required, short, and a subdomain but for its letters' case.
pub(in crate::kinds) fn named_driver(name: &str, field: &str, errors: &mut Errors) {
    if name.is_empty() {
        return errors.required(field, "");
    }
    if name.len() > names::LABEL_LENGTH {
        errors.too_long(field, names::LABEL_LENGTH);
    }
    errors.all_invalid(field, name, names::dns_subdomain(&name.to_lowercase(), false));
}
