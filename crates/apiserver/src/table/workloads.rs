//! Deployments, jobs and their like, autoscalers and disruption budgets.

use serde_json::Value;

use super::{
    Printer,
    column::{AGE, CONTAINERS, Column, IMAGES, NAME, boolean, number, text, wide},
    view::{NONE, UNKNOWN, UNSET, View, duration, seconds},
};

const TEMPLATE: &str = "spec.template.spec.containers";

const REPLICAS: &[Column] = &[
    NAME,
    number("Desired", ".spec.replicas"),
    number("Current", ".status.replicas"),
    number("Ready", ".status.readyReplicas"),
    AGE,
    CONTAINERS,
    IMAGES,
    wide("Selector", ".spec.selector"),
];

pub(super) const PRINTERS: &[Printer] = &[
    Printer {
        group: "",
        kind: "ReplicationController",
        columns: REPLICAS,
        cells: |object| replicas(object, object.labels("spec.selector")),
    },
    Printer {
        group: "apps",
        kind: "ReplicaSet",
        columns: REPLICAS,
        cells: |object| replicas(object, object.selector("spec.selector")),
    },
    Printer {
        group: "apps",
        kind: "Deployment",
        columns: &[
            NAME,
            text("Ready", "Number of the pod with ready state"),
            text("Up-to-date", ".status.updatedReplicas"),
            text("Available", ".status.availableReplicas"),
            AGE,
            CONTAINERS,
            IMAGES,
            wide("Selector", ".spec.selector"),
        ],
        cells: |object| {
            let [names, images] = object.containers(TEMPLATE);
            vec![
                object.name(),
                ready(object),
                object.number("status.updatedReplicas").into(),
                object.number("status.availableReplicas").into(),
                object.age(),
                names,
                images,
                object.selector_text("spec.selector").into(),
            ]
        },
    },
    Printer {
        group: "apps",
        kind: "StatefulSet",
        columns: &[
            NAME,
            text("Ready", "Number of the pod with ready state"),
            AGE,
            CONTAINERS,
            IMAGES,
        ],
        cells: |object| {
            let [names, images] = object.containers(TEMPLATE);
            vec![object.name(), ready(object), object.age(), names, images]
        },
    },
    Printer {
        group: "apps",
        kind: "DaemonSet",
        columns: &[
            NAME,
            number("Desired", ".status.desiredNumberScheduled"),
            number("Current", ".status.currentNumberScheduled"),
            number("Ready", ".status.numberReady"),
            number("Up-to-date", ".status.updatedNumberScheduled"),
            number("Available", ".status.numberAvailable"),
            text("Node Selector", ".spec.template.spec.nodeSelector"),
            AGE,
            CONTAINERS,
            IMAGES,
            wide("Selector", ".spec.selector"),
        ],
        cells: |object| {
            let [names, images] = object.containers(TEMPLATE);
            vec![
                object.name(),
                object.number("status.desiredNumberScheduled").into(),
                object.number("status.currentNumberScheduled").into(),
                object.number("status.numberReady").into(),
                object.number("status.updatedNumberScheduled").into(),
                object.number("status.numberAvailable").into(),
                object.labels("spec.template.spec.nodeSelector"),
                object.age(),
                names,
                images,
                object.selector("spec.selector"),
            ]
        },
    },
    Printer {
        group: "apps",
        kind: "ControllerRevision",
        columns: &[
            NAME,
            text("Controller", "Controller of the object"),
            text("Revision", ".revision"),
            AGE,
        ],
        cells: |object| {
            vec![
                object.name(),
                controller(object).into(),
                object.number("revision").into(),
                object.age(),
            ]
        },
    },
    Printer {
        group: "batch",
        kind: "Job",
        columns: &[
            NAME,
            text("Status", "Status of the job."),
            text("Completions", ".status.succeeded"),
            text("Duration", "Time required to complete the job."),
            AGE,
            CONTAINERS,
            IMAGES,
            wide("Selector", ".spec.selector"),
        ],
        cells: |object| {
            let [names, images] = object.containers(TEMPLATE);
            vec![
                object.name(),
                job_status(object).into(),
                completions(object).into(),
                job_duration(object).into(),
                object.age(),
                names,
                images,
                object.selector("spec.selector"),
            ]
        },
    },
    Printer {
        group: "batch",
        kind: "CronJob",
        columns: &[
            NAME,
            text("Schedule", ".spec.schedule"),
            text("Timezone", ".spec.timeZone"),
            boolean("Suspend", ".spec.suspend"),
            number("Active", ".status.active"),
            text("Last Schedule", ".status.lastScheduleTime"),
            AGE,
            CONTAINERS,
            IMAGES,
            wide("Selector", ".spec.jobTemplate.spec.selector"),
        ],
        cells: |object| {
            let [names, images] = object.containers("spec.jobTemplate.spec.template.spec.containers");
            let suspended = match object.at("spec.suspend").and_then(Value::as_bool) {
                Some(true) => "True",
                Some(false) => "False",
                None => UNSET,
            };
            let last = match object.text("status.lastScheduleTime") {
                "" => NONE.to_owned(),
                time => object.since_text(time),
            };
            vec![
                object.name(),
                object.text("spec.schedule").into(),
                object.or("spec.timeZone", NONE),
                suspended.into(),
                object.count("status.active").into(),
                last.into(),
                object.age(),
                names,
                images,
                object.selector("spec.jobTemplate.spec.selector"),
            ]
        },
    },
    Printer {
        group: "autoscaling",
        kind: "HorizontalPodAutoscaler",
        columns: &[
            NAME,
            text("Reference", ".spec.scaleTargetRef"),
            text("Targets", ".spec.metrics"),
            text("MinPods", ".spec.minReplicas"),
            text("MaxPods", ".spec.maxReplicas"),
            text("Replicas", ".status.currentReplicas"),
            AGE,
        ],
        cells: |object| {
            let target = format!(
                "{}/{}",
                object.text("spec.scaleTargetRef.kind"),
                object.text("spec.scaleTargetRef.name")
            );
            let least = object
                .at("spec.minReplicas")
                .map_or_else(|| UNSET.to_owned(), ToString::to_string);
            vec![
                object.name(),
                target.into(),
                metrics(object).into(),
                least.into(),
                object.number("spec.maxReplicas").into(),
                object.number("status.currentReplicas").into(),
                object.age(),
            ]
        },
    },
    Printer {
        group: "policy",
        kind: "PodDisruptionBudget",
        columns: &[
            NAME,
            text(
                "Min Available",
                "The minimum number of pods that must be available.",
            ),
            text(
                "Max Unavailable",
                "The maximum number of pods that may be unavailable.",
            ),
            number(
                "Allowed Disruptions",
                "Calculated number of pods that may be disrupted at this time.",
            ),
            AGE,
        ],
        cells: |object| {
            let bound = |path: &str| match object.at(path) {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => "N/A".to_owned(),
            };
            vec![
                object.name(),
                bound("spec.minAvailable").into(),
                bound("spec.maxUnavailable").into(),
                object.number("status.disruptionsAllowed").into(),
                object.age(),
            ]
        },
    },
];

