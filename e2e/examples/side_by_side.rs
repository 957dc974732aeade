//! The embedded API server and a real one, asked the same by the same client in one run:
//! `KUBEBUILDER_ASSETS=… cargo run --release -p entourage-e2e --example side_by_side`.
//!
//! Both are asked over TLS on loopback. Printed for each: the time from its start to its first answer, creates of a small
//! ConfigMap per second one after the other and sixteen at a time, and how long after a create was sent its watch event came.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use entourage_e2e::servers::{Assets, EmbeddedCluster, RealCluster, TestCluster};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{PostParams, WatchEvent, WatchParams},
};

/// Creates one after the other, and at a time.
const CREATES: usize = 2_000;
/// Creates whose events are waited for.
const EVENTS: usize = 500;

#[tokio::main]
async fn main() -> Result<()> {
    entourage::install_tls_provider();
    let dir = std::env::temp_dir().join(format!("entourage-side-by-side-{}", std::process::id()));
    println!("server    first answer  creates/s  creates/s (16)  event p50  event p99");
    let began = Instant::now();
    let embedded = EmbeddedCluster::start("embedded", &dir.join("embedded")).await?;
    measure(&TestCluster::Embedded(Box::new(embedded)), began).await?;
    if let Some(assets) = Assets::from_env() {
        let began = Instant::now();
        let real = RealCluster::start(&assets, "real", &dir.join("real")).await?;
        measure(&TestCluster::Real(Box::new(real)), began).await?;
    } else {
        println!("KUBEBUILDER_ASSETS names no real API server");
    }
    std::fs::remove_dir_all(&dir).with_context(|| format!("{}", dir.display()))
}

async fn measure(cluster: &TestCluster, began: Instant) -> Result<()> {
    let client = cluster.client();
    client.apiserver_version().await?;
    let first = began.elapsed();
    let one = creates(&client, "one", 1).await?;
    let many = creates(&client, "many", 16).await?;
    let mut latencies = events(&client).await?;
    latencies.sort();
    let of = |share: usize| latencies[(latencies.len() - 1) * share / 100].as_secs_f64() * 1e3;
    println!(
        "{:<9} {:>9.0} ms {one:>10.0} {many:>15.0} {:>7.2} ms {:>7.2} ms",
        cluster.name(),
        first.as_secs_f64() * 1e3,
        of(50),
        of(99),
    );
    Ok(())
}

fn map(name: String) -> ConfigMap {
    let mut map = ConfigMap {
        data: Some([("key".to_owned(), "value".to_owned())].into()),
        ..ConfigMap::default()
    };
    map.metadata.name = Some(name);
    map
}

/// Creates per second, so many at a time.
async fn creates(client: &Client, prefix: &str, at_a_time: usize) -> Result<f64> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let began = Instant::now();
    futures::stream::iter(0..CREATES)
        .map(|number| {
            let (api, map) = (api.clone(), map(format!("{prefix}-{number}")));
            async move { api.create(&PostParams::default(), &map).await.map(drop) }
        })
        .buffer_unordered(at_a_time)
        .try_collect::<()>()
        .await?;
    Ok(CREATES as f64 / began.elapsed().as_secs_f64())
}

/// From sending a create to its event, one after the other.
async fn events(client: &Client) -> Result<Vec<Duration>> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let list = api
        .list_metadata(&kube::api::ListParams::default().limit(1))
        .await?;
    let from = list
        .metadata
        .resource_version
        .context("a list has a resourceVersion")?;
    let mut watch = Box::pin(api.watch(&WatchParams::default().timeout(280), &from).await?);
    let mut latencies = Vec::with_capacity(EVENTS);
    for number in 0..EVENTS {
        let name = format!("event-{number}");
        let map = map(name.clone());
        let sent = Instant::now();
        let arrives = async {
            while let Some(event) = watch.try_next().await? {
                if matches!(&event, WatchEvent::Added(map) if map.metadata.name.as_ref() == Some(&name)) {
                    return Ok(sent.elapsed());
                }
            }
            anyhow::bail!("the watch ended before the event of {name}")
        };
        let create = async { Ok(api.create(&PostParams::default(), &map).await?) };
        let (latency, _) = futures::future::try_join(arrives, create).await?;
        latencies.push(latency);
    }
    Ok(latencies)
}
