//! The proof that the controllers of the other side are stopped: nobody renews their Leases.
//!
//! A Lease that is missing or cannot be read is no proof. Karmada's controller manager and each of its agents has a Lease on
//! Karmada's API server; an agent also renews the Lease of its Cluster. The controllers of a hub and its agents do the same there.

use std::{collections::BTreeSet, fmt, time::Duration};

use anyhow::{Context as _, Result, bail};
use entourage_core::{
    adoption::karmada::{Karmada, LeaseRecord, LeaseWatch},
    object::Str,
};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, api::ListParams};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{
    args::CLUSTER_NAMESPACE,
    connect::{explain, within},
};

/// The pause between two looks at the Leases.
const PAUSE: Duration = Duration::from_secs(1);

/// That between two looks while objects are written.
const BETWEEN: Duration = Duration::from_secs(5);

/// A process that must not run, and its Leases: it has at least one of them.
struct Process {
    name: String,
    leases: Vec<Place>,
}

/// The place of a Lease.
enum Place {
    /// That name in any namespace: installers put controllers into namespaces of their own, and a Lease of a former one may be left.
    Anywhere(String),
    /// A namespace and a name.
    In(&'static str, String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anywhere(name) => write!(f, "{name} in any namespace"),
            Self::In(namespace, name) => write!(f, "{namespace}/{name}"),
        }
    }
}

/// Processes of one side, whose Leases are watched.
pub(super) struct Watched {
    client: Client,
    processes: Vec<Process>,
    watch: LeaseWatch,
    begun: Instant,
    is_proven: bool,
}

impl Watched {
    /// Those of Karmada: its controller manager, and the agents of its clusters in Pull mode.
    pub(super) fn karmada(server: &Client, karmada: &Karmada) -> Self {
        let manager = "karmada-controller-manager".to_owned();
        let pulled = karmada.clusters.iter().filter(|(_, cluster)| cluster.is_pulled);
        let agents = pulled.map(|(name, _)| {
            let own = format!("karmada-agent-{name}");
            agent(
                name,
                &format!("the karmada-agent of {name}"),
                vec![Place::Anywhere(own)],
            )
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
            leases: vec![Place::Anywhere(lease)],
        };
        Self {
            client: client.clone(),
            processes: std::iter::once(controllers).chain(agents).collect(),
            watch: LeaseWatch::default(),
            begun: Instant::now(),
            is_proven: false,
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
                self.is_proven = true;
                return Ok(());
            }
            sleep(remaining.min(PAUSE)).await;
        }
    }

    /// Carries something out while the Leases are looked at, and looks at them once more at the end. It is dropped as soon as
    /// one is renewed.
    ///
    /// # Errors
    /// One was renewed, or there is no proof any more.
    pub(super) async fn during(&mut self, work: impl Future<Output = ()>) -> Result<()> {
        let watching = async {
            loop {
                sleep(BETWEEN).await;
                if let Err(error) = self.look().await {
                    return error;
                }
            }
        };
        tokio::select! {
            () = work => {}
            error = watching => return Err(error),
        }
        self.look().await
    }

    /// Looks at the Leases once more.
    ///
    /// # Errors
    /// One was renewed since they were first read, one was released or appeared since the proof, or there is no proof.
    pub(super) async fn look(&mut self) -> Result<()> {
        for process in &self.processes {
            let mut is_found = false;
            for place in &process.leases {
                for (name, record) in leases(&self.client, place).await? {
                    is_found = true;
                    let seen = self.watch.observe(&name, record, self.begun.elapsed());
                    if let Err(renewed) = seen {
                        bail!("{renewed}; stop {} and run this again", process.name);
                    }
                }
            }
            if !is_found {
                let leases: Vec<String> = process.leases.iter().map(Place::to_string).collect();
                bail!(
                    "nothing proves that {} is stopped: it has no Lease {}",
                    process.name,
                    leases.join(" or ")
                );
            }
        }
        if self.is_proven && !self.watch.remaining(self.begun.elapsed()).is_zero() {
            bail!("a Lease has been released or made since the proof: see what runs, and run this again");
        }
        Ok(())
    }

