//! The report of a failed test. It never contains the content of a Secret.

use std::fmt::Write as _;

use serde_json::Value;

use super::{
    kinds::{DEPENDENCIES, WORKLOADS},
    scene::Scene,
};

/// The maximum number of log lines, and of writes, in a report.
const LINES: usize = 60;

/// Bindings, policies, clusters, the objects on the members, the last writes and the end of the log.
pub(super) async fn report(scene: &Scene) -> String {
    let mut text = String::from("--- Clusters\n");
    for cluster in scene.hub.list("Cluster", "", "").await.unwrap_or_default() {
        let (name, conditions) = (&cluster["metadata"]["name"], &cluster["status"]["conditions"]);
        let deleting = &cluster["metadata"]["deletionTimestamp"];
        let _ = writeln!(text, "{name}: deleting {deleting}, {conditions}");
    }
    for mut each in scene
        .hub
        .list("ResourceDistribution", "", "")
        .await
        .unwrap_or_default()
    {
        if name(&each).starts_with(&scene.own("")) {
            let meta = &each["metadata"];
            let (generation, deleting) = (meta["generation"].clone(), meta["deletionTimestamp"].clone());
            // Never what it distributes.
            let status = each["status"].take();
            let _ = writeln!(
                text,
                "--- ResourceDistribution {} generation {generation} deleting {deleting}\n{status}",
                name(&each)
            );
        }
    }
    for ns in scene.namespaces() {
        for kind in ["PropagationPolicy", "ResourceBinding"] {
            for mut object in scene.hub.list(kind, ns, "").await.unwrap_or_default() {
                if let Some(meta) = object["metadata"].as_object_mut() {
                    meta.remove("managedFields");
                }
                let _ = writeln!(text, "--- {kind} {ns}/{}\n{object}", name(&object));
            }
        }
        for server in std::iter::once(&scene.hub).chain(&scene.members) {
            for kind in WORKLOADS.iter().chain(DEPENDENCIES) {
                for object in server.list(kind, ns, "").await.unwrap_or_default() {
                    let meta = &object["metadata"];
                    if name(&object).starts_with("default") {
                        continue;
                    }
                    let _ = writeln!(
                        text,
                        "--- {} {kind} {ns}/{}: uid {} deleting {} finalizers {} labels {}",
                        server.name,
                        name(&object),
                        meta["uid"],
                        meta["deletionTimestamp"],
                        meta["finalizers"],
                        meta["labels"]
                    );
                }
            }
        }
        for event in scene.hub.list("Event", ns, "").await.unwrap_or_default() {
            let (about, reason) = (&event["involvedObject"]["name"], &event["reason"]);
            let _ = writeln!(
                text,
                "--- Event {about} {reason} x{}: {}",
                event["count"], event["message"]
            );
        }
    }
    let writes = scene.writes();
    let _ = writeln!(
        text,
        "--- faults {}: the last of {} writes",
        scene.faults.plan(),
        writes.len()
    );
    for write in writes.iter().skip(writes.len().saturating_sub(LINES)) {
        let _ = writeln!(text, "{write}");
    }
    let _ = writeln!(text, "--- the end of the log\n{}", scene.bed.log.tail(LINES));
    text
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}
