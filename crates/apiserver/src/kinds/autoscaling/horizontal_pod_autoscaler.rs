//! `HorizontalPodAutoscalers`, in the two versions of one stored object: stored as `autoscaling/v2`.

use k8s_openapi::api::autoscaling::{v1, v2};
use serde_json::{Value, json};

use crate::{
    kinds::{
        kind_def::{Form, KindDef},
        workloads,
    },
    object::{
        Object,
        tree::{Errors, below, default, list, made, object, within},
    },
    printer::{AGE, NAME, NONE, Printer, UNKNOWN, UNSET, View, words},
    schema::builtin::Root,
};

mod convert;
mod validate;

const COUNTS: [&str; 2] = ["currentReplicas", "desiredReplicas"];

/// HorizontalPodAutoscaler of `autoscaling/v2`.
pub(super) static V2: KindDef = KindDef {
    short: &["hpa"],
    categories: &["all"],
    subresources: &["status"],
    defaults: |object| {
        default(made(object, "spec"), "minReplicas", 1);
        second_defaults(made(object, "spec"));
        shown_status(object);
    },
    created: |object| {
        object.insert("status".to_owned(), json!({}));
        shown_status(object);
    },
    errors: |object, errors| errors.extend(validate::spec(below(object, "spec"))),
    status_changes,
    printer: PRINTER,
    ..KindDef::of::<v2::HorizontalPodAutoscaler>()
};

/// HorizontalPodAutoscaler of `autoscaling/v1`.
pub(super) static V1: KindDef = KindDef {
    short: &["hpa"],
    categories: &["all"],
    subresources: &["status"],
    form: Some(Form {
        show_stored: convert::to_first,
        to_stored,
    }),
    defaults: |object| {
        default(made(object, "spec"), "minReplicas", 1);
        workloads::shown_counts(object, &COUNTS);
    },
    created: |object| workloads::fresh_status(object, &COUNTS),
    errors: |object, errors| {
        let mut object = object.clone();
        to_stored(&mut object);
        errors.extend(validate::spec(below(&object, "spec")));
    },
    status_changes,
    printer: Printer {
        standing_in: &convert::ANNOTATIONS,
        ..PRINTER
    },
    ..KindDef::of::<v1::HorizontalPodAutoscaler>()
};

/// The printer of autoscalers: those of both versions in the form of the newer one.
const PRINTER: Printer = Printer {
    documented: Some(Root::of::<v2::HorizontalPodAutoscaler>()),
    ..Printer::of(&[
        NAME,
        words("Reference", ".spec.scaleTargetRef").shows(|object| {
            let target = format!(
                "{}/{}",
                object.text("spec.scaleTargetRef.kind"),
                object.text("spec.scaleTargetRef.name")
            );
            target.into()
        }),
        words("Targets", ".spec.metrics").shows(|object| metrics(object).into()),
        words("MinPods", ".spec.minReplicas").shows(|object| {
            let least = object
                .at("spec.minReplicas")
                .map_or_else(|| UNSET.to_owned(), ToString::to_string);
            least.into()
        }),
        words("MaxPods", ".spec.maxReplicas").shows(|object| object.number("spec.maxReplicas").into()),
        words("Replicas", ".status.currentReplicas")
            .shows(|object| object.number("status.currentReplicas").into()),
        AGE,
    ])
};

fn to_stored(object: &mut Object) {
    convert::to_second(object);
    second_defaults(made(object, "spec"));
    shown_status(object);
}

fn status_changes(new: &Object, _: &Object, errors: &mut Errors) {
    errors.extend(workloads::counts(below(new, "status"), &COUNTS, &[]));
}

/// A status of `v2` always shows these.
fn shown_status(object: &mut Object) {
    workloads::shown_counts(object, &["desiredReplicas"]);
    let status = made(object, "status");
    status.entry("currentMetrics").or_insert(Value::Null);
}

fn second_defaults(spec: &mut Object) {
    if list(spec, "metrics").is_empty() {
        let cpu = json!([{"type": "Resource", "resource":
            {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]);
        spec.insert("metrics".to_owned(), cpu);
    }
    if let Some(behavior) = object(spec, "behavior")
        && behavior.is_empty()
    {
        spec.remove("behavior");
    }
    within(spec, "behavior", |behavior| {
        let percent = || json!({"type": "Percent", "value": 100, "periodSeconds": 15});
        let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
        rules(behavior, "scaleUp", &json!([pods, percent()]), Some(0));
        rules(behavior, "scaleDown", &json!([percent()]), None);
    });
}

/// Fills in how fast to scale in one direction.
fn rules(behavior: &mut Object, key: &str, policies: &Value, window: Option<i64>) {
    let rules = made(behavior, key);
    default(rules, "selectPolicy", "Max");
    if let Some(window) = window {
        default(rules, "stabilizationWindowSeconds", window);
    }
    if rules.get("policies").is_none_or(Value::is_null) {
        rules.insert("policies".to_owned(), policies.clone());
    }
}

/// The metrics of an autoscaler, at most two: `cpu: 10%/80%`.
fn metrics(scaler: &View<'_>) -> String {
    /// Metrics that are shown.
    const SHOWN: usize = 2;
    let (wanted, current) = (scaler.list("spec.metrics"), scaler.list("status.currentMetrics"));
    if wanted.is_empty() {
        return NONE.to_owned();
    }
    let all: Vec<String> = wanted
        .iter()
        .enumerate()
        .map(|(at, spec)| metric(spec, current.get(at)))
        .collect();
    if all.len() > SHOWN {
        format!("{} + {} more...", all[..SHOWN].join(", "), all.len() - SHOWN)
    } else {
        all.join(", ")
    }
}

fn metric(spec: &Value, status: Option<&Value>) -> String {
    let source = match spec["type"].as_str().unwrap_or_default() {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let (spec, current) = (&spec[source], status.map(|status| &status[source]["current"]));
    let now = |field: &str, unit: &str| match current.map(|current| &current[field]) {
        Some(Value::String(text)) => format!("{text}{unit}"),
        Some(Value::Number(number)) => format!("{number}{unit}"),
        _ => UNKNOWN.to_owned(),
    };
    let target = &spec["target"];
    let quantity = |field: &str| target[field].as_str().map(str::to_owned);
    match source {
        "resource" | "containerResource" => {
            let name = spec["name"].as_str().unwrap_or_default();
            match quantity("averageValue") {
                Some(wanted) => format!("{name}: {}/{wanted}", now("averageValue", "")),
                None => {
                    let wanted = target["averageUtilization"].as_i64();
                    let wanted = wanted.map_or_else(|| "<auto>".to_owned(), |percent| format!("{percent}%"));
                    format!("{name}: {}/{wanted}", now("averageUtilization", "%"))
                }
            }
        }
        "pods" => format!(
            "{}/{}",
            now("averageValue", ""),
            quantity("averageValue").unwrap_or_default()
        ),
        _ => match quantity("averageValue") {
            Some(wanted) => format!("{}/{wanted} (avg)", now("averageValue", "")),
            None => format!("{}/{}", now("value", ""), quantity("value").unwrap_or_default()),
        },
    }
}
