//! Removal of everything that the bench created on the servers.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

use super::{
    Bench, floor,
    kind::{Kind, ObjectId},
    objects::World,
};

/// The time that the deletion of namespaces may take at the end.
const CLEANED_WITHIN: Duration = Duration::from_secs(180);

/// Deletes all namespaces that were created, on all servers, and waits until they are gone; then the definition of the floor.
///
/// # Errors
/// A server's; or a namespace is not deleted in time.
pub(super) async fn clean(bench: &mut Bench) -> Result<()> {
    bench.tasks.shutdown().await;
    bench.say("cleaning up");
    let names: Vec<_> = bench.worlds.iter().flat_map(World::namespaces).collect();
    for server in &bench.servers {
        for name in &names {
            server.delete(&ObjectId::new(Kind::Namespace, "", name)).await?;
        }
    }
    let begin = Instant::now();
    for server in &bench.servers {
        loop {
            let list = server.list(Kind::Namespace, "", None).await?;
            let left: BTreeSet<_> = list.items().map(|each| each.name).collect();
            let Some(name) = names.iter().find(|name| left.contains(*name)) else {
                break;
            };
            if begin.elapsed() > CLEANED_WITHIN {
                bail!("the namespace {name} does not go from {}", server.name);
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
    floor::remove_definition(bench.hub()).await.context("cleaning up")
}
