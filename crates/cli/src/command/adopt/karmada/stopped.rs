//! The proof that the controllers of the other side are stopped: nobody renews their Leases.
//!
//! A Lease that is missing or cannot be read is no proof. Karmada's controller manager and each of its agents has a Lease on
//! Karmada's API server; an agent also renews the Lease of its Cluster. The controllers of a hub and its agents do the same there.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context as _, Result, bail};
use entourage_core::{
    adoption::karmada::{Karmada, LeaseRecord, LeaseWatch},
    object::Str,
};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{
    args::CLUSTER_NAMESPACE,
    connect::{explain, within},
};

/// The namespace of the Leases of controllers, of Karmada and of a hub.
const SYSTEM: &str = "karmada-system";

/// The pause between two looks at the Leases.
const PAUSE: Duration = Duration::from_secs(1);

/// A process that must not run, and its Leases: namespace and name. It has at least one of them.
struct Process {
    name: String,
    leases: Vec<(&'static str, String)>,
}

/// Processes of one side, whose Leases are watched.
pub(super) struct Watched {
    client: Client,
    processes: Vec<Process>,
    watch: LeaseWatch,
    begun: Instant,
}

impl Watched {
    /// Those of Karmada: its controller manager, and the agents of its clusters in Pull mode.
    pub(super) fn karmada(server: &Client, karmada: &Karmada) -> Self {
        let manager = "karmada-controller-manager".to_owned();
        let pulled = karmada.clusters.iter().filter(|(_, cluster)| cluster.is_pulled);
        let agents = pulled.map(|(name, _)| {
            let own = format!("karmada-agent-{name}");
            agent(name, &format!("the karmada-agent of {name}"), vec![(SYSTEM, own)])
        });
        Self::of(server, "Karmada's controllers", manager, agents)
    }

    /// Those of this hub: its controllers, and the agents of its members in Pull mode.
    pub(super) fn hub(hub: &Client, pulled: &BTreeSet<Str>) -> Self {
        let controllers = "entourage-controllers".to_owned();
        let agents = pulled
            .iter()
            .map(|name| agent(name, &format!("the agent of {name}"), Vec::new()));
        Self::of(hub, "the controllers of this hub", controllers, agents)
    }

    fn of(client: &Client, name: &str, lease: String, agents: impl Iterator<Item = Process>) -> Self {
        let controllers = Process {
            name: name.to_owned(),
            leases: vec![(SYSTEM, lease)],
        };
        Self {
            client: client.clone(),
            processes: std::iter::once(controllers).chain(agents).collect(),
            watch: LeaseWatch::default(),
            begun: Instant::now(),
        }
    }

    /// A line for the user who waits for the proof.
    pub(super) fn announcement(&self) -> String {
        let names: Vec<&str> = self
            .processes
            .iter()
            .map(|process| process.name.as_str())
            .collect();
        format!("watching the Leases of {}", names.join(", "))
    }

    /// Watches until it is proven that none of the processes runs.
    ///
    /// # Errors
    /// One runs, or there is no proof.
    pub(super) async fn prove(&mut self) -> Result<()> {
        loop {
            self.look().await?;
            let remaining = self.watch.remaining(self.begun.elapsed());
            if remaining.is_zero() {
                return Ok(());
            }
            sleep(remaining.min(PAUSE)).await;
        }
    }

    /// Looks at the Leases once more.
    ///
    /// # Errors
    /// One was renewed since they were first read, or there is no proof.
    pub(super) async fn look(&mut self) -> Result<()> {
        for process in &self.processes {
            let mut is_found = false;
            for (namespace, name) in &process.leases {
                let Some(record) = lease(&self.client, namespace, name).await? else {
                    continue;
                };
                is_found = true;
                let seen = self
                    .watch
                    .observe(&format!("{namespace}/{name}"), record, self.begun.elapsed());
                if let Err(renewed) = seen {
                    bail!("{renewed}; stop {} and run this again", process.name);
                }
            }
            if !is_found {
                let leases: Vec<String> = process
                    .leases
                    .iter()
                    .map(|(namespace, name)| format!("{namespace}/{name}"))
                    .collect();
                bail!(
                    "nothing proves that {} is stopped: it has no Lease {}",
                    process.name,
                    leases.join(" or ")
                );
            }
        }
        Ok(())
    }

