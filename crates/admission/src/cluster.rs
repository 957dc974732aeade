//! Rules of Clusters.

use entourage_model::problem::Problem;
use serde_json::Value;

/// The mode of a Cluster does not change; left out it is Push.
pub(super) fn same_mode(object: &Value, old: &Value, problems: &mut Vec<Problem>) {
    fn mode(object: &Value) -> &str {
        match object["spec"]["syncMode"].as_str() {
            None | Some("") => "Push",
            Some(mode) => mode,
        }
    }
    let (before, after) = (mode(old), mode(object));
    if before != after {
        problems.push(Problem::new(
            "spec.syncMode",
            format!("it was {before:?} and is immutable: what was written in that mode would stay"),
            "unjoin the cluster and join it again in the other mode",
        ));
    }
}
