//! `StatefulSets`.

use serde_json::{Value, json};

use crate::{
    kinds::{kind_def::KindDef, pod_spec, workloads},
    names,
    object::{
        Object,
        tree::{Errors, below, default, each, made, object, text},
    },
    printer::{AGE, CONTAINERS, IMAGES, NAME, Printer, words},
};

/// The fields of a spec that may change.
const MUTABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

const FIXED: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

const COUNTS: [&str; 2] = ["replicas", "availableReplicas"];

pub(super) static DEF: KindDef = KindDef {
    short: &["sts"],
    categories: &["all"],
    subresources: &["scale", "status"],
    has_generation: true,
    names: names::dns_label,
    defaults,
    created: |set| workloads::fresh_status(set, &COUNTS),
    errors,
    changes: Some(changes),
    status_changes,
    warnings,
    pod_spec: &["spec", "template", "spec"],
    printer: Printer::of(&[
        NAME,
        words("Ready", "Number of the pod with ready state").shows(workloads::ready),
        AGE,
        CONTAINERS,
        IMAGES,
    ]),
    ..KindDef::of::<k8s_openapi::api::apps::v1::StatefulSet>()
};

fn defaults(object: &mut Object) {
    let spec = made(object, "spec");
    default(spec, "podManagementPolicy", "OrderedReady");
    let strategy = made(spec, "updateStrategy");
    default(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        default(made(strategy, "rollingUpdate"), "partition", 0);
    }
    let retention = made(spec, "persistentVolumeClaimRetentionPolicy");
    default(retention, "whenDeleted", "Retain");
    default(retention, "whenScaled", "Retain");
    default(spec, "replicas", 1);
    default(spec, "revisionHistoryLimit", 10);
    pod_spec::template_defaults(spec);
    each(spec, "volumeClaimTemplates", |claim| {
        default(claim, "apiVersion", "v1");
        default(claim, "kind", "PersistentVolumeClaim");
        made(claim, "metadata");
        default(made(claim, "spec"), "volumeMode", "Filesystem");
        default(made(claim, "status"), "phase", "Pending");
    });
    workloads::shown_counts(object, &COUNTS);
}

fn errors(object: &Object, errors: &mut Errors) {
    let spec = below(object, "spec");
    let policy = text(spec, "podManagementPolicy");
    if !["OrderedReady", "Parallel"].contains(&policy) {
        errors.invalid(
            "spec.podManagementPolicy",
            policy,
            "must be 'OrderedReady' or 'Parallel'",
        );
    }
    update_strategy(below(spec, "updateStrategy"), errors);
    let retention = below(spec, "persistentVolumeClaimRetentionPolicy");
    for key in ["whenDeleted", "whenScaled"] {
        errors.one_of(
            format!("spec.persistentVolumeClaimRetentionPolicy.{key}"),
            text(retention, key),
            &["Retain", "Delete"],
        );
    }
    errors.nonnegative(spec, "spec", "replicas");
    errors.nonnegative(spec, "spec", "minReadySeconds");
    errors.nonnegative(below(spec, "ordinals"), "spec.ordinals", "start");
    workloads::selector(spec, "spec", "empty selector is invalid for statefulset", errors);
    workloads::labels_selected(spec, "spec", errors);
    errors.extend(names::labels(
        workloads::template_labels(spec),
        "spec.template.labels",
    ));
    // The real server does not look into the pod spec: claims stand for volumes that are not in it.
    workloads::always(spec, "spec", "StatefulSet", errors);
    errors.nonnegative(spec, "spec", "revisionHistoryLimit");
}

fn changes(new: &Object, old: &Object, errors: &mut Errors) {
    self::errors(new, errors);
    let fixed = |object: &Object| {
        let mut spec = below(object, "spec").clone();
        spec.retain(|key, value| !MUTABLE.contains(&key.as_str()) && !is_empty(value));
        spec
    };
    if fixed(new) != fixed(old) {
        errors.forbidden("spec", FIXED);
    }
}

fn status_changes(new: &Object, old: &Object, errors: &mut Errors) {
    let status = below(new, "status");
    errors.extend(workloads::counts(
        status,
        &[
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ],
        &[
            ("readyReplicas", "replicas", "status.replicas"),
            ("currentReplicas", "replicas", "status.replicas"),
            ("updatedReplicas", "replicas", "status.replicas"),
            ("availableReplicas", "replicas", "status.replicas"),
            ("availableReplicas", "readyReplicas", "status.readyReplicas"),
        ],
    ));
    errors.extend(workloads::collisions(new, old));
}

fn warnings(new: &Object, old: Option<&Object>) -> Vec<String> {
    let mut found = workloads::warnings(new, old);
    let spec = |object| below(object, "spec");
    if old.is_none_or(|old| spec(old) != spec(new))
        && spec(new)
            .get("revisionHistoryLimit")
            .and_then(Value::as_i64)
            .is_some_and(|limit| limit < 0)
    {
        found.push(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
                .to_owned(),
        );
    }
    found
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

fn update_strategy(strategy: &Object, errors: &mut Errors) {
    let rolling = object(strategy, "rollingUpdate");
    let path = "spec.updateStrategy";
    match (text(strategy, "type"), rolling) {
        ("OnDelete", Some(rolling)) => errors.invalid(
            format!("{path}.rollingUpdate"),
            json!({"Partition": rolling.get("partition"), "MaxUnavailable": rolling.get("maxUnavailable")}),
            "only allowed for updateStrategy 'RollingUpdate'",
        ),
        ("OnDelete", None) => {}
        ("RollingUpdate", rolling) => {
            if let Some(rolling) = rolling {
                errors.nonnegative(rolling, &format!("{path}.rollingUpdate"), "partition");
            }
        }
        (kind, _) => errors.invalid(
            path,
            json!({"Type": kind, "RollingUpdate": null}),
            "must be 'RollingUpdate' or 'OnDelete'",
        ),
    }
}
