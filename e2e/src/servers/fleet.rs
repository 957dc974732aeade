//! A hub and its members.

use std::path::Path;

use anyhow::{Context, Result};
use futures::future;

use super::{HUB, assets::Assets, cluster::RealCluster, embedded::EmbeddedCluster, machine::TestCluster};

/// A hub and `member1` … `memberN`, each with its own authority and controllers. Dropping it ends all of them.
pub struct Fleet {
    /// The cluster of policies and templates.
    pub hub: TestCluster,
    /// The clusters that workloads are propagated to, in the order of their numbers.
    pub members: Vec<TestCluster>,
}

impl Fleet {
    /// Starts a hub and `members` real clusters at the same time, with their files in `dir/hub`, `dir/member1` …
    ///
    /// # Errors
    /// When one of them does not start; those that did are ended.
    pub async fn start(assets: &Assets, members: usize, dir: &Path) -> Result<Self> {
        // Asked once here, so that it is not asked by every cluster at the same moment.
        assets.version()?;
        let starts = names(members).map(|name| async move {
            let cluster = RealCluster::start(assets, &name, &dir.join(&name)).await?;
            Ok::<_, anyhow::Error>(TestCluster::Real(Box::new(cluster)))
        });
        Self::of(future::try_join_all(starts).await?)
    }

    /// The same with embedded clusters: no binaries, and a few milliseconds.
    ///
    /// # Errors
    /// When no port is left or a file cannot be written.
    pub async fn embedded(members: usize, dir: &Path) -> Result<Self> {
        let starts = names(members).map(|name| async move {
            let cluster = EmbeddedCluster::start(&name, &dir.join(&name)).await?;
            Ok::<_, anyhow::Error>(TestCluster::Embedded(Box::new(cluster)))
        });
        Self::of(future::try_join_all(starts).await?)
    }

    fn of(clusters: Vec<TestCluster>) -> Result<Self> {
        let mut clusters = clusters.into_iter();
        Ok(Self {
            hub: clusters.next().context("a fleet has a hub")?,
            members: clusters.collect(),
        })
    }

    /// The hub, then the members.
    pub fn clusters(&self) -> impl Iterator<Item = &TestCluster> {
        std::iter::once(&self.hub).chain(&self.members)
    }

    /// Ends all processes and waits until they are gone. The files stay.
    pub fn shutdown(self) {
        drop(self);
    }
}

fn names(members: usize) -> impl Iterator<Item = String> {
    std::iter::once(HUB.to_owned()).chain((1..=members).map(|number| format!("member{number}")))
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for cluster in self.clusters() {
            if let TestCluster::Real(cluster) = cluster {
                cluster.kill();
            }
        }
    }
}
