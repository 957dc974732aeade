//! The printer of Pods: the state of its containers in one word.

use serde_json::{Value, json};

use crate::printer::{AGE, Column, NAME, NONE, Printer, View, duration, seconds, wide, words};

/// The printer of Pods.
pub(super) const PRINTER: Printer = Printer {
    conditions,
    ..Printer::new(COLUMNS, cells)
};

const COLUMNS: &[Column] = &[
    NAME,
    words(
        "Ready",
        "The aggregate readiness state of this pod for accepting traffic.",
    ),
    words("Status", "The aggregate status of the containers in this pod."),
    words(
        "Restarts",
        "The number of times the containers in this pod have been restarted and when the last container in this pod has restarted.",
    ),
    AGE,
    wide("IP", ".status.podIP"),
    wide("Node", ".spec.nodeName"),
    wide("Nominated Node", ".status.nominatedNodeName"),
    wide("Readiness Gates", ".spec.readinessGates"),
];

/// Conditions of the row of a pod that has run to its end.
pub(super) fn conditions(pod: &View<'_>) -> Option<Value> {
    let (reason, message) = match pod.text("status.phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

/// Restarts, and when the last one was.
#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<i64>,
}

impl Restarts {
    fn add(&mut self, container: &Value) {
        self.count += container["restartCount"].as_i64().unwrap_or_default();
        let ended = container["lastState"]["terminated"]["finishedAt"].as_str();
        self.last = self.last.max(ended.and_then(seconds));
    }
}

fn cells(pod: &View<'_>) -> Vec<Value> {
    let phase = pod.text("status.phase");
    let mut status = match pod.text("status.reason") {
        "" => phase.to_owned(),
        reason => reason.to_owned(),
    };
    let conditions = pod.list("status.conditions");
    if conditions
        .iter()
        .any(|one| one["type"] == "PodScheduled" && one["reason"] == "SchedulingGated")
    {
        "SchedulingGated".clone_into(&mut status);
    }
    let init = pod.list("spec.initContainers");
    let is_sidecar = |name: &Value| {
        init.iter()
            .any(|one| one["name"] == *name && one["restartPolicy"] == "Always")
    };
    let mut total = pod.count("spec.containers");
    total += init.iter().filter(|one| one["restartPolicy"] == "Always").count();
    let (mut ready, mut restarts, mut sidecars) = (0, Restarts::default(), Restarts::default());
    let mut initializing = false;
    for (at, container) in pod.list("status.initContainerStatuses").iter().enumerate() {
        restarts.add(container);
        let sidecar = is_sidecar(&container["name"]);
        if sidecar {
            sidecars.add(container);
        }
        if container["state"]["terminated"].is_object() && exit(container) == 0 {
            continue;
        }
        if sidecar && container["started"] == true {
            ready += usize::from(container["ready"] == true);
            continue;
        }
        let waiting = container["state"]["waiting"]["reason"]
            .as_str()
            .unwrap_or_default();
        status = match ended(container) {
            Some(how) => format!("Init:{how}"),
            None if !matches!(waiting, "" | "PodInitializing") => format!("Init:{waiting}"),
            None => format!("Init:{at}/{}", init.len()),
        };
        initializing = true;
        break;
    }
    if !initializing || pod.is_true("Initialized") {
        restarts = sidecars;
        let mut running = false;
        for container in pod.list("status.containerStatuses").iter().rev() {
            restarts.add(container);
            let waiting = container["state"]["waiting"]["reason"]
                .as_str()
                .unwrap_or_default();
            if !waiting.is_empty() {
                waiting.clone_into(&mut status);
            } else if let Some(how) = ended(container) {
                status = how;
            } else if container["ready"] == true && container["state"]["running"].is_object() {
                running = true;
                ready += 1;
            }
        }
        if status == "Completed" && running {
            status = if pod.is_true("Ready") {
                "Running"
            } else {
                "NotReady"
            }
            .to_owned();
        }
    }
    if pod.leaving() {
        if pod.text("status.reason") == "NodeLost" {
            "Unknown".clone_into(&mut status);
        } else if !matches!(phase, "Succeeded" | "Failed") {
            "Terminating".clone_into(&mut status);
        }
    }
    let restarts = match restarts {
        Restarts {
            count,
            last: Some(last),
        } if count > 0 => {
            format!("{count} ({} ago)", duration(pod.now - last))
        }
        Restarts { count, .. } => count.to_string(),
    };
    let ip = pod
        .list("status.podIPs")
        .first()
        .and_then(|one| one["ip"].as_str())
        .unwrap_or(NONE);
    vec![
        pod.name(),
        format!("{ready}/{total}").into(),
        status.into(),
        restarts.into(),
        pod.age(),
        ip.into(),
        pod.or("spec.nodeName", NONE),
        pod.or("status.nominatedNodeName", NONE),
        gates(pod).into(),
    ]
}

fn exit(container: &Value) -> i64 {
    container["state"]["terminated"]["exitCode"]
        .as_i64()
        .unwrap_or_default()
}

/// The reason why a container ended; `None` if it has not.
fn ended(container: &Value) -> Option<String> {
    let terminated = container["state"]["terminated"].as_object()?;
    let number = |name: &str| terminated.get(name).and_then(Value::as_i64).unwrap_or_default();
    Some(match terminated.get("reason").and_then(Value::as_str) {
        Some(reason) if !reason.is_empty() => reason.to_owned(),
        _ if number("signal") != 0 => format!("Signal:{}", number("signal")),
        _ => format!("ExitCode:{}", number("exitCode")),
    })
}

/// The number of open readiness gates.
fn gates(pod: &View<'_>) -> String {
    let gates = pod.list("spec.readinessGates");
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let conditions = pod.list("status.conditions");
    let open = gates.iter().filter(|gate| {
        let condition = conditions.iter().find(|one| one["type"] == gate["conditionType"]);
        condition.is_some_and(|one| one["status"] == "True")
    });
    format!("{}/{}", open.count(), gates.len())
}