    /// The current holders, for a user: whether they run shows only over time.
    pub(super) async fn holders(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for process in &self.processes {
            let before = notes.len();
            for place in &process.leases {
                match leases(&self.client, place).await {
                    Ok(found) => notes.extend(found.iter().map(|(name, record)| {
                        let held = match &*record.holder {
                            "" => "is released".to_owned(),
                            holder => format!("is held by {holder}"),
                        };
                        format!("{}: Lease {name} {held}", process.name)
                    })),
                    Err(error) => notes.push(format!("{}: {error:#}", process.name)),
                }
            }
            if notes.len() == before {
                notes.push(format!("{}: no Lease found", process.name));
            }
        }
        notes
    }
}

/// An agent, which also renews the Lease of its Cluster.
fn agent(cluster: &str, name: &str, mut leases: Vec<Place>) -> Process {
    leases.push(Place::In(CLUSTER_NAMESPACE, cluster.to_owned()));
    Process {
        name: name.to_owned(),
        leases,
    }
}

/// The Leases at a place, each with its namespace and name.
async fn leases(client: &Client, place: &Place) -> Result<Vec<(String, LeaseRecord)>> {
    let found = match place {
        Place::In(namespace, name) => {
            let api: Api<Lease> = Api::namespaced(client.clone(), namespace);
            within(api.get_opt(name)).await.map(Vec::from_iter)
        }
        Place::Anywhere(name) => {
            let api: Api<Lease> = Api::all(client.clone());
            let params = ListParams::default().fields(&format!("metadata.name={name}"));
            within(api.list(&params)).await.map(|list| list.items)
        }
    };
    let found = found
        .map_err(explain)
        .with_context(|| format!("cannot read the Lease {place}"))?;
    let named = found.into_iter().map(|lease| {
        let (namespace, name) = (&lease.metadata.namespace, &lease.metadata.name);
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        let full = format!("{}/{}", part(namespace), part(name));
        (full, LeaseRecord::of(&json!(lease)))
    });
    Ok(named.collect())
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
        let namespace = if name == "m2" {
            "karmada-cluster"
        } else {
            "karmada-system"
        };
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"namespace": namespace, "name": name},
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
                && error.contains("karmada-agent-m2 in any namespace or karmada-cluster/m2"),
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

    #[tokio::test(start_paused = true)]
    async fn a_stale_lease_of_a_former_namespace_is_no_proof_of_another() {
        let server = Server::new("karmada");
        server.put(MANAGER, held("karmada-controller-manager", "former", THEN));
        server.put(AGENT, held("m2", "agent", THEN));
        let other = MANAGER.replace("karmada-system", "tools");
        let running = |renewed: &str| {
            let mut lease = held("karmada-controller-manager", "present", renewed);
            lease["metadata"]["namespace"] = json!("tools");
            lease
        };
        server.put(&other, running(THEN));
        let mut watched = watched(&server);
        watched.look().await.unwrap();
        server.put(&other, running("2026-11-26T00:00:02.000000Z"));
        let error = watched.prove().await.unwrap_err().to_string();
        assert!(
            error.contains("present runs") && error.contains("tools/karmada-controller-manager"),
            "{error}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_starts_while_objects_are_written_ends_it() {
        let server = Server::new("karmada");
        server.put(MANAGER, held("karmada-controller-manager", "", THEN));
        server.put(AGENT, held("m2", "", THEN));
        let mut watched = watched(&server);
        watched.prove().await.unwrap();
        watched.during(sleep(Duration::from_secs(60))).await.unwrap();
        let started = server.clone();
        let written = async move {
            sleep(Duration::from_secs(7)).await;
            started.put(
                MANAGER,
                held("karmada-controller-manager", "x", "2026-11-26T00:01:00.000000Z"),
            );
            std::future::pending::<()>().await;
        };
        let error = watched.during(written).await.unwrap_err().to_string();
        assert!(error.contains("x runs"), "{error}");

        // At the very end, too; and a Lease that was not there at the proof is none.
        let mut watched = self::watched(&server);
        watched.prove().await.unwrap();
        let other = MANAGER.replace("karmada-system", "tools");
        let started = server.clone();
        let written = async move {
            let mut lease = held("karmada-controller-manager", "y", THEN);
            lease["metadata"]["namespace"] = json!("tools");
            started.put(&other, lease);
        };
        let error = watched.during(written).await.unwrap_err().to_string();
        assert!(error.contains("released or made since the proof"), "{error}");
    }
}
