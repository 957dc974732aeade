//! Pods: what is filled in, what may change, how long they live on.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value, json};

use crate::{
    kinds::{kind_def::KindDef, pod_spec},
    names,
    object::{
        Object, field,
        tree::{Errors, below, default, flag, list, made, number, object, text},
    },
    resource::{Rules, Surroundings},
    status::{FieldError, Result},
};

mod admission;
mod label_keys;
mod printer;
mod subresources;
mod update;

pub(super) static DEF: KindDef = KindDef {
    short: &["po"],
    categories: &["all"],
    subresources: &[
        "attach",
        "binding",
        "ephemeralcontainers",
        "eviction",
        "exec",
        "log",
        "portforward",
        "proxy",
        "resize",
        "status",
    ],
    rules: Some(|| Arc::new(Pods)),
    pod_spec: &["spec"],
    printer: printer::PRINTER,
    ..KindDef::of::<k8s_openapi::api::core::v1::Pod>()
};

/// The rules of Pods.
#[derive(Debug)]
pub(super) struct Pods;

impl Rules for Pods {
    fn defaults(&self, object: &mut Object) {
        pod_spec::pod_defaults(made(object, "spec"));
        let status = made(object, "status");
        default(status, "phase", "Pending");
        addresses(status);
    }

    fn has_status(&self) -> bool {
        true
    }

