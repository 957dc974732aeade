//! A hub and its members.

use std::path::Path;

use anyhow::Context;
use futures::future;

use super::{assets::Assets, cluster::RealCluster};

/// A hub and `member1` … `memberN`, each with its own etcd, authority and controllers. Dropping it ends all of them.
#[derive(Debug)]
pub struct Fleet {
    /// Where policies and templates live.
    pub hub: RealCluster,
    /// Where workloads go, in the order of their numbers.
    pub members: Vec<RealCluster>,
}

impl Fleet {
    /// Starts the hub and `members` members at the same time, with their files in `dir/hub`, `dir/member1` ….
    /// Fails, and ends what was started, when one of them does not start.
    pub async fn start(assets: &Assets, members: usize, dir: &Path) -> anyhow::Result<Self> {
        // Asked once here, so that it is not asked by every cluster at the same moment.
        assets.version()?;
        let names =
            std::iter::once("hub".to_owned()).chain((1..=members).map(|number| format!("member{number}")));
        let starts =
            names.map(|name| async move { RealCluster::start(assets, &name, &dir.join(&name)).await });
        let mut clusters = future::try_join_all(starts).await?.into_iter();
        let hub = clusters.next().context("a fleet has a hub")?;
        Ok(Self {
            hub,
            members: clusters.collect(),
        })
    }

    /// The hub, then the members.
    pub fn clusters(&self) -> impl Iterator<Item = &RealCluster> {
        std::iter::once(&self.hub).chain(&self.members)
    }

    /// Ends all processes and waits until they are gone. The files stay.
    pub fn shutdown(self) {
        drop(self);
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.clusters().for_each(RealCluster::kill);
    }
}