fn ready(object: &View<'_>) -> Value {
    format!(
        "{}/{}",
        object.number("status.readyReplicas"),
        object.number("spec.replicas")
    )
    .into()
}

fn replicas(object: &View<'_>, selector: Value) -> Vec<Value> {
    let [names, images] = object.containers(TEMPLATE);
    vec![
        object.name(),
        object.number("spec.replicas").into(),
        object.number("status.replicas").into(),
        object.number("status.readyReplicas").into(),
        object.age(),
        names,
        images,
        selector,
    ]
}

/// The owner that controls the object: `statefulset.apps/web`.
fn controller(object: &View<'_>) -> String {
    let owners = object.list("metadata.ownerReferences");
    let Some(owner) = owners.iter().find(|owner| owner["controller"] == true) else {
        return NONE.to_owned();
    };
    let text = |name: &str| owner[name].as_str().unwrap_or_default();
    let kind = text("kind").to_lowercase();
    match text("apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{}", text("name")),
        None => format!("{kind}/{}", text("name")),
    }
}

/// Conditions of a job that name its state, the first that is true wins; a job being deleted comes before the rest.
const ENDED: [(&str, &str); 2] = [("Complete", "Complete"), ("Failed", "Failed")];
const ON_THE_WAY: [&str; 3] = ["Suspended", "FailureTarget", "SuccessCriteriaMet"];

fn job_status(job: &View<'_>) -> &'static str {
    for (condition, status) in ENDED {
        if job.is_true(condition) {
            return status;
        }
    }
    if job.leaving() {
        return "Terminating";
    }
    ON_THE_WAY
        .into_iter()
        .find(|condition| job.is_true(condition))
        .unwrap_or("Running")
}

fn completions(job: &View<'_>) -> String {
    let done = job.number("status.succeeded");
    match (job.at("spec.completions"), job.number("spec.parallelism")) {
        (Some(wanted), _) => format!("{done}/{wanted}"),
        (None, parallel @ 2..) => format!("{done}/1 of {parallel}"),
        (None, _) => format!("{done}/1"),
    }
}

fn job_duration(job: &View<'_>) -> String {
    let Some(start) = seconds(job.text("status.startTime")) else {
        return String::new();
    };
    let end = seconds(job.text("status.completionTime")).unwrap_or(job.now);
    duration(end - start)
}

/// What an autoscaler measures, at most two: `cpu: 10%/80%`.
fn metrics(scaler: &View<'_>) -> String {
    /// Metrics that are shown.
    const SHOWN: usize = 2;
    let (wanted, current) = (scaler.list("spec.metrics"), scaler.list("status.currentMetrics"));
    if scaler.at("spec.targetCPUUtilizationPercentage").is_some() {
        let now = scaler
            .at("status.currentCPUUtilizationPercentage")
            .map_or_else(|| UNKNOWN.to_owned(), |now| format!("{now}%"));
        return format!(
            "cpu: {now}/{}%",
            scaler.number("spec.targetCPUUtilizationPercentage")
        );
    }
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
