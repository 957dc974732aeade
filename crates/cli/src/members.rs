//! The members of a hub, and clients of them: with the credentials that the hub has, or by a kubeconfig.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use entourage_api::cluster::{Cluster, SyncMode};
use entourage_core::{kinds::CLUSTER_API, object::Gvk};
use kube::{Client, api::ListParams};

use crate::{
    connect::{self, Connection, explain},
    kinds::Kinds,
    lists::{PAGE, list},
    suggest::hint,
};

/// The deadline of the requests for a member's credentials.
const DEADLINE: Duration = Duration::from_secs(10);

/// The Clusters of the hub: those with the given names, or all.
///
/// # Errors
/// The hub cannot be read, or has no member of a name.
pub async fn clusters(hub: &Client, named: &[String]) -> Result<Vec<Cluster>> {
    let gvk = Gvk::new(CLUSTER_API, "Cluster");
    let mut kinds = Kinds::default();
    kinds
        .learn(hub, [gvk.clone()])
        .await
        .context("cannot ask the hub which kinds it serves")?;
    let Some(served) = kinds.get(&gvk) else {
        bail!(
            "the hub does not serve the kind Cluster: is it a hub? `entourage crds --apply` installs the definitions"
        );
    };
    let all = list(hub, served, "", &ListParams::default().limit(PAGE)).await;
    let all = all
        .map_err(explain)
        .context("cannot list the members on the hub")?;
    let all = all.into_iter().map(serde_json::from_value::<Cluster>);
    let mut all: Vec<Cluster> = all
        .collect::<Result<_, _>>()
        .context("a Cluster cannot be read")?;
    let name = |cluster: &Cluster| cluster.metadata.name.clone().unwrap_or_default();
    if let Some(missing) = named
        .iter()
        .find(|wanted| !all.iter().any(|cluster| name(cluster) == **wanted))
    {
        let names: Vec<String> = all.iter().map(name).collect();
        let near = hint(missing, names.iter().map(String::as_str));
        bail!(
            "cluster {missing:?} not found{near}; the hub has: {}",
            names.join(", ")
        );
    }
    all.retain(|cluster| named.is_empty() || named.contains(&name(cluster)));
    Ok(all)
}

/// A client of a member. `given`: a connection by a kubeconfig, instead of the credentials that the hub has in `cluster_namespace`;
/// `flag` names that kubeconfig to the user. Another cluster than the one that was joined is refused.
///
/// # Errors
/// A sentence for the user.
pub async fn client(
    hub: &Client,
    cluster: &Cluster,
    cluster_namespace: &str,
    given: Option<Connection>,
    flag: &str,
) -> Result<Client, String> {
    let words = |error: anyhow::Error| format!("{error:#}");
    let connection = match given {
        Some(connection) => connection,
        None => {
            let config =
                entourage_controllers::members::config_of(hub.clone(), cluster, cluster_namespace, DEADLINE);
            let config = config.await.map_err(|why| match cluster.spec.sync_mode {
                SyncMode::Pull => format!("{why}; give {flag}"),
                SyncMode::Push => why,
            })?;
            Connection::of_hub(config, cluster.metadata.name.as_deref().unwrap_or_default())
        }
    };
    let client = connect::client(connection).map_err(words)?;
    let id = connect::cluster_id(&client, "the member").await.map_err(words)?;
    if !cluster.spec.id.is_empty() && cluster.spec.id != id {
        return Err(format!(
            "another cluster responds (id {id}) than the one that was joined (id {})",
            cluster.spec.id
        ));
    }
    Ok(client)
}
