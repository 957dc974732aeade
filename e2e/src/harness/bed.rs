//! A hub and members that have joined: shared by all tests of the real lane, of its own for each test of the embedded one.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser as _;
use entourage::{
    command::{Cli, Command, cordon, drain, taint},
    crds, join,
};
use serde_json::{Value, json};

use super::{capture::Capture, eventually::eventually, server::Server};
use crate::servers::{Fleet, TestCluster, Version};

/// Kinds that a member gives rights on only when asked for, and that tests propagate.
const ALLOWED: [&str; 2] = [
    "--allow",
    "apiextensions.k8s.io/customresourcedefinitions,e2e.entourage.dev/widgets,persistentvolumes,\
     resourcequotas,scheduling.k8s.io/priorityclasses,workload.example.io/workloads",
];

/// The names of the members.
pub const MEMBERS: [&str; 3] = ["member1", "member2", "member3"];

/// The namespace of the members' credentials on the hub.
const CLUSTERS: &str = "karmada-cluster";

/// A hub that serves our CRDs, and three members that have joined it.
pub struct Bed {
    /// The clusters.
    pub fleet: Fleet,
    /// The hub's API.
    pub hub: Server,
    /// The members' APIs, in order.
    pub members: Vec<Server>,
    /// The log.
    pub log: Capture,
    dir: PathBuf,
    /// Clusters and their Secrets as they were joined.
    joined: Mutex<Vec<Value>>,
}

impl Bed {
    /// True if the clusters are embedded ones.
    #[must_use]
    pub fn is_embedded(&self) -> bool {
        matches!(self.fleet.hub, TestCluster::Embedded(_))
    }

    /// True if the clusters have a [capability](crate::servers::CAPABILITIES). Embedded ones are like the newest release.
    ///
    /// # Errors
    /// When none is called so.
    pub fn has(&self, capability: &str) -> Result<bool> {
        let newest = Version {
            major: 1,
            minor: u32::MAX,
            patch: 0,
        };
        match &self.fleet.hub {
            TestCluster::Real(cluster) => cluster.version().has(capability),
            TestCluster::Embedded(_) => newest.has(capability),
        }
    }

    /// Makes a hub and members of servers that run, with files in `dir`.
    ///
    /// # Errors
    /// When the CRDs are refused, or a member cannot be joined.
    pub async fn start(fleet: Fleet, dir: &Path, log: Capture) -> Result<Self> {
        let server = |cluster: &TestCluster| Server {
            name: cluster.name().to_owned(),
            client: cluster.client(),
        };
        let hub = server(&fleet.hub);
        let members: Vec<Server> = fleet.members.iter().map(server).collect();
        define(&fleet.hub).await?;
        let bed = Self {
            fleet,
            hub,
            members,
            log,
            dir: dir.to_owned(),
            joined: Mutex::default(),
        };
        for member in MEMBERS {
            bed.join(member, &ALLOWED).await?;
        }
        bed.remember().await?;
        Ok(bed)
    }

    /// `entourage join NAME`, without waiting: no controllers run yet. Returns what it printed.
    ///
    /// # Errors
    /// As the command.
    pub async fn join(&self, name: &str, more: &[&str]) -> Result<String> {
        self.join_by(name, &self.cluster(name)?.kubeconfig_path(), more)
            .await
    }

