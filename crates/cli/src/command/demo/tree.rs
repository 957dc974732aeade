//! The tree workload → dependencies → clusters, and a binding without fields for machines.

use anyhow::Result;
use serde_json::Value;

use super::cluster::Clients;

/// Fields of a binding's metadata that only machines read.
const NOISE: [&str; 5] = [
    "managedFields",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
];

/// The tree of a workload's binding and of one binding attached to it.
pub(super) async fn of(clients: &Clients, workload: &str, attached: &str) -> Result<String> {
    let (workload, attached) = (clients.binding(workload).await?, clients.binding(attached).await?);
    let mut lines = vec![format!("   {}", title(&workload))];
    for place in places(&workload) {
        lines.push(format!("   ├─ {place}"));
    }
    lines.push(format!("   └─ needs {}", title(&attached)));
    let places = places(&attached);
    for (number, place) in places.iter().enumerate() {
        let branch = if number + 1 == places.len() {
            "└─"
        } else {
            "├─"
        };
        lines.push(format!("      {branch} {place}"));
    }
    Ok(lines.join("\n") + "\n")
}

fn title(binding: &Value) -> String {
    let resource = &binding["spec"]["resource"];
    format!("{} {}", text(&resource["kind"]), text(&resource["name"]))
}

/// A line for each member that has a copy: its name and the state of the copy.
fn places(binding: &Value) -> Vec<String> {
    let entries = binding["status"]["aggregatedStatus"].as_array();
    let mut lines: Vec<String> = entries
        .into_iter()
        .flatten()
        .map(|entry| {
            let applied = if entry["applied"] == true {
                "applied"
            } else {
                "not applied"
            };
            let health = match text(&entry["health"]) {
                "" => String::new(),
                health => format!(", {}", health.to_lowercase()),
            };
            format!("{}: {applied}{health}", text(&entry["clusterName"]))
        })
        .collect();
    lines.sort();
    lines
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A binding reduced to its kind, name, spec and owners.
pub(super) fn shortened(binding: &Value) -> Value {
    let mut binding = binding.clone();
    if let Some(metadata) = binding["metadata"].as_object_mut() {
        metadata.retain(|key, _| !NOISE.contains(&key.as_str()));
    }
    if let Some(object) = binding.as_object_mut() {
        object.remove("status");
    }
    binding
}
