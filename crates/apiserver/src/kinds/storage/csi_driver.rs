//! CSIDrivers.

use serde_json::Value;

use crate::{
    kinds::kind_def::KindDef,
    names,
    object::tree::{below, list, made, text},
    printer::{AGE, NAME, Printer, UNSET, boolean, or_none, words},
};

pub(super) static DEF: KindDef = KindDef {
    has_generation: true,
    names: |name, _| driver_name(name),
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
    errors: |driver, errors| {
        let spec = below(driver, "spec");
        errors.one_of(
            "spec.fsGroupPolicy",
            text(spec, "fsGroupPolicy"),
            &["File", "None", "ReadWriteOnceWithFSType"],
        );
        for mode in list(spec, "volumeLifecycleModes")
            .iter()
            .filter_map(Value::as_str)
        {
            errors.one_of("spec.volumeLifecycleModes", mode, &["Ephemeral", "Persistent"]);
        }
    },
    changes: Some(|new, old, errors| {
        let (before, after) = (below(old, "spec"), below(new, "spec"));
        for key in ["attachRequired", "volumeLifecycleModes"] {
            errors.immutable(after, before, "spec", key);
        }
    }),
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

pub(super) fn driver_name(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["must not be empty".to_owned()];
    }
    let mut problems = Vec::new();
    if name.len() > names::LABEL_LENGTH {
        problems.push(format!("must be no more than {} characters", names::LABEL_LENGTH));
    }
    problems.extend(names::dns_subdomain(&name.to_ascii_lowercase(), false));
    problems
}