    /// The current holders, for a user: whether they run shows only over time.
    pub(super) async fn holders(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for process in &self.processes {
            let before = notes.len();
            for (namespace, name) in &process.leases {
                let held = match lease(&self.client, namespace, name).await {
                    Ok(Some(record)) if record.holder.is_empty() => "is released".to_owned(),
                    Ok(Some(record)) => format!("is held by {}", record.holder),
                    Ok(None) => continue,
                    Err(error) => format!("cannot be read: {error:#}"),
                };
                notes.push(format!("{}: Lease {namespace}/{name} {held}", process.name));
            }
            if notes.len() == before {
                notes.push(format!("{}: no Lease found", process.name));
            }
        }
        notes
    }
}

/// An agent, which also renews the Lease of its Cluster.
fn agent(cluster: &str, name: &str, mut leases: Vec<(&'static str, String)>) -> Process {
    leases.push((CLUSTER_NAMESPACE, cluster.to_owned()));
    Process {
        name: name.to_owned(),
        leases,
    }
}

async fn lease(client: &Client, namespace: &str, name: &str) -> Result<Option<LeaseRecord>> {
    let api: Api<Lease> = Api::namespaced(client.clone(), namespace);
    let lease = within(api.get_opt(name)).await.map_err(explain);
    let lease = lease.with_context(|| format!("cannot read the Lease {namespace}/{name}"))?;
    Ok(lease.map(|lease| LeaseRecord::of(&json!(lease))))
}

/// The clusters of a Karmada, for a user.
pub(super) fn clusters(karmada: &Karmada) -> String {
    let all = karmada.clusters.iter().map(|(name, cluster)| {
        let mode = if cluster.is_pulled { "Pull" } else { "Push" };
        format!("{name} ({mode})")
    });
    let all: Vec<String> = all.collect();
    if all.is_empty() {
        return "none".to_owned();
    }
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;
    use crate::mock::Server;

    const MANAGER: &str =
        "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases/karmada-controller-manager";
    const AGENT: &str = "/apis/coordination.k8s.io/v1/namespaces/karmada-cluster/leases/m2";

    fn held(name: &str, holder: &str, renewed: &str) -> Value {
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed, "leaseTransitions": 1}})
    }

    const THEN: &str = "2026-11-26T00:00:00.000000Z";

    /// Karmada's controllers, and the agent of m2.
    fn watched(server: &Server) -> Watched {
        let karmada = Karmada {
            clusters: BTreeMap::from([
                ("m1".into(), Default::default()),
                (
                    "m2".into(),
                    entourage_core::adoption::karmada::KarmadaCluster {
                        is_pulled: true,
                        ..Default::default()
                    },
                ),
            ]),
            ..Karmada::default()
        };
        assert_eq!(clusters(&karmada), "m1 (Push), m2 (Pull)");
        Watched::karmada(&server.client(), &karmada)
    }

    #[tokio::test(start_paused = true)]
    async fn leases_that_nobody_renews_are_proof_until_one_is() {
        let server = Server::new("karmada");
        server.put(MANAGER, held("karmada-controller-manager", "x", THEN));
        server.put(AGENT, held("m2", "agent", THEN));
        let mut watched = watched(&server);
        let begun = Instant::now();
        watched.prove().await.unwrap();
        assert!(begun.elapsed() >= Duration::from_secs(30));
        watched.look().await.unwrap();
        server.put(AGENT, held("m2", "agent", "2026-11-26T00:00:09.000000Z"));
        let error = watched.look().await.unwrap_err().to_string();
        assert!(
            error.contains("agent runs") && error.contains("stop the karmada-agent of m2"),
            "{error}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_is_missing_is_no_proof() {
        let server = Server::new("karmada");
        server.put(MANAGER, held("karmada-controller-manager", "", THEN));
        let mut watched = watched(&server);
        let error = watched.prove().await.unwrap_err().to_string();
        assert!(
            error.contains("the karmada-agent of m2 is stopped")
                && error.contains("karmada-system/karmada-agent-m2 or karmada-cluster/m2"),
            "{error}"
        );
        let notes = watched.holders().await;
        assert_eq!(
            notes,
            [
                "Karmada's controllers: Lease karmada-system/karmada-controller-manager is released",
                "the karmada-agent of m2: no Lease found",
            ]
        );
    }
}
