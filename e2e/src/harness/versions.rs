//! The detection of writes by any writer: the versions of all objects of a test.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Result, ensure};

use super::{
    kinds::{DEPENDENCIES, WORKLOADS},
    space::Space,
};

/// Longer than any delay that the controllers put between an observation and a write.
pub const QUIET: Duration = Duration::from_millis(3_500);

/// Resource versions by server, kind and name.
pub type Versions = BTreeMap<String, String>;

/// The resourceVersion of everything in a namespace, on all servers.
///
/// # Errors
/// When one of them does not answer.
pub async fn versions(space: &Space) -> Result<Versions> {
    let mut versions = Versions::new();
    for server in std::iter::once(&space.hub).chain(&space.members) {
        let is_hub = server.name == space.hub.name;
        let of_hub: &[&str] = if is_hub {
            &["ResourceBinding", "PropagationPolicy"]
        } else {
            &[]
        };
        for kind in WORKLOADS.iter().chain(DEPENDENCIES).chain(of_hub) {
            for object in server.list(kind, &space.ns, "").await? {
                let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
                versions.insert(
                    format!("{} {kind}/{}", server.name, text("name")),
                    text("resourceVersion"),
                );
            }
        }
    }
    Ok(versions)
}

/// # Errors
/// Says `what`, and names everything that differs.
pub fn same(before: &Versions, after: &Versions, what: &str) -> Result<()> {
    let names = before.keys().chain(after.keys());
    let differ: Vec<&String> = names
        .filter(|name| before.get(*name) != after.get(*name))
        .collect();
    ensure!(differ.is_empty(), "{what}: {differ:?}");
    Ok(())
}
