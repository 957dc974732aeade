//! Watches of metadata that maintain the ledger: one per server and kind, restricted by the bench's own label if copies carry
//! it. A watch that ends is resumed from its last version.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result, bail};
use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use serde::Deserialize;
use tokio::task::JoinSet;
use tracing::debug;

use super::{
    kind::{Kind, ObjectId},
    seen::{Place, Seen},
    server::{Metadata, Server},
};

/// The pause after a watch that failed.
const PAUSE: Duration = Duration::from_millis(200);

/// One line of a watch.
#[derive(Debug, Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    object: Object,
}

#[derive(Debug, Deserialize)]
struct Object {
    #[serde(default)]
    metadata: Metadata,
}

/// The target of a watch.
#[derive(Clone)]
pub struct Target {
    /// The server.
    pub server: Arc<Server>,
    /// Its index in the ledger.
    pub place: Place,
    /// The kind.
    pub kind: Kind,
    /// `key=value`: only objects with that label.
    pub label: Option<String>,
}

/// Lists the existing objects and starts a watch from there. Returns when the list is in the ledger.
///
/// # Errors
/// The list's.
pub async fn start(target: Target, seen: Seen, tasks: &mut JoinSet<()>) -> Result<()> {
    let mut from = relist(&target, &seen).await?;
    tasks.spawn(async move {
        loop {
            if let Err(error) = follow(&target, &seen, &mut from).await {
                debug!(server = target.server.name, kind = target.kind.name(), %error, "a watch of the benchmark broke");
                tokio::time::sleep(PAUSE).await;
                if let Ok(fresh) = relist(&target, &seen).await {
                    from = fresh;
                }
            }
        }
    });
    Ok(())
}

async fn relist(target: &Target, seen: &Seen) -> Result<String> {
    let list = target
        .server
        .list(target.kind, "", target.label.as_deref())
        .await?;
    let version = list.metadata.resource_version.clone();
    let mut before = seen.on(target.place);
    before.retain(|id| id.kind == target.kind);
    for metadata in list.items() {
        let id = ObjectId::new(target.kind, metadata.namespace, metadata.name);
        before.remove(&id);
        let revision = metadata.resource_version.parse().unwrap_or_default();
        seen.present(target.place, id, metadata.annotations.step, revision);
    }
    for id in before {
        seen.gone(target.place, id);
    }
    Ok(version)
}

async fn follow(target: &Target, seen: &Seen, from: &mut String) -> Result<()> {
    let mut lines = target
        .server
        .watch(target.kind, target.label.as_deref(), from)
        .await?
        .lines();
    while let Some(line) = lines.try_next().await? {
        let event: Event = serde_json::from_str(&line).context("a malformed event")?;
        let metadata = event.object.metadata;
        let id = ObjectId::new(target.kind, metadata.namespace, metadata.name);
        let revision = metadata.resource_version.parse().unwrap_or_default();
        match event.kind.as_str() {
            "ADDED" | "MODIFIED" => seen.present(target.place, id, metadata.annotations.step, revision),
            "DELETED" => seen.gone(target.place, id),
            "BOOKMARK" => {}
            other => bail!("an event of the type {other}"),
        }
        *from = metadata.resource_version;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_read_for_its_name_its_version_and_the_step() {
        let line = r#"{"type":"MODIFIED","object":{"kind":"PartialObjectMetadata","metadata":{"name":"n","namespace":"s",
            "resourceVersion":"7","annotations":{"other":"x","bench.entourage.dev/step":"3"},"managedFields":[{}]}}}"#;
        let event: Event = serde_json::from_str(line).unwrap();
        let Metadata {
            name,
            namespace,
            resource_version,
            annotations,
        } = event.object.metadata;
        assert_eq!(
            (name.as_str(), namespace.as_str(), resource_version.as_str()),
            ("n", "s", "7")
        );
        assert_eq!(annotations.step.as_deref(), Some("3"));
    }

    #[test]
    fn an_error_has_no_metadata_worth_reading() {
        let line = r#"{"type":"ERROR","object":{"kind":"Status","metadata":{},"code":410}}"#;
        let event: Event = serde_json::from_str(line).unwrap();
        assert_eq!(event.kind, "ERROR");
    }
}
