//! The stored objects of a Karmada. Manifests of Works are dropped, object by object, while their pages are read.

use anyhow::{Context as _, Result, bail};
use entourage_core::{adoption::karmada::Karmada, kinds::CLUSTER_API, object::Gvk, scope};
use kube::{Client, api::ListParams};
use serde_json::Value;

use crate::{
    connect::{self, explain},
    kinds::{Kinds, Served},
    lists::{self, PAGE},
};

/// The number of Works in a page: each may contain definitions or ConfigMaps of a megabyte.
const PAGE_OF_WORKS: u32 = 50;

/// The number of times that the list of Works is begun.
const ATTEMPTS: usize = 3;

/// The kind of Works.
pub(super) fn work() -> Gvk {
    Gvk::new("work.karmada.io/v1alpha1", "Work")
}

/// Reads Works, bindings, policies and Clusters.
///
/// # Errors
/// The server cannot be read, or is not that of a Karmada.
pub(super) async fn karmada(server: &Client) -> Result<Karmada> {
    let mut karmada = Karmada {
        id: connect::cluster_id(server, "Karmada").await?.into(),
        ..Karmada::default()
    };
    each(server, Gvk::new(CLUSTER_API, "Cluster"), |cluster| {
        karmada.add_cluster(cluster);
    })
    .await?;
    for kind in [scope::POLICY.kind, scope::CLUSTER_POLICY.kind] {
        let gvk = Gvk::new(scope::POLICY_API, kind);
        each(server, gvk, |policy| karmada.add_policy(policy)).await?;
    }
    for kind in [scope::BINDING.kind, scope::CLUSTER_BINDING.kind] {
        let gvk = Gvk::new(scope::BINDING_API, kind);
        each(server, gvk, |binding| karmada.add_binding(binding)).await?;
    }
    works(server, &mut karmada).await?;
    Ok(karmada)
}

/// Whole Works are read. A list that took so long that the server has forgotten its version is begun again.
async fn works(server: &Client, karmada: &mut Karmada) -> Result<()> {
    let served = served(server, &work()).await?;
    let params = ListParams::default().limit(PAGE_OF_WORKS);
    let mut attempts = 1;
    loop {
        karmada.clear_works();
        match lists::each(server, &served, "", &params, |work| karmada.add_work(work)).await {
            Err(kube::Error::Api(status)) if status.code == 410 && attempts < ATTEMPTS => attempts += 1,
            result => return named(result, &served),
        }
    }
}

async fn each(server: &Client, gvk: Gvk, take: impl FnMut(&Value)) -> Result<()> {
    let served = served(server, &gvk).await?;
    let result = lists::each(server, &served, "", &ListParams::default().limit(PAGE), take).await;
    named(result, &served)
}

fn named(result: kube::Result<()>, served: &Served) -> Result<()> {
    result
        .map_err(explain)
        .with_context(|| format!("cannot list {} of Karmada", served.resource.plural))
}

async fn served(server: &Client, gvk: &Gvk) -> Result<Served> {
    let mut kinds = Kinds::default();
    kinds
        .learn(server, [gvk.clone()])
        .await
        .context("cannot ask Karmada which kinds it serves")?;
    let Some(served) = kinds.get(gvk) else {
        bail!(
            "the server of --from-karmada does not serve the kind {}: is it the API server of a Karmada, and not that of its host \
             cluster?",
            gvk.kind
        );
    };
    Ok(served.clone())
}