    /// The same by another kubeconfig of the member.
    ///
    /// # Errors
    /// As the command.
    pub async fn join_by(&self, name: &str, cluster: &Path, more: &[&str]) -> Result<String> {
        let hub = self.fleet.hub.kubeconfig_path();
        let (hub, cluster) = (hub.to_str().context("text")?, cluster.to_str().context("text")?);
        let mut line = vec![
            "join",
            name,
            "--kubeconfig",
            hub,
            "--cluster-kubeconfig",
            cluster,
            "--wait",
            "0s",
        ];
        // A flag given again would be refused: whoever passes --wait means it.
        if more.contains(&"--wait") {
            line.truncate(line.len() - 2);
        }
        line.extend(more);
        let Command::Join(args) = parse(&line)? else {
            unreachable!()
        };
        let mut out = Vec::new();
        join::run(args, &mut out).await?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    /// Has a member serve the kinds of a control plane, as the API server of another one.
    ///
    /// # Errors
    /// When it refuses a definition.
    pub async fn define_on(&self, member: &str) -> Result<()> {
        define(self.cluster(member)?).await
    }

    /// `entourage unjoin NAME`. Returns what it printed.
    ///
    /// # Errors
    /// As the command.
    pub async fn unjoin(&self, name: &str, more: &[&str]) -> Result<String> {
        let hub = self.fleet.hub.kubeconfig_path();
        let mut line = vec!["unjoin", name, "--kubeconfig", hub.to_str().context("text")?];
        line.extend(more);
        let Command::Unjoin(args) = parse(&line)? else {
            unreachable!()
        };
        let mut out = Vec::new();
        entourage::command::unjoin::run(args, &mut out).await?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    /// `entourage adopt`. Returns what it printed.
    ///
    /// # Errors
    /// As the command, after what it printed.
    pub async fn adopt(&self, more: &[&str]) -> Result<String> {
        let hub = self.fleet.hub.kubeconfig_path();
        let mut line = vec!["adopt", "--kubeconfig", hub.to_str().context("text")?];
        line.extend(more);
        let Command::Adopt(args) = parse(&line)? else {
            unreachable!()
        };
        let mut out = Vec::new();
        let result = entourage::command::adopt::run(args, &mut out).await;
        let printed = String::from_utf8_lossy(&out).into_owned();
        result.with_context(|| printed.clone())?;
        Ok(printed)
    }

    /// `entourage promote`. Returns what it printed.
    ///
    /// # Errors
    /// As the command, after what it printed.
    pub async fn promote(&self, more: &[&str]) -> Result<String> {
        let hub = self.fleet.hub.kubeconfig_path();
        let mut line = vec!["promote", "--kubeconfig", hub.to_str().context("text")?];
        line.extend(more);
        let Command::Promote(args) = parse(&line)? else {
            unreachable!()
        };
        let mut out = Vec::new();
        let result = entourage::command::promote::run(*args, &mut out).await;
        let printed = String::from_utf8_lossy(&out).into_owned();
        result.with_context(|| printed.clone())?;
        Ok(printed)
    }

    /// `entourage taint`, `cordon`, `uncordon` or `drain`. Returns what it printed.
    ///
    /// # Errors
    /// As the command.
    pub async fn taints(&self, line: &[&str]) -> Result<String> {
        let hub = self.fleet.hub.kubeconfig_path();
        let mut line = line.to_vec();
        line.extend(["--kubeconfig", hub.to_str().context("text")?]);
        let mut out = Vec::new();
        match parse(&line)? {
            Command::Taint(args) => taint::run(args, &mut out).await?,
            Command::Cordon(args) => cordon::run(args, &mut out).await?,
            Command::Uncordon(args) => cordon::run_uncordon(args, &mut out).await?,
            Command::Drain(args) => drain::run(args, &mut out).await?,
            other => bail!("{other:?} is not about taints"),
        }
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    /// A member by name.
    ///
    /// # Errors
    /// When there is none.
    pub fn member(&self, name: &str) -> Result<&Server> {
        self.members
            .iter()
            .find(|member| member.name == name)
            .with_context(|| format!("no member {name}"))
    }

    /// A member as something that can be stopped and paused.
    ///
    /// # Errors
    /// When there is none.
    pub fn cluster(&self, name: &str) -> Result<&TestCluster> {
        self.fleet
            .members
            .iter()
            .find(|member| member.name() == name)
            .with_context(|| format!("no member {name}"))
    }

    /// The folder of the servers' files.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Brings hub and members back to where they were: running, joined, with working credentials, and nobody else joined.
    /// Cheap when nothing is broken.
    ///
    /// # Errors
    /// When that fails: no further test can be trusted.
    pub async fn repair(&self) -> Result<()> {
        for cluster in self.fleet.clusters() {
            if !cluster.is_running() {
                cluster.start_apiserver().await?;
            }
            cluster.resume()?;
        }
        for cluster in self.hub.list("Cluster", "", "").await? {
            let name = cluster["metadata"]["name"].as_str().unwrap_or_default();
            if !MEMBERS.contains(&name) || cluster["metadata"]["deletionTimestamp"].is_string() {
                self.remove(name).await?;
            }
        }
        let joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for object in &joined {
            let (kind, name) = (
                object["kind"].as_str().unwrap_or_default(),
                object["metadata"]["name"].as_str(),
            );
            let name = name.unwrap_or_default();
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
            match self.hub.get(kind, namespace, name).await? {
                None => {
                    self.join(name, &ALLOWED).await?;
                    // Another token, perhaps: the old one may be worth nothing.
                    self.remember().await?;
                    return Box::pin(self.repair()).await;
                }
                Some(live) if same(&live, object) => {}
                Some(_) => self.apply_joined(object).await?,
            }
        }
        Ok(())
    }

    async fn apply_joined(&self, object: &Value) -> Result<()> {
        if object["kind"] == "Cluster" {
            let mut object = object.clone();
            if let Some(meta) = object["metadata"].as_object_mut() {
                meta.retain(|key, _| key == "name" || key == "labels");
            }
            if let Some(map) = object.as_object_mut() {
                map.remove("status");
            }
            self.hub.apply(&object).await?;
        } else {
            self.hub.apply(object).await?;
        }
        Ok(())
    }

    async fn remove(&self, name: &str) -> Result<()> {
        if let Err(error) = self.hub.delete("Cluster", "", name).await {
            ensure!(super::server::status_code(&error) == 404, error);
        }
        let bare = |live: &mut Value| live["metadata"]["finalizers"] = json!([]);
        match self.hub.edit("Cluster", "", name, bare).await {
            // Gone by itself.
            Err(error) if super::server::status_code(&error) == 404 => {}
            result => drop(result?),
        }
        eventually(&format!("the Cluster {name} is gone"), async || {
            ensure!(self.hub.get("Cluster", "", name).await?.is_none(), "still there");
            Ok(())
        })
        .await
    }

    /// As [`repair`](Self::repair), after a test that may have left anything: tokens that ended are replaced as well.
    ///
    /// # Errors
    /// As [`repair`](Self::repair).
    pub async fn restore(&self) -> Result<()> {
        self.repair().await?;
        for member in MEMBERS {
            self.join(member, &ALLOWED).await?;
        }
        self.remember().await
    }

    /// Takes Clusters and their Secrets as they are now for the state that [`repair`](Self::repair) brings back.
    ///
    /// # Errors
    /// When one is missing.
    pub async fn remember(&self) -> Result<()> {
        let credentials = self.credentials().await?;
        *self.joined.lock().unwrap_or_else(PoisonError::into_inner) = credentials;
        Ok(())
    }

    /// Clusters and their Secrets.
    async fn credentials(&self) -> Result<Vec<Value>> {
        let mut all = Vec::new();
        for member in MEMBERS {
            let cluster = self.hub.get("Cluster", "", member).await?;
            let mut cluster = cluster.with_context(|| format!("join made no Cluster {member}"))?;
            // Those of a moment: nobody joins with taints.
            if let Some(spec) = cluster["spec"].as_object_mut() {
                spec.remove("taints");
            }
            all.push(cluster);
            let secret = self.hub.get("Secret", CLUSTERS, member).await?;
            all.push(stripped(
                secret.with_context(|| format!("join made no Secret {member}"))?,
            ));
        }
        Ok(all)
    }

    /// The longest time that a member may take to be noticed: the threshold of the controllers and two probes.
    #[must_use]
    pub fn failure_threshold() -> Duration {
        Duration::from_secs(60)
    }
}

/// `entourage crds --apply`.
async fn define(cluster: &TestCluster) -> Result<()> {
    let kubeconfig = cluster.kubeconfig_path();
    let kubeconfig = kubeconfig.to_str().context("a path that is text")?;
    let Command::Crds(args) = parse(&["crds", "--apply", "--kubeconfig", kubeconfig])? else {
        unreachable!()
    };
    crds::run(args, &mut Vec::<u8>::new()).await
}

fn same(live: &Value, joined: &Value) -> bool {
    if joined["kind"] == "Cluster" {
        live["spec"] == joined["spec"]
    } else {
        live["data"] == joined["data"]
    }
}

fn stripped(mut object: Value) -> Value {
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.retain(|key, _| matches!(key.as_str(), "name" | "namespace" | "labels" | "annotations"));
    }
    object
}

fn parse(line: &[&str]) -> Result<Command> {
    let line = std::iter::once("entourage").chain(line.iter().copied());
    Ok(Cli::try_parse_from(line)?.command)
}