    fn kept_by_status(&self) -> &'static [&'static str] {
        // Kubelets of old sent them damaged.
        &["ownerReferences"]
    }

    fn has_generation(&self) -> bool {
        true
    }

    fn revalidates(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Object, around: &dyn Surroundings) -> Result<()> {
        admission::admit(object, around)?;
        label_keys::merge(object);
        let spec = below(object, "spec");
        let mut status = Map::new();
        status.insert("phase".to_owned(), "Pending".into());
        status.insert("qosClass".to_owned(), pod_spec::quality(spec).into());
        if !list(spec, "schedulingGates").is_empty() {
            let gated = json!([{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastProbeTime": null, "lastTransitionTime": around.now()}]);
            status.insert("conditions".to_owned(), gated);
        }
        object.insert("status".to_owned(), Value::Object(status));
        Ok(())
    }

    fn prepare_update(
        &self,
        subresource: &str,
        new: &mut Object,
        old: &Object,
        _around: &dyn Surroundings,
    ) -> Result<()> {
        match subresource {
            "" => admission::tolerate(made(new, "spec")),
            "status" => {
                let quality = below(old, "status").get("qosClass").cloned();
                if let Some(quality) = quality {
                    default(made(new, "status"), "qosClass", quality);
                }
            }
            other => subresources::narrow(other, new, old),
        }
        Ok(())
    }

    fn validate(&self, object: &Object) -> Vec<FieldError> {
        let spec = below(object, "spec");
        let mut errors = Errors(update::whole(object));
        if !list(spec, "ephemeralContainers").is_empty() {
            errors.forbidden("spec.ephemeralContainers", "cannot be set on create");
        }
        if !list(spec, "schedulingGates").is_empty() && !text(spec, "nodeName").is_empty() {
            errors.forbidden(
                "spec.nodeName",
                "cannot be set until all schedulingGates have been cleared",
            );
        }
        errors.0
    }

    fn validate_update(&self, subresource: &str, new: &Object, old: &Object) -> Vec<FieldError> {
        match subresource {
            "" => update::validate(new, old),
            "status" => status(new, old),
            other => subresources::validate(other, new, old),
        }
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        let mut found = Vec::new();
        if old.is_none() {
            let problems = names::dns_label(field(new, "name"), false);
            if !problems.is_empty() {
                found.push(format!(
                    "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [{}]",
                    problems.join(" ")
                ));
            }
        }
        if old.is_none_or(|old| old.get("spec") != new.get("spec")) {
            found.extend(pod_spec::pod_warnings(below(new, "spec")));
        }
        found
    }

    fn selectable(&self, object: &Object) -> Option<BTreeMap<String, String>> {
        let (spec, status) = (below(object, "spec"), below(object, "status"));
        let mut fields = BTreeMap::new();
        for key in ["nodeName", "restartPolicy", "schedulerName", "serviceAccountName"] {
            fields.insert(format!("spec.{key}"), text(spec, key).to_owned());
        }
        for key in ["phase", "podIP", "nominatedNodeName"] {
            fields.insert(format!("status.{key}"), text(status, key).to_owned());
        }
        fields.insert(
            "spec.hostNetwork".to_owned(),
            flag(spec, "hostNetwork").to_string(),
        );
        Some(fields)
    }

    fn delete_returns_object(&self) -> bool {
        true
    }

    fn grace(&self, object: &Object, asked: Option<i64>) -> Option<i64> {
        let spec = below(object, "spec");
        let seconds = asked
            .or_else(|| number(spec, "terminationGracePeriodSeconds"))
            .unwrap_or(0);
        Some(if text(spec, "nodeName").is_empty() || is_finished(object) {
            0
        } else if seconds < 0 {
            1
        } else {
            seconds
        })
    }
}

/// The single address and the list go together; where they differ, the single one counts.
fn addresses(status: &mut Object) {
    let first = list(status, "podIPs").first().and_then(Value::as_object);
    let (ip, first) = (text(status, "podIP"), first.map_or("", |ip| text(ip, "ip")));
    let (field, value) = match (ip, first) {
        _ if ip == first => return,
        ("", _) => ("podIP", first.into()),
        _ => ("podIPs", json!([{"ip": ip}])),
    };
    status.insert(field.to_owned(), value);
}

/// True if a pod has ended, well or not.
pub(crate) fn is_finished(pod: &Object) -> bool {
    matches!(text(below(pod, "status"), "phase"), "Succeeded" | "Failed")
}

fn status(new: &Object, old: &Object) -> Vec<FieldError> {
    let (status, before) = (below(new, "status"), below(old, "status"));
    let mut errors = Errors::default();
    let node = text(status, "nominatedNodeName");
    if !node.is_empty() {
        errors.all_invalid(
            "status.nominatedNodeName",
            node,
            names::dns_subdomain(node, false),
        );
    }
    if text(status, "qosClass") != text(before, "qosClass") && before.contains_key("qosClass") {
        errors.invalid(
            "status.qosClass",
            text(status, "qosClass"),
            crate::object::tree::IMMUTABLE,
        );
    }
    restarts(status, before, below(new, "spec"), &mut errors);
    let ips = list(status, "podIPs");
    for (at, ip) in ips.iter().filter_map(Value::as_object).enumerate() {
        let ip = text(ip, "ip");
        errors.all_invalid(&format!("status.podIPs[{at}]"), ip, names::ip(ip));
    }
    errors.0
}

/// Containers of a pod that is never started again stay ended.
fn restarts(status: &Object, before: &Object, spec: &Object, errors: &mut Errors) {
    let policy = text(spec, "restartPolicy");
    if policy == "Always" {
        return;
    }
    for (at, old) in list(before, "containerStatuses")
        .iter()
        .filter_map(Value::as_object)
        .enumerate()
    {
        let Some(ended) = object(below(old, "state"), "terminated") else {
            continue;
        };
        if policy == "OnFailure" && number(ended, "exitCode").is_some_and(|code| code != 0) {
            continue;
        }
        let runs_again = list(status, "containerStatuses")
            .iter()
            .filter_map(Value::as_object)
            .any(|one| {
                text(one, "name") == text(old, "name") && object(below(one, "state"), "terminated").is_none()
            });
        if runs_again {
            errors.forbidden(
                format!("status.containerStatuses[{at}].state"),
                "may not be transitioned to non-terminated state",
            );
        }
    }
}
