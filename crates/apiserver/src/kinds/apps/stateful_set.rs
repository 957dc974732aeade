//! `StatefulSets`.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::StatefulSet;
use serde_json::{Value, json};

use crate::{
    kinds::{kind_def::KindDef, pod_spec, workloads},
    names,
    object::{
        Object,
        tree::{Errors, below, default, each, made, object, text},
    },
    printer::{
        Printer,
        column::{AGE, CONTAINERS, IMAGES, NAME, words},
    },
    resource::{Rules, Surroundings},
    status::{FieldError, Result},
};

/// What may change in a spec.
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

/// StatefulSet.
pub(super) static DEF: KindDef = KindDef {
    short: &["sts"],
    categories: &["all"],
    subresources: &["scale", "status"],
    rules: Some(|| Arc::new(StatefulSets)),
    pod_spec: &["spec", "template", "spec"],
    printer: Printer::new(
        &[
            NAME,
            words("Ready", "Number of the pod with ready state"),
            AGE,
            CONTAINERS,
            IMAGES,
        ],
        |object| {
            let [names, images] = object.containers(workloads::CONTAINERS);
            vec![
                object.name(),
                workloads::ready(object),
                object.age(),
                names,
                images,
            ]
        },
    ),
    ..KindDef::of::<StatefulSet>()
};

/// The rules of `apps/v1` `StatefulSets`.
#[derive(Debug)]
pub(super) struct StatefulSets;

impl Rules for StatefulSets {
    fn defaults(&self, object: &mut Object) {
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

    fn has_status(&self) -> bool {
        true
    }

    fn has_generation(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Object, _around: &dyn Surroundings) -> Result<()> {
        workloads::fresh_status(object, &COUNTS);
        Ok(())
    }

    fn name_problems(&self, name: &str, prefix: bool) -> Vec<String> {
        names::dns_label(name, prefix)
    }

    fn validate(&self, object: &Object) -> Vec<FieldError> {
        let spec = below(object, "spec");
        let mut errors = Errors::default();
        let policy = text(spec, "podManagementPolicy");
        if !["OrderedReady", "Parallel"].contains(&policy) {
            errors.invalid(
                "spec.podManagementPolicy",
                policy,
                "must be 'OrderedReady' or 'Parallel'",
            );
        }
        update_strategy(below(spec, "updateStrategy"), &mut errors);
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
        workloads::selector(
            spec,
            "spec",
            "empty selector is invalid for statefulset",
            &mut errors,
        );
        workloads::labels_selected(spec, "spec", &mut errors);
        errors.extend(names::labels(
            workloads::template_labels(spec),
            "spec.template.labels",
        ));
        // The real server does not look into the pod spec: claims stand for volumes that are not in it.
        workloads::always(spec, "spec", "StatefulSet", &mut errors);
        errors.nonnegative(spec, "spec", "revisionHistoryLimit");
        errors.0
    }

    fn validate_update(&self, subresource: &str, new: &Object, old: &Object) -> Vec<FieldError> {
        if subresource == "status" {
            let status = below(new, "status");
            let mut errors = workloads::counts(
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
            );
            errors.extend(workloads::collisions(new, old));
            return errors;
        }
        let mut errors = Errors(self.validate(new));
        let fixed = |object: &Object| {
            let mut spec = below(object, "spec").clone();
            spec.retain(|key, value| !MUTABLE.contains(&key.as_str()) && !is_empty(value));
            spec
        };
        if fixed(new) != fixed(old) {
            errors.forbidden("spec", FIXED);
        }
        errors.0
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
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
